/* models/cuda/prep.h - a batch in the order the cuda engine works in, in one piece of
 * host memory that goes to the device in one copy.
 *
 * A cell is a kind of pairs (their edge features, bit by bit) and an interval [j w, (j+1) w) of
 * distances with radial nodes at its two ends; kinds come in the batch's order, their cells by
 * distance, a cell's pairs in the batch's order. With exact radial networks every pair is a cell with one node. Rows are
 * the directed edges in the order of their pairs. All cuts depend on the batch alone;
 * an edge's row in the sums of its nodes follows the batch's order of edges. */
#ifndef NN_CUDA_PREP_H
#define NN_CUDA_PREP_H

#include "models/cuda/ops.h"
#include "models/engine.h"

/* Radial nodes from node on; rows and tiles up to those of the next cell. */
typedef struct nn_cuda_cell {
    int32_t node[2], row, tile;
} nn_cuda_cell;

/* Of pairs: its first edge; -1 where there is none. */
typedef struct nn_cuda_kind {
    int32_t edge, number;
} nn_cuda_kind;

typedef struct nn_cuda_prep {
    nn_radial radial;
    double width;
    int32_t n_pairs, n_rows, n_nodes, n_tiles, n_cells, n_scalars; /* n_nodes: radial */
    int32_t n_targets;           /* set by the caller, who fills `target`        */
    char *host;                  /* everything below up to `cell`, end to end    */
    size_t bytes, room, most;    /* room of `host`; most: what the largest batch so far wants */
    const float *vec, *stored;   /* [n_pairs][3]; [n_pairs][83] or NULL          */
    const float *scalar;         /* [n_nodes][n_scalars]                         */
    const float *node;           /* [batch nodes][features]                      */
    const float *phi;            /* [n_rows][2]                                  */
    const int32_t *src, *dst, *frame;  /* [n_rows]                               */
    const int32_t *in_first, *in_row, *out_first, *out_row;
    const int32_t *graph;        /* [n_graphs+1]                                 */
    float *target;               /* [n_targets]                                  */
    const nn_gpu_tile *tile;
    const nn_gpu_span *span;     /* [n_nodes]                                    */
    nn_cuda_cell *cell;          /* [n_cells+1], host only, as are these:        */
    struct nn_cuda_pair *pair, *spare;
    nn_cuda_kind *kind;          /* [2^kind_bits]                                */
    int kind_bits;
    uint64_t interval, stride;   /* the least j; keys from kind to kind          */
    int32_t *row_of;             /* [n_edges]                                    */
    size_t cell_room, pair_room, spare_room, kind_room, edge_room;
} nn_cuda_prep;

/* Host memory for the big block; contents are lost when it grows. NULL: refused. */
typedef void *(*nn_cuda_grow)(void *ctx, size_t bytes);

pl_code nn_cuda_prep_make(nn_cuda_prep *p, const nn_batch *in, nn_cuda_grow grow, void *ctx, pl_error *err);
void nn_cuda_prep_free(nn_cuda_prep *p); /* not `host` */

#endif
