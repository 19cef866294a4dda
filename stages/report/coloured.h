/* stages/report/coloured.h - a drawing whose atoms have the colours of what moved a prediction: orange raises it, blue lowers it. */
#ifndef ST_COLOURED_H
#define ST_COLOURED_H

#include "chem/worker/worker_client.h"
#include "pipeline/base/text.h"
#include "stages/report/drawing.h"

/* What the atoms of a molecule contribute. */
typedef struct st_colours {
    int32_t n;        /* at least the atoms of the drawing, in its order */
    const uint8_t *z; /* [n] elements                                    */
    const double *by; /* [n]                                             */
} st_colours;

/* Adds the drawing with a disc under each atom that contributes; the largest has the full colour. Each disc has its atom and value as a
 * title. Scratch in mem. False, and nothing added: as st_drawing_add. */
bool st_coloured_add(pl_text *out, const ch_drawn *drawn, const char *alt, const st_colours *colours, st_picture *frame,
                     pl_arena *mem);

#endif
