/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/errors.h"

const char *st_error_name(int kind)
{
    static const char *const name[] = { "mae", "rmse", "interval90", "r2", "spearman", "log_loss", "brier" };

    return kind < ST_ERROR_ROC_AUC ? name[kind] : nn_enrichment_name(kind - ST_ERROR_ROC_AUC);
}

double st_error_value(const nn_fit *f, int kind)
{
    const double value[] = { f->mae, f->rmse, f->interval90, f->r2, f->spearman, f->log_loss, f->brier };

    return kind < ST_ERROR_ROC_AUC ? value[kind] : nn_enrichment_value(&f->order, kind - ST_ERROR_ROC_AUC);
}

bool st_error_has_unit(int kind) { return kind < 3; }

/* The linear fits are scores, not probabilities. */
static pl_code fit_one(nn_fit *out, const st_judge *j, const st_errors *e, const double *p, bool probabilities, pl_arena *mem,
                       pl_error *err)
{
    return j->m->classifies ? nn_metric_class(out, e->measured, p, e->model.n, probabilities, mem, err)
                            : nn_metric_fit(out, e->measured, p, e->model.n, mem, err);
}

static pl_code fits_of(st_errors *out, const st_judge *j, const st_samples *s, const float *raw, pl_arena *mem,
                       pl_error *err)
{
    int64_t n = s->samples.n;
    double *y = PL_NEW(mem, double, n + 1), *p = PL_NEW(mem, double, n + 1), *b_p = PL_NEW(mem, double, n + 1);
    pl_code rc;

    if (!y || !p || !b_p)
        return pl_fail(err, PL_ENOMEM, "errors of %lld molecules", (long long)n);
    for (int64_t i = 0; i < n; i++) {
        const ch_graph *g = j->d->item[s->at[i]].graph;
        y[i] = j->d->value[s->at[i]];
        p[i] = nn_model_value(j->m, g->z, g->n_nodes, (double)raw[i]);
    }
    out->at = s->at;
    out->measured = y;
    out->predicted = p;
    out->model.n = n;
    rc = fit_one(&out->model, j, out, p, true, mem, err);
    for (int b = 0; b < ST_BASELINES && !rc; b++) {
        for (int64_t i = 0; i < n; i++)
            b_p[i] = st_baseline_value(j->base, (st_baseline)b, j->d, s->at[i]);
        rc = fit_one(&out->baseline[b], j, out, b_p, b == ST_BY_MEAN, mem, err);
    }
    return rc;
}

pl_code st_errors_find(st_errors *out, const st_judge *j, st_part part, pl_arena *mem, pl_error *err)
{
    st_samples s;
    float *raw;
    pl_code rc = st_samples_open(&s, j->d, part, &j->m->inputs, err);

    *out = (st_errors){ .n_unknown = s.n_unknown };
    if (!rc) {
        raw = PL_NEW(mem, float, s.samples.n + 1);
        rc = raw ? nn_predict(raw, j->kind, j->engine, &s.samples, j->molecules, j->max_edges, j->host, err)
                 : pl_fail(err, PL_ENOMEM, "errors of %lld molecules", (long long)s.samples.n);
        if (!rc)
            rc = fits_of(out, j, &s, raw, mem, err);
    }
    st_samples_close(&s);
    return rc;
}
