/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin of models/cuda with fibers for threads and malloc for device memory. New
 * memory is full of NaN. */
#include "emulator/emulator.h"

enum cudaError_t { cudaSuccess, cudaErrorMemoryAllocation = 2, cudaErrorInsufficientDriver = 35 };
enum { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaStreamNonBlocking };

typedef int cudaStream_t;

struct cudaDeviceProp {
    char name[64];
    int major, minor;
    size_t totalGlobalMem;
};

static cudaError_t cudaGetLastError() { return cudaSuccess; }
static const char *cudaGetErrorString(cudaError_t) { return "the emulator has no errors"; }
static cudaError_t cudaDriverGetVersion(int *v) { return *v = 0, cudaSuccess; }
static cudaError_t cudaRuntimeGetVersion(int *v) { return *v = 0, cudaSuccess; }

static cudaError_t cudaGetDeviceCount(int *n)
{
    return *n = 1, getenv("MOLSIEVE_EMULATOR_NO_DRIVER") ? cudaErrorInsufficientDriver : cudaSuccess;
}

static cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int)
{
    *p = { "emulator", 8, 0, (size_t)1 << 30 };
    return cudaSuccess;
}

static cudaError_t cudaSetDevice(int) { return cudaSuccess; }
static cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, int) { return *s = 0, cudaSuccess; }
static cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
static cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }

static cudaError_t cudaMalloc(void **p, size_t bytes)
{
    *p = aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (!*p)
        return cudaErrorMemoryAllocation;
    memset(*p, 0xff, bytes);
    return cudaSuccess;
}

static cudaError_t cudaFree(void *p) { return free(p), cudaSuccess; }
static cudaError_t cudaMallocHost(void **p, size_t bytes) { return cudaMalloc(p, bytes); }
static cudaError_t cudaFreeHost(void *p) { return cudaFree(p); }

static cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, int, cudaStream_t)
{
    return memcpy(to, from, bytes), cudaSuccess;
}

static cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t)
{
    return memset(p, value, bytes), cudaSuccess;
}

static void fence_poison(void *p, bool on)
{
#if EMU_ASAN
    if (on)
        __asan_poison_memory_region(p, 64);
    else
        __asan_unpoison_memory_region(p, 64);
#else
    (void)p, (void)on;
#endif
}

#define NN_GPU_EMULATED
#define NN_GPU_NAME "emulated"
#include "models/cuda/device.cu"
