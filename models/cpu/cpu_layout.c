/* SPDX-License-Identifier: Apache-2.0 */
#include "models/cpu/cpu_layout.h"

#include <math.h>

enum { BLOCK_COLUMNS = 512 }; /* columns of R per block: a tile of them stays in the L2 cache */

typedef struct builder {
    nn_cpu_plan *plan;
    const nn_se3 *model;
    pl_arena *mem;
    bool shared, refused;
    size_t fold_max, back_max, table_max; /* shared: floats of the convolutions so far */
} builder;

static void max(int32_t *a, int32_t b) { *a = *a > b ? *a : b; }

static int32_t pad_lane(int32_t n) { return (n + NN_LANE - 1) / NN_LANE * NN_LANE; }

static int low_of(const nn_path *p) { return p->d_in < p->d_out ? p->d_in : p->d_out; }

/* ---- layouts ------------------------------------------------------------------ */

static void layout_close(nn_cpu_layout *f)
{
    for (int d = 0; d < NN_DEGREES; d++) {
        f->at[d] = f->size;
        f->size += (2 * d + 1) * f->pad[d];
        if (f->ch[d])
            f->n_degrees = d + 1;
    }
}

static nn_cpu_layout layout_of(const nn_fiber *f)
{
    nn_cpu_layout out = { 0 };

    for (int d = 0; d < NN_DEGREES; d++) {
        out.ch[d] = f->ch[d];
        out.pad[d] = pad_lane(f->ch[d]);
    }
    layout_close(&out);
    return out;
}

static nn_cpu_layout layout_key_value(const nn_attention *a)
{
    nn_cpu_layout out = { 0 };

    for (int d = 0; d < NN_DEGREES; d++) {
        out.ch[d] = a->value.ch[d] + a->key.ch[d];
        out.half[d] = a->key.ch[d] ? pad_lane(a->value.ch[d]) : 0;
        out.pad[d] = pad_lane(a->value.ch[d]) + pad_lane(a->key.ch[d]);
    }
    layout_close(&out);
    return out;
}

int32_t nn_cpu_out_channel(const nn_cpu_layout *out, int d, int32_t o)
{
    int32_t keys = out->half[d] ? out->ch[d] / 2 : 0, values = out->ch[d] - keys;

    return o < values ? o : out->half[d] + o - values;
}

/* ---- small parameters ----------------------------------------------------------- */

static size_t small_take(builder *b, size_t n)
{
    size_t at = b->plan->n_small;

    b->plan->n_small += (n + NN_LANE - 1) / NN_LANE * NN_LANE;
    return at;
}

/* Adds a vector parameter of n numbers, beginning at its number `skip`. */
static size_t vector_add(builder *b, int32_t param, int32_t skip, int32_t n)
{
    nn_cpu_plan *p = b->plan;
    size_t at = small_take(b, (size_t)pad_lane(n));

    if (param >= 0)
        p->map[p->n_maps++] = (nn_cpu_map){ at, b->model->param[param].at + (size_t)skip, 1, n, pad_lane(n), 0, 1, -1, 0, 0, 0 };
    return at;
}

/* Adds columns skip .. skip+n_in-1 of the [n_out][...] matrix `param`. */
static nn_cpu_linear linear_add(builder *b, int32_t param, int32_t skip, int32_t n_in)
{
    nn_cpu_plan *p = b->plan;
    const nn_param *w = &b->model->param[param];
    nn_cpu_linear l = { n_in, w->dims[0], pad_lane(n_in), pad_lane(w->dims[0]), 0, p->n_turned, 0, 0 };

    l.w = small_take(b, (size_t)n_in * (size_t)l.out_pad);
    p->n_turned += (size_t)l.n_out * (size_t)l.in_pad;
    l.half = p->n_half;
    l.half_turned = l.half + nn_bf16_packed(n_in, l.out_pad, 2);
    p->n_half = l.half_turned + nn_bf16_packed(l.n_out, l.in_pad, 2);
    p->map[p->n_maps++] = (nn_cpu_map){ l.w,        w->at + (size_t)skip, n_in,     l.n_out, l.out_pad,    1,
                                        w->dims[1], (int64_t)l.turned,    l.in_pad, l.half,  l.half_turned };
    return l;
}

static void net_add(builder *b, const nn_group *g, nn_cpu_net *net)
{
    nn_cpu_linear first = linear_add(b, g->w0, 0, b->model->param[g->w0].dims[1]), second;

    net->w0 = first.w;
    net->b0 = vector_add(b, g->b0, 0, NN_H);
    net->g0 = vector_add(b, g->ln0_w, 0, NN_H);
    net->c0 = vector_add(b, g->ln0_b, 0, NN_H);
    second = linear_add(b, g->w1, 0, NN_H);
    net->w1 = second.w;
    net->wt1 = second.turned;
    net->b1 = vector_add(b, g->b1, 0, NN_H);
    net->g1 = vector_add(b, g->ln1_w, 0, NN_H);
    net->c1 = vector_add(b, g->ln1_b, 0, NN_H);
}

/* ---- convolutions ----------------------------------------------------------------- */

