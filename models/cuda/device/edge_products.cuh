/* models/cuda/device/edge_products.cuh - the products along edges in float32 (so2_rows), and the gradients of the tables in every
 * precision (so2_outer, outer_add): op 7 (docs/model.md 8, docs/performance.md 2.1, 2.4).
 *
 * The order of a sum does not depend on which rows share a tile. */
#ifndef NN_CUDA_EDGE_PRODUCTS_CUH
#define NN_CUDA_EDGE_PRODUCTS_CUH

enum { SO2_ROWS = 16, SO2_K = 32, SO2_THREADS = 128 };

/* The part of the work that a block has: order m, output column, rows first .. first+rows-1, channels in and out. */
typedef struct so2_part {
    int m, col, first, rows, n_k, n_n;
    int ld, b; /* numbers from row to row of a table's matrix; from matrix a to b */
    const nn_gpu_tile *tile;
} so2_part;

static __device__ __forceinline__ float phi_of(const nn_gpu_so2 &s, int row, int j)
{
    return s.phi[2 * (int64_t)row + j];
}

/* Sets the sizes of order m; the rows of the matrices run along k (turned: along n). */
static __device__ __forceinline__ void part_order(const nn_gpu_so2 &s, so2_part *p, int m, bool turned)
{
    p->m = m;
    p->n_k = s.k[m];
    p->n_n = s.n[m];
    p->ld = padded(turned ? p->n_k : p->n_n);
    p->b = padded(p->n_k) * padded(p->n_n);
}

/* The offset, in numbers, of matrix a of this order for node j of the tile. */
static __device__ __forceinline__ int64_t table_of(const nn_gpu_so2 &s, const so2_part &p, int j)
{
    return (int64_t)(p.tile->node[j] - s.first_node) * s.table_size + s.table_at[p.m];
}

/* xs[sign][k][row] = phi x; zero past the last row and the last k. */
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

/* ---- gradients of tables: dA = x+^T y+ + x-^T y-, dB = x+^T y- - x-^T y+, sums over rows times phi ---- */

/* The rows of a block: the first NN_GPU_OUTER rows of each of the two cells of a node. The further rows of longer cells
 * have blocks of their own, whose sums outer_add adds. k0, n0: the block's 64 x 64 numbers. */
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

/* The first row of the part of a cell that has this slot. A cell that begins at row `first` is cut every NN_GPU_OUTER rows;
 * slot s covers rows s * NN_GPU_OUTER .. of the range, in which at most one such cut falls. */
static __device__ __forceinline__ int outer_first(const nn_gpu_so2 &s, int first, int slot)
{
    return first + (slot - (first - s.first_row) / NN_GPU_OUTER) * NN_GPU_OUTER;
}

/* The node whose part has this slot; -1: none. To be called by all threads of the block. */
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

/* The order and the 64 x 64 numbers of this block: blockIdx.y counts them over all orders. */
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

/* A stage of rows is fetched while the stage before is multiplied: first the rows of the cell where the node is node[0],
 * then those where it is node[1]. On the way to shared memory they are converted to words once for all warps, x times phi.
 * One half of the threads has the plus part, the other the minus part; for m = 0 they have the two halves of a stage. */
enum { OUTER_LD = GEMM_TILE + 8 };

template <int P> struct outer_kind {
    enum {
        x3 = mma_kind<P>::x3,
        per = P == NN_GPU_FP32 ? 1 : mma_kind<P>::per, /* rows in a word: a float's bits are one, too */
        feeds = 2 / per, words = 8 * feeds             /* words of a half; a thread has `feeds` groups of four */
    };
};

template <int P> struct __align__(16) outer_side {
    uint32_t word[1 + outer_kind<P>::x3][outer_kind<P>::words][OUTER_LD];
};

/* Two stages: x plus, x minus, y plus, y minus. */
template <int P> struct outer_memory {
    outer_side<P> side[2][4];
};

static __device__ __forceinline__ int outer_stages(const outer_part &o, int j, int rows)
{
    int n = o.end[j] - o.first[j];

    return n > 0 ? (n + rows - 1) / rows : 0;
}

template <int P> static __device__ __forceinline__ uint32_t outer_word(float x, float y)
{
    return P == NN_GPU_FP32 ? bits_of(x) : word_of<P>(x, y);
}

/* A thread's part of the next stage: four columns of x and of y in two rows, and their phi. x_left, y_left: columns that
 * exist from its first one on. Groups of four past the last column read arbitrary valid memory; their results are never
 * stored. left: rows of the cell from the first row of the stage on. */
