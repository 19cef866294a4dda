/* SPDX-License-Identifier: Apache-2.0 */
/* Part of every cmocka program: tells watch, which started it, that a program with tests begins, and that all of them
 * were run. Status 0 alone does not say so: a test that calls exit(0) or _exit(0) ends the program with it.
 *
 * Told by signals, because a test may close descriptors, change its environment and its directory. Linked with
 * -Wl,--wrap=_cmocka_run_group_tests. Without watch it does nothing. */
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/ended.h"

int __real__cmocka_run_group_tests(const char *name, const struct CMUnitTest *tests, size_t n, CMFixtureFunction setup,
                                   CMFixtureFunction teardown);
int __wrap__cmocka_run_group_tests(const char *name, const struct CMUnitTest *tests, size_t n, CMFixtureFunction setup,
                                   CMFixtureFunction teardown);

static pid_t own, watcher;

static void tell(int what)
{
    if (watcher > 0)
        (void)sigqueue(watcher, SIGRTMIN, (union sigval){ .sival_int = what });
}

__attribute__((constructor)) static void begin(void)
{
    const char *pid = getenv(TEST_WATCHER);

    own = getpid();
    watcher = pid != NULL ? (pid_t)atol(pid) : 0;
    tell(TEST_BEGINS);
}

int __wrap__cmocka_run_group_tests(const char *name, const struct CMUnitTest *tests, size_t n, CMFixtureFunction setup,
                                   CMFixtureFunction teardown)
{
    int failed;

    tell(TEST_BEGINS); /* again in a second group */
    failed = __real__cmocka_run_group_tests(name, tests, n, setup, teardown);
    tell(getpid() == own ? TEST_ENDS : TEST_COPY_ENDS);
    return failed;
}
