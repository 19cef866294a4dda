/* SPDX-License-Identifier: Apache-2.0
 *
 * What must not change a molecule's outputs, and how features turn with it, for
 * models of 1 to 5 degrees and every layout of the radial networks. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "models/engine/engine.h"
#include "twin/sample.h"

static const double axis[3] = { 0.36, -0.48, 0.8 }, angle = 1.1;

/* A small model with random weights. */
typedef struct subject {
    pl_arena *mem;
    nn_se3 *model;
    double *w;
} subject;

static nn_parity parity; /* of every model that a test makes */
static bool denoise;     /* likewise */

static void subject_make(subject *t, int degrees, nn_fusion fusion, nn_pooling pooling)
{
    const nn_se3_conf conf = { .layers = 2,
                               .degrees = degrees,
                               .channels = 4,
                               .heads = 2,
                               .channels_div = 2,
                               .norm = true,
                               .layer_norm = true,
                               .pooling = pooling,
                               .fusion = fusion,
                               .node_features = SAMPLE_FEATURES,
                               .edge_features = SAMPLE_SCALARS,
                               .outputs = 2,
                               .parity = parity,
                               .denoise = denoise && degrees > 1 };
    float *w;

    t->mem = pl_arena_new(1 << 20);
    assert_int_equal(nn_se3_plan(&t->model, &conf, t->mem, NULL), PL_OK);
    w = PL_NEW(t->mem, float, t->model->n_floats);
    t->w = PL_NEW(t->mem, double, t->model->n_floats);
    nn_se3_init(t->model, w, 7);
    for (size_t k = 0; k < t->model->n_floats; k++)
        t->w[k] = w[k];
}

/* The run is valid until the subject is freed. */
static const nn_ref_run *subject_run(subject *t, const sample *s)
{
    nn_ref_edges in = sample_edges(s);
    nn_ref_ctx *ctx = PL_NEW(t->mem, nn_ref_ctx, 1);
    nn_ref_graph *g;
    nn_ref_run *run;

    assert_int_equal(nn_ref_graph_new(&g, &in, t->model->conf.degrees - 1, t->mem, NULL), PL_OK);
    *ctx = (nn_ref_ctx){ .model = t->model, .w = t->w, .graph = g, .mem = t->mem };
    assert_int_equal(nn_ref_model_forward(ctx, &run, &s->node[0][0], s->first, s->n_graphs, NULL), PL_OK);
    return run;
}

static void same(const char *what, const double *a, const double *b, int n)
{
    for (int k = 0; k < n; k++)
        if (!(fabs(a[k] - b[k]) <= 1e-11 * (1.0 + fabs(b[k]))))
            fail_msg("%s [%d]: %.15g and %.15g", what, k, a[k], b[k]);
}

typedef void property(subject *t, const sample *s);

/* Every number of degrees with every layout; the kinds of pooling alternate. */
static void for_all_models(property *check)
{
    for (int degrees = 1; degrees <= NN_DEGREES; degrees++)
        for (int fusion = NN_FUSE_NONE; fusion <= NN_FUSE_FULL; fusion++) {
            subject t;
            sample s;
            sample_make(&s, (const int[]){ 5, 3 }, 2, (uint64_t)(10 * degrees + fusion));
            subject_make(&t, degrees, (nn_fusion)fusion, (nn_pooling)((degrees + fusion) % 3));
            check(&t, &s);
            pl_arena_free(t.mem);
        }
}

/* ---- rotation and translation -------------------------------------------- */

/* Features of degree d of every module turn by D_d. */
static void turned(const nn_ref_feat *before, const nn_ref_feat *after, int d)
{
    double turn[81], want[9];
    int wide = 2 * d + 1;

    sample_turn(turn, d, axis, angle);
    for (int k = 0; k < before->n * before->fiber.ch[d]; k++) {
        const double *x = before->d[d] + k * wide;
        for (int i = 0; i < wide; i++) {
            want[i] = 0.0;
            for (int j = 0; j < wide; j++)
                want[i] += turn[i * wide + j] * x[j];
        }
        same("turned feature", after->d[d] + k * wide, want, wide);
    }
}

