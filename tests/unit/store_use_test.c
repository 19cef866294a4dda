/* SPDX-License-Identifier: Apache-2.0 */
/* Work with an open database: programs that read it, checks, copies, hashes of files, commits, metrics. */
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utime.h>

#include <cmocka.h>

#include "pipeline/base/log.h"
#include "pipeline/base/stop.h"
#include "tests/unit/entries.h"
#include "tests/unit/stores.h"

/* A reading program blocks the commit of a rollback journal, until the message releases it. */
typedef struct reader {
    pid_t pid;
    int go[2];
    char said[512];
} reader;

static void let_go(void *ctx, pl_level level, const char *line)
{
    reader *r = ctx;

    if (level != PL_WARN)
        return;
    (void)snprintf(r->said, sizeof r->said, "%s", line);
    if (write(r->go[1], "x", 1) != 1)
        r->said[0] = '\0';
}

static void start_reader(reader *r)
{
    int ready[2];
    char byte;

    assert_int_equal(pipe(r->go), 0);
    assert_int_equal(pipe(ready), 0);
    r->pid = fork();
    if (r->pid == 0) {
        sqlite3 *db;
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (sqlite3_open(t.wf.storage.results, &db) != SQLITE_OK ||
            sqlite3_exec(db, "BEGIN; SELECT count(*) FROM meta", NULL, NULL, NULL) != SQLITE_OK || write(ready[1], "x", 1) != 1 ||
            read(r->go[0], &byte, 1) != 1)
            _exit(1);
        _exit(0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
    (void)close(ready[1]);
}

static void one_who_reads_is_named_and_waited_for_until_a_stop(void **state)
{
    reader r = { .said = "" };
    int open_files;
    pl_stop stop;
    pl_error err = { 0 };
    char want[64];
    int status;

    (void)state;
    pl_store_close(s);
    t.wf.storage.journal = 2;
    assert_int_equal(pl_store_open(&s, &t.wf, &toy_schema, NULL), PL_OK);
    pl_db_patient(s->db);
    start_reader(&r);
    (void)snprintf(want, sizeof want, "pid %ld; this run waits", (long)r.pid);
    pl_log_to(let_go, &r, PL_INFO);
    open_files = count_in("/proc/self/fd");
    assert_int_equal(pl_db_exec(s->db, "INSERT INTO walk VALUES(1,10)", &err), PL_OK);
    assert_int_equal(count_in("/proc/self/fd"), open_files);
    pl_log_to(NULL, NULL, PL_ERROR);
    assert_non_null(strstr(r.said, want));
    assert_int_equal(waitpid(r.pid, &status, 0), r.pid);
    assert_int_equal(status, 0);
    start_reader(&r);
    pl_stop_begin(&stop, 0, 0);
    assert_int_equal(raise(SIGTERM), 0);
    assert_int_equal(pl_db_exec(s->db, "INSERT INTO walk VALUES(2,10)", &err), PL_ESTOP);
    assert_non_null(strstr(err.text, "stopped by signal TERM while another program used"));
    pl_stop_end(&stop);
    assert_int_equal(write(r.go[1], "x", 1), 1);
    assert_int_equal(waitpid(r.pid, &status, 0), r.pid);
}

static void a_good_database_is_said_to_be_good_in_every_point(void **state)
{
    char want[1400];
    pl_text report = { 0 };
    bool good = false;

    (void)state;
    run_all();
    assert_int_equal(pl_store_check(s, &good, &report, NULL), PL_OK);
    assert_true(good);
    (void)snprintf(want, sizeof want,
                   "good %s: sound\n"
                   "good rows of 13 tables match their checksums\ngood rows refer only to rows that exist\n"
                   "good stages that are done have all their units\ngood units of a stage follow each other without a gap\n"
                   "good every number belongs to a committed unit\ngood every committed unit has all its numbers\n"
                   "good every committed unit of square has all its rows\ngood %s: sound\n"
                   "good blocks of stage count: 3 checksums match\ngood blocks of stage square: 3 checksums match\n",
                   t.wf.storage.results, t.wf.storage.features);
    assert_string_equal(pl_text_str(&report), want);
    pl_text_free(&report);
}

static void a_copy_is_whole_and_old_or_new(void **state)
{
    pl_store *copy = NULL;
    char path[400], a[480], b[65];

    (void)state;
    assert_int_equal(pl_db_exec(s->db, "INSERT INTO walk VALUES(1,10)", NULL), PL_OK);
    (void)snprintf(path, sizeof path, "%s/copy.db", dir);
    write_file("copy.db", "old");
    write_file("copy.db.tmp", "half of one that was killed");
    write_file("copy.db.tmp-journal", "its journal");
    assert_int_equal(pl_store_copy(s, path, NULL), PL_OK);
    assert_int_not_equal(access(strcat(strcpy(a, path), ".tmp"), F_OK), 0);
    assert_int_not_equal(access(strcat(a, "-journal"), F_OK), 0);
    assert_int_equal(pl_store_open_read(&copy, path, &toy_schema, NULL), PL_OK);
    assert_int_equal(pl_store_digest(s, a, NULL), PL_OK);
    assert_int_equal(pl_store_digest(copy, b, NULL), PL_OK);
    assert_string_equal(a, b);
    pl_store_close(copy);
}

static void pruning_removes_only_what_no_stage_uses(void **state)
{
    int64_t n, left;

    (void)state;
    run_all();
    assert_int_equal(pl_block_put(s, "number", "an old key", 0, 1, 1, (pl_bytes){ "x", 1 }, NULL), PL_OK);
    assert_int_equal(pl_store_prune(s, NULL, 0, &n, NULL), PL_OK);
    assert_int_equal(n, 1);
    assert_int_equal(pl_db_int(s->features, &left, NULL, "SELECT count(*) FROM block"), PL_OK);
    assert_int_equal(left, 6);
}

static void a_files_hash_follows_its_content_and_not_its_time(void **state)
{
    struct utimbuf then = { 1000000000, 1000000000 };
    char path[400], a[65], b[65], c[65];
    int64_t n;

    (void)state;
    write_file("x.smi", "CCO\n");
    (void)snprintf(path, sizeof path, "%s/x.smi", dir);
    assert_int_equal(utime(path, &then), 0);
    assert_int_equal(pl_file_hash(s, path, a, NULL), PL_OK);
    assert_int_equal(pl_file_hash(s, path, b, NULL), PL_OK);
    assert_string_equal(a, b);
    write_file("x.smi", "CCN\n");
    assert_int_equal(utime(path, &then), 0); /* as rsync and tar do */
    assert_int_equal(pl_file_hash(s, path, c, NULL), PL_OK);
    assert_string_not_equal(a, c);
    assert_int_equal(pl_db_int(s->db, &n, NULL, "SELECT count(*) FROM file_hash"), PL_OK);
    assert_int_equal(n, 0); /* just written, and perhaps once more in the same second */
    assert_int_equal(pl_file_hash(NULL, path, b, NULL), PL_OK);
    assert_string_equal(b, c);
    assert_int_equal(pl_file_hash(s, "/not/there", a, NULL), PL_EIO);
}

static void an_old_files_hash_is_remembered_until_it_changes(void **state)
{
    char full[PATH_MAX], a[65], b[65];
    int64_t n;

    (void)state;
    assert_non_null(realpath("/bin/sh", full)); /* not written recently */
    assert_int_equal(pl_file_hash(s, full, a, NULL), PL_OK);
    assert_int_equal(pl_db_int(s->db, &n, NULL, "SELECT count(*) FROM file_hash WHERE sha256=%Q", a), PL_OK);
    assert_int_equal(n, 1);
    assert_int_equal(pl_db_exec(s->db, "UPDATE file_hash SET sha256='as remembered'", NULL), PL_OK);
    assert_int_equal(pl_file_hash(s, full, b, NULL), PL_OK);
    assert_string_equal(b, "as remembered");
    assert_int_equal(pl_db_exec(s->db, "UPDATE file_hash SET mtime_ns=mtime_ns-1", NULL), PL_OK);
    assert_int_equal(pl_file_hash(s, full, b, NULL), PL_OK);
    assert_string_equal(a, b);
}

static void what_has_no_hash_has_none_the_second_time(void **state)
{
    char hash[65] = "";
    pl_error err = { 0 };

    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pl_file_hash(s, "/", hash, &err), PL_EIO); /* a folder that has not changed for long */
        assert_non_null(strstr(err.text, "not a regular file"));
    }
}

