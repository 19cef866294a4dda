/* SPDX-License-Identifier: Apache-2.0 */
#include "models/cuda/inner.h"

static const nn_gpu_axis one = { INT32_MAX, 0, 1 }; /* contiguous */

static nn_gpu_axis step(int64_t n)
{
    return (nn_gpu_axis){ INT32_MAX, 0, n };
}

/* (node, component) of degree d. */
static nn_gpu_axis rows_axis(const nn_gpu_nodes *f, int d)
{
    return (nn_gpu_axis){ 2 * d + 1, f->size, f->ch[d] };
}

int32_t nn_cuda_splits(int64_t k)
{
    int64_t n = k / NN_CUDA_SPLIT_K;

    return n < 1 ? 1 : n > NN_CUDA_SPLITS ? NN_CUDA_SPLITS : (int32_t)n;
}

static nn_gpu_precision precision_of(nn_precision p)
{
    return p == NN_PREC_FP32 ? NN_GPU_FP32 : p == NN_PREC_BF16 ? NN_GPU_BF16 : NN_GPU_BF16X3;
}

/* ---- linear layers ------------------------------------------------------------------ */

static int32_t rows_count(const nn_cuda_rows *r)
{
    return r->n_nodes * (2 * r->d + 1);
}

void nn_cuda_linear_run(const nn_cuda_rows *r, const float *x, float *y, bool add)
{
    const nn_cuda_linear *l = r->l;

    r->e->ops->gemm(r->e->gpu, &(nn_gpu_gemm){
        .m = rows_count(r), .n = l->n_out, .k = l->n_in, .splits = 1, .add = add,
        .precision = precision_of(r->e->conf.of_linear),
        .a = x + r->in->at[r->d], .a_m = rows_axis(r->in, r->d), .a_k = one,
        .b = r->e->params + l->w, .b_k = one, .b_n = step(l->ld),
        .c = y + r->out->at[r->d], .c_m = rows_axis(r->out, r->d), .c_n = one });
}

void nn_cuda_linear_back(const nn_cuda_rows *r, const float *dy, float *dx, bool add)
{
    const nn_cuda_linear *l = r->l;

    r->e->ops->gemm(r->e->gpu, &(nn_gpu_gemm){
        .m = rows_count(r), .n = l->n_in, .k = l->n_out, .splits = 1, .add = add,
        .precision = precision_of(r->e->conf.of_linear),
        .a = dy + r->out->at[r->d], .a_m = rows_axis(r->out, r->d), .a_k = one,
        .b = r->e->params + l->w, .b_k = step(l->ld), .b_n = one,
        .c = dx + r->in->at[r->d], .c_m = rows_axis(r->in, r->d), .c_n = one });
}

void nn_cuda_linear_grad(const nn_cuda_rows *r, const float *x, const float *dy)
{
    const nn_cuda_linear *l = r->l;

    r->e->ops->gemm(r->e->gpu, &(nn_gpu_gemm){
        .m = l->n_out, .n = l->n_in, .k = rows_count(r), .splits = nn_cuda_splits(rows_count(r)), .add = true,
        .precision = precision_of(r->e->conf.of_linear), .work = r->e->work,
        .a = dy + r->out->at[r->d], .a_m = one, .a_k = rows_axis(r->out, r->d),
        .b = x + r->in->at[r->d], .b_k = rows_axis(r->in, r->d), .b_n = one,
        .c = r->e->grad + l->w, .c_m = step(l->ld), .c_n = one });
}

/* ---- along edges ---------------------------------------------------------------------- */

nn_gpu_turn nn_cuda_turn(const nn_engine *e, const int32_t *node, const nn_gpu_nodes *nodes,
                         const nn_gpu_edges *edges, const float *x, float *y)
{
    return (nn_gpu_turn){ .n_rows = e->prep.n_rows, .frame_size = nn_frame_size(e->plan->l_max), .heads = 1,
                          .node = nn_cuda_at(e, node), .frame = nn_cuda_at(e, e->prep.frame), .d = e->frames,
                          .nodes = *nodes, .edges = *edges, .x = x, .y = y };
}

