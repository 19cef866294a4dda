/* SPDX-License-Identifier: Apache-2.0 */
/* Each check of a structure: it accepts a good one and finds the fault in one that was broken on purpose. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "chem/structures/check.h"
#include "sdf_mol.h"

enum { MAX = 60 };

static pl_arena *mem;
static sdf_mol *all;
static int32_t n_all;

/* A molecule, its rings and stereo, and positions to break. */
typedef struct subject {
    const sdf_mol *m;
    ch_cycles cycles;
    ch_stereo stereo;
    float (*x)[3];
} subject;

static int make(void **state)
{
    (void)state;
    mem = pl_arena_new(1 << 20);
    all = PL_NEW(mem, sdf_mol, MAX);
    n_all = sdf_read_terms(all, MAX, 0, MOLSIEVE_TESTS, mem);
    return n_all > 25 ? 0 : -1;
}

static int drop(void **state)
{
    (void)state;
    pl_arena_free(mem);
    return 0;
}

static subject take(int32_t k)
{
    subject s = { .m = &all[k], .stereo = sdf_stereo(&all[k].mol, mem) };
    const size_t bytes = (size_t)s.m->mol.n_atoms * sizeof *s.x;

    assert_int_equal(ch_cycles_make(&s.cycles, &s.m->mol, mem, NULL), PL_OK);
    s.x = pl_arena_get(mem, bytes, 1);
    memcpy(s.x, s.m->mol.xyz, bytes);
    return s;
}

static subject named(const char *name)
{
    for (int32_t k = 0; k < n_all; k++)
        if (strcmp(all[k].name, name) == 0)
            return take(k);
    fail_msg("%s is not in the data", name);
    return (subject){ 0 };
}

static enum ch_fault fault_of(const subject *s)
{
    return ch_check((const float(*)[3])s->x, &s->cycles, &s->m->terms, &s->stereo).fault;
}

static void mirror(const subject *s)
{
    for (int32_t i = 0; i < s->m->mol.n_atoms; i++)
        s->x[i][0] = -s->x[i][0];
}

/* Turns the atoms `moved` by degrees about the line from a to b. */
static void turn(const subject *s, int32_t a, int32_t b, const bool *moved, double by)
{
    double u[3], length = 0;

    for (int c = 0; c < 3; c++) {
        u[c] = (double)s->x[b][c] - (double)s->x[a][c];
        length += u[c] * u[c];
    }
    for (int c = 0; c < 3; c++)
        u[c] /= sqrt(length);
    for (int32_t i = 0; i < s->m->mol.n_atoms; i++) {
        double v[3], along = 0;
        for (int c = 0; moved[i] && c < 3; c++) {
            v[c] = (double)s->x[i][c] - (double)s->x[a][c];
            along += v[c] * u[c];
        }
        for (int c = 0; moved[i] && c < 3; c++) {
            const int p = (c + 1) % 3, q = (c + 2) % 3;
            s->x[i][c] =
                (float)((double)s->x[a][c] + v[c] * cos(by) + (u[p] * v[q] - u[q] * v[p]) * sin(by) + u[c] * along * (1 - cos(by)));
        }
    }
}

static void minima_of_ring_systems_are_good(void **state)
{
    (void)state;
    for (int32_t k = 0; k < n_all; k++) {
        const subject s = take(k);
        const ch_checked c = ch_check((const float(*)[3])s.x, &s.cycles, &s.m->terms, &s.stereo);
        if (c.fault != CH_NO_FAULT)
            fail_msg("%s: %s, atoms %d %d, %g", all[k].name, ch_fault_text(c.fault), (int)c.a, (int)c.b, c.value);
    }
}

static void a_position_that_is_not_finite_is_found(void **state)
{
    const subject s = take(0);

    (void)state;
    s.x[3][2] = NAN;
    assert_int_equal(fault_of(&s), CH_NOT_FINITE_POSITION);
}

static void a_long_bond_is_found(void **state)
{
    const subject s = named("c1ccsc1-c1nnn[nH]1");
    const int32_t last = s.m->mol.n_atoms - 1, to = s.cycles.neighbour[s.cycles.first[last]];

    (void)state;
    for (int c = 0; c < 3; c++)
        s.x[last][c] += 0.4f * (s.x[last][c] - s.x[to][c]);
    assert_int_equal(fault_of(&s), CH_BOND_LENGTH);
}

