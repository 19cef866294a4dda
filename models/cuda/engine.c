/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/cuda/inner.h"
#include "models/cuda/plugin.h"

enum { TABLE_BYTES = 256 << 20, TEXT = 240 };

void *nn_cuda_cut(nn_cuda_cutter *c, size_t n, size_t size)
{
    char *p = c->p ? c->p + c->at : NULL;

    if (c->p && c->e && c->e->n_fences < c->e->most_fences)
        c->e->fence[c->e->n_fences++] = p + n * size;
    c->at += (n * size + NN_GPU_FENCE + 255) / 256 * 256;
    return p;
}

static float *cut_floats(nn_cuda_cutter *c, size_t n)
{
    return nn_cuda_cut(c, n, sizeof(float));
}

/* ---- open, close ----------------------------------------------------------------------- */

static void cuda_close(nn_engine *e)
{
    if (!e)
        return;
    if (e->gpu) {
        for (int32_t i = 0; e->fences && i < e->n_fences; i++)
            e->ops->fence(e->gpu, e->fence[i], false);
        e->ops->free(e->gpu, e->model);
        e->ops->free(e->gpu, e->grads);
        e->ops->free(e->gpu, e->arena);
        e->ops->host_free(e->gpu, e->host);
        for (int i = 0; i < NN_CUDA_SLOTS; i++) {
            e->ops->free(e->gpu, e->slot[i].device);
            e->ops->host_free(e->gpu, e->slot[i].host);
        }
        nn_cuda_training_close(e);
        e->ops->close(e->gpu);
    }
    nn_cuda_prep_free(&e->prep);
    pl_arena_free(e->mem);
    free(e);
}

static void model_cut(nn_engine *e, nn_cuda_cutter *c)
{
    const nn_cuda_plan *p = e->plan;

    e->path = nn_cuda_cut(c, (size_t)p->n_paths, sizeof *p->path);
    e->net = nn_cuda_cut(c, (size_t)p->n_nets, sizeof *p->net);
    e->rule = nn_cuda_cut(c, 1, sizeof *e->rule);
    e->params = cut_floats(c, p->model->n_floats);
    e->fold = cut_floats(c, p->fold_size);
}

pl_code nn_cuda_no_memory(nn_engine *e, const char *what, size_t bytes, int32_t molecules, pl_error *err)
{
    char hint[120] = "";
    size_t left, all, held = e->arena_room, fit;

    e->ops->memory(e->gpu, &left, &all);
    fit = bytes ? (size_t)molecules * (left + held) / (bytes + bytes / 4) : 0; /* an eighth is added to every piece */
    if (molecules > 1 && fit >= 1)
        snprintf(hint, sizeof hint, "; about %zu molecules would fit: batch.molecules", fit);
    return pl_fail(err, PL_EDEVICE, "no memory on GPU %d for %s: %zu MB are needed, %zu of its %zu MB are free%s",
                   (int)e->conf.device, what, (bytes >> 20) + 1, left >> 20, all >> 20, hint);
}

static void rule_make(nn_gpu_frame_rule *to)
{
    nn_frame_rule rule;

    nn_frame_rule_make(&rule);
    for (int l = 0; l < NN_DEGREES; l++) {
        to->n[l] = rule.n[l];
        for (int i = 0; i < rule.n[l]; i++)
            to->term[l][i] = (nn_gpu_term){ rule.term[l][i].i, rule.term[l][i].j, rule.term[l][i].k, 0,
                                            rule.term[l][i].w };
    }
}

/* The model's tables go to the device once. */
static pl_code model_open(nn_engine *e, pl_error *err)
{
    const nn_cuda_plan *p = e->plan;
    nn_cuda_cutter c = { 0 }; /* what the device only reads has no fences */
    nn_gpu_frame_rule *rule = PL_NEW(e->mem, nn_gpu_frame_rule, 1);

    model_cut(e, &c);
    e->model_bytes = c.at;
    e->model = rule ? e->ops->alloc(e->gpu, c.at) : NULL;
    if (!e->model)
        return nn_cuda_no_memory(e, "a model", c.at, 0, err);
    c = (nn_cuda_cutter){ NULL, e->model, 0 };
    model_cut(e, &c);
    rule_make(rule);
    e->ops->upload(e->gpu, e->path, p->path, (size_t)p->n_paths * sizeof *p->path);
    e->ops->upload(e->gpu, e->net, p->net, (size_t)p->n_nets * sizeof *p->net);
    e->ops->upload(e->gpu, e->rule, rule, sizeof *rule);
    e->ops->zero(e->gpu, e->fold, p->fold_size * sizeof *e->fold); /* the filling of tables stays so */
    return PL_OK;
}

