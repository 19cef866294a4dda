/* models/cuda/device/gemm.cuh - matrix products with arbitrary strides, ops 5, 10 and 13 (docs/model.md 8).
 *
 * c[m][n] (=, +=) sum over k of a[m][k] b[k][n]. One launch computes a group of products.
 *   grid    one dimension: blocks block[i] .. block[i+1]-1 belong to product i (gemm_find, gemm_open)
 *   block   256 threads; 64 x 64 numbers of c at a time: in float32 4 x 4 a thread, on tensor cores 32 x 16 for each of
 *           the 8 warps
 *   shared  one tile of a and one of b: gemm_side [k 16][row 64 + 4] floats, or mma_side (mma.cuh) words
 * Numbers for the next part of k are loaded while the current part is multiplied. The order of the sum over k does not
 * depend on m. Sums are short here (16 to 48 numbers; thin.cuh computes most gradients, which have long ones), so the cost
 * of addresses matters: addresses of rows are computed once, and divisions are replaced by multiplications. */
#ifndef NN_CUDA_GEMM_CUH
#define NN_CUDA_GEMM_CUH

enum { GEMM_TILE = 64, GEMM_K = 16, GEMM_THREADS = 256, SPLIT_K = 32, PARTS_WIDE = 32, GEMM_BLOCKS = 396, GEMM_DOWN = 8 };

/* i / inner is the high half of i * magic, shifted right; magic 0: i / inner is always 0 (the axis is not divided). */
typedef struct gemm_axis {
    uint32_t magic;
    int32_t shift, inner, outer_step, inner_step;
} gemm_axis;

/* a_along, b_along: the operand is contiguous along its rows (m or n), not along k. a_fours, b_fours: it can be read 16
 * bytes at a time. pairs, c_fours: two or four adjacent numbers of c (or work) can be written at a time. more: the product
 * of the next entry is added. per: numbers of k in a split. rows: rows of a block, a multiple of GEMM_TILE. wide: see
 * thin.cuh. */
typedef struct gemm_product {
    int32_t m, n, k, splits, per, rows;
    bool add, more, a_along, b_along, a_fours, b_fours, pairs, c_fours, wide;
    nn_gpu_precision c_as;
    gemm_axis a_m, a_k, b_k, b_n, c_m, c_n;
    const float *a, *b;
    void *c;
    float *work;
} gemm_product;

/* block[i]: the first block of product i; entries past the last product repeat the end. plain, few: see row_products.cuh, thin.cuh. */
typedef struct gemm_group {
    int32_t n, block[NN_GPU_GROUP + 1];
    bool plain, few;
    gemm_product product[NN_GPU_GROUP];
} gemm_group;

static_assert(sizeof(gemm_group) <= 4096, "more arguments than a kernel takes");

static __device__ __forceinline__ int axis_outer(const gemm_axis &x, int i)
{
    return (int)((uint32_t)((uint64_t)(uint32_t)i * x.magic >> 32) >> x.shift);
}

static __device__ __forceinline__ int64_t axis_at(const gemm_axis &x, int i)
{
    int q = axis_outer(x, i);

    return (int64_t)q * x.outer_step + (int64_t)(i - q * x.inner) * x.inner_step;
}

/* This thread's part of a tile of 64 rows and K numbers along k: row and k of its groups of four. */
template <int K> static __device__ __forceinline__ void part_of(bool along, int i, int *row, int *k)
{
    int t = (int)threadIdx.x;

    *row = along ? t % 16 * 4 : t / (K / 4) + GEMM_THREADS / (K / 4) * i;
    *k = along ? t / 16 * (K / 16) + i : t % (K / 4) * 4;
}

/* ---- which product, which part of it ------------------------------------------------- */

typedef struct gemm_part {
    int m, m_end, n, split, k, k_end; /* rows from m on, columns from n on */
} gemm_part;

