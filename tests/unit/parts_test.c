/* SPDX-License-Identifier: Apache-2.0 */
/* Small parts of the pipeline: names of runs and jobs, spellings, free space, the errors of SQLite. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "pipeline/base/disk.h"
#include "pipeline/base/folder.h"
#include "pipeline/base/ids.h"
#include "pipeline/base/spelling.h"
#include "pipeline/base/stop.h"
#include "pipeline/store/db.h"
#include "pipeline/store/open.h"
#include "pipeline/store/store.h"
#include "pipeline/workflow/names.h"

/* ---- names ---- */

/* RFC 4122, version 4. */
static void every_run_has_a_name_of_its_own(void **unused)
{
    char a[40], b[40] = "";

    (void)unused;
    for (int k = 0; k < 50; k++) {
        pl_uuid(a);
        assert_int_equal(strlen(a), 36);
        assert_int_equal(strspn(a, "0123456789abcdef-"), 36);
        for (int i = 0; i < 36; i++)
            assert_int_equal(a[i] == '-', i == 8 || i == 13 || i == 18 || i == 23);
        assert_int_equal(a[14], '4');
        assert_non_null(strchr("89ab", a[19]));
        assert_string_not_equal(a, b);
        memcpy(b, a, sizeof b);
    }
}

static void the_scheduler_is_the_one_whose_job_this_is(void **unused)
{
    static const char *const names[] = { "SLURM_JOB_ID",        "PBS_JOBID",       "LSB_JOBID",    "JOB_ID",
                                         "SLURM_ARRAY_TASK_ID", "PBS_ARRAY_INDEX", "LSB_JOBINDEX", "SGE_TASK_ID" };
    static const char *const by[] = { "slurm", "pbs", "lsf", "sge" };
    const char *job, *task;

    (void)unused;
    for (int i = 0; i < 8; i++)
        (void)unsetenv(names[i]);
    assert_null(pl_scheduler(&job, &task));
    assert_true(job == NULL && task == NULL);
    for (int i = 3; i >= 0; i--) { /* of several the first one counts */
        assert_int_equal(setenv(names[i], by[i], 1), 0);
        if (i < 3) {
            assert_string_equal(pl_scheduler(&job, &task), by[i]);
            assert_string_equal(job, by[i]);
            assert_null(task);
        } else {
            assert_null(pl_scheduler(&job, &task)); /* JOB_ID alone may be anything */
        }
        assert_int_equal(setenv(names[4 + i], "17", 1), 0);
        assert_string_equal(pl_scheduler(&job, &task), by[i]);
        assert_string_equal(job, by[i]);
        assert_string_equal(task, "17");
    }
    for (int i = 0; i < 8; i++)
        (void)unsetenv(names[i]);
}

static void spellings_are_those_of_the_whole_word(void **unused)
{
    static const char *const words[][2] = {
        { "neutralise", "neutralize" }, { "optimiser", "optimizer" }, { "train.optimiser.lr", "train.optimizer.lr" },
        { "maximise", "maximize" },     { "minimised", "minimized" }, { "max_neighbours", "max_neighbors" }
    };
    char out[PL_SPELLED], word[PL_SPELLED + 10];

    (void)unused;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        assert_true(pl_british(words[i][1], out));
        assert_string_equal(out, words[i][0]);
        assert_true(pl_american(words[i][0], out));
        assert_string_equal(out, words[i][1]);
        assert_false(pl_british(words[i][0], out));
        assert_false(pl_american(words[i][1], out));
    }
    assert_false(pl_british("", out) || pl_british("size", out) || pl_american("size", out));
    for (int n = PL_SPELLED - 3; n < PL_SPELLED + 3; n++) { /* of n letters */
        memset(word, 'x', sizeof word);
        memcpy(word, "neutralise", 10);
        word[n] = '\0';
        assert_int_equal(pl_american(word, out), n < PL_SPELLED);
    }
}

