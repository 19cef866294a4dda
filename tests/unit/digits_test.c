/* SPDX-License-Identifier: Apache-2.0 */
/* Positions reach the worker and come back with all digits of a float, in every format; also formats that the worker lists. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "chem/records/record.h"
#include "pipeline/base/text.h"
#include "tests/unit/prepared.h"

static const float want[2][3] = { { 0.12345671f, -0.00001234f, 0.3f }, { 0.7654321f, 0.98765432f, 1.2345678f } };
static char path[64];

static void write_file(const char *ending, const void *data, size_t n)
{
    FILE *f;

    (void)snprintf(path, sizeof path, "/tmp/molsieve_digits_%ld%s", (long)getpid(), ending);
    f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* The only record of the file, prepared with the positions it has. */
static ch_prepared only_record(void)
{
    const ch_reader_opts opts = { .lister = worker };
    ch_prepare_opts o = ch_prepare_defaults();
    ch_reader *r;
    ch_record rec;
    ch_prepared p;
    bool more;

    o.conformer = CH_3D_KEEP;
    assert_int_equal(ch_reader_open(&r, path, NULL, &opts, NULL), PL_OK);
    assert_int_equal(ch_reader_next(r, &rec, &more, NULL), PL_OK);
    assert_true(more && rec.problem == NULL);
    p = prepare(rec.text, rec.format, &o);
    ch_reader_close(r);
    (void)unlink(path);
    return p;
}

static void assert_exact(const char *ending)
{
    const ch_prepared p = only_record();

    assert_true(p.mol.n_atoms >= 2);
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 3; k++)
            if (!(p.mol.xyz[i][k] == want[i][k]))
                fail_msg("%s: atom %d has %.9g, not %.9g", ending, i, (double)p.mol.xyz[i][k], (double)want[i][k]);
}

#define DIGITS "%.9g %.9g %.9g"
#define AT(i) (double)want[i][0], (double)want[i][1], (double)want[i][2]

