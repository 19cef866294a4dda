/* chem/structures/batch.h - structures of many molecules at once, on a GPU.
 *
 * The processor makes bounds and packs arrays; the GPU embeds and relaxes; the processor checks what comes back. What fails is
 * tried again on the GPU, a few times, with the processor's streams of random numbers; what is left then, and what the GPU does
 * not take (cuda/ops.h), is built by ch_structure_build alone. A structure depends on its molecule and options, never on the
 * batch. It differs from the processor's in the last digits, and sometimes it is another minimum. */
#ifndef CH_BATCH_H
#define CH_BATCH_H

#include "chem/structures/device.h"
#include "chem/structures/structure.h"

typedef struct ch_request {
    const ch_mol *mol;
    const ch_stereo *stereo;
    const ch_terms *terms;
    const ch_structure_options *options;
    ch_structures *out; /* filled as by ch_structure_build */
    pl_code code;       /* PL_OK or EINPUT: no structure, and err says why */
    pl_error err;
} ch_request;

/* Results live in mem, work in scratch. A code other than PL_OK ends the batch: ENOMEM, ECONFIG (kernels), EDEVICE. */
pl_code ch_structures_build(ch_request *all, int32_t n, ch_device *device, pl_arena *mem, pl_arena *scratch, pl_error *err);

#endif
