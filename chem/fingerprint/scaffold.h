/* chem/fingerprint/scaffold.h - a number that identifies the scaffold of a molecule.
 *
 * The scaffold is the framework of Bemis and Murcko (J. Med. Chem. 1996, 39, 2887): rings and the chains
 * between them, and, as in RDKit, atoms that are doubly bonded to these. Hydrogens, isotopes, charges and stereo do not count, or
 * (strict) charges do, and whether an aromatic nitrogen has a third neighbour: as in the SMILES by which DeepChem and Chemprop split. */
#ifndef CH_SCAFFOLD_H
#define CH_SCAFFOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "chem/molecule/mol.h"

/* A number for the scaffold, independent of the order of the atoms; 0 for a molecule without rings. Computed by colour refinement
 * (Weisfeiler and Leman 1968) of elements, bonds and the sizes of the bonds' rings; scaffolds that colour refinement cannot
 * distinguish, if there are any, get the same number. ENOMEM. */
pl_code ch_scaffold(uint64_t *out, const ch_mol *mol, bool strict, pl_arena *mem, pl_error *err);

#endif
