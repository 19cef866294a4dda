/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "models/family/family.h"

const nn_member_kind *const nn_member_kinds[] = { &nn_trees, &nn_forest, &nn_gp, NULL };

const nn_member_kind *nn_member_kind_of(const char *name)
{
    for (const nn_member_kind *const *k = nn_member_kinds; *k != NULL; k++)
        if (strcmp((*k)->name, name) == 0)
            return *k;
    return NULL;
}

pl_code nn_parts_make(nn_parts *out, const nn_table *x, int32_t row, pl_arena *mem, pl_error *err)
{
    *out = (nn_parts){ .feature = PL_NEW(mem, double, CH_N_FEATURES),
                       .environment = PL_NEW(mem, double, x->environments[row].n),
                       .column = PL_NEW(mem, double, x->n_columns) };
    if (out->feature == NULL || out->environment == NULL || out->column == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory to explain a prediction");
    return PL_OK;
}
