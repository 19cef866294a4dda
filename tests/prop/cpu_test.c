/* SPDX-License-Identifier: Apache-2.0 */
/* Properties that the cpu engine has for any numbers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "models/cpu/kernels/kernels.h"
#include "models/engine/engine.h"
#include "models/network/frame.h"
#include "pipeline/base/rng.h"
#include "twin/made_batch.h"

static const nn_se3_conf conf = { 2, 4, 16, 4, 2, true, true, NN_POOL_MAX, NN_FUSE_FULL, 6, 4, 2, NN_PARITY_BOTH, { 0 }, false };
static const nn_se3_conf conf_deep = {
    2, 5, 4, 2, 2, true, true, NN_POOL_SUM, NN_FUSE_FULL, 6, 4, 2, NN_PARITY_BOTH, { 0 }, false
};
static const made_opts graphs = { 6, 12, 6, 4, 1.7, false, 3 };

static nn_radial radial; /* of every engine that a test opens */
static nn_parity parity; /* of every model */

typedef struct fixture {
    pl_arena *mem;
    nn_se3 *model;
    made_batch m;
    float *params;
} fixture;

typedef struct result {
    float *y, *grad;
    size_t n_y, n_grad;
} result;

static fixture fixture_open(const nn_se3_conf *c, const made_opts *o)
{
    fixture f = { .mem = pl_arena_new(1 << 20) };
    nn_se3_conf of = *c;

    of.parity = parity;
    assert_int_equal(nn_se3_plan(&f.model, &of, f.mem, NULL), PL_OK);
    f.m = made_batch_new(o, f.mem);
    f.params = PL_NEW(f.mem, float, f.model->n_floats);
    nn_se3_init(f.model, f.params, 11);
    return f;
}

static int32_t dy_first; /* which of the outputs' gradients a batch's first has */

static void step_run(const fixture *f, nn_engine *e, const nn_batch *b, result *r)
{
    float *dy = PL_NEW(f->mem, float, r->n_y + 1);
    pl_error err = { 0 };

    for (size_t i = 0; i < r->n_y; i++)
        dy[i] = (float)cos(2.0 * (double)(dy_first + (int32_t)i));
    memset(r->grad, 0, r->n_grad * sizeof *r->grad);
    if (nn_engine_cpu.forward(e, b, true, r->y, &err) != PL_OK || nn_engine_cpu.backward(e, b, dy, r->grad, &err) != PL_OK)
        fail_msg("%s", err.text);
}

static result result_new(const fixture *f, const nn_batch *b)
{
    size_t n = (size_t)(b->n_graphs * f->model->conf.outputs);

    return (result){ PL_NEW(f->mem, float, n + 1), PL_NEW(f->mem, float, f->model->n_floats), n, f->model->n_floats };
}

static nn_engine *engine_new(const fixture *f, int threads)
{
    nn_engine *e;
    nn_engine_conf c = { .threads = threads, .radial = radial, .width = 0.01 };

    assert_int_equal(nn_engine_cpu.open(&e, f->model, &c, NULL), PL_OK);
    assert_int_equal(nn_engine_cpu.set_params(e, f->params, NULL), PL_OK);
    return e;
}

static result engine_run(const fixture *f, const nn_batch *b, int threads)
{
    result r = result_new(f, b);
    nn_engine *e = engine_new(f, threads);

    step_run(f, e, b, &r);
    nn_engine_cpu.close(e);
    return r;
}

static void near(const float *a, const float *b, size_t n, double tol)
{
    double scale = 0;

    for (size_t i = 0; i < n; i++)
        scale = fmax(scale, fabs((double)b[i]));
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)a[i] - b[i]) <= tol * scale))
            fail_msg("number %zu is %.9g, should be %.9g (largest %.3g)", i, (double)a[i], (double)b[i], scale);
}

static void results_near(const result *a, const result *b, double tol)
{
    near(a->y, b->y, a->n_y, tol);
    near(a->grad, b->grad, a->n_grad, 20 * tol);
}

static void results_equal(const result *a, const result *b)
{
    assert_memory_equal(a->y, b->y, a->n_y * sizeof *a->y);
    assert_memory_equal(a->grad, b->grad, a->n_grad * sizeof *a->grad);
}

/* ---- threads and batches -------------------------------------------------------------- */

