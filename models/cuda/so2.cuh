/* models/cuda/so2.cuh - the products along edges, op 7 (spec performance 2.1, 2.4).
 *
 * so2_rows: float32, 16 rows of a tile and 128 channels out a block; the table is read
 * once per 16 rows. so2_mma: 64 rows and 64 columns of the real form
 * [A B; -B A] a block, bf16. so2_outer: gradients of a table, one radial node and 8
 * channels in a block. No sum depends on how rows share tiles. */
#ifndef NN_CUDA_SO2_CUH
#define NN_CUDA_SO2_CUH

enum { SO2_ROWS = 16, SO2_K = 32, SO2_THREADS = 128, OUTER_K = 8 };

/* One block's part of the work. */
typedef struct so2_part {
    int m, col, first, rows, n_k, n_n;
    const nn_gpu_tile *tile;
} so2_part;

static __device__ __forceinline__ float phi_of(const nn_gpu_so2 &s, int row, int j)
{
    return s.phi[2 * (int64_t)row + j];
}

/* Matrix a of order m for node j of the tile; b lies n_k * n_n behind it. */
static __device__ __forceinline__ const float *table_of(const nn_gpu_so2 &s, const so2_part &p, int j)
{
    return s.table + (int64_t)(p.tile->node[j] - s.first_node) * s.table_size + s.table_at[p.m];
}

/* xs[sign][k][row] = phi x, zero where there is none. */
static __device__ __forceinline__ void rows_load(const nn_gpu_so2 &s, const so2_part &p, int j, int k0,
                                                 float xs[2][SO2_K][SO2_ROWS])
{
    for (int i = (int)threadIdx.x; i < (p.m ? 2 : 1) * SO2_ROWS * SO2_K; i += SO2_THREADS) {
        int k = i % SO2_K, row = i / SO2_K % SO2_ROWS, minus = i / SO2_K / SO2_ROWS;
        bool here = row < p.rows && k0 + k < p.n_k;
        const float *x = s.x + (int64_t)(p.first + row) * s.x_size + s.x_at[p.m] + minus * p.n_k + k0 + k;
        xs[minus][k][row] = here ? phi_of(s, p.first + row, j) * *x : 0;
    }
}

static __device__ __forceinline__ void rows_zero(const float *a, const so2_part &p, int count,
                                                 float xs[2][SO2_K][SO2_ROWS], float acc[2][SO2_ROWS])
{
    for (int k = 0; k < count; k++) {
        float w = a[(int64_t)k * p.n_n];
UNROLL
        for (int r = 0; r < SO2_ROWS; r += 4)
            if (r < p.rows) {
UNROLL
                for (int q = r; q < r + 4; q++)
                    acc[0][q] += w * xs[0][k][q];
            }
    }
}

static __device__ __forceinline__ void rows_pair(const float *a, float sign, const so2_part &p, int count,
                                                 float xs[2][SO2_K][SO2_ROWS], float acc[2][SO2_ROWS])
{
    int64_t b = (int64_t)p.n_k * p.n_n;

    for (int k = 0; k < count; k++) {
        float wa = a[(int64_t)k * p.n_n], wb = sign * a[b + (int64_t)k * p.n_n];
UNROLL
        for (int r = 0; r < SO2_ROWS; r += 4)
            if (r < p.rows) {
UNROLL
                for (int q = r; q < r + 4; q++) {
                    acc[0][q] += wa * xs[0][k][q];
                    acc[0][q] -= wb * xs[1][k][q];
                    acc[1][q] += wa * xs[1][k][q];
                    acc[1][q] += wb * xs[0][k][q];
                }
            }
    }
}

static __device__ __forceinline__ void rows_store(const nn_gpu_so2 &s, const so2_part &p, float acc[2][SO2_ROWS])
{
UNROLL
    for (int r = 0; r < SO2_ROWS; r++)
        if (r < p.rows) {
            float *y = s.y + (int64_t)(p.first + r) * s.y_size + s.y_at[p.m] + p.col;
            y[0] = acc[0][r];
            if (p.m)
                y[p.n_n] = acc[1][r];
        }
}

