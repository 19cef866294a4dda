/* models/cuda/rows.cuh - products of many rows with a small matrix on tensor cores: linear layers of nodes.
 *
 * A warp has 16 rows and reads them straight into its fragments; nothing but the matrix is shared, and there is one
 * barrier. A lane's four numbers of a row, side by side, take the places of fragments that lie apart in PTX's layout:
 * the matrix is read in the same order, and sums do not care. */
#ifndef NN_CUDA_ROWS_CUH
#define NN_CUDA_ROWS_CUH

/* Columns of a block and its rows; along k at most so many chunks, in all products that a sum goes on with. */
enum { ROWS_COLS = 32, ROWS_DOWN = 128, ROWS_CHUNK = 16, ROWS_CHUNKS = 4, ROWS_WIDE = 128 };

/* The matrix, a row for each column of the result; rows begin so many banks apart that a warp's reads meet none twice. */
template <int P> struct rows_matrix {
    enum { chunk = ROWS_CHUNK / mma_kind<P>::per, ld = ROWS_CHUNKS * chunk + 16 / mma_kind<P>::per };
    uint32_t word[1 + mma_kind<P>::x3][ROWS_COLS][ld];
};

/* What a thread has read: fours of two rows of each chunk, and a pair of the matrix. */
typedef struct rows_numbers {
    float a[ROWS_CHUNKS][2][4], b[ROWS_CHUNKS][2];
    int chunks;
} rows_numbers;

/* The pair of the matrix, numbers 2 k and 2 k + 1 of a chunk, of column n: neighbours read neighbours. */
static __device__ __forceinline__ void rows_pair(bool along, int *n, int *k)
{
    int t = (int)threadIdx.x;

    *n = along ? t % ROWS_COLS : t / (ROWS_CHUNK / 2);
    *k = along ? t / ROWS_COLS : t % (ROWS_CHUNK / 2);
}

/* Where a product's numbers of this thread begin: of two rows, of a column of the matrix; NULL: there are none. */
typedef struct rows_places {
    const float *row[2], *col;
    int k; /* of a chunk, of the pair of the column */
} rows_places;

static __device__ __forceinline__ rows_places rows_places_of(const gemm_product &x, const int row[2], int n0)
{
    rows_places p;
    int n;

    rows_pair(x.b_along, &n, &p.k);
    n += n0;
    p.col = n < x.n ? x.b + axis_at(x.b_n, n) : NULL;
UNROLL
    for (int q = 0; q < 2; q++)
        p.row[q] = row[q] < x.m ? x.a + axis_at(x.a_m, row[q]) : NULL;
    return p;
}

static __device__ __forceinline__ void rows_pair_get(const gemm_product &x, const rows_places &p, int k0, float v[2])
{
    int k = k0 + 2 * p.k;

UNROLL
    for (int q = 0; q < 2; q++)
        if (p.col && k + q < x.k)
            v[q] = p.col[axis_at(x.b_k, k + q)];
}

static __device__ __forceinline__ void rows_four_get(const gemm_product &x, const float *row, int k0, float v[4])
{
    int k = k0 + (int)threadIdx.x % 4 * 4;

    if (!row || k >= x.k)
        return;
    if (x.a_fours)
        load4(v, row + axis_at(x.a_k, k));
    else
        four_get<false>(row, x.a_k, k, x.k, v);
}

/* All at once, of product i and those that its sum goes on with; zeros where there is nothing. */
static __device__ __forceinline__ rows_numbers rows_get(const gemm_group &s, int i, const int row[2], int n0)
{
    rows_numbers v = {};
    rows_places p = {};
    bool there = true;
    int k = 0;

UNROLL
    for (int c = 0; c < ROWS_CHUNKS; c++) {
        const gemm_product &x = s.product[i];
        if (!there)
            continue;
        if (k == 0)
            p = rows_places_of(x, row, n0);
UNROLL
        for (int q = 0; q < 2; q++)
            rows_four_get(x, p.row[q], k, v.a[c][q]);
        rows_pair_get(x, p, k, v.b[c]);
        v.chunks++;
        k += ROWS_CHUNK;
        if (k < x.k)
            continue;
        there = x.more;
        k = 0;
        i++;
    }
    return v;
}

