/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU part of other versions of the program: first with another interface, then with one of another size, then the one that fits. */
#include <stdio.h>

#include "chem/structures/cuda/ops.h"
#include "models/cuda/device/ops.h"

const ch_gpu_ops *molsieve_structure_ops(void);
const nn_gpu_ops *molsieve_gpu_ops(void);

static bool find(int32_t device, char *text, size_t n)
{
    (void)snprintf(text, n, "GPU %d", (int)device);
    return true;
}

const ch_gpu_ops *molsieve_structure_ops(void)
{
    static const ch_gpu_ops all[] = { { .abi = CH_GPU_ABI - 1, .bytes = sizeof(ch_gpu_ops), .find = find },
                                      { .abi = CH_GPU_ABI, .bytes = sizeof(ch_gpu_ops) - 8, .find = find },
                                      { .abi = CH_GPU_ABI, .bytes = sizeof(ch_gpu_ops), .find = find } };
    static int next;

    return &all[next++ % 3];
}

const nn_gpu_ops *molsieve_gpu_ops(void)
{
    static const nn_gpu_ops all[] = { { .abi = NN_GPU_ABI - 1, .bytes = sizeof(nn_gpu_ops) },
                                      { .abi = NN_GPU_ABI, .bytes = sizeof(nn_gpu_ops) - 8 },
                                      { .abi = NN_GPU_ABI, .bytes = sizeof(nn_gpu_ops) } };
    static int next;

    return &all[next++ % 3];
}
