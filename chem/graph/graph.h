/* chem/graph/graph.h - a molecule as the neighbour list that a network reads.
 *
 * Edges are directed, src -> dst, without duplicates and loops. They
 * are grouped by dst and ordered by src inside a group, so that a sum over
 * neighbours always runs in the same order and gives the same bits. The two
 * directions of a pair of atoms share one pair entry: kind of bond, distance,
 * and the vector of the pair's edge (the edge with src < dst if it exists).
 * The vector of the other direction is exactly the negative.
 *
 * Which edges:
 *   radius  every pair at or within the cutoff, both directions. With
 *           max_neighbours each atom keeps its nearest neighbours (equal distances:
 *           the lower index), and an edge remains only if both atoms keep it: the
 *           result is symmetric and no atom has more than max_neighbours.
 *   bonds   every bond, both directions.
 *   knn     each atom receives from its k nearest (same tie rule); not symmetric.
 *   full    every ordered pair.
 *   topology  every bond, both directions, without positions: vec and dist are 0. Descriptors and fingerprints read such a graph
 *           (chem/features/features.h); a network cannot (ch_graph_is_flat).
 *   bonds+radius  every edge of radius and every bond, however long: max_neighbours never removes a bond.
 * radius and bonds take O(n) by a cell list, knn and full O(n^2).
 *
 * Units: Angstrom. Ownership: a built graph lives in the arena it was built in
 * and borrows nothing; a graph read from a block (chem/graph/graph_block.h) borrows the block. */
#ifndef CH_GRAPH_H
#define CH_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "chem/molecule/mol.h"
#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"

typedef enum ch_edges {
    CH_EDGES_RADIUS,
    CH_EDGES_BONDS,
    CH_EDGES_KNN,
    CH_EDGES_FULL,
    CH_EDGES_TOPOLOGY,
    CH_EDGES_BONDS_RADIUS
} ch_edges;

/* Whether the options `cutoff` and `max_neighbours` are read. */
static inline bool ch_edges_within(ch_edges e) { return e == CH_EDGES_RADIUS || e == CH_EDGES_BONDS_RADIUS; }

/* Kinds of pairs, as in QM9's bond features; 4 = neighbours without a bond. */
enum { CH_PAIR_SINGLE, CH_PAIR_DOUBLE, CH_PAIR_TRIPLE, CH_PAIR_AROMATIC, CH_PAIR_NOT_BONDED, CH_PAIR_KINDS };

enum { CH_GRAPH_MAX_NODES = 65535 }; /* src is 16 bits */

typedef struct ch_graph_opts {
    ch_edges edges;
    float cutoff;           /* radius, bonds+radius: Angstrom, > 0    */
    int32_t k;              /* knn: >= 1                              */
    int32_t max_neighbours; /* radius, bonds+radius: 0 = no limit     */
    int32_t max_atoms;      /* 0 = CH_GRAPH_MAX_NODES                 */
    int64_t max_edges;      /* directed edges; 0 = 2^30               */
} ch_graph_opts;

typedef struct ch_graph {
    int32_t n_nodes, n_edges, n_pairs;
    const uint8_t *z;         /* [n_nodes]    atomic number, 1..118               */
    const int8_t *charge;     /* [n_nodes]    formal charge                       */
    const int32_t *row;       /* [n_nodes+1]  edges into i: row[i]..row[i+1]-1    */
    const uint16_t *src;      /* [n_edges]    atom the edge leaves                */
    const int32_t *rev;       /* [n_edges]    the edge dst -> src, or -1          */
    const int32_t *pair;      /* [n_edges]    pair of the edge                    */
    const int32_t *pair_edge; /* [n_pairs]    the pair's edge; increases          */
    const uint8_t *type;      /* [n_pairs]    CH_PAIR_*                           */
    const float (*vec)[3];    /* [n_pairs][3] xyz[dst] - xyz[src] of the pair's edge */
    const float *dist;        /* [n_pairs]    |vec|, > 0; topology: all 0         */
} ch_graph;

/* EINPUT with a text that starts with a short code for the failure table:
 *   "geometry: ..."  no 3D positions, or one that is not finite
 *   "atoms: ..."     no atoms, or more than max_atoms
 *   "coincide: ..."  two atoms closer than 0.01 Angstrom (bonded or not)
 *   "edges: ..."     more than max_edges
 * ECONFIG for options out of range. A single atom is a graph without edges. */
pl_code ch_graph_build(ch_graph *out, const ch_mol *mol, const ch_graph_opts *opts, pl_arena *mem, pl_error *err);

/* Whether the graph has edges but no positions. A single atom is a graph of either kind. */
static inline bool ch_graph_is_flat(const ch_graph *g) { return g->n_pairs > 0 && g->dist[0] == 0; }

/* EDATA, with the place, if g does not have the properties above. Never reads out of
 * bounds, whatever the arrays contain, as long as they have the stated lengths. */
pl_code ch_graph_check(const ch_graph *g, pl_error *err);

#endif
