/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/par.h"
#include "pipeline/engine.h"
#include "pipeline/progress.h"

enum {
    LEAST_FAILURES = 20, /* below this max_fraction is silent: 1 of 3 says nothing */
    DISK_EVERY = 16      /* units between looks at the free space                  */
};

/* The units of one stage, in flight. */
typedef struct units {
    pl_runner *r;
    pl_env *env;
    const pl_stage *stage;
    void *state;
    int depth, n_open;        /* n_open: workers opened                           */
    size_t worker_size;
    char *worker;             /* [workers][worker_size]                           */
    pl_unit *unit;            /* [depth]                                          */
    bool *dropped;            /* [depth] not computed, because of a stop          */
    double *wall;             /* [depth] seconds of work                          */
    int64_t next_index, committed, n_items, n_failed, total;
    bool cut;                 /* no more units are read                           */
    bool gap;                 /* a unit was dropped: later ones are not committed */
    bool ended;               /* next said that there are no more                 */
    double last_commit;
} units;

/* ---- read, work, commit: the three callbacks of the pipe ---- */

static pl_code read_unit(void *ctx, int slot, bool *more, pl_error *err)
{
    units *u = ctx;
    pl_unit *unit = &u->unit[slot];
    pl_arena *mem = unit->mem;
    pl_code code;

    *more = false;
    if (*u->env->stop || u->cut) {
        u->cut = true;
        return PL_OK;
    }
    pl_arena_reset(mem);
    *unit = (pl_unit){ .index = u->next_index, .mem = mem };
    *more = true;
    code = u->stage->next(u->state, unit, more, err);
    if (code != PL_OK)
        return code;
    u->dropped[slot] = false;
    u->ended = !*more;
    u->next_index += *more;
    return PL_OK;
}

static pl_code work_unit(void *ctx, int worker, int slot, pl_error *err)
{
    units *u = ctx;
    double began = pl_clock();
    pl_code code;

    if (*u->env->stop) {
        u->dropped[slot] = true;
        return PL_OK;
    }
    code = u->stage->work ? u->stage->work(u->worker + (size_t)worker * u->worker_size, &u->unit[slot], err) : PL_OK;
    u->wall[slot] = pl_clock() - began;
    if (code == PL_ESTOP && *u->env->stop) {
        u->dropped[slot] = true;
        return PL_OK;
    }
    return code;
}

static pl_code put_unit_row(units *u, const pl_unit *unit, double wall, int64_t n_blocks, pl_error *err)
{
    static const char sql[] = "INSERT INTO unit(stage_id,unit,first,last,n_ok,n_failed,wall_s,run_id)"
                              " VALUES(?,?,?,?,?,?,?,?)";
    double now = pl_clock();
    sqlite3_stmt *st;
    char *update;
    pl_code code = pl_db_prepare(u->r->store->db, &st, sql, err);

    if (code != PL_OK)
        return code;
    const int64_t value[] = { u->env->stage_id, unit->index, unit->first, unit->last, unit->n_ok, unit->n_failed };
    for (int i = 0; i < 6; i++)
        (void)sqlite3_bind_int64(st, i + 1, value[i]);
    (void)sqlite3_bind_double(st, 7, wall);
    (void)sqlite3_bind_int64(st, 8, u->r->run_id);
    code = pl_db_run(st, err);
    (void)sqlite3_finalize(st);
    if (code != PL_OK)
        return code;
    update = sqlite3_mprintf("UPDATE stage SET wall_s=wall_s+%.6f, n_blocks=n_blocks+%lld WHERE stage_id=%lld",
                             now - u->last_commit, (long long)n_blocks, (long long)u->env->stage_id);
    code = update ? pl_db_exec(u->r->store->db, update, err) : pl_fail(err, PL_ENOMEM, "a query");
    sqlite3_free(update);
    u->last_commit = now;
    return code;
}

/* The two transactions of a unit. Blocks come first: a unit that is marked done
 * has its blocks, and blocks of a unit that is not are written again. */
