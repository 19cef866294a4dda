/* SPDX-License-Identifier: Apache-2.0 */
/* Records of tables with columns and of compressed files, and reading that continues at a place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "chem/records/relation.h"
#include "pipeline/base/text.h"
#include "tests/unit/seen_records.h"

/* 1,5 would be read as the label 1. */
static void a_csv_row_with_more_values_than_names_is_bad(void **state)
{
    seen s;

    (void)state;
    read_text(&s, ".csv", "smiles,logS\nC,1,5\nCC,2\nCCC,3,, \nCCCC,\"1,5\"\nCCCCC\n");
    assert_int_equal(s.n, 5);
    assert_string_equal(s.problem[0], "csv: 3 columns, but the first row names 2; put values with ',' in quotes");
    for (int i = 1; i < 5; i++)
        assert_null(s.problem[i]);
    forget(&s);
}

static void a_csv_table_may_have_any_number_of_columns(void **state)
{
    enum { COLUMNS = 5000, ROOM = 64 << 10 };
    char *text = calloc(1, ROOM);
    size_t n = 0;
    seen s;

    (void)state;
    assert_non_null(text);
    for (int i = 0; i < COLUMNS; i++)
        n += (size_t)snprintf(text + n, ROOM - n, "x%d,", i);
    n += (size_t)snprintf(text + n, ROOM - n, "smiles\n");
    for (int i = 0; i < COLUMNS; i++)
        n += (size_t)snprintf(text + n, ROOM - n, "C,");
    (void)snprintf(text + n, ROOM - n, "CCO\n");
    read_text(&s, ".csv", text);
    assert_int_equal(s.n, 1);
    assert_null(s.problem[0]);
    assert_string_equal(s.text[0], "CCO\t");
    forget(&s);
    free(text);
}

static void a_csv_header_longer_than_a_record_is_refused(void **state)
{
    const ch_reader_opts opts = { .max_record_bytes = 20 };
    static const char text[] = "first,second,third,fourth,smiles\nC,C,C,C,CCO\n";
    ch_reader *r = NULL;
    pl_error err = { 0 };

    (void)state;
    write_file(".csv", text, strlen(text), false);
    assert_int_equal(ch_reader_open(&r, path, NULL, &opts, &err), PL_ECONFIG);
    assert_non_null(strstr(err.text, "longer than 20 bytes"));
    (void)unlink(path);
}

static void reading_stops_within_a_line(void **state)
{
    static const char *const endings[] = { ".smi", ".sdf", ".mol2", ".xyz", ".pdb", ".cif", ".csv", ".inchi" };
    enum { LONG = 4 << 20 };
    char *data = calloc(1, LONG);
    atomic_int stop;

    (void)state;
    assert_non_null(data);
    memset(data, 'C', LONG);
    memcpy(data, "smiles\n", 7);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        for (int gz = 0; gz < 2; gz++) {
            const ch_reader_opts opts = { .stop = &stop };
            ch_reader *r;
            ch_record rec;
            bool more;
            stop = 0;
            write_file(endings[i], data, LONG, gz);
            assert_int_equal(ch_reader_open(&r, path, NULL, &opts, NULL), PL_OK);
            stop = 1;
            assert_int_equal(ch_reader_next(r, &rec, &more, NULL), PL_ESTOP);
            stop = 0;
            ch_reader_close(r);
            (void)unlink(path);
        }
    free(data);
}

static void going_to_a_place_stops_before_the_first_byte(void **state)
{
    static const char text[] = "C a\nCC b\n";
    atomic_int stop = 1;
    const ch_reader_opts opts = { .stop = &stop };
    ch_reader *r;
    ch_record rec;
    bool more;

    (void)state;
    write_file(".smi", text, strlen(text), false);
    assert_int_equal(ch_reader_open(&r, path, NULL, &opts, NULL), PL_OK);
    assert_int_equal(ch_reader_seek(r, 0, 1, 1, NULL), PL_ESTOP);
    assert_int_equal(ch_reader_seek(r, 4, 2, 2, NULL), PL_ESTOP);
    stop = 0;
    assert_int_equal(ch_reader_seek(r, 4, 2, 2, NULL), PL_OK);
    assert_int_equal(ch_reader_next(r, &rec, &more, NULL), PL_OK);
    assert_string_equal(rec.title, "b");
    ch_reader_close(r);
    (void)unlink(path);
}

