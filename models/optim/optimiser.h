/* models/optim/optimiser.h - one step of AdamW or LAMB over all parameters, with several threads.
 *
 * The arithmetic is in adam.h and lamb.h. The arrays are cut in pieces that depend on the
 * model only, so any number of threads gives the same bits. */
#ifndef NN_OPTIMISER_H
#define NN_OPTIMISER_H

#include "models/network/se3.h"
#include "models/optim/adam.h"
#include "models/threads/pool.h"

typedef struct nn_optimiser nn_optimiser;

/* For n floats. tensor[n_tensors]: contiguous, in order, together n floats; n_tensors 0: all n floats are one
 * tensor. In mem; NULL: no memory. */
nn_optimiser *nn_optimiser_new(nn_optimiser_kind kind, size_t n, const nn_param *tensor, int32_t n_tensors, pl_arena *mem);

typedef struct nn_optimiser_step {
    nn_adamw_conf conf;
    int64_t step;    /* counts from 1                                         */
    double lr, clip; /* clip: factor on the gradient                          */
    double average;  /* ema <- ema + average (p - ema)                        */
} nn_optimiser_step;

void nn_optimiser_run(nn_optimiser *o, nn_pool *pool, const nn_adamw_arrays *arrays, const nn_optimiser_step *step);

#endif
