/* SPDX-License-Identifier: Apache-2.0 */
/* bf16 products of every set of kernels against their definition (models/cpu/kernels/bf16.h), to the bit. */
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
#include "pipeline/base/arena.h"
#include "pipeline/base/rng.h"

static const char *const names[] = { "portable", "avx2", "avx512", "amx" };

/* Runs a check on every set of kernels of this machine. */
static void each(void (*check)(const nn_cpu_bf16 *k, pl_arena *mem))
{
    for (int i = 0; i < 4; i++) {
        const nn_cpu_kernels *k = nn_cpu_kernels_find(names[i]);
        pl_arena *mem = pl_arena_new(1 << 20);
        if (k != NULL)
            check(&k->bf16, mem);
        pl_arena_free(mem);
    }
}

/* ---- the definition --------------------------------------------------------------- */

static float float_of(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t bits_of(float x)
{
    uint32_t u;

    memcpy(&u, &x, sizeof u);
    return u;
}

/* Rounds by comparing the two neighbours: to nearest, ties to even. */
static uint16_t plain_round(float x)
{
    uint32_t u = bits_of(x), low = u >> 16;
    double below, above;

    if (isnan(x))
        return (uint16_t)(low | 0x40);
    if (!isnormal(x))
        return (uint16_t)(isinf(x) ? low : low & 0x8000);
    below = fabs((double)float_of(low << 16));
    above = (low & 0x7fff) == 0x7f7f ? ldexp(1, 128) : fabs((double)float_of((low + 1) << 16));
    if (fabs((double)x) - below > above - fabs((double)x) || (fabs((double)x) - below == above - fabs((double)x) && (low & 1)))
        low++;
    return (uint16_t)low;
}

static float value(uint16_t x) { return float_of((uint32_t)x << 16); }

/* c += one block of 32 inputs. */
static float block_add(float c, const uint16_t *a, const uint16_t *b)
{
    volatile float even = 0, odd = 0, both;

    for (int k = 0; k < 32; k += 2) {
        even = fmaf(value(a[k]), value(b[k]), even);
        odd = fmaf(value(a[k + 1]), value(b[k + 1]), odd);
    }
    both = even + odd;
    both = c + both;
    return both;
}

static void split(float x, uint16_t part[2])
{
    part[0] = plain_round(x);
    part[1] = plain_round(x - value(part[0]));
}

/* One number of the product of a row and a column of `n` floats. */
static float plain_number(float c, const float *a, const float *b, size_t b_ld, int n, int parts)
{
    for (int first = 0; first < n; first += 32) {
        uint16_t u[2][32] = { { 0 } }, v[2][32] = { { 0 } };
        for (int k = 0; k < 32 && first + k < n; k++) {
            uint16_t s[2], t[2];
            split(a[first + k], s);
            split(b[(size_t)(first + k) * b_ld], t);
            for (int p = 0; p < 2; p++) {
                u[p][k] = s[p];
                v[p][k] = t[p];
            }
        }
        c = block_add(c, u[0], v[0]);
        if (parts > 1) {
            c = block_add(c, u[1], v[0]);
            c = block_add(c, u[0], v[1]);
        }
    }
    return c;
}

/* ---- matrices ---------------------------------------------------------------------- */

typedef struct dense {
    int32_t rows, n;
    float *at;
} dense;

static dense dense_new(int32_t rows, int32_t n, uint64_t seed, pl_arena *mem)
{
    dense d = { rows, n, PL_NEW(mem, float, (size_t)rows *(size_t)n + 1) };
    pl_rng r = pl_rng_at(seed, 1, 1);

    for (int32_t i = 0; i < rows * n; i++)
        d.at[i] = (float)ldexp(pl_rng_real(&r) - 0.5, (int)(pl_rng_real(&r) * 12) - 6);
    return d;
}

/* Rows of a, or of a transposed; the padding, which must not be used, has large numbers. */
static nn_bf16_mat rows_of(const nn_cpu_bf16 *k, const dense *d, int parts, bool turn, pl_arena *mem)
{
    int32_t rows = turn ? d->n : d->rows, n = turn ? d->rows : d->n, in = (int32_t)nn_bf16_in(n);
    size_t ld = (size_t)in + 32, part = nn_bf16_rows(rows) * ld;
    nn_bf16_mat m = { PL_NEW(mem, nn_bf16, part * (size_t)parts), ld, part, turn ? n : in, parts };
    nn_bf16_source from = { d->at, (size_t)d->n, NULL, NULL, 1, d->rows, d->n };

    memset(m.at, 0x7f, part * (size_t)parts * sizeof *m.at);
    if (turn)
        k->turn(&from, &m);
    else
        k->rows(&from, &m);
    m.n = in;
    return m;
}

static nn_bf16_panels panels_of(const nn_cpu_bf16 *k, const dense *d, int parts, pl_arena *mem)
{
    size_t panel = nn_bf16_packed(d->rows, 16, parts) + 64;
    nn_bf16_panels b = { PL_NEW(mem, nn_bf16, panel * (size_t)d->n / 16), panel, parts };

    k->pack(&(nn_bf16_source){ d->at, (size_t)d->n, NULL, NULL, 1, d->rows, d->n }, &b);
    return b;
}

enum { C_PAD = 3 };

/* c [rows][n + C_PAD] = (add) a b, the padding and a row behind kept as they are. */
static float *multiply(const nn_cpu_bf16 *k, const nn_bf16_mat *a, const nn_bf16_panels *b, const int32_t shape[2], bool add,
                       pl_arena *mem)
{
    size_t n = (size_t)shape[1], ld = n + C_PAD, all = ((size_t)shape[0] + 1) * ld;
    float *c = PL_NEW(mem, float, all);
    nn_bf16_product g = { *a, *b, shape[0], shape[1], c, ld, 16, add };

    for (size_t i = 0; i < all; i++)
        c[i] = (float)i + 0.25f;
    k->product(&g);
    for (size_t i = 0; i < all; i++)
        if (i % ld >= n || i / ld >= (size_t)shape[0])
            assert_true(c[i] == (float)i + 0.25f);
    return c;
}

/* ---- tests -------------------------------------------------------------------------- */

typedef struct shape {
    int32_t rows, in, out;
} shape;

static const shape shapes[] = { { 1, 16, 16 },   { 7, 32, 16 },   { 16, 32, 32 }, { 17, 48, 48 }, { 31, 64, 32 },
                                { 33, 192, 96 }, { 5, 128, 128 }, { 40, 32, 96 }, { 2, 128, 64 }, { 47, 64, 80 } };

static void numbers_same(const float *c, size_t ld, const dense *a, const dense *b, bool add, int parts)
{
    for (int32_t i = 0; i < a->rows; i++)
        for (int32_t j = 0; j < b->n; j++) {
            size_t at = (size_t)i * ld + (size_t)j;
            float was = add ? (float)at + 0.25f : 0;
            float want = plain_number(was, a->at + (size_t)i * (size_t)a->n, b->at + j, (size_t)b->n, a->n, parts);
            if (bits_of(c[at]) != bits_of(want))
                fail_msg("%dx%dx%d, %d parts, number %d,%d: %.9g, should be %.9g", (int)a->rows, (int)a->n, (int)b->n, parts,
                         (int)i, (int)j, (double)c[at], (double)want);
        }
}

static void product_check(const nn_cpu_bf16 *k, pl_arena *mem)
{
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int parts = 1; parts <= 2; parts++) {
            dense a = dense_new(shapes[s].rows, shapes[s].in, s, mem), b = dense_new(shapes[s].in, shapes[s].out, 99 + s, mem);
            nn_bf16_mat x = rows_of(k, &a, parts, false, mem);
            nn_bf16_panels y = panels_of(k, &b, parts, mem);
            for (int add = 0; add < 2; add++)
                numbers_same(multiply(k, &x, &y, (int32_t[]){ a.rows, b.n }, add, mem), (size_t)b.n + C_PAD, &a, &b, add, parts);
        }
}

