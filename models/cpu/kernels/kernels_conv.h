/* models/cpu/kernels/kernels_conv.h - kernels on the pairs of a tile; part of kernels_body.h.
 *
 * NK_W lanes to a vector, NK_R rows to a register block of 2 vectors. */

/* The panel columns j .. j+2W-1 of NK_R rows. */
static inline void radial_block(const nn_cpu_radial *g, const float *w, const float *h, float *r)
{
    vf a[NK_R][2];

    for (int i = 0; i < NK_R; i++)
        a[i][0] = a[i][1] = (vf){ 0 };
    for (int q = 0; q < g->n_k; q++) {
        const float *p = w + g->k[q] * NN_PANEL;
        vf w0 = load(p), w1 = load(p + NK_W);
#pragma GCC unroll 12
        for (int i = 0; i < NK_R; i++) {
            a[i][0] += w0 * h[i * NN_H + q];
            a[i][1] += w1 * h[i * NN_H + q];
        }
    }
#pragma GCC unroll 12
    for (int i = 0; i < NK_R; i++) {
        store(r + (size_t)i * g->r_ld, a[i][0]);
        store(r + (size_t)i * g->r_ld + NK_W, a[i][1]);
    }
}

/* Units from .. to-1 of the next panel. Weights come from the last-level cache or
 * memory, in an order (the active units) that the processor does not guess; asked
 * for a few lines at a time they arrive while the present panel is in use. */
static inline void panel_prefetch(const nn_cpu_radial *g, const float *next, int from, int to)
{
    for (int q = from; q < to && q < g->n_k; q++) {
        __builtin_prefetch(next + g->k[q] * NN_PANEL);
        __builtin_prefetch(next + g->k[q] * NN_PANEL + NN_PANEL / 2);
    }
}

static void radial(const nn_cpu_radial *g)
{
    int blocks = (g->n_rows + NK_R - 1) / NK_R, share = (g->n_k + blocks - 1) / blocks;

    for (int p = 0; p < g->n_panels; p++) {
        const float *w = g->w + (size_t)p * NN_PANEL_FLOATS;
        for (int j = 0; j < NN_PANEL; j += 2 * NK_W)
            for (int i = 0; i < blocks; i++) {
                size_t row = (size_t)i * NK_R;
                if (j == 0)
                    panel_prefetch(g, w + NN_PANEL_FLOATS, i * share, (i + 1) * share);
                radial_block(g, w + j, g->h + row * NN_H, g->r + row * g->r_ld + p * NN_PANEL + j);
            }
    }
}

/* Partial sums of 4 rows times n units (n <= 6), lane by lane; summed over lanes
 * only once a tile, by the caller. */
static inline __attribute__((always_inline)) void dh_block(const nn_cpu_radial *g, int row, int q0, const int n)
{
    vf a[4][6];
    const float *w[6];

    for (int i = 0; i < 4; i++)
        for (int q = 0; q < n; q++)
            a[i][q] = load(g->dh + ((size_t)(row + i) * NN_H + q0 + q) * NN_LANE);
    for (int q = 0; q < n; q++)
        w[q] = g->w + g->k[q0 + q] * NN_PANEL;
    for (int p = 0; p < g->n_panels; p++)
        for (int j = 0; j < NN_PANEL; j += NK_W) {
            const float *r = g->r + (size_t)row * g->r_ld + p * NN_PANEL + j;
            vf r0 = load(r), r1 = load(r + g->r_ld), r2 = load(r + 2 * g->r_ld), r3 = load(r + 3 * g->r_ld);
#pragma GCC unroll 6
            for (int q = 0; q < n; q++) {
                vf v = load(w[q] + (size_t)p * NN_PANEL_FLOATS + j);
                a[0][q] += r0 * v;
                a[1][q] += r1 * v;
                a[2][q] += r2 * v;
                a[3][q] += r3 * v;
            }
        }
    for (int i = 0; i < 4; i++)
        for (int q = 0; q < n; q++)
            store(g->dh + ((size_t)(row + i) * NN_H + q0 + q) * NN_LANE, a[i][q]);
}

static void radial_dh(const nn_cpu_radial *g)
{
    for (int row = 0; row < g->n_rows; row += 4) {
        int q = 0;
        for (; q + NK_Q <= g->n_k; q += NK_Q)
            dh_block(g, row, q, NK_Q);
        for (; q + 2 <= g->n_k; q += 2)
            dh_block(g, row, q, 2);
        for (; q < g->n_k; q++)
            dh_block(g, row, q, 1);
    }
}

