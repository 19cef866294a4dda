/* chem/molecule/mol.h - a molecule as plain arrays.
 *
 * The struct is public, so that code can loop over atoms and bonds directly.
 * All hydrogens are explicit atoms. Units: Angstrom, elementary charge. Ownership: the arrays live in the arena
 * the molecule was allocated in. xyz is NULL if there is no 3D structure. */
#ifndef CH_MOL_H
#define CH_MOL_H

#include <stdint.h>

#include "chem/common/bond_order.h"
#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"

enum {
    CH_MOL_MAX_ATOMS = 1 << 20, /* sanity limit of every reader of molecules */
    CH_MOL_MAX_BONDS = 1 << 21,
    CH_MASS_MAX = 999 /* three digits: the limit of SMILES and MDL files */
};

typedef struct ch_mol {
    int32_t n_atoms, n_bonds;
    uint8_t *z;         /* [n_atoms]    atomic number, 1..118       */
    int8_t *charge;     /* [n_atoms]    formal charge               */
    float (*xyz)[3];    /* [n_atoms][3] position; NULL if no 3D     */
    int32_t (*bond)[2]; /* [n_bonds][2] begin < end, sorted        */
    uint8_t *order;     /* [n_bonds]    ch_order                    */
    uint16_t *isotope;  /* [n_atoms]    mass number, 0: natural mixture; NULL: all 0 */
} ch_mol;

/* Allocates zeroed arrays, including xyz but not isotope. EINPUT for counts that are negative or above the limits. */
pl_code ch_mol_alloc(ch_mol *out, int32_t n_atoms, int32_t n_bonds, pl_arena *mem, pl_error *err);

/* EINPUT, naming the atom or bond, if an array breaks the rules above or a position is not
 * finite. A molecule without atoms is valid. */
pl_code ch_mol_check(const ch_mol *mol, pl_error *err);

#endif
