/* models/cpu/kernels/kernels_plain16.h - bf16 products where there are no tiles; part of kernels_body.h.
 *
 * A product of two bf16 numbers is exact in float32, so these sums are those of
 * bf16.h to the bit, with or without fused multiply-add. */

typedef uint32_t vu_pair __attribute__((aligned(2), may_alias));

enum { PLAIN_ROWS = NK_W == 16 ? 8 : 4 };

/* c += 32 inputs of n rows times one vector of outputs. */
static inline __attribute__((always_inline)) void plain_block(const nn_bf16 *a, size_t ld, const nn_bf16 *b, vf *c, const int n)
{
    float x[PLAIN_ROWS][NN_BF16_IN];
    vf even[PLAIN_ROWS], odd[PLAIN_ROWS];

    for (int i = 0; i < n; i++) {
        even[i] = odd[i] = (vf){ 0 };
        for (int k = 0; k < NN_BF16_IN; k += NK_W)
            store(&x[i][k], bf16_widen(*(const vh_any *)(a + (size_t)i * ld + k)));
    }
    for (int k = 0; k < NN_BF16_IN; k += 2) {
        vu u = *(const vu_any *)(b + 16 * k);
        vf w0 = (vf)(u << 16), w1 = (vf)(u & 0xffff0000u);
#pragma GCC unroll 8
        for (int i = 0; i < n; i++) {
            even[i] += w0 * x[i][k];
            odd[i] += w1 * x[i][k + 1];
        }
    }
    for (int i = 0; i < n; i++)
        c[i] += even[i] + odd[i];
}

static inline __attribute__((always_inline)) void plain_rows(const nn_bf16_product *g, int32_t row, int32_t out, const int n)
{
    const nn_bf16 *a = g->a.at + (size_t)row * g->a.ld;
    const nn_bf16 *b = g->b.at + (size_t)(out / 16) * g->b.panel + 2 * (out % 16);
    float *to = g->c + (size_t)row * g->c_ld + (size_t)(out / 16) * g->c_panel + out % 16;
    vf c[PLAIN_ROWS];

    for (int i = 0; i < n; i++)
        c[i] = g->add ? load(to + (size_t)i * g->c_ld) : (vf){ 0 };
    for (int32_t k = 0; k < g->a.n; k += NN_BF16_IN, b += g->b.parts * NN_BF16_TILE) {
        plain_block(a + k, g->a.ld, b, c, n);
        if (g->b.parts > 1) {
            plain_block(a + g->a.part + k, g->a.ld, b, c, n);
            plain_block(a + k, g->a.ld, b + NN_BF16_TILE, c, n);
        }
    }
    for (int i = 0; i < n; i++)
        store(to + (size_t)i * g->c_ld, c[i]);
}

static void bf16_product(const nn_bf16_product *g)
{
    int32_t row = 0;

    for (; row + PLAIN_ROWS <= g->n_rows; row += PLAIN_ROWS)
        for (int32_t out = 0; out < g->n_out; out += NK_W)
            plain_rows(g, row, out, PLAIN_ROWS);
    for (; row + 2 <= g->n_rows; row += 2)
        for (int32_t out = 0; out < g->n_out; out += NK_W)
            plain_rows(g, row, out, 2);
    for (; row < g->n_rows; row++)
        for (int32_t out = 0; out < g->n_out; out += NK_W)
            plain_rows(g, row, out, 1);
}

static void bf16_turn(const nn_bf16_source *from, const nn_bf16_mat *to)
{
    for (int32_t i = 0; i < (int32_t)nn_bf16_in(from->n_rows); i += 2)
        for (int32_t k = 0; k < from->n; k += NK_W) {
            vu pair[2] = { { 0 } };
            bf16_pair(from, i, k, to->parts, pair);
            for (int p = 0; p < to->parts; p++)
                for (int j = 0; j < NK_W; j++)
                    *(vu_pair *)(to->at + (size_t)p * to->part + (size_t)(k + j) * to->ld + i) = pair[p][j];
        }
}
