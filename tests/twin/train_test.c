/* SPDX-License-Identifier: Apache-2.0
 * The training loop and its checkpoints, with a network small enough to do by
 * hand: y = sum_k w_k sum over the atoms of feature k. What an engine computes
 * is tested elsewhere; here it only has to have parameters and a gradient. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "models/optim/adam.h"
#include "models/training/checkpoint.h"
#include "models/training/predict.h"
#include "models/training/train.h"
#include "pipeline/base/rng.h"

enum { FEATURES = 4, TRAIN = 53, VALID = 11, EPOCHS = 6 };

struct nn_engine {
    float w[FEATURES];
    int64_t poison_at, calls; /* this call of backward gives a NaN; -1: none */
    int64_t poison_n;
    float max; /* larger gradients overflow; 0: none does           */
};

static pl_code line_set(nn_engine *e, const float *params, pl_error *err)
{
    (void)err;
    memcpy(e->w, params, sizeof e->w);
    return PL_OK;
}

static pl_code line_forward(nn_engine *e, const nn_batch *in, bool keep, float *y, pl_error *err)
{
    (void)keep;
    (void)err;
    for (int32_t g = 0; g < in->n_graphs; g++) {
        y[g] = 0;
        for (int k = 0; k < FEATURES; k++)
            y[g] += e->w[k] * in->node[g * FEATURES + k];
    }
    return PL_OK;
}

static pl_code line_backward(nn_engine *e, const nn_batch *in, const float *dy, float *grad, pl_error *err)
{
    (void)err;
    for (int32_t g = 0; g < in->n_graphs; g++)
        for (int k = 0; k < FEATURES; k++)
            grad[k] += dy[g] * in->node[g * FEATURES + k];
    for (int k = 0; k < FEATURES && e->max > 0; k++)
        grad[k] = fabsf(grad[k]) <= e->max ? grad[k] : INFINITY;
    if (e->poison_at >= 0 && e->calls >= e->poison_at && e->calls < e->poison_at + e->poison_n)
        grad[1] = NAN;
    e->calls++;
    return PL_OK;
}

static const nn_engine_kind line = { .name = "line", .set_params = line_set, .forward = line_forward, .backward = line_backward };

/* One atom a molecule. */
typedef struct data {
    float node[TRAIN + VALID][FEATURES], target[TRAIN + VALID], gathered[2][TRAIN + VALID][FEATURES];
    int32_t edges[TRAIN + VALID];
    int64_t first;
    int largest, max_edges; /* of the batches asked for; edges: of those of more than one molecule */
} data;

static pl_code data_batch(void *ctx, int slot, nn_batch *out, nn_which which, pl_error *err)
{
    data *d = ctx;
    const int32_t n = which.n;
    int edges = 0;

    (void)err;
    if (n > d->largest)
        d->largest = n;
    for (int32_t i = 0; i < n; i++)
        edges += d->edges[d->first + which.at[i]];
    if (n > 1 && edges > d->max_edges)
        d->max_edges = edges;
    for (int32_t i = 0; i < n; i++)
        memcpy(d->gathered[slot][i], d->node[d->first + which.at[i]], sizeof d->gathered[slot][i]);
    *out = (nn_batch){ .n_graphs = n, .n_nodes = n, .n_node_features = FEATURES, .node = d->gathered[slot][0] };
    return PL_OK;
}

static void data_make(data *d)
{
    static const float law[FEATURES] = { 1.0f, -0.5f, 0.25f, 2.0f };
    pl_rng r = pl_rng_at(3, 0, 0);

    memset(d, 0, sizeof *d);
    for (int i = 0; i < TRAIN + VALID; i++) {
        d->edges[i] = 1 + (int32_t)pl_rng_below(&r, 9);
        for (int k = 0; k < FEATURES; k++) {
            d->node[i][k] = (float)pl_rng_normal(&r);
            d->target[i] += law[k] * d->node[i][k];
        }
    }
}

