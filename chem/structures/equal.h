/* chem/structures/equal.h - the ways to map the heavy atoms of a molecule onto each other.
 *
 * A map takes every heavy atom to one of the same element and isotope with equal neighbours, and bonds to bonds: an automorphism of the
 * graph. The orders of bonds, charges and stereo do not count, nor do hydrogens of N, O and S with one heavy neighbour. So the
 * oxygens of an acid and of its anion are equal, as are those of a phosphate, and all fluorines of CF3. */
#ifndef CH_EQUAL_H
#define CH_EQUAL_H

#include "chem/structures/cycles.h"

enum { CH_EQUAL_MAX = 1024 }; /* maps that are kept; a search of more than CH_EQUAL_STEPS steps for each of its atoms ends */
enum { CH_EQUAL_STEPS = 8 * CH_EQUAL_MAX };

typedef struct ch_equal {
    int32_t n;           /* heavy atoms */
    const int32_t *atom; /* [n] their atoms, the lowest first */
    int32_t n_maps;      /* 1 to CH_EQUAL_MAX */
    const int32_t *map;  /* [n_maps][n] heavy atom k is mapped on map[k]; the first map leaves all where they are */
} ch_equal;

/* The result lives in `mem`. ENOMEM. */
pl_code ch_equal_make(ch_equal *out, const ch_cycles *cycles, pl_arena *mem, pl_error *err);

#endif
