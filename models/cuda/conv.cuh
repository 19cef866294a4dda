/* models/cuda/conv.cuh - a tile's products on tensor cores, alone (op 7) or with what is
 * before and after them in one kernel (ops 6, 7, 8; spec performance 5.3).
 *
 * A block is one tile and one order m. The tile's features, times the weights of the
 * cell's two nodes, wait in shared memory as words (mma.cuh): [node][row], plus, then
 * minus. The tables come in stages of MMA_WORDS words of up to TILE_COLS columns, by
 * asynchronous copies that are TILE_STAGES - 1 stages ahead. Warps: 2 by rows, 4 by
 * columns, eight columns at a time in turn. No sum depends on how rows share tiles. */
#ifndef NN_CUDA_CONV_CUH
#define NN_CUDA_CONV_CUH

enum { TILE_THREADS = 256, TILE_COLS = 192, TILE_STAGES = 3, TILE_FRAGS = TILE_COLS / 32 };

/* How the precisions keep tables: numbers in a word, products of eight words a stage. */
template <int P> struct tile_kind {
    enum {
        x3 = P == NN_GPU_BF16X3,
        per = P == NN_GPU_TF32 || x3 ? 1 : 2,
        steps = x3 ? 1 : 2,
        resident = per == 2 ? 2 : 1 /* blocks on a multiprocessor, by their shared memory */
    };
};

typedef struct tile_memory { /* in words */
    int wide, ld, side;      /* a sign's words, a row's, one node's             */
    uint32_t *x, *stage;
} tile_memory;

static __host__ __device__ __forceinline__ int tile_words(int n_k, int per)
{
    return ((n_k + per - 1) / per + 7) / 8 * 8;
}

static __host__ __device__ __forceinline__ int tile_stage(void)
{
    return TILE_COLS * MMA_LD;
}

template <int P> static __host__ __device__ __forceinline__ tile_memory tile_memory_of(char *bytes, int n_k, int m)
{
    tile_memory t;

    t.wide = tile_words(n_k, mma_kind<P>::per);
    t.ld = (m ? 2 : 1) * t.wide + 4;
    t.side = NN_GPU_TILE * t.ld * (1 + mma_kind<P>::x3);
    t.stage = (uint32_t *)bytes;
    t.x = t.stage + TILE_STAGES * tile_stage();
    return t;
}

/* ---- the features ------------------------------------------------------------------- */

/* Number k of a sign of row `row`, for node j of the cell. */
template <int P>
static __device__ __forceinline__ void tile_put(const tile_memory &t, int j, int row, int sign, int k, float v)
{
    uint32_t *to = t.x + j * t.side + row * t.ld;
    int at = sign * t.wide * mma_kind<P>::per + k;
    uint32_t w = word_of<P>(v, 0);

    if (mma_kind<P>::per == 1) {
        to[at] = w;
        return;
    }
    ((uint16_t *)to)[at] = (uint16_t)w;
    if (mma_kind<P>::x3)
        ((uint16_t *)(to + NN_GPU_TILE * t.ld))[at] = (uint16_t)word_rest(v, 0, w);
}

/* The same for both nodes; rows and filling that nobody writes must be zero before. */
template <int P>
static __device__ __forceinline__ void tile_put_both(const nn_gpu_so2 &s, const so2_part &p, const tile_memory &t,
                                                     int row, int sign, int k, float v)
{
    tile_put<P>(t, 0, row, sign, k, v * phi_of(s, p.first + row, 0));
    if (p.tile->node[1] >= 0)
        tile_put<P>(t, 1, row, sign, k, v * phi_of(s, p.first + row, 1));
}

static __device__ __forceinline__ void tile_zero(const so2_part &p, const tile_memory &t)
{
    for (int i = (int)threadIdx.x; i < (p.tile->node[1] < 0 ? 1 : 2) * t.side; i += TILE_THREADS)
        t.x[i] = 0;
    __syncthreads();
}

/* From rows that are in their frames. */
template <int P>
static __device__ __forceinline__ void tile_rows(const nn_gpu_so2 &s, const so2_part &p, const tile_memory &t)
{
    int signs = p.m ? 2 : 1, wide = signs * p.n_k;

UNROLL_BY(4)
    for (int i = (int)threadIdx.x; i < p.rows * wide; i += TILE_THREADS) {
        int row = i / wide, k = i % wide;
        float v = s.x[(int64_t)(p.first + row) * s.x_size + s.x_at[p.m] + k];
        tile_put_both<P>(s, p, t, row, k >= p.n_k, k < p.n_k ? k : k - p.n_k, v);
    }
}

