/* SPDX-License-Identifier: Apache-2.0 */
/* Files written from the tables of the real stages read back with the values in the tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "fake_stages.h"
#include "pipeline/base/spelling.h"
#include "pipeline/workflow/settings.h"
#include "stages/registry/registry.h"

static pl_arena *mem;

static int setup(void **unused)
{
    (void)unused;
    mem = pl_arena_new(1 << 16);
    return mem == NULL;
}

static int teardown(void **unused)
{
    (void)unused;
    pl_arena_free(mem);
    return 0;
}

/* Only required settings may be missing from a file of defaults. */
static void no_other_problem(const pl_problems *p)
{
    for (int i = 0; i < p->n; i++)
        if (strstr(p->list[i].text, "required but not given") == NULL)
            fail_msg("%d:%d %s", p->list[i].line, p->list[i].column, p->list[i].text);
}

static void same_as_defaults(const pl_stage *stage, const pl_node *node, const pl_settings *ctx)
{
    void *read = PL_NEW(mem, char, stage->conf_size + 1), *dflt = PL_NEW(mem, char, stage->conf_size + 1);
    static const char *const also[] = { "needs", NULL };

    assert_non_null(node);
    pl_settings_read(ctx, stage->fields, read, node, stage->name, also);
    if (stage->fields != NULL)
        pl_fields_default(stage->fields, dflt);
    else
        return;
    assert_string_equal(pl_params_json(stage->fields, read, mem), pl_params_json(stage->fields, dflt, mem));
}

/* Adds the text with the lines of each comment joined by a blank. */
static void add_joined(pl_text *out, const char *s)
{
    while (*s != '\0') {
        const char *next = s + 1 + strspn(s + 1, " ");
        if (*s == '\n' && *next == '#') {
            pl_text_add(out, " ");
            s = next + 1 + strspn(next + 1, " ");
        } else {
            pl_text_add_n(out, s++, 1);
        }
    }
}

static void the_file_of_defaults_reads_back_as_the_defaults(void **unused)
{
    pl_problems problems = { .mem = mem };
    pl_settings ctx = { .problems = &problems, .mem = mem, .folder = "/tmp" };
    pl_text text = { 0 }, joined = { 0 };
    const pl_node *root;

    (void)unused;
    pl_workflow_defaults(st_stages, &text);
    add_joined(&joined, pl_text_str(&text));
    root = pl_yaml_parse(pl_text_str(&text), text.len, "default.yaml", &problems, mem);
    assert_non_null(root);
    for (const pl_stage *const *s = st_stages; *s != NULL; s++)
        same_as_defaults(*s, pl_node_get(pl_node_get(root, "stages"), (*s)->name), &ctx);
    no_other_problem(&problems);
    for (const pl_stage *const *s = st_stages; *s != NULL; s++) /* every setting is named, also unset ones */
        for (const pl_field *f = (*s)->fields; f != NULL && f->type != PL_END; f++)
            assert_non_null(strstr(pl_text_str(&joined), f->help));
    pl_text_free(&joined);
    pl_text_free(&text);
}

/* The schema of a dotted key under an object schema. */
static const json_t *schema_of(const json_t *object, const char *key)
{
    char part[64];

    while (object != NULL && key != NULL) {
        const char *dot = strchr(key, '.');
        (void)snprintf(part, sizeof part, "%.*s", dot != NULL ? (int)(dot - key) : (int)strlen(key), key);
        assert_true(json_is_false(json_object_get(object, "additionalProperties")));
        object = json_object_get(json_object_get(object, "properties"), part);
        key = dot != NULL ? dot + 1 : NULL;
    }
    return object;
}

/* The alternative for the value itself, not for a substitution. */
static const json_t *bare(const json_t *schema)
{
    const json_t *any = json_object_get(schema, "anyOf");
    return any != NULL ? json_array_get(any, 0) : schema;
}

/* A choice may be a boolean, too. */
static const char *spelled(const json_t *choice)
{
    if (json_is_boolean(choice))
        return json_is_true(choice) ? "true" : "false";
    return json_is_string(choice) ? json_string_value(choice) : "?";
}

