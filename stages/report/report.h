/* stages/report/report.h - one self-contained HTML page about a run.
 *
 * Made from results.db, and from the model files and features.db (only what moved scores), so the same run gives the same bytes; safe
 * during a run (one read transaction). Nothing from outside; every text is
 * escaped (stages/report/html.h), drawings are rebuilt (stages/report/drawing.h), and a
 * Content-Security-Policy forbids what might still get through: it allows one script, by its
 * hash, which sorts and filters the ranking (stages/report/report.js). The page is complete without it. The size is bounded by
 * `top` and by fixed numbers of bins, points and rows. */
#ifndef ST_REPORT_H
#define ST_REPORT_H

#include "pipeline/store/store.h"

enum { ST_REPORT_TOP = 50, ST_REPORT_TOP_MAX = 1000 };

/* The outcome of drawing. */
typedef struct st_drawn {
    int64_t n_drawn, n_plain; /* structures drawn, and shown as SMILES only */
    int64_t n_overlapping;    /* of the drawn ones: atoms touch or bonds cross */
    int64_t n_no_stereo;      /* of the drawn ones: they do not show the stereo */
    char why[400];            /* of the last one that is not drawn, or ""   */
    char unmoved[400];        /* why what moved scores of a model is left out, or "" */
} st_drawn;

/* Adds the page to out. top: ranked molecules to show, 0 .. ST_REPORT_TOP_MAX. */
/* training: NULL, or the database of a training, in which the nearest training molecules are looked up; else they are drawn only if they
 * are in `store`. */
pl_code st_report_make(pl_text *out, pl_store *store, pl_store *training, int64_t top, st_drawn *drawn, pl_arena *mem,
                       pl_error *err);

#endif
