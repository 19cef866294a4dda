/* stages/database/settings_differ.h - whether a workflow file is still the one of its results. */
#ifndef ST_SETTINGS_DIFFER_H
#define ST_SETTINGS_DIFFER_H

#include "pipeline/store/store.h"
#include "pipeline/workflow/workflow.h"

/* The workflow of the last run, as pl_workflow_stored reads it. NULL: the results do not say, or there is no memory. In mem. */
pl_workflow *st_last_workflow(const pl_store *results, const char *origin, const pl_stage *const *known, pl_arena *mem);

/* What the workflow has other than the last run of the results: "inputs, models, seed, stages.train, stages.rank". Settings that change no result
 * are left out, and so are the contents of files. NULL: nothing, or the results do not say, or there is no memory. In mem. */
const char *st_settings_differ(const pl_workflow *wf, const pl_store *results, const pl_stage *const *known, pl_arena *mem);

#endif
