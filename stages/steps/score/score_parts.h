/* stages/steps/score/score_parts.h - what the stage `score` computes and what it stores of it; used by score.c and score_store.c only. */
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
    int domain;    /* the first model with the same domain; -1: has none */
    bool mirrored; /* scores are the mean over a structure and its mirror image */
} scored_model;

/* A number that one of the models gives. */
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
    pl_text reasons; /* of one score */
    bool mirrors;    /* some model is mirrored                */
    scored_model model[ST_MODELS_MAX];
    scored_target target[ST_SCORES_MAX];
    double radial_error;        /* the largest that was already warned about */
    int32_t device[ST_DEVICES]; /* workers take them in turn */
    int n_devices;
    atomic_int n_workers;
    sqlite3_stmt *put_prediction, *put_score;
} score_state;

/* The outcome for one molecule, or one of its structures, and one target. */
typedef struct outcome {
    double value, spread; /* spread: over the structures; NaN of one */
    int32_t unknown;      /* atomic number the model has not seen, or 0 */
} outcome;

typedef struct score_unit {
    pl_block graphs, bases;
    int32_t n, n_structures;
    int64_t *id;                        /* [n]                                                         */
    int32_t *structure;                 /* [n + 1] the first of each; the last is n_structures         */
    outcome *outcome;                   /* [n][n_targets]; of structures until those are put together */
    const nn_near *near[ST_MODELS_MAX]; /* [n]; NULL: the model has no fingerprints */
    nn_traits *traits;                  /* [n]; NULL: no model has a range                             */
    double radial_error;                /* of the engines, first batch */
} score_unit;

/* Rows of a unit's predictions and scores, a failure for what has none. */
pl_code st_score_commit(void *state, pl_unit *unit, pl_error *err);

#endif
