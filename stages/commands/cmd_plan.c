/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/commands/commands.h"
#include "stages/commands/output/plan_print.h"

static const pl_opt opts[] = { { "--dag", 0, "FORM", "draw the stages instead: text, dot or mermaid" },
                               { "--json", 0, NULL, "print the plan as JSON" },
                               { 0 } };

static int print_plan(const pl_args *args, const st_plan *plan)
{
    pl_text out = { 0 };
    const char *form = pl_arg(args, "--dag");
    int status = 0;

    if (form != NULL && !st_plan_dag(plan, form, &out))
        status = pl_cmd_usage(args, "--dag %s: write text, dot or mermaid", form);
    else if (form == NULL && pl_arg(args, "--json") != NULL)
        st_plan_json(plan, &out);
    else if (form == NULL)
        st_plan_print(plan);
    (void)fputs(pl_text_str(&out), stdout);
    pl_text_free(&out);
    return status;
}

static int run(const pl_app *app, const pl_args *args)
{
    pl_arena *mem = pl_arena_new(1 << 16);
    pl_error err = { 0 };
    pl_run_opts none = { 0 };
    int status;
    pl_workflow *wf = pl_cmd_load(app, args, mem, &status);
    st_plan plan;

    if (wf != NULL && st_plan_make(&plan, app, wf, &none, mem, &err) == PL_OK)
        status = print_plan(args, &plan);
    else if (wf != NULL)
        status = pl_cmd_fail(&err);
    pl_arena_free(mem);
    return status;
}

const pl_cmd st_cmd_plan = {
    .name = "plan",
    .args = "FILE [stage.setting=value ...]",
    .help = "what would run and why, what it would cost; do no work",
    .about = "For each stage: done (its result is reused), resume, run, or again (its key\n"
             "changed), the reason, and an estimate of items, bytes and time. Writes nothing\n"
             "to the work directory. What a structure costs on this machine is measured once\n"
             "and kept in $XDG_CACHE_HOME/molsieve, or ~/.cache/molsieve.\n"
             "\n"
             "  molsieve plan workflows/screen.yaml\n"
             "  molsieve plan workflows/screen.yaml stages.basis.kind=pairwise_f32\n"
             "  molsieve plan workflows/screen.yaml --dag dot | dot -Tsvg > plan.svg\n",
    .opts = opts,
    .min_args = 1,
    .run = run,
};
