/* SPDX-License-Identifier: Apache-2.0 */
/* Plans: what runs again and why, in words; which stages and workers a command means. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "pipeline/base/file.h"
#include "pipeline/run/explain_words.h"
#include "pipeline/run/runner.h"
#include "tests/unit/stored_runs.h"

static void explained(toy *t, const char *stage, const char *want)
{
    pl_store *s = NULL;
    pl_text out = { 0 };
    pl_error err = { 0 };

    (void)pl_store_open_read(&s, t->wf.storage.results, &toy_schema, &err);
    assert_int_equal(pl_plan_keys(&t->wf, s, t->mem, &err), PL_OK);
    assert_int_equal(pl_explain(&t->wf, s, stage, &out, t->mem, &err), PL_OK);
    if (strncmp(pl_text_str(&out), want, strlen(want)) != 0)
        fail_msg("%s\nwanted: %s", pl_text_str(&out), want);
    pl_text_free(&out);
    pl_store_close(s);
}

static void keys_of(toy *t, int i, const char *label, const char *fmt, char out[512])
{
    (void)snprintf(out, 512, fmt, t->step[i].key, label);
}

static void explain_says_what_differs_setting_by_setting(void **state)
{
    pl_error err = { 0 };
    char key[65], want[512];
    pl_stage walk = toy_walk;
    toy t;

    (void)state;
    toy_make(&t, dir, 2);
    explained(&t, "count", "count will run: never run\n  its result depends on these settings: ");
    assert_int_equal(toy_run(&t, 1, &err), PL_OK);
    keys_of(&t, 0, "",
            "count is done and reused: 16 numbers in 2 units\n  nothing that affects its result has changed (key %.12s)\n"
            "  its result depends on these settings: ",
            want);
    explained(&t, "count", want);
    (void)snprintf(key, sizeof key, "%s", t.step[1].key);
    t.conf[1].offset = 5;
    t.conf[1].rows = 9;
    assert_int_equal(pl_plan_keys(&t.wf, NULL, t.mem, &err), PL_OK);
    (void)snprintf(
        want, sizeof want,
        "square will run again: offset: 0 -> 5 (and 1 more)\n  2 differences from what is stored (key %.12s, now %.12s):\n"
        "    offset: 0 -> 5\n    rows: 8 -> 9\n  its result depends on these settings: fail_every 0, offset 5, rows 9, units 2\n",
        key, t.step[1].key);
    explained(&t, "square", want);
    t.conf[1].rows = 8;
    assert_int_equal(pl_plan_keys(&t.wf, NULL, t.mem, &err), PL_OK);
    (void)snprintf(
        want, sizeof want,
        "square will run again: offset: 0 -> 5\n  1 difference from what is stored (key %.12s, now %.12s):\n    offset: 0 -> 5\n",
        key, t.step[1].key);
    explained(&t, "square", want);
    (void)snprintf(key, sizeof key, "%s", t.step[2].key);
    walk.version = 4;
    t.wf.step[2].stage = &walk;
    t.wf.step[2].needs[0] = 0;
    t.conf[1].offset = 0;
    assert_int_equal(toy_run(&t, 1, &err), PL_OK);
    toy_free(&t);
    toy_make(&t, dir, 2);
    assert_int_equal(pl_plan_keys(&t.wf, NULL, t.mem, &err), PL_OK);
    explained(&t, "walk", "walk will run again: the stage itself: version 4 -> 1 (and 2 more)\n");
    toy_free(&t);
}

static void only_hashes_are_shortened_in_an_explanation(void **state)
{
    static const char path[] = "an/input/whose/name/has/as/many/characters/as/a/hash/of/it/has.s";
    static const char hash[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    char json[300], want[200];
    pl_text out = { 0 };

    (void)state;
    assert_int_equal(strlen(path), strlen(hash));
    (void)snprintf(json, sizeof json, "{\"path\": \"%s\", \"sha256\": \"%s\", \"more\": \"%s0\"}", path, hash, hash);
    (void)snprintf(want, sizeof want, "  reads: path %s, sha256 %.12s, more %s0\n", path, hash, hash);
    pl_explain_words(&out, "reads", json);
    assert_string_equal(pl_text_str(&out), want);
    pl_text_free(&out);
}

static pl_code list_as_key(const pl_workflow *wf, const pl_step *step, pl_store *store, const char **json, pl_arena *mem,
                           pl_error *err)
{
    (void)wf, (void)step, (void)store, (void)mem, (void)err;
    *json = "[1]";
    return PL_OK;
}

static pl_code no_key(const pl_workflow *wf, const pl_step *step, pl_store *store, const char **json, pl_arena *mem, pl_error *err)
{
    (void)wf, (void)step, (void)store, (void)json, (void)mem;
    return pl_fail(err, PL_EIO, "no key");
}

static void a_stage_whose_key_fails_makes_no_plan(void **state)
{
    pl_stage square = toy_square;
    pl_error err = { 0 };
    toy t;

    (void)state;
    toy_make(&t, dir, 2);
    t.wf.step[1].stage = &square;
    square.key = no_key;
    assert_int_equal(pl_plan_keys(&t.wf, NULL, t.mem, &err), PL_EIO);
    assert_string_equal(err.text, "no key");
    assert_string_equal(err.where, "stage square");
    toy_free(&t);
}

static void a_stage_whose_key_is_not_json_is_named(void **state)
{
    pl_stage count = toy_count;
    pl_error err = { 0 };
    toy t;

    (void)state;
    toy_make(&t, dir, 2);
    t.wf.step[0].stage = &count;
    count.key = list_as_key;
    assert_int_equal(pl_plan_keys(&t.wf, NULL, t.mem, &err), PL_EBUG);
    assert_string_equal(err.text, "the key of stage count is not a JSON object: [1]");
    assert_string_equal(err.where, "stage count");
    count.key = NULL;
    count.name = "c\xff";
    assert_int_equal(pl_plan_keys(&t.wf, NULL, t.mem, &err), PL_EBUG);
    assert_non_null(strstr(err.text, "the settings of stage c"));
    assert_non_null(strstr(err.text, " are not JSON"));
    toy_free(&t);
}

static pl_code no_estimate(const pl_workflow *wf, const pl_step *step, pl_store *store, pl_estimate *out, pl_arena *mem,
                           pl_error *err)
{
    (void)wf, (void)step, (void)store, (void)out, (void)mem;
    return pl_fail(err, PL_EIO, "no estimate");
}

static void an_estimate_that_fails_is_told_before_one_that_does_not(void **state)
{
    pl_stage count = toy_count, square = toy_square;
    pl_step_plan plan[3];
    pl_error err = { 0 };
    toy t;

    (void)state;
    toy_make(&t, dir, 2);
    count.estimate = no_estimate;
    square.estimate = toy_count.estimate;
    t.wf.step[0].stage = &count;
    t.wf.step[1].stage = &square;
    assert_int_equal(pl_plan_keys(&t.wf, NULL, t.mem, &err), PL_OK);
    assert_int_equal(pl_plan_steps(&t.wf, NULL, plan, t.mem, &err), PL_OK);
    assert_int_equal(pl_plan_estimate(&t.wf, NULL, plan, t.mem, &err), PL_EIO);
    assert_string_equal(err.text, "no estimate");
    toy_free(&t);
}

static void estimates_are_asked_of_what_has_one_and_is_not_done(void **state)
{
    pl_step_plan plan[3];
    pl_error err = { 0 };
    pl_store *s = NULL;
    toy t;

    (void)state;
    toy_make(&t, dir, 2);
    assert_int_equal(pl_plan_keys(&t.wf, NULL, t.mem, &err), PL_OK);
    assert_int_equal(pl_plan_steps(&t.wf, NULL, plan, t.mem, &err), PL_OK);
    assert_int_equal(pl_plan_estimate(&t.wf, NULL, plan, t.mem, &err), PL_OK);
    assert_int_equal(plan[0].estimate.n_items, 16);
    assert_int_equal(plan[0].estimate.n_units, 2);
    assert_int_equal(plan[1].estimate.n_items, -1); /* square has none */
    assert_int_equal(plan[2].estimate.n_units, -1);
    assert_int_equal(toy_run(&t, 1, &err), PL_OK);
    assert_int_equal(pl_store_open_read(&s, t.wf.storage.results, &toy_schema, &err), PL_OK);
    assert_int_equal(pl_plan_steps(&t.wf, s, plan, t.mem, &err), PL_OK);
    assert_int_equal(pl_plan_estimate(&t.wf, s, plan, t.mem, &err), PL_OK);
    assert_int_equal(plan[0].state, PL_STEP_DONE);
    assert_int_equal(plan[0].estimate.n_items, -1);
    pl_store_close(s);
    toy_free(&t);
}

