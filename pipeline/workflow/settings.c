/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/workflow/settings.h"

#include <stdio.h>
#include <string.h>

#include "pipeline/base/spelling.h"
#include "pipeline/workflow/settings_parts.h"

enum { MAX_NAMES = 256 };

/* ctx->folder comes from realpath and has no symbolic links, so a leading ../ simply drops its last part. */
char *pl_settings_path(const pl_settings *ctx, const char *path)
{
    size_t n = strcmp(ctx->folder, "/") == 0 ? 0 : strlen(ctx->folder);

    if (path[0] == '/')
        return pl_strdup(ctx->mem, path);
    while (path[0] == '.') {
        size_t up = strncmp(path, "../", 3) == 0 ? 3 : 2;
        if (up == 2 && strncmp(path, "./", 2) != 0)
            break;
        while (up == 3 && n > 0 && ctx->folder[--n] != '/')
            ;
        for (path += up; *path == '/';)
            path++;
    }
    return pl_sprintf(ctx->mem, "%.*s/%s", (int)n, ctx->folder, path);
}

void pl_unknown_name(pl_problems *problems, const pl_node *at, const char *what, const char *word, const char *const *names, int n)
{
    const char *near = pl_nearest(word, names, n);
    pl_text all = { 0 };

    for (int i = 0; i < n; i++)
        pl_text_addf(&all, "%s%s", i ? ", " : "", names[i]);
    pl_problem_add(problems, at, "%s%s%s%s; allowed: %s", what, near != NULL ? ", did you mean '" : "", near != NULL ? near : "",
                   near != NULL ? "'?" : "", n ? pl_text_str(&all) : "nothing");
    pl_text_free(&all);
}

/* ---- the names at one level of a table ---- */

static bool is_under(const pl_field *f, const char *prefix) { return strncmp(f->key, prefix, strlen(prefix)) == 0; }

static int names_under(const pl_field *table, const char *prefix, char names[][64], const char **list)
{
    int n = 0;

    for (const pl_field *f = table; f != NULL && f->type != PL_END && n < MAX_NAMES; f++) {
        const char *rest = f->key + strlen(prefix);
        bool seen = false;
        if (!is_under(f, prefix))
            continue;
        (void)snprintf(names[n], sizeof names[n], "%.*s", (int)strcspn(rest, "."), rest);
        for (int i = 0; i < n; i++)
            seen = seen || strcmp(names[i], names[n]) == 0;
        if (!seen) {
            list[n] = names[n];
            n++;
        }
    }
    return n;
}

void pl_settings_names(const pl_field *table, const char *prefix, pl_text *out)
{
    char names[MAX_NAMES][64];
    const char *list[MAX_NAMES];
    int n = names_under(table, prefix, names, list);

    for (int i = 0; i < n; i++)
        pl_text_addf(out, "%s%s", i ? ", " : "", list[i]);
}

static const pl_field *field_named(const pl_field *table, const char *key)
{
    for (const pl_field *f = table; f != NULL && f->type != PL_END; f++)
        if (strcmp(f->key, key) == 0)
            return f;
    return NULL;
}

/* The field conformers.source for the word `source`: the user forgot a level. */
static const pl_field *field_deeper(const pl_field *table, const char *word)
{
    for (const pl_field *f = table; f != NULL && f->type != PL_END; f++) {
        const char *dot = strrchr(f->key, '.');
        if (dot != NULL && strcmp(dot + 1, word) == 0)
            return f;
    }
    return NULL;
}

static bool listed(const char *const *names, const char *word)
{
    for (; names != NULL && *names != NULL; names++)
        if (strcmp(*names, word) == 0)
            return true;
    return false;
}

/* ---- one map ---- */

/* Where a setting was given; map NULL: nowhere. */
typedef struct given {
    const pl_node *map;
    bool american;
} given;

typedef struct level {
    const pl_settings *ctx;
    const pl_field *table;
    void *conf;
    given *given;     /* [fields of the table]           */
    const char *path; /* "stages.graph"                  */
    const char *const *also;
} level;

/* "stages.graph.conformers.source"; "" and a problem when there is no memory for it. */
static const char *full_name(const level *l, const char *prefix, const char *name)
{
    const char *full = pl_sprintf(l->ctx->mem, "%s%s%s%s", l->path, l->path[0] ? "." : "", prefix, name);

    if (full == NULL)
        pl_problem_refused(l->ctx->problems, NULL, "");
    return full != NULL ? full : "";
}

static bool is_stage(const pl_settings *ctx, const char *word)
{
    for (const pl_stage *const *s = ctx->known; s != NULL && *s != NULL; s++)
        if (strcmp((*s)->name, word) == 0)
            return true;
    return false;
}

static void say_unknown(const level *l, const char *prefix, const pl_node *key)
{
    char names[MAX_NAMES][64];
    const char *list[MAX_NAMES], *what = full_name(l, prefix, key->text);
    const pl_field *deeper = field_deeper(l->table, key->text);
    int n = names_under(l->table, prefix, names, list);

    for (const char *const *a = l->also; prefix[0] == '\0' && a != NULL && *a != NULL && n < MAX_NAMES; a++)
        list[n++] = *a;
    what = pl_sprintf(l->ctx->mem, "%s: unknown setting", what);
    if (what == NULL)
        what = "unknown setting";
    if (l->path[0] == '\0' && prefix[0] == '\0' && is_stage(l->ctx, key->text))
        pl_problem_add(l->ctx->problems, key, "%s, did you mean stages.%s?", what, key->text);
    else if (deeper != NULL && pl_nearest(key->text, list, n) == NULL)
        pl_problem_add(l->ctx->problems, key, "%s, did you mean %s?", what, deeper->key);
    else
        pl_unknown_name(l->ctx->problems, key, what, key->text, list, n);
}

