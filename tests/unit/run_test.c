/* SPDX-License-Identifier: Apache-2.0 */
/* Plans and runs: what is reused, what runs again, what is recorded. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "pipeline/base/clock.h"
#include "pipeline/base/log.h"
#include "pipeline/base/stop.h"
#include "toy.h"

static char dir[256], other[256];

static int fresh_dirs(void **state)
{
    (void)state;
    toy_directory(dir);
    toy_directory(other);
    return dir[0] == '\0' || other[0] == '\0';
}

static int drop_dirs(void **state)
{
    (void)state;
    toy_remove(dir);
    toy_remove(other);
    return 0;
}

static void must_run(toy *t, int workers)
{
    pl_error err = { 0 };
    pl_code code = toy_run(t, workers, &err);

    if (code != PL_OK)
        fail_msg("%s: %s", err.where, err.text);
}

static void digest_of(const char *where, int64_t units, int workers, void (*change)(toy *), char out[130])
{
    toy t;

    toy_make(&t, where, units);
    if (change != NULL)
        change(&t);
    must_run(&t, workers);
    toy_digest(&t, out);
    toy_free(&t);
}

static void plan_of(toy *t, pl_step_plan plan[3])
{
    pl_store *s = NULL;
    pl_error err = { 0 };

    if (pl_store_open_read(&s, t->wf.storage.results, &toy_schema, &err) != PL_OK ||
        pl_plan_keys(&t->wf, s, t->mem, &err) != PL_OK || pl_plan_steps(&t->wf, s, plan, t->mem, &err) != PL_OK)
        fail_msg("%s", err.text);
    pl_store_close(s);
}

static void the_content_does_not_depend_on_the_number_of_workers(void **state)
{
    char one[130], five[130];

    (void)state;
    digest_of(dir, 30, 1, NULL, one);
    digest_of(other, 30, 5, NULL, five);
    assert_string_equal(one, five);
}

static void change_offset(toy *t) { t->conf[1].offset = 5; }
static void change_seed(toy *t) { t->wf.seed = 8; }

static void run_until(toy *t, const char *stage)
{
    pl_run_opts opts = { .workers = 2, .quiet = true, .until = stage };
    pl_error err = { 0 };

    if (pl_run(&t->wf, &toy_schema, &opts, t->mem, &err) != PL_OK)
        fail_msg("%s", err.text);
}

static void stages_at_once_make_what_they_make_one_after_another(void **state)
{
    char apart[130], together[130];
    toy t;

    (void)state;
    toy_make(&t, dir, 30);
    run_until(&t, "count");
    assert_int_equal(toy_int(&t, "SELECT count(*) FROM square"), 0);
    run_until(&t, "square");
    run_until(&t, "walk");
    toy_digest(&t, apart);
    toy_free(&t);
    for (int workers = 1; workers <= 5; workers++) {
        digest_of(other, 30, workers, NULL, together);
        assert_string_equal(apart, together);
        toy_remove(other);
    }
}

static void no_stage_runs_far_ahead_of_the_next(void **state)
{
    (void)state;
    for (int slow = 0; slow < 2; slow++)
        for (int workers = 1; workers <= 3; workers++) {
            toy t;
            toy_lead = 0;
            toy_make(&t, dir, 100);
            t.conf[slow].pause = 0.0005;
            must_run(&t, workers);
            assert_true(toy_lead <= 4 * workers + 4);
            assert_int_equal(toy_int(&t, "SELECT count(*) FROM square"), 800);
            toy_free(&t);
            toy_remove(dir);
        }
}

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

static void two_begun_stages_resume_only_if_nothing_changed(void **state)
{
    toy t;
    pl_step_plan plan[3];
    char features[300];

    (void)state;
    toy_make(&t, dir, 40);
    t.conf[1].fail_at = 3;
    assert_int_equal(toy_run(&t, 2, NULL), PL_EINPUT);
    change_offset(&t);
    plan_of(&t, plan);
    assert_int_equal(plan[0].state, PL_STEP_RESUME);
    assert_int_equal(plan[1].state, PL_STEP_STALE);
    t.conf[1].offset = 0;
    t.conf[0].rows = 9;
    plan_of(&t, plan);
    assert_int_equal(plan[0].state, PL_STEP_STALE);
    assert_int_equal(plan[1].state, PL_STEP_STALE);
    t.conf[0].rows = 8;
    (void)snprintf(features, sizeof features, "%s/features.db", dir);
    (void)unlink(features);
    plan_of(&t, plan);
    assert_int_equal(plan[0].state, PL_STEP_STALE);
    assert_int_equal(plan[1].state, PL_STEP_STALE);
    toy_free(&t);
}

static void a_finished_workflow_is_reused_and_nothing_is_opened(void **state)
{
    toy t;
    pl_step_plan plan[3];
    int64_t units, events;

    (void)state;
    toy_make(&t, dir, 20);
    must_run(&t, 2);
    units = toy_int(&t, "SELECT count(*) FROM unit");
    events = toy_int(&t, "SELECT count(*) FROM event");
    must_run(&t, 2);
    assert_int_equal(units, 40);
    assert_int_equal(toy_int(&t, "SELECT count(*) FROM unit"), units);
    assert_int_equal(toy_int(&t, "SELECT count(*) FROM event"), events);
    assert_int_equal(toy_int(&t, "SELECT count(*) FROM run WHERE state='done'"), 2);
    assert_true(toy_int(&t, "SELECT count(*) FROM sqlite_stat1 WHERE tbl='unit'") > 0); /* what the planner of queries reads */
    plan_of(&t, plan);
    for (int i = 0; i < 3; i++)
        assert_int_equal(plan[i].state, PL_STEP_DONE);
    assert_string_equal(plan[0].reason, "done: 160 numbers in 20 units");
    toy_free(&t);
}

