/* models/cpu/kernels/kernels_bf16.h - factors of bf16 products; part of kernels_body.h. */

typedef uint32_t vu __attribute__((vector_size(NK_W * 4)));
typedef uint32_t vu_any __attribute__((vector_size(NK_W * 4), aligned(2), may_alias));
typedef uint16_t vh __attribute__((vector_size(NK_W * 2)));
typedef uint16_t vh_any __attribute__((vector_size(NK_W * 2), aligned(2), may_alias));

#if defined(__AVX512BF16__)
#include <immintrin.h>

static inline vh bf16_narrow(vf x) { return (vh)_mm512_cvtneps_pbh((__m512)x); }
#else
/* The nearest; sub-normal ones become 0. What AVX512_BF16 has an instruction for. */
static inline vh bf16_narrow(vf x)
{
    vu u = (vu)x, size = u & 0x7fffffffu;
    vu nan = (vu)(size > 0x7f800000u), small = (vu)(size < 0x00800000u);
    vu near = u + 0x7fffu + (u >> 16 & 1u);

    near = (near & ~nan) | ((u | 0x00400000u) & nan);
    return __builtin_convertvector(((near & ~small) | (u & small & 0x80000000u)) >> 16, vh);
}
#endif

static inline vf bf16_widen(vh x) { return (vf)(__builtin_convertvector(x, vu) << 16); }

static inline void bf16_split(vf x, int parts, vh part[2])
{
    part[0] = bf16_narrow(x);
    if (parts > 1)
        part[1] = bf16_narrow(x - bf16_widen(part[0]));
}

static inline const float *source_row(const nn_bf16_source *s, int32_t row)
{
    return s->row != NULL ? s->row[row] : s->at + (size_t)row * s->ld;
}

static inline float source_factor(const nn_bf16_source *s, int32_t row)
{
    return s->scale != NULL ? s->factor * s->scale[row] : s->factor;
}

static void bf16_rows(const nn_bf16_source *from, const nn_bf16_mat *to)
{
    for (int32_t i = 0; i < from->n_rows; i++) {
        const float *x = source_row(from, i);
        nn_bf16 *row = to->at + (size_t)i * to->ld;
        float f = source_factor(from, i);
        for (int32_t k = 0; k < from->n; k += NK_W) {
            vh part[2];
            bf16_split(load(x + k) * f, to->parts, part);
            for (int p = 0; p < to->parts; p++)
                *(vh_any *)(row + (size_t)p * to->part + k) = part[p];
        }
        for (int p = 0; p < to->parts && to->n > from->n; p++)
            memset(row + (size_t)p * to->part + from->n, 0, (size_t)(to->n - from->n) * sizeof *row);
    }
}

/* to = -from. */
static void bf16_minus(const nn_bf16_mat *from, const nn_bf16_mat *to, int32_t n_rows)
{
    for (int p = 0; p < to->parts; p++)
        for (int32_t i = 0; i < n_rows; i++)
            for (int32_t k = 0; k < to->n; k += NK_W) {
                vh x = *(const vh_any *)(from->at + (size_t)p * from->part + (size_t)i * from->ld + k);
                *(vh_any *)(to->at + (size_t)p * to->part + (size_t)i * to->ld + k) = x ^ 0x8000u;
            }
}

/* Columns k .. of rows i, i + 1 side by side, both parts; absent rows are zero. */
static inline void bf16_pair(const nn_bf16_source *from, int32_t i, int32_t k, int parts, vu pair[2])
{
    vh low[2] = { { 0 } }, high[2] = { { 0 } };

    if (i < from->n_rows)
        bf16_split(load(source_row(from, i) + k) * source_factor(from, i), parts, low);
    if (i + 1 < from->n_rows)
        bf16_split(load(source_row(from, i + 1) + k) * source_factor(from, i + 1), parts, high);
    for (int p = 0; p < parts; p++)
        pair[p] = __builtin_convertvector(low[p], vu) | __builtin_convertvector(high[p], vu) << 16;
}

static void bf16_pack(const nn_bf16_source *from, const nn_bf16_panels *to)
{
    for (int32_t j = 0; j < from->n; j += NK_W)
        for (int32_t i = 0; i < (int32_t)nn_bf16_in(from->n_rows); i += 2) {
            nn_bf16 *at = to->at + (size_t)(j / 16) * to->panel + (size_t)(i / NN_BF16_IN * to->parts) * NN_BF16_TILE +
                          16 * (i % NN_BF16_IN) + 2 * (j % 16);
            vu pair[2] = { { 0 } };
            bf16_pair(from, i, j, to->parts, pair);
            for (int p = 0; p < to->parts; p++)
                *(vu_any *)(at + p * NN_BF16_TILE) = pair[p];
        }
}