static void check_rotation(subject *t, const sample *s)
{
    const nn_ref_run *a = subject_run(t, s), *b;
    sample moved = *s;
    double r[9];

    sample_rotation(r, axis, angle);
    for (int n = 0; n < s->n_nodes; n++)
        for (int k = 0; k < 3; k++)
            moved.pos[n][k] = r[3 * k] * s->pos[n][0] + r[3 * k + 1] * s->pos[n][1] + r[3 * k + 2] * s->pos[n][2];
    sample_vectors(&moved);
    b = subject_run(t, &moved);
    same("output", b->y, a->y, 4);
    for (int m = 0; m < t->model->n_modules; m++)
        for (int d = 0; d < t->model->conf.degrees; d++)
            if (a->x[m].fiber.ch[d])
                turned(&a->x[m], &b->x[m], d);
}

static void outputs_are_invariant_and_features_equivariant(void **state)
{
    (void)state;
    for_all_models(check_rotation);
}

static void check_translation(subject *t, const sample *s)
{
    sample moved = *s;

    for (int n = 0; n < s->n_nodes; n++)
        for (int k = 0; k < 3; k++)
            moved.pos[n][k] += 0.5 * (k + 1);
    sample_vectors(&moved);
    same("output", subject_run(t, &moved)->y, subject_run(t, s)->y, 4);
}

static void outputs_stay_when_the_molecule_moves(void **state)
{
    (void)state;
    for_all_models(check_translation);
}

/* A mirror image is another molecule for a model with degrees from 1 up. */
static void mirror_images_differ_with_both_parities(void **state)
{
    subject t;
    sample s, mirrored;
    const nn_ref_run *a, *b;
    (void)state;

    sample_make(&s, (const int[]){ 5, 5 }, 2, 3);
    subject_make(&t, 3, NN_FUSE_FULL, NN_POOL_SUM);
    mirrored = s;
    for (int n = 0; n < s.n_nodes; n++)
        mirrored.pos[n][0] = -s.pos[n][0];
    sample_vectors(&mirrored);
    a = subject_run(&t, &s);
    b = subject_run(&t, &mirrored);
    assert_true(fabs(a->y[0] - b->y[0]) > 1e-6 * fabs(a->y[0]));
    pl_arena_free(t.mem);
}

/* x -> -x in one direction, and in all: the second leaves only (-1)^l of a feature of degree l. */
static sample reflected(const sample *s, int n_axes)
{
    sample out = *s;

    for (int n = 0; n < s->n_nodes; n++)
        for (int k = 0; k < n_axes; k++)
            out.pos[n][k] = -s->pos[n][k];
    sample_vectors(&out);
    return out;
}

/* Features of degree d of the inverted molecule are those of the molecule times (-1)^d. */
static void check_inversion(subject *t, const sample *s)
{
    sample other = reflected(s, 3);
    const nn_ref_run *a = subject_run(t, s), *b = subject_run(t, &other);

    same("output", b->y, a->y, 4);
    for (int m = 0; m < t->model->n_modules; m++)
        for (int d = 0; d < t->model->conf.degrees; d++) {
            const nn_ref_feat *x = &a->x[m];
            int n = x->n * x->fiber.ch[d] * (2 * d + 1);
            double *want = PL_NEW(t->mem, double, n + 1);
            for (int k = 0; k < n; k++)
                want[k] = d % 2 ? -x->d[d][k] : x->d[d][k];
            same("inverted feature", b->x[m].d[d], want, n);
        }
}

