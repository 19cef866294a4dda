/* pipeline/base/wrap.h - lines for a terminal, broken between words. */
#ifndef PL_BASE_WRAP_H
#define PL_BASE_WRAP_H

#include <stdio.h>

#include "pipeline/base/text.h"

enum { PL_COLUMNS = 80 }; /* of a page of help that goes to a file or a pipe */

/* The columns of the terminal that `to` is; 0: it is not a terminal. */
int pl_columns(FILE *to);

/* Adds the text; lines of more than `columns` characters are broken at blanks, but not inside `...` nor before %. The rest of a line
 * is indented to the last gap of two or more blanks in the first four fifths of the line ("  -j, --jobs N    worker
 * threads": to "worker") behind which the next word fits; without such a gap as the line itself, or by 2. A word longer than a
 * line stays whole. */
void pl_text_wrap(pl_text *out, const char *text, int columns);

#endif