static void texts_keep_all_digits(void **state)
{
    static const struct {
        const char *ending, *text;
    } formats[] = {
        { ".xyz", "2\nfluorine\nF " DIGITS "\nF " DIGITS "\n" },
        { ".mol2", "@<TRIPOS>MOLECULE\nfluorine\n 2 1 0 0 0\nSMALL\nNO_CHARGES\n\n@<TRIPOS>ATOM\n 1 F1 " DIGITS " F 1 A 0.0\n"
                   " 2 F2 " DIGITS " F 1 A 0.0\n@<TRIPOS>BOND\n 1 1 2 1\n" },
        { ".sdf", "fluorine\n  test              3D\n\n  0  0  0     0  0            999 V3000\nM  V30 BEGIN CTAB\n"
                  "M  V30 COUNTS 2 1 0 0 0\nM  V30 BEGIN ATOM\nM  V30 1 F " DIGITS " 0\nM  V30 2 F " DIGITS " 0\nM  V30 END ATOM\n"
                  "M  V30 BEGIN BOND\nM  V30 1 1 1 2\nM  V30 END BOND\nM  V30 END CTAB\nM  END\n$$$$\n" },
        { ".cml", "<cml xmlns=\"http://www.xml-cml.org/schema\"><molecule id=\"f\"><atomArray>\n"
                  "<atom id=\"a1\" elementType=\"F\" x3=\"%.9g\" y3=\"%.9g\" z3=\"%.9g\"/>\n"
                  "<atom id=\"a2\" elementType=\"F\" x3=\"%.9g\" y3=\"%.9g\" z3=\"%.9g\"/>\n</atomArray>"
                  "<bondArray><bond atomRefs2=\"a1 a2\" order=\"1\"/></bondArray></molecule></cml>\n" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        char *text = NULL;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        const int n = asprintf(&text, formats[i].text, AT(0), AT(1));
#pragma GCC diagnostic pop
        assert_true(n > 0);
        write_file(formats[i].ending, text, (size_t)n);
        free(text);
        assert_exact(formats[i].ending);
    }
}

/* A molfile of the second kind is known by its fourth line, also below an empty title; its counts are compared. */
static void counts_of_v3000_are_those_of_its_lines(void **state)
{
    static const char *const title[] = { "fluorine", "" };
    const ch_prepare_opts o = ch_prepare_defaults();

    (void)state;
    for (int k = 0; k < 2; k++) {
        const char *text = pl_sprintf(mem,
                                      "%s\n\n\n  0  0  0     0  0            999 V3000\nM  V30 BEGIN CTAB\n"
                                      "M  V30 COUNTS 3 1 0 0 0\nM  V30 BEGIN ATOM\nM  V30 1 F 0 0 0 0\nM  V30 2 F 1.4 0 0 0\n"
                                      "M  V30 END ATOM\nM  V30 BEGIN BOND\nM  V30 1 1 1 2\nM  V30 END BOND\n"
                                      "M  V30 END CTAB\nM  END\n$$$$\n",
                                      title[k]);
        pl_error err = { 0 };
        ch_prepared p;
        assert_int_not_equal(ch_worker_prepare(worker, text, strlen(text), "sdf", &o, &p, mem, &err), PL_OK);
        assert_non_null(strstr(err.text, "is to have 3 atoms and 1 bonds, and has 2 and 1"));
    }
}

/* A position that is no number, and bonds of queries, in both kinds of molfiles: columns of x, type of the bond, reason. */
static void molfiles_without_numbers_or_with_queries_fail(void **state)
{
    static const struct {
        const char *x, *type, *says; /* says: NULL: it is a molecule */
    } cases[] = {
        { "1.4000", "1", NULL },
        { "-1e0", "2", NULL },
        { "abc", "1", "atom 2 has 'abc' where" },
        { "1,40", "1", "'1,40' where a position has a number" },
        { "1.4x", "1", "'1.4x'" },
        { "1.4000", "5", "bond 1 of a molfile has type 5" },
        { "1.4000", "8", "has type 8, which is of queries" },
        { "1.4000", "9", "has type 9" },
        { "1.4000", "10", "has type 10" },
        { "1.4000", "0", "has type 0" },
        { "1.4000", "-1", "has type -1" },
    };
    const ch_prepare_opts o = ch_prepare_defaults();

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (int v3000 = 0; v3000 < 2; v3000++) {
            const char *old = "O\n\n\n  2  1  0  0  0  0  0  0  0  0999 V2000\n    0.0000    0.0000    0.1000 C   0  0\n"
                              "%10s    0.0000    0.0000 C   0  0\n  1  2%3s  0\nM  END\n";
            const char *now = "O\n\n\n  0  0  0     0  0            999 V3000\nM  V30 BEGIN CTAB\nM  V30 COUNTS 2 1 0 0 0\n"
                              "M  V30 BEGIN ATOM\nM  V30 1 C 0 0 0.1 0\nM  V30 2 C %s 0 0 0\nM  V30 END ATOM\nM  V30 BEGIN BOND\n"
                              "M  V30 1 %s 1 2\nM  V30 END BOND\nM  V30 END CTAB\nM  END\n";
            const char *text =
                v3000 ? pl_sprintf(mem, now, cases[k].x, cases[k].type) : pl_sprintf(mem, old, cases[k].x, cases[k].type);
            pl_error err = { 0 };
            ch_prepared p;
            const pl_code code = ch_worker_prepare(worker, text, strlen(text), "sdf", &o, &p, mem, &err);
            assert_int_equal(code == PL_OK, cases[k].says == NULL);
            assert_true(cases[k].says == NULL || strstr(err.text, cases[k].says) != NULL);
        }
}

#define V2000(counts, code, more)                                                                                      \
    "O\n\n\n" counts " V2000\n    0.0000    0.0000    0.1000 C   0" code "\n    1.4000    0.0000    0.0000 C   0  0\n" \
    "  1  2  1  0\n" more "M  END\n> <M  ALS>\nM  ALS\n\n"
#define V3000(number, more, block)                                                                                    \
    "O\n\n\n  0  0  0     0  0            999 V3000\nM  V30 BEGIN CTAB\nM  V30 COUNTS 2 1 0 0 0\nM  V30 BEGIN ATOM\n" \
    "M  V30 1 C 0 0 0.1 0" more "\nM  V30 " number                                                                    \
    " C 1.4 0 0 0\nM  V30 END ATOM\nM  V30 BEGIN BOND\nM  V30 1 1 1 2\nM  V30 END BOND\n" block "M  V30 END CTAB\nM  END\n"
#define COUNTS "  2  1  0  0  0  0  0  0  0  0999"

/* As RDKit writes the atom names of the PDB: every heavy atom has one. Of one in five that has one it may be a group. */
static void names_of_all_atoms_are_no_groups(void **state)
{
    static const struct {
        const char *name[5], *says;
    } cases[] = {
        { { "CA", "C", "OXT", "CL", "N'A" }, NULL },
        { { "CA", "CF3", "O1P", "Cl", "N" }, NULL },
        { { "CA", "C", "OXT", "CL", "Boc" }, "atom 5 of a molfile is N, and a line A calls it 'Boc'" },
        { { "CA", "C", "C1", "CL", "N" }, "atom 3 of a molfile is O, and a line A calls it 'C1'" },
        { { "", "", "OH", "CL", "" }, NULL },
        { { "", "CF3", "", "", "" }, "atom 2 of a molfile is C, and a line A calls it 'CF3'" },
        { { "CA", "C", "OXT", "CL", "" }, "atom 1 of a molfile is C, and a line A calls it 'CA'" },
    };
    static const char *const element[5] = { "C", "C", "O", "Cl", "N" };

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        pl_text text = { 0 };
        pl_text_add(&text, "t\n\n\n  5  4  0  0  0  0  0  0  0  0999 V2000\n");
        for (int i = 0; i < 5; i++)
            pl_text_addf(&text, "%10.4f%10.4f%10.4f %-3s 0  0\n", 1.4 * i, 0.1 * (i % 2), 0.0, element[i]);
        pl_text_add(&text, "  1  2  1  0\n  1  3  1  0\n  1  4  1  0\n  2  5  1  0\n");
        for (int i = 0; i < 5; i++)
            if (cases[k].name[i][0] != '\0')
                pl_text_addf(&text, "A  %3d\n%s\n", i + 1, cases[k].name[i]);
        pl_text_add(&text, "M  END\n");
        assert_reads_as(pl_text_str(&text), "sdf", cases[k].says == NULL ? "NCC(Cl)O" : NULL, cases[k].says);
        pl_text_free(&text);
    }
}