static void check_reflection(subject *t, const sample *s)
{
    sample other = reflected(s, 1);
    const double *a = subject_run(t, s)->y, *b = subject_run(t, &other)->y;

    for (int k = 0; k < 4; k++)
        if (!(fabs(a[k] - b[k]) <= 1e-12 * (1 + fabs(a[k]))))
            fail_msg("output %d: %.15g, of the mirror image %.15g", k, a[k], b[k]);
}

static void outputs_of_mirror_images_are_equal(void **state)
{
    (void)state;
    for_all_models(check_reflection);
    for_all_models(check_inversion);
}

/* The gradient of sum y, parameter by parameter; lives as long as the subject. */
static const double *gradient(subject *t, const sample *s)
{
    const double dy[4] = { 1, 1, 1, 1 };
    nn_ref_edges in = sample_edges(s);
    nn_ref_graph *g;
    nn_ref_run *run;
    nn_ref_ctx ctx = { .model = t->model, .w = t->w, .mem = t->mem };

    ctx.dw = PL_NEW(t->mem, double, t->model->n_floats);
    assert_int_equal(nn_ref_graph_new(&g, &in, t->model->conf.degrees - 1, t->mem, NULL), PL_OK);
    ctx.graph = g;
    assert_int_equal(nn_ref_model_forward(&ctx, &run, &s->node[0][0], s->first, s->n_graphs, NULL), PL_OK);
    assert_int_equal(nn_ref_model_backward(&ctx, run, dy, NULL, NULL), PL_OK);
    return ctx.dw;
}

static void check_gradient(subject *t, const sample *s)
{
    sample other = reflected(s, 1);
    const double *a = gradient(t, s), *b = gradient(t, &other);

    for (size_t k = 0; k < t->model->n_floats; k++)
        if (!(fabs(a[k] - b[k]) <= 1e-11 * (1 + fabs(a[k]))))
            fail_msg("gradient %zu: %.15g, of the mirror image %.15g", k, a[k], b[k]);
}

static void gradients_of_mirror_images_are_equal(void **state)
{
    (void)state;
    for_all_models(check_gradient);
}

/* A natural network equals a published one whose additional couplings are zero. */
static void natural_couplings_are_half_of_all(void **state)
{
    subject natural, both;
    (void)state;

    subject_make(&natural, 4, NN_FUSE_FULL, NN_POOL_SUM);
    parity = NN_PARITY_BOTH;
    subject_make(&both, 4, NN_FUSE_FULL, NN_POOL_SUM);
    assert_int_equal(natural.model->n_params, both.model->n_params);
    for (int k = 0; k < both.model->n_params; k++)
        assert_string_equal(natural.model->param[k].name, both.model->param[k].name);
    assert_int_equal(both.model->module[2].u.attention.conv.group[0].n_freq, 44);    /* sum of 2 min + 1 */
    assert_int_equal(natural.model->module[2].u.attention.conv.group[0].n_freq, 30); /* sum of min + 1 */
    pl_arena_free(natural.mem);
    pl_arena_free(both.mem);
}

static int both(void **state)
{
    (void)state;
    parity = NN_PARITY_BOTH;
    return 0;
}

static int natural(void **state)
{
    (void)state;
    parity = NN_PARITY_NATURAL;
    return 0;
}

/* ---- the noise head -------------------------------------------------------- */

static int noisy(void **state)
{
    (void)state;
    denoise = true;
    parity = NN_PARITY_BOTH;
    return 0;
}

static int noisy_natural(void **state)
{
    (void)noisy(state);
    parity = NN_PARITY_NATURAL;
    return 0;
}

static int quiet(void **state)
{
    (void)state;
    denoise = false;
    return 0;
}

