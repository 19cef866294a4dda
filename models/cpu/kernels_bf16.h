/* models/cpu/kernels_bf16.h - factors of bf16 products; part of kernels_body.h. */

typedef uint32_t vu __attribute__((vector_size(NK_W * 4)));
typedef uint32_t vu_any __attribute__((vector_size(NK_W * 4), aligned(2), may_alias));
typedef uint16_t vh __attribute__((vector_size(NK_W * 2)));
typedef uint16_t vh_any __attribute__((vector_size(NK_W * 2), aligned(2), may_alias));

/* Bits of the nearest float with 16 zeros at its end; sub-normal ones become 0. */
static inline vu bf16_bits(vf x)
{
    vu u = (vu)x, size = u & 0x7fffffffu;
    vu nan = (vu)(size > 0x7f800000u), small = (vu)(size < 0x00800000u);
    vu near = u + 0x7fffu + (u >> 16 & 1u);

    near = ((near & ~nan) | ((u | 0x00400000u) & nan)) & 0xffff0000u;
    return (near & ~small) | (u & small & 0x80000000u);
}

static inline void bf16_store(nn_bf16 *to, vu bits)
{
    *(vh_any *)to = __builtin_convertvector(bits >> 16, vh);
}

static void bf16_rows(const nn_bf16_mat *to, const float *const *from)
{
    int32_t pad = (int32_t)nn_bf16_in(to->n);

    for (int32_t i = 0; i < to->n_rows; i++) {
        nn_bf16 *row = to->at + (size_t)i * to->ld;
        for (int32_t k = 0; k < to->n; k += NK_W) {
            vf x = load(from[i] + k);
            vu first = bf16_bits(x);
            bf16_store(row + k, first);
            if (to->parts > 1)
                bf16_store(row + to->part + k, bf16_bits(x - (vf)first));
        }
        for (int p = 0; p < to->parts; p++)
            memset(row + (size_t)p * to->part + to->n, 0, (size_t)(pad - to->n) * sizeof *row);
    }
}

/* 16 outputs of inputs first, first + 1 of one part; absent rows are zero. */
static inline void bf16_pair(nn_bf16 *to, const nn_bf16_mat *from, const nn_bf16 *at, int32_t first)
{
    for (int j = 0; j < NN_BF16_ROWS; j += NK_W) {
        vu u = { 0 };
        if (first < from->n_rows)
            u = __builtin_convertvector(*(const vh_any *)(at + (size_t)first * from->ld + j), vu);
        if (first + 1 < from->n_rows)
            u |= __builtin_convertvector(*(const vh_any *)(at + (size_t)(first + 1) * from->ld + j), vu) << 16;
        *(vu_any *)(to + 2 * j) = u;
    }
}

static void bf16_pack(nn_bf16 *to, const nn_bf16_mat *from)
{
    for (int32_t j = 0; j < from->n; j += NN_BF16_ROWS)
        for (int32_t k = 0; k < from->n_rows; k += NN_BF16_IN)
            for (int p = 0; p < from->parts; p++, to += NN_BF16_TILE)
                for (int i = 0; i < NN_BF16_IN; i += 2)
                    bf16_pair(to + 16 * i, from, from->at + (size_t)p * from->part + j, k + i);
}
