/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run/level.h"

#include <stdio.h>
#include <string.h>

#include "pipeline/base/log.h"
#include "pipeline/store/store_parts.h"

const char *pl_levels_json(const pl_workflow *wf, pl_arena *mem)
{
    pl_text out = { 0 };
    const char *json;
    int n = 0;

    pl_text_add(&out, "{");
    for (int i = 0; i < wf->n_steps; i++) {
        const pl_stage *stage = wf->step[i].stage;
        const char *level = stage->level != NULL ? stage->level(&wf->step[i], mem) : NULL;
        if (level == NULL || level[0] == '\0')
            continue;
        pl_text_add(&out, n++ ? "," : "");
        pl_text_add_json(&out, stage->name);
        pl_text_add(&out, ":");
        pl_text_add_json(&out, level);
    }
    pl_text_add(&out, "}");
    json = pl_text_ok(&out) ? pl_strdup(mem, pl_text_str(&out)) : NULL;
    pl_text_free(&out);
    return json;
}

/* The levels of each stage: of the runs that committed its units or, for a stage without units, of the runs with events of it. */
#define LEVELS                                                                                                                \
    "(SELECT DISTINCT s.stage_id, s.name, json_extract(r.kernels,'$.'||s.name) AS level FROM stage s JOIN run r ON CASE "     \
    "WHEN EXISTS(SELECT 1 FROM unit u WHERE u.stage_id=s.stage_id) THEN r.run_id IN (SELECT run_id FROM unit u WHERE "        \
    "u.stage_id=s.stage_id) ELSE r.run_id>=s.run_id AND r.run_id IN (SELECT e.run_id FROM event e WHERE e.stage=s.name) END " \
    "WHERE level IS NOT NULL ORDER BY s.stage_id, level)"

pl_code pl_levels_of(pl_store *s, int64_t stage_id, const char **out, pl_arena *mem, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    pl_code code = pl_db_prepare(s->db, &st, "SELECT coalesce(group_concat(level,'; '),'') FROM " LEVELS " WHERE stage_id=?1", err);

    *out = "";
    if (code == PL_OK)
        (void)sqlite3_bind_int64(st, 1, stage_id);
    if (pl_db_next(st, &code, err))
        *out = pl_strdup(mem, (const char *)sqlite3_column_text(st, 0));
    (void)sqlite3_finalize(st);
    return *out == NULL ? pl_fail(err, PL_ENOMEM, "the levels of a stage") : code;
}

static const char advice[] =
    "results may differ from the seventh digit on; to avoid this, set `kernels` of the stage to one set of kernels "
    "(`molsieve help score`)";

static const char *advice_of(const pl_stage *stage)
{
    return stage != NULL && stage->level_advice != NULL ? stage->level_advice : advice;
}

pl_code pl_level_resume(pl_env *env, pl_error *err)
{
    const pl_stage *stage = env->step->stage;
    const char *now = stage->level != NULL ? stage->level(env->step, env->mem) : NULL, *was = "";
    pl_code code = now != NULL ? pl_levels_of(env->store, env->stage_id, &was, env->mem, err) : PL_OK;

    if (code != PL_OK || now == NULL || now[0] == '\0' || was[0] == '\0' || strcmp(was, now) == 0)
        return code;
    pl_event_add(env, PL_WARN, "computed on %s before, now on %s: %s", was, now, advice_of(stage));
    return PL_OK;
}

pl_code pl_levels_compare(const pl_workflow *wf, pl_store *s, int64_t run_id, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    pl_code code = pl_db_prepare(
        s->db, &st, "SELECT name, group_concat(level,' and '), count(*) FROM " LEVELS " GROUP BY stage_id HAVING count(*)>1", err);

    while (pl_db_next(st, &code, err)) {
        char text[512];
        const char *name = (const char *)sqlite3_column_text(st, 0);
        const pl_step *step = pl_workflow_step(wf, name);
        (void)snprintf(text, sizeof text, "shards were computed on %.220s: %s", (const char *)sqlite3_column_text(st, 1),
                       advice_of(step != NULL ? step->stage : NULL));
        pl_log(PL_WARN, "%-9s %s", name, text);
        pl_event_row(s, run_id, "warn", name, text);
    }
    (void)sqlite3_finalize(st);
    return code;
}
