/* stages/steps/ingest/conformers.h - structures that prepare left in features.db, found by molecule.
 *
 * For access in any order, but fastest unit after unit:
 * the unit of the last molecule stays in memory. Coordinates in Angstrom. */
#ifndef ST_CONFORMERS_H
#define ST_CONFORMERS_H

#include "chem/molecule/codec.h"
#include "pipeline/store/store.h"

typedef struct st_conformers {
    pl_store *store;
    const char *key;     /* of the stage; not copied            */
    const char *kind;    /* of block: "conformer" or "pose" */
    pl_arena *mem;       /* the unit                            */
    int64_t unit;        /* that is in memory, or -1            */
    ch_block_item *item; /* [n] by growing id; of a molecule by growing energy, or the best pose first */
    double *value;       /* [n] of poses (stages/steps/ingest/pose_block.h); else NULL */
    int32_t n;
} st_conformers;

/* Opens features.db. For blocks of another kind the caller sets `kind` afterwards. */
pl_code st_conformers_open(st_conformers *c, pl_store *store, const char *prepare_key, pl_error *err);
void st_conformers_close(st_conformers *c); /* zeroed is fine */

/* *mol: its structure with the lowest energy, valid until the next call; NULL when the molecule has none, or features.db has lost it. */
pl_code st_conformer_find(st_conformers *c, int64_t unit, int64_t mol_id, const ch_mol **mol, pl_error *err);

/* All of them, lowest energy first: (*first)[*n], valid until the next call. */
pl_code st_conformers_find(st_conformers *c, int64_t unit, int64_t mol_id, const ch_block_item **first, int32_t *n, pl_error *err);

#endif