typedef struct outer_feed {
    const float *x, *y, *phi;
    int x_left, y_left, left;
} outer_feed;

typedef struct outer_rows_of {
    float x[2][4], y[2][4], phi[2];
} outer_rows_of;

static __device__ __forceinline__ void outer_on(const nn_gpu_so2 &s, int64_t rows, outer_feed *f)
{
    f->x += rows * s.x_size;
    f->y += rows * s.y_size;
    f->phi += 2 * rows;
    f->left -= (int)rows;
}

/* Moves on from the rows of node[0]'s cell to those of node[1]'s. */
static __device__ __forceinline__ void outer_turn(const nn_gpu_so2 &s, const outer_part &o, outer_feed *f)
{
    outer_on(s, o.first[1] - (o.end[0] - f->left), f);
    f->phi++;
    f->left = o.end[1] - o.first[1];
}

template <bool FOURS>
static __device__ __forceinline__ void outer_get(const float *p, int left, bool here, float v[4])
{
    v[0] = v[1] = v[2] = v[3] = 0;
    if (FOURS && here)
        load4(v, p);
UNROLL
    for (int q = 0; q < 4; q++)
        if (!FOURS && here && q < left)
            v[q] = p[q];
}

/* Loads a thread's part of a stage; zeros past the last row. */
template <int P, bool FOURS>
static __device__ __forceinline__ void outer_fetch(const nn_gpu_so2 &s, const outer_feed &f, int skip, outer_rows_of *to)
{
UNROLL
    for (int r = 0; r < 2; r++) {
        int on = outer_kind<P>::per == 2 ? r : 8 * r;
        bool here = skip + on < f.left;
        to->phi[r] = here ? f.phi[2 * on] : 0;
        outer_get<FOURS>(f.x + on * s.x_size, f.x_left, here, to->x[r]);
        outer_get<FOURS>(f.y + on * s.y_size, f.y_left, here, to->y[r]);
    }
}

template <int P>
static __device__ __forceinline__ void outer_put(const float v[2][4], float phi0, float phi1, outer_side<P> *to)
{
    const int x3 = outer_kind<P>::x3, per = outer_kind<P>::per;
    unsigned word = threadIdx.x / 16 % 8, col = threadIdx.x % 16 * 4;

UNROLL
    for (unsigned i = 0; i < outer_kind<P>::feeds; i++) {
        mma_words<4> w, rest;
UNROLL
        for (int q = 0; q < 4; q++) {
            float a = v[i][q] * (i ? phi1 : phi0), b = v[i + per - 1][q] * (i + per - 1 ? phi1 : phi0);
            w.v[q] = outer_word<P>(a, b);
            rest.v[q] = x3 ? word_rest(a, b, w.v[q]) : 0;
        }
        *(mma_words<4> *)&to->word[0][word + 8 * i][col] = w;
        if (x3)
            *(mma_words<4> *)&to->word[x3][word + 8 * i][col] = rest;
    }
}

/* The fragments of a warp's 32 x 16 numbers. The assignment of rows to fragments is free as long as x and the store agree:
 * here a lane's two numbers of x are adjacent and are read at once. */
template <int P>
static __device__ __forceinline__ void outer_x(const outer_side<P> &side, int word, uint32_t f[2][1 + outer_kind<P>::x3][4])
{
    unsigned lane = threadIdx.x % 32, col = threadIdx.x / 128 * 32 + lane / 4 * 2;

UNROLL
    for (unsigned w = 0; w < 4 * (1 + outer_kind<P>::x3); w++) {
        mma_words<2> x = *(const mma_words<2> *)&side.word[w / 4][word + lane % 4 + w % 2 * 4][col + w / 2 % 2 * 16];
        f[w / 2 % 2][w / 4][w % 2 * 2] = x.v[0];
        f[w / 2 % 2][w / 4][w % 2 * 2 + 1] = x.v[1];
    }
}

template <int P>
static __device__ __forceinline__ void outer_y(const outer_side<P> &side, int word, uint32_t f[2][1 + outer_kind<P>::x3][2])
{
    unsigned lane = threadIdx.x % 32, col = threadIdx.x / 32 % 4 * 16 + lane / 4;

UNROLL
    for (unsigned w = 0; w < 2 * (1 + outer_kind<P>::x3); w++)
UNROLL
        for (int i = 0; i < 2; i++)
            f[w % 2][w / 2][i] = side.word[w / 2][word + lane % 4 + 4 * i][col + w % 2 * 8];
}