static pl_code cuda_check(const nn_engine_conf *conf, pl_error *err)
{
    const nn_gpu_ops *ops;
    char text[TEXT];
    pl_code rc = nn_cuda_plugin(&ops, err);

    if (!rc && !ops->find(conf->device, text, sizeof text))
        rc = pl_fail(err, PL_ECONFIG, "engine cuda: %s", text);
    if (!rc && conf->radial == NN_RADIAL_NODES && !(conf->width > 0))
        rc = pl_fail(err, PL_ECONFIG, "engine cuda: the grid of radial nodes has no width");
    return rc;
}

static pl_code engine_fill(nn_engine *e, const nn_se3 *model, pl_error *err)
{
    const char *kb = getenv("MOLSIEVE_CUDA_TABLE_KB");
    char text[TEXT];
    nn_cuda_plan *plan;
    pl_code rc = nn_cuda_plugin(&e->ops, err);

    if (rc)
        return rc;
    e->mem = pl_arena_new(1 << 16);
    if (!e->mem)
        return pl_fail(err, PL_ENOMEM, "no memory for the cuda engine");
    rc = nn_cuda_plan_make(&plan, model, e->mem, err);
    if (rc)
        return rc;
    e->plan = plan;
    e->most_fences = 48 + 6 * plan->n_modules;
    e->fence = PL_NEW(e->mem, void *, e->most_fences);
    e->act = PL_NEW(e->mem, float *, plan->n_modules);
    e->edge = PL_NEW(e->mem, float *, plan->n_modules);
    e->alpha = PL_NEW(e->mem, float *, plan->n_modules);
    e->z = PL_NEW(e->mem, float *, plan->n_modules);
    e->q = PL_NEW(e->mem, float *, plan->n_modules);
    if (!e->fence || !e->act || !e->edge || !e->alpha || !e->z || !e->q)
        return pl_fail(err, PL_ENOMEM, "no memory for the cuda engine");
    e->gpu = e->ops->open(e->conf.device, text, sizeof text);
    if (!e->gpu)
        return pl_fail(err, PL_ECONFIG, "engine cuda: %s", text);
    e->fences = getenv("MOLSIEVE_CUDA_FENCES") != NULL;
    e->parts = getenv("MOLSIEVE_CUDA_PARTS") != NULL;
    e->table_bytes = kb ? (size_t)strtoul(kb, NULL, 10) << 10 : TABLE_BYTES;
    return model_open(e, err);
}

static pl_code cuda_open(nn_engine **out, const nn_se3 *model, const nn_engine_conf *conf, pl_error *err)
{
    nn_engine *e = NULL;
    pl_code rc = cuda_check(conf, err);

    if (!rc) {
        e = calloc(1, sizeof *e);
        rc = e ? PL_OK : pl_fail(err, PL_ENOMEM, "no memory for the cuda engine");
    }
    if (!rc) {
        e->conf = *conf;
        e->prep.radial = conf->radial;
        e->prep.width = conf->width;
        rc = engine_fill(e, model, err);
    }
    *out = rc ? NULL : e;
    if (rc)
        cuda_close(e);
    return rc;
}

/* ---- what the device says ----------------------------------------------------------------- */

pl_code nn_cuda_check(nn_engine *e, pl_error *err)
{
    const char *bad = e->ops->status(e->gpu);

    if (bad)
        return pl_fail(err, PL_EBUG, "engine cuda: %s", bad);
    for (int32_t i = 0; e->fences && i < e->n_fences; i++)
        if (!e->ops->intact(e->gpu, e->fence[i]))
            return pl_fail(err, PL_EBUG, "engine cuda: an operation wrote behind array %d of its memory", (int)i);
    return PL_OK;
}

static pl_code cuda_set_params(nn_engine *e, const float *params, pl_error *err)
{
    e->kept = false;
    e->ops->upload(e->gpu, e->params, params, e->plan->model->n_floats * sizeof *params);
    nn_cuda_fold(e);
    return nn_cuda_check(e, err);
}

/* ---- memory of a batch ----------------------------------------------------------------------- */

