/* models/optim/optimiser.h - one step of AdamW, LAMB or SOAP over all parameters, with several threads.
 *
 * The arithmetic is in adam.h, lamb.h and soap.h. The arrays are cut in pieces that depend on the
 * model only, so any number of threads gives the same bits. */
#ifndef NN_OPTIMISER_H
#define NN_OPTIMISER_H

#include "models/cpu/kernels/kernels.h"
#include "models/network/se3.h"
#include "models/optim/adam.h"
#include "models/threads/pool.h"

typedef struct nn_optimiser nn_optimiser;

typedef struct nn_optimiser_conf {
    nn_optimiser_kind kind;
    int threads;                   /* of the pool that nn_optimiser_run gets, at most */
    const nn_cpu_kernels *kernels; /* SOAP: of the products; NULL: nn_cpu_portable */
} nn_optimiser_conf;

/* For n floats. tensor[n_tensors]: contiguous, in order, together n floats; n_tensors 0: all n floats are one
 * tensor. In mem; NULL: no memory. */
nn_optimiser *nn_optimiser_new(const nn_optimiser_conf *conf, size_t n, const nn_param *tensor, int32_t n_tensors, pl_arena *mem);

/* Numbers that this kind stores besides two moments of every parameter: bases of SOAP, 0 for the others. */
size_t nn_optimiser_bases(nn_optimiser_kind kind, const nn_param *tensor, int32_t n_tensors);

typedef struct nn_optimiser_step {
    nn_adamw_conf conf;
    int64_t step;    /* counts from 1                                         */
    double lr, clip; /* clip: factor on the gradient                          */
    double average;  /* ema <- ema + average (p - ema)                        */
    float *bases;    /* [nn_optimiser_bases], zeros before the first step     */
} nn_optimiser_step;

void nn_optimiser_run(nn_optimiser *o, nn_pool *pool, const nn_adamw_arrays *arrays, const nn_optimiser_step *step);

#endif
