/* SPDX-License-Identifier: Apache-2.0 */
/* A job that computes a part of the stage `score`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/base/par.h"
#include "pipeline/base/stop.h"
#include "pipeline/lock/lock.h"
#include "pipeline/run/run.h"
#include "pipeline/store/open.h"
#include "stages/steps/score/score_part.h"
#include "stages/steps/score/score_parts.h"

typedef struct slot {
    pl_unit unit;
    bool used, dropped;
} slot;

typedef struct part_run {
    pl_workflow *wf;
    const st_score_part_opts *opts;
    pl_arena *mem;
    pl_env env;
    score_state *state;
    st_scorer_worker *worker; /* [opts->workers] */
    int n_workers;
    sqlite3 *db;
    sqlite3_stmt *has, *put;
    slot *slot; /* [n_slots] */
    int n_slots, n_used;
    int64_t next; /* unit */
    bool ended;
    pl_text bytes;
} part_run;

/* ---- the file ---- */

/* Whether it is of this key and machine. */
static bool file_is_ours(sqlite3 *db, const char *key, const char *level)
{
    int64_t n = 0;

    return pl_db_int(db, &n, NULL, "SELECT count(*) FROM meta WHERE (key='key' AND value=%Q) OR (key='level' AND value=%Q)", key,
                     level) == PL_OK &&
           n == 2;
}

static pl_code file_make(part_run *x, const char *path, const char *level, pl_error *err)
{
    pl_code code;

    (void)sqlite3_close(x->db);
    x->db = NULL;
    (void)unlink(path); /* SQLite does not apply the journal of a file that is gone, and removes it */
    code = pl_open_file(&x->db, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, 1000, err);
    return code != PL_OK ? code
                         : pl_db_execf(x->db, err,
                                       "BEGIN IMMEDIATE; CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT);"
                                       "CREATE TABLE scored(unit INTEGER PRIMARY KEY, data BLOB, sha256 BLOB);"
                                       "INSERT INTO meta VALUES('key',%Q),('level',%Q),('state','running'); COMMIT",
                                       x->env.step->key, level);
}

/* An unfinished file of the same key and machine goes on; any other is replaced. */
static pl_code file_begin(part_run *x, const char *path, bool *done, pl_error *err)
{
    const char *level = st_score_part_level(x->env.step, x->mem);
    int64_t n = 0;
    pl_code code = level != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "a part");

    if (code == PL_OK && (access(path, F_OK) != 0 || pl_open_file(&x->db, path, SQLITE_OPEN_READWRITE, 1000, NULL) != PL_OK ||
                          !file_is_ours(x->db, x->env.step->key, level)))
        code = file_make(x, path, level, err);
    if (code == PL_OK)
        code = pl_db_int(x->db, &n, err, "SELECT count(*) FROM meta WHERE key='state' AND value='done'");
    *done = n == 1;
    return code;
}

static pl_code statements(part_run *x, pl_error *err)
{
    pl_code code = pl_db_prepare(x->db, &x->has, "SELECT 1 FROM scored WHERE unit=?", err);

    return code == PL_OK ? pl_db_prepare(x->db, &x->put, "INSERT OR REPLACE INTO scored VALUES(?,?,?)", err) : code;
}

/* ---- units ---- */

static pl_code compute(void *ctx, int worker, int i, pl_error *err)
{
    part_run *x = ctx;
    slot *s = &x->slot[i];
    pl_code code;

    s->dropped = *pl_stop_flag() != 0;
    if (s->dropped)
        return PL_OK;
    code = st_score_work(&x->worker[worker], &s->unit, err);
    s->dropped = code == PL_ESTOP;
    return s->dropped ? PL_OK : code;
}

static pl_code store(part_run *x, const slot *s, pl_error *err)
{
    const score_unit *u = s->unit.data;
    pl_code code;

    if (s->dropped)
        return PL_OK;
    pl_text_reset(&x->bytes);
    st_score_bytes_put(&x->bytes, &x->state->scorer, &u->scored);
    code = pl_text_ok(&x->bytes) ? pl_db_begin(x->db, err) : pl_fail(err, PL_ENOMEM, "a unit of scores");
    if (code == PL_OK)
        code = st_score_part_put(x->put, s->unit.index, &x->bytes, err);
    pl_fault("score", "part.before_commit");
    if (code == PL_OK)
        code = pl_db_commit(x->db, err);
    pl_db_rollback(x->db);
    return code;
}

static pl_code take_computed(part_run *x, pl_pool *pool, pl_error *err)
{
    pl_code code = PL_OK;

    for (int i = 0; i < x->n_slots && code == PL_OK; i++) {
        pl_code said = PL_OK;
        if (!x->slot[i].used || !pl_pool_take(pool, i, &said, err))
            continue;
        x->slot[i].used = false;
        x->n_used--;
        code = said == PL_OK ? store(x, &x->slot[i], err) : said;
    }
    return code;
}

static pl_code read_next(part_run *x, slot *s, pl_error *err)
{
    pl_arena *mem = s->unit.mem;
    bool there = true, more = true;
    pl_code code = PL_OK;

    while (code == PL_OK && there) { /* an earlier job has computed it */
        (void)sqlite3_bind_int64(x->has, 1, x->next);
        code = pl_db_step(x->has, &there, err);
        (void)sqlite3_reset(x->has);
        x->next += there ? x->opts->part.n : 0;
    }
    pl_arena_reset(mem);
    *s = (slot){ .unit = { .index = x->next, .mem = mem } };
    if (code == PL_OK)
        code = st_score_read(x->state, &s->unit, &more, err);
    x->ended = !more;
    s->used = code == PL_OK && more;
    x->n_used += s->used;
    x->next += x->opts->part.n;
    return code;
}

