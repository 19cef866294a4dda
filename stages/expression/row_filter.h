/* stages/expression/row_filter.h - a condition on molecules, written by the user in SQL.
 *
 * "mw between 200 and 450 and logp <= 4": an expression (stages/expression/expression.h)
 * over columns of `molecule`. Checked before any work: parsed, then prepared
 * on an empty database where it can read nothing but that table. */
#ifndef ST_ROW_FILTER_H
#define ST_ROW_FILTER_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"
#include "stages/database/descriptor_columns.h"

/* Which columns a condition reads that are NULL for all molecules, if `prepare` was not asked for them. */
typedef struct st_row_reads {
    bool alerts, energy, structures;
} st_row_reads;

/* ECONFIG says what is wrong with it, and *at at which byte; *reads is then nothing. Both may be NULL. */
pl_code st_row_filter_check(const char *expression, st_row_reads *reads, size_t *at, pl_error *err);

/* ECONFIG if it reads a column that is called as this scored property: objectives and constraints mean the property by that name. */
pl_code st_row_filter_ambiguous(const char *expression, const char *property, pl_error *err);

/* A condition that was checked as SQL for `... FROM molecule WHERE (...)`, in mem. *functions: it needs those of
 * stages/expression/chemistry.h. ENOMEM; ECONFIG if it is ambiguous with a property of which db has scores, or reads a
 * column of st_row_reads that is NULL for all molecules. */
pl_code st_row_filter_sql(const char **sql, const char *expression, sqlite3 *db, bool *functions, pl_arena *mem, pl_error *err);

/* Columns of `molecule` that can be ranked or constrained by: "mw", "logp"... NULL-terminated. */
#define ST_ROW_FILTER_COLUMNS "n_atoms, n_heavy, charge" ST_DESCRIPTOR_NAMES " or energy"
extern const char *const st_row_filter_columns[];

/* The column with this name, or NULL. */
const char *st_row_filter_column(const char *name);

#endif
