/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stages/campaign/campaign.h"
#include "stages/commands/commands.h"
#include "stages/files/data_dir.h"
#include "stages/jobs/job.h"
#include "stages/merge/merge.h"
#include "stages/steps/score/score_part.h"

const pl_opt st_job_opts[] = { { "--scheduler", 's', "NAME", "slurm, pbs, lsf or sge; default: the one whose commands are found" },
                               { "--time", 't', "TIME", "limit of the job, such as 12h" },
                               { "--nodes", 'N', "N", "nodes (training with ranks)" },
                               { "--tasks", 'n', "N", "ranks on a node (training with ranks)" },
                               { "--cpus", 'c', "N", "processors of a task" },
                               { "--gpus", 'g', "N", "GPUs of a node" },
                               { "--memory", 'm', "SIZE", "memory of a node, such as 32GiB" },
                               { "--partition", 'p', "NAME", "partition or queue" },
                               { "--account", 'A', "NAME", "account or project" },
                               { "--array", 'a', "N", "N shards, each a task of a job array, and a job that merges them" },
                               { "--max-running", 0, "N", "tasks of the array at once" },
                               { "--options", 0, "TEXT", "more options of the job, such as --constraint=a100" },
                               { "--missing", 0, NULL, "only the shards of the array that are not done" },
                               { "--merge", 0, NULL, "only the job that comes after the array" },
                               { "--campaign", 0, NULL, "the rounds of a campaign; with --array N tasks score the library" },
                               { 0 } };

/* Beside st_job_opts: the setting, and whether it is any text. */
static const struct setting {
    const char *key;
    bool text;
} settings[] = { { "type", false },   { "time", false },  { "nodes", false },       { "tasks", false },
                 { "cpus", false },   { "gpus", false },  { "memory", false },      { "partition", true },
                 { "account", true }, { "array", false }, { "max_running", false }, { "options", true } };
enum { N_SETTINGS = sizeof settings / sizeof *settings };

/* The options are overrides; the file comes first. */
static char **words_of(const pl_args *args, int *n, pl_arena *mem)
{
    char **word = PL_NEW(mem, char *, args->n + N_SETTINGS + 1);
    pl_text value = { 0 };

    *n = 0;
    for (; word != NULL && *n < args->n; ++*n)
        word[*n] = args->arg[*n];
    for (int i = 0; word != NULL && i < N_SETTINGS; i++) {
        if (args->value[i] == NULL)
            continue;
        pl_text_reset(&value);
        if (settings[i].text)
            pl_text_add_json(&value, args->value[i]);
        else
            pl_text_add(&value, args->value[i]);
        word[*n] = pl_sprintf(mem, "scheduler.%s=%s", settings[i].key, pl_text_str(&value));
        word = word[*n] != NULL ? word : NULL;
        ++*n;
    }
    pl_text_free(&value);
    return word;
}

/* ---- which scheduler ---- */

static bool on_path(const char *program)
{
    const char *path = getenv("PATH");
    char file[4096];

    while (path != NULL && *path != '\0') {
        int n = (int)strcspn(path, ":");
        (void)snprintf(file, sizeof file, "%.*s/%s", n, path, program);
        if (access(file, X_OK) == 0)
            return true;
        path += n + (path[n] == ':');
    }
    return false;
}

/* Grid Engine and PBS both have a qsub; 0: none is here. */
static st_scheduler scheduler_here(void)
{
    if (on_path("sbatch"))
        return ST_SLURM;
    if (on_path("bsub"))
        return ST_LSF;
    if (on_path("qsub"))
        return on_path("qconf") ? ST_SGE : ST_PBS;
    return 0;
}

/* ---- the job ---- */

/* If no shard is missing, only the merge is left. */
static pl_code find_missing(st_job *job, pl_workflow *wf, const pl_schema *schema, pl_arena *mem, pl_error *err)
{
    int32_t *list = PL_NEW(mem, int32_t, job->of);
    st_shards all = { 0 };
    pl_code code = list != NULL ? st_shards_find(&all, wf, schema, job->of, mem, err) : pl_fail(err, PL_ENOMEM, "shards");

    for (int32_t k = 0; code == PL_OK && k < all.n; k++)
        if (all.why[k] != NULL)
            list[job->n_shards++] = k;
    job->shard = list;
    job->merge = job->merge || job->n_shards == 0;
    return code;
}

