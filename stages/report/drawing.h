/* stages/report/drawing.h - the chemistry worker's drawing of a molecule, made safe for a page.
 *
 * The worker has read hostile files, so nothing of its SVG is copied: the lines,
 * polygons and atom labels that it is made of are read as numbers and a few
 * letters, and a new, smaller drawing is written from them. */
#ifndef ST_DRAWING_H
#define ST_DRAWING_H

#include "pipeline/base/text.h"

/* Adds one <svg class="mol"> element that fits 220 by 160 pixels; alt describes it
 * (plain text, escaped here). False, and nothing added: something else than the
 * elements above is in it, a number makes no sense, or it is larger than 60 kB. */
bool st_drawing_add(pl_text *out, const char *svg, const char *alt);

#endif
