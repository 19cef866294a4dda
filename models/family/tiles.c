/* SPDX-License-Identifier: Apache-2.0 */
/* Left-looking Cholesky factorisation by tiles. Compiled without contraction to fused operations (models/CMakeLists.txt), so vectors of 2 and
 * of 4 doubles give the same bits. */
#include "models/family/tiles.h"

#include <math.h>
#include <string.h>

#include "models/family/exact.h"

enum { T = NN_TILE, ROWS = 4, WIDE = 4, COLUMNS = 8 };
typedef double vector __attribute__((vector_size(WIDE * sizeof(double)), aligned(sizeof(double)), may_alias));

/* Inlined into each caller, so that each uses the instructions of its processor. */
#define INLINE static inline __attribute__((always_inline))

/* ---- the two inner loops ---------------------------------------------------------------- */

/* c -= a b for ROWS rows and COLUMNS columns of tiles c, a and b. */
INLINE void multiply_block(double *c, const double *a, const double *b)
{
    vector sum[ROWS][2];

    for (int r = 0; r < ROWS; r++) {
        sum[r][0] = *(const vector *)(c + r * T);
        sum[r][1] = *(const vector *)(c + r * T + WIDE);
    }
    for (int p = 0; p < T; p++) {
        const vector b0 = *(const vector *)(b + p * T), b1 = *(const vector *)(b + p * T + WIDE);
        for (int r = 0; r < ROWS; r++) {
            const double x = a[r * T + p];
            const vector ax = { x, x, x, x };
            sum[r][0] -= ax * b0;
            sum[r][1] -= ax * b1;
        }
    }
    for (int r = 0; r < ROWS; r++) {
        *(vector *)(c + r * T) = sum[r][0];
        *(vector *)(c + r * T + WIDE) = sum[r][1];
    }
}

INLINE void multiply_tile(double *c, const double *a, const double *b)
{
    for (int j = 0; j < T; j += COLUMNS)
        for (int i = 0; i < T; i += ROWS)
            multiply_block(c + i * T + j, a + i * T, b + j);
}

INLINE void distances_tile(double *out, const double *x, const double *z, int32_t d)
{
    enum { VECTORS = 4 };

    for (int c = 0; c < T; c += VECTORS * WIDE) {
        vector sum[VECTORS] = { { 0 } };
        for (int32_t k = 0; k < d; k++)
            for (int v = 0; v < VECTORS; v++) {
                const vector at = { x[k], x[k], x[k], x[k] };
                const vector off = at - *(const vector *)(z + (size_t)k * T + c + v * WIDE);
                sum[v] += off * off;
            }
        memcpy(out + c, sum, sizeof sum);
    }
}

static void multiply_plain(double *c, const double *a, const double *b) { multiply_tile(c, a, b); }
static void distances_plain(double *out, const double *x, const double *z, int32_t d) { distances_tile(out, x, z, d); }

#ifdef __x86_64__
#define AVX2 __attribute__((target("avx2")))
AVX2 static void multiply_avx2(double *c, const double *a, const double *b) { multiply_tile(c, a, b); }
AVX2 static void distances_avx2(double *out, const double *x, const double *z, int32_t d) { distances_tile(out, x, z, d); }
static bool has_avx2(void) { return __builtin_cpu_supports("avx2"); }
#else
static void multiply_avx2(double *c, const double *a, const double *b) { multiply_tile(c, a, b); }
static void distances_avx2(double *out, const double *x, const double *z, int32_t d) { distances_tile(out, x, z, d); }
static bool has_avx2(void) { return false; }
#endif

/* c -= a b */
static void multiply(double *c, const double *a, const double *b)
{
    if (has_avx2())
        multiply_avx2(c, a, b);
    else
        multiply_plain(c, a, b);
}

void nn_tile_distances(double out[NN_TILE], const double *x, const double *z, int32_t d)
{
    if (has_avx2())
        distances_avx2(out, x, z, d);
    else
        distances_plain(out, x, z, d);
}

/* ---- tiles --------------------------------------------------------------------------------- */

