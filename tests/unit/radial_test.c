/* SPDX-License-Identifier: Apache-2.0 */
/* Radial bases and the envelope (models/network/radial.h), and what an envelope does to a network's predictions
 * when an edge appears at the cutoff. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "models/engine/engine.h"
#include "models/ref/ref.h"

static const nn_radial_conf kinds[] = { { NN_BASIS_DISTANCE, 0, NN_ENVELOPE_POLYNOMIAL, 3.0 },
                                        { NN_BASIS_BESSEL, 8, NN_ENVELOPE_POLYNOMIAL, 3.0 },
                                        { NN_BASIS_GAUSSIAN, 12, NN_ENVELOPE_POLYNOMIAL, 3.0 } };

static void near(const char *what, double got, double want, double tol)
{
    if (!(fabs(got - want) <= tol))
        fail_msg("%s: %.12g, should be %.12g", what, got, want);
}

/* ---- functions of a distance --------------------------------------------- */

static void values_are_those_of_the_formulas(void **state)
{
    const nn_radial_conf bessel = { NN_BASIS_BESSEL, 64, NN_ENVELOPE_NONE, 2.5 }, gauss = { NN_BASIS_GAUSSIAN, 6, 0, 2.5 };
    double v[NN_RADIAL_MAX];
    (void)state;

    for (double r = 0.1; r < 4; r += 0.37) {
        nn_radial_values(&bessel, r, v, NULL);
        for (int n = 1; n <= 64; n++)
            near("bessel", v[n - 1], sqrt(2 / 2.5) * sin(n * acos(-1.0) * r / 2.5) / r, 1e-12);
        nn_radial_values(&gauss, r, v, NULL);
        for (int n = 0; n < 6; n++)
            near("gaussian", v[n], exp(-pow((r - 0.5 * n) / 0.5, 2) / 2), 1e-14);
    }
    assert_int_equal(nn_radial_inputs(&bessel), 64);
    assert_int_equal(nn_radial_inputs(&(nn_radial_conf){ 0 }), 1);
}

static void slopes_are_those_of_differences(void **state)
{
    const double h = 1e-6;
    (void)state;

    for (int k = 0; k < 3; k++)
        for (double r = 0.3; r < 3.4; r += 0.11) {
            double up[NN_RADIAL_MAX], down[NN_RADIAL_MAX], v[NN_RADIAL_MAX], slope[NN_RADIAL_MAX], of_u;
            nn_radial_values(&kinds[k], r, v, slope);
            nn_radial_values(&kinds[k], r + h, up, NULL);
            nn_radial_values(&kinds[k], r - h, down, NULL);
            for (int n = 0; n < nn_radial_inputs(&kinds[k]); n++)
                near("slope", slope[n], (up[n] - down[n]) / (2 * h), 1e-7);
            (void)nn_radial_envelope(&kinds[k], r, &of_u);
            near("envelope", of_u,
                 (nn_radial_envelope(&kinds[k], r + h, NULL) - nn_radial_envelope(&kinds[k], r - h, NULL)) / (2 * h), 1e-8);
        }
}

static void the_envelope_falls_from_1_to_0_with_slope_0(void **state)
{
    const nn_radial_conf *c = &kinds[0];
    double slope, last = 1;
    (void)state;

    for (double r = 0; r < 3.5; r += 0.01) {
        double u = nn_radial_envelope(c, r, &slope);
        assert_true(u >= 0 && u <= last && slope <= 0);
        near("formula", u, r < 3 ? 1 - 28 * pow(r / 3, 6) + 48 * pow(r / 3, 7) - 21 * pow(r / 3, 8) : 0, 1e-13);
        last = u;
    }
    assert_true(nn_radial_envelope(c, 3, &slope) == 0 && slope == 0);
    assert_true(nn_radial_envelope(c, 2.999999, &slope) < 1e-17 && slope > -1e-9);
    assert_true(nn_radial_envelope(&(nn_radial_conf){ 0 }, 100, &slope) == 1 && slope == 0);
    assert_true(isfinite(nn_radial_log_envelope(0)));
}

