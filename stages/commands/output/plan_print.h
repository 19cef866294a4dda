/* stages/commands/output/plan_print.h - a plan for people, for programs and as a drawing. */
#ifndef ST_PLAN_PRINT_H
#define ST_PLAN_PRINT_H

#include "pipeline/cli/cmd.h"
#include "pipeline/run/run.h"

typedef struct st_plan {
    pl_workflow *wf;
    pl_step_plan *step; /* [wf->n_steps] */
    bool *wanted;       /* [wf->n_steps] */
    int workers;
    pl_removed removed; /* stages whose rows the run would delete */
} st_plan;

/* Plans against the results that exist, if any; reads only. */
pl_code st_plan_make(st_plan *out, const pl_app *app, pl_workflow *wf, const pl_run_opts *opts, pl_arena *mem, pl_error *err);

void st_plan_print(const st_plan *p); /* on stdout */
void st_plan_json(const st_plan *p, pl_text *out);
/* form: "text", "dot" or "mermaid"; false: no such form. */
bool st_plan_dag(const st_plan *p, const char *form, pl_text *out);

#endif
