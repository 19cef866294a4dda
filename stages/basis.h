/* stages/basis.h - the stage `basis`: equivariant bases of every edge into features.db.
 *
 * Unit i reads block "graph" of the graph stage's unit i and leaves block
 * "basis" (models/feature.h). With `kind: none` there are no units and no blocks:
 * the model computes frames itself, which costs less than 1 us a pair. */
#ifndef ST_BASIS_H
#define ST_BASIS_H

#include "pipeline/stage.h"

extern const pl_stage st_basis;

#endif
