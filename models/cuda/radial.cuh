/* models/cuda/radial.cuh - edge frames, radial networks, folded weights: ops 1, 3, 4. */
#ifndef NN_CUDA_RADIAL_CUH
#define NN_CUDA_RADIAL_CUH

enum { WARPS = 4, H = NN_GPU_H };

/* Place of D_l in a frame: nn_frame_at. */
static __device__ __forceinline__ int frame_at(int l)
{
    return (4 * l * l * l - l) / 3 - 1;
}

static __device__ __forceinline__ int warp_of_grid(void)
{
    return (int)(blockIdx.x * WARPS + threadIdx.x / 32);
}

/* ---- frames: nn_frame_make, nn_frame_extend, nn_frame_reverse ---- */

enum { FRAME_PAIRS = 32, FRAME_WARPS = 16, FRAME_LD = FRAME_PAIRS + 1, FRAME_STEPS = NN_GPU_DEGREES - 2 };

/* The rule of D_2.., whose terms of row i are first[i] .. first[i+1]-1. */
typedef struct frame_terms {
    nn_gpu_term term[FRAME_STEPS][NN_GPU_TERMS];
    int first[FRAME_STEPS][NN_GPU_FREQS + 1];
} frame_terms;

static __device__ void frame_terms_load(frame_terms *to, const nn_gpu_frame_rule *rule, int from, int l_max)
{
    int l = from + (int)threadIdx.x / NN_GPU_TERMS, t = (int)threadIdx.x % NN_GPU_TERMS;
    nn_gpu_term term;

    if (l > l_max || t >= rule->n[l])
        return;
    to->term[l - 2][t] = term = rule->term[l][t];
    if (!t || rule->term[l][t - 1].i != term.i)
        to->first[l - 2][term.i] = t;
    if (t == rule->n[l] - 1)
        to->first[l - 2][term.i + 1] = t + 1;
}

/* Q = [x' r z'] of one pair; its entries are FRAME_LD apart. */
static __device__ void frame_first(const float *vec, double *q)
{
    double r[3] = { vec[0], vec[1], vec[2] }, x[3] = { 0, 0, 0 }, length, s;
    int k = 0;

    length = sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2]);
    if (!(length > 0)) {
        r[0] = r[2] = 0;
        r[1] = length = 1;
    }
UNROLL
    for (int c = 0; c < 3; c++)
        r[c] /= length;
    if (fabs(r[1]) < fabs(r[0]))
        k = 1;
    if (fabs(r[2]) < fabs(k ? r[1] : r[0]))
        k = 2;
UNROLL
    for (int c = 0; c < 3; c++)
        x[c] = c == (k + 1) % 3 ? r[(c + 1) % 3] : c == (k + 2) % 3 ? -r[(c + 2) % 3] : 0;
    s = 1 / sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2]);
UNROLL
    for (int c = 0; c < 3; c++) {
        q[3 * c * FRAME_LD] = x[c] * s;
        q[(3 * c + 1) * FRAME_LD] = r[c];
        q[(3 * c + 2) * FRAME_LD] = x[(c + 1) % 3] * s * r[(c + 2) % 3] - x[(c + 2) % 3] * s * r[(c + 1) % 3];
    }
}

/* Entry (i, k) of D_l from D_(l-1) and D_1. */
static __device__ __forceinline__ double frame_entry(const frame_terms &rule, int l, const double *d, int i, int k)
{
    const nn_gpu_term *term = rule.term[l - 2];
    const int *first = rule.first[l - 2];
    const double *below = d + frame_at(l - 1) * FRAME_LD;
    double sum = 0;

    for (int a = first[i]; a < first[i + 1]; a++)
        for (int b = first[k]; b < first[k + 1]; b++)
            sum += (2 * l + 1) * term[a].w * term[b].w * below[(term[a].j * (2 * l - 1) + term[b].j) * FRAME_LD]
                * d[(term[a].k * 3 + term[b].k) * FRAME_LD];
    return sum;
}

/* Whether entry e of a frame is the same in that of the reverse edge; else its sign changes. */
static __device__ __forceinline__ bool frame_keeps(int e)
{
    int l = 1;

    while (e >= frame_at(l + 1))
        l++;
    return (l % 2 == 0) == ((e - frame_at(l)) % (2 * l + 1) >= l);
}

