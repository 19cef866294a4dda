/* SPDX-License-Identifier: Apache-2.0 */
/* storage.stage_out: features on a disk of the node, their copy beside results.db, and which of them a run goes on with. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#include "pipeline/base/file.h"
#include "pipeline/base/log.h"
#include "pipeline/base/sha256.h"
#include "pipeline/store/store_parts.h"
#include "tests/unit/long_name.h"
#include "toy.h"

enum { UNITS = 3, BLOCKS = 2 * UNITS };

static toy t;
static char top[256], dir[300], results[320], node[320], copy[340];
static char heard[20000];

static void listen(void *ctx, pl_level level, const char *line)
{
    size_t n = strlen(heard);

    (void)ctx, (void)level;
    (void)snprintf(heard + n, sizeof heard - n, "%s\n", line);
}

static int make(void **unused)
{
    (void)unused;
    toy_directory(top);
    (void)snprintf(dir, sizeof dir, "%s/w", top);
    (void)snprintf(results, sizeof results, "%s/results.db", dir);
    (void)snprintf(copy, sizeof copy, "%s.staged", results);
    (void)snprintf(node, sizeof node, "%s/node/f.db", top);
    toy_make(&t, dir, UNITS);
    t.wf.storage.features = node;
    t.wf.storage.stage_out = true;
    return 0;
}

static int drop(void **unused)
{
    (void)unused;
    pl_log_to(NULL, NULL, PL_ERROR);
    toy_free(&t);
    toy_remove(top);
    return 0;
}

static pl_code run(pl_error *err)
{
    pl_code code;

    heard[0] = '\0';
    pl_log_to(listen, NULL, PL_INFO);
    code = toy_run(&t, 1, err);
    pl_log_to(NULL, NULL, PL_ERROR);
    return code;
}

static void must_run(void)
{
    pl_error err = { 0 };

    if (run(&err) != PL_OK)
        fail_msg("%s: %s", err.where, err.text);
}

static void must_say(const char *text)
{
    if (strstr(heard, text) == NULL)
        fail_msg("not said: %s\n%s", text, heard);
}

static void must_not_say(const char *text)
{
    if (strstr(heard, text) != NULL)
        fail_msg("said: %s\n%s", text, heard);
}

static int64_t number_in(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    int64_t n = -1;

    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    if (pl_db_int(db, &n, NULL, "%s", sql) != PL_OK)
        n = -1;
    (void)sqlite3_close(db);
    return n;
}

static void lose_node(void)
{
    static const char *const tails[] = { "", "-wal", "-shm" };
    char path[400];

    for (int i = 0; i < 3; i++) {
        (void)snprintf(path, sizeof path, "%s%s", node, tails[i]);
        (void)unlink(path);
    }
}

/* The digests of a workflow with this offset that never left its directory. */
static void want_of(int64_t offset, char out[130])
{
    char where[300];
    toy plain;

    (void)snprintf(where, sizeof where, "%s/plain%d", top, (int)offset);
    toy_make(&plain, where, UNITS);
    plain.conf[1].offset = offset;
    assert_int_equal(toy_run(&plain, 1, NULL), PL_OK);
    toy_digest(&plain, out);
    toy_free(&plain);
}

static void ends_as(int64_t offset)
{
    char want[130], got[130];

    want_of(offset, want);
    toy_digest(&t, got);
    assert_string_equal(got, want);
    assert_true(pl_path_is_gone(pl_sprintf(t.mem, "%s.tmp", copy)));
}

/* ---- the tests ---- */

static void a_run_leaves_a_copy_that_readers_find(void **unused)
{
    pl_store *s = NULL;

    (void)unused;
    must_run();
    must_say("features are copied to ");
    assert_int_equal(number_in(copy, "SELECT count(*) FROM block"), BLOCKS);
    assert_int_equal(number_in(copy, "SELECT count(*) FROM staged"), 1);
    must_run();
    must_not_say("features are"); /* nothing is new */
    lose_node();
    assert_int_equal(pl_store_open_read(&s, results, &toy_schema, NULL), PL_OK);
    assert_string_equal(s->features_path, copy);
    pl_store_close(s);
    ends_as(0);
}

