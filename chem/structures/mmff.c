/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "chem/structures/mmff.h"
#include "chem/structures/rules.h"
#include "chem/structures/types.h"

static const double COULOMB = 332.0716; /* kcal A/mol, of two charges of 1 in vacuum */

/* What is known of a molecule while its terms are made. */
typedef struct {
    const ch_perceived *p;
    const ch_mmff *mmff;
    bool mmff94s, cumulenes;
    double coulomb; /* the same, in the medium asked for */
    const uint8_t *type;
    ch_bond_sight *bonds; /* [n_bonds] */
    int32_t room[CH_N_TERM_CLASSES];
    ch_terms *out;
} terms_work;

static bool bonded(const ch_perceived *p, int32_t i, int32_t j) { return ch_perceived_bond(p, i, j) >= 0; }

/* ---- bonds and charges ---- */

static pl_code bonds_make(terms_work *w, pl_error *err)
{
    const ch_perceived *p = w->p;

    for (int32_t b = 0; b < p->n_bonds; b++) {
        const int32_t i = p->bond[b][0], j = p->bond[b][1];
        const ch_mmff_type *x = &w->mmff->type[w->type[i]], *y = &w->mmff->type[w->type[j]];
        ch_bond_sight *bond = &w->bonds[b];
        bond->order = p->order[b];
        bond->aromatic = p->aromatic_bond[b] != 0;
        bond->class =
            bond->order == 1 && !bond->aromatic && ((x->single_between && y->single_between) || (x->aromatic && y->aromatic));
        if (!ch_rule_bond(bond, w->mmff, w->type[i], w->type[j]))
            return ch_perceived_refuse(p, i, err, "MMFF94 has neither parameters nor a rule for one of its bonds");
        w->out->bonds[b] = (ch_bond_term){ i, j, bond->k, bond->r0 };
    }
    w->out->n_bonds = p->n_bonds;
    return PL_OK;
}

/* What a bond adds to the charge of its second atom and takes from the first. */
static double increment(const terms_work *w, int class, int i, int j)
{
    const double *row = ch_mmff_find(&w->mmff->charge, ch_mmff_key(class, i < j ? i : j, i < j ? j : i, 0, 0));

    if (row != NULL)
        return i <= j ? row[0] : -row[0];
    return w->mmff->type[j].increment - w->mmff->type[i].increment;
}

/* Paper II, equation 15: an atom keeps its formal charge but for the share that goes to each neighbour. */
static void charges_make(terms_work *w, const double *shared)
{
    const ch_perceived *p = w->p;
    double *charge = w->out->charge;

    for (int32_t i = 0; i < p->n_atoms; i++)
        charge[i] = (1.0 - p->n_neighbours[i] * w->mmff->type[w->type[i]].share) * shared[i];
    for (int32_t b = 0; b < p->n_bonds; b++) {
        const int32_t i = p->bond[b][0], j = p->bond[b][1];
        const double q = increment(w, w->bonds[b].class, w->type[i], w->type[j]);
        charge[i] += w->mmff->type[w->type[j]].share * shared[j] - q;
        charge[j] += w->mmff->type[w->type[i]].share * shared[i] + q;
    }
}

/* ---- angles and stretch-bends ---- */

/* 3 or 4 when the angle is in a ring of that size, also of bicyclo[1.1.0]butane, whose ring of 4 has a bond across. */
static int angle_ring(const ch_perceived *p, int32_t i, int32_t j, int32_t k)
{
    if (p->ring_sizes[j] == 0)
        return 0;
    if (bonded(p, i, k))
        return 3;
    for (int n = 0; n < p->n_neighbours[i]; n++) {
        const int32_t l = p->neighbour[i][n];
        if (l != j && bonded(p, l, k))
            return 4;
    }
    return 0;
}

