/* models/lamb.h - LAMB over flat arrays of parameters that are cut in tensors.
 *
 *   m <- b1 m + (1-b1) g      v <- b2 v + (1-b2) g^2
 *   u = m^ / (sqrt(v^) + eps) + decay p,  m^ = m/(1-b1^t), v^ = v/(1-b2^t)
 *   p <- p - lr |p|/|u| u     norms over the tensor; the ratio is 1 where a norm is 0
 *
 * Y. You et al., Large Batch Optimization for Deep Learning: Training BERT in 76
 * minutes, ICLR 2020, algorithm 2 with phi(z) = z and decay on every parameter.
 *
 * A step is two passes: the first changes the moments and adds up squares, the
 * second changes the parameters. Any cut of a tensor in pieces will do as long as
 * it is the same every time: the sums of pieces are added in their order. */
#ifndef NN_LAMB_H
#define NN_LAMB_H

#include "models/adam.h"

/* The numbers of one step; it counts from 1. clip: factor on the gradient. average:
 * how far the moving average goes to the new parameters. */
typedef struct nn_lamb_rule {
    float b1, b2, a1, a2, eps, decay, lr, fix1, fix2, clip, average; /* fix1 = 1/(1-b1^t), fix2 = 1/sqrt(1-b2^t) */
} nn_lamb_rule;

nn_lamb_rule nn_lamb_rule_make(const nn_adamw_conf *c, int64_t step, float lr);

/* Sums of squares over a piece of a tensor, or over all of it. */
typedef struct nn_lamb_squares {
    double p, u;
} nn_lamb_squares;

/* |p|/|u|, or 1. Not finite where the sums are not. */
float nn_lamb_ratio(nn_lamb_squares whole);

/* First pass over elements first..first+n-1: moments; p as it was, and u. */
nn_lamb_squares nn_lamb_moments(const nn_adamw_arrays *a, size_t first, size_t n, const nn_lamb_rule *r);

/* Second pass: parameters, average. g is not read. */
void nn_lamb_update(const nn_adamw_arrays *a, size_t first, size_t n, const nn_lamb_rule *r, float ratio);

#endif
