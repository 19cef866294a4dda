/* SPDX-License-Identifier: Apache-2.0 */
#include "models/cpu/cpu_engine.h"

typedef struct rows {
    const float *a[NN_CHUNK_ROWS];
    float *c[NN_CHUNK_ROWS];
    int32_t n;
} rows;

/* The vectors of degree d of at most NN_CHUNK nodes, from node `first` of r on. */
static void rows_fill(rows *p, const nn_cpu_rows *r, int d, int32_t first)
{
    int32_t end = first + NN_CHUNK < r->n_nodes ? first + NN_CHUNK : r->n_nodes;

    p->n = 0;
    for (int32_t i = first; i < end; i++)
        for (int c = 0; c < 2 * d + 1; c++, p->n++) {
            p->a[p->n] = r->from + (size_t)i * (size_t)r->in->size + r->in->at[d] + c * r->in->pad[d];
            p->c[p->n] = r->to + (size_t)i * (size_t)r->out->size + r->out->at[d] + c * r->out->pad[d];
        }
}

static void rows_multiply(const nn_engine *e, const float *w, const nn_cpu_gemm *shape, int d, const nn_cpu_rows *r)
{
    rows p;

    for (int32_t first = 0; first < r->n_nodes; first += NN_CHUNK) {
        nn_cpu_gemm g = *shape;
        rows_fill(&p, r, d, first);
        g.n_rows = p.n;
        g.a = p.a;
        g.c = p.c;
        g.w = w;
        e->kernels->gemm(&g);
    }
}

void nn_cpu_linear_run(const nn_engine *e, const nn_cpu_linear *l, int d, const nn_cpu_rows *r, bool add)
{
    nn_cpu_gemm shape = { .n_in = l->n_in, .n_out = l->out_pad, .add = add };

    if (e->precision_linear == NN_PREC_FP32)
        rows_multiply(e, e->small + l->w, &shape, d, r);
    else
        nn_cpu_linear16_run(e, e->small16 + l->half, (int32_t[]){ l->n_in, l->out_pad }, d, r, add);
}

void nn_cpu_linear_back(const nn_engine *e, const nn_cpu_linear *l, int d, const nn_cpu_rows *r, bool add)
{
    nn_cpu_gemm shape = { .n_in = l->n_out, .n_out = l->in_pad, .add = add };

    if (e->precision_linear == NN_PREC_FP32)
        rows_multiply(e, e->turned + l->turned, &shape, d, r);
    else
        nn_cpu_linear16_run(e, e->small16 + l->half_turned, (int32_t[]){ l->n_out, l->in_pad }, d, r, add);
}

void nn_cpu_linear_grad(const nn_engine *e, const nn_cpu_linear *l, int d, const nn_cpu_rows *r, float *dsmall)
{
    rows p;

    if (e->precision_linear != NN_PREC_FP32) {
        nn_cpu_linear16_grad(e, l, d, r, dsmall + l->w);
        return;
    }
    for (int32_t first = 0; first < r->n_nodes; first += NN_CHUNK) {
        nn_cpu_gemm g = { .n_in = l->n_in, .n_out = l->out_pad };
        rows_fill(&p, r, d, first);
        g.n_rows = p.n;
        g.a = p.a;
        e->kernels->gemm_tn(&g, (const float *const *)p.c, dsmall + l->w);
    }
}
