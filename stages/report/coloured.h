/* stages/report/coloured.h - a drawing whose atoms have the colours of what moved a prediction: orange raises it, blue lowers it. */
#ifndef ST_COLOURED_H
#define ST_COLOURED_H

#include "chem/worker/worker_client.h"
#include "pipeline/base/text.h"
#include "stages/report/drawing.h"

/* Adds the drawing with a disc under each atom: by[n], of which +-most has the full colour; each disc has its atom and value as
 * a title. Scratch in mem. n: at least the atoms of the drawing, in its order; z: their elements. False, and nothing added: as st_drawing_add. */
bool st_coloured_add(pl_text *out, const ch_drawn *drawn, const char *alt, const double *by, const uint8_t *z, int32_t n,
                     double most, st_picture *frame, pl_arena *mem);

/* The largest absolute value of by[n]. */
double st_coloured_most(const double *by, int32_t n);

#endif
