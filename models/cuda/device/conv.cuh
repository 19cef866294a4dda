/* models/cuda/device/conv.cuh - the fused convolution: rotation into the frames, products (tiles.cuh) and logits of a tile in one
 * kernel: ops 6, 7, 8 (docs/model.md 8, docs/performance.md 5.3).
 *
 * Before and after the products a thread has W adjacent channels of one row, W = 4 or 1. Loads of all degrees are
 * issued together, before their results are needed, because the time goes into latency. */
#ifndef NN_CUDA_CONV_CUH
#define NN_CUDA_CONV_CUH

/* ---- the features ------------------------------------------------------------------- */

static __device__ __forceinline__ void nodes_make(const nn_gpu_turn &t, const so2_part &p, int *node)
{
    for (int i = (int)threadIdx.x; i < p.rows; i += TILE_THREADS)
        node[i] = t.node ? t.node[p.first + i] : 0;
}

/* Columns +m and -m of D for each row of the tile; lane = degree and component. Rows past the tile's end repeat the
 * last one, so that no load depends on a condition. */
static __device__ __forceinline__ void heads_make(const nn_gpu_turn &t, const so2_part &p, tile_heads *h)
{
    const int rows = NN_GPU_TILE / (TILE_THREADS / 32);
    int lane = (int)threadIdx.x % 32, l = (lane >= 1) + (lane >= 4) + (lane >= 9) + (lane >= 16), n = 2 * l + 1;
    int at = l ? frame_at(l) + (lane - l * l) * n + l : 0, row[rows];
    bool here = l >= p.m && lane < NN_GPU_DEGREES * NN_GPU_DEGREES && (!l || frame_at(l) + n * n <= t.frame_size);

UNROLL
    for (int i = 0; i < rows; i++) {
        row[i] = (int)threadIdx.x / 32 * rows + i;
        row[i] = p.first + (row[i] < p.rows ? row[i] : p.rows - 1);
    }
UNROLL
    for (int i = 0; i < rows && here; i++) {
        const float *d = t.d + (int64_t)t.frame[row[i]] * t.frame_size + at;
        tile_pair v = { l ? d[p.m] : 1.0f, l ? d[-p.m] : 1.0f };
        h->col[(int)threadIdx.x / 32 * rows + i][lane] = v;
    }
}

template <int L> static __device__ __forceinline__ bool degree_here(const nn_gpu_turn &t, int m, int k)
{
    return L >= m && k < t.edges.ch[L];
}

/* All components of degree L, channels k .. k+W-1, of a node. If order m does not have them, arbitrary valid memory is
 * read, because unconditional loads can be in flight together; the result is not used. */
template <int L, int W>
static __device__ __forceinline__ void degree_get(const nn_gpu_turn &t, int node, int m, int k, float q[][W])
{
    bool here = degree_here<L>(t, m, k);
    const float *x = here ? t.x + (int64_t)node * t.nodes.size + t.nodes.at[L] + k : t.x;
    int step = here ? t.edges.ch[L] : 0;

UNROLL
    for (int i = 0; i < 2 * L + 1; i++)
        some_get<W>(q[i], x + i * step);
}

/* Their components +m and -m in the frame: v[0] = sum over i of D[i][+m] q[i], v[1] the same with -m. */
template <int L, int W>
static __device__ __forceinline__ void degree_turn(const tile_pair *col, const float q[][W], float v[2][W])
{
UNROLL
    for (int w = 0; w < W; w++)
        v[0][w] = v[1][w] = 0;
UNROLL
    for (int i = 0; i < 2 * L + 1; i++) {
        tile_pair d = col[L * L + i];
UNROLL
        for (int w = 0; w < W; w++) {
            v[0][w] += d.plus * q[i][w];
            v[1][w] += d.minus * q[i][w];
        }
    }
}

template <int P, bool U, int L, int W>
static __device__ __forceinline__ void degree_put(const nn_gpu_conv &c, const so2_part &p, const tile_memory &t,
                                                  int row, int k, const float q[][W])
{
    float v[2][W];
    int at;

    if (!degree_here<L>(c.x, p.m, k))
        return;
    at = c.x.edges.at[L][L + p.m] - c.x.edges.order[p.m] + k;
    degree_turn<L, W>(t.heads->col[row], q, v);
    tile_put<P, U, W>(t, row, 0, at, v[0]);
    if (p.m)
        tile_put<P, U, W>(t, row, 1, at, v[1]);
}

