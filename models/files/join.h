/* models/files/join.h - one model of the networks of several: a deep ensemble (Lakshminarayanan, Pritzel, Blundell, NeurIPS 2017) in one file. */
#ifndef NN_JOIN_H
#define NN_JOIN_H

#include "models/files/model_file.h"

/* Fills *out with the networks of n models, which must be of the same settings, inputs, graph, targets, scale, ranges and training molecules. Name and
 * what is borrowed are those of the first, the rest is in mem:
 *   interval    the widest half-width in each band, as `score` takes it of several models; none where the bands differ
 *   lowest      the highest of the lowest calibrated similarities
 *   seen        the molecules that any of them has met
 *   provenance  what all say alike, without errors, and "joined": [{"name", "sha256", "provenance"}, ..]
 * ECONFIG names the model and what is not the same, or says that one has no network, has members besides it, or predicts nothing. ENOMEM. */
pl_code nn_model_join(nn_model_file *out, nn_model_file *const *m, int32_t n, pl_arena *mem, pl_error *err);

#endif
