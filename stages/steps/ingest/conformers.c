/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/ingest/conformers.h"

#include <string.h>

#include "stages/steps/ingest/pose_block.h"

pl_code st_conformers_open(st_conformers *c, pl_store *store, const char *prepare_key, pl_error *err)
{
    *c = (st_conformers){ .store = store, .key = prepare_key, .kind = "conformer", .mem = pl_arena_new(1 << 20), .unit = -1 };
    return c->mem != NULL ? pl_store_features(store, err) : pl_fail(err, PL_ENOMEM, "no memory for structures");
}

void st_conformers_close(st_conformers *c)
{
    pl_arena_free(c->mem);
    c->mem = NULL;
}

static pl_code unpack(st_conformers *c, pl_bytes data, pl_error *err)
{
    st_poses poses = { 0 };
    pl_code code;

    if (strcmp(c->kind, ST_POSE_BLOCK) != 0)
        return ch_block_unpack(&c->item, &c->n, data, c->mem, err);
    code = st_pose_block_unpack(&poses, data, c->mem, err);
    if (code == PL_OK) {
        c->item = poses.item;
        c->value = poses.value;
        c->n = poses.n;
    }
    return code;
}

static pl_code load(st_conformers *c, int64_t unit, pl_error *err)
{
    pl_block block;
    pl_code code;

    pl_arena_reset(c->mem);
    c->unit = -1;
    c->n = 0;
    code = pl_block_get(c->store, c->kind, c->key, unit, &block, c->mem, err);
    if (code == PL_OK)
        code = pl_block_check(&block, err);
    if (code == PL_OK && block.found)
        code = unpack(c, block.data, err);
    if (code == PL_OK)
        c->unit = unit;
    return code;
}

pl_code st_conformers_find(st_conformers *c, int64_t unit, int64_t mol_id, const ch_block_item **first, int32_t *n, pl_error *err)
{
    pl_code code = unit == c->unit ? PL_OK : load(c, unit, err);
    int32_t lo = 0, hi;

    for (hi = c->n; lo < hi;) { /* the first that is not below */
        int32_t mid = lo + (hi - lo) / 2;
        if (c->item[mid].id < mol_id)
            lo = mid + 1;
        else
            hi = mid;
    }
    *first = lo < c->n ? &c->item[lo] : NULL;
    for (*n = 0; *first != NULL && lo + *n < c->n && c->item[lo + *n].id == mol_id;)
        (*n)++;
    return code;
}

pl_code st_conformer_find(st_conformers *c, int64_t unit, int64_t mol_id, const ch_mol **mol, pl_error *err)
{
    const ch_block_item *first;
    int32_t n;
    pl_code code = st_conformers_find(c, unit, mol_id, &first, &n, err);

    *mol = n > 0 ? &first->mol : NULL;
    return code;
}
