/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/errors/verdict.h"

#include <math.h>
#include <string.h>

static const char *const words[][2] = {
    { "mean", "the mean" },
    { "composition", "element counts" },
    { "descriptors", "linear fit on descriptors" },
    { "neighbours", "nearest neighbours" },
};

const char *st_verdict_words(const char *who)
{
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        if (strcmp(words[k][0], who) == 0)
            return words[k][1];
    return who;
}

bool st_verdict_counts(const char *who)
{
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        if (strcmp(words[k][0], who) == 0)
            return true;
    return false;
}

st_verdict st_verdict_of(bool classes, double model) { return (st_verdict){ .classes = classes, .model = model, .best = NAN }; }

/* a is better than b, or b is not known. */
static bool is_better(bool classes, double a, double b)
{
    if (isnan(b))
        return !isnan(a);
    return classes ? a > b : a < b;
}

void st_verdict_compare(st_verdict *v, const char *who, double value)
{
    if (!isfinite(value) || !is_better(v->classes, value, v->best))
        return;
    v->best = value;
    v->who = who;
}

bool st_verdict_is_beaten(const st_verdict *v) { return v->who != NULL && !is_better(v->classes, v->model, v->best); }

double st_verdict_doubt(const double mae[2], const double rmse[2], int64_t n)
{
    double variance = 0; /* of the absolute errors of both */

    for (int k = 0; k < 2; k++)
        variance += rmse[k] * rmse[k] - mae[k] * mae[k];
    if (isnan(variance) || n < 1)
        return NAN;
    return sqrt(fmax(variance, 0) / (double)n);
}

void st_verdict_add(pl_text *out, const st_verdict *v, const char *part, const char *unit)
{
    const char *space = unit[0] && !v->classes ? " " : "";

    if (!st_verdict_is_beaten(v))
        return;
    pl_text_addf(out,
                 "On the %s part the model is no better than a simple prediction (%s %s %.4g%s%s, the model %.4g%s%s): "
                 "do not screen with it.",
                 part, st_verdict_words(v->who), v->classes ? "ROC-AUC" : "MAE", v->best, space, v->classes ? "" : unit, v->model,
                 space, v->classes ? "" : unit);
}
