/* SPDX-License-Identifier: Apache-2.0 */
/* What models read besides the molecules of a dataset: columns and descriptors. */
#include "stages/steps/dataset/dataset.h"

pl_code st_dataset_place(nn_inputs *in, const st_dataset *d, pl_error *err)
{
    const char *name[PL_NAMES_MAX];

    for (int k = 0; k < d->columns->n; k++)
        name[k] = d->columns->name[k];
    return nn_inputs_place(in, name, d->columns->n, err);
}

pl_code st_dataset_describe(st_dataset *d, pl_error *err)
{
    float(*feature)[CH_N_FEATURES] = pl_arena_get(d->mem, (size_t)d->n + 1, sizeof *feature);
    pl_arena *scratch = pl_arena_new(1 << 16);
    pl_code code =
        feature != NULL && scratch != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "descriptors of %lld molecules", (long long)d->n);

    for (int64_t i = 0; i < d->n && code == PL_OK; i++) {
        pl_arena_reset(scratch);
        code = ch_features_of(feature[i], d->item[i].graph, scratch, err);
        d->item[i].feature = feature[i];
        for (int32_t k = 0; k < d->other[i].n; k++)
            d->other[i].item[k].feature = feature[i];
    }
    pl_arena_free(scratch);
    return code;
}