__global__ void __launch_bounds__(SO2_THREADS) so2_rows(nn_gpu_so2 s)
{
    __shared__ __align__(16) float xs[2][SO2_K][SO2_ROWS];
    int groups = NN_GPU_TILE / SO2_ROWS, skip = (int)blockIdx.x % groups * SO2_ROWS;
    float acc[2][SO2_ROWS] = { { 0 } };
    so2_part p;

    p.tile = s.tile + blockIdx.x / groups;
    p.first = p.tile->first + skip;
    p.rows = p.tile->n - skip < SO2_ROWS ? p.tile->n - skip : SO2_ROWS;
    p.m = (int)blockIdx.y % s.n_orders;
    p.col = (int)blockIdx.y / s.n_orders * SO2_THREADS + (int)threadIdx.x;
    p.n_k = s.k[p.m];
    p.n_n = s.n[p.m];
    if (p.rows <= 0 || p.col - (int)threadIdx.x >= p.n_n)
        return;
    for (int j = 0; j < 2 && p.tile->node[j] >= 0; j++)
        for (int k0 = 0; k0 < p.n_k; k0 += SO2_K) {
            const float *a = table_of(s, p, j) + (int64_t)k0 * p.n_n + p.col;
            int count = p.n_k - k0 < SO2_K ? p.n_k - k0 : SO2_K;
            rows_load(s, p, j, k0, xs);
            __syncthreads();
            if (p.col < p.n_n && p.m)
                rows_pair(a, s.sign, p, count, xs, acc);
            else if (p.col < p.n_n)
                rows_zero(a, p, count, xs, acc);
            __syncthreads();
        }
    if (p.col < p.n_n)
        rows_store(s, p, acc);
}

/* ---- the same on tensor cores ---- */

/* Element (k, n) of the real matrix [A B; -B A] of order m. */
static __device__ __forceinline__ float real_entry(const nn_gpu_so2 &s, const so2_part &p, const float *a, int k, int n)
{
    int low = k >= p.n_k, right = n >= p.n_n;
    int64_t at = (int64_t)(k - low * p.n_k) * p.n_n + (n - right * p.n_n);

    if (k >= (p.m ? 2 : 1) * p.n_k || n >= (p.m ? 2 : 1) * p.n_n)
        return 0;
    if (low == right)
        return a[at];
    return (right ? s.sign : -s.sign) * a[(int64_t)p.n_k * p.n_n + at];
}

static __device__ __forceinline__ float tile_entry(const nn_gpu_so2 &s, const so2_part &p, int j, int row, int k)
{
    return row < p.rows && k < (p.m ? 2 : 1) * p.n_k
        ? phi_of(s, p.first + row, j) * s.x[(int64_t)(p.first + row) * s.x_size + s.x_at[p.m] + k] : 0;
}

static __device__ __forceinline__ void mma_load_tile(const nn_gpu_so2 &s, const so2_part &p, int j, int k0,
                                                     mma_side *x, mma_side *w, const bool x3)
{
    const float *a = table_of(s, p, j);
    int t = (int)threadIdx.x;

    for (int i = 0; i < GEMM_TILE * MMA_K / 2 / GEMM_THREADS; i++) {
        int row = t / (MMA_K / 2) + GEMM_THREADS / (MMA_K / 2) * i, pair = t % (MMA_K / 2), k = k0 + 2 * pair;
        mma_put(x, row, pair, tile_entry(s, p, j, row, k), tile_entry(s, p, j, row, k + 1), x3);
        row = t % GEMM_TILE;
        pair = t / GEMM_TILE + GEMM_THREADS / GEMM_TILE * i;
        k = k0 + 2 * pair;
        mma_put(w, row, pair, real_entry(s, p, a, k, p.col + row), real_entry(s, p, a, k + 1, p.col + row), x3);
    }
}

