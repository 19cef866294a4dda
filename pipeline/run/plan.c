/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <string.h>

#include "pipeline/run/runner.h"

enum { CANONICAL = JSON_SORT_KEYS | JSON_COMPACT | JSON_REAL_PRECISION(17) };

int pl_step_find(const pl_workflow *wf, const char *stage)
{
    for (int i = 0; i < wf->n_steps; i++)
        if (strcmp(wf->step[i].stage->name, stage) == 0)
            return i;
    return -1;
}

static pl_code dump(const json_t *value, const char **out, pl_arena *mem, pl_error *err)
{
    char *text = value != NULL ? json_dumps(value, CANONICAL) : NULL;

    *out = text != NULL ? pl_strdup(mem, text) : NULL;
    free(text);
    return *out ? PL_OK : pl_fail(err, PL_ENOMEM, "the plan");
}

static json_t *needs_object(const pl_workflow *wf, const pl_step *step)
{
    json_t *needs = json_object();

    for (int i = 0; i < step->n_needs; i++) {
        const pl_step *other = &wf->step[step->needs[i]];
        (void)json_object_set_new(needs, other->stage->name, json_string(other->key));
    }
    return needs;
}

pl_code pl_needs_json(const pl_workflow *wf, const pl_step *step, const char **out, pl_arena *mem, pl_error *err)
{
    json_t *needs = needs_object(wf, step);
    pl_code code = dump(needs, out, mem, err);

    json_decref(needs);
    return code;
}

/* Fills extra_json: what the stage's key callback adds and, if the stage uses it, the seed. */
static pl_code make_extra(pl_workflow *wf, pl_step *step, pl_store *store, pl_arena *mem, pl_error *err)
{
    const char *text = "{}";
    json_t *extra;
    pl_code code = PL_OK;

    if (step->stage->key != NULL)
        code = step->stage->key(wf, step, store, &text, mem, err);
    if (code != PL_OK)
        return code;
    extra = json_loads(text != NULL ? text : "{}", JSON_REJECT_DUPLICATES, NULL);
    if (!json_is_object(extra)) {
        json_decref(extra);
        return pl_fail(err, PL_EBUG, "the key of stage %s is not a JSON object: %.80s", step->stage->name, text);
    }
    if (step->stage->uses_seed)
        (void)json_object_set_new(extra, "seed", json_integer(wf->seed));
    code = dump(extra, &step->extra_json, mem, err);
    json_decref(extra);
    return code;
}

static pl_code hash_key(const pl_workflow *wf, pl_step *step, pl_arena *mem, pl_error *err)
{
    json_t *all = json_object();
    const char *text;
    pl_sha256 sha;
    pl_code code;

    (void)json_object_set_new(all, "name", json_string(step->stage->name));
    (void)json_object_set_new(all, "version", json_integer(step->stage->version));
    (void)json_object_set_new(all, "params", json_loads(step->params_json, 0, NULL));
    (void)json_object_set_new(all, "extra", json_loads(step->extra_json, 0, NULL));
    (void)json_object_set_new(all, "needs", needs_object(wf, step));
    code = json_object_size(all) == 5 ? dump(all, &text, mem, err)
                                      : pl_fail(err, PL_EBUG, "the settings of stage %s are not JSON", step->stage->name);
    json_decref(all);
    if (code != PL_OK)
        return code;
    pl_sha256_start(&sha);
    pl_sha256_add_str(&sha, text);
    pl_sha256_hex(&sha, step->key);
    return PL_OK;
}

pl_code pl_plan_keys(pl_workflow *wf, pl_store *store, pl_arena *mem, pl_error *err)
{
    for (int i = 0; i < wf->n_steps; i++) {
        pl_step *step = &wf->step[i];
        pl_code code;

        step->params_json = step->stage->fields != NULL ? pl_params_json(step->stage->fields, step->conf, mem) : "{}";
        if (step->params_json == NULL)
            return pl_fail(err, PL_ENOMEM, "the plan");
        code = make_extra(wf, step, store, mem, err);
        if (code == PL_OK)
            code = hash_key(wf, step, mem, err);
        if (code != PL_OK) {
            pl_at(err, "stage %s", step->stage->name);
            return code;
        }
    }
    return PL_OK;
}

static const char *column(sqlite3_stmt *st, int i, pl_arena *mem)
{
    const unsigned char *text = sqlite3_column_text(st, i);
    return pl_strdup(mem, text != NULL ? (const char *)text : "");
}

pl_code pl_stage_row_get(pl_store *s, const char *name, pl_stage_row *out, pl_arena *mem, pl_error *err)
{
    static const char sql[] = "SELECT stage_id,key,state='done',coalesce(n_units,-1),n_blocks,params_json,extra_json,"
                              "needs_json,code_version,coalesce(run_id,0) FROM stage WHERE name=? ORDER BY stage_id DESC LIMIT 1";
    sqlite3_stmt *st;
    pl_code code;

    *out = (pl_stage_row){ 0 };
    if (s == NULL)
        return PL_OK;
    code = pl_db_prepare(s->db, &st, sql, err);
    if (code == PL_OK)
        (void)sqlite3_bind_text(st, 1, name, -1, SQLITE_STATIC);
    if (pl_db_next(st, &code, err)) {
        *out = (pl_stage_row){ .stage_id = sqlite3_column_int64(st, 0),
                               .key = column(st, 1, mem),
                               .done = sqlite3_column_int(st, 2) != 0,
                               .n_units = sqlite3_column_int64(st, 3),
                               .n_blocks = sqlite3_column_int64(st, 4),
                               .params_json = column(st, 5, mem),
                               .extra_json = column(st, 6, mem),
                               .needs_json = column(st, 7, mem),
                               .code_version = sqlite3_column_int64(st, 8),
                               .run_id = sqlite3_column_int64(st, 9) };
        if (out->key == NULL || out->params_json == NULL || out->extra_json == NULL || out->needs_json == NULL) {
            *out = (pl_stage_row){ 0 };
            code = pl_fail(err, PL_ENOMEM, "the plan");
        }
    }
    (void)sqlite3_finalize(st);
    return code;
}

