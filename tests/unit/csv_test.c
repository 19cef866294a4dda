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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_csv_columns_for_one_thing_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
