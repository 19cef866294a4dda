/* models/cuda/device/tiles.cuh - the products of a tile on tensor cores: op 7 (docs/model.md 8, docs/performance.md 5.3).
 *
 * For the rows of a tile and an order m: y+ = A x+ - sign B x-, y- = A x- + sign B x+, A, B = sum over the cell's nodes of
 * phi * table; m = 0: y = A x.
 *   grid    n_tiles x n_orders: a block is one tile and one order
 *   block   8 warps: 2 by rows (32 rows each), 4 by columns (eight columns each at a time, in turn)
 *   lane    as in fragments of mma m16n8 (mma.cuh)
 *   shared  stages [TILE_STAGES][TILE_COLS][MMA_LD] words of tables | phi [64][2] |
 *           features [node 2][word set][row 64][plus, then minus] words, already multiplied by phi | conv only: tile_heads
 * A stage has MMA_WORDS words along k of up to TILE_COLS columns. Asynchronous copies run TILE_STAGES - 1 stages ahead; the
 * first ones are issued before the features are loaded. The order of a sum does not depend on which rows share a tile.
 *
 * U: tables of hidden units (nn_gpu_so2.unit). Instead of a cell's nodes there are the units of the radial network, with the same
 * tables for all rows, so a tile has any rows. Instead of phi there are the rows' weights [unit][TILE_WEIGHT_LD]; features are
 * there once, without a factor, and fragments are multiplied by the weights of a unit when they are loaded. */
#ifndef NN_CUDA_TILES_CUH
#define NN_CUDA_TILES_CUH

/* HALVES: groups of 16 rows that a warp has; COPIES: maximum number of copies of a thread per stage. */
enum {
    TILE_THREADS = 256,
    TILE_COLS = 192,
    TILE_STAGES = 3,
    TILE_HALVES = NN_GPU_TILE / 16 * 4 / (TILE_THREADS / 32),
    TILE_WEIGHT_LD = NN_GPU_TILE + 1,
    TILE_COPIES = (TILE_COLS * (MMA_WORDS / 4) + TILE_THREADS - 1) / TILE_THREADS
};

/* With 16-bit numbers two blocks fit into the shared memory of a multiprocessor, if it is large (sm_90 and later). */
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ < 900
enum { TILE_RESIDENT = 1 };
#else
enum { TILE_RESIDENT = 2 };
#endif

/* How each precision stores tables: per: numbers in a word; steps: products of eight words in a stage. */
template <int P> struct tile_kind {
    enum {
        x3 = P == NN_GPU_BF16X3,
        per = P == NN_GPU_TF32 || x3 ? 1 : 2,
        steps = x3 ? 1 : 2,
        resident = per == 2 ? TILE_RESIDENT : 1 /* blocks on a multiprocessor, limited by shared memory */
    };
};

/* Flags: channels can be read or written four at a time (16 bytes): of x before the products, of y after them. */
enum { TILE_X4 = 1, TILE_Y4 = 2 };

typedef struct __align__(8) tile_pair {
    float plus, minus;
} tile_pair;

/* For each row of a tile: its nodes for x and for q, and columns +m and -m of D by degree and component (l*l + component).
 * The extra column avoids bank conflicts. */
typedef struct tile_heads {
    int node[2][NN_GPU_TILE];
    tile_pair col[NN_GPU_TILE][NN_GPU_DEGREES * NN_GPU_DEGREES + 1];
} tile_heads;

typedef struct tile_memory {  /* sizes in words */
    int wide, ld, side;       /* words of a sign, of a row, of one radial node   */
    int nodes;                /* 2, or 1 without interpolation; U: hidden units  */
    int apart;                /* distance of their tables, in units of 16 bytes  */
    const char *table;        /* matrix a of the first node                      */
    uint32_t *x, *stage;
    float (*phi)[2];          /* [row]                                           */
    uint32_t *weight;         /* U, in its place: [unit][TILE_WEIGHT_LD] weight_of */
    tile_heads *heads;
} tile_memory;

static __host__ __device__ __forceinline__ int tile_words(int n_k, int per)
{
    return ((n_k + per - 1) / per + 7) / 8 * 8;
}

