/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <unistd.h>

#include "pipeline/run/explain_words.h"
#include "pipeline/run/level.h"
#include "pipeline/run/runner.h"

/* What decides whether steps run. */
typedef struct planner {
    pl_workflow *wf;
    pl_store *store;
    const pl_run_opts *opts;
    pl_step_plan *plan;
    pl_stage_row *row; /* [n_steps] */
    bool *gone;        /* [n_steps] blocks are missing in features.db and a step needs them */
    int64_t since;     /* the last run that is done or had another command line; see forced() */
    pl_arena *mem;
} planner;

/* Marks a step and all steps that it depends on. */
static void mark_wanted(const pl_workflow *wf, int i, bool *wanted)
{
    wanted[i] = true;
    for (int k = 0; k < wf->step[i].n_needs; k++)
        mark_wanted(wf, wf->step[i].needs[k], wanted);
}

static pl_code find_stage(const pl_workflow *wf, const char *name, const char *option, int *at, pl_error *err)
{
    const char *names[64];
    pl_text all = { 0 };
    int n = 0;
    pl_code code;

    *at = name != NULL ? pl_step_find(wf, name) : -1;
    if (name == NULL || *at >= 0)
        return PL_OK;
    for (; n < wf->n_steps && n < 64; n++) {
        names[n] = wf->step[n].stage->name;
        pl_text_addf(&all, "%s%s", n ? ", " : "", names[n]);
    }
    const char *close = pl_nearest(name, names, n);
    code = pl_fail(err, PL_ECONFIG, "%s %s: this workflow has no such stage%s%s; its stages: %s", option, name,
                   close != NULL ? ", did you mean " : "", close != NULL ? close : "", pl_text_str(&all));
    pl_text_free(&all);
    return code;
}

/* Whether --force or --from asks to run step i again. Only once: if the command was stopped and is given again, steps that
 * it had begun again (run_id > since) continue. */
static bool forced(const planner *p, int i)
{
    const char *name = p->wf->step[i].stage->name;

    if (p->opts == NULL || p->row[i].run_id > p->since)
        return false;
    if (p->opts->force != NULL && strcmp(name, p->opts->force) == 0)
        return true;
    return p->opts->from != NULL && i >= pl_step_find(p->wf, p->opts->from);
}

/* The first needed step that is not done, or -1. */
static int unready_need(const planner *p, int i)
{
    const pl_step *step = &p->wf->step[i];

    for (int k = 0; k < step->n_needs; k++)
        if (p->plan[step->needs[k]].state != PL_STEP_DONE)
            return step->needs[k];
    return -1;
}

/* Whether a begun per-unit step can continue although steps it needs are not done: those are begun per-unit steps, too. */
static bool can_continue(const planner *p, int i)
{
    const pl_step *step = &p->wf->step[i];
    bool together = step->stage->scope == PL_PER_UNIT && p->row[i].stage_id != 0 && !p->row[i].done && !forced(p, i) &&
                    !p->gone[i] && strcmp(p->row[i].key, step->key) == 0;

    for (int k = 0; k < step->n_needs && together; k++) {
        int need = step->needs[k];
        together = p->plan[need].state == PL_STEP_DONE ||
                   (p->plan[need].state == PL_STEP_RESUME && p->wf->step[need].stage->scope == PL_PER_UNIT);
    }
    return together;
}

static const char *need_reason(const planner *p, int need, bool had_row)
{
    const char *name = p->wf->step[need].stage->name;
    const char *how = p->plan[need].state == PL_STEP_STALE ? "runs again" : "is not complete yet";

    return pl_sprintf(p->mem, had_row || p->plan[need].state == PL_STEP_STALE ? "needs %s, which %s" : "never run", name, how);
}

static pl_code stale_reason(const planner *p, int i, const char **out, pl_error *err)
{
    pl_text lines = { 0 };
    int n = 0;
    pl_code code = pl_row_diff(&p->row[i], p->wf, &p->wf->step[i], &lines, &n, p->mem, err);
    const char *text = pl_text_str(&lines);
    int first = (int)strcspn(text, "\n");

    if (n > 1)
        *out = pl_sprintf(p->mem, "%.*s (and %d more)", first, text, n - 1);
    else
        *out = n == 1 ? pl_sprintf(p->mem, "%.*s", first, text) : "its key changed";
    pl_text_free(&lines);
    return code;
}