/* Polymers, queries, parts, and lines that are not in their columns: the library reads another molecule. */
static void molfiles_of_no_molecule_fail(void **state)
{
    static const struct {
        const char *text, *smiles, *says;
    } cases[] = {
        { V2000(COUNTS, "  0", ""), "CC", NULL },
        { V2000("2 1 0 0 0 0 0 0 0 0 999", "  0", ""), NULL, "has '2 1' in columns 1 to 3" },
        { V2000("  2\t1  0", "  0", ""), "CC", NULL },
        { V2000("  2  1  1  0", "  0", "  1 F    2   6   7\n"), NULL, "lists of elements" },
        { V2000(COUNTS, "  0", "M  ALS   1  2 F N   O   \n"), NULL, "M  ALS: a list of elements" },
        { V2000(COUNTS, "  0", "M  STY  1   1 SRU\n"), NULL, "a polymer (SRU" },
        { V2000(COUNTS, "  0", "M  STY  2   1 DAT   2 COP\n"), NULL, "a polymer (COP" },
        { V2000(COUNTS, "  0", "M  STY  2   1 DAT   2 SUP\n"), "CC", NULL },
        { V2000(COUNTS, "  0", "M  LIN  1   1   4   2   3\n"), NULL, "a part that repeats" },
        { V2000(COUNTS, "  0", "M  APO  1   1   1\n"), NULL, "a point of attachment" },
        { V2000(COUNTS, "  0", "M  ZBO  1   1   0\n"), NULL, "a bond of order 0" },
        { V2000(COUNTS, "  0", "M CHG 1 1 -1\n"), NULL, "begins with 'M CHG '" },
        { V2000(COUNTS, "  0", "A    2\nBoc\n"), NULL, "atom 2 of a molfile is C, and a line A calls it 'Boc': draw" },
        { V2000(COUNTS, "  0", "A    1\nR1\n"), NULL, "atom 1 of a molfile is C, and a line A calls it 'R1'" },
        { V2000(COUNTS, "  0", "A    2\nCl\n"), NULL, "calls it 'Cl'" },
        { V2000(COUNTS, "  0", "A    1\nCH3\nA    2\n H3C \n"), "CC", NULL },
        { V2000(COUNTS, "  0", "A    2\nC12\nA    9\nBoc\nA    1\n\n"), "CC", NULL },
        { V2000(COUNTS, "  0", "A    2\nM  APO\n"), NULL, "calls it 'M  APO'" },
        { V2000(COUNTS, "  0", "A    2\nCH3\nM  APO  1   1   1\n"), NULL, "a point of attachment" },
        { V2000(COUNTS, "  0", "S  SKP  1\n"), NULL, "has S  SKP, lines to pass over" },
        { V2000(COUNTS, "  4", ""), NULL, "atom 1 of a molfile has the charge code 4" },
        { V2000(COUNTS, "  4", "M  RAD  1   1   2\n"), "C[CH2]", NULL },
        { V3000("2", "", ""), "CC", NULL },
        { V3000("2", " VAL=3", ""), "[CH2]C", NULL },
        { V3000("2", " VAL=-1", ""), NULL, "atom 1 has VAL=-1 and more bonds" },
        { V3000("1", "", ""), NULL, "has the number of another atom" },
        { &V3000("1", "", "")[1], NULL, "has the number of another atom" }, /* without a title */
        { V3000("2", " ATTCHPT=1", ""), NULL, "has ATTCHPT" },
        { V3000("2", "", "M  V30 LINKNODE 1 4 2 1 2 2 1\n"), NULL, "a part that repeats" },
        { V3000("2", "", "M  V30 BEGIN SGROUP\nM  V30 1 SRU 1 ATOMS=(1 1)\nM  V30 END SGROUP\n"), NULL, "a polymer (SRU" },
        { V3000("2", "", "M  V30 BEGIN SGROUP\nM  V30 1 DAT 1 ATOMS=(1 1)\nM  V30 END SGROUP\n"), "CC", NULL },
    };

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        assert_reads_as(cases[k].text, "sdf", cases[k].smiles, cases[k].says);
}