static void a_missing_csv_column_is_a_wrong_setting(void **state)
{
    const ch_reader_opts o = { .smiles_column = "structure" }, two = { .smiles_column = "2" };
    ch_reader *r;
    pl_error err = { 0 };
    (void)state;

    write_file(".csv", "a,b\nCC,CCC\n", 11, false);
    assert_int_equal(ch_reader_open(&r, path, NULL, &o, &err), PL_ECONFIG);
    assert_int_equal(ch_reader_open(&r, path, NULL, &two, &err), PL_OK);
    ch_reader_close(r);
    (void)unlink(path);
}

static void gzip_is_known_by_content_and_damage_is_a_record(void **state)
{
    char text[4096] = "";
    seen s;
    (void)state;

    for (int i = 0; i < 40; i++)
        (void)snprintf(text + strlen(text), 64, "C%dCCC%d n%d\n", i % 9 + 1, i % 9 + 1, i * 7919);
    write_file(".smi", text, strlen(text), true); /* no .gz in the name */
    read_path(&s, NULL);
    assert_int_equal(s.n, 40);
    forget(&s);
    assert_int_equal(truncate(path, 150), 0);
    read_path(&s, NULL);
    assert_true(s.n >= 1 && s.n < 40);
    assert_non_null(s.problem[s.n - 1]);
    for (int i = 0; i < s.n - 1; i++)
        assert_null(s.problem[i]);
    forget(&s);
    (void)unlink(path);
}

/* A gzip file cut between two lines, longer than the first read. */
static void write_cut_between_lines(int n)
{
    struct stat at;
    gzFile f;

    (void)snprintf(path, sizeof path, "/tmp/molsieve_record_%ld.smi.gz", (long)getpid());
    f = gzopen(path, "wb");
    for (int i = 0; i < n; i++)
        (void)gzprintf(f, "C m%05d\n", i);
    assert_int_equal(gzflush(f, Z_FULL_FLUSH), Z_OK);
    assert_int_equal(stat(path, &at), 0);
    assert_int_equal(gzclose(f), Z_OK);
    assert_int_equal(truncate(path, at.st_size), 0);
}

static void a_run_that_goes_on_after_damage_does_not_meet_it_again(void **state)
{
    enum { N = 10000 };
    ch_record rec = { 0 };
    bool more = true;
    ch_reader *r;
    (void)state;

    write_cut_between_lines(N);
    assert_int_equal(ch_reader_open(&r, path, NULL, NULL, NULL), PL_OK);
    for (int i = 0; i <= N; i++)
        assert_true(ch_reader_next(r, &rec, &more, NULL) == PL_OK && more && (rec.problem != NULL) == (i == N));
    assert_true(rec.offset == 9 * N && rec.line == N + 1 && rec.ordinal == N + 1);
    ch_reader_close(r);
    assert_int_equal(ch_reader_open(&r, path, NULL, NULL, NULL), PL_OK);
    assert_int_equal(ch_reader_seek(r, 9 * N, N + 1, N + 1, NULL), PL_OK);
    assert_true(ch_reader_next(r, &rec, &more, NULL) == PL_OK && more && rec.problem != NULL && rec.len == 0);
    assert_int_equal(ch_reader_next(r, &rec, &more, NULL), PL_OK);
    assert_false(more);
    ch_reader_close(r);
    (void)unlink(path);
}

static void seek_gives_the_record_it_was_told(void **state)
{
    static const char text[] = "1\na\nC 0 0 0\n1\nb\nN 0 0 0\n1\nc\nO 0 0 0\n";
    (void)state;

    for (int gz = 0; gz < 2; gz++) {
        ch_reader *r;
        ch_record rec;
        bool more;
        int64_t offset, line;

        write_file(".xyz", text, strlen(text), gz == 1);
        assert_int_equal(ch_reader_open(&r, path, NULL, NULL, NULL), PL_OK);
        assert_int_equal(ch_reader_next(r, &rec, &more, NULL), PL_OK);
        assert_int_equal(ch_reader_next(r, &rec, &more, NULL), PL_OK);
        offset = rec.offset;
        line = rec.line;
        assert_int_equal(ch_reader_next(r, &rec, &more, NULL), PL_OK);
        assert_true(more);
        assert_int_equal(ch_reader_next(r, &rec, &more, NULL), PL_OK);
        assert_false(more);
        assert_int_equal(ch_reader_seek(r, offset, 2, line, NULL), PL_OK);
        assert_int_equal(ch_reader_next(r, &rec, &more, NULL), PL_OK);
        assert_true(more);
        assert_string_equal(rec.title, "b");
        assert_int_equal(rec.ordinal, 2);
        assert_int_equal(rec.line, 4);
        ch_reader_close(r);
        (void)unlink(path);
    }
}

