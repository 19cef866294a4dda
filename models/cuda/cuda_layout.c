/* SPDX-License-Identifier: Apache-2.0 */
#include "models/cuda/cuda_layout.h"

#include <math.h>

_Static_assert((int)NN_GPU_DEGREES == (int)NN_DEGREES && (int)NN_GPU_H == (int)NN_RADIAL_HIDDEN &&
                   (int)NN_GPU_FRAME == (int)NN_FRAME_ALL && (int)NN_GPU_FREQS == 2 * (int)NN_MAX_DEGREE + 1,
               "ops.h has its own copies of these");

enum { HEADS_MAX = 255 }; /* a kernel packs four heads of a lane into one word */

typedef struct builder {
    nn_cuda_plan *plan;
    const nn_se3 *model;
    pl_arena *mem;
    size_t split; /* floats of plan->max_split that this module needs */
    bool refused;
} builder;

static void max(int32_t *a, int32_t b) { *a = *a > b ? *a : b; }

/* ---- layouts -------------------------------------------------------------------- */

static nn_gpu_nodes nodes_of(const nn_fiber *f)
{
    nn_gpu_nodes out = { 0 };

    for (int l = 0; l < NN_DEGREES; l++) {
        out.ch[l] = f->ch[l];
        out.at[l] = out.size;
        out.size += (2 * l + 1) * f->ch[l];
        if (f->ch[l])
            out.n_degrees = l + 1;
    }
    return out;
}

/* Ordered by order m, plus before minus, degrees ascending. */
static nn_gpu_edges edges_of(const nn_fiber *f)
{
    nn_gpu_edges out = { 0 };

    for (int m = 0; m < NN_DEGREES; m++) {
        out.order[m] = out.size;
        for (int sign = 0; sign < (m ? 2 : 1); sign++)
            for (int l = m; l < NN_DEGREES; l++) {
                out.at[l][sign ? l - m : l + m] = out.size;
                out.size += f->ch[l];
            }
        out.half[m] = (out.size - out.order[m]) / (m ? 2 : 1);
    }
    for (int l = 0; l < NN_DEGREES; l++) {
        out.ch[l] = f->ch[l];
        if (f->ch[l])
            out.n_degrees = l + 1;
    }
    return out;
}

/* Channels skip[l] .. skip[l]+part[l]-1 of every degree l. */
static nn_gpu_edges edges_part(const nn_gpu_edges *all, const nn_fiber *part, const nn_fiber *skip)
{
    nn_gpu_edges out = *all;

    for (int l = 0; l < NN_DEGREES; l++) {
        out.ch[l] = part->ch[l];
        for (int c = 0; c < 2 * l + 1; c++)
            out.at[l][c] += skip != NULL ? skip->ch[l] : 0;
    }
    return out;
}

/* ---- parameters ------------------------------------------------------------------- */

static int64_t place(const builder *b, int32_t param) { return param < 0 ? 0 : (int64_t)b->model->param[param].at; }

/* Floats for split sums; larger gradients have fewer splits (parts.c). */
static size_t split_floats(int32_t m, int32_t n)
{
    size_t all = (size_t)m * (size_t)n, max = 64 * 64;

    return all < max ? all : max;
}

static nn_cuda_linear linear_of(builder *b, int32_t param, int32_t skip, int32_t n_in)
{
    const nn_param *w = &b->model->param[param];
    nn_cuda_linear l = { n_in, w->dims[0], w->dims[1], (int64_t)w->at + skip };

    b->split += split_floats(l.n_out, l.n_in);
    if (b->split > b->plan->max_split)
        b->plan->max_split = b->split;
    return l;
}

static void net_add(builder *b, const nn_group *g)
{
    b->plan->net[b->plan->n_nets++] = (nn_gpu_net){ .w0 = place(b, g->w0),
                                                    .b0 = place(b, g->b0),
                                                    .g0 = place(b, g->ln0_w),
                                                    .c0 = place(b, g->ln0_b),
                                                    .w1 = place(b, g->w1),
                                                    .b1 = place(b, g->b1),
                                                    .g1 = place(b, g->ln1_w),
                                                    .c1 = place(b, g->ln1_b),
                                                    .ln = g->ln0_w >= 0 };
}

