/* SPDX-License-Identifier: Apache-2.0 */
/* Bond orders and formal charges from connections, and connections from positions (chem/common/bonding.h). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "chem/common/bonding.h"
#include "tests/heap.h"

enum { MAX = 2048 };

/* Atoms as one letter each: H C N O F S P B, L for chlorine, M for iron, A for sodium. Bonds as pairs of letters from 'a'. */
typedef struct molecule {
    uint8_t z[MAX], order[4 * MAX];
    int32_t bond[4 * MAX][2];
    int8_t formal[MAX];
    ch_skeleton s;
} molecule;

static molecule m;

static uint8_t number_of(char c)
{
    switch (c) {
    case 'H': return 1;
    case 'B': return 5;
    case 'C': return 6;
    case 'N': return 7;
    case 'O': return 8;
    case 'F': return 9;
    case 'A': return 11;
    case 'P': return 15;
    case 'S': return 16;
    case 'L': return 17;
    default: return 26;
    }
}

static ch_bonding solve(const char *atoms, const char *bonds, int charge, int unpaired)
{
    m.s = (ch_skeleton){ .z = m.z, .bond = (const int32_t(*)[2])m.bond, .charge = charge, .unpaired = unpaired };
    for (; atoms[m.s.n_atoms] != '\0'; m.s.n_atoms++)
        m.z[m.s.n_atoms] = number_of(atoms[m.s.n_atoms]);
    for (; bonds[0] != '\0'; bonds += bonds[2] == ' ' ? 3 : 2, m.s.n_bonds++)
        for (int e = 0; e < 2; e++)
            m.bond[m.s.n_bonds][e] = bonds[e] - 'a';
    return ch_bonding_solve(&m.s, m.order, m.formal);
}

/* "112 0+-": the orders of the bonds, then the charges of the atoms. */
static const char *written(void)
{
    static char text[256];
    size_t n = 0;

    for (int32_t b = 0; b < m.s.n_bonds; b++)
        text[n++] = (char)('0' + m.order[b]);
    text[n++] = ' ';
    for (int32_t a = 0; a < m.s.n_atoms; a++)
        text[n++] = "-0+"[(m.formal[a] > 0) - (m.formal[a] < 0) + 1];
    text[n] = '\0';
    return text;
}

static void known_groups_get_their_orders_and_charges(void **state)
{
    static const struct {
        const char *name, *atoms, *bonds, *want;
        int charge, unpaired;
    } known[] = {
        { "nitromethane", "CNOOHHH", "ab bc bd ae af ag", NULL, 0, 0 },
        { "carbon monoxide", "CO", "ab", "3 -+", 0, 0 },
        { "methyl isocyanide", "CNCHHH", "ab bc ad ae af", "13111 0+-000", 0, 0 },
        { "nitrous oxide", "NNO", "ab bc", "31 0+-", 0, 0 },
        { "dimethyl sulfone", "CSOOCHHHHHH", "ab bc bd be af ag ah ei ej ek", "1221111111 00000000000", 0, 0 },
        { "dimethyl sulfoxide", "CSOCHHHHHH", "ab bc bd ae af ag dh di dj", "121111111 0000000000", 0, 0 },
        { "phosphoric acid", "POOOOHHH", "ab ac ad ae cf dg eh", "2111111 00000000", 0, 0 },
        { "borohydride", "BHHHH", "ab ac ad ae", "1111 -0000", -1, 0 },
        { "ammonium chloride", "NHHHHL", "ab ac ad ae", "1111 +0000-", 0, 0 },
        { "sodium and hydroxide", "AOH", "bc", "1 +-0", 0, 0 },
        { "hydroxide", "OH", "ab", "1 -0", -1, 0 },
        { "hydroxyl", "OH", "ab", "1 00", 0, 1 },
        { "betaine of ammonia", "NCCOOHHHHH", "ab bc cd ce af ag ah bi bj", NULL, 0, 0 },
        { "sulfur hexafluoride", "SFFFFFF", "ab ac ad ae af ag", "111111 0000000", 0, 0 },
        { "perchlorate", "LOOOO", "ab ac ad ae", NULL, -1, 0 },
        { "thiophene", "SCCCCHHHH", "ab bc cd de ea bf cg dh ei", "121211111 000000000", 0, 0 },
        { "methyl cation", "CHHH", "ab ac ad", "111 +000", 1, 0 },
    };
    (void)state;

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (solve(known[i].atoms, known[i].bonds, known[i].charge, known[i].unpaired) != CH_BONDING_OK)
            fail_msg("%s has no solution", known[i].name);
        if (known[i].want != NULL && strcmp(written(), known[i].want) != 0)
            fail_msg("%s is %s, not %s", known[i].name, written(), known[i].want);
    }
}

