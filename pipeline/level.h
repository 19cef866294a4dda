/* pipeline/level.h - on what kind of machine a stage was computed, where its last digits depend on it.
 *
 * A run stores the level of each of its stages that has one (pl_stage.level) in
 * run.kernels: {"prepare":"x86_64 with fma, glibc 2.36, libm 1a2b3c4d",
 * "score":"cpu avx2 (x86_64 with fma, glibc 2.36)"}. */
#ifndef PL_LEVEL_H
#define PL_LEVEL_H

#include "pipeline/engine.h"

/* The levels of the steps of wf as JSON, in mem; NULL: no memory. */
const char *pl_levels_json(const pl_workflow *wf, pl_arena *mem);

/* All levels that a stage's results come from, one behind the other with "; "; "" when none is stored. */
pl_code pl_levels_of(pl_store *s, int64_t stage_id, const char **out, pl_arena *mem, pl_error *err);

/* Warns, in the log and as an event, when the stage goes on that another level began. */
pl_code pl_level_resume(pl_env *env, pl_error *err);

/* Warns of each stage whose units come from unlike levels. */
pl_code pl_levels_compare(const pl_workflow *wf, pl_store *s, int64_t run_id, pl_error *err);

#endif
