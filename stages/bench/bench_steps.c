/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "stages/bench/bench.h"

enum { WALL = 2 }; /* the wall clock, as for several threads: the GPU does the work */

/* Keeps as many steps in flight as the engine accepts, for `seconds`. each: seconds per step. taken: whether one of the last steps
 * changed the weights; with a scaled loss a single step may be skipped. */
static pl_code steps_run(const st_bench_case *c, const nn_engine_training *training, nn_engine *engine, double seconds,
                         double *each, bool *taken, pl_error *err)
{
    const nn_training_step step = { .target = c->dy,
                                    .measured = (int64_t)c->batch.n_graphs * c->model->conf.outputs,
                                    .n_graphs = c->batch.n_graphs };
    nn_training_result result;
    pl_code code = PL_OK;
    double start;
    int n = 0;

    for (int i = 0; i < training->depth && code == PL_OK; i++)
        code = training->step(engine, &c->batch, &step, err);
    start = st_bench_now(WALL);
    for (; code == PL_OK && (n < 1 || st_bench_now(WALL) - start < seconds); n++) {
        code = training->result(engine, &result, err);
        if (code == PL_OK)
            code = training->step(engine, &c->batch, &step, err);
    }
    *each = (st_bench_now(WALL) - start) / (n ? n : 1);
    *taken = false;
    for (int i = 0; i < training->depth && code == PL_OK; i++) {
        code = training->result(engine, &result, err);
        *taken |= result.taken;
    }
    return code;
}

pl_code st_bench_steps(double *each, const st_bench_case *c, const st_bench_variant *v, nn_engine *engine, double seconds,
                       pl_error *err)
{
    const nn_engine_training *training = v->kind->training;
    const nn_training conf = { .adam = { 0.9, 0.999, 1e-8, 0.1 },
                               .loss = NN_LOSS_L1,
                               .grad_clip = 1,
                               .ema = 0.999,
                               .scale_after = nn_engine_scale_after(&v->conf) };
    size_t n = c->model->n_floats;
    float *params = calloc(2 * n, sizeof *params), *zero = params + n;
    nn_adamw_arrays from = { .p = params, .m = zero, .v = zero, .ema = params };
    double first;
    bool taken;
    pl_code code;

    if (params == NULL)
        return pl_fail(err, PL_ENOMEM, "a bench");
    memcpy(params, c->params, n * sizeof *params);
    code = training->begin(engine, &conf, &from, 0, err);
    if (code == PL_OK)
        code = steps_run(c, training, engine, 0, &first, &taken, err);
    if (code == PL_OK)
        code = steps_run(c, training, engine, seconds, each, &taken, err);
    if (code == PL_OK && !taken)
        code = pl_fail(err, PL_EDATA, "%s: loss or gradient is not finite, so training steps are skipped and cannot be timed",
                       v->name);
    free(params);
    return code;
}
