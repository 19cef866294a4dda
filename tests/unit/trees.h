/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/trees.h - for tests that learn trees. Include it after cmocka.h. */
#ifndef TESTS_TREES_H
#define TESTS_TREES_H

#include "models/family/xgboost.h"
#include "tests/unit/arena_state.h"

/* Skips the test where XGBoost is not installed. */
static inline void need_library(void)
{
    if (nn_xgboost_missing() != NULL) {
        print_message("%s\n", nn_xgboost_missing());
        skip();
    }
}

#endif
