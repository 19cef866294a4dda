/* SPDX-License-Identifier: Apache-2.0 */
/* The table of `molsieve repeat`: errors of made-up splits. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "stages/commands/repeat_table.h"

enum { SPLITS = 4 };

static const char *const key[SPLITS] = { "a", "b", "c", "d" };

static void row_add(json_t *rows, const char *metric, double value)
{
    assert_int_equal(json_array_append_new(rows, json_pack("{s:s, s:s, s:s, s:f, s:s, s:i}", "property", "gap", "part", "test",
                                                           "metric", metric, "value", value, "unit", "eV", "n", 10)),
                     0);
}

/* The number `what` in the row of a metric; NAN: it is null. */
static double number_of(const json_t *table, const char *metric, const char *what)
{
    const json_t *row;
    size_t i;

    json_array_foreach(table, i, row)
        if (strcmp(json_string_value(json_object_get(row, "metric")), metric) == 0)
            return json_is_number(json_object_get(row, what)) ? json_number_value(json_object_get(row, what)) : NAN;
    fail_msg("there is no %s", metric);
    return NAN;
}

/* The table of splits whose errors are model[] and, less `better`, those of the mean. */
static json_t *table_of(const double model[SPLITS], const double better[SPLITS])
{
    json_t *known = json_object();
    const st_repeated r = { .known = known, .key = key, .n = SPLITS };
    json_t *table;

    for (int k = 0; k < SPLITS; k++) {
        json_t *rows = json_array();
        row_add(rows, "mae", model[k]);
        row_add(rows, "mean.mae", model[k] + better[k]);
        assert_int_equal(json_object_set_new(known, key[k], rows), 0);
    }
    table = st_repeat_table(&r);
    json_decref(known);
    return table;
}

/* Of 0, 1, 2 and 3 beside a large number the deviation is sqrt(5/3). */
static void a_deviation_does_not_depend_on_the_mean(void **state)
{
    const double better[SPLITS] = { 0 };

    (void)state;
    for (double mean = 0; mean < 2e15; mean = mean * 10 + 1) {
        const double model[SPLITS] = { mean, mean + 1, mean + 2, mean + 3 };
        json_t *table = table_of(model, better);
        if (!(fabs(number_of(table, "mae", "stdev") - sqrt(5.0 / 3)) <= 1e-12))
            fail_msg("beside %g it is %.17g", mean, number_of(table, "mae", "stdev"));
        json_decref(table);
    }
}

static void equal_errors_have_no_deviation(void **state)
{
    const double model[SPLITS] = { 0.1, 0.1, 0.1, 0.1 }, better[SPLITS] = { 0 };
    json_t *table = table_of(model, better);

    (void)state;
    assert_true(number_of(table, "mae", "stdev") == 0 && number_of(table, "mean.mae", "difference95") == 0);
    json_decref(table);
}

/* Squares that overflow gave a deviation of 0. */
static void a_deviation_that_is_too_large_is_not_known(void **state)
{
    const double model[SPLITS] = { 1e200, 2e200, 3e200, 4e200 }, better[SPLITS] = { 1e200, 2e200, 1e200, 2e200 };
    json_t *table = table_of(model, better);

    (void)state;
    assert_true(isnan(number_of(table, "mae", "stdev")) && isnan(number_of(table, "mean.mae", "difference95")));
    json_decref(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_deviation_does_not_depend_on_the_mean),
        cmocka_unit_test(equal_errors_have_no_deviation),
        cmocka_unit_test(a_deviation_that_is_too_large_is_not_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