static __host__ __device__ __forceinline__ int tile_stage(void)
{
    return TILE_COLS * MMA_LD;
}

/* Words of weights, and sides of features. */
template <bool U> static __host__ __device__ __forceinline__ int tile_weights(void)
{
    return U ? NN_GPU_H * TILE_WEIGHT_LD : 2 * NN_GPU_TILE;
}

template <bool U> static __host__ __device__ __forceinline__ int tile_sides(void)
{
    return U ? 1 : 2;
}

template <int P, bool U> static __host__ __device__ __forceinline__ tile_memory tile_memory_of(char *bytes, int n_k, int m)
{
    tile_memory t = {};

    t.wide = tile_words(n_k, mma_kind<P>::per);
    t.ld = (m ? 2 : 1) * t.wide + 4;
    t.side = NN_GPU_TILE * t.ld * (1 + mma_kind<P>::x3);
    t.stage = (uint32_t *)bytes;
    t.weight = t.stage + TILE_STAGES * tile_stage();
    t.phi = (float(*)[2])t.weight;
    t.x = t.weight + tile_weights<U>();
    t.heads = (tile_heads *)(t.x + tile_sides<U>() * t.side);
    return t;
}

/* ---- the features ------------------------------------------------------------------- */

/* Stores numbers k .. k+W-1 of one sign of a row, times phi, for each of the cell's nodes; U: once. */
template <int P, bool U, int W>
static __device__ __forceinline__ void tile_put(const tile_memory &t, int row, int sign, int k, const float v[W])
{
    uint32_t *to = t.x + row * t.ld + sign * t.wide;

    if constexpr (U)
        words_put<P, W>(to, NN_GPU_TILE * t.ld, k, v);
UNROLL
    for (int j = 0; j < (U ? 0 : 2); j++) {
        float u[W];
        if (j >= t.nodes)
            break;
UNROLL
        for (int w = 0; w < W; w++)
            u[w] = v[w] * t.phi[row][j];
        words_put<P, W>(to + j * t.side, NN_GPU_TILE * t.ld, k, u);
    }
}

/* The weights of the rows: phi, or of the hidden units, times phi, which has the envelope; zero for rows that only fill up. */
template <int P, bool U>
static __device__ __forceinline__ void tile_weigh(const nn_gpu_so2 &s, const so2_part &p, const tile_memory &t)
{
    for (int i = (int)threadIdx.x; !U && i < 2 * p.rows; i += TILE_THREADS)
        t.phi[i / 2][i % 2] = s.phi[2 * (int64_t)p.first + i];
    for (int i = (int)threadIdx.x; U && i < NN_GPU_TILE * NN_GPU_H; i += TILE_THREADS) {
        int row = i / NN_GPU_H, unit = i % NN_GPU_H;
        int64_t at = p.first + (row < p.rows ? row : 0);
        float w = s.unit[(int64_t)(s.frame[at] / 2) * NN_GPU_H + unit] * s.phi[2 * at];
        t.weight[unit * TILE_WEIGHT_LD + row] = weight_of<P>(row < p.rows ? w : 0);
    }
}

/* Loads the weights, and zeros the padding of channels and the rows that only fill up fragments; the sums of those
 * rows are never stored. */
template <int P, bool U>
static __device__ __forceinline__ void tile_begin(const nn_gpu_so2 &s, const so2_part &p, const tile_memory &t)
{
    const int fill_to = 16 * TILE_HALVES;
    int fill = t.wide * mma_kind<P>::per - p.n_k;
    int signs = p.m ? 2 : 1;
    int sides = U ? 1 : t.nodes;

    tile_weigh<P, U>(s, p, t);
    for (int i = p.rows * t.ld + (int)threadIdx.x; i < (p.rows + fill_to - 1) / fill_to * fill_to * t.ld; i += TILE_THREADS)
        for (int part = 0; part < sides * (1 + mma_kind<P>::x3); part++)
            t.x[part * NN_GPU_TILE * t.ld + i] = 0;
    for (int i = (int)threadIdx.x; i < p.rows * signs * sides * fill; i += TILE_THREADS) {
        int row = i / fill, sign = row / p.rows % signs;
        float zero[1] = { 0 };
        words_put<P, 1>(t.x + row / p.rows / signs * t.side + row % p.rows * t.ld + sign * t.wide, NN_GPU_TILE * t.ld,
                        p.n_k + i % fill, zero);
    }
}

