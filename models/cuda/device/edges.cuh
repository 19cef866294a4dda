/* models/cuda/device/edges.cuh - features of nodes to and from the frames of their edges: ops 6, 8, 15 (docs/model.md 8).
 *
 * Map used by turn_run, sum_run and the kernels of attend.cuh (edge_shape):
 *   grid    one dimension; a block has 32 / group nodes (or rows) and all their edges
 *   block   shape_warps(degrees) warps, 1 to 6; each has pieces of the degrees that take about equally long: warp 0 degrees
 *           0 and 1, warp 1 degree 2, then half of the components of degree 3 or 4 each (of_warp_pieces)
 *   lane    a node has `group` adjacent lanes of every warp; a lane has V channels at a time
 *   shared  [part [room][slots][channels], if there are dots] D [room][ld] | row [room]: frames and rows of up to `room`
 *           edges (edge_stage); the next `room` edges follow in the next round of block_edges
 * The order of a sum does not depend on which nodes share a block. */
#ifndef NN_CUDA_EDGES_CUH
#define NN_CUDA_EDGES_CUH

/* out[m] = sum over n of D[n][m] x[n]: one channel of one degree into the frame. */
template <int L> static __device__ __forceinline__ void into_frame(const float *d, const float *x, int step, float *out)
{
    const int n = 2 * L + 1;

UNROLL
    for (int m = 0; m < n; m++)
        out[m] = 0;
UNROLL
    for (int i = 0; i < n; i++) {
        float v = x[i * step];
UNROLL
        for (int m = 0; m < n; m++)
            out[m] += (L ? d[i * n + m] : 1.0f) * v;
    }
}

typedef struct edge_row {
    int row, node;
    const float *d;
} edge_row;

static __device__ __forceinline__ edge_row row_open(const nn_gpu_turn &t, int row)
{
    return edge_row{ row, t.node ? t.node[row] : 0, t.d + (int64_t)t.frame[row] * t.frame_size };
}

/* ---- the parts of blocks and lanes ---- */

enum { EDGE_THREADS = 192 }; /* of a block, at most: six warps, with degree 4 */

typedef struct edge_shape { /* of a launch, see the head of this file */
    int32_t group, room, degrees, channels; /* channels: maximum over the degrees */
    int32_t v;                              /* V: channels of a lane at a time    */
} edge_shape;

/* The number of pieces of degrees 0 .. degrees-1, and of the warps that have them. */
static __host__ __device__ __forceinline__ int shape_slots(int degrees)
{
    return degrees < 4 ? degrees : 2 * degrees - 3;
}

static __host__ __device__ __forceinline__ int shape_warps(int degrees)
{
    return degrees < 3 ? 1 : 2 * degrees - 4;
}

typedef struct edge_lanes { /* edges first .. end-1 of a list; channels k, k + step ..; node -1: none */
    int node, first, end, k, step;
} edge_lanes;

typedef struct edge_stage { /* edges first .. first+n-1 of the list, in shared memory */
    int first, n, ld;
    float *part, *d;        /* [room][slots][channels] where there are dots, [room][ld] */
    int *row;               /* [room]                                                   */
} edge_stage;

static __host__ __device__ __forceinline__ int stage_ld(int frame_size)
{
    return frame_size | 1; /* nodes side by side read other banks */
}

static __device__ __forceinline__ edge_stage stage_of(char *bytes, const edge_shape &s, int frame_size, bool dots)
{
    edge_stage g = { 0, 0, stage_ld(frame_size), (float *)bytes, NULL, NULL };

    g.d = g.part + (dots ? s.room * shape_slots(s.degrees) * s.channels : 0);
    g.row = (int *)(g.d + s.room * g.ld);
    return g;
}

/* Copies the frames of edges first .. end-1, at most `room`, to shared memory. rows NULL: an edge's number is its
 * row. Each lane looks up the frame number of one edge; then its warp copies these frames one after the other. */
