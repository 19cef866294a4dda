/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/commands/output/plan_print.h"

#include <string.h>
#include <unistd.h>

#include "pipeline/base/par.h"

static const char *const state_word[] = { "done", "resume", "run", "again" };

pl_code st_plan_make(st_plan *out, const pl_app *app, pl_workflow *wf, const pl_run_opts *opts, pl_arena *mem, pl_error *err)
{
    pl_store *store = NULL;
    pl_code code = PL_OK;

    *out = (st_plan){ .wf = wf, .workers = opts->workers > 0 ? opts->workers : (int)wf->workers };
    out->workers = out->workers > 0 ? out->workers : pl_cpu_count();
    out->step = PL_NEW(mem, pl_step_plan, wf->n_steps);
    out->wanted = PL_NEW(mem, bool, wf->n_steps);
    if (out->step == NULL || out->wanted == NULL)
        return pl_fail(err, PL_ENOMEM, "the plan");
    if (access(wf->storage.results, F_OK) == 0)
        code = pl_store_open_read(&store, wf->storage.results, app->schema, err);
    if (code == PL_OK)
        code = pl_plan_keys(wf, store, mem, err);
    if (code == PL_OK)
        code = pl_plan_steps_with(wf, store, opts, out->step, out->wanted, mem, err);
    if (code == PL_OK)
        code = pl_removed_find(&out->removed, store, wf, app->stages, mem, err);
    if (code == PL_OK)
        code = pl_plan_estimate(wf, store, out->step, mem, err);
    pl_store_close(store);
    return code;
}

/* ---- totals ---- */

typedef struct totals {
    int n_run;
    double results, features, seconds;
    pl_text untimed; /* ", without train": stages without an estimate of their duration */
} totals;

static bool will_run(const st_plan *p, int i) { return p->wanted[i] && p->step[i].state != PL_STEP_DONE; }

static totals add_up(const st_plan *p)
{
    totals t = { 0 };

    for (int i = 0; i < p->wf->n_steps; i++) {
        const pl_estimate *e = &p->step[i].estimate;
        if (!will_run(p, i))
            continue;
        t.n_run++;
        if (e->seconds <= 0 && p->wf->step[i].stage->estimate != NULL)
            pl_text_addf(&t.untimed, "%s%s", t.untimed.len ? ", " : " without ", p->wf->step[i].stage->name);
        t.results += e->bytes_results;
        t.features += e->bytes_features;
        t.seconds += e->seconds / (p->wf->step[i].stage->scope == PL_PER_UNIT ? p->workers : 1);
    }
    return t;
}

/* ---- the table ---- */

static const char *or_dash(bool known, const char *text) { return known ? text : "-"; }

static void put_step(const st_plan *p, int i, pl_text *out)
{
    const pl_step_plan *s = &p->step[i];
    const pl_estimate *e = &s->estimate;
    char a[32], b[32], c[32], d[32];
    bool runs = will_run(p, i);
    const char *why = s->state == PL_STEP_DONE && strncmp(s->reason, "done: ", 6) == 0 ? s->reason + 6 : s->reason;

    pl_text_addf(out, "  %-8s %-6s %9s %7s %8s %8s  %s\n", p->wf->step[i].stage->name, p->wanted[i] ? state_word[s->state] : "left",
                 or_dash(runs && e->n_items >= 0, pl_count_str(e->n_items, a)),
                 or_dash(runs && e->bytes_results > 0, pl_size_str(e->bytes_results, b)),
                 or_dash(runs && e->bytes_features > 0, pl_size_str(e->bytes_features, c)),
                 or_dash(runs && e->seconds > 0, pl_duration_str(e->seconds, d)), why);
}

static void put_notes(const st_plan *p, pl_text *out)
{
    for (int i = 0; i < p->wf->n_steps; i++)
        if (will_run(p, i) && p->step[i].estimate.note != NULL)
            pl_text_addf(out, "%s: %s\n", p->wf->step[i].stage->name, p->step[i].estimate.note);
}

static void put_removed(const st_plan *p, pl_text *out)
{
    for (int i = 0; i < p->removed.n; i++)
        pl_text_addf(out, "  %-8s %-6s %9s %7s %8s %8s  %s\n", p->removed.stage[i]->name, "remove", "-", "-", "-", "-",
                     "no longer in the workflow: its results are removed");
}

static void put_table(const st_plan *p, pl_text *out)
{
    totals t = add_up(p);
    double left = pl_disk_free(p->wf->storage.results);
    char a[32], b[32], c[32], d[32];

    pl_text_addf(out, "%s -> %s\n", p->wf->path, p->wf->storage.results);
    pl_text_addf(out, "  %-8s %-6s %9s %7s %8s %8s  %s\n", "stage", "state", "items", "results", "features", "1 worker", "why");
    for (int i = 0; i < p->wf->n_steps; i++)
        put_step(p, i, out);
    put_removed(p, out);
    put_notes(p, out);
    if (t.n_run == 0) {
        pl_text_add(out, p->removed.n > 0 ? "no stage to run\n" : "nothing to do: everything is done\n");
        return;
    }
    pl_text_addf(out, "%d of %d stages to run; about %s in results.db, %s in features.db, %s with %d worker%s%s; %s free\n",
                 t.n_run, p->wf->n_steps, pl_size_str(t.results, a), pl_size_str(t.features, b), pl_duration_str(t.seconds, c),
                 p->workers, p->workers == 1 ? "" : "s", pl_text_str(&t.untimed),
                 left >= 0 ? pl_size_str(left, d) : "unknown space");
    pl_text_free(&t.untimed);
    if (left >= 0 && t.results + t.features > left)
        pl_text_add(out, "WARNING: that is more than the disk has; choose another basis or another workdir\n");
}

