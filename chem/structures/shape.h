/* chem/structures/shape.h - how different two conformers of a molecule are. */
#ifndef CH_SHAPE_H
#define CH_SHAPE_H

#include "chem/molecule/mol.h"

/* The root mean square distance of heavy atoms after the best superposition, Angstrom; a[n_atoms][3], b[n_atoms][3]. Position and
 * orientation do not matter; mirror images are different, equal atoms are not exchanged. Without heavy atoms: 0. */
double ch_shape_rmsd(const ch_mol *mol, const float (*a)[3], const float (*b)[3]);

#endif
