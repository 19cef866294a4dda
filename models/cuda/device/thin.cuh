/* models/cuda/device/thin.cuh - products on tensor cores with a long sum and a small result (gradients of weights, op 10, docs/model.md 8), or with
 * a result that is small in one direction and wide in the other (gradients of folded matrices, op 5).
 *
 * c[m][n] (=, +=) sum over k of a[m][k] b[k][n], m or n <= THIN_MAX.
 *   grid    one dimension, as in gemm.cuh
 *   warp    32 x 32 numbers of c, THIN_K numbers of k a step. Normally all warps of a block have the same numbers of c and
 *           every eighth step each; their sums are added in order. If c is wide, the warps have adjacent columns
 *   lane    lane 4 i + j reads, four at a time, rows 4 i .. 4 i + 3 of both operands at 4 j .. 4 j + 3 of k
 *   shared  part [warp 8][group 8][lane 32][4] floats: the sums of the warps, at the end
 * The assignment of rows and k to fragments is free as long as both operands agree, so what a lane reads is its part of the
 * fragments: operands do not pass through shared memory, no warp waits for another, and eight loads of a lane are in flight. */
#ifndef NN_CUDA_THIN_CUH
#define NN_CUDA_THIN_CUH

enum { THIN_TILE = 32, THIN_K = 16, THIN_WARPS = GEMM_THREADS / 32, THIN_PER = THIN_WARPS * THIN_K, THIN_MAX = 64 };

/* Blocks on a multiprocessor with 16-bit numbers: only on sm_90 and later do three blocks leave enough registers. */
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ < 900
enum { THIN_BLOCKS = 2 };
#else
enum { THIN_BLOCKS = 3 };
#endif

/* A warp's tile and its part of the sum: THIN_K numbers from k on, then from k + by on, .., up to k_end. */
typedef struct thin_part {
    int m, n, split, k, k_end, by;
} thin_part;

static __device__ __forceinline__ thin_part thin_open(const gemm_product &g, unsigned at)
{
    int warp = (int)threadIdx.x / 32, cols = g.wide ? THIN_WARPS * THIN_TILE : THIN_TILE, begin;
    unsigned across = (unsigned)(g.n + cols - 1) / (unsigned)cols, down = ((unsigned)g.m + THIN_TILE - 1) / THIN_TILE;
    unsigned row = across == 1 ? at : at / across, split = down == 1 ? row : row / down;
    thin_part p;

    p.n = (int)(at - row * across) * cols + (g.wide ? warp * THIN_TILE : 0);
    p.m = (int)(row - split * down) * THIN_TILE;
    p.split = (int)split;
    begin = p.split * g.per;
    p.k = begin + (g.wide ? 0 : warp * THIN_K);
    p.k_end = begin + g.per < g.k ? begin + g.per : g.k;
    p.by = g.wide ? THIN_K : THIN_PER;
    return p;
}

/* How operands are read: ALONG: four at a time along rows. ACROSS: four at a time along k; the k axes of both are divided
 * alike, and rows have equal distances. STRAIGHT: as ACROSS, with k axes that are not divided. */
enum { THIN_ALONG, THIN_ACROSS, THIN_STRAIGHT };

/* The offsets at[i] of this lane's four rows of an operand (ALONG: all are at[0]). Number k of the sum is k * step +
 * k / inner * jump further on. 32-bit integers, so that an address is one instruction. */
typedef struct thin_side {
    int at[4], step, jump;
} thin_side;

static __device__ __forceinline__ int thin_row(void)
{
    return (int)threadIdx.x % 32 / 4 * 4;
}

static __device__ __forceinline__ int thin_k(void)
{
    return (int)threadIdx.x % 4 * 4;
}

/* Rows past the last one are replaced by rows before it; those sums are never stored. FOURS: the number of rows is a
 * multiple of four. */
template <int HOW, bool FOURS>
static __device__ __forceinline__ thin_side thin_side_of(const gemm_axis &rows, int first, int end, const gemm_axis &k)
{
    thin_side s = { { 0 }, k.inner_step, k.magic ? k.outer_step - k.inner * k.inner_step : 0 };

    first = first < end ? first : (end - 1) / 4 * 4;
    s.at[0] = (int)axis_at(rows, first) + (HOW == THIN_STRAIGHT ? thin_k() : 0);
UNROLL
    for (int i = 1; i < 4; i++)
        s.at[i] = s.at[0] + (HOW != THIN_ALONG && (FOURS || first + i < end) ? i * rows.inner_step : 0);
    return s;
}

/* Loads this lane's 4 x 4 numbers of the step that begins at k: v[k][row] if ALONG, else v[row][k]; zeros past the end of
 * k. outer: k / inner of its four k. WHOLE: the step does not reach the end. */