static pl_code fill(part_run *x, pl_pool *pool, pl_error *err)
{
    pl_code code = PL_OK;

    for (int i = 0; code == PL_OK && i < x->n_slots && !x->ended && !*pl_stop_flag(); i++) {
        if (x->slot[i].used)
            continue;
        code = read_next(x, &x->slot[i], err);
        if (x->slot[i].used)
            pl_pool_put(pool, i, x->slot[i].unit.index);
    }
    return code;
}

static pl_code loop(part_run *x, pl_pool *pool, pl_error *err)
{
    pl_code code = fill(x, pool, err);

    while (code == PL_OK && x->n_used > 0) {
        pl_pool_wait(pool);
        code = take_computed(x, pool, err);
        if (code == PL_OK)
            code = fill(x, pool, err);
    }
    if (code == PL_OK && *pl_stop_flag())
        return pl_fail(err, PL_ESTOP, "stopped by %s; run the same command again to continue", pl_stop_reason());
    return code == PL_OK ? pl_db_exec(x->db, "UPDATE meta SET value='done' WHERE key='state'", err) : code;
}

/* ---- the whole ---- */

static pl_code workers_open(part_run *x, pl_error *err)
{
    pl_code code = PL_OK;

    x->n_slots = 2 * x->opts->workers + 2;
    x->worker = calloc((size_t)x->opts->workers, sizeof *x->worker);
    x->slot = calloc((size_t)x->n_slots, sizeof *x->slot);
    if (x->worker == NULL || x->slot == NULL)
        return pl_fail(err, PL_ENOMEM, "%d workers", x->opts->workers);
    for (int i = 0; i < x->n_slots; i++)
        if ((x->slot[i].unit.mem = pl_arena_new(1 << 18)) == NULL)
            code = pl_fail(err, PL_ENOMEM, "units in flight");
    while (code == PL_OK && x->n_workers < x->opts->workers)
        code = st_score_worker_open(&x->worker[x->n_workers++], x->state, err);
    return code;
}

static void workers_close(part_run *x)
{
    for (int i = 0; i < x->n_workers; i++)
        st_score_worker_close(&x->worker[i]);
    for (int i = 0; x->slot != NULL && i < x->n_slots; i++)
        pl_arena_free(x->slot[i].unit.mem);
    free(x->worker);
    free(x->slot);
}

static pl_code units_compute(part_run *x, pl_error *err)
{
    pl_pool *pool = NULL;
    pl_code code = workers_open(x, err);

    if (code == PL_OK)
        code = pl_pool_open(&pool, x->opts->workers, x->n_slots, compute, x, err);
    if (code == PL_OK)
        code = loop(x, pool, err);
    if (code != PL_OK)
        pl_stop_cancel(true);
    pl_pool_close(pool);
    pl_stop_cancel(false);
    workers_close(x);
    return code;
}

static pl_code rest_compute(part_run *x, pl_error *err)
{
    pl_code code = statements(x, err);

    if (code == PL_OK)
        code = st_score_open_inputs(x->state, &x->env, err);
    return code == PL_OK ? units_compute(x, err) : code;
}

static pl_code part_compute(part_run *x, const char *path, pl_error *err)
{
    bool done = false;
    pl_code code = file_begin(x, path, &done, err);

    if (code == PL_OK && !done)
        code = rest_compute(x, err);
    st_score_close(x->state);
    (void)sqlite3_finalize(x->has);
    (void)sqlite3_finalize(x->put);
    (void)sqlite3_close(x->db);
    pl_text_free(&x->bytes);
    return code;
}

/* The store must stay open while the part is computed. */
static pl_code part_begin(part_run *x, pl_store *s, const char *path, pl_error *err)
{
    score_state *state = calloc(1, sizeof *state);
    pl_stop stop;
    pl_code code;

    x->state = state;
    x->next = x->opts->part.k;
    x->env = (pl_env){ .wf = x->wf,
                       .step = pl_workflow_step(x->wf, "score"),
                       .store = s,
                       .mem = x->mem,
                       .seed = (uint64_t)x->wf->seed,
                       .workers = x->opts->workers,
                       .stop = pl_stop_flag() };
    if (state == NULL)
        return pl_fail(err, PL_ENOMEM, "a part");
    pl_stop_begin(&stop, x->opts->max_time, x->opts->grace);
    code = part_compute(x, path, err);
    pl_stop_end(&stop);
    free(state);
    return code;
}

pl_code st_score_part_run(pl_workflow *wf, const pl_schema *schema, const st_score_part_opts *opts, pl_arena *mem, pl_error *err)
{
    part_run x = { .wf = wf, .opts = opts, .mem = mem };
    const char *path = st_score_part_file(wf, opts->part, mem);
    const char *dir = path != NULL ? pl_strndup(mem, path, strlen(path) - strlen("/scores.db")) : NULL;
    st_score_wait wait;
    pl_store *s = NULL;
    pl_lock lock = PL_LOCK_NONE;
    pl_code code = dir != NULL ? st_score_wait_look(&wait, wf, schema, opts->part.n, mem, err) : pl_fail(err, PL_ENOMEM, "a path");

    if (code == PL_OK && !wait.waits)
        code = pl_fail(err, PL_ECONFIG, "%s: no model waits for scores: it is not trained, or the scores are there",
                       wf->storage.results);
    if (code == PL_OK)
        code = pl_lock_take(&lock, dir, err);
    if (code == PL_OK)
        code = pl_store_open_read(&s, wf->storage.results, schema, err);
    if (code == PL_OK)
        code = part_begin(&x, s, path, err);
    pl_store_close(s);
    pl_lock_drop(&lock);
    return code;
}