static __device__ __forceinline__ void stage_fill(edge_stage *g, const nn_gpu_turn &t, const int32_t *rows, int first, int end,
                                                  int room)
{
    int warps = (int)blockDim.x / 32, warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    int mine = warp + lane * warps, frame = 0, n = end - first < room ? end - first : room;

    g->first = first;
    g->n = n;
    if (mine < n) {
        int row = rows ? rows[first + mine] : first + mine;
        g->row[mine] = row;
        frame = t.frame[row];
    }
UNROLL_BY(4)
    for (int i = 0; warp + i * warps < n; i++) {
        const float *from = t.d + (int64_t)warp_get(frame, i) * t.frame_size;
        float *to = g->d + (warp + i * warps) * g->ld;
UNROLL
        for (int k = 0; k < NN_GPU_FRAME; k += 32)
            if (k + lane < t.frame_size)
                to[k + lane] = from[k + lane];
    }
}

static __device__ __forceinline__ edge_lanes lanes_of(const edge_shape &s, const int32_t *first, int n_nodes)
{
    int lane = (int)threadIdx.x % 32, v = s.v, node = (int)blockIdx.x * (32 / s.group) + lane / s.group;
    bool here = node < n_nodes;

    return edge_lanes{ here ? node : -1, here ? first[node] : 0, here ? first[node + 1] : 0, lane % s.group * v,
                       s.group * v };
}

template <int V> static __device__ __forceinline__ void load_v(float v[V], const float *p)
{
    if constexpr (V == 4)
        load4(v, p);
    else if constexpr (V == 2)
        load2(v, p);
    else
        v[0] = *p;
}

template <int V> static __device__ __forceinline__ void store_v(float *p, const float v[V])
{
    if constexpr (V == 4)
        store4(p, v);
    else if constexpr (V == 2)
        store2(p, v[0], v[1]);
    else
        *p = v[0];
}

/* The heads of channels k .. k+V-1 of ch, a byte each. */
template <int V> static __device__ __forceinline__ uint32_t heads_of(const nn_gpu_turn &t, int k, int ch)
{
    int width = ch / t.heads, h = k / width, left = (h + 1) * width - k;
    uint32_t head = 0;

UNROLL
    for (int j = 0; j < V; j++, left--) {
        h += left == 0;
        left = left ? left : width;
        head |= (uint32_t)h << 8 * j;
    }
    return head;
}

template <int V>
static __device__ __forceinline__ void weights_of(const nn_gpu_turn &t, int row, uint32_t head, float w[V])
{
    const float *from = t.weight + (int64_t)row * t.heads;

UNROLL
    for (int j = 0; j < V; j++)
        w[j] = t.weight ? from[head >> 8 * j & 255] : 1;
}

template <int L> static __device__ __forceinline__ const float *stage_frame(const edge_stage &g, int e)
{
    return g.d + (e - g.first) * g.ld + (L ? frame_at(L) : 0);
}

/* The edges of a lane that are in shared memory now. */
static __device__ __forceinline__ edge_lanes staged(const edge_stage &g, const edge_lanes &p)
{
    edge_lanes out = p;

    out.first = p.first > g.first ? p.first : g.first;
    out.end = p.end < g.first + g.n ? p.end : g.first + g.n;
    return out;
}

/* A piece: components from .. from+n-1 of degree L (all, or of degrees 3 and 4 half HALF); slot: its number. */
template <int L, int HALF> struct piece_is {
    static constexpr int l = L, from = HALF ? L + 1 : 0, slot = L < 3 ? L : 2 * L - 3 + HALF;
    static constexpr int half = HALF ? L : L + 1, n = L < 3 ? 2 * L + 1 : half;
};

/* Calls do_it for each piece of this warp. The piece is a type, so the body is compiled for each. */
template <class F> static __device__ __forceinline__ void of_warp_pieces(const F &do_it)
{
    switch (threadIdx.x / 32) {
    case 0:
        do_it(piece_is<0, 0>());
        return do_it(piece_is<1, 0>());
    case 1:
        return do_it(piece_is<2, 0>());
    case 2:
        return do_it(piece_is<3, 0>());
    case 3:
        return do_it(piece_is<3, 1>());
    case 4:
        return do_it(piece_is<4, 0>());
    case 5:
        return do_it(piece_is<4, 1>());
    }
}

