/* SPDX-License-Identifier: Apache-2.0 */
/* Radial nodes against exact radial networks: the error, and its order in the width of the grid. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "models/engine/engine.h"
#include "twin/made_batch.h"

typedef struct result {
    float *y, *grad;
} result;

/* width 0: exact. */
static result engine_run(const nn_se3 *model, const nn_batch *b, double width, pl_arena *mem)
{
    nn_engine_conf conf = { .threads = 2, .radial = width > 0 ? NN_RADIAL_NODES : NN_RADIAL_EXACT, .width = width };
    int n = b->n_graphs * model->conf.outputs;
    result r = { PL_NEW(mem, float, n), PL_NEW(mem, float, model->n_floats) };
    float *params = PL_NEW(mem, float, model->n_floats), *dy = PL_NEW(mem, float, n);
    nn_engine *e;
    pl_error err = { 0 };

    nn_se3_init(model, params, 7);
    for (int i = 0; i < n; i++)
        dy[i] = (float)cos(3.0 * i) / (float)n;
    assert_int_equal(nn_engine_cpu.open(&e, model, &conf, &err), PL_OK);
    assert_int_equal(nn_engine_cpu.set_params(e, params, &err), PL_OK);
    if (nn_engine_cpu.forward(e, b, true, r.y, &err) != PL_OK || nn_engine_cpu.backward(e, b, dy, r.grad, &err) != PL_OK)
        fail_msg("%s", err.text);
    nn_engine_cpu.close(e);
    return r;
}

/* Root mean square of the difference, relative to that of `want`. */
static double off(const float *got, const float *want, size_t n)
{
    double d = 0, s = 0;

    for (size_t i = 0; i < n; i++) {
        d += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
        s += (double)want[i] * want[i];
    }
    return sqrt(d / s);
}

/* The same over the last layers of the radial networks, 97 % of the parameters. */
static double off_last(const nn_se3 *model, const float *got, const float *want)
{
    double worst = 0;

    for (int i = 0; i < model->n_params; i++) {
        const nn_param *p = &model->param[i];
        if (p->n_dims == 2 && p->dims[1] == NN_RADIAL_HIDDEN && p->dims[0] >= 256)
            worst = fmax(worst, off(got + p->at, want + p->at, p->size));
    }
    return worst;
}

static const nn_se3_conf conf = { 3, 3, 16, 4, 2, true, true, NN_POOL_MEAN, NN_FUSE_FULL, 6, 4, 2, NN_PARITY_BOTH, { 0 }, false };

static void the_grid_makes_little_difference_and_less_the_finer_it_is(void **state)
{
    static const double widths[] = { 0.04, 0.02, 0.01, 0.005 };
    pl_arena *mem = pl_arena_new(1 << 20);
    made_batch m = made_batch_new(&(made_opts){ 40, 14, 6, 4, 1.8, false, 23 }, mem);
    double y[4], grad[4], last[4];
    nn_se3 *model;
    result want;
    (void)state;

    assert_int_equal(nn_se3_plan(&model, &conf, mem, NULL), PL_OK);
    want = engine_run(model, &m.b, 0, mem);
    for (int i = 0; i < 4; i++) {
        result r = engine_run(model, &m.b, widths[i], mem);
        y[i] = off(r.y, want.y, (size_t)(m.b.n_graphs * 2));
        grad[i] = off(r.grad, want.grad, model->n_floats);
        last[i] = off_last(model, r.grad, want.grad);
        print_message("width %g: y off by %.2e, gradient by %.2e, of last layers by %.2e\n", widths[i], y[i], grad[i], last[i]);
    }
    assert_true(y[2] < 2e-4 && y[0] > 12 * y[3]); /* of first order 8, of second 64 */
    assert_true(grad[2] < 3e-2 && last[2] < 1e-3 && last[3] < 2e-4);
    pl_arena_free(mem);
}

/* Few cells with hundreds of edges: many tiles, pieces and sums for one node. */
static void crowded_cells_on_the_grid_are_exact(void **state)
{
    pl_arena *mem = pl_arena_new(1 << 20);
    made_batch m = made_batch_new(&(made_opts){ 250, 14, 6, 1, 1.9, true, 22 }, mem);
    nn_se3_conf c = conf;
    nn_se3 *model;
    result want, got;
    (void)state;

    c.edge_features = 1;
    made_batch_snap(&m, 0.5);
    assert_true(m.b.n_edges > 2000);
    assert_int_equal(nn_se3_plan(&model, &c, mem, NULL), PL_OK);
    want = engine_run(model, &m.b, 0, mem);
    got = engine_run(model, &m.b, 0.5, mem);
    print_message("%d edges: y off by %.2e, gradient by %.2e\n", (int)m.b.n_edges, off(got.y, want.y, (size_t)(m.b.n_graphs * 2)),
                  off(got.grad, want.grad, model->n_floats));
    assert_true(off(got.y, want.y, (size_t)(m.b.n_graphs * 2)) < 1e-5);
    assert_true(off(got.grad, want.grad, model->n_floats) < 2e-5);
    pl_arena_free(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_grid_makes_little_difference_and_less_the_finer_it_is),
        cmocka_unit_test(crowded_cells_on_the_grid_are_exact),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
