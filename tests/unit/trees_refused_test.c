/* SPDX-License-Identifier: Apache-2.0 */
/* XGBoost's library, each of whose calls fails in turn, and which says that it has a GPU: what the user is told, which options it gets,
 * and that all it made is freed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "family_toy.h"
#include "tests/unit/held.h"
#include "tests/unit/own_xgboost.h"
#include "tests/unit/trees.h"

/* ---- the library's functions, each behind one of ours ---- */

static int calls, failing;     /* calls that may fail so far; the one that does, 0: none */
static const char *why;        /* the library's words for it */
static int n_rows, n_boosters; /* that are open */
static char options[2000];     /* NAME=VALUE, in the order in which they were set */
static char global[100];       /* the last settings of the whole library */
static bool on_gpu;

static bool fails(void) { return ++calls == failing; }

static const char *our_error(void) { return why != NULL ? why : real.last_error(); }

static void our_version(int *major, int *minor, int *patch)
{
    *major = 2;
    *minor = 1;
    *patch = 3;
}

static int our_build(const char **json)
{
    *json = "{\"USE_CUDA\":true}";
    return 0;
}

static int our_global(const char *json)
{
    (void)snprintf(global, sizeof global, "%s", json);
    return real.set_global(json);
}

static int our_rows_open(const char *first, const char *column, const char *value, uint64_t n_columns, const char *settings,
                         void **out)
{
    const int rc = fails() ? -1 : real.rows_open(first, column, value, n_columns, settings, out);

    n_rows += rc == 0;
    return rc;
}

static int our_rows_floats(void *rows, const char *field, const float *value, uint64_t n)
{
    return fails() ? -1 : real.rows_floats(rows, field, value, n);
}

static int our_rows_free(void *rows)
{
    n_rows--;
    return real.rows_free(rows);
}

static int our_open(void *const rows[], uint64_t n, void **out)
{
    const int rc = fails() ? -1 : real.open(rows, n, out);

    n_boosters += rc == 0;
    return rc;
}

/* The library of the test is older and does not know `device`. */
static int our_option(void *booster, const char *name, const char *value)
{
    const size_t at = strlen(options);

    (void)snprintf(options + at, sizeof options - at, "%s=%s ", name, value);
    if (fails())
        return -1;
    return strcmp(name, "device") == 0 ? 0 : real.option(booster, name, value);
}

static int our_config(void *booster, uint64_t *n, const char **json)
{
    if (fails())
        return -1;
    if (!on_gpu)
        return real.config(booster, n, json);
    *json = "{\"learner\":{\"generic_param\":{\"device\":\"cuda:0\"}}}";
    *n = strlen(*json);
    return 0;
}

static int our_round(void *booster, int round, void *rows) { return fails() ? -1 : real.round(booster, round, rows); }

static int our_round_by(void *booster, void *rows, float *first, float *second, uint64_t n)
{
    return fails() ? -1 : real.round_by(booster, rows, first, second, n);
}

static int our_dump(void *booster, const char *map, int with_covers, const char *format, uint64_t *n, const char ***out)
{
    return fails() ? -1 : real.dump(booster, map, with_covers, format, n, out);
}

static int our_predict(void *booster, void *rows, const char *settings, const uint64_t **shape, uint64_t *n_dims, const float **out)
{
    return fails() ? -1 : real.predict(booster, rows, settings, shape, n_dims, out);
}

static int our_free(void *booster)
{
    n_boosters--;
    return real.free(booster);
}

static const nn_xgboost_calls all_of_ours = { .last_error = our_error,
                                              .version = our_version,
                                              .build = our_build,
                                              .set_global = our_global,
                                              .rows_open = our_rows_open,
                                              .rows_floats = our_rows_floats,
                                              .rows_free = our_rows_free,
                                              .open = our_open,
                                              .option = our_option,
                                              .config = our_config,
                                              .round = our_round,
                                              .round_by = our_round_by,
                                              .dump = our_dump,
                                              .predict = our_predict,
                                              .free = our_free };

