/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/features/shape.h"

#include "chem/features/element_table.h"

/* The arrays of a shape, writable. */
typedef struct draft {
    const ch_graph *g;
    int32_t n, n_bonds;
    int32_t *place; /* [n_nodes] number of a heavy atom; -1: hydrogen */
    uint8_t *z, *type;
    int32_t *charge, *hydrogens, *row, (*bond)[2], *valence;
    ch_link *link;
    bool *aromatic, *conjugated;
    ch_hybrid *hybrid;
} draft;

static bool draft_alloc(draft *d, pl_arena *mem)
{
    const size_t n = (size_t)d->g->n_nodes + 2, m = (size_t)d->g->n_pairs + 1;

    d->place = PL_NEW(mem, int32_t, n);
    d->z = PL_NEW(mem, uint8_t, n);
    d->charge = PL_NEW(mem, int32_t, n);
    d->hydrogens = PL_NEW(mem, int32_t, n);
    d->row = PL_NEW(mem, int32_t, n);
    d->valence = PL_NEW(mem, int32_t, n);
    d->aromatic = PL_NEW(mem, bool, n);
    d->hybrid = PL_NEW(mem, ch_hybrid, n);
    d->bond = pl_arena_get(mem, m, sizeof *d->bond);
    d->type = PL_NEW(mem, uint8_t, m);
    d->link = PL_NEW(mem, ch_link, 2 * m);
    d->conjugated = PL_NEW(mem, bool, m);
    return d->place != NULL && d->z != NULL && d->charge != NULL && d->hydrogens != NULL && d->row != NULL && d->valence != NULL &&
           d->aromatic != NULL && d->hybrid != NULL && d->bond != NULL && d->type != NULL && d->link != NULL &&
           d->conjugated != NULL;
}

static void number_atoms(draft *d, ch_shape *s)
{
    for (int32_t i = 0; i < d->g->n_nodes; i++) {
        d->place[i] = d->g->z[i] == 1 ? -1 : d->n;
        if (d->g->z[i] == 1) {
            s->n_hydrogens++;
            s->charge_loose += d->g->charge[i];
            continue;
        }
        d->z[d->n] = d->g->z[i];
        d->charge[d->n++] = (int32_t)d->g->charge[i];
    }
}

/* Every bond once, from the edge that represents its pair; hydrogens become numbers. */
static void take_bonds(draft *d)
{
    const ch_graph *g = d->g;

    for (int32_t i = 0; i < g->n_nodes; i++)
        for (int32_t e = g->row[i]; e < g->row[i + 1]; e++) {
            const int32_t a = d->place[g->src[e]], b = d->place[i], p = g->pair[e];
            if (g->pair_edge[p] != e || g->type[p] == CH_PAIR_NOT_BONDED)
                continue;
            if (a >= 0 && b >= 0) {
                d->bond[d->n_bonds][0] = a;
                d->bond[d->n_bonds][1] = b;
                d->type[d->n_bonds++] = g->type[p];
            } else if (a >= 0 || b >= 0) {
                d->hydrogens[a >= 0 ? a : b]++;
            }
        }
}

/* Hydrogens that no heavy atom has: of H2, of a proton. */
static void count_loose(const draft *d, ch_shape *s)
{
    const ch_graph *g = d->g;

    for (int32_t i = 0; i < g->n_nodes; i++) {
        bool bonded = false, held = false;
        for (int32_t e = g->row[i]; d->place[i] < 0 && e < g->row[i + 1]; e++) {
            const bool is_bond = g->type[g->pair[e]] != CH_PAIR_NOT_BONDED;
            held |= is_bond && d->place[g->src[e]] >= 0;
            bonded |= is_bond;
        }
        s->n_loose += d->place[i] < 0 && !held;
        s->n_loose_bonded += d->place[i] < 0 && !held && bonded;
    }
}

static void join(draft *d)
{
    for (int32_t b = 0; b < d->n_bonds; b++)
        for (int k = 0; k < 2; k++)
            d->row[d->bond[b][k] + 2]++;
    for (int32_t i = 0; i < d->n; i++)
        d->row[i + 2] += d->row[i + 1]; /* row[i + 1] runs from the first to the last of i */
    for (int32_t b = 0; b < d->n_bonds; b++)
        for (int k = 0; k < 2; k++)
            d->link[d->row[d->bond[b][k] + 1]++] = (ch_link){ d->bond[b][!k], b, d->type[b] };
}

/* ---- valences ---- */

static int32_t smaller(int32_t a, int32_t b) { return a < b ? a : b; }

