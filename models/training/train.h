/* models/training/train.h - the training loop.
 *
 * The loop reads three records: the settings (nn_train_conf), the samples (nn_samples,
 * which makes batches) and the host (nn_train_host: callbacks that save, report and stop).
 * Everything that changes is in nn_train_state. This record at any step boundary is
 * enough to continue with the same bits, so a checkpoint contains only this record.
 *
 * The order of the molecules in an epoch is a permutation computed from (seed, epoch), so
 * only a cursor is stored. A batch takes molecules in that order until it has
 * `molecules` of them or the next one would exceed max_edges directed edges.
 *
 * Recipe: NVIDIA's SE3Transformer (loss, AdamW, cosine; docs/model.md 1.3, 1.5); clipping
 * by global norm, Pascanu et al. 2013; exponential moving average of the weights,
 * Polyak and Juditsky 1992; LAMB in place of AdamW, You et al. 2020. */
#ifndef NN_TRAIN_H
#define NN_TRAIN_H

#include "models/training/train_state.h"

/* Trains from the state s to the end. PL_OK: s->done, and s->best has the weights of the best epoch.
 * ESTOP: stopped, s was saved. If valid->n is 0 the last epoch counts as the best. */
pl_code nn_train(nn_train_state *s, const nn_train_conf *conf, const nn_engine_kind *kind, nn_engine *engine,
                 const nn_samples *train, const nn_samples *valid, const nn_train_host *host, pl_error *err);

/* The learning rate after `at` epochs of so many; at may have a fraction. With a budget it does not depend on `epochs` in
 * the first epoch, in which they are not known. */
double nn_train_lr(const nn_train_conf *conf, int64_t epochs, double at);

/* Writes the order of the molecules in an epoch to order [n]. */
void nn_train_order(int64_t *order, int64_t n, uint64_t seed, int64_t epoch);

#endif
