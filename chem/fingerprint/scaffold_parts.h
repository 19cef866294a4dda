/* chem/fingerprint/scaffold_parts.h - the atoms of a scaffold; used by scaffold.c and scaffold_smiles.c only. */
#ifndef CH_SCAFFOLD_PARTS_H
#define CH_SCAFFOLD_PARTS_H

#include <stdbool.h>

#include "chem/molecule/mol.h"

/* The heavy atoms as a graph: bonds of atom i are bond[row[i]] .. bond[row[i+1]-1]. */
typedef struct ch_frame {
    const ch_mol *mol;
    int32_t *row, *bond;
    int32_t *left;          /* [n] bonds to atoms that are not removed yet  */
    bool *kept;             /* [n] the atom belongs to the scaffold         */
    uint64_t *colour;       /* [n]                                          */
    uint64_t *link;         /* [n_bonds] colour of the bond                 */
    int32_t *queue, *depth; /* [n] for the ring search                      */
} ch_frame;

/* Finds the atoms of the scaffold: `kept`. *stay: how many atoms are in rings or between them; 0: there is no scaffold. */
pl_code ch_frame_make(ch_frame *f, int32_t *stay, const ch_mol *mol, pl_arena *mem, pl_error *err);

/* Size of the smallest ring through a bond of kept atoms; 0: none of at most 12. depth is 0 for unvisited atoms. */
int ch_frame_ring(ch_frame *f, int32_t b);

static inline int32_t ch_frame_across(const ch_frame *f, int32_t b, int32_t i) { return f->mol->bond[b][f->mol->bond[b][0] == i]; }

#endif
