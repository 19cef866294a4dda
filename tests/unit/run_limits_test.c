/* SPDX-License-Identifier: Apache-2.0 */
/* A run at its limits: the reserve for a full disk, free space, failures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "pipeline/base/disk.h"
#include "pipeline/base/stop.h"
#include "pipeline/run/runner.h"
#include "tests/unit/stored_runs.h"

/* ---- the reserve for a full disk ---- */

static off_t size_of(const char *name)
{
    struct stat at;

    return stat(in_dir(name), &at) == 0 ? at.st_size : -1;
}

static void put(const char *name, const char *bytes, size_t n)
{
    FILE *f = fopen(in_dir(name), "w");

    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void a_megabyte_is_kept_and_given_up_on_a_full_disk(void **state)
{
    pl_error err = { 0 };
    char zeros[5000] = "";
    toy t;

    (void)state;
    toy_make(&t, dir, 1);
    assert_int_equal(toy_run(&t, 1, &err), PL_OK);
    assert_int_equal(size_of(".reserve"), 1 << 20);
    put(".reserve", zeros, sizeof zeros); /* begun by a run that was killed */
    assert_int_equal(toy_run(&t, 1, &err), PL_OK);
    assert_int_equal(size_of(".reserve"), 1 << 20);
    t.wf.limits.disk_free_min = 1e18;
    assert_int_equal(toy_run(&t, 1, &err), PL_EIO);
    assert_int_equal(size_of(".reserve"), -1);
    zeros[4999] = 'x';
    put(".reserve", zeros, sizeof zeros); /* the file of another program */
    assert_int_equal(toy_run(&t, 1, &err), PL_EIO);
    assert_int_equal(size_of(".reserve"), 5000);
    toy_free(&t);
}

static off_t logs[2]; /* bytes of both -wal files when walk begins */

static pl_code look_at_logs(void *state, pl_env *env, pl_error *err)
{
    logs[0] = size_of("results.db-wal");
    logs[1] = size_of("features.db-wal");
    return toy_walk.open(state, env, err);
}

static void databases_are_whole_without_their_logs_after_each_stage(void **state)
{
    pl_stage walk = toy_walk;
    pl_error err = { 0 };
    toy t;

    (void)state;
    toy_make(&t, dir, 2);
    walk.open = look_at_logs;
    t.wf.step[2].stage = &walk;
    assert_int_equal(toy_run(&t, 1, &err), PL_OK);
    assert_true(logs[0] >= 0 && logs[0] < 100000); /* of what was written since */
    assert_int_equal(logs[1], 0);
    assert_string_equal(rows("SELECT DISTINCT tbl FROM sqlite_stat1 WHERE tbl IN('number','square') ORDER BY 1"),
                        "number\nsquare\n");
    assert_int_equal(toy_run(&t, 1, &err), PL_OK); /* rows() closed the database last, which counts as a run */
    assert_true(size_of("results.db-wal") == -1 && size_of("features.db-wal") == -1 && size_of("features.db") > 0);
    assert_true(size_of("results.db-shm") == -1 && size_of("features.db-shm") == -1);
    t.conf[1].offset = 1;
    assert_int_equal(toy_run(&t, 1, &err), PL_OK);
    assert_true(size_of("results.db-wal") == -1 && size_of("features.db-wal") == -1);
    toy_free(&t);
}

static void too_little_free_space_is_said_with_both_sizes(void **state)
{
    pl_error err = { 0 };
    char want[400];
    toy t;

    (void)state;
    toy_make(&t, dir, 1);
    t.wf.limits.disk_free_min = 2.5e15;
    assert_int_equal(toy_run(&t, 1, &err), PL_EIO);
    (void)snprintf(want, sizeof want, "%s: only ", t.wf.storage.results);
    assert_memory_equal(err.text, want, strlen(want));
    assert_non_null(strstr(err.text, " free, limits.disk_free_min is 2.5 PB; free some space and run again, nothing is lost"));
    t.wf.limits.disk_free_min = 1;
    assert_int_equal(toy_run(&t, 1, &err), PL_OK);
    assert_true(pl_disk_free(in_dir("not/yet/there.db")) > 0 && pl_disk_free("") > 0 && pl_disk_free("not there") > 0);
    toy_free(&t);
}

static toy *filling; /* whose disk has less room from unit 5 on */

static pl_code commit_and_fill(void *state, pl_unit *unit, pl_error *err)
{
    if (unit->index == 5)
        filling->wf.limits.disk_free_min = 1e18;
    return toy_count.commit(state, unit, err);
}

/* Looked at every 16 units; what is committed stays. */
static void a_disk_that_fills_up_in_mid_run_ends_it(void **state)
{
    pl_stage count = toy_count;
    pl_error err = { 0 };
    toy t;

    (void)state;
    toy_make(&t, dir, 40);
    count.commit = commit_and_fill;
    t.wf.step[0].stage = &count;
    filling = &t;
    assert_int_equal(toy_run(&t, 1, &err), PL_EIO);
    assert_non_null(strstr(err.text, "limits.disk_free_min is "));
    assert_int_equal(toy_int(&t, "SELECT max(unit) FROM unit JOIN stage USING(stage_id) WHERE name='count'"), 16);
    t.wf.limits.disk_free_min = 1;
    count.commit = toy_count.commit;
    assert_int_equal(toy_run(&t, 1, &err), PL_OK);
    assert_true(toy_sound(&t));
    toy_free(&t);
}

/* ---- limits ---- */

static pl_code limited(double fraction, int64_t count, int64_t units, int64_t fail_every, const char *want)
{
    pl_error err = { 0 };
    pl_code code;
    toy t;

    toy_make(&t, dir, units);
    t.conf[0].fail_every = fail_every;
    t.wf.limits.max_fraction = fraction;
    t.wf.limits.max_count = count;
    code = toy_run(&t, 1, &err);
    if (want != NULL)
        assert_string_equal(err.text, want);
    toy_free(&t);
    toy_remove(dir);
    return code;
}

static void limits_of_failures_hold_at_their_edges(void **state)
{
    (void)state;
    assert_int_equal(limited(1, 3, 3, 8, NULL), PL_OK);
    assert_int_equal(limited(1, 2, 3, 8,
                             "3 of 24 failed, more than limits.failures.max_count allows (toy 3); see `molsieve failures`; "
                             "raise the limit or use --keep-going"),
                     PL_ELIMIT);
    assert_int_equal(limited(1, 0, 3, 8,
                             "1 of 8 failed, more than limits.failures.max_count allows (toy 1); see `molsieve failures`; raise "
                             "the limit or use --keep-going"),
                     PL_ELIMIT);
    assert_int_equal(limited(0.5, -1, 6, 2, NULL), PL_OK);  /* exactly the half */
    assert_int_equal(limited(0.1, -1, 19, 8, NULL), PL_OK); /* 19 failures are too few to judge */
    assert_int_equal(limited(0.1, -1, 20, 8,
                             "20 of 160 failed, more than limits.failures.max_fraction allows (toy 20); see `molsieve "
                             "failures`; raise the limit or use --keep-going"),
                     PL_ELIMIT);
    assert_int_equal(limited(-1, -1, 20, 2, NULL), PL_OK);
}

/* Before SQLite is asked to write again, which would refuse it, too, but only in some journal modes. */
static void results_that_have_gone_are_seen_before_anything_is_written(void **state)
{
    pl_error err = { 0 };
    pl_store *s = NULL;
    toy t;

    (void)state;
    toy_make(&t, dir, 1);
    assert_int_equal(pl_store_open(&s, &t.wf, &toy_schema, &err), PL_OK);
    const pl_runner r = { .wf = &t.wf, .store = s };
    assert_int_equal(pl_disk_check(&r, &err), PL_OK);
    assert_int_equal(rename(t.wf.storage.results, in_dir("away.db")), 0);
    assert_int_equal(pl_disk_check(&r, &err), PL_EIO);
    assert_non_null(strstr(err.text, "was moved or deleted while this run wrote to it"));
    pl_store_close(s);
    toy_free(&t);
}

static bool stuck_at_unit_1;

static pl_code stuck_at_unit_0(void *state, pl_unit *unit, pl_error *err)
{
    if (unit->index == 0)
        pl_stop_stuck(true);
    else
        stuck_at_unit_1 = stuck_at_unit_1 || pl_stop_is_stuck();
    return toy_count.commit(state, unit, err);
}

/* One stored unit is enough for a further restart of the job. */
static void a_unit_that_is_stored_is_a_step_further(void **state)
{
    pl_stage count = toy_count;
    pl_error err = { 0 };
    toy t;

    (void)state;
    toy_make(&t, dir, 3);
    t.wf.step[0].stage = &count;
    count.commit = stuck_at_unit_0;
    assert_int_equal(toy_run(&t, 1, &err), PL_OK);
    assert_false(stuck_at_unit_1);
    toy_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_megabyte_is_kept_and_given_up_on_a_full_disk), CASE(databases_are_whole_without_their_logs_after_each_stage),
        CASE(too_little_free_space_is_said_with_both_sizes),  CASE(a_disk_that_fills_up_in_mid_run_ends_it),
        CASE(limits_of_failures_hold_at_their_edges),         CASE(results_that_have_gone_are_seen_before_anything_is_written),
        CASE(a_unit_that_is_stored_is_a_step_further),
    };
    return cmocka_run_group_tests_name("run_limits", tests, NULL, NULL);
}
