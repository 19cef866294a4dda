/* models/cpu/kernels/kernels_node.h - kernels on nodes and small networks; part of kernels_body.h. */

/* ---- linear layers ----------------------------------------------------------- */

static inline __attribute__((always_inline)) void gemm_block(const nn_cpu_gemm *g, int row, int o, const int n, const int nv)
{
    vf s[NK_R][2];

    for (int i = 0; i < n; i++)
        for (int v = 0; v < nv; v++)
            s[i][v] = g->add ? load(g->c[row + i] + o + v * NK_W) : (vf){ 0 };
    for (int k = 0; k < g->n_in; k++) {
        const float *p = g->w + (size_t)k * (size_t)g->n_out + o;
        vf w0 = load(p), w1 = load(p + (nv - 1) * NK_W);
#pragma GCC unroll 12
        for (int i = 0; i < n; i++) {
            float x = g->a[row + i][k];
            s[i][0] += w0 * x;
            if (nv > 1)
                s[i][1] += w1 * x;
        }
    }
    for (int i = 0; i < n; i++)
        for (int v = 0; v < nv; v++)
            store(g->c[row + i] + o + v * NK_W, s[i][v]);
}

static inline __attribute__((always_inline)) void gemm_rows(const nn_cpu_gemm *g, int row, const int n)
{
    int o = 0;

    for (; o + 2 * NK_W <= g->n_out; o += 2 * NK_W)
        gemm_block(g, row, o, n, 2);
    for (; o < g->n_out; o += NK_W)
        gemm_block(g, row, o, n, 1);
}

static void gemm(const nn_cpu_gemm *g)
{
    int row = 0;

    for (; row + NK_R <= g->n_rows; row += NK_R)
        gemm_rows(g, row, NK_R);
    for (; row + 4 <= g->n_rows; row += 4)
        gemm_rows(g, row, 4);
    for (; row < g->n_rows; row++)
        gemm_rows(g, row, 1);
}

static inline __attribute__((always_inline)) void gemm_tn_block(const nn_cpu_gemm *g, const float *const *b, float *dw, int k,
                                                                const int n)
{
    for (int o = 0; o < g->n_out; o += NK_W) {
        vf s[4];
        for (int i = 0; i < n; i++)
            s[i] = load(dw + (size_t)(k + i) * (size_t)g->n_out + o);
        for (int row = 0; row < g->n_rows; row++) {
            vf v = load(b[row] + o);
#pragma GCC unroll 4
            for (int i = 0; i < n; i++)
                s[i] += v * g->a[row][k + i];
        }
        for (int i = 0; i < n; i++)
            store(dw + (size_t)(k + i) * (size_t)g->n_out + o, s[i]);
    }
}

static void gemm_tn(const nn_cpu_gemm *g, const float *const *b, float *dw)
{
    int k = 0;

    for (; k + 4 <= g->n_in; k += 4)
        gemm_tn_block(g, b, dw, k, 4);
    for (; k < g->n_in; k++)
        gemm_tn_block(g, b, dw, k, 1);
}

/* n a multiple of NN_LANE. */
static void add(size_t n, const float *x, float *y)
{
    for (size_t i = 0; i < n; i += NK_W)
        store(y + i, load(y + i) + load(x + i));
}

/* A fixed tree over the lanes. */
static inline float lanes_sum(vf v)
{
    float t[NK_W];

    store(t, v);
    for (int half = NK_W / 2; half; half /= 2)
        for (int i = 0; i < half; i++)
            t[i] += t[i + half];
    return t[0];
}

static inline float sum_of(const float *x, int n)
{
    vf s = { 0 };

    for (int k = 0; k < n; k += NK_W)
        s += load(x + k);
    return lanes_sum(s);
}

static inline float dot_of(const float *x, const float *y, int n)
{
    vf s = { 0 };

    for (int k = 0; k < n; k += NK_W)
        s += load(x + k) * load(y + k);
    return lanes_sum(s);
}

/* ---- radial network, docs/model.md 3.1 ----------------------------------------- */

typedef struct stage_state {
    float hat[NN_H], out[NN_H], rstd;
} stage_state;

/* LayerNorm (if any) and ReLU of t. */
static void stage_close(const float *t, bool ln, const float *gain, const float *bias, stage_state *s)
{
    float mean;

    if (!ln) {
        for (int k = 0; k < NN_H; k++)
            s->out[k] = t[k] > 0 ? t[k] : 0;
        return;
    }
    mean = sum_of(t, NN_H) / NN_H;
    for (int k = 0; k < NN_H; k++)
        s->hat[k] = t[k] - mean;
    s->rstd = 1 / sqrtf(dot_of(s->hat, s->hat, NN_H) / NN_H + 1e-5f);
    for (int k = 0; k < NN_H; k++) {
        float u;
        s->hat[k] *= s->rstd;
        u = s->hat[k] * gain[k] + bias[k];
        s->out[k] = u > 0 ? u : 0;
    }
}

