/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/jobs/job.h"

#include <stdio.h>
#include <string.h>

#include "pipeline/workflow/shard.h"
#include "stages/steps/train/train.h"

static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-=:,@%";

/* Differences between schedulers that fit in a word. */
static const struct kind {
    const char *word, *name, *directive, *folder, *index, *send;
} kinds[] = {
    [ST_SLURM] = { "slurm", "Slurm", "#SBATCH", "SLURM_SUBMIT_DIR", "SLURM_ARRAY_TASK_ID", "sbatch" },
    [ST_PBS] = { "pbs", "PBS", "#PBS", "PBS_O_WORKDIR", "PBS_ARRAY_INDEX", "qsub" },
    [ST_LSF] = { "lsf", "LSF", "#BSUB", "LS_SUBCWD", "LSB_JOBINDEX - 1", "bsub <" },
    [ST_SGE] = { "sge", "Grid Engine", "#$", "SGE_O_WORKDIR", "SGE_TASK_ID - 1", "qsub" },
};

const char *st_scheduler_word(st_scheduler s) { return kinds[s].word; }

const char *st_scheduler_name(st_scheduler s) { return kinds[s].name; }

void st_add_word(pl_text *out, const char *word)
{
    if (word[0] != '\0' && word[strspn(word, safe)] == '\0') {
        pl_text_add(out, word);
        return;
    }
    pl_text_add(out, "'");
    for (; *word != '\0'; word++)
        if (*word == '\'')
            pl_text_add(out, "'\\''");
        else
            pl_text_add_n(out, word, 1);
    pl_text_add(out, "'");
}

/* ---- what can be asked ---- */

static int64_t n_ranks(const st_job *j)
{
    const pl_job_conf *c = &j->wf->scheduler;

    return j->of > 0 && !j->merge ? 1 : c->nodes * c->tasks;
}

/* How many tasks the array has; 1: no array. */
static int32_t n_tasks(const st_job *j)
{
    if (j->of == 0 || j->merge)
        return 1;
    return j->shard != NULL ? j->n_shards : j->of;
}

/* After a merge the stages that shards leave out remain: only networks need GPUs. */
static int64_t n_gpus(const st_job *j)
{
    static const char *const networks[] = { "train", "evaluate", "score" };
    bool needed = !j->merge || j->campaign; /* its rounds train */

    for (int i = 0; i < 3 && !needed; i++) {
        const pl_step *step = pl_workflow_step(j->wf, networks[i]);
        needed = step != NULL && !pl_step_in_shard(j->wf, (int)(step - j->wf->step));
    }
    return needed ? j->wf->scheduler.gpus : 0;
}

static pl_code check(const st_job *j, pl_error *err)
{
    const pl_job_conf *c = &j->wf->scheduler;
    const pl_step *train = pl_workflow_step(j->wf, "train");
    long long ranks = n_ranks(j), shards = train != NULL ? ((const st_train_conf *)train->conf)->loop.shards : 0;

    if (ranks > 1 && j->campaign)
        return pl_fail(err, PL_ECONFIG, "scheduler: nodes times tasks is %lld, but a campaign trains in one task; use more cpus",
                       ranks);
    if (ranks > 1 && train == NULL)
        return pl_fail(err, PL_ECONFIG,
                       "scheduler: nodes times tasks is %lld, but only stage train works in several tasks; for "
                       "the other stages use --array",
                       ranks);
    if (ranks > 1 && shards < ranks)
        return pl_fail(err, PL_ECONFIG,
                       "scheduler: %lld ranks, but a batch has only %lld shards; set stages.train.batch.shards=%lld", ranks, shards,
                       ranks);
    if (c->time > 0 && c->warn >= c->time)
        return pl_fail(err, PL_ECONFIG, "scheduler.warn must be less than scheduler.time");
    if (j->scheduler == ST_SGE && c->nodes > 1)
        return pl_fail(err, PL_ECONFIG,
                       "scheduler.nodes: Grid Engine gives nodes through a parallel environment of the site; "
                       "write scheduler.options: [-pe NAME SLOTS], scheduler.tasks and scheduler.launcher");
    if (j->wf->workdir[strspn(j->wf->workdir, safe)] != '\0' || strchr(j->wf->workdir, '%') != NULL)
        return pl_fail(err, PL_ECONFIG,
                       "%s: schedulers write no log to a folder with such a name; letters, digits and _./+-=:,@ "
                       "are fine",
                       j->wf->workdir);
    return PL_OK;
}

