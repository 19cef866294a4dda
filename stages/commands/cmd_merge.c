/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "stages/commands/commands.h"
#include "stages/commands/output/run_words.h"
#include "stages/files/version.h"
#include "stages/merge/merge.h"

static const pl_opt opts[] = { { "--of", 0, "N",
                                 "number of shards; needed if none has begun, or if shards of another number exist too" },
                               { "--missing", 0, NULL, "only print the numbers of the shards that are not finished, one a line" },
                               { "--quiet", 'q', NULL, "only warnings and errors" },
                               { 0 } };

static int print_missing(const st_shards *s)
{
    for (int32_t k = 0; k < s->n; k++)
        if (s->why[k] != NULL)
            pl_cmd_print("%d\n", (int)k);
    return 0;
}

/* Names the first few and their total; the status is that of an unfinished run. */
static int refuse(const st_shards *s, const char *file)
{
    pl_error err = { 0 };
    int shown = 0;

    for (int32_t k = 0; k < s->n && shown < 10; k++)
        if (s->why[k] != NULL) {
            pl_cmd_say("shard %d: %s", (int)k, s->why[k]);
            shown++;
        }
    return pl_fail(&err, PL_ESTOP,
                   "%d of %d shards are not finished; run them, then merge again (`molsieve merge %s --missing` "
                   "prints their numbers)",
                   s->n_missing, (int)s->n, file) != PL_OK
               ? pl_cmd_fail(&err)
               : 0;
}

static int merge(const pl_app *app, const pl_args *args, pl_workflow *wf, int32_t of, pl_arena *mem)
{
    pl_run_opts o = { .grace = 25,
                      .command = "merge",
                      .argc = args->argc,
                      .argv = args->argv,
                      .program_version = app->version,
                      .git_commit = st_commit };
    st_log log = { .max = PL_WARN }; /* what a merge warns of goes to standard error */
    pl_error err = { 0 };
    st_shards shards;
    bool already = false;
    pl_code code = st_shards_find(&shards, wf, app->schema, of, mem, &err);

    if (code == PL_OK && pl_arg(args, "--missing") != NULL)
        return print_missing(&shards);
    if (code == PL_OK && shards.n_missing > 0)
        return refuse(&shards, args->arg[0]);
    if (code == PL_OK)
        code = st_log_open(&log, wf, NULL, &err);
    if (code == PL_OK)
        code = st_merge(wf, app->schema, &shards, &o, &already, mem, &err);
    st_log_close(&log);
    if (code != PL_OK)
        return pl_cmd_fail(&err);
    if (pl_arg(args, "--quiet") == NULL) {
        pl_cmd_print("%d shards %s\n", (int)shards.n, already ? "were merged already" : "merged");
        st_summary_print(app, wf, already ? 0 : 1);
        pl_cmd_print("%s; `molsieve run %s` runs them\n", st_left_out(wf, mem), args->arg[0]);
    }
    return 0;
}

static int run(const pl_app *app, const pl_args *args)
{
    const char *text = pl_arg(args, "--of");
    pl_arena *mem;
    pl_workflow *wf;
    int64_t of = 0;
    int status = pl_code_exit(PL_ENOMEM);

    if (text != NULL && (!pl_parse_int(text, &of) || of < 1 || of > PL_SHARDS_MAX))
        return pl_cmd_usage(args, "--of %s: write a number from 1 to %d", text, PL_SHARDS_MAX);
    mem = pl_arena_new(1 << 16);
    wf = mem != NULL ? pl_cmd_load(app, args, mem, &status) : NULL;
    if (wf != NULL)
        status = merge(app, args, wf, (int32_t)of, mem);
    pl_arena_free(mem);
    return status;
}

const pl_cmd st_cmd_merge = {
    .name = "merge",
    .args = "FILE [stage.setting=value ...]",
    .help = "combine the shards of a workflow into the results of one run",
    .about = "Run it when all shards (`molsieve run FILE --shard K/N`) are finished. It copies\n"
             "their rows into results.db of the work directory: the same rows as those of one\n"
             "run without shards. Then `molsieve run FILE` runs the stages that work on the\n"
             "whole input. You can stop a merge and run it again; a second merge changes\n"
             "nothing. Status 75: shards are missing.\n"
             "\n"
             "  molsieve merge workflows/screen.yaml\n"
             "  molsieve merge workflows/screen.yaml --of 100 --missing\n",
    .opts = opts,
    .min_args = 1,
    .run = run,
};
