/* chem/structures/perceive.h - a molecule as MMFF94 looks at it: neighbours, one drawing of every group, small rings, aromatic rings.
 *
 * Used by the typing only. Groups that chemists draw in two ways get one drawing: nitrogen never has more than four bonds
 * (N-oxides, nitro groups and azides are charge separated, azides as N=N+=N-), sulfur, phosphorus and chlorine have double bonds
 * instead of opposite charges. Aromatic rings are those of MMFF94 (paper I): rings of five or six atoms with six pi electrons, of
 * which a ring of five has two from a lone pair; a double bond that leaves the ring counts if it is in a ring known as aromatic.
 * Everything lives in the arena. */
#ifndef CH_PERCEIVE_H
#define CH_PERCEIVE_H

#include <stdbool.h>

#include "chem/molecule/mol.h"

enum { CH_MAX_NEIGHBOURS = 4, CH_LARGEST_RING = 6 };

typedef struct ch_ring {
    int32_t size; /* 3 to 6 */
    int32_t atom[CH_LARGEST_RING];
    int32_t lone; /* place in `atom` of the one that gives a lone pair; -1: none. Aromatic rings of five only */
    bool aromatic;
} ch_ring;

typedef struct ch_perceived {
    int32_t n_atoms, n_bonds;
    const uint8_t *z;                        /* [n_atoms] */
    const int32_t (*bond)[2];                /* [n_bonds][2] */
    int8_t *charge;                          /* [n_atoms] formal charge in the one drawing */
    uint8_t *order;                          /* [n_bonds] 1 to 3 in the one drawing */
    uint8_t *n_neighbours;                   /* [n_atoms] 0 to 4 */
    int32_t (*neighbour)[CH_MAX_NEIGHBOURS]; /* [n_atoms][4] ascending */
    int32_t (*edge)[CH_MAX_NEIGHBOURS];      /* [n_atoms][4] the bonds to them */
    uint8_t *valence;                        /* [n_atoms] sum of the orders */
    uint8_t *ring_sizes;                     /* [n_atoms] bit 1 << size for rings of 3 to 6 atoms without a shortcut */
    uint8_t *aromatic_bond;                  /* [n_bonds] bit 1 << size for the aromatic rings that it is in; 0: none */
    ch_ring *rings;                          /* [n_rings] */
    int32_t n_rings, max_rings;
} ch_perceived;

/* EINPUT with the atom for what MMFF94 cannot mean: more than four neighbours, open shells, charges without a drawing. */
pl_code ch_perceive(ch_perceived *out, const ch_mol *mol, pl_arena *mem, pl_error *err);

/* The bond between two atoms; -1: none. */
int32_t ch_perceived_bond(const ch_perceived *p, int32_t i, int32_t j);

/* Whether an atom is an end: an atom of element z with one neighbour. */
bool ch_perceived_terminal(const ch_perceived *p, int32_t i, int z);

/* How many ends of element z an atom has as neighbours. */
int ch_perceived_terminals(const ch_perceived *p, int32_t i, int z);

/* The neighbour with a bond of that order; -1: none. */
int32_t ch_perceived_partner(const ch_perceived *p, int32_t i, int order);

/* "atom 3 (N): reason" */
pl_code ch_perceived_refuse(const ch_perceived *p, int32_t i, pl_error *err, const char *reason);

#endif
