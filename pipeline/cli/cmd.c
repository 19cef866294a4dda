/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/cli/cmd.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/base/spelling.h"
#include "pipeline/base/wrap.h"
#include "pipeline/store/pages.h"

enum { MAX_COMMANDS = 64, USAGE = 2 };

bool pl_cmd_tty(FILE *to)
{
    const char *term = getenv("TERM");
    return isatty(fileno(to)) && !(term != NULL && strcmp(term, "dumb") == 0);
}

bool pl_cmd_color(FILE *to)
{
    const char *no = getenv("NO_COLOR");
    return !(no != NULL && no[0] != '\0') && pl_cmd_tty(to);
}

/* Adds the text as `to` shows it: wrapped on a terminal; elsewhere at `otherwise` columns, or as it is if that is 0. */
static void add_for(pl_text *out, FILE *to, const char *text, int otherwise)
{
    int columns = pl_columns(to);

    columns = columns > 0 ? columns : otherwise;
    if (columns > 0)
        pl_text_wrap(out, text, columns);
    else
        pl_text_add(out, text);
}

void pl_cmd_say(const char *fmt, ...)
{
    static const char who[] = "molsieve:";
    const bool color = pl_cmd_color(stderr);
    char line[4096];
    pl_text text = { 0 };
    va_list ap;
    int n = snprintf(line, sizeof line, "%s ", who);

    va_start(ap, fmt);
    (void)vsnprintf(line + n, sizeof line - (size_t)n, fmt, ap);
    va_end(ap);
    pl_clean_line(line);
    add_for(&text, stderr, line, 0);
    (void)fprintf(stderr, "%s%s%s%s\n", color ? "\033[1;31m" : "", who, color ? "\033[0m" : "",
                  pl_text_ok(&text) ? pl_text_str(&text) + sizeof who - 1 : line + sizeof who - 1);
    pl_text_free(&text);
}

/* The part of a line that pl_cmd_print has got so far; only used on a terminal. */
static pl_text pending;

static void print_text(const char *text, int otherwise)
{
    pl_text out = { 0 };

    add_for(&out, stdout, text, otherwise);
    (void)fputs(pl_text_ok(&out) ? pl_text_str(&out) : text, stdout);
    pl_text_free(&out);
}

void pl_cmd_print(const char *fmt, ...)
{
    va_list ap;
    char *text = NULL;

    va_start(ap, fmt);
    if (pl_columns(stdout) == 0)
        (void)vprintf(fmt, ap);
    else if (vasprintf(&text, fmt, ap) >= 0)
        pl_text_add(&pending, text);
    va_end(ap);
    free(text);
    if (pending.len > 0 && pending.s[pending.len - 1] == '\n') {
        print_text(pl_text_str(&pending), 0);
        pl_text_reset(&pending);
    }
}

void pl_cmd_help_print(const pl_text *help) { print_text(pl_text_str(help), PL_COLUMNS); }

int pl_cmd_fail(const pl_error *err)
{
    pl_cmd_say("%s%s%s", err->where, err->where[0] ? ": " : "", err->text);
    return pl_code_exit(err->code);
}

int pl_cmd_no_memory(void)
{
    pl_cmd_say("out of memory");
    return pl_code_exit(PL_ENOMEM);
}

int pl_cmd_usage(const pl_args *args, const char *fmt, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    pl_cmd_say("%s: %s", args->cmd->name, text);
    (void)fprintf(stderr, "usage: molsieve %s%s%s\nmore: molsieve help %s\n", args->cmd->name, args->cmd->args[0] ? " " : "",
                  args->cmd->args, args->cmd->name);
    return USAGE;
}

/* ---- help ---- */

void pl_cmd_help(const pl_cmd *cmd, pl_text *out)
{
    pl_text_addf(out, "usage: molsieve %s%s%s\n\n%s\n", cmd->name, cmd->args[0] ? " " : "", cmd->args, cmd->help);
    if (cmd->about != NULL)
        pl_text_addf(out, "\n%s%s", cmd->about, cmd->about[strlen(cmd->about) - 1] == '\n' ? "" : "\n");
    if (cmd->opts != NULL && cmd->opts[0].name != NULL)
        pl_text_add(out, "\nOptions:\n");
    for (const pl_opt *o = cmd->opts; o != NULL && o->name != NULL; o++) {
        char left[64], letter[8] = "    ";
        if (o->letter != 0)
            (void)snprintf(letter, sizeof letter, "-%c, ", o->letter);
        (void)snprintf(left, sizeof left, "%s%s%s%s", letter, o->name, o->arg != NULL ? " " : "", o->arg != NULL ? o->arg : "");
        pl_text_addf(out, "  %-26s  %s\n", left, o->help);
    }
}