static void nitro_has_one_double_bond_and_a_negative_oxygen(void **state)
{
    (void)state;
    assert_int_equal(solve("CNOOHHH", "ab bc bd ae af ag", 0, 0), CH_BONDING_OK);
    assert_int_equal(m.order[1] + m.order[2], 3);
    assert_int_equal(m.formal[1], 1);
    assert_int_equal(m.formal[2] + m.formal[3], -1);
}

static void bond_lengths_choose_between_equal_charges(void **state)
{
    uint8_t order[3];
    int8_t formal[4];
    ch_skeleton s = { .n_atoms = 4, .n_bonds = 3 };
    const uint8_t acid[4] = { 6, 8, 8, 1 };
    const int32_t acid_bond[3][2] = { { 0, 1 }, { 0, 2 }, { 0, 3 } };
    const double acid_xyz[4][3] = { { 0 }, { 1.32, 0, 0 }, { -0.6, 1.05, 0 }, { -.6, -.9, 0 } };
    (void)state;

    s.z = acid;
    s.bond = acid_bond;
    s.xyz = acid_xyz;
    s.charge = -1;
    assert_int_equal(ch_bonding_solve(&s, order, formal), CH_BONDING_OK); /* formate, one oxygen nearer */
    assert_int_equal(order[0], 1);
    assert_int_equal(order[1], 2);
    assert_int_equal(formal[1], -1);
}

static void what_has_no_closed_shells_is_refused_with_a_reason(void **state)
{
    (void)state;
    assert_int_equal(solve("CHHH", "ab ac ad", 0, 0), CH_BONDING_PARITY);
    assert_int_equal(solve("CHHHH", "ab ac ad ae", 1, 0), CH_BONDING_PARITY);
    assert_int_equal(solve("CHH", "ab ac", 0, 0), CH_BONDING_SHELL);          /* a carbene: more likely, hydrogens are missing */
    assert_int_equal(solve("CCHHHH", "ac ad be bf", 0, 0), CH_BONDING_SHELL); /* a double bond that was not found          */
    assert_int_equal(solve("MHH", "ab ac", 0, 0), CH_BONDING_ELEMENT);
    assert_int_equal(solve("CHHHHH", "ab ac ad ae af", 1, 0), CH_BONDING_SHELL);
}

/* ---- against all possible assignments ---- */