static void slab_size(nn_cpu_slab *s, int32_t n_in, int32_t n_out, size_t *at)
{
    int32_t cols = s->n_matrices * n_out, even = cols % NN_PANEL ? 1 : 0;

    s->n_in = (n_in + even) & ~even;
    s->n_out = n_out;
    s->n_panels = s->n_in * cols / NN_PANEL;
    s->step = BLOCK_COLUMNS / cols & ~even;
    if (s->step < 1 + even)
        s->step = 1 + even;
    s->at = *at;
    *at += (size_t)s->n_panels * NN_PANEL_FLOATS;
}

static void slab_places(int32_t at[2], const nn_cpu_layout *f, int d, int m)
{
    at[0] = f->at[d] + (d + m) * f->pad[d];
    at[1] = f->at[d] + (d - m) * f->pad[d];
}

static int32_t slab_columns(const nn_cpu_slab *s) { return (s->step < s->n_in ? s->step : s->n_in) * s->n_matrices * s->n_out; }

static const double (*coef_add(builder *b, const nn_group *g, const nn_path *p))[NN_CPU_FREQS]
{
    double(*coef)[NN_CPU_FREQS] = (double(*)[NN_CPU_FREQS])PL_NEW(b->mem, double, NN_CPU_FREQS *NN_CPU_FREQS);

    b->refused |= (coef == NULL);
    if (coef == NULL)
        return NULL;
    nn_frame_coef(p->d_in, p->d_out, p->j_step, coef);
    if (g->unit_00 && p->d_in == 0 && p->d_out == 0)
        coef[0][0] = 1;
    return (const double(*)[NN_CPU_FREQS])coef;
}

static void slab_add(builder *b, nn_cpu_conv *c, int group, int path, int m)
{
    const nn_group *g = &c->def->group[group];
    const nn_path *p = &g->path[path];
    nn_cpu_slab *f = &c->slab[c->n_slabs], *r = &c->back[c->n_slabs++];
    int32_t wide;

    f->group = r->group = group;
    f->path = r->path = path;
    f->m = r->m = m;
    f->n_matrices = r->n_matrices = m && !c->def->natural ? 2 : 1;
    if (m == 0)
        f->coef = coef_add(b, g, p);
    slab_places(f->x, &c->in, p->d_in, m);
    slab_places(f->y, &c->out, p->d_out, m);
    slab_places(r->x, &c->out, p->d_out, m);
    slab_places(r->y, &c->in, p->d_in, m);
    slab_size(f, g->c_in, c->out.pad[p->d_out], &b->plan->n_fold);
    slab_size(r, c->out.pad[p->d_out], c->in.pad[p->d_in], &b->plan->n_back);
    wide = slab_columns(f) > slab_columns(r) ? slab_columns(f) : slab_columns(r);
    c->r_cols = c->r_cols > wide ? c->r_cols : wide;
}

static int slab_count(const nn_conv *def)
{
    int n = 0;

    for (int g = 0; g < def->n_groups; g++)
        for (int p = 0; p < def->group[g].n_paths; p++)
            n += low_of(&def->group[g].path[p]) + 1;
    return n;
}

static void tables_add(builder *b, nn_cpu_conv *c)
{
    nn_cpu_table *const both[] = { &c->table, &c->turned };

    if (!nn_cpu_table_plan(c, b->mem)) {
        b->refused = true;
        return;
    }
    for (int i = 0; i < 2; i++) {
        both[i]->w_at = b->plan->n_table;
        b->plan->n_table += both[i]->size * NN_H;
        if (both[i]->size > b->plan->table_max)
            b->plan->table_max = both[i]->size;
    }
    max(&b->plan->runs_max, c->table.n_runs);
    max(&b->plan->groups_max, c->def->n_groups);
}

/* All convolutions that share memory begin at the same place. */
static void places_open(builder *b)
{
    if (b->shared)
        b->plan->n_fold = b->plan->n_back = b->plan->n_table = 0;
}

static void largest(size_t *max, size_t n) { *max = *max > n ? *max : n; }

static void places_close(builder *b)
{
    largest(&b->fold_max, b->plan->n_fold);
    largest(&b->back_max, b->plan->n_back);
    largest(&b->table_max, b->plan->n_table);
}

static void conv_add(builder *b, nn_cpu_conv *c, const nn_conv *def, nn_cpu_layout out)
{
    int n = slab_count(def);

    c->def = def;
    c->in = layout_of(&def->in);
    c->out = out;
    c->slab = PL_NEW(b->mem, nn_cpu_slab, n);
    c->back = PL_NEW(b->mem, nn_cpu_slab, n);
    c->net = PL_NEW(b->mem, nn_cpu_net, def->n_groups);
    b->refused |= c->slab == NULL || c->back == NULL || c->net == NULL;
    if (b->refused)
        return;
    places_open(b);
    c->fold_at = b->plan->n_fold;
    c->back_at = b->plan->n_back;
    for (int g = 0; g < def->n_groups; g++) {
        net_add(b, &def->group[g], &c->net[g]);
        for (int p = 0; p < def->group[g].n_paths; p++)
            for (int m = 0; m <= low_of(&def->group[g].path[p]); m++)
                slab_add(b, c, g, p, m);
    }
    c->fold_size = b->plan->n_fold - c->fold_at;
    c->back_size = b->plan->n_back - c->back_at;
    tables_add(b, c);
    places_close(b);
    for (int d = 0; d < NN_DEGREES; d++)
        if (def->self[d] >= 0 && def->in.ch[d] && def->out.ch[d])
            c->self[d] = linear_add(b, def->self[d], 0, def->in.ch[d]);
}