static __device__ __forceinline__ int gemm_find(const gemm_group &s)
{
    int found = 0;

UNROLL
    for (int i = 1; i < NN_GPU_GROUP; i++)
        found += (int)blockIdx.x >= s.block[i];
    return found;
}

static __device__ __forceinline__ gemm_part gemm_open(const gemm_product &g, int at)
{
    int across = (g.n + GEMM_TILE - 1) / GEMM_TILE, down = (g.m + g.rows - 1) / g.rows;
    gemm_part p;

    p.n = at % across * GEMM_TILE;
    p.m = at / across % down * g.rows;
    p.m_end = p.m + g.rows < g.m ? p.m + g.rows : g.m;
    p.split = at / across / down;
    p.k = p.split * g.per;
    p.k_end = p.k + g.per < g.k ? p.k + g.per : g.k;
    return p;
}

/* This thread's groups of four in one operand's tile of 64 rows and K numbers along k. */
template <int K, bool ALONG> struct feed {
    enum { rows = ALONG ? 1 : K / 16 };
    const float *p[rows]; /* its rows; NULL past the last */
    int row, k;
};

template <int K, bool ALONG>
static __device__ __forceinline__ feed<K, ALONG> feed_open(const float *p, const gemm_axis &rows, int first, int end)
{
    feed<K, ALONG> f;

UNROLL
    for (int i = 0; i < feed<K, ALONG>::rows; i++) {
        int row;
        part_of<K>(ALONG, i, &row, &f.k);
        f.row = first + row;
        f.p[i] = f.row < end ? p + axis_at(rows, f.row) : NULL;
    }
    return f;
}

/* Reads four numbers one by one; `here`: the address of the first. */
template <bool ALONG>
static __device__ __forceinline__ void four_get(const float *here, const gemm_axis &x, int at, int end, float v[4])
{
    int64_t first = ALONG ? axis_at(x, at) : 0;

UNROLL
    for (int q = 0; q < 4; q++)
        if (at + q < end)
            v[q] = here[axis_at(x, at + q) - first];
}

/* Loads numbers k0 .. k0+K-1 along k; zeros past the end of k and of the rows. */
template <int K, bool ALONG>
static __device__ __forceinline__ void feed_get(const feed<K, ALONG> &f, const gemm_axis &rows, int end, const gemm_axis &k,
                                                int k0, int k_end, bool fours, float v[K / 16][4])
{
UNROLL
    for (int i = 0; i < K / 16; i++) {
        const float *p = f.p[ALONG ? 0 : i];
        int at = k0 + f.k + (ALONG ? i : 0);
UNROLL
        for (int q = 0; q < 4; q++)
            v[i][q] = 0;
        if (!p || at >= k_end)
            continue;
        if (fours)
            load4(v[i], p + axis_at(k, at));
        else if (ALONG)
            four_get<true>(p + axis_at(k, at), rows, f.row, end, v[i]);
        else
            four_get<false>(p, k, at, k_end, v[i]);
    }
}

/* ---- results ---- */

/* Stores a number in the format of tables. */
static __device__ __forceinline__ void number_put(void *c, int64_t at, float v, nn_gpu_precision as)
{
    if (as == NN_GPU_BF16)
        ((uint16_t *)c)[at] = (uint16_t)bf16_pair(v, 0);
    else if (as == NN_GPU_FP16)
        ((uint16_t *)c)[at] = (uint16_t)fp16_pair(v, 0);
    else if (as == NN_GPU_TF32)
        ((uint32_t *)c)[at] = tf32_round(v);
    else
        ((float *)c)[at] = v;
}

/* The offsets of a thread's numbers in c, -1: not stored; acc[i][j] belongs to row i and column j. Each split has a matrix
 * of its own. */
typedef struct gemm_places {
    int64_t row[4];
    int32_t col[4];
} gemm_places;

