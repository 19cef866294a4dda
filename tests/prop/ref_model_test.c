/* SPDX-License-Identifier: Apache-2.0 */
/* How outputs and features of a molecule turn with it and with its mirror image, and the noise head. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/prop/small_model.h"

static const double axis[3] = { 0.36, -0.48, 0.8 }, angle = 1.1;

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(outputs_are_invariant_and_features_equivariant, both),
        cmocka_unit_test_setup(outputs_are_invariant_and_features_equivariant, natural),
        cmocka_unit_test_setup(outputs_stay_when_the_molecule_moves, both),
        cmocka_unit_test_setup(outputs_stay_when_the_molecule_moves, natural),
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