/* A lane is a pair, so that all lanes take the same terms; a warp is an entry, then, where frames go out, a pair. */
__global__ void __launch_bounds__(FRAME_WARPS * 32) frames_make(nn_gpu_frames f)
{
    __shared__ double all[NN_GPU_FRAME * FRAME_LD];
    __shared__ frame_terms rule;
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, from = f.vec ? 2 : 4;
    int first = (int)blockIdx.x * FRAME_PAIRS, n = f.n_pairs - first < FRAME_PAIRS ? f.n_pairs - first : FRAME_PAIRS;

    frame_terms_load(&rule, f.rule, from, f.l_max);
    if (f.vec && warp == FRAME_WARPS - 1 && lane < n)
        frame_first(f.vec + 3 * (int64_t)(first + lane), all + lane);
    for (int pair = warp; !f.vec && pair < n; pair += FRAME_WARPS)
        for (int e = lane; e < frame_at(4); e += 32)
            all[e * FRAME_LD + pair] = f.stored[(int64_t)(first + pair) * frame_at(4) + e];
    __syncthreads();
    for (int l = from; l <= f.l_max; l++) {
        int side = 2 * l + 1;
        for (int e = warp; e < side * side && lane < n; e += FRAME_WARPS)
            all[(frame_at(l) + e) * FRAME_LD + lane] = frame_entry(rule, l, all + lane, e / side, e % side);
        __syncthreads();
    }
    for (int pair = warp; pair < n; pair += FRAME_WARPS)
        for (int e = lane; e < f.size; e += 32) {
            float v = (float)all[e * FRAME_LD + pair], *to = f.d + 2 * (int64_t)(first + pair) * f.size + e;
            to[0] = v;
            to[f.size] = frame_keeps(e) ? v : -v;
        }
}

/* ---- radial networks, spec 3.1: lane = hidden unit ---- */

typedef struct stage { /* one Linear, LayerNorm, ReLU */
    float hat, rstd, out;
} stage;

static __device__ __forceinline__ stage stage_close(float t, bool ln, float gain, float bias)
{
    stage s = { 0, 1, 0 };
    float mean, u = t;

    if (ln) {
        mean = warp_sum(t) / H;
        s.hat = t - mean;
        s.rstd = 1 / sqrtf(warp_sum(s.hat * s.hat) / H + 1e-5f);
        s.hat *= s.rstd;
        u = s.hat * gain + bias;
    }
    s.out = u > 0 ? u : 0;
    return s;
}

/* du: gradient before the ReLU; the result: before the LayerNorm. */
static __device__ __forceinline__ float stage_back(const stage &s, bool ln, float gain, float du)
{
    float dhat = du * gain, mean, dot;

    if (!ln)
        return du;
    mean = warp_sum(dhat) / H;
    dot = warp_sum(dhat * s.hat) / H;
    return s.rstd * (dhat - mean - s.hat * dot);
}

static __device__ __forceinline__ float gain_of(const nn_gpu_hidden &a, bool ln, int64_t at, int lane)
{
    return ln ? a.params[at + lane] : 1;
}

static __device__ void hidden_stages(const nn_gpu_hidden &a, const nn_gpu_net &net, int node, stage st[2])
{
    int lane = (int)threadIdx.x % 32;
    bool ln = net.ln != 0;
    float t = a.params[net.b0 + lane];

    for (int i = 0; i < a.n_in; i++)
        t += a.params[net.w0 + (int64_t)lane * a.n_in + i] * a.scalar[(int64_t)node * a.n_in + i];
    st[0] = stage_close(t, ln, gain_of(a, ln, net.g0, lane), ln ? a.params[net.c0 + lane] : 0);
    t = a.params[net.b1 + lane];
    for (int i = 0; i < H; i++)
        t += a.params[net.w1 + lane * H + i] * warp_get(st[0].out, i);
    st[1] = stage_close(t, ln, gain_of(a, ln, net.g1, lane), ln ? a.params[net.c1 + lane] : 0);
}

__global__ void hidden_run(nn_gpu_hidden a)
{
    int node = warp_of_grid(), lane = (int)threadIdx.x % 32;
    stage st[2];

    if (node >= a.n_nodes)
        return;
    hidden_stages(a, a.net[blockIdx.y], node, st);
    a.h[((int64_t)blockIdx.y * a.n_nodes + node) * H + lane] = st[1].out;
}

