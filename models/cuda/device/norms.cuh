/* models/cuda/device/norms.cuh - NormSE3, pooling, bias and ReLU of the head: ops 11, 12, 13 (docs/model.md 8; 5.1, 5.4, 5.5). */
#ifndef NN_CUDA_NORMS_CUH
#define NN_CUDA_NORMS_CUH

/* One degree of one node: a warp, lane = channel (then channel + 32 ..). */
typedef struct norm_part {
    int ch;
    const float *x, *dy, *gain, *bias; /* dy NULL: forward */
    float part, mean, rstd; /* part: 1 / channels; rstd: 1 / sqrt(variance + 1e-5) */
} norm_part;

/* ONE: at most 32 channels. Then each lane loads its channel once; otherwise channels are loaded each time they are needed. */
template <int DIM, bool ONE> struct norm_kind {
    static constexpr int dim = DIM;
    static constexpr bool one = ONE;
};

template <bool ONE, class F> static __device__ __forceinline__ void norm_dispatch(int l, const F &f)
{
    if (l == 0)
        f(norm_kind<1, ONE>());
    else if (l == 1)
        f(norm_kind<3, ONE>());
    else if (l == 2)
        f(norm_kind<5, ONE>());
    else if (l == 3)
        f(norm_kind<7, ONE>());
    else
        f(norm_kind<9, ONE>());
}

template <bool ONE> static __device__ __forceinline__ int norm_rounds(int ch)
{
    return ONE ? 1 : (ch + 31) / 32;
}

/* Everything is 0 for a channel that does not exist. */
template <int DIM> struct norm_channel {
    float x[DIM], dy[DIM], size, each, gain, bias; /* size: max(|x|, 2^-24); each: 1 / size */
    float hat, u, along, ds; /* along: dy . x; ds: gradient of u */
};

template <int DIM> static __device__ __forceinline__ norm_channel<DIM> norm_load(const norm_part &p, int k)
{
    norm_channel<DIM> c = {};
    float sum = 0;

    if (k >= p.ch)
        return c;
UNROLL
    for (int i = 0; i < DIM; i++)
        c.x[i] = p.x[i * p.ch + k];
UNROLL
    for (int i = 0; i < DIM && p.dy; i++)
        c.dy[i] = p.dy[i * p.ch + k];
    c.gain = p.gain[k];
    c.bias = p.bias[k];
UNROLL
    for (int i = 0; i < DIM; i++)
        sum += c.x[i] * c.x[i];
    sum = sqrtf(sum);
    c.size = sum > 0x1p-24f ? sum : 0x1p-24f;
    c.each = 1 / c.size;
    return c;
}

template <int DIM, bool ONE>
static __device__ __forceinline__ norm_channel<DIM> norm_at(const norm_part &p, const norm_channel<DIM> &first, int k)
{
    return ONE ? first : norm_load<DIM>(p, k);
}

template <int DIM, bool ONE>
static __device__ __forceinline__ norm_part norm_open(const nn_gpu_norm &a, int node, const float *dy, norm_channel<DIM> *first)
{
    int l = DIM / 2, lane = (int)threadIdx.x % 32;
    int64_t at = (int64_t)node * a.nodes.size + a.nodes.at[l];
    norm_part p = { a.nodes.ch[l], a.x + at, dy ? dy + at : NULL, a.params + a.gain[l], a.params + a.bias[l], 0, 0, 0 };
    float sum = 0;

    p.part = 1 / (float)p.ch;
    *first = norm_load<DIM>(p, lane);
UNROLL_BY(1)
    for (int i = 0; i < norm_rounds<ONE>(p.ch); i++)
        sum += norm_at<DIM, ONE>(p, *first, 32 * i + lane).size;
    p.mean = warp_sum(sum) * p.part;
    sum = 0;
UNROLL_BY(1)
    for (int i = 0; i < norm_rounds<ONE>(p.ch); i++) {
        float off = norm_at<DIM, ONE>(p, *first, 32 * i + lane).size - p.mean;
        sum += 32 * i + lane < p.ch ? off * off : 0;
    }
    p.rstd = 1 / sqrtf(warp_sum(sum) * p.part + 1e-5f);
    return p;
}