/* As positions do, in x, y, z. */
static void check_vectors_turn(subject *t, const sample *s)
{
    const nn_ref_run *a = subject_run(t, s), *b;
    sample moved = *s;
    double r[9], want[3 * SAMPLE_NODES], size = 0;

    if (t->model->denoise < 0)
        return;
    sample_rotation(r, axis, angle);
    for (int n = 0; n < s->n_nodes; n++)
        for (int k = 0; k < 3; k++) {
            moved.pos[n][k] = r[3 * k] * s->pos[n][0] + r[3 * k + 1] * s->pos[n][1] + r[3 * k + 2] * s->pos[n][2] + 0.3 * k;
            want[3 * n + k] = r[3 * k] * a->v[3 * n] + r[3 * k + 1] * a->v[3 * n + 1] + r[3 * k + 2] * a->v[3 * n + 2];
            size += fabs(want[3 * n + k]);
        }
    sample_vectors(&moved);
    b = subject_run(t, &moved);
    same("vector", b->v, want, 3 * s->n_nodes);
    assert_true(size > 1e-3);
}

static void vectors_of_atoms_turn_with_the_molecule(void **state)
{
    (void)state;
    for_all_models(check_vectors_turn);
}

/* The parameters before the head are those of the network without it. */
static void the_noise_head_comes_last_and_changes_no_output(void **state)
{
    subject with, without;
    sample s;
    (void)state;

    sample_make(&s, (const int[]){ 5, 3 }, 2, 4);
    subject_make(&with, 3, NN_FUSE_FULL, NN_POOL_SUM);
    denoise = false;
    subject_make(&without, 3, NN_FUSE_FULL, NN_POOL_SUM);
    assert_int_equal(with.model->denoise, with.model->n_params - 1);
    assert_int_equal(with.model->n_floats, without.model->n_floats + 4);
    assert_memory_equal(with.w, without.w, without.model->n_floats * sizeof *with.w);
    assert_memory_equal(subject_run(&with, &s)->y, subject_run(&without, &s)->y, 4 * sizeof(double));
    assert_null(subject_run(&without, &s)->v);
    pl_arena_free(with.mem);
    pl_arena_free(without.mem);
}

static double noise_loss(subject *t, const sample *s, const double *dv)
{
    const nn_ref_run *run = subject_run(t, s);
    double sum = 0.7 * run->y[0] - run->y[3];

    for (int k = 0; k < 3 * s->n_nodes; k++)
        sum += dv[k] * run->v[k];
    return sum;
}

static void check_noise_slope(subject *t, const sample *s, const double *dw, const double *dv, int32_t param)
{
    const nn_param *p = &t->model->param[param];
    pl_rng r = pl_rng_at(17, (uint64_t)param, 3);
    double *x = &t->w[p->at + (size_t)pl_rng_below(&r, p->size)], got = dw[x - t->w], slope;
    const double h = 2e-6, before = *x;

    *x = before + h;
    slope = noise_loss(t, s, dv);
    *x = before - h;
    slope = (slope - noise_loss(t, s, dv)) / (2 * h);
    *x = before;
    if (!(fabs(slope - got) <= 2e-6 * (1 + fabs(slope))))
        fail_msg("%s: gradient %.10g, slope %.10g", p->name, got, slope);
}

/* The gradient of a loss of outputs and vectors. */
static void gradient_of_the_noise_head_is_its_slope(void **state)
{
    static const double dy[4] = { 0.7, 0, 0, -1 };
    subject t;
    sample s;
    double dv[3 * SAMPLE_NODES];
    pl_rng r = pl_rng_at(5, 5, 5);
    nn_ref_graph *g;
    nn_ref_run *run;
    (void)state;

    sample_make(&s, (const int[]){ 5, 3 }, 2, 6);
    subject_make(&t, 3, NN_FUSE_FULL, NN_POOL_SUM);
    for (int k = 0; k < 3 * SAMPLE_NODES; k++)
        dv[k] = pl_rng_normal(&r);
    nn_ref_edges in = sample_edges(&s);
    nn_ref_ctx ctx = { .model = t.model, .w = t.w, .mem = t.mem, .dw = PL_NEW(t.mem, double, t.model->n_floats) };
    assert_int_equal(nn_ref_graph_new(&g, &in, 2, t.mem, NULL), PL_OK);
    ctx.graph = g;
    assert_int_equal(nn_ref_model_forward(&ctx, &run, &s.node[0][0], s.first, 2, NULL), PL_OK);
    run->dv = dv;
    assert_int_equal(nn_ref_model_backward(&ctx, run, dy, NULL, NULL), PL_OK);
    for (int32_t k = 0; k < t.model->n_params; k++)
        check_noise_slope(&t, &s, ctx.dw, dv, k);
    pl_arena_free(t.mem);
}

