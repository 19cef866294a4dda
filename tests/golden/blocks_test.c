/* SPDX-License-Identifier: Apache-2.0 */
/* The message for each changed word of a block of molecules, graphs or bases, with a corrected checksum, against
 * golden/blocks.txt; and for impossible graphs and molecules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chem/graph/graph_block.h"
#include "chem/molecule/block_header.h"
#include "chem/molecule/codec.h"
#include "golden/golden_text.h"
#include "made_mol.h"
#include "models/features/feature.h"

enum { N = 3 };

#define DONE(call)                    \
    do {                              \
        pl_error why = { 0 };         \
        if (call)                     \
            fail_msg("%s", why.text); \
    } while (0)

/* One kind of block: the good bytes, and the result of reading changed ones. */
typedef struct kind {
    const char *name;
    pl_code (*read)(const struct kind *k, pl_bytes in, int64_t *sum, pl_arena *mem, pl_error *err);
    pl_bytes good;
    const ch_graph_block *graphs;
} kind;

static pl_code molecules_read(const kind *k, pl_bytes in, int64_t *sum, pl_arena *mem, pl_error *err)
{
    ch_block_item *item;
    int32_t n;
    pl_code code = ch_block_unpack(&item, &n, in, mem, err);

    (void)k;
    for (int32_t i = 0; code == PL_OK && i < n; i++)
        *sum = *sum * 31 + item[i].id + item[i].mol.n_atoms + 5 * item[i].mol.n_bonds;
    return code;
}

static pl_code graphs_read(const kind *k, pl_bytes in, int64_t *sum, pl_arena *mem, pl_error *err)
{
    ch_graph_block b;
    pl_code code = ch_graph_block_unpack(&b, in, mem, err);

    (void)k;
    for (int32_t i = 0; code == PL_OK && i < b.n; i++)
        *sum = *sum * 31 + b.id[i] + b.graph[i].n_nodes + 5 * b.graph[i].n_edges + 7 * b.graph[i].n_pairs;
    return code;
}

static pl_code bases_read(const kind *k, pl_bytes in, int64_t *sum, pl_arena *mem, pl_error *err)
{
    nn_basis_block b;
    pl_code code = nn_basis_unpack(&b, in, k->graphs, mem, err);

    if (code == PL_OK)
        *sum = b.n + 10 * b.width + 1000 * b.max_degree + 10000 * (int)b.kind;
    return code;
}

static void read_say(pl_text *out, const kind *k, pl_bytes in, const char *what)
{
    static char before[500];
    pl_arena *mem = pl_arena_new(1 << 14);
    pl_error err = { 0 };
    char said[500];
    int64_t sum = 0;
    const pl_code code = k->read(k, in, &sum, mem, &err);

    if (code != PL_OK)
        (void)snprintf(said, sizeof said, "%d %s", (int)code, err.text);
    else
        (void)snprintf(said, sizeof said, "read, sum %lld", (long long)sum);
    pl_text_addf(out, "%s: %s\n", what, strcmp(said, before) == 0 ? "the same" : said);
    strcpy(before, said);
    pl_arena_free(mem);
}

