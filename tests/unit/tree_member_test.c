/* SPDX-License-Identifier: Apache-2.0 */
/* Trees as a member of a family: settings, predictions and explanations by hand; memory that is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "pipeline/base/text.h"
#include "tests/unit/guarded.h"
#include "tests/unit/made_trees.h"

static const char settings[] =
    "{\"classifies\":%s,\"log_odds\":%s,\"start\":0.5,\"mean\":10,\"scale\":2,\"library\":\"XGBoost 1.2.3\"}";

static nn_member *opened(const char *classifies, const char *log_odds)
{
    stored *s = PL_NEW(mem, stored, 1);
    nn_tensors all;
    nn_member *m;
    pl_error err = { 0 };

    store(s, "p");
    all = list_of(s->t);
    if (nn_boosted_open(&m, "p", &all, pl_sprintf(mem, settings, classifies, log_odds), mem, &err) != PL_OK)
        fail_msg("%s", err.text);
    return m;
}

static void wrong_settings_are_named(void **unused)
{
    static const struct {
        const char *json, *said;
    } cases[] = {
        { "[]", "the settings of p are no JSON object" },
        { "{", "the settings of p are no JSON object" },
        { "{\"mean\":1,\"scale\":1,\"library\":\"XGBoost 1\"}", "setting start is not a number" },
        { "{\"start\":1,\"mean\":\"1\",\"scale\":1,\"library\":\"XGBoost 1\"}", "setting mean is not a number" },
        { "{\"start\":1,\"mean\":1,\"scale\":null,\"library\":\"XGBoost 1\"}", "setting scale is not a number" },
        { "{\"start\":1e300,\"mean\":1,\"scale\":1,\"library\":\"XGBoost 1\"}",
          "settings start and library are not those of trees" },
        { "{\"start\":1,\"mean\":1,\"scale\":1}", "settings start and library are not those of trees" },
        { "{\"start\":1,\"mean\":1,\"scale\":1,\"library\":\"XGBoost1\"}", "settings start and library are not those of trees" },
    };
    stored s;

    (void)unused;
    store(&s, "p");
    const nn_tensors all = list_of(s.t);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        nn_member *m;
        pl_error err = { 0 };
        assert_int_equal(nn_boosted_open(&m, "p", &all, cases[i].json, mem, &err), PL_EDATA);
        assert_string_equal(err.text, cases[i].said);
    }
}

/* 70 molecules: environment 7 occurs 0 to 3 times, column 0 is -2 or, as in the second node, -1. */
enum { MOLECULES = 70 };

static nn_table molecules(void)
{
    static ch_environment at[MOLECULES];
    static ch_environments environments[MOLECULES];
    static float features[MOLECULES][CH_N_FEATURES], column[MOLECULES];

    for (int i = 0; i < MOLECULES; i++) {
        at[i] = (ch_environment){ 7, (uint32_t)(i % 4) };
        environments[i] = (ch_environments){ i % 4 != 0, &at[i] };
        column[i] = i % 3 ? -1 : -2;
    }
    return (nn_table){ MOLECULES, environments, (const float(*)[CH_N_FEATURES])features, 1, column };
}

static double leaf_of_column(int i) { return i % 3 ? 0.125 : -0.25; }
static double margin_of_molecule(int i) { return 0.5 + 1.5 + (i % 4 != 3 ? 0.5 : leaf_of_column(i)); }

static void values_and_classes_come_from_margins(void **unused)
{
    const nn_table x = molecules();
    double value[MOLECULES], variance[MOLECULES];

    (void)unused;
    memset(variance, 0, sizeof variance);
    assert_int_equal(nn_boosted_predict(opened("false", "false"), &x, value, variance, mem, NULL), PL_OK);
    for (int i = 0; i < MOLECULES; i++)
        assert_true(value[i] == 10 + 2 * margin_of_molecule(i) && isnan(variance[i]));
    assert_int_equal(nn_boosted_predict(opened("true", "true"), &x, value, NULL, mem, NULL), PL_OK);
    for (int i = 0; i < MOLECULES; i++)
        assert_true(fabs(value[i] - 1 / (1 + exp(-margin_of_molecule(i)))) < 1e-14);
    assert_int_equal(nn_boosted_predict(opened("true", "false"), &x, value, NULL, mem, NULL), PL_OK);
    for (int i = 0; i < MOLECULES; i++)
        assert_true(value[i] == 1 - 0.001);
    const nn_table none = { 1, x.environments, x.features, 0, NULL };
    pl_error err = { 0 };
    assert_int_equal(nn_boosted_predict(opened("false", "false"), &none, value, NULL, mem, &err), PL_ECONFIG);
    assert_string_equal(err.text, "the model reads column 1 of the table, which has 0");
}

