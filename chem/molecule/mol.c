/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/molecule/mol.h"

#include <math.h>

pl_code ch_mol_alloc(ch_mol *out, int32_t n_atoms, int32_t n_bonds, pl_arena *mem, pl_error *err)
{
    *out = (ch_mol){ 0 };
    if (n_atoms < 0 || n_atoms > CH_MOL_MAX_ATOMS || n_bonds < 0 || n_bonds > CH_MOL_MAX_BONDS)
        return pl_fail(err, PL_EINPUT, "a molecule of %d atoms and %d bonds", n_atoms, n_bonds);
    out->z = PL_NEW(mem, uint8_t, n_atoms);
    out->charge = PL_NEW(mem, int8_t, n_atoms);
    out->xyz = pl_arena_get(mem, (size_t)n_atoms, sizeof *out->xyz);
    out->bond = pl_arena_get(mem, (size_t)n_bonds, sizeof *out->bond);
    out->order = PL_NEW(mem, uint8_t, n_bonds);
    if (out->z == NULL || out->charge == NULL || out->xyz == NULL || out->bond == NULL || out->order == NULL) {
        *out = (ch_mol){ 0 };
        return pl_fail(err, PL_ENOMEM, "a molecule of %d atoms", n_atoms);
    }
    out->n_atoms = n_atoms;
    out->n_bonds = n_bonds;
    return PL_OK;
}

static pl_code atoms_check(const ch_mol *mol, pl_error *err)
{
    for (int32_t i = 0; i < mol->n_atoms; i++) {
        if (mol->z[i] < 1 || mol->z[i] > 118)
            return pl_fail(err, PL_EINPUT, "atom %d has atomic number %d", i + 1, mol->z[i]);
        if (mol->isotope != NULL && mol->isotope[i] > CH_MASS_MAX)
            return pl_fail(err, PL_EINPUT, "atom %d has the mass number %d, which is impossible", i + 1, mol->isotope[i]);
        if (mol->xyz == NULL)
            continue;
        for (int k = 0; k < 3; k++)
            if (!isfinite(mol->xyz[i][k]))
                return pl_fail(err, PL_EINPUT, "atom %d has no finite position", i + 1);
    }
    return PL_OK;
}

static pl_code bonds_check(const ch_mol *mol, pl_error *err)
{
    for (int32_t b = 0; b < mol->n_bonds; b++) {
        const int32_t i = mol->bond[b][0], j = mol->bond[b][1];
        const int32_t *before = b > 0 ? mol->bond[b - 1] : NULL;

        if (i < 0 || j <= i || j >= mol->n_atoms)
            return pl_fail(err, PL_EINPUT, "bond %d joins atoms %lld and %lld of %d", b + 1, (long long)i + 1, (long long)j + 1,
                           mol->n_atoms);
        if (before != NULL && (before[0] > i || (before[0] == i && before[1] >= j)))
            return pl_fail(err, PL_EINPUT, "bond %d is a duplicate or out of order", b + 1);
        if (mol->order[b] < 1 || mol->order[b] > CH_AROMATIC_DOUBLE)
            return pl_fail(err, PL_EINPUT, "bond %d has order %d", b + 1, mol->order[b]);
    }
    return PL_OK;
}

pl_code ch_mol_check(const ch_mol *mol, pl_error *err)
{
    pl_code code;

    if (mol->n_atoms < 0 || mol->n_atoms > CH_MOL_MAX_ATOMS || mol->n_bonds < 0 || mol->n_bonds > CH_MOL_MAX_BONDS)
        return pl_fail(err, PL_EINPUT, "%d atoms and %d bonds", mol->n_atoms, mol->n_bonds);
    code = atoms_check(mol, err);
    return code == PL_OK ? bonds_check(mol, err) : code;
}