/* Rotating a bond puts two parts of a long molecule in the same place: lengths stay, atoms clash. */
static void atoms_that_meet_are_found(void **state)
{
    const subject s = named("O=C1CCCCCCCCCCCCCC1");
    int32_t i = s.m->mol.n_atoms - 1, j = -1;

    (void)state;
    for (int32_t k = 0; k < s.m->terms.n_pairs; k++) /* a hydrogen's far pair */
        if (s.m->terms.pairs[k].j == i && s.m->mol.z[s.m->terms.pairs[k].i] == 1)
            j = s.m->terms.pairs[k].i;
    assert_true(j >= 0);
    const int32_t a = s.cycles.neighbour[s.cycles.first[i]], b = s.cycles.neighbour[s.cycles.first[j]];
    for (int c = 0; c < 3; c++) { /* both hydrogens point at each other, from carbons 2.6 A apart */
        s.x[b][c] = s.x[a][c] + (c == 0 ? 2.6f : 0);
        s.x[i][c] = s.x[a][c] + (c == 0 ? 1.05f : 0);
        s.x[j][c] = s.x[b][c] - (c == 0 ? 1.05f : 0);
    }
    ch_terms t = s.m->terms;
    t.n_bonds = 0; /* the two carbons have left their chains, which is another fault than the one tested */
    assert_int_equal(ch_check((const float(*)[3])s.x, &s.cycles, &t, &s.stereo).fault, CH_CLASH);
}

static void every_centre_of_a_mirror_image_is_found(void **state)
{
    int with = 0;

    (void)state;
    for (int32_t k = 0; k < n_all; k++) {
        subject s = take(k);
        s.stereo.n_double_bonds = 0;
        mirror(&s);
        if (s.stereo.n_centres > 0)
            assert_int_equal(fault_of(&s), CH_CENTRE);
        with += s.stereo.n_centres > 0;
    }
    assert_true(with > 10);
}

static void one_centre_of_many_is_found(void **state)
{
    const subject s = named("C[C@]12CC[C@H]3[C@@H](CCc4cc(O)ccc34)[C@@H]1CC[C@@H]2O");

    (void)state;
    assert_true(s.stereo.n_centres >= 5);
    for (int32_t k = 0; k < s.stereo.n_centres; k++) {
        ch_centre *centres = PL_NEW(mem, ch_centre, s.stereo.n_centres);
        const ch_stereo other = { .n_centres = s.stereo.n_centres, .centres = centres };
        memcpy(centres, s.stereo.centres, (size_t)s.stereo.n_centres * sizeof *centres);
        centres[k].sign = (int8_t)-centres[k].sign;
        const ch_checked c = ch_check((const float(*)[3])s.x, &s.cycles, &s.m->terms, &other);
        assert_int_equal(c.fault, CH_CENTRE);
        assert_int_equal(c.a, centres[k].atom);
    }
}

/* Four atoms in an order that gives their volume one sign, and with two exchanged. */
static void an_axis_of_the_other_form_is_found(void **state)
{
    const subject s = take(0);
    ch_axis axis = { { 0, 1, 2, 3 } };
    const ch_stereo one = { .n_axes = 1, .axes = &axis };
    int found = 0;

    (void)state;
    for (axis.atom[3] = 3; axis.atom[3] < s.m->mol.n_atoms && found < 5; axis.atom[3]++) {
        const ch_centre same = { .atom = 0, .neighbour = { 0, 1, 2, axis.atom[3] }, .sign = 1 };
        const double v = ch_centre_volume((const float(*)[3])s.x, &same);
        if (fabs(v) < 1.5)
            continue;
        const ch_checked c = ch_check((const float(*)[3])s.x, &s.cycles, &s.m->terms, &one);
        assert_int_equal(c.fault, v > 0 ? CH_NO_FAULT : CH_AXIS);
        axis.atom[0] = 1;
        axis.atom[1] = 0;
        const ch_checked other = ch_check((const float(*)[3])s.x, &s.cycles, &s.m->terms, &one);
        assert_int_equal(other.fault, v > 0 ? CH_AXIS : CH_NO_FAULT);
        axis.atom[0] = 0;
        axis.atom[1] = 1;
        found++;
    }
    assert_true(found > 0);
}

static void a_hydrogen_on_the_inner_side_is_found(void **state)
{
    const subject s = named("C1CC2CCC1C2");

    (void)state;
    for (int32_t i = 0; i < s.m->mol.n_atoms; i++) {
        const int32_t *a = s.cycles.neighbour + s.cycles.first[i];
        for (int k = 0; s.m->mol.z[i] == 6 && k < 4; k++)
            for (int c = 0; s.m->mol.z[a[k]] == 1 && c < 3; c++)
                s.x[a[k]][c] = 2 * s.x[i][c] - s.x[a[k]][c];
    }
    ch_terms t = s.m->terms;
    t.n_pairs = 0; /* hydrogens inside a cage clash as well */
    const ch_stereo none = { 0 };
    assert_int_equal(ch_check((const float(*)[3])s.x, &s.cycles, &t, &none).fault, CH_NOT_WITHIN);
}

