/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "pipeline/store/pages.h"
#include "pipeline/store/store_parts.h"
#include "pipeline/store/sums.h"

/* ---- digest: the sum of the hashes of all rows, which does not depend on their order ---- */

typedef struct row_sum {
    unsigned char total[32]; /* sum of SHA-256 of rows, modulo 2^256 */
    int64_t n;
} row_sum;

static void add_hash(row_sum *sum, const unsigned char h[32])
{
    unsigned carry = 0;

    for (int i = 31; i >= 0; i--) {
        carry += (unsigned)sum->total[i] + h[i];
        sum->total[i] = (unsigned char)carry;
        carry >>= 8;
    }
    sum->n++;
}

static void hash_value(pl_sha256 *sha, sqlite3_stmt *st, int column)
{
    int type = sqlite3_column_type(st, column);
    char buf[32], tag[2] = { (char)('0' + type), '\0' };

    pl_sha256_add_str(sha, tag);
    if (type == SQLITE_BLOB) {
        (void)snprintf(buf, sizeof buf, "%d", sqlite3_column_bytes(st, column));
        pl_sha256_add_str(sha, buf);
        pl_sha256_add(sha, sqlite3_column_blob(st, column), (size_t)sqlite3_column_bytes(st, column));
    } else if (type == SQLITE_FLOAT) {
        /* the shortest text that reads back as the same double: the same on every machine */
        pl_sha256_add_str(sha, pl_real_str(sqlite3_column_double(st, column), buf));
    } else if (type != SQLITE_NULL) {
        pl_sha256_add_str(sha, (const char *)sqlite3_column_text(st, column));
    }
}

static pl_code sum_rows(sqlite3 *db, const char *sql, row_sum *sum, pl_error *err)
{
    sqlite3_stmt *st;
    pl_code code = pl_db_prepare(db, &st, sql, err);

    while (pl_db_next(st, &code, err)) {
        unsigned char h[32];
        pl_sha256 sha;

        pl_sha256_start(&sha);
        for (int i = 0; i < sqlite3_column_count(st); i++)
            hash_value(&sha, st, i);
        pl_sha256_end(&sha, h);
        add_hash(sum, h);
    }
    (void)sqlite3_finalize(st);
    return code;
}

static pl_code digest_one(sqlite3 *db, const char *name, const char *sql, pl_sha256 *all, pl_error *err)
{
    row_sum sum = { { 0 }, 0 };
    char n[32];
    pl_code code = sum_rows(db, sql, &sum, err);

    (void)snprintf(n, sizeof n, "%lld", (long long)sum.n);
    pl_sha256_add_str(all, name);
    pl_sha256_add_str(all, n);
    pl_sha256_add(all, sum.total, sizeof sum.total);
    return code;
}

pl_code pl_store_digest(pl_store *s, char out[65], pl_error *err)
{
    pl_sha256 all;
    pl_code code;

    pl_sha256_start(&all);
    code = digest_one(s->db, "stage", "SELECT name,state,n_units FROM stage", &all, err);
    for (int i = 0; code == PL_OK && s->schema->digest != NULL && s->schema->digest[i][0] != NULL; i++)
        code = digest_one(s->db, s->schema->digest[i][0], s->schema->digest[i][1], &all, err);
    pl_sha256_hex(&all, out);
    return code;
}

/* ---- stages and their blocks ---- */

typedef pl_code per_stage(pl_store *s, const char *name, const char *key, void *ctx, pl_error *err);

static pl_code each_stage(pl_store *s, per_stage *call, void *ctx, pl_error *err)
{
    sqlite3_stmt *st;
    pl_code code = pl_db_prepare(s->db, &st, "SELECT name,key FROM stage ORDER BY name", err);

    while (pl_db_next(st, &code, err))
        code = call(s, (const char *)sqlite3_column_text(st, 0), (const char *)sqlite3_column_text(st, 1), ctx, err);
    (void)sqlite3_finalize(st);
    return code;
}

static pl_code digest_stage_blocks(pl_store *s, const char *name, const char *key, void *ctx, pl_error *err)
{
    char *sql = sqlite3_mprintf("SELECT kind,unit,first,n_items,block_crc(crc32,key,kind,unit,first,n_items),length(data)"
                                " FROM block WHERE key=%Q",
                                key);
    pl_code code = sql != NULL ? digest_one(s->features, name, sql, ctx, err) : pl_fail(err, PL_ENOMEM, "a query");

    sqlite3_free(sql);
    return code;
}

/* Adds a key of `owner` to the keys that are in use; ctx is the store that is pruned. */
static pl_code note_key(pl_store *owner, const char *name, const char *key, void *ctx, pl_error *err)
{
    pl_store *s = ctx;
    char *sql = sqlite3_mprintf("INSERT OR IGNORE INTO temp.used_key VALUES(%Q)", key);
    pl_code code = sql != NULL ? pl_db_exec(s->features, sql, err) : pl_fail(err, PL_ENOMEM, "a query");

    (void)owner;
    (void)name;
    sqlite3_free(sql);
    return code;
}

