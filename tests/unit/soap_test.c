/* SPDX-License-Identifier: Apache-2.0 */
/* SOAP against the published equations in double, as nested sums over the four indices of a tensor. Linked with
 * -Wl,--wrap=pl_arena_get. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "models/optim/optimiser.h"
#include "models/optim/soap.h"
#include "pipeline/base/rng.h"
#include "tests/unit/guarded.h"

enum { STEPS = 25, LARGEST = 24, TENSORS = 6, RADIAL = 0, WIDE, MATRIX, LONG, VECTOR, SILENT };

/* The last layers of two radial networks, one of whose modes fills its rows and one is a number longer; a matrix; one with a mode that is
 * too large, and one number in the other; a vector; a matrix of which some rows get no gradient. */
static const int32_t dims[TENSORS][4] = { { 6, 5, 3, 20 }, { 17, 5, 3, 16 }, { 1, 1, 6, 5 }, { 1, 1, 2, NN_SOAP_LARGEST + 2 },
                                          { 1, 1, 1, 7 },  { 1, 1, 9, 4 } };
static const nn_group groups[] = { { .c_out = 6, .c_in = 5, .n_freq = 3 }, { .c_out = 17, .c_in = 5, .n_freq = 3 } };
enum { ALL = 6 * 5 * 3 * 20 + 17 * 5 * 3 * 16 + 6 * 5 + 2 * (NN_SOAP_LARGEST + 2) + 7 + 9 * 4 };

typedef struct published {
    double p[ALL], m[ALL], v[ALL], ema[ALL], cov[4][LARGEST][LARGEST], q[4][LARGEST][LARGEST];
} published;

typedef struct bench {
    pl_arena *mem;
    nn_param tensor[TENSORS];
    float p[ALL], m[ALL], v[ALL], ema[ALL], g[ALL], *bases;
    size_t n_bases;
    published want[TENSORS];
} bench;

static bool guards; /* arrays of arenas have nothing behind them */
void *__real_pl_arena_get(pl_arena *mem, size_t n, size_t size);
void *__wrap_pl_arena_get(pl_arena *mem, size_t n, size_t size);

void *__wrap_pl_arena_get(pl_arena *mem, size_t n, size_t size)
{
    return guards ? guarded(n, size) : __real_pl_arena_get(mem, n, size);
}

static const nn_adamw_conf conf = { 0.9, 0.98, 1e-8, 0.1 };
static const double AVERAGE = 0.25;

static int32_t size_of(int t) { return dims[t][0] * dims[t][1] * dims[t][2] * dims[t][3]; }

static void bench_reset(bench *b)
{
    size_t at = 0;

    memset(b->m, 0, sizeof b->m);
    memset(b->v, 0, sizeof b->v);
    memset(b->want, 0, sizeof b->want);
    for (int t = 0; t < TENSORS; at += (size_t)size_of(t++)) {
        pl_rng r = pl_rng_at(5, (uint64_t)t, 0);
        b->tensor[t] = (nn_param){ .at = at, .size = (size_t)size_of(t), .n_dims = 2, .dims = { dims[t][2], dims[t][3] } };
        if (t <= WIDE) {
            b->tensor[t].dims[0] = dims[t][0] * dims[t][1] * dims[t][2];
            b->tensor[t].last_of = &groups[t];
        }
        if (t == VECTOR) {
            b->tensor[t].n_dims = 1;
            b->tensor[t].dims[0] = 7;
        }
        for (int32_t k = 0; k < size_of(t); k++)
            b->want[t].p[k] = b->want[t].ema[k] = b->ema[at + (size_t)k] = b->p[at + (size_t)k] = (float)pl_rng_normal(&r);
    }
    b->n_bases = nn_optimiser_bases(NN_SOAP, b->tensor, TENSORS);
    b->bases = PL_NEW(b->mem, float, b->n_bases);
    assert_non_null(b->bases);
}

#include "tests/unit/optimiser_bench.h"

/* ---- the equations ------------------------------------------------------- */

static const int32_t *index_of(int t, int32_t k)
{
    static int32_t i[4];

    for (int d = 3; d >= 0; k /= dims[t][d--])
        i[d] = k % dims[t][d];
    return i;
}

static bool is_rotated(int t, int d) { return t != VECTOR && dims[t][d] > 1 && dims[t][d] <= NN_SOAP_LARGEST; }

static int32_t stride(int t, int d)
{
    int32_t n = 1;

    for (int e = d + 1; e < 4; e++)
        n *= dims[t][e];
    return n;
}

