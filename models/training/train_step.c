/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "models/training/shards.h"
#include "models/training/sparsity.h"
#include "models/training/train_parts.h"
#include "pipeline/base/rng.h"

enum { PIECE = NN_LOOP_PIECE, PURPOSE_EPOCH = 0x65706f63 }; /* "epoc" */

nn_which nn_loop_take(const nn_loop *l, int64_t from)
{
    const int64_t *at = l->order + from;

    return (nn_which){ .at = at, .n = nn_samples_take(l->train, at, l->train->n - from, l->conf->molecules, l->conf->max_edges) };
}

static size_t piece_size(const nn_loop *l, int i)
{
    size_t left = l->s->n - (size_t)i * PIECE;

    return left < PIECE ? left : PIECE;
}

static void pieces_run(nn_loop *l, nn_pool_work *work, void *ctx)
{
    nn_pool_run(l->pool, (int)((l->s->n + PIECE - 1) / PIECE), work, ctx);
}

static void piece_clear(void *ctx, int worker, int i)
{
    nn_loop *l = ctx;

    (void)worker;
    for (int64_t row = 0; row < l->own.n; row++)
        memset(l->grad + (size_t)row * l->s->n + (size_t)i * PIECE, 0, piece_size(l, i) * sizeof *l->grad);
}

/* Four partial sums, so that the compiler can vectorise; the order is fixed. */
static void piece_square(void *ctx, int worker, int i)
{
    nn_loop *l = ctx;
    const float *g = l->grad + (size_t)i * PIECE;
    size_t n = piece_size(l, i), j = 0;
    double s[4] = { 0 };

    (void)worker;
    for (; j + 4 <= n; j += 4)
        for (int k = 0; k < 4; k++)
            s[k] += (double)g[j + (size_t)k] * (double)g[j + (size_t)k];
    for (; j < n; j++)
        s[0] += (double)g[j] * (double)g[j];
    l->square[i] = (s[0] + s[1]) + (s[2] + s[3]);
}

static double gradient_norm(nn_loop *l)
{
    double sum = 0;

    pieces_run(l, piece_square, l);
    for (size_t i = 0; i * PIECE < l->s->n; i++)
        sum += l->square[i];
    return sqrt(sum);
}

static pl_code params_update(nn_loop *l, double norm, pl_error *err)
{
    const nn_train_conf *c = l->conf;
    nn_train_state *s = l->s;
    const nn_adamw_arrays arrays = { s->params, s->m, s->v, s->ema, l->grad };
    double at = (double)s->epoch + (double)s->cursor / (double)l->train->n;
    nn_optimiser_step step = { .conf = { c->beta1, c->beta2, c->eps, c->weight_decay },
                               .lr = nn_train_lr(c, nn_train_epochs(c, s), at),
                               .clip = 1 };

    step.step = ++s->step;
    if (c->grad_clip > 0 && norm > c->grad_clip)
        step.clip = c->grad_clip / norm;
    step.clip /= s->scale.by;
    step.bases = s->bases;
    step.average = 1.0 - fmin(c->ema, (1.0 + (double)s->step) / (10.0 + (double)s->step));
    nn_optimiser_run(l->optimiser, l->pool, &arrays, &step);
    return l->kind->set_params(l->engine, s->params, err);
}

/* Own shard i of the batch of k molecules that begins at `from`. */
static nn_which shard_at(const nn_loop *l, int64_t from, int64_t k, int64_t i)
{
    nn_span part = nn_shards_part(k, l->shards, (int)(l->own.first + i));

    nn_which which = { .at = l->dealt + from + part.first, .n = (int32_t)part.n };

    if (l->conf->noise.weight > 0) {
        which.noise = (float)l->conf->noise.scale;
        which.seed = pl_rng_at(l->conf->seed, (uint64_t)l->s->epoch, PURPOSE_EPOCH).key;
    }
    return which;
}

/* The shard to prefetch while own shard i of that batch is computed. */
static nn_which shard_after(const nn_loop *l, int64_t from, int64_t k, int64_t i)
{
    int64_t after = from + k;

    return i + 1 < l->own.n ? shard_at(l, from, k, i + 1) : shard_at(l, after, nn_loop_take(l, after).n, 0);
}

