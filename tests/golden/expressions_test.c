/* SPDX-License-Identifier: Apache-2.0 */
/* What the parser of conditions says of right and wrong ones: the SQL that SQLite gets and the columns that are read, or the
 * refusal and its byte. tests/golden/expressions.txt has them. MOLSIEVE_WRITE=1 writes it; look at the difference then. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "golden/golden_text.h"
#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"
#include "stages/expression/expression.h"

static const st_column columns[] = { { "mw", ST_REAL, NULL },
                                     { "hbd", ST_WHOLE, NULL },
                                     { "title", ST_STRING, NULL },
                                     { "scaffold", ST_STRING, "(SELECT scaffold)" },
                                     { "smiles", ST_STRING, "m.smiles" },
                                     { NULL, ST_NULL, NULL } };
static pl_text all;

/* structural 0: without smarts and similarity; 1: with all; 2: neither SMILES nor fingerprints are known. */
static void add(const char *text, int structural)
{
    static const char *const marks[] = { "", "+ ", "- " }, *const is[] = { "SMARTS", "SMILES", "canonical", "scaffold" };
    static const st_structural known = { .smiles = "m.smiles", .bits = "f.bits" }, none = { 0 };
    st_structural s = structural == 1 ? known : none;
    pl_arena *mem = pl_arena_new(0);
    pl_error err = { 0 };
    uint64_t used = 99;
    size_t at = 99;
    pl_code code = structural == 0 ? st_expression_check(text, columns, &used, &at, &err)
                                   : st_expression_parse(text, columns, &s, &used, &at, &err);

    pl_text_add(&all, marks[structural]);
    golden_bytes(&all, text, strlen(text), 200);
    if (code != PL_OK)
        pl_text_addf(&all, "\n    %zu: %s\n", at, err.text);
    else if (structural == 0)
        pl_text_addf(&all, "\n    %llx\n", (unsigned long long)used);
    else
        pl_text_addf(&all, "\n    %llx %s\n", (unsigned long long)used, st_expression_sql(text, &s, mem));
    for (int i = 0; i < s.n_texts && code == PL_OK; i++)
        pl_text_addf(&all, "    %s '%.*s'\n", is[s.text[i].is], (int)s.text[i].n, text + s.text[i].at);
    if (structural == 0)
        assert_int_equal(st_expression_check(text, columns, NULL, NULL, NULL), code);
    pl_arena_free(mem);
}

static const char *const names[] = { "abs",    "ceil",   "ceiling", "coalesce",   "exp",     "floor",     "ifnull", "instr",
                                     "length", "ln",     "log",     "log10",      "log2",    "lower",     "ltrim",  "max",
                                     "min",    "nullif", "pow",     "power",      "replace", "round",     "rtrim",  "sign",
                                     "sqrt",   "SQRT",   "substr",  "similarity", "smarts",  "substring", "trim",   "upper" };
static const char *const unknown[] = { "abss", "ab",   "random", "like",          "mw", "printf", "char",
                                       "hex",  "glob", "count",  "load_extension" };

/* Each function with one to four values of each kind, and its result compared with a number and a text. */
static void functions_add(void)
{
    static const char *const values[] = { "",
                                          "mw",
                                          "hbd",
                                          "title",
                                          "null",
                                          "mw<1",
                                          "mw,hbd",
                                          "hbd,hbd",
                                          "title,title",
                                          "title,hbd",
                                          "mw,title",
                                          "null,mw",
                                          "title,title,title",
                                          "title,hbd,hbd",
                                          "mw,mw,mw",
                                          "title,1,title",
                                          "1,2,3,4",
                                          "'C'" };
    char text[100];

    pl_text_add(&all, "== functions\n");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (size_t k = 0; k < sizeof values / sizeof *values; k++) {
            snprintf(text, sizeof text, "%s(%s) > 1", names[i], values[k]);
            add(text, 0);
            snprintf(text, sizeof text, "%s (%s) = 'x'", names[i], values[k]);
            add(text, 0);
            snprintf(text, sizeof text, "1 / %s(%s) < 2", names[i], values[k]);
            if (k < 9)
                add(text, 0);
        }
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        snprintf(text, sizeof text, "%s(mw) > 1", unknown[i]);
        add(text, 0);
    }
}

static const char *const signs[] = { "<",    "<=", ">",      ">=",      "=",   "==", "<>", "!=",     "+",      "-",
                                     "*",    "/",  "%",      "||",      "and", "or", "is", "is not", "like",   "not like",
                                     "glob", "in", "not in", "between", "not", "&",  "|",  "=>",     "isnull", "not null" };
static const char *const sides[] = { "mw",  "hbd",  "title", "null",      "mw<1",    "1",           "2.5",
                                     "'x'", "true", "(1,2)", "('a','b')", "1 and 2", "'a' and 'b'", "" };

