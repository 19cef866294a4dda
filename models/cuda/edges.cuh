/* models/cuda/edges.cuh - between nodes and the frames of their edges, and attention:
 * ops 6, 8, 9, 15. One warp per edge or node, lanes along channels. */
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

static __device__ __forceinline__ float row_weight(const nn_gpu_turn &t, int row, int channel, int channels)
{
    return t.weight ? t.weight[(int64_t)row * t.heads + channel / (channels / t.heads)] : 1;
}

template <int L> static __device__ void turn_degree(const nn_gpu_turn &t, const edge_row &r)
{
    int ch = t.edges.ch[L];

    for (int k = (int)threadIdx.x % 32; k < ch; k += 32) {
        float v[2 * L + 1], w = row_weight(t, r.row, k, ch);
        into_frame<L>(r.d + (L ? frame_at(L) : 0), t.x + (int64_t)r.node * t.nodes.size + t.nodes.at[L] + k, ch, v);
UNROLL
        for (int m = 0; m < 2 * L + 1; m++)
            t.y[(int64_t)r.row * t.edges.size + t.edges.at[L][m] + k] = w * v[m];
    }
}

static __device__ __forceinline__ void turn_row(const nn_gpu_turn &t, int row)
{
    edge_row r = row_open(t, row);

    turn_degree<0>(t, r);
    turn_degree<1>(t, r);
    turn_degree<2>(t, r);
    turn_degree<3>(t, r);
    turn_degree<4>(t, r);
}

__global__ void turn_run(nn_gpu_turn t)
{
    int row = warp_of_grid();

    if (row < t.n_rows)
        turn_row(t, row);
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

/* A warp makes the dots of a row; part: [channels] of its own in shared memory. */
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

/* Dynamic shared memory: [WARPS][channels]. */
__global__ void dot_run(nn_gpu_dot a, int channels)
{
    SHARED_BYTES(bytes);
    int row = warp_of_grid();

    if (row < a.t.n_rows)
        dot_row(a, row, channels, (float *)bytes + threadIdx.x / 32 * (unsigned)channels);
}

/* ---- sums over a node's edges, out of their frames ---- */

template <int L> static __device__ void sum_edge(const nn_gpu_turn &t, int row, int k, float *acc)
{
    const int n = 2 * L + 1;
    edge_row r = row_open(t, row);
    float w = row_weight(t, row, k, t.edges.ch[L]);
    const float *d = r.d + (L ? frame_at(L) : 0);

UNROLL
    for (int m = 0; m < n; m++) {
        float v = w * t.y[(int64_t)row * t.edges.size + t.edges.at[L][m] + k];
UNROLL
        for (int i = 0; i < n; i++)
            acc[i] += (L ? d[i * n + m] : 1.0f) * v;
    }
}

template <int L> static __device__ void sum_degree(const nn_gpu_sum &s, int node)
{
    const int n = 2 * L + 1;
    int ch = s.t.edges.ch[L], first = s.first[node], end = s.first[node + 1];

    for (int k = (int)threadIdx.x % 32; k < ch; k += 32) {
        float *to = s.to + (int64_t)node * s.t.nodes.size + s.t.nodes.at[L] + k, acc[n];
UNROLL
        for (int i = 0; i < n; i++)
            acc[i] = s.add ? to[i * ch] * (s.count ? (float)(end - first) : 1.0f) : 0.0f;
        for (int e = first; e < end; e++)
            sum_edge<L>(s.t, s.row[e], k, acc);
UNROLL
        for (int i = 0; i < n; i++)
            to[i * ch] = acc[i];
    }
}

static __device__ __forceinline__ void sum_node(const nn_gpu_sum &s, int node)
{
    sum_degree<0>(s, node);
    sum_degree<1>(s, node);
    sum_degree<2>(s, node);
    sum_degree<3>(s, node);
    sum_degree<4>(s, node);
}

__global__ void sum_run(nn_gpu_sum s)
{
    int node = warp_of_grid();

    if (node < s.n_nodes)
        sum_node(s, node);
}

/* ---- attention over the edges into a node: a warp is a node ---- */

static __device__ __forceinline__ float logit_of(const nn_gpu_attend &a, int row, int head)
{
    float sum = 0;

    for (int i = 0; i < a.n_parts; i++)
        sum += a.logit[((int64_t)i * a.sum.t.n_rows + row) * a.sum.t.heads + head];
    return sum;
}

static __device__ void attend_weights(const nn_gpu_attend &a, int node, int head)
{
    const nn_gpu_sum &s = a.sum;
    int first = s.first[node], end = s.first[node + 1];
    float top = 0, sum = 0;

    for (int e = first; e < end; e++) {
        float v = logit_of(a, s.row[e], head);
        a.alpha[(int64_t)s.row[e] * s.t.heads + head] = v;
        top = e == first || v > top ? v : top;
    }
    for (int e = first; e < end; e++) {
        float *p = a.alpha + (int64_t)s.row[e] * s.t.heads + head;
        sum += *p = end - first == 1 ? 1 : expf(*p - top);
    }
    for (int e = first; e < end; e++)
        a.alpha[(int64_t)s.row[e] * s.t.heads + head] /= sum;
}

__global__ void attend_run(const __grid_constant__ nn_gpu_attend a)
{
    int node = warp_of_grid();

    if (node >= a.sum.n_nodes)
        return;
    for (int head = (int)threadIdx.x % 32; head < a.sum.t.heads; head += 32)
        attend_weights(a, node, head);
    __syncwarp();
    sum_node(a.sum, node);
}

/* ds from dalpha, in place: alpha * (dalpha - sum alpha dalpha) * scale. */
static __device__ void attend_logits(const nn_gpu_attend_back &a, int node, int head)
{
    const nn_gpu_sum &s = a.dq;
    int first = s.first[node], end = s.first[node + 1], heads = s.t.heads;
    float mean = 0;

    for (int e = first; e < end; e++) {
        int64_t at = (int64_t)s.row[e] * heads + head;
        mean += a.alpha[at] * a.dalpha.dot[at];
    }
    for (int e = first; e < end; e++) {
        int64_t at = (int64_t)s.row[e] * heads + head;
        a.dalpha.dot[at] = end - first == 1 ? 0 : a.alpha[at] * (a.dalpha.dot[at] - mean) * a.scale;
    }
}

/* Dynamic shared memory: [WARPS][channels]. */
__global__ void attend_grad(const __grid_constant__ nn_gpu_attend_back a, int channels)
{
    SHARED_BYTES(bytes);
    int node = warp_of_grid(), first, end;

    if (node >= a.dq.n_nodes)
        return;
    first = a.dq.first[node];
    end = a.dq.first[node + 1];
    for (int e = first; e < end; e++)
        dot_row(a.dalpha, a.dq.row[e], channels, (float *)bytes + threadIdx.x / 32 * (unsigned)channels);
    for (int head = (int)threadIdx.x % 32; head < a.dq.t.heads; head += 32)
        attend_logits(a, node, head);
    __syncwarp();
    sum_node(a.dq, node);
    __syncwarp();
    for (int e = first; e < end; e++) {
        turn_row(a.dvalue, a.dq.row[e]);
        turn_row(a.dkey, a.dq.row[e]);
    }
}

__global__ void scale_rows(nn_gpu_scale s)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    int node = (int)(i / s.size);

    if (node < s.n_nodes)
        s.y[i] = s.x[i] * (float)(s.first[node + 1] - s.first[node]);
}

#endif
