/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/score/evaluate_rows.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "stages/steps/errors/by_domain.h"

#define ENSEMBLE "ensemble" /* before the point of a metric */

pl_code st_evaluation_begin(st_evaluation *s, sqlite3 *db, pl_error *err)
{
    pl_code code = pl_db_begin(db, err);

    if (code == PL_OK)
        code = pl_db_exec(db, "DELETE FROM evaluation; DELETE FROM evaluated", err);
    if (code == PL_OK)
        code = pl_db_prepare(db, &s->put,
                             "INSERT INTO evaluation(model_id,property_id,part,metric,unit,value,n) "
                             "VALUES(?,?,?,?,?,?,?)",
                             err);
    if (code == PL_OK)
        code = pl_db_prepare(db, &s->put_one,
                             "INSERT INTO evaluated(model_id,property_id,mol_id,part,measured,predicted,"
                             "similarity) VALUES(?,?,?,?,?,?,?)",
                             err);
    return code;
}

void st_evaluation_end(st_evaluation *s)
{
    sqlite3_finalize(s->put);
    sqlite3_finalize(s->put_one);
}

/* Puts a number that is known if *code is PL_OK, and stores what came of it there. */
static void row_put(const st_evaluation *s, const st_found *f, const char *metric, bool has_unit, double value, int64_t n,
                    pl_code *code, pl_error *err)
{
    if (*code != PL_OK || !isfinite(value))
        return;
    (void)sqlite3_bind_int64(s->put, 1, f->model_id);
    (void)sqlite3_bind_int64(s->put, 2, f->property_id);
    (void)sqlite3_bind_text(s->put, 3, st_part_name[f->part], -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(s->put, 4, metric, -1, SQLITE_TRANSIENT);
    if (has_unit)
        (void)sqlite3_bind_text(s->put, 5, f->target->unit, -1, SQLITE_STATIC);
    (void)sqlite3_bind_double(s->put, 6, value);
    (void)sqlite3_bind_int64(s->put, 7, n);
    *code = pl_db_run(s->put, err);
}

/* "mae", or "mean.mae" for a prediction other than the model's. */
static void fit_put(const st_evaluation *s, const st_found *f, const char *who, const nn_fit *fit, pl_code *code, pl_error *err)
{
    for (int k = 0; k < ST_ERROR_KINDS; k++) {
        char name[48];
        (void)snprintf(name, sizeof name, "%s%s%s", who != NULL ? who : "", who != NULL ? "." : "", st_error_name(k));
        row_put(s, f, name, st_error_has_unit(k), st_error_value(fit, k), f->e->model.n, code, err);
    }
}

static pl_code fits_put(const st_evaluation *s, const st_found *f, pl_error *err)
{
    pl_code code = PL_OK;

    fit_put(s, f, NULL, &f->e->model, &code, err);
    if (f->together != NULL)
        fit_put(s, f, ENSEMBLE, &f->together->model, &code, err);
    for (int32_t k = 0; k < f->e->n_components; k++)
        fit_put(s, f, st_component_name(f->m, k), &f->e->component[k], &code, err);
    for (int b = 0; b < ST_BASELINES; b++)
        fit_put(s, f, st_baseline_name[b], &f->e->baseline[b], &code, err);
    return code;
}

/* The errors in bands of low, middle and high similarity to the training, and the correlation of error with similarity. */
static pl_code bands_put(const st_evaluation *s, const st_found *f, pl_error *err)
{
    const st_errors *e = f->e;
    static const char *const name[] = { "mae.similarity<0.3", "mae.similarity 0.3-0.5", "mae.similarity>=0.5" };
    double sum[3] = { 0 }, *error = PL_NEW(f->d->mem, double, e->model.n + 1);
    int64_t n[3] = { 0 };
    nn_fit fit = { 0 };
    pl_code code = error != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "errors of %lld molecules", (long long)e->model.n);

    if (code != PL_OK)
        return code;
    for (int64_t i = 0; i < e->model.n; i++) {
        const int k = nn_conformal_band(e->alike[i]);
        error[i] = fabs(e->predicted[i] - e->measured[i]);
        sum[k] += error[i];
        n[k]++;
    }
    code = nn_metric_fit(&fit, e->alike, error, e->model.n, f->d->mem, err);
    for (int k = 0; k < 3; k++)
        row_put(s, f, name[k], true, n[k] ? sum[k] / (double)n[k] : NAN, n[k], &code, err);
    row_put(s, f, "spearman.similarity", false, fit.spearman, e->model.n, &code, err);
    return code;
}