static void one_two_and_five_threads_give_the_same_bits(void **state)
{
    fixture f = fixture_open(&conf, &(made_opts){ 40, 16, 6, 4, 1.7, false, 8 });
    result one = engine_run(&f, &f.m.b, 1), two = engine_run(&f, &f.m.b, 2), five = engine_run(&f, &f.m.b, 5);
    (void)state;

    assert_true(f.m.b.n_pairs > 300);
    results_equal(&one, &two);
    results_equal(&one, &five);
    pl_arena_free(f.mem);
}

static void every_set_of_kernels_gives_nearly_the_same(void **state)
{
    static const char *const names[] = { "portable", "avx2", "avx512", "amx" };
    fixture f = fixture_open(&conf, &graphs);
    result base = engine_run(&f, &f.m.b, 1);
    (void)state;

    for (int i = 0; i < 4; i++) {
        result r;
        if (nn_cpu_kernels_find(names[i]) == NULL)
            continue;
        setenv("MOLSIEVE_CPU", names[i], 1);
        assert_string_equal(nn_cpu_kernels_name(), names[i]);
        r = engine_run(&f, &f.m.b, 2);
        results_near(&r, &base, 5e-6);
    }
    unsetenv("MOLSIEVE_CPU");
    pl_arena_free(f.mem);
}

static void a_pinned_set_of_kernels_computes_or_is_refused(void **state)
{
    const nn_cpu_kernels *k;
    pl_error err = { 0 };
    (void)state;

    assert_int_equal(nn_cpu_kernels_pick(&k, "portable", NULL), PL_OK);
    assert_string_equal(k->name, "portable");
    assert_int_equal(nn_cpu_kernels_pick(&k, "mmx", &err), PL_ECONFIG);
    assert_non_null(strstr(err.text, "kernels: mmx needs"));
    setenv("MOLSIEVE_CPU", "portable", 1);
    assert_int_equal(nn_cpu_kernels_pick(&k, NULL, NULL), PL_OK);
    assert_string_equal(k->name, "portable");
    assert_int_equal(nn_cpu_kernels_pick(&k, "portable", NULL), PL_OK);
    if (nn_cpu_kernels_find("avx2") != NULL)
        assert_int_equal(nn_cpu_kernels_pick(&k, "avx2", &err), PL_ECONFIG);
    unsetenv("MOLSIEVE_CPU");
}

/* Graph g of a batch as a batch of its own; arrays in mem. */
static nn_batch graph_alone(const nn_batch *b, int32_t g, pl_arena *mem)
{
    int32_t n0 = b->first[g], e0 = b->row[n0], e1 = b->row[b->first[g + 1]], p = 0;
    int32_t *first = PL_NEW(mem, int32_t, 2), *at = PL_NEW(mem, int32_t, 5 * (e1 - e0) + 1);
    int32_t *src = at, *dst = src + e1 - e0, *rev = dst + e1 - e0, *pair = rev + e1 - e0, *pe = pair + e1 - e0;
    nn_batch one = *b;

    for (int32_t e = e0; e < e1; e++) {
        src[e - e0] = b->src[e] - n0;
        dst[e - e0] = b->dst[e] - n0;
        rev[e - e0] = b->rev[e] < 0 ? -1 : b->rev[e] - e0;
        if (b->pair_edge[b->pair[e]] == e)
            pe[p++] = e - e0;
    }
    for (int32_t e = 0; e < e1 - e0; e++)
        for (int32_t k = 0; k < p; k++)
            if (pe[k] == e || (rev[pe[k]] == e && b->pair[e0 + pe[k]] == b->pair[e0 + e]))
                pair[e] = k;
    one.n_graphs = 1;
    one.n_nodes = first[1] = b->first[g + 1] - n0;
    one.n_edges = e1 - e0;
    one.n_pairs = p;
    one.first = first;
    one.src = src;
    one.dst = dst;
    one.rev = rev;
    one.pair = pair;
    one.pair_edge = pe;
    one.row = NULL;
    one.node += n0 * b->n_node_features;
    one.edge += e0 * b->n_edge_features;
    one.vec += e0;
    one.dist += e0;
    return one;
}

