/* models/cuda/gemm.cuh - matrix products with any strides, ops 5, 10 and 13.
 *
 * A launch makes a group of products; a block 64 x 64 of one of them, in float32
 * by 256 threads with 4 x 4 each, or on tensor cores by 8 warps with 32 x 16 each.
 * Numbers for the next part of k are fetched while this one is multiplied. The sum
 * over k has one order, whatever m is. */
#ifndef NN_CUDA_GEMM_CUH
#define NN_CUDA_GEMM_CUH

enum { GEMM_TILE = 64, GEMM_K = 16, GEMM_THREADS = 256, SPLIT_K = 32 };

/* block[i]: the first of product i; vector[i]: 1 a, 2 b can be read 16 bytes at once. */
typedef struct gemm_group {
    int32_t n, block[NN_GPU_GROUP + 1], vector[NN_GPU_GROUP];
    nn_gpu_gemm product[NN_GPU_GROUP];
} gemm_group;

static_assert(sizeof(gemm_group) <= 4096, "more arguments than a kernel takes");

static __device__ __forceinline__ int64_t axis_at(const nn_gpu_axis &x, int i)
{
    if (i < x.inner)
        return (int64_t)i * x.inner_step;
    return (int64_t)(i / x.inner) * x.outer_step + (int64_t)(i % x.inner) * x.inner_step;
}

/* One operand: `row` is m for a and n for b; along: contiguous along rows, not along k. */
typedef struct operand {
    const float *p;
    nn_gpu_axis row, k;
    int first, rows, k_end;
    bool along, vector;
} operand;

/* Four numbers of it side by side in memory; zeros behind the end. */
static __device__ __forceinline__ void operand_get(const operand &x, int row, int k, float v[4])
{
    bool here = row < x.rows && k < x.k_end;

    if (here && x.vector) {
        load4(v, x.p + axis_at(x.row, row) + axis_at(x.k, k));
        return;
    }
UNROLL
    for (int i = 0; i < 4; i++) {
        int r = x.along ? row + i : row, c = x.along ? k : k + i;
        v[i] = here && r < x.rows && c < x.k_end ? x.p[axis_at(x.row, r) + axis_at(x.k, c)] : 0;
    }
}

/* This thread's part of 64 rows and K along k: `row` and `k` of its fours. */
template <int K> static __device__ __forceinline__ void part_of(bool along, int i, int *row, int *k)
{
    int t = (int)threadIdx.x;

    *row = along ? t % 16 * 4 : t / (K / 4) + GEMM_THREADS / (K / 4) * i;
    *k = along ? t / 16 * (K / 16) + i : t % (K / 4) * 4;
}

template <int K> static __device__ __forceinline__ void operand_fetch(const operand &x, int k0, float v[K / 16][4])
{
UNROLL
    for (int i = 0; i < K / 16; i++) {
        int row, k;
        part_of<K>(x.along, i, &row, &k);
        operand_get(x, x.first + row, k0 + k, v[i]);
    }
}

/* ---- which product, which part of it ------------------------------------------------- */

typedef struct gemm_part {
    int m, n, split, k, k_end; /* first row and column */
    operand a, b;
} gemm_part;

static __device__ __forceinline__ operand operand_of(const float *p, const nn_gpu_axis &row, const nn_gpu_axis &k,
                                                     bool vector)
{
    return operand{ p, row, k, 0, 0, 0, row.inner_step == 1, vector };
}

static __device__ __forceinline__ int gemm_find(const gemm_group &s)
{
    int i = 0;

    while (i + 1 < s.n && (int)blockIdx.x >= s.block[i + 1])
        i++;
    return i;
}

static __device__ __forceinline__ gemm_part gemm_open(const gemm_group &s, int i)
{
    const nn_gpu_gemm &g = s.product[i];
    int at = (int)blockIdx.x - s.block[i], across = (g.n + GEMM_TILE - 1) / GEMM_TILE;
    int down = (g.m + GEMM_TILE - 1) / GEMM_TILE, per = ((g.k + g.splits - 1) / g.splits + SPLIT_K - 1) / SPLIT_K * SPLIT_K;
    gemm_part p;

    p.n = at % across * GEMM_TILE;
    p.m = at / across % down * GEMM_TILE;
    p.split = at / across / down;
    p.k = p.split * per;
    p.k_end = p.k + per < g.k ? p.k + per : g.k;
    p.a = operand_of(g.a, g.a_m, g.a_k, s.vector[i] & 1);
    p.b = operand_of(g.b, g.b_n, g.b_k, s.vector[i] & 2);
    p.a.first = p.m;
    p.b.first = p.n;
    p.a.rows = g.m;
    p.b.rows = g.n;
    p.a.k_end = p.b.k_end = p.k_end;
    return p;
}

/* A number as tables hold it. */
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

