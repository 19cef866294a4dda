/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "chem/features/features.h"

static int by_id(const void *a, const void *b)
{
    const uint32_t x = ((const ch_environment *)a)->id, y = ((const ch_environment *)b)->id;

    return x < y ? -1 : x > y;
}

/* Joins equal ids of a sorted list. Returns how many remain. */
static int32_t join_equal(ch_environment *at, int32_t n)
{
    int32_t kept = 0;

    for (int32_t k = 0; k < n; k++)
        if (kept > 0 && at[kept - 1].id == at[k].id)
            at[kept - 1].count += at[k].count;
        else
            at[kept++] = at[k];
    return kept;
}

pl_code ch_environments_of(ch_environments *out, const ch_graph *g, pl_arena *mem, pl_error *err)
{
    ch_circle *circle = NULL;
    int32_t n;
    const pl_code code = ch_circles_of_graph(&circle, &n, g, mem, err);

    *out = (ch_environments){ 0 };
    if (code != PL_OK)
        return code;
    out->at = PL_NEW(mem, ch_environment, n + 1);
    if (out->at == NULL)
        return pl_fail(err, PL_ENOMEM, "%d environments", n);
    for (int32_t k = 0; k < n; k++)
        out->at[k] = (ch_environment){ (uint32_t)circle[k].value, 1 };
    qsort(out->at, (size_t)n, sizeof *out->at, by_id);
    out->n = join_equal(out->at, n);
    return PL_OK;
}

void ch_environments_fold(uint32_t count[CH_FINGERPRINT_BITS], const ch_environments *all)
{
    for (int32_t k = 0; k < CH_FINGERPRINT_BITS; k++)
        count[k] = 0;
    for (int32_t k = 0; k < all->n; k++)
        count[all->at[k].id % CH_FINGERPRINT_BITS] += all->at[k].count;
}
