/* SPDX-License-Identifier: Apache-2.0 */
#include "models/cuda/cuda_engine.h"

static const nn_gpu_axis one = { INT32_MAX, 0, 1 }; /* contiguous */

static nn_gpu_axis step(int64_t n) { return (nn_gpu_axis){ INT32_MAX, 0, n }; }

/* Rows of (node, component) of degree d. */
static nn_gpu_axis rows_axis(const nn_gpu_nodes *f, int d) { return (nn_gpu_axis){ 2 * d + 1, f->size, f->ch[d] }; }

/* Number of parts of k, so that the blocks of all parts fill a GPU. */
static int32_t splits_of(int64_t m, int64_t n, int64_t k, nn_gpu_precision p)
{
    int64_t blocks = (m + 63) / 64 * ((n + 63) / 64), max = NN_CUDA_BLOCKS / (blocks ? blocks : 1);
    int64_t parts = p == NN_GPU_FP32 ? k / NN_CUDA_SPLIT_K : (k + NN_CUDA_SPLIT_MMA - 1) / NN_CUDA_SPLIT_MMA;

    parts = parts < max ? parts : max;
    return parts < 1 ? 1 : (int32_t)parts;
}

static nn_gpu_precision precision_of(nn_precision p)
{
    static const nn_gpu_precision of[] = { [NN_PREC_FP32] = NN_GPU_FP32,
                                           [NN_PREC_BF16X3] = NN_GPU_BF16X3,
                                           [NN_PREC_BF16] = NN_GPU_BF16,
                                           [NN_PREC_TF32] = NN_GPU_TF32,
                                           [NN_PREC_FP16] = NN_GPU_FP16 };

    return of[p];
}

/* Precision of the gradients of radial networks, a small part of the work: at least tf32. */
static nn_gpu_precision radial_back_of(nn_precision p) { return precision_of(p == NN_PREC_BF16 ? NN_PREC_TF32 : p); }

/* ---- groups of products --------------------------------------------------------------- */

void nn_cuda_group_run(nn_cuda_group *g)
{
    if (g->n)
        g->e->ops->gemm(g->e->gpu, g->product, g->n);
    g->n = 0;
    g->used = 0;
}

void nn_cuda_join(nn_cuda_group *g, nn_gpu_gemm p)
{
    int64_t parts = (int64_t)p.splits * p.m * p.n;

    if (!p.k && p.add)
        return;
    if (g->n + p.more >= NN_GPU_GROUP)
        nn_cuda_group_run(g);
    if (p.splits > 1) {
        p.work = g->work + g->used;
        g->used += parts;
    }
    g->product[g->n++] = p;
}

/* ---- linear layers ------------------------------------------------------------------ */

static int32_t rows_count(const nn_cuda_rows *r) { return r->n_nodes * (2 * r->d + 1); }

nn_gpu_gemm nn_cuda_linear_run(const nn_cuda_rows *r, const float *x, float *y, bool add)
{
    const nn_cuda_linear *l = r->l;

    return (nn_gpu_gemm){ .m = rows_count(r),
                          .n = l->n_out,
                          .k = l->n_in,
                          .splits = 1,
                          .add = add,
                          .by = r->e->by[NN_CUDA_OF_LINEAR],
                          .precision = precision_of(r->e->conf.of_linear),
                          .a = x + r->in->at[r->d],
                          .a_m = rows_axis(r->in, r->d),
                          .a_k = one,
                          .b = r->e->params + l->w,
                          .b_k = one,
                          .b_n = step(l->ld),
                          .c = y + r->out->at[r->d],
                          .c_m = rows_axis(r->out, r->d),
                          .c_n = one };
}

nn_gpu_gemm nn_cuda_linear_back(const nn_cuda_rows *r, const float *dy, float *dx, bool add)
{
    const nn_cuda_linear *l = r->l;

    return (nn_gpu_gemm){ .m = rows_count(r),
                          .n = l->n_in,
                          .k = l->n_out,
                          .splits = 1,
                          .add = add,
                          .by = r->e->by[NN_CUDA_OF_LINEAR_BACK],
                          .precision = precision_of(r->e->conf.of_linear),
                          .a = dy + r->out->at[r->d],
                          .a_m = rows_axis(r->out, r->d),
                          .a_k = one,
                          .b = r->e->params + l->w,
                          .b_k = step(l->ld),
                          .b_n = one,
                          .c = dx + r->in->at[r->d],
                          .c_m = rows_axis(r->in, r->d),
                          .c_n = one };
}

