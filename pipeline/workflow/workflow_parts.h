/* pipeline/workflow/workflow_parts.h - declarations shared by the files that implement pipeline/workflow/workflow.h. */
#ifndef PL_WORKFLOW_PARTS_H
#define PL_WORKFLOW_PARTS_H

#include "pipeline/workflow/settings.h"
#include "pipeline/workflow/workflow.h"

/* Settings of the whole file, with offsets into pl_workflow. The sections `vars` and
 * `stages` are not in this table. */
extern const pl_field pl_workflow_fields[];

/* Keys that every stage has besides its own settings: "needs". NULL-terminated. */
extern const char *const pl_step_keys[];

/* Reads the stages into wf->step, in an order that respects needs. */
void pl_steps_read(pl_workflow *wf, const pl_node *stages, const pl_stage *const *known, const pl_settings *ctx);

/* The help text of a table's settings, one paragraph each; indented by 2*depth blanks. */
void pl_fields_help(const pl_field *table, int depth, pl_text *out);

/* Adds s as a YAML scalar that reads back as the same text: plain if that is safe, else in quotes. */
void pl_yaml_add_scalar(pl_text *out, const char *s);

#endif