nn_gpu_sum nn_cuda_sum(const nn_engine *e, int32_t n_nodes, bool out, const nn_gpu_nodes *nodes,
                       const nn_gpu_edges *edges, const float *y)
{
    const nn_cuda_prep *p = &e->prep;

    return (nn_gpu_sum){ .t = nn_cuda_turn(e, NULL, nodes, edges, NULL, (float *)y), .n_nodes = n_nodes,
                         .first = nn_cuda_at(e, out ? p->out_first : p->in_first),
                         .row = nn_cuda_at(e, out ? p->out_row : p->in_row) };
}

/* ---- tables ----------------------------------------------------------------------------- */

bool nn_cuda_chunk_next(const nn_engine *e, const nn_cuda_conv *c, nn_cuda_chunk *k)
{
    const nn_cuda_cell *cell = e->prep.cell;
    int64_t most = (int64_t)e->table_bytes / (int64_t)sizeof(float) / (c->size ? c->size : 1);

    if (k->first >= e->prep.n_cells)
        return false;
    k->node = cell[k->first].node[0];
    for (k->end = k->first; k->end < e->prep.n_cells; k->end++) {
        int32_t last = cell[k->end].node[1] < 0 ? cell[k->end].node[0] : cell[k->end].node[1];
        if (k->end > k->first && last + 1 - k->node > most)
            break;
        k->n_nodes = last + 1 - k->node;
    }
    return true;
}

void nn_cuda_table(const nn_engine *e, const nn_cuda_conv *c, const nn_cuda_chunk *k, bool turned)
{
    for (int i = 0; i < c->n_regions; i++) {
        const nn_cuda_region *r = &c->region[turned][i];
        e->ops->gemm(e->gpu, &(nn_gpu_gemm){
            .m = k->n_nodes, .n = r->count, .k = NN_GPU_H, .splits = 1,
            .precision = precision_of(e->conf.of_radial),
            .a = e->h + ((int64_t)r->net * e->prep.n_nodes + k->node) * NN_GPU_H, .a_m = step(NN_GPU_H), .a_k = one,
            .b = e->fold + c->fold[turned] + r->at, .b_k = step(c->size), .b_n = { r->inner, r->outer_step, 1 },
            .c = e->table + r->at, .c_m = step(c->size), .c_n = { r->inner, r->outer_step, 1 } });
    }
}

static void so2_sides(nn_gpu_so2 *a, const nn_gpu_edges *x, const nn_gpu_edges *y)
{
    a->x_size = x->size;
    a->y_size = y->size;
    a->n_orders = y->n_degrees;
    for (int m = 0; m < NN_GPU_DEGREES; m++) {
        a->k[m] = x->half[m];
        a->n[m] = y->half[m];
        a->x_at[m] = x->order[m];
        a->y_at[m] = y->order[m];
        a->most_k = a->most_k > x->half[m] ? a->most_k : x->half[m];
        a->most_n = a->most_n > y->half[m] ? a->most_n : y->half[m];
    }
}

nn_gpu_so2 nn_cuda_so2(const nn_engine *e, const nn_cuda_conv *c, const nn_cuda_chunk *k, bool turned)
{
    const nn_cuda_cell *cell = e->prep.cell;
    nn_gpu_so2 a = { .n_tiles = cell[k->end].tile - cell[k->first].tile, .sign = turned ? -1.0f : 1.0f,
                     .precision = precision_of(e->conf.of_contract), .table_size = c->size,
                     .tile = (const nn_gpu_tile *)nn_cuda_at(e, e->prep.tile) + cell[k->first].tile,
                     .span = nn_cuda_at(e, e->prep.span), .phi = nn_cuda_at(e, e->prep.phi), .first_node = k->node,
                     .n_nodes = k->n_nodes, .first_row = cell[k->first].row, .end_row = cell[k->end].row,
                     .table = e->table };

    for (int m = 0; m < NN_GPU_DEGREES; m++)
        a.table_at[m] = c->at[m];
    so2_sides(&a, turned ? &c->out_edges : &c->in_edges, turned ? &c->in_edges : &c->out_edges);
    return a;
}