template <int P>
static __device__ __forceinline__ void outer_step(float acc[4][4], const uint32_t x[2][1 + outer_kind<P>::x3][4],
                                                  const uint32_t y[2][1 + outer_kind<P>::x3][2])
{
UNROLL
    for (int q = 0; q < 4; q++)
        mma_words_step<P>(acc[q], x[q / 2], y[q % 2]);
}

/* Adds a stage to a = dA and b = dB, on tensor cores. */
template <int P, bool PAIR>
static __device__ __forceinline__ void outer_words(float a[4][4], float b[4][4], const outer_side<P> side[4])
{
    const int words = 1 + outer_kind<P>::x3;

UNROLL
    for (int word = 0; word < outer_kind<P>::words; word += 8) {
        uint32_t x[2][words][4], y[2][words][2], minus[2][words][2];
        outer_x(side[0], word, x);
        outer_y(side[2], word, y);
        outer_step<P>(a, x, y);
        outer_y(side[3], word, minus);
        if (PAIR)
            outer_step<P>(b, x, minus);
        outer_x(side[1], word, x);
        outer_step<P>(a, x, minus);
UNROLL
        for (int i = 0; i < 4 * words; i++)
            y[i / 2 / words][i / 2 % words][i % 2] = word_negative<P>(y[i / 2 / words][i / 2 % words][i % 2]);
        if (PAIR)
            outer_step<P>(b, x, y);
    }
}

/* The same in float32, for this thread's 4 x 4 numbers. */
template <int P, bool PAIR>
static __device__ __forceinline__ void outer_floats(float a[4][4], float b[4][4], const outer_side<P> side[4])
{
    int ty = (int)threadIdx.x / 16 * 4, tx = (int)threadIdx.x % 16 * 4;

UNROLL_BY(4)
    for (int k = 0; k < outer_kind<P>::words; k++)
UNROLL
        for (int q = 0; q < 16; q++) {
            float x = float_of(side[0].word[0][k][ty + q / 4]), y = float_of(side[2].word[0][k][tx + q % 4]);
            float xm = float_of(side[1].word[0][k][ty + q / 4]), ym = float_of(side[3].word[0][k][tx + q % 4]);
            a[q / 4][q % 4] += x * y;
            a[q / 4][q % 4] += xm * ym;
            if (PAIR) {
                b[q / 4][q % 4] += x * ym;
                b[q / 4][q % 4] -= xm * y;
            }
        }
}

template <int P, bool PAIR, bool FOURS>
static __device__ __forceinline__ void outer_sum(const nn_gpu_so2 &s, const so2_part &p, const outer_part &o,
                                                 outer_memory<P> &w, float a[4][4], float b[4][4])
{
    const int rows = (PAIR ? 1 : 2) * outer_kind<P>::words * outer_kind<P>::per;
    unsigned t = threadIdx.x, half = t / 128, col = t % 16 * 4;
    int skip = (int)(t / 16 % 8 + (PAIR ? 0 : half * outer_kind<P>::words)) * outer_kind<P>::per, sign = PAIR ? (int)half : 0;
    bool idle = o.k0 + (int)half * 32 >= p.n_k || o.n0 + (int)t / 32 % 4 * 16 >= p.n_n; /* this warp's 32 x 16 */
    int first = outer_stages(o, 0, rows), all = first + outer_stages(o, 1, rows);
    int64_t begin = o.first[0] + skip;
    int x_left = p.n_k - o.k0 - (int)col, y_left = p.n_n - o.n0 - (int)col;
    outer_feed f = { s.x + begin * s.x_size + s.x_at[p.m] + sign * p.n_k + o.k0 + (FOURS && x_left <= 0 ? 0 : col),
                     s.y + begin * s.y_size + s.y_at[p.m] + sign * p.n_n + o.n0 + (FOURS && y_left <= 0 ? 0 : col),
                     s.phi + 2 * begin, x_left, y_left, o.end[0] - o.first[0] };
    outer_side<P> *side = w.side[0];
    outer_rows_of next;

    if (!first)
        outer_turn(s, o, &f);
    outer_fetch<P, FOURS>(s, f, skip, &next);
UNROLL_BY(1)
    for (int at = 1; at <= all; at++) {
        outer_put<P>(next.x, next.phi[0], next.phi[1], side + half);
        outer_put<P>(next.y, 1, 1, side + 2 + half);
        __syncthreads();
        if (at == first)
            outer_turn(s, o, &f);
        else
            outer_on(s, rows, &f);
        outer_fetch<P, FOURS>(s, f, skip, &next);
        if constexpr (P == NN_GPU_FP32)
            outer_floats<P, PAIR>(a, b, side);
        else if (!idle)
            outer_words<P, PAIR>(a, b, side);
        side = side == w.side[0] ? w.side[1] : w.side[0];
    }
}

