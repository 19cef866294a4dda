/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/cuda/cuda_engine.h"
#include "models/cuda/plugin.h"

enum { TEXT = 240 };

/* ---- open, close ----------------------------------------------------------------------- */

static void cuda_close(nn_engine *e)
{
    if (e == NULL)
        return;
    if (e->gpu != NULL) {
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

static void rule_make(nn_gpu_frame_rule *to)
{
    nn_frame_rule rule;

    nn_frame_rule_make(&rule);
    for (int l = 0; l < NN_DEGREES; l++) {
        to->n[l] = rule.n[l];
        for (int i = 0; i < rule.n[l]; i++)
            to->term[l][i] = (nn_gpu_term){ rule.term[l][i].i, rule.term[l][i].j, rule.term[l][i].k, 0, rule.term[l][i].w };
    }
}

/* Copies the model's tables to the device, once. */
static pl_code model_open(nn_engine *e, pl_error *err)
{
    const nn_cuda_plan *p = e->plan;
    nn_cuda_cutter c = { 0 }; /* read-only arrays need no fences */
    nn_gpu_frame_rule *rule = PL_NEW(e->mem, nn_gpu_frame_rule, 1);
    float *unity = PL_NEW(e->mem, float, (NN_GPU_H * NN_GPU_H));

    nn_cuda_model_cut(e, &c);
    e->model_bytes = c.at;
    e->model = rule != NULL && unity != NULL ? e->ops->alloc(e->gpu, c.at) : NULL;
    if (e->model == NULL)
        return nn_cuda_no_memory(e, "a model", c.at, 0, err);
    c = (nn_cuda_cutter){ NULL, e->model, 0 };
    nn_cuda_model_cut(e, &c);
    rule_make(rule);
    for (int i = 0; i < NN_GPU_H; i++)
        unity[i * NN_GPU_H + i] = 1;
    e->ops->upload(e->gpu, e->unity, unity, (size_t)NN_GPU_H * NN_GPU_H * sizeof *unity);
    e->ops->upload(e->gpu, e->path, p->path, (size_t)p->n_paths * sizeof *p->path);
    e->ops->upload(e->gpu, e->tile, p->tile, (size_t)p->n_tiles * sizeof *p->tile);
    e->ops->upload(e->gpu, e->net, p->net, (size_t)p->n_nets * sizeof *p->net);
    e->ops->upload(e->gpu, e->rule, rule, sizeof *rule);
    e->ops->zero(e->gpu, e->fold, p->fold_size * sizeof *e->fold); /* padding of tables stays zero */
    return PL_OK;
}

static pl_code cuda_check(const nn_engine_conf *conf, pl_error *err)
{
    const nn_gpu_ops *ops;
    char text[TEXT];
    pl_code code = nn_cuda_plugin(&ops, err);

    if (code == PL_OK && !ops->find(conf->device, text, sizeof text))
        code = pl_fail(err, PL_ECONFIG, "engine cuda: %s", text);
    if (code == PL_OK && conf->radial == NN_RADIAL_NODES && !(conf->width > 0))
        code = pl_fail(err, PL_ECONFIG, "engine cuda: the grid of radial nodes has no width");
    if (code == PL_OK)
        code = nn_cuda_products_check(conf, ops, err);
    return code;
}

static pl_code engine_fill(nn_engine *e, const nn_se3 *model, pl_error *err)
{
    char text[TEXT];
    nn_cuda_plan *plan;
    pl_code code = nn_cuda_plugin(&e->ops, err);

    if (code != PL_OK)
        return code;
    e->mem = pl_arena_new(1 << 16);
    if (e->mem == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for the cuda engine");
    code = nn_cuda_plan_make(&plan, model, e->mem, err);
    if (code != PL_OK)
        return code;
    e->plan = plan;
    code = nn_cuda_modules_open(e, err);
    if (code != PL_OK)
        return code;
    e->gpu = e->ops->open(e->conf.device, e->conf.yields, text, sizeof text);
    if (e->gpu == NULL)
        return pl_fail(err, PL_EDEVICE, "engine cuda: %s", text);
    e->fences = getenv("MOLSIEVE_CUDA_FENCES") != NULL;
    e->graphs = !e->conf.yields && (getenv("MOLSIEVE_CUDA_GRAPHS") == NULL || strcmp(getenv("MOLSIEVE_CUDA_GRAPHS"), "0") != 0);
    e->parts = getenv("MOLSIEVE_CUDA_PARTS") != NULL;
    e->units = nn_cuda_units_asked(&e->conf);
    e->table_bytes = nn_cuda_table_bytes();
    code = nn_cuda_products_open(e, err);
    return code == PL_OK ? model_open(e, err) : code;
}

static pl_code cuda_open(nn_engine **out, const nn_se3 *model, const nn_engine_conf *conf, pl_error *err)
{
    nn_engine *e = NULL;
    pl_code code = cuda_check(conf, err);

    if (code == PL_OK && model->conf.denoise)
        code = pl_fail(err, PL_ECONFIG, "engine cuda cannot predict noise (train.noise) yet; use engine cpu or ref");
    if (code == PL_OK) {
        e = calloc(1, sizeof *e);
        code = e != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "no memory for the cuda engine");
    }
    if (code == PL_OK) {
        e->conf = *conf;
        e->prep.radial = conf->radial;
        e->prep.width = conf->width;
        e->prep.inputs = &model->conf.radial;
        code = engine_fill(e, model, err);
    }
    *out = code != PL_OK ? NULL : e;
    if (code != PL_OK)
        cuda_close(e);
    return code;
}

/* ---- what the device says ----------------------------------------------------------------- */

pl_code nn_cuda_said(const char *fault, pl_error *err)
{
    return fault != NULL ? pl_fail(err, PL_EDEVICE, "engine cuda: %s", fault) : PL_OK;
}

pl_code nn_cuda_check(nn_engine *e, pl_error *err)
{
    pl_code code = nn_cuda_said(e->ops->status(e->gpu), err);

    if (code != PL_OK)
        return code;
    for (int32_t i = 0; e->fences && i < e->n_fences; i++)
        if (!e->ops->intact(e->gpu, e->fence[i]))
            return pl_fail(err, PL_EBUG, "engine cuda: an operation wrote past the end of array %d in device memory", (int)i);
    return PL_OK;
}

static pl_code cuda_set_params(nn_engine *e, const float *params, pl_error *err)
{
    e->kept = false;
    e->ops->upload(e->gpu, e->params, params, e->plan->model->n_floats * sizeof *params);
    nn_cuda_lap_start(e);
    nn_cuda_fold(e);
    nn_cuda_lap(e, NN_OP_WEIGHTS);
    nn_cuda_lap_read(e);
    return nn_cuda_check(e, err);
}

/* ---- forward and backward ---------------------------------------------------------------------- */

static void *prep_grow(void *ctx, size_t bytes)
{
    nn_engine *e = ctx;

    e->ops->host_free(e->gpu, e->prep.host);
    return e->ops->host_alloc(e->gpu, bytes);
}

pl_code nn_cuda_shape_check(const nn_engine *e, const nn_batch *in, pl_error *err)
{
    const nn_se3_conf *c = &e->plan->model->conf;

    if (in->n_node_features != c->node_features || in->n_edge_features != c->edge_features)
        return pl_fail(err, PL_EBUG, "a batch has %d node and %d edge features, the model %d and %d", (int)in->n_node_features,
                       (int)in->n_edge_features, (int)c->node_features, (int)c->edge_features);
    return PL_OK;
}

nn_cuda_step nn_cuda_step_of(nn_engine *e, const nn_batch *in, int i)
{
    return (nn_cuda_step){ .e = e,
                           .m = &e->plan->module[i],
                           .in = in,
                           .x = i ? e->act[i - 1] : nn_cuda_at(e, e->prep.node),
                           .y = e->act[i],
                           .edge = e->edge[i],
                           .alpha = e->alpha[i],
                           .z = e->z[i],
                           .q = e->q[i] };
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
        nn_cuda_lap(e, s.m->kind == NN_CONV ? NN_OP_SUM : NN_OP_ATTENTION);
    }
}

pl_code nn_cuda_batch(nn_engine *e, const nn_batch *in, bool keep, int slot, int32_t n_targets, pl_error *err)
{
    nn_cuda_slot *to = &e->slot[slot];
    pl_code code = nn_cuda_shape_check(e, in, err);

    e->kept = false;
    e->prep.host = to->host;
    e->prep.room = to->host_room;
    e->prep.n_targets = n_targets;
    if (code == PL_OK)
        code = nn_cuda_prep_make(&e->prep, in, prep_grow, e, err);
    to->host = e->prep.host;
    to->host_room = e->prep.room;
    if (code == PL_ENOMEM && e->ops->status(e->gpu) != NULL)
        return nn_cuda_check(e, err);
    return code != PL_OK ? code : nn_cuda_batch_memory(e, in, keep, to, err);
}

void nn_cuda_forward(nn_engine *e, const nn_batch *in)
{
    nn_cuda_streams_begin(e);
    nn_cuda_fold_beside(e);
    nn_cuda_geometry(e);
    modules_run(e, in);
    nn_cuda_streams_end(e);
    nn_cuda_head(e, in, e->act[e->plan->n_modules - 1]);
    nn_cuda_lap(e, NN_OP_HEAD);
}

static pl_code cuda_forward(nn_engine *e, const nn_batch *in, bool keep, float *y, pl_error *err)
{
    size_t bytes = (size_t)in->n_graphs * (size_t)e->plan->head[1].n_out * sizeof *y;
    pl_code code = nn_cuda_batch(e, in, keep, 0, 0, err);

    if (code != PL_OK)
        return code;
    nn_cuda_lap_start(e);
    e->ops->upload(e->gpu, e->batch, e->prep.host, e->prep.bytes);
    nn_cuda_results_ask(e, in);
    if (e->clock != NULL)
        e->clock->radial_rows = e->prep.n_nodes;
    code = nn_cuda_check(e, err);
    if (code == PL_OK)
        memcpy(y, e->host, bytes);
    e->kept = keep && code == PL_OK;
    return code;
}

/* Allocates the gradients of the model, at the first backward pass. */
pl_code nn_cuda_grads(nn_engine *e, int32_t rows, pl_error *err)
{
    size_t stride, floats = nn_cuda_grads_floats(e, rows, &stride);

    if (e->grad_rows < rows) {
        e->ops->free(e->gpu, e->grads);
        e->grads_bytes = floats * sizeof(float);
        e->grads = e->ops->alloc(e->gpu, e->grads_bytes);
        e->grad_rows = e->grads != NULL ? rows : 0;
        if (e->grads != NULL) /* also what a sum over ranks reads beyond the last number */
            e->ops->zero(e->gpu, e->grads, e->grads_bytes);
    }
    if (e->grads == NULL || !nn_cuda_host(e, e->plan->model->n_floats))
        return nn_cuda_no_memory(e, "the gradients of a model", e->grads_bytes, 0, err);
    e->grad = (float *)(void *)e->grads;
    e->grad_stride = (int64_t)stride;
    return PL_OK;
}

/* Computes a module's input and edges of the forward pass again. */
static void module_again(nn_engine *e, const nn_batch *in, int i)
{
    nn_cuda_step s = nn_cuda_step_of(e, in, i);

    if (s.m->kind == NN_NORM)
        return;
    nn_cuda_streams_end(e); /* work on other streams must be done: arrays that it reads are overwritten here */
    if (i && s.m[-1].kind == NN_NORM) {
        nn_cuda_step before = nn_cuda_step_of(e, in, i - 1);
        nn_cuda_norm(&before);
    }
    if (s.m->kind == NN_ATTENTION)
        nn_cuda_attend(&s);
}

/* Gradients of the radial networks of modules first .. end-1 with respect to their parameters. */
static void hidden_back(nn_engine *e, int first, int end)
{
    const nn_cuda_plan *p = e->plan;
    int32_t net = p->module[first].net, after = end < p->n_modules ? p->module[end].net : p->n_nets;

    nn_cuda_radial_end(e);
    nn_cuda_hidden_back(e, net, after - net);
    e->ops->use_stream(e->gpu, NN_CUDA_MAIN);
    nn_cuda_lap(e, NN_OP_RADIAL_BACK);
}

static void modules_back(nn_engine *e, const nn_batch *in, void (*done)(nn_engine *e, int32_t bucket))
{
    int last = e->plan->n_modules - 1, end = last + 1, bucket = 0;

    for (int i = last; i >= 0; i--) {
        nn_cuda_step s = nn_cuda_step_of(e, in, i);
        s.dy = e->dnode[(last - i) % NN_CUDA_NODES];
        s.dx = i ? e->dnode[(last - i + 1) % NN_CUDA_NODES] : NULL;
        if (e->conf.recompute)
            module_again(e, in, i);
        if (s.m->kind == NN_ATTENTION)
            nn_cuda_attention_back(&s);
        else if (s.m->kind == NN_NORM)
            nn_cuda_norm_back(&s);
        else
            nn_cuda_sum_back(&s);
        if (i == last) {
            nn_cuda_head_grads(e, in);
            nn_cuda_lap(e, NN_OP_HEAD_BACK);
            nn_cuda_zero_wait(e);
        }
        if (done != NULL ? i > e->training.bucket[bucket].module : i > 0)
            continue;
        hidden_back(e, i, end);
        end = i;
        if (done != NULL) {
            nn_cuda_streams_end(e);
            done(e, bucket++);
            nn_cuda_streams_begin(e);
        }
        if (e->training.lost.code != PL_OK)
            return;
    }
}

void nn_cuda_backward(nn_engine *e, const nn_batch *in, void (*done)(nn_engine *e, int32_t bucket))
{
    nn_cuda_streams_begin(e);
    nn_cuda_grads_zero(e);
    nn_cuda_lap(e, NN_OP_WEIGHTS);
    nn_cuda_head_back(e, in, e->dnode[0]);
    nn_cuda_lap(e, NN_OP_HEAD_BACK);
    modules_back(e, in, done);
    nn_cuda_streams_end(e);
}

static pl_code cuda_backward(nn_engine *e, const nn_batch *in, const float *dy, float *grad, pl_error *err)
{
    size_t n = e->plan->model->n_floats;
    pl_code code;

    if (!e->kept)
        return pl_fail(err, PL_EBUG, "backward without a forward that keeps");
    code = nn_cuda_grads(e, 1, err);
    if (code != PL_OK)
        return code;
    e->ops->upload(e->gpu, e->dy, dy, (size_t)in->n_graphs * (size_t)e->plan->head[1].n_out * sizeof *dy);
    nn_cuda_lap_start(e);
    nn_cuda_backward(e, in, NULL);
    nn_cuda_lap_read(e);
    e->ops->download(e->gpu, e->host, e->grad, n * sizeof *grad);
    e->kept = false; /* gradients have overwritten what forward kept */
    code = nn_cuda_check(e, err);
    for (size_t i = 0; code == PL_OK && i < n; i++)
        grad[i] += e->host[i];
    return code;
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
    .forward_all = nn_cuda_forward_all,
    .workspace_bytes = cuda_workspace_bytes,
    .training = &nn_cuda_trains,
    .watch = nn_cuda_watch,
};
