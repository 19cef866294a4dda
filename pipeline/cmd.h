/* pipeline/cmd.h - the table of commands. Commands are the only code that prints. */
#ifndef PL_CMD_H
#define PL_CMD_H

#include "pipeline/stage.h"
#include "pipeline/store.h"

typedef struct pl_app pl_app;
typedef struct pl_args pl_args;

typedef struct pl_opt {
    const char *name;      /* "--workers"                                     */
    char letter;           /* 'j' or 0                                        */
    const char *arg;       /* "N", or NULL for a flag                         */
    const char *help;
} pl_opt;

typedef struct pl_cmd {
    const char *name, *args, *help;   /* "run", "FILE [stage.setting=value ...]", one line */
    const char *about;                /* paragraphs and examples for `help run`            */
    const pl_opt *opts;               /* {0}-terminated or NULL                            */
    int min_args;
    /* Returns the exit status (workflow.md 3.4). */
    int (*run)(const pl_app *app, const pl_args *args);
} pl_cmd;

/* Parsed command line: options by table (GNU style: --name=v, --name v, -jN, -j N, --). */
struct pl_args {
    const pl_cmd *cmd;
    int n;                   /* positional arguments */
    char *const *arg;
    const char *value[32];   /* by position in opts; NULL: not given; "" for a flag given */
    int argc;
    char *const *argv;
};

struct pl_app {
    const pl_cmd *const *commands;   /* NULL-terminated */
    const pl_stage *const *stages;   /* NULL-terminated */
    const pl_schema *schema;
    const char *version;
};

int pl_main(const pl_app *app, int argc, char **argv);

/* The option's value, "" if a flag was given, NULL if absent. */
const char *pl_arg(const pl_args *args, const char *name);

#endif