/* Nothing fails; on a processor. */
static int setup(void **state)
{
    calls = failing = 0;
    why = NULL;
    on_gpu = false;
    options[0] = '\0';
    return arena_setup(state);
}

/* ---- each call in turn ---- */

/* All functions of xgboost.h on two rows of one column, up to the first error. */
static pl_code all_calls(pl_error *err)
{
    static const size_t first[] = { 0, 1, 2 };
    static const unsigned column[] = { 0, 0 };
    static const float value[] = { 1, 2 }, y[] = { 0, 1 }, weight[] = { 1, 3 };
    static const nn_option three[] = { { "max_depth", "2" }, { "eta", "0.3" }, { "objective", "binary:logistic" } };
    const nn_sparse x = { 2, 1, first, column, value };
    float learned[2] = { 0, 0 }, margin[2] = { 1, 1 }, part[4] = { 2, 2, 2, 2 }, one[] = { 9, -9 }, second[] = { 1, 1 };
    const char *const *tree;
    nn_booster *b = NULL;
    bool gpu = true;
    int n;
    pl_code code = nn_booster_open(&b, &x, y, 0.5F, three, 3, err);

    if (code == PL_OK)
        code = nn_booster_weights(b, weight, err);
    if (code == PL_OK)
        code = nn_booster_device(b, &gpu, err);
    if (code == PL_OK)
        code = nn_booster_labels(b, y, err);
    if (code == PL_OK)
        code = nn_booster_round(b, 0, err);
    if (code == PL_OK)
        code = nn_booster_round_by(b, one, second, err);
    if (code == PL_OK)
        code = nn_booster_learned(b, learned, err);
    if (code == PL_OK)
        code = nn_booster_margins(b, &x, 0.5F, margin, err);
    if (code == PL_OK)
        code = nn_booster_parts(b, &x, 0.5F, part, err);
    if (code == PL_OK)
        code = nn_booster_trees(b, &tree, &n, err);
    nn_booster_close(b);
    assert_true(code != PL_OK || !gpu);
    for (int i = 0; code == PL_OK && i < 2; i++) /* margins, and no probabilities */
        assert_true(learned[i] == margin[i] && fabsf(part[2 * i] + part[2 * i + 1] - margin[i]) < 1e-5F);
    assert_true(code != PL_OK || learned[0] < 0 || learned[1] > 1);
    return code;
}

static void an_error_of_the_library_ends_at_any_call(void **unused)
{
    static const char *const doing[] = { "reading the table",  "reading the values",
                                         "reading the values", "beginning",
                                         "max_depth",          "eta",
                                         "objective",          "reading the weights",
                                         "telling its device", "reading the values",
                                         "learning",           "learning",
                                         "predicting",         "reading the table",
                                         "reading the values", "predicting",
                                         "reading the table",  "reading the values",
                                         "predicting",         "writing its trees" };
    enum { CALLS = sizeof doing / sizeof *doing };

    (void)unused;
    need_library();
    for (int nth = 1; nth <= CALLS; nth++)
        for (int memory = 0; memory < 2; memory++) {
            pl_error err = { 0 };
            char want[100];
            calls = 0;
            failing = nth;
            why = memory ? "std::bad_alloc" : "injected\nStack trace:\n  somewhere";
            assert_int_equal(all_calls(&err), memory ? PL_ENOMEM : PL_EBUG);
            assert_int_equal(calls, nth);
            (void)snprintf(want, sizeof want, memory ? "no memory for XGBoost %s" : "XGBoost 2.1.3, %s: injected", doing[nth - 1]);
            assert_string_equal(err.text, want);
            assert_true(n_rows == 0 && n_boosters == 0);
        }
    failing = 0;
    calls = 0;
    assert_int_equal(all_calls(NULL), PL_OK);
    assert_true(calls == CALLS && n_rows == 0 && n_boosters == 0);
    assert_string_equal(global, "{\"verbosity\":0}"); /* its warnings are not for the user */
}

