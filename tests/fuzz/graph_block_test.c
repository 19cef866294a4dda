/* SPDX-License-Identifier: Apache-2.0 */
/* Damaged blocks of graphs and bases, with a corrected checksum so that
 * the damage reaches the checks behind it. The promise of the headers is the
 * oracle: EDATA, or data that passes its own check. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#include <math.h>

#include "chem/features/features.h"
#include "made_mol.h"
#include "models/features/feature.h"

enum { CRC_AT = 8, CRC_FROM = 12, N_GRAPHS = 3, ROUNDS = 20000 };

static void mutate(unsigned char *b, size_t len, pl_rng *r)
{
    static const uint32_t nasty[] = { 0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 65535, 0x7fc00000 };
    int times = 1 + (int)pl_rng_below(r, 3);

    while (times-- > 0) {
        size_t at = pl_rng_below(r, len - 4);
        uint32_t x = nasty[pl_rng_below(r, sizeof nasty / sizeof *nasty)];
        switch (pl_rng_below(r, 3)) {
        case 0: b[at] ^= (unsigned char)(1u << pl_rng_below(r, 8)); break;
        case 1: memcpy(b + at / 4 * 4, &x, 4); break;
        default: b[at] = (unsigned char)pl_rng_below(r, 256); break;
        }
    }
}

static void mend_crc(unsigned char *b, size_t len)
{
    uint32_t crc = (uint32_t)crc32_z(0, b + CRC_FROM, (z_size_t)(len - CRC_FROM));

    memcpy(b + CRC_AT, &crc, 4);
}

static pl_bytes graphs_made(bool flat, pl_arena *mem)
{
    ch_graph graph[N_GRAPHS];
    int64_t id[N_GRAPHS];
    pl_bytes bytes;

    for (int32_t i = 0; i < N_GRAPHS; i++) {
        ch_mol m = made_mol(2 + 3 * i, 9, (uint64_t)i, mem);
        ch_graph_opts o = { .edges = i % 2 ? CH_EDGES_KNN : CH_EDGES_RADIUS, .cutoff = 3, .k = 2 };
        if (flat)
            o.edges = CH_EDGES_TOPOLOGY;
        id[i] = i + 1;
        assert_int_equal(ch_graph_build(&graph[i], &m, &o, mem, NULL), PL_OK);
    }
    assert_int_equal(ch_graph_block_pack(&bytes, id, graph, N_GRAPHS, mem, NULL), PL_OK);
    return bytes;
}

/* What passes the check can be described. */
static void graph_is_whole(const ch_graph *g, pl_arena *mem)
{
    float x[CH_N_FEATURES];
    ch_environments e;

    assert_int_equal(ch_graph_check(g, NULL), PL_OK);
    assert_int_equal(ch_features_of(x, g, mem, NULL), PL_OK);
    assert_int_equal(ch_environments_of(&e, g, mem, NULL), PL_OK);
    for (int k = 0; k < CH_N_FEATURES; k++)
        assert_true(isfinite(x[k]));
}

static void damage(bool flat)
{
    pl_arena *mem = pl_arena_new(1 << 16), *turn = pl_arena_new(0);
    pl_bytes good = graphs_made(flat, mem);
    unsigned char *bad = malloc(good.len);
    int refused = 0;

    for (uint64_t k = 0; k < ROUNDS; k++) {
        pl_rng r = pl_rng_at(7, k, 0);
        ch_graph_block b;
        memcpy(bad, good.data, good.len);
        mutate(bad, good.len, &r);
        mend_crc(bad, good.len);
        pl_code code = ch_graph_block_unpack(&b, (pl_bytes){ bad, good.len }, turn, NULL);
        assert_true(code == PL_OK || code == PL_EDATA);
        refused += code == PL_EDATA;
        for (int32_t g = 0; code == PL_OK && g < b.n; g++)
            graph_is_whole(&b.graph[g], turn);
        pl_arena_reset(turn);
    }
    assert_true(refused > ROUNDS / 2);
    free(bad);
    pl_arena_free(turn);
    pl_arena_free(mem);
}

static void damaged_graphs_are_refused_or_whole(void **state)
{
    (void)state;
    damage(false);
    damage(true);
}