/* An aromatic bond counts as one and a half, but not beyond the usual valence: two of pyrrole's nitrogen, three of naphthalene's carbon. */
static int32_t valence_of(const draft *d, int32_t i)
{
    int32_t halves = 2 * d->hydrogens[i], usual = ch_element_rows[d->z[i]].valence;
    static const uint8_t twice[] = { 2, 4, 6, 3 };

    for (int32_t k = d->row[i]; k < d->row[i + 1]; k++)
        halves += twice[d->link[k].type];
    if (!d->aromatic[i])
        return halves / 2;
    usual += d->z[i] == 6 ? 0 : d->charge[i];
    return usual > 0 ? smaller(halves / 2, usual) : halves / 2;
}

/* ---- conjugation and hybridisation (as RDKit perceives them: Gasteiger charges depend on it) ---- */

static int32_t connections(const draft *d, int32_t i) { return d->row[i + 1] - d->row[i] + d->hydrogens[i]; }

/* Electrons that the atom can give to a pi system. */
static int32_t pi_electrons(const draft *d, int32_t i)
{
    const ch_element_row *of = &ch_element_rows[d->z[i]];
    const int32_t lone = of->outer - of->valence - d->charge[i];

    if (of->valence <= 1 || connections(d, i) > 3)
        return 0;
    return of->valence - connections(d, i) + (lone > 0 ? lone : 0);
}

static bool can_conjugate(const draft *d, int32_t i)
{
    const ch_element_row *of = &ch_element_rows[d->z[i]];

    if (d->charge[i] == 0 && of->valence > 0 && d->valence[i] > of->valence)
        return false; /* more than the usual valence */
    if (d->z[i] > 10 && (of->outer == 5 || (of->outer == 6 && connections(d, i) >= 2)))
        return false;
    return pi_electrons(d, i) > 0;
}

/* Bonds that meet a multiple bond at atom i. */
static void conjugate(const draft *d, int32_t i)
{
    if (!can_conjugate(d, i) || connections(d, i) < 2 || connections(d, i) > 3)
        return;
    for (int32_t k = d->row[i]; k < d->row[i + 1]; k++) {
        if (d->link[k].type == CH_PAIR_SINGLE || !can_conjugate(d, d->link[k].to))
            continue;
        for (int32_t m = d->row[i]; m < d->row[i + 1]; m++)
            if (m != k && can_conjugate(d, d->link[m].to) && connections(d, d->link[m].to) <= 3)
                d->conjugated[d->link[k].bond] = d->conjugated[d->link[m].bond] = true;
    }
}

/* Bonds, lone pairs and single electrons: 2 sp, 3 sp2, 4 sp3. */
static int32_t orbitals(const draft *d, int32_t i)
{
    const int32_t v = d->valence[i], left = ch_element_rows[d->z[i]].outer - v - d->charge[i], missing = 8 - 2 * v - left;
    int32_t single = 0;

    if (missing > 0 && left > 0)
        single = smaller(left, missing);
    return connections(d, i) + single + (left - single) / 2;
}

static ch_hybrid hybrid_of(const draft *d, int32_t i)
{
    bool conjugated = false;

    for (int32_t k = d->row[i]; k < d->row[i + 1]; k++)
        conjugated |= d->conjugated[d->link[k].bond];
    switch (orbitals(d, i)) {
    case 2: return CH_HYBRID_SP;
    case 3: return CH_HYBRID_SP2;
    case 4: return conjugated && connections(d, i) <= 3 ? CH_HYBRID_SP2 : CH_HYBRID_SP3;
    default: return CH_HYBRID_NONE;
    }
}

static void perceive(draft *d)
{
    for (int32_t b = 0; b < d->n_bonds; b++)
        if (d->type[b] == CH_PAIR_AROMATIC)
            d->conjugated[b] = d->aromatic[d->bond[b][0]] = d->aromatic[d->bond[b][1]] = true;
    for (int32_t i = 0; i < d->n; i++)
        d->valence[i] = valence_of(d, i);
    for (int32_t i = 0; i < d->n; i++)
        conjugate(d, i);
    for (int32_t i = 0; i < d->n; i++)
        d->hybrid[i] = hybrid_of(d, i);
}

pl_code ch_shape_make(ch_shape *out, const ch_graph *g, pl_arena *mem, pl_error *err)
{
    draft d = { .g = g };

    *out = (ch_shape){ 0 };
    if (!draft_alloc(&d, mem))
        return pl_fail(err, PL_ENOMEM, "a molecule of %d atoms", g->n_nodes);
    number_atoms(&d, out);
    take_bonds(&d);
    count_loose(&d, out);
    join(&d);
    perceive(&d);
    out->n = d.n;
    out->n_bonds = d.n_bonds;
    out->z = d.z;
    out->charge = d.charge;
    out->hydrogens = d.hydrogens;
    out->row = d.row;
    out->link = d.link;
    out->bond = (const int32_t(*)[2])d.bond;
    out->type = d.type;
    out->aromatic = d.aromatic;
    out->valence = d.valence;
    out->conjugated = d.conjugated;
    out->hybrid = d.hybrid;
    return PL_OK;
}
