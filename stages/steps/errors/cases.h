/* stages/steps/errors/cases.h - the properties of a molecule that a model's range (models/domain/range.h) checks, from its graph and its row.
 *
 * A training collects them over its molecules (st_range_make); scoring and evaluation ask for each molecule why it is outside. */
#ifndef ST_CASES_H
#define ST_CASES_H

#include "models/domain/range.h"
#include "pipeline/store/store.h"
#include "pipeline/workflow/stage.h"
#include "stages/steps/dataset/dataset.h"

/* Reads rows of molecules; main thread only. Initialise it with zeros. */
typedef struct st_cases {
    sqlite3_stmt *find;
    char form[NN_FORM_BYTES]; /* of this workflow; "" without a prepare stage */
} st_cases;

pl_code st_cases_open(st_cases *c, const pl_env *env, pl_error *err);
void st_cases_close(st_cases *c); /* zeroed is fine */

/* Of n molecules; fastest in the order of their numbers. Sets everything in out [n] except the traits and the similarity. EDATA: one has no row. */
pl_code st_cases_read(nn_case *out, st_cases *c, const int64_t *mol_id, int64_t n, pl_error *err);

/* The range of the molecules of a training in out[0], and in out[1 + k], if own[k], that of those with a value of target k; without one of
 * them its number of molecules is 0. ENOMEM. */
pl_code st_range_make(nn_range *out, const bool *own, const pl_env *env, const st_samples *train, pl_error *err);

#endif