static void cis_and_trans_are_told_apart(void **state)
{
    const subject s = named("C/C=C/C=C\\C(=O)NC");
    bool forms[2] = { false, false };

    (void)state;
    assert_int_equal(s.stereo.n_double_bonds, 2);
    for (int k = 0; k < 2; k++) {
        ch_double_bond bond = s.stereo.double_bonds[k];
        const ch_stereo one = { .n_double_bonds = 1, .double_bonds = &bond };
        assert_int_equal(ch_check((const float(*)[3])s.x, &s.cycles, &s.m->terms, &one).fault, CH_NO_FAULT);
        bond.cis = !bond.cis;
        const ch_checked c = ch_check((const float(*)[3])s.x, &s.cycles, &s.m->terms, &one);
        assert_int_equal(c.fault, CH_DOUBLE_BOND);
        forms[bond.cis] = true;
    }
    assert_true(forms[0] && forms[1]);
}

/* All atoms on the far side of the bond b-c. */
static void side(const subject *s, int32_t b, int32_t c, bool *out)
{
    bool more = true;

    memset(out, 0, (size_t)s->m->mol.n_atoms);
    out[c] = true;
    while (more) {
        more = false;
        for (int32_t k = 0; k < s->m->mol.n_bonds; k++)
            for (int e = 0; e < 2; e++) {
                const int32_t i = s->m->mol.bond[k][e], j = s->m->mol.bond[k][1 - e];
                if (out[i] && !out[j] && !(i == c && j == b))
                    more = out[j] = true;
            }
    }
}

static void a_turned_double_bond_is_found_though_nobody_defined_it(void **state)
{
    const subject s = named("C/C=C/C=C\\C(=O)NC");
    const ch_double_bond d = s.stereo.double_bonds[1];
    bool moved[64];
    const ch_stereo none = { 0 };
    ch_terms t = s.m->terms;

    (void)state;
    t.n_pairs = 0;
    side(&s, d.b, d.c, moved);
    turn(&s, d.b, d.c, moved, 1.4);
    assert_int_equal(ch_check((const float(*)[3])s.x, &s.cycles, &t, &none).fault, CH_DOUBLE_BOND);
}

static void an_aromatic_ring_that_is_bent_is_found(void **state)
{
    const subject s = named("CS(=O)(=O)Nc1ccc([N+](=O)[O-])cc1");
    const ch_cycle *r = &s.cycles.cycle[0];
    ch_terms t = s.m->terms;

    (void)state;
    assert_int_equal(r->size, 6);
    bool moved[64] = { false };
    moved[r->atom[0]] = moved[r->atom[1]] = true; /* fold the ring along the line of two of its atoms */
    turn(&s, r->atom[5], r->atom[2], moved, 1.1);
    t.n_pairs = t.n_bonds = 0;
    assert_int_equal(ch_check((const float(*)[3])s.x, &s.cycles, &t, &s.stereo).fault, CH_NOT_FLAT);
}

/* A methyl group is moved so that the bond to its hydrogen h goes through the middle of a ring. */
static void put_through(const subject *s, const ch_cycle *r, int32_t h)
{
    const int32_t to = s->cycles.neighbour[s->cycles.first[h]];
    float middle[3] = { 0 }, u[3], v[3], n[3], length = 0;

    for (int c = 0; c < 3; c++) {
        for (int32_t a = 0; a < r->size; a++)
            middle[c] += s->x[r->atom[a]][c] / (float)r->size;
        u[c] = s->x[r->atom[2]][c] - s->x[r->atom[0]][c];
        v[c] = s->x[r->atom[3]][c] - s->x[r->atom[0]][c];
    }
    for (int c = 0; c < 3; c++)
        n[c] = u[(c + 1) % 3] * v[(c + 2) % 3] - u[(c + 2) % 3] * v[(c + 1) % 3];
    for (int c = 0; c < 3; c++)
        length += n[c] * n[c];
    for (int c = 0; c < 3; c++) { /* 0.1 A off the middle: not on the edge of a triangle */
        s->x[h][c] = middle[c] + 0.6f * n[c] / sqrtf(length) + 0.03f * u[c];
        s->x[to][c] = middle[c] - 0.6f * n[c] / sqrtf(length) + 0.03f * u[c];
    }
}

