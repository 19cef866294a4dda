/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an answer of the chemistry worker give a molecule that passes its check, or a code other than ok. */
#include <stdint.h>
#include <stdlib.h>

#include "chem/worker/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile size_t sum; /* so that the compiler keeps the reads */

static size_t letters(const char *s, size_t n)
{
    size_t all = 0;
    while (n > 0)
        all += (unsigned char)s[--n];
    return all;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ch_wire in = ch_wire_of((const char *)data, size);
    pl_arena *mem = pl_arena_new(1 << 12);
    const ch_mol *other;
    int32_t n_other;
    ch_mol mol;
    size_t n;

    if (mem == NULL)
        abort();
    sum = ch_wire_u32(&in) + (size_t)ch_wire_i32(&in) + (ch_wire_f64(&in) > 0);
    for (int i = 0; i < 7; i++) { /* as worker_client.c reads an answer to prepare */
        const char *s = ch_wire_str(&in, &n);
        sum += letters(s, n);
    }
    for (int i = 0; i < 9; i++)
        sum += (size_t)ch_wire_i32(&in);
    for (int i = 0; i < 4; i++)
        sum += ch_wire_f64(&in) > 0;
    if (ch_wire_mol(&mol, &in, mem, NULL) == PL_OK && (!in.ok || ch_mol_check(&mol, NULL) != PL_OK))
        abort();
    if (ch_wire_mols(&other, &n_other, &in, mem, NULL) == PL_OK) /* an answer to build has them */
        for (int32_t i = 0; i < n_other; i++)
            if (!in.ok || ch_mol_check(&other[i], NULL) != PL_OK)
                abort();
    if (in.at > in.end)
        abort();
    pl_arena_free(mem);
    return 0;
}
