/* SPDX-License-Identifier: Apache-2.0 */
/* Training steps on the device, several in flight: after each, an event says that its result is on the host. A step computes
 * this rank's shards one after another, each with a slot for its batch and a row for its gradient; the last shard continues
 * with the sum over ranks and the optimiser. A single rank needs two rows: the sum so far and the present shard. */
#include <stdlib.h>
#include <string.h>

#include "models/cuda/cuda_engine.h"

_Static_assert((int)NN_GPU_L1 == (int)NN_LOSS_L1 && (int)NN_GPU_L2 == (int)NN_LOSS_L2 && (int)NN_GPU_BCE == (int)NN_LOSS_BCE,
               "ops.h has its own names of these");
_Static_assert((int)NN_GPU_SCALE_MAX == (int)NN_LOSS_SCALE_MAX, "likewise");
_Static_assert((int)NN_CUDA_UNFOLDED < (int)NN_GPU_EVENTS, "an event for each batch and step, and those of streams");

enum { EARLIER = NN_GPU_SEGMENTS - 2 }; /* the graphs of all shards but the last */

/* ---- LAMB's pieces -------------------------------------------------------------------- */

/* Number of pieces of the model's tensors; writes them, and where each tensor's pieces begin, unless the pointers are NULL. */
static int32_t pieces_make(nn_gpu_piece *to, int32_t *first, const nn_se3 *model)
{
    int32_t n = 0;

    for (int32_t t = 0; t < model->n_params; t++) {
        const nn_param *p = &model->param[t];
        if (first != NULL)
            first[t] = n;
        for (size_t at = 0; at < p->size; at += NN_GPU_SQUARES, n++)
            if (to != NULL)
                to[n] = (nn_gpu_piece){ (int64_t)(p->at + at),
                                        (int32_t)(p->size - at < NN_GPU_SQUARES ? p->size - at : NN_GPU_SQUARES), t };
    }
    if (first != NULL)
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
    bool there = piece != NULL && tensor != NULL;

    if (there) {
        pieces_make(piece, tensor, model);
        e->ops->upload(e->gpu, (void *)l->piece, piece, (size_t)l->n_pieces * sizeof *piece);
        e->ops->upload(e->gpu, (void *)l->tensor, tensor, ((size_t)model->n_params + 1) * sizeof *tensor);
    }
    (void)e->ops->status(e->gpu); /* waits until both uploads have read their source */
    free(piece);
    free(tensor);
    return there ? PL_OK : pl_fail(err, PL_ENOMEM, "training");
}

/* ---- memory -------------------------------------------------------------------------- */

static void training_cut(nn_engine *e, bool average, bool lamb, nn_cuda_cutter *c)
{
    nn_cuda_training *t = &e->training;
    size_t n = e->plan->model->n_floats;

    t->m = nn_cuda_cut(c, t->n_state, sizeof *t->m);
    t->v = nn_cuda_cut(c, t->n_state, sizeof *t->v);
    t->average = average ? nn_cuda_cut(c, t->n_state, sizeof *t->average) : NULL;
    t->part = nn_cuda_cut(c, n / NN_GPU_SQUARES + 1, sizeof *t->part);
    t->step = nn_cuda_cut(c, 1, sizeof *t->step);
    t->scale = nn_cuda_cut(c, 1, sizeof *t->scale);
    t->rule = nn_cuda_cut(c, 1, sizeof *t->rule);
    t->shard = nn_cuda_cut(c, (size_t)t->conf.shards, sizeof *t->shard);
    t->result = nn_cuda_cut(c, 1, sizeof *t->result);
    if (lamb)
        lamb_cut(&t->lamb, e->plan->model, c);
}

size_t nn_cuda_training_bytes(const nn_engine *e, int ranks)
{
    nn_engine other = *e;
    nn_ranks first = { .size = ranks };
    nn_cuda_cutter c = { 0 };

    other.training.conf.ranks = ranks > 1 ? &first : NULL;
    other.training.conf.shards = ranks;
    other.training.sharded = ranks > 1;
    nn_cuda_slices_make(&other);
    training_cut(&other, true, false, &c);
    return c.at;
}

void nn_cuda_training_close(nn_engine *e)
{
    e->ops->watch(e->gpu, NULL, NULL);
    e->ops->free(e->gpu, e->training.memory);
    e->ops->host_free(e->gpu, e->training.came);
    e->training = (nn_cuda_training){ 0 };
}

