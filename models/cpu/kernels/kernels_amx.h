/* models/cpu/kernels/kernels_amx.h - bf16 products on AMX tiles; part of kernels_body.h.
 *
 * Tiles: 0..3 are 32 x 32 numbers of C, 4 and 5 of A (16 rows each, 32 inputs),
 * 6 and 7 of B. All tiles are 16 rows of 64 bytes; a ragged edge goes through a
 * buffer. Intel 64 Architectures Software Developer's Manual, TDPBF16PS. */
#include <immintrin.h>

typedef struct tile_config {
    uint8_t palette, start_row, zero[14];
    uint16_t bytes[16];
    uint8_t rows[16];
} tile_config;

/* Once a thread; looked up each time because a forked child starts without. */
static void tiles_ready(void)
{
    tile_config c = { 0 };

    _tile_storeconfig(&c);
    if (c.palette)
        return;
    c.palette = 1;
    for (int i = 0; i < 8; i++) {
        c.bytes[i] = 64;
        c.rows[i] = 16;
    }
    _tile_loadconfig(&c);
}

/* A block of C and its factors; _step: bytes from row to row; _tile: numbers from the
 * first tile of rows to the second; _panel: from the first tile of outputs. */
typedef struct amx_block {
    const nn_bf16 *a, *b;
    float *c;
    size_t a_step, a_tile, b_panel, c_step, c_tile, c_panel;
} amx_block;

static inline __attribute__((always_inline)) void amx_open(const amx_block *k, bool add, const bool rows, const bool outs)
{
    if (!add) {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
        return;
    }
    _tile_loadd(0, k->c, k->c_step);
    if (outs)
        _tile_loadd(1, k->c + k->c_panel, k->c_step);
    if (rows)
        _tile_loadd(2, k->c + k->c_tile, k->c_step);
    if (rows && outs)
        _tile_loadd(3, k->c + k->c_tile + k->c_panel, k->c_step);
}

static inline __attribute__((always_inline)) void amx_close(const amx_block *k, const bool rows, const bool outs)
{
    _tile_stored(0, k->c, k->c_step);
    if (outs)
        _tile_stored(1, k->c + k->c_panel, k->c_step);
    if (rows)
        _tile_stored(2, k->c + k->c_tile, k->c_step);
    if (rows && outs)
        _tile_stored(3, k->c + k->c_tile + k->c_panel, k->c_step);
}

static inline __attribute__((always_inline)) void amx_load_a(const amx_block *k, const nn_bf16 *a, const bool rows)
{
    _tile_loadd(4, a, k->a_step);
    if (rows)
        _tile_loadd(5, a + k->a_tile, k->a_step);
}

static inline __attribute__((always_inline)) void amx_load_b(const amx_block *k, const nn_bf16 *b, const bool outs)
{
    _tile_loadd(6, b, 64);
    if (outs)
        _tile_loadd(7, b + k->b_panel, 64);
}

static inline __attribute__((always_inline)) void amx_multiply(const bool rows, const bool outs)
{
    _tile_dpbf16ps(0, 4, 6);
    if (outs)
        _tile_dpbf16ps(1, 4, 7);
    if (rows)
        _tile_dpbf16ps(2, 5, 6);
    if (rows && outs)
        _tile_dpbf16ps(3, 5, 7);
}

static inline __attribute__((always_inline)) void amx_run(const amx_block *k, const nn_bf16_product *g, bool add, const bool rows,
                                                          const bool outs)
{
    const nn_bf16 *a = k->a, *b = k->b, *end = a + g->a.n;

    amx_open(k, add, rows, outs);
    if (g->b.parts == 1)
        for (; a < end; a += NN_BF16_IN, b += NN_BF16_TILE) {
            amx_load_a(k, a, rows);
            amx_load_b(k, b, outs);
            amx_multiply(rows, outs);
        }
    else
        for (; a < end; a += NN_BF16_IN, b += 2 * NN_BF16_TILE) {
            amx_load_a(k, a, rows);
            amx_load_b(k, b, outs);
            amx_multiply(rows, outs);
            amx_load_a(k, a + g->a.part, rows);
            amx_multiply(rows, outs);
            amx_load_a(k, a, rows);
            amx_load_b(k, b + NN_BF16_TILE, outs);
            amx_multiply(rows, outs);
        }
    amx_close(k, rows, outs);
}