/* ---- into the frames of edges ---- */

/* out += the piece's components of D^T x; the components of x are `step` floats apart. x is read again for each edge of
 * the node: this needs fewer registers, so more blocks fit on a multiprocessor. */
template <class P, int V>
static __device__ __forceinline__ void turn_columns(const float *d, const float *x, int step, float out[P::n][V])
{
    const int L = P::l, n = 2 * L + 1;

UNROLL
    for (int i = 0; i < n; i++) {
        float v[V];
        load_v<V>(v, x + i * step);
UNROLL
        for (int m = 0; m < P::n; m++)
UNROLL
            for (int j = 0; j < V; j++)
                out[m][j] += (L ? d[i * n + P::from + m] : 1.0f) * v[j];
    }
}

template <class P, int V>
static __device__ __forceinline__ void turn_piece(const nn_gpu_turn &t, const edge_stage &g, const edge_lanes &p)
{
    const int L = P::l;
    int ch = t.edges.ch[L];

    for (int k = p.k; k < ch; k += p.step) {
        const float *from = t.x + (int64_t)p.node * t.nodes.size + t.nodes.at[L] + k;
        const uint32_t head = heads_of<V>(t, k, ch);
        for (int e = p.first; e < p.end; e++) {
            int row = g.row[e - g.first];
            float *y = t.y + (int64_t)row * t.edges.size + k, w[V], v[P::n][V] = {};
            weights_of<V>(t, row, head, w);
            turn_columns<P, V>(stage_frame<L>(g, e), from, ch, v);
UNROLL
            for (int m = 0; m < P::n; m++) {
UNROLL
                for (int j = 0; j < V; j++)
                    v[m][j] *= w[j];
                store_v<V>(y + t.edges.at[L][P::from + m], v[m]);
            }
        }
    }
}

template <int V>
static __device__ __forceinline__ void turn_edges(const nn_gpu_turn &t, const edge_stage &g, const edge_lanes &all)
{
    edge_lanes p = staged(g, all);

    if (p.node < 0 || p.first >= p.end)
        return;
    of_warp_pieces([&](auto piece) { turn_piece<decltype(piece), V>(t, g, p); });
}

/* For kernels over rows: each group of lanes has one row; copies the frames of the block's rows to shared memory. */
static __device__ __forceinline__ edge_lanes rows_open(const nn_gpu_turn &t, const edge_shape &s, edge_stage *to)
{
    int n = 32 / s.group, first = (int)blockIdx.x * n, row = first + (int)threadIdx.x % 32 / s.group, v = s.v;
    int node = row < t.n_rows ? 0 : -1;

    if (node == 0 && t.node)
        node = t.node[row];
    stage_fill(to, t, NULL, first, t.n_rows, n);
    return edge_lanes{ node, row, row + 1, (int)threadIdx.x % s.group * v, s.group * v };
}

/* Op 6: y[row] = D^T x[node[row]], times weight if given. Map: the head of this file, 32 / group rows a block, without
 * dots. models/ref has no edge frames, so no single function equals it: with ops 7 and 15 it is conv_forward
 * (models/ref/conv.inc; docs/performance.md 2.1). */
template <int V>
__global__ void __launch_bounds__(EDGE_THREADS, 5)
    turn_run(const __grid_constant__ nn_gpu_turn t, edge_shape s)
{
    SHARED_BYTES(bytes);
    edge_stage g = stage_of(bytes, s, t.frame_size, false);
    edge_lanes p = rows_open(t, s, &g);

    __syncthreads();
    turn_edges<V>(t, g, p);
}

/* ---- (D^T x) . y by heads ---- */

