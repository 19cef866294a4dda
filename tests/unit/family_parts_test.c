/* SPDX-License-Identifier: Apache-2.0 */
/* What members of a family ask of values and columns, by numbers that are computed by hand. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "models/family/columns.h"
#include "models/family/family.h"
#include "models/family/labels.h"
#include "models/family/xgboost.h"

/* ---- values ---- */

/* The message for y [n], or "" where they can be learned. */
static const char *says(const double *y, int32_t n, bool classes)
{
    static pl_error err;
    double mean, stdev;

    err = (pl_error){ 0 };
    if (nn_labels_check(y, n, classes, &mean, &stdev, &err) == PL_OK)
        return "";
    assert_int_equal(nn_labels_check(y, n, classes, &mean, &stdev, NULL), PL_ECONFIG);
    return err.text;
}

static void values_have_their_mean_and_deviation(void **unused)
{
    double y[10], mean, stdev;

    (void)unused;
    for (int i = 0; i < 10; i++)
        y[i] = 2 * i - 7;
    assert_int_equal(nn_labels_check(y, 10, false, &mean, &stdev, NULL), PL_OK);
    assert_true(fabs(mean - 2) < 1e-14 && fabs(stdev - sqrt(33)) < 1e-13);
    for (int i = 0; i < 10; i++)
        y[i] = i < 3;
    assert_int_equal(nn_labels_check(y, 10, true, &mean, &stdev, NULL), PL_OK);
    assert_true(fabs(mean - 0.3) < 1e-15 && fabs(stdev - sqrt(0.21)) < 1e-15);
    for (int i = 0; i < 10; i++) /* whose sum and range no number holds */
        y[i] = i < 5 ? DBL_MAX : -DBL_MAX;
    assert_int_equal(nn_labels_check(y, 10, false, &mean, &stdev, NULL), PL_OK);
    assert_true(fabs(mean) < 1e-10 * DBL_MAX && fabs(stdev / DBL_MAX - 1) < 1e-10);
}

static void values_that_cannot_be_learned_are_told_apart(void **unused)
{
    double y[12];

    (void)unused;
    for (int i = 0; i < 12; i++)
        y[i] = i % 2;
    assert_string_equal(says(y, 9, false), "9 training molecules; at least 10 are needed");
    assert_string_equal(says(y, 10, true), "");
    y[11] = 0.5;
    assert_string_equal(says(y, 12, true), "the class of training molecule 12 is 0.5; classes are 0 and 1");
    assert_string_equal(says(y, 12, false), "");
    y[0] = NAN;
    assert_string_equal(says(y, 12, false), "the value of training molecule 1 is not a number");
    y[0] = INFINITY;
    assert_string_equal(says(y, 12, true), "the value of training molecule 1 is not a number");
    for (int i = 0; i < 12; i++)
        y[i] = 1;
    assert_string_equal(says(y, 12, true), "all 12 training molecules are of class 1; both classes are needed");
    assert_string_equal(says(y, 12, false), "all 12 training molecules have the value 1: nothing can be learned");
    for (int i = 0; i < 12; i++)
        y[i] = -1;
    assert_string_equal(says(y, 12, false), "all 12 training molecules have the value -1: nothing can be learned");
    for (int i = 0; i < 12; i++)
        y[i] = i == 3 ? DBL_MAX : -DBL_MAX;
    assert_string_equal(says(y, 12, false), "the values of the training molecules span more than a number holds");
}

/* What the stage `train` may ask of each kind. */
static void kinds_say_what_they_can(void **unused)
{
    static const struct {
        const char *name;
        bool averaged, weighs, limits;
        int32_t most;
    } want[] = { { "trees", true, true, true, 0 }, { "forest", true, true, false, 0 }, { "gp", true, false, false, 10000 } };

    (void)unused;
    for (size_t k = 0; k < sizeof want / sizeof *want; k++) {
        const nn_member_kind *kind = nn_member_kind_of(want[k].name);
        assert_non_null(kind);
        assert_string_equal(kind->name, want[k].name);
        assert_true(kind->averaged == want[k].averaged && kind->weighs == want[k].weighs && kind->limits == want[k].limits);
        assert_int_equal(kind->most, want[k].most);
    }
    assert_null(nn_member_kind_of("tree"));
}

/* ---- the library of trees ---- */

/* The user names a file that is not XGBoost's library: no other one is used in its place. */
static void a_library_that_is_not_there_is_named(void **unused)
{
    static const char missing[] =
        "libxgboost.so.0 (Debian: libxgboost0); MOLSIEVE_XGBOOST names /nowhere/xgboost.so, which is not XGBoost's library";
    nn_booster *b = (nn_booster *)(void *)&b;
    pl_error err = { 0 };
    char want[300];

    (void)unused;
    assert_int_equal(setenv("MOLSIEVE_XGBOOST", "/nowhere/xgboost.so", 1), 0);
    assert_string_equal(nn_xgboost_missing(), missing);
    assert_string_equal(nn_xgboost_version(), "");
    assert_false(nn_xgboost_has_cuda());
    assert_int_equal(nn_booster_open(&b, &(nn_sparse){ 0 }, NULL, 0, NULL, 0, &err), PL_ECONFIG);
    assert_null(b);
    (void)snprintf(want, sizeof want, "trees are learned with XGBoost, which is not installed: %s", missing);
    assert_string_equal(err.text, want);
}

/* ---- columns ---- */

/* Two environments, one descriptor, two columns of the table. */
static uint32_t id[5];

static nn_columns columns(void)
{
    static const uint32_t good[5] = { 7, 9, CH_N_FEATURES - 1, 0, 2 };

    memcpy(id, good, sizeof id);
    return (nn_columns){ 2, 1, 2, id };
}

