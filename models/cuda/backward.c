/* SPDX-License-Identifier: Apache-2.0 */
#include "models/cuda/cuda_engine.h"

/* ---- convolutions ---------------------------------------------------------------------- */

/* Gradients of the parameters of the radial networks' last layers, from the gradient of the edges' outputs in s->edge. */
static void radial_grads(nn_cuda_step *s)
{
    nn_engine *e = s->e;
    const nn_cuda_conv *c = &s->m->conv;
    const nn_cuda_radial *to = nn_cuda_radial_begin(e);
    nn_gpu_turn t = nn_cuda_turn(e, e->prep.src, &c->in, &c->in_edges, s->x, to->x);
    nn_cuda_chunk k = { 0 };

    e->ops->turn(e->gpu, &t);
    nn_cuda_lap(e, NN_OP_EDGES_BACK);
    for (; nn_cuda_chunk_next(e, c, &k); k.first = k.end) {
        nn_cuda_outer(e, to, c, &k, s->edge);
        nn_cuda_lap(e, NN_OP_EDGES_BACK);
        nn_cuda_table_back(e, to, c, &k);
        nn_cuda_lap(e, NN_OP_RADIAL_BACK);
    }
    if (e->prep.n_cells && c->n_tiles)
        e->ops->unfold(
            e->gpu, &(nn_gpu_fold){
                        .n_tiles = c->n_tiles, .tile = e->tile + c->tile, .path = e->path, .dfolded = to->dfold, .grad = e->grad });
    e->ops->use_stream(e->gpu, NN_CUDA_MAIN);
    nn_cuda_lap(e, NN_OP_WEIGHTS);
}

/* Gradients of the input features from the same; added to dx. */
static void inputs_back(nn_cuda_step *s)
{
    nn_engine *e = s->e;
    const nn_cuda_conv *c = &s->m->conv;
    nn_gpu_sum sum = nn_cuda_sum(e, s->in->n_nodes, true, &c->in, &c->in_edges, e->dx_edge);
    nn_cuda_chunk k = { 0 };

    if (s->dx == NULL)
        return;
    for (; nn_cuda_product_next(e, c, &k); k.first = k.end)
        nn_cuda_product(e, c, &k, true, s->edge, e->dx_edge);
    nn_cuda_near_wait(e);
    sum.add = true;
    sum.to = s->dx;
    e->ops->sum(e->gpu, &sum);
}

/* ---- attention ---------------------------------------------------------------------------- */

static nn_cuda_rows rows_of(const nn_cuda_step *s, const nn_cuda_linear *l, int d, const nn_gpu_nodes *in, const nn_gpu_nodes *out)
{
    return (nn_cuda_rows){ s->e, l, d, s->in->n_nodes, in, out };
}

/* Propagates the gradient through the projection to dz. */
static void project_back(nn_cuda_step *s)
{
    nn_engine *e = s->e;
    const nn_cuda_module *m = s->m;
    nn_cuda_group all = { .e = e };

    for (int d = 0; d < m->out.n_degrees; d++) {
        nn_cuda_rows z = rows_of(s, &m->project_z[d], d, &m->z, &m->out);
        nn_cuda_join(&all, nn_cuda_linear_back(&z, s->dy, e->dz, false));
    }
    nn_cuda_group_run(&all);
}

/* From dz: gradients of values and keys, which replace them, and of queries, in dq. */
static void edges_back(nn_cuda_step *s)
{
    nn_engine *e = s->e;
    const nn_cuda_module *m = s->m;
    nn_gpu_attend_back a = { .dalpha = { nn_cuda_turn(e, e->prep.dst, &m->z, &m->conv.value, e->dz, s->edge), 1, e->dalpha },
                             .dvalue = nn_cuda_turn(e, e->prep.dst, &m->z, &m->conv.value, e->dz, s->edge),
                             .dkey = nn_cuda_turn(e, e->prep.dst, &m->q, &m->conv.key, s->q, s->edge),
                             .dq = nn_cuda_sum(e, s->in->n_nodes, false, &m->q, &m->conv.key, s->edge),
                             .alpha = s->alpha,
                             .scale = m->scale };

    a.dalpha.t.heads = a.dvalue.heads = a.dkey.heads = a.dq.t.heads = m->heads;
    a.dvalue.weight = s->alpha;
    a.dkey.weight = a.dq.t.weight = e->dalpha;
    a.dq.to = e->dq;
    e->ops->attend_back(e->gpu, &a);
}

