/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "pipeline/base/log.h"
#include "pipeline/base/stop.h"
#include "pipeline/run/level.h"
#include "pipeline/run/progress.h"
#include "pipeline/run/runner.h"

static pl_code mark_done(pl_runner *r, const pl_active *a, pl_error *err)
{
    static const char sql[] = "UPDATE stage SET state='done', n_units=?, n_blocks=?, wall_s=wall_s+?, done_utc=?"
                              " WHERE stage_id=?";
    int64_t n_blocks = 0;
    sqlite3_stmt *st;
    char now[32];
    pl_code code = PL_OK;

    if (r->store->features != NULL)
        code = pl_block_count(r->store, NULL, a->env.step->key, &n_blocks, err);
    if (code == PL_OK)
        code = pl_db_prepare(r->store->db, &st, sql, err);
    if (code != PL_OK)
        return code;
    (void)sqlite3_bind_int64(st, 1, a->committed);
    (void)sqlite3_bind_int64(st, 2, n_blocks);
    (void)sqlite3_bind_double(st, 3, a->stage->scope == PL_WHOLE ? pl_clock() - a->began : 0);
    (void)sqlite3_bind_text(st, 4, pl_utc_now(now), -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(st, 5, a->env.stage_id);
    code = pl_db_run(st, err);
    (void)sqlite3_finalize(st);
    return code;
}

/* ---- the report at the end of a stage ---- */

/* ": 130,831 records, 12 failed; work 3m 50s, database 4s" */
static void add_units(const pl_active *a, pl_text *line)
{
    char text[32];

    pl_text_addf(line, ": %s %s", pl_count_str(a->n_items, text), a->stage->item != NULL ? a->stage->item : "items");
    if (a->n_failed > 0)
        pl_text_addf(line, ", %s failed", pl_count_str(a->n_failed, text));
    if (a->work_s + a->main_s >= 1) {
        pl_text_addf(line, "; work %s", pl_duration_str(a->work_s, text));
        pl_text_addf(line, ", database %s", pl_duration_str(a->main_s, text));
    }
}

static void say_end(pl_runner *r, const pl_active *a, pl_code code)
{
    const char *broken = code == PL_ESTOP ? "stopped after" : "failed after";
    pl_text line = { 0 };
    char spent[32];

    pl_text_addf(&line, "%s %s", code == PL_OK ? "done in" : broken, pl_duration_str(pl_clock() - a->began, spent));
    if (a->stage->scope == PL_PER_UNIT)
        add_units(a, &line);
    pl_progress_end(r->progress, a->stage->name, pl_text_str(&line));
    if (code == PL_OK)
        pl_heartbeat_stage_done(r->beat, a->stage->name);
    pl_text_free(&line);
}

pl_code pl_active_done(pl_runner *r, pl_active *a, pl_error *err)
{
    pl_code code = PL_OK;

    /* A whole stage may have left its transaction open (pl_stage.finish). */
    if (sqlite3_get_autocommit(r->store->db))
        code = pl_db_begin(r->store->db, err);
    if (code == PL_OK && a->stage->scope == PL_PER_UNIT && a->stage->finish != NULL)
        code = a->stage->finish(a->state, err);
    if (code == PL_OK)
        code = mark_done(r, a, err);
    if (code == PL_OK)
        pl_event_row(r->store, r->run_id, PL_FURTHER, a->stage->name, "done");
    pl_fault(a->stage->name, "finish.before_commit");
    if (code == PL_OK)
        code = pl_db_commit(r->store->db, err);
    pl_db_rollback(r->store->db);
    a->done = code == PL_OK;
    if (code != PL_OK)
        return code;
    pl_stop_stuck(false);
    pl_fault(a->stage->name, "finish.after_commit");
    say_end(r, a, PL_OK);
    return PL_OK;
}

/* Updates the statistics for the query planner and empties the WAL. It does not wait for
 * readers of the database: failing only costs speed. */
static void tidy_one(sqlite3 *db, const char *sql)
{
    if (db == NULL)
        return;
    (void)sqlite3_busy_timeout(db, 0);
    (void)pl_db_exec(db, sql, NULL);
    pl_db_patient(db);
}

static void tidy(pl_store *s)
{
    tidy_one(s->db, "ANALYZE");
    tidy_one(s->db, "PRAGMA wal_checkpoint(TRUNCATE)");
    tidy_one(s->features, "PRAGMA wal_checkpoint(TRUNCATE)");
}

/* ---- from open to close ---- */

/* Finds the row of a stage that resumes. A done stage that lost a file is marked as running again. */
static pl_code find_resumed(pl_runner *r, pl_env *env, pl_error *err)
{
    pl_stage_row row;
    pl_code code = pl_stage_row_get(r->store, env->step->stage->name, &row, r->mem, err);

    env->stage_id = row.stage_id;
    if (row.done)
        code = pl_db_execf(r->store->db, err, "UPDATE stage SET state='running' WHERE stage_id=%lld", (long long)row.stage_id);
    if (code == PL_OK)
        code = pl_db_int(r->store->db, &env->units_done, err, "SELECT count(*) FROM unit WHERE stage_id=%lld",
                         (long long)row.stage_id);
    return code;
}

static pl_code prepare_env(pl_runner *r, int at, pl_env *env, pl_error *err)
{
    *env = (pl_env){ .wf = r->wf,
                     .step = &r->wf->step[at],
                     .store = r->store,
                     .seed = (uint64_t)r->wf->seed,
                     .workers = r->workers,
                     .run_id = r->run_id,
                     .stop = pl_stop_flag(),
                     .progress = r->progress,
                     .shard = r->opts->shard.k,
                     .n_shards = r->opts->shard.n,
                     .team = r->opts->team };
    env->mem = pl_arena_new(1 << 16);
    if (env->mem == NULL)
        return pl_fail(err, PL_ENOMEM, "the stage");
    if (r->plan[at].state == PL_STEP_RESUME)
        return find_resumed(r, env, err);
    return pl_step_restart(r, at, &env->stage_id, err);
}

static pl_code active_open(pl_runner *r, pl_active *a, int at, pl_error *err)
{
    bool again, resumes = r->plan[at].state == PL_STEP_RESUME;
    pl_code code;

    a->stage = r->wf->step[at].stage;
    a->began = pl_clock();
    a->state = calloc(1, a->stage->state_size + 1);
    code = a->state != NULL ? prepare_env(r, at, &a->env, err) : pl_fail(err, PL_ENOMEM, "the stage");
    if (code != PL_OK)
        return code;
    again = r->plan[at].state == PL_STEP_STALE && r->plan[at].own_reason;
    a->opened = true;
    r->plan[at].state = PL_STEP_RESUME; /* in case it is opened again in this run */
    pl_log(again ? PL_INFO : PL_DEBUG, "stage %s: %s%.160s", a->stage->name, again ? "runs again: " : "", r->plan[at].reason);
    pl_event_row(r->store, r->run_id, "info", a->stage->name, r->plan[at].reason);
    if (resumes)
        code = pl_level_resume(&a->env, err);
    return code == PL_OK && a->stage->open != NULL ? a->stage->open(a->state, &a->env, err) : code;
}

static void active_close(pl_active *a)
{
    if (a->opened && a->stage->close != NULL)
        a->stage->close(a->state);
    pl_arena_free(a->env.mem);
    free(a->state);
}

static pl_code run_whole(pl_runner *r, pl_active *a, pl_error *err)
{
    pl_code code;

    pl_progress_start(r->progress, a->stage->name, a->stage->item, 0, -1, false);
    code = a->stage->finish(a->state, err);
    if (code == PL_OK && r->store->features != NULL && !sqlite3_get_autocommit(r->store->features))
        code = pl_db_commit(r->store->features, err);
    if (code != PL_OK) {
        pl_db_rollback(r->store->db);
        pl_db_rollback(r->store->features);
        return code;
    }
    return pl_active_done(r, a, err);
}

/* "stopped by signal TERM in stages read, prepare, graph; ..." */
static pl_code fail_stopped(const pl_active *a, int n, pl_error *err)
{
    char names[200] = "";
    int at = 0, many = 0;

    for (int i = 0; i < n; i++)
        if (a[i].stage != NULL && !a[i].done && at < (int)sizeof names)
            at += snprintf(names + at, sizeof names - (size_t)at, "%s%s", many++ ? ", " : "", a[i].stage->name);
    return pl_fail(err, PL_ESTOP, "stopped by %s in stage%s %s; run the same command again to continue", pl_stop_reason(),
                   many > 1 ? "s" : "", names);
}

/* If one of several stages that ran together fails, the others are reported as stopped. */
static void say_ends(pl_runner *r, pl_active *a, int n, int bad, pl_code code, const pl_error *err)
{
    for (int i = 0; i < n; i++) {
        bool why = code == PL_ESTOP || i == bad;
        if (!a[i].opened || a[i].done)
            continue;
        say_end(r, &a[i], why ? code : PL_ESTOP);
        pl_event_row(r->store, r->run_id, !why || code == PL_ESTOP ? "info" : "error", a[i].stage->name,
                     why && err != NULL ? err->text : "stopped, because another stage failed");
    }
}

pl_code pl_steps_run(pl_runner *r, const int *step, int n, int *bad, pl_error *err)
{
    pl_active *a = calloc((size_t)n, sizeof *a);
    pl_error local = { 0 }, *e = err != NULL ? err : &local;
    pl_code code = PL_OK;

    *bad = 0;
    if (a == NULL)
        return pl_fail(e, PL_ENOMEM, "the stage");
    if (*pl_stop_flag())
        code = pl_fail(e, PL_ESTOP, "stopped by %s before stage %s; run the same command again to continue", pl_stop_reason(),
                       r->wf->step[step[0]].stage->name);
    for (int i = 0; i < n && code == PL_OK; i++)
        code = active_open(r, &a[ *bad = i], step[i], e);
    if (code == PL_OK && a->stage->scope == PL_PER_UNIT)
        code = pl_store_mark(r->store, e);
    if (code == PL_OK)
        code = a->stage->scope == PL_WHOLE ? run_whole(r, a, e) : pl_stream_run(r, a, n, bad, e);
    if (code == PL_ESTOP && a->opened && pl_stop_reason() != NULL)
        code = fail_stopped(a, n, e);
    for (int i = 0; i < n; i++)
        active_close(&a[i]);
    say_ends(r, a, n, *bad, code, e);
    for (int i = 0; i < n; i++)
        if (a[i].done)
            r->plan[step[i]].state = PL_STEP_DONE;
    if (code == PL_OK)
        tidy(r->store);
    free(a);
    return code;
}
