/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/errors/by_domain.h"

#include <math.h>
#include <stdio.h>

static const char *const sides[] = { "inside", "outside" };

typedef struct sink {
    const st_errors *e;
    const nn_model_file *m;
    st_number_put *put;
    void *ctx;
    pl_arena *mem;
    pl_error *err;
} sink;

/* Puts a number that is known if *code is PL_OK, and stores what came of it there. */
static void put_number(const sink *s, const char *who, const char *what, bool has_unit, int side, double value, int64_t n,
                       pl_code *code)
{
    char name[64];

    if (*code != PL_OK || !isfinite(value))
        return;
    (void)snprintf(name, sizeof name, "%s%s%s.domain %s", who, who[0] ? "." : "", what, sides[side]);
    *code = s->put(s->ctx, name, has_unit, value, n, s->err);
}

static bool is_side(const st_errors *e, int64_t i, int side) { return e->outside[i] == (side == 1); }

/* The model's own errors. */
static pl_code model_put(const sink *s, int side)
{
    static const int of_numbers[] = { ST_ERROR_mae, ST_ERROR_rmse, -1 }, of_classes[] = { ST_ERROR_ROC_AUC, ST_ERROR_brier, -1 };
    const st_errors *e = s->e;
    double *y = PL_NEW(s->mem, double, e->model.n + 1), *p = PL_NEW(s->mem, double, e->model.n + 1);
    int64_t n = 0;
    nn_fit fit = { 0 };
    pl_code code = y != NULL && p != NULL ? PL_OK : pl_fail(s->err, PL_ENOMEM, "errors of %lld molecules", (long long)e->model.n);

    if (code != PL_OK)
        return code;
    for (int64_t i = 0; i < e->model.n; i++)
        if (is_side(e, i, side)) {
            y[n] = e->measured[i];
            p[n++] = e->predicted[i];
        }
    code = s->m->classifies ? nn_metric_class(&fit, y, p, n, true, s->mem, s->err) : nn_metric_fit(&fit, y, p, n, s->mem, s->err);
    for (const int *kind = s->m->classifies ? of_classes : of_numbers; *kind >= 0; kind++)
        put_number(s, "", st_error_name(*kind), st_error_has_unit(*kind), side, st_error_value(&fit, *kind), n, &code);
    return code;
}

/* Of one molecule: absolute, of classes squared. */
static double error_of(const sink *s, const double *predicted, int64_t i)
{
    const double off = predicted[i] - s->e->measured[i];

    return s->m->classifies ? off * off : fabs(off);
}

/* Another prediction of the same molecules, and how it differs from the model's. paired: puts the difference, too. */
static void other_put(const sink *s, const char *who, const double *predicted, int side, bool paired, pl_code *code)
{
    const st_errors *e = s->e;
    double sum = 0, difference = 0, square = 0;
    int64_t n = 0;

    for (int64_t i = 0; i < e->model.n; i++) {
        const double d = error_of(s, predicted, i) - error_of(s, e->predicted, i), before = difference;
        if (!is_side(e, i, side) || !isfinite(d))
            continue;
        n++;
        sum += error_of(s, predicted, i);
        difference += (d - difference) / (double)n; /* Welford 1962 */
        square += (d - before) * (d - difference);
    }
    put_number(s, who, s->m->classifies ? "brier" : "mae", !s->m->classifies, side, sum / (double)n, n, code);
    if (!paired || n < 2)
        return;
    put_number(s, who, "difference", !s->m->classifies, side, difference, n, code);
    put_number(s, who, "difference_error", !s->m->classifies, side, sqrt(square / (double)(n - 1) / (double)n), n, code);
}

double st_coverage(const st_errors *e, const nn_conformal *interval, bool outside, int64_t *n)
{
    int64_t held = 0;

    *n = 0;
    for (int64_t i = 0; i < e->model.n; i++) {
        const double within = nn_conformal_within(interval, e->alike != NULL ? e->alike[i] : NAN);
        if (isnan(within) || !is_side(e, i, outside))
            continue;
        ++*n;
        held += fabs(e->predicted[i] - e->measured[i]) <= within;
    }
    return (double)held / (double)*n;
}

static void coverage_put(const sink *s, const nn_conformal *interval, pl_code *code)
{
    int64_t n;
    const double held = st_coverage(s->e, interval, true, &n);

    put_number(s, "", "coverage90", false, 1, held, n, code);
}

static pl_code side_put(const sink *s, int side)
{
    pl_code code = model_put(s, side);

    for (int32_t c = 0; c < s->e->n_components; c++)
        other_put(s, st_component_name(s->m, c), s->e->by[c], side, true, &code);
    if (s->e->n_components > 0 && s->e->near != NULL)
        other_put(s, st_baseline_name[ST_BY_NEIGHBOURS], s->e->near, side, false, &code);
    return code;
}

pl_code st_by_domain(const st_errors *e, const nn_model_file *m, const nn_conformal *interval, st_number_put *put, void *ctx,
                     pl_arena *mem, pl_error *err)
{
    const sink s = { e, m, put, ctx, mem, err };
    pl_code code = PL_OK;

    if (e->outside == NULL)
        return PL_OK;
    for (int side = 0; side < 2 && code == PL_OK; side++)
        code = side_put(&s, side);
    if (interval != NULL && interval->n > 0)
        coverage_put(&s, interval, &code);
    return code;
}
