/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation on the way from a molecule to its structures is refused in turn: ENOMEM each time, never a crash or another reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "chem/structures/mmff.h"
#include "chem/structures/perceive.h"
#include "chem/structures/structure.h"
#include "mmff_suite.h"
#include "sdf_mol.h"
#include "tests/told.h"

enum { MAX = 12 };

static pl_arena *mem;
static sdf_mol all[MAX];
static int32_t n_all;
static ch_stereo stereo[MAX];
static ch_mmff tables;

static int make(void **state)
{
    (void)state;
    mem = pl_arena_new(1 << 20);
    n_all = sdf_read_terms(all, MAX, 8, MOLSIEVE_TESTS, mem);
    for (int32_t k = 0; k < n_all; k++)
        stereo[k] = sdf_stereo(&all[k].mol, mem);
    return n_all > 8 && ch_mmff_read(&tables, suite_tables(), mem, NULL) == PL_OK ? 0 : -1;
}

static int drop(void **state)
{
    (void)state;
    pl_arena_free(mem);
    return 0;
}

static pl_code terms_of(const sdf_mol *m, pl_arena *turn, pl_error *err)
{
    const ch_mmff_options o = { .cumulenes = true };
    ch_terms terms;

    return ch_terms_make(&terms, &m->mol, &tables, &o, turn, err);
}

static pl_code structures_of(const sdf_mol *m, pl_arena *turn, pl_error *err)
{
    const ch_structure_options o = { .seed = 1, .count = 2, .window = 50 };
    ch_structures out;

    return ch_structure_build(&out, &m->mol, &stereo[m - all], &m->terms, &o, turn, turn, err);
}

/* The number of the first request that may be the last: with it, the work ends well. */
static long refuse_in_turn(const sdf_mol *m, pl_code (*way)(const sdf_mol *, pl_arena *, pl_error *), pl_arena *turn)
{
    pl_code code = PL_ENOMEM;
    long nth = 1;

    for (; code != PL_OK && nth < 5000; nth++) {
        pl_error err = { 0 };
        pl_arena_refuse(nth);
        code = way(m, turn, &err);
        if (code == PL_OK)
            assert_null(pl_arena_get(turn, 1, 1)); /* none was refused so far */
        pl_arena_refuse(0);
        pl_arena_reset(turn);
        assert_true(code == PL_OK || code == PL_ENOMEM);
        if (!tells_for_what(err.text))
            fail_msg("request %ld: \"%s\"", nth, err.text);
    }
    assert_int_equal(code, PL_OK);
    return nth;
}

static void a_refused_allocation_is_reported(void **state)
{
    pl_arena *turn = pl_arena_new(1 << 16);

    (void)state;
    for (int32_t k = 0; k < n_all; k += 4) {
        assert_true(refuse_in_turn(&all[k], terms_of, turn) > 10);
        assert_true(refuse_in_turn(&all[k], structures_of, turn) > 20);
    }
    pl_arena_free(turn);
}

/* Eight carbons in two halves, each bonded to all of the other half: 36 rings of four, and room was made for 20. */
static ch_mol two_halves(void)
{
    ch_mol mol;

    assert_int_equal(ch_mol_alloc(&mol, 8, 16, mem, NULL), PL_OK);
    for (int32_t b = 0; b < 16; b++) {
        mol.bond[b][0] = b / 4;
        mol.bond[b][1] = 4 + b % 4;
        mol.order[b] = CH_SINGLE;
    }
    for (int32_t i = 0; i < 8; i++)
        mol.z[i] = 6;
    return mol;
}

static void more_rings_than_there_was_room_for_are_found_or_refused(void **state)
{
    pl_arena *turn = pl_arena_new(1 << 16);
    const ch_mol mol = two_halves();
    pl_code code = PL_ENOMEM;
    ch_perceived p;
    long nth = 1;

    (void)state;
    for (; code != PL_OK && nth < 100; nth++) {
        pl_error err = { 0 };
        pl_arena_reset(turn);
        pl_arena_refuse(nth);
        code = ch_perceive(&p, &mol, turn, &err);
        if (code == PL_OK)
            assert_null(pl_arena_get(turn, 1, 1)); /* none was refused so far */
        pl_arena_refuse(0);
        assert_true(code == PL_OK || code == PL_ENOMEM);
        assert_true(tells_for_what(err.text));
    }
    assert_int_equal(code, PL_OK);
    assert_int_equal(p.n_rings, 36);
    for (int32_t r = 0; r < p.n_rings; r++) {
        assert_int_equal(p.rings[r].size, 4);
        for (int32_t before = 0; before < r; before++)
            assert_memory_not_equal(p.rings[r].atom, p.rings[before].atom, 4 * sizeof *p.rings[r].atom);
    }
    pl_arena_free(turn);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_allocation_is_reported),
        cmocka_unit_test(more_rings_than_there_was_room_for_are_found_or_refused),
    };

    return cmocka_run_group_tests(tests, make, drop);
}
