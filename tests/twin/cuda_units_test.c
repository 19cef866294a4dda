/* SPDX-License-Identifier: Apache-2.0 */
/* Products by hidden units in exact mode (MOLSIEVE_CUDA_UNITS, models/cuda/parts.c), against tables of pairs in float32, which
 * twin/cuda_engine_test.c compares with the oracle. On the emulator or, where MOLSIEVE_PLUGINS has the real plugin, on a GPU. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "models/engine/engine.h"
#include "twin/made_batch.h"
#include "twin/shapes.h"

typedef struct fixture {
    pl_arena *mem;
    made_batch made;
    nn_se3 *model;
    float *params;
    size_t n;
} fixture;

typedef struct result {
    float *y, *grad;
} result;

static fixture fixture_open(const nn_se3_conf *conf, const made_opts *batch)
{
    fixture f = { .mem = pl_arena_new(1 << 20) };

    f.made = made_batch_new(batch, f.mem);
    assert_int_equal(nn_se3_plan(&f.model, conf, f.mem, NULL), PL_OK);
    f.n = (size_t)f.made.b.n_graphs * (size_t)f.model->conf.outputs;
    f.params = PL_NEW(f.mem, float, f.model->n_floats);
    nn_se3_init(f.model, f.params, 5);
    for (size_t i = 0; i < f.model->n_floats; i++) /* move norms off 1 and 0 */
        f.params[i] += 0.02f * (float)sin((double)i);
    return f;
}

static nn_engine_conf in_precision(nn_precision p)
{
    return (nn_engine_conf){ .threads = 1, .radial = NN_RADIAL_EXACT, .of_radial = p, .of_contract = p, .of_linear = p };
}

static nn_engine *engine_open(const fixture *f, nn_precision p, const char *units)
{
    const nn_engine_conf conf = in_precision(p);
    nn_engine *e;

    setenv("MOLSIEVE_CUDA_UNITS", units, 1);
    DONE(nn_engine_cuda.open(&e, f->model, &conf, &why));
    unsetenv("MOLSIEVE_CUDA_UNITS");
    DONE(nn_engine_cuda.set_params(e, f->params, &why));
    return e;
}

/* A forward pass and its gradient. */
static result both_run(const fixture *f, nn_precision p, const char *units)
{
    result r = { PL_NEW(f->mem, float, f->n), PL_NEW(f->mem, float, f->model->n_floats) };
    float *dy = PL_NEW(f->mem, float, f->n);
    nn_engine *e = engine_open(f, p, units);

    for (size_t i = 0; i < f->n; i++)
        dy[i] = (float)cos(3.0 * (double)i);
    DONE(nn_engine_cuda.forward(e, &f->made.b, true, r.y, &why));
    DONE(nn_engine_cuda.backward(e, &f->made.b, dy, r.grad, &why));
    nn_engine_cuda.close(e);
    return r;
}

static bool same(const fixture *f, const result *a, const result *b)
{
    return !memcmp(a->y, b->y, f->n * sizeof *a->y) && !memcmp(a->grad, b->grad, f->model->n_floats * sizeof *a->grad);
}

/* Root mean square of the difference, relative; NaN is never small. */
static double distance(const float *got, const float *want, size_t n)
{
    double sum = 0, all = 1e-12;

    for (size_t i = 0; i < n; i++) {
        sum += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
        all += (double)want[i] * want[i];
    }
    return sqrt(sum / all);
}

/* Distances from float32: about twice those of tables of pairs in these precisions, as measured on the emulator. */
static const struct {
    double y, grad;
} near[] = { [NN_PREC_BF16X3] = { 3e-5, 8e-5 },
             [NN_PREC_BF16] = { 6e-3, 0.06 },
             [NN_PREC_TF32] = { 1.5e-3, 4e-3 },
             [NN_PREC_FP16] = { 1.5e-3, 4e-3 } };

static void units_are_near(const nn_se3_conf *conf, const made_opts *batch, nn_precision from, nn_precision to)
{
    fixture f = fixture_open(conf, batch);
    result want = both_run(&f, NN_PREC_FP32, "0"), got, tables;

    for (int p = (int)from; p <= (int)to; p++) {
        double y, grad;
        got = both_run(&f, (nn_precision)p, "1");
        y = distance(got.y, want.y, f.n);
        grad = distance(got.grad, want.grad, f.model->n_floats);
        print_message("%d edges, precision %d: y off by %.2g, gradient by %.2g\n", (int)f.made.b.n_edges, p, y, grad);
        assert_true(y <= near[p].y);
        assert_true(grad <= near[p].grad);
    }
    tables = both_run(&f, to, "0");
    assert_false(same(&f, &got, &tables)); /* they are other sums */
    pl_arena_free(f.mem);
}

