/* pipeline/workflow/shard.h - one part of a workflow's input, processed by a job of its own.
 *
 * Shard k of n processes the units u with u mod n = k, in WORKDIR/shards/KKKKK-of-NNNNN.
 * It runs the per-unit stages that do not depend on a whole stage; `molsieve merge`
 * combines the shards. Unit i of a shard is unit i*n + k of the undivided run, and records
 * and molecules have the numbers that they have there (decision 0023). */
#ifndef PL_SHARD_H
#define PL_SHARD_H

#include "pipeline/workflow/workflow.h"

enum { PL_SHARDS_MAX = 99999 };

typedef struct pl_shard {
    int32_t k, n; /* k in [0, n); n 0: undivided */
} pl_shard;

/* Reads the option --shard. "3/8": shard 3 of 8. "auto": shard and count from the variables of the job array (Slurm,
 * LSF, Grid Engine; PBS does not give the count). "auto/8": 8 shards, the shard is the number of the task, which counts
 * from 0 (Slurm, PBS) or from 1 (LSF, Grid Engine). PL_ECONFIG: err begins with the text,
 * for the name of the option to be put before it. */
pl_code pl_shard_parse(pl_shard *out, const char *text, pl_error *err);

/* WORKDIR/shards/00003-of-00008, in mem; NULL: out of memory. */
const char *pl_shard_dir(const pl_workflow *wf, pl_shard shard, pl_arena *mem);
/* Makes that the work directory of wf and moves the databases there: results.db under that name, so that `merge` finds it,
 * features.db under its own. A features database outside of the work directory stays there as NAME-00003-of-00008.db. */
pl_code pl_workflow_shard(pl_workflow *wf, pl_shard shard, pl_arena *mem, pl_error *err);
/* Whether a shard runs this step: it and all steps it depends on are per-unit stages. */
bool pl_step_in_shard(const pl_workflow *wf, int step);

#endif
