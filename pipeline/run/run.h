/* pipeline/run/run.h - plan and run a workflow.
 *
 * The promise (docs/design.md 5): stop a run at any time by any means, run the same
 * command again, and get the same digest. */
#ifndef PL_RUN_H
#define PL_RUN_H

#include "pipeline/store/store.h"
#include "pipeline/workflow/shard.h"
#include "pipeline/workflow/workflow.h"

typedef enum pl_step_state {
    PL_STEP_DONE,   /* done with this key: its results are reused         */
    PL_STEP_RESUME, /* begun with this key: continues after n_done units  */
    PL_STEP_RUN,    /* never run                                          */
    PL_STEP_STALE   /* its stored results cannot be used: runs again      */
} pl_step_state;

typedef struct pl_step_plan {
    pl_step_state state;
    int64_t n_done, n_units; /* n_units -1: not known yet                */
    bool own_reason;         /* all stages it needs are done             */
    const char *reason;      /* "cutoff: 5 -> 4.5", "needs graph, which runs again" */
    pl_estimate estimate;
    bool other_level; /* done, but now its last digits would be others (pl_stage.level); the reason says so */
} pl_step_plan;

typedef struct pl_run_opts {
    int workers; /* 0: from the workflow                     */
    bool keep_going, fresh;
    bool delete_removed;              /* also stages that took long; see pl_removed */
    const char *until, *from, *force; /* stage names or NULL                  */
    double max_time, grace;           /* seconds; 0: none                         */
    int requeue_exit;                 /* exit status when the grace period is over; 0: 75 */
    int argc;
    char *const *argv;   /* for the run row                          */
    const char *command; /* for the run row and the heartbeat; NULL: "run" */
    bool quiet, progress_tty;
    const pl_stage *const *known; /* all stages of the program, NULL-terminated: a stage that was removed from
                                     the workflow is still cleared when a stage it needs runs again */
    pl_shard shard;               /* n > 0: only this shard, without whole stages; wf has gone through pl_workflow_shard */
    void *team;                   /* passed to the stages as env->team        */
    int ranks;                    /* processes that work together, for the run row; 0: 1 */
    /* NULL, or called at the end of a run that has done everything, while it still holds its locks. */
    pl_code (*publish)(void *ctx, pl_store *store, const pl_workflow *wf, pl_arena *mem, pl_error *err);
    void *publish_ctx;
    int *ran;                                                     /* NULL, or adds the number of stages that ran */
    const char *program_version, *git_commit, *openbabel_version; /* for the run row; NULL: unknown */
} pl_run_opts;

/* Fills step->key of every step: a hash of its settings, its inputs and the keys of the stages it needs. */
pl_code pl_plan_keys(pl_workflow *wf, pl_store *store, pl_arena *mem, pl_error *err);
/* out[n_steps]: what would run and why, after pl_plan_keys. store NULL: nothing has run yet. */
pl_code pl_plan_steps(pl_workflow *wf, pl_store *store, pl_step_plan *out, pl_arena *mem, pl_error *err);

/* Stages of which results.db has rows and that the workflow no longer has. A run deletes these rows; if they took more than
 * PL_REMOVED_LONG seconds, it asks for --delete-removed. */
enum { PL_REMOVED_LONG = 600 };
typedef struct pl_removed {
    const pl_stage **stage; /* [n], in mem */
    int n;
    double seconds; /* of work, of these stages */
} pl_removed;

/* Without those that stay (pl_stage.stays), and what these need. store or known (all stages of the program) NULL: none. */
pl_code pl_removed_find(pl_removed *out, pl_store *store, const pl_workflow *wf, const pl_stage *const *known, pl_arena *mem,
                        pl_error *err);

/* pl_plan_steps with --force, --from, --until and a shard. wanted[n_steps]: false for steps that --until or the shard leaves out. */
pl_code pl_plan_steps_with(pl_workflow *wf, pl_store *store, const pl_run_opts *opts, pl_step_plan *out, bool *wanted,
                           pl_arena *mem, pl_error *err);
/* Fills the estimates of the steps that are not done. It reads the beginning of the inputs, so only `plan` calls it. */
pl_code pl_plan_estimate(const pl_workflow *wf, pl_store *store, pl_step_plan *steps, pl_arena *mem, pl_error *err);
/* The state of `stage` and the differences between its key and the stored one, one per line, as text for people. */
pl_code pl_explain(pl_workflow *wf, pl_store *store, const char *stage, pl_text *out, pl_arena *mem, pl_error *err);

/* The number of workers of a run with these options. */
int pl_workers(const pl_workflow *wf, const pl_run_opts *opts);

/* Runs the workflow. PL_OK, or why it stopped: PL_ESTOP (75), PL_ELOCK (4), PL_EIO (6), ... */
pl_code pl_run(pl_workflow *wf, const pl_schema *schema, const pl_run_opts *opts, pl_arena *mem, pl_error *err);

/* Changes the work directory DIR to DIR-2, DIR-3, ..., the first that does not exist (DIR itself if it does not exist). */
pl_code pl_workflow_fresh(pl_workflow *wf, pl_arena *mem, pl_error *err);

/* Tests only: MOLSIEVE_FAULT=stage.point:n ends the process with _exit(137) when that point
 * is passed for the n-th time. Points: <stage>.unit.before_commit, .after_commit,
 * .after_features, <stage>.finish.before_commit, .after_commit, train.checkpoint.*, ranks.met */
void pl_fault(const char *stage, const char *point);

#endif
