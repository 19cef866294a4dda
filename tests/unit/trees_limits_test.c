/* SPDX-License-Identifier: Apache-2.0 */
/* Trees and forests that learn with weights of classes, trees that learn from limits; a wrong answer of the library. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "family_toy.h"
#include "models/family/table.h"
#include "pipeline/base/rng.h"
#include "tests/unit/own_xgboost.h"
#include "tests/unit/trees.h"

enum { LEARN = 500, NEW = 200 };

static double error_of(const double *is, const double *y, int n)
{
    double sum = 0;

    for (int i = 0; i < n; i++)
        sum += (is[i] - y[i]) * (is[i] - y[i]) / n;
    return sqrt(sum);
}

/* ---- weights of classes ---- */

/* Learns with weights 1 : by, predicts the same molecules, returns the mean of that. */
static double mean_by_weight(double *is, const nn_member_kind *kind, const family_toy *a, const double *y, double by, pl_arena *mem)
{
    const nn_fit_conf conf = { .seed = 5, .classifies = true, .weight = { 1, by } };
    double mean = 0;
    nn_member *m;

    assert_int_equal(kind->fit(&m, &a->x, y, &conf, mem, NULL), PL_OK);
    assert_true(family_toy_again(&m, kind, m, mem));
    assert_int_equal(kind->predict(m, &a->x, is, NULL, mem, NULL), PL_OK);
    for (int i = 0; i < a->x.n; i++)
        mean += is[i] / a->x.n;
    return mean;
}

/* One in sixteen is of class 1. With weights predictions change, but tell how many there are: uncorrected ones would say about half. */
static void weighted_classes_keep_their_probabilities(void **state)
{
    enum { N = 800 };
    static const nn_member_kind *const kinds[] = { &nn_trees, &nn_forest };
    pl_arena *mem = *state;
    pl_rng r = pl_rng_at(3, 0, 0);
    double y[N], plain[N], weighed[N], share = 0;
    family_toy a;

    need_library();
    assert_true(family_toy_make(&a, N, 1, mem));
    for (int i = 0; i < N; i++) {
        y[i] = a.classes[i] == 1 && pl_rng_below(&r, 8) == 0;
        share += y[i] / N;
    }
    for (int k = 0; k < 2; k++) {
        const double none = mean_by_weight(plain, kinds[k], &a, y, 1, mem);
        const double balanced = mean_by_weight(weighed, kinds[k], &a, y, (1 - share) / share, mem);
        print_message("%s: %.4f are of class 1, predicted %.4f, with weights %.4f, changed by %.4f\n", kinds[k]->name, share, none,
                      balanced, error_of(plain, weighed, N));
        assert_true(fabs(none - share) < 0.02 && fabs(balanced - share) < 0.05 && error_of(plain, weighed, N) > 0.005);
        for (int i = 0; i < N; i++)
            assert_true(weighed[i] > 0 && weighed[i] < 1);
    }
}

/* ---- limits ---- */

typedef struct bench {
    family_toy a, b;
    double low[LEARN], high[LEARN], measured[LEARN]; /* measured: without those of which only a limit is known */
    int32_t at[LEARN], n;                            /* the molecules of `measured` */
    pl_arena *mem;
} bench;

static bench *bench_make(pl_arena *mem)
{
    bench *t = PL_NEW(mem, bench, 1);

    need_library();
    assert_non_null(t);
    t->mem = mem;
    assert_true(family_toy_make(&t->a, LEARN, 1, mem) && family_toy_make(&t->b, NEW, 2, mem));
    return t;
}

static void bench_put(bench *t, int32_t i, double low, double high)
{
    t->low[i] = low;
    t->high[i] = high;
    if (low < high)
        return;
    t->measured[t->n] = low;
    t->at[t->n++] = i;
}

/* Learns low [LEARN], with upper limits if high is not NULL, and predicts the new molecules. */
static void learned(double is[NEW], bench *t, const double *high)
{
    const nn_fit_conf conf = { .seed = 5, .high = high };
    nn_member *m;

    assert_int_equal(nn_trees.fit(&m, &t->a.x, t->low, &conf, t->mem, NULL), PL_OK);
    assert_true(family_toy_again(&m, &nn_trees, m, t->mem));
    assert_int_equal(nn_trees.predict(m, &t->b.x, is, NULL, t->mem, NULL), PL_OK);
}

/* From the measured molecules alone. */
static void learned_without(double is[NEW], bench *t)
{
    nn_table few;
    nn_member *m;

    assert_int_equal(nn_table_take(&few, &t->a.x, t->at, t->n, t->mem, NULL), PL_OK);
    assert_int_equal(nn_trees.fit(&m, &few, t->measured, &(nn_fit_conf){ .seed = 5 }, t->mem, NULL), PL_OK);
    assert_int_equal(nn_trees.predict(m, &t->b.x, is, NULL, t->mem, NULL), PL_OK);
}

