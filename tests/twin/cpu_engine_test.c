/* SPDX-License-Identifier: Apache-2.0 */
/* The cpu engine against the oracle, over models of many shapes. */
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
#include "pipeline/base/rng.h"
#include "twin/made_batch.h"
#include "twin/shapes.h"

#define WIDTH 0.01 /* of the grid of radial nodes */

/* Forward and backward of one engine; y and grad are the caller's. */
typedef struct result {
    float *y, *grad, (*v)[3]; /* v: of the noise head */
} result;

static bool recompute;

static result engine_run(const nn_engine_kind *kind, const nn_se3 *model, const nn_batch *b, nn_radial radial, pl_arena *mem)
{
    int n = b->n_graphs * model->conf.outputs;
    result r = { PL_NEW(mem, float, n), PL_NEW(mem, float, model->n_floats), (float(*)[3])PL_NEW(mem, float, 3 * b->n_nodes) };
    float(*dv)[3] = (float(*)[3])PL_NEW(mem, float, 3 * b->n_nodes);
    nn_engine_conf conf = { .threads = 2, .radial = radial, .width = WIDTH, .recompute = recompute };
    float *params = PL_NEW(mem, float, model->n_floats), *dy = PL_NEW(mem, float, n);
    nn_engine *e;
    pl_error err = { 0 };

    nn_se3_init(model, params, 5);
    for (size_t i = 0; i < model->n_floats; i++) /* move norms off 1 and 0 */
        params[i] += 0.02f * (float)sin((double)i);
    for (int i = 0; i < n; i++)
        dy[i] = (float)cos(3.0 * i);
    for (int i = 0; i < 3 * b->n_nodes; i++)
        dv[i / 3][i % 3] = (float)sin(2.0 * i);
    assert_int_equal(kind->open(&e, model, &conf, &err), PL_OK);
    assert_int_equal(kind->set_params(e, params, &err), PL_OK);
    if (kind->forward(e, b, true, r.y, &err) != PL_OK)
        fail_msg("%s", err.text);
    if (model->denoise >= 0)
        kind->vectors(e, r.v);
    if ((model->denoise >= 0 ? kind->backward_vectors(e, b, dy, (const float(*)[3])dv, r.grad, &err)
                             : kind->backward(e, b, dy, r.grad, &err)) != PL_OK)
        fail_msg("%s", err.text);
    kind->close(e);
    return r;
}

static double scale_of(const float *x, size_t n)
{
    double s = 0;

    for (size_t i = 0; i < n; i++)
        s += (double)x[i] * x[i];
    return sqrt(s / (double)(n ? n : 1));
}

static void near(const char *what, const float *got, const float *want, size_t n, double tol)
{
    double scale = scale_of(want, n) + 1e-6;

    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)got[i] - want[i]) <= tol * (scale + fabs((double)want[i]))))
            fail_msg("%s: number %zu is %.9g, should be %.9g (scale %.3g)", what, i, (double)got[i], (double)want[i], scale);
}

static void results_near(const nn_se3 *model, const nn_batch *b, const result *got, const result *want)
{
    if (model->denoise >= 0)
        near("v", got->v[0], want->v[0], 3 * (size_t)b->n_nodes, 2e-5);
    near("y", got->y, want->y, (size_t)(b->n_graphs * model->conf.outputs), 2e-5);
    for (int i = 0; i < model->n_params; i++) {
        const nn_param *p = &model->param[i];
        near(p->name, got->grad + p->at, want->grad + p->at, p->size, 5e-4);
    }
}

/* A batch of more edges than the emulator computes in time. */
static const shape large = { { 2, 4, 32, 8, 2, true, true, NN_POOL_MAX, NN_FUSE_FULL, 6, 4, 1, NN_PARITY_BOTH, { 0 }, false },
                             { 9, 12, 6, 4, 1.7, false, 11 } };

/* Every distance is on the grid of radial nodes, where they are exact too. */
static void shape_check(const shape *s, nn_parity parity, const char *const *sets, int n_sets)
{
    nn_se3_conf conf = s->conf;
    pl_arena *mem = pl_arena_new(1 << 20);
    made_batch m = made_batch_new(&s->batch, mem);
    nn_se3 *model;
    result want;

    conf.parity = parity;
    made_batch_snap(&m, WIDTH);
    assert_int_equal(nn_se3_plan(&model, &conf, mem, NULL), PL_OK);
    print_message("%d edges, %d pairs, %zu parameters\n", (int)m.b.n_edges, (int)m.b.n_pairs, model->n_floats);
    want = engine_run(&nn_engine_ref, model, &m.b, NN_RADIAL_EXACT, mem);
    for (int i = 0; i < 2 * n_sets; i++) {
        result got;
        setenv("MOLSIEVE_CPU", sets[i / 2], 1);
        got = engine_run(&nn_engine_cpu, model, &m.b, i % 2 ? NN_RADIAL_NODES : NN_RADIAL_EXACT, mem);
        results_near(model, &m.b, &got, &want);
    }
    unsetenv("MOLSIEVE_CPU");
    pl_arena_free(mem);
}

static void every_kernel_set_agrees_with_the_oracle_for_every_shape(void **state)
{
    static const char *const names[] = { "portable", "avx2", "avx512", "amx" };
    const char *here[4];
    int n = 0;
    (void)state;

    for (int i = 0; i < 4; i++)
        if (nn_cpu_kernels_find(names[i]) != NULL)
            here[n++] = names[i];
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        shape_check(&shapes[i], NN_PARITY_BOTH, here, n);
        shape_check(&shapes[i], NN_PARITY_NATURAL, here + n - 1, 1); /* another plan, the same kernels */
    }
    shape_check(&large, NN_PARITY_BOTH, here, n);
    shape_check(&large, NN_PARITY_NATURAL, here + n - 1, 1);
}

/* Both with and without activations that are computed again. */
static void the_noise_head_agrees_with_the_oracle(void **state)
{
    const char *const sets[] = { "portable" };
    (void)state;

    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        shape s = shapes[i];
        s.conf.denoise = s.conf.degrees > 1;
        for (int again = 0; again < 2 && s.conf.denoise; again++) {
            recompute = again;
            shape_check(&s, again ? NN_PARITY_NATURAL : NN_PARITY_BOTH, sets, 1);
        }
    }
    recompute = false;
}

static void a_set_of_kernels_that_is_not_there_is_refused(void **state)
{
    pl_arena *mem = pl_arena_new(0);
    nn_se3 *model;
    nn_engine *e;
    pl_error err = { 0 };
    (void)state;

    assert_int_equal(nn_se3_plan(&model, &shapes[0].conf, mem, NULL), PL_OK);
    setenv("MOLSIEVE_CPU", "abacus", 1);
    assert_int_equal(nn_engine_cpu.open(&e, model, &(nn_engine_conf){ .threads = 1, .radial = NN_RADIAL_EXACT }, &err), PL_ECONFIG);
    assert_non_null(strstr(err.text, "abacus"));
    unsetenv("MOLSIEVE_CPU");
    pl_arena_free(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kernel_set_agrees_with_the_oracle_for_every_shape),
        cmocka_unit_test(the_noise_head_agrees_with_the_oracle),
        cmocka_unit_test(a_set_of_kernels_that_is_not_there_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
