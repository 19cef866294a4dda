/* SPDX-License-Identifier: Apache-2.0 */
#include "models/network/se3.h"

#include <stdarg.h>
#include <stdio.h>

#include "pipeline/base/text.h"

enum {
    GROUP_PARAMS = 9,
    GROUPS_MAX = NN_DEGREES * NN_DEGREES,
    MODULE_PARAMS = GROUPS_MAX * GROUP_PARAMS + 3 * NN_DEGREES,
    HEAD_PARAMS = 4,
    NOISE_PARAMS = 1
};

/* Collects parameters. A refused allocation is remembered and reported once. */
typedef struct builder {
    pl_arena *mem;
    nn_se3 *model;
    nn_param *param;
    nn_module *module;
    const char *prefix; /* of the module under construction */
    bool refused, layer_norm;
    nn_fusion wanted;
    nn_parity parity;
    int32_t max_degree;
} builder;

static int min_int(int a, int b) { return a < b ? a : b; }


/* ---- settings ------------------------------------------------------------ */

nn_se3_conf nn_se3_published(void)
{
    return (nn_se3_conf){ .layers = 7,
                          .degrees = 4,
                          .channels = 32,
                          .heads = 8,
                          .channels_div = 2,
                          .norm = NN_NORMS_SE3,
                          .layer_norm = true,
                          .pooling = NN_POOL_MAX,
                          .fusion = NN_FUSE_FULL,
                          .outputs = 1,
                          .parity = NN_PARITY_BOTH };
}

typedef struct range {
    const char *name;
    int32_t value, low, high;
} range;

static pl_code check_ranges(const nn_se3_conf *c, pl_error *err)
{
    const range all[] = {
        { "layers", c->layers, 1, 64 },
        { "degrees", c->degrees, 1, NN_DEGREES },
        { "channels", c->channels, 1, 1024 },
        { "heads", c->heads, 1, 1024 },
        { "channels_div", c->channels_div, 1, 1024 },
        { "norm", c->norm, NN_NORMS_NONE, NN_NORMS_GATE },
        { "pooling", c->pooling, NN_POOL_MAX, NN_POOL_SUM },
        { "fusion", c->fusion, NN_FUSE_NONE, NN_FUSE_FULL },
        { "node_features", c->node_features, 1, 4096 },
        { "edge_features", c->edge_features, 0, 4096 },
        { "outputs", c->outputs, 1, 4096 },
        { "parity", c->parity, NN_PARITY_BOTH, NN_PARITY_NATURAL },
    };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].value < all[i].low || all[i].value > all[i].high)
            return pl_fail(err, PL_ECONFIG, "%s is %d, must be %d to %d", all[i].name, (int)all[i].value, (int)all[i].low,
                           (int)all[i].high);
    return PL_OK;
}

pl_code nn_se3_check(const nn_se3_conf *conf, pl_error *err)
{
    pl_code code = check_ranges(conf, err);

    if (code != PL_OK)
        return code;
    code = nn_radial_check(&conf->radial, err);
    if (code != PL_OK)
        return code;
    if (conf->denoise && conf->degrees < 2)
        return pl_fail(err, PL_ECONFIG, "degrees is %d, must be at least 2: noise is predicted from degree 1", (int)conf->degrees);
    if (conf->channels % conf->channels_div)
        return pl_fail(err, PL_ECONFIG, "channels_div is %d, must divide channels, which is %d", (int)conf->channels_div,
                       (int)conf->channels);
    if (conf->channels / conf->channels_div % conf->heads)
        return pl_fail(err, PL_ECONFIG, "heads is %d, must divide channels / channels_div, which is %d", (int)conf->heads,
                       (int)(conf->channels / conf->channels_div));
    return PL_OK;
}

/* ---- parameters ---------------------------------------------------------- */

/* Adds prefix + name and returns its number; cols = 0 makes it 1-D. */
static int32_t param_add(builder *b, int32_t rows, int32_t cols, const char *fmt, ...) __attribute__((format(printf, 4, 5)));

static int32_t param_add(builder *b, int32_t rows, int32_t cols, const char *fmt, ...)
{
    nn_se3 *m = b->model;
    nn_param *p = &b->param[m->n_params];
    char name[96];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    p->name = pl_sprintf(b->mem, "%s%s", b->prefix, name);
    b->refused |= (p->name == NULL);
    p->n_dims = cols ? 2 : 1;
    p->dims[0] = rows;
    p->dims[1] = cols ? cols : 1;
    p->at = m->n_floats;
    p->size = (size_t)rows * (size_t)p->dims[1];
    m->n_floats += p->size;
    return m->n_params++;
}