/* The values of a table with one row, and the relation that is unclear for the last column. */
static void assert_measured(const char *names, const char *row, const char *values, const char *unclear)
{
    pl_arena *mem = pl_arena_new(4096);
    pl_text table = { 0 }, got = { 0 };
    ch_reader *r;
    ch_record rec;
    ch_field *f;
    bool more;
    int n;

    pl_text_addf(&table, "smiles,%s\nCC,%s\n", names, row);
    write_file(".csv", table.s, table.len, false);
    assert_int_equal(ch_reader_open(&r, path, NULL, NULL, NULL), PL_OK);
    assert_true(ch_reader_next(r, &rec, &more, NULL) == PL_OK && more);
    assert_int_equal(ch_record_measured(&f, &n, r, &rec, mem, NULL), PL_OK);
    for (int i = 1; i < n; i++) {
        pl_text_add(&got, i > 1 ? "|" : "");
        pl_text_add(&got, f[i].text);
        pl_text_add(&got, f[i].is_number ? " number" : "");
    }
    assert_string_equal(pl_text_str(&got), values);
    const ch_field *beside = ch_relation_unclear(f, n, &f[n - 1]);
    assert_string_equal(beside != NULL ? beside->name : "", unclear);
    assert_null(ch_relation_unclear(f, n, NULL));
    ch_reader_close(r);
    (void)unlink(path);
    pl_text_free(&table);
    pl_text_free(&got);
    pl_arena_free(mem);
}

static void a_relation_makes_its_value_a_limit(void **state)
{
    (void)state;
    assert_measured("Standard Relation,Standard Value", ">,10000", ">|>10000", "");
    assert_measured("standard_relation,standard_value", "'<=',10", "'<='|<=10", "");
    assert_measured("standard_relation,standard_value", "'=',10", "'='|10 number", "");
    assert_measured("standard_relation,standard_value", ",10", "|10 number", "");
    assert_measured("Standard Relation,Standard Value", "'~',10", "'~'|~10", "");
    assert_measured("Relation,Value", "about,10", "about|about 10", "");
    assert_measured("Relation,Value", ">,>10", ">|>10", "");
    assert_measured("Relation,Value", ">,", ">|", "");
    assert_measured("IC50_qualifier,mw,IC50 (nM)", "\xe2\x89\xa5,300,5",
                    "\xe2\x89\xa5|300 number|\xe2\x89\xa5"
                    "5",
                    "");
    assert_measured("pIC50 relation,standard_relation,pIC50", "=,>,5", "=|>|5 number", "");
}

/* Not those of other values: a limit of IC50 is none of logD, and at least of IC50 is at most of pIC50. */
static void a_relation_of_another_value_is_unclear(void **state)
{
    (void)state;
    assert_measured("Standard Relation,Standard Value,pIC50", "'>',10000,5", "'>'|>10000|5 number", "Standard Relation");
    assert_measured("relation,IC50", "<,7", "<|7 number", "relation");
    assert_measured("relation,IC50", "=,7", "=|7 number", "");
    assert_measured("Operator,IC50", ">,7", ">|7 number", "Operator");
    assert_measured("IC50_operator,IC50", ">,7", ">|>7", "");
    assert_measured("operator,value", ">,7", ">|>7", "");
    assert_measured("operator,value", "J. Smith,7", "J. Smith|7 number", ""); /* a person */
    assert_measured("operator,value", "=,7", "=|7 number", "");
    assert_measured("IC50 Modifier,IC50", "<=,7", "<=|<=7", "");
    assert_measured("sign,IC50", "'>=',7", "'>='|7 number", "sign");
    assert_measured("censored,IC50", "\xe2\x89\xa4,7", "\xe2\x89\xa4|7 number", "censored");
    assert_measured("sign,IC50", "=,7", "=|7 number", "");
    assert_measured("sign,IC50", ">5,7", ">5|7 number", "");
    assert_measured("sign,IC50", "> x,7", "> x|7 number", "");
    assert_measured("relation,IC50", "parent,7", "parent|7 number", "");
    assert_measured("correlation,IC50", "0.9,7", "0.9 number|7 number", "");
}

