/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/run/run.h"
#include "stages/commands/commands.h"
#include "stages/commands/output/run_words.h"
#include "stages/files/own_files.h"
#include "stages/files/version.h"
#include "stages/merge/merge.h"

static const pl_opt opts[] = { { "--output", 'o', "FILE", "the merged results; without it storage.results of the workflow" },
                               { "--of", 0, "N",
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

/* Prints what is wrong with the files that were given. */
static int refuse_files(const st_shards *s, int n_files)
{
    pl_error err = { 0 };
    const char *all = pl_text_str(&s->problems);
    int n = 0;

    for (const char *at = all; *at != '\0'; n++) {
        int len = (int)strcspn(at, "\n");
        pl_cmd_say("%.*s", len, at);
        at += len + (at[len] == '\n');
    }
    return pl_fail(&err, s->worst, "%d problem%s with the %d files; nothing was written", n, n == 1 ? "" : "s", n_files) != PL_OK
               ? pl_cmd_fail(&err)
               : 0;
}

/* What the command line gives besides settings. */
typedef struct request {
    const pl_app *app;
    const pl_args *args;
    st_shard_list files;
    int32_t of;
    pl_arena *mem;
} request;

/* Fills wf if it is NULL. */
static pl_code find(const request *q, st_shards *shards, pl_workflow **wf, pl_error *err)
{
    const pl_app *app = q->app;

    if (*wf != NULL && q->files.to != NULL)
        (*wf)->storage.results = q->files.to;
    return q->files.n > 0 ? st_shards_given(shards, wf, &q->files, app->stages, app->schema, q->mem, err)
                          : st_shards_find(shards, *wf, app->schema, q->of, q->mem, err);
}

/* Whether no stage is left: none works on the whole input, or a run did so after an earlier merge. */
static bool is_run(const request *q, pl_workflow *wf)
{
    pl_step_plan *plan = PL_NEW(q->mem, pl_step_plan, wf->n_steps);
    pl_store *s = NULL;
    bool done = plan != NULL && pl_store_open_read(&s, wf->storage.results, q->app->schema, NULL) == PL_OK &&
                pl_plan_steps(wf, s, plan, q->mem, NULL) == PL_OK;

    for (int i = 0; i < wf->n_steps && done; i++)
        done = plan[i].state == PL_STEP_DONE;
    pl_store_close(s);
    return done;
}

static void say_done(const request *q, const st_shards *shards, pl_workflow *wf, bool already)
{
    pl_cmd_print("%d shards %s\n", (int)shards->n, already ? "were merged already" : "merged");
    st_summary_print(q->app, wf, already ? 0 : 1);
    if (shards->alone)
        pl_cmd_print("%s; with the workflow in front of the files they can be run\n", st_left_out(wf, q->mem));
    else if (is_run(q, wf))
        pl_cmd_print("every stage is done\n");
    else
        pl_cmd_print("%s; `molsieve run %s` runs them\n", st_left_out(wf, q->mem), q->args->arg[0]);
}

static int merge(const request *q, pl_workflow *wf)
{
    const pl_app *app = q->app;
    const pl_args *args = q->args;
    pl_arena *mem = q->mem;
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
    pl_code code = find(q, &shards, &wf, &err);
    int status;

    if (code == PL_OK && pl_arg(args, "--missing") != NULL)
        return print_missing(&shards);
    if (code == PL_OK && shards.files && shards.worst != PL_OK) {
        status = refuse_files(&shards, q->files.n);
        pl_text_free(&shards.problems);
        return status;
    }
    if (code == PL_OK && shards.n_missing > 0)
        return refuse(&shards, args->arg[0]);
    if (code == PL_OK)
        code = st_log_open(&log, wf, NULL, &err);
    if (code == PL_OK)
        code = st_merge(wf, app->schema, &shards, &o, &already, mem, &err);
    st_log_close(&log);
    if (code != PL_OK)
        return pl_cmd_fail(&err);
    if (pl_arg(args, "--quiet") == NULL)
        say_done(q, &shards, wf, already);
    return 0;
}

/* ---- the command line ---- */

static bool is_shard_file(const char *arg) { return pl_ends_with(arg, ".db") || st_is_database(arg); }

/* A setting has a "=", unless a file has that name. */
static bool is_setting(const char *arg) { return strchr(arg, '=') != NULL && access(arg, F_OK) != 0; }

/* The file of a shard must not be replaced by the results of all. */
static int check_output(const request *q)
{
    pl_store *s = NULL;
    const char *text = "";

    if (q->files.to == NULL || access(q->files.to, F_OK) != 0)
        return 0;
    if (pl_store_open_read(&s, q->files.to, q->app->schema, NULL) == PL_OK)
        (void)pl_store_shard(s, &text, q->mem, NULL);
    pl_store_close(s);
    return text[0] != '\0' ? pl_cmd_usage(q->args, "-o %s: the file of shard %s; choose another name", q->files.to, text) : 0;
}

static int check_request(const request *q, bool with_workflow)
{
    if (q->files.n > 0 && pl_arg(q->args, "--missing") != NULL)
        return pl_cmd_usage(q->args, "--missing is about the directories of shards, not about files");
    if (q->files.n > 0 && q->of > 0)
        return pl_cmd_usage(q->args, "--of is about the directories of shards, not about files");
    if (!with_workflow && q->files.to == NULL)
        return pl_cmd_usage(q->args, "without a workflow the results need a name: -o all.db");
    return check_output(q);
}

/* Divides the arguments into the workflow with its settings, and files of shards. out->n 0: no workflow. */
static pl_code divide(request *q, pl_args *out, pl_error *err)
{
    char **words = PL_NEW(q->mem, char *, q->args->n + 1);
    const char **files = PL_NEW(q->mem, const char *, q->args->n + 1);
    bool alone = is_shard_file(q->args->arg[0]);

    *out = *q->args;
    out->n = 0;
    if (words == NULL || files == NULL)
        return pl_fail(err, PL_ENOMEM, "the arguments");
    for (int i = 0; i < q->args->n; i++) {
        if (alone || (i > 0 && !is_setting(q->args->arg[i]) && is_shard_file(q->args->arg[i])))
            files[q->files.n++] = q->args->arg[i];
        else
            words[out->n++] = q->args->arg[i];
    }
    out->arg = words;
    q->files.file = files;
    return PL_OK;
}

static int with_arena(request *q)
{
    static char to[PATH_MAX];
    const char *output = pl_arg(q->args, "--output");
    pl_args words;
    pl_error err = { 0 };
    pl_workflow *wf = NULL;
    int status;

    if (divide(q, &words, &err) != PL_OK)
        return pl_cmd_fail(&err);
    if (output != NULL && (*output == '\0' || !st_path_canonical(to, output)))
        return pl_cmd_usage(q->args, "-o '%s': a file name is expected", output);
    q->files.to = output != NULL ? to : NULL;
    status = check_request(q, words.n > 0);
    if (status == 0 && words.n > 0)
        wf = pl_cmd_load(q->app, &words, q->mem, &status);
    return status == 0 ? merge(q, wf) : status;
}

static int run(const pl_app *app, const pl_args *args)
{
    const char *text = pl_arg(args, "--of");
    request q = { .app = app, .args = args };
    int64_t of = 0;
    int status;

    if (text != NULL && (!pl_parse_int(text, &of) || of < 1 || of > PL_SHARDS_MAX))
        return pl_cmd_usage(args, "--of %s: write a number from 1 to %d", text, PL_SHARDS_MAX);
    q.of = (int32_t)of;
    q.mem = pl_arena_new(1 << 16);
    status = q.mem != NULL ? with_arena(&q) : pl_cmd_no_memory();
    pl_arena_free(q.mem);
    return status;
}

const pl_cmd st_cmd_merge = {
    .name = "merge",
    .args = "FILE [stage.setting=value ...] [SHARD.db ...]",
    .help = "combine the shards of a workflow into the results of one run",
    .about = "Run it when all shards (`molsieve run FILE --shard K/N`) are finished. It copies\n"
             "their rows into results.db of the work directory: the same rows as those of one\n"
             "run without shards. Then `molsieve run FILE` runs the stages that work on the\n"
             "whole input. You can stop a merge and run it again; a second merge changes\n"
             "nothing. Status 75: shards are missing.\n"
             "\n"
             "SHARD.db are files of `molsieve run FILE --shard K/N --out SHARD.db`, all of\n"
             "them and in any order, in place of the directories of the shards. Without FILE\n"
             "the results have no structures, and need a name; missing shards have status 2.\n"
             "\n"
             "  molsieve merge workflows/screen.yaml\n"
             "  molsieve merge workflows/screen.yaml --of 100 --missing\n"
             "  molsieve merge workflows/screen.yaml a.db b.db\n"
             "  molsieve merge a.db b.db -o all.db\n",
    .opts = opts,
    .min_args = 1,
    .run = run,
};
