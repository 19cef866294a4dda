/* models/cuda/gemm.cuh - matrix products with any strides, ops 5, 10 and 13.
 *
 * A block makes 64 x 64 of c, in float32 by 256 threads with 4 x 4 each, or in
 * bf16 by 8 warps with 32 x 16 each. The sum over k has one order, whatever m is. */
#ifndef NN_CUDA_GEMM_CUH
#define NN_CUDA_GEMM_CUH

enum { GEMM_TILE = 64, GEMM_K = 16, GEMM_THREADS = 256, MMA_K = 32, MMA_LD = MMA_K / 2 + 4 };

static __device__ __forceinline__ int64_t axis_at(nn_gpu_axis x, int i)
{
    return (int64_t)(i / x.inner) * x.outer_step + (int64_t)(i % x.inner) * x.inner_step;
}

/* One operand: `row` is m for a and n for b. */
typedef struct operand {
    const float *p;
    nn_gpu_axis row, k;
    int first, rows, k_end;
} operand;

static __device__ __forceinline__ float operand_get(const operand &x, int row, int k)
{
    row += x.first;
    return row < x.rows && k < x.k_end ? x.p[axis_at(x.row, row) + axis_at(x.k, k)] : 0;
}

static __device__ __forceinline__ operand gemm_a(const nn_gpu_gemm &g, int k_end)
{
    return operand{ g.a, g.a_m, g.a_k, (int)blockIdx.y * GEMM_TILE, g.m, k_end };
}

static __device__ __forceinline__ operand gemm_b(const nn_gpu_gemm &g, int k_end)
{
    return operand{ g.b, g.b_n, g.b_k, (int)blockIdx.x * GEMM_TILE, g.n, k_end };
}

/* This block's part of k. */
static __device__ __forceinline__ void gemm_range(const nn_gpu_gemm &g, int *k, int *end)
{
    int per = ((g.k + g.splits - 1) / g.splits + MMA_K - 1) / MMA_K * MMA_K;

    *k = (int)blockIdx.z * per;
    *end = *k + per < g.k ? *k + per : g.k;
}

static __device__ __forceinline__ void gemm_put(const nn_gpu_gemm &g, int m, int n, float v)
{
    float *c;

    m += (int)blockIdx.y * GEMM_TILE;
    n += (int)blockIdx.x * GEMM_TILE;
    if (m >= g.m || n >= g.n)
        return;
    if (g.splits > 1) {
        g.work[((int64_t)blockIdx.z * g.m + m) * g.n + n] = v;
        return;
    }
    c = g.c + axis_at(g.c_m, m) + axis_at(g.c_n, n);
    *c = g.add ? *c + v : v;
}

/* to[k][row], threads along whichever axis is contiguous in memory. */
static __device__ __forceinline__ void gemm_load(const operand &x, int k, float to[GEMM_K][GEMM_TILE + 4])
{
    int t = (int)threadIdx.x;

    for (int i = 0; i < GEMM_TILE * GEMM_K / GEMM_THREADS; i++) {
        bool along = x.row.inner_step == 1;
        int row = along ? t % GEMM_TILE : t / GEMM_K + GEMM_THREADS / GEMM_K * i;
        int kk = along ? t / GEMM_TILE + GEMM_THREADS / GEMM_TILE * i : t % GEMM_K;
        to[kk][row] = operand_get(x, row, k + kk);
    }
}

static __device__ __forceinline__ void gemm_step(float acc[4][4], const float *a, const float *b)
{
UNROLL
    for (int i = 0; i < 4; i++)
UNROLL
        for (int j = 0; j < 4; j++)
            acc[i][j] += a[i] * b[j];
}

__global__ void __launch_bounds__(GEMM_THREADS, 2) gemm_fp32(nn_gpu_gemm g)
{
    __shared__ __align__(16) float a[GEMM_K][GEMM_TILE + 4], b[GEMM_K][GEMM_TILE + 4];
    int ty = (int)threadIdx.x / 16 * 4, tx = (int)threadIdx.x % 16 * 4, k, end;
    float acc[4][4] = { { 0 } };

    gemm_range(g, &k, &end);
    for (; k < end; k += GEMM_K) {
        gemm_load(gemm_a(g, end), k, a);
        gemm_load(gemm_b(g, end), k, b);
        __syncthreads();
UNROLL
        for (int kk = 0; kk < GEMM_K; kk++)
            gemm_step(acc, &a[kk][ty], &b[kk][tx]);
        __syncthreads();
    }
UNROLL
    for (int i = 0; i < 4; i++)
UNROLL
        for (int j = 0; j < 4; j++)
            gemm_put(g, ty + i, tx + j, acc[i][j]);
}

/* ---- bf16 on tensor cores ---------------------------------------------------------- */

/* One operand's 64 rows and 32 k as pairs of bf16; `low`: what rounding left over. */
typedef struct mma_side {
    uint32_t high[GEMM_TILE][MMA_LD], low[GEMM_TILE][MMA_LD];
} mma_side;

