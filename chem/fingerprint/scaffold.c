/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/fingerprint/scaffold.h"

#include <string.h>

#include "chem/fingerprint/scaffold_parts.h"

#include "pipeline/base/rng.h"

enum { RING_MAX = 12, ROUNDS = 32, AROMATIC = 4 }; /* larger rings do not count as rings */

static bool is_heavy(const ch_mol *mol, int b) { return mol->z[mol->bond[b][0]] != 1 && mol->z[mol->bond[b][1]] != 1; }

static bool frame_alloc(ch_frame *f, const ch_mol *mol, pl_arena *mem)
{
    const int32_t n = mol->n_atoms, m = mol->n_bonds;

    *f = (ch_frame){ .mol = mol,
                     .row = PL_NEW(mem, int32_t, n + 2),
                     .bond = PL_NEW(mem, int32_t, 2 * (int64_t)m + 1),
                     .left = PL_NEW(mem, int32_t, n + 1),
                     .kept = PL_NEW(mem, bool, n + 1),
                     .colour = PL_NEW(mem, uint64_t, n + 1),
                     .link = PL_NEW(mem, uint64_t, m + 1),
                     .queue = PL_NEW(mem, int32_t, n + 1),
                     .depth = PL_NEW(mem, int32_t, n + 1) };
    return f->row != NULL && f->bond != NULL && f->left != NULL && f->kept != NULL && f->colour != NULL && f->link != NULL &&
           f->queue != NULL && f->depth != NULL;
}

static void join(ch_frame *f)
{
    const ch_mol *mol = f->mol;

    for (int32_t b = 0; b < mol->n_bonds; b++)
        for (int k = 0; k < 2 && is_heavy(mol, b); k++)
            f->row[mol->bond[b][k] + 2]++;
    for (int32_t i = 0; i < mol->n_atoms; i++)
        f->row[i + 2] += f->row[i + 1]; /* row[i + 1] runs from the first to the last of i */
    for (int32_t b = 0; b < mol->n_bonds; b++)
        for (int k = 0; k < 2 && is_heavy(mol, b); k++)
            f->bond[f->row[mol->bond[b][k] + 1]++] = b;
    for (int32_t i = 0; i < mol->n_atoms; i++) {
        f->left[i] = f->row[i + 1] - f->row[i];
        f->kept[i] = mol->z[i] != 1;
    }
}

/* Removes chain ends until there are none. Returns how many atoms remain. */
static int32_t cut_ends(ch_frame *f)
{
    int32_t n = 0, stay = 0;

    for (int32_t i = 0; i < f->mol->n_atoms; i++) {
        stay += f->kept[i];
        if (f->kept[i] && f->left[i] <= 1)
            f->queue[n++] = i;
    }
    for (int32_t q = 0; q < n; q++) {
        const int32_t i = f->queue[q];
        f->kept[i] = false;
        stay--;
        for (int32_t k = f->row[i]; k < f->row[i + 1]; k++) {
            const int32_t j = ch_frame_across(f, f->bond[k], i);
            if (f->kept[j] && --f->left[j] == 1)
                f->queue[n++] = j;
        }
    }
    return stay;
}

/* Adds the atoms doubly bonded to the framework (C=O, C=C), without their further neighbours. */
static void keep_double_ends(ch_frame *f)
{
    int32_t n = 0;

    for (int32_t b = 0; b < f->mol->n_bonds; b++)
        for (int k = 0; k < 2 && f->mol->order[b] == CH_DOUBLE; k++)
            if (f->kept[f->mol->bond[b][k]] && !f->kept[f->mol->bond[b][!k]])
                f->queue[n++] = f->mol->bond[b][!k];
    while (n > 0)
        f->kept[f->queue[--n]] = true;
}

int ch_frame_ring(ch_frame *f, int32_t b)
{
    const int32_t from = f->mol->bond[b][0], to = f->mol->bond[b][1];
    int32_t n = 0;
    int size = 0;

    f->queue[n++] = from;
    f->depth[from] = 1;
    for (int32_t q = 0; q < n && !size && f->depth[f->queue[q]] < RING_MAX; q++)
        for (int32_t i = f->queue[q], k = f->row[i]; k < f->row[i + 1]; k++) {
            const int32_t j = ch_frame_across(f, f->bond[k], i);
            if (f->bond[k] == b || !f->kept[j] || f->depth[j])
                continue;
            if (j == to)
                size = f->depth[i] + 1;
            f->depth[j] = f->depth[i] + 1;
            f->queue[n++] = j;
        }
    while (n > 0)
        f->depth[f->queue[--n]] = 0;
    return size;
}