/* A training that can be stopped after so many steps, and its checkpoint directory. */
typedef struct bench {
    pl_arena *mem;
    data train, valid;
    nn_samples train_s, valid_s;
    nn_train_conf conf;
    nn_engine engine;
    nn_train_state s;
    nn_train_host host;
    char dir[64];
    int64_t stop_after, polls;
    nn_epoch_report report[64];
    int n_reports;
    bool saved;
    double now; /* of a clock that a step moves by `pace` */
    double pace;
    int64_t planned;
    int n_planned;
    int n_saves, due_at, killed_at; /* due: ends of so many epochs are saved; epochs, 0 is none */
    double scales[128];             /* of the loss, after every step                       */
    int n_scales;
} bench;

static void host_step(void *ctx, const nn_train_state *s, int64_t n_train)
{
    bench *b = ctx;

    (void)n_train;
    b->now += b->pace;
    if (b->n_scales < 128)
        b->scales[b->n_scales++] = s->scale.by;
}

static double host_clock(void *ctx) { return ((const bench *)ctx)->now; }

static pl_code host_planned(void *ctx, const nn_budget *of, int64_t epochs, pl_error *err)
{
    bench *b = ctx;

    (void)of, (void)err;
    b->planned = epochs;
    b->n_planned++;
    return PL_OK;
}

static bool host_stop(void *ctx)
{
    bench *b = ctx;

    return b->stop_after >= 0 && b->polls++ >= b->stop_after;
}

static pl_code host_save(void *ctx, const nn_train_state *s, pl_error *err)
{
    bench *b = ctx;
    pl_code code = nn_checkpoint_save(b->dir, "one", s, b->saved, err);

    b->saved = code == PL_OK;
    b->n_saves++;
    return code;
}

static pl_code host_epoch(void *ctx, const nn_epoch_report *r, pl_error *err)
{
    bench *b = ctx;

    assert_true(r->epoch >= 1 && r->epoch <= EPOCHS);
    b->report[r->epoch - 1] = *r;
    b->n_reports = (int)r->epoch;
    return r->epoch == b->killed_at ? pl_fail(err, PL_EIO, "killed") : PL_OK;
}

static bool host_due(void *ctx, bool epoch_over)
{
    const bench *b = ctx;

    return epoch_over && b->s.epoch == b->due_at;
}

static void state_make(bench *b)
{
    static const nn_param matrix = { .n_dims = 2, .dims = { 2, 2 }, .size = FEATURES };
    static nn_se3 plan;

    plan = (nn_se3){ .n_floats = FEATURES, .conf.outputs = 1, .head = { -1, -1, -1, -1 }, .param = &matrix, .n_params = 1 };
    assert_int_equal(nn_train_state_alloc(&b->s, &plan, b->conf.ema > 0, 1, b->mem, NULL), PL_OK);
    assert_int_equal(nn_train_state_bases(&b->s, (nn_optimiser_kind)b->conf.optimiser, b->mem, NULL), PL_OK);
    for (int k = 0; k < FEATURES; k++)
        b->s.params[k] = 0.1f * (float)k;
    if (b->s.ema != NULL)
        memcpy(b->s.ema, b->s.params, FEATURES * sizeof(float));
}