/* The first calls of trees, of trees in limits and of a forest: their beginning and several rounds. */
static void an_error_of_the_library_ends_a_training(void **state)
{
    enum { MOLECULES = 14, CALLS = 30 };
    double low[MOLECULES], limit[MOLECULES];
    pl_arena *mem = *state;
    family_toy a;
    nn_member *m;

    need_library();
    assert_true(family_toy_make(&a, MOLECULES, 1, mem));
    for (int i = 0; i < MOLECULES; i++) {
        low[i] = a.y[i];
        limit[i] = i < 3 ? INFINITY : a.y[i]; /* three are not measured */
    }
    for (int way = 0; way < 3; way++)
        for (int nth = 1; nth <= CALLS; nth++) {
            const nn_fit_conf conf = { .seed = 1, .high = way == 1 ? limit : NULL };
            pl_error err = { 0 };
            calls = 0;
            failing = nth;
            why = "injected";
            if ((way == 2 ? &nn_forest : &nn_trees)->fit(&m, &a.x, low, &conf, mem, &err) != PL_EBUG || calls != nth)
                fail_msg("way %d, call %d: %d calls, \"%s\"", way, nth, calls, err.text);
            assert_true(n_rows == 0 && n_boosters == 0);
        }
}

/* ---- what it is asked for ---- */

static bool at_once(void *ctx)
{
    (void)ctx;
    return true;
}

/* The options of a recipe, whose numbers were chosen by measurements. */
static void asked_for(const nn_member_kind *kind, bool cuda, bool classes, const char *want, pl_arena *mem)
{
    const nn_fit_conf conf = { .seed = 5, .classifies = classes, .cuda = cuda, .stop = at_once };
    pl_error err = { 0 };
    family_toy a;
    nn_member *m;

    assert_true(family_toy_make(&a, 10, 1, mem));
    for (int i = 0; i < 10; i++)
        a.classes[i] = i % 2;
    options[0] = '\0';
    assert_int_equal(kind->fit(&m, &a.x, classes ? a.classes : a.y, &conf, mem, &err), PL_ESTOP);
    assert_string_equal(options, want);
    assert_true(n_rows == 0 && n_boosters == 0);
}

#define COMMON "base_score=0.5 tree_method=hist nthread=1 seed=5 disable_default_eval_metric=1 "

#define TREES "max_bin=64 eta=0.05 max_depth=5 subsample=0.8 colsample_bytree=0.3 min_child_weight=2 "
#define FOREST "max_bin=64 eta=0.005 max_depth=40 lambda=0 min_child_weight=1 "

static void recipes_are_those_that_were_measured(void **state)
{
    need_library();
    asked_for(&nn_trees, false, false, "objective=reg:squarederror " COMMON "seed_per_iteration=1 " TREES, *state);
    asked_for(&nn_trees, false, true, "objective=binary:logistic " COMMON "seed_per_iteration=1 " TREES, *state);
    asked_for(&nn_trees, true, true, "objective=binary:logistic " COMMON "device=cuda seed_per_iteration=1 " TREES, *state);
    asked_for(&nn_forest, false, false, "objective=reg:squarederror " COMMON "colsample_bynode=0.33333334 " FOREST, *state);
    /* 1.5 / sqrt(131 columns + 2.25) */
    asked_for(&nn_forest, true, true, "objective=reg:squarederror " COMMON "device=cuda colsample_bynode=0.12994443 " FOREST,
              *state);
}

/* ---- on a GPU ---- */

static void a_library_on_a_gpu_is_named(void **state)
{
    pl_arena *mem = *state;
    family_toy a;
    nn_member *m;

    need_library();
    assert_true(nn_xgboost_has_cuda());
    assert_string_equal(nn_xgboost_version(), "2.1.3");
    assert_true(family_toy_make(&a, 10, 1, mem));
    assert_int_equal(nn_forest.fit(&m, &a.x, a.y, &(nn_fit_conf){ .seed = 1 }, mem, NULL), PL_OK);
    assert_memory_equal(nn_forest.describe(m, mem), "200 trees, ", 11);
    for (int gpu = 0; gpu < 2; gpu++) {
        on_gpu = gpu;
        assert_int_equal(nn_trees.fit(&m, &a.x, a.y, &(nn_fit_conf){ .cuda = true }, mem, NULL), PL_OK);
        assert_memory_equal(nn_trees.describe(m, mem), "600 trees, ", 11);
        assert_non_null(strstr(nn_trees.describe(m, mem), gpu ? ", XGBoost 2.1.3 on a GPU" : ", XGBoost 2.1.3"));
        assert_int_equal(strstr(nn_trees.describe(m, mem), "GPU") != NULL, gpu);
    }
}

