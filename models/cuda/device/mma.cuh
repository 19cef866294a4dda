/* models/cuda/device/mma.cuh - products on tensor cores in every precision that they support.
 *
 * Operands are in shared memory as rows of 32-bit words along k; a word has one tf32
 * number or two 16-bit numbers. Counted in words, the fragments of m16n8k8 (tf32) and
 * m16n8k16 (16 bit) are the same, so everything here counts words; a step is eight words.
 * P is an nn_gpu_precision; NN_GPU_BF16X3 has a second set of words with the rounding
 * remainders of the first. */
#ifndef NN_CUDA_MMA_CUH
#define NN_CUDA_MMA_CUH

enum { MMA_WORDS = 16, MMA_LD = MMA_WORDS + 4 }; /* a tile's words along k; padded against bank conflicts */

template <int P> struct mma_kind {
    enum {
        x3 = P == NN_GPU_BF16X3,
        per = P == NN_GPU_TF32 ? 1 : 2, /* numbers in a word */
        k = MMA_WORDS * per             /* numbers in a tile's row */
    };
};

template <int P> static __device__ __forceinline__ uint32_t word_of(float x, float y)
{
    if (P == NN_GPU_TF32)
        return tf32_round(x);
    return P == NN_GPU_FP16 ? fp16_pair(x, y) : bf16_pair(x, y);
}

/* The rounding remainders of word_of, as bf16. */
static __device__ __forceinline__ uint32_t word_rest(float x, float y, uint32_t word)
{
    return bf16_pair(bf16_rest(x, word & 0xffffu), bf16_rest(y, word >> 16));
}

template <int P> static __device__ __forceinline__ uint32_t word_negative(uint32_t word)
{
    return word ^ (P == NN_GPU_TF32 ? 0x80000000u : 0x80008000u);
}

static __device__ __forceinline__ float float_of(uint32_t bits)
{
    union {
        uint32_t u;
        float f;
    } v = { bits };

    return v.f;
}

static __device__ __forceinline__ uint32_t bits_of(float x)
{
    union {
        float f;
        uint32_t u;
    } v = { x };

    return v.u;
}

/* A weight as words_times takes it. */
template <int P> static __device__ __forceinline__ uint32_t weight_of(float x)
{
    return P == NN_GPU_FP16 || P == NN_GPU_BF16 ? word_of<P>(x, x) : bits_of(x);
}

/* word times weight, rounded; with bf16x3 `rest` has the rounding remainders, before and after. */
template <int P> static __device__ __forceinline__ void word_times(uint32_t *word, uint32_t *rest, uint32_t weight)
{
    if constexpr (P == NN_GPU_FP16) {
        *word = fp16_times(*word, weight);
    } else if constexpr (P == NN_GPU_BF16) {
        *word = bf16_times(*word, weight);
    } else if constexpr (P == NN_GPU_TF32) {
        *word = tf32_round(float_of(*word) * float_of(weight));
    } else {
        float low = (float_of(*word << 16) + float_of(*rest << 16)) * float_of(weight);
        float high = (float_of(*word & 0xffff0000u) + float_of(*rest & 0xffff0000u)) * float_of(weight);
        *word = bf16_pair(low, high);
        *rest = word_rest(low, high, *word);
    }
}

template <int P> static __device__ __forceinline__ void mma_step(float c[4], const uint32_t a[4], const uint32_t b[2])
{
    if (P == NN_GPU_TF32)
        mma_tf32(c, a, b);
    else if (P == NN_GPU_FP16)
        mma_fp16(c, a, b);
    else
        mma_bf16(c, a, b);
}

/* The same for words and their rounding remainders; the small products are added first. */
template <int P>
static __device__ __forceinline__ void mma_words_step(float c[4], const uint32_t a[1 + mma_kind<P>::x3][4],
                                                      const uint32_t b[1 + mma_kind<P>::x3][2])
{
    const int x3 = mma_kind<P>::x3;

    if (x3) {
        mma_step<P>(c, a[x3], b[0]);
        mma_step<P>(c, a[0], b[x3]);
    }
    mma_step<P>(c, a[0], b[0]);
}

/* This lane's fragment of rows row .. row+15 and words word .. word+7 of an operand with `ld` words a row. */
static __device__ __forceinline__ void frag_a(uint32_t f[4], const uint32_t *side, int ld, int row, int word)
{
    int lane = (int)threadIdx.x % 32;
    const uint32_t *p = side + (row + lane / 4) * ld + word + lane % 4;

    f[0] = p[0];
    f[1] = p[8 * ld];
    f[2] = p[4];
    f[3] = p[8 * ld + 4];
}