void pl_app_help(const pl_app *app, pl_text *out)
{
    pl_text_add(out, "molsieve ranks libraries of small molecules by predicted properties. Stop a run\n"
                     "at any time; run it again to continue.\n\n"
                     "usage: molsieve COMMAND [arguments]\n\n");
    for (const pl_cmd *const *c = app->commands; *c != NULL; c++)
        pl_text_addf(out, "  %-11s %s\n", (*c)->name, (*c)->help);
    pl_text_add(out, "\nStart with:  molsieve init demo && cd demo && molsieve run workflows/screen.yaml\n"
                     "More:        molsieve help COMMAND | STAGE | stages | yaml | exit-codes\n"
                     "             molsieve --version [-v]\n");
}

static int print_cmd_help(const pl_cmd *cmd)
{
    pl_text text = { 0 };

    pl_cmd_help(cmd, &text);
    pl_cmd_help_print(&text);
    pl_text_free(&text);
    return 0;
}

static int print_app_help(const pl_app *app, FILE *to, int status)
{
    pl_text text = { 0 }, wrapped = { 0 };

    pl_app_help(app, &text);
    add_for(&wrapped, to, pl_text_str(&text), PL_COLUMNS);
    (void)fputs(pl_text_str(&wrapped), to);
    pl_text_free(&text);
    pl_text_free(&wrapped);
    return status;
}

static int print_version(const pl_app *app, bool all)
{
    pl_text text = { 0 };

    pl_text_addf(&text, "molsieve %s\n", app->version);
    if (all && app->details != NULL)
        app->details(&text);
    print_text(pl_text_str(&text), 0);
    pl_text_free(&text);
    return 0;
}

/* ---- options ---- */

const char *pl_arg(const pl_args *args, const char *name)
{
    for (int i = 0; args->cmd->opts != NULL && args->cmd->opts[i].name != NULL; i++)
        if (strcmp(args->cmd->opts[i].name, name) == 0)
            return args->value[i];
    return NULL;
}

static int find_long(const pl_cmd *cmd, const char *name, size_t n)
{
    for (int i = 0; cmd->opts != NULL && cmd->opts[i].name != NULL; i++)
        if (strlen(cmd->opts[i].name) == n && strncmp(cmd->opts[i].name, name, n) == 0)
            return i;
    return -1;
}

/* The same, also in American spelling. */
static int find_spelled(const pl_cmd *cmd, const char *name, size_t n)
{
    char word[PL_SPELLED], british[PL_SPELLED];
    int i = find_long(cmd, name, n);

    if (i < 0 && n < sizeof word) {
        (void)snprintf(word, sizeof word, "%.*s", (int)n, name);
        i = pl_british(word, british) ? find_long(cmd, british, strlen(british)) : -1;
    }
    return i;
}

static int find_letter(const pl_cmd *cmd, char letter)
{
    for (int i = 0; cmd->opts != NULL && cmd->opts[i].name != NULL; i++)
        if (cmd->opts[i].letter == letter)
            return i;
    return -1;
}

static int say_unknown(const pl_args *args, const char *option)
{
    const char *names[PL_OPTS_MAX + 1], *near;
    char word[64];
    int n = 0;

    (void)snprintf(word, sizeof word, "%.*s", (int)strcspn(option, "="), option);

    for (const pl_opt *o = args->cmd->opts; o != NULL && o->name != NULL && n < PL_OPTS_MAX; o++)
        names[n++] = o->name;
    names[n++] = "--help";
    near = pl_nearest(word, names, n);
    return pl_cmd_usage(args, "unknown option '%s'%s%s%s", word, near != NULL ? ", did you mean '" : "", near != NULL ? near : "",
                        near != NULL ? "'?" : "");
}

