/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "chem/graph/graph.h"
#include "made_mol.h"

static pl_arena *mem;

static int fresh(void **state)
{
    (void)state;
    mem = pl_arena_new(1 << 20);
    return mem == NULL;
}

static int done(void **state)
{
    (void)state;
    pl_arena_free(mem);
    return 0;
}

static ch_graph built(const ch_mol *mol, ch_graph_opts opts)
{
    ch_graph g;
    pl_error err;

    if (ch_graph_build(&g, mol, &opts, mem, &err) != PL_OK)
        fail_msg("%s", err.text);
    if (ch_graph_check(&g, &err) != PL_OK)
        fail_msg("%s", err.text);
    return g;
}

static double distance(const ch_mol *m, int32_t i, int32_t j)
{
    double s = 0;

    for (int a = 0; a < 3; a++) {
        float d = m->xyz[i][a] - m->xyz[j][a];
        s += (double)d * d;
    }
    return (float)sqrt(s);
}

static bool has_edge(const ch_graph *g, int32_t s, int32_t d)
{
    for (int32_t e = g->row[d]; e < g->row[d + 1]; e++)
        if (g->src[e] == s)
            return true;
    return false;
}

/* Atoms nearer to i than j is, ties by index: the plain definition of a rank. */
static int32_t rank(const ch_mol *m, int32_t i, int32_t j)
{
    int32_t r = 0;
    double d = distance(m, i, j);

    for (int32_t k = 0; k < m->n_atoms; k++)
        if (k != i && k != j)
            r += distance(m, i, k) < d || (distance(m, i, k) <= d && k < j);
    return r;
}

static void radius_edges_are_those_of_the_double_loop(void **state)
{
    static const float cutoffs[] = { 0.7f, 1.5f, 3.0f, 5.0f, 100.0f };
    (void)state;
    for (int32_t n = 1; n <= 120; n += 7)
        for (size_t c = 0; c < sizeof cutoffs / sizeof *cutoffs; c++) {
            ch_mol m = made_mol(n, 9, (uint64_t)n, mem);
            ch_graph g = built(&m, (ch_graph_opts){ .cutoff = cutoffs[c] });
            int32_t count = 0;
            for (int32_t i = 0; i < n; i++)
                for (int32_t j = 0; j < n; j++) {
                    bool want = i != j && distance(&m, i, j) <= (double)cutoffs[c];
                    assert_int_equal(has_edge(&g, j, i), want);
                    count += want;
                }
            assert_int_equal(count, g.n_edges);
            assert_int_equal(g.n_edges, 2 * g.n_pairs);
        }
}

static void knn_edges_come_from_the_k_nearest(void **state)
{
    (void)state;
    for (int32_t n = 1; n <= 60; n += 11)
        for (int32_t k = 1; k <= 64; k *= 4) {
            ch_mol m = made_mol(n, 9, (uint64_t)n, mem);
            ch_graph g = built(&m, (ch_graph_opts){ .edges = CH_EDGES_KNN, .k = k });
            for (int32_t i = 0; i < n; i++)
                for (int32_t j = 0; j < n; j++)
                    assert_int_equal(has_edge(&g, j, i), i != j && rank(&m, i, j) < k);
        }
}

static void a_limit_keeps_pairs_that_both_atoms_keep(void **state)
{
    (void)state;
    for (int32_t max = 1; max <= 30; max += 3) {
        ch_mol m = made_mol(80, 9, 5, mem);
        ch_graph_opts o = { .cutoff = 4, .max_neighbours = max };
        ch_graph g = built(&m, o);
        for (int32_t i = 0; i < 80; i++) {
            assert_true(g.row[i + 1] - g.row[i] <= max);
            for (int32_t j = 0; j < 80; j++) {
                bool near = i != j && distance(&m, i, j) <= 4;
                bool want = near && rank(&m, i, j) < max && rank(&m, j, i) < max;
                assert_int_equal(has_edge(&g, j, i), want);
            }
        }
    }
}

static void equal_distances_go_to_the_lower_index(void **state)
{
    /* Atom 0 in the middle of four at the same distance. */
    static float xyz[5][3] = { { 0, 0, 0 }, { 1, 0, 0 }, { -1, 0, 0 }, { 0, 1, 0 }, { 0, -1, 0 } };
    uint8_t z[5] = { 6, 1, 1, 1, 1 };
    int8_t charge[5] = { 0 };
    ch_mol m = { .n_atoms = 5, .z = z, .charge = charge, .xyz = xyz };
    ch_graph g = built(&m, (ch_graph_opts){ .edges = CH_EDGES_KNN, .k = 2 });
    (void)state;
    assert_true(has_edge(&g, 1, 0) && has_edge(&g, 2, 0));
    assert_false(has_edge(&g, 3, 0) || has_edge(&g, 4, 0));
}

static void the_edge_at_exactly_the_cutoff_is_in(void **state)
{
    static float xyz[2][3] = { { 0, 0, 0 }, { 3, 4, 0 } };
    uint8_t z[2] = { 6, 6 };
    int8_t charge[2] = { 0 };
    ch_mol m = { .n_atoms = 2, .z = z, .charge = charge, .xyz = xyz };
    (void)state;
    assert_int_equal(built(&m, (ch_graph_opts){ .cutoff = 5 }).n_edges, 2);
    assert_int_equal(built(&m, (ch_graph_opts){ .cutoff = nextafterf(5, 0) }).n_edges, 0);
}

