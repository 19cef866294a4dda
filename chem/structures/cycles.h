/* chem/structures/cycles.h - neighbours of atoms, and the small rings of a molecule.
 *
 * For each angle whose two bonds lie in a ring, the smallest ring through both, if it has at most CH_MAX_CYCLE atoms. These are
 * the rings of the smallest set and a few envelopes of fused ones. For each other bond of a ring, the smallest ring through it, if
 * it has at most CH_MAX_LARGE atoms: macrocycles, which only the search for threaded chains knows. Everything lives in the arena. */
#ifndef CH_CYCLES_H
#define CH_CYCLES_H

#include <stdbool.h>
#include <stdint.h>

#include "chem/molecule/mol.h"
#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"

enum { CH_MAX_CYCLE = 10, CH_MAX_LARGE = 20 };

typedef struct ch_cycle {
    int32_t size;
    int32_t atom[CH_MAX_CYCLE]; /* around the ring */
    bool flat;                  /* aromatic, or 4 to 6 atoms that all conjugate: lies in a plane */
    bool aromatic;              /* all of its bonds are */
} ch_cycle;

typedef struct ch_large_cycle {
    int32_t size;
    int32_t atom[CH_MAX_LARGE]; /* around the ring */
} ch_large_cycle;

typedef struct ch_cycles {
    const ch_mol *mol;
    const int32_t *first;     /* [n_atoms + 1] neighbours of atom i: from first[i] to first[i + 1] - 1 */
    const int32_t *neighbour; /* [2 n_bonds] atoms */
    const int32_t *by;        /* [2 n_bonds] bonds */
    int32_t n;
    const ch_cycle *cycle; /* [n + 1] smallest first; behind them one that is larger than all, where a search by size ends */
    int32_t n_large;
    const ch_large_cycle *large; /* [n_large] of CH_MAX_CYCLE + 1 to CH_MAX_LARGE atoms */
    const uint8_t *of_bond;      /* [n_bonds] atoms of the smallest cycle of a bond; 0: in none so small */
    bool connected;              /* the molecule is one part */
} ch_cycles;

pl_code ch_cycles_make(ch_cycles *out, const ch_mol *mol, pl_arena *mem, pl_error *err);

/* The bond between i and j; -1: none. */
int32_t ch_cycles_bond(const ch_cycles *c, int32_t i, int32_t j);

static inline int32_t ch_cycles_degree(const ch_cycles *c, int32_t i) { return c->first[i + 1] - c->first[i]; }

/* The place of an atom in a cycle; -1: it is not in it. */
int32_t ch_cycle_place(const ch_cycle *c, int32_t atom);

/* A flat atom with a double or an aromatic bond: three neighbours in a plane, or two at an angle. Not S and P of oxides. */
bool ch_cycles_is_trigonal(const ch_cycles *c, int32_t atom);

#endif
