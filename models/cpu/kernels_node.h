/* models/cpu/kernels_node.h - kernels on nodes and small networks; part of kernels_body.h. */

/* ---- linear layers ----------------------------------------------------------- */

static inline __attribute__((always_inline)) void gemm_block(const nn_cpu_gemm *g, int row, int o, const int n)
{
    vf s[4];

    for (int i = 0; i < n; i++)
        s[i] = g->add ? load(g->c[row + i] + o) : (vf){ 0 };
    for (int k = 0; k < g->n_in; k++) {
        vf w = load(g->w + (size_t)k * (size_t)g->n_out + o);
#pragma GCC unroll 4
        for (int i = 0; i < n; i++)
            s[i] += w * g->a[row + i][k];
    }
    for (int i = 0; i < n; i++)
        store(g->c[row + i] + o, s[i]);
}

static void gemm(const nn_cpu_gemm *g)
{
    int row = 0;

    for (; row + 4 <= g->n_rows; row += 4)
        for (int o = 0; o < g->n_out; o += NK_W)
            gemm_block(g, row, o, 4);
    for (; row < g->n_rows; row++)
        for (int o = 0; o < g->n_out; o += NK_W)
            gemm_block(g, row, o, 1);
}

static inline __attribute__((always_inline)) void
gemm_tn_block(const nn_cpu_gemm *g, const float *const *b, float *dw, int k, const int n)
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

static void add(size_t n, const float *x, float *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] += x[i];
}

/* ---- radial network, spec 3.1 -------------------------------------------------- */

typedef struct stage_state {
    float hat[NN_H], out[NN_H], rstd;
} stage_state;

