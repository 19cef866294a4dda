/* stages/explain/same_atoms.h - which atom of one molecule is which atom of another numbering of it. */
#ifndef ST_SAME_ATOMS_H
#define ST_SAME_ATOMS_H

#include "chem/molecule/mol.h"

/* to [a->n_atoms]: the atom of b that is this atom of a, -1 for hydrogens. Elements, charges, isotopes, hydrogens and bonds agree;
 * positions and stereo are not looked at, so atoms that only these tell apart may be exchanged. EINPUT: they are not the same molecule.
 * Scratch in mem. */
pl_code st_same_atoms(int32_t *to, const ch_mol *a, const ch_mol *b, pl_arena *mem, pl_error *err);

#endif
