/* SPDX-License-Identifier: Apache-2.0 */
/* Epochs of the training loop: clipped gradients, order, learning rate, which epoch is the best, also without numbers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/toy_training.h"

/* ---- the norm of a gradient ---- */

static int64_t wide; /* numbers of the gradient: number k is 1 + k % 7 times the first */

static pl_code backward_wide(nn_engine *e, const nn_batch *in, const float *dy, float *grad, pl_error *err)
{
    for (int32_t g = 0; g < in->n_graphs; g++)
        for (int64_t k = 0; k < wide; k++)
            grad[k] += dy[g] * in->node[g] * (float)(1 + k % 7);
    return count(&e->calls, "call", err);
}

/* After one step the first moments are 1 - beta1 of the clipped gradient, whose norm is grad_clip. */
static void a_clipped_gradient_has_the_norm_that_was_asked_for(void **state)
{
    static const int64_t sizes[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 4095, 4096, 4097, 8194, 65535, 65536, 65539, 131077 };
    const nn_engine_kind kind = { .name = "wide", .set_params = set_params, .forward = forward, .backward = backward_wide };

    (void)state;
    b.conf.epochs = 1;
    b.conf.molecules = TRAIN;
    b.conf.grad_clip = 1e-4;
    b.conf.ema = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const nn_se3 plan = { .n_floats = (size_t)sizes[i], .conf.outputs = 1, .head = { -1, -1, -1, -1 } };
        double squares = 0;
        begin();
        wide = sizes[i];
        assert_int_equal(nn_train_state_alloc(&b.s, &plan, false, 1, b.mem, NULL), PL_OK);
        b.s.params[0] = 0.25f;
        assert_int_equal(train_on(&kind, TRAIN, NULL), PL_OK);
        assert_int_equal(b.s.step, 1);
        for (int64_t k = 0; k < wide; k++)
            squares += (double)b.s.m[k] * (double)b.s.m[k];
        if (!(fabs(sqrt(squares) / (0.1 * 1e-4) - 1) < 1e-5))
            fail_msg("%lld numbers: %g", (long long)wide, sqrt(squares));
        for (int64_t k = 0; k < wide; k++)
            assert_true(fabs((double)b.s.m[k] / (double)b.s.m[0] / (double)(1 + k % 7) - 1) < 1e-5);
    }
}

/* The first number of the gradient is 1, the others are of this size. */
static float far_below;

static pl_code backward_far(nn_engine *e, const nn_batch *in, const float *dy, float *grad, pl_error *err)
{
    (void)in, (void)dy;
    for (int64_t k = 0; k < wide; k++)
        grad[k] = k == 0 ? 1.0f : far_below;
    return count(&e->calls, "call", err);
}

/* Of a whole group of four each number has a sum of its own; numbers after the last group are added to the first sum. The limit lies
 * between two floats, so the last bit of the norm decides by which of them the gradient is multiplied. */
static void the_squares_of_a_gradient_are_added_in_a_fixed_order(void **state)
{
    static const struct {
        int64_t n;
        float far_below, clip;
    } cases[] = { { 8, 0x1.1p-27f, 0x1.fffffep-1f }, { 11, 0x1.f6p-28f, 1 } }; /* norms 1 + 2^-52 and 1 */
    const nn_engine_kind kind = { .name = "far", .set_params = set_params, .forward = forward, .backward = backward_far };

    (void)state;
    b.conf.epochs = 1;
    b.conf.molecules = TRAIN;
    b.conf.grad_clip = 1 - 0x1p-25;
    b.conf.beta1 = 0;
    b.conf.ema = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const nn_se3 plan = { .n_floats = (size_t)cases[i].n, .conf.outputs = 1, .head = { -1, -1, -1, -1 } };
        begin();
        wide = cases[i].n;
        far_below = cases[i].far_below;
        assert_int_equal(nn_train_state_alloc(&b.s, &plan, false, 1, b.mem, NULL), PL_OK);
        b.s.params[0] = 0.25f;
        assert_int_equal(train_on(&kind, TRAIN, NULL), PL_OK);
        assert_int_equal(b.s.step, 1);
        assert_true(b.s.m[0] == cases[i].clip);
    }
}

/* ---- order and learning rate ---- */

static void each_order_of_molecules_is_as_likely(void **state)
{
    enum { N = 5, EPOCHS_OF_ALL = 2000 };
    int count[N][N] = { { 0 } };

    (void)state;
    for (int64_t e = 0; e < EPOCHS_OF_ALL; e++) {
        int64_t order[N + 1], again[N], sum = 0;
        order[N] = 77;
        nn_train_order(order, N, 3, e);
        nn_train_order(again, N, 3, e);
        assert_memory_equal(order, again, sizeof again);
        for (int i = 0; i < N; i++) {
            count[i][order[i]]++;
            sum += 1 << order[i];
        }
        assert_true(sum == (1 << N) - 1 && order[N] == 77);
    }
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++)
            assert_in_range(count[i][k], 320, 480); /* 400, 4.5 standard deviations */
}

/* By cos^2 of the half angle. */
static double rate_at(const nn_train_conf *c, int64_t epochs, double at)
{
    const double part = c->schedule == NN_LR_COSINE_EPOCH ? floor(at) : at;
    const double half = c->budget > 0 && at < 1 ? 1 : cos(acos(-1) * part / (2 * (double)epochs));
    const double full = c->schedule == NN_LR_CONSTANT ? c->lr : c->min_lr + (c->lr - c->min_lr) * half * half;

    return at < c->warmup ? full * at / c->warmup : full;
}

