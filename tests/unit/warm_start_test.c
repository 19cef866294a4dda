/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "models/engine/engine.h"
#include "models/training/warm_start.h"
#include "tests/made_mol.h"

enum { MOLECULES = 6 };

static const nn_inputs then = { .n_elements = 5, .element = { 1, 6, 7, 8, 9 }, .z = true, .bonds = true };

/* A network for these inputs, with its own random parameters. */
static nn_model_file made(const nn_inputs *in, nn_fusion fusion, int channels, uint64_t seed, pl_arena *mem)
{
    nn_model_file m = { .inputs = *in };
    nn_se3 *model;

    m.conf = (nn_se3_conf){ .layers = 2,
                            .degrees = 3,
                            .channels = channels,
                            .heads = 2,
                            .channels_div = 2,
                            .norm = true,
                            .layer_norm = true,
                            .pooling = NN_POOL_SUM,
                            .fusion = fusion,
                            .node_features = nn_inputs_node_features(in),
                            .edge_features = nn_inputs_edge_features(in),
                            .outputs = 1 };
    assert_int_equal(nn_se3_plan(&model, &m.conf, mem, NULL), PL_OK);
    m.model = model;
    m.params = PL_NEW(mem, float, model->n_floats);
    nn_se3_init(model, m.params, seed);
    return m;
}

/* Of every molecule; the third column is at its mean. */
static const float columns[3] = { 1, -2, 0 }, numbers[CH_N_FEATURES] = { 3, -1, 0.5f };
static const nn_moments one_each[CH_N_FEATURES] = { { 0, 1 }, { 0, 1 }, { 0, 1 } };

/* y [MOLECULES] for molecules of H, C, N, O, F without charges. */
static void predict(float *y, const nn_model_file *m, pl_arena *mem)
{
    const nn_engine_conf conf = { .threads = 1, .radial = NN_RADIAL_EXACT };
    const ch_graph_opts opts = { .edges = CH_EDGES_BONDS };
    ch_graph graph[MOLECULES];
    nn_item item[MOLECULES];
    nn_collate *collate = nn_collate_new();
    nn_collated c;
    nn_engine *e;

    for (int i = 0; i < MOLECULES; i++) {
        ch_mol mol = made_mol(4 + 3 * i, 20, (uint64_t)i, mem);
        memset(mol.charge, 0, (size_t)mol.n_atoms);
        assert_int_equal(ch_graph_build(&graph[i], &mol, &opts, mem, NULL), PL_OK);
        item[i] = (nn_item){ .graph = &graph[i], .column = columns, .feature = numbers };
    }
    assert_non_null(collate);
    assert_int_equal(nn_collate_run(collate, &c, item, MOLECULES, &m->inputs, NULL), PL_OK);
    assert_int_equal(nn_engine_cpu.open(&e, m->model, &conf, NULL), PL_OK);
    assert_int_equal(nn_engine_cpu.set_params(e, m->params, NULL), PL_OK);
    assert_int_equal(nn_engine_cpu.forward(e, &c.batch, false, y, NULL), PL_OK);
    nn_engine_cpu.close(e);
    nn_collate_free(collate);
}

static size_t floats_of(const nn_model_file *m, int32_t k) { return m->model->param[k].size; }

static void the_same_network_is_taken_whole(void **state)
{
    pl_arena *mem = pl_arena_new(0);
    const nn_model_file from = made(&then, NN_FUSE_FULL, 8, 1, mem), to = made(&then, NN_FUSE_FULL, 8, 2, mem);
    const int32_t *head = to.model->head;
    const float kept = to.params[to.model->param[head[2]].at];

    (void)state;
    assert_int_equal(nn_warm_start_fill(to.params, to.model, &then, &from, false),
                     to.model->n_floats - floats_of(&to, head[2]) - floats_of(&to, head[3]));
    assert_true(to.params[to.model->param[head[2]].at] == kept);
    assert_int_equal(nn_warm_start_fill(to.params, to.model, &then, &from, true), to.model->n_floats);
    assert_memory_equal(to.params, from.params, to.model->n_floats * sizeof *to.params);
    pl_arena_free(mem);
}