static void conf_take(nn_cuda_training *t, const nn_training *conf)
{
    const char *captured = getenv("MOLSIEVE_CUDA_GRAPHS");

    t->conf = *conf;
    t->conf.shards = conf->shards > 0 ? conf->shards : 1;
    t->own = conf->ranks != NULL ? nn_share(t->conf.shards, conf->ranks->size, conf->ranks->rank) : (nn_span){ 0, t->conf.shards };
    t->sharded = conf->sharded && conf->ranks != NULL;
    t->captured = captured == NULL || strcmp(captured, "0") != 0;
}

static pl_code training_open(nn_engine *e, const nn_training *conf, bool average, pl_error *err)
{
    nn_cuda_training *t = &e->training;
    bool lamb = conf->optimiser == NN_LAMB;
    nn_cuda_cutter c = { 0 };

    nn_cuda_training_close(e);
    conf_take(t, conf);
    if (t->sharded && lamb)
        return pl_fail(err, PL_EBUG, "LAMB needs whole tensors, which sharded ranks have not");
    nn_cuda_slices_make(e);
    training_cut(e, average, lamb, &c);
    t->memory = e->ops->alloc(e->gpu, c.at);
    t->came = e->ops->host_alloc(e->gpu, NN_CUDA_SLOTS * sizeof *t->came);
    if (t->memory == NULL || t->came == NULL || !nn_cuda_host(e, e->plan->model->n_floats))
        return nn_cuda_no_memory(e, "a training", c.at, 0, err);
    t->bytes = c.at;
    c.p = t->memory;
    c.at = 0;
    training_cut(e, average, lamb, &c);
    return nn_cuda_grads(e, (int32_t)(conf->ranks != NULL || t->own.n < 2 ? t->own.n : 2), err);
}

static void state_upload(nn_engine *e, float *to, const float *from)
{
    const nn_cuda_training *t = &e->training;

    for (int32_t i = 0; to != NULL && i < t->n_slices; i++)
        e->ops->upload(e->gpu, to + t->slice[i].state, from + t->slice[i].at, (size_t)t->slice[i].n * sizeof *to);
}

static pl_code cuda_begin(nn_engine *e, const nn_training *conf, const nn_adamw_arrays *from, int64_t steps, pl_error *err)
{
    nn_cuda_training *t = &e->training;
    size_t bytes = e->plan->model->n_floats * sizeof(float);
    nn_loss_scale scale = nn_loss_scale_begin(conf->scale, conf->scale_after);
    pl_code code = training_open(e, conf, from->ema != NULL, err);

    if (code == PL_OK && conf->optimiser == NN_LAMB)
        code = lamb_upload(e, err);
    if (code != PL_OK)
        return code;
    e->ops->upload(e->gpu, e->params, from->p, bytes);
    state_upload(e, t->m, from->m);
    state_upload(e, t->v, from->v);
    state_upload(e, t->average, from->ema);
    e->ops->upload(e->gpu, t->step, &steps, sizeof steps);
    e->ops->upload(e->gpu, t->scale, &(nn_gpu_loss_scale){ scale.by, scale.good }, sizeof *t->scale);
    nn_cuda_fold(e);
    code = nn_cuda_check(e, err);
    return code != PL_OK || conf->ranks == NULL ? code : nn_cuda_ranks_open(e, err);
}

/* ---- a step --------------------------------------------------------------------------- */

/* Reports what failed in the sum over ranks. */
static pl_code lost(const nn_engine *e, pl_error *err)
{
    if (err != NULL)
        *err = e->training.lost;
    return e->training.lost.code;
}

/* The first step is not captured: it loads its kernels, and CUDA does not promise that this works during capture. */
static bool is_captured(const nn_cuda_training *t) { return t->captured && t->queued > 0; }

/* Loading a kernel may wait for all work of the device, forever if another rank is lost. So kernels are loaded in the first
 * step, when nothing of other ranks is in flight, and after a rank is lost no operation is called. */
static void segment_begin(nn_engine *e, int32_t segment)
{
    nn_cuda_training *t = &e->training;

    t->segment = segment;
    if (is_captured(t))
        e->ops->graph_begin(e->gpu);
    else if (t->conf.ranks != NULL && !t->queued)
        (void)e->ops->status(e->gpu);
}

static void segment_end(nn_engine *e)
{
    if (is_captured(&e->training))
        e->ops->graph_run(e->gpu, e->training.segment);
}

/* The bucket's sum begins while the backward pass continues; what follows the last bucket waits for all sums. */
static void bucket_done(nn_engine *e, int32_t bucket)
{
    segment_end(e);
    if (bucket == 0)
        nn_cuda_losses_spread(e);
    nn_cuda_bucket_sum(e, bucket);
    if (bucket + 1 == e->training.n_buckets)
        e->ops->join(e->gpu);
    segment_begin(e, bucket + 1);
}

