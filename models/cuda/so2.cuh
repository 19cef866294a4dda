/* models/cuda/so2.cuh - the products along edges in float32, and the gradients of
 * their tables in every precision: op 7 (spec performance 2.1, 2.4).
 *
 * so2_rows: 16 rows of a tile and 128 channels out a block; the table is read once
 * per 16 rows. so2_outer: 64 x 64 of one matrix pair of one radial node a block, rows
 * of its cells along k, on tensor cores but for float32. No sum depends on how rows share tiles. */
#ifndef NN_CUDA_SO2_CUH
#define NN_CUDA_SO2_CUH

enum { SO2_ROWS = 16, SO2_K = 32, SO2_THREADS = 128 };

/* One block's part of the work. */
typedef struct so2_part {
    int m, col, first, rows, n_k, n_n;
    int ld, b; /* between rows of a table's matrices; from a to b */
    const nn_gpu_tile *tile;
} so2_part;

static __device__ __forceinline__ float phi_of(const nn_gpu_so2 &s, int row, int j)
{
    return s.phi[2 * (int64_t)row + j];
}

/* Order m; matrices with rows along k (turned: along n). */
static __device__ __forceinline__ void part_order(const nn_gpu_so2 &s, so2_part *p, int m, bool turned)
{
    p->m = m;
    p->n_k = s.k[m];
    p->n_n = s.n[m];
    p->ld = padded(turned ? p->n_k : p->n_n);
    p->b = padded(p->n_k) * padded(p->n_n);
}

