/* SPDX-License-Identifier: Apache-2.0 */
/* What `status` prints of a run on another host and of shards, by their heartbeats, in each format. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "golden/command.h"
#include "pipeline/base/file.h"
#include "pipeline/base/folder.h"
#include "toy.h"

static char dir[256], back[4096];

static int begin(void **state)
{
    (void)state;
    toy_directory(dir);
    return getcwd(back, sizeof back) == NULL || chdir(dir) != 0;
}

static int end(void **state)
{
    (void)state;
    assert_int_equal(chdir(back), 0);
    toy_remove(dir);
    return 0;
}

static void put(const char *path, const char *text)
{
    assert_int_equal(pl_file_write(path, (pl_bytes){ text, strlen(text) }, NULL), PL_OK);
}

/* ago: seconds since the last beat; every: seconds between two. */
static void beat(const char *folder, const char *state, double ago, int every)
{
    const time_t at = time(NULL) - (time_t)ago;
    char path[300], when[40], text[900];
    struct tm tm;

    assert_int_equal(pl_mkdirs(folder, NULL), PL_OK);
    (void)strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&at, &tm));
    (void)snprintf(path, sizeof path, "%s/heartbeat.json", folder);
    (void)snprintf(
        text, sizeof text,
        "{\"run_id\": 3, \"command\": \"run\", \"state\": \"%s\", \"host\": \"else\\\"where\", \"job\": \"slurm 12\", "
        "\"started_utc\": \"2026-01-02T00:00:10Z\", \"at_utc\": \"%s\", \"every_s\": %d, \"reason\": \"full disk\", \"stages\": ["
        "{\"stage\": \"read\", \"state\": \"done\", \"item\": \"records\", \"done\": 1234, \"total\": 1234, \"note\": \"\"}, "
        "{\"stage\": \"prepare\", \"state\": \"running\", \"item\": \"molecules\", \"done\": 70, \"total\": -1, \"note\": \"slow\"}]}",
        state, when, every);
    put(path, text);
}

/* With A for how long ago the last beat was, and T for when. */
static void prints(const char *words, const char *want)
{
    said s = say(words);
    pl_text is = { 0 };

    for (const char *at = pl_text_str(&s.out); *at != '\0'; at++) {
        pl_text_add_n(&is, at, 1);
        if (strncmp(at, "heartbeat, ", 11) == 0) {
            pl_text_add(&is, "eartbeat, A");
            at = strstr(at, " ago") - 1;
        } else if (strncmp(at, "\"at_utc\": \"2", 12) == 0) {
            pl_text_add(&is, "at_utc\": \"T");
            at = strstr(at, "Z\"");
        }
    }
    if (s.status != 0 || strcmp(pl_text_str(&is), want) != 0)
        fail_msg("%s: %d\n%s%sinstead of\n%s", words, s.status, pl_text_str(&is), pl_text_str(&s.err), want);
    pl_text_free(&is);
    said_free(&s);
}

#define HEAD(state)                                                                                                   \
    "far/results.db\nrun 3 (run): " state ", on else\"where, slurm 12 since 2026-01-02T00:00:10Z: full disk; by its " \
    "heartbeat, A ago\n"
#define STAGES                                                 \
    "  read      done              1,234 records of 1,234  \n" \
    "  prepare   running              70 molecules  slow\n"

/* Three missed beats and a minute. */
static void a_run_elsewhere_is_lost_without_its_heartbeat(void **state)
{
    (void)state;
    beat("far", "running", 2500, 1000);
    put("far/results.db", "");
    prints("status far", HEAD("running") STAGES);
    beat("far", "running", 3500, 1000);
    prints(
        "status far",
        HEAD(
            "lost") "  no heartbeat: the process or its host is dead; run the same command again to continue, when the lock is free\n" STAGES);
    beat("far", "running", 0, 10);
    prints(
        "status far --json",
        "{\n \"run_id\": 3,\n \"command\": \"run\",\n \"state\": \"running\",\n \"host\": \"else\\\"where\",\n \"job\": \"slurm 12\",\n "
        "\"started_utc\": \"2026-01-02T00:00:10Z\",\n \"at_utc\": \"T\",\n \"every_s\": 10,\n \"reason\": \"full disk\",\n \"stages\": [\n"
        "  {\n   \"stage\": \"read\",\n   \"state\": \"done\",\n   \"item\": \"records\",\n   \"done\": 1234,\n   \"total\": 1234,\n   "
        "\"note\": \"\"\n  },\n  {\n   \"stage\": \"prepare\",\n   \"state\": \"running\",\n   \"item\": \"molecules\",\n   \"done\": 70,\n   "
        "\"total\": -1,\n   \"note\": \"slow\"\n  }\n ],\n \"results\": \"far/results.db\"\n}\n");
}

