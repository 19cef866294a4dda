/* SPDX-License-Identifier: Apache-2.0 */
/* Runs: the same content with any number of workers; what is reused, what runs again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/toy_runs.h"

static void the_content_does_not_depend_on_the_number_of_workers(void **state)
{
    char one[130], five[130];

    (void)state;
    digest_of(dir, 30, 1, NULL, one);
    digest_of(other, 30, 5, NULL, five);
    assert_string_equal(one, five);
}

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
    t.conf[0].fail_every = 3;
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
    assert_string_equal(plan[1].reason, "done: 107 numbers in 20 units");
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

/* Its own failures go, those of other stages stay. */
static void a_stage_that_runs_again_replaces_its_failures(void **state)
{
    static const char of_count[] = "SELECT count(*) FROM failure WHERE stage='count'";
    toy t;

    (void)state;
    toy_make(&t, dir, 12);
    t.conf[0].fail_every = 3;
    must_run(&t, 2);
    assert_int_equal(toy_int(&t, of_count), 32);
    change_offset(&t);
    must_run(&t, 2);
    assert_int_equal(toy_int(&t, of_count), 32);
    t.conf[0].fail_every = 4;
    must_run(&t, 2);
    assert_int_equal(toy_int(&t, of_count), 24);
    assert_int_equal(toy_int(&t, "SELECT count(*) FROM failure"), 24);
    toy_free(&t);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(the_content_does_not_depend_on_the_number_of_workers),
        CASE(stages_at_once_make_what_they_make_one_after_another),
        CASE(no_stage_runs_far_ahead_of_the_next),
        CASE(two_begun_stages_resume_only_if_nothing_changed),
        CASE(a_finished_workflow_is_reused_and_nothing_is_opened),
        CASE(a_changed_setting_reruns_its_stage_and_dependents),
        CASE(a_stage_that_runs_again_replaces_its_failures),
        CASE(old_results_are_kept_until_the_new_ones_are_complete),
        CASE(the_seed_reruns_only_stages_that_use_it),
        CASE(how_a_stage_works_is_not_part_of_its_key),
        CASE(force_reruns_a_done_stage_with_the_same_result),
        CASE(until_runs_a_stage_and_what_it_needs),
        CASE(fresh_starts_in_a_new_directory_and_leaves_the_old_one),
        CASE(deleted_features_are_made_again_only_when_they_are_read),
        CASE(a_run_row_tells_who_what_and_how_it_ended),
        CASE(a_done_stage_that_lost_a_file_resumes),
        CASE(a_removed_stage_is_cleared_with_its_dependents),
        CASE(a_rerun_clears_every_stage_that_depends_on_it),
        CASE(no_units_at_all_is_a_finished_stage),
    };
    return cmocka_run_group_tests_name("run", tests, NULL, NULL);
}
