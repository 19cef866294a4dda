/* SPDX-License-Identifier: Apache-2.0
 *
 * Every backward pass of the oracle against central differences of its own
 * forward pass, in double. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "twin/sample.h"

enum { PROBES = 12 };

/* One layer, its inputs as flat arrays, and loss = sum of proj * output. */
typedef struct layer {
    nn_se3 *model;
    sample s;
    nn_fiber in, out, edge;
    nn_radial_conf radial;
    double *w, *node[NN_DEGREES], *feature[NN_DEGREES], *proj[NN_DEGREES];
    size_t n_node[NN_DEGREES], n_feature[NN_DEGREES];
    pl_arena *mem;
} layer;

static double *random_numbers(pl_arena *mem, size_t n, uint64_t seed)
{
    pl_rng r = pl_rng_at(seed, n, 9);
    double *x = PL_NEW(mem, double, n + 1);

    for (size_t k = 0; k < n; k++)
        x[k] = pl_rng_normal(&r);
    return x;
}

static const nn_fiber *layer_edge_fiber(const nn_module *m)
{
    static const nn_fiber none = { { 0 } };

    if (m->kind == NN_ATTENTION)
        return &m->u.attention.conv.edge;
    return m->kind == NN_CONV ? &m->u.conv.edge : &none;
}

static bool per_edge(const layer *l) { return l->model->module[0].kind == NN_CONV && !l->model->module[0].u.conv.pool; }

static void layer_fill(layer *l, uint64_t seed)
{
    float *w = PL_NEW(l->mem, float, l->model->n_floats);
    int n_out;

    sample_make(&l->s, (const int[]){ 4, 1 }, 2, seed);
    n_out = per_edge(l) ? l->s.n_edges : l->s.n_nodes;
    nn_se3_init(l->model, w, seed);
    l->w = random_numbers(l->mem, l->model->n_floats, seed);
    for (size_t k = 0; k < l->model->n_floats; k++)
        l->w[k] = w[k] + 0.05 * l->w[k]; /* so that gains are not 1 and biases not 0 */
    l->edge = *layer_edge_fiber(&l->model->module[0]);
    for (int d = 0; d < NN_DEGREES; d++) {
        l->n_node[d] = (size_t)(l->s.n_nodes * l->in.ch[d] * (2 * d + 1));
        l->n_feature[d] = (size_t)(l->s.n_edges * l->edge.ch[d] * (2 * d + 1));
        l->node[d] = random_numbers(l->mem, l->n_node[d], seed + 1);
        l->feature[d] = random_numbers(l->mem, l->n_feature[d], seed + 2);
        l->proj[d] = random_numbers(l->mem, (size_t)(n_out * l->out.ch[d] * (2 * d + 1)), seed + 3);
    }
}

