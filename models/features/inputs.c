/* SPDX-License-Identifier: Apache-2.0 */
#include "models/features/feature.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chem/molecule/element.h"

nn_inputs nn_inputs_qm9(void) { return (nn_inputs){ .n_elements = 5, .element = { 1, 6, 7, 8, 9 }, .z = true, .bonds = true }; }

int32_t nn_inputs_node_features(const nn_inputs *in)
{
    const int32_t descriptors = in->descriptors ? CH_N_FEATURES : 0;

    return in->n_elements + in->z + in->charge + in->n_columns + descriptors;
}

int32_t nn_inputs_edge_features(const nn_inputs *in) { return in->bonds ? NN_BOND_FEATURES : 0; }

static bool same_moments(const nn_moments *a, const nn_moments *b) { return a->mean == b->mean && a->stdev == b->stdev; }

static bool same_extras(const nn_inputs *a, const nn_inputs *b)
{
    bool same = a->n_columns == b->n_columns && a->descriptors == b->descriptors;

    for (int32_t k = 0; k < a->n_columns && same; k++)
        same = a->column[k].at == b->column[k].at && same_moments(&a->column[k].over, &b->column[k].over);
    for (int k = 0; k < CH_N_FEATURES && same && a->descriptors && a->descriptor != b->descriptor; k++)
        same = a->descriptor != NULL && b->descriptor != NULL && same_moments(&a->descriptor[k], &b->descriptor[k]);
    return same;
}

bool nn_inputs_same(const nn_inputs *a, const nn_inputs *b)
{
    return a->n_elements == b->n_elements && a->z == b->z && a->charge == b->charge && a->bonds == b->bonds &&
           !memcmp(a->element, b->element, (size_t)a->n_elements * sizeof *a->element) && same_extras(a, b);
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
                return pl_fail(err, PL_ECONFIG, "elements: %s is named twice", ch_element_symbol(in->element[i]));
    }
    return PL_OK;
}

int32_t nn_inputs_unknown(const nn_inputs *in, const ch_graph *graph)
{
    for (int32_t i = 0; i < graph->n_nodes && !in->any_element; i++) {
        int32_t k = 0;
        while (k < in->n_elements && in->element[k] != graph->z[i])
            k++;
        if (k == in->n_elements)
            return graph->z[i];
    }
    return 0;
}

/* ---- the user's columns ---- */

enum { EXTREME_MOST = 5 };

static int ascending(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

void nn_input_column_limits(double *low, double *high, float *value, int64_t n)
{
    int64_t least = n / 100;

    if (least < 1)
        least = 1;
    if (least > EXTREME_MOST)
        least = EXTREME_MOST;
    qsort(value, (size_t)n, sizeof *value, ascending);
    *low = (double)value[least - 1];
    *high = (double)value[n - least];
}

pl_code nn_input_column_fit(nn_input_column *c, float *value, int64_t n, pl_error *err)
{
    double sum = 0, square = 0;

    if (n > 0)
        nn_input_column_limits(&c->low, &c->high, value, n);
    if (n == 0 || value[0] == value[n - 1])
        return pl_fail(err, PL_ECONFIG, "the column %s is the same for all %lld training molecules: a model learns nothing from it",
                       c->name, (long long)n);
    for (int64_t i = 0; i < n; i++)
        sum += (double)value[i];
    c->over.mean = sum / (double)n;
    for (int64_t i = 0; i < n; i++)
        square += ((double)value[i] - c->over.mean) * ((double)value[i] - c->over.mean);
    c->over.stdev = sqrt(square / (double)n);
    return PL_OK;
}

pl_code nn_inputs_place(nn_inputs *in, const char *const *name, int32_t n, pl_error *err)
{
    for (int32_t k = 0; k < in->n_columns; k++) {
        int32_t at = 0;
        while (at < n && strcmp(name[at], in->column[k].name) != 0)
            at++;
        if (at == n)
            return pl_fail(err, PL_ECONFIG, "there is no column %s, which the model reads", in->column[k].name);
        in->column[k].at = at;
    }
    return PL_OK;
}
