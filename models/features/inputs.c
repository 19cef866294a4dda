/* SPDX-License-Identifier: Apache-2.0 */
#include "models/features/feature.h"

#include <string.h>

nn_inputs nn_inputs_qm9(void) { return (nn_inputs){ .n_elements = 5, .element = { 1, 6, 7, 8, 9 }, .z = true, .bonds = true }; }

int32_t nn_inputs_node_features(const nn_inputs *in) { return in->n_elements + (in->z ? 1 : 0) + (in->charge ? 1 : 0); }

int32_t nn_inputs_edge_features(const nn_inputs *in) { return in->bonds ? NN_BOND_FEATURES : 0; }

bool nn_inputs_same(const nn_inputs *a, const nn_inputs *b)
{
    return a->n_elements == b->n_elements && a->z == b->z && a->charge == b->charge && a->bonds == b->bonds &&
           !memcmp(a->element, b->element, (size_t)a->n_elements * sizeof *a->element);
}

pl_code nn_inputs_check(const nn_inputs *in, pl_error *err)
{
    if (in->n_elements < 1 || in->n_elements > NN_MAX_ELEMENTS)
        return pl_fail(err, PL_ECONFIG, "elements: %d, allowed are 1..%d", in->n_elements, NN_MAX_ELEMENTS);
    for (int32_t i = 0; i < in->n_elements; i++) {
        if (in->element[i] < 1 || in->element[i] > 118)
            return pl_fail(err, PL_ECONFIG, "elements: %d is not an atomic number", in->element[i]);
        for (int32_t j = 0; j < i; j++)
            if (in->element[i] == in->element[j])
                return pl_fail(err, PL_ECONFIG, "elements: %d is named twice", in->element[i]);
    }
    return PL_OK;
}

int32_t nn_inputs_unknown(const nn_inputs *in, const ch_graph *graph)
{
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        int32_t k = 0;
        while (k < in->n_elements && in->element[k] != graph->z[i])
            k++;
        if (k == in->n_elements)
            return graph->z[i];
    }
    return 0;
}
