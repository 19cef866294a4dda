/* SPDX-License-Identifier: Apache-2.0 */
#include "models/cpu/cpu_layout.h"

#include <string.h>

/* One path of a last radial layer, as seen by both bases: the model's frequencies and as many numbers q of the edge frame
 * (nn_frame_coef). */
typedef struct path_view {
    const nn_group *g;
    const nn_path *p;
    const nn_cpu_slab *slab, *back; /* of order 0; the next orders follow */
    const nn_cpu_layout *out;
    int low;
    const double (*coef)[NN_CPU_FREQS];
} path_view;

static path_view path_open(const nn_cpu_conv *c, int first)
{
    path_view v = { .slab = &c->slab[first], .back = &c->back[first], .out = &c->out };

    v.g = &c->def->group[v.slab->group];
    v.p = &v.g->path[v.slab->path];
    v.low = v.p->d_in < v.p->d_out ? v.p->d_in : v.p->d_out;
    v.coef = v.slab->coef;
    return v;
}

/* Row of (o, c, first frequency of the path) in the model's matrix. */
static size_t row_of(const path_view *v, int o, int c)
{
    return (((size_t)o * (size_t)v->g->c_in + (size_t)c) * (size_t)v->g->n_freq + (size_t)v->p->f0) * NN_H;
}

/* Index of hidden unit 0 of a column; unit k is k * NN_PANEL further. */
static size_t column_of(const nn_cpu_slab *s, int in, bool b, int out)
{
    size_t col = ((size_t)in * (size_t)s->n_matrices + b) * (size_t)s->n_out + (size_t)out;

    return s->at + col / NN_PANEL * NN_PANEL_FLOATS + col % NN_PANEL;
}

static void mix(const double *coef, int n, const float *w, float out[NN_H])
{
    for (int k = 0; k < NN_H; k++)
        out[k] = 0;
    for (int f = 0; f < n; f++) {
        float s = (float)coef[f];
        if (s == 0)
            continue;
        for (int k = 0; k < NN_H; k++)
            out[k] += s * w[f * NN_H + k];
    }
}

static void column_write(float *to, float sign, const float mixed[NN_H])
{
    for (int k = 0; k < NN_H; k++)
        to[k * NN_PANEL] = sign * mixed[k];
}

/* Transforms one pair of input and output channels into the forward columns or the backward ones, where matrices b have the
 * other sign. */
static void fold_one(const path_view *v, int o, int i, const float *w, float *fold, float *back)
{
    int to = nn_cpu_out_channel(v->out, v->p->d_out, o);

    for (int q = 0; q < v->p->n_freq; q++) {
        bool b = q > v->low;
        int m = b ? q - v->low : q;
        float mixed[NN_H];
        mix(v->coef[q], v->p->n_freq, w + row_of(v, o, i), mixed);
        if (fold != NULL)
            column_write(fold + column_of(v->slab + m, i, b, to), 1, mixed);
        else
            column_write(back + column_of(v->back + m, to, b, i), b ? -1.0f : 1.0f, mixed);
    }
}

/* Reads the weights twice, each time in the order of the columns that it writes. */
void nn_cpu_fold(const nn_cpu_conv *c, int slab_first, const float *params, const nn_se3 *model, float *fold, float *back)
{
    path_view v = path_open(c, slab_first);
    const float *w = params + model->param[v.g->w2].at;

    for (int i = 0; i < v.g->c_in; i++)
        for (int o = 0; o < v.g->c_out; o++)
            fold_one(&v, o, i, w, fold, NULL);
    for (int o = 0; o < v.g->c_out; o++)
        for (int i = 0; i < v.g->c_in; i++)
            fold_one(&v, o, i, w, NULL, back);
}