#define OPEN(more)                                                                                                \
    "O\n\n\n" COUNTS " V2000\n    0.0000    0.0000    0.1000 C   0  0\n    1.4000    0.0000    0.0000 C   0  0\n" \
    "  1  2  1  0\n" more

/* The library reads such atoms as they are written, without hydrogens. */
static void molfiles_without_m_end_keep_their_hydrogens(void **state)
{
    static const struct {
        const char *text, *smiles;
    } cases[] = {
        { OPEN("$$$$\n"), "CC" },
        { OPEN(""), "CC" },
        { OPEN("> <a>\n1\n\n$$$$\n"), "CC" },
        { OPEN("> <a>\nM  END\n\n$$$$\n"), "CC" },
        { OPEN("m  end\n> <a>\n1\n\n$$$$\n"), "CC" },
        { OPEN(" M  END\r\n>  <a>\r\n1\r\n\r\n$$$$\r\n"), "CC" },
        { OPEN("A    1\nCH3\nM  RAD  1   1   2\n$$$$\n"), "C[CH2]" },
        { OPEN("M  CHG  1   2  -1\n\n> <a>\n1\n\n$$$$\n"), "[CH2-]C" },
    };

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        assert_reads_as(cases[k].text, "sdf", cases[k].smiles, NULL);
}

static void qm9bin_keeps_all_digits(void **state)
{
    static const uint32_t head[6] = { 1, 2, 1, 11, 4, 64 };
    static const uint32_t offsets[] = { 42, 0, 0, 2, 0, 1 }; /* index and padding, atoms, bonds */
    unsigned char file[256] = "QM9BIN01";

    (void)state;
    memcpy(file + 8, head, sizeof head);
    memcpy(file + 64, &offsets[0], 4);
    memcpy(file + 72, &offsets[2], 8);
    memcpy(file + 80, &offsets[4], 8);
    file[96] = file[97] = 9; /* F F */
    memcpy(file + 112, want, sizeof want);
    file[137] = file[138] = 1; /* atoms 0 and 1, a single bond */
    write_file(".qm9bin", file, 136 + 8 + 48 + 32);
    assert_exact(".qm9bin");
}

