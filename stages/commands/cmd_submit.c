/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "stages/commands/commands.h"
#include "stages/jobs/job.h"
#include "stages/steps/score/score_part.h"

/* How a script is submitted, and its job watched. %s: the job that it waits for; the job. */
static const struct kind {
    const char *send, *send_after, *watch;
} kinds[] = {
    [ST_SLURM] = { "sbatch --parsable ", "sbatch --parsable --dependency=afterany:%s ", "squeue -j %s" },
    [ST_PBS] = { "qsub ", "qsub -W depend=afterany:%s ", "qstat %s" },
    [ST_LSF] = { "bsub < ", "bsub -w 'ended(%s)' < ", "bjobs %s" },
    [ST_SGE] = { "qsub -terse ", "qsub -terse -hold_jid %s ", "qstat -j %s" },
};

static const char digits[] = "0123456789";

/* The job's id in the output of the command: "12", "12;cluster", "12[].server", "12.1-8:1", "Job <12> is ...". */
static const char *job_id(st_scheduler s, const char *said, pl_arena *mem)
{
    const char *from = said + strcspn(said, digits);
    size_t n = s == ST_PBS ? strcspn(from, " \t\r\n") : strspn(from, digits);

    return n > 0 && n < 200 && strpbrk(from, "'\"`$") == NULL ? pl_strndup(mem, from, n) : NULL;
}

static pl_code send(const st_job *job, const char *path, const char *after, const char **id, pl_arena *mem, pl_error *err)
{
    const struct kind *k = &kinds[job->scheduler];
    pl_text command = { 0 }, said = { 0 };
    char line[1024];
    int status = -1;
    FILE *p = NULL;

    if (after != NULL)
        pl_text_addf(&command, k->send_after, after);
    else
        pl_text_add(&command, k->send);
    st_add_word(&command, path);
    if (pl_text_ok(&command))
        p = popen(pl_text_str(&command), "r");
    while (p != NULL && fgets(line, sizeof line, p) != NULL)
        pl_text_add(&said, line);
    if (p != NULL)
        status = pclose(p);
    *id = status == 0 ? job_id(job->scheduler, pl_text_str(&said), mem) : NULL;
    if (*id == NULL)
        (void)pl_fail(err, PL_EIO, "%s: the scheduler rejected the job%s%.200s", pl_text_str(&command), said.len ? ": " : "",
                      pl_text_str(&said));
    pl_text_free(&command);
    pl_text_free(&said);
    return *id ? PL_OK : PL_EIO;
}

/* Writes WORKDIR/NAME and submits it, to run after another job. */
static pl_code submit(const st_job *job, const char *name, const char *after, const char **id, pl_arena *mem, pl_error *err)
{
    const char *path = pl_sprintf(mem, "%s/%s", job->wf->workdir, name);
    pl_text text = { 0 };
    pl_code code = path != NULL ? st_job_script(job, &text, err) : pl_fail(err, PL_ENOMEM, "a script");

    if (code == PL_OK)
        code = pl_mkdirs(job->wf->workdir, err);
    if (code == PL_OK)
        code = pl_file_write(path, (pl_bytes){ pl_text_str(&text), text.len }, err);
    if (code == PL_OK)
        code = send(job, path, after, id, mem, err);
    pl_text_free(&text);
    return code;
}

static void say(const st_job *job, const char *what, const char *id)
{
    pl_cmd_print("%s %s%s\n  ", st_scheduler_name(job->scheduler), what, id);
    pl_cmd_print(kinds[job->scheduler].watch, id);
    pl_cmd_print("\n");
    (void)fflush(stdout);
}

/* The tasks that the next round waits for, if it does, and that round. */
static pl_code submit_round(st_job *job, pl_arena *mem, pl_error *err)
{
    const char *id = NULL;
    pl_code code = PL_OK;

    if (job->waits != NULL && !job->merge) {
        code = submit(job, "job-scores.sh", NULL, &id, mem, err);
        if (code == PL_OK)
            say(job, "array ", id);
        if (code == PL_OK)
            code = st_score_parts_sent(job->wf, job->waits, mem, err);
    }
    job->merge = true;
    if (code == PL_OK)
        code = submit(job, "job-round.sh", id, &id, mem, err);
    if (code == PL_OK)
        say(job, job->waits != NULL ? "then the next round in job " : "job ", id);
    return code;
}

static pl_code submit_all(st_job *job, pl_arena *mem, pl_error *err)
{
    const char *id = NULL;
    pl_code code;

    if (job->campaign && job->of > 0)
        return submit_round(job, mem, err);
    if (job->of == 0) {
        code = submit(job, "job.sh", NULL, &id, mem, err);
        if (code == PL_OK)
            say(job, "job ", id);
        return code;
    }
    if (!job->merge) {
        code = submit(job, "job-shards.sh", NULL, &id, mem, err);
        if (code != PL_OK)
            return code;
        say(job, "array ", id);
        job->merge = true;
    }
    code = submit(job, "job-merge.sh", id, &id, mem, err);
    if (code == PL_OK)
        say(job, "then merges in job ", id);
    return code;
}

/* Its progress. */
static void say_status(const st_job *job)
{
    pl_text line = { 0 };

    if (job->campaign)
        st_add_command(job, "campaign", &line);
    else if (job->of > 0)
        st_add_command(job, "merge", &line);
    else
        pl_text_addf(&line, "molsieve status --watch %s", job->wf->workdir);
    if (job->campaign)
        pl_text_add(&line, " --plan");
    else if (job->of > 0)
        pl_text_addf(&line, " --of %d --missing", job->of);
    pl_cmd_print("  %s\n", pl_text_str(&line));
    pl_text_free(&line);
}

static int run(const pl_app *app, const pl_args *args)
{
    pl_arena *mem = pl_arena_new(1 << 16);
    pl_error err = { 0 };
    st_job job;
    int status;

    if (st_job_open(&job, app, args, mem, &status)) {
        if (submit_all(&job, mem, &err) != PL_OK)
            status = pl_cmd_fail(&err);
        else
            say_status(&job);
    }
    pl_arena_free(mem);
    return status;
}

const pl_cmd st_cmd_submit = {
    .name = "submit",
    .args = "FILE [stage.setting=value ...]",
    .help = "write the job script into the work directory and submit it",
    .about = "Like `script`, but also submits the job with sbatch, qsub or bsub. With --array\n"
             "it submits a second job, which merges the shards and continues the workflow when\n"
             "all of them have ended. With --campaign it submits `molsieve campaign`: a job\n"
             "trains, then (--array) submits tasks that score the library and the next job.\n"
             "\n"
             "  molsieve submit workflows/screen.yaml --time 12h --cpus 16\n"
             "  molsieve submit workflows/screen.yaml --array 400 --max-running 64\n"
             "  molsieve submit workflows/screen.yaml --array 400 --missing  # lost tasks\n"
             "  molsieve submit campaign.yaml --campaign --array 40 --time 4h\n",
    .opts = st_job_opts,
    .min_args = 1,
    .run = run,
};
