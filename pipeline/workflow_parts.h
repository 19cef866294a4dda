/* pipeline/workflow_parts.h - shared by the files that make up pipeline/workflow.h. */
#ifndef PL_WORKFLOW_PARTS_H
#define PL_WORKFLOW_PARTS_H

#include "pipeline/settings.h"
#include "pipeline/workflow.h"

/* Settings of the whole file, with offsets into pl_workflow. `vars` and `stages`
 * stand beside them. */
extern const pl_field pl_workflow_fields[];

/* Keys every stage has beside its own settings: "needs". */
extern const char *const pl_step_keys[];

/* Reads the stages into wf->step, in an order that respects needs. */
void pl_steps_read(pl_workflow *wf, const pl_node *stages, const pl_stage *const *known, const pl_settings *ctx);

/* The settings of a table for people, one paragraph each. */
void pl_fields_help(const pl_field *table, int depth, pl_text *out);

/* A scalar as YAML reads it back: plain if that is safe, else in quotes. */
void pl_yaml_add_scalar(pl_text *out, const char *s);

#endif
