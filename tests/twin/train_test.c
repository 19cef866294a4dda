/* SPDX-License-Identifier: Apache-2.0 */
/* The training loop and its checkpoints, with a network that is small enough to do by hand. What an engine computes is tested
 * elsewhere; here it only has to have parameters and a gradient. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "models/optim/adam.h"
#include "models/training/predict.h"
#include "tests/twin/line_training.h"

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
