/* SPDX-License-Identifier: Apache-2.0 */
#include "models/train.h"

#include <math.h>
#include <string.h>

#include "models/adam.h"
#include "pipeline/base/rng.h"

enum { PURPOSE_SHUFFLE = 0x73687566 }; /* "shuf" */

/* What one call of nn_train or nn_predict carries around. */
typedef struct loop {
    nn_train_state *s;
    const nn_train_conf *conf;
    const nn_engine_kind *kind;
    nn_engine *engine;
    const nn_samples *train, *valid;
    const nn_train_host *host;
    int32_t outputs;
    int64_t *order;     /* [train->n] of this epoch                     */
    float *y, *t, *dy;  /* [molecules][outputs] of a batch              */
    float *held_y;      /* [the larger of valid->n and test->n][outputs] */
    float *grad;        /* [s->n]                                       */
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

static bool told_to_stop(const nn_train_host *host)
{
    return host && host->stop && host->stop(host->ctx);
}

/* ---- predicting ---------------------------------------------------------- */

static pl_code predict_loop(float *y, const loop *l, const nn_samples *samples, int64_t molecules,
                            int64_t max_edges, pl_error *err)
{
    int64_t *all = PL_NEW(l->mem, int64_t, samples->n + 1);
    nn_batch batch;
    pl_code rc = PL_OK;

    if (!all)
        return pl_fail(err, PL_ENOMEM, "predicting %lld molecules", (long long)samples->n);
    for (int64_t i = 0; i < samples->n; i++)
        all[i] = i;
    for (int64_t at = 0; at < samples->n && !rc;) {
        int32_t k = nn_train_take(samples, all + at, samples->n - at, molecules, max_edges);
        if (told_to_stop(l->host))
            return pl_fail(err, PL_ESTOP, "stopped while predicting");
        rc = samples->batch(samples->ctx, &batch, all + at, k, err);
        if (!rc)
            rc = l->kind->forward(l->engine, &batch, false, y + at * l->outputs, err);
        at += k;
    }
    return rc;
}

pl_code nn_predict(float *y, const nn_engine_kind *kind, nn_engine *engine, const nn_samples *samples,
                   int64_t molecules, int64_t max_edges, const nn_train_host *host, pl_error *err)
{
    loop l = { .kind = kind, .engine = engine, .host = host, .outputs = samples->outputs, .mem = pl_arena_new(1 << 16) };
    pl_code rc = l.mem ? predict_loop(y, &l, samples, molecules, max_edges, err)
                       : pl_fail(err, PL_ENOMEM, "predicting %lld molecules", (long long)samples->n);

    pl_arena_free(l.mem);
    return rc;
}

/* ---- one step ------------------------------------------------------------ */

/* Four sums so that the compiler may keep four lanes; the order is fixed. */
static double norm_of(const float *g, size_t n)
{
    double s[4] = { 0 };
    size_t i = 0;

    for (; i + 4 <= n; i += 4)
        for (int k = 0; k < 4; k++)
            s[k] += (double)g[i + (size_t)k] * (double)g[i + (size_t)k];
    for (; i < n; i++)
        s[0] += (double)g[i] * (double)g[i];
    return sqrt((s[0] + s[1]) + (s[2] + s[3]));
}

static void average_update(nn_train_state *s, double decay)
{
    double warm = (1.0 + (double)s->step) / (10.0 + (double)s->step);
    float d = (float)(1.0 - fmin(decay, warm));

    for (size_t i = 0; i < s->n; i++)
        s->ema[i] += d * (s->params[i] - s->ema[i]);
}

static pl_code params_update(loop *l, double norm, pl_error *err)
{
    const nn_train_conf *c = l->conf;
    nn_train_state *s = l->s;
    const nn_adamw_conf adam = { c->beta1, c->beta2, c->eps, c->weight_decay };
    double at = (double)s->epoch + (double)s->cursor / (double)l->train->n;

    if (c->grad_clip > 0 && norm > c->grad_clip) {
        float by = (float)(c->grad_clip / norm);
        for (size_t i = 0; i < s->n; i++)
            l->grad[i] *= by;
    }
    s->step++;
    nn_adamw_step(s->params, s->m, s->v, l->grad, s->n, &adam, s->step, (float)nn_train_lr(c, at));
    if (s->ema)
        average_update(s, c->ema);
    return l->kind->set_params(l->engine, s->params, err);
}

/* A step with an infinity in it must not reach the weights; many in a row mean
 * that the weights themselves are lost. */
static pl_code step_skip(loop *l, pl_error *err)
{
    l->s->bad_total++;
    if (++l->s->bad_run < NN_BAD_STEPS_MAX)
        return PL_OK;
    return pl_fail(err, PL_ELIMIT,
                   "loss or gradient not finite in %d steps in a row (epoch %lld, step %lld): try a smaller lr",
                   (int)NN_BAD_STEPS_MAX, (long long)l->s->epoch + 1, (long long)l->s->step);
}

static pl_code step_compute(loop *l, const int64_t *which, int32_t k, nn_loss_sum *sum, pl_error *err)
{
    nn_batch batch;
    pl_code rc = l->train->batch(l->train->ctx, &batch, which, k, err);

    if (!rc)
        rc = l->kind->forward(l->engine, &batch, true, l->y, err);
    if (rc)
        return rc;
    for (int32_t i = 0; i < k; i++)
        memcpy(l->t + (int64_t)i * l->outputs, l->train->target + which[i] * l->outputs,
               (size_t)l->outputs * sizeof *l->t);
    *sum = nn_loss_backward((nn_loss)l->conf->loss, l->y, l->t, (int64_t)k * l->outputs, l->dy);
    memset(l->grad, 0, l->s->n * sizeof *l->grad);
    return l->kind->backward(l->engine, &batch, l->dy, l->grad, err);
}

static pl_code step_run(loop *l, pl_error *err)
{
    nn_train_state *s = l->s;
    const int64_t *which = l->order + s->cursor;
    int32_t k = nn_train_take(l->train, which, l->train->n - s->cursor, l->conf->molecules, l->conf->max_edges);
    nn_loss_sum sum;
    pl_code rc = step_compute(l, which, k, &sum, err);
    double norm;

    if (rc)
        return rc;
    norm = norm_of(l->grad, s->n);
    if (!isfinite(sum.loss) || !isfinite(norm)) {
        rc = step_skip(l, err);
    } else {
        nn_loss_add(&s->seen, &sum);
        s->bad_run = 0;
        rc = params_update(l, norm, err);
    }
    s->cursor += k;
    return rc;
}

/* ---- epochs -------------------------------------------------------------- */

static pl_code save(const loop *l, pl_error *err)
{
    return l->host && l->host->save ? l->host->save(l->host->ctx, l->s, err) : PL_OK;
}

static pl_code stop_here(const loop *l, pl_error *err)
{
    pl_code rc = save(l, err);

    return rc ? rc : pl_fail(err, PL_ESTOP, "stopped in epoch %lld", (long long)l->s->epoch + 1);
}

static pl_code epoch_steps(loop *l, pl_error *err)
{
    const nn_train_host *host = l->host;
    nn_train_state *s = l->s;
    pl_code rc;

    nn_train_order(l->order, l->train->n, l->conf->seed, s->epoch);
    while (s->cursor < l->train->n) {
        if (told_to_stop(host))
            return stop_here(l, err);
        rc = step_run(l, err);
        if (!rc && host && host->step)
            host->step(host->ctx, s, l->train->n);
        if (!rc && host && host->due && host->due(host->ctx))
            rc = save(l, err);
        if (rc)
            return rc;
    }
    return PL_OK;
}

static pl_code held_out(loop *l, const nn_samples *part, nn_loss_sum *out, pl_error *err)
{
    pl_code rc = nn_predict(l->held_y, l->kind, l->engine, part, l->conf->molecules, l->conf->max_edges, l->host, err);

    for (int64_t i = 0; i < part->n && !rc; i++) {
        nn_loss_sum one = nn_loss_backward((nn_loss)l->conf->loss, l->held_y + i * l->outputs,
                                           part->target + i * l->outputs, l->outputs, l->dy);
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
static bool best_update(nn_train_state *s, const nn_loss_sum *valid)
{
    double mae = valid->n ? valid->abs / (double)valid->n : 0.0;
    bool better = valid->n ? mae < s->best_mae || (s->best_epoch < 0 && isfinite(mae)) : true;

    if (!better)
        return false;
    s->best_mae = mae;
    s->best_epoch = s->epoch;
    memcpy(s->best, s->ema ? s->ema : s->params, s->n * sizeof *s->best);
    return true;
}

static pl_code epoch_end(loop *l, pl_error *err)
{
    const nn_train_conf *c = l->conf;
    nn_train_state *s = l->s;
    nn_epoch_report r = { .epoch = s->epoch + 1, .step = s->step, .train = s->seen };
    pl_code rc = epoch_measure(l, &r, err);

    if (rc)
        return rc == PL_ESTOP ? stop_here(l, err) : rc;
    r.lr = nn_train_lr(c, (double)s->epoch);
    r.best = best_update(s, &r.valid);
    if (l->host && l->host->epoch)
        rc = l->host->epoch(l->host->ctx, &r, err);
    s->epoch++;
    s->cursor = 0;
    s->seen = (nn_loss_sum){ 0 };
    s->done = s->epoch >= c->epochs || (c->patience > 0 && s->epoch - 1 - s->best_epoch >= c->patience);
    return rc ? rc : save(l, err);
}

/* ---- whole --------------------------------------------------------------- */

static pl_code loop_alloc(loop *l, pl_error *err)
{
    int64_t wide = l->conf->molecules > 0 && l->conf->molecules < l->train->n ? l->conf->molecules : l->train->n;
    int64_t n = (wide + 1) * l->outputs, held = l->valid->n;

    if (l->host && l->host->test && l->host->test->n > held)
        held = l->host->test->n;
    l->mem = pl_arena_new(1 << 16);
    if (!l->mem)
        return pl_fail(err, PL_ENOMEM, "training");
    l->order = PL_NEW(l->mem, int64_t, l->train->n + 1);
    l->y = PL_NEW(l->mem, float, n);
    l->t = PL_NEW(l->mem, float, n);
    l->dy = PL_NEW(l->mem, float, n);
    l->grad = PL_NEW(l->mem, float, l->s->n);
    l->held_y = PL_NEW(l->mem, float, (held + 1) * l->outputs);
    if (!l->order || !l->y || !l->t || !l->dy || !l->grad || !l->held_y)
        return pl_fail(err, PL_ENOMEM, "training on %lld molecules", (long long)l->train->n);
    return PL_OK;
}

static pl_code loop_run(loop *l, pl_error *err)
{
    pl_code rc = l->kind->set_params(l->engine, l->s->params, err);

    while (!rc && !l->s->done) {
        rc = epoch_steps(l, err);
        if (!rc)
            rc = epoch_end(l, err);
    }
    if (!rc && l->s->best_epoch < 0)
        rc = pl_fail(err, PL_ELIMIT, "no epoch gave finite predictions for the validation molecules: try a smaller lr");
    return rc;
}

pl_code nn_train(nn_train_state *s, const nn_train_conf *conf, const nn_engine_kind *kind, nn_engine *engine,
                 const nn_samples *train, const nn_samples *valid, const nn_train_host *host, pl_error *err)
{
    loop l = { .s = s, .conf = conf, .kind = kind, .engine = engine, .train = train, .valid = valid,
               .host = host, .outputs = s->outputs };
    pl_code rc;

    if (train->n < 1)
        return pl_fail(err, PL_ECONFIG, "no molecule to train on");
    rc = loop_alloc(&l, err);
    if (!rc)
        rc = loop_run(&l, err);
    pl_arena_free(l.mem);
    return rc;
}

pl_code nn_train_state_alloc(nn_train_state *s, const nn_se3 *model, bool ema, uint64_t seed, pl_arena *mem,
                             pl_error *err)
{
    size_t n = model->n_floats;

    *s = (nn_train_state){ .n = n, .outputs = model->conf.outputs, .best_epoch = -1 };
    s->params = PL_NEW(mem, float, n);
    s->m = PL_NEW(mem, float, n);
    s->v = PL_NEW(mem, float, n);
    s->best = PL_NEW(mem, float, n);
    s->ema = ema ? PL_NEW(mem, float, n) : NULL;
    if (!s->params || !s->m || !s->v || !s->best || (ema && !s->ema))
        return pl_fail(err, PL_ENOMEM, "a training state of %zu parameters", n);
    nn_se3_init(model, s->params, seed);
    if (ema)
        memcpy(s->ema, s->params, n * sizeof *s->ema);
    return PL_OK;
}