/* The offsets for rows row[i] and columns col[j], col[j] + 1 of the block. */
static __device__ __forceinline__ gemm_places places_of(const gemm_product &g, const gemm_part &p, const int row[4],
                                                        const int col[2])
{
    int64_t base = (int64_t)p.split * g.m * g.n;
    gemm_places to;

UNROLL
    for (int i = 0; i < 4; i++)
        to.row[i] = p.m + row[i] < g.m ? base + axis_at(g.c_m, p.m + row[i]) : -1;
UNROLL
    for (int j = 0; j < 4; j++) {
        int n = p.n + col[j / 2] + j % 2;
        to.col[j] = n < g.n ? (int32_t)axis_at(g.c_n, n) : -1;
    }
    return to;
}

static __device__ __forceinline__ void pairs_put(float *c, bool add, const gemm_places &to, const float acc[4][4])
{
UNROLL
    for (int q = 0; q < 8; q++) {
        const float *v = &acc[q / 2][q % 2 * 2];
        float *p = c + to.row[q / 2] + to.col[q % 2 * 2], old[2] = { 0, 0 };
        if (to.row[q / 2] < 0 || to.col[q % 2 * 2] < 0)
            continue;
        if (add)
            load2(old, p);
        store2(p, old[0] + v[0], old[1] + v[1]);
    }
}

static __device__ __forceinline__ void halves_put(uint16_t *c, bool bf16, const gemm_places &to, const float acc[4][4])
{
UNROLL
    for (int q = 0; q < 8; q++) {
        const float *v = &acc[q / 2][q % 2 * 2];
        if (to.row[q / 2] >= 0 && to.col[q % 2 * 2] >= 0)
            *(uint32_t *)(c + to.row[q / 2] + to.col[q % 2 * 2]) = bf16 ? bf16_pair(v[0], v[1]) : fp16_pair(v[0], v[1]);
    }
}

static __device__ __forceinline__ void numbers_put(const gemm_product &g, const gemm_places &to, const float acc[4][4])
{
UNROLL
    for (int q = 0; q < 16; q++) {
        int64_t at = to.row[q / 4] + to.col[q % 4];
        if (to.row[q / 4] < 0 || to.col[q % 4] < 0)
            continue;
        if (g.add)
            ((float *)g.c)[at] += acc[q / 4][q % 4];
        else
            number_put(g.c, at, acc[q / 4][q % 4], g.c_as);
    }
}

static __device__ __forceinline__ void gemm_put(const gemm_product &g, const gemm_part &p, const int row[4],
                                                const int col[2], const float acc[4][4])
{
    gemm_places to = places_of(g, p, row, col);

    if (!g.pairs || g.c_as == NN_GPU_TF32)
        numbers_put(g, to, acc);
    else if (g.c_as == NN_GPU_FP32)
        pairs_put((float *)g.c, g.add, to, acc);
    else
        halves_put((uint16_t *)g.c, g.c_as == NN_GPU_BF16, to, acc);
}

/* ---- float32 ---------------------------------------------------------------------------- */

typedef float gemm_side[GEMM_K][GEMM_TILE + 4];

static __device__ __forceinline__ void gemm_side_put(bool along, const float v[4], gemm_side to)
{
    int row, k;

    part_of<GEMM_K>(along, 0, &row, &k);
UNROLL
    for (int i = 0; i < 4; i++)
        to[along ? k : k + i][along ? row + i : row] = v[i];
}

static __device__ __forceinline__ void gemm_step(float acc[4][4], const float *a, const float *b)
{
UNROLL
    for (int i = 0; i < 4; i++)
UNROLL
        for (int j = 0; j < 4; j++)
            acc[i][j] += a[i] * b[j];
}