typedef struct saved {
    const nn_member_kind *kind;
    nn_tensor *t;
    int n;
    const char *json;
} saved;

/* Good settings, and settings that are refused. */
static void open_once(void *ctx)
{
    const saved *s = ctx;
    const nn_tensors all = { .n = s->n, .t = s->t };
    pl_arena *own = pl_arena_new(0);
    nn_member *m;

    assert_int_equal(s->kind->open(&m, "p", &all, s->json, own, NULL), PL_OK);
    assert_int_equal(s->kind->open(&m, "p", &all, "{\"start\":1}", own, NULL), PL_EDATA);
    pl_arena_free(own);
}

static void opening_holds_nothing(void **state)
{
    const nn_member_kind *const kinds[] = { &nn_trees, &nn_gp };
    pl_arena *mem = *state;
    family_toy a;

    need_library();
    assert_true(family_toy_make(&a, 10, 1, mem));
    for (int k = 0; k < 2; k++) {
        saved s = { .kind = kinds[k] };
        nn_member *m;
        assert_int_equal(kinds[k]->fit(&m, &a.x, a.y, &(nn_fit_conf){ 0 }, mem, NULL), PL_OK);
        assert_int_equal(kinds[k]->save(m, "p", &s.t, &s.n, &s.json, mem, NULL), PL_OK);
        assert_holds_nothing(open_once, &s);
    }
}

/* Each request for memory in turn, up to the first round. */
static void refused_memory_before_the_rounds_is_said(void **state)
{
    const nn_fit_conf conf = { .cuda = true, .classifies = true, .weight = { 1, 2 }, .stop = at_once };
    const nn_member_kind *const kinds[] = { &nn_trees, &nn_forest };
    pl_arena *mem = *state;
    family_toy a;

    need_library();
    on_gpu = true;
    assert_true(family_toy_make(&a, 10, 1, mem));
    for (int i = 0; i < 10; i++)
        a.classes[i] = i % 2;
    for (int k = 0; k < 2; k++) {
        pl_code code = PL_ENOMEM;
        long n = 0;
        while (code == PL_ENOMEM) {
            pl_arena *own = pl_arena_new(0);
            pl_error err = { 0 };
            nn_member *m;
            pl_arena_refuse(++n);
            code = kinds[k]->fit(&m, &a.x, a.classes, &conf, own, &err);
            if (code == PL_ESTOP)
                assert_null(pl_arena_get(own, 1, 1)); /* none was refused so far */
            pl_arena_refuse(0);
            assert_true(err.text[0] != '\0' && n_rows == 0 && n_boosters == 0);
            pl_arena_free(own);
        }
        assert_int_equal(code, PL_ESTOP);
        assert_true(n > 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_error_of_the_library_ends_at_any_call, setup, arena_teardown),
        cmocka_unit_test_setup_teardown(an_error_of_the_library_ends_a_training, setup, arena_teardown),
        cmocka_unit_test_setup_teardown(recipes_are_those_that_were_measured, setup, arena_teardown),
        cmocka_unit_test_setup_teardown(a_library_on_a_gpu_is_named, setup, arena_teardown),
        cmocka_unit_test_setup_teardown(opening_holds_nothing, setup, arena_teardown),
        cmocka_unit_test_setup_teardown(refused_memory_before_the_rounds_is_said, setup, arena_teardown),
    };

    ours = all_of_ours;
    return cmocka_run_group_tests_name("trees_refused", tests, NULL, NULL);
}