static void words_say(pl_text *out, const kind *k, pl_arena *mem)
{
    static const char *const how[] = { "0", "1", "all bits", "one more", "one less", "largest" };
    unsigned char *bad = PL_NEW(mem, unsigned char, k->good.len + 8);
    ch_block_header seal;

    pl_text_addf(out, "== %s, %zu bytes\n", k->name, k->good.len);
    memcpy(&seal, k->good.data, sizeof seal);
    for (size_t at = 12; at + 4 <= k->good.len; at += at < 400 ? 4 : 44)
        for (int h = 0; h < 6; h++) {
            uint32_t word;
            char what[60];
            memcpy(bad, k->good.data, k->good.len);
            memcpy(&word, bad + at, 4);
            word = (const uint32_t[]){ 0, 1, UINT32_MAX, word + 1, word - 1, INT32_MAX }[h];
            memcpy(bad + at, &word, 4);
            ch_block_header_put(bad, k->good.len, seal.magic, seal.version);
            (void)snprintf(what, sizeof what, "%zu %s", at, how[h]);
            read_say(out, k, (pl_bytes){ bad, k->good.len }, what);
        }
    memcpy(bad, k->good.data, k->good.len);
    ch_block_header_put(bad, k->good.len, "none", seal.version);
    read_say(out, k, (pl_bytes){ bad, k->good.len }, "another magic");
    ch_block_header_put(bad, k->good.len, seal.magic, seal.version + 1);
    read_say(out, k, (pl_bytes){ bad, k->good.len }, "another version");
    ch_block_header_put(bad, k->good.len - 8, seal.magic, seal.version);
    read_say(out, k, (pl_bytes){ bad, k->good.len - 8 }, "shorter");
    ch_block_header_put(bad, k->good.len + 8, seal.magic, seal.version);
    read_say(out, k, (pl_bytes){ bad, k->good.len + 8 }, "longer");
    for (size_t n = 0; n < 48; n += 4)
        read_say(out, k, (pl_bytes){ k->good.data, n }, "the first bytes");
}

static void what_is_said_of_changed_blocks_is_known(void **state)
{
    pl_arena *mem = pl_arena_new(1 << 16);
    const ch_graph_opts opts = { .cutoff = 2.5f };
    ch_block_item item[N];
    ch_graph graph[N];
    ch_graph_block graphs;
    int64_t id[N];
    kind k = { "molecules", molecules_read, { 0 }, NULL };
    pl_text out = { 0 };
    (void)state;

    for (int32_t i = 0; i < N; i++) {
        id[i] = item[i].id = 10 + i;
        item[i].mol = made_mol(2 + i, 9, (uint64_t)i + 1, mem);
        DONE(ch_graph_build(&graph[i], &item[i].mol, &opts, mem, &why));
    }
    item[1].mol.isotope = PL_NEW(mem, uint16_t, item[1].mol.n_atoms);
    item[2].mol.xyz = NULL;
    DONE(ch_block_pack(&k.good, item, N, mem, &why));
    words_say(&out, &k, mem);
    k = (kind){ "graphs", graphs_read, { 0 }, NULL };
    DONE(ch_graph_block_pack(&k.good, id, graph, N, mem, &why));
    words_say(&out, &k, mem);
    DONE(ch_graph_block_unpack(&graphs, k.good, mem, &why));
    for (int b = 0; b < NN_BASIS_NONE; b++) {
        k = (kind){ nn_basis_name((nn_basis_kind)b), bases_read, { 0 }, &graphs };
        DONE(nn_basis_pack(&k.good, (nn_basis_kind)b, 2, &graphs, mem, &why));
        words_say(&out, &k, mem);
    }
    golden_check(MOLSIEVE_TESTS "/golden/blocks.txt", &out);
    pl_arena_free(mem);
}

/* ---- graphs and molecules that are refused ---------------------------------------------------------- */

static void graph_refused(const ch_mol *m, const ch_graph_opts *o, const char *said)
{
    pl_arena *mem = pl_arena_new(1 << 14);
    pl_error err = { 0 };
    ch_graph g;
    const pl_code code = ch_graph_build(&g, m, o, mem, &err);

    assert_string_equal(err.text, said);
    assert_int_equal(code == PL_OK, said[0] == '\0');
    pl_arena_free(mem);
}

