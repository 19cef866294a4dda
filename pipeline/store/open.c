/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/store/open.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "pipeline/base/text.h"
#include "pipeline/lock/lock.h"
#include "pipeline/store/judge.h"
#include "pipeline/store/pages.h"

enum { JOURNAL_AUTO = 0, JOURNAL_WAL = 1 };

pl_code pl_open_identity(sqlite3 *db, pl_identity *out, pl_error *err)
{
    pl_code code = pl_db_int(db, &out->application_id, err, "PRAGMA application_id");

    if (code == PL_OK)
        code = pl_db_int(db, &out->version, err, "PRAGMA user_version");
    if (code == PL_OK)
        code = pl_db_int(db, &out->n_tables, err, "SELECT count(*) FROM sqlite_master");
    return code;
}

pl_code pl_open_ours(const pl_identity *is, const char *path, int want_id, int newest, pl_error *err)
{
    if (is->application_id != want_id)
        return pl_fail(err, PL_EDATA, "%s: a database of another program, not of molsieve; name another file, or move it away",
                       path);
    if (is->version > newest)
        return pl_fail(err, PL_EDATA,
                       "%s: written by a newer molsieve (format %lld, this one knows %d); use that version, or another "
                       "workdir",
                       path, (long long)is->version, newest);
    return PL_OK;
}

/* A database may come from somebody else: its views cannot call functions with side effects, and its triggers do not run. */
static void distrust(sqlite3 *db)
{
    static const struct {
        int what, value;
    } set[] = {
#ifdef SQLITE_DBCONFIG_ENABLE_TRIGGER
        { SQLITE_DBCONFIG_ENABLE_TRIGGER, 0 },
#endif
#ifdef SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER
        { SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0 },
#endif
#ifdef SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION
        { SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0 },
#endif
#ifdef SQLITE_DBCONFIG_DEFENSIVE
        { SQLITE_DBCONFIG_DEFENSIVE, 1 },
#endif
#ifdef SQLITE_DBCONFIG_TRUSTED_SCHEMA
        { SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0 },
#endif
    };

    for (size_t i = 0; i < sizeof set / sizeof *set; i++)
        (void)sqlite3_db_config(db, set[i].what, set[i].value, NULL);
}

pl_code pl_open_file(sqlite3 **db, const char *path, int flags, int wait_ms, pl_error *err)
{
    pl_code code = pl_pages_start(pl_judge, err);

    if (code != PL_OK)
        return code;
    if (sqlite3_open_v2(path, db, flags, PL_PAGES_VFS) != SQLITE_OK) {
        code = *db ? pl_db_fail_at(*db, path, err) : pl_fail(err, PL_ENOMEM, "%s", path);
        (void)sqlite3_close(*db);
        *db = NULL;
        return code;
    }
    distrust(*db);
    (void)sqlite3_extended_result_codes(*db, 1);
    (void)sqlite3_busy_timeout(*db, wait_ms);
    return code;
}

/* Rows are looked up often and need a cache; blocks are written once and read once and need hardly any. After a
 * power cut no row may refer to a block that is lost. So features.db syncs at each commit, and results.db only when
 * SQLite copies its WAL; the last units that results.db loses are computed again. */
