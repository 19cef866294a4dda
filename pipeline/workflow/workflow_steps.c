/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "pipeline/workflow/workflow_parts.h"

const char *const pl_step_keys[] = { "needs", NULL };

static int position_of(const pl_workflow *wf, const char *name)
{
    for (int i = 0; i < wf->n_steps; i++)
        if (strcmp(wf->step[i].stage->name, name) == 0)
            return i;
    return -1;
}

/* ---- which stages ---- */

static void check_known(const pl_node *stages, const pl_stage *const *known, const pl_settings *ctx)
{
    const char *names[PL_STEPS_MAX];
    int n = 0;

    for (; known[n] != NULL && n < PL_STEPS_MAX; n++)
        names[n] = known[n]->name;
    for (int i = 0; i < stages->n; i++) {
        const pl_node *key = stages->key[i];
        bool found = key->kind != PL_SCALAR;
        char what[160];
        for (int k = 0; k < n && !found; k++)
            found = strcmp(names[k], key->text) == 0;
        (void)snprintf(what, sizeof what, "stages.%.100s: unknown stage", found ? "" : key->text);
        if (!found)
            pl_unknown_name(ctx->problems, key, what, key->text, names, n);
    }
}

static bool add_step(pl_workflow *wf, const pl_stage *stage, const pl_node *node, const pl_settings *ctx)
{
    pl_step *step = &wf->step[wf->n_steps];
    char path[96];

    step->stage = stage;
    step->node = node;
    step->conf = PL_NEW(ctx->mem, char, stage->conf_size + 1);
    if (step->conf == NULL)
        return false;
    (void)snprintf(path, sizeof path, "stages.%s", stage->name);
    pl_settings_read(ctx, stage->fields, step->conf, node, path, pl_step_keys);
    wf->n_steps++;
    return true;
}

/* ---- needs ---- */

static void add_need(pl_step *step, int position)
{
    for (int i = 0; i < step->n_needs; i++)
        if (step->needs[i] == position)
            return;
    step->needs[step->n_needs++] = position; /* there is room: no position twice */
}

/* Adds the stages that the stage's own record needs; "(split)" only if the workflow has it. */
static void need_by_table(const pl_workflow *wf, pl_step *step, const pl_settings *ctx)
{
    for (const char *const *need = step->stage->needs; need != NULL && *need != NULL; need++) {
        char name[64];
        bool optional = (*need)[0] == '(';
        int position;
        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(*need + optional, ")"), *need + optional);
        position = position_of(wf, name);
        if (position >= 0)
            add_need(step, position);
        else if (!optional)
            pl_problem_add(ctx->problems, step->node, "stages.%s: needs the stage %s, which this workflow does not have",
                           step->stage->name, name);
    }
}

static void need_one(const pl_workflow *wf, pl_step *step, const pl_node *node, const pl_settings *ctx)
{
    const char *names[PL_STEPS_MAX];
    char what[160];
    int position;

    for (int i = 0; i < wf->n_steps; i++)
        names[i] = wf->step[i].stage->name;
    (void)snprintf(what, sizeof what, "stages.%s.needs", step->stage->name);
    if (node->kind != PL_SCALAR) {
        pl_problem_add(ctx->problems, node, "%s: names of stages are expected here", what);
        return;
    }
    position = position_of(wf, node->text);
    if (position >= 0) {
        add_need(step, position);
        return;
    }
    (void)snprintf(what, sizeof what, "stages.%s.needs: no stage '%.60s' in this workflow", step->stage->name, node->text);
    pl_unknown_name(ctx->problems, node, what, node->text, names, wf->n_steps);
}

static void need_by_file(const pl_workflow *wf, pl_step *step, const pl_settings *ctx)
{
    const pl_node *needs = pl_node_get(step->node, "needs");

    if (needs == NULL)
        return;
    if (needs->kind == PL_SEQUENCE)
        for (int i = 0; i < needs->n; i++)
            need_one(wf, step, needs->item[i], ctx);
    else
        need_one(wf, step, needs, ctx);
}

/* ---- order ---- */

static bool ready(const pl_step *step, const int *new_place)
{
    for (int i = 0; i < step->n_needs; i++)
        if (new_place[step->needs[i]] < 0)
            return false;
    return true;
}

/* Reports a cycle of needs: follows them from a step that can never run, and so needs another such step, until a step repeats. */
static void say_cycle(const pl_workflow *wf, const int *new_place, int at, const pl_settings *ctx)
{
    pl_text path = { 0 };
    int seen[PL_STEPS_MAX] = { 0 };

    for (int phase = 0; phase < 2; phase++) /* first into the circle, then around it */
        while (seen[at] == phase) {
            int next = at;
            seen[at] = phase + 1;
            if (phase == 1)
                pl_text_addf(&path, "%s, which needs ", wf->step[at].stage->name);
            for (int i = 0; i < wf->step[at].n_needs && next == at; i++)
                if (new_place[wf->step[at].needs[i]] < 0)
                    next = wf->step[at].needs[i];
            at = next;
        }
    pl_text_add(&path, wf->step[at].stage->name);
    pl_problem_add(ctx->problems, wf->step[at].node, "stages: the needs go in a circle: %s", pl_text_str(&path));
    pl_text_free(&path);
}

/* Ready steps run in the order of the registry, so the order of keys in the file does not matter. */
static bool put_in_order(pl_workflow *wf, const pl_settings *ctx)
{
    int new_place[PL_STEPS_MAX], old_place[PL_STEPS_MAX], n = 0, stuck = 0;
    pl_step *sorted = PL_NEW(ctx->mem, pl_step, wf->n_steps + 1);

    if (sorted == NULL)
        return false;
    for (int i = 0; i < wf->n_steps; i++)
        new_place[i] = -1;
    while (n < wf->n_steps) {
        int i = 0;
        while (i < wf->n_steps && (new_place[i] >= 0 || !ready(&wf->step[i], new_place)))
            i++;
        if (i == wf->n_steps) {
            while (new_place[stuck] >= 0)
                stuck++;
            say_cycle(wf, new_place, stuck, ctx);
            return true;
        }
        old_place[n] = i;
        new_place[i] = n++;
    }
    for (int i = 0; i < n; i++) {
        sorted[i] = wf->step[old_place[i]];
        for (int k = 0; k < sorted[i].n_needs; k++)
            sorted[i].needs[k] = new_place[sorted[i].needs[k]];
    }
    wf->step = sorted;
    return true;
}

void pl_steps_read(pl_workflow *wf, const pl_node *stages, const pl_stage *const *known, const pl_settings *ctx)
{
    bool good = true;

    if (stages->kind != PL_MAPPING || stages->n == 0) {
        pl_problem_add(ctx->problems, stages, "stages: names of stages with their settings are expected here");
        return;
    }
    check_known(stages, known, ctx);
    wf->step = PL_NEW(ctx->mem, pl_step, PL_STEPS_MAX);
    for (int i = 0; known[i] != NULL && wf->step != NULL && good && i < PL_STEPS_MAX; i++) {
        const pl_node *node = pl_node_get(stages, known[i]->name);
        if (node != NULL)
            good = add_step(wf, known[i], node, ctx);
    }
    for (int i = 0; i < wf->n_steps; i++) {
        if (wf->step[i].stage->settle != NULL)
            wf->step[i].stage->settle(wf, wf->step[i].conf);
        need_by_table(wf, &wf->step[i], ctx);
        need_by_file(wf, &wf->step[i], ctx);
    }
    if (wf->step == NULL || !good || !put_in_order(wf, ctx))
        pl_problem_refused(ctx->problems, NULL, wf->path);
}
