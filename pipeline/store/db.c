/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "pipeline/base/disk.h"
#include "pipeline/base/log.h"
#include "pipeline/base/stop.h"
#include "pipeline/base/text.h"
#include "pipeline/store/db.h"
#include "pipeline/store/pages.h"

/* ---- waiting for others ---- */

enum { NAP_MS = 50, SAY_AFTER = 5000 / NAP_MS, SAY_AGAIN = 600000 / NAP_MS }; /* naps */

static const char *file_of(sqlite3 *db)
{
    const char *name = db != NULL ? sqlite3_db_filename(db, "main") : NULL;
    return name != NULL && name[0] ? name : "database";
}

/* "sqlite3, pid 1234": the process that holds a lock, from /proc/locks. SQLite locks the file or, in WAL mode, its -shm file. */
static void name_holder(const char *file, char *out, size_t size)
{
    char path[PATH_MAX], line[256], name[64] = "";
    struct stat at, shm = { 0 };
    long pid = 0, found = 0;
    unsigned long long inode;
    FILE *f = fopen("/proc/locks", "re");

    (void)snprintf(path, sizeof path, "%s-shm", file);
    (void)stat(path, &shm);
    while (f != NULL && stat(file, &at) == 0 && found == 0 && fgets(line, sizeof line, f) != NULL)
        if (sscanf(line, "%*d: POSIX %*s %*s %ld %*x:%*x:%llu", &pid, &inode) == 2 && pid != (long)getpid() &&
            (inode == at.st_ino || inode == shm.st_ino))
            found = pid;
    if (f != NULL)
        (void)fclose(f);
    (void)snprintf(path, sizeof path, "/proc/%ld/comm", found);
    f = fopen(path, "re");
    if (f == NULL || fgets(name, sizeof name, f) == NULL)
        (void)snprintf(name, sizeof name, "another program");
    if (f != NULL)
        (void)fclose(f);
    name[strcspn(name, "\n")] = '\0';
    (void)snprintf(out, size, found ? "%s, pid %ld" : "%s", name, found);
}

static int nap(void *ctx, int naps)
{
    static const struct timespec moment = { 0, NAP_MS * 1000000L };
    const char *file = file_of(ctx);
    char holder[96];

    if (*pl_stop_flag() > 0)
        return 0;
    if (naps == SAY_AFTER || (naps > 0 && naps % SAY_AGAIN == 0)) {
        name_holder(file, holder, sizeof holder);
        pl_log(PL_WARN, "%s is in use by %s; this run waits until that program closes it", file, holder);
    }
    (void)nanosleep(&moment, NULL);
    return 1;
}

void pl_db_patient(sqlite3 *db) { (void)sqlite3_busy_handler(db, nap, db); }

/* ---- errors of SQLite ---- */

/* why: the errno, or 0. */
static pl_code fail_full(const char *file, int why, pl_error *err)
{
    char size[32];
    double left = pl_disk_free(file);

    if (why != EDQUOT && !pl_disk_has_inodes(file))
        return pl_fail(err, PL_EIO, "%s: no file can be made (no free inodes); remove some files and run again, nothing is lost",
                       file);
    return pl_fail(err, PL_EIO, "%s: %s (%s free); free some space and run again, nothing is lost", file,
                   why == EDQUOT ? "disk quota reached" : "disk full", pl_size_str(left > 0 ? left : 0, size));
}

/* SQLite tries a file that it cannot make again for reading only, and then ENOENT hides the reason. 0: unknown. */
static int reason(const char *file, int why)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(file, '/');

    if (why != ENOENT)
        return why;
    (void)snprintf(folder, sizeof folder, "%.*s", slash != NULL ? (int)(slash - file) + 1 : 1, slash != NULL ? file : ".");
    if (access(folder, W_OK) != 0)
        return errno;
    return pl_disk_has_inodes(folder) ? 0 : ENOSPC;
}

/* The file itself, or -wal, -shm or -journal beside it. errnum: the errno, or 0. */
static pl_code fail_open(const char *file, const char *said, int errnum, pl_error *err)
{
    const int why = reason(file, errnum);
    const char *advice = why == EMFILE || why == ENFILE ? "raise the limit of open files (ulimit -n)"
                                                        : "check that file and directory exist and can be written";

    if (why == ENOSPC || why == EDQUOT)
        return fail_full(file, why, err);
    if (why != 0)
        return pl_fail(err, PL_EIO, "%s: %s (%s); %s", file, said, strerror(why), advice);
    return pl_fail(err, PL_EIO, "%s: %s; %s", file, said, advice);
}