static const float *high_at(const nn_loop *l, int64_t at) { return l->high != NULL ? l->high + at : NULL; }

/* Atoms of a whole batch, on all ranks. */
static int64_t batch_atoms(const nn_loop *l, nn_which batch)
{
    int64_t n = 0;

    for (int32_t i = 0; i < batch.n; i++)
        n += l->train->atoms[batch.at[i]];
    return n;
}

/* Backward pass of own shard i with its noise, of a batch of `atoms` atoms. */
static pl_code noise_backward(nn_loop *l, const nn_batch *shard, int64_t i, int64_t atoms, const float *dy, pl_error *err)
{
    const double by = l->conf->noise.weight * l->s->scale.by;

    l->kind->vectors(l->engine, l->v);
    l->noise[l->own.first + i] = nn_noise_backward((const float(*)[3])l->v, shard->noise, shard->n_nodes, atoms, by, l->dv);
    return l->kind->backward_vectors(l->engine, shard, dy, (const float(*)[3])l->dv, l->grad + (size_t)i * l->s->n, err);
}

/* Forward and backward of one shard; its part of y, t and dy is at the shard's place in the batch. */
static pl_code shard_compute(nn_loop *l, nn_which batch_of, int64_t i, int64_t measured, pl_error *err)
{
    int64_t from = l->s->cursor;
    nn_which now = shard_at(l, from, batch_of.n, i), next = shard_after(l, from, batch_of.n, i);
    int64_t at = (now.at - batch_of.at) * l->outputs, n = (int64_t)now.n * l->outputs;
    nn_batch batch;
    pl_code code;

    if (now.n == 0)
        return PL_OK;
    code = nn_prefetch_take(l->prefetch, &batch, l->train, now, next, err);
    if (code == PL_OK)
        code = l->kind->forward(l->engine, &batch, true, l->y + at, err);
    if (code != PL_OK)
        return code;
    (void)nn_loss_backward((nn_loss)l->conf->loss, l->y + at, l->t + at, high_at(l, at), n, measured, l->dy + at);
    for (int64_t k = 0; k < n; k++)
        l->dy[at + k] *= (float)l->s->scale.by;
    if (l->v != NULL)
        return noise_backward(l, &batch, i, batch_atoms(l, batch_of), l->dy + at, err);
    return l->kind->backward(l->engine, &batch, l->dy + at, l->grad + (size_t)i * l->s->n, err);
}

/* Gathers the predictions of all shards of a batch of k molecules. */
static pl_code batch_gather(nn_loop *l, int32_t k, pl_error *err)
{
    int size = l->ranks->size;

    for (int r = 0; r < size; r++)
        l->first[r] = nn_shards_part(k, l->shards, (int)nn_share(l->shards, size, r).first).first * l->outputs;
    l->first[size] = (int64_t)k * l->outputs;
    return l->ranks->kind->gather(l->ranks, l->y, l->first, sizeof *l->y, err);
}

/* Adds up the noise of all shards of a batch. */
static pl_code noise_gather(nn_loop *l, nn_noise_sum *sum, pl_error *err)
{
    int size = l->ranks->size;
    pl_code code;

    *sum = (nn_noise_sum){ 0 };
    if (l->noise == NULL)
        return PL_OK;
    for (int r = 0; r < size; r++)
        l->first[r] = nn_share(l->shards, size, r).first;
    l->first[size] = l->shards;
    code = l->ranks->kind->gather(l->ranks, l->noise, l->first, sizeof *l->noise, err);
    for (int i = 0; i < l->shards && code == PL_OK; i++) {
        sum->square += l->noise[i].square;
        sum->n += l->noise[i].n;
    }
    return code;
}

/* Fills t of a batch; returns the number of measured values. */
static int64_t targets_take(nn_loop *l, nn_which now)
{
    const size_t bytes = (size_t)l->outputs * sizeof *l->t;

    for (int32_t i = 0; i < now.n; i++) {
        memcpy(l->t + (int64_t)i * l->outputs, l->train->target + now.at[i] * l->outputs, bytes);
        if (l->high != NULL)
            memcpy(l->high + (int64_t)i * l->outputs, l->train->high + now.at[i] * l->outputs, bytes);
    }
    return nn_loss_measured(l->t, (int64_t)now.n * l->outputs);
}

