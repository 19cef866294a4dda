/* SPDX-License-Identifier: Apache-2.0 */
/* Whether products with weights of 2:4 sparsity can be faster on an x86 processor when they skip the zeros.
 *
 *     ninja -C build/release bench_sparse && build/release/bin/bench_sparse
 *
 * C[rows][n] = A[rows][k] B[k][n], of every four of B along k two are zero. Two ways to skip, beside the program's own product:
 * select: lanes along n; each lane takes its two numbers of four of A by a shuffle.
 * turned: lanes along rows; A is laid out [k][rows] and C comes as [n][rows], so only rows of A that are needed are read. Once
 * without and once with turning A and C round, which all other operations need.
 * CPU time of the thread, the shortest of many runs. */
#include <immintrin.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "models/cpu/kernels/kernels.h"
#include "models/network/sparse.h"
#include "pipeline/base/rng.h"

enum { LANES = 16, WIDE = 8 }; /* of panels; vectors of turned */

typedef struct product {
    int lanes;
    int rows, k, n, ld;         /* ld: from one k of at, or column of ct, to the next; shares no cache sets */
    float *a, *at, *c, *ct, *b; /* at, ct: turned; b: panels of 16 columns */
    float *w;                   /* [n][k], 2:4 */
    float *kept;                /* [n/lanes][k/4][2][lanes] */
    int32_t *which;             /* the same: 0 to 3 */
    float *value;               /* [n][k/2] */
    int32_t *from;              /* the same: k */
    const nn_cpu_products *own;
    nn_cpu_product p;
} product;

static void run_own(const product *x) { x->own->run(&x->p); }

/* 16 rows at a time, so that reads and writes stay in the first cache. */
static void turn(float *to, int ld, const float *from, int rows, int columns)
{
    for (int r = 0; r < rows; r += LANES)
        for (int c = 0; c < columns; c++)
            for (int i = 0; i < LANES; i++)
                to[(size_t)c * (size_t)ld + (size_t)(r + i)] = from[(size_t)(r + i) * (size_t)columns + (size_t)c];
}

static void turn_back(float *to, const float *from, int ld, int rows, int columns)
{
    for (int r = 0; r < rows; r += LANES)
        for (int c = 0; c < columns; c++)
            for (int i = 0; i < LANES; i++)
                to[(size_t)(r + i) * (size_t)columns + (size_t)c] = from[(size_t)c * (size_t)ld + (size_t)(r + i)];
}

#define TARGET __attribute__((target("avx512f,avx512dq")))
#define NAME(x) x##_avx512
#define VECTOR __m512
#define INDICES __m512i
#define ALL _mm512_set1_ps
#define LOAD _mm512_loadu_ps
#define LOAD_INDICES _mm512_loadu_si512
#define STORE _mm512_storeu_ps
#define FMA _mm512_fmadd_ps
#define CHOOSE _mm512_permutevar_ps
#define BROADCAST(p) _mm512_broadcast_f32x4(_mm_loadu_ps(p))
enum { W_AVX512 = 16, ROWS_AVX512 = 8, W_AVX2 = 8, ROWS_AVX2 = 4 };
#define W W_AVX512
#define ROWS ROWS_AVX512
#include "tests/bench/bench_sparse_body.h"
#undef TARGET
#undef NAME
#undef VECTOR
#undef INDICES
#undef ALL
#undef LOAD
#undef LOAD_INDICES
#undef STORE
#undef FMA
#undef CHOOSE
#undef BROADCAST
#undef W
#undef ROWS
#define TARGET __attribute__((target("avx2,fma")))
#define NAME(x) x##_avx2
#define VECTOR __m256
#define INDICES __m256i
#define ALL _mm256_set1_ps
#define LOAD _mm256_loadu_ps
#define LOAD_INDICES(p) _mm256_loadu_si256((const __m256i *)(p))
#define STORE _mm256_storeu_ps
#define FMA _mm256_fmadd_ps
#define CHOOSE _mm256_permutevar_ps
#define BROADCAST(p) _mm256_broadcast_ps((const __m128 *)(p))
#define W W_AVX2
#define ROWS ROWS_AVX2
#include "tests/bench/bench_sparse_body.h"

/* A set of instructions with its dense product and those that skip. */
typedef struct way {
    const char *name;
    int lanes; /* of select */
    void (*select)(const product *x);
    void (*turned)(const product *x);
    void (*whole)(const product *x);
} way;

static const way ways[] = { { "avx512", W_AVX512, select_avx512, turned_avx512, turned_whole_avx512 },
                            { "avx2", W_AVX2, select_avx2, turned_avx2, turned_whole_avx2 } };

static float *floats(size_t n) { return aligned_alloc(64, (n * sizeof(float) + 63) / 64 * 64); }

static void weights_make(product *x, pl_rng *rng)
{
    const nn_param p = { .n_dims = 2, .dims = { x->n, x->k } };

    for (int i = 0; i < x->n * x->k; i++)
        x->w[i] = (float)pl_rng_normal(rng);
    nn_sparse_prune(x->w, &p);
    for (int j = 0; j < x->n; j++)
        for (int i = 0, q = 0; i < x->k; i++) {
            const float w = x->w[j * x->k + i];
            x->b[(j / LANES * x->k + i) * LANES + j % LANES] = w;
            if (w == 0)
                continue;
            const size_t packed =
                (size_t)((j / x->lanes * (x->k / 4) + i / 4) * 2 + q % 2) * (size_t)x->lanes + (size_t)(j % x->lanes);
            x->kept[packed] = w;
            x->which[packed] = i % 4;
            x->value[j * x->k / 2 + q] = w;
            x->from[j * x->k / 2 + q++] = i;
        }
}

