/* models/interval.h - how far off a model's predictions are, by how like its training a molecule is.
 *
 * Split conformal prediction (Lei et al., J. Am. Stat. Assoc. 2018, 113, 1094) in groups (Vovk, Conditional validity of
 * inductive conformal predictors, PMLR 2012, 25, 475): of molecules that were not trained on, in bands of similarity to the
 * nearest training molecule (models/domain.h), the half width about a prediction that holds 90 % of further measured
 * values of the band. Unit: the target's. */
#ifndef NN_INTERVAL_H
#define NN_INTERVAL_H

#include <stdint.h>

#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"

enum {
    NN_BANDS_MAX = 3,
    NN_BAND_LEAST = 30,        /* molecules of a band, where there is more than one */
    NN_INTERVAL_LEAST = 9,     /* in all: of fewer even the largest error is no nine in ten */
    NN_LOWEST_RANK = 10        /* calibration molecules at the lowest calibrated similarity or below it */
};

typedef struct nn_band {
    double from;               /* similarity; up to the next one's  */
    double within;
    int64_t n;                 /* molecules it was found on         */
} nn_band;

typedef struct nn_interval {
    const char *part;          /* of the data: "test"               */
    int32_t n;                 /* bands, the first from 0; 0: not known */
    nn_band band[NN_BANDS_MAX];
} nn_interval;

/* The band of a similarity before any are joined: 0 below 0.3 (and of NaN), 1 below 0.5, 2. */
int nn_interval_band(double alike);

/* y measured, p predicted, alike similarities, all [n]; NaN among these: one band. Bands begin at 0, 0.3 and 0.5; one
 * that has too few molecules goes to the one below, the lowest to that above. With fewer than NN_INTERVAL_LEAST none is known.
 * part: as it is. */
pl_code nn_interval_fit(nn_interval *out, const double *y, const double *p, const double *alike, int64_t n, pl_arena *mem,
                        pl_error *err);

/* The half width for a molecule so alike (NaN: nobody knows); NaN: not known. */
double nn_interval_within(const nn_interval *i, double alike);

/* The lowest calibrated similarity: that of the NN_LOWEST_RANK-th of n molecules from below, or of the first in ten where there
 * are fewer than 100. 0: there are too few, or similarities are not known (NaN). ENOMEM. */
pl_code nn_interval_lowest(double *out, const double *alike, int64_t n, pl_arena *mem, pl_error *err);

#endif
