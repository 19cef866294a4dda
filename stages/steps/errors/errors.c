/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/errors/errors.h"

#include <math.h>
#include <stddef.h>

#include "models/family/table.h"
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

/* What a model gives for the molecules of a part. */
typedef struct outputs {
    float *raw;                /* [structures][targets] of the network; NULL: there is none */
    nn_member_outputs members; /* [molecules]; empty: there are none */
} outputs;

const char *st_component_name(const nn_model_file *m, int32_t k) { return k < m->members.n ? m->members.at[k].kind->name : "se3"; }

static double network_value(const st_judge *j, int32_t k, const st_samples *s, const outputs *o, int64_t i)
{
    const ch_graph *g = s->item[i]->graph;

    return o->raw == NULL ? NAN : nn_model_value(j->m, k, g->z, g->n_nodes, (double)o->raw[i * j->d->n_targets + k]);
}

/* The mean over the structures of molecule i, as in `score`. Those but the first come in the order of the molecules, from *next. */
static double network_mean(const st_judge *j, int32_t k, const st_samples *s, const outputs *o, int64_t i, int64_t *next)
{
    const int32_t others = j->d->other[s->at[i]].n;
    double sum = network_value(j, k, s, o, i);

    for (int32_t m = 0; m < others; m++)
        sum += network_value(j, k, s, o, (*next)++);
    return others ? sum / (1 + others) : sum;
}

/* Of one component of the model, or (-1) of their mean. network: its value for the molecule. */
static double value_of(const st_judge *j, int32_t k, const st_samples *s, const outputs *o, int64_t i, int32_t component,
                       double network)
{
    const ch_graph *g = s->item[i]->graph;

    if (component < 0)
        return nn_model_mean(j->m, k, g->z, g->n_nodes, network, &o->members, (int32_t)i);
    if (component >= j->m->members.n)
        return network;
    return nn_model_member_value(j->m, k, g->z, g->n_nodes, o->members.y[component][i * j->d->n_targets + k]);
}

/* The molecules that have the target: where they are, what was measured and what a component predicts (-1: the model). */
static pl_code pairs_take(st_errors *out, const st_judge *j, int32_t k, const st_samples *s, const outputs *o, int32_t component,
                          pl_arena *mem, pl_error *err)
{
    double *y = PL_NEW(mem, double, s->n), *p = PL_NEW(mem, double, s->n);
    int64_t *at = PL_NEW(mem, int64_t, s->n), n = 0, next = s->n;

    if (y == NULL || p == NULL || at == NULL)
        return pl_fail(err, PL_ENOMEM, "errors of %lld molecules", (long long)s->n);
    for (int64_t i = 0; i < s->n; i++) {
        p[n] = value_of(j, k, s, o, i, component, network_mean(j, k, s, o, i, &next));
        y[n] = st_dataset_value(j->d, s->at[i], k);
        if (!isnan(y[n]))
            at[n++] = s->at[i];
    }
    out->at = at;
    out->measured = y;
    out->predicted = p;
    out->model.n = n;
    return PL_OK;
}

static pl_code baselines_of(st_errors *out, const st_judge *j, int32_t k, st_part part, pl_arena *mem, pl_error *err)
{
    double *p = PL_NEW(mem, double, out->model.n + 1);
    pl_code code = PL_OK;

    if (p == NULL)
        return pl_fail(err, PL_ENOMEM, "errors of %lld molecules", (long long)out->model.n);
    for (int b = 0; code == PL_OK && b < ST_BASELINES && j->base == NULL; b++)
        code = nn_metric_fit(&out->baseline[b], p, p, 0, mem, err); /* of no molecule: nothing is known */
    if (j->base == NULL)
        return code;
    code = st_baselines_look(&j->base[k], part, err);
    out->near = p; /* the last baseline */
    for (int b = 0; b < ST_BASELINES && code == PL_OK; b++) {
        for (int64_t i = 0; i < out->model.n; i++)
            p[i] = st_baseline_value(&j->base[k], (st_baseline)b, j->d, out->at[i]);
        code = fit_one(&out->baseline[b], j, out, p, b == ST_BY_MEAN || b == ST_BY_NEIGHBOURS, mem, err);
    }
    return code;
}

/* Of each component of a model that is a mean of several. */
static pl_code components_find(st_errors *out, const st_judge *j, int32_t k, const st_samples *s, const outputs *o, pl_arena *mem,
                               pl_error *err)
{
    pl_code code = PL_OK;

    out->n_components = nn_model_components(j->m) > 1 ? nn_model_components(j->m) : 0;
    for (int32_t c = 0; c < out->n_components && code == PL_OK; c++) {
        st_errors one = { 0 };
        code = pairs_take(&one, j, k, s, o, c, mem, err);
        if (code == PL_OK)
            code = fit_one(&out->component[c], j, &one, one.predicted, true, mem, err);
        out->by[c] = one.predicted;
    }
    return code;
}

static pl_code fits_of(st_errors *out, const st_judge *j, int32_t k, const st_samples *s, const outputs *o, st_part part,
                       pl_arena *mem, pl_error *err)
{
    pl_code code = pairs_take(out, j, k, s, o, -1, mem, err);

    if (code == PL_OK)
        code = fit_one(&out->model, j, out, out->predicted, true, mem, err);
    if (code == PL_OK)
        code = components_find(out, j, k, s, o, mem, err);
    return code != PL_OK ? code : baselines_of(out, j, k, part, mem, err);
}

