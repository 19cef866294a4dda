/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "pipeline/base/log.h"
#include "pipeline/engine.h"
#include "pipeline/progress.h"
#include "pipeline/stop.h"

static pl_code mark_done(pl_runner *r, const pl_env *env, int64_t n_units, pl_error *err)
{
    static const char sql[] = "UPDATE stage SET state='done', n_units=?, n_blocks=?, wall_s=wall_s+?, done_utc=?"
                              " WHERE stage_id=?";
    int64_t n_blocks = 0;
    sqlite3_stmt *st;
    char now[32];
    pl_code code = PL_OK;

    if (r->store->features != NULL)
        code = pl_block_count(r->store, NULL, env->step->key, &n_blocks, err);
    if (code == PL_OK)
        code = pl_db_prepare(r->store->db, &st, sql, err);
    if (code != PL_OK)
        return code;
    (void)sqlite3_bind_int64(st, 1, n_units);
    (void)sqlite3_bind_int64(st, 2, n_blocks);
    (void)sqlite3_bind_double(st, 3, env->step->stage->scope == PL_WHOLE ? pl_clock() - r->began : 0);
    (void)sqlite3_bind_text(st, 4, pl_utc_now(now), -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(st, 5, env->stage_id);
    code = pl_db_run(st, err);
    (void)sqlite3_finalize(st);
    return code;
}

pl_code pl_step_done(pl_runner *r, pl_env *env, int64_t n_units, void *state, pl_error *err)
{
    const pl_stage *stage = env->step->stage;
    pl_code code = PL_OK;

    /* A whole stage may have left its own transaction open for us. */
    if (sqlite3_get_autocommit(r->store->db))
        code = pl_db_begin(r->store->db, err);
    if (code == PL_OK && stage->scope == PL_PER_UNIT && stage->finish != NULL)
        code = stage->finish(state, err);
    if (code == PL_OK)
        code = mark_done(r, env, n_units, err);
    if (code == PL_OK)
        pl_event_row(r->store, r->run_id, "info", stage->name, "done");
    pl_fault(stage->name, "finish.before_commit");
    if (code == PL_OK)
        code = pl_db_commit(r->store->db, err);
    pl_db_rollback(r->store->db);
    if (code == PL_OK)
        pl_fault(stage->name, "finish.after_commit");
    return code;
}

/* So that queries are planned well and the file is whole without its WAL. A
 * failure here costs speed only: the stage is done. */
static void tidy(pl_store *s)
{
    (void)pl_db_exec(s->db, "ANALYZE", NULL);
    (void)pl_db_exec(s->db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL);
    if (s->features != NULL)
        (void)pl_db_exec(s->features, "PRAGMA wal_checkpoint(TRUNCATE)", NULL);
}

static pl_code run_whole(pl_runner *r, pl_env *env, void *state, pl_error *err)
{
    pl_code code;

    pl_progress_start(r->progress, env->step->stage->name, env->step->stage->item, 0, -1);
    code = env->step->stage->finish(state, err);
    if (code == PL_OK && r->store->features != NULL && !sqlite3_get_autocommit(r->store->features))
        code = pl_db_commit(r->store->features, err);
    if (code != PL_OK) {
        pl_db_rollback(r->store->db);
        pl_db_rollback(r->store->features);
        return code;
    }
    return pl_step_done(r, env, 0, state, err);
}

static pl_code find_resumed(pl_runner *r, pl_env *env, pl_error *err)
{
    pl_stage_row row;
    pl_code code = pl_stage_row_get(r->store, env->step->stage->name, &row, r->mem, err);

    env->stage_id = row.stage_id;
    if (code == PL_OK)
        code = pl_db_int(r->store->db, &env->units_done, err, "SELECT count(*) FROM unit WHERE stage_id=%lld",
                         (long long)row.stage_id);
    return code;
}

static pl_code prepare_env(pl_runner *r, int at, pl_env *env, pl_error *err)
{
    *env = (pl_env){ .wf = r->wf, .step = &r->wf->step[at], .store = r->store, .seed = (uint64_t)r->wf->seed,
                     .workers = r->workers, .run_id = r->run_id, .stop = pl_stop_flag(), .progress = r->progress };
    env->mem = pl_arena_new(1 << 16);
    if (env->mem == NULL)
        return pl_fail(err, PL_ENOMEM, "the stage");
    if (r->plan[at].state == PL_STEP_RESUME)
        return find_resumed(r, env, err);
    return pl_step_restart(r, at, &env->stage_id, err);
}

static void say_end(pl_runner *r, const pl_env *env, pl_code code, const pl_error *err)
{
    char spent[32], line[512];

    (void)pl_duration_str(pl_clock() - r->began, spent);
    if (code == PL_OK)
        (void)snprintf(line, sizeof line, "done in %s%s%s", spent, r->summary[0] ? ": " : "", r->summary);
    else
        (void)snprintf(line, sizeof line, "%s after %s", code == PL_ESTOP ? "stopped" : "failed", spent);
    pl_progress_end(r->progress, line);
    if (code != PL_OK)
        pl_event_row(r->store, r->run_id, code == PL_ESTOP ? "info" : "error", env->step->stage->name,
                     err ? err->text : line);
}

pl_code pl_step_run(pl_runner *r, int at, pl_error *err)
{
    const pl_stage *stage = r->wf->step[at].stage;
    void *state = calloc(1, stage->state_size + 1);
    pl_env env = { 0 };
    pl_error local = { 0 }, *e = err ? err : &local;
    pl_code code;

    r->began = pl_clock();
    r->summary[0] = '\0';
    if (state == NULL)
        code = pl_fail(e, PL_ENOMEM, "the stage");
    else if (*pl_stop_flag())
        code = pl_fail(e, PL_ESTOP, "stopped by %s before stage %s; run the same command again to continue",
                       pl_stop_reason(), stage->name);
    else
        code = prepare_env(r, at, &env, e);
    if (code == PL_OK) {
        pl_log(PL_DEBUG, "stage %s: %s", stage->name, r->plan[at].reason);
        pl_event_row(r->store, r->run_id, "info", stage->name, r->plan[at].reason);
        code = stage->open ? stage->open(state, &env, e) : PL_OK;
        if (code == PL_OK)
            code = stage->scope == PL_WHOLE ? run_whole(r, &env, state, e) : pl_units_run(r, &env, state, e);
        if (stage->close)
            stage->close(state);
        if (code == PL_ESTOP && pl_stop_reason() != NULL)
            code = pl_fail(e, PL_ESTOP, "stopped by %s in stage %s; run the same command again to continue",
                           pl_stop_reason(), stage->name);
        say_end(r, &env, code, e);
        if (code == PL_OK)
            tidy(r->store);
    }
    pl_arena_free(env.mem);
    free(state);
    return code;
}