/* acc of product i and of the following ones that are added to it; these have the same a_along and b_along. */
template <bool A, bool B>
static __device__ __forceinline__ void fp32_block(const gemm_group &s, int i, gemm_part p, gemm_side a, gemm_side b,
                                                  float acc[4][4])
{
    float va[1][4], vb[1][4];
    bool more = true;

UNROLL_BY(1)
    for (; more; i++, p.k = 0, p.k_end = more ? s.product[i].k : 0) {
        const gemm_product &x = s.product[i];
        feed<GEMM_K, A> fa = feed_open<GEMM_K, A>(x.a, x.a_m, p.m, x.m);
        feed<GEMM_K, B> fb = feed_open<GEMM_K, B>(x.b, x.b_n, p.n, x.n);
        for (int k = p.k;; k += GEMM_K) { /* fetched while the one before is multiplied */
            feed_get(fa, x.a_m, x.m, x.a_k, k, p.k_end, x.a_fours, va);
            feed_get(fb, x.b_n, x.n, x.b_k, k, p.k_end, x.b_fours, vb);
UNROLL
            for (int kk = 0; kk < GEMM_K && k > p.k; kk++)
                gemm_step(acc, &a[kk][threadIdx.x / 16 * 4], &b[kk][threadIdx.x % 16 * 4]);
            __syncthreads();
            if (k >= p.k_end)
                break;
            gemm_side_put(A, va[0], a);
            gemm_side_put(B, vb[0], b);
            __syncthreads();
        }
        more = x.more;
    }
}

/* ---- tensor cores -------------------------------------------------------------------------- */

/* Rotates which of its four words a thread stores first: neighbours differ, to avoid bank conflicts. */
static __device__ __forceinline__ void words_turn(uint32_t w[4], int by)
{
    uint32_t u[4];

UNROLL
    for (int i = 0; i < 4; i++)
        u[i] = by & 1 ? w[(i + 1) % 4] : w[i];
UNROLL
    for (int i = 0; i < 4; i++)
        w[i] = by & 2 ? u[(i + 2) % 4] : u[i];
}

/* Stores groups of four that run along rows: one word in each of four rows. */
template <int P>
static __device__ __forceinline__ void side_put_along(const float v[mma_kind<P>::k / 16][4], mma_side<P> *to)
{
    const int second = mma_kind<P>::per - 1;
    int t = (int)threadIdx.x, row = t % 16 * 4, turn = t % 16 / 2 % 4;
    uint32_t high[4], low[4];

UNROLL
    for (int i = 0; i < 4; i++) {
        high[i] = word_of<P>(v[0][i], v[second][i]);
        low[i] = mma_kind<P>::x3 ? word_rest(v[0][i], v[second][i], high[i]) : 0;
    }
    words_turn(high, turn);
    words_turn(low, turn);
UNROLL
    for (int i = 0; i < 4; i++) {
        to->word[0][row + (i + turn) % 4][t / 16] = high[i];
        if (mma_kind<P>::x3)
            to->word[mma_kind<P>::x3][row + (i + turn) % 4][t / 16] = low[i];
    }
}

/* What a block multiplies next: the rows from m on and numbers k .. of product i. */
typedef struct gemm_walk {
    int i, m, k, k_end;
} gemm_walk;

static __device__ __forceinline__ gemm_walk walk_on(const gemm_group &s, const gemm_walk &w, int first, const gemm_part &p,
                                                      int by)
{
    if (w.k + by < w.k_end)
        return gemm_walk{ w.i, w.m, w.k + by, w.k_end };
    if (s.product[w.i].more)
        return gemm_walk{ w.i + 1, w.m, 0, s.product[w.i + 1].k };
    return gemm_walk{ first, w.m + GEMM_TILE, p.k, p.k_end };
}

static __device__ __forceinline__ void mma_put(const gemm_product &g, gemm_part p, int m, float acc[4][4])
{
    int row[4] = { mma_row(0, 0), mma_row(0, 1), mma_row(1, 0), mma_row(1, 1) }, col[2] = { mma_col(0), mma_col(1) };
    float by_row[4][4];

UNROLL
    for (int q = 0; q < 16; q++) {
        by_row[q / 4][q % 4] = acc[q / 8 * 2 + q / 2 % 2][q / 4 % 2 * 2 + q % 2];
        acc[q / 8 * 2 + q / 2 % 2][q / 4 % 2 * 2 + q % 2] = 0;
    }
    p.m = m;
    gemm_put(g, p, row, col, by_row);
}

