/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/dataset/scaffolds.h"

#include "chem/fingerprint/scaffold.h"
#include "chem/molecule/codec.h"
#include "stages/database/blocks.h"

typedef struct reading {
    st_blocks blocks;
    pl_arena *unit, *molecule;
    bool strict;
    void (*give)(void *ctx, int64_t mol_id, uint64_t scaffold);
    void *ctx;
} reading;

static pl_code read_unit(const reading *r, int64_t unit, pl_error *err)
{
    ch_block_item *item = NULL;
    uint64_t scaffold = 0;
    pl_block block;
    int32_t n = 0;
    pl_code code = st_blocks_get(&r->blocks, unit, &block, r->unit, err);

    if (code == PL_OK)
        code = pl_block_check(&block, err);
    if (code == PL_OK)
        code = ch_block_unpack(&item, &n, block.data, r->unit, err);
    for (int32_t i = 0; code == PL_OK && i < n; i++) {
        if (i > 0 && item[i].id == item[i - 1].id)
            continue; /* another structure of it */
        pl_arena_reset(r->molecule);
        code = ch_scaffold(&scaffold, &item[i].mol, r->strict, r->molecule, err);
        if (code == PL_OK)
            r->give(r->ctx, item[i].id, scaffold);
    }
    pl_arena_reset(r->unit);
    return code;
}

pl_code st_scaffolds_read(const pl_env *env, bool strict, void (*give)(void *ctx, int64_t mol_id, uint64_t scaffold), void *ctx,
                          pl_error *err)
{
    reading r = { .unit = pl_arena_new(1 << 20), .molecule = pl_arena_new(1 << 16), .strict = strict, .give = give, .ctx = ctx };
    pl_code code = r.unit != NULL && r.molecule != NULL ? st_blocks_open(&r.blocks, env, "prepare", "conformer", err)
                                                        : pl_fail(err, PL_ENOMEM, "scaffolds");
    bool more = true;

    for (int64_t unit = 0; code == PL_OK && more; unit++) {
        code = st_blocks_has(&r.blocks, unit, &more, err);
        if (code == PL_OK && more)
            code = read_unit(&r, unit, err);
    }
    pl_arena_free(r.unit);
    pl_arena_free(r.molecule);
    return code;
}
