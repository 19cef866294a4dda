/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "golden/golden.h"
#include "models/engine/engine.h"
#include "models/ref/ref.h"
#include "pipeline/base/rng.h"

static const double EXACT = 1e-11, SINGLE_OUT = 5e-6, SINGLE_GRAD = 2e-5;

/* ---- the metadata of a case ---------------------------------------------- */

/* "{0: 6, 1: 4}" */
static nn_fiber fiber_of(const nn_tensors *f, const char *key)
{
    const char *s = nn_tensors_meta(f, key);
    nn_fiber out = { { 0 } };

    for (s = s != NULL ? strchr(s, '{') : NULL; s != NULL; s = strchr(s + 1, ',')) {
        char *end;
        long d = strtol(s + 1, &end, 10);
        if (end > s + 1 && d >= 0 && d < NN_DEGREES && *end == ':')
            out.ch[d] = (int32_t)strtol(end + 1, NULL, 10);
    }
    return out;
}

static nn_fiber degree_fiber(int d, int channels)
{
    nn_fiber f = { { 0 } };

    f.ch[d] = channels;
    return f;
}

static bool meta_is(const nn_tensors *f, const char *key, const char *part)
{
    const char *s = nn_tensors_meta(f, key);

    return s != NULL && strstr(s, part) != NULL;
}

static nn_fusion meta_fusion(const nn_tensors *f)
{
    if (meta_is(f, "fuse_level", "FULL"))
        return NN_FUSE_FULL;
    return meta_is(f, "fuse_level", "PARTIAL") ? NN_FUSE_PARTIAL : NN_FUSE_NONE;
}

static int32_t meta_int(const nn_tensors *f, const char *key)
{
    const char *s = nn_tensors_meta(f, key);

    return s != NULL ? (int32_t)strtol(s, NULL, 10) : 0;
}

static int32_t rows_of(const nn_tensors *f, const char *prefix, nn_fiber fiber)
{
    char name[64];

    for (int d = 0; d < NN_DEGREES; d++) {
        snprintf(name, sizeof name, "%s.%d", prefix, d);
        const nn_tensor *t = fiber.ch[d] ? nn_tensors_find(f, name) : NULL;
        if (t != NULL)
            return (int32_t)t->dims[0];
    }
    snprintf(name, sizeof name, "%s.fused", prefix);
    if (nn_tensors_find(f, name) != NULL)
        return (int32_t)nn_tensors_find(f, name)->dims[0];
    fail_msg("no tensor %s", prefix);
    return 0;
}

static int32_t node_count(const nn_tensors *f, nn_fiber in) { return rows_of(f, "in.node", in); }
static int32_t item_count(const nn_tensors *f, nn_fiber out) { return rows_of(f, "in.proj", out); }

/* Checks that the planned fusion is the one that the reference used. */
static void level_check(const nn_tensors *f, const nn_se3 *m)
{
    static const char *const names[] = { "NONE", "PARTIAL", "FULL" }; /* nn_fusion */
    const char *used = nn_tensors_meta(f, "used_fuse_level");
    const nn_module *one = &m->module[0];
    const nn_conv *c = one->kind == NN_CONV ? &one->u.conv : &one->u.attention.conv;

    if (used != NULL && one->kind != NN_NORM)
        assert_string_equal(names[c->level], used);
}

static nn_layer_opts layer_opts(const nn_tensors *f)
{
    return (nn_layer_opts){
        .wanted = meta_fusion(f),
        .layer_norm = meta_is(f, "options", "\"use_layer_norm\": true") || meta_is(f, "use_layer_norm", "True"),
        .pool = meta_is(f, "options", "\"pool\": true"),
        .self_interaction = meta_is(f, "options", "\"self_interaction\": true"),
        .max_degree = meta_int(f, "max_degree"),
        .edge = fiber_of(f, "fiber_edge"),
        .heads = meta_int(f, "num_heads"),
        .channels_div = meta_int(f, "channels_div"),
    };
}

static nn_se3 *plan_of(nn_module_kind kind, nn_fiber in, nn_fiber out, const nn_layer_opts *o, pl_arena *mem)
{
    nn_se3 *m = NULL;
    pl_error err = { 0 };
    pl_code code;

    switch (kind) {
    case NN_CONV: code = nn_se3_plan_conv(&m, in, out, o, mem, &err); break;
    case NN_ATTENTION: code = nn_se3_plan_attention(&m, in, out, o, mem, &err); break;
    default: code = nn_se3_plan_norm(&m, in, mem, &err);
    }
    if (code != PL_OK)
        fail_msg("%s", err.text);
    return m;
}

