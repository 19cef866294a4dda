/* models/cuda/plugin.h - opens libmolsieve_cuda.so, and what else of engine cuda others ask for. */
#ifndef NN_CUDA_PLUGIN_H
#define NN_CUDA_PLUGIN_H

#include <stdbool.h>

#include "models/cuda/device/ops.h"
#include "models/engine/engine.h"
#include "pipeline/base/error.h"

/* Opens libmolsieve_cuda.so and returns its operations. It is searched in the directory
 * $MOLSIEVE_PLUGINS, in the program's directory, and in ../lib/molsieve relative to that. ECONFIG: it
 * was not found, cannot be loaded, or has another version. The library stays open. */
pl_code nn_cuda_plugin(const nn_gpu_ops **out, pl_error *err);

/* Whether exact radial networks are computed by tables of hidden units, not of pairs: in exact mode, unless MOLSIEVE_CUDA_UNITS is 0. */
bool nn_cuda_units_asked(const nn_engine_conf *c);

#endif