static void renaming_atoms_renames_edges(void **state)
{
    static const ch_graph_opts kinds[] = { { .cutoff = 3 },
                                           { .cutoff = 4, .max_neighbours = 6 },
                                           { .edges = CH_EDGES_BONDS },
                                           { .edges = CH_EDGES_KNN, .k = 5 },
                                           { .edges = CH_EDGES_FULL } };
    ch_mol m = made_mol(50, 9, 3, mem);
    const int32_t *to = made_order(50, 4, mem);
    ch_mol other = made_permuted(&m, to, mem);
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        ch_graph a = built(&m, kinds[k]), b = built(&other, kinds[k]);
        assert_int_equal(a.n_edges, b.n_edges);
        assert_int_equal(a.n_pairs, b.n_pairs);
        for (int32_t i = 0; i < 50; i++)
            for (int32_t e = a.row[i]; e < a.row[i + 1]; e++) {
                int32_t f = b.row[to[i]];
                while (f < b.row[to[i] + 1] && b.src[f] != to[a.src[e]])
                    f++;
                assert_true(f < b.row[to[i] + 1]);
                assert_int_equal(a.type[a.pair[e]], b.type[b.pair[f]]);
                assert_true(a.dist[a.pair[e]] == b.dist[b.pair[f]]);
                assert_int_equal(a.rev[e] < 0, b.rev[f] < 0);
            }
    }
}

static void both_directions_of_a_pair_have_opposite_vectors(void **state)
{
    ch_mol m = made_mol(60, 9, 8, mem);
    ch_graph g = built(&m, (ch_graph_opts){ .cutoff = 4 });
    (void)state;
    for (int32_t i = 0; i < 60; i++)
        for (int32_t e = g.row[i]; e < g.row[i + 1]; e++) {
            int32_t p = g.pair[e];
            float sign = g.pair_edge[p] == e ? 1.0f : -1.0f;
            assert_int_equal(g.pair_edge[p] == e, g.src[e] < i);
            for (int a = 0; a < 3; a++)
                assert_true(sign * g.vec[p][a] == m.xyz[i][a] - m.xyz[g.src[e]][a]);
        }
}

static void bonds_keep_their_kind_in_every_graph(void **state)
{
    ch_mol m = made_mol(40, 9, 2, mem);
    ch_graph bonds = built(&m, (ch_graph_opts){ .edges = CH_EDGES_BONDS });
    ch_graph full = built(&m, (ch_graph_opts){ .edges = CH_EDGES_FULL });
    int32_t bonded = 0;
    (void)state;
    assert_int_equal(bonds.n_pairs, m.n_bonds);
    assert_int_equal(full.n_edges, 40 * 39);
    for (int32_t b = 0; b < m.n_bonds; b++)
        for (int32_t e = full.row[m.bond[b][1]]; e < full.row[m.bond[b][1] + 1]; e++)
            if (full.src[e] == m.bond[b][0])
                assert_int_equal(full.type[full.pair[e]], m.order[b] - 1);
    for (int32_t p = 0; p < full.n_pairs; p++)
        bonded += full.type[p] != CH_PAIR_NOT_BONDED;
    assert_int_equal(bonded, m.n_bonds);
}

static void five_thousand_atoms_take_no_time(void **state)
{
    ch_mol m = made_mol(5000, 20, 1, mem);
    clock_t start = clock();
    ch_graph g = built(&m, (ch_graph_opts){ .cutoff = 5 });
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    (void)state;
    assert_true(g.n_edges > 50000);
    assert_true(seconds < 2); /* about 0.02; the double loop would still pass, a cubic one not */
}

static void distant_atoms_do_not_use_more_memory(void **state)
{
    static float xyz[3][3] = { { -9e4f, 0, 0 }, { 9e4f, 9e4f, 9e4f }, { 9e4f, 9e4f, 8.9999e4f } };
    uint8_t z[3] = { 6, 6, 6 };
    int8_t charge[3] = { 0 };
    ch_mol m = { .n_atoms = 3, .z = z, .charge = charge, .xyz = xyz };
    (void)state;
    assert_int_equal(built(&m, (ch_graph_opts){ .cutoff = 3 }).n_edges, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(radius_edges_are_those_of_the_double_loop, fresh, done),
        cmocka_unit_test_setup_teardown(knn_edges_come_from_the_k_nearest, fresh, done),
        cmocka_unit_test_setup_teardown(a_limit_keeps_pairs_that_both_atoms_keep, fresh, done),
        cmocka_unit_test_setup_teardown(equal_distances_go_to_the_lower_index, fresh, done),
        cmocka_unit_test_setup_teardown(the_edge_at_exactly_the_cutoff_is_in, fresh, done),
        cmocka_unit_test_setup_teardown(renaming_atoms_renames_edges, fresh, done),
        cmocka_unit_test_setup_teardown(both_directions_of_a_pair_have_opposite_vectors, fresh, done),
        cmocka_unit_test_setup_teardown(bonds_keep_their_kind_in_every_graph, fresh, done),
        cmocka_unit_test_setup_teardown(five_thousand_atoms_take_no_time, fresh, done),
        cmocka_unit_test_setup_teardown(distant_atoms_do_not_use_more_memory, fresh, done),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
