/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/structures/ideal.h"

#include <math.h>

static const double radian = 57.29577951308232;
static const double full = 6.283185307179586;

/* The place of a neighbour in its centre's list; -1: not a neighbour. */
static int32_t nth(const ch_cycles *c, int32_t centre, int32_t atom)
{
    for (int32_t k = c->first[centre]; k < c->first[centre + 1]; k++)
        if (c->neighbour[k] == atom)
            return k - c->first[centre];
    return -1;
}

static double *slot(const ch_ideal *x, int32_t a, int32_t b, int32_t c)
{
    const int32_t p = nth(x->cycles, b, a), q = nth(x->cycles, b, c);

    return p < 0 || q < 0 || p == q ? NULL : &x->angle[x->from[b] + ch_ideal_at(p, q)];
}

double ch_ideal_angle(const ch_ideal *x, int32_t a, int32_t b, int32_t c)
{
    const double *at = slot(x, a, b, c);

    return at != NULL ? *at : 1.9;
}

/* The angles of a ring are scaled so that they sum to what a plane allows. */
static void close_ring(const ch_ideal *x, const ch_cycle *r)
{
    const double flat = (r->size - 2) * full / 2, puckered = flat - (r->size == 5 ? 0.25 : 0.05);
    double sum = 0;

    if (r->size < 4 || r->size > 6)
        return;
    for (int32_t k = 0; k < r->size; k++)
        sum += ch_ideal_angle(x, r->atom[(k + r->size - 1) % r->size], r->atom[k], r->atom[(k + 1) % r->size]);
    if (!r->flat && sum < puckered)
        return;
    for (int32_t k = 0; k < r->size; k++)
        *slot(x, r->atom[(k + r->size - 1) % r->size], r->atom[k], r->atom[(k + 1) % r->size]) *= (r->flat ? flat : puckered) / sum;
}

static bool in_one_ring(const ch_cycles *c, int32_t a, int32_t b, int32_t d)
{
    for (const ch_cycle *r = c->cycle; r->size <= 6; r++)
        if (ch_cycle_place(r, a) >= 0 && ch_cycle_place(r, b) >= 0 && ch_cycle_place(r, d) >= 0)
            return true;
    return false;
}

/* What the ring leaves of 360 degrees is shared by the other angles of a flat centre. */
static void flatten(const ch_ideal *x, int32_t centre)
{
    const ch_cycles *c = x->cycles;
    const int32_t *at = c->neighbour + c->first[centre];
    double *angle = x->angle + x->from[centre], fixed = 0, other = 0;
    bool is_fixed[3];

    for (int k = 0; k < 3; k++) {
        const int32_t p = (k + 1) % 3, q = (k + 2) % 3;
        is_fixed[k] = in_one_ring(c, at[p], centre, at[q]);
        *(is_fixed[k] ? &fixed : &other) += angle[ch_ideal_at(p, q)];
    }
    for (int k = 0; k < 3; k++)
        if (!is_fixed[k] && fixed < full)
            angle[ch_ideal_at((k + 1) % 3, (k + 2) % 3)] *= (full - fixed) / other;
}

static bool take_terms(const ch_ideal *x, const ch_terms *t)
{
    const ch_cycles *c = x->cycles;
    bool good = true;

    for (int32_t k = 0; good && k < t->n_bonds; k++) {
        const int32_t b = ch_cycles_bond(c, t->bonds[k].i, t->bonds[k].j);
        good = b >= 0;
        if (good)
            x->length[b] = t->bonds[k].r0;
    }
    for (int32_t k = 0; good && k < t->n_angles; k++) {
        double *at = slot(x, t->angles[k].i, t->angles[k].j, t->angles[k].k);
        good = at != NULL;
        if (good)
            *at = t->angles[k].linear ? full / 2 : t->angles[k].theta0 / radian;
    }
    for (int32_t b = 0; good && b < c->mol->n_bonds; b++)
        good = x->length[b] > 0;
    for (int32_t a = 0; good && a < x->from[c->mol->n_atoms]; a++)
        good = x->angle[a] > 0;
    return good;
}

static void find_flat(const ch_ideal *x, const ch_terms *t)
{
    for (int32_t i = 0; i < x->cycles->mol->n_atoms; i++) {
        const double *a = x->angle + x->from[i];
        x->flat[i] =
            ch_cycles_degree(x->cycles, i) == 3 && (ch_cycles_is_trigonal(x->cycles, i) || a[0] + a[1] + a[2] > 354 / radian);
    }
    for (int32_t k = 0; k < t->n_out_of_planes; k++)
        if (t->out_of_planes[k].koop <= 0.004 && !ch_cycles_is_trigonal(x->cycles, t->out_of_planes[k].j))
            x->flat[t->out_of_planes[k].j] = false;
}

pl_code ch_ideal_make(ch_ideal *out, const ch_cycles *cycles, const ch_terms *terms, pl_arena *mem, pl_error *err)
{
    const int32_t n = cycles->mol->n_atoms;

    *out = (ch_ideal){ .cycles = cycles,
                       .length = PL_NEW(mem, double, (size_t)cycles->mol->n_bonds + 1),
                       .from = PL_NEW(mem, int32_t, (size_t)n + 1),
                       .flat = PL_NEW(mem, bool, (size_t)n + 1) };
    for (int32_t i = 0; out->from != NULL && i < n; i++) {
        const int32_t d = ch_cycles_degree(cycles, i);
        out->from[i + 1] = out->from[i] + d * (d - 1) / 2;
    }
    if (out->from != NULL)
        out->angle = PL_NEW(mem, double, (size_t)out->from[n] + 1);
    if (out->length == NULL || out->from == NULL || out->flat == NULL || out->angle == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for the geometry of %d atoms", (int)n);
    if (terms->n_atoms != n || !take_terms(out, terms))
        return pl_fail(err, PL_EINPUT, "the force field's bonds and angles are not those of the molecule");
    find_flat(out, terms);
    for (int32_t r = 0; r < cycles->n; r++)
        close_ring(out, &cycles->cycle[r]);
    for (int32_t i = 0; i < n; i++)
        if (out->flat[i])
            flatten(out, i);
    return PL_OK;
}
