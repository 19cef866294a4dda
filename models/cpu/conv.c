/* SPDX-License-Identifier: Apache-2.0 */
#include "models/cpu/cpu_engine.h"

#include <string.h>

/* What the threads of one convolution share. */
typedef struct conv_job {
    nn_engine *e;
    const nn_cpu_conv *c;
    const float *x; /* node features                 */
    float *y;       /* forward: output of the edges  */
    bool first;     /* backward: the gradient dx of the input is not needed */
} conv_job;

/* One tile on one thread. */
typedef struct tile {
    const conv_job *job;
    nn_cpu_scratch *s;
    int32_t first, n_pairs;
    nn_cpu_radial radial;
    int32_t active[NN_H];
    float *dsmall, *dback; /* backward: gradients of this piece */
} tile;

static int32_t tile_count(const nn_engine *e) { return (e->prep.n_pairs + NN_TILE - 1) / NN_TILE; }

/* Number of gradient arrays of the backward pass: a power of two that depends only on the batch, at most NN_PIECES. Small
 * batches use few, because adding the arrays takes time. */
static int piece_count(const nn_engine *e)
{
    int n = NN_PIECES;

    while (n > 1 && 2 * n > tile_count(e))
        n /= 2;
    return n;
}

static const float *frame_of(const tile *t, int slot)
{
    const nn_cpu_prep *p = &t->job->e->prep;

    return p->frame + (2 * (size_t)t->first + (size_t)slot) * (size_t)p->frame_size;
}

static int32_t edge_of(const tile *t, int slot) { return t->job->e->prep.slot[2 * (size_t)t->first + (size_t)slot]; }

/* Vectors that edges read: row of[edge] (edge itself if NULL) of from. */
typedef struct edge_rows {
    const float *from;
    const int32_t *of;
    size_t ld;
} edge_rows;

/* Rows are anywhere in memory: prefetch one while the previous one is rotated. */
static void row_prefetch(const edge_rows *r, int32_t edge, size_t n)
{
    const float *p;

    if (edge < 0)
        return;
    p = r->from + (size_t)(r->of != NULL ? r->of[edge] : edge) * r->ld;
    for (size_t k = 0; k < n; k += NN_LANE)
        __builtin_prefetch(p + k);
}

static void tile_gather(const tile *t, const nn_cpu_layout *f, const edge_rows *r, float *to)
{
    for (int i = 0; i < 2 * t->n_pairs; i++) {
        int32_t edge = edge_of(t, i);
        float *out = to + (size_t)i * (size_t)f->size;
        if (i + 1 < 2 * t->n_pairs)
            row_prefetch(r, edge_of(t, i + 1), (size_t)f->size);
        if (edge < 0)
            memset(out, 0, (size_t)f->size * sizeof *out);
        else
            t->job->e->kernels->rotate(frame_of(t, i), f, r->from + (size_t)(r->of != NULL ? r->of[edge] : edge) * r->ld, out,
                                       true);
    }
}

static void tile_scatter(const tile *t, const nn_cpu_layout *f, const float *from, float *to, size_t to_ld)
{
    for (int i = 0; i < 2 * t->n_pairs; i++) {
        int32_t edge = edge_of(t, i);
        if (edge >= 0)
            t->job->e->kernels->rotate(frame_of(t, i), f, from + (size_t)i * (size_t)f->size, to + (size_t)edge * to_ld, false);
    }
}

nn_cpu_hidden nn_cpu_net_of(const nn_engine *e, const nn_cpu_conv *c, int group, float *small)
{
    const nn_cpu_net *n = &c->net[group];
    const nn_group *g = &c->def->group[group];

    return (nn_cpu_hidden){ c->def->edge_scalars, g->ln0_w >= 0, small + n->w0, small + n->b0, small + n->g0,     small + n->c0,
                            small + n->w1,        small + n->b1, small + n->g1, small + n->c1, e->turned + n->wt1 };
}

enum { INPUTS_MAX = 4096 + NN_RADIAL_MAX }; /* of radial networks: features, by nn_se3_check, and functions */

