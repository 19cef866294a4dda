/* models/cuda/device/tables.cuh - products of few rows with a very wide matrix on tensor cores: tables of radial nodes (op 5, docs/model.md 8).
 *
 * table[node][column] = sum over the 32 hidden units of h[node][unit] folded[unit][column]. k is short, so the time goes
 * into reading the matrix (once) and writing the table (16 bytes at a time).
 *   grid    one dimension, as in gemm.cuh; a block has TABLES_DOWN rows (nodes) and TABLES_COLS columns
 *   warp    32 columns, loaded directly into its fragments, which stay in registers
 *   lane    four adjacent columns and eight adjacent numbers along k of the matrix; eight adjacent sums of a row
 *   shared  the block's rows as words, tables_rows [row][words along k]; there is one barrier
 * The assignment of numbers to fragments suits reading and writing and differs from PTX's: column 4 g + j is column g of
 * fragment j. */
#ifndef NN_CUDA_TABLES_CUH
#define NN_CUDA_TABLES_CUH

enum { TABLES_THREADS = 128, TABLES_COLS = TABLES_THREADS, TABLES_DOWN = 128, TABLES_K = NN_GPU_H, TABLES_MANY = 8 };

/* ld is chosen so that reads of 16 bytes have no bank conflicts. */
template <int P> struct tables_rows {
    enum { words = TABLES_K / mma_kind<P>::per, ld = words + (words == 32 ? 4 : 0), rest = TABLES_DOWN * ld };
    __align__(16) uint32_t word[1 + mma_kind<P>::x3][TABLES_DOWN][ld];
};

/* A lane's part of the matrix: the words along k of its four columns j. */
template <int P> struct tables_matrix {
    enum { words = TABLES_MANY / mma_kind<P>::per };
    uint32_t word[4][words][1 + mma_kind<P>::x3];
};

static __device__ __forceinline__ void tables_get(const gemm_product &g, int n, float v[TABLES_MANY][4])
{
    int64_t step = g.b_k.inner_step;
    const float *p = g.b + axis_at(g.b_n, n < g.n ? n : g.n - 4) + (int)threadIdx.x % 4 * TABLES_MANY * step;

UNROLL
    for (int q = 0; q < TABLES_MANY; q++)
        load4(v[q], p + q * step);
}

template <int P>
static __device__ __forceinline__ void tables_words(const float v[TABLES_MANY][4], tables_matrix<P> *to)
{
    const int per = mma_kind<P>::per, x3 = mma_kind<P>::x3;

UNROLL
    for (int j = 0; j < 4; j++)
UNROLL
        for (int w = 0; w < tables_matrix<P>::words; w++) {
            float x = v[w * per][j], y = v[w * per + per - 1][j];
            to->word[j][w][0] = word_of<P>(x, y);
            if (x3)
                to->word[j][w][x3] = word_rest(x, y, to->word[j][w][0]);
        }
}

/* Copies rows first .. first+rows-1 to shared memory; past the last row the last one is used; those sums are never stored. */
template <int P>
static __device__ __forceinline__ void tables_share(const gemm_product &g, int first, int rows, tables_rows<P> *to)
{
UNROLL_BY(2)
    for (int i = (int)threadIdx.x; i < rows * (TABLES_K / 4); i += TABLES_THREADS) {
        int row = i / (TABLES_K / 4), k = i % (TABLES_K / 4) * 4, from = first + row < g.m ? first + row : g.m - 1;
        float v[4];
        load4(v, g.a + (int64_t)from * g.a_m.inner_step + k);
        words_put<P, 4>(to->word[0][row], tables_rows<P>::rest, k, v);
    }
}