/* The radial network of a group, docs/model.md 3.1; n = the group's name inside the layer. */
static void radial_add(builder *b, nn_group *g, int32_t edge_scalars, const char *n)
{
    enum { H = NN_RADIAL_HIDDEN };
    int second = b->layer_norm ? 3 : 2, last = b->layer_norm ? 6 : 4;

    g->ln0_w = g->ln0_b = g->ln1_w = g->ln1_b = -1;
    g->w0 = param_add(b, H, edge_scalars, "%s.radial_func.net.0.weight", n);
    g->b0 = param_add(b, H, 0, "%s.radial_func.net.0.bias", n);
    if (b->layer_norm) {
        g->ln0_w = param_add(b, H, 0, "%s.radial_func.net.1.weight", n);
        g->ln0_b = param_add(b, H, 0, "%s.radial_func.net.1.bias", n);
    }
    g->w1 = param_add(b, H, H, "%s.radial_func.net.%d.weight", n, second);
    g->b1 = param_add(b, H, 0, "%s.radial_func.net.%d.bias", n, second);
    if (b->layer_norm) {
        g->ln1_w = param_add(b, H, 0, "%s.radial_func.net.4.weight", n);
        g->ln1_b = param_add(b, H, 0, "%s.radial_func.net.4.bias", n);
    }
    g->w2 = param_add(b, g->n_freq * g->c_out * g->c_in, H, "%s.radial_func.net.%d.weight", n, last);
    b->param[g->w2].last_of = g;
}

/* ---- convolution --------------------------------------------------------- */

static bool all_equal(const nn_fiber *f, const nn_fiber *plus)
{
    int32_t first = 0;

    for (int d = 0; d < NN_DEGREES; d++) {
        int32_t c = f->ch[d] ? f->ch[d] + (plus != NULL ? plus->ch[d] : 0) : 0;
        if (c && first && c != first)
            return false;
        if (c)
            first = c;
    }
    return true;
}

/* Degrees 0..max all present, none above. */
static bool is_full_range(const nn_fiber *f, int max_degree)
{
    for (int d = 0; d < NN_DEGREES; d++)
        if ((f->ch[d] != 0) != (d <= max_degree))
            return false;
    return true;
}

/* The table of docs/model.md 3.3: the first layout that fits. */
static void level_choose(nn_conv *c, nn_fusion wanted, int max_degree)
{
    bool in = all_equal(&c->in, &c->edge) && is_full_range(&c->in, max_degree);
    bool out = all_equal(&c->out, NULL) && is_full_range(&c->out, max_degree);

    c->by_input = false;
    c->level = NN_FUSE_NONE;
    if (wanted == NN_FUSE_FULL && in && out) {
        c->level = NN_FUSE_FULL;
    } else if (wanted != NN_FUSE_NONE && (in || out)) {
        c->level = NN_FUSE_PARTIAL;
        c->by_input = !in;
    }
}

/* Degrees that one group serves, as bit sets. */
typedef struct serves {
    unsigned in, out;
} serves;

static unsigned degree_set(const nn_fiber *f)
{
    unsigned set = 0;

    for (int d = 0; d < NN_DEGREES; d++)
        if (f->ch[d])
            set |= 1u << d;
    return set;
}

static int32_t lowest_channels(const nn_fiber *f, unsigned set)
{
    for (int d = 0; d < NN_DEGREES; d++)
        if (set >> d & 1)
            return f->ch[d];
    return 0;
}

static nn_path path_of(const builder *b, int d_in, int d_out, int32_t f0)
{
    int low = min_int(d_in, d_out);
    bool natural = b->parity == NN_PARITY_NATURAL;

    return (nn_path){ d_in, d_out, f0, natural ? low + 1 : 2 * low + 1, natural ? 2 : 1 };
}

/* Output degree outermost, input degree inside it, J innermost (docs/model.md 2.4). */
static void group_fill(builder *b, const nn_conv *c, nn_group *g, serves s)
{
    nn_path *p = PL_NEW(b->mem, nn_path, GROUPS_MAX);

    b->refused |= (p == NULL);
    if (p == NULL)
        return;
    g->path = p;
    g->c_in = lowest_channels(&c->in, s.in) + lowest_channels(&c->edge, s.in);
    g->c_out = lowest_channels(&c->out, s.out);
    g->unit_00 = c->level == NN_FUSE_NONE && s.in == 1 && s.out == 1;
    for (int o = 0; o < NN_DEGREES; o++)
        for (int i = 0; i < NN_DEGREES; i++) {
            if (!(s.in >> i & 1) || !(s.out >> o & 1))
                continue;
            p[g->n_paths] = path_of(b, i, o, g->n_freq);
            g->n_freq += p[g->n_paths++].n_freq;
        }
}

