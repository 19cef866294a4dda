/* stages/jobs/job.h - the script of a job for Slurm, PBS, LSF or Grid Engine.
 *
 * A script asks for what the settings `scheduler` say, runs the workflow with
 * `--max-time auto`, and has itself started again when the run ends with 75. Nothing
 * in it depends on the machine it was made on but the path of the program. Signals,
 * restarts and their traps: docs/decisions/0022. */
#ifndef ST_JOB_H
#define ST_JOB_H

#include "pipeline/cli/cmd.h"

typedef enum st_scheduler { ST_SLURM = 1, ST_PBS, ST_LSF, ST_SGE } st_scheduler; /* as scheduler.type */

typedef struct st_job {
    const pl_workflow *wf;
    const char *program, *file; /* absolute; as the user wrote it                        */
    char *const *override;      /* [n_override] of the command line                      */
    int n_override;
    st_scheduler scheduler;
    int32_t of;           /* 0: the whole workflow in one job; else shards of `of` */
    const int32_t *shard; /* [n_shards] those of this array, NULL: all             */
    int32_t n_shards;
    bool merge;        /* not shards: what comes after all of them              */
    bool campaign;     /* `campaign` instead of `run`; shards are parts of the scores of a round, and `merge` is the next round */
    const char *waits; /* campaign: key of the scores that the next round waits for; NULL: none */
} st_job;

/* The script. ECONFIG: the scheduler or the workflow cannot do what the settings ask for. */
pl_code st_job_script(const st_job *job, pl_text *out, pl_error *err);

/* "molsieve WORD FILE", and what the user has set on the command line. */
void st_add_command(const st_job *job, const char *word, pl_text *out);

/* A word as a shell reads it back. */
void st_add_word(pl_text *out, const char *word);

/* "slurm", "Slurm" and so on. */
const char *st_scheduler_word(st_scheduler s);
const char *st_scheduler_name(st_scheduler s);

/* ---- what `script` and `submit` share (cmd_script.c) ---- */

extern const pl_opt st_job_opts[];

/* The workflow with the options as overrides, and the job they ask for. False: the reason was printed; *status is the exit status. */
bool st_job_open(st_job *job, const pl_app *app, const pl_args *args, pl_arena *mem, int *status);

#endif
