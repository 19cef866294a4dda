/* models/cuda/device/attend.cuh - attention over the edges into a node, op 9 (docs/model.md 8; 4), and its gradient (5.5).
 *
 * Grid, block, lanes and shared memory are those at the head of edges.cuh. Between the weights and the sums over
 * edges, threads are pairs (node, head). */
#ifndef NN_CUDA_ATTEND_CUH
#define NN_CUDA_ATTEND_CUH

enum { ATTEND_EDGES = 4 }; /* edges whose logits a thread reads at once */

/* The logits of edges e .. e+3, each the sum of its parts and the log of its envelope; past the end, the logit of the last edge is repeated. */
static __device__ __forceinline__ void logits_of(const nn_gpu_attend &a, int e, int end, int head, float v[ATTEND_EDGES])
{
    const int heads = a.sum.t.heads;
    int64_t part = (int64_t)a.sum.t.n_rows * heads;

UNROLL
    for (int j = 0; j < ATTEND_EDGES; j++) {
        int row = a.sum.row[e + j < end ? e + j : end - 1];
        const float *p = a.logit + (int64_t)row * heads + head;
        v[j] = a.log_envelope ? a.log_envelope[row] : 0;
        for (int i = 0; i < a.n_parts; i++)
            v[j] += p[i * part];
    }
}

/* alpha of one node and head: alpha[e] = exp(v[e] - max v) / sum exp(v - max v). With up to ATTEND_EDGES edges the
 * logits are read only once. */
static __device__ __forceinline__ void attend_weights(const nn_gpu_attend &a, int first, int end, int head)
{
    float v[ATTEND_EDGES], top = 0, sum = 0;
    bool once = end - first <= ATTEND_EDGES;

    logits_of(a, first, end, head, v);
    for (int e = first; e < end; e += ATTEND_EDGES) {
        if (!once)
            logits_of(a, e, end, head, v);
UNROLL
        for (int j = 0; j < ATTEND_EDGES; j++)
            top = (e == first && j == 0) || v[j] > top ? v[j] : top;
    }
    for (int e = first; e < end; e += ATTEND_EDGES) {
        if (!once)
            logits_of(a, e, end, head, v);
UNROLL
        for (int j = 0; j < ATTEND_EDGES; j++)
            sum += e + j < end ? expf(v[j] - top) : 0;
    }
    for (int e = first; e < end; e += ATTEND_EDGES) {
        if (!once)
            logits_of(a, e, end, head, v);
UNROLL
        for (int j = 0; j < ATTEND_EDGES; j++)
            if (e + j < end)
                a.alpha[(int64_t)a.sum.row[e + j] * a.sum.t.heads + head] = end - first == 1 ? 1 : expf(v[j] - top) / sum;
    }
}

/* Op 9: alpha = softmax of the logits over a node's edges, per head; to[node] = sum of alpha[edge] D values[edge].
 * The softmax runs while the first frames are copied. Equals: softmax and attention_gather (models/ref/layers.inc). */
template <int V>
__global__ void __launch_bounds__(EDGE_THREADS, SUM_BLOCKS<V>)
    attend_run(const __grid_constant__ nn_gpu_attend a, edge_shape shape)
{
    auto weights = [&](int first, int end, int head) { attend_weights(a, first, end, head); };

    block_edges(a.sum, shape, [&] { block_heads(a.sum, shape, weights); },
                [&](const edge_stage &g, const edge_lanes &p, bool opens) { sum_edges<V>(a.sum, g, p, opens); });
}

/* For a lane's channels: dz . value into `part`; then overwrites the values with their gradient alpha dz. */
template <class P, int V>
static __device__ __forceinline__ void values_piece(const nn_gpu_attend_back &a, const edge_stage &g, const edge_shape &s,
                                                    const edge_lanes &p)
{
    const int L = P::l;
    const nn_gpu_turn &t = a.dvalue;
    int ch = t.edges.ch[L];

    for (int k = p.k; k < ch; k += p.step) {
        const float *from = t.x + (int64_t)p.node * t.nodes.size + t.nodes.at[L] + k;
        const uint32_t head = heads_of<V>(t, k, ch);
        float y[P::n][V], w[V];
        for (int e = p.first; e < p.end; e++) {
            int row = g.row[e - g.first];
            int64_t at = (int64_t)row * t.edges.size + k;
            float dot[V] = {}, v[P::n][V] = {};
            weights_of<V>(t, row, head, w);
UNROLL
            for (int m = 0; m < P::n; m++)
                load_v<V>(y[m], a.dalpha.t.y + at + t.edges.at[L][P::from + m]);
            turn_columns<P, V>(stage_frame<L>(g, e), from, ch, v);
UNROLL
            for (int m = 0; m < P::n; m++) {
UNROLL
                for (int j = 0; j < V; j++) {
                    dot[j] += v[m][j] * y[m][j];
                    v[m][j] *= w[j];
                }
                store_v<V>(t.y + at + t.edges.at[L][P::from + m], v[m]);
            }
            store_v<V>(g.part + ((e - g.first) * shape_slots(s.degrees) + P::slot) * s.channels + k, dot);
        }
    }
}

