/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/bench_batch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "models/safetensors.h"
#include "pipeline/base/text.h"

typedef struct molecules {
    const int64_t *z, *bonds, *kind, *n_atoms, *n_bonds;
    const float *pos;
    int64_t n;
} molecules;

static const int64_t *ints(const nn_tensors *t, const char *name, pl_arena *mem)
{
    const nn_tensor *x = nn_tensors_find(t, name);
    int64_t *out = x ? PL_NEW(mem, int64_t, x->count) : NULL;

    return out && !nn_tensor_ints(out, x->count, x, NULL) ? out : NULL;
}

static pl_code molecules_open(molecules *m, pl_arena *mem, pl_error *err)
{
    const char *shared = getenv("MOLSIEVE_SHARED");
    const nn_tensor *pos;
    nn_tensors *t;
    float *xyz;
    pl_code rc = nn_tensors_read(&t, pl_sprintf(mem, "%s/golden/molecules_bench.safetensors",
                                                shared ? shared : "../shared"), mem, err);

    if (rc)
        return rc;
    *m = (molecules){ ints(t, "Z", mem), ints(t, "bonds", mem), ints(t, "bond_kind", mem),
                      ints(t, "num_atoms", mem), ints(t, "num_bonds", mem), NULL, 0 };
    pos = nn_tensors_find(t, "pos");
    xyz = pos ? PL_NEW(mem, float, pos->count) : NULL;
    if (!m->z || !m->bonds || !m->kind || !m->n_atoms || !m->n_bonds || !xyz)
        return pl_fail(err, PL_EDATA, "molecules_bench lacks a tensor");
    m->pos = xyz;
    m->n = nn_tensors_find(t, "num_atoms")->dims[0];
    return nn_tensor_floats(xyz, pos->count, pos, err);
}

/* The arrays of a batch, still open for writing. */
typedef struct writer {
    int32_t *first, *src, *dst, *rev, *pair, *pair_edge;
    float *node, *edge, (*vec)[3], *dist;
} writer;

static bool writer_open(writer *w, int32_t graphs, int32_t nodes, int32_t edges, pl_arena *mem)
{
    *w = (writer){ PL_NEW(mem, int32_t, graphs + 1), PL_NEW(mem, int32_t, edges), PL_NEW(mem, int32_t, edges),
                   PL_NEW(mem, int32_t, edges), PL_NEW(mem, int32_t, edges), PL_NEW(mem, int32_t, edges),
                   PL_NEW(mem, float, 6 * nodes), PL_NEW(mem, float, 4 * edges),
                   (float(*)[3])PL_NEW(mem, float, 3 * edges), PL_NEW(mem, float, edges) };
    return w->first && w->src && w->dst && w->rev && w->pair && w->pair_edge && w->node && w->edge && w->vec
        && w->dist;
}

static void edge_write(const writer *w, nn_batch *b, const float *pos, const int32_t ij[2], int64_t kind)
{
    int32_t e = b->n_edges++, from = b->n_nodes;
    double sum = 0;

    w->src[e] = from + ij[0];
    w->dst[e] = from + ij[1];
    w->edge[4 * e + kind] = 1;
    for (int k = 0; k < 3; k++) {
        w->vec[e][k] = pos[3 * ij[1] + k] - pos[3 * ij[0] + k];
        sum += (double)w->vec[e][k] * w->vec[e][k];
    }
    w->dist[e] = (float)sqrt(sum);
    w->rev[e] = e ^ 1;
    w->pair[e] = e / 2;
    w->pair_edge[e / 2] = e & ~1;
}

static void molecule_write(const writer *w, nn_batch *b, const molecules *m, int64_t i, const int64_t at[2])
{
    static const int64_t elements[] = { 1, 6, 7, 8, 9 };
    const float *pos = m->pos + 3 * at[0];

    for (int64_t a = 0; a < m->n_atoms[i]; a++) {
        float *node = w->node + 6 * (b->n_nodes + a);
        int64_t z = m->z[at[0] + a];
        for (int k = 0; k < 5; k++)
            node[k] = z == elements[k];
        node[5] = (float)z;
    }
    for (int64_t k = at[1]; k < at[1] + m->n_bonds[i]; k++) {
        int32_t ij[2] = { (int32_t)m->bonds[2 * k], (int32_t)m->bonds[2 * k + 1] }, ji[2] = { ij[1], ij[0] };
        edge_write(w, b, pos, ij, m->kind[k]);
        edge_write(w, b, pos, ji, m->kind[k]);
    }
    b->n_nodes += (int32_t)m->n_atoms[i];
    w->first[++b->n_graphs] = b->n_nodes;
}

static pl_code batch_make(nn_batch *b, const molecules *m, int n_graphs, pl_arena *mem, pl_error *err)
{
    int64_t nodes = 0, edges = 0, at[2] = { 0, 0 };
    writer w;

    for (int64_t i = 0; i < n_graphs; i++) {
        nodes += m->n_atoms[i % m->n];
        edges += 2 * m->n_bonds[i % m->n];
    }
    if (!writer_open(&w, n_graphs, (int32_t)nodes, (int32_t)edges, mem))
        return pl_fail(err, PL_ENOMEM, "no memory for a batch of %d molecules", n_graphs);
    for (int64_t i = 0; i < n_graphs; i++) {
        if (i % m->n == 0)
            at[0] = at[1] = 0;
        molecule_write(&w, b, m, i % m->n, at);
        at[0] += m->n_atoms[i % m->n];
        at[1] += m->n_bonds[i % m->n];
    }
    b->n_pairs = b->n_edges / 2;
    b->n_node_features = 6;
    b->n_edge_features = 4;
    b->first = w.first;
    b->node = w.node;
    b->src = w.src;
    b->dst = w.dst;
    b->rev = w.rev;
    b->pair = w.pair;
    b->pair_edge = w.pair_edge;
    b->edge = w.edge;
    b->vec = (const float(*)[3])w.vec;
    b->dist = w.dist;
    return PL_OK;
}

pl_code bench_case_open(bench_case *c, int n_graphs, pl_arena *mem, pl_error *err)
{
    const nn_se3_conf conf = { 7, 4, 32, 8, 2, true, true, NN_POOL_MAX, NN_FUSE_FULL, 6, 4, 1 };
    molecules m;
    pl_code rc;

    memset(c, 0, sizeof *c);
    rc = molecules_open(&m, mem, err);
    if (!rc)
        rc = batch_make(&c->batch, &m, n_graphs, mem, err);
    if (!rc)
        rc = nn_se3_plan(&c->model, &conf, mem, err);
    if (rc)
        return rc;
    c->params = PL_NEW(mem, float, c->model->n_floats);
    c->grad = PL_NEW(mem, float, c->model->n_floats);
    c->y = PL_NEW(mem, float, n_graphs);
    c->dy = PL_NEW(mem, float, n_graphs);
    if (!c->params || !c->grad || !c->y || !c->dy)
        return pl_fail(err, PL_ENOMEM, "no memory for a model");
    nn_se3_init(c->model, c->params, 1);
    for (int i = 0; i < n_graphs; i++)
        c->dy[i] = 1.0f / (float)n_graphs;
    return PL_OK;
}