static int bench_open(void **state)
{
    bench *b = calloc(1, sizeof *b);

    if (b == NULL || (b->mem = pl_arena_new(0)) == NULL)
        return 1;
    data_make(&b->train);
    b->valid = b->train;
    b->valid.first = TRAIN;
    b->train_s = (nn_samples){ &b->train, TRAIN, b->train.edges, b->train.target, data_batch, 1, NULL, NULL };
    b->valid_s = (nn_samples){ &b->valid, VALID, b->valid.edges + TRAIN, b->valid.target + TRAIN, data_batch, 1, NULL, NULL };
    b->conf = (nn_train_conf){ .epochs = EPOCHS,
                               .molecules = 7,
                               .max_edges = 30,
                               .lr = 0.05,
                               .min_lr = 0.005,
                               .warmup = 0.5,
                               .beta1 = 0.9,
                               .beta2 = 0.999,
                               .eps = 1e-8,
                               .weight_decay = 0.01,
                               .grad_clip = 0.7,
                               .ema = 0.9,
                               .schedule = NN_LR_COSINE_STEP,
                               .loss = NN_LOSS_L2,
                               .seed = 42 };
    b->host = (nn_train_host){ .ctx = b, .stop = host_stop, .save = host_save, .epoch = host_epoch, .step = host_step };
    b->stop_after = -1;
    b->engine.poison_at = -1;
    strcpy(b->dir, "/tmp/molsieve-train-XXXXXX");
    if (mkdtemp(b->dir) == NULL)
        return 1;
    state_make(b);
    *state = b;
    return 0;
}

static void remove_in(const char *dir, const char *name)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    (void)unlink(path);
}

static int bench_close(void **state)
{
    bench *b = *state;

    remove_in(b->dir, "latest.ckpt");
    remove_in(b->dir, "previous.ckpt");
    (void)rmdir(b->dir);
    pl_arena_free(b->mem);
    free(b);
    return 0;
}

static pl_code train(bench *b, pl_error *err)
{
    return nn_train(&b->s, &b->conf, &line, &b->engine, &b->train_s, &b->valid_s, &b->host, err);
}

static void the_law_is_learned(void **state)
{
    bench *b = *state;

    b->conf.weight_decay = b->conf.ema = 0;
    b->conf.lr = 0.3;
    state_make(b);
    assert_int_equal(train(b, NULL), PL_OK);
    assert_true(b->s.done && b->n_reports == EPOCHS);
    assert_true(b->report[EPOCHS - 1].valid.abs < 0.3 * b->report[0].valid.abs);
    assert_true(b->train.largest <= 7 && b->train.max_edges <= 30 && b->train.max_edges > 20);
}

/* Behind `best` there is padding, which no assignment has to copy. */
static void same_reports(const nn_epoch_report *a, const nn_epoch_report *b, int n)
{
    for (int i = 0; i < n; i++) {
        assert_memory_equal(&a[i], &b[i], offsetof(nn_epoch_report, best));
        assert_int_equal(a[i].best, b[i].best);
    }
}

static void same_bits(const nn_train_state *a, const nn_train_state *b)
{
    assert_memory_equal(a->params, b->params, FEATURES * sizeof(float));
    assert_memory_equal(a->m, b->m, FEATURES * sizeof(float));
    assert_memory_equal(a->v, b->v, FEATURES * sizeof(float));
    assert_memory_equal(a->ema, b->ema, FEATURES * sizeof(float));
    assert_memory_equal(a->best, b->best, FEATURES * sizeof(float));
    assert_int_equal(a->n_bases, b->n_bases);
    if (a->n_bases)
        assert_memory_equal(a->bases, b->bases, a->n_bases * sizeof(float));
    assert_memory_equal(&a->best_error, &b->best_error, sizeof(double));
    assert_int_equal(a->step, b->step);
    assert_int_equal(a->best_epoch, b->best_epoch);
    assert_int_equal(a->bad_total, b->bad_total);
    assert_true(a->scale.by == b->scale.by && a->scale.good == b->scale.good);
}

