/* SPDX-License-Identifier: Apache-2.0 */
/* tests/prop/small_model.h - small models of 1 to 5 degrees and every layout of the radial networks, for laws that hold for all of
 * them. Include it once, after cmocka.h. */
#ifndef TESTS_SMALL_MODEL_H
#define TESTS_SMALL_MODEL_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "models/engine/engine.h"
#include "twin/sample.h"

/* A small model with random weights. */
typedef struct subject {
    pl_arena *mem;
    nn_se3 *model;
    double *w;
} subject;

static nn_parity parity; /* of every model that a test makes */
static bool denoise;     /* likewise */

static inline void subject_make(subject *t, int degrees, nn_fusion fusion, nn_pooling pooling)
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
static inline const nn_ref_run *subject_run(subject *t, const sample *s)
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

static inline void same(const char *what, const double *a, const double *b, int n)
{
    for (int k = 0; k < n; k++)
        if (!(fabs(a[k] - b[k]) <= 1e-11 * (1.0 + fabs(b[k]))))
            fail_msg("%s [%d]: %.15g and %.15g", what, k, a[k], b[k]);
}

typedef void property(subject *t, const sample *s);

/* Every number of degrees with every layout; the kinds of pooling alternate. */
static inline void for_all_models(property *check)
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

static inline int both(void **state)
{
    (void)state;
    parity = NN_PARITY_BOTH;
    return 0;
}

static inline int natural(void **state)
{
    (void)state;
    parity = NN_PARITY_NATURAL;
    return 0;
}

#endif
