/* SPDX-License-Identifier: Apache-2.0 */
/* Real processes are asked to stop, by a signal or by a time limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "toy.h"

static char dir[256];

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

static int64_t units_so_far(toy *t)
{
    return access(t->wf.storage.results, F_OK) == 0 ? toy_int(t, "SELECT count(*) FROM unit") : 0;
}

/* A run that is long enough, and is stopped after its first commits, when it handles signals. */
static pid_t start_and_wait_for_units(double pause)
{
    int64_t before;
    pid_t pid;
    toy t;

    toy_make(&t, dir, 400);
    before = units_so_far(&t);
    pid = toy_start(dir, 400, pause, NULL);
    for (int i = 0; i < 3000 && units_so_far(&t) <= before + 2; i++)
        toy_sleep_ms(10);
    toy_free(&t);
    return pid;
}

static void each_signal_ends_with_75_and_the_run_goes_on(void **state)
{
    static const int signals[] = { SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGXCPU };
    toy t;

    (void)state;
    toy_make(&t, dir, 400);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        pid_t pid = start_and_wait_for_units(0.01);
        int64_t before = toy_int(&t, "SELECT count(*) FROM unit");

        (void)kill(pid, signals[i]);
        assert_int_equal(toy_ended(pid), 75);
        assert_true(toy_sound(&t));
        assert_true(toy_int(&t, "SELECT count(*) FROM unit") >= before);
        assert_int_equal(toy_int(&t, "SELECT count(*) FROM run WHERE state='stopped' AND exit_code=75"), (int)i + 1);
    }
    assert_int_equal(toy_int(&t, "SELECT resumed_from FROM run ORDER BY run_id DESC LIMIT 1"), 4);
    toy_free(&t);
}

static void a_second_signal_ends_at_once(void **state)
{
    pid_t pid = start_and_wait_for_units(1.5); /* a unit in progress takes a while; when it ends the status would be 75 */
    toy t;

    (void)state;
    (void)kill(pid, SIGTERM);
    toy_sleep_ms(50);
    (void)kill(pid, SIGINT);
    assert_int_equal(toy_ended(pid), 128 + SIGINT);
    toy_make(&t, dir, 400);
    assert_true(toy_sound(&t));
    toy_free(&t);
}

static void the_time_limit_stops_like_a_signal_and_grace_is_kept(void **state)
{
    pl_run_opts opts = { .workers = 2, .quiet = true, .max_time = 0.3, .grace = 25 };
    pl_error err = { 0 };
    int status = 1;
    toy t;

    (void)state;
    toy_make(&t, dir, 400);
    toy_pause(&t, 0.01);
    assert_int_equal(pl_run(&t.wf, &toy_schema, &opts, t.mem, &err), PL_ESTOP);
    assert_non_null(strstr(err.text, "the time limit"));
    toy_free(&t);
    opts.grace = 1;
    for (; status == 1 && opts.max_time < 60; opts.max_time *= 2) { /* a unit of ten seconds; 1: the limit came before it began */
        const pid_t pid = fork();
        if (pid == 0) {
            toy_make(&t, dir, 400);
            toy_pause(&t, 10);
            _exit(pl_code_exit(pl_run(&t.wf, &toy_schema, &opts, t.mem, NULL)) == 75 ? 1 : 2);
        }
        status = toy_ended(pid);
    }
    assert_int_equal(status, 75);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, new_dir, drop_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(each_signal_ends_with_75_and_the_run_goes_on),
        CASE(a_second_signal_ends_at_once),
        CASE(the_time_limit_stops_like_a_signal_and_grace_is_kept),
    };
    return cmocka_run_group_tests_name("signals", tests, NULL, NULL);
}
