/* stages/domain.h - how like the molecules of a training others are (models/domain.h).
 *
 * From graphs as the model reads them. Likeness is Tanimoto of ECFP4 fingerprints, 0 to 1. */
#ifndef ST_DOMAIN_H
#define ST_DOMAIN_H

#include "models/domain.h"
#include "pipeline/stage.h"
#include "stages/dataset.h"
#include "stages/errors.h"

/* The domain of a training: all its molecules, or `most` of them, chosen evenly by the seed. In env->mem. */
pl_code st_domain_make(nn_domain *out, const pl_env *env, const st_samples *train, int64_t most, pl_error *err);

/* The nearest molecule of the training to each of item[n]; in mem. */
pl_code st_domain_nearest(const nn_near **out, const nn_domain *domain, const nn_item *item, int32_t n, pl_arena *mem, pl_error *err);

/* e[k].alike of every target of a part of d; NaN without a domain. Looked for once a molecule; in d->mem. */
pl_code st_domain_alike(st_errors *e, const st_dataset *d, st_part part, const nn_domain *domain, pl_error *err);

#endif