static const char *done_reason(const planner *p, int i, int64_t n_items)
{
    char items[32], units[32];
    const pl_stage *stage = p->wf->step[i].stage;

    if (stage->scope == PL_WHOLE)
        return "done";
    return pl_sprintf(p->mem, "done: %s %s in %s unit%s", pl_count_str(n_items, items), stage->item != NULL ? stage->item : "items",
                      pl_count_str(p->row[i].n_units, units), p->row[i].n_units == 1 ? "" : "s");
}

/* Counts the units and items in the database; it reads only the table unit. */
static pl_code count_units(const planner *p, int i, int64_t *n_items, pl_error *err)
{
    long long id = p->row[i].stage_id;
    pl_code code = pl_db_int(p->store->db, &p->plan[i].n_done, err, "SELECT count(*) FROM unit WHERE stage_id=%lld", id);

    if (code == PL_OK)
        code = pl_db_int(p->store->db, n_items, err, "SELECT sum(n_ok+n_failed) FROM unit WHERE stage_id=%lld", id);
    return code;
}

/* Asks a begun stage whether its committed units can be used. */
static pl_code find_doubt(const planner *p, int i, const char **reason, pl_error *err)
{
    const pl_step *step = &p->wf->step[i];

    *reason = NULL;
    if (p->row[i].done || step->stage->doubt == NULL)
        return PL_OK;
    return step->stage->doubt(p->wf, step, p->store, reason, p->mem, err);
}

/* Asks a done stage whether a file that it wrote is missing or was changed. */
static pl_code find_missing(const planner *p, int i, const char **reason, pl_error *err)
{
    const pl_step *step = &p->wf->step[i];
    const char *path = NULL, *what = "is missing";
    pl_code code = PL_OK;

    if (p->row[i].done && step->stage->missing != NULL)
        code = step->stage->missing(p->wf, step, &path, p->mem, err);
    if (code == PL_OK && path == NULL && p->row[i].done && step->stage->changed != NULL) {
        what = "was changed";
        code = step->stage->changed(p->wf, step, p->store, &path, p->mem, err);
    }
    *reason = path != NULL ? pl_sprintf(p->mem, "%s %s", path, what) : NULL;
    return path != NULL && *reason == NULL ? pl_fail(err, PL_ENOMEM, "the plan") : code;
}

/* Of a done stage whose results would have other last digits now: with another engine, or on another kind of machine. */
static pl_code judge_level(const planner *p, int i, pl_error *err)
{
    const pl_step *step = &p->wf->step[i];
    const bool asks = p->opts != NULL && step->stage->level != NULL; /* others only ask which stages are done */
    const char *now = asks ? step->stage->level(step, p->mem) : "", *was = "";
    pl_step_plan *out = &p->plan[i];
    pl_code code;

    if (now == NULL)
        return pl_fail(err, PL_ENOMEM, "the level of a stage");
    code = now[0] != '\0' ? pl_levels_of(p->store, p->row[i].stage_id, &was, p->mem, err) : PL_OK;
    out->other_level = code == PL_OK && was[0] != '\0' && strcmp(was, now) != 0;
    if (out->other_level && out->reason != NULL)
        out->reason = pl_sprintf(p->mem, "%s; computed on %s, now it would be %s (again: --from %s)", out->reason, was, now,
                                 step->stage->name);
    return code;
}

static pl_code judge_same_key(planner *p, int i, pl_error *err)
{
    pl_step_plan *out = &p->plan[i];
    const char *missing, *doubt = NULL;
    char a[32];
    int64_t n_items;
    pl_code code = count_units(p, i, &n_items, err);

    if (code == PL_OK)
        code = find_missing(p, i, &missing, err);
    if (code == PL_OK)
        code = find_doubt(p, i, &doubt, err);
    if (code != PL_OK)
        return code;
    if (doubt != NULL) {
        out->reason = doubt; /* the state stays PL_STEP_STALE */
        return PL_OK;
    }
    if (missing != NULL) {
        if (p->wf->step[i].stage->reset_sql != NULL)
            out->state = PL_STEP_RESUME; /* its rows stay, such as the last checkpoint of a training */
        out->reason = missing;
        return PL_OK;
    }
    if (p->row[i].done) {
        out->state = PL_STEP_DONE;
        out->n_units = p->row[i].n_units;
        out->reason = done_reason(p, i, n_items);
        return judge_level(p, i, err);
    }
    out->state = PL_STEP_RESUME;
    out->reason = p->wf->step[i].stage->scope == PL_WHOLE
                      ? "begun: continues from its checkpoint"
                      : pl_sprintf(p->mem, "begun: continues after %s units", pl_count_str(out->n_done, a));
    return PL_OK;
}