static nn_se3 *layer_plan(const nn_tensors *f, nn_module_kind kind, pl_arena *mem)
{
    nn_layer_opts o = layer_opts(f);
    nn_se3 *m = plan_of(kind, fiber_of(f, "fiber_in"), fiber_of(f, "fiber_out"), &o, mem);

    level_check(f, m);
    return m;
}

/* Difference of positions in double, or the stored float32 one. */
static double (*layer_vec(const nn_tensors *f, const nn_ref_edges *e, bool wide, pl_arena *mem))[3]
{
    const double *pos = golden_get(f, NULL, mem, "in.pos"), *rel = golden_get(f, NULL, mem, "in.rel_pos32");
    double(*vec)[3] = (double(*)[3])PL_NEW(mem, double, 3 * e->n_edges + 1);

    for (int32_t k = 0; k < 3 * e->n_edges; k++) {
        int32_t s = e->src[k / 3], d = e->dst[k / 3];
        vec[k / 3][k % 3] = wide ? pos[3 * d + k % 3] - pos[3 * s + k % 3] : rel[k];
    }
    return vec;
}

static nn_ref_edges layer_edges(const nn_tensors *f, bool wide, pl_arena *mem)
{
    nn_ref_edges in = { .fiber = fiber_of(f, "fiber_edge") };
    size_t n;

    in.n_scalars = in.fiber.ch[0];
    in.n_nodes = node_count(f, fiber_of(f, "fiber_in"));
    if (!golden_has(f, "in.src"))
        return in;
    in.src = golden_ints(f, &n, mem, "in.src");
    in.dst = golden_ints(f, &n, mem, "in.dst");
    in.n_edges = (int32_t)n;
    in.scalar = golden_get(f, NULL, mem, "in.edge.0");
    for (int d = 1; d < NN_DEGREES; d++)
        if (in.fiber.ch[d])
            in.feature[d] = golden_get(f, NULL, mem, "in.edge.%d", d);
    in.vec = (const double(*)[3])layer_vec(f, &in, wide, mem);
    return in;
}

/* ---- the same cases in double and in float ------------------------------- */

#define real double
#define REF(x) nn_ref_##x
#include "golden/layer_case.inc"
#undef real
#undef REF

#define real float
#define REF(x) nn_reff_##x
#include "golden/layer_case.inc"
#undef real
#undef REF

static void in_both(const char *name, nn_module_kind kind)
{
    nn_ref_layer_case(name, kind, EXACT, EXACT);
    nn_reff_layer_case(name, kind, SINGLE_OUT, SINGLE_GRAD);
}

/* Every file of the folder whose name begins with `prefix`. */
static void each(const char *prefix, nn_module_kind kind)
{
    pl_arena *mem = pl_arena_new(1 << 16);

    for (const char *const *name = golden_names(prefix, mem); *name; name++) {
        print_message("%s\n", *name);
        in_both(*name, kind);
    }
    pl_arena_free(mem);
}

static void every_stored_convolution_agrees(void **s) { (void)s, each("b2_conv_", NN_CONV); }
static void every_stored_attention_block_agrees(void **s) { (void)s, each("b3_attn_", NN_ATTENTION); }
static void every_stored_norm_agrees(void **s) { (void)s, each("b3_norm_", NN_NORM); }

static void every_stored_linear_layer_agrees(void **s)
{
    pl_arena *mem = pl_arena_new(1 << 16);

    (void)s;
    for (const char *const *name = golden_names("b3_linear", mem); *name; name++) {
        nn_ref_linear_case(*name, EXACT);
        nn_reff_linear_case(*name, SINGLE_OUT);
    }
    pl_arena_free(mem);
}

/* ---- the same layers inside a network, by the engines that know only whole networks --------- */

/* lift -> the layer -> sum over edges -> head. The engine must give what the oracle gives, output and gradients; the
 * tests above say that the oracle's layer is the reference's. */
typedef struct host {
    nn_se3 m;
    nn_module module[3];
    nn_param *param;
    int32_t room, from, to; /* parameters of the layer: from .. to - 1 */
} host;

static void shift(int32_t *id, int32_t by) { *id += *id < 0 ? 0 : by; }

