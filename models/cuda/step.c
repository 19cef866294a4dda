/* SPDX-License-Identifier: Apache-2.0 */
/* Training steps on the device, several in flight: each has a slot with its batch, and a mark
 * after which its result is on the host. */
#include <stdlib.h>
#include <string.h>

#include "models/cuda/inner.h"

_Static_assert((int)NN_GPU_L1 == (int)NN_LOSS_L1 && (int)NN_GPU_L2 == (int)NN_LOSS_L2, "ops.h has its own names of these");
_Static_assert((int)NN_CUDA_SLOTS <= (int)NN_GPU_MARKS, "a mark for each slot");

/* ---- LAMB's pieces -------------------------------------------------------------------- */

/* How many pieces the model's tensors have; written where there is room, and where each tensor's
 * begin. */
static int32_t pieces_make(nn_gpu_piece *to, int32_t *first, const nn_se3 *model)
{
    int32_t n = 0;

    for (int32_t t = 0; t < model->n_params; t++) {
        const nn_param *p = &model->param[t];
        if (first)
            first[t] = n;
        for (size_t at = 0; at < p->size; at += NN_GPU_SQUARES, n++)
            if (to)
                to[n] = (nn_gpu_piece){ (int64_t)(p->at + at), (int32_t)(p->size - at < NN_GPU_SQUARES ? p->size - at
                                                                         : NN_GPU_SQUARES), t };
    }
    if (first)
        first[model->n_params] = n;
    return n;
}

static void lamb_cut(nn_gpu_lamb *l, const nn_se3 *model, nn_cuda_cutter *c)
{
    l->n_pieces = pieces_make(NULL, NULL, model);
    l->piece = nn_cuda_cut(c, (size_t)l->n_pieces, sizeof *l->piece);
    l->tensor = nn_cuda_cut(c, (size_t)model->n_params + 1, sizeof *l->tensor);
    l->squares = nn_cuda_cut(c, (size_t)l->n_pieces, sizeof *l->squares);
}

static pl_code lamb_upload(nn_engine *e, pl_error *err)
{
    const nn_gpu_lamb *l = &e->training.lamb;
    const nn_se3 *model = e->plan->model;
    nn_gpu_piece *piece = calloc((size_t)l->n_pieces + 1, sizeof *piece);
    int32_t *tensor = calloc((size_t)model->n_params + 1, sizeof *tensor);
    bool there = piece && tensor;

    if (there) {
        pieces_make(piece, tensor, model);
        e->ops->upload(e->gpu, (void *)l->piece, piece, (size_t)l->n_pieces * sizeof *piece);
        e->ops->upload(e->gpu, (void *)l->tensor, tensor, ((size_t)model->n_params + 1) * sizeof *tensor);
    }
    free(piece);
    free(tensor);
    return there ? PL_OK : pl_fail(err, PL_ENOMEM, "training");
}

/* ---- memory -------------------------------------------------------------------------- */

static void training_cut(nn_engine *e, bool average, bool lamb, nn_cuda_cutter *c)
{
    nn_cuda_training *t = &e->training;
    size_t n = e->plan->model->n_floats;

    t->m = nn_cuda_cut(c, n, sizeof *t->m);
    t->v = nn_cuda_cut(c, n, sizeof *t->v);
    t->average = average ? nn_cuda_cut(c, n, sizeof *t->average) : NULL;
    t->part = nn_cuda_cut(c, n / NN_GPU_SQUARES + 1, sizeof *t->part);
    t->step = nn_cuda_cut(c, 1, sizeof *t->step);
    t->rule = nn_cuda_cut(c, 1, sizeof *t->rule);
    t->result = nn_cuda_cut(c, 1, sizeof *t->result);
    if (lamb)
        lamb_cut(&t->lamb, e->plan->model, c);
}

size_t nn_cuda_training_bytes(const nn_engine *e)
{
    nn_engine other = *e;
    nn_cuda_cutter c = { 0 };

    training_cut(&other, true, false, &c);
    return c.at;
}

void nn_cuda_training_close(nn_engine *e)
{
    e->ops->free(e->gpu, e->training.memory);
    e->ops->host_free(e->gpu, e->training.came);
    e->training = (nn_cuda_training){ 0 };
}

static pl_code training_open(nn_engine *e, bool average, bool lamb, pl_error *err)
{
    nn_cuda_training *t = &e->training;
    nn_cuda_cutter c = { 0 };

    nn_cuda_training_close(e);
    training_cut(e, average, lamb, &c);
    t->memory = e->ops->alloc(e->gpu, c.at);
    t->came = e->ops->host_alloc(e->gpu, NN_CUDA_SLOTS * sizeof *t->came);
    if (!t->memory || !t->came || !nn_cuda_host(e, e->plan->model->n_floats))
        return nn_cuda_no_memory(e, "a training", c.at, 0, err);
    t->bytes = c.at;
    c.p = t->memory;
    c.at = 0;
    training_cut(e, average, lamb, &c);
    return nn_cuda_grads(e, err);
}

