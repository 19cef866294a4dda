/* chem/structures/bounds.h - how far apart the atoms of a molecule can be: the input of distance geometry.
 *
 * From the ideal lengths and angles of the force field, from rings, double bonds, amides and stereo; everything else lies
 * between van der Waals contact and a stretched chain. The bounds obey the triangle inequality. Where they contradict each
 * other, the bounds of atoms three bonds apart give way first, never those of defined stereo. Angstrom, cubic Angstrom.
 * Everything lives in the arena. */
#ifndef CH_BOUNDS_H
#define CH_BOUNDS_H

#include "chem/structures/cycles.h"
#include "chem/structures/kernels.h"
#include "chem/structures/rotors.h"
#include "chem/structures/stereo.h"
#include "chem/structures/terms.h"

enum { CH_MAX_SLACK = 3 };

typedef struct ch_bounds {
    int32_t n, stride;
    float *upper, *lower; /* [n][stride], symmetric */
    ch_volume *volumes;   /* [n_volumes] the n_chiral ones first, then centres that are flat */
    int32_t n_volumes, n_chiral;
    ch_rotors rotors; /* bonds that turn freely */
    int32_t slack;    /* how often bounds gave way: mostly 0 */
} ch_bounds;

/* EINPUT for stereo that names atoms which are not bonded so, and for terms of another molecule; ENOMEM. */
pl_code ch_bounds_make(ch_bounds *out, const ch_cycles *cycles, const ch_terms *terms, const ch_stereo *stereo,
                       const ch_kernels *kernels, pl_arena *mem, pl_error *err);

#endif
