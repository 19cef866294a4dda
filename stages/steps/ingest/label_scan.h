/* stages/steps/ingest/label_scan.h - what the columns of labels hold, before a run: for `molsieve check`, and for warnings of `read`. */
#ifndef ST_LABEL_SCAN_H
#define ST_LABEL_SCAN_H

#include "pipeline/base/text.h"
#include "pipeline/workflow/names.h"
#include "pipeline/workflow/workflow.h"
#include "stages/steps/ingest/label_text.h"

enum { ST_LABELS_LOOKED_AT = 100000 }; /* records of all inputs, at most */

/* What a model needs. */
typedef struct st_label_need {
    bool targets_only; /* look only at what `train` learns, as a run needs it             */
    int32_t fewest;    /* training molecules that a target needs; 0: nothing is learned   */
    double share;      /* of the molecules, about, are for training                       */
    /* In place of what `prepare` and `train` name; NULL: that. */
    const pl_names *compared; /* only whether they are measured values of one unit */
    const pl_names *read;     /* only whether they have one unit                   */
    bool are_labels;          /* read: so a column of units for any may be of them */
    bool kept;                /* so the labels that `prepare` names                */
    const char *unit;         /* of those, where the workflow does not say it; NULL: any */
} st_label_need;

/* Reads the inputs of wf, at most ST_LABELS_LOOKED_AT records, and looks at the labels that `prepare` names and `train` learns. Adds a
 * problem for each that no record has, that is no number anywhere, too large to compute with, learned and always the same or there
 * once, in several units or another one than `prepare.properties` says, or a class with one value or a value other than 0 and 1, one for each target if all are in too few records to be learned, and
 * one problem if the inputs have no records. Adds to out a line for
 * each of the others: "pIC50: 812 numbers in 830 records; 12 limits (>10) and 6 empty give no label\n", and one that says how many
 * records have all of several targets. Formats that only Open Babel reads are not looked at. */
pl_code st_label_scan(const pl_workflow *wf, const st_label_need *need, pl_problems *problems, pl_text *out, pl_arena *mem,
                      pl_error *err);

/* The same where nothing is learned, and without counts. A file that cannot be read is told by others. */
void st_label_scan_read(const pl_workflow *wf, const st_label_need *need, pl_problems *problems);

/* Numbers of several units, or that may be limits, where a run reads them without learning them: the labels that `prepare` names if there
 * is no training, columns that models read, and labels that models are compared with. Adds problems. */
void st_label_scan_others(const pl_workflow *wf, pl_problems *problems);

/* A column that a model learned in `unit`, where the workflow does not say its unit, and a column of the table may. Adds a problem. */
void st_label_scan_column(const pl_workflow *wf, const char *column, const char *unit, pl_problems *problems);
/* The same of a label that a model is compared with. */
void st_label_scan_unit(const pl_workflow *wf, const char *name, const char *unit, pl_problems *problems);

#endif
