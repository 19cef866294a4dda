/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "pipeline/workflow/workflow.h"
#include "stages/commands/about/topics.h"

/* Text as troff input: backslashes and hyphens kept, no line taken for a request. */
static void add_roff(pl_text *out, const char *s)
{
    bool start = true;

    for (; *s != '\0'; s++) {
        if (start && (*s == '.' || *s == '\''))
            pl_text_add(out, "\\&");
        if (*s == '\\')
            pl_text_add(out, "\\e");
        else if (*s == '-')
            pl_text_add(out, "\\-");
        else
            pl_text_add_n(out, s, 1);
        start = *s == '\n';
    }
    if (!start)
        pl_text_add(out, "\n");
}

static void add_verbatim(pl_text *out, const char *s)
{
    pl_text_add(out, ".nf\n");
    add_roff(out, s);
    pl_text_add(out, ".fi\n");
}

static void add_command(pl_text *out, const pl_cmd *cmd)
{
    pl_text line = { 0 };

    pl_text_addf(&line, "molsieve %s %s", cmd->name, cmd->args);
    pl_text_add(out, ".SS ");
    add_roff(out, pl_text_str(&line));
    add_roff(out, cmd->help);
    if (cmd->about != NULL) {
        pl_text_add(out, ".PP\n");
        add_verbatim(out, cmd->about);
    }
    for (const pl_opt *o = cmd->opts; o != NULL && o->name != NULL; o++) {
        pl_text_reset(&line);
        if (o->letter != 0)
            pl_text_addf(&line, "-%c, ", o->letter);
        pl_text_addf(&line, "%s %s", o->name, o->arg != NULL ? o->arg : "");
        pl_text_add(out, ".TP\n");
        add_roff(out, pl_text_str(&line));
        add_roff(out, o->help);
    }
    pl_text_free(&line);
}

void st_man_write(const pl_app *app, pl_text *out)
{
    pl_text text = { 0 };

    pl_text_addf(out, ".TH MOLSIEVE 1 \"\" \"molsieve %s\" \"User commands\"\n", app->version);
    pl_text_add(out, ".SH NAME\nmolsieve \\- screen molecules: files in, ranked and queryable results out\n");
    pl_text_add(out, ".SH SYNOPSIS\n.B molsieve\n.I command\n[arguments]\n.SH DESCRIPTION\n");
    pl_app_help(app, &text);
    add_verbatim(out, pl_text_str(&text));
    pl_text_add(out, ".SH COMMANDS\n");
    for (const pl_cmd *const *c = app->commands; *c != NULL; c++)
        add_command(out, *c);
    pl_text_add(out, ".SH STAGES\n");
    for (const pl_stage *const *s = app->stages; *s != NULL; s++) {
        pl_text_reset(&text);
        pl_stage_help(*s, &text);
        pl_text_addf(out, ".SS %s\n", (*s)->name);
        add_verbatim(out, pl_text_str(&text));
    }
    for (const st_topic *t = st_topics; t->name != NULL; t++) {
        pl_text_reset(&text);
        if (strcmp(t->name, "workflow") == 0)
            pl_workflow_help(&text);
        pl_text_addf(out, ".SH \"%s\"\n", t->title);
        add_verbatim(out, t->text);
        add_verbatim(out, pl_text_str(&text));
    }
    out->refused = out->refused || text.refused;
    pl_text_free(&text);
}
