/* SPDX-License-Identifier: Apache-2.0 */
#include "models/family/table.h"

#include <string.h>

static pl_code rows_make(ch_environments *environments, float (*features)[CH_N_FEATURES], const ch_graph *const *graph, int32_t n,
                         pl_arena *mem, pl_error *err)
{
    pl_arena *scratch = pl_arena_new(1 << 16);
    pl_code code = scratch != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "features of %d molecules", (int)n);

    for (int32_t i = 0; i < n && code == PL_OK; i++) {
        pl_arena_reset(scratch);
        code = ch_environments_of(&environments[i], graph[i], mem, err);
        if (code == PL_OK)
            code = ch_features_of(features[i], graph[i], scratch, err);
    }
    pl_arena_free(scratch);
    return code;
}

pl_code nn_table_make(nn_table *out, const ch_graph *const *graph, int32_t n, pl_arena *mem, pl_error *err)
{
    ch_environments *environments = PL_NEW(mem, ch_environments, n);
    float(*features)[CH_N_FEATURES] = pl_arena_get(mem, (size_t)n, sizeof *features);

    *out = (nn_table){ .n = n, .environments = environments, .features = (const float(*)[CH_N_FEATURES])features };
    if (environments == NULL || features == NULL)
        return pl_fail(err, PL_ENOMEM, "features of %d molecules", (int)n);
    return rows_make(environments, features, graph, n, mem, err);
}

static void columns_take(float *to, const nn_table *all, const int32_t *at, int32_t n)
{
    const size_t width = (size_t)all->n_columns;

    for (int32_t i = 0; i < n && width; i++)
        memcpy(to + (size_t)i * width, all->column + (size_t)at[i] * width, width * sizeof *to);
}

pl_code nn_table_take(nn_table *out, const nn_table *all, const int32_t *at, int32_t n, pl_arena *mem, pl_error *err)
{
    ch_environments *environments = PL_NEW(mem, ch_environments, n);
    float(*features)[CH_N_FEATURES] = pl_arena_get(mem, (size_t)n, sizeof *features);
    float *column = PL_NEW(mem, float, (size_t)n *(size_t)all->n_columns);

    if (environments == NULL || features == NULL || column == NULL)
        return pl_fail(err, PL_ENOMEM, "features of %d molecules", (int)n);
    for (int32_t i = 0; i < n; i++) {
        environments[i] = all->environments[at[i]];
        memcpy(features[i], all->features[at[i]], sizeof *features);
    }
    columns_take(column, all, at, n);
    *out = (nn_table){ .n = n,
                       .environments = environments,
                       .features = (const float(*)[CH_N_FEATURES])features,
                       .n_columns = all->n_columns,
                       .column = column };
    return PL_OK;
}
