/* SPDX-License-Identifier: Apache-2.0 */
/* Where records begin and end in files of each format, and what is wrong with them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "chem/records/record_notes.h"
#include "tests/unit/seen_records.h"

static void smiles_lines_are_records_blanks_and_comments_are_not(void **state)
{
    seen s;
    (void)state;

    read_text(&s, ".smi",
              "\xEF\xBB\xBF"
              "CCO ethanol\r\n\r\n# a comment\n  c1ccccc1\tbenzene ring \nCC");
    assert_int_equal(s.n, 3);
    assert_string_equal(s.text[0], "CCO ethanol\n");
    assert_string_equal(s.title[0], "ethanol");
    assert_int_equal(s.offset[0], 3);
    assert_string_equal(s.text[1], "c1ccccc1\tbenzene ring \n");
    assert_string_equal(s.title[1], "benzene ring");
    assert_int_equal(s.line[1], 4);
    assert_int_equal(s.offset[1], 30);
    assert_string_equal(s.text[2], "CC\n");
    forget(&s);
}

static void an_empty_or_blank_file_has_no_records(void **state)
{
    static const char *const endings[] = { ".smi", ".sdf", ".mol2", ".xyz", ".pdb", ".cif", ".csv", ".cml" };
    (void)state;

    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        seen s;
        read_text(&s, endings[i], "");
        assert_int_equal(s.n, 0);
        if (strcmp(endings[i], ".cml") == 0)
            continue;
        read_text(&s, endings[i], "\n\r\n  \n");
        assert_int_equal(s.n, 0);
    }
}

static void a_10_megabyte_line_is_one_failed_record(void **state)
{
    const size_t n = 10u << 20;
    char *data = malloc(n + 64);
    seen s;
    (void)state;

    strcpy(data, "CC a\n");
    memset(data + 5, 'C', n);
    strcpy(data + 5 + n, "\nCCC b\n");
    read_data(&s, ".smi", data, strlen(data), NULL);
    assert_int_equal(s.n, 3);
    assert_null(s.problem[0]);
    assert_int_equal(strncmp(s.problem[1], "record too long: ", 17), 0);
    assert_string_equal(s.text[2], "CCC b\n");
    assert_int_equal(s.offset[2], 5 + (int64_t)n + 1);
    forget(&s);
    free(data);
}

/* What the bars behind a SMILES say and molsieve does not read: either the molecule is the same without it, or the record fails. */
static void a_cxsmiles_part_that_changes_the_molecule_fails(void **state)
{
    static const struct {
        const char *line, *says; /* NULL: it is read */
    } cases[] = {
        { "CCC |^1:0|", "a radical (^) at an atom" },
        { "[CH2]CC |^1:0|", NULL },
        { "[CH2]C[CH2] |^1:0,2|", NULL },
        { "[CH2]CC |^1:0,2|", "a radical (^)" },
        { "ClC[CH]Br |^1:2|", NULL },
        { "ClC[CH]Br |^1:1|", "a radical (^)" },
        { "CC |$_AP1;a,^1:0$,^4:1|", "a radical (^)" },
        { "CC |$_AP1;^1:0$|", NULL },
        { "CCO |(0,1,2;^1:0,2,3;)|", NULL },
        { "CCO |Sg:n:0,1:n:ht|", "a polymer (Sg)" },
        { "CCO |SgD:0:a:b,Sg:gen:0:|", NULL },
        { "Cc1ccccc1 |LN:6:1.5|", "a part that repeats (LN)" },
        { "C*.Clc1ccccc1 |m:1:3.4.5| name", "a bond to one of several atoms" },
        { "N.[Cu] |C:0.0|", "coordinate bonds" },
        { "CC=CC |t:1|", "write them with / and \\" },
        { "C/C=C/C |t:1|", NULL },
        { "CC=CC |c:1|", "cis or trans (c, t)" },
        { "C[C@H](F)Cl |&1:1,r|", NULL },
        { "CCO a |^1:0|", NULL },
        { "CCO |^1:0", NULL },
        { "CCO |", NULL },
    };

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (int table = 0; table < 2; table++) {
            char text[200];
            seen s;
            (void)snprintf(text, sizeof text, table ? "smiles;b\n%s;1\n" : "%s\n", cases[k].line);
            if (table && strchr(cases[k].line, ';') != NULL)
                continue;
            read_text(&s, table ? ".csv" : ".smi", text);
            assert_int_equal(s.n, 1);
            if ((s.problem[0] == NULL) != (cases[k].says == NULL) ||
                (s.problem[0] != NULL && strstr(s.problem[0], cases[k].says) == NULL))
                fail_msg("%s: %s", cases[k].line, s.problem[0] != NULL ? s.problem[0] : "is read");
            forget(&s);
        }
}

