/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "models/threads/pool.h"
#include "stages/bench/bench.h"

enum { F = sizeof(float), REPEATS = 5, THREADS = 256 };

/* ---- bandwidth ----------------------------------------------------------- */

typedef struct triad_job {
    size_t n;
    int threads;
    float *a;
    const float *b, *c;
} triad_job;

static void triad(void *ctx, int worker, int i)
{
    const triad_job *j = ctx;
    size_t end = j->n * (size_t)(i + 1) / (size_t)j->threads;

    (void)worker;
    for (size_t k = j->n * (size_t)i / (size_t)j->threads; k < end; k++)
        j->a[k] = j->b[k] + 3 * j->c[k];
}

static size_t triad_floats(void)
{
    size_t least = (size_t)64 << 20, most = (size_t)256 << 20, bytes = least;
#ifdef _SC_LEVEL3_CACHE_SIZE
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    bytes = cache > (long)least ? (size_t)cache : least;
#endif
    return (bytes < most ? bytes : most) / F;
}

static double triad_rate(const triad_job *j, nn_pool *pool)
{
    double best = HUGE_VAL;

    for (int k = 0; k < REPEATS; k++) {
        double from = st_bench_now(j->threads);
        nn_pool_run(pool, j->threads, triad, (void *)j);
        best = k ? fmin(best, st_bench_now(j->threads) - from) : best; /* the first touches the pages */
    }
    return 3.0 * F * (double)j->n / best;
}

double st_bench_bandwidth_find(int threads)
{
    int n = threads < THREADS ? threads : THREADS;
    size_t floats = triad_floats();
    nn_pool *pool = nn_pool_new(n);
    float *all = malloc(3 * floats * sizeof *all);
    triad_job j = { floats, n, all, all + floats, all + 2 * floats };
    double rate = 0;

    if (pool != NULL && all != NULL) {
        for (size_t i = 0; i < 3 * floats; i++)
            all[i] = 1;
        rate = triad_rate(&j, pool);
    }
    free(all);
    nn_pool_free(pool);
    return rate;
}

/* ---- measuring ----------------------------------------------------------- */

bool st_bench_roof_wanted(const st_bench_variant *v, const char *words, int threads)
{
    return v->kind->watch != NULL && v->models == 1 && !v->conf.recompute && v->conf.products != NN_PRODUCTS_CUBLASLT &&
           (words != NULL || (v->main && v->conf.of_contract != NN_PREC_BF16X3)) && st_bench_variant_wanted(v, words, threads);
}

st_bench_roof st_bench_roof_of(const st_bench_variant *v, int threads, const st_bench_peak *peak, double bandwidth)
{
    st_bench_roof r = {
        .variant = v->name, .threads = threads, .flops = peak->fp32, .bytes = bandwidth, .unit_flops = peak->fp32, .products = 1
    };

    if (v->conf.of_contract == NN_PREC_FP32)
        return r;
    r.products = v->conf.of_contract == NN_PREC_BF16X3 ? 3 : 1;
    r.unit = "float32";
    if (v->kind == &nn_engine_cuda) {
        r.unit = "tensor cores";
        r.unit_flops = peak->bf16;
        return r;
    }
    if (v->set != NULL && !strcmp(v->set, "amx")) {
        r.unit = "bf16 tiles";
        r.unit_flops = peak->bf16;
    } else if (peak->dot16 > peak->fp32) {
        r.unit = "bf16 pairs";
        r.unit_flops = peak->dot16;
    }
    return r;
}

double st_bench_roof_least(const st_bench_roof *r, const st_bench_roof_op *op)
{
    if (!(r->flops > 0 && r->unit_flops > 0))
        return 0;
    return (op->flops - op->rounded) / r->flops + r->products * op->rounded / r->unit_flops;
}

/* A training step: the weights are folded, forward, backward. In `elapsed` its seconds. */
static pl_code step_run(double *elapsed, nn_op_clock *clock, const st_bench_case *c, const nn_engine_kind *kind, nn_engine *e,
                        pl_error *err)
{
    double from = st_bench_now(clock->threads);
    pl_code code;

    memset(clock->seconds, 0, sizeof clock->seconds);
    code = kind->set_params(e, c->params, err);
    if (code == PL_OK)
        code = kind->forward(e, &c->batch, true, c->y, err);
    if (code == PL_OK)
        code = kind->backward(e, &c->batch, c->dy, c->grad, err);
    *elapsed = st_bench_now(clock->threads) - from;
    return code;
}

/* The first step is not counted. */
static pl_code best_run(st_bench_roof *r, nn_op_clock *clock, const st_bench_case *c, const nn_engine_kind *kind, nn_engine *e,
                        double seconds, pl_error *err)
{
    double start = st_bench_now(clock->threads), elapsed;
    pl_code code = step_run(&elapsed, clock, c, kind, e, err);

    r->step = HUGE_VAL;
    for (int i = 0; code == PL_OK && (i < 1 || st_bench_now(clock->threads) - start < seconds); i++) {
        code = step_run(&elapsed, clock, c, kind, e, err);
        for (int k = 0; k < NN_OPS && elapsed < r->step; k++)
            r->op[k].seconds = clock->seconds[k];
        r->step = fmin(r->step, elapsed);
    }
    return code;
}

pl_code st_bench_roof_run(st_bench_roof *r, const st_bench_case *c, const st_bench_variant *v, double seconds, pl_error *err)
{
    int wall = v->kind->training != NULL ? 2 : r->threads; /* a GPU's work is not this processor's time */
    nn_op_clock clock = { .now = st_bench_now, .threads = wall };
    nn_engine_conf conf = v->conf;
    nn_engine *e = NULL;
    pl_code code;

    if (v->kind->watch == NULL)
        return pl_fail(err, PL_EDEVICE, "engine %s cannot time its operations", v->kind->name);
    conf.threads = r->threads;
    st_bench_set_use(v->set);
    code = v->kind->open(&e, c->model, &conf, err);
    if (code == PL_OK) {
        v->kind->watch(e, &clock);
        code = best_run(r, &clock, c, v->kind, e, seconds, err);
    }
    v->kind->close(e);
    if (code == PL_OK)
        st_bench_roof_count(r->op, c, v, (double)clock.radial_rows);
    return code;
}

pl_code st_bench_roof_beside(st_bench_roof *r, const st_bench_case *c, const st_bench_variant *v, double seconds, pl_error *err)
{
    st_bench_variant by = *v;
    st_bench_roof other = { .threads = r->threads };
    pl_error why = { 0 };
    pl_code code;

    by.conf.products = NN_PRODUCTS_CUBLASLT;
    if (v->kind != &nn_engine_cuda || v->kind->check(&by.conf, &why) != PL_OK)
        return PL_OK;
    code = st_bench_roof_run(&other, c, &by, seconds, err);
    for (int i = 0; code == PL_OK && i < NN_OPS; i++)
        r->cublaslt[i] = other.op[i].seconds;
    return code;
}