/* Stores features that are already in the edges' frames. */
template <int P, bool U, int W>
static __device__ __forceinline__ void tile_rows(const nn_gpu_so2 &s, const so2_part &p, const tile_memory &t)
{
    int wide = (p.m ? 2 : 1) * p.n_k / W;
    const float *x = s.x + (int64_t)p.first * s.x_size + s.x_at[p.m];

UNROLL_BY(4)
    for (int i = (int)threadIdx.x; i < p.rows * wide; i += TILE_THREADS) {
        int row = i / wide, k = i % wide * W;
        float v[W];
        some_get<W>(v, x + row * s.x_size + k);
        tile_put<P, U, W>(t, row, k >= p.n_k, k < p.n_k ? k : k - p.n_k, v);
    }
}

/* ---- the products ---------------------------------------------------------------------- */

/* What a thread copies of every stage: 16 bytes of each of some columns, TILE_THREADS / 4 apart, of matrix a from col0 on,
 * then of b. at: bytes from the beginning of the stage in the table. For columns that do not exist column 0 is copied;
 * those sums are never stored. from, word, to: the next stage: its place in the table, along k, in shared memory. */
typedef struct tile_feed {
    int k, at[TILE_COPIES], word, to;
    const char *from;
} tile_feed;

/* The number of turns of a warp; in a turn it has eight columns of a and eight of b, or, for m = 0, 2 x 8 of a. */
static __device__ __forceinline__ int tile_turns(const so2_part &p)
{
    int n = p.m ? 2 * p.n_n : p.n_n;

    return n < TILE_COLS ? (n + 63) / 64 : TILE_COLS / 64;
}

template <int P>
static __device__ __forceinline__ tile_feed feed_of(const so2_part &p, const tile_memory &t, int col0)
{
    const int fours = MMA_WORDS / 4, step = TILE_THREADS / fours;
    int half = p.m ? tile_turns(p) * 32 : TILE_COLS, row = (int)threadIdx.x / fours, word = (int)threadIdx.x % fours * 4;
    tile_feed f;

    f.k = word * tile_kind<P>::per;
    f.word = 0;
    f.to = row * MMA_LD + word;
    f.from = t.table;
UNROLL
    for (int i = 0; i < TILE_COPIES; i++) {
        bool second = row + i * step >= half;
        int col = col0 + row + i * step - (second ? half : 0);
        f.at[i] = ((second ? p.b : 0) + (col < p.n_n ? col * p.ld : 0) + f.k) * (4 / tile_kind<P>::per);
    }
    return f;
}

/* The same place in the next stage of the ring. */
static __device__ __forceinline__ int ring_next(int at)
{
    return at + tile_stage() < TILE_STAGES * tile_stage() ? at + tile_stage() : at - (TILE_STAGES - 1) * tile_stage();
}

template <int P> static __device__ __forceinline__ int tile_stages(const tile_memory &t)
{
    return (t.wide / 8 + tile_kind<P>::steps - 1) / tile_kind<P>::steps;
}

/* Starts the copies of the next stage. Past the end of a row, its beginning is copied: the features are zero there. */
template <int P>
static __device__ __forceinline__ void stage_begin(const so2_part &p, const tile_memory &t, tile_feed *f)
{
    const int step = TILE_THREADS / (MMA_WORDS / 4), words = 8 * tile_kind<P>::steps;
    const int bytes = words * mma_kind<P>::per * (4 / tile_kind<P>::per);
    int k = f->word * mma_kind<P>::per;
    const char *from = f->from - (k + f->k < p.ld ? 0 : (k + f->k) * (4 / tile_kind<P>::per));

UNROLL
    for (int i = 0; i < TILE_COPIES; i++)
        if ((int)threadIdx.x / (MMA_WORDS / 4) + i * step < tile_turns(p) * 64)
            copy_async(t.stage + f->to + i * step * MMA_LD, from + f->at[i]);
    f->to = ring_next(f->to);
    f->word += words;
    f->from += bytes;
    if (f->word >= t.wide) {
        f->word = 0;
        f->from += t.apart * (int64_t)16 - tile_stages<P>(t) * bytes;
    }
}

