/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/errors/calibrate.h"

#include <math.h>

#include "stages/steps/errors/cases.h"
#include "stages/steps/errors/domain.h"

static pl_code outside_find(bool *outside, const st_errors *e, st_cases *cases, const st_dataset *d, const nn_model_file *m,
                            int32_t target, pl_error *err)
{
    pl_arena *scratch = pl_arena_new(1 << 14);
    pl_text why = { 0 };
    pl_code code = scratch != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "the domain of a model");

    for (int64_t i = 0; i < e->model.n && code == PL_OK; i++) {
        nn_traits traits;
        nn_case one;
        pl_arena_reset(scratch);
        pl_text_reset(&why);
        code = nn_traits_of(&traits, d->item[e->at[i]].graph, scratch, err);
        if (code == PL_OK)
            code = st_cases_read(&one, cases, &d->mol_id[e->at[i]], 1, err);
        if (code != PL_OK)
            break;
        one.traits = &traits;
        one.alike = e->alike != NULL ? e->alike[i] : NAN;
        nn_model_reasons(&why, m, target, &one, d->item[e->at[i]].column);
        outside[i] = why.len > 0;
        code = pl_text_ok(&why) ? PL_OK : pl_fail(err, PL_ENOMEM, "the domain of a model");
    }
    pl_text_free(&why);
    pl_arena_free(scratch);
    return code;
}

pl_code st_errors_domain(st_errors *e, int32_t k, const pl_env *env, const st_dataset *d, const nn_model_file *m, pl_error *err)
{
    st_cases cases = { 0 };
    bool *outside = PL_NEW(d->mem, bool, e->model.n + 1);
    pl_code code = outside != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "the domain of a model");

    if (code != PL_OK || m->range.molecules == 0)
        return code;
    code = st_cases_open(&cases, env, err);
    if (code == PL_OK)
        code = outside_find(outside, e, &cases, d, m, k, err);
    e->outside = outside;
    st_cases_close(&cases);
    return code;
}

pl_code st_calibrate(nn_model_file *m, int32_t k, st_errors *e, st_part part, const pl_env *env, const st_dataset *d, pl_error *err)
{
    nn_target *t = &m->target[k];
    double *y = PL_NEW(d->mem, double, 3 * (e->model.n + 1)), *p = y + e->model.n + 1, *alike = p + e->model.n + 1;
    int64_t n = 0;
    pl_code code =
        y != NULL ? nn_conformal_lowest(&t->lowest, e->alike, e->model.n, d->mem, err) : pl_fail(err, PL_ENOMEM, "an interval");

    t->interval = (nn_conformal){ .part = st_part_name[part] };
    if (code == PL_OK)
        code = st_errors_domain(e, k, env, d, m, err);
    if (code != PL_OK || m->classifies)
        return code;
    for (int64_t i = 0; i < e->model.n; i++) {
        if (e->outside != NULL && e->outside[i])
            continue;
        y[n] = e->measured[i];
        p[n] = e->predicted[i];
        alike[n++] = e->alike[i];
    }
    return nn_conformal_fit(&t->interval, y, p, alike, n, d->mem, err);
}

/* Whether a molecule that has another target lacks it: in any part, so that a file tells it even where no training molecule does. */
static bool has_gaps(const st_dataset *d, int32_t target)
{
    for (int64_t i = 0; i < d->n; i++)
        if (isnan(st_dataset_value(d, i, target)) && st_dataset_is_labelled(d, i))
            return true;
    return false;
}

pl_code st_ranges_make(nn_model_file *m, const pl_env *env, const st_samples *s, pl_error *err)
{
    const int32_t n = s->d->n_targets;
    nn_range *range = PL_NEW(env->mem, nn_range, n + 1);
    bool *own = PL_NEW(env->mem, bool, n);
    pl_code code;

    if (range == NULL || own == NULL)
        return pl_fail(err, PL_ENOMEM, "the range of a model");
    for (int32_t k = 0; k < n; k++)
        own[k] = has_gaps(s->d, k);
    code = st_range_make(range, own, env, s, err);
    if (code != PL_OK)
        return code;
    m->range = range[0];
    for (int32_t k = 0; k < n; k++)
        m->target[k].range = range[1 + k].molecules > 0 ? &range[1 + k] : NULL;
    return PL_OK;
}

/* Of those with target k; never wider than of all. */
static bool columns_of(nn_limits *out, const nn_inputs *in, const st_samples *s, int32_t k, float *value)
{
    int64_t n = 0;

    for (int32_t c = 0; c < in->n_columns; c++) {
        const nn_input_column *all = &in->column[c];
        n = 0;
        for (int64_t i = 0; i < s->n; i++)
            if (!isnan(st_dataset_value(s->d, s->at[i], k)))
                value[n++] = s->d->item[s->at[i]].column[all->at];
        if (n == 0)
            return false;
        nn_input_column_limits(&out[c].low, &out[c].high, value, n);
        if (fmax(out[c].low, all->low) <= fmin(out[c].high, all->high))
            out[c] = (nn_limits){ fmax(out[c].low, all->low), fmin(out[c].high, all->high) };
    }
    return n > 0;
}

static pl_code columns_make(nn_model_file *m, const st_samples *s, pl_error *err)
{
    const int32_t n = s->d->n_targets, n_columns = m->inputs.n_columns;
    nn_limits *limits = PL_NEW(s->d->mem, nn_limits, n * n_columns + 1);
    float *value = PL_NEW(s->d->mem, float, s->n + 1);

    if (limits == NULL || value == NULL)
        return pl_fail(err, PL_ENOMEM, "the columns of a model");
    for (int32_t k = 0; k < n && n_columns > 0; k++) {
        nn_limits *own = limits + k * n_columns;
        m->target[k].columns = has_gaps(s->d, k) && columns_of(own, &m->inputs, s, k, value) ? own : NULL;
    }
    return PL_OK;
}

pl_code st_limits_make(nn_model_file *m, const pl_env *env, const st_dataset *d, const st_samples *measured,
                       const nn_model_file *start, int64_t max, pl_error *err)
{
    pl_code code = st_domain_make(&m->domain, env, measured, max, err);

    if (code == PL_OK)
        code = st_seen_make(&m->seen, env, d, start, max, err);
    if (code == PL_OK)
        code = st_ranges_make(m, env, measured, err);
    return code == PL_OK ? columns_make(m, measured, err) : code;
}
