/* tests/emulator/runtime.h - the calls of the CUDA runtime about devices, as the emulator answers them. */
#ifndef EMU_RUNTIME_H
#define EMU_RUNTIME_H

#include "emulator/streams.h"

struct cudaDeviceProp {
    char name[64];
    int major, minor;
    size_t totalGlobalMem;
};

[[maybe_unused]] static const char *cudaGetErrorString(cudaError_t e)
{
    if (e == cudaErrorNotReady)
        return "device not ready";
    return e == cudaErrorIllegalAddress ? "an illegal memory access was encountered" : "refused";
}

/* MOLSIEVE_EMULATOR_NO_DRIVER=12040: a driver that supports at most CUDA 12.4. */
[[maybe_unused]] static cudaError_t cudaDriverGetVersion(int *v)
{
    const char *old = getenv("MOLSIEVE_EMULATOR_NO_DRIVER");
    int version = old ? (int)strtol(old, nullptr, 10) : 13000;

    return *v = version < 1000 ? 0 : version, cudaSuccess;
}

[[maybe_unused]] static cudaError_t cudaRuntimeGetVersion(int *v) { return *v = 13000, cudaSuccess; }

[[maybe_unused]] static cudaError_t cudaGetDeviceCount(int *n)
{
    const char *devices = getenv("MOLSIEVE_EMULATOR_DEVICES");

    *n = devices ? (int)strtol(devices, nullptr, 10) : 1;
    return getenv("MOLSIEVE_EMULATOR_NO_DRIVER") ? cudaErrorInsufficientDriver : cudaSuccess;
}

[[maybe_unused]] static cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int device)
{
    *p = { "emulator", 8, 0, emu_memory_of(device) };
    return cudaSuccess;
}

/* The limits of compute capability 8.0. */
[[maybe_unused]] static cudaError_t cudaDeviceGetAttribute(int *v, int, int) { return *v = 163 << 10, cudaSuccess; }

[[maybe_unused]] static cudaError_t cudaDeviceGetPCIBusId(char *id, int n, int device)
{
    snprintf(id, (size_t)n, "0000:%02X:00.0", device);
    return cudaSuccess;
}

[[maybe_unused]] static cudaError_t cudaSetDevice(int device) { return emu_device = device, cudaSuccess; }

#endif