static pl_code angle_make(terms_work *w, int32_t j, int a, int b, pl_error *err)
{
    const ch_perceived *p = w->p;
    ch_terms *out = w->out;
    const int32_t i = p->neighbour[j][a], k = p->neighbour[j][b];
    const int type[3] = { w->type[i], w->type[j], w->type[k] }, ring = angle_ring(p, i, j, k);
    const ch_bond_sight *ij = &w->bonds[p->edge[j][a]], *jk = &w->bonds[p->edge[j][b]];
    ch_angle_term *angle = &out->angles[out->n_angles++];

    *angle = (ch_angle_term){ .i = i, .j = j, .k = k, .linear = w->mmff->type[w->type[j]].linear };
    if (!ch_rule_angle(&angle->ka, &angle->theta0, w->mmff, ring, ij, jk, type))
        return ch_perceived_refuse(p, j, err, "MMFF94 has neither parameters nor a rule for one of its angles");
    if (angle->linear)
        return PL_OK;
    ch_stretch_bend_term term = { .i = i, .j = j, .k = k, .r0_ij = ij->r0, .r0_kj = jk->r0, .theta0 = angle->theta0 };
    ch_rule_stretch_bend(&term.k_ij, &term.k_kj, w->mmff, ring, ij, jk, type);
    out->stretch_bends[out->n_stretch_bends++] = term;
    return PL_OK;
}

static pl_code angles_make(terms_work *w, pl_error *err)
{
    for (int32_t j = 0; j < w->p->n_atoms; j++)
        for (int a = 0; a < w->p->n_neighbours[j]; a++)
            for (int b = a + 1; b < w->p->n_neighbours[j]; b++) {
                const pl_code code = angle_make(w, j, a, b, err);
                if (code != PL_OK)
                    return code;
            }
    return PL_OK;
}

/* ---- out of plane ---- */

static void out_of_planes_make(terms_work *w)
{
    const ch_perceived *p = w->p;
    ch_terms *out = w->out;

    for (int32_t j = 0; j < p->n_atoms; j++) {
        if (p->n_neighbours[j] != 3)
            continue;
        const int32_t *a = p->neighbour[j];
        const int others[3] = { w->type[a[0]], w->type[a[1]], w->type[a[2]] };
        const double koop = ch_rule_out_of_plane(w->mmff, w->mmff94s, w->type[j], others);
        if (koop == 0)
            continue;
        out->out_of_planes[out->n_out_of_planes++] = (ch_out_of_plane_term){ a[0], j, a[1], a[2], koop };
        out->out_of_planes[out->n_out_of_planes++] = (ch_out_of_plane_term){ a[0], j, a[2], a[1], koop };
        out->out_of_planes[out->n_out_of_planes++] = (ch_out_of_plane_term){ a[1], j, a[2], a[0], koop };
    }
}

/* ---- torsions ---- */

/* 4 or 5 when the four atoms are in a ring of that size without a shortcut. */
static int torsion_ring(const ch_perceived *p, int32_t i, int32_t j, int32_t k, int32_t l)
{
    if (!((p->ring_sizes[j] & p->ring_sizes[k]) & (1u << 4 | 1u << 5)) || bonded(p, i, k) || bonded(p, j, l))
        return 0;
    if (bonded(p, i, l))
        return 4;
    for (int n = 0; n < p->n_neighbours[i]; n++) {
        const int32_t m = p->neighbour[i][n];
        if (m != j && m != k && bonded(p, m, l) && !bonded(p, m, j) && !bonded(p, m, k))
            return 5;
    }
    return 0;
}

static void torsion_make(terms_work *w, int32_t b, int a, int d)
{
    const ch_perceived *p = w->p;
    const int32_t j = p->bond[b][0], k = p->bond[b][1], i = p->neighbour[j][a], l = p->neighbour[k][d];
    const int type[4] = { w->type[i], w->type[j], w->type[k], w->type[l] };
    const ch_bond_sight *const bonds[3] = { &w->bonds[p->edge[j][a]], &w->bonds[b], &w->bonds[p->edge[k][d]] };
    ch_torsion_term *term = &w->out->torsions[w->out->n_torsions];
    double v[3];

    if (!ch_rule_torsion(v, w->mmff, w->mmff94s, torsion_ring(p, i, j, k, l), bonds, type))
        return;
    *term = (ch_torsion_term){ i, j, k, l, v[0], v[1], v[2] };
    w->out->n_torsions++;
}

static void torsions_make(terms_work *w)
{
    const ch_perceived *p = w->p;

    for (int32_t b = 0; b < p->n_bonds; b++) {
        const int32_t j = p->bond[b][0], k = p->bond[b][1];
        if (w->mmff->type[w->type[j]].linear || w->mmff->type[w->type[k]].linear)
            continue;
        for (int a = 0; a < p->n_neighbours[j]; a++)
            for (int d = 0; d < p->n_neighbours[k]; d++)
                if (p->neighbour[j][a] != k && p->neighbour[k][d] != j && p->neighbour[j][a] != p->neighbour[k][d])
                    torsion_make(w, b, a, d);
    }
}