static __device__ __forceinline__ void so2_product(const nn_gpu_so2 &s, mma_side *x, mma_side *w, const bool x3)
{
    float acc[2][2][4] = { { { 0 } } };
    so2_part p;

    p.tile = s.tile + blockIdx.x;
    p.first = p.tile->first;
    p.rows = p.tile->n;
    p.m = (int)blockIdx.y % s.n_orders;
    p.col = (int)blockIdx.y / s.n_orders * GEMM_TILE;
    p.n_k = s.k[p.m];
    p.n_n = s.n[p.m];
    if (p.col >= (p.m ? 2 : 1) * p.n_n)
        return;
    for (int j = 0; j < 2 && p.tile->node[j] >= 0; j++)
        for (int k0 = 0; k0 < (p.m ? 2 : 1) * p.n_k; k0 += MMA_K) {
            mma_load_tile(s, p, j, k0, x, w, x3);
            __syncthreads();
            mma_tile(acc, x, w, x3);
            __syncthreads();
        }
UNROLL
    for (int r = 0; r < 16; r++) {
        int row = mma_row(r / 8, r % 4), col = p.col + mma_col(r / 4 % 2, r % 4);
        if (row < p.rows && col < (p.m ? 2 : 1) * p.n_n)
            s.y[(int64_t)(p.first + row) * s.y_size + s.y_at[p.m] + col] = acc[r / 8][r / 4 % 2][r % 4];
    }
}

__global__ void __launch_bounds__(GEMM_THREADS, 2) so2_bf16(nn_gpu_so2 s)
{
    __shared__ mma_side x, w;

    so2_product(s, &x, &w, false);
}

__global__ void __launch_bounds__(GEMM_THREADS, 2) so2_bf16x3(nn_gpu_so2 s)
{
    __shared__ mma_side x, w;

    so2_product(s, &x, &w, true);
}

/* ---- gradients of tables ---- */

typedef struct outer_sum {
    float a[OUTER_K], b[OUTER_K];
} outer_sum;

/* dA += x+ y+ + x- y-, dB += x+ y- - x- y+, for 8 channels in and one out. */
static __device__ __forceinline__ void outer_row(const nn_gpu_so2 &s, const so2_part &p, int k0, float phi, int row,
                                                 outer_sum *d)
{
    const float *x = s.x + (int64_t)row * s.x_size + s.x_at[p.m] + k0;
    const float *y = s.y + (int64_t)row * s.y_size + s.y_at[p.m] + p.col;
    float plus = phi * y[0], minus = p.m ? phi * y[p.n_n] : 0;

UNROLL
    for (int q = 0; q < OUTER_K; q++) {
        if (k0 + q >= p.n_k)
            break;
        d->a[q] += x[q] * plus;
        if (p.m) {
            d->a[q] += x[p.n_k + q] * minus;
            d->b[q] += x[q] * minus;
            d->b[q] -= x[p.n_k + q] * plus;
        }
    }
}

/* grid: nodes, orders times blocks of channels out, blocks of channels in. */
__global__ void __launch_bounds__(SO2_THREADS) so2_outer(nn_gpu_so2 s)
{
    nn_gpu_span span = s.span[s.first_node + blockIdx.x];
    int k0 = (int)blockIdx.z * OUTER_K;
    outer_sum d = { { 0 }, { 0 } };
    float *to;
    so2_part p;

    p.m = (int)blockIdx.y % s.n_orders;
    p.col = (int)blockIdx.y / s.n_orders * SO2_THREADS + (int)threadIdx.x;
    p.n_k = s.k[p.m];
    p.n_n = s.n[p.m];
    if (p.col >= p.n_n || k0 >= p.n_k)
        return;
    for (int j = 0; j < 2; j++) {
        int first = span.first[j] > s.first_row ? span.first[j] : s.first_row;
        int end = span.end[j] < s.end_row ? span.end[j] : s.end_row;
        for (int row = first; row < end; row++)
            outer_row(s, p, k0, phi_of(s, row, j), row, &d);
    }
    to = s.table + (int64_t)blockIdx.x * s.table_size + s.table_at[p.m] + p.col;
UNROLL
    for (int q = 0; q < OUTER_K; q++)
        if (k0 + q < p.n_k) {
            to[(int64_t)(k0 + q) * p.n_n] = d.a[q];
            if (p.m)
                to[(int64_t)(p.n_k + k0 + q) * p.n_n] = d.b[q];
        }
}

#endif
