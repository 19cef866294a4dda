/* models/metrics/metric.h - error metrics of predictions, and simple predictions to compare with.
 *
 * All in double, summed in the order of the arrays, so the same input gives the
 * same bits. Spearman's rho is Pearson's correlation of the ranks; ties share
 * their average rank. A metric that does not apply is NaN: metrics of regression for a
 * classifier, and the other way round. */
#ifndef NN_METRIC_H
#define NN_METRIC_H

#include <stdbool.h>
#include <stdint.h>

#include "models/metrics/enrichment.h"
#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"

typedef struct nn_fit {
    int64_t n;
    double mae, rmse;       /* unit of y; NaN when n = 0                        */
    double interval90;      /* half-width of a 90 % prediction interval: p plus or minus this contains y for 90 % of new
                            molecules of the same distribution. Split conformal prediction (Lei et al., J. Am. Stat. Assoc.
                            2018, 113, 1094): the ceil(0.9 (n + 1))th smallest |p - y|; NaN when n < 9 */
    double r2, spearman;    /* NaN when y (or, for spearman, p) does not vary   */
    double log_loss, brier; /* p is the probability of class 1. log_loss: mean of -ln of the true class's probability
                                 (raised to 2^-52, as in scikit-learn). brier: mean (p - y)^2 */
    nn_enrichment order;    /* enrichment of class 1, molecules ranked by p, largest first */
} nn_fit;

/* Metrics of regression: y measured, p predicted, both [n] and finite. Scratch in mem. */
pl_code nn_metric_fit(nn_fit *out, const double *y, const double *p, int64_t n, pl_arena *mem, pl_error *err);

/* Metrics of classification: y 0 or 1, p finite, both [n]. probabilities: p are probabilities 0..1; else p only
 * ranks the molecules, and log_loss and brier are NaN. Scratch in mem. */
pl_code nn_metric_class(nn_fit *out, const double *y, const double *p, int64_t n, bool probabilities, pl_arena *mem, pl_error *err);

/* The ceil(0.9 (n + 1))th smallest of error [n], which is sorted; NaN when n < 9. */
double nn_metric_interval90(double *error, int64_t n);

/* Mean and population standard deviation (divisor n, docs/model.md 1.3); 0 and 0 when n = 0. The mean of equal values is this value, and
 * their deviation is 0. */
void nn_metric_moments(const double *y, int64_t n, double *mean, double *stdev);

/* Least squares y ~ coef[0] + sum_k coef[1+k] x[i][k], x [n][k]. Columns that
 * are constant or depend on earlier ones get the coefficient 0, so element
 * counts and descriptors can be given as they are. coef [k+1]. */
pl_code nn_metric_linear(double *coef, const double *x, const double *y, int64_t n, int32_t k, pl_arena *mem, pl_error *err);

/* coef[0] + sum_k coef[1+k] x[k] */
double nn_metric_apply(const double *coef, const double *x, int32_t k);

#endif