static void the_title_stands_behind_the_bars(void **state)
{
    static const char *const cases[][2] = { { "C[C@H](F)Cl |&1:1,r| rac a", "rac a" },
                                            { "CCO\t|$a;b;c$|\tb", "b" },
                                            { "CCO |r|", "" },
                                            { "CCO |c", "|c" },
                                            { "CCO a |r|", "a |r|" },
                                            { "CCO || d", "d" } };

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char text[200];
        seen s;
        (void)snprintf(text, sizeof text, "%s\n", cases[k][0]);
        read_text(&s, ".smi", text);
        assert_string_equal(s.title[0], cases[k][1]);
        forget(&s);
    }
}

static void notes_of_records_are_seen(void **state)
{
    enum { GROUPS = 1 << CH_NOTE_GROUPS, SHORT = 1 << CH_NOTE_SHORT };
    static const struct {
        const char *ending, *text;
        unsigned notes;
    } cases[] = { { ".smi", "C[C@H](F)Cl |&1:1,r| a\n", GROUPS },
                  { ".smi", "C[C@H](F)Cl |r,o12:1|\n", GROUPS },
                  { ".smi", "C[C@H](F)Cl |a:1|\n", 0 },
                  { ".smi", "C[C@H](F)Cl a&1:b|&:1|\n", 0 },
                  { ".smi", "C[C@H](F)Cl |&1:1\n", 0 },
                  { ".smi", "C[C@H](F)Cl no1: |x| &1:\n", 0 },
                  { ".csv", "smiles,b\nC[C@H](F)Cl |&1:1|,1\n", GROUPS },
                  { ".csv", "smiles,b\nC[C@H](F)Cl,1\n", 0 },
                  { ".csv", "smiles,b\nC\n", SHORT },
                  { ".csv", "smiles,b\nC |o1:0|\n", SHORT | GROUPS },
                  { ".csv", "smiles,b\nC,\n", 0 },
                  { ".sdf", "a\n\n\nM  V30 MDLV30/STERAC1 ATOMS=(1 2)\nM  END\n$$$$\n", GROUPS },
                  { ".sdf", "a\n\n\nM  V30 MDLV30/STEREL7 ATOMS=(1 2)\nM  END\n$$$$\n", GROUPS },
                  { ".sdf", "a\n\n\nM  V30 MDLV30/STEABS ATOMS=(1 2)\nM  END\n$$$$\n", 0 } };

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        ch_reader *r = NULL;
        ch_record record;
        bool more;
        write_file(cases[k].ending, cases[k].text, strlen(cases[k].text), false);
        assert_int_equal(ch_reader_open(&r, path, NULL, NULL, NULL), PL_OK);
        assert_int_equal(ch_reader_next(r, &record, &more, NULL), PL_OK);
        if (ch_record_notes(&record) != cases[k].notes)
            fail_msg("%s", cases[k].text);
        ch_reader_close(r);
        (void)unlink(path);
    }
}

static void an_sdf_record_ends_at_delimiter_or_end_of_file(void **state)
{
    seen s;
    (void)state;

    read_text(&s, ".sdf", "one\n\n\nM  END\n$$$$\r\nbroken\n$$$$\n\n\n\n$$$$\nlast\nM  END");
    assert_int_equal(s.n, 4);
    assert_string_equal(s.title[0], "one");
    assert_string_equal(s.title[1], "broken");
    assert_string_equal(s.text[2], "\n\n\n$$$$\n");
    assert_string_equal(s.text[3], "last\nM  END\n");
    forget(&s);
    read_text(&s, ".sdf", "one\n$$$$\n\n\n");
    assert_int_equal(s.n, 1);
    forget(&s);
}

