/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "pipeline/base/stop.h"
#include "pipeline/run/progress.h"
#include "pipeline/run/runner.h"
#include "pipeline/store/sums.h"

enum {
    MIN_FAILURES = 20, /* max_fraction applies only from so many failures on: 1 of 3 means little */
    DISK_EVERY = 16    /* units between two checks of the free disk space */
};

/* ---- work ---- */

pl_code pl_unit_work(const pl_active *a, int worker, pl_unit *unit, double *wall, bool *dropped, pl_error *err)
{
    double began = pl_clock();
    pl_code code;

    *dropped = *a->env.stop != 0;
    if (*dropped)
        return PL_OK;
    code = a->stage->work != NULL ? a->stage->work(a->worker + (size_t)worker * a->worker_size, unit, err) : PL_OK;
    *wall = pl_clock() - began;
    *dropped = code == PL_ESTOP && *a->env.stop;
    return *dropped ? PL_OK : code;
}

/* ---- commit ---- */

static pl_code put_unit_row(pl_runner *r, pl_active *a, const pl_unit *unit, double wall, int64_t n_blocks, pl_error *err)
{
    static const char sql[] = "INSERT INTO unit(stage_id,unit,first,last,n_ok,n_failed,wall_s,run_id)"
                              " VALUES(?,?,?,?,?,?,?,?)";
    double now = pl_clock();
    sqlite3_stmt *st;
    pl_code code = a->put_unit != NULL ? PL_OK : pl_db_prepare(r->store->db, &a->put_unit, sql, err);

    if (code != PL_OK)
        return code;
    st = a->put_unit;
    const int64_t value[] = { a->env.stage_id, unit->index, unit->first, unit->last, unit->n_ok, unit->n_failed };
    for (int i = 0; i < 6; i++)
        (void)sqlite3_bind_int64(st, i + 1, value[i]);
    (void)sqlite3_bind_double(st, 7, wall);
    (void)sqlite3_bind_int64(st, 8, r->run_id);
    code = pl_db_run(st, err);
    if (code != PL_OK)
        return code;
    code = pl_db_execf(r->store->db, err, "UPDATE stage SET wall_s=wall_s+%.6f, n_blocks=n_blocks+%lld WHERE stage_id=%lld",
                       now - a->last_commit, (long long)n_blocks, (long long)a->env.stage_id);
    a->last_commit = now;
    return code;
}

/* The two transactions of a unit. Blocks are committed first: every stored unit has
 * its blocks, and blocks without a stored unit are overwritten later. */
static pl_code store_unit(pl_runner *r, pl_active *a, pl_unit *unit, double wall, pl_error *err)
{
    pl_store *s = r->store;
    int64_t puts = s->n_puts;
    pl_code code = pl_db_begin(s->db, err);

    if (code == PL_OK && s->features != NULL)
        code = pl_db_begin(s->features, err);
    pl_sums_gather(s->sums, true);
    if (code == PL_OK)
        code = a->stage->commit != NULL ? a->stage->commit(a->state, unit, err) : PL_OK;
    if (code == PL_OK && s->features != NULL && !sqlite3_get_autocommit(s->features))
        code = pl_db_commit(s->features, err);
    if (code == PL_OK) {
        pl_fault(a->stage->name, "unit.after_features");
        code = put_unit_row(r, a, unit, wall, s->n_puts - puts, err);
    }
    if (code == PL_OK)
        code = pl_sums_put(s->sums, err);
    if (code == PL_OK) {
        pl_fault(a->stage->name, "unit.before_commit");
        code = pl_db_commit(s->db, err);
    }
    if (code == PL_OK)
        pl_fault(a->stage->name, "unit.after_commit");
    return code;
}

static pl_code fail_limit(const pl_runner *r, const pl_active *a, const char *limit, pl_error *err)
{
    sqlite3_stmt *st;
    char reasons[160] = "", bad[32], all[32];
    int at = 0;
    pl_code code = pl_db_prepare(r->store->db, &st,
                                 "SELECT code,count(*) FROM failure WHERE stage=? GROUP BY code"
                                 " ORDER BY 2 DESC,1 LIMIT 3",
                                 err);

    if (code == PL_OK)
        (void)sqlite3_bind_text(st, 1, a->stage->name, -1, SQLITE_STATIC);
    while (pl_db_next(st, &code, err) && at < (int)sizeof reasons)
        at += snprintf(reasons + at, sizeof reasons - (size_t)at, "%s%s %lld", at ? ", " : "",
                       (const char *)sqlite3_column_text(st, 0), (long long)sqlite3_column_int64(st, 1));
    (void)sqlite3_finalize(st);
    if (code != PL_OK)
        return code;
    return pl_fail(err, PL_ELIMIT,
                   "%s of %s failed, more than %s allows (%s); see `molsieve failures`; raise the limit or use --keep-going",
                   pl_count_str(a->n_failed, bad), pl_count_str(a->n_items, all), limit, reasons[0] ? reasons : "no reasons");
}