/* Stops at every poll in turn, also inside a validation. */
static void stopped_anywhere_it_ends_with_the_same_bits(void **state)
{
    bench *b = *state;
    nn_train_state whole;
    nn_epoch_report reports[EPOCHS];
    bool stopped = true;
    int in_epoch = 0;

    assert_int_equal(train(b, NULL), PL_OK);
    whole = b->s;
    memcpy(reports, b->report, sizeof reports);
    for (int64_t at = 0; stopped; at++) {
        nn_checkpoint_from from;
        pl_error why = { 0 }, err = { 0 };
        pl_code code;

        state_make(b);
        memset(&b->engine.w, 0, sizeof b->engine.w);
        memset(b->report, 0, sizeof b->report);
        b->saved = false;
        b->stop_after = at;
        b->polls = 0;
        code = train(b, &err);
        stopped = code == PL_ESTOP;
        assert_true(code == PL_OK || code == PL_ESTOP);
        if (stopped) {
            char said[64];
            state_make(b);
            assert_int_equal(nn_checkpoint_load(b->dir, "one", &b->s, &from, &why, &err), PL_OK);
            assert_int_equal(from, NN_FROM_LATEST);
            (void)snprintf(said, sizeof said, "stopped in epoch %d", (int)b->s.epoch + 1);
            assert_true(strcmp(err.text, said) == 0 || strcmp(err.text, "stopped while predicting") == 0);
            in_epoch += strcmp(err.text, said) == 0;
            b->stop_after = -1;
            assert_int_equal(train(b, &err), PL_OK);
        }
        same_bits(&b->s, &whole);
        same_reports(&b->report[EPOCHS - 1], &reports[EPOCHS - 1], 1);
    }
    assert_true(in_epoch > EPOCHS);
}

/* So many seconds that 4 epochs fit, of steps that take one each. */
static void budget_set(bench *b)
{
    b->conf.budget = 4.5 * (double)b->report[0].step;
    b->host.clock = host_clock;
    b->host.planned = host_planned;
    b->pace = 1;
    b->n_planned = 0;
}

/* Stopped at every poll in turn; the machine is ten times as slow afterwards. */
static void a_budget_is_decided_once_and_survives_stops(void **state)
{
    bench *b = *state;
    nn_train_state whole;
    bool stopped = true;

    assert_int_equal(train(b, NULL), PL_OK);
    budget_set(b);
    state_make(b);
    assert_int_equal(train(b, NULL), PL_OK);
    assert_true(b->s.done && b->n_planned == 1);
    assert_int_equal(b->planned, 4);
    assert_int_equal(b->s.epoch, 4);
    whole = b->s;
    for (int64_t at = b->report[0].step + 2; stopped; at++) { /* in later epochs */
        nn_checkpoint_from from;
        pl_error why = { 0 };

        state_make(b);
        b->saved = false;
        b->stop_after = at;
        b->polls = 0;
        budget_set(b);
        stopped = train(b, NULL) == PL_ESTOP;
        if (stopped) {
            state_make(b);
            assert_int_equal(nn_checkpoint_load(b->dir, "one", &b->s, &from, &why, NULL), PL_OK);
            b->stop_after = -1;
            b->pace = b->s.planned ? 10 : 1;
            assert_int_equal(train(b, NULL), PL_OK);
        }
        assert_int_equal(b->s.planned, 4);
        same_bits(&b->s, &whole);
    }
}

/* What earlier processes used of it counts: nothing is left after the first epoch. */
static void seconds_before_a_kill_count(void **state)
{
    bench *b = *state;

    assert_int_equal(train(b, NULL), PL_OK);
    budget_set(b);
    state_make(b);
    b->s.seconds = b->conf.budget;
    assert_int_equal(train(b, NULL), PL_OK);
    assert_int_equal(b->s.epoch, 1);
    assert_true(b->s.done && b->s.planned == 1 && b->s.seconds > b->conf.budget);
}

/* If some ends of epochs are not saved, a killed training continues from an earlier one. */
static void a_kill_epochs_after_a_checkpoint_changes_no_bit(void **state)
{
    bench *b = *state;
    nn_checkpoint_from from;
    pl_error why = { 0 };
    nn_train_state whole;
    nn_epoch_report reports[EPOCHS];

    assert_int_equal(train(b, NULL), PL_OK);
    assert_int_equal(b->n_saves, EPOCHS);
    whole = b->s;
    memcpy(reports, b->report, sizeof reports);
    state_make(b);
    memset(b->report, 0, sizeof b->report);
    b->host.due = host_due;
    b->due_at = 2;
    b->killed_at = 5;
    b->n_saves = 0;
    assert_int_equal(train(b, NULL), PL_EIO);
    assert_int_equal(b->n_saves, 1);
    state_make(b);
    assert_int_equal(nn_checkpoint_load(b->dir, "one", &b->s, &from, &why, NULL), PL_OK);
    assert_int_equal(b->s.epoch, 2);
    b->killed_at = 0;
    assert_int_equal(train(b, NULL), PL_OK);
    assert_int_equal(b->n_saves, 2); /* and the last */
    same_bits(&b->s, &whole);
    same_reports(b->report, reports, EPOCHS);
}

