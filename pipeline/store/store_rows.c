/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "pipeline/base/clock.h"
#include "pipeline/base/stop.h"
#include "pipeline/store/store_parts.h"
#include "pipeline/workflow/workflow.h"

/* A message may quote bytes of an input file, and may be cut in the middle of a character. */
static void bind_message(sqlite3_stmt *st, int i, const char *message, pl_text *clean)
{
    pl_text_add_clean(clean, message != NULL ? message : "", message != NULL ? strlen(message) : 0, SIZE_MAX);
    (void)sqlite3_bind_text(st, i, pl_text_str(clean), -1, SQLITE_STATIC);
}

pl_code pl_failure_add(pl_env *env, const pl_failure *f, pl_error *err)
{
    static const char sql[] = "INSERT INTO failure(run_id,stage,record_id,mol_id,code,message,signal,cpu_s,attempt,at_utc)"
                              " VALUES(?,?,?,?,?,?,?,?,?,?)";
    sqlite3_stmt *st;
    pl_text clean = { 0 };
    char now[32];
    pl_code code = pl_db_prepare(env->store->db, &st, sql, err);

    if (code != PL_OK)
        return code;
    (void)sqlite3_bind_int64(st, 1, env->run_id);
    (void)sqlite3_bind_text(st, 2, env->step->stage->name, -1, SQLITE_STATIC);
    if (f->record_id != 0)
        (void)sqlite3_bind_int64(st, 3, f->record_id);
    if (f->mol_id != 0)
        (void)sqlite3_bind_int64(st, 4, f->mol_id);
    (void)sqlite3_bind_text(st, 5, f->code, -1, SQLITE_STATIC);
    bind_message(st, 6, f->message, &clean);
    if (f->signal != 0)
        (void)sqlite3_bind_int(st, 7, f->signal);
    (void)sqlite3_bind_double(st, 8, f->cpu_s);
    (void)sqlite3_bind_int(st, 9, f->attempt > 0 ? f->attempt : 1);
    (void)sqlite3_bind_text(st, 10, pl_utc_now(now), -1, SQLITE_STATIC);
    code = pl_db_run(st, err);
    (void)sqlite3_finalize(st);
    pl_text_free(&clean);
    return code;
}

