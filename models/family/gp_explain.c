/* SPDX-License-Identifier: Apache-2.0 */
/* Integrated gradients (Sundararajan, Taly, Yan 2017): on the way from a molecule without environments whose descriptors are the mean ones
 * to the molecule, each count and each number grows in proportion, and each is given what its growth adds to the prediction. */
#include <math.h>

#include "models/family/exact.h"
#include "models/family/gp_parts.h"

enum { STEPS = 64 };

typedef struct way {
    const nn_member *m;
    const nn_gp_query *q;
    double t;       /* 0 to 1: how far on the way */
    double *common; /* [n] sum of the smaller counts; then what a common count adds to alpha T */
} way;

/* Adds one step for all environments: count[k] of the known ones to known[k]. Returns what a count adds that no molecule shares. */
static double environments_step(const way *at, double *known)
{
    const nn_gp_data *g = &at->m->g;
    double alone = 0;

    for (int32_t i = 0; i < g->s.n; i++)
        at->common[i] = 0;
    for (int32_t k = 0; k < at->q->n; k++)
        for (int32_t p = g->post_first[at->q->which[k]]; p < g->post_first[at->q->which[k] + 1]; p++)
            at->common[g->post[p].molecule] += fmin(at->t * at->q->count[k], g->post[p].count);
    for (int32_t i = 0; i < g->s.n; i++) {
        const double both = at->common[i], either = fmax(at->t * at->q->total + g->total[i] - both, 1e-9);
        alone -= at->m->alpha[i] * both / (either * either);
        at->common[i] = at->m->alpha[i] * (either + both) / (either * either);
    }
    for (int32_t k = 0; k < at->q->n; k++)
        for (int32_t p = g->post_first[at->q->which[k]]; p < g->post_first[at->q->which[k] + 1]; p++)
            if (at->t * at->q->count[k] < g->post[p].count)
                known[k] += at->common[g->post[p].molecule];
    return alone;
}

/* Adds one step for all numbers to slope [d]. */
static void numbers_step(const way *at, double *slope)
{
    const nn_gp_data *g = &at->m->g;
    const double narrow = 1 / (at->m->k.length * at->m->k.length);

    for (int32_t i = 0; i < g->s.n; i++) {
        const double *z = g->z + (size_t)(i / NN_TILE) * NN_TILE * (size_t)g->d + i % NN_TILE;
        double d = 0, near;
        for (int32_t k = 0; k < g->d; k++) {
            const double off = at->t * at->q->z[k] - z[(size_t)k * NN_TILE];
            d += off * off;
        }
        near = at->m->alpha[i] * nn_exp(-d * narrow / 2);
        for (int32_t k = 0; k < g->d; k++)
            slope[k] -= near * narrow * (at->t * at->q->z[k] - z[(size_t)k * NN_TILE]);
    }
}

/* All steps: known [q->n], slope [d] and *alone become means over the way. */
static void walk(way *at, double *known, double *slope, double *alone)
{
    for (int s = 0; s < STEPS; s++) {
        at->t = (s + 0.5) / STEPS;
        *alone += environments_step(at, known) / STEPS;
        numbers_step(at, slope);
    }
    for (int32_t k = 0; k < at->q->n; k++)
        known[k] /= STEPS;
    for (int32_t k = 0; k < at->m->g.d; k++)
        slope[k] /= STEPS;
}

static void place_numbers(nn_parts *out, const nn_member *m, const nn_gp_query *q, const double *slope)
{
    const nn_columns *c = &m->g.s.numbers;

    for (int32_t k = 0; k < m->g.d; k++)
        *(k < c->n_features ? &out->feature[c->id[k]] : &out->column[c->id[k]]) = m->scale * (1 - m->k.w) * q->z[k] * slope[k];
}

static void place_environments(nn_parts *out, const nn_member *m, const nn_gp_query *q, const ch_environments *e,
                               const double *known, double alone)
{
    int32_t at = 0; /* both ascend */

    for (int32_t k = 0; k < e->n; k++) {
        const double count = e->at[k].count < NN_GP_COUNT ? e->at[k].count : NN_GP_COUNT;
        const bool is = at < q->n && m->g.s.id[q->which[at]] == e->at[k].id;
        out->environment[k] = m->scale * m->k.w * count * (alone + (is ? known[at] : 0));
        at += is;
    }
}

/* base is what remains of the value: the prediction where the way begins, and what STEPS steps miss. */
static pl_code place_base(nn_parts *out, const nn_member *m, const nn_table *x, int32_t row, pl_arena *mem, pl_error *err)
{
    const nn_table one = { 1, x->environments + row, x->features + row, x->n_columns,
                           x->n_columns > 0 ? x->column + (size_t)row * (size_t)x->n_columns : NULL };
    pl_code code = nn_gp_value(m, &one, &out->base, mem, err);

    for (int32_t k = 0; k < CH_N_FEATURES; k++)
        out->base -= out->feature[k];
    for (int32_t k = 0; k < x->environments[row].n; k++)
        out->base -= out->environment[k];
    for (int32_t k = 0; k < x->n_columns; k++)
        out->base -= out->column[k];
    return code;
}

pl_code nn_gp_explain(const nn_member *m, const nn_table *x, int32_t row, nn_parts *out, pl_arena *mem, pl_error *err)
{
    const ch_environments *e = &x->environments[row];
    double *known = PL_NEW(mem, double, e->n), *slope = PL_NEW(mem, double, m->g.d), alone = 0;
    nn_gp_query q;
    way at = { m, &q, 0, PL_NEW(mem, double, m->g.s.n) };
    pl_code code = nn_columns_fit(&m->g.s.numbers, x, err);

    if (known == NULL || slope == NULL || at.common == NULL)
        code = pl_fail(err, PL_ENOMEM, "no memory to explain a prediction");
    if (code == PL_OK)
        code = nn_gp_query_make(&q, &m->g, e->n, mem, err);
    if (code == PL_OK)
        code = nn_parts_make(out, x, row, mem, err);
    if (code != PL_OK)
        return code;
    nn_gp_query_set(&q, &m->g, x, row);
    walk(&at, known, slope, &alone);
    place_numbers(out, m, &q, slope);
    place_environments(out, m, &q, e, known, alone);
    return place_base(out, m, x, row, mem, err);
}