static void stopped_anywhere_with_lamb_too(void **state)
{
    bench *b = *state;

    b->conf.optimiser = NN_LAMB;
    stopped_anywhere_it_ends_with_the_same_bits(state);
}

/* Its bases are in the checkpoints, and change every ten steps. */
static void stopped_anywhere_with_soap_too(void **state)
{
    bench *b = *state;

    b->conf.optimiser = NN_SOAP;
    state_make(b);
    assert_true(b->s.n_bases > 0);
    stopped_anywhere_it_ends_with_the_same_bits(state);
}

/* Makes the scale go up and down. */
static void scale_up(bench *b)
{
    b->conf.scale_after = 3;
    b->engine.max = 2000;
}

static void stopped_anywhere_while_the_loss_is_scaled_too(void **state)
{
    bench *b = *state;

    scale_up(b);
    stopped_anywhere_it_ends_with_the_same_bits(state);
    assert_true(b->s.bad_total > 8 && b->s.step > 20);
}

/* The scale goes down from the first one until it fits, then up and down again. */
static void what_overflows_is_skipped_and_halves_the_scale(void **state)
{
    bench *b = *state;
    int up = 0, down = 0;
    double last = NN_LOSS_SCALE_FIRST;

    scale_up(b);
    assert_int_equal(train(b, NULL), PL_OK);
    assert_true(b->scales[0] == NN_LOSS_SCALE_FIRST / 2 && b->scales[1] == NN_LOSS_SCALE_FIRST / 4);
    for (int i = 0; i < b->n_scales; last = b->scales[i++]) {
        assert_true(b->scales[i] == last || b->scales[i] == 2 * last || 2 * b->scales[i] == last);
        up += b->scales[i] > last;
        down += b->scales[i] < last;
    }
    assert_true(up > 2 && down > 5);
    assert_int_equal(b->s.bad_total, down);
    assert_int_equal(b->s.step + down, b->n_scales);
    assert_int_equal(b->s.bad_run, 0);
}

/* Clipping, norms and moments are those of the gradient without it. */
static void a_scaled_loss_gives_the_same_bits(void **state)
{
    bench *b = *state;

    for (int i = 0; i < 4; i++) {
        nn_train_state whole;
        b->conf.optimiser = i % 2 ? NN_LAMB : NN_ADAMW;
        b->conf.shards = i < 2 ? 1 : 3;
        b->conf.scale_after = 0;
        state_make(b);
        assert_int_equal(train(b, NULL), PL_OK);
        whole = b->s;
        assert_true(whole.scale.by == 1);
        b->conf.scale_after = 5;
        state_make(b);
        assert_int_equal(train(b, NULL), PL_OK);
        assert_true(b->s.scale.by > NN_LOSS_SCALE_FIRST);
        whole.scale = b->s.scale;
        same_bits(&b->s, &whole);
    }
}

/* At scales 8, 4 and 2 overflows only halve the scale; at 1 they count as failures. */
static void at_scale_1_ten_in_a_row_end_it(void **state)
{
    bench *b = *state;
    pl_error err = { 0 };

    b->conf.scale_after = 100;
    b->s.scale.by = 8;
    b->engine.poison_at = 0;
    b->engine.poison_n = 1000;
    assert_int_equal(train(b, &err), PL_ELIMIT);
    assert_non_null(strstr(err.text, "10 steps in a row"));
    assert_int_equal(b->s.bad_total, 13);
    assert_int_equal(b->s.bad_run, 10);
    assert_true(b->s.scale.by == 1 && b->s.step == 0);
}

