/* stages/steps/rank/write.h - the stage `write`: the ranking as files for other programs.
 *
 * hits.csv (one row a hit; units stand in the column names), and on request an
 * SDF with the conformers and the same columns as data fields, and a SMILES
 * file. Names ending in .gz are compressed. Each file is complete or does not exist:
 * temporary name, fsync, rename. Names are relative to the workdir. */
#ifndef ST_WRITE_H
#define ST_WRITE_H

#include "pipeline/workflow/stage.h"
#include "stages/registry/registry.h"

#endif
