/* SPDX-License-Identifier: Apache-2.0
 * Intervals by similarity: which bands there are, what they hold, and that they hold what they promise. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "models/metrics/conformal.h"
#include "pipeline/base/rng.h"

enum { MAX = 4000 };

static double y[MAX], p[MAX], alike[MAX];
static pl_arena *mem;

static int mem_open(void **state)
{
    (void)state;
    mem = pl_arena_new(1 << 16);
    return mem != NULL ? 0 : 1;
}

static int mem_close(void **state)
{
    (void)state;
    pl_arena_free(mem);
    return 0;
}

static nn_conformal fitted(int64_t n)
{
    nn_conformal i = { .part = "test" };

    assert_int_equal(nn_conformal_fit(&i, y, p, alike, n, mem, NULL), PL_OK);
    return i;
}

/* n molecules with errors of 1, 2 .. n times `size`, alternately above and below. */
static int64_t put(int64_t at, int64_t n, double likeness, double size)
{
    for (int64_t k = 0; k < n; k++, at++) {
        y[at] = 3;
        p[at] = y[at] + (k % 2 ? -size : size) * (double)(k + 1);
        alike[at] = likeness;
    }
    return at;
}

static void each_similarity_band_has_its_own_interval(void **state)
{
    int64_t n = put(0, 40, 0.299, 1);
    nn_conformal i;

    (void)state;
    n = put(n, 30, 0.3, 0.1);
    n = put(n, 99, 0.5, 0.01);
    i = fitted(n);
    assert_int_equal(i.n, 3);
    assert_true(i.band[0].n == 40 && i.band[1].n == 30 && i.band[2].n == 99);
    assert_true(nn_conformal_within(&i, 0) == 37 && nn_conformal_within(&i, 0.29) == 37); /* ceil(0.9 x 41) */
    assert_true(fabs(nn_conformal_within(&i, 0.3) - 2.8) < 1e-12 && fabs(nn_conformal_within(&i, 0.49) - 2.8) < 1e-12);
    assert_true(fabs(nn_conformal_within(&i, 0.5) - 0.9) < 1e-12 && fabs(nn_conformal_within(&i, 1) - 0.9) < 1e-12);
    assert_true(isnan(nn_conformal_within(&i, NAN)));
}

static void a_similarity_that_is_unknown_is_in_the_lowest_band(void **state)
{
    static const double lowest[] = { NAN, -INFINITY, -0.1, 0, 0.299 };

    (void)state;
    for (size_t k = 0; k < sizeof lowest / sizeof *lowest; k++)
        assert_int_equal(nn_conformal_band(lowest[k]), 0);
    assert_true(nn_conformal_band(0.3) == 1 && nn_conformal_band(0.499) == 1);
    assert_true(nn_conformal_band(0.5) == 2 && nn_conformal_band(1) == 2);
}

static void a_band_with_few_molecules_joins_its_neighbour(void **state)
{
    int64_t n = put(0, 40, 0.1, 1);
    nn_conformal i;

    (void)state;
    i = fitted(put(put(n, 29, 0.4, 1), 30, 0.9, 1));
    assert_true(i.n == 2 && i.band[0].n == 69 && i.band[1].n == 30 && i.band[1].from == 0.5);
    i = fitted(put(put(n, 25, 0.4, 1), 10, 0.9, 1));
    assert_true(i.n == 2 && i.band[0].n == 40 && i.band[1].n == 35 && i.band[1].from == 0.3);
    i = fitted(put(put(put(0, 29, 0.1, 1), 50, 0.4, 1), 50, 0.9, 1));
    assert_true(i.n == 2 && i.band[0].n == 79 && i.band[1].from == 0.5);
    i = fitted(put(put(put(0, 10, 0.1, 1), 10, 0.4, 1), 100, 0.9, 1)); /* both together are too few */
    assert_true(i.n == 1 && i.band[0].n == 120);
    i = fitted(put(put(put(0, 3, 0.1, 1), 3, 0.4, 1), 3, 0.9, 1));
    assert_true(i.n == 1 && i.band[0].n == 9 && nn_conformal_within(&i, 0.7) == 3);
    assert_true(nn_conformal_within(&i, NAN) == 3); /* one band for all */
}

static void no_interval_without_enough_molecules(void **state)
{
    nn_conformal i;

    (void)state;
    assert_int_equal(fitted(put(0, 8, 0.5, 1)).n, 0);
    assert_int_equal(fitted(0).n, 0);
    i = fitted(0);
    assert_true(isnan(nn_conformal_within(&i, 0.5)));
    i = fitted(put(put(0, 100, 0.1, 1), 100, NAN, 2)); /* a molecule of unknown similarity: no bands */
    assert_true(i.n == 1 && i.band[0].n == 200);
}

