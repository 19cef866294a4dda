/* pipeline/run.h - plan and run a workflow.
 *
 * The promise (docs/design.md 5): stop it any time by any means, run the same
 * command again, get the same digest. */
#ifndef PL_RUN_H
#define PL_RUN_H

#include "pipeline/shard.h"
#include "pipeline/store.h"
#include "pipeline/workflow.h"

typedef enum pl_step_state {
    PL_STEP_DONE,     /* its key is in the database, complete: reused       */
    PL_STEP_RESUME,   /* begun with this key: goes on after unit n_done     */
    PL_STEP_RUN,      /* never run                                          */
    PL_STEP_STALE     /* done before, with another key: runs again          */
} pl_step_state;

typedef struct pl_step_plan {
    pl_step_state state;
    int64_t n_done, n_units;      /* n_units -1: not known yet                */
    bool own_reason;              /* not that a stage it needs is not ready   */
    const char *reason;           /* "setting cutoff: 5 -> 4.5", "needs graph, which runs again" */
    pl_estimate estimate;
} pl_step_plan;

typedef struct pl_run_opts {
    int workers;                  /* 0: from the workflow                     */
    bool keep_going, fresh;
    const char *until, *from, *force; /* stage names or NULL                  */
    double max_time, grace;       /* seconds; 0: none                         */
    int requeue_exit;             /* exit status when the grace is over; 0: 75 */
    int argc; char *const *argv;  /* for the run row                          */
    const char *command;
    bool quiet, progress_tty;
    const pl_stage *const *known; /* all stages of the program, NULL-terminated: a stage that left the
                                     workflow is still cleared when what it stands on changes */
    pl_shard shard;               /* n > 0: its part only, whole stages are left out; wf is the shard's own */
    void *team;                   /* the program's own, for its stages: env->team */
    int ranks;                    /* processes that work together, for the run row; 0: 1 */
    int *ran;                     /* NULL, or: how many stages did something  */
    const char *program_version, *git_commit, *openbabel_version; /* for the run row; NULL: unknown */
} pl_run_opts;

/* Fills step->key of every step (needs, settings, extras) and, with a store, what would run and why. */
pl_code pl_plan_keys(pl_workflow *wf, pl_store *store, pl_arena *mem, pl_error *err);
pl_code pl_plan_steps(pl_workflow *wf, pl_store *store, pl_step_plan *out, pl_arena *mem, pl_error *err);
/* The same under --force, --from and --until; steps that will not be looked at keep their state.
 * wanted[i] = false: step i is left out by --until or because it is for no shard. */
pl_code pl_plan_steps_with(pl_workflow *wf, pl_store *store, const pl_run_opts *opts, pl_step_plan *out,
                           bool *wanted, pl_arena *mem, pl_error *err);
/* Fills the estimates of the steps that are not done; looks at the inputs, so only `plan` asks. */
pl_code pl_plan_estimate(const pl_workflow *wf, pl_store *store, pl_step_plan *steps, pl_arena *mem, pl_error *err);
/* Field-by-field difference of the key of `stage` against the last one done. */
pl_code pl_explain(pl_workflow *wf, pl_store *store, const char *stage, pl_text *out, pl_arena *mem, pl_error *err);

/* How many workers a run with these options has. */
int pl_workers(const pl_workflow *wf, const pl_run_opts *opts);

/* Does it. PL_OK, or the reason it stopped: PL_ESTOP (75), PL_ELOCK (4), PL_EIO (6)... */
pl_code pl_run(pl_workflow *wf, const pl_schema *schema, const pl_run_opts *opts, pl_arena *mem, pl_error *err);

/* Another directory for a fresh start: DIR-2, DIR-3, ... the first that does not exist. */
pl_code pl_workflow_fresh(pl_workflow *wf, pl_arena *mem, pl_error *err);

/* Tests only: MOLSIEVE_FAULT=stage.point:n ends the process with _exit(137) at the
 * n-th passage of that point. Points: <stage>.unit.before_commit, .after_commit,
 * .after_features, <stage>.finish.before_commit, .after_commit, train.checkpoint.*, ranks.met */
void pl_fault(const char *stage, const char *point);

#endif
