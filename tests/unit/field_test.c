/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake_stages.h"
#include "pipeline/base/text.h"

static const pl_field *named(const char *key)
{
    for (const pl_field *f = fake_fields; f->type != PL_END; f++)
        if (strcmp(f->key, key) == 0)
            return f;
    fail_msg("no field %s", key);
    return NULL;
}

static void what_is_allowed_is_said_with_range_unit_and_words(void **unused)
{
    static const char *const want[][2] = {
        { "unit", "1..1000000 records" },
        { "cutoff", "0.5..20 Angstrom" },
        { "neighbours.max", "1..1000 or auto" },
        { "neighbours.edges", "radius, bonds, knn or full" },
        { "cpu_limit", "0.1s..1h" },
        { "memory", "1MiB or more" },
        { "strict", "true or false" },
        { "label", "text" },
        { "file", "a file name" },
        { "elements", "a list of texts" },
        { "fractions", "a list of numbers, each 0..1" },
        { "by_name", "a map such as {NAME: {weight: ...}}" },
    };
    char buf[256];

    (void)unused;
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        assert_string_equal(pl_field_allowed(named(want[i][0]), buf, sizeof buf), want[i][1]);
}

static void a_short_buffer_is_never_overrun(void **unused)
{
    char buf[16];

    (void)unused;
    for (const pl_field *f = fake_fields; f->type != PL_END; f++)
        for (size_t n = 1; n <= 8; n++) {
            memset(buf, '#', sizeof buf);
            (void)pl_field_allowed(f, buf, n);
            assert_true(memchr(buf, '\0', n) != NULL);
            assert_true(buf[n] == '#');
        }
}

static void values_are_written_as_they_are_read(void **unused)
{
    fake_conf c;
    char buf[64];

    (void)unused;
    pl_fields_default(fake_fields, &c);
    assert_string_equal(pl_field_value(named("neighbours.max"), &c, buf), "auto");
    assert_string_equal(pl_field_value(named("memory"), &c, buf), "2GiB");
    c.neighbours = 7;
    c.edges = 3;
    c.cpu_limit = 90;
    c.memory = 1500;
    c.strict = false;
    assert_string_equal(pl_field_value(named("neighbours.max"), &c, buf), "7");
    assert_string_equal(pl_field_value(named("neighbours.edges"), &c, buf), "full");
    assert_string_equal(pl_field_value(named("strict"), &c, buf), "false");
    assert_string_equal(pl_field_value(named("label"), &c, buf), "");
}

static void numbers_survive_being_written(void **unused)
{
    static const double values[] = { 0,         1,           20,    0.1,  1e-8, 1.5e300, 9007199254740991.0,
                                     1e15,      1e17,        -3.25, 60,   61,   90,      122,
                                     3600,      86400,       5400,  0.05, 1024, 1536,    1e6,
                                     123456789, 2147483648.0 };
    pl_field duration = { .type = PL_DURATION, .key = "d" }, size = { .type = PL_SIZE, .key = "s" };
    char buf[64];

    (void)unused;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        double back = -1;
        assert_true(pl_parse_real(pl_number_text(values[i], buf), &back) && back == values[i]);
        if (values[i] < 0 || values[i] > 1e12 || values[i] == 1e-8)
            continue;
        assert_true(pl_parse_duration(pl_field_number(&duration, values[i], buf), &back));
        if (!(back == values[i]))
            fail_msg("%s is %.17g, not %.17g", buf, back, values[i]);
        assert_true(pl_parse_size(pl_field_number(&size, values[i], buf), &back) && back == values[i]);
    }
}

typedef struct visits {
    char text[512];
} visits;

static void see_field(void *ctx, const pl_field *f, const char *name, int depth)
{
    visits *v = ctx;
    size_t n = strlen(v->text);
    (void)f;
    (void)snprintf(v->text + n, sizeof v->text - n, "%d:%s ", depth, name);
}

static void see_group(void *ctx, const pl_field *f, const char *name, size_t n_name, int depth, bool opens)
{
    visits *v = ctx;
    size_t n = strlen(v->text);
    (void)f;
    (void)snprintf(v->text + n, sizeof v->text - n, "%d%c%.*s ", depth, opens ? '<' : '>', (int)n_name, name);
}

static void a_table_is_walked_as_the_tree_it_stands_for(void **unused)
{
    static const pl_field table[] = { { .type = PL_INT, .key = "a" },   { .type = PL_INT, .key = "g.x" },
                                      { .type = PL_INT, .key = "b" },   { .type = PL_INT, .key = "g.h.y" },
                                      { .type = PL_INT, .key = "g.z" }, { 0 } };
    static const pl_field_visit visit = { see_field, see_group };
    visits v = { "" };

    (void)unused;
    pl_fields_walk(table, 0, &visit, &v);
    assert_string_equal(v.text, "0:a 0<g 1:x 1<h 2:y 1>h 1:z 0>g 0:b ");
    assert_int_equal(pl_fields_count(table), 5);
    assert_int_equal(pl_fields_count(NULL), 0);
}

static void choices_have_positions(void **unused)
{
    const pl_field *f = named("neighbours.edges");
    char buf[32];

    (void)unused;
    assert_int_equal(pl_field_choice(f, "knn"), 2);
    assert_int_equal(pl_field_choice(f, "kn"), -1);
    assert_int_equal(pl_field_choice(f, "knn|full"), -1);
    assert_int_equal(pl_field_choice(f, ""), -1);
    assert_string_equal(pl_field_choice_name(f, 3, buf, sizeof buf), "full");
    assert_string_equal(pl_field_choice_name(f, 4, buf, sizeof buf), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_allowed_is_said_with_range_unit_and_words),
        cmocka_unit_test(a_short_buffer_is_never_overrun),
        cmocka_unit_test(values_are_written_as_they_are_read),
        cmocka_unit_test(numbers_survive_being_written),
        cmocka_unit_test(a_table_is_walked_as_the_tree_it_stands_for),
        cmocka_unit_test(choices_have_positions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
