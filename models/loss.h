/* models/loss.h - what training makes small.
 *
 * Both are means over all numbers of a batch, on normalised targets: L1 is the
 * reference's (spec 1.3), L2 the square without a half. A target that is not
 * measured is NaN: it has no part in the sum, the count or the gradient. */
#ifndef NN_LOSS_H
#define NN_LOSS_H

#include <stdint.h>

typedef enum nn_loss { NN_LOSS_L1, NN_LOSS_L2 } nn_loss;

/* Sums over the measured numbers of a batch, in the order of the arrays. */
typedef struct nn_loss_sum {
    double loss, abs, square; /* sums of the loss, |y - t| and (y - t)^2 */
    int64_t n;
} nn_loss_sum;

int64_t nn_loss_measured(const float *t, int64_t n);

/* y, t [n], a part of a batch that has `of` measured numbers. dy [n], overwritten: the
 * gradient of the sum of the losses / of (L1: 0 where y = t). */
nn_loss_sum nn_loss_backward(nn_loss kind, const float *y, const float *t, int64_t n, int64_t of, float *dy);

void nn_loss_add(nn_loss_sum *to, const nn_loss_sum *more);

#endif
