/* stages/merge/merge.h - the finished shards of a workflow become the results of one run.
 *
 * WORKDIR/results.merging.db is filled shard by shard, one transaction each, so a merge
 * that is killed continues with the next one. At the end molecules that several shards
 * have are united - the first record of all gives the molecule, the others are its
 * duplicates, labels are averaged again in the order of the records - and the file
 * becomes results.db. Its content does not depend on the order of the shards and is that
 * of an undivided run, blocks included: those that stages still to come read
 * (conformers for `write` with sdf; graphs and bases for train and score) are copied to
 * features.db, the others stay where they are (decision 0023). */
#ifndef ST_MERGE_H
#define ST_MERGE_H

#include "pipeline/run/run.h"

/* The state of shards 0..n-1. */
typedef struct st_shards {
    int32_t n, n_missing;
    const char **why; /* [n] NULL: finished with the settings of the workflow; else what is wrong */
} st_shards;

/* Looks into WORKDIR/shards. of: their number, or 0 when only one number is there. Fills the
 * keys of wf. ECONFIG: no shards, or several numbers. */
pl_code st_shards_find(st_shards *out, pl_workflow *wf, const pl_schema *schema, int32_t of, pl_arena *mem, pl_error *err);

/* Merges shards none of which is missing. *already: results.db had it all, nothing was done.
 * ELOCK, ESTOP (goes on next time), EINPUT: there is no molecule in any of them. */
pl_code st_merge(pl_workflow *wf, const pl_schema *schema, const st_shards *shards, const pl_run_opts *opts, bool *already,
                 pl_arena *mem, pl_error *err);

/* ---- between merge.c, merge_fold.c, merge_same.c and merge_blocks.c ---- */

typedef struct st_merging {
    pl_workflow *wf;
    const pl_schema *schema;
    int32_t n;                    /* shards                                                                        */
    pl_store *store;              /* results.merging.db; features.db beside the final results                      */
    const struct pl_locks *locks; /* guard it                                                         */
    int64_t run_id;
    pl_arena *mem;
} st_merging;

/* Attaches results.db of a shard as `s`, and lets it go. */
pl_code st_merge_attach(st_merging *m, int32_t shard, pl_error *err);
void st_merge_detach(st_merging *m);

/* Prepares an empty database to merge into: what all shards have in common, without indexes. */
pl_code st_merge_begin(st_merging *m, pl_error *err);
/* All rows of one shard, in the transaction that is open. */
pl_code st_merge_fold(st_merging *m, int32_t shard, pl_error *err);
/* Makes the indexes, and the table merge_same(mol_id, first, unit) of molecules that duplicate an earlier one. */
pl_code st_merge_same(st_merging *m, pl_error *err);
/* Turns these into duplicates, in the transaction that is open. */
pl_code st_merge_unite(st_merging *m, pl_error *err);
/* Copies the blocks that stages still to come read. */
pl_code st_merge_blocks(st_merging *m, pl_error *err);

#endif