/* What radial networks read: the scalars themselves, or in `buf` what stands for them. */
static const float *inputs_of(const nn_engine *e, const float *s, float buf[INPUTS_MAX])
{
    const nn_radial_conf *radial = &e->plan->model->conf.radial;

    if (radial->basis == NN_BASIS_DISTANCE)
        return s;
    nn_radial_expand(radial, s, e->prep.n_scalars - 1, buf);
    return buf;
}

void nn_cpu_hidden_run(const nn_engine *e, const nn_cpu_hidden *w, const float *s, float *h)
{
    float buf[INPUTS_MAX];

    e->kernels->hidden(w, inputs_of(e, s, buf), h);
}

void nn_cpu_hidden_back(const nn_engine *e, const nn_cpu_hidden *w, const float *s, const float *dh, const nn_cpu_hidden *grad)
{
    float buf[INPUTS_MAX];

    e->kernels->hidden_back(w, inputs_of(e, s, buf), dh, grad);
}

static float envelope_of(const tile *t, int row)
{
    const float *envelope = t->job->e->prep.envelope;

    return envelope != NULL ? envelope[t->first + row] : 1;
}

static const float *scalars_of(const tile *t, int row)
{
    const nn_cpu_prep *p = &t->job->e->prep;

    return p->scalar + (size_t)(t->first + row) * (size_t)p->n_scalars;
}

/* Hidden vectors of the tile's pairs, times their envelope; lists and packs the units that are not zero in all of them (a NaN counts as not zero). */
static void tile_hidden(tile *t, int group)
{
    nn_cpu_hidden w = nn_cpu_net_of(t->job->e, t->job->c, group, t->job->e->small);
    nn_cpu_scratch *s = t->s;
    int32_t n = 0;

    for (int row = 0; row < t->n_pairs; row++)
        nn_cpu_hidden_run(t->job->e, &w, scalars_of(t, row), s->h + row * NN_H);
    for (int k = 0; t->job->e->prep.envelope != NULL && k < t->n_pairs * NN_H; k++)
        s->h[k] *= envelope_of(t, k / NN_H);
    for (int k = 0; k < NN_H; k++) {
        bool zero = true;
        for (int row = 0; row < t->n_pairs; row++)
            zero &= s->h[row * NN_H + k] == 0;
        if (!zero)
            t->active[n++] = k;
    }
    memset(s->packed, 0, sizeof(float) * NN_TILE * NN_H);
    for (int row = 0; row < t->n_pairs; row++)
        for (int q = 0; q < n; q++)
            s->packed[row * NN_H + q] = s->h[row * NN_H + t->active[q]];
    t->radial = (nn_cpu_radial){ .n_rows = t->n_pairs, .n_k = n, .k = t->active, .h = s->packed, .r = s->r, .dh = s->dh };
    if (t->job->e->precision_radial != NN_PREC_FP32)
        nn_cpu_radial16_hidden(t->job->e, s, t->n_pairs);
}

static void radial_run(const tile *t, bool back)
{
    const nn_engine *e = t->job->e;

    if (e->precision_radial != NN_PREC_FP32)
        nn_cpu_radial16_run(e, t->s, &t->radial, back);
    else
        e->kernels->radial(&t->radial);
}

/* Inputs from `first` on of a slab: the block, and the weights and shape of the radial product. */
static nn_cpu_block block_open(tile *t, const nn_cpu_slab *s, int32_t first, const float *w, float *dw)
{
    int32_t n = first + s->step < s->n_in ? s->step : s->n_in - first, per = s->n_matrices * s->n_out;
    size_t at = s->at + (size_t)first * (size_t)per / NN_PANEL * NN_PANEL_FLOATS;

    t->radial.w = w + at;
    t->radial.dw = dw != NULL ? dw + at - t->job->c->back_at : NULL;
    t->radial.n_panels = n * per / NN_PANEL;
    t->radial.r_ld = (size_t)n * (size_t)per;
    return (nn_cpu_block){ .n_in = n,
                           .n_out = s->n_out,
                           .m = s->m,
                           .n_matrices = s->n_matrices,
                           .n_pairs = t->n_pairs,
                           .x = { s->x[0] + first, s->x[1] + first },
                           .y = { s->y[0], s->y[1] },
                           .r = t->s->r,
                           .r_ld = t->radial.r_ld };
}

/* ---- forward ------------------------------------------------------------------------ */