static void dense(int n_in, const float *w, const float *b, const float *x, float *t)
{
    memcpy(t, b, NN_H * sizeof *t);
    for (int i = 0; i < n_in; i++)
        for (int k = 0; k < NN_H; k++)
            t[k] += w[i * NN_H + k] * x[i];
}

static void hidden_run(const nn_cpu_hidden *w, const float *s, stage_state st[2])
{
    float t[NN_H];

    dense(w->n_in, w->w0, w->b0, s, t);
    stage_close(t, w->ln, w->g0, w->c0, &st[0]);
    dense(NN_H, w->w1, w->b1, st[0].out, t);
    stage_close(t, w->ln, w->g1, w->c1, &st[1]);
}

static void hidden(const nn_cpu_hidden *w, const float *s, float *h)
{
    stage_state st[2];

    hidden_run(w, s, st);
    memcpy(h, st[1].out, sizeof st[1].out);
}

/* In: gradient of out; result: gradient of t, in place; gain and bias are added to. */
static void stage_back(const stage_state *s, bool ln, const float *gain, float *dgain, float *dbias, float *d)
{
    float mean, dot;

    for (int k = 0; k < NN_H; k++)
        d[k] = s->out[k] > 0 ? d[k] : 0;
    if (!ln)
        return;
    for (int k = 0; k < NN_H; k++) {
        dbias[k] += d[k];
        dgain[k] += d[k] * s->hat[k];
        d[k] *= gain[k];
    }
    mean = sum_of(d, NN_H) / NN_H;
    dot = dot_of(d, s->hat, NN_H) / NN_H;
    for (int k = 0; k < NN_H; k++)
        d[k] = s->rstd * (d[k] - mean - s->hat[k] * dot);
}

static void dense_back(int n_in, const float *x, const float *d, float *dw, float *db)
{
    for (int k = 0; k < NN_H; k++)
        db[k] += d[k];
    for (int i = 0; i < n_in; i++)
        for (int k = 0; k < NN_H; k++)
            dw[i * NN_H + k] += x[i] * d[k];
}

static void hidden_back(const nn_cpu_hidden *w, const float *s, const float *dh, const nn_cpu_hidden *grad)
{
    stage_state st[2];
    float d[NN_H], below[NN_H] = { 0 };

    hidden_run(w, s, st);
    memcpy(d, dh, sizeof d);
    stage_back(&st[1], w->ln, w->g1, grad->g1, grad->c1, d);
    dense_back(NN_H, st[0].out, d, grad->w1, grad->b1);
    for (int k = 0; k < NN_H; k++)
        for (int i = 0; i < NN_H; i++)
            below[i] += w->wt1[k * NN_H + i] * d[k];
    stage_back(&st[0], w->ln, w->g0, grad->g0, grad->c0, below);
    dense_back(w->n_in, s, below, grad->w0, grad->b0);
}

/* ---- attention into one node, docs/model.md 4 ----------------------------------- */

/* s[channel] = sum over the head that owns the channel, for every channel of it. */
static void heads_sum(int n_heads, int ch, float *s)
{
    int width = ch / n_heads;

    for (int h = 0; h < n_heads; h++) {
        float sum = 0;
        for (int k = h * width; k < (h + 1) * width; k++)
            sum += s[k];
        for (int k = h * width; k < (h + 1) * width; k++)
            s[k] = sum;
    }
}

/* out[channel] = sum over components of u . v, per head; u at `shift` inside y. */
static void heads_dot(const nn_cpu_attend *a, const float *y, const float *q, bool keys, float *out)
{
    const nn_cpu_layout *kv = a->kv, *z = a->z;
    int pad = z->pad[0];

    for (int k = 0; k < pad; k += NK_W) {
        vf s = { 0 };
        for (int l = 0; l < z->n_degrees; l++) {
            const float *from = y + kv->at[l] + (keys ? kv->half[l] : 0) + k;
            if (keys && !kv->half[l])
                continue;
            for (int c = 0; c < 2 * l + 1; c++)
                s += load(from + c * kv->pad[l]) * load(q + z->at[l] + c * pad + k);
        }
        store(out + k, s);
    }
    heads_sum(a->n_heads, z->ch[0], out);
}

/* alpha = softmax of the logits over the edges: they are scaled, and the log of the envelope is added. All channels of a head hold
 * the same logit: the first is worked on and copied to the others. */
