/* pipeline/workflow/stage.h - what a stage is.
 *
 * A stage is one file, one line in stages/registry/registry.h and one in stages/CMakeLists.txt. The runner calls it;
 * it never calls the runner. Everything a stage produces is in results.db or
 * features.db, complete units only, so a run can stop anywhere.
 *
 * PL_PER_UNIT stages process units of molecules in three steps, next | work |
 * commit: next and commit run on the main thread, which alone uses the databases (but
 * pl_block_get); work runs on worker threads. Units are committed in their order, each in one
 * transaction with its row in the table `unit`, so the database holds units
 * 0..k-1 of a stage, completely, and has the same content for any number of
 * workers. PL_WHOLE stages do their work in one call and keep their own
 * checkpoints if it takes long.
 *
 * Consecutive PL_PER_UNIT stages run at the same time, in one pass: unit u of a
 * stage is made from unit u of the stages it needs, and begins when they have
 * committed it. Therefore open and next must not use totals of other stages;
 * finish may. All these stages together have at most 2*workers+2 units in flight.
 * Blocks that commit stores are committed in features.db just before the unit's
 * rows in results.db. */
#ifndef PL_STAGE_H
#define PL_STAGE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"
#include "pipeline/base/field.h"
#include "pipeline/base/sha256.h"
#include "pipeline/workflow/names.h"

typedef struct pl_workflow pl_workflow;
typedef struct pl_step pl_step;
typedef struct pl_store pl_store;
typedef struct pl_progress pl_progress;
typedef struct pl_problems pl_problems;

/* What a stage may know and use while it runs. Valid from open to close. */
typedef struct pl_env {
    const pl_workflow *wf;
    const pl_step *step; /* this stage in this workflow: settings, key, needs  */
    pl_store *store;     /* databases; main thread only                        */
    pl_arena *mem;       /* lives until close                                  */
    uint64_t seed;
    int workers;
    int64_t run_id, stage_id;
    int64_t units_done;     /* units already committed: next starts with this one */
    const atomic_int *stop; /* not 0: finish or drop the current work, return PL_ESTOP */
    pl_progress *progress;
    int32_t shard, n_shards; /* only units u with u % n_shards == shard; n_shards 0: all units */
    void *team;              /* pl_run_opts.team                                   */
} pl_env;

/* One unit of work. The runner owns it and resets mem before next. */
typedef struct pl_unit {
    int64_t index;          /* 0, 1, 2, ...                                       */
    pl_arena *mem;          /* input and output of the unit live here             */
    void *data;             /* the stage's own                                    */
    int64_t first, last;    /* record or molecule range, for the unit table       */
    int64_t n_ok, n_failed; /* items, filled by commit; n_failed: failures of this stage only */
} pl_unit;

/* What `plan` prints, as far as the stage can know it. */
typedef struct pl_estimate {
    int64_t n_items, n_units;                      /* -1: not known before the stages it needs have run  */
    double bytes_results, bytes_features, seconds; /* seconds with one worker           */
    const char *note;                              /* NULL or one line                                   */
    bool guessed;                                  /* extrapolated from a sample: progress says "about"  */
} pl_estimate;

typedef enum pl_scope { PL_PER_UNIT, PL_WHOLE } pl_scope;

