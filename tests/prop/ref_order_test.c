/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs of a molecule do not depend on the order of its atoms and edges, on the other molecules of the batch, on the layout of the
 * radial networks; and the engine gives them rounded. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/prop/small_model.h"

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
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
