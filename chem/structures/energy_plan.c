/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/structures/energy_plan.h"

#include <math.h>
#include <string.h>

static const double radian = 57.29577951308232;
static const double energy_unit = 143.9325;                          /* kcal/mol of 1 md A */
static const double stretch_bend_unit = 2.51210 * 57.29577951308232; /* of 1 md, from degrees */

void ch_to_columns(float *x, int32_t stride, const float (*xyz)[3], int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        for (int c = 0; c < 3; c++)
            x[c * stride + i] = xyz[i][c];
}

void ch_from_columns(float (*xyz)[3], const float *x, int32_t stride, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        for (int c = 0; c < 3; c++)
            xyz[i][c] = x[c * stride + i];
}

double ch_energy_gradient(const ch_energy_plan *plan, const ch_kernels *kernels, const float (*xyz)[3], float (*gradient)[3],
                          float *work)
{
    const size_t s = (size_t)plan->stride;
    double e = 0;

    memset(work, 0, 6 * s * sizeof *work);
    ch_to_columns(work, plan->stride, xyz, plan->n_atoms);
    e = kernels->energy(plan, work, work + 3 * s, work + 6 * s);
    if (gradient != NULL)
        ch_from_columns(gradient, work + 3 * s, plan->stride, plan->n_atoms);
    return e;
}

/* A list of terms becomes vectors of W. Neighbours in the list, which share atoms, go to different vectors: additions to one
 * atom within a vector would wait for each other. */
typedef struct layout {
    int32_t *atoms; /* [vectors][n_atoms][W] */
    float *params;  /* [vectors][n_params][W] */
    int32_t n, vectors, width, n_atoms, n_params;
} layout;

static bool layout_make(layout *l, int32_t n, int32_t width, int32_t n_atoms, int32_t n_params, pl_arena *mem)
{
    *l = (layout){ .n = n, .vectors = (n + width - 1) / width, .width = width, .n_atoms = n_atoms, .n_params = n_params };
    l->atoms = PL_NEW(mem, int32_t, (size_t)l->vectors * (size_t)(n_atoms * width) + 1);
    l->params = ch_floats(mem, (int64_t)l->vectors * n_params * width + 1);
    return l->atoms != NULL && l->params != NULL;
}

/* Where lane `at` of the vectors reads its term, and whether it only fills. */
static int32_t term_of(const layout *l, int32_t vector, int32_t lane, bool *fills)
{
    const int32_t term = lane * l->vectors + vector;

    *fills = term >= l->n;
    return *fills ? vector : term;
}

static void put_atoms(const layout *l, int32_t vector, int32_t lane, const int32_t *atoms)
{
    for (int32_t k = 0; k < l->n_atoms; k++)
        l->atoms[(vector * l->n_atoms + k) * l->width + lane] = 4 * atoms[k];
}

/* The first n_force parameters are force constants: 0 where the lane only fills. */
static void put_params(const layout *l, int32_t vector, int32_t lane, const double *params, bool fills, unsigned forces)
{
    for (int32_t k = 0; k < l->n_params; k++)
        l->params[(vector * l->n_params + k) * l->width + lane] = fills && (forces >> k & 1) ? 0 : (float)params[k];
}

static bool plan_bonds(ch_energy_plan *out, const ch_terms *t, pl_arena *mem)
{
    layout l;
    bool fills = false;

    if (!layout_make(&l, t->n_bonds, out->width, 2, 2, mem))
        return false;
    for (int32_t v = 0; v < l.vectors; v++)
        for (int32_t lane = 0; lane < l.width; lane++) {
            const ch_bond_term *b = &t->bonds[term_of(&l, v, lane, &fills)];
            put_atoms(&l, v, lane, (int32_t[]){ b->i, b->j });
            put_params(&l, v, lane, (double[]){ energy_unit * b->k, b->r0 }, fills, 1);
        }
    out->n_bonds = l.vectors;
    out->bond_atoms = l.atoms;
    out->bond_params = l.params;
    return true;
}

/* An angle and its stretch-bend. */
typedef struct bent {
    int32_t atom[3];
    double of[CH_ANGLE_PARAMS];
} bent;

static void add_angle(bent *to, const ch_angle_term *a)
{
    *to = (bent){ { a->i, a->j, a->k }, { 0 } };
    to->of[a->linear ? 2 : 0] = energy_unit * a->ka;
    to->of[1] = a->theta0 / radian;
}

