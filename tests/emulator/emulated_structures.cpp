/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU part of chem/structures with fibers for threads; another part of the plugin, with an emulated device of its own. */
#define EMU_SECTION emu_shared_structures
#include "emulator/runtime.h"

#define CH_GPU_EMULATED
#include "chem/structures/cuda/structures.cu"
