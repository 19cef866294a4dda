/* models/adam.h - AdamW over flat arrays of parameters.
 *
 *   m <- b1 m + (1-b1) g      v <- b2 v + (1-b2) g^2
 *   p <- p - lr ( m^ / (sqrt(v^) + eps) + decay p ),  m^ = m/(1-b1^t), v^ = v/(1-b2^t)
 *
 * Decoupled weight decay on every parameter alike, as the reference trains
 * (I. Loshchilov, F. Hutter, Decoupled Weight Decay Regularization, ICLR 2019;
 * spec 1.5). decay = 0 is plain Adam. */
#ifndef NN_ADAM_H
#define NN_ADAM_H

#include <stddef.h>
#include <stdint.h>

typedef struct nn_adamw_conf {
    double beta1, beta2, eps, decay; /* 0.9, 0.999, 1e-8, 0.1 */
} nn_adamw_conf;

/* step counts from 1. The double form is for the oracle. */
void nn_adamw_step(float *p, float *m, float *v, const float *g, size_t n, const nn_adamw_conf *c,
                   int64_t step, float lr);
void nn_adamw_step_double(double *p, double *m, double *v, const double *g, size_t n,
                          const nn_adamw_conf *c, int64_t step, double lr);

#endif