/* --name, --name=value, --name value. Returns 0, or the exit status of a usage error. */
static int take_long(pl_args *args, const char *word, char *const *next, bool *used_next)
{
    const char *equals = strchr(word, '=');
    int i = find_spelled(args->cmd, word, equals != NULL ? (size_t)(equals - word) : strlen(word));

    if (i < 0)
        return say_unknown(args, word);
    if (args->cmd->opts[i].arg == NULL && equals != NULL)
        return pl_cmd_usage(args, "%s takes no value", args->cmd->opts[i].name);
    if (args->cmd->opts[i].arg == NULL) {
        args->value[i] = "";
        return 0;
    }
    if (equals == NULL && *next == NULL)
        return pl_cmd_usage(args, "%s needs a value: %s", word, args->cmd->opts[i].arg);
    args->value[i] = equals != NULL ? equals + 1 : *next;
    *used_next = equals == NULL;
    return 0;
}

/* -n, -nk, -j4, -j 4 */
static int take_letters(pl_args *args, const char *word, char *const *next, bool *used_next)
{
    for (const char *c = word + 1; *c != '\0'; c++) {
        int i = find_letter(args->cmd, *c);
        if (i < 0)
            return say_unknown(args, word);
        if (args->cmd->opts[i].arg == NULL) {
            args->value[i] = "";
            continue;
        }
        if (c[1] == '\0' && *next == NULL)
            return pl_cmd_usage(args, "-%c needs a value: %s", *c, args->cmd->opts[i].arg);
        *used_next = c[1] == '\0';
        args->value[i] = *used_next ? *next : c + 1;
        return 0;
    }
    return 0;
}

static bool asks_help(const pl_cmd *cmd, int argc, char **argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || (strcmp(argv[i], "-h") == 0 && find_letter(cmd, 'h') < 0))
            return true;
    return false;
}

/* Sorts argv into options and positional arguments; 0 or the status of a usage error. */
static int parse(pl_args *args, int argc, char **argv, char **positional)
{
    bool only_positional = false;
    int status = 0;

    for (int i = 0; i < argc && status == 0; i++) {
        bool used_next = false;
        char *const *next = &argv[i + 1]; /* argv ends with NULL */
        if (only_positional || argv[i][0] != '-' || argv[i][1] == '\0')
            positional[args->n++] = argv[i];
        else if (strcmp(argv[i], "--") == 0)
            only_positional = true;
        else if (argv[i][1] == '-')
            status = take_long(args, argv[i], next, &used_next);
        else
            status = take_letters(args, argv[i], next, &used_next);
        i += used_next;
    }
    return status;
}

/* The first word that the command has no use for, or NULL. */
static const char *word_too_many(const pl_args *args)
{
    const int most = args->cmd->max_args == PL_ARGS_NONE ? 0 : args->cmd->max_args;

    return args->cmd->max_args != PL_ARGS_ANY && args->n > most ? args->arg[most] : NULL;
}

static int run_command(const pl_app *app, const pl_cmd *cmd, int argc, char **argv)
{
    char **positional = calloc((size_t)argc + 1, sizeof *positional);
    pl_args args = { .cmd = cmd, .arg = positional, .argc = argc, .argv = argv };
    int status;

    if (positional == NULL)
        return pl_cmd_no_memory();
    status = asks_help(cmd, argc - 2, argv + 2) ? -1 : parse(&args, argc - 2, argv + 2, positional);
    if (status < 0)
        status = print_cmd_help(cmd);
    else if (status == 0 && args.n < cmd->min_args)
        status = pl_cmd_usage(&args, args.n == 0 ? "an argument is missing" : "more arguments are needed");
    else if (status == 0 && word_too_many(&args) != NULL)
        status = pl_cmd_usage(&args, "'%s' is one word too many", word_too_many(&args));
    else if (status == 0)
        status = cmd->run(app, &args);
    free(positional);
    return status;
}

/* ---- the program ---- */

