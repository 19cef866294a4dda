/* models/cuda/plugin.h - opens libmolsieve_cuda.so. */
#ifndef NN_CUDA_PLUGIN_H
#define NN_CUDA_PLUGIN_H

#include "models/cuda/device/ops.h"
#include "pipeline/base/error.h"

/* Opens libmolsieve_cuda.so and returns its operations. It is searched in the directory
 * $MOLSIEVE_PLUGINS, in the program's directory, and in ../lib/molsieve relative to that. ECONFIG: it
 * was not found, cannot be loaded, or has another version. The library stays open. */
pl_code nn_cuda_plugin(const nn_gpu_ops **out, pl_error *err);

#endif