/* Loss, and with `grad` also the gradients: ctx and dx are filled. */
static double layer_loss(layer *l, nn_ref_ctx *ctx, nn_ref_feat *dx, pl_arena *mem)
{
    const nn_module *m = &l->model->module[0];
    nn_ref_edges in = sample_edges(&l->s);
    nn_ref_feat x = { .fiber = l->in, .n = l->s.n_nodes }, y, dy;
    nn_ref_attention_tape tape;
    nn_ref_graph *g;
    double loss = 0.0;

    in.fiber = l->edge;
    in.radial = l->radial;
    for (int d = 0; d < NN_DEGREES; d++) {
        in.feature[d] = l->feature[d];
        x.d[d] = l->node[d];
    }
    assert_int_equal(nn_ref_graph_new(&g, &in, NN_MAX_DEGREE, mem, NULL), PL_OK);
    ctx->model = l->model;
    ctx->w = l->w;
    ctx->graph = g;
    ctx->mem = mem;
    assert_int_equal(nn_ref_feat_new(&y, l->out, per_edge(l) ? l->s.n_edges : l->s.n_nodes, mem, NULL), PL_OK);
    if (m->kind == NN_CONV)
        assert_int_equal(nn_ref_conv_forward(ctx, &m->u.conv, &x, &y, NULL), PL_OK);
    else if (m->kind == NN_ATTENTION)
        assert_int_equal(nn_ref_attention_forward(ctx, &m->u.attention, &x, &y, &tape, NULL), PL_OK);
    else
        nn_ref_norm_forward(ctx, &m->u.norm, &x, &y);
    dy = y;
    for (int d = 0; d < NN_DEGREES; d++) {
        dy.d[d] = l->proj[d];
        for (int k = 0; k < y.n * y.fiber.ch[d] * (2 * d + 1); k++)
            loss += l->proj[d][k] * y.d[d][k];
    }
    if (dx == NULL)
        return loss;
    if (m->kind == NN_CONV)
        assert_int_equal(nn_ref_conv_backward(ctx, &m->u.conv, &x, &dy, dx, NULL), PL_OK);
    else if (m->kind == NN_ATTENTION)
        assert_int_equal(nn_ref_attention_backward(ctx, &m->u.attention, &x, &tape, &dy, dx, NULL), PL_OK);
    else
        nn_ref_norm_backward(ctx, &m->u.norm, &x, &dy, dx);
    return loss;
}

static double loss_only(layer *l)
{
    pl_arena *mem = pl_arena_new(1 << 20);
    nn_ref_ctx ctx = { 0 };
    double loss = layer_loss(l, &ctx, NULL, mem);

    pl_arena_free(mem);
    return loss;
}

/* Moves x by h both ways and compares the slope with `got`. */
static void probe(layer *l, const char *what, size_t at, double *x, double got)
{
    const double h = 2e-6, before = *x;
    double up, down, slope;

    *x = before + h;
    sample_vectors(&l->s);
    up = loss_only(l);
    *x = before - h;
    sample_vectors(&l->s);
    down = loss_only(l);
    *x = before;
    sample_vectors(&l->s);
    slope = (up - down) / (2 * h);
    if (!(fabs(slope - got) <= 2e-6 * (1.0 + fabs(slope))))
        fail_msg("%s[%zu]: gradient %.10g, slope %.10g", what, at, got, slope);
}

static void probe_some(layer *l, const char *what, double *x, const double *g, size_t n)
{
    pl_rng r = pl_rng_at(n, 5, 5);

    for (int k = 0; n && k < PROBES; k++) {
        size_t at = (size_t)pl_rng_below(&r, n);
        probe(l, what, at, x + at, g[at]);
    }
}

static void probe_positions(layer *l, const nn_ref_ctx *ctx)
{
    double pos[SAMPLE_NODES][3] = { { 0 } };

    for (int32_t e = 0; e < l->s.n_edges; e++) {
        const double *v = l->s.vec[e];
        double r = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
        for (int k = 0; k < 3; k++) {
            double g = ctx->de.dist[e] * v[k] / r + ctx->de.turn[e][k];
            pos[l->s.dst[e]][k] += g;
            pos[l->s.src[e]][k] -= g;
        }
    }
    for (int n = 0; n < 3; n++)
        for (int k = 0; k < 3; k++)
            probe(l, "position", (size_t)(3 * n + k), &l->s.pos[n][k], pos[n][k]);
}

