/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/score/evaluate_rows.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define ENSEMBLE "ensemble" /* before the point of a metric */

pl_code st_evaluation_begin(st_evaluation *s, sqlite3 *db, pl_error *err)
{
    pl_code rc = pl_db_begin(db, err);

    if (!rc)
        rc = pl_db_exec(db, "DELETE FROM evaluation; DELETE FROM evaluated", err);
    if (!rc)
        rc = pl_db_prepare(db, &s->put, "INSERT INTO evaluation(model_id,property_id,part,metric,unit,value,n) "
                           "VALUES(?,?,?,?,?,?,?)", err);
    if (!rc)
        rc = pl_db_prepare(db, &s->put_one, "INSERT INTO evaluated(model_id,property_id,mol_id,part,measured,predicted,"
                           "similarity) VALUES(?,?,?,?,?,?,?)", err);
    return rc;
}

void st_evaluation_end(st_evaluation *s)
{
    sqlite3_finalize(s->put);
    sqlite3_finalize(s->put_one);
}

static pl_code row_put(const st_evaluation *s, const st_found *f, const char *metric, bool has_unit, double value, int64_t n, pl_error *err)
{
    if (!isfinite(value))
        return PL_OK;
    (void)sqlite3_bind_int64(s->put, 1, f->model_id);
    (void)sqlite3_bind_int64(s->put, 2, f->property_id);
    (void)sqlite3_bind_text(s->put, 3, st_part_name[f->part], -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(s->put, 4, metric, -1, SQLITE_TRANSIENT);
    if (has_unit)
        (void)sqlite3_bind_text(s->put, 5, f->target->unit, -1, SQLITE_STATIC);
    (void)sqlite3_bind_double(s->put, 6, value);
    (void)sqlite3_bind_int64(s->put, 7, n);
    return pl_db_run(s->put, err);
}

/* "mae", or "mean.mae" for a prediction other than the model's. */
static pl_code fit_put(const st_evaluation *s, const st_found *f, const char *who, const nn_fit *fit, pl_error *err)
{
    pl_code rc = PL_OK;

    for (int k = 0; k < ST_ERROR_KINDS && !rc; k++) {
        char name[48];
        (void)snprintf(name, sizeof name, "%s%s%s", who ? who : "", who ? "." : "", st_error_name(k));
        rc = row_put(s, f, name, st_error_has_unit(k), st_error_value(fit, k), f->e->model.n, err);
    }
    return rc;
}

static pl_code fits_put(const st_evaluation *s, const st_found *f, pl_error *err)
{
    pl_code rc = fit_put(s, f, NULL, &f->e->model, err);

    if (!rc && f->together)
        rc = fit_put(s, f, ENSEMBLE, &f->together->model, err);
    for (int b = 0; b < ST_BASELINES && !rc; b++)
        rc = fit_put(s, f, st_baseline_name[b], &f->e->baseline[b], err);
    return rc;
}

/* The errors in bands of low, middle and high similarity to the training, and the correlation of error with similarity. */
static pl_code bands_put(const st_evaluation *s, const st_found *f, pl_error *err)
{
    const st_errors *e = f->e;
    static const char *const name[] = { "mae.similarity<0.3", "mae.similarity 0.3-0.5", "mae.similarity>=0.5" };
    double sum[3] = { 0 }, *error = PL_NEW(f->d->mem, double, e->model.n + 1);
    int64_t n[3] = { 0 };
    nn_fit fit;
    pl_code rc = error ? PL_OK : pl_fail(err, PL_ENOMEM, "errors of %lld molecules", (long long)e->model.n);

    for (int64_t i = 0; i < e->model.n && !rc; i++) {
        const int k = nn_interval_band(e->alike[i]);
        error[i] = fabs(e->predicted[i] - e->measured[i]);
        sum[k] += error[i];
        n[k]++;
    }
    for (int k = 0; k < 3 && !rc; k++)
        rc = row_put(s, f, name[k], true, n[k] ? sum[k] / (double)n[k] : NAN, n[k], err);
    if (!rc)
        rc = nn_metric_fit(&fit, e->alike, error, e->model.n, f->d->mem, err);
    return rc ? rc : row_put(s, f, "spearman.similarity", false, fit.spearman, e->model.n, err);
}

/* Every molecule of the part, measured and predicted. */
static pl_code molecules_put(const st_evaluation *s, const st_found *f, pl_error *err)
{
    const st_errors *e = f->e;
    pl_code rc = PL_OK;

    for (int64_t i = 0; i < e->model.n && !rc; i++) {
        if (!isfinite(e->predicted[i]))
            continue;
        (void)sqlite3_bind_int64(s->put_one, 1, f->model_id);
        (void)sqlite3_bind_int64(s->put_one, 2, f->property_id);
        (void)sqlite3_bind_int64(s->put_one, 3, f->d->mol_id[e->at[i]]);
        (void)sqlite3_bind_text(s->put_one, 4, st_part_name[f->part], -1, SQLITE_STATIC);
        (void)sqlite3_bind_double(s->put_one, 5, e->measured[i]);
        (void)sqlite3_bind_double(s->put_one, 6, e->predicted[i]);
        (void)sqlite3_bind_double(s->put_one, 7, e->alike[i]); /* NaN is NULL */
        rc = pl_db_run(s->put_one, err);
    }
    return rc;
}

/* ---- the domain ---------------------------------------------------------- */

static bool is_side(const st_errors *e, int64_t i, bool outside) { return e->outside && e->outside[i] == outside; }

/* "mae.domain outside" and so on: the errors of the molecules on one side. */
static pl_code side_put(const st_evaluation *s, const st_found *f, bool outside, pl_error *err)
{
    static const int numbers[] = { ST_ERROR_mae, ST_ERROR_rmse, -1 }, of_classes[] = { ST_ERROR_ROC_AUC, ST_ERROR_brier, -1 };
    const st_errors *e = f->e;
    double *y = PL_NEW(f->d->mem, double, e->model.n + 1), *p = PL_NEW(f->d->mem, double, e->model.n + 1);
    int64_t n = 0;
    nn_fit fit;
    pl_code rc = y && p ? PL_OK : pl_fail(err, PL_ENOMEM, "errors of %lld molecules", (long long)e->model.n);

    for (int64_t i = 0; i < e->model.n && !rc; i++)
        if (is_side(e, i, outside)) {
            y[n] = e->measured[i];
            p[n++] = e->predicted[i];
        }
    if (!rc)
        rc = f->classifies ? nn_metric_class(&fit, y, p, n, true, f->d->mem, err) : nn_metric_fit(&fit, y, p, n, f->d->mem, err);
    for (const int *kind = f->classifies ? of_classes : numbers; *kind >= 0 && !rc; kind++) {
        char name[48];
        (void)snprintf(name, sizeof name, "%s.domain %s", st_error_name(*kind), outside ? "outside" : "inside");
        rc = row_put(s, f, name, st_error_has_unit(*kind), st_error_value(&fit, *kind), n, err);
    }
    return rc;
}

/* The share of measured values within the interval that `score` gives; outside of the domain there is none. */
static pl_code coverage_put(const st_evaluation *s, const st_found *f, const nn_interval *interval, const char *name, pl_error *err)
{
    static const char *const band[] = { "<0.3", " 0.3-0.5", ">=0.5" };
    const st_errors *e = f->e;
    int64_t n[4] = { 0 }, held[4] = { 0 }; /* 3: of all */
    pl_code rc = PL_OK;

    for (int64_t i = 0; i < e->model.n; i++) {
        const double alike = e->alike ? e->alike[i] : NAN, within = nn_interval_within(interval, alike);
        const int k = nn_interval_band(alike);
        const bool holds = fabs(e->predicted[i] - e->measured[i]) <= within;
        if (isnan(within) || is_side(e, i, true))
            continue;
        n[3]++, held[3] += holds;
        n[k]++, held[k] += holds;
    }
    if (n[3])
        rc = row_put(s, f, name, false, (double)held[3] / (double)n[3], n[3], err);
    for (int k = 0; k < 3 && !rc; k++) {
        char metric[48];
        (void)snprintf(metric, sizeof metric, "%s%s", name, band[k]);
        if (n[k])
            rc = row_put(s, f, metric, false, (double)held[k] / (double)n[k], n[k], err);
    }
    return rc;
}

/* The coverage on the part that an interval was made from is no test of it. */
static pl_code domain_put(const st_evaluation *s, const st_found *f, pl_error *err)
{
    const nn_interval *now = &f->target->interval;
    const bool apart = f->part != ST_TRAIN && f->part != ST_CALIBRATION;
    pl_code rc = PL_OK;

    if (apart && now->n > 0 && strcmp(now->part, st_part_name[f->part]) != 0)
        rc = coverage_put(s, f, now, "coverage90", err);
    if (!rc && apart && f->before && f->before->n > 0)
        rc = coverage_put(s, f, f->before, "coverage90 before", err);
    for (int side = 0; side < 2 && !rc && f->e->outside; side++)
        rc = side_put(s, f, side == 1, err);
    return rc;
}

pl_code st_evaluation_put(const st_evaluation *s, const st_found *f, pl_error *err)
{
    pl_code rc = fits_put(s, f, err);

    if (!rc && f->has_domain)
        rc = bands_put(s, f, err);
    if (!rc)
        rc = domain_put(s, f, err);
    return rc ? rc : molecules_put(s, f, err);
}
