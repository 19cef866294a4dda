/* pipeline/cli/cmd.h - the table of commands. Commands are the only code that prints. */
#ifndef PL_CMD_H
#define PL_CMD_H

#include <stdio.h>

#include "pipeline/store/store.h"
#include "pipeline/workflow/stage.h"
#include "pipeline/workflow/workflow.h"

enum { PL_OPTS_MAX = 32, PL_ARGS_ANY = 0, PL_ARGS_NONE = -1 };

typedef struct pl_app pl_app;
typedef struct pl_args pl_args;

typedef struct pl_opt {
    const char *name; /* "--workers"                                     */
    char letter;      /* 'j' or 0                                        */
    const char *arg;  /* "N", or NULL for a flag                         */
    const char *help;
} pl_opt;

typedef struct pl_cmd {
    const char *name, *args, *help; /* "run", "FILE [stage.setting=value ...]", one line */
    const char *about;              /* paragraphs and examples for `help run`            */
    const pl_opt *opts;             /* {0}-terminated or NULL                            */
    int min_args, max_args;         /* max_args: PL_ARGS_ANY where the command itself looks at them */
    /* Returns the exit status (docs/design.md 3.4). */
    int (*run)(const pl_app *app, const pl_args *args);
} pl_cmd;

/* Parsed command line: options by table (GNU style: --name=v, --name v, -jN, -j N, --). */
struct pl_args {
    const pl_cmd *cmd;
    int n; /* positional arguments */
    char *const *arg;
    const char *value[PL_OPTS_MAX]; /* by position in cmd->opts; NULL: not given; "": a flag that was given */
    int argc;
    char *const *argv;
};

struct pl_app {
    const pl_cmd *const *commands; /* NULL-terminated */
    const pl_stage *const *stages; /* NULL-terminated */
    const pl_schema *schema;
    const char *version;
    void (*details)(pl_text *out); /* for `--version -v`: lines "name value"; may be NULL */
};

/* Runs the command in argv and returns the exit status of the program. */
int pl_main(const pl_app *app, int argc, char **argv);

/* The option's value, "" for a flag that was given, NULL if it was not given. */
const char *pl_arg(const pl_args *args, const char *name);

/* The help of one command, from its table; and the list of all commands. */
void pl_cmd_help(const pl_cmd *cmd, pl_text *out);
void pl_app_help(const pl_app *app, pl_text *out);

/* ---- for commands: messages on stderr, and the exit status to return ---- */

/* Prints text for people on stdout. On a terminal, lines that are too long are broken between words, once they are
 * complete; into a file or a pipe the text goes as it is. Never for formats that programs read. */
void pl_cmd_print(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Prints help on stdout, wrapped at the terminal's width, into a file or a pipe at 80 columns. */
void pl_cmd_help_print(const pl_text *help);
/* Prints "molsieve: text" on stderr; one line, but wrapped on a terminal. */
void pl_cmd_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Prints whole lines on stderr as they are, but wrapped on a terminal. */
void pl_cmd_say_lines(const char *lines);
/* Prints the error and returns its exit status. */
int pl_cmd_fail(const pl_error *err);
/* The same where there was no memory even for an error's arena. */
int pl_cmd_no_memory(void);
/* Prints the text and the usage of the command; returns 2. */
int pl_cmd_usage(const pl_args *args, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Whether `to` is a terminal on which a line can be overwritten (TERM is not dumb). */
bool pl_cmd_tty(FILE *to);
/* The same, and NO_COLOR is not set. */
bool pl_cmd_color(FILE *to);

/* Loads the workflow args->arg[0] with the overrides that follow it. NULL: every problem has been printed, also that `mem`
 * is NULL, and the command returns *status. */
pl_workflow *pl_cmd_load(const pl_app *app, const pl_args *args, pl_arena *mem, int *status);
/* Prints all problems and their number on stderr. */
void pl_cmd_problems(const pl_problems *p);

#endif
