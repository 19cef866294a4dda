/* models/cuda/device/group.cuh - converts the caller's products (nn_gpu_gemm) to those of the kernels, and chooses the kernel of
 * each: gemm.cuh, thin.cuh, row_products.cuh or tables.cuh. Host code. */
#ifndef NN_CUDA_GROUP_CUH
#define NN_CUDA_GROUP_CUH

/* Division by multiplication, exact for i < 2^31: l = bits of inner - 1, magic = ceil(2^(31 + l) / inner) = (2^(31 + l) + e) /
 * inner with e < inner <= 2^l, so i * magic / 2^(31 + l) exceeds i / inner by i e / (inner 2^(31 + l)) < 1 / inner. */
static gemm_axis axis_of(const nn_gpu_axis *x, int64_t extent)
{
    gemm_axis a = { 0, 0, x->inner, (int32_t)x->outer_step, (int32_t)x->inner_step };
    int l = 0;

    if (extent <= x->inner)
        return a;
    if (x->inner == 1) {
        a.inner_step = a.outer_step;
        return a;
    }
    while ((int64_t)1 << l < x->inner)
        l++;
    a.magic = (uint32_t)((((uint64_t)1 << (31 + l)) + (uint64_t)x->inner - 1) / (uint64_t)x->inner);
    a.shift = l - 1;
    return a;
}

/* Whether groups of `wide` adjacent numbers are aligned to their size: along this axis (along), or while moving along it. */
static bool axis_wide(const gemm_axis *x, int extent, bool along, int wide)
{
    bool whole = !x->magic;

    if (along)
        return x->inner_step == 1 && extent % wide == 0 && (whole || (x->inner % wide == 0 && x->outer_step % wide == 0));
    return x->inner_step % wide == 0 && (whole || x->outer_step % wide == 0);
}

static bool operand_fours(const float *p, const gemm_axis *row, int rows, const gemm_axis *k, int n_k, bool along)
{
    return (uintptr_t)p % 16 == 0 && axis_wide(row, rows, along, 4) && axis_wide(k, n_k, !along, 4);
}

static bool result_wide(const gemm_product *p, int wide)
{
    return (uintptr_t)p->c % (4 * (unsigned)wide) == 0 && axis_wide(&p->c_m, p->m, false, wide)
        && axis_wide(&p->c_n, p->n, true, wide);
}

/* begun: the product to which this one is added, or NULL; a_along and b_along are then copied from it, which is always
 * possible, because any operand can be read either way one number at a time. */
static gemm_product product_of(const nn_gpu_gemm *g, const gemm_product *begun)
{
    int per = (g->k + g->splits - 1) / g->splits;
    gemm_product p = {};

    p.m = g->m;
    p.n = g->n;
    p.k = g->k;
    p.splits = g->splits;
    p.per = (per + SPLIT_K - 1) / SPLIT_K * SPLIT_K;
    p.add = g->add;
    p.more = g->more;
    p.c_as = g->c_as;
    p.a_m = axis_of(&g->a_m, g->m);
    p.a_k = axis_of(&g->a_k, g->k);
    p.b_k = axis_of(&g->b_k, g->k);
    p.b_n = axis_of(&g->b_n, g->n);
    p.c_m = axis_of(&g->c_m, g->m);
    p.c_n = axis_of(&g->c_n, g->n);
    p.a = g->a;
    p.b = g->b;
    p.c = g->c;
    p.work = g->work;
    p.a_along = begun ? begun->a_along : p.a_m.inner_step == 1;
    p.b_along = begun ? begun->b_along : p.b_n.inner_step == 1;
    p.a_fours = operand_fours(p.a, &p.a_m, p.m, &p.a_k, p.k, p.a_along);
    p.b_fours = operand_fours(p.b, &p.b_n, p.n, &p.b_k, p.k, p.b_along);
    p.pairs = result_wide(&p, 2);
    p.c_fours = result_wide(&p, 4);
    return p;
}

/* The same product with its splits written to work, one after the other. */
static gemm_product product_parts(gemm_product p)
{
    p.c = p.work;
    p.c_m = gemm_axis{ 0, 0, 0, 0, p.n };
    p.c_n = gemm_axis{ 0, 0, 0, 0, 1 };
    p.c_as = NN_GPU_FP32;
    p.add = false;
    p.pairs = result_wide(&p, 2) && p.n % 2 == 0;
    p.c_fours = result_wide(&p, 4) && p.n % 4 == 0;
    return p;
}

/* ---- products of thin.cuh ---- */

/* An upper bound of the offsets on an axis and of the terms they are computed from (thin_side). */
static int64_t axis_reach(const gemm_axis *x, int64_t extent)
{
    int64_t groups = x->magic ? extent / x->inner : 0;

    return llabs(extent * x->inner_step) + llabs(groups * (x->outer_step - (int64_t)x->inner * x->inner_step));
}

/* Whether gemm_thin computes it: a gradient that is small in one direction, with offsets that fit into 32 bits. Products
 * whose rows must not depend on the number of rows never qualify: one operand is along and the other is not, or neither is
 * and the sum has no splits. The exception, sums of one number, is the same in either kernel. */
