/* SPDX-License-Identifier: Apache-2.0 */
/* Every precision of every operation of the cpu engine against the oracle in double;
 * with radial nodes, which are another model, against the engine itself in float32. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "models/cpu/kernels/kernels.h"
#include "models/engine/engine.h"
#include "twin/made_batch.h"

typedef struct result {
    float *y, *grad;
} result;

typedef struct fixture {
    pl_arena *mem;
    nn_se3 *model;
    made_batch m;
    float *params, *dy;
    result want, want_nodes;
} fixture;

/* The engine may refuse: then y is NULL. */
static result run(const fixture *f, const nn_engine_kind *kind, const nn_engine_conf *conf)
{
    size_t n = (size_t)(f->m.b.n_graphs * f->model->conf.outputs);
    result r = { PL_NEW(f->mem, float, n), PL_NEW(f->mem, float, f->model->n_floats) };
    nn_engine *e;
    pl_error err = { 0 };

    if (kind->open(&e, f->model, conf, &err) != PL_OK || kind->set_params(e, f->params, &err) != PL_OK ||
        kind->forward(e, &f->m.b, true, r.y, &err) != PL_OK || kind->backward(e, &f->m.b, f->dy, r.grad, &err) != PL_OK)
        fail_msg("%s", err.text);
    kind->close(e);
    return r;
}

/* One operation (or all: 7) in one precision. */
static nn_engine_conf conf_of(nn_radial radial, int ops, nn_precision p)
{
    return (nn_engine_conf){ .threads = 2,
                             .radial = radial,
                             .width = 0.01,
                             .of_radial = ops & 1 ? p : NN_PREC_FP32,
                             .of_contract = ops & 2 ? p : NN_PREC_FP32,
                             .of_linear = ops & 4 ? p : NN_PREC_FP32 };
}

static fixture fixture_open(const nn_se3_conf *conf, const made_opts *batch)
{
    fixture f = { .mem = pl_arena_new(1 << 20) };
    nn_engine_conf nodes = conf_of(NN_RADIAL_NODES, 0, NN_PREC_FP32);
    int32_t n = batch->n_graphs * conf->outputs;

    f.m = made_batch_new(batch, f.mem);
    assert_int_equal(nn_se3_plan(&f.model, conf, f.mem, NULL), PL_OK);
    f.params = PL_NEW(f.mem, float, f.model->n_floats);
    f.dy = PL_NEW(f.mem, float, n);
    nn_se3_init(f.model, f.params, 5);
    for (size_t i = 0; i < f.model->n_floats; i++) /* move norms off 1 and 0 */
        f.params[i] += 0.02f * (float)sin((double)i);
    for (int i = 0; i < n; i++)
        f.dy[i] = (float)cos(3.0 * i);
    f.want = run(&f, &nn_engine_ref, &(nn_engine_conf){ .threads = 1, .radial = NN_RADIAL_EXACT });
    f.want_nodes = run(&f, &nn_engine_cpu, &nodes);
    return f;
}

/* Root mean square of the difference over that of what is wanted. */
static double error_of(const float *got, const float *want, size_t n)
{
    double off = 0, all = 0;

    for (size_t i = 0; i < n; i++) {
        off += pow((double)got[i] - want[i], 2);
        all += pow(want[i], 2);
    }
    return sqrt(off / (all + 1e-30));
}

static const char *const op_names[] = { "none", "radial", "contract", "", "linear", "", "", "all" };
static const char *const names[] = { "fp32", "bf16x3", "bf16" };

/* Without maximum pooling, which jumps. The gradient of the ReLU of norms jumps, too: an error of e
 * changes the side of about e of all numbers, and the gradient by about the
 * root of e; so the bound of bf16 applies only without norms. */
static const struct {
    nn_se3_conf conf;
    made_opts batch;
} shapes[] = {
    { { 2, 4, 32, 8, 2, true, true, NN_POOL_MEAN, NN_FUSE_FULL, 6, 4, 1, NN_PARITY_BOTH, { 0 }, false },
      { 9, 12, 6, 4, 1.7, false, 11 } },
    { { 2, 3, 24, 2, 1, true, true, NN_POOL_SUM, NN_FUSE_FULL, 37, 4, 17, NN_PARITY_BOTH, { 0 }, false },
      { 5, 10, 37, 4, 2.5, true, 12 } },
    { { 1, 5, 5, 1, 1, false, true, NN_POOL_MEAN, NN_FUSE_NONE, 5, 4, 1, NN_PARITY_BOTH, { 0 }, false },
      { 5, 8, 5, 4, 2.0, true, 9 } },
    { { 2, 2, 40, 5, 2, false, false, NN_POOL_SUM, NN_FUSE_PARTIAL, 6, 4, 2, NN_PARITY_BOTH, { 0 }, false },
      { 21, 7, 6, 4, 2.0, false, 10 } },
    { { 2, 4, 32, 8, 2, true, true, NN_POOL_MEAN, NN_FUSE_FULL, 6, 4, 1, NN_PARITY_NATURAL, { 0 }, false },
      { 9, 12, 6, 4, 1.7, false, 11 } },
    { { 1, 5, 5, 1, 1, false, true, NN_POOL_MEAN, NN_FUSE_NONE, 5, 4, 1, NN_PARITY_NATURAL, { 0 }, false },
      { 5, 8, 5, 4, 2.0, true, 9 } },
};

