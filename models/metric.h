/* models/metric.h - how good predictions are, and how good trivial ones would be.
 *
 * All in double, summed in the order of the arrays, so the same input gives the
 * same bits. Spearman's rho is Pearson's correlation of the ranks, ties sharing
 * their average rank. */
#ifndef NN_METRIC_H
#define NN_METRIC_H

#include <stdint.h>

#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"

typedef struct nn_fit {
    int64_t n;
    double mae, rmse;    /* unit of y; NaN when n = 0                        */
    double interval90;   /* p plus or minus this holds y for 90 % of further molecules of the same kind: split conformal
                            prediction (Lei et al., J. Am. Stat. Assoc. 2018, 113, 1094), the ceil(0.9 (n + 1))th smallest
                            |p - y|; NaN when n < 9 */
    double r2, spearman; /* NaN when y (or, for spearman, p) does not vary   */
} nn_fit;

/* y measured, p predicted, both [n] and finite. */
pl_code nn_metric_fit(nn_fit *out, const double *y, const double *p, int64_t n, pl_arena *mem, pl_error *err);

/* Mean and population standard deviation (ddof 0, spec 1.3); 0 and 0 when n = 0. */
void nn_metric_moments(const double *y, int64_t n, double *mean, double *stdev);

/* Least squares y ~ coef[0] + sum_k coef[1+k] x[i][k], x [n][k]. Columns that
 * are constant or depend on earlier ones get the coefficient 0, so element
 * counts and descriptors can be given as they are. coef [k+1]. */
pl_code nn_metric_linear(double *coef, const double *x, const double *y, int64_t n, int32_t k, pl_arena *mem,
                         pl_error *err);

/* coef[0] + sum_k coef[1+k] x[k] */
double nn_metric_apply(const double *coef, const double *x, int32_t k);

#endif
