/* SPDX-License-Identifier: Apache-2.0 */
/* This test writes the claims of other hosts itself: with other names, renewed or not. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "pipeline/base/log.h"
#include "tests/unit/claims.h"

enum { BEAT_MS = 200, MANY = 6 };

static pl_code take(pl_claim **c, pl_error *err)
{
    char who[100];

    (void)snprintf(who, sizeof who, "host here, pid %ld, since today", (long)getpid());
    return pl_claim_take(c, path, "screen", who, BEAT_MS, err);
}

static void a_claim_is_rewritten_and_removed_when_dropped(void **state)
{
    char first[700], later[700];
    pl_claim *c;

    (void)state;
    assert_int_equal(take(&c, NULL), PL_OK);
    read_claim(first);
    for (int i = 0; i < 200; i++) {
        (void)usleep(BEAT_MS * 1000);
        read_claim(later);
        if (strcmp(first, later) != 0)
            break;
    }
    assert_string_not_equal(first, later);
    assert_int_equal(strlen(first), strlen(later));
    assert_int_equal(strncmp(first, "host here, pid ", 15), 0);
    pl_claim_drop(c);
    assert_int_not_equal(access(path, F_OK), 0);
    pl_claim_drop(NULL);
}

static int waits; /* how often the message about waiting for a sign of life came */

static void count_waits(void *ctx, pl_level level, const char *line)
{
    (void)ctx;
    waits += level == PL_WARN && strstr(line, "waiting up to 1 s to see whether that run is alive") != NULL;
}

/* The boot id distinguishes a process that died from a process on another machine of the same name. */
static void a_dead_claim_of_this_boot_needs_no_wait(void **state)
{
    char boot[64] = "", text[700], want[700];
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
    pid_t dead = fork();
    pl_claim *c;

    (void)state;
    if (dead == 0)
        _exit(0);
    (void)waitpid(dead, NULL, 0);
    assert_non_null(f);
    assert_non_null(fgets(boot, sizeof boot, f));
    (void)fclose(f);
    boot[strcspn(boot, "\n")] = '\0';
    (void)snprintf(text, sizeof text, "host here, pid %ld, since then\nboot %s, beat 0000000003\n", (long)dead, boot);
    write_claim(text);
    pl_log_to(count_waits, NULL, PL_WARN);
    assert_int_equal(take_slowly(&c, NULL), PL_OK);
    assert_int_equal(waits, 0);
    read_claim(text);
    (void)snprintf(want, sizeof want, "host here, pid 1, since today\nboot %s, beat 0000000000\n", boot);
    assert_string_equal(text, want);
    pl_claim_drop(c);
    (void)snprintf(text, sizeof text, "host here, pid %ld, since then\nboot another, beat 0000000003\n", (long)dead);
    write_claim(text);
    assert_int_equal(take(&c, NULL), PL_OK);
    assert_int_equal(waits, 1);
    pl_log_to(NULL, NULL, PL_ERROR);
    pl_claim_drop(c);
}

