/* SPDX-License-Identifier: Apache-2.0 */
/* What `status` prints of a run on another host and of shards, by their heartbeats, in each format. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "golden/command.h"
#include "pipeline/base/folder.h"
#include "pipeline/store/db.h"
#include "stages/commands/output/status_beat.h"
#include "toy_folder.h"

/* Put in place of `time` by the linker (tests/stages.cmake): 2026-01-02T01:00:00Z. */
enum { NOW = 1767315600 };
time_t __wrap_time(time_t *out);

time_t __wrap_time(time_t *out)
{
    if (out != NULL)
        *out = NOW;
    return NOW;
}

static toy_folder folder;

static int begin(void **state)
{
    (void)state;
    toy_enter(&folder);
    return 0;
}

static int end(void **state)
{
    (void)state;
    toy_leave(&folder);
    return 0;
}

enum { EVERY_S = 1000 }; /* between two heartbeats */

/* The heartbeat of a run that wrote the last one so many seconds ago. */
static void beat(const char *where, const char *state, int ago)
{
    const time_t at = NOW - ago;
    char path[300], when[40], text[900];
    struct tm tm;

    assert_int_equal(pl_mkdirs(where, NULL), PL_OK);
    (void)strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&at, &tm));
    (void)snprintf(path, sizeof path, "%s/heartbeat.json", where);
    (void)snprintf(
        text, sizeof text,
        "{\"run_id\": 3, \"command\": \"run\", \"state\": \"%s\", \"host\": \"else\\\"where\", \"job\": \"slurm 12\", "
        "\"started_utc\": \"2026-01-02T00:00:10Z\", \"at_utc\": \"%s\", \"every_s\": %d, \"reason\": \"full disk\", \"stages\": ["
        "{\"stage\": \"read\", \"state\": \"done\", \"item\": \"records\", \"done\": 1234, \"total\": 1234, \"note\": \"\"}, "
        "{\"stage\": \"prepare\", \"state\": \"running\", \"item\": \"molecules\", \"done\": 70, \"total\": -1, \"note\": \"slow\"}]}",
        state, when, EVERY_S);
    write_text(path, text);
}

static void prints(const char *words, const char *want)
{
    said s = say(words);

    if (s.status != 0 || strcmp(pl_text_str(&s.out), want) != 0)
        fail_msg("%s: %d\n%s%sinstead of\n%s", words, s.status, pl_text_str(&s.out), pl_text_str(&s.err), want);
    said_free(&s);
}

#define RUN(state, ago)                                                                                               \
    "far/results.db\nrun 3 (run): " state ", on else\"where, slurm 12 since 2026-01-02T00:00:10Z: full disk; by its " \
    "heartbeat, " ago " ago\n"
#define STAGES                                                 \
    "  read      done              1,234 records of 1,234  \n" \
    "  prepare   running              70 molecules  slow\n"

/* Lost: without three heartbeats and for a minute more. */
static void a_run_elsewhere_is_lost_without_its_heartbeat(void **state)
{
    static const char lost[] =
        RUN("lost", "51m01s") "  no heartbeat: the process or its host is dead; run the same command again to continue, when the "
                              "lock is free\n" STAGES;

    (void)state;
    beat("far", "running", 3 * EVERY_S + 60);
    write_text("far/results.db", "");
    prints("status far", RUN("running", "51m00s") STAGES);
    beat("far", "running", 3 * EVERY_S + 61);
    prints("status far", lost);
}

static void its_json_is_that_of_its_heartbeat(void **state)
{
    static const char want[] = "{\n \"run_id\": 3,\n \"command\": \"run\",\n \"state\": \"running\",\n"
                               " \"host\": \"else\\\"where\",\n \"job\": \"slurm 12\",\n"
                               " \"started_utc\": \"2026-01-02T00:00:10Z\",\n \"at_utc\": \"2026-01-02T00:59:50Z\",\n"
                               " \"every_s\": 1000,\n \"reason\": \"full disk\",\n \"stages\": [\n"
                               "  {\n   \"stage\": \"read\",\n   \"state\": \"done\",\n   \"item\": \"records\",\n"
                               "   \"done\": 1234,\n   \"total\": 1234,\n   \"note\": \"\"\n  },\n"
                               "  {\n   \"stage\": \"prepare\",\n   \"state\": \"running\",\n   \"item\": \"molecules\",\n"
                               "   \"done\": 70,\n   \"total\": -1,\n   \"note\": \"slow\"\n  }\n ],\n"
                               " \"results\": \"far/results.db\"\n}\n";

    (void)state;
    beat("far", "running", 10);
    write_text("far/results.db", "");
    prints("status far --json", want);
}

