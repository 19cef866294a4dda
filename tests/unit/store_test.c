/* SPDX-License-Identifier: Apache-2.0 */
/* Databases: made, opened, migrated, refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "pipeline/store/open.h"
#include "tests/unit/stores.h"

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
    for (int unit = 0; unit < 7; unit++) {
        const char *kind = unit < 2 ? "few" : "many";
        const char *of = unit < 6 ? "key" : "other";
        assert_int_equal(pl_block_put(s, kind, of, unit, 0, 0, (pl_bytes){ "a", 1 }, &err), PL_OK);
    }
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

/* The second of two steps fails: the database is that of the first, without the views, which are of the last. */
static void views_are_made_by_the_last_step_only(void **state)
{
    static const char *const up[] = { NULL, "CREATE TABLE extra(x)", "CREATE TABLE number(x)" };
    pl_schema two = toy_schema, three;
    pl_error err = { 0 };
    int64_t version = 0, tables = 7, views = 7;

    (void)state;
    two.version = 2;
    two.migrate = up;
    three = two;
    three.version = 3;
    three.views = "DROP VIEW IF EXISTS v_half; CREATE VIEW v_half AS SELECT value FROM number;";
    assert_int_equal(reopen(&three, &err), PL_EBUG);
    assert_int_equal(pl_store_open(&s, &t.wf, &two, &err), PL_OK);
    assert_int_equal(pl_db_int(s->db, &version, &err, "PRAGMA user_version"), PL_OK);
    assert_int_equal(pl_db_int(s->db, &tables, &err, "SELECT count(*) FROM sqlite_master WHERE name='extra'"), PL_OK);
    assert_int_equal(pl_db_int(s->db, &views, &err, "SELECT count(*) FROM sqlite_master WHERE name='v_half'"), PL_OK);
    assert_true(version == 2 && tables == 1 && views == 0);
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
    assert_int_equal(count(s->db, "SELECT count(*) FROM column_doc"), 6);
    assert_int_equal(count(s->db, "SELECT count(*) FROM column_doc WHERE tbl='number' AND col='id' AND unit IS NULL AND "
                                  "description='a number'"),
                     1);
    (void)snprintf(path, sizeof path, "%s/fresh.db", dir);
    assert_int_equal(sqlite3_open(path, &fresh), SQLITE_OK);
    assert_int_equal(pl_schema_create(fresh, &later, &err), PL_OK);
    assert_int_equal(count(fresh, columns), 2);
    assert_int_equal(count(fresh, "SELECT count(half) FROM v_half"), 0);
    assert_int_equal(count(fresh, "SELECT count(*) FROM pragma_table_info('number')"), 4); /* `old` is of the first version */
    (void)sqlite3_close(fresh);
    later.version = 4; /* no step leads to it */
    assert_int_equal(reopen(&later, &err), PL_EDATA);
    assert_non_null(strstr(err.text, "too old"));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* first: the finding about another database is kept */
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
        CASE(views_are_made_by_the_last_step_only),
    };
    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