static pl_code judge_limits(const pl_runner *r, const pl_active *a, pl_error *err)
{
    double max_fraction = r->wf->limits.max_fraction;
    int64_t count = r->wf->limits.max_count;

    if (r->limit.code != PL_OK)
        return PL_OK; /* exceeded already, and --keep-going */
    if (count >= 0 && a->n_failed > count)
        return fail_limit(r, a, "limits.failures.max_count", err);
    if (max_fraction >= 0 && a->n_failed >= MIN_FAILURES && (double)a->n_failed > max_fraction * (double)a->n_items)
        return fail_limit(r, a, "limits.failures.max_fraction", err);
    return PL_OK;
}

/* Called after each unit and before the first one: a limit that stopped a run stops the next run, too. */
static pl_code check_limits(pl_runner *r, const pl_active *a, pl_error *err)
{
    pl_code code = judge_limits(r, a, err);

    if (code != PL_ELIMIT || !r->opts->keep_going)
        return code;
    if (err != NULL)
        r->limit = *err;
    r->limit.code = PL_ELIMIT;
    return PL_OK;
}

pl_code pl_references_look_up(pl_runner *r, bool on, pl_error *err)
{
    pl_code code = PL_OK;

    if (r->unchecked == on)
        code = pl_db_exec(r->store->db, on ? "PRAGMA foreign_keys=ON" : "PRAGMA foreign_keys=OFF", err);
    r->unchecked = code == PL_OK ? !on : r->unchecked;
    return code;
}

pl_code pl_unit_commit(pl_runner *r, pl_active *a, pl_unit *unit, double wall, pl_error *err)
{
    double began = pl_clock();
    pl_code code = pl_references_look_up(r, !a->stage->own_references, err);

    if (code == PL_OK)
        code = store_unit(r, a, unit, wall, err);
    if (code != PL_OK) {
        pl_sums_gather(r->store->sums, false);
        pl_db_rollback(r->store->db);
        pl_db_rollback(r->store->features);
        return code;
    }
    a->main_s += pl_clock() - began;
    pl_stop_stuck(false);
    a->committed++;
    a->work_s += wall;
    a->n_items += unit->n_ok + unit->n_failed;
    a->n_failed += unit->n_failed;
    pl_progress_units(r->progress, a->stage->name, a->n_items, a->total, a->about);
    code = check_limits(r, a, err);
    if (code == PL_OK && unit->index % DISK_EVERY == 0)
        code = pl_disk_check(r, err);
    return code;
}

/* ---- one stage ---- */

static pl_code open_workers(pl_active *a, pl_error *err)
{
    pl_code code = PL_OK;

    a->worker_size = (a->stage->worker_size + 64) & ~(size_t)63; /* workers do not share cache lines */
    a->worker = calloc((size_t)a->env.workers, a->worker_size);
    if (a->worker == NULL)
        return pl_fail(err, PL_ENOMEM, "%d workers", a->env.workers);
    while (code == PL_OK && a->n_workers < a->env.workers) {
        void *worker = a->worker + (size_t)a->n_workers++ * a->worker_size;
        if (a->stage->worker_open != NULL)
            code = a->stage->worker_open(worker, a->state, err);
    }
    return code;
}

void pl_units_close(pl_active *a)
{
    for (int i = 0; i < a->n_workers; i++)
        if (a->stage->worker_close != NULL)
            a->stage->worker_close(a->worker + (size_t)i * a->worker_size);
    free(a->worker);
    (void)sqlite3_finalize(a->put_unit);
    a->put_unit = NULL;
    a->worker = NULL;
    a->n_workers = 0;
}

pl_code pl_units_expect(pl_runner *r, pl_active *a, pl_error *err)
{
    pl_estimate guess = { .n_items = -1 };
    pl_code code = PL_OK;

    if (a->stage->estimate != NULL)
        code = a->stage->estimate(r->wf, a->env.step, r->store, &guess, a->env.mem, err);
    a->total = guess.n_items;
    if (guess.guessed && r->opts->shard.n > 1 && guess.n_items > 0)
        a->total = guess.n_items / r->opts->shard.n;
    a->about = guess.guessed;
    return code;
}

pl_code pl_units_open(pl_runner *r, pl_active *a, pl_error *err)
{
    long long id = a->env.stage_id;
    pl_code code = pl_db_int(r->store->db, &a->n_items, err, "SELECT sum(n_ok+n_failed) FROM unit WHERE stage_id=%lld", id);

    if (code == PL_OK)
        code = pl_db_int(r->store->db, &a->n_failed, err, "SELECT sum(n_failed) FROM unit WHERE stage_id=%lld", id);
    if (code == PL_OK)
        code = check_limits(r, a, err);
    if (code == PL_OK)
        code = open_workers(a, err);
    a->next = a->oldest = a->committed = a->env.units_done;
    a->last_commit = pl_clock();
    if (code == PL_OK)
        pl_progress_start(r->progress, a->stage->name, a->stage->item, a->n_items, a->total, a->about);
    return code;
}