static void a_molecule_has_the_same_bits_alone_and_in_a_batch(void **state)
{
    fixture f = fixture_open(&conf, &graphs);
    result all = engine_run(&f, &f.m.b, 2);
    (void)state;

    for (int32_t g = 0; g < f.m.b.n_graphs; g++) {
        nn_batch one = graph_alone(&f.m.b, g, f.mem);
        result r = engine_run(&f, &one, 1);
        assert_memory_equal(r.y, all.y + g * f.model->conf.outputs, sizeof(float) * (size_t)f.model->conf.outputs);
    }
    pl_arena_free(f.mem);
}

static void the_gradient_of_a_batch_is_the_sum_of_its_molecules(void **state)
{
    static const made_opts many = { 30, 14, 6, 4, 1.9, false, 3 };
    fixture f = fixture_open(&conf, &many);
    result all, sum;
    (void)state;

    made_batch_snap(&f.m, 0.125);
    all = engine_run(&f, &f.m.b, 1);
    sum = result_new(&f, &f.m.b);
    for (int32_t g = 0; g < f.m.b.n_graphs; g++) {
        nn_batch one = graph_alone(&f.m.b, g, f.mem);
        dy_first = g * f.model->conf.outputs;
        result r = engine_run(&f, &one, 1);
        for (size_t i = 0; i < r.n_grad; i++)
            sum.grad[i] += r.grad[i];
    }
    dy_first = 0;
    for (int32_t i = 0; i < f.model->n_params; i++)
        near(all.grad + f.model->param[i].at, sum.grad + f.model->param[i].at, f.model->param[i].size, 2e-5);
    pl_arena_free(f.mem);
}

static void a_second_step_adds_the_same_gradient_and_needs_no_memory(void **state)
{
    fixture f = fixture_open(&conf, &graphs);
    nn_engine *e = engine_new(&f, 2);
    result a = result_new(&f, &f.m.b), b = result_new(&f, &f.m.b);
    nn_batch one = graph_alone(&f.m.b, 3, f.mem);
    result small = result_new(&f, &one);
    size_t bytes;
    (void)state;

    step_run(&f, e, &f.m.b, &a);
    bytes = nn_engine_cpu.workspace_bytes(e);
    step_run(&f, e, &one, &small);
    step_run(&f, e, &f.m.b, &b);
    results_equal(&a, &b);
    assert_int_equal(nn_engine_cpu.workspace_bytes(e), bytes);
    assert_int_equal(nn_engine_cpu.forward(e, &f.m.b, false, b.y, NULL), PL_OK);
    assert_memory_equal(a.y, b.y, a.n_y * sizeof *a.y);
    assert_int_equal(nn_engine_cpu.backward(e, &f.m.b, a.y, b.grad, NULL), PL_EBUG);
    nn_engine_cpu.close(e);
    pl_arena_free(f.mem);
}

/* Two steps with other parameters between, and a forward without keep in the middle. */
static size_t recompute_run(const fixture *f, bool recompute, nn_precision p, result r[2])
{
    nn_engine_conf c = {
        .threads = 2, .radial = radial, .width = 0.01, .of_radial = p, .of_contract = p, .of_linear = p, .recompute = recompute
    };
    float *other = PL_NEW(f->mem, float, f->model->n_floats);
    nn_engine *e;
    size_t bytes;

    nn_se3_init(f->model, other, 12);
    assert_int_equal(nn_engine_cpu.open(&e, f->model, &c, NULL), PL_OK);
    assert_int_equal(nn_engine_cpu.set_params(e, other, NULL), PL_OK);
    step_run(f, e, &f->m.b, &r[0]);
    assert_int_equal(nn_engine_cpu.set_params(e, f->params, NULL), PL_OK);
    assert_int_equal(nn_engine_cpu.forward(e, &f->m.b, false, r[1].y, NULL), PL_OK);
    step_run(f, e, &f->m.b, &r[1]);
    bytes = nn_engine_cpu.workspace_bytes(e);
    nn_engine_cpu.close(e);
    return bytes;
}

