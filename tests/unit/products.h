/* tests/unit/products.h - products of matrices against plain loops; the part of cuda_ops_test.c that is about them. */
#ifndef TESTS_PRODUCTS_H
#define TESTS_PRODUCTS_H

static const nn_gpu_axis one = { 1 << 30, 0, 1 };

typedef struct gemm_case {
    int m, n, k, splits;
    bool add, turned_a, turned_b;
    nn_gpu_precision precision;
} gemm_case;

/* Error bounds for each nn_gpu_precision. */
static const double product_tol[] = { 2e-6, 3e-5, 8e-3, 1e-3, 1e-3 };

/* Numbers that an operand or result takes, beginning at `shift`. */
typedef struct product_sizes {
    size_t a, b, c, shift;
} product_sizes;

/* Tests g, whose a, b, c and work are not set yet, against plain loops; other numbers of g->c must not change. */
static void product_check(nn_gpu_gemm g, const product_sizes *n)
{
    double tol = product_tol[g.precision];
    float *a = random_floats(n->a), *b = random_floats(n->b), *c = random_floats(n->c), *got;
    float *there[] = { to_device(a, n->a), to_device(b, n->b), to_device(c, n->c),
                       ops->alloc(gpu, (size_t)(g.splits * g.m * g.n + 1) * sizeof(float)) };

    g.a = there[0] + n->shift;
    g.b = there[1] + n->shift;
    g.c = there[2] + n->shift;
    g.work = there[3];
    ops->gemm(gpu, &g, 1);
    got = from_device(there[2], n->c);
    for (int i = 0; i < g.m; i++)
        for (int j = 0; j < g.n; j++) {
            size_t to = n->shift + (size_t)(at(&g.c_m, i) + at(&g.c_n, j));
            double want = g.add ? c[to] : 0, size = fabs(want), v = got[to];
            for (int k = 0; k < g.k; k++) {
                double term = (double)a[(int64_t)n->shift + at(&g.a_m, i) + at(&g.a_k, k)] *
                              b[(int64_t)n->shift + at(&g.b_k, k) + at(&g.b_n, j)];
                want += term;
                size += fabs(term);
            }
            if (!(fabs(v - want) <= tol * size + 1e-7))
                fail_msg("%d x %d x %d, %d parts, precision %d: c[%d][%d] is %g, should be %g", g.m, g.n, g.k, g.splits,
                         (int)g.precision, i, j, v, want);
            got[to] = c[to];
        }
    assert_memory_equal(got, c, n->c * sizeof *c); /* nothing else was written */
    for (int i = 0; i < 4; i++)
        ops->free(gpu, there[i]);
}

/* a and b in both orders of dimensions; c in rows of 3 columns, n + 5 apart. */
static void gemm_check(const gemm_case *t)
{
    const nn_gpu_axis by_m = { 1 << 30, 0, t->m }, by_n = { 1 << 30, 0, t->n }, by_k = { 1 << 30, 0, t->k };

    product_check((nn_gpu_gemm){ .m = t->m,
                                 .n = t->n,
                                 .k = t->k,
                                 .splits = t->splits,
                                 .add = t->add,
                                 .precision = t->precision,
                                 .a_m = t->turned_a ? one : by_k,
                                 .a_k = t->turned_a ? by_m : one,
                                 .b_k = t->turned_b ? one : by_n,
                                 .b_n = t->turned_b ? by_k : one,
                                 .c_m = { 3, 3 * t->n + 5, t->n },
                                 .c_n = one },
                  &(product_sizes){ (size_t)(t->m * t->k), (size_t)(t->k * t->n), (size_t)(t->m / 3 + 1) * (size_t)(3 * t->n + 5),
                                    0 });
}

static void products_of_every_shape_and_precision(void **state)
{
    static const int sizes[][4] = { { 1, 1, 1, 1 },     { 65, 64, 16, 1 }, { 7, 130, 33, 1 }, { 64, 3, 100, 3 },
                                    { 100, 70, 97, 2 }, { 5, 9, 0, 1 },    { 33, 17, 200, 7 } };
    (void)state;

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int p = 0; p < 5; p++)
            for (int turn = 0; turn < 4; turn++) {
                const int *s = sizes[i];
                gemm_check(&(gemm_case){ s[0], s[1], s[2], s[3], turn % 2, turn / 2, turn % 2, (nn_gpu_precision)p });
            }
}

/* Gradients of weights and of tables: a's and b's rows lie side by side, or where `across` is not 0 the numbers of the sum
 * do, and rows come in groups of `across`. Of the sum, groups of so many; of c, groups of 16 columns. */
typedef struct gradient_case {
    int m, n, k, splits, groups[2], shift, across;
} gradient_case;

