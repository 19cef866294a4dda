/* stages/steps/dataset/classes.h - labels that are classes: `task: classification` in stages.prepare.properties.
 *
 * A class is 0 or 1. Another value is refused, naming the molecule and the value. But if several
 * measurements of a molecule disagree, their mean lies between 0 and 1, and the molecule has no class. */
#ifndef ST_CLASSES_H
#define ST_CLASSES_H

#include "pipeline/workflow/stage.h"
#include "pipeline/workflow/workflow.h"
#include "stages/steps/dataset/dataset.h"

/* Whether the workflow says that this label is a class. */
bool st_label_classifies(const pl_workflow *wf, const char *label);

/* The unit that the workflow says a column of the table has, in stages.prepare.properties; "" if it says none. */
const char *st_label_unit(const pl_workflow *wf, const char *label);

/* ECONFIG: a label is neither 0 nor 1 nor between two measurements. *undecided: molecules without a class. */
pl_code st_classes_check(pl_env *env, const char *label, int64_t *undecided, pl_error *err);

/* Values that are no class become "not measured"; molecules without any measured value are removed. Call it before samples are opened. */
void st_dataset_decided(st_dataset *d);

/* A row in `failure` for each molecule of the split with a label that is no class; in the caller's transaction. */
pl_code st_classes_failures(pl_env *env, const char *label, pl_error *err);

#endif