/* Gradients of the input features, by projection and queries. */
static void features_back(nn_cuda_step *s)
{
    nn_engine *e = s->e;
    const nn_cuda_module *m = s->m;
    nn_cuda_group all = { .e = e };

    if (s->dx == NULL)
        return;
    nn_cuda_beside(e, NN_CUDA_NEAR);
    for (int d = 0; d < NN_DEGREES; d++) {
        nn_cuda_rows q = rows_of(s, &m->query[d], d, &m->in, &m->q);
        nn_cuda_rows x = rows_of(s, &m->project_x[d], d, &m->in, &m->out);
        bool projected = d < m->out.n_degrees && x.l->n_in;
        if (projected) {
            nn_gpu_gemm of_x = nn_cuda_linear_back(&x, s->dy, s->dx, false);
            of_x.more = q.l->n_in > 0;
            nn_cuda_join(&all, of_x);
        }
        if (q.l->n_in)
            nn_cuda_join(&all, nn_cuda_linear_back(&q, e->dq, s->dx, !projected));
    }
    nn_cuda_group_run(&all);
    nn_cuda_near_done(e);
}

/* Gradients of the matrices of projection and queries. */
static void attention_grads(nn_cuda_step *s)
{
    nn_engine *e = s->e;
    const nn_cuda_module *m = s->m;
    nn_cuda_group all = { .e = e, .work = e->work[NN_CUDA_BESIDE] };

    nn_cuda_beside(e, NN_CUDA_BESIDE);
    for (int d = 0; d < NN_DEGREES; d++) {
        nn_cuda_rows q = rows_of(s, &m->query[d], d, &m->in, &m->q);
        nn_cuda_rows z = rows_of(s, &m->project_z[d], d, &m->z, &m->out);
        nn_cuda_rows x = rows_of(s, &m->project_x[d], d, &m->in, &m->out);
        if (q.l->n_in)
            nn_cuda_join(&all, nn_cuda_linear_grad(&q, s->x, e->dq));
        if (d < m->out.n_degrees)
            nn_cuda_join(&all, nn_cuda_linear_grad(&z, s->z, s->dy));
        if (d < m->out.n_degrees && x.l->n_in)
            nn_cuda_join(&all, nn_cuda_linear_grad(&x, s->x, s->dy));
    }
    nn_cuda_group_run(&all);
    nn_cuda_linear_done(e);
}

void nn_cuda_attention_back(nn_cuda_step *s)
{
    nn_cuda_linear_wait(s->e);
    project_back(s);
    edges_back(s);
    nn_cuda_there(s->e);
    features_back(s);
    nn_cuda_lap(s->e, NN_OP_ATTENTION_BACK);
    inputs_back(s);
    attention_grads(s);
    nn_cuda_lap(s->e, NN_OP_ATTENTION_BACK);
    radial_grads(s);
}

/* ---- norm, sum layer ------------------------------------------------------------------------ */

void nn_cuda_norm_back(nn_cuda_step *s)
{
    nn_engine *e = s->e;
    const nn_cuda_module *m = s->m;
    nn_gpu_norm a = { .n_nodes = s->in->n_nodes,
                      .channels = m->channels,
                      .gate = m->gate,
                      .nodes = m->in,
                      .params = e->params,
                      .x = s->x,
                      .dy = s->dy,
                      .dx = s->dx,
                      .work = e->work[NN_CUDA_MAIN],
                      .grad = e->grad };

    for (int d = 0; d < NN_DEGREES; d++) {
        a.gain[d] = m->gain[d];
        a.bias[d] = m->bias[d];
    }
    e->ops->norm_back(e->gpu, &a);
    nn_cuda_there(e);
    nn_cuda_beside(e, NN_CUDA_NEAR); /* long before the next norm needs its parts */
    e->ops->norm_sums(e->gpu, &a);
    e->ops->use_stream(e->gpu, NN_CUDA_MAIN);
    nn_cuda_lap(e, NN_OP_ATTENTION_BACK);
}

static void self_back(nn_cuda_step *s)
{
    nn_engine *e = s->e;
    const nn_cuda_conv *c = &s->m->conv;
    nn_cuda_group all = { .e = e };

    nn_cuda_beside(e, NN_CUDA_NEAR);
    e->ops->scale(e->gpu, &(nn_gpu_scale){ s->in->n_nodes, c->out.size, nn_cuda_at(e, e->prep.in_sum), s->dy, e->dz });
    e->ops->zero(e->gpu, s->dx, (size_t)s->in->n_nodes * (size_t)c->in.size * sizeof(float));
    for (int d = 0; d < NN_DEGREES; d++) {
        nn_cuda_rows r = rows_of(s, &c->self[d], d, &c->in, &c->out);
        if (r.l->n_in)
            nn_cuda_join(&all, nn_cuda_linear_back(&r, e->dz, s->dx, false));
    }
    nn_cuda_group_run(&all);
    nn_cuda_near_done(e);
}

