/* SPDX-License-Identifier: Apache-2.0 */
#include "twin/made_batch.h"

#include <math.h>

#include "pipeline/base/rng.h"

typedef struct edges {
    int32_t *src, *dst, *rev, *pair, *pair_edge, *row;
} edges;

static double apart(const float *a, const float *b)
{
    return sqrt((a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]) + (a[2] - b[2]) * (a[2] - b[2]));
}

static void atoms_place(made_batch *m, const made_opts *o, pl_arena *mem, pl_rng *rng)
{
    int32_t *first = PL_NEW(mem, int32_t, o->n_graphs + 1);

    for (int g = 0; g < o->n_graphs; g++)
        first[g + 1] = first[g] + (g == 1 ? 1 : 2 + (int32_t)pl_rng_below(rng, (uint64_t)(o->max_nodes - 1)));
    m->b.n_graphs = o->n_graphs;
    m->b.n_nodes = first[o->n_graphs];
    m->b.first = first;
    m->xyz = (float(*)[3])PL_NEW(mem, float, 3 * m->b.n_nodes);
    for (int32_t i = 0; i < m->b.n_nodes; i++) {
        int32_t tries = 0;
        bool close;
        do {
            close = false;
            for (int k = 0; k < 3; k++)
                m->xyz[i][k] = (float)(3 * pl_rng_real(rng));
            for (int32_t j = 0; j < i; j++)
                close |= apart(m->xyz[i], m->xyz[j]) < 0.4;
        } while (close && ++tries < 50);
    }
}

static bool linked(const made_batch *m, const made_opts *o, int32_t g, int32_t i, int32_t j)
{
    uint64_t pick = pl_splitmix64(o->seed ^ (uint64_t)(1000 * i + j));

    return i != j && g != 2 && apart(m->xyz[i], m->xyz[j]) < o->cutoff && !(o->one_way && pick % 4 == 0);
}

static void edges_find(made_batch *m, const made_opts *o, edges *e)
{
    int32_t n = 0;

    for (int32_t g = 0; g < m->b.n_graphs; g++)
        for (int32_t i = m->b.first[g]; i < m->b.first[g + 1]; i++) {
            e->row[i] = n;
            for (int32_t j = m->b.first[g]; j < m->b.first[g + 1]; j++)
                if (linked(m, o, g, j, i)) {
                    e->src[n] = j;
                    e->dst[n++] = i;
                }
        }
    e->row[m->b.n_nodes] = m->b.n_edges = n;
    for (int32_t a = 0; a < n; a++) {
        e->rev[a] = -1;
        for (int32_t c = 0; c < n; c++)
            if (e->src[a] == e->dst[c] && e->dst[a] == e->src[c])
                e->rev[a] = c;
        e->pair[a] = e->rev[a] >= 0 && e->rev[a] < a ? e->pair[e->rev[a]] : m->b.n_pairs;
        if (e->pair[a] == m->b.n_pairs)
            e->pair_edge[m->b.n_pairs++] = a;
    }
}

/* One-hot of four kinds and noise, the same for both directions. */
static void edge_features_fill(const made_batch *m, const edges *e, int32_t n, float *f, uint64_t seed)
{
    for (int32_t a = 0; a < m->b.n_edges; a++) {
        uint64_t pick = pl_splitmix64(seed + 77 + (uint64_t)e->pair[a]);
        for (int32_t k = 0; k < n; k++)
            f[a * n + k] = k < 4 ? (pick % 4 == (uint64_t)k) : (float)(pick >> 20 & 1023) / 1023.0f;
    }
}

void made_batch_move(made_batch *m)
{
    float(*vec)[3] = (float(*)[3])m->b.vec, *dist = (float *)m->b.dist;

    for (int32_t a = 0; a < m->b.n_edges; a++) {
        const float *from = m->xyz[m->b.src[a]], *to = m->xyz[m->b.dst[a]];
        double sum = 0;
        for (int k = 0; k < 3; k++) {
            vec[a][k] = to[k] - from[k];
            sum += (double)vec[a][k] * vec[a][k];
        }
        dist[a] = (float)sqrt(sum);
    }
}

void made_batch_snap(made_batch *m, double width)
{
    float(*vec)[3] = (float(*)[3])m->b.vec, *dist = (float *)m->b.dist;

    for (int32_t a = 0; a < m->b.n_edges; a++) {
        double to = width * round(dist[a] / width), by = to / dist[a];
        for (int k = 0; k < 3; k++)
            vec[a][k] = (float)(by * vec[a][k]);
        dist[a] = (float)to;
    }
}

made_batch made_batch_new(const made_opts *o, pl_arena *mem)
{
    made_batch m = { 0 };
    pl_rng rng = pl_rng_at(o->seed, 0, 1);
    int32_t max, n;
    float *node, *edge;
    edges e;

    atoms_place(&m, o, mem, &rng);
    n = m.b.n_nodes;
    max = n * o->max_nodes;
    e = (edges){ PL_NEW(mem, int32_t, max), PL_NEW(mem, int32_t, max), PL_NEW(mem, int32_t, max),
                 PL_NEW(mem, int32_t, max), PL_NEW(mem, int32_t, max), PL_NEW(mem, int32_t, n + 1) };
    edges_find(&m, o, &e);
    node = PL_NEW(mem, float, n * o->node_features);
    edge = PL_NEW(mem, float, max * o->edge_features + 1);
    for (int32_t i = 0; i < n * o->node_features; i++)
        node[i] = (float)pl_rng_normal(&rng);
    edge_features_fill(&m, &e, o->edge_features, edge, o->seed);
    m.b.n_node_features = o->node_features;
    m.b.n_edge_features = o->edge_features;
    m.b.node = node;
    m.b.edge = edge;
    m.b.src = e.src;
    m.b.dst = e.dst;
    m.b.row = e.row;
    m.b.rev = e.rev;
    m.b.pair = e.pair;
    m.b.pair_edge = e.pair_edge;
    m.b.vec = (const float(*)[3])PL_NEW(mem, float, 3 * max);
    m.b.dist = PL_NEW(mem, float, max);
    made_batch_move(&m);
    return m;
}

nn_batch made_batch_first(const nn_batch *b)
{
    nn_batch first = *b;

    first.n_graphs = 1;
    first.n_nodes = first.first[1];
    first.n_edges = first.row[first.n_nodes];
    first.n_pairs = 0;
    for (int32_t a = 0; a < first.n_edges; a++)
        first.n_pairs = first.pair[a] + 1 > first.n_pairs ? first.pair[a] + 1 : first.n_pairs;
    return first;
}