/* Components +m and -m of channel k of degree L in the frame of a row. */
template <int L>
static __device__ __forceinline__ void turn_order(const nn_gpu_turn &t, const edge_row &r, int m, int k, float v[2])
{
    const int n = 2 * L + 1;
    const float *x = t.x + (int64_t)r.node * t.nodes.size + t.nodes.at[L] + k, *d = r.d + (L ? frame_at(L) : 0);
    int ch = t.edges.ch[L];

    v[0] = v[1] = 0;
    if (m > L || k >= ch)
        return;
UNROLL
    for (int i = 0; i < n; i++) {
        float q = x[i * ch];
        v[0] += (L ? d[i * n + L + m] : 1.0f) * q;
        if (L && m)
            v[1] += d[i * n + L - m] * q;
    }
}

typedef struct turned { /* by degree: plus, minus */
    float v[NN_GPU_DEGREES][2];
} turned;

static __device__ __forceinline__ void turn_all(const nn_gpu_turn &t, const edge_row &r, int m, int k, turned *o)
{
    turn_order<0>(t, r, m, k, o->v[0]);
    turn_order<1>(t, r, m, k, o->v[1]);
    turn_order<2>(t, r, m, k, o->v[2]);
    turn_order<3>(t, r, m, k, o->v[3]);
    turn_order<4>(t, r, m, k, o->v[4]);
}

/* From the features of the rows' nodes: a warp is a row, lanes along channels. */
template <int P>
static __device__ __forceinline__ void tile_turn(const nn_gpu_conv &c, const so2_part &p, const tile_memory &t)
{
    for (int row = (int)threadIdx.x / 32; row < p.rows; row += TILE_THREADS / 32) {
        edge_row r = row_open(c.x, p.first + row);
        for (int k = (int)threadIdx.x % 32; k < c.channels; k += 32) {
            turned o;
            turn_all(c.x, r, p.m, k, &o);
UNROLL
            for (int l = 0; l < NN_GPU_DEGREES; l++) {
                if (l < p.m || k >= c.x.edges.ch[l])
                    continue;
                int at = c.x.edges.at[l][l + p.m] - c.x.edges.order[p.m] + k;
                tile_put_both<P>(c.s, p, t, row, 0, at, o.v[l][0]);
                if (p.m)
                    tile_put_both<P>(c.s, p, t, row, 1, at, o.v[l][1]);
            }
        }
    }
}

/* ---- the products ---------------------------------------------------------------------- */

/* Begins to copy stage `at`: columns col0 .. of matrix a, and of b behind TILE_COLS / 2. */
template <int P>
static __device__ __forceinline__ void stage_begin(const nn_gpu_so2 &s, const so2_part &p, const tile_memory &t,
                                                   int col0, int at, int stages)
{
    const int per = tile_kind<P>::per;
    const char *table = (const char *)s.table + table_of(s, p, at / stages) * (4 / per);
    uint32_t *to = t.stage + at % TILE_STAGES * tile_stage();
    int half = p.m ? TILE_COLS / 2 : TILE_COLS, k0 = at % stages * 8 * tile_kind<P>::steps * mma_kind<P>::per;

    for (int i = (int)threadIdx.x; i < TILE_COLS * MMA_WORDS / 4; i += TILE_THREADS) {
        int row = i / (MMA_WORDS / 4), k = k0 + i % (MMA_WORDS / 4) * 4 * per, col = col0 + row % half;
        bool here = col < p.n_n && k < p.ld;
        int from = row / half * p.b + col * p.ld + k;
        if (col < padded(p.n_n))
            copy_async(to + row * MMA_LD + i % (MMA_WORDS / 4) * 4, table + (here ? (int64_t)from * (4 / per) : 0), here ? 16 : 0);
    }
}

/* Columns row .. row+7 of a stage; the second is what bf16 leaves of the first. */
template <int P>
static __device__ __forceinline__ void stage_frag(uint32_t f[1 + tile_kind<P>::x3][2], const uint32_t *stage, int row,
                                                  int word)
{
    if constexpr (!tile_kind<P>::x3) {
        frag_b(f[0], stage, MMA_LD, row, word);
    } else {
        const float *p = (const float *)(stage + (row + (int)threadIdx.x % 32 / 4) * MMA_LD) + 2 * (threadIdx.x % 4);
UNROLL
        for (int i = 0; i < 2; i++, p += 8) {
            f[0][i] = bf16_pair(p[0], p[1]);
            f[1][i] = word_rest(p[0], p[1], f[0][i]);
        }
    }
}

