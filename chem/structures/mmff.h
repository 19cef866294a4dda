/* chem/structures/mmff.h - from a molecule to the terms of its MMFF94 energy.
 *
 * Own code from T. A. Halgren, J. Comput. Chem. 17, 490, 520, 553, 587, 616 (1996) and 20, 720 (1999); the parameters are read at run
 * time (parameters.h). Positions are not looked at. Threads may make terms at the same time, each with its own arena. */
#ifndef CH_MMFF_H
#define CH_MMFF_H

#include "chem/molecule/mol.h"
#include "chem/structures/parameters.h"
#include "chem/structures/terms.h"

enum { CH_TERMS_MAX_ATOMS = 4096 }; /* all pairs of so many are 335 MB */

typedef struct ch_mmff_options {
    bool mmff94s; /* out-of-plane and torsion parameters of MMFF94s: planar nitrogens, for structures to compare with crystals */
    double dielectric; /* constant that electrostatics are divided by; 0: 1, vacuum, as the energies of the papers */
    bool cumulenes;    /* a torsion of our own for C=C=C and longer chains: MMFF94 has none across linear atoms, and its allenes are
                          twisted by 30 degrees instead of 90. For building, not for energies that are compared */
} ch_mmff_options;

/* Fills `out`; its arrays live in `mem`, as does what is needed on the way. The molecule must have all its hydrogens.
 * EINPUT, with the atom and the reason, for what MMFF94 does not know: other elements, radicals, ions without a type; and for more
 * than CH_TERMS_MAX_ATOMS atoms.
 * Left out are terms that are zero wherever the atoms are: out-of-plane and torsion terms whose constants are 0, stretch-bends and
 * torsions at linear centres. */
pl_code ch_terms_make(ch_terms *out, const ch_mol *mol, const ch_mmff *parameters, const ch_mmff_options *options, pl_arena *mem,
                      pl_error *err);

#endif