/* Shares of class 1 stay within 0.001 and 0.999. */
static void shares_of_a_class_stay_off_0_and_1(void **unused)
{
    static const struct {
        double mean, value;
    } cases[] = {
        { -4.5, 0.001 }, { 0.001 - 4, 0.001 }, { 0.5 - 4, 0.5 }, { 0.999 - 4, 0.999 }, { 7, 0.999 }, { 0.002 - 4, 0.002 }
    };
    const nn_table x = { 1, molecules().environments, molecules().features, 1, molecules().column };
    stored s;

    (void)unused;
    store(&s, "p");
    const nn_tensors all = list_of(s.t);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        nn_member *m;
        double value;
        char mean[32];
        const char *json = pl_sprintf(mem, "{\"classifies\":true,\"start\":0,\"mean\":%s,\"scale\":2,\"library\":\"XGBoost 1\"}",
                                      pl_real_str(cases[i].mean, mean));
        assert_int_equal(nn_boosted_open(&m, "p", &all, json, mem, NULL), PL_OK);
        assert_int_equal(nn_boosted_predict(m, &x, &value, NULL, mem, NULL), PL_OK);
        assert_true(fabs(value - cases[i].value) < 1e-12);
    }
}

/* By Shapley's formula for the two columns. */
static void a_prediction_is_explained_by_what_the_molecule_has(void **unused)
{
    const nn_table x = molecules();
    nn_member *m = opened("false", "false");

    (void)unused;
    for (int i = 0; i < 12; i++) {
        const double a = 102 / 255.0, b = 43 / 255.0, right = b * -0.25 + (1 - b) * 0.125, none = a * 0.5 + (1 - a) * right;
        const double deep_leaf = leaf_of_column(i), both = margin_of_molecule(i) - 2;
        const double first = i % 4 != 3 ? 0.5 : right, second = a * 0.5 + (1 - a) * deep_leaf;
        const double by_environment = 2 * (first - none + both - second) / 2, by_column = 2 * (second - none + both - first) / 2;
        nn_parts parts;

        assert_int_equal(nn_boosted_explain(m, &x, i, &parts, mem, NULL), PL_OK);
        assert_false(parts.log_odds);
        assert_true(fabs(parts.base - (10 + 2 * (2 + none))) < 1e-12);
        assert_true(fabs(parts.column[0] - by_column) < 1e-12);
        if (i % 4 == 0)
            assert_true(fabs(parts.absent - by_environment) < 1e-12);
        else
            assert_true(parts.absent == 0 && fabs(parts.environment[0] - by_environment) < 1e-12);
        for (int k = 0; k < CH_N_FEATURES; k++)
            assert_true(parts.feature[k] == 0);
    }
    nn_parts parts;
    assert_int_equal(nn_boosted_explain(opened("true", "true"), &x, 0, &parts, mem, NULL), PL_OK);
    assert_true(parts.log_odds);
}

static void a_member_is_described_and_saved_as_it_was(void **unused)
{
    nn_member *m = opened("true", "false");
    nn_tensor *t;
    const char *json;
    stored s;
    int n = 0;

    (void)unused;
    store(&s, "q");
    assert_string_equal(nn_boosted_describe(m, mem), "2 trees, 6 nodes, 2 columns, XGBoost 1.2.3");
    assert_int_equal(nn_boosted_save(m, "q", &t, &n, &json, mem, NULL), PL_OK);
    assert_int_equal(n, NN_TREE_TENSORS);
    assert_string_equal(json, pl_sprintf(mem, settings, "true", "false"));
    for (int k = 0; k < n; k++) {
        assert_string_equal(t[k].name, s.t[k].name);
        assert_memory_equal(t[k].data, s.t[k].data, s.t[k].count * nn_dtype_bytes(s.t[k].dtype));
    }
}

/* ---- memory that is refused: linked with -Wl,--wrap=pl_arena_get ---- */

static int until_refused; /* calls; 0: none is refused */
static bool guards;       /* requests get memory with nothing behind it */
void *__real_pl_arena_get(pl_arena *from, size_t n, size_t size);
void *__wrap_pl_arena_get(pl_arena *from, size_t n, size_t size);

