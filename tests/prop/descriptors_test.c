/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors of random graphs: any element, charge and bond, rings of all kinds, parts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chem/features/features.h"
#include "made_mol.h"

static pl_arena *mem;

static int by_atoms(const void *a, const void *b)
{
    const int32_t *x = a, *y = b;

    if (x[0] != y[0])
        return x[0] < y[0] ? -1 : 1;
    return (x[1] > y[1]) - (x[1] < y[1]);
}

/* n atoms, most of them of organic elements, and about n times `density` bonds between any two. */
static ch_mol made_any(int32_t n, double density, uint64_t seed)
{
    static const uint8_t usual[] = { 1, 1, 1, 6, 6, 6, 6, 7, 8, 16, 9, 15 };
    pl_rng rng = pl_rng_at(seed, 0, 0);
    const int32_t want = (int32_t)(density * n);
    ch_mol m = { .n_atoms = n };
    int32_t kept = 0;

    assert_int_equal(ch_mol_alloc(&m, n, want + 1, mem, NULL), PL_OK);
    for (int32_t i = 0; i < n; i++) {
        m.z[i] = pl_rng_below(&rng, 10) == 0 ? (uint8_t)(1 + pl_rng_below(&rng, 118)) : usual[pl_rng_below(&rng, sizeof usual)];
        m.charge[i] = pl_rng_below(&rng, 8) == 0 ? (int8_t)((int)pl_rng_below(&rng, 256) - 128) : 0;
    }
    for (int32_t b = 0; b < want; b++) {
        const int32_t i = (int32_t)pl_rng_below(&rng, (uint64_t)n), j = (int32_t)pl_rng_below(&rng, (uint64_t)n);
        m.bond[b][0] = i < j ? i : j;
        m.bond[b][1] = i < j ? j : i;
    }
    qsort(m.bond, (size_t)want, sizeof *m.bond, by_atoms);
    for (int32_t b = 0; b < want; b++)
        if (m.bond[b][0] != m.bond[b][1] && (kept == 0 || by_atoms(m.bond[kept - 1], m.bond[b]) != 0)) {
            m.order[kept] = (uint8_t)(1 + pl_rng_below(&rng, 4));
            memcpy(m.bond[kept++], m.bond[b], sizeof *m.bond);
        }
    m.n_bonds = kept;
    m.xyz = NULL;
    return m;
}

static void describe(float out[CH_N_FEATURES], const ch_mol *m)
{
    ch_graph g;
    pl_error err = { 0 };

    assert_int_equal(ch_graph_build(&g, m, &(ch_graph_opts){ .edges = CH_EDGES_TOPOLOGY }, mem, NULL), PL_OK);
    if (ch_graph_check(&g, &err) != PL_OK || ch_features_of(out, &g, mem, &err) != PL_OK)
        fail_msg("%s", err.text);
}

static const struct {
    int32_t n;
    double density;
} kinds[] = { { 1, 0 }, { 6, 0.5 }, { 20, 1 }, { 30, 1.3 }, { 40, 2.5 }, { 60, 1.1 }, { 25, 8 } };
enum { KINDS = sizeof kinds / sizeof *kinds };

static void descriptors_of_any_graph_are_finite(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 400; seed++) {
        const ch_mol m = made_any(kinds[seed % KINDS].n, kinds[seed % KINDS].density, seed);
        float x[CH_N_FEATURES];
        describe(x, &m);
        for (int k = 0; k < CH_N_FEATURES; k++)
            if (!isfinite(x[k]))
                fail_msg("seed %d: %s is %g", (int)seed, ch_features[k].name, (double)x[k]);
        pl_arena_reset(mem);
    }
}

static void the_order_of_atoms_does_not_change_a_bit(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 400; seed++) {
        const ch_mol m = made_any(kinds[seed % KINDS].n, kinds[seed % KINDS].density, seed);
        const ch_mol other = made_permuted(&m, made_order(m.n_atoms, seed + 1, mem), mem);
        float x[CH_N_FEATURES], y[CH_N_FEATURES];
        describe(x, &m);
        describe(y, &other);
        for (int k = 0; k < CH_N_FEATURES; k++)
            if (memcmp(&x[k], &y[k], sizeof x[k]) != 0)
                fail_msg("seed %d: %s is %.9g or %.9g", (int)seed, ch_features[k].name, (double)x[k], (double)y[k]);
        pl_arena_reset(mem);
    }
}

/* Rings are at least as many as independent cycles: bonds - atoms + parts. */
static void rings_span_all_cycles(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        ch_mol m = made_any(20 + (int32_t)(seed % 30), 1.2, seed);
        float x[CH_N_FEATURES];
        for (int32_t i = 0; i < m.n_atoms; i++)
            m.z[i] = m.z[i] == 1 ? 6 : m.z[i];
        describe(x, &m);
        assert_true(x[CH_F_rings] >= (float)(m.n_bonds - m.n_atoms) + x[CH_F_parts]);
        assert_true((x[CH_F_rings] > 0) == ((float)(m.n_bonds - m.n_atoms) + x[CH_F_parts] > 0));
        pl_arena_reset(mem);
    }
}

/* A square lattice with a chain from corner to corner: without a limit, paths across it have no end. */
static void a_lattice_with_a_long_ring_takes_no_time(void **state)
{
    enum { SIDE = 14, CHAIN = 20, ATOMS = SIDE * SIDE + CHAIN };
    ch_mol m;
    float x[CH_N_FEATURES];
    int32_t n = 0;

    (void)state;
    assert_int_equal(ch_mol_alloc(&m, ATOMS, 4 * ATOMS, mem, NULL), PL_OK);
    for (int32_t i = 0; i < ATOMS; i++)
        m.z[i] = 6;
    for (int32_t i = 0; i < SIDE * SIDE; i++) {
        const int32_t to[] = { i % SIDE + 1 < SIDE ? i + 1 : -1, i + SIDE < SIDE * SIDE ? i + SIDE : -1,
                               i == 0 ? SIDE * SIDE : -1 };
        for (int k = 0; k < 3; k++)
            if (to[k] >= 0) {
                m.bond[n][0] = i;
                m.bond[n][1] = to[k];
                m.order[n++] = CH_SINGLE;
            }
    }
    m.bond[n][0] = SIDE * SIDE - 1;
    m.bond[n][1] = ATOMS - 1;
    m.order[n++] = CH_SINGLE;
    for (int32_t i = SIDE * SIDE; i + 1 < ATOMS; i++) {
        m.bond[n][0] = i;
        m.bond[n][1] = i + 1;
        m.order[n++] = CH_SINGLE;
    }
    m.n_bonds = n;
    describe(x, &m);
    assert_true(x[CH_F_rings_4] == (SIDE - 1) * (SIDE - 1));
}

static int setup(void **state)
{
    (void)state;
    mem = pl_arena_new(0);
    return mem != NULL ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    pl_arena_free(mem);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(descriptors_of_any_graph_are_finite),
        cmocka_unit_test(the_order_of_atoms_does_not_change_a_bit),
        cmocka_unit_test(rings_span_all_cycles),
        cmocka_unit_test(a_lattice_with_a_long_ring_takes_no_time),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
