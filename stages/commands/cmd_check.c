/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "stages/campaign/campaign.h"
#include "stages/commands/commands.h"
#include "stages/commands/output/cmd_json.h"
#include "stages/steps/external/external.h"
#include "stages/steps/ingest/label_scan.h"
#include "stages/steps/train/train.h"

static const pl_opt opts[] = { { "--show", 's', NULL, "print the whole effective file, each value with its origin" },
                               { "--json", 0, NULL, "print the verdict and all problems as JSON" },
                               { "--try", 0, NULL, "run the program of `external` on one molecule" },
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

/* Adds what the stages advise, where the workflow has no problem. */
static void advice_add(pl_problems *advice, const pl_workflow *wf)
{
    for (int i = 0; i < wf->n_steps; i++)
        if (wf->step[i].stage->advise != NULL)
            wf->step[i].stage->advise(wf, &wf->step[i], advice);
}

/* Each line of the text after the word. */
static void print_lines(const char *word, const char *text)
{
    for (const char *end; (end = strchr(text, '\n')) != NULL; text = end + 1)
        pl_cmd_print("  %-8s %.*s\n", word, (int)(end - text), text);
}

static void print_advice(const pl_problems *advice)
{
    pl_text lines = { 0 };

    pl_problems_write(advice, &lines);
    print_lines("advice", pl_text_str(&lines));
    pl_text_free(&lines);
}

static int print_summary(const pl_app *app, const pl_workflow *wf, pl_arena *mem)
{
    const char *green = pl_cmd_color(stdout) ? "\033[32m" : "", *plain = green[0] ? "\033[0m" : "";
    pl_problems problems = { .mem = mem }, advice = { .mem = mem };
    pl_text labels = { 0 };
    pl_error err = { 0 };
    const st_label_need need = st_train_need(wf, false);
    const pl_code code = st_label_scan(wf, &need, &problems, &labels, mem, &err);

    st_campaign_answers_check(wf, app->stages, &problems, &advice, mem);
    if (code != PL_OK || problems.n != 0) {
        pl_text_free(&labels);
        if (code == PL_OK)
            pl_cmd_problems(&problems);
        return code == PL_OK ? pl_code_exit(pl_problems_code(&problems)) : pl_cmd_fail(&err);
    }

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
    print_lines("label", pl_text_str(&labels));
    pl_text_free(&labels);
    advice_add(&advice, wf);
    print_advice(&advice);
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
    if (problems->n < 0)
        (void)json_array_append_new(list,
                                    json_pack("{s:s, s:i, s:i, s:s}", "file", "", "line", 0, "column", 0, "text", "out of memory"));
    return list;
}

static int print_json(const pl_app *app, const pl_args *args, pl_arena *mem)
{
    pl_problems problems = { .mem = mem };
    pl_workflow *wf = pl_workflow_load(args->arg[0], args->arg + 1, args->n - 1, app->stages, &problems, mem);
    pl_problems advice = { .mem = mem };
    json_t *stages = json_array(), *whole;
    pl_text labels = { 0 };
    pl_error err = { 0 };
    const st_label_need need = st_train_need(wf, false);
    pl_code code = wf != NULL ? st_label_scan(wf, &need, &problems, &labels, mem, &err) : PL_OK;
    bool good;

    if (wf != NULL)
        st_campaign_answers_check(wf, app->stages, &problems, &advice, mem);
    good = wf != NULL && problems.n == 0;

    pl_text_free(&labels);
    if (code != PL_OK) {
        json_decref(stages);
        return pl_cmd_fail(&err);
    }

    if (good)
        advice_add(&advice, wf);
    for (int i = 0; wf != NULL && i < wf->n_steps; i++)
        (void)json_array_append_new(stages, json_string(wf->step[i].stage->name));
    whole = json_pack("{s:s, s:b, s:o, s:o, s:s*, s:s*, s:o}", "workflow", args->arg[0], "ok", good, "problems",
                      problem_list(&problems), "advice", problem_list(&advice), "name", wf != NULL ? wf->name : NULL, "workdir",
                      wf != NULL ? wf->workdir : NULL, "stages", stages);
    code = st_json_print(whole, 0, &err);
    json_decref(whole);
    if (code != PL_OK)
        return pl_cmd_fail(&err);
    return pl_code_exit(good ? PL_OK : pl_problems_code(&problems));
}

static int try_program(const pl_workflow *wf)
{
    pl_text text = { 0 };
    pl_error err = { 0 };
    bool good = false;
    pl_code code = st_external_try(wf, &text, &good, &err);

    if (code == PL_OK)
        print_lines("tried", pl_text_str(&text));
    pl_text_free(&text);
    if (code != PL_OK)
        return pl_cmd_fail(&err);
    return good ? 0 : pl_code_exit(PL_ECONFIG);
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
    if (pl_arg(args, "--json") != NULL && pl_arg(args, "--try") != NULL) {
        (void)pl_fail(&err, PL_ECONFIG, "--try prints a line of text; leave out --json");
        status = pl_cmd_fail(&err);
    } else if (pl_arg(args, "--json") != NULL) {
        status = print_json(app, args, mem);
    } else {
        wf = pl_cmd_load(app, args, mem, &status);
        if (wf != NULL)
            status = pl_arg(args, "--show") != NULL ? print_effective(wf) : print_summary(app, wf, mem);
        if (wf != NULL && status == 0 && pl_arg(args, "--try") != NULL)
            status = try_program(wf);
    }
    pl_arena_free(mem);
    return status;
}

const pl_cmd st_cmd_check = {
    .name = "check",
    .args = "FILE [stage.setting=value ...]",
    .help = "validate a workflow and everything it names; do no work",
    .about = "Reports every problem at once as file:line:column, with the allowed values and\n"
             "the nearest name. Looks into the columns of labels, too (of the first 100,000\n"
             "records): whether they are there, are numbers, have both classes, and how many\n"
             "are limits such as >10. Advises where another setting would cost nothing, such\n"
             "as more channels of a network. Status 0: the workflow can run; 2: it cannot.\n"
             "\n"
             "  molsieve check workflows/screen.yaml\n"
             "  molsieve check workflows/screen.yaml stages.rank.top=500 --show\n"
             "  molsieve check workflows/dock.yaml --try\n",
    .opts = opts,
    .min_args = 1,
    .run = run,
};