static __device__ __forceinline__ void mma_put(mma_side *s, int row, int pair, float x, float y, const bool x3)
{
    uint32_t bits = bf16_pair(x, y);

    s->high[row][pair] = bits;
    if (x3)
        s->low[row][pair] = bf16_pair(bf16_rest(x, bits & 0xffffu), bf16_rest(y, bits >> 16));
}

static __device__ __forceinline__ void mma_load(const operand &x, int k, mma_side *s, const bool x3)
{
    int t = (int)threadIdx.x;

    for (int i = 0; i < GEMM_TILE * MMA_K / 2 / GEMM_THREADS; i++) {
        bool along = x.row.inner_step == 1;
        int row = along ? t % GEMM_TILE : t / (MMA_K / 2) + GEMM_THREADS / (MMA_K / 2) * i;
        int pair = along ? t / GEMM_TILE + GEMM_THREADS / GEMM_TILE * i : t % (MMA_K / 2);
        mma_put(s, row, pair, operand_get(x, row, k + 2 * pair), operand_get(x, row, k + 2 * pair + 1), x3);
    }
}

static __device__ __forceinline__ void frag_a(uint32_t f[4], const uint32_t side[GEMM_TILE][MMA_LD], int row, int pair)
{
    int lane = (int)threadIdx.x % 32, g = row + lane / 4, t = pair + lane % 4;

    f[0] = side[g][t];
    f[1] = side[g + 8][t];
    f[2] = side[g][t + 4];
    f[3] = side[g + 8][t + 4];
}

static __device__ __forceinline__ void frag_b(uint32_t f[2], const uint32_t side[GEMM_TILE][MMA_LD], int row, int pair)
{
    int lane = (int)threadIdx.x % 32, g = row + lane / 4, t = pair + lane % 4;

    f[0] = side[g][t];
    f[1] = side[g][t + 4];
}

/* acc[2][2][4] of this warp's 32 x 16 += a b over 32 k. */
static __device__ __forceinline__ void mma_tile(float acc[2][2][4], const mma_side *a, const mma_side *b, const bool x3)
{
    int warp = (int)threadIdx.x / 32, m0 = warp / 4 * 32, n0 = warp % 4 * 16;

UNROLL
    for (int pair = 0; pair < MMA_K / 2; pair += 8)
UNROLL
        for (int i = 0; i < 2; i++) {
            uint32_t ah[4], al[4], bh[2], bl[2];
            frag_a(ah, a->high, m0 + 16 * i, pair);
            if (x3)
                frag_a(al, a->low, m0 + 16 * i, pair);
UNROLL
            for (int j = 0; j < 2; j++) {
                frag_b(bh, b->high, n0 + 8 * j, pair);
                if (x3) {
                    frag_b(bl, b->low, n0 + 8 * j, pair);
                    mma_bf16(acc[i][j], al, bh);
                    mma_bf16(acc[i][j], ah, bl);
                }
                mma_bf16(acc[i][j], ah, bh);
            }
        }
}

/* Row and column of number r of acc[i][j] in the block's 64 x 64. */
static __device__ __forceinline__ int mma_row(int i, int r)
{
    return (int)threadIdx.x / 128 * 32 + 16 * i + (int)threadIdx.x % 32 / 4 + 8 * (r / 2);
}

static __device__ __forceinline__ int mma_col(int j, int r)
{
    return (int)threadIdx.x / 32 % 4 * 16 + 8 * j + 2 * ((int)threadIdx.x % 4) + r % 2;
}

static __device__ __forceinline__ void gemm_mma(const nn_gpu_gemm &g, mma_side *a, mma_side *b, const bool x3)
{
    float acc[2][2][4] = { { { 0 } } };
    int k, end;

    gemm_range(g, &k, &end);
    for (; k < end; k += MMA_K) {
        mma_load(gemm_a(g, end), k, a, x3);
        mma_load(gemm_b(g, end), k, b, x3);
        __syncthreads();
        mma_tile(acc, a, b, x3);
        __syncthreads();
    }
UNROLL
    for (int r = 0; r < 16; r++)
        gemm_put(g, mma_row(r / 8, r % 4), mma_col(r / 4 % 2, r % 4), acc[r / 8][r / 4 % 2][r % 4]);
}

__global__ void __launch_bounds__(GEMM_THREADS, 2) gemm_bf16(nn_gpu_gemm g)
{
    __shared__ mma_side a, b;

    gemm_mma(g, &a, &b, false);
}

__global__ void __launch_bounds__(GEMM_THREADS, 2) gemm_bf16x3(nn_gpu_gemm g)
{
    __shared__ mma_side a, b;

    gemm_mma(g, &a, &b, true);
}

/* c from the parts of k, in order. */
__global__ void gemm_parts(nn_gpu_gemm g)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, size = (int64_t)g.m * g.n;
    float sum = 0, *c;

    if (i >= size)
        return;
    for (int s = 0; s < g.splits; s++)
        sum += g.work[s * size + i];
    c = g.c + axis_at(g.c_m, (int)(i / g.n)) + axis_at(g.c_n, (int)(i % g.n));
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