static void check_field(const json_t *object, const pl_field *f)
{
    const json_t *schema = schema_of(object, f->key), *value = bare(schema);
    int n = 0;
    char word[64];

    if (schema == NULL)
        fail_msg("%s is not in the schema", f->key);
    assert_non_null(strstr(json_string_value(json_object_get(schema, "description")), f->help));
    if ((f->type == PL_INT || f->type == PL_REAL) && pl_field_limited(f)) {
        assert_true(json_number_value(json_object_get(value, "minimum")) == f->min);
        assert_true(json_number_value(json_object_get(value, "maximum")) == f->max);
        if (!(f->flags & PL_REQUIRED) && !(f->choices != NULL && f->dflt == -1))
            assert_true(json_number_value(json_object_get(schema, "default")) == f->dflt);
    }
    if (f->type == PL_CHOICE) {
        char other[PL_SPELLED];
        int n_american = 0; /* behind the others */
        for (; strcmp(pl_field_choice_name(f, n, word, sizeof word), "?") != 0; n++) {
            assert_string_equal(spelled(json_array_get(json_object_get(value, "enum"), (size_t)n)), word);
            n_american += pl_american(word, other);
        }
        assert_int_equal(json_array_size(json_object_get(value, "enum")), n + n_american);
    }
    if (f->type == PL_LIST && !(f->flags & PL_KEYED))
        for (const pl_field *sub = f->sub; sub->type != PL_END; sub++)
            check_field(json_object_get(value, "items"), sub);
}

static void the_schema_says_what_the_tables_say(void **unused)
{
    const pl_stage *const *lists[] = { st_stages, fake_stages };

    (void)unused;
    for (int i = 0; i < 2; i++) {
        pl_text text = { 0 };
        json_t *schema;
        const json_t *stages;
        pl_workflow_schema(lists[i], &text);
        schema = json_loads(pl_text_str(&text), 0, NULL);
        assert_non_null(schema);
        stages = json_object_get(json_object_get(schema, "properties"), "stages");
        for (const pl_stage *const *s = lists[i]; *s != NULL; s++)
            for (const pl_field *f = (*s)->fields; f != NULL && f->type != PL_END; f++)
                check_field(schema_of(stages, (*s)->name), f);
        json_decref(schema);
        pl_text_free(&text);
    }
}

static void every_table_is_sound(void **unused)
{
    (void)unused;
    for (const pl_stage *const *s = st_stages; *s != NULL; s++)
        for (const pl_field *f = (*s)->fields; f != NULL && f->type != PL_END; f++) {
            assert_non_null(f->help);
            assert_true(f->help[0] != '\0' && f->help[strlen(f->help) - 1] != '.');
            assert_true(f->type != PL_CHOICE || f->choices != NULL);
            assert_true(f->type != PL_LIST || (f->sub != NULL && f->sub_size > 0));
            assert_true(f->at < (*s)->conf_size);
            if (pl_field_limited(f) && f->type != PL_CHOICE && !(f->flags & PL_REQUIRED) && f->type < PL_TEXTS &&
                !(f->choices != NULL && f->dflt == -1) && !(f->dflt >= f->min && f->dflt <= f->max))
                fail_msg("%s.%s: the default is out of range", (*s)->name, f->key);
            for (const pl_field *g = (*s)->fields; g != f; g++)
                assert_string_not_equal(f->key, g->key);
        }
}

static void every_stage_and_command_explains_itself(void **unused)
{
    (void)unused;
    for (const pl_stage *const *s = st_stages; *s != NULL; s++) {
        pl_text text = { 0 };
        pl_stage_help(*s, &text);
        for (const pl_field *f = (*s)->fields; f != NULL && f->type != PL_END; f++)
            assert_non_null(strstr(pl_text_str(&text), f->key));
        assert_true(pl_text_ok(&text));
        pl_text_free(&text);
    }
    for (const pl_cmd *const *c = st_commands; *c != NULL; c++) {
        int n = 0;
        assert_non_null((*c)->help);
        assert_non_null((*c)->args);
        for (const pl_opt *o = (*c)->opts; o != NULL && o->name != NULL; o++, n++)
            assert_true(strncmp(o->name, "--", 2) == 0 && o->help != NULL);
        assert_true(n <= PL_OPTS_MAX);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(the_file_of_defaults_reads_back_as_the_defaults),
        TEST(the_schema_says_what_the_tables_say),
        TEST(every_table_is_sound),
        TEST(every_stage_and_command_explains_itself),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