static void needs_that_changed_are_named(void **state)
{
    pl_error err = { 0 };
    pl_text out = { 0 };
    pl_stage_row row;
    pl_store *s = NULL;
    int n = 0;
    toy t;

    (void)state;
    toy_make(&t, dir, 2);
    assert_int_equal(toy_run(&t, 1, &err), PL_OK);
    t.conf[0].offset = 3;
    t.wf.step[2].n_needs = 2;
    t.wf.step[2].needs[0] = 0;
    t.wf.step[2].needs[1] = 1;
    assert_int_equal(pl_store_open_read(&s, t.wf.storage.results, &toy_schema, &err), PL_OK);
    assert_int_equal(pl_plan_keys(&t.wf, s, t.mem, &err), PL_OK);
    assert_int_equal(pl_stage_row_get(s, "walk", &row, t.mem, &err), PL_OK);
    assert_int_equal(pl_row_diff(&row, &t.wf, &t.wf.step[2], &out, &n, t.mem, &err), PL_OK);
    assert_string_equal(pl_text_str(&out), "needs count, which it did not use before\nneeds square, whose result changed\n");
    assert_int_equal(n, 2);
    pl_text_reset(&out);
    t.wf.step[2].n_needs = 0;
    assert_int_equal(pl_row_diff(&row, &t.wf, &t.wf.step[2], &out, &n, t.mem, &err), PL_OK);
    assert_string_equal(pl_text_str(&out), "no longer uses square\n");
    assert_int_equal(n, 1);
    pl_text_free(&out);
    pl_store_close(s);
    toy_free(&t);
}