/* Directions differ in length, so that eigenvalues differ; they mix indices, so that eigenvectors are not the axes. */
static void gradient_make(bench *b, int step)
{
    pl_rng r = pl_rng_at(6, (uint64_t)step, 0);

    for (int t = 0; t < TENSORS; t++)
        for (int32_t k = 0; k < size_of(t); k++) {
            const int32_t *i = index_of(t, k);
            double by = 1;
            for (int d = 0; d < 4; d++)
                by *= exp(-0.2 * i[d]);
            b->g[b->tensor[t].at + (size_t)k] = t == SILENT && i[2] > 2 ? 0 : (float)(by * (0.5 + pl_rng_normal(&r)));
        }
}

/* Into the eigenbases, or back. */
static void rotate(int t, double *x, double (*q)[LARGEST][LARGEST], bool back)
{
    static double y[ALL];

    for (int d = 0; d < 4; d++) {
        if (!is_rotated(t, d))
            continue;
        for (int32_t k = 0; k < size_of(t); k++) {
            int32_t i = index_of(t, k)[d], first = k - i * stride(t, d);
            y[k] = 0;
            for (int32_t j = 0; j < dims[t][d]; j++)
                y[k] += (back ? q[d][i][j] : q[d][j][i]) * x[first + j * stride(t, d)];
        }
        memcpy(x, y, (size_t)size_of(t) * sizeof *x);
    }
}

/* The Gram-Schmidt process on the columns of cov q; a column of zeros keeps its direction. */
static void iterate(int32_t n, double (*cov)[LARGEST], double (*q)[LARGEST])
{
    double w[LARGEST][LARGEST] = { { 0 } };

    for (int32_t j = 0; j < n; j++) {
        double norm = 0;
        for (int32_t i = 0; i < n; i++)
            for (int32_t k = 0; k < n; k++)
                w[i][j] += cov[i][k] * q[k][j];
        for (int pass = 0; pass < 3; pass++) {
            for (int32_t k = 0; k < j; k++) {
                double along = 0;
                for (int32_t i = 0; i < n; i++)
                    along += w[i][k] * w[i][j];
                for (int32_t i = 0; i < n; i++)
                    w[i][j] -= along * w[i][k];
            }
            norm = 0;
            for (int32_t i = 0; i < n; i++)
                norm += w[i][j] * w[i][j];
            for (int32_t i = 0; pass == 0 && norm < 1e-30 && i < n; i++)
                w[i][j] = q[i][j];
        }
        for (int32_t i = 0; i < n; i++)
            w[i][j] /= sqrt(norm);
    }
    for (int32_t i = 0; i < n; i++)
        memcpy(q[i], w[i], sizeof w[i]);
}

static void moments_add(int t, int d, const double *x, published *want, bool first)
{
    int32_t n = dims[t][d], s = stride(t, d);
    double sum[LARGEST][LARGEST] = { { 0 } };

    for (int32_t k = 0; k < size_of(t); k++)
        for (int32_t i = index_of(t, k)[d], j = 0; j < n; j++)
            sum[i][j] += x[k] * x[k + (j - i) * s];
    for (int32_t i = 0; i < n; i++)
        for (int32_t j = 0; j < n; j++)
            want->cov[d][i][j] = first ? sum[i][j] : 0.95 * want->cov[d][i][j] + 0.05 * sum[i][j];
}

static void bases_begin(int t, published *want)
{
    for (int d = 0; d < 4; d++) {
        for (int32_t i = 0; i < LARGEST; i++)
            want->q[d][i][i] = 1;
        for (int k = 0; is_rotated(t, d) && k < 20; k++)
            iterate(dims[t][d], want->cov[d], want->q[d]);
    }
}

static void published_step(int t, published *want, const float *g, int step, double lr, double clip)
{
    static double x[ALL];

    for (int32_t k = 0; k < size_of(t); k++)
        x[k] = clip * (double)g[k];
    for (int d = 0; d < 4; d++)
        if (is_rotated(t, d))
            moments_add(t, d, x, want, step == 1);
    if (step == 1) {
        bases_begin(t, want);
        return;
    }
    rotate(t, x, want->q, false);
    for (int32_t k = 0; k < size_of(t); k++) {
        want->m[k] = 0.9 * want->m[k] + 0.1 * x[k];
        want->v[k] = 0.98 * want->v[k] + 0.02 * x[k] * x[k];
        x[k] = want->m[k] / (1 - pow(0.9, step - 1)) / (sqrt(want->v[k] / (1 - pow(0.98, step - 1))) + 1e-8);
    }
    rotate(t, x, want->q, true);
    for (int32_t k = 0; k < size_of(t); k++) {
        want->p[k] -= lr * (x[k] + 0.1 * want->p[k]);
        want->ema[k] += AVERAGE * (want->p[k] - want->ema[k]);
    }
    if (step % 10)
        return;
    rotate(t, want->m, want->q, true);
    for (int d = 0; d < 4; d++)
        if (is_rotated(t, d))
            iterate(dims[t][d], want->cov[d], want->q[d]);
    rotate(t, want->m, want->q, false);
}