/* Every molecule of the part, measured and predicted. */
static pl_code molecules_put(const st_evaluation *s, const st_found *f, pl_error *err)
{
    const st_errors *e = f->e;
    pl_code code = PL_OK;

    for (int64_t i = 0; i < e->model.n && code == PL_OK; i++) {
        if (!isfinite(e->predicted[i]))
            continue;
        (void)sqlite3_bind_int64(s->put_one, 1, f->model_id);
        (void)sqlite3_bind_int64(s->put_one, 2, f->property_id);
        (void)sqlite3_bind_int64(s->put_one, 3, f->d->mol_id[e->at[i]]);
        (void)sqlite3_bind_text(s->put_one, 4, st_part_name[f->part], -1, SQLITE_STATIC);
        (void)sqlite3_bind_double(s->put_one, 5, e->measured[i]);
        (void)sqlite3_bind_double(s->put_one, 6, e->predicted[i]);
        (void)sqlite3_bind_double(s->put_one, 7, e->alike[i]); /* NaN is NULL */
        code = pl_db_run(s->put_one, err);
    }
    return code;
}

/* ---- the domain ---------------------------------------------------------- */

static bool is_outside(const st_errors *e, int64_t i) { return e->outside != NULL && e->outside[i]; }

/* Where the numbers of stages/steps/errors/by_domain.h go. */
typedef struct by_domain {
    const st_evaluation *s;
    const st_found *f;
} by_domain;

static pl_code number_put(void *ctx, const char *name, bool has_unit, double value, int64_t n, pl_error *err)
{
    const by_domain *to = ctx;
    pl_code code = PL_OK;

    row_put(to->s, to->f, name, has_unit, value, n, &code, err);
    return code;
}

/* The share of measured values within the interval that `score` gives; outside of the domain there is none. */
static void coverage_put(const st_evaluation *s, const st_found *f, const nn_conformal *interval, const char *name, pl_code *code,
                         pl_error *err)
{
    static const char *const band[] = { "<0.3", " 0.3-0.5", ">=0.5" };
    const st_errors *e = f->e;
    int64_t n[4] = { 0 }, held[4] = { 0 }; /* 3: of all */

    for (int64_t i = 0; i < e->model.n; i++) {
        const double alike = e->alike != NULL ? e->alike[i] : NAN, within = nn_conformal_within(interval, alike);
        const int k = nn_conformal_band(alike);
        const bool holds = fabs(e->predicted[i] - e->measured[i]) <= within;
        if (isnan(within) || is_outside(e, i))
            continue;
        n[3]++, held[3] += holds;
        n[k]++, held[k] += holds;
    }
    row_put(s, f, name, false, (double)held[3] / (double)n[3], n[3], code, err); /* of no molecule: not a number */
    for (int k = 0; k < 3; k++) {
        char metric[48];
        (void)snprintf(metric, sizeof metric, "%s%s", name, band[k]);
        row_put(s, f, metric, false, (double)held[k] / (double)n[k], n[k], code, err);
    }
}

/* The coverage on the part that an interval was made from is no test of it. */
static pl_code domain_put(const st_evaluation *s, const st_found *f, pl_error *err)
{
    const nn_conformal *now = &f->target->interval;
    const bool apart = f->part != ST_TRAIN && f->part != ST_CALIBRATION;
    const bool tests = apart && now->n > 0 && strcmp(now->part, st_part_name[f->part]) != 0;
    by_domain to = { s, f };
    pl_code code = PL_OK;

    if (tests)
        coverage_put(s, f, now, "coverage90", &code, err);
    if (apart && f->before != NULL && f->before->n > 0)
        coverage_put(s, f, f->before, "coverage90 before", &code, err);
    return code == PL_OK ? st_by_domain(f->e, f->m, tests ? now : NULL, number_put, &to, f->d->mem, err) : code;
}

pl_code st_evaluation_put(const st_evaluation *s, const st_found *f, pl_error *err)
{
    pl_code code = fits_put(s, f, err);

    if (code == PL_OK && f->has_domain)
        code = bands_put(s, f, err);
    if (code == PL_OK)
        code = domain_put(s, f, err);
    return code != PL_OK ? code : molecules_put(s, f, err);
}
