/* SPDX-License-Identifier: Apache-2.0 */
/* Claims that other hosts move, replace and remove at the worst moment, and disks that refuse a beat. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "pipeline/base/log.h"
#include "tests/unit/claims.h"
#include "tests/unit/locks.h"

enum { QUICK_MS = 50 };

/* ---- calls of the system that other hosts and full disks disturb: linked with -Wl,--wrap=rename,--wrap=write ---- */

static void (*before_rename)(void), (*after_rename)(void);
static int renames, rename_errno; /* the last one, 0: none */
static atomic_int refused_writes;

int __real_rename(const char *from, const char *to);
ssize_t __real_write(int fd, const void *from, size_t n);
int __wrap_rename(const char *from, const char *to);
ssize_t __wrap_write(int fd, const void *from, size_t n);

int __wrap_rename(const char *from, const char *to)
{
    int result;

    renames++;
    if (before_rename != NULL)
        before_rename();
    result = rename_errno != 0 ? -1 : __real_rename(from, to);
    if (after_rename != NULL)
        after_rename();
    errno = result != 0 && rename_errno != 0 ? rename_errno : errno;
    return result;
}

ssize_t __wrap_write(int fd, const void *from, size_t n)
{
    if (atomic_load(&refused_writes) <= 0)
        return __real_write(fd, from, n);
    (void)atomic_fetch_sub(&refused_writes, 1);
    errno = ENOSPC;
    return -1;
}

static int make_calm(void **state)
{
    before_rename = after_rename = NULL;
    renames = rename_errno = 0;
    atomic_store(&refused_writes, 0);
    return make(state);
}

static pl_code take_quickly(pl_claim **c, pl_error *err)
{
    return pl_claim_take(c, path, "screen", "host here, pid 1, since today", QUICK_MS, err);
}

static void a_file_of_one_byte_is_a_claim_only_if_it_begins_one(void **state)
{
    static const char *const texts[] = { "x", "h", "hosts and names", "host " };
    char text[700];
    pl_claim *c;

    (void)state;
    for (int i = 0; i < 4; i++) {
        write_claim(texts[i]);
        assert_int_equal(take_quickly(&c, NULL), i % 2 ? PL_OK : PL_EIO);
        read_claim(text);
        assert_true(i % 2 ? strncmp(text, "host here", 9) == 0 : strcmp(text, texts[i]) == 0);
        pl_claim_drop(c);
    }
}

/* ---- who is dead ---- */

static int waits; /* how often a claim was watched */

static void count_looks(void *ctx, pl_level level, const char *line)
{
    (void)ctx;
    waits += level == PL_WARN && strstr(line, " to see whether that run is alive") != NULL;
}

static char boot[64];
static long dead; /* number of a process that has ended */

static void know_boot_and_dead(void)
{
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
    pid_t pid = fork();

    if (pid == 0)
        _exit(0);
    (void)waitpid(pid, NULL, 0);
    dead = (long)pid;
    assert_non_null(f);
    assert_non_null(fgets(boot, sizeof boot, f));
    (void)fclose(f);
    boot[strcspn(boot, "\n")] = '\0';
}

static const char *claim_of(const char *host, long pid, const char *of_boot)
{
    static char text[700];

    (void)snprintf(text, sizeof text, "host %s, pid %ld, since then\nboot %s, beat 0000000003\n", host, pid, of_boot);
    return text;
}

/* Only where host, boot and process all say so: any other claim is watched first. */
static void a_claim_is_dead_at_once_only_if_all_of_it_says_so(void **state)
{
    const struct {
        const char *host;
        long pid;
        const char *boot;
        int looks;
    } claims[] = { { "here", 0, boot, 0 },      { "there", 0, boot, 1 },       { "her", 0, boot, 1 },
                   { "here", 0, "another", 1 }, { "here", getpid(), boot, 1 }, { "here", -1999999999, boot, 1 },
                   { "here", 0, "", 1 } };

    (void)state;
    know_boot_and_dead();
    pl_log_to(count_looks, NULL, PL_WARN);
    for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
        pl_claim *c;

        waits = 0;
        write_claim(claim_of(claims[i].host, claims[i].pid ? claims[i].pid : dead, claims[i].boot));
        assert_int_equal(take_quickly(&c, NULL), PL_OK);
        if (waits != claims[i].looks)
            fail_msg("claim %d: watched %d times", (int)i, waits);
        pl_claim_drop(c);
    }
    pl_log_to(NULL, NULL, PL_ERROR);
}

