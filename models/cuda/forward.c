/* SPDX-License-Identifier: Apache-2.0 */
#include "models/cuda/cuda_engine.h"

/* ---- once per set of parameters, once per batch ------------------------------------- */

void nn_cuda_fold(nn_engine *e)
{
    nn_gpu_fold f = { .n_tiles = e->plan->n_tiles, .tile = e->tile, .path = e->path, .params = e->params, .folded = e->fold };

    if (f.n_tiles)
        e->ops->fold(e->gpu, &f);
    e->stale = false;
}

void nn_cuda_geometry(nn_engine *e)
{
    const nn_cuda_prep *p = &e->prep;

    e->ops->frames(e->gpu, &(nn_gpu_frames){ .n_pairs = p->n_pairs,
                                             .l_max = e->plan->l_max,
                                             .size = nn_frame_size(e->plan->l_max),
                                             .rule = e->rule,
                                             .vec = nn_cuda_at(e, p->vec),
                                             .stored = nn_cuda_at(e, p->stored),
                                             .d = e->frames });
    nn_cuda_lap(e, NN_OP_PREPARE);
    e->ops->use_stream(e->gpu, NN_CUDA_BESIDE);
    e->ops->hidden(e->gpu, &(nn_gpu_hidden){ .n_nets = e->plan->n_nets,
                                             .n_nodes = p->n_nodes,
                                             .n_in = p->n_scalars,
                                             .net = e->net,
                                             .params = e->params,
                                             .scalar = nn_cuda_at(e, p->scalar),
                                             .h = e->h });
    e->ops->use_stream(e->gpu, NN_CUDA_MAIN);
    nn_cuda_lap(e, NN_OP_RADIAL);
}

/* ---- modules ---------------------------------------------------------------------------- */

/* Values (and keys) of the edges, in their frames, from the features of their source nodes. */
static void conv_parts(nn_engine *e, const nn_cuda_conv *c, const float *x, float *y)
{
    nn_gpu_turn t = nn_cuda_turn(e, e->prep.src, &c->in, &c->in_edges, x, e->x_edge);
    nn_cuda_chunk k = { 0 };

    e->ops->turn(e->gpu, &t);
    nn_cuda_lap(e, NN_OP_EDGES);
    for (; nn_cuda_product_next(e, c, &k); k.first = k.end)
        nn_cuda_product(e, c, &k, false, e->x_edge, y);
}

static int32_t max_channels(const nn_gpu_edges *f)
{
    int32_t max = 1;

    for (int l = 0; l < NN_GPU_DEGREES; l++)
        max = f->ch[l] > max ? f->ch[l] : max;
    return max;
}

/* The same in one kernel, with the parts of the attention logits if there is attention. False: nothing was done; use conv_parts. */
static bool conv_fused(nn_cuda_step *s, bool attention)
{
    nn_engine *e = s->e;
    const nn_cuda_conv *c = &s->m->conv;
    nn_gpu_conv all = { .x = nn_cuda_turn(e, e->prep.src, &c->in, &c->in_edges, s->x, NULL),
                        .q = nn_cuda_turn(e, e->prep.dst, &s->m->q, &c->key, s->q, s->edge),
                        .channels = max_channels(&c->in_edges),
                        .key_channels = max_channels(&c->key),
                        .scale = s->m->scale,
                        .logit = attention ? e->logit : NULL };
    nn_cuda_chunk k = { 0 };

    all.q.heads = attention ? s->m->heads : 1;
    for (; nn_cuda_product_next(e, c, &k); k.first = k.end)
        if (!nn_cuda_conv_fused(e, c, &k, &all))
            return false;
    return true;
}

static nn_cuda_rows rows_of(const nn_cuda_step *s, const nn_cuda_linear *l, int d, const nn_gpu_nodes *in, const nn_gpu_nodes *out)
{
    return (nn_cuda_rows){ s->e, l, d, s->in->n_nodes, in, out };
}

static void query_run(nn_cuda_step *s)
{
    const nn_cuda_module *m = s->m;
    nn_cuda_group all = { .e = s->e };

    for (int d = 0; d < NN_DEGREES; d++)
        if (m->query[d].n_in) {
            nn_cuda_rows r = rows_of(s, &m->query[d], d, &m->in, &m->q);
            nn_cuda_join(&all, nn_cuda_linear_run(&r, s->x, s->q, false));
        }
    nn_cuda_group_run(&all);
    nn_cuda_lap(s->e, NN_OP_ATTENTION);
}

/* Computes the logits of the edges in several parts; returns how many. */
static int32_t logits_run(nn_cuda_step *s)
{
    nn_engine *e = s->e;
    nn_gpu_turn t = nn_cuda_turn(e, e->prep.dst, &s->m->q, &s->m->conv.key, s->q, s->edge);

    if (conv_fused(s, true))
        return s->m->conv.out_edges.n_degrees;
    conv_parts(e, &s->m->conv, s->x, s->edge);
    t.heads = s->m->heads;
    e->ops->dot(e->gpu, &(nn_gpu_dot){ t, s->m->scale, e->logit });
    return 1;
}

