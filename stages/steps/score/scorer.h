/* stages/steps/score/scorer.h - scores graphs with one or several models, of all families: what the stage `score` and the
 * command `predict` share, so that both give the same numbers.
 *
 * A scorer is read-only once its models are added; each thread has a st_scorer_worker of its own. A score does not depend on
 * the batch, the order or the workers. */
#ifndef ST_SCORER_H
#define ST_SCORER_H

#include <stdatomic.h>

#include "models/features/mirror.h"
#include "models/files/model_file.h"
#include "stages/steps/train/compute.h"
#include "stages/steps/train/train_conf.h"

typedef struct st_scored_model {
    nn_model_file *m;
    int network;   /* index of its first network among those of all models          */
    bool mirrored; /* scores are the mean over a structure and its mirror image */
} st_scored_model;

/* One output of one model. */
typedef struct st_scored_target {
    int model;
    int32_t output;      /* of the model */
    int searched;        /* index of the first target with the same training molecules; -1: the model has none */
    int64_t property_id; /* equal for targets whose predictions are combined; set by the caller */
} st_scored_target;

typedef struct st_scorer {
    const st_compute *compute;
    int64_t molecules, max_edges; /* of a batch */
    int n_models, n_networks, n_targets;
    bool has_range; /* one of the models has a range (models/domain/range.h) */
    bool mirrors;   /* some model averages over mirror images */
    bool describes; /* some network reads descriptors         */
    st_scored_model model[ST_MODELS_MAX];
    st_scored_target target[ST_SCORES_MAX];
    int32_t device[ST_DEVICES]; /* workers take these in turn */
    int n_devices;
    atomic_int n_workers;
} st_scorer;

/* Finds the devices. compute is borrowed; the scorer is zeroed before. */
pl_code st_scorer_open(st_scorer *s, const st_compute *compute, int64_t molecules, int64_t max_edges, pl_error *err);

/* Adds a model, which is borrowed, with its targets, whose property_id stays 0. ECONFIG: they predict too many numbers, have too many networks,
 * or one predicts a class that another predicts as a number. */
pl_code st_scorer_add(st_scorer *s, nn_model_file *m, nn_mirror_mode mirror, pl_error *err);

/* Whether targets of a model share what they should not (nn_model_shares_range), and what is then said behind its name. */
bool st_shares_domain(const nn_model_file *m);
extern const char st_shared_domain[];

/* The outcome for one molecule, or one of its structures, and one target. */
typedef struct st_outcome {
    double value, spread; /* spread: standard deviation over the structures; NaN if there is one */
    double uncertainty;   /* standard deviation by the model's Gaussian process; NaN without one */
    int32_t unknown;      /* atomic number the model has not seen, or 0 */
} st_outcome;

/* Molecules that are scored together; n, n_structures, id, structure and outcome are set by the caller. */
typedef struct st_scored {
    int32_t n, n_structures;
    int64_t *id;                        /* [n]                                                         */
    int32_t *structure;                 /* [n + 1] first structure of each molecule; [n] is n_structures */
    st_outcome *outcome;                /* [n][n_targets]; [n_structures][n_targets] until structures are combined */
    const nn_near *near[ST_SCORES_MAX]; /* [n] of each target; NULL: its model has no fingerprints */
    nn_traits *traits;                  /* [n]; NULL: no model has a range                             */
    const float **column;               /* [n] of the items; NULL: there are none                      */
    double radial_error;                /* largest of the engines, measured on the first batch */
} st_scored;

/* Allocates the arrays for molecules whose graphs have the numbers id[n_structures] (equal ones are adjacent). */
pl_code st_scored_make(st_scored *u, const st_scorer *s, const int64_t *id, int32_t n_structures, pl_arena *mem, pl_error *err);

typedef struct st_scorer_worker {
    const st_scorer *scorer;
    const nn_engine_kind *kind;
    nn_engine *engine[ST_MODELS_MAX];   /* of each network                             */
    int laid[ST_MODELS_MAX];            /* index of the first model with the same inputs */
    nn_collate *collate[ST_MODELS_MAX]; /* only at these first models                    */
    nn_mirror *mirror[ST_MODELS_MAX];   /* the same, if some model averages over mirror images */
    pl_arena *scratch;
} st_scorer_worker;

pl_code st_scorer_worker_open(st_scorer_worker *w, st_scorer *scorer, pl_error *err);
void st_scorer_worker_close(st_scorer_worker *w); /* zeroed is fine */

/* Columns of the items to come, by name; after the last model. ECONFIG: a model reads another. */
pl_code st_scorer_place(st_scorer *s, const char *const *name, int32_t n, pl_error *err);

/* Scores the molecules of u, whose structures are item[u->n_structures]; their features are not read. What u keeps is in mem; w->scratch is used, not reset. */
pl_code st_scorer_run(st_scorer_worker *w, st_scored *u, const nn_item *item, pl_arena *mem, pl_error *err);

/* ---- values: scorer_value.c ---- */

/* A score: the mean of the predictions of one property. */
typedef struct st_value {
    double mean, stdev; /* stdev: sample standard deviation; NaN of one model */
    int n_models;
    double similarity;   /* smallest, to the nearest training molecule; NaN: unknown */
    double interval90;   /* largest half-width of a 90 % prediction interval; NaN: none */
    const char *domain;  /* "inside", "outside", or NULL: unknown */
    const char *reasons; /* why it is outside, in the text given; NULL: it is not */
} st_value;

bool st_outcome_is_good(const st_outcome *o);
/* Without a nearest molecule NaN and NULL. */
nn_near st_scored_near(const st_scored *u, int32_t i, int target);
/* Whether target k is the first of its property with a good outcome: o [n_targets] of a molecule. */
bool st_scorer_is_first(const st_scorer *s, const st_outcome *o, int k);
/* Why a molecule has no prediction of target k, as a failure of code and message; out is its memory. Only for outcomes that are not
 * good. An unknown element is reported once per model, with its first target: NULL for the others. */
const char *st_scorer_problem(const st_scorer *s, const st_outcome *o, int k, char out[480], const char **code);
/* The score of molecule i for the property of target k, its first good one. c has all but the similarity; reasons is reused. ENOMEM. */
pl_code st_scorer_value(st_value *out, const st_scorer *s, const st_scored *u, int32_t i, int k, nn_case *c, pl_text *reasons,
                        pl_error *err);

#endif
