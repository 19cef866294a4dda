/* SPDX-License-Identifier: Apache-2.0 */
/* Labels and columns that a run reads without learning them. */
#include "pipeline/workflow/settings.h"
#include "stages/steps/ingest/columns.h"
#include "stages/steps/ingest/label_scan.h"
#include "stages/steps/ingest/prepare_conf.h"

void st_label_scan_others(const pl_workflow *wf, pl_problems *problems)
{
    const st_prepare_conf *c = pl_workflow_step(wf, "prepare")->conf;
    const bool kept = c->labels.n > 0 && pl_workflow_step(wf, "train") == NULL; /* which looks at its targets */
    pl_names compared = { 0 };

    for (int i = 0; i < wf->n_steps; i++)
        if (wf->step[i].stage->names != NULL)
            wf->step[i].stage->names(wf, &wf->step[i], ST_COMPARED_LABELS, &compared);
    if (compared.no_memory)
        pl_problem_refused(problems, pl_workflow_step(wf, "prepare")->node, NULL);
    if (compared.too_many)
        pl_problem_add(problems, pl_workflow_step(wf, "evaluate")->node,
                       "models: at most %d labels are compared with them, whose names have at most %d bytes; compare the models in "
                       "several workflows",
                       PL_NAMES_MAX, PL_NAME_BYTES - 1);
    st_label_scan_read(wf, &(st_label_need){ .compared = &compared, .read = &c->columns, .kept = kept }, problems);
}

static void unit_scan(const pl_workflow *wf, const char *name, const char *unit, bool is_label, pl_problems *problems)
{
    pl_names none = { 0 }, read = { 0 };

    pl_names_add(&read, name);
    st_label_scan_read(wf, &(st_label_need){ .compared = &none, .read = &read, .are_labels = is_label, .unit = unit }, problems);
}

void st_label_scan_column(const pl_workflow *wf, const char *column, const char *unit, pl_problems *problems)
{
    unit_scan(wf, column, unit, false, problems);
}

void st_label_scan_unit(const pl_workflow *wf, const char *name, const char *unit, pl_problems *problems)
{
    unit_scan(wf, name, unit, true, problems);
}