static void amx_choose(const amx_block *k, const nn_bf16_product *g, bool add, bool rows, bool outs)
{
    if (rows && outs)
        amx_run(k, g, add, true, true);
    else if (rows)
        amx_run(k, g, add, true, false);
    else if (outs)
        amx_run(k, g, add, false, true);
    else
        amx_run(k, g, add, false, false);
}

/* Rows that do not fill tiles: C in a buffer, copied row by row. */
static void amx_ragged(amx_block k, const nn_bf16_product *g, int32_t n, bool outs)
{
    _Alignas(64) float buffer[2][32 * 16] = { { 0 } };
    size_t step = k.c_step / sizeof(float), panel = k.c_panel;
    float *c = k.c;

    k.c = buffer[0];
    k.c_step = 64;
    k.c_tile = 16 * 16;
    k.c_panel = 32 * 16;
    for (int j = 0; j <= outs && g->add; j++)
        for (int32_t i = 0; i < n; i++)
            memcpy(buffer[j] + 16 * i, c + (size_t)i * step + (size_t)j * panel, 64);
    amx_choose(&k, g, g->add, n > 16, outs);
    for (int j = 0; j <= outs; j++)
        for (int32_t i = 0; i < n; i++)
            memcpy(c + (size_t)i * step + (size_t)j * panel, buffer[j] + 16 * i, 64);
}

static void bf16_product(const nn_bf16_product *g)
{
    amx_block k = { .a_step = 2 * g->a.ld,
                    .a_tile = 16 * g->a.ld,
                    .b_panel = g->b.panel,
                    .c_step = 4 * g->c_ld,
                    .c_tile = 16 * g->c_ld,
                    .c_panel = g->c_panel };

    tiles_ready();
    for (int32_t out = 0; out < g->n_out; out += 32)
        for (int32_t row = 0; row < g->n_rows; row += 32) {
            int32_t n = g->n_rows - row;
            k.a = g->a.at + (size_t)row * g->a.ld;
            k.b = g->b.at + (size_t)(out / 16) * g->b.panel;
            k.c = g->c + (size_t)row * g->c_ld + (size_t)(out / 16) * g->c_panel;
            if (n >= 32 || n == 16)
                amx_choose(&k, g, g->add, n > 16, out + 16 < g->n_out);
            else
                amx_ragged(k, g, n, out + 16 < g->n_out);
        }
}

/* ---- transposed factors ------------------------------------------------------------ */

/* 16 x 16 numbers of 32 bits, in registers. */
static inline __attribute__((always_inline)) void words_turn(__m512i v[16])
{
    __m512i t[16];

    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
    }
    for (int i = 0; i < 16; i += 4)
        for (int h = 0; h < 2; h++) {
            v[i + 2 * h] = _mm512_unpacklo_epi64(t[i + h], t[i + 2 + h]);
            v[i + 2 * h + 1] = _mm512_unpackhi_epi64(t[i + h], t[i + 2 + h]);
        }
    for (int i = 0; i < 4; i++)
        for (int h = 0; h < 2; h++) {
            t[i + 8 * h] = _mm512_shuffle_i32x4(v[8 * h + i], v[8 * h + 4 + i], 0x88);
            t[i + 8 * h + 4] = _mm512_shuffle_i32x4(v[8 * h + i], v[8 * h + 4 + i], 0xdd);
        }
    for (int i = 0; i < 8; i++) {
        v[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
        v[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
    }
}

static void bf16_turn(const nn_bf16_source *from, const nn_bf16_mat *to)
{
    for (int32_t k = 0; k < from->n; k += 16)
        for (int32_t first = 0; first < from->n_rows; first += NN_BF16_IN) {
            __m512i word[2][16];
            for (int i = 0; i < 16; i++) {
                vu pair[2] = { { 0 } };
                bf16_pair(from, first + 2 * i, k, to->parts, pair);
                word[0][i] = (__m512i)pair[0];
                if (to->parts > 1)
                    word[1][i] = (__m512i)pair[1];
            }
            for (int p = 0; p < to->parts; p++) {
                nn_bf16 *at = to->at + (size_t)p * to->part + (size_t)k * to->ld + first;
                words_turn(word[p]);
                for (int i = 0; i < 16; i++)
                    _mm512_storeu_si512(at + (size_t)i * to->ld, word[p][i]);
            }
        }
}
