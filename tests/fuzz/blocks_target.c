/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a block of features.db, with a corrected checksum so that the checks behind
 * it are reached: EDATA, or molecules, graphs and numbers that pass their checks. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "chem/features/features.h"
#include "chem/molecule/codec.h"
#include "made_mol.h"
#include "models/features/feature.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CRC_AT = 8, CRC_FROM = 12, GRAPHS_CRC_AT = 28, N_GRAPHS = 3 };

static ch_graph_block *made_graphs(void)
{
    static ch_graph_block block;
    static pl_arena *mem;
    ch_graph graph[N_GRAPHS];
    int64_t id[N_GRAPHS];
    pl_bytes bytes;

    if (mem != NULL)
        return &block;
    mem = pl_arena_new(1 << 16);
    for (int32_t i = 0; i < N_GRAPHS; i++) {
        ch_mol m = made_mol(2 + 3 * i, 9, (uint64_t)i, mem);
        ch_graph_opts o = { .edges = CH_EDGES_RADIUS, .cutoff = 3, .k = 2 };
        id[i] = i + 1;
        if (ch_graph_build(&graph[i], &m, &o, mem, NULL) != PL_OK)
            abort();
    }
    if (ch_graph_block_pack(&bytes, id, graph, N_GRAPHS, mem, NULL) != PL_OK ||
        ch_graph_block_unpack(&block, bytes, mem, NULL) != PL_OK)
        abort();
    return &block;
}

static void read_molecules(pl_bytes in, pl_arena *mem)
{
    ch_block_item *item;
    int32_t n = 0;
    pl_code code = ch_block_unpack(&item, &n, in, mem, NULL);

    for (int32_t i = 0; code == PL_OK && i < n; i++)
        if (ch_mol_check(&item[i].mol, NULL) != PL_OK)
            abort();
}

static void read_graphs(pl_bytes in, pl_arena *mem)
{
    ch_graph_block b;
    pl_code code = ch_graph_block_unpack(&b, in, mem, NULL);

    for (int32_t g = 0; code == PL_OK && g < b.n; g++) {
        ch_environments e;
        float x[CH_N_FEATURES];
        if (ch_graph_check(&b.graph[g], NULL) != PL_OK || ch_features_of(x, &b.graph[g], mem, NULL) != PL_OK ||
            ch_environments_of(&e, &b.graph[g], mem, NULL) != PL_OK)
            abort();
        for (int k = 0; k < CH_N_FEATURES; k++)
            if (!isfinite(x[k]))
                abort();
    }
}

static void read_bases(pl_bytes in, pl_arena *mem)
{
    volatile double sum = 0;
    nn_basis_block b;

    if (nn_basis_unpack(&b, in, made_graphs(), mem, NULL) != PL_OK)
        return;
    for (uint64_t i = 0; i < b.at[b.n] * (uint64_t)b.width; i++)
        sum = sum + (b.f32 != NULL ? (double)b.f32[i] : (double)b.q15[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned char *exact = malloc(size ? size : 1);
    pl_arena *mem = pl_arena_new(1 << 12);
    pl_bytes in = { exact, size };
    uint32_t crc;

    if (exact == NULL || mem == NULL)
        abort();
    if (size > 0)
        memcpy(exact, data, size);
    if (size >= 40 && exact[2] == 'B' && exact[3] == 'B')
        memcpy(exact + GRAPHS_CRC_AT, &made_graphs()->crc, 4);
    if (size >= CRC_FROM) {
        crc = (uint32_t)crc32_z(0, exact + CRC_FROM, size - CRC_FROM);
        memcpy(exact + CRC_AT, &crc, 4);
    }
    read_molecules(in, mem);
    read_graphs(in, mem);
    read_bases(in, mem);
    free(exact);
    pl_arena_free(mem);
    return 0;
}
