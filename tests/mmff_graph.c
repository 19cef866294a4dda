/* SPDX-License-Identifier: Apache-2.0 */
#include "mmff_graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chem/structures/energy.h"

enum { MAX_BONDS = 4 * GRAPH_MAX_ATOMS };

typedef struct {
    int32_t n, n_bonds;
    uint8_t z[GRAPH_MAX_ATOMS], used[GRAPH_MAX_ATOMS];
    int8_t charge[GRAPH_MAX_ATOMS];
    int32_t bond[MAX_BONDS][3];
} graph;

static const uint8_t elements[16] = { 6, 6, 6, 6, 6, 6, 7, 7, 7, 8, 8, 16, 15, 14, 9, 5 };

static int usual_valence(int z, int charge)
{
    switch (z) {
    case 6:
    case 14: return 4 - abs(charge);
    case 7:
    case 15: return 3 + charge;
    case 8:
    case 16: return 2 + charge;
    case 5: return 3;
    default: return 1;
    }
}

static void join(graph *g, int32_t i, int32_t j, int order)
{
    if (i == j || g->n_bonds == MAX_BONDS)
        return;
    for (int32_t b = 0; b < g->n_bonds; b++)
        if ((g->bond[b][0] == i && g->bond[b][1] == j) || (g->bond[b][0] == j && g->bond[b][1] == i))
            return;
    g->bond[g->n_bonds][0] = i < j ? i : j;
    g->bond[g->n_bonds][1] = i < j ? j : i;
    g->bond[g->n_bonds++][2] = order;
    g->used[i] = (uint8_t)(g->used[i] + order);
    g->used[j] = (uint8_t)(g->used[j] + order);
}

static int32_t add_atom(graph *g, uint8_t z)
{
    g->z[g->n] = z;
    return g->n++;
}

static void step(graph *g, uint8_t what, uint8_t where)
{
    const int32_t at = g->n > 0 ? where % g->n : 0;
    const int order = what >> 4 & 3;

    if (g->n == 0) {
        (void)add_atom(g, elements[what & 15]);
    } else if (what >> 6 == 3) {
        const int left = usual_valence(g->z[at], g->charge[at]) - g->used[at];
        const int32_t last = g->n - 1 - (what & 7) % g->n;
        if (left > 0 || (what & 8))
            join(g, at, last, order > 1 && left > 1 ? 2 : 1);
    } else if (what >> 6 == 2 && (what & 15) < 3) {
        g->charge[at] = (int8_t)((what & 15) - 1);
    } else if (g->n < GRAPH_MAX_ATOMS / 4) {
        const int left = usual_valence(g->z[at], g->charge[at]) - g->used[at];
        int drawn = order < left ? order : left;
        drawn = drawn < 1 ? 1 : drawn;
        join(g, at, add_atom(g, elements[what & 15]), drawn);
    }
}

static void fill(graph *g)
{
    const int32_t heavy = g->n;

    for (int32_t i = 0; i < heavy; i++) {
        const int left = usual_valence(g->z[i], g->charge[i]) - g->used[i];
        for (int k = 0; k < left && g->n < GRAPH_MAX_ATOMS; k++)
            join(g, i, add_atom(g, 1), 1);
    }
}

static int compare_bonds(const void *a, const void *b)
{
    const int32_t *x = a, *y = b;
    return x[0] != y[0] ? x[0] - y[0] : x[1] - y[1];
}

ch_mol graph_molecule(const uint8_t *bytes, size_t n, pl_arena *mem)
{
    graph *g = PL_NEW(mem, graph, 1);
    ch_mol mol;

    if (g == NULL)
        abort();
    for (size_t k = 0; k + 1 < n; k += 2)
        step(g, bytes[k], bytes[k + 1]);
    fill(g);
    qsort(g->bond, (size_t)g->n_bonds, sizeof *g->bond, compare_bonds);
    if (ch_mol_alloc(&mol, g->n, g->n_bonds, mem, NULL) != PL_OK)
        abort();
    memcpy(mol.z, g->z, (size_t)g->n);
    memcpy(mol.charge, g->charge, (size_t)g->n);
    for (int32_t b = 0; b < g->n_bonds; b++) {
        memcpy(mol.bond[b], g->bond[b], sizeof mol.bond[b]);
        mol.order[b] = (uint8_t)g->bond[b][2];
    }
    for (int32_t i = 0; i < g->n; i++) {
        mol.xyz[i][0] = (float)i * 0.31f;
        mol.xyz[i][1] = 3.0f * sinf((float)i);
        mol.xyz[i][2] = 3.0f * cosf((float)i * 1.7f);
    }
    return mol;
}

/* ---- promises ---- */

static void must(bool so)
{
    if (!so)
        abort();
}

static void terms_check(const ch_terms *t, const ch_mol *mol)
{
    double sum = 0;
    int charge = 0;

    must(t->n_atoms == mol->n_atoms && t->n_bonds == mol->n_bonds);
    for (int32_t i = 0; i < t->n_atoms; i++) {
        must(t->type[i] >= 1 && t->type[i] <= 99 && isfinite(t->charge[i]));
        sum += t->charge[i];
        charge += mol->charge[i];
    }
    must(fabs(sum - charge) <= 1e-6);
    for (int32_t k = 0; k < t->n_bonds; k++)
        must(t->bonds[k].k > 0 && t->bonds[k].r0 > 0.5 && t->bonds[k].r0 < 3.5);
    for (int32_t k = 0; k < t->n_angles; k++)
        must(t->angles[k].ka > 0 && t->angles[k].theta0 > 0 && t->angles[k].theta0 <= 180);
    for (int32_t k = 0; k < t->n_stretch_bends; k++)
        must(isfinite(t->stretch_bends[k].k_ij) && isfinite(t->stretch_bends[k].k_kj));
    for (int32_t k = 0; k < t->n_torsions; k++)
        must(isfinite(t->torsions[k].v1) && isfinite(t->torsions[k].v2) && isfinite(t->torsions[k].v3));
    for (int32_t k = 0; k < t->n_pairs; k++) {
        const ch_pair_term *p = &t->pairs[k];
        must(p->i < p->j && p->j < t->n_atoms && p->r_star > 0.5 && p->r_star < 8 && p->epsilon > 0 && isfinite(p->charges));
        must(k == 0 || p[-1].i < p->i || (p[-1].i == p->i && p[-1].j < p->j));
    }
}

bool graph_check(const ch_mol *mol, const ch_mmff *mmff, pl_arena *mem)
{
    const ch_mmff_options options = { .mmff94s = mol->n_atoms % 2 == 1 };
    double sums[CH_N_TERM_CLASSES];
    pl_error err = { 0 };
    ch_terms terms;

    if (ch_terms_make(&terms, mol, mmff, &options, mem, &err) != PL_OK) {
        must(err.code == PL_EINPUT && err.text[0] != '\0');
        return false;
    }
    terms_check(&terms, mol);
    double(*xyz)[3] = pl_arena_get(mem, (size_t)mol->n_atoms, sizeof *xyz);
    must(xyz != NULL);
    for (int32_t i = 0; i < mol->n_atoms; i++)
        for (int x = 0; x < 3; x++)
            xyz[i][x] = (double)mol->xyz[i][x];
    ch_energy(sums, NULL, &terms, (const double(*)[3])xyz);
    must(isfinite(ch_energy_total(sums)));
    return true;
}
