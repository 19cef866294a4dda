/* models/cpu/prep.h - a batch in the order the cpu engine works in.
 *
 * Pairs are sorted by their edge features and distance: neighbours in that order
 * have nearly the same active hidden units (the skip of nn_cpu_radial). A result
 * never depends on this order, only the time does. */
#ifndef NN_CPU_PREP_H
#define NN_CPU_PREP_H

#include "models/batch.h"
#include "models/cpu/buf.h"
#include "models/cpu/pool.h"
#include "models/frame.h"
#include "pipeline/base/error.h"

typedef struct nn_cpu_prep {
    int32_t n_pairs, n_scalars, frame_size, most_in; /* most_in: largest in-degree      */
    const int32_t *slot;               /* [n_pairs][2]  edge along the frame, its reverse; -1 none */
    const float *scalar;               /* [n_pairs][n_scalars]  edge features, distance  */
    const float *frame;                /* [n_pairs][2][frame_size]                       */
    const int32_t *in_row, *in_edge;   /* edges by dst, ascending                        */
    const int32_t *out_row, *out_edge; /* edges by src, ascending                        */
    nn_buf bufs[10];
} nn_cpu_prep;

pl_code nn_cpu_prep_make(nn_cpu_prep *p, const nn_batch *in, int l_max, const nn_frame_rule *rule, nn_pool *pool,
                         pl_error *err);
void nn_cpu_prep_free(nn_cpu_prep *p);
size_t nn_cpu_prep_bytes(const nn_cpu_prep *p);

#endif
