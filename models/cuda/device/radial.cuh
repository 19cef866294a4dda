/* models/cuda/device/radial.cuh - edge frames, hidden layers of radial networks, folding: ops 1, 3, 4 (docs/model.md 8). */
#ifndef NN_CUDA_RADIAL_CUH
#define NN_CUDA_RADIAL_CUH

enum { WARPS = 4, H = NN_GPU_H };

static __device__ __forceinline__ int warp_of_grid(void)
{
    return (int)(blockIdx.x * WARPS + threadIdx.x / 32);
}

/* ---- frames: nn_frame_make, nn_frame_extend, nn_frame_reverse ---- */

enum { FRAME_PAIRS = 32, FRAME_WARPS = 16, FRAME_LD = FRAME_PAIRS + 1, FRAME_STEPS = NN_GPU_DEGREES - 2 };

/* The recursion of D_2, D_3, ..: for each degree the terms of row i are first[i] .. first[i+1]-1. */
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

/* Q = [x' r z'] of one pair (models/network/frame.h); entries of a pair are FRAME_LD doubles apart. */
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
    for (int c = 0; c < 3; c++) {
        double other = c == (k + 2) % 3 ? -r[(c + 2) % 3] : 0;
        x[c] = c == (k + 1) % 3 ? r[(c + 1) % 3] : other;
    }
    s = 1 / sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2]);
UNROLL
    for (int c = 0; c < 3; c++) {
        q[3 * c * FRAME_LD] = x[c] * s;
        q[(3 * c + 1) * FRAME_LD] = r[c];
        q[(3 * c + 2) * FRAME_LD] = x[(c + 1) % 3] * s * r[(c + 2) % 3] - x[(c + 2) % 3] * s * r[(c + 1) % 3];
    }
}

/* Entry (i, k) of D_l = (2l+1) sum w w D_(l-1) D_1. */
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

/* Whether entry e of a frame is the same for the reverse edge; otherwise its sign changes (nn_frame_reverse). */
static __device__ __forceinline__ bool frame_keeps(int e)
{
    int l = 1;

    while (e >= frame_at(l + 1))
        l++;
    return (l % 2 == 0) == ((e - frame_at(l)) % (2 * l + 1) >= l);
}

/* Op 1: D_1 .. D_l_max of each pair and of its reverse, in double, from vectors or from stored D_1 .. D_3.
 * Grid: FRAME_PAIRS pairs a block; block: FRAME_WARPS warps. While entries are computed, lane = pair and warp = entry of
 * D_l, so all lanes of a warp use the same terms; while frames are stored, warp = pair and lane = entry.
 * Shared: all [entry][FRAME_LD] doubles of the block's pairs (one column of padding); rule: the terms.
 * Equals: nn_frame_make, nn_frame_extend, nn_frame_reverse (models/network/frame.c); models/ref has no frames. */
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

/* ---- radial networks, docs/model.md 3.1: lane = hidden unit ---- */