void pl_event_row(pl_store *s, int64_t run_id, const char *level, const char *stage, const char *message)
{
    sqlite3_stmt *st;
    pl_text clean = { 0 };
    char now[32];

    if (pl_db_prepare(s->db, &st, "INSERT INTO event(run_id,at_utc,level,stage,message) VALUES(?,?,?,?,?)", NULL) != PL_OK)
        return;
    (void)sqlite3_bind_int64(st, 1, run_id);
    (void)sqlite3_bind_text(st, 2, pl_utc_now(now), -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(st, 3, level, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(st, 4, stage, -1, SQLITE_STATIC);
    bind_message(st, 5, message, &clean);
    (void)sqlite3_step(st);
    (void)sqlite3_finalize(st);
    pl_text_free(&clean);
}

void pl_event_add(pl_env *env, pl_level level, const char *fmt, ...)
{
    static const char *const words[] = { "error", "warn", "info", "debug" };
    char message[512];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    pl_log(level, "%s: %s", env->step->stage->name, message);
    pl_event_row(env->store, env->run_id, words[level], env->step->stage->name, message);
}

void pl_further_add(pl_env *env, const char *fmt, ...)
{
    char message[512];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    pl_event_row(env->store, env->run_id, PL_FURTHER, env->step->stage->name, message);
    pl_stop_stuck(false);
}

pl_code pl_metric_add(pl_env *env, int64_t step, double epoch, const char *split, const char *name, double value, pl_error *err)
{
    static const char sql[] = "INSERT OR REPLACE INTO metric(stage,step,epoch,split,name,value,run_id,at_utc)"
                              " VALUES(?,?,?,?,?,?,?,?)";
    sqlite3_stmt *st;
    char now[32];
    pl_code code;

    if (value != value) /* SQLite stores NaN as NULL, which `value` may not be */
        return pl_fail(err, PL_EBUG, "metric %s of %s is not a number", name, split);
    code = pl_db_prepare(env->store->db, &st, sql, err);
    if (code != PL_OK)
        return code;
    (void)sqlite3_bind_text(st, 1, env->step->stage->name, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(st, 2, step);
    (void)sqlite3_bind_double(st, 3, epoch);
    (void)sqlite3_bind_text(st, 4, split, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(st, 5, name, -1, SQLITE_STATIC);
    (void)sqlite3_bind_double(st, 6, value);
    (void)sqlite3_bind_int64(st, 7, env->run_id);
    (void)sqlite3_bind_text(st, 8, pl_utc_now(now), -1, SQLITE_STATIC);
    code = pl_db_run(st, err);
    (void)sqlite3_finalize(st);
    return code;
}

/* ---- a cache of the hashes of files ---- */

enum { SETTLED_S = 3 }; /* seconds; times of files are exact to two seconds or better on every file system */

/* ctime in nanoseconds. Programs cannot set it; rsync, tar and touch set mtime. */
static int64_t change_ns(const struct stat *at) { return (int64_t)at->st_ctim.tv_sec * 1000000000 + at->st_ctim.tv_nsec; }

/* Whether the last change is old enough: a file that was just written may change again with the same ctime. */
static bool is_settled(const struct stat *at) { return time(NULL) - at->st_ctim.tv_sec >= SETTLED_S; }

static bool remembered_hash(pl_store *s, const char *path, const struct stat *at, char out[65])
{
    static const char sql[] = "SELECT sha256 FROM file_hash WHERE path=? AND size_bytes=? AND mtime_ns=? AND inode=?";
    sqlite3_stmt *st;
    bool row = false;

    if (pl_db_prepare(s->db, &st, sql, NULL) != PL_OK)
        return false;
    (void)sqlite3_bind_text(st, 1, path, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(st, 2, at->st_size);
    (void)sqlite3_bind_int64(st, 3, change_ns(at));
    (void)sqlite3_bind_int64(st, 4, (int64_t)at->st_ino);
    if (pl_db_step(st, &row, NULL) == PL_OK && row)
        (void)snprintf(out, 65, "%s", (const char *)sqlite3_column_text(st, 0));
    (void)sqlite3_finalize(st);
    return row;
}

static void remember_hash(pl_store *s, const char *path, const struct stat *at, const char *sha256)
{
    static const char sql[] = "INSERT OR REPLACE INTO file_hash(path,size_bytes,mtime_ns,inode,sha256) VALUES(?,?,?,?,?)";
    sqlite3_stmt *st;

    if (sqlite3_db_readonly(s->db, "main") != 0 || pl_db_prepare(s->db, &st, sql, NULL) != PL_OK)
        return;
    (void)sqlite3_bind_text(st, 1, path, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(st, 2, at->st_size);
    (void)sqlite3_bind_int64(st, 3, change_ns(at));
    (void)sqlite3_bind_int64(st, 4, (int64_t)at->st_ino);
    (void)sqlite3_bind_text(st, 5, sha256, -1, SQLITE_STATIC);
    (void)sqlite3_step(st); /* if that fails, the file is hashed again next time */
    (void)sqlite3_finalize(st);
}

/* Whether the file is the same and unchanged between two calls of stat. */
static bool is_same_state(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size && change_ns(a) == change_ns(b);
}

void pl_file_forget(pl_store *s, const char *path)
{
    char full[PATH_MAX];

    if (realpath(path, full) != NULL)
        (void)pl_db_execf(s->db, NULL, "DELETE FROM file_hash WHERE path=%Q", full);
}

pl_code pl_file_hash(pl_store *s, const char *path, char out[65], pl_error *err)
{
    char full[PATH_MAX];
    struct stat at, after;
    pl_code code;

    if (realpath(path, full) == NULL || stat(full, &at) != 0)
        return pl_fail_errno(err, path);
    if (s != NULL && remembered_hash(s, full, &at, out))
        return PL_OK;
    code = pl_sha256_file(full, out, err);
    if (code == PL_OK && s != NULL && is_settled(&at) && stat(full, &after) == 0 && is_same_state(&at, &after))
        remember_hash(s, full, &at, out);
    return code;
}