static void read_map(const level *l, const char *prefix, const pl_node *map);

static void read_group(const level *l, const char *name, const pl_node *value)
{
    const char *prefix = pl_sprintf(l->ctx->mem, "%s.", name);
    pl_text names = { 0 };

    if (prefix == NULL) {
        pl_problem_refused(l->ctx->problems, value, NULL);
    } else if (value->kind == PL_MAPPING) {
        read_map(l, prefix, value);
    } else if (!pl_node_is_null(value)) {
        pl_settings_names(l->table, prefix, &names);
        pl_problem_add(l->ctx->problems, value, "%s: a group of settings is expected here: %s", full_name(l, "", name),
                       pl_text_str(&names));
        pl_text_free(&names);
    }
}

static bool is_group(const pl_field *table, const char *name)
{
    size_t n = strlen(name);

    for (const pl_field *f = table; f != NULL && f->type != PL_END; f++)
        if (strncmp(f->key, name, n) == 0 && f->key[n] == '.')
            return true;
    return false;
}

static bool is_name(const level *l, const char *name) { return field_named(l->table, name) != NULL || is_group(l->table, name); }

/* Gives a key in American spelling the name of the setting, also for those who look at the tree later. true: it had that spelling. */
static bool respell(const level *l, const char *prefix, const pl_node *key)
{
    char british[PL_SPELLED];
    const char *name = pl_british(key->text, british) ? pl_sprintf(l->ctx->mem, "%s%s", prefix, british) : NULL;
    const char *own = name != NULL && is_name(l, name) ? pl_strdup(l->ctx->mem, british) : NULL;

    if (own != NULL)
        ((pl_node *)(uintptr_t)key)->text = own;
    return own != NULL;
}

/* Two equal keys of one map are a problem that the YAML reader has reported. */
static bool in_two_spellings(const given *first, const given *second)
{
    return first->map != second->map || first->american || second->american;
}

static void read_one(const level *l, const char *prefix, const pl_node *map, const pl_node *key, const pl_node *value)
{
    const given now = { map, respell(l, prefix, key) };
    const char *name;
    const pl_field *f;

    name = pl_sprintf(l->ctx->mem, "%s%s", prefix, key->text);
    if (name == NULL) {
        pl_problem_refused(l->ctx->problems, key, NULL);
        return;
    }
    f = strchr(key->text, '.') != NULL ? NULL : field_named(l->table, name);
    if (f != NULL && l->given[f - l->table].map != NULL) {
        if (in_two_spellings(&l->given[f - l->table], &now))
            pl_problem_add(l->ctx->problems, key, "%s: given twice, in two spellings; remove one", full_name(l, "", name));
    } else if (f != NULL) {
        l->given[f - l->table] = now;
        pl_settings_value(l->ctx, f, (char *)l->conf + f->at, value, full_name(l, "", name));
    } else if (is_group(l->table, name)) {
        read_group(l, name, value);
    } else if (prefix[0] != '\0' || !listed(l->also, key->text)) {
        say_unknown(l, prefix, key);
    }
}

static void read_map(const level *l, const char *prefix, const pl_node *map)
{
    for (int i = 0; i < map->n; i++)
        if (map->key[i]->kind == PL_SCALAR) /* else the YAML reader has reported it */
            read_one(l, prefix, map, map->key[i], map->item[i]);
}

/* For settings that were not given: reports the required ones and makes default paths absolute. */
static void finish(const level *l, const pl_node *at)
{
    for (const pl_field *f = l->table; f->type != PL_END; f++) {
        const char **path = (const char **)((char *)l->conf + f->at);
        char allowed[512];
        if (l->given[f - l->table].map != NULL || ((f->flags & PL_KEYED) && f->type != PL_LIST))
            continue;
        if (f->flags & PL_REQUIRED)
            pl_problem_add(l->ctx->problems, at, "%s%s%s: required but not given; %s (%s)", l->path, l->path[0] ? "." : "", f->key,
                           pl_field_allowed(f, allowed, sizeof allowed), f->help);
        else if (f->type == PL_PATH && *path != NULL && (*path)[0] != '\0')
            *path = pl_settings_path(l->ctx, *path);
    }
}

/* A value where settings are expected, such as `- lib.smi` instead of `- path: lib.smi`. */
static void say_no_map(const level *l, const pl_node *at)
{
    const pl_field *f = l->table;

    while (f->type != PL_END && !(f->flags & PL_REQUIRED))
        f++;
    if (at->kind == PL_SCALAR && f->type != PL_END)
        pl_problem_add(l->ctx->problems, at, "%s: settings are expected here, such as %s: %s", l->path, f->key, at->text);
    else
        pl_problem_add(l->ctx->problems, at, "%s: settings (key: value) are expected here", l->path);
}

void pl_settings_read(const pl_settings *ctx, const pl_field *table, void *conf, const pl_node *map, const char *path,
                      const char *const *also)
{
    static const pl_field none[] = { { 0 } };
    level l = { ctx, table != NULL ? table : none, conf, NULL, path, also };

    pl_fields_default(l.table, conf);
    l.given = PL_NEW(ctx->mem, given, pl_fields_count(l.table) + 1);
    if (l.given == NULL) {
        pl_problem_refused(ctx->problems, map, NULL);
        return;
    }
    if (map != NULL && map->kind != PL_MAPPING && !pl_node_is_null(map)) {
        say_no_map(&l, map);
        return;
    }
    if (map != NULL && map->kind == PL_MAPPING)
        read_map(&l, "", map);
    finish(&l, map);
}
