/* stages/steps/ingest/limits.h - measurements that are limits, such as ">10" (censored).
 *
 * With `read: {censored: bound}` a limit of the label pIC50 is a number of a label of its own, "pIC50 at least" or "pIC50 at most", so
 * that it is stored, merged and joined over the records of a molecule like any other; `train` joins the three again. */
#ifndef ST_LIMITS_H
#define ST_LIMITS_H

#include "chem/records/record.h"
#include "pipeline/base/arena.h"
#include "pipeline/workflow/workflow.h"
#include "stages/steps/ingest/record_block.h"

typedef enum st_side { ST_AT_LEAST, ST_AT_MOST, ST_SIDES } st_side;

/* "pIC50 at least"; NULL: no memory. */
const char *st_limit_name(const char *label, st_side side, pl_arena *mem);
/* How long the name of the label is of which `name` has limits; 0: it is no such name. */
size_t st_limit_label(const char *name);

/* Reads ">10", "<= 5.5" or the signs for at least and at most. false: no limit on one side, such as "~3". */
bool st_limit_read(double *value, st_side *side, const char *text);

/* The fields that may become labels: numbers, and with `limits` the limits. Of a table the first column of a name counts; of other
 * records a name with two texts has no value. ECONFIG: with `limits` a field has the name that one gets. */
pl_code st_label_fields(st_record *out, const ch_field *found, int n, bool table, bool limits, pl_arena *mem, pl_error *err);

/* Whether the workflow reads limits: `read: {censored: bound}`. */
bool st_limits_wanted(const pl_workflow *wf);

#endif
