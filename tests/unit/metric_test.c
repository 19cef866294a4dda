/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "models/loss.h"
#include "models/metric.h"
#include "pipeline/base/rng.h"

static void close_to(double got, double want, double tol)
{
    if (!(fabs(got - want) <= tol))
        fail_msg("got %.17g, want %.17g", got, want);
}

static int arena_open(void **state)
{
    *state = pl_arena_new(0);
    return *state ? 0 : 1;
}

static int arena_close(void **state)
{
    pl_arena_free(*state);
    return 0;
}

/* By hand: errors 0.5, -0.5, 0, 1; y has mean 2.5 and sum of squares 5. */
static void errors_of_four_numbers_are_as_by_hand(void **state)
{
    const double y[] = { 1, 2, 3, 4 }, p[] = { 1.5, 1.5, 3, 5 };
    nn_fit f;

    assert_int_equal(nn_metric_fit(&f, y, p, 4, *state, NULL), PL_OK);
    close_to(f.mae, 0.5, 1e-15);
    close_to(f.rmse, sqrt(1.5 / 4), 1e-15);
    close_to(f.r2, 1 - 1.5 / 5, 1e-15);
    /* ranks of p: 0.5 0.5 2 3; of y: 0 1 2 3 */
    close_to(f.spearman, 4.5 / sqrt(5.0 * 4.5), 1e-14);
}

/* Of 9 errors the interval is the largest, of 19 the second largest, of 99 the tenth largest; of 8 there is none. */
static void nine_of_ten_further_ones_are_in_the_interval(void **state)
{
    static const struct { int n; double want; } cases[] = { { 9, 9 }, { 10, 10 }, { 19, 18 }, { 20, 19 }, { 99, 90 }, { 100, 91 } };
    double y[100] = { 0 }, p[100];
    int64_t held = 0, all = 0;
    nn_fit f;

    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        for (int i = 0; i < cases[c].n; i++)
            p[i] = (i % 2 ? 1 : -1) * (double)(cases[c].n - i);
        assert_int_equal(nn_metric_fit(&f, y, p, cases[c].n, *state, NULL), PL_OK);
        close_to(f.interval90, cases[c].want, 1e-15);
    }
    assert_int_equal(nn_metric_fit(&f, y, p, 8, *state, NULL), PL_OK);
    assert_true(isnan(f.interval90));
    for (int t = 0; t < 2000; t++) { /* what it promises, of 30 known errors */
        pl_rng r = pl_rng_at(7, (uint64_t)t, 0);
        for (int i = 0; i < 30; i++)
            p[i] = pl_rng_normal(&r);
        assert_int_equal(nn_metric_fit(&f, y, p, 30, *state, NULL), PL_OK);
        for (int i = 0; i < 20; i++, all++)
            held += fabs(pl_rng_normal(&r)) <= f.interval90;
    }
    close_to((double)held / (double)all, 28.0 / 31, 0.01);
}

static void a_constant_has_no_correlation(void **state)
{
    const double y[] = { 1, 1, 1 }, p[] = { 1, 2, 3 };
    nn_fit f;

    assert_int_equal(nn_metric_fit(&f, y, p, 3, *state, NULL), PL_OK);
    assert_true(isnan(f.r2) && isnan(f.spearman));
    close_to(f.mae, 1.0, 1e-15);
    assert_int_equal(nn_metric_fit(&f, y, p, 0, *state, NULL), PL_OK);
    assert_true(isnan(f.mae) && f.n == 0);
}

static void any_increasing_function_has_spearman_one(void **state)
{
    double y[50], p[50];
    nn_fit f;

    for (int i = 0; i < 50; i++) {
        y[i] = i * 7 % 50;
        p[i] = exp(y[i] * 0.1) - 40;
    }
    assert_int_equal(nn_metric_fit(&f, y, p, 50, *state, NULL), PL_OK);
    close_to(f.spearman, 1.0, 1e-14);
}

static void a_linear_law_is_found_back(void **state)
{
    const double want[4] = { 3.0, -2.0, 0.5, 100.0 };
    double x[60][3], y[60], coef[4];
    pl_rng r = pl_rng_at(5, 0, 0);

    for (int i = 0; i < 60; i++) {
        for (int k = 0; k < 3; k++)
            x[i][k] = pl_rng_normal(&r) * (k == 1 ? 1000 : 1);
        y[i] = nn_metric_apply(want, x[i], 3);
    }
    assert_int_equal(nn_metric_linear(coef, x[0], y, 60, 3, *state, NULL), PL_OK);
    for (int k = 0; k < 4; k++)
        close_to(coef[k], want[k], 1e-9);
}

/* An element that never occurs, one that always occurs once, and a column that
 * is the sum of two others. */
static void constant_and_dependent_columns_get_nothing(void **state)
{
    double x[40][5], y[40], coef[6];
    pl_rng r = pl_rng_at(6, 0, 0);

    for (int i = 0; i < 40; i++) {
        x[i][0] = 0;
        x[i][1] = (double)pl_rng_below(&r, 9);
        x[i][2] = (double)pl_rng_below(&r, 9);
        x[i][3] = x[i][1] + x[i][2];
        x[i][4] = 1;
        y[i] = 2 + 3 * x[i][1] - x[i][2];
    }
    assert_int_equal(nn_metric_linear(coef, x[0], y, 40, 5, *state, NULL), PL_OK);
    assert_true(coef[1] == 0 && coef[4] == 0 && coef[5] == 0);
    close_to(coef[0], 2, 1e-9);
    close_to(coef[2], 3, 1e-10);
    close_to(coef[3], -1, 1e-10);
}

static void moments_are_those_of_the_population(void **state)
{
    const double y[] = { 1, 3 };
    double mean, stdev;

    (void)state;
    nn_metric_moments(y, 2, &mean, &stdev);
    close_to(mean, 2, 0);
    close_to(stdev, 1, 0);
}

static void losses_and_gradients_are_as_by_hand(void **state)
{
    const float y[] = { 1, 2, 3, 5 }, t[] = { 0, 2, 4, NAN };
    float dy[4];
    nn_loss_sum s = nn_loss_backward(NN_LOSS_L1, y, t, 4, nn_loss_measured(t, 4), dy);

    (void)state;
    assert_int_equal(s.n, 3);
    close_to(s.loss, 2, 0);
    close_to(dy[0], 1.0f / 3, 1e-7);
    close_to(dy[1], 0, 0);
    close_to(dy[2], -1.0f / 3, 1e-7);
    close_to(dy[3], 0, 0);
    s = nn_loss_backward(NN_LOSS_L2, y, t, 4, nn_loss_measured(t, 4), dy);
    close_to(s.loss, 2, 0);
    close_to(dy[2], -2.0f / 3, 1e-7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(errors_of_four_numbers_are_as_by_hand, arena_open, arena_close),
        cmocka_unit_test_setup_teardown(a_constant_has_no_correlation, arena_open, arena_close),
        cmocka_unit_test_setup_teardown(nine_of_ten_further_ones_are_in_the_interval, arena_open, arena_close),
        cmocka_unit_test_setup_teardown(any_increasing_function_has_spearman_one, arena_open, arena_close),
        cmocka_unit_test_setup_teardown(a_linear_law_is_found_back, arena_open, arena_close),
        cmocka_unit_test_setup_teardown(constant_and_dependent_columns_get_nothing, arena_open, arena_close),
        cmocka_unit_test(moments_are_those_of_the_population),
        cmocka_unit_test(losses_and_gradients_are_as_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