/* Computes the gradient of a dealt batch, scaled, into row 0 of grad. */
static pl_code step_compute(nn_loop *l, nn_which now, nn_loss_sum *sum, nn_noise_sum *noise, pl_error *err)
{
    int64_t n = (int64_t)now.n * l->outputs, measured = targets_take(l, now);
    pl_code code = PL_OK;

    pieces_run(l, piece_clear, l);
    for (int i = 0; l->noise != NULL && i < l->shards; i++)
        l->noise[i] = (nn_noise_sum){ 0 };
    for (int64_t i = 0; i < l->own.n && code == PL_OK; i++)
        code = shard_compute(l, now, i, measured, err);
    if (code == PL_OK)
        code = l->ranks->kind->sum(l->ranks, l->grad, (int64_t)l->s->n, l->shards, err);
    if (code == PL_OK)
        code = batch_gather(l, now.n, err);
    if (code == PL_OK)
        code = noise_gather(l, noise, err);
    if (code == PL_OK)
        *sum = nn_loss_backward((nn_loss)l->conf->loss, l->y, l->t, l->high, n, measured, l->dy);
    return code;
}

static pl_code step_run(nn_loop *l, pl_error *err)
{
    nn_train_state *s = l->s;
    nn_which now = { .at = l->dealt + s->cursor, .n = nn_loop_take(l, s->cursor).n };
    nn_loss_sum sum;
    nn_noise_sum noise;
    pl_code code = step_compute(l, now, &sum, &noise, err);
    double norm;
    bool taken;

    if (code != PL_OK)
        return code;
    if (nn_sparsity_holds(l->conf, s))
        nn_sparsity_gradient(l->grad, s, l->pool);
    norm = gradient_norm(l) / s->scale.by;
    taken = isfinite(sum.loss) && isfinite(norm);
    if (taken) {
        nn_loss_add(&s->seen, &sum);
        s->noise.square += noise.square;
        s->noise.n += noise.n;
        s->bad_run = 0;
        code = params_update(l, norm, err);
    } else {
        code = nn_steps_skip(s, err);
    }
    s->scale = nn_loss_scale_next(s->scale, l->conf->scale_after, taken);
    s->cursor += now.n;
    return code;
}

/* Begins own shard i of a step of the engine. */
static pl_code shard_begin(nn_loop *l, int64_t from, nn_training_step step, int64_t i, pl_error *err)
{
    nn_which now = shard_at(l, from, step.n_graphs, i), next = shard_after(l, from, step.n_graphs, i);
    nn_batch batch;
    pl_code code = now.n ? nn_prefetch_take(l->prefetch, &batch, l->train, now, next, err) : PL_OK;

    step.target = l->t + (now.at - (l->dealt + from)) * l->outputs;
    step.high = high_at(l, step.target - l->t);
    step.shard = (int32_t)i;
    return code != PL_OK ? code : nn_steps_add(l->steps, now.n ? &batch : NULL, &step, err);
}

/* Begins a step of the engine; its result is counted later. */
static pl_code step_begin(nn_loop *l, pl_error *err)
{
    int64_t from = l->steps->cursor;
    nn_which whole = { .at = l->dealt + from, .n = nn_loop_take(l, from).n };
    nn_training_step step = { .measured = targets_take(l, whole), .n_graphs = whole.n };
    pl_code code = PL_OK;

    step.lr = (float)nn_train_lr(l->conf, nn_train_epochs(l->conf, l->s), (double)l->s->epoch + (double)from / (double)l->train->n);
    for (int64_t i = 0; i < l->own.n && code == PL_OK; i++)
        code = shard_begin(l, from, step, i, err);
    return code;
}

pl_code nn_loop_step(nn_loop *l, pl_error *err) { return l->steps != NULL ? step_begin(l, err) : step_run(l, err); }
