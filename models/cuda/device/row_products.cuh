/* models/cuda/device/row_products.cuh - products of many rows with a small matrix on tensor cores: linear layers of nodes (op 10, docs/model.md 8).
 *
 * y = W x for many rows x, and dx = W^T dy.
 *   grid    one dimension, as in gemm.cuh; a block has ROWS_DOWN rows and ROWS_COLS columns of the result
 *   warp    16 rows, loaded directly into its fragments
 *   lane    rows lane / 4 and lane / 4 + 8; four adjacent numbers of each chunk of ROWS_CHUNK along k
 *   shared  only the matrix, rows_matrix [column][words along k]; there is one barrier
 * In PTX's layout these four numbers would not be adjacent. Their order in the sum is free, because the matrix is read in
 * the same order. */
#ifndef NN_CUDA_ROW_PRODUCTS_CUH
#define NN_CUDA_ROW_PRODUCTS_CUH

/* COLS, DOWN: columns and rows of a block. CHUNK: numbers of a chunk. FEW, CHUNKS: the two sizes of C, the maximum number of
 * chunks along k in a product and those added to it. WIDE: maximum columns of the result. */
enum { ROWS_COLS = 32, ROWS_DOWN = 128, ROWS_CHUNK = 16, ROWS_FEW = 4, ROWS_CHUNKS = 8, ROWS_WIDE = 128 };

/* The matrix, one row for each column of the result; ld is chosen so that a warp's reads have no bank conflicts. */
template <int P, int C> struct rows_matrix {
    enum { chunk = ROWS_CHUNK / mma_kind<P>::per, ld = C * chunk + 16 / mma_kind<P>::per };
    uint32_t word[1 + mma_kind<P>::x3][ROWS_COLS][ld];
};

/* What a thread has loaded: per chunk four numbers of each of two rows, and a pair of the matrix. */
template <int C> struct rows_numbers {
    float a[C][2][4], b[C][2];
    int chunks;
};

/* This thread's pair of the matrix: numbers 2 k and 2 k + 1 of a chunk, of column n; adjacent threads read adjacent
 * addresses. */
static __device__ __forceinline__ void rows_pair(bool along, int *n, int *k)
{
    int t = (int)threadIdx.x;

    *n = along ? t % ROWS_COLS : t / (ROWS_CHUNK / 2);
    *k = along ? t / ROWS_COLS : t % (ROWS_CHUNK / 2);
}

/* PLAIN: in all products of the launch numbers along k, and results along n, have stride one and can be read four and
 * written two at a time. Otherwise computing addresses takes most of the time. */
template <bool PLAIN> static __device__ __forceinline__ int64_t plain_at(const gemm_axis &x, int i)
{
    return PLAIN ? i * x.inner_step : axis_at(x, i);
}

/* The addresses of this thread's two rows and of its column of the matrix. Past the last row or column the last one is
 * used; those sums are never stored. */
typedef struct rows_places {
    const float *row[2], *col;
} rows_places;

template <bool PLAIN>
static __device__ __forceinline__ rows_places rows_places_of(const gemm_product &x, const int row[2], int n)
{
    rows_places p;

    p.col = x.b + plain_at<PLAIN>(x.b_n, n < x.n ? n : x.n - 1);
UNROLL
    for (int q = 0; q < 2; q++)
        p.row[q] = x.a + axis_at(x.a_m, row[q] < x.m ? row[q] : x.m - 1);
    return p;
}

template <bool PLAIN>
static __device__ __forceinline__ void rows_four_get(const gemm_product &x, const float *row, int k, float v[4])
{
    if (PLAIN || x.a_fours)
        load4(v, row + (PLAIN ? k : axis_at(x.a_k, k)));
    else
        four_get<false>(row, x.a_k, k, x.k, v);
}

/* Loads everything at once, for product i and those added to it; zeros where there is nothing. */
template <int C, bool PLAIN>
static __device__ __forceinline__ rows_numbers<C> rows_get(const gemm_group &s, int i, const int row[2], int n0)
{
    rows_numbers<C> v = {};
    rows_places p = {};
    bool there = true;
    int k0 = 0, four = (int)threadIdx.x % 4 * 4, n, pair;

    rows_pair(s.product[i].b_along, &n, &pair);
UNROLL
    for (int c = 0; c < C; c++) {
        const gemm_product &x = s.product[i];
        if (!there)
            continue;
        if (k0 == 0)
            p = rows_places_of<PLAIN>(x, row, n0 + n);
UNROLL
        for (int q = 0; q < 2; q++) {
            int k = k0 + 2 * pair + q;
            if (k0 + four < x.k)
                rows_four_get<PLAIN>(x, p.row[q], k0 + four, v.a[c][q]);
            if (k < x.k)
                v.b[c][q] = p.col[plain_at<PLAIN>(x.b_k, k)];
        }
        v.chunks++;
        k0 += ROWS_CHUNK;
        if (k0 < x.k)
            continue;
        there = x.more;
        k0 = 0;
        i++;
    }
    return v;
}

template <int P, int C>
static __device__ __forceinline__ void rows_share(const rows_numbers<C> &v, bool along, rows_matrix<P, C> *to)
{
    const int per = mma_kind<P>::per, x3 = mma_kind<P>::x3;
    int n, k;

    rows_pair(along, &n, &k);
UNROLL
    for (int c = 0; c < C; c++)
UNROLL
        for (int q = 0; q < 2; q += per) {
            float x = v.b[c][q], y = v.b[c][q + per - 1];
            int at = c * rows_matrix<P, C>::chunk + (2 * k + q) / per;
            uint32_t word = word_of<P>(x, y);
            to->word[0][n][at] = word;
            if (x3)
                to->word[x3][n][at] = word_rest(x, y, word);
        }
}