static inline __attribute__((always_inline)) void dw_block(const nn_cpu_radial *g, float *dw, const float *r, int q0, const int n)
{
    vf a[NK_R][2];

    for (int q = 0; q < n; q++) {
        a[q][0] = load(dw + g->k[q0 + q] * NN_PANEL);
        a[q][1] = load(dw + g->k[q0 + q] * NN_PANEL + NK_W);
    }
    for (int row = 0; row < g->n_rows; row++) {
        const float *h = g->h + (size_t)row * NN_H + q0;
        vf r0 = load(r + (size_t)row * g->r_ld), r1 = load(r + (size_t)row * g->r_ld + NK_W);
#pragma GCC unroll 12
        for (int q = 0; q < n; q++) {
            a[q][0] += r0 * h[q];
            a[q][1] += r1 * h[q];
        }
    }
    for (int q = 0; q < n; q++) {
        store(dw + g->k[q0 + q] * NN_PANEL, a[q][0]);
        store(dw + g->k[q0 + q] * NN_PANEL + NK_W, a[q][1]);
    }
}

static void radial_dw(const nn_cpu_radial *g)
{
    for (int p = 0; p < g->n_panels; p++) {
        panel_prefetch(g, g->dw + (size_t)(p + 1) * NN_PANEL_FLOATS, 0, g->n_k);
        for (int j = 0; j < NN_PANEL; j += 2 * NK_W) {
            float *dw = g->dw + (size_t)p * NN_PANEL_FLOATS + j;
            const float *r = g->r + p * NN_PANEL + j;
            int q = 0;
            for (; q + NK_R <= g->n_k; q += NK_R)
                dw_block(g, dw, r, q, NK_R);
            for (; q + 4 <= g->n_k; q += 4)
                dw_block(g, dw, r, q, 4);
            for (; q < g->n_k; q++)
                dw_block(g, dw, r, q, 1);
        }
    }
}

/* ---- SO(2) products -------------------------------------------------------- */

static inline __attribute__((always_inline)) void contract_zero(const nn_cpu_block *b, const float *r, const float *x, float *y,
                                                                const int nv)
{
    const float *x0 = x + b->x[0], *x1 = x0 + b->x_ld;
    float *y0 = y + b->y[0], *y1 = y0 + b->y_ld;
    vf a[2][4];

    for (int v = 0; v < nv; v++) {
        a[0][v] = load(y0 + v * NK_W);
        a[1][v] = load(y1 + v * NK_W);
    }
    for (int c = 0; c < b->n_in; c++, r += b->n_out) {
#pragma GCC unroll 4
        for (int v = 0; v < nv; v++) {
            vf w = load(r + v * NK_W);
            a[0][v] += w * x0[c];
            a[1][v] += w * x1[c];
        }
    }
    for (int v = 0; v < nv; v++) {
        store(y0 + v * NK_W, a[0][v]);
        store(y1 + v * NK_W, a[1][v]);
    }
}

static inline __attribute__((always_inline)) void contract_edge(vf *plus, vf *minus, const float *x, const nn_cpu_block *b, int c,
                                                                const vf w[2])
{
    float xp = x[b->x[0] + c], xm = x[b->x[1] + c];

    *plus += w[0] * xp;
    *plus -= w[1] * xm;
    *minus += w[0] * xm;
    *minus += w[1] * xp;
}

static inline __attribute__((always_inline)) void contract_pair(const nn_cpu_block *b, const float *r, const float *x, float *y,
                                                                const int nv)
{
    float *y1 = y + b->y_ld;
    vf a[4][2];

    for (int v = 0; v < nv; v++)
        for (int s = 0; s < 2; s++) {
            a[s][v] = load(y + b->y[s] + v * NK_W);
            a[2 + s][v] = load(y1 + b->y[s] + v * NK_W);
        }
    for (int c = 0; c < b->n_in; c++, r += 2 * b->n_out) {
#pragma GCC unroll 2
        for (int v = 0; v < nv; v++) {
            vf w[2] = { load(r + v * NK_W), load(r + b->n_out + v * NK_W) };
            contract_edge(&a[0][v], &a[1][v], x, b, c, w);
            contract_edge(&a[2][v], &a[3][v], x + b->x_ld, b, c, w);
        }
    }
    for (int v = 0; v < nv; v++)
        for (int s = 0; s < 2; s++) {
            store(y + b->y[s] + v * NK_W, a[s][v]);
            store(y1 + b->y[s] + v * NK_W, a[2 + s][v]);
        }
}

