/* SPDX-License-Identifier: Apache-2.0 */
/* Traits of a molecule, counted by hand: rings, charges, valences. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "chem/common/protocol.h"
#include "tests/unit/guarded.h"
#include "tests/unit/made_traits.h"

static bool guards; /* arrays of arenas have nothing behind them; linked with -Wl,--wrap=pl_arena_get */
void *__real_pl_arena_get(pl_arena *from, size_t n, size_t size);
void *__wrap_pl_arena_get(pl_arena *from, size_t n, size_t size);

void *__wrap_pl_arena_get(pl_arena *from, size_t n, size_t size)
{
    return guards ? guarded(n, size) : __real_pl_arena_get(from, n, size);
}

static void traits_are_counted(void **state)
{
    made m = chain(10); /* two rings of five and seven that share a bond; then a hydrogen and a lone sodium ion */
    nn_traits t;

    (void)state;
    bond_add(&m, 0, 4, 1);
    bond_add(&m, 0, 9, 2);
    m.n_atoms = 12;
    m.atom[10].z = 1;
    m.atom[11].z = 11;
    m.atom[11].charge = 1;
    bond_add(&m, 9, 10, 1);
    guards = true;
    t = traits_of(&m);
    guards = false;
    assert_int_equal(t.number[NN_HEAVY], 11);
    assert_int_equal(t.number[NN_CHARGE], 1);
    assert_int_equal(t.number[NN_RINGS], 2);
    assert_int_equal(t.number[NN_CONJUGATED], 2);
    assert_int_equal(t.number[NN_FRAGMENTS], 2);
    assert_int_equal(t.ring_sizes, 1u << 5 | 1u << 7);
    assert_int_equal(t.n_kinds, 3);
    m = chain(7); /* a ring of six and an atom beside it, whose bond is in none */
    bond_add(&m, 0, 5, 1);
    assert_int_equal(traits_of(&m).ring_sizes, 1u << 6);
}

static void refused_memory_for_traits_is_said(void **state)
{
    const made m = ring(6);
    const ch_graph g = graph_of(&m);
    nn_traits t;

    (void)state;
    for (int nth = 1; nth <= 4; nth++) {
        pl_error err = { 0 };
        pl_arena_refuse(nth);
        assert_int_equal(nn_traits_of(&t, &g, mem, &err), nth < 4 ? PL_ENOMEM : PL_OK);
        pl_arena_refuse(0);
        assert_int_equal(strstr(err.text, "the traits of a molecule of 6 atoms") != NULL, nth < 4);
    }
}

static void a_charge_beside_an_opposite_one_is_paired(void **state)
{
    made m = chain(4); /* C-N+(-O-)... and a bare N+ */
    nn_traits t;

    (void)state;
    m.atom[1].z = 7;
    m.atom[1].charge = 1;
    m.atom[2].z = 8;
    m.atom[2].charge = -1;
    t = traits_of(&m);
    assert_true(t.n_kinds == 3 && t.kind[1].paired && t.kind[2].paired && !t.kind[0].paired);
    m.atom[2].charge = 0;
    t = traits_of(&m);
    assert_true(t.kind[1].charge == 1 && !t.kind[1].paired);
}

/* An atom with some hydrogens: methyl, amide, hydroxyl, ... */
static void radicals_have_unusual_valences(void **state)
{
    static const struct {
        int z, charge, hydrogens, unusual;
    } cases[] = { { 6, 0, 4, 0 },  { 6, 0, 3, 1 },   { 6, 0, 2, 1 },  { 6, -1, 3, 0 }, { 6, 1, 3, 0 },  { 7, 0, 3, 0 },
                  { 7, 0, 2, 1 },  { 7, 1, 4, 0 },   { 7, 0, 5, 0 },  { 8, 0, 1, 1 },  { 8, -1, 1, 0 }, { 8, 1, 3, 0 },
                  { 5, 0, 3, 0 },  { 5, -1, 4, 0 },  { 16, 0, 1, 1 }, { 16, 0, 2, 0 }, { 16, 0, 4, 0 }, { 16, 0, 3, 1 },
                  { 15, 0, 5, 0 }, { 15, -1, 6, 0 }, { 9, 0, 0, 1 },  { 9, -1, 0, 0 }, { 11, 1, 0, 0 }, { 26, 0, 2, 0 } };

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        made m = { .n_atoms = 1 };
        m.atom[0].z = cases[k].z;
        m.atom[0].charge = cases[k].charge;
        hydrogens_add(&m, 0, cases[k].hydrogens);
        assert_int_equal(traits_of(&m).number[NN_VALENCES], cases[k].unusual);
    }
}