/* ---- other hosts at the same moment ---- */

static const char living[] = "host there, pid 9, since now\nboot x, beat 0000000001\n";

static void remove_claim(void) { (void)unlink(path); }
static void write_living(void) { write_claim(living); }
static void write_dead(void) { write_claim(claim_of("here", dead, boot)); }

static pl_code take_from_dead(pl_claim **c, void (*before)(void), void (*after)(void), int why, pl_error *err)
{
    renames = 0;
    before_rename = before;
    after_rename = after;
    rename_errno = why;
    write_dead();
    return take_slowly(c, err);
}

static void a_dead_claim_that_others_move_first_is_no_error(void **state)
{
    char text[700];
    pl_error err = { 0 };
    pl_claim *c;

    (void)state;
    know_boot_and_dead();
    assert_int_equal(take_from_dead(&c, remove_claim, NULL, 0, &err), PL_OK);
    assert_int_equal(renames, 1);
    pl_claim_drop(c);
    assert_int_equal(take_from_dead(&c, write_living, NULL, 0, &err), PL_ELOCK);
    assert_string_equal(err.text, "screen is in use by another host, held by host there, pid 9, since now; wait for that run or "
                                  "stop it");
    read_claim(text); /* it was put back, and nothing else is left */
    assert_string_equal(text, living);
    assert_int_equal(count_in(dir), 1);
    assert_int_equal(take_from_dead(&c, NULL, NULL, EACCES, &err), PL_EIO);
    assert_non_null(strstr(err.text, ".lock.host: Permission denied"));
    assert_int_equal(take_from_dead(&c, NULL, write_dead, 0, &err), PL_ELOCK);
    assert_string_equal(err.text, "screen: other runs keep taking and releasing the lock; try again");
    assert_int_equal(renames, 8);
}

/* It keeps the number of the beat that is in the file. */
static void a_beat_that_cannot_be_written_loses_no_claim(void **state)
{
    char first[700], later[700];
    pl_claim *c;

    (void)state;
    assert_int_equal(take_quickly(&c, NULL), PL_OK);
    atomic_store(&refused_writes, 3);
    for (int i = 0; i < 3000 && atomic_load(&refused_writes) > 0; i++)
        toy_sleep_ms(10);
    assert_int_equal(atomic_load(&refused_writes), 0);
    assert_true(pl_claim_held(c));
    read_claim(first);
    for (int i = 0; i < 3000; i++) {
        toy_sleep_ms(10);
        read_claim(later);
        if (strcmp(first, later) != 0)
            break;
    }
    assert_string_not_equal(first, later);
    assert_int_equal(strncmp(later, "host here", 9), 0);
    pl_claim_drop(c);
    assert_int_equal(count_in(dir), 0);
}

static void keep_line(void *ctx, pl_level level, const char *line)
{
    FILE *f = fopen(ctx, "w");

    if (level == PL_ERROR && f != NULL)
        (void)fputs(line, f);
    if (f != NULL)
        (void)fclose(f);
}

/* ---- linked with -Wl,--wrap=pthread_cond_timedwait,--wrap=clock_gettime ---- */

static struct timespec now; /* what the clock says; 0 s: what is true */

int __real_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);

int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
    if (now.tv_sec == 0)
        return __real_clock_gettime(clock, out);
    *out = now;
    return 0;
}

static struct timespec first_end; /* what the thread of the claim waits for first */
static atomic_bool waited;

int __real_pthread_cond_timedwait(pthread_cond_t *wake, pthread_mutex_t *lock, const struct timespec *end);
int __wrap_pthread_cond_timedwait(pthread_cond_t *wake, pthread_mutex_t *lock, const struct timespec *end);

int __wrap_pthread_cond_timedwait(pthread_cond_t *wake, pthread_mutex_t *lock, const struct timespec *end)
{
    (void)locks_find(lock);
    if (!atomic_load(&waited)) {
        first_end = *end;
        atomic_store(&waited, true);
    }
    return __real_pthread_cond_timedwait(wake, lock, end);
}

