/* SPDX-License-Identifier: Apache-2.0 */
#include "models/features/mirror.h"

#include <stdbool.h>
#include <stdlib.h>

#include "models/network/frame.h"

enum { STORED_DEGREES = 3 };

struct nn_mirror {
    float (*vec)[3], *frame;
    size_t n_vec, n_frame;       /* edges and pairs that the arrays can hold */
    float sign[NN_FRAME_FLOATS]; /* factor of each entry of a frame */
};

nn_mirror *nn_mirror_new(void)
{
    nn_mirror *m = calloc(1, sizeof *m);

    if (m != NULL)
        nn_frame_reverse(STORED_DEGREES, m->sign);
    return m;
}

void nn_mirror_free(nn_mirror *m)
{
    if (m == NULL)
        return;
    free(m->vec);
    free(m->frame);
    free(m);
}

static bool room_for(nn_mirror *m, size_t n_edges, size_t n_pairs)
{
    if (n_edges > m->n_vec) {
        free(m->vec);
        m->vec = malloc(n_edges * sizeof *m->vec);
        m->n_vec = m->vec != NULL ? n_edges : 0;
    }
    if (n_pairs > m->n_frame) {
        free(m->frame);
        m->frame = malloc(n_pairs * NN_FRAME_FLOATS * sizeof *m->frame);
        m->n_frame = m->frame != NULL ? n_pairs : 0;
    }
    return n_edges <= m->n_vec && n_pairs <= m->n_frame;
}

pl_code nn_mirror_batch(nn_mirror *m, nn_batch *out, const nn_batch *in, pl_error *err)
{
    size_t n_edges = (size_t)in->n_edges, n_pairs = in->frame != NULL ? (size_t)in->n_pairs : 0;

    *out = *in;
    if (!room_for(m, n_edges, n_pairs))
        return pl_fail(err, PL_ENOMEM, "mirror images of a batch of %d edges", (int)in->n_edges);
    for (size_t e = 0; e < n_edges; e++)
        for (int k = 0; k < 3; k++)
            m->vec[e][k] = -in->vec[e][k];
    for (size_t p = 0; p < n_pairs; p++)
        for (size_t k = 0; k < NN_FRAME_FLOATS; k++)
            m->frame[p * NN_FRAME_FLOATS + k] = m->sign[k] * in->frame[p * NN_FRAME_FLOATS + k];
    out->vec = (const float(*)[3])m->vec;
    out->frame = in->frame != NULL ? m->frame : NULL;
    return PL_OK;
}
