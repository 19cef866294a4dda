/* SPDX-License-Identifier: Apache-2.0 */
#include "models/cpu/cpu_engine.h"

#include <string.h>

typedef struct head_job {
    nn_engine *e;
    const nn_batch *in;
    const float *x, *dy;
    float *y, *dx;
} head_job;

/* Padded widths of the pooled vector and of the output. */
static size_t wide_of(const nn_engine *e) { return (size_t)e->plan->head[0].in_pad; }

static size_t out_pad_of(const nn_engine *e) { return (size_t)e->plan->head[1].out_pad; }

/* ---- pooling ------------------------------------------------------------------------ */

static void pool_max(const float *x, int32_t first, int32_t end, size_t wide, float *p, int32_t *from)
{
    for (size_t k = 0; k < wide; k++) {
        from[k] = first;
        p[k] = x[(size_t)first * wide + k];
        for (int32_t i = first + 1; i < end; i++)
            if (x[(size_t)i * wide + k] > p[k]) {
                p[k] = x[(size_t)i * wide + k];
                from[k] = i;
            }
    }
}

static float pool_share(const nn_engine *e, int32_t n)
{
    return e->plan->model->conf.pooling == NN_POOL_MEAN && n ? 1.0f / (float)n : 1.0f;
}

static void pool_graph(const head_job *j, int32_t g)
{
    nn_engine *e = j->e;
    size_t wide = wide_of(e);
    int32_t first = j->in->first[g], end = j->in->first[g + 1];
    float *p = e->pool_x + (size_t)g * wide, share = pool_share(e, end - first);

    memset(p, 0, wide * sizeof *p);
    if (first == end)
        return;
    if (e->plan->model->conf.pooling == NN_POOL_MAX) {
        pool_max(j->x, first, end, wide, p, e->pool_from + (size_t)g * wide);
        return;
    }
    for (int32_t i = first; i < end; i++)
        e->kernels->add(wide, j->x + (size_t)i * wide, p);
    for (size_t k = 0; k < wide; k++)
        p[k] *= share;
}

static void pool_graph_back(const head_job *j, int32_t g, const float *d)
{
    nn_engine *e = j->e;
    size_t wide = wide_of(e);
    int32_t first = j->in->first[g], end = j->in->first[g + 1];
    float share = pool_share(e, end - first);
    const int32_t *from = e->pool_from + (size_t)g * wide;

    for (int32_t i = first; i < end; i++)
        for (size_t k = 0; k < wide; k++) {
            bool here = e->plan->model->conf.pooling != NN_POOL_MAX || from[k] == i;
            j->dx[(size_t)i * wide + k] = here ? d[k] * share : 0;
        }
}

/* ---- one graph through the two linear layers ------------------------------------------ */

static void linear_row(const nn_engine *e, int layer, const float *x, float *y)
{
    const nn_cpu_linear *l = &e->plan->head[layer];
    const float *a[1] = { x };
    float *c[1] = { y };
    nn_cpu_gemm g = { 1, l->n_in, l->out_pad, a, c, e->small + l->w, true };

    memcpy(y, e->small + e->plan->head_bias[layer], (size_t)l->out_pad * sizeof *y);
    e->kernels->gemm(&g);
}

static void graph_forward(void *ctx, int worker, int i)
{
    const head_job *j = ctx;
    nn_engine *e = j->e;
    size_t wide = wide_of(e), n_out = (size_t)e->plan->head[1].n_out;
    float *h = e->pool_h + (size_t)i * wide, *y = e->pool_y + (size_t)i * out_pad_of(e);

    (void)worker;
    pool_graph(j, i);
    linear_row(e, 0, e->pool_x + (size_t)i * wide, h);
    for (size_t k = 0; k < wide; k++)
        h[k] = h[k] > 0 ? h[k] : 0;
    linear_row(e, 1, h, y);
    memcpy(j->y + (size_t)i * n_out, y, n_out * sizeof *y);
}

void nn_cpu_head(nn_engine *e, const nn_batch *in, const float *x, float *y)
{
    head_job j = { .e = e, .in = in, .x = x, .y = y };

    nn_pool_run(e->pool, in->n_graphs, graph_forward, &j);
}