static __device__ __forceinline__ void gemm_put(const nn_gpu_gemm &g, const gemm_part &p, int m, int n, float v)
{
    int64_t at;

    m += p.m;
    n += p.n;
    if (m >= g.m || n >= g.n)
        return;
    if (g.splits > 1) {
        g.work[((int64_t)p.split * g.m + m) * g.n + n] = v;
        return;
    }
    at = axis_at(g.c_m, m) + axis_at(g.c_n, n);
    if (g.add)
        ((float *)g.c)[at] += v;
    else
        number_put(g.c, at, v, g.c_as);
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

__global__ void __launch_bounds__(GEMM_THREADS, 2) gemm_fp32(const __grid_constant__ gemm_group s)
{
    __shared__ __align__(16) gemm_side a, b;
    int i = gemm_find(s), ty = (int)threadIdx.x / 16 * 4, tx = (int)threadIdx.x % 16 * 4;
    gemm_part p = gemm_open(s, i);
    float acc[4][4] = { { 0 } }, va[1][4], vb[1][4];

    operand_fetch<GEMM_K>(p.a, p.k, va);
    operand_fetch<GEMM_K>(p.b, p.k, vb);
    for (int k = p.k; k < p.k_end; k += GEMM_K) {
        gemm_side_put(p.a.along, va[0], a);
        gemm_side_put(p.b.along, vb[0], b);
        __syncthreads();
        operand_fetch<GEMM_K>(p.a, k + GEMM_K, va);
        operand_fetch<GEMM_K>(p.b, k + GEMM_K, vb);
UNROLL
        for (int kk = 0; kk < GEMM_K; kk++)
            gemm_step(acc, &a[kk][ty], &b[kk][tx]);
        __syncthreads();
    }
UNROLL
    for (int q = 0; q < 16; q++)
        gemm_put(s.product[i], p, ty + q / 4, tx + q % 4, acc[q / 4][q % 4]);
}

/* ---- tensor cores -------------------------------------------------------------------------- */

/* Which of a four a thread stores first: neighbours differ, for the banks. */
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

/* Fours that go along rows: one word of each of four rows. */
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

template <int P>
static __device__ __forceinline__ void side_put_all(bool along, const float v[mma_kind<P>::k / 16][4], mma_side<P> *to)
{
    const int per = mma_kind<P>::per;

    if (along) {
        side_put_along<P>(v, to);
        return;
    }
UNROLL
    for (int i = 0; i < mma_kind<P>::k / 16; i++) {
        int row, k;
        part_of<mma_kind<P>::k>(false, i, &row, &k);
UNROLL
        for (int w = 0; w < 4 / per; w++)
            side_put<P>(to, row, k / per + w, v[i][w * per], v[i][w * per + per - 1]);
    }
}

template <int P> __global__ void __launch_bounds__(GEMM_THREADS, 2) gemm_mma(const __grid_constant__ gemm_group s)
{
    const int K = mma_kind<P>::k;
    __shared__ mma_side<P> a, b;
    int i = gemm_find(s);
    gemm_part p = gemm_open(s, i);
    float acc[4][4] = { { 0 } }, va[K / 16][4], vb[K / 16][4];

    operand_fetch<K>(p.a, p.k, va);
    operand_fetch<K>(p.b, p.k, vb);
    for (int k = p.k; k < p.k_end; k += K) {
        side_put_all<P>(p.a.along, va, &a);
        side_put_all<P>(p.b.along, vb, &b);
        __syncthreads();
        operand_fetch<K>(p.a, k + K, va);
        operand_fetch<K>(p.b, k + K, vb);
        mma_tile<P>(acc, a, b, false);
        __syncthreads();
    }
UNROLL
    for (int q = 0; q < 16; q++)
        gemm_put(s.product[i], p, mma_row(q / 8, q / 2 % 2), mma_col(q / 4 % 2) + q % 2, acc[q / 4][q % 4]);
}

/* c from the parts of k, in order; blocks as in the group, of 256 numbers. */
__global__ void gemm_parts(const __grid_constant__ gemm_group s)
{
    int which = gemm_find(s);
    const nn_gpu_gemm &g = s.product[which];
    int64_t i = (int64_t)((int)blockIdx.x - s.block[which]) * blockDim.x + threadIdx.x, size = (int64_t)g.m * g.n;
    float sum = 0, *c;

    if (i >= size)
        return;
UNROLL_BY(8)
    for (int k = 0; k < g.splits; k++)
        sum += g.work[k * size + i];
    c = (float *)g.c + axis_at(g.c_m, (int)(i / g.n)) + axis_at(g.c_n, (int)(i % g.n));
    *c = g.add ? *c + sum : sum;
}

/* 32 columns a block; 8 threads of a column take every eighth row, then add up. */
__global__ void column_sums(nn_gpu_column_sum s)
{
    __shared__ float part[8][32];
    int col = (int)blockIdx.x * 32 + (int)threadIdx.x % 32, lane = (int)threadIdx.x / 32;
    float sum = 0;

    for (int row = lane; row < s.rows && col < s.cols; row += 8)
        sum += s.x[(int64_t)row * s.ld + col];
    part[lane][threadIdx.x % 32] = sum;
    __syncthreads();
    for (int i = 1; i < 8; i++)
        sum += part[i][threadIdx.x % 32];
    if (lane == 0 && col < s.cols)
        s.y[col] += sum;
}

#endif