static __device__ __forceinline__ void frag_b(uint32_t f[2], const uint32_t *side, int ld, int row, int word)
{
    int lane = (int)threadIdx.x % 32;
    const uint32_t *p = side + (row + lane / 4) * ld + word + lane % 4;

    f[0] = p[0];
    f[1] = p[4];
}

/* Loads W adjacent numbers: four (aligned) or one. */
template <int W> static __device__ __forceinline__ void some_get(float v[W], const float *p)
{
    if constexpr (W == 4)
        load4(v, p);
    else
        v[0] = *p;
}

template <int n> struct __align__(4 * n) mma_words {
    uint32_t v[n];
};

/* Stores numbers k .. k+W-1 in a row of words, and with bf16x3 their rounding remainders `rest` words further on. */
template <int P, int W>
static __device__ __forceinline__ void words_put(uint32_t *to, int rest, int k, const float v[W])
{
    const int per = mma_kind<P>::per, n = W / per;

    if constexpr (W == 4) {
        mma_words<n> w, left;
UNROLL
        for (int i = 0; i < n; i++) {
            float x = v[i * per], y = v[i * per + per - 1];
            w.v[i] = word_of<P>(x, y);
            left.v[i] = mma_kind<P>::x3 ? word_rest(x, y, w.v[i]) : 0;
        }
        *(mma_words<n> *)(to + k / per) = w;
        if (mma_kind<P>::x3)
            *(mma_words<n> *)(to + rest + k / per) = left;
    } else if constexpr (per == 1) {
        to[k] = word_of<P>(v[0], 0);
    } else {
        uint32_t w = word_of<P>(v[0], 0);
        ((uint16_t *)to)[k] = (uint16_t)w;
        if (mma_kind<P>::x3)
            ((uint16_t *)(to + rest))[k] = (uint16_t)word_rest(v[0], 0, w);
    }
}

/* 64 rows of an operand. */
template <int P> struct mma_side {
    uint32_t word[1 + mma_kind<P>::x3][64][MMA_LD];
};

template <int P> static __device__ __forceinline__ void side_put(mma_side<P> *s, int row, int word, float x, float y)
{
    uint32_t w = word_of<P>(x, y);

    s->word[0][row][word] = w;
    if (mma_kind<P>::x3)
        s->word[mma_kind<P>::x3][row][word] = word_rest(x, y, w);
}

/* acc[2 i + j] += a b, or -= if minus: this warp's 32 x 16 of 64 x 64 numbers; a block has 8 warps. */
template <int P>
static __device__ __forceinline__ void mma_tile(float acc[4][4], const mma_side<P> &a, const mma_side<P> &b,
                                                const bool minus)
{
    const int x3 = mma_kind<P>::x3;
    int warp = (int)threadIdx.x / 32, m0 = warp / 4 * 32, n0 = warp % 4 * 16;

UNROLL
    for (int word = 0; word < MMA_WORDS; word += 8) {
        uint32_t fb[2][1 + x3][2], fa[1 + x3][4];
UNROLL
        for (int j = 0; j < 2 * (1 + x3); j++)
            frag_b(fb[j % 2][j / 2], b.word[j / 2][0], MMA_LD, n0 + 8 * (j % 2), word);
UNROLL
        for (int i = 0; i < 2; i++) {
UNROLL
            for (int low = 0; low < 1 + x3; low++)
                frag_a(fa[low], a.word[low][0], MMA_LD, m0 + 16 * i, word);
UNROLL
            for (int q = 0; q < 4 * (1 + x3) && minus; q++)
                fa[q / 4][q % 4] = word_negative<P>(fa[q / 4][q % 4]);
UNROLL
            for (int j = 0; j < 2; j++) {
                if (x3) {
                    mma_step<P>(acc[2 * i + j], fa[x3], fb[j][0]);
                    mma_step<P>(acc[2 * i + j], fa[0], fb[j][x3]);
                }
                mma_step<P>(acc[2 * i + j], fa[0], fb[j][0]);
            }
        }
    }
}

/* The row, and the first of two columns, of the numbers 2 half and 2 half + 1 of acc[2 i + j]. */
static __device__ __forceinline__ int mma_row(int i, int half)
{
    return (int)threadIdx.x / 128 * 32 + 16 * i + (int)threadIdx.x % 32 / 4 + 8 * half;
}

static __device__ __forceinline__ int mma_col(int j)
{
    return (int)threadIdx.x / 32 % 4 * 16 + 8 * j + 2 * ((int)threadIdx.x % 4);
}

#endif