static void products_are_those_of_the_definition_to_the_bit(void **state)
{
    (void)state;
    each(product_check);
}

/* dTab = X^T dY: rows of both, the first transposed, the second packed. */
static void turned_check(const nn_cpu_bf16 *k, pl_arena *mem)
{
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int parts = 1; parts <= 2; parts++) {
            dense a = dense_new(shapes[s].rows, shapes[s].in, s, mem), b = dense_new(shapes[s].rows, shapes[s].out, 7 + s, mem);
            dense t = { a.n, a.rows, PL_NEW(mem, float, (size_t)(a.n * a.rows)) };
            nn_bf16_mat x = rows_of(k, &a, parts, true, mem);
            nn_bf16_panels y = panels_of(k, &b, parts, mem);
            for (int32_t i = 0; i < a.rows * a.n; i++)
                t.at[i % a.n * a.rows + i / a.n] = a.at[i];
            numbers_same(multiply(k, &x, &y, (int32_t[]){ t.rows, b.n }, true, mem), (size_t)b.n + C_PAD, &t, &b, true, parts);
        }
}

static void a_transposed_factor_gives_the_transposed_product(void **state)
{
    (void)state;
    each(turned_check);
}

static void round_check(const nn_cpu_bf16 *k, pl_arena *mem)
{
    enum { N = 16 * 64 };
    float x[N];
    nn_bf16_mat m = { PL_NEW(mem, nn_bf16, 2 * N), N, N, N, 2 };
    pl_rng r = pl_rng_at(5, 2, 3);

    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < N; i++) {
            uint32_t u = (uint32_t)pl_rng_u64(&r);
            if (i % 4 == 0) /* a tie */
                u = (u & 0xffff0000u) | 0x8000u;
            if (i % 4 == 1) /* infinite or NaN */
                u |= 0x7f800000u;
            if (i % 64 == 5) /* subnormal or 0 */
                u &= 0x807fffffu;
            if (i % 64 == 9) /* infinite */
                u = (u & 0x80000000u) | 0x7f800000u;
            x[i] = float_of(u);
        }
        k->rows(&(nn_bf16_source){ x, N, NULL, NULL, 1, 1, N }, &m);
        for (int i = 0; i < N; i++) {
            assert_int_equal(m.at[i], plain_round(x[i]));
            if (isfinite(x[i]) && isfinite(value(m.at[i])))
                assert_int_equal(m.at[m.part + (size_t)i], plain_round(x[i] - value(plain_round(x[i]))));
            else
                assert_false(isfinite(value(m.at[i])) && isfinite(value(m.at[m.part + (size_t)i])));
        }
    }
}

