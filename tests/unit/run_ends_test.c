/* SPDX-License-Identifier: Apache-2.0 */
/* How runs end: failures, limits, workers that cannot open, signals, files that are moved away. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "pipeline/base/clock.h"
#include "pipeline/base/log.h"
#include "pipeline/base/stop.h"
#include "tests/unit/toy_runs.h"

static void a_failing_stage_stops_the_others_and_all_go_on_later(void **state)
{
    char want[130], got[130];
    pl_error err = { 0 };
    pl_step_plan plan[3];
    toy t;

    (void)state;
    digest_of(other, 40, 2, NULL, want);
    toy_make(&t, dir, 40);
    t.conf[0].pause = 0.0005;
    t.conf[1].fail_at = 3;
    assert_int_equal(toy_run(&t, 2, &err), PL_EINPUT);
    assert_string_equal(err.text, "unit 3 is meant to fail");
    assert_non_null(strstr(err.where, "square"));
    assert_true(toy_sound(&t));
    assert_int_equal(toy_int(&t, "SELECT count(*) FROM stage WHERE state='running'"), 2);
    assert_int_equal(toy_int(&t, "SELECT count(*) FROM square"), 24);
    assert_true(toy_int(&t, "SELECT count(*) FROM number") < 320);
    assert_int_equal(toy_int(&t, "SELECT count(*) FROM event WHERE level='error' AND stage='square'"), 1);
    assert_int_equal(toy_int(&t, "SELECT count(*) FROM event WHERE level='info' AND stage='count' AND message LIKE "
                                 "'stopped%'"),
                     1);
    plan_of(&t, plan);
    assert_int_equal(plan[0].state, PL_STEP_RESUME);
    assert_int_equal(plan[1].state, PL_STEP_RESUME);
    assert_string_equal(plan[1].reason, "begun: continues after 3 units");
    assert_int_equal(plan[2].state, PL_STEP_RUN);
    t.conf[1].fail_at = 0;
    must_run(&t, 2);
    assert_int_equal(toy_int(&t, "SELECT count(*) FROM unit WHERE run_id=1 AND stage_id=2"), 3);
    toy_digest(&t, got);
    assert_string_equal(got, want);
    toy_free(&t);
}

static pl_code count_published(void *ctx, pl_store *store, const pl_workflow *wf, pl_arena *mem, pl_error *err)
{
    (void)store, (void)wf, (void)mem, (void)err;
    ++*(int *)ctx;
    return PL_OK;
}

static void only_a_run_that_ends_well_is_published(void **state)
{
    int n = 0;
    const pl_run_opts opts = { .workers = 1, .quiet = true, .publish = count_published, .publish_ctx = &n };
    pl_error err = { 0 };
    toy t;

    (void)state;
    toy_make(&t, dir, 4);
    t.conf[1].fail_at = 3;
    assert_int_equal(pl_run(&t.wf, &toy_schema, &opts, t.mem, &err), PL_EINPUT);
    assert_string_equal(err.text, "unit 3 is meant to fail");
    assert_int_equal(n, 0);
    t.conf[1].fail_at = 0;
    assert_int_equal(pl_run(&t.wf, &toy_schema, &opts, t.mem, &err), PL_OK);
    assert_int_equal(n, 1);
    toy_free(&t);
}

static void keep_going_finishes_stages_independent_of_the_failed(void **state)
{
    pl_run_opts opts = { .workers = 2, .quiet = true, .keep_going = true };
    pl_error err = { 0 };
    toy t;

    (void)state;
    toy_make(&t, dir, 40);
    t.conf[1].fail_at = 3;
    assert_int_equal(pl_run(&t.wf, &toy_schema, &opts, t.mem, &err), PL_EINPUT);
    assert_int_equal(toy_int(&t, "SELECT count(*) FROM stage WHERE state='done' AND name='count'"), 1);
    assert_int_equal(toy_int(&t, "SELECT count(*) FROM number"), 320);
    assert_int_equal(toy_int(&t, "SELECT count(*) FROM stage"), 2);
    toy_free(&t);
}

/* Of other kinds, and of another stage. */
static void add_failures(toy *t)
{
    static const char *const codes[] = { "d", "b", "a", "c", "b", "c", "a", "c", "z", "z", "z", "z" };
    pl_env env = { .run_id = 1 };

    assert_int_equal(pl_store_open(&env.store, &t->wf, &toy_schema, NULL), PL_OK);
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        env.step = &t->step[codes[i][0] == 'z'];
        assert_int_equal(pl_failure_add(&env, &(pl_failure){ .record_id = 1, .code = codes[i], .message = "" }, NULL), PL_OK);
    }
    pl_store_close(env.store);
}

