/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/commands/output/status_prometheus.h"

#include <string.h>
#include <time.h>

static const char *const states[] = { "running", "done", "stopped", "failed", "lost" };
enum { STATES = sizeof states / sizeof *states };

typedef struct page {
    pl_text *out;
    const char *results;
} page;

static void head_add(const page *p, const char *name, const char *help)
{
    pl_text_addf(p->out, "# HELP molsieve_%s %s\n# TYPE molsieve_%s gauge\n", name, help, name);
}

/* A backslash, a quote and a line end are escaped. */
static void label_add(pl_text *out, const char *name, const char *value)
{
    pl_text_addf(out, "%s=\"", name);
    for (const char *c = value; *c != '\0'; c++) {
        if (*c == '\\' || *c == '"')
            pl_text_add_n(out, "\\", 1);
        pl_text_add_n(out, *c == '\n' ? "\\n" : c, *c == '\n' ? 2 : 1);
    }
    pl_text_add_n(out, "\"", 1);
}

/* a, b: names of further labels, or NULL; va, vb: their values. */
static void sample_add(const page *p, const char *name, const char *a, const char *va, const char *b, const char *vb, double value)
{
    char number[32];

    pl_text_addf(p->out, "molsieve_%s{", name);
    label_add(p->out, "results", p->results);
    if (a != NULL) {
        pl_text_add(p->out, ",");
        label_add(p->out, a, va != NULL ? va : "");
    }
    if (b != NULL) {
        pl_text_add(p->out, ",");
        label_add(p->out, b, vb != NULL ? vb : "");
    }
    pl_text_addf(p->out, "} %s\n", pl_real_str(value, number));
}

static const char *word(const json_t *o, const char *name) { return json_string_value(json_object_get(o, name)); }

static void state_add(const page *p, const json_t *run)
{
    const char *state = word(run, "state"), *started = word(run, "started_utc");
    struct tm tm = { 0 };

    head_add(p, "run_state", "1 for the state of the latest run, 0 for the others");
    for (int k = 0; k < STATES; k++)
        sample_add(p, "run_state", "state", states[k], NULL, NULL, state != NULL && strcmp(state, states[k]) == 0);
    if (started == NULL || strptime(started, "%Y-%m-%dT%H:%M:%SZ", &tm) == NULL)
        return;
    head_add(p, "run_start_time_seconds", "when the latest run began, in seconds since 1970");
    sample_add(p, "run_start_time_seconds", NULL, NULL, NULL, NULL, (double)timegm(&tm));
}

/* One number of every stage that has it. label: a label with the name of a member, or NULL; fixed: or with this value. */
static void stages_add(const page *p, const json_t *stages, const char *name, const char *member, const char *label,
                       const char *fixed)
{
    const json_t *stage, *value;
    size_t i;

    json_array_foreach(stages, i, stage) {
        value = json_object_get(stage, member);
        if (json_is_number(value) && json_number_value(value) >= 0)
            sample_add(p, name, "stage", word(stage, "stage"), label, fixed != NULL || label == NULL ? fixed : word(stage, label),
                       json_number_value(value));
    }
}

static void done_add(const page *p, const json_t *stages)
{
    const json_t *stage;
    size_t i;

    head_add(p, "stage_done", "1 for a stage that is complete");
    json_array_foreach(stages, i, stage) {
        const char *state = word(stage, "state");
        sample_add(p, "stage_done", "stage", word(stage, "stage"), NULL, NULL, state != NULL && strcmp(state, "done") == 0);
    }
}

static void database_add(const page *p, const json_t *status)
{
    const json_t *stages = json_object_get(status, "stages"), *failure;
    size_t i;

    head_add(p, "stage_records", "records or molecules of a stage, by what became of them");
    stages_add(p, stages, "stage_records", "ok", "result", "ok");
    stages_add(p, stages, "stage_records", "failed", "result", "failed");
    head_add(p, "stage_units_done", "units of work that a stage has stored");
    stages_add(p, stages, "stage_units_done", "done", NULL, NULL);
    head_add(p, "stage_units", "units of work of a stage, as far as they are known");
    stages_add(p, stages, "stage_units", "units", NULL, NULL);
    head_add(p, "stage_seconds", "time that a stage has taken, in seconds");
    stages_add(p, stages, "stage_seconds", "wall_s", NULL, NULL);
    head_add(p, "failures", "failed records by stage and code");
    json_array_foreach(json_object_get(status, "failures"), i, failure)
        sample_add(p, "failures", "stage", word(failure, "stage"), "code", word(failure, "code"),
                   json_number_value(json_object_get(failure, "n")));
}

static void beat_add(const page *p, const json_t *stages)
{
    head_add(p, "stage_items_done", "items that a stage has done, by the heartbeat of the run");
    stages_add(p, stages, "stage_items_done", "done", "item", NULL);
    head_add(p, "stage_items", "items that a stage has to do, where that is known");
    stages_add(p, stages, "stage_items", "total", "item", NULL);
}

static void shards_add(const page *p, const json_t *shards)
{
    const char *state;
    json_t *n;

    head_add(p, "shards", "shards by the state of their latest run");
    json_object_foreach((json_t *)shards, state, n)
        sample_add(p, "shards", "state", state, NULL, NULL, json_number_value(n));
}

void st_prometheus_add(pl_text *out, const json_t *status, const char *results)
{
    const page p = { out, results };
    const json_t *run = json_object_get(status, "run"), *shards = json_object_get(status, "shards"),
                 *stages = json_object_get(status, "stages");

    if (shards != NULL) {
        shards_add(&p, shards);
        return;
    }
    state_add(&p, run != NULL ? run : status);
    done_add(&p, stages);
    if (run != NULL)
        database_add(&p, status);
    else
        beat_add(&p, stages);
}
