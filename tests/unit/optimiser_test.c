/* SPDX-License-Identifier: Apache-2.0 */
/* LAMB against the published equations in double, and both optimisers in threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "models/optim/lamb.h"
#include "models/optim/loss.h"
#include "models/optim/optimiser.h"
#include "pipeline/base/rng.h"
#include "tests/unit/locks.h"

enum { TENSORS = 4, STEPS = 8 };

/* One is longer than a piece, one is zero and gets no gradient. */
static const size_t sizes[TENSORS] = { 70001, 5, 64, 1000 };
enum { ALL = 70001 + 5 + 64 + 1000, ZERO = 2 };

typedef struct bench {
    pl_arena *mem;
    nn_param tensor[TENSORS];
    float p[ALL], m[ALL], v[ALL], ema[ALL], g[ALL];
    double dp[ALL], dm[ALL], dv[ALL], dema[ALL];
} bench;

static const nn_adamw_conf conf = { 0.9, 0.999, 1e-8, 0.1 };
static const double AVERAGE = 0.25;

static void bench_reset(bench *b)
{
    size_t at = 0;

    memset(b->m, 0, sizeof b->m);
    memset(b->v, 0, sizeof b->v);
    memset(b->dm, 0, sizeof b->dm);
    memset(b->dv, 0, sizeof b->dv);
    for (int t = 0; t < TENSORS; at += sizes[t++]) {
        pl_rng r = pl_rng_at(5, (uint64_t)t, 0);
        b->tensor[t] = (nn_param){ .at = at, .size = sizes[t] };
        for (size_t k = at; k < at + sizes[t]; k++)
            b->dp[k] = b->dema[k] = b->ema[k] = b->p[k] = t == ZERO ? 0.0f : (float)pl_rng_normal(&r) * (float)(t + 1);
    }
}

#include "tests/unit/optimiser_bench.h"

static void gradient_make(bench *b, int step)
{
    pl_rng r = pl_rng_at(6, (uint64_t)step, 0);

    for (size_t k = 0; k < ALL; k++)
        b->g[k] = (float)pl_rng_normal(&r);
    memset(b->g + b->tensor[ZERO].at, 0, sizes[ZERO] * sizeof *b->g);
}

static double lr_of(int step) { return 0.02 / step; }

/* Algorithm 2 of Loshchilov and Hutter 2019 on all numbers at once, and the average of what it gives, in double. */
static void adamw_takes_the_published_step(void **state)
{
    static double average[ALL];
    bench *b = *state;
    nn_optimiser *o = nn_optimiser_new(&(nn_optimiser_conf){ NN_ADAMW, 1, NULL }, ALL, b->tensor, TENSORS, b->mem);
    nn_pool *pool = nn_pool_new(1);
    const nn_adamw_arrays arrays = { b->p, b->m, b->v, b->ema, b->g };

    assert_true(o && pool);
    memcpy(average, b->dp, sizeof average);
    for (int t = 1; t <= STEPS; t++) {
        const nn_optimiser_step step = { conf, t, lr_of(t), 0.5, 0.25, NULL };
        gradient_make(b, t);
        nn_optimiser_run(o, pool, &arrays, &step);
        for (size_t k = 0; k < ALL; k++) {
            const double g = 0.5 * b->g[k];
            b->dm[k] = 0.9 * b->dm[k] + (1 - 0.9) * g;
            b->dv[k] = 0.999 * b->dv[k] + (1 - 0.999) * g * g;
            b->dp[k] -= lr_of(t) * (b->dm[k] / (1 - pow(0.9, t)) / (sqrt(b->dv[k] / (1 - pow(0.999, t))) + 1e-8) + 0.1 * b->dp[k]);
            average[k] += 0.25 * (b->dp[k] - average[k]);
        }
    }
    nn_pool_free(pool);
    for (size_t k = 0; k < ALL; k++) {
        if (!(fabs((double)b->p[k] - b->dp[k]) <= 2e-6 * (1 + fabs(b->dp[k]))))
            fail_msg("parameter %zu: %.9g, published %.9g", k, (double)b->p[k], b->dp[k]);
        assert_true(fabs((double)b->m[k] - b->dm[k]) <= 1e-6);
        assert_true(fabs((double)b->ema[k] - average[k]) <= 2e-6 * (1 + fabs(average[k])));
    }
}