static void stages_that_are_not_there_are_named_with_those_that_are(void **state)
{
    static const struct {
        pl_run_opts opts;
        const char *text;
    } cases[] = {
        { { .until = "cuont" },
          "--until cuont: this workflow has no such stage, did you mean count; its stages: count, square, walk" },
        { { .from = "elsewhere" }, "--from elsewhere: this workflow has no such stage; its stages: count, square, walk" },
        { { .force = "wall" },
          "--force wall: this workflow has no such stage, did you mean walk; its stages: count, square, walk" },
    };
    pl_step_plan plan[3];
    bool wanted[3];
    toy t;

    (void)state;
    toy_make(&t, dir, 1);
    assert_int_equal(pl_plan_keys(&t.wf, NULL, t.mem, NULL), PL_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pl_error err = { 0 };
        assert_int_equal(pl_plan_steps_with(&t.wf, NULL, &cases[i].opts, plan, wanted, t.mem, &err), PL_ECONFIG);
        assert_string_equal(err.text, cases[i].text);
    }
    toy_free(&t);
}

static void from_a_stage_runs_it_and_all_after_it_once(void **state)
{
    static char *const argv[] = { (char *)"--from", (char *)"square" };
    pl_run_opts opts = { .workers = 1, .quiet = true, .from = "square", .argc = 2, .argv = argv };
    pl_error err = { 0 };
    toy t;

    (void)state;
    toy_make(&t, dir, 4);
    assert_int_equal(toy_run(&t, 1, &err), PL_OK);
    t.conf[1].fail_at = 2;
    assert_int_equal(pl_run(&t.wf, &toy_schema, &opts, t.mem, &err), PL_EINPUT);
    assert_string_equal(rows("SELECT stage,message FROM event WHERE run_id=2 AND event_id=7"),
                        "square|requested by --force or --from\n");
    t.conf[1].fail_at = 0;
    assert_int_equal(pl_run(&t.wf, &toy_schema, &opts, t.mem, &err), PL_OK); /* the same command goes on */
    assert_string_equal(rows("SELECT stage_id,run_id,count(*) FROM unit GROUP BY 1,2 ORDER BY 1,2"), "1|1|4\n2|2|2\n2|3|2\n");
    assert_string_equal(rows("SELECT count(*) FROM stage WHERE state='done'"), "3\n");
    assert_int_equal(pl_run(&t.wf, &toy_schema, &opts, t.mem, &err),
                     PL_OK); /* the stage was done: with --force again, it runs again */
    assert_string_equal(rows("SELECT run_id,count(*) FROM unit GROUP BY 1 ORDER BY 1"), "1|4\n4|4\n");
    toy_free(&t);
}

