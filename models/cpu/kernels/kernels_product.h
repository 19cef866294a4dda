/* models/cpu/kernels/kernels_product.h - dense products in float32 (product.h); part of kernels_body.h. */

enum { OUTER_ROWS = 64 }; /* rows whose C is laid out closely, to stay in the first cache */

/* Column o of panels with `rows` rows; one row further is NN_LANE floats further. */
static inline size_t panel_at(int32_t rows, int o)
{
    return (size_t)(o / NN_LANE) * (size_t)rows * NN_LANE + (size_t)(o % NN_LANE);
}

static inline __attribute__((always_inline)) void product_store(const nn_cpu_product *p, int part, int row, int o, vf s[2],
                                                                const int nv)
{
    float *c = p->c[part] + (size_t)row * p->c_ld + o;

    for (int v = 0; v < nv; v++) {
        vf x = s[v];
        if (p->scale != NULL)
            x = x * p->scale[row];
        store(c + v * NK_W, p->add ? load(c + v * NK_W) + x : x);
    }
}

/* n rows, nv vectors of columns. */
static inline __attribute__((always_inline)) void real_block(const nn_cpu_product *p, int row, int o, const int n, const int nv)
{
    const float *a = p->a[0] + (size_t)row * p->a_ld;
    const float *b0 = p->b + panel_at(p->k, o), *b1 = p->b + panel_at(p->k, o + (nv - 1) * NK_W);
    vf s[NK_R][2];

    for (int i = 0; i < n; i++)
        s[i][0] = s[i][1] = (vf){ 0 };
    for (int k = 0; k < p->k; k++) {
        vf w0 = load(b0 + (size_t)k * NN_LANE), w1 = load(b1 + (size_t)k * NN_LANE);
#pragma GCC unroll 12
        for (int i = 0; i < n; i++) {
            float x = a[(size_t)i * p->a_ld + (size_t)k];
            s[i][0] += w0 * x;
            if (nv > 1)
                s[i][1] += w1 * x;
        }
    }
    for (int i = 0; i < n; i++)
        product_store(p, 0, row + i, o, s[i], nv);
}

static inline __attribute__((always_inline)) void complex_block(const nn_cpu_product *p, int row, int o, const int n, const int nv)
{
    const float *a = p->a[0] + (size_t)row * p->a_ld, *ai = p->a[1] + (size_t)row * p->a_ld;
    const float *b[2] = { p->b + panel_at(2 * p->k, o), p->b + panel_at(2 * p->k, o + (nv - 1) * NK_W) };
    size_t imaginary = (size_t)p->k * NN_LANE;
    vf s[NK_C][2], t[NK_C][2];

    for (int i = 0; i < n; i++)
        s[i][0] = s[i][1] = t[i][0] = t[i][1] = (vf){ 0 };
    for (int k = 0; k < p->k; k++) {
        vf wr[2], wi[2];
        for (int v = 0; v < nv; v++) {
            wr[v] = load(b[v] + (size_t)k * NN_LANE);
            wi[v] = load(b[v] + imaginary + (size_t)k * NN_LANE);
        }
#pragma GCC unroll 6
        for (int i = 0; i < n; i++) {
            float x = a[(size_t)i * p->a_ld + (size_t)k], y = ai[(size_t)i * p->a_ld + (size_t)k];
            for (int v = 0; v < nv; v++) {
                s[i][v] += wr[v] * x;
                s[i][v] -= wi[v] * y;
                t[i][v] += wr[v] * y;
                t[i][v] += wi[v] * x;
            }
        }
    }
    for (int i = 0; i < n; i++) {
        product_store(p, 0, row + i, o, s[i], nv);
        product_store(p, 1, row + i, o, t[i], nv);
    }
}