static product product_new(int rows, int k, int n, int lanes, const nn_cpu_products *own)
{
    const int ld = rows + LANES;
    const size_t nk = (size_t)n * (size_t)k, nr = (size_t)n * (size_t)ld, rk = (size_t)ld * (size_t)k;
    pl_rng rng = pl_rng_at(7, (uint64_t)n, (uint64_t)k);
    product x = { .lanes = lanes,
                  .rows = rows,
                  .k = k,
                  .n = n,
                  .ld = ld,
                  .own = own,
                  .a = floats(rk),
                  .at = floats(rk),
                  .c = floats(nr),
                  .ct = floats(nr),
                  .b = floats(nk),
                  .w = floats(nk),
                  .kept = floats(nk),
                  .which = (int32_t *)floats(nk),
                  .value = floats(nk),
                  .from = (int32_t *)floats(nk) };

    for (size_t i = 0; i < (size_t)rows * (size_t)k; i++)
        x.a[i] = (float)pl_rng_normal(&rng);
    weights_make(&x, &rng);
    turn(x.at, x.ld, x.a, rows, k);
    x.p = (nn_cpu_product){
        .n_rows = rows, .k = k, .n = n, .a = { x.a }, .a_ld = (size_t)k, .b = x.b, .c = { x.c }, .c_ld = (size_t)n
    };
    return x;
}

static double seconds(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Microseconds of one product. */
static double shortest(const product *x, void (*run)(const product *))
{
    const double flops = 2.0 * x->rows * x->k * x->n;
    const int inner = flops < 2e7 ? (int)(2e7 / flops) + 1 : 1;
    double best = INFINITY;

    for (int i = 0; i < 60; i++) {
        const double from = seconds();
        for (int j = 0; j < inner; j++)
            run(x);
        best = fmin(best, (seconds() - from) / inner);
    }
    return 1e6 * best;
}

/* The largest difference from the program's product. */
static double differs(const product *x, void (*run)(const product *))
{
    const size_t n = (size_t)x->rows * (size_t)x->n;
    float *want = floats(n);
    double most = 0;

    run_own(x);
    memcpy(want, x->c, n * sizeof *want);
    memset(x->c, 0, n * sizeof *want);
    run(x);
    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs((double)want[i] - (double)x->c[i]));
    free(want);
    return most;
}

/* B as the products of a table read it. */
static const float *packed_for(const nn_cpu_products *t, const product *x)
{
    float *to = t->pack != NULL ? floats(t->packed_size(x->k, x->n)) : NULL;

    if (to == NULL)
        return x->b;
    t->pack(x->b, x->k, x->n, to);
    return to;
}

/* false: a product that skips gives other numbers. */
static bool line_print(const way *w, const char *name, const product *x)
{
    if (!(differs(x, w->select) <= 1e-3 && differs(x, w->whole) <= 1e-3)) {
        (void)printf("%s, %s: wrong numbers\n", w->name, name);
        return false;
    }
    (void)printf("| %s | %s | %d x %d x %d | %.1f | %.1f | %.1f | %.1f |\n", w->name, name, x->rows, x->k, x->n,
                 shortest(x, run_own), shortest(x, w->select), shortest(x, w->turned), shortest(x, w->whole));
    (void)fflush(stdout);
    return true;
}

int main(void)
{
    static const struct {
        const char *name;
        int rows, k, n;
    } shapes[] = { { "head, 240 molecules", 256, 128, 128 },
                   { "linear, 32 channels", 4352, 32, 32 },
                   { "linear, 16 channels", 4352, 16, 16 },
                   { "project, 48 to 32", 4352, 48, 32 },
                   { "tables of 128 nodes", 128, 32, 8192 } };

    (void)printf(
        "| set | product | rows x k x n | dense, us | select | turned | turned, with A and C |\n|---|---|---|--:|--:|--:|--:|\n");
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
        const nn_cpu_kernels *own = nn_cpu_kernels_find(ways[k].name);
        for (size_t i = 0; own != NULL && i < sizeof shapes / sizeof *shapes; i++) {
            const product x = product_new(shapes[i].rows, shapes[i].k, shapes[i].n, ways[k].lanes, &own->products);
            if (!line_print(&ways[k], shapes[i].name, &x))
                return 1;
        }
    }
    for (size_t i = 0; nn_cpu_kernels_find("amx") != NULL && i < sizeof shapes / sizeof *shapes; i++) {
        product x = product_new(shapes[i].rows, shapes[i].k, shapes[i].n, LANES, &nn_cpu_kernels_find("amx")->products16[1]);
        x.p.b = packed_for(x.own, &x);
        (void)printf("| amx, bf16 | %s | %d x %d x %d | %.1f | | | |\n", shapes[i].name, x.rows, x.k, x.n, shortest(&x, run_own));
    }
    return 0;
}
