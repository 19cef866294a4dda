/* stages/database/results.h - finds the results.db that a command works on.
 *
 * WHERE may be a database, a work directory, a workflow file, or nothing: then
 * ./results.db, or the newest runs/<name>/results.db below the current directory. */
#ifndef ST_RESULTS_H
#define ST_RESULTS_H

#include "pipeline/cli/cmd.h"

/* The path; where may be NULL. EIO when there is none, with what was looked for. */
pl_code st_results_find(const pl_app *app, const char *where, const char **path, pl_arena *mem, pl_error *err);

/* Results open for reading, and what a command was asked about them. */
typedef struct st_ask {
    const pl_args *args;
    void *ctx;
    pl_store *store;
    pl_arena *mem;
} st_ask;

typedef pl_code st_answer(const st_ask *ask, pl_error *err);

/* Finds and opens the results, calls `answer`, and prints any error. Returns the exit status. */
int st_results_ask(const pl_app *app, const pl_args *args, const char *where, st_answer *answer, void *ctx);

#endif