static int unknown_command(const pl_app *app, const char *word)
{
    const char *names[MAX_COMMANDS], *near;
    int n = 0;

    for (; app->commands[n] != NULL && n < MAX_COMMANDS; n++)
        names[n] = app->commands[n]->name;
    near = pl_nearest(word, names, n);
    pl_cmd_say("no command '%s'%s%s%s; see molsieve --help", word, near != NULL ? ", did you mean '" : "", near != NULL ? near : "",
               near != NULL ? "'?" : "");
    return USAGE;
}

static bool has_word(int argc, char **argv, const char *a, const char *b)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], a) == 0 || strcmp(argv[i], b) == 0)
            return true;
    return false;
}

static int dispatch(const pl_app *app, int argc, char **argv)
{
    if (argc < 2)
        return print_app_help(app, stderr, USAGE);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return print_app_help(app, stdout, 0);
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0 ||
        (strcmp(argv[1], "-v") == 0 && has_word(argc, argv, "--version", "-V")))
        return print_version(app, has_word(argc, argv, "-v", "--verbose"));
    for (const pl_cmd *const *c = app->commands; *c != NULL; c++)
        if (strcmp((*c)->name, argv[1]) == 0)
            return run_command(app, *c, argc, argv);
    return unknown_command(app, argv[1]);
}

/* Corrects what the parent process may have left. Closed standard descriptors get /dev/null, opened for reading: otherwise
 * the next opened file would receive our messages; writing to them still fails, as before. If SIGCHLD was ignored, we could
 * not wait for children. At a limit of file sizes the write fails instead of SIGXFSZ ending the program. */
static void settle_inherited(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDONLY);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        (void)close(fd);
    (void)signal(SIGCHLD, SIG_DFL);
    (void)signal(SIGXFSZ, SIG_IGN);
}

/* No command ends with status 0 after it met a damaged page of results.db, even where it could do without the rows. */
static int judged(int status)
{
    char why[PL_PAGES_WHY];

    pl_pages_why(NULL, why);
    if (status != 0 || why[0] == '\0')
        return status;
    pl_cmd_say("%s", why);
    return pl_code_exit(PL_EDATA);
}

int pl_main(const pl_app *app, int argc, char **argv)
{
    const int lost = pl_code_exit(PL_EIO), partly = pl_code_exit(PL_ELIMIT);
    int status;

    settle_inherited();
    status = judged(dispatch(app, argc, argv));
    if (pending.len > 0)
        print_text(pl_text_str(&pending), 0);
    pl_text_free(&pending);

    if ((fflush(stdout) == 0 && !ferror(stdout)) || status == lost) /* then the failure has been reported */
        return status;
    pl_cmd_say("the result could not be written to standard output");
    return status == 0 || status == partly ? lost : status; /* partly: some records failed, and the others are lost */
}

/* ---- workflows on the command line ---- */

void pl_cmd_say_lines(const char *lines)
{
    pl_text shown = { 0 };

    add_for(&shown, stderr, lines, 0);
    (void)fputs(pl_text_str(&shown), stderr);
    pl_text_free(&shown);
}

void pl_cmd_problems(const pl_problems *p)
{
    pl_text text = { 0 };

    pl_problems_write(p, &text);
    pl_cmd_say_lines(pl_text_str(&text));
    if (pl_problems_code(p) == PL_ENOMEM)
        pl_cmd_say("out of memory, so there may be other problems, or none; nothing was done");
    else
        pl_cmd_say("%d problem%s in the configuration; nothing was done", p->n, p->n == 1 ? "" : "s");
    pl_text_free(&text);
}

pl_workflow *pl_cmd_load(const pl_app *app, const pl_args *args, pl_arena *mem, int *status)
{
    pl_problems problems = { .mem = mem };
    pl_workflow *wf;

    if (mem == NULL) {
        *status = pl_cmd_no_memory();
        return NULL;
    }
    for (int i = 1; i < args->n; i++)
        if (strchr(args->arg[i], '=') == NULL) {
            *status = pl_cmd_usage(args, "'%s' is not of the form stage.setting=value", args->arg[i]);
            return NULL;
        }
    wf = pl_workflow_load(args->arg[0], args->arg + 1, args->n - 1, app->stages, &problems, mem);
    *status = wf != NULL ? 0 : pl_code_exit(pl_problems_code(&problems));
    if (wf == NULL)
        pl_cmd_problems(&problems);
    return wf;
}