template <int L> static __device__ float dot_degree(const nn_gpu_turn &t, const edge_row &r, int k)
{
    float v[2 * L + 1], sum = 0;

    if (k >= t.edges.ch[L])
        return 0;
    into_frame<L>(r.d + (L ? frame_at(L) : 0), t.x + (int64_t)r.node * t.nodes.size + t.nodes.at[L] + k,
                  t.edges.ch[L], v);
UNROLL
    for (int m = 0; m < 2 * L + 1; m++)
        sum += v[m] * t.y[(int64_t)r.row * t.edges.size + t.edges.at[L][m] + k];
    return sum;
}

/* One warp computes the dot products of a row, lane = channel (then head); part: [channels] of this warp in shared
 * memory. */
static __device__ void dot_row(const nn_gpu_dot &a, int row, int channels, float *part)
{
    int lane = (int)threadIdx.x % 32, width = channels / a.t.heads;
    edge_row r = row_open(a.t, row);

    for (int k = lane; k < channels; k += 32)
        part[k] = dot_degree<0>(a.t, r, k) + dot_degree<1>(a.t, r, k) + dot_degree<2>(a.t, r, k)
            + dot_degree<3>(a.t, r, k) + dot_degree<4>(a.t, r, k);
    __syncwarp();
    for (int h = lane; h < a.t.heads; h += 32) {
        float sum = 0;
        for (int k = h * width; k < (h + 1) * width; k++)
            sum += part[k];
        a.dot[(int64_t)row * a.t.heads + h] = a.scale * sum;
    }
    __syncwarp();
}

/* Op 8: dot[row][head] = scale sum over the head's channels of (D^T x[node[row]]) . y[row].
 * Grid: n_rows / WARPS blocks; block: WARPS warps, one row each; lane: channels, 32 apart. Dynamic shared memory:
 * [WARPS][channels]. Equals: score (models/ref/layers.inc), since rotations keep dot products. */
__global__ void dot_run(nn_gpu_dot a, int channels)
{
    SHARED_BYTES(bytes);
    int row = warp_of_grid();

    if (row < a.t.n_rows)
        dot_row(a, row, channels, (float *)bytes + threadIdx.x / 32 * (unsigned)channels);
}

/* ---- sums over a node's edges, out of their frames ---- */

/* Blocks on a multiprocessor: 56 or 64 registers a thread, so that all nodes of a batch of 240 molecules are resident. */
template <int V> constexpr int SUM_BLOCKS = V == 2 ? 6 : 5;

template <class P, int V>
static __device__ __forceinline__ void sum_edge(const nn_gpu_turn &t, const float *d, const float *y, const float w[V], float acc[P::n][V])
{
    const int L = P::l, n = 2 * L + 1;

UNROLL
    for (int m = 0; m < n; m++) {
        float v[V];
        load_v<V>(v, y + t.edges.at[L][m]);
UNROLL
        for (int j = 0; j < V; j++)
            v[j] *= w[j];
UNROLL
        for (int i = 0; i < P::n; i++)
UNROLL
            for (int j = 0; j < V; j++)
                acc[i][j] += (L ? d[(P::from + i) * n + m] : 1.0f) * v[j];
    }
}

/* The start of a sum: for the node's first edges the old value (times its factor, if there are any) or zero; for
 * further edges the sum so far. */
template <class P, int V>
static __device__ __forceinline__ void sum_begin(const nn_gpu_sum &s, const float *to, bool opens, int node, float acc[P::n][V])
{
    float times = opens && s.times ? s.times[node] : 1.0f;

UNROLL
    for (int i = 0; i < P::n; i++) {
UNROLL
        for (int j = 0; j < V; j++)
            acc[i][j] = 0;
        if (opens && !s.add)
            continue;
        load_v<V>(acc[i], to + i * s.t.edges.ch[P::l]);
UNROLL
        for (int j = 0; j < V; j++)
            acc[i][j] *= times;
    }
}

