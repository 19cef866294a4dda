/* stages/report/drawing.h - the chemistry worker's drawing of a molecule, made safe for a page.
 *
 * The worker has read hostile files, so nothing of its SVG is copied: the lines,
 * polygons and atom labels that it is made of are read as numbers and a few
 * letters, and a new, smaller drawing is written from them. All have bonds of one
 * length, ST_BOND_PIXELS; only a molecule that is wider or higher than the picture is drawn smaller. */
#ifndef ST_DRAWING_H
#define ST_DRAWING_H

#include "pipeline/base/text.h"

enum { ST_BOND_PIXELS = 16, ST_PICTURE_WIDE = 220, ST_PICTURE_HIGH = 170 };

/* The frame of a drawing, with which it is shown again. */
typedef struct st_picture {
    char id[24];           /* of its lines; "": it is not drawn   */
    long x, y, wide, high; /* in tenths of the worker's units */
    long width, height;    /* in pixels                       */
} st_picture;

/* Adds one <svg class="mol"> element; alt describes it (plain text, escaped here). Its lines have `id` (letters and digits) unless that is
 * ""; *frame: for st_drawing_again, may be NULL. False, and nothing added: something else than the
 * elements above is in it, a number makes no sense, or it is larger than 60 kB. */
bool st_drawing_add(pl_text *out, const char *svg, const char *alt, const char *id, st_picture *frame);
/* A disc under a drawing. */
typedef struct st_mark {
    double x, y;    /* worker's units                                         */
    double by;      /* -1 to 1: blue to orange; the less, the more transparent */
    char title[40]; /* plain text without < > & and quotes                     */
} st_mark;
/* The same on n discs. */
bool st_drawing_add_marked(pl_text *out, const char *svg, const char *alt, const char *id, st_picture *frame, const st_mark *mark,
                           int n);
/* The same drawing at another place of the page. */
void st_drawing_again(pl_text *out, const st_picture *frame, const char *alt);

#endif
