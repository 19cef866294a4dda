/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pipeline/base/log.h"
#include "stages/commands/commands.h"
#include "stages/commands/output/plan_print.h"
#include "stages/commands/output/run_words.h"
#include "stages/files/version.h"
#include "stages/merge/shard_file.h"
#include "stages/steps/train/distributed.h"
#include "stages/steps/train/train.h"

static const pl_opt opts[] = {
    { "--dry-run", 'n', NULL, "print the plan, do nothing" },
    { "--jobs", 'j', "N", "worker threads and processes (default: the workflow's, else all processors)" },
    { "--keep-going", 'k', NULL, "after a failed stage continue with those that do not need it; ignore the limits of failures" },
    { "--until", 0, "STAGE", "run this stage and what it needs, no more" },
    { "--from", 0, "STAGE", "run this stage and all after it again" },
    { "--force", 'f', "STAGE", "run this stage again even if it is done" },
    { "--shard", 0, "K/N", "run the stages of units for part K of N of the input, K from 0; auto or auto/N: from the job array" },
    { "--out", 0, "FILE", "with --shard: write the finished shard to one file, for `molsieve merge`" },
    { "--fresh", 0, NULL, "start over in a new work directory (DIR-2, DIR-3, ...); the old one stays" },
    { "--delete-removed", 0, NULL, "delete what stages stored that the workflow no longer has, also after long work" },
    { "--max-time", 0, "TIME", "stop cleanly after this time (3h50m), or auto: ask the scheduler" },
    { "--grace", 0, "TIME", "time from a signal to the end (default 25s)" },
    { "--requeue-exit", 0, "N", "end with status N instead of 75: 99 makes Grid Engine start the job again" },
    { "--quiet", 'q', NULL, "only warnings and errors" },
    { "--verbose", 'v', NULL, "more messages" },
    { "--log", 0, "FILE", "append the log to this file too" },
    { "--log-format", 0, "FORM", "text or json" },
    { 0 }
};

static bool read_time(const pl_args *args, const char *name, double *out)
{
    const char *text = pl_arg(args, name);

    if (text == NULL || (strcmp(name, "--max-time") == 0 && strcmp(text, "auto") == 0)) {
        *out = text != NULL ? -1 : *out;
        return true;
    }
    return pl_parse_duration(text, out) && *out > 0;
}

static int read_shard(const pl_args *args, pl_run_opts *out)
{
    const char *text = pl_arg(args, "--shard");
    pl_error err = { 0 };

    if (text == NULL)
        return pl_arg(args, "--out") == NULL ? 0 : pl_cmd_usage(args, "--out is the file of a shard; give --shard K/N too");
    if (pl_arg(args, "--out") != NULL && out->until != NULL)
        return pl_cmd_usage(args, "--until leaves stages out, and --out writes a shard only when all are done; use one of them");
    if (pl_shard_parse(&out->shard, text, &err) != PL_OK)
        return pl_cmd_usage(args, "--shard %s", err.text);
    return out->fresh
               ? pl_cmd_usage(args, "--fresh cannot be used with --shard, as `merge` would not find the new directory; remove %s",
                              "the directory of the shard instead")
               : 0;
}

/* Checks everything on the command line; returns 0 or the exit status. */
static int read_options(const pl_args *args, pl_run_opts *out)
{
    const char *jobs = pl_arg(args, "--jobs"), *again = pl_arg(args, "--requeue-exit");
    int64_t n = 0;

    if (jobs != NULL && (!pl_parse_int(jobs, &n) || n < 1 || n > 4096))
        return pl_cmd_usage(args, "--jobs %s: write a number from 1 to 4096", jobs);
    if (!read_time(args, "--max-time", &out->max_time))
        return pl_cmd_usage(args, "--max-time %s: write a time such as 3h50m, or auto", pl_arg(args, "--max-time"));
    if (!read_time(args, "--grace", &out->grace))
        return pl_cmd_usage(args, "--grace %s: write a time such as 25s", pl_arg(args, "--grace"));
    out->workers = (int)n;
    n = 75;
    if (again != NULL && (!pl_parse_int(again, &n) || n < 1 || n > 125))
        return pl_cmd_usage(args, "--requeue-exit %s: write a number from 1 to 125", again);
    out->requeue_exit = (int)n;
    out->keep_going = pl_arg(args, "--keep-going") != NULL;
    out->fresh = pl_arg(args, "--fresh") != NULL;
    out->delete_removed = pl_arg(args, "--delete-removed") != NULL;
    out->until = pl_arg(args, "--until");
    out->from = pl_arg(args, "--from");
    out->force = out->force != NULL ? out->force : pl_arg(args, "--force");
    out->quiet = pl_arg(args, "--quiet") != NULL;
    return read_shard(args, out);
}

static int dry_run(const pl_app *app, pl_workflow *wf, const pl_run_opts *o, pl_arena *mem)
{
    st_plan plan;
    pl_error err = { 0 };

    if (st_plan_make(&plan, app, wf, o, mem, &err) != PL_OK)
        return pl_cmd_fail(&err);
    st_plan_print(&plan);
    return 0;
}