/* Starts the copies of the first stages. All threads must have passed a barrier since the stages were last used. */
template <int P>
static __device__ __forceinline__ tile_feed stages_begin(const so2_part &p, const tile_memory &t, int col0)
{
    tile_feed f = feed_of<P>(p, t, col0);

UNROLL_BY(1)
    for (int at = 0; at < TILE_STAGES - 1; at++) {
        if (at < t.nodes * tile_stages<P>(t))
            stage_begin<P>(p, t, &f);
        copy_close();
    }
    return f;
}

/* The feed that continues after these first stages. */
template <int P, bool U>
static __device__ __forceinline__ tile_feed feed_ahead(const so2_part &p, const tile_memory &t)
{
    tile_feed f = feed_of<P>(p, t, 0);
    int stages = tile_stages<P>(t), at = TILE_STAGES - 1, node = U && stages ? at / stages : at >= stages;

    f.to += at * tile_stage();
    f.word = (at - node * stages) * 8 * tile_kind<P>::steps;
    f.from += f.word * mma_kind<P>::per * (4 / tile_kind<P>::per) + node * t.apart * (int64_t)16;
    return f;
}

/* The offset in words, from the beginning of a stage, of what this lane reads of eight columns and of eight more that are
 * `apart` columns further on. */
template <int P> static __device__ __forceinline__ int stage_lane(int apart)
{
    int lane = (int)threadIdx.x % 32;

    return tile_kind<P>::x3 ? lane / 4 * MMA_LD + lane % 4 * 2 : (lane % 8 + lane / 16 * apart) * MMA_LD + lane / 8 % 2 * 4;
}

/* The fragments of both groups of eight columns; with bf16x3 the second word has the rounding remainder of the first. */
template <int P>
static __device__ __forceinline__ void stage_frag(uint32_t f[2][1 + tile_kind<P>::x3][2], const uint32_t *stage, int apart)
{
    if constexpr (!tile_kind<P>::x3) {
        uint32_t v[4];
        load_words(v, stage);
UNROLL
        for (int i = 0; i < 4; i++)
            f[i / 2][0][i % 2] = v[i];
    } else {
UNROLL
        for (int i = 0; i < 4; i++) {
            const float *p = (const float *)stage + i / 2 * apart * MMA_LD + i % 2 * 8;
            f[i / 2][0][i % 2] = bf16_pair(p[0], p[1]);
            f[i / 2][1][i % 2] = word_rest(p[0], p[1], f[i / 2][0][i % 2]);
        }
    }
}

/* U: multiplies a fragment by the weights of its rows. */
template <int P>
static __device__ __forceinline__ void frag_times(uint32_t f[1 + tile_kind<P>::x3][4], const uint32_t weight[2])
{
UNROLL
    for (int i = 0; i < 4; i++)
        word_times<P>(&f[0][i], &f[tile_kind<P>::x3][i], weight[i % 2]);
}

/* Multiplies eight words along k. x: this lane's words of one sign; those of the other sign are `other` words further on.
 * PAIR (m > 0): acc[0] += a x - b x_other, acc[1] += a x_other + b x. Otherwise acc[1] belongs to the second group of
 * eight columns. weight (U): of this lane's rows. */