/* After a merge that did not need the blocks they are still in the databases of the shards. */
static const char *gone_reason(const planner *p)
{
    const char *shards = pl_sprintf(p->mem, "%s/shards", p->wf->workdir);

    return shards != NULL && access(shards, F_OK) == 0
               ? "its blocks are not in features.db; `molsieve merge` fetches them from the shards"
               : "its blocks are missing in features.db";
}

static pl_code judge(planner *p, int i, pl_error *err)
{
    pl_step_plan *out = &p->plan[i];
    bool had_row = p->row[i].stage_id != 0;
    int need = unready_need(p, i);

    *out = (pl_step_plan){ .state = had_row ? PL_STEP_STALE : PL_STEP_RUN,
                           .n_units = -1,
                           .own_reason = need < 0,
                           .estimate = { .n_items = -1, .n_units = -1 } };
    if (need >= 0 && can_continue(p, i))
        return judge_same_key(p, i, err);
    if (need >= 0)
        out->reason = need_reason(p, need, had_row);
    else if (!had_row)
        out->reason = "never run";
    else if (forced(p, i))
        out->reason = "requested by --force or --from";
    else if (p->gone[i])
        out->reason = gone_reason(p);
    else if (strcmp(p->row[i].key, p->wf->step[i].key) == 0)
        return judge_same_key(p, i, err);
    else
        return stale_reason(p, i, &out->reason, err);
    return PL_OK;
}

bool pl_step_reads(const pl_workflow *wf, int step, int need)
{
    const pl_step *s = &wf->step[step];
    bool needs = false;

    for (int k = 0; k < s->n_needs; k++)
        needs = needs || s->needs[k] == need;
    return needs && (s->stage->reads_blocks == NULL || s->stage->reads_blocks(s));
}

static bool is_read(const planner *p, int i, const bool *wanted)
{
    if (p->plan[i].state == PL_STEP_RESUME && wanted[i])
        return true;
    for (int j = i + 1; j < p->wf->n_steps; j++)
        if (wanted[j] && p->plan[j].state != PL_STEP_DONE && pl_step_reads(p->wf, j, i))
            return true;
    return false;
}

/* Blocks may be missing, since features.db may be deleted at any time. Finds the steps whose missing blocks are needed. */
static pl_code find_missing_blocks(planner *p, const bool *wanted, bool *changed, pl_error *err)
{
    pl_code code = PL_OK;

    *changed = false;
    for (int i = 0; code == PL_OK && i < p->wf->n_steps; i++) {
        bool has_rows = p->plan[i].state == PL_STEP_DONE || p->plan[i].state == PL_STEP_RESUME;
        int64_t n = 0;

        if (!has_rows || p->gone[i] || p->row[i].n_blocks == 0 || !is_read(p, i, wanted))
            continue;
        if (pl_store_has_features(p->store)) {
            code = pl_store_features(p->store, err);
            if (code == PL_OK)
                code = pl_block_count(p->store, NULL, p->row[i].key, &n, err);
        }
        if (n < p->row[i].n_blocks)
            p->gone[i] = *changed = true;
    }
    return code;
}

static pl_code judge_all(planner *p, bool *wanted, pl_error *err)
{
    bool changed = true;
    pl_code code = PL_OK;

    if (p->store != NULL && p->opts != NULL)
        code = pl_db_int(p->store->db, &p->since, err,
                         "SELECT max(run_id) FROM run WHERE state='done' OR argv_json<>"
                         "(SELECT argv_json FROM run ORDER BY run_id DESC LIMIT 1)");
    for (int i = 0; code == PL_OK && i < p->wf->n_steps; i++)
        code = pl_stage_row_get(p->store, p->wf->step[i].stage->name, &p->row[i], p->mem, err);
    while (code == PL_OK && changed) {
        for (int i = 0; code == PL_OK && i < p->wf->n_steps; i++)
            code = judge(p, i, err);
        if (code == PL_OK)
            code = find_missing_blocks(p, wanted, &changed, err);
    }
    for (int i = 0; code == PL_OK && i < p->wf->n_steps; i++)
        if (p->plan[i].reason == NULL)
            return pl_fail(err, PL_ENOMEM, "the plan");
    return code;
}

