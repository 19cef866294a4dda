/* models/metrics/conformal.h - prediction intervals: the half-width of a 90 % interval, by similarity to the training set.
 *
 * Split conformal prediction (Lei et al., J. Am. Stat. Assoc. 2018, 113, 1094) in groups (Vovk, Conditional validity of
 * inductive conformal predictors, PMLR 2012, 25, 475). Groups are bands of similarity to the nearest training molecule
 * (models/domain/domain.h). In each band, prediction plus or minus the half-width contains 90 % of new measured values. It is
 * calibrated on molecules that were not trained on. Unit: the target's. */
#ifndef NN_CONFORMAL_H
#define NN_CONFORMAL_H

#include <stdint.h>

#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"

enum {
    NN_BANDS_MAX = 3,
    NN_BAND_MIN = 30,     /* minimum number of molecules in a band, if there are several bands */
    NN_CONFORMAL_MIN = 9, /* minimum in all: with fewer, even the largest error is not the half-width of a 90 % interval */
    NN_LOWEST_RANK = 10   /* calibration molecules at or below the lowest calibrated similarity */
};

typedef struct nn_band {
    double from;   /* lower end of the similarities; the upper end is the next band's `from` */
    double within; /* half-width, unit of the target    */
    int64_t n;     /* calibration molecules             */
} nn_band;

typedef struct nn_conformal {
    const char *part; /* the part of the data it was calibrated on: "test" */
    int32_t n;        /* number of bands, the first begins at 0; 0: no intervals */
    nn_band band[NN_BANDS_MAX];
} nn_conformal;

/* The band of a similarity before bands are joined: 0 below 0.3 (and for NaN), 1 below 0.5, else 2. */
int nn_conformal_band(double alike);

/* y measured values, p predictions, alike similarities, all [n]; if a similarity is NaN there is one band. Bands begin at
 * 0, 0.3 and 0.5; a band with too few molecules is joined with the one below, the lowest with the one above. With fewer
 * than NN_CONFORMAL_MIN molecules out->n is 0. out->part is not changed. */
pl_code nn_conformal_fit(nn_conformal *out, const double *y, const double *p, const double *alike, int64_t n, pl_arena *mem,
                         pl_error *err);

/* The half-width for a molecule of similarity `alike` (NaN: unknown). Returns NaN if there are no intervals. */
double nn_conformal_within(const nn_conformal *i, double alike);

/* The lowest calibrated similarity: the NN_LOWEST_RANK-th smallest of alike[n], or with n < 100 the n/10-th smallest.
 * 0: there are too few, or similarities are unknown (NaN). ENOMEM. */
pl_code nn_conformal_lowest(double *out, const double *alike, int64_t n, pl_arena *mem, pl_error *err);

#endif