template <int P> static __device__ __forceinline__ void side_get(const float *x, const gemm_axis &rows, int first, int end,
                                                                 const gemm_axis &k, const gemm_walk &w, bool along,
                                                                 bool fours, float v[mma_kind<P>::k / 16][4])
{
    const int K = mma_kind<P>::k;

    if (along) {
        feed<K, true> f = feed_open<K, true>(x, rows, first, end);
        feed_get(f, rows, end, k, w.k, w.k_end, fours, v);
    } else {
        feed<K, false> f = feed_open<K, false>(x, rows, first, end);
        feed_get(f, rows, end, k, w.k, w.k_end, fours, v);
    }
}

template <int P>
static __device__ __forceinline__ void side_put_all(bool along, const float v[mma_kind<P>::k / 16][4], mma_side<P> *to)
{
    const int K = mma_kind<P>::k, per = mma_kind<P>::per;

    if (along) {
        side_put_along<P>(v, to);
        return;
    }
UNROLL
    for (int i = 0; i < K / 16 * 4; i += per) {
        int row, k;
        part_of<K>(false, i / 4, &row, &k);
        side_put<P>(to, row, (k + i % 4) / per, v[i / 4][i % 4], v[i / 4][i % 4 + per - 1]);
    }
}

/* Ops 5, 10, 13 on tensor cores: all products that neither thin.cuh, row_products.cuh nor tables.cuh can compute. A block has
 * g.rows rows: several tiles, one below the other. The next tile is loaded while the current one is multiplied and stored.
 * Map and shared memory: the head of this file; lanes as in fragments (mma.cuh). P: precision. Equals: as gemm_fp32. */
template <int P>
__global__ void __launch_bounds__(GEMM_THREADS, mma_kind<P>::x3 || mma_kind<P>::per == 1 ? 2 : 3)
    gemm_mma(const __grid_constant__ gemm_group s)
{
    const int K = mma_kind<P>::k;
    __shared__ mma_side<P> a, b;
    int i = gemm_find(s);
    const gemm_product &g = s.product[i];
    gemm_part p = gemm_open(g, (int)blockIdx.x - s.block[i]);
    int below = (int)threadIdx.x / 128 * 32;
    bool still = !g.more && p.k_end - p.k <= K; /* all tiles have the same b */
    bool here = p.n + (int)threadIdx.x / 32 % 4 * 16 < g.n; /* else this warp has nothing to multiply */
    float acc[4][4] = { { 0 } }, va[K / 16][4], vb[K / 16][4];
    gemm_walk now = { i, -1, 0, 0 }, next = { i, p.m, p.k, p.k_end };

UNROLL_BY(1)
    for (;;) {
        const gemm_product &x = s.product[next.i];
        bool go_on = next.m < p.m_end, new_b = go_on && (!still || now.m < 0);
        if (go_on)
            side_get<P>(x.a, x.a_m, next.m, g.m, x.a_k, next, x.a_along, x.a_fours, va);
        if (new_b)
            side_get<P>(x.b, x.b_n, p.n, g.n, x.b_k, next, x.b_along, x.b_fours, vb);
        if (now.m >= 0 && here && now.m + below < g.m)
            mma_tile<P>(acc, a, b, false);
        if (now.m >= 0 && next.m != now.m && here && now.m + below < g.m)
            mma_put(g, p, now.m, acc);
        if (!go_on)
            return;
        __syncthreads();
        side_put_all<P>(x.a_along, va, &a);
        if (new_b)
            side_put_all<P>(x.b_along, vb, &b);
        __syncthreads();
        now = next;
        next = walk_on(s, now, i, p, K);
    }
}

#endif
