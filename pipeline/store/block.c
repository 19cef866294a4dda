/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <zlib.h>

#include "pipeline/store/store_parts.h"


enum { PUT = 0, GET = 1 }; /* positions in pl_store.kept */

static pl_code get_statement(pl_store *s, int which, const char *sql, sqlite3_stmt **out, pl_error *err)
{
    pl_code code = PL_OK;

    *out = NULL;
    if (s->features == NULL)
        return pl_fail(err, PL_EBUG, "features.db is used before it is open");
    if (s->kept[which] == NULL)
        code = pl_db_prepare(s->features, &s->kept[which], sql, err);
    *out = s->kept[which];
    return code;
}

static void bind_name(sqlite3_stmt *st, const char *kind, const char *key, int64_t unit)
{
    (void)sqlite3_bind_text(st, 1, key, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(st, 2, kind, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(st, 3, unit);
}

static int64_t crc_of(pl_bytes data) { return (int64_t)crc32_z(0, data.data, data.len); }

/* The CRC of the other columns of a row, as the text "KEY KIND UNIT FIRST N ". */
static int64_t crc_of_head(sqlite3_value **head)
{
    uLong crc = crc32_z(0, NULL, 0);

    for (int i = 0; i < 5; i++) {
        crc = crc32_z(crc, sqlite3_value_text(head[i]), (size_t)sqlite3_value_bytes(head[i]));
        crc = crc32_z(crc, (const Bytef *)" ", 1);
    }
    return (int64_t)crc;
}

/* The SQL function block_crc(crc32, key, kind, unit, first, n_items): turns the CRC of the data into the value of the column
 * crc32, which also covers the other columns, and back (it is an XOR). */
static void block_crc(sqlite3_context *ctx, int n, sqlite3_value **v)
{
    const pl_store *s = sqlite3_user_data(ctx);
    int64_t crc = sqlite3_value_int64(v[0]);

    (void)n;
    sqlite3_result_int64(ctx, s->features_version < 2 ? crc : crc ^ crc_of_head(v + 1));
}

pl_code pl_block_ready(pl_store *s, pl_error *err)
{
    static const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC;

    return sqlite3_create_function(s->features, "block_crc", 6, flags, s, block_crc, NULL, NULL) == SQLITE_OK
               ? PL_OK
               : pl_db_fail(s->features, err);
}

pl_code pl_block_put(pl_store *s, const char *kind, const char *key, int64_t unit, int64_t first, int64_t n_items, pl_bytes data,
                     pl_error *err)
{
    static const char sql[] = "INSERT OR REPLACE INTO block(key,kind,unit,first,n_items,crc32,data)"
                              " VALUES(?1,?2,?3,?4,?5,block_crc(?6,?1,?2,?3,?4,?5),?7)";
    sqlite3_stmt *st;
    pl_code code = get_statement(s, PUT, sql, &st, err);

    if (code != PL_OK)
        return code;
    bind_name(st, kind, key, unit);
    (void)sqlite3_bind_int64(st, 4, first);
    (void)sqlite3_bind_int64(st, 5, n_items);
    (void)sqlite3_bind_int64(st, 6, crc_of(data));
    /* A NULL pointer would bind NULL, not an empty blob. */
    if (sqlite3_bind_blob64(st, 7, data.len ? data.data : "", data.len, SQLITE_STATIC) != SQLITE_OK)
        return pl_fail(err, PL_EDATA, "block %s, unit %lld: %zu bytes are too many for one row; use smaller units", kind,
                       (long long)unit, data.len);
    code = pl_db_run(st, err);
    s->n_puts += code == PL_OK;
    return code;
}

static pl_code fail_damaged(const pl_block *b, const char *how, pl_error *err)
{
    return pl_fail(err, PL_EDATA, "%s: block %s, unit %lld: %s; delete the file and run again: its blocks are then computed again",
                   b->file, b->kind, (long long)b->unit, how);
}

/* Reads n bytes of a blob directly into the arena; sqlite3_column_blob would make a copy first. */
static pl_code blob_read(pl_store *s, int64_t row, size_t n, pl_block *out, pl_arena *mem, pl_error *err)
{
    char *to = pl_arena_raw(mem, n + 1);
    sqlite3_blob *blob = NULL;
    pl_code code = PL_OK;
    int rc;

    if (to == NULL)
        return pl_fail(err, PL_ENOMEM, "a block of %zu bytes", n);
    rc = sqlite3_blob_open(s->features, "main", "block", "data", row, 0, &blob);
    if (rc == SQLITE_OK)
        rc = sqlite3_blob_read(blob, to, (int)n, 0);
    if (rc == SQLITE_ERROR) /* the value is not a blob but, for example, a number */
        code = fail_damaged(out, sqlite3_errmsg(s->features), err);
    else if (rc != SQLITE_OK)
        code = pl_db_fail(s->features, err);
    out->data = (pl_bytes){ to, n };
    (void)sqlite3_blob_close(blob);
    return code;
}

static bool is_named(sqlite3_stmt *st, const char *kind, const char *key, int64_t unit)
{
    const char *has_key = (const char *)sqlite3_column_text(st, 5), *has_kind = (const char *)sqlite3_column_text(st, 6);

    return has_key != NULL && has_kind != NULL && strcmp(has_key, key) == 0 && strcmp(has_kind, kind) == 0 &&
           sqlite3_column_int64(st, 7) == unit;
}

static pl_code get(pl_store *s, const char *kind, const char *key, int64_t unit, pl_block *out, pl_arena *mem, pl_error *err)
{
    /* The CRC uses the requested key, kind and unit, and the row must have the same: a damaged index may lead to another row, and an
     * intact index to a row whose own name is damaged. */
    static const char sql[] = "SELECT block_id,length(data),first,n_items,block_crc(crc32,?1,?2,?3,first,n_items),key,kind,unit"
                              " FROM block WHERE key=?1 AND kind=?2 AND unit=?3";
    sqlite3_stmt *st;
    int64_t row = 0, n = 0;
    bool named = false;
    pl_code code = get_statement(s, GET, sql, &st, err);

    *out = (pl_block){ .unit = unit, .file = s->features_path, .kind = kind };
    if (code != PL_OK)
        return code;
    bind_name(st, kind, key, unit);
    out->found = pl_db_next(st, &code, err);
    if (out->found) {
        row = sqlite3_column_int64(st, 0);
        n = sqlite3_column_int64(st, 1);
        out->first = sqlite3_column_int64(st, 2);
        out->n_items = sqlite3_column_int64(st, 3);
        out->crc32 = sqlite3_column_int64(st, 4);
        named = is_named(st, kind, key, unit);
    }
    (void)sqlite3_reset(st);
    (void)sqlite3_clear_bindings(st);
    if (!out->found)
        return code;
    return named ? blob_read(s, row, (size_t)n, out, mem, err) : fail_damaged(out, "its row has another name", err);
}

pl_code pl_block_get(pl_store *s, const char *kind, const char *key, int64_t unit, pl_block *out, pl_arena *mem, pl_error *err)
{
    pl_code code;

    (void)pthread_mutex_lock(&s->get_lock);
    code = get(s, kind, key, unit, out, mem, err);
    (void)pthread_mutex_unlock(&s->get_lock);
    return code;
}

pl_code pl_block_check(const pl_block *b, pl_error *err)
{
    return !b->found || crc_of(b->data) == b->crc32 ? PL_OK : fail_damaged(b, "checksum differs", err);
}

pl_code pl_block_count(pl_store *s, const char *kind, const char *key, int64_t *n, pl_error *err)
{
    *n = 0;
    if (s->features == NULL)
        return pl_fail(err, PL_EBUG, "features.db is used before it is open");
    if (kind == NULL)
        return pl_db_int(s->features, n, err, "SELECT count(*) FROM block WHERE key=%Q", key);
    return pl_db_int(s->features, n, err, "SELECT count(*) FROM block WHERE key=%Q AND kind=%Q", key, kind);
}