static void a_noise_head_needs_degree_1(void **state)
{
    nn_se3_conf conf = nn_se3_published();
    pl_error err = { 0 };
    (void)state;

    conf.node_features = 1;
    conf.denoise = true;
    assert_int_equal(nn_se3_check(&conf, &err), PL_OK);
    conf.degrees = 1;
    assert_int_equal(nn_se3_check(&conf, &err), PL_ECONFIG);
    assert_string_equal(err.text, "degrees is 1, must be at least 2: noise is predicted from degree 1");
}

/* ---- order --------------------------------------------------------------- */

static void check_node_order(subject *t, const sample *s)
{
    static const int to[8] = { 3, 0, 4, 1, 2, 7, 5, 6 }; /* inside each molecule */
    sample p = *s;

    for (int n = 0; n < s->n_nodes; n++) {
        memcpy(p.pos[to[n]], s->pos[n], sizeof p.pos[n]);
        memcpy(p.node[to[n]], s->node[n], sizeof p.node[n]);
    }
    for (int e = 0; e < s->n_edges; e++) {
        p.src[e] = to[s->src[e]];
        p.dst[e] = to[s->dst[e]];
    }
    same("output", subject_run(t, &p)->y, subject_run(t, s)->y, 4);
}

static void outputs_do_not_know_the_order_of_atoms(void **state)
{
    (void)state;
    for_all_models(check_node_order);
}

static void check_edge_order(subject *t, const sample *s)
{
    sample p = *s;

    for (int e = 0; e < s->n_edges; e++) {
        int from = s->n_edges - 1 - e;
        p.src[e] = s->src[from];
        p.dst[e] = s->dst[from];
        memcpy(p.scalar[e], s->scalar[from], sizeof p.scalar[e]);
    }
    sample_vectors(&p);
    same("output", subject_run(t, &p)->y, subject_run(t, s)->y, 4);
}

static void outputs_do_not_know_the_order_of_edges(void **state)
{
    (void)state;
    for_all_models(check_edge_order);
}

/* ---- other molecules in the batch ------------------------------------------ */

/* Molecule g of a batch, on its own. */
static sample alone(const sample *s, int g)
{
    sample one;
    int from = s->first[g], n = s->first[g + 1] - from;

    memset(&one, 0, sizeof one);
    one.n_graphs = 1;
    one.n_nodes = one.first[1] = n;
    memcpy(one.pos, s->pos + from, sizeof *s->pos * (size_t)n);
    memcpy(one.node, s->node + from, sizeof *s->node * (size_t)n);
    for (int e = 0; e < s->n_edges; e++) {
        if (s->src[e] < from || s->src[e] >= from + n)
            continue;
        one.src[one.n_edges] = s->src[e] - from;
        one.dst[one.n_edges] = s->dst[e] - from;
        memcpy(one.scalar[one.n_edges++], s->scalar[e], sizeof one.scalar[0]);
    }
    sample_vectors(&one);
    return one;
}

static void check_company(subject *t, const sample *s)
{
    const nn_ref_run *together = subject_run(t, s);

    for (int g = 0; g < s->n_graphs; g++) {
        sample one = alone(s, g);
        same("output", subject_run(t, &one)->y, together->y + 2 * g, 2);
    }
}

static void outputs_do_not_know_the_rest_of_the_batch(void **state)
{
    (void)state;
    for_all_models(check_company);
}

