/* chem/scaffold.h - which molecules have one scaffold.
 *
 * The scaffold is the framework of Bemis and Murcko (J. Med. Chem. 1996, 39, 2887): rings and the chains
 * between them, and, as RDKit has it, atoms that are doubly bonded to these. Hydrogens, charges, isotopes
 * and stereo do not count. */
#ifndef CH_SCAFFOLD_H
#define CH_SCAFFOLD_H

#include <stdint.h>

#include "chem/mol.h"

/* A number for the scaffold, whatever the order of the atoms; 0 for a molecule without rings. Colour refinement
 * (Weisfeiler and Leman 1968) of elements, bonds and the sizes of the bonds' rings: what it cannot tell
 * apart, if there is such a pair, has one number. ENOMEM. */
pl_code ch_scaffold(uint64_t *out, const ch_mol *mol, pl_arena *mem, pl_error *err);

#endif