pl_code pl_store_prune(pl_store *s, pl_store *const *others, int n_others, int64_t *n, pl_error *err)
{
    pl_code code = pl_db_exec(s->features, "CREATE TEMP TABLE IF NOT EXISTS used_key(key TEXT PRIMARY KEY)", err);

    *n = 0;
    if (code == PL_OK)
        code = each_stage(s, note_key, s, err);
    for (int i = 0; code == PL_OK && i < n_others; i++)
        code = each_stage(others[i], note_key, s, err);
    if (code == PL_OK)
        code = pl_db_exec(s->features, "DELETE FROM block WHERE key NOT IN (SELECT key FROM temp.used_key)", err);
    if (code == PL_OK) {
        *n = sqlite3_changes(s->features);
        code = pl_db_exec(s->features, "DROP TABLE temp.used_key; DELETE FROM cache; VACUUM", err);
    }
    return code;
}

/* ---- check ---- */

typedef struct checker {
    pl_text *report;
    bool good;
} checker;

static pl_code check_integrity(sqlite3 *db, const char *path, checker *c, pl_error *err)
{
    sqlite3_stmt *st;
    pl_code code = pl_db_prepare(db, &st, "PRAGMA integrity_check(20)", err);

    while (pl_db_next(st, &code, err)) {
        const char *says = (const char *)sqlite3_column_text(st, 0);
        bool fine = strcmp(says, "ok") == 0;
        c->good = c->good && fine;
        pl_text_addf(c->report, "%s %s: %s\n", fine ? "good" : "BAD ", path, fine ? "sound" : says);
    }
    (void)sqlite3_finalize(st);
    return code;
}

/* Runs a statement that counts the rows that violate `what`. */
static pl_code check_none(sqlite3 *db, const char *what, const char *sql, checker *c, pl_error *err)
{
    int64_t n = 0;
    pl_code code = pl_db_int(db, &n, err, "%s", sql);

    if (code != PL_OK)
        return code;
    c->good = c->good && n == 0;
    if (n == 0)
        pl_text_addf(c->report, "good %s\n", what);
    else
        pl_text_addf(c->report, "BAD  %s: %lld do not\n", what, (long long)n);
    return PL_OK;
}

static pl_code check_blocks(pl_store *s, const char *name, const char *key, void *ctx, pl_error *err)
{
    static const char sql[] = "SELECT kind,unit,block_crc(crc32,key,kind,unit,first,n_items),data FROM block WHERE key=?";
    checker *c = ctx;
    int64_t n = 0, bad = 0;
    sqlite3_stmt *st;
    pl_code code = pl_db_prepare(s->features, &st, sql, err);

    if (code == PL_OK)
        (void)sqlite3_bind_text(st, 1, key, -1, SQLITE_STATIC);
    while (pl_db_next(st, &code, err)) {
        uLong crc = crc32_z(0, sqlite3_column_blob(st, 3), (size_t)sqlite3_column_bytes(st, 3));
        n++;
        if (sqlite3_column_bytes(st, 3) == 0)
            crc = 0; /* the CRC of no bytes; SQLite may give a NULL pointer for an empty blob */
        if ((int64_t)crc == sqlite3_column_int64(st, 2))
            continue;
        bad++;
        pl_text_addf(c->report, "BAD  block %s, unit %lld of stage %s: checksum differs\n",
                     (const char *)sqlite3_column_text(st, 0), (long long)sqlite3_column_int64(st, 1), name);
    }
    (void)sqlite3_finalize(st);
    c->good = c->good && bad == 0;
    if (code == PL_OK && n > 0 && bad == 0)
        pl_text_addf(c->report, "good blocks of stage %s: %lld checksums match\n", name, (long long)n);
    return code;
}

/* In one transaction, since a run may be writing at the same time. */
static pl_code check_sums(pl_store *s, checker *c, pl_error *err)
{
    pl_text wrong = { 0 };
    int64_t there = 0;
    int n = 0;
    pl_code code = pl_db_exec(s->db, "BEGIN", err);

    if (code == PL_OK)
        code = pl_db_int(s->db, &there, err, "SELECT count(*) FROM main.sqlite_master WHERE name='row_sum'");
    if (there > 0)
        code = pl_sums_check(s->db, &n, &wrong, err);
    pl_db_rollback(s->db);
    c->good = c->good && code != PL_EDATA;
    if (code == PL_EDATA)
        pl_text_addf(c->report, "BAD  %s: %s", s->results_path, pl_text_str(&wrong));
    else if (code == PL_OK && n > 0)
        pl_text_addf(c->report, "good rows of %d tables match their checksums\n", n - 1);
    pl_text_free(&wrong);
    return code == PL_EDATA ? PL_OK : code;
}

static pl_code check_cache(pl_store *s, checker *c, pl_error *err)
{
    int64_t n, bad;
    pl_code code = pl_cache_check(s, &n, &bad, err);

    c->good = c->good && bad == 0;
    if (bad > 0)
        pl_text_addf(c->report, "BAD  cache: %lld of %lld checksums differ; a run ignores these entries and computes them again\n",
                     (long long)bad, (long long)n);
    else if (n > 0)
        pl_text_addf(c->report, "good cache: %lld checksums match\n", (long long)n);
    return code;
}

