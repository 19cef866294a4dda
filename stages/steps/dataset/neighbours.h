/* stages/steps/dataset/neighbours.h - predictions by the nearest training molecules: the simplest model of structure and activity.
 *
 * The mean of the labels of the CH_NEAREST training molecules with the most similar ECFP4 fingerprints, weighted by Tanimoto
 * similarity; of a class that is the weighted fraction of class 1. A training molecule is not its own neighbour. */
#ifndef ST_NEIGHBOURS_H
#define ST_NEIGHBOURS_H

#include "chem/fingerprint/nearest.h"
#include "stages/steps/dataset/dataset.h"

typedef struct st_near {
    int32_t n;
    int32_t at[CH_NEAREST]; /* numbers in the pool */
    float alike[CH_NEAREST];
} st_near;

/* The training molecules that have a target. */
typedef struct st_pool {
    const st_dataset *d;
    int32_t n;
    int64_t *at;           /* [n] positions in d, growing */
    ch_fingerprint *print; /* [n] */
    ch_folds *folds;
    st_near *near; /* [d->n] set for the parts in `found`         */
    bool found[ST_PARTS];
} st_pool;

/* Those of `train` that have the target; `before` (NULL: none) where it is of the same molecules. In d->mem. */
pl_code st_pool_make(st_pool **out, const st_samples *train, int32_t target, st_pool *before, pl_error *err);

/* The neighbours of all molecules of a part, once. */
pl_code st_pool_find(st_pool *p, st_part part, pl_error *err);

/* The weighted mean of the target for molecule `at` of a part that was searched; `otherwise` if all similarities are 0. */
double st_pool_mean(const st_pool *p, int64_t at, int32_t target, double otherwise);

#endif
