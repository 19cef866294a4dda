/* SPDX-License-Identifier: Apache-2.0 */
#include "golden/appendix.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pipeline/base/rng.h"

enum { NODES = APPENDIX_NODES, EDGES = 10, GRAPHS = APPENDIX_GRAPHS, FEATURES = 6 };

static const double position[NODES][3] = {
    { .10, -.20, .05 }, { .85, .70, .30 }, { -.95, .10, -.35 }, { .40, -1.10, .60 },
    { 2, 1, -1 },       { 2.7, 1.5, -.6 }, { 1.5, .4, -.4 },
};
static const double node[NODES][FEATURES] = {
    { 0, 1, 0, 0, 0, 6 }, { 0, 0, 0, 1, 0, 8 }, { 1, 0, 0, 0, 0, 1 }, { 1, 0, 0, 0, 0, 1 },
    { 0, 0, 0, 1, 0, 8 }, { 1, 0, 0, 0, 0, 1 }, { 1, 0, 0, 0, 0, 1 },
};
/* Ordered by destination, then source, as engines want them. */
static const int32_t source[EDGES] = { 1, 2, 3, 0, 0, 0, 5, 6, 4, 4 };
static const int32_t target[EDGES] = { 0, 0, 0, 1, 2, 3, 4, 4, 5, 6 };
static const int bond[EDGES] = { 1, 0, 0, 1, 0, 0, 0, 0, 0, 0 };
static const int32_t first[GRAPHS + 1] = { 0, 4, 7 };
static const double wanted[GRAPHS] = { 0.5, -0.5 };

const double appendix_outputs[3][APPENDIX_GRAPHS] = {
    /* nn_fusion */
    { -2.50349865834, -1.83232331843 },
    { 0.974677010116, -1.29143330231 },
    { 0.830677321804, -0.971003988413 },
};

const appendix_gradient appendix_gradients[] = {
    { "mlp.2.weight", 10.80727284, -0.55151739 },
    { "mlp.0.weight", 11.24016223, 0 },
    { "transformer.graph_modules.14.to_kernel_self.0", 3.347252725, 0 },
    { "transformer.graph_modules.14.conv_out.0.radial_func.net.6.weight", 5.444439456, 0 },
    { "transformer.graph_modules.13.group_norm.weight", 1.107716757, 0 },
    { "transformer.graph_modules.12.to_key_value.conv.radial_func.net.6.weight", 6.113889514, 0 },
    { "transformer.graph_modules.12.to_query.weights.3", 0.09613677509, 0 },
    { "transformer.graph_modules.2.to_key_value.conv.radial_func.net.6.weight", 37.39098986, 0 },
    { "transformer.graph_modules.2.to_key_value.conv.radial_func.net.0.weight", 9.386396171, 1.0500688 },
    { "transformer.graph_modules.2.project.weights.1", 26.22868071, -1.0732608 },
    { "transformer.graph_modules.0.to_key_value.conv.0,3.radial_func.net.6.weight", 39.824585, 0.54713387 },
    { "transformer.graph_modules.0.to_query.weights.0", 36.7971575, 0 },
    { NULL, 0, 0 },
};

static int by_name(const void *a, const void *b)
{
    const nn_param *const *x = a, *const *y = b;

    return strcmp((*x)->name, (*y)->name);
}

static double hashed(uint64_t tensor, uint64_t element)
{
    uint64_t z = pl_splitmix64((tensor << 32) + element);

    return 2.0 * ((double)(z >> 11) * 0x1p-53) - 1.0;
}

static void weights_fill(const nn_se3 *model, double *w, pl_arena *mem)
{
    const nn_param **sorted = PL_NEW(mem, const nn_param *, model->n_params);

    for (int32_t k = 0; k < model->n_params; k++)
        sorted[k] = &model->param[k];
    qsort(sorted, (size_t)model->n_params, sizeof *sorted, by_name);
    for (int32_t k = 0; k < model->n_params; k++) {
        const nn_param *p = sorted[k];
        bool gain = strstr(p->name, ".weight") != NULL;
        for (size_t e = 0; e < p->size; e++) {
            double s = hashed((uint64_t)k, e);
            w[p->at + e] = gain ? 1.0 + 0.2 * s : 0.2 * s;
            if (p->n_dims == 2)
                w[p->at + e] = s * sqrt(3.0 / p->dims[1]);
        }
    }
}

void appendix_open(model_file *f, nn_fusion level, pl_arena *mem)
{
    const nn_se3_conf conf = { .layers = 7,
                               .degrees = 4,
                               .channels = 32,
                               .heads = 8,
                               .channels_div = 2,
                               .norm = true,
                               .layer_norm = true,
                               .pooling = NN_POOL_MAX,
                               .fusion = level,
                               .node_features = FEATURES,
                               .edge_features = 4,
                               .outputs = 1 };
    double *w, *edge = PL_NEW(mem, double, 4 * EDGES);

    *f = (model_file){ .n_graphs = GRAPHS,
                       .n_nodes = NODES,
                       .n_edges = EDGES,
                       .src = source,
                       .dst = target,
                       .first = first,
                       .node = &node[0][0],
                       .edge = edge,
                       .target = wanted,
                       .pos = &position[0][0] };
    assert_int_equal(nn_se3_plan(&f->model, &conf, mem, NULL), PL_OK);
    w = PL_NEW(mem, double, f->model->n_floats);
    f->vec = (double(*)[3])PL_NEW(mem, double, 3 * EDGES);
    assert_true(w && edge && f->vec);
    weights_fill(f->model, w, mem);
    f->w = w;
    for (int e = 0; e < EDGES; e++) {
        edge[4 * e + bond[e]] = 1.0;
        for (int k = 0; k < 3; k++)
            f->vec[e][k] = position[target[e]][k] - position[source[e]][k];
    }
}