static void names_are_kept_sorted_and_once(void **unused)
{
    static pl_names all;
    char name[PL_NAME_BYTES + 1];

    (void)unused;
    for (int i = PL_NAMES_MAX; i > 0; i--) {
        (void)snprintf(name, sizeof name, "n%02d", i * 7 % (PL_NAMES_MAX + 1));
        pl_names_add(&all, name);
        pl_names_add(&all, name);
    }
    assert_true(all.n == PL_NAMES_MAX && !all.too_many);
    for (int i = 1; i < all.n; i++)
        assert_true(strcmp(all.name[i - 1], all.name[i]) < 0);
    assert_int_equal(pl_names_find(&all, "n01"), 0);
    assert_int_equal(pl_names_find(&all, "n64"), PL_NAMES_MAX - 1);
    assert_int_equal(pl_names_find(&all, "n65"), -1);
    pl_names_add(&all, "n05"); /* it is there */
    assert_false(all.too_many);
    pl_names_add(&all, "n65");
    assert_true(all.too_many && all.n == PL_NAMES_MAX);
    all = (pl_names){ 0 };
    memset(name, 'a', sizeof name);
    name[PL_NAME_BYTES - 1] = '\0';
    pl_names_add(&all, name);
    assert_true(all.n == 1 && !all.too_many && strcmp(all.name[0], name) == 0);
    name[PL_NAME_BYTES - 1] = 'a';
    name[PL_NAME_BYTES] = '\0';
    pl_names_add(&all, name);
    assert_true(all.n == 1 && all.too_many);
}

/* ---- disks ---- */

/* What is to be made there lies on the file system of the nearest folder that exists. */
static void free_space_is_that_of_the_nearest_folder(void **unused)
{
    static const char *const paths[] = {
        "", ".", "none", "none/of/these", "./none", "/tmp/none/of/these", "/none", "/none/of/these"
    };
    char long_path[PATH_MAX];

    (void)unused;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        assert_true(pl_disk_free(paths[i]) >= 0);
    assert_int_equal(pl_is_network_fs("none/of/these"), pl_is_network_fs("."));
    assert_int_equal(pl_is_network_fs("/none/of/these"), pl_is_network_fs("/"));
    memset(long_path, 'x', sizeof long_path);
    long_path[sizeof long_path - 1] = '\0';
    assert_true(pl_disk_free(long_path) >= 0);
    assert_true(pl_is_network_fs("/proc/self")); /* a type that is not among the local ones */
}

/* ---- errors of SQLite ---- */

static char dir[64], path[100];

static int make(void **unused)
{
    (void)unused;
    strcpy(dir, "/tmp/molsieve-parts-XXXXXX");
    if (mkdtemp(dir) == NULL)
        return 1;
    (void)snprintf(path, sizeof path, "%s/some.db", dir);
    return 0;
}

static int drop(void **unused)
{
    (void)unused;
    return pl_folder_remove(dir, NULL) != PL_OK;
}

static sqlite3 *open_db(int flags)
{
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open_v2(path, &db, flags, NULL), SQLITE_OK);
    (void)sqlite3_extended_result_codes(db, 1);
    return db;
}

static void fails(sqlite3 *db, const char *sql, pl_code want, const char *text)
{
    pl_error err = { 0 };
    pl_code code = pl_db_exec(db, sql, &err);

    if (code != want || strstr(err.text, text) == NULL || strstr(err.text, "some.db") == NULL)
        fail_msg("%s: %d, \"%s\"", sql, (int)code, err.text);
}

static int stop_at_once(void *unused)
{
    (void)unused;
    return 1;
}

enum { WRITE = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE };

static void each_error_of_sqlite_says_what_to_do(void **unused)
{
    sqlite3 *db = open_db(WRITE), *other = open_db(WRITE);

    (void)unused;
    assert_int_equal(pl_db_exec(db, "CREATE TABLE t(a UNIQUE)", NULL), PL_OK);
    fails(db, "INSERT INTO t VALUES(1),(1)", PL_EBUG, "UNIQUE");
    fails(db, "SELEC", PL_EBUG, "syntax error");
    assert_int_equal(pl_db_exec(other, "BEGIN IMMEDIATE", NULL), PL_OK);
    fails(db, "INSERT INTO t VALUES(2)", PL_EIO, "locked by another program (database is locked); close it and run again");
    assert_int_equal(pl_db_exec(other, "ROLLBACK", NULL), PL_OK);
    sqlite3_progress_handler(db, 1, stop_at_once, NULL);
    fails(db, "SELECT count(*) FROM t", PL_ESTOP, "some.db: interrupted");
    sqlite3_progress_handler(db, 0, NULL, NULL);
    assert_int_equal(pl_db_exec(db, "PRAGMA max_page_count=4", NULL), PL_OK);
    fails(db, "INSERT INTO t SELECT randomblob(90000)", PL_EIO, "disk full (");
    fails(db, "INSERT INTO t SELECT randomblob(90000)", PL_EIO, " free); free some space and run again, nothing is lost");
    (void)sqlite3_close(db);
    db = open_db(SQLITE_OPEN_READONLY);
    fails(db, "INSERT INTO t VALUES(3)", PL_EIO, "check that file and directory exist and can be written");
    (void)sqlite3_close(db);
    (void)sqlite3_close(other);
}

static int read_fails_with;

