/* stages/steps/dataset/baselines.h - simple predictions of one target, to compare a model with.
 *
 * Fitted to the training molecules that have the target: their mean, least squares on their element counts, least squares
 * on their descriptors and the columns that the model reads, and the mean of the nearest of them (stages/steps/dataset/neighbours.h). */
#ifndef ST_BASELINES_H
#define ST_BASELINES_H

#include "stages/steps/dataset/dataset.h"

typedef enum st_baseline { ST_BY_MEAN, ST_BY_COMPOSITION, ST_BY_DESCRIPTORS, ST_BY_NEIGHBOURS, ST_BASELINES } st_baseline;
extern const char *const st_baseline_name[ST_BASELINES];

typedef struct st_baselines {
    const nn_inputs *inputs;
    double mean, composition[1 + NN_MAX_ELEMENTS], descriptors[1 + ST_DESCRIPTORS + NN_COLUMNS_MAX];
    int32_t target;
    struct st_pool *pool; /* NULL without neighbours */
} st_baselines;

/* Fits all but the neighbours to target `target` of the training molecules. Scratch in mem. */
pl_code st_baselines_fit(st_baselines *b, const st_samples *train, int32_t target, pl_arena *mem, pl_error *err);
/* b [d->n_targets]: fits all four to each target. In the memory of the dataset. */
pl_code st_baselines_fit_all(st_baselines *b, const st_samples *train, pl_error *err);
/* Finds the neighbours of a part's molecules; call it before st_baseline_value with ST_BY_NEIGHBOURS. */
pl_code st_baselines_look(const st_baselines *b, st_part part, pl_error *err);
/* The prediction for molecule `at` of d. */
double st_baseline_value(const st_baselines *b, st_baseline kind, const st_dataset *d, int64_t at);

#endif
