/* SPDX-License-Identifier: Apache-2.0 */
#include "models/metrics/conformal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "models/metrics/metric.h"

static const double begins[NN_BANDS_MAX] = { 0, 0.3, 0.5 };

int nn_conformal_band(double alike)
{
    int k = NN_BANDS_MAX - 1;

    while (k > 0 && !(alike >= begins[k]))
        k--;
    return k;
}

/* Joins band k to the band below. */
static void band_join(nn_conformal *i, int32_t k)
{
    i->band[k - 1].n += i->band[k].n;
    for (int32_t j = k; j + 1 < i->n; j++)
        i->band[j] = i->band[j + 1];
    i->n--;
}

/* Chooses bands of similarity with enough molecules each. */
static void bands_choose(nn_conformal *i, const double *alike, int64_t n)
{
    i->n = NN_BANDS_MAX;
    for (int32_t k = 0; k < NN_BANDS_MAX; k++)
        i->band[k] = (nn_band){ .from = begins[k] };
    for (int64_t j = 0; j < n; j++) {
        if (isnan(alike[j])) {
            i->n = 1;
            return;
        }
        i->band[nn_conformal_band(alike[j])].n++;
    }
    for (int32_t k = NN_BANDS_MAX - 1; k > 0; k--)
        if (i->band[k].n < NN_BAND_MIN)
            band_join(i, k);
    while (i->n > 1 && i->band[0].n < NN_BAND_MIN)
        band_join(i, 1);
}

static const nn_band *band_of(const nn_conformal *i, double alike)
{
    int32_t k = i->n - 1;

    while (k > 0 && !(alike >= i->band[k].from))
        k--;
    return &i->band[k];
}

pl_code nn_conformal_fit(nn_conformal *out, const double *y, const double *p, const double *alike, int64_t n, pl_arena *mem,
                         pl_error *err)
{
    double *error = PL_NEW(mem, double, n);

    out->n = 0;
    if (error == NULL)
        return pl_fail(err, PL_ENOMEM, "an interval of %lld predictions", (long long)n);
    bands_choose(out, alike, n);
    for (int32_t k = 0; k < out->n; k++) {
        int64_t here = 0;
        for (int64_t j = 0; j < n; j++)
            if (out->n == 1 || band_of(out, alike[j]) == &out->band[k])
                error[here++] = fabs(p[j] - y[j]);
        out->band[k].n = here;
        out->band[k].within = nn_metric_interval90(error, here);
    }
    if (!isfinite(out->band[0].within))
        out->n = 0;
    return PL_OK;
}

double nn_conformal_within(const nn_conformal *i, double alike)
{
    if (i->n == 0 || (i->n > 1 && isnan(alike)))
        return NAN;
    return band_of(i, alike)->within;
}

static int compare_reals(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

pl_code nn_conformal_lowest(double *out, const double *alike, int64_t n, pl_arena *mem, pl_error *err)
{
    const int64_t rank = n < 10 * NN_LOWEST_RANK ? n / 10 : NN_LOWEST_RANK;
    double *sorted = PL_NEW(mem, double, n);

    *out = 0;
    if (sorted == NULL)
        return pl_fail(err, PL_ENOMEM, "similarities of %lld molecules", (long long)n);
    for (int64_t i = 0; i < n; i++)
        if (isnan(alike[i]))
            return PL_OK;
    if (n < NN_CONFORMAL_MIN)
        return PL_OK;
    memcpy(sorted, alike, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, compare_reals);
    *out = sorted[rank > 0 ? rank - 1 : 0];
    return PL_OK;
}
