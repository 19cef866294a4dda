/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "models/training/shards.h"
#include "models/training/sparsity.h"
#include "models/training/train_parts.h"
#include "pipeline/base/log.h"

enum { ASKED_STOP = 1, ASKED_SAVE = 2, ASKED_TIME = 4 };

/* Combines the answers of the hosts of all ranks: a sharded state can only be fetched by all ranks together. */
static pl_code host_ask(const nn_loop *l, bool epoch_over, uint32_t *asked, pl_error *err)
{
    const nn_train_host *host = l->host;
    bool due = host != NULL && host->due != NULL ? host->due(host->ctx, epoch_over) : epoch_over;

    *asked = (!epoch_over && nn_train_must_stop(host) ? ASKED_STOP : 0) | (due ? ASKED_SAVE : 0) |
             (l->open && nn_validation_busy(l->validation) ? ASKED_TIME : 0);
    return nn_ranks_any(l->ranks, asked, err);
}

/* Molecules of this epoch whose steps are finished or in flight. */
static int64_t position(const nn_loop *l) { return l->steps != NULL ? l->steps->cursor : l->s->cursor; }

static pl_code settle(const nn_loop *l, pl_error *err) { return l->steps != NULL ? nn_steps_settle(l->steps, err) : PL_OK; }

pl_code nn_loop_saved(const nn_loop *l, pl_error *err)
{
    return l->host != NULL && l->host->saved != NULL ? l->host->saved(l->host->ctx, err) : PL_OK;
}

double nn_loop_clock(const nn_loop *l)
{
    return l->conf->budget > 0 && l->host != NULL && l->host->clock != NULL ? l->host->clock(l->host->ctx) : 0;
}

/* The engine's steps continue meanwhile: they do not use the arrays of the state. */
static pl_code save(const nn_loop *l, pl_error *err)
{
    pl_code code = nn_loop_saved(l, err);

    if (code == PL_OK)
        code = settle(l, err);
    l->s->seconds = nn_loop_clock(l) - l->time.began;
    if (code == PL_OK && l->host != NULL && l->host->save != NULL)
        code = l->host->save(l->host->ctx, l->s, err);
    return code != PL_OK || l->steps != NULL ? code : nn_loop_saved(l, err);
}

static pl_code stop_here(const nn_loop *l, pl_error *err)
{
    pl_code code = save(l, err);

    if (code == PL_OK)
        code = nn_loop_saved(l, err);
    return code != PL_OK ? code : pl_fail(err, PL_ESTOP, "stopped in epoch %lld", (long long)l->s->epoch + 1);
}

/* Shuffles the epoch and deals its batches to the shards. */
static void epoch_deal(nn_loop *l)
{
    nn_which batch;

    nn_train_order(l->order, l->train->n, l->conf->seed, l->s->epoch);
    for (int64_t at = 0; at < l->train->n; at += batch.n) {
        batch = nn_loop_take(l, at);
        nn_shards_deal(l->dealt + at, batch.at, batch.n, l->train->edges, l->shards, l->card);
    }
}

/* The weights that are validated, and kept if they are the best: the moving average if there is one. */
static const float *weights_of(const nn_train_state *s) { return s->ema != NULL ? s->ema : s->params; }

/* Without a validation set every epoch counts as better than the one before. */
static bool best_update(nn_train_state *s, const nn_epoch_report *r, nn_loss kind)
{
    const nn_loss_sum *valid = &r->valid;
    double error = valid->n ? (kind == NN_LOSS_BCE ? valid->loss : valid->abs) / (double)valid->n : 0.0;
    bool better = valid->n ? error < s->best_error || (s->best_epoch < 0 && isfinite(error)) : true;

    if (!better)
        return false;
    s->best_error = error;
    s->best_epoch = r->epoch - 1;
    memcpy(s->best, weights_of(s), s->n * sizeof *s->best);
    return true;
}

/* Ends training; steps of the next epoch that are already in flight are discarded. */
static pl_code training_end(nn_loop *l, pl_error *err)
{
    nn_train_state *s = l->s, end = l->end;

    end.best_epoch = s->best_epoch;
    end.best_error = s->best_error;
    end.planned = s->planned;
    end.seconds = s->seconds;
    end.done = true;
    *s = end;
    return l->steps != NULL ? nn_steps_drop(l->steps, err) : PL_OK;
}

