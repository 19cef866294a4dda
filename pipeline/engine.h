/* pipeline/engine.h - what the store and the runner share and nobody else needs. */
#ifndef PL_ENGINE_H
#define PL_ENGINE_H

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

/* "slurm", "pbs", "lsf", "sge" or NULL; *job and *task borrowed from the environment or NULL. */
const char *pl_scheduler(const char **job, const char **task);

/* ---- planning (plan.c) ---- */

/* What results.db says about a stage; texts in the arena. stage_id 0: no row. */
typedef struct pl_stage_row {
    int64_t stage_id, n_units, n_blocks, code_version;
    bool done;
    const char *key, *params_json, *extra_json, *needs_json;
} pl_stage_row;

pl_code pl_stage_row_get(pl_store *s, const char *name, pl_stage_row *out, pl_arena *mem, pl_error *err);
/* {"graph":"<key>", ...} of a step, canonical. */
pl_code pl_needs_json(const pl_workflow *wf, const pl_step *step, const char **out, pl_arena *mem, pl_error *err);
/* Lines "cutoff: 5 -> 4.5"; *n counts them. */
pl_code pl_row_diff(const pl_stage_row *old, const pl_workflow *wf, const pl_step *step, pl_text *out, int *n,
                    pl_arena *mem, pl_error *err);
int pl_step_find(const pl_workflow *wf, const char *stage); /* -1: not there */

/* ---- one run (run.c, run_step.c, run_unit.c, run_reset.c) ---- */

typedef struct pl_runner {
    pl_workflow *wf;
    const pl_schema *schema;
    const pl_run_opts *opts;
    pl_store *store;
    pl_progress *progress;
    pl_arena *mem;
    pl_step_plan *plan;
    bool *wanted;
    int64_t run_id;
    int workers;
    pl_error limit;    /* keep_going: the limit of failures that was passed */
    double began;      /* pl_clock of the stage that runs       */
    char summary[128]; /* of that stage: "100,000 molecules..." */
} pl_runner;

/* results.db -> results.previous.db: the last complete results while new ones are made. False: too long. */
bool pl_previous_path(const pl_store *s, char *out, size_t size);
/* Clears what a step and everything standing on it wrote, and inserts its new row. */
pl_code pl_step_restart(pl_runner *r, int step, int64_t *stage_id, pl_error *err);
pl_code pl_step_run(pl_runner *r, int step, pl_error *err);
pl_code pl_units_run(pl_runner *r, pl_env *env, void *state, pl_error *err);
/* Marks the stage done, in the transaction that is open or a new one. */
pl_code pl_step_done(pl_runner *r, pl_env *env, int64_t n_units, void *state, pl_error *err);
pl_code pl_disk_check(const pl_runner *r, pl_error *err);

#endif