/* Gradients with respect to input, weights and bias of a linear layer, for one row. */
static void linear_row_back(const nn_engine *e, int layer, const float *x, const float *dy, float *dx, float *dsmall)
{
    const nn_cpu_linear *l = &e->plan->head[layer];
    const float *a[1] = { dy }, *in[1] = { x }, *out[1] = { dy };
    float *c[1] = { dx };
    nn_cpu_gemm back = { 1, l->n_out, l->in_pad, a, c, e->turned + l->turned, false };
    nn_cpu_gemm grad = { 1, l->n_in, l->out_pad, in, NULL, NULL, false };

    e->kernels->gemm(&back);
    e->kernels->gemm_tn(&grad, out, dsmall + l->w);
    e->kernels->add((size_t)l->out_pad, dy, dsmall + e->plan->head_bias[layer]);
}

static void graph_backward(const head_job *j, int32_t g, float *dsmall)
{
    nn_engine *e = j->e;
    size_t wide = wide_of(e), n_out = (size_t)e->plan->head[1].n_out;
    float *h = e->pool_h + (size_t)g * wide, *dy = e->pool_y + (size_t)g * out_pad_of(e);
    float *dh = e->pool_d + 2 * (size_t)g * wide, *dp = dh + wide;

    memset(dy, 0, out_pad_of(e) * sizeof *dy);
    memcpy(dy, j->dy + (size_t)g * n_out, n_out * sizeof *dy);
    linear_row_back(e, 1, h, dy, dh, dsmall);
    for (size_t k = 0; k < wide; k++)
        dh[k] = h[k] > 0 ? dh[k] : 0;
    linear_row_back(e, 0, e->pool_x + (size_t)g * wide, dh, dp, dsmall);
    pool_graph_back(j, g, dp);
}

static void piece_backward(void *ctx, int worker, int i)
{
    const head_job *j = ctx;
    int32_t end = nn_piece_at(j->in->n_graphs, i + 1, NN_PIECES);

    (void)worker;
    for (int32_t g = nn_piece_at(j->in->n_graphs, i, NN_PIECES); g < end; g++)
        graph_backward(j, g, j->e->dsmall + (size_t)i * j->e->plan->n_small);
}

void nn_cpu_head_back(nn_engine *e, const nn_batch *in, const float *dy, float *dx)
{
    head_job j = { .e = e, .in = in, .dy = dy, .dx = dx };

    nn_pool_run(e->pool, NN_PIECES, piece_backward, &j);
}

/* ---- the noise head ------------------------------------------------------------------- */

static const nn_cpu_layout *noise_in(const nn_engine *e) { return &e->plan->module[e->plan->n_modules - 1].in; }

/* Degree 1 has the order x, y, z. */
void nn_cpu_noise(const nn_engine *e, int32_t n_nodes, const float *x, float (*v)[3])
{
    const nn_cpu_layout *in = noise_in(e);
    const float *w = e->small + e->plan->noise;

    for (int32_t i = 0; i < n_nodes; i++)
        for (int c = 0; c < 3; c++) {
            const float *from = x + (size_t)i * (size_t)in->size + in->at[1] + c * in->pad[1];
            v[i][c] = 0;
            for (int32_t k = 0; k < in->ch[1]; k++)
                v[i][c] += w[k] * from[k];
        }
}

typedef struct noise_job {
    nn_engine *e;
    const float *x, (*dv)[3];
    float *dx;
    int32_t n_nodes;
} noise_job;

static void noise_piece_back(void *ctx, int worker, int piece)
{
    const noise_job *j = ctx;
    const nn_cpu_layout *in = noise_in(j->e);
    const float *w = j->e->small + j->e->plan->noise;
    float *dw = j->e->dsmall + (size_t)piece * j->e->plan->n_small + j->e->plan->noise;
    int32_t end = nn_piece_at(j->n_nodes, piece + 1, NN_PIECES);

    (void)worker;
    for (int32_t i = nn_piece_at(j->n_nodes, piece, NN_PIECES); i < end; i++)
        for (int c = 0; c < 3; c++) {
            size_t at = (size_t)i * (size_t)in->size + (size_t)(in->at[1] + c * in->pad[1]);
            for (int32_t k = 0; k < in->ch[1]; k++) {
                dw[k] += j->dv[i][c] * j->x[at + (size_t)k];
                j->dx[at + (size_t)k] += j->dv[i][c] * w[k];
            }
        }
}

void nn_cpu_noise_back(nn_engine *e, int32_t n_nodes, const float *x, const float (*dv)[3], float *dx)
{
    noise_job j = { e, x, dv, dx, n_nodes };

    nn_pool_run(e->pool, NN_PIECES, noise_piece_back, &j);
}