pl_code pl_store_check(pl_store *s, bool *good, pl_text *report, pl_error *err)
{
    static const char *const own[][2] = {
        { "rows refer only to rows that exist", "SELECT count(*) FROM pragma_foreign_key_check" },
        { "stages that are done have all their units",
          "SELECT count(*) FROM stage s WHERE state='done' AND n_units<>(SELECT count(*) FROM unit u WHERE "
          "u.stage_id=s.stage_id)" },
        { "units of a stage follow each other without a gap",
          "SELECT count(*) FROM (SELECT stage_id FROM unit GROUP BY stage_id HAVING min(unit)<>0 OR "
          "max(unit)+1<>count(*))" },
    };
    checker c = { report, true };
    char why[PL_PAGES_WHY];
    pl_code code = check_integrity(s->db, s->results_path, &c, err);

    pl_pages_why(s->db, why); /* the message about a page that could not be read */
    if (why[0] != '\0')
        pl_text_addf(report, "BAD  %s\n", why);
    if (code == PL_OK && c.good)
        code = check_sums(s, &c, err);
    for (size_t i = 0; code == PL_OK && c.good && i < sizeof own / sizeof own[0]; i++)
        code = check_none(s->db, own[i][0], own[i][1], &c, err);
    for (int i = 0; code == PL_OK && s->schema->check != NULL && s->schema->check[i][0] != NULL; i++)
        code = check_none(s->db, s->schema->check[i][0], s->schema->check[i][1], &c, err);
    if (code == PL_OK && s->features != NULL)
        code = check_integrity(s->features, s->features_path, &c, err);
    if (code == PL_OK && s->features != NULL)
        code = each_stage(s, check_blocks, &c, err);
    if (code == PL_OK && s->features != NULL)
        code = check_cache(s, &c, err);
    *good = c.good;
    if (!pl_text_ok(report))
        code = pl_fail(err, PL_ENOMEM, "the report");
    return code;
}

/* ---- digest of blocks ---- */

/* The digest is of the rows, so all must be those that were written: an index that lost one, or a damaged name, would give
 * another digest. Says the first fault. */
static pl_code blocks_must_hold(pl_store *s, pl_error *err)
{
    pl_text report = { 0 };
    checker c = { &report, true };
    const char *bad;
    pl_code code = check_integrity(s->features, s->features_path, &c, err);

    if (code == PL_OK && c.good)
        code = each_stage(s, check_blocks, &c, err);
    bad = strstr(pl_text_str(&report), "BAD  ");
    if (!c.good)
        code = pl_fail(err, PL_EDATA, "%s: damaged (%.*s); delete the file and run again, it is made anew", s->features_path,
                       bad != NULL ? (int)strcspn(bad + 5, "\n") : 0, bad != NULL ? bad + 5 : "");
    pl_text_free(&report);
    return code;
}

pl_code pl_store_digest_blocks(pl_store *s, char out[65], pl_error *err)
{
    pl_sha256 all;
    pl_code code = blocks_must_hold(s, err);

    pl_sha256_start(&all);
    if (code == PL_OK)
        code = each_stage(s, digest_stage_blocks, &all, err);
    pl_sha256_hex(&all, out);
    return code;
}

/* ---- copy ---- */

pl_code pl_store_rename(const char *tmp, const char *to, pl_error *err)
{
    int fd = open(tmp, O_RDONLY | O_CLOEXEC);
    bool bad = fd < 0 || fsync(fd) != 0;

    if (fd >= 0)
        (void)close(fd);
    return bad || rename(tmp, to) != 0 ? pl_fail_errno(err, to) : pl_file_sync_name(to, err);
}

/* A writer holds the lock and can use a fixed name, which removes what a killed run left. Several readers may make the same
 * copy at once, so their names have the pid. */
static bool name_tmp(const pl_store *s, const char *to, char tmp[PATH_MAX])
{
    char who[24] = "", journal[PATH_MAX];

    if (sqlite3_db_readonly(s->db, "main") == 1)
        (void)snprintf(who, sizeof who, "%ld", (long)getpid());
    if (snprintf(journal, sizeof journal, "%s.tmp%s-journal", to, who) >= (int)sizeof journal)
        return false;
    (void)snprintf(tmp, PATH_MAX, "%s.tmp%s", to, who);
    (void)unlink(tmp);
    (void)unlink(journal);
    return true;
}

pl_code pl_store_copy(pl_store *s, const char *to, pl_error *err)
{
    char tmp[PATH_MAX];
    char *sql;
    pl_code code;

    if (!name_tmp(s, to, tmp))
        return pl_fail(err, PL_EIO, "%s: path too long", to);
    sql = sqlite3_mprintf("VACUUM INTO %Q", tmp);
    code = sql != NULL ? pl_db_exec(s->db, sql, err) : pl_fail(err, PL_ENOMEM, "a copy");
    sqlite3_free(sql);
    if (code == PL_OK)
        code = pl_store_rename(tmp, to, err);
    if (code != PL_OK)
        (void)unlink(tmp);
    return code;
}
