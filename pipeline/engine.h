/* pipeline/engine.h - what the store and the runner share and nobody else needs. */
#ifndef PL_ENGINE_H
#define PL_ENGINE_H

#include "pipeline/heartbeat.h"
#include "pipeline/run.h"

/* The embedded pipeline/engine.sql. */
extern const char pl_engine_sql[];

enum {
    PL_RESULTS_ID = 0x4d4f4c53, /* "MOLS": application_id of results.db  */
    PL_FEATURES_ID = 0x4d4f4c46 /* "MOLF": application_id of features.db */
};

/* "2026-01-31T12:34:56Z" */
const char *pl_utc_now(char buf[32]);
/* Seconds of a clock that never jumps. */
double pl_clock(void);
/* 32 hexadecimal digits, different for every run. */
void pl_uuid(char buf[40]);

/* A row of the event table; never fails the caller. */
void pl_event_row(pl_store *s, int64_t run_id, const char *level, const char *stage, const char *message);

/* What the queries of blocks need of a features.db that was just opened (block.c). */
pl_code pl_block_ready(pl_store *s, pl_error *err);

/* "slurm", "pbs", "lsf", "sge" or NULL; *job and *task borrowed from the environment or NULL. */
const char *pl_scheduler(const char **job, const char **task);

/* ---- planning (plan.c) ---- */

/* What results.db says about a stage; texts in the arena. stage_id 0: no row. */
typedef struct pl_stage_row {
    int64_t stage_id, n_units, n_blocks, code_version;
    int64_t run_id; /* that began it */
    bool done;
    const char *key, *params_json, *extra_json, *needs_json;
} pl_stage_row;

pl_code pl_stage_row_get(pl_store *s, const char *name, pl_stage_row *out, pl_arena *mem, pl_error *err);
/* {"graph":"<key>", ...} of a step, canonical. */
pl_code pl_needs_json(const pl_workflow *wf, const pl_step *step, const char **out, pl_arena *mem, pl_error *err);
/* Lines "cutoff: 5 -> 4.5"; *n counts them. */
pl_code pl_row_diff(const pl_stage_row *old, const pl_workflow *wf, const pl_step *step, pl_text *out, int *n,
                    pl_arena *mem, pl_error *err);
/* Whether a step reads blocks of step `need`, which it needs. */
bool pl_step_reads(const pl_workflow *wf, int step, int need);
int pl_step_find(const pl_workflow *wf, const char *stage); /* -1: not there */

/* ---- one run (run.c, run_step.c, run_stream.c, run_unit.c, run_reset.c) ---- */

typedef struct pl_runner {
    pl_workflow *wf;
    const pl_schema *schema;
    const pl_run_opts *opts;
    pl_store *store;
    pl_progress *progress;
    pl_heartbeat *beat;
    pl_arena *mem;
    pl_step_plan *plan;
    bool *wanted;
    int64_t run_id;
    int workers;
    pl_error limit;    /* keep_going: the limit of failures that was passed */
} pl_runner;

/* A stage while it runs. */
typedef struct pl_active {
    const pl_stage *stage;
    pl_env env;
    void *state;
    double began;                    /* pl_clock                                          */
    bool opened, done;
    /* Of PL_PER_UNIT stages: */
    char *worker;                    /* [env.workers][worker_size]                        */
    size_t worker_size;
    int n_workers;                   /* opened                                            */
    int64_t next, oldest, committed; /* unit to read; oldest in flight; units in the database */
    int64_t n_items, n_failed;
    int64_t total;                   /* items there will be, -1: unknown                  */
    bool about;                      /* total is a guess                                  */
    bool ended;                      /* next said that there are no more                  */
    bool gap;                        /* a unit was dropped: later ones are not committed  */
    double last_commit, work_s, main_s; /* seconds of workers and of the main thread      */
} pl_active;

/* results.db -> results.previous.db: the last complete results while new ones are made. False: too long. */
bool pl_previous_path(const pl_store *s, char *out, size_t size);
/* Clears what a step and everything standing on it wrote, and inserts its new row. */
pl_code pl_step_restart(pl_runner *r, int step, int64_t *stage_id, pl_error *err);
/* One PL_WHOLE step, or consecutive PL_PER_UNIT steps at once. *bad: position in `step` of the one that failed. */
pl_code pl_steps_run(pl_runner *r, const int *step, int n, int *bad, pl_error *err);
/* Marks the stage done, in the transaction that is open or a new one, and says so. */
pl_code pl_active_done(pl_runner *r, pl_active *a, pl_error *err);
pl_code pl_disk_check(const pl_runner *r, pl_error *err);

/* All units of all these stages, in the order of the workflow, in one pass. */
pl_code pl_stream_run(pl_runner *r, pl_active *stage, int n, int *bad, pl_error *err);

/* ---- units of one stage (run_unit.c); all but pl_unit_work on the main thread ---- */

/* What earlier runs committed, and the stage's part of every worker. */
pl_code pl_units_open(pl_runner *r, pl_active *a, pl_error *err);
void    pl_units_close(pl_active *a); /* zeroed is fine */
/* Asks the stage how much there will be; when those it needs are done. */
pl_code pl_units_expect(pl_runner *r, pl_active *a, pl_error *err);
/* *dropped: not computed, because of a stop. */
pl_code pl_unit_work(const pl_active *a, int worker, pl_unit *unit, double *wall, bool *dropped, pl_error *err);
pl_code pl_unit_commit(pl_runner *r, pl_active *a, pl_unit *unit, double wall, pl_error *err);

#endif