static void a_failed_commit_leaves_no_transaction_open(void **state)
{
    pl_error err = { 0 };

    (void)state;
    assert_int_equal(pl_db_begin(s->db, NULL), PL_OK);
    assert_int_equal(pl_db_exec(s->db, "PRAGMA defer_foreign_keys=ON; INSERT INTO square VALUES(1,1,1)", NULL), PL_OK);
    assert_int_not_equal(pl_db_commit(s->db, &err), PL_OK);
    assert_true(sqlite3_get_autocommit(s->db) != 0);
    assert_int_equal(pl_db_exec(s->db, "this is not SQL", &err), PL_EBUG);
}

static void metrics_are_replaced_and_never_nan(void **state)
{
    pl_env env = { .store = s, .step = &t.step[2], .run_id = 1 };
    int64_t n;

    (void)state;
    assert_int_equal(pl_db_exec(s->db,
                                "INSERT INTO run(uuid,command,argv_json,config_yaml,config_sha256,state,started_utc,"
                                "program_version) VALUES('u','run','[]','','','running','','')",
                                NULL),
                     PL_OK);
    assert_int_equal(pl_metric_add(&env, 10, 0.5, "valid", "mae", 1.5, NULL), PL_OK);
    assert_int_equal(pl_metric_add(&env, 10, 0.5, "valid", "mae", 1.25, NULL), PL_OK);
    assert_int_equal(pl_metric_add(&env, 11, 0.5, "valid", "mae", 0.0 / (double)(n = 0), NULL), PL_EBUG);
    assert_int_equal(pl_db_int(s->db, &n, NULL, "SELECT count(*) FROM metric WHERE value=1.25"), PL_OK);
    assert_int_equal(n, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_good_database_is_said_to_be_good_in_every_point),
        CASE(one_who_reads_is_named_and_waited_for_until_a_stop),
        CASE(a_copy_is_whole_and_old_or_new),
        CASE(pruning_removes_only_what_no_stage_uses),
        CASE(a_files_hash_follows_its_content_and_not_its_time),
        CASE(an_old_files_hash_is_remembered_until_it_changes),
        CASE(what_has_no_hash_has_none_the_second_time),
        CASE(a_failed_commit_leaves_no_transaction_open),
        CASE(metrics_are_replaced_and_never_nan),
    };
    return cmocka_run_group_tests_name("store_use", tests, NULL, NULL);
}
