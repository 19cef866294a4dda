/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin of models/cuda with fibers for threads and malloc for device memory. New
 * memory is full of NaN. */
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
#include "models/cuda/device/products_bf16x3.cu"
#include "models/cuda/device/products_bf16.cu"
#include "models/cuda/device/products_tf32.cu"
#include "models/cuda/device/products_fp16.cu"
