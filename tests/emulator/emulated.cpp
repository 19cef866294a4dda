/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin of models/cuda with fibers for threads and malloc for device memory. New
 * memory is full of NaN. */
#include "emulator/streams.h"

struct cudaDeviceProp {
    char name[64];
    int major, minor;
    size_t totalGlobalMem;
};

static const char *cudaGetErrorString(cudaError_t e)
{
    if (e == cudaErrorNotReady)
        return "device not ready";
    return e == cudaErrorIllegalAddress ? "an illegal memory access was encountered" : "refused";
}

/* MOLSIEVE_EMULATOR_NO_DRIVER=12040: a driver that supports at most CUDA 12.4. */
static cudaError_t cudaDriverGetVersion(int *v)
{
    const char *old = getenv("MOLSIEVE_EMULATOR_NO_DRIVER");
    int version = old ? (int)strtol(old, nullptr, 10) : 13000;

    return *v = version < 1000 ? 0 : version, cudaSuccess;
}

static cudaError_t cudaRuntimeGetVersion(int *v) { return *v = 13000, cudaSuccess; }

static cudaError_t cudaGetDeviceCount(int *n)
{
    const char *devices = getenv("MOLSIEVE_EMULATOR_DEVICES");

    *n = devices ? (int)strtol(devices, nullptr, 10) : 1;
    return getenv("MOLSIEVE_EMULATOR_NO_DRIVER") ? cudaErrorInsufficientDriver : cudaSuccess;
}

static cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int device)
{
    *p = { "emulator", 8, 0, emu_memory_of(device) };
    return cudaSuccess;
}

/* The limits of compute capability 8.0. */
static cudaError_t cudaDeviceGetAttribute(int *v, int, int) { return *v = 163 << 10, cudaSuccess; }

static cudaError_t cudaDeviceGetPCIBusId(char *id, int n, int device)
{
    snprintf(id, (size_t)n, "0000:%02X:00.0", device);
    return cudaSuccess;
}

static cudaError_t cudaSetDevice(int device) { return emu_device = device, cudaSuccess; }

static void fence_poison(void *p, bool on)
{
    emu_settle(); /* earlier names lead to the same place */
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
#include "models/cuda/device/device.cu"
#include "models/cuda/device/products_bf16x3.cu"
#include "models/cuda/device/products_bf16.cu"
#include "models/cuda/device/products_tf32.cu"
#include "models/cuda/device/products_fp16.cu"
