/* SPDX-License-Identifier: Apache-2.0 */
/* Tables whose columns, delimiters or quotes are not clear. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "tests/unit/seen_records.h"

/* Which of two columns gives the molecules would be chosen without a word. */
static void two_csv_columns_for_one_thing_are_refused(void **state)
{
    static const struct {
        const char *text;
        const char *smiles, *title; /* asked for; NULL: guessed */
        const char *why;            /* NULL: it is read */
        const char *row;
    } c[] = {
        { "smiles,y,SMILES\nCC,1,CCC\n", NULL, NULL, "columns 1 (\"smiles\") and 3 (\"SMILES\") may both be the SMILES", NULL },
        { "SMILES,y,SMILES\nCC,1,CCC\n", NULL, NULL, "columns 1 (\"SMILES\") and 3 (\"SMILES\") may both be the SMILES", NULL },
        { "smiles,y,SMILES\nCC,1,CCC\n", "SMILES", NULL, NULL, "CCC\t" },
        { "smiles,y,SMILES\nCC,1,CCC\n", "3", NULL, NULL, "CCC\t" },
        { "Mol,y,SMILES,MOL\nCC,1,CCC,C\n", "mol", NULL, "columns 1 (\"Mol\") and 4 (\"MOL\") may both be the SMILES", NULL },
        { "a,y,a\nCC,1,CCC\n", "a", NULL, "columns 1 (\"a\") and 3 (\"a\") may both be the SMILES", NULL },
        { "a,y,a\nCC,1,CCC\n", "3", NULL, NULL, "CCC\t" },
        { "smiles,ID,id\nCC,1,2\n", NULL, NULL, "columns 2 (\"ID\") and 3 (\"id\") may both be the title", NULL },
        { "smiles,ID,id\nCC,1,2\n", NULL, "id", NULL, "CC\t2" },
        { "smiles,ID,name,Name\nCC,1,2,3\n", NULL, NULL, NULL, "CC\t1" },
        { "mol,smiles,Mol\nCC,C,3\n", NULL, NULL, NULL, "C\t" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        const ch_reader_opts opts = { .smiles_column = c[i].smiles, .title_column = c[i].title };
        ch_reader *r = NULL;
        pl_error err = { 0 };
        seen s;
        write_file(".csv", c[i].text, strlen(c[i].text), false);
        if (c[i].why == NULL) {
            read_path(&s, &opts);
            assert_string_equal(s.text[0], c[i].row);
            forget(&s);
            continue;
        }
        assert_int_equal(ch_reader_open(&r, path, NULL, &opts, &err), PL_ECONFIG);
        assert_non_null(strstr(err.text, c[i].why));
        (void)unlink(path);
    }
}

/* Of "1"2 nobody knows whether 1, 12 or 1"2 is meant. */
static void text_behind_a_closing_quote_is_bad(void **state)
{
    static const char behind[] = "csv: text behind a closing quote; a quote within quotes is written twice";
    seen s;

    (void)state;
    read_text(&s, ".csv", "smiles,y\nC,\"1\"2\nCC,\"1\" \nCCC,1\"2\nCCCC,\"a\"\"b\"\n\"CC\"C,1\n\"C,1\nCO,\"\"\"\"\nCN,\"2\n");
    assert_int_equal(s.n, 8);
    assert_string_equal(s.problem[0], behind);
    for (int i = 1; i < 4; i++)
        assert_null(s.problem[i]);
    assert_string_equal(s.problem[4], behind);
    assert_string_equal(s.problem[5], "csv: a quote that is not closed");
    assert_null(s.problem[6]);
    assert_string_equal(s.problem[7], "csv: a quote that is not closed");
    forget(&s);
}

/* The comma within is no end: "3 would be the name and 4" the value. */
static void a_quote_behind_blanks_begins_a_value(void **state)
{
    const ch_reader_opts opts = { .title_column = "name" };
    static const char text[] = "smiles, \"name\", y\nCC, \"3, 4\",  5\n \"CCO\" ,\t\"a\", 6\nCCC, a \"b\", 7\n";
    seen s;

    (void)state;
    read_data(&s, ".csv", text, sizeof text - 1, &opts);
    assert_int_equal(s.n, 3);
    assert_string_equal(s.text[0], "CC\t3, 4");
    assert_string_equal(s.text[1], "CCO\ta");
    assert_string_equal(s.text[2], "CCC\ta \"b\"");
    forget(&s);
}

static void assert_refused(const char *ending, const char *text, const char *why)
{
    ch_reader *r = NULL;
    pl_error err = { 0 };

    write_file(ending, text, strlen(text), false);
    if (ch_reader_open(&r, path, NULL, NULL, &err) == PL_OK)
        fail_msg("%s is read", text);
    if (strstr(err.text, why) == NULL)
        fail_msg("%s: %s", text, err.text);
    (void)unlink(path);
}

static void names_with_bad_quotes_are_refused(void **state)
{
    (void)state;
    assert_refused(".csv", "smiles,\"y\"z\nC,1\n", ".csv:1: the row of names: csv: text behind a closing quote");
    assert_refused(".csv", "\nsmiles,\"y\nC,1\n", ".csv:2: the row of names: csv: a quote that is not closed");
}

/* The row of names, which sign is between its values, and the SMILES of the first row. */
static void the_delimiter_is_not_within_a_name(void **state)
{
    static const struct {
        const char *ending, *text, *row;
        int64_t line;
    } c[] = {
        { ".csv", "\"a;b\",smiles\n1,C\n", "C\t", 2 },
        { ".csv", "\"a,b\";smiles\n1;C\n", "C\t", 2 },
        { ".csv", "\"a,b;c\"\tsmiles\n1\tC\n", "C\t", 2 },
        { ".csv", "\"a\"\",b\";smiles\n1;C\n", "C\t", 2 },
        { ".csv", "\"a\n,b\";smiles\n1;C\n", "C\t", 3 },
        { ".csv", "smiles;IC50 (nM, 37 C);pH\nC;1;7\n", "C\t", 2 },
        { ".csv", "IC50 (nM; pH 7),SMILES\n1,C\n", "C\t", 2 },
        { ".csv", "sep=;\nname,x;smiles\n1;C\n", "C\t", 3 },
        { ".csv", "\xef\xbb\xbfsep=,\r\nx;y,smiles\r\n1,C\r\n", "C\t", 3 },
        { ".csv", "\"SEP=\t\"\nx;y\tsmiles\n1\tC\n", "C\t", 3 },
        { ".csv", "sep=|\nx|smiles\n1|C\n", "C\t", 3 },
        { ".txt", "sep=;\nx;smiles\n1;C\n", "C\t", 3 },
        { ".tsv", "sep=;\nx;smiles\n1;C\n", "C\t", 3 },
        { ".csv", "sep=x,smiles\n1,C\n", "C\t", 2 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        seen s;
        read_text(&s, c[i].ending, c[i].text);
        if (s.n != 1 || s.problem[0] != NULL || strcmp(s.text[0], c[i].row) != 0 || s.line[0] != c[i].line)
            fail_msg("%s: %d records, %s, line %lld", c[i].text, s.n, s.n > 0 ? s.text[0] : "", s.n > 0 ? (long long)s.line[0] : 0);
        forget(&s);
    }
    assert_refused(".csv", "sep=:\nx:smiles\n1:C\n", ".csv:1: \"sep=:\": values are separated by a comma, a semicolon, a tab or |");
}

/* Tables put one behind the other. What stands behind other names is of other columns. */
static void a_second_row_of_names_is_no_record(void **state)
{
    const ch_reader_opts second = { .smiles_column = "2" };
    static const char again[] = "smiles,y\nC,1\n smiles ,\"y\"\nCC,2\nsmiles,3\n";
    static const char other[] = "smiles,y,z\nC,1,2\nsmiles,z,y\nCC,2,3\n";
    static const char word[] = "x,smiles\n1,C\nx,N\ny,smiles\n";
    ch_reader *r = NULL;
    ch_record rec;
    bool more;
    pl_error err = { 0 };
    seen s;

    (void)state;
    read_text(&s, ".csv", again);
    assert_int_equal(s.n, 4);
    assert_string_equal(s.problem[1], "csv: the row of names once more");
    assert_true(s.problem[2] == NULL && s.problem[3] == NULL); /* a molecule cannot be called so, which others say */
    forget(&s);
    write_file(".csv", other, sizeof other - 1, false);
    assert_int_equal(ch_reader_open(&r, path, NULL, NULL, &err), PL_OK);
    assert_int_equal(ch_reader_next(r, &rec, &more, &err), PL_OK);
    assert_int_equal(ch_reader_next(r, &rec, &more, &err), PL_ECONFIG);
    assert_non_null(strstr(err.text, ".csv:3: another row of names: give each table a file of its own"));
    ch_reader_close(r);
    (void)unlink(path);
    write_file(".csv", word, sizeof word - 1, false);
    err.text[0] = '\0';
    assert_int_equal(ch_reader_open(&r, path, NULL, &second, &err), PL_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(ch_reader_next(r, &rec, &more, &err), PL_OK);
    assert_int_equal(ch_reader_next(r, &rec, &more, &err), PL_ECONFIG);
    assert_non_null(strstr(err.text, ".csv:4: another row of names"));
    ch_reader_close(r);
    (void)unlink(path);
}

static void csv_quotes_may_hold_commas_and_line_ends(void **state)
{
    seen s;
    (void)state;

    read_text(&s, ".csv", "name,SMILES,y\n\"a, \"\"b\"\"\",CCO,1\n\"two\nlines\",CC,2\nshort\nc,,3\n");
    assert_int_equal(s.n, 4);
    assert_string_equal(s.text[0], "CCO\ta, \"b\"");
    assert_string_equal(s.title[0], "a, \"b\"");
    assert_string_equal(s.text[1], "CC\ttwo lines");
    assert_non_null(s.problem[2]);
    assert_non_null(s.problem[3]);
    assert_int_equal(s.line[3], 6);
    forget(&s);
}

static void a_csv_cell_with_several_molecules_is_bad(void **state)
{
    seen s;
    (void)state;

    read_text(&s, ".csv", "smiles;y\nCCO + CCC;1\nCCO / CCC;2\nCCO +salt;3\nCCO and;4\n");
    assert_int_equal(s.n, 4);
    assert_string_equal(s.problem[0], "csv: several molecules in one cell, with '+' between them");
    assert_string_equal(s.problem[1], "csv: several molecules in one cell, with '/' between them");
    assert_true(s.problem[2] == NULL && s.problem[3] == NULL);
    forget(&s);
}

static void a_csv_cell_with_several_lines_of_smiles_is_bad(void **state)
{
    seen s;
    (void)state;

    read_text(&s, ".csv", "smiles,y\n\"CCO\nCCC\",1\n\"CCO name\r\n \",2\n\"\nCC\",3\nC |x|,4\n\"C\r\nc1\",5\n");
    assert_int_equal(s.n, 5);
    assert_string_equal(s.problem[0], "csv: several lines in the column of SMILES");
    for (int i = 1; i < 4; i++)
        assert_null(s.problem[i]);
    assert_string_equal(s.text[2], "CC\t");
    assert_string_equal(s.problem[4], "csv: several lines in the column of SMILES");
    forget(&s);
}

static void a_quote_that_is_not_closed_costs_one_row(void **state)
{
    seen s;
    (void)state;

    read_text(&s, ".csv", "smiles,id\nCC,\"oops\nCCC,2\nCCCC,3\n");
    assert_int_equal(s.n, 3);
    assert_non_null(s.problem[0]);
    assert_string_equal(s.text[1], "CCC\t2");
    assert_string_equal(s.text[2], "CCCC\t3");
    assert_int_equal(s.line[2], 4);
    forget(&s);
}

/* The quote of the second row would end at that of the fourth, and swallow two rows. */
static void a_quote_that_ends_where_another_begins_costs_one_row(void **state)
{
    static const char text[] = "name,smiles\n\"one\"\",C\ntwo,CC\n\"three, really\",CCC\n\"fo\"ur,CCCC\n";
    seen s;

    (void)state;
    read_text(&s, ".csv", text);
    assert_int_equal(s.n, 4);
    assert_string_equal(s.problem[0], "csv: a quote that is not closed");
    assert_true(s.problem[1] == NULL && s.problem[2] == NULL);
    assert_string_equal(s.problem[3], "csv: text behind a closing quote; a quote within quotes is written twice");
    assert_string_equal(s.text[1], "CC\ttwo");
    assert_string_equal(s.text[2], "CCC\tthree, really");
    forget(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(csv_quotes_may_hold_commas_and_line_ends),
        cmocka_unit_test(a_csv_cell_with_several_molecules_is_bad),
        cmocka_unit_test(a_csv_cell_with_several_lines_of_smiles_is_bad),
        cmocka_unit_test(a_quote_that_is_not_closed_costs_one_row),
        cmocka_unit_test(a_quote_that_ends_where_another_begins_costs_one_row),
        cmocka_unit_test(two_csv_columns_for_one_thing_are_refused),
        cmocka_unit_test(text_behind_a_closing_quote_is_bad),
        cmocka_unit_test(a_quote_behind_blanks_begins_a_value),
        cmocka_unit_test(names_with_bad_quotes_are_refused),
        cmocka_unit_test(the_delimiter_is_not_within_a_name),
        cmocka_unit_test(a_second_row_of_names_is_no_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
