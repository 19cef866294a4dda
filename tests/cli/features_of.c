/* SPDX-License-Identifier: Apache-2.0 */
/* features_of RESULTS: what the molecules of a database are compared by, "mol_id scaffold fingerprint" a line. */
#include <inttypes.h>
#include <stdio.h>

#include "chem/fingerprint/fingerprint.h"
#include "chem/fingerprint/scaffold.h"
#include "chem/molecule/codec.h"
#include "stages/database/schema.h"

static pl_code print_one(const ch_block_item *item, pl_arena *mem, pl_error *err)
{
    uint64_t scaffold = 0;
    ch_fingerprint f;
    pl_code code = ch_scaffold(&scaffold, &item->mol, false, mem, err);

    if (code == PL_OK)
        code = ch_fingerprint_of(&f, &item->mol, mem, err);
    if (code != PL_OK)
        return code;
    printf("%" PRId64 " %" PRIx64 " ", item->id, scaffold);
    for (int i = CH_FINGERPRINT_BITS / 64 - 1; i >= 0; i--)
        printf("%016" PRIx64, f.word[i]);
    printf("\n");
    return PL_OK;
}

static pl_code print_all(pl_store *store, pl_arena *mem, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    bool row = true;
    pl_code code = pl_store_features(store, err);

    if (code == PL_OK)
        code = pl_db_prepare(store->db, &st, "SELECT key, unit FROM stage JOIN unit USING(stage_id) WHERE name='prepare'", err);
    while (code == PL_OK && (code = pl_db_step(st, &row, err)) == PL_OK && row) {
        ch_block_item *item = NULL;
        pl_block block;
        int32_t n = 0;
        code = pl_block_get(store, "conformer", (const char *)sqlite3_column_text(st, 0), sqlite3_column_int64(st, 1), &block, mem,
                            err);
        if (code == PL_OK)
            code = ch_block_unpack(&item, &n, block.data, mem, err);
        for (int32_t i = 0; i < n && code == PL_OK; i++)
            code = print_one(&item[i], mem, err);
    }
    (void)sqlite3_finalize(st);
    return code;
}

int main(int argc, char **argv)
{
    pl_store *store = NULL;
    pl_error err = { 0 };
    pl_arena *mem = pl_arena_new(0);
    pl_code code = pl_store_open_read(&store, argc > 1 ? argv[1] : "", &st_schema, &err);

    if (code == PL_OK)
        code = print_all(store, mem, &err);
    pl_store_close(store);
    pl_arena_free(mem);
    if (code != PL_OK)
        (void)fprintf(stderr, "%s\n", err.text);
    return code == PL_OK ? 0 : 1;
}