static void a_claim_is_renewed_after_the_time_that_was_asked_for(void **state)
{
    static const struct {
        int beat_ms;
        long nsec, s, ns; /* the clock's; how many seconds later, and where in the second */
    } cases[] = { { 60000, 5, 60, 5 },
                  { 61999, 1000001, 62, 1 },
                  { 61999, 1000000, 62, 0 },
                  { 61999, 999999, 61, 999999999 },
                  { 3600500, 499999999, 3600, 999999999 },
                  { 60001, 999999999, 61, 999999 } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pl_claim *c;

        atomic_store(&waited, false);
        (void)__real_clock_gettime(CLOCK_MONOTONIC, &now);
        now.tv_sec += 10; /* never 0, and not over while this test runs */
        now.tv_nsec = cases[i].nsec;
        assert_int_equal(pl_claim_take(&c, path, "screen", "host here, pid 1, since today", cases[i].beat_ms, NULL), PL_OK);
        while (!atomic_load(&waited))
            toy_sleep_ms(1);
        pl_claim_drop(c);
        assert_int_equal(first_end.tv_sec - now.tv_sec, cases[i].s);
        assert_int_equal(first_end.tv_nsec, cases[i].ns);
        now = (struct timespec){ 0, 0 };
    }
}

/* In one step, as another host does: a beat that looks at the same moment never finds an empty file. */
static void replace_claim(void)
{
    char fresh[sizeof path + 8];
    FILE *f;

    (void)snprintf(fresh, sizeof fresh, "%s.fresh", path);
    f = fopen(fresh, "w");
    assert_non_null(f);
    assert_true(fputs(living, f) >= 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(__real_rename(fresh, path), 0);
}

static void empty_claim(void) { (void)truncate(path, 0); }

/* What a process says whose claim another host has, or nobody. */
static void lose(const char *said, void (*how)(void))
{
    pl_claim *c;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    pl_log_to(keep_line, (void *)said, PL_ERROR);
    if (take_quickly(&c, NULL) != PL_OK)
        _exit(1);
    for (int i = 0; i < 3000; i++) { /* a beat may be between its look and its write */
        how();
        toy_sleep_ms(10);
    }
    _exit(2);
}

static void a_process_that_lost_its_claim_says_to_whom(void **state)
{
    static const struct {
        void (*how)(void);
        const char *whom;
    } cases[] = { { remove_claim, "the lock file is gone" },
                  { empty_claim, "the lock file is empty" },
                  { replace_claim, "host there, pid 9, since now" } };
    char said[320], text[700], want[300];
    int status;

    (void)state;
    (void)snprintf(said, sizeof said, "%s/said", dir);
    for (int i = 0; i < 3; i++) {
        const pid_t pid = fork();

        if (pid == 0)
            lose(said, cases[i].how);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 4);
        FILE *f = fopen(said, "r");
        assert_non_null(f);
        text[fread(text, 1, sizeof text - 1, f)] = '\0';
        (void)fclose(f);
        (void)snprintf(want, sizeof want,
                       "screen was taken over by another run while this process was suspended (%s); this process ends now",
                       cases[i].whom);
        assert_string_equal(text, want);
        (void)unlink(path);
    }
}

/* Descriptor 0 is one like the others, and none stays open. */
static void a_claim_works_where_standard_input_is_closed(void **state)
{
    const int open_files = count_in("/proc/self/fd");
    char text[700];
    int status;
    const pid_t pid = fork();

    (void)state;
    if (pid == 0) {
        pl_claim *c;

        (void)close(0);
        write_living();
        if (take_quickly(&c, NULL) != PL_OK)
            _exit(1);
        read_claim(text);
        if (strstr(text, "boot , ") != NULL || !pl_claim_held(c))
            _exit(2);
        pl_claim_drop(c);
        _exit(access(path, F_OK) == 0 || count_in("/proc/self/fd") != open_files - 1 ? 3 : 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_of_one_byte_is_a_claim_only_if_it_begins_one, make_calm, drop),
        cmocka_unit_test_setup_teardown(a_claim_is_dead_at_once_only_if_all_of_it_says_so, make_calm, drop),
        cmocka_unit_test_setup_teardown(a_dead_claim_that_others_move_first_is_no_error, make_calm, drop),
        cmocka_unit_test_setup_teardown(a_beat_that_cannot_be_written_loses_no_claim, make_calm, drop),
        cmocka_unit_test_setup_teardown(a_claim_is_renewed_after_the_time_that_was_asked_for, make_calm, drop),
        cmocka_unit_test_setup_teardown(a_process_that_lost_its_claim_says_to_whom, make_calm, drop),
        cmocka_unit_test_setup_teardown(a_claim_works_where_standard_input_is_closed, make_calm, drop),
        locks_test,
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