#define ATOM "    0.0000    0.0000    0.0000 C   0  0\n"
#define MOLFILE(counts, block) "x\n\n\n" counts "  0  0  0  0  0  0  0  0999 V2000\n" block "M  END\n"
#define ETHANE MOLFILE("  2  1", ATOM ATOM "  1  2  1  0\n")

/* Open Babel reads the first of several, and as many bonds as the counts line says. */
static void an_sdf_record_of_which_readers_take_a_part_is_bad(void **state)
{
    seen s;

    (void)state;
    read_text(&s, ".sdf", ETHANE ETHANE ETHANE "$$$$\n" ETHANE "$$$$\n");
    assert_int_equal(s.n, 2);
    assert_string_equal(s.problem[0], "sdf: 3 molecules in one record; a line $$$$ has to stand between them");
    assert_null(s.problem[1]);
    forget(&s);
    read_text(&s, ".sdf",
              ETHANE "> <drawn>\n" ETHANE "\n$$$$\n"
                     "$RXN\n\n\n\n$MOL\n" ETHANE "$MOL\n" ETHANE "$$$$\n");
    assert_int_equal(s.n, 2);
    assert_null(s.problem[0]);
    assert_null(s.problem[1]); /* a reaction: the worker reports it */
    forget(&s);
    read_text(
        &s, ".sdf",
        MOLFILE("  3  1", ATOM ATOM ATOM "  1  2  1  0\n  2  3  1  0\n") "$$$$\n" MOLFILE("  1  0", ATOM ATOM) "$$$$\n" MOLFILE(
            "  2  1", ATOM ATOM
            "  1  2  1  0\nM  CHG  1   1   1\n") "$$$$\n" MOLFILE("  2  1  1", ATOM ATOM
                                                                  "  1  2  1  0\n  2 T    1   6\n") "$$$$\n" MOLFILE("2 1 0",
                                                                                                                     ATOM ATOM
                                                                                                                     "  1  2  1  0\n"));
    assert_int_equal(s.n, 5);
    assert_string_equal(s.problem[0], "sdf: line 9 is one atom or bond more than the fourth line of the record announces");
    assert_string_equal(s.problem[1], "sdf: line 17 is one atom or bond more than the fourth line of the record announces");
    for (int i = 2; i < 5; i++)
        assert_null(s.problem[i]);
    forget(&s);
}

static void a_title_can_come_from_a_data_field(void **state)
{
    static const char text[] = "x\n\n\nM  END\n> <id>\n7\n\n> <ident>\n8\n\n$$$$\n";
    const ch_reader_opts o = { .title_from = "ident" };
    seen s;
    (void)state;

    read_data(&s, ".sdf", text, strlen(text), &o);
    assert_int_equal(s.n, 1);
    assert_string_equal(s.title[0], "8");
    forget(&s);
}

static void a_mol2_record_begins_at_its_header(void **state)
{
    seen s;
    (void)state;

    read_text(&s, ".mol2", "# made by hand\n\n@<TRIPOS>MOLECULE\nfirst\n1 0\n@<TRIPOS>MOLECULE\nsecond\n");
    assert_int_equal(s.n, 2);
    assert_string_equal(s.title[0], "first");
    assert_string_equal(s.title[1], "second");
    assert_int_equal(s.line[1], 6);
    forget(&s);
    read_text(&s, ".mol2", "nothing of the kind\n");
    assert_int_equal(s.n, 1);
    assert_non_null(s.problem[0]);
    forget(&s);
}

