/* SPDX-License-Identifier: Apache-2.0 */
#include "models/train.h"

#include <math.h>
#include <string.h>

#include "models/cpu/pool.h"
#include "models/optimiser.h"
#include "models/predict.h"
#include "models/shards.h"
#include "models/steps.h"
#include "pipeline/base/rng.h"

enum {
    PURPOSE_SHUFFLE = 0x73687566, /* "shuf" */
    PIECE = 1 << 16               /* parameters that one thread takes at a time */
};

/* What one call of nn_train or nn_predict carries around. */
typedef struct loop {
    nn_train_state *s;
    const nn_train_conf *conf;
    const nn_engine_kind *kind;
    nn_engine *engine;
    const nn_samples *train, *valid;
    const nn_train_host *host;
    int32_t outputs;
    nn_ranks alone, *ranks;
    int shards;         /* of a batch, on all ranks together            */
    nn_span own;        /* the shards of this rank                      */
    int64_t *order;     /* [train->n] of this epoch                     */
    int64_t *dealt;     /* [train->n] the same, in each batch shard after shard */
    int64_t *first;     /* [ranks + 1] where what each rank gives begins */
    nn_card *card;      /* [molecules] scratch                          */
    float *y, *t, *dy;  /* [molecules][outputs] of a batch              */
    nn_predictor held;
    float *held_y;      /* [the larger of valid->n and test->n][outputs] */
    float *grad;        /* [own shards][s->n]; row 0 then the sum of all */
    double *square;     /* [pieces of s->n] of the gradient             */
    nn_pool *pool;
    nn_optimiser *optimiser;
    nn_ahead *ahead;
    nn_steps *steps;    /* those that the engine does by itself, or NULL */
    pl_arena *mem;
} loop;

/* ---- order, batches, learning rate --------------------------------------- */

void nn_train_order(int64_t *order, int64_t n, uint64_t seed, int64_t epoch)
{
    pl_rng r = pl_rng_at(seed, (uint64_t)epoch, PURPOSE_SHUFFLE);

    for (int64_t i = 0; i < n; i++)
        order[i] = i;
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t j = (int64_t)pl_rng_below(&r, (uint64_t)i + 1), swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
}

int32_t nn_train_take(const nn_samples *s, const int64_t *which, int64_t n, int64_t molecules, int64_t max_edges)
{
    int64_t edges = 0;
    int32_t k = 0;

    while (k < n && (molecules <= 0 || k < molecules)) {
        edges += s->edges[which[k]];
        if (k > 0 && max_edges > 0 && edges > max_edges)
            break;
        k++;
    }
    return k;
}

double nn_train_lr(const nn_train_conf *c, double at)
{
    double lr = c->lr, part = c->schedule == NN_LR_COSINE_EPOCH ? floor(at) : at;

    if (c->schedule != NN_LR_CONSTANT && c->epochs > 0)
        lr = c->min_lr + 0.5 * (c->lr - c->min_lr) * (1.0 + cos(3.14159265358979323846 * part / (double)c->epochs));
    return c->warmup > 0 && at < c->warmup ? lr * at / c->warmup : lr;
}

enum { ASKED_STOP = 1, ASKED_SAVE = 2 };

/* The same answer for all ranks: one alone cannot fetch what is sharded. */
static pl_code host_ask(const loop *l, bool epoch_over, uint32_t *asked, pl_error *err)
{
    const nn_train_host *host = l->host;
    bool due = host && host->due ? host->due(host->ctx, epoch_over) : epoch_over;

    *asked = (!epoch_over && nn_told_to_stop(host) ? ASKED_STOP : 0) | (due ? ASKED_SAVE : 0);
    return nn_ranks_any(l->ranks, asked, err);
}

/* ---- one step ------------------------------------------------------------ */

static size_t piece_size(const loop *l, int i)
{
    size_t left = l->s->n - (size_t)i * PIECE;

    return left < PIECE ? left : PIECE;
}

