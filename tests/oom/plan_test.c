/* SPDX-License-Identifier: Apache-2.0 */
/* Every request for arena memory during planning and running, refused in turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "toy.h"

static void refused_memory_stops_a_run_that_can_go_on(void **state)
{
    char dir[256], clean[130], digest[130], place[256];
    int refused = 0;
    toy t;

    (void)state;
    toy_directory(place);
    toy_make(&t, place, 3);
    assert_int_equal(toy_run(&t, 1, NULL), PL_OK);
    toy_digest(&t, clean);
    toy_free(&t);
    toy_directory(dir);
    for (long nth = 1; nth < 2000; nth++) {
        pl_code code;
        toy_make(&t, dir, 3);
        t.conf[1].offset = nth; /* another key: square and walk run again each time */
        pl_arena_refuse(nth);
        code = toy_run(&t, 1, NULL);
        pl_arena_refuse(0);
        refused += code != PL_OK;
        assert_true(code == PL_OK || code == PL_ENOMEM || code == PL_EBUG);
        toy_free(&t);
        if (code == PL_OK)
            break;
    }
    assert_true(refused > 20);
    toy_make(&t, dir, 3);
    assert_int_equal(toy_run(&t, 1, NULL), PL_OK);
    assert_true(toy_sound(&t));
    toy_digest(&t, digest);
    assert_string_equal(digest, clean);
    toy_free(&t);
    print_message("%d requests refused\n", refused);
    toy_remove(dir);
    toy_remove(place);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(refused_memory_stops_a_run_that_can_go_on) };
    return cmocka_run_group_tests_name("plan, refused memory", tests, NULL, NULL);
}
