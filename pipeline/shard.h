/* pipeline/shard.h - one part of a workflow's input, worked on by itself.
 *
 * Shard k of n does the per-unit stages that stand on no whole stage, of the units
 * u with u mod n = k, in WORKDIR/shards/KKKKK-of-NNNNN; `molsieve merge` puts the
 * parts together. Unit i of a shard is unit i*n + k of the undivided run, and records
 * and molecules have the numbers they have there (decision 0023). */
#ifndef PL_SHARD_H
#define PL_SHARD_H

#include "pipeline/workflow.h"

enum { PL_SHARDS_MAX = 99999 };

typedef struct pl_shard {
    int32_t k, n; /* k in [0, n); n 0: undivided */
} pl_shard;

/* "3/8"; "auto": from the scheduler's variables of a job array (Slurm, LSF, Grid Engine, which say
 * how many tasks there are); "auto/8": 8 shards, the task's number as the array has it, from 0 (Slurm,
 * PBS) or from 1 (LSF, Grid Engine). ECONFIG says what is wrong or not there. */
pl_code pl_shard_parse(pl_shard *out, const char *text, pl_error *err);

/* WORKDIR/shards/00003-of-00008; NULL: no memory. */
const char *pl_shard_dir(const pl_workflow *wf, pl_shard shard, pl_arena *mem);
/* Makes that the work directory, databases included: results.db, for `merge` to find; features.db under its name, and one
 * that the workflow has outside of its work directory stays there, as NAME-00003-of-00008.db. */
pl_code pl_workflow_shard(pl_workflow *wf, pl_shard shard, pl_arena *mem, pl_error *err);
/* Whether a shard does this step: per unit, and so is all that it stands on. */
bool pl_step_in_shard(const pl_workflow *wf, int step);

#endif