typedef struct pl_stage {
    const char *name; /* the key in a workflow: "graph"                     */
    const char *help; /* one line                                           */
    pl_scope scope;
    int version; /* part of the key; raised when the output changes    */
    const pl_field *fields;
    const char *const *first; /* for its help: a setting to change first, why, another, why, ..., NULL; NULL: none stands out */
    size_t conf_size, state_size, worker_size; /* bytes; the runner allocates them zeroed */
    const char *const *needs;                  /* stages that must run before, NULL-terminated; one
                                     in parentheses, "(split)", is used if present      */
    const char *item;                          /* "records", "molecules", "steps": for progress      */

    /* Optional; called when the settings of all steps have been read. Resets settings that have no effect in this
     * combination to their defaults, so that they do not change the key, and replaces `auto` by a value. */
    void (*settle)(const pl_workflow *wf, void *conf);

    /* Optional: whether with these settings the stage needs `what` of the stages before it, a word that they agree on. May be
     * asked while settings settle, of stages that have not settled. */
    bool (*wants)(const pl_workflow *wf, const pl_step *step, const char *what);

    /* Optional: adds the names of `what` that the stage reads from the stages before it, such as columns of the user's table. Asked
     * when `wants` is. */
    void (*names)(const pl_workflow *wf, const pl_step *step, const char *what, pl_names *out);

    /* Optional. Finds everything that can be wrong before any work: combinations of
     * settings, files, models. Adds problems; prints nothing. */
    void (*check)(const pl_workflow *wf, const pl_step *step, pl_problems *problems);

    /* Optional: what could be better about settings that can run, for the command `check`. Asked where there is no problem. */
    void (*advise)(const pl_workflow *wf, const pl_step *step, pl_problems *advice);

    /* Optional. Writes a JSON object, in mem, of what the result depends on besides the
     * settings and the needed stages: hashes of inputs and models, versions of libraries.
     * The store serves as a cache of file hashes and may be NULL. */
    pl_code (*key)(const pl_workflow *wf, const pl_step *step, pl_store *store, const char **extra_json, pl_arena *mem,
                   pl_error *err);

    /* Optional; store is NULL if nothing has run yet. */
    pl_code (*estimate)(const pl_workflow *wf, const pl_step *step, pl_store *store, pl_estimate *out, pl_arena *mem,
                        pl_error *err);

    /* Main thread, once, before the first unit; also when resuming. */
    pl_code (*open)(void *state, pl_env *env, pl_error *err);

    /* PL_PER_UNIT. next fills unit u; it is called when the needed stages have committed
     * their unit u or are done, and sets *more = false if there is no unit u. An error of
     * work ends the run; a bad molecule is no error but a result in unit->data. */
    pl_code (*next)(void *state, pl_unit *unit, bool *more, pl_error *err);
    pl_code (*worker_open)(void *worker, void *state, pl_error *err);
    pl_code (*work)(void *worker, pl_unit *unit, pl_error *err);
    void (*worker_close)(void *worker);
    pl_code (*commit)(void *state, pl_unit *unit, pl_error *err);

    /* PL_PER_UNIT, optional: once after the last unit, inside the transaction that
     * marks the stage done (indexes, counts).
     * PL_WHOLE: the work, called with no transaction open, because it may take hours.
     * The stage opens its own (pl_db_begin, pl_db_commit). If a transaction is open when
     * it returns PL_OK, the runner adds the done mark and commits: the mark and the rows
     * are stored together. After a kill finish is called again, so it first removes or
     * replaces what an earlier attempt committed. */
    pl_code (*finish)(void *state, pl_error *err);

    /* Called once per open, also after an open that failed half-way. */
    void (*close)(void *state);

    /* SQL statements that delete everything this stage wrote; they run in one transaction
     * before the stage runs again with another key. NULL-terminated; may be NULL. */
    const char *const *reset_sql;

    /* Optional: false if with these settings it reads no blocks of the stages it needs, only
     * rows; the blocks may then be missing. NULL: it reads them. */
    bool (*reads_blocks)(const pl_step *step);

    /* Optional: *path (in mem) is the first file that the stage wrote and that no longer exists, else NULL. A done stage
     * then runs again; if it has reset_sql, it keeps its rows and resumes. A file that stat cannot examine counts as there. */
    pl_code (*missing)(const pl_workflow *wf, const pl_step *step, const char **path, pl_arena *mem, pl_error *err);

    /* Optional: *path (in mem) is the first file that the stage wrote and that was changed since, else NULL. A done stage then
     * runs again. */
    pl_code (*changed)(const pl_workflow *wf, const pl_step *step, pl_store *store, const char **path, pl_arena *mem,
                       pl_error *err);

    /* Optional, for a stage begun but not done under this key: *why (in mem) is the reason why its committed units cannot
     * be used, else NULL. With a reason the stage runs again from the start. */
    pl_code (*doubt)(const pl_workflow *wf, const pl_step *step, pl_store *store, const char **why, pl_arena *mem, pl_error *err);

    /* Optional: in mem, what changes the last digits of the result but is not part of the key, such as the kind of processor;
     * "": nothing does; NULL: out of memory. It is stored with the run; resuming or merging units of different levels gives a warning. */
    const char *(*level)(const pl_step *step, pl_arena *mem);
    const char *level_advice; /* what that warning says of the results, and what to do; NULL: that `kernels` pins the level */

    /* PL_PER_UNIT. True: commit looks up itself that the rows its rows refer to exist, and fails where one does not. SQLite then does not
     * look them up for each row. */
    bool own_references;

    /* True: rows of this stage stay when a workflow no longer has it, because they cost too much. No other stage may read them unasked. */
    bool stays;

    /* True: the result depends on the workflow's `seed`, which becomes part of the key. */
    bool uses_seed;
} pl_stage;

#endif
