/* models/cuda/nodes.cuh - norm of features, pooling, bias: ops 11, 12, 13. */
#ifndef NN_CUDA_NODES_CUH
#define NN_CUDA_NODES_CUH

/* One node and degree; lanes along channels. */
typedef struct norm_part {
    int ch, dim;
    const float *x, *gain, *bias;
    float mean, rstd;
} norm_part;

static __device__ __forceinline__ float norm_size(const norm_part &p, int k)
{
    float sum = 0, s;

    for (int c = 0; c < p.dim; c++)
        sum += p.x[c * p.ch + k] * p.x[c * p.ch + k];
    s = sqrtf(sum);
    return s > 0x1p-24f ? s : 0x1p-24f;
}

static __device__ norm_part norm_open(const nn_gpu_norm &a, int node, int l)
{
    norm_part p = { a.nodes.ch[l], 2 * l + 1, a.x + (int64_t)node * a.nodes.size + a.nodes.at[l],
                    a.params + a.gain[l], a.params + a.bias[l], 0, 0 };
    float sum = 0;

    for (int k = (int)threadIdx.x % 32; k < p.ch; k += 32)
        sum += norm_size(p, k);
    p.mean = warp_sum(sum) / (float)p.ch;
    sum = 0;
    for (int k = (int)threadIdx.x % 32; k < p.ch; k += 32) {
        float off = norm_size(p, k) - p.mean;
        sum += off * off;
    }
    p.rstd = 1 / sqrtf(warp_sum(sum) / (float)p.ch + 1e-5f);
    return p;
}

__global__ void norm_run(nn_gpu_norm a)
{
    int node = warp_of_grid(), l = (int)blockIdx.y;
    float *y;
    norm_part p;

    if (node >= a.n_nodes || !a.nodes.ch[l])
        return;
    p = norm_open(a, node, l);
    y = a.y + (int64_t)node * a.nodes.size + a.nodes.at[l];
    for (int k = (int)threadIdx.x % 32; k < p.ch; k += 32) {
        float size = norm_size(p, k), u = p.gain[k] * ((size - p.mean) * p.rstd) + p.bias[k];
        float factor = u > 0 ? u / size : 0;
        for (int c = 0; c < p.dim; c++)
            y[c * p.ch + k] = p.x[c * p.ch + k] * factor;
    }
}

typedef struct norm_channel {
    float size, hat, u, along, ds; /* along: dy . x; ds: gradient of u */
} norm_channel;

static __device__ __forceinline__ norm_channel norm_channel_open(const norm_part &p, const float *dy, int k)
{
    norm_channel c;

    c.size = norm_size(p, k);
    c.hat = (c.size - p.mean) * p.rstd;
    c.u = p.gain[k] * c.hat + p.bias[k];
    c.along = 0;
    for (int i = 0; i < p.dim; i++)
        c.along += dy[i * p.ch + k] * p.x[i * p.ch + k];
    c.ds = c.u > 0 ? c.along / c.size : 0;
    return c;
}

static __device__ void norm_channel_back(const norm_part &p, const float *dy, float *dx, int k, float mean, float dot)
{
    norm_channel c = norm_channel_open(p, dy, k);
    float factor = c.u > 0 ? c.u / c.size : 0;
    float dn = p.rstd * (p.gain[k] * c.ds - mean - c.hat * dot) - c.along * factor / c.size;
    float along = c.size > 0x1p-24f ? dn / c.size : 0;

    for (int i = 0; i < p.dim; i++)
        dx[i * p.ch + k] = dy[i * p.ch + k] * factor + along * p.x[i * p.ch + k];
}

__global__ void norm_grad(nn_gpu_norm a)
{
    int node = warp_of_grid(), l = (int)blockIdx.y, skip = 0;
    float mean = 0, dot = 0;
    const float *dy;
    norm_part p;

    if (node >= a.n_nodes || !a.nodes.ch[l])
        return;
    p = norm_open(a, node, l);
    dy = a.dy + (int64_t)node * a.nodes.size + a.nodes.at[l];
    for (int i = 0; i < l; i++)
        skip += a.nodes.ch[i];
    for (int k = (int)threadIdx.x % 32; k < p.ch; k += 32) {
        norm_channel c = norm_channel_open(p, dy, k);
        mean += p.gain[k] * c.ds;
        dot += p.gain[k] * c.ds * c.hat;
        a.dbias[(int64_t)node * a.channels + skip + k] = c.ds;
        a.dgain[(int64_t)node * a.channels + skip + k] = c.ds * c.hat;
    }
    mean = warp_sum(mean) / (float)p.ch;
    dot = warp_sum(dot) / (float)p.ch;
    for (int k = (int)threadIdx.x % 32; k < p.ch; k += 32)
        norm_channel_back(p, dy, a.dx + (int64_t)node * a.nodes.size + a.nodes.at[l], k, mean, dot);
}

/* ---- sums over nodes: parts of them by 8 warps a block, then the parts in order ---- */

__global__ void norm_parts(nn_gpu_norm a)
{
    __shared__ float part[8][32];
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, col = (int)blockIdx.x * 32 + lane;
    int per = (a.n_nodes + NN_GPU_PARTS - 1) / NN_GPU_PARTS, first = (int)blockIdx.y * per;
    int end = first + per < a.n_nodes ? first + per : a.n_nodes;
    const float *x = blockIdx.z ? a.dgain : a.dbias;
    float sum = 0;

UNROLL_BY(4)
    for (int node = first + warp; node < end; node += 8)
        sum += col < a.channels ? x[(int64_t)node * a.channels + col] : 0;
    part[warp][lane] = sum;
    __syncthreads();
    for (int i = 1; i < 8; i++)
        sum += part[i][lane];
    if (warp == 0 && col < a.channels)
        a.work[((int64_t)blockIdx.z * NN_GPU_PARTS + blockIdx.y) * a.channels + col] = sum;
}

__global__ void norm_sums(nn_gpu_norm a)
{
    int col = (int)(blockIdx.x * blockDim.x + threadIdx.x), l = 0, k = col;
    const float *part = a.work + (int64_t)blockIdx.y * NN_GPU_PARTS * a.channels + col;
    float sum = 0;

    if (col >= a.channels)
        return;
UNROLL_BY(8)
    for (int i = 0; i < NN_GPU_PARTS; i++)
        sum += part[(int64_t)i * a.channels];
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
