/* models/cuda/so2.cuh - the products along edges in float32, and the gradients of
 * their tables in every precision: op 7 (spec performance 2.1, 2.4).
 *
 * so2_rows: 16 rows of a tile and 128 channels out a block; the table is read once
 * per 16 rows. so2_outer: 64 x 64 of one matrix pair of one radial node a block, rows
 * of its cells along k. No sum depends on how rows share tiles. */
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
    float *to;
} outer_part;

static __device__ __forceinline__ void outer_range(const nn_gpu_so2 &s, int node, int j, int *first, int *end)
{
    nn_gpu_span span = s.span[s.first_node + node];

    *first = span.first[j] > s.first_row ? span.first[j] : s.first_row;
    *end = span.end[j] < s.end_row ? span.end[j] : s.end_row;
}

/* Part `slot` of cells that are longer begins at the only such row in its NN_GPU_OUTER. */
static __device__ __forceinline__ int outer_first(const nn_gpu_so2 &s, int first, int slot)
{
    return first + (slot - (first - s.first_row) / NN_GPU_OUTER) * NN_GPU_OUTER;
}

/* The node of that part; -1: none. All threads of the block. */
static __device__ int outer_node(const nn_gpu_so2 &s, int j, int slot)
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
    o->to = extra >= 0 ? s.work + (int64_t)extra * s.table_size : (float *)s.table + (int64_t)node * s.table_size;
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

template <int P> struct outer_kind {
    enum { k = mma_kind<P>::k, resident = mma_kind<P>::x3 ? 1 : 2 };
    typedef mma_side<P> side;
};

template <> struct outer_kind<NN_GPU_FP32> {
    enum { k = GEMM_K, resident = 1 };
    typedef struct {
        __align__(16) gemm_side v;
    } side;
};

template <int P> struct outer_sides {
    typename outer_kind<P>::side x[2], y[2]; /* plus, minus */
};

template <int P> struct outer_values {
    float x[2][outer_kind<P>::k / 16][4], y[2][outer_kind<P>::k / 16][4];
};

template <int P>
static __device__ __forceinline__ void outer_fetch(const nn_gpu_so2 &s, const so2_part &p, const outer_part &o, int j,
                                                   int row, int end, bool vector, outer_values<P> *v)
{
    const int K = outer_kind<P>::k;
    const nn_gpu_axis one = { INT32_MAX, 0, 1 }, x_rows = { INT32_MAX, 0, s.x_size }, y_rows = { INT32_MAX, 0, s.y_size };

UNROLL
    for (int sign = 0; sign < 2; sign++) {
        operand x = { s.x + s.x_at[p.m] + sign * p.n_k, one, x_rows, o.k0, p.n_k, end, true, vector };
        operand y = { s.y + s.y_at[p.m] + sign * p.n_n, one, y_rows, o.n0, p.n_n, end, true, vector };
        if (sign && !p.m)
            break;
        operand_fetch<K>(x, row, v->x[sign]);
        operand_fetch<K>(y, row, v->y[sign]);
    }
UNROLL
    for (int i = 0; i < K / 16; i++) {
        int r, k;
        float phi;
        part_of<K>(true, i, &r, &k);
        phi = row + k < end ? phi_of(s, row + k, j) : 0;
UNROLL
        for (int q = 0; q < 8; q++)
            v->x[q / 4][i][q % 4] *= phi;
    }
}

template <int P> static __device__ __forceinline__ void outer_put(outer_values<P> *v, outer_sides<P> *to, bool pair)
{
UNROLL
    for (int sign = 0; sign < 2; sign++) {
        if (sign && !pair)
            break;
        if constexpr (P == NN_GPU_FP32) {
            gemm_side_put(true, v->x[sign][0], to->x[sign].v);
            gemm_side_put(true, v->y[sign][0], to->y[sign].v);
        } else {
            side_put_along<P>(v->x[sign], &to->x[sign]);
            side_put_along<P>(v->y[sign], &to->y[sign]);
        }
    }
}