/* Errors decrease with similarity: in every band 90 % of 2,000 new molecules are within the interval. */
static void nine_in_ten_further_molecules_are_within_in_each_band(void **state)
{
    pl_rng r = pl_rng_at(5, 0, 0);
    nn_conformal i;
    int held[3] = { 0 }, all[3] = { 0 };

    (void)state;
    for (int64_t k = 0; k < MAX; k++) {
        alike[k] = pl_rng_real(&r);
        y[k] = 0;
        p[k] = pl_rng_normal(&r) * (1.2 - alike[k]);
    }
    i = fitted(MAX);
    assert_true(i.n == 3 && i.band[0].within > i.band[1].within && i.band[1].within > i.band[2].within);
    for (int k = 0; k < 6000; k++) {
        const double likeness = pl_rng_real(&r), off = fabs(pl_rng_normal(&r) * (1.2 - likeness));
        const int band = (likeness >= 0.3) + (likeness >= 0.5);
        all[band]++;
        held[band] += off <= nn_conformal_within(&i, likeness);
    }
    for (int k = 0; k < 3; k++) {
        const double share = (double)held[k] / all[k];
        if (!(all[k] > 1000 && share > 0.87 && share < 0.93))
            fail_msg("band %d: %d of %d", k, held[k], all[k]);
    }
}

/* The k-th smallest value of alike[n]. */
static double nth_smallest(int64_t n, int64_t k)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t smaller = 0;
        for (int64_t j = 0; j < n; j++)
            smaller += alike[j] < alike[i];
        if (smaller == k - 1)
            return alike[i];
    }
    return NAN;
}

static double lowest_of(int64_t n)
{
    double lowest = -1;

    assert_int_equal(nn_conformal_lowest(&lowest, alike, n, mem, NULL), PL_OK);
    return lowest;
}

static void the_lowest_calibrated_similarity_is_that_of_the_tenth(void **state)
{
    (void)state;
    for (int k = 0; k < 1000; k++)
        alike[k] = 0.001 * ((k * 7919) % 1000);
    assert_true(fabs(lowest_of(1000) - 0.009) < 1e-12);
    for (int k = 0; k < 50; k++)
        alike[k] = 0.5 - 0.01 * k;
    assert_true(fabs(lowest_of(50) - 0.05) < 1e-12); /* 0.01 .. 0.5: the fifth */
    for (int64_t n = NN_CONFORMAL_MIN; n < 300; n++) /* alike[i] is (i + 1) / n, or a permutation of these values */
        assert_true(lowest_of(n) == nth_smallest(n, (int64_t)fmin(fmax((double)(n / 10), 1), 10)));
    assert_true(lowest_of(NN_CONFORMAL_MIN) > 0 && lowest_of(NN_CONFORMAL_MIN - 1) == 0 && lowest_of(0) == 0);
    alike[7] = NAN;
    assert_true(lowest_of(50) == 0);
}

static void memory_that_is_refused_is_an_error(void **state)
{
    nn_conformal i;
    double lowest;
    pl_error err = { 0 };

    (void)state;
    (void)put(0, 40, 0.5, 1);
    for (int k = 0; k < 2; k++) {
        pl_arena_refuse(1);
        const pl_code code =
            k == 0 ? nn_conformal_fit(&i, y, p, alike, 40, mem, &err) : nn_conformal_lowest(&lowest, alike, 40, mem, &err);
        pl_arena_refuse(0);
        assert_int_equal(code, PL_ENOMEM);
        assert_non_null(strstr(err.text, k == 0 ? "an interval of 40 predictions" : "similarities of 40 molecules"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_similarity_band_has_its_own_interval),
        cmocka_unit_test(a_similarity_that_is_unknown_is_in_the_lowest_band),
        cmocka_unit_test(a_band_with_few_molecules_joins_its_neighbour),
        cmocka_unit_test(no_interval_without_enough_molecules),
        cmocka_unit_test(nine_in_ten_further_molecules_are_within_in_each_band),
        cmocka_unit_test(the_lowest_calibrated_similarity_is_that_of_the_tenth),
        cmocka_unit_test(memory_that_is_refused_is_an_error),
    };

    return cmocka_run_group_tests(tests, mem_open, mem_close);
}