/* Atoms without neighbours get finite outputs and gradients, alone or in a batch. */
static void atoms_without_neighbours_are_allowed(void **state)
{
    static const int atoms[][3] = { { 1, 0, 0 }, { 1, 4, 1 }, { 1, 1, 1 } };
    static const double dy[6] = { 1, 1, 1, 1, 1, 1 };
    (void)state;

    for (int k = 0; k < 3; k++) {
        subject t;
        sample s;
        sample_make(&s, atoms[k], k ? 3 : 1, 5);
        subject_make(&t, 3, (nn_fusion)k, (nn_pooling)k);
        nn_ref_edges in = sample_edges(&s);
        nn_ref_ctx ctx = { .model = t.model, .w = t.w, .mem = t.mem };
        nn_ref_graph *g;
        nn_ref_run *run;
        assert_int_equal(nn_ref_graph_new(&g, &in, 2, t.mem, NULL), PL_OK);
        ctx.graph = g;
        ctx.dw = PL_NEW(t.mem, double, t.model->n_floats);
        assert_int_equal(nn_ref_model_forward(&ctx, &run, &s.node[0][0], s.first, s.n_graphs, NULL), PL_OK);
        assert_int_equal(nn_ref_model_backward(&ctx, run, dy, NULL, NULL), PL_OK);
        for (int j = 0; j < 2 * s.n_graphs; j++)
            assert_true(isfinite(run->y[j]));
        for (size_t j = 0; j < t.model->n_floats; j++)
            assert_true(isfinite(ctx.dw[j]));
        pl_arena_free(t.mem);
    }
}

/* ---- layouts ------------------------------------------------------------- */

static const nn_conv *conv_of(const nn_module *m)
{
    if (m->kind == NN_ATTENTION)
        return &m->u.attention.conv;
    return m->kind == NN_CONV ? &m->u.conv : NULL;
}

/* The group of a layout that serves (d_in, d_out), and where in it. */
static const nn_group *serving(const nn_conv *c, int d_in, int d_out, int *f0)
{
    for (int k = 0; k < c->n_groups; k++)
        for (int j = 0; j < c->group[k].n_paths; j++)
            if (c->group[k].path[j].d_in == d_in && c->group[k].path[j].d_out == d_out) {
                *f0 = c->group[k].path[j].f0;
                return &c->group[k];
            }
    fail_msg("no group for %d -> %d", d_in, d_out);
    return NULL;
}

static void copy_param(subject *to, int32_t k, const subject *from, int32_t j)
{
    const nn_param *a = &to->model->param[k], *b = &from->model->param[j];

    assert_int_equal(a->size, b->size);
    memcpy(to->w + a->at, from->w + b->at, a->size * sizeof *to->w);
}

/* Hidden layers are copied; rows of the last layer are those of the same path. */
static void copy_path(subject *to, const nn_group *g, const nn_path *p, const subject *from, const nn_conv *c)
{
    int f0;
    const nn_group *s = serving(c, p->d_in, p->d_out, &f0);
    const int32_t here[] = { g->w0, g->b0, g->ln0_w, g->ln0_b, g->w1, g->b1, g->ln1_w, g->ln1_b };
    const int32_t there[] = { s->w0, s->b0, s->ln0_w, s->ln0_b, s->w1, s->b1, s->ln1_w, s->ln1_b };
    double scale = g->unit_00 && !s->unit_00 ? 0.5 / sqrt(acos(-1.0)) : 1.0; /* 1/sqrt(4 pi) */
    double *w = to->w + to->model->param[g->w2].at;
    const double *v = from->w + from->model->param[s->w2].at;

    for (int k = 0; k < 8; k++)
        copy_param(to, here[k], from, there[k]);
    for (int oc = 0; oc < g->c_out * g->c_in; oc++)
        for (int f = 0; f < p->n_freq; f++)
            for (int j = 0; j < NN_RADIAL_HIDDEN; j++)
                w[(oc * g->n_freq + p->f0 + f) * NN_RADIAL_HIDDEN + j] =
                    scale * v[(oc * s->n_freq + f0 + f) * NN_RADIAL_HIDDEN + j];
}