/* A work item of a thread: channels k .. k+W-1 of a row, degrees 0 to 2, or, if high, degrees 3 and 4. */
typedef struct tile_item {
    int row, k;
    bool high;
} tile_item;

static __device__ __forceinline__ int tile_items(const so2_part &p, int degrees, int wide)
{
    return p.rows * wide * (degrees > 3 ? 2 : 1);
}

template <int W> static __device__ __forceinline__ tile_item tile_item_of(const so2_part &p, int i, int wide)
{
    tile_item t;

    t.high = i >= p.rows * wide;
    i -= t.high ? p.rows * wide : 0;
    t.row = i / wide;
    t.k = (i - t.row * wide) * W;
    return t;
}

/* Rotates the features of the rows' nodes into the frames and stores them, times phi, in shared memory (tile_put). */
template <int P, bool U, int W>
static __device__ __forceinline__ void tile_turn(const nn_gpu_conv &c, const so2_part &p, const tile_memory &t)
{
    int wide = (c.channels + W - 1) / W, n = tile_items(p, c.x.edges.n_degrees, wide);

UNROLL_BY(1)
    for (int i = (int)threadIdx.x; i < n; i += TILE_THREADS) {
        tile_item at = tile_item_of<W>(p, i, wide);
        int node = t.heads->node[0][at.row];
        float q0[1][W], q1[3][W], q2[5][W], q3[7][W], q4[9][W];
        if (!at.high) {
            degree_get<0, W>(c.x, node, p.m, at.k, q0);
            degree_get<1, W>(c.x, node, p.m, at.k, q1);
            degree_get<2, W>(c.x, node, p.m, at.k, q2);
            degree_put<P, U, 0, W>(c, p, t, at.row, at.k, q0);
            degree_put<P, U, 1, W>(c, p, t, at.row, at.k, q1);
            degree_put<P, U, 2, W>(c, p, t, at.row, at.k, q2);
            continue;
        }
        degree_get<3, W>(c.x, node, p.m, at.k, q3);
        degree_put<P, U, 3, W>(c, p, t, at.row, at.k, q3);
        if (c.x.edges.n_degrees > 4) {
            degree_get<4, W>(c.x, node, p.m, at.k, q4);
            degree_put<P, U, 4, W>(c, p, t, at.row, at.k, q4);
        }
    }
}

/* ---- the kernel --------------------------------------------------------------------- */

/* Loads degree L of the query of the row's node and, behind it, components +m and -m of the row's keys (y). */
template <int L, int W>
static __device__ __forceinline__ void degree_both(const nn_gpu_conv &c, const so2_part &p, const tile_heads *h,
                                                   int row, int k, float q[][W])
{
    bool here = degree_here<L>(c.q, p.m, k);
    const float *y = c.s.y + (here ? (int64_t)(p.first + row) * c.s.y_size + k : 0);

    degree_get<L, W>(c.q, h->node[1][row], p.m, k, q);
    some_get<W>(q[2 * L + 1], y + (here ? c.q.edges.at[L][L + p.m] : 0));
    some_get<W>(q[2 * L + 2], y + (here ? c.q.edges.at[L][L - p.m] : 0));
}

template <int L, int W>
static __device__ __forceinline__ void degree_dot(const nn_gpu_conv &c, const so2_part &p, const tile_pair *col, int k,
                                                  const float q[][W], float sum[W])
{
    float v[2][W];

    if (!degree_here<L>(c.q, p.m, k))
        return;
    degree_turn<L, W>(col, q, v);
UNROLL
    for (int w = 0; w < W; w++) {
        sum[w] += v[0][w] * q[2 * L + 1][w];
        if (p.m)
            sum[w] += v[1][w] * q[2 * L + 2][w];
    }
}

