/* models/ref/ref.h - the reference implementation: every operation of the model, forward and
 * backward, computed as docs/model.md defines it. All faster code is tested against it.
 *
 * The same source is compiled for double (nn_ref_x) and for float (nn_reff_x).
 * Bases are the pairwise ones of models/network/basis.h; the radial weights of an edge
 * are computed row by row and never stored. Edges are processed in blocks of 16, with
 * the edge as the innermost index ("lanes"), so that the compiler can vectorise; a short
 * last block is padded with edges of zero features, which contribute zero. Sums run in
 * the order of the edges.
 *
 * docs/model.md 3 (convolution), docs/model.md 4 (attention), docs/model.md 5.1 (norm),
 * docs/model.md 5.4 (head), docs/model.md 5.5 and 2.6 (gradients). Nodes without incoming edges and empty edge lists are fine. */
#ifndef NN_REF_H
#define NN_REF_H

#include "models/network/basis.h"
#include "models/network/se3.h"

/* The edges of a batch; graph_new copies everything. */
typedef struct nn_ref_edges {
    int32_t n_nodes, n_edges, n_scalars;
    const int32_t *src, *dst;          /* [n_edges]                                      */
    const double (*vec)[3];            /* [n_edges]  pos[dst] - pos[src], Angstrom       */
    const double *scalar;              /* [n_edges][n_scalars], the distance not in it   */
    nn_fiber fiber;                    /* channels of edge features of degree 1 and up   */
    const double *feature[NN_DEGREES]; /* [n_edges][ch][2d+1]; NULL where there are none */
    nn_radial_conf radial;             /* that of the model                              */
} nn_ref_edges;

#define real double
#define REF(x) nn_ref_##x
#include "models/ref/ref_decl.h"
#undef real
#undef REF

#define real float
#define REF(x) nn_reff_##x
#include "models/ref/ref_decl.h"
#undef real
#undef REF

#endif
