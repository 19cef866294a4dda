/* models/comm/nccl/add.h - the one kernel of the NCCL plugin. */
#ifndef NN_NCCL_ADD_H
#define NN_NCCL_ADD_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* to[i] = shard 0 + shard 1 + ..., i < n, in this order; all pointers are device memory. Shards first .. first + n_own - 1
 * are own [n_own][stride]; shard k of the others is row k of others [n_rows][n]. to may be own. */
typedef struct nn_nccl_rows {
    float *to;
    const float *own, *others;
    int64_t n, stride;
    int n_rows, first, n_own;
} nn_nccl_rows;

#ifdef __CUDACC__
__device__
#endif
    static inline float
    nn_nccl_row_sum(const nn_nccl_rows *a, int64_t i)
{
    float sum = 0;

    for (int k = 0; k < a->n_rows; k++) {
        int own = k - a->first;
        float x = own >= 0 && own < a->n_own ? a->own[own * a->stride + i] : a->others[k * a->n + i];
        sum = k ? sum + x : x;
    }
    return sum;
}

/* Launches the kernel: one thread a number. n 0: only loads the kernel. Do this first, because the first call may wait for all
 * work on the device, which never ends if a rank is gone. */
cudaError_t nn_nccl_add(const nn_nccl_rows *a, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
