/* SPDX-License-Identifier: Apache-2.0 */
/* Gaussian process: what cannot be learned, stops, refused memory, damaged files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "family_toy.h"
#include "models/family/gp_parts.h"
#include "pipeline/base/text.h"
#include "tests/unit/arena_state.h"

/* ---- what cannot be learned ---- */

static pl_code fit_rows(const nn_table *all, int32_t n, const double *y, bool classifies, pl_error *err, pl_arena *mem)
{
    nn_table x = *all;
    nn_member *m;

    x.n = n;
    return nn_gp.fit(&m, &x, y, &(nn_fit_conf){ .classifies = classifies }, mem, err);
}

static void values_that_teach_nothing_are_refused(void **state)
{
    enum { N = 20, MANY = NN_GP_MAX + 1 };
    pl_arena *mem = *state;
    double same[N], *many = PL_NEW(mem, double, MANY);
    pl_error err = { 0 };
    family_toy a;

    assert_true(family_toy_make(&a, N, 1, mem));
    for (int i = 0; i < N; i++)
        same[i] = 1;
    assert_int_equal(fit_rows(&a.x, 2, a.y, false, &err, mem), PL_ECONFIG);
    assert_int_equal(fit_rows(&a.x, 1, a.y, false, &err, mem), PL_ECONFIG);
    assert_int_equal(fit_rows(&a.x, N, same, false, &err, mem), PL_ECONFIG);
    assert_int_equal(fit_rows(&a.x, N, same, true, &err, mem), PL_ECONFIG);
    assert_non_null(strstr(err.text, "both classes"));
    assert_int_equal(fit_rows(&a.x, MANY, many, false, &err, mem), PL_ECONFIG); /* before any of them is looked at */
    assert_non_null(strstr(err.text, "10001 training molecules; a Gaussian process learns from at most 10000: use trees"));
    assert_int_equal(fit_rows(&a.x, MANY - 1, many, false, &err, mem), PL_ECONFIG);
    assert_string_equal(err.text, "all 10000 training molecules have the value 0: nothing can be learned");
    pl_arena_refuse(1);
    assert_int_equal(fit_rows(&a.x, MANY, many, false, &err, mem), PL_ENOMEM);
    pl_arena_refuse(0);
}

/* Ten molecules without descriptors or environments; the same molecules with different values. */
static void molecules_without_differences_are_learned(void **state)
{
    enum { N = 10 };
    pl_arena *mem = *state;
    float features[2 * N][CH_N_FEATURES] = { { 0 } };
    ch_environments none[2 * N] = { { 0 } };
    nn_table x = { .n = N, .environments = none, .features = (const float(*)[CH_N_FEATURES])features };
    double y[2 * N], is[2 * N], variance[2 * N];
    family_toy a;
    nn_member *m;

    for (int i = 0; i < N; i++)
        y[i] = i;
    assert_int_equal(nn_gp.fit(&m, &x, y, &(nn_fit_conf){ 0 }, mem, NULL), PL_OK);
    assert_true(family_toy_again(&m, &nn_gp, m, mem));
    assert_int_equal(nn_gp.predict(m, &x, is, variance, mem, NULL), PL_OK);
    for (int i = 0; i < N; i++)
        assert_true(fabs(is[i] - 4.5) < 0.1 && variance[i] > 1);
    assert_true(family_toy_make(&a, N, 1, mem));
    for (int i = 0; i < 2 * N; i++) {
        none[i] = a.x.environments[i % N];
        memcpy(features[i], a.x.features[i % N], sizeof features[i]);
        y[i] = i % 2;
    }
    x.n = 2 * N;
    assert_int_equal(nn_gp.fit(&m, &x, y, &(nn_fit_conf){ 0 }, mem, NULL), PL_OK);
    assert_int_equal(nn_gp.predict(m, &x, is, variance, mem, NULL), PL_OK);
    for (int i = 0; i < N; i++)
        assert_true(fabs(is[i] - is[i + N]) < 1e-9 && isfinite(is[i]) && variance[i] > 0);
}

static bool nth_time(void *ctx)
{
    int *left = ctx;

    return --*left == 0;
}

static void a_stop_ends_learning_anywhere(void **state)
{
    pl_arena *mem = *state;
    family_toy a;
    nn_member *m;
    int stops = 0;
    pl_code code = PL_ESTOP;

    assert_true(family_toy_make(&a, 130, 1, mem));
    for (int nth = 1; code == PL_ESTOP; nth += 1 + nth / 4) {
        int left = nth;
        code = nn_gp.fit(&m, &a.x, a.y, &(nn_fit_conf){ .stop = nth_time, .ctx = &left }, mem, NULL);
        stops += code == PL_ESTOP;
    }
    assert_int_equal(code, PL_OK);
    assert_true(stops > 10);
}