static void a_relation_may_name_its_column_with_the_unit(void **state)
{
    (void)state;
    assert_measured("IC50 (nM) relation,IC50 (nM)", ">,7", ">|>7", "");
    assert_measured("IC50 (nM)_qualifier,IC50 (nM)", "'<=',7", "'<='|<=7", "");
    assert_measured("Ki [nM] operator,Ki [nM]", ">,7", ">|>7", "");
    assert_measured("Standard Value (nM) Relation,Standard Value (nM)", ">,7", ">|>7", "");
    assert_measured("logS (20 C) relation,logS (20 C)", "<,-7", "<|<-7", "");
    assert_measured("relation,Value (nM)", ">,7", ">|>7", "");
    assert_measured("Ki (human) [nM] relation,Ki (human) [nM]", ">,7", ">|>7", "");
    assert_measured("Ki (human) relation,Ki (human) [nM]", ">,7", ">|>7", "");
    assert_measured("Ki relation,Ki (human) [nM]", ">,7", ">|>7", "");
    assert_measured("IC50 mean relation,IC50 (nM) mean", ">,7", ">|>7", "");
    assert_measured("IC50 (nM) mean relation,IC50 (nM) mean", ">,7", ">|>7", "");
    assert_measured("IC50 (nM) relation (as reported),IC50 (nM)", ">,7", ">|>7", "");
    assert_measured("IC50 relation (as reported) 2,IC50 (nM)", ">,7", ">|>7", "");
    assert_measured("IC50 (\xce\xbcM) relation,IC50 (\xc2\xb5M)", ">,7", ">|>7", "");
    assert_measured("IC50 (nM relation,IC50 (nM", ">,7", ">|>7", ""); /* not closed */
    assert_measured("T (((((((((((x) relation,T (((((((((((x)", ">,7", ">|>7", "");
    assert_measured("a (1) (2) (3) (4) (5) (6) relation,a (1) (2) (3) (4) (5) (6)", ">,7", ">|>7", "");
    /* Another unit is another column. */
    assert_measured("IC50 (nM) relation,IC50 (nM),IC50 (uM)", ">,7,8", ">|>7|8 number", "IC50 (nM) relation");
    assert_measured("IC50 (uM) relation,IC50 (nM)", ">,7", ">|7 number", "IC50 (uM) relation");
    assert_measured("IC50 (\xc2\xb5M) relation,IC50 (\xc2\xb5M),IC50 (M)", ">,7,8", ">|>7|8 number", "IC50 (\xc2\xb5M) relation");
    /* What a bracket says is no ending. */
    assert_measured("IC50 (relation),IC50 (nM)", "parent,7", "parent|7 number", "");
}

static void letters_of_all_scripts_tell_columns_apart(void **state)
{
    (void)state;
    assert_measured("溶解度 relation,溶解度", ">,7", ">|>7", "");
    assert_measured("溶解度1 relation,溶解度1,温度1", ">,7,8", ">|>7|8 number", "溶解度1 relation");
    assert_measured("растворимость (мг/л) relation,растворимость (мг/л)", ">,7", ">|>7", "");
    assert_measured("ΔG relation,ΔG,G", ">,7,8", ">|>7|8 number", "ΔG relation");
    assert_measured("Löslichkeit relation,Löslichkeit (mg/L)", ">,7", ">|>7", "");
    /* Signs: a no-break space, a dash, a degree, wide brackets. */
    assert_measured("IC50\xc2\xa0– relation,IC50", ">,7", ">|>7", "");
    assert_measured("T (C) relation,T (°C)", ">,7", ">|>7", "");
    assert_measured("IC50 nM relation,IC50（nM）", ">,7", ">|>7", "");
    /* Bytes that are no UTF-8. */
    assert_measured("a\xe2 relation,a\xe2", ">,7", ">|>7", "");
    assert_measured("relation \xc2,value\xef\xbc", ">,7", ">|>7", "");
}