pl_code ch_frame_make(ch_frame *f, int32_t *stay, const ch_mol *mol, pl_arena *mem, pl_error *err)
{
    if (!frame_alloc(f, mol, mem))
        return pl_fail(err, PL_ENOMEM, "a scaffold");
    join(f);
    *stay = cut_ends(f);
    if (*stay > 0)
        keep_double_ends(f);
    return PL_OK;
}

/* What the SMILES of a scaffold tells of atom i besides its element: [nH] stands for every aromatic N with three neighbours. */
static uint64_t strict_part(const ch_mol *mol, const int32_t *degree, const bool *aromatic, int32_t i)
{
    return 1000 * (uint64_t)(mol->charge[i] + 128) + (mol->z[i] == 7 && aromatic[i] && degree[i] == 3 ? 1000000 : 0);
}

static bool strict_add(const ch_mol *mol, uint64_t *colour, pl_arena *mem)
{
    int32_t *degree = PL_NEW(mem, int32_t, mol->n_atoms + 1);
    bool *aromatic = PL_NEW(mem, bool, mol->n_atoms + 1);

    for (int32_t b = 0; b < mol->n_bonds && degree != NULL && aromatic != NULL; b++)
        for (int k = 0; k < 2; k++) {
            degree[mol->bond[b][k]]++;
            aromatic[mol->bond[b][k]] |= mol->order[b] >= CH_AROMATIC_SINGLE;
        }
    for (int32_t i = 0; i < mol->n_atoms && degree != NULL && aromatic != NULL; i++)
        colour[i] = pl_splitmix64(colour[i] + strict_part(mol, degree, aromatic, i));
    return degree != NULL && aromatic != NULL;
}

static void colour_first(ch_frame *f)
{
    const ch_mol *mol = f->mol;

    for (int32_t i = 0; i < mol->n_atoms; i++)
        f->colour[i] = pl_splitmix64(mol->z[i]);
    for (int32_t b = 0; b < mol->n_bonds; b++) {
        const int order = mol->order[b] < CH_AROMATIC_SINGLE ? mol->order[b] : AROMATIC;
        if (f->kept[mol->bond[b][0]] && f->kept[mol->bond[b][1]])
            f->link[b] = pl_splitmix64(1000 + 100 * (uint64_t)order + (uint64_t)ch_frame_ring(f, b));
    }
}

/* One round of colour refinement: hashes each atom with its neighbours; the sum does not depend on their order. */
static pl_code colour_on(ch_frame *f, int32_t rounds, pl_arena *mem, pl_error *err)
{
    uint64_t *next = PL_NEW(mem, uint64_t, f->mol->n_atoms + 1);

    if (next == NULL)
        return pl_fail(err, PL_ENOMEM, "a scaffold");
    for (; rounds > 0; rounds--) {
        for (int32_t i = 0; i < f->mol->n_atoms; i++) {
            uint64_t sum = 0;
            for (int32_t k = f->row[i]; f->kept[i] && k < f->row[i + 1]; k++) {
                const int32_t j = ch_frame_across(f, f->bond[k], i);
                sum += f->kept[j] ? pl_splitmix64(f->colour[j] ^ f->link[f->bond[k]]) : 0;
            }
            next[i] = pl_splitmix64(f->colour[i] + 3 * sum);
        }
        memcpy(f->colour, next, (size_t)f->mol->n_atoms * sizeof *next);
    }
    return PL_OK;
}

pl_code ch_scaffold(uint64_t *out, const ch_mol *mol, bool strict, pl_arena *mem, pl_error *err)
{
    ch_frame f;
    int32_t stay;
    uint64_t sum = 0;
    pl_code code;

    *out = 0;
    code = ch_frame_make(&f, &stay, mol, mem, err);
    if (code != PL_OK || stay == 0)
        return code;
    colour_first(&f);
    if (strict && !strict_add(mol, f.colour, mem))
        return pl_fail(err, PL_ENOMEM, "a scaffold");
    code = colour_on(&f, stay < ROUNDS ? stay : ROUNDS, mem, err);
    for (int32_t i = 0; i < mol->n_atoms; i++)
        sum += f.kept[i] ? pl_splitmix64(f.colour[i]) : 0;
    *out = sum != 0 ? sum : 1;
    return code;
}
