/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/run/run.h"
#include "stages/commands/commands.h"
#include "stages/commands/explain_score.h"
#include "stages/steps/rank/rank_funnel.h"

/* How the stored ranking came about. */
static pl_code add_funnel(pl_text *out, const pl_workflow *wf, const pl_store *store, pl_error *err)
{
    pl_text lines = { 0 };
    pl_code code = pl_workflow_step(wf, "rank") != NULL ? st_rank_funnel_words(&lines, store->db, err) : PL_OK;

    if (lines.len > 0)
        pl_text_addf(out, "the stored ranking: how many molecules each rule leaves\n%s", pl_text_str(&lines));
    pl_text_free(&lines);
    return code;
}

/* stage: NULL means all of the workflow. */
static pl_code add_stages(pl_text *out, pl_workflow *wf, pl_store *store, const char *stage, pl_arena *mem, pl_error *err)
{
    pl_code code = PL_OK;

    if (stage != NULL)
        return pl_explain(wf, store, stage, out, mem, err);
    for (int i = 0; i < wf->n_steps && code == PL_OK; i++)
        code = pl_explain(wf, store, wf->step[i].stage->name, out, mem, err);
    return code;
}

static int explain(const pl_app *app, pl_workflow *wf, const char *stage, pl_arena *mem)
{
    pl_store *store = NULL;
    pl_text out = { 0 };
    pl_error err = { 0 };
    pl_code code = PL_OK;

    if (access(wf->storage.results, F_OK) == 0)
        code = pl_store_open_read(&store, wf->storage.results, app->schema, &err);
    if (code == PL_OK)
        code = pl_plan_keys(wf, store, mem, &err);
    if (code == PL_OK)
        code = add_stages(&out, wf, store, stage, mem, &err);
    if (code == PL_OK && store != NULL && (stage == NULL || strcmp(stage, "rank") == 0))
        code = add_funnel(&out, wf, store, &err);
    if (code == PL_OK)
        pl_cmd_print("%s", pl_text_str(&out));
    pl_text_free(&out);
    pl_store_close(store);
    return code == PL_OK ? 0 : pl_cmd_fail(&err);
}

static bool is_override(const char *word)
{
    for (; *word != '\0'; word++)
        if (*word == '=')
            return true;
    return false;
}

static int explain_stage(const pl_app *app, const pl_args *args)
{
    pl_arena *mem = pl_arena_new(1 << 16);
    bool named = args->n > 1 && !is_override(args->arg[1]);
    char *file[256];
    pl_args rest = *args;
    int status;
    pl_workflow *wf;

    /* FILE STAGE k=v ...: the stage is not an override */
    rest.n = 0;
    for (int i = 0; i < args->n && rest.n < 256; i++)
        if (i != 1 || !named)
            file[rest.n++] = args->arg[i];
    rest.arg = file;
    wf = pl_cmd_load(app, &rest, mem, &status);
    if (wf != NULL)
        status = explain(app, wf, named ? args->arg[1] : NULL, mem);
    pl_arena_free(mem);
    return status;
}

static bool is_number(const char *word) { return word[0] && word[strspn(word, "0123456789")] == '\0' && strlen(word) < 19; }

/* A title, an InChIKey or a SMILES rather than the path of a workflow. */
static bool is_molecule(const char *word)
{
    return access(word, F_OK) != 0 && !pl_ends_with(word, ".yaml") && !pl_ends_with(word, ".yml");
}

static int run(const pl_app *app, const pl_args *args)
{
    const bool numbered = is_number(args->arg[0]), molecule = numbered || is_molecule(args->arg[0]);

    if (molecule && args->n > 2)
        return pl_cmd_usage(args, "one molecule and one database; '%s' is one word too many", args->arg[2]);
    if (molecule && !numbered)
        return st_explain_score(app, args, -1);
    if (numbered)
        return st_explain_score(app, args, strtoll(args->arg[0], NULL, 10));
    if (pl_arg(args, "--svg") != NULL)
        return pl_cmd_usage(args, "--svg draws a molecule: give its number instead of a workflow");
    return explain_stage(app, args);
}

static const pl_opt opts[] = { { "--svg", 0, "FILE", "of a molecule: draw what its atoms contribute" }, { 0 } };

const pl_cmd st_cmd_explain = {
    .name = "explain",
    .args = "FILE [STAGE] [stage.setting=value ...] | ID [RESULTS]",
    .help = "why a stage runs again, or why a molecule has its score",
    .about = "Compares what determines the result of a stage now (settings, inputs, models,\n"
             "the stages that it needs) with the values of the stored result. Comments, order,\n"
             "paths and the number of workers never matter.\n"
             "\n"
             "  molsieve explain workflows/screen.yaml prepare stages.prepare.fragment=keep\n"
             "\n"
             "For rank also how many molecules each of its rules leaves in the stored ranking.\n"
             "\n"
             "With the number of a molecule, its title, InChIKey or SMILES: its scores and\n"
             "their domain, what each model is the mean of, the nearest training molecules and\n"
             "what was measured of them, and the descriptors and atoms that moved the\n"
             "prediction most. --svg draws the atoms' part for each component: orange raises\n"
             "the prediction, blue lowers it. For the network (se3) an atom's part is what the\n"
             "prediction loses without the atom and its hydrogens, on the structure that was\n"
             "scored; these parts do not add up.\n"
             "\n"
             "  molsieve explain 17 runs/screen/results.db --svg 17.svg\n",
    .opts = opts,
    .min_args = 1,
    .run = run,
};
