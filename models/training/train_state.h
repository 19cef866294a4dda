/* models/training/train_state.h - what a training reads and changes: its settings, its state, and its host.
 *
 * The state at a step boundary is all that is needed to continue with the same bits. */
#ifndef NN_TRAIN_STATE_H
#define NN_TRAIN_STATE_H

#include "models/comm/collective.h"
#include "models/engine/engine.h"
#include "models/optim/loss.h"
#include "models/optim/optimiser.h"
#include "models/training/budget.h"
#include "models/training/prefetch.h"

typedef enum nn_schedule { NN_LR_CONSTANT, NN_LR_COSINE_EPOCH, NN_LR_COSINE_STEP } nn_schedule;

/* In the order of NN_SPARSITY_WORDS. */
typedef enum nn_sparsity { NN_DENSE, NN_SPARSE_2_4 } nn_sparsity;
#define NN_SPARSITY_WORDS "none|2:4"

typedef struct nn_train_conf {
    int64_t epochs, molecules, max_edges; /* molecules, max_edges: limits of a batch      */
    double lr, min_lr, warmup;            /* warmup: epochs over which lr rises from 0         */
    double beta1, beta2, eps, weight_decay;
    double grad_clip;              /* global norm; 0: none                              */
    double ema;                    /* decay; 0: none                                    */
    double budget;                 /* seconds that decide the number of epochs, at most `epochs`; 0: none */
    int64_t patience;              /* epochs without a better validation; 0: never stop */
    int32_t schedule, loss;        /* nn_schedule, nn_loss                              */
    int32_t optimiser;             /* nn_optimiser_kind                                 */
    int32_t threads;               /* of the optimiser, same bits for any number; 0 means 1 */
    const nn_cpu_kernels *kernels; /* as in nn_optimiser_conf */
    int64_t shards;                /* shards of a batch (models/comm/collective.h); 0 means 1 */
    bool sharded;                  /* as in nn_training; no effect unless the engine does whole steps with ranks */
    int64_t scale_after;           /* good steps in a row that double the loss scale;
                                       0: no loss scale (nn_engine_scale_after)           */
    uint64_t seed;
    int32_t sparsity; /* nn_sparsity (models/training/sparsity.h)                    */
    bool prune_first; /* before the first epoch: the weights are trained; else after half of the epochs */
    struct {
        double scale, weight; /* Angstrom; of the loss of the noise head beside that of the targets; weight 0: no noise */
    } noise;
} nn_train_conf;

typedef struct nn_train_state {
    size_t n;                           /* floats in each array                              */
    int32_t outputs;                    /* numbers per molecule                              */
    float *params, *m, *v, *ema, *best; /* [n]; ema NULL without moving average; best: weights of the best epoch */
    size_t n_bases;                     /* 0: none                                          */
    float *bases;                       /* [n_bases] of the optimiser (nn_optimiser_bases)   */
    int64_t step, epoch, cursor;        /* cursor: molecules of this epoch already seen      */
    int64_t best_epoch;                 /* -1: none yet                                      */
    double best_error;                  /* on validation: normalised MAE; with BCE the mean loss */
    int64_t bad_run, bad_total;         /* skipped steps (not finite): in a row, in all      */
    nn_loss_scale scale;                /* loss scale of the next step                       */
    double seconds;                     /* used up to here, over kills too; 0 without a budget */
    int64_t planned;                    /* epochs that the budget allows; 0: not known yet   */
    nn_loss_sum seen;                   /* training losses of this epoch                     */
    nn_noise_sum noise;                 /* likewise, of the noise head                       */
    bool done;                          /* training is complete; then only `best` is valid   */
    const nn_param *tensor;             /* [n_tensors] of the model, not in checkpoints      */
    int32_t n_tensors;
} nn_train_state;

/* Allocates the arrays of s in mem: params from nn_se3_init(seed), the others zero; no bases. */
pl_code nn_train_state_alloc(nn_train_state *s, const nn_se3 *model, bool ema, uint64_t seed, pl_arena *mem, pl_error *err);

/* Allocates what this optimiser stores besides moments, before the first step. */
pl_code nn_train_state_bases(nn_train_state *s, nn_optimiser_kind kind, pl_arena *mem, pl_error *err);

/* Resets s for another training from nn_se3_init(seed). The arrays are reused, except that best is allocated
 * again in mem: the old best keeps its contents. */
pl_code nn_train_state_again(nn_train_state *s, const nn_se3 *model, uint64_t seed, pl_arena *mem, pl_error *err);

/* Broadcasts the state of rank 0; on every rank s is allocated for the same model. */
pl_code nn_train_state_broadcast(nn_ranks *r, nn_train_state *s, pl_error *err);

typedef struct nn_epoch_report {
    int64_t epoch, step;            /* epoch counts from 1                               */
    nn_loss_sum train, valid, test; /* normalised. train: over the predictions of the training steps;
                                       valid, test: .n is 0 without such a set           */
    nn_noise_sum noise;             /* of the training steps; .n is 0 without noise */
    double lr;
    bool best;
} nn_epoch_report;

/* Callbacks; all are called on the thread that runs the loop. */
typedef struct nn_train_host {
    void *ctx;
    bool (*stop)(void *ctx);
    /* Whether it is time for a checkpoint. Called before each step, and at the end of each epoch except the last.
     * NULL: always. */
    bool (*due)(void *ctx, bool epoch_over);
    /* Saves a checkpoint. If `saved` is not NULL, save may return early and write in the background: the loop
     * does not change the arrays of s until it has called `saved`, which waits for the writing, if any. */
    pl_code (*save)(void *ctx, const nn_train_state *s, pl_error *err);
    pl_code (*saved)(void *ctx, pl_error *err);
    /* Reports an epoch after its validation, possibly some steps into the next epoch, but before the next
     * checkpoint. After a resume it may be called again for the same epoch, with the same numbers. */
    pl_code (*epoch)(void *ctx, const nn_epoch_report *r, pl_error *err);
    void (*step)(void *ctx, const nn_train_state *s, int64_t n_train);
    /* With a budget: a clock in seconds that never jumps; used on rank 0 only. NULL: no time passes. */
    double (*clock)(void *ctx);
    /* The number of epochs is known, after the first epoch; before its report. May be NULL. */
    pl_code (*planned)(void *ctx, const nn_budget *b, int64_t epochs, pl_error *err);
    const nn_samples *test; /* measured after each epoch, has no influence on training; or NULL */
    /* Opens a second engine like the training engine, for validation during the next epoch's steps. Called once, after
     * the first epoch, if the engine does whole steps; the loop closes it. Returns NULL if it cannot. May be NULL. */
    nn_engine *(*beside)(void *ctx, pl_error *err);
    nn_ranks *ranks; /* each rank runs this loop on its shards of every batch and its part of
                                       the held-out molecules; if `stop` is true on one, all stop. NULL: a single rank */
} nn_train_host;

/* Epochs of the whole training; before a budget has decided, the most. */
int64_t nn_train_epochs(const nn_train_conf *conf, const nn_train_state *s);

/* Whether the host asks to stop; host may be NULL. */
bool nn_train_must_stop(const nn_train_host *host);

enum { NN_BAD_STEPS_MAX = 10 }; /* skipped steps in a row after which training fails: ELIMIT */

#endif