/* part[high][row][channel]: this order's contribution to q . keys for every row and channel. */
template <int W>
static __device__ __forceinline__ void tile_dots(const nn_gpu_conv &c, const so2_part &p, const tile_heads *h,
                                                 float *part)
{
    int wide = (c.key_channels + W - 1) / W, n = tile_items(p, c.q.edges.n_degrees, wide);

UNROLL_BY(1)
    for (int i = (int)threadIdx.x; i < n; i += TILE_THREADS) {
        tile_item at = tile_item_of<W>(p, i, wide);
        const tile_pair *col = h->col[at.row];
        float q0[3][W], q1[5][W], q2[7][W], q3[9][W], q4[11][W], sum[W] = { 0 };
        if (!at.high) {
            degree_both<0, W>(c, p, h, at.row, at.k, q0);
            degree_both<1, W>(c, p, h, at.row, at.k, q1);
            degree_dot<0, W>(c, p, col, at.k, q0, sum);
            degree_dot<1, W>(c, p, col, at.k, q1, sum);
            degree_both<2, W>(c, p, h, at.row, at.k, q2); /* registers are few */
            degree_dot<2, W>(c, p, col, at.k, q2, sum);
        } else {
            degree_both<3, W>(c, p, h, at.row, at.k, q3);
            degree_dot<3, W>(c, p, col, at.k, q3, sum);
            if (c.q.edges.n_degrees > 4) {
                degree_both<4, W>(c, p, h, at.row, at.k, q4);
                degree_dot<4, W>(c, p, col, at.k, q4, sum);
            }
        }
UNROLL
        for (int w = 0; w < W; w++)
            part[(at.high * p.rows + at.row) * c.key_channels + at.k + w] = sum[w];
    }
}

static __device__ __forceinline__ void tile_logits(const nn_gpu_conv &c, const so2_part &p, const float *part)
{
    int heads = c.q.heads, width = c.key_channels / heads, high = p.rows * c.key_channels;

    for (int i = (int)threadIdx.x; i < p.rows * heads; i += TILE_THREADS) {
        const float *from = part + i / heads * c.key_channels + i % heads * width;
        float sum = 0;
        for (int k = 0; k < width; k++)
            sum += c.q.edges.n_degrees > 3 ? from[k] + from[k + high] : from[k];
        c.logit[((int64_t)p.m * c.q.n_rows + p.first) * heads + i] = c.scale * sum;
    }
}

/* The logits of a tile, after its products. The first barrier is needed because other threads wrote the y that a thread
 * reads here; part takes the place of the stages in shared memory. */
static __device__ __forceinline__ void tile_attend(const nn_gpu_conv &c, const so2_part &p, const tile_memory &t,
                                                   bool four)
{
    float *part = (float *)t.stage;

    __syncthreads();
    if (c.q.frame != c.x.frame || c.q.d != c.x.d) {
        heads_make(c.q, p, t.heads);
        __syncthreads();
    }
    if (four)
        tile_dots<4>(c, p, t.heads, part);
    else
        tile_dots<1>(c, p, t.heads, part);
    __syncthreads();
    tile_logits(c, p, part);
}

/* x' = D^T x[src]; y' = sum over the cell's nodes of phi (table x') for order m (docs/performance.md 2.1, 2.4); then
 * logit[m][row][head] = scale (q' . y') over the head's key channels of order m, q' = D^T q[dst].
 * Grid: n_tiles x n_orders; block: TILE_THREADS. Before and after the products thread = row, degrees, W channels
 * (tile_item); in the products warps and lanes as in tiles.cuh. Dynamic shared memory: tile_memory, with tile_heads at its end;
 * the stages are reused for the parts of the logits. P: precision. fours: TILE_X4, TILE_Y4.
 * U: tiles.cuh. Equals: conv_forward (models/ref/conv.inc) before the rotation back, and the terms of score (models/ref/layers.inc)
 * that belong to order m. */
template <int P, bool U>
__global__ void __launch_bounds__(TILE_THREADS, tile_kind<P>::resident)
    tile_conv(const __grid_constant__ nn_gpu_conv c, int fours)
{
    tile_memory t;
    so2_part p = tile_open<P, U>(c.s, &t);

    heads_make(c.x, p, t.heads);
    nodes_make(c.x, p, t.heads->node[0]);
    if (c.logit)
        nodes_make(c.q, p, t.heads->node[1]);
    __syncthreads();
    if (fours & TILE_X4)
        tile_turn<P, U, 4>(c, p, t);
    else
        tile_turn<P, U, 1>(c, p, t);
    tile_products<P, U>(c.s, p, t, fours & TILE_Y4);
    if (c.logit) {
        p.first = p.tile->first; /* again: registers are few between */
        tile_attend(c, p, t, fours & TILE_Y4);
    }
}

#endif
