/* stages/cases.h - what a model's range (models/range.h) asks of a molecule, from its graph and its row.
 *
 * A training counts its molecules (st_range_make); a score or an evaluation asks for each molecule why it is outside. */
#ifndef ST_CASES_H
#define ST_CASES_H

#include "models/range.h"
#include "pipeline/stage.h"
#include "pipeline/store.h"
#include "stages/dataset.h"

/* Rows of molecules, one after the other; main thread. Zeroed at first. */
typedef struct st_cases {
    sqlite3_stmt *find;
    char form[NN_FORM_BYTES]; /* of this workflow; "" without a prepare stage */
} st_cases;

pl_code st_cases_open(st_cases *c, const pl_env *env, pl_error *err);
void    st_cases_close(st_cases *c); /* zeroed is fine */

/* Everything of out but the traits and the similarity. */
pl_code st_case_read(nn_case *out, st_cases *c, int64_t mol_id, pl_error *err);

/* Of the molecules of a training. */
pl_code st_range_make(nn_range *out, const pl_env *env, const st_samples *train, pl_error *err);

#endif
