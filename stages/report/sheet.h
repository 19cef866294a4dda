/* stages/report/sheet.h - drawings with coloured atoms, one below the other: as an SVG file, and as parts of a page. */
#ifndef ST_SHEET_H
#define ST_SHEET_H

#include "pipeline/base/text.h"
#include "stages/explain/subject.h"
#include "stages/report/coloured.h"

/* Zeroed at first. */
typedef struct st_sheet {
    pl_text body;
    long wide, high; /* pixels so far */
    int n;
} st_sheet;

/* "gp, logS: atoms +0.31, descriptors -1.2, substructures that it lacks +0.05, mean -2.1: -2.94 log10(mol/L)"; of a network
 * "se3, logS: -2.94 log10(mol/L), atoms: what it loses without each". */
void st_sheet_caption(pl_text *out, const st_subject *s, const st_moves *moves, const char *component, const nn_target *target);

/* EINPUT: the molecule cannot be drawn. Scratch in mem. */
pl_code st_sheet_add(st_sheet *sheet, const ch_drawn *drawn, const st_subject *s, const st_moves *moves, const char *component,
                     const nn_target *target, pl_arena *mem, pl_error *err);
/* Writes all drawings to a file; ECONFIG if there are none. */
pl_code st_sheet_write(const st_sheet *sheet, const char *path, pl_arena *mem, pl_error *err);
void st_sheet_close(st_sheet *sheet);

#endif