/* acc += the products of rows row .. row+15 in shared memory with the lane's columns. */
template <int P>
static __device__ __forceinline__ void tables_multiply(float acc[4][4], const tables_rows<P> &a, int row,
                                                       const tables_matrix<P> &b)
{
    const int x3 = mma_kind<P>::x3, words = tables_matrix<P>::words;
    int lane = (int)threadIdx.x % 32;

UNROLL
    for (int w = 0; w < words; w += 4) {
        mma_words<4> of[1 + x3][2];
UNROLL
        for (int q = 0; q < 2 * (1 + x3); q++)
            of[q / 2][q % 2] = *(const mma_words<4> *)&a.word[q / 2][row + lane / 4 + q % 2 * 8][lane % 4 * words + w];
UNROLL
        for (int q = 0; q < 8; q++) { /* two steps of all four columns */
            int at = q / 4 * 2, j = q % 4;
            uint32_t fa[1 + x3][4], fb[1 + x3][2];
UNROLL
            for (int low = 0; low < 1 + x3; low++) {
UNROLL
                for (int i = 0; i < 4; i++)
                    fa[low][i] = of[low][i % 2].v[at + i / 2];
                fb[low][0] = b.word[j][w + at][low];
                fb[low][1] = b.word[j][w + at + 1][low];
            }
            mma_words_step<P>(acc[j], fa, fb);
        }
    }
}

/* The default format of tables in precision P. SAME: all products of the launch have it. */
template <int P> struct tables_kept {
    enum { as = P == NN_GPU_BF16X3 ? NN_GPU_FP32 : P };
};

/* Stores half of a lane's sums, eight adjacent ones, as numbers at .. at+7 of the table. */
static __device__ __forceinline__ void tables_put(const gemm_product &g, int as, int64_t at, const float acc[4][4], int half)
{
    mma_words<4> w;

    if (as == NN_GPU_FP16 || as == NN_GPU_BF16) {
UNROLL
        for (int q = 0; q < 4; q++) {
            float x = acc[q % 2 * 2][2 * half + q / 2], y = acc[q % 2 * 2 + 1][2 * half + q / 2];
            w.v[q] = as == NN_GPU_FP16 ? fp16_pair(x, y) : bf16_pair(x, y);
        }
        *(mma_words<4> *)((uint16_t *)g.c + at) = w;
        return;
    }
UNROLL
    for (int i = 0; i < 2; i++) {
        float v[4] = { acc[0][2 * half + i], acc[1][2 * half + i], acc[2][2 * half + i], acc[3][2 * half + i] };
UNROLL
        for (int q = 0; q < 4; q++)
            w.v[q] = tf32_round(v[q]);
        if (as == NN_GPU_TF32)
            *(mma_words<4> *)((uint32_t *)g.c + at + 4 * i) = w;
        else
            store4((float *)g.c + at + 4 * i, v);
    }
}

/* Map and shared memory: the head of this file. P: precision of the factors; SAME: the tables have its default format.
 * Equals: the last radial layer in path_forward (models/ref/conv.inc), at radial nodes and folded. */
template <int P, bool SAME>
__global__ void __launch_bounds__(TABLES_THREADS, mma_kind<P>::per == 2 && !mma_kind<P>::x3 ? 8 : 5)
    gemm_tables(const __grid_constant__ gemm_group s)
{
    __shared__ tables_rows<P> a;
    tables_matrix<P> b;
    float v[TABLES_MANY][4];
    int i = gemm_find(s), at = (int)blockIdx.x - s.block[i], lane = (int)threadIdx.x % 32;
    const gemm_product &g = s.product[i];
    int down = (g.m + TABLES_DOWN - 1) / TABLES_DOWN, across = at / down, first = (at - across * down) * TABLES_DOWN;
    int rows = g.m - first < TABLES_DOWN ? g.m - first : TABLES_DOWN;
    int n0 = across * TABLES_COLS + (int)threadIdx.x / 32 * 32, n = n0 + lane % 4 * TABLES_MANY;
    int64_t to = (int64_t)(first + lane / 4) * g.c_m.inner_step + axis_at(g.c_n, n);

    tables_get(g, n0 + lane / 4 * 4, v);
    tables_share<P>(g, first, (rows + 15) / 16 * 16, &a);
    tables_words<P>(v, &b);
    __syncthreads();
UNROLL_BY(1)
    for (int row = 0; row < rows; row += 16) {
        float acc[4][4] = { { 0 } };
        tables_multiply<P>(acc, a, row, b);
UNROLL
        for (int half = 0; half < 2; half++, to += 8 * (int64_t)g.c_m.inner_step)
            if (row + lane / 4 + 8 * half < rows && n < g.n)
                tables_put(g, SAME ? (int)tables_kept<P>::as : (int)g.c_as, to, acc, half);
    }
}

#endif