/* ---- modules ------------------------------------------------------------------------ */

static void attention_add(builder *b, nn_cpu_module *m, const nn_attention *a)
{
    int sum = 0;

    m->in = layout_of(&a->in);
    m->out = layout_of(&a->out);
    m->z = layout_of(&a->value);
    m->heads = a->heads;
    conv_add(b, &m->conv, &a->conv, layout_key_value(a));
    for (int d = 0; d < NN_DEGREES && !b->refused; d++) {
        sum += a->key.ch[d] * (2 * d + 1);
        if (a->key.ch[d])
            m->query[d] = linear_add(b, a->query[d], 0, a->in.ch[d]);
        if (!a->out.ch[d])
            continue;
        m->project_z[d] = linear_add(b, a->project[d], 0, a->value.ch[d]);
        if (a->in.ch[d])
            m->project_x[d] = linear_add(b, a->project[d], a->value.ch[d], a->in.ch[d]);
    }
    m->scale = (float)(1 / sqrt((double)sum));
}

static void norm_add(builder *b, nn_cpu_module *m, const nn_norm *n)
{
    int32_t skip = 0;

    m->in = m->out = layout_of(&n->fiber);
    m->gate = n->gate;
    for (int d = 0; d < NN_DEGREES; d++) {
        int from = n->grouped ? 0 : d;
        if (!n->fiber.ch[d])
            continue;
        m->gain[d] = vector_add(b, n->w[from], skip, n->fiber.ch[d]);
        m->bias[d] = vector_add(b, n->b[from], skip, n->fiber.ch[d]);
        skip += n->grouped ? n->fiber.ch[d] : 0;
    }
}

static void module_add(builder *b, nn_cpu_module *m, const nn_module *def)
{
    nn_cpu_plan *p = b->plan;

    m->kind = def->kind;
    if (def->kind == NN_ATTENTION) {
        attention_add(b, m, &def->u.attention);
    } else if (def->kind == NN_NORM) {
        norm_add(b, m, &def->u.norm);
    } else {
        m->out = layout_of(&def->u.conv.out);
        conv_add(b, &m->conv, &def->u.conv, m->out);
        m->in = m->conv.in;
    }
    max(&p->size_max, m->in.size);
    max(&p->size_max, m->out.size);
    max(&p->edge_max, m->conv.in.size);
    max(&p->edge_max, m->conv.out.size);
    max(&p->edge_ld, m->conv.x.ld);
    max(&p->edge_ld, m->conv.y.ld);
    max(&p->r_cols, m->conv.r_cols);
    largest(&p->back_max, m->conv.back_size);
}

static void head_add(builder *b)
{
    const nn_se3 *m = b->model;

    for (int i = 0; i < 2; i++) {
        const nn_param *w = &m->param[m->head[2 * i]];
        b->plan->head[i] = linear_add(b, m->head[2 * i], 0, w->dims[1]);
        b->plan->head_bias[i] = vector_add(b, m->head[2 * i + 1], 0, w->dims[0]);
    }
    if (m->conf.denoise)
        b->plan->noise = vector_add(b, m->denoise, 0, m->conf.channels);
}

pl_code nn_cpu_plan_make(nn_cpu_plan **out, const nn_se3 *model, bool shared, pl_arena *mem, pl_error *err)
{
    builder b = { .plan = PL_NEW(mem, nn_cpu_plan, 1), .model = model, .mem = mem, .shared = shared };
    nn_cpu_plan *p = b.plan;

    if (p != NULL) {
        p->model = model;
        p->module = PL_NEW(mem, nn_cpu_module, model->n_modules);
        p->map = PL_NEW(mem, nn_cpu_map, 6 * model->n_params); /* a grouped norm has 5 maps, every other parameter at most 2 */
    }
    if (p == NULL || p->module == NULL || p->map == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for the plan of a model");
    if (model->head[0] < 0)
        return pl_fail(err, PL_ECONFIG, "the cpu engine computes whole models, not single layers");
    p->l_max = model->conf.degrees - 1;
    p->input = layout_of(&(nn_fiber){ { model->conf.node_features } });
    for (int i = 0; i < model->n_modules && !b.refused; i++, p->n_modules++)
        module_add(&b, &p->module[i], &model->module[i]);
    if (b.refused)
        return pl_fail(err, PL_ENOMEM, "no memory for the plan of a model");
    p->n_fold = b.fold_max;
    p->n_back = b.back_max;
    p->n_table = b.table_max;
    head_add(&b);
    *out = p;
    return PL_OK;
}