static void loss_run(nn_engine *e, const nn_batch *in, const nn_training_step *s)
{
    e->ops->loss(e->gpu, &(nn_gpu_loss){ .n = in->n_graphs * e->plan->head[1].n_out,
                                         .kind = (int32_t)e->training.conf.loss,
                                         .measured = s->measured,
                                         .y = e->y,
                                         .t = nn_cuda_at(e, e->prep.target),
                                         .high = nn_cuda_at(e, e->prep.high),
                                         .dy = e->dy,
                                         .scale = e->training.scale,
                                         .result = e->training.shard + e->training.own.first + s->shard });
}

static bool is_last(const nn_engine *e, const nn_training_step *s) { return s->shard + 1 == e->training.own.n; }

/* Computes the gradient of one batch, in e->grad. */
static void shard_run(nn_engine *e, const nn_batch *in, const nn_training_step *s)
{
    nn_cuda_forward(e, in);
    loss_run(e, in, s);
    nn_cuda_backward(e, in, e->training.conf.ranks != NULL && is_last(e, s) ? bucket_done : NULL);
}

/* The contribution of a shard without molecules to the sums. */
static void nothing_run(nn_engine *e, const nn_training_step *s)
{
    nn_cuda_training *t = &e->training;

    e->ops->zero(e->gpu, e->grad, e->plan->model->n_floats * sizeof *e->grad);
    e->ops->zero(e->gpu, t->shard + t->own.first + s->shard, sizeof *t->shard);
    for (int32_t i = 0; t->conf.ranks != NULL && is_last(e, s) && i < t->n_buckets; i++)
        bucket_done(e, i);
}

static nn_gpu_optimise optimise_of(const nn_engine *e, float lr)
{
    const nn_cuda_training *t = &e->training;
    const nn_adamw_conf *c = &t->conf.adam;

    return (nn_gpu_optimise){ .n = (int64_t)e->plan->model->n_floats,
                              .lamb = t->lamb,
                              .beta1 = c->beta1,
                              .beta2 = c->beta2,
                              .eps = c->eps,
                              .decay = c->decay,
                              .lr = (double)lr,
                              .grad_clip = t->conf.grad_clip,
                              .ema = t->conf.ema,
                              .p = e->params,
                              .m = t->m,
                              .v = t->v,
                              .average = t->average,
                              .g = (const float *)(const void *)e->grads,
                              .part = t->part,
                              .step = t->step,
                              .scale = t->scale,
                              .scale_after = t->conf.scale_after,
                              .rule = t->rule,
                              .n_shards = t->conf.shards,
                              .shard = t->shard,
                              .result = t->result };
}

static nn_gpu_optimise slice_of(const nn_gpu_optimise *all, const nn_cuda_slice *s)
{
    nn_gpu_optimise a = *all;

    a.n = s->n;
    a.p += s->at;
    a.g += s->at;
    a.part += s->at / NN_GPU_SQUARES;
    a.m += s->state;
    a.v += s->state;
    if (a.average != NULL)
        a.average += s->state;
    return a;
}

/* With a sharded optimiser: gathers the slices of all ranks, between two graphs. */
static void slices_spread(nn_engine *e, void (*spread)(nn_engine *e))
{
    if (!e->training.sharded)
        return;
    segment_end(e);
    spread(e);
    e->ops->join(e->gpu);
    segment_begin(e, e->training.segment + 1);
}

/* From the gradient of the whole batch, in row 0, to the updated parameters. */
static void optimise_run(nn_engine *e, float lr)
{
    const nn_cuda_training *t = &e->training;
    nn_gpu_optimise all = optimise_of(e, lr), part[NN_CUDA_BUCKETS];

    for (int32_t i = 0; i < t->n_slices; i++) {
        part[i] = slice_of(&all, &t->slice[i]);
        e->ops->squares(e->gpu, &part[i]);
    }
    slices_spread(e, nn_cuda_squares_spread);
    if (t->lost.code)
        return;
    e->ops->decide(e->gpu, &all);
    for (int32_t i = 0; i < t->n_slices; i++)
        e->ops->update(e->gpu, &part[i]);
    slices_spread(e, nn_cuda_params_spread);
    e->stale = true;
}

