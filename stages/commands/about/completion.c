/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/commands/about/completion.h"

#include <string.h>

#include "stages/commands/about/topics.h"
#include "stages/files/shipped.h"

static void add_commands(const pl_app *app, pl_text *out)
{
    for (const pl_cmd *const *c = app->commands; *c != NULL; c++)
        pl_text_addf(out, "%s%s", c == app->commands ? "" : " ", (*c)->name);
}

static void add_stages(const pl_app *app, pl_text *out)
{
    for (const pl_stage *const *s = app->stages; *s != NULL; s++)
        pl_text_addf(out, "%s%s", s == app->stages ? "" : " ", (*s)->name);
}

static void add_topics(pl_text *out)
{
    pl_text_add(out, " stages");
    for (const st_topic *t = st_topics; t->name != NULL; t++)
        pl_text_addf(out, " %s", t->name);
}

static void add_options(const pl_cmd *cmd, pl_text *out)
{
    pl_text_add(out, "--help");
    for (const pl_opt *o = cmd->opts; o != NULL && o->name != NULL; o++)
        pl_text_addf(out, " %s", o->name);
}

/* The words of "csv|sdf|smi [X]" or "check|digest|... [X]"; nothing for names in capitals. */
static void add_choices(const char *args, pl_text *out)
{
    size_t n = strcspn(args, " ");
    char word[128];

    if (n == 0 || n >= sizeof word || memchr(args, '|', n) == NULL || strspn(args, "abcdefghijklmnopqrstuvwxyz|-") < n)
        return;
    memcpy(word, args, n);
    word[n] = '\0';
    for (char *c = word; *c != '\0'; c++)
        if (*c == '|')
            *c = ' ';
    pl_text_add(out, word);
}

/* "esol qm9-gap qm9-homo" */
static void add_models(pl_text *out)
{
    pl_arena *mem = pl_arena_new(1 << 12);
    const char *names = mem != NULL ? st_shipped_names(mem) : NULL;

    for (const char *c = names != NULL ? names : ""; *c != '\0'; c++)
        if (*c != ',')
            pl_text_add_n(out, c, 1);
    out->refused = out->refused || names == NULL;
    pl_arena_free(mem);
}

/* The kinds of words that may follow a command. */
static void add_words(const pl_app *app, const pl_cmd *cmd, pl_text *out)
{
    add_choices(cmd->args, out);
    if (strcmp(cmd->name, "predict") == 0)
        add_models(out);
    if (strcmp(cmd->name, "help") != 0)
        return;
    add_commands(app, out);
    pl_text_add(out, " ");
    add_stages(app, out);
    add_topics(out);
}

/* The kind of an option's NAME: a stage, or a file. */
static bool wants_stage(const pl_opt *o) { return o->arg != NULL && strcmp(o->arg, "STAGE") == 0; }

/* ---- bash ---- */

static void add_bash_case(const pl_app *app, const pl_cmd *cmd, pl_text *out)
{
    pl_text_addf(out, "    %s)\n      opts=\"", cmd->name);
    add_options(cmd, out);
    pl_text_add(out, "\"\n      words=\"");
    add_words(app, cmd, out);
    pl_text_add(out, "\"\n");
    for (const pl_opt *o = cmd->opts; o != NULL && o->name != NULL; o++)
        if (wants_stage(o))
            pl_text_addf(out, "      [ \"$prev\" = %s ] && words=\"$stages\"\n", o->name);
    pl_text_add(out, "      ;;\n");
}

static void add_bash(const pl_app *app, pl_text *out)
{
    pl_text_add(out, "# bash completion for molsieve; made by `molsieve completion bash`\n_molsieve() {\n"
                     "  local cur=\"${COMP_WORDS[COMP_CWORD]}\" prev=\"${COMP_WORDS[COMP_CWORD-1]}\" opts= words= stages=\n"
                     "  stages=\"");
    add_stages(app, out);
    pl_text_add(out, "\"\n  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    COMPREPLY=($(compgen -W \"");
    add_commands(app, out);
    pl_text_add(out, " --help --version\" -- \"$cur\"))\n    return\n  fi\n  case \"${COMP_WORDS[1]}\" in\n");
    for (const pl_cmd *const *c = app->commands; *c != NULL; c++)
        add_bash_case(app, *c, out);
    pl_text_add(out, "  esac\n  case \"$cur\" in\n    -*) COMPREPLY=($(compgen -W \"$opts\" -- \"$cur\")) ;;\n"
                     "    *) COMPREPLY=($(compgen -W \"$words\" -- \"$cur\") $(compgen -f -- \"$cur\")) ;;\n  esac\n}\n"
                     "complete -o filenames -F _molsieve molsieve\n");
}

