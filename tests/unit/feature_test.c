/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "made_mol.h"
#include "models/features/feature.h"
#include "models/network/basis.h"
#include "models/network/frame.h"
#include "models/network/sh.h"
#include "tests/unit/guarded.h"
#include "tests/unit/held.h"

enum { N_GRAPHS = 5 };

static pl_arena *mem;
static ch_graph_block graphs;

static int fresh(void **state)
{
    ch_graph graph[N_GRAPHS];
    int64_t id[N_GRAPHS];
    pl_bytes bytes;

    (void)state;
    mem = pl_arena_new(1 << 20);
    for (int32_t i = 0; i < N_GRAPHS; i++) {
        ch_mol m = made_mol(3 + 4 * i, 9, (uint64_t)i, mem);
        ch_graph_opts o = { .edges = i == 3 ? CH_EDGES_KNN : CH_EDGES_RADIUS, .cutoff = 3, .k = 3 };
        id[i] = 1 + i;
        if (i == 2)
            m.z[1] = 17;
        if (ch_graph_build(&graph[i], &m, &o, mem, NULL) != PL_OK)
            return 1;
    }
    return ch_graph_block_pack(&bytes, id, graph, N_GRAPHS, mem, NULL) != PL_OK ||
           ch_graph_block_unpack(&graphs, bytes, mem, NULL) != PL_OK;
}

static int done(void **state)
{
    (void)state;
    pl_arena_free(mem);
    return 0;
}

static nn_basis_block stored(nn_basis_kind kind, int32_t max_degree)
{
    pl_bytes bytes;
    nn_basis_block b = { 0 };
    pl_error err;

    if (nn_basis_pack(&bytes, kind, max_degree, &graphs, mem, &err) != PL_OK ||
        nn_basis_unpack(&b, bytes, &graphs, mem, &err) != PL_OK)
        fail_msg("%s", err.text);
    double sum = nn_basis_bytes(kind, max_degree, (double)graphs.n_pairs, (double)graphs.n_edges);
    assert_true((double)bytes.len >= sum && (double)bytes.len < sum + 48 + 8 * (N_GRAPHS + 1));
    return b;
}

static void widths_are_those_of_the_specification(void **state)
{
    (void)state;
    assert_int_equal(nn_basis_width(NN_BASIS_FRAME_Q15, 3), 83);
    assert_int_equal(nn_basis_bytes(NN_BASIS_FRAME_Q15, 3, 1, 2), 166);
    assert_int_equal(nn_basis_width(NN_BASIS_SH_F32, 3), 49);
    assert_int_equal(nn_basis_width(NN_BASIS_PAIRWISE_F32, 3), 1092);
    assert_int_equal(nn_basis_bytes(NN_BASIS_PAIRWISE_F32, 3, 1, 2), 2 * 4368);
    assert_int_equal(nn_basis_bytes(NN_BASIS_NONE, 3, 1, 2), 0);
}

static void stored_frames_are_the_computed_ones(void **state)
{
    nn_basis_block f32 = stored(NN_BASIS_FRAME_F32, 3), q15 = stored(NN_BASIS_FRAME_Q15, 3);
    nn_frame_rule rule;
    (void)state;
    nn_frame_rule_make(&rule);
    for (int32_t g = 0; g < N_GRAPHS; g++)
        for (int32_t p = 0; p < graphs.graph[g].n_pairs; p++) {
            float d[NN_FRAME_FLOATS];
            size_t at = (f32.at[g] + (uint64_t)p) * NN_FRAME_FLOATS;
            nn_frame_make(&rule, graphs.graph[g].vec[p], 3, d);
            assert_memory_equal(d, f32.f32 + at, sizeof d);
            for (int k = 0; k < NN_FRAME_FLOATS; k++)
                assert_true(fabs(d[k] - q15.q15[at + (size_t)k] / 32767.0) <= 1.6e-5);
        }
}

static void stored_harmonics_are_the_computed_ones(void **state)
{
    nn_basis_block b = stored(NN_BASIS_SH_F32, 3);
    (void)state;
    for (int32_t p = 0; p < graphs.graph[4].n_pairs; p++) {
        float want[49];
        nn_shf(want, 6, graphs.graph[4].vec[p]);
        assert_memory_equal(want, b.f32 + (b.at[4] + (uint64_t)p) * 49, sizeof want);
    }
}

