/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "pipeline/workflow/workflow.h"
#include "stages/commands/about/topics.h"
#include "stages/commands/commands.h"

static const pl_opt opts[] = { { "--defaults", 0, NULL, "configs/default.yaml: every setting with default, range and help" },
                               { "--schema", 0, NULL, "the JSON Schema of workflow files, for editors" },
                               { "--man", 0, NULL, "the manual page; read it with: molsieve help --man | man -l -" },
                               { 0 } };

static bool add_command(const pl_app *app, const char *name, pl_text *out)
{
    for (const pl_cmd *const *c = app->commands; *c != NULL; c++)
        if (strcmp((*c)->name, name) == 0) {
            pl_cmd_help(*c, out);
            return true;
        }
    return false;
}

static bool add_stage(const pl_app *app, const char *name, pl_text *out)
{
    for (const pl_stage *const *s = app->stages; *s != NULL; s++)
        if (strcmp((*s)->name, name) == 0) {
            pl_stage_help(*s, out);
            return true;
        }
    return false;
}

static void add_stages(const pl_app *app, pl_text *out)
{
    for (const pl_stage *const *s = app->stages; *s != NULL; s++)
        pl_text_addf(out, "  %-10s %s\n", (*s)->name, (*s)->help);
}

static bool add_topic(const pl_app *app, const char *name, pl_text *out)
{
    if (strcmp(name, "stages") == 0) {
        add_stages(app, out);
        return true;
    }
    for (const st_topic *t = st_topics; t->name != NULL; t++)
        if (strcmp(t->name, name) == 0) {
            pl_text_addf(out, "%s: %s\n\n%s", t->name, t->title, t->text);
            if (strcmp(name, "workflow") == 0)
                pl_workflow_help(out);
            return true;
        }
    return false;
}

static int unknown(const pl_app *app, const pl_args *args, const char *word)
{
    const char *names[128] = { "stages" }, *near;
    int n = 1;

    for (const pl_cmd *const *c = app->commands; *c != NULL && n < 40; c++)
        names[n++] = (*c)->name;
    for (const pl_stage *const *s = app->stages; *s != NULL && n < 80; s++)
        names[n++] = (*s)->name;
    for (const st_topic *t = st_topics; t->name != NULL && n < 120; t++)
        names[n++] = t->name;
    near = pl_nearest(word, names, n);
    return pl_cmd_usage(args, "no command, stage or topic '%s'%s%s%s", word, near != NULL ? ", did you mean '" : "",
                        near != NULL ? near : "", near != NULL ? "'?" : "");
}

/* Texts meant for files, which are never wrapped. */
static bool add_file(const pl_app *app, const pl_args *args, pl_text *out)
{
    if (pl_arg(args, "--defaults") != NULL)
        pl_workflow_defaults(app->stages, out);
    else if (pl_arg(args, "--schema") != NULL)
        pl_workflow_schema(app->stages, out);
    else if (pl_arg(args, "--man") != NULL)
        st_man_write(app, out);
    else
        return false;
    return true;
}

static int run(const pl_app *app, const pl_args *args)
{
    pl_text out = { 0 };
    bool file = add_file(app, args, &out);
    int status = 0;

    if (!file && args->n == 0)
        pl_app_help(app, &out);
    for (int i = 0; i < args->n && !file && status == 0; i++) {
        bool found = add_command(app, args->arg[i], &out);
        found = add_stage(app, args->arg[i], &out) || found; /* `train` may be both */
        if (!found && !add_topic(app, args->arg[i], &out))
            status = unknown(app, args, args->arg[i]);
    }
    if (status == 0 && file)
        (void)fputs(pl_text_str(&out), stdout);
    else if (status == 0)
        pl_cmd_help_print(&out);
    pl_text_free(&out);
    return status;
}

const pl_cmd st_cmd_help = {
    .name = "help",
    .args = "[COMMAND | STAGE | stages | yaml | workflow | exit-codes | environment]",
    .help = "explain a command, the settings of a stage, or a topic",
    .about = "  molsieve help run\n  molsieve help graph\n  molsieve help exit-codes\n",
    .opts = opts,
    .run = run,
};