static void recompute_gives_the_same_bits_in_less_memory(void **state)
{
    static const nn_se3_conf net[] = {
        { 3, 4, 16, 4, 2, true, true, NN_POOL_MAX, NN_FUSE_FULL, 6, 4, 2, NN_PARITY_BOTH, { 0 }, false },
        { 3, 3, 8, 2, 2, false, false, NN_POOL_SUM, NN_FUSE_NONE, 6, 4, 2, NN_PARITY_BOTH, { 0 }, false }
    };
    (void)state;

    for (int i = 0; i < 6; i++) {
        nn_precision p = (nn_precision)(i / 2);
        fixture f = fixture_open(&net[i % 2], &graphs);
        result all[2] = { result_new(&f, &f.m.b), result_new(&f, &f.m.b) };
        result again[2] = { result_new(&f, &f.m.b), result_new(&f, &f.m.b) };
        size_t bytes = recompute_run(&f, false, p, all), less = recompute_run(&f, true, p, again);
        results_equal(&all[0], &again[0]);
        results_equal(&all[1], &again[1]);
        assert_memory_not_equal(all[0].grad, all[1].grad, all[0].n_grad * sizeof *all[0].grad);
        assert_true(less < bytes);
        pl_arena_free(f.mem);
    }
}

/* ---- pairs and frames ------------------------------------------------------------------ */

static void sharing_a_pair_changes_nothing(void **state)
{
    fixture f = fixture_open(&conf, &graphs);
    nn_batch alone = f.m.b;
    result shared = engine_run(&f, &f.m.b, 1), r;
    (void)state;

    alone.pair = alone.pair_edge = alone.rev = NULL; /* every edge its own pair */
    r = engine_run(&f, &alone, 1);
    results_near(&r, &shared, 5e-6);
    pl_arena_free(f.mem);
}

static void pointing_a_pair_the_other_way_changes_nothing(void **state)
{
    fixture f = fixture_open(&conf_deep, &graphs);
    nn_batch turned = f.m.b;
    int32_t *first = PL_NEW(f.mem, int32_t, turned.n_pairs + 1);
    result plain = engine_run(&f, &f.m.b, 1), r;
    (void)state;

    for (int32_t p = 0; p < turned.n_pairs; p++)
        first[p] = turned.rev[turned.pair_edge[p]] >= 0 ? turned.rev[turned.pair_edge[p]] : turned.pair_edge[p];
    turned.pair_edge = first;
    r = engine_run(&f, &turned, 1);
    results_near(&r, &plain, 5e-6);
    pl_arena_free(f.mem);
}

/* The frames of the batch, each rolled about its edge by `angle` times a random number. */
static float *frames_of(const fixture *f, double angle)
{
    const nn_batch *b = &f->m.b;
    float *out = PL_NEW(f->mem, float, (size_t)b->n_pairs *NN_FRAME_FLOATS + 1);
    pl_rng rng = pl_rng_at(4, 0, 0);
    nn_frame_rule rule;

    nn_frame_rule_make(&rule);
    for (int32_t p = 0; p < b->n_pairs; p++) {
        float *d = out + (size_t)p * NN_FRAME_FLOATS;
        double a = angle * pl_rng_real(&rng), c = cos(a), s = sin(a);
        nn_frame_make(&rule, b->vec[b->pair_edge[p]], 1, d);
        for (int i = 0; i < 3; i++) { /* columns x and z turn about the axis y */
            double x = d[3 * i], z = d[3 * i + 2];
            d[3 * i] = (float)(c * x + s * z);
            d[3 * i + 2] = (float)(c * z - s * x);
        }
        nn_frame_extend(&rule, 2, 3, d);
    }
    return out;
}

static void stored_frames_give_what_computed_ones_give(void **state)
{
    fixture f = fixture_open(&conf_deep, &graphs);
    result plain = engine_run(&f, &f.m.b, 1), r;
    (void)state;

    f.m.b.frame = frames_of(&f, 0);
    r = engine_run(&f, &f.m.b, 1);
    results_near(&r, &plain, 2e-6);
    pl_arena_free(f.mem);
}

static void the_roll_of_a_frame_changes_nothing(void **state)
{
    fixture f = fixture_open(&conf_deep, &graphs);
    result plain = engine_run(&f, &f.m.b, 1), r;
    (void)state;

    f.m.b.frame = frames_of(&f, 6.283);
    r = engine_run(&f, &f.m.b, 1);
    results_near(&r, &plain, 5e-6);
    pl_arena_free(f.mem);
}

/* ---- symmetry ---------------------------------------------------------------------------- */

