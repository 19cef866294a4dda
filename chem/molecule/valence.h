/* chem/molecule/valence.h - which atoms have a closed shell, by counting bonds.
 *
 * An atom of a common nonmetal (H, B, C, N, O, halogens, Si, P, S, As, Se) with a closed shell has the bonds of the neutral element
 * with as many electrons: N+ those of C. Below the second row, and for N (nitro groups drawn as N(=O)=O), two more are fine, or four,
 * and so on. Free valences are the bonds that an atom lacks: one for each unpaired electron of a radical, two for a carbene. */
#ifndef CH_VALENCE_H
#define CH_VALENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/error.h"

/* Free valences of an atom with this sum of bond orders (hydrogens count as bonds). 0: a closed shell, or an element without rule.
 * -1: more bonds than any closed shell has. */
int ch_free_valences(int z, int charge, int bonds);

/* The fewest bonds that such an atom has in a closed shell: 2 for S; -1 for an element without rule. */
int ch_fewest_bonds(int z, int charge);

/* All free valences of the molecule that a canonical SMILES of the chemistry worker describes; -1 if the text is none. Atoms without
 * brackets have none. Of aromatic atoms only carbon counts, which has three neighbours; the others may have their lone pair in the
 * ring or not. ENOMEM. */
pl_code ch_smiles_free_valences(int32_t *out, const char *smiles, pl_error *err);

/* Whether such a SMILES may define stereo of cumulated double bonds: a mark on the middle of an allene, or / or \ beside a chain of three
 * double bonds or more. The InChIKey of a molecule without positions lacks it. ENOMEM. */
pl_code ch_smiles_marks_axis(bool *out, const char *smiles, pl_error *err);

#endif