static void a_cif_record_begins_at_its_header(void **state)
{
    seen s;
    (void)state;

    read_text(&s, ".cif", "# a\ndata_one\n_x 1\nDATA_two\n;\ndata_in a text\n;\ndata_\n");
    assert_int_equal(s.n, 2);
    assert_string_equal(s.title[0], "one");
    assert_string_equal(s.text[1], "DATA_two\n;\ndata_in a text\n;\ndata_\n");
    assert_int_equal(s.line[1], 4);
    forget(&s);
    read_text(&s, ".cif", "data_one\n_x 1\ndata_two\n;\nno end\ndata_three\n;\nown\n;\ndata_four\n_x 4\n");
    assert_int_equal(s.n, 4);
    assert_string_equal(s.problem[1], "cif: a text that is not closed, before line 6");
    assert_string_equal(s.text[2], "data_three\n;\nown\n;\n");
    assert_string_equal(s.title[3], "four");
    assert_int_equal(s.line[3], 10);
    for (int i = 0; i < 4; i++)
        assert_true(i == 1 || s.problem[i] == NULL);
    forget(&s);
    read_text(&s, ".mcif", "nothing of the kind\n");
    assert_int_equal(s.n, 1);
    assert_non_null(s.problem[0]);
    forget(&s);
}

static void xyz_frames_follow_their_counts(void **state)
{
    seen s;
    (void)state;

    read_text(&s, ".xyz", "1\none\nC 0 0 0 9.5 x\n\n2\ntwo\nH 0 0 0\nH 0 0 7.4*^-1\n");
    assert_int_equal(s.n, 2);
    assert_string_equal(s.text[0], "1\none\nC 0 0 0\n");
    assert_string_equal(s.text[1], "2\ntwo\nH 0 0 0\nH 0 0 7.4e-1\n");
    forget(&s);
}

static void a_broken_xyz_frame_costs_itself_only(void **state)
{
    seen s;
    (void)state;

    read_text(&s, ".xyz", "2\nbad\nC 0 0 0\nrubbish\nmore\n1\ngood\nO 0 0 0\nstray\n1\nlast\nN 0 0 0\n3\nshort\nC 0 0 0\n");
    assert_int_equal(s.n, 5);
    assert_non_null(s.problem[0]);
    assert_null(s.problem[1]);
    assert_string_equal(s.title[1], "good");
    assert_non_null(s.problem[2]);
    assert_string_equal(s.title[3], "last");
    assert_string_equal(s.problem[4], "xyz: 3 atoms announced, 1 found");
    forget(&s);
}

static void pdb_models_are_records(void **state)
{
    seen s;
    (void)state;

    read_text(&s, ".pdb", "HEADER x\nMODEL        1\nATOM  a\nENDMDL\nMODEL        2\nATOM  b\nENDMDL\nEND\n");
    assert_int_equal(s.n, 2);
    assert_non_null(strstr(s.text[1], "ATOM  b"));
    forget(&s);
    read_text(&s, ".pdb", "COMPND    thing\nHETATM a\nCONECT\nEND\n");
    assert_int_equal(s.n, 1);
    assert_string_equal(s.title[0], "thing");
    forget(&s);
}

#define PDB(head) head "\nHETATM    1  C   UNL     1       0.000   0.000   0.000\nCONECT    1\n"

static void pdb_entries_without_an_end_are_records(void **state)
{
    seen s;

    (void)state;
    read_text(&s, ".pdb", PDB("HEADER    one") PDB("COMPND    two") "END\n" PDB("REMARK\nTITLE     three") "TER\n");
    assert_int_equal(s.n, 3);
    assert_string_equal(s.text[0], PDB("HEADER    one"));
    assert_string_equal(s.title[1], "two");
    assert_string_equal(s.title[2], "three");
    forget(&s);
}

#define MOL2(counts, atoms, bonds) "@<TRIPOS>MOLECULE\nx\n" counts "\nSMALL\n\n@<TRIPOS>ATOM\n" atoms "@<TRIPOS>BOND\n" bonds
#define TWO "1 C1 0 0 0 C.3\n2 C2 1.5 0 0 C.3\n"

/* Open Babel reads as many atoms as the header says. */
static void a_mol2_record_with_more_than_it_announces_is_bad(void **state)
{
    seen s;

    (void)state;
    read_text(&s, ".mol2",
              MOL2("1 1", TWO, "1 1 2 1\n") MOL2("2 0 0", TWO, "1 1 2 1\n") MOL2("2 1", TWO, "# one\n1 1 2 1\n\n")
                  MOL2("2", TWO, "1 1 2 1\n") MOL2("2 1", "1 C1 0 0 0 \\\nC.3\n2 C2 1.5 0 0 C.3\n", "1 1 2 1\n"));
    assert_int_equal(s.n, 5);
    assert_string_equal(s.problem[0], "mol2: 2 atoms, and the record announces 1");
    assert_string_equal(s.problem[1], "mol2: 1 bonds, and the record announces 0");
    for (int i = 2; i < 5; i++)
        assert_null(s.problem[i]);
    forget(&s);
}