static uint32_t chance(void)
{
    static uint32_t state = 7;
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

static int valence_of(int z, int q)
{
    if (z == 6 && q == 1)
        return -1;
    if (z == 6)
        return 4 + q;
    if (z == 7)
        return 3 + q;
    if (z == 8)
        return 2 + q;
    return q == 0 ? 1 : -1;
}

/* The least sum of |charge|; -1: none. */
static int min_by_trial(const int32_t sum[], int32_t a, int charge)
{
    int best = -1;

    if (a == m.s.n_atoms)
        return charge == 0 ? 0 : -1;
    for (int q = -1; q <= 1; q++) {
        if (valence_of(m.z[a], q) != sum[a])
            continue;
        const int rest = min_by_trial(sum, a + 1, charge - q);
        if (rest >= 0 && (best < 0 || rest + abs(q) < best))
            best = rest + abs(q);
    }
    return best;
}

static int least_of_all(void)
{
    int best = -1, codes = 1;

    for (int32_t b = 0; b < m.s.n_bonds; b++)
        codes *= 3;
    for (int code = 0; code < codes; code++) {
        int32_t sum[MAX] = { 0 };
        for (int32_t b = 0, c = code; b < m.s.n_bonds; b++, c /= 3)
            for (int e = 0; e < 2; e++)
                sum[m.bond[b][e]] += 1 + c % 3;
        const int found = min_by_trial(sum, 0, m.s.charge);
        if (found >= 0 && (best < 0 || found < best))
            best = found;
    }
    return best;
}

/* A chain of C, N and O with a few rings and hydrogens. */
static void make_skeleton(void)
{
    static const uint8_t kinds[] = { 6, 6, 7, 8 };
    const int32_t heavy = 3 + (int32_t)(chance() % 3), hydrogens = (int32_t)(chance() % 4);

    m.s = (ch_skeleton){ .n_atoms = heavy + hydrogens, .z = m.z, .bond = (const int32_t(*)[2])m.bond };
    for (int32_t a = 0; a < m.s.n_atoms; a++) {
        m.z[a] = a < heavy ? kinds[chance() % 4] : 1;
        if (a > 0) {
            m.bond[m.s.n_bonds][0] = (int32_t)(chance() % (uint32_t)(a < heavy ? a : heavy));
            m.bond[m.s.n_bonds++][1] = a;
        }
    }
    if (heavy > 2 && chance() % 2 && !(m.bond[1][0] == 0)) { /* 0-1-2: one bond more closes the ring */
        m.bond[m.s.n_bonds][0] = 0;
        m.bond[m.s.n_bonds++][1] = 2;
    }
}

static void the_sum_of_charges_is_the_least_of_all_assignments(void **state)
{
    int solved = 0, charged = 0;
    (void)state;

    for (int i = 0; i < 3000; i++) {
        int found = 0, total = 0;
        int32_t sum[MAX] = { 0 };
        make_skeleton();
        const ch_bonding end = ch_bonding_solve(&m.s, m.order, m.formal);
        const int min = least_of_all();
        if ((end == CH_BONDING_OK) != (min >= 0))
            fail_msg("skeleton %d: %d, and the least sum is %d", i, (int)end, min);
        if (end != CH_BONDING_OK)
            continue;
        for (int32_t b = 0; b < m.s.n_bonds; b++)
            for (int e = 0; e < 2; e++)
                sum[m.bond[b][e]] += m.order[b];
        for (int32_t a = 0; a < m.s.n_atoms; a++) {
            assert_int_equal(sum[a], valence_of(m.z[a], m.formal[a]));
            found += abs(m.formal[a]);
            total += m.formal[a];
        }
        assert_int_equal(total, 0);
        assert_int_equal(found, min);
        solved++;
        charged += min > 0;
    }
    assert_true(solved > 300 && charged > 50);
}

/* A sheet of carbon, rows by columns of rings. Hydrogens are left out: every carbon at the rim has one. */
static void make_sheet(int n)
{
    static int32_t degree[MAX];
    const int32_t heavy = 2 * n * n;

    memset(degree, 0, sizeof degree);
    m.s = (ch_skeleton){ .n_atoms = heavy, .z = m.z, .bond = (const int32_t(*)[2])m.bond };
    for (int32_t i = 0; i < n; i++)
        for (int32_t j = 0; j < n; j++) {
            const int32_t a = 2 * (n * i + j), other[3] = { a + 1, i > 0 ? a - 2 * n + 1 : -1, j > 0 ? a - 2 + 1 : -1 };
            for (int k = 0; k < 3; k++)
                if (other[k] >= 0) {
                    m.bond[m.s.n_bonds][0] = a;
                    m.bond[m.s.n_bonds++][1] = other[k];
                    degree[a]++;
                    degree[other[k]]++;
                }
        }
    memset(m.z, 6, (size_t)heavy);
    for (int32_t a = 0; a < heavy; a++)
        for (; degree[a] < 3; degree[a]++) {
            m.z[m.s.n_atoms] = 1;
            m.bond[m.s.n_bonds][0] = a;
            m.bond[m.s.n_bonds++][1] = m.s.n_atoms++;
        }
}

static void a_search_without_end_is_given_up(void **state)
{
    (void)state;
    make_sheet(4);
    assert_int_equal(ch_bonding_solve(&m.s, m.order, m.formal), CH_BONDING_OK);
    make_sheet(20);
    assert_int_equal(ch_bonding_solve(&m.s, m.order, m.formal), CH_BONDING_SEARCH);
}

/* ---- positions ---- */

static void atoms_too_near_for_their_valence_are_not_connected(void **state)
{
    static const uint8_t z[4] = { 8, 1, 8, 1 };
    static const double xyz[4][3] = { { 0 }, { 1.0, 0, 0 }, { 2.4, 0, 0 }, { 3.36, 0, 0 } }; /* O-H ... O-H */
    int32_t bond[4 * CH_BONDING_PER_ATOM][2], n;
    (void)state;

    assert_int_equal(ch_bonding_connect(4, z, xyz, bond, &n), CH_BONDING_OK);
    assert_int_equal(n, 2);
    assert_true((bond[0][0] == 0 && bond[0][1] == 1) || (bond[1][0] == 0 && bond[1][1] == 1));
}

static void missing_hydrogens_are_seen_by_lengths_and_angles(void **state)
{
    static const uint8_t z[6] = { 6, 6, 6, 6, 6, 6 };
    static const struct {
        double radius;
        ch_bonding want;
    } rings[] = { { 1.39, CH_BONDING_BENT }, { 1.54, CH_BONDING_LONG } };
    (void)state;

    for (int k = 0; k < 2; k++) {
        double xyz[6][3] = { { 0 } };
        int32_t bond[6 * CH_BONDING_PER_ATOM][2], n, where[2] = { -1, -1 };
        uint8_t order[24];
        int8_t formal[6];
        for (int i = 0; i < 6; i++) {
            xyz[i][0] = rings[k].radius * cos(acos(-1) / 3 * i);
            xyz[i][1] = rings[k].radius * sin(acos(-1) / 3 * i);
        }
        assert_int_equal(ch_bonding_connect(6, z, (const double(*)[3])xyz, bond, &n), CH_BONDING_OK);
        assert_int_equal(n, 6);
        const ch_skeleton s = {
            .n_atoms = 6, .n_bonds = n, .z = z, .xyz = (const double(*)[3])xyz, .bond = (const int32_t(*)[2])bond
        };
        assert_int_equal(ch_bonding_solve(&s, order, formal), CH_BONDING_OK);
        assert_int_equal(ch_bonding_check(&s, order, formal, where), rings[k].want);
        assert_true(where[0] >= 0 && where[0] < 6);
    }
}

/* A chain of 120 CH2: more pairs of near atoms than there is room for at first. */
static void refused_memory_is_told(void **state)
{
    enum { CARBONS = 120, ATOMS = 3 * CARBONS };
    static uint8_t z[ATOMS], order[4 * ATOMS];
    static double xyz[ATOMS][3];
    static int32_t bond[4 * ATOMS][2];
    static int8_t formal[ATOMS];
    ch_bonding end[3] = { CH_BONDING_MEMORY, CH_BONDING_MEMORY, CH_BONDING_MEMORY };
    int32_t n = 0, where[2];
    long refusals[3] = { 0 };

    (void)state;
    for (int i = 0; i < ATOMS; i++) {
        const int c = i / 3, which = i % 3, up = c % 2 ? 1 : -1;
        z[i] = which == 0 ? 6 : 1;
        xyz[i][0] = 1.26 * c;
        xyz[i][1] = which == 0 ? 0.44 * up : 1.05 * up;
        static const double across[3] = { 0, 0.88, -0.88 };
        xyz[i][2] = across[which];
    }
    for (int what = 0; what < 3; what++)
        for (long k = 1; end[what] == CH_BONDING_MEMORY && k < 100; k++) {
            const ch_skeleton s = {
                .n_atoms = ATOMS, .n_bonds = n, .z = z, .xyz = (const double(*)[3])xyz, .bond = (const int32_t(*)[2])bond
            };
            atomic_store(&heap_countdown, k);
            if (what == 0)
                end[what] = ch_bonding_connect(ATOMS, z, (const double(*)[3])xyz, bond, &n);
            else
                end[what] = what == 1 ? ch_bonding_solve(&s, order, formal) : ch_bonding_check(&s, order, formal, where);
            atomic_store(&heap_countdown, 0);
            refusals[what] += end[what] == CH_BONDING_MEMORY;
        }
    assert_int_equal(n, ATOMS - 1);
    assert_true(end[0] == CH_BONDING_OK && end[1] == CH_BONDING_SHELL && end[2] != CH_BONDING_MEMORY);
    assert_true(refusals[0] >= 3 && refusals[1] >= 7 && refusals[2] >= 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_groups_get_their_orders_and_charges),
        cmocka_unit_test(nitro_has_one_double_bond_and_a_negative_oxygen),
        cmocka_unit_test(bond_lengths_choose_between_equal_charges),
        cmocka_unit_test(what_has_no_closed_shells_is_refused_with_a_reason),
        cmocka_unit_test(the_sum_of_charges_is_the_least_of_all_assignments),
        cmocka_unit_test(a_search_without_end_is_given_up),
        cmocka_unit_test(atoms_too_near_for_their_valence_are_not_connected),
        cmocka_unit_test(missing_hydrogens_are_seen_by_lengths_and_angles),
        cmocka_unit_test(refused_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
