/* models/train_loop.h - inside of models/train.c: what its steps and epochs have in common. */
#ifndef NN_TRAIN_LOOP_H
#define NN_TRAIN_LOOP_H

#include "models/cpu/pool.h"
#include "models/held.h"
#include "models/shards.h"
#include "models/steps.h"

typedef struct nn_loop nn_loop;

enum { NN_LOOP_PIECE = 1 << 16 };  /* parameters that one thread takes at a time */

/* What one call of nn_train carries around. */
struct nn_loop {
    nn_train_state *s;
    const nn_train_conf *conf;
    const nn_engine_kind *kind;
    nn_engine *engine;
    const nn_samples *train, *valid;
    const nn_train_host *host;
    int32_t outputs;
    nn_ranks alone, *ranks;
    int shards;         /* of a batch, on all ranks together            */
    nn_span own;        /* the shards of this rank                      */
    int64_t *order;     /* [train->n] of this epoch                     */
    int64_t *dealt;     /* [train->n] the same, in each batch shard after shard */
    int64_t *first;     /* [ranks + 1] where what each rank gives begins */
    nn_card *card;      /* [molecules] scratch                          */
    float *y, *t, *dy;  /* [molecules][outputs] of a batch              */
    nn_held *held;
    enum { BESIDE_NOT, BESIDE_UNTRIED, BESIDE_GOOD } beside; /* the second engine */
    bool open;          /* an epoch is over and not yet judged          */
    nn_epoch_report r;  /* of that epoch                                */
    nn_train_state end; /* what it left, but for its arrays             */
    float *grad;        /* [own shards][s->n]; row 0 then the sum of all */
    double *square;     /* [pieces of s->n] of the gradient             */
    nn_pool *pool;
    nn_optimiser *optimiser;
    nn_ahead *ahead;
    nn_steps *steps;    /* those that the engine does by itself, or NULL */
    pl_arena *mem;
};

/* ---- train_step.c ---- */
/* The batch that begins at `from` in the order of the epoch. */
nn_which nn_loop_take(const nn_loop *l, int64_t from);
/* The next step: done, or begun where the engine does it by itself. */
pl_code nn_loop_step(nn_loop *l, pl_error *err);

/* ---- train_epoch.c ---- */
/* From where the state is to the end of its epoch, and what that means. ESTOP: saved. */
pl_code nn_loop_epoch(nn_loop *l, pl_error *err);
/* Waits for a checkpoint that is being written: before the state's arrays change. */
pl_code nn_loop_saved(const nn_loop *l, pl_error *err);

#endif
