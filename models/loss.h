/* models/loss.h - what training makes small.
 *
 * All are means over the numbers of a batch. L1, the reference's (docs/model.md 1.3), and L2, the square
 * without a half, are of normalised targets. BCE, binary cross-entropy in nats, is of classes, 0 or 1, and
 * the logarithms of their odds. A target that is not measured is NaN: it has no part in the sum, the count
 * or the gradient. */
#ifndef NN_LOSS_H
#define NN_LOSS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum nn_loss { NN_LOSS_L1, NN_LOSS_L2, NN_LOSS_BCE } nn_loss;

/* 1 / (1 + exp(-x)), the probability whose log odds are x; for any x. */
double nn_logistic(double x);

/* Sums over the measured numbers of a batch, in the order of the arrays. */
typedef struct nn_loss_sum {
    double loss, abs, square; /* sums of the loss, |y - t| and (y - t)^2; with BCE of the probability, not y */
    int64_t n;
} nn_loss_sum;

int64_t nn_loss_measured(const float *t, int64_t n);

/* y, t [n], a part of a batch that has `of` measured numbers. dy [n], overwritten: the
 * gradient of the sum of the losses / of (L1: 0 where y = t). */
nn_loss_sum nn_loss_backward(nn_loss kind, const float *y, const float *t, int64_t n, int64_t of, float *dy);

void nn_loss_add(nn_loss_sum *to, const nn_loss_sum *more);

/* ---- scaling for backward passes in fp16 ----
 *
 * The gradient of the loss is multiplied by a power of two before the backward pass; norm and
 * clipping of the parameters' gradient undo it. So no bit depends on it, unless a factor of fp16
 * over- or underflows. A gradient that is not finite halves it, so many good steps in a row double
 * it: Micikevicius et al. 2018, section 3.2, with the constants of PyTorch's GradScaler. */
enum { NN_LOSS_SCALE_FIRST = 1 << 16, NN_LOSS_SCALE_MOST = 1 << 24, NN_LOSS_SCALE_AFTER = 2000 };

typedef struct nn_loss_scale {
    double by;                /* 1 .. NN_LOSS_SCALE_MOST; 0: not begun        */
    int64_t good;             /* steps taken since it was changed or a step was not */
} nn_loss_scale;

/* after: of how many good steps it grows; 0: the loss is not scaled, and it stays 1. */
nn_loss_scale nn_loss_scale_begin(nn_loss_scale was, int64_t after);
/* For the step after this one. */
nn_loss_scale nn_loss_scale_next(nn_loss_scale s, int64_t after, bool taken);

#endif