template <int V>
static __device__ __forceinline__ void values_edges(const nn_gpu_attend_back &a, const edge_stage &g, const edge_shape &s,
                                                    const edge_lanes &all)
{
    edge_lanes p = staged(g, all);

    if (p.node < 0 || p.first >= p.end)
        return;
    of_warp_pieces([&](auto piece) { values_piece<decltype(piece), V>(a, g, s, p); });
}

/* dalpha of the staged edges: sums `part` over the pieces in their order and, in each, over the head's channels. */
static __device__ __forceinline__ void dots_add(const nn_gpu_dot &a, const edge_stage &g, const edge_shape &s)
{
    int heads = a.t.heads, slots = shape_slots(s.degrees);

    for (int i = (int)threadIdx.x; i < g.n * heads; i += (int)blockDim.x) {
        int e = i / heads, head = i % heads;
        float sum = 0;
        for (int j = 0; j < slots; j++) {
            const float *p = g.part + (e * slots + j) * s.channels;
            int width = a.t.edges.ch[j < 3 ? j : (j + 3) / 2] / heads;
            for (int k = head * width; k < (head + 1) * width; k++)
                sum += p[k];
        }
        a.dot[(int64_t)g.row[e] * heads + head] = a.scale * sum;
    }
}

/* dalpha[row][head] = dz[node] . values[row]; values[row] becomes alpha dz[node], in the edge's frame. Map: edges.cuh,
 * 32 / group rows a block, with dots (part). Equals: weights_backward (models/ref/layers.inc). */
template <int V>
__global__ void __launch_bounds__(EDGE_THREADS, 4)
    attend_values(const __grid_constant__ nn_gpu_attend_back a, edge_shape shape)
{
    SHARED_BYTES(bytes);
    edge_stage g = stage_of(bytes, shape, a.dvalue.frame_size, true);
    edge_lanes p = rows_open(a.dvalue, shape, &g);

    __syncthreads();
    values_edges<V>(a, g, shape, p);
    __syncthreads();
    dots_add(a.dalpha, g, shape);
}

/* alpha and dalpha of edges e .. e+3; past the end, those of the last edge are repeated. */
static __device__ __forceinline__ void slopes_of(const nn_gpu_attend_back &a, int e, int end, int head, float alpha[ATTEND_EDGES],
                                                 float dalpha[ATTEND_EDGES])
{
UNROLL
    for (int j = 0; j < ATTEND_EDGES; j++) {
        int64_t at = (int64_t)a.dq.row[e + j < end ? e + j : end - 1] * a.dq.t.heads + head;
        alpha[j] = a.alpha[at];
        dalpha[j] = a.dalpha.dot[at];
    }
}

/* For one node and head: replaces dalpha by ds = alpha (dalpha - sum over edges of alpha dalpha) scale. */
static __device__ __forceinline__ void attend_logits(const nn_gpu_attend_back &a, int first, int end, int head)
{
    float alpha[ATTEND_EDGES], dalpha[ATTEND_EDGES], mean = 0;
    bool once = end - first <= ATTEND_EDGES;

    slopes_of(a, first, end, head, alpha, dalpha);
    for (int e = first; e < end; e += ATTEND_EDGES) {
        if (!once)
            slopes_of(a, e, end, head, alpha, dalpha);
UNROLL
        for (int j = 0; j < ATTEND_EDGES; j++)
            mean += e + j < end ? alpha[j] * dalpha[j] : 0;
    }
    for (int e = first; e < end; e += ATTEND_EDGES) {
        if (!once)
            slopes_of(a, e, end, head, alpha, dalpha);
UNROLL
        for (int j = 0; j < ATTEND_EDGES; j++)
            if (e + j < end)
                a.dalpha.dot[(int64_t)a.dq.row[e + j] * a.dq.t.heads + head] =
                    end - first == 1 ? 0 : alpha[j] * (dalpha[j] - mean) * a.scale;
    }
}

/* dq += sum of ds D key over the staged edges; after a barrier, because all warps read the keys, the keys are
 * overwritten with their gradient ds D^T q. */
template <int V>
static __device__ __forceinline__ void keys_edges(const nn_gpu_attend_back &a, const edge_stage &g, const edge_lanes &p,
                                                  bool opens)
{
    sum_edges<V>(a.dq, g, p, opens);
    __syncthreads();
    turn_edges<V>(a.dkey, g, p);
}

/* ds from dalpha; gradient of the queries: dq[node] = sum over its rows of ds D key; keys[row] becomes ds D^T q[node].
 * Map: edges.cuh, without dots. Equals: softmax_backward and scores_backward (models/ref/layers.inc). */
template <int V>
__global__ void __launch_bounds__(EDGE_THREADS, SUM_BLOCKS<V>)
    attend_keys(const __grid_constant__ nn_gpu_attend_back a, edge_shape shape)
{
    auto logits = [&](int first, int end, int head) { attend_logits(a, first, end, head); };

    block_edges(a.dq, shape, [&] { block_heads(a.dq, shape, logits); },
                [&](const edge_stage &g, const edge_lanes &p, bool opens) { keys_edges<V>(a, g, p, opens); });
}

#endif