static void copy_model(subject *to, const subject *from)
{
    for (int32_t k = 0; k < to->model->n_params; k++) {
        int32_t j = nn_se3_find(from->model, to->model->param[k].name);
        if (j >= 0 && to->model->param[k].size == from->model->param[j].size)
            copy_param(to, k, from, j);
    }
    for (int32_t m = 0; m < to->model->n_modules; m++) {
        const nn_conv *c = conv_of(&to->model->module[m]);
        for (int k = 0; c != NULL && k < c->n_groups; k++)
            for (int j = 0; j < c->group[k].n_paths; j++)
                copy_path(to, &c->group[k], &c->group[k].path[j], from, conv_of(&from->model->module[m]));
    }
}

/* docs/model.md 3.3: a finer layout can always be filled from a coarser one. */
static void finer_layouts_can_hold_the_same_function(void **state)
{
    (void)state;

    for (int degrees = 1; degrees <= NN_DEGREES; degrees++)
        for (int finer = NN_FUSE_NONE; finer < NN_FUSE_FULL; finer++) {
            subject full, fine;
            sample s;
            sample_make(&s, (const int[]){ 5, 3 }, 2, (uint64_t)degrees);
            subject_make(&full, degrees, NN_FUSE_FULL, NN_POOL_MEAN);
            subject_make(&fine, degrees, (nn_fusion)finer, NN_POOL_MEAN);
            copy_model(&fine, &full);
            same("output", subject_run(&fine, &s)->y, subject_run(&full, &s)->y, 4);
            pl_arena_free(full.mem);
            pl_arena_free(fine.mem);
        }
}

/* ---- the engine around it ------------------------------------------------ */

static void narrow(float *to, const double *from, size_t n)
{
    for (size_t k = 0; k < n; k++)
        to[k] = (float)from[k];
}

