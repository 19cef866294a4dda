/* models/training/sparsity.h - 2:4 sparsity in a training (models/network/sparse.h): pruned once by magnitude, then trained on.
 *
 * The mask is not stored: a weight of a matrix that fits is masked if it is 0. Pruning also clears the moments and the average
 * of these weights, and from then on their gradient is cleared, so every optimiser leaves them at 0. The state alone
 * therefore decides, and a training that was killed goes on with the same bits. */
#ifndef NN_SPARSITY_H
#define NN_SPARSITY_H

#include "models/threads/pool.h"
#include "models/training/train_state.h"

/* The epoch before whose first step weights are pruned: the first, or that after half of the epochs. INT64_MAX: never, or the
 * number of epochs is not known yet. */
int64_t nn_sparsity_epoch(const nn_train_conf *conf, const nn_train_state *s);

/* Whether the next step trains pruned weights; pruned: they are to be pruned before it. */
bool nn_sparsity_begins(const nn_train_conf *conf, const nn_train_state *s);
bool nn_sparsity_holds(const nn_train_conf *conf, const nn_train_state *s);

/* Prunes params, m, v and ema. No epoch is the best one any more: those before had other weights. Twice is as once. */
void nn_sparsity_prune(nn_train_state *s);

/* Clears the gradient [s->n] of masked weights. */
void nn_sparsity_gradient(float *grad, const nn_train_state *s, nn_pool *pool);

#endif
