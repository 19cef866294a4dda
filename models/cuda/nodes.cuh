/* models/cuda/nodes.cuh - norm of features, pooling, bias: ops 11, 12, 13. */
#ifndef NN_CUDA_NODES_CUH
#define NN_CUDA_NODES_CUH

/* One degree of one node; lanes along channels. */
typedef struct norm_part {
    int ch, here;                      /* here: ch, or 0 where the node is none */
    const float *x, *dy, *gain, *bias; /* dy NULL: forward */
    float mean, rstd;
} norm_part;

/* V: channels of a lane, and so many nodes of a warp; 0: one, and a lane has every 32nd, loaded whenever it is needed. */
template <int DIM, int V> struct norm_kind {
    static constexpr int dim = DIM, v = V;
};

enum { NORM_FOURS = 2 };

template <int V, class F> static __device__ __forceinline__ void norm_degree(int l, const F &f)
{
    if (l == 0)
        f(norm_kind<1, V>());
    else if (l == 1)
        f(norm_kind<3, V>());
    else if (l == 2)
        f(norm_kind<5, V>());
    else if (l == 3)
        f(norm_kind<7, V>());
    else
        f(norm_kind<9, V>());
}

template <class F> static __device__ __forceinline__ void norm_dispatch(int l, int ch, bool fours, const F &f)
{
    if (fours && ch <= 32)
        norm_degree<NORM_FOURS>(l, f);
    else if (ch <= 32)
        norm_degree<1>(l, f);
    else
        norm_degree<0>(l, f);
}

static __host__ __device__ __forceinline__ int norm_nodes(bool fours, int ch)
{
    return fours && ch <= 32 ? NORM_FOURS : 1;
}

template <int V> static __device__ __forceinline__ int norm_rounds(int ch)
{
    return V ? 1 : (ch + 31) / 32;
}

/* Over the lanes of a node. */
template <int V> static __device__ __forceinline__ float norm_sum(float v)
{
UNROLL
    for (int mask = 16 / (V ? V : 1); mask; mask /= 2)
        v += warp_xor(v, mask);
    return v;
}

/* Channels of a lane. Of one that there is not, all is 0. */
template <int DIM, int V> struct norm_channels {
    static constexpr int n = V ? V : 1;
    float x[DIM][n], dy[DIM][n], size[n], gain[n], bias[n];
    float hat[n], u[n], along[n], ds[n]; /* along: dy . x; ds: gradient of u */
};

template <int DIM, int V> static __device__ __forceinline__ norm_channels<DIM, V> norm_load(const norm_part &p, int k)
{
    const int n = norm_channels<DIM, V>::n;
    norm_channels<DIM, V> c = {};

    if (k >= p.here)
        return c;
UNROLL
    for (int i = 0; i < DIM; i++)
        load_v<n>(c.x[i], p.x + i * p.ch + k);
UNROLL
    for (int i = 0; i < DIM && p.dy; i++)
        load_v<n>(c.dy[i], p.dy + i * p.ch + k);
UNROLL
    for (int j = 0; j < n; j++) {
        float sum = 0;
        c.gain[j] = p.gain[k + j];
        c.bias[j] = p.bias[k + j];
UNROLL
        for (int i = 0; i < DIM; i++)
            sum += c.x[i][j] * c.x[i][j];
        sum = sqrtf(sum);
        c.size[j] = sum > 0x1p-24f ? sum : 0x1p-24f;
    }
    return c;
}

template <int DIM, int V>
static __device__ __forceinline__ norm_channels<DIM, V> norm_at(const norm_part &p, const norm_channels<DIM, V> &first, int k)
{
    return V ? first : norm_load<DIM, V>(p, k);
}

/* The first channel of this lane in round i. */
template <int V> static __device__ __forceinline__ int norm_channel(int i)
{
    int lane = (int)threadIdx.x % 32;

    return V ? lane % (32 / (V ? V : 1)) * V : 32 * i + lane;
}

/* The node of this lane, of those that the warp has from `first` on; behind `end` none. */
template <int DIM, int V>
static __device__ __forceinline__ norm_part norm_open(const nn_gpu_norm &a, int node, int end, const float *dy,
                                                      norm_channels<DIM, V> *first)
{
    int l = DIM / 2, ch = a.nodes.ch[l];
    int64_t at = (int64_t)(node < end ? node : 0) * a.nodes.size + a.nodes.at[l];
    norm_part p = { ch, node < end ? ch : 0, a.x + at, dy ? dy + at : NULL, a.params + a.gain[l], a.params + a.bias[l], 0, 0 };
    float sum = 0;

    *first = norm_load<DIM, V>(p, norm_channel<V>(0));
UNROLL_BY(1)
    for (int i = 0; i < norm_rounds<V>(ch); i++) {
        norm_channels<DIM, V> c = norm_at<DIM, V>(p, *first, norm_channel<V>(i));
UNROLL
        for (int j = 0; j < c.n; j++)
            sum += c.size[j];
    }
    p.mean = norm_sum<V>(sum) / (float)ch;
    sum = 0;
UNROLL_BY(1)
    for (int i = 0; i < norm_rounds<V>(ch); i++) {
        norm_channels<DIM, V> c = norm_at<DIM, V>(p, *first, norm_channel<V>(i));
UNROLL
        for (int j = 0; j < c.n; j++) {
            float off = c.size[j] - p.mean;
            sum += norm_channel<V>(i) < p.here ? off * off : 0;
        }
    }
    p.rstd = 1 / sqrtf(norm_sum<V>(sum) / (float)ch + 1e-5f);
    return p;
}

