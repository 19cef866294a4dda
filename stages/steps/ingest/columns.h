/* stages/steps/ingest/columns.h - columns of the user's table that models read: temperature, pH, a measured descriptor.
 *
 * Later stages name them (pl_stage.names). `prepare` keeps a record's values as labels of its molecule. Two records of one compound with
 * different values are two observations, so each becomes a row of `molecule` of its own; a record without a number in one of the
 * columns fails. A value is read as a float, as models compute with it. */
#ifndef ST_COLUMNS_H
#define ST_COLUMNS_H

#include "pipeline/store/store.h"
#include "pipeline/workflow/workflow.h"
#include "stages/steps/ingest/record_block.h"

#define ST_COLUMNS "columns" /* for pl_stage.names */

#define ST_LATER_LABELS "later labels" /* for pl_stage.names: labels that no input has, because a campaign gets them */

#define ST_COMPARED_LABELS "compared labels" /* for pl_stage.names: labels that existing models are compared with */

#define ST_TIMES "times" /* for pl_stage.names: labels of which a molecule has the largest value of its records, not their mean */

/* Whether the label comes later than the library: from a campaign, or it was added to the results (stages/database/measured.h). */
bool st_label_comes_later(const pl_workflow *wf, const char *label);

/* What the stages of a workflow name: ST_COLUMNS, or another `what`. */
void st_names_of(pl_names *out, const pl_workflow *wf, const char *what);
/* Those of the workflow's prepare; without that stage none. */
const pl_names *st_columns(const pl_workflow *wf);

/* Too many columns; an input without one of them, of its first records. */
void st_columns_check(const pl_workflow *wf, const pl_step *prepare, pl_problems *problems);

/* ,"columns":["pH","temperature"] for the key of prepare, `what` is ST_COLUMNS; "" without names. NULL: no memory. */
const char *st_names_json(const pl_names *names, const char *what, pl_arena *mem);

/* The value of the first field of that name; NULL: the record has no number there. */
const double *st_columns_value(const st_record *r, const char *name);
/* The first column in which the record has no number; NULL: it has all. */
const char *st_columns_missing(const st_record *r, const pl_names *columns);
/* That as a reason. */
#define ST_COLUMN_MISSING "column %s: no number in this record"

/* " AND ..": of a query of `molecule`, that its values are those of the parameters ?FIRST, ... In mem; NULL: no memory. */
const char *st_columns_where(const pl_names *columns, int first, pl_arena *mem);
/* "||..": of a query of `molecule`, its values behind a text, equal texts for equal values. In mem; NULL: no memory. */
const char *st_columns_text(const pl_names *columns, pl_arena *mem);

/* The values of molecules. */
typedef struct st_column_rows {
    int64_t n;
    int n_columns;
    int64_t *mol_id; /* [n] ascending   */
    float *value;    /* [n][n_columns]  */
} st_column_rows;

/* Of the molecules first..last; in mem. */
pl_code st_columns_read(st_column_rows *out, sqlite3 *db, const pl_names *columns, int64_t first, int64_t last, pl_arena *mem,
                        pl_error *err);
/* [n_columns], or EDATA: a value is missing. */
pl_code st_columns_row(const float **out, const st_column_rows *rows, int64_t mol_id, pl_error *err);

#endif
