/* SPDX-License-Identifier: Apache-2.0 */
/* The linear layers of nodes with bf16 factors (bf16.h). Each product takes one component of all nodes of a chunk, because
 * those rows are evenly spaced in memory. */
#include "models/cpu/cpu_engine.h"

enum { BLOCK = 512, NARROW = 64, PARTS = 2 }; /* inputs per block; in gradients also outputs */

static int parts_of(const nn_engine *e) { return e->precision_linear == NN_PREC_BF16 ? 1 : PARTS; }

/* Packs every matrix and its transpose to the places in its map. */
void nn_cpu_linear16_load(nn_engine *e)
{
    int parts = parts_of(e);

    for (int i = 0; i < e->plan->n_maps && e->precision_linear != NN_PREC_FP32; i++) {
        const nn_cpu_map *m = &e->plan->map[i];
        nn_bf16_source w = { e->small + m->at, (size_t)m->ld, NULL, NULL, 1, m->rows, m->ld };
        nn_bf16_panels to = { e->small16 + m->half, nn_bf16_packed(m->rows, 16, parts), parts };
        if (m->turned < 0)
            continue;
        e->kernels->bf16.pack(&w, &to);
        w = (nn_bf16_source){ e->turned + m->turned, (size_t)m->turned_ld, NULL, NULL, 1, m->cols, m->turned_ld };
        to = (nn_bf16_panels){ e->small16 + m->half_turned, nn_bf16_packed(m->cols, 16, parts), parts };
        e->kernels->bf16.pack(&w, &to);
    }
}

/* Component c of degree d of the nodes from `first`. */
static nn_bf16_source rows_in(const nn_cpu_rows *r, int d, int32_t first, int c, int32_t n_in)
{
    size_t size = (size_t)r->in->size;
    int32_t left = r->n_nodes - first;

    return (nn_bf16_source){ r->from + (size_t)first * size + r->in->at[d] + c * r->in->pad[d],
                             size,
                             NULL,
                             NULL,
                             1,
                             left < NN_CHUNK ? left : NN_CHUNK,
                             n_in };
}

static float *rows_out(const nn_cpu_rows *r, int d, int32_t first, int c)
{
    return r->to + (size_t)first * (size_t)r->out->size + r->out->at[d] + c * r->out->pad[d];
}

/* One component of a chunk times a packed matrix of n_in rows. */
static void component_multiply(const nn_engine *e, const nn_bf16_source *from, nn_bf16_product *g, bool add)
{
    nn_bf16 a[NN_CHUNK * BLOCK * PARTS];
    nn_bf16 *b = g->b.at;

    for (int32_t k = 0; k < from->n; k += BLOCK, b += nn_bf16_packed(BLOCK, 16, g->b.parts)) {
        nn_bf16_source part = *from;
        part.at += k;
        part.n = from->n - k < BLOCK ? from->n - k : BLOCK;
        g->a = (nn_bf16_mat){ a, BLOCK, NN_CHUNK * BLOCK, (int32_t)nn_bf16_in(part.n), g->b.parts };
        g->b.at = b;
        g->add = add || k;
        e->kernels->bf16.rows(&part, &g->a);
        e->kernels->bf16.product(g);
    }
}

void nn_cpu_linear16_run(const nn_engine *e, const nn_bf16 *w, const int32_t shape[2], int d, const nn_cpu_rows *r, bool add)
{
    size_t panel = nn_bf16_packed(shape[0], 16, parts_of(e));

    for (int32_t first = 0; first < r->n_nodes; first += NN_CHUNK)
        for (int c = 0; c < 2 * d + 1; c++) {
            nn_bf16_source from = rows_in(r, d, first, c, r->in->pad[d]);
            nn_bf16_product g = { .b = { (nn_bf16 *)(uintptr_t)w, panel, parts_of(e) },
                                  .n_rows = from.n_rows,
                                  .n_out = shape[1],
                                  .c = rows_out(r, d, first, c),
                                  .c_ld = (size_t)r->out->size,
                                  .c_panel = 16 };
            component_multiply(e, &from, &g, add);
        }
}

/* ---- gradients of weights ----------------------------------------------------------- */

/* The vectors of degree d of a chunk, beginning at channels `in` and `out`. */
typedef struct vectors {
    const float *x[NN_CHUNK_ROWS], *dy[NN_CHUNK_ROWS];
    int32_t n;
} vectors;

static void vectors_list(vectors *v, const nn_cpu_rows *r, int d, int32_t first, const int32_t at[2])
{
    int32_t end = first + NN_CHUNK < r->n_nodes ? first + NN_CHUNK : r->n_nodes;

    v->n = 0;
    for (int32_t i = first; i < end; i++)
        for (int c = 0; c < 2 * d + 1; c++, v->n++) {
            v->x[v->n] = r->from + (size_t)i * (size_t)r->in->size + r->in->at[d] + c * r->in->pad[d] + at[0];
            v->dy[v->n] = r->to + (size_t)i * (size_t)r->out->size + r->out->at[d] + c * r->out->pad[d] + at[1];
        }
}

static int32_t narrow(int32_t n, int32_t at) { return n - at < NARROW ? n - at : NARROW; }

/* dw of at most NARROW inputs at[0] and outputs at[1]. */
static void block_gradient(const nn_engine *e, const nn_cpu_linear *l, const vectors *v, const int32_t at[2], float *dw)
{
    enum { LD = (NN_CHUNK_ROWS + NN_BF16_IN - 1) / NN_BF16_IN * NN_BF16_IN };
    nn_bf16 a[NARROW * LD * PARTS], b[NARROW * LD * PARTS];
    nn_bf16_source x = { .row = v->x, .factor = 1, .n_rows = v->n, .n = narrow(l->in_pad, at[0]) };
    nn_bf16_source dy = { .row = v->dy, .factor = 1, .n_rows = v->n, .n = narrow(l->out_pad, at[1]) };
    nn_bf16_mat turned = { a, LD, NARROW * LD, (int32_t)nn_bf16_in(v->n), parts_of(e) };
    nn_bf16_panels packed = { b, nn_bf16_packed(v->n, 16, parts_of(e)), parts_of(e) };
    nn_bf16_product g = {
        turned, packed, narrow(l->n_in, at[0]), dy.n, dw + (size_t)at[0] * (size_t)l->out_pad + at[1], (size_t)l->out_pad, 16, true
    };

    e->kernels->bf16.turn(&x, &turned);
    e->kernels->bf16.pack(&dy, &packed);
    e->kernels->bf16.product(&g);
}

void nn_cpu_linear16_grad(const nn_engine *e, const nn_cpu_linear *l, int d, const nn_cpu_rows *r, float *dw)
{
    vectors v;
    int32_t at[2];

    for (int32_t first = 0; first < r->n_nodes; first += NN_CHUNK)
        for (at[0] = 0; at[0] < l->n_in; at[0] += NARROW)
            for (at[1] = 0; at[1] < l->out_pad; at[1] += NARROW) {
                vectors_list(&v, r, d, first, at);
                block_gradient(e, l, &v, at, dw);
            }
}