template <int V> static __device__ __forceinline__ int norm_node(int first)
{
    return first + (V ? (int)threadIdx.x % 32 / (32 / (V ? V : 1)) : 0);
}

template <int DIM, int V> static __device__ __forceinline__ void norm_one(const nn_gpu_norm &a, int first_node)
{
    int node = norm_node<V>(first_node);
    norm_channels<DIM, V> first;
    norm_part p = norm_open<DIM, V>(a, node, a.n_nodes, NULL, &first);
    float *y = a.y + (int64_t)node * a.nodes.size + a.nodes.at[DIM / 2];

UNROLL_BY(1)
    for (int i = 0; i < norm_rounds<V>(p.ch); i++) {
        int k = norm_channel<V>(i);
        norm_channels<DIM, V> c = norm_at<DIM, V>(p, first, k);
UNROLL
        for (int j = 0; j < c.n; j++) {
            float u = c.gain[j] * ((c.size[j] - p.mean) * p.rstd) + c.bias[j], factor = u > 0 ? u / c.size[j] : 0;
UNROLL
            for (int d = 0; d < DIM; d++)
                c.x[d][j] *= factor;
        }
UNROLL
        for (int d = 0; d < DIM; d++)
            if (k < p.here)
                store_v<norm_channels<DIM, V>::n>(y + d * p.ch + k, c.x[d]);
    }
}

/* A block has one degree of WARPS nodes, or of fours of them. */
__global__ void __launch_bounds__(WARPS * 32) norm_run(nn_gpu_norm a, bool fours)
{
    int l = (int)blockIdx.y, ch = a.nodes.ch[l], first = warp_of_grid() * norm_nodes(fours, ch);

    if (first < a.n_nodes && ch)
        norm_dispatch(l, ch, fours, [&](auto kind) { norm_one<decltype(kind)::dim, decltype(kind)::v>(a, first); });
}

template <int DIM, int V>
static __device__ __forceinline__ norm_channels<DIM, V> norm_slope(const norm_part &p, const norm_channels<DIM, V> &first, int k)
{
    norm_channels<DIM, V> c = norm_at<DIM, V>(p, first, k);

UNROLL
    for (int j = 0; j < c.n && k < p.here; j++) {
        c.hat[j] = (c.size[j] - p.mean) * p.rstd;
        c.u[j] = c.gain[j] * c.hat[j] + c.bias[j];
        c.along[j] = 0;
UNROLL
        for (int i = 0; i < DIM; i++)
            c.along[j] += c.dy[i][j] * c.x[i][j];
        c.ds[j] = c.u[j] > 0 ? c.along[j] / c.size[j] : 0;
    }
    return c;
}

/* dx of one node; the gradients of bias and gain are added to sum [2][channels]. */
template <int DIM, int V>
static __device__ __forceinline__ void norm_node_back(const nn_gpu_norm &a, int node, int end, float *sum)
{
    float *dx = a.dx + (int64_t)node * a.nodes.size + a.nodes.at[DIM / 2], mean = 0, dot = 0;
    norm_channels<DIM, V> first;
    norm_part p = norm_open<DIM, V>(a, node, end, a.dy, &first);

UNROLL_BY(1)
    for (int i = 0; i < norm_rounds<V>(p.ch); i++) {
        int k = norm_channel<V>(i);
        norm_channels<DIM, V> c = norm_slope<DIM, V>(p, first, k);
UNROLL
        for (int j = 0; j < c.n && k < p.here; j++) {
            mean += c.gain[j] * c.ds[j];
            dot += c.gain[j] * c.ds[j] * c.hat[j];
            sum[k + j] += c.ds[j];
            sum[p.ch + k + j] += c.ds[j] * c.hat[j];
        }
    }
    mean = norm_sum<V>(mean) / (float)p.ch;
    dot = norm_sum<V>(dot) / (float)p.ch;
UNROLL_BY(1)
    for (int i = 0; i < norm_rounds<V>(p.ch); i++) {
        int k = norm_channel<V>(i);
        norm_channels<DIM, V> c = norm_slope<DIM, V>(p, first, k);
        if (k >= p.here)
            continue;
UNROLL
        for (int j = 0; j < c.n; j++) {
            float each = 1 / c.size[j], factor = c.u[j] > 0 ? c.u[j] * each : 0;
            float dn = p.rstd * (c.gain[j] * c.ds[j] - mean - c.hat[j] * dot) - c.along[j] * factor * each;
            float along = c.size[j] > 0x1p-24f ? dn * each : 0;
UNROLL
            for (int d = 0; d < DIM; d++)
                c.x[d][j] = c.dy[d][j] * factor + along * c.x[d][j];
        }
UNROLL
        for (int d = 0; d < DIM; d++)
            store_v<norm_channels<DIM, V>::n>(dx + d * p.ch + k, c.x[d]);
    }
}

