/* SPDX-License-Identifier: Apache-2.0 */
#include "models/cpu/cpu_engine.h"
#include "models/cpu/kernels/kernels.h"

#include <stdlib.h>
#include <string.h>

/* ---- open, close --------------------------------------------------------------------- */

static size_t round_up(size_t n) { return (n + NN_LANE - 1) / NN_LANE * NN_LANE; }

/* Cuts one buffer into aligned arrays of floats. */
typedef struct cutter {
    float *p;
    size_t at;
} cutter;

static float *cut(cutter *c, size_t n)
{
    float *p = c->p != NULL ? c->p + c->at : NULL;

    c->at += round_up(n);
    return p;
}

static void cpu_close(nn_engine *e)
{
    int threads;

    if (e == NULL)
        return;
    threads = e->pool != NULL ? nn_pool_threads(e->pool) : 0;
    nn_pool_free(e->pool);
    for (int i = 0; i < threads && e->scratch != NULL; i++)
        nn_buf_free(&e->scratch[i].buf);
    nn_cpu_prep_free(&e->prep);
    nn_cpu_cells_free(&e->cells);
    nn_buf_free(&e->nodes.buf);
    nn_cpu_table_cache_free(&e->nodes.keep);
    nn_buf_free(&e->weights);
    nn_buf_free(&e->acts);
    nn_buf_free(&e->edges);
    nn_buf_free(&e->grads);
    nn_buf_free(&e->pieces);
    nn_buf_free(&e->pooled);
    pl_arena_free(e->mem);
    free(e);
}

static pl_code weights_open(nn_engine *e, size_t n_packed, pl_error *err)
{
    const nn_cpu_plan *p = e->plan;
    bool nodes = e->mode->tables, packed = nodes && e->of_radial->pack != NULL;
    cutter c = { NULL, 0 };

    for (int pass = 0; pass < 2; pass++) {
        e->small = cut(&c, p->n_small);
        e->turned = cut(&c, p->n_turned);
        e->fold = cut(&c, nodes ? 0 : p->n_fold);
        e->back = cut(&c, nodes ? 0 : p->n_back);
        e->small16 = (nn_bf16 *)cut(&c, e->precision_linear != NN_PREC_FP32 ? p->n_half / 2 : 0);
        e->fold16 = (nn_bf16 *)cut(&c, e->precision_radial != NN_PREC_FP32 ? p->n_fold : 0);
        e->back16 = (nn_bf16 *)cut(&c, e->precision_radial != NN_PREC_FP32 ? p->n_back : 0);
        e->back_turned16 = (nn_bf16 *)cut(&c, e->precision_radial != NN_PREC_FP32 ? p->n_back : 0);
        e->nodes.w = cut(&c, nodes ? p->n_table : 0);
        e->nodes.w_packed = packed ? cut(&c, n_packed) : e->nodes.w;
        if (pass == 0 && !nn_buf_grow(&e->weights, c.at, sizeof(float)))
            return pl_fail(err, PL_ENOMEM, "no memory for the weights of a model");
        c = (cutter){ e->weights.p, 0 };
    }
    return PL_OK;
}

static bool on_gpu_only(nn_precision p) { return p == NN_PREC_TF32 || p == NN_PREC_FP16; }

static pl_code cpu_check(const nn_engine_conf *conf, pl_error *err)
{
    if (on_gpu_only(conf->of_radial) || on_gpu_only(conf->of_contract) || on_gpu_only(conf->of_linear))
        return pl_fail(err, PL_ECONFIG, "engine cpu has no precision tf32 or fp16; it has fp32, bf16x3 and bf16");
    if (conf->radial == NN_RADIAL_NODES && !(conf->width > 0))
        return pl_fail(err, PL_ECONFIG, "engine cpu: radial.width is %g, not above 0", conf->width);
    return PL_OK;
}

static const nn_cpu_products *products_of(const nn_engine *e, nn_precision p)
{
    return p ? &e->kernels->products16[p - NN_PREC_BF16X3] : &e->kernels->products;
}