/* B_J of the reverse edge, y, is (-1)^J B_J. */
static void bases_are_turned(const float *x, const float *y, int i, int o)
{
    for (int l = 0; l < 2 * i + 1; l++)
        for (int f = 0; f < nn_freqs(i, o); f++)
            for (int k = 0; k < 2 * o + 1; k++, x++, y++)
                assert_true(fabsf(*x - ((abs(i - o) + f) % 2 ? -*y : *y)) <= 1e-6f);
}

/* The relation between the two directions of a pair. */
static void stored_pairwise_bases_rotate_with_the_edge(void **state)
{
    nn_basis_block b = stored(NN_BASIS_PAIRWISE_F32, 2);
    const ch_graph *g = &graphs.graph[4];
    (void)state;
    for (int32_t e = 0; e < g->n_edges; e++) {
        const float *x = b.f32 + (b.at[4] + (uint64_t)e) * (uint64_t)b.width;
        const float *y = b.f32 + (b.at[4] + (uint64_t)g->rev[e]) * (uint64_t)b.width;
        for (int i = 0; i <= 2; i++)
            for (int o = 0; o <= 2; o++) {
                const int n = (2 * i + 1) * nn_freqs(i, o) * (2 * o + 1);
                bases_are_turned(x, y, i, o);
                x += n;
                y += n;
            }
    }
}

static void bases_of_other_graphs_are_refused(void **state)
{
    pl_bytes bytes;
    nn_basis_block b;
    ch_graph_block other = graphs;
    pl_error err;
    (void)state;
    assert_int_equal(nn_basis_pack(&bytes, NN_BASIS_FRAME_Q15, 3, &graphs, mem, NULL), PL_OK);
    other.crc ^= 1;
    assert_int_equal(nn_basis_unpack(&b, bytes, &other, mem, &err), PL_EDATA);
    assert_non_null(strstr(err.text, "other graphs"));
}

static void inputs_are_checked(void **state)
{
    nn_inputs in = nn_inputs_qm9();
    (void)state;
    assert_int_equal(nn_inputs_check(&in, NULL), PL_OK);
    assert_int_equal(nn_inputs_node_features(&in), 6);
    assert_int_equal(nn_inputs_edge_features(&in), 4);
    in.element[4] = 6;
    assert_int_equal(nn_inputs_check(&in, NULL), PL_ECONFIG);
    in.element[4] = 0;
    assert_int_equal(nn_inputs_check(&in, NULL), PL_ECONFIG);
    in.element[4] = 118;
    assert_int_equal(nn_inputs_check(&in, NULL), PL_OK);
    in.element[4] = 119;
    assert_int_equal(nn_inputs_check(&in, NULL), PL_ECONFIG);
    for (int k = 0; k < NN_MAX_ELEMENTS; k++)
        in.element[k] = (uint8_t)(k + 1);
    in.n_elements = NN_MAX_ELEMENTS;
    assert_int_equal(nn_inputs_check(&in, NULL), PL_OK);
    in.n_elements = NN_MAX_ELEMENTS + 1;
    assert_int_equal(nn_inputs_check(&in, NULL), PL_ECONFIG);
    in.n_elements = 0;
    assert_int_equal(nn_inputs_check(&in, NULL), PL_ECONFIG);
}

/* Node and edge numbers of one molecule inside the batch against its graph. */
static void check_molecule(const nn_batch *b, int32_t at, const ch_graph *g, int32_t edge0)
{
    int32_t node0 = b->first[at];

    assert_int_equal(b->first[at + 1] - node0, g->n_nodes);
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const float *x = b->node + (size_t)(node0 + i) * 7;
        float sum = 0;
        for (int k = 0; k < 5; k++)
            sum += x[k];
        assert_true(sum == 1 && x[5] == g->z[i] && x[6] == g->charge[i]);
        assert_int_equal(b->row[node0 + i], edge0 + g->row[i]);
        for (int32_t e = edge0 + g->row[i]; e < edge0 + g->row[i + 1]; e++) {
            int32_t type = g->type[g->pair[e - edge0]];
            assert_int_equal(b->dst[e], node0 + i);
            assert_int_equal(b->src[e], node0 + g->src[e - edge0]);
            for (int k = 0; k < 4; k++)
                assert_true(b->edge[(size_t)e * 4 + (size_t)k] == (k == type ? 1.0f : 0.0f));
            assert_true(b->dist[e] == g->dist[g->pair[e - edge0]]);
        }
    }
}

