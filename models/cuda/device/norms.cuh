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

/* Calls do_it(first node of this warp, end, its sums [bias, gain][channels]) for the block's part of the nodes, then adds the sums of
 * the warps in order and stores them in work [2][NN_GPU_PARTS][channels]. shared: [WARPS][bias, gain][channels of degree l]. */
template <class F>
static __device__ __forceinline__ void norm_parts(const nn_gpu_norm &a, int l, float *shared, const F &do_it)
{
    int ch = a.nodes.ch[l], warp = (int)threadIdx.x / 32, skip = 0;
    int per = (a.n_nodes + NN_GPU_PARTS - 1) / NN_GPU_PARTS, first = (int)blockIdx.x * per;
    int end = first + per < a.n_nodes ? first + per : a.n_nodes;

    for (int k = (int)threadIdx.x; k < WARPS * 2 * ch; k += WARPS * 32)
        shared[k] = 0;
    __syncthreads();
    do_it(first + warp, end, shared + warp * 2 * ch);
    __syncthreads();
    for (int i = 0; i < l; i++)
        skip += a.nodes.ch[i];
    for (int k = (int)threadIdx.x; k < 2 * ch; k += WARPS * 32) {
        float v = 0;
UNROLL
        for (int i = 0; i < WARPS; i++)
            v += shared[i * 2 * ch + k];
        a.work[((int64_t)(k >= ch) * NN_GPU_PARTS + blockIdx.x) * a.channels + skip + k % ch] = v;
    }
}

/* Op 11 backward: with q = dy . x, ds = q / n where the ReLU is open: dx = dy s / n + (dn / n) x (docs/model.md 5.5);
 * partial sums of the gradients of bias (ds) and gain (ds h) to work [2][NN_GPU_PARTS][channels].
 * Grid: x = part of the nodes (NN_GPU_PARTS), y = degree; warp = every WARPS-th node of the part, lane = channel.
 * Dynamic shared memory: [WARPS][bias, gain][channels of the degree]. Equals: norm_backward (models/ref/layers.inc). */
__global__ void __launch_bounds__(WARPS * 32) norm_grad(nn_gpu_norm a)
{
    SHARED_BYTES(shared);
    int l = (int)blockIdx.y, ch = a.nodes.ch[l];

    norm_parts(a, l, (float *)shared, [&](int first, int end, float *sum) {
        auto run = [&](auto kind) {
            for (int node = first; node < end; node += WARPS)
                norm_node_back<decltype(kind)::dim, decltype(kind)::one>(a, node, sum);
        };
        if (ch && ch <= 32)
            norm_dispatch<true>(l, run);
        else if (ch)
            norm_dispatch<false>(l, run);
    });
}

/* ---- the gate ---- */

/* One node: the mean of its scalars, 1 / sqrt(variance + 1e-5). */
typedef struct gate_node {
    const float *x, *dy; /* dy NULL: forward */
    int ch;
    float part, mean, rstd;
} gate_node;

static __device__ __forceinline__ gate_node gate_open(const nn_gpu_norm &a, int node)
{
    int lane = (int)threadIdx.x % 32;
    int64_t at = (int64_t)node * a.nodes.size;
    gate_node g = { a.x + at, a.dy ? a.dy + at : NULL, a.nodes.ch[0], 1 / (float)a.nodes.ch[0], 0, 0 };
    const float *s = g.x + a.nodes.at[0];
    float sum = 0;

    for (int k = lane; k - lane < g.ch; k += 32)
        sum += k < g.ch ? s[k] : 0;
    g.mean = warp_sum(sum) * g.part;
    sum = 0;
    for (int k = lane; k - lane < g.ch; k += 32)
        sum += k < g.ch ? (s[k] - g.mean) * (s[k] - g.mean) : 0;
    g.rstd = 1 / sqrtf(warp_sum(sum) * g.part + 1e-5f);
    return g;
}

/* One over the root mean square length of the channels of degree l. */
static __device__ __forceinline__ float gate_scale(const nn_gpu_norm &a, const gate_node &g, int l)
{
    const float *x = g.x + a.nodes.at[l];
    int lane = (int)threadIdx.x % 32, n = (2 * l + 1) * g.ch;
    float sum = 0;

    for (int k = lane; k - lane < n; k += 32)
        sum += k < n ? x[k] * x[k] : 0;
    return 1 / sqrtf(warp_sum(sum) * g.part + 1e-5f);
}

static __device__ __forceinline__ float gate_hat(const nn_gpu_norm &a, const gate_node &g, int k)
{
    return (g.x[a.nodes.at[0] + k] - g.mean) * g.rstd;
}

/* The input of the gate of channel k. */
static __device__ __forceinline__ float gate_input(const nn_gpu_norm &a, const gate_node &g, int l, int k)
{
    return a.params[a.gain[l] + k] * gate_hat(a, g, k) + a.params[a.bias[l] + k];
}

static __device__ __forceinline__ float sigmoid(float t) { return 1 / (1 + expf(-t)); }

/* dy . x of a channel. */
static __device__ __forceinline__ float gate_along(const nn_gpu_norm &a, const gate_node &g, int l, int k)
{
    float sum = 0;

    for (int d = 0; d < 2 * l + 1; d++)
        sum += g.dy[a.nodes.at[l] + d * g.ch + k] * g.x[a.nodes.at[l] + d * g.ch + k];
    return sum;
}

