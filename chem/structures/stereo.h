/* chem/structures/stereo.h - which stereo a structure must have, in terms of positions.
 *
 * A tetrahedral centre names its neighbours in an order and the sign of
 *     (x0 - x3) . ((x1 - x3) x (x2 - x3))
 * in a right-handed system, where xk is the position of neighbour[k]. +1: seen from neighbour 0, neighbours 1, 2, 3 run
 * anticlockwise, which SMILES writes @ for neighbours in the order of the text. Exchanging two neighbours changes the sign. A
 * centre with three neighbours and a lone pair (a sulfoxide) names itself as neighbour[3].
 *
 * A double bond b=c names a neighbour a of b and a neighbour d of c: cis if a and d are on the same side. So does a chain b=x=y=c, whose
 * ends lie in one plane, or a longer one of an odd number of double bonds.
 *
 * An axis (an allene, a biaryl that cannot turn) names two neighbours of one end and two of the other, in an order that makes
 * the volume above positive.
 *
 * What is not named is free: each attempt may give either form. Atoms are indices of the molecule; hydrogens are atoms. */
#ifndef CH_STEREO_H
#define CH_STEREO_H

#include <stdbool.h>
#include <stdint.h>

typedef struct ch_centre {
    int32_t atom, neighbour[4];
    int8_t sign; /* +1 or -1 */
} ch_centre;

typedef struct ch_double_bond {
    int32_t a, b, c, d;
    bool cis;
} ch_double_bond;

typedef struct ch_axis {
    int32_t atom[4];
} ch_axis;

/* The caller owns the arrays. All zero: nothing is defined. */
typedef struct ch_stereo {
    int32_t n_centres, n_double_bonds;
    const ch_centre *centres;
    const ch_double_bond *double_bonds;
    int32_t n_axes;
    const ch_axis *axes;
} ch_stereo;

#endif