/* The ref engine gives what the double model gives, rounded, and adds gradients. */
static void engine_gives_the_rounded_outputs(void **state)
{
    static float node[SAMPLE_NODES * SAMPLE_FEATURES], edge[SAMPLE_EDGES * SAMPLE_SCALARS], vec[SAMPLE_EDGES][3];
    const float dy[4] = { 1, 0.5f, -1, 2 };
    subject t;
    sample s;
    nn_engine *e;
    float y[4];
    (void)state;

    sample_make(&s, (const int[]){ 5, 4 }, 2, 8);
    subject_make(&t, 4, NN_FUSE_FULL, NN_POOL_MAX);
    narrow(node, &s.node[0][0], sizeof node / sizeof *node);
    narrow(edge, &s.scalar[0][0], sizeof edge / sizeof *edge);
    narrow(&vec[0][0], &s.vec[0][0], sizeof vec / sizeof(float));
    nn_batch in = { .n_graphs = 2,
                    .n_nodes = s.n_nodes,
                    .n_edges = s.n_edges,
                    .n_node_features = SAMPLE_FEATURES,
                    .n_edge_features = SAMPLE_SCALARS,
                    .first = s.first,
                    .node = node,
                    .src = s.src,
                    .dst = s.dst,
                    .edge = edge,
                    .vec = (const float(*)[3])vec };
    float *w = PL_NEW(t.mem, float, t.model->n_floats), *grad = PL_NEW(t.mem, float, t.model->n_floats);
    float *twice = PL_NEW(t.mem, float, t.model->n_floats);
    narrow(w, t.w, t.model->n_floats);
    assert_int_equal(nn_engine_ref.open(&e, t.model, &(nn_engine_conf){ .threads = 1, .radial = NN_RADIAL_EXACT }, NULL), PL_OK);
    assert_int_equal(nn_engine_ref.backward(e, &in, dy, grad, NULL), PL_EBUG);
    assert_int_equal(nn_engine_ref.set_params(e, w, NULL), PL_OK);
    assert_int_equal(nn_engine_ref.forward(e, &in, true, y, NULL), PL_OK);
    const nn_ref_run *run = subject_run(&t, &s);
    for (int k = 0; k < 4; k++)
        if (!(fabs(y[k] - run->y[k]) <= 1e-5 * (1 + fabs(run->y[k]))))
            fail_msg("output %d: %.9g and %.9g", k, (double)y[k], run->y[k]);
    assert_int_equal(nn_engine_ref.backward(e, &in, dy, grad, NULL), PL_OK);
    memcpy(twice, grad, t.model->n_floats * sizeof *grad);
    assert_int_equal(nn_engine_ref.backward(e, &in, dy, twice, NULL), PL_OK);
    for (size_t k = 0; k < t.model->n_floats; k++)
        assert_true(twice[k] == 2 * grad[k]);
    in.n_edge_features++;
    assert_int_equal(nn_engine_ref.forward(e, &in, true, y, NULL), PL_EBUG);
    assert_true(nn_engine_ref.workspace_bytes(e) > t.model->n_floats * sizeof(double));
    nn_engine_ref.close(e);
    nn_engine_ref.close(NULL);
    pl_arena_free(t.mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(outputs_are_invariant_and_features_equivariant, both),
        cmocka_unit_test_setup(outputs_are_invariant_and_features_equivariant, natural),
        cmocka_unit_test_setup(outputs_stay_when_the_molecule_moves, both),
        cmocka_unit_test_setup(outputs_stay_when_the_molecule_moves, natural),
        cmocka_unit_test_setup(outputs_do_not_know_the_order_of_atoms, both),
        cmocka_unit_test_setup(outputs_do_not_know_the_order_of_atoms, natural),
        cmocka_unit_test_setup(outputs_do_not_know_the_order_of_edges, both),
        cmocka_unit_test_setup(outputs_do_not_know_the_order_of_edges, natural),
        cmocka_unit_test_setup(outputs_do_not_know_the_rest_of_the_batch, both),
        cmocka_unit_test_setup(outputs_do_not_know_the_rest_of_the_batch, natural),
        cmocka_unit_test_setup(atoms_without_neighbours_are_allowed, both),
        cmocka_unit_test_setup(atoms_without_neighbours_are_allowed, natural),
        cmocka_unit_test_setup(finer_layouts_can_hold_the_same_function, both),
        cmocka_unit_test_setup(finer_layouts_can_hold_the_same_function, natural),
        cmocka_unit_test_setup(engine_gives_the_rounded_outputs, both),
        cmocka_unit_test_setup(engine_gives_the_rounded_outputs, natural),
        cmocka_unit_test_setup(mirror_images_differ_with_both_parities, both),
        cmocka_unit_test_setup(outputs_of_mirror_images_are_equal, natural),
        cmocka_unit_test_setup(gradients_of_mirror_images_are_equal, natural),
        cmocka_unit_test_setup(natural_couplings_are_half_of_all, natural),
        cmocka_unit_test_setup_teardown(vectors_of_atoms_turn_with_the_molecule, noisy, quiet),
        cmocka_unit_test_setup_teardown(vectors_of_atoms_turn_with_the_molecule, noisy_natural, quiet),
        cmocka_unit_test_setup_teardown(the_noise_head_comes_last_and_changes_no_output, noisy, quiet),
        cmocka_unit_test_setup_teardown(gradient_of_the_noise_head_is_its_slope, noisy, quiet),
        cmocka_unit_test_setup_teardown(gradient_of_the_noise_head_is_its_slope, noisy_natural, quiet),
        cmocka_unit_test(a_noise_head_needs_degree_1),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