/* Flips every bit in turn; `graphs` NULL: a block of graphs, else one of their bases. */
static void flip_every_bit(pl_bytes good, const ch_graph_block *graphs)
{
    pl_arena *turn = pl_arena_new(1 << 16);
    unsigned char *bad = malloc(good.len);
    ch_graph_block g;
    nn_basis_block b;

    memcpy(bad, good.data, good.len);
    for (size_t bit = 0; bit < 8 * good.len; bit++) {
        pl_bytes in = { bad, good.len };
        bad[bit / 8] ^= (unsigned char)(1u << bit % 8);
        pl_code code = graphs == NULL ? ch_graph_block_unpack(&g, in, turn, NULL) : nn_basis_unpack(&b, in, graphs, turn, NULL);
        assert_int_equal(code, PL_EDATA);
        bad[bit / 8] ^= (unsigned char)(1u << bit % 8);
        pl_arena_reset(turn);
    }
    free(bad);
    pl_arena_free(turn);
}

static void one_flipped_bit_is_found_by_the_checksum(void **state)
{
    pl_arena *mem = pl_arena_new(1 << 16);
    pl_bytes good = graphs_made(false, mem), bases;
    ch_graph_block graphs;
    (void)state;
    flip_every_bit(good, NULL);
    assert_int_equal(ch_graph_block_unpack(&graphs, good, mem, NULL), PL_OK);
    assert_int_equal(nn_basis_pack(&bases, NN_BASIS_SH_F32, 1, &graphs, mem, NULL), PL_OK);
    flip_every_bit(bases, &graphs);
    pl_arena_free(mem);
}

/* Counts of the header that promise more than the bytes hold. */
static void counts_that_do_not_fit_are_refused(void **state)
{
    pl_arena *mem = pl_arena_new(1 << 16);
    pl_bytes good = graphs_made(false, mem);
    unsigned char *bad = malloc(good.len);
    (void)state;
    for (size_t at = 12; at < 48; at += 4)
        for (uint32_t add = 1; add <= 64; add *= 8) {
            ch_graph_block b;
            uint32_t x;
            memcpy(bad, good.data, good.len);
            memcpy(&x, bad + at, 4);
            x += add;
            memcpy(bad + at, &x, 4);
            mend_crc(bad, good.len);
            pl_error err = { 0 };
            assert_int_equal(ch_graph_block_unpack(&b, (pl_bytes){ bad, good.len }, mem, &err), PL_EDATA);
            if (strstr(err.text, "sizes do not fit") == NULL)
                fail_msg("%s", err.text);
        }
    free(bad);
    pl_arena_free(mem);
}

static void damaged_bases_are_refused_or_whole(void **state)
{
    pl_arena *mem = pl_arena_new(1 << 16), *turn = pl_arena_new(0);
    ch_graph_block graphs;
    pl_bytes good;
    unsigned char *bad;
    (void)state;
    assert_int_equal(ch_graph_block_unpack(&graphs, graphs_made(false, mem), mem, NULL), PL_OK);
    assert_int_equal(nn_basis_pack(&good, NN_BASIS_SH_F32, 0, &graphs, mem, NULL), PL_OK);
    bad = malloc(good.len);
    for (uint64_t k = 0; k < ROUNDS; k++) {
        pl_rng r = pl_rng_at(9, k, 0);
        nn_basis_block b;
        memcpy(bad, good.data, good.len);
        mutate(bad, good.len, &r);
        mend_crc(bad, good.len);
        pl_code code = nn_basis_unpack(&b, (pl_bytes){ bad, good.len }, &graphs, turn, NULL);
        assert_true(code == PL_OK || code == PL_EDATA);
        if (code == PL_OK) /* every number the index promises can be read */
            for (uint64_t i = 0; i < b.at[b.n] * (uint64_t)b.width; i++)
                assert_true(b.f32[i] == b.f32[i] || b.f32[i] != b.f32[i]);
        pl_arena_reset(turn);
    }
    free(bad);
    pl_arena_free(turn);
    pl_arena_free(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_graphs_are_refused_or_whole),
        cmocka_unit_test(one_flipped_bit_is_found_by_the_checksum),
        cmocka_unit_test(counts_that_do_not_fit_are_refused),
        cmocka_unit_test(damaged_bases_are_refused_or_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