static void the_learning_rate_is_that_of_its_schedule(void **state)
{
    static const double warmup[] = { 0, 0.5, 1.5 };

    (void)state;
    for (int k = 0; k < 3 * 2 * 3 * 2; k++) {
        const nn_train_conf c = {
            .lr = 0.75, .min_lr = 0.25, .schedule = (nn_schedule)(k % 3), .budget = k / 3 % 2, .warmup = warmup[k / 6 % 3]
        };
        const int64_t epochs = k / 18 ? 8 : 1;
        for (double at = 0; at < (double)epochs; at += 0.125)
            assert_true(fabs(nn_train_lr(&c, epochs, at) - rate_at(&c, epochs, at)) < 1e-15);
        assert_true(nn_train_lr(&c, 0, 2) == 0.75); /* without a number of epochs */
    }
}

/* ---- the best epoch ---- */

static void without_finite_validations_there_is_no_model(void **state)
{
    static const float odd[] = { INFINITY, NAN };
    pl_error err = { 0 };

    (void)state;
    for (int i = 0; i < 2; i++) {
        b.x[TRAIN] = odd[i];
        b.conf.epochs = 6;
        b.conf.patience = 0;
        begin();
        refused(train(&err), PL_ELIMIT, &err, "no epoch gave finite predictions for the validation molecules: try a smaller lr");
        assert_true(b.n_reports == 6 && b.s.best_epoch == -1);
        b.conf.patience = 4;
        begin();
        refused(train(&err), PL_ELIMIT, &err, "no epoch gave finite predictions");
        assert_int_equal(b.n_reports, 4);
    }
}

static void the_first_finite_validation_is_the_best_so_far(void **state)
{
    (void)state;
    b.x[TRAIN] = NAN;
    b.repair_at = 2;
    b.conf.epochs = 4;
    b.conf.lr = b.conf.min_lr = 0; /* all finite ones are equal */
    assert_int_equal(train(NULL), PL_OK);
    assert_int_equal(b.s.best_epoch, 2);
    for (int i = 0; i < 4; i++)
        assert_int_equal(b.report[i].best, i == 2);
    begin(); /* repaired by now */
    assert_int_equal(train(NULL), PL_OK);
    for (int i = 0; i < 4; i++)
        assert_int_equal(b.report[i].best, i == 0);
}

static void a_stop_names_its_epoch(void **state)
{
    const char *want[] = { "stopped in epoch 1", "stopped in epoch 2", "stopped in epoch 3" };
    int next = 0;

    (void)state;
    b.conf.epochs = 3;
    for (int64_t after = 0; next < 3 && after < 40; after++) {
        pl_error err = { 0 };
        b.stop_after = after;
        b.n_polls = 0;
        begin();
        if (train(&err) == PL_OK)
            break;
        if (next + 1 < 3 && strcmp(err.text, want[next + 1]) == 0)
            next++;
        else if (strcmp(err.text, "stopped while predicting") != 0)
            assert_string_equal(err.text, want[next]);
        assert_int_equal(b.s.epoch, next);
    }
    assert_int_equal(next, 2);
}

/* Epoch of the smallest sum, the first of equal ones. */
static int smallest(bool loss)
{
    int best = 0;

    for (int i = 1; i < b.n_reports; i++) {
        const nn_loss_sum *now = &b.report[i].valid, *then = &b.report[best].valid;
        if (loss ? now->loss < then->loss : now->abs < then->abs)
            best = i;
    }
    return best;
}

/* Values by the mean absolute error, classes by the log loss. */
static void the_best_epoch_is_that_of_the_smallest_error(void **state)
{
    bool differ = false;

    (void)state;
    b.conf.epochs = 12;
    b.conf.lr = b.conf.min_lr = 0.9;
    for (int classes = 0; classes < 2; classes++)
        for (b.conf.seed = 1; b.conf.seed <= 30; b.conf.seed++) {
            for (int i = 0; classes && i < ALL; i++)
                b.target[i] = (i * 7) % 5 < 2 ? -1.0f : 1.0f;
            b.conf.loss = classes ? NN_LOSS_BCE : NN_LOSS_L2;
            begin();
            assert_int_equal(train(NULL), PL_OK);
            assert_int_equal(b.n_reports, 12);
            assert_int_equal(b.s.best_epoch, smallest(classes));
            const nn_loss_sum *best = &b.report[b.s.best_epoch].valid;
            assert_true(b.s.best_error == (classes ? best->loss : best->abs) / (double)best->n);
            differ = differ || (classes && smallest(false) != smallest(true));
        }
    assert_true(differ);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OF(without_finite_validations_there_is_no_model),       OF(the_first_finite_validation_is_the_best_so_far),
        OF(a_clipped_gradient_has_the_norm_that_was_asked_for), OF(each_order_of_molecules_is_as_likely),
        OF(the_learning_rate_is_that_of_its_schedule),          OF(a_stop_names_its_epoch),
        OF(the_best_epoch_is_that_of_the_smallest_error),       OF(the_squares_of_a_gradient_are_added_in_a_fixed_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