static pl_code engine_fill(nn_engine *e, const nn_se3 *model, const nn_engine_conf *conf, pl_error *err)
{
    nn_cpu_plan *plan;
    pl_code code = cpu_check(conf, err);

    if (code != PL_OK)
        return code;
    code = nn_cpu_kernels_pick(&e->kernels, conf->kernels, err);
    if (code != PL_OK)
        return code;
    e->mem = pl_arena_new(1 << 16);
    e->pool = nn_pool_new(conf->threads);
    if (e->mem == NULL || e->pool == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for the cpu engine");
    code = nn_cpu_plan_make(&plan, model, conf->recompute, e->mem, err);
    if (code != PL_OK)
        return code;
    e->conf = *conf;
    e->mode = &nn_cpu_modes[conf->radial];
    e->plan = plan;
    e->of_radial = products_of(e, conf->of_radial);
    e->of_contract = products_of(e, conf->of_contract);
    e->scratch = PL_NEW(e->mem, nn_cpu_scratch, nn_pool_threads(e->pool));
    e->act = PL_NEW(e->mem, float *, plan->n_modules);
    e->y = PL_NEW(e->mem, float *, plan->n_modules);
    if (e->scratch == NULL || e->act == NULL || e->y == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for the cpu engine");
    nn_frame_rule_make(&e->rule);
    e->precision_radial = e->mode->tables ? NN_PREC_FP32 : conf->of_radial;
    e->precision_linear = conf->of_linear;
    return weights_open(e, nn_cpu_nodes_places(e, plan), err);
}

static pl_code cpu_open(nn_engine **out, const nn_se3 *model, const nn_engine_conf *conf, pl_error *err)
{
    nn_engine *e = calloc(1, sizeof *e);
    pl_code code = e != NULL ? engine_fill(e, model, conf, err) : pl_fail(err, PL_ENOMEM, "no memory for the cpu engine");

    *out = code != PL_OK ? NULL : e;
    if (code != PL_OK)
        cpu_close(e);
    return code;
}

/* ---- parameters ----------------------------------------------------------------------- */

typedef struct fold_job {
    nn_engine *e;
    const nn_cpu_conv *c;
    const float *params;
} fold_job;

static void path_fold(void *ctx, int worker, int i)
{
    const fold_job *j = ctx;

    (void)worker;
    if (j->c->slab[i].m == 0)
        nn_cpu_fold(j->c, i, j->params, j->e->plan->model, j->e->fold, j->e->back);
}

static void slab_pack(void *ctx, int worker, int i)
{
    const fold_job *j = ctx;

    (void)worker;
    nn_cpu_radial16_load(j->e, j->c, i);
}

static void exact_weights(nn_engine *e, const nn_cpu_conv *c, const float *params)
{
    fold_job j = { e, c, params };

    nn_pool_run(e->pool, c->n_slabs, path_fold, &j);
    if (e->precision_radial != NN_PREC_FP32)
        nn_pool_run(e->pool, c->n_slabs, slab_pack, &j);
}

void nn_cpu_weights(nn_engine *e, const nn_cpu_conv *c)
{
    if (e->conf.recompute && e->folded != c)
        e->mode->weights(e, c, e->params);
    e->folded = c;
}

static pl_code cpu_set_params(nn_engine *e, const float *params, pl_error *err)
{
    (void)err;
    nn_op_start(e->clock);
    e->params = params;
    e->folded = NULL;
    nn_cpu_small_load(e->plan, params, e->small, e->turned);
    nn_cpu_linear16_load(e);
    nn_cpu_table_cache_forget(&e->nodes.keep);
    for (int i = 0; i < e->plan->n_modules && !e->conf.recompute; i++)
        if (e->plan->module[i].conv.n_slabs)
            e->mode->weights(e, &e->plan->module[i].conv, params);
    nn_op_lap(e->clock, NN_OP_WEIGHTS);
    e->kept = false;
    return PL_OK;
}

/* ---- memory of a batch ------------------------------------------------------------------ */

static size_t exact_edge_floats(const nn_cpu_plan *p) { return 2 * (size_t)NN_TILE * (size_t)p->edge_max; }

static size_t nodes_edge_floats(const nn_cpu_plan *p) { return (size_t)NN_TILE_ROWS * (size_t)p->edge_ld; }

static void scratch_cut(const nn_engine *e, nn_cpu_scratch *s, cutter *c)
{
    const nn_cpu_plan *p = e->plan;
    size_t edges = e->mode->edge_floats(p), nodes = (size_t)NN_CHUNK * (size_t)p->size_max;
    size_t weights = (size_t)(e->prep.max_in + 1) * (size_t)p->size_max;

    s->x = cut(c, edges);
    s->y = cut(c, edges);
    s->gy = cut(c, edges);
    s->gx = cut(c, edges);
    s->r = cut(c, (size_t)NN_TILE * (size_t)p->r_cols);
    s->h = cut(c, (size_t)NN_TILE * NN_H);
    s->packed = cut(c, (size_t)NN_TILE * NN_H);
    s->dh = cut(c, (size_t)NN_TILE * NN_H * NN_LANE);
    s->h16 = (nn_bf16 *)cut(c, e->precision_radial != NN_PREC_FP32 ? (size_t)NN_TILE * NN_H : 0);
    s->h_turned16 = (nn_bf16 *)cut(c, e->precision_radial != NN_PREC_FP32 ? (size_t)NN_TILE * NN_H : 0);
    s->r16 = (nn_bf16 *)cut(c, e->precision_radial != NN_PREC_FP32 ? (size_t)NN_TILE * (size_t)p->r_cols : 0);
    s->q = cut(c, nodes);
    s->z = cut(c, nodes);
    s->dz = cut(c, nodes);
    s->dq = cut(c, nodes);
    s->alpha = cut(c, weights);
    s->dalpha = cut(c, weights);
}

static bool scratch_grow(nn_engine *e)
{
    for (int i = 0; i < nn_pool_threads(e->pool); i++) {
        nn_cpu_scratch *s = &e->scratch[i];
        cutter c = { NULL, 0 };
        scratch_cut(e, s, &c);
        if (!nn_buf_grow(&s->buf, c.at, sizeof(float)))
            return false;
        c = (cutter){ s->buf.p, 0 };
        scratch_cut(e, s, &c);
    }
    return true;
}

/* Without `keep` two arrays alternate, and all blocks share one array of edges; with recompute the norms alternate, and blocks
 * share. */
static void acts_cut(nn_engine *e, const nn_batch *in, bool keep, cutter *nodes, cutter *edges)
{
    const nn_cpu_plan *p = e->plan;
    size_t n = (size_t)in->n_nodes, max = n * (size_t)p->size_max;
    bool all = keep && !e->conf.recompute;
    float *turn[2] = { NULL, NULL }, *shared = NULL;

    e->input = cut(nodes, n * (size_t)p->input.size);
    if (!all) {
        turn[0] = cut(nodes, max);
        turn[1] = cut(nodes, max);
        shared = cut(edges, (size_t)in->n_edges * (size_t)p->edge_max);
    }
    for (int i = 0; i < p->n_modules; i++) {
        const nn_cpu_module *m = &p->module[i];
        bool own = all || (keep && m->kind != NN_NORM);
        e->act[i] = own ? cut(nodes, n * (size_t)m->out.size) : turn[keep ? i / 2 % 2 : i % 2];
        e->y[i] = all && m->kind == NN_ATTENTION ? cut(edges, (size_t)in->n_edges * (size_t)m->conv.out.size) : shared;
    }
}

/* Memory for the largest chunk of the batch. Without `keep` there is no backward pass. */
static void nodes_cut(nn_engine *e, bool keep, cutter *c)
{
    const nn_cpu_plan *p = e->plan;
    nn_cpu_nodes *n = &e->nodes;
    size_t nodes = 0, sums = 0;

    for (int32_t k = 0; k < e->cells.n_chunks; k++) {
        const nn_cpu_chunk *chunk = &e->cells.chunk[k];
        nodes = nodes > (size_t)chunk->n_nodes ? nodes : (size_t)chunk->n_nodes;
        sums = sums > (size_t)chunk->n_sums ? sums : (size_t)chunk->n_sums;
    }
    n->ld = round_up(p->table_max) + NN_LANE;
    n->packed_ld = e->of_contract->pack != NULL ? p->packed_max : n->ld;
    n->h = cut(c, (size_t)p->groups_max * NN_CHUNK_SUMS * NN_H);
    n->table = cut(c, nodes * n->ld);
    n->packed = e->of_contract->pack != NULL ? cut(c, nodes * n->packed_ld) : n->table;
    n->kept = keep || e->conf.recompute ? NULL : (int32_t *)cut(c, (size_t)e->cells.n_nodes);
    n->dtable = cut(c, keep ? sums * n->ld : 0);
    n->dw = cut(c, keep ? p->table_max * NN_H : 0);
    n->dh = cut(c, keep ? (size_t)p->runs_max * NN_CHUNK_SUMS * NN_H : 0);
}

static bool exact_memory(nn_engine *e, bool keep)
{
    (void)e;
    (void)keep;
    return true;
}

static bool nodes_memory(nn_engine *e, bool keep)
{
    cutter c = { NULL, 0 };

    if (!nn_cpu_cells_make(&e->cells, &e->prep, e->conf.width))
        return false;
    nodes_cut(e, keep, &c);
    if (!nn_buf_grow(&e->nodes.buf, c.at, sizeof(float)))
        return false;
    c = (cutter){ e->nodes.buf.p, 0 };
    nodes_cut(e, keep, &c);
    nn_cpu_nodes_find(e);
    return true;
}

static void grads_cut(nn_engine *e, const nn_batch *in, cutter *c)
{
    size_t max = (size_t)in->n_nodes * (size_t)e->plan->size_max;

    e->dnode[0] = cut(c, max);
    e->dnode[1] = cut(c, max);
    e->dedge = cut(c, (size_t)in->n_edges * (size_t)e->plan->edge_max);
}

static void pooled_cut(nn_engine *e, const nn_batch *in, cutter *c)
{
    size_t g = (size_t)in->n_graphs, wide = (size_t)e->plan->head[0].in_pad;

    e->pool_x = cut(c, g * wide);
    e->pool_h = cut(c, g * wide);
    e->pool_y = cut(c, g * (size_t)e->plan->head[1].out_pad);
    e->pool_d = cut(c, 2 * g * wide);
    e->pool_from = (int32_t *)cut(c, g * wide);
}

static bool forward_memory(nn_engine *e, const nn_batch *in, bool keep)
{
    cutter nodes = { NULL, 0 }, edges = { NULL, 0 }, grads = { NULL, 0 }, pooled = { NULL, 0 };

    acts_cut(e, in, keep, &nodes, &edges);
    grads_cut(e, in, &grads);
    pooled_cut(e, in, &pooled);
    if (!scratch_grow(e) || !e->mode->memory(e, keep) || !nn_buf_grow(&e->acts, nodes.at, sizeof(float)) ||
        !nn_buf_grow(&e->edges, edges.at, sizeof(float)) || !nn_buf_grow(&e->pooled, pooled.at, sizeof(float)) ||
        (keep && !nn_buf_grow(&e->grads, grads.at, sizeof(float))))
        return false;
    nodes = (cutter){ e->acts.p, 0 };
    edges = (cutter){ e->edges.p, 0 };
    grads = (cutter){ e->grads.p, 0 };
    pooled = (cutter){ e->pooled.p, 0 };
    acts_cut(e, in, keep, &nodes, &edges);
    grads_cut(e, in, &grads);
    pooled_cut(e, in, &pooled);
    /* the messages of the last convolution are not kept: they are in the array of the gradients */
    if (keep)
        e->y[e->plan->n_modules - 1] = e->dedge;
    return true;
}

static bool pieces_memory(nn_engine *e)
{
    cutter c = { NULL, 0 };

    for (int pass = 0; pass < 2; pass++) {
        e->dsmall = cut(&c, NN_PIECES * e->plan->n_small);
        e->dback = cut(&c, e->mode->tables ? 0 : NN_PIECES * e->plan->back_max);
        if (pass == 0 && !nn_buf_grow(&e->pieces, c.at, sizeof(float)))
            return false;
        c = (cutter){ e->pieces.p, 0 };
    }
    return true;
}

/* ---- forward and backward ---------------------------------------------------------------- */

static void input_copy(nn_engine *e, const nn_batch *in)
{
    size_t n = (size_t)in->n_node_features, size = (size_t)e->plan->input.size;

    memset(e->input, 0, (size_t)in->n_nodes * size * sizeof(float));
    for (int32_t i = 0; i < in->n_nodes; i++)
        memcpy(e->input + (size_t)i * size, in->node + (size_t)i * n, n * sizeof(float));
}

static pl_code batch_check(const nn_engine *e, const nn_batch *in, pl_error *err)
{
    const nn_se3_conf *c = &e->plan->model->conf;

    if (in->n_node_features != c->node_features || in->n_edge_features != c->edge_features)
        return pl_fail(err, PL_EBUG, "a batch has %d node and %d edge features, the model %d and %d", (int)in->n_node_features,
                       (int)in->n_edge_features, (int)c->node_features, (int)c->edge_features);
    return PL_OK;
}

static nn_cpu_step step_of(nn_engine *e, const nn_batch *in, int i)
{
    return (nn_cpu_step){
        .e = e, .in = in, .m = &e->plan->module[i], .x = i ? e->act[i - 1] : e->input, .y = e->act[i], .edge = e->y[i]
    };
}

static void modules_run(nn_engine *e, const nn_batch *in)
{
    int n = e->plan->n_modules;

    for (int i = 0; i < n; i++) {
        nn_cpu_step s = step_of(e, in, i);
        if (s.m->kind == NN_CONV) {
            nn_cpu_sum_layer(&s);
        } else if (s.m->kind == NN_ATTENTION) {
            bool normed = i + 1 < n && s.m[1].kind == NN_NORM;
            s.norm = normed ? s.m + 1 : NULL;
            s.normed = normed ? e->act[i + 1] : NULL;
            nn_cpu_attention(&s);
            i += normed;
        }
    }
}

static pl_code cpu_forward(nn_engine *e, const nn_batch *in, bool keep, float *y, pl_error *err)
{
    pl_code code = batch_check(e, in, err);

    e->kept = false;
    nn_op_start(e->clock);
    if (code == PL_OK)
        code = nn_cpu_prep_make(&e->prep, in, &e->plan->model->conf, &e->rule, e->pool, err);
    if (code == PL_OK && !forward_memory(e, in, keep))
        code = pl_fail(err, PL_ENOMEM, "no memory for a batch of %d molecules", (int)in->n_graphs);
    if (code != PL_OK)
        return code;
    e->batch = in;
    input_copy(e, in);
    nn_op_lap(e->clock, NN_OP_PREPARE);
    modules_run(e, in);
    nn_cpu_head(e, in, e->act[e->plan->n_modules - 1], y);
    nn_op_lap(e->clock, NN_OP_HEAD);
    if (e->clock != NULL)
        e->clock->radial_rows = e->mode->tables ? e->cells.n_nodes : e->prep.n_pairs;
    e->n_nodes = in->n_nodes;
    e->kept = keep;
    return PL_OK;
}

static void norm_again(nn_engine *e, const nn_batch *in, int i)
{
    nn_cpu_step s = step_of(e, in, i);

    nn_cpu_norm_again(&s);
}

static void cpu_vectors(nn_engine *e, float (*v)[3]) { nn_cpu_noise(e, e->n_nodes, e->act[e->plan->n_modules - 2], v); }

/* dv: gradient of the vectors of the noise head, or NULL. */
static void modules_back(nn_engine *e, const nn_batch *in, const float (*dv)[3], float *grad)
{
    int turn = 0;

    for (int i = e->plan->n_modules - 1; i >= 0; i--, turn ^= 1) {
        nn_cpu_step s = step_of(e, in, i);
        s.dy = e->dnode[turn];
        s.dx = i ? e->dnode[turn ^ 1] : NULL;
        if (e->conf.recompute && i && s.m[-1].kind == NN_NORM)
            norm_again(e, in, i - 1);
        if (s.m->kind == NN_ATTENTION)
            nn_cpu_attention_back(&s, grad);
        else if (s.m->kind == NN_NORM)
            nn_cpu_norm_back(&s); /* timed with the attention before it */
        else
            nn_cpu_sum_back(&s, grad);
        if (dv != NULL && i == e->plan->n_modules - 1)
            nn_cpu_noise_back(e, in->n_nodes, s.x, dv, s.dx);
    }
}

static pl_code cpu_backward_vectors(nn_engine *e, const nn_batch *in, const float *dy, const float (*dv)[3], float *grad,
                                    pl_error *err)
{
    size_t n = e->plan->n_small;

    if (!e->kept)
        return pl_fail(err, PL_EBUG, "backward without a forward that keeps");
    if (!pieces_memory(e))
        return pl_fail(err, PL_ENOMEM, "no memory for the gradients of a model");
    e->batch = in;
    nn_op_start(e->clock);
    memset(e->dsmall, 0, NN_PIECES * n * sizeof(float));
    nn_op_lap(e->clock, NN_OP_WEIGHTS);
    nn_cpu_head_back(e, in, dy, e->dnode[0]);
    nn_op_lap(e->clock, NN_OP_HEAD_BACK);
    modules_back(e, in, dv, grad);
    for (int i = 1; i < NN_PIECES; i++)
        e->kernels->add(n, e->dsmall + (size_t)i * n, e->dsmall);
    nn_cpu_small_store(e->plan, e->dsmall, grad);
    nn_op_lap(e->clock, NN_OP_WEIGHTS);
    return PL_OK;
}

static pl_code cpu_backward(nn_engine *e, const nn_batch *in, const float *dy, float *grad, pl_error *err)
{
    return cpu_backward_vectors(e, in, dy, NULL, grad, err);
}

static size_t cpu_workspace_bytes(const nn_engine *e)
{
    size_t sum = nn_cpu_prep_bytes(&e->prep) + nn_cpu_cells_bytes(&e->cells) + e->nodes.buf.bytes +
                 nn_cpu_table_cache_bytes(&e->nodes.keep) + e->weights.bytes + e->acts.bytes + e->edges.bytes + e->grads.bytes +
                 e->pieces.bytes + e->pooled.bytes;

    for (int i = 0; i < nn_pool_threads(e->pool); i++)
        sum += e->scratch[i].buf.bytes;
    return sum;
}

static void cpu_watch(nn_engine *e, nn_op_clock *clock) { e->clock = clock; }

const nn_cpu_mode nn_cpu_modes[] = {
    [NN_RADIAL_NODES] = { .tables = true,
                          .edge_floats = nodes_edge_floats,
                          .memory = nodes_memory,
                          .weights = nn_cpu_nodes_weights,
                          .run = nn_cpu_nodes_run,
                          .back = nn_cpu_nodes_back },
    [NN_RADIAL_EXACT] = { .edge_floats = exact_edge_floats,
                          .memory = exact_memory,
                          .weights = exact_weights,
                          .run = nn_cpu_exact_run,
                          .back = nn_cpu_exact_back },
};

const nn_engine_kind nn_engine_cpu = {
    .name = "cpu",
    .help = "edge frame and pair sharing in float32, AVX2 or AVX-512, threads",
    .check = cpu_check,
    .open = cpu_open,
    .close = cpu_close,
    .set_params = cpu_set_params,
    .forward = cpu_forward,
    .backward = cpu_backward,
    .vectors = cpu_vectors,
    .backward_vectors = cpu_backward_vectors,
    .workspace_bytes = cpu_workspace_bytes,
    .radial_error = nn_cpu_nodes_error,
    .watch = cpu_watch,
};