/* Bounds of y and of the gradient: some roundings of 2^-9 (two parts: 2^-17) a layer. */
static const double bound_y[] = { 2e-6, 4e-5, 2e-2 }, bound_grad[] = { 1e-5, 1e-4, 3e-2 }, bound_norm = 0.5;

static void precision_check(const fixture *f, nn_radial radial, int ops, nn_precision p)
{
    nn_engine_conf conf = conf_of(radial, ops, p);
    const result *want = radial == NN_RADIAL_NODES ? &f->want_nodes : &f->want;
    result got = run(f, &nn_engine_cpu, &conf);
    double y = error_of(got.y, want->y, (size_t)(f->m.b.n_graphs * f->model->conf.outputs));
    double grad = error_of(got.grad, want->grad, f->model->n_floats);
    bool jumps = f->model->conf.norm && p == NN_PREC_BF16;

    print_message("%-8s %-5s %-8s %-6s  y %.1e  gradient %.1e\n", nn_cpu_kernels_name(), radial ? "nodes" : "exact", op_names[ops],
                  names[p], y, grad);
    if (!(y <= bound_y[p]) || !(grad <= (jumps ? bound_norm : bound_grad[p])))
        fail_msg("%s in %s: errors %g of y, %g of the gradient", op_names[ops], names[p], y, grad);
    if (ops && p && y == 0)
        fail_msg("%s in %s computed nothing in that precision", op_names[ops], names[p]);
}

static void shape_check(const fixture *f)
{
    for (nn_precision p = NN_PREC_FP32; p <= NN_PREC_BF16; p++) {
        precision_check(f, NN_RADIAL_EXACT, 7, p);
        precision_check(f, NN_RADIAL_NODES, 7, p);
        for (int ops = 1; ops < 7 && p; ops *= 2) {
            if (ops != 2) /* exact mode has no matrix products along edges */
                precision_check(f, NN_RADIAL_EXACT, ops, p);
            precision_check(f, NN_RADIAL_NODES, ops, p);
        }
    }
}

static void every_operation_has_the_error_of_its_format(void **state)
{
    static const char *const sets[] = { "portable", "avx2", "avx512", "amx" };
    (void)state;

    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        fixture f = fixture_open(&shapes[s].conf, &shapes[s].batch);
        for (int i = 0; i < 4; i++) {
            if (nn_cpu_kernels_find(sets[i]) == NULL)
                continue;
            setenv("MOLSIEVE_CPU", sets[i], 1);
            shape_check(&f);
        }
        unsetenv("MOLSIEVE_CPU");
        pl_arena_free(f.mem);
    }
}

static void forward(const fixture *f, nn_engine *e, bool keep, float *y)
{
    pl_error err = { 0 };

    if (nn_engine_cpu.forward(e, &f->m.b, keep, y, &err) != PL_OK)
        fail_msg("%s", err.text);
}

/* Forward without keep uses tables of nodes again, forward with keep never does. */
static void tables_check(const fixture *f, const nn_engine_conf *conf)
{
    int32_t n = f->m.b.n_graphs * f->model->conf.outputs;
    float *y[4], *other = PL_NEW(f->mem, float, f->model->n_floats);
    nn_engine *e;

    for (int i = 0; i < 4; i++)
        y[i] = PL_NEW(f->mem, float, n);
    for (size_t i = 0; i < f->model->n_floats; i++)
        other[i] = 0.9f * f->params[i];
    assert_int_equal(nn_engine_cpu.open(&e, f->model, conf, NULL), PL_OK);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(nn_engine_cpu.set_params(e, round ? other : f->params, NULL), PL_OK);
        forward(f, e, false, y[0]);
        forward(f, e, false, y[1]);
        forward(f, e, true, y[2]);
        forward(f, e, false, y[3]);
        for (int i = 1; i < 4; i++)
            assert_memory_equal(y[0], y[i], (size_t)n * sizeof **y);
    }
    nn_engine_cpu.close(e);
}

static void tables_of_nodes_that_are_kept_change_no_result(void **state)
{
    (void)state;

    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        fixture f = fixture_open(&shapes[s].conf, &shapes[s].batch);
        for (nn_precision p = NN_PREC_FP32; p <= NN_PREC_BF16; p++) {
            nn_engine_conf conf = conf_of(NN_RADIAL_NODES, 7, p);
            tables_check(&f, &conf);
        }
        pl_arena_free(f.mem);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_has_the_error_of_its_format),
        cmocka_unit_test(tables_of_nodes_that_are_kept_change_no_result),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