template <int P>
static __device__ __forceinline__ void tile_mma(float c[4], const uint32_t a[1 + tile_kind<P>::x3][4],
                                                const uint32_t b[1 + tile_kind<P>::x3][2])
{
    const int x3 = tile_kind<P>::x3;

    if (x3) {
        mma_step<P>(c, a[x3], b[0]);
        mma_step<P>(c, a[0], b[x3]);
    }
    mma_step<P>(c, a[0], b[0]);
}

/* Eight words along k. acc: column groups of plus, then, for m > 0, of minus. */
template <int P, bool PAIR>
static __device__ __forceinline__ void tile_step(float acc[TILE_FRAGS][2][4], const so2_part &p, const tile_memory &t,
                                                 const uint32_t *x, const uint32_t *stage, int word, int left, float sign)
{
    const int x3 = tile_kind<P>::x3, frags = PAIR ? TILE_FRAGS / 2 : TILE_FRAGS, words = 1 + x3;
    int warp = (int)threadIdx.x / 32, row = warp / 4 * 32;
    uint32_t a[2][2][1 + x3][4], b[1 + x3][2], plus[1 + x3][2], minus[1 + x3][2];

UNROLL
    for (int q = 0; q < 4 * words; q++) { /* sign, row, word or what it left */
        const uint32_t *side = x + q / 4 * NN_GPU_TILE * t.ld + q / 2 % 2 * t.wide;
        if (PAIR || q / 2 % 2 == 0)
            frag_a(a[q / 2 % 2][q % 2][q / 4], side, t.ld, row + q % 2 * 16, 0);
    }
UNROLL
    for (int f = 0; f < frags; f++) {
        int col = (f * 4 + warp % 4) * 8;
        if (col >= left)
            break;
        stage_frag<P>(b, stage, col, word);
        if (PAIR)
            stage_frag<P>(plus, stage, TILE_COLS / 2 + col, word);
UNROLL
        for (int q = 0; q < 2 * words; q++) {
            uint32_t v = PAIR ? plus[q / 2][q % 2] : 0, w = word_negative<P>(v);
            plus[q / 2][q % 2] = sign > 0 ? w : v;
            minus[q / 2][q % 2] = sign > 0 ? v : w;
        }
UNROLL
        for (int i = 0; i < 2; i++) {
            if (row + 16 * i >= p.rows)
                break;
            tile_mma<P>(acc[f][i], a[0][i], b);
            if (PAIR) {
                tile_mma<P>(acc[f][i], a[1][i], plus);
                tile_mma<P>(acc[TILE_FRAGS / 2 + f][i], a[1][i], b);
                tile_mma<P>(acc[TILE_FRAGS / 2 + f][i], a[0][i], minus);
            }
        }
    }
}

template <bool PAIR>
static __device__ __forceinline__ void tile_store(const nn_gpu_so2 &s, const so2_part &p, int col0,
                                                  float acc[TILE_FRAGS][2][4])
{
    const int frags = PAIR ? TILE_FRAGS / 2 : TILE_FRAGS;
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;

UNROLL
    for (int q = 0; q < TILE_FRAGS * 8; q++) {
        int f = q / 8, row = warp / 4 * 32 + q / 4 % 2 * 16 + q / 2 % 2 * 8 + lane / 4;
        int col = col0 + (f % frags * 4 + warp % 4) * 8 + 2 * (lane % 4) + q % 2;
        if (row < p.rows && col < p.n_n)
            s.y[(int64_t)(p.first + row) * s.y_size + s.y_at[p.m] + (f >= frags ? p.n_n : 0) + col]
                = acc[f][q / 4 % 2][q % 4];
    }
}