static void tile_slab(tile *t, const nn_cpu_slab *s)
{
    const conv_job *j = t->job;

    for (int32_t first = 0; first < s->n_in; first += s->step) {
        nn_cpu_block b = block_open(t, s, first, j->e->fold, NULL);
        b.x_edges = t->s->x;
        b.y_edges = t->s->y;
        b.x_ld = (size_t)j->c->in.size;
        b.y_ld = (size_t)j->c->out.size;
        radial_run(t, false);
        j->e->kernels->contract(&b);
    }
}

static tile tile_open(const conv_job *j, int worker, int i)
{
    tile t = { .job = j, .s = &j->e->scratch[worker], .first = i * NN_TILE };
    int32_t left = j->e->prep.n_pairs - t.first;

    t.n_pairs = left < NN_TILE ? left : NN_TILE;
    return t;
}

static edge_rows edge_sources(const conv_job *j) { return (edge_rows){ j->x, j->e->batch->src, (size_t)j->c->in.size }; }

static void tile_forward(void *ctx, int worker, int i)
{
    const conv_job *j = ctx;
    tile t = tile_open(j, worker, i);
    edge_rows sources = edge_sources(j);
    int group = -1;

    tile_gather(&t, &j->c->in, &sources, t.s->x);
    memset(t.s->y, 0, 2 * (size_t)t.n_pairs * (size_t)j->c->out.size * sizeof(float));
    for (int k = 0; k < j->c->n_slabs; k++) {
        if (j->c->slab[k].group != group)
            tile_hidden(&t, group = j->c->slab[k].group);
        tile_slab(&t, &j->c->slab[k]);
    }
    tile_scatter(&t, &j->c->out, t.s->y, j->y, (size_t)j->c->out.size);
}

void nn_cpu_exact_run(nn_engine *e, const nn_cpu_conv *c, const float *x, float *y)
{
    conv_job j = { .e = e, .c = c, .x = x, .y = y };

    nn_pool_run(e->pool, tile_count(e), tile_forward, &j);
}

/* ---- backward ------------------------------------------------------------------------- */

static void tile_slab_back(tile *t, const nn_cpu_slab *s)
{
    const conv_job *j = t->job;
    const nn_cpu_kernels *k = j->e->kernels;

    for (int32_t first = 0; first < s->n_in; first += s->step) {
        nn_cpu_block b = block_open(t, s, first, j->e->back, t->dback);
        b.x_edges = t->s->gy;
        b.x_ld = (size_t)j->c->out.size;
        b.y_ld = (size_t)j->c->in.size;
        if (!j->first) {
            b.y_edges = t->s->gx;
            radial_run(t, true);
            k->contract(&b);
        }
        b.y_edges = t->s->x;
        k->outer(&b);
        if (j->e->precision_radial != NN_PREC_FP32) {
            nn_cpu_radial16_back(j->e, t->s, &t->radial, s);
            continue;
        }
        k->radial_dh(&t->radial);
        k->radial_dw(&t->radial);
    }
}

/* The gradient of a hidden vector: lane sums of dh. */
static void hidden_gradient(const tile *t, int row, float d[NN_H])
{
    memset(d, 0, NN_H * sizeof *d);
    if (t->job->e->precision_radial != NN_PREC_FP32)
        memcpy(d, t->s->dh + (size_t)row * NN_H, NN_H * sizeof *d);
    for (int q = 0; q < t->radial.n_k && t->job->e->precision_radial == NN_PREC_FP32; q++) {
        const float *part = t->s->dh + ((size_t)row * NN_H + (size_t)q) * NN_LANE;
        float sum = 0;
        for (int i = 0; i < NN_LANE; i++)
            sum += part[i];
        d[t->active[q]] = sum;
    }
}

static void tile_hidden_back(tile *t, int group)
{
    const conv_job *j = t->job;
    nn_cpu_hidden w = nn_cpu_net_of(j->e, j->c, group, j->e->small), grad = nn_cpu_net_of(j->e, j->c, group, t->dsmall);

    for (int row = 0; row < t->n_pairs; row++) {
        float d[NN_H];
        hidden_gradient(t, row, d);
        for (int k = 0; k < NN_H; k++)
            d[k] *= envelope_of(t, row);
        nn_cpu_hidden_back(j->e, &w, scalars_of(t, row), d, &grad);
    }
}

