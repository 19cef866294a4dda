/* SPDX-License-Identifier: Apache-2.0 */
#include "models/cuda/plugin.h"

#include "pipeline/base/plugin.h"

pl_code nn_cuda_plugin(const nn_gpu_ops **out, pl_error *err)
{
    const nn_gpu_ops *(*get)(void) = NULL;
    const pl_code code = pl_plugin_cuda((void **)(void *)&get, "molsieve_gpu_ops", "engine cuda", err);

    if (code != PL_OK)
        return code;
    *out = get();
    if ((*out)->abi != NN_GPU_ABI || (*out)->bytes != (int32_t)sizeof(nn_gpu_ops))
        return pl_fail(err, PL_ECONFIG, "engine cuda: libmolsieve_cuda.so belongs to another version of this program");
    return PL_OK;
}