/* ---- zsh ---- */

/* Text inside '...' for zsh's _arguments: its special characters are escaped. */
static void add_zsh_text(pl_text *out, const char *s)
{
    for (; *s != '\0'; s++) {
        if (*s == '\'')
            pl_text_add(out, "'\\''");
        else if (strchr("[]:\\", *s) != NULL)
            pl_text_addf(out, "\\%c", *s);
        else
            pl_text_add_n(out, s, 1);
    }
}

static void add_zsh_case(const pl_app *app, const pl_cmd *cmd, pl_text *out)
{
    pl_text words = { 0 };

    pl_text_addf(out, "    %s)\n      _arguments '--help[help]'", cmd->name);
    for (const pl_opt *o = cmd->opts; o != NULL && o->name != NULL; o++) {
        const char *files = o->arg != NULL ? ":_files" : "";
        pl_text_addf(out, " \\\n        '%s%s[", o->name, o->arg != NULL ? "=" : "");
        add_zsh_text(out, o->help);
        pl_text_addf(out, "]%s%s%s'", o->arg != NULL ? ":" : "", o->arg != NULL ? o->arg : "",
                     wants_stage(o) ? ":($stages)" : files);
    }
    add_words(app, cmd, &words);
    if (words.len > 0)
        pl_text_addf(out, " \\\n        '1:word:(%s)'", pl_text_str(&words));
    pl_text_add(out, " \\\n        '*:file:_files'\n      ;;\n");
    pl_text_depend(out, &words);
    pl_text_free(&words);
}

static void add_zsh(const pl_app *app, pl_text *out)
{
    pl_text_add(out,
                "#compdef molsieve\n# made by `molsieve completion zsh`\n_molsieve() {\n  local -a commands stages\n  stages=(");
    add_stages(app, out);
    pl_text_add(out, ")\n  commands=(\n");
    for (const pl_cmd *const *c = app->commands; *c != NULL; c++) {
        pl_text_addf(out, "    '%s:", (*c)->name);
        add_zsh_text(out, (*c)->help);
        pl_text_add(out, "'\n");
    }
    pl_text_add(out, "  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n  fi\n"
                     "  local command=$words[2]\n  shift words\n  (( CURRENT-- ))\n  case $command in\n");
    for (const pl_cmd *const *c = app->commands; *c != NULL; c++)
        add_zsh_case(app, *c, out);
    pl_text_add(out, "  esac\n}\n_molsieve \"$@\"\n");
}

/* ---- fish ---- */

static void add_fish_text(pl_text *out, const char *s)
{
    pl_text_add(out, "'");
    for (; *s != '\0'; s++)
        pl_text_addf(out, *s == '\'' || *s == '\\' ? "\\%c" : "%c", *s);
    pl_text_add(out, "'");
}

static void add_fish_command(const pl_app *app, const pl_cmd *cmd, pl_text *out)
{
    pl_text words = { 0 };

    pl_text_addf(out, "complete -c molsieve -n __fish_use_subcommand -f -a %s -d ", cmd->name);
    add_fish_text(out, cmd->help);
    pl_text_add(out, "\n");
    for (const pl_opt *o = cmd->opts; o != NULL && o->name != NULL; o++) {
        pl_text_addf(out, "complete -c molsieve -n '__fish_seen_subcommand_from %s' -l %s", cmd->name, o->name + 2);
        if (o->letter != 0)
            pl_text_addf(out, " -s %c", o->letter);
        pl_text_add(out, o->arg != NULL ? " -r -d " : " -d ");
        add_fish_text(out, o->help);
        pl_text_add(out, "\n");
    }
    add_words(app, cmd, &words);
    if (words.len > 0)
        pl_text_addf(out, "complete -c molsieve -n '__fish_seen_subcommand_from %s' -a '%s'\n", cmd->name, pl_text_str(&words));
    pl_text_depend(out, &words);
    pl_text_free(&words);
}

static void add_fish(const pl_app *app, pl_text *out)
{
    pl_text_add(out, "# fish completion for molsieve; made by `molsieve completion fish`\n");
    for (const pl_cmd *const *c = app->commands; *c != NULL; c++)
        add_fish_command(app, *c, out);
}

bool st_completion_write(const pl_app *app, const char *shell, pl_text *out)
{
    static const struct {
        const char *name;
        void (*write)(const pl_app *app, pl_text *out);
    } shells[] = { { "bash", add_bash }, { "zsh", add_zsh }, { "fish", add_fish } };

    for (int i = 0; i < 3; i++)
        if (strcmp(shells[i].name, shell) == 0) {
            shells[i].write(app, out);
            return true;
        }
    return false;
}
