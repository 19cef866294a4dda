/* SPDX-License-Identifier: Apache-2.0 */
#include "made_mol.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double distance2(const float a[3], const float b[3])
{
    double s = 0;

    for (int k = 0; k < 3; k++)
        s += ((double)a[k] - b[k]) * ((double)a[k] - b[k]);
    return s;
}

static int by_ends(const void *a, const void *b)
{
    const int32_t *x = a, *y = b;

    if (x[0] != y[0])
        return x[0] < y[0] ? -1 : 1;
    return (x[1] > y[1]) - (x[1] < y[1]);
}

static ch_mol mol_room(int32_t n_atoms, int32_t n_bonds, pl_arena *mem)
{
    ch_mol m = { .n_atoms = n_atoms, .n_bonds = n_bonds };

    m.z = PL_NEW(mem, uint8_t, n_atoms);
    m.charge = PL_NEW(mem, int8_t, n_atoms);
    m.xyz = pl_arena_get(mem, (size_t)n_atoms, sizeof *m.xyz);
    m.bond = pl_arena_get(mem, (size_t)n_bonds + 1, sizeof *m.bond);
    m.order = PL_NEW(mem, uint8_t, n_bonds + 1);
    return m;
}

static int32_t nearest_before(const ch_mol *m, int32_t i, double *d2)
{
    int32_t best = -1;

    *d2 = INFINITY;
    for (int32_t j = 0; j < i; j++) {
        double d = distance2(m->xyz[i], m->xyz[j]);
        if (d < *d2) {
            *d2 = d;
            best = j;
        }
    }
    return best;
}

ch_mol made_mol(int32_t n, double volume, uint64_t seed, pl_arena *mem)
{
    static const uint8_t elements[5] = { 1, 6, 7, 8, 9 };
    ch_mol m = mol_room(n, n > 0 ? n - 1 : 0, mem);
    pl_rng r = pl_rng_at(seed, 0, 0);
    double edge = cbrt(volume * n);

    for (int32_t i = 0; i < n; i++) {
        double d2;
        int32_t to;
        do {
            for (int a = 0; a < 3; a++)
                m.xyz[i][a] = (float)(edge * pl_rng_real(&r));
            to = nearest_before(&m, i, &d2);
        } while (d2 < 0.36);
        m.z[i] = elements[pl_rng_below(&r, 5)];
        m.charge[i] = (int8_t)((int)pl_rng_below(&r, 3) - 1);
        if (i > 0) {
            m.bond[i - 1][0] = to;
            m.bond[i - 1][1] = i;
            m.order[i - 1] = (uint8_t)(1 + (to + i) % 4);
        }
    }
    qsort(m.bond, (size_t)m.n_bonds, sizeof *m.bond, by_ends);
    for (int32_t b = 0; b < m.n_bonds; b++)
        m.order[b] = (uint8_t)(1 + (m.bond[b][0] + m.bond[b][1]) % 4);
    return m;
}

ch_mol made_permuted(const ch_mol *mol, const int32_t *to, pl_arena *mem)
{
    typedef struct row {
        int32_t ends[2];
        uint8_t order;
    } row;
    ch_mol m = mol_room(mol->n_atoms, mol->n_bonds, mem);
    row *rows = PL_NEW(mem, row, mol->n_bonds + 1);

    m.isotope = mol->isotope != NULL ? PL_NEW(mem, uint16_t, mol->n_atoms) : NULL;
    for (int32_t i = 0; i < mol->n_atoms; i++) {
        m.z[to[i]] = mol->z[i];
        m.charge[to[i]] = mol->charge[i];
        if (mol->xyz != NULL)
            memcpy(m.xyz[to[i]], mol->xyz[i], sizeof *m.xyz);
        if (mol->isotope != NULL)
            m.isotope[to[i]] = mol->isotope[i];
    }
    for (int32_t b = 0; b < mol->n_bonds; b++) {
        int32_t x = to[mol->bond[b][0]], y = to[mol->bond[b][1]];
        rows[b] = (row){ { x < y ? x : y, x < y ? y : x }, mol->order[b] };
    }
    qsort(rows, (size_t)mol->n_bonds, sizeof *rows, by_ends);
    for (int32_t b = 0; b < mol->n_bonds; b++) {
        memcpy(m.bond[b], rows[b].ends, sizeof *m.bond);
        m.order[b] = rows[b].order;
    }
    return m;
}

int32_t *made_order(int32_t n, uint64_t seed, pl_arena *mem)
{
    int32_t *to = PL_NEW(mem, int32_t, n);
    pl_rng r = pl_rng_at(seed, 1, 0);

    for (int32_t i = 0; i < n; i++)
        to[i] = i;
    for (int32_t i = n - 1; i > 0; i--) {
        int32_t j = (int32_t)pl_rng_below(&r, (uint64_t)i + 1), keep = to[i];
        to[i] = to[j];
        to[j] = keep;
    }
    return to;
}