/* Without B: both parts of both edges alike. */
static inline __attribute__((always_inline)) void contract_alike(const nn_cpu_block *b, const float *r, const float *x, float *y,
                                                                 const int nv)
{
    const float *from[4] = { x + b->x[0], x + b->x[1], x + b->x_ld + b->x[0], x + b->x_ld + b->x[1] };
    float *to[4] = { y + b->y[0], y + b->y[1], y + b->y_ld + b->y[0], y + b->y_ld + b->y[1] };
    vf a[4][2];

    for (int v = 0; v < nv; v++)
        for (int s = 0; s < 4; s++)
            a[s][v] = load(to[s] + v * NK_W);
    for (int c = 0; c < b->n_in; c++, r += b->n_out) {
#pragma GCC unroll 2
        for (int v = 0; v < nv; v++) {
            vf w = load(r + v * NK_W);
            a[0][v] += w * from[0][c];
            a[1][v] += w * from[1][c];
            a[2][v] += w * from[2][c];
            a[3][v] += w * from[3][c];
        }
    }
    for (int v = 0; v < nv; v++)
        for (int s = 0; s < 4; s++)
            store(to[s] + v * NK_W, a[s][v]);
}

static inline __attribute__((always_inline)) void contract_columns(const nn_cpu_block *b, const float *r, const float *x, float *y,
                                                                   const int nv)
{
    if (b->n_matrices == 2)
        contract_pair(b, r, x, y, nv);
    else if (b->m)
        contract_alike(b, r, x, y, nv);
    else
        contract_zero(b, r, x, y, nv);
}

static void contract(const nn_cpu_block *b)
{
    for (int t = 0; t < b->n_pairs; t++) {
        const float *r = b->r + (size_t)t * b->r_ld, *x = b->x_edges + 2 * (size_t)t * b->x_ld;
        float *y = b->y_edges + 2 * (size_t)t * b->y_ld;
        int o = 0;
        for (; o + 2 * NK_W <= b->n_out; o += 2 * NK_W)
            contract_columns(b, r + o, x, y + o, 2);
        for (; o < b->n_out; o += NK_W)
            contract_columns(b, r + o, x, y + o, 1);
    }
}

static inline void outer_zero(const nn_cpu_block *b, float *r, const float *x, const float *y)
{
    const float *x0 = x + b->x[0], *x1 = x0 + b->x_ld;
    vf y0 = load(y + b->y[0]), y1 = load(y + b->y_ld + b->y[0]);

    for (int c = 0; c < b->n_in; c++)
        store(r + c * b->n_out, y0 * x0[c] + y1 * x1[c]);
}

/* dA = x+ y+ + x- y-, dB = x+ y- - x- y+, over both edges of the pair. */
static inline void outer_pair(const nn_cpu_block *b, float *r, const float *x, const float *y)
{
    const float *xp = x + b->x[0], *xm = x + b->x[1];
    vf p0 = load(y + b->y[0]), m0 = load(y + b->y[1]);
    vf p1 = load(y + b->y_ld + b->y[0]), m1 = load(y + b->y_ld + b->y[1]);

    for (int c = 0; c < b->n_in; c++, r += 2 * b->n_out) {
        float a0 = xp[c], b0 = xm[c], a1 = xp[b->x_ld + (size_t)c], b1 = xm[b->x_ld + (size_t)c];
        vf da = p0 * a0, db = m0 * a0;
        da += m0 * b0;
        db -= p0 * b0;
        da += p1 * a1;
        db += m1 * a1;
        da += m1 * b1;
        db -= p1 * b1;
        store(r, da);
        store(r + b->n_out, db);
    }
}

static inline void outer_alike(const nn_cpu_block *b, float *r, const float *x, const float *y)
{
    const float *xp = x + b->x[0], *xm = x + b->x[1];
    vf p0 = load(y + b->y[0]), m0 = load(y + b->y[1]);
    vf p1 = load(y + b->y_ld + b->y[0]), m1 = load(y + b->y_ld + b->y[1]);

    for (int c = 0; c < b->n_in; c++, r += b->n_out) {
        vf da = p0 * xp[c];
        da += m0 * xm[c];
        da += p1 * xp[b->x_ld + (size_t)c];
        da += m1 * xm[b->x_ld + (size_t)c];
        store(r, da);
    }
}

static void outer(const nn_cpu_block *b)
{
    for (int t = 0; t < b->n_pairs; t++) {
        float *r = b->r + (size_t)t * b->r_ld;
        const float *x = b->x_edges + 2 * (size_t)t * b->x_ld;
        const float *y = b->y_edges + 2 * (size_t)t * b->y_ld;
        for (int o = 0; o < b->n_out; o += NK_W) {
            if (b->n_matrices == 2)
                outer_pair(b, r + o, x, y + o);
            else if (b->m)
                outer_alike(b, r + o, x, y + o);
            else
                outer_zero(b, r + o, x, y + o);
        }
    }
}

/* ---- rotation of one feature vector ----------------------------------------- */

static inline __attribute__((always_inline)) void rotate_degree(const float *d, int row, int col, const int dim, int pad,
                                                                const float *x, float *y)
{
    for (int k = 0; k < pad; k += NK_W) {
        vf v[2 * NN_MAX_DEGREE + 1];
        for (int j = 0; j < dim; j++)
            v[j] = load(x + j * pad + k);
        for (int i = 0; i < dim; i++) {
            vf s = v[0] * d[i * row];
            for (int j = 1; j < dim; j++)
                s += v[j] * d[i * row + j * col];
            store(y + i * pad + k, s);
        }
    }
}

