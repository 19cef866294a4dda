/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a molecular graph get types, finite terms and charges that add up, or are refused with a reason. */
#include <stdlib.h>

#include "mmff_graph.h"
#include "mmff_suite.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static ch_mmff mmff;
    static pl_arena *tables;
    pl_arena *mem = pl_arena_new(0);

    if (tables == NULL) {
        tables = pl_arena_new(1 << 18);
        if (tables == NULL || ch_mmff_read(&mmff, suite_tables(), tables, NULL) != PL_OK)
            abort();
    }
    if (mem == NULL)
        abort();
    const ch_mol mol = graph_molecule(data, size, mem);
    if (mol.n_atoms > 0)
        (void)graph_check(&mol, &mmff, mem);
    pl_arena_free(mem);
    return 0;
}
