/* stages/steps/ingest/structures.h - built structures, kept for later runs in the cache of features.db.
 *
 * A structure depends on the canonical SMILES, on stereo that it leaves out (ch_prepared.built_from), seed,
 * force field, steps and library; these are its key. A structure that could not be
 * built is kept with its reason, and one that ran out of time with its budget:
 * more time asks again. Crashes and memory are not kept. Entries are written
 * in the transaction of the unit that built them. */
#ifndef ST_STRUCTURES_H
#define ST_STRUCTURES_H

#include "chem/worker/worker_client.h"
#include "pipeline/store/store.h"

typedef struct st_structures {
    pl_store *store;
    char settings[65];        /* hash of what is common to all keys              */
    double first_s, retry_s;  /* CPU budgets of this run                         */
    int64_t n_built, n_known; /* committed in this run, those that failed too    */
    int64_t n_lost;           /* records whose structure may have other stereo   */
    int64_t n_lacking;        /* records with positions that lack hydrogens      */
    int64_t n_partly;         /* of these, those that have others                */
    int64_t n_added;          /* the hydrogens that they lack                    */
} st_structures;

/* library: JSON of version and seed, as in the stage's key. Opens features.db. */
pl_code st_structures_open(st_structures *s, pl_store *store, const char *library, const ch_prepare_opts *opts,
                           const ch_worker_opts *budget, pl_error *err);

/* ctx is a st_structures; any thread. */
pl_code st_structure_find(void *ctx, const char *built_from, bool *found, ch_prepared *out, pl_arena *mem, pl_error *err);

/* Main thread, in the unit's transaction: counts it, and keeps it if it is new. */
pl_code st_structure_keep(st_structures *s, const ch_prepared *p, pl_error *err);

#endif