static pl_code store_unit(units *u, pl_unit *unit, double wall, pl_error *err)
{
    pl_store *s = u->r->store;
    int64_t puts = s->n_puts;
    pl_code code = pl_db_begin(s->db, err);

    if (code == PL_OK && s->features != NULL)
        code = pl_db_begin(s->features, err);
    if (code == PL_OK)
        code = u->stage->commit ? u->stage->commit(u->state, unit, err) : PL_OK;
    if (code == PL_OK && s->features != NULL && !sqlite3_get_autocommit(s->features))
        code = pl_db_commit(s->features, err);
    if (code == PL_OK) {
        pl_fault(u->stage->name, "unit.after_features");
        code = put_unit_row(u, unit, wall, s->n_puts - puts, err);
    }
    if (code == PL_OK) {
        pl_fault(u->stage->name, "unit.before_commit");
        code = pl_db_commit(s->db, err);
    }
    if (code == PL_OK)
        pl_fault(u->stage->name, "unit.after_commit");
    return code;
}

static pl_code fail_limit(units *u, const char *limit, pl_error *err)
{
    sqlite3_stmt *st;
    char reasons[160] = "", a[32], b[32];
    bool row = true;
    int at = 0;
    pl_code code = pl_db_prepare(u->r->store->db, &st, "SELECT code,count(*) FROM failure WHERE stage=? GROUP BY code"
                                                       " ORDER BY 2 DESC,1 LIMIT 3", err);

    if (code == PL_OK)
        (void)sqlite3_bind_text(st, 1, u->stage->name, -1, SQLITE_STATIC);
    while (code == PL_OK && (code = pl_db_step(st, &row, err)) == PL_OK && row && at < (int)sizeof reasons)
        at += snprintf(reasons + at, sizeof reasons - (size_t)at, "%s%s %lld", at ? ", " : "",
                       (const char *)sqlite3_column_text(st, 0), (long long)sqlite3_column_int64(st, 1));
    (void)sqlite3_finalize(st);
    if (code != PL_OK)
        return code;
    return pl_fail(err, PL_ELIMIT,
                   "%s of %s failed, more than %s (%s); see `molsieve failures`, raise the limit or use --keep-going",
                   pl_count_str(u->n_failed, a), pl_count_str(u->n_items, b), limit, reasons[0] ? reasons : "no reasons");
}

static pl_code check_limits(units *u, pl_error *err)
{
    double most = u->r->wf->limits.max_fraction;
    int64_t count = u->r->wf->limits.max_count;

    if (u->r->limit.code != PL_OK)
        return PL_OK; /* known, and told to go on */
    if (count >= 0 && u->n_failed > count)
        return fail_limit(u, "limits.failures.max_count", err);
    if (most >= 0 && u->n_failed >= LEAST_FAILURES && (double)u->n_failed > most * (double)u->n_items)
        return fail_limit(u, "limits.failures.max_fraction", err);
    return PL_OK;
}

static pl_code write_unit(void *ctx, int slot, pl_error *err)
{
    units *u = ctx;
    pl_unit *unit = &u->unit[slot];
    pl_code code;

    u->gap = u->gap || u->dropped[slot];
    u->cut = u->cut || u->gap;
    if (u->gap)
        return PL_OK;
    code = store_unit(u, unit, u->wall[slot], err);
    if (code != PL_OK) {
        pl_db_rollback(u->r->store->db);
        pl_db_rollback(u->r->store->features);
        return code;
    }
    u->committed++;
    u->n_items += unit->n_ok + unit->n_failed;
    u->n_failed += unit->n_failed;
    pl_progress_set(u->r->progress, u->n_items, u->total, NULL);
    code = check_limits(u, err);
    if (code == PL_ELIMIT && u->r->opts->keep_going) {
        if (err != NULL)
            u->r->limit = *err;
        u->r->limit.code = PL_ELIMIT;
        code = PL_OK;
    }
    if (code == PL_OK && unit->index % DISK_EVERY == 0)
        code = pl_disk_check(u->r, err);
    return code;
}