static pl_code cuda_begin(nn_engine *e, const nn_training *conf, const nn_adamw_arrays *from, int64_t steps, pl_error *err)
{
    nn_cuda_training *t = &e->training;
    size_t bytes = e->plan->model->n_floats * sizeof(float);
    const char *captured = getenv("MOLSIEVE_CUDA_GRAPHS");
    bool lamb = conf->optimiser == NN_LAMB;
    pl_code rc = training_open(e, from->ema != NULL, lamb, err);

    if (!rc && lamb)
        rc = lamb_upload(e, err);
    if (rc)
        return rc;
    t->conf = *conf;
    t->captured = !captured || strcmp(captured, "0") != 0;
    e->ops->upload(e->gpu, e->params, from->p, bytes);
    e->ops->upload(e->gpu, t->m, from->m, bytes);
    e->ops->upload(e->gpu, t->v, from->v, bytes);
    if (from->ema)
        e->ops->upload(e->gpu, t->average, from->ema, bytes);
    e->ops->upload(e->gpu, t->step, &steps, sizeof steps);
    nn_cuda_fold(e);
    return nn_cuda_check(e, err);
}

/* ---- a step --------------------------------------------------------------------------- */

static void loss_run(nn_engine *e, const nn_batch *in, int64_t measured)
{
    e->ops->loss(e->gpu, &(nn_gpu_loss){
        .n = in->n_graphs * e->plan->head[1].n_out, .kind = (int32_t)e->training.conf.loss, .measured = measured,
        .y = e->y, .t = nn_cuda_at(e, e->prep.target), .dy = e->dy, .result = e->training.result });
}

/* From the gradient of the whole batch, flat on the device, to the next parameters. */
static void optimise_run(nn_engine *e, const float *grad, float lr)
{
    const nn_cuda_training *t = &e->training;
    const nn_adamw_conf *c = &t->conf.adam;

    e->ops->optimise(e->gpu, &(nn_gpu_optimise){
        .n = (int64_t)e->plan->model->n_floats, .lamb = t->lamb, .beta1 = c->beta1, .beta2 = c->beta2, .eps = c->eps, .decay = c->decay,
        .lr = (double)lr, .grad_clip = t->conf.grad_clip, .ema = t->conf.ema, .p = e->params, .m = t->m, .v = t->v,
        .average = t->average, .g = grad, .part = t->part, .step = t->step, .rule = t->rule, .result = t->result });
    nn_cuda_fold(e);
}

static void step_run(nn_engine *e, const nn_batch *in, const nn_training_step *s, int slot)
{
    nn_cuda_training *t = &e->training;

    nn_cuda_forward(e, in);
    loss_run(e, in, s->measured);
    nn_cuda_backward(e, in);
    optimise_run(e, e->grad, s->lr);
    e->ops->download_later(e->gpu, &t->came[slot], t->result, sizeof *t->result);
}

static pl_code cuda_step(nn_engine *e, const nn_batch *in, const nn_training_step *s, pl_error *err)
{
    nn_cuda_training *t = &e->training;
    int32_t targets = in->n_graphs * e->plan->head[1].n_out;
    int slot = (int)(t->queued % NN_CUDA_SLOTS);
    pl_code rc;

    if (!t->memory || t->queued - t->given >= NN_CUDA_SLOTS)
        return pl_fail(err, PL_EBUG, "a training step without a place for its result");
    rc = nn_cuda_batch(e, in, true, slot, targets, err);
    if (rc)
        return rc;
    memcpy(e->prep.target, s->target, (size_t)targets * sizeof *s->target);
    e->ops->upload_beside(e->gpu, e->batch, e->prep.host, e->prep.bytes);
    if (t->captured)
        e->ops->graph_begin(e->gpu);
    step_run(e, in, s, slot);
    if (t->captured)
        e->ops->graph_run(e->gpu);
    e->ops->mark(e->gpu, slot);
    t->graphs_of[slot] = in->n_graphs;
    t->queued++;
    return e->fences ? nn_cuda_check(e, err) : PL_OK;
}

static pl_code cuda_result(nn_engine *e, nn_training_result *out, pl_error *err)
{
    nn_cuda_training *t = &e->training;
    int slot = (int)(t->given % NN_CUDA_SLOTS);
    const nn_gpu_step_result *r = &t->came[slot];
    const char *bad;

    if (t->given == t->queued)
        return pl_fail(err, PL_EBUG, "a result without a training step");
    bad = e->ops->wait(e->gpu, slot);
    if (bad)
        return pl_fail(err, PL_EBUG, "engine cuda: %s", bad);
    t->given++;
    *out = (nn_training_result){ .loss = { r->loss, r->abs, r->square, r->measured }, .n_graphs = t->graphs_of[slot],
                                 .taken = r->taken != 0 };
    return PL_OK;
}

/* ---- back to the host ----------------------------------------------------------------- */

static void array_fetch(nn_engine *e, float *to, const float *from)
{
    size_t bytes = e->plan->model->n_floats * sizeof *to;

    if (!to || !from)
        return;
    e->ops->download(e->gpu, e->host, from, bytes);
    memcpy(to, e->host, bytes);
}

static pl_code cuda_fetch(nn_engine *e, const nn_adamw_arrays *to, pl_error *err)
{
    const nn_cuda_training *t = &e->training;

    if (!t->memory || t->given != t->queued)
        return pl_fail(err, PL_EBUG, "parameters fetched with training steps in flight");
    array_fetch(e, to->p, e->params);
    array_fetch(e, to->m, t->m);
    array_fetch(e, to->v, t->v);
    array_fetch(e, to->ema, t->average);
    return nn_cuda_check(e, err);
}

const nn_engine_training nn_cuda_trains = {
    .depth = NN_CUDA_SLOTS, .begin = cuda_begin, .step = cuda_step, .result = cuda_result, .fetch = cuda_fetch,
};