/* ---- tests --------------------------------------------------------------- */

static void steps_run(bench *b, const nn_cpu_kernels *kernels, int threads, bool compared)
{
    nn_optimiser *o = nn_optimiser_new(&(nn_optimiser_conf){ NN_SOAP, threads, kernels }, ALL, b->tensor, TENSORS, b->mem);
    nn_pool *pool = nn_pool_new(threads);
    const nn_adamw_arrays arrays = { b->p, b->m, b->v, b->ema, b->g };

    assert_true(o && pool);
    for (int t = 1; t <= STEPS; t++) {
        const nn_optimiser_step step = { conf, t, 0.02 / t, 0.5, AVERAGE, b->bases };
        gradient_make(b, t);
        nn_optimiser_run(o, pool, &arrays, &step);
        for (int k = 0; compared && k < TENSORS; k++)
            published_step(k, &b->want[k], b->g + b->tensor[k].at, t, 0.02 / t, 0.5);
    }
    nn_pool_free(pool);
}

static void steps_are_the_published_ones(void **state)
{
    bench *b = *state;
    const nn_cpu_kernels *kernels[] = { NULL, nn_cpu_kernels_choose() };

    for (int i = 0; i < 2; i++) {
        guards = true;
        bench_reset(b);
        steps_run(b, kernels[i], 1, true);
        guards = false;
        for (int t = 0; t < TENSORS; t++)
            for (int32_t k = 0; k < size_of(t); k++) {
                size_t at = b->tensor[t].at + (size_t)k;
                if (!(fabs((double)b->p[at] - b->want[t].p[k]) <= 2e-5))
                    fail_msg("tensor %d, parameter %d: %.9g, published %.9g", t, (int)k, (double)b->p[at], b->want[t].p[k]);
                if (!(fabs((double)b->ema[at] - b->want[t].ema[k]) <= 2e-5))
                    fail_msg("tensor %d, average %d: %.9g, not %.9g", t, (int)k, (double)b->ema[at], b->want[t].ema[k]);
            }
    }
}

/* Of all C and Q: n rows, which are padded to a multiple of 16. */
static void bases_have_the_numbers_of_their_modes(void **state)
{
    static const struct {
        int32_t rows, columns;
        size_t bases;
    } edges[] = { { 15, 2, 2 * 16 * (15 + 2) },           { 16, 2, 2 * 16 * (16 + 2) },
                  { 17, 2, 2 * (32 * 17 + 16 * 2) },      { NN_SOAP_LARGEST, 2, 2 * (NN_SOAP_LARGEST * NN_SOAP_LARGEST + 16 * 2) },
                  { NN_SOAP_LARGEST + 1, 2, 2 * 16 * 2 }, { 1, 7, 2 * 16 * 7 } };
    bench *b = *state;

    for (size_t k = 0; k < sizeof edges / sizeof *edges; k++) {
        const nn_param p = { .n_dims = 2, .dims = { edges[k].rows, edges[k].columns } };
        assert_int_equal(nn_optimiser_bases(NN_SOAP, &p, 1), edges[k].bases);
    }
    assert_int_equal(nn_optimiser_bases(NN_SOAP, &b->tensor[WIDE], 1), 2 * (32 * 17 + 16 * (5 + 3 + 16)));
    assert_int_equal(nn_optimiser_bases(NN_SOAP, b->tensor, 1), 2 * (16 * (6 + 5 + 3) + 32 * 20));
    assert_int_equal(nn_optimiser_bases(NN_SOAP, &b->tensor[MATRIX], 1), 2 * 16 * (6 + 5));
    assert_int_equal(nn_optimiser_bases(NN_SOAP, &b->tensor[LONG], 1), 2 * 2 * 16);
    assert_int_equal(nn_optimiser_bases(NN_SOAP, &b->tensor[VECTOR], 1), 0);
    assert_int_equal(nn_optimiser_bases(NN_ADAMW, b->tensor, TENSORS), 0);
    assert_int_equal(nn_optimiser_bases(NN_LAMB, b->tensor, TENSORS), 0);
}

