/* models/features/batch.h - a batch: several molecular graphs laid end to end, as a network reads them.
 *
 * Edges are directed, src -> dst, and messages are summed at dst. In batches
 * made from feature blobs edges are grouped by dst and ordered by src inside a
 * group (CSR), every edge knows its reverse, and both directions of a pair
 * share one pair entry. The `ref` operations need only src, dst, vec and edge;
 * everything else may be NULL for them.
 *
 * Units: Angstrom. All arrays are borrowed; indices run over the whole batch. */
#ifndef NN_BATCH_H
#define NN_BATCH_H

#include <stdint.h>

typedef struct nn_batch {
    int32_t n_graphs, n_nodes, n_edges, n_pairs;
    int32_t n_node_features;  /* scalars per node                                        */
    int32_t n_edge_features;  /* scalars per edge, without the distance                  */
    const int32_t *first;     /* [n_graphs+1]  nodes of graph g: first[g]..first[g+1]-1  */
    const float *node;        /* [n_nodes][n_node_features]                              */
    const int32_t *src, *dst; /* [n_edges]                                               */
    const int32_t *row;       /* [n_nodes+1]  edges into i: row[i]..row[i+1]-1           */
    const int32_t *rev;       /* [n_edges]    the edge dst -> src, or -1                 */
    const int32_t *pair;      /* [n_edges]    pair of the edge; the pair's frame points
                                     along its first edge, see pair_edge                     */
    const int32_t *pair_edge; /* [n_pairs]    the edge whose direction is the pair's     */
    const float *edge;        /* [n_edges][n_edge_features]                              */
    const float (*vec)[3];    /* [n_edges][3]  pos[dst] - pos[src]                       */
    const float *dist;        /* [n_edges]     |vec|                                     */
    const float *frame;       /* [n_pairs][NN_FRAME_FLOATS] D_1, D_2, D_3 of models/network/frame.h
                                     (stored bases), or NULL: computed from vec              */
    const float (*noise)[3];  /* [n_nodes]  noise on the positions in units of its deviation,
                                     less its mean over the molecule; NULL: there is none    */
} nn_batch;

#endif
