/* models/cuda/memory.h - computes how much device memory the cuda engine will need; no GPU is required. */
#ifndef NN_CUDA_MEMORY_H
#define NN_CUDA_MEMORY_H

#include "models/engine/engine.h"

typedef struct nn_cuda_need { /* bytes                                             */
    size_t model;             /* parameters, folded weights; training: gradient, moments, average */
    size_t batch;             /* inputs copied to the device; training: three copies, for steps in flight */
    size_t work;              /* everything that is computed                       */
} nn_cuda_need;

/* The bytes that an engine with these settings allocates for batches up to the size of `in`, with the extra eighth
 * that it adds to allocations of a batch. training: 0: prediction only; 1: training with AdamW and a moving average;
 * n > 1: the same on the first of n ranks with a sharded optimiser. Exact, because the engine's own functions for
 * cutting memory compute it (MOLSIEVE_CUDA_TABLE_KB is respected). ECONFIG: the engine does not support the model. */
pl_code nn_cuda_memory(nn_cuda_need *out, const nn_se3 *model, const nn_engine_conf *conf, const nn_batch *in, int training,
                       pl_error *err);

#endif