/* Stages are begun again, and rows of failures are gone. */
static void forget_failures(toy *t)
{
    pl_store *s = NULL;

    assert_int_equal(pl_store_open(&s, &t->wf, &toy_schema, NULL), PL_OK);
    assert_int_equal(pl_db_exec(s->db, "DELETE FROM failure WHERE stage='count'; UPDATE stage SET state='running'", NULL), PL_OK);
    pl_store_close(s);
}

static void too_many_failures_stop_with_their_reasons(void **state)
{
    toy t;
    pl_error err = { 0 };
    pl_run_opts opts = { .workers = 1, .quiet = true, .keep_going = true };

    (void)state;
    toy_make(&t, dir, 40);
    t.conf[0].fail_every = 2;
    t.wf.limits.max_fraction = 0.25;
    assert_int_equal(toy_run(&t, 1, &err), PL_ELIMIT);
    assert_non_null(strstr(err.text, "20 of 40 failed"));
    assert_non_null(strstr(err.text, "toy 20"));
    assert_int_equal(toy_int(&t, "SELECT exit_code FROM run"), 3);
    assert_int_equal(toy_int(&t, "SELECT count(*) FROM unit WHERE stage_id=1"), 5); /* the unit is finished */
    add_failures(&t);
    assert_int_equal(toy_run(&t, 1, &err), PL_ELIMIT); /* the same command ends the same way */
    assert_non_null(strstr(err.text, "20 of 40 failed"));
    assert_non_null(strstr(err.text, " (toy 20, c 3, a 2); see")); /* the most frequent, then by name */
    assert_int_equal(toy_int(&t, "SELECT count(*) FROM unit WHERE run_id=2"), 0);
    assert_int_equal(pl_run(&t.wf, &toy_schema, &opts, t.mem, &err), PL_ELIMIT);
    assert_int_equal(toy_int(&t, "SELECT count(*) FROM stage WHERE state='done'"), 3);
    forget_failures(&t);
    assert_int_equal(pl_run(&t.wf, &toy_schema, &opts, t.mem, &err), PL_ELIMIT);
    assert_non_null(strstr(err.text, " failed, more than limits.failures.max_fraction allows (no reasons); see"));
    toy_free(&t);
}

/* A run whose time limit ends before it has done anything. */
static pl_code run_for_nothing(toy *t)
{
    pl_run_opts opts = { .workers = 1, .quiet = true, .max_time = 1e-6 };
    pl_error err = { 0 };
    pl_code code = pl_run(&t->wf, &toy_schema, &opts, t->mem, &err);

    assert_true(code == PL_ESTOP ||
                strstr(err.text,
                       ", and two restarts in a row finished no unit and no training step: a further one would not help. Give "
                       "the job more time, or make units smaller (stages.read.unit); then start it again") != NULL);
    return code;
}

/* Changes the file as other programs may, so the sums of the rows are deleted first (docs/FORMATS.md). */
static void got_further(const toy *t)
{
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open(t->wf.storage.results, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "INSERT INTO event(run_id,at_utc,level,message) SELECT max(run_id),'',"
                                  "'" PL_FURTHER "','checkpoint' FROM run;"
                                  "DELETE FROM row_sum",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    (void)sqlite3_close(db);
}

static int warned;

static void count_warnings(void *ctx, pl_level level, const char *line)
{
    (void)ctx;
    warned += level == PL_WARN &&
              strstr(line, "the last restart finished no unit and no training step; if this one finishes none either, "
                           "it ends with exit status 1, so that the job is not restarted") != NULL;
}

static void two_restarts_of_a_job_that_got_nowhere_end_with_1(void **state)
{
    toy t;

    (void)state;
    pl_log_to(count_warnings, NULL, PL_WARN);
    toy_make(&t, dir, 3);
    for (int i = 0; i < 4; i++) /* by hand, any number of times */
        assert_int_equal(run_for_nothing(&t), PL_ESTOP);
    (void)setenv("PBS_JOBID", "12.server", 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(run_for_nothing(&t), PL_ESTOP);
        assert_int_equal(run_for_nothing(&t), PL_ESTOP);
        assert_int_equal(run_for_nothing(&t), PL_EINPUT);
        assert_int_equal(toy_int(&t, "SELECT exit_code FROM run WHERE state='failed' ORDER BY run_id DESC"), 1);
    }
    assert_int_equal(run_for_nothing(&t), PL_ESTOP);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(run_for_nothing(&t), PL_ESTOP);
        got_further(&t);
    }
    assert_int_equal(run_for_nothing(&t), PL_ESTOP);
    assert_int_equal(run_for_nothing(&t), PL_EINPUT);
    assert_true(pl_stop_is_stuck());
    assert_int_equal(run_for_nothing(&t), PL_ESTOP);
    assert_int_equal(run_for_nothing(&t), PL_ESTOP);
    must_run(&t, 2); /* the write blocks at first, then not */
    assert_false(pl_stop_is_stuck());
    assert_int_equal(toy_int(&t, "SELECT count(*) FROM event WHERE level='" PL_FURTHER "' AND message='done'"), 3);
    assert_int_equal(warned, 4); /* the last of them is the run that ends */
    pl_log_to(NULL, NULL, PL_ERROR);
    (void)unsetenv("PBS_JOBID");
    toy_free(&t);
}