enum { OUT0, DT0, DU0, DG0, DT1, DU1, DG1, HIDDEN_PARTS };

/* Everything whose sums over nodes are gradients. */
__global__ void hidden_parts(nn_gpu_hidden a)
{
    int node = warp_of_grid(), lane = (int)threadIdx.x % 32;
    nn_gpu_net net = a.net[blockIdx.y];
    bool ln = net.ln != 0;
    float du, dt, below = 0, *to;
    stage st[2];

    if (node >= a.n_nodes)
        return;
    to = a.work + ((int64_t)blockIdx.y * a.n_nodes + node) * HIDDEN_PARTS * H + lane;
    hidden_stages(a, net, node, st);
    du = st[1].out > 0 ? a.dh[((int64_t)blockIdx.y * a.n_nodes + node) * H + lane] : 0;
    dt = stage_back(st[1], ln, gain_of(a, ln, net.g1, lane), du);
    to[OUT0 * H] = st[0].out;
    to[DT1 * H] = dt;
    to[DU1 * H] = du;
    to[DG1 * H] = du * st[1].hat;
    for (int k = 0; k < H; k++)
        below += a.params[net.w1 + k * H + lane] * warp_get(dt, k);
    du = st[0].out > 0 ? below : 0;
    to[DT0 * H] = stage_back(st[0], ln, gain_of(a, ln, net.g0, lane), du);
    to[DU0 * H] = du;
    to[DG0 * H] = du * st[0].hat;
}

enum { HIDDEN_COLS = 64, HIDDEN_SLICES = 8 };

/* A number of unit k whose gradient is a sum over nodes: of part `of`, times hidden unit or scalar `in`
 * where it is a weight. */
typedef struct hidden_sum {
    int64_t at;      /* in grad; -1: no such number */
    int of, in;      /* in -1: no factor            */
    const float *by; /* of the first node           */
    int step;        /* from node to node           */
} hidden_sum;

/* Number j of unit k: weights of the second layer, of the first, then what each unit has once. */
static __device__ hidden_sum hidden_sum_of(const nn_gpu_hidden &a, const nn_gpu_net &net, const float *parts, int k, int j)
{
    int n = H + a.n_in, q = j - n;

    if (j < H)
        return hidden_sum{ net.w1 + k * H + j, DT1, j, parts + OUT0 * H, HIDDEN_PARTS * H };
    if (j < n)
        return hidden_sum{ net.w0 + (int64_t)k * a.n_in + (j - H), DT0, j - H, a.scalar, a.n_in };
    if (q >= (net.ln ? 6 : 2))
        return hidden_sum{ -1, 0, -1, NULL, 0 };
    if (q % 2)
        return hidden_sum{ (q < 2 ? net.b1 : q < 4 ? net.g1 : net.c1) + k, q < 2 ? DT1 : q < 4 ? DG1 : DU1, -1, NULL, 0 };
    return hidden_sum{ (q < 2 ? net.b0 : q < 4 ? net.g0 : net.c0) + k, q < 2 ? DT0 : q < 4 ? DG0 : DU0, -1, NULL, 0 };
}

/* Every HIDDEN_SLICES-th node. */
static __device__ float hidden_slice(const hidden_sum &s, const float *parts, int n_nodes, int k, int slice)
{
    float sum = 0;

UNROLL_BY(4)
    for (int node = slice; s.at >= 0 && node < n_nodes; node += HIDDEN_SLICES) {
        float other = s.in < 0 ? 1 : s.by[(int64_t)node * s.step + s.in];
        sum += parts[(int64_t)node * HIDDEN_PARTS * H + s.of * H + k] * other;
    }
    return sum;
}