static inline __attribute__((always_inline)) void product_columns(const nn_cpu_product *p, int o, const int nv)
{
    int row = 0;

    if (p->a[1] != NULL) {
        for (; row + NK_C <= p->n_rows; row += NK_C)
            complex_block(p, row, o, NK_C, nv);
        for (; row + 2 <= p->n_rows; row += 2)
            complex_block(p, row, o, 2, nv);
        for (; row < p->n_rows; row++)
            complex_block(p, row, o, 1, nv);
        return;
    }
    for (; row + NK_R <= p->n_rows; row += NK_R)
        real_block(p, row, o, NK_R, nv);
    for (; row + 4 <= p->n_rows; row += 4)
        real_block(p, row, o, 4, nv);
    for (; row < p->n_rows; row++)
        real_block(p, row, o, 1, nv);
}

static void product_run(const nn_cpu_product *p)
{
    int o = 0;

    for (; o + 2 * NK_W <= p->n; o += 2 * NK_W)
        product_columns(p, o, 2);
    for (; o < p->n; o += NK_W)
        product_columns(p, o, 1);
}

/* Sums of 4 rows (n of them real, the rest repeats) times q columns of C, over the lanes of k. */
static inline __attribute__((always_inline)) void turned_block(const nn_cpu_product *p, const float *const a[4], int row, int rows,
                                                               int o, const int q)
{
    vf s[4][NK_Q];

    for (int i = 0; i < 4; i++)
        for (int j = 0; j < q; j++)
            s[i][j] = (vf){ 0 };
    for (int k = 0; k < p->k; k += NK_W) {
        const float *b = p->b + panel_at(p->n, k) + (size_t)o * NN_LANE;
        vf a0 = load(a[0] + k), a1 = load(a[1] + k), a2 = load(a[2] + k), a3 = load(a[3] + k);
#pragma GCC unroll 6
        for (int j = 0; j < q; j++) {
            vf v = load(b + j * NN_LANE);
            s[0][j] += a0 * v;
            s[1][j] += a1 * v;
            s[2][j] += a2 * v;
            s[3][j] += a3 * v;
        }
    }
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < q; j++) {
            float *c = p->c[0] + (size_t)(row + i) * p->c_ld + o + j, x = lanes_sum(s[i][j]);
            *c = p->add ? *c + x : x;
        }
}

static void product_run_turned(const nn_cpu_product *p)
{
    for (int row = 0; row < p->n_rows; row += 4) {
        int rows = row + 4 < p->n_rows ? 4 : p->n_rows - row, o = 0;
        const float *a[4];
        for (int i = 0; i < 4; i++)
            a[i] = p->a[0] + (size_t)(row + (i < rows ? i : 0)) * p->a_ld;
        for (; o + NK_Q <= p->n; o += NK_Q)
            turned_block(p, a, row, rows, o, NK_Q);
        for (; o < p->n; o++)
            turned_block(p, a, row, rows, o, 1);
    }
}

/* The rows from `row` of up to 2 vectors of columns of s C, close together. */
static inline void outer_pack(const nn_cpu_product *p, int part, int row, int rows, int o, int nv, float *to)
{
    for (int i = 0; i < rows; i++, to += 2 * NK_W) {
        const float *c = p->c[part] + (size_t)(row + i) * p->c_ld + o;
        float s = p->scale != NULL ? p->scale[row + i] : 1;
        for (int v = 0; v < nv; v++)
            store(to + v * NK_W, load(c + v * NK_W) * s);
    }
}

/* The first rows start B anew unless it is added to. */
static inline bool outer_fresh(const nn_cpu_product *p, int row) { return row == 0 && !p->add; }

static inline __attribute__((always_inline)) void outer_real(const nn_cpu_product *p, int row, int rows, const float *c, int o,
                                                             int k, const int n, const int nv)
{
    const float *a = p->a[0] + (size_t)row * p->a_ld + k;
    float *d[2] = { p->db + panel_at(p->k, o) + (size_t)k * NN_LANE,
                    p->db + panel_at(p->k, o + (nv - 1) * NK_W) + (size_t)k * NN_LANE };
    vf s[NK_R][2];

    for (int i = 0; i < n; i++)
        for (int v = 0; v < nv; v++)
            s[i][v] = outer_fresh(p, row) ? (vf){ 0 } : load(d[v] + i * NN_LANE);
    for (int r = 0; r < rows; r++, a += p->a_ld, c += 2 * NK_W) {
        vf c0 = load(c), c1 = load(c + (nv - 1) * NK_W);
#pragma GCC unroll 12
        for (int i = 0; i < n; i++) {
            s[i][0] += c0 * a[i];
            if (nv > 1)
                s[i][1] += c1 * a[i];
        }
    }
    for (int i = 0; i < n; i++)
        for (int v = 0; v < nv; v++)
            store(d[v] + i * NN_LANE, s[i][v]);
}

