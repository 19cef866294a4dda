/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/arena_state.h - tests whose state is an arena. Include it after cmocka.h. */
#ifndef TESTS_ARENA_STATE_H
#define TESTS_ARENA_STATE_H

#include "pipeline/base/arena.h"

static inline int arena_setup(void **state)
{
    *state = pl_arena_new(0);
    return *state != NULL ? 0 : -1;
}

static inline int arena_teardown(void **state)
{
    pl_arena_free(*state);
    return 0;
}

#define WITH_ARENA(f) cmocka_unit_test_setup_teardown(f, arena_setup, arena_teardown)

#endif
