/* SPDX-License-Identifier: Apache-2.0 */
/* Databases: made, opened, migrated, refused, copied, checked; blocks; hashes of files. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utime.h>

#include <cmocka.h>

#include "pipeline/base/log.h"
#include "pipeline/base/stop.h"
#include "pipeline/store/insert.h"
#include "pipeline/store/open.h"
#include "pipeline/store/sums.h"
#include "pipeline/lock/lock.h"
#include "pipeline/run/runner.h"
#include "tests/unit/long_name.h"
#include "toy.h"

static toy t;
static pl_store *s;
static char dir[256];

static int make(void **state)
{
    (void)state;
    toy_directory(dir);
    toy_make(&t, dir, 3);
    return pl_store_open(&s, &t.wf, &toy_schema, NULL) != PL_OK || pl_store_features(s, NULL) != PL_OK;
}

static int drop(void **state)
{
    (void)state;
    pl_store_close(s);
    s = NULL;
    toy_free(&t);
    toy_remove(dir);
    return 0;
}

static void write_file(const char *name, const char *text)
{
    char path[400];
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static pl_code reopen(const pl_schema *schema, pl_error *err)
{
    pl_store_close(s);
    return pl_store_open(&s, &t.wf, schema, err);
}

static void a_new_store_says_what_it_is(void **state)
{
    static const struct {
        const char *name;
        int value[2]; /* of results.db and of features.db */
    } pragmas[] = { { "page_size", { 4096, 16384 } },
                    { "cache_size", { -32768, -2048 } },
                    { "synchronous", { 1, 2 } },
                    { "wal_autocheckpoint", { 2000, 2000 } },
                    { "foreign_keys", { 1, 1 } },
                    { "analysis_limit", { 1000, 1000 } },
                    { "application_id", { 0x4d4f4c53, 0x4d4f4c46 } } };
    int64_t id, version, journal;

    (void)state;
    assert_int_equal(pl_db_int(s->db, &id, NULL, "PRAGMA application_id"), PL_OK);
    assert_int_equal(pl_db_int(s->db, &version, NULL, "PRAGMA user_version"), PL_OK);
    assert_int_equal(pl_db_int(s->db, &journal, NULL, "SELECT journal_mode='wal' FROM pragma_journal_mode"), PL_OK);
    assert_int_equal(id, 0x4d4f4c53);
    assert_int_equal(version, 1);
    assert_int_equal(journal, 1);
    for (size_t i = 0; i < sizeof pragmas / sizeof *pragmas; i++)
        for (int k = 0; k < 2; k++) {
            assert_int_equal(pl_db_int(k == 0 ? s->db : s->features, &id, NULL, "PRAGMA %s", pragmas[i].name), PL_OK);
            assert_int_equal(id, pragmas[i].value[k]);
        }
    assert_false(s->network);
    assert_true(pl_is_network_fs("/proc")); /* not a file system we know to be local */
    assert_false(pl_is_network_fs("/tmp/not/there/at/all"));
}

static void a_truncate_journal_can_be_asked_for(void **state)
{
    int64_t mode;

    (void)state;
    pl_store_close(s);
    t.wf.storage.journal = 2;
    assert_int_equal(pl_store_open(&s, &t.wf, &toy_schema, NULL), PL_OK);
    assert_int_equal(pl_db_int(s->db, &mode, NULL, "SELECT journal_mode='truncate' FROM pragma_journal_mode"), PL_OK);
    assert_int_equal(mode, 1);
    assert_int_equal(pl_db_int(s->db, &mode, NULL, "PRAGMA synchronous"), PL_OK);
    assert_int_equal(mode, 2); /* FULL */
}

static void a_newer_database_is_refused_untouched(void **state)
{
    pl_error err = { 0 };

    (void)state;
    assert_int_equal(pl_db_exec(s->db, "PRAGMA user_version=99", NULL), PL_OK);
    assert_int_equal(reopen(&toy_schema, &err), PL_EDATA);
    assert_non_null(strstr(err.text, "newer molsieve"));
    assert_int_equal(pl_store_open_read(&s, t.wf.storage.results, &toy_schema, &err), PL_EDATA);
}

static void another_programs_database_is_refused(void **state)
{
    pl_error err = { 0 };

    (void)state;
    assert_int_equal(pl_db_exec(s->db, "PRAGMA application_id=1", NULL), PL_OK);
    assert_int_equal(reopen(&toy_schema, &err), PL_EDATA);
    assert_non_null(strstr(err.text, "another program"));
}