static void a_changed_setting_reruns_its_stage_and_dependents(void **state)
{
    toy t;
    pl_step_plan plan[3];
    char again[130], anew[130];

    (void)state;
    digest_of(dir, 12, 2, NULL, again);
    toy_make(&t, dir, 12);
    change_offset(&t);
    plan_of(&t, plan);
    assert_int_equal(plan[0].state, PL_STEP_DONE);
    assert_int_equal(plan[1].state, PL_STEP_STALE);
    assert_string_equal(plan[1].reason, "offset: 0 -> 5");
    assert_int_equal(plan[2].state, PL_STEP_STALE);
    assert_string_equal(plan[2].reason, "needs square, which runs again");
    toy_free(&t);
    digest_of(dir, 12, 2, change_offset, again);
    digest_of(other, 12, 2, change_offset, anew);
    assert_string_equal(again, anew);
}

static void old_results_are_kept_until_the_new_ones_are_complete(void **state)
{
    toy t;
    pl_error err = { 0 };
    char kept[400];

    (void)state;
    toy_make(&t, dir, 12);
    must_run(&t, 2);
    change_offset(&t);
    (void)snprintf(kept, sizeof kept, "%s/results.previous.db", dir);
    assert_int_equal(pl_run(&t.wf, &toy_schema, &(pl_run_opts){ .workers = 2, .quiet = true, .until = "square" }, t.mem, &err),
                     PL_OK);
    assert_int_equal(access(kept, F_OK), 0);
    must_run(&t, 2);
    assert_int_not_equal(access(kept, F_OK), 0);
    toy_free(&t);
}

static void the_seed_reruns_only_stages_that_use_it(void **state)
{
    toy t;
    pl_step_plan plan[3];
    char d[130];

    (void)state;
    digest_of(dir, 5, 2, NULL, d);
    toy_make(&t, dir, 5);
    change_seed(&t);
    plan_of(&t, plan);
    assert_int_equal(plan[1].state, PL_STEP_DONE);
    assert_int_equal(plan[2].state, PL_STEP_STALE);
    assert_string_equal(plan[2].reason, "seed: 7 -> 8");
    toy_free(&t);
}

static void how_a_stage_works_is_not_part_of_its_key(void **state)
{
    toy a, b;

    (void)state;
    toy_make(&a, dir, 5);
    toy_make(&b, other, 5);
    b.conf[0].pause = 0.25;
    b.wf.text = "# a comment\nformat: 1\n";
    b.wf.name = "another";
    b.wf.workers = 9;
    b.wf.limits.max_fraction = 0.5;
    assert_int_equal(pl_plan_keys(&a.wf, NULL, a.mem, NULL), PL_OK);
    assert_int_equal(pl_plan_keys(&b.wf, NULL, b.mem, NULL), PL_OK);
    for (int i = 0; i < 3; i++)
        assert_string_equal(a.step[i].key, b.step[i].key);
    b.conf[0].units = 6;
    assert_int_equal(pl_plan_keys(&b.wf, NULL, b.mem, NULL), PL_OK);
    for (int i = 0; i < 3; i++)
        assert_string_not_equal(a.step[i].key, b.step[i].key);
    toy_free(&a);
    toy_free(&b);
}