static void a_new_node_fetches_them_and_goes_on(void **unused)
{
    (void)unused;
    must_run();
    lose_node();
    t.conf[1].offset = 5; /* square runs again and reads the blocks of count */
    must_run();
    must_say("features are fetched from ");
    must_say(copy);
    must_not_say("stage count");
    must_say("features are copied to ");
    assert_int_equal(number_in(copy, "SELECT count(*) FROM block"), 3 * UNITS);
    ends_as(5);
}

/* Its results are gone, the copy is not. */
static void a_copy_of_an_earlier_run_has_structures_only(void **unused)
{
    char tmp[400];
    pl_error err = { 0 };

    (void)unused;
    must_run();
    lose_node();
    assert_int_equal(unlink(results), 0);
    (void)snprintf(tmp, sizeof tmp, "%s.tmp", node);
    assert_int_equal(mkdir(tmp, 0755), 0); /* nothing can be written there */
    assert_int_not_equal(run(&err), PL_OK);
    assert_non_null(strstr(err.where, "features are not fetched (storage.stage_out)"));
    assert_int_equal(rmdir(tmp), 0);
    must_run();
    must_say(" is of an earlier run; of its features only the built structures are used");
    must_not_say("are lost");
    assert_int_equal(number_in(copy, "SELECT count(*) FROM block"), BLOCKS);
    ends_as(0);
}

/* The file of the node stays while it is that of the last state. */
static void its_own_file_is_taken_before_the_copy(void **unused)
{
    (void)unused;
    must_run();
    t.conf[1].offset = 5;
    must_run();
    must_not_say("features are fetched");
    ends_as(5);
}

static void an_older_file_on_a_node_is_replaced(void **unused)
{
    char old[400];

    (void)unused;
    must_run();
    (void)snprintf(old, sizeof old, "%s/old.db", top);
    assert_int_equal(toy_copy(node, old), PL_OK);
    t.conf[1].offset = 5;
    must_run();
    lose_node();
    assert_int_equal(toy_copy(old, node), PL_OK);
    t.conf[1].offset = 6;
    must_run();
    must_say("is of another run or of an earlier state, and is replaced");
    must_say("features are fetched from ");
    must_not_say("stage count");
    ends_as(6);
}

/* The node was lost before the last state was copied. */
static void what_only_the_lost_node_had_is_made_again(void **unused)
{
    char old[400], want[900];

    (void)unused;
    must_run();
    (void)snprintf(old, sizeof old, "%s/old.db", top);
    assert_int_equal(toy_copy(copy, old), PL_OK);
    t.conf[1].offset = 5;
    must_run();
    lose_node();
    assert_int_equal(toy_copy(old, copy), PL_OK);
    t.conf[1].offset = 6;
    must_run();
    (void)snprintf(want, sizeof want,
                   "%s: the features of its last units are lost; units are made again, with the structures that %s has\n", results,
                   copy);
    must_say(want);
    must_say("stage count");
    ends_as(6);
}

static void a_run_that_fails_is_copied_too(void **unused)
{
    pl_error err = { 0 };

    (void)unused;
    t.conf[1].fail_at = 2;
    assert_int_not_equal(run(&err), PL_OK);
    must_say("features are copied to ");
    lose_node();
    t.conf[1].fail_at = 0;
    must_run();
    must_say("features are fetched from ");
    ends_as(0);
}

/* A kill between the two marks: features.db has the new one and, beside it, that of results.db. */
static void a_kill_between_the_marks_loses_nothing(void **unused)
{
    sqlite3 *db = NULL;

    (void)unused;
    must_run();
    assert_int_equal(sqlite3_open(node, &db), SQLITE_OK);
    assert_int_equal(pl_db_exec(db, "UPDATE staged SET before=mark, mark='another'", NULL), PL_OK);
    (void)sqlite3_close(db);
    assert_int_equal(unlink(copy), 0);
    t.conf[1].offset = 5;
    must_run();
    must_not_say("stage count");
    must_not_say("is replaced");
    ends_as(5);
}