/* A process that takes the claim and lives until it is killed. */
static pid_t other(const char *who)
{
    int ready[2];
    char byte;
    pid_t pid;

    assert_int_equal(pipe(ready), 0);
    pid = fork();
    if (pid == 0) {
        pl_claim *c;
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* it must not outlive a test that fails: its pipes would keep ctest waiting */
        if (pl_claim_take(&c, path, "screen", who, BEAT_MS, NULL) != PL_OK || write(ready[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            (void)pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
    (void)close(ready[1]);
    return pid;
}

static void only_a_live_claim_of_another_host_blocks(void **state)
{
    const int threads = count_in("/proc/self/task");
    pid_t pid = other("host there, pid 7, slurm job 9, since today");
    pl_error err = { 0 };
    pl_claim *c;

    (void)state;
    assert_int_equal(take(&c, &err), PL_ELOCK);
    assert_null(c);
    assert_string_equal(err.text, "screen is in use by another host, held by host there, pid 7, slurm job 9, since today; "
                                  "wait for that run or stop it");
    assert_int_equal(count_in("/proc/self/task"), threads); /* none is left that would renew a claim */
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    assert_int_equal(take(&c, &err), PL_OK);
    pl_claim_drop(c);
    assert_int_not_equal(access(path, F_OK), 0);
}

static void renew(void *ctx, pl_level level, const char *line)
{
    (void)ctx;
    (void)level;
    if (strstr(line, "waiting up to") != NULL)
        write_claim("host there, pid 7, since today\nboot x, beat 0000000002\n");
}

/* Its owner would end if it did not find its claim: the folder must not change. */
static void a_claim_renewed_meanwhile_is_never_moved(void **state)
{
    struct stat before, after;
    pl_error err = { 0 };
    pl_claim *c;

    (void)state;
    write_claim("host there, pid 7, since today\nboot x, beat 0000000001\n");
    assert_int_equal(stat(dir, &before), 0);
    pl_log_to(renew, NULL, PL_WARN);
    assert_int_equal(take(&c, &err), PL_ELOCK);
    pl_log_to(NULL, NULL, PL_ERROR);
    assert_non_null(strstr(err.text, "held by host there, pid 7, since today; wait"));
    assert_int_equal(stat(dir, &after), 0);
    assert_memory_equal(&before.st_mtim, &after.st_mtim, sizeof before.st_mtim);
}

static void a_process_taken_for_dead_ends_when_it_wakes(void **state)
{
    pid_t pid = other("host there, pid 7, since today");
    char mine[700];
    pl_claim *c;
    int status;

    (void)state;
    (void)kill(pid, SIGSTOP);
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_int_equal(take(&c, NULL), PL_OK);
    (void)kill(pid, SIGCONT);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 4);
    read_claim(mine);
    assert_int_equal(strncmp(mine, "host here", 9), 0);
    pl_claim_drop(c);
}

/* One of many takes it over and keeps it until the others have given up; if two took it, this would wait for ever. */
static void a_dead_claim_is_taken_over_once(void **state)
{
    int status, hold[2], kept = 0;

    (void)state;
    assert_int_equal(pipe(hold), 0);
    write_claim("host there, pid 7, since 1970\nboot x, beat 0000000001\n");
    for (int i = 0; i < MANY; i++) {
        if (fork() == 0) {
            pl_claim *c;
            char who[60], byte;
            (void)close(hold[1]);
            (void)snprintf(who, sizeof who, "host n%d, pid 1, since today", i);
            _exit(pl_claim_take(&c, path, "screen", who, BEAT_MS, NULL) != PL_OK || read(hold[0], &byte, 1) != 0 ? 4 : 0);
        }
    }
    for (int i = 0; i < MANY; i++) {
        if (i == MANY - 1)
            (void)close(hold[1]);
        assert_true(wait(&status) > 0);
        assert_true(WIFEXITED(status));
        kept += WEXITSTATUS(status) == 0;
    }
    (void)close(hold[0]);
    assert_int_equal(kept, 1);
}

/* Incomplete texts of claims, and other texts. */
static void a_partly_written_claim_expires(void **state)
{
    static const char *const texts[] = { "", "host there, pid 99999999999999999999\nboot" };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        pl_claim *c;
        write_claim(texts[i]);
        assert_int_equal(take(&c, NULL), PL_OK);
        pl_claim_drop(c);
    }
}

static void a_deleted_or_replaced_claim_is_not_held(void **state)
{
    char text[700];
    pl_claim *c;

    (void)state;
    assert_true(pl_claim_held(NULL));
    assert_int_equal(take_slowly(&c, NULL), PL_OK);
    assert_true(pl_claim_held(c));
    write_claim("host there, pid 7, since today\nboot x, beat 0000000001\n");
    assert_false(pl_claim_held(c));
    pl_claim_drop(c);
    read_claim(text); /* stays */
    assert_int_equal(strncmp(text, "host there", 10), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(take_slowly(&c, NULL), PL_OK);
    assert_int_equal(unlink(path), 0);
    assert_false(pl_claim_held(c));
    pl_claim_drop(c);
}

static void a_file_that_is_no_claim_is_left_unchanged(void **state)
{
    char text[700], target[320];
    pl_error err = { 0 };
    pl_claim *c;

    (void)state;
    write_claim("three years of work");
    assert_int_equal(take(&c, &err), PL_EIO);
    assert_non_null(strstr(err.text, ".lock.host: not a lock file of molsieve, left as it is; move it away"));
    read_claim(text);
    assert_string_equal(text, "three years of work");
    (void)snprintf(target, sizeof target, "%s.target", path);
    assert_int_equal(rename(path, target), 0);
    assert_int_equal(symlink(target, path), 0);
    assert_int_equal(take(&c, &err), PL_EIO);
    read_claim(text);
    assert_string_equal(text, "three years of work");
}

static void a_directory_in_the_way_is_an_error(void **state)
{
    pl_error err = { 0 };
    pl_claim *c;

    (void)state;
    (void)snprintf(path, sizeof path, "%s/no/such", dir);
    assert_int_equal(take(&c, &err), PL_EIO);
    assert_non_null(strstr(err.text, "no/such"));
}

/* The kernel's file of a process's memory opens, and reading its first bytes fails: there is no memory at address 0. */
static void a_claim_that_cannot_be_read_is_an_error(void **state)
{
    pl_error err = { 0 };
    pl_claim *c = (pl_claim *)&err;

    (void)state;
    assert_int_equal(pl_claim_take(&c, "/proc/self/mem", "screen", "host here, pid 1, since today", BEAT_MS, &err), PL_EIO);
    assert_null(c);
    assert_string_equal(err.text, "/proc/self/mem: Input/output error");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_claim_is_rewritten_and_removed_when_dropped, make, drop),
        cmocka_unit_test_setup_teardown(a_dead_claim_of_this_boot_needs_no_wait, make, drop),
        cmocka_unit_test_setup_teardown(only_a_live_claim_of_another_host_blocks, make, drop),
        cmocka_unit_test_setup_teardown(a_claim_renewed_meanwhile_is_never_moved, make, drop),
        cmocka_unit_test_setup_teardown(a_process_taken_for_dead_ends_when_it_wakes, make, drop),
        cmocka_unit_test_setup_teardown(a_dead_claim_is_taken_over_once, make, drop),
        cmocka_unit_test_setup_teardown(a_partly_written_claim_expires, make, drop),
        cmocka_unit_test_setup_teardown(a_deleted_or_replaced_claim_is_not_held, make, drop),
        cmocka_unit_test_setup_teardown(a_file_that_is_no_claim_is_left_unchanged, make, drop),
        cmocka_unit_test_setup_teardown(a_directory_in_the_way_is_an_error, make, drop),
        cmocka_unit_test(a_claim_that_cannot_be_read_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