static void force_reruns_a_done_stage_with_the_same_result(void **state)
{
    toy t;
    char before[130], after[130];
    pl_error err = { 0 };
    pl_run_opts opts = { .workers = 2, .quiet = true, .force = "square" };

    (void)state;
    digest_of(dir, 12, 2, NULL, before);
    toy_make(&t, dir, 12);
    assert_int_equal(pl_run(&t.wf, &toy_schema, &opts, t.mem, &err), PL_OK);
    assert_int_equal(toy_int(&t, "SELECT count(*) FROM unit WHERE run_id=2"), 12);
    toy_digest(&t, after);
    assert_string_equal(before, after);
    opts.force = "squre";
    assert_int_equal(pl_run(&t.wf, &toy_schema, &opts, t.mem, &err), PL_ECONFIG);
    assert_non_null(strstr(err.text, "did you mean square"));
    toy_free(&t);
}

static void until_runs_a_stage_and_what_it_needs(void **state)
{
    toy t;
    pl_run_opts opts = { .workers = 1, .quiet = true, .until = "square" };

    (void)state;
    toy_make(&t, dir, 3);
    assert_int_equal(pl_run(&t.wf, &toy_schema, &opts, t.mem, NULL), PL_OK);
    assert_int_equal(toy_int(&t, "SELECT count(*) FROM stage WHERE state='done'"), 2);
    assert_int_equal(toy_int(&t, "SELECT count(*) FROM walk"), 0);
    toy_free(&t);
}

static void fresh_starts_in_a_new_directory_and_leaves_the_old_one(void **state)
{
    toy t;
    char second[300];
    pl_run_opts opts = { .workers = 1, .quiet = true, .fresh = true };

    (void)state;
    toy_make(&t, dir, 3);
    must_run(&t, 1);
    assert_int_equal(pl_run(&t.wf, &toy_schema, &opts, t.mem, NULL), PL_OK);
    (void)snprintf(second, sizeof second, "%s-2", dir);
    assert_string_equal(t.wf.workdir, second);
    assert_int_equal(toy_int(&t, "SELECT count(*) FROM run"), 1);
    toy_free(&t);
}