/* The gradient of the gate's input; each: of degree l. */
static __device__ __forceinline__ float gate_slope(const nn_gpu_norm &a, const gate_node &g, int l, int k, float each)
{
    float t = gate_input(a, g, l, k), s = sigmoid(t);

    return l == 0 ? g.dy[a.nodes.at[0] + k] * s * (1 + t * (1 - s)) : gate_along(a, g, l, k) * each * s * (1 - s);
}

/* Op 11 with a gate: h the normalised scalars, t = gain h + bias; degree 0: y = t sigmoid(t); above: y = x sigmoid(t) / root
 * mean square length (docs/model.md 5.6). Grid: x = WARPS nodes, y = degree; warp = node, lane = channel. No shared memory.
 * Equals: gate_forward (models/ref/layers.inc). */
__global__ void __launch_bounds__(WARPS * 32) gate_run(nn_gpu_norm a)
{
    int node = warp_of_grid(), l = (int)blockIdx.y;

    if (node >= a.n_nodes)
        return;
    gate_node g = gate_open(a, node);
    float each = l ? gate_scale(a, g, l) : 1, *y = a.y + (int64_t)node * a.nodes.size + a.nodes.at[l];
    for (int k = (int)threadIdx.x % 32; k < g.ch; k += 32) {
        float t = gate_input(a, g, l, k), s = sigmoid(t);
        for (int d = 0; d < 2 * l + 1; d++)
            y[d * g.ch + k] = l == 0 ? t * s : g.x[a.nodes.at[l] + d * g.ch + k] * (s * each);
    }
}

/* dx of a degree above 0. */
static __device__ __forceinline__ void gate_vectors_back(const nn_gpu_norm &a, const gate_node &g, int l, float each, float *dx)
{
    int lane = (int)threadIdx.x % 32;
    float along = 0;

    for (int k = lane; k - lane < g.ch; k += 32)
        along += k < g.ch ? gate_along(a, g, l, k) * sigmoid(gate_input(a, g, l, k)) : 0;
    along = warp_sum(along) * each * each * each * g.part;
    for (int k = lane; k < g.ch; k += 32) {
        float s = sigmoid(gate_input(a, g, l, k));
        for (int d = 0; d < 2 * l + 1; d++) {
            int i = a.nodes.at[l] + d * g.ch + k;
            dx[i] = g.dy[i] * s * each - along * g.x[i];
        }
    }
}

/* The gradient of a normalised scalar: of the gates of all degrees. */
static __device__ __forceinline__ float gate_hat_slope(const nn_gpu_norm &a, const gate_node &g, int k, const float each[NN_GPU_DEGREES])
{
    float sum = 0;

UNROLL
    for (int l = 0; l < NN_GPU_DEGREES; l++)
        sum += l < a.nodes.n_degrees ? gate_slope(a, g, l, k, each[l]) * a.params[a.gain[l] + k] : 0;
    return sum;
}

/* dx of degree 0. */
static __device__ __forceinline__ void gate_scalars_back(const nn_gpu_norm &a, const gate_node &g, float *dx)
{
    int lane = (int)threadIdx.x % 32;
    float each[NN_GPU_DEGREES] = { 1 }, mean = 0, dot = 0;

UNROLL
    for (int l = 1; l < NN_GPU_DEGREES; l++)
        each[l] = l < a.nodes.n_degrees ? gate_scale(a, g, l) : 1;
    for (int k = lane; k - lane < g.ch; k += 32) {
        float dhat = k < g.ch ? gate_hat_slope(a, g, k, each) : 0;
        mean += dhat;
        dot += k < g.ch ? dhat * gate_hat(a, g, k) : 0;
    }
    mean = warp_sum(mean) * g.part;
    dot = warp_sum(dot) * g.part;
    for (int k = lane; k < g.ch; k += 32)
        dx[a.nodes.at[0] + k] = g.rstd * (gate_hat_slope(a, g, k, each) - mean - gate_hat(a, g, k) * dot);
}

static __device__ __forceinline__ void gate_node_back(const nn_gpu_norm &a, int node, int l, float *sum)
{
    gate_node g = gate_open(a, node);
    float each = l ? gate_scale(a, g, l) : 1, *dx = a.dx + (int64_t)node * a.nodes.size;

    for (int k = (int)threadIdx.x % 32; k < g.ch; k += 32) {
        float dt = gate_slope(a, g, l, k, each);
        sum[k] += dt;
        sum[g.ch + k] += dt * gate_hat(a, g, k);
    }
    if (l)
        gate_vectors_back(a, g, l, each, dx);
    else
        gate_scalars_back(a, g, dx);
}

/* Its backward (docs/model.md 5.6): dx, and partial sums of the gradients of bias and gain as norm_grad. Map and shared memory as
 * in norm_grad; a warp of degree 0 goes through the gates of all degrees. Equals: gate_backward (models/ref/layers.inc). */
__global__ void __launch_bounds__(WARPS * 32) gate_grad(nn_gpu_norm a)
{
    SHARED_BYTES(shared);
    int l = (int)blockIdx.y;

    norm_parts(a, l, (float *)shared, [&](int first, int end, float *sum) {
        for (int node = first; node < end; node += WARPS)
            gate_node_back(a, node, l, sum);
    });
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