/* Values above 2 are known only to be above it. Left out they are missed, as values they pull predictions down. */
static void limits_are_better_than_nothing_and_than_values(void **state)
{
    bench *t = bench_make(*state);
    double with[NEW], without[NEW], values[NEW];

    for (int i = 0; i < LEARN; i++)
        bench_put(t, i, fmin(t->a.y[i], 2), t->a.y[i] < 2 ? t->a.y[i] : INFINITY);
    assert_in_range(t->n, LEARN / 4, LEARN * 3 / 4);
    learned(with, t, t->high);
    learned(values, t, NULL);
    learned_without(without, t);
    print_message("%d of %d measured; errors: limits %.3f, as values %.3f, left out %.3f\n", t->n, LEARN,
                  error_of(with, t->b.y, NEW), error_of(values, t->b.y, NEW), error_of(without, t->b.y, NEW));
    assert_true(error_of(with, t->b.y, NEW) < error_of(values, t->b.y, NEW));
    assert_true(error_of(with, t->b.y, NEW) < error_of(without, t->b.y, NEW));
}

/* It pulls no prediction, neither to itself nor to the mean. */
static void a_limit_that_always_holds_changes_little(void **state)
{
    bench *t = bench_make(*state);
    double with[NEW], without[NEW];

    for (int i = 0; i < LEARN; i++)
        bench_put(t, i, i % 2 ? -1000 : t->a.y[i], i % 2 ? INFINITY : t->a.y[i]);
    learned(with, t, t->high);
    learned_without(without, t);
    print_message("error %.3f with limits that say nothing, %.3f without\n", error_of(with, t->b.y, NEW),
                  error_of(without, t->b.y, NEW));
    assert_true(error_of(with, t->b.y, NEW) < 1.15 * error_of(without, t->b.y, NEW));
}

static void equal_limits_are_values_and_limits_alone_teach_nothing(void **state)
{
    bench *t = bench_make(*state);
    double with[NEW], values[NEW];
    nn_member *m;

    for (int i = 0; i < LEARN; i++)
        bench_put(t, i, t->a.y[i], t->a.y[i]);
    learned(with, t, t->high);
    learned(values, t, NULL);
    assert_memory_equal(with, values, sizeof with);
    for (int i = 0; i < LEARN; i++)
        t->high[i] = INFINITY;
    assert_int_equal(nn_trees.fit(&m, &t->a.x, t->low, &(nn_fit_conf){ .high = t->high }, t->mem, NULL), PL_ECONFIG);
}

/* ---- the library ---- */

static uint64_t more;

/* The library's own prediction, which says that it has `more` numbers than it has. */
static int predict_more(void *booster, void *rows, const char *settings, const uint64_t **shape, uint64_t *n_dims,
                        const float **out)
{
    static uint64_t longer;
    const int rc = real.predict(booster, rows, settings, shape, n_dims, out);

    if (rc == 0 && more > 0) {
        longer = **shape + more;
        *shape = &longer;
        *n_dims = 1;
    }
    return rc;
}

static void another_number_of_predictions_is_refused(void **state)
{
    static const size_t first[] = { 0, 1, 2 };
    static const unsigned column[] = { 0, 0 };
    static const float value[] = { 1, 2 }, y[] = { 0, 1 };
    const nn_sparse x = { 2, 1, first, column, value };
    float is[] = { 77, 77 };
    char want[80];
    pl_error err = { 0 };
    nn_booster *b = NULL;

    (void)state;
    need_library();
    assert_int_equal(nn_booster_open(&b, &x, y, 0, NULL, 0, &err), PL_OK);
    more = 3;
    assert_int_equal(nn_booster_learned(b, is, &err), PL_EBUG);
    more = 0;
    (void)snprintf(want, sizeof want, "XGBoost %s predicts 5 numbers, not 2", nn_xgboost_version());
    assert_string_equal(err.text, want);
    assert_true(is[0] == 77 && is[1] == 77);
    assert_int_equal(nn_booster_learned(b, is, &err), PL_OK);
    assert_true(is[0] != 77 && is[1] != 77);
    nn_booster_close(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_ARENA(weighted_classes_keep_their_probabilities),
        WITH_ARENA(limits_are_better_than_nothing_and_than_values),
        WITH_ARENA(a_limit_that_always_holds_changes_little),
        WITH_ARENA(equal_limits_are_values_and_limits_alone_teach_nothing),
        cmocka_unit_test(another_number_of_predictions_is_refused),
    };

    ours.predict = predict_more;
    return cmocka_run_group_tests_name("trees_limits", tests, NULL, NULL);
}