static void a_full_enough_disk_is_refused_before_any_work(void **state)
{
    toy t;
    pl_error err = { 0 };

    (void)state;
    toy_make(&t, dir, 4);
    t.wf.limits.disk_free_min = 1e18;
    assert_int_equal(toy_run(&t, 1, &err), PL_EIO);
    assert_non_null(strstr(err.text, "limits.disk_free_min"));
    assert_int_equal(toy_int(&t, "SELECT count(*) FROM stage"), 0);
    toy_free(&t);
}

static sqlite3_stmt *start_reading(const toy *t, sqlite3 **db)
{
    sqlite3_stmt *st = NULL;

    assert_int_equal(sqlite3_open(t->wf.storage.results, db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(*db, "SELECT name FROM sqlite_master", -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    return st;
}

/* Another program left a query open: earlier, each of the two ends of stages waited a minute for it. */
static void who_reads_holds_up_no_run(void **state)
{
    double began;
    sqlite3_stmt *st;
    sqlite3 *db;
    toy t;

    (void)state;
    toy_make(&t, dir, 2);
    must_run(&t, 1);
    st = start_reading(&t, &db);
    change_offset(&t);
    began = pl_clock();
    must_run(&t, 1);
    assert_true(pl_clock() - began < 55);
    (void)sqlite3_finalize(st);
    (void)sqlite3_close(db);
    toy_free(&t);
}

/* ---- workers ---- */

enum { MANY = 4 };

static void *worker_at[MANY];
static int n_opened, n_closed[MANY];

static pl_code open_worker(void *worker, void *state, pl_error *err)
{
    if (n_opened < MANY)
        worker_at[n_opened] = worker;
    n_opened++;
    return n_opened == MANY ? pl_fail(err, PL_EDEVICE, "one too many") : toy_square.worker_open(worker, state, err);
}

static void close_worker(void *worker)
{
    for (int i = 0; i < MANY; i++)
        n_closed[i] += worker_at[i] == worker;
}

/* Also one that could not be opened: what it has by then is given back. */
static void each_worker_is_closed_once(void **state)
{
    (void)state;
    for (int workers = MANY - 1; workers <= MANY + 1; workers++) {
        pl_stage square = toy_square;
        toy t;

        square.worker_open = open_worker;
        square.worker_close = close_worker;
        square.worker_size = 65;
        n_opened = 0;
        memset(n_closed, 0, sizeof n_closed);
        toy_make(&t, dir, 10);
        t.step[1].stage = &square;
        assert_int_equal(toy_run(&t, workers, NULL), workers < MANY ? PL_OK : PL_EDEVICE);
        assert_int_equal(n_opened, workers < MANY ? workers : MANY);
        for (int i = 0; i < n_opened; i++) {
            assert_int_equal(n_closed[i], 1);
            assert_true(i == 0 || (char *)worker_at[i] - (char *)worker_at[i - 1] == 128); /* no shared cache line */
        }
        toy_free(&t);
        toy_remove(dir);
    }
}

enum { TOGETHER = 6 };

static atomic_int n_inside;

/* Waits until as many units are worked on as there are workers. */
static pl_code work_together(void *worker, pl_unit *unit, pl_error *err)
{
    (void)atomic_fetch_add(&n_inside, 1);
    for (int k = 0; k < 2000 && atomic_load(&n_inside) < TOGETHER; k++)
        toy_sleep_ms(5);
    if (atomic_load(&n_inside) < TOGETHER)
        return pl_fail(err, PL_EBUG, "unit %lld has no company", (long long)unit->index);
    return toy_count.work(worker, unit, err);
}

static void all_workers_work_at_the_same_time(void **state)
{
    pl_stage count = toy_count;
    toy t;

    (void)state;
    count.work = work_together;
    atomic_store(&n_inside, 0);
    toy_make(&t, dir, 2 * TOGETHER);
    t.step[0].stage = &count;
    must_run(&t, TOGETHER);
    toy_free(&t);
}

static pl_code sleep_first(void *worker, pl_unit *unit, pl_error *err)
{
    toy_sleep_ms(300);
    return toy_count.work(worker, unit, err);
}

/* Seconds of a processor that this thread has used. */
static double seconds_used(void)
{
    struct timespec t;

    assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t), 0);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* While a worker is at work the main thread waits; it does not ask again and again. */
static void waiting_for_workers_takes_no_processor(void **state)
{
    const pl_run_opts opts = { .workers = 1, .quiet = true, .until = "count" };
    pl_stage count = toy_count;
    double before;
    toy t;

    (void)state;
    count.work = sleep_first;
    toy_make(&t, dir, 2);
    t.step[0].stage = &count;
    before = seconds_used();
    assert_int_equal(pl_run(&t.wf, &toy_schema, &opts, t.mem, NULL), PL_OK);
    assert_true(seconds_used() - before < 0.3);
    toy_free(&t);
}

static pl_code take_long(void *state, pl_unit *unit, bool *more, pl_error *err)
{
    toy_sleep_ms(600);
    return toy_count.next(state, unit, more, err);
}

static void keep_the_end_of_count(void *ctx, pl_level level, const char *line)
{
    (void)level;
    if (strncmp(line, "count     done in ", 18) == 0)
        (void)snprintf(ctx, 200, "%s", line);
}

/* The main thread's seconds are beside those of the workers in the last line of a stage, where both are a second or more. */
static void the_seconds_of_reading_are_told(void **state)
{
    const pl_run_opts opts = { .workers = 1, .until = "count" };
    pl_stage count = toy_count;
    char line[200] = "";
    const char *seconds;
    pl_error err = { 0 };
    toy t;

    (void)state;
    count.next = take_long;
    toy_make(&t, dir, 1);
    t.step[0].stage = &count;
    pl_log_to(keep_the_end_of_count, line, PL_INFO);
    assert_int_equal(pl_run(&t.wf, &toy_schema, &opts, t.mem, &err), PL_OK);
    pl_log_to(NULL, NULL, PL_ERROR);
    seconds = strstr(line, ", database ");
    if (seconds == NULL || !(atof(seconds + 11) >= 1) || strstr(line, ": 8 numbers") == NULL)
        fail_msg("%s", line);
    toy_free(&t);
}

/* ---- what happens in mid-run ---- */

static pl_code (*in_unit_5)(void); /* before the work on this unit of square */

static pl_code work_on_square(void *worker, pl_unit *unit, pl_error *err)
{
    const pl_code code = unit->index == 5 ? in_unit_5() : PL_OK;

    return code == PL_OK ? toy_square.work(worker, unit, err) : code;
}

static void make_eventful(toy *t, pl_stage *square, pl_code (*event)(void))
{
    toy_make(t, dir, 40);
    *square = toy_square;
    square->work = work_on_square;
    t->step[1].stage = square;
    in_unit_5 = event;
}

static pl_code is_asked_to_stop(void)
{
    (void)raise(SIGTERM);
    return PL_OK;
}

static pl_code gives_up(void)
{
    (void)raise(SIGTERM);
    return PL_ESTOP;
}

/* The unit in which a stop is asked for counts if its work was done. A unit that was given up, and what follows it, does not. */
static void a_unit_that_a_stop_leaves_undone_is_not_stored(void **state)
{
    static pl_code (*const events[])(void) = { gives_up, is_asked_to_stop };
    char want[130], got[130];

    (void)state;
    digest_of(other, 40, 1, NULL, want);
    for (int done = 0; done < 2; done++) {
        pl_error err = { 0 };
        pl_stage square;
        toy t;

        make_eventful(&t, &square, events[done]);
        assert_int_equal(toy_run(&t, 1, &err), PL_ESTOP);
        assert_string_equal(err.text, "stopped by signal TERM in stages count, square; run the same command again to continue");
        assert_int_equal(toy_int(&t, "SELECT count(*) FROM unit WHERE stage_id=2"), 5 + done);
        assert_int_equal(toy_int(&t, "SELECT max(unit) FROM unit WHERE stage_id=2"), 4 + done);
        assert_int_equal(toy_int(&t, "SELECT count(*) FROM square"), 8 * (5 + done));
        assert_int_equal(toy_int(&t,
                                 "SELECT count(*) FROM event WHERE level='info' AND stage='square' AND message LIKE 'stopped by "
                                 "signal TERM in %'"),
                         1);
        t.step[1].stage = &toy_square;
        must_run(&t, 1);
        toy_digest(&t, got);
        assert_string_equal(got, want);
        toy_free(&t);
        toy_remove(dir);
    }
}

static atomic_int at_unit_6; /* 0: not yet; 1: a worker is; 2: it was told to end; 3: it was not, for 20 s */

static void wait_until(bool (*is)(void))
{
    for (int ms = 0; !is() && ms < 20000; ms++)
        toy_sleep_ms(1);
}

static bool unit_6_has_begun(void) { return at_unit_6 != 0; }
static bool is_told_to_end(void) { return *pl_stop_flag() != 0; }

/* Unit 5 fails once the other worker is at unit 6, which takes as long as it may. */
static pl_code work_beside_a_failure(void *worker, pl_unit *unit, pl_error *err)
{
    if (unit->index == 5) {
        wait_until(unit_6_has_begun);
        return pl_fail(err, PL_EINPUT, "unit 5 is meant to fail");
    }
    if (unit->index == 6) {
        at_unit_6 = 1;
        wait_until(is_told_to_end);
        at_unit_6 = is_told_to_end() ? 2 : 3;
        return PL_ESTOP;
    }
    return toy_square.work(worker, unit, err);
}

/* A molecule may take minutes: what other workers do when a stage has failed is not waited for. */
static void an_error_ends_the_work_on_other_units(void **state)
{
    pl_error err = { 0 };
    pl_stage square;
    toy t;

    (void)state;
    make_eventful(&t, &square, NULL);
    square.work = work_beside_a_failure;
    at_unit_6 = 0;
    assert_int_equal(toy_run(&t, 2, &err), PL_EINPUT);
    assert_string_equal(err.text, "unit 5 is meant to fail");
    assert_int_equal(at_unit_6, 2);
    assert_int_equal(*pl_stop_flag(), 0);
    assert_int_equal(toy_int(&t, "SELECT count(*) FROM unit WHERE stage_id=2"), 5);
    t.step[1].stage = &toy_square;
    must_run(&t, 2);
    assert_true(toy_sound(&t));
    toy_free(&t);
}

static char results[300], away[320];

static pl_code moves_results(void) { return rename(results, away) == 0 ? PL_OK : PL_EBUG; }

/* SQLite would continue in a deleted file, and the results would be lost at the end, with status 0. */
static void results_that_are_moved_away_end_the_run(void **state)
{
    char want[600];
    pl_error err = { 0 };
    pl_stage square;
    toy t;

    (void)state;
    make_eventful(&t, &square, moves_results);
    (void)snprintf(results, sizeof results, "%s", t.wf.storage.results);
    (void)snprintf(away, sizeof away, "%s/away.db", dir);
    assert_int_equal(toy_run(&t, 1, &err), PL_EIO);
    (void)snprintf(want, sizeof want,
                   "%s was moved or deleted while this run wrote to it; put it back and run again, or the next run starts from the "
                   "beginning",
                   results);
    assert_string_equal(err.text, want);
    assert_int_equal(rename(away, results), 0);
    t.step[1].stage = &toy_square;
    must_run(&t, 1);
    assert_true(toy_sound(&t));
    toy_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_failing_stage_stops_the_others_and_all_go_on_later),
        CASE(only_a_run_that_ends_well_is_published),
        CASE(keep_going_finishes_stages_independent_of_the_failed),
        CASE(too_many_failures_stop_with_their_reasons),
        CASE(two_restarts_of_a_job_that_got_nowhere_end_with_1),
        CASE(a_full_enough_disk_is_refused_before_any_work),
        CASE(who_reads_holds_up_no_run),
        CASE(each_worker_is_closed_once),
        CASE(all_workers_work_at_the_same_time),
        CASE(waiting_for_workers_takes_no_processor),
        CASE(the_seconds_of_reading_are_told),
        CASE(a_unit_that_a_stop_leaves_undone_is_not_stored),
        CASE(results_that_are_moved_away_end_the_run),
        CASE(an_error_ends_the_work_on_other_units),
    };
    return cmocka_run_group_tests_name("run_ends", tests, NULL, NULL);
}
