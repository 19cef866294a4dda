/* stages/steps/dataset/unseen.h - molecules of a data set that a model cannot read, because of an element. */
#ifndef ST_UNSEEN_H
#define ST_UNSEEN_H

#include "pipeline/workflow/stage.h"
#include "stages/steps/dataset/dataset.h"

/* A failure row (code `element`) of the running stage for each such molecule of the parts (bit of st_part), and one warning with
 * how many of each part. Replaces those that are there. Inside a transaction. */
pl_code st_unseen_put(pl_env *env, const st_dataset *d, unsigned parts, const nn_inputs *in, const char *model, pl_error *err);

#endif
