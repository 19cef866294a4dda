/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>
#include <time.h>

#include "models/cpu/kernels/amx.h"
#include "models/cpu/kernels/kernels.h"
#include "models/threads/pool.h"
#include "stages/bench/bench.h"

enum { ROUNDS = 1 << 20, PRODUCTS = 10000, SIDE = 32, INNER = 256, REPEATS = 15, THREADS = 256 };

double st_bench_now(int threads)
{
    struct timespec t;

    (void)clock_gettime(threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct peak_job {
    const nn_cpu_kernels *kernels;
    double work[THREADS]; /* of each item */
} peak_job;

static void peak_fp32(void *ctx, int worker, int i)
{
    float sink[NN_LANE] = { 0.5f, 0.5f };
    peak_job *j = ctx;

    (void)worker;
    j->work[i] = j->kernels->peak(ROUNDS, sink);
}

static void peak_dot16(void *ctx, int worker, int i)
{
    float sink[NN_LANE] = { 0.5f, 0.5f };
    peak_job *j = ctx;

    (void)worker;
    j->work[i] = j->kernels->peak16(ROUNDS, sink);
}

/* Factors that stay in the first cache: as near to the tiles' peak as a product comes. */
static void peak_bf16(void *ctx, int worker, int i)
{
    _Alignas(64) nn_bf16 a[SIDE * INNER], b[SIDE * INNER];
    _Alignas(64) float c[SIDE * SIDE];
    nn_bf16_product g = { .a = { .at = a, .ld = INNER, .part = SIDE * INNER, .n = INNER, .parts = 1 },
                          .b = { .at = b, .panel = 16 * INNER, .parts = 1 },
                          .n_rows = SIDE,
                          .n_out = SIDE,
                          .c = c,
                          .c_ld = SIDE,
                          .c_panel = 16 };
    peak_job *j = ctx;

    (void)worker;
    for (int k = 0; k < SIDE * INNER; k++)
        a[k] = b[k] = 0x3f80; /* 1 */
    for (int k = 0; k < PRODUCTS; k++)
        j->kernels->bf16.product(&g);
    j->work[i] = c[0] == INNER ? 2.0 * SIDE * SIDE * INNER * PRODUCTS : NAN;
}

/* Operations per second with this many threads at once, the best of several measurements. */
static double rate_best(nn_pool *pool, int threads, nn_pool_work *work, const nn_cpu_kernels *kernels)
{
    peak_job j = { .kernels = kernels };
    double best = 0;

    for (int k = 0; k < REPEATS; k++) {
        double from = st_bench_now(threads), sum = 0, seconds;
        nn_pool_run(pool, threads, work, &j);
        seconds = st_bench_now(threads) - from;
        for (int i = 0; i < threads; i++)
            sum += j.work[i];
        best = sum / seconds > best ? sum / seconds : best;
    }
    return best;
}

st_bench_peak st_bench_peak_find(int threads)
{
    int n = threads < THREADS ? threads : THREADS;
    nn_pool *pool = nn_pool_new(n);
    const nn_cpu_kernels *best = nn_cpu_kernels_find(NULL);
    st_bench_peak p = { 0 };

    if (pool == NULL)
        return p;
    p.fp32 = rate_best(pool, n, peak_fp32, best);
    if (nn_amx_missing() == NULL)
        p.bf16 = rate_best(pool, n, peak_bf16, best);
    if (nn_cpu_kernels_dot16() != NULL)
        p.dot16 = rate_best(pool, n, peak_dot16, nn_cpu_kernels_dot16());
    nn_pool_free(pool);
    return p;
}