static void self_grads(nn_cuda_step *s)
{
    nn_engine *e = s->e;
    const nn_cuda_conv *c = &s->m->conv;
    nn_cuda_group all = { .e = e, .work = e->work[NN_CUDA_BESIDE] };

    nn_cuda_beside(e, NN_CUDA_BESIDE);
    nn_cuda_near_wait(e);
    for (int d = 0; d < NN_DEGREES; d++) {
        nn_cuda_rows r = rows_of(s, &c->self[d], d, &c->in, &c->out);
        if (r.l->n_in)
            nn_cuda_join(&all, nn_cuda_linear_grad(&r, s->x, e->dz));
    }
    nn_cuda_group_run(&all);
    nn_cuda_linear_done(e);
}

void nn_cuda_sum_back(nn_cuda_step *s)
{
    nn_engine *e = s->e;
    const nn_cuda_conv *c = &s->m->conv;
    nn_gpu_turn t = nn_cuda_turn(e, e->prep.dst, &c->out, &c->out_edges, s->dy, s->edge);

    nn_cuda_linear_wait(e);
    nn_cuda_there(e);
    self_back(s);
    e->ops->turn(e->gpu, &t);
    nn_cuda_there(e);
    nn_cuda_lap(e, NN_OP_SUM_BACK);
    inputs_back(s);
    self_grads(s);
    nn_cuda_lap(e, NN_OP_SUM_BACK);
    radial_grads(s);
}

/* ---- head, radial networks --------------------------------------------------------------------- */

static nn_gpu_nodes flat(int32_t n) { return (nn_gpu_nodes){ 1, n, { n }, { 0 } }; }

static void dense_back(nn_engine *e, int layer, int32_t rows, const float *dy, float *dx)
{
    const nn_cuda_linear *l = &e->plan->head[layer];
    nn_gpu_nodes in = flat(l->n_in), out = flat(l->n_out);
    nn_cuda_rows r = { e, l, 0, rows, &in, &out };
    nn_cuda_group one = { .e = e };

    nn_cuda_join(&one, nn_cuda_linear_back(&r, dy, dx, false));
    nn_cuda_group_run(&one);
}

static void dense_grads(nn_engine *e, int layer, int32_t rows, const float *x, const float *dy)
{
    const nn_cuda_linear *l = &e->plan->head[layer];
    nn_gpu_nodes in = flat(l->n_in), out = flat(l->n_out);
    nn_cuda_rows r = { e, l, 0, rows, &in, &out };
    nn_gpu_column_sum bias = { rows, l->n_out, l->n_out, dy, e->grad + e->plan->head_bias[layer] };
    nn_cuda_group one = { .e = e, .work = e->work[NN_CUDA_BESIDE] };

    nn_cuda_join(&one, nn_cuda_linear_grad(&r, x, dy));
    nn_cuda_group_run(&one);
    e->ops->column_sum(e->gpu, &bias);
}

void nn_cuda_head_back(nn_engine *e, const nn_batch *in, float *dx)
{
    const nn_cuda_plan *p = e->plan;
    int32_t wide = p->head[0].n_in;

    dense_back(e, 1, in->n_graphs, e->dy, e->dhidden);
    e->ops->bias_back(e->gpu, &(nn_gpu_bias){ .rows = in->n_graphs, .cols = p->head[0].n_out, .y = e->hidden, .dy = e->dhidden });
    dense_back(e, 0, in->n_graphs, e->dhidden, e->dpooled);
    e->ops->pool_back(e->gpu, &(nn_gpu_pool){ .n_graphs = in->n_graphs,
                                              .channels = wide,
                                              .ld = p->module[p->n_modules - 1].out.size,
                                              .kind = p->model->conf.pooling,
                                              .first = nn_cuda_at(e, e->prep.graph),
                                              .dy = e->dpooled,
                                              .dx = dx,
                                              .from = e->pool_from });
}

void nn_cuda_head_grads(nn_engine *e, const nn_batch *in)
{
    nn_cuda_beside(e, NN_CUDA_BESIDE);
    dense_grads(e, 1, in->n_graphs, e->hidden, e->dy);
    dense_grads(e, 0, in->n_graphs, e->pooled, e->dhidden);
    e->ops->use_stream(e->gpu, NN_CUDA_MAIN);
}

void nn_cuda_hidden_back(nn_engine *e, int32_t first, int32_t n)
{
    int64_t at = (int64_t)first * e->prep.n_nodes * NN_GPU_H;

    if (!n)
        return;
    e->ops->hidden_back(e->gpu, &(nn_gpu_hidden){ .n_nets = n,
                                                  .n_nodes = e->prep.n_nodes,
                                                  .n_in = e->prep.n_scalars,
                                                  .net = e->net + first,
                                                  .params = e->params,
                                                  .scalar = nn_cuda_at(e, e->prep.scalar),
                                                  .h = e->h + at,
                                                  .dh = e->dh + at,
                                                  .work = e->h_work,
                                                  .grad = e->grad });
}
