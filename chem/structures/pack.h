/* chem/structures/pack.h - a molecule's arrays as a GPU reads them (cuda/ops.h).
 *
 * From the terms of MMFF94 and the bounds of distance geometry. Atoms are renumbered along the bonds, so that the
 * preconditioner's matrix is a narrow band. Everything lives in the arena. */
#ifndef CH_PACK_H
#define CH_PACK_H

#include "chem/structures/bounds.h"
#include "chem/structures/cuda/ops.h"
#include "pipeline/base/error.h"

typedef struct ch_packed {
    ch_gpu_molecule molecule; /* `at` counts from the beginning of `words` */
    int32_t *words;           /* [n_words] */
    int64_t n_words;
    const int32_t *place; /* [n_atoms] of an atom in these arrays */
} ch_packed;

/* bounds may be NULL: then the molecule can be relaxed but not embedded. EINPUT: terms that make no sense, or more than
 * CH_GPU_MOST_ATOMS atoms. */
pl_code ch_pack(ch_packed *out, const ch_terms *terms, const ch_bounds *bounds, const ch_kernels *kernels, pl_arena *mem,
                pl_error *err);

/* Between xyz[n][3] and positions as the GPU has them. */
void ch_pack_positions(float *to, const ch_packed *p, const float (*xyz)[3]);
void ch_unpack_positions(float (*xyz)[3], const ch_packed *p, const float *from);

#endif