/* ---- memory ---- */

static void refused_memory_is_said(void **state)
{
    pl_arena *mem = *state;
    double is[12], variance[12];
    int refusals = 0;
    family_toy a;
    nn_parts p;

    assert_true(family_toy_make(&a, 12, 1, mem));
    for (long nth = 1; nth < 300; nth++) {
        pl_arena *own = pl_arena_new(0);
        nn_member *m = NULL;
        pl_code code;
        pl_arena_refuse(nth);
        code = nn_gp.fit(&m, &a.x, a.y, &(nn_fit_conf){ 0 }, own, NULL);
        if (code == PL_OK)
            code = family_toy_again(&m, &nn_gp, m, own) ? PL_OK : PL_ENOMEM;
        if (code == PL_OK)
            code = nn_gp.predict(m, &a.x, is, variance, own, NULL);
        if (code == PL_OK)
            code = nn_gp.explain(m, &a.x, 0, &p, own, NULL);
        if (code == PL_OK)
            assert_null(pl_arena_get(own, 1, 1)); /* none was refused so far */
        pl_arena_refuse(0);
        pl_arena_free(own);
        if (code == PL_OK)
            break;
        assert_int_equal(code, PL_ENOMEM);
        refusals++;
    }
    print_message("%d requests refused\n", refusals);
    assert_in_range(refusals, 50, 200);
}

/* ---- damaged files ---- */

typedef struct saved {
    nn_tensor *t;
    int n;
    const char *json;
} saved;

/* Opens it, and predicts if it is accepted: nothing is read out of bounds (ASan looks). */
static pl_code try_it(const saved *s, const nn_table *x, pl_arena *mem)
{
    double is[40], variance[40];
    nn_member *m;
    pl_code code = nn_gp.open(&m, "p", &(nn_tensors){ .n = s->n, .t = s->t }, s->json, mem, NULL);

    if (code == PL_OK) {
        const pl_code predicted = nn_gp.predict(m, x, is, variance, mem, NULL);
        assert_true(predicted == PL_OK || predicted == PL_ECONFIG); /* another column of the user's table */
        for (int i = 0; predicted == PL_OK && i < x->n; i++)
            assert_true(!isnan(variance[i]));
    }
    return code;
}

static void a_damaged_process_is_refused_or_harmless(void **state)
{
    pl_arena *mem = *state;
    int refusals = 0, tries = 0;
    family_toy a;
    nn_member *m;
    saved s;

    assert_true(family_toy_make(&a, 40, 1, mem));
    assert_int_equal(nn_gp.fit(&m, &a.x, a.y, &(nn_fit_conf){ 0 }, mem, NULL), PL_OK);
    assert_int_equal(nn_gp.save(m, "p", &s.t, &s.n, &s.json, mem, NULL), PL_OK);
    assert_int_equal(try_it(&s, &a.x, mem), PL_OK);
    for (int k = 0; k < s.n; k++) {
        const size_t bytes = s.t[k].count * nn_dtype_bytes(s.t[k].dtype), step = bytes / 200 + 1;
        uint8_t *at = (uint8_t *)(uintptr_t)s.t[k].data; /* our own memory */
        const size_t count = s.t[k].count--;
        assert_int_equal(try_it(&s, &a.x, mem), PL_EDATA);
        s.t[k].count = count;
        for (size_t i = 0; i < bytes; i += step) {
            const uint8_t was = at[i];
            pl_arena *own = pl_arena_new(0);
            at[i] = (uint8_t)(i % 3 == 0 ? 255 : was ^ 1 << i % 8);
            refusals += try_it(&s, &a.x, own) == PL_EDATA;
            at[i] = was;
            tries++;
            pl_arena_free(own);
        }
    }
    print_message("%d of %d damages refused\n", refusals, tries);
    assert_true(refusals > tries / 5);
    for (int left = (int)strlen(s.json) - 1; left > 0; left -= 5) {
        s.json = pl_sprintf(mem, "%.*s", left, s.json);
        assert_int_equal(try_it(&s, &a.x, mem), PL_EDATA);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_ARENA(values_that_teach_nothing_are_refused),
        WITH_ARENA(molecules_without_differences_are_learned),
        WITH_ARENA(a_stop_ends_learning_anywhere),
        WITH_ARENA(refused_memory_is_said),
        WITH_ARENA(a_damaged_process_is_refused_or_harmless),
    };

    return cmocka_run_group_tests_name("gp_refused", tests, NULL, NULL);
}