/* The fragment of the rows for step `step` of a chunk, from a lane's groups of four. */
template <int P>
static __device__ __forceinline__ void rows_frag_a(uint32_t f[1 + mma_kind<P>::x3][4], const float v[2][4], int step)
{
    const int per = mma_kind<P>::per, x3 = mma_kind<P>::x3;

UNROLL
    for (int i = 0; i < 4; i++) {
        const float *at = &v[i % 2][per * (2 * step + i / 2)];
        f[0][i] = word_of<P>(at[0], at[per - 1]);
        if (x3)
            f[x3][i] = word_rest(at[0], at[per - 1], f[0][i]);
    }
}

/* The fragment of the matrix for the same step, columns col .. col+7. */
template <int P, int C>
static __device__ __forceinline__ void rows_frag_b(uint32_t f[1 + mma_kind<P>::x3][2], const rows_matrix<P, C> &b, int col,
                                                   int c, int step)
{
    int lane = (int)threadIdx.x % 32, at = c * rows_matrix<P, C>::chunk + lane % 4 * (4 / mma_kind<P>::per) + 2 * step;

UNROLL
    for (int low = 0; low < 1 + mma_kind<P>::x3; low++)
UNROLL
        for (int i = 0; i < 2; i++)
            f[low][i] = b.word[low][col + lane / 4][at + i];
}

template <int P, int C>
static __device__ __forceinline__ void rows_multiply(float acc[ROWS_COLS / 8][4], const rows_numbers<C> &v,
                                                     const rows_matrix<P, C> &b)
{
UNROLL
    for (int c = 0; c < C; c++)
UNROLL
        for (int step = 0; step < 2 / mma_kind<P>::per && c < v.chunks; step++) {
            uint32_t fa[1 + mma_kind<P>::x3][4], fb[1 + mma_kind<P>::x3][2];
            rows_frag_a<P>(fa, v.a[c], step);
UNROLL
            for (int j = 0; j < ROWS_COLS / 8; j++) {
                rows_frag_b<P, C>(fb, b, 8 * j, c, step);
                mma_words_step<P>(acc[j], fa, fb);
            }
        }
}

/* Stores two adjacent numbers. */
template <bool PLAIN>
static __device__ __forceinline__ void rows_two_put(const gemm_product &g, float *row, int n, const float v[2])
{
    float old[2] = { 0, 0 };

    if (PLAIN || g.pairs) {
        row += PLAIN ? n : axis_at(g.c_n, n);
        if (g.add)
            load2(old, row);
        store2(row, old[0] + v[0], old[1] + v[1]);
    } else {
UNROLL
        for (int q = 0; q < 2; q++)
            if (n + q < g.n) {
                float *c = row + axis_at(g.c_n, n + q);
                *c = g.add ? *c + v[q] : v[q];
            }
    }
}

template <bool PLAIN>
static __device__ __forceinline__ void rows_put(const gemm_product &g, const int row[2], int n0,
                                                const float acc[ROWS_COLS / 8][4])
{
UNROLL
    for (int q = 0; q < 2; q++) {
        float *to = (float *)g.c + axis_at(g.c_m, row[q] < g.m ? row[q] : 0);
UNROLL
        for (int j = 0; j < ROWS_COLS / 8; j++) {
            int n = n0 + 8 * j + (int)threadIdx.x % 4 * 2;
            if (row[q] < g.m && n < g.n)
                rows_two_put<PLAIN>(g, to, n, &acc[j][2 * q]);
        }
    }
}

/* Blocks that a multiprocessor must have registers for. */
template <int P, int C, bool PLAIN> struct rows_blocks_at_once {
    static constexpr int plain = mma_kind<P>::per == 2 ? 4 : 2, few = PLAIN ? plain : 3, n = C > ROWS_FEW ? 1 : few;
};

/* Map and shared memory: the head of this file. P: precision; C: chunks along k. Equals: linear_forward and the dx of
 * linear_backward (models/ref/layers.inc). */
template <int P, int C, bool PLAIN>
__global__ void __launch_bounds__(GEMM_THREADS, (rows_blocks_at_once<P, C, PLAIN>::n))
    gemm_rows(const __grid_constant__ gemm_group s)
{
    __shared__ rows_matrix<P, C> b;
    int i = gemm_find(s), at = (int)blockIdx.x - s.block[i];
    const gemm_product &g = s.product[i];
    int across = (g.n + ROWS_COLS - 1) / ROWS_COLS, down = across == 3 ? at / 3 : at >> across / 2; /* at most 4 */
    int n0 = (at - down * across) * ROWS_COLS;
    int first = down * ROWS_DOWN + (int)threadIdx.x / 32 * 16 + (int)threadIdx.x % 32 / 4;
    int row[2] = { first, first + 8 };
    float acc[ROWS_COLS / 8][4] = { { 0 } };
    rows_numbers<C> v = rows_get<C, PLAIN>(s, i, row, n0);

    rows_share<P, C>(v, g.b_along, &b);
    __syncthreads();
    rows_multiply<P, C>(acc, v, b);
    rows_put<PLAIN>(g, row, n0, acc);
}

#endif
