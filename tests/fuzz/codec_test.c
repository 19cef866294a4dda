/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of molecules: round trips, the documented layout, and damage with a
 * corrected checksum. The promise of the header is the oracle. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#include "chem/molecule/codec.h"
#include "made_mol.h"

enum { CRC_AT = 8, CRC_FROM = 12, N = 4, ROUNDS = 20000 };

static pl_arena *mem;
static ch_block_item made[N];

/* A molecule without positions, one with one atom, one with none, and an ordinary one. */
static int make(void **state)
{
    static const int32_t atoms[N] = { 6, 1, 0, 11 };

    (void)state;
    mem = pl_arena_new(1 << 16);
    for (int32_t i = 0; i < N; i++) {
        made[i].id = 1000000000000 + i;
        made[i].mol = made_mol(atoms[i], 9, (uint64_t)i, mem);
    }
    made[0].mol.xyz = NULL;
    made[3].mol.isotope = pl_arena_get(mem, 11, sizeof(uint16_t));
    made[3].mol.isotope[2] = 13;
    made[3].mol.isotope[10] = CH_MASS_MAX;
    return 0;
}

static int drop(void **state)
{
    (void)state;
    pl_arena_free(mem);
    return 0;
}

static pl_bytes packed(int32_t n)
{
    pl_bytes bytes;

    assert_int_equal(ch_block_pack(&bytes, made, n, mem, NULL), PL_OK);
    return bytes;
}

static void same_mol(const ch_mol *a, const ch_mol *b)
{
    size_t n = (size_t)a->n_atoms, m = (size_t)a->n_bonds;

    assert_int_equal(a->n_atoms, b->n_atoms);
    assert_int_equal(a->n_bonds, b->n_bonds);
    assert_int_equal(a->xyz == NULL, b->xyz == NULL);
    assert_memory_equal(a->z, b->z, n);
    assert_memory_equal(a->charge, b->charge, n);
    assert_memory_equal(a->bond, b->bond, 8 * m);
    assert_memory_equal(a->order, b->order, m);
    if (a->xyz != NULL)
        assert_memory_equal(a->xyz, b->xyz, 12 * n);
    assert_int_equal(a->isotope == NULL, b->isotope == NULL);
    if (a->isotope != NULL)
        assert_memory_equal(a->isotope, b->isotope, 2 * n);
}

static void a_block_gives_back_its_molecules(void **state)
{
    (void)state;
    for (int32_t n = 0; n <= N; n++) {
        pl_bytes a = packed(n), b = packed(n);
        ch_block_item *item;
        int32_t got;
        assert_int_equal(a.len, b.len);
        assert_memory_equal(a.data, b.data, a.len);
        assert_int_equal(ch_block_unpack(&item, &got, a, mem, NULL), PL_OK);
        assert_int_equal(got, n);
        for (int32_t i = 0; i < n; i++) {
            assert_true(item[i].id == made[i].id);
            same_mol(&item[i].mol, &made[i].mol);
        }
    }
}

static void the_bytes_are_those_of_the_header_comment(void **state)
{
    const unsigned char *b = packed(N).data;
    uint32_t n, bytes, offset;
    int64_t id;
    int32_t n_atoms;
    float x;
    uint16_t mass;
    (void)state;
    assert_memory_equal(b, "MSCB\1\0\0\0", 8);
    memcpy(&n, b + 12, 4);
    memcpy(&bytes, b + 16, 4);
    memcpy(&id, b + 24 + 8 * 3, 8);
    memcpy(&offset, b + 24 + 8 * N + 4 * 3, 4);
    assert_int_equal(n, N);
    assert_int_equal(bytes, packed(N).len);
    assert_true(id == made[3].id);
    assert_int_equal(offset % 4, 0);
    memcpy(&n_atoms, b + offset, 4);
    memcpy(&x, b + offset + 12, 4);
    assert_int_equal(n_atoms, 11);
    assert_true(x == made[3].mol.xyz[0][0]);
    assert_memory_equal(b + offset + 8, "\1\1\0\0", 4);
    memcpy(&mass, b + offset + 12 + 14 * 11 + 9 * (size_t)made[3].mol.n_bonds + 2 * 10, 2);
    assert_int_equal(mass, CH_MASS_MAX);
}

