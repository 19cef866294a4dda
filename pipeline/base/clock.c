/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/base/clock.h"

#include <time.h>

const char *pl_utc_now(char buf[32])
{
    time_t now = time(NULL);
    struct tm tm;

    (void)gmtime_r(&now, &tm);
    (void)strftime(buf, 32, "%Y-%m-%dT%H:%M:%SZ", &tm);
    return buf;
}

double pl_clock(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