template <int P>
static __device__ __forceinline__ void outer_product(float acc[4][4], typename outer_kind<P>::side &x,
                                                     typename outer_kind<P>::side &y, const bool minus)
{
    if constexpr (P == NN_GPU_FP32) {
        int ty = (int)threadIdx.x / 16 * 4, tx = (int)threadIdx.x % 16 * 4;
UNROLL
        for (int k = 0; k < GEMM_K; k++)
UNROLL
            for (int q = 0; q < 16; q++)
                acc[q / 4][q % 4] += (minus ? -x.v[k][ty + q / 4] : x.v[k][ty + q / 4]) * y.v[k][tx + q % 4];
    } else {
        mma_tile<P>(acc, x, y, minus);
    }
}

/* The filling of a table gets its zeros here. */
template <int P>
static __device__ __forceinline__ void outer_store(const so2_part &p, const outer_part &o, int64_t at, float acc[4][4])
{
UNROLL
    for (int q = 0; q < 16; q++) {
        bool mma = P != NN_GPU_FP32;
        int k = o.k0 + (mma ? mma_row(q / 8, q / 2 % 2) : (int)threadIdx.x / 16 * 4 + q / 4);
        int n = o.n0 + (mma ? mma_col(q / 4 % 2) + q % 2 : (int)threadIdx.x % 16 * 4 + q % 4);
        if (k < padded(p.n_k) && n < p.ld)
            o.to[at + (int64_t)k * p.ld + n] = acc[q / 4][q % 4];
    }
}

/* grid: nodes and parts of longer cells; 64 x 64 of all orders. */
template <int P> __global__ void __launch_bounds__(GEMM_THREADS, outer_kind<P>::resident)
    so2_outer(nn_gpu_so2 s, bool vector)
{
    const int K = outer_kind<P>::k;
    __shared__ outer_sides<P> side;
    float a[4][4] = { { 0 } }, b[4][4] = { { 0 } };
    outer_values<P> v = {};
    outer_part o;
    so2_part p = {};

    if (!outer_rows(s, &o))
        return;
    outer_place(s, &p, &o);
    for (int j = 0; j < 2; j++) {
        int first = j ? o.first[1] : o.first[0], end = j ? o.end[1] : o.end[0];
        outer_fetch<P>(s, p, o, j, first, end, vector, &v);
        for (int row = first; row < end; row += K) {
            outer_put<P>(&v, &side, p.m > 0);
            __syncthreads();
            outer_fetch<P>(s, p, o, j, row + K, end, vector, &v);
            outer_product<P>(a, side.x[0], side.y[0], false);
            if (p.m) {
                outer_product<P>(a, side.x[1], side.y[1], false);
                outer_product<P>(b, side.x[0], side.y[1], false);
                outer_product<P>(b, side.x[1], side.y[0], true);
            }
            __syncthreads();
        }
    }
    outer_store<P>(p, o, s.table_at[p.m], a);
    if (p.m)
        outer_store<P>(p, o, s.table_at[p.m] + p.b, b);
}

/* What the blocks of longer cells made, in the order of rows. grid: 256 numbers of a node's table, node after node
 * (large tables have more parts than a grid may have along y). */
__global__ void outer_add(nn_gpu_so2 s)
{
    unsigned parts = (unsigned)((s.table_size + blockDim.x - 1) / blockDim.x);
    int node = (int)(blockIdx.x / parts), added = 0;
    int64_t i = (int64_t)(blockIdx.x % parts) * blockDim.x + threadIdx.x;
    float *to = (float *)s.table + node * s.table_size + i, sum = 0;

    if (i >= s.table_size)
        return;
    for (int j = 0; j < 2; j++) {
        int first, end;
        outer_range(s, node, j, &first, &end);
        for (int row = first + NN_GPU_OUTER; row < end; row += NN_GPU_OUTER, added++)
            sum += s.work[(int64_t)(j * s.slots + (row - s.first_row) / NN_GPU_OUTER) * s.table_size + i];
    }
    if (added)
        *to += sum;
}

#endif