static void acts_cut(nn_engine *e, const nn_batch *in, bool keep, nn_cuda_cutter *c)
{
    const nn_cuda_plan *p = e->plan;
    size_t n = (size_t)in->n_nodes, rows = (size_t)e->prep.n_rows;
    float *turn[2] = { NULL, NULL }, *edge = NULL, *alpha = NULL, *z = NULL, *q = NULL;

    if (!keep) {
        turn[0] = cut_floats(c, n * (size_t)p->most_node);
        turn[1] = cut_floats(c, n * (size_t)p->most_node);
        edge = cut_floats(c, rows * (size_t)p->most_edge);
        alpha = cut_floats(c, rows * (size_t)p->most_heads);
        z = cut_floats(c, n * (size_t)p->most_node);
        q = cut_floats(c, n * (size_t)p->most_node);
    }
    for (int i = 0; i < p->n_modules; i++) {
        const nn_cuda_module *m = &p->module[i];
        e->act[i] = keep ? cut_floats(c, n * (size_t)m->out.size) : turn[i % 2];
        e->edge[i] = keep && m->kind != NN_NORM ? cut_floats(c, rows * (size_t)m->conv.out_edges.size) : edge;
        e->alpha[i] = keep && m->kind == NN_ATTENTION ? cut_floats(c, rows * (size_t)m->heads) : alpha;
        e->z[i] = keep && m->kind == NN_ATTENTION ? cut_floats(c, n * (size_t)m->z.size) : z;
        e->q[i] = keep && m->kind == NN_ATTENTION ? cut_floats(c, n * (size_t)m->q.size) : q;
    }
}

/* Floats of one table: of all radial nodes, of what is allowed, but at least two nodes. */
static size_t table_floats(const nn_engine *e)
{
    size_t one = (size_t)e->plan->most_table, all = one * (size_t)e->prep.n_nodes, most = e->table_bytes / sizeof(float);

    return all < most ? all : most > 2 * one ? most : 2 * one;
}

static size_t work_floats(const nn_engine *e)
{
    size_t tile = 64 * 64, one = e->plan->most_matrix < tile ? e->plan->most_matrix : tile;
    size_t group = NN_GPU_GROUP * one, hidden = 64 * NN_GPU_H;
    size_t products = NN_CUDA_BLOCKS * (group > hidden ? group : hidden);
    size_t norms = 2 * NN_GPU_PARTS * (size_t)e->plan->most_channels;

    return products > norms ? products : norms;
}

static void back_cut(nn_engine *e, const nn_batch *in, nn_cuda_cutter *c)
{
    const nn_cuda_plan *p = e->plan;
    size_t n = (size_t)in->n_nodes, rows = (size_t)e->prep.n_rows, g = (size_t)in->n_graphs;
    size_t hidden = (size_t)p->n_nets * (size_t)e->prep.n_nodes * NN_GPU_H;

    e->dh = cut_floats(c, hidden);
    e->h_work = cut_floats(c, 7 * hidden);
    e->dtable = cut_floats(c, table_floats(e));
    e->work = cut_floats(c, work_floats(e));
    e->outer = cut_floats(c, 2 * (size_t)nn_cuda_slots(e, e->prep.n_rows) * (size_t)p->most_table);
    e->y_edge = cut_floats(c, rows * (size_t)p->most_edge);
    e->d_edge = cut_floats(c, rows * (size_t)p->most_edge);
    e->dalpha = cut_floats(c, rows * (size_t)p->most_heads);
    e->dz = cut_floats(c, n * (size_t)p->most_node);
    e->dq = cut_floats(c, n * (size_t)p->most_node);
    e->dnode[0] = cut_floats(c, n * (size_t)p->most_node);
    e->dnode[1] = cut_floats(c, n * (size_t)p->most_node);
    e->dbias = cut_floats(c, n * (size_t)p->most_channels);
    e->dgain = cut_floats(c, n * (size_t)p->most_channels);
    e->dpooled = cut_floats(c, g * (size_t)p->head[0].n_in);
    e->dhidden = cut_floats(c, g * (size_t)p->head[0].n_out);
    e->dy = cut_floats(c, g * (size_t)p->head[1].n_out);
}

static size_t arena_cut(nn_engine *e, const nn_batch *in, bool keep, char *base)
{
    const nn_cuda_plan *p = e->plan;
    size_t g = (size_t)in->n_graphs;
    nn_cuda_cutter c = { e, base, 0 };

    e->n_fences = 0;
    e->frames = cut_floats(&c, 2 * (size_t)e->prep.n_pairs * (size_t)nn_frame_size(p->l_max));
    e->h = cut_floats(&c, (size_t)p->n_nets * (size_t)e->prep.n_nodes * NN_GPU_H);
    e->table = cut_floats(&c, table_floats(e));
    e->x_edge = cut_floats(&c, (size_t)e->prep.n_rows * (size_t)p->most_edge);
    e->logit = cut_floats(&c, (size_t)(p->l_max + 1) * (size_t)e->prep.n_rows * (size_t)p->most_heads);
    e->pooled = cut_floats(&c, g * (size_t)p->head[0].n_in);
    e->hidden = cut_floats(&c, g * (size_t)p->head[0].n_out);
    e->y = cut_floats(&c, g * (size_t)p->head[1].n_out);
    e->pool_from = nn_cuda_cut(&c, g * (size_t)p->head[0].n_in, sizeof(int32_t));
    acts_cut(e, in, keep, &c);
    if (keep)
        back_cut(e, in, &c);
    return c.at;
}

