/* stages/steps/score/score_parts.h - the parts of the stage `score`, internal to it: score.c opens, reads and finishes,
 * score_work.c computes a unit in a worker, score_store.c stores its rows. */
#ifndef ST_SCORE_PARTS_H
#define ST_SCORE_PARTS_H

#include "stages/database/blocks.h"
#include "stages/steps/ingest/columns.h"
#include "stages/steps/errors/cases.h"
#include "stages/steps/score/scorer.h"
#include "stages/steps/train/score_models.h"

typedef struct score_conf {
    pl_list models;
    int64_t molecules, max_edges;
    int32_t mirror; /* nn_mirror_mode                                     */
    st_compute compute;
} score_conf;

typedef struct score_state {
    pl_env *env;
    const score_conf *conf;
    st_blocks graphs, bases; /* bases without units: computed by the engine */
    bool trained_here;       /* the models are those of this workflow */
    st_scorer scorer;
    const char *path[ST_MODELS_MAX];
    int64_t model_id[ST_MODELS_MAX];
    st_cases cases;
    pl_text reasons;     /* why a molecule is outside; reused for every score */
    double radial_error; /* largest radial error already warned about */
    sqlite3_stmt *put_prediction, *put_score;
} score_state;

typedef struct score_unit {
    pl_block graphs, bases;
    st_column_rows columns;
    st_scored scored;
} score_unit;

/* As in a pl_stage: worker_open, work and worker_close (score_work.c). */
pl_code st_score_worker_open(void *worker, void *state, pl_error *err);
pl_code st_score_work(void *worker, pl_unit *unit, pl_error *err);
void st_score_worker_close(void *worker);

/* As in a pl_stage: stores the predictions and scores of a unit, and a failure row for each missing prediction (score_store.c). */
pl_code st_score_commit(void *state, pl_unit *unit, pl_error *err);

#endif
