/* stages/steps/features/basis.h - the stage `basis`: equivariant bases of every edge into features.db.
 *
 * Unit i reads block "graph" of the graph stage's unit i and leaves block
 * "basis" (models/features/feature.h). With `kind: none` there are no units and no blocks:
 * the model computes frames itself, which costs less than 1 us a pair. */
#ifndef ST_BASIS_H
#define ST_BASIS_H

#include "models/features/feature.h"
#include "pipeline/workflow/workflow.h"
#include "stages/registry/registry.h"

/* The block that the stage makes of a block of graphs. */
pl_code st_basis_pack(pl_bytes *out, const pl_step *step, const ch_graph_block *graphs, pl_arena *mem, pl_error *err);

#endif