template <int HOW, bool WHOLE>
static __device__ __forceinline__ void thin_get(const float *x, const thin_side &s, const int outer[4], int k, int k_end,
                                                float v[4][4])
{
UNROLL
    for (int i = 0; i < 4; i++) {
        int of_k = HOW == THIN_ALONG ? i : 0, at = k + thin_k() + of_k;
        if (!WHOLE)
            v[i][0] = v[i][1] = v[i][2] = v[i][3] = 0;
        if (WHOLE || at < k_end)
            load4(v[i], x + (s.at[i - of_k] + (HOW == THIN_STRAIGHT ? k : at * s.step + outer[of_k] * s.jump)));
    }
}

/* The same for any strides, one number at a time: v[row][k]. */
static __device__ __forceinline__ void thin_get_singly(const float *x, const gemm_axis &rows, int first, int end,
                                                       const gemm_axis &along, int k, int k_end, float v[4][4])
{
    int at[4];

UNROLL
    for (int q = 0; q < 4; q++)
        at[q] = (int)axis_at(along, k + q);
UNROLL
    for (int i = 0; i < 4; i++) {
        int row = (int)axis_at(rows, first + i);
UNROLL
        for (int q = 0; q < 4; q++)
            v[i][q] = first + i < end && k + q < k_end ? x[row + at[q]] : 0;
    }
}

/* A lane's 4 x 4 numbers as words: for each place along k one word of each of four rows; with bf16x3 also the rounding
 * remainders. */
template <int P> struct thin_words {
    uint32_t v[1 + mma_kind<P>::x3][4 / mma_kind<P>::per][4];
};

template <int P, bool ALONG> static __device__ __forceinline__ void thin_turn(const float v[4][4], thin_words<P> *to)
{
    const int per = mma_kind<P>::per, x3 = mma_kind<P>::x3;

UNROLL
    for (int q = 0; q < 16 / per; q++) {
        int row = q % 4, k = q / 4 * per, last = k + per - 1;
        float x = ALONG ? v[k][row] : v[row][k], y = ALONG ? v[last][row] : v[row][last];
        uint32_t w = word_of<P>(x, y);
        to->v[0][q / 4][row] = w;
        if (x3)
            to->v[x3][q / 4][row] = word_rest(x, y, w);
    }
}

/* acc[4 i + j] += rows 2 i, 2 i + 1 of a lane's a times row j of its b. */
template <int P>
static __device__ __forceinline__ void thin_step(float acc[8][4], const thin_words<P> &a, const thin_words<P> &b)
{
    const int words = 1 + mma_kind<P>::x3;

UNROLL
    for (int k = 0; k < 4 / mma_kind<P>::per; k += 2)
UNROLL
        for (int q = 0; q < 8; q++) {
            uint32_t fa[words][4], fb[words][2];
UNROLL
            for (int w = 0; w < 4 * words; w++)
                fa[w / 4][w % 4] = a.v[w / 4][k + w / 2 % 2][q / 4 * 2 + w % 2];
UNROLL
            for (int w = 0; w < 2 * words; w++)
                fb[w / 2][w % 2] = b.v[w / 2][k + w % 2][q % 4];
            mma_words_step<P>(acc[q], fa, fb);
        }
}

/* Adds a step. All its loads are in flight together; other warps hide their latency, so nothing is prefetched. */
template <int P, int HOW, bool WHOLE>
static __device__ __forceinline__ void thin_add(const gemm_product &g, const thin_side &a, const thin_side &b, int k, int k_end,
                                                float acc[8][4])
{
    float va[4][4], vb[4][4];
    thin_words<P> wa, wb;
    int outer[4];

UNROLL
    for (int q = 0; q < 4; q++)
        outer[q] = axis_outer(g.a_k, k + thin_k() + q);
    thin_get<HOW, WHOLE>(g.a, a, outer, k, k_end, va);
    thin_get<HOW, WHOLE>(g.b, b, outer, k, k_end, vb);
    thin_turn<P, HOW == THIN_ALONG>(va, &wa);
    thin_turn<P, HOW == THIN_ALONG>(vb, &wb);
    thin_step<P>(acc, wa, wb);
}

template <int P, int HOW>
static __device__ __forceinline__ void thin_sum(const gemm_product &g, const thin_part &p, float acc[8][4])
{
    thin_side a = thin_side_of<HOW, false>(g.a_m, p.m + thin_row(), g.m, g.a_k);
    thin_side b = thin_side_of<HOW, HOW == THIN_STRAIGHT>(g.b_n, p.n + thin_row(), g.n, g.b_k);
    int k = p.k;

UNROLL_BY(1)
    for (; k + THIN_K <= p.k_end; k += p.by)
        thin_add<P, HOW, true>(g, a, b, k, p.k_end, acc);
    if (k < p.k_end)
        thin_add<P, HOW, false>(g, a, b, k, p.k_end, acc);
}