static void add_stretch(bent *to, const ch_stretch_bend_term *s)
{
    const bool same = to->atom[0] == s->i;

    to->of[1] = s->theta0 / radian;
    to->of[3] = stretch_bend_unit * (same ? s->k_ij : s->k_kj);
    to->of[4] = stretch_bend_unit * (same ? s->k_kj : s->k_ij);
    to->of[5] = same ? s->r0_ij : s->r0_kj;
    to->of[6] = same ? s->r0_kj : s->r0_ij;
}

/* The angle of a stretch-bend: one of those that end in the chain of its centre. */
static int32_t angle_of(const bent *all, const int32_t *first, const int32_t *next, const ch_stretch_bend_term *s)
{
    for (int32_t a = first[s->j]; a >= 0; a = next[a])
        if ((all[a].atom[0] == s->i && all[a].atom[2] == s->k) || (all[a].atom[0] == s->k && all[a].atom[2] == s->i))
            return a;
    return -1;
}

static int32_t join_angles(bent *all, const ch_terms *t, int32_t *first, int32_t *next)
{
    int32_t n = t->n_angles;

    for (int32_t i = 0; i < t->n_atoms; i++)
        first[i] = -1;
    for (int32_t a = 0; a < n; a++) {
        add_angle(&all[a], &t->angles[a]);
        next[a] = first[t->angles[a].j];
        first[t->angles[a].j] = a;
    }
    for (int32_t k = 0; k < t->n_stretch_bends; k++) {
        const ch_stretch_bend_term *s = &t->stretch_bends[k];
        const int32_t a = angle_of(all, first, next, s);
        if (a < 0)
            all[n].atom[0] = s->i, all[n].atom[1] = s->j, all[n].atom[2] = s->k;
        add_stretch(&all[a < 0 ? n++ : a], s);
    }
    return n;
}

static bool plan_angles(ch_energy_plan *out, const ch_terms *t, pl_arena *mem)
{
    bent *all = PL_NEW(mem, bent, t->n_angles + t->n_stretch_bends + 1);
    int32_t *first = PL_NEW(mem, int32_t, t->n_atoms + 1), *next = PL_NEW(mem, int32_t, t->n_angles + 1);
    layout l;
    bool fills = false;

    if (all == NULL || first == NULL || next == NULL ||
        !layout_make(&l, join_angles(all, t, first, next), out->width, 3, CH_ANGLE_PARAMS, mem))
        return false;
    for (int32_t v = 0; v < l.vectors; v++)
        for (int32_t lane = 0; lane < l.width; lane++) {
            const bent *a = &all[term_of(&l, v, lane, &fills)];
            put_atoms(&l, v, lane, a->atom);
            put_params(&l, v, lane, a->of, fills, 1 | 4 | 8 | 16);
        }
    out->n_angles = l.vectors;
    out->angle_atoms = l.atoms;
    out->angle_params = l.params;
    return true;
}

/* The three angles of one centre. */
typedef struct plane {
    int32_t atom[4];
    double of[3];
} plane;

/* The group of a term, made if there is none: terms of one centre mostly follow each other. */
static plane *plane_of(plane *all, int32_t *n, const ch_out_of_plane_term *t, int *slot)
{
    for (int32_t g = *n - 1; g >= 0; g--) {
        const int32_t *a = all[g].atom;
        for (*slot = 0; *slot < 3; (*slot)++)
            if (a[0] == t->j && a[1 + *slot] == t->l && a[1] + a[2] + a[3] == t->i + t->k + t->l)
                return &all[g];
    }
    all[*n] = (plane){ { t->j, t->i, t->k, t->l }, { 0 } };
    *slot = 2;
    return &all[(*n)++];
}

static bool plan_planes(ch_energy_plan *out, const ch_terms *t, pl_arena *mem)
{
    plane *all = PL_NEW(mem, plane, t->n_out_of_planes + 1);
    layout l;
    int32_t n = 0;
    bool fills = false;

    for (int32_t k = 0; all != NULL && k < t->n_out_of_planes; k++) {
        int slot = 0;
        plane *p = plane_of(all, &n, &t->out_of_planes[k], &slot);
        p->of[slot] += energy_unit * t->out_of_planes[k].koop;
    }
    if (all == NULL || !layout_make(&l, n, out->width, 4, 3, mem))
        return false;
    for (int32_t v = 0; v < l.vectors; v++)
        for (int32_t lane = 0; lane < l.width; lane++) {
            const plane *p = &all[term_of(&l, v, lane, &fills)];
            put_atoms(&l, v, lane, p->atom);
            put_params(&l, v, lane, p->of, fills, 7);
        }
    out->n_planes = l.vectors;
    out->plane_atoms = l.atoms;
    out->plane_params = l.params;
    return true;
}