/* A block is one hidden unit of one network. */
__global__ void __launch_bounds__(HIDDEN_COLS * HIDDEN_SLICES) hidden_grad(nn_gpu_hidden a)
{
    __shared__ float part[HIDDEN_SLICES][HIDDEN_COLS];
    const float *parts = a.work + (int64_t)blockIdx.y * a.n_nodes * HIDDEN_PARTS * H;
    nn_gpu_net net = a.net[blockIdx.y];
    int k = (int)blockIdx.x, col = (int)threadIdx.x % HIDDEN_COLS, slice = (int)threadIdx.x / HIDDEN_COLS;

    for (int j = col; j - col < H + a.n_in + 6; j += HIDDEN_COLS) {
        hidden_sum s = hidden_sum_of(a, net, parts, k, j);
        part[slice][col] = hidden_slice(s, parts, a.n_nodes, k, slice);
        __syncthreads();
        float sum = 0;
UNROLL
        for (int i = 0; i < HIDDEN_SLICES; i++)
            sum += part[i][col];
        if (slice == 0 && s.at >= 0)
            a.grad[s.at] += sum;
        __syncthreads();
    }
}

/* ---- the last radial layer, from frequencies J to orders m (spec performance 2.1) ---- */

static __device__ __forceinline__ int padded(int n)
{
    return (n + NN_GPU_PAD - 1) / NN_GPU_PAD * NN_GPU_PAD;
}

/* Column of number q (a_m: q = m; b_m: q = low + m) of channels i -> o. */
static __device__ __forceinline__ int64_t fold_column(const nn_gpu_fold &f, const nn_gpu_path &p, int q, int i, int o,
                                                      bool turned)
{
    int low = p.d_in < p.d_out ? p.d_in : p.d_out, b = q > low, m = b ? q - low : q;
    int64_t n_k = padded(f.in.half[m]), n_n = padded(f.out.half[m]);
    int64_t k = f.in.at[p.d_in][p.d_in + m] - f.in.order[m] + i, n = f.out.at[p.d_out][p.d_out + m] - f.out.order[m] + o;

    return f.at[m] + b * n_k * n_n + (turned ? n * n_k + k : k * n_n + n);
}

static __device__ __forceinline__ int64_t fold_row(const nn_gpu_path &p, int freq, int i, int o)
{
    return p.w + (((int64_t)o * p.c_in + i) * p.group_freqs + p.f0 + freq) * H;
}

/* 32 channels out of one channel in of one path; 256 threads. */
__global__ void fold_run(nn_gpu_fold f)
{
    __shared__ float w[NN_GPU_FREQS][32][33];
    const nn_gpu_path &p = f.path[blockIdx.z];
    int i = (int)blockIdx.y, o0 = (int)blockIdx.x * 32, lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;

    if (i >= p.c_in || o0 >= p.c_out)
        return;
    for (int q = 0; q < p.n_freq; q++)
        for (int o = warp; o < 32; o += 8)
            w[q][o][lane] = o0 + o < p.c_out ? f.params[fold_row(p, q, i, o0 + o) + lane] : 0;
    __syncthreads();
    for (int q = 0; q < p.n_freq && o0 + lane < p.c_out; q++) {
        int64_t col = fold_column(f, p, q, i, o0 + lane, false), turned = fold_column(f, p, q, i, o0 + lane, true);
        for (int k = warp; k < H; k += 8) {
            float sum = 0;
            for (int freq = 0; freq < p.n_freq; freq++)
                sum += p.coef[q][freq] * w[freq][lane][k];
            f.folded[0][k * f.size + col] = sum;
            f.folded[1][k * f.size + turned] = sum;
        }
    }
}

__global__ void fold_back(nn_gpu_fold f)
{
    __shared__ float d[NN_GPU_FREQS][32][33];
    const nn_gpu_path &p = f.path[blockIdx.z];
    int i = (int)blockIdx.y, o0 = (int)blockIdx.x * 32, lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;

    if (i >= p.c_in || o0 >= p.c_out)
        return;
    for (int q = 0; q < p.n_freq && o0 + lane < p.c_out; q++) {
        int64_t col = fold_column(f, p, q, i, o0 + lane, false);
        for (int k = warp; k < H; k += 8)
            d[q][lane][k] = f.dfolded[k * f.size + col];
    }
    __syncthreads();
    for (int freq = 0; freq < p.n_freq; freq++)
        for (int o = warp; o < 32 && o0 + o < p.c_out; o += 8) {
            float sum = 0;
            for (int q = 0; q < p.n_freq; q++)
                sum += p.coef[q][freq] * d[q][o][lane];
            f.grad[fold_row(p, freq, i, o0 + o) + lane] += sum;
        }
}

#endif