static void check_reverse(const nn_batch *b)
{
    for (int32_t e = 0; e < b->n_edges; e++) {
        int32_t r = b->rev[e];
        assert_true(b->pair_edge[b->pair[e]] == e || b->pair_edge[b->pair[e]] == r);
        if (r < 0)
            continue;
        assert_true(b->src[r] == b->dst[e] && b->dst[r] == b->src[e] && b->rev[r] == e);
        for (int a = 0; a < 3; a++)
            assert_true(b->vec[r][a] == -b->vec[e][a]);
    }
}

static void a_batch_is_its_molecules_end_to_end(void **state)
{
    nn_collate *c = nn_collate_new();
    nn_item items[N_GRAPHS];
    nn_inputs in = nn_inputs_qm9();
    nn_collated out;
    int32_t edge0 = 0;
    (void)state;
    in.charge = true;
    for (int32_t i = 0; i < N_GRAPHS; i++)
        items[i] = nn_item_of(&graphs, NULL, i);
    assert_int_equal(nn_collate_run(c, &out, items, N_GRAPHS, &in, NULL), PL_OK);
    assert_int_equal(out.batch.n_graphs, N_GRAPHS - 1);
    assert_null(out.batch.frame);
    for (int32_t g = 0; g < out.batch.n_graphs; g++) {
        check_molecule(&out.batch, g, items[out.item[g]].graph, edge0);
        edge0 += items[out.item[g]].graph->n_edges;
    }
    assert_int_equal(out.batch.row[out.batch.n_nodes], out.batch.n_edges);
    assert_int_equal(edge0, out.batch.n_edges);
    check_reverse(&out.batch);
    nn_collate_free(c);
}

/* One atom that n others point at: that many edges, none of which has another back. */
static ch_graph star(int n)
{
    uint8_t *z = PL_NEW(mem, uint8_t, n + 1), *type = PL_NEW(mem, uint8_t, n);
    int32_t *row = PL_NEW(mem, int32_t, n + 2), *rev = PL_NEW(mem, int32_t, n), *pair = PL_NEW(mem, int32_t, n);
    uint16_t *src = PL_NEW(mem, uint16_t, n);
    float(*vec)[3] = pl_arena_get(mem, (size_t)n, sizeof *vec), *dist = PL_NEW(mem, float, n);

    z[0] = 7;
    for (int i = 0; i < n; i++) {
        z[i + 1] = (uint8_t)(6 + i % 3);
        row[i + 1] = n;
        src[i] = (uint16_t)(i + 1);
        rev[i] = -1;
        pair[i] = i;
        type[i] = (uint8_t)(i % 4);
        vec[i][i % 3] = dist[i] = (float)(i + 1);
    }
    row[n + 1] = n;
    return (ch_graph){ n + 1, n, n, z, PL_NEW(mem, int8_t, n + 1), row, src, rev, pair, pair, type, (const float(*)[3])vec, dist };
}

/* The arrays lie one behind another, rounded up to 64 bytes: whatever the number of edges, none reaches into the next. */
static void arrays_of_any_number_of_edges_have_their_room(void **state)
{
    nn_inputs in = nn_inputs_qm9();

    (void)state;
    in.charge = true;
    for (int n = 1; n <= 50; n++) {
        const ch_graph g = star(n);
        const nn_item item = { .graph = &g };
        nn_collate *c = nn_collate_new();
        nn_collated out;
        assert_int_equal(nn_collate_run(c, &out, &item, 1, &in, NULL), PL_OK);
        check_molecule(&out.batch, 0, &g, 0);
        assert_memory_equal(out.batch.row, g.row, (size_t)(n + 2) * sizeof *g.row);
        assert_memory_equal(out.batch.rev, g.rev, (size_t)n * sizeof *g.rev);
        assert_memory_equal(out.batch.pair, g.pair, (size_t)n * sizeof *g.pair);
        assert_memory_equal(out.batch.pair_edge, g.pair_edge, (size_t)n * sizeof *g.pair);
        assert_memory_equal(out.batch.vec, g.vec, (size_t)n * sizeof *g.vec);
        nn_collate_free(c);
    }
}