static int read_fails(sqlite3_file *file, void *to, int n, sqlite3_int64 at)
{
    (void)file, (void)to, (void)n, (void)at;
    errno = 0;
    return read_fails_with;
}

/* The system gave no number for the first error, and the checksums of pages no reason for the second. */
static void errors_of_reading_without_a_reason_are_told(void **unused)
{
    static const struct {
        int with;
        pl_code code;
        const char *text;
    } cases[] = { { SQLITE_IOERR_READ, PL_EIO, "some.db: disk I/O error (266): no further details; check the disk and run again" },
                  { SQLITE_IOERR_DATA, PL_EDATA, "some.db: a page is damaged; put back a copy, or run with --fresh" } };
    sqlite3 *db = open_db(WRITE);

    (void)unused;
    assert_int_equal(pl_db_exec(db, "CREATE TABLE t(a UNIQUE)", NULL), PL_OK);
    (void)sqlite3_close(db);
    for (int i = 0; i < 2; i++) {
        sqlite3_file *file = NULL;
        sqlite3_io_methods methods;
        db = open_db(WRITE);
        assert_int_equal(sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file), SQLITE_OK);
        const sqlite3_io_methods *own = file->pMethods;
        methods = *own;
        methods.xRead = read_fails;
        file->pMethods = &methods;
        read_fails_with = cases[i].with;
        fails(db, "SELECT * FROM t", cases[i].code, cases[i].text);
        file->pMethods = own;
        (void)sqlite3_close(db);
    }
}

/* The file descriptor of the database in this process. */
static int fd_of_db(void)
{
    char link[64], to[200];

    for (int fd = 3; fd < 64; fd++) {
        (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        const ssize_t n = readlink(link, to, sizeof to - 1);
        to[n > 0 ? n : 0] = '\0';
        if (n > 0 && strstr(to, "some.db") != NULL)
            return fd;
    }
    return -1;
}

static int refuse(void *unused)
{
    (void)unused;
    return 1;
}

static void each_error_of_the_system_says_what_to_do(void **unused)
{
    sqlite3 *db = open_db(WRITE);
    struct rlimit was, small;

    (void)unused;
    assert_int_equal(pl_db_exec(db, "CREATE TABLE t(a)", NULL), PL_OK);
    (void)sqlite3_commit_hook(db, refuse, NULL);
    fails(db, "INSERT INTO t VALUES(1)", PL_ELOCK,
          ": its lock file was deleted or replaced during this run, so another run may have started; this run stores nothing more. "
          "Lock files need not be deleted: a run that ends releases its locks");
    (void)sqlite3_commit_hook(db, NULL, NULL);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    small = (struct rlimit){ 32768, was.rlim_max };
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    fails(db, "INSERT INTO t SELECT randomblob(90000)", PL_EIO,
          ": cannot grow: the limit of file sizes (ulimit -f) is reached or the disk is full (");
    fails(db, "INSERT INTO t SELECT randomblob(90000)", PL_EIO,
          " free); raise the limit or free some space and run again, nothing is lost");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
    (void)close(fd_of_db());
    fails(db, "SELECT * FROM t", PL_EIO, "Bad file descriptor; check the disk and run again");
    (void)sqlite3_close(db);
}

static void files_of_others_and_of_later_versions_are_refused(void **unused)
{
    const pl_identity is = { .application_id = 7, .version = 4 };
    pl_error err = { 0 };
    pl_store none = { 0 };
    int64_t n = 1;

    (void)unused;
    assert_int_equal(pl_open_ours(&is, "a.db", 7, 4, NULL), PL_OK);
    assert_int_equal(pl_open_ours(&is, "a.db", 8, 4, &err), PL_EDATA);
    assert_string_equal(err.text, "a.db: a database of another program, not of molsieve; name another file, or move it away");
    assert_int_equal(pl_open_ours(&is, "a.db", 7, 3, &err), PL_EDATA);
    assert_string_equal(err.text,
                        "a.db: written by a newer molsieve (format 4, this one knows 3); use that version, or another workdir");
    assert_int_equal(pl_block_count(&none, "graph", "k", &n, &err), PL_EBUG);
    assert_string_equal(err.text, "features.db is used before it is open");
    assert_int_equal(n, 0);
    assert_int_equal(pl_cache_put(&none, (const unsigned char[32]){ 0 }, (pl_bytes){ 0 }, &err), PL_EBUG);
    assert_string_equal(err.text, "features.db is used before it is open");
}

static int interrupt(void *db)
{
    sqlite3_interrupt(db);
    return 0;
}

static void an_interrupted_query_is_a_stop(void **unused)
{
    sqlite3 *db = open_db(WRITE);

    (void)unused;
    sqlite3_progress_handler(db, 1000, interrupt, db);
    fails(db, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n LIMIT 10000000) SELECT count(*) FROM n", PL_ESTOP,
          "interrupted");
    (void)sqlite3_close(db);
}