/* One side with so many rows; returns the count of its numbers. */
static size_t gradient_side(const gradient_case *t, int side, int rows, nn_gpu_axis *of_rows, nn_gpu_axis *of_k)
{
    int inner = t->groups[side] ? t->groups[side] : t->k, groups = t->k / inner + 1;

    if (t->across) {
        int row = groups * (inner + 4);
        *of_rows = (nn_gpu_axis){ t->across, (int64_t)t->across * row + 4, row };
        *of_k = (nn_gpu_axis){ inner, inner + 4, 1 };
        return (size_t)(rows * (row + 4));
    }
    *of_rows = one;
    *of_k = (nn_gpu_axis){ inner, inner * rows + 4, rows };
    return (size_t)(groups * (inner * rows + 4));
}

static void gradient_check(const gradient_case *t, nn_gpu_precision p, bool add)
{
    nn_gpu_gemm g = { .m = t->m,
                      .n = t->n,
                      .k = t->k,
                      .splits = t->splits,
                      .add = add,
                      .precision = p,
                      .c_m = { 1 << 30, 0, (t->n / 16 + 1) * 20 },
                      .c_n = { 16, 20, 1 } };
    product_sizes n = { 0, 0, (size_t)(t->m * (t->n / 16 + 1) * 20 + t->shift), (size_t)t->shift };

    n.a = n.shift + gradient_side(t, 0, t->m, &g.a_m, &g.a_k);
    n.b = n.shift + gradient_side(t, 1, t->n, &g.b_n, &g.b_k);
    product_check(g, &n);
}

/* With sums shorter than, as long as and longer than one step of a block's warps; small in one or both dimensions. */
static void gradients_of_every_shape_and_precision(void **state)
{
    enum { ALL = 1 << 20 };
    static const gradient_case cases[] = {
        { 32, 32, 700, 2, { 7, 7 }, 0, 0 },   { 16, 48, 300, 1, { 0, 0 }, 0, 0 },     { 32, 32, 128, 1, { 1, 1 }, 0, 0 },
        { 64, 36, 530, 2, { 3, 3 }, 0, 0 },   { 20, 300, 86, 1, { 0, 0 }, 0, 0 },     { 40, 256, 16, 1, { 5, 5 }, 0, 0 },
        { 32, 16, 150, 3, { 5, 0 }, 0, 0 },   { 33, 17, 200, 1, { 3, 3 }, 0, 0 },     { 32, 32, 140, 1, { 0, 0 }, 1, 0 },
        { 3, 257, 31, 1, { 4, 4 }, 0, 0 },    { 86, 32, 400, 3, { 16, 16 }, 0, ALL }, { 7, 32, 1024, 2, { 0, 0 }, 0, ALL },
        { 32, 40, 301, 2, { 0, 0 }, 0, ALL }, { 9, 32, 400, 2, { 8, 16 }, 0, ALL },   { 32, 8, 300, 2, { 0, 0 }, 1, ALL },
        { 30, 20, 200, 2, { 8, 8 }, 0, 3 },   { 5, 6, 1, 1, { 0, 0 }, 0, 0 },
    };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int p = 0; p < 5; p++)
            gradient_check(&cases[i], (nn_gpu_precision)p, (i + (size_t)p) % 2);
}

/* Linear layers: rows in groups of `group`, like the components of nodes, and a matrix or its transpose. */
typedef struct layer_case {
    int m, n, k, group, shift;
} layer_case;

static void layer_check(const layer_case *t, nn_gpu_precision p, bool turned, bool add)
{
    const nn_gpu_axis by_n = { 1 << 30, 0, t->n }, by_k = { 1 << 30, 0, t->k };
    size_t groups = (size_t)(t->m / t->group + 1), shift = (size_t)t->shift;
    nn_gpu_gemm g = { .m = t->m,
                      .n = t->n,
                      .k = t->k,
                      .splits = 1,
                      .add = add,
                      .precision = p,
                      .a_m = { t->group, t->group * t->k + 4, t->k },
                      .a_k = one,
                      .b_k = turned ? one : by_n,
                      .b_n = turned ? by_k : one,
                      .c_m = { t->group, t->group * t->n + 4, t->n },
                      .c_n = one };

    product_check(g, &(product_sizes){ shift + groups * (size_t)(t->group * t->k + 4), shift + (size_t)(t->k * t->n),
                                       shift + groups * (size_t)(t->group * t->n + 4), shift });
}

static void layers_of_every_shape_and_precision(void **state)
{
    static const layer_case cases[] = {
        { 300, 32, 32, 7, 0 },  { 257, 16, 32, 5, 0 }, { 128, 32, 16, 1, 0 },  { 1, 8, 64, 3, 0 }, { 40, 128, 48, 1, 0 },
        { 129, 33, 6, 3, 0 },   { 20, 31, 50, 7, 0 },  { 17, 32, 32, 3, 1 },   { 50, 1, 1, 2, 0 }, { 30, 32, 32, 1, 2 },
        { 130, 32, 128, 7, 0 }, { 40, 1, 127, 1, 0 },  { 20, 128, 100, 3, 0 },
    };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int p = 0; p < 5; p++)
            for (int turned = 0; turned < 2; turned++)
                layer_check(&cases[i], (nn_gpu_precision)p, turned, (i + (size_t)p) % 2);
}