static void rotating_and_moving_a_molecule_changes_nothing(void **state)
{
    const float q[3][3] = { { 0.36f, 0.48f, -0.8f }, { -0.8f, 0.6f, 0.0f }, { 0.48f, 0.64f, 0.6f } };
    fixture f = fixture_open(&conf_deep, &graphs);
    result plain = engine_run(&f, &f.m.b, 1), r;
    (void)state;

    for (int32_t i = 0; i < f.m.b.n_nodes; i++) {
        float old[3] = { f.m.xyz[i][0], f.m.xyz[i][1], f.m.xyz[i][2] };
        for (int k = 0; k < 3; k++)
            f.m.xyz[i][k] = q[k][0] * old[0] + q[k][1] * old[1] + q[k][2] * old[2] + 1.5f;
    }
    made_batch_move(&f.m);
    r = engine_run(&f, &f.m.b, 1);
    results_near(&r, &plain, 2e-5);
    pl_arena_free(f.mem);
}

static void a_gradient_is_the_slope_of_the_output(void **state)
{
    nn_se3_conf smooth = { 1, 3, 8, 2, 2, true, true, NN_POOL_SUM, NN_FUSE_FULL, 6, 4, 1, NN_PARITY_BOTH, { 0 }, false };
    fixture f = fixture_open(&smooth, &graphs);
    result r = engine_run(&f, &f.m.b, 1);
    double along = 0, change = 0;
    float *dir = PL_NEW(f.mem, float, f.model->n_floats), *y[2];
    (void)state;

    for (size_t i = 0; i < f.model->n_floats; i++) {
        dir[i] = (float)sin(1.7 * (double)i);
        along += (double)dir[i] * r.grad[i];
    }
    for (int s = 0; s < 2; s++) {
        for (size_t i = 0; i < f.model->n_floats; i++)
            f.params[i] += (s ? -2e-4f : 1e-4f) * dir[i];
        y[s] = engine_run(&f, &f.m.b, 1).y;
    }
    for (size_t i = 0; i < r.n_y; i++)
        change += cos(2.0 * (double)i) * ((double)y[0][i] - y[1][i]) / 2e-4;
    if (!(fabs(change - along) <= 0.02 * fabs(along)))
        fail_msg("slope %g, gradient says %g", change, along);
    pl_arena_free(f.mem);
}

/* The molecule reflected, then also turned: scores and gradients are equal to rounding. */
static void mirror_images_have_the_same_scores_and_gradients(void **state)
{
    fixture f = fixture_open(&conf_deep, &graphs);
    result a = engine_run(&f, &f.m.b, 1), b;
    (void)state;

    for (int32_t i = 0; i < f.m.b.n_nodes; i++)
        f.m.xyz[i][1] = -f.m.xyz[i][1];
    made_batch_move(&f.m);
    b = engine_run(&f, &f.m.b, 1);
    results_near(&b, &a, 2e-5);
    pl_arena_free(f.mem);
}

static int set(nn_radial r, nn_parity p)
{
    radial = r;
    parity = p;
    return 0;
}

static int exact(void **state)
{
    (void)state;
    return set(NN_RADIAL_EXACT, NN_PARITY_BOTH);
}

static int nodes(void **state)
{
    (void)state;
    return set(NN_RADIAL_NODES, NN_PARITY_BOTH);
}

static int natural_exact(void **state)
{
    (void)state;
    return set(NN_RADIAL_EXACT, NN_PARITY_NATURAL);
}