static bool device_grow(nn_engine *e, char **p, size_t *have, size_t bytes)
{
    if (bytes <= *have)
        return true;
    e->ops->free(e->gpu, *p);
    *have = bytes + bytes / 8;
    *p = e->ops->alloc(e->gpu, *have);
    if (!*p)
        *have = 0;
    return *p != NULL;
}

static void fences_set(nn_engine *e, bool on)
{
    for (int32_t i = 0; e->fences && i < e->n_fences; i++)
        e->ops->fence(e->gpu, e->fence[i], on);
}

bool nn_cuda_host(nn_engine *e, size_t floats)
{
    if (floats * sizeof(float) <= e->host_room)
        return true;
    e->ops->host_free(e->gpu, e->host);
    e->host_room = floats * sizeof(float);
    e->host = e->ops->host_alloc(e->gpu, e->host_room);
    if (!e->host)
        e->host_room = 0;
    return e->host != NULL;
}

static pl_code batch_memory(nn_engine *e, const nn_batch *in, bool keep, nn_cuda_slot *to, pl_error *err)
{
    char what[80];
    size_t bytes;

    fences_set(e, false);
    bytes = arena_cut(e, in, keep, NULL);
    if (!device_grow(e, &to->device, &to->device_room, e->prep.most) || !device_grow(e, &e->arena, &e->arena_room, bytes)
        || !nn_cuda_host(e, (size_t)in->n_graphs * (size_t)e->plan->head[1].n_out + 1)) {
        e->n_fences = 0;
        snprintf(what, sizeof what, "a batch of %d molecules and %d edges", (int)in->n_graphs, (int)in->n_edges);
        return nn_cuda_no_memory(e, what, bytes + e->prep.most, in->n_graphs, err);
    }
    e->batch = to->device;
    arena_cut(e, in, keep, e->arena);
    fences_set(e, true);
    return PL_OK;
}

/* ---- forward and backward ---------------------------------------------------------------------- */

static void *prep_grow(void *ctx, size_t bytes)
{
    nn_engine *e = ctx;

    e->ops->host_free(e->gpu, e->prep.host);
    return e->ops->host_alloc(e->gpu, bytes);
}

static pl_code shape_check(const nn_engine *e, const nn_batch *in, pl_error *err)
{
    const nn_se3_conf *c = &e->plan->model->conf;

    if (in->n_node_features != c->node_features || in->n_edge_features != c->edge_features)
        return pl_fail(err, PL_EBUG, "a batch has %d node and %d edge features, the model %d and %d",
                       (int)in->n_node_features, (int)in->n_edge_features, (int)c->node_features,
                       (int)c->edge_features);
    return PL_OK;
}

nn_cuda_step nn_cuda_step_of(nn_engine *e, const nn_batch *in, int i)
{
    return (nn_cuda_step){ .e = e, .m = &e->plan->module[i], .in = in,
                           .x = i ? e->act[i - 1] : nn_cuda_at(e, e->prep.node), .y = e->act[i], .edge = e->edge[i],
                           .alpha = e->alpha[i], .z = e->z[i], .q = e->q[i] };
}

static void modules_run(nn_engine *e, const nn_batch *in)
{
    for (int i = 0; i < e->plan->n_modules; i++) {
        nn_cuda_step s = nn_cuda_step_of(e, in, i);
        if (s.m->kind == NN_ATTENTION)
            nn_cuda_attention(&s);
        else if (s.m->kind == NN_NORM)
            nn_cuda_norm(&s);
        else
            nn_cuda_sum_layer(&s);
    }
}

pl_code nn_cuda_batch(nn_engine *e, const nn_batch *in, bool keep, int slot, int32_t n_targets, pl_error *err)
{
    nn_cuda_slot *to = &e->slot[slot];
    pl_code rc = shape_check(e, in, err);

    e->kept = false;
    e->prep.host = to->host;
    e->prep.room = to->host_room;
    e->prep.n_targets = n_targets;
    if (!rc)
        rc = nn_cuda_prep_make(&e->prep, in, prep_grow, e, err);
    to->host = e->prep.host;
    to->host_room = e->prep.room;
    return rc ? rc : batch_memory(e, in, keep, to, err);
}

