/* stages/merge/shard_file.h - a finished shard as one file, which a workflow engine can name as an output.
 *
 * The shard works in WORKDIR/shards/KKKKK-of-NNNNN as any shard does: there it stops, is killed and goes on. The file is made
 * when all its stages are done: results.db with the blocks that later stages read (pl_store_pack). It appears complete or not at
 * all, and replaces one of the same shard. `merge` reads such files (st_shards_given). */
#ifndef ST_SHARD_FILE_H
#define ST_SHARD_FILE_H

#include "pipeline/run/run.h"

typedef struct st_shard_file {
    const char *path; /* of the file */
    pl_shard shard;
} st_shard_file;

/* Before any work: whether the file can be made there. ECONFIG: it exists and is something else, or the file of another shard;
 * EIO: its folder is missing or cannot be written. wf: before pl_workflow_shard. */
pl_code st_shard_file_place(const st_shard_file *f, const pl_workflow *wf, const pl_schema *schema, pl_arena *mem, pl_error *err);
/* pl_run_opts.publish; ctx is a st_shard_file. */
pl_code st_shard_file_write(void *ctx, pl_store *store, const pl_workflow *wf, pl_arena *mem, pl_error *err);
/* Reads "3/8". False: it is not a shard. */
bool st_shard_read(pl_shard *out, const char *text);

#endif
