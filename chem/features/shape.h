/* chem/features/shape.h - a molecule without its hydrogens, as descriptors read it.
 *
 * Only heavy atoms are numbered, in the order of the graph; a hydrogen belongs to every heavy atom that it is bonded to. Atoms are
 * aromatic if they have an aromatic bond. Everything lives in one arena. Internal to chem/features. */
#ifndef CH_SHAPE_H
#define CH_SHAPE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "chem/graph/graph.h"

/* A neighbour: atom, bond and kind of the bond (CH_PAIR_*). */
typedef struct ch_link {
    int32_t to, bond;
    uint8_t type;
} ch_link;

typedef enum ch_hybrid { CH_HYBRID_NONE, CH_HYBRID_SP, CH_HYBRID_SP2, CH_HYBRID_SP3 } ch_hybrid;

typedef struct ch_shape {
    int32_t n, n_bonds;
    int32_t n_hydrogens, n_loose, n_loose_bonded; /* all; without a heavy neighbour; of these, bonded to one another */
    int32_t charge_loose;                         /* sum over all hydrogens */
    const uint8_t *z;                             /* [n]                                              */
    const int32_t *charge;                        /* [n]                                              */
    const int32_t *hydrogens;                     /* [n]                                              */
    const int32_t *row;                           /* [n + 1] links of atom i: row[i] .. row[i+1]-1    */
    const ch_link *link;                          /* [2 n_bonds]                                      */
    const int32_t (*bond)[2];                     /* [n_bonds]                                        */
    const uint8_t *type;                          /* [n_bonds] CH_PAIR_SINGLE to CH_PAIR_AROMATIC     */
    const bool *aromatic;                         /* [n]                                              */
    const int32_t *valence;  /* [n] sum of bond orders with hydrogens; of an aromatic atom as in a Kekule structure */
    const bool *conjugated;  /* [n_bonds]                                        */
    const ch_hybrid *hybrid; /* [n]                                              */
} ch_shape;

pl_code ch_shape_make(ch_shape *out, const ch_graph *g, pl_arena *mem, pl_error *err);

static inline int32_t ch_shape_degree(const ch_shape *s, int32_t i) { return s->row[i + 1] - s->row[i]; }

/* Neighbours with hydrogens. */
static inline int32_t ch_shape_connections(const ch_shape *s, int32_t i) { return ch_shape_degree(s, i) + s->hydrogens[i]; }

/* Sums do not depend on the order of their terms, because these are whole multiples of 2^-36. A term above 10^5 counts as 10^5. */
static inline int64_t ch_fixed(double x) { return llround(fmin(fmax(x, -1e5), 1e5) * 0x1p36); }
static inline double ch_real(int64_t fixed) { return (double)fixed * 0x1p-36; }

#endif