pl_code pl_plan_estimate(const pl_workflow *wf, pl_store *store, pl_step_plan *steps, pl_arena *mem, pl_error *err)
{
    pl_code code = PL_OK;

    for (int i = 0; code == PL_OK && i < wf->n_steps; i++)
        if (wf->step[i].stage->estimate != NULL && steps[i].state != PL_STEP_DONE)
            code = wf->step[i].stage->estimate(wf, &wf->step[i], store, &steps[i].estimate, mem, err);
    return code;
}

pl_code pl_plan_steps_with(pl_workflow *wf, pl_store *store, const pl_run_opts *opts, pl_step_plan *out, bool *wanted,
                           pl_arena *mem, pl_error *err)
{
    planner p = { .wf = wf, .store = store, .opts = opts, .plan = out, .mem = mem };
    int until, other;
    pl_code code;

    p.row = PL_NEW(mem, pl_stage_row, wf->n_steps);
    p.gone = PL_NEW(mem, bool, wf->n_steps);
    if (p.row == NULL || p.gone == NULL)
        return pl_fail(err, PL_ENOMEM, "the plan");
    code = find_stage(wf, opts != NULL ? opts->until : NULL, "--until", &until, err);
    if (code == PL_OK)
        code = find_stage(wf, opts != NULL ? opts->from : NULL, "--from", &other, err);
    if (code == PL_OK)
        code = find_stage(wf, opts != NULL ? opts->force : NULL, "--force", &other, err);
    if (code != PL_OK)
        return code;
    for (int i = 0; i < wf->n_steps; i++)
        wanted[i] = until < 0;
    if (until >= 0)
        mark_wanted(wf, until, wanted);
    for (int i = 0; opts != NULL && opts->shard.n > 0 && i < wf->n_steps; i++)
        wanted[i] = wanted[i] && pl_step_in_shard(wf, i);
    return judge_all(&p, wanted, err);
}

pl_code pl_plan_steps(pl_workflow *wf, pl_store *store, pl_step_plan *out, pl_arena *mem, pl_error *err)
{
    bool *wanted = PL_NEW(mem, bool, wf->n_steps);

    if (wanted == NULL)
        return pl_fail(err, PL_ENOMEM, "the plan");
    return pl_plan_steps_with(wf, store, NULL, out, wanted, mem, err);
}

/* ---- explain ---- */

static void explain_row(const pl_stage_row *row, const pl_step *step, const char *lines, int n, pl_text *out)
{
    if (strcmp(row->key, step->key) == 0) {
        pl_text_addf(out, "  nothing that affects its result has changed (key %.12s)\n", step->key);
        return;
    }
    pl_text_addf(out, "  %d difference%s from what is stored (key %.12s, now %.12s):\n", n, n == 1 ? "" : "s", row->key, step->key);
    for (const char *at = lines; *at != '\0';) {
        int len = (int)strcspn(at, "\n");
        pl_text_addf(out, "    %.*s\n", len, at);
        at += len + (at[len] == '\n');
    }
}

pl_code pl_explain(pl_workflow *wf, pl_store *store, const char *stage, pl_text *out, pl_arena *mem, pl_error *err)
{
    static const char *const words[] = { "is done and reused", "continues", "will run", "will run again" };
    pl_step_plan *plan = PL_NEW(mem, pl_step_plan, wf->n_steps);
    pl_stage_row row = { 0 };
    pl_text lines = { 0 };
    int at, n = 0;
    pl_code code = plan != NULL ? find_stage(wf, stage, "explain", &at, err) : pl_fail(err, PL_ENOMEM, "the plan");

    if (code == PL_OK)
        code = pl_plan_steps(wf, store, plan, mem, err);
    if (code == PL_OK)
        code = pl_stage_row_get(store, stage, &row, mem, err);
    if (row.stage_id != 0)
        code = pl_row_diff(&row, wf, &wf->step[at], &lines, &n, mem, err);
    if (code == PL_OK) {
        const char *reason = strncmp(plan[at].reason, "done: ", 6) == 0 ? plan[at].reason + 6 : plan[at].reason;
        const bool bare = plan[at].state == PL_STEP_DONE && strcmp(reason, "done") == 0;
        pl_text_addf(out, "%s %s", stage, words[plan[at].state]);
        if (!bare)
            pl_text_addf(out, ": %s", reason);
        pl_text_add(out, "\n");
        if (row.stage_id != 0)
            explain_row(&row, &wf->step[at], pl_text_str(&lines), n, out);
        pl_explain_words(out, "its result depends on these settings", wf->step[at].params_json);
        pl_explain_words(out, "and on", wf->step[at].extra_json);
    }
    pl_text_free(&lines);
    return code;
}