void st_plan_print(const st_plan *p)
{
    pl_text out = { 0 };

    put_table(p, &out);
    pl_cmd_print("%s", pl_text_str(&out));
    pl_text_free(&out);
}

/* ---- JSON ---- */

static void put_number(pl_text *out, const char *name, double value, bool known)
{
    char buf[32];

    pl_text_addf(out, ",\"%s\":%s", name, known ? pl_real_str(value, buf) : "null");
}

void st_plan_json(const st_plan *p, pl_text *out)
{
    pl_text_add(out, "{\"workflow\":");
    pl_text_add_json(out, p->wf->path);
    pl_text_add(out, ",\"results\":");
    pl_text_add_json(out, p->wf->storage.results);
    pl_text_addf(out, ",\"workers\":%d,\"stages\":[", p->workers);
    for (int i = 0; i < p->wf->n_steps; i++) {
        const pl_step_plan *s = &p->step[i];
        pl_text_addf(out, "%s\n {\"stage\":\"%s\",\"state\":\"%s\",\"key\":\"%s\",\"reason\":", i ? "," : "",
                     p->wf->step[i].stage->name, p->wanted[i] ? state_word[s->state] : "left", p->wf->step[i].key);
        pl_text_add_json(out, s->reason);
        put_number(out, "units_done", (double)s->n_done, true);
        put_number(out, "items", (double)s->estimate.n_items, s->estimate.n_items >= 0);
        put_number(out, "units", (double)s->estimate.n_units, s->estimate.n_units >= 0);
        put_number(out, "bytes_results", s->estimate.bytes_results, will_run(p, i));
        put_number(out, "bytes_features", s->estimate.bytes_features, will_run(p, i));
        put_number(out, "seconds_one_worker", s->estimate.seconds, will_run(p, i));
        pl_text_add(out, ",\"note\":");
        if (s->estimate.note != NULL)
            pl_text_add_json(out, s->estimate.note);
        else
            pl_text_add(out, "null");
        pl_text_add(out, "}");
    }
    pl_text_add(out, "\n],\"removed\":[");
    for (int i = 0; i < p->removed.n; i++)
        pl_text_addf(out, "%s\"%s\"", i > 0 ? "," : "", p->removed.stage[i]->name);
    pl_text_add(out, "]}\n");
}

/* ---- drawings ---- */

static void dag_text(const st_plan *p, pl_text *out)
{
    for (int i = 0; i < p->wf->n_steps; i++) {
        const pl_step *step = &p->wf->step[i];
        pl_text_addf(out, "%-9s [%s]", step->stage->name, state_word[p->step[i].state]);
        for (int k = 0; k < step->n_needs; k++)
            pl_text_addf(out, "%s%s", k ? ", " : " <- ", p->wf->step[step->needs[k]].stage->name);
        pl_text_add(out, "\n");
    }
}

static void dag_dot(const st_plan *p, pl_text *out)
{
    static const char *const color[] = { "palegreen", "khaki", "white", "lightsalmon" };

    pl_text_add(out, "digraph workflow {\n  rankdir=LR; node [shape=box, style=filled];\n");
    for (int i = 0; i < p->wf->n_steps; i++) {
        const pl_step *step = &p->wf->step[i];
        pl_text_addf(out, "  %s [fillcolor=%s];\n", step->stage->name, color[p->step[i].state]);
        for (int k = 0; k < step->n_needs; k++)
            pl_text_addf(out, "  %s -> %s;\n", p->wf->step[step->needs[k]].stage->name, step->stage->name);
    }
    pl_text_add(out, "}\n");
}

static void dag_mermaid(const st_plan *p, pl_text *out)
{
    pl_text_add(out, "flowchart LR\n");
    for (int i = 0; i < p->wf->n_steps; i++) {
        const pl_step *step = &p->wf->step[i];
        pl_text_addf(out, "  %s[\"%s: %s\"]\n", step->stage->name, step->stage->name, state_word[p->step[i].state]);
        for (int k = 0; k < step->n_needs; k++)
            pl_text_addf(out, "  %s --> %s\n", p->wf->step[step->needs[k]].stage->name, step->stage->name);
    }
}

bool st_plan_dag(const st_plan *p, const char *form, pl_text *out)
{
    static const struct {
        const char *name;
        void (*draw)(const st_plan *, pl_text *);
    } forms[] = { { "text", dag_text }, { "dot", dag_dot }, { "mermaid", dag_mermaid } };

    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        if (strcmp(form, forms[i].name) == 0) {
            forms[i].draw(p, out);
            return true;
        }
    return false;
}
