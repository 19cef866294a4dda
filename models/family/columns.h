/* models/family/columns.h - a table (models/family/family.h) as numbered columns: environments, descriptors, the user's columns.
 *
 * A count of an environment that a molecule does not have is absent, and so is a number that is not finite (a gap in the user's
 * table). */
#ifndef NN_COLUMNS_H
#define NN_COLUMNS_H

#include "models/family/family.h"
#include "models/family/xgboost.h"

/* Which columns there are, in this order. Each kind ascends in id, each id once. */
typedef struct nn_columns {
    int32_t n_environments, n_features, n_others;
    const uint32_t *id; /* [nn_columns_count] ids of environments, places of descriptors, numbers of the user's columns */
} nn_columns;

int32_t nn_columns_count(const nn_columns *c);

/* Environments that occur in at least `least` molecules of x, all descriptors, all of the user's columns. In mem. ENOMEM. */
pl_code nn_columns_of(nn_columns *out, const nn_table *x, int min, pl_arena *mem, pl_error *err);

/* Those of c with used[i] (one entry a column), in mem; place[i] becomes the number of column i among them. ENOMEM. */
pl_code nn_columns_used(nn_columns *out, const nn_columns *c, const bool *used, int32_t *place, pl_arena *mem, pl_error *err);

/* All rows of x as columns c, in mem. ENOMEM. */
pl_code nn_columns_rows(nn_sparse *out, const nn_columns *c, const nn_table *x, pl_arena *mem, pl_error *err);

/* Row `row` of x: out[i] for column i, NaN where it is absent. */
void nn_columns_row(float *out, const nn_columns *c, const nn_table *x, int32_t row);

/* EDATA if the ids do not ascend or lie outside; n_others is any number. */
pl_code nn_columns_check(const nn_columns *c, pl_error *err);

/* ECONFIG if x lacks a column of the user's table that c has. */
pl_code nn_columns_fit(const nn_columns *c, const nn_table *x, pl_error *err);

#endif