/* Several tiles of edges, some without their reverse or past the envelope. */
static const nn_se3_conf enveloped = { 2,
                                       2,
                                       8,
                                       2,
                                       2,
                                       false,
                                       true,
                                       NN_POOL_SUM,
                                       NN_FUSE_FULL,
                                       6,
                                       4,
                                       1,
                                       NN_PARITY_BOTH,
                                       { NN_BASIS_BESSEL, 5, NN_ENVELOPE_POLYNOMIAL, 2.2 },
                                       false };
static const made_opts many = { 6, 8, 6, 4, 2.6, true, 4 };

/* Smooth networks, where no choice between numbers moves the gradient by a step. The others: channels that fill no words, and more
 * than a tile computes at a time. */
static void products_by_units_are_as_near_as_tables_of_pairs(void **state)
{
    static const nn_se3_conf
        plain = { 2, 3, 8, 2, 2, false, false, NN_POOL_MEAN, NN_FUSE_FULL, 6, 4, 1, NN_PARITY_BOTH, { 0 }, false },
        odd = { 2, 4, 3, 1, 1, false, true, NN_POOL_SUM, NN_FUSE_FULL, 6, 4, 1, NN_PARITY_NATURAL, { 0 }, false },
        wide = { 2, 2, 52, 2, 1, false, true, NN_POOL_MEAN, NN_FUSE_FULL, 6, 4, 1, NN_PARITY_BOTH, { 0 }, false };
    static const made_opts some = { 4, 8, 6, 4, 2.0, false, 4 }, few = { 3, 5, 6, 4, 3.0, false, 1 };
    (void)state;

    units_are_near(&plain, &some, NN_PREC_BF16X3, NN_PREC_FP16);
    units_are_near(&odd, &some, NN_PREC_FP16, NN_PREC_FP16);
    units_are_near(&wide, &few, NN_PREC_FP16, NN_PREC_FP16);
    units_are_near(&enveloped, &many, NN_PREC_FP16, NN_PREC_FP16);
}

/* What has no such tables: float32, and a convolution of several radial networks. */
static void other_products_do_not_change(void **state)
{
    nn_se3_conf conf = shapes[0].conf;
    fixture f = fixture_open(&conf, &shapes[0].batch), parts;
    result want = both_run(&f, NN_PREC_FP32, "0"), got = both_run(&f, NN_PREC_FP32, "1");
    (void)state;

    assert_true(same(&f, &got, &want));
    conf.fusion = NN_FUSE_NONE;
    parts = fixture_open(&conf, &shapes[0].batch);
    want = both_run(&parts, NN_PREC_FP16, "0");
    got = both_run(&parts, NN_PREC_FP16, "1");
    assert_true(same(&parts, &got, &want));
    pl_arena_free(f.mem);
    pl_arena_free(parts.mem);
}

/* Alone or among others, in any order of the emulator's threads, with little memory for tables, in one kernel or in parts. */
static void a_score_by_units_does_not_depend_on_the_batch(void **state)
{
    fixture f = fixture_open(&enveloped, &many);
    const nn_batch first = made_batch_first(&f.made.b);
    nn_engine *e = engine_open(&f, NN_PREC_FP16, "1");
    result all = both_run(&f, NN_PREC_FP16, "1"), again;
    float y[16];
    (void)state;

    DONE(nn_engine_cuda.forward(e, &first, false, y, &why));
    assert_memory_equal(y, all.y, sizeof *y);
    nn_engine_cuda.close(e);
    setenv("MOLSIEVE_EMULATOR_SEED", "77", 1);
    again = both_run(&f, NN_PREC_FP16, "1");
    unsetenv("MOLSIEVE_EMULATOR_SEED");
    assert_true(same(&f, &again, &all));
    setenv("MOLSIEVE_CUDA_TABLE_KB", "1", 1);
    again = both_run(&f, NN_PREC_FP16, "1");
    unsetenv("MOLSIEVE_CUDA_TABLE_KB");
    assert_memory_equal(again.y, all.y, f.n * sizeof *again.y);
    assert_true(distance(again.grad, all.grad, f.model->n_floats) < 1e-5);
    setenv("MOLSIEVE_CUDA_PARTS", "1", 1);
    again = both_run(&f, NN_PREC_FP16, "1");
    unsetenv("MOLSIEVE_CUDA_PARTS");
    assert_true(distance(again.y, all.y, f.n) < 1e-5);
    pl_arena_free(f.mem);
}

/* An argument names the tests to run. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_by_units_are_as_near_as_tables_of_pairs),
        cmocka_unit_test(other_products_do_not_change),
        cmocka_unit_test(a_score_by_units_does_not_depend_on_the_batch),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