static void refused(const nn_columns *c, const char *text)
{
    pl_error err = { 0 };

    assert_int_equal(nn_columns_check(c, &err), PL_EDATA);
    assert_string_equal(err.text, text);
}

static void columns_that_a_file_may_not_have_are_refused(void **unused)
{
    nn_columns c = columns();
    pl_error err = { 0 };
    char text[60];

    (void)unused;
    assert_int_equal(nn_columns_check(&c, NULL), PL_OK);
    for (int k = 0; k < 2; k++) {
        const int last[] = { 1, 4 };
        c = columns();
        id[last[k]] = id[last[k] - 1];
        refused(&c, "its columns are not in ascending order");
    }
    c = columns();
    id[2] = id[1];
    c.n_environments--;
    c.n_features++;
    refused(&c, "its columns are not in ascending order"); /* of descriptors */
    c = columns();
    id[2]++;
    (void)snprintf(text, sizeof text, "descriptor %d does not exist", (int)CH_N_FEATURES);
    refused(&c, text);
    c = columns();
    id[4] = INT32_MAX;
    refused(&c, "column 2147483647 does not exist");
    id[4]--;
    assert_int_equal(nn_columns_check(&c, NULL), PL_OK);
    c = columns();
    assert_int_equal(nn_columns_fit(&c, &(nn_table){ .n_columns = 3 }, NULL), PL_OK);
    assert_int_equal(nn_columns_fit(&c, &(nn_table){ .n_columns = 2 }, &err), PL_ECONFIG);
    assert_string_equal(err.text, "the model reads column 3 of the table, which has 2");
    c.n_others = 0;
    assert_int_equal(nn_columns_fit(&c, &(nn_table){ .n_columns = 0 }, NULL), PL_OK);
}

static void only_columns_that_are_used_are_kept(void **unused)
{
    pl_arena *mem = pl_arena_new(0);
    nn_columns c = columns(), out;
    const bool used[] = { false, true, true, true, false };
    int32_t place[5];

    (void)unused;
    assert_int_equal(nn_columns_used(&out, &c, used, place, mem, NULL), PL_OK);
    assert_true(out.n_environments == 1 && out.n_features == 1 && out.n_others == 1 && nn_columns_count(&out) == 3);
    assert_true(out.id[0] == 9 && out.id[1] == CH_N_FEATURES - 1 && out.id[2] == 0);
    assert_true(place[1] == 0 && place[2] == 1 && place[3] == 2 && place[4] == 3);
    pl_arena_free(mem);
}

/* Three molecules: an environment counts if two of them have it. */
static void rows_have_what_a_molecule_has(void **unused)
{
    pl_arena *mem = pl_arena_new(0);
    ch_environment at[2][2] = { { { .id = 5, .count = 1 }, { .id = 9, .count = 4 } },
                                { { .id = 8, .count = 3 }, { .id = 9, .count = 2 } } };
    const ch_environments all[4] = { { .n = 2, .at = at[0] }, { .n = 2, .at = at[1] }, { .n = 0 }, { .n = 1 /* of no table */ } };
    const float features[3][CH_N_FEATURES] = { { 0.5F } };
    float row[CH_N_FEATURES + 3];
    const float table[3][2] = { { 1, INFINITY }, { NAN, 2 }, { 3, 4 } };
    const nn_table x = { .n = 3, .n_columns = 2, .environments = all, .features = features, .column = table[0] };
    const int n = CH_N_FEATURES + 3;
    const float last[] = { 1, 2, 4 };
    nn_columns c;
    nn_sparse s;

    (void)unused;
    assert_int_equal(nn_columns_of(&c, &x, 2, mem, NULL), PL_OK);
    assert_true(c.n_environments == 1 && c.id[0] == 9 && nn_columns_count(&c) == n);
    assert_int_equal(nn_columns_check(&c, NULL), PL_OK);
    nn_columns_row(row, &c, &x, 0);
    assert_true(row[0] == 4 && row[1] == 0.5F && row[n - 2] == 1 && isnan(row[n - 1]));
    nn_columns_row(row, &c, &x, 1);
    assert_true(row[0] == 2 && row[1] == 0 && isnan(row[n - 2]) && row[n - 1] == 2);
    nn_columns_row(row, &c, &x, 2);
    assert_true(isnan(row[0]) && row[n - 2] == 3 && row[n - 1] == 4);
    assert_int_equal(nn_columns_rows(&s, &c, &x, mem, NULL), PL_OK);
    assert_true(s.n == 3 && s.n_columns == n && s.first[0] == 0);
    for (int i = 0; i < 3; i++) { /* one value of each is absent */
        const size_t end = s.first[i + 1];
        assert_int_equal(end - s.first[i], n - 1);
        assert_true(s.column[s.first[i]] == (i == 2) && s.value[end - 1] == last[i]);
        assert_true(s.column[end - 1] == (unsigned)(i == 0 ? n - 2 : n - 1));
    }
    assert_int_equal(nn_columns_of(&c, &x, 1, mem, NULL), PL_OK);
    assert_true(c.n_environments == 3 && c.id[0] == 5 && c.id[1] == 8 && c.id[2] == 9);
    pl_arena_free(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_have_their_mean_and_deviation),
        cmocka_unit_test(values_that_cannot_be_learned_are_told_apart),
        cmocka_unit_test(kinds_say_what_they_can),
        cmocka_unit_test(a_library_that_is_not_there_is_named),
        cmocka_unit_test(columns_that_a_file_may_not_have_are_refused),
        cmocka_unit_test(only_columns_that_are_used_are_kept),
        cmocka_unit_test(rows_have_what_a_molecule_has),
    };

    return cmocka_run_group_tests_name("family_parts", tests, NULL, NULL);
}