static void collate(void *ctx)
{
    const nn_inputs in = nn_inputs_qm9();
    const nn_item item = { .graph = ctx };
    nn_collate *c = nn_collate_new();
    nn_collated out;

    assert_int_equal(nn_collate_run(c, &out, &item, 1, &in, NULL), PL_OK);
    nn_collate_free(c);
}

static void a_collation_that_ended_holds_no_memory(void **state)
{
    ch_graph g = star(3);

    (void)state;
    assert_holds_nothing(collate, &g);
}

/* The rotation of the same x axis whose y axis is the other direction; D_2 and those behind it follow from D_1. */
static void the_frame_of_the_other_direction_differs_by_signs(void **state)
{
    const float vec[3] = { 1, -2, 2 };
    nn_frame_rule rule;

    (void)state;
    nn_frame_rule_make(&rule);
    for (int l_max = 1; l_max <= NN_MAX_DEGREE; l_max++) {
        const size_t n = (size_t)nn_frame_size(l_max);
        float *sign = guarded(n, sizeof *sign), *d = guarded(n, sizeof *d), *other = guarded(n, sizeof *other);
        nn_frame_reverse(l_max, sign);
        nn_frame_make(&rule, vec, l_max, d);
        for (int k = 0; k < 9; k++)
            other[k] = sign[k] * d[k];
        for (int i = 0; i < 3; i++) {
            assert_true(fabsf(other[3 * i + 1] + vec[i] / 3) <= 1e-6f);
            assert_true(other[3 * i] == d[3 * i]);
        }
        nn_frame_extend(&rule, 2, l_max, other);
        for (size_t k = 0; k < n; k++)
            assert_true(fabsf(other[k] - sign[k] * d[k]) <= 1e-5f && fabsf(sign[k]) == 1);
    }
}

/* The same numbers on every atom of a molecule, behind what is its own. */
static void columns_and_descriptors_are_read_by_every_atom(void **state)
{
    static nn_moments all[CH_N_FEATURES];
    static const float feature[2][CH_N_FEATURES] = { { 5, 1e30f, 7 }, { 1, -1e30f, 7 } }, column[2][2] = { { 7, 25 }, { 4, 5 } };
    static const float want[2][5] = { { 1.5f, -1, 2, 8, 0 }, { -0.5f, -2, 0, -8, 0 } };
    nn_inputs in = nn_inputs_qm9();
    const int32_t own = nn_inputs_node_features(&in);
    nn_item items[2] = { nn_item_of(&graphs, NULL, 0), nn_item_of(&graphs, NULL, 1) };
    nn_collate *c = nn_collate_new();
    nn_collated out;
    (void)state;
    all[0] = (nn_moments){ 1, 2 };
    all[1] = (nn_moments){ 0, 1 };
    all[2] = (nn_moments){ 7, 0 }; /* the same in all of the training */
    in.n_columns = 2;
    in.column[0] = (nn_input_column){ .name = "temperature", .over = { 10, 10 }, .at = 1 };
    in.column[1] = (nn_input_column){ .name = "pH", .over = { 10, 3 }, .at = 0 };
    in.descriptors = true;
    in.descriptor = all;
    assert_int_equal(nn_collate_run(c, &out, items, 2, &in, NULL), PL_EBUG);
    for (int i = 0; i < 2; i++) {
        items[i].column = column[i];
        items[i].feature = feature[i];
    }
    assert_int_equal(nn_collate_run(c, &out, items, 2, &in, NULL), PL_OK);
    assert_int_equal(out.batch.n_node_features, own + 2 + CH_N_FEATURES);
    for (int32_t i = 0; i < out.batch.n_nodes; i++) {
        const float *atom = out.batch.node + (size_t)i * (size_t)out.batch.n_node_features;
        const int g = i >= items[0].graph->n_nodes;
        const int32_t at = g ? i - items[0].graph->n_nodes : i;
        assert_true(atom[5] == (float)items[g].graph->z[at]);
        assert_true(atom[own] == want[g][0] && atom[own + 1] == want[g][1] && atom[own + 2] == want[g][2]);
        assert_true(atom[own + 3] == want[g][3] && atom[own + 4] == want[g][4] && atom[own + 5] == 0);
    }
    nn_collate_free(c);
}