/* Benzene; phenyl, where one hydrogen is missing; pyridine. */
static void aromatic_carbon_has_three_neighbours(void **state)
{
    made m = ring(6), phenyl;

    (void)state;
    for (int k = 0; k < m.n_bonds; k++)
        m.bond[k].order = CH_AROMATIC_SINGLE;
    for (int i = 1; i < 6; i++)
        hydrogens_add(&m, i, 1);
    phenyl = m;
    hydrogens_add(&m, 0, 1);
    assert_int_equal(traits_of(&m).number[NN_VALENCES], 0);
    assert_int_equal(traits_of(&phenyl).number[NN_VALENCES], 1);
    phenyl.atom[0].z = 7;
    assert_int_equal(traits_of(&phenyl).number[NN_VALENCES], 0);
}

/* Expanded octets: sulfone, sulfoxide, sulfide, phosphoric acid as P with five bonds, a phosphonium, perchloric acid, N(=O)=O. */
static void high_valences_are_told_by_element(void **state)
{
    static const struct {
        int z, charge, bonds, at; /* at: index in nn_expanded_z */
    } cases[] = { { 16, 0, 6, 3 },  { 16, 0, 4, 3 },  { 16, 0, 2, -1 }, { 15, 0, 5, 2 }, { 15, 0, 3, -1 }, { 15, 1, 4, -1 },
                  { 15, -1, 6, 2 }, { 17, 0, 7, 4 },  { 17, 0, 1, -1 }, { 7, 0, 5, 0 },  { 7, 1, 4, -1 },  { 7, 0, 3, -1 },
                  { 6, 0, 4, -1 },  { 16, 1, 3, -1 }, { 16, 1, 5, 3 },  { 53, 0, 3, 8 } };

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        made m = { .n_atoms = 1 };
        m.atom[0].z = cases[k].z;
        m.atom[0].charge = cases[k].charge;
        hydrogens_add(&m, 0, cases[k].bonds);
        const nn_traits t = traits_of(&m);
        for (int i = 0; i < NN_EXPANDED; i++)
            assert_int_equal(t.expanded[i], i == cases[k].at ? 1 << cases[k].bonds : 0);
    }
}

/* Pyridine oxide drawn as n(=O) has five bonds, as N(=O)=O; pyridine and thiophene have their lowest valences. */
static void aromatic_atoms_have_high_valences_too(void **state)
{
    made m = ring(6), thiophene = ring(5);

    (void)state;
    for (int k = 0; k < m.n_bonds; k++)
        m.bond[k].order = CH_AROMATIC_SINGLE;
    for (int k = 0; k < thiophene.n_bonds; k++)
        thiophene.bond[k].order = CH_AROMATIC_SINGLE;
    thiophene.atom[0].z = 16;
    m.atom[0].z = 7;
    assert_int_equal(traits_of(&m).expanded[0], 0);
    assert_int_equal(traits_of(&thiophene).expanded[3], 0);
    m.atom[6].z = 8;
    m.n_atoms = 7;
    bond_add(&m, 0, 6, 2);
    assert_int_equal(traits_of(&m).expanded[0], 1 << 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(traits_are_counted),
        cmocka_unit_test(a_charge_beside_an_opposite_one_is_paired),
        cmocka_unit_test(radicals_have_unusual_valences),
        cmocka_unit_test(aromatic_carbon_has_three_neighbours),
        cmocka_unit_test(high_valences_are_told_by_element),
        cmocka_unit_test(aromatic_atoms_have_high_valences_too),
        cmocka_unit_test(refused_memory_for_traits_is_said),
    };

    return cmocka_run_group_tests(tests, mem_open, mem_close);
}
