/* chem/features/rings.h - the rings of a molecule.
 *
 * The relevant cycles (Vismara, Electron. J. Comb. 1997, 4, R9): those that are no sum of smaller ones, the union of all smallest sets of
 * smallest rings. Unlike one such set they do not depend on the order of the atoms: cubane has 6, bicyclo[2.2.2]octane 3. Rings of more
 * than CH_RING_MAX atoms are not looked for; where there are more than CH_RINGS_MAX, or the search is too long, all of the size at which
 * that shows and larger ones are left out. Internal to chem/features. */
#ifndef CH_RINGS_H
#define CH_RINGS_H

#include "chem/features/shape.h"

enum { CH_RING_MAX = 64, CH_RINGS_MAX = 1024 };

typedef struct ch_ring {
    int32_t size;
    const int32_t *atom, *bond; /* [size] along the ring; bond k joins atom k and atom k + 1 */
} ch_ring;

typedef struct ch_rings {
    int32_t n, n_parts;      /* rings; connected parts of heavy atoms   */
    const ch_ring *ring;     /* [n] smallest first                      */
    const bool *bond_inside; /* [n_bonds] the bond is part of a ring of any size */
} ch_rings;

pl_code ch_rings_make(ch_rings *out, const ch_shape *s, pl_arena *mem, pl_error *err);

#endif
