/* stages/steps/ingest/positions.h - whether a workflow needs 3D structures.
 *
 * A stage that may need them has pl_stage.wants, which answers for the word ST_POSITIONS. Where a workflow uses models and no stage
 * needs positions, `prepare` makes no structures and `graph` no positions, unless a setting in the file asks for them. */
#ifndef ST_POSITIONS_H
#define ST_POSITIONS_H

#include "pipeline/workflow/workflow.h"

#define ST_POSITIONS "positions"

/* Whether a stage needs positions; true without models. For use in pl_stage.settle. */
bool st_positions_wanted(const pl_workflow *wf);

/* Whether `prepare`, whose conformers.source was read but not settled, makes none. */
bool st_structures_skipped(const pl_workflow *wf);

#endif
