/* SPDX-License-Identifier: Apache-2.0
 *
 * Every allocation of a pass through the oracle refused in turn: an error each
 * time, and the engine works again afterwards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "models/engine/engine.h"
#include "models/tensors/safetensors.h"

enum { NODES = 3, EDGES = 4 };

static const int32_t first[] = { 0, 2, 3 }, src[EDGES] = { 0, 1, 0, 1 }, dst[EDGES] = { 1, 0, 1, 0 };
static const float node[NODES][2] = { { 1, 0 }, { 0, 1 }, { 1, 1 } }, edge[EDGES][1] = { { 1 }, { 1 }, { 0 }, { 0 } };
static const float vec[EDGES][3] = { { 1, 0.5f, 0 }, { -1, -0.5f, 0 }, { 0, 1, 1 }, { 0, -1, -1 } };

static const nn_batch batch = { .n_graphs = 2,
                                .n_nodes = NODES,
                                .n_edges = EDGES,
                                .n_node_features = 2,
                                .n_edge_features = 1,
                                .first = first,
                                .node = &node[0][0],
                                .src = src,
                                .dst = dst,
                                .edge = &edge[0][0],
                                .vec = vec };

static pl_code step(nn_engine *e, float *y, float *grad)
{
    const float dy[2] = { 1, -1 };
    pl_code code = nn_engine_ref.forward(e, &batch, true, y, NULL);

    return code != PL_OK ? code : nn_engine_ref.backward(e, &batch, dy, grad, NULL);
}

static void a_refused_allocation_is_an_error_and_no_more(void **state)
{
    const nn_se3_conf conf = { .layers = 1,
                               .degrees = 2,
                               .channels = 2,
                               .heads = 1,
                               .channels_div = 1,
                               .norm = true,
                               .layer_norm = true,
                               .fusion = NN_FUSE_FULL,
                               .node_features = 2,
                               .edge_features = 1,
                               .outputs = 1 };
    pl_arena *mem = pl_arena_new(1 << 16);
    nn_se3 *m;
    nn_engine *e;
    float y[2], want[2];
    long refused = 0;
    (void)state;

    assert_int_equal(nn_se3_plan(&m, &conf, mem, NULL), PL_OK);
    float *w = PL_NEW(mem, float, m->n_floats), *grad = PL_NEW(mem, float, m->n_floats);
    nn_se3_init(m, w, 1);
    assert_int_equal(nn_engine_ref.open(&e, m, &(nn_engine_conf){ .threads = 1, .radial = NN_RADIAL_EXACT }, NULL), PL_OK);
    assert_int_equal(nn_engine_ref.set_params(e, w, NULL), PL_OK);
    assert_int_equal(step(e, want, grad), PL_OK);
    for (long nth = 1;; nth++) {
        pl_arena_refuse(nth);
        pl_code code = step(e, y, grad);
        if (code == PL_OK)
            assert_null(pl_arena_get(mem, 1, 1)); /* none was refused so far */
        pl_arena_refuse(0);
        if (code == PL_OK)
            break;
        assert_int_equal(code, PL_ENOMEM);
        refused++;
    }
    assert_true(refused > 50);
    assert_int_equal(step(e, y, grad), PL_OK);
    assert_memory_equal(y, want, sizeof y);
    nn_engine_ref.close(e);
    pl_arena_free(mem);
}

static void a_tensor_file_reports_refused_memory(void **state)
{
    static const char header[] = "{\"__metadata__\":{\"a\":\"b\"},"
                                 "\"x\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}";
    char file[8 + sizeof header + 1] = { (char)(sizeof header - 1) };
    pl_code code = PL_ENOMEM;
    (void)state;

    memcpy(file + 8, header, sizeof header - 1);
    for (long nth = 1; code != PL_OK; nth++) {
        pl_arena *mem = pl_arena_new(0);
        nn_tensors *got;
        pl_arena_refuse(nth);
        code = nn_tensors_parse(&got, (pl_bytes){ file, 8 + sizeof header + 1 }, mem, NULL);
        if (code == PL_OK)
            assert_null(pl_arena_get(mem, 1, 1)); /* none was refused so far */
        pl_arena_refuse(0);
        assert_true(code == PL_ENOMEM || (code == PL_OK && nth > 3));
        pl_arena_free(mem);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_allocation_is_an_error_and_no_more),
        cmocka_unit_test(a_tensor_file_reports_refused_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