static void softmax_head(const nn_cpu_attend *a, int first, int width)
{
    float top = -INFINITY, sum = 0, scale = a->log_envelope != NULL ? 1 : a->scale;
    int pad = a->z->pad[0];

    for (int e = 0; a->log_envelope != NULL && e < a->n_edges; e++)
        a->alpha[e * pad + first] = a->alpha[e * pad + first] * a->scale + a->log_envelope[a->edge[e]];
    for (int e = 0; e < a->n_edges; e++) {
        float s = a->alpha[e * pad + first] * scale;
        top = s > top ? s : top;
    }
    for (int e = 0; e < a->n_edges; e++)
        sum += a->alpha[e * pad + first] = expf(a->alpha[e * pad + first] * scale - top);
    for (int e = 0; e < a->n_edges; e++) {
        float s = a->alpha[e * pad + first] / sum;
        for (int k = first; k < first + width; k++)
            a->alpha[e * pad + k] = s;
    }
}

/* One edge has weight 1 whatever its key: half of all atoms have one neighbour. */
static void weights_fill(const nn_cpu_attend *a)
{
    int pad = a->z->pad[0], width = a->z->ch[0] / a->n_heads;

    if (a->n_edges == 1) {
        for (int k = 0; k < pad; k++)
            a->alpha[k] = 1;
        return;
    }
    for (int e = 0; e < a->n_edges; e++)
        heads_dot(a, a->y + (size_t)a->edge[e] * (size_t)a->kv->size, a->q, true, a->alpha + e * pad);
    for (int h = 0; h < a->n_heads; h++)
        softmax_head(a, h * width, width);
}

static void values_add(const nn_cpu_attend *a, const float *y, const float *alpha)
{
    const nn_cpu_layout *kv = a->kv, *z = a->z;
    int pad = z->pad[0];

    for (int l = 0; l < z->n_degrees; l++)
        for (int c = 0; c < 2 * l + 1; c++)
            for (int k = 0; k < pad; k += NK_W) {
                float *out = a->out + z->at[l] + c * pad + k;
                store(out, load(out) + load(alpha + k) * load(y + kv->at[l] + c * kv->pad[l] + k));
            }
}

static void attend(const nn_cpu_attend *a)
{
    int pad = a->z->pad[0];

    memset(a->out, 0, (size_t)a->z->size * sizeof *a->out);
    weights_fill(a);
    for (int e = 0; e < a->n_edges; e++)
        values_add(a, a->y + (size_t)a->edge[e] * (size_t)a->kv->size, a->alpha + e * pad);
}

/* dy of one edge from its weight and the gradient of its logit; adds to dq. */
static void edge_back(const nn_cpu_attend *a, const float *y, float *dy, const float *alpha, const float *ds)
{
    const nn_cpu_layout *kv = a->kv, *z = a->z;
    int pad = z->pad[0];

    for (int l = 0; l < z->n_degrees; l++)
        for (int c = 0; c < 2 * l + 1; c++)
            for (int k = 0; k < pad; k += NK_W) {
                size_t i = (size_t)(kv->at[l] + c * kv->pad[l] + k), j = (size_t)(z->at[l] + c * pad + k);
                store(dy + i, load(alpha + k) * load(a->dout + j));
                if (!kv->half[l])
                    continue;
                store(dy + i + kv->half[l], load(ds + k) * load(a->q + j));
                store(a->dq + j, load(a->dq + j) + load(ds + k) * load(y + i + kv->half[l]));
            }
}

static void attend_back(const nn_cpu_attend *a)
{
    int pad = a->z->pad[0];

    memset(a->dq, 0, (size_t)a->z->size * sizeof *a->dq);
    for (int e = 0; e < a->n_edges && a->n_edges > 1; e++)
        heads_dot(a, a->y + (size_t)a->edge[e] * (size_t)a->kv->size, a->dout, false, a->dalpha + e * pad);
    for (int k = 0; k < pad && a->n_edges == 1; k++)
        a->dalpha[k] = 0;
    for (int k = 0; k < pad && a->n_edges > 1; k++) {
        float mean = 0;
        for (int e = 0; e < a->n_edges; e++)
            mean += a->alpha[e * pad + k] * a->dalpha[e * pad + k];
        for (int e = 0; e < a->n_edges; e++)
            a->dalpha[e * pad + k] = a->alpha[e * pad + k] * (a->dalpha[e * pad + k] - mean) * a->scale;
    }
    for (int e = 0; e < a->n_edges; e++)
        edge_back(a, a->y + (size_t)a->edge[e] * (size_t)a->kv->size, a->dy + (size_t)a->edge[e] * a->dy_ld, a->alpha + e * pad,
                  a->dalpha + e * pad);
}

/* ---- NormSE3, docs/model.md 5.1 --------------------------------------------------- */

static const float min_norm = 0x1p-24f;