static void group_add(builder *b, nn_conv *c, serves s, const char *name)
{
    nn_group *g = (nn_group *)&c->group[c->n_groups++];

    group_fill(b, c, g, s);
    if (!b->refused)
        radial_add(b, g, c->edge_scalars, name);
}

static void groups_add_pairs(builder *b, nn_conv *c, const char *inner)
{
    char name[64];

    for (int i = 0; i < NN_DEGREES; i++)
        for (int o = 0; o < NN_DEGREES; o++) {
            if (!c->in.ch[i] || !c->out.ch[o])
                continue;
            snprintf(name, sizeof name, "%sconv.%d,%d", inner, i, o);
            group_add(b, c, (serves){ 1u << i, 1u << o }, name);
        }
}

static void groups_add(builder *b, nn_conv *c, const char *inner)
{
    const nn_fiber *by = c->by_input ? &c->in : &c->out;
    unsigned in = degree_set(&c->in), out = degree_set(&c->out);
    char name[64];

    if (c->level == NN_FUSE_NONE) {
        groups_add_pairs(b, c, inner);
    } else if (c->level == NN_FUSE_FULL) {
        snprintf(name, sizeof name, "%sconv", inner);
        group_add(b, c, (serves){ in, out }, name);
    } else {
        for (int d = 0; d < NN_DEGREES; d++) {
            if (!by->ch[d])
                continue;
            snprintf(name, sizeof name, "%s%s.%d", inner, c->by_input ? "conv_in" : "conv_out", d);
            group_add(b, c, (serves){ c->by_input ? 1u << d : in, c->by_input ? out : 1u << d }, name);
        }
    }
}

/* Builds a convolution whose in, out, edge, edge_scalars and pool are set; `inner` is the layer's own prefix. */
static void conv_build(builder *b, nn_conv *c, bool self_interaction, const char *inner)
{
    c->group = PL_NEW(b->mem, nn_group, GROUPS_MAX);
    b->refused |= (c->group == NULL);
    if (b->refused)
        return;
    c->natural = b->parity == NN_PARITY_NATURAL;
    level_choose(c, b->wanted, b->max_degree);
    groups_add(b, c, inner);
    for (int d = 0; d < NN_DEGREES; d++) {
        bool here = self_interaction && c->in.ch[d] && c->out.ch[d];
        c->self[d] = here ? param_add(b, c->out.ch[d], c->in.ch[d], "%sto_kernel_self.%d", inner, d) : -1;
    }
}

/* ---- attention and norm -------------------------------------------------- */

/* docs/model.md 4: values for every degree of the output, keys only where the input has the degree. */
static void attention_fibers(nn_attention *a, int32_t channels_div)
{
    for (int d = 0; d < NN_DEGREES; d++) {
        a->value.ch[d] = a->out.ch[d] / channels_div;
        a->key.ch[d] = a->in.ch[d] ? a->value.ch[d] : 0;
        a->conv.out.ch[d] = a->value.ch[d] + a->key.ch[d];
    }
    a->conv.in = a->in;
}

static void attention_build(builder *b, nn_attention *a, int32_t channels_div)
{
    attention_fibers(a, channels_div);
    conv_build(b, &a->conv, false, "to_key_value.");
    if (b->refused)
        return;
    for (int d = 0; d < NN_DEGREES; d++)
        a->query[d] = a->key.ch[d] ? param_add(b, a->key.ch[d], a->in.ch[d], "to_query.weights.%d", d) : -1;
    for (int d = 0; d < NN_DEGREES; d++)
        a->project[d] = a->out.ch[d] ? param_add(b, a->out.ch[d], a->value.ch[d] + a->in.ch[d], "project.weights.%d", d) : -1;
}

static void norm_build(builder *b, nn_norm *n)
{
    int32_t sum = 0;

    n->grouped = all_equal(&n->fiber, NULL);
    for (int d = 0; d < NN_DEGREES; d++) {
        n->w[d] = n->b[d] = -1;
        sum += n->fiber.ch[d];
        if (n->grouped || !n->fiber.ch[d])
            continue;
        n->w[d] = param_add(b, n->fiber.ch[d], 0, "layer_norms.%d.weight", d);
        n->b[d] = param_add(b, n->fiber.ch[d], 0, "layer_norms.%d.bias", d);
    }
    if (n->grouped) {
        n->w[0] = param_add(b, sum, 0, n->gate ? "gate.weight" : "group_norm.weight");
        n->b[0] = param_add(b, sum, 0, n->gate ? "gate.bias" : "group_norm.bias");
    }
}