/* ---- convolutions ------------------------------------------------------------------- */

static int64_t padded(int32_t n) { return (n + NN_GPU_PAD - 1) / NN_GPU_PAD * NN_GPU_PAD; }

static void table_shape(nn_cuda_conv *c)
{
    for (int m = 0; m < NN_DEGREES; m++) {
        int32_t n_k = c->in_edges.half[m], n_n = c->out_edges.half[m];
        c->at[m] = c->size;
        c->size += (m ? 2 : 1) * padded(n_k) * padded(n_n);
        c->padded |= n_k % NN_GPU_PAD || n_n % NN_GPU_PAD;
    }
}

/* The columns of one path, order m and matrix (b or a). */
static nn_cuda_region region_of(const nn_cuda_conv *c, const nn_path *p, int m, int b, bool turned)
{
    int64_t n_k = padded(c->in_edges.half[m]), n_n = padded(c->out_edges.half[m]);
    int64_t k = c->in_edges.at[p->d_in][p->d_in + m] - c->in_edges.order[m];
    int64_t n = c->out_edges.at[p->d_out][p->d_out + m] - c->out_edges.order[m];
    int32_t c_in = c->in.ch[p->d_in], c_out = c->out.ch[p->d_out];

    return (nn_cuda_region){ .count = c_in * c_out,
                             .inner = turned ? c_in : c_out,
                             .at = c->at[m] + b * n_k * n_n + (turned ? n * n_k + k : k * n_n + n),
                             .outer_step = turned ? n_k : n_n };
}

static void coef_fill(nn_gpu_path *to, const nn_group *g, const nn_path *p)
{
    double coef[NN_GPU_FREQS][NN_GPU_FREQS];

    nn_frame_coef(p->d_in, p->d_out, p->j_step, coef);
    if (g->unit_00 && p->d_in == 0 && p->d_out == 0)
        coef[0][0] = 1;
    for (int q = 0; q < NN_GPU_FREQS; q++)
        for (int f = 0; f < NN_GPU_FREQS; f++)
            to->coef[q][f] = (float)coef[q][f];
}

static void path_add(builder *b, const nn_cuda_conv *c, const nn_group *g, const nn_path *p)
{
    nn_cuda_plan *plan = b->plan;
    nn_gpu_path *to = &plan->path[plan->n_paths];
    int low = p->d_in < p->d_out ? p->d_in : p->d_out;

    *to = (nn_gpu_path){ .n_freq = p->n_freq,
                         .f0 = p->f0,
                         .group_freqs = g->n_freq,
                         .c_in = g->c_in,
                         .c_out = g->c_out,
                         .w = place(b, g->w2),
                         .size = c->size,
                         .table = { c->fold[0], c->fold[1] } };
    for (int t = 0; t < 2; t++)
        for (int q = 0; q < p->n_freq; q++) {
            nn_cuda_region r = region_of(c, p, q > low ? q - low : q, q > low, t);
            to->at[t][q] = r.at;
            to->step[t][q] = (int32_t)r.outer_step;
        }
    coef_fill(to, g, p);
    for (int i = 0; i < g->c_in; i += NN_GPU_FOLD)
        for (int o = 0; o < g->c_out; o += NN_GPU_FOLD)
            plan->tile[plan->n_tiles++] = (nn_gpu_fold_tile){ plan->n_paths, i, o };
    plan->n_paths++;
}

static void regions_of_path(nn_cuda_conv *c, int32_t net, const nn_path *p)
{
    int low = p->d_in < p->d_out ? p->d_in : p->d_out;

    for (int m = 0; m <= low; m++)
        for (int b = 0; b < (m ? 2 : 1); b++, c->n_regions++)
            for (int t = 0; t < 2; t++) {
                c->region[t][c->n_regions] = region_of(c, p, m, b, t);
                c->region[t][c->n_regions].net = net;
            }
}

