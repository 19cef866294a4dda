/* models/family/labels.h - what every member asks of the values that it learns. */
#ifndef NN_LABELS_H
#define NN_LABELS_H

#include "models/family/family.h"

enum { NN_FEWEST = 10 }; /* molecules that a member is learned from, at least */

/* Mean and standard deviation of y [n], the latter > 0. ECONFIG: fewer than NN_FEWEST, a value that is not finite, all equal; of
 * classes: a value that is neither 0 nor 1, one class only. */
pl_code nn_labels_check(const double *y, int32_t n, bool classifies, double *mean, double *stdev, pl_error *err);

#endif
