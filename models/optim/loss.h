/* models/optim/loss.h - the losses of training (docs/model.md 1.3), and the loss scale for fp16.
 *
 * A loss is a mean over the measured numbers of a batch. L1 is |y - t| (NVIDIA's recipe), L2 is (y - t)^2
 * without a factor 1/2; both use normalised targets. BCE is binary cross-entropy in nats; targets are classes
 * 0 or 1, outputs are log odds. A class with a weight w > 0 is +w (class 1) or -w (class 0), and its loss is multiplied by w;
 * 0 is class 0 of weight 1. A target that was not measured is NaN: it has no part in the sum, the count or the gradient.
 *
 * Limits: t is a lower limit and `high` an upper one, either may be infinite. Within them the loss is 0, outside y - t becomes the distance to the
 * nearer limit. Equal limits are a measured number; high NULL: all are. BCE has no limits. */
#ifndef NN_LOSS_H
#define NN_LOSS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum nn_loss { NN_LOSS_L1, NN_LOSS_L2, NN_LOSS_BCE } nn_loss;

/* 1 / (1 + exp(-x)), the probability whose log odds are x; no overflow for any x. */
double nn_logistic(double x);

/* Sums over the measured numbers of a batch, in the order of the arrays. */
typedef struct nn_loss_sum {
    double loss, abs, square; /* sums of the loss, |y - t| and (y - t)^2; with BCE, y is its probability, and both are unweighted */
    int64_t n;                /* measured numbers */
} nn_loss_sum;

int64_t nn_loss_measured(const float *t, int64_t n); /* how many of t [n] are measured */

/* y, t, high [n]: a part of a batch that has `of` measured numbers in all. Overwrites dy [n] with the
 * gradient of (sum of the losses) / of; L1: 0 where y = t. Returns the sums over this part. */
nn_loss_sum nn_loss_backward(nn_loss kind, const float *y, const float *t, const float *high, int64_t n, int64_t of, float *dy);

void nn_loss_add(nn_loss_sum *to, const nn_loss_sum *more);

/* ---- the loss of predicted noise ---- */

/* Sums over coordinates of atoms; n == 0: there was no noise. */
typedef struct nn_noise_sum {
    double square; /* sum of (v - noise)^2, in units of the deviation of the noise */
    int64_t n;     /* coordinates: 3 an atom                                       */
} nn_noise_sum;

/* v, noise [n][3]: of n atoms of a batch that has `of` in all. Overwrites dv [n][3] with `by` times the gradient of the mean of
 * (v - noise)^2 over the 3 * of coordinates. Returns the sums over this part. */
nn_noise_sum nn_noise_backward(const float (*v)[3], const float (*noise)[3], int64_t n, int64_t of, double by, float (*dv)[3]);

/* ---- loss scale for backward passes in fp16 ----
 *
 * The gradient of the loss is multiplied by a power of two before the backward pass, and the
 * gradients of the parameters are divided by it before norm and clipping. So the scale changes no
 * bit unless an fp16 factor over- or underflows. A gradient that is not finite halves the scale,
 * `after` good steps in a row double it: Micikevicius et al. 2018, section 3.2, with the constants
 * of PyTorch's GradScaler. */
enum { NN_LOSS_SCALE_FIRST = 1 << 16, NN_LOSS_SCALE_MAX = 1 << 24, NN_LOSS_SCALE_AFTER = 2000 };

typedef struct nn_loss_scale {
    double by;    /* the scale, 1 .. NN_LOSS_SCALE_MAX; 0: not initialised */
    int64_t good; /* steps taken since the scale changed or a step was skipped */
} nn_loss_scale;

/* The scale to begin or resume with. was: from a checkpoint, or by = 0. after: good steps in a row that double
 * the scale; 0: the loss is not scaled, the scale stays 1. */
nn_loss_scale nn_loss_scale_begin(nn_loss_scale was, int64_t after);
/* The scale of the next step. taken: whether this step was taken. */
nn_loss_scale nn_loss_scale_next(nn_loss_scale s, int64_t after, bool taken);

#endif