static void its_metrics_are_those_of_its_heartbeat(void **state)
{
    static const char want[] = "# HELP molsieve_run_state 1 for the state of the latest run, 0 for the others\n"
                               "# TYPE molsieve_run_state gauge\n"
                               "molsieve_run_state{results=\"far/results.db\",state=\"running\"} 1\n"
                               "molsieve_run_state{results=\"far/results.db\",state=\"done\"} 0\n"
                               "molsieve_run_state{results=\"far/results.db\",state=\"stopped\"} 0\n"
                               "molsieve_run_state{results=\"far/results.db\",state=\"failed\"} 0\n"
                               "molsieve_run_state{results=\"far/results.db\",state=\"lost\"} 0\n"
                               "# HELP molsieve_run_start_time_seconds when the latest run began, in seconds since 1970\n"
                               "# TYPE molsieve_run_start_time_seconds gauge\n"
                               "molsieve_run_start_time_seconds{results=\"far/results.db\"} 1767312010\n"
                               "# HELP molsieve_stage_done 1 for a stage that is complete\n"
                               "# TYPE molsieve_stage_done gauge\n"
                               "molsieve_stage_done{results=\"far/results.db\",stage=\"read\"} 1\n"
                               "molsieve_stage_done{results=\"far/results.db\",stage=\"prepare\"} 0\n"
                               "# HELP molsieve_stage_items_done items that a stage has done, by the heartbeat of the run\n"
                               "# TYPE molsieve_stage_items_done gauge\n"
                               "molsieve_stage_items_done{results=\"far/results.db\",stage=\"read\",item=\"records\"} 1234\n"
                               "molsieve_stage_items_done{results=\"far/results.db\",stage=\"prepare\",item=\"molecules\"} 70\n"
                               "# HELP molsieve_stage_items items that a stage has to do, where that is known\n"
                               "# TYPE molsieve_stage_items gauge\n"
                               "molsieve_stage_items{results=\"far/results.db\",stage=\"read\",item=\"records\"} 1234\n";

    (void)state;
    beat("far", "running", 0);
    write_text("far/results.db", "");
    prints("status far --prometheus", want);
}

/* A quote and a backslash would end a label, or change what is behind them. */
static void metrics_of_a_folder_with_an_odd_name_can_be_read(void **state)
{
    static const char state_is[] = "molsieve_run_state{results=\"o\\\"d\\\\d/results.db\",state=\"running\"} 1\n";
    said s;

    (void)state;
    beat("o\"d\\d", "running", 0);
    write_text("o\"d\\d/results.db", "");
    s = say("status o\"d\\d --prometheus");
    if (strstr(pl_text_str(&s.out), state_is) == NULL)
        fail_msg("%d\n%s%s", s.status, pl_text_str(&s.out), pl_text_str(&s.err));
    said_free(&s);
}

/* Writes the heartbeat of shard n, which is `as` running, done, stopped, failed, lost or damaged. */
static void shard_beat(int n, int as)
{
    static const char *const states[] = { "running", "done", "stopped", "failed", "running" };
    char where[60];

    (void)snprintf(where, sizeof where, "all/shards/%05d-of-00021", n);
    if (as < 5) {
        beat(where, states[as], as == 4 ? 4 * EVERY_S : 0);
        return;
    }
    assert_int_equal(pl_mkdirs(where, NULL), PL_OK);
    write_text(strcat(where, "/heartbeat.json"), "{}");
}

/* 1 running, 2 done, 3 stopped, 4 failed, 5 lost and 6 damaged: all counts differ. */
static void shards_are_counted_by_their_states(void **state)
{
    int n = 0;

    (void)state;
    write_text("in.smi", "C\n");
    write_text("w.yaml", "format: 1\nworkdir: all\ninputs: [{path: in.smi}]\nstages:\n  read: {}\n");
    for (int as = 0; as < 6; as++)
        for (int i = 0; i <= as; i++)
            shard_beat(n++, as);
    prints("status w.yaml",
           "shards: 1 running, 2 done, 3 stopped, 4 failed, 5 lost, 6 with a damaged heartbeat; 1,050 records prepared by "
           "their latest runs\n`molsieve merge FILE --missing` prints the shards that are not finished\n");
    prints("status w.yaml --json", "{\"shards\":{\"running\":1,\"done\":2,\"stopped\":3,\"failed\":4,\"lost\":5,\"damaged\":6}}\n");
}

