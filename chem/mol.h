/* chem/mol.h - a molecule as plain arrays.
 *
 * An open struct, so that loops over atoms and bonds stay plain loops.
 * Hydrogens are atoms like others, none is implied. Units: Angstrom, elementary charge. Ownership: the arrays live in the arena
 * the molecule was allocated in. Positions are NULL when there is no 3D. */
#ifndef CH_MOL_H
#define CH_MOL_H

#include <stdint.h>

#include "chem/protocol.h"
#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"

enum {
    CH_MOL_MAX_ATOMS = 1 << 20, /* sanity limit of every reader of molecules */
    CH_MOL_MAX_BONDS = 1 << 21,
    CH_MASS_MAX = 999 /* three digits: what SMILES and MDL files have room for */
};

typedef struct ch_mol {
    int32_t n_atoms, n_bonds;
    uint8_t *z;        /* [n_atoms]    atomic number, 1..118       */
    int8_t *charge;    /* [n_atoms]    formal charge               */
    float (*xyz)[3];   /* [n_atoms][3] position; NULL if no 3D     */
    int32_t (*bond)[2]; /* [n_bonds][2] begin < end, sorted        */
    uint8_t *order;    /* [n_bonds]    ch_order                    */
    uint16_t *isotope; /* [n_atoms]    mass number, 0: as in nature; NULL if all are */
} ch_mol;

/* Zeroed arrays, positions included, isotopes not. EINPUT for counts that are negative or above the limits. */
pl_code ch_mol_alloc(ch_mol *out, int32_t n_atoms, int32_t n_bonds, pl_arena *mem, pl_error *err);

/* EINPUT when a promise above is broken: which atom or bond, and how. A zero
 * atom molecule is fine; positions must be finite. */
pl_code ch_mol_check(const ch_mol *mol, pl_error *err);

#endif