static void features_of_a_run_without_copies_are_not_taken(void **unused)
{
    pl_error err = { 0 };
    char other[300], want[500];
    toy plain;

    (void)unused;
    must_run();
    (void)snprintf(other, sizeof other, "%s/other", top);
    toy_make(&plain, other, UNITS);
    lose_node();
    plain.wf.storage.features = node;
    assert_int_equal(toy_run(&plain, 1, NULL), PL_OK);
    toy_free(&plain);
    t.conf[1].offset = 5;
    assert_int_equal(run(&err), PL_ECONFIG);
    (void)snprintf(want, sizeof want,
                   "%s: features of a run without storage.stage_out; choose another storage.features, or remove the file", node);
    assert_string_equal(err.text, want);
    assert_int_equal(number_in(node, "SELECT count(*) FROM block"), BLOCKS);
    lose_node();
    must_run();
    ends_as(5);
}

static void a_damaged_copy_is_named_and_replaced_at_the_end(void **unused)
{
    pl_error err = { 0 };
    FILE *f;

    (void)unused;
    must_run();
    f = fopen(copy, "w");
    assert_true(f != NULL && fputs("this is not a database, although it is where the copy was\n", f) >= 0 && fclose(f) == 0);
    lose_node();
    t.conf[1].offset = 5;
    assert_int_equal(run(&err), PL_EDATA);
    assert_non_null(strstr(err.text, "not a database"));
    assert_non_null(strstr(err.text, copy));
    assert_int_equal(unlink(copy), 0);
    must_run();
    must_say("stage count"); /* its blocks are lost */
    assert_int_equal(number_in(copy, "SELECT count(*) FROM block"), BLOCKS);
    ends_as(5);
}

/* A run without stage_out in between: the copy is older than results.db then. */
static void a_run_without_copies_makes_the_copy_an_older_one(void **unused)
{
    (void)unused;
    must_run();
    t.wf.storage.stage_out = false;
    t.conf[1].offset = 5;
    must_run();
    must_not_say("features are");
    lose_node();
    t.wf.storage.stage_out = true;
    t.conf[1].offset = 6;
    must_run();
    must_say("the features of its last units are lost");
    ends_as(6);
}

/* The copy has the log of a program that was killed: it is removed only when the next copy is complete. */
static void a_copy_that_fails_leaves_the_earlier_one(void **unused)
{
    pl_error err = { 0 };
    char log[400], tmp[400], before[65], after[65];

    (void)unused;
    must_run();
    (void)snprintf(log, sizeof log, "%s-journal", copy);
    (void)snprintf(tmp, sizeof tmp, "%s.tmp", copy);
    assert_int_equal(pl_file_write(log, (pl_bytes){ "", 0 }, NULL), PL_OK);
    assert_int_equal(mkdir(tmp, 0755), 0); /* nothing can be written there */
    t.conf[1].offset = 5;
    assert_int_equal(pl_sha256_file(copy, before, &err), PL_OK);
    assert_int_not_equal(run(&err), PL_OK);
    must_not_say("features are copied to ");
    assert_int_equal(pl_sha256_file(copy, after, &err), PL_OK);
    assert_string_equal(after, before);
    assert_int_equal(access(log, F_OK), 0);
    assert_int_equal(rmdir(tmp), 0);
    must_run();
    must_say("features are copied to ");
    assert_int_equal(access(log, F_OK), -1);
    ends_as(5);
}

/* ---- linked with -Wl,--wrap=rename ---- */

static bool rename_fails;
static void (*at_rename)(void); /* NULL: nothing happens then */

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);

int __wrap_rename(const char *from, const char *to)
{
    const size_t n = strlen(to), tail = strlen(".staged");

    if (n < tail || strcmp(to + n - tail, ".staged") != 0)
        return __real_rename(from, to);
    if (at_rename != NULL)
        at_rename();
    if (!rename_fails)
        return __real_rename(from, to);
    errno = EIO;
    return -1;
}