static void wrong_settings_are_named(void **state)
{
    static const struct {
        nn_radial_conf c;
        const char *what;
    } wrong[] = { { { NN_BASIS_BESSEL, 1, 0, 3 }, "radial.number is 1, must be 2 to 64" },
                  { { NN_BASIS_BESSEL, 65, 0, 3 }, "radial.number is 65, must be 2 to 64" },
                  { { NN_BASIS_GAUSSIAN, 8, 0, 0 }, "radial.cutoff is 0 Angstrom, must be above 0 and at most 1000" },
                  { { NN_BASIS_DISTANCE, 0, 1, NAN }, "radial.cutoff is nan Angstrom" },
                  { { NN_BASIS_DISTANCE, 0, 1, 1000.5 }, "radial.cutoff is 1000.5 Angstrom" },
                  { { 3, 8, 0, 3 }, "radial.basis 3 is not known" },
                  { { 0, 8, 2, 3 }, "radial.envelope 2 is not known" } };
    pl_error err;
    (void)state;

    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        assert_int_equal(nn_radial_check(&wrong[k].c, &err), PL_ECONFIG);
        assert_non_null(strstr(err.text, wrong[k].what));
    }
    assert_int_equal(nn_radial_check(&(nn_radial_conf){ 0 }, &err), PL_OK);
    assert_int_equal(nn_radial_check(&(nn_radial_conf){ NN_BASIS_BESSEL, 2, NN_ENVELOPE_POLYNOMIAL, 1000 }, &err), PL_OK);
    assert_int_equal(nn_radial_check(&(nn_radial_conf){ NN_BASIS_GAUSSIAN, 64, NN_ENVELOPE_NONE, 1e-9 }, &err), PL_OK);
    assert_true(nn_radial_same(&(nn_radial_conf){ 0, 5, 0, 2 }, &(nn_radial_conf){ 0 }));
    assert_false(nn_radial_same(&kinds[1], &kinds[2]));
}

static void radial_functions_are_the_same_if_all_that_they_use_is(void **state)
{
    const nn_radial_conf bessel = { NN_BASIS_BESSEL, 8, NN_ENVELOPE_NONE, 3 }, plain = { 0, 0, NN_ENVELOPE_POLYNOMIAL, 3 };

    (void)state;
    assert_true(nn_radial_same(&bessel, &bessel));
    assert_false(nn_radial_same(&bessel, &(nn_radial_conf){ NN_BASIS_BESSEL, 8, NN_ENVELOPE_NONE, 4 }));
    assert_false(nn_radial_same(&bessel, &(nn_radial_conf){ NN_BASIS_BESSEL, 9, NN_ENVELOPE_NONE, 3 }));
    assert_false(nn_radial_same(&bessel, &(nn_radial_conf){ NN_BASIS_GAUSSIAN, 8, NN_ENVELOPE_NONE, 3 }));
    assert_false(nn_radial_same(&bessel, &(nn_radial_conf){ NN_BASIS_BESSEL, 8, NN_ENVELOPE_POLYNOMIAL, 3 }));
    assert_true(nn_radial_same(&plain, &(nn_radial_conf){ 0, 8, NN_ENVELOPE_POLYNOMIAL, 3 })); /* distances have no number */
    assert_false(nn_radial_same(&plain, &(nn_radial_conf){ 0, 0, NN_ENVELOPE_POLYNOMIAL, 4 }));
}

/* ---- an atom that crosses the cutoff ------------------------------------- */

enum { ATOMS = 4, EDGES = ATOMS * (ATOMS - 1), FEATURES = 3 };

static const double CUTOFF = 3.0;

/* Atoms 0 to 2 are within the cutoff of each other; atom 3 is `r` from atom 0 along x and farther from the others. */
static const float place[ATOMS - 1][3] = { { 0, 0, 0 }, { -0.9f, 0.8f, 0.1f }, { -0.7f, -0.6f, 0.9f } };

static nn_norms norms = NN_NORMS_SE3; /* of the networks that a test makes */

typedef struct molecule {
    float xyz[ATOMS][3], node[ATOMS][FEATURES], vec[EDGES + 1][3], dist[EDGES + 1]; /* the last: a pair that is no edge */
    int32_t src[EDGES + 1], dst[EDGES + 1], first[2];
    nn_batch b;
} molecule;