static void a_finished_training_loaded_again_does_nothing(void **state)
{
    bench *b = *state;
    nn_checkpoint_from from;
    pl_error why;
    int64_t steps;

    assert_int_equal(train(b, NULL), PL_OK);
    steps = b->s.step;
    state_make(b);
    assert_int_equal(nn_checkpoint_load(b->dir, "one", &b->s, &from, &why, NULL), PL_OK);
    assert_int_equal(train(b, NULL), PL_OK);
    assert_int_equal(b->s.step, steps);
}

static void an_infinite_step_is_skipped_and_ten_in_a_row_end_it(void **state)
{
    bench *b = *state;
    pl_error err = { 0 };

    b->engine.poison_at = 5;
    b->engine.poison_n = 3;
    assert_int_equal(train(b, &err), PL_OK);
    assert_int_equal(b->s.bad_total, 3);
    for (int k = 0; k < FEATURES; k++)
        assert_true(isfinite(b->s.params[k]));
    state_make(b);
    b->engine.poison_at = b->engine.calls + 2;
    b->engine.poison_n = 1000;
    assert_int_equal(train(b, &err), PL_ELIMIT);
    assert_non_null(strstr(err.text, "10 steps in a row"));
}

static void it_stops_when_patience_is_spent(void **state)
{
    bench *b = *state;

    b->conf.lr = b->conf.min_lr = 0;
    b->conf.weight_decay = 0;
    b->conf.patience = 2;
    assert_int_equal(train(b, NULL), PL_OK);
    assert_int_equal(b->s.best_epoch, 0);
    assert_int_equal(b->s.epoch, 3);
}

/* Clipped by hand: one step from zero moments moves by lr * g/(|g| + eps') whatever
 * the clip, so the second moment shows it. */
static void the_gradient_is_clipped_by_its_global_norm(void **state)
{
    bench *b = *state;
    double square = 0;

    b->conf.grad_clip = 0.01;
    b->stop_after = 1;
    assert_int_equal(train(b, NULL), PL_ESTOP);
    assert_int_equal(b->s.step, 1);
    for (int k = 0; k < FEATURES; k++)
        square += (double)b->s.v[k] / (1 - 0.999);
    assert_true(fabs(sqrt(square) - 0.01) <= 1e-5);
}

static void an_epoch_is_a_permutation_of_its_own(void **state)
{
    int64_t a[100], c[100], seen[100] = { 0 };
    int same = 0;

    (void)state;
    nn_train_order(a, 100, 7, 0);
    nn_train_order(c, 100, 7, 1);
    for (int i = 0; i < 100; i++) {
        assert_true(a[i] >= 0 && a[i] < 100 && !seen[a[i]]++);
        same += a[i] == c[i];
    }
    assert_true(same < 20);
}

static void batches_keep_both_budgets(void **state)
{
    const int32_t edges[] = { 5, 50, 5, 5, 5 };
    const int64_t which[] = { 1, 0, 2, 3, 4 };
    const nn_samples s = { .n = 5, .edges = edges };

    (void)state;
    assert_int_equal(nn_samples_take(&s, which, 5, 10, 20), 1); /* too large alone: alone */
    assert_int_equal(nn_samples_take(&s, which + 1, 4, 10, 10), 2);
    assert_int_equal(nn_samples_take(&s, which + 1, 4, 3, 100), 3);
    assert_int_equal(nn_samples_take(&s, which + 1, 4, 0, 0), 4);
}

