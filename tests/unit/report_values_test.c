/* SPDX-License-Identifier: Apache-2.0 */
/* What the report shows of rows that are made here: values far from the others, errors of one of several models, odd characters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "stages/database/schema.h"
#include "stages/report/report_parts.h"

static pl_text out;
static pl_error err;
static st_report r;

static int make(void **state)
{
    (void)state;
    pl_text_reset(&out);
    r = (st_report){ .out = &out, .mem = pl_arena_new(0), .err = &err };
    return r.mem == NULL || sqlite3_open(":memory:", &r.db) != SQLITE_OK || pl_schema_create(r.db, &st_schema, &err) != PL_OK;
}

static int drop(void **state)
{
    (void)state;
    pl_arena_free(r.mem);
    pl_text_free(&out);
    return sqlite3_close(r.db) != SQLITE_OK;
}

static void rows_put(const char *sql)
{
    if (pl_db_exec(r.db, sql, &err) != PL_OK)
        fail_msg("%s", err.text);
}

/* ---- figures ---- */

/* Of 200 values, one at each end is far from the others. These have a figure to themselves where they span less than a third of the
 * 4096 steps between the ends. */
static void values_far_out_are_left_out_where_others_would_be_one_bar(void **state)
{
    (void)state;
    rows_put(
        "INSERT INTO property(property_id,name,unit,task,better) VALUES(1,'narrow','','regression','none'),"
        "(2,'wide','','regression','none');"
        "WITH RECURSIVE k(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM k WHERE n<200) INSERT INTO label(mol_id,property_id,value) "
        "SELECT n,p.property_id,CASE n WHEN 1 THEN 0 WHEN 2 THEN 4096 WHEN 3 THEN 1000.5 ELSE 2363.5+p.property_id END "
        "FROM k, property p");
    st_report_histograms(&r);
    assert_int_equal(r.code, PL_OK);
    const char *narrow = strstr(pl_text_str(&out), "narrow, measured"), *wide = strstr(pl_text_str(&out), "wide, measured");
    const char *cut = strstr(pl_text_str(&out), "; not drawn: 1 below and 1 above");
    assert_true(narrow != NULL && wide > narrow && cut > narrow && cut < wide);
    assert_null(strstr(wide, "not drawn"));
}

/* ---- errors by similarity ---- */

#define ROW(band, error)                                                                \
    "<tr><td>test</td><td>" band "</td><td class=\"n\"><data value=\"1\">1</data></td>" \
    "<td class=\"n\"><data value=\"" error "\">" error ".00</data></td><td>eV</td></tr>\n"

/* Molecule by molecule: 1 and 2 of the two models and properties, 3 is of the training, 4 has no similarity. */
static void errors_by_similarity_are_of_one_model_and_property(void **state)
{
    (void)state;
    rows_put("INSERT INTO property(property_id,name,unit,task,better) VALUES(1,'a','eV','regression','none'),"
             "(2,'b','m','regression','none');"
             "WITH RECURSIVE k(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM k WHERE n<4), pair(m) AS (VALUES(1),(2)) "
             "INSERT INTO evaluated SELECT m,property_id,n,CASE n WHEN 3 THEN 'train' ELSE 'test' END,1,1+m+4*property_id+16*n,"
             "CASE n WHEN 4 THEN NULL WHEN 2 THEN 1 ELSE 0.15 END FROM k,pair,property");
    st_report_similarity(&r, 2, 1);
    assert_int_equal(r.code, PL_OK);
    assert_string_equal(strstr(pl_text_str(&out), "<tbody>"),
                        "<tbody>\n" ROW("0.1 to 0.2", "22") ROW("0.9 to 1.0", "38") "</tbody></table></div>\n");
}

/* ---- characters ---- */

static void encode(char text[5], uint32_t c)
{
    const int n = 1 + (c >= 0x80) + (c >= 0x800) + (c >= 0x10000);

    memset(text, 0, 5);
    for (int i = n - 1; i > 0; i--, c >>= 6)
        text[i] = (char)(0x80 | (c & 0x3f));
    text[0] = (char)(n == 1 ? c : (0xf0 << (4 - n) & 0xff) | c);
}

/* Control characters, those that change the direction of writing or end a line unseen, and those that are none. */
static bool is_replaced(uint32_t c)
{
    static const uint32_t from_to[][2] = { { 1, 8 },           { 0xb, 0x1f },      { 0x7f, 0x9f },     { 0x200e, 0x200f },
                                           { 0x2028, 0x202e }, { 0x2066, 0x2069 }, { 0xfffe, 0xffff }, { 0x1fffe, 0x1ffff } };

    for (size_t k = 0; k < sizeof from_to / sizeof *from_to; k++)
        if (c >= from_to[k][0] && c <= from_to[k][1])
            return true;
    return false;
}

static void characters_are_shown_or_replaced(void **state)
{
    char text[5];

    (void)state;
    for (uint32_t c = 1; c < 0x20010; c++) {
        if ((c < 0x80 && strchr("&<>\"'", (int)c) != NULL) || (c >= 0xd800 && c < 0xe000))
            continue;
        encode(text, c);
        pl_text_reset(&out);
        st_html_add(&out, text);
        if (strcmp(pl_text_str(&out), is_replaced(c) ? "\xef\xbf\xbd" : text) != 0)
            fail_msg("U+%04X becomes %s", (unsigned)c, pl_text_str(&out));
    }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, make, drop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(values_far_out_are_left_out_where_others_would_be_one_bar),
        CASE(errors_by_similarity_are_of_one_model_and_property),
        CASE(characters_are_shown_or_replaced),
    };
    return cmocka_run_group_tests_name("values in reports", tests, NULL, NULL);
}