/* Q^T Q = 1 for each basis, of rows without gradient too; behind the rows of C and Q are zeros. */
static void bases_stay_orthonormal(void **state)
{
    bench *b = *state;
    size_t at = 0;
    int seen = 0;

    steps_run(b, NULL, 1, false);
    for (int t = 0; t < TENSORS; t++)
        for (int d = 0; d < 4; d++) {
            int32_t n = dims[t][d], pad = (n + 15) / 16 * 16;
            if (!is_rotated(t, d))
                continue;
            const float *c = b->bases + at, *q = c + (size_t)n * (size_t)pad;
            for (int32_t i = 0; i < n; i++)
                for (int32_t j = n; j < pad; j++)
                    assert_true(c[i * pad + j] == 0 && q[i * pad + j] == 0);
            for (int32_t i = 0; i < n; i++)
                for (int32_t j = 0; j < n; j++) {
                    double sum = 0;
                    for (int32_t k = 0; k < n; k++)
                        sum += (double)q[k * pad + i] * (double)q[k * pad + j];
                    assert_true(fabs(sum - (i == j)) <= 1e-5);
                }
            at += 2 * (size_t)n * (size_t)pad;
            seen++;
        }
    assert_int_equal(seen, 13);
    assert_int_equal(at, b->n_bases);
}

/* The eigenvalues of this gradient are near each other, so that one iteration more or less is seen. */
static void the_first_bases_are_those_of_twenty_iterations(void **state)
{
    bench *b = *state;
    nn_optimiser *o = nn_optimiser_new(&(nn_optimiser_conf){ NN_SOAP, 1, NULL }, ALL, b->tensor, TENSORS, b->mem);
    nn_pool *pool = nn_pool_new(1);
    const nn_adamw_arrays arrays = { b->p, b->m, b->v, b->ema, b->g };
    const nn_optimiser_step step = { conf, 1, 0.02, 1, 0.25, b->bases };
    published *want = &b->want[RADIAL];
    double most[2] = { 0 }; /* differences of the bases from those of 20 iterations, and of 21 */
    pl_rng r = pl_rng_at(7, 0, 0);

    assert_true(o && pool);
    for (int k = 0; k < ALL; k++)
        b->g[k] = (float)pl_rng_normal(&r);
    nn_optimiser_run(o, pool, &arrays, &step);
    nn_pool_free(pool);
    published_step(RADIAL, want, b->g, 1, 0, 1);
    for (int again = 0; again < 2; again++) {
        size_t at = 0;
        for (int d = 0; d < 4; d++) {
            int32_t n = dims[RADIAL][d], pad = (n + 15) / 16 * 16;
            const float *q = b->bases + at + (size_t)n * (size_t)pad;
            for (int32_t i = 0; i < n; i++)
                for (int32_t j = 0; j < n; j++) {
                    assert_true(isfinite(q[i * pad + j]));
                    most[again] = fmax(most[again], fabs((double)q[i * pad + j] - want->q[d][i][j]));
                }
            iterate(n, want->cov[d], want->q[d]);
            at += 2 * (size_t)n * (size_t)pad;
        }
    }
    if (!(most[0] < 1e-3 && most[1] > 1e-2))
        fail_msg("%g from those of 20 iterations, %g from those of 21", most[0], most[1]);
}

/* The basis of three rows whose gradients are u. Columns for which C has nothing new are those of the old basis, which is the
 * identity, less what lies along earlier ones; where that is nothing too, they are axes. Worked out by hand. */
static void a_basis_is_whole_whatever_the_gradient_lacks(void **state)
{
    static const struct {
        float u[3];
        double q[3][3];
    } cases[] = {
        { { 0, 0, 0 }, { { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } } },
        { { 1, 1, 1 },
          { { 0.5773502691896258, -0.4082482904638630, -0.7071067811865475 },
            { 0.5773502691896258, 0.8164965809277260, 0 },
            { 0.5773502691896258, -0.4082482904638630, 0.7071067811865475 } } },
        { { 1e-8F, 1, 0 }, { { 0, 1, 0 }, { 1, 0, 0 }, { 0, 0, 1 } } },
        { { 0, 0, -2 }, { { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } } },
    };
    const nn_param rows = { .n_dims = 2, .dims = { 3, 1 }, .size = 3 };
    nn_adamw_rule rule = nn_adamw_rule_make(&conf, 1, 0.02f);
    bench *b = *state;
    nn_soap *s = nn_soap_new(&rows, 1, 1, &nn_cpu_portable, b->mem);

    assert_non_null(s);
    rule.clip = 1;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        float p[3] = { 0 }, m[3] = { 0 }, v[3] = { 0 }, bases[2 * 3 * 16] = { 0 };
        nn_soap_step(s, 0, 0, &(nn_adamw_arrays){ .p = p, .m = m, .v = v, .g = cases[k].u }, bases, 1, &rule);
        for (int j = 0; j < 3; j++) {
            double along = 0; /* 1, or -1: either is such a column */
            for (int i = 0; i < 3; i++)
                along += (double)bases[3 * 16 + i * 16 + j] * cases[k].q[i][j];
            for (int i = 0; i < 3; i++)
                if (!(fabs(along * (double)bases[3 * 16 + i * 16 + j] - cases[k].q[i][j]) <= 1e-6))
                    fail_msg("case %d, row %d, column %d: %g", (int)k, i, j, (double)bases[3 * 16 + i * 16 + j]);
        }
    }
}