template <int P>
static __device__ __forceinline__ void thin_sum_singly(const gemm_product &g, const thin_part &p, float acc[8][4])
{
    int m = p.m + thin_row(), n = p.n + thin_row(), first = thin_k();

UNROLL_BY(1)
    for (int k = p.k + first; k - first < p.k_end; k += p.by) {
        float v[4][4];
        thin_words<P> wa, wb;
        thin_get_singly(g.a, g.a_m, m, g.m, g.a_k, k, p.k_end, v);
        thin_turn<P, false>(v, &wa);
        thin_get_singly(g.b, g.b_n, n, g.n, g.b_k, k, p.k_end, v);
        thin_turn<P, false>(v, &wb);
        thin_step<P>(acc, wa, wb);
    }
}

/* ---- results: part q of a warp's tile is a group of four numbers of every lane ---- */

static __device__ __forceinline__ void thin_four_of(const float acc[8][4], int q, float v[4])
{
UNROLL
    for (int j = 0; j < 4; j++)
        v[j] = acc[q / 4 * 4 + j][q / 2 % 2 * 2 + q % 2];
}

static __device__ __forceinline__ void thin_four_put(float *c, bool add, const float v[4])
{
    float old[4] = { 0, 0, 0, 0 };

    if (add)
        load4(old, c);
UNROLL
    for (int j = 0; j < 4; j++)
        old[j] += v[j];
    store4(c, old);
}

template <bool PLAIN>
static __device__ __forceinline__ void thin_put(const gemm_product &g, float *c, const thin_part &p, int q, const float v[4])
{
    int lane = (int)threadIdx.x % 32, row = p.m + thin_row() + q / 2, col = p.n + lane % 4 * 8 + q % 2 * 4;

    if (row >= g.m || col >= g.n)
        return;
    if (PLAIN) {
        thin_four_put(c + (row * g.c_m.inner_step + col), g.add, v);
        return;
    }
    c += axis_at(g.c_m, row);
    if (g.c_fours) {
        thin_four_put(c + axis_at(g.c_n, col), g.add, v);
        return;
    }
UNROLL
    for (int j = 0; j < 4; j++)
        if (col + j < g.n) {
            float *to = c + axis_at(g.c_n, col + j);
            *to = g.add ? *to + v[j] : v[j];
        }
}

/* Map and shared memory: the head of this file. P: precision. PLAIN: all products of the launch are read and written four
 * numbers at a time, and their addresses need no division.
 * Equals: the dW of linear_backward (models/ref/layers.inc); for folded matrices the dW and dh of path_backward
 * (models/ref/conv.inc). */
template <int P, bool PLAIN>
__global__ void __launch_bounds__(GEMM_THREADS, PLAIN && mma_kind<P>::per == 2 && !mma_kind<P>::x3 ? THIN_BLOCKS : 2)
    gemm_thin(const __grid_constant__ gemm_group s)
{
    __shared__ __align__(16) float part[THIN_WARPS][8][32][4];
    int i = gemm_find(s), warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const gemm_product &g = s.product[i];
    thin_part p = thin_open(g, blockIdx.x - (unsigned)s.block[i]);
    float acc[8][4] = { { 0 } }, v[4], sum[4];

    if (!PLAIN && !g.a_fours)
        thin_sum_singly<P>(g, p, acc);
    else if (g.a_along)
        thin_sum<P, THIN_ALONG>(g, p, acc);
    else
        thin_sum<P, PLAIN ? THIN_STRAIGHT : THIN_ACROSS>(g, p, acc);
    if (g.wide) {
UNROLL
        for (int q = 0; q < 8; q++) {
            thin_four_of(acc, q, v);
            thin_put<PLAIN>(g, (float *)g.c, p, q, v);
        }
        return;
    }
UNROLL
    for (int q = 0; q < 8; q++) {
        thin_four_of(acc, q, v);
        store4(part[warp][q][lane], v);
    }
    __syncthreads();
    load4(sum, part[0][warp][lane]);
UNROLL
    for (int other = 1; other < THIN_WARPS; other++) {
        load4(v, part[other][warp][lane]);
UNROLL
        for (int j = 0; j < 4; j++)
            sum[j] += v[j];
    }
    thin_put<PLAIN>(g, (float *)g.c + (int64_t)p.split * g.m * g.n, p, warp, sum);
}

#endif
