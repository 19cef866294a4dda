/* stages/report/report_parts.h - what the parts of the report share; used by report*.c only. */
#ifndef ST_REPORT_PARTS_H
#define ST_REPORT_PARTS_H

#include "chem/worker/worker_client.h"
#include "stages/report/drawing.h"
#include "stages/report/html.h"
#include "stages/report/report.h"
#include "stages/steps/errors/trust.h"

/* A structure on the page. */
typedef struct st_structure {
    st_picture picture;  /* .id is "" if it is not drawn */
    const char *molfile; /* of the same drawing; NULL: there is none */
} st_structure;

/* A hit on the page. */
typedef struct st_hit {
    int64_t rank, mol_id;
    const char *smiles, *title;
    st_structure structure;
    uint64_t scaffold;
    int32_t group; /* hits of one scaffold, from 1, in order of their best; 0: no rings; -1: not known */
} st_hit;

/* The first error stays in `code` and ends all queries: it is checked once, at the end. */
typedef struct st_report {
    pl_store *store;        /* of db */
    sqlite3 *db, *training; /* training: NULL, or where its molecules are looked up */
    pl_text *out;
    pl_arena *mem;
    ch_worker *worker; /* NULL: there is none, no structure is drawn */
    int64_t top;
    st_drawn *drawn;
    st_hit *hit; /* [n_hits] those shown */
    int64_t n_hits;
    pl_code code;
    pl_error *err;
} st_report;

/* Rows of a query (fmt by sqlite3_mprintf):
 *     for (sqlite3_stmt *st = st_report_query(r, "..."); st_report_row(r, &st);) ...
 * st_report_row ends the statement after the last row: do not leave the loop early. */
sqlite3_stmt *st_report_query(st_report *r, const char *fmt, ...);
bool st_report_row(st_report *r, sqlite3_stmt **st);
int64_t st_report_int(st_report *r, const char *fmt, ...); /* first column of the first row, or 0 */

const char *st_column(sqlite3_stmt *st, int i); /* text, "" for NULL */

/* ---- pieces of the page ---- */
void st_report_section(st_report *r, const char *id, const char *title);
void st_report_table(st_report *r, const char *class, const char *caption); /* class, caption: not escaped   */
void st_report_heads(st_report *r, const char *const *names);               /* NULL-terminated; '#' in front: a number */
void st_report_table_end(st_report *r);
/* A cell with the column's value: number, text or nothing. */
void st_report_cell(st_report *r, sqlite3_stmt *st, int i);
/* The cell of a structure: drawn, or only its SMILES. */
void st_report_structure(st_report *r, const char *smiles);
/* The same without a cell. id: for st_drawing_again, or ""; out: may be NULL. */
void st_report_draw(st_report *r, const char *smiles, const char *id, st_structure *out);

/* The number of the molecule's scaffold (chem/fingerprint/scaffold.h); false: it cannot be told. */
bool st_report_scaffold(st_report *r, const char *smiles, uint64_t *scaffold);
/* A page that lacks something for want of memory is no page: ends the report. true: there was memory. */
bool st_report_has_memory(st_report *r, pl_code code, const char *what);
/* s; "" where it is NULL for want of memory, which ends the report. */
const char *st_report_text(st_report *r, const char *s, const char *what);
/* A copy that lasts as long as the report; "" without memory, which ends the report. */
const char *st_report_copy(st_report *r, const char *s);

void st_report_open_worker(st_report *r);

/* A classifier's ROC curve on a part of the data, and the calibration of its probabilities on all; of a property. */
void st_report_roc(st_report *r, int64_t model, int64_t property, const char *part);
void st_report_calibration(st_report *r, int64_t model, int64_t property);
/* Early enrichment of known actives in the ranking; adds nothing without them. */
void st_report_retrieval(st_report *r);

/* ---- the parts, in their order ---- */
void st_report_warnings(st_report *r);
void st_report_funnel(st_report *r);
void st_report_failures(st_report *r);
void st_report_hits(st_report *r);
void st_report_scaffolds(st_report *r); /* after st_report_hits */
void st_report_files(st_report *r);     /* the ranking as CSV and SDF, after st_report_hits */
void st_report_policy(pl_text *out);    /* the sources that the page's policy allows for scripts: the hash of ours */
void st_report_script(pl_text *out);
void st_report_histograms(st_report *r);
void st_report_campaign(st_report *r);
void st_report_models(st_report *r);
void st_report_similarity(st_report *r, int64_t model, int64_t property); /* of st_report_models */
void st_report_timings(st_report *r);
void st_report_settings(st_report *r);

/* What moved the scores of the first hits, drawn; nothing where their models cannot say. */
void st_report_moved(st_report *r);

/* ---- report_trust.c ---- */
/* Errors of a model's components inside and outside of its domain, and which to trust; nothing where it has no components. */
void st_report_trust(st_report *r, const st_trust *t, const char *part, const char *unit);
void st_report_trust_found(st_report *r, int64_t model_id, int64_t property_id, bool classes); /* from the table `evaluation` */

#endif