/* ---- cumulated double bonds ---- */

static const double cumulene_barrier = 40; /* kcal/mol, of a half turn; allene's was measured as 46 */

static bool is_cumulated(const ch_perceived *p, int32_t j)
{
    return p->z[j] == 6 && p->n_neighbours[j] == 2 && p->order[p->edge[j][0]] == 2 && p->order[p->edge[j][1]] == 2;
}

/* From the end j and its double bond to k: the other end, and in *before the atom in front of it. Returns the number of double bonds. */
static int follow(const ch_perceived *p, int32_t j, int32_t *k, int32_t *before)
{
    int n = 1;

    for (*before = j; is_cumulated(p, *k) && n < p->n_atoms; n++) {
        const int32_t next = p->neighbour[*k][0] == *before ? p->neighbour[*k][1] : p->neighbour[*k][0];
        *before = *k;
        *k = next;
    }
    return n;
}

/* One double bond and two single ones. */
static bool is_end(const ch_perceived *p, int32_t j) { return p->z[j] == 6 && p->n_neighbours[j] == 3 && p->valence[j] == 4; }

/* The ends of an even number of double bonds stand across each other, those of an odd number lie in one plane. */
static void cumulene_make(terms_work *w, int32_t j, int32_t k)
{
    const ch_perceived *p = w->p;
    int32_t end = k, before = j;
    const int n = follow(p, j, &end, &before);
    const double sign = n % 2 == 0 ? -1 : 1;

    if (n < 2 || !is_end(p, end) || end < j)
        return;
    for (int a = 0; a < 3; a++)
        for (int d = 0; d < 3; d++) {
            const int32_t i = p->neighbour[j][a], l = p->neighbour[end][d];
            if (i != k && l != before && i != l)
                w->out->torsions[w->out->n_torsions++] = (ch_torsion_term){ i, j, end, l, 0, sign * cumulene_barrier / 4, 0 };
        }
    w->out->offset += n % 2 == 0 ? cumulene_barrier : 0;
}

static void cumulenes_make(terms_work *w)
{
    const ch_perceived *p = w->p;

    for (int32_t b = 0; b < p->n_bonds; b++)
        for (int e = 0; p->order[b] == 2 && e < 2; e++)
            if (is_end(p, p->bond[b][e]))
                cumulene_make(w, p->bond[b][e], p->bond[b][1 - e]);
}

/* ---- pairs ---- */

/* distance[j]: bonds from i to j, up to three, for the atoms within reach; they are listed in `reached`. */
static int reach(uint8_t *distance, int32_t *reached, const ch_perceived *p, int32_t i)
{
    int n = 1, begin = 0;

    reached[0] = i;
    for (uint8_t steps = 1; steps <= 3; steps++) {
        const int end = n;
        for (; begin < end; begin++)
            for (int k = 0; k < p->n_neighbours[reached[begin]]; k++) {
                const int32_t j = p->neighbour[reached[begin]][k];
                if (j == i || distance[j] != 0)
                    continue;
                distance[j] = steps;
                reached[n++] = j;
            }
    }
    return n;
}

static pl_code pairs_make(terms_work *w, pl_arena *mem, pl_error *err)
{
    enum { MAX_REACHED = 1 + 4 + 12 + 36 };
    const int32_t n = w->p->n_atoms;
    uint8_t *distance = PL_NEW(mem, uint8_t, n);
    int32_t reached[MAX_REACHED];
    ch_terms *out = w->out;

    if (distance == NULL)
        return pl_fail(err, PL_ENOMEM, "pairs of atoms");
    for (int32_t i = 0; i < n; i++) {
        const int n_reached = reach(distance, reached, w->p, i);
        const double q = w->coulomb * out->charge[i];
        for (int32_t j = i + 1; j < n; j++) {
            if (distance[j] == 1 || distance[j] == 2)
                continue;
            out->pairs[out->n_pairs++] = (ch_pair_term){ .i = i,
                                                         .j = j,
                                                         .r_star = w->mmff->r_star[w->type[i]][w->type[j]],
                                                         .epsilon = w->mmff->epsilon[w->type[i]][w->type[j]],
                                                         .charges = (distance[j] == 3 ? 0.75 : 1.0) * q * out->charge[j] };
        }
        for (int k = 0; k < n_reached; k++)
            distance[reached[k]] = 0;
    }
    return PL_OK;
}

