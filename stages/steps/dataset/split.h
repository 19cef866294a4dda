/* stages/steps/dataset/split.h - the stage `split`: which molecules train, validate and test.
 *
 * Molecules that share the first block of the InChIKey (same atoms and bonds,
 * stereo apart) are one group and never come into two parts. A random split
 * orders the groups by a hash of (seed, key): it does not depend on the order
 * of the records, and an additional molecule moves few of the others. A split by scaffold (chem/fingerprint/scaffold.h)
 * deals whole groups, from the largest, as is usual since MoleculeNet (Wu et al., Chem. Sci. 2018, 9, 513). A split by
 * time trains on what was measured first (Sheridan, J. Chem. Inf. Model. 2013, 53, 783). */
#ifndef ST_SPLIT_H
#define ST_SPLIT_H

#include "pipeline/workflow/stage.h"
#include "pipeline/workflow/workflow.h"
#include "stages/registry/registry.h"

/* The share of molecules that are for training, by the settings. 1: the settings do not tell. */
double st_split_share(const pl_workflow *wf);

#endif