static void conv_shift(nn_conv *c, int32_t by, pl_arena *mem)
{
    nn_group *g = PL_NEW(mem, nn_group, c->n_groups);

    for (int32_t i = 0; i < c->n_groups; i++) {
        g[i] = c->group[i];
        int32_t *const ids[] = { &g[i].w0, &g[i].b0,    &g[i].ln0_w, &g[i].ln0_b, &g[i].w1,
                                 &g[i].b1, &g[i].ln1_w, &g[i].ln1_b, &g[i].w2 };
        for (size_t k = 0; k < sizeof ids / sizeof *ids; k++)
            shift(ids[k], by);
    }
    c->group = g;
    for (int d = 0; d < NN_DEGREES; d++)
        shift(&c->self[d], by);
}

static void module_shift(nn_module *m, int32_t by, pl_arena *mem)
{
    if (m->kind == NN_CONV) {
        conv_shift(&m->u.conv, by, mem);
        return;
    }
    if (m->kind == NN_ATTENTION)
        conv_shift(&m->u.attention.conv, by, mem);
    for (int d = 0; d < NN_DEGREES; d++) {
        shift(m->kind == NN_NORM ? &m->u.norm.w[d] : &m->u.attention.query[d], by);
        shift(m->kind == NN_NORM ? &m->u.norm.b[d] : &m->u.attention.project[d], by);
    }
}

static int32_t param_append(host *h, nn_param p)
{
    assert_true(h->m.n_params < h->room);
    p.at = h->m.n_floats;
    h->m.n_floats += p.size;
    h->param[h->m.n_params] = p;
    return h->m.n_params++;
}

/* The number of the first parameter of the part. */
static int32_t part_append(host *h, const nn_se3 *part, pl_arena *mem)
{
    int32_t first = h->m.n_params;

    h->module[h->m.n_modules] = part->module[0];
    module_shift(&h->module[h->m.n_modules++], first, mem);
    for (int32_t k = 0; k < part->n_params; k++)
        (void)param_append(h, part->param[k]);
    return first;
}

enum { WIDE = 8 }; /* channels of the head */

static void head_append(host *h)
{
    static const nn_param head[4] = { { "mlp.0.weight", 2, { WIDE, WIDE }, 0, WIDE * WIDE, NULL },
                                      { "mlp.0.bias", 1, { WIDE, 0 }, 0, WIDE, NULL },
                                      { "mlp.2.weight", 2, { 1, WIDE }, 0, WIDE, NULL },
                                      { "mlp.2.bias", 1, { 1, 0 }, 0, 1, NULL } };

    for (int k = 0; k < 4; k++)
        h->m.head[k] = param_append(h, head[k]);
}

/* The keys and values that an attention block needs so that its convolution has the channels of the stored one. */
static nn_fiber halves(nn_fiber in, nn_fiber out)
{
    for (int d = 0; d < NN_DEGREES; d++)
        out.ch[d] = in.ch[d] ? out.ch[d] / 2 : out.ch[d];
    return out;
}

/* A network with the stored layer in the middle; false: engines have no such layer. */
static bool host_make(host *h, const nn_tensors *f, nn_module_kind kind, pl_arena *mem)
{
    nn_fiber in = fiber_of(f, "fiber_in"), out = kind == NN_NORM ? in : fiber_of(f, "fiber_out"), whole = out;
    nn_layer_opts o = layer_opts(f), plain = { .max_degree = NN_MAX_DEGREE - 1,
                                               .edge = { { o.edge.ch[0] } },
                                               .heads = 1,
                                               .channels_div = 1,
                                               .pool = true,
                                               .self_interaction = true };
    nn_fiber scalars = degree_fiber(0, in.ch[0]);

    *h = (host){ .room = 4096 };
    h->param = PL_NEW(mem, nn_param, h->room);
    if (kind == NN_CONV) { /* as keys and values */
        out = halves(in, out);
        o.heads = o.channels_div = 1;
    }
    for (int d = 0; d < NN_DEGREES; d++)
        if ((d && o.edge.ch[d]) || (kind == NN_CONV && in.ch[d] && whole.ch[d] % 2))
            return false;
    h->m.conf = (nn_se3_conf){ .degrees = NN_MAX_DEGREE,
                               .heads = o.heads,
                               .pooling = NN_POOL_MEAN,
                               .node_features = in.ch[0],
                               .edge_features = o.edge.ch[0],
                               .outputs = 1,
                               .layers = 2,
                               .channels = WIDE,
                               .channels_div = 1 };
    (void)part_append(h, plan_of(NN_ATTENTION, scalars, in, &plain, mem), mem);
    h->from = part_append(h, plan_of(kind == NN_CONV ? NN_ATTENTION : kind, in, out, &o, mem), mem);
    h->to = part_append(h, plan_of(NN_CONV, out, degree_fiber(0, WIDE), &plain, mem), mem);
    head_append(h);
    h->m.module = h->module;
    h->m.param = h->param;
    return true;
}

