/* models/training/train_parts.h - internal to the training loop: shared by train.c, train_step.c and train_epoch.c. */
#ifndef NN_TRAIN_PARTS_H
#define NN_TRAIN_PARTS_H

#include "models/threads/pool.h"
#include "models/training/shards.h"
#include "models/training/steps.h"
#include "models/training/train.h"
#include "models/training/validation.h"

typedef struct nn_loop nn_loop;

enum { NN_LOOP_PIECE = 1 << 16 }; /* parameters that one thread takes at a time */

/* The state of one call of nn_train. */
struct nn_loop {
    nn_train_state *s;
    const nn_train_conf *conf;
    const nn_engine_kind *kind;
    nn_engine *engine;
    const nn_samples *train, *valid;
    const nn_train_host *host;
    int32_t outputs;
    nn_ranks alone, *ranks;
    int shards;              /* shards of a batch, on all ranks together     */
    nn_span own;             /* the shards of this rank                      */
    int64_t *order;          /* [train->n] of this epoch                     */
    int64_t *dealt;          /* [train->n] the same, within each batch sorted by shard */
    int64_t *first;          /* [ranks + 1] first item of each rank, for gather */
    nn_card *card;           /* [molecules] scratch                          */
    float *y, *t, *dy;       /* [molecules][outputs] of a batch              */
    float (*v)[3], (*dv)[3]; /* [atoms of a shard] of the noise head; NULL: no noise */
    nn_noise_sum *noise;     /* [shards] of a batch, on all ranks together; NULL: no noise */
    float *high;             /* the same, or NULL: as in nn_samples          */
    nn_validation *validation;
    enum { BESIDE_NOT, BESIDE_UNTRIED, BESIDE_GOOD } beside; /* the second engine */
    bool open;                                               /* an epoch is over and its validation is pending */
    nn_epoch_report r;                                       /* report of that epoch                         */
    nn_train_state end;                                      /* the state at its end, without the arrays     */
    struct {
        double began;            /* of the training, as if it had never been interrupted */
        double from, evaluation; /* when the steps of this epoch began; what its evaluation took */
        double steps_took;
        int64_t steps, molecules; /* of this epoch, in this process              */
    } time;                       /* with a budget                               */
    float *grad;                  /* [own shards][s->n]; row 0 becomes the sum over all shards */
    double *square;               /* [pieces of s->n] sums of squares of the gradient */
    nn_pool *pool;
    nn_optimiser *optimiser;
    nn_prefetch *prefetch;
    nn_steps *steps; /* steps that the engine does by itself, or NULL */
    pl_arena *mem;
};

/* ---- train_step.c ---- */
/* The molecules of the batch that begins at position `from` of the epoch's order. */
nn_which nn_loop_take(const nn_loop *l, int64_t from);
/* Computes the next step, or queues it if the engine does whole steps. */
pl_code nn_loop_step(nn_loop *l, pl_error *err);

/* ---- train_epoch.c ---- */
/* Trains to the end of the current epoch; then validation, report, checkpoint. ESTOP: stopped, the state was saved. */
pl_code nn_loop_epoch(nn_loop *l, pl_error *err);
/* The host's clock with a budget, else 0. */
double nn_loop_clock(const nn_loop *l);
/* Waits until a checkpoint is written; to be called before the state's arrays change. */
pl_code nn_loop_saved(const nn_loop *l, pl_error *err);

#endif
