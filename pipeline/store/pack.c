/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "pipeline/store/open.h"
#include "pipeline/store/store_parts.h"
#include "pipeline/store/sums.h"

/* What is written into the copy: a store whose blocks go there. */
typedef struct packing {
    pl_store *from, to;
    pl_arena *mem; /* of one block */
} packing;

static pl_code copy_block(packing *p, const pl_packed *b, int64_t unit, pl_error *err)
{
    pl_block block;
    pl_code code;

    pl_arena_reset(p->mem);
    code = pl_block_get(p->from, b->kind, b->key, unit, &block, p->mem, err);
    if (code == PL_OK)
        code = pl_block_check(&block, err);
    if (code == PL_OK && !block.found)
        code = pl_fail(err, PL_EDATA, "%s lacks %s of unit %lld, which later stages read; run again with --force and their stage",
                       p->from->features_path, b->kind, (long long)unit);
    return code == PL_OK ? pl_block_put(&p->to, b->kind, b->key, unit, block.first, block.n_items, block.data, err) : code;
}

static pl_code copy_blocks(packing *p, const pl_packed *blocks, int n, pl_error *err)
{
    pl_code code = n > 0 ? pl_store_features(p->from, err) : PL_OK;

    for (int i = 0; i < n; i++)
        for (int64_t unit = 0; unit < blocks[i].n && code == PL_OK; unit++)
            code = copy_block(p, &blocks[i], unit, err);
    return code;
}

/* In one transaction. */
static pl_code fill(packing *p, const char *shard, const pl_packed *blocks, int n, pl_error *err)
{
    sqlite3 *db = p->to.features;
    pl_code code = pl_sums_watch(&p->to.sums, db, err);

    if (code == PL_OK)
        code = pl_db_begin(db, err);
    if (code == PL_OK)
        code = pl_db_execf(db, err, "INSERT OR REPLACE INTO meta(key,value) VALUES('" PL_SHARD_META "',%Q)", shard);
    if (code == PL_OK)
        code = pl_db_exec(db, pl_block_sql, err);
    if (code == PL_OK)
        code = pl_block_ready(&p->to, err);
    if (code == PL_OK)
        code = copy_blocks(p, blocks, n, err);
    if (code == PL_OK)
        code = pl_db_commit(db, err);
    return code;
}

static pl_code fill_file(packing *p, const char *path, const char *shard, const pl_packed *blocks, int n, pl_error *err)
{
    pl_code code = pl_open_file(&p->to.features, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, 5000, err);

    p->to.features_version = PL_FEATURES_VERSION;
    p->to.features_path = path;
    p->mem = pl_arena_new(1 << 20);
    if (p->mem == NULL)
        code = pl_fail(err, PL_ENOMEM, "a block");
    if (code == PL_OK)
        code = fill(p, shard, blocks, n, err);
    for (size_t i = 0; i < sizeof p->to.kept / sizeof p->to.kept[0]; i++)
        (void)sqlite3_finalize(p->to.kept[i]);
    (void)sqlite3_close(p->to.features);
    pl_arena_free(p->mem);
    return code;
}

/* What a killed run left. */
static void clear(const char *part)
{
    char journal[PATH_MAX];

    (void)unlink(part);
    if (snprintf(journal, sizeof journal, "%s-journal", part) < (int)sizeof journal)
        (void)unlink(journal);
}

pl_code pl_store_pack(pl_store *s, const char *to, const char *shard, const pl_packed *blocks, int n_blocks, pl_arena *mem,
                      pl_error *err)
{
    packing p = { .from = s };
    const char *part = pl_sprintf(mem, "%s.part", to);
    pl_code code;

    if (part == NULL)
        return pl_fail(err, PL_ENOMEM, "a path");
    clear(part);
    code = pl_store_copy(s, part, err);
    if (code == PL_OK)
        code = fill_file(&p, part, shard, blocks, n_blocks, err);
    if (code == PL_OK)
        code = pl_store_held(s, err);
    if (code == PL_OK)
        code = pl_store_rename(part, to, err);
    if (code != PL_OK)
        clear(part);
    return code;
}

pl_code pl_store_shard(pl_store *s, const char **out, pl_arena *mem, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    pl_code code = pl_db_prepare(s->db, &st, "SELECT value FROM meta WHERE key='" PL_SHARD_META "'", err);

    *out = "";
    if (pl_db_next(st, &code, err))
        *out = pl_strdup(mem, (const char *)sqlite3_column_text(st, 0));
    (void)sqlite3_finalize(st);
    return *out == NULL ? pl_fail(err, PL_ENOMEM, "a shard") : code;
}
