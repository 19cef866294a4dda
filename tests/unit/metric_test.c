/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "models/metrics/metric.h"
#include "models/optim/loss.h"
#include "pipeline/base/rng.h"
#include "tests/unit/arena_state.h"
#include "tests/unit/guarded.h"

/* ---- memory: linked with -Wl,--wrap=pl_arena_get ---- */

static bool guards; /* requests get memory with nothing behind it */
void *__real_pl_arena_get(pl_arena *mem, size_t n, size_t size);
void *__wrap_pl_arena_get(pl_arena *mem, size_t n, size_t size);

void *__wrap_pl_arena_get(pl_arena *mem, size_t n, size_t size)
{
    return guards ? guarded(n, size) : __real_pl_arena_get(mem, n, size);
}

static void close_to(double got, double want, double tol)
{
    if (!(fabs(got - want) <= tol))
        fail_msg("got %.17g, want %.17g", got, want);
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

/* The interval of 9 errors is the largest, of 19 the second largest, of 99 the tenth largest; 8 errors give none. */
static void nine_in_ten_further_values_are_in_the_interval(void **state)
{
    static const struct {
        int n;
        double want;
    } cases[] = { { 9, 9 }, { 10, 10 }, { 19, 18 }, { 20, 19 }, { 99, 90 }, { 100, 91 } };
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
    for (int t = 0; t < 2000; t++) { /* the coverage that it promises, with 30 known errors */
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

/* The mean of three times 0.1 is not 0.1: its rounding is no variance. */
static void a_constant_has_no_r2_whatever_its_value(void **state)
{
    static const double of[] = { 0.1, -2.3, 4.3, 1e-9, 1e9 + 0.1, -0.0 };
    double y[70], p[70], mean, stdev;
    nn_fit f;

    for (size_t c = 0; c < sizeof of / sizeof of[0]; c++)
        for (int n = 1; n <= 70; n++) {
            for (int i = 0; i < n; i++) {
                y[i] = of[c];
                p[i] = of[c] + i;
            }
            nn_metric_moments(y, n, &mean, &stdev);
            assert_true(mean == of[c] && stdev == 0);
            assert_int_equal(nn_metric_fit(&f, y, p, n, *state, NULL), PL_OK);
            assert_true(isnan(f.r2) && isnan(f.spearman));
        }
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

static void memory_is_used_to_its_end_and_no_further(void **state)
{
    enum { N = 33, K = 3 };
    double *x = guarded(N * K, sizeof *x), *coef = guarded(K + 1, sizeof *coef);
    double *y = guarded(N, sizeof *y), *p = guarded(N, sizeof *p);
    pl_rng r = pl_rng_at(7, 0, 0);
    nn_fit f;

    assert_true(x != NULL && y != NULL && p != NULL && coef != NULL);
    for (int i = 0; i < N * K; i++)
        x[i] = pl_rng_normal(&r);
    for (int i = 0; i < N; i++) {
        y[i] = i % 2;
        p[i] = pl_rng_real(&r);
    }
    guards = true;
    assert_int_equal(nn_metric_linear(coef, x, y, N, K, *state, NULL), PL_OK);
    assert_int_equal(nn_metric_fit(&f, y, p, N, *state, NULL), PL_OK);
    assert_int_equal(nn_metric_class(&f, y, p, N, true, *state, NULL), PL_OK);
    guards = false;
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
    const double y[] = { 1, 3 },
                 far[] = { 1e14, 1e14 + 0.0625, 1e14 + 0.125, 1e14 + 0.1875 }; /* not by squares of the numbers themselves */
    double mean, stdev;

    (void)state;
    nn_metric_moments(y, 2, &mean, &stdev);
    close_to(mean, 2, 0);
    close_to(stdev, 1, 0);
    nn_metric_moments(far, 4, &mean, &stdev);
    close_to(mean, 1e14 + 0.09375, 0);
    close_to(stdev, sqrt(5) / 32, 1e-15);
}

/* Two of four atoms of a batch: (1 + 0 + 4 + 0 + 0 + 9) and its slope / 12. */
static void the_loss_of_noise_is_as_by_hand(void **state)
{
    static const float v[2][3] = { { 1, 2, 3 }, { 0, 0, -1 } }, noise[2][3] = { { 0, 2, 1 }, { 0, 0, 2 } };
    static const double want[6] = { 1, 0, 2, 0, 0, -3 };
    float dv[2][3];
    nn_noise_sum s = nn_noise_backward(v, noise, 2, 4, 0.5, dv);
    (void)state;

    assert_int_equal(s.n, 6);
    close_to(s.square, 14, 0);
    for (int k = 0; k < 6; k++)
        close_to((double)dv[k / 3][k % 3], 0.5 * 2 * want[k] / 12, 1e-7);
}

static void losses_and_gradients_are_as_by_hand(void **state)
{
    const float y[] = { 1, 2, 3, 5 }, t[] = { 0, 2, 4, NAN };
    float dy[4];
    nn_loss_sum s = nn_loss_backward(NN_LOSS_L1, y, t, NULL, 4, nn_loss_measured(t, 4), dy);

    (void)state;
    assert_int_equal(s.n, 3);
    close_to(s.loss, 2, 0);
    close_to(dy[0], 1.0f / 3, 1e-7);
    close_to(dy[1], 0, 0);
    close_to(dy[2], -1.0f / 3, 1e-7);
    close_to(dy[3], 0, 0);
    s = nn_loss_backward(NN_LOSS_L2, y, t, NULL, 4, nn_loss_measured(t, 4), dy);
    close_to(s.loss, 2, 0);
    close_to(dy[2], -2.0f / 3, 1e-7);
}

/* At least 2, at most 2, between 1 and 3, and measured: 2. */
static void limits_cost_nothing_on_the_allowed_side(void **state)
{
    static const float low[] = { 2, -INFINITY, 1, 2 }, high[] = { INFINITY, 2, 3, 2 };
    static const double wrong[3][4] = { { -2, 0, -1, -2 }, { 0, 0, 0, 0 }, { 0, 2, 1, 2 } }; /* of y = 0, 2, 4 */
    (void)state;

    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 4; k++) {
            const float y = 2.0f * (float)i;
            const double e = wrong[i][k];
            float dy;
            nn_loss_sum s = nn_loss_backward(NN_LOSS_L1, &y, &low[k], &high[k], 1, 1, &dy);
            assert_true(s.n == 1 && s.loss == fabs(e) && s.abs == fabs(e) && dy == (e > 0) - (e < 0));
            s = nn_loss_backward(NN_LOSS_L2, &y, &low[k], &high[k], 1, 1, &dy);
            assert_true(s.loss == e * e && (double)dy == 2 * e);
        }
    for (int k = 0; k < 4; k++) { /* a network that has diverged is seen */
        const float y[] = { NAN, INFINITY, -INFINITY };
        for (int i = 0; i < 3; i++) {
            float dy;
            assert_false(isfinite(nn_loss_backward(NN_LOSS_L2, &y[i], &low[k], &high[k], 1, 1, &dy).loss));
        }
    }
}

/* Logits from -1e4 to 1e4: the sum is the formula's, the slope that of central differences. */
static void cross_entropy_is_right_for_any_logit(void **state)
{
    static const float logit[] = { 0, 0.5f, -0.5f, 3, -3, 20, -20, 100, -100, 1e4f, -1e4f };
    const float t[2] = { 0, 1 };
    (void)state;

    for (size_t i = 0; i < sizeof logit / sizeof logit[0]; i++)
        for (int k = 0; k < 2; k++) {
            float dy, below, above, none;
            nn_loss_sum s = nn_loss_backward(NN_LOSS_BCE, &logit[i], &t[k], NULL, 1, 1, &dy);
            double z = k ? -(double)logit[i] : (double)logit[i], p = 1 / (1 + exp(-z)), h = 1e-3 * fmax(1, fabs(z));
            close_to(s.loss, z > 30 ? z : log1p(exp(z)), 1e-12 * fmax(1, z));
            close_to(s.abs, p, 1e-15);
            close_to(s.square, p * p, 1e-15);
            close_to((double)dy, k ? -p : p, 1e-7);
            below = (float)((double)logit[i] - h);
            above = (float)((double)logit[i] + h);
            close_to((nn_loss_backward(NN_LOSS_BCE, &above, &t[k], NULL, 1, 1, &none).loss -
                      nn_loss_backward(NN_LOSS_BCE, &below, &t[k], NULL, 1, 1, &none).loss) /
                         ((double)above - (double)below),
                     (double)dy, 1e-6);
        }
    assert_true(nn_logistic(-1e4) == 0 && nn_logistic(1e4) == 1 && nn_logistic(0) == 0.5 && isnan(nn_logistic(NAN)));
    assert_true(nn_logistic(-700) > 0);
}

/* A weight multiplies loss and slope; what is reported of probabilities is unweighted. */
static void a_class_counts_by_its_weight(void **state)
{
    static const float logit[] = { 0, 0.5f, -3, 40 };
    (void)state;

    for (size_t i = 0; i < sizeof logit / sizeof logit[0]; i++)
        for (int k = 0; k < 2; k++) {
            const float plain = (float)k, weighed = k ? 7.5f : -0.25f;
            float dy, dy_weighed;
            nn_loss_sum s = nn_loss_backward(NN_LOSS_BCE, &logit[i], &plain, NULL, 1, 1, &dy);
            nn_loss_sum w = nn_loss_backward(NN_LOSS_BCE, &logit[i], &weighed, NULL, 1, 1, &dy_weighed);
            const double by = k ? 7.5 : 0.25;
            close_to(w.loss, by * s.loss, 1e-12 * by * s.loss);
            close_to((double)dy_weighed, by * (double)dy, 1e-7 * by);
            assert_true(w.abs == s.abs && w.square == s.square && w.n == 1);
        }
}

static void a_batch_of_classes_leaves_out_what_is_not_measured(void **state)
{
    const float y[] = { 0, 0, 2, NAN }, t[] = { 0, 1, NAN, 1 };
    float dy[4];
    nn_loss_sum s = nn_loss_backward(NN_LOSS_BCE, y, t, NULL, 3, nn_loss_measured(t, 3), dy);

    (void)state;
    assert_int_equal(s.n, 2);
    close_to(s.loss, 2 * log(2), 1e-15);
    close_to((double)dy[0], 0.25, 0);
    close_to((double)dy[1], -0.25, 0);
    assert_true(dy[2] == 0);
    assert_true(isnan(nn_loss_backward(NN_LOSS_BCE, y, t, NULL, 4, 3, dy).loss)); /* a step of these is not taken */
}

/* ---- classes ---- */

enum { MANY = 400 };

/* Scores with many ties, correlated with the class. */
static int many(double *y, double *p, int levels, uint64_t which)
{
    pl_rng r = pl_rng_at(21, which, 0);
    int n = 20 + (int)pl_rng_below(&r, MANY - 20), actives = 0;

    for (int i = 0; i < n; i++) {
        y[i] = pl_rng_real(&r) < 0.15;
        p[i] = floor((pl_rng_real(&r) + 0.4 * y[i]) * levels) / levels;
        actives += y[i] > 0;
    }
    if (actives == 0)
        y[0] = 1;
    return n;
}

/* By the definitions: over pairs and thresholds; the mean over all orders of a tie is the mean over its ranks. */
static void brute_force(nn_enrichment *e, const double *y, const double *p, int n)
{
    double pairs = 0, won = 0, sum = 0, ra, rie;
    int actives = 0;

    *e = (nn_enrichment){ .n = n };
    for (int i = 0; i < n; i++)
        actives += y[i] > 0;
    for (int i = 0; i < n; i++) {
        int above = 0, same = 0, hits = 0;
        double term = 0, in[2] = { 0, 0 };
        for (int j = 0; j < n; j++) {
            above += p[j] > p[i];
            same += p[j] == p[i];
            hits += p[j] >= p[i] && y[j] > 0;
            pairs += y[i] > 0 && !(y[j] > 0);
            won += y[i] > 0 && !(y[j] > 0) ? (p[i] > p[j]) + 0.5 * (p[i] == p[j]) : 0;
        }
        if (!(y[i] > 0))
            continue;
        for (int r = above + 1; r <= above + same; r++) {
            term += exp(-20.0 * r / n) / same;
            in[0] += (r <= (n + 99) / 100) / (double)same;
            in[1] += (r <= (n + 19) / 20) / (double)same;
        }
        sum += term;
        e->pr_auc += (double)hits / (above + same) / actives;
        e->ef1 += in[0] / ((n + 99) / 100) * n / actives;
        e->ef5 += in[1] / ((n + 19) / 20) * n / actives;
    }
    ra = (double)actives / n;
    rie = sum / actives / (1.0 / n * (1 - exp(-20)) / (exp(20.0 / n) - 1));
    e->actives = actives;
    e->roc_auc = won / pairs;
    e->bedroc20 = rie * ra * sinh(10) / (cosh(10) - cosh(10 - 20 * ra)) + 1 / (1 - exp(20 * (1 - ra)));
}

static void enrichments_are_those_of_the_definitions(void **state)
{
    static const int levels[] = { 3, 10, 1 << 20 };
    double y[MANY], p[MANY];

    for (uint64_t k = 0; k < 60; k++) {
        nn_enrichment want;
        nn_fit f;
        int n = many(y, p, levels[k % 3], k);
        brute_force(&want, y, p, n);
        assert_int_equal(nn_metric_class(&f, y, p, n, false, *state, NULL), PL_OK);
        assert_int_equal(f.order.actives, want.actives);
        close_to(f.order.roc_auc, want.roc_auc, 1e-12);
        close_to(f.order.pr_auc, want.pr_auc, 1e-12);
        close_to(f.order.ef1, want.ef1, 1e-10);
        close_to(f.order.ef5, want.ef5, 1e-10);
        close_to(f.order.bedroc20, want.bedroc20, 1e-12);
        assert_true(isnan(f.log_loss) && isnan(f.brier) && isnan(f.mae));
    }
}

/* 5 of 100 actives: all first, all last, all tied. */
static void the_best_the_worst_and_no_order_are_as_by_hand(void **state)
{
    double y[100], best[100], worst[100], none[100];
    nn_fit f;

    for (int i = 0; i < 100; i++) {
        y[i] = i % 20 == 7;
        best[i] = y[i] + i * 1e-6;
        worst[i] = -best[i];
        none[i] = 0.05;
    }
    assert_int_equal(nn_metric_class(&f, y, best, 100, false, *state, NULL), PL_OK);
    close_to(f.order.roc_auc, 1, 0);
    close_to(f.order.pr_auc, 1, 0);
    close_to(f.order.bedroc20, 1, 1e-14);
    assert_true(f.order.ef1 == 20 && f.order.ef1_max == 20 && f.order.ef5 == 20 && f.order.ef5_max == 20);
    assert_int_equal(nn_metric_class(&f, y, worst, 100, false, *state, NULL), PL_OK);
    close_to(f.order.roc_auc, 0, 1e-15);
    close_to(f.order.bedroc20, 0, 1e-12);
    assert_true(f.order.ef1 == 0 && f.order.ef5 == 0 && f.order.ef1_max == 20);
    assert_int_equal(nn_metric_class(&f, y, none, 100, true, *state, NULL), PL_OK);
    close_to(f.order.roc_auc, 0.5, 1e-15);
    close_to(f.order.pr_auc, 0.05, 1e-15);
    close_to(f.order.ef1, 1, 1e-14);
    close_to(f.order.ef5, 1, 1e-14);
    close_to(f.log_loss, -0.05 * log(0.05) - 0.95 * log(0.95), 1e-14);
    close_to(f.brier, 0.05 * 0.95, 1e-14);
}

static void one_class_alone_has_no_order(void **state)
{
    const double zero[] = { 0, 0, 0 }, one[] = { 1, 1, 1 }, p[] = { 0.1, 0.5, 1 };
    nn_fit f;

    assert_int_equal(nn_metric_class(&f, one, p, 3, true, *state, NULL), PL_OK);
    assert_true(isnan(f.order.roc_auc) && isnan(f.order.bedroc20) && isnan(f.order.ef1) && isnan(nn_enrichment_value(&f.order, 7)));
    close_to(f.brier, (0.81 + 0.25) / 3, 1e-15);
    assert_int_equal(nn_metric_class(&f, zero, p, 3, true, *state, NULL), PL_OK);
    assert_true(isnan(f.order.pr_auc) && isnan(f.order.ef5_max));
    close_to(f.log_loss, -(log(0.9) + log(0.5) + log(0x1p-52)) / 3, 1e-14); /* certain, and wrong */
    assert_int_equal(nn_metric_class(&f, zero, p, 0, true, *state, NULL), PL_OK);
    assert_true(isnan(f.log_loss) && isnan(f.brier) && f.n == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_ARENA(errors_of_four_numbers_are_as_by_hand),
        WITH_ARENA(a_constant_has_no_correlation),
        WITH_ARENA(a_constant_has_no_r2_whatever_its_value),
        WITH_ARENA(nine_in_ten_further_values_are_in_the_interval),
        WITH_ARENA(any_increasing_function_has_spearman_one),
        WITH_ARENA(a_linear_law_is_found_back),
        WITH_ARENA(memory_is_used_to_its_end_and_no_further),
        WITH_ARENA(constant_and_dependent_columns_get_nothing),
        cmocka_unit_test(moments_are_those_of_the_population),
        cmocka_unit_test(losses_and_gradients_are_as_by_hand),
        cmocka_unit_test(the_loss_of_noise_is_as_by_hand),
        cmocka_unit_test(cross_entropy_is_right_for_any_logit),
        cmocka_unit_test(limits_cost_nothing_on_the_allowed_side),
        cmocka_unit_test(a_class_counts_by_its_weight),
        cmocka_unit_test(a_batch_of_classes_leaves_out_what_is_not_measured),
        WITH_ARENA(enrichments_are_those_of_the_definitions),
        WITH_ARENA(the_best_the_worst_and_no_order_are_as_by_hand),
        WITH_ARENA(one_class_alone_has_no_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