static void unfold_one(const path_view *v, int q, const float *d, float *row)
{
    float sign = q > v->low ? -1.0f : 1.0f, unit[NN_H];

    for (int k = 0; k < NN_H; k++)
        unit[k] = d[k * NN_PANEL];
    for (int f = 0; f < v->p->n_freq; f++) {
        float s = sign * (float)v->coef[q][f];
        if (s == 0)
            continue;
        for (int k = 0; k < NN_H; k++)
            row[f * NN_H + k] += s * unit[k];
    }
}

void nn_cpu_unfold(const nn_cpu_conv *c, int slab_first, const float *dback, const nn_se3 *model, float *grad)
{
    path_view v = path_open(c, slab_first);
    float *w = grad + model->param[v.g->w2].at;

    for (int o = 0; o < v.g->c_out; o++)
        for (int i = 0; i < v.g->c_in; i++)
            for (int q = 0; q < v.p->n_freq; q++) {
                const nn_cpu_slab *s = v.back + (q > v.low ? q - v.low : q);
                int to = nn_cpu_out_channel(v.out, v.p->d_out, o);
                unfold_one(&v, q, dback + (column_of(s, to, q > v.low, i) - c->back_at), w + row_of(&v, o, i));
            }
}

/* ---- tables of radial nodes -------------------------------------------------------- */

/* Where W begins for order m, part q of a path, row k and a panel of columns. */
typedef struct table_view {
    const nn_cpu_order *o;
    int32_t part, k0, n0; /* k0, n0: first channel of the degrees */
} table_view;

static table_view table_open(const path_view *v, const nn_cpu_conv *c, int q, bool turned)
{
    int part = q > v->low, m = part ? q - v->low : q, d_in = v->p->d_in, d_out = v->p->d_out;
    int32_t in = c->x.to[d_in][d_in + m] - c->x.to[m][2 * m], out = c->y.to[d_out][d_out + m] - c->y.to[m][2 * m];

    return turned ? (table_view){ &c->turned.order[m], part, out, in } : (table_view){ &c->table.order[m], part, in, out };
}

static size_t table_place(const table_view *t, int32_t k, int32_t n)
{
    size_t rows = (size_t)t->o->n_matrices * (size_t)t->o->k, row = (size_t)t->part * (size_t)t->o->k + (size_t)(t->k0 + k);

    return t->o->at * NN_H + ((size_t)((t->n0 + n) / NN_LANE) * rows + row) * NN_H * NN_LANE;
}

/* The model's channel that is channel `to` of an output of degree d, or -1. */
static int32_t channel_at(const nn_cpu_layout *out, int d, int32_t to)
{
    int32_t keys = out->half[d] ? out->ch[d] / 2 : 0, values = out->ch[d] - keys;

    if (to < values)
        return to;
    to -= out->half[d];
    return keys && to >= 0 && to < keys ? values + to : -1;
}

enum { TILE_FLOATS = NN_LANE * NN_LANE * NN_H };

/* Number q of 16 output and 16 input channels: tile [out][in][NN_H], zero beyond the last channel. */
static void tile_mix(const path_view *v, int q, const float *w, int32_t to, int32_t i0, float *tile)
{
    for (int32_t a = 0; a < NN_LANE; a++) {
        int32_t o = channel_at(v->out, v->p->d_out, to + a);
        for (int32_t i = i0; i < i0 + NN_LANE; i++, tile += NN_H)
            if (o >= 0 && i < v->g->c_in)
                mix(v->coef[q], v->p->n_freq, w + row_of(v, o, i), tile);
            else
                memset(tile, 0, NN_H * sizeof *tile);
    }
}

/* Transposes: to[k][lane] = sign * from[lane][k]; lanes are `step` floats apart. */
static void lanes_turn(const float *from, size_t step, float sign, float *to)
{
    for (int k = 0; k < NN_H; k++)
        for (int lane = 0; lane < NN_LANE; lane++)
            to[k * NN_LANE + lane] = sign * from[(size_t)lane * step + (size_t)k];
}