/* Parameters, node features, edge features, edge scalars, positions. */
static void check_layer(layer *l, uint64_t seed)
{
    nn_ref_ctx ctx = { 0 };
    nn_ref_feat dx;

    layer_fill(l, seed);
    ctx.dw = PL_NEW(l->mem, double, l->model->n_floats);
    ctx.de.scalar = PL_NEW(l->mem, double, l->s.n_edges *SAMPLE_SCALARS);
    ctx.de.dist = PL_NEW(l->mem, double, l->s.n_edges);
    ctx.de.turn = (double(*)[3])PL_NEW(l->mem, double, 3 * l->s.n_edges);
    for (int d = 1; d < NN_DEGREES; d++)
        ctx.de.feature[d] = PL_NEW(l->mem, double, l->n_feature[d] + 1);
    assert_int_equal(nn_ref_feat_new(&dx, l->in, l->s.n_nodes, l->mem, NULL), PL_OK);
    layer_loss(l, &ctx, &dx, l->mem);
    for (int32_t k = 0; k < l->model->n_params; k++) {
        const nn_param *p = &l->model->param[k];
        pl_rng r = pl_rng_at(seed, (uint64_t)k, 6);
        size_t at = p->at + (size_t)pl_rng_below(&r, p->size);
        probe(l, p->name, at - p->at, l->w + at, ctx.dw[at]);
    }
    for (int d = 0; d < NN_DEGREES; d++) {
        probe_some(l, "node feature", l->node[d], dx.d[d], l->n_node[d]);
        probe_some(l, "edge feature", l->feature[d], ctx.de.feature[d], l->n_feature[d]);
    }
    probe_some(l, "edge scalar", &l->s.scalar[0][0], ctx.de.scalar, (size_t)(l->s.n_edges * SAMPLE_SCALARS));
    probe_positions(l, &ctx);
}

static const nn_layer_opts basic = { .wanted = NN_FUSE_FULL,
                                     .layer_norm = true,
                                     .max_degree = NN_MAX_DEGREE,
                                     .edge = { { SAMPLE_SCALARS } },
                                     .heads = 2,
                                     .channels_div = 2 };

static void check_conv(nn_fiber in, nn_fiber out, nn_layer_opts o, nn_fusion level)
{
    for (int parity = NN_PARITY_BOTH; parity <= NN_PARITY_NATURAL; parity++) {
        layer l = { .in = in, .out = out, .radial = o.radial, .mem = pl_arena_new(1 << 20) };
        o.parity = (nn_parity)parity;
        assert_int_equal(nn_se3_plan_conv(&l.model, in, out, &o, l.mem, NULL), PL_OK);
        assert_int_equal(l.model->module[0].u.conv.level, level);
        assert_int_equal(l.model->module[0].u.conv.natural, parity == NN_PARITY_NATURAL);
        check_layer(&l, 11);
        pl_arena_free(l.mem);
    }
}

static void gradient_of_the_fused_convolution_is_its_slope(void **s)
{
    (void)s;
    check_conv((nn_fiber){ { 2, 2, 2, 2, 2 } }, (nn_fiber){ { 3, 3, 3, 3, 3 } }, basic, NN_FUSE_FULL);
}

static void gradient_of_the_convolution_by_output_is_its_slope(void **s)
{
    nn_layer_opts o = basic;
    (void)s;

    o.wanted = NN_FUSE_PARTIAL;
    o.pool = o.self_interaction = true;
    check_conv((nn_fiber){ { 2, 2, 2, 2, 2 } }, (nn_fiber){ { 3, 1, 0, 2, 1 } }, o, NN_FUSE_PARTIAL);
}

static void gradient_of_the_convolution_by_input_is_its_slope(void **s)
{
    (void)s;
    check_conv((nn_fiber){ { 3, 1, 0, 2, 1 } }, (nn_fiber){ { 2, 2, 2, 2, 2 } }, basic, NN_FUSE_PARTIAL);
}

static void gradient_of_the_pairwise_convolution_is_its_slope(void **s)
{
    nn_layer_opts o = basic;
    (void)s;

    o.wanted = NN_FUSE_NONE;
    o.layer_norm = false;
    o.self_interaction = true;
    check_conv((nn_fiber){ { 3, 1, 2, 1, 1 } }, (nn_fiber){ { 2, 1, 1, 2, 1 } }, o, NN_FUSE_NONE);
}

static void gradient_of_edge_features_of_higher_degree_is_their_slope(void **s)
{
    nn_layer_opts o = basic;
    (void)s;

    o.edge = (nn_fiber){ { SAMPLE_SCALARS, 2, 1 } };
    check_conv((nn_fiber){ { 3, 1, 1 } }, (nn_fiber){ { 2, 1, 1 } }, o, NN_FUSE_NONE);
}

