/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/own_xgboost.h - puts functions of a test in place of those of XGBoost's library. The test fills `ours` before the library is
 * opened; what it leaves NULL is the library's own, and `real` has all of those. Linked with -Wl,--wrap=dlsym. Include it once. */
#ifndef TESTS_OWN_XGBOOST_H
#define TESTS_OWN_XGBOOST_H

#include <string.h>

#include "models/family/xgboost_calls.h"

static nn_xgboost_calls real, ours;

void *__real_dlsym(void *from, const char *name);
void *__wrap_dlsym(void *from, const char *name);

void *__wrap_dlsym(void *from, const char *name)
{
    void *is = __real_dlsym(from, name), *own = NULL;

    for (int k = 0; is != NULL && k < NN_XGBOOST_CALLS; k++)
        if (strcmp(name, nn_xgboost_names[k].name) == 0) {
            memcpy((char *)&real + nn_xgboost_names[k].at, &is, sizeof is);
            memcpy(&own, (char *)&ours + nn_xgboost_names[k].at, sizeof own);
        }
    return own != NULL ? own : is;
}

#endif