/* The parts of the scores that the campaign waits for, unless it is all of them. */
static pl_code find_parts(st_job *job, pl_workflow *wf, const pl_app *app, pl_arena *mem, pl_error *err)
{
    const st_acquire_conf *c = st_acquire_conf_of(wf);
    st_score_wait wait = { 0 };
    pl_problems problems = { .mem = mem };
    pl_code code = PL_OK;

    if (c == NULL || !st_acquire_has_answers(c))
        return pl_fail(err, PL_ECONFIG,
                       "%s: --campaign needs the stage acquire with answers: {table: FILE} or answers: {workflow: FILE}", wf->path);
    st_campaign_answers_check(wf, app->stages, &problems, NULL, mem);
    if (problems.n != 0) {
        pl_cmd_problems(&problems);
        return pl_fail(err, pl_problems_code(&problems), "%s: its workflow of answers cannot run", wf->path);
    }
    if (job->of > 0)
        code = st_score_wait_look(&wait, wf, app->schema, job->of, mem, err);
    if (wait.n_missing > 0 && wait.n_missing < job->of) {
        job->shard = wait.missing;
        job->n_shards = wait.n_missing;
    }
    job->waits = wait.n_missing > 0 ? wait.key : NULL;
    return code;
}

static pl_code job_fill(st_job *job, const pl_app *app, const pl_args *args, pl_workflow *wf, pl_arena *mem, pl_error *err)
{
    char dir[4096];

    job->wf = wf;
    job->program = pl_sprintf(mem, "%s/molsieve", st_program_dir(dir, sizeof dir));
    job->file = args->arg[0];
    job->scheduler = wf->scheduler.type != 0 ? (st_scheduler)wf->scheduler.type : scheduler_here();
    job->of = (int32_t)wf->scheduler.array;
    job->merge = pl_arg(args, "--merge") != NULL;
    job->campaign = pl_arg(args, "--campaign") != NULL;
    if (job->program == NULL)
        return pl_fail(err, PL_ENOMEM, "a script");
    if (job->scheduler == 0)
        return pl_fail(err, PL_ECONFIG,
                       "no sbatch, bsub or qsub was found; name the scheduler: --scheduler slurm, pbs, lsf or sge");
    if (job->of == 0 && (job->merge || pl_arg(args, "--missing") != NULL))
        return pl_fail(err, PL_ECONFIG, "there is no array: give --array N or set scheduler.array");
    if (job->campaign && pl_arg(args, "--missing") != NULL)
        return pl_fail(err, PL_ECONFIG, "--campaign submits what is missing by itself; leave --missing out");
    if (job->campaign)
        return find_parts(job, wf, app, mem, err);
    return pl_arg(args, "--missing") != NULL ? find_missing(job, wf, app->schema, mem, err) : PL_OK;
}

bool st_job_open(st_job *job, const pl_app *app, const pl_args *args, pl_arena *mem, int *status)
{
    pl_args all = *args;
    pl_error err = { 0 };
    pl_workflow *wf;
    char **word = mem != NULL ? words_of(args, &all.n, mem) : NULL;

    *job = (st_job){ 0 };
    if (word == NULL) {
        *status = pl_cmd_no_memory();
        return false;
    }
    all.arg = word;
    wf = pl_cmd_load(app, &all, mem, status);
    if (wf == NULL)
        return false;
    job->override = word + 1;
    job->n_override = all.n - 1;
    if (job_fill(job, app, args, wf, mem, &err) == PL_OK)
        return true;
    *status = pl_cmd_fail(&err);
    return false;
}

static int run(const pl_app *app, const pl_args *args)
{
    pl_arena *mem = pl_arena_new(1 << 16);
    pl_error err = { 0 };
    pl_text text = { 0 };
    st_job job;
    int status;

    if (st_job_open(&job, app, args, mem, &status)) {
        if (st_job_script(&job, &text, &err) == PL_OK)
            (void)fputs(pl_text_str(&text), stdout);
        else
            status = pl_cmd_fail(&err);
    }
    pl_text_free(&text);
    pl_arena_free(mem);
    return status;
}

const pl_cmd st_cmd_script = {
    .name = "script",
    .args = "FILE [stage.setting=value ...]",
    .help = "print the job script of a workflow (Slurm, PBS, LSF, Grid Engine)",
    .about = "The job runs the workflow, stops before its time limit and is queued again until\n"
             "all is done. Its resources come from `scheduler` in the workflow, or from these\n"
             "options. Nothing is submitted: see `submit`.\n"
             "\n"
             "  molsieve script workflows/screen.yaml --time 12h --cpus 16\n"
             "  molsieve script workflows/screen.yaml --array 400 --max-running 64\n"
             "  molsieve script campaign.yaml --campaign --time 12h --cpus 16\n",
    .opts = st_job_opts,
    .min_args = 1,
    .run = run,
};
