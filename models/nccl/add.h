/* models/nccl/add.h - the one kernel of the NCCL plugin. */
#ifndef NN_NCCL_ADD_H
#define NN_NCCL_ADD_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* rows [n_rows][n] on the device: row 0 becomes row 0 + row 1 + ..., added in that order. */
cudaError_t nn_nccl_add(float *rows, int64_t n, int n_rows, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
