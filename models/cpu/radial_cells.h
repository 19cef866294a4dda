/* models/cpu/radial_cells.h - sorts the edges of a batch by cells of the grid of radial nodes (op 2 of
 * docs/model.md 8; docs/performance.md 2.4).
 *
 * A cell is a set of edge features (compared bit by bit) with an interval of distances
 * [j w, (j+1) w); its two radial nodes are the ends of the interval. A tile holds edges
 * of one cell, both directions. A chunk is a run of tiles whose node tables are in
 * memory together. It is cut in pieces: runs of tiles for which one thread sums the
 * gradients of the tables. If several pieces of a chunk use a node, each piece has its
 * own sum for it. All cuts depend on the batch only. */
#ifndef NN_CPU_RADIAL_CELLS_H
#define NN_CPU_RADIAL_CELLS_H

#include <stdint.h>

#include "models/cpu/buf.h"

enum {
    NN_TILE_ROWS = 128,  /* maximum edges of a tile                          */
    NN_CHUNK_NODES = 96, /* maximum nodes of a chunk                         */
    NN_CHUNK_SUMS = 160, /* maximum sums of a chunk                          */
    NN_PIECE_TILES = 8   /* maximum tiles of a piece                         */
};

typedef struct nn_cpu_tile {
    int32_t first, n_rows;
    int32_t node[2], sum[2]; /* numbers within the chunk                         */
    bool fresh[2];           /* it is the first tile of its piece that uses this sum */
} nn_cpu_tile;

typedef struct nn_cpu_chunk {
    int32_t tile, n_tiles, piece, n_pieces, node, n_nodes, sum, n_sums; /* first and number of each */
} nn_cpu_chunk;

typedef struct nn_cpu_cells {
    int32_t n_nodes, n_rows, n_tiles, n_pieces, n_sums, n_chunks;
    const float *scalar;    /* [n_nodes][n_scalars]  edge features, distance    */
    const int32_t *slot;    /* [n_rows]     edge slot in nn_cpu_prep             */
    const float *weight[2]; /* [n_rows]     interpolation weights of the cell's two nodes; their sum is the edge's envelope, or 1 */
    const nn_cpu_tile *tile; /* [n_tiles]                                        */
    const int32_t *piece;    /* [n_pieces+1] first tile                          */
    const int32_t *sum_node; /* [n_sums]     node of a chunk's sum, within the chunk */
    const nn_cpu_chunk *chunk;
    double *tile_sum; /* [n_tiles]    scratch                             */
    nn_buf bufs[8];
} nn_cpu_cells;

struct nn_cpu_prep;

/* Makes the cells of the pairs of `prep`, in its order. width: Angstrom between radial nodes. false: no memory. */
bool nn_cpu_cells_make(nn_cpu_cells *c, const struct nn_cpu_prep *prep, double width);
void nn_cpu_cells_free(nn_cpu_cells *c);
size_t nn_cpu_cells_bytes(const nn_cpu_cells *c);

#endif
