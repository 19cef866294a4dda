/* pipeline/run/runner.h - what the files of the planner and the runner share. */
#ifndef PL_RUNNER_H
#define PL_RUNNER_H

#include "pipeline/base/clock.h"
#include "pipeline/run/heartbeat.h"
#include "pipeline/run/run.h"
#include "pipeline/store/store_parts.h"

/* ---- planning (plan.c) ---- */

/* The row of a stage in results.db; texts in the arena. stage_id 0: no row; n_units -1: not known yet. */
typedef struct pl_stage_row {
    int64_t stage_id, n_units, n_blocks, code_version;
    int64_t run_id; /* the run that began the stage */
    bool done;
    const char *key, *params_json, *extra_json, *needs_json;
} pl_stage_row;

pl_code pl_stage_row_get(pl_store *s, const char *name, pl_stage_row *out, pl_arena *mem, pl_error *err);
/* The needed stages of a step with their keys, {"graph":"<key>", ...}, as canonical JSON in mem. */
pl_code pl_needs_json(const pl_workflow *wf, const pl_step *step, const char **out, pl_arena *mem, pl_error *err);
/* What changed since the stored row: one line per difference, such as "cutoff: 5 -> 4.5"; *n is their number. */
pl_code pl_row_diff(const pl_stage_row *old, const pl_workflow *wf, const pl_step *step, pl_text *out, int *n, pl_arena *mem,
                    pl_error *err);
/* Whether a step needs step `need` and reads its blocks. */
bool pl_step_reads(const pl_workflow *wf, int step, int need);
int pl_step_find(const pl_workflow *wf, const char *stage); /* position in wf->step; -1: the workflow has no such stage */

/* ---- one run (runner.c, run_step.c, run_stream.c, run_unit.c, run_reset.c) ---- */

typedef struct pl_runner {
    pl_workflow *wf;
    const pl_schema *schema;
    const pl_run_opts *opts;
    pl_store *store;
    pl_progress *progress;
    pl_heartbeat *beat;
    pl_arena *mem;
    pl_step_plan *plan;
    bool *wanted; /* [n_steps], as in pl_plan_steps_with */
    int64_t run_id;
    int workers;
    bool unchecked; /* SQLite does not look up references (pl_references_look_up) */
    pl_error limit; /* with keep_going: the limit of failures that was exceeded; code PL_OK: none */
} pl_runner;

/* A stage while it runs. */
typedef struct pl_active {
    const pl_stage *stage;
    pl_env env;
    void *state;
    double began; /* pl_clock                                          */
    bool opened, done;
    /* Only for PL_PER_UNIT stages: */
    char *worker;                    /* [env.workers][worker_size]                        */
    size_t worker_size;              /* bytes, a multiple of 64                           */
    int n_workers;                   /* workers opened                                    */
    int64_t next, oldest, committed; /* unit to read next; oldest in flight; number of units in the database */
    int64_t n_items, n_failed;       /* committed items, and how many of them failed      */
    int64_t total;                   /* expected number of items, -1: unknown             */
    bool about;                      /* total is a guess                                  */
    bool ended;                      /* next has reported that there are no more units    */
    bool gap;                        /* a unit was dropped: later ones are not committed  */
    double last_commit;              /* pl_clock of the last commit                       */
    double work_s, main_s;           /* seconds of the workers and of the main thread     */
    sqlite3_stmt *put_unit;          /* INSERT INTO unit                                  */
} pl_active;

/* results.db -> results.previous.db: the last complete results while new ones are made. False: the path is too long. */
bool pl_previous_path(const pl_store *s, char *out, size_t size);
/* Deletes the rows of a step and of all stored stages that depend on it, and inserts its new row. */
pl_code pl_step_restart(pl_runner *r, int step, int64_t *stage_id, pl_error *err);
/* Deletes the rows of stages that the workflow no longer has (pl_removed_find), which later stages would read. */
pl_code pl_removed_clear(pl_runner *r, pl_error *err);
/* Runs one PL_WHOLE step, or n consecutive PL_PER_UNIT steps at once. *bad: position in `step` of the one that failed. */
pl_code pl_steps_run(pl_runner *r, const int *step, int n, int *bad, pl_error *err);
/* Marks the stage done, in the open transaction or a new one, commits, and reports it. */
pl_code pl_active_done(pl_runner *r, pl_active *a, pl_error *err);
/* PL_EIO: results.db was moved or deleted, or less disk space is free than limits.disk_free_min. */
pl_code pl_disk_check(const pl_runner *r, pl_error *err);

/* Runs all units of n stages, given in the order of the workflow, in one pass. */
pl_code pl_stream_run(pl_runner *r, pl_active *stage, int n, int *bad, pl_error *err);

/* ---- units of one stage (run_unit.c); all but pl_unit_work on the main thread ---- */

/* Counts what earlier runs committed, and calls worker_open for every worker. */
pl_code pl_units_open(pl_runner *r, pl_active *a, pl_error *err);
void pl_units_close(pl_active *a); /* a zeroed one is fine */
/* Asks the stage for the expected number of items; call it when the stages it needs are done. */
pl_code pl_units_expect(pl_runner *r, pl_active *a, pl_error *err);
/* Computes one unit. *wall: its seconds; *dropped: it was not computed, because the run was asked to stop. */
pl_code pl_unit_work(const pl_active *a, int worker, pl_unit *unit, double *wall, bool *dropped, pl_error *err);
/* Whether SQLite looks up references from now on; between transactions. Each change makes it prepare all its statements again. */
pl_code pl_references_look_up(pl_runner *r, bool on, pl_error *err);
/* Leaves the references as the stage needs them. */
pl_code pl_unit_commit(pl_runner *r, pl_active *a, pl_unit *unit, double wall, pl_error *err);

/* ---- the row of the run table: who ran what, where, when, and how it ended (run_row.c) ---- */

/* Inserts the row of this run and sets r->run_id. Rows still `running` belong to runs that
 * died (we hold the lock), so they become `lost`. resumed_from is the run that this one continues. */
pl_code pl_run_row_begin(pl_runner *r, pl_error *err);
/* Calls pl_stop_stuck(true) if this is the second restart in a row under a scheduler and the
 * first one made no progress: it finished no unit, no checkpoint and no stage. Any progress of
 * this run clears that again. */
void pl_run_row_look_back(const pl_runner *r);
/* The final code of the run. A run that stops while pl_stop_is_stuck would be restarted for
 * ever: its PL_ESTOP becomes PL_EINPUT (exit status 1), and the next start does not count it
 * as a restart. */
pl_code pl_run_row_judge(pl_code code, pl_error *err);
/* Writes the end of the run into its row. If that fails (disk full), the row stays `running`
 * and the next run marks it `lost`. */
void pl_run_row_end(pl_runner *r, pl_code code, const pl_error *err);

#endif
