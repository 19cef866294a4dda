/* chem/structures/cuda/prim.cuh - the machine-dependent primitives that the kernels use; tests/emulator defines the same names.
 *
 *   warp_get(v, lane), warp_xor(v, mask)   a value of another lane; all 32 lanes must call it
 *   SHARED_BYTES(name)                     the block's dynamic shared memory
 *   LAUNCH(kernel, grid, block, shared, stream, ...)
 *   SHARED_ALLOW(kernel, bytes)            needed once before launches with more than 48 KB of it
 *   A_CALL                                 a function that is not inlined: it is called from several places and long */
#ifndef CH_GPU_PRIM_CUH
#define CH_GPU_PRIM_CUH

#include "chem/structures/cuda/ops.h"

#ifndef CH_GPU_EMULATED

#include <cuda_runtime.h>

template <class T> static __device__ __forceinline__ T warp_get(T value, int lane)
{
    return __shfl_sync(0xffffffffu, value, lane);
}

template <class T> static __device__ __forceinline__ T warp_xor(T value, int mask)
{
    return __shfl_xor_sync(0xffffffffu, value, mask);
}

extern __shared__ __align__(16) char ch_gpu_shared[];

#define A_CALL __noinline__
#define SHARED_BYTES(name) char *name = ch_gpu_shared
#define LAUNCH(kernel, grid, block, shared, stream, ...) kernel<<<grid, block, shared, stream>>>(__VA_ARGS__)
#define SHARED_ALLOW(kernel, bytes) cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes)

#else

#define A_CALL

#endif

#endif