/* Real part: ar cr + ai ci; imaginary part: ar ci - ai cr. */
static inline __attribute__((always_inline)) void outer_complex(const nn_cpu_product *p, int row, int rows, const float *c, int o,
                                                                int k, const int n, const int nv)
{
    const float *a = p->a[0] + (size_t)row * p->a_ld + k, *ai = p->a[1] + (size_t)row * p->a_ld + k;
    size_t imaginary = (size_t)p->k * NN_LANE;
    float *d[2] = { p->db + panel_at(2 * p->k, o) + (size_t)k * NN_LANE,
                    p->db + panel_at(2 * p->k, o + (nv - 1) * NK_W) + (size_t)k * NN_LANE };
    vf s[NK_C][2], t[NK_C][2];

    for (int i = 0; i < n; i++)
        for (int v = 0; v < nv; v++) {
            s[i][v] = outer_fresh(p, row) ? (vf){ 0 } : load(d[v] + i * NN_LANE);
            t[i][v] = outer_fresh(p, row) ? (vf){ 0 } : load(d[v] + imaginary + i * NN_LANE);
        }
    for (int r = 0; r < rows; r++, a += p->a_ld, ai += p->a_ld, c += 2 * NK_W) {
        const float *ci = c + OUTER_ROWS * 2 * NK_W;
#pragma GCC unroll 6
        for (int i = 0; i < n; i++)
            for (int v = 0; v < nv; v++) {
                vf cr = load(c + v * NK_W), cj = load(ci + v * NK_W);
                s[i][v] += cr * a[i];
                s[i][v] += cj * ai[i];
                t[i][v] += cj * a[i];
                t[i][v] -= cr * ai[i];
            }
    }
    for (int i = 0; i < n; i++)
        for (int v = 0; v < nv; v++) {
            store(d[v] + i * NN_LANE, s[i][v]);
            store(d[v] + imaginary + i * NN_LANE, t[i][v]);
        }
}

static inline __attribute__((always_inline)) void outer_columns(const nn_cpu_product *p, int row, int rows, int o, const int nv)
{
    float c[2 * OUTER_ROWS * 2 * NK_W];
    int k = 0;

    outer_pack(p, 0, row, rows, o, nv, c);
    if (p->a[1] != NULL) {
        outer_pack(p, 1, row, rows, o, nv, c + OUTER_ROWS * 2 * NK_W);
        for (; k + NK_C <= p->k; k += NK_C)
            outer_complex(p, row, rows, c, o, k, NK_C, nv);
        for (; k < p->k; k++)
            outer_complex(p, row, rows, c, o, k, 1, nv);
        return;
    }
    for (; k + NK_R <= p->k; k += NK_R)
        outer_real(p, row, rows, c, o, k, NK_R, nv);
    for (; k + 4 <= p->k; k += 4)
        outer_real(p, row, rows, c, o, k, 4, nv);
    for (; k < p->k; k++)
        outer_real(p, row, rows, c, o, k, 1, nv);
}

static void product_outer(const nn_cpu_product *p)
{
    for (int row = 0; row < p->n_rows; row += OUTER_ROWS) {
        int rows = p->n_rows - row < OUTER_ROWS ? p->n_rows - row : OUTER_ROWS, o = 0;
        for (; o + 2 * NK_W <= p->n; o += 2 * NK_W)
            outer_columns(p, row, rows, o, 2);
        for (; o < p->n; o += NK_W)
            outer_columns(p, row, rows, o, 1);
    }
}

static size_t product_packed_size(int32_t k, int32_t n) { return (size_t)k * (size_t)n; }