static void numbers_are_rounded_to_the_nearest_and_ties_to_even(void **state)
{
    (void)state;
    each(round_check);
}

/* A row that is not finite affects its own sums and no others. */
static void spoiled_check(const nn_cpu_bf16 *k, pl_arena *mem)
{
    static const float bad[] = { NAN, INFINITY, -INFINITY };

    for (int i = 0; i < 6; i++) {
        dense a = dense_new(40, 64, 1, mem), b = dense_new(64, 32, 2, mem);
        nn_bf16_mat x;
        nn_bf16_panels y;
        float *c;
        a.at[17 * 64 + 35] = bad[i / 2];
        b.at[35 * 32 + 3] = 0; /* inf * 0 */
        x = rows_of(k, &a, i % 2 + 1, false, mem);
        y = panels_of(k, &b, i % 2 + 1, mem);
        c = multiply(k, &x, &y, (int32_t[]){ 40, 32 }, false, mem);
        for (int32_t at = 0; at < 40 * 32; at++)
            assert_true(!isfinite(c[at / 32 * (32 + C_PAD) + at % 32]) == (at / 32 == 17));
    }
}

static void what_is_not_finite_stays_so_and_spoils_only_its_row(void **state)
{
    (void)state;
    each(spoiled_check);
}

/* The first rows of a long product equal those of a short one. */
static void rows_check(const nn_cpu_bf16 *k, pl_arena *mem)
{
    dense a = dense_new(75, 96, 3, mem), b = dense_new(96, 48, 4, mem);
    nn_bf16_mat x = rows_of(k, &a, 2, false, mem);
    nn_bf16_panels y = panels_of(k, &b, 2, mem);
    const float *all = multiply(k, &x, &y, (int32_t[]){ 75, 48 }, false, mem);

    for (int32_t n = 1; n < 75; n++)
        assert_memory_equal(multiply(k, &x, &y, (int32_t[]){ n, 48 }, false, mem), all,
                            ((size_t)n * (48 + C_PAD) - C_PAD) * sizeof *all);
}

static void a_row_does_not_depend_on_how_many_there_are(void **state)
{
    (void)state;
    each(rows_check);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_those_of_the_definition_to_the_bit),
        cmocka_unit_test(a_transposed_factor_gives_the_transposed_product),
        cmocka_unit_test(numbers_are_rounded_to_the_nearest_and_ties_to_even),
        cmocka_unit_test(what_is_not_finite_stays_so_and_spoils_only_its_row),
        cmocka_unit_test(a_row_does_not_depend_on_how_many_there_are),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
