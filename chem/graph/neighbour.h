/* chem/graph/neighbour.h - neighbour lists of atoms: the first step of building a graph,
 * before pairs are assigned. Used by chem/graph/graph.c only.
 *
 * Distances equal those that the graph stores: the vector is first rounded to
 * float32, so that "closer than the cutoff" means the same everywhere and is
 * exactly symmetric. Units: Angstrom. */
#ifndef CH_NEIGHBOUR_H
#define CH_NEIGHBOUR_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"

/* Neighbours of atom i: src[row[i]] .. src[row[i+1]-1], ascending. */
typedef struct ch_neighbours {
    int32_t n;     /* atoms   */
    int32_t *row;  /* [n+1]   */
    uint16_t *src; /* [row[n]] */
} ch_neighbours;

enum { CH_NEIGHBOURS_MAX = 1 << 30 };

/* |xyz[i] - xyz[j]| as stored. */
float ch_distance(const float (*xyz)[3], int32_t i, int32_t j);

/* All atoms within the cutoff, by a cell list. EINPUT "coincide: ..." when two
 * atoms are closer than `apart`, "edges: ..." above max_edges. */
pl_code ch_near_radius(ch_neighbours *out, const float (*xyz)[3], int32_t n, float cutoff, float apart, int64_t max_edges,
                       pl_arena *mem, pl_error *err);

/* The k nearest of each atom; of equal distances the lower index first. */
pl_code ch_near_knn(ch_neighbours *out, const float (*xyz)[3], int32_t n, int32_t k, pl_arena *mem, pl_error *err);

/* Keeps an entry only if each of its two atoms is among the `most` nearest of the other. In place. */
pl_code ch_near_limit(ch_neighbours *nb, const float (*xyz)[3], int32_t max, pl_arena *mem, pl_error *err);

/* Turns the counts in row[i+1] into offsets and allocates src with row[n] entries. */
pl_code ch_near_rows(ch_neighbours *nb, pl_arena *mem, pl_error *err);

#endif
