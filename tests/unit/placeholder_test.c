/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "stages/steps/ingest/placeholder.h"

/* The line that is told of `n` numbers, the first in line 2. */
static int64_t told(char what[ST_PLACEHOLDER_BYTES], const double *value, int n)
{
    st_placeholders p = { .n_others = 0 };

    for (int i = 0; i < n; i++)
        st_placeholders_add(&p, value[i], 2 + i);
    return st_placeholders_say(what, &p, "y");
}

#define TOLD(what, ...) told(what, (const double[]){ __VA_ARGS__ }, (int)(sizeof((const double[]){ __VA_ARGS__ }) / sizeof(double)))

static void nines_far_from_all_others_are_told(void **state)
{
    char what[ST_PLACEHOLDER_BYTES] = "";

    (void)state;
    assert_int_equal(TOLD(what, -1, 0.5, -999, 2.4, -999, -999, -3.1), 4);
    assert_string_equal(what,
                        "y is -999 in 3 rows, and between -3.1 and 2.4 in others: if that means \"not measured\", leave these "
                        "cells empty");
    assert_int_equal(TOLD(what, 99, 99, 1, 2), 2);
    assert_int_equal(TOLD(what, -99.9, -99.9, 1, 2), 2);
    assert_int_equal(TOLD(what, 9999999, 1, 9999999, 2), 2);
    assert_int_equal(TOLD(what, 1, 2, 999.9, 999.9), 4);
    /* The second of two kinds, and both beside numbers with other nines. */
    assert_int_equal(TOLD(what, 1, 999, 2, -999, -999), 5);
    assert_int_equal(TOLD(what, 1, 99, 999, 9999, 99999, 2, -99, -99, 99999), 6);
}

static void other_numbers_are_not(void **state)
{
    char what[ST_PLACEHOLDER_BYTES];

    (void)state;
    assert_int_equal(TOLD(what, 1, 2, -999), 0);       /* one row */
    assert_int_equal(TOLD(what, 1, 2, 1000, 1000), 0); /* no nines */
    assert_int_equal(TOLD(what, 1, 2, 9, 9), 0);       /* one nine */
    assert_int_equal(TOLD(what, 1, 2, 998.9, 998.9), 0);
    assert_int_equal(TOLD(what, 1, 2, 99.98, 99.98), 0);
    assert_int_equal(TOLD(what, 1, 50, 99, 99), 0); /* near: up to 50 more */
    assert_int_equal(TOLD(what, 1, 49, 99, 99), 4);
    assert_int_equal(TOLD(what, 1, 50, -99, -99), 4);
    assert_int_equal(TOLD(what, 1, 102, -99, -99), 0);
    assert_int_equal(TOLD(what, -999, -999, -999), 0); /* nothing to compare it with */
    assert_int_equal(TOLD(what, 5, 5, -999, -999), 0);
    assert_int_equal(TOLD(what, 1, INFINITY, 999, 999), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nines_far_from_all_others_are_told),
        cmocka_unit_test(other_numbers_are_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
