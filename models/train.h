/* models/train.h - the training loop, and predicting with the same batches.
 *
 * What the loop needs to know is in three records: the settings, the samples
 * (who hands out molecules) and the host (who stores, shows and stops). What it
 * has learned is in nn_train_state; that record at any step boundary is enough
 * to go on with the same bits, so a checkpoint is nothing but this record.
 *
 * Order of the molecules in an epoch: a permutation that is a function of
 * (seed, epoch), so only a cursor is kept. A batch takes molecules in that
 * order until it has `molecules` of them or the next would exceed max_edges.
 *
 * Recipe: NVIDIA's SE3Transformer (loss, AdamW, cosine; docs/model.md 1.3, 1.5); clipping
 * by global norm, Pascanu et al. 2013; exponential moving average of the weights,
 * Polyak and Juditsky 1992; LAMB in place of AdamW, You et al. 2020. */
#ifndef NN_TRAIN_H
#define NN_TRAIN_H

#include "models/ahead.h"
#include "models/collective.h"
#include "models/engine.h"
#include "models/loss.h"
#include "models/optimiser.h"

typedef enum nn_schedule { NN_LR_CONSTANT, NN_LR_COSINE_EPOCH, NN_LR_COSINE_STEP } nn_schedule;

typedef struct nn_train_conf {
    int64_t epochs, molecules, max_edges;
    double lr, min_lr, warmup;      /* warmup: epochs over which lr rises from 0         */
    double beta1, beta2, eps, weight_decay;
    double grad_clip;               /* global norm; 0: none                              */
    double ema;                     /* decay; 0: none                                    */
    int64_t patience;               /* epochs without a better validation; 0: never stop */
    int32_t schedule, loss;         /* nn_schedule, nn_loss                              */
    int32_t optimiser;              /* nn_optimiser_kind                                 */
    int32_t threads;                /* for the optimiser, same bits for any; 0 is 1      */
    int64_t shards;                 /* of a batch, see models/collective.h; 0 is 1       */
    bool sharded;                   /* as in nn_training; where no engine does whole steps with ranks: nothing */
    int64_t scale_after;            /* good steps in a row that double the scale of the loss;
                                       0: it is not scaled (nn_engine_scale_after)        */
    uint64_t seed;
} nn_train_conf;

typedef struct nn_train_state {
    size_t n;                       /* floats in each array                              */
    int32_t outputs;                /* numbers per molecule                              */
    float *params, *m, *v, *ema, *best; /* [n]; ema NULL without EMA; best: to be kept    */
    int64_t step, epoch, cursor;    /* cursor: molecules of this epoch already seen      */
    int64_t best_epoch;             /* -1: none yet                                      */
    double best_error;              /* of valid: normalised MAE; with BCE the mean loss  */
    int64_t bad_run, bad_total;     /* steps skipped because something was not finite    */
    nn_loss_scale scale;            /* of the next step                                  */
    nn_loss_sum seen;               /* over this epoch                                   */
    bool done;                      /* best alone is then of use                         */
    const nn_param *tensor;         /* [n_tensors] the model's, not part of a checkpoint */
    int32_t n_tensors;
} nn_train_state;

/* Zeroed arrays in mem; params from nn_se3_init(seed). */
pl_code nn_train_state_alloc(nn_train_state *s, const nn_se3 *model, bool ema, uint64_t seed, pl_arena *mem,
                             pl_error *err);

/* Another training in the arrays of s, from nn_se3_init(seed); best is a new one, the old stays as it is. */
pl_code nn_train_state_again(nn_train_state *s, const nn_se3 *model, uint64_t seed, pl_arena *mem, pl_error *err);

typedef struct nn_epoch_report {
    int64_t epoch, step;            /* epoch counts from 1                               */
    nn_loss_sum train, valid, test; /* train: predictions made while training; valid, test:
                                       .n 0 without such a set. All normalised           */
    double lr;
    bool best;
} nn_epoch_report;

/* All called on the thread that runs the loop. */
typedef struct nn_train_host {
    void *ctx;
    bool (*stop)(void *ctx);
    /* Is a checkpoint due, by time? Asked before a step and, where it is not the last, at the end of an epoch;
     * NULL: then always. */
    bool (*due)(void *ctx, bool epoch_over);
    /* Where there is `saved` it may return before that is done: arrays of s stay as they are until `saved`, which
     * waits (nothing begun is fine), has returned. */
    pl_code (*save)(void *ctx, const nn_train_state *s, pl_error *err);
    pl_code (*saved)(void *ctx, pl_error *err);
    /* After validation of an epoch, perhaps some steps into the next one, before the checkpoint that follows
     * it; may be called again for the same epoch after a resume, with the same numbers. */
    pl_code (*epoch)(void *ctx, const nn_epoch_report *r, pl_error *err);
    void (*step)(void *ctx, const nn_train_state *s, int64_t n_train);
    const nn_samples *test;         /* measured after each epoch, chooses nothing; or NULL */
    /* Opens another engine like the one that trains, to measure held-out molecules beside the next epoch's steps; asked
     * once, after the first epoch, where an engine does whole steps; the loop closes it. NULL: it cannot be. Or no function. */
    nn_engine *(*beside)(void *ctx, pl_error *err);
    nn_ranks *ranks;                /* of which each runs the same loop on its shards of every batch and its
                                       part of the held-out molecules; NULL: alone. stop of any stops all */
} nn_train_host;

enum { NN_BAD_STEPS_MAX = 10 };     /* in a row, then training has failed: ELIMIT        */

/* Goes on from s to the end: PL_OK and s->done, best holds the weights to keep.
 * ESTOP: stopped, s saved. valid may have n = 0: the last epoch is the best. */
pl_code nn_train(nn_train_state *s, const nn_train_conf *conf, const nn_engine_kind *kind, nn_engine *engine,
                 const nn_samples *train, const nn_samples *valid, const nn_train_host *host, pl_error *err);

/* The learning rate at `at` epochs (a fraction counts within the epoch). */
double nn_train_lr(const nn_train_conf *conf, double at);

/* The order of an epoch. order [n]. */
void nn_train_order(int64_t *order, int64_t n, uint64_t seed, int64_t epoch);

/* How many of which[0..n-1] the next batch takes: at least 1. */
int32_t nn_train_take(const nn_samples *s, const int64_t *which, int64_t n, int64_t molecules, int64_t max_edges);

/* y [samples->n][outputs] in the order of the samples, with the parameters the
 * engine has. host may be NULL; ESTOP if it says so. */
pl_code nn_predict(float *y, const nn_engine_kind *kind, nn_engine *engine, const nn_samples *samples,
                   int64_t molecules, int64_t max_edges, const nn_train_host *host, pl_error *err);

/* The same, averaged over each molecule and its mirror image (models/mirror.h). */
pl_code nn_predict_average(float *y, const nn_engine_kind *kind, nn_engine *engine, const nn_samples *samples,
                           int64_t molecules, int64_t max_edges, const nn_train_host *host, pl_error *err);

#endif