nn_gpu_gemm nn_cuda_linear_grad(const nn_cuda_rows *r, const float *x, const float *dy)
{
    const nn_cuda_linear *l = r->l;
    nn_gpu_precision p = precision_of(r->e->conf.of_linear);

    return (nn_gpu_gemm){ .m = l->n_out,
                          .n = l->n_in,
                          .k = rows_count(r),
                          .splits = splits_of(l->n_out, l->n_in, rows_count(r), p),
                          .add = true,
                          .precision = p,
                          .a = dy + r->out->at[r->d],
                          .a_m = one,
                          .a_k = rows_axis(r->out, r->d),
                          .b = x + r->in->at[r->d],
                          .b_k = rows_axis(r->in, r->d),
                          .b_n = one,
                          .c = r->e->grad + l->w,
                          .c_m = step(l->ld),
                          .c_n = one };
}

/* ---- along edges ---------------------------------------------------------------------- */

nn_gpu_turn nn_cuda_turn(const nn_engine *e, const int32_t *node, const nn_gpu_nodes *nodes, const nn_gpu_edges *edges,
                         const float *x, float *y)
{
    return (nn_gpu_turn){ .n_rows = e->prep.n_rows,
                          .frame_size = nn_frame_size(e->plan->l_max),
                          .heads = 1,
                          .node = nn_cuda_at(e, node),
                          .frame = nn_cuda_at(e, e->prep.frame),
                          .d = e->frames,
                          .nodes = *nodes,
                          .edges = *edges,
                          .x = x,
                          .y = y };
}

nn_gpu_sum nn_cuda_sum(const nn_engine *e, int32_t n_nodes, bool out, const nn_gpu_nodes *nodes, const nn_gpu_edges *edges,
                       const float *y)
{
    const nn_cuda_prep *p = &e->prep;

    return (nn_gpu_sum){ .t = nn_cuda_turn(e, NULL, nodes, edges, NULL, (float *)y),
                         .n_nodes = n_nodes,
                         .first = nn_cuda_at(e, out ? p->out_first : p->in_first),
                         .row = nn_cuda_at(e, out ? p->out_row : p->in_row) };
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
        a->max_k = a->max_k > x->half[m] ? a->max_k : x->half[m];
        a->max_n = a->max_n > y->half[m] ? a->max_n : y->half[m];
    }
}

/* What both kinds of tables have. */
static nn_gpu_so2 so2_base(const nn_engine *e, const nn_cuda_conv *c, bool turned)
{
    nn_gpu_so2 a = { .sign = turned ? -1.0f : 1.0f,
                     .precision = precision_of(e->conf.of_contract),
                     .table_size = c->size,
                     .phi = nn_cuda_at(e, e->prep.phi) };

    for (int m = 0; m < NN_GPU_DEGREES; m++)
        a.table_at[m] = c->at[m];
    if (turned)
        so2_sides(&a, &c->out_edges, &c->in_edges);
    else
        so2_sides(&a, &c->in_edges, &c->out_edges);
    return a;
}

static nn_gpu_so2 so2_of(const nn_engine *e, const nn_cuda_conv *c, const nn_cuda_chunk *k, bool turned)
{
    const nn_cuda_cell *cell = e->prep.cell;
    nn_gpu_so2 a = so2_base(e, c, turned);

    a.n_tiles = cell[k->end].tile - cell[k->first].tile;
    a.tile = (const nn_gpu_tile *)nn_cuda_at(e, e->prep.tile) + cell[k->first].tile;
    a.span = nn_cuda_at(e, e->prep.span);
    a.first_node = k->node;
    a.n_nodes = k->n_nodes;
    a.first_row = cell[k->first].row;
    a.end_row = cell[k->end].row;
    return a;
}

static nn_gpu_so2 so2_by_units(const nn_engine *e, const nn_cuda_conv *c, bool turned)
{
    nn_gpu_so2 a = so2_base(e, c, turned);

    a.n_tiles = e->prep.n_whole;
    a.tile = nn_cuda_at(e, e->prep.whole);
    a.unit = e->h + (int64_t)c->net * e->prep.n_nodes * NN_GPU_H;
    a.frame = nn_cuda_at(e, e->prep.frame);
    return a;
}

/* ---- tables ----------------------------------------------------------------------------- */

bool nn_cuda_chunk_next(const nn_engine *e, const nn_cuda_conv *c, nn_cuda_chunk *k)
{
    const nn_cuda_cell *cell = e->prep.cell;
    int64_t max = (int64_t)e->table_bytes / (int64_t)sizeof(float) / (c->size ? c->size : 1);

    if (k->first >= e->prep.n_cells)
        return false;
    k->node = cell[k->first].node[0];
    for (k->end = k->first; k->end < e->prep.n_cells; k->end++) {
        int32_t last = cell[k->end].node[1] < 0 ? cell[k->end].node[0] : cell[k->end].node[1];
        if (k->end > k->first && last + 1 - k->node > max)
            break;
        k->n_nodes = last + 1 - k->node;
    }
    return true;
}

