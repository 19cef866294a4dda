/* stages/steps/errors/domain.h - similarity of molecules to those of a training (models/domain/domain.h).
 *
 * From graphs as the model reads them. Similarity: Tanimoto of ECFP4 fingerprints, 0 to 1. */
#ifndef ST_DOMAIN_H
#define ST_DOMAIN_H

#include "models/files/model_file.h"
#include "pipeline/workflow/stage.h"
#include "stages/steps/dataset/dataset.h"
#include "stages/steps/errors/errors.h"

/* The fingerprints and values of a training: of all its molecules, or of `most`, an even selection by the seed. In env->mem. */
pl_code st_domain_make(nn_domain *out, const pl_env *env, const st_samples *train, int64_t max, pl_error *err);

/* The validation molecules of d, its training molecules with limits alone, and what `start`, if it is not NULL, was trained on and had met; at most `most`. In env->mem. */
pl_code st_seen_make(nn_seen *out, const pl_env *env, const st_dataset *d, const nn_model_file *start, int64_t max, pl_error *err);

/* The fingerprints of item[n]; in mem. */
pl_code st_item_prints(const ch_fingerprint **out, const nn_item *item, int32_t n, pl_arena *mem, pl_error *err);

/* For each of print[n], the nearest molecule of the training that has the target; in mem. */
pl_code st_domain_nearest(const nn_near **out, const nn_domain *domain, int32_t target, const ch_fingerprint *print, int32_t n,
                          pl_arena *mem, pl_error *err);

/* Sets e[k].alike for every target k of a part of d; NaN without a domain. In d->mem. */
pl_code st_domain_alike(st_errors *e, const st_dataset *d, st_part part, const nn_domain *domain, pl_error *err);

#endif
