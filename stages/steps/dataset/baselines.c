/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/dataset/baselines.h"

#include <math.h>
#include <string.h>

#include "models/metrics/metric.h"
#include "stages/steps/dataset/neighbours.h"

const char *const st_baseline_name[ST_BASELINES] = { "mean", "composition", "descriptors", "neighbours" };

static void counts_of(double *count, const nn_inputs *in, const ch_graph *g)
{
    int64_t all[256] = { 0 };

    for (int32_t k = 0; k < g->n_nodes; k++)
        all[g->z[k]]++;
    for (int32_t k = 0; k < in->n_elements; k++)
        count[k] = (double)all[in->element[k]];
}

static int32_t n_numbers(const nn_inputs *in) { return ST_DESCRIPTORS + in->n_columns; }

/* The descriptors of a molecule, and the columns that the model reads. */
static void numbers_of(double *to, const nn_inputs *in, const st_dataset *d, int64_t at)
{
    memcpy(to, d->descriptor[at], sizeof d->descriptor[at]);
    for (int32_t k = 0; k < in->n_columns; k++)
        to[ST_DESCRIPTORS + k] = (double)d->item[at].column[in->column[k].at];
}

pl_code st_baselines_fit(st_baselines *b, const st_samples *train, int32_t target, pl_arena *mem, pl_error *err)
{
    const st_dataset *d = train->d;
    int64_t n = train->n, used = 0;
    int32_t k = train->inputs->n_elements;
    double *y = PL_NEW(mem, double, n + 1), *count = PL_NEW(mem, double, n *k + 1), stdev;
    const int32_t width = n_numbers(train->inputs);
    double *descriptor = PL_NEW(mem, double, n *width + 1);
    pl_code code;

    if (y == NULL || count == NULL || descriptor == NULL)
        return pl_fail(err, PL_ENOMEM, "baselines of %lld molecules", (long long)n);
    b->inputs = train->inputs;
    b->target = target;
    b->pool = NULL;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = train->at[i];
        y[used] = st_dataset_value(d, at, target);
        if (isnan(y[used]))
            continue;
        counts_of(count + used * k, train->inputs, d->item[at].graph);
        numbers_of(descriptor + used++ * width, train->inputs, d, at);
    }
    nn_metric_moments(y, used, &b->mean, &stdev);
    code = nn_metric_linear(b->composition, count, y, used, k, mem, err);
    return code != PL_OK ? code : nn_metric_linear(b->descriptors, descriptor, y, used, width, mem, err);
}

pl_code st_baselines_fit_all(st_baselines *b, const st_samples *train, pl_error *err)
{
    pl_code code = PL_OK;

    for (int32_t k = 0; k < train->d->n_targets && code == PL_OK; k++) {
        code = st_baselines_fit(&b[k], train, k, train->d->mem, err);
        if (code == PL_OK)
            code = st_pool_make(&b[k].pool, train, k, k ? b[k - 1].pool : NULL, err);
    }
    return code;
}

pl_code st_baselines_look(const st_baselines *b, st_part part, pl_error *err)
{
    return b->pool != NULL ? st_pool_find(b->pool, part, err) : PL_OK;
}

double st_baseline_value(const st_baselines *b, st_baseline kind, const st_dataset *d, int64_t at)
{
    double count[NN_MAX_ELEMENTS], number[ST_DESCRIPTORS + NN_COLUMNS_MAX];

    if (kind == ST_BY_MEAN)
        return b->mean;
    if (kind == ST_BY_NEIGHBOURS)
        return st_pool_mean(b->pool, at, b->target, b->mean);
    if (kind == ST_BY_DESCRIPTORS) {
        numbers_of(number, b->inputs, d, at);
        return nn_metric_apply(b->descriptors, number, n_numbers(b->inputs));
    }
    counts_of(count, b->inputs, d->item[at].graph);
    return nn_metric_apply(b->composition, count, b->inputs->n_elements);
}
