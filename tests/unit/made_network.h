/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/made_network.h - gives a model file the network that its settings and inputs describe, with random weights. */
#ifndef TESTS_MADE_NETWORK_H
#define TESTS_MADE_NETWORK_H

#include "models/files/model_file.h"

static inline bool made_network(nn_model_file *m, uint64_t seed, pl_arena *mem)
{
    nn_se3 *model;

    m->conf.node_features = nn_inputs_node_features(&m->inputs);
    m->conf.edge_features = nn_inputs_edge_features(&m->inputs);
    if (nn_se3_plan(&model, &m->conf, mem, NULL) != PL_OK || (m->params = PL_NEW(mem, float, model->n_floats)) == NULL)
        return false;
    m->model = model;
    nn_se3_init(model, m->params, seed);
    return true;
}

#endif