enum { NORM_MAX = 1024 }; /* channels, by nn_se3_check */

typedef struct norm_state {
    float rstd;
    float size[NORM_MAX], hat[NORM_MAX]; /* norms; normalised norms */
} norm_state;

/* The norms of all channels. */
static inline void norm_sizes(const nn_cpu_norm *n, const float *x, float *size)
{
    int pad = n->pad;

    for (int k = 0; k < pad; k += NK_W) {
        vf sum = { 0 };
        for (int c = 0; c < n->dim; c++)
            sum += load(x + c * pad + k) * load(x + c * pad + k);
        store(size + k, sum);
    }
    for (int k = 0; k < pad; k++) {
        float s = sqrtf(size[k]);
        size[k] = s > min_norm ? s : min_norm;
    }
}

/* x where u is above 0, else 0. */
static inline vf positive(vf u, vf x) { return (vf)((u > 0) & (vi)x); }

/* Padding channels take no part in mean and variance. */
static void norm_run(const nn_cpu_norm *n, const float *x, norm_state *s)
{
    float mean;

    norm_sizes(n, x, s->size);
    for (int k = n->ch; k < n->pad; k++)
        s->size[k] = 0;
    mean = sum_of(s->size, n->pad) / (float)n->ch;
    for (int k = 0; k < n->pad; k++)
        s->hat[k] = s->size[k] - mean;
    for (int k = n->ch; k < n->pad; k++) {
        s->size[k] = 1;
        s->hat[k] = 0;
    }
    s->rstd = 1 / sqrtf(dot_of(s->hat, s->hat, n->pad) / (float)n->ch + 1e-5f);
    for (int k = 0; k < n->pad; k++)
        s->hat[k] *= s->rstd;
}

static void norm(const nn_cpu_norm *n)
{
    norm_state s;

    for (int i = 0; i < n->n_nodes; i++) {
        const float *x = n->x + (size_t)i * n->ld;
        float *y = n->y + (size_t)i * n->ld;
        norm_run(n, x, &s);
        for (int k = 0; k < n->pad; k += NK_W) {
            vf u = load(n->gain + k) * load(s.hat + k) + load(n->bias + k);
            vf factor = positive(u, u / load(s.size + k));
            for (int c = 0; c < n->dim; c++)
                store(y + c * n->pad + k, load(x + c * n->pad + k) * factor);
        }
    }
}

typedef struct norm_grad {
    float q[NORM_MAX], factor[NORM_MAX], dhat[NORM_MAX];
} norm_grad;

/* Channels from k: q = dy . x, the gradient of the normalised norms, of gain and bias. */
static inline void norm_back_lanes(const nn_cpu_norm *n, const norm_state *s, const float *x, const float *dy, int k, norm_grad *g)
{
    vf q = { 0 }, hat = load(s->hat + k), size = load(s->size + k), gain = load(n->gain + k);
    vf u = gain * hat + load(n->bias + k), ds;

    for (int c = 0; c < n->dim; c++)
        q += load(dy + c * n->pad + k) * load(x + c * n->pad + k);
    ds = positive(u, q / size);
    store(g->q + k, q);
    store(g->factor + k, positive(u, u / size));
    store(g->dhat + k, gain * ds);
    store(n->dbias + k, load(n->dbias + k) + ds);
    store(n->dgain + k, load(n->dgain + k) + ds * hat);
}

static void norm_back_node(const nn_cpu_norm *n, const norm_state *s, const float *x, const float *dy, float *dx)
{
    norm_grad g;
    float mean, dot;

    for (int k = 0; k < n->pad; k += NK_W)
        norm_back_lanes(n, s, x, dy, k, &g);
    mean = sum_of(g.dhat, n->pad) / (float)n->ch; /* zero where padded: the gain is */
    dot = dot_of(g.dhat, s->hat, n->pad) / (float)n->ch;
    for (int k = 0; k < n->pad; k += NK_W) {
        vf size = load(s->size + k), factor = load(g.factor + k);
        vf dn = s->rstd * (load(g.dhat + k) - mean - load(s->hat + k) * dot) - load(g.q + k) * factor / size;
        vf along = positive(size - min_norm, dn / size);
        for (int c = 0; c < n->dim; c++) {
            size_t i = (size_t)(c * n->pad + k);
            store(dx + i, load(dy + i) * factor + along * load(x + i));
        }
    }
}

static void norm_back(const nn_cpu_norm *n)
{
    norm_state s;

    for (int i = 0; i < n->n_nodes; i++) {
        const float *x = n->x + (size_t)i * n->ld;
        norm_run(n, x, &s);
        norm_back_node(n, &s, x, n->dy + (size_t)i * n->ld, n->dx + (size_t)i * n->ld);
    }
}
