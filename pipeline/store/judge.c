/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/store/judge.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "pipeline/store/db.h"
#include "pipeline/store/sums.h"

enum { WAIT_MS = 5000 };

/* Opens without our VFS. If SQLite cannot create the -shm file of a WAL, the database is read without what is only in the WAL. */
static pl_code open_plain(sqlite3 **db, const char *path, int64_t *id, pl_error *err)
{
    pl_text uri = { 0 };
    pl_code code = PL_OK;

    for (int immutable = 0; immutable < 2; immutable++) {
        pl_text_reset(&uri);
        pl_text_add(&uri, "file:");
        for (const char *c = path; *c != '\0'; c++)
            pl_text_addf(&uri, strchr("%?#", *c) != NULL ? "%%%02X" : "%c", (unsigned char)*c);
        pl_text_add(&uri, immutable ? "?immutable=1" : "");
        (void)sqlite3_close(*db);
        code =
            sqlite3_open_v2(pl_text_str(&uri), db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, NULL) == SQLITE_OK
                ? PL_OK
                : pl_db_fail_at(*db, path, err);
        (void)sqlite3_busy_timeout(*db, WAIT_MS);
        if (code == PL_OK)
            code = pl_db_int(*db, id, err, "PRAGMA application_id");
        if (code != PL_EIO)
            break;
    }
    pl_text_free(&uri);
    return code;
}

static pl_code check_structure(sqlite3 *db, pl_error *err)
{
    sqlite3_stmt *st;
    pl_code code = pl_db_prepare(db, &st, "PRAGMA integrity_check(1)", err);

    if (pl_db_next(st, &code, err) && strcmp((const char *)sqlite3_column_text(st, 0), "ok") != 0)
        code = pl_fail(err, PL_EDATA, "%s", (const char *)sqlite3_column_text(st, 0));
    (void)sqlite3_finalize(st);
    return code;
}

static pl_code check_rows(sqlite3 *db, pl_error *err)
{
    pl_text report = { 0 };
    int64_t there = 0;
    int n;
    pl_code code = pl_db_int(db, &there, err, "SELECT count(*) FROM sqlite_master WHERE name='row_sum'");

    if (code == PL_OK)
        code = there > 0 ? pl_sums_check(db, &n, &report, err) : pl_fail(err, PL_EDATA, "table row_sum is gone");
    if (code == PL_EDATA && report.len > 0)
        (void)pl_fail(err, PL_EDATA, "%.*s", (int)strcspn(pl_text_str(&report), "\n"), pl_text_str(&report));
    pl_text_free(&report);
    return code;
}

/* ---- a log that may be that of another database: one of the two files was replaced ---- */

static bool has_content(const char *path, const char *tail)
{
    char name[PATH_MAX];
    struct stat at;

    return snprintf(name, sizeof name, "%s%s", path, tail) < (int)sizeof name && stat(name, &at) == 0 && at.st_size > 0;
}

bool pl_judge_has_log(const char *path) { return has_content(path, "-wal") || has_content(path, "-journal"); }

static pl_code check_log(sqlite3 *db, pl_error *err)
{
    int64_t there = 0;
    pl_code code = pl_db_exec(db, "BEGIN", err);

    if (code == PL_OK)
        code = pl_db_int(db, &there, err, "SELECT count(*) FROM sqlite_master WHERE name='row_sum'");
    if (code == PL_OK && there > 0)
        code = check_rows(db, err);
    pl_db_rollback(db);
    return code;
}

void pl_judge_keep(sqlite3 *db) { (void)sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL); }

pl_code pl_judge_log(sqlite3 *db, const char *path, pl_code code, pl_error *err)
{
    pl_error why = { 0 };

    if (code == PL_EDATA && err != NULL)
        why = *err;
    if (code == PL_OK)
        code = check_log(db, &why);
    else if (code != PL_EDATA)
        return code;
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, code != PL_OK, NULL);
    if (code == PL_OK)
        return PL_OK;
    if (code != PL_EDATA)
        return pl_fail(err, code, "%s", why.text);
    return pl_fail(err, PL_EDATA,
                   "%s and %s-wal do not belong together, or one of them is damaged (%.200s); if %s is a copy that was put here, "
                   "move %s-wal away; otherwise put back a copy (molsieve db backup makes them), or run with --fresh",
                   path, path, why.text, path, path);
}

/* ---- a page that another program wrote, or that is damaged ---- */

static pl_code judge(const char *path, pl_error *err)
{
    sqlite3 *db = NULL;
    int64_t id = 0;
    pl_code code = open_plain(&db, path, &id, err);

    if (id == PL_RESULTS_ID) { /* it was opened, then */
        code = pl_db_exec(db, "BEGIN", err);
        if (code == PL_OK)
            code = check_structure(db, err);
        if (code == PL_OK)
            code = check_rows(db, err);
    }
    (void)sqlite3_close(db);
    return code;
}

bool pl_judge(const char *path, char why[PL_PAGES_WHY])
{
    pl_error err = { 0 };
    pl_code code = judge(path, &err);

    if (code == PL_OK)
        return true;
    (void)snprintf(why, PL_PAGES_WHY,
                   "%s: damaged, or changed by another program (%.250s); put back a copy (molsieve db "
                   "backup makes them), or run with --fresh",
                   path, err.text);
    return false;
}
