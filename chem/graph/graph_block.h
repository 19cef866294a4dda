/* chem/graph/graph_block.h - graphs as bytes, in the layout the model reads.
 *
 * A block of the features database: many graphs, each with the id of its
 * molecule; the graphs of a molecule's conformers are adjacent. Little-endian; every section starts at a
 * multiple of 8 bytes, with zeros between; arrays are concatenated over the block, indices are local to their
 * molecule. With n graphs, N nodes, E edges, P pairs:
 *
 *   header, 48 bytes: char magic[4] "MSGB", u32 version, u32 crc32 of all that
 *   follows this field, u32 n, u64 total bytes, u64 N, u64 E, u64 P
 *   i64 id[n]
 *   u32 node_at[n+1], edge_at[n+1], pair_at[n+1]   first node, edge, pair; last = N, E, P
 *   i32 row[N+n]      graph g: node_at[g] + g
 *   i32 rev[E], i32 pair[E], i32 pair_edge[P]
 *   f32 vec[P][3], f32 dist[P]
 *   u16 src[E], u8 type[P], u8 z[N], i8 charge[N]
 *
 * The same graphs give the same bytes. Unpacking copies nothing: the graphs
 * point into the bytes, which must outlive them. It accepts any bytes: it gives
 * graphs that pass ch_graph_check, or EDATA, and never reads out of bounds. */
#ifndef CH_GRAPH_BLOCK_H
#define CH_GRAPH_BLOCK_H

#include <stdint.h>

#include "chem/graph/graph.h"
#include "pipeline/base/file.h"

typedef struct ch_graph_block {
    int32_t n;
    int64_t n_nodes, n_edges, n_pairs; /* of all graphs                          */
    uint32_t crc;                      /* identifies the content; basis blocks store it */
    const int64_t *id;                 /* [n] molecule                           */
    const ch_graph *graph;             /* [n]                                    */
} ch_graph_block;

/* Size in bytes of a block with these totals, for estimates. */
double ch_graph_block_bytes(double n, double n_nodes, double n_edges, double n_pairs);

pl_code ch_graph_block_pack(pl_bytes *out, const int64_t *id, const ch_graph *graph, int32_t n, pl_arena *mem, pl_error *err);

/* id and graph live in mem or point into the bytes; bytes not aligned to 8 are first copied to mem. */
pl_code ch_graph_block_unpack(ch_graph_block *out, pl_bytes in, pl_arena *mem, pl_error *err);

#endif