/* In exact mode every pair has a table of its own, W = sum over hidden units of h[unit] W[unit]: written, read once, and far more
 * numbers than the edges have. The products by units are the sum over units of W[unit] (h[unit] x): 32 times the products of a
 * row, no tables of pairs, and tiles of 64 rows in place of two. This is so where one radial network makes all of a table. */
static bool by_units(const nn_engine *e, const nn_cuda_conv *c)
{
    nn_gpu_so2 forward, turned;

    if (!e->units || c->n_regions != 1)
        return false;
    forward = so2_by_units(e, c, false);
    turned = so2_by_units(e, c, true);
    forward.n_tiles = turned.n_tiles = 0;
    return e->ops->so2(e->gpu, &forward) && e->ops->so2(e->gpu, &turned);
}

bool nn_cuda_product_next(const nn_engine *e, const nn_cuda_conv *c, nn_cuda_chunk *k)
{
    if (!by_units(e, c))
        return nn_cuda_chunk_next(e, c, k);
    if (k->first >= e->prep.n_cells)
        return false;
    k->end = e->prep.n_cells;
    k->node = 0;
    k->n_nodes = NN_GPU_H;
    k->units = true;
    return true;
}

/* Number format of a table, as the edge products of a precision read it. */
static nn_gpu_precision kept_as(nn_gpu_precision p) { return p == NN_GPU_BF16X3 ? NN_GPU_FP32 : p; }

/* The hidden vectors of the chunk's tables. */
static const float *hidden_of(const nn_engine *e, const nn_cuda_chunk *k, const nn_cuda_region *r)
{
    return k->units ? e->unity : e->h + ((int64_t)r->net * e->prep.n_nodes + k->node) * NN_GPU_H;
}

/* Tensor cores read a table along the sum, other kernels along its results. */
static void *table_make(nn_engine *e, const nn_cuda_conv *c, const nn_cuda_chunk *k, bool turned, nn_gpu_precision as)
{
    bool t = turned != (as != NN_GPU_FP32);
    nn_cuda_group all = { .e = e };
    float *table = nn_cuda_table_begin(e);

    if (c->n_regions > 1 && c->padded)
        e->ops->zero(e->gpu, table, (size_t)k->n_nodes * (size_t)c->size * sizeof(float));
    for (int i = 0; i < c->n_regions; i++) {
        const nn_cuda_region *r = &c->region[t][i];
        nn_cuda_join(&all, (nn_gpu_gemm){ .m = k->n_nodes,
                                          .n = r->count,
                                          .k = NN_GPU_H,
                                          .splits = 1,
                                          .by = e->by[NN_CUDA_OF_TABLES],
                                          .precision = precision_of(e->conf.of_radial),
                                          .c_as = kept_as(as),
                                          .a = hidden_of(e, k, r),
                                          .a_m = step(NN_GPU_H),
                                          .a_k = one,
                                          .b = e->fold + c->fold[t] + r->at,
                                          .b_k = step(c->size),
                                          .b_n = { r->inner, r->outer_step, 1 },
                                          .c = (char *)table + (size_t)r->at * (as == NN_GPU_BF16 || as == NN_GPU_FP16 ? 2 : 4),
                                          .c_m = step(c->size),
                                          .c_n = { r->inner, r->outer_step, 1 } });
    }
    nn_cuda_group_run(&all);
    nn_cuda_table_made(e);
    return table;
}

static bool product_run(nn_engine *e, const nn_cuda_conv *c, const nn_cuda_chunk *k, bool turned, nn_gpu_so2 *a)
{
    bool done;

    a->table = table_make(e, c, k, turned, a->precision);
    nn_cuda_lap(e, turned ? NN_OP_RADIAL_BACK : NN_OP_RADIAL);
    done = e->ops->so2(e->gpu, a);
    nn_cuda_table_read(e);
    nn_cuda_lap(e, turned ? NN_OP_EDGES_BACK : NN_OP_EDGES);
    return done;
}

void nn_cuda_product(nn_engine *e, const nn_cuda_conv *c, const nn_cuda_chunk *k, bool turned, const float *x, float *y)
{
    nn_gpu_so2 a = k->units ? so2_by_units(e, c, turned) : so2_of(e, c, k, turned);

    a.x = x;
    a.y = y;
    if (product_run(e, c, k, turned, &a))
        return;
    a.precision = NN_GPU_FP32;
    product_run(e, c, k, turned, &a);
}

