/* SPDX-License-Identifier: Apache-2.0 */
#include "twin/sample.h"

#include <math.h>
#include <string.h>

void sample_vectors(sample *s)
{
    for (int32_t e = 0; e < s->n_edges; e++)
        for (int k = 0; k < 3; k++)
            s->vec[e][k] = s->pos[s->dst[e]][k] - s->pos[s->src[e]][k];
}

/* The bond kind depends on the pair alone, like that of a molecule. */
static void edges_add(sample *s, int32_t from, int32_t to, uint64_t seed)
{
    for (int32_t d = from; d < to; d++)
        for (int32_t b = from; b < to && s->n_edges < SAMPLE_EDGES; b++) {
            double r2 = 0.0;
            for (int k = 0; k < 3; k++)
                r2 += (s->pos[d][k] - s->pos[b][k]) * (s->pos[d][k] - s->pos[b][k]);
            if (b == d || r2 > 2.5 * 2.5)
                continue;
            pl_rng r = pl_rng_at(seed, (uint64_t)(d + b) * 97 + (uint64_t)(d * b), 2);
            s->src[s->n_edges] = b;
            s->dst[s->n_edges] = d;
            s->scalar[s->n_edges++][pl_rng_below(&r, SAMPLE_SCALARS)] = 1.0;
        }
}

void sample_make(sample *s, const int *atoms, int n, uint64_t seed)
{
    pl_rng r = pl_rng_at(seed, 0, 1);

    memset(s, 0, sizeof *s);
    for (s->n_graphs = 0; s->n_graphs < n; s->n_graphs++) {
        int32_t from = s->n_nodes, to = from + atoms[s->n_graphs];
        for (int32_t a = from; a < to; a++) {
            for (int k = 0; k < 3; k++)
                s->pos[a][k] = 3.0 * pl_rng_real(&r);
            for (int k = 0; k < SAMPLE_FEATURES; k++)
                s->node[a][k] = pl_rng_normal(&r);
        }
        edges_add(s, from, to, seed);
        s->n_nodes = s->first[s->n_graphs + 1] = to;
    }
    sample_vectors(s);
}

nn_ref_edges sample_edges(const sample *s)
{
    return (nn_ref_edges){ .n_nodes = s->n_nodes,
                           .n_edges = s->n_edges,
                           .n_scalars = SAMPLE_SCALARS,
                           .src = s->src,
                           .dst = s->dst,
                           .vec = (const double(*)[3])s->vec,
                           .scalar = &s->scalar[0][0] };
}

/* Rodrigues' formula. */
void sample_rotation(double r[9], const double axis[3], double angle)
{
    double c = cos(angle), s = sin(angle);

    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            r[3 * i + j] = axis[i] * axis[j] * (1 - c) + (i == j ? c : 0.0);
    for (int a = 0; a < 3; a++) {
        r[3 * ((a + 2) % 3) + (a + 1) % 3] += s * axis[a];
        r[3 * ((a + 1) % 3) + (a + 2) % 3] -= s * axis[a];
    }
}

void sample_turn(double *d, int l, const double axis[3], double angle)
{
    double g[81] = { 0 }, one[81], term[81], next[81];
    int n = 2 * l + 1;

    for (int a = 0; a < 3; a++) {
        nn_generator(one, l, a);
        for (int k = 0; k < n * n; k++)
            g[k] += angle * axis[a] * one[k];
    }
    for (int k = 0; k < n * n; k++)
        d[k] = term[k] = k % (n + 1) == 0;
    for (int order = 1; order < 80; order++) {
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) {
                next[i * n + j] = 0.0;
                for (int k = 0; k < n; k++)
                    next[i * n + j] += term[i * n + k] * g[k * n + j] / order;
            }
        memcpy(term, next, sizeof term);
        for (int k = 0; k < n * n; k++)
            d[k] += term[k];
    }
}
