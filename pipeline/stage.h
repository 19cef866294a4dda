/* pipeline/stage.h - what a stage is.
 *
 * A stage is one file and one line in stages/registry.c. The runner calls it;
 * it never calls the runner. Everything a stage produces is in results.db or
 * features.db, complete units only, so a run can stop anywhere.
 *
 * PL_PER_UNIT stages are mapped over units of molecules, read | work | commit:
 * next and commit run on the main thread, which alone touches the databases;
 * work runs on worker threads. Commits happen in the order of the units, each
 * in one transaction with the unit's `done` mark, so the database holds units
 * 0..k-1 of a stage, completely, and has the same content for any number of
 * workers. PL_WHOLE stages do their work in one call and keep their own
 * checkpoints if it is long.
 *
 * Consecutive PL_PER_UNIT stages run at once, in one pass: unit u of a stage is
 * made from unit u of those it needs, and begins when they have committed it.
 * So open, and everything until next says that there are no more units, must not
 * count on totals of other stages; finish may. All of them together have at most
 * 2*workers+2 units in flight. Blocks that commit puts are committed just before
 * the unit. */
#ifndef PL_STAGE_H
#define PL_STAGE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"
#include "pipeline/base/field.h"
#include "pipeline/base/sha256.h"

typedef struct pl_workflow pl_workflow;
typedef struct pl_step pl_step;
typedef struct pl_store pl_store;
typedef struct pl_progress pl_progress;
typedef struct pl_problems pl_problems;

/* What a stage may know and use while it runs. Valid from open to close. */
typedef struct pl_env {
    const pl_workflow *wf;
    const pl_step *step;          /* this stage: conf, key, needs                       */
    pl_store *store;              /* databases; main thread only                        */
    pl_arena *mem;                /* lives until close                                  */
    uint64_t seed;
    int workers;
    int64_t run_id, stage_id;
    int64_t units_done;           /* already committed: next starts with this unit      */
    const atomic_int *stop; /* not 0: finish or drop what is in hand, return PL_ESTOP */
    pl_progress *progress;
    int32_t shard, n_shards;      /* only units u with u % n_shards == shard; n_shards 0: undivided */
    void *team;                   /* as in pl_run_opts                                  */
} pl_env;

/* One unit of work. The runner owns it; mem is reset before next. */
typedef struct pl_unit {
    int64_t index;                /* 0, 1, 2, ...                                       */
    pl_arena *mem;                /* input and output of the unit live here             */
    void *data;                   /* the stage's own                                    */
    int64_t first, last;          /* record or molecule range, for the unit table       */
    int64_t n_ok, n_failed;       /* filled by commit; n_failed counts new failures     */
} pl_unit;

/* What `plan` prints; filled as well as the stage can know it. */
typedef struct pl_estimate {
    int64_t n_items, n_units;     /* -1: not known before the stages above ran          */
    double bytes_results, bytes_features, seconds; /* seconds: one worker               */
    const char *note;             /* NULL or one line                                   */
    bool guessed;                 /* counts from a sample: progress says "about"        */
} pl_estimate;

typedef enum pl_scope { PL_PER_UNIT, PL_WHOLE } pl_scope;

typedef struct pl_stage {
    const char *name;             /* the key in a workflow: "graph"                     */
    const char *help;             /* one line                                           */
    pl_scope scope;
    int version;                  /* semantics: raised when output would change         */
    const pl_field *fields;
    size_t conf_size, state_size, worker_size; /* the runner allocates all, zeroed     */
    const char *const *needs;     /* stages that must come before, NULL-terminated; a
                                     name in parentheses, "(split)", is used if present */
    const char *item;             /* "records", "molecules", "steps": for progress      */

    /* Optional, when the settings of all steps have been read: gives those that have no effect beside the others their
     * defaults, so that the key does not know them, and what is `auto` its value. */
    void (*settle)(const pl_workflow *wf, void *conf);

    /* Everything that can be wrong before any work: cross checks of settings, files,
     * models. Optional. Problems are added, never printed. */
    void (*check)(const pl_workflow *wf, const pl_step *step, pl_problems *problems);

    /* Adds what the result depends on beyond settings and needed stages: hashes of
     * inputs and models, library versions. JSON object text in mem. Optional. The
     * store is used for its file-hash cache and may be NULL. */
    pl_code (*key)(const pl_workflow *wf, const pl_step *step, pl_store *store,
                   const char **extra_json, pl_arena *mem, pl_error *err);

    /* Optional; store may be NULL (nothing has run yet). */
    pl_code (*estimate)(const pl_workflow *wf, const pl_step *step, pl_store *store,
                        pl_estimate *out, pl_arena *mem, pl_error *err);

    /* Main thread, once, before the first unit; also when resuming. */
    pl_code (*open)(void *state, pl_env *env, pl_error *err);

    /* PL_PER_UNIT. next: *more = false when there is no unit left; called for unit u only
     * when the stages it needs have committed their u, or are done. work may fail only
     * for the run (a bad molecule is data in unit->data). */
    pl_code (*next)(void *state, pl_unit *unit, bool *more, pl_error *err);
    pl_code (*worker_open)(void *worker, void *state, pl_error *err);
    pl_code (*work)(void *worker, pl_unit *unit, pl_error *err);
    void    (*worker_close)(void *worker);
    pl_code (*commit)(void *state, pl_unit *unit, pl_error *err);

    /* PL_PER_UNIT, optional: once after the last unit, inside the transaction that
     * marks the stage done (indexes, counts).
     * PL_WHOLE: the work, called with no transaction open, because it may take hours.
     * The stage opens its own (pl_db_begin, pl_db_commit). One that it leaves open when
     * it returns PL_OK is completed by the runner: the done mark goes into it, so what
     * the stage wrote there and the mark arrive together. After a kill finish is called
     * again, so it first removes or replaces what an earlier attempt committed. */
    pl_code (*finish)(void *state, pl_error *err);

    /* Always, once per open, also after an open that failed half-way. */
    void (*close)(void *state);

    /* SQL that removes everything this stage ever wrote, run in one transaction
     * when it must run again with another key. NULL-terminated; may be NULL. */
    const char *const *reset_sql;

    /* Optional: false if with these settings it reads no blocks of the stages it needs, only
     * rows; then it does not matter whether the blocks are still there. */
    bool (*reads_blocks)(const pl_step *step);

    /* Optional: the first file that it made and that is not there any more, in mem (NULL without), or NULL: a done
     * stage then runs again, as make would have it; one with rows (reset_sql) goes on, as after a kill. One stat a file; the answer is no where stat cannot tell. */
    pl_code (*missing)(const pl_workflow *wf, const pl_step *step, const char **path, pl_arena *mem, pl_error *err);

    /* Optional, of a stage that is begun and not done under this key: why the units it has are not to be gone on with, in
     * mem, or NULL. With a reason it runs again from the start. */
    pl_code (*doubt)(const pl_workflow *wf, const pl_step *step, pl_store *store, const char **why, pl_arena *mem, pl_error *err);

    /* Optional: what the last digits of the result depend on that its key does not know, such as the kind of processor, in
     * mem; NULL: no memory. Stored with the run; who goes on with another level, or merges unlike ones, is warned. */
    const char *(*level)(const pl_step *step, pl_arena *mem);
    const char *level_advice; /* what that warning says of the results, and what to do; NULL: that `kernels` pins the level */

    /* The result depends on the workflow's `seed`: it becomes part of the key. */
    bool uses_seed;
} pl_stage;

#endif