/* The file has none, so `status` fails. */
static void reads_the_database(bool damaged)
{
    said s = say("status far");
    const bool tells = strstr(pl_text_str(&s.err), "far/heartbeat.json: damaged, not used") != NULL;

    if (s.status == 0 || s.out.len != 0 || tells != damaged)
        fail_msg("status %d\n%s%s", s.status, pl_text_str(&s.out), pl_text_str(&s.err));
    said_free(&s);
}

/* Of a run that has ended, or whose heartbeat is damaged. */
static void otherwise_the_database_is_read(void **state)
{
    (void)state;
    assert_int_equal(pl_mkdirs("far", NULL), PL_OK);
    write_text("far/results.db", "");
    beat("far", "done", 0);
    reads_the_database(false);
    beat("far", "failed", 0);
    reads_the_database(false);
    write_text("far/heartbeat.json", "{\"state\": \"running\", \"crc32\": \"00000000\"}");
    reads_the_database(true);
}

/* Run 3 began 100 days ago and has done 50 molecules of `prepare` since, 20 of which failed; run 2 did 900, and other stages did others. */
static void the_time_left_is_that_of_the_slowest_stage(void **state)
{
    static const char rows[] =
        "INSERT INTO run(run_id, uuid, command, argv_json, config_yaml, config_sha256, state, started_utc, program_version) VALUES"
        "(2,'b','run','','','','stopped',strftime('%Y-%m-%dT%H:%M:%fZ','now','-9 days'),''),"
        "(3,'c','run','','','','running',strftime('%Y-%m-%dT%H:%M:%fZ','now','-100 days'),'');"
        "INSERT INTO stage(stage_id, name, key, params_json, extra_json, needs_json, code_version, state, created_utc) VALUES"
        "(1,'read','1','','','',1,'done',''), (2,'prepare','2','','','',1,'running',''), (3,'graph','3','','','',1,'running','');"
        "INSERT INTO unit(stage_id, unit, n_ok, n_failed, run_id) VALUES"
        "(1,0,4000,0,3), (2,0,900,0,2), (2,1,10,20,3), (2,2,20,0,3), (3,0,40,0,3)";
    static const char beats[] = "{\"run_id\": 3, \"stages\": ["
                                "{\"stage\": \"read\", \"item\": \"records\", \"done\": 4000, \"total\": 4000},"
                                "{\"stage\": \"prepare\", \"item\": \"molecules\", \"done\": 1500, \"total\": 2000},"
                                "{\"stage\": \"graph\", \"item\": \"molecules\", \"done\": 40, \"total\": 60}]}";
    static const char want[] = "  about 1000d00h left: prepare has done 1,500 of 2,000 molecules, 75 %\n";
    pl_text got = { 0 };
    pl_store *s = NULL;
    toy t;
    int out;

    (void)state;
    toy_make(&t, folder.dir, 1);
    assert_int_equal(pl_store_open(&s, &t.wf, &toy_schema, NULL), PL_OK);
    assert_int_equal(pl_db_exec(s->db, rows, NULL), PL_OK);
    write_text("heartbeat.json", beats);
    (void)fflush(stdout);
    out = replaced(STDOUT_FILENO, "said.out");
    assert_int_equal(st_beat_left(s, 3, NULL), PL_OK);
    assert_int_equal(st_beat_left(s, 2, NULL), PL_OK); /* the heartbeat is not of that run */
    (void)fflush(stdout);
    assert_true(dup2(out, STDOUT_FILENO) >= 0);
    (void)close(out);
    file_read("said.out", &got);
    assert_string_equal(pl_text_str(&got), want);
    pl_text_free(&got);
    pl_store_close(s);
    toy_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_run_elsewhere_is_lost_without_its_heartbeat, begin, end),
        cmocka_unit_test_setup_teardown(its_json_is_that_of_its_heartbeat, begin, end),
        cmocka_unit_test_setup_teardown(its_metrics_are_those_of_its_heartbeat, begin, end),
        cmocka_unit_test_setup_teardown(metrics_of_a_folder_with_an_odd_name_can_be_read, begin, end),
        cmocka_unit_test_setup_teardown(shards_are_counted_by_their_states, begin, end),
        cmocka_unit_test_setup_teardown(otherwise_the_database_is_read, begin, end),
        cmocka_unit_test_setup_teardown(the_time_left_is_that_of_the_slowest_stage, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