void nn_cuda_attend(nn_cuda_step *s)
{
    nn_engine *e = s->e;
    const nn_cuda_module *m = s->m;
    nn_gpu_attend attend = { .sum = nn_cuda_sum(e, s->in->n_nodes, false, &m->z, &m->conv.value, s->edge),
                             .logit = e->logit,
                             .log_envelope = nn_cuda_at(e, e->prep.log_envelope),
                             .alpha = s->alpha };

    query_run(s);
    attend.sum.t.weight = s->alpha;
    attend.sum.t.heads = m->heads;
    attend.sum.to = s->z;
    attend.n_parts = logits_run(s);
    e->ops->attend(e->gpu, &attend);
}

void nn_cuda_attention(nn_cuda_step *s)
{
    const nn_cuda_module *m = s->m;
    nn_cuda_group all = { .e = s->e };

    nn_cuda_attend(s);
    for (int d = 0; d < m->out.n_degrees; d++) {
        nn_cuda_rows z = rows_of(s, &m->project_z[d], d, &m->z, &m->out);
        nn_cuda_rows x = rows_of(s, &m->project_x[d], d, &m->in, &m->out);
        nn_gpu_gemm of_z = nn_cuda_linear_run(&z, s->z, s->y, false);
        of_z.more = x.l->n_in > 0;
        nn_cuda_join(&all, of_z);
        if (of_z.more)
            nn_cuda_join(&all, nn_cuda_linear_run(&x, s->x, s->y, false));
    }
    nn_cuda_group_run(&all);
}

void nn_cuda_norm(nn_cuda_step *s)
{
    const nn_cuda_module *m = s->m;
    nn_gpu_norm a = { .n_nodes = s->in->n_nodes,
                      .channels = m->channels,
                      .gate = m->gate,
                      .nodes = m->in,
                      .params = s->e->params,
                      .x = s->x,
                      .y = s->y };

    for (int d = 0; d < NN_DEGREES; d++) {
        a.gain[d] = m->gain[d];
        a.bias[d] = m->bias[d];
    }
    s->e->ops->norm(s->e->gpu, &a);
}

void nn_cuda_sum_layer(nn_cuda_step *s)
{
    nn_engine *e = s->e;
    const nn_cuda_conv *c = &s->m->conv;
    nn_gpu_sum sum = nn_cuda_sum(e, s->in->n_nodes, false, &c->out, &c->out_edges, s->edge);
    nn_cuda_group self = { .e = e };

    if (!conv_fused(s, false))
        conv_parts(e, c, s->x, s->edge);
    e->ops->zero(e->gpu, s->y, (size_t)s->in->n_nodes * (size_t)c->out.size * sizeof(float));
    for (int d = 0; d < NN_DEGREES; d++)
        if (c->self[d].n_in) {
            nn_cuda_rows r = rows_of(s, &c->self[d], d, &c->in, &c->out);
            nn_cuda_join(&self, nn_cuda_linear_run(&r, s->x, s->y, false));
        }
    nn_cuda_group_run(&self);
    sum.add = true;
    sum.times = nn_cuda_at(e, e->prep.in_sum);
    sum.to = s->y;
    e->ops->sum(e->gpu, &sum);
}

/* ---- the end of the network ------------------------------------------------------------- */

static nn_gpu_nodes flat(int32_t n) { return (nn_gpu_nodes){ 1, n, { n }, { 0 } }; }

static void dense_run(nn_engine *e, int layer, int32_t rows, const float *x, float *y)
{
    const nn_cuda_linear *l = &e->plan->head[layer];
    nn_gpu_nodes in = flat(l->n_in), out = flat(l->n_out);
    nn_cuda_rows r = { e, l, 0, rows, &in, &out };
    nn_cuda_group one = { .e = e };

    nn_cuda_join(&one, nn_cuda_linear_run(&r, x, y, false));
    nn_cuda_group_run(&one);
    e->ops->bias(e->gpu,
                 &(nn_gpu_bias){
                     .rows = rows, .cols = l->n_out, .relu = layer == 0, .bias = e->params + e->plan->head_bias[layer], .y = y });
}

void nn_cuda_head(nn_engine *e, const nn_batch *in, const float *x)
{
    const nn_cuda_plan *p = e->plan;

    e->ops->pool(e->gpu, &(nn_gpu_pool){ .n_graphs = in->n_graphs,
                                         .channels = p->head[0].n_in,
                                         .ld = p->module[p->n_modules - 1].out.size,
                                         .kind = p->model->conf.pooling,
                                         .first = nn_cuda_at(e, e->prep.graph),
                                         .x = x,
                                         .y = e->pooled,
                                         .from = e->pool_from });
    dense_run(e, 0, in->n_graphs, e->pooled, e->hidden);
    dense_run(e, 1, in->n_graphs, e->hidden, e->y);
}