/* ---- one stage ---- */

static pl_code make_slots(units *u, pl_error *err)
{
    size_t n = (size_t)u->depth;

    u->unit = calloc(n, sizeof *u->unit);
    u->dropped = calloc(n, sizeof *u->dropped);
    u->wall = calloc(n, sizeof *u->wall);
    u->worker = calloc((size_t)u->env->workers, u->worker_size);
    if (!u->unit || !u->dropped || !u->wall || !u->worker)
        return pl_fail(err, PL_ENOMEM, "units in flight");
    for (int i = 0; i < u->depth; i++)
        if ((u->unit[i].mem = pl_arena_new(1 << 18)) == NULL)
            return pl_fail(err, PL_ENOMEM, "units in flight");
    return PL_OK;
}

static pl_code open_workers(units *u, pl_error *err)
{
    pl_code code = PL_OK;

    while (code == PL_OK && u->n_open < u->env->workers) {
        void *worker = u->worker + (size_t)u->n_open++ * u->worker_size;
        if (u->stage->worker_open != NULL)
            code = u->stage->worker_open(worker, u->state, err);
    }
    return code;
}

static void drop_slots(units *u)
{
    for (int i = 0; i < u->n_open; i++)
        if (u->stage->worker_close != NULL)
            u->stage->worker_close(u->worker + (size_t)i * u->worker_size);
    for (int i = 0; u->unit != NULL && i < u->depth; i++)
        pl_arena_free(u->unit[i].mem);
    free(u->unit);
    free(u->dropped);
    free(u->wall);
    free(u->worker);
}

/* What earlier runs committed, and how much there will be. */
static pl_code take_stock(units *u, pl_error *err)
{
    pl_estimate guess = { .n_items = -1 };
    long long id = u->env->stage_id;
    pl_code code = pl_db_int(u->r->store->db, &u->n_items, err,
                             "SELECT sum(n_ok+n_failed) FROM unit WHERE stage_id=%lld", id);

    if (code == PL_OK)
        code = pl_db_int(u->r->store->db, &u->n_failed, err, "SELECT sum(n_failed) FROM unit WHERE stage_id=%lld", id);
    if (code == PL_OK && u->stage->estimate != NULL)
        code = u->stage->estimate(u->r->wf, u->env->step, u->r->store, &guess, u->env->mem, err);
    u->total = guess.guessed ? -1 : guess.n_items;
    u->next_index = u->committed = u->env->units_done;
    u->last_commit = pl_clock();
    return code;
}

static void summarize(units *u)
{
    char items[32], bad[32];

    (void)snprintf(u->r->summary, sizeof u->r->summary, "%s %s%s%s%s", pl_count_str(u->n_items, items),
                   u->stage->item ? u->stage->item : "items", u->n_failed ? ", " : "",
                   u->n_failed ? pl_count_str(u->n_failed, bad) : "", u->n_failed ? " failed" : "");
}

pl_code pl_units_run(pl_runner *r, pl_env *env, void *state, pl_error *err)
{
    units u = { .r = r, .env = env, .stage = env->step->stage, .state = state, .depth = 2 * env->workers + 2 };
    pl_pipe pipe = { .ctx = &u, .read = read_unit, .compute = work_unit, .write = write_unit };
    pl_code code;

    u.worker_size = (u.stage->worker_size + 64) & ~(size_t)63; /* workers do not share cache lines */
    code = take_stock(&u, err);
    if (code == PL_OK)
        code = make_slots(&u, err);
    if (code == PL_OK)
        code = open_workers(&u, err);
    if (code == PL_OK) {
        pl_progress_start(r->progress, u.stage->name, u.stage->item, u.n_items, u.total);
        code = pl_pipe_run(&pipe, env->workers, u.depth, err);
    }
    drop_slots(&u);
    if (code == PL_OK && (u.gap || !u.ended))
        code = pl_fail(err, PL_ESTOP, "stopped");
    if (code == PL_OK)
        code = pl_step_done(r, env, u.committed, state, err);
    summarize(&u);
    return code;
}