template <int DIM, bool ONE> static __device__ __forceinline__ void norm_one(const nn_gpu_norm &a, int node)
{
    norm_channel<DIM> first;
    norm_part p = norm_open<DIM, ONE>(a, node, NULL, &first);
    float *y = a.y + (int64_t)node * a.nodes.size + a.nodes.at[DIM / 2];

UNROLL_BY(1)
    for (int i = 0; i < norm_rounds<ONE>(p.ch); i++) {
        int k = 32 * i + (int)threadIdx.x % 32;
        norm_channel<DIM> c = norm_at<DIM, ONE>(p, first, k);
        float u = c.gain * ((c.size - p.mean) * p.rstd) + c.bias, factor = u > 0 ? u * c.each : 0;
UNROLL
        for (int d = 0; d < DIM; d++)
            if (k < p.ch)
                y[d * p.ch + k] = c.x[d] * factor;
    }
}

/* Op 11: n_c = max(|x_c|, 2^-24), h_c = (n_c - mean) rstd, y_c = x_c ReLU(gain_c h_c + bias_c) / n_c (docs/model.md 5.1).
 * Grid: x = WARPS nodes, y = degree; warp = node, lane = channel. No shared memory. Equals: norm_forward
 * (models/ref/layers.inc). */
__global__ void __launch_bounds__(WARPS * 32) norm_run(nn_gpu_norm a)
{
    int node = warp_of_grid(), l = (int)blockIdx.y, ch = a.nodes.ch[l];
    auto run = [&](auto kind) { norm_one<decltype(kind)::dim, decltype(kind)::one>(a, node); };

    if (node >= a.n_nodes || !ch)
        return;
    if (ch <= 32)
        norm_dispatch<true>(l, run);
    else
        norm_dispatch<false>(l, run);
}

template <int DIM, bool ONE>
static __device__ __forceinline__ norm_channel<DIM> norm_slope(const norm_part &p, const norm_channel<DIM> &first, int k)
{
    norm_channel<DIM> c = norm_at<DIM, ONE>(p, first, k);

    c.hat = (c.size - p.mean) * p.rstd;
    c.u = c.gain * c.hat + c.bias;
    c.along = 0;
UNROLL
    for (int i = 0; i < DIM; i++)
        c.along += c.dy[i] * c.x[i];
    c.ds = c.u > 0 ? c.along * c.each : 0;
    return c;
}

/* dx of one node (docs/model.md 5.5); adds the gradients of bias and gain to sum [2][channels]. */
template <int DIM, bool ONE> static __device__ __forceinline__ void norm_node_back(const nn_gpu_norm &a, int node, float *sum)
{
    float *dx = a.dx + (int64_t)node * a.nodes.size + a.nodes.at[DIM / 2], mean = 0, dot = 0;
    norm_channel<DIM> first;
    norm_part p = norm_open<DIM, ONE>(a, node, a.dy, &first);

UNROLL_BY(1)
    for (int i = 0; i < norm_rounds<ONE>(p.ch); i++) {
        int k = 32 * i + (int)threadIdx.x % 32;
        norm_channel<DIM> c = norm_slope<DIM, ONE>(p, first, k);
        mean += c.gain * c.ds;
        dot += c.gain * c.ds * c.hat;
        if (k < p.ch) {
            sum[k] += c.ds;
            sum[p.ch + k] += c.ds * c.hat;
        }
    }
    mean = warp_sum(mean) * p.part;
    dot = warp_sum(dot) * p.part;
UNROLL_BY(1)
    for (int i = 0; i < norm_rounds<ONE>(p.ch); i++) {
        int k = 32 * i + (int)threadIdx.x % 32;
        norm_channel<DIM> c = norm_slope<DIM, ONE>(p, first, k);
        float factor = c.u > 0 ? c.u * c.each : 0;
        float dn = p.rstd * (c.gain * c.ds - mean - c.hat * dot) - c.along * factor * c.each;
        float along = c.size > 0x1p-24f ? dn * c.each : 0;
UNROLL
        for (int d = 0; d < DIM; d++)
            if (k < p.ch)
                dx[d * p.ch + k] = c.dy[d] * factor + along * c.x[d];
    }
}