/* The graph of all pairs at or within the cutoff. */
static void molecule_make(molecule *m, double r)
{
    memset(m, 0, sizeof *m);
    memcpy(m->xyz, place, sizeof place);
    m->xyz[3][0] = (float)r;
    m->first[1] = ATOMS;
    for (int i = 0; i < ATOMS; i++)
        m->node[i][i % FEATURES] = 1;
    m->b = (nn_batch){ .n_graphs = 1, .n_nodes = ATOMS, .n_node_features = FEATURES, .first = m->first, .node = &m->node[0][0] };
    for (int d = 0; d < ATOMS; d++)
        for (int s = 0; s < ATOMS; s++) {
            const int e = m->b.n_edges;
            double sum = 0;
            for (int k = 0; k < 3; k++)
                sum += pow(m->vec[e][k] = m->xyz[d][k] - m->xyz[s][k], 2);
            m->dist[e] = (float)sqrt(sum);
            m->src[e] = s;
            m->dst[e] = d;
            m->b.n_edges += s != d && sqrt(sum) <= CUTOFF;
        }
    m->b.src = m->src;
    m->b.dst = m->dst;
    m->b.vec = (const float(*)[3])m->vec;
    m->b.dist = m->dist;
}

typedef struct network {
    const nn_engine_kind *kind;
    nn_engine *e;
    nn_se3 *model;
    float *params;
    pl_arena *mem;
} network;

static void network_open(network *n, const nn_engine_kind *kind, const nn_radial_conf *radial)
{
    const nn_se3_conf conf = { .layers = 2,
                               .degrees = 3,
                               .channels = 8,
                               .heads = 2,
                               .channels_div = 2,
                               .norm = norms,
                               .layer_norm = true,
                               .pooling = NN_POOL_SUM,
                               .fusion = NN_FUSE_FULL,
                               .node_features = FEATURES,
                               .outputs = 1,
                               .radial = *radial };
    const nn_engine_conf how = { .threads = 1,
                                 .radial = kind == &nn_engine_ref ? NN_RADIAL_EXACT : NN_RADIAL_NODES,
                                 .width = 0.01 };
    pl_error err = { 0 };

    *n = (network){ .kind = kind, .mem = pl_arena_new(1 << 20) };
    if (nn_se3_plan(&n->model, &conf, n->mem, &err) != PL_OK)
        fail_msg("%s", err.text);
    n->params = PL_NEW(n->mem, float, n->model->n_floats);
    nn_se3_init(n->model, n->params, 3);
    for (size_t i = 0; i < n->model->n_floats; i++)
        n->params[i] += 0.1f * (float)sin((double)i);
    if (kind->open(&n->e, n->model, &how, &err) != PL_OK || kind->set_params(n->e, n->params, &err) != PL_OK)
        fail_msg("%s", err.text);
}

static double predict(network *n, double r)
{
    molecule m;
    float y;
    pl_error err = { 0 };

    molecule_make(&m, r);
    if (n->kind->forward(n->e, &m.b, false, &y, &err) != PL_OK)
        fail_msg("%s", err.text);
    return (double)y;
}

static void network_close(network *n)
{
    n->kind->close(n->e);
    pl_arena_free(n->mem);
}

/* The largest change of the prediction over a step of 0.001 Angstrom near the cutoff, and over all of the way. */
static double largest_step(network *n, double *range)
{
    double last = predict(n, CUTOFF - 0.3), low = last, high = last, most = 0;

    for (double r = CUTOFF - 0.3; r < CUTOFF + 0.02; r += 0.001) {
        double y = predict(n, r);
        most = fmax(most, fabs(y - last));
        low = fmin(low, y);
        high = fmax(high, y);
        last = y;
    }
    *range = high - low;
    return most;
}