static void gradient_of_attention_is_its_slope(void **s)
{
    const nn_fiber in[] = { { { 4, 4, 4, 4, 4 } }, { { 3 } }, { { 2, 0, 3 } } }, out = { { 4, 4, 4, 4, 4 } };
    (void)s;

    for (int k = 0; k < 3; k++) {
        layer l = { .in = in[k], .out = out, .mem = pl_arena_new(1 << 20) };
        assert_int_equal(nn_se3_plan_attention(&l.model, in[k], out, &basic, l.mem, NULL), PL_OK);
        check_layer(&l, 21);
        pl_arena_free(l.mem);
    }
}

/* Some edges of the sample are longer than the cutoff. */
static const nn_radial_conf radial_kinds[] = { { NN_BASIS_BESSEL, 6, NN_ENVELOPE_POLYNOMIAL, 2.2 },
                                               { NN_BASIS_GAUSSIAN, 7, NN_ENVELOPE_NONE, 2.5 },
                                               { NN_BASIS_DISTANCE, 0, NN_ENVELOPE_POLYNOMIAL, 2.0 } };

static void gradient_with_a_radial_basis_and_envelope_is_its_slope(void **s)
{
    const nn_fiber in = { { 4, 2, 2 } }, out = { { 4, 4, 4 } };
    (void)s;

    for (int k = 0; k < 3; k++) {
        layer l = { .in = in, .out = out, .radial = radial_kinds[k], .mem = pl_arena_new(1 << 20) };
        nn_layer_opts o = basic;
        o.radial = radial_kinds[k];
        assert_int_equal(nn_se3_plan_attention(&l.model, in, out, &o, l.mem, NULL), PL_OK);
        check_layer(&l, 41);
        pl_arena_free(l.mem);
        o.pool = o.self_interaction = true;
        check_conv((nn_fiber){ { 2, 1, 1, 1, 1 } }, (nn_fiber){ { 3, 1, 0, 2, 1 } }, o, NN_FUSE_NONE);
    }
}

static void gradient_of_the_norm_is_its_slope(void **s)
{
    const nn_fiber both[] = { { { 5, 5, 5, 5, 5 } }, { { 6, 4, 0, 5, 3 } } };
    (void)s;

    for (int k = 0; k < 2; k++) {
        layer l = { .in = both[k], .out = both[k], .mem = pl_arena_new(1 << 20) };
        assert_int_equal(nn_se3_plan_norm(&l.model, both[k], l.mem, NULL), PL_OK);
        assert_int_equal(l.model->module[0].u.norm.grouped, k == 0);
        check_layer(&l, 31);
        pl_arena_free(l.mem);
    }
}

static void gradient_of_the_gate_is_its_slope(void **s)
{
    const nn_fiber fiber = { { 5, 5, 5, 5 } };
    layer l = { .in = fiber, .out = fiber, .mem = pl_arena_new(1 << 20) };
    (void)s;

    assert_int_equal(nn_se3_plan_gate(&l.model, 4, 5, l.mem, NULL), PL_OK);
    check_layer(&l, 51);
    pl_arena_free(l.mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradient_of_the_norm_is_its_slope),
        cmocka_unit_test(gradient_of_the_gate_is_its_slope),
        cmocka_unit_test(gradient_of_attention_is_its_slope),
        cmocka_unit_test(gradient_with_a_radial_basis_and_envelope_is_its_slope),
        cmocka_unit_test(gradient_of_the_fused_convolution_is_its_slope),
        cmocka_unit_test(gradient_of_the_convolution_by_output_is_its_slope),
        cmocka_unit_test(gradient_of_the_convolution_by_input_is_its_slope),
        cmocka_unit_test(gradient_of_the_pairwise_convolution_is_its_slope),
        cmocka_unit_test(gradient_of_edge_features_of_higher_degree_is_their_slope),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
