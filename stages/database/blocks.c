/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/database/blocks.h"

pl_code st_blocks_open(st_blocks *b, const pl_env *env, const char *stage, const char *kind, pl_error *err)
{
    const pl_step *step = pl_workflow_step(env->wf, stage);

    if (step == NULL)
        return pl_fail(err, PL_EBUG, "stage %s is not in the workflow", stage);
    *b = (st_blocks){ .store = env->store, .stage = stage, .kind = kind, .key = step->key };
    return pl_store_features(env->store, err);
}

pl_code st_blocks_has(const st_blocks *b, int64_t unit, bool *has, pl_error *err)
{
    int64_t n = 0;
    pl_code code = pl_db_int(b->store->db, &n, err,
                             "SELECT count(*) FROM unit WHERE unit=%lld AND stage_id="
                             "(SELECT stage_id FROM stage WHERE key=%Q)",
                             (long long)unit, b->key);

    *has = n > 0;
    return code;
}

pl_code st_blocks_get(const st_blocks *b, int64_t unit, pl_block *out, pl_arena *mem, pl_error *err)
{
    pl_code code = pl_block_get(b->store, b->kind, b->key, unit, out, mem, err);

    if (code == PL_OK && !out->found)
        code = pl_fail(err, PL_EDATA, "%s lacks unit %lld of stage %s: run with --from %s", b->store->features_path,
                       (long long)unit, b->stage, b->stage);
    return code;
}