template <int P, bool U, bool PAIR, int TURNS>
static __device__ __forceinline__ void tile_step(float acc[2][TURNS][TILE_HALVES][4], const tile_memory &t,
                                                 const uint32_t *x, int other, const uint32_t *stage,
                                                 const uint32_t weight[TILE_HALVES][2])
{
    const int words = 1 + tile_kind<P>::x3, all = TILE_HALVES * words;
    uint32_t a[2][TILE_HALVES][words][4], minus[TILE_HALVES][words][4], b[TURNS][2][words][2];

UNROLL
    for (int q = 0; q < (PAIR ? 2 : 1) * all; q++)
        load_words(a[q / all][q / words % TILE_HALVES][q % words],
                   x + (q / words % TILE_HALVES * 16 + q % words * NN_GPU_TILE) * t.ld + (q / all ? other : 0));
UNROLL
    for (int q = 0; U && q < (PAIR ? 2 : 1) * TILE_HALVES; q++)
        frag_times<P>(a[q / TILE_HALVES][q % TILE_HALVES], weight[q % TILE_HALVES]);
UNROLL
    for (int j = 0; j < TURNS; j++)
        stage_frag<P>(b[j], stage + (PAIR ? 1 : 2) * j * 32 * MMA_LD, PAIR ? TURNS * 32 : 32);
UNROLL
    for (int q = 0; q < (PAIR ? 4 : 0) * all; q++)
        minus[q / 4 / words][q / 4 % words][q % 4] = word_negative<P>(a[1][q / 4 / words][q / 4 % words][q % 4]);
UNROLL
    for (int q = 0; q < 2 * TURNS * TILE_HALVES; q++) {
        int j = q / 2 / TILE_HALVES, h = q / 2 % TILE_HALVES;
        mma_words_step<P>(acc[q % 2][j][h], a[PAIR ? q % 2 : 0][h], b[j][PAIR ? 0 : q % 2]);
    }
UNROLL
    for (int q = 0; q < (PAIR ? 2 : 0) * TURNS * TILE_HALVES; q++) {
        int j = q / 2 / TILE_HALVES, h = q / 2 % TILE_HALVES;
        mma_words_step<P>(acc[q % 2][j][h], q % 2 ? a[0][h] : minus[h], b[j][1]);
    }
}

template <bool PAIR, int TURNS>
static __device__ __forceinline__ void tile_store(const nn_gpu_so2 &s, const so2_part &p, int col0, bool together,
                                                  const float acc[2][TURNS][TILE_HALVES][4])
{
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, row0 = warp / 4 * (16 * TILE_HALVES) + lane / 4;
    int first = col0 + warp % 4 * 8 + lane % 4 * 2, minus = s.sign > 0;
    float *y = s.y + (int64_t)(p.tile->first + row0) * s.y_size + s.y_at[p.m] + first;

UNROLL
    for (int q = 0; q < 4 * TURNS * TILE_HALVES; q++) {
        int half = q % 2, h = q / 2 % TILE_HALVES, j = q / 2 / TILE_HALVES % TURNS, k = q / 2 / TILE_HALVES / TURNS;
        int row = h * 16 + half * 8, col = PAIR ? j * 32 : (2 * j + k) * 32;
        float *to = y + row * s.y_size + (PAIR && k == minus ? p.n_n : 0) + col;
        tile_pair v = { acc[k][j][h][2 * half], acc[k][j][h][2 * half + 1] };
        if (row0 + row >= p.rows || first + col >= p.n_n)
            continue;
        if (together) {
            *(tile_pair *)to = v;
            continue;
        }
        to[0] = v.plus;
        if (first + col + 1 < p.n_n)
            to[1] = v.minus;
    }
}

/* U: the weights of this lane's rows for a unit. */
static __device__ __forceinline__ void weights_get(uint32_t weight[TILE_HALVES][2], const uint32_t *from)
{
UNROLL
    for (int q = 0; q < 2 * TILE_HALVES; q++)
        weight[q / 2][q % 2] = from[q * 8];
}