static void operators_add(void)
{
    char text[100];

    pl_text_add(&all, "== operators\n");
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        for (size_t a = 0; a < 5; a++)
            for (size_t b = 0; b < sizeof sides / sizeof *sides; b++) {
                snprintf(text, sizeof text, "%s %s %s", sides[a], signs[i], sides[b]);
                add(text, 0);
            }
    for (size_t i = 8; i < 14; i++)
        for (size_t a = 0; a < 10; a++) {
            snprintf(text, sizeof text, "%s %s hbd %s 2 > 1", sides[a], signs[i], i % 2 ? "/" : "-");
            add(text, 0);
        }
}

static const char *const single[] = { "mw",
                                      "mw < 500 and hbd <= 5",
                                      "MW<500 AND HbD<=5",
                                      "\"mw\" > 1",
                                      "`mw` > 1",
                                      "\"none\" = 1",
                                      "none > 1",
                                      "mv > 1",
                                      "m > 1",
                                      "mw > heavy",
                                      "mw > 'heavy'",
                                      "mw > 1 2",
                                      "mw > 1)",
                                      "(mw > 1",
                                      "((mw > 1))",
                                      "()",
                                      "mw >",
                                      "> 1",
                                      "mw > 1;",
                                      "mw > ?",
                                      "mw > :a",
                                      "mw > @a",
                                      "m.mw > 1",
                                      "mw[1] > 1",
                                      "mw > 1 # x",
                                      "mw ! 1",
                                      "mw \\ 1",
                                      "mw > 1 -- a comment",
                                      "mw > /* a */ 1",
                                      "mw > 1 /* a",
                                      "-- all",
                                      "/* a */",
                                      "",
                                      "   ",
                                      "\t\n mw\r>\n1",
                                      "mw > 12.5",
                                      "mw > .5",
                                      "mw > 1.",
                                      "mw > 1e3",
                                      "mw > 1E-3",
                                      "mw > 1e+3",
                                      "mw > 1e",
                                      "mw > 1e+",
                                      "mw > 12x",
                                      "mw > 1.2.3",
                                      "mw > 0x10",
                                      "mw > 1_0",
                                      "mw > ..5",
                                      "1e3 / 2 > 1",
                                      "1.0 / 2 > 1",
                                      ".5 / 2 > 1",
                                      "3 / 2 > 1",
                                      "title = 'it''s'",
                                      "title = 'open",
                                      "title = \"open",
                                      "title = ''",
                                      "title = ''''",
                                      "title = 'a' 'b'",
                                      "title like 'a%' escape '!'",
                                      "title like 'a%' escape 1",
                                      "title like 1",
                                      "mw like 'a'",
                                      "title not like 'a' and mw > 1",
                                      "title glob '*x'",
                                      "not mw > 1",
                                      "not mw",
                                      "not not mw > 1",
                                      "not",
                                      "mw not 1",
                                      "mw not null",
                                      "mw notnull",
                                      "mw isnull",
                                      "mw is null",
                                      "mw is not null",
                                      "mw is not 3",
                                      "mw is 'x'",
                                      "title is 'x'",
                                      "mw is true",
                                      "mw in (1, 2, 3)",
                                      "mw in ()",
                                      "mw in (1",
                                      "mw in 1",
                                      "mw in (1, 'x')",
                                      "mw not in (1)",
                                      "title in ('a', 'b')",
                                      "mw in (null)",
                                      "mw between 1 and 2",
                                      "mw between 1",
                                      "mw between 1 or 2",
                                      "mw between 'a' and 'b'",
                                      "mw between 1 and 'b'",
                                      "mw not between 1 and 2 and hbd = 1",
                                      "title between 'a' and 'b'",
                                      "1 < mw < 3",
                                      "mw = hbd = 1",
                                      "mw > 1 is null",
                                      "mw in (1) in (2)",
                                      "mw isnull isnull",
                                      "mw > 1 between 1 and 2",
                                      "mw = null",
                                      "null = mw",
                                      "null",
                                      "null and true",
                                      "true",
                                      "false or true",
                                      "1",
                                      "'x'",
                                      "mw + 1",
                                      "true + 1 > 1",
                                      "-mw > 1",
                                      "+mw > 1",
                                      "- - mw > 1",
                                      "-title > 1",
                                      "-true > 1",
                                      "-(mw > 1) > 1",
                                      "title || 'x' = 'y'",
                                      "title || 1 = 'y'",
                                      "1 || title = 'y'",
                                      "title || title || title = 'y'",
                                      "title collate nocase = 'x'",
                                      "title collate binary = 'x'",
                                      "title collate rtrim = 'x'",
                                      "title collate none = 'x'",
                                      "mw collate nocase = 1",
                                      "title collate = 'x'",
                                      "case when mw > 1 then 1 else 2 end > 1",
                                      "case when mw then 1 end > 1",
                                      "case mw when 1 then 2 end > 1",
                                      "case mw when 'x' then 2 end > 1",
                                      "case when mw > 1 then 'a' end > 1",
                                      "case when mw > 1 then 'a' end = 'b'",
                                      "case when mw > 1 then 'a' else 2 end = 'b'",
                                      "case when mw > 1 then 1 when hbd > 1 then 2.5 else null end > 1",
                                      "case title when 'a' then 1 when 'b' then 'c' end > 1",
                                      "case end",
                                      "case when mw > 1 then 1",
                                      "case when mw > 1 else 1 end",
                                      "case mw then 1 end",
                                      "1 / case when mw > 1 then 1 else 2 end > 1",
                                      "1 / case when mw > 1 then 1 else 2.0 end > 1",
                                      "cast(mw as integer) > 1",
                                      "cast(mw as int) > 1",
                                      "cast(mw as real) > 1",
                                      "cast(mw as text) > 1",
                                      "cast(mw as text) = 'x'",
                                      "cast(mw as blob) > 1",
                                      "cast(mw) > 1",
                                      "cast mw as real > 1",
                                      "cast(title as real) > 1",
                                      "1 / cast(mw as integer) > 1",
                                      "1 / cast(mw as real) > 1",
                                      "select 1",
                                      "exists (select 1)",
                                      "values (1)",
                                      "with x as (select 1) select 1",
                                      "(select 1) > 1",
                                      "mw > (select 1)",
                                      "union",
                                      "abs (mw) > 1",
                                      "abs\n(mw) > 1",
                                      "abs\t(mw) > 1",
                                      "abs > 1",
                                      "abs(mw",
                                      "abs(mw,) > 1",
                                      "max(mw, hbd) > 1",
                                      "max(mw) > 1",
                                      "coalesce(mw, 'x') > 1",
                                      "coalesce(null, mw) > 1",
                                      "a_function_whose_name_is_longer_than_forty_bytes_x(1) > 1",
                                      "mw > 1 and",
                                      "and mw > 1",
                                      "mw > 1 or",
                                      "mw and hbd",
                                      "mw > 1 and hbd",
                                      "hbd and mw > 1",
                                      "mw > 1 or hbd",
                                      "hbd or mw > 1",
                                      "mw > 1 and hbd > 1 or title = 'x' and not hbd = 2",
                                      "hbd / mw > 1",
                                      "hbd / 2 > 1",
                                      "hbd * 1.0 / 2 > 1",
                                      "hbd % 2 = 0",
                                      "mw % 2 = 0",
                                      "title + 1 > 1",
                                      "title * 2 > 1",
                                      "mw - title > 1",
                                      "hbd / true > 1",
                                      "\xc3\xa4 > 1",
                                      "mw > 1 \xc3\xa4",
                                      "mw$ > 1",
                                      "_mw > 1",
                                      "m\x01w > 1",
                                      "mw ~ 1",
                                      "mw ^ 1",
                                      "{mw} > 1",
                                      "mw > 1 &&  hbd > 1",
                                      "mw > 1 || hbd > 1",
                                      "scaffold = 'c1ccccc1'",
                                      "\"scaffold\" = 'x'",
                                      "`smiles` = 'x' or scaffold = smiles",
                                      "smarts('C')",
                                      "not smarts('[OH]') and mw > 1",
                                      "smarts('C') = 1",
                                      "smarts('a''b')",
                                      "smarts(C)",
                                      "smarts(smiles)",
                                      "smarts()",
                                      "smarts('C', 'N')",
                                      "smarts('C'",
                                      "smarts 'C'",
                                      "SMARTS ( 'C' )",
                                      "similarity('CCO') > 0.5",
                                      "similarity('CCO')",
                                      "similarity('CCO') > 'x'",
                                      "similarity(1) > 0.5",
                                      "similarity('CCO') > 0.5 or smarts('N') and scaffold = ''",
                                      "1 / similarity('C') > 2",
                                      "smarts",
                                      "similarity = 1",
                                      "smarts('')",
                                      "(scaffold) = 'C1CC1' and 'CC' <> smiles",
                                      "scaffold in ('C1CC1', 'O''', title) or not scaffold is not 'N'",
                                      "case smiles when 'C' then 1 when 'N' then 2 end = 1",
                                      "scaffold = '' or scaffold < 'C1CC1' or title = 'C'",
                                      "lower(scaffold) = 'C' or smiles || 'C' = 'N' or replace(smiles, 'C', 'N') = 'O'",
                                      "scaffold like 'C%' or coalesce(scaffold, 'C') = 'N' or (smiles = title) = 1",
                                      "case when scaffold = 'C1CC1' then 'N' end = 'O'",
                                      "cast(smiles as text) == 'C' and `smiles` == ('C')" };