/* Algorithm 2 of You et al. 2020, line by line. */
static void published_step(bench *b, const nn_param *tensor, int t, double clip)
{
    double pp = 0, uu = 0, *u = malloc(tensor->size * sizeof *u);

    assert_non_null(u);
    for (size_t i = 0; i < tensor->size; i++) {
        size_t k = tensor->at + i;
        double g = clip * b->g[k], mh, vh;
        b->dm[k] = 0.9 * b->dm[k] + (1 - 0.9) * g;
        b->dv[k] = 0.999 * b->dv[k] + (1 - 0.999) * g * g;
        mh = b->dm[k] / (1 - pow(0.9, t));
        vh = b->dv[k] / (1 - pow(0.999, t));
        u[i] = mh / (sqrt(vh) + 1e-8) + 0.1 * b->dp[k];
        pp += b->dp[k] * b->dp[k];
        uu += u[i] * u[i];
    }
    for (size_t i = 0; i < tensor->size; i++) {
        size_t k = tensor->at + i;
        b->dp[k] -= lr_of(t) * (pp > 0 && uu > 0 ? sqrt(pp) / sqrt(uu) : 1) * u[i];
        b->dema[k] += AVERAGE * (b->dp[k] - b->dema[k]);
    }
    free(u);
}

static void steps_run(bench *b, nn_optimiser_kind kind, int threads, double clip, bool published)
{
    nn_optimiser *o = nn_optimiser_new(&(nn_optimiser_conf){ kind, threads, NULL }, ALL, b->tensor, TENSORS, b->mem);
    nn_pool *pool = nn_pool_new(threads);
    const nn_adamw_arrays arrays = { b->p, b->m, b->v, b->ema, b->g };

    assert_true(o && pool);
    for (int t = 1; t <= STEPS; t++) {
        const nn_optimiser_step step = { conf, t, lr_of(t), clip, AVERAGE, NULL };
        gradient_make(b, t);
        nn_optimiser_run(o, pool, &arrays, &step);
        for (int k = 0; published && k < TENSORS; k++)
            published_step(b, &b->tensor[k], t, clip);
    }
    nn_pool_free(pool);
}

static void lamb_takes_the_published_step(void **state)
{
    bench *b = *state;

    steps_run(b, NN_LAMB, 1, 0.5, true);
    for (size_t k = 0; k < ALL; k++) {
        if (!(fabs((double)b->p[k] - b->dp[k]) <= 2e-6 * (1 + fabs(b->dp[k]))))
            fail_msg("parameter %zu: %.9g, published %.9g", k, (double)b->p[k], b->dp[k]);
        if (!(fabs((double)b->ema[k] - b->dema[k]) <= 2e-6 * (1 + fabs(b->dema[k]))))
            fail_msg("average %zu: %.9g, %.9g by its definition", k, (double)b->ema[k], b->dema[k]);
        assert_true(fabs((double)b->m[k] - b->dm[k]) <= 1e-6);
    }
}

/* Without a list of tensors all numbers are one: the step of a list of one, which is not that of four. */
static void without_tensors_all_numbers_are_one_tensor(void **state)
{
    bench *b = *state;
    const nn_param whole = { .size = ALL };
    float *first = PL_NEW(b->mem, float, ALL), *const p = b->p;

    for (int tensors = 1; tensors >= 0; tensors--) {
        nn_optimiser *o = nn_optimiser_new(&(nn_optimiser_conf){ NN_LAMB, 1, NULL }, ALL, &whole, tensors, b->mem);
        nn_pool *pool = nn_pool_new(1);
        const nn_adamw_arrays arrays = { p, b->m, b->v, b->ema, b->g };
        const nn_optimiser_step step = { conf, 1, lr_of(1), 0.5, AVERAGE, NULL };
        assert_true(o && pool && first);
        bench_reset(b);
        gradient_make(b, 1);
        nn_optimiser_run(o, pool, &arrays, &step);
        nn_pool_free(pool);
        if (tensors == 1)
            memcpy(first, p, sizeof b->p);
    }
    assert_memory_equal(first, p, sizeof b->p);
    bench_reset(b);
    assert_memory_not_equal(first, p, sizeof b->p);
}

static void a_tensor_of_zeros_without_gradient_stays(void **state)
{
    bench *b = *state;
    const float *p = b->p + b->tensor[ZERO].at;

    steps_run(b, NN_LAMB, 1, 1, false);
    for (size_t k = 0; k < sizes[ZERO]; k++)
        assert_true(p[k] == 0);
    assert_true(nn_lamb_ratio((nn_lamb_squares){ 0, 4 }) == 1 && nn_lamb_ratio((nn_lamb_squares){ 4, 0 }) == 1);
    assert_true(nn_lamb_ratio((nn_lamb_squares){ 9, 4 }) == 1.5f);
}

