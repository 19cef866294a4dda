/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/blocks.h"

pl_code st_blocks_open(st_blocks *b, const pl_env *env, const char *stage, const char *kind, pl_error *err)
{
    const pl_step *step = pl_workflow_step(env->wf, stage);
    pl_code code;

    if (step == NULL)
        return pl_fail(err, PL_EBUG, "stage %s is not in the workflow", stage);
    *b = (st_blocks){ .store = env->store, .stage = stage, .kind = kind, .key = step->key, .n_units = -1 };
    code = pl_store_features(env->store, err);
    if (code == PL_OK)
        code = pl_db_int(env->store->db, &b->n_units, err,
                         "SELECT coalesce((SELECT n_units FROM stage WHERE key=%Q AND state='done'),-1)", b->key);
    if (code == PL_OK && b->n_units < 0)
        code = pl_fail(err, PL_EBUG, "stage %s is not done", stage);
    return code;
}

pl_code st_blocks_get(const st_blocks *b, int64_t unit, pl_bytes *out, pl_arena *mem, pl_error *err)
{
    bool found = false;
    pl_code code = pl_block_get(b->store, b->kind, b->key, unit, &found, out, NULL, NULL, mem, err);

    if (code == PL_OK && !found)
        code = pl_fail(err, PL_EDATA, "%s lacks unit %lld of stage %s: run with --from %s", b->store->features_path,
                       (long long)unit, b->stage, b->stage);
    return code;
}

pl_code st_sizes_get(st_sizes *out, pl_store *store, pl_error *err)
{
    /* Bonds of a connected molecule: atoms - 1 + rings. */
    static const char sql[] = "SELECT count(*), total(n_atoms), total(n_atoms-1+coalesce(rings,0)),"
                              " (SELECT n_units FROM stage WHERE name='prepare' AND state='done')"
                              " FROM molecule WHERE geometry<>'none'";
    sqlite3_stmt *st;
    bool row = false;
    pl_code code;

    *out = (st_sizes){ .n_units = -1 };
    if (store == NULL)
        return PL_OK;
    code = pl_db_prepare(store->db, &st, sql, err);
    if (code == PL_OK)
        code = pl_db_step(st, &row, err);
    if (code == PL_OK && row && sqlite3_column_type(st, 3) != SQLITE_NULL) {
        out->n = sqlite3_column_double(st, 0);
        out->atoms = sqlite3_column_double(st, 1);
        out->bonds = sqlite3_column_double(st, 2);
        out->n_units = sqlite3_column_int64(st, 3);
    }
    (void)sqlite3_finalize(st);
    return code;
}
