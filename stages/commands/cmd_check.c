/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <stdlib.h>

#include "stages/commands/commands.h"
#include "stages/commands/output/cmd_json.h"

static const pl_opt opts[] = { { "--show", 's', NULL, "print the whole effective file, each value with its origin" },
                               { "--json", 0, NULL, "print the verdict and all problems as JSON" },
                               { 0 } };

static int print_effective(const pl_workflow *wf)
{
    pl_text text = { 0 };
    pl_error err = { 0 };
    pl_code code = pl_workflow_dump(wf, true, &text);

    if (code == PL_OK)
        (void)fputs(pl_text_str(&text), stdout);
    else
        (void)pl_fail(&err, code, "%s: not enough memory to print it", wf->path);
    pl_text_free(&text);
    return code == PL_OK ? 0 : pl_cmd_fail(&err);
}

static int print_summary(const pl_workflow *wf)
{
    const char *green = pl_cmd_color(stdout) ? "\033[32m" : "", *plain = green[0] ? "\033[0m" : "";

    pl_cmd_print("%s: %sOK%s\n", wf->path, green, plain);
    pl_cmd_print("  name     %s\n  workdir  %s\n", wf->name, wf->workdir);
    pl_cmd_print("  inputs   %d file%s\n", wf->inputs.n, wf->inputs.n == 1 ? "" : "s");
    for (int i = 0; i < wf->models.n; i++)
        pl_cmd_print("  model    %s: %s\n", ((const pl_model_ref *)wf->models.items)[i].name,
                     ((const pl_model_ref *)wf->models.items)[i].path);
    pl_cmd_print("  stages  ");
    for (int i = 0; i < wf->n_steps; i++)
        pl_cmd_print("%s %s", i ? "," : "", wf->step[i].stage->name);
    pl_cmd_print("\n");
    return 0;
}

static json_t *problem_list(const pl_problems *problems)
{
    json_t *list = json_array();

    for (int i = 0; i < problems->n; i++) {
        const pl_problem *p = &problems->list[i];
        (void)json_array_append_new(list, json_pack("{s:s, s:i, s:i, s:s}", "file", p->origin, "line", p->line, "column", p->column,
                                                    "text", p->text));
    }
    return list;
}

static int print_json(const pl_app *app, const pl_args *args, pl_arena *mem)
{
    pl_problems problems = { .mem = mem };
    pl_workflow *wf = pl_workflow_load(args->arg[0], args->arg + 1, args->n - 1, app->stages, &problems, mem);
    json_t *stages = json_array(), *whole;

    for (int i = 0; wf != NULL && i < wf->n_steps; i++)
        (void)json_array_append_new(stages, json_string(wf->step[i].stage->name));
    whole = json_pack("{s:s, s:b, s:o, s:s*, s:s*, s:o}", "workflow", args->arg[0], "ok", wf != NULL, "problems",
                      problem_list(&problems), "name", wf != NULL ? wf->name : NULL, "workdir", wf != NULL ? wf->workdir : NULL,
                      "stages", stages);
    st_json_print(whole, 0);
    json_decref(whole);
    return wf != NULL ? 0 : pl_code_exit(PL_ECONFIG);
}

static int run(const pl_app *app, const pl_args *args)
{
    pl_arena *mem = pl_arena_new(1 << 16);
    pl_error err = { 0 };
    pl_workflow *wf;
    int status;

    if (mem == NULL) {
        (void)pl_fail(&err, PL_ENOMEM, "out of memory");
        return pl_cmd_fail(&err);
    }
    if (pl_arg(args, "--json") != NULL) {
        status = print_json(app, args, mem);
    } else {
        wf = pl_cmd_load(app, args, mem, &status);
        if (wf != NULL)
            status = pl_arg(args, "--show") != NULL ? print_effective(wf) : print_summary(wf);
    }
    pl_arena_free(mem);
    return status;
}

const pl_cmd st_cmd_check = {
    .name = "check",
    .args = "FILE [stage.setting=value ...]",
    .help = "validate a workflow and everything it names; do no work",
    .about = "Reports every problem at once as file:line:column, with the allowed values and\n"
             "the nearest name. Exit status 0: the workflow can run; 2: it cannot.\n"
             "\n"
             "  molsieve check workflows/screen.yaml\n"
             "  molsieve check workflows/screen.yaml stages.rank.top=500 --show\n",
    .opts = opts,
    .min_args = 1,
    .run = run,
};