/* One of each atom outside the ring that has hydrogens, and so the first atom of a molecule, too. */
static void a_bond_through_a_ring_is_found(void **state)
{
    static const char *const rings[] = { "C1CCC2CCCCC2C1", "c1ccc2c(c1)ccc1ccccc12", "CC12CCC(CC1)C2(C)C" };
    bool first = false;

    (void)state;
    for (int k = 0; k < 3; k++) {
        const int32_t n = named(rings[k]).m->mol.n_atoms;
        for (int32_t h = 0; h < n; h++) {
            const subject s = named(rings[k]);
            const ch_cycle *r = &s.cycles.cycle[0];
            const int32_t to = s.cycles.neighbour[s.cycles.first[h]];
            ch_terms t = s.m->terms;
            if (s.m->mol.z[h] != 1 || ch_cycle_place(r, to) >= 0)
                continue;
            put_through(&s, r, h);
            t.n_pairs = t.n_bonds = 0;
            const ch_stereo none = { 0 };
            assert_int_equal(ch_check_rings((const float(*)[3])s.x, &s.cycles).fault,
                             CH_THROUGH_RING); /* the move breaks more than that */
            assert_true(ch_check((const float(*)[3])s.x, &s.cycles, &t, &none).fault != CH_NO_FAULT);
            first = first || to == 0;
        }
    }
    assert_true(first);
}

enum { CHAIN = 6 };

/* A ring of n carbons, folded by `fold` Angstrom, with a chain on its first atom. The chain rises, turns over the middle of the ring, and
 * ends below it or stays above. */
static enum ch_fault fault_of_made_ring(int32_t n, float fold, bool threaded)
{
    const float radius = 1.5f / (2 * sinf(3.14159265f / (float)n));
    const float above[CHAIN][2] = { { 1, 1.2f },
                                    { 0.5f, 2.2f },
                                    { 0, 1.5f },
                                    { 0, threaded ? 0.3f : 2.6f },
                                    { 0, threaded ? -1.2f : 3.6f },
                                    { 0, threaded ? -2.6f : 4.6f } };
    ch_mol mol;
    ch_cycles cycles;

    assert_int_equal(ch_mol_alloc(&mol, n + CHAIN, n + CHAIN, mem, NULL), PL_OK);
    for (int32_t k = 0; k < n + CHAIN; k++) {
        const float a = 6.2831853f * (float)k / (float)n, *at = k >= n ? above[k - n] : NULL;
        mol.z[k] = 6;
        mol.xyz[k][0] = at != NULL ? at[0] * radius + 0.05f : radius * cosf(a);
        mol.xyz[k][1] = at != NULL ? 0.07f : radius * sinf(a);
        mol.xyz[k][2] = at != NULL ? at[1] : fold * cosf(2 * a) + 0.2f * (float)(k % 2);
    }
    for (int32_t k = 0; k < n; k++) {
        mol.bond[k][0] = k;
        mol.bond[k][1] = (k + 1) % n;
    }
    for (int32_t k = 0; k < CHAIN; k++) {
        mol.bond[n + k][0] = k == 0 ? 0 : n + k - 1;
        mol.bond[n + k][1] = n + k;
    }
    memset(mol.order, CH_SINGLE, (size_t)mol.n_bonds);
    assert_int_equal(ch_cycles_make(&cycles, &mol, mem, NULL), PL_OK);
    assert_int_equal(cycles.n + cycles.n_large, n <= CH_MAX_LARGE);
    return ch_check_rings((const float(*)[3])mol.xyz, &cycles).fault;
}

static void a_chain_through_its_own_ring_is_found_up_to_20_atoms(void **state)
{
    (void)state;
    for (int32_t n = 5; n <= 24; n++)
        for (int fold = 0; fold <= 4; fold++) {
            const float by = 0.25f * (float)fold * (n > 8 ? 1.0f : 0.3f);
            if (fault_of_made_ring(n, by, true) != (n <= CH_MAX_LARGE ? CH_THROUGH_RING : CH_NO_FAULT))
                fail_msg("a threaded ring of %d, folded by %g, is not found", (int)n, (double)by);
            if (fault_of_made_ring(n, by, false) != CH_NO_FAULT)
                fail_msg("a ring of %d, folded by %g, is not threaded", (int)n, (double)by);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(minima_of_ring_systems_are_good),
        cmocka_unit_test(a_position_that_is_not_finite_is_found),
        cmocka_unit_test(a_long_bond_is_found),
        cmocka_unit_test(atoms_that_meet_are_found),
        cmocka_unit_test(every_centre_of_a_mirror_image_is_found),
        cmocka_unit_test(one_centre_of_many_is_found),
        cmocka_unit_test(an_axis_of_the_other_form_is_found),
        cmocka_unit_test(a_hydrogen_on_the_inner_side_is_found),
        cmocka_unit_test(cis_and_trans_are_told_apart),
        cmocka_unit_test(a_turned_double_bond_is_found_though_nobody_defined_it),
        cmocka_unit_test(an_aromatic_ring_that_is_bent_is_found),
        cmocka_unit_test(a_bond_through_a_ring_is_found),
        cmocka_unit_test(a_chain_through_its_own_ring_is_found_up_to_20_atoms),
    };

    return cmocka_run_group_tests(tests, make, drop);
}