/* Fills all parameters with random numbers, then those of the layer from the file. */
static float *host_weights(const host *h, const nn_tensors *f, pl_arena *mem)
{
    float *w = PL_NEW(mem, float, h->m.n_floats);
    pl_rng r = pl_rng_at(20261124, 0, 0);
    size_t n, stored = 0;

    for (int32_t k = 0; k < h->m.n_params; k++) {
        const nn_param *p = &h->param[k];
        const char *name = strncmp(p->name, "to_key_value.", 13) || golden_has(f, "w.%s", p->name) ? p->name : p->name + 13;
        bool here = k >= h->from && k < h->to && golden_has(f, "w.%s", name);
        const double *from = here ? golden_get(f, &n, mem, "w.%s", name) : NULL;
        if (here)
            assert_int_equal(n, p->size);
        for (size_t i = 0; i < p->size; i++)
            w[p->at + i] = here ? (float)from[i] : (float)((2 * pl_rng_real(&r) - 1) / sqrt(p->n_dims == 2 ? p->dims[1] : 1));
        stored += here ? p->size : 0;
    }
    assert_true(stored > 0);
    return w;
}

static int by_dst(const void *a, const void *b)
{
    const int32_t *x = a, *y = b;

    return x[1] != y[1] ? x[1] - y[1] : x[0] - y[0];
}

/* The graph of the file, its edges in the order that engines want; without one, all pairs of random places. */
static nn_batch host_batch(const nn_tensors *f, const host *h, pl_arena *mem)
{
    nn_ref_edges e = layer_edges(f, false, mem);
    int32_t n = e.n_nodes, wide = h->m.conf.edge_features, n_edges = e.n_edges ? e.n_edges : n * (n - 1);
    int32_t(*key)[3] = (int32_t(*)[3])PL_NEW(mem, int32_t, 3 * n_edges), *src = PL_NEW(mem, int32_t, n_edges);
    int32_t *dst = PL_NEW(mem, int32_t, n_edges), *none = PL_NEW(mem, int32_t, n_edges), *own = PL_NEW(mem, int32_t, n_edges);
    int32_t *first = PL_NEW(mem, int32_t, 2);
    float(*vec)[3] = (float(*)[3])PL_NEW(mem, float, 3 * n_edges), *dist = PL_NEW(mem, float, n_edges);
    float *edge = PL_NEW(mem, float, n_edges *wide + 1), *place = PL_NEW(mem, float, 3 * n);
    const double *node = golden_get(f, NULL, mem, "in.node.0");
    pl_rng r = pl_rng_at(20261124, 1, 0);

    for (int32_t i = 0; i < 3 * n; i++)
        place[i] = (float)(4 * pl_rng_real(&r));
    for (int32_t k = 0; k < n_edges; k++) {
        int32_t a = k / (n - 1), b = k % (n - 1);
        key[k][0] = e.n_edges ? e.src[k] : b + (b >= a);
        key[k][1] = e.n_edges ? e.dst[k] : a;
        key[k][2] = k;
    }
    qsort(key, (size_t)n_edges, sizeof *key, by_dst);
    for (int32_t k = 0; k < n_edges; k++) {
        int32_t from = key[k][2];
        src[k] = key[k][0], dst[k] = key[k][1], none[k] = -1, own[k] = k;
        for (int c = 0; c < 3; c++)
            vec[k][c] = e.n_edges ? (float)e.vec[from][c] : place[3 * dst[k] + c] - place[3 * src[k] + c];
        dist[k] = sqrtf(vec[k][0] * vec[k][0] + vec[k][1] * vec[k][1] + vec[k][2] * vec[k][2]);
        for (int32_t c = 0; c < wide; c++)
            edge[k * wide + c] = (float)e.scalar[from * wide + c];
    }
    first[1] = n;
    float *scalars = PL_NEW(mem, float, n * h->m.conf.node_features);
    for (int32_t i = 0; i < n * h->m.conf.node_features; i++)
        scalars[i] = (float)node[i];
    return (nn_batch){ .n_graphs = 1,
                       .n_nodes = n,
                       .n_edges = n_edges,
                       .n_pairs = n_edges,
                       .n_node_features = h->m.conf.node_features,
                       .n_edge_features = wide,
                       .first = first,
                       .node = scalars,
                       .src = src,
                       .dst = dst,
                       .rev = none,
                       .pair = own,
                       .pair_edge = own,
                       .edge = edge,
                       .vec = (const float(*)[3])vec,
                       .dist = dist };
}

