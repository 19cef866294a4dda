/* models/cuda/device/prim.cuh - the only machine-dependent primitives that kernels use: PTX,
 * warp exchange, dynamic shared memory, launches. tests/emulator defines the same
 * names for the host.
 *
 *   warp_get(v, lane), warp_xor(v, mask)   a value of another lane; all 32 lanes must call it
 *   bf16_pair(low, high), fp16_pair(..)    two floats -> 16 bits each, to nearest even
 *   tf32_round(x)                          float -> the bits of a tf32 number, to nearest
 *   fp16_times(a, b), bf16_times(a, b)     the products of both numbers of a word, to nearest even
 *   mma_bf16(c, a, b), mma_fp16(..)        c += a b, m16n8k16, fragments as in PTX
 *   mma_tf32(c, a, b)                      c += a b, m16n8k8
 *   load2(v, p), store2(p, x, y)           8 bytes at once; p is a multiple of 8
 *   load4(v, p), store4(p, v)              16 bytes at once; p is a multiple of 16
 *   load_words(f, row)                     lane l has row l % 8 of matrix l / 8, four words in shared memory, a multiple
 *                                          of 16 bytes; f[i] is word lane % 4 of row lane / 4 of matrix i
 *   copy_async(to, from, bytes)            16 bytes to shared memory, zeros behind `bytes`;
 *                                          both are multiples of 16; without `bytes` all
 *   copy_close()                           ends a group: the copies started since the last call
 *   copy_wait<n>()                         waits until all groups of this thread but the last n are complete
 *   UNROLL, UNROLL_BY(n)                   unroll the following loop completely, or n times
 *   SHARED_BYTES(name)                     the block's dynamic shared memory
 *   LAUNCH(kernel, grid, block, shared, stream, ...)
 *   SHARED_ALLOW(kernel, bytes)            needed before launches with more than 48 KB of it; not during a
 *                                          capture; always with the same bytes, because the setting belongs
 *                                          to the kernel, in all threads and graphs
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

static __device__ __forceinline__ uint32_t fp16_pair(float low, float high)
{
    uint32_t out;

    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
    return out;
}

static __device__ __forceinline__ uint32_t tf32_round(float x)
{
    uint32_t out;

    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(out) : "f"(x));
    return out;
}

static __device__ __forceinline__ uint32_t fp16_times(uint32_t a, uint32_t b)
{
    uint32_t out;

    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(out) : "r"(a), "r"(b));
    return out;
}

static __device__ __forceinline__ uint32_t bf16_times(uint32_t a, uint32_t b) /* a b - 0: a plain product needs 9.0 */
{
    uint32_t out;

    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(out) : "r"(a), "r"(b), "r"(0x80008000u));
    return out;
}

#define NN_GPU_MMA(shape, type) \
    asm volatile("mma.sync.aligned." shape ".row.col.f32." type "." type ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, " \
                 "{%8,%9}, {%0,%1,%2,%3};" \
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))

static __device__ __forceinline__ void mma_bf16(float c[4], const uint32_t a[4], const uint32_t b[2])
{
    NN_GPU_MMA("m16n8k16", "bf16");
}

static __device__ __forceinline__ void mma_fp16(float c[4], const uint32_t a[4], const uint32_t b[2])
{
    NN_GPU_MMA("m16n8k16", "f16");
}

static __device__ __forceinline__ void mma_tf32(float c[4], const uint32_t a[4], const uint32_t b[2])
{
    NN_GPU_MMA("m16n8k8", "tf32");
}

static __device__ __forceinline__ void load4(float v[4], const float *p)
{
    float4 q = *reinterpret_cast<const float4 *>(p);

    v[0] = q.x;
    v[1] = q.y;
    v[2] = q.z;
    v[3] = q.w;
}

static __device__ __forceinline__ void load2(float v[2], const float *p)
{
    float2 q = *reinterpret_cast<const float2 *>(p);

    v[0] = q.x;
    v[1] = q.y;
}

static __device__ __forceinline__ void store2(float *p, float x, float y)
{
    *reinterpret_cast<float2 *>(p) = make_float2(x, y);
}

static __device__ __forceinline__ void store4(float *p, const float v[4])
{
    *reinterpret_cast<float4 *>(p) = make_float4(v[0], v[1], v[2], v[3]);
}

static __device__ __forceinline__ void load_words(uint32_t f[4], const uint32_t *row)
{
    uint32_t at = (uint32_t)__cvta_generic_to_shared(row);

    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(f[0]), "=r"(f[1]), "=r"(f[2]), "=r"(f[3])
                 : "r"(at));
}

static __device__ __forceinline__ void copy_async(void *to, const void *from, int bytes)
{
    uint32_t at = (uint32_t)__cvta_generic_to_shared(to);

    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"(at), "l"(from), "r"(bytes) : "memory");
}

static __device__ __forceinline__ void copy_async(void *to, const void *from)
{
    uint32_t at = (uint32_t)__cvta_generic_to_shared(to);

    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(at), "l"(from) : "memory");
}

static __device__ __forceinline__ void copy_close(void)
{
    asm volatile("cp.async.commit_group;" : : : "memory");
}

template <int n> static __device__ __forceinline__ void copy_wait(void)
{
    asm volatile("cp.async.wait_group %0;" : : "n"(n) : "memory");
}

extern __shared__ __align__(128) char nn_gpu_shared[];

#define UNROLL _Pragma("unroll")
#define NN_GPU_PRAGMA(words) _Pragma(#words)
#define UNROLL_BY(n) NN_GPU_PRAGMA(unroll n)
#define SHARED_BYTES(name) char *name = nn_gpu_shared
#define LAUNCH(kernel, grid, block, shared, stream, ...) kernel<<<grid, block, shared, stream>>>(__VA_ARGS__)
#define SHARED_ALLOW(kernel, bytes) cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes)

#endif

/* The sum over the 32 lanes, the same in every lane. */
template <class T> static __device__ __forceinline__ T warp_sum(T v)
{
    for (int mask = 16; mask; mask /= 2)
        v += warp_xor(v, mask);
    return v;
}

/* x minus its bf16 rounding, for BF16X3. */
static __device__ __forceinline__ float bf16_rest(float x, uint32_t bits)
{
    union {
        uint32_t u;
        float f;
    } high = { bits << 16 };

    return x - high.f;
}

#endif