/* n times `what` between two words. */
static void many_add(const char *before, const char *what, int n, const char *after, int structural)
{
    pl_text text = { 0 };

    pl_text_add(&text, before);
    for (int i = 0; i < n; i++)
        pl_text_add(&text, what);
    pl_text_add(&text, after);
    pl_text_addf(&all, "== %d times '%s'\n", n, what);
    add(pl_text_str(&text), structural);
    pl_text_free(&text);
}

static void conditions_are_answered_as_before(void **state)
{
    (void)state;
    functions_add();
    operators_add();
    pl_text_add(&all, "== conditions\n");
    for (size_t i = 0; i < sizeof single / sizeof *single; i++)
        for (int k = 0; k < 3; k++)
            if (k == 0 || strchr(single[i], 's') != NULL || strchr(single[i], 'S') != NULL)
                add(single[i], k);
    for (int n = 28; n <= 31; n++) {
        many_add("", "(", n, "mw > 1", 0);
        many_add("", "not ", 2 * n, "mw > 1", 0);
        many_add("", "- ", 2 * n, "mw > 1", 0);
    }
    for (int n = 63; n <= 65; n++)
        many_add("scaffold = ''", " and scaffold = ''", n - 1, "", 1);
    for (int n = 99; n <= 101; n++)
        many_add("max(mw", ", 1", n - 1, ") > 1", 0);
    golden_check(MOLSIEVE_TESTS "/golden/expressions.txt", &all);
}