static bool plan_torsions(ch_energy_plan *out, const ch_terms *t, pl_arena *mem)
{
    layout l;
    bool fills = false;

    if (!layout_make(&l, t->n_torsions, out->width, 4, 3, mem))
        return false;
    for (int32_t v = 0; v < l.vectors; v++)
        for (int32_t lane = 0; lane < l.width; lane++) {
            const ch_torsion_term *s = &t->torsions[term_of(&l, v, lane, &fills)];
            put_atoms(&l, v, lane, (int32_t[]){ s->i, s->j, s->k, s->l });
            put_params(&l, v, lane, (double[]){ s->v1, s->v2, s->v3 }, fills, 7);
        }
    out->n_torsions = l.vectors;
    out->torsion_atoms = l.atoms;
    out->torsion_params = l.params;
    return true;
}

/* Vectors before row i: row k has those from k / W to the last. */
static int64_t vectors_before(int32_t i, int32_t n, int32_t width)
{
    const int64_t all = (n + width - 1) / width, full = i / width;

    return i * all - width * (full * (full - 1) / 2) - (i - full * width) * full;
}

static bool plan_pairs(ch_energy_plan *out, const ch_terms *t, pl_arena *mem)
{
    const int32_t n = t->n_atoms, w = out->width;
    const int64_t vectors = vectors_before(n, n, w);
    float *of = ch_floats(mem, vectors * 3 * w + 1);

    if (of == NULL)
        return false;
    for (int64_t v = 0; v < vectors; v++)
        for (int32_t lane = 0; lane < w; lane++)
            of[v * 3 * w + lane] = 0.3f;
    for (int32_t k = 0; k < t->n_pairs; k++) {
        const ch_pair_term *p = &t->pairs[k];
        float *at = of + (vectors_before(p->i, n, w) + p->j / w - p->i / w) * 3 * w + p->j % w;
        at[0] = (float)(1 / p->r_star);
        at[w] = (float)p->epsilon;
        at[2 * w] = (float)p->charges;
    }
    out->pairs = of;
    return true;
}

static bool within(int32_t n, const int32_t *atoms, int count)
{
    bool good = true;

    for (int a = 0; a < count; a++) {
        good = good && atoms[a] >= 0 && atoms[a] < n;
        for (int b = 0; b < a; b++)
            good = good && atoms[a] != atoms[b];
    }
    return good;
}

static bool terms_make_sense(const ch_terms *t)
{
    bool good = t->n_atoms >= 0;

    for (int32_t k = 0; good && k < t->n_bonds; k++)
        good = within(t->n_atoms, &t->bonds[k].i, 2) && t->bonds[k].r0 > 0 && isfinite(t->bonds[k].k);
    for (int32_t k = 0; good && k < t->n_angles; k++)
        good = within(t->n_atoms, &t->angles[k].i, 3) && isfinite(t->angles[k].ka) && isfinite(t->angles[k].theta0);
    for (int32_t k = 0; good && k < t->n_stretch_bends; k++)
        good = within(t->n_atoms, &t->stretch_bends[k].i, 3);
    for (int32_t k = 0; good && k < t->n_out_of_planes; k++)
        good = within(t->n_atoms, &t->out_of_planes[k].i, 4);
    for (int32_t k = 0; good && k < t->n_torsions; k++)
        good = within(t->n_atoms, &t->torsions[k].i, 4);
    for (int32_t k = 0; good && k < t->n_pairs; k++)
        good = within(t->n_atoms, &t->pairs[k].i, 2) && t->pairs[k].i < t->pairs[k].j && t->pairs[k].r_star > 0;
    return good;
}

pl_code ch_energy_plan_make(ch_energy_plan *out, const ch_terms *terms, const ch_kernels *kernels, pl_arena *mem, pl_error *err)
{
    *out = (ch_energy_plan){ .n_atoms = terms->n_atoms, .stride = ch_stride(terms->n_atoms), .width = kernels->width };
    if (!terms_make_sense(terms))
        return pl_fail(err, PL_EINPUT, "a force field term names an atom that is not there, or a length that is not positive");
    if (!plan_bonds(out, terms, mem) || !plan_angles(out, terms, mem) || !plan_planes(out, terms, mem) ||
        !plan_torsions(out, terms, mem) || !plan_pairs(out, terms, mem))
        return pl_fail(err, PL_ENOMEM, "no memory for the force field of %d atoms", (int)terms->n_atoms);
    return PL_OK;
}