/* Decides on rank 0 how many epochs the budget allows, and tells all ranks. Nothing is in flight. */
static pl_code epochs_plan(nn_loop *l, pl_error *err)
{
    const nn_train_host *host = l->host;
    nn_budget b = { .seconds = l->conf->budget,
                    .used = nn_loop_clock(l) - l->time.began,
                    .evaluation = l->time.evaluation,
                    .over = l->r.epoch,
                    .most = l->conf->epochs };
    int64_t planned;
    pl_code code;

    if (l->time.steps > 0) {
        b.step = l->time.steps_took / (double)l->time.steps;
        b.steps = (double)l->time.steps * (double)l->train->n / (double)l->time.molecules;
    }
    planned = nn_budget_epochs(&b);
    if (l->conf->sparsity != NN_DENSE && !l->conf->prune_first && planned < 2)
        planned = 2; /* one dense, one pruned */
    code = l->ranks->kind->broadcast(l->ranks, &planned, sizeof planned, err);
    l->s->planned = planned;
    return code == PL_OK && host != NULL && host->planned != NULL ? host->planned(host->ctx, &b, planned, err) : code;
}

/* The last epoch is always saved, and one that decided the number of epochs; a stop request is noticed before the next step. */
static pl_code epoch_save(nn_loop *l, bool planned, pl_error *err)
{
    uint32_t asked = ASKED_SAVE;
    pl_code code = l->s->done || planned ? PL_OK : host_ask(l, true, &asked, err);

    return code == PL_OK && asked & ASKED_SAVE ? save(l, err) : code;
}

/* Pruning comes before the end, and is a new begin. */
static bool patience_is_over(const nn_loop *l)
{
    const int64_t over = l->r.epoch - 1, pruned = nn_sparsity_epoch(l->conf, l->s);
    int64_t since = l->s->best_epoch;

    if (l->conf->patience <= 0)
        return false;
    if (l->conf->sparsity != NN_DENSE && over < pruned)
        return false;
    if (l->conf->sparsity != NN_DENSE && since < pruned - 1)
        since = pruned - 1;
    return over - since >= l->conf->patience;
}

/* Evaluates the validation of an epoch: best so far, patience, end of training. */
static pl_code epoch_judge(nn_loop *l, pl_error *err)
{
    const nn_train_conf *c = l->conf;
    const nn_epoch_report *r = &l->r;
    const bool plans = c->budget > 0 && l->s->planned == 0;
    pl_code code = plans ? epochs_plan(l, err) : PL_OK;

    l->open = false;
    l->r.best = best_update(l->s, r, (nn_loss)c->loss);
    if (code == PL_OK && l->host != NULL && l->host->epoch != NULL)
        code = l->host->epoch(l->host->ctx, r, err);
    if (code == PL_OK && (r->epoch >= nn_train_epochs(c, l->s) || patience_is_over(l)))
        code = training_end(l, err);
    return code != PL_OK ? code : epoch_save(l, plans, err);
}

/* Waits for the validation that runs beside the steps. */
static pl_code epoch_close(nn_loop *l, pl_error *err)
{
    nn_loss_sum sum[NN_VALIDATION_PARTS];
    pl_code code = nn_validation_end(l->validation, sum, err);

    if (code != PL_OK)
        return code;
    l->r.valid = sum[0];
    l->r.test = sum[1];
    return epoch_judge(l, err);
}

/* Before a step: handles requests of the host, and an epoch whose validation has finished. */
static pl_code look_up(nn_loop *l, pl_error *err)
{
    uint32_t asked;
    pl_code code = host_ask(l, false, &asked, err);

    if (code == PL_OK && l->open && asked != ASKED_TIME)
        code = epoch_close(l, err);
    if (code != PL_OK || l->s->done)
        return code;
    if (asked & ASKED_STOP)
        return stop_here(l, err);
    return asked & ASKED_SAVE ? save(l, err) : PL_OK;
}

static pl_code epoch_steps(nn_loop *l, pl_error *err)
{
    const nn_train_host *host = l->host;
    nn_train_state *s = l->s;

    epoch_deal(l);
    l->time.from = nn_loop_clock(l);
    l->time.steps = 0;
    l->time.molecules = l->train->n - position(l);
    while (position(l) < l->train->n) {
        pl_code code = look_up(l, err);
        if (code != PL_OK || s->done)
            return code;
        code = nn_loop_step(l, err);
        l->time.steps++;
        if (code == PL_OK && l->steps == NULL && host != NULL && host->step != NULL)
            host->step(host->ctx, s, l->train->n);
        if (code != PL_OK)
            return code;
    }
    return l->open ? epoch_close(l, err) : PL_OK;
}

static pl_code ranks_agree(const nn_loop *l, pl_error *err)
{
    return nn_ranks_agree(l->ranks, l->s->params, l->s->n * sizeof *l->s->params, "weights", err);
}

