/* models/network/sparse.h - 2:4 sparsity: of every four weights along k, two at most are not zero.
 *
 * k is the index that a product sums over: the last one of a weight matrix [rows][k]. The pattern is the one of the sparse matrix
 * instructions of NVIDIA's GPUs (A. Mishra et al. 2021, arXiv:2104.08378). It holds for matrices that nn_sparse_fits; the others
 * and all biases, gains and norms stay dense. In a group the two largest magnitudes are kept, of equal ones the first. The rows of
 * a last radial layer for one path and one pair of channels share their zeros (magnitude: the root of their sum of squares),
 * because engines mix these rows (docs/performance.md 2.1): so the mixed rows are 2:4, too.
 *
 * Packed, a group is its two numbers and one index each, 0 to 3, the lower first: 2 bits each, low bits first, two groups in a
 * byte, the first in the low half. In a group with fewer numbers, zeros take the first free places. Plain functions without
 * state; n is the number of weights, a multiple of four. */
#ifndef NN_SPARSE_H
#define NN_SPARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "models/network/se3.h"

enum { NN_SPARSE_GROUP = 4, NN_SPARSE_KEPT = 2, NN_SPARSE_ROWS = 8, NN_SPARSE_K = 16 };

/* Whether a parameter is a matrix for 2:4: at least NN_SPARSE_ROWS rows, and k at least NN_SPARSE_K and a multiple of four. */
bool nn_sparse_fits(const nn_param *p);

typedef struct nn_sparse_count {
    int32_t matrices, dense; /* that fit; other matrices       */
    size_t weights, zeros;   /* of those that fit: in all; 0   */
} nn_sparse_count;

/* Counts in params; NULL: none of them is 0. */
nn_sparse_count nn_sparse_count_of(const nn_param *param, int32_t n, const float *params);

void nn_sparse_prune(float *w, const nn_param *p);          /* w: of the matrix p, which fits */
void nn_sparse_follow(float *to, const float *w, size_t n); /* to is 0 where w is; n: any number */

size_t nn_sparse_index_bytes(size_t n);

/* value [n/2], index [nn_sparse_index_bytes(n)]. false: a group has more than two numbers. */
bool nn_sparse_pack(float *value, uint8_t *index, const float *w, size_t n);

/* Returns n/4, or the first group whose indices do not ascend, or n/4 + 1: the half byte behind the last group is not 0. */
size_t nn_sparse_unpack(float *w, const float *value, const uint8_t *index, size_t n);

#endif
