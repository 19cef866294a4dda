/* stages/steps/ingest/condition.h - a condition on molecules (stages/expression/row_filter.h) that is a setting of a later step, `where`. */
#ifndef ST_CONDITION_H
#define ST_CONDITION_H

#include <stdbool.h>

#include "pipeline/workflow/workflow.h"

/* Adds a problem of `step` if `where` is wrong, or reads what `prepare` leaves empty. Starts a chemistry worker if it names structures.
 * Returns whether there is none. */
bool st_condition_check(const pl_workflow *wf, const pl_step *step, const char *where, pl_problems *problems);

/* Whether it names a column that only built structures fill, if only in a text: then structures are built that it does not need. For
 * pl_stage.wants. where: NULL for none. */
bool st_condition_is_spatial(const char *where);

#endif
