/* models/optim/lamb.h - the optimiser LAMB over flat arrays of parameters that consist of tensors.
 *
 *   m <- b1 m + (1-b1) g      v <- b2 v + (1-b2) g^2
 *   u = m^ / (sqrt(v^) + eps) + decay p,  m^ = m/(1-b1^t), v^ = v/(1-b2^t)
 *   p <- p - lr |p|/|u| u     norms over the tensor; the ratio is 1 where a norm is 0
 *
 * Y. You et al., Large Batch Optimization for Deep Learning: Training BERT in 76
 * minutes, ICLR 2020, algorithm 2 with phi(z) = z and decay on every parameter.
 *
 * A step has two passes: the first updates the moments and sums squares, the second
 * updates the parameters. A tensor may be cut in pieces in any way, as long as the cut
 * is the same in every step: the pieces' sums are added in the order of the pieces. */
#ifndef NN_LAMB_H
#define NN_LAMB_H

#include "models/optim/adam.h"

/* Constants of one step; steps count from 1. a1 = 1-b1, a2 = 1-b2. clip: factor on the gradient. average:
 * ema <- ema + average (p - ema). */
typedef struct nn_lamb_rule {
    float b1, b2, a1, a2, eps, decay, lr, fix1, fix2, clip, average; /* fix1 = 1/(1-b1^t), fix2 = 1/sqrt(1-b2^t) */
} nn_lamb_rule;

nn_lamb_rule nn_lamb_rule_make(const nn_adamw_conf *c, int64_t step, float lr);

/* Sums of squares of p and u over a piece of a tensor or over a whole tensor. */
typedef struct nn_lamb_squares {
    double p, u;
} nn_lamb_squares;

/* |p|/|u|, or 1 if a norm is 0. Not finite if a sum is not. */
float nn_lamb_ratio(nn_lamb_squares whole);

/* First pass over elements first..first+n-1: updates the moments; returns the squares of p (before the step) and u. */
nn_lamb_squares nn_lamb_moments(const nn_adamw_arrays *a, size_t first, size_t n, const nn_lamb_rule *r);

/* Second pass: updates parameters and moving average. ratio: from nn_lamb_ratio of the whole tensor. g is not read. */
void nn_lamb_update(const nn_adamw_arrays *a, size_t first, size_t n, const nn_lamb_rule *r, float ratio);

#endif