template <int P, bool PAIR>
static __device__ __forceinline__ void tile_product(const nn_gpu_so2 &s, const so2_part &p, const tile_memory &t)
{
    const int steps = tile_kind<P>::steps;
    int stages = (t.wide / 8 + steps - 1) / steps, all = p.tile->node[1] < 0 ? stages : 2 * stages;

    for (int col0 = 0; col0 < p.n_n; col0 += PAIR ? TILE_COLS / 2 : TILE_COLS) {
        float acc[TILE_FRAGS][2][4] = { { { 0 } } };
        __syncthreads();
        for (int at = 0; at < TILE_STAGES - 1; at++) {
            if (at < all)
                stage_begin<P>(s, p, t, col0, at, stages);
            copy_close();
        }
        for (int at = 0; at < all; at++) {
            copy_wait<TILE_STAGES - 2>();
            __syncthreads();
            if (at + TILE_STAGES - 1 < all)
                stage_begin<P>(s, p, t, col0, at + TILE_STAGES - 1, stages);
            copy_close();
UNROLL_BY(1)
            for (int step = 0; step < steps; step++) {
                int word = (at % stages * steps + step) * 8;
                if (word < t.wide)
                    tile_step<P, PAIR>(acc, p, t, t.x + at / stages * t.side + word,
                                       t.stage + at % TILE_STAGES * tile_stage(), 8 * step, p.n_n - col0, s.sign);
            }
        }
        tile_store<PAIR>(s, p, col0, acc);
    }
}

template <int P>
static __device__ __forceinline__ so2_part tile_open(const nn_gpu_so2 &s, tile_memory *t)
{
    SHARED_BYTES(bytes);
    /* order 1 has most to do, where there is one: it begins */
    int m = s.n_orders > 1 && blockIdx.y < 2 ? 1 - (int)blockIdx.y : (int)blockIdx.y;
    so2_part p = {};

    p.tile = s.tile + blockIdx.x;
    p.first = p.tile->first;
    p.rows = p.tile->n;
    part_order(s, &p, m, true);
    *t = tile_memory_of<P>(bytes, p.n_k, m);
    tile_zero(p, *t);
    return p;
}

template <int P>
__global__ void __launch_bounds__(TILE_THREADS, tile_kind<P>::resident) so2_mma(const __grid_constant__ nn_gpu_so2 s)
{
    tile_memory t;
    so2_part p = tile_open<P>(s, &t);

    tile_rows<P>(s, p, t);
    if (p.m)
        tile_product<P, true>(s, p, t);
    else
        tile_product<P, false>(s, p, t);
}

/* ---- with its surroundings --------------------------------------------------------------- */

/* This order's part of the logits: a warp is a row. part: [warp][channels] */
static __device__ __forceinline__ void tile_logits(const nn_gpu_conv &c, const so2_part &p, float *part)
{
    int lane = (int)threadIdx.x % 32, channels = c.key_channels, width = channels / c.q.heads;

    part += (int)threadIdx.x / 32 * channels;
    for (int row = p.first + (int)threadIdx.x / 32; row < p.first + p.rows; row += TILE_THREADS / 32) {
        edge_row r = row_open(c.q, row);
        for (int k = lane; k < channels; k += 32) {
            float sum = 0;
            turned o;
            turn_all(c.q, r, p.m, k, &o);
UNROLL
            for (int l = 0; l < NN_GPU_DEGREES; l++) {
                if (l < p.m || k >= c.q.edges.ch[l])
                    continue;
                const float *y = c.s.y + (int64_t)row * c.s.y_size + k;
                sum += o.v[l][0] * y[c.q.edges.at[l][l + p.m]];
                if (p.m)
                    sum += o.v[l][1] * y[c.q.edges.at[l][l - p.m]];
            }
            part[k] = sum;
        }
        __syncwarp();
        for (int h = lane; h < c.q.heads; h += 32) {
            float sum = 0;
            for (int k = h * width; k < (h + 1) * width; k++)
                sum += part[k];
            c.logit[((int64_t)p.m * c.q.n_rows + row) * c.q.heads + h] = c.scale * sum;
        }
        __syncwarp();
    }
}

template <int P>
__global__ void __launch_bounds__(TILE_THREADS, tile_kind<P>::resident) tile_conv(const __grid_constant__ nn_gpu_conv c)
{
    tile_memory t;
    so2_part p = tile_open<P>(c.s, &t);

    tile_turn<P>(c, p, t);
    if (p.m)
        tile_product<P, true>(c.s, p, t);
    else
        tile_product<P, false>(c.s, p, t);
    if (!c.logit)
        return;
    __syncthreads();
    tile_logits(c, p, (float *)t.stage);
}

#endif
