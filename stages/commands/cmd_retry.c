/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "stages/commands/commands.h"
#include "stages/commands/output/run_words.h"

/* Failed records are not put back one by one: the first record of a structure is
 * the molecule, so a record that succeeds late would change what later ones mean.
 * The stage that failed them runs again as a whole, with the other limits given,
 * and gives what a fresh run with those limits gives. */

static const pl_opt opts[] = { { "--stage", 0, "STAGE", "failures of this stage (default: the first stage that has any)" },
                               { "--code", 0, "CODE", "only if there are failures with this code" },
                               { "--dry-run", 'n', NULL, "count them and print the plan, do nothing" },
                               { "--jobs", 'j', "N", "worker threads and processes" },
                               { "--keep-going", 'k', NULL, "ignore the limits of failures" },
                               { "--until", 0, "STAGE", "run this stage and what it needs, no more" },
                               { "--max-time", 0, "TIME", "stop cleanly after this time, or auto: ask the scheduler" },
                               { "--grace", 0, "TIME", "time from a signal to the end (default 25s)" },
                               { "--quiet", 'q', NULL, "only warnings and errors" },
                               { "--verbose", 'v', NULL, "more messages" },
                               { "--log", 0, "FILE", "append the log to this file too" },
                               { "--log-format", 0, "FORM", "text or json" },
                               { 0 } };

/* How many failures of a step match --code. */
static pl_code count(pl_store *s, const char *stage, const char *code_word, int64_t *n, pl_error *err)
{
    if (code_word == NULL)
        return pl_db_int(s->db, n, err, "SELECT count(*) FROM failure WHERE stage=%Q", stage);
    return pl_db_int(s->db, n, err, "SELECT count(*) FROM failure WHERE stage=%Q AND code=%Q", stage, code_word);
}

typedef enum what { NOTHING, RETRY_STOPPED, RUN_UNFINISHED } what;

/* What there is to continue where there are no failures. A retry that was stopped may have cleared them and not met them again yet. A
 * run may have ended before it stored any, because a program of the user's was gone; only if no certain failures are asked for. */
static pl_code find_begun(pl_store *s, const pl_args *args, int64_t *begun, pl_error *err)
{
    const bool any = pl_arg(args, "--stage") == NULL && pl_arg(args, "--code") == NULL;

    return pl_db_int(
        s->db, begun, err,
        "SELECT CASE WHEN command='retry' AND state IN('running','stopped','lost') THEN %d "
        "WHEN %d AND state IN('running','stopped','lost','failed') THEN %d ELSE %d END FROM run ORDER BY run_id DESC LIMIT 1",
        RETRY_STOPPED, any, RUN_UNFINISHED, NOTHING);
}

/* The first step of the workflow with matching failures; NULL: none. */
static pl_code find_stage(const pl_app *app, const pl_workflow *wf, const pl_args *args, const char **stage, int64_t *n,
                          int64_t *begun, pl_error *err)
{
    const char *only = pl_arg(args, "--stage");
    pl_store *s = NULL;
    pl_code code = pl_store_open_read(&s, wf->storage.results, app->schema, err);

    *stage = NULL;
    for (int i = 0; code == PL_OK && *stage == NULL && i < wf->n_steps; i++) {
        const char *name = wf->step[i].stage->name;
        if (only != NULL && strcmp(only, name) != 0)
            continue;
        code = count(s, name, pl_arg(args, "--code"), n, err);
        if (*n > 0)
            *stage = name;
    }
    if (code == PL_OK)
        code = find_begun(s, args, begun, err);
    pl_store_close(s);
    return code;
}

static int run(const pl_app *app, const pl_args *args)
{
    pl_arena *mem = pl_arena_new(1 << 16);
    pl_error err = { 0 };
    const char *stage = NULL;
    int status;
    int64_t n = 0, begun = NOTHING;
    char name[64] = "";
    pl_workflow *wf = pl_cmd_load(app, args, mem, &status);

    if (wf != NULL && find_stage(app, wf, args, &stage, &n, &begun, &err) != PL_OK)
        status = pl_cmd_fail(&err);
    else if (wf != NULL && stage == NULL && begun == NOTHING)
        status = (pl_cmd_say("nothing to retry: no such failures"), 0);
    else if (stage != NULL)
        (void)snprintf(name, sizeof name, "%s", stage);
    pl_arena_free(mem);
    if (name[0] == '\0' && begun == NOTHING)
        return status;
    if (begun == RETRY_STOPPED)
        pl_cmd_say("continuing the retry that was stopped");
    else if (name[0] == '\0')
        pl_cmd_say("no failures are stored, but the last run did not finish: continuing it");
    else
        pl_cmd_say("%lld failure%s of stage %s: this stage and those that depend on it run again", (long long)n, n == 1 ? "" : "s",
                   name);
    return st_run_command(app, args, "retry", name[0] ? name : NULL);
}

const pl_cmd st_cmd_retry = {
    .name = "retry",
    .args = "FILE [stage.setting=value ...]",
    .help = "run the stage of failed records again, with other limits",
    .about = "Give the limits that were too tight as overrides. The whole stage runs again, so\n"
             "that the result is the same as that of a new run with these limits: which of\n"
             "several records of a structure comes first must not depend on the number of\n"
             "attempts. results.previous.db keeps the old results until the new ones are\n"
             "complete.\n"
             "\n"
             "  molsieve retry workflows/screen.yaml --stage prepare -n\n"
             "  molsieve retry screen.yaml stages.prepare.conformers.retry_cpu_limit=120s\n",
    .opts = opts,
    .min_args = 1,
    .run = run,
};
