/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the members of a family: refused, or every prediction and explanation reads and writes inside its arrays. */
#include <stdint.h>
#include <stdlib.h>

#include "family_toy.h"
#include "models/files/members.h"

enum { MOLECULES = 5 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A part is not looked at: sums of any numbers may overflow. */
static void explain(const nn_members *m, const nn_table *x, pl_arena *mem)
{
    for (int32_t k = 0; k < m->n; k++)
        for (int32_t row = 0; row < 2; row++) {
            nn_parts parts;
            if (m->at[k].kind->explain == NULL || m->at[k].kind->explain(m->at[k].one[0], x, row, &parts, mem, NULL) != PL_OK)
                continue;
            if (parts.feature == NULL || parts.environment == NULL || parts.column == NULL)
                abort();
        }
}

/* What is read can be saved and read again. */
static void save(const nn_members *m, pl_arena *mem)
{
    nn_tensor *tensor;
    const char **json;
    int n = 0;

    if (nn_members_tensors(&tensor, &n, &json, m, mem, NULL) != PL_OK || n < 1 || nn_members_text(m, json, mem) == NULL)
        abort();
    for (int k = 0; k < n; k++)
        if (!nn_members_has(m, tensor[k].name))
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pl_arena *mem = pl_arena_new(0);
    nn_tensors *all;
    nn_members m;
    nn_member_outputs y;
    family_toy toy;
    const char *text;

    if (mem == NULL || !family_toy_make(&toy, MOLECULES, 7, mem))
        abort();
    if (nn_tensors_parse(&all, (pl_bytes){ data, size }, mem, NULL) == PL_OK && (text = nn_tensors_meta(all, "family")) != NULL &&
        nn_members_take(&m, 1, text, all, mem, NULL) == PL_OK) {
        save(&m, mem);
        if (nn_members_predict(&y, &m, &toy.x, mem, NULL) == PL_OK)
            explain(&m, &toy.x, mem);
        for (int32_t k = 0; k < m.n; k++)
            (void)m.at[k].kind->describe(m.at[k].one[0], mem);
    }
    pl_arena_free(mem);
    return 0;
}