/* All columns of a tile. The copies of the first stages have been started. */
template <int P, bool U, bool PAIR, int TURNS>
static __device__ __forceinline__ void tile_product(const nn_gpu_so2 &s, const so2_part &p, const tile_memory &t,
                                                    bool together)
{
    const int steps = tile_kind<P>::steps, apart = PAIR ? TURNS * 32 : 32;
    int lane = (int)threadIdx.x % 32, all = t.nodes * tile_stages<P>(t), warp = (int)threadIdx.x / 32;
    int row = warp / 4 * (16 * TILE_HALVES), flip = PAIR && s.sign < 0 ? t.wide : 0, other = flip ? -t.wide : t.wide;
    const uint32_t *x = t.x + (row + lane % 16) * t.ld + lane / 16 * 4 + flip;
    const uint32_t *stage0 = t.stage + warp % 4 * 8 * MMA_LD + stage_lane<P>(apart);
    const uint32_t *of_row = U ? t.weight + row + lane / 4 : NULL;
    uint32_t weight[TILE_HALVES][2] = { { 0 } };
    tile_feed f = feed_ahead<P, U>(p, t);

    for (int col0 = 0; col0 < p.n_n; col0 += TURNS * (PAIR ? 32 : 64)) {
        float acc[2][TURNS][TILE_HALVES][4] = { { { { 0 } } } };
        int word = 0, stage = 0;
        if (col0) {
            __syncthreads();
            f = stages_begin<P>(p, t, col0);
        }
UNROLL_BY(1)
        for (int left = all; left > 0; left--) {
            copy_wait<TILE_STAGES - 2>();
            __syncthreads();
            if (left >= TILE_STAGES)
                stage_begin<P>(p, t, &f);
            copy_close();
            if (U && !word)
                weights_get(weight, of_row);
UNROLL
            for (int step = 0; step < steps; step++)
                if (row < p.rows && word + 8 * step < t.wide)
                    tile_step<P, U, PAIR, TURNS>(acc, t, x + 8 * step, other, stage0 + stage + 8 * step, weight);
            stage = ring_next(stage);
            x += 8 * steps;
            word += 8 * steps;
            if (word >= t.wide) {
                x += (U ? 0 : t.side) - word;
                of_row += U ? TILE_WEIGHT_LD : 0;
                word = 0;
            }
        }
        x -= U ? 0 : t.nodes * t.side;
        of_row -= U ? t.nodes * TILE_WEIGHT_LD : 0;
        tile_store<PAIR, TURNS>(s, p, col0, together, acc);
    }
}

template <int P, bool U>
static __device__ __forceinline__ void tile_products(const nn_gpu_so2 &s, const so2_part &p, const tile_memory &t,
                                                     bool together)
{
    switch (tile_turns(p) + (p.m ? 3 : 0)) {
    case 1:
        tile_product<P, U, false, 1>(s, p, t, together);
        break;
    case 2:
        tile_product<P, U, false, 2>(s, p, t, together);
        break;
    case 3:
        tile_product<P, U, false, 3>(s, p, t, together);
        break;
    case 4:
        tile_product<P, U, true, 1>(s, p, t, together);
        break;
    case 5:
        tile_product<P, U, true, 2>(s, p, t, together);
        break;
    default:
        tile_product<P, U, true, 3>(s, p, t, together);
    }
}

template <int P, bool U>
static __device__ __forceinline__ so2_part tile_open(const nn_gpu_so2 &s, tile_memory *t)
{
    SHARED_BYTES(bytes);
    /* order 1 has the most work, so its blocks come first */
    int m = s.n_orders > 1 && blockIdx.y < 2 ? 1 - (int)blockIdx.y : (int)blockIdx.y;
    so2_part p = {};

    p.tile = s.tile + blockIdx.x;
    p.first = p.tile->first;
    p.rows = p.tile->n;
    part_order(s, &p, m, true);
    *t = tile_memory_of<P, U>(bytes, p.n_k, m);
    t->nodes = U ? NN_GPU_H : 1 + (p.tile->node[1] >= 0);
    t->table = (const char *)s.table + (U ? s.table_at[m] : table_of(s, p, 0)) * (4 / tile_kind<P>::per);
    t->apart = (int)((U ? s.table_size : table_of(s, p, t->nodes - 1) - table_of(s, p, 0)) * (4 / tile_kind<P>::per) / 16);
    stages_begin<P>(p, *t, 0);
    tile_begin<P, U>(s, p, *t);
    return p;
}

/* Op 7 alone, for features that are in the edges' frames already. Map: the head of this file. P: precision. fours: TILE_X4,
 * TILE_Y4. Equals: the products of conv_forward (models/ref/conv.inc), taken in the edge's frame. */
template <int P, bool U>
__global__ void __launch_bounds__(TILE_THREADS, tile_kind<P>::resident)
    so2_mma(const __grid_constant__ nn_gpu_so2 s, int fours)
{
    tile_memory t;
    so2_part p = tile_open<P, U>(s, &t);

    __syncthreads();
    if (fours & TILE_X4)
        tile_rows<P, U, 4>(s, p, t);
    else
        tile_rows<P, U, 1>(s, p, t);
    tile_products<P, U>(s, p, t, fours & TILE_Y4);
}

#endif