#define METRIC(name, help) "# HELP molsieve_" name " " help "\n# TYPE molsieve_" name " gauge\n"
#define OF "{results=\"far/results.db\""
#define STATE(state, value) "molsieve_run_state" OF ",state=\"" state "\"} " value "\n"

static void its_metrics_are_those_of_its_heartbeat(void **state)
{
    (void)state;
    beat("far", "running", 0, 10);
    put("far/results.db", "");
    prints(
        "status far --prometheus",
        METRIC("run_state", "1 for the state of the latest run, 0 for the others") STATE("running", "1") STATE("done", "0") STATE(
            "stopped", "0") STATE("failed", "0") STATE("lost", "0")
            METRIC("run_start_time_seconds", "when the latest run began, in seconds since 1970") "molsieve_run_start_time_seconds" OF "} 1767312010\n" METRIC(
                "stage_done",
                "1 for a stage that is complete") "molsieve_stage_done" OF ",stage=\"read\"} 1\nmolsieve_stage_done" OF
                                                  ",stage=\"prepare\"} 0\n" METRIC(
                                                      "stage_items_done",
                                                      "items that a stage has done, by the heartbeat of the run") "molsieve_stage_items_done" OF
                                                                                                                  ",stage=\"read\",item=\"records\"} 1234\nmolsieve_stage_items_done" OF
                                                                                                                  ",stage=\"prepare\",item=\"molecules\"} 70\n" METRIC(
                                                                                                                      "stage_items",
                                                                                                                      "items that a stage has to do, where that is known") "molsieve_stage_items" OF
                                                                                                                                                                           ",stage=\"read\",item=\"records\"} 1234\n");
}

/* 1 running, 2 done, 3 stopped, 4 failed, 5 lost and 6 damaged: no number is another's. */
static void shards_are_counted_by_their_states(void **state)
{
    static const char *const states[] = { "running", "done", "stopped", "failed", "running" };
    char folder[60];
    int n = 0;

    (void)state;
    put("in.smi", "C\n");
    put("w.yaml", "format: 1\nworkdir: all\ninputs: [{path: in.smi}]\nstages:\n  read: {}\n");
    for (int k = 0; k < 6; k++)
        for (int i = 0; i <= k; i++) {
            (void)snprintf(folder, sizeof folder, "all/shards/%05d-of-00021", n++);
            if (k < 5)
                beat(folder, states[k], k == 4 ? 1000 : 0, 10);
            else
                assert_int_equal(pl_mkdirs(folder, NULL), PL_OK);
            if (k == 5)
                put(strcat(folder, "/heartbeat.json"), "{}");
        }
    prints("status w.yaml",
           "shards: 1 running, 2 done, 3 stopped, 4 failed, 5 lost, 6 with a damaged heartbeat; 1,050 records prepared by "
           "their latest runs\n`molsieve merge FILE --missing` prints the shards that are not finished\n");
    prints("status w.yaml --json", "{\"shards\":{\"running\":1,\"done\":2,\"stopped\":3,\"failed\":4,\"lost\":5,\"damaged\":6}}\n");
}

/* A run that has ended, one on this host, and a heartbeat that is damaged: the database tells, which is none here. */
static void otherwise_the_database_is_read(void **state)
{
    static const char *const last[] = { "done", "failed" };
    said s;

    (void)state;
    assert_int_equal(pl_mkdirs("far", NULL), PL_OK);
    put("far/results.db", "");
    for (int k = 0; k < 2; k++) {
        beat("far", last[k], 0, 10);
        s = say("status far");
        assert_true(s.status != 0 && s.out.len == 0);
        said_free(&s);
    }
    put("far/heartbeat.json", "{\"state\": \"running\", \"crc32\": \"00000000\"}");
    s = say("status far");
    assert_true(s.status != 0 && s.out.len == 0);
    assert_non_null(strstr(pl_text_str(&s.err), "far/heartbeat.json: damaged, not used"));
    said_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_run_elsewhere_is_lost_without_its_heartbeat, begin, end),
        cmocka_unit_test_setup_teardown(its_metrics_are_those_of_its_heartbeat, begin, end),
        cmocka_unit_test_setup_teardown(shards_are_counted_by_their_states, begin, end),
        cmocka_unit_test_setup_teardown(otherwise_the_database_is_read, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
