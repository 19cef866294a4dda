/* SPDX-License-Identifier: Apache-2.0 */
/* Real processes are killed, started twice and run out of disk space: the digest stays the same.
 * MOLSIEVE_KILLS sets the kills of each stage (default 25). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "pipeline/base/rng.h"
#include "toy.h"

enum { UNITS = 24 };

static char dir[256], clean[130];

/* The digest of an undisturbed run. */
static int undisturbed(void **state)
{
    char place[256];
    toy t;
    pl_code code;

    (void)state;
    toy_directory(place);
    toy_make(&t, place, UNITS);
    code = toy_run(&t, 2, NULL);
    toy_digest(&t, clean);
    toy_free(&t);
    toy_remove(place);
    return code != PL_OK;
}

static int new_dir(void **state)
{
    (void)state;
    toy_directory(dir);
    return dir[0] == '\0';
}

static int drop_dir(void **state)
{
    (void)state;
    toy_remove(dir);
    return 0;
}

static void must_be_clean(int64_t units)
{
    char digest[130];
    toy t;

    toy_make(&t, dir, units);
    assert_true(toy_sound(&t));
    toy_digest(&t, digest);
    toy_free(&t);
    assert_string_equal(digest, clean);
}

/* The stages that were running when the process died: bit i for stage i. */
static int stages_at_work(void)
{
    toy t;
    int64_t bits = 0;

    toy_make(&t, dir, UNITS);
    if (access(t.wf.storage.results, F_OK) == 0)
        bits = toy_int(&t, "SELECT sum((name='count')+2*(name='square')+4*(name='walk')) FROM stage WHERE state='running'");
    toy_free(&t);
    return bits > 0 ? (int)bits : 0;
}

static void kills_at_random_moments_change_nothing(void **state)
{
    const char *ask = getenv("MOLSIEVE_KILLS");
    int want = ask != NULL ? (int)strtol(ask, NULL, 10) : 25, kills[3] = { 0 }, together = 0, finished = 0;
    pl_rng rng = pl_rng_at(20261121, 0, 1);
    double longest = 40; /* ms; lives become longer until one is enough: on a slow machine, 40 ms may not reach a stage */

    (void)state;
    while (kills[0] < want || kills[1] < want || kills[2] < want) {
        pid_t pid = toy_start(dir, UNITS, 0.0005, NULL);
        int status, bits;
        toy t;

        toy_sleep_ms(1 + longest * pl_rng_real(&rng));
        (void)kill(pid, SIGKILL);
        status = toy_ended(pid);
        if (status == 0) { /* the run finished before the kill: compare, and start over */
            must_be_clean(UNITS);
            toy_remove(dir);
            finished++;
            longest = longest > 80 ? longest / 2 : 40;
            continue;
        }
        assert_int_equal(status, 128 + SIGKILL);
        longest *= 1.1;
        bits = stages_at_work();
        for (int i = 0; i < 3; i++)
            kills[i] += bits >> i & 1;
        together += bits == 3;
        toy_make(&t, dir, UNITS);
        if (access(t.wf.storage.results, F_OK) == 0)
            assert_true(toy_sound(&t));
        toy_free(&t);
    }
    assert_int_equal(toy_ended(toy_start(dir, UNITS, 0, NULL)), 0);
    must_be_clean(UNITS);
    assert_true(together > 0);
    print_message("kills while counting %d, squaring %d (%d of both), walking %d; finished %d times\n", kills[0], kills[1],
                  together, kills[2], finished);
}

static void every_fault_point_at_every_passage_changes_nothing(void **state)
{
    static const char *const points[] = {
        "count.unit.after_features",   "count.unit.before_commit",   "count.unit.after_commit",   "count.finish.before_commit",
        "count.finish.after_commit",   "square.unit.after_features", "square.unit.before_commit", "square.unit.after_commit",
        "square.finish.before_commit", "square.finish.after_commit", "walk.finish.before_commit", "walk.finish.after_commit",
    };
    char fault[80];
    int deaths = 0;

    (void)state;
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        for (int n = 1, status = 137; status == 137; n++) {
            (void)snprintf(fault, sizeof fault, "%s:%d", points[i], n);
            status = toy_ended(toy_start(dir, UNITS, 0, fault));
            assert_true(status == 137 || status == 0);
            deaths += status == 137;
            if (status == 137)
                assert_int_equal(toy_ended(toy_start(dir, UNITS, 0, NULL)), 0);
            must_be_clean(UNITS);
            toy_remove(dir);
        }
    }
    assert_int_equal(deaths, 6 * UNITS + 6);
}