/* Elements and features change places, and some are new: molecules without new ones get the same predictions. */
static void what_is_known_of_an_element_goes_with_it(void **state)
{
    const nn_inputs now = { .n_elements = 7, .element = { 17, 8, 6, 35, 1, 7, 9 }, .z = true, .charge = true, .bonds = true };
    pl_arena *mem = pl_arena_new(0);

    (void)state;
    for (int fusion = NN_FUSE_NONE; fusion <= NN_FUSE_FULL; fusion++) {
        const nn_model_file from = made(&then, (nn_fusion)fusion, 8, 1, mem), to = made(&now, (nn_fusion)fusion, 8, 2, mem);
        float before[MOLECULES], untrained[MOLECULES], after[MOLECULES];
        predict(before, &from, mem);
        predict(untrained, &to, mem);
        assert_int_equal(nn_warm_start_fill(to.params, to.model, &now, &from, true), from.model->n_floats);
        predict(after, &to, mem);
        for (int i = 0; i < MOLECULES; i++) {
            assert_true(fabsf(after[i] - before[i]) <= 1e-5f * (1 + fabsf(before[i])));
            assert_true(fabsf(untrained[i] - before[i]) > 1e-3f);
        }
    }
    pl_arena_free(mem);
}

/* Columns by their names, whatever their places; a new one at its mean changes nothing. */
static void what_is_known_of_a_column_goes_with_it(void **state)
{
    pl_arena *mem = pl_arena_new(0);
    nn_inputs had = then, now;
    nn_model_file from, to;
    float before[MOLECULES], after[MOLECULES];

    (void)state;
    had.n_columns = 2;
    had.column[0] = (nn_input_column){ .name = "pH", .over = { 0, 1 }, .at = 0 };
    had.column[1] = (nn_input_column){ .name = "temperature", .over = { 0, 1 }, .at = 1 };
    had.descriptors = true;
    had.descriptor = one_each;
    now = had;
    now.charge = true;
    now.n_columns = 3;
    now.column[0] = (nn_input_column){ .name = "new", .over = { 0, 1 }, .at = 2 };
    now.column[1] = had.column[1];
    now.column[2] = had.column[0];
    from = made(&had, NN_FUSE_FULL, 8, 1, mem);
    to = made(&now, NN_FUSE_FULL, 8, 2, mem);
    predict(before, &from, mem);
    assert_int_equal(nn_warm_start_fill(to.params, to.model, &now, &from, true), from.model->n_floats);
    predict(after, &to, mem);
    for (int i = 0; i < MOLECULES; i++)
        assert_true(fabsf(after[i] - before[i]) <= 1e-5f * (1 + fabsf(before[i])));
    pl_arena_free(mem);
}

/* Elements and features that the training does not use are dropped. */
static void features_may_become_fewer(void **state)
{
    const nn_inputs now = { .n_elements = 2, .element = { 8, 1 }, .bonds = true };
    pl_arena *mem = pl_arena_new(0);
    const nn_model_file from = made(&then, NN_FUSE_FULL, 8, 1, mem), to = made(&now, NN_FUSE_FULL, 8, 2, mem);

    (void)state;
    assert_int_equal(nn_warm_start_fill(to.params, to.model, &now, &from, true), to.model->n_floats);
    pl_arena_free(mem);
}

/* With as many features as channels the first convolution has another form. */
static void a_first_layer_of_another_make_stays_new(void **state)
{
    const nn_inputs now = { .n_elements = 7, .element = { 1, 6, 7, 8, 9, 16, 17 }, .z = true, .bonds = true };
    pl_arena *mem = pl_arena_new(0);
    const nn_model_file from = made(&then, NN_FUSE_FULL, 8, 1, mem), to = made(&now, NN_FUSE_FULL, 8, 2, mem);
    size_t taken = nn_warm_start_fill(to.params, to.model, &now, &from, true);

    (void)state;
    assert_true(taken > from.model->n_floats / 2 && taken <= from.model->n_floats);
    pl_arena_free(mem);
}