pl_code nn_tiles_make(nn_tiles *out, int32_t n, pl_arena *mem, pl_error *err)
{
    const size_t n_tiles = ((size_t)n + T - 1) / T;

    *out = (nn_tiles){ n, (int32_t)n_tiles, PL_NEW(mem, double, n_tiles *(n_tiles + 1) / 2 * T * T) };
    return out->tile != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "no memory for a matrix of %d rows", (int)n);
}

double *nn_tiles_tile(const nn_tiles *a, int32_t i, int32_t j)
{
    return a->tile + ((size_t)i * ((size_t)i + 1) / 2 + (size_t)j) * T * T;
}

double *nn_tiles_at(const nn_tiles *a, int32_t row, int32_t column)
{
    return nn_tiles_tile(a, row / T, column / T) + (row % T) * T + column % T;
}

/* ---- factor ---------------------------------------------------------------------------------- */

static void transpose(double *out, const double *in)
{
    for (int i = 0; i < T; i++)
        for (int j = 0; j < T; j++)
            out[j * T + i] = in[i * T + j];
}

/* A tile on the diagonal becomes its factor; false: not positive definite. Rows n.. of the last tile are not part of it. */
static bool factor_tile(double *a, int n)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            double sum = a[i * T + j];
            for (int p = 0; p < j; p++)
                sum -= a[i * T + p] * a[j * T + p];
            if (i == j && !(sum > 0 && isfinite(sum)))
                return false;
            a[i * T + j] = i == j ? sqrt(sum) : sum / a[j * T + j];
        }
    return true;
}

/* a = a L^-T, l a tile on the diagonal. Never the last column of tiles, so l is full. */
static void solve_tile(double *a, const double *l)
{
    for (int i = 0; i < T; i++)
        for (int j = 0; j < T; j++) {
            double sum = a[i * T + j];
            for (int p = 0; p < j; p++)
                sum -= a[i * T + p] * l[j * T + p];
            a[i * T + j] = sum / l[j * T + j];
        }
}

pl_code nn_tiles_factor(const nn_tiles *a, double *scratch, bool (*stop)(void *), void *ctx, pl_error *err)
{
    for (int32_t j = 0; j < a->n_tiles; j++) {
        for (int32_t k = 0; k < j; k++)
            transpose(scratch + (size_t)k * T * T, nn_tiles_tile(a, j, k));
        for (int32_t i = j; i < a->n_tiles; i++) {
            if (stop != NULL && stop(ctx))
                return pl_fail(err, PL_ESTOP, "stopped in column %d of %d", (int)j * T, (int)a->n);
            for (int32_t k = 0; k < j; k++)
                multiply(nn_tiles_tile(a, i, j), nn_tiles_tile(a, i, k), scratch + (size_t)k * T * T);
            if (i > j)
                solve_tile(nn_tiles_tile(a, i, j), nn_tiles_tile(a, j, j));
            else if (!factor_tile(nn_tiles_tile(a, j, j), a->n - j * T < T ? a->n - j * T : T))
                return pl_fail(err, PL_EDATA, "the matrix of %d molecules is not positive definite", (int)a->n);
        }
    }
    return PL_OK;
}

/* ---- solve -------------------------------------------------------------------------------------- */

void nn_tiles_forward(const nn_tiles *l, double *x)
{
    for (int32_t i = 0; i < l->n; i++) {
        for (int32_t j = 0; j < i; j++)
            x[i] -= *nn_tiles_at(l, i, j) * x[j];
        x[i] /= *nn_tiles_at(l, i, i);
    }
}

void nn_tiles_backward(const nn_tiles *l, double *x)
{
    for (int32_t i = l->n - 1; i >= 0; i--) {
        x[i] /= *nn_tiles_at(l, i, i);
        for (int32_t j = 0; j < i; j++)
            x[j] -= *nn_tiles_at(l, i, j) * x[i];
    }
}

double nn_tiles_log(const nn_tiles *l)
{
    double sum = 0;

    for (int32_t i = 0; i < l->n; i++)
        sum += nn_log(*nn_tiles_at(l, i, i));
    return sum;
}