static int natural_nodes(void **state)
{
    (void)state;
    return set(NN_RADIAL_NODES, NN_PARITY_NATURAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(one_two_and_five_threads_give_the_same_bits, exact),
        cmocka_unit_test_setup(one_two_and_five_threads_give_the_same_bits, nodes),
        cmocka_unit_test_setup(one_two_and_five_threads_give_the_same_bits, natural_exact),
        cmocka_unit_test_setup(one_two_and_five_threads_give_the_same_bits, natural_nodes),
        cmocka_unit_test(a_pinned_set_of_kernels_computes_or_is_refused),
        cmocka_unit_test_setup(every_set_of_kernels_gives_nearly_the_same, exact),
        cmocka_unit_test_setup(every_set_of_kernels_gives_nearly_the_same, nodes),
        cmocka_unit_test_setup(every_set_of_kernels_gives_nearly_the_same, natural_exact),
        cmocka_unit_test_setup(every_set_of_kernels_gives_nearly_the_same, natural_nodes),
        cmocka_unit_test_setup(a_molecule_has_the_same_bits_alone_and_in_a_batch, exact),
        cmocka_unit_test_setup(a_molecule_has_the_same_bits_alone_and_in_a_batch, nodes),
        cmocka_unit_test_setup(a_molecule_has_the_same_bits_alone_and_in_a_batch, natural_exact),
        cmocka_unit_test_setup(a_molecule_has_the_same_bits_alone_and_in_a_batch, natural_nodes),
        cmocka_unit_test_setup(the_gradient_of_a_batch_is_the_sum_of_its_molecules, exact),
        cmocka_unit_test_setup(the_gradient_of_a_batch_is_the_sum_of_its_molecules, nodes),
        cmocka_unit_test_setup(the_gradient_of_a_batch_is_the_sum_of_its_molecules, natural_exact),
        cmocka_unit_test_setup(the_gradient_of_a_batch_is_the_sum_of_its_molecules, natural_nodes),
        cmocka_unit_test_setup(a_second_step_adds_the_same_gradient_and_needs_no_memory, exact),
        cmocka_unit_test_setup(a_second_step_adds_the_same_gradient_and_needs_no_memory, nodes),
        cmocka_unit_test_setup(a_second_step_adds_the_same_gradient_and_needs_no_memory, natural_exact),
        cmocka_unit_test_setup(a_second_step_adds_the_same_gradient_and_needs_no_memory, natural_nodes),
        cmocka_unit_test_setup(recompute_gives_the_same_bits_in_less_memory, exact),
        cmocka_unit_test_setup(recompute_gives_the_same_bits_in_less_memory, nodes),
        cmocka_unit_test_setup(recompute_gives_the_same_bits_in_less_memory, natural_exact),
        cmocka_unit_test_setup(recompute_gives_the_same_bits_in_less_memory, natural_nodes),
        cmocka_unit_test_setup(sharing_a_pair_changes_nothing, exact),
        cmocka_unit_test_setup(sharing_a_pair_changes_nothing, nodes),
        cmocka_unit_test_setup(sharing_a_pair_changes_nothing, natural_exact),
        cmocka_unit_test_setup(sharing_a_pair_changes_nothing, natural_nodes),
        cmocka_unit_test_setup(pointing_a_pair_the_other_way_changes_nothing, exact),
        cmocka_unit_test_setup(pointing_a_pair_the_other_way_changes_nothing, nodes),
        cmocka_unit_test_setup(pointing_a_pair_the_other_way_changes_nothing, natural_exact),
        cmocka_unit_test_setup(pointing_a_pair_the_other_way_changes_nothing, natural_nodes),
        cmocka_unit_test_setup(stored_frames_give_what_computed_ones_give, exact),
        cmocka_unit_test_setup(stored_frames_give_what_computed_ones_give, nodes),
        cmocka_unit_test_setup(stored_frames_give_what_computed_ones_give, natural_exact),
        cmocka_unit_test_setup(stored_frames_give_what_computed_ones_give, natural_nodes),
        cmocka_unit_test_setup(the_roll_of_a_frame_changes_nothing, exact),
        cmocka_unit_test_setup(the_roll_of_a_frame_changes_nothing, nodes),
        cmocka_unit_test_setup(the_roll_of_a_frame_changes_nothing, natural_exact),
        cmocka_unit_test_setup(the_roll_of_a_frame_changes_nothing, natural_nodes),
        cmocka_unit_test_setup(rotating_and_moving_a_molecule_changes_nothing, exact),
        cmocka_unit_test_setup(rotating_and_moving_a_molecule_changes_nothing, nodes),
        cmocka_unit_test_setup(rotating_and_moving_a_molecule_changes_nothing, natural_exact),
        cmocka_unit_test_setup(rotating_and_moving_a_molecule_changes_nothing, natural_nodes),
        cmocka_unit_test_setup(a_gradient_is_the_slope_of_the_output, exact),
        cmocka_unit_test_setup(a_gradient_is_the_slope_of_the_output, nodes),
        cmocka_unit_test_setup(a_gradient_is_the_slope_of_the_output, natural_exact),
        cmocka_unit_test_setup(a_gradient_is_the_slope_of_the_output, natural_nodes),
        cmocka_unit_test_setup(mirror_images_have_the_same_scores_and_gradients, natural_exact),
        cmocka_unit_test_setup(mirror_images_have_the_same_scores_and_gradients, natural_nodes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
