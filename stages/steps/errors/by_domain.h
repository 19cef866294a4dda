/* stages/steps/errors/by_domain.h - the errors of a model, of its components and of its nearest neighbours inside and outside of the domain.
 *
 * Each number has the name of a metric of the table `evaluation`: "mae.domain inside" of the model, "trees.mae.domain inside" of a
 * component, "neighbours.mae.domain inside"; of classes brier instead of mae. "trees.difference.domain inside" is the mean over molecules
 * of the component's absolute error less that of the model (of classes: squared), "trees.difference_error.domain inside" its standard
 * error. "coverage90.domain outside" is the share within the half-width of an interval that a score outside does not get. */
#ifndef ST_BY_DOMAIN_H
#define ST_BY_DOMAIN_H

#include "stages/steps/errors/errors.h"

typedef pl_code st_number_put(void *ctx, const char *name, bool has_unit, double value, int64_t n, pl_error *err);

/* Nothing where e->outside is not known. interval: the target's, if it was not made from these molecules; else NULL. Scratch in mem. */
pl_code st_by_domain(const st_errors *e, const nn_model_file *m, const nn_conformal *interval, st_number_put *put, void *ctx,
                     pl_arena *mem, pl_error *err);

/* The share of measured values within the interval, of the n molecules on this side of a known domain that have one; NaN of none. */
double st_coverage(const st_errors *e, const nn_conformal *interval, bool outside, int64_t *n);

#endif