/* With one network the whole table is one region. */
static void regions_fill(builder *b, nn_cuda_conv *c)
{
    for (int t = 0; t < 2; t++) {
        c->region[t] = PL_NEW(b->mem, nn_cuda_region, NN_GPU_FREQS * c->n_paths + 1);
        b->refused |= (c->region[t] == NULL);
    }
    if (b->refused)
        return;
    if (c->def->n_groups > 1) {
        for (int g = 0; g < c->def->n_groups; g++)
            for (int p = 0; p < c->def->group[g].n_paths; p++)
                regions_of_path(c, c->net + g, &c->def->group[g].path[p]);
        return;
    }
    c->n_regions = 1;
    c->region[0][0] = c->region[1][0] = (nn_cuda_region){ .net = c->net, .count = (int32_t)c->size, .inner = (int32_t)c->size };
}

static void conv_add(builder *b, nn_cuda_conv *c, const nn_conv *def)
{
    nn_cuda_plan *p = b->plan;

    c->def = def;
    c->in = nodes_of(&def->in);
    c->out = nodes_of(&def->out);
    c->in_edges = edges_of(&def->in);
    c->out_edges = edges_of(&def->out);
    c->net = p->n_nets;
    c->tile = p->n_tiles;
    table_shape(c);
    for (int t = 0; t < 2; t++) {
        c->fold[t] = (int64_t)p->fold_size;
        p->fold_size += (size_t)c->size * NN_GPU_H;
    }
    for (int g = 0; g < def->n_groups; g++) {
        net_add(b, &def->group[g]);
        for (int k = 0; k < def->group[g].n_paths; k++)
            path_add(b, c, &def->group[g], &def->group[g].path[k]);
        c->n_paths += def->group[g].n_paths;
    }
    c->n_tiles = p->n_tiles - c->tile;
    regions_fill(b, c);
    p->max_table = p->max_table > c->size ? p->max_table : c->size;
    for (int d = 0; d < NN_DEGREES; d++)
        if (def->self[d] >= 0 && def->in.ch[d] && def->out.ch[d])
            c->self[d] = linear_of(b, def->self[d], 0, def->in.ch[d]);
    max(&p->max_edge, c->in_edges.size);
    max(&p->max_edge, c->out_edges.size);
}

/* ---- modules ---------------------------------------------------------------------------- */

static void attention_add(builder *b, nn_cuda_module *m, const nn_attention *a)
{
    int sum = 0;

    m->in = nodes_of(&a->in);
    m->out = nodes_of(&a->out);
    m->z = nodes_of(&a->value);
    m->q = nodes_of(&a->key);
    m->heads = a->heads;
    conv_add(b, &m->conv, &a->conv);
    m->conv.value = edges_part(&m->conv.out_edges, &a->value, NULL);
    m->conv.key = edges_part(&m->conv.out_edges, &a->key, &a->value);
    for (int d = 0; d < NN_DEGREES && !b->refused; d++) {
        sum += a->key.ch[d] * (2 * d + 1);
        if (a->key.ch[d])
            m->query[d] = linear_of(b, a->query[d], 0, a->in.ch[d]);
        if (!a->out.ch[d])
            continue;
        m->project_z[d] = linear_of(b, a->project[d], 0, a->value.ch[d]);
        if (a->in.ch[d])
            m->project_x[d] = linear_of(b, a->project[d], a->value.ch[d], a->in.ch[d]);
    }
    m->scale = (float)(1 / sqrt((double)sum));
}

static void norm_add(builder *b, nn_cuda_module *m, const nn_norm *n)
{
    m->in = m->out = nodes_of(&n->fiber);
    m->gate = n->gate;
    for (int d = 0; d < NN_DEGREES; d++) {
        int from = n->grouped ? 0 : d;
        m->gain[d] = place(b, n->w[from]) + (n->grouped ? m->channels : 0);
        m->bias[d] = place(b, n->b[from]) + (n->grouped ? m->channels : 0);
        m->channels += n->fiber.ch[d];
    }
}

static void begins(const builder *b, nn_cuda_module *m, int32_t param)
{
    if (param >= 0 && place(b, param) < m->param)
        m->param = place(b, param);
}

/* m->param is the smallest offset of the module's parameters. */
static void beginning_find(const builder *b, nn_cuda_module *m, const nn_module *def)
{
    const nn_conv *c = def->kind == NN_CONV ? &def->u.conv : &def->u.attention.conv;

    m->param = (int64_t)b->model->n_floats;
    if (def->kind != NN_NORM)
        begins(b, m, c->group[0].w0);
    for (int d = 0; d < NN_DEGREES; d++) {
        if (def->kind == NN_NORM)
            begins(b, m, def->u.norm.w[d]);
        else
            begins(b, m, c->self[d]);
        if (def->kind == NN_ATTENTION) {
            begins(b, m, def->u.attention.query[d]);
            begins(b, m, def->u.attention.project[d]);
        }
    }
}

