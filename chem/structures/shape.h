/* chem/structures/shape.h - how different two conformers of a molecule are. */
#ifndef CH_SHAPE_H
#define CH_SHAPE_H

#include "chem/structures/equal.h"

/* The root mean square distance of heavy atoms, Angstrom, after the best superposition and with equal atoms (equal.h) exchanged in the
 * way that makes it least; a[n_atoms][3], b[n_atoms][3]. Position and orientation do not matter; mirror images are different.
 * Without heavy atoms: 0. Superposition: Kabsch, Acta Cryst. A 32, 922 (1976). */
double ch_shape_rmsd(const ch_equal *equal, const float (*a)[3], const float (*b)[3]);

/* No more than that, for the time of a single superposition: what three lengths of each shape say (the singular values of its
 * positions; von Neumann's trace inequality). */
double ch_shape_least(const ch_equal *equal, const float (*a)[3], const float (*b)[3]);

#endif
