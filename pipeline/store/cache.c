/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <zlib.h>

#include "pipeline/base/log.h"
#include "pipeline/store/store.h"

enum { PUT = 2, GET = 3, KEY = 32 }; /* PUT, GET: positions in pl_store.kept; KEY: bytes of a key */

static int64_t crc_of(const pl_store *s, const void *key, const void *data, size_t n)
{
    int64_t crc = (int64_t)crc32_z(0, data, n);
    return s->features_version < 2 ? crc : crc ^ (int64_t)crc32_z(0, key, KEY);
}

static pl_code get_statement(pl_store *s, int which, const char *sql, sqlite3_stmt **out, pl_error *err)
{
    pl_code code = PL_OK;

    if (s->features == NULL)
        return pl_fail(err, PL_EBUG, "features.db is used before it is open");
    if (s->kept[which] == NULL)
        code = pl_db_prepare(s->features, &s->kept[which], sql, err);
    *out = s->kept[which];
    return code;
}

pl_code pl_cache_put(pl_store *s, const unsigned char key[32], pl_bytes data, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    pl_code code = get_statement(s, PUT, "INSERT OR REPLACE INTO cache(key,crc32,data) VALUES(?,?,?)", &st, err);

    if (code != PL_OK)
        return code;
    (void)sqlite3_bind_blob(st, 1, key, KEY, SQLITE_STATIC);
    (void)sqlite3_bind_int64(st, 2, crc_of(s, key, data.data, data.len));
    (void)sqlite3_bind_blob64(st, 3, data.data, data.len, SQLITE_STATIC);
    return pl_db_run(st, err);
}

static pl_code copy_row(pl_store *s, sqlite3_stmt *st, const unsigned char *key, pl_bytes *data, pl_arena *mem, pl_error *err)
{
    const void *blob = sqlite3_column_blob(st, 1);
    const size_t n = (size_t)sqlite3_column_bytes(st, 1);
    char *copy = PL_NEW(mem, char, n + 1);

    if (copy == NULL)
        return pl_fail(err, PL_ENOMEM, "%zu bytes of the cache", n);
    if (blob == NULL || crc_of(s, key, blob, n) != sqlite3_column_int64(st, 0)) {
        pl_log(PL_WARN, "features.db: a damaged entry of the cache is ignored and computed again");
        return PL_OK;
    }
    memcpy(copy, blob, n);
    *data = (pl_bytes){ copy, n };
    return PL_OK;
}

static pl_code get(pl_store *s, sqlite3_stmt *st, const unsigned char *key, pl_bytes *data, pl_arena *mem, pl_error *err)
{
    bool row = false;
    pl_code code;

    (void)sqlite3_bind_blob(st, 1, key, KEY, SQLITE_STATIC);
    code = pl_db_step(st, &row, err);
    if (row)
        code = copy_row(s, st, key, data, mem, err);
    (void)sqlite3_reset(st);
    (void)sqlite3_clear_bindings(st);
    return code;
}

pl_code pl_cache_get(pl_store *s, const unsigned char key[32], pl_bytes *data, pl_arena *mem, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    pl_code code;

    *data = (pl_bytes){ 0 };
    (void)pthread_mutex_lock(&s->get_lock);
    code = get_statement(s, GET, "SELECT crc32,data FROM cache WHERE key=?", &st, err);
    if (code == PL_OK)
        code = get(s, st, key, data, mem, err);
    (void)pthread_mutex_unlock(&s->get_lock);
    return code;
}

/* A file of an older version that is opened for reading has no table `cache`. */
static pl_code is_there(pl_store *s, bool *there, pl_error *err)
{
    int64_t n = 0;
    pl_code code = pl_db_int(s->features, &n, err, "SELECT count(*) FROM sqlite_master WHERE name='cache'");

    *there = n > 0;
    return code;
}

pl_code pl_cache_check(pl_store *s, int64_t *n, int64_t *n_bad, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    bool there;
    pl_code code = is_there(s, &there, err);

    *n = *n_bad = 0;
    if (there)
        code = pl_db_prepare(s->features, &st, "SELECT crc32,data,key FROM cache", err);
    while (st != NULL && pl_db_next(st, &code, err)) {
        const void *blob = sqlite3_column_blob(st, 1);
        size_t len = (size_t)sqlite3_column_bytes(st, 1);
        const void *key = sqlite3_column_blob(st, 2);

        *n += 1;
        *n_bad += sqlite3_column_bytes(st, 2) != KEY || crc_of(s, key, blob, len) != sqlite3_column_int64(st, 0);
    }
    (void)sqlite3_finalize(st);
    return code;
}