/* Tables without an id, an id without tables, and both: neither results nor features are put there. */
static void what_another_program_made_is_left_as_it_is(void **state)
{
    static const char *const others[] = { "CREATE TABLE a(b)", "PRAGMA application_id=1",
                                          "PRAGMA application_id=1; CREATE TABLE a(b)" };
    char path[400], before[65], after[65];

    (void)state;
    for (int i = 0; i < 6; i++) {
        pl_error err = { 0 };
        sqlite3 *db = NULL;
        pl_code code;
        pl_store_close(s);
        s = NULL;
        (void)snprintf(path, sizeof path, "%s/%s.db", dir, i < 3 ? "results" : "features");
        (void)unlink(path);
        assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
        assert_int_equal(sqlite3_exec(db, others[i % 3], NULL, NULL, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
        assert_int_equal(pl_sha256_file(path, before, NULL), PL_OK);
        code = pl_store_open(&s, &t.wf, &toy_schema, &err);
        assert_int_equal(code == PL_OK, i >= 3);
        if (code == PL_OK)
            code = pl_store_features(s, &err);
        assert_int_equal(code, PL_EDATA);
        assert_non_null(strstr(err.text, path));
        assert_non_null(strstr(err.text, "another program"));
        assert_int_equal(pl_sha256_file(path, after, NULL), PL_OK);
        assert_string_equal(after, before);
        (void)unlink(path);
    }
}

/* docs/FORMATS.md: what a database of somebody else may not do. */
static void no_opened_database_is_trusted(void **state)
{
    static const struct {
        int what, value;
    } want[] = { { SQLITE_DBCONFIG_ENABLE_TRIGGER, 0 },
                 { SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0 },
                 { SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0 },
                 { SQLITE_DBCONFIG_DEFENSIVE, 1 },
                 { SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0 } };
    sqlite3 *db = NULL;

    (void)state;
    assert_int_equal(pl_open_file(&db, t.wf.storage.results, SQLITE_OPEN_READONLY, 0, NULL), PL_OK);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        int is = -1;
        assert_int_equal(sqlite3_db_config(db, want[i].what, -1, &is), SQLITE_OK);
        assert_int_equal(is, want[i].value);
    }
    (void)sqlite3_close(db);
}

static void not_open(pl_code code, pl_error *err)
{
    assert_int_equal(code, PL_EBUG);
    assert_string_equal(err->text, "features.db is used before it is open");
    err->text[0] = '\0';
}

static void features_are_not_used_before_they_are_open(void **state)
{
    static const unsigned char key[32];
    pl_error err = { 0 };
    pl_block block;
    pl_bytes data;
    int64_t n = 7;

    (void)state;
    assert_int_equal(reopen(&toy_schema, NULL), PL_OK);
    not_open(pl_block_put(s, "kind", "key", 0, 0, 0, (pl_bytes){ "a", 1 }, &err), &err);
    not_open(pl_block_get(s, "kind", "key", 0, &block, t.mem, &err), &err);
    not_open(pl_block_count(s, "kind", "key", &n, &err), &err);
    not_open(pl_block_count(s, NULL, "key", &n, &err), &err);
    not_open(pl_cache_put(s, key, (pl_bytes){ "a", 1 }, &err), &err);
    not_open(pl_cache_get(s, key, &data, t.mem, &err), &err);
    assert_int_equal(n, 0);
    assert_int_equal(pl_store_features(s, NULL), PL_OK);
    for (int unit = 0; unit < 7; unit++)
        assert_int_equal(
            pl_block_put(s, unit < 2 ? "few" : "many", unit < 6 ? "key" : "other", unit, 0, 0, (pl_bytes){ "a", 1 }, &err), PL_OK);
    assert_true(pl_block_count(s, NULL, "key", &n, &err) == PL_OK && n == 6);
    assert_true(pl_block_count(s, "few", "key", &n, &err) == PL_OK && n == 2);
    assert_true(pl_block_count(s, "many", "key", &n, &err) == PL_OK && n == 4);
    assert_true(pl_block_count(s, "many", "other", &n, &err) == PL_OK && n == 1);
    assert_true(pl_block_count(s, "few", "other", &n, &err) == PL_OK && n == 0);
}

static void what_is_not_a_database_is_refused(void **state)
{
    pl_error err = { 0 };

    (void)state;
    pl_store_close(s);
    s = NULL;
    write_file("results.db-wal", "");
    write_file("results.db", "this is a text, and long enough to be looked at by a curious library, surely");
    assert_int_equal(pl_store_open(&s, &t.wf, &toy_schema, &err), PL_EDATA);
    assert_non_null(strstr(err.text, "not a database"));
    assert_non_null(strstr(err.text, "results.db"));
}

static void a_damaged_database_is_named(void **state)
{
    pl_error err = { 0 };
    char path[400];
    pl_code code;
    FILE *f;

    (void)state;
    pl_store_close(s);
    s = NULL;
    assert_int_equal(toy_run(&t, 1, NULL), PL_OK);
    (void)snprintf(path, sizeof path, "%s/results.db", dir);
    f = fopen(path, "r+");
    assert_non_null(f);
    assert_int_equal(fseek(f, 4096, SEEK_SET), 0); /* every page after the first */
    for (int i = 0; i < 200000; i++)
        (void)fputc(0x5a, f);
    assert_int_equal(fclose(f), 0);
    code = toy_run(&t, 1, &err);
    assert_int_equal(code, PL_EDATA);
    assert_non_null(strstr(err.text, "damaged"));
}

static void a_missing_database_and_an_empty_one_are_told_apart(void **state)
{
    pl_error err = { 0 };
    pl_store *r = NULL;
    char path[400];

    (void)state;
    (void)snprintf(path, sizeof path, "%s/none.db", dir);
    assert_int_equal(pl_store_open_read(&r, path, &toy_schema, &err), PL_EIO);
    assert_non_null(strstr(err.text, "has this workflow run yet"));
    write_file("none.db", "");
    assert_int_equal(pl_store_open_read(&r, path, &toy_schema, &err), PL_EDATA);
    assert_non_null(strstr(err.text, "nothing has run yet"));
}

static void an_older_database_is_migrated_after_a_copy(void **state)
{
    static const char *const up[] = { NULL, "CREATE TABLE extra(x)", "ALTER TABLE extra ADD COLUMN y" };
    pl_schema three = toy_schema;
    pl_error err = { 0 };
    char copy[400];
    int64_t n;

    (void)state;
    three.version = 3;
    three.migrate = up;
    assert_int_equal(reopen(&three, &err), PL_OK);
    assert_int_equal(pl_db_int(s->db, &n, &err, "SELECT count(*) FROM pragma_table_info('extra')"), PL_OK);
    assert_int_equal(n, 2);
    (void)snprintf(copy, sizeof copy, "%s/results.db.format1", dir);
    assert_int_equal(access(copy, F_OK), 0);
}

/* Nothing of the step stays, and its views are not made either. */
static void a_migration_that_fails_changes_nothing(void **state)
{
    static const char *const up[] = { NULL, "CREATE TABLE extra(x); CREATE TABLE number(x)" };
    pl_schema two = toy_schema;
    pl_error err = { 0 };
    int64_t version = 0, made = 7;
    sqlite3 *db = NULL;

    (void)state;
    two.version = 2;
    two.migrate = up;
    two.views = "DROP VIEW IF EXISTS v_half; CREATE VIEW v_half AS SELECT value FROM number;";
    assert_int_equal(reopen(&two, &err), PL_EBUG);
    assert_non_null(strstr(err.text, "table number already exists"));
    assert_int_equal(pl_store_open(&s, &t.wf, &toy_schema, &err), PL_OK);
    assert_int_equal(pl_db_int(s->db, &version, &err, "PRAGMA user_version"), PL_OK);
    assert_int_equal(pl_db_int(s->db, &made, &err, "SELECT count(*) FROM sqlite_master WHERE name IN('extra','v_half')"), PL_OK);
    assert_true(version == 1 && made == 0);
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    two.sql = "CREATE TABLE number(value); CREATE TABLE number(value)";
    assert_int_equal(pl_schema_create(db, &two, &err), PL_EBUG);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* Beside results.db, wherever that is now, or where they were; not what has the same name, or a folder of the same length. */
static void features_are_found_where_they_are(void **state)
{
    static const char *const cases[][2] = { { "a/f.db", "c/f.db" }, { "b/f.db", "b/f.db" }, { "aa/f.db", "aa/f.db" } };

    (void)state;
    for (int i = 0; i < 3; i++) {
        pl_error err = { 0 };
        pl_store *r = NULL;
        char *top = pl_sprintf(t.mem, "%s/%d", dir, i);
        t.wf.storage.results = pl_sprintf(t.mem, "%s/a/results.db", top);
        t.wf.storage.features = pl_sprintf(t.mem, "%s/%s", top, cases[i][0]);
        assert_int_equal(reopen(&toy_schema, &err), PL_OK);
        assert_int_equal(pl_store_features(s, &err), PL_OK);
        pl_store_close(s);
        s = NULL;
        if (i > 0)
            assert_int_equal(toy_copy(t.wf.storage.features, pl_sprintf(t.mem, "%s/a/f.db", top)), PL_OK);
        assert_int_equal(rename(pl_sprintf(t.mem, "%s/a", top), pl_sprintf(t.mem, "%s/c", top)), 0);
        assert_int_equal(pl_store_open_read(&r, pl_sprintf(t.mem, "%s/c/results.db", top), &toy_schema, &err), PL_OK);
        assert_string_equal(r->features_path, pl_sprintf(t.mem, "%s/%s", top, cases[i][1]));
        pl_store_close(r);
    }
}

static int64_t count(sqlite3 *db, const char *sql)
{
    int64_t n = -1;

    assert_int_equal(pl_db_int(db, &n, NULL, "%s", sql), PL_OK);
    return n;
}

static pl_schema grown(void)
{
    static const pl_added added[] = {
        { "number", "old INTEGER", 1 }, { "number", "half REAL", 2 }, { "walk", "note TEXT", 3 }, { 0 }
    };
    static const char *const up[5] = { NULL, NULL, "CREATE TABLE extra(x)" };
    static const char *const docs[][4] = { { "number", "id", NULL, "a number" },
                                           { "number", "half", "u", "half of it" },
                                           { "walk", "note", NULL, "a word" },
                                           { "extra", "x", NULL, "x" },
                                           { "extra", "y", NULL, "y" },
                                           { "v_half", "half", NULL, "half" },
                                           { NULL, NULL, NULL, NULL } };
    pl_schema later = toy_schema;

    later.version = 3;
    later.added = added;
    later.migrate = up;
    later.docs = docs;
    later.views = "DROP VIEW IF EXISTS v_half; CREATE VIEW v_half AS SELECT half FROM number;";
    return later;
}

static void a_column_added_later_is_in_old_and_new_databases(void **state)
{
    static const char columns[] = "SELECT count(*) FROM (SELECT name FROM pragma_table_info('number') WHERE name='half' UNION ALL "
                                  "SELECT name FROM pragma_table_info('walk') WHERE name='note')";
    pl_schema later = grown();
    pl_error err = { 0 };
    char path[400];
    sqlite3 *fresh = NULL;

    (void)state;
    assert_int_equal(reopen(&later, &err), PL_OK);
    assert_int_equal(count(s->db, columns), 2);
    assert_int_equal(count(s->db, "SELECT count(*) FROM extra"), 0);
    assert_int_equal(count(s->db, "SELECT count(half) FROM v_half"), 0);
    assert_int_equal(count(s->db, "PRAGMA user_version"), 3);
    (void)snprintf(path, sizeof path, "%s/fresh.db", dir);
    assert_int_equal(sqlite3_open(path, &fresh), SQLITE_OK);
    assert_int_equal(pl_schema_create(fresh, &later, &err), PL_OK);
    assert_int_equal(count(fresh, columns), 2);
    assert_int_equal(count(fresh, "SELECT count(half) FROM v_half"), 0);
    assert_int_equal(count(fresh, "SELECT count(*) FROM pragma_table_info('number')"), 4); /* `old` is of the first version */
    (void)sqlite3_close(fresh);
    later.version = 5; /* an unknown version */
    assert_int_equal(reopen(&later, &err), PL_EDATA);
    assert_non_null(strstr(err.text, "too old"));
}

static void an_older_database_reads_as_a_new_one_and_stays_as_it_is(void **state)
{
    pl_schema later = grown();
    pl_store *r = NULL;
    pl_error err = { 0 };

    (void)state;
    assert_int_equal(pl_db_exec(s->db, "INSERT INTO number VALUES(1,0,7)", &err), PL_OK);
    assert_int_equal(pl_store_open_read(&r, s->results_path, &later, &err), PL_OK);
    assert_int_equal(count(r->db, "SELECT count(*) FROM number WHERE half IS NULL AND value=7"), 1);
    assert_int_equal(count(r->db, "SELECT count(*) FROM extra WHERE x IS NOT y"), 0);
    assert_int_equal(count(r->db, "SELECT count(note) FROM walk"), 0);
    pl_store_close(r);
    assert_int_equal(count(s->db, "SELECT count(*) FROM pragma_table_info('number') WHERE name='half'"), 0);
    assert_int_equal(count(s->db, "PRAGMA user_version"), 1);
}

static void a_directory_that_cannot_be_written_is_an_io_error(void **state)
{
    int status = 0;
    pid_t pid;

    (void)state;
    if (geteuid() != 0) {
        print_message("only root can become somebody else here\n");
        skip();
    }
    assert_int_equal(chmod(dir, 0555), 0);
    pid = fork();
    if (pid == 0) {
        pl_error err = { 0 };
        pl_code code;

        if (setuid(65534) != 0)
            _exit(9);
        code = toy_run(&t, 1, &err);
        _exit(code == PL_EIO && strstr(err.text, "can write") != NULL ? 0 : 1);
    }
    (void)waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
}

/* Such a database is opened by a URI, in which some characters have a meaning. */
static void a_database_that_cannot_be_written_is_read_whatever_its_name(void **state)
{
    char path[400];
    int status = 0;
    pid_t pid;

    (void)state;
    if (geteuid() != 0) {
        print_message("only root can become somebody else here\n");
        skip();
    }
    pl_store_close(s);
    s = NULL;
    (void)snprintf(path, sizeof path, "%s/odd%%41?x#y 'z'.db", dir);
    assert_int_equal(rename(t.wf.storage.results, path), 0);
    assert_int_equal(chmod(dir, 0555), 0);
    pid = fork();
    if (pid == 0) {
        pl_store *r = NULL;
        int64_t n = 0;

        if (setuid(65534) != 0 || pl_store_open_read(&r, path, &toy_schema, NULL) != PL_OK ||
            pl_db_int(r->db, &n, NULL, "SELECT count(*) FROM meta") != PL_OK)
            _exit(1);
        _exit(n > 0 ? 0 : 2);
    }
    (void)waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
}

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
    assert_int_equal(pl_db_exec(s->db, "INSERT INTO walk VALUES(1,10)", &err), PL_OK);
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

static void blocks_come_back_as_they_were_put(void **state)
{
    char big[100000];
    pl_block got;
    int64_t n;

    (void)state;
    for (size_t i = 0; i < sizeof big; i++)
        big[i] = (char)(i * 31);
    assert_int_equal(pl_block_put(s, "a", "k", 5, 40, 2, (pl_bytes){ big, sizeof big }, NULL), PL_OK);
    assert_int_equal(pl_block_put(s, "a", "k", 6, 42, 0, (pl_bytes){ NULL, 0 }, NULL), PL_OK);
    assert_int_equal(pl_block_put(s, "a", "k", 6, 43, 0, (pl_bytes){ "", 0 }, NULL), PL_OK); /* replaces */
    assert_int_equal(pl_block_get(s, "a", "k", 5, &got, t.mem, NULL), PL_OK);
    assert_true(got.found);
    assert_int_equal(got.data.len, sizeof big);
    assert_memory_equal(got.data.data, big, sizeof big);
    assert_int_equal(pl_block_check(&got, NULL), PL_OK);
    assert_int_equal(got.first, 40);
    assert_int_equal(got.n_items, 2);
    assert_int_equal(pl_block_get(s, "a", "k", 6, &got, t.mem, NULL), PL_OK);
    assert_true(got.found && got.data.len == 0 && got.first == 43);
    assert_int_equal(pl_block_check(&got, NULL), PL_OK);
    assert_int_equal(pl_block_get(s, "b", "k", 5, &got, t.mem, NULL), PL_OK);
    assert_false(got.found);
    assert_int_equal(pl_block_check(&got, NULL), PL_OK);
    assert_int_equal(pl_block_count(s, "a", "k", &n, NULL), PL_OK);
    assert_int_equal(n, 2);
    assert_int_equal(pl_block_count(s, NULL, "other", &n, NULL), PL_OK);
    assert_int_equal(n, 0);
}

static void a_flipped_bit_in_a_block_is_seen(void **state)
{
    char hex[65], want[600], large[2000] = "";
    pl_error err = { 0 };
    pl_block got;
    bool good;
    pl_text report = { 0 };

    (void)state;
    pl_store_close(s);
    s = NULL;
    assert_int_equal(toy_run(&t, 1, NULL), PL_OK);
    assert_int_equal(pl_store_open(&s, &t.wf, &toy_schema, NULL), PL_OK);
    assert_int_equal(pl_store_features(s, NULL), PL_OK);
    assert_int_equal(pl_store_check(s, &good, &report, NULL), PL_OK);
    assert_true(good);
    assert_int_equal(pl_db_exec(s->features,
                                "UPDATE block SET data=CAST(x'01'||substr(data,2) AS BLOB) WHERE kind='number'"
                                " AND unit=1",
                                NULL),
                     PL_OK);
    assert_int_equal(pl_block_get(s, "number", t.step[0].key, 1, &got, t.mem, &err), PL_OK);
    assert_int_equal(pl_block_check(&got, &err), PL_EDATA);
    assert_non_null(strstr(err.text,
                           "number, unit 1: checksum differs; delete the file and run again: its blocks are then computed "
                           "again"));
    assert_int_equal(pl_store_digest_blocks(s, hex, &err), PL_EDATA);
    (void)snprintf(
        want, sizeof want,
        "%s: damaged (block number, unit 1 of stage count: checksum differs); delete the file and run again, it is made anew",
        s->features_path);
    assert_string_equal(err.text, want);
    /* the same digits one after another, in other columns */
    assert_int_equal(pl_block_put(s, "digits", "key", 1, 12, 3, (pl_bytes){ "abc", 3 }, NULL), PL_OK);
    assert_int_equal(pl_block_get(s, "digits", "key", 1, &got, t.mem, &err), PL_OK);
    assert_int_equal(pl_block_check(&got, &err), PL_OK);
    assert_int_equal(pl_db_exec(s->features, "UPDATE block SET first=1, n_items=23 WHERE kind='digits'", NULL), PL_OK);
    assert_int_equal(pl_block_get(s, "digits", "key", 1, &got, t.mem, &err), PL_OK);
    assert_int_equal(pl_block_check(&got, &err), PL_EDATA);
    assert_int_equal(pl_db_exec(s->features, "UPDATE block SET data=17 WHERE kind='number' AND unit=1", NULL), PL_OK);
    assert_int_equal(pl_block_get(s, "number", t.step[0].key, 1, &got, t.mem, &err), PL_EDATA);
    assert_non_null(strstr(err.text, "number, unit 1: cannot open"));
    pl_text_reset(&report);
    assert_int_equal(pl_store_check(s, &good, &report, NULL), PL_OK);
    assert_false(good);
    assert_non_null(strstr(pl_text_str(&report), "block number, unit 1 of stage count"));
    (void)sqlite3_limit(s->features, SQLITE_LIMIT_LENGTH, sizeof large - 1);
    assert_int_equal(pl_block_put(s, "large", "key", 3, 0, 1, (pl_bytes){ large, sizeof large }, &err), PL_EDATA);
    assert_string_equal(err.text, "block large, unit 3: 2000 bytes are too many for one row; use smaller units");
    pl_text_free(&report);
}

static char last_log[1024];

static void keep_log(void *ctx, pl_level level, const char *line)
{
    (void)ctx;
    (void)snprintf(last_log, sizeof last_log, "%d %s", (int)level, line);
}

static void cached(const unsigned char *key, const char *want)
{
    pl_arena *mem = pl_arena_new(0);
    pl_bytes got;

    assert_int_equal(pl_cache_get(s, key, &got, mem, NULL), PL_OK);
    assert_int_equal(got.data != NULL, want != NULL);
    if (want != NULL) {
        assert_int_equal(got.len, strlen(want));
        assert_memory_equal(got.data, want, got.len);
    }
    pl_arena_free(mem);
}

static void entries_of_the_cache_come_back_unless_they_are_damaged(void **state)
{
    unsigned char key[3][32] = { { 1 }, { 2 }, { 3 } };
    int64_t n, n_bad;

    (void)state;
    last_log[0] = '\0';
    pl_log_to(keep_log, NULL, PL_INFO);
    for (int i = 0; i < 2; i++) {
        const char *text = i == 0 ? "one" : "two two";
        assert_int_equal(pl_cache_put(s, key[i], (pl_bytes){ text, strlen(text) }, NULL), PL_OK);
    }
    cached(key[0], "one");
    cached(key[1], "two two");
    cached(key[2], NULL);
    assert_int_equal(pl_cache_put(s, key[0], (pl_bytes){ "other", 5 }, NULL), PL_OK);
    cached(key[0], "other");
    assert_int_equal(pl_cache_check(s, &n, &n_bad, NULL), PL_OK);
    assert_int_equal(n, 2);
    assert_int_equal(n_bad, 0);
    assert_string_equal(last_log, "");
    assert_int_equal(pl_db_exec(s->features, "UPDATE cache SET crc32=crc32+1 WHERE length(data)=5", NULL), PL_OK);
    cached(key[0], NULL);
    assert_string_equal(last_log, "1 features.db: a damaged entry of the cache is ignored and computed again");
    cached(key[1], "two two");
    assert_int_equal(pl_cache_check(s, &n, &n_bad, NULL), PL_OK);
    assert_int_equal(n, 2);
    assert_int_equal(n_bad, 1);
    /* a row under another key is damaged, too */
    assert_int_equal(pl_db_exec(s->features, "UPDATE cache SET key=zeroblob(32) WHERE length(data)=7", NULL), PL_OK);
    cached((const unsigned char[32]){ 0 }, NULL);
    assert_int_equal(pl_cache_check(s, &n, &n_bad, NULL), PL_OK);
    assert_int_equal(n_bad, 2);
    pl_log_to(NULL, NULL, PL_ERROR);
}

static void a_row_without_its_unit_is_seen(void **state)
{
    bool good;
    pl_text report = { 0 };

    (void)state;
    assert_int_equal(pl_db_exec(s->db, "INSERT INTO number VALUES(1,7,7)", NULL), PL_OK);
    assert_int_equal(pl_store_check(s, &good, &report, NULL), PL_OK);
    assert_false(good);
    assert_non_null(strstr(pl_text_str(&report), "BAD  every number belongs to a committed unit: 1 do not"));
    pl_text_free(&report);
}

static void the_digest_sees_content_and_not_order(void **state)
{
    char a[65], b[65], c[65], d[65];

    (void)state;
    assert_int_equal(pl_db_exec(s->db, "INSERT INTO walk VALUES(1,10),(2,20),(3,30)", NULL), PL_OK);
    assert_int_equal(pl_store_digest(s, a, NULL), PL_OK);
    assert_int_equal(pl_db_exec(s->db, "DELETE FROM walk; INSERT INTO walk VALUES(3,30),(1,10),(2,20)", NULL), PL_OK);
    assert_int_equal(pl_store_digest(s, b, NULL), PL_OK);
    assert_int_equal(pl_db_exec(s->db, "UPDATE walk SET value=11 WHERE step=1", NULL), PL_OK);
    assert_int_equal(pl_store_digest(s, c, NULL), PL_OK);
    assert_int_equal(pl_db_exec(s->db,
                                "UPDATE walk SET value=10 WHERE step=1; INSERT INTO square SELECT 1,10,0 WHERE 0;"
                                "DELETE FROM walk WHERE step=3",
                                NULL),
                     PL_OK);
    assert_int_equal(pl_store_digest(s, d, NULL), PL_OK);
    assert_string_equal(a, b);
    assert_string_not_equal(a, c);
    assert_string_not_equal(a, d);
    assert_int_equal(strlen(a), 64);
}

/* Computed from the definition in another language: users may compare digests for years. */
static void the_digest_of_known_rows_is_a_known_one(void **state)
{
    static const char *const digest[][2] = { { "all", "SELECT 1,2.5,NULL,'x',x'00ff',''" },
                                             { "two", "SELECT 7 UNION SELECT 9" },
                                             { NULL, NULL } };
    pl_schema known = toy_schema;
    char a[65];

    (void)state;
    known.digest = digest;
    assert_int_equal(reopen(&known, NULL), PL_OK);
    assert_int_equal(pl_store_digest(s, a, NULL), PL_OK);
    assert_string_equal(a, "bb34541221bdc1de01bc63481fab3bd5773342401eb9033b36cc6e00eb8b99e9");
}

static void rows_of_a_table_that_came_later_are_summed_too(void **state)
{
    pl_text report = { 0 };
    pl_error err = { 0 };
    int n = 0, before = 0;
    bool good = true;

    (void)state;
    assert_int_equal(pl_sums_check(s->db, &before, &report, &err), PL_OK);
    assert_int_equal(pl_db_exec(s->db, "CREATE TABLE later(a,b)", &err), PL_OK);
    assert_int_equal(pl_sums_add(s->sums, "later", &err), PL_OK);
    assert_int_equal(pl_sums_fill(s->db, &err), PL_OK); /* the list of tables has changed */
    assert_int_equal(pl_db_exec(s->db,
                                "INSERT INTO later VALUES(1,'x'),(2,'y'),(3,'z'); UPDATE later SET b='w' WHERE a=2;"
                                "DELETE FROM later WHERE a=1",
                                &err),
                     PL_OK);
    assert_int_equal(pl_sums_check(s->db, &n, &report, &err), PL_OK);
    assert_int_equal(n, before + 1);
    assert_string_equal(pl_text_str(&report), "");
    assert_int_equal(pl_db_exec(s->db, "UPDATE row_sum SET n=n+1 WHERE tbl='later'", &err), PL_OK);
    assert_int_equal(pl_sums_check(s->db, &n, &report, &err), PL_EDATA);
    assert_string_equal(pl_text_str(&report), "table later: the checksum of its rows differs\n");
    assert_string_equal(err.text, "the checksums of rows differ");
    pl_text_reset(&report);
    assert_int_equal(pl_store_check(s, &good, &report, &err), PL_OK);
    assert_false(good);
    assert_non_null(strstr(pl_text_str(&report), "results.db: table later: the checksum of its rows differs\n"));
    assert_non_null(strstr(pl_text_str(&report), "BAD  "));
    pl_text_reset(&report);
    assert_int_equal(pl_db_exec(s->db, "DELETE FROM row_sum WHERE tbl='later'", &err), PL_OK);
    assert_int_equal(pl_sums_check(s->db, &n, &report, &err), PL_EDATA);
    assert_string_equal(pl_text_str(&report), "1 tables have no checksum in row_sum\n");
    pl_text_free(&report);
}

static void sums_are_gathered_for_a_whole_transaction(void **state)
{
    pl_text report = { 0 };
    pl_error err = { 0 };
    int64_t stored = 0;
    int n = 0;

    (void)state;
    assert_int_equal(pl_db_exec(s->db, "CREATE TABLE later(a INTEGER PRIMARY KEY,b)", &err), PL_OK);
    assert_int_equal(pl_sums_add(s->sums, "later", &err), PL_OK);
    assert_int_equal(pl_sums_fill(s->db, &err), PL_OK);
    for (int turn = 0; turn < 2; turn++) { /* rolled back, committed */
        assert_int_equal(pl_db_begin(s->db, &err), PL_OK);
        pl_sums_gather(s->sums, true);
        assert_int_equal(pl_db_exec(s->db,
                                    "INSERT INTO later VALUES(1,'x'),(2,NULL),(3,2.5); UPDATE later SET b='w' WHERE a=2;"
                                    "INSERT OR REPLACE INTO later VALUES(3,'z'); DELETE FROM later WHERE a=1",
                                    &err),
                         PL_OK);
        assert_int_equal(pl_db_int(s->db, &stored, &err, "SELECT n FROM row_sum WHERE tbl='later'"), PL_OK);
        assert_int_equal(stored, 0);
        if (turn == 0) {
            pl_sums_gather(s->sums, false);
            pl_db_rollback(s->db);
            continue;
        }
        assert_int_equal(pl_sums_put(s->sums, &err), PL_OK);
        assert_int_equal(pl_db_commit(s->db, &err), PL_OK);
    }
    assert_int_equal(pl_db_int(s->db, &stored, &err, "SELECT n FROM row_sum WHERE tbl='later'"), PL_OK);
    assert_int_equal(stored, 2);
    assert_int_equal(pl_db_exec(s->db, "INSERT INTO later VALUES(4,'one by one again')", &err), PL_OK);
    assert_int_equal(pl_sums_check(s->db, &n, &report, &err), PL_OK);
    pl_text_free(&report);
}

static void put_rows(pl_insert *in, int n)
{
    pl_error err = { 0 };

    for (int i = 0; i < n; i++) {
        const int at = pl_insert_at(in);
        (void)sqlite3_bind_int64(in->st, at, 2 * i); /* "c,a,b" */
        (void)sqlite3_bind_int64(in->st, at + 1, i + 1);
        if (i == 0) /* not bound: NULL, also where an earlier group had a value */
            (void)sqlite3_bind_int64(in->st, at + 2, 5);
        assert_int_equal(pl_insert_row(in, &err), PL_OK);
    }
    assert_int_equal(pl_insert_end(in, &err), PL_OK);
}

static void rows_are_inserted_in_groups_and_none_is_lost(void **state)
{
    static const int counts[] = { 0, 1, 15, 16, 17, 33 };
    pl_insert in = { 0 };
    pl_error err = { 0 };
    int64_t n = 0, sum = 0;

    (void)state;
    assert_int_equal(pl_db_exec(s->db, "CREATE TABLE later(a INTEGER PRIMARY KEY,b,c REAL)", &err), PL_OK);
    assert_int_equal(pl_insert_open(&in, s->db, NULL, "later", "c,a,b", &err), PL_OK);
    for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
        assert_int_equal(pl_db_exec(s->db, "DELETE FROM later", &err), PL_OK);
        put_rows(&in, counts[k]);
        assert_int_equal(pl_db_int(s->db, &n, &err, "SELECT count(*) FROM later WHERE a BETWEEN 1 AND %d AND c=2*a-2", counts[k]),
                         PL_OK);
        assert_int_equal(n, counts[k]);
        assert_int_equal(pl_db_int(s->db, &sum, &err, "SELECT coalesce(sum(b),0) FROM later"), PL_OK);
        assert_int_equal(sum, counts[k] > 0 ? 5 : 0);
    }
    (void)sqlite3_bind_int64(in.st, pl_insert_at(&in), 1);
    (void)sqlite3_bind_int64(in.st, pl_insert_at(&in) + 1, 1); /* is there already */
    assert_int_equal(pl_insert_row(&in, &err), PL_OK);
    assert_int_equal(pl_insert_end(&in, &err), PL_EBUG);
    pl_insert_close(&in);
}

/* Two at once, as of two stages; then a trigger counts again. */
static void rows_in_groups_are_counted_by_their_statement(void **state)
{
    pl_insert in[2] = { 0 };
    pl_error err = { 0 };
    pl_text report = { 0 };
    int n = 0;

    (void)state;
    assert_int_equal(pl_db_exec(s->db, "CREATE TABLE later(a INTEGER PRIMARY KEY,b,c REAL,d)", &err), PL_OK);
    assert_int_equal(pl_sums_add(s->sums, "later", &err), PL_OK);
    assert_int_equal(pl_sums_fill(s->db, &err), PL_OK);
    for (int k = 0; k < 2; k++)
        assert_int_equal(pl_insert_open(&in[k], s->db, s->sums, "later", "c,a,b", &err), PL_OK);
    for (int k = 1; k >= 0; k--) {
        assert_int_equal(pl_db_exec(s->db, "DELETE FROM later", &err), PL_OK);
        pl_sums_gather(s->sums, true);
        put_rows(&in[k], 17);
        assert_int_equal(pl_sums_put(s->sums, &err), PL_OK);
        pl_insert_close(&in[k]);
    }
    assert_int_equal(pl_db_exec(s->db, "INSERT INTO later VALUES(99,'x',1.5,NULL)", &err), PL_OK);
    assert_int_equal(pl_sums_check(s->db, &n, &report, &err), PL_OK);
    assert_int_equal(pl_insert_open(&in[0], s->db, s->sums, "later", "a,b,c", &err), PL_OK);
    (void)sqlite3_bind_int64(in[0].st, 1, 100);
    assert_int_equal(pl_insert_row(&in[0], &err), PL_OK);
    assert_int_not_equal(pl_insert_end(&in[0], &err), PL_OK);
    assert_non_null(strstr(err.text, "outside of a unit"));
    pl_insert_close(&in[0]);
    pl_text_free(&report);
}

static void sums_that_were_given_up_are_made_again_for_good(void **state)
{
    int64_t n = 0, had = 0;
    sqlite3 *db = NULL;

    (void)state;
    assert_int_equal(pl_db_int(s->db, &had, NULL, "SELECT count(*) FROM row_sum"), PL_OK);
    assert_true(had > 3);
    assert_int_equal(pl_db_exec(s->db, "DELETE FROM row_sum", NULL), PL_OK);
    assert_int_equal(reopen(&toy_schema, NULL), PL_OK);
    pl_store_close(s);
    s = NULL;
    assert_int_equal(sqlite3_open(t.wf.storage.results, &db), SQLITE_OK);
    assert_int_equal(pl_db_int(db, &n, NULL, "SELECT count(*) FROM row_sum"), PL_OK);
    assert_int_equal(n, had);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* A block that later stages would miss; what was begun of the file is removed. */
static void a_packed_file_has_all_blocks_or_is_not_made(void **state)
{
    char to[300], part[320], want[400];
    pl_error err = { 0 };
    const char *shard = NULL;
    pl_store *packed = NULL;

    (void)state;
    pl_store_close(s);
    s = NULL;
    assert_int_equal(toy_run(&t, 1, NULL), PL_OK);
    assert_int_equal(pl_store_open(&s, &t.wf, &toy_schema, NULL), PL_OK);
    (void)snprintf(to, sizeof to, "%s/packed.db", dir);
    (void)snprintf(part, sizeof part, "%s.part", to);
    for (int more = 1; more >= 0; more--) {
        write_file("packed.db.part", "what a killed run left"); /* and what it would have been rolled back to */
        write_file("packed.db.part-journal", "of another file");
        const pl_packed numbers = { .kind = "number", .key = t.step[0].key, .n = 3 + more };
        assert_int_equal(pl_store_pack(s, to, "1/2", &numbers, 1, t.mem, &err), more ? PL_EDATA : PL_OK);
        assert_int_equal(access(to, F_OK), more ? -1 : 0);
        assert_int_equal(access(part, F_OK), -1);
        assert_int_equal(access(pl_sprintf(t.mem, "%s-journal", part), F_OK), -1);
    }
    (void)snprintf(want, sizeof want, "%s lacks number of unit 3, which later stages read; run again with --force and their stage",
                   s->features_path);
    assert_string_equal(err.text, want);
    assert_int_equal(pl_store_open_read(&packed, to, &toy_schema, &err), PL_OK);
    assert_int_equal(pl_store_shard(packed, &shard, t.mem, &err), PL_OK);
    assert_string_equal(shard, "1/2");
    assert_int_equal(pl_store_shard(s, &shard, t.mem, &err), PL_OK);
    assert_string_equal(shard, "");
    assert_int_equal(count(packed->db, "SELECT count(*) FROM block WHERE kind='number'"), 3);
    assert_int_equal(count(packed->db, "SELECT count(*) FROM block"), 3);
    pl_store_close(packed);
}

/* ---- paths that do not fit ---- */

/* The message has both ends of the path. */
static void too_long(const char *end, pl_code code, const pl_error *err)
{
    const size_t n = strlen(err->text);
    char want[60];
    const size_t tail = (size_t)snprintf(want, sizeof want, "/%s: path too long", end);

    assert_int_equal(code, PL_EIO);
    assert_true(n > tail + strlen(dir));
    assert_string_equal(err->text + n - tail, want);
    assert_memory_equal(err->text, dir, strlen(dir));
}

static void fits(pl_code code, const pl_error *err)
{
    if (code != PL_OK)
        fail_msg("%s", err->text);
}

static void names_of_copies_are_refused_only_where_they_do_not_fit(void **state)
{
    const size_t most = PATH_MAX - 1 - strlen(".tmp-journal");
    pl_error err = { 0 };

    (void)state;
    fits(pl_store_copy(s, long_name(dir, "copy", most), &err), &err);
    assert_int_equal(access(long_name(dir, "copy", most), F_OK), 0);
    too_long("copy", pl_store_copy(s, long_name(dir, "copy", most + 1), &err), &err);
}

/* Without ".format1" the name fits; with it, it would fit, too, but not as the name of what is being copied. */
static void a_copy_before_a_migration_needs_a_name_that_fits(void **state)
{
    static const char *const up[] = { NULL, "CREATE TABLE extra(x)" };
    static const char *const names[] = { "y.db", "x.db" }, *const named[] = { "y.db.format1", "x.db" };
    pl_schema two = toy_schema;

    (void)state;
    two.version = 2;
    two.migrate = up;
    for (size_t over = 0; over < 2; over++) {
        pl_error err = { 0 };
        t.wf.storage.results = pl_strdup(t.mem, long_name(dir, names[over], PATH_MAX - 1 - strlen(".format1") + over));
        assert_int_equal(reopen(&toy_schema, &err), PL_OK);
        too_long(named[over], reopen(&two, &err), &err);
    }
}

static void a_folder_of_results_is_made_only_if_its_name_fits(void **state)
{
    const size_t most = PATH_MAX + strlen("r.db");
    pl_error err = { 0 };

    (void)state;
    t.wf.storage.results = pl_strdup(t.mem, long_name(dir, "r.db", most));
    fits(reopen(&toy_schema, &err), &err); /* SQLite shortens it */
    t.wf.storage.results = pl_strdup(t.mem, long_name(dir, "r.db", most + 1));
    too_long("r.db", reopen(&toy_schema, &err), &err);
}

static void features_beside_results_need_a_name_that_fits(void **state)
{
    const size_t most = PATH_MAX - 1 - strlen("features.db") + strlen("results.db");
    pl_error err = { 0 };
    pl_store *r = NULL;

    (void)state;
    fits(pl_store_open_read(&r, long_name(dir, "results.db", most), &toy_schema, &err), &err);
    pl_store_close(r);
    too_long("results.db", pl_store_open_read(&r, long_name(dir, "results.db", most + 1), &toy_schema, &err), &err);
}

static void the_copy_of_earlier_results_has_a_name_of_its_own(void **state)
{
    static const struct {
        const char *results, *previous;
    } cases[] = { { "a/results.db", "a/results.previous.db" },
                  { "x.db", "x.previous.db" },
                  { ".db", ".db.previous.db" },
                  { "db", "db.previous.db" },
                  { "results.dbx", "results.dbx.previous.db" } };
    char out[100];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const pl_store is = { .results_path = cases[i].results };
        const size_t n = strlen(cases[i].previous) + 1;
        assert_true(pl_previous_path(&is, out, n));
        assert_string_equal(out, cases[i].previous);
        assert_false(pl_previous_path(&is, out, n - 1));
    }
}

static void a_lock_of_results_elsewhere_needs_a_name_that_fits(void **state)
{
    const size_t most = PATH_MAX - 1 - strlen(".lock");
    pl_error err = { 0 };
    pl_locks locks;

    (void)state;
    t.wf.storage.results = pl_strdup(t.mem, long_name(dir, "r.db", most));
    fits(pl_locks_take(&locks, &t.wf, &err), &err);
    pl_locks_drop(&locks);
    t.wf.storage.results = pl_strdup(t.mem, long_name(dir, "r.db", most + 1));
    too_long("r.db", pl_locks_take(&locks, &t.wf, &err), &err);
}

static void a_run_that_cannot_keep_the_earlier_results_ends(void **state)
{
    static const char *const names[] = { "y.db", "x.db" }, *const named[] = { "y.previous.db", "x.db" };
    const size_t most = PATH_MAX - 1 - strlen(".previous.db") + strlen(".db");

    (void)state;
    for (size_t over = 0; over < 2; over++) {
        pl_error err = { 0 };
        t.wf.storage.results = pl_strdup(t.mem, long_name(dir, names[over], most + over));
        t.conf[1].offset = 0;
        fits(toy_run(&t, 1, &err), &err);
        t.conf[1].offset = 5;
        too_long(named[over], toy_run(&t, 1, &err), &err);
        assert_int_equal(toy_int(&t, "SELECT max(value) FROM square"), 168 * 168); /* nothing was removed */
    }
}

/* ---- sums that are not there ---- */

/* A database of before the sums, opened for reading, and one whose sums were given up: both are good, and nothing is said. */
static void a_database_without_sums_is_checked_without_them(void **state)
{
    static const char *const without[] = { "DELETE FROM row_sum", "DROP TABLE row_sum" };

    (void)state;
    for (int i = 0; i < 2; i++) {
        pl_text report = { 0 };
        pl_error err = { 0 };
        bool good = false;
        assert_int_equal(reopen(&toy_schema, &err), PL_OK);
        assert_int_equal(pl_db_exec(s->db, without[i], &err), PL_OK);
        pl_store_close(s);
        assert_int_equal(pl_store_open_read(&s, t.wf.storage.results, &toy_schema, &err), PL_OK);
        if (pl_store_check(s, &good, &report, &err) != PL_OK)
            fail_msg("%s", err.text);
        assert_true(good);
        assert_null(strstr(pl_text_str(&report), "checksums"));
        assert_non_null(strstr(pl_text_str(&report), "good rows refer only to rows that exist\n"));
        pl_text_free(&report);
    }
}

/* It would have another row in its sum than in the table. The trigger that counts its rows stays. */
static void no_statement_counts_rows_whose_columns_have_defaults(void **state)
{
    pl_text call = { 0 }, report = { 0 };
    pl_error err = { 0 };
    int at = 7, n = 0;

    (void)state;
    assert_int_equal(pl_db_exec(s->db, "CREATE TABLE later(a,b DEFAULT 3,c)", &err), PL_OK);
    assert_int_equal(pl_sums_add(s->sums, "later", &err), PL_OK);
    assert_int_equal(pl_sums_fill(s->db, &err), PL_OK);
    assert_int_equal(pl_sums_claim(s->sums, "later", "c,a", &call, &at, &err), PL_EBUG);
    assert_string_equal(err.text, "table later: a column that is left out has a default");
    assert_int_equal(at, -1);
    assert_int_equal(pl_db_exec(s->db, "INSERT INTO later(a) VALUES(1)", &err), PL_OK);
    assert_int_equal(pl_sums_check(s->db, &n, &report, &err), PL_OK);
    pl_text_reset(&call);
    assert_int_equal(pl_sums_claim(s->sums, "later", "c,b", &call, &at, &err), PL_OK);
    assert_true(at >= 0);
    assert_non_null(strstr(pl_text_str(&call), ",NULL,column2,column1)"));
    pl_sums_release(s->sums, at);
    pl_text_reset(&call);
    assert_int_equal(pl_sums_claim(s->sums, "nowhere", "a", &call, &at, &err), PL_OK);
    assert_int_equal(at, -1);
    assert_string_equal(pl_text_str(&call), "");
    assert_int_equal(pl_db_exec(s->db, "DROP TABLE later", &err), PL_OK);
    assert_int_equal(pl_sums_check(s->db, &n, &report, &err), PL_EDATA);
    assert_string_equal(pl_text_str(&report), "the list of tables: the checksum of its rows differs\n"
                                              "table later: the checksum of its rows differs\n");
    pl_text_free(&call);
    pl_text_free(&report);
}

static void a_good_database_is_said_to_be_good_in_every_point(void **state)
{
    char want[1400];
    pl_text report = { 0 };
    bool good = false;

    (void)state;
    pl_store_close(s);
    s = NULL;
    assert_int_equal(toy_run(&t, 1, NULL), PL_OK);
    assert_int_equal(pl_store_open(&s, &t.wf, &toy_schema, NULL), PL_OK);
    assert_int_equal(pl_store_features(s, NULL), PL_OK);
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
    pl_store_close(s);
    s = NULL;
    assert_int_equal(toy_run(&t, 1, NULL), PL_OK);
    assert_int_equal(pl_store_open(&s, &t.wf, &toy_schema, NULL), PL_OK);
    assert_int_equal(pl_store_features(s, NULL), PL_OK);
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

#define CASE(f) cmocka_unit_test_setup_teardown(f, make, drop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_good_database_is_said_to_be_good_in_every_point), /* first: the finding about another database is kept */
        CASE(a_new_store_says_what_it_is),
        CASE(a_truncate_journal_can_be_asked_for),
        CASE(a_newer_database_is_refused_untouched),
        CASE(another_programs_database_is_refused),
        CASE(what_is_not_a_database_is_refused),
        CASE(what_another_program_made_is_left_as_it_is),
        CASE(no_opened_database_is_trusted),
        CASE(features_are_not_used_before_they_are_open),
        CASE(a_damaged_database_is_named),
        CASE(a_missing_database_and_an_empty_one_are_told_apart),
        CASE(an_older_database_is_migrated_after_a_copy),
        CASE(a_migration_that_fails_changes_nothing),
        CASE(features_are_found_where_they_are),
        CASE(a_column_added_later_is_in_old_and_new_databases),
        CASE(an_older_database_reads_as_a_new_one_and_stays_as_it_is),
        CASE(a_directory_that_cannot_be_written_is_an_io_error),
        CASE(a_database_that_cannot_be_written_is_read_whatever_its_name),
        CASE(one_who_reads_is_named_and_waited_for_until_a_stop),
        CASE(blocks_come_back_as_they_were_put),
        CASE(a_flipped_bit_in_a_block_is_seen),
        CASE(entries_of_the_cache_come_back_unless_they_are_damaged),
        CASE(a_row_without_its_unit_is_seen),
        CASE(the_digest_sees_content_and_not_order),
        CASE(the_digest_of_known_rows_is_a_known_one),
        CASE(sums_are_gathered_for_a_whole_transaction),
        CASE(rows_are_inserted_in_groups_and_none_is_lost),
        CASE(rows_in_groups_are_counted_by_their_statement),
        CASE(sums_that_were_given_up_are_made_again_for_good),
        CASE(rows_of_a_table_that_came_later_are_summed_too),
        CASE(a_database_without_sums_is_checked_without_them),
        CASE(no_statement_counts_rows_whose_columns_have_defaults),
        CASE(a_packed_file_has_all_blocks_or_is_not_made),
        CASE(names_of_copies_are_refused_only_where_they_do_not_fit),
        CASE(a_copy_before_a_migration_needs_a_name_that_fits),
        CASE(a_folder_of_results_is_made_only_if_its_name_fits),
        CASE(features_beside_results_need_a_name_that_fits),
        CASE(the_copy_of_earlier_results_has_a_name_of_its_own),
        CASE(a_lock_of_results_elsewhere_needs_a_name_that_fits),
        CASE(a_run_that_cannot_keep_the_earlier_results_ends),
        CASE(a_copy_is_whole_and_old_or_new),
        CASE(pruning_removes_only_what_no_stage_uses),
        CASE(a_files_hash_follows_its_content_and_not_its_time),
        CASE(an_old_files_hash_is_remembered_until_it_changes),
        CASE(what_has_no_hash_has_none_the_second_time),
        CASE(a_failed_commit_leaves_no_transaction_open),
        CASE(metrics_are_replaced_and_never_nan),
    };
    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