/* What is said of the units of column `name` of a table; "": nothing. */
static void assert_units(const char *table, const char *name, const char *wanted, const char *said)
{
    pl_arena *mem = pl_arena_new(4096);
    char what[CH_RELATION_BYTES] = "";
    ch_units u = { 0 };
    ch_record rec;
    ch_field *f;
    ch_reader *r;
    bool more = true;
    int n;

    write_file(".csv", table, strlen(table), false);
    assert_int_equal(ch_reader_open(&r, path, NULL, NULL, NULL), PL_OK);
    while (ch_reader_next(r, &rec, &more, NULL) == PL_OK && more) {
        const ch_units before = u;
        assert_int_equal(ch_record_measured(&f, &n, r, &rec, mem, NULL), PL_OK);
        const bool differs = ch_units_add(&u, f, n, ch_field_find(f, n, name), rec.line);
        const bool one_row = strstr(name, "(nM)") != NULL; /* its name and a field differ */
        assert_true(!differs || (ch_units_differ(&u) && (before.unit.first[0] != '\0' || before.type.first[0] != '\0' || one_row)));
    }
    assert_true((ch_units_say(what, &u, name, wanted) != NULL) == (said[0] != '\0'));
    if (strncmp(what, said, strlen(said)) != 0)
        fail_msg("'%s' is not '%s'", what, said);
    ch_reader_close(r);
    (void)unlink(path);
    pl_arena_free(mem);
}

static void kinds_of_a_column_are_one(void **state)
{
    (void)state;
    assert_units("smiles,Standard Value,Standard Type\nC,1,IC50\nCC,2,\nCCC,3,'ic50'\nCCCC,4,IC 50\n", "Standard Value", "", "");
    assert_units(
        "smiles,Standard Value,Standard Type\nC,1,IC50\nCC,2,Ki\nCCC,3,Kd\n", "Standard Value", "",
        "3: Standard Type is 'Ki', and 'IC50' in line 2: two kinds of measurement are not one column of Standard Value; keep");
    assert_units("smiles,x,Standard Type\nC,1,IC50\nCC,2,Ki\n", "x", "", "3: Standard Type is 'Ki'");
    assert_units("smiles,x,x type\nC,1,IC50\nCC,2,Ki\n", "x", "", "3: x type is 'Ki'");
    assert_units("smiles,value,type\nC,1,IC50\nCC,2,Ki\n", "value", "", "3: type is 'Ki'");
    /* Units are told first. */
    assert_units("smiles,x,Standard Type,units\nC,1,IC50,nM\nCC,2,Ki,uM\n", "x", "nM", "3: units is 'uM'");
    assert_units("smiles,x,Standard Type,units\nC,1,IC50,nM\nCC,2,Ki,nM\n", "x", "uM",
                 "2: units is 'nM', and x is said to be in uM");
    /* Of another column, of the assay, of anything, numbers. */
    assert_units("smiles,pX,Standard Value,Standard Type\nC,1,4,IC50\nCC,2,5,Ki\n", "pX", "", "");
    assert_units("smiles,x,Assay Type\nC,1,B\nCC,2,F\n", "x", "", "");
    assert_units("smiles,x,Data Type\nC,1,B\nCC,2,F\n", "x", "", "");
    assert_units("smiles,x,type\nC,1,a\nCC,2,b\n", "x", "", "");
    assert_units("smiles,x,Standard Type\nC,1,1\nCC,2,2\n", "x", "", "");
    assert_units("smiles,x,Standard Type\nC,1,IC50\nCC,2,--\n", "x", "", "");
    /* Any name, if the text is a kind. */
    assert_units("smiles,x,endpoint\nC,1,IC50\nCC,2,'IC 50'\nCCC,3,b\n", "x", "", "");
    assert_units("smiles,x,endpoint\nC,1,IC50\nCC,2,\"Ki\"\n", "x", "", "3: endpoint is 'Ki', and 'IC50' in line 2: two kinds");
    assert_units("smiles,target,endpoint,x\nC,a,LD50,1\nCC,b,TD50,2\n", "x", "", "3: endpoint is 'TD50', and 'LD50' in line 2");
    assert_units("smiles,x,what,kind\nC,1,potent,IC50\nCC,2,--,Ki\n", "x", "", "3: kind is 'Ki', and 'IC50' in line 2");
    assert_units("smiles,x,type\nC,1,IC50\nCC,2,Ki\n", "x", "", "3: type is 'Ki'");
    assert_units("smiles,x,Assay Type\nC,1,IC50\nCC,2,Ki\n", "x", "", "3: Assay Type is 'Ki'");
    assert_units("smiles,x,y,y type\nC,1,2,IC50\nCC,2,3,Ki\n", "x", "", "");
    assert_units("smiles,Ki\nC,1\nCC,Ki\n", "Ki", "", "");
}