/* Whatever the norm of the gradient, the first step moves each tensor by lr times the norm of the tensor. */
static void a_step_is_as_long_as_the_tensor(void **state)
{
    float p[3] = { 3, 0, 4 }, m[3] = { 0 }, v[3] = { 0 };
    const float g[3] = { 1e-3f, -1e-3f, 1e-3f };
    const nn_adamw_conf plain = { 0.9, 0.999, 1e-12, 0 };
    nn_lamb_rule r = nn_lamb_rule_make(&plain, 1, 0.1f);
    const nn_adamw_arrays arrays = { p, m, v, NULL, g };
    nn_lamb_squares whole = nn_lamb_moments(&arrays, 0, 3, &r);

    (void)state;
    assert_true(fabs(whole.p - 25) <= 1e-12 && fabs(whole.u - 3) <= 1e-5);
    nn_lamb_update(&arrays, 0, 3, &r, nn_lamb_ratio(whole));
    assert_true(fabs(sqrt((p[0] - 3) * (p[0] - 3) + p[1] * p[1] + (p[2] - 4) * (p[2] - 4)) - 0.5) <= 1e-5);
    assert_true(p[0] < 3 && p[1] > 0 && p[2] < 4);
}

static void any_number_of_threads_gives_the_same_bits(void **state)
{
    static float p[ALL], v[ALL];
    bench *b = *state;

    for (nn_optimiser_kind kind = NN_ADAMW; kind <= NN_LAMB; kind++)
        for (int threads = 1; threads <= 4; threads++) {
            bench_reset(b);
            steps_run(b, kind, threads, 1, false);
            if (threads == 1) {
                memcpy(p, b->p, sizeof p);
                memcpy(v, b->v, sizeof v);
            }
            assert_memory_equal(p, b->p, sizeof p);
            assert_memory_equal(v, b->v, sizeof v);
        }
}

/* Doubled after so many good steps in a row, halved after each bad one, from 1 to a maximum; without a number it stays 1. */
static void the_scale_of_a_loss_follows_the_steps_taken(void **state)
{
    enum { AFTER = 3, MOST = NN_LOSS_SCALE_MAX };
    static const struct {
        nn_loss_scale was;
        bool taken;
        nn_loss_scale next;
    } cases[] = { { { 4, 0 }, true, { 4, 1 } },
                  { { 4, 1 }, true, { 4, 2 } },
                  { { 4, 2 }, true, { 8, 0 } },
                  { { MOST, 2 }, true, { MOST, 0 } },
                  { { MOST / 2, 2 }, true, { MOST, 0 } },
                  { { 4, 2 }, false, { 2, 0 } },
                  { { MOST, 1 }, false, { MOST / 2, 0 } },
                  { { 2, 2 }, false, { 1, 0 } },
                  { { 1, 2 }, false, { 1, 0 } } };
    static const nn_loss_scale begun[] = { { 1, 2 }, { 4, 2 }, { MOST, 0 } };
    nn_loss_scale s;

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        s = nn_loss_scale_next(cases[k].was, AFTER, cases[k].taken);
        assert_true(s.by == cases[k].next.by && s.good == cases[k].next.good);
        s = nn_loss_scale_next(cases[k].was, 0, cases[k].taken);
        assert_true(s.by == cases[k].was.by && s.good == cases[k].was.good);
    }
    for (size_t k = 0; k < sizeof begun / sizeof *begun; k++) { /* a training that goes on */
        s = nn_loss_scale_begin(begun[k], AFTER);
        assert_true(s.by == begun[k].by && s.good == begun[k].good);
        s = nn_loss_scale_begin(begun[k], 0);
        assert_true(s.by == 1 && s.good == 0);
    }
    s = nn_loss_scale_begin((nn_loss_scale){ 0, 0 }, AFTER);
    assert_true(s.by == NN_LOSS_SCALE_FIRST && s.good == 0);
}

static void no_pool_is_nothing_to_free(void **state)
{
    (void)state;
    nn_pool_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_BENCH(adamw_takes_the_published_step),
        cmocka_unit_test(the_scale_of_a_loss_follows_the_steps_taken),
        WITH_BENCH(lamb_takes_the_published_step),
        WITH_BENCH(a_tensor_of_zeros_without_gradient_stays),
        WITH_BENCH(without_tensors_all_numbers_are_one_tensor),
        cmocka_unit_test(a_step_is_as_long_as_the_tensor),
        WITH_BENCH(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(no_pool_is_nothing_to_free),
        locks_test,
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
