/* stages/database/blocks.h - the blocks that an earlier stage left in features.db, one a unit. */
#ifndef ST_BLOCKS_H
#define ST_BLOCKS_H

#include "pipeline/store/store.h"
#include "pipeline/workflow/workflow.h"

typedef struct st_blocks {
    pl_store *store;
    const char *stage, *kind, *key;
} st_blocks;

/* Of a stage of this workflow. Opens features.db. EBUG if the stage is not there. */
pl_code st_blocks_open(st_blocks *b, const pl_env *env, const char *stage, const char *kind, pl_error *err);

/* Whether the stage has committed this unit. The runner asks for a unit only when it
 * has, or when the stage is done: then "no" means that there are no more units. */
pl_code st_blocks_has(const st_blocks *b, int64_t unit, bool *has, pl_error *err);

/* Any thread. Reads a unit into mem, for pl_block_check on the thread that uses it. EDATA, with what to do, when features.db
 * lacks it. */
pl_code st_blocks_get(const st_blocks *b, int64_t unit, pl_block *out, pl_arena *mem, pl_error *err);

#endif
