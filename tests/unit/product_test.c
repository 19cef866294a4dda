/* SPDX-License-Identifier: Apache-2.0 */
/* Dense products of every set of kernels against plain loops in double. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "models/cpu/kernels/kernels.h"
#include "pipeline/base/arena.h"
#include "pipeline/base/rng.h"

/* One product with its operands; plain matrices are [k][n] complex numbers. */
typedef struct made {
    pl_arena *mem;
    nn_cpu_product p;
    double *re, *im;   /* B [k][n]                */
    double *cre, *cim; /* C as it was [n_rows][n] */
} made;

static double tolerance; /* of the table that is tested */

/* Runs a check on every table of this machine. Bounds are a few roundings of a factor
 * (2^-9, with two parts 2^-17) on top of those of the sums. */
static void each(void (*check)(const nn_cpu_products *t))
{
    static const char *const names[] = { "portable", "avx2", "avx512", "amx" };

    for (int i = 0; i < 4; i++) {
        const nn_cpu_kernels *k = nn_cpu_kernels_find(names[i]);
        if (k == NULL)
            continue;
        tolerance = 2e-6;
        check(&k->products);
        tolerance = 4e-6;
        check(&k->products16[0]);
        tolerance = 2e-3;
        check(&k->products16[1]);
    }
}

static float *noise(pl_arena *mem, size_t n, pl_rng *rng)
{
    float *x = PL_NEW(mem, float, n);

    assert_non_null(x);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)pl_rng_normal(rng);
    return x;
}

/* Number (k, j) of part 0 or 1 in the panels of B. */
static size_t place(const nn_cpu_product *p, int part, int k, int j)
{
    size_t rows = (size_t)(p->a[1] != NULL ? 2 : 1) * (size_t)p->k, row = (size_t)part * (size_t)p->k + (size_t)k;

    return ((size_t)(j / NN_LANE) * rows + row) * NN_LANE + (size_t)(j % NN_LANE);
}

static made made_new(int rows, int k, int n, bool complex)
{
    made m = { .mem = pl_arena_new(1 << 18) };
    pl_rng rng = pl_rng_at(5, (uint64_t)(rows + 1000 * k + n), complex);
    size_t a_ld = (size_t)k + 16, c_ld = (size_t)n + 48, parts = complex ? 2 : 1, size = parts * (size_t)(k * n);
    float *b = noise(m.mem, size, &rng);

    m.p = (nn_cpu_product){
        .n_rows = rows, .k = k, .n = n, .a_ld = a_ld, .c_ld = c_ld, .b = b, .scale = noise(m.mem, (size_t)rows, &rng), .add = true
    };
    for (size_t i = 0; i < parts; i++) {
        m.p.a[i] = noise(m.mem, (size_t)rows * a_ld, &rng);
        m.p.c[i] = noise(m.mem, (size_t)rows * c_ld, &rng);
    }
    m.p.db = PL_NEW(m.mem, float, size);
    memcpy(m.p.db, b, size * sizeof *b);
    return m;
}

static double c_of(const made *m, int part, int row, int j)
{
    const nn_cpu_product *p = &m->p;
    double sum = 0;

    for (int k = 0; k < p->k; k++) {
        double x = p->a[0][(size_t)row * p->a_ld + (size_t)k], y = p->a[1] != NULL ? p->a[1][(size_t)row * p->a_ld + (size_t)k] : 0;
        double u = p->b[place(p, 0, k, j)], v = p->a[1] != NULL ? p->b[place(p, 1, k, j)] : 0;
        sum += part ? x * v + y * u : x * u - y * v;
    }
    return sum * p->scale[row];
}

static double db_of(const made *m, int part, int k, int j)
{
    const nn_cpu_product *p = &m->p;
    double sum = p->b[place(p, part, k, j)];

    for (int row = 0; row < p->n_rows; row++) {
        size_t a = (size_t)row * p->a_ld + (size_t)k, c = (size_t)row * p->c_ld + (size_t)j;
        double x = p->a[0][a], y = p->a[1] != NULL ? p->a[1][a] : 0, u = p->c[0][c], v = p->a[1] != NULL ? p->c[1][c] : 0;
        sum += p->scale[row] * (part ? x * v - y * u : x * u + y * v);
    }
    return sum;
}

static void near(double got, double want, double scale)
{
    if (!(fabs(got - want) <= tolerance * scale))
        fail_msg("%.9g, should be %.9g (scale %g)", got, want, scale);
}

/* B is added to, then overwritten. */
static void outer_check(const made *m, const nn_cpu_products *t)
{
    for (int fresh = 0; fresh < 2; fresh++) {
        nn_cpu_product p = m->p;
        p.add = !fresh;
        t->outer(&p);
        for (int part = 0; part < (p.a[1] != NULL ? 2 : 1); part++)
            for (int k = 0; k < p.k; k++)
                for (int j = 0; j < p.n; j++) {
                    size_t at = place(&p, part, k, j);
                    near(p.db[at], db_of(m, part, k, j) - (fresh ? p.b[at] : 0), 20 * sqrt(p.n_rows + 1));
                }
    }
}