/* What SQLite may do for a condition. */
static void only_its_table_and_functions_are_read(void **state)
{
    static const char *const functions[] = { "like", "glob", "scaffold", "fingerprint", "abs", "similarity", "upper" };
    static char molecule[] = "molecule";

    (void)state;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        assert_int_equal(st_expression_only(molecule, SQLITE_FUNCTION, NULL, functions[i], NULL, NULL), SQLITE_OK);
    assert_int_equal(st_expression_only(molecule, SQLITE_FUNCTION, NULL, "random", NULL, NULL), SQLITE_DENY);
    assert_int_equal(st_expression_only(molecule, SQLITE_FUNCTION, NULL, "load_extension", NULL, NULL), SQLITE_DENY);
    assert_int_equal(st_expression_only(molecule, SQLITE_SELECT, NULL, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(st_expression_only(molecule, SQLITE_READ, "molecule", "mw", NULL, NULL), SQLITE_OK);
    assert_int_equal(st_expression_only(molecule, SQLITE_READ, "fingerprint", "bits", NULL, NULL), SQLITE_OK);
    assert_int_equal(st_expression_only(molecule, SQLITE_READ, "record", "title", NULL, NULL), SQLITE_DENY);
    assert_int_equal(st_expression_only(NULL, SQLITE_READ, "record", "title", NULL, NULL), SQLITE_OK);
    assert_int_equal(st_expression_only(molecule, SQLITE_UPDATE, "molecule", "mw", NULL, NULL), SQLITE_DENY);
    assert_int_equal(st_expression_only(molecule, SQLITE_PRAGMA, "user_version", NULL, NULL, NULL), SQLITE_DENY);
}

/* The column of a problem counts characters, and only where the file has the text as it is. */
static void a_problem_has_the_column_of_its_character(void **state)
{
    static const struct {
        int line, verbatim, at, column;
    } cases[] = { { 3, 10, 0, 10 }, { 3, 10, 4, 13 }, { 3, 10, 99, 15 }, { 3, 0, 4, 7 }, { 0, 10, 4, 7 } };
    pl_arena *mem = pl_arena_new(0);
    pl_error err = { 0 };

    (void)state;
    (void)pl_fail(&err, PL_ECONFIG, "wrong");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pl_problems problems = { .mem = mem };
        pl_node node = { .text = "a\xc3\xa4"
                                 "bcd",
                         .line = cases[i].line,
                         .column = 7,
                         .verbatim = cases[i].verbatim };
        st_expression_problem(&problems, &node, "where", (size_t)cases[i].at, &err);
        assert_int_equal(problems.n, 1);
        assert_int_equal(problems.list[0].column, cases[i].column);
        assert_string_equal(problems.list[0].text, "where: wrong");
    }
    pl_arena_free(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(conditions_are_answered_as_before),
                                        cmocka_unit_test(only_its_table_and_functions_are_read),
                                        cmocka_unit_test(a_problem_has_the_column_of_its_character) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
