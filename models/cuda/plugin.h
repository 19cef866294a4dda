/* models/cuda/plugin.h - opening libmolsieve_cuda.so. */
#ifndef NN_CUDA_PLUGIN_H
#define NN_CUDA_PLUGIN_H

#include "models/cuda/ops.h"
#include "pipeline/base/error.h"

/* The operations of libmolsieve_cuda.so, looked for in the folder MOLSIEVE_PLUGINS, beside the
 * program and in ../lib/molsieve. ECONFIG: no such library, one that does not load here, or one
 * of another version. The library stays open. */
pl_code nn_cuda_plugin(const nn_gpu_ops **out, pl_error *err);

#endif
