/* stages/steps/score/evaluate_rows.h - the rows of an evaluation: the tables `evaluation` and `evaluated`. */
#ifndef ST_EVALUATE_ROWS_H
#define ST_EVALUATE_ROWS_H

#include "pipeline/store/store.h"
#include "pipeline/workflow/stage.h"
#include "stages/steps/errors/errors.h"

typedef struct st_evaluation {
    sqlite3_stmt *put, *put_one;
} st_evaluation;

/* Errors of one target on one part, and where they go. */
typedef struct st_found {
    const nn_model_file *m;
    const nn_target *target;
    const nn_conformal *before; /* the interval before a calibration; NULL: there was none */
    int64_t model_id, property_id;
    st_part part;
    bool classifies, has_domain;
    const st_errors *e, *together; /* together: NULL of one network                */
    const st_dataset *d;
} st_found;

/* Begins the transaction of the stage and removes the rows of an earlier run. */
pl_code st_evaluation_begin(st_evaluation *s, sqlite3 *db, pl_error *err);
void st_evaluation_end(st_evaluation *s); /* zeroed is fine */

/* Errors, also by similarity and domain, coverage of interval90, and every molecule. */
pl_code st_evaluation_put(const st_evaluation *s, const st_found *f, pl_error *err);

#endif