/* A block has one degree of the nodes of part blockIdx.x; shared: gradients of bias, then of gain, of each node
 * that a warp has at once. */
__global__ void __launch_bounds__(WARPS * 32) norm_grad(nn_gpu_norm a, bool fours)
{
    SHARED_BYTES(shared);
    int l = (int)blockIdx.y, ch = a.nodes.ch[l], warp = (int)threadIdx.x / 32, skip = 0, nodes = norm_nodes(fours, ch);
    int per = (a.n_nodes + NN_GPU_PARTS - 1) / NN_GPU_PARTS, first = (int)blockIdx.x * per;
    int end = first + per < a.n_nodes ? first + per : a.n_nodes, sums = WARPS * nodes;
    float *all = (float *)shared;
    auto run = [&](auto kind) {
        const int v = decltype(kind)::v;
        float *sum = all + (warp * nodes + norm_node<v>(0)) * 2 * ch;
        for (int node = first + warp * nodes; node < end; node += sums)
            norm_node_back<decltype(kind)::dim, v>(a, norm_node<v>(node), end, sum);
    };

    for (int k = (int)threadIdx.x; k < sums * 2 * ch; k += WARPS * 32)
        all[k] = 0;
    __syncthreads();
    if (ch)
        norm_dispatch(l, ch, fours, run);
    __syncthreads();
    for (int i = 0; i < l; i++)
        skip += a.nodes.ch[i];
    for (int k = (int)threadIdx.x; k < 2 * ch; k += WARPS * 32) {
        float v = 0;
        for (int i = 0; i < sums; i++)
            v += all[i * 2 * ch + k];
        a.work[((int64_t)(k >= ch) * NN_GPU_PARTS + blockIdx.x) * a.channels + skip + k % ch] = v;
    }
}

/* Parts in order by every eighth, then the eighths. */
__global__ void __launch_bounds__(256) norm_sums(nn_gpu_norm a)
{
    __shared__ float part[8][32];
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, col = (int)blockIdx.x * 32 + lane, l = 0, k = col;
    const float *from = a.work + ((int64_t)blockIdx.y * NN_GPU_PARTS + warp) * a.channels + col;
    float sum = 0;

UNROLL
    for (int i = 0; i < NN_GPU_PARTS / 8; i++)
        sum += col < a.channels ? from[(int64_t)i * 8 * a.channels] : 0;
    part[warp][lane] = sum;
    __syncthreads();
    if (warp || col >= a.channels)
        return;
UNROLL
    for (int i = 1; i < 8; i++)
        sum += part[i][lane];
    for (; k >= a.nodes.ch[l]; l++)
        k -= a.nodes.ch[l];
    a.grad[(blockIdx.y ? a.gain[l] : a.bias[l]) + k] += sum;
}

/* ---- pooling: one thread per graph and channel ---- */

__global__ void pool_run(nn_gpu_pool a)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    int g = (int)(i / a.channels), k = (int)(i % a.channels), first, end, from;
    float v = 0;

    if (g >= a.n_graphs)
        return;
    first = from = a.first[g];
    end = a.first[g + 1];
    for (int node = first; node < end; node++) {
        float x = a.x[(int64_t)node * a.ld + k];
        if (a.kind != NN_GPU_POOL_MAX) {
            v += x;
        } else if (node == first || x > v) {
            v = x;
            from = node;
        }
    }
    a.y[i] = a.kind == NN_GPU_POOL_MEAN && end > first ? v / (float)(end - first) : v;
    a.from[i] = from;
}

__global__ void pool_grad(nn_gpu_pool a)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    int g = (int)(i / a.channels), k = (int)(i % a.channels), n;
    float d;

    if (g >= a.n_graphs)
        return;
    n = a.first[g + 1] - a.first[g];
    d = a.kind == NN_GPU_POOL_MEAN && n ? a.dy[i] / (float)n : a.dy[i];
    for (int node = a.first[g]; node < a.first[g + 1]; node++)
        a.dx[(int64_t)node * a.ld + k] = a.kind != NN_GPU_POOL_MAX || a.from[i] == node ? d : 0;
}

__global__ void bias_run(nn_gpu_bias a)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

    if (i < (int64_t)a.rows * a.cols) {
        float v = a.y[i] + a.bias[i % a.cols];
        a.y[i] = a.relu && !(v > 0) ? 0 : v;
    }
}

__global__ void bias_grad(nn_gpu_bias a)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

    if (i < (int64_t)a.rows * a.cols && !(a.y[i] > 0))
        a.dy[i] = 0;
}

#endif