template <int P> static __device__ __forceinline__ void rows_share(const rows_numbers &v, bool along, rows_matrix<P> *to)
{
    const int per = mma_kind<P>::per, x3 = mma_kind<P>::x3;
    int n, k;

    rows_pair(along, &n, &k);
UNROLL
    for (int c = 0; c < ROWS_CHUNKS; c++)
UNROLL
        for (int q = 0; q < 2; q += per) {
            float x = v.b[c][q], y = v.b[c][q + per - 1];
            int at = c * rows_matrix<P>::chunk + (2 * k + q) / per;
            uint32_t word = word_of<P>(x, y);
            to->word[0][n][at] = word;
            if (x3)
                to->word[x3][n][at] = word_rest(x, y, word);
        }
}

/* Fragments of step `step` of a chunk: of a lane's fours, */
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

/* and of the matrix, columns col .. col+7. */
template <int P>
static __device__ __forceinline__ void rows_frag_b(uint32_t f[1 + mma_kind<P>::x3][2], const rows_matrix<P> &b, int col, int c,
                                                   int step)
{
    int lane = (int)threadIdx.x % 32, at = c * rows_matrix<P>::chunk + lane % 4 * (4 / mma_kind<P>::per) + 2 * step;

UNROLL
    for (int low = 0; low < 1 + mma_kind<P>::x3; low++)
UNROLL
        for (int i = 0; i < 2; i++)
            f[low][i] = b.word[low][col + lane / 4][at + i];
}

template <int P>
static __device__ __forceinline__ void rows_multiply(float acc[ROWS_COLS / 8][4], const rows_numbers &v, const rows_matrix<P> &b)
{
UNROLL
    for (int c = 0; c < ROWS_CHUNKS; c++)
UNROLL
        for (int step = 0; step < 2 / mma_kind<P>::per && c < v.chunks; step++) {
            uint32_t fa[1 + mma_kind<P>::x3][4], fb[1 + mma_kind<P>::x3][2];
            rows_frag_a<P>(fa, v.a[c], step);
UNROLL
            for (int j = 0; j < ROWS_COLS / 8; j++) {
                rows_frag_b<P>(fb, b, 8 * j, c, step);
                mma_words_step<P>(acc[j], fa, fb);
            }
        }
}

/* Two numbers side by side. */
static __device__ __forceinline__ void rows_two_put(const gemm_product &g, float *row, int n, const float v[2])
{
    float old[2] = { 0, 0 };

    if (g.pairs) {
        row += axis_at(g.c_n, n);
        if (g.add)
            load2(old, row);
        store2(row, old[0] + v[0], old[1] + v[1]);
        return;
    }
UNROLL
    for (int q = 0; q < 2; q++)
        if (n + q < g.n) {
            float *c = row + axis_at(g.c_n, n + q);
            *c = g.add ? *c + v[q] : v[q];
        }
}

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
                rows_two_put(g, to, n, &acc[j][2 * q]);
        }
    }
}

template <int P> __global__ void __launch_bounds__(GEMM_THREADS, 3) gemm_rows(const __grid_constant__ gemm_group s)
{
    __shared__ rows_matrix<P> b;
    int i = gemm_find(s), at = (int)blockIdx.x - s.block[i];
    const gemm_product &g = s.product[i];
    int across = (g.n + ROWS_COLS - 1) / ROWS_COLS, n0 = at % across * ROWS_COLS;
    int first = at / across * ROWS_DOWN + (int)threadIdx.x / 32 * 16 + (int)threadIdx.x % 32 / 4;
    int row[2] = { first, first + 8 };
    float acc[ROWS_COLS / 8][4] = { { 0 } };
    rows_numbers v = rows_get(s, i, row, n0);

    rows_share<P>(v, g.b_along, &b);
    __syncthreads();
    rows_multiply<P>(acc, v, b);
    rows_put(g, row, n0, acc);
}

#endif
