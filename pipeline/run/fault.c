/* SPDX-License-Identifier: Apache-2.0 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/run/run.h"

static _Atomic long passed; /* how often the point in MOLSIEVE_FAULT was passed */

void pl_fault(const char *stage, const char *point)
{
    const char *want = getenv("MOLSIEVE_FAULT");
    const char *colon;
    char here[128];
    int n;

    if (want == NULL || (colon = strrchr(want, ':')) == NULL)
        return;
    n = snprintf(here, sizeof here, "%s.%s", stage, point);
    if (n != (int)(colon - want) || strncmp(want, here, (size_t)n) != 0)
        return;
    if (atomic_fetch_add(&passed, 1) + 1 == strtol(colon + 1, NULL, 10))
        _exit(137); /* as kill -9 would: no handler, no flush */
}