static void names_of_one_unit_or_kind_do_not_contradict(void **state)
{
    (void)state;
    assert_false(ch_units_contradict("\xc2\xb5M", "umol/L"));
    assert_false(ch_units_contradict("'nM'", " nM "));
    assert_false(ch_units_contradict("", "nM"));
    assert_true(ch_units_contradict("nM", "uM"));
    assert_true(ch_units_contradict("points", "nM"));
    assert_false(ch_type_differs("IC 50", "ic50"));
    assert_false(ch_type_differs("", "Ki"));
    assert_true(ch_type_differs("IC50", "Ki"));
    assert_true(ch_is_logarithm("pIC50") && ch_is_logarithm("logS") && ch_is_logarithm("(pKi)"));
    assert_false(ch_is_logarithm("IC50") || ch_is_logarithm("potency"));
}

static void units_of_a_column_are_one(void **state)
{
    (void)state;
    assert_units("smiles,Standard Value,Standard Units\nC,1,nM\nCC,2,\nCCC,3,nM\n", "Standard Value", "nM", "");
    assert_units("smiles,Standard Value,Standard Units\nC,1,nM\nCC,2,uM\nCCC,3,%\n", "Standard Value", "",
                 "3: Standard Units is 'uM', and 'nM' in line 2: numbers of two units are not one column of Standard Value");
    assert_units("smiles,Standard Value,Standard Units\nC,1,uM\nCC,2,uM\n", "Standard Value", "nM",
                 "2: Standard Units is 'uM', and Standard Value is said to be in nM");
    assert_units("smiles,x_unit,x\nC,'\xc2\xb5M',1\nCC, \xce\xbcM ,2\nCCC,uM,4\n", "x", "\xc2\xb5M", "");
    assert_units("smiles,x,UoM\nC,1,nM\nCC,2,uM\n", "x", "", "3: UoM is 'uM', and 'nM' in line 2");
    assert_units("smiles,x,Unit of measure\nC,1,nM\n", "x", "uM", "2: Unit of measure is 'nM', and x is said to be in uM");
    assert_units("smiles,x,Measurement unit\nC,1,%\nCC,2,nM\n", "x", "", "3: Measurement unit is 'nM'");
    /* Concentrations under any name, and in the name of the label. */
    assert_units("smiles,x,dimension\nC,1,nM\nCC,2,mg/ml\n", "x", "", "3: dimension is 'mg/ml', and 'nM' in line 2");
    assert_units("smiles,x,dimension\nC,1,nM\nCC,2,nM\n", "x", "\xc2\xb5M",
                 "2: dimension is 'nM', and x is said to be in \xc2\xb5M");
    assert_units("smiles,x,dimension\nC,1,nM\nCC,2,nmol/l\n", "x", "log10(mol/L)", "3: dimension is 'nmol/l'");
    assert_units("smiles,x,dimension\nC,1,mg/L\nCC,2,mg/L\n", "x", "log10(mol/L)", "");
    assert_units("smiles,x,dimension\nC,1,mg/L\nCC,2,mg/L\n", "x", "ug/mL", "");
    assert_units("smiles,x,y,y unit\nC,1,2,nM\nCC,2,3,uM\n", "x", "", "");
    assert_units("smiles,IC50 (uM)\nC,1\nCC,2\n", "IC50 (uM)", "nM",
                 "2: IC50 (uM) has by its name the unit 'uM', and IC50 (uM) is said");
    assert_units("smiles,IC50_uM\nC,1\nCC,2\n", "IC50_uM", "nM", "2: IC50_uM has by its name the unit 'uM'");
    assert_units("smiles,IC50 [umol/L]\nC,1\nCC,2\n", "IC50 [umol/L]", "uM", "");
    assert_units("smiles,logS (mol/L)\nC,1\nCC,2\n", "logS (mol/L)", "log10(mol/L)", "");
    assert_units("smiles,width (nm)\nC,1\nCC,2\n", "width (nm)", "nM", "");
    assert_units("smiles,x_M,(M)\nC,1,2\nCC,2,3\n", "x_M", "nM", "");
    assert_units("smiles,IC50 (nM),Units\nC,1,uM\n", "IC50 (nM)", "",
                 "2: IC50 (nM) is 'uM', and 'nM' in line 2: numbers of two units");
    assert_units("smiles,IC50 (nM),Units\nC,1,nM\n", "IC50 (nM)", "nM", "");
    assert_units("smiles,dG (kJ/mol)\nC,1\n", "dG (kJ/mol)", "kcal/mol", "2: dG (kJ/mol) has by its name the unit 'kJ/mol', and");
    assert_units("smiles,dG (kcal mol-1)\nC,1\n", "dG (kcal mol-1)", "kcal/mol", "");
    assert_units("smiles,T [\xc2\xb0"
                 "C]\nC,1\n",
                 "T [\xc2\xb0"
                 "C]",
                 "K",
                 "2: T [\xc2\xb0"
                 "C] has by its name the unit");
    assert_units("smiles,T [deg C]\nC,1\n", "T [deg C]", "C", "");
    assert_units("smiles,gap (meV)\nC,1\n", "gap (meV)", "eV", "2: gap (meV) has by its name the unit 'meV'");
    assert_units("smiles,inhibition (%)\nC,1\n", "inhibition (%)", "nM", "2: inhibition (%) has by its name the unit '%'");
    assert_units("smiles,x (S)\nC,1\n", "x (S)", "h", ""); /* no unit that anyone knows */
    assert_units("smiles,x_h,y_min\nC,1,2\n", "x_h", "min", "");
    assert_units("smiles,x,x unit\nC,1,umol/L\n", "x", "uM", "");
    assert_units("smiles,x,x unit\nC,1,kJ/mol\n", "x", "kcal/mol", "2: x unit is 'kJ/mol', and x is said to be in kcal/mol");
    assert_units("smiles,x,x unit\nC,1,fortnights\n", "x", "h", "2: x unit is 'fortnights', and x is said to be in h");
    assert_units("smiles,x,what\nC,1,%\nCC,2,C\n", "x", "nM", ""); /* a text of another column is a unit if it is a concentration */
    assert_units("smiles,x (old),units\nC,1,nM\nCC,2,%\n", "x (old)", "", "3: units is '%', and 'nM' in line 2");
    /* Names that begin with the same 70 letters. */
#define LONG "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqr"
    assert_units("smiles," LONG "x," LONG "y," LONG "x unit\nC,1,4,nM\nCC,2,5,uM\n", LONG "x", "", "3: abcdefghijklmnopqrstuvwxyz");
    assert_units("smiles," LONG "x," LONG "y," LONG "x unit\nC,1,4,nM\nCC,2,5,uM\n", LONG "y", "", "");
#undef LONG
    /* Of another column, a number, a text, a row without the value. */
    assert_units("smiles,x,value,units\nC,1,4,nM\nCC,2,5,%\n", "x", "", "");
    assert_units("smiles,x,mw_unit\nC,1,Da\nCC,2,kDa\n", "x", "", "");
    assert_units("smiles,x,units\nC,1,4\nCC,2,5\n", "x", "nM", "");
    assert_units("smiles,x,community\nC,1,a\nCC,2,b\n", "x", "nM", "");
    assert_units("smiles,x,units\nC,1,nM\nCC,2,nM\n", "y", "uM", "");
}