static void a_shortened_block_or_a_flipped_bit_is_refused(void **state)
{
    pl_bytes good = packed(N);
    pl_arena *turn = pl_arena_new(1 << 16);
    ch_block_item *item;
    int32_t n;
    (void)state;
    for (size_t len = 0; len < good.len; len++) {
        unsigned char *copy = malloc(len + 1);
        memcpy(copy, good.data, len);
        assert_int_equal(ch_block_unpack(&item, &n, (pl_bytes){ copy, len }, turn, NULL), PL_EDATA);
        free(copy);
    }
    unsigned char *bad = malloc(good.len);
    memcpy(bad, good.data, good.len);
    for (size_t bit = 0; bit < 8 * good.len; bit++) {
        bad[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_int_equal(ch_block_unpack(&item, &n, (pl_bytes){ bad, good.len }, turn, NULL), PL_EDATA);
        bad[bit / 8] ^= (unsigned char)(1u << bit % 8);
        pl_arena_reset(turn);
    }
    free(bad);
    pl_arena_free(turn);
}

static void mutate(unsigned char *b, size_t len, pl_rng *r)
{
    static const uint32_t nasty[] = { 0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 0x7fc00000, 1 << 20 };
    uint32_t x = nasty[pl_rng_below(r, sizeof nasty / sizeof *nasty)], crc;
    size_t at = pl_rng_below(r, len - 4);

    if (pl_rng_below(r, 2) == 0)
        b[at] = (unsigned char)pl_rng_below(r, 256);
    else
        memcpy(b + at / 4 * 4, &x, 4);
    crc = (uint32_t)crc32_z(0, b + CRC_FROM, (z_size_t)(len - CRC_FROM));
    memcpy(b + CRC_AT, &crc, 4);
}

static void damaged_molecules_are_refused_or_whole(void **state)
{
    pl_bytes good = packed(N);
    pl_arena *turn = pl_arena_new(0);
    unsigned char *bad = malloc(good.len);
    int refused = 0;
    (void)state;
    for (uint64_t k = 0; k < ROUNDS; k++) {
        pl_rng r = pl_rng_at(11, k, 0);
        ch_block_item *item;
        int32_t n = 0;
        memcpy(bad, good.data, good.len);
        mutate(bad, good.len, &r);
        pl_code code = ch_block_unpack(&item, &n, (pl_bytes){ bad, good.len }, turn, NULL);
        assert_true(code == PL_OK || code == PL_EDATA);
        refused += code == PL_EDATA;
        for (int32_t i = 0; code == PL_OK && i < n; i++)
            assert_int_equal(ch_mol_check(&item[i].mol, NULL), PL_OK);
        pl_arena_reset(turn);
    }
    assert_true(refused > ROUNDS / 4 && refused < ROUNDS);
    free(bad);
    pl_arena_free(turn);
}

static void a_refused_allocation_is_reported(void **state)
{
    pl_bytes good = packed(N), again;
    pl_arena *turn = pl_arena_new(0);
    pl_code code = PL_ENOMEM;
    long nth = 1;
    (void)state;
    for (; code == PL_ENOMEM && nth < 100; nth++) {
        ch_block_item *item;
        int32_t n;
        pl_arena_refuse(nth);
        code = ch_block_unpack(&item, &n, good, turn, NULL);
        if (code == PL_OK)
            code = ch_block_pack(&again, item, n, turn, NULL);
        if (code == PL_OK)
            assert_null(pl_arena_get(turn, 1, 1)); /* none was refused so far */
        pl_arena_refuse(0);
        pl_arena_reset(turn);
    }
    assert_int_equal(code, PL_OK);
    assert_true(nth > 20);
    pl_arena_free(turn);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_block_gives_back_its_molecules, make, drop),
        cmocka_unit_test_setup_teardown(the_bytes_are_those_of_the_header_comment, make, drop),
        cmocka_unit_test_setup_teardown(a_shortened_block_or_a_flipped_bit_is_refused, make, drop),
        cmocka_unit_test_setup_teardown(damaged_molecules_are_refused_or_whole, make, drop),
        cmocka_unit_test_setup_teardown(a_refused_allocation_is_reported, make, drop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
