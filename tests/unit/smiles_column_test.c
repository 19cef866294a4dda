/* SPDX-License-Identifier: Apache-2.0 */
/* Which column of a table has SMILES: that whose values are molecules in most of the first rows, and the larger ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "pipeline/base/file.h"
#include "pipeline/base/text.h"
#include "stages/expression/chemistry.h"
#include "stages/fit/smiles_column.h"
#include "toy.h"

static char dir[256];
static pl_arena *mem;
static ch_worker *worker;

static int begin(void **state)
{
    const ch_worker_opts opts = st_chemistry_limits();

    (void)state;
    toy_directory(dir);
    mem = pl_arena_new(0);
    return dir[0] == '\0' || mem == NULL || ch_worker_open(&worker, &opts, NULL) != PL_OK;
}

static int end(void **state)
{
    (void)state;
    ch_worker_close(worker);
    pl_arena_free(mem);
    toy_remove(dir);
    return 0;
}

/* The column's name; "": there is none. */
static const char *found(const char *table)
{
    char *path = pl_sprintf(mem, "%s/t.csv", dir);
    const ch_reader_opts opts = { .smiles_later = true };
    const char *name = "?", *kept;
    ch_reader *r;
    pl_error err = { 0 };

    assert_int_equal(pl_file_write(path, (pl_bytes){ table, strlen(table) }, &err), PL_OK);
    if (ch_reader_open(&r, path, NULL, &opts, &err) != PL_OK || st_smiles_column(&name, r, worker, &err) != PL_OK)
        fail_msg("%s", err.text);
    kept = pl_strdup(mem, name != NULL ? name : "");
    ch_reader_close(r);
    return kept;
}

static const struct {
    const char *table, *column;
} tables[] = {
    { "what,in\ntwo words,C\nthree more words,O\n", "in" }, /* words with blanks are none, however large the others */
    { "what,in\n,C\n,O\n", "in" },                          /* nor is nothing */
    { "no,in\n7,C\n8,O\n", "in" },                          /* nor are numbers */
    { "in,solvent\nCCO,O\nCCCO,O\nCC,O\n", "in" },          /* the larger ones */
    { "solvent,in\nO,CCO\nO,CCCO\nO,CC\n", "in" },
    { "one,two\nCC,CO\nCN,CF\n", "one" },                 /* the first of equal ones */
    { "some,in\nCCCCCCCC,C\nx,O\nz,N\n", "in" },          /* of most rows: one of three is not */
    { "some,in\nCCCCCCCC,C\nCCCCCCCC,O\nz,N\n", "some" }, /* two are */
    { "some,in\nCCCCCCCC,C\nx,O\n", "in" },               /* a half is not */
    { "in,bad\nC,Cq\nO,((\n", "in" },
    { "one,two\nx1,no\ny1,none\n", "" },
    { "one,two\n", "" },
    { "", "" },
};

static void the_column_with_molecules_in_most_rows_is_found(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof tables / sizeof *tables; k++)
        if (strcmp(found(tables[k].table), tables[k].column) != 0)
            fail_msg("%s: '%s', not '%s'", tables[k].table, found(tables[k].table), tables[k].column);
}

/* Rows behind the 40th may differ, and columns behind the 64th may have anything. */
/* Their first rows are molecules, which would be lost. Words and numbers are none. */
static void a_table_without_names_is_refused(void **state)
{
    static const struct {
        const char *table, *says; /* NULL: it is opened, by the first column */
    } cases[] = {
        { "CCO\nCCC\n", "is called \"CCO\"; put a row" },
        { "c1ccccc1,1\nCCC,2\n", "is called \"c1ccccc1\"" },
        { "C[N+](C)(C)C,1\nCCC,2\n", "is called \"C[N+](C)(C)C\"" },
        { "pos,1\nCCC,2\n", NULL },
        { "S1,1\nCCC,2\n", NULL },
        { "ID,1\nCCC,2\n", NULL },
        { "CCO,smiles\nCCC,C\n", NULL },
    };

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char *path = pl_sprintf(mem, "%s/t.csv", dir);
        pl_error err = { 0 };
        ch_reader *r = NULL;
        assert_int_equal(pl_file_write(path, (pl_bytes){ cases[k].table, strlen(cases[k].table) }, &err), PL_OK);
        const pl_code code = ch_reader_open(&r, path, NULL, NULL, &err);
        if (code != (cases[k].says == NULL ? PL_OK : PL_ECONFIG) || (code != PL_OK && strstr(err.text, cases[k].says) == NULL))
            fail_msg("%s: %s", cases[k].table, err.text);
        ch_reader_close(r);
        if (code == PL_OK)
            continue;
        const char *name;
        const ch_reader_opts opts = { .smiles_later = true };
        assert_int_equal(ch_reader_open(&r, path, NULL, &opts, NULL), PL_OK);
        assert_int_equal(st_smiles_column(&name, r, worker, &err), PL_ECONFIG);
        ch_reader_close(r);
    }
}

static void so_many_rows_and_columns_are_looked_at(void **state)
{
    pl_text t = { 0 };

    (void)state;
    for (int rows = 39; rows <= 41; rows++) {
        pl_text_reset(&t);
        pl_text_add(&t, "one,two\n");
        for (int i = 0; i < rows; i++)
            pl_text_add(&t, i < 39 ? "CC,CO\n" : "C,CCCCCCCC\n");
        assert_string_equal(found(pl_text_str(&t)), rows < 40 ? "one" : "two");
    }
    pl_text_reset(&t);
    pl_text_add(&t, "one,two\n");
    for (int i = 0; i < 41; i++)
        pl_text_add(&t, i < 40 ? "CC,CO\n" : "C,CCCCCCCC\n");
    assert_string_equal(found(pl_text_str(&t)), "one");
    for (int at = 63; at <= 64; at++) {
        pl_text_reset(&t);
        for (int i = 0; i < 70; i++)
            pl_text_addf(&t, "c%d%s", i, i < 69 ? "," : "\n");
        for (int i = 0; i < 70; i++)
            pl_text_addf(&t, "%s%s", i == at ? "CCO" : "", i < 69 ? "," : "\n");
        assert_string_equal(found(pl_text_str(&t)), at < 64 ? "c63" : "");
    }
    pl_text_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_column_with_molecules_in_most_rows_is_found),
        cmocka_unit_test(a_table_without_names_is_refused),
        cmocka_unit_test(so_many_rows_and_columns_are_looked_at),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