/* B packed for this table; b keeps the panels that the expected numbers are computed from. */
static const float *packed(const made *m, const nn_cpu_products *t)
{
    const nn_cpu_product *p = &m->p;
    int32_t k = (p->a[1] != NULL ? 2 : 1) * p->k;
    float *to;

    if (t->pack == NULL)
        return p->b;
    to = PL_NEW(m->mem, float, t->packed_size(k, p->n));
    t->pack(p->b, k, p->n, to);
    return to;
}

/* C is added to, then overwritten; every row is also computed alone: the same bits. */
static void run_check(const made *m, const nn_cpu_products *t)
{
    nn_cpu_product p = m->p;
    size_t n = (size_t)p.n_rows * p.c_ld;
    float *before[2] = { PL_NEW(m->mem, float, n), PL_NEW(m->mem, float, n) };

    for (int part = 0; part < 2 && p.c[part] != NULL; part++)
        memcpy(before[part], p.c[part], n * sizeof **before);
    p.b = packed(m, t);
    t->run(&p);
    for (int part = 0; part < 2 && p.c[part] != NULL; part++)
        for (int row = 0; row < p.n_rows; row++)
            for (size_t j = 0; j < p.c_ld; j++) {
                size_t at = (size_t)row * p.c_ld + j;
                if (j >= (size_t)p.n)
                    assert_true(p.c[part][at] == before[part][at]);
                else
                    near(p.c[part][at], before[part][at] + c_of(m, part, row, (int)j), 20 * sqrt(p.k));
            }
    p.add = false;
    t->run(&p);
    for (int row = 0; row < m->p.n_rows; row++) {
        nn_cpu_product one = p;
        float y[2][256];
        one.n_rows = 1;
        one.scale += row;
        for (int part = 0; part < 2 && p.c[part] != NULL; part++) {
            one.a[part] += (size_t)row * p.a_ld;
            one.c[part] = y[part];
        }
        t->run(&one);
        for (int part = 0; part < 2 && p.c[part] != NULL; part++)
            assert_memory_equal(y[part], p.c[part] + (size_t)row * p.c_ld, (size_t)p.n * sizeof(float));
    }
}

static void shapes_check(const nn_cpu_products *t)
{
    static const int shapes[][3] = { { 1, 16, 16 },   { 5, 16, 48 },   { 12, 32, 32 },    { 23, 48, 16 },
                                     { 67, 96, 112 }, { 128, 64, 64 }, { 131, 128, 128 }, { 40, 160, 144 } };

    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int complex = 0; complex < 2; complex++) {
            made m = made_new(shapes[s][0], shapes[s][1], shapes[s][2], complex);
            outer_check(&m, t);
            run_check(&m, t);
            pl_arena_free(m.mem);
        }
}

static void products_are_those_of_plain_loops_whatever_the_shape(void **state)
{
    (void)state;
    each(shapes_check);
}

/* B is n x k: c[row][o] is the sum over k of a[row][k] b[o][k]. */
static void turned_check(int rows, int k, int n, const nn_cpu_products *t)
{
    made m = made_new(rows, n, k, false);
    pl_rng rng = pl_rng_at(6, 0, 0);
    nn_cpu_product p = { .n_rows = rows, .k = k, .n = n, .a_ld = (size_t)k + 16, .c_ld = (size_t)n + 5, .b = m.p.b };
    float *c = PL_NEW(m.mem, float, (size_t)rows *p.c_ld);

    p.a[0] = noise(m.mem, (size_t)rows * p.a_ld, &rng);
    p.c[0] = c;
    t->run_turned(&p);
    p.add = true;
    t->run_turned(&p);
    for (int row = 0; row < rows; row++)
        for (int o = 0; o < n; o++) {
            double sum = 0;
            for (int j = 0; j < k; j++)
                sum += (double)p.a[0][(size_t)row * p.a_ld + (size_t)j] * m.p.b[place(&m.p, 0, o, j)];
            near(c[(size_t)row * p.c_ld + (size_t)o], 2 * sum, 20 * sqrt(k));
        }
    pl_arena_free(m.mem);
}

static void turned_shapes_check(const nn_cpu_products *t)
{
    turned_check(1, 16, 1, t);
    turned_check(7, 96, 32, t);
    turned_check(90, 512, 33, t);
}

static void a_transposed_matrix_product_is_that_of_plain_loops(void **state)
{
    (void)state;
    each(turned_shapes_check);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_those_of_plain_loops_whatever_the_shape),
        cmocka_unit_test(a_transposed_matrix_product_is_that_of_plain_loops),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
