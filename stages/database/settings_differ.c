/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/database/settings_differ.h"

#include <string.h>

static const char *stored_text(const pl_store *results, pl_arena *mem)
{
    sqlite3_stmt *st = NULL;
    const char *text = NULL;
    bool row = false;

    if (pl_db_prepare(results->db, &st, "SELECT config_yaml FROM run ORDER BY run_id DESC LIMIT 1", NULL) == PL_OK &&
        pl_db_step(st, &row, NULL) == PL_OK && row && sqlite3_column_text(st, 0) != NULL)
        text = pl_strdup(mem, (const char *)sqlite3_column_text(st, 0));
    (void)sqlite3_finalize(st);
    return text;
}

/* The stored path was read without the folder of the file: it is absolute, or the end of the other. */
static bool is_same_path(const char *now, const char *stored)
{
    while (strncmp(stored, "/..", 3) == 0)
        stored += 3;
    return pl_ends_with(now, stored);
}

static bool have_same_inputs(const pl_workflow *now, const pl_workflow *then)
{
    const pl_input *a = now->patterns.items, *b = then->patterns.items;
    bool same = now->patterns.n == then->patterns.n;

    for (int32_t i = 0; same && i < now->patterns.n; i++)
        same = is_same_path(a[i].path, b[i].path);
    return same;
}

static bool is_other_step(const pl_step *step, const pl_workflow *then, pl_arena *mem)
{
    const pl_step *before = pl_workflow_step(then, step->stage->name);
    const pl_field *fields = step->stage->fields;

    if (before == NULL || fields == NULL)
        return before == NULL;
    const char *a = pl_params_json(fields, step->conf, mem), *b = pl_params_json(fields, before->conf, mem);
    return a != NULL && b != NULL && strcmp(a, b) != 0;
}

static void add(pl_text *list, const char *what) { pl_text_addf(list, "%s%s", list->len > 0 ? ", " : "", what); }

static void add_stage(pl_text *list, const pl_stage *stage)
{
    add(list, "stages.");
    pl_text_add(list, stage->name);
}

static void add_stages(pl_text *list, const pl_workflow *now, const pl_workflow *then, pl_arena *mem)
{
    for (int i = 0; i < now->n_steps; i++)
        if (is_other_step(&now->step[i], then, mem))
            add_stage(list, now->step[i].stage);
    for (int i = 0; i < then->n_steps; i++)
        if (pl_workflow_step(now, then->step[i].stage->name) == NULL)
            add_stage(list, then->step[i].stage);
}

const char *st_settings_differ(const pl_workflow *wf, const pl_store *results, const pl_stage *const *known, pl_arena *mem)
{
    pl_problems problems = { .mem = mem };
    const char *text = stored_text(results, mem), *told = NULL;
    const pl_workflow *then = text != NULL ? pl_workflow_stored(text, wf->path, known, &problems, mem) : NULL;
    pl_text list = { 0 };

    if (then == NULL)
        return NULL;
    if (!have_same_inputs(wf, then))
        add(&list, "inputs");
    if (wf->seed != then->seed)
        add(&list, "seed");
    add_stages(&list, wf, then, mem);
    if (pl_text_ok(&list) && list.len > 0)
        told = pl_strdup(mem, pl_text_str(&list));
    pl_text_free(&list);
    return told;
}