/* LayerNorm (if any) and ReLU of t. */
static void stage_close(const float *t, bool ln, const float *gain, const float *bias, stage_state *s)
{
    float mean = 0, var = 0;

    if (!ln) {
        for (int k = 0; k < NN_H; k++)
            s->out[k] = t[k] > 0 ? t[k] : 0;
        return;
    }
    for (int k = 0; k < NN_H; k++)
        mean += t[k];
    mean /= NN_H;
    for (int k = 0; k < NN_H; k++)
        var += (t[k] - mean) * (t[k] - mean);
    s->rstd = 1 / sqrtf(var / NN_H + 1e-5f);
    for (int k = 0; k < NN_H; k++) {
        float u;
        s->hat[k] = (t[k] - mean) * s->rstd;
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
    float mean = 0, dot = 0;

    for (int k = 0; k < NN_H; k++)
        d[k] = s->out[k] > 0 ? d[k] : 0;
    if (!ln)
        return;
    for (int k = 0; k < NN_H; k++) {
        dbias[k] += d[k];
        dgain[k] += d[k] * s->hat[k];
        d[k] *= gain[k];
        mean += d[k];
        dot += d[k] * s->hat[k];
    }
    mean /= NN_H;
    dot /= NN_H;
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

/* ---- attention into one node, spec 4 -------------------------------------------- */

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

/* alpha = softmax of the logits over the edges, channel by channel. */
static void softmax(const nn_cpu_attend *a)
{
    int pad = a->z->pad[0];

    for (int k = 0; k < a->z->ch[0]; k++) {
        float top = -INFINITY, sum = 0;
        for (int e = 0; e < a->n_edges; e++)
            top = a->alpha[e * pad + k] > top ? a->alpha[e * pad + k] : top;
        for (int e = 0; e < a->n_edges; e++)
            sum += a->alpha[e * pad + k] = expf(a->alpha[e * pad + k] - top);
        for (int e = 0; e < a->n_edges; e++)
            a->alpha[e * pad + k] /= sum;
    }
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
    for (int e = 0; e < a->n_edges; e++) {
        float *alpha = a->alpha + e * pad;
        heads_dot(a, a->y + (size_t)a->edge[e] * (size_t)a->kv->size, a->q, true, alpha);
        for (int k = 0; k < pad; k++)
            alpha[k] *= a->scale;
    }
    softmax(a);
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
    for (int e = 0; e < a->n_edges; e++)
        heads_dot(a, a->y + (size_t)a->edge[e] * (size_t)a->kv->size, a->dout, false, a->dalpha + e * pad);
    for (int k = 0; k < pad; k++) {
        float mean = 0;
        for (int e = 0; e < a->n_edges; e++)
            mean += a->alpha[e * pad + k] * a->dalpha[e * pad + k];
        for (int e = 0; e < a->n_edges; e++)
            a->dalpha[e * pad + k] = a->alpha[e * pad + k] * (a->dalpha[e * pad + k] - mean) * a->scale;
    }
    for (int e = 0; e < a->n_edges; e++)
        edge_back(a, a->y + (size_t)a->edge[e] * (size_t)a->kv->size, a->dy + (size_t)a->edge[e] * a->dy_ld,
                  a->alpha + e * pad, a->dalpha + e * pad);
}

/* ---- NormSE3, spec 5.1 ------------------------------------------------------------ */

static const float least_norm = 0x1p-24f;

typedef struct norm_state {
    float rstd;
    float *size, *hat; /* [pad] each: norms; normalised norms */
} norm_state;

static void norm_run(const nn_cpu_norm *n, const float *x, norm_state *s)
{
    float mean = 0, var = 0;

    memset(s->size, 0, (size_t)n->pad * sizeof *s->size);
    for (int c = 0; c < n->dim; c++)
        for (int k = 0; k < n->pad; k++)
            s->size[k] += x[c * n->pad + k] * x[c * n->pad + k];
    for (int k = 0; k < n->pad; k++) {
        float size = sqrtf(s->size[k]);
        s->size[k] = size > least_norm ? size : least_norm;
    }
    for (int k = 0; k < n->ch; k++)
        mean += s->size[k];
    mean /= (float)n->ch;
    for (int k = 0; k < n->ch; k++)
        var += (s->size[k] - mean) * (s->size[k] - mean);
    s->rstd = 1 / sqrtf(var / (float)n->ch + 1e-5f);
    for (int k = 0; k < n->pad; k++)
        s->hat[k] = (s->size[k] - mean) * s->rstd;
}

static void norm(const nn_cpu_norm *n)
{
    float size[1024], hat[1024], factor[1024];
    norm_state s = { 0, size, hat };

    for (int i = 0; i < n->n_nodes; i++) {
        const float *x = n->x + (size_t)i * n->ld;
        float *y = n->y + (size_t)i * n->ld;
        norm_run(n, x, &s);
        for (int k = 0; k < n->pad; k++) {
            float u = n->gain[k] * hat[k] + n->bias[k];
            factor[k] = u > 0 ? u / size[k] : 0;
        }
        for (int c = 0; c < n->dim; c++)
            for (int k = 0; k < n->pad; k++)
                y[c * n->pad + k] = x[c * n->pad + k] * factor[k];
    }
}

/* One node: dx from dy; du = gradient of the gained norms is left in hat's place. */
static void norm_back_node(const nn_cpu_norm *n, const norm_state *s, const float *x, const float *dy, float *dx)
{
    float q[1024] = { 0 }, factor[1024], dhat[1024], mean = 0, dot = 0;

    for (int c = 0; c < n->dim; c++)
        for (int k = 0; k < n->pad; k++)
            q[k] += dy[c * n->pad + k] * x[c * n->pad + k];
    for (int k = 0; k < n->pad; k++) {
        float u = n->gain[k] * s->hat[k] + n->bias[k], ds = u > 0 ? q[k] / s->size[k] : 0;
        factor[k] = u > 0 ? u / s->size[k] : 0;
        n->dbias[k] += ds;
        n->dgain[k] += ds * s->hat[k];
        dhat[k] = n->gain[k] * ds;
    }
    for (int k = 0; k < n->ch; k++) {
        mean += dhat[k];
        dot += dhat[k] * s->hat[k];
    }
    mean /= (float)n->ch;
    dot /= (float)n->ch;
    for (int k = 0; k < n->pad; k++) {
        float dn = s->rstd * (dhat[k] - mean - s->hat[k] * dot) - q[k] * factor[k] / s->size[k];
        dhat[k] = s->size[k] > least_norm ? dn / s->size[k] : 0;
    }
    for (int c = 0; c < n->dim; c++)
        for (int k = 0; k < n->pad; k++)
            dx[c * n->pad + k] = dy[c * n->pad + k] * factor[k] + dhat[k] * x[c * n->pad + k];
}

static void norm_back(const nn_cpu_norm *n)
{
    float size[1024], hat[1024];
    norm_state s = { 0, size, hat };

    for (int i = 0; i < n->n_nodes; i++) {
        const float *x = n->x + (size_t)i * n->ld;
        norm_run(n, x, &s);
        norm_back_node(n, &s, x, n->dy + (size_t)i * n->ld, n->dx + (size_t)i * n->ld);
    }
}