static void a_column_has_a_mean_and_a_domain(void **state)
{
    float value[1000], same[3] = { 2, 2, 2 };
    const char *const names[] = { "pH", "temperature" };
    nn_inputs in = { .n_columns = 2, .column = { { .name = "temperature" }, { .name = "pH" } } }, other = in;
    pl_error err = { 0 };
    (void)state;
    for (int i = 0; i < 1000; i++)
        value[i] = (float)((i * 7) % 1000);
    assert_int_equal(nn_input_column_fit(&in.column[0], value, 1000, &err), PL_OK);
    assert_true(in.column[0].over.mean == 499.5 && fabs(in.column[0].over.stdev - 288.675) < 1e-3);
    assert_true(in.column[0].low == 4 && in.column[0].high == 995); /* the outermost four are left out on either side */
    assert_int_equal(nn_input_column_fit(&in.column[1], value, 3, &err), PL_OK);
    assert_true(in.column[1].low == 0 && in.column[1].high == 2 && in.column[1].over.mean == 1);
    assert_int_equal(nn_input_column_fit(&in.column[1], same, 1, &err), PL_ECONFIG);
    assert_int_equal(nn_input_column_fit(&in.column[1], same, 0, &err), PL_ECONFIG);
    for (int k = 0; k < 3; k++) { /* one of three is another */
        float other_one[3] = { 2, 2, 2 };
        other_one[k] = k % 2 ? 1 : 3;
        assert_int_equal(nn_input_column_fit(&in.column[1], other_one, 3, &err), PL_OK);
    }
    assert_int_equal(nn_input_column_fit(&in.column[1], same, 3, &err), PL_ECONFIG);
    assert_string_equal(err.text, "the column pH is the same for all 3 training molecules: a model learns nothing from it");
    assert_int_equal(nn_inputs_place(&in, names, 2, &err), PL_OK);
    assert_true(in.column[0].at == 1 && in.column[1].at == 0 && !nn_inputs_same(&in, &other) && nn_inputs_same(&in, &in));
    assert_int_equal(nn_inputs_place(&in, names, 1, &err), PL_ECONFIG);
    assert_string_equal(err.text, "there is no column temperature, which the model reads");
}

static void inputs_that_differ_in_one_member_are_not_the_same(void **state)
{
    const nn_inputs in = nn_inputs_qm9();
    nn_inputs other = in;

    (void)state;
    assert_true(nn_inputs_same(&in, &other));
    other.charge = !in.charge;
    assert_false(nn_inputs_same(&in, &other));
    assert_true(nn_inputs_same(&other, &other));
    other = in;
    other.z = !in.z;
    assert_false(nn_inputs_same(&in, &other));
    other = in;
    other.bonds = !in.bonds;
    assert_false(nn_inputs_same(&in, &other));
    other = in;
    other.element[4] = 17;
    assert_false(nn_inputs_same(&in, &other));
    other.n_elements = 4;
    assert_false(nn_inputs_same(&in, &other) || nn_inputs_same(&other, &in));
}

static void inputs_with_other_columns_are_not_the_same(void **state)
{
    const nn_inputs in = { .n_columns = 2, .column = { { .over = { 1, 2 }, .at = 0 }, { .over = { 3, 4 }, .at = 1 } } };

    (void)state;
    for (int k = 0; k < 2; k++) {
        nn_inputs other[3] = { in, in, in };
        other[0].column[k].at = 2;
        other[1].column[k].over.mean = 9;
        other[2].column[k].over.stdev = 9;
        for (int i = 0; i < 3; i++)
            assert_false(nn_inputs_same(&in, &other[i]));
    }
    assert_true(nn_inputs_same(&in, &in));
}