/* 300 steps: without a jump, none of them has more than a twentieth of the change. */
static void with_an_envelope_the_prediction_is_continuous(void **state)
{
    const nn_engine_kind *const engines[] = { &nn_engine_ref, &nn_engine_cpu };
    (void)state;

    for (int k = 0; k < 6; k++) {
        network n;
        double range, step, just;
        network_open(&n, engines[k % 2], &kinds[k / 2]);
        step = largest_step(&n, &range);
        just = fabs(predict(&n, CUTOFF - 1e-3) - predict(&n, CUTOFF + 1e-3));
        print_message("%s, basis %d: range %.4g, largest step %.3g, at the cutoff %.3g\n", n.kind->name, k / 2, range, step, just);
        assert_true(range > 1e-4 && step < range / 20 && just < 1e-5 * fmax(1, fabs(predict(&n, CUTOFF))));
        network_close(&n);
    }
}

static void the_published_network_jumps(void **state)
{
    static const nn_radial_conf as[] = { { 0 }, { NN_BASIS_BESSEL, 8, NN_ENVELOPE_NONE, 3.0 } };
    (void)state;

    for (int k = 0; k < 2; k++) {
        network n;
        double range, step;
        network_open(&n, &nn_engine_ref, &as[k]);
        step = largest_step(&n, &range);
        print_message("basis %d: range %.4g, largest step %.3g\n", k, range, step);
        assert_true(step > 0.01);
        network_close(&n);
    }
}

/* The largest change of a norm's output when all vectors of a node turn from a small length to the opposite. */
static double turned(bool gate, double length)
{
    enum { CH = 4 };
    pl_arena *mem = pl_arena_new(1 << 16);
    const nn_fiber fiber = { { CH, CH } };
    nn_ref_feat x, y[2];
    nn_se3 *model;
    double *w, most = 0;

    assert_int_equal(gate ? nn_se3_plan_gate(&model, 2, CH, mem, NULL) : nn_se3_plan_norm(&model, fiber, mem, NULL), PL_OK);
    w = PL_NEW(mem, double, model->n_floats);
    for (size_t k = 0; k < model->n_floats; k++)
        w[k] = 0.5 + 0.1 * (double)k;
    assert_int_equal(nn_ref_feat_new(&x, fiber, 1, mem, NULL), PL_OK);
    for (int side = 0; side < 2; side++) {
        for (int k = 0; k < CH; k++)
            x.d[0][k] = sin(k);
        for (int k = 0; k < 3 * CH; k++)
            x.d[1][k] = (side ? -length : length) * cos(k);
        assert_int_equal(nn_ref_feat_new(&y[side], fiber, 1, mem, NULL), PL_OK);
        nn_ref_norm_forward(&(nn_ref_ctx){ .model = model, .w = w, .mem = mem }, &model->module[0].u.norm, &x, &y[side]);
    }
    for (int k = 0; k < 3 * CH; k++)
        most = fmax(most, fabs(y[0].d[1][k] - y[1].d[1][k]));
    pl_arena_free(mem);
    return most;
}

/* NormSE3 gives vectors of any length, however small, the length of its bias. */
static void a_gate_lets_vanishing_vectors_vanish(void **state)
{
    (void)state;
    assert_true(turned(false, 1e-6) > 0.5 && turned(false, 1e-4) > 0.5);
    assert_true(turned(true, 1e-6) < 1e-3 && turned(true, 1e-9) < 1e-6);
}

static void with_a_gate_the_prediction_is_continuous(void **state)
{
    (void)state;
    norms = NN_NORMS_GATE;
    for (int k = 0; k < 2; k++) {
        network n;
        double range, step;
        network_open(&n, k ? &nn_engine_cpu : &nn_engine_ref, &kinds[1]);
        step = largest_step(&n, &range);
        network_close(&n);
        assert_true(range > 1e-4 && step < range / 20);
    }
    norms = NN_NORMS_SE3;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_those_of_the_formulas),
        cmocka_unit_test(slopes_are_those_of_differences),
        cmocka_unit_test(the_envelope_falls_from_1_to_0_with_slope_0),
        cmocka_unit_test(wrong_settings_are_named),
        cmocka_unit_test(radial_functions_are_the_same_if_all_that_they_use_is),
        cmocka_unit_test(with_an_envelope_the_prediction_is_continuous),
        cmocka_unit_test(the_published_network_jumps),
        cmocka_unit_test(a_gate_lets_vanishing_vectors_vanish),
        cmocka_unit_test(with_a_gate_the_prediction_is_continuous),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