static bool product_thin(const gemm_product *p)
{
    bool gradient = p->a_along == p->b_along && (p->a_along || p->splits > 1) && !p->more && p->c_as == NN_GPU_FP32;

    return gradient && (p->m <= THIN_MAX || p->n <= THIN_MAX)
        && axis_reach(&p->a_m, p->m) + axis_reach(&p->a_k, p->k) < INT32_MAX
        && axis_reach(&p->b_n, p->n) + axis_reach(&p->b_k, p->k) < INT32_MAX;
}

/* Whether it reads both operands four numbers at a time. */
static bool thin_fours(const gemm_product *p)
{
    const gemm_axis *a = &p->a_k, *b = &p->b_k;
    bool alike = a->magic == b->magic && (!a->magic || (a->shift == b->shift && a->inner == b->inner));
    bool equal = p->a_along || (!p->a_m.magic && !p->b_n.magic);

    return p->a_fours && p->b_fours && alike && equal;
}

static gemm_product product_as_thin(gemm_product p)
{
    p.a_fours = p.b_fours = thin_fours(&p);
    p.per = (p.per + THIN_PER - 1) / THIN_PER * THIN_PER;
    p.wide = p.splits == 1 && p.n >= THIN_WARPS * THIN_TILE;
    return p;
}

static bool thin_plain(const gemm_group *s)
{
    bool plain = true;

    for (int32_t i = 0; i < s->n; i++) {
        const gemm_product *p = &s->product[i];
        plain = plain && p->a_fours && p->c_fours && (p->a_along || !p->a_k.magic) && !p->c_m.magic && !p->c_n.magic
            && axis_reach(&p->c_m, p->m) + axis_reach(&p->c_n, p->n) < INT32_MAX;
    }
    return plain;
}

static int64_t thin_blocks(const gemm_product *p)
{
    int64_t cols = p->wide ? THIN_WARPS * THIN_TILE : THIN_TILE;

    return (p->n + cols - 1) / cols * ((p->m + THIN_TILE - 1) / THIN_TILE) * p->splits;
}

/* ---- products of row_products.cuh ---- */

/* Whether gemm_rows computes it and those added to it. The choice depends neither on m nor on the addresses of operands, so
 * a row's result does not depend on the batch. */
static bool products_rows(const nn_gpu_gemm *a)
{
    int chunks = 0;

    for (bool more = true; more; more = a++->more) {
        chunks += (a->k + ROWS_CHUNK - 1) / ROWS_CHUNK;
        if (a->splits > 1 || a->n > ROWS_WIDE || a->k < 1 || a->c_as != NN_GPU_FP32)
            return false;
    }
    return chunks <= ROWS_CHUNKS;
}

static gemm_product product_as_rows(gemm_product p)
{
    p.a_along = false;
    p.a_fours = operand_fours(p.a, &p.a_m, p.m, &p.a_k, p.k, false);
    return p;
}

static bool rows_plain(const gemm_group *s)
{
    bool plain = true;

    for (int32_t i = 0; i < s->n; i++) {
        const gemm_product *p = &s->product[i];
        plain = plain && p->a_fours && p->pairs && !p->a_k.magic && !p->b_k.magic && !p->b_n.magic && !p->c_n.magic
            && axis_reach(&p->b_n, p->n) + axis_reach(&p->b_k, p->k) < INT32_MAX;
    }
    return plain;
}

static bool rows_few(const gemm_group *s)
{
    int max = 0, chunks = 0;

    for (int32_t i = 0; i < s->n; i++) {
        chunks += (s->product[i].k + ROWS_CHUNK - 1) / ROWS_CHUNK;
        max = chunks > max ? chunks : max;
        chunks = s->product[i].more ? chunks : 0;
    }
    return max <= ROWS_FEW;
}

static int64_t rows_blocks(const gemm_product *p)
{
    return (int64_t)((p->n + ROWS_COLS - 1) / ROWS_COLS) * ((p->m + ROWS_DOWN - 1) / ROWS_DOWN);
}

/* ---- products of tables.cuh ---- */

/* Whether gemm_tables computes it. The choice does not depend on m: rows have equal distances, whatever their number. */
static bool product_tables(const gemm_product *p)
{
    bool few = p->a_m.inner == INT32_MAX && p->c_m.inner == INT32_MAX && p->splits == 1 && !p->more && !p->add;
    bool fours = !p->a_along && p->b_along && p->a_fours && p->b_fours && !p->a_k.magic && !p->b_k.magic;

    return few && fours && p->k == TABLES_K && p->n > ROWS_WIDE && (uintptr_t)p->c % 16 == 0
        && axis_wide(&p->c_m, p->m, false, TABLES_MANY) && axis_wide(&p->c_n, p->n, true, TABLES_MANY);
}

static bool tables_same(const gemm_group *s, nn_gpu_precision as)
{
    bool same = true;

    for (int32_t i = 0; i < s->n; i++)
        same = same && s->product[i].c_as == as;
    return same;
}

static int64_t tables_blocks(const gemm_product *p)
{
    return (int64_t)((p->n + TABLES_COLS - 1) / TABLES_COLS) * ((p->m + TABLES_DOWN - 1) / TABLES_DOWN);
}

#endif
