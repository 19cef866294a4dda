/* models/cpu/cpu_batch.h - prepares a batch for the cpu engine: sorted pairs, edge frames, edges by atom.
 *
 * Pairs are sorted by their edge features and distance, because neighbours in this order
 * have nearly the same active hidden units, so more of them can be skipped
 * (docs/performance.md 2.3). The order changes no result, only the time. */
#ifndef NN_CPU_BATCH_H
#define NN_CPU_BATCH_H

#include "models/cpu/buf.h"
#include "models/features/batch.h"
#include "models/network/frame.h"
#include "models/network/se3.h"
#include "models/threads/pool.h"
#include "pipeline/base/error.h"

typedef struct nn_cpu_prep {
    int32_t n_pairs, n_scalars, frame_size, max_in; /* max_in: largest in-degree      */
    const int32_t *slot;                            /* [n_pairs][2]  edge along the frame, its reverse; -1: none */
    const float *scalar;                            /* [n_pairs][n_scalars]  edge features, distance  */
    const float *frame;                             /* [n_pairs][2][frame_size]  D of the edge, of its reverse */
    const float *envelope, *log_envelope;           /* [n_pairs]; [n_edges] as logits; NULL: there is none */
    const float *in_sum;                            /* [n_nodes]  sums of the envelope over the edges by dst; NULL likewise */
    const int32_t *in_row, *in_edge;                /* edges by dst, ascending                        */
    const int32_t *out_row, *out_edge;              /* edges by src, ascending                        */
    nn_buf bufs[13];
} nn_cpu_prep;

/* Frames have degrees 0..degrees-1 of the network; stored ones (in->frame) are used if there are any. ENOMEM. */
pl_code nn_cpu_prep_make(nn_cpu_prep *p, const nn_batch *in, const nn_se3_conf *conf, const nn_frame_rule *rule, nn_pool *pool,
                         pl_error *err);
void nn_cpu_prep_free(nn_cpu_prep *p);
size_t nn_cpu_prep_bytes(const nn_cpu_prep *p);

#endif