/* A child that waits until every other process has closed the gate. */
static pid_t start_behind(const int gate[2])
{
    pid_t pid = fork();

    if (pid == 0) {
        char byte;
        toy t;

        (void)close(gate[1]);
        if (read(gate[0], &byte, 1) != 0)
            _exit(99);
        toy_make(&t, dir, UNITS);
        toy_pause(&t, 0.003);
        _exit(pl_code_exit(toy_run(&t, 2, NULL)));
    }
    return pid;
}

static void of_two_runs_one_is_refused_and_told_who_holds_the_lock(void **state)
{
    int refused = 0;

    (void)state;
    for (int i = 0; i < 20; i++) {
        int gate[2];
        pid_t a, b;
        int ra, rb;

        assert_int_equal(pipe(gate), 0);
        a = start_behind(gate);
        b = start_behind(gate);
        (void)close(gate[0]);
        (void)close(gate[1]); /* both limits are off */
        ra = toy_ended(a);
        rb = toy_ended(b);

        assert_true((ra == 0 || ra == 4) && (rb == 0 || rb == 4) && (ra == 0 || rb == 0));
        refused += (ra == 4) + (rb == 4);
        must_be_clean(UNITS);
        toy_remove(dir);
    }
    assert_true(refused > 0);
    print_message("refused %d of 40\n", refused);
}

static void a_file_size_limit_is_a_full_disk_that_loses_nothing(void **state)
{
    int n_full = 0;

    (void)state;
    for (rlim_t size = 20000; size < 200000; size += 12000) {
        pid_t pid = fork();
        int status;
        if (pid == 0) {
            struct rlimit limit = { size, size };
            toy t;

            (void)signal(SIGXFSZ, SIG_IGN);
            (void)setrlimit(RLIMIT_FSIZE, &limit);
            toy_make(&t, dir, UNITS);
            _exit(pl_code_exit(toy_run(&t, 2, NULL)));
        }
        status = toy_ended(pid);
        assert_true(status == 6 || status == 0);
        n_full += status == 6;
        if (status == 6)
            assert_int_equal(toy_ended(toy_start(dir, UNITS, 0, NULL)), 0);
        must_be_clean(UNITS);
        toy_remove(dir);
    }
    assert_true(n_full > 3);
    print_message("disk full in %d of 15 sizes\n", n_full);
}

/* A real small disk, where the machine allows one. */
static void a_full_tmpfs_ends_with_6_and_goes_on_when_there_is_room(void **state)
{
    static const char *const small = "size=600k", *const large = "size=64m";
    pl_error err = { 0 };
    char digest[130], digest_clean[130];
    toy t;

    (void)state;
    if (mkdir(dir, 0777) != 0 && access(dir, W_OK) != 0)
        fail();
    toy_make(&t, dir, 400);
    if (mount("tmpfs", dir, "tmpfs", 0, small) != 0) {
        toy_free(&t);
        print_message("no tmpfs can be mounted here: not root\n");
        skip();
    }
    assert_int_equal(toy_run(&t, 2, &err), PL_EIO);
    print_message("%s\n", err.text);
    assert_non_null(strstr(err.text, "free some space"));
    assert_int_equal(mount("tmpfs", dir, "tmpfs", MS_REMOUNT, large), 0);
    assert_true(toy_sound(&t));
    assert_true(toy_int(&t, "SELECT count(*) FROM unit") > 0);
    assert_int_equal(toy_run(&t, 2, &err), PL_OK);
    toy_digest(&t, digest);
    assert_true(toy_sound(&t));
    assert_int_equal(umount(dir), 0);
    assert_int_equal(toy_run(&t, 2, &err), PL_OK);
    toy_digest(&t, digest_clean);
    assert_string_equal(digest, digest_clean);
    toy_free(&t);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, new_dir, drop_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(every_fault_point_at_every_passage_changes_nothing),
        CASE(of_two_runs_one_is_refused_and_told_who_holds_the_lock),
        CASE(a_file_size_limit_is_a_full_disk_that_loses_nothing),
        CASE(a_full_tmpfs_ends_with_6_and_goes_on_when_there_is_room),
        CASE(kills_at_random_moments_change_nothing),
    };
    return cmocka_run_group_tests_name("crash", tests, undisturbed, NULL);
}
