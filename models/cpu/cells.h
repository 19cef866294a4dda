/* models/cpu/cells.h - the edges of a batch by cell of the grid of radial nodes
 * (docs/performance.md 2.4).
 *
 * A cell is a kind of edge (its features, bit by bit) and an interval of distances
 * [j w, (j+1) w); its two nodes are the ends. Tiles are edges of one cell; edges
 * of both directions are rows of the same tile. A chunk is a run of tiles whose
 * node tables are in memory together, and is cut in pieces: runs of tiles whose
 * gradients of tables are added up by one thread. A node that several pieces of a
 * chunk share has a sum in each. All cuts depend on the batch alone. */
#ifndef NN_CPU_CELLS_H
#define NN_CPU_CELLS_H

#include <stdint.h>

#include "models/cpu/buf.h"

enum {
    NN_TILE_ROWS = 128,  /* edges of a tile at most                          */
    NN_CHUNK_NODES = 96, /* of a chunk at most                               */
    NN_CHUNK_SUMS = 160,
    NN_PIECE_TILES = 8
};

typedef struct nn_cpu_tile {
    int32_t first, n_rows;
    int32_t node[2], sum[2]; /* within the chunk                                 */
    bool fresh[2];           /* the first tile of its piece with that sum        */
} nn_cpu_tile;

typedef struct nn_cpu_chunk {
    int32_t tile, n_tiles, piece, n_pieces, node, n_nodes, sum, n_sums; /* from .. how many */
} nn_cpu_chunk;

typedef struct nn_cpu_cells {
    int32_t n_nodes, n_rows, n_tiles, n_pieces, n_sums, n_chunks;
    const float *scalar;     /* [n_nodes][n_scalars]  edge features, distance    */
    const int32_t *slot;     /* [n_rows]     of nn_cpu_prep                      */
    const float *weight[2];  /* [n_rows]     of the cell's two nodes; sum 1      */
    const nn_cpu_tile *tile; /* [n_tiles]                                        */
    const int32_t *piece;    /* [n_pieces+1] first tile                          */
    const int32_t *sum_node; /* [n_sums]     node of a chunk's sum, within the chunk */
    const nn_cpu_chunk *chunk;
    double *tile_sum;        /* [n_tiles]    room for a number                   */
    nn_buf bufs[8];
} nn_cpu_cells;

struct nn_cpu_prep;

/* Of the pairs in the order of `prep`. false: no memory. */
bool nn_cpu_cells_make(nn_cpu_cells *c, const struct nn_cpu_prep *prep, double width);
void nn_cpu_cells_free(nn_cpu_cells *c);
size_t nn_cpu_cells_bytes(const nn_cpu_cells *c);

#endif
