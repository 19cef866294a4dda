/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/spelling.h"
#include "pipeline/workflow/settings_parts.h"
#include "pipeline/workflow/workflow_parts.h"

/* If jansson is refused memory, it returns NULL objects, and the final dump fails; only that is checked. */

enum { MAX_DEPTH = 16 };

static json_t *number(double x)
{
    return x == floor(x) && fabs(x) <= 9007199254740992.0 ? json_integer((json_int_t)x) : json_real(x);
}

static json_t *limits(json_t *schema, const pl_field *f)
{
    if (pl_field_limited(f)) {
        (void)json_object_set_new(schema, "minimum", number(f->min));
        (void)json_object_set_new(schema, "maximum", number(f->max));
    }
    return schema;
}

/* A text of a number with its unit, or the number 0. */
static json_t *pattern(const char *regex)
{
    return json_pack("{s:[s,s], s:s, s:i, s:i}", "type", "string", "number", "pattern", regex, "minimum", 0, "maximum", 0);
}

static json_t *word_value(const char *word)
{
    if (strcmp(word, "true") == 0 || strcmp(word, "false") == 0)
        return json_boolean(word[0] == 't');
    return json_string(word);
}

static json_t *choices(const pl_field *f)
{
    json_t *list = json_array();
    char word[64], other[PL_SPELLED];

    for (int i = 0; strcmp(pl_field_choice_name(f, i, word, sizeof word), "?") != 0; i++)
        (void)json_array_append_new(list, word_value(word));
    for (int i = 0; strcmp(pl_field_choice_name(f, i, word, sizeof word), "?") != 0; i++)
        if (pl_american(word, other))
            (void)json_array_append_new(list, json_string(other));
    return json_pack("{s:o}", "enum", list);
}

/* The schema of one item of a PL_TEXTS or PL_REALS. */
static json_t *item_schema(const pl_field *f)
{
    if (f->type == PL_REALS)
        return limits(json_pack("{s:s}", "type", "number"), f);
    return f->choices != NULL ? choices(f) : json_pack("{s:[s,s,s]}", "type", "string", "number", "boolean");
}

static json_t *table_schema(const pl_field *table, const char *skip);
static json_t *field_schema(const pl_field *f);

/* The schema of a value, without "auto", substitution and documentation. */
static json_t *bare(const pl_field *f)
{
    switch (f->type) {
    case PL_INT: return limits(json_pack("{s:s}", "type", "integer"), f);
    case PL_REAL: return limits(json_pack("{s:s}", "type", "number"), f);
    case PL_BOOL: return json_pack("{s:s}", "type", "boolean");
    case PL_TEXT: return json_pack("{s:[s,s,s,s]}", "type", "string", "number", "boolean", "null");
    case PL_PATH: return json_pack("{s:[s,s]}", "type", "string", "null");
    case PL_CHOICE: return choices(f);
    case PL_DURATION: return pattern("^(0|([0-9]*\\.?[0-9]+(ms|s|min|m|h|d))+)$");
    case PL_SIZE: return pattern("^(0|[0-9]*\\.?[0-9]+(B|kB|KB|MB|GB|TB|KiB|MiB|GiB|TiB))$");
    case PL_TEXTS:
    case PL_REALS: {
        json_t *item = item_schema(f);
        return json_pack("{s:[{s:s, s:O}, o]}", "anyOf", "type", "array", "items", item, item);
    }
    case PL_LIST:
        if (pl_settings_short(f) != NULL)
            return json_pack("{s:s, s:{s:[o,o]}}", "type", "object", "additionalProperties", "anyOf", table_schema(f->sub, "name"),
                             field_schema(pl_settings_short(f)));
        if (f->flags & PL_KEYED)
            return json_pack("{s:s, s:o}", "type", "object", "additionalProperties", table_schema(f->sub, "name"));
        return json_pack("{s:s, s:o}", "type", "array", "items", table_schema(f->sub, NULL));
    case PL_END: break;
    }
    return NULL;
}

static void add_default(json_t *schema, const pl_field *f)
{
    int64_t room[4] = { 0 };
    pl_field one = *f;
    json_t *value = NULL;
    char buf[64];

    one.at = 0;
    pl_fields_default((pl_field[]){ one, { 0 } }, room);
    if ((f->flags & PL_REQUIRED) || f->type >= PL_TEXTS || pl_field_value(&one, room, buf)[0] == '\0')
        return;
    if (f->type == PL_BOOL)
        value = json_boolean(f->dflt != 0);
    else if ((f->type == PL_INT || f->type == PL_REAL) && !(f->choices != NULL && f->dflt == -1))
        value = number(f->dflt);
    else
        value = word_value(pl_field_value(&one, room, buf));
    (void)json_object_set_new(schema, "default", value);
}