/* A copy that was written but has no name yet is removed. */
static void a_copy_without_its_name_is_removed(void **unused)
{
    char want[700];
    pl_error err = { 0 };

    (void)unused;
    rename_fails = true;
    assert_int_equal(run(&err), PL_EIO);
    rename_fails = false;
    (void)snprintf(want, sizeof want, "features are not copied back (storage.stage_out): %s: Input/output error", copy);
    assert_string_equal(err.text, want);
    assert_true(pl_path_is_gone(copy));
    assert_true(pl_path_is_gone(pl_sprintf(t.mem, "%s.tmp", copy)));
    must_run();
    must_say("features are copied to ");
    ends_as(0);
}

static int n_warned;

static pl_code is_warned(void *state, pl_error *err)
{
    (void)state;
    (void)raise(SIGUSR1);
    return pl_fail(err, PL_ESTOP, "warned");
}

/* What schedulers send once more before they kill. */
static void is_warned_again(void)
{
    static const int warnings[] = { SIGUSR1, SIGUSR2, SIGXCPU };
    struct itimerval left;

    for (size_t i = 0; i < sizeof warnings / sizeof *warnings; i++)
        n_warned += raise(warnings[i]) == 0;
    assert_int_equal(getitimer(ITIMER_REAL, &left), 0);
    assert_true(left.it_value.tv_sec == 0 && left.it_value.tv_usec == 0);
}

/* A second signal and the grace period end a run at once, but not while it copies: the copy is what the next node needs. */
static void warnings_do_not_end_a_copy(void **unused)
{
    const pl_run_opts opts = { .workers = 1, .quiet = true, .max_time = 1000, .grace = 1000 };
    pl_stage walk = toy_walk;
    pl_error err = { 0 };

    (void)unused;
    walk.finish = is_warned;
    t.step[2].stage = &walk;
    at_rename = is_warned_again;
    n_warned = 0;
    assert_int_equal(pl_run(&t.wf, &toy_schema, &opts, t.mem, &err), PL_ESTOP);
    at_rename = NULL;
    assert_int_equal(n_warned, 3);
    assert_int_equal(number_in(copy, "SELECT count(*) FROM block"), BLOCKS);
    t.step[2].stage = &toy_walk;
    must_run();
    ends_as(0);
}