static void a_column_of_units_may_name_its_column_with_the_unit(void **state)
{
    static const char *const names[][2] = {
        { "IC50 (nM)", "IC50 (nM) unit" },
        { "IC50 (nM)", "IC50 (nM) units" },
        { "IC50 (nM)", "IC50 (nM)_unit" },
        { "IC50 (nM)", "ic50_nM_UoM" },
        { "IC50 (nM)", "IC50 unit" },
        { "IC50 (nM)", "IC50 unit (as reported)" },
        { "IC50 (nM)", "IC50 (nM) unit (as reported)" },
        { "Ki [nM]", "Ki [nM] unit" },
        { "Ki (human) [nM]", "Ki (human) unit" },
        { "Ki (human) [nM]", "Ki (human) [nM] unit of measure" },
        { "IC50 (nM) mean", "IC50 mean unit" },
        { "Standard Value (nM)", "Standard Value (nM) Units" },
        { "Standard Value (nM)", "Standard Units" },
        { "Value (nM)", "unit" },
    };

    (void)state;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        char table[256], said[256];
        (void)snprintf(table, sizeof table, "smiles,%s,%s\nC,1,nM\nCC,2,uM\n", names[k][0], names[k][1]);
        (void)snprintf(said, sizeof said, "3: %s is 'uM', and 'nM' in line 2: numbers of two units", names[k][1]);
        assert_units(table, names[k][0], "", said);
    }
    assert_units("smiles,Solubility (mg/L) unit,Solubility (mg/L)\nC,mg/L,1\nCC,%,2\n", "Solubility (mg/L)", "",
                 "3: Solubility (mg/L) unit is '%', and 'mg/L' in line 2");
    assert_units("smiles,T (K),T (K) unit\nC,1,K\nCC,2,C\n", "T (K)", "", "3: T (K) unit is 'C', and 'K' in line 2");
    assert_units("smiles,IC50 (nM),IC50 (nM) type\nC,1,IC50\nCC,2,Ki\n", "IC50 (nM)", "",
                 "3: IC50 (nM) type is 'Ki', and 'IC50' in line 2: two kinds");
    /* The name that says more of the column is meant, whatever their order. */
    assert_units("smiles,IC50,IC50 unit,IC50 (nM),IC50 (nM) unit\nC,1,uM,1000,nM\nCC,2,mM,2000,nM\n", "IC50 (nM)", "", "");
    assert_units("smiles,IC50 (nM),IC50 (nM) unit,IC50 unit\nC,1,nM,nM\nCC,2,uM,nM\n", "IC50 (nM)", "",
                 "3: IC50 (nM) unit is 'uM'");
    /* Of a column with another unit, and of none. */
    assert_units("smiles,IC50 (nM),IC50 (uM),IC50 (uM) unit\nC,1,2,uM\nCC,2,3,M\n", "IC50 (nM)", "", "");
    assert_units("smiles,x,Ki (nM),Ki (nM) type\nC,1,2,a\nCC,2,3,Ki\n", "x", "", "");
    assert_units("smiles,x,Activity (units)\nC,1,>10\nCC,2,<1\n", "x", "", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_csv_row_with_more_values_than_names_is_bad),
        cmocka_unit_test(a_csv_table_may_have_any_number_of_columns),
        cmocka_unit_test(a_csv_header_longer_than_a_record_is_refused),
        cmocka_unit_test(reading_stops_within_a_line),
        cmocka_unit_test(going_to_a_place_stops_before_the_first_byte),
        cmocka_unit_test(a_missing_csv_column_is_a_wrong_setting),
        cmocka_unit_test(gzip_is_known_by_content_and_damage_is_a_record),
        cmocka_unit_test(a_run_that_goes_on_after_damage_does_not_meet_it_again),
        cmocka_unit_test(seek_gives_the_record_it_was_told),
        cmocka_unit_test(a_relation_makes_its_value_a_limit),
        cmocka_unit_test(a_relation_of_another_value_is_unclear),
        cmocka_unit_test(a_relation_may_name_its_column_with_the_unit),
        cmocka_unit_test(letters_of_all_scripts_tell_columns_apart),
        cmocka_unit_test(units_of_a_column_are_one),
        cmocka_unit_test(a_column_of_units_may_name_its_column_with_the_unit),
        cmocka_unit_test(names_of_one_unit_or_kind_do_not_contradict),
        cmocka_unit_test(kinds_of_a_column_are_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
