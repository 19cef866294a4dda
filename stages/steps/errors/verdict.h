/* stages/steps/errors/verdict.h - whether a model beats the simple predictions it is compared with (stages/steps/dataset/baselines.h). */
#ifndef ST_VERDICT_H
#define ST_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/text.h"

typedef struct st_verdict {
    bool classes;
    double model, best; /* MAE, of classes ROC-AUC; NaN: not known */
    const char *who;    /* st_baseline_name of the best, or NULL   */
} st_verdict;

/* Whether `who`, the first part of a metric's name, is a simple prediction; a component of the model is not. */
bool st_verdict_counts(const char *who);

st_verdict st_verdict_of(bool classes, double model);

/* Adds a simple prediction to compare with; `who` is kept by reference. */
void st_verdict_compare(st_verdict *v, const char *who, double value);

/* False where there is nothing to compare with. */
bool st_verdict_is_beaten(const st_verdict *v);

/* A standard error of the difference of two MAEs over the same n molecules, from MAE and RMSE of each. It takes the errors of the two as
 * unrelated; they are alike as a rule, and then the true one is smaller. NaN: a number is missing. */
double st_verdict_doubt(const double mae[2], const double rmse[2], int64_t n);

/* "nearest neighbours" for "neighbours". */
const char *st_verdict_words(const char *who);

/* Adds a sentence that says so and what follows from it, only if the model is beaten. */
void st_verdict_add(pl_text *out, const st_verdict *v, const char *part, const char *unit);

#endif
