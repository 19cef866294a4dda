/* SPDX-License-Identifier: Apache-2.0 */
/* Epochs that fit into a time, without a clock. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "models/training/budget.h"

/* An epoch of 12 s, of which one is over. */
static nn_budget usual(void)
{
    return (nn_budget){ .seconds = 120, .used = 12, .step = 0.5, .steps = 20, .evaluation = 2, .over = 1, .most = 1000 };
}

static void whole_epochs_fill_the_time(void **state)
{
    nn_budget b = usual();

    (void)state;
    assert_int_equal(nn_budget_epochs(&b), 10);
    b.seconds = 119.9;
    assert_int_equal(nn_budget_epochs(&b), 9);
    b.used = 30; /* a slow first epoch takes from the others */
    assert_int_equal(nn_budget_epochs(&b), 1 + 7);
    b = usual();
    b.evaluation = 0;
    assert_int_equal(nn_budget_epochs(&b), 1 + 10);
    b = usual();
    b.used = b.over = 0; /* a plan, before anything was done */
    assert_int_equal(nn_budget_epochs(&b), 10);
}

static void the_smaller_of_epochs_and_time_holds(void **state)
{
    nn_budget b = usual();

    (void)state;
    b.most = 5;
    assert_int_equal(nn_budget_epochs(&b), 5);
    b.most = 10;
    assert_int_equal(nn_budget_epochs(&b), 10);
    b.most = 1;
    assert_int_equal(nn_budget_epochs(&b), 1);
    b.over = 3;
    assert_int_equal(nn_budget_epochs(&b), 3);
}

static void no_time_left_ends_with_what_is_over(void **state)
{
    nn_budget b = usual();

    (void)state;
    b.used = 120;
    assert_int_equal(nn_budget_epochs(&b), 1);
    b.used = 1e9;
    assert_int_equal(nn_budget_epochs(&b), 1);
    b.over = 0;
    assert_int_equal(nn_budget_epochs(&b), 1);
    b.over = 4;
    assert_int_equal(nn_budget_epochs(&b), 4);
}

/* What a clock that stands still, or a number that is none, would give. */
static void odd_times_give_a_number_in_range(void **state)
{
    nn_budget b = usual();

    (void)state;
    b.step = b.evaluation = 0;
    assert_int_equal(nn_budget_epochs(&b), 1000);
    b.used = b.seconds; /* 0 / 0 */
    assert_int_equal(nn_budget_epochs(&b), 1000);
    b.step = NAN;
    assert_int_equal(nn_budget_epochs(&b), 1000);
    b = usual();
    b.step = 1e-300;
    b.evaluation = 0;
    assert_int_equal(nn_budget_epochs(&b), 1000);
    b.step = INFINITY;
    assert_int_equal(nn_budget_epochs(&b), 1);
    b = usual();
    b.used = NAN;
    assert_in_range(nn_budget_epochs(&b), 1, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_epochs_fill_the_time),
        cmocka_unit_test(the_smaller_of_epochs_and_time_holds),
        cmocka_unit_test(no_time_left_ends_with_what_is_over),
        cmocka_unit_test(odd_times_give_a_number_in_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