void nn_cuda_forward(nn_engine *e, const nn_batch *in)
{
    nn_cuda_geometry(e);
    modules_run(e, in);
    nn_cuda_head(e, in, e->act[e->plan->n_modules - 1]);
}

static pl_code cuda_forward(nn_engine *e, const nn_batch *in, bool keep, float *y, pl_error *err)
{
    size_t bytes = (size_t)in->n_graphs * (size_t)e->plan->head[1].n_out * sizeof *y;
    pl_code rc = nn_cuda_batch(e, in, keep, 0, 0, err);

    if (rc)
        return rc;
    e->ops->upload(e->gpu, e->batch, e->prep.host, e->prep.bytes);
    nn_cuda_forward(e, in);
    e->ops->download(e->gpu, e->host, e->y, bytes);
    rc = nn_cuda_check(e, err);
    if (!rc)
        memcpy(y, e->host, bytes);
    e->kept = keep && !rc;
    return rc;
}

/* Gradients of the model, made by the first backward. */
pl_code nn_cuda_grads(nn_engine *e, pl_error *err)
{
    size_t floats = e->plan->model->n_floats, fold = (size_t)e->plan->most_table * NN_GPU_H;

    if (!e->grads) {
        e->grads_bytes = (floats + fold + 128) * sizeof(float);
        e->grads = e->ops->alloc(e->gpu, e->grads_bytes);
    }
    if (!e->grads || !nn_cuda_host(e, floats))
        return nn_cuda_no_memory(e, "the gradients of a model", e->grads_bytes, 0, err);
    e->grad = (float *)(void *)e->grads;
    e->dfold = e->grad + (floats + 63) / 64 * 64;
    return PL_OK;
}

static void modules_back(nn_engine *e, const nn_batch *in)
{
    int turn = 0;

    for (int i = e->plan->n_modules - 1; i >= 0; i--, turn ^= 1) {
        nn_cuda_step s = nn_cuda_step_of(e, in, i);
        s.dy = e->dnode[turn];
        s.dx = i ? e->dnode[turn ^ 1] : NULL;
        if (s.m->kind == NN_ATTENTION)
            nn_cuda_attention_back(&s);
        else if (s.m->kind == NN_NORM)
            nn_cuda_norm_back(&s);
        else
            nn_cuda_sum_back(&s);
    }
}

void nn_cuda_backward(nn_engine *e, const nn_batch *in)
{
    size_t nets = (size_t)e->plan->n_nets * (size_t)e->prep.n_nodes;

    e->ops->zero(e->gpu, e->grad, e->plan->model->n_floats * sizeof *e->grad);
    e->ops->zero(e->gpu, e->dh, nets * NN_GPU_H * sizeof *e->dh);
    nn_cuda_head_back(e, in, e->dnode[0]);
    modules_back(e, in);
    nn_cuda_hidden_back(e);
}

static pl_code cuda_backward(nn_engine *e, const nn_batch *in, const float *dy, float *grad, pl_error *err)
{
    size_t n = e->plan->model->n_floats;
    pl_code rc;

    if (!e->kept)
        return pl_fail(err, PL_EBUG, "backward without a forward that keeps");
    rc = nn_cuda_grads(e, err);
    if (rc)
        return rc;
    e->ops->upload(e->gpu, e->dy, dy, (size_t)in->n_graphs * (size_t)e->plan->head[1].n_out * sizeof *dy);
    nn_cuda_backward(e, in);
    e->ops->download(e->gpu, e->host, e->grad, n * sizeof *grad);
    rc = nn_cuda_check(e, err);
    for (size_t i = 0; !rc && i < n; i++)
        grad[i] += e->host[i];
    return rc;
}

static size_t cuda_workspace_bytes(const nn_engine *e)
{
    size_t batches = 0;

    for (int i = 0; i < NN_CUDA_SLOTS; i++)
        batches += e->slot[i].device_room;
    return e->model_bytes + e->grads_bytes + e->training.bytes + batches + e->arena_room;
}

const nn_engine_kind nn_engine_cuda = {
    .name = "cuda",
    .help = "the first GPU that is visible, through libmolsieve_cuda.so",
    .check = cuda_check,
    .open = cuda_open,
    .close = cuda_close,
    .set_params = cuda_set_params,
    .forward = cuda_forward,
    .backward = cuda_backward,
    .workspace_bytes = cuda_workspace_bytes,
    .training = &nn_cuda_trains,
};
