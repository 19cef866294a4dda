/* chem/structures/kernels_linear.h - sums over vectors, triangle smoothing, Cholesky of 3 x 3 blocks. */

static double dot(const float *a, const float *b, int32_t n)
{
    sums sum = { 0 };

    for (int32_t i = 0; i < n; i += SK_W) {
        const sums x = widen(load(a + i)), y = widen(load(b + i));
        sum.low += x.low * y.low;
        sum.high += x.high * y.high;
    }
    return total(&sum);
}

static void add(float *y, float s, const float *x, int32_t n)
{
    for (int32_t i = 0; i < n; i += SK_W)
        store(y + i, load(y + i) + s * load(x + i));
}

static void step(float *y, const float *x, float s, const float *d, int32_t n)
{
    for (int32_t i = 0; i < n; i += SK_W)
        store(y + i, load(x + i) + s * load(d + i));
}

static void times(float *y, const float *m, const float *x, int32_t n, int32_t stride)
{
    for (int32_t i = 0; i < n; i++) {
        float out[4] __attribute__((aligned(16))) = { 0 };
        vf a = { 0 }, b = { 0 }, c = { 0 }, d = { 0 };
        for (int32_t j = 0; j < stride; j += SK_W) {
            const vf v = load(m + (size_t)i * stride + j);
            a += v * load(x + j);
            b += v * load(x + stride + j);
            c += v * load(x + 2 * stride + j);
            d += v * load(x + 3 * stride + j);
        }
        add_sums(out, a, b, c, d);
        for (int k = 0; k < 4; k++)
            y[k * stride + i] = out[k];
    }
}

/* Floyd's order: a path over the atoms before k is known when k's turn comes. */
static void smooth(float *upper, float *lower, int32_t n, int32_t stride)
{
    for (int32_t k = 0; k < n; k++) {
        const float *uk = upper + (size_t)k * stride, *lk = lower + (size_t)k * stride;
        for (int32_t i = 0; i < n; i++) {
            float *u = upper + (size_t)i * stride, *l = lower + (size_t)i * stride;
            const vf ui = all(u[k]), li = all(l[k]);
            if (i == k)
                continue;
            for (int32_t j = 0; j < stride; j += SK_W) {
                const vf kj = load(uk + j);
                store(u + j, min(load(u + j), ui + kj));
                store(l + j, max(load(l + j), max(li - kj, load(lk + j) - ui)));
            }
        }
        for (int32_t i = 0; i < n; i++)
            upper[(size_t)i * stride + i] = lower[(size_t)i * stride + i] = 0;
    }
}

/* Rows 3 k to 3 k + 2 of the matrix become those of the factor U, where A = U^T U. d: the block on the diagonal, row after row. */
static void factor_rows(const ch_block_matrix *m, int32_t k, int32_t end)
{
    float *r0 = m->data + m->row[3 * k], *r1 = m->data + m->row[3 * k + 1], *r2 = m->data + m->row[3 * k + 2];
    float *d = m->diagonal + 6 * (size_t)k;
    const int32_t j0 = 3 * k;

    d[0] = 1 / sqrtf(fmaxf(r0[j0], 1e-3f)), d[1] = r0[j0 + 1] * d[0], d[2] = r0[j0 + 2] * d[0];
    d[3] = 1 / sqrtf(fmaxf(r1[j0 + 1] - d[1] * d[1], 1e-3f)), d[4] = (r1[j0 + 2] - d[1] * d[2]) * d[3];
    d[5] = 1 / sqrtf(fmaxf(r2[j0 + 2] - d[2] * d[2] - d[4] * d[4], 1e-3f));
    for (int32_t j = j0 / SK_W * SK_W; j < j0 + 3; j++)
        r0[j] = r1[j] = r2[j] = 0; /* whole vectors may be used below, though they begin before the block's end */
    for (int32_t j = j0 / SK_W * SK_W; j < end; j += SK_W) {
        const vf a = load(r0 + j) * d[0], b = (load(r1 + j) - d[1] * a) * d[3];
        store(r0 + j, a);
        store(r1 + j, b);
        store(r2 + j, (load(r2 + j) - d[2] * a - d[4] * b) * d[5]);
    }
}

static void factor(const ch_block_matrix *m)
{
    for (int32_t k = 0; k < m->n; k++) {
        const int32_t end = 3 * (m->last[k] + 1);
        const float *r0 = m->data + m->row[3 * k], *r1 = m->data + m->row[3 * k + 1], *r2 = m->data + m->row[3 * k + 2];
        factor_rows(m, k, end);
        for (int32_t i = 3 * k + 3; i < end; i += 3) {
            float *q0 = m->data + m->row[i], *q1 = m->data + m->row[i + 1], *q2 = m->data + m->row[i + 2];
            for (int32_t j = i / SK_W * SK_W; j < end; j += SK_W) {
                const vf a = load(r0 + j), b = load(r1 + j), c = load(r2 + j);
                store(q0 + j, load(q0 + j) - (r0[i] * a + r1[i] * b + r2[i] * c));
                store(q1 + j, load(q1 + j) - (r0[i + 1] * a + r1[i + 1] * b + r2[i + 1] * c));
                store(q2 + j, load(q2 + j) - (r0[i + 2] * a + r1[i + 2] * b + r2[i + 2] * c));
            }
        }
    }
}

static void solve(const ch_block_matrix *m, float *b)
{
    for (int32_t k = 0; k < m->n; k++) {
        const float *r0 = m->data + m->row[3 * k], *r1 = m->data + m->row[3 * k + 1], *r2 = m->data + m->row[3 * k + 2];
        const float *d = m->diagonal + 6 * (size_t)k;
        const float x = b[3 * k] * d[0], y = (b[3 * k + 1] - d[1] * x) * d[3], z = (b[3 * k + 2] - d[2] * x - d[4] * y) * d[5];
        for (int32_t j = 3 * k / SK_W * SK_W; j < 3 * (m->last[k] + 1); j += SK_W)
            store(b + j, load(b + j) - (x * load(r0 + j) + y * load(r1 + j) + z * load(r2 + j)));
        b[3 * k] = x, b[3 * k + 1] = y, b[3 * k + 2] = z;
    }
    for (int32_t k = m->n - 1; k >= 0; k--) {
        const float *r0 = m->data + m->row[3 * k], *r1 = m->data + m->row[3 * k + 1], *r2 = m->data + m->row[3 * k + 2];
        const float *d = m->diagonal + 6 * (size_t)k;
        float s[4] __attribute__((aligned(16))) = { 0 }, *x = b + 3 * (size_t)k;
        vf a0 = { 0 }, a1 = { 0 }, a2 = { 0 };
        for (int32_t j = 3 * k / SK_W * SK_W; j < 3 * (m->last[k] + 1); j += SK_W) {
            const vf v = load(b + j);
            a0 += load(r0 + j) * v, a1 += load(r1 + j) * v, a2 += load(r2 + j) * v;
        }
        add_sums(s, a0, a1, a2, all(0));
        x[2] = (x[2] - s[2]) * d[5];
        x[1] = (x[1] - s[1] - d[4] * x[2]) * d[3];
        x[0] = (x[0] - s[0] - d[1] * x[1] - d[2] * x[2]) * d[0];
    }
}