static void tile_group_back(tile *t, int first)
{
    const nn_cpu_conv *c = t->job->c;
    int group = c->back[first].group;

    tile_hidden(t, group);
    memset(t->s->dh, 0, sizeof(float) * NN_TILE * NN_H * NN_LANE);
    for (int k = first; k < c->n_slabs && c->back[k].group == group; k++)
        tile_slab_back(t, &c->back[k]);
    tile_hidden_back(t, group);
}

static void tile_backward(tile *t)
{
    const conv_job *j = t->job;
    const nn_cpu_conv *c = j->c;
    nn_engine *e = j->e;
    edge_rows sources = edge_sources(j), edges = { e->dedge, NULL, (size_t)e->plan->edge_max };

    tile_gather(t, &c->in, &sources, t->s->x);
    tile_gather(t, &c->out, &edges, t->s->gy);
    memset(t->s->gx, 0, 2 * (size_t)t->n_pairs * (size_t)c->in.size * sizeof(float));
    for (int k = 0; k < c->n_slabs; k++)
        if (k == 0 || c->back[k].group != c->back[k - 1].group)
            tile_group_back(t, k);
    if (!j->first)
        tile_scatter(t, &c->in, t->s->gx, e->dedge, (size_t)e->plan->edge_max);
}

static void piece_backward(void *ctx, int worker, int i)
{
    const conv_job *j = ctx;
    nn_engine *e = j->e;
    int32_t n = tile_count(e), pieces = piece_count(e), end = nn_piece_at(n, i + 1, pieces);
    float *dback = e->dback + (size_t)i * j->c->back_size;

    memset(dback, 0, j->c->back_size * sizeof *dback);
    for (int32_t k = nn_piece_at(n, i, pieces); k < end; k++) {
        tile t = tile_open(j, worker, k);
        t.dsmall = e->dsmall + (size_t)i * e->plan->n_small;
        t.dback = dback;
        tile_backward(&t);
    }
}

/* One path: adds the gradients of all pieces in order, then transforms them back to the model's basis. */
typedef struct unfold_job {
    nn_engine *e;
    const nn_cpu_conv *c;
    float *grad;
} unfold_job;

static void pieces_add(const unfold_job *j, size_t at, size_t end)
{
    enum { STRIDE = 4096 }; /* floats that fit the L1 cache */
    float *d = j->e->dback;

    for (; at < end; at += STRIDE) {
        size_t n = end - at < STRIDE ? end - at : STRIDE;
        for (int i = 1; i < piece_count(j->e); i++)
            j->e->kernels->add(n, d + (size_t)i * j->c->back_size + at, d + at);
    }
}

static void path_unfold(void *ctx, int worker, int first)
{
    const unfold_job *j = ctx;
    const nn_cpu_slab *s = j->c->back;
    int end = first;
    size_t at;

    (void)worker;
    if (s[first].m)
        return;
    while (end + 1 < j->c->n_slabs && s[end + 1].m)
        end++;
    at = s[first].at - j->c->back_at;
    pieces_add(j, at, at + s[end].at + (size_t)s[end].n_panels * NN_PANEL_FLOATS - s[first].at);
    nn_cpu_unfold(j->c, first, j->e->dback, j->e->plan->model, j->grad);
}

void nn_cpu_exact_back(nn_engine *e, const nn_cpu_conv *c, const float *x, bool first, float *grad)
{
    conv_job j = { .e = e, .c = c, .x = x, .first = first };
    unfold_job u = { e, c, grad };

    nn_pool_run(e->pool, piece_count(e), piece_backward, &j);
    nn_op_lap(e->clock, NN_OP_EDGES_BACK);
    nn_pool_run(e->pool, c->n_slabs, path_unfold, &u);
    nn_op_lap(e->clock, NN_OP_WEIGHTS);
}

/* ---- either mode -------------------------------------------------------------------------- */

void nn_cpu_conv_run(nn_engine *e, const nn_cpu_conv *c, const float *x, float *y)
{
    nn_cpu_weights(e, c);
    e->mode->run(e, c, x, y);
}

void nn_cpu_conv_back(nn_engine *e, const nn_cpu_conv *c, const float *x, bool first, float *grad)
{
    nn_cpu_weights(e, c);
    e->mode->back(e, c, x, first, grad);
}
