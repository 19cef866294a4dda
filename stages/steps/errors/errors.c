/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/errors/errors.h"

#include <math.h>
#include <stddef.h>

#include "models/training/predict.h"

#define NUMBER(name, has_unit) { #name, offsetof(nn_fit, name), has_unit },
static const struct {
    const char *name;
    size_t at;
    bool has_unit;
} numbers[] = { ST_FIT_NUMBERS(NUMBER) };

const char *st_error_name(int kind)
{
    return kind < ST_ERROR_ROC_AUC ? numbers[kind].name : nn_enrichment_name(kind - ST_ERROR_ROC_AUC);
}

double st_error_value(const nn_fit *f, int kind)
{
    if (kind >= ST_ERROR_ROC_AUC)
        return nn_enrichment_value(&f->order, kind - ST_ERROR_ROC_AUC);
    return *(const double *)(const void *)((const char *)f + numbers[kind].at);
}

bool st_error_has_unit(int kind) { return kind < ST_ERROR_ROC_AUC && numbers[kind].has_unit; }

/* The linear fits are scores, not probabilities. */
static pl_code fit_one(nn_fit *out, const st_judge *j, const st_errors *e, const double *p, bool probabilities, pl_arena *mem,
                       pl_error *err)
{
    return j->m->classifies ? nn_metric_class(out, e->measured, p, e->model.n, probabilities, mem, err)
                            : nn_metric_fit(out, e->measured, p, e->model.n, mem, err);
}

static double value_of(const st_judge *j, int32_t k, const st_samples *s, const float *raw, int64_t i)
{
    const ch_graph *g = s->item[i]->graph;

    return nn_model_value(j->m, k, g->z, g->n_nodes, (double)raw[i * j->d->n_targets + k]);
}

/* The mean over the structures of molecule i, as in `score`. Those but the first come in the order of the molecules, from *next. */
static double mean_value(const st_judge *j, int32_t k, const st_samples *s, const float *raw, int64_t i, int64_t *next)
{
    const int32_t others = j->d->other[s->at[i]].n;
    double sum = value_of(j, k, s, raw, i);

    for (int32_t m = 0; m < others; m++)
        sum += value_of(j, k, s, raw, (*next)++);
    return others ? sum / (1 + others) : sum;
}

/* The molecules that have the target: where they are, what was measured and what is predicted. */
static void pairs_take(st_errors *out, const st_judge *j, int32_t k, const st_samples *s, const float *raw, int64_t *at, double *y,
                       double *p)
{
    int64_t n = 0, next = s->n;

    for (int64_t i = 0; i < s->n; i++) {
        p[n] = mean_value(j, k, s, raw, i, &next);
        y[n] = st_dataset_value(j->d, s->at[i], k);
        if (!isnan(y[n]))
            at[n++] = s->at[i];
    }
    out->at = at;
    out->measured = y;
    out->predicted = p;
    out->model.n = n;
}

static pl_code baselines_of(st_errors *out, const st_judge *j, int32_t k, st_part part, pl_arena *mem, pl_error *err)
{
    double *p = PL_NEW(mem, double, out->model.n + 1);
    pl_code code = p != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "errors of %lld molecules", (long long)out->model.n);

    for (int b = 0; b < ST_BASELINES && code == PL_OK && j->base == NULL; b++)
        code = nn_metric_fit(&out->baseline[b], p, p, 0, mem, err); /* of no molecule: nothing is known */
    if (code != PL_OK || j->base == NULL)
        return code;
    code = st_baselines_look(&j->base[k], part, err);
    for (int b = 0; b < ST_BASELINES && code == PL_OK; b++) {
        for (int64_t i = 0; i < out->model.n; i++)
            p[i] = st_baseline_value(&j->base[k], (st_baseline)b, j->d, out->at[i]);
        code = fit_one(&out->baseline[b], j, out, p, b == ST_BY_MEAN || b == ST_BY_NEIGHBOURS, mem, err);
    }
    return code;
}

static pl_code fits_of(st_errors *out, const st_judge *j, int32_t k, const st_samples *s, const float *raw, st_part part,
                       pl_arena *mem, pl_error *err)
{
    const int64_t max = s->n;
    double *y = PL_NEW(mem, double, max + 1), *p = PL_NEW(mem, double, max + 1);
    int64_t *at = PL_NEW(mem, int64_t, max + 1);
    pl_code code;

    if (y == NULL || p == NULL || at == NULL)
        return pl_fail(err, PL_ENOMEM, "errors of %lld molecules", (long long)max);
    pairs_take(out, j, k, s, raw, at, y, p);
    code = fit_one(&out->model, j, out, p, true, mem, err);
    return code != PL_OK ? code : baselines_of(out, j, k, part, mem, err);
}

pl_code st_errors_find(st_errors *out, const st_judge *j, st_part part, pl_arena *mem, pl_error *err)
{
    const int32_t n_targets = j->d->n_targets;
    st_samples s;
    float *raw;
    pl_code (*predict)(float *, const nn_engine_kind *, nn_engine *, const nn_samples *, int64_t, int64_t, const nn_train_host *,
                       pl_error *);
    pl_code code = st_samples_open(&s, j->d, part, &j->m->inputs, err);

    for (int32_t k = 0; k < n_targets; k++)
        out[k] = (st_errors){ .n_unknown = s.n_unknown };
    if (code == PL_OK) {
        raw = PL_NEW(mem, float, s.samples.n *n_targets + 1);
        predict = nn_mirror_wanted(j->mirror, &j->m->conf) ? nn_predict_average : nn_predict;
        code = raw != NULL ? predict(raw, j->kind, j->engine, &s.samples, j->molecules, j->max_edges, j->host, err)
                           : pl_fail(err, PL_ENOMEM, "errors of %lld molecules", (long long)s.samples.n);
        for (int32_t k = 0; k < n_targets && code == PL_OK; k++)
            code = fits_of(&out[k], j, k, &s, raw, part, mem, err);
    }
    st_samples_close(&s);
    return code;
}

static pl_code mean_of(st_errors *out, const st_errors *const *e, int64_t n, int32_t k, const st_judge *j, pl_arena *mem,
                       pl_error *err)
{
    double *p = PL_NEW(mem, double, e[0][k].model.n + 1);

    *out = e[0][k];
    if (p == NULL)
        return pl_fail(err, PL_ENOMEM, "errors of %lld molecules", (long long)out->model.n);
    for (int64_t i = 0; i < out->model.n; i++) {
        for (int64_t m = 0; m < n; m++)
            p[i] += e[m][k].predicted[i];
        p[i] /= (double)n;
    }
    out->predicted = p;
    return fit_one(&out->model, j, out, p, true, mem, err);
}

pl_code st_errors_mean(st_errors *out, const st_errors *const *e, int64_t n, const st_judge *j, pl_arena *mem, pl_error *err)
{
    pl_code code = PL_OK;

    for (int32_t k = 0; k < j->d->n_targets && code == PL_OK; k++)
        code = mean_of(&out[k], e, n, k, j, mem, err);
    return code;
}