static void module_add(builder *b, nn_cuda_module *m, const nn_module *def)
{
    nn_cuda_plan *p = b->plan;

    m->kind = def->kind;
    m->net = p->n_nets;
    b->split = 0;
    beginning_find(b, m, def);
    if (def->kind == NN_ATTENTION) {
        attention_add(b, m, &def->u.attention);
    } else if (def->kind == NN_NORM) {
        norm_add(b, m, &def->u.norm);
    } else {
        conv_add(b, &m->conv, &def->u.conv);
        m->in = m->conv.in;
        m->out = m->conv.out;
    }
    max(&p->max_node, m->in.size);
    max(&p->max_node, m->out.size);
    max(&p->max_node, m->z.size);
    max(&p->max_heads, m->heads);
    max(&p->max_channels, m->channels);
}

static void head_add(builder *b)
{
    for (int i = 0; i < 2; i++) {
        b->split = 0;
        b->plan->head[i] = linear_of(b, b->model->head[2 * i], 0, b->model->param[b->model->head[2 * i]].dims[1]);
        b->plan->head_bias[i] = place(b, b->model->head[2 * i + 1]);
    }
}

/* Counts radial networks, paths and tiles of folding. */
static void parts_count(const nn_se3 *model, int32_t *nets, int32_t *paths, int32_t *tiles)
{
    for (int i = 0; i < model->n_modules; i++) {
        const nn_module *m = &model->module[i];
        const nn_conv *c = m->kind == NN_ATTENTION ? &m->u.attention.conv : &m->u.conv;
        for (int k = 0; m->kind != NN_NORM && k < c->n_groups; k++) {
            const nn_group *g = &c->group[k];
            int32_t n_in = (g->c_in + NN_GPU_FOLD - 1) / NN_GPU_FOLD, n_out = (g->c_out + NN_GPU_FOLD - 1) / NN_GPU_FOLD;
            *nets += 1;
            *paths += g->n_paths;
            *tiles += g->n_paths * n_in * n_out;
        }
    }
}

pl_code nn_cuda_plan_make(nn_cuda_plan **out, const nn_se3 *model, pl_arena *mem, pl_error *err)
{
    builder b = { PL_NEW(mem, nn_cuda_plan, 1), model, mem, 0, false };
    nn_cuda_plan *p = b.plan;
    int32_t nets = 0, paths = 0, tiles = 0;

    parts_count(model, &nets, &paths, &tiles);
    if (p != NULL) {
        p->model = model;
        p->module = PL_NEW(mem, nn_cuda_module, model->n_modules);
        p->net = PL_NEW(mem, nn_gpu_net, nets + 1);
        p->path = PL_NEW(mem, nn_gpu_path, paths + 1);
        p->tile = PL_NEW(mem, nn_gpu_fold_tile, tiles + 1);
    }
    if (p == NULL || p->module == NULL || p->net == NULL || p->path == NULL || p->tile == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for the plan of a model");
    if (model->head[0] < 0)
        return pl_fail(err, PL_ECONFIG, "the cuda engine computes whole models, not single layers");
    if (model->conf.heads > HEADS_MAX)
        return pl_fail(err, PL_ECONFIG, "engine cuda: %d attention heads, at most %d", (int)model->conf.heads, (int)HEADS_MAX);
    p->l_max = model->conf.degrees - 1;
    p->n_scalars = model->conf.edge_features + nn_radial_inputs(&model->conf.radial);
    p->input = nodes_of(&(nn_fiber){ { model->conf.node_features } });
    for (int i = 0; i < model->n_modules && !b.refused; i++, p->n_modules++)
        module_add(&b, &p->module[i], &model->module[i]);
    if (b.refused)
        return pl_fail(err, PL_ENOMEM, "no memory for the plan of a model");
    head_add(&b);
    *out = p;
    return PL_OK;
}
