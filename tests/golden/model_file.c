/* SPDX-License-Identifier: Apache-2.0 */
#include "golden/model_file.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int32_t meta_int(const nn_tensors *f, const char *key)
{
    const char *s = nn_tensors_meta(f, key);

    assert_non_null(s);
    return (int32_t)strtol(s, NULL, 10);
}

static bool meta_is(const nn_tensors *f, const char *key, const char *want)
{
    const char *s = nn_tensors_meta(f, key);

    assert_non_null(s);
    return !strcmp(s, want);
}

static nn_fusion meta_fusion(const nn_tensors *f)
{
    if (meta_is(f, "fuse_level", "FULL"))
        return NN_FUSE_FULL;
    return meta_is(f, "fuse_level", "PARTIAL") ? NN_FUSE_PARTIAL : NN_FUSE_NONE;
}

static nn_se3_conf conf_of(const nn_tensors *f)
{
    return (nn_se3_conf){
        .layers = meta_int(f, "num_layers"),
        .degrees = meta_int(f, "num_degrees"),
        .channels = meta_int(f, "num_channels"),
        .heads = meta_int(f, "num_heads"),
        .channels_div = meta_int(f, "channels_div"),
        .norm = meta_is(f, "norm", "True"),
        .layer_norm = meta_is(f, "use_layer_norm", "True"),
        .pooling = meta_is(f, "pooling", "max") ? NN_POOL_MAX : NN_POOL_MEAN,
        .fusion = meta_fusion(f),
        .node_features = 6,
        .edge_features = 4,
        .outputs = 1,
    };
}

static const int32_t *graph_starts(model_file *f, pl_arena *mem)
{
    const int32_t *of = golden_ints(f->file, NULL, mem, "in.graph");
    int32_t *first = PL_NEW(mem, int32_t, f->n_graphs + 1);

    for (int32_t n = 0; n < f->n_nodes; n++)
        first[of[n] + 1] = n + 1;
    return first;
}

/* The tensors of the file that the metadata name. */
static const nn_tensors *weights_of(const nn_tensors *f, pl_arena *mem)
{
    const char *file = nn_tensors_meta(f, "weights"), *dot = file != NULL ? strchr(file, '.') : NULL;
    char name[256];

    if (file == NULL)
        return f;
    snprintf(name, sizeof name, "%.*s", dot != NULL ? (int)(dot - file) : (int)strlen(file), file);
    return golden_open(name, mem);
}

void model_file_open(model_file *f, const char *name, pl_arena *mem)
{
    const nn_tensors *weights;
    nn_se3_conf conf;
    pl_error err = { 0 };
    size_t n;

    *f = (model_file){ .file = golden_open(name, mem) };
    conf = conf_of(f->file);
    if (nn_se3_plan(&f->model, &conf, mem, &err) != PL_OK)
        fail_msg("%s", err.text);
    weights = weights_of(f->file, mem);
    f->w = golden_params(weights, f->model, weights == f->file ? "w." : "", mem);
    f->target = golden_get(f->file, &n, mem, "in.target");
    f->n_graphs = (int32_t)n;
    f->node = golden_get(f->file, &n, mem, "in.node");
    f->n_nodes = (int32_t)n / 6;
    f->first = graph_starts(f, mem);
    f->src = golden_ints(f->file, &n, mem, "in.src");
    f->dst = golden_ints(f->file, NULL, mem, "in.dst");
    f->n_edges = (int32_t)n;
    f->edge = golden_get(f->file, NULL, mem, "in.edge");
    f->pos = golden_get(f->file, NULL, mem, "in.pos");
    f->vec = (double(*)[3])PL_NEW(mem, double, 3 * n + 1);
    for (size_t k = 0; k < 3 * n; k++)
        f->vec[k / 3][k % 3] = f->pos[3 * f->dst[k / 3] + (int)(k % 3)] - f->pos[3 * f->src[k / 3] + (int)(k % 3)];
}

nn_ref_edges model_edges(const model_file *f, bool wide, pl_arena *mem)
{
    nn_ref_edges in = { .n_nodes = f->n_nodes,
                        .n_edges = f->n_edges,
                        .n_scalars = 4,
                        .src = f->src,
                        .dst = f->dst,
                        .vec = (const double(*)[3])f->vec,
                        .scalar = f->edge };
    double(*narrow)[3] = (double(*)[3])PL_NEW(mem, double, 3 * f->n_edges + 1);

    for (int32_t k = 0; k < 3 * f->n_edges; k++)
        narrow[k / 3][k % 3] = (float)f->vec[k / 3][k % 3];
    if (!wide)
        in.vec = (const double(*)[3])narrow;
    return in;
}

float *model_floats(const double *x, size_t n, pl_arena *mem)
{
    float *y = PL_NEW(mem, float, n + 1);

    for (size_t i = 0; i < n; i++)
        y[i] = (float)x[i];
    return y;
}

/* Finds reverse edges and pairs by comparing every two edges. */
static void pairs_find(nn_batch *b, pl_arena *mem)
{
    int32_t *rev = PL_NEW(mem, int32_t, b->n_edges), *pair = PL_NEW(mem, int32_t, b->n_edges);
    int32_t *first = PL_NEW(mem, int32_t, b->n_edges);

    for (int32_t e = 0; e < b->n_edges; e++) {
        rev[e] = -1;
        for (int32_t k = 0; k < b->n_edges; k++)
            if (b->src[k] == b->dst[e] && b->dst[k] == b->src[e])
                rev[e] = k;
        pair[e] = rev[e] >= 0 && rev[e] < e ? pair[rev[e]] : b->n_pairs;
        if (pair[e] == b->n_pairs)
            first[b->n_pairs++] = e;
    }
    b->rev = rev;
    b->pair = pair;
    b->pair_edge = first;
}

nn_batch model_batch(const model_file *f, pl_arena *mem)
{
    nn_batch b = { .n_graphs = f->n_graphs,
                   .n_nodes = f->n_nodes,
                   .n_edges = f->n_edges,
                   .n_node_features = 6,
                   .n_edge_features = 4,
                   .first = f->first,
                   .src = f->src,
                   .dst = f->dst };
    float *vec = model_floats(&f->vec[0][0], 3 * (size_t)f->n_edges, mem), *dist = PL_NEW(mem, float, f->n_edges);

    for (int32_t e = 0; e < f->n_edges; e++) {
        const double *v = f->vec[e];
        dist[e] = (float)sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
    }
    b.node = model_floats(f->node, 6 * (size_t)f->n_nodes, mem);
    b.edge = model_floats(f->edge, 4 * (size_t)f->n_edges, mem);
    b.vec = (const float(*)[3])vec;
    b.dist = dist;
    pairs_find(&b, mem);
    return b;
}