static void a_molecule_with_an_unknown_element_is_left_out_and_named(void **state)
{
    nn_collate *c = nn_collate_new();
    nn_item items[2] = { nn_item_of(&graphs, NULL, 2), nn_item_of(&graphs, NULL, 0) };
    nn_inputs in = nn_inputs_qm9();
    nn_collated out;
    (void)state;
    assert_int_equal(nn_collate_run(c, &out, items, 2, &in, NULL), PL_OK);
    assert_int_equal(out.n_left, 1);
    assert_int_equal(out.left[0].item, 0);
    assert_int_equal(out.left[0].element, 17);
    assert_int_equal(out.batch.n_graphs, 1);
    assert_int_equal(out.item[0], 1);
    assert_int_equal(nn_collate_run(c, &out, items, 1, &in, NULL), PL_OK);
    assert_int_equal(out.batch.n_graphs, 0);
    assert_int_equal(out.batch.first[0], 0);
    assert_int_equal(nn_collate_run(c, &out, NULL, 0, &in, NULL), PL_OK);
    nn_collate_free(c);
}

static void stored_frames_reach_the_batch(void **state)
{
    nn_basis_block q15 = stored(NN_BASIS_FRAME_Q15, 3), f32 = stored(NN_BASIS_FRAME_F32, 3);
    nn_collate *a = nn_collate_new(), *b = nn_collate_new();
    nn_item items[2] = { nn_item_of(&graphs, &q15, 4), nn_item_of(&graphs, &q15, 0) };
    nn_inputs in = nn_inputs_qm9();
    nn_collated x, y;
    (void)state;
    assert_int_equal(nn_collate_run(a, &x, items, 2, &in, NULL), PL_OK);
    items[0] = nn_item_of(&graphs, &f32, 4);
    items[1] = nn_item_of(&graphs, &f32, 0);
    assert_int_equal(nn_collate_run(b, &y, items, 2, &in, NULL), PL_OK);
    assert_non_null(x.batch.frame);
    for (size_t k = 0; k < (size_t)x.batch.n_pairs * NN_FRAME_FLOATS; k++)
        assert_true(fabsf(x.batch.frame[k] - y.batch.frame[k]) <= 1.6e-5f);
    items[1] = nn_item_of(&graphs, NULL, 0); /* one without: the engine computes all */
    assert_int_equal(nn_collate_run(b, &y, items, 2, &in, NULL), PL_OK);
    assert_null(y.batch.frame);
    nn_collate_free(a);
    nn_collate_free(b);
}

static void a_smaller_batch_needs_no_new_memory(void **state)
{
    nn_collate *c = nn_collate_new();
    nn_item items[N_GRAPHS];
    nn_inputs in = nn_inputs_qm9();
    nn_collated out;
    const void *was;
    size_t bytes;
    (void)state;
    for (int32_t i = 0; i < N_GRAPHS; i++)
        items[i] = nn_item_of(&graphs, NULL, i);
    assert_int_equal(nn_collate_run(c, &out, items, N_GRAPHS, &in, NULL), PL_OK);
    was = out.batch.first;
    bytes = nn_collate_bytes(c);
    for (int32_t n = 0; n < N_GRAPHS; n++) {
        assert_int_equal(nn_collate_run(c, &out, items, n, &in, NULL), PL_OK);
        assert_ptr_equal(was, out.batch.first);
        assert_int_equal(bytes, nn_collate_bytes(c));
    }
    nn_collate_free(c);
}

static void batches_respect_their_budget_and_always_advance(void **state)
{
    nn_item items[N_GRAPHS];
    int64_t two;
    (void)state;
    for (int32_t i = 0; i < N_GRAPHS; i++)
        items[i] = nn_item_of(&graphs, NULL, i);
    two = items[0].graph->n_edges + items[1].graph->n_edges;
    assert_int_equal(nn_collate_take(items, 0, N_GRAPHS, 0, 0), N_GRAPHS);
    assert_int_equal(nn_collate_take(items, 0, N_GRAPHS, 3, 0), 3);
    assert_int_equal(nn_collate_take(items, 0, N_GRAPHS, 0, two), 2);
    assert_int_equal(nn_collate_take(items, 0, N_GRAPHS, 0, two - 1), 1);
    assert_int_equal(nn_collate_take(items, 4, N_GRAPHS, 0, 1), 1);
}

