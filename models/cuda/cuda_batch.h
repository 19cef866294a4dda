/* models/cuda/cuda_batch.h - lays out a batch for the cuda engine in one block of host memory, which is
 * copied to the device at once (op 2 of docs/model.md 8; docs/performance.md 2.4).
 *
 * A cell is a kind of pairs (equal edge features, compared bit by bit) with an interval
 * [j w, (j+1) w) of distances; its radial nodes are the two ends. Kinds are in the order of the
 * batch, the cells of a kind ascend in distance, the pairs of a cell are in the order of the
 * batch. In exact mode every pair is a cell with one node. Rows are the directed edges in the
 * order of their pairs. All cuts depend on the batch only. Sums over the edges of an atom
 * follow the batch's order of edges. */
#ifndef NN_CUDA_BATCH_H
#define NN_CUDA_BATCH_H

#include "models/cuda/device/ops.h"
#include "models/engine/engine.h"

/* A cell: its radial nodes, its first row and tile. They end where those of the next cell begin. */
typedef struct nn_cuda_cell {
    int32_t node[2], row, tile;
} nn_cuda_cell;

/* An entry of the hash table of kinds. edge: the first edge of this kind, -1: the entry is empty. number: of the kind. */
typedef struct nn_cuda_kind {
    int32_t edge, number;
} nn_cuda_kind;

typedef struct nn_cuda_prep {
    nn_radial radial;
    double width;
    const nn_radial_conf *inputs;                                           /* of the model: what radial networks read */
    int32_t n_pairs, n_rows, n_nodes, n_tiles, n_whole, n_cells, n_scalars; /* n_nodes: radial */
    int32_t n_targets;                                                      /* set by the caller, who also fills the next two */
    char *host;                                             /* the block: the arrays below up to `span`, end to end */
    size_t bytes, room, max;                                /* bytes used, allocated, needed by the largest batch so far */
    const float *vec, *stored;                              /* [n_pairs][3]; [n_pairs][83] or NULL          */
    const float *scalar;                                    /* [n_nodes][n_scalars]                         */
    const float *node;                                      /* [batch nodes][features]                      */
    const float *phi;                                       /* [n_rows][2] weights of the cell's two nodes  */
    const int32_t *src, *dst, *frame;                       /* [n_rows] frame: as in nn_gpu_turn      */
    const int32_t *in_first, *in_row, *out_first, *out_row; /* rows by dst, and by src: first [nodes+1], row [n_rows] */
    const float *log_envelope, *in_sum;                     /* [n_rows] or NULL; [batch nodes] envelopes by dst, summed */
    const int32_t *graph;                                   /* [n_graphs+1]                                 */
    float *target, *high;                                   /* [n_targets]                                  */
    const nn_gpu_tile *tile, *whole; /* whole: in exact mode all rows, whatever their cells, in tiles of NN_GPU_TILE */
    const nn_gpu_span *span;         /* [n_nodes]                                    */
    nn_cuda_cell *cell;              /* [n_cells+1]; this and all below are on the host only */
    struct nn_cuda_pair *pair, *spare;
    nn_cuda_kind *kind; /* [2^kind_bits]                                */
    int kind_bits;
    uint64_t interval, stride; /* the smallest j; distance between the sort keys of two kinds */
    int32_t *row_of;           /* [n_edges]                                    */
    size_t cell_room, pair_room, spare_room, kind_room, edge_room;
} nn_cuda_prep;

/* Allocates host memory for the block; old contents are lost. NULL: no memory. */
typedef void *(*nn_cuda_grow)(void *ctx, size_t bytes);

/* radial, width, inputs and n_targets of p must be set. ENOMEM. EBUG: the pairs of the batch do not cover its edges. */
pl_code nn_cuda_prep_make(nn_cuda_prep *p, const nn_batch *in, nn_cuda_grow grow, void *ctx, pl_error *err);
void nn_cuda_prep_free(nn_cuda_prep *p); /* frees all but `host`, which the caller allocated */

#endif