/* Matrix a of the part's order for node j of the tile, in numbers from the table's begin. */
static __device__ __forceinline__ int64_t table_of(const nn_gpu_so2 &s, const so2_part &p, int j)
{
    return (int64_t)(p.tile->node[j] - s.first_node) * s.table_size + s.table_at[p.m];
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
UNROLL_BY(4)
    for (int k = 0; k < count; k++) {
        float w = a[k * p.ld];
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
UNROLL_BY(4)
    for (int k = 0; k < count; k++) {
        float wa = a[k * p.ld], wb = sign * a[p.b + k * p.ld];
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
    part_order(s, &p, (int)blockIdx.y % s.n_orders, false);
    p.col = (int)blockIdx.y / s.n_orders * SO2_THREADS + (int)threadIdx.x;
    if (p.rows <= 0 || p.col - (int)threadIdx.x >= p.n_n)
        return;
    for (int j = 0; j < 2 && p.tile->node[j] >= 0; j++)
        for (int k0 = 0; k0 < p.n_k; k0 += SO2_K) {
            const float *a = (const float *)s.table + table_of(s, p, j) + k0 * p.ld + p.col;
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

/* ---- gradients of tables: dA = x+' y+ + x-' y-, dB = x+' y- - x-' y+ ---- */

/* The first NN_GPU_OUTER rows of each of a node's cells; longer cells go on in blocks of
 * their own, whose sums outer_add adds. */
typedef struct outer_part {
    int first[2], end[2], k0, n0;
} outer_part;

static __device__ __forceinline__ void outer_range(const nn_gpu_so2 &s, int node, int j, int *first, int *end)
{
    nn_gpu_span span = s.span[s.first_node + node];

    *first = j ? span.first[1] : span.first[0];
    *end = j ? span.end[1] : span.end[0];
    *first = *first > s.first_row ? *first : s.first_row;
    *end = *end < s.end_row ? *end : s.end_row;
}

/* Part `slot` of cells that are longer begins at the only such row in its NN_GPU_OUTER. */
static __device__ __forceinline__ int outer_first(const nn_gpu_so2 &s, int first, int slot)
{
    return first + (slot - (first - s.first_row) / NN_GPU_OUTER) * NN_GPU_OUTER;
}

/* The node of that part; -1: none. All threads of the block. */
static __device__ __forceinline__ int outer_node(const nn_gpu_so2 &s, int j, int slot)
{
    __shared__ int found;

    if (threadIdx.x == 0)
        found = -1;
    __syncthreads();
    for (int node = (int)threadIdx.x; node < s.n_nodes; node += (int)blockDim.x) {
        int first, end, row;
        outer_range(s, node, j, &first, &end);
        row = outer_first(s, first, slot);
        if (first < row && row < end)
            found = node;
    }
    __syncthreads();
    return found;
}

static __device__ bool outer_rows(const nn_gpu_so2 &s, outer_part *o)
{
    int extra = (int)blockIdx.x - s.n_nodes, node = (int)blockIdx.x;

    if (extra >= 0) {
        node = outer_node(s, extra / s.slots, extra % s.slots);
        if (node < 0)
            return false;
    }
UNROLL
    for (int j = 0; j < 2; j++) {
        outer_range(s, node, j, &o->first[j], &o->end[j]);
        if (extra >= 0)
            o->first[j] = j == extra / s.slots ? outer_first(s, o->first[j], extra % s.slots) : o->end[j];
        if (o->end[j] > o->first[j] + NN_GPU_OUTER)
            o->end[j] = o->first[j] + NN_GPU_OUTER;
    }
    return true;
}

/* blockIdx.y counts 64 x 64 of all orders. */
static __device__ __forceinline__ void outer_place(const nn_gpu_so2 &s, so2_part *p, outer_part *o)
{
    int at = (int)blockIdx.y;

    for (int m = 0; m < s.n_orders; m++) {
        int across = (s.n[m] + GEMM_TILE - 1) / GEMM_TILE, down = (s.k[m] + GEMM_TILE - 1) / GEMM_TILE;
        if (at < across * down) {
            part_order(s, p, m, false);
            o->k0 = at / across * GEMM_TILE;
            o->n0 = at % across * GEMM_TILE;
            return;
        }
        at -= across * down;
    }
}

/* Rows come as they are, OUTER_K a stage, by copies that are OUTER_STAGES - 1 stages ahead, those of node[0]'s
 * cell, then those of node[1]'s; words are made where fragments are. side: x plus, x minus, y plus, y minus. */
enum { OUTER_K = 16, OUTER_STAGES = 3, OUTER_LD = GEMM_TILE + 4 };

typedef float outer_side[OUTER_K][OUTER_LD];

typedef struct outer_memory {
    outer_side stage[OUTER_STAGES][4];
    float phi[2 * NN_GPU_OUTER]; /* of all rows, stage after stage */
} outer_memory;

static_assert(NN_GPU_OUTER % OUTER_K == 0, "a part of a cell is whole stages");

static __device__ __forceinline__ int outer_stages(const outer_part &o, int j)
{
    int rows = o.end[j] - o.first[j];

    return rows > 0 ? (rows + OUTER_K - 1) / OUTER_K : 0;
}

/* This thread's four of row k: of plus and of minus, which is `apart` numbers on. */
static __device__ __forceinline__ void outer_copy(const float *from, int apart, int left, bool pair, bool vector,
                                                  outer_side to[2], int k, int col)
{
    if (vector) {
        copy_async(&to[0][k][col], from, left > 0 ? 16 : 0);
        if (pair)
            copy_async(&to[1][k][col], from + (left > 0 ? apart : 0), left > 0 ? 16 : 0);
        return;
    }
UNROLL_BY(1)
    for (int i = 0; i < (pair ? 8 : 4); i++)
        to[i / 4][k][col + i % 4] = i % 4 < left ? from[i / 4 * apart + i % 4] : 0;
}

static __device__ __forceinline__ void outer_begin(const nn_gpu_so2 &s, const so2_part &p, const outer_part &o, int at,
                                                   bool vector, outer_side to[4])
{
    int first = outer_stages(o, 0), j = at >= first, k = (int)threadIdx.x / 16, col = (int)threadIdx.x % 16 * 4;
    int row = (j ? o.first[1] : o.first[0]) + (at - (j ? first : 0)) * OUTER_K + k;
    bool here = row < (j ? o.end[1] : o.end[0]);
    int x_left = here ? p.n_k - o.k0 - col : 0, y_left = here ? p.n_n - o.n0 - col : 0;
    int64_t x = (int64_t)row * s.x_size + s.x_at[p.m] + o.k0 + col;
    int64_t y = (int64_t)row * s.y_size + s.y_at[p.m] + o.n0 + col;

    outer_copy(s.x + (x_left > 0 ? x : 0), p.n_k, x_left, p.m > 0, vector, to, k, col);
    outer_copy(s.y + (y_left > 0 ? y : 0), p.n_n, y_left, p.m > 0, vector, to + 2, k, col);
}

static __device__ __forceinline__ void outer_weights(const nn_gpu_so2 &s, const outer_part &o, float *phi)
{
    int first = outer_stages(o, 0) * OUTER_K, all = first + outer_stages(o, 1) * OUTER_K;

    for (int i = (int)threadIdx.x; i < all; i += GEMM_THREADS) {
        int j = i >= first, row = j ? o.first[1] + i - first : o.first[0] + i;
        phi[i] = row < (j ? o.end[1] : o.end[0]) ? phi_of(s, row, j) : 0;
    }
}

/* Rows row .. of words along the stage's k, times phi where given: f[i] as frag_a and frag_b have them. */
template <int P, int N>
static __device__ __forceinline__ void outer_frag(uint32_t f[1 + mma_kind<P>::x3][N], const outer_side side,
                                                  const float *phi, int k, int row)
{
    const int per = mma_kind<P>::per;
    int lane = (int)threadIdx.x % 32;

UNROLL
    for (int i = 0; i < N; i++) {
        int at = k + (lane % 4 + i / (N / 2) * 4) * per, r = row + lane / 4 + i % (N / 2) * 8;
        float x = side[at][r] * (N == 4 ? phi[at] : 1.0f);
        float y = side[at + per - 1][r] * (N == 4 ? phi[at + per - 1] : 1.0f);
        f[0][i] = word_of<P>(x, y);
        if (mma_kind<P>::x3)
            f[mma_kind<P>::x3][i] = word_rest(x, y, f[0][i]);
    }
}

/* A stage's part of a and b, on tensor cores: this warp's 32 x 16. */
template <int P, bool PAIR>
static __device__ __forceinline__ void outer_words(float a[4][4], float b[4][4], const outer_side side[4],
                                                   const float *phi)
{
    const int words = 1 + mma_kind<P>::x3, signs = PAIR ? 2 : 1;
    int warp = (int)threadIdx.x / 32;

UNROLL
    for (int k = 0; k < OUTER_K; k += 8 * mma_kind<P>::per) {
        uint32_t x[words][4], y[2][2][words][2];
UNROLL
        for (int q = 0; q < 2 * signs; q++)
            outer_frag<P, 2>(y[q / 2][q % 2], side[2 + q / 2], phi, k, warp % 4 * 16 + q % 2 * 8);
UNROLL
        for (int q = 0; q < 2 * signs; q++) {
            int sign = q % signs, i = q / signs;
            outer_frag<P, 4>(x, side[sign], phi, k, warp / 4 * 32 + 16 * i);
UNROLL
            for (int j = 0; j < 2; j++)
                mma_words_step<P>(a[2 * i + j], x, y[sign][j]);
UNROLL
            for (int w = 0; w < 4 * words && sign; w++)
                x[w / 4][w % 4] = word_negative<P>(x[w / 4][w % 4]);
UNROLL
            for (int j = 0; j < 2 && PAIR; j++)
                mma_words_step<P>(b[2 * i + j], x, y[signs - 1 - sign][j]);
        }
    }
}

/* The same in float32: this thread's 4 x 4. */
template <bool PAIR>
static __device__ __forceinline__ void outer_floats(float a[4][4], float b[4][4], const outer_side side[4],
                                                    const float *phi)
{
    int ty = (int)threadIdx.x / 16 * 4, tx = (int)threadIdx.x % 16 * 4;

UNROLL_BY(4)
    for (int k = 0; k < OUTER_K; k++)
UNROLL
        for (int q = 0; q < 16; q++) {
            float x = phi[k] * side[0][k][ty + q / 4], y = side[2][k][tx + q % 4];
            a[q / 4][q % 4] += x * y;
            if (PAIR) {
                float xm = phi[k] * side[1][k][ty + q / 4], ym = side[3][k][tx + q % 4];
                a[q / 4][q % 4] += xm * ym;
                b[q / 4][q % 4] += x * ym;
                b[q / 4][q % 4] -= xm * y;
            }
        }
}

template <int P, bool PAIR>
static __device__ __forceinline__ void outer_sum(const nn_gpu_so2 &s, const so2_part &p, const outer_part &o,
                                                 bool vector, outer_memory *w, float a[4][4], float b[4][4])
{
    int all = outer_stages(o, 0) + outer_stages(o, 1), warp = (int)threadIdx.x / 32;
    bool idle = o.k0 + warp / 4 * 32 >= p.n_k || o.n0 + warp % 4 * 16 >= p.n_n; /* this warp's 32 x 16 */

UNROLL_BY(1)
    for (int at = 0; at < OUTER_STAGES - 1; at++) {
        if (at < all)
            outer_begin(s, p, o, at, vector, w->stage[at]);
        copy_close();
    }
    outer_weights(s, o, w->phi);
UNROLL_BY(1)
    for (int at = 0; at < all; at++) {
        const outer_side *side = w->stage[at % OUTER_STAGES];
        copy_wait<OUTER_STAGES - 2>();
        __syncthreads();
        if (at + OUTER_STAGES - 1 < all)
            outer_begin(s, p, o, at + OUTER_STAGES - 1, vector, w->stage[(at + OUTER_STAGES - 1) % OUTER_STAGES]);
        copy_close();
        if constexpr (P == NN_GPU_FP32)
            outer_floats<PAIR>(a, b, side, w->phi + at * OUTER_K);
        else if (!idle)
            outer_words<P, PAIR>(a, b, side, w->phi + at * OUTER_K);
    }
}

/* The filling of a table gets its zeros here. */
template <int P>
static __device__ __forceinline__ void outer_store(const nn_gpu_so2 &s, const so2_part &p, const outer_part &o,
                                                   int64_t at, float acc[4][4])
{
    int extra = (int)blockIdx.x - s.n_nodes;
    float *to = extra >= 0 ? s.work + extra * s.table_size : (float *)s.table + (int)blockIdx.x * s.table_size;

UNROLL
    for (int q = 0; q < 16; q++) {
        bool mma = P != NN_GPU_FP32;
        int k = o.k0 + (mma ? mma_row(q / 8, q / 2 % 2) : (int)threadIdx.x / 16 * 4 + q / 4);
        int n = o.n0 + (mma ? mma_col(q / 4 % 2) + q % 2 : (int)threadIdx.x % 16 * 4 + q % 4);
        if (k < padded(p.n_k) && n < p.ld)
            to[at + (int64_t)k * p.ld + n] = acc[q / 4][q % 4];
    }
}

/* grid: nodes and parts of longer cells; 64 x 64 of all orders. Dynamic shared memory: an outer_memory. */
template <int P>
__global__ void __launch_bounds__(GEMM_THREADS, P == NN_GPU_FP16 || P == NN_GPU_BF16 ? 3 : 2)
    so2_outer(const __grid_constant__ nn_gpu_so2 s, bool vector)
{
    SHARED_BYTES(bytes);
    float a[4][4] = { { 0 } }, b[4][4] = { { 0 } };
    outer_part o;
    so2_part p = {};

    if (!outer_rows(s, &o))
        return;
    outer_place(s, &p, &o);
    if (p.m)
        outer_sum<P, true>(s, p, o, vector, (outer_memory *)bytes, a, b);
    else
        outer_sum<P, false>(s, p, o, vector, (outer_memory *)bytes, a, b);
    outer_store<P>(s, p, o, s.table_at[p.m], a);
    if (p.m)
        outer_store<P>(s, p, o, s.table_at[p.m] + p.b, b);
}

enum { ADD_THREADS = 256, ADD_NUMBERS = 4 * ADD_THREADS };

/* What the blocks of longer cells made, in the order of rows: a node's first such part adds all of them.
 * grid: ADD_NUMBERS of a table, part after part. */
__global__ void __launch_bounds__(ADD_THREADS) outer_add(const __grid_constant__ nn_gpu_so2 s)
{
    int across = (int)((s.table_size + ADD_NUMBERS - 1) / ADD_NUMBERS), part = (int)blockIdx.x / across;
    int node = outer_node(s, part / s.slots, part % s.slots), begin, first[2], end[2];

    if (node < 0)
        return;
    outer_range(s, node, 0, &first[0], &end[0]);
    outer_range(s, node, 1, &first[1], &end[1]);
    begin = part < s.slots ? first[0] : first[1];
    if (outer_first(s, begin, part % s.slots) != begin + NN_GPU_OUTER
        || (part >= s.slots && end[0] > first[0] + NN_GPU_OUTER))
        return;
UNROLL
    for (int q = 0; q < 4; q++) {
        int64_t i = (int64_t)((int)blockIdx.x % across) * ADD_NUMBERS + q * ADD_THREADS + (int)threadIdx.x;
        float *to = (float *)s.table + node * s.table_size + i, sum = 0;
        if (i >= s.table_size)
            break;
UNROLL
        for (int j = 0; j < 2; j++)
            for (int row = first[j] + NN_GPU_OUTER; row < end[j]; row += NN_GPU_OUTER)
                sum += s.work[(int64_t)(j * s.slots + (row - s.first_row) / NN_GPU_OUTER) * s.table_size + i];
        *to += sum;
    }
}

#endif