/* [outputs and all gradients] by one engine, as doubles. */
static double *host_run(const nn_engine_kind *kind, const host *h, const nn_batch *b, const float *w, pl_arena *mem)
{
    float *grad = PL_NEW(mem, float, h->m.n_floats), y = 0, dy = 1;
    double *out = PL_NEW(mem, double, h->m.n_floats + 1);
    nn_engine *e;
    pl_error err = { 0 };

    if (kind->open(&e, &h->m, &(nn_engine_conf){ .threads = 2, .radial = NN_RADIAL_EXACT }, &err) != PL_OK ||
        kind->set_params(e, w, &err) != PL_OK || kind->forward(e, b, true, &y, &err) != PL_OK ||
        kind->backward(e, b, &dy, grad, &err) != PL_OK)
        fail_msg("%s: %s", kind->name, err.text);
    kind->close(e);
    for (size_t i = 0; i < h->m.n_floats; i++)
        out[i] = (double)grad[i];
    out[h->m.n_floats] = (double)y;
    return out;
}

static const nn_engine_kind *engine; /* the wanted engine; NULL: the oracle's single layers */

static void inside(const char *name, nn_module_kind kind)
{
    pl_arena *mem = pl_arena_new(1 << 22);
    const nn_tensors *f = golden_open(name, mem);
    host h;

    if (host_make(&h, f, kind, mem)) {
        nn_batch b = host_batch(f, &h, mem);
        const float *w = host_weights(&h, f, mem);
        const double *want = host_run(&nn_engine_ref, &h, &b, w, mem), *got = host_run(engine, &h, &b, w, mem);
        golden_check("y", &got[h.m.n_floats], &want[h.m.n_floats], 1, 2e-5);
        for (int32_t k = 0; k < h.m.n_params; k++)
            golden_check(h.param[k].name, got + h.param[k].at, want + h.param[k].at, h.param[k].size, 2e-4);
        print_message("%s\n", name);
    } else {
        print_message("%s: a layer that networks of the engines do not have\n", name);
    }
    pl_arena_free(mem);
}

static void each_inside(const char *prefix, nn_module_kind kind)
{
    pl_arena *mem = pl_arena_new(1 << 16);

    for (const char *const *name = golden_names(prefix, mem); *name; name++)
        inside(*name, kind);
    pl_arena_free(mem);
}

static void every_stored_convolution_agrees_inside_a_network(void **s) { (void)s, each_inside("b2_conv_", NN_CONV); }
static void every_stored_attention_block_agrees_inside_a_network(void **s) { (void)s, each_inside("b3_attn_", NN_ATTENTION); }
static void every_stored_norm_agrees_inside_a_network(void **s) { (void)s, each_inside("b3_norm_", NN_NORM); }

/* [cpu|cuda] */
int main(int argc, char **argv)
{
    const struct CMUnitTest alone[] = {
        cmocka_unit_test(every_stored_linear_layer_agrees),
        cmocka_unit_test(every_stored_norm_agrees),
        cmocka_unit_test(every_stored_convolution_agrees),
        cmocka_unit_test(every_stored_attention_block_agrees),
    };
    const struct CMUnitTest hosted[] = {
        cmocka_unit_test(every_stored_norm_agrees_inside_a_network),
        cmocka_unit_test(every_stored_convolution_agrees_inside_a_network),
        cmocka_unit_test(every_stored_attention_block_agrees_inside_a_network),
    };

    golden_folder();
    for (int i = 0; argc > 1 && nn_engines[i] != NULL; i++)
        if (!strcmp(argv[1], nn_engines[i]->name))
            engine = nn_engines[i];
    return engine != NULL ? cmocka_run_group_tests(hosted, NULL, NULL) : cmocka_run_group_tests(alone, NULL, NULL);
}