/* Each request in turn; then none. */
static void refused_memory_gives_no_optimiser(void **state)
{
    enum { OWN = 3, OF_SOAP = 3, OF_A_WORKER = 9 };
    const bench *b = *state;

    for (nn_optimiser_kind kind = NN_ADAMW; kind <= NN_SOAP; kind++) {
        bool made = false;
        int nth = 0;
        while (!made) {
            pl_arena *mem = pl_arena_new(0);
            pl_arena_refuse(++nth);
            made = nn_optimiser_new(&(nn_optimiser_conf){ kind, 2, NULL }, ALL, b->tensor, TENSORS, mem) != NULL;
            pl_arena_refuse(0);
            pl_arena_free(mem);
        }
        assert_int_equal(nth, 1 + OWN + (kind == NN_SOAP ? OF_SOAP + 2 * OF_A_WORKER : 0));
    }
}

static void the_first_step_moves_nothing(void **state)
{
    bench *b = *state;
    nn_optimiser *o = nn_optimiser_new(&(nn_optimiser_conf){ NN_SOAP, 1, NULL }, ALL, b->tensor, TENSORS, b->mem);
    nn_pool *pool = nn_pool_new(1);
    const nn_adamw_arrays arrays = { b->p, b->m, b->v, b->ema, b->g };
    const nn_optimiser_step step = { conf, 1, 0.02, 1, AVERAGE, b->bases };

    assert_true(o && pool);
    gradient_make(b, 1);
    nn_optimiser_run(o, pool, &arrays, &step);
    nn_pool_free(pool);
    for (int t = 0; t < TENSORS; t++)
        for (int32_t k = 0; k < size_of(t); k++) {
            size_t at = b->tensor[t].at + (size_t)k;
            assert_true((double)b->p[at] == b->want[t].p[k] && b->ema[at] == b->p[at] && b->m[at] == 0 && b->v[at] == 0);
        }
}

static void a_vector_has_steps_of_adam(void **state)
{
    bench *b = *state;
    float p[7], m[7] = { 0 }, v[7] = { 0 };
    size_t at = b->tensor[VECTOR].at;

    memcpy(p, b->p + at, sizeof p);
    steps_run(b, NULL, 1, false);
    for (int t = 2; t <= STEPS; t++) {
        nn_adamw_rule r = nn_adamw_rule_make(&conf, t - 1, (float)(0.02 / t));
        r.clip = 0.5f;
        gradient_make(b, t);
        nn_adamw_update(&(nn_adamw_arrays){ .p = p, .m = m, .v = v, .g = b->g + at }, 0, 7, &r);
    }
    for (int k = 0; k < 7; k++)
        assert_true(fabsf(p[k] - b->p[at + (size_t)k]) <= 1e-6f && v[k] > 0);
}

static void any_number_of_threads_gives_the_same_bits(void **state)
{
    static float p[ALL], ema[ALL];
    bench *b = *state;

    for (int threads = 1; threads <= 4; threads++) {
        bench_reset(b);
        steps_run(b, NULL, threads, false);
        if (threads == 1) {
            memcpy(p, b->p, sizeof p);
            memcpy(ema, b->ema, sizeof ema);
        }
        assert_memory_equal(p, b->p, sizeof p);
        assert_memory_equal(ema, b->ema, sizeof ema);
    }
    assert_memory_not_equal(p, ema, sizeof p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_BENCH(steps_are_the_published_ones),
        WITH_BENCH(bases_have_the_numbers_of_their_modes),
        WITH_BENCH(bases_stay_orthonormal),
        WITH_BENCH(the_first_step_moves_nothing),
        WITH_BENCH(the_first_bases_are_those_of_twenty_iterations),
        WITH_BENCH(a_basis_is_whole_whatever_the_gradient_lacks),
        WITH_BENCH(refused_memory_gives_no_optimiser),
        WITH_BENCH(a_vector_has_steps_of_adam),
        WITH_BENCH(any_number_of_threads_gives_the_same_bits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