/* A number of a result stored as type `as`. */
static double number_of(const void *c, size_t at, nn_gpu_precision as)
{
    union {
        uint32_t u;
        float f;
    } bf16 = { 0 };
    uint32_t h;

    if (as == NN_GPU_FP32 || as == NN_GPU_TF32)
        return ((const float *)c)[at];
    h = ((const uint16_t *)c)[at];
    bf16.u = h << 16;
    if (as == NN_GPU_BF16)
        return bf16.f;
    return (h >> 15 ? -1 : 1) * (h >> 10 & 31 ? ldexp(1024 + (h & 1023), (int)(h >> 10 & 31) - 25) : ldexp(h & 1023, -24));
}

/* Products like those for tables: m hidden vectors and a matrix with n columns, `inner` of them side by side, in rows of 2 n. */
static void table_check(int m, int n, int inner, nn_gpu_precision p, nn_gpu_precision as)
{
    const int ld = 2 * n;
    const nn_gpu_axis cols = { inner, inner + inner / 2, 1 }, by_h = { INT32_MAX, 0, NN_GPU_H }, by_n = { INT32_MAX, 0, ld };
    size_t size = (size_t)(m * ld);
    float *a = random_floats((size_t)(m * NN_GPU_H)), *b = random_floats((size_t)(NN_GPU_H * ld)), *c = random_floats(size), *got;
    nn_gpu_gemm g = { .m = m,
                      .n = n,
                      .k = NN_GPU_H,
                      .splits = 1,
                      .precision = p,
                      .c_as = as,
                      .a_m = by_h,
                      .a_k = one,
                      .b_k = by_n,
                      .b_n = cols,
                      .c_m = by_n,
                      .c_n = cols,
                      .a = to_device(a, (size_t)(m * NN_GPU_H)),
                      .b = to_device(b, (size_t)(NN_GPU_H * ld)),
                      .c = to_device(c, size) };
    size_t each = as == NN_GPU_FP16 || as == NN_GPU_BF16 ? 2 : 4;

    ops->gemm(gpu, &g, 1);
    got = from_device(g.c, size);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            size_t to = (size_t)(at(&g.c_m, i) + at(&g.c_n, j));
            double want = 0, terms = 0, v = number_of(got, to, as);
            for (int k = 0; k < NN_GPU_H; k++) {
                double term = (double)a[i * NN_GPU_H + k] * b[at(&g.b_k, k) + at(&g.b_n, j)];
                want += term;
                terms += fabs(term);
            }
            if (!(fabs(v - want) <= (product_tol[p] + product_tol[as]) * terms + 1e-7))
                fail_msg("%d x %d, precisions %d, %d: c[%d][%d] is %g, should be %g", m, n, (int)p, (int)as, i, j, v, want);
            memcpy((char *)got + to * each, (char *)c + to * each, each);
        }
    assert_memory_equal(got, c, size * sizeof *c); /* nothing else was written */
    ops->free(gpu, (void *)(uintptr_t)g.a);
    ops->free(gpu, (void *)(uintptr_t)g.b);
    ops->free(gpu, g.c);
}

static void tables_of_every_shape_and_precision(void **state)
{
    static const int cases[][3] = { { 70, 256, 256 }, { 1, 136, 136 }, { 145, 264, 264 },
                                    { 17, 320, 32 },  { 40, 160, 16 }, { 33, 150, 30 } };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int p = 0; p < 5; p++)
            for (int as = 0; as < 5; as++)
                if (as != NN_GPU_BF16X3)
                    table_check(cases[i][0], cases[i][1], cases[i][2], (nn_gpu_precision)p, (nn_gpu_precision)as);
}

/* Computing only the first m rows gives the same bits. */
static void a_row_of_a_layer_does_not_depend_on_how_many_there_are(void **state)
{
    enum { M = 333, N = 32, K = 48 };
    const nn_gpu_axis rows = { 1 << 30, 0, K }, to = { 1 << 30, 0, N };
    float *c = to_device(random_floats(2 * M * N), 2 * M * N), *got; /* numbers that are not written differ */
    nn_gpu_gemm g = { .n = N,
                      .k = K,
                      .splits = 1,
                      .a_m = rows,
                      .a_k = one,
                      .b_k = to,
                      .b_n = one,
                      .c_m = to,
                      .c_n = one,
                      .a = kept(random_floats(M * K), M * K),
                      .b = kept(random_floats(K * N), K * N) };
    (void)state;

    for (int p = 0; p < 5; p++) {
        g.precision = (nn_gpu_precision)p;
        g.m = M;
        g.c = c;
        ops->gemm(gpu, &g, 1);
        for (int m = 1; m < M; m += 83) {
            g.m = m;
            g.c = c + M * N;
            ops->gemm(gpu, &g, 1);
            got = from_device(c, 2 * M * N);
            assert_memory_equal(got, got + M * N, (size_t)(m * N) * sizeof *got);
        }
    }
    ops->free(gpu, c);
}