static void deleted_features_are_made_again_only_when_they_are_read(void **state)
{
    toy t;
    pl_step_plan plan[3];
    char features[300], before[130], after[130];

    (void)state;
    digest_of(dir, 6, 2, change_offset, after);
    digest_of(other, 6, 2, NULL, before);
    toy_make(&t, other, 6);
    (void)snprintf(features, sizeof features, "%s/features.db", other);
    (void)unlink(features);
    plan_of(&t, plan);
    for (int i = 0; i < 3; i++)
        assert_int_equal(plan[i].state, PL_STEP_DONE);
    change_offset(&t);
    plan_of(&t, plan);
    assert_string_equal(plan[0].reason, "its blocks are missing in features.db");
    must_run(&t, 2);
    toy_digest(&t, before);
    assert_string_equal(before, after);
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

static void a_run_row_tells_who_what_and_how_it_ended(void **state)
{
    toy t;

    (void)state;
    toy_make(&t, dir, 2);
    (void)setenv("SLURM_JOB_ID", "4711", 1);
    must_run(&t, 2);
    (void)unsetenv("SLURM_JOB_ID");
    assert_int_equal(toy_int(&t, "SELECT count(*) FROM run WHERE scheduler='slurm' AND scheduler_job_id='4711' AND "
                                 "length(uuid)=36 AND exit_code=0 AND workers=2 AND seed=7 AND length(config_sha256)=64"),
                     1);
    toy_free(&t);
}

/* A run whose time limit ends before it has done anything. */
static const char *lost; /* the file that the stage count lacks */

static pl_code lost_file(const pl_workflow *wf, const pl_step *step, const char **path, pl_arena *mem, pl_error *err)
{
    (void)wf, (void)step, (void)mem, (void)err;
    *path = lost;
    return PL_OK;
}

static void a_done_stage_that_lost_a_file_resumes(void **state)
{
    pl_stage with_file = toy_count;
    int64_t runs;
    toy t;

    (void)state;
    with_file.missing = lost_file;
    toy_make(&t, dir, 5);
    t.step[0].stage = &with_file;
    lost = NULL;
    must_run(&t, 2);
    runs = toy_int(&t, "SELECT count(*) FROM unit");
    lost = "/none/file";
    must_run(&t, 2);
    assert_int_equal(toy_int(&t, "SELECT count(*) FROM stage WHERE state='done'"), toy_int(&t, "SELECT count(*) FROM stage"));
    assert_int_equal(toy_int(&t, "SELECT count(*) FROM unit"), runs);
    assert_int_equal(toy_int(&t, "SELECT count(*) FROM stage WHERE name='count' AND run_id=1"),
                     1); /* its units are those of the first run */
    assert_true(toy_sound(&t));
    toy_free(&t);
}

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

static void a_removed_stage_is_cleared_with_its_dependents(void **state)
{
    static const pl_stage *const known[] = { &toy_count, &toy_square, &toy_walk, NULL };
    toy t;
    pl_run_opts opts = { .workers = 2, .quiet = true, .known = known };

    (void)state;
    toy_make(&t, dir, 4);
    must_run(&t, 2);
    t.wf.n_steps = 1;
    t.conf[0].units = 5;
    assert_int_equal(pl_run(&t.wf, &toy_schema, &opts, t.mem, NULL), PL_OK);
    assert_int_equal(toy_int(&t, "SELECT count(*) FROM stage"), 1);
    assert_int_equal(toy_int(&t, "SELECT count(*) FROM square"), 0);
    toy_free(&t);
}

/* A database may have more stages than any workflow: none may keep results when its input changes. */
static void a_rerun_clears_every_stage_that_depends_on_it(void **state)
{
    static const char add[] =
        "WITH RECURSIVE n(k) AS (SELECT 1 UNION ALL SELECT k+1 FROM n WHERE k<600) INSERT INTO stage(name,key,"
        "params_json,extra_json,needs_json,code_version,state,created_utc) SELECT 'old'||k,'key'||k,'{}','{}',"
        "'{\"count\":\"x\"}',1,'done','' FROM n; DELETE FROM row_sum";
    sqlite3 *db;
    toy t;

    (void)state;
    toy_make(&t, dir, 4);
    must_run(&t, 2);
    assert_int_equal(sqlite3_open(t.wf.storage.results, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, add, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    t.conf[0].rows++;
    must_run(&t, 2);
    assert_int_equal(toy_int(&t, "SELECT count(*) FROM stage"), 3);
    toy_free(&t);
}

static void no_units_at_all_is_a_finished_stage(void **state)
{
    toy t;

    (void)state;
    toy_make(&t, dir, 0);
    must_run(&t, 3);
    assert_int_equal(toy_int(&t, "SELECT count(*) FROM stage WHERE state='done'"), 3);
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

#define CASE(f) cmocka_unit_test_setup_teardown(f, fresh_dirs, drop_dirs)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(the_content_does_not_depend_on_the_number_of_workers),
        CASE(stages_at_once_make_what_they_make_one_after_another),
        CASE(no_stage_runs_far_ahead_of_the_next),
        CASE(a_failing_stage_stops_the_others_and_all_go_on_later),
        CASE(keep_going_finishes_stages_independent_of_the_failed),
        CASE(two_begun_stages_resume_only_if_nothing_changed),
        CASE(a_finished_workflow_is_reused_and_nothing_is_opened),
        CASE(a_changed_setting_reruns_its_stage_and_dependents),
        CASE(old_results_are_kept_until_the_new_ones_are_complete),
        CASE(the_seed_reruns_only_stages_that_use_it),
        CASE(how_a_stage_works_is_not_part_of_its_key),
        CASE(force_reruns_a_done_stage_with_the_same_result),
        CASE(until_runs_a_stage_and_what_it_needs),
        CASE(fresh_starts_in_a_new_directory_and_leaves_the_old_one),
        CASE(deleted_features_are_made_again_only_when_they_are_read),
        CASE(too_many_failures_stop_with_their_reasons),
        CASE(a_run_row_tells_who_what_and_how_it_ended),
        CASE(a_done_stage_that_lost_a_file_resumes),
        CASE(two_restarts_of_a_job_that_got_nowhere_end_with_1),
        CASE(a_removed_stage_is_cleared_with_its_dependents),
        CASE(a_rerun_clears_every_stage_that_depends_on_it),
        CASE(no_units_at_all_is_a_finished_stage),
        CASE(a_full_enough_disk_is_refused_before_any_work),
        CASE(who_reads_holds_up_no_run),
        CASE(each_worker_is_closed_once),
        CASE(a_unit_that_a_stop_leaves_undone_is_not_stored),
        CASE(an_error_ends_the_work_on_other_units),
        CASE(results_that_are_moved_away_end_the_run),
    };
    return cmocka_run_group_tests_name("run", tests, NULL, NULL);
}