/* What is not ours is neither used nor replaced. */
static void a_copy_of_another_program_ends_the_run(void **unused)
{
    static const char *const others[] = { "CREATE TABLE block(a)", "PRAGMA application_id=1; CREATE TABLE a(b)",
                                          "PRAGMA application_id=1" };

    (void)unused;
    must_run();
    lose_node();
    for (int i = 0; i < 3; i++) {
        sqlite3 *db = NULL;
        char before[65], after[65];
        pl_error err = { 0 };
        assert_int_equal(unlink(copy), 0);
        assert_int_equal(sqlite3_open(copy, &db), SQLITE_OK);
        assert_int_equal(sqlite3_exec(db, others[i], NULL, NULL, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
        assert_int_equal(pl_sha256_file(copy, before, NULL), PL_OK);
        t.conf[1].offset = 5 + i;
        if (run(&err) != PL_EDATA)
            fail_msg("%s: %s", others[i], err.text);
        assert_non_null(
            strstr(err.where, "the copy of storage.stage_out cannot be used; remove it, and what is missing is computed again"));
        assert_int_equal(pl_sha256_file(copy, after, NULL), PL_OK);
        assert_string_equal(after, before);
    }
}

static pl_code begins_to_write(void *state, pl_error *err)
{
    pl_store *s = (*(pl_env **)state)->store;
    pl_code code = pl_store_features(s, err);

    if (code == PL_OK)
        code = pl_db_begin(s->features, err);
    if (code == PL_OK)
        code = pl_db_begin(s->db, err);
    return code == PL_OK ? pl_block_put(s, "half", "made", 0, 0, 1, (pl_bytes){ "x", 1 }, err) : code;
}

static pl_code fails_in_mid_write(void *state, pl_error *err)
{
    return begins_to_write(state, err) == PL_OK ? pl_fail(err, PL_EINPUT, "in mid-write") : PL_EBUG;
}

/* A stage that works on everything at once may end in the middle of its transactions. */
static void what_a_stage_leaves_open_is_stored(void **unused)
{
    pl_stage walk = toy_walk;

    (void)unused;
    walk.finish = begins_to_write;
    t.step[2].stage = &walk;
    must_run();
    assert_int_equal(number_in(node, "SELECT count(*) FROM block WHERE kind='half'"), 1);
    assert_int_equal(number_in(copy, "SELECT count(*) FROM block WHERE kind='half'"), 1);
    assert_int_equal(number_in(results, "SELECT count(*) FROM stage WHERE name='walk' AND state='done'"), 1);
}

/* What a stage had begun to write is taken back before its features are copied, and before the run's end is written. */
static void what_a_failed_stage_had_begun_is_taken_back(void **unused)
{
    pl_stage walk = toy_walk;
    pl_error err = { 0 };

    (void)unused;
    walk.finish = fails_in_mid_write;
    t.step[2].stage = &walk;
    assert_int_equal(run(&err), PL_EINPUT);
    assert_string_equal(err.text, "in mid-write");
    must_say("features are copied to ");
    must_not_say("not copied back");
    assert_int_equal(number_in(copy, "SELECT count(*) FROM block"), BLOCKS);
    assert_int_equal(number_in(copy, "SELECT count(*) FROM block WHERE kind='half'"), 0);
    assert_int_equal(number_in(results, "SELECT count(*) FROM run WHERE state='failed' AND stop_reason='in mid-write'"), 1);
    t.step[2].stage = &toy_walk;
    must_run();
    ends_as(0);
}

/* As `cp` leaves it when it is stopped early. */
static void an_empty_copy_is_replaced(void **unused)
{
    (void)unused;
    must_run();
    lose_node();
    assert_int_equal(pl_file_write(copy, (pl_bytes){ "", 0 }, NULL), PL_OK);
    t.conf[1].offset = 5;
    must_run();
    must_say("stage count"); /* its blocks are lost */
    must_say("features are copied to ");
    assert_int_equal(number_in(copy, "SELECT count(*) FROM block"), BLOCKS);
    ends_as(5);
}

static void the_name_of_the_copy_must_fit(void **unused)
{
    pl_error err = { 0 };
    pl_store *s = NULL;
    const char *own;

    (void)unused;
    must_run();
    assert_int_equal(pl_store_open(&s, &t.wf, &toy_schema, NULL), PL_OK);
    own = s->results_path;
    for (size_t over = 0; over < 2; over++) {
        s->results_path = long_name(dir, "r.db", PATH_MAX - 1 - strlen(".staged") + over);
        assert_int_equal(pl_staged_in(s, &err), over ? PL_EIO : PL_OK);
    }
    assert_non_null(strstr(err.text, "/r.db: path too long"));
    assert_memory_equal(err.text, dir, strlen(dir));
    s->results_path = own;
    pl_store_close(s);
}

#define OF_RUN(f) cmocka_unit_test_setup_teardown(f, make, drop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OF_RUN(a_run_leaves_a_copy_that_readers_find),
        OF_RUN(a_new_node_fetches_them_and_goes_on),
        OF_RUN(a_copy_of_an_earlier_run_has_structures_only),
        OF_RUN(its_own_file_is_taken_before_the_copy),
        OF_RUN(an_older_file_on_a_node_is_replaced),
        OF_RUN(what_only_the_lost_node_had_is_made_again),
        OF_RUN(a_run_that_fails_is_copied_too),
        OF_RUN(a_kill_between_the_marks_loses_nothing),
        OF_RUN(features_of_a_run_without_copies_are_not_taken),
        OF_RUN(a_damaged_copy_is_named_and_replaced_at_the_end),
        OF_RUN(a_run_without_copies_makes_the_copy_an_older_one),
        OF_RUN(a_copy_that_fails_leaves_the_earlier_one),
        OF_RUN(a_copy_without_its_name_is_removed),
        OF_RUN(warnings_do_not_end_a_copy),
        OF_RUN(a_copy_of_another_program_ends_the_run),
        OF_RUN(an_empty_copy_is_replaced),
        OF_RUN(the_name_of_the_copy_must_fit),
        OF_RUN(what_a_stage_leaves_open_is_stored),
        OF_RUN(what_a_failed_stage_had_begun_is_taken_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
