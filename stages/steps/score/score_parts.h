/* stages/steps/score/score_parts.h - the parts of the stage `score`, internal to it: score.c opens, reads and finishes,
 * score_work.c computes a unit in a worker, score_store.c stores its rows. */
#ifndef ST_SCORE_PARTS_H
#define ST_SCORE_PARTS_H

#include <stdatomic.h>

#include "models/features/mirror.h"
#include "models/files/model_file.h"
#include "stages/database/blocks.h"
#include "stages/steps/errors/cases.h"
#include "stages/steps/train/compute.h"
#include "stages/steps/train/score_models.h"

typedef struct score_conf {
    pl_list models;
    int64_t molecules, max_edges;
    int32_t mirror; /* nn_mirror_mode                                     */
    st_compute compute;
} score_conf;

typedef struct scored_model {
    nn_model_file *m;
    const char *path;
    int64_t model_id;
    int domain;    /* index of the first model with the same domain; -1: no domain */
    bool mirrored; /* scores are the mean over a structure and its mirror image */
} scored_model;

/* One output of one model. */
typedef struct scored_target {
    int model;
    int32_t output; /* of the model */
    int64_t property_id;
} scored_target;

typedef struct score_state {
    pl_env *env;
    const score_conf *conf;
    st_blocks graphs, bases; /* bases without units: computed by the engine */
    int n_models, n_targets;
    bool trained_here; /* the models are those of this workflow */
    bool has_range;    /* one of them has a range (models/domain/range.h) */
    st_cases cases;
    pl_text reasons; /* why a molecule is outside; reused for every score */
    bool mirrors;    /* some model averages over mirror images */
    scored_model model[ST_MODELS_MAX];
    scored_target target[ST_SCORES_MAX];
    double radial_error;        /* largest radial error already warned about */
    int32_t device[ST_DEVICES]; /* workers take these in turn */
    int n_devices;
    atomic_int n_workers;
    sqlite3_stmt *put_prediction, *put_score;
} score_state;

/* The outcome for one molecule, or one of its structures, and one target. */
typedef struct outcome {
    double value, spread; /* spread: standard deviation over the structures; NaN if there is one */
    double uncertainty;   /* standard deviation by the model's Gaussian process; NaN without one */
    int32_t unknown;      /* atomic number the model has not seen, or 0 */
} outcome;

typedef struct score_unit {
    pl_block graphs, bases;
    int32_t n, n_structures;
    int64_t *id;                        /* [n]                                                         */
    int32_t *structure;                 /* [n + 1] first structure of each molecule; [n] is n_structures */
    outcome *outcome;                   /* [n][n_targets]; [n_structures][n_targets] until structures are combined */
    const nn_near *near[ST_MODELS_MAX]; /* [n]; NULL: the model has no fingerprints */
    nn_traits *traits;                  /* [n]; NULL: no model has a range                             */
    double radial_error;                /* largest of the engines, measured on the first batch */
} score_unit;

typedef struct score_worker {
    const score_state *state;
    const nn_engine_kind *kind;
    nn_engine *engine[ST_MODELS_MAX];
    int laid[ST_MODELS_MAX];            /* index of the first model with the same inputs */
    nn_collate *collate[ST_MODELS_MAX]; /* only at these first models                    */
    nn_mirror *mirror[ST_MODELS_MAX];   /* the same, if some model averages over mirror images */
    pl_arena *scratch;
} score_worker;

/* As in a pl_stage: worker_open, work and worker_close (score_work.c). */
pl_code st_score_worker_open(void *worker, void *state, pl_error *err);
pl_code st_score_work(void *worker, pl_unit *unit, pl_error *err);
void st_score_worker_close(void *worker);

/* As in a pl_stage: stores the predictions and scores of a unit, and a failure row for each missing prediction (score_store.c). */
pl_code st_score_commit(void *state, pl_unit *unit, pl_error *err);

#endif