/* Of the network whose parameters the engine has. */
static pl_code network_run(float *raw, const st_judge *j, const st_samples *s, pl_error *err)
{
    pl_code (*predict)(float *, const nn_engine_kind *, nn_engine *, const nn_samples *, int64_t, int64_t, const nn_train_host *,
                       pl_error *) = nn_mirror_wanted(j->mirror, &j->m->conf) ? nn_predict_average : nn_predict;

    return predict(raw, j->kind, j->engine, &s->samples, j->molecules, j->max_edges, j->host, err);
}

/* The mean of n > 1 networks, as in `score`; the engine has the parameters of the first one before and after. */
static pl_code networks_run(float *raw, const st_judge *j, const st_samples *s, int32_t n, pl_arena *mem, pl_error *err)
{
    const int64_t n_raw = s->samples.n * j->d->n_targets;
    float *one = PL_NEW(mem, float, n_raw);
    pl_code code = one != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "errors of %lld molecules", (long long)s->samples.n);

    for (int32_t k = 1; k < n && code == PL_OK; k++) {
        code = j->kind->set_params(j->engine, nn_model_params(j->m, k), err);
        if (code == PL_OK)
            code = network_run(one, j, s, err);
        for (int64_t i = 0; i < n_raw; i++)
            raw[i] += one[i];
    }
    for (int64_t i = 0; i < n_raw; i++)
        raw[i] /= (float)n;
    return code == PL_OK ? j->kind->set_params(j->engine, nn_model_params(j->m, 0), err) : code;
}

static pl_code outputs_make(outputs *o, const st_judge *j, const st_samples *s, pl_arena *mem, pl_error *err)
{
    const int32_t n = nn_model_networks(j->m);
    pl_code code;

    if (n == 0)
        return PL_OK;
    o->raw = PL_NEW(mem, float, s->samples.n * j->d->n_targets + 1);
    code = o->raw != NULL ? network_run(o->raw, j, s, err)
                          : pl_fail(err, PL_ENOMEM, "errors of %lld molecules", (long long)s->samples.n);
    return code == PL_OK && n > 1 ? networks_run(o->raw, j, s, n, mem, err) : code;
}

pl_code st_dataset_ready(st_dataset *d, nn_model_file *m, pl_error *err)
{
    pl_code code = st_dataset_place(&m->inputs, d, err);

    return code == PL_OK && m->model != NULL && m->inputs.descriptors && (d->n == 0 || d->item[0].feature == NULL)
               ? st_dataset_describe(d, err)
               : code;
}

pl_code st_samples_table(nn_table *out, const st_samples *s, pl_arena *mem, pl_error *err)
{
    const ch_graph **graph = PL_NEW(mem, const ch_graph *, s->n + 1);
    const float **column = PL_NEW(mem, const float *, s->n + 1);
    pl_code code;

    if (graph == NULL || column == NULL)
        return pl_fail(err, PL_ENOMEM, "features of %lld molecules", (long long)s->n);
    for (int64_t i = 0; i < s->n; i++) {
        graph[i] = s->item[i]->graph;
        column[i] = s->item[i]->column;
    }
    code = nn_table_make(out, graph, (int32_t)s->n, mem, err);
    return code == PL_OK ? nn_members_columns(out, s->inputs, column, mem, err) : code;
}

static pl_code members_run(outputs *o, const st_judge *j, const st_samples *s, pl_arena *mem, pl_error *err)
{
    nn_table x;
    pl_code code = j->m->members.n > 0 ? st_samples_table(&x, s, mem, err) : PL_OK;

    return code != PL_OK || j->m->members.n == 0 ? code : nn_members_predict(&o->members, &j->m->members, &x, mem, err);
}

pl_code st_errors_find(st_errors *out, const st_judge *j, st_part part, pl_arena *mem, pl_error *err)
{
    const int32_t n_targets = j->d->n_targets;
    st_samples s = { 0 };
    outputs o = { 0 };
    pl_code code = st_samples_open(&s, j->d, part, &j->m->inputs, err);

    for (int32_t k = 0; k < n_targets; k++)
        out[k] = (st_errors){ .n_unknown = s.n_unknown };
    if (code == PL_OK)
        code = outputs_make(&o, j, &s, mem, err);
    if (code == PL_OK)
        code = members_run(&o, j, &s, mem, err);
    for (int32_t k = 0; k < n_targets && code == PL_OK; k++)
        code = fits_of(&out[k], j, k, &s, &o, part, mem, err);
    st_samples_close(&s);
    return code;
}

static pl_code mean_of(st_errors *out, const st_errors *const *e, int64_t n, int32_t k, const st_judge *j, pl_arena *mem,
                       pl_error *err)
{
    double *p = PL_NEW(mem, double, e[0][k].model.n + 1);

    *out = e[0][k];
    out->n_components = 0;
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

double st_errors_ratio(const st_errors *e, const st_errors *than, int32_t n, int kind)
{
    double sum = 0;
    int32_t n_known = 0;

    for (int32_t k = 0; k < n; k++) {
        const double ratio = st_error_value(&e[k].model, kind) / st_error_value(&than[k].model, kind);
        if (isnan(ratio))
            continue;
        sum += ratio;
        n_known++;
    }
    return n_known > 0 ? sum / n_known : NAN;
}
