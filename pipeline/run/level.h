/* pipeline/run/level.h - the kind of machine that computed a stage, if the last digits of its results depend on it.
 *
 * A run stores the level of each of its stages that has one (pl_stage.level) in
 * run.kernels: {"prepare":"x86_64 with fma, glibc 2.36, libm 1a2b3c4d",
 * "score":"cpu avx2 (x86_64 with fma, glibc 2.36)"}. */
#ifndef PL_LEVEL_H
#define PL_LEVEL_H

#include "pipeline/workflow/workflow.h"


/* The levels of the steps of wf as JSON, in mem; NULL: out of memory. */
const char *pl_levels_json(const pl_workflow *wf, pl_arena *mem);

/* The levels that computed the stored results of a stage, joined by "; "; "" when none is stored. */
pl_code pl_levels_of(pl_store *s, int64_t stage_id, const char **out, pl_arena *mem, pl_error *err);

/* Warns, in the log and as an event, when a resumed stage was begun with another level. */
pl_code pl_level_resume(pl_env *env, pl_error *err);

/* Warns of each stage whose results come from different levels (after a merge of shards). */
pl_code pl_levels_compare(const pl_workflow *wf, pl_store *s, int64_t run_id, pl_error *err);

#endif
