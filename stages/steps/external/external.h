/* stages/steps/external/external.h - the stage `external`: a program of the user's scores the molecules.
 *
 * Over the units of `prepare`. Each call gets `batch` molecules in a file, in a folder of its own, and its output has a number for
 * each. The number becomes a row of `prediction` and one of `score`, of the model `name`, so that all that reads scores (rank,
 * report, top, export, merge) reads it, too. What goes wrong with a molecule costs that molecule alone: a row of `failure` with the
 * end of the output. The program is not confined (docs/EXTERNAL.md); its output is read as that of a stranger. */
#ifndef ST_EXTERNAL_H
#define ST_EXTERNAL_H

#include "pipeline/base/text.h"
#include "pipeline/workflow/stage.h"
#include "stages/registry/registry.h"

/* The property that the stage of this workflow scores, and its unit; false: there is no such stage. */
bool st_external_property(const pl_workflow *wf, const char **name, const char **unit);
/* Which of its values are better: "low", "high" or "none"; NULL: the stage does not score this property. */
const char *st_external_better(const pl_workflow *wf, const char *property);

/* Whether this workflow has the stage, with `poses`: blocks of kind "pose" in features.db (stages/steps/ingest/pose_block.h). */
bool st_external_has_poses(const pl_workflow *wf);

/* Runs the program on the first molecule of the library, outside of any run. out: one line with the value, or what went wrong (*good
 * is false, and the folder of the call is kept). */
pl_code st_external_try(const pl_workflow *wf, pl_text *out, bool *good, pl_error *err);

/* The folder for files of a moment: $TMPDIR, else /tmp. */
const char *st_tmp_dir(void);

#endif