/* Validates on the engine that trains. */
static pl_code measure_now(nn_loop *l, nn_loss_sum sum[NN_VALIDATION_PARTS], pl_error *err)
{
    nn_train_state *s = l->s;
    pl_code code = settle(l, err);

    if (code == PL_OK)
        code = ranks_agree(l, err);
    if (code == PL_OK)
        code = nn_validation_measure(l->validation, sum, weights_of(s), err);
    return code != PL_OK ? code : l->kind->set_params(l->engine, s->params, err);
}

static pl_code beside_first(nn_loop *l, pl_error *err)
{
    nn_engine *second = l->host->beside(l->host->ctx, err);
    pl_code code = second != NULL ? nn_validation_second(l->validation, second, err) : PL_EDEVICE;

    if (code != PL_OK)
        return code;
    nn_validation_begin(l->validation, weights_of(l->s));
    return nn_validation_wait(l->validation, err);
}

/* The first validation blocks: the second engine takes memory that training leaves free and loads its kernels while nothing
 * else runs. If any rank cannot do this, no rank uses a second engine. */
static pl_code beside_try(nn_loop *l, nn_loss_sum sum[NN_VALIDATION_PARTS], pl_error *err)
{
    pl_error why = { 0 };
    uint32_t failed = beside_first(l, &why) != PL_OK, any = failed;
    pl_code code = nn_ranks_any(l->ranks, &any, err);

    if (code != PL_OK)
        return code;
    l->beside = any ? BESIDE_NOT : BESIDE_GOOD;
    if (!any)
        return nn_validation_end(l->validation, sum, err);
    pl_log(PL_WARN, "train     held-out molecules are measured between epochs: %s", failed ? why.text : "another rank cannot");
    nn_validation_alone(l->validation);
    return measure_now(l, sum, err);
}

/* Validates on the second engine, beside the steps of the next epoch if there is one: then *open is set. */
static pl_code measure_beside(nn_loop *l, nn_loss_sum sum[NN_VALIDATION_PARTS], bool *open, pl_error *err)
{
    nn_train_state *s = l->s;
    pl_code code = nn_steps_weights(l->steps, l->ranks->size > 1 || s->ema == NULL, err);

    if (code == PL_OK)
        code = ranks_agree(l, err);
    if (code != PL_OK)
        return code;
    if (l->beside == BESIDE_UNTRIED)
        return beside_try(l, sum, err);
    nn_validation_begin(l->validation, weights_of(s));
    *open = s->epoch + 1 < nn_train_epochs(l->conf, s);
    return *open ? PL_OK : nn_validation_end(l->validation, sum, err);
}

static pl_code epoch_end(nn_loop *l, pl_error *err)
{
    nn_train_state *s = l->s;
    nn_loss_sum sum[NN_VALIDATION_PARTS] = { { 0 } };
    bool open = false;
    pl_code code = nn_loop_saved(l, err);

    if (code == PL_OK && l->steps != NULL && l->conf->budget > 0 && s->planned == 0)
        code = nn_steps_weights(l->steps, false, err); /* the steps in flight belong to the time of the steps */
    l->time.steps_took = nn_loop_clock(l) - l->time.from;
    if (code == PL_OK)
        code = l->beside ? measure_beside(l, sum, &open, err) : measure_now(l, sum, err);
    if (code != PL_OK)
        return code == PL_ESTOP ? stop_here(l, err) : code;
    l->time.evaluation = nn_loop_clock(l) - l->time.from - l->time.steps_took;
    l->r = (nn_epoch_report){ .epoch = s->epoch + 1,
                              .step = s->step,
                              .train = s->seen,
                              .valid = sum[0],
                              .test = sum[1],
                              .noise = s->noise,
                              .lr = nn_train_lr(l->conf, nn_train_epochs(l->conf, s), (double)s->epoch) };
    s->epoch++;
    s->cursor = 0;
    if (l->steps != NULL)
        l->steps->cursor = 0;
    s->seen = (nn_loss_sum){ 0 };
    s->noise = (nn_noise_sum){ 0 };
    l->end = *s;
    l->open = open;
    return open ? PL_OK : epoch_judge(l, err);
}

static pl_code weights_prune(const nn_loop *l, pl_error *err)
{
    pl_code code = nn_loop_saved(l, err);

    if (code != PL_OK)
        return code;
    nn_sparsity_prune(l->s);
    return l->kind->set_params(l->engine, l->s->params, err);
}

pl_code nn_loop_epoch(nn_loop *l, pl_error *err)
{
    pl_code code = nn_sparsity_begins(l->conf, l->s) ? weights_prune(l, err) : PL_OK;

    if (code == PL_OK)
        code = epoch_steps(l, err);
    return code != PL_OK || l->s->done ? code : epoch_end(l, err);
}