void *__wrap_pl_arena_get(pl_arena *from, size_t n, size_t size)
{
    if (until_refused > 0 && --until_refused == 0)
        return NULL;
    return guards ? guarded(n, size) : __real_pl_arena_get(from, n, size);
}

typedef struct works {
    nn_tree_set set;
    stored s;
    nn_member *m;
    nn_table x;
} works;

static pl_code parses(works *w, pl_error *err)
{
    nn_tree_set s;

    (void)w;
    return nn_tree_set_parse(&s, good, 2, &all_columns, mem, err);
}

static pl_code stores(works *w, pl_error *err)
{
    nn_tensor t[NN_TREE_TENSORS];

    return nn_tree_set_tensors(t, &w->set, "p", mem, err);
}

static pl_code opens(works *w, pl_error *err)
{
    const nn_tensors all = list_of(w->s.t);
    nn_member *m;

    return nn_boosted_open(&m, "p", &all, "{\"start\":1,\"mean\":1,\"scale\":1,\"library\":\"XGBoost 1\"}", mem, err);
}

static pl_code saves(works *w, pl_error *err)
{
    const char *json;
    nn_tensor *t;
    int n;

    return nn_boosted_save(w->m, "p", &t, &n, &json, mem, err);
}

static pl_code predicts(works *w, pl_error *err)
{
    double value[MOLECULES];

    return nn_boosted_predict(w->m, &w->x, value, NULL, mem, err);
}

static pl_code explains(works *w, pl_error *err)
{
    nn_parts parts;

    return nn_boosted_explain(w->m, &w->x, 0, &parts, mem, err);
}

static pl_code makes_rows(works *w, pl_error *err)
{
    nn_columns c;
    nn_sparse rows_of;
    const pl_code code = nn_columns_of(&c, &w->x, 1, mem, err);

    return code == PL_OK ? nn_columns_rows(&rows_of, &c, &w->x, mem, err) : code;
}

/* Descriptors only: all that was asked for is used. */
static pl_code makes_columns(works *w, pl_error *err)
{
    const ch_environments none = { 0 };
    nn_columns c;

    return nn_columns_of(&c, &(nn_table){ .n = 1, .environments = &none, .features = w->x.features }, 1, mem, err);
}

static pl_code (*const all_works[])(works *, pl_error *) = { parses,   stores,   opens,      saves,
                                                             predicts, explains, makes_rows, makes_columns };
enum { WORKS = sizeof all_works / sizeof *all_works };

static void memory_is_used_to_its_end_and_no_further(void **unused)
{
    works w = { .set = made(), .m = opened("false", "false"), .x = molecules() };

    (void)unused;
    store(&w.s, "p");
    guards = true;
    for (int k = 0; k < WORKS; k++)
        assert_int_equal(all_works[k](&w, NULL), PL_OK);
    guards = false;
}

/* Each request in turn. */
static void memory_that_is_refused_is_told(void **unused)
{
    works w = { .set = made(), .m = opened("false", "false"), .x = molecules() };

    (void)unused;
    store(&w.s, "p");
    for (int k = 0; k < WORKS; k++) {
        pl_code code = PL_ENOMEM;
        int n = 0;
        while (code != PL_OK) {
            pl_error err = { 0 };
            until_refused = ++n;
            code = all_works[k](&w, &err);
            if (code == PL_OK)
                assert_int_equal(until_refused, 1); /* none was refused so far */
            until_refused = 0;
            if (code != PL_OK && (code != PL_ENOMEM || err.text[0] == '\0'))
                fail_msg("%d, request %d: %d, \"%s\"", k, n, (int)code, err.text);
        }
        assert_true(n > 1);
    }
    until_refused = 1;
    assert_null(nn_boosted_describe(w.m, mem));
    until_refused = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(wrong_settings_are_named, setup, teardown),
        cmocka_unit_test_setup_teardown(values_and_classes_come_from_margins, setup, teardown),
        cmocka_unit_test_setup_teardown(shares_of_a_class_stay_off_0_and_1, setup, teardown),
        cmocka_unit_test_setup_teardown(a_prediction_is_explained_by_what_the_molecule_has, setup, teardown),
        cmocka_unit_test_setup_teardown(a_member_is_described_and_saved_as_it_was, setup, teardown),
        cmocka_unit_test_setup_teardown(memory_that_is_refused_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(memory_is_used_to_its_end_and_no_further, setup, teardown),
    };

    return cmocka_run_group_tests_name("tree_member", tests, NULL, NULL);
}
