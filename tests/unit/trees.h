/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/trees.h - what tests of trees begin with. Include it after cmocka.h. */
#ifndef TESTS_TREES_H
#define TESTS_TREES_H

#include "models/family/xgboost.h"
#include "pipeline/base/arena.h"

/* The state of a test is memory. */
static inline int trees_setup(void **state)
{
    *state = pl_arena_new(0);
    return *state != NULL ? 0 : -1;
}

static inline int trees_teardown(void **state)
{
    pl_arena_free(*state);
    return 0;
}

/* Skips the test where XGBoost is not installed. */
static inline void need_library(void)
{
    if (nn_xgboost_missing() != NULL) {
        print_message("%s\n", nn_xgboost_missing());
        skip();
    }
}

#endif