/* Whether a limit of file sizes was reached. SQLite sometimes loses the errno; then a set limit is taken as the reason. */
static bool met_limit(sqlite3 *db)
{
    struct rlimit size_limit;
    int why = sqlite3_system_errno(db);

    return why == EFBIG || (why == 0 && getrlimit(RLIMIT_FSIZE, &size_limit) == 0 && size_limit.rlim_cur != RLIM_INFINITY);
}

static pl_code fail_size(sqlite3 *db, pl_error *err)
{
    char size[32];
    double left = pl_disk_free(file_of(db));

    return pl_fail(err, PL_EIO,
                   "%s: cannot grow: the limit of file sizes (ulimit -f) is reached or the disk is full (%s free); raise "
                   "the limit or free some space and run again, nothing is lost",
                   file_of(db), pl_size_str(left > 0 ? left : 0, size));
}

/* The commit hook of pl_store_guard refused. If the whole directory was moved, that is the message. */
static pl_code fail_guard(sqlite3 *db, pl_error *err)
{
    int moved = 0;

    if (sqlite3_file_control(db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved)
        return pl_fail(err, PL_EIO,
                       "%s was moved or deleted while this run wrote to it; put it back and run again, or the next run "
                       "starts from the beginning",
                       file_of(db));
    return pl_fail(err, PL_ELOCK,
                   "%s: its lock file was deleted or replaced during this run, so another run may have started; this "
                   "run stores nothing more. Lock files need not be deleted: a run that ends releases its locks",
                   file_of(db));
}

static pl_code fail_page(sqlite3 *db, pl_error *err)
{
    char why[PL_PAGES_WHY];

    pl_pages_why(NULL, why);
    return why[0] ? pl_fail(err, PL_EDATA, "%s", why)
                  : pl_fail(err, PL_EDATA, "%s: a page is damaged; put back a copy, or run with --fresh", file_of(db));
}

pl_code pl_db_fail(sqlite3 *db, pl_error *err) { return pl_db_fail_at(db, file_of(db), err); }

pl_code pl_db_fail_at(sqlite3 *db, const char *file, pl_error *err)
{
    int full = sqlite3_extended_errcode(db), primary = full & 0xff, why = sqlite3_system_errno(db);
    const char *said = sqlite3_errmsg(db);

    /* SQLite reports an exceeded quota or size limit as a plain write error. */
    if (primary == SQLITE_IOERR && (why == ENOSPC || why == EDQUOT))
        return fail_full(file, why, err);
    if (full == SQLITE_IOERR_DATA)
        return fail_page(db, err);
    if (full == SQLITE_IOERR_SHMSIZE || (full == SQLITE_IOERR_WRITE && met_limit(db)))
        return fail_size(db, err);
    if (full == SQLITE_CONSTRAINT_COMMITHOOK)
        return fail_guard(db, err);
    switch (primary) {
    case SQLITE_FULL: return fail_full(file, 0, err);
    case SQLITE_NOMEM: return pl_fail(err, PL_ENOMEM, "%s: out of memory", file);
    case SQLITE_INTERRUPT: return pl_fail(err, PL_ESTOP, "%s: interrupted", file);
    case SQLITE_CORRUPT: return pl_fail(err, PL_EDATA, "%s: damaged (%s); put back a copy, or run with --fresh", file, said);
    case SQLITE_NOTADB: return pl_fail(err, PL_EDATA, "%s: not a database; move it away, or choose another workdir", file);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        if (*pl_stop_flag() > 0)
            return pl_fail(err, PL_ESTOP, "stopped by %s while another program used %s", pl_stop_reason(), file);
        return pl_fail(err, PL_EIO, "%s: locked by another program (%s); close it and run again", file, said);
    case SQLITE_READONLY:
    case SQLITE_PERM: return fail_open(file, said, 0, err);
    case SQLITE_CANTOPEN: return fail_open(file, said, why, err);
    case SQLITE_IOERR:
        return pl_fail(err, PL_EIO, "%s: %s (%d): %s; check the disk and run again", file, said, full,
                       why != 0 ? strerror(why) : "no further details");
    default: return pl_fail(err, PL_EBUG, "%s: %s (%d)", file, said, full);
    }
}

pl_code pl_db_exec(sqlite3 *db, const char *sql, pl_error *err)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? PL_OK : pl_db_fail(db, err);
}

