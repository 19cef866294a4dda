/* stages/report/html.h - text and numbers inside an HTML page.
 *
 * What comes from files, databases and other programs goes through these and
 * nothing else, so that no title or message can become markup. */
#ifndef ST_HTML_H
#define ST_HTML_H

#include "pipeline/base/text.h"

/* The text, with & < > " ' as entities. Bytes that are not UTF-8, control characters
 * and those that turn the direction of writing become U+FFFD. NULL is nothing. */
void st_html_add(pl_text *out, const char *s);
/* The same, after max characters cut with an ellipsis. */
void st_html_cut(pl_text *out, const char *s, int max);

/* <data value="full">short</data>: what people read, and the number as stored. */
void st_html_real(pl_text *out, double x, int digits); /* significant digits; from 10,000 on whole */
void st_html_count(pl_text *out, int64_t n);           /* 12,345             */

#endif