/* ---- whole models -------------------------------------------------------- */

static nn_module *module_add(builder *b, nn_module_kind kind)
{
    nn_module *m = &b->module[b->model->n_modules++];

    m->kind = kind;
    return m;
}

static pl_code build_start(builder *b, int n_modules, pl_error *err)
{
    b->model = PL_NEW(b->mem, nn_se3, 1);
    b->module = PL_NEW(b->mem, nn_module, n_modules);
    b->param = PL_NEW(b->mem, nn_param, n_modules * MODULE_PARAMS + HEAD_PARAMS + NOISE_PARAMS);
    if (b->model == NULL || b->module == NULL || b->param == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for the plan of a model");
    b->model->module = b->module;
    b->model->param = b->param;
    for (int k = 0; k < HEAD_PARAMS; k++)
        b->model->head[k] = -1;
    b->model->denoise = -1;
    return PL_OK;
}

static pl_code build_end(nn_se3 **out, const builder *b, pl_error *err)
{
    if (b->refused)
        return pl_fail(err, PL_ENOMEM, "no memory for the plan of a model");
    *out = b->model;
    return PL_OK;
}

static nn_fiber fiber_uniform(int32_t degrees, int32_t channels)
{
    nn_fiber f = { { 0 } };

    for (int d = 0; d < degrees; d++)
        f.ch[d] = channels;
    return f;
}

static void prefix_next(builder *b)
{
    const char *p = pl_sprintf(b->mem, "transformer.graph_modules.%d.", (int)b->model->n_modules);

    b->refused |= (p == NULL);
    b->prefix = p != NULL ? p : "";
}

static void body_build(builder *b, const nn_se3_conf *conf)
{
    nn_fiber hidden = fiber_uniform(conf->degrees, conf->channels), in = { { conf->node_features } };

    for (int layer = 0; layer < conf->layers && !b->refused; layer++, in = hidden) {
        prefix_next(b);
        nn_attention *a = &module_add(b, NN_ATTENTION)->u.attention;
        a->in = in;
        a->out = hidden;
        a->heads = conf->heads;
        a->conv.edge_scalars = conf->edge_features + nn_radial_inputs(&conf->radial);
        attention_build(b, a, conf->channels_div);
        if (!conf->norm || b->refused)
            continue;
        prefix_next(b);
        nn_norm *n = &module_add(b, NN_NORM)->u.norm;
        n->fiber = hidden;
        n->gate = conf->norm == NN_NORMS_GATE;
        norm_build(b, n);
    }
}

/* The last convolution to scalars and the two linear layers after pooling. */
static void tail_build(builder *b, const nn_se3_conf *conf)
{
    int32_t wide = conf->degrees * conf->channels;
    nn_conv *c;

    prefix_next(b);
    c = &module_add(b, NN_CONV)->u.conv;
    c->in = fiber_uniform(conf->degrees, conf->channels);
    c->out = fiber_uniform(1, wide);
    c->edge_scalars = conf->edge_features + nn_radial_inputs(&conf->radial);
    c->pool = true;
    conv_build(b, c, true, "");
    if (b->refused)
        return;
    b->prefix = "mlp.";
    b->model->head[0] = param_add(b, wide, wide, "0.weight");
    b->model->head[1] = param_add(b, wide, 0, "0.bias");
    b->model->head[2] = param_add(b, conf->outputs, wide, "2.weight");
    b->model->head[3] = param_add(b, conf->outputs, 0, "2.bias");
    b->prefix = "";
    if (conf->denoise)
        b->model->denoise = param_add(b, 1, conf->channels, "denoise.weight");
}

pl_code nn_se3_plan(nn_se3 **out, const nn_se3_conf *conf, pl_arena *mem, pl_error *err)
{
    builder b = { .mem = mem, .prefix = "" };
    pl_code code = nn_se3_check(conf, err);

    if (code == PL_OK)
        code = build_start(&b, conf->layers * (conf->norm ? 2 : 1) + 1, err);
    if (code != PL_OK)
        return code;
    b.model->conf = *conf;
    b.layer_norm = conf->layer_norm;
    b.wanted = (nn_fusion)conf->fusion;
    b.parity = (nn_parity)conf->parity;
    b.max_degree = conf->degrees - 1;
    body_build(&b, conf);
    if (!b.refused)
        tail_build(&b, conf);
    return build_end(out, &b, err);
}

/* ---- single layers ------------------------------------------------------- */

static pl_code layer_check(nn_fiber in, nn_fiber to, const nn_layer_opts *o, pl_error *err)
{
    for (int d = 0; d < NN_DEGREES; d++) {
        if (in.ch[d] < 0 || to.ch[d] < 0 || o->edge.ch[d] < 0)
            return pl_fail(err, PL_ECONFIG, "degree %d has a negative number of channels", d);
        if (d > o->max_degree && (in.ch[d] || to.ch[d]))
            return pl_fail(err, PL_ECONFIG, "degree %d is above max_degree, which is %d", d, (int)o->max_degree);
        if (d && o->edge.ch[d] && !in.ch[d])
            return pl_fail(err, PL_ECONFIG, "edges have features of degree %d, but nodes have none of that degree", d);
    }
    return PL_OK;
}

static pl_code heads_check(nn_fiber to, const nn_layer_opts *o, pl_error *err)
{
    if (o->channels_div < 1 || o->heads < 1)
        return pl_fail(err, PL_ECONFIG, "heads and channels_div must be at least 1");
    for (int d = 0; d < NN_DEGREES; d++)
        if (to.ch[d] % o->channels_div || to.ch[d] / o->channels_div % o->heads)
            return pl_fail(err, PL_ECONFIG, "%d channels of degree %d do not divide into %d times %d heads", (int)to.ch[d], d,
                           (int)o->channels_div, (int)o->heads);
    return PL_OK;
}

static pl_code layer_start(builder *b, const nn_layer_opts *o, pl_error *err)
{
    b->layer_norm = o->layer_norm;
    b->wanted = o->wanted;
    b->parity = o->parity;
    b->max_degree = o->max_degree;
    return build_start(b, 1, err);
}

static void conv_edges(nn_conv *c, const nn_layer_opts *o)
{
    c->edge = o->edge;
    c->edge.ch[0] = 0;
    c->edge_scalars = o->edge.ch[0] + nn_radial_inputs(&o->radial);
}

pl_code nn_se3_plan_conv(nn_se3 **out, nn_fiber in, nn_fiber to, const nn_layer_opts *opts, pl_arena *mem, pl_error *err)
{
    builder b = { .mem = mem, .prefix = "" };
    pl_code code = layer_check(in, to, opts, err);
    nn_conv *c;

    if (code == PL_OK)
        code = layer_start(&b, opts, err);
    if (code != PL_OK)
        return code;
    c = &module_add(&b, NN_CONV)->u.conv;
    c->in = in;
    c->out = to;
    c->pool = opts->pool;
    conv_edges(c, opts);
    conv_build(&b, c, opts->self_interaction, "");
    return build_end(out, &b, err);
}

pl_code nn_se3_plan_attention(nn_se3 **out, nn_fiber in, nn_fiber to, const nn_layer_opts *opts, pl_arena *mem, pl_error *err)
{
    builder b = { .mem = mem, .prefix = "" };
    pl_code code = layer_check(in, to, opts, err);
    nn_attention *a;

    if (code == PL_OK)
        code = heads_check(to, opts, err);
    if (code == PL_OK)
        code = layer_start(&b, opts, err);
    if (code != PL_OK)
        return code;
    a = &module_add(&b, NN_ATTENTION)->u.attention;
    a->in = in;
    a->out = to;
    a->heads = opts->heads;
    conv_edges(&a->conv, opts);
    attention_build(&b, a, opts->channels_div);
    return build_end(out, &b, err);
}

static pl_code plan_norm(nn_se3 **out, nn_fiber fiber, bool gate, pl_arena *mem, pl_error *err)
{
    builder b = { .mem = mem, .prefix = "" };
    pl_code code = build_start(&b, 1, err);
    nn_norm *n;

    if (code != PL_OK)
        return code;
    n = &module_add(&b, NN_NORM)->u.norm;
    n->fiber = fiber;
    n->gate = gate;
    norm_build(&b, n);
    return build_end(out, &b, err);
}

pl_code nn_se3_plan_norm(nn_se3 **out, nn_fiber fiber, pl_arena *mem, pl_error *err)
{
    return plan_norm(out, fiber, false, mem, err);
}

pl_code nn_se3_plan_gate(nn_se3 **out, int32_t degrees, int32_t channels, pl_arena *mem, pl_error *err)
{
    return plan_norm(out, fiber_uniform(degrees, channels), true, mem, err);
}