/* Stores the sums, and zeros in the padding of the table. */
template <int P>
static __device__ __forceinline__ void outer_store(const nn_gpu_so2 &s, const so2_part &p, const outer_part &o,
                                                   int64_t at, float acc[4][4])
{
    const bool mma = P != NN_GPU_FP32;
    int extra = (int)blockIdx.x - s.n_nodes, t = (int)threadIdx.x, lane = t % 32;
    int k = o.k0 + (mma ? t / 128 * 32 + lane / 4 * 2 : t / 16 * 4);
    int n = o.n0 + (mma ? t / 32 % 4 * 16 + lane % 4 * 2 : t % 16 * 4);
    float *to = (extra >= 0 ? s.work + extra * s.table_size : (float *)s.table + (int)blockIdx.x * s.table_size) + at;

UNROLL
    for (int q = 0; q < 8; q++) {
        int row = k + (mma ? q / 4 * 16 + q % 2 : q / 2), col = n + (mma ? q / 2 % 2 * 8 : q % 2 * 2);
        bool here = row < p.n_k && col < p.n_n;
        if (row < padded(p.n_k) && col < p.ld)
            store2(to + row * p.ld + col, here ? acc[q / 2][q % 2 * 2] : 0, here ? acc[q / 2][q % 2 * 2 + 1] : 0);
    }
}

/* Op 7 backward: for every radial node and order m > 0 dA = sum over its rows of phi (x+^T y+ + x-^T y-), dB = sum of
 * phi (x+^T y- - x-^T y+); m = 0: dA = sum of phi x^T y.
 * Grid: x = n_nodes nodes, then 2 * slots parts of cells longer than NN_GPU_OUTER rows (to work); y = 64 x 64 numbers of
 * the matrices of all orders. Block: 256 threads, on tensor cores 8 warps with 32 x 16 numbers each, in float32 4 x 4 a
 * thread. Shared: outer_memory, two stages of x plus, x minus, y plus, y minus. P: precision. fours: x and y can be read
 * four numbers at a time. Equals: the gradient of R T in path_backward (models/ref/conv.inc), summed over edges, in the
 * edge's frame. */
template <int P>
__global__ void __launch_bounds__(GEMM_THREADS, P == NN_GPU_FP16 || P == NN_GPU_BF16 ? 3 : 2)
    so2_outer(const __grid_constant__ nn_gpu_so2 s, bool fours)
{
    __shared__ outer_memory<P> w;
    float a[4][4] = { { 0 } }, b[4][4] = { { 0 } };
    outer_part o;
    so2_part p = {};

    if (!outer_rows(s, &o))
        return;
    outer_place(s, &p, &o);
    if (p.m && fours)
        outer_sum<P, true, true>(s, p, o, w, a, b);
    else if (p.m)
        outer_sum<P, true, false>(s, p, o, w, a, b);
    else if (fours)
        outer_sum<P, false, true>(s, p, o, w, a, b);
    else
        outer_sum<P, false, false>(s, p, o, w, a, b);
    outer_store<P>(s, p, o, s.table_at[p.m], a);
    if (p.m)
        outer_store<P>(s, p, o, s.table_at[p.m] + (int64_t)padded(p.n_k) * p.ld, b);
}

enum { ADD_THREADS = 256, ADD_NUMBERS = 4 * ADD_THREADS, ADD_AHEAD = 8 };

/* sum += numbers i .. i+3 of n consecutive parts; ADD_AHEAD loads are in flight at once. */
static __device__ __forceinline__ void add_parts(const nn_gpu_so2 &s, int part, int n, int64_t i, float sum[4])
{
    const float *p = s.work + part * s.table_size + i;

UNROLL_BY(1)
    for (; n > 0; n -= ADD_AHEAD) {
        float v[ADD_AHEAD][4] = { { 0 } };
UNROLL
        for (int q = 0; q < ADD_AHEAD; q++, p += s.table_size)
            if (q < n)
                load4(v[q], p);
UNROLL
        for (int q = 0; q < 4 * ADD_AHEAD; q++)
            sum[q % 4] += v[q / 4][q % 4];
    }
}

#endif