static json_t *field_schema(const pl_field *f)
{
    json_t *schema = bare(f), *any;
    pl_text help = { 0 };

    if (f->type < PL_TEXTS && f->type != PL_TEXT && f->type != PL_PATH) {
        any = json_pack("[o, {s:s}]", schema, "$ref", "#/$defs/substitution");
        if (f->choices != NULL && f->type != PL_CHOICE)
            (void)json_array_append_new(any, json_pack("{s:s}", "const", f->choices));
        schema = json_pack("{s:o}", "anyOf", any);
    }
    add_default(schema, f);
    pl_text_addf(&help, "%s%s%s%s", f->help, f->unit != NULL ? " (" : "", f->unit != NULL ? f->unit : "",
                 f->unit != NULL ? ")" : "");
    (void)json_object_set_new(schema, "description", json_string(pl_text_str(&help)));
    pl_text_free(&help);
    return schema;
}

/* ---- a table ---- */

typedef struct builder {
    json_t *object[MAX_DEPTH]; /* the object schema at each depth */
    const char *skip;
} builder;

static json_t *object_new(void)
{
    return json_pack("{s:[s,s], s:{}, s:b}", "type", "object", "null", "properties", "additionalProperties", 0);
}

static void require(json_t *object, const char *name)
{
    json_t *list = json_object_get(object, "required");

    if (list == NULL) {
        list = json_array();
        (void)json_object_set_new(object, "required", list);
        (void)json_object_set_new(object, "type", json_string("object"));
    }
    (void)json_array_append_new(list, json_string(name));
}

/* Under its name, and under its American spelling. */
static void add_named(json_t *object, const char *name, json_t *schema)
{
    json_t *properties = json_object_get(object, "properties");
    char other[PL_SPELLED];

    if (pl_american(name, other))
        (void)json_object_set(properties, other, schema);
    (void)json_object_set_new(properties, name, schema);
}

static void add_field(void *ctx, const pl_field *f, const char *name, int depth)
{
    builder *b = ctx;

    if (b->skip != NULL && strcmp(b->skip, name) == 0)
        return;
    add_named(b->object[depth], name, field_schema(f));
    if (f->flags & PL_REQUIRED)
        require(b->object[depth], name);
}

static void add_group(void *ctx, const pl_field *f, const char *name, size_t n_name, int depth, bool opens)
{
    builder *b = ctx;
    char key[64];

    (void)f;
    (void)snprintf(key, sizeof key, "%.*s", (int)n_name, name);
    if (opens) {
        b->object[depth + 1] = object_new();
        return;
    }
    if (json_object_get(b->object[depth + 1], "required") != NULL)
        require(b->object[depth], key);
    add_named(b->object[depth], key, b->object[depth + 1]);
}

static json_t *table_schema(const pl_field *table, const char *skip)
{
    static const pl_field_visit visit = { add_field, add_group };
    builder b = { .skip = skip };

    b.object[0] = object_new();
    pl_fields_walk(table, 0, &visit, &b);
    return b.object[0];
}

static json_t *stages_schema(const pl_stage *const *known)
{
    json_t *stages =
        json_pack("{s:s, s:{}, s:b, s:i}", "type", "object", "properties", "additionalProperties", 0, "minProperties", 1);

    for (; *known != NULL; known++) {
        json_t *one = table_schema((*known)->fields, NULL);
        (void)json_object_set_new(one, "description", json_string((*known)->help));
        (void)json_object_set_new(json_object_get(one, "properties"), "needs",
                                  json_pack("{s:s, s:s}", "$ref", "#/$defs/names", "description",
                                            "stages that run before this one"));
        (void)json_object_set_new(json_object_get(stages, "properties"), (*known)->name, one);
    }
    return stages;
}

void pl_workflow_schema(const pl_stage *const *known, pl_text *out)
{
    json_t *root = table_schema(pl_workflow_fields, NULL), *properties = json_object_get(root, "properties"), *whole;
    char *text;

    (void)json_object_set_new(properties, "vars",
                              json_pack("{s:[s,s], s:{s:[s,s,s,s]}, s:s}", "type", "object", "null", "additionalProperties", "type",
                                        "string", "number", "boolean", "null", "description", "values used as ${vars.name}"));
    (void)json_object_set_new(properties, "stages", stages_schema(known));
    require(root, "stages");
    whole =
        json_pack("{s:s, s:s, s:{s:{s:s,s:s}, s:{s:[{s:s},{s:s,s:{s:s}}]}}}", "$schema",
                  "https://json-schema.org/draft/2020-12/schema", "title", "molsieve workflow", "$defs", "substitution", "type",
                  "string", "pattern", "\\$\\{", "names", "anyOf", "type", "string", "type", "array", "items", "type", "string");
    (void)json_object_update(whole, root);
    text = json_dumps(whole, JSON_INDENT(1) | JSON_REAL_PRECISION(15));
    if (text != NULL)
        pl_text_addf(out, "%s\n", text);
    else
        out->refused = true;
    free(text);
    json_decref(whole);
    json_decref(root);
}
