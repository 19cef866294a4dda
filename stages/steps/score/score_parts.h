/* stages/steps/score/score_parts.h - internal to the stage `score`: score.c opens, reads and finishes, score_work.c computes a unit
 * in a worker, score_store.c stores its rows; score_part.c takes units that other jobs computed (score_part_run.c, score_bytes.c). */
#ifndef ST_SCORE_PARTS_H
#define ST_SCORE_PARTS_H

#include "pipeline/store/insert.h"
#include "pipeline/workflow/shard.h"
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

/* Parts that other jobs may have computed (score_part.h). */
typedef struct st_score_taken {
    int n;
    int32_t of[8]; /* [n] numbers of parts that have folders */
    bool warned;   /* of another kind of machine             */
} st_score_taken;

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
    pl_insert put_prediction, put_score;
    sqlite3_stmt *key_of; /* the InChIKey of a molecule */
    st_score_taken taken;
} score_state;

typedef struct score_unit {
    score_state *state;
    pl_block graphs, bases;
    st_column_rows columns;
    st_scored scored;
    bool taken;     /* from a part: there is nothing to compute */
    bool has_basis; /* the basis was stored                     */
} score_unit;

/* Models and blocks, for reading only; the caller closes with st_score_close, also after an error. */
pl_code st_score_open_inputs(score_state *s, pl_env *env, pl_error *err);
/* As in a pl_stage: a unit that a part has, or one for a worker, which reads the graphs. */
pl_code st_score_read(score_state *s, pl_unit *unit, bool *more, pl_error *err);
void st_score_close(void *state);

/* As in a pl_stage: worker_open, work and worker_close (score_work.c). */
pl_code st_score_worker_open(void *worker, void *state, pl_error *err);
pl_code st_score_work(void *worker, pl_unit *unit, pl_error *err);
void st_score_worker_close(void *worker);

/* As in a pl_stage: stores the predictions and scores of a unit, and a failure row for each missing prediction (score_store.c). */
pl_code st_score_commit(void *state, pl_unit *unit, pl_error *err);

/* ---- parts ---- */

/* WORKDIR/parts/KKKKK-of-NNNNN/scores.db, in mem; NULL: no memory. */
const char *st_score_part_file(const pl_workflow *wf, pl_shard part, pl_arena *mem);
const char *st_score_part_level(const pl_step *step, pl_arena *mem);
/* Statement: INSERT of unit, data, sha256. */
pl_code st_score_part_put(sqlite3_stmt *put, int64_t unit, const pl_text *data, pl_error *err);

void st_score_taken_open(st_score_taken *t, const pl_env *env);
/* Whether a part has the unit; fills all but `column`. */
bool st_score_taken_unit(st_scored *u, st_score_taken *t, const st_scorer *s, pl_env *env, int64_t unit, pl_arena *mem);

void st_score_bytes_put(pl_text *out, const st_scorer *s, const st_scored *u);
/* False: it is damaged, or not of this scorer. */
bool st_score_bytes_get(st_scored *u, const st_scorer *s, pl_bytes data, pl_arena *mem);

#endif
