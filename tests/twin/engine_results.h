/* SPDX-License-Identifier: Apache-2.0 */
/* tests/twin/engine_results.h - outputs and gradients of an engine for models of many shapes, and how near two of them are. Include it
 * once, after cmocka.h. */
#ifndef TESTS_ENGINE_RESULTS_H
#define TESTS_ENGINE_RESULTS_H

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "models/cuda/plugin.h"
#include "models/engine/engine.h"
#include "twin/made_batch.h"
#include "twin/shapes.h"

typedef struct result {
    float *y, *grad;
} result;

static nn_op_clock *watched; /* by engines, from now on */

static const nn_engine_conf exact = { .threads = 1, .radial = NN_RADIAL_EXACT };

/* With the gradient of the loss times `scale`, and its parameters' divided by it. */
static inline result engine_run_scaled(const nn_engine_kind *kind, const nn_engine_conf *conf, const nn_se3 *model,
                                       const nn_batch *b, float scale, pl_arena *mem)
{
    int n = b->n_graphs * model->conf.outputs;
    result r = { PL_NEW(mem, float, n), PL_NEW(mem, float, model->n_floats) };
    float *params = PL_NEW(mem, float, model->n_floats), *dy = PL_NEW(mem, float, n);
    nn_engine *e;
    pl_error err = { 0 };

    nn_se3_init(model, params, 5);
    for (size_t i = 0; i < model->n_floats; i++) /* move norms off 1 and 0 */
        params[i] += 0.02f * (float)sin((double)i);
    for (int i = 0; i < n; i++)
        dy[i] = scale * (float)cos(3.0 * i);
    if (kind->open(&e, model, conf, &err) != PL_OK)
        fail_msg("%s", err.text);
    if (watched != NULL)
        kind->watch(e, watched);
    if (kind->set_params(e, params, &err) != PL_OK || kind->forward(e, b, true, r.y, &err) != PL_OK ||
        kind->backward(e, b, dy, r.grad, &err) != PL_OK)
        fail_msg("%s", err.text);
    kind->close(e);
    for (size_t i = 0; i < model->n_floats; i++)
        r.grad[i] /= scale;
    return r;
}

static inline result engine_run(const nn_engine_kind *kind, const nn_engine_conf *conf, const nn_se3 *model, const nn_batch *b,
                                pl_arena *mem)
{
    return engine_run_scaled(kind, conf, model, b, 1, mem);
}

static inline double scale_of(const float *x, size_t n)
{
    double s = 0;

    for (size_t i = 0; i < n; i++)
        s += (double)x[i] * x[i];
    return sqrt(s / (double)(n ? n : 1));
}

static inline void near(const char *what, const float *got, const float *want, size_t n, double tol)
{
    double scale = scale_of(want, n) + 1e-6;

    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)got[i] - want[i]) <= tol * (scale + fabs((double)want[i]))))
            fail_msg("%s: number %zu is %.9g, should be %.9g (scale %.3g)", what, i, (double)got[i], (double)want[i], scale);
}

static inline void results_near(const nn_se3 *model, const nn_batch *b, const result *got, const result *want, double times)
{
    near("y", got->y, want->y, (size_t)(b->n_graphs * model->conf.outputs), 2e-5 * times);
    for (int i = 0; i < model->n_params; i++) {
        const nn_param *p = &model->param[i];
        near(p->name, got->grad + p->at, want->grad + p->at, p->size, 5e-4 * times);
    }
}

enum { SHAPES = sizeof shapes / sizeof *shapes };

/* Natural parity changes what the host plans, not the kernels: one shape of each fusion. */
static const int natural_shapes[] = { 4, 6, 8 };

enum { CASES = SHAPES + sizeof natural_shapes / sizeof *natural_shapes };

typedef struct fixture {
    pl_arena *mem;
    made_batch made;
    nn_se3 *model;
} fixture;

/* Shape i, and from SHAPES on those with natural parity. */
static inline fixture fixture_open(int i)
{
    const shape *s = &shapes[i < SHAPES ? i : natural_shapes[i - SHAPES]];
    nn_se3_conf conf = s->conf;
    fixture f = { .mem = pl_arena_new(1 << 20) };

    f.made = made_batch_new(&s->batch, f.mem);
    conf.parity = i < SHAPES ? NN_PARITY_BOTH : NN_PARITY_NATURAL;
    assert_int_equal(nn_se3_plan(&f.model, &conf, f.mem, NULL), PL_OK);
    print_message("%d edges, %d pairs, %zu parameters\n", (int)f.made.b.n_edges, (int)f.made.b.n_pairs, f.model->n_floats);
    return f;
}

#endif