static void rates_follow_the_cosine(void **state)
{
    nn_train_conf c = { .epochs = 10, .lr = 1, .min_lr = 0.1, .schedule = NN_LR_COSINE_EPOCH };

    (void)state;
    assert_true(fabs(nn_train_lr(&c, 10, 0) - 1) < 1e-15);
    assert_true(fabs(nn_train_lr(&c, 10, 5.9) - 0.55) < 1e-15);
    c.schedule = NN_LR_COSINE_STEP;
    assert_true(fabs(nn_train_lr(&c, 10, 10) - 0.1) < 1e-15);
    c.warmup = 2;
    assert_true(nn_train_lr(&c, 10, 0) == 0 && nn_train_lr(&c, 10, 1) < 0.5);
    c.schedule = NN_LR_CONSTANT;
    assert_true(nn_train_lr(&c, 10, 7) == 1);
}

/* The loop against the same steps written out: one batch per epoch, no clipping, no EMA. */
static void full_batches_are_adamw_on_the_mean_gradient(void **state)
{
    bench *b = *state;
    float p[FEATURES], m[FEATURES] = { 0 }, v[FEATURES] = { 0 };
    const nn_adamw_conf adam = { 0.9, 0.999, 1e-8, 0.01 };

    b->conf = (nn_train_conf){ .epochs = 3,
                               .lr = 0.1,
                               .min_lr = 0.1,
                               .beta1 = 0.9,
                               .beta2 = 0.999,
                               .eps = 1e-8,
                               .weight_decay = 0.01,
                               .schedule = NN_LR_CONSTANT,
                               .loss = NN_LOSS_L1,
                               .seed = 9 };
    state_make(b);
    memcpy(p, b->s.params, sizeof p);
    b->valid_s.n = 0;
    assert_int_equal(train(b, NULL), PL_OK);
    for (int step = 1; step <= 3; step++) {
        float g[FEATURES] = { 0 };
        for (int i = 0; i < TRAIN; i++) {
            float y = 0;
            for (int k = 0; k < FEATURES; k++)
                y += p[k] * b->train.node[i][k];
            for (int k = 0; k < FEATURES; k++)
                g[k] += (float)((y > b->train.target[i]) - (y < b->train.target[i])) / TRAIN * b->train.node[i][k];
        }
        nn_adamw_step(p, m, v, g, FEATURES, &adam, step, 0.1f);
    }
    for (int k = 0; k < FEATURES; k++)
        if (!(fabs((double)(p[k] - b->s.best[k])) <= 1e-5))
            fail_msg("weight %d: %.9g, by hand %.9g", k, (double)b->s.best[k], (double)p[k]);
}

#define WITH_BENCH(f) cmocka_unit_test_setup_teardown(f, bench_open, bench_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_BENCH(the_law_is_learned),
        WITH_BENCH(stopped_anywhere_it_ends_with_the_same_bits),
        WITH_BENCH(a_budget_is_decided_once_and_survives_stops),
        WITH_BENCH(seconds_before_a_kill_count),
        WITH_BENCH(a_kill_epochs_after_a_checkpoint_changes_no_bit),
        WITH_BENCH(stopped_anywhere_with_lamb_too),
        WITH_BENCH(stopped_anywhere_with_soap_too),
        WITH_BENCH(stopped_anywhere_while_the_loss_is_scaled_too),
        WITH_BENCH(what_overflows_is_skipped_and_halves_the_scale),
        WITH_BENCH(a_scaled_loss_gives_the_same_bits),
        WITH_BENCH(at_scale_1_ten_in_a_row_end_it),
        WITH_BENCH(a_finished_training_loaded_again_does_nothing),
        WITH_BENCH(an_infinite_step_is_skipped_and_ten_in_a_row_end_it),
        WITH_BENCH(it_stops_when_patience_is_spent),
        WITH_BENCH(the_gradient_is_clipped_by_its_global_norm),
        WITH_BENCH(full_batches_are_adamw_on_the_mean_gradient),
        cmocka_unit_test(an_epoch_is_a_permutation_of_its_own),
        cmocka_unit_test(batches_keep_both_budgets),
        cmocka_unit_test(rates_follow_the_cosine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
