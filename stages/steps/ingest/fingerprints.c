/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/ingest/fingerprints.h"

#include "chem/fingerprint/scaffold_smiles.h"
#include "pipeline/base/text.h"

static pl_code make_one(st_print *out, const ch_mol *mol, pl_arena *mem, pl_arena *scratch, pl_error *err)
{
    ch_fingerprint print;
    const char *scaffold = "";
    pl_code code = ch_fingerprint_of(&print, mol, scratch, err);

    if (code == PL_OK)
        code = ch_scaffold_smiles(&scaffold, mol, scratch, err);
    if (code != PL_OK)
        return code;
    ch_fingerprint_pack(out->bits, &print);
    out->scaffold = pl_strdup(mem, scaffold);
    return out->scaffold != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "a scaffold");
}

pl_code st_prints_make(st_print **out, const ch_prepared *all, int32_t n, pl_arena *mem, pl_arena *scratch, pl_error *err)
{
    pl_code code = PL_OK;

    *out = PL_NEW(mem, st_print, n + 1);
    if (*out == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for %d fingerprints", (int)n);
    for (int32_t i = 0; i < n && code == PL_OK; i++) {
        if (all[i].code != CH_OK || all[i].set_aside != NULL)
            continue;
        if (scratch != NULL)
            pl_arena_reset(scratch);
        code = make_one(&(*out)[i], &all[i].mol, mem, scratch != NULL ? scratch : mem, err);
    }
    return code;
}