/* Dioxygen would be read of hydrogen peroxide. Other text behind a record is one of its own, as before. */
static void an_xyz_record_with_more_atoms_than_its_count_is_bad(void **state)
{
    seen s;

    (void)state;
    read_text(&s, ".xyz", "2\nmore\nO 0 0 0\nO 0 0 1.4\nH .9 0 0\n1 .9 0 1.4\n\n1\nnext\nO 0 0 0\n1.5 2 3 4\n1\nlast\nN 0 0 0\n\n");
    assert_int_equal(s.n, 4);
    assert_string_equal(s.problem[0], "xyz: line 5 is one atom more than the record announces");
    assert_null(s.problem[1]);
    assert_string_equal(s.title[1], "next");
    assert_string_equal(s.problem[2], "xyz: line 11 is not a count of atoms");
    assert_null(s.problem[3]);
    forget(&s);
}

static void old_macintosh_line_ends_are_line_ends(void **state)
{
    seen s;
    (void)state;

    read_text(&s, ".smi", "CC a\rCCC b\r");
    assert_int_equal(s.n, 2);
    assert_string_equal(s.title[1], "b");
    forget(&s);
}

static void a_title_is_always_clean_utf8(void **state)
{
    seen s;
    (void)state;

    read_data(&s, ".smi", "CC caf\xE9\x01 \xC3\xA9\nC a\0b\n", 18, NULL);
    assert_int_equal(s.n, 2);
    assert_string_equal(s.title[0], "caf\xEF\xBF\xBD  \xC3\xA9");
    assert_string_equal(s.title[1], "a b");
    forget(&s);
}

static void check_fields(const char *ending, const char *text, const char *name, const char *want, double value)
{
    pl_arena *mem = pl_arena_new(0);
    ch_reader *r;
    ch_record rec;
    ch_field *fields;
    const ch_field *f;
    bool more;
    int n;

    write_file(ending, text, strlen(text), false);
    assert_int_equal(ch_reader_open(&r, path, NULL, NULL, NULL), PL_OK);
    assert_int_equal(ch_reader_next(r, &rec, &more, NULL), PL_OK);
    assert_int_equal(ch_record_fields(&fields, &n, r, &rec, mem, NULL), PL_OK);
    f = ch_field_find(fields, n, name);
    assert_non_null(f);
    assert_string_equal(f->text, want);
    assert_int_equal(f->is_number, !isnan(value));
    if (f->is_number)
        assert_true(fabs(f->value - value) <= 1e-12 * fabs(value));
    ch_reader_close(r);
    pl_arena_free(mem);
    (void)unlink(path);
}

