/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin of models/cuda with fibers for threads and malloc for device memory. New
 * memory is full of NaN. The products of each precision are files of their own, as with nvcc (tests/models_cuda.cmake). */
#include "emulator/runtime.h"

static void fence_poison(void *p, bool on)
{
    emu_settle(); /* work that was called earlier may still use the place */
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