/* A sum over k that continues with `more` numbers of other operands, which are transposed. */
static void sum_goes_on(int m, int n, int k, int more)
{
    const nn_gpu_axis rows = { 1 << 30, 0, k }, far = { 1 << 30, 0, m }, wide = { 1 << 30, 0, n };
    float *a = random_floats((size_t)(m * (k + more))), *b = random_floats((size_t)((k + more) * n)), *got;
    nn_gpu_gemm g[2] = { { .m = m,
                           .n = n,
                           .k = k,
                           .splits = 1,
                           .more = true,
                           .a_m = rows,
                           .a_k = one,
                           .b_k = wide,
                           .b_n = one,
                           .a = kept(a, (size_t)(m * k)),
                           .b = kept(b, (size_t)(k * n)),
                           .c_m = wide,
                           .c_n = one } };

    g[0].c = kept(random_floats((size_t)(m * n)), (size_t)(m * n));
    g[1] = g[0];
    g[1].more = false;
    g[1].k = more;
    g[1].a_m = one;
    g[1].a_k = far;
    g[1].a = kept(a + m * k, (size_t)(m * more));
    g[1].b = kept(b + k * n, (size_t)(more * n));
    for (int p = 0; p < 5; p++) {
        g[0].precision = g[1].precision = (nn_gpu_precision)p;
        ops->gemm(gpu, g, 2);
        got = from_device(g[0].c, (size_t)(m * n));
        for (int i = 0; i < m * n; i++) {
            double want = 0, size = 0, term;
            for (int j = 0; j < k + more; j++) {
                term = (double)a[j < k ? i / n * k + j : m * j + i / n] * b[j * n + i % n];
                want += term;
                size += fabs(term);
            }
            assert_true(fabs(got[i] - want) <= product_tol[p] * size + 1e-7);
        }
    }
}

/* In few chunks of a row; and more tiles than blocks at once. */
static void a_sum_goes_on(void **state)
{
    (void)state;
    sum_goes_on(300, 32, 32, 16);
    sum_goes_on(131, 40, 20, 9);
    sum_goes_on(70, 24, 70, 33);
    sum_goes_on(64 * 400 + 7, 3, 56, 9);
}

/* As many products as a launch takes, with k short, long and split, side by side in c; every second one is a gradient. */
static void a_group_of_products_is_what_each_is_alone(void **state)
{
    enum { N = NN_GPU_GROUP, M = 5, COLS = 9, K = 30 * N };
    float *a = to_device(random_floats(N * M * K), N * M * K), *b = to_device(random_floats(K * COLS), K * COLS);
    float *c = ops->alloc(gpu, 2 * N * M * COLS * sizeof(float)), *work = ops->alloc(gpu, N * 4 * M * COLS * sizeof(float));
    const nn_gpu_axis by_k = { 1 << 30, 0, K }, by_m = { 1 << 30, 0, M };
    nn_gpu_gemm g[N];
    const float *got;
    (void)state;

    for (int p = 0; p < 5; p++) {
        for (int i = 0; i < N; i++)
            g[i] = (nn_gpu_gemm){ .m = M,
                                  .n = COLS,
                                  .k = (i < 8 ? 8 : 30) * (i + 1),
                                  .splits = i < 8 ? 1 : 1 + i % 4,
                                  .precision = (nn_gpu_precision)p,
                                  .a_m = i % 2 ? one : by_k,
                                  .a_k = i % 2 ? by_m : one,
                                  .b_k = { 1 << 30, 0, COLS },
                                  .b_n = one,
                                  .c_m = { 1 << 30, 0, COLS },
                                  .c_n = one,
                                  .a = a + i * M * K,
                                  .b = b,
                                  .c = c + i * M * COLS,
                                  .work = work + i * 4 * M * COLS };
        ops->gemm(gpu, g, N);
        for (int i = 0; i < N; i++) {
            g[i].c = c + (N + i) * M * COLS;
            ops->gemm(gpu, &g[i], 1);
        }
        got = from_device(c, 2 * N * M * COLS);
        assert_memory_equal(got, got + N * M * COLS, N * M * COLS * sizeof *got);
    }
    ops->free(gpu, a);
    ops->free(gpu, b);
    ops->free(gpu, c);
    ops->free(gpu, work);
}

#endif
