/* SPDX-License-Identifier: Apache-2.0 */
#include "models/metrics/metric.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

void nn_metric_moments(const double *y, int64_t n, double *mean, double *stdev)
{
    double sum = 0, square = 0;
    bool same = n > 0;

    for (int64_t i = 0; i < n; i++) {
        sum += y[i];
        same = same && y[i] == y[0];
    }
    *mean = n ? sum / (double)n : 0.0;
    if (same)
        *mean = y[0];
    for (int64_t i = 0; i < n; i++)
        square += (y[i] - *mean) * (y[i] - *mean);
    *stdev = n ? sqrt(square / (double)n) : 0.0;
}

/* ---- ranks --------------------------------------------------------------- */

typedef struct ranked {
    double value;
    int64_t at;
} ranked;

static int ranked_compare(const void *a, const void *b)
{
    const ranked *x = a, *y = b;

    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

static void sort(ranked *sorted, const double *v, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        sorted[i] = (ranked){ v[i], i };
    qsort(sorted, (size_t)n, sizeof *sorted, ranked_compare);
}

static void ranks_of(double *rank, const double *v, int64_t n, ranked *sorted)
{
    sort(sorted, v, n);
    for (int64_t i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && sorted[j].value == sorted[i].value;)
            j++;
        for (int64_t k = i; k < j; k++)
            rank[sorted[k].at] = 0.5 * (double)(i + j - 1);
    }
}

static double correlation(const double *x, const double *y, int64_t n)
{
    double mx, my, sx, sy, sum = 0;

    nn_metric_moments(x, n, &mx, &sx);
    nn_metric_moments(y, n, &my, &sy);
    for (int64_t i = 0; i < n; i++)
        sum += (x[i] - mx) * (y[i] - my);
    return sx > 0 && sy > 0 ? sum / ((double)n * sx * sy) : NAN;
}

static int number_compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The 90 % quantile of the errors, where one more error is counted as the largest (split conformal). */
double nn_metric_interval90(double *error, int64_t n)
{
    const int64_t k = (9 * (n + 1) + 9) / 10;

    qsort(error, (size_t)n, sizeof *error, number_compare);
    return k <= n ? error[k - 1] : NAN;
}

static const nn_fit nothing = {
    .mae = NAN,
    .rmse = NAN,
    .interval90 = NAN,
    .r2 = NAN,
    .spearman = NAN,
    .log_loss = NAN,
    .brier = NAN,
    .order = { .roc_auc = NAN, .pr_auc = NAN, .ef1 = NAN, .ef1_max = NAN, .ef5 = NAN, .ef5_max = NAN, .bedroc20 = NAN }
};

pl_code nn_metric_fit(nn_fit *out, const double *y, const double *p, int64_t n, pl_arena *mem, pl_error *err)
{
    double *ry = PL_NEW(mem, double, n), *rp = PL_NEW(mem, double, n);
    ranked *sorted = PL_NEW(mem, ranked, n);
    double mean, stdev, abs = 0, square = 0;

    *out = nothing;
    out->n = n;
    if (ry == NULL || rp == NULL || sorted == NULL)
        return pl_fail(err, PL_ENOMEM, "ranks of %lld predictions", (long long)n);
    if (n == 0)
        return PL_OK;
    for (int64_t i = 0; i < n; i++) {
        abs += fabs(p[i] - y[i]);
        square += (p[i] - y[i]) * (p[i] - y[i]);
    }
    nn_metric_moments(y, n, &mean, &stdev);
    ranks_of(ry, y, n, sorted);
    ranks_of(rp, p, n, sorted);
    out->mae = abs / (double)n;
    out->rmse = sqrt(square / (double)n);
    out->r2 = stdev > 0 ? 1.0 - square / ((double)n * stdev * stdev) : NAN;
    out->spearman = correlation(ry, rp, n);
    for (int64_t i = 0; i < n; i++)
        ry[i] = fabs(p[i] - y[i]);
    out->interval90 = nn_metric_interval90(ry, n);
    return PL_OK;
}

/* ---- classes ------------------------------------------------------------- */

/* Groups of equal scores, best first; returns their number. */
static int64_t ties_make(nn_tie *tie, const double *y, const ranked *sorted, int64_t n)
{
    int64_t n_ties = 0;

    for (int64_t i = n - 1, j; i >= 0; i = j, n_ties++) {
        tie[n_ties] = (nn_tie){ .above = n - 1 - i };
        for (j = i; j >= 0 && sorted[j].value == sorted[i].value; j--) {
            tie[n_ties].n++;
            tie[n_ties].actives += y[sorted[j].at] > 0;
        }
    }
    return n_ties;
}

pl_code nn_metric_class(nn_fit *out, const double *y, const double *p, int64_t n, bool probabilities, pl_arena *mem, pl_error *err)
{
    nn_tie *tie = PL_NEW(mem, nn_tie, n);
    ranked *sorted = PL_NEW(mem, ranked, n);
    double loss = 0, square = 0;

    *out = nothing;
    out->n = n;
    if (tie == NULL || sorted == NULL)
        return pl_fail(err, PL_ENOMEM, "ranks of %lld predictions", (long long)n);
    sort(sorted, p, n);
    out->order = nn_enrichment_of(tie, ties_make(tie, y, sorted, n), n);
    for (int64_t i = 0; i < n; i++) {
        loss -= log(fmax(y[i] > 0 ? p[i] : 1 - p[i], DBL_EPSILON));
        square += (p[i] - y[i]) * (p[i] - y[i]);
    }
    out->log_loss = probabilities && n ? loss / (double)n : NAN;
    out->brier = probabilities && n ? square / (double)n : NAN;
    return PL_OK;
}