static int run_for_real(const pl_app *app, const pl_args *args, pl_workflow *wf, pl_run_opts *o, pl_arena *mem)
{
    const char *form = pl_arg(args, "--log-format");
    const pl_level spoken = pl_arg(args, "--verbose") != NULL ? PL_DEBUG : PL_INFO;
    st_log log = { .json = form != NULL && strcmp(form, "json") == 0,
                   .tty = pl_cmd_tty(stderr),
                   .max = o->quiet ? PL_WARN : spoken };
    pl_error err = { 0 };
    pl_code code;
    int ran = 0;

    o->ran = &ran;
    o->progress_tty = log.tty;
    o->max_time = st_time_left(o->max_time == 0 ? wf->limits.max_time : o->max_time, wf->scheduler.warn);
    if (st_log_open(&log, wf, pl_arg(args, "--log"), &err) != PL_OK)
        return pl_cmd_fail(&err);
    code = pl_run(wf, app->schema, o, mem, &err);
    st_log_close(&log);
    o->ran = NULL;
    if (code != PL_OK)
        return pl_cmd_fail(&err);
    if (!o->quiet && o->shard.n == 0 && strcmp(o->command, "fit") != 0 && strcmp(o->command, "campaign") != 0 &&
        strcmp(o->command, "repeat") != 0) /* they have last words of their own */
        st_summary_print(app, wf, ran);
    else if (!o->quiet && o->shard.n > 0)
        pl_cmd_print("shard %d of %d is done%s%s: %s\n%s; `molsieve merge %s%s` when all shards are done\n", (int)o->shard.k,
                     (int)o->shard.n, o->until != NULL ? " until " : "", o->until != NULL ? o->until : "",
                     o->publish != NULL ? pl_arg(args, "--out") : wf->storage.results, st_left_out(wf, mem), args->arg[0],
                     o->publish != NULL ? " SHARD.db ..." : "");
    return 0;
}

/* The shard's own directory, and the file that it becomes. */
static pl_code begin_shard(const pl_app *app, const pl_args *args, pl_workflow *wf, pl_run_opts *o, st_shard_file *file,
                           pl_arena *mem, pl_error *err)
{
    pl_code code = PL_OK;

    *file = (st_shard_file){ pl_arg(args, "--out"), o->shard };
    if (file->path != NULL) {
        code = st_shard_file_place(file, wf, app->schema, mem, err);
        o->publish = st_shard_file_write;
        o->publish_ctx = file;
    }
    return code == PL_OK ? pl_workflow_shard(wf, o->shard, mem, err) : code;
}

/* Alone, or as one of several ranks; only rank 0 runs the workflow and prints. */
static int run_as_rank(const pl_app *app, const pl_args *args, pl_workflow *wf, pl_run_opts *o, pl_arena *mem)
{
    st_team team;
    pl_error err = { 0 };
    pl_code code = st_team_open(&team, wf, &err);
    int status;

    o->team = &team;
    o->ranks = team.ranks.size;
    if (code != PL_OK)
        status = team.state == ST_TEAM_REFUSED && team.ranks.rank > 0 ? 0 : pl_cmd_fail(&err);
    else if (team.ranks.rank == 0)
        status = run_for_real(app, args, wf, o, mem);
    else
        status = st_train_follow(&team, wf, pl_workers(wf, o), &err) == PL_OK ? 0 : pl_cmd_fail(&err);
    return st_team_close(&team, status);
}

int st_run_command(const pl_app *app, const pl_args *args, const char *command, const char *force)
{
    pl_arena *mem = pl_arena_new(1 << 16);
    pl_run_opts o = { .grace = 25,
                      .force = force,
                      .command = command,
                      .argc = args->argc,
                      .argv = args->argv,
                      .known = app->stages,
                      .program_version = app->version,
                      .git_commit = st_commit };
    const char *form = pl_arg(args, "--log-format");
    pl_error err = { 0 };
    st_shard_file file;
    pl_workflow *wf;
    int status = read_options(args, &o);

    if (status == 0 && form != NULL && strcmp(form, "text") != 0 && strcmp(form, "json") != 0)
        status = pl_cmd_usage(args, "--log-format %s: write text or json", form);
    wf = status == 0 ? pl_cmd_load(app, args, mem, &status) : NULL;
    if (wf != NULL && o.shard.n > 0 && begin_shard(app, args, wf, &o, &file, mem, &err) != PL_OK)
        status = pl_cmd_fail(&err);
    else if (wf != NULL && pl_arg(args, "--dry-run") != NULL)
        status = dry_run(app, wf, &o, mem);
    else if (wf != NULL && o.shard.n > 0)
        status = run_for_real(app, args, wf, &o, mem);
    else if (wf != NULL)
        status = run_as_rank(app, args, wf, &o, mem);
    pl_arena_free(mem);
    return status == pl_code_exit(PL_ESTOP) ? o.requeue_exit : status;
}

static int run(const pl_app *app, const pl_args *args) { return st_run_command(app, args, "run", NULL); }

const pl_cmd st_cmd_run = {
    .name = "run",
    .args = "FILE [stage.setting=value ...]",
    .help = "run a workflow: reuse finished stages, continue unfinished ones",
    .about = "You can stop a run at any moment and in any way; the same command continues it.\n"
             "After TERM, INT, USR1, USR2 or XCPU the run finishes the units in progress and\n"
             "ends with status 75; a second signal ends it at once, which is safe too. If you\n"
             "change a setting, its stage and those after it run again; `molsieve plan` shows\n"
             "this before.\n"
             "\n"
             "A shard works independently in WORKDIR/shards/KKKKK-of-NNNNN. When all shards\n"
             "are done, `molsieve merge` combines them into the results of one run, and\n"
             "`molsieve run` runs the stages that were left out. With --out the finished shard\n"
             "becomes one file as well; after status 75 there is none yet.\n"
             "\n"
             "  molsieve run workflows/screen.yaml\n"
             "  molsieve run workflows/screen.yaml stages.rank.top=500 -j 8\n"
             "  molsieve run workflows/screen.yaml --shard 3/100\n"
             "  molsieve run workflows/screen.yaml --shard 3/100 --out shard-3.db\n"
             "  molsieve run workflows/train-esol.yaml --max-time auto --log train.log\n",
    .opts = opts,
    .min_args = 1,
    .run = run,
};