/* With fewer channels most tensors have another size: they stay as they are, the others are taken. */
static void tensors_of_another_size_stay_new(void **state)
{
    pl_arena *mem = pl_arena_new(0);
    const nn_model_file from = made(&then, NN_FUSE_FULL, 8, 1, mem), to = made(&then, NN_FUSE_FULL, 4, 2, mem);
    const size_t bytes = to.model->n_floats * sizeof(float);
    float *before = PL_NEW(mem, float, to.model->n_floats);
    size_t taken = 0;

    (void)state;
    memcpy(before, to.params, bytes);
    const size_t said = nn_warm_start_fill(to.params, to.model, &then, &from, true);
    for (int32_t k = 0; k < to.model->n_params; k++) {
        const nn_param *p = &to.model->param[k];
        const int32_t old = nn_se3_find(from.model, p->name);
        const bool same = old >= 0 && from.model->param[old].size == p->size;
        const float *want = same ? from.params + from.model->param[old].at : before + p->at;
        if (memcmp(to.params + p->at, want, p->size * sizeof(float)) != 0)
            fail_msg("%s", p->name);
        taken += same ? p->size : 0;
    }
    assert_int_equal(said, taken);
    assert_true(taken > 0 && taken < to.model->n_floats / 2);
    pl_arena_free(mem);
}

static void a_start_model_of_another_shape_is_refused_by_setting(void **state)
{
    pl_arena *mem = pl_arena_new(0);
    const nn_se3_conf conf = made(&then, NN_FUSE_FULL, 8, 1, mem).conf;
    nn_se3_conf other = conf;
    pl_error err = { 0 };

    (void)state;
    other.outputs = 3;
    other.node_features = 11;
    other.pooling = NN_POOL_MAX;
    assert_int_equal(nn_warm_start_check(&other, &conf, &err), PL_OK);
    other.channels = 16;
    assert_int_equal(nn_warm_start_check(&other, &conf, &err), PL_ECONFIG);
    assert_string_equal(err.text, "model.channels is 16 here and 8 in the start model");
    other = conf;
    other.fusion = NN_FUSE_NONE;
    assert_int_equal(nn_warm_start_check(&other, &conf, &err), PL_ECONFIG);
    assert_string_equal(err.text, "model.fusion is none here and full in the start model");
    other = conf;
    other.parity = NN_PARITY_NATURAL;
    assert_int_equal(nn_warm_start_check(&other, &conf, &err), PL_ECONFIG);
    assert_string_equal(err.text, "model.parity is natural here and both in the start model");
    other = conf;
    other.edge_features = 0;
    assert_int_equal(nn_warm_start_check(&other, &conf, &err), PL_ECONFIG);
    assert_string_equal(err.text, "model.bonds is 0 here and 1 in the start model");
    assert_int_equal(nn_warm_start_check(&conf, &other, &err), PL_ECONFIG);
    assert_string_equal(err.text, "model.bonds is 1 here and 0 in the start model");
    other.edge_features = 1;
    assert_int_equal(nn_warm_start_check(&other, &conf, &err), PL_OK);
    assert_int_equal(nn_warm_start_check(&conf, &other, &err), PL_OK);
    other = conf;
    other.norm = NN_NORMS_GATE;
    assert_int_equal(nn_warm_start_check(&other, &conf, &err), PL_ECONFIG);
    assert_string_equal(err.text, "model.norm is gate here and true in the start model");
    other = conf;
    other.radial = (nn_radial_conf){ NN_BASIS_BESSEL, 8, NN_ENVELOPE_POLYNOMIAL, 4.5 };
    assert_int_equal(nn_warm_start_check(&conf, &other, &err), PL_ECONFIG);
    assert_string_equal(err.text,
                        "model.radial is not that of the start model: bessel, 8 functions, envelope polynomial, cutoff 4.5");
    pl_arena_free(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_network_is_taken_whole),
        cmocka_unit_test(what_is_known_of_an_element_goes_with_it),
        cmocka_unit_test(what_is_known_of_a_column_goes_with_it),
        cmocka_unit_test(features_may_become_fewer),
        cmocka_unit_test(a_first_layer_of_another_make_stays_new),
        cmocka_unit_test(tensors_of_another_size_stay_new),
        cmocka_unit_test(a_start_model_of_another_shape_is_refused_by_setting),
    };

    return cmocka_run_group_tests_name("start", tests, NULL, NULL);
}