/* ---- directives ---- */

static const char *hms(double seconds, char buf[32])
{
    long long s = (long long)seconds;

    (void)snprintf(buf, 32, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
    return buf;
}

static long long mebibytes(double bytes) { return (long long)(bytes / 1048576 + 0.5); }

/* "name", "name-shards", "name-merge"; signs that some scheduler does not like become -, and no digit comes first. */
static const char *job_name(const st_job *j, char buf[128])
{
    size_t n_plain = strcspn(safe, "./+");
    const char *const word[2][2] = { { "-shards", "-merge" }, { "-scores", "-round" } };
    const char *part = word[j->campaign][j->merge];

    (void)snprintf(buf, 128, "%s%s%s", j->wf->name[0] <= '9' ? "w-" : "", j->wf->name, j->of == 0 ? "" : part);
    for (char *c = buf; *c != '\0'; c++)
        if (memchr(safe, *c, n_plain) == NULL)
            *c = '-';
    return buf;
}

static void slurm_header(const st_job *j, pl_text *out)
{
    const pl_job_conf *c = &j->wf->scheduler;
    bool one = n_ranks(j) == 1;
    char buf[32];

    pl_text_addf(out, "#SBATCH --nodes=%lld --ntasks-per-node=%lld --cpus-per-task=%lld\n", one ? 1LL : (long long)c->nodes,
                 one ? 1LL : (long long)c->tasks, (long long)c->cpus);
    if (n_gpus(j) > 0)
        pl_text_addf(out, "#SBATCH --gpus-per-node=%lld\n", (long long)n_gpus(j));
    if (c->memory > 0)
        pl_text_addf(out, "#SBATCH --mem=%lldM\n", mebibytes(c->memory));
    if (c->partition != NULL)
        pl_text_addf(out, "#SBATCH --partition=%s\n", c->partition);
    if (c->account != NULL)
        pl_text_addf(out, "#SBATCH --account=%s\n", c->account);
    if (c->time > 0)
        pl_text_addf(out, "#SBATCH --time=%s\n", hms(c->time, buf));
    pl_text_addf(out, "#SBATCH --signal=USR2@%lld\n#SBATCH --requeue --open-mode=append\n", (long long)c->warn);
    if (n_tasks(j) > 1) {
        pl_text_addf(out, "#SBATCH --array=0-%d", n_tasks(j) - 1);
        pl_text_addf(out, c->max_running > 0 ? "%%%lld\n" : "\n", (long long)c->max_running);
    }
    pl_text_addf(out, "#SBATCH --output=%s/slurm-%s.log\n", j->wf->workdir, n_tasks(j) > 1 ? "%A_%a" : "%j");
}

static void pbs_header(const st_job *j, pl_text *out)
{
    const pl_job_conf *c = &j->wf->scheduler;
    long long nodes = n_ranks(j) == 1 ? 1 : c->nodes, tasks = n_ranks(j) == 1 ? 1 : c->tasks;
    char buf[32];

    pl_text_addf(out, "#PBS -l select=%lld:ncpus=%lld:mpiprocs=%lld", nodes, tasks * (long long)c->cpus, tasks);
    if (n_gpus(j) > 0)
        pl_text_addf(out, ":ngpus=%lld", (long long)n_gpus(j));
    if (c->memory > 0)
        pl_text_addf(out, ":mem=%lldmb", mebibytes(c->memory));
    pl_text_add(out, "\n");
    if (c->partition != NULL)
        pl_text_addf(out, "#PBS -q %s\n", c->partition);
    if (c->account != NULL)
        pl_text_addf(out, "#PBS -A %s\n", c->account);
    if (c->time > 0)
        pl_text_addf(out, "#PBS -l walltime=%s\n", hms(c->time, buf));
    if (n_tasks(j) > 1) {
        pl_text_addf(out, "#PBS -J 0-%d", n_tasks(j) - 1);
        pl_text_addf(out, c->max_running > 0 ? "%%%lld\n" : "\n", (long long)c->max_running);
    }
    pl_text_addf(out, "#PBS -r y -j oe -o %s/\n", j->wf->workdir);
}

static void lsf_header(const st_job *j, pl_text *out)
{
    const pl_job_conf *c = &j->wf->scheduler;
    long long per_node = (n_ranks(j) == 1 ? 1 : c->tasks) * c->cpus, nodes = n_ranks(j) == 1 ? 1 : c->nodes;

    pl_text_addf(out, "#BSUB -n %lld -R \"span[ptile=%lld]\"\n", nodes * per_node, per_node);
    if (n_gpus(j) > 0)
        pl_text_addf(out, "#BSUB -gpu \"num=%lld\"\n", (long long)n_gpus(j));
    if (c->memory > 0)
        pl_text_addf(out, "#BSUB -R \"rusage[mem=%lldMB]\"\n", mebibytes(c->memory));
    if (c->partition != NULL)
        pl_text_addf(out, "#BSUB -q %s\n", c->partition);
    if (c->account != NULL)
        pl_text_addf(out, "#BSUB -P %s\n", c->account);
    if (c->time > 0)
        pl_text_addf(out, "#BSUB -W %lld:%02lld -wa USR2 -wt %lld\n", (long long)c->time / 3600, (long long)c->time / 60 % 60,
                     (long long)(c->warn + 59) / 60);
    pl_text_addf(out, "#BSUB -r -Q \"75\"\n#BSUB -o %s/lsf-%s.log\n", j->wf->workdir, n_tasks(j) > 1 ? "%J_%I" : "%J");
}

static void sge_header(const st_job *j, pl_text *out)
{
    const pl_job_conf *c = &j->wf->scheduler;
    long long slots = (n_ranks(j) == 1 ? 1 : c->tasks) * c->cpus;
    char hard[32], soft[32];

    if (slots > 1)
        pl_text_addf(out, "#$ -pe smp %lld\n", slots);
    if (n_gpus(j) > 0)
        pl_text_addf(out, "#$ -l gpu=%lld\n", (long long)n_gpus(j));
    if (c->memory > 0)
        pl_text_addf(out, "#$ -l h_vmem=%lldM\n", mebibytes(c->memory / (double)slots)); /* of a slot */
    if (c->partition != NULL)
        pl_text_addf(out, "#$ -q %s\n", c->partition);
    if (c->account != NULL)
        pl_text_addf(out, "#$ -P %s\n", c->account);
    if (c->time > 0)
        pl_text_addf(out, "#$ -l h_rt=%s,s_rt=%s\n", hms(c->time, hard), hms(c->time - c->warn, soft));
    if (n_tasks(j) > 1) {
        pl_text_addf(out, "#$ -t 1-%d\n", n_tasks(j));
        if (c->max_running > 0)
            pl_text_addf(out, "#$ -tc %lld\n", (long long)c->max_running);
    }
    pl_text_addf(out, "#$ -cwd -S /bin/bash -r y -j y -o %s/\n", j->wf->workdir);
}

static void add_name(const st_job *j, pl_text *out)
{
    const pl_job_conf *c = &j->wf->scheduler;
    char name[128];

    (void)job_name(j, name);
    switch (j->scheduler) {
    case ST_SLURM: pl_text_addf(out, "#SBATCH --job-name=%s\n", name); break;
    case ST_PBS: pl_text_addf(out, "#PBS -N %s\n", name); break;
    case ST_SGE: pl_text_addf(out, "#$ -N %s\n", name); break;
    case ST_LSF:
        pl_text_addf(out, "#BSUB -J \"%s", name);
        if (n_tasks(j) > 1)
            pl_text_addf(out, "[1-%d]", n_tasks(j));
        if (n_tasks(j) > 1 && c->max_running > 0)
            pl_text_addf(out, "%%%lld", (long long)c->max_running);
        pl_text_add(out, "\"\n");
    }
}

static void header(const st_job *j, pl_text *out)
{
    static void (*const lines[])(const st_job *, pl_text *) = {
        [ST_SLURM] = slurm_header, [ST_PBS] = pbs_header, [ST_LSF] = lsf_header, [ST_SGE] = sge_header
    };
    const pl_list *more = &j->wf->scheduler.options;

    pl_text_addf(out, "#!/bin/bash\n# Made by molsieve; send it with: mkdir -p %s && %s FILE\n", j->wf->workdir,
                 kinds[j->scheduler].send);
    add_name(j, out);
    lines[j->scheduler](j, out);
    for (int i = 0; i < more->n; i++)
        pl_text_addf(out, "%s %s\n", kinds[j->scheduler].directive, ((const char *const *)more->items)[i]);
}

/* ---- commands ---- */

/* `run` needs no scheduler settings; `submit` inside a job is given two by the script. */
static bool leave_out(const char *override, bool submit)
{
    static const char *const all[] = { "scheduler." }, *const own[] = { "scheduler.type=", "scheduler.restarts=" };
    const char *const *prefix = submit ? own : all;

    override += override[0] == '+';
    for (int i = 0; i < (submit ? 2 : 1); i++)
        if (strncmp(override, prefix[i], strlen(prefix[i])) == 0)
            return true;
    return false;
}

void st_add_command(const st_job *j, const char *word, pl_text *out)
{
    bool submit = strcmp(word, "submit") == 0;

    st_add_word(out, j->program);
    pl_text_addf(out, " %s ", word);
    st_add_word(out, j->file);
    for (int i = 0; i < j->n_override; i++)
        if (!leave_out(j->override[i], submit)) {
            pl_text_add(out, " ");
            st_add_word(out, j->override[i]);
        }
}

/* Which shard this task is. */
static void add_shard(const st_job *j, pl_text *out)
{
    const char *index = kinds[j->scheduler].index;

    if (n_tasks(j) == 1)
        pl_text_addf(out, "shard=%d\n", j->shard != NULL ? j->shard[0] : 0);
    else if (j->shard == NULL)
        pl_text_addf(out, "shard=$((%s))\n", index);
    else {
        pl_text_add(out, "shards=(");
        for (int i = 0; i < j->n_shards; i++)
            pl_text_addf(out, "%s%d", i ? " " : "", j->shard[i]);
        pl_text_addf(out, ")\nshard=${shards[%s]}\n", index);
    }
}

/* In Slurm signals go to the steps, so there is always one. */
static void add_launcher(const st_job *j, int64_t ranks, pl_text *out)
{
    const pl_job_conf *c = &j->wf->scheduler;

    if (ranks > 1 && c->launcher != NULL)
        pl_text_addf(out, "%s ", c->launcher);
    else if (j->scheduler == ST_SLURM)
        pl_text_addf(out, "srun %s--cpus-per-task=%lld ", ranks < n_ranks(j) ? "--nodes=1 --ntasks=1 " : "", (long long)c->cpus);
    else if (ranks > 1)
        pl_text_addf(out, "mpirun -n %lld ", (long long)ranks);
}

/* Logs which shards have to be submitted again; if none, merges them. */
static void add_merge(const st_job *j, pl_text *out)
{
    pl_text_add(out, "missing=$(");
    st_add_command(j, "merge", out);
    pl_text_addf(out,
                 " --of %d --missing) || exit\nif [ -n \"$missing\" ]; then\n  echo shards that are not finished: $missing\n"
                 "  echo send them again with: ",
                 j->of);
    st_add_command(j, "submit", out);
    pl_text_add(out, " --missing\n  exit 1\nfi\n");
    add_launcher(j, 1, out);
    st_add_command(j, "merge", out);
    pl_text_addf(out, " --of %d &&\n", j->of);
}

/* A round that has trained its model submits the jobs that score the library, and the next round. A number of restarts is of one job. */
static void add_next_round(const st_job *j, pl_text *out)
{
    pl_text_add(out, "if [ $rc -eq 75 ] && [ -n \"$(");
    st_add_command(j, "campaign", out);
    pl_text_addf(out, " --parts %d --missing)\" ]; then\n%s  ", j->of,
                 j->scheduler == ST_SLURM ? "  unset SLURM_RESTART_COUNT\n" : "");
    st_add_command(j, "submit", out);
    pl_text_addf(out, " scheduler.type=%s --campaign\n  exit\nfi\n", kinds[j->scheduler].word);
}

/* How a run that ended with 75 is started again; LSF and Grid Engine do it by the status. */
static void add_restart(const st_job *j, pl_text *out)
{
    long long left = j->wf->scheduler.restarts;

    if (j->scheduler == ST_SLURM)
        pl_text_addf(out, "if [ $rc -eq 75 ] && [ \"${SLURM_RESTART_COUNT:-0}\" -lt %lld ]; then\n  scontrol requeue \"%s\"\nfi\n",
                     left, n_tasks(j) > 1 ? "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID" : "$SLURM_JOB_ID");
    if (j->scheduler != ST_PBS || left == 0 || (j->of > 0 && !j->merge))
        return;
    pl_text_add(out, "if [ $rc -eq 75 ]; then\n  ");
    st_add_command(j, "submit", out);
    pl_text_addf(out, " scheduler.type=pbs scheduler.restarts=%lld", left - 1);
    if (j->campaign)
        pl_text_add(out, " --campaign");
    else if (j->merge)
        pl_text_add(out, " --merge");
    pl_text_add(out, "\nfi\n");
}

/* The command itself, and its status as the scheduler understands it. */
static void add_work(const st_job *j, pl_text *out)
{
    const bool task = j->of > 0 && !j->merge;

    add_launcher(j, n_ranks(j), out);
    st_add_command(j, j->campaign ? "campaign" : "run", out);
    if (task)
        pl_text_addf(out, " --%s \"$shard/%d\"", j->campaign ? "part" : "shard", j->of);
    else if (j->campaign && j->of > 0)
        pl_text_addf(out, " --parts %d", j->of);
    pl_text_addf(out, " -j %lld --max-time auto%s\nrc=$?\n", (long long)j->wf->scheduler.cpus,
                 j->scheduler == ST_SGE && !j->campaign ? " --requeue-exit 99" : "");
    if (j->campaign && j->merge)
        add_next_round(j, out);
    if (j->scheduler == ST_SGE && j->campaign)
        pl_text_add(out, "if [ $rc -eq 75 ]; then\n  rc=99\nfi\n");
}

static void body(const st_job *j, pl_text *out)
{
    const pl_list *setup = &j->wf->scheduler.setup;

    pl_text_addf(out, "cd \"$%s\" || exit 6\nexport OMP_NUM_THREADS=1\n", kinds[j->scheduler].folder);
    for (int i = 0; i < setup->n; i++)
        pl_text_addf(out, "%s\n", ((const char *const *)setup->items)[i]);
    pl_text_add(out, "set -u\n");
    if (j->scheduler == ST_LSF || j->scheduler == ST_SGE)
        pl_text_addf(out, "trap : %s    # the warning is for the run, not for this shell\n",
                     j->scheduler == ST_LSF ? "USR2" : "USR1");
    if (j->of > 0 && !j->merge)
        add_shard(j, out);
    if (j->merge && !j->campaign)
        add_merge(j, out);
    add_work(j, out);
    add_restart(j, out);
    pl_text_add(out, "exit $rc\n");
}

pl_code st_job_script(const st_job *job, pl_text *out, pl_error *err)
{
    pl_code code = check(job, err);

    if (code != PL_OK)
        return code;
    header(job, out);
    body(job, out);
    return pl_text_ok(out) ? PL_OK : pl_fail(err, PL_ENOMEM, "a script");
}
