/* models/optim/adam.h - AdamW over flat arrays of parameters.
 *
 *   m <- b1 m + (1-b1) g      v <- b2 v + (1-b2) g^2
 *   p <- p - lr ( m^ / (sqrt(v^) + eps) + decay p ),  m^ = m/(1-b1^t), v^ = v/(1-b2^t)
 *
 * Decoupled weight decay on every parameter alike, as the reference trains
 * (I. Loshchilov, F. Hutter, Decoupled Weight Decay Regularization, ICLR 2019;
 * docs/model.md 1.5). decay = 0 is plain Adam. */
#ifndef NN_ADAM_H
#define NN_ADAM_H

#include <stddef.h>
#include <stdint.h>

/* LAMB: models/optim/lamb.h; SOAP: models/optim/soap.h */
typedef enum nn_optimiser_kind { NN_ADAMW, NN_LAMB, NN_SOAP } nn_optimiser_kind;

typedef struct nn_adamw_conf {
    double beta1, beta2, eps, decay; /* 0.9, 0.999, 1e-8, 0.1 */
} nn_adamw_conf;

/* Constants of one step; steps count from 1. a1 = 1-b1, a2 = 1-b2, keep = 1 - lr decay, rate = lr/(1-b1^t),
 * fix = 1/sqrt(1-b2^t). clip: factor on the gradient. average: ema <- ema + average (p - ema). */
typedef struct nn_adamw_rule {
    float b1, b2, a1, a2, eps, keep, rate, fix, clip, average;
} nn_adamw_rule;

nn_adamw_rule nn_adamw_rule_make(const nn_adamw_conf *c, int64_t step, float lr);

/* Arrays of n floats that do not overlap; ema may be NULL. Element i depends on elements i only,
 * so threads may each update a part of the arrays. */
typedef struct nn_adamw_arrays {
    float *p, *m, *v, *ema;
    const float *g;
} nn_adamw_arrays;

/* Updates elements first..first+n-1 in one pass: clipping, moments, parameters, moving average. */
void nn_adamw_update(const nn_adamw_arrays *a, size_t first, size_t n, const nn_adamw_rule *r);

/* One step over all n elements, without clipping and moving average. The double form is the reference for tests. */
void nn_adamw_step(float *p, float *m, float *v, const float *g, size_t n, const nn_adamw_conf *c, int64_t step, float lr);
void nn_adamw_step_double(double *p, double *m, double *v, const double *g, size_t n, const nn_adamw_conf *c, int64_t step,
                          double lr);

#endif
