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
    const char **why;  /* [n] NULL: finished with the settings of the workflow; else what is wrong */
    const char **path; /* [n] results.db or the file of each; NULL: a file that was not given      */
    bool files;        /* files of `run --shard --out`, not directories                            */
    bool alone;        /* without a workflow file: only results.db is written, without blocks      */
    pl_text problems;  /* files: one line for each problem; pl_text_free                           */
    pl_code worst;     /* files: PL_OK, ECONFIG or EDATA                                           */
} st_shards;

/* Looks into WORKDIR/shards. of: their number, or 0 when only one number is there. Fills the
 * keys of wf. ECONFIG: no shards, or several numbers. */
pl_code st_shards_find(st_shards *out, pl_workflow *wf, const pl_schema *schema, int32_t of, pl_arena *mem, pl_error *err);

/* Files of shards, in any order. */
typedef struct st_shard_list {
    const char *const *file; /* [n] */
    int n;
    const char *to; /* absolute: where the results go if no workflow says so; else not used */
} st_shard_list;

/* Looks at all of the files, and fills `problems`. wf NULL: that which the first sound file stores, with storage.results `to`; else
 * the keys of wf are filled. `known`: all stages. */
pl_code st_shards_given(st_shards *out, pl_workflow **wf, const st_shard_list *files, const pl_stage *const *known,
                        const pl_schema *schema, pl_arena *mem, pl_error *err);

/* Merges shards none of which is missing. *already: results.db had it all, nothing was done.
 * ELOCK, ESTOP (goes on next time), EINPUT: there is no molecule in any of them. */
pl_code st_merge(pl_workflow *wf, const pl_schema *schema, const st_shards *shards, const pl_run_opts *opts, bool *already,
                 pl_arena *mem, pl_error *err);

/* ---- between merge.c, merge_fold.c, merge_same.c and merge_blocks.c ---- */

typedef struct st_merging {
    pl_workflow *wf;
    const pl_schema *schema;
    int32_t n;                    /* shards                                                                        */
    const char *const *path;      /* [n] results.db of each                                                        */
    bool alone;                   /* as in st_shards                                                               */
    pl_store *store;              /* results.merging.db; features.db beside the final results                      */
    const struct pl_locks *locks; /* guard it                                                         */
    int64_t run_id;
    pl_arena *mem;
} st_merging;

/* NULL: every stage of a shard is done with the keys of the workflow; else what is not. */
const char *st_merge_lacks(pl_store *s, const pl_workflow *wf, pl_arena *mem);
/* *older: rows cannot be copied as they are, because an older version wrote them. */
pl_code st_merge_is_older(bool *older, pl_store *s, pl_error *err);

/* The blocks of shards that later stages read. Fills out[ST_MERGE_KINDS], with n units each (-1 where the stage is not in `s`);
 * returns their number. s may be NULL. */
enum { ST_MERGE_KINDS = 4 };
int st_merge_read_blocks(pl_packed *out, const pl_workflow *wf, pl_store *s, pl_arena *mem);

/* Attaches results.db of a shard as `s`, and lets it go. */
pl_code st_merge_attach(st_merging *m, int32_t shard, pl_error *err);
/* code: of what was done in between; returned if it is not PL_OK. */
pl_code st_merge_detach(st_merging *m, pl_code code, pl_error *err);

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