/* ---- all ---- */

/* Room for the terms that the neighbours allow. */
static pl_code room_make(terms_work *w, pl_arena *mem, pl_error *err)
{
    const ch_perceived *p = w->p;
    ch_terms *out = w->out;
    size_t n_angles = 0, n_planes = 0, n_torsions = 0;
    const size_t n = (size_t)p->n_atoms;

    for (size_t j = 0; j < n; j++) {
        n_angles += (size_t)p->n_neighbours[j] * (size_t)(p->n_neighbours[j] > 0 ? p->n_neighbours[j] - 1 : 0) / 2;
        n_planes += p->n_neighbours[j] == 3 ? 3 : 0;
        n_torsions += is_end(p, (int32_t)j) ? 4 : 0;
    }
    for (int32_t b = 0; b < p->n_bonds; b++)
        n_torsions += (size_t)(p->n_neighbours[p->bond[b][0]] - 1) * (size_t)(p->n_neighbours[p->bond[b][1]] - 1);
    w->bonds = PL_NEW(mem, ch_bond_sight, p->n_bonds);
    out->bonds = PL_NEW(mem, ch_bond_term, p->n_bonds);
    out->angles = PL_NEW(mem, ch_angle_term, n_angles);
    out->stretch_bends = PL_NEW(mem, ch_stretch_bend_term, n_angles);
    out->out_of_planes = PL_NEW(mem, ch_out_of_plane_term, n_planes);
    out->torsions = PL_NEW(mem, ch_torsion_term, n_torsions);
    out->pairs = pl_arena_raw(mem, (n * (n > 0 ? n - 1 : 0) / 2 + 1) * sizeof *out->pairs);
    out->charge = PL_NEW(mem, double, n);
    if (w->bonds == NULL || out->bonds == NULL || out->angles == NULL || out->stretch_bends == NULL || out->out_of_planes == NULL ||
        out->torsions == NULL || out->pairs == NULL || out->charge == NULL)
        return pl_fail(err, PL_ENOMEM, "terms of %d atoms", p->n_atoms);
    return PL_OK;
}

static pl_code terms_fill(terms_work *w, const double *shared, pl_arena *mem, pl_error *err)
{
    pl_code code = room_make(w, mem, err);

    if (code == PL_OK)
        code = bonds_make(w, err);
    if (code != PL_OK)
        return code;
    charges_make(w, shared);
    code = angles_make(w, err);
    if (code != PL_OK)
        return code;
    out_of_planes_make(w);
    torsions_make(w);
    if (w->cumulenes)
        cumulenes_make(w);
    return pairs_make(w, mem, err);
}

pl_code ch_terms_make(ch_terms *out, const ch_mol *mol, const ch_mmff *parameters, const ch_mmff_options *options, pl_arena *mem,
                      pl_error *err)
{
    ch_perceived perceived;
    terms_work w = { .p = &perceived,
                     .mmff = parameters,
                     .mmff94s = options->mmff94s,
                     .cumulenes = options->cumulenes,
                     .coulomb = options->dielectric > 0 ? COULOMB / options->dielectric : COULOMB,
                     .out = out };

    *out = (ch_terms){ .n_atoms = mol->n_atoms };
    if (mol->n_atoms > CH_TERMS_MAX_ATOMS)
        return pl_fail(err, PL_EINPUT, "%d atoms: more than the %d that terms are made of", mol->n_atoms, CH_TERMS_MAX_ATOMS);
    out->type = PL_NEW(mem, uint8_t, mol->n_atoms);
    double *shared = PL_NEW(mem, double, mol->n_atoms);
    if (out->type == NULL || shared == NULL)
        return pl_fail(err, PL_ENOMEM, "terms of %d atoms", mol->n_atoms);
    w.type = out->type;
    pl_code code = ch_perceive(&perceived, mol, mem, err);
    if (code == PL_OK)
        code = ch_types_find(out->type, &perceived, mem, err);
    if (code == PL_OK)
        code = ch_types_share_charges(shared, out->type, &perceived, err);
    return code != PL_OK ? code : terms_fill(&w, shared, mem, err);
}