typedef struct stage { /* Linear, LayerNorm, ReLU: hat = normalised, out = after the ReLU */
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

/* du: the gradient between LayerNorm and ReLU. Returns the gradient before the LayerNorm. */
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

/* Weights of the second layer in shared memory, for all warps of the block; read from global memory by rows, a lane's
 * accesses would be spread over cache lines. The extra column avoids bank conflicts. */
typedef float hidden_weights[H][H + 1];

static __device__ __forceinline__ void hidden_open(const nn_gpu_hidden &a, const nn_gpu_net &net, hidden_weights w)
{
UNROLL
    for (int i = 0; i < H / WARPS; i++) {
        int at = i * WARPS * 32 + (int)threadIdx.x;
        w[at / H][at % H] = a.params[net.w1 + at];
    }
    __syncthreads();
}

static __device__ void hidden_stages(const nn_gpu_hidden &a, const nn_gpu_net &net, int node, const hidden_weights w, stage st[2])
{
    int lane = (int)threadIdx.x % 32;
    bool ln = net.ln != 0;
    float t = a.params[net.b0 + lane];

    for (int i = 0; i < a.n_in; i++)
        t += a.params[net.w0 + (int64_t)lane * a.n_in + i] * a.scalar[(int64_t)node * a.n_in + i];
    st[0] = stage_close(t, ln, gain_of(a, ln, net.g0, lane), ln ? a.params[net.c0 + lane] : 0);
    t = a.params[net.b1 + lane];
UNROLL
    for (int i = 0; i < H; i++)
        t += w[lane][i] * warp_get(st[0].out, i);
    st[1] = stage_close(t, ln, gain_of(a, ln, net.g1, lane), ln ? a.params[net.c1 + lane] : 0);
}

/* Op 3: h = ReLU(LN(W1 ReLU(LN(W0 s + b0)) + b1)) of every radial node and network (LN if the network has it).
 * Grid: x = WARPS radial nodes, y = network; warp = node, lane = hidden unit. Shared: hidden_weights, W1 [32][33].
 * Equals: hidden_forward (models/ref/lanes.inc). */
__global__ void hidden_run(nn_gpu_hidden a)
{
    __shared__ hidden_weights w;
    int node = warp_of_grid(), lane = (int)threadIdx.x % 32;
    nn_gpu_net net = a.net[blockIdx.y];
    stage st[2];

    hidden_open(a, net, w);
    if (node >= a.n_nodes)
        return;
    hidden_stages(a, net, node, w, st);
    a.h[((int64_t)blockIdx.y * a.n_nodes + node) * H + lane] = st[1].out;
}

enum { OUT0, DT0, DU0, DG0, DT1, DU1, DG1, HIDDEN_PARTS };

/* Op 3 backward, first part: per node and network the seven vectors [HIDDEN_PARTS][32] in work: output of the first layer,
 * and gradients before and behind the LayerNorms, whose sums over nodes are the gradients of the parameters.
 * Map and shared memory as in hidden_run. Equals: hidden_backward (models/ref/lanes.inc). */
__global__ void hidden_parts(nn_gpu_hidden a)
{
    __shared__ hidden_weights w;
    int node = warp_of_grid(), lane = (int)threadIdx.x % 32;
    nn_gpu_net net = a.net[blockIdx.y];
    bool ln = net.ln != 0;
    float du, dt, below = 0, *to;
    stage st[2];

    hidden_open(a, net, w);
    if (node >= a.n_nodes)
        return;
    to = a.work + ((int64_t)blockIdx.y * a.n_nodes + node) * HIDDEN_PARTS * H + lane;
    hidden_stages(a, net, node, w, st);
    du = st[1].out > 0 ? a.dh[((int64_t)blockIdx.y * a.n_nodes + node) * H + lane] : 0;
    dt = stage_back(st[1], ln, gain_of(a, ln, net.g1, lane), du);
    to[OUT0 * H] = st[0].out;
    to[DT1 * H] = dt;
    to[DU1 * H] = du;
    to[DG1 * H] = du * st[1].hat;
UNROLL
    for (int k = 0; k < H; k++)
        below += w[k][lane] * warp_get(dt, k);
    du = st[0].out > 0 ? below : 0;
    to[DT0 * H] = stage_back(st[0], ln, gain_of(a, ln, net.g0, lane), du);
    to[DU0 * H] = du;
    to[DG0 * H] = du * st[0].hat;
}

enum { HIDDEN_COLS = 64, HIDDEN_SLICES = 8 };

/* A parameter of unit k. Its gradient is a sum over nodes of part `of`, for weights times hidden unit or scalar `in`. */
typedef struct hidden_sum {
    int64_t at;      /* offset in grad; -1: no such parameter */
    int of, in;      /* in -1: no factor                      */
    const float *by; /* the factors of the first node         */
    int step;        /* floats from node to node              */
} hidden_sum;

/* Parameter j of unit k: weights of the second layer, of the first, then biases, gains and biases of LayerNorm. */
static __device__ hidden_sum hidden_sum_of(const nn_gpu_hidden &a, const nn_gpu_net &net, const float *parts, int k, int j)
{
    int n = H + a.n_in, q = j - n;

    if (j < H)
        return hidden_sum{ net.w1 + k * H + j, DT1, j, parts + OUT0 * H, HIDDEN_PARTS * H };
    if (j < n)
        return hidden_sum{ net.w0 + (int64_t)k * a.n_in + (j - H), DT0, j - H, a.scalar, a.n_in };
    if (q >= (net.ln ? 6 : 2))
        return hidden_sum{ -1, 0, -1, NULL, 0 };
    switch (q) {
    case 0: return hidden_sum{ net.b0 + k, DT0, -1, NULL, 0 };
    case 1: return hidden_sum{ net.b1 + k, DT1, -1, NULL, 0 };
    case 2: return hidden_sum{ net.g0 + k, DG0, -1, NULL, 0 };
    case 3: return hidden_sum{ net.g1 + k, DG1, -1, NULL, 0 };
    case 4: return hidden_sum{ net.c0 + k, DU0, -1, NULL, 0 };
    default: return hidden_sum{ net.c1 + k, DU1, -1, NULL, 0 };
    }
}

/* The sum over nodes slice, slice + HIDDEN_SLICES, .. */
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

/* Op 3 backward, second part: grad += sums over nodes of the vectors in work.
 * Grid: x = hidden unit, y = network; block: HIDDEN_COLS parameters of the unit x HIDDEN_SLICES slices of the nodes; the
 * slices are added in order. Shared: part [slice][parameter]. Equals: as hidden_parts. */
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

/* ---- the last radial layer, from frequencies J to orders m (docs/performance.md 2.1) ---- */

/* A block has FOLD_SIDE hidden units x FOLD_SIDE channels in x FOLD_SIDE channels out. Each of the three is the fastest index
 * of one of the arrays, where FOLD_SIDE floats are one sector of memory (32 bytes). A thread has FOLD_EACH of these
 * numbers, FOLD_STEP apart. */
enum { FOLD_SIDE = NN_GPU_FOLD, FOLD_EACH = 2, FOLD_THREADS = FOLD_SIDE * FOLD_SIDE * FOLD_SIDE / FOLD_EACH,
       FOLD_STEP = FOLD_SIDE / FOLD_EACH, FOLD_LD = FOLD_SIDE * FOLD_SIDE + 4 };

typedef struct fold_shared {
    __align__(16) nn_gpu_path path;
    float part[NN_GPU_FREQS][FOLD_SIDE][FOLD_LD]; /* [q][hidden unit][channel out * FOLD_SIDE + channel in] */
} fold_shared;

static_assert(sizeof(nn_gpu_path) % 16 == 0 && sizeof(nn_gpu_path) / 16 <= FOLD_THREADS, "a path is copied by sixteens");

/* The tile; its channels that exist (n_in, n_out); its first hidden unit; the thread's coordinates x, y, z. row: offset in
 * the parameters of hidden unit x of channels y -> z, frequency 0; row_step: from there to the thread's next number. */
typedef struct fold_block {
    nn_gpu_fold_tile tile;
    int n_freq, n_in, n_out, unit, x, y, z;
    int64_t row, row_step;
} fold_block;

/* Also copies the path to shared memory; it may be read after the next barrier. */
static __device__ __forceinline__ fold_block fold_open(const nn_gpu_fold &f, fold_shared *s)
{
    nn_gpu_fold_tile tile = f.tile[blockIdx.x / (H / FOLD_SIDE)];
    const nn_gpu_path *p = f.path + tile.path;
    int t = (int)threadIdx.x, unit = (int)blockIdx.x % (H / FOLD_SIDE) * FOLD_SIDE;
    int x = t % FOLD_SIDE, y = t / FOLD_SIDE % FOLD_SIDE, z = t / (FOLD_SIDE * FOLD_SIDE);
    int64_t row = (int64_t)(tile.o + z) * p->c_in + tile.i + y, out = (int64_t)p->c_in * p->group_freqs * H;
    float part[4];

    if (t < (int)sizeof *p / 16) {
        load4(part, (const float *)p + 4 * t);
        memcpy((char *)&s->path + 16 * t, part, sizeof part);
    }
    return fold_block{ tile, p->n_freq, p->c_in - tile.i, p->c_out - tile.o, unit, x, y, z,
                       p->w + (row * p->group_freqs + p->f0) * H + unit + x, FOLD_STEP * out };
}

static __device__ __forceinline__ bool fold_there(const fold_block &b, int e, int freq)
{
    return freq < b.n_freq && b.y < b.n_in && b.z + e * FOLD_STEP < b.n_out;
}

/* Loads all frequencies of a thread's numbers; zero where there are none. */
static __device__ __forceinline__ void fold_load(const fold_block &b, const float *from, float w[FOLD_EACH][NN_GPU_FREQS])
{
UNROLL
    for (int e = 0; e < FOLD_EACH; e++)
UNROLL
        for (int freq = 0; freq < NN_GPU_FREQS; freq++)
            w[e][freq] = fold_there(b, e, freq) ? from[b.row + e * b.row_step + freq * H] : 0;
}

/* The offset of number q in the folded matrix: hidden unit z; forward x = channel out, y = channel in; transposed x =
 * channel in, y = channel out. */
static __device__ __forceinline__ int64_t fold_column(const nn_gpu_path &p, const fold_block &b, int turned, int q)
{
    int slow = (turned ? b.tile.o : b.tile.i) + b.y, fast = (turned ? b.tile.i : b.tile.o) + b.x;

    return (b.unit + b.z) * p.size + p.at[turned][q] + slow * p.step[turned][q] + fast;
}

/* Op 4: folded[hidden unit][number q of i -> o] = sum over frequencies f of coef[q][f] w[(o c_in + i) F + f][hidden unit],
 * stored forward and transposed (docs/performance.md 2.1).
 * Grid: tiles x (32 / FOLD_SIDE) groups of hidden units; block: FOLD_THREADS; thread = FOLD_EACH numbers.
 * Shared: fold_shared, the path and the folded numbers. Equals: nn_cpu_fold (models/cpu/fold.c); models/ref does not fold. */
__global__ void __launch_bounds__(FOLD_THREADS) fold_run(nn_gpu_fold f)
{
    __shared__ fold_shared s;
    fold_block b = fold_open(f, &s);
    const nn_gpu_path &p = s.path;
    float w[FOLD_EACH][NN_GPU_FREQS];

    fold_load(b, f.params, w);
    __syncthreads();
UNROLL_BY(1)
    for (int q = 0; q < b.n_freq; q++) {
        float sum[FOLD_EACH] = { 0 };
UNROLL
        for (int freq = 0; freq < NN_GPU_FREQS; freq++)
UNROLL
            for (int e = 0; e < FOLD_EACH; e++)
                sum[e] += p.coef[q][freq] * w[e][freq];
UNROLL
        for (int e = 0; e < FOLD_EACH; e++)
            s.part[q][b.x][(b.z + e * FOLD_STEP) * FOLD_SIDE + b.y] = sum[e];
    }
    __syncthreads();
UNROLL_BY(2)
    for (int q = 0; q < b.n_freq; q++) {
        float *to = f.folded + p.table[0] + fold_column(p, b, 0, q), *turned = f.folded + p.table[1] + fold_column(p, b, 1, q);
        int64_t step = FOLD_STEP * p.size;
UNROLL
        for (int e = 0; e < FOLD_EACH; e++) {
            const float *part = s.part[q][b.z + e * FOLD_STEP];
            if (b.x < b.n_out && b.y < b.n_in)
                to[e * step] = part[b.x * FOLD_SIDE + b.y];
            if (b.x < b.n_in && b.y < b.n_out)
                turned[e * step] = part[b.y * FOLD_SIDE + b.x];
        }
    }
}

/* Copies the block's part of dfolded to shared memory; all loads come before the first store. */
static __device__ __forceinline__ void fold_back_load(const nn_gpu_fold &f, const fold_block &b, fold_shared *s)
{
    bool there = b.x < b.n_out && b.y < b.n_in;
    int64_t step = FOLD_STEP * s->path.size;
    float d[FOLD_EACH][NN_GPU_FREQS];

UNROLL
    for (int q = 0; q < NN_GPU_FREQS; q++) {
        int64_t column = fold_column(s->path, b, 0, q); /* arbitrary, and not used, if there is no number q */
UNROLL
        for (int e = 0; e < FOLD_EACH; e++)
            d[e][q] = there && q < b.n_freq ? f.dfolded[column + e * step] : 0;
    }
UNROLL
    for (int q = 0; q < NN_GPU_FREQS; q++)
UNROLL
        for (int e = 0; e < FOLD_EACH; e++)
            s->part[q][b.z + e * FOLD_STEP][b.x * FOLD_SIDE + b.y] = d[e][q];
}

/* Op 4 backward, the transpose: grad[(o c_in + i) F + f][hidden unit] += sum over q of coef[q][f] dfolded[hidden unit][q].
 * Map and shared memory as in fold_run. Equals: nn_cpu_unfold (models/cpu/fold.c). */
__global__ void __launch_bounds__(FOLD_THREADS, 4) fold_back(nn_gpu_fold f)
{
    __shared__ fold_shared s;
    fold_block b = fold_open(f, &s);
    float grad[FOLD_EACH][NN_GPU_FREQS], sum[FOLD_EACH][NN_GPU_FREQS] = {};

    fold_load(b, f.grad, grad);
    __syncthreads();
    fold_back_load(f, b, &s);
    __syncthreads();
UNROLL_BY(1)
    for (int q = 0; q < b.n_freq; q++) {
        const float *d = s.part[q][b.x] + b.z * FOLD_SIDE + b.y;
UNROLL
        for (int e = 0; e < FOLD_EACH; e++)
UNROLL
            for (int freq = 0; freq < NN_GPU_FREQS; freq++)
                sum[e][freq] += s.path.coef[q][freq] * d[e * FOLD_STEP * FOLD_SIDE];
    }
UNROLL
    for (int e = 0; e < FOLD_EACH; e++)
UNROLL
        for (int freq = 0; freq < NN_GPU_FREQS; freq++)
            if (fold_there(b, e, freq))
                f.grad[b.row + e * b.row_step + freq * H] = grad[e][freq] + sum[e][freq];
}

#endif