static void a_fresh_directory_takes_along_what_lies_in_the_old_one(void **state)
{
    pl_error err = { 0 };
    char want[300];
    toy t;

    (void)state;
    toy_make(&t, dir, 1);
    t.wf.storage.features = "/elsewhere/features.db";
    (void)snprintf(want, sizeof want, "%s-2", dir);
    assert_int_equal(pl_mkdirs(want, &err), PL_OK);
    assert_int_equal(pl_workflow_fresh(&t.wf, t.mem, &err), PL_OK);
    (void)snprintf(want, sizeof want, "%s-3", dir);
    assert_string_equal(t.wf.workdir, want);
    (void)snprintf(want, sizeof want, "%s-3/results.db", dir);
    assert_string_equal(t.wf.storage.results, want);
    assert_string_equal(t.wf.storage.features, "/elsewhere/features.db");
    t.wf.workdir = "/a/run";
    t.wf.storage.results = "/a/run-other/results.db";
    assert_int_equal(pl_workflow_fresh(&t.wf, t.mem, &err), PL_OK);
    assert_string_equal(t.wf.workdir, "/a/run"); /* there is no database: it is fresh already */
    assert_string_equal(t.wf.storage.results, "/a/run-other/results.db");
    toy_free(&t);
}

static void workers_are_those_of_command_workflow_or_machine(void **state)
{
    pl_workflow wf = { .workers = 3 };

    (void)state;
    assert_int_equal(pl_workers(&wf, &(pl_run_opts){ .workers = 2 }), 2);
    assert_int_equal(pl_workers(&wf, &(pl_run_opts){ .workers = 0 }), 3);
    wf.workers = 4095;
    assert_int_equal(pl_workers(&wf, &(pl_run_opts){ .workers = 0 }), 4095);
    wf.workers = 1;
    assert_int_equal(pl_workers(&wf, &(pl_run_opts){ .workers = 0 }), 1);
    for (int64_t n = -1; n < 5000; n += 4097 - (n >= 0)) {
        wf.workers = n;
        if (n <= 0 || n >= 4096)
            assert_in_range(pl_workers(&wf, &(pl_run_opts){ .workers = 0 }), 1, 4095);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(explain_says_what_differs_setting_by_setting),
        CASE(only_hashes_are_shortened_in_an_explanation),
        CASE(a_stage_whose_key_fails_makes_no_plan),
        CASE(a_stage_whose_key_is_not_json_is_named),
        CASE(an_estimate_that_fails_is_told_before_one_that_does_not),
        CASE(estimates_are_asked_of_what_has_one_and_is_not_done),
        CASE(needs_that_changed_are_named),
        CASE(stages_that_are_not_there_are_named_with_those_that_are),
        CASE(from_a_stage_runs_it_and_all_after_it_once),
        CASE(a_fresh_directory_takes_along_what_lies_in_the_old_one),
        CASE(workers_are_those_of_command_workflow_or_machine),
    };
    return cmocka_run_group_tests_name("run_plans", tests, NULL, NULL);
}