pl_code pl_db_execf(sqlite3 *db, pl_error *err, const char *fmt, ...)
{
    va_list ap;
    char *sql;
    pl_code code;

    va_start(ap, fmt);
    sql = sqlite3_vmprintf(fmt, ap);
    va_end(ap);
    code = sql != NULL ? pl_db_exec(db, sql, err) : pl_fail(err, PL_ENOMEM, "a query");
    sqlite3_free(sql);
    return code;
}

pl_code pl_db_prepare(sqlite3 *db, sqlite3_stmt **out, const char *sql, pl_error *err)
{
    *out = NULL;
    return sqlite3_prepare_v2(db, sql, -1, out, NULL) == SQLITE_OK ? PL_OK : pl_db_fail(db, err);
}

pl_code pl_db_step(sqlite3_stmt *st, bool *row, pl_error *err)
{
    int rc = sqlite3_step(st);
    pl_code code = PL_OK;

    *row = rc == SQLITE_ROW;
    if (*row)
        return PL_OK;
    if (rc != SQLITE_DONE)
        code = pl_db_fail(sqlite3_db_handle(st), err);
    (void)sqlite3_reset(st);
    return code;
}

bool pl_db_next(sqlite3_stmt *st, pl_code *code, pl_error *err)
{
    bool row = false;

    if (*code == PL_OK)
        *code = pl_db_step(st, &row, err);
    return row;
}

pl_code pl_db_run(sqlite3_stmt *st, pl_error *err)
{
    pl_code code = PL_OK;

    while (pl_db_next(st, &code, err))
        continue;
    (void)sqlite3_clear_bindings(st);
    return code;
}

/* The first row of a query; *row = false: there is none. */
static pl_code first_row(sqlite3_stmt **st, bool *row, sqlite3 *db, pl_error *err, const char *fmt, va_list ap)
{
    char *sql = sqlite3_vmprintf(fmt, ap);
    pl_code code = sql != NULL ? pl_db_prepare(db, st, sql, err) : pl_fail(err, PL_ENOMEM, "a query");

    *row = pl_db_next(*st, &code, err);
    sqlite3_free(sql);
    return code;
}

pl_code pl_db_int(sqlite3 *db, int64_t *out, pl_error *err, const char *fmt, ...)
{
    sqlite3_stmt *st = NULL;
    bool row;
    va_list ap;
    pl_code code;

    va_start(ap, fmt);
    code = first_row(&st, &row, db, err, fmt, ap);
    va_end(ap);
    *out = row ? sqlite3_column_int64(st, 0) : 0;
    (void)sqlite3_finalize(st);
    return code;
}

pl_code pl_db_text(sqlite3 *db, char *out, size_t size, pl_error *err, const char *fmt, ...)
{
    sqlite3_stmt *st = NULL;
    bool row;
    va_list ap;
    pl_code code;

    va_start(ap, fmt);
    code = first_row(&st, &row, db, err, fmt, ap);
    va_end(ap);
    row = row && sqlite3_column_type(st, 0) == SQLITE_TEXT;
    (void)snprintf(out, size, "%s", row ? (const char *)sqlite3_column_text(st, 0) : "");
    (void)sqlite3_finalize(st);
    return code;
}

pl_code pl_db_begin(sqlite3 *db, pl_error *err) { return pl_db_exec(db, "BEGIN IMMEDIATE", err); }

pl_code pl_db_commit(sqlite3 *db, pl_error *err)
{
    pl_code code = pl_db_exec(db, "COMMIT", err);

    if (code != PL_OK)
        pl_db_rollback(db);
    return code;
}

void pl_db_rollback(sqlite3 *db)
{
    /* After some errors SQLite has already rolled back. */
    if (db != NULL && !sqlite3_get_autocommit(db))
        (void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
}