/* y = D x, or D^T x: degree by degree, out of place. */
static void rotate(const float *d, const nn_cpu_layout *f, const float *x, float *y, bool transposed)
{
    const float *at[NN_DEGREES] = { d, d, d + 9, d + 34, d + 83 };

    for (int k = 0; k < f->pad[0]; k += NK_W)
        store(y + k, load(x + k));
    for (int l = 1; l < f->n_degrees; l++) {
        int n = 2 * l + 1, row = transposed ? 1 : n, col = transposed ? n : 1;
        const float *from = x + f->at[l];
        float *to = y + f->at[l];
        if (l == 1)
            rotate_degree(at[1], row, col, 3, f->pad[1], from, to);
        else if (l == 2)
            rotate_degree(at[2], row, col, 5, f->pad[2], from, to);
        else if (l == 3)
            rotate_degree(at[3], row, col, 7, f->pad[3], from, to);
        else
            rotate_degree(at[4], row, col, 9, f->pad[4], from, to);
    }
}

/* ---- the same, to and from the order of nn_cpu_edge_layout ---------------------- */

/* Components l-m .. l+m of D^T x. */
static inline __attribute__((always_inline)) void degree_to_frame(const float *d, const int32_t *to, const int l, const int m,
                                                                  int pad, const float *x, float *y)
{
    const int dim = 2 * l + 1;

    for (int k = 0; k < pad; k += NK_W) {
        vf v[2 * NN_MAX_DEGREE + 1];
        for (int j = 0; j < dim; j++)
            v[j] = load(x + j * pad + k);
        for (int i = l - m; i <= l + m; i++) {
            vf s = v[0] * d[i];
            for (int j = 1; j < dim; j++)
                s += v[j] * d[i + j * dim];
            store(y + to[i] + k, s);
        }
    }
}

/* D x, of components l-m .. l+m; the others are zero. */
static inline __attribute__((always_inline)) void degree_from_frame(const float *d, const int32_t *to, const int l, const int m,
                                                                    int pad, const float *x, float *y)
{
    const int dim = 2 * l + 1;

    for (int k = 0; k < pad; k += NK_W) {
        vf v[2 * NN_MAX_DEGREE + 1];
        for (int j = l - m; j <= l + m; j++)
            v[j] = load(x + to[j] + k);
        for (int i = 0; i < dim; i++) {
            vf s = v[l - m] * d[i * dim + l - m];
            for (int j = l - m + 1; j <= l + m; j++)
                s += v[j] * d[i * dim + j];
            store(y + i * pad + k, s);
        }
    }
}

/* m orders (a constant in the usual cases: all of the degree, or only 0). */
static inline __attribute__((always_inline)) void turn_degree(const float *d, const nn_cpu_edge_layout *f, const int l, int m,
                                                              bool to_frame, const float *x, float *y)
{
    static const int at[NN_DEGREES] = { 0, 0, 9, 34, 83 };

    if (to_frame)
        degree_to_frame(d + at[l], f->to[l], l, m, f->pad[l], x + f->at[l], y);
    else
        degree_from_frame(d + at[l], f->to[l], l, m, f->pad[l], x, y + f->at[l]);
}

static inline __attribute__((always_inline)) void turn_degrees(const float *d, const nn_cpu_edge_layout *f, bool to_frame,
                                                               const float *x, float *y)
{
    for (int k = 0; k < f->pad[0]; k += NK_W)
        store(y + k, load(x + k));
    if (f->m_max == 0) {
        for (int l = 1; l < f->n_degrees; l++)
            turn_degree(d, f, l, 0, to_frame, x, y);
        return;
    }
    turn_degree(d, f, 1, 1, to_frame, x, y);
    if (f->n_degrees > 2 && f->m_max >= 2)
        turn_degree(d, f, 2, 2, to_frame, x, y);
    if (f->n_degrees > 3 && f->m_max >= 3)
        turn_degree(d, f, 3, 3, to_frame, x, y);
    for (int l = f->m_max + 1; l < f->n_degrees; l++) /* fewer orders than the degree has */
        turn_degree(d, f, l, f->m_max, to_frame, x, y);
    if (f->m_max == 4)
        turn_degree(d, f, 4, 4, to_frame, x, y);
}

static void to_frame(const float *d, const nn_cpu_edge_layout *f, const float *x, float *y) { turn_degrees(d, f, true, x, y); }

static void from_frame(const float *d, const nn_cpu_edge_layout *f, const float *x, float *y) { turn_degrees(d, f, false, x, y); }
