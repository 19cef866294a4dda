/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdbool.h>

#include "chem/graph/graph.h"

static pl_code check_sizes(const ch_graph *g, pl_error *err)
{
    if (g->n_nodes < 1 || g->n_nodes > CH_GRAPH_MAX_NODES || g->n_edges < 0 || g->n_pairs < 0)
        return pl_fail(err, PL_EDATA, "graph of %d atoms, %d edges, %d pairs", g->n_nodes, g->n_edges, g->n_pairs);
    if (g->n_pairs > g->n_edges || g->n_edges - g->n_pairs > g->n_pairs)
        return pl_fail(err, PL_EDATA, "graph: %d edges cannot make %d pairs", g->n_edges, g->n_pairs);
    return PL_OK;
}

static pl_code check_nodes(const ch_graph *g, pl_error *err)
{
    if (g->row[0] != 0 || g->row[g->n_nodes] != g->n_edges)
        return pl_fail(err, PL_EDATA, "graph: rows do not span the edges");
    for (int32_t i = 0; i < g->n_nodes; i++) {
        if (g->row[i + 1] < g->row[i])
            return pl_fail(err, PL_EDATA, "graph: row %d is out of order", i);
        if (g->z[i] < 1 || g->z[i] > 118)
            return pl_fail(err, PL_EDATA, "graph: atom %d has number %d", i, g->z[i]);
    }
    return PL_OK;
}

/* Whether edge e into atom i is sorted within its row and consistent with its reverse edge and pair. */
static bool edge_good(const ch_graph *g, int32_t i, int32_t e)
{
    int32_t s = g->src[e], r = g->rev[e], p = g->pair[e];

    if (s >= g->n_nodes || s == i || (e > g->row[i] && g->src[e - 1] >= s))
        return false;
    if (p < 0 || p >= g->n_pairs || g->pair_edge[p] < 0 || g->pair_edge[p] >= g->n_edges)
        return false;
    if (r < -1 || r >= g->n_edges)
        return false;
    if (r >= 0 && (g->src[r] != i || r < g->row[s] || r >= g->row[s + 1] || g->rev[r] != e))
        return false;
    return g->pair_edge[p] == e || (g->pair_edge[p] == r && s > i);
}

static pl_code check_edges(const ch_graph *g, pl_error *err)
{
    for (int32_t i = 0; i < g->n_nodes; i++)
        for (int32_t e = g->row[i]; e < g->row[i + 1]; e++)
            if (!edge_good(g, i, e))
                return pl_fail(err, PL_EDATA, "graph: edge %d to atom %d is inconsistent", e, i);
    return PL_OK;
}

/* Of a graph without positions: a bond, without a vector. */
static bool flat_pair_good(const ch_graph *g, int32_t p)
{
    const float *v = g->vec[p];

    return g->dist[p] == 0 && v[0] == 0 && v[1] == 0 && v[2] == 0 && g->type[p] != CH_PAIR_NOT_BONDED;
}

static bool pair_good(const ch_graph *g, int32_t p)
{
    const float *v = g->vec[p];
    double d = sqrt((double)v[0] * v[0] + (double)v[1] * v[1] + (double)v[2] * v[2]);

    if (p > 0 && g->pair_edge[p - 1] >= g->pair_edge[p])
        return false;
    if (g->pair[g->pair_edge[p]] != p || g->type[p] >= CH_PAIR_KINDS)
        return false;
    return ch_graph_is_flat(g) ? flat_pair_good(g, p) : g->dist[p] > 0 && fabs(d - g->dist[p]) <= 1e-6 * g->dist[p];
}

static pl_code check_pairs(const ch_graph *g, pl_error *err)
{
    for (int32_t p = 0; p < g->n_pairs; p++)
        if (g->pair_edge[p] < 0 || g->pair_edge[p] >= g->n_edges || !pair_good(g, p))
            return pl_fail(err, PL_EDATA, "graph: pair %d is inconsistent", p);
    return PL_OK;
}

pl_code ch_graph_check(const ch_graph *g, pl_error *err)
{
    pl_code code = check_sizes(g, err);

    if (code == PL_OK)
        code = check_nodes(g, err);
    if (code == PL_OK)
        code = check_edges(g, err);
    return code == PL_OK ? check_pairs(g, err) : code;
}
