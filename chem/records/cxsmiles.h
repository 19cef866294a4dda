/* chem/records/cxsmiles.h - what stands behind a SMILES in bars, as ChemAxon and RDKit write it: "CCC |^1:0|".
 *
 * It is not read. Most of it does not change the molecule (names of atoms, positions, groups of enhanced stereo, data); what does must not
 * be lost, so such a record fails: radicals at atoms that the SMILES writes without brackets, polymers, link nodes, a bond to one of
 * several atoms, coordinate bonds, double bonds that only it makes cis or trans. */
#ifndef CH_CXSMILES_H
#define CH_CXSMILES_H

#include <stddef.h>

/* Why the record is not that molecule, or NULL. smiles[n_smiles], and the text behind it. A static text. */
const char *ch_cx_problem(const char *smiles, size_t n_smiles, const char *behind, size_t n_behind);

/* Bytes of the text behind a SMILES that are such a part with the blanks before it; 0: there is none. What follows is the title. */
size_t ch_cx_length(const char *behind, size_t n_behind);

#endif