/* Lays out the batch in the next slot and begins its upload. */
static pl_code shard_lay(nn_engine *e, const nn_batch *in, const nn_training_step *s, pl_error *err)
{
    nn_cuda_training *t = &e->training;
    int32_t targets = in->n_graphs * e->plan->head[1].n_out;
    int slot = (int)(t->laid % NN_CUDA_SLOTS);
    pl_code code = t->laid < NN_CUDA_SLOTS ? PL_OK : nn_cuda_said(e->ops->synchronize(e->gpu, slot), err);

    if (code == PL_OK)
        code = nn_cuda_batch(e, in, true, slot, targets, err);
    if (code != PL_OK)
        return code;
    memcpy(e->prep.target, s->target, (size_t)targets * sizeof *s->target);
    memcpy(e->prep.high, s->high != NULL ? s->high : s->target, (size_t)targets * sizeof *s->target);
    e->ops->upload_beside(e->gpu, e->batch, e->prep.host, e->prep.bytes);
    return PL_OK;
}

/* Calls all operations of a shard but the layout; after the first step none of them blocks. */
static void shard_queue(nn_engine *e, const nn_batch *in, const nn_training_step *s)
{
    nn_cuda_training *t = &e->training;
    int slot = (int)(t->queued % NN_CUDA_SLOTS);
    bool last = is_last(e, s), alone = t->conf.ranks == NULL;
    float *rows = (float *)(void *)e->grads;

    e->grad = rows + (alone && s->shard > 1 ? 1 : s->shard) * e->grad_stride;
    segment_begin(e, last ? 0 : EARLIER);
    if (in != NULL)
        shard_run(e, in, s);
    else
        nothing_run(e, s);
    if (alone && s->shard > 0)
        e->ops->add(e->gpu, &(nn_gpu_add){ (int64_t)e->plan->model->n_floats, e->grad, rows });
    if (last && t->lost.code == PL_OK) {
        optimise_run(e, s->lr);
        e->ops->download_later(e->gpu, &t->came[slot], t->result, sizeof *t->result);
    }
    segment_end(e);
}

static pl_code cuda_step(nn_engine *e, const nn_batch *in, const nn_training_step *s, pl_error *err)
{
    nn_cuda_training *t = &e->training;
    int slot = (int)(t->queued % NN_CUDA_SLOTS);
    pl_code code = PL_OK;

    if (t->memory == NULL || t->queued - t->given >= NN_CUDA_SLOTS || s->shard >= t->own.n)
        return pl_fail(err, PL_EBUG, "a training step without a place for its result");
    if (in != NULL)
        code = shard_lay(e, in, s, err);
    if (code == PL_OK)
        shard_queue(e, in, s);
    if (t->lost.code != PL_OK)
        return lost(e, err);
    if (code != PL_OK)
        return code;
    if (in != NULL)
        e->ops->record(e->gpu, (int32_t)(t->laid++ % NN_CUDA_SLOTS));
    if (is_last(e, s)) {
        e->ops->record(e->gpu, NN_CUDA_SLOTS + slot);
        t->graphs_of[slot] = s->n_graphs;
        t->queued++;
    }
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
    bad = e->ops->synchronize(e->gpu, NN_CUDA_SLOTS + slot);
    if (t->lost.code != PL_OK)
        return lost(e, err);
    if (bad != NULL)
        return nn_cuda_said(bad, err);
    t->given++;
    *out = (nn_training_result){ .loss = { r->loss, r->abs, r->square, r->measured },
                                 .n_graphs = t->graphs_of[slot],
                                 .taken = r->taken != 0,
                                 .scale = { r->scale.by, r->scale.good } };
    return PL_OK;
}

/* ---- back to the host ----------------------------------------------------------------- */

static void array_fetch(nn_engine *e, float *to, const float *from)
{
    size_t bytes = e->plan->model->n_floats * sizeof *to;

    if (to == NULL || from == NULL)
        return;
    e->ops->download(e->gpu, e->host, from, bytes);
    memcpy(to, e->host, bytes);
}

/* With a sharded optimiser: gathered from all ranks. */
static void state_fetch(nn_engine *e, float *to, const float *from)
{
    if (to != NULL && from != NULL)
        array_fetch(e, to, e->training.sharded ? nn_cuda_state_gather(e, from) : from);
}

static pl_code cuda_fetch(nn_engine *e, const nn_adamw_arrays *to, pl_error *err)
{
    const nn_cuda_training *t = &e->training;

    if (t->memory == NULL || t->given != t->queued)
        return pl_fail(err, PL_EBUG, "parameters fetched with training steps in flight");
    array_fetch(e, to->p, e->params);
    state_fetch(e, to->m, t->m);
    state_fetch(e, to->v, t->v);
    state_fetch(e, to->ema, t->average);
    return t->lost.code ? lost(e, err) : nn_cuda_check(e, err);
}

const nn_engine_training nn_cuda_trains = {
    .depth = NN_CUDA_SLOTS,
    .begin = cuda_begin,
    .step = cuda_step,
    .result = cuda_result,
    .fetch = cuda_fetch,
};
