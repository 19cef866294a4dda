/* SPDX-License-Identifier: Apache-2.0 */
/* Every request for memory during planning and running, in arenas and of the heap, refused in turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "heap.h"
#include "told.h"
#include "toy.h"
#include "unit/statements.h"

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
        pl_error err = { 0 };
        pl_code code;
        toy_make(&t, dir, 3);
        t.conf[1].offset = nth; /* another key: square and walk run again each time */
        pl_arena_refuse(nth);
        code = toy_run(&t, 1, &err);
        pl_arena_refuse(0);
        refused += code != PL_OK;
        if (!tells_for_what(err.text))
            fail_msg("request %ld: \"%s\"", nth, err.text);
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

/* ---- requests outside of arenas ---- */

static void memory_that_is_refused_ends_the_run_or_is_gone_without(void **state)
{
    char dir[256];
    int refused = 0, without = 0;
    toy t;

    (void)state;
    toy_directory(dir);
    for (long nth = 1; nth < 2000; nth++) {
        pl_error err = { 0 };
        pl_code code;
        toy_make(&t, dir, 1);
        t.conf[1].offset = nth;
        atomic_store(&heap_countdown, nth);
        code = toy_run(&t, 1, &err);
        if (atomic_exchange(&heap_countdown, 0) > 0) {
            assert_int_equal(code, PL_OK);
            toy_free(&t);
            break;
        }
        assert_true(code == PL_OK || code == PL_ENOMEM);
        if (code != PL_OK && (strstr(err.text, "memory") == NULL || !tells_for_what(err.text)))
            fail_msg("request %ld: \"%s\"", nth, err.text);
        refused += code == PL_ENOMEM;
        without += code == PL_OK; /* progress and the heartbeat may be missing */
        toy_free(&t);
    }
    print_message("%d refused, %d times gone without\n", refused, without);
    assert_true(refused > 10 && without >= 2);
    toy_make(&t, dir, 1);
    assert_int_equal(toy_run(&t, 1, NULL), PL_OK);
    assert_true(toy_sound(&t));
    toy_free(&t);
    toy_remove(dir);
    nothing_is_left_open();
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(refused_memory_stops_a_run_that_can_go_on),
                                        cmocka_unit_test(memory_that_is_refused_ends_the_run_or_is_gone_without) };
    return cmocka_run_group_tests_name("plan, refused memory", tests, NULL, NULL);
}
