/* stages/steps/errors/calibrate.h - the prediction interval of a target, from molecules that the model was not trained on. */
#ifndef ST_CALIBRATE_H
#define ST_CALIBRATE_H

#include "pipeline/workflow/stage.h"
#include "stages/steps/errors/errors.h"

/* Sets e->outside: whether each molecule is outside of the domain of m, for its target k. e->alike must be set. Does nothing if m
 * has no range. In d->mem. */
pl_code st_errors_domain(st_errors *e, int32_t k, const pl_env *env, const st_dataset *d, const nn_model_file *m, pl_error *err);

/* Sets the lowest calibrated similarity of target k of m, then its interval (none for a class), from the molecules of e inside of the
 * resulting domain: a score outside has no interval, so molecules outside must not widen it for others. m->range must have its
 * final value. */
pl_code st_calibrate(nn_model_file *m, int32_t k, st_errors *e, st_part part, const pl_env *env, const st_dataset *d,
                     pl_error *err);

/* The range of m, and of several targets with gaps that of each: of the molecules of s that have a value of it. ENOMEM. */
pl_code st_ranges_make(nn_model_file *m, const pl_env *env, const st_samples *s, pl_error *err);

/* What says how far predictions of m can be trusted: the domain, at most `max` molecules, with those that it has met, the range, and the
 * limits of the columns that m reads. `measured`: training molecules of d; start: NULL, or as in st_seen_make. ENOMEM. */
pl_code st_limits_make(nn_model_file *m, const pl_env *env, const st_dataset *d, const st_samples *measured,
                       const nn_model_file *start, int64_t max, pl_error *err);

#endif