template <class P, int V>
static __device__ __forceinline__ void sum_piece(const nn_gpu_sum &s, const edge_stage &g, const edge_lanes &p, bool opens)
{
    const int L = P::l;
    int ch = s.t.edges.ch[L];

    for (int k = p.k; k < ch; k += p.step) {
        float *to = s.to + (int64_t)p.node * s.t.nodes.size + s.t.nodes.at[L] + P::from * ch + k, acc[P::n][V], w[V];
        const uint32_t head = heads_of<V>(s.t, k, ch);
        sum_begin<P, V>(s, to, opens, p.node, acc);
        for (int e = p.first; e < p.end; e++) {
            int row = g.row[e - g.first];
            weights_of<V>(s.t, row, head, w);
            sum_edge<P, V>(s.t, stage_frame<L>(g, e), s.t.y + (int64_t)row * s.t.edges.size + k, w, acc);
        }
UNROLL
        for (int i = 0; i < P::n; i++)
            store_v<V>(to + i * ch, acc[i]);
    }
}

/* Sums over the staged edges. opens: these are the first edges of the block. */
template <int V>
static __device__ __forceinline__ void sum_edges(const nn_gpu_sum &s, const edge_stage &g, const edge_lanes &all, bool opens)
{
    edge_lanes p = staged(g, all);

    if (p.node < 0 || (!opens && p.first >= p.end))
        return;
    of_warp_pieces([&](auto piece) { sum_piece<decltype(piece), V>(s, g, p, opens); });
}

/* The first edge of this block's nodes (after 0), or of the next block's (after 1). */
static __device__ __forceinline__ int block_edge(const edge_shape &s, const int32_t *first, int n_nodes, int after)
{
    int node = ((int)blockIdx.x + after) * (32 / s.group);

    return first[node < n_nodes ? node : n_nodes];
}

/* Calls do_it for all edges of the block, up to `room` at a time. before() runs once, while the first frames are being
 * copied. */
template <class B, class F>
static __device__ __forceinline__ void block_edges(const nn_gpu_sum &s, const edge_shape &shape, const B &before, const F &do_it)
{
    SHARED_BYTES(bytes);
    int first = block_edge(shape, s.first, s.n_nodes, 0), end = block_edge(shape, s.first, s.n_nodes, 1);
    edge_lanes p = lanes_of(shape, s.first, s.n_nodes);
    edge_stage g = stage_of(bytes, shape, s.t.frame_size, false);

    for (int at = first; at == first || at < end; at += shape.room) {
        if (at > first)
            __syncthreads();
        stage_fill(&g, s.t, s.row, at, end, shape.room);
        if (at == first)
            before();
        __syncthreads();
        do_it(g, p, at == first);
    }
}

/* Calls do_it(first edge, end, head) for every node of the block that has edges, and every head; thread = node and head. */
template <class F>
static __device__ __forceinline__ void block_heads(const nn_gpu_sum &s, const edge_shape &shape, const F &do_it)
{
    int nodes = 32 / shape.group, heads = s.t.heads;

    for (int i = (int)threadIdx.x; i < nodes * heads; i += (int)blockDim.x) {
        int node = (int)blockIdx.x * nodes + i / heads;
        if (node < s.n_nodes && s.first[node] < s.first[node + 1])
            do_it(s.first[node], s.first[node + 1], i % heads);
    }
}

/* Op 15: to[node] (=, +=) sum over its rows of weight * D y[row]. Map: the head of this file, without dots.
 * Equals: pool_move (models/ref/conv.inc) with the rotation out of the frame. */
template <int V>
__global__ void __launch_bounds__(EDGE_THREADS, SUM_BLOCKS<V>)
    sum_run(const __grid_constant__ nn_gpu_sum s, edge_shape shape)
{
    block_edges(s, shape, [] {}, [&](const edge_stage &g, const edge_lanes &p, bool opens) { sum_edges<V>(s, g, p, opens); });
}

/* y[node] = x[node] times[node]; one thread a number. Equals: part of self_backward
 * (models/ref/conv.inc), which adds the self-interaction once per edge. */
__global__ void scale_rows(nn_gpu_scale s)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    int node = (int)(i / s.size);

    if (node < s.n_nodes)
        s.y[i] = s.x[i] * s.times[node];
}

#endif
