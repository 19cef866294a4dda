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

pl_workflow *st_last_workflow(const pl_store *results, const char *origin, const pl_stage *const *known, pl_arena *mem)
{
    pl_problems problems = { .mem = mem };
    const char *text = stored_text(results, mem);

    return text != NULL ? pl_workflow_stored(text, origin, known, &problems, mem) : NULL;
}

/* As the results would store it: relative paths begin at /, whatever folder the file is in. */
static const pl_workflow *as_stored(const pl_workflow *wf, const pl_stage *const *known, pl_arena *mem)
{
    pl_problems problems = { .mem = mem };
    pl_text text = { 0 };
    const char *kept = NULL;

    if (pl_workflow_dump(wf, false, &text) == PL_OK && pl_text_ok(&text))
        kept = pl_strdup(mem, pl_text_str(&text));
    pl_text_free(&text);
    return kept != NULL ? pl_workflow_stored(kept, wf->path, known, &problems, mem) : NULL;
}

static bool is_same(const char *a, const char *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    return strcmp(a, b) == 0;
}

static bool have_same_inputs(const pl_workflow *now, const pl_workflow *then)
{
    const pl_input *a = now->patterns.items, *b = then->patterns.items;
    bool same = now->patterns.n == then->patterns.n;

    for (int32_t i = 0; same && i < now->patterns.n; i++)
        same = is_same(a[i].path, b[i].path) && is_same(a[i].format, b[i].format) && is_same(a[i].title_from, b[i].title_from) &&
               is_same(a[i].smiles_column, b[i].smiles_column) && is_same(a[i].title_column, b[i].title_column);
    return same;
}

static bool have_same_models(const pl_workflow *now, const pl_workflow *then)
{
    const pl_model_ref *a = now->models.items, *b = then->models.items;
    bool same = now->models.n == then->models.n;

    for (int32_t i = 0; same && i < now->models.n; i++)
        same = is_same(a[i].name, b[i].name) && is_same(a[i].path, b[i].path) && is_same(a[i].sha256, b[i].sha256);
    return same;
}

/* Keys have hashes of files in place of their paths, so pl_params_json leaves paths out. */
static bool have_same_paths(const pl_field *fields, const void *a, const void *b)
{
    char unused[2][64];
    bool same = true;

    for (int i = 0; same && i < pl_fields_count(fields); i++)
        if (fields[i].type == PL_PATH && !(fields[i].flags & PL_HOW))
            same = is_same(pl_field_value(&fields[i], a, unused[0]), pl_field_value(&fields[i], b, unused[1]));
    return same;
}

static bool is_other_step(const pl_step *step, const pl_workflow *then, pl_arena *mem)
{
    const pl_step *before = pl_workflow_step(then, step->stage->name);
    const pl_field *fields = step->stage->fields;

    if (before == NULL || fields == NULL)
        return before == NULL;
    const char *a = pl_params_json(fields, step->conf, mem), *b = pl_params_json(fields, before->conf, mem);
    return (a != NULL && b != NULL && strcmp(a, b) != 0) || !have_same_paths(fields, step->conf, before->conf);
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
    const char *told = NULL;
    const pl_workflow *then = st_last_workflow(results, wf->path, known, mem);
    const pl_workflow *now = then != NULL ? as_stored(wf, known, mem) : NULL;
    pl_text list = { 0 };

    if (now == NULL)
        return NULL;
    if (!have_same_inputs(now, then))
        add(&list, "inputs");
    if (!have_same_models(now, then))
        add(&list, "models");
    if (now->seed != then->seed)
        add(&list, "seed");
    add_stages(&list, now, then, mem);
    if (pl_text_ok(&list) && list.len > 0)
        told = pl_strdup(mem, pl_text_str(&list));
    pl_text_free(&list);
    return told;
}