void nn_cpu_table_fold(const nn_cpu_conv *c, int slab_first, const float *params, const nn_se3 *model, float *w)
{
    path_view v = path_open(c, slab_first);
    const float *from = params + model->param[v.g->w2].at;
    float tile[TILE_FLOATS];

    for (int q = 0; q < v.p->n_freq; q++) {
        table_view t = table_open(&v, c, q, false), b = table_open(&v, c, q, true);
        for (int32_t to = 0; to < c->out.pad[v.p->d_out]; to += NN_LANE)
            for (int32_t i = 0; i < c->in.pad[v.p->d_in]; i += NN_LANE) {
                tile_mix(&v, q, from, to, i, tile);
                for (int32_t k = 0; k < NN_LANE; k++) {
                    lanes_turn(tile + k * NN_H, NN_LANE * NN_H, 1, w + c->table.w_at + table_place(&t, i + k, to));
                    lanes_turn(tile + k * NN_LANE * NN_H, NN_H, b.part ? -1 : 1, w + c->turned.w_at + table_place(&b, to + k, i));
                }
            }
    }
}

/* grad of channel pair (o, i) from the numbers q, each of 32 hidden units and `step` floats apart. */
static void unmix(const path_view *v, const float *d, size_t step, float *row)
{
    for (int f = 0; f < v->p->n_freq; f++)
        for (int q = 0; q < v->p->n_freq; q++) {
            float s = (float)v->coef[q][f];
            if (s == 0)
                continue;
            for (int k = 0; k < NN_H; k++)
                row[f * NN_H + k] += s * d[(size_t)q * step + (size_t)k];
        }
}

void nn_cpu_table_unfold(const nn_cpu_conv *c, int slab_first, const float *dw, const nn_se3 *model, float *grad)
{
    path_view v = path_open(c, slab_first);
    float *to = grad + model->param[v.g->w2].at, d[NN_CPU_FREQS][NN_LANE][NN_H];

    for (int32_t n = 0; n < c->out.pad[v.p->d_out]; n += NN_LANE)
        for (int32_t i = 0; i < v.g->c_in; i++) {
            for (int q = 0; q < v.p->n_freq; q++) {
                table_view t = table_open(&v, c, q, false);
                const float *from = dw + table_place(&t, i, n);
                for (int k = 0; k < NN_H; k++)
                    for (int lane = 0; lane < NN_LANE; lane++)
                        d[q][lane][k] = from[k * NN_LANE + lane];
            }
            for (int lane = 0; lane < NN_LANE; lane++) {
                int32_t o = channel_at(&c->out, v.p->d_out, n + lane);
                if (o >= 0)
                    unmix(&v, d[0][lane], NN_LANE * NN_H, to + row_of(&v, o, i));
            }
        }
}

/* ---- small parameters --------------------------------------------------------------- */

void nn_cpu_small_load(const nn_cpu_plan *p, const float *params, float *small, float *turned)
{
    for (int i = 0; i < p->n_maps; i++) {
        const nn_cpu_map *m = &p->map[i];
        for (int r = 0; r < m->rows; r++)
            for (int c = 0; c < m->cols; c++) {
                float x = params[m->param + (size_t)r * (size_t)m->row_step + (size_t)c * (size_t)m->col_step];
                small[m->at + (size_t)r * (size_t)m->ld + (size_t)c] = x;
                if (m->turned >= 0)
                    turned[(size_t)m->turned + (size_t)c * (size_t)m->turned_ld + (size_t)r] = x;
            }
    }
}

void nn_cpu_small_store(const nn_cpu_plan *p, const float *dsmall, float *grad)
{
    for (int i = 0; i < p->n_maps; i++) {
        const nn_cpu_map *m = &p->map[i];
        for (int r = 0; r < m->rows; r++)
            for (int c = 0; c < m->cols; c++)
                grad[m->param + (size_t)r * (size_t)m->row_step + (size_t)c * (size_t)m->col_step] +=
                    dsmall[m->at + (size_t)r * (size_t)m->ld + (size_t)c];
    }
}