static void pieces_run(loop *l, nn_pool_work *work, void *ctx)
{
    nn_pool_run(l->pool, (int)((l->s->n + PIECE - 1) / PIECE), work, ctx);
}

static void piece_clear(void *ctx, int worker, int i)
{
    loop *l = ctx;

    (void)worker;
    for (int64_t row = 0; row < l->own.n; row++)
        memset(l->grad + (size_t)row * l->s->n + (size_t)i * PIECE, 0, piece_size(l, i) * sizeof *l->grad);
}

/* Four sums so that the compiler may keep four lanes; the order is fixed. */
static void piece_square(void *ctx, int worker, int i)
{
    loop *l = ctx;
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

static double gradient_norm(loop *l)
{
    double sum = 0;

    pieces_run(l, piece_square, l);
    for (size_t i = 0; i * PIECE < l->s->n; i++)
        sum += l->square[i];
    return sqrt(sum);
}

static pl_code params_update(loop *l, double norm, pl_error *err)
{
    const nn_train_conf *c = l->conf;
    nn_train_state *s = l->s;
    const nn_adamw_arrays arrays = { s->params, s->m, s->v, s->ema, l->grad };
    double at = (double)s->epoch + (double)s->cursor / (double)l->train->n;
    nn_optimiser_step step = { .conf = { c->beta1, c->beta2, c->eps, c->weight_decay }, .lr = nn_train_lr(c, at), .clip = 1 };

    step.step = ++s->step;
    if (c->grad_clip > 0 && norm > c->grad_clip)
        step.clip = c->grad_clip / norm;
    step.clip /= s->scale.by;
    step.average = 1.0 - fmin(c->ema, (1.0 + (double)s->step) / (10.0 + (double)s->step));
    nn_optimiser_run(l->optimiser, l->pool, &arrays, &step);
    return l->kind->set_params(l->engine, s->params, err);
}

static nn_which take(const loop *l, int64_t from)
{
    const int64_t *at = l->order + from;

    return (nn_which){ at, nn_train_take(l->train, at, l->train->n - from, l->conf->molecules, l->conf->max_edges) };
}

/* Own shard i of the batch of k that begins at `from`. */
static nn_which shard_at(const loop *l, int64_t from, int64_t k, int64_t i)
{
    nn_span part = nn_shards_part(k, l->shards, (int)(l->own.first + i));

    return (nn_which){ l->dealt + from + part.first, (int32_t)part.n };
}

/* What is computed after own shard i of that batch. */
static nn_which shard_after(const loop *l, int64_t from, int64_t k, int64_t i)
{
    int64_t after = from + k;

    return i + 1 < l->own.n ? shard_at(l, from, k, i + 1) : shard_at(l, after, take(l, after).n, 0);
}

/* Forward and backward; y, t and dy at the place of the shard in the batch. */
static pl_code shard_compute(loop *l, nn_which batch_of, int64_t i, int64_t measured, pl_error *err)
{
    int64_t from = l->s->cursor;
    nn_which now = shard_at(l, from, batch_of.n, i), next = shard_after(l, from, batch_of.n, i);
    int64_t at = (now.at - batch_of.at) * l->outputs, n = (int64_t)now.n * l->outputs;
    nn_batch batch;
    pl_code rc;

    if (now.n == 0)
        return PL_OK;
    rc = nn_ahead_take(l->ahead, &batch, l->train, now, next, err);
    if (!rc)
        rc = l->kind->forward(l->engine, &batch, true, l->y + at, err);
    if (rc)
        return rc;
    (void)nn_loss_backward((nn_loss)l->conf->loss, l->y + at, l->t + at, n, measured, l->dy + at);
    for (int64_t k = 0; k < n; k++)
        l->dy[at + k] *= (float)l->s->scale.by;
    return l->kind->backward(l->engine, &batch, l->dy + at, l->grad + (size_t)i * l->s->n, err);
}

/* The predictions of all shards of a batch of k. */
static pl_code batch_gather(loop *l, int32_t k, pl_error *err)
{
    int size = l->ranks->size;

    for (int r = 0; r < size; r++)
        l->first[r] = nn_shards_part(k, l->shards, (int)nn_share(l->shards, size, r).first).first * l->outputs;
    l->first[size] = (int64_t)k * l->outputs;
    return l->ranks->kind->gather(l->ranks, l->y, l->first, sizeof *l->y, err);
}

/* t of a batch; how many are measured. */
static int64_t targets_take(loop *l, nn_which now)
{
    for (int32_t i = 0; i < now.n; i++)
        memcpy(l->t + (int64_t)i * l->outputs, l->train->target + now.at[i] * l->outputs,
               (size_t)l->outputs * sizeof *l->t);
    return nn_loss_measured(l->t, (int64_t)now.n * l->outputs);
}

/* now: a dealt batch. The gradient, scaled, is then in row 0 of grad. */
static pl_code step_compute(loop *l, nn_which now, nn_loss_sum *sum, pl_error *err)
{
    int64_t n = (int64_t)now.n * l->outputs, measured = targets_take(l, now);
    pl_code rc = PL_OK;

    pieces_run(l, piece_clear, l);
    for (int64_t i = 0; i < l->own.n && !rc; i++)
        rc = shard_compute(l, now, i, measured, err);
    if (!rc)
        rc = l->ranks->kind->sum(l->ranks, l->grad, (int64_t)l->s->n, l->shards, err);
    if (!rc)
        rc = batch_gather(l, now.n, err);
    if (!rc)
        *sum = nn_loss_backward((nn_loss)l->conf->loss, l->y, l->t, n, measured, l->dy);
    return rc;
}

static pl_code step_run(loop *l, pl_error *err)
{
    nn_train_state *s = l->s;
    nn_which now = { l->dealt + s->cursor, take(l, s->cursor).n };
    nn_loss_sum sum;
    pl_code rc = step_compute(l, now, &sum, err);
    double norm;
    bool taken;

    if (rc)
        return rc;
    norm = gradient_norm(l) / s->scale.by;
    taken = isfinite(sum.loss) && isfinite(norm);
    if (taken) {
        nn_loss_add(&s->seen, &sum);
        s->bad_run = 0;
        rc = params_update(l, norm, err);
    } else {
        rc = nn_steps_skip(s, err);
    }
    s->scale = nn_loss_scale_next(s->scale, l->conf->scale_after, taken);
    s->cursor += now.n;
    return rc;
}

/* Own shard i of a step of the engine's. */
static pl_code shard_begin(loop *l, int64_t from, nn_training_step step, int64_t i, pl_error *err)
{
    nn_which now = shard_at(l, from, step.n_graphs, i), next = shard_after(l, from, step.n_graphs, i);
    nn_batch batch;
    pl_code rc = now.n ? nn_ahead_take(l->ahead, &batch, l->train, now, next, err) : PL_OK;

    step.target = l->t + (now.at - (l->dealt + from)) * l->outputs;
    step.shard = (int32_t)i;
    return rc ? rc : nn_steps_add(l->steps, now.n ? &batch : NULL, &step, err);
}

/* A step of the engine's own is begun; what became of it is counted later. */
static pl_code step_begin(loop *l, pl_error *err)
{
    int64_t from = l->steps->cursor;
    nn_which whole = { l->dealt + from, take(l, from).n };
    nn_training_step step = { .measured = targets_take(l, whole), .n_graphs = whole.n };
    pl_code rc = PL_OK;

    step.lr = (float)nn_train_lr(l->conf, (double)l->s->epoch + (double)from / (double)l->train->n);
    for (int64_t i = 0; i < l->own.n && !rc; i++)
        rc = shard_begin(l, from, step, i, err);
    return rc;
}

/* Molecules of this epoch that are done or being done. */
static int64_t position(const loop *l)
{
    return l->steps ? l->steps->cursor : l->s->cursor;
}

/* ---- epochs -------------------------------------------------------------- */

static pl_code settle(const loop *l, pl_error *err)
{
    return l->steps ? nn_steps_settle(l->steps, err) : PL_OK;
}

static pl_code save(const loop *l, pl_error *err)
{
    pl_code rc = settle(l, err);

    if (rc)
        return rc;
    return l->host && l->host->save ? l->host->save(l->host->ctx, l->s, err) : PL_OK;
}

static pl_code stop_here(const loop *l, pl_error *err)
{
    pl_code rc = save(l, err);

    return rc ? rc : pl_fail(err, PL_ESTOP, "stopped in epoch %lld", (long long)l->s->epoch + 1);
}

/* The order of the epoch, and its batches dealt to the shards. */
static void epoch_deal(loop *l)
{
    nn_which batch;

    nn_train_order(l->order, l->train->n, l->conf->seed, l->s->epoch);
    for (int64_t at = 0; at < l->train->n; at += batch.n) {
        batch = take(l, at);
        nn_shards_deal(l->dealt + at, batch.at, batch.n, l->train->edges, l->shards, l->card);
    }
}

static pl_code epoch_steps(loop *l, pl_error *err)
{
    const nn_train_host *host = l->host;
    nn_train_state *s = l->s;
    uint32_t asked;

    epoch_deal(l);
    while (position(l) < l->train->n) {
        pl_code rc = host_ask(l, false, &asked, err);
        if (!rc && asked & ASKED_STOP)
            return stop_here(l, err);
        if (!rc && asked & ASKED_SAVE)
            rc = save(l, err);
        if (!rc)
            rc = l->steps ? step_begin(l, err) : step_run(l, err);
        if (!rc && !l->steps && host && host->step)
            host->step(host->ctx, s, l->train->n);
        if (rc)
            return rc;
    }
    return settle(l, err);
}

static pl_code held_out(loop *l, const nn_samples *part, nn_loss_sum *out, pl_error *err)
{
    pl_code rc = nn_predict_shared(l->held_y, &l->held, part, l->ranks, l->first, err);

    for (int64_t i = 0; i < part->n && !rc; i++) {
        const float *t = part->target + i * l->outputs;
        nn_loss_sum one = nn_loss_backward((nn_loss)l->conf->loss, l->held_y + i * l->outputs, t, l->outputs,
                                           nn_loss_measured(t, l->outputs), l->dy);
        nn_loss_add(out, &one);
    }
    return rc;
}

static pl_code epoch_measure(loop *l, nn_epoch_report *r, pl_error *err)
{
    nn_train_state *s = l->s;
    pl_code rc = l->kind->set_params(l->engine, s->ema ? s->ema : s->params, err);

    if (!rc)
        rc = held_out(l, l->valid, &r->valid, err);
    if (!rc && l->host && l->host->test)
        rc = held_out(l, l->host->test, &r->test, err);
    return rc ? rc : l->kind->set_params(l->engine, s->params, err);
}

/* Without a validation set every epoch is better than the one before. */
static bool best_update(nn_train_state *s, const nn_loss_sum *valid, nn_loss kind)
{
    double error = valid->n ? (kind == NN_LOSS_BCE ? valid->loss : valid->abs) / (double)valid->n : 0.0;
    bool better = valid->n ? error < s->best_error || (s->best_epoch < 0 && isfinite(error)) : true;

    if (!better)
        return false;
    s->best_error = error;
    s->best_epoch = s->epoch;
    memcpy(s->best, s->ema ? s->ema : s->params, s->n * sizeof *s->best);
    return true;
}

/* The last epoch's always; a stop is seen before the next step. */
static pl_code epoch_save(loop *l, pl_error *err)
{
    uint32_t asked = ASKED_SAVE;
    pl_code rc = l->s->done ? PL_OK : host_ask(l, true, &asked, err);

    return !rc && asked & ASKED_SAVE ? save(l, err) : rc;
}

static pl_code epoch_end(loop *l, pl_error *err)
{
    const nn_train_conf *c = l->conf;
    nn_train_state *s = l->s;
    nn_epoch_report r = { .epoch = s->epoch + 1, .step = s->step, .train = s->seen };
    pl_code rc = nn_ranks_agree(l->ranks, s->params, s->n * sizeof *s->params, "weights", err);

    if (!rc)
        rc = epoch_measure(l, &r, err);
    if (rc)
        return rc == PL_ESTOP ? stop_here(l, err) : rc;
    r.lr = nn_train_lr(c, (double)s->epoch);
    r.best = best_update(s, &r.valid, (nn_loss)c->loss);
    if (l->host && l->host->epoch)
        rc = l->host->epoch(l->host->ctx, &r, err);
    s->epoch++;
    s->cursor = 0;
    if (l->steps)
        l->steps->cursor = 0;
    s->seen = (nn_loss_sum){ 0 };
    s->done = s->epoch >= c->epochs || (c->patience > 0 && s->epoch - 1 - s->best_epoch >= c->patience);
    return rc ? rc : epoch_save(l, err);
}

/* ---- whole --------------------------------------------------------------- */

static pl_code loop_alloc(loop *l, pl_error *err)
{
    int64_t wide = l->conf->molecules > 0 && l->conf->molecules < l->train->n ? l->conf->molecules : l->train->n;
    int64_t n = (wide + 1) * l->outputs, held = l->valid->n;

    if (l->host && l->host->test && l->host->test->n > held)
        held = l->host->test->n;
    l->mem = pl_arena_new(1 << 16);
    l->pool = nn_pool_new(l->conf->threads);
    l->ahead = nn_ahead_new();
    if (!l->mem || !l->pool || !l->ahead)
        return pl_fail(err, PL_ENOMEM, "training");
    l->order = PL_NEW(l->mem, int64_t, l->train->n + 1);
    l->dealt = PL_NEW(l->mem, int64_t, l->train->n + 1);
    l->first = PL_NEW(l->mem, int64_t, l->ranks->size + 1);
    l->card = PL_NEW(l->mem, nn_card, wide + 1);
    l->y = PL_NEW(l->mem, float, n);
    l->t = PL_NEW(l->mem, float, n);
    l->dy = PL_NEW(l->mem, float, n);
    l->grad = PL_NEW(l->mem, float, (size_t)l->own.n * l->s->n);
    l->square = PL_NEW(l->mem, double, l->s->n / PIECE + 1);
    l->held_y = PL_NEW(l->mem, float, (held + 1) * l->outputs);
    l->held = (nn_predictor){ l->kind, l->engine, l->host, l->conf->molecules, l->conf->max_edges, l->ahead,
                              nn_predict_numbers(held, l->mem) };
    l->optimiser = nn_optimiser_new((nn_optimiser_kind)l->conf->optimiser, l->s->n, l->s->tensor, l->s->n_tensors, l->mem);
    if (!l->optimiser || !l->order || !l->dealt || !l->first || !l->card || !l->y || !l->t || !l->dy || !l->grad || !l->square || !l->held_y
        || !l->held.all)
        return pl_fail(err, PL_ENOMEM, "training on %lld molecules", (long long)l->train->n);
    return PL_OK;
}

/* An engine may do whole steps, with other ranks where gradients are summed on devices. */
static pl_code steps_open(loop *l, pl_error *err)
{
    bool alone = l->ranks->size == 1, whole = alone || l->ranks->kind->device;
    const nn_steps_of of = { .s = l->s, .conf = l->conf, .kind = l->kind, .engine = l->engine, .host = l->host,
                             .n_train = l->train->n, .ranks = alone ? NULL : l->ranks, .shards = l->shards,
                             .own = (int)l->own.n };

    return whole && l->kind->training ? nn_steps_new(&l->steps, &of, err) : PL_OK;
}

static pl_code loop_run(loop *l, pl_error *err)
{
    pl_code rc = l->kind->set_params(l->engine, l->s->params, err);

    l->s->scale = nn_loss_scale_begin(l->s->scale, l->conf->scale_after);
    if (!rc)
        rc = steps_open(l, err);
    while (!rc && !l->s->done) {
        rc = epoch_steps(l, err);
        if (!rc)
            rc = epoch_end(l, err);
    }
    if (!rc && l->s->best_epoch < 0)
        rc = pl_fail(err, PL_ELIMIT, "no epoch gave finite predictions for the validation molecules: try a smaller lr");
    return rc;
}

static void loop_free(loop *l)
{
    nn_steps_free(l->steps);
    nn_ahead_free(l->ahead);
    nn_pool_free(l->pool);
    pl_arena_free(l->mem);
}

pl_code nn_train(nn_train_state *s, const nn_train_conf *conf, const nn_engine_kind *kind, nn_engine *engine,
                 const nn_samples *train, const nn_samples *valid, const nn_train_host *host, pl_error *err)
{
    loop l = { .s = s, .conf = conf, .kind = kind, .engine = engine, .train = train, .valid = valid,
               .host = host, .outputs = s->outputs };
    pl_code rc;

    l.alone = (nn_ranks){ .kind = &nn_collective_none, .size = 1 };
    l.ranks = host && host->ranks ? host->ranks : &l.alone;
    l.shards = conf->shards > 0 ? (int)conf->shards : 1;
    l.own = nn_share(l.shards, l.ranks->size, l.ranks->rank);
    if (train->n < 1)
        return pl_fail(err, PL_ECONFIG, "no molecule to train on");
    if (l.own.n < 1)
        return pl_fail(err, PL_ECONFIG, "%d ranks for %d shards of a batch", l.ranks->size, l.shards);
    rc = loop_alloc(&l, err);
    if (!rc)
        rc = loop_run(&l, err);
    loop_free(&l);
    return rc;
}

/* Of zeroed arrays. */
static void state_begin(nn_train_state *s, const nn_se3 *model, uint64_t seed)
{
    nn_se3_init(model, s->params, seed);
    if (s->ema)
        memcpy(s->ema, s->params, s->n * sizeof *s->ema);
}

pl_code nn_train_state_alloc(nn_train_state *s, const nn_se3 *model, bool ema, uint64_t seed, pl_arena *mem,
                             pl_error *err)
{
    size_t n = model->n_floats;

    *s = (nn_train_state){ .n = n, .outputs = model->conf.outputs, .best_epoch = -1, .tensor = model->param,
                             .n_tensors = model->n_params };
    s->params = PL_NEW(mem, float, n);
    s->m = PL_NEW(mem, float, n);
    s->v = PL_NEW(mem, float, n);
    s->best = PL_NEW(mem, float, n);
    s->ema = ema ? PL_NEW(mem, float, n) : NULL;
    if (!s->params || !s->m || !s->v || !s->best || (ema && !s->ema))
        return pl_fail(err, PL_ENOMEM, "a training state of %zu parameters", n);
    state_begin(s, model, seed);
    return PL_OK;
}

pl_code nn_train_state_again(nn_train_state *s, const nn_se3 *model, uint64_t seed, pl_arena *mem, pl_error *err)
{
    nn_train_state old = *s;
    size_t bytes = s->n * sizeof *s->params;

    *s = (nn_train_state){ .n = old.n, .outputs = old.outputs, .params = old.params, .m = old.m, .v = old.v, .ema = old.ema,
                           .best = PL_NEW(mem, float, old.n), .best_epoch = -1, .tensor = old.tensor, .n_tensors = old.n_tensors };
    if (!s->best)
        return pl_fail(err, PL_ENOMEM, "a training state of %zu parameters", s->n);
    memset(s->params, 0, bytes);
    memset(s->m, 0, bytes);
    memset(s->v, 0, bytes);
    state_begin(s, model, seed);
    return PL_OK;
}