static void graphs_without_positions_are_refused(void **state)
{
    ch_mol m = made_mol(12, 9, 1, mem);
    ch_graph flat;
    ch_graph_block block = { .n = 1, .graph = &flat };
    nn_collate *c = nn_collate_new();
    nn_inputs in = nn_inputs_qm9();
    nn_item item;
    nn_collated out;
    pl_bytes bytes;
    pl_error err = { 0 };

    (void)state;
    assert_int_equal(ch_graph_build(&flat, &m, &(ch_graph_opts){ .edges = CH_EDGES_TOPOLOGY }, mem, NULL), PL_OK);
    block.n_edges = flat.n_edges;
    block.n_pairs = flat.n_pairs;
    item = nn_item_of(&block, NULL, 0);
    assert_int_equal(nn_collate_run(c, &out, &item, 1, &in, &err), PL_ECONFIG);
    assert_string_equal(err.text, "a graph without positions (edges: topology): a network cannot read it");
    assert_int_equal(nn_basis_pack(&bytes, NN_BASIS_FRAME_Q15, 3, &block, mem, &err), PL_ECONFIG);
    assert_string_equal(err.text, "a graph without positions (edges: topology) has no bases");
    assert_int_equal(nn_basis_pack(&bytes, NN_BASIS_NONE, 3, &graphs, mem, &err), PL_EBUG);
    assert_int_equal(nn_basis_pack(&bytes, (nn_basis_kind)-1, 3, &graphs, mem, &err), PL_EBUG);
    assert_int_equal(nn_basis_pack(&bytes, NN_BASIS_FRAME_Q15, -1, &graphs, mem, &err), PL_EBUG);
    assert_int_equal(nn_basis_pack(&bytes, NN_BASIS_FRAME_Q15, NN_MAX_DEGREE + 1, &graphs, mem, &err), PL_EBUG);
    assert_string_equal(err.text, "bases of kind 0, degree 5");
    nn_collate_free(c);
}

static void molecules_that_a_batch_cannot_hold_are_refused(void **state)
{
    const float column[] = { 1 }, feature[CH_N_FEATURES] = { 0 };
    nn_inputs in = nn_inputs_qm9();
    ch_graph large = graphs.graph[0];
    nn_item item = nn_item_of(&graphs, NULL, 0), two[2] = { { .graph = &large }, { .graph = &large } };
    nn_collate *c = nn_collate_new();
    nn_collated out;
    pl_error err = { 0 };

    (void)state;
    for (int k = 0; k < 4; k++) { /* a column, a descriptor, and one of the two without the other */
        in.n_columns = k == 0 || k == 2;
        in.descriptors = k > 0;
        item.column = k == 3 ? column : NULL;
        item.feature = k == 2 ? feature : NULL;
        err = (pl_error){ 0 };
        assert_int_equal(nn_collate_run(c, &out, &item, 1, &in, &err), PL_EBUG);
        assert_string_equal(err.text, "a molecule without its columns came into a batch");
    }
    in = nn_inputs_qm9();
    large.n_edges = INT32_MAX / 2 + 1;
    assert_int_equal(nn_collate_run(c, &out, two, 2, &in, &err), PL_EINPUT);
    assert_string_equal(err.text, "a batch of 2147483648 edges is too large");
    nn_collate_free(c);
}

