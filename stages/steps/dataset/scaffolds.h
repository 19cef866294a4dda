/* stages/steps/dataset/scaffolds.h - the scaffolds of the molecules that prepare left in features.db. */
#ifndef ST_SCAFFOLDS_H
#define ST_SCAFFOLDS_H

#include "pipeline/workflow/stage.h"

/* Unit after unit; a block may have molecules that merge found to be duplicates. strict: chem/fingerprint/scaffold.h. */
pl_code st_scaffolds_read(const pl_env *env, bool strict, void (*give)(void *ctx, int64_t mol_id, uint64_t scaffold), void *ctx,
                          pl_error *err);

#endif