/* 9,000 molecules on one line of more than 1 MiB. */
static void cml_without_line_ends_is_read_as_a_whole(void **state)
{
    enum { N = 9000, ROOM = 180 * N + 100 };
    const ch_reader_opts opts = { .lister = worker };
    char *text = malloc(ROOM);
    int n = 0, records = 0;
    ch_reader *r;
    ch_record rec;
    bool more;

    (void)state;
    assert_non_null(text);
    n += snprintf(text, ROOM, "<cml xmlns=\"http://www.xml-cml.org/schema\">");
    for (int i = 0; i < N; i++)
        n += snprintf(text + n, (size_t)(ROOM - n),
                      "<molecule id=\"m%d\"><atomArray><atom id=\"a1\" elementType=\"C\" hydrogenCount=\"4\" x3=\"0\" "
                      "y3=\"0\" z3=\"0\"/></atomArray></molecule>",
                      i);
    n += snprintf(text + n, (size_t)(ROOM - n), "</cml>");
    assert_true(n > 1 << 20 && n < ROOM);
    write_file(".cml", text, (size_t)n);
    free(text);
    assert_int_equal(ch_reader_open(&r, path, NULL, &opts, NULL), PL_OK);
    while (ch_reader_next(r, &rec, &more, NULL) == PL_OK && more) {
        if (rec.problem != NULL)
            fail_msg("%s", rec.problem);
        records++;
    }
    ch_reader_close(r);
    (void)unlink(path);
    assert_int_equal(records, N);
}

/* said: how the problem of the only record begins; NULL: it has none. */
static void problem_of(const ch_reader_opts *opts, const char *said)
{
    static const char text[] = "<cml xmlns=\"http://www.xml-cml.org/schema\"><molecule id=\"m\"><atomArray>"
                               "<atom id=\"a1\" elementType=\"C\" hydrogenCount=\"4\"/></atomArray></molecule></cml>\n";
    ch_reader *r;
    ch_record rec;
    bool more = false;

    write_file(".cml", text, sizeof text - 1);
    assert_int_equal(ch_reader_open(&r, path, NULL, opts, NULL), PL_OK);
    assert_int_equal(ch_reader_next(r, &rec, &more, NULL), PL_OK);
    assert_true(more);
    if (rec.problem == NULL || said == NULL)
        assert_ptr_equal(rec.problem, said);
    else if (strncmp(rec.problem, said, strlen(said)) != 0)
        fail_msg("%s", rec.problem);
    assert_int_equal(ch_reader_next(r, &rec, &more, NULL), PL_OK);
    assert_false(more);
    ch_reader_close(r);
    (void)unlink(path);
}

static void a_listed_file_has_limits(void **state)
{
    const ch_reader_opts usual = { .lister = worker }, small = { .lister = worker, .max_file_bytes = 100 },
                         short_records = { .lister = worker, .max_record_bytes = 30 }, alone = { 0 };

    (void)state;
    problem_of(&usual, NULL);
    problem_of(&small, "record too long: a file of more than 100 bytes in a format that cannot be read in parts");
    problem_of(&short_records, "record too long: ");
    problem_of(&alone, "format: only the chemistry worker reads \"cml\"");
}

static void a_file_without_molecules_is_told(void **state)
{
    static const char text[] = "<cml xmlns=\"http://www.xml-cml.org/schema\"></cml>\n";
    const ch_reader_opts opts = { .lister = worker };
    ch_reader *r;
    ch_record rec;
    bool more = true;

    (void)state;
    write_file(".cml", text, sizeof text - 1);
    assert_int_equal(ch_reader_open(&r, path, NULL, &opts, NULL), PL_OK);
    assert_int_equal(ch_reader_next(r, &rec, &more, NULL), PL_OK);
    assert_true(more && rec.problem != NULL);
    assert_non_null(strstr(rec.problem, "no molecule could be read as cml"));
    ch_reader_close(r);
    (void)unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_keep_all_digits),
        cmocka_unit_test(counts_of_v3000_are_those_of_its_lines),
        cmocka_unit_test(names_of_all_atoms_are_no_groups),
        cmocka_unit_test(molfiles_without_numbers_or_with_queries_fail),
        cmocka_unit_test(molfiles_of_no_molecule_fail),
        cmocka_unit_test(molfiles_without_m_end_keep_their_hydrogens),
        cmocka_unit_test(molfiles_without_numbers_or_with_queries_fail),
        cmocka_unit_test(qm9bin_keeps_all_digits),
        cmocka_unit_test(a_file_without_molecules_is_told),
        cmocka_unit_test(a_listed_file_has_limits),
        cmocka_unit_test(cml_without_line_ends_is_read_as_a_whole),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
