/* chem/fingerprint/scaffold_smiles.h - the scaffold of a molecule as canonical SMILES.
 *
 * The scaffold is that of chem/fingerprint/scaffold.h. What is cut off becomes hydrogen, as in RDKit: N-methylpyrrole gives
 * "[nH]1cccc1". Isotopes and stereo are left out, charges stay. The SMILES is canonical in this program only: atoms are ordered by
 * colour refinement (elements, bonds, ring sizes), and ties are broken one by one. Scaffolds whose tied atoms are not symmetric,
 * if there are any, may have several SMILES. Databases store the text: it must not change from version to version. */
#ifndef CH_SCAFFOLD_SMILES_H
#define CH_SCAFFOLD_SMILES_H

#include "chem/molecule/mol.h"

/* *out, in mem: "" for a molecule without rings. Does not depend on the order of the atoms. ENOMEM. */
pl_code ch_scaffold_smiles(const char **out, const ch_mol *mol, pl_arena *mem, pl_error *err);

#endif
