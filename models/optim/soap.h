/* models/optim/soap.h - the optimiser SOAP: Adam in the eigenbases of a tensor's second moments.
 *
 * A tensor has modes: rows and columns of a matrix, or the four indices of the last layer of a radial network
 * (c_out, c_in, frequency, hidden unit; docs/model.md 3.1). For each mode d of 2 .. NN_SOAP_LARGEST numbers, with G(d) the
 * gradient unfolded along it:
 *
 *   C_d <- s C_d + (1-s) G(d) G(d)^T               s = NN_SOAP_KEEPS; the first step begins with G(d) G(d)^T
 *   Q_d <- orthonormal columns of C_d Q_d          every NN_SOAP_EVERY steps; the first step finds eigenvectors
 *   G'  =  G turned by Q_d^T in every mode
 *   m <- b1 m + (1-b1) G'     v <- b2 v + (1-b2) G'^2
 *   p <- p - lr ( m^ / (sqrt(v^) + eps), turned back by every Q_d, + decay p ),  m^ = m/(1-b1^(t-1)), v^ = v/(1-b2^(t-1))
 *
 * The first step only finds bases. m is turned when a basis changes, v is not. Larger modes and those of one number are not turned; a tensor
 * without any other (biases, gains) has Adam's steps.
 *
 * N. Vyas et al., SOAP: Improving and Stabilizing Shampoo using Adam, ICLR 2025, algorithm 3, for tensors as in its section 4. */
#ifndef NN_SOAP_H
#define NN_SOAP_H

#include "models/cpu/kernels/kernels.h"
#include "models/network/se3.h"
#include "models/optim/adam.h"

enum { NN_SOAP_LARGEST = 128, NN_SOAP_EVERY = 10 };
#define NN_SOAP_KEEPS 0.95f

typedef struct nn_soap nn_soap;

/* tensor[n]: not empty. workers: how many threads may call nn_soap_step at once. kernels: of the products. In mem; NULL: no memory. */
nn_soap *nn_soap_new(const nn_param *tensor, int32_t n, int workers, const nn_cpu_kernels *kernels, pl_arena *mem);

/* Numbers of all C and Q of these tensors; zeros before the first step. */
size_t nn_soap_bases(const nn_param *tensor, int32_t n);

/* One step of one tensor: updates moments, parameters, moving average and its part of bases [nn_soap_bases]. Tensors do not depend on
 * each other. step: counts from 1; rule: of step - 1, from nn_adamw_rule_make, with clip and average. */
void nn_soap_step(nn_soap *s, int worker, int32_t tensor, const nn_adamw_arrays *arrays, float *bases, int64_t step,
                  const nn_adamw_rule *rule);

#endif