const pl_kind pl_results_kind = { 4096, 32768, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;" },
              pl_features_kind = { 16384, 2048, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;" };

/* Call it only when the file is known to be ours: a file of another program is never changed. */
pl_code pl_open_writer(sqlite3 *db, bool fresh, const pl_kind *kind, bool network, int journal, pl_error *err)
{
    static const char local[] = "PRAGMA journal_mode=TRUNCATE; PRAGMA synchronous=FULL;";
    static const char remote[] = "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=TRUNCATE; PRAGMA synchronous=FULL;";
    bool use_wal = journal == JOURNAL_WAL || (journal == JOURNAL_AUTO && !network);
    const char *rollback = network ? remote : local;
    char size[96];
    pl_code code = PL_OK;

    (void)snprintf(size, sizeof size, "PRAGMA page_size=%d", kind->page_size);
    if (fresh)
        code = pl_db_exec(db, size, err);
    (void)snprintf(size, sizeof size, "PRAGMA cache_size=-%d", kind->cache_kib);
    if (code == PL_OK)
        code = pl_db_exec(db, size, err);
    if (code == PL_OK)
        code = pl_db_exec(db, use_wal ? kind->wal : rollback, err);
    if (code == PL_OK)
        code = pl_db_exec(db,
                          "PRAGMA wal_autocheckpoint=2000;"
                          "PRAGMA foreign_keys=ON; PRAGMA analysis_limit=1000;",
                          err);
    return code;
}

pl_code pl_open_version(sqlite3 *db, int application_id, int version, pl_error *err)
{
    char sql[96];

    (void)snprintf(sql, sizeof sql, "PRAGMA application_id=%d; PRAGMA user_version=%d;", application_id, version);
    return pl_db_exec(db, sql, err);
}

/* Whether the open failed only because no -shm file could be created, and the WAL is empty or missing. */
static bool is_at_rest(sqlite3 *db, const char *path)
{
    int why = sqlite3_errcode(db) & 0xff;
    char wal[PATH_MAX];
    struct stat at;

    if (why != SQLITE_CANTOPEN && why != SQLITE_READONLY)
        return false;
    if (snprintf(wal, sizeof wal, "%s-wal", path) >= (int)sizeof wal)
        return false;
    return stat(wal, &at) != 0 || at.st_size == 0;
}

/* For a WAL database in a directory that cannot be written: its -shm file cannot be
 * created, so it is opened with immutable=1, as a file that does not change. */
static pl_code open_immutable(sqlite3 **db, const char *path, pl_identity *is, pl_error *err)
{
    pl_text uri = { 0 };
    pl_code code;

    (void)sqlite3_close(*db);
    *db = NULL;
    pl_text_add(&uri, "file:");
    for (const char *c = path; *c != '\0'; c++)
        pl_text_addf(&uri, strchr("%?#", *c) != NULL ? "%%%02X" : "%c", (unsigned char)*c); /* these have a meaning in a URI */
    pl_text_add(&uri, "?immutable=1");
    if (!pl_text_ok(&uri))
        code = pl_fail(err, PL_ENOMEM, "a path");
    else
        code = pl_open_file(db, uri.s, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, 5000, err);
    pl_text_free(&uri);
    return code == PL_OK ? pl_open_identity(*db, is, err) : code;
}

static pl_code open_readonly(sqlite3 **db, const char *path, pl_identity *is, pl_error *err)
{
    pl_code code = pl_open_file(db, path, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, 5000, err);
    return code == PL_OK ? pl_open_identity(*db, is, err) : code;
}

/* If a kill or a power cut left half of a transaction in the file, SQLite rolls it back
 * from the journal on the first read; for that the file is opened for writing once. */
static pl_code undo_half(sqlite3 **db, const char *path, pl_identity *is, pl_error *err)
{
    pl_code code;

    (void)sqlite3_close(*db);
    code = pl_open_file(db, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, 5000, err);
    if (code == PL_OK)
        code = pl_open_identity(*db, is, err);
    (void)sqlite3_close(*db);
    *db = NULL;
    return code == PL_OK ? open_readonly(db, path, is, err) : code;
}

static pl_code open_reader(sqlite3 **db, const char *path, pl_identity *is, pl_error *err)
{
    pl_code code = open_readonly(db, path, is, err);

    if (code != PL_OK && *db != NULL && sqlite3_extended_errcode(*db) == SQLITE_READONLY_ROLLBACK)
        return undo_half(db, path, is, err);
    return code == PL_EIO && *db != NULL && is_at_rest(*db, path) ? open_immutable(db, path, is, err) : code;
}

/* The log of a run that is at work was judged when the run opened the database. */
pl_code pl_open_reader(sqlite3 **db, const char *path, pl_identity *is, pl_error *err)
{
    const bool judged = !pl_judge_has_log(path) || pl_lock_lives(path);
    pl_code code = open_reader(db, path, is, err);

    if (judged || *db == NULL || (code == PL_OK && is->application_id != PL_RESULTS_ID))
        return code;
    return pl_judge_log(*db, path, code, err);
}
