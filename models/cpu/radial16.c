/* SPDX-License-Identifier: Apache-2.0 */
/* The last radial layer of exact mode with bf16 factors (bf16.h). A tile product always takes all 32 hidden units, zeros
 * included. */
#include "models/cpu/cpu_engine.h"

static int parts_of(const nn_engine *e) { return e->precision_radial == NN_PREC_BF16 ? 1 : 2; }

static size_t tile_size(const nn_engine *e) { return (size_t)NN_BF16_TILE * (size_t)parts_of(e); }

/* ---- weights ------------------------------------------------------------------------ */

/* Panels of 32 hidden units and 32 columns, in the order in which the product with hidden vectors reads them. */
static void slab_pack(const nn_engine *e, const nn_cpu_slab *s, const float *w, nn_bf16 *to)
{
    for (int32_t p = 0; p < s->n_panels; p++) {
        size_t at = s->at + (size_t)p * NN_PANEL_FLOATS;
        nn_bf16_source from = { w + at, NN_PANEL, NULL, NULL, 1, NN_H, NN_PANEL };
        e->kernels->bf16.pack(&from, &(nn_bf16_panels){ to + at * (size_t)parts_of(e), tile_size(e), parts_of(e) });
    }
}

/* The same, transposed: the product sums over columns. */
static void slab_pack_turned(const nn_engine *e, const nn_cpu_slab *s)
{
    float t[NN_PANEL * NN_H];

    for (int32_t p = 0; p < s->n_panels; p++) {
        const float *w = e->back + s->at + (size_t)p * NN_PANEL_FLOATS;
        nn_bf16_source from = { t, NN_H, NULL, NULL, 1, NN_PANEL, NN_H };
        nn_bf16_panels to = { e->back_turned16 + s->at * (size_t)parts_of(e) + (size_t)p * tile_size(e),
                              (size_t)s->n_panels * tile_size(e), parts_of(e) };
        for (int k = 0; k < NN_H; k++)
            for (int c = 0; c < NN_PANEL; c++)
                t[c * NN_H + k] = w[k * NN_PANEL + c];
        e->kernels->bf16.pack(&from, &to);
    }
}

void nn_cpu_radial16_load(const nn_engine *e, const nn_cpu_conv *c, int slab)
{
    slab_pack(e, &c->slab[slab], e->fold, e->fold16);
    slab_pack(e, &c->back[slab], e->back, e->back16);
    slab_pack_turned(e, &c->back[slab]);
}

/* ---- products of a tile --------------------------------------------------------------- */

void nn_cpu_radial16_hidden(const nn_engine *e, nn_cpu_scratch *s, int32_t n_rows)
{
    nn_bf16_source h = { s->h, NN_H, NULL, NULL, 1, n_rows, NN_H };
    nn_bf16_mat rows = { s->h16, NN_H, (size_t)NN_TILE * NN_H, NN_H, parts_of(e) };
    nn_bf16_mat turned = { s->h_turned16, NN_TILE, (size_t)NN_TILE * NN_H, n_rows, parts_of(e) };

    e->kernels->bf16.rows(&h, &rows);
    e->kernels->bf16.turn(&h, &turned);
}

void nn_cpu_radial16_run(const nn_engine *e, const nn_cpu_scratch *s, const nn_cpu_radial *g, bool back)
{
    size_t at = (size_t)(g->w - (back ? e->back : e->fold)) * (size_t)parts_of(e);
    nn_bf16_product p = { .a = { s->h16, NN_H, (size_t)NN_TILE * NN_H, NN_H, parts_of(e) },
                          .b = { (back ? e->back16 : e->fold16) + at, tile_size(e), parts_of(e) },
                          .n_rows = g->n_rows,
                          .n_out = g->n_panels * NN_PANEL,
                          .c = g->r,
                          .c_ld = g->r_ld,
                          .c_panel = 16 };

    e->kernels->bf16.product(&p);
}

/* dh += R W^T */
static void radial16_dh(const nn_engine *e, const nn_cpu_scratch *s, const nn_cpu_radial *g, const nn_cpu_slab *slab)
{
    int32_t cols = g->n_panels * NN_PANEL;
    size_t at = (size_t)(g->w - e->back) - slab->at;
    nn_bf16_source r = { g->r, g->r_ld, NULL, NULL, 1, g->n_rows, cols };
    nn_bf16_mat a = { s->r16, (size_t)cols, (size_t)NN_TILE * (size_t)cols, cols, parts_of(e) };
    nn_bf16_product p = { .a = a,
                          .n_rows = g->n_rows,
                          .n_out = NN_H,
                          .c = s->dh,
                          .c_ld = NN_H,
                          .c_panel = 16,
                          .add = true,
                          .b = { e->back_turned16 + slab->at * (size_t)parts_of(e) + at / NN_PANEL_FLOATS * tile_size(e),
                                 (size_t)slab->n_panels * tile_size(e), parts_of(e) } };

    e->kernels->bf16.rows(&r, &a);
    e->kernels->bf16.product(&p);
}

/* dW += H^T R */
static void radial16_dw(const nn_engine *e, const nn_cpu_scratch *s, const nn_cpu_radial *g)
{
    size_t panel = nn_bf16_packed(g->n_rows, 16, parts_of(e));
    nn_bf16_source r = { g->r, g->r_ld, NULL, NULL, 1, g->n_rows, g->n_panels * NN_PANEL };
    nn_bf16_panels b = { s->r16, panel, parts_of(e) };
    int32_t rows = (int32_t)nn_bf16_in(g->n_rows);

    e->kernels->bf16.pack(&r, &b);
    for (int32_t i = 0; i < g->n_panels; i++, b.at += 2 * panel) {
        nn_bf16_product p = { .a = { s->h_turned16, NN_TILE, (size_t)NN_TILE * NN_H, rows, parts_of(e) },
                              .b = b,
                              .n_rows = NN_H,
                              .n_out = NN_PANEL,
                              .c = g->dw + (size_t)i * NN_PANEL_FLOATS,
                              .c_ld = NN_PANEL,
                              .c_panel = 16,
                              .add = true };
        e->kernels->bf16.product(&p);
    }
}

void nn_cpu_radial16_back(const nn_engine *e, const nn_cpu_scratch *s, const nn_cpu_radial *g, const nn_cpu_slab *slab)
{
    radial16_dh(e, s, g, slab);
    radial16_dw(e, s, g);
}