/* One that waits for another program is told that it is to stop. */
static void a_stop_while_another_program_writes_is_a_stop(void **unused)
{
    sqlite3 *db = open_db(WRITE), *other = open_db(WRITE);
    pl_stop stop;

    (void)unused;
    pl_stop_begin(&stop, 0, 0);
    assert_int_equal(pl_db_exec(other, "BEGIN IMMEDIATE", NULL), PL_OK);
    assert_int_equal(raise(SIGTERM), 0);
    pl_db_patient(db);
    fails(db, "BEGIN IMMEDIATE", PL_ESTOP, "stopped by signal TERM while another program used ");
    pl_stop_end(&stop);
    (void)sqlite3_close(other);
    (void)sqlite3_close(db);
}

static void put_text(const char *text)
{
    FILE *f = fopen(path, "r+");

    if (f == NULL)
        f = fopen(path, "w");
    assert_non_null(f);
    for (int i = 0; i < 500; i++)
        assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void files_that_are_no_database_or_damaged_are_told_apart(void **unused)
{
    sqlite3 *db;
    FILE *f;

    (void)unused;
    put_text("this is not a database\n");
    db = open_db(WRITE);
    fails(db, "SELECT * FROM sqlite_master", PL_EDATA, "not a database; move it away, or choose another workdir");
    (void)sqlite3_close(db);
    (void)unlink(path);
    db = open_db(WRITE);
    assert_int_equal(pl_db_exec(db, "CREATE TABLE t(a); INSERT INTO t SELECT randomblob(9000)", NULL), PL_OK);
    (void)sqlite3_close(db);
    f = fopen(path, "r+");
    assert_true(f != NULL && fseek(f, 4096, SEEK_SET) == 0);
    for (int i = 0; i < 4096; i++)
        assert_int_equal(fputc(0x5a, f), 0x5a);
    assert_int_equal(fclose(f), 0);
    db = open_db(WRITE);
    fails(db, "SELECT count(a) FROM t", PL_EDATA,
          ": damaged (database disk image is malformed); put back a copy, or run with --fresh");
    (void)sqlite3_close(db);
}

/* ---- what the functions of db.h promise ---- */

static void a_statement_is_ready_again_after_its_end(void **unused)
{
    sqlite3 *db = open_db(WRITE);
    sqlite3_stmt *st = NULL;
    int64_t n = 7;
    bool row;

    (void)unused;
    assert_int_equal(pl_db_exec(db, "CREATE TABLE t(a UNIQUE)", NULL), PL_OK);
    assert_int_equal(pl_db_int(db, &n, NULL, "SELECT a FROM t WHERE a=%lld", 1LL), PL_OK);
    assert_int_equal(n, 0); /* no row */
    assert_int_equal(pl_db_prepare(db, &st, "INSERT INTO t VALUES(?1)", NULL), PL_OK);
    (void)sqlite3_bind_int(st, 1, 5);
    assert_int_equal(pl_db_run(st, NULL), PL_OK);
    assert_int_equal(pl_db_run(st, NULL), PL_OK); /* its bindings are gone: NULL */
    (void)sqlite3_bind_int(st, 1, 5);
    assert_int_equal(pl_db_step(st, &row, NULL), PL_EBUG); /* twice the same */
    assert_false(row);
    (void)sqlite3_bind_int(st, 1, 6);
    assert_int_equal(pl_db_run(st, NULL), PL_OK); /* a failed one is ready again, too */
    (void)sqlite3_finalize(st);
    assert_int_equal(pl_db_int(db, &n, NULL, "SELECT sum(coalesce(a,100)) FROM t"), PL_OK);
    assert_int_equal(n, 5 + 100 + 6);
    assert_int_equal(pl_db_prepare(db, &st, "SELECT * FROM nowhere", NULL), PL_EBUG);
    assert_null(st);
    (void)sqlite3_close(db);
}

static void a_statement_steps_while_nothing_has_failed(void **unused)
{
    sqlite3 *db = open_db(WRITE);
    sqlite3_stmt *st = NULL;
    pl_error err = { 0 };
    pl_code code = PL_EDATA;

    (void)unused;
    assert_false(pl_db_next(NULL, &code, &err));
    assert_int_equal(code, PL_EDATA);
    assert_string_equal(err.text, "");
    assert_int_equal(code = pl_db_prepare(db, &st, "SELECT 3 UNION SELECT abs(-9223372036854775807-1) ORDER BY 1 LIMIT 1", &err),
                     PL_OK);
    assert_false(pl_db_next(st, &code, &err)); /* a row that cannot be computed */
    assert_int_equal(code, PL_EBUG);
    assert_non_null(strstr(err.text, "integer overflow"));
    (void)sqlite3_finalize(st);
    assert_int_equal(code = pl_db_prepare(db, &st, "SELECT 3 UNION SELECT 4 ORDER BY 1", &err), PL_OK);
    assert_true(pl_db_next(st, &code, &err));
    code = PL_EDATA;
    assert_false(pl_db_next(st, &code, &err)); /* it stays at its row */
    assert_int_equal(sqlite3_column_int(st, 0), 3);
    code = PL_OK;
    assert_true(pl_db_next(st, &code, &err));
    assert_int_equal(sqlite3_column_int(st, 0), 4);
    assert_false(pl_db_next(st, &code, &err));
    assert_int_equal(code, PL_OK);
    (void)sqlite3_finalize(st);
    (void)sqlite3_close(db);
}

static void a_commit_that_fails_leaves_no_transaction(void **unused)
{
    sqlite3 *db = open_db(WRITE);
    pl_error err = { 0 };

    (void)unused;
    assert_int_equal(pl_db_exec(db,
                                "PRAGMA foreign_keys=ON; CREATE TABLE a(x PRIMARY KEY);"
                                "CREATE TABLE b(x REFERENCES a(x) DEFERRABLE INITIALLY DEFERRED)",
                                NULL),
                     PL_OK);
    assert_int_equal(pl_db_begin(db, NULL), PL_OK);
    assert_int_equal(pl_db_exec(db, "INSERT INTO b VALUES(1)", NULL), PL_OK);
    assert_int_equal(pl_db_commit(db, &err), PL_EBUG);
    assert_non_null(strstr(err.text, "FOREIGN KEY"));
    assert_int_not_equal(sqlite3_get_autocommit(db), 0);
    pl_db_rollback(db); /* nothing to do */
    pl_db_rollback(NULL);
    assert_int_equal(pl_db_begin(db, NULL), PL_OK);
    pl_db_rollback(db);
    assert_int_not_equal(sqlite3_get_autocommit(db), 0);
    (void)sqlite3_close(db);
}

/* A file in the 256th folder within another counts; one more, and it is not looked for. */
static void folders_that_are_nested_too_deep_do_not_count(void **unused)
{
    int depth = 0, fd = open(dir, O_RDONLY | O_DIRECTORY);

    (void)unused;
    for (const int deep[] = { 255, 256 }, *to = deep; to < deep + 2; to++) {
        for (int in; depth < *to; depth++, fd = in) {
            assert_int_equal(mkdirat(fd, "d", 0700), 0);
            in = openat(fd, "d", O_RDONLY | O_DIRECTORY);
            assert_true(in >= 0);
            (void)close(fd);
        }
        const int file = openat(fd, "f", O_WRONLY | O_CREAT, 0600);
        assert_int_equal(posix_fallocate(file, 0, 4), 0);
        (void)close(file);
        assert_int_equal(pl_folder_bytes(dir) > 0, *to == 255);
        assert_true(*to == 255 || pl_folder_remove(dir, NULL) == PL_EIO);
        assert_int_equal(unlinkat(fd, "f", 0), 0);
    }
    (void)close(fd);
}

#define OF_DB(f) cmocka_unit_test_setup_teardown(f, make, drop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_run_has_a_name_of_its_own),
        cmocka_unit_test(the_scheduler_is_the_one_whose_job_this_is),
        cmocka_unit_test(spellings_are_those_of_the_whole_word),
        cmocka_unit_test(names_are_kept_sorted_and_once),
        cmocka_unit_test(free_space_is_that_of_the_nearest_folder),
        OF_DB(each_error_of_sqlite_says_what_to_do),
        OF_DB(errors_of_reading_without_a_reason_are_told),
        OF_DB(each_error_of_the_system_says_what_to_do),
        cmocka_unit_test(files_of_others_and_of_later_versions_are_refused),
        OF_DB(an_interrupted_query_is_a_stop),
        OF_DB(a_stop_while_another_program_writes_is_a_stop),
        OF_DB(files_that_are_no_database_or_damaged_are_told_apart),
        OF_DB(a_statement_is_ready_again_after_its_end),
        OF_DB(a_statement_steps_while_nothing_has_failed),
        OF_DB(a_commit_that_fails_leaves_no_transaction),
        OF_DB(folders_that_are_nested_too_deep_do_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
