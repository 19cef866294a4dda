/* models/cuda/memory.h - the device memory that the cuda engine takes, known without a device. */
#ifndef NN_CUDA_MEMORY_H
#define NN_CUDA_MEMORY_H

#include "models/engine.h"

typedef struct nn_cuda_need { /* bytes                                             */
    size_t model;             /* parameters, folded weights; training: gradient, moments, average */
    size_t batch;             /* what goes up; training: three times, for steps in flight */
    size_t work;              /* all that is computed                              */
} nn_cuda_need;

/* What an engine with these settings allocates for batches no larger than `in`, the eighth
 * that it adds to pieces of a batch included. training: steps (AdamW and a moving average) in the first of
 * so many ranks with a sharded optimiser, 1 where it is not; 0: forward alone. Exact: by the functions that cut the
 * memory (MOLSIEVE_CUDA_TABLE_KB counts). ECONFIG: not a model that the engine computes. */
pl_code nn_cuda_memory(nn_cuda_need *out, const nn_se3 *model, const nn_engine_conf *conf, const nn_batch *in,
                       int training, pl_error *err);

#endif
