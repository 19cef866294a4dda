/* models/cuda/prim.cuh - all that kernels take from the machine below CUDA C: PTX,
 * warp exchange, dynamic shared memory, launching. tests/emulator has the same
 * names for the host; kernels use nothing else of that kind.
 *
 *   warp_get(v, lane), warp_xor(v, mask)   a value of another lane; all 32 take part
 *   bf16_round(x), bf16_pair(low, high)    float -> bf16 bits, to nearest even
 *   mma_bf16(c, a, b)                      c += a b, m16n8k16, fragments as in PTX
 *   UNROLL                                 the loop that follows, all of it
 *   SHARED_BYTES(name)                     the block's dynamic shared memory
 *   LAUNCH(kernel, grid, block, shared, stream, ...)
 *
 * Needs compute capability 8.0. */
#ifndef NN_CUDA_PRIM_CUH
#define NN_CUDA_PRIM_CUH

#ifndef NN_GPU_EMULATED

#include <cuda_runtime.h>

#define NN_GPU_NAME "cuda"

static inline void fence_poison(void *p, bool on) /* the emulator tells ASan */
{
    (void)p;
    (void)on;
}

template <class T> static __device__ __forceinline__ T warp_get(T value, int lane)
{
    return __shfl_sync(0xffffffffu, value, lane);
}

template <class T> static __device__ __forceinline__ T warp_xor(T value, int mask)
{
    return __shfl_xor_sync(0xffffffffu, value, mask);
}

static __device__ __forceinline__ uint32_t bf16_pair(float low, float high)
{
    uint32_t out;

    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
    return out;
}

static __device__ __forceinline__ uint32_t bf16_round(float x)
{
    return bf16_pair(x, 0) & 0xffffu;
}

static __device__ __forceinline__ void mma_bf16(float c[4], const uint32_t a[4], const uint32_t b[2])
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

extern __shared__ __align__(128) char nn_gpu_shared[];

#define UNROLL _Pragma("unroll")
#define SHARED_BYTES(name) char *name = nn_gpu_shared
#define LAUNCH(kernel, grid, block, shared, stream, ...) kernel<<<grid, block, shared, stream>>>(__VA_ARGS__)

#endif

/* The same sum in every lane. */
template <class T> static __device__ __forceinline__ T warp_sum(T v)
{
    for (int mask = 16; mask; mask /= 2)
        v += warp_xor(v, mask);
    return v;
}

/* The part of x that bf16 loses, for products of three (BF16X3). */
static __device__ __forceinline__ float bf16_rest(float x, uint32_t bits)
{
    union {
        uint32_t u;
        float f;
    } high = { bits << 16 };

    return x - high.f;
}

#endif