/* Op 11 backward: with q = dy . x, ds = q / n where the ReLU is open: dx = dy s / n + (dn / n) x (docs/model.md 5.5);
 * partial sums of the gradients of bias (ds) and gain (ds h) to work [2][NN_GPU_PARTS][channels].
 * Grid: x = part of the nodes (NN_GPU_PARTS), y = degree; warp = every WARPS-th node of the part, lane = channel.
 * Dynamic shared memory: [WARPS][bias, gain][channels of the degree]. Equals: norm_backward (models/ref/layers.inc). */
__global__ void __launch_bounds__(WARPS * 32) norm_grad(nn_gpu_norm a)
{
    SHARED_BYTES(shared);
    int l = (int)blockIdx.y, ch = a.nodes.ch[l], warp = (int)threadIdx.x / 32, skip = 0;
    int per = (a.n_nodes + NN_GPU_PARTS - 1) / NN_GPU_PARTS, first = (int)blockIdx.x * per;
    int end = first + per < a.n_nodes ? first + per : a.n_nodes;
    float *all = (float *)shared, *sum = all + warp * 2 * ch;
    auto run = [&](auto kind) {
        for (int node = first + warp; node < end; node += WARPS)
            norm_node_back<decltype(kind)::dim, decltype(kind)::one>(a, node, sum);
    };

    for (int k = (int)threadIdx.x; k < WARPS * 2 * ch; k += WARPS * 32)
        all[k] = 0;
    __syncthreads();
    if (ch && ch <= 32)
        norm_dispatch<true>(l, run);
    else if (ch)
        norm_dispatch<false>(l, run);
    __syncthreads();
    for (int i = 0; i < l; i++)
        skip += a.nodes.ch[i];
    for (int k = (int)threadIdx.x; k < 2 * ch; k += WARPS * 32) {
        float v = 0;
UNROLL
        for (int i = 0; i < WARPS; i++)
            v += all[i * 2 * ch + k];
        a.work[((int64_t)(k >= ch) * NN_GPU_PARTS + blockIdx.x) * a.channels + skip + k % ch] = v;
    }
}

/* grad += sums over the parts in work. Grid: x = 32 channels, y = bias or gain; lane = channel; warp w sums parts w, w + 8, ..,
 * then warp 0 adds the eight sums in order. Shared: part [warp][lane]. Equals: as norm_grad. */
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

/* ---- pooling and bias: no shared memory ---- */

/* Op 12: maximum, sum or mean over the nodes of a graph, per channel; the first node that has the maximum goes to `from`.
 * One thread per graph and channel. Equals: pool_forward (models/ref/model.inc). */
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

/* Op 12 backward: dx = dy at node `from` and 0 elsewhere (maximum), dy (sum), dy / nodes (mean). One thread per graph and
 * channel. Equals: pool_backward (models/ref/model.inc). */
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

/* Part of op 13: y[row][col] = ReLU(y + bias[col]), or without ReLU. One thread a number. Equals: the bias in dense_forward
 * and the ReLU after it (models/ref/model.inc). */
__global__ void bias_run(nn_gpu_bias a)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

    if (i < (int64_t)a.rows * a.cols) {
        float v = a.y[i] + a.bias[i % a.cols];
        a.y[i] = a.relu && !(v > 0) ? 0 : v;
    }
}

/* Its backward: dy = 0 where y is not positive. One thread a number. Equals: the head in model_backward
 * (models/ref/model.inc). */
__global__ void bias_grad(nn_gpu_bias a)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

    if (i < (int64_t)a.rows * a.cols && !(a.y[i] > 0))
        a.dy[i] = 0;
}

#endif