/* ---- least squares ------------------------------------------------------- */

/* Normal equations of columns scaled to mean 0 and variance 1, which is accurate enough in double; centring removes the
 * constant term from the system. */
typedef struct normal {
    int32_t k;
    double *mean, *scale; /* [k]; scale 0: the column is left out   */
    double *a, *b;        /* [k][k], [k]                            */
    double y_mean;
} normal;

static void normal_scale(normal *s, const double *x, int64_t n)
{
    for (int32_t c = 0; c < s->k; c++) {
        double sum = 0, square = 0, biggest = 0, sd;
        for (int64_t i = 0; i < n; i++)
            sum += x[i * s->k + c];
        s->mean[c] = sum / (double)n;
        for (int64_t i = 0; i < n; i++) {
            double d = x[i * s->k + c] - s->mean[c];
            square += d * d;
            biggest = fmax(biggest, fabs(x[i * s->k + c]));
        }
        sd = sqrt(square / (double)n);
        s->scale[c] = sd > 1e-12 * biggest && sd > 0 ? 1.0 / sd : 0.0;
    }
}

static void normal_fill(normal *s, const double *x, const double *y, int64_t n, double *row)
{
    for (int64_t i = 0; i < n; i++)
        s->y_mean += y[i] / (double)n;
    for (int64_t i = 0; i < n; i++) {
        for (int32_t c = 0; c < s->k; c++)
            row[c] = (x[i * s->k + c] - s->mean[c]) * s->scale[c];
        for (int32_t c = 0; c < s->k; c++) {
            s->b[c] += row[c] * (y[i] - s->y_mean);
            for (int32_t d = 0; d <= c; d++)
                s->a[c * s->k + d] += row[c] * row[d];
        }
    }
}

/* Cholesky in place; a pivot that has nearly vanished marks a dependent column. */
static void normal_factor(normal *s, int64_t n)
{
    int32_t k = s->k;

    for (int32_t c = 0; c < k; c++) {
        for (int32_t d = 0; d < c; d++) {
            double sum = s->a[c * k + d];
            for (int32_t e = 0; e < d; e++)
                sum -= s->a[c * k + e] * s->a[d * k + e];
            s->a[c * k + d] = s->scale[d] > 0 ? sum / s->a[d * k + d] : 0.0;
        }
        double pivot = s->a[c * k + c];
        for (int32_t e = 0; e < c; e++)
            pivot -= s->a[c * k + e] * s->a[c * k + e];
        if (s->scale[c] > 0 && !(pivot > 1e-10 * (double)n))
            s->scale[c] = 0.0;
        s->a[c * k + c] = s->scale[c] > 0 ? sqrt(pivot) : 1.0;
    }
}

static void normal_solve(normal *s)
{
    int32_t k = s->k;

    for (int32_t c = 0; c < k; c++) {
        for (int32_t d = 0; d < c; d++)
            s->b[c] -= s->a[c * k + d] * s->b[d];
        s->b[c] = s->scale[c] > 0 ? s->b[c] / s->a[c * k + c] : 0.0;
    }
    for (int32_t c = k - 1; c >= 0; c--) {
        for (int32_t d = c + 1; d < k; d++)
            s->b[c] -= s->scale[d] > 0 ? s->a[d * k + c] * s->b[d] : 0.0;
        s->b[c] = s->scale[c] > 0 ? s->b[c] / s->a[c * k + c] : 0.0;
    }
}

pl_code nn_metric_linear(double *coef, const double *x, const double *y, int64_t n, int32_t k, pl_arena *mem, pl_error *err)
{
    normal s = { .k = k };
    double *row = PL_NEW(mem, double, k);

    s.mean = PL_NEW(mem, double, k);
    s.scale = PL_NEW(mem, double, k);
    s.a = PL_NEW(mem, double, k *k);
    s.b = PL_NEW(mem, double, k);
    if (row == NULL || s.mean == NULL || s.scale == NULL || s.a == NULL || s.b == NULL)
        return pl_fail(err, PL_ENOMEM, "a linear fit of %d columns", (int)k);
    if (n > 0) {
        normal_scale(&s, x, n);
        normal_fill(&s, x, y, n, row);
        normal_factor(&s, n);
        normal_solve(&s);
    }
    coef[0] = s.y_mean;
    for (int32_t c = 0; c < k; c++) {
        coef[1 + c] = s.b[c] * s.scale[c];
        coef[0] -= coef[1 + c] * s.mean[c];
    }
    return PL_OK;
}

double nn_metric_apply(const double *coef, const double *x, int32_t k)
{
    double sum = coef[0];

    for (int32_t c = 0; c < k; c++)
        sum += coef[1 + c] * x[c];
    return sum;
}