static void fields_of_all_formats_are_found(void **state)
{
    static const char sdf[] = "x\n\n\nM  END\nblah\n>  <a b> (3)\n1.5\n\n> 25 <text>\ntwo\nlines\n\n> <last>\n-2e-3\n$$$$\n";
    static const char qm9[] = "1\ngdb 7\t1.5\t2\t3\t0.\t13.2\t-0.38\t0.11\t0.5\t35\t0.04\t-40.4\t-40.3\t-40.2\t-40.5\t6.4\n"
                              "C 0 0 0 1*^-6\n1341.3\nC\tC\nInChI=1S\n";
    static const char xyz[] = "1\nmol_1 gap=0.25 name=\"two words\" flag Energy=-1.5*^2\nC 0 0 0\n";
    (void)state;

    check_fields(".sdf", sdf, "a b", "1.5", 1.5);
    check_fields(".sdf", sdf, "text", "two\nlines", NAN);
    check_fields(".sdf", sdf, "LAST", "-2e-3", -2e-3);
    /* A limit begins as a header does. */
    check_fields(".sdf", "m\n\nM  END\n> <a>\n> 10\n\n> <b>\n5\n\n$$$$\n", "a", "> 10", NAN);
    check_fields(".sdf", "m\n\nM  END\n> <a>\n> 10\n\n> <b>\n5\n\n$$$$\n", "b", "5", 5);
    check_fields(".sdf", "m\n\nM  END\n> <a>\n> <b>\n5\n\n$$$$\n", "a", "", NAN);
    check_fields(".sdf", "m\n\nM  END\n> <a>\n> <b>\n5\n\n$$$$\n", "b", "5", 5);
    check_fields(".sdf", "m\n\nM  END\n> <IC50 (\xB5M)>\n5\n\n$$$$\n", "IC50 (\xEF\xBF\xBDM)", "5", 5);
    check_fields(".csv", "smiles,\"a\x1B\nb\"\nC,5\n", "a  b", "5", 5);
    check_fields(".xyz", qm9, "gdb", "7", 7);
    check_fields(".xyz", qm9, "homo", "-0.38", -0.38);
    check_fields(".xyz", qm9, "Cv", "6.4", 6.4);
    check_fields(".xyz", xyz, "gap", "0.25", 0.25);
    check_fields(".xyz", xyz, "name", "two words", NAN);
    check_fields(".xyz", xyz, "Energy", "-1.5*^2", -150);
    check_fields(".xyz", "1\nname=\"not closed\nC 0 0 0\n", "name", "not closed", NAN);
    check_fields(".csv", "smiles,IC50 (nM)\nCC, 12 \n", "IC50 (nM)", "12", 12);
}

/* The names of table 2 of its authors belong to the numbers from the left; what is not there has no name. */
static void a_short_line_of_qm9_has_fewer_fields(void **state)
{
    static const char text[] = "1\ngdb 7 1.5 2\nC 0 0 0 0\n1341.3\nC C\nInChI=1S\n";
    pl_arena *mem = pl_arena_new(0);
    ch_reader *r;
    ch_record rec;
    ch_field *fields;
    bool more;
    int n;

    (void)state;
    write_file(".xyz", text, strlen(text), false);
    assert_int_equal(ch_reader_open(&r, path, NULL, NULL, NULL), PL_OK);
    assert_int_equal(ch_reader_next(r, &rec, &more, NULL), PL_OK);
    assert_int_equal(ch_record_fields(&fields, &n, r, &rec, mem, NULL), PL_OK);
    assert_int_equal(n, 3);
    assert_string_equal(fields[2].name, "B");
    assert_true(fields[2].value == 2);
    ch_reader_close(r);
    pl_arena_free(mem);
    (void)unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(smiles_lines_are_records_blanks_and_comments_are_not),
        cmocka_unit_test(an_empty_or_blank_file_has_no_records),
        cmocka_unit_test(a_10_megabyte_line_is_one_failed_record),
        cmocka_unit_test(a_cxsmiles_part_that_changes_the_molecule_fails),
        cmocka_unit_test(the_title_stands_behind_the_bars),
        cmocka_unit_test(notes_of_records_are_seen),
        cmocka_unit_test(an_sdf_record_ends_at_delimiter_or_end_of_file),
        cmocka_unit_test(an_sdf_record_of_which_readers_take_a_part_is_bad),
        cmocka_unit_test(a_title_can_come_from_a_data_field),
        cmocka_unit_test(a_mol2_record_begins_at_its_header),
        cmocka_unit_test(a_cif_record_begins_at_its_header),
        cmocka_unit_test(xyz_frames_follow_their_counts),
        cmocka_unit_test(a_broken_xyz_frame_costs_itself_only),
        cmocka_unit_test(pdb_models_are_records),
        cmocka_unit_test(pdb_entries_without_an_end_are_records),
        cmocka_unit_test(a_mol2_record_with_more_than_it_announces_is_bad),
        cmocka_unit_test(an_xyz_record_with_more_atoms_than_its_count_is_bad),
        cmocka_unit_test(old_macintosh_line_ends_are_line_ends),
        cmocka_unit_test(a_title_is_always_clean_utf8),
        cmocka_unit_test(fields_of_all_formats_are_found),
        cmocka_unit_test(a_short_line_of_qm9_has_fewer_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