/* Noise moves atoms: every edge, there and back, by the difference of what its ends got; the same from the same stream. */
static void noise_moves_atoms_and_is_in_the_batch(void **state)
{
    nn_basis_block b = stored(NN_BASIS_FRAME_F32, 3);
    const nn_inputs in = nn_inputs_qm9();
    nn_item item[2] = { nn_item_of(&graphs, &b, 1), nn_item_of(&graphs, &b, 0) };
    nn_collate *c[3] = { nn_collate_new(), nn_collate_new(), nn_collate_new() };
    nn_collated clean, noisy, again;
    (void)state;

    assert_int_equal(nn_collate_run(c[0], &clean, item, 2, &in, NULL), PL_OK);
    for (int k = 0; k < 2; k++) {
        item[k].noise = 0.1f;
        item[k].random = pl_rng_at(3, (uint64_t)k, 1);
    }
    assert_int_equal(nn_collate_run(c[1], &noisy, item, 2, &in, NULL), PL_OK);
    assert_int_equal(nn_collate_run(c[2], &again, item, 2, &in, NULL), PL_OK);
    const nn_batch *x = &clean.batch, *y = &noisy.batch;
    assert_non_null(x->frame);
    assert_null(x->noise);
    assert_null(y->frame);
    assert_int_equal(x->n_edges, y->n_edges);
    assert_memory_equal(x->src, y->src, (size_t)x->n_edges * sizeof *x->src);
    assert_memory_equal(y->vec, again.batch.vec, (size_t)y->n_edges * sizeof *y->vec);
    assert_memory_equal(y->noise, again.batch.noise, (size_t)y->n_nodes * sizeof *y->noise);
    for (int32_t e = 0; e < y->n_edges; e++) {
        double r = 0;
        for (int a = 0; a < 3; a++) {
            float moved = 0.1f * (y->noise[y->dst[e]][a] - y->noise[y->src[e]][a]);
            assert_true(fabsf(x->vec[e][a] + moved - y->vec[e][a]) < 1e-5f);
            assert_true(y->rev[e] < 0 || y->vec[y->rev[e]][a] == -y->vec[e][a]);
            r += (double)y->vec[e][a] * (double)y->vec[e][a];
        }
        assert_true(fabs(sqrt(r) - (double)y->dist[e]) < 1e-6 && (y->rev[e] < 0 || y->dist[y->rev[e]] == y->dist[e]));
        assert_true(x->vec[e][0] != y->vec[e][0]);
    }
    for (int g = 0; g < 2; g++)
        for (int a = 0; a < 3; a++) {
            double sum = 0;
            for (int32_t i = y->first[g]; i < y->first[g + 1]; i++)
                sum += (double)y->noise[i][a];
            assert_true(fabs(sum) < 1e-5);
        }
    assert_true(y->noise[0][0] != y->noise[y->first[1]][0]);
    for (int k = 0; k < 3; k++)
        nn_collate_free(c[k]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(widths_are_those_of_the_specification, fresh, done),
        cmocka_unit_test_setup_teardown(stored_frames_are_the_computed_ones, fresh, done),
        cmocka_unit_test_setup_teardown(stored_harmonics_are_the_computed_ones, fresh, done),
        cmocka_unit_test_setup_teardown(stored_pairwise_bases_rotate_with_the_edge, fresh, done),
        cmocka_unit_test_setup_teardown(bases_of_other_graphs_are_refused, fresh, done),
        cmocka_unit_test_setup_teardown(inputs_are_checked, fresh, done),
        cmocka_unit_test_setup_teardown(a_batch_is_its_molecules_end_to_end, fresh, done),
        cmocka_unit_test_setup_teardown(arrays_of_any_number_of_edges_have_their_room, fresh, done),
        cmocka_unit_test_setup_teardown(a_collation_that_ended_holds_no_memory, fresh, done),
        cmocka_unit_test(the_frame_of_the_other_direction_differs_by_signs),
        cmocka_unit_test_setup_teardown(columns_and_descriptors_are_read_by_every_atom, fresh, done),
        cmocka_unit_test_setup_teardown(a_column_has_a_mean_and_a_domain, fresh, done),
        cmocka_unit_test_setup_teardown(inputs_that_differ_in_one_member_are_not_the_same, fresh, done),
        cmocka_unit_test_setup_teardown(inputs_with_other_columns_are_not_the_same, fresh, done),
        cmocka_unit_test_setup_teardown(molecules_that_a_batch_cannot_hold_are_refused, fresh, done),
        cmocka_unit_test_setup_teardown(a_molecule_with_an_unknown_element_is_left_out_and_named, fresh, done),
        cmocka_unit_test_setup_teardown(graphs_without_positions_are_refused, fresh, done),
        cmocka_unit_test_setup_teardown(stored_frames_reach_the_batch, fresh, done),
        cmocka_unit_test_setup_teardown(noise_moves_atoms_and_is_in_the_batch, fresh, done),
        cmocka_unit_test_setup_teardown(a_smaller_batch_needs_no_new_memory, fresh, done),
        cmocka_unit_test_setup_teardown(batches_respect_their_budget_and_always_advance, fresh, done),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
