/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "models/engine/engine.h"
#include "models/ref/ref.h"

enum { BLOCK = 1 << 22 };

/* Computes in double. Memory of a batch lives in one arena that forward resets; its blocks are kept, so a batch no larger than
 * the largest so far allocates nothing. */
typedef struct ref_engine {
    const nn_se3 *model;
    double *params, *grad;
    pl_arena *mem;
    nn_ref_ctx ctx;
    nn_ref_run *run; /* of the last forward; NULL before it or after a failure */
    size_t max;
} ref_engine;

static ref_engine *self(nn_engine *e) { return (ref_engine *)(void *)e; }

static void engine_close(nn_engine *e)
{
    if (e == NULL)
        return;
    pl_arena_free(self(e)->mem);
    free(self(e)->params);
    free(self(e)->grad);
    free(e);
}

static pl_code engine_check(const nn_engine_conf *conf, pl_error *err)
{
    if (conf->radial != NN_RADIAL_EXACT || conf->of_radial || conf->of_contract || conf->of_linear)
        return pl_fail(err, PL_ECONFIG, "engine ref computes in double with exact radial networks, nothing else");
    return PL_OK;
}

/* One thread: this engine is the reference that others are tested against. */
static pl_code engine_open(nn_engine **out, const nn_se3 *model, const nn_engine_conf *conf, pl_error *err)
{
    pl_code code = engine_check(conf, err);
    ref_engine *r = code != PL_OK ? NULL : calloc(1, sizeof *r);

    *out = NULL;
    if (code != PL_OK)
        return code;

    if (r != NULL) {
        r->model = model;
        r->mem = pl_arena_new(BLOCK);
        r->params = calloc(model->n_floats, sizeof *r->params);
        r->grad = calloc(model->n_floats, sizeof *r->grad);
    }
    if (r == NULL || r->mem == NULL || r->params == NULL || r->grad == NULL) {
        engine_close((nn_engine *)(void *)r);
        return pl_fail(err, PL_ENOMEM, "no memory for a model of %zu numbers", model->n_floats);
    }
    *out = (nn_engine *)(void *)r;
    return PL_OK;
}

static pl_code engine_set_params(nn_engine *e, const float *params, pl_error *err)
{
    (void)err;
    for (size_t k = 0; k < self(e)->model->n_floats; k++)
        self(e)->params[k] = params[k];
    return PL_OK;
}

static double *widen(pl_arena *mem, const float *x, size_t n)
{
    double *y = PL_NEW(mem, double, n);

    for (size_t k = 0; y != NULL && k < n; k++)
        y[k] = x[k];
    return y;
}

static pl_code batch_check(const nn_se3 *m, const nn_batch *in, pl_error *err)
{
    if (in->n_node_features != m->conf.node_features || in->n_edge_features != m->conf.edge_features)
        return pl_fail(err, PL_EBUG, "a batch of %d node and %d edge features for a model of %d and %d", (int)in->n_node_features,
                       (int)in->n_edge_features, (int)m->conf.node_features, (int)m->conf.edge_features);
    return PL_OK;
}

static pl_code batch_graph(ref_engine *r, const nn_batch *in, pl_error *err)
{
    size_t n = (size_t)in->n_edges;
    nn_ref_edges edges = {
        .n_nodes = in->n_nodes, .n_edges = in->n_edges, .n_scalars = in->n_edge_features, .src = in->src, .dst = in->dst
    };
    double *vec = widen(r->mem, n ? &in->vec[0][0] : NULL, 3 * n);
    double *scalar = widen(r->mem, in->edge, n * (size_t)in->n_edge_features);
    nn_ref_graph *g;
    pl_code code;

    if (vec == NULL || scalar == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for a batch of %d edges", (int)in->n_edges);
    edges.vec = (const double(*)[3])vec;
    edges.scalar = scalar;
    edges.radial = r->model->conf.radial;
    code = nn_ref_graph_new(&g, &edges, r->model->conf.degrees - 1, r->mem, err);
    if (code != PL_OK)
        return code;
    r->ctx.graph = g;
    r->ctx.bytes = nn_ref_graph_bytes(g);
    return PL_OK;
}

static pl_code engine_forward(nn_engine *e, const nn_batch *in, bool keep, float *y, pl_error *err)
{
    ref_engine *r = self(e);
    const nn_se3 *m = r->model;
    pl_code code = batch_check(m, in, err);
    double *node;
    (void)keep; /* always keeps what backward needs */

    pl_arena_reset(r->mem);
    r->run = NULL;
    r->ctx = (nn_ref_ctx){ .model = m, .w = r->params, .dw = r->grad, .mem = r->mem };
    if (code == PL_OK)
        code = batch_graph(r, in, err);
    if (code != PL_OK)
        return code;
    node = widen(r->mem, in->node, (size_t)in->n_nodes * (size_t)in->n_node_features);
    if (node == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for a batch of %d nodes", (int)in->n_nodes);
    code = nn_ref_model_forward(&r->ctx, &r->run, node, in->first, in->n_graphs, err);
    if (code != PL_OK) {
        r->run = NULL;
        return code;
    }
    for (int32_t k = 0; k < in->n_graphs * m->conf.outputs; k++)
        y[k] = (float)r->run->y[k];
    r->max = r->ctx.bytes > r->max ? r->ctx.bytes : r->max;
    return PL_OK;
}

static void engine_vectors(nn_engine *e, float (*v)[3])
{
    const ref_engine *r = self(e);

    for (int32_t i = 0; i < r->run->x[0].n; i++)
        for (int a = 0; a < 3; a++)
            v[i][a] = (float)r->run->v[3 * i + a];
}

static pl_code engine_backward_vectors(nn_engine *e, const nn_batch *in, const float *dy, const float (*dv)[3], float *grad,
                                       pl_error *err)
{
    ref_engine *r = self(e);
    double *wide;
    pl_code code;

    if (r->run == NULL)
        return pl_fail(err, PL_EBUG, "backward without a forward");
    wide = widen(r->mem, dy, (size_t)in->n_graphs * (size_t)r->model->conf.outputs);
    if (wide == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for a gradient");
    r->run->dv = dv != NULL ? widen(r->mem, &dv[0][0], 3 * (size_t)in->n_nodes) : NULL;
    if (dv != NULL && r->run->dv == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for a gradient");
    for (size_t k = 0; k < r->model->n_floats; k++)
        r->grad[k] = 0;
    code = nn_ref_model_backward(&r->ctx, r->run, wide, NULL, err);
    for (size_t k = 0; code == PL_OK && k < r->model->n_floats; k++)
        grad[k] += (float)r->grad[k];
    r->max = r->ctx.bytes > r->max ? r->ctx.bytes : r->max;
    return code;
}

static pl_code engine_backward(nn_engine *e, const nn_batch *in, const float *dy, float *grad, pl_error *err)
{
    return engine_backward_vectors(e, in, dy, NULL, grad, err);
}

/* Parameters, their gradient, and the bases, features and scratch of the largest batch. */
static size_t engine_bytes(const nn_engine *e)
{
    const ref_engine *r = (const ref_engine *)(const void *)e;

    return r->max + 2 * r->model->n_floats * sizeof(double);
}

const nn_engine_kind nn_engine_ref = {
    .name = "ref",
    .help = "plain loops in double, one thread: slow, the oracle for the others",
    .check = engine_check,
    .open = engine_open,
    .close = engine_close,
    .set_params = engine_set_params,
    .forward = engine_forward,
    .backward = engine_backward,
    .vectors = engine_vectors,
    .backward_vectors = engine_backward_vectors,
    .workspace_bytes = engine_bytes,
};
