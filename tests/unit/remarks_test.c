/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "stages/steps/ingest/remarks.h"

static void add(st_remarks *r, const char *name, const char *text, int64_t line)
{
    const ch_field fields[] = { { .name = "smiles", .text = "CCO" }, { .name = name, .text = text } };

    st_remarks_add(r, fields, 2, "a.csv", line);
}

static void expect(const st_remarks *r, const char *want)
{
    pl_text out = { 0 };

    st_remarks_say(r, &out);
    assert_string_equal(pl_text_str(&out), want);
    pl_text_free(&out);
}

static void remarks_are_counted_and_the_first_is_told(void **state)
{
    st_remarks r = { 0 };

    (void)state;
    expect(&r, "");
    add(&r, "Data Validity Comment", "", 2);
    add(&r, "Data Validity Comment", " \t", 3);
    add(&r, "Validity Comment", "no", 4);
    add(&r, "Data Validity Comments", "no", 5);
    add(&r, "comment", "no", 6);
    expect(&r, "");
    add(&r, "data_validity_comment", "Outside typical range", 7);
    expect(&r, "1 record with a label has a remark that a value may be wrong, the first in a.csv:7: 'Outside typical range' in "
               "data_validity_comment; remove those that you do not trust\n");
    for (int i = 0; i < 999; i++)
        add(&r, "DataValidityComment", "Potential author error", 8 + i);
    expect(&r,
           "1,000 records with a label have a remark that a value may be wrong, the first in a.csv:7: 'Outside typical range' in "
           "data_validity_comment; remove those that you do not trust\n");
}

static void a_remark_does_not_reach_a_terminal_raw(void **state)
{
    st_remarks r = { 0 };

    (void)state;
    add(&r, "Data Validity Comment", "a\x1b[31m\nb\xc2\x9b\xff", 2);
    assert_string_equal(r.first, "a.csv:2: 'a [31m b  ?' in Data Validity Comment");
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(remarks_are_counted_and_the_first_is_told),
                                        cmocka_unit_test(a_remark_does_not_reach_a_terminal_raw) };

    return cmocka_run_group_tests_name("remarks", tests, NULL, NULL);
}
