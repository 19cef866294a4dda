/* stages/fit/fit_columns.h - the columns that a model of `molsieve fit` reads besides the molecule, and the units that the table says. */
#ifndef ST_FIT_COLUMNS_H
#define ST_FIT_COLUMNS_H

#include "chem/records/relation.h"
#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"

enum { ST_FIT_COLUMNS_MAX = 16 };

typedef struct st_fit_columns {
    int n;
    const char *name[ST_FIT_COLUMNS_MAX];
    ch_units units[ST_FIT_COLUMNS_MAX];
} st_fit_columns;

/* list: "temperature,pH", or NULL. ECONFIG: a name is empty or twice there, or they are too many. */
pl_code st_fit_columns_open(st_fit_columns *out, const char *list, pl_arena *mem, pl_error *err);

/* The units that the record of `line` says. */
void st_fit_columns_add(st_fit_columns *c, const ch_field *field, int n, int64_t line);

/* ECONFIG: numbers of one column are in two units. */
pl_code st_fit_columns_judge(const st_fit_columns *c, const char *path, pl_error *err);

/* The unit of column k; NULL: the table says none. */
const char *st_fit_columns_unit(const st_fit_columns *c, int k);

#endif
