/* SPDX-License-Identifier: Apache-2.0 */
#include "models/family/labels.h"

#include <math.h>

static pl_code label_check(double y, int32_t i, bool classifies, pl_error *err)
{
    if (!isfinite(y))
        return pl_fail(err, PL_ECONFIG, "the value of training molecule %d is not a number", (int)i + 1);
    if (classifies && y != 0 && y != 1)
        return pl_fail(err, PL_ECONFIG, "the class of training molecule %d is %g; classes are 0 and 1", (int)i + 1, y);
    return PL_OK;
}

/* Half of each first, so that no sum overflows. */
static double half_range(const double *y, int32_t n, double *mean)
{
    double low = y[0], high = y[0], sum = 0;

    for (int32_t i = 0; i < n; i++) {
        low = y[i] < low ? y[i] : low;
        high = y[i] > high ? y[i] : high;
        sum += y[i] / n;
    }
    *mean = sum;
    return high / 2 - low / 2;
}

pl_code nn_labels_check(const double *y, int32_t n, bool classifies, double *mean, double *stdev, pl_error *err)
{
    double range, sum = 0;

    if (n < NN_FEWEST)
        return pl_fail(err, PL_ECONFIG, "%d training molecules; at least %d are needed", (int)n, (int)NN_FEWEST);
    for (int32_t i = 0; i < n; i++) {
        pl_code code = label_check(y[i], i, classifies, err);
        if (code != PL_OK)
            return code;
    }
    range = half_range(y, n, mean);
    if (!(range > 0) && classifies)
        return pl_fail(err, PL_ECONFIG, "all %d training molecules are of class %g; both classes are needed", (int)n, y[0]);
    if (!(range > 0))
        return pl_fail(err, PL_ECONFIG, "all %d training molecules have the value %g: nothing can be learned", (int)n, y[0]);
    for (int32_t i = 0; i < n; i++) {
        const double from_mean = (y[i] - *mean) / range;
        sum += from_mean * from_mean;
    }
    *stdev = range * sqrt(sum / n);
    return isfinite(*stdev) ? PL_OK
                            : pl_fail(err, PL_ECONFIG, "the values of the training molecules span more than a number holds");
}
