/* SPDX-License-Identifier: Apache-2.0 */
/* tests/crash/clock.c - a clock that is set again and again, for LD_PRELOAD: at every third
 * look, on average, the time of day jumps to another one within twenty years. */
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { YEARS = 20, YEAR_S = 31557600 };

/* Seconds that the clock is wrong by. */
static time_t jump(void)
{
    static _Atomic uint64_t looks;
    static _Atomic time_t wrong;
    uint64_t x = atomic_fetch_add(&looks, 1) * 0x9E3779B97F4A7C15u;

    x ^= x >> 29;
    if (x % 3 == 0)
        atomic_store(&wrong, (time_t)((x >> 8) % (2ull * YEARS * YEAR_S)) - (time_t)YEARS * YEAR_S);
    return atomic_load(&wrong);
}

int clock_gettime(clockid_t id, struct timespec *t)
{
    int rc = (int)syscall(SYS_clock_gettime, id, t);

    if (rc == 0 && id == CLOCK_REALTIME)
        t->tv_sec += jump();
    return rc;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
    struct timespec now;
    int rc = clock_gettime(CLOCK_REALTIME, &now);

    (void)zone;
    *t = (struct timeval){ now.tv_sec, now.tv_nsec / 1000 };
    return rc;
}

time_t time(time_t *t)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (t != NULL)
        *t = now.tv_sec;
    return now.tv_sec;
}