bool nn_cuda_conv_fused(nn_engine *e, const nn_cuda_conv *c, const nn_cuda_chunk *k, nn_gpu_conv *all)
{
    bool done;

    all->s = k->units ? so2_by_units(e, c, false) : so2_of(e, c, k, false);
    if (e->parts || all->s.precision == NN_GPU_FP32)
        return false;
    all->s.y = all->q.y;
    all->s.table = table_make(e, c, k, false, all->s.precision);
    nn_cuda_lap(e, NN_OP_RADIAL);
    done = e->ops->conv(e->gpu, all);
    nn_cuda_table_read(e);
    nn_cuda_lap(e, NN_OP_EDGES);
    return done;
}

/* In exact mode a cell has one pair. */
int32_t nn_cuda_slots(const nn_engine *e, int32_t rows)
{
    return e->prep.radial == NN_RADIAL_EXACT ? 0 : (rows + NN_GPU_OUTER - 1) / NN_GPU_OUTER;
}

void nn_cuda_outer(const nn_engine *e, const nn_cuda_radial *to, const nn_cuda_conv *c, const nn_cuda_chunk *k, float *dy)
{
    nn_gpu_so2 a = so2_of(e, c, k, false);

    a.slots = nn_cuda_slots(e, a.end_row - a.first_row);
    a.x = to->x;
    a.y = dy;
    a.table = to->dtable;
    a.work = to->outer;
    e->ops->so2_outer(e->gpu, &a);
}

/* Gradient of hidden vectors from a region of a chunk's table. On tensor cores the sum is split even if it is short, because
 * the warps of gemm_thin share its parts. */
static nn_gpu_gemm hidden_back_of(const nn_engine *e, const nn_cuda_radial *to, const nn_cuda_conv *c, const nn_cuda_chunk *k,
                                  const nn_cuda_region *r)
{
    const nn_gpu_axis cols = { r->inner, r->outer_step, 1 }, rows = step(c->size);
    nn_gpu_precision precision = radial_back_of(e->conf.of_radial);
    int32_t splits = splits_of(k->n_nodes, NN_GPU_H, r->count, precision);
    bool cut = splits == 1 && r->count > 64 && k->n_nodes <= 32 * NN_CUDA_BLOCKS && precision != NN_GPU_FP32;

    return (nn_gpu_gemm){ .m = k->n_nodes,
                          .n = NN_GPU_H,
                          .k = r->count,
                          .splits = cut ? 2 : splits,
                          .add = true,
                          .precision = precision,
                          .a = to->dtable + r->at,
                          .a_m = rows,
                          .a_k = cols,
                          .b = e->fold + c->fold[0] + r->at,
                          .b_k = cols,
                          .b_n = rows,
                          .c = e->dh + ((int64_t)r->net * e->prep.n_nodes + k->node) * NN_GPU_H,
                          .c_m = step(NN_GPU_H),
                          .c_n = one };
}

/* Gradient of the region's part of the folded matrix. */
static nn_gpu_gemm fold_back_of(const nn_engine *e, const nn_cuda_radial *to, const nn_cuda_conv *c, const nn_cuda_chunk *k,
                                const nn_cuda_region *r)
{
    const nn_gpu_axis cols = { r->inner, r->outer_step, 1 }, rows = step(c->size);

    return (nn_gpu_gemm){ .m = NN_GPU_H,
                          .n = r->count,
                          .k = k->n_nodes,
                          .splits = 1,
                          .add = k->first > 0,
                          .sums = true,
                          .by = e->by[NN_CUDA_OF_TABLES_BACK],
                          .precision = radial_back_of(e->conf.of_radial),
                          .a = e->h + ((int64_t)r->net * e->prep.n_nodes + k->node) * NN_GPU_H,
                          .a_m = one,
                          .a_k = step(NN_GPU_H),
                          .b = to->dtable + r->at,
                          .b_k = rows,
                          .b_n = cols,
                          .c = to->dfold + r->at,
                          .c_m = rows,
                          .c_n = cols };
}

/* Gradients of the folded matrix and of the hidden vectors from those of a chunk's table. Consecutive regions of a network add
 * to the same vectors, so two of them are never in one launch. */
void nn_cuda_table_back(const nn_engine *e, const nn_cuda_radial *to, const nn_cuda_conv *c, const nn_cuda_chunk *k)
{
    nn_cuda_group all = { .e = e, .work = to->work };

    for (int i = 0; i < c->n_regions; i++) {
        nn_gpu_gemm of_hidden = hidden_back_of(e, to, c, k, &c->region[0][i]);
        bool full = all.used + (int64_t)of_hidden.splits * of_hidden.m * of_hidden.n > NN_CUDA_RADIAL_WORK;
        if (full || (i && c->region[0][i].net == c->region[0][i - 1].net))
            nn_cuda_group_run(&all);
        nn_cuda_join(&all, fold_back_of(e, to, c, k, &c->region[0][i]));
        nn_cuda_join(&all, of_hidden);
    }
    nn_cuda_group_run(&all);
}