static void what_is_said_of_molecules_without_a_graph_is_known(void **state)
{
    pl_arena *mem = pl_arena_new(1 << 14);
    ch_mol m = made_mol(5, 9, 1, mem), none, flat = m, near = m;
    float xyz[5][3];
    pl_error err = { 0 };
    pl_bytes bytes;
    (void)state;

    DONE(ch_mol_alloc(&none, 0, 0, mem, &why));
    flat.xyz = NULL;
    memcpy(xyz, m.xyz, sizeof xyz);
    memcpy(xyz[4], xyz[1], sizeof xyz[4]);
    near.xyz = xyz;
    graph_refused(&m, &(ch_graph_opts){ .cutoff = 9 }, "");
    graph_refused(&flat, &(ch_graph_opts){ .cutoff = 9 }, "geometry: the molecule has no 3D positions");
    graph_refused(&none, &(ch_graph_opts){ .cutoff = 9 }, "atoms: the molecule has none");
    graph_refused(&m, &(ch_graph_opts){ .cutoff = 9, .max_atoms = 5 }, "");
    graph_refused(&m, &(ch_graph_opts){ .cutoff = 9, .max_atoms = 4 }, "atoms: 5, more than max_atoms 4");
    graph_refused(&m, &(ch_graph_opts){ .edges = CH_EDGES_FULL, .max_edges = 20 }, "");
    graph_refused(&m, &(ch_graph_opts){ .edges = CH_EDGES_FULL, .max_edges = 19 }, "edges: 20, more than max_edges 19");
    graph_refused(&m, &(ch_graph_opts){ .cutoff = 9, .max_edges = 20 }, "");
    graph_refused(&m, &(ch_graph_opts){ .cutoff = 9, .max_edges = 19 }, "edges: more than 19 within 9 Angstrom");
    graph_refused(&m, &(ch_graph_opts){ .edges = CH_EDGES_BONDS, .max_edges = 8 }, "");
    graph_refused(&m, &(ch_graph_opts){ .edges = CH_EDGES_BONDS, .max_edges = 7 }, "edges: 8, more than max_edges 7");
    graph_refused(&m, &(ch_graph_opts){ .edges = CH_EDGES_BONDS_RADIUS, .cutoff = 0.02f, .max_edges = 8 }, "");
    graph_refused(&m, &(ch_graph_opts){ .edges = CH_EDGES_BONDS_RADIUS, .cutoff = 0.02f, .max_edges = 7 },
                  "edges: 8, more than max_edges 7");
    graph_refused(&m, &(ch_graph_opts){ .cutoff = 9, .max_neighbours = 2, .max_edges = 7 }, "edges: 8, more than max_edges 7");
    for (int edges = CH_EDGES_RADIUS; edges <= CH_EDGES_BONDS_RADIUS; edges++)
        if (edges != CH_EDGES_TOPOLOGY)
            graph_refused(&near, &(ch_graph_opts){ .edges = (ch_edges)edges, .cutoff = 9, .k = 2 },
                          "coincide: atoms 2 and 5 are closer than 0.01 Angstrom");
    assert_int_equal(ch_mol_alloc(&none, -1, 0, mem, &err), PL_EINPUT);
    assert_string_equal(err.text, "a molecule of -1 atoms and 0 bonds");
    assert_int_equal(ch_mol_alloc(&none, CH_MOL_MAX_ATOMS + 1, 0, mem, NULL), PL_EINPUT);
    assert_int_equal(ch_mol_alloc(&none, 1, CH_MOL_MAX_BONDS + 1, mem, NULL), PL_EINPUT);
    assert_int_equal(ch_mol_alloc(&none, 1, -1, mem, NULL), PL_EINPUT);
    assert_int_equal(nn_basis_pack(&bytes, NN_BASIS_NONE, 2, &(ch_graph_block){ 0 }, mem, &err), PL_EBUG);
    assert_string_equal(err.text, "bases of kind 4, degree 2");
    assert_int_equal(nn_basis_pack(&bytes, NN_BASIS_SH_F32, 5, &(ch_graph_block){ 0 }, mem, &err), PL_EBUG);
    assert_string_equal(err.text, "bases of kind 2, degree 5");
    assert_int_equal(nn_basis_pack(&bytes, NN_BASIS_SH_F32, -1, &(ch_graph_block){ 0 }, mem, &err), PL_EBUG);
    pl_arena_free(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_said_of_changed_blocks_is_known),
        cmocka_unit_test(what_is_said_of_molecules_without_a_graph_is_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
