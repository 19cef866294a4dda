/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/ingest/condition.h"

#include <string.h>

#include "stages/expression/expression.h"
#include "stages/expression/row_filter.h"
#include "stages/steps/ingest/alerts.h"

bool st_condition_is_spatial(const char *where)
{
    return where != NULL && (strcasestr(where, "energy") != NULL || strcasestr(where, "structures") != NULL);
}

/* What is wrong with reading these columns; NULL: nothing. */
static const char *empty_column(const st_row_reads *reads, const st_prepare_conf *prepare)
{
    if (reads->alerts && !st_alerts_wanted(prepare))
        return "alerts are NULL, as no alert rules are set; set stages.prepare.alerts";
    if (!st_prepare_is_flat(prepare))
        return NULL;
    if (reads->energy)
        return "energy is NULL, as no structures are built; set stages.prepare.conformers.source: generate";
    if (reads->structures)
        return "structures are NULL, as none are built; set stages.prepare.conformers.source: generate";
    return NULL;
}

bool st_condition_check(const pl_workflow *wf, const pl_step *step, const char *where, pl_problems *problems)
{
    const pl_step *prepare = pl_workflow_step(wf, "prepare");
    const pl_node *at = pl_node_get(step->node, "where");
    const char *empty;
    st_row_reads reads;
    size_t byte = 0;
    pl_error err = { 0 };

    if (st_row_filter_check(where, &reads, &byte, &err) != PL_OK) {
        st_expression_problem(problems, at, step->stage->name, byte, &err);
        return false;
    }
    empty = prepare != NULL ? empty_column(&reads, prepare->conf) : NULL;
    if (empty != NULL)
        pl_problem_add(problems, at != NULL ? at : step->node, "%s: where: %s", step->stage->name, empty);
    return empty == NULL;
}