/* ---- differences ---- */

typedef struct diff {
    pl_text *out;
    int *n;
    pl_arena *mem;
    const pl_stage *stage; /* the stage whose settings are compared; NULL: extra_json is compared */
} diff;

/* A PL_LATER setting that is not in a key has its default, a choice its first word. */
static void add_default(diff *d, const char *path)
{
    const pl_field *f = d->stage != NULL ? d->stage->fields : NULL;
    void *conf = f != NULL ? pl_arena_get(d->mem, d->stage->conf_size, 1) : NULL;
    const char *value = "";
    char buf[64];

    while (conf != NULL && f->type != PL_END && strcmp(f->key, path) != 0)
        f++;
    if (conf != NULL && f->type != PL_END && f->flags & PL_LATER) {
        pl_fields_default(d->stage->fields, conf);
        if (f->type == PL_CHOICE)
            *(int32_t *)(void *)((char *)conf + f->at) = 0;
        value = pl_field_value(f, conf, buf);
    }
    pl_text_add(d->out, value[0] ? value : "not set");
}

static void add_value(diff *d, const char *path, const json_t *value)
{
    char *text = value != NULL ? json_dumps(value, CANONICAL | JSON_ENCODE_ANY) : NULL;
    pl_text *out = d->out;

    if (value == NULL)
        add_default(d, path);
    else if (json_is_string(value))
        pl_text_add(out, json_string_value(value));
    else if (json_is_real(value))
        pl_text_add(out, pl_real_str(json_real_value(value), (char[32]){ 0 }));
    else
        pl_text_add(out, text != NULL ? text : "?");
    free(text);
}

static void add_change(diff *d, const char *path, const json_t *was, const json_t *now)
{
    (*d->n)++;
    pl_text_addf(d->out, "%s: ", path);
    add_value(d, path, was);
    pl_text_add(d->out, " -> ");
    add_value(d, path, now);
    pl_text_add(d->out, "\n");
}

static void compare(diff *d, const char *path, json_t *was, json_t *now);

static void compare_objects(diff *d, const char *path, json_t *was, json_t *now)
{
    const char *key, *dot = path[0] ? "." : "";
    json_t *value;

    json_object_foreach(now, key, value) {
        const char *below = pl_sprintf(d->mem, "%s%s%s", path, dot, key);
        if (below != NULL)
            compare(d, below, json_object_get(was, key), value);
    }
    json_object_foreach(was, key, value) {
        const char *below = pl_sprintf(d->mem, "%s%s%s", path, dot, key);
        if (below != NULL && json_object_get(now, key) == NULL)
            compare(d, below, value, NULL);
    }
}

static void compare(diff *d, const char *path, json_t *was, json_t *now)
{
    if (json_is_object(was) && json_is_object(now))
        compare_objects(d, path, was, now);
    else if (!json_equal(was, now)) /* nor are they if one is not there */
        add_change(d, path, was, now);
}

static void compare_texts(diff *d, const char *was, const char *now)
{
    json_t *a = json_loads(was, 0, NULL), *b = json_loads(now, 0, NULL);

    if (a != NULL && b != NULL)
        compare(d, "", a, b);
    json_decref(a);
    json_decref(b);
}

/* For needed stages only the name is written: their keys mean nothing to a reader. */
static void compare_needs(diff *d, const char *was, const char *now)
{
    json_t *a = json_loads(was, 0, NULL), *b = json_loads(now, 0, NULL), *key;
    const char *name;

    json_object_foreach(b, name, key) {
        json_t *old = json_object_get(a, name);
        if (old != NULL && json_equal(old, key))
            continue;
        (*d->n)++;
        pl_text_addf(d->out, old != NULL ? "needs %s, whose result changed\n" : "needs %s, which it did not use before\n", name);
    }
    json_object_foreach(a, name, key) {
        if (json_object_get(b, name) != NULL)
            continue;
        (*d->n)++;
        pl_text_addf(d->out, "no longer uses %s\n", name);
    }
    json_decref(a);
    json_decref(b);
}

pl_code pl_row_diff(const pl_stage_row *old, const pl_workflow *wf, const pl_step *step, pl_text *out, int *n, pl_arena *mem,
                    pl_error *err)
{
    diff d = { out, n, mem, step->stage };
    const char *needs;
    pl_code code = pl_needs_json(wf, step, &needs, mem, err);

    *n = 0;
    if (code != PL_OK)
        return code;
    if (old->code_version != step->stage->version) {
        (*n)++;
        pl_text_addf(out, "the stage itself: version %lld -> %d\n", (long long)old->code_version, step->stage->version);
    }
    compare_texts(&d, old->params_json, step->params_json);
    d.stage = NULL;
    compare_texts(&d, old->extra_json, step->extra_json);
    compare_needs(&d, old->needs_json, needs);
    return pl_text_ok(out) ? PL_OK : pl_fail(err, PL_ENOMEM, "the plan");
}
