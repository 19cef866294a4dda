/* SPDX-License-Identifier: Apache-2.0 */
/* Formats without bonds other than xyz (pdb, and those that the worker lists), isotopes, and molecules that positions do not determine. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/prepared.h"
#include "tests/unit/zwitterions.h"

enum { ORDERS = 4, ATOMS = 64, N_MOLECULES = sizeof zwitterions / sizeof *zwitterions };

typedef struct atom {
    char element[4];
    double x[3];
} atom;

/* The atoms of an xyz text; returns their number. */
static int atoms_of(const char *xyz, atom *out)
{
    const char *line = strchr(strchr(xyz, '\n') + 1, '\n') + 1;
    int n = 0;

    for (; *line != '\0'; line = strchr(line, '\n') + 1, n++)
        assert_int_equal(sscanf(line, "%3s %lf %lf %lf", out[n].element, &out[n].x[0], &out[n].x[1], &out[n].x[2]), 4);
    return n;
}

static void shuffle(atom *a, int n)
{
    static uint32_t state = 5;

    for (int i = n - 1; i > 0; i--) {
        state = state * 1664525u + 1013904223u;
        const int j = (int)((state >> 8) % (uint32_t)(i + 1));
        const atom t = a[i];
        a[i] = a[j];
        a[j] = t;
    }
}

/* more: CONECT lines, or "". */
static void write_pdb(char *out, size_t cap, const atom *a, int n, const char *more)
{
    size_t at = (size_t)snprintf(out, cap, "COMPND    TEST\n");

    for (int i = 0; i < n; i++)
        at += (size_t)snprintf(out + at, cap - at, "HETATM%5d %-4s UNL A   1    %8.3f%8.3f%8.3f  1.00  0.00          %2s  \n",
                               i + 1, a[i].element, a[i].x[0], a[i].x[1], a[i].x[2], a[i].element);
    (void)snprintf(out + at, cap - at, "%sEND\n", more);
}

static void write_aims(char *out, size_t cap, const atom *a, int n)
{
    size_t at = 0;

    for (int i = 0; i < n; i++)
        at += (size_t)snprintf(out + at, cap - at, "atom %.5f %.5f %.5f %s\n", a[i].x[0], a[i].x[1], a[i].x[2], a[i].element);
}

/* The worker's answer, also if it refuses the record. */
static ch_prepared answer(const char *text, const char *format, const ch_prepare_opts *o)
{
    ch_prepared p;
    const pl_code code = ch_worker_prepare(worker, text, strlen(text), format, o, &p, mem, NULL);

    assert_true(code == PL_OK || code == PL_EINPUT);
    return p;
}

static ch_listing list(const char *text, const char *format)
{
    ch_listing found;
    pl_error err = { 0 };

    if (ch_worker_list(worker, text, strlen(text), format, &found, mem, &err) != PL_OK)
        fail_msg("%s", err.text);
    return found;
}

static void pdb_and_listed_files_have_the_bonds_of_xyz(void **state)
{
    ch_prepare_opts o = ch_prepare_defaults();

    (void)state;
    o.conformer = CH_3D_KEEP;
    for (size_t i = 0; i < N_MOLECULES; i++)
        for (int k = 0; k < ORDERS; k++) {
            char text[8192];
            atom a[ATOMS];
            const int n = atoms_of(zwitterions[i].xyz, a);
            if (k > 0)
                shuffle(a, n);
            write_pdb(text, sizeof text, a, n, "");
            const ch_prepared p = answer(text, "pdb", &o);
            if (p.code != CH_OK || strcmp(p.smiles, zwitterions[i].smiles) != 0)
                fail_msg("gdb %d as pdb in order %d: %s (%s)", zwitterions[i].gdb, k, p.smiles, p.message);
            assert_int_equal(p.mol.n_atoms, n);
            write_aims(text, sizeof text, a, n);
            const ch_listing found = list(text, "fhiaims");
            assert_int_equal(found.n, 1);
            assert_string_equal(found.problem[0], "");
            const ch_prepared q = answer(found.text[0], "sdf", &o);
            if (q.code != CH_OK || strcmp(q.smiles, zwitterions[i].smiles) != 0)
                fail_msg("gdb %d as a listed file in order %d: %s (%s)", zwitterions[i].gdb, k, q.smiles, q.message);
        }
}

static const atom methanol[] = { { "C", { 0, 0, 0 } },         { "O", { 1.43, 0, 0 } },       { "H", { -.36, 1.03, 0 } },
                                 { "H", { -.36, -.51, .89 } }, { "H", { -.36, -.51, -.89 } }, { "H", { 1.75, .45, .78 } } };

static void bonds_of_a_pdb_file_have_to_fit_its_positions(void **state)
{
    const ch_prepare_opts o = ch_prepare_defaults();
    char text[2048];

    (void)state;
    write_pdb(text, sizeof text, methanol, 6, "CONECT    1    2    3    4    5\n");
    const ch_prepared good = prepare(text, "pdb", &o);
    assert_string_equal(good.smiles, "CO");
    write_pdb(text, sizeof text, methanol, 6, "CONECT    1    6\n");
    const ch_prepared bad = answer(text, "pdb", &o);
    assert_int_equal(bad.code, CH_VALENCE);
    assert_non_null(strstr(bad.message, "their positions do not"));
    write_pdb(text, sizeof text, methanol, 2, "CONECT    1    2\n");
    const ch_prepared bare = answer(text, "pdb", &o);
    assert_int_equal(bare.code, CH_VALENCE);
    assert_non_null(strstr(bare.message, "hydrogens are missing"));
}

#define PLACE(n, name, altloc, x, y, z, element) \
    "HETATM   " n " " name altloc "LIG A   1     " x " " y " " z "  1.00  0.00           " element "\n"
#define ETHYL                                                      \
    PLACE(" 1", " C1 ", " ", " -0.748", "  0.015", "  0.024", "C") \
    PLACE(" 2", " C2 ", " ", "  0.558", " -0.420", " -0.620", "C") \
    PLACE(" 3", " H1 ", " ", " -1.604", " -0.470", " -0.452", "H") \
    PLACE(" 4", " H2 ", " ", " -0.746", " -0.250", "  1.085", "H") \
    PLACE(" 5", " H3 ", " ", " -0.866", "  1.099", " -0.063", "H") PLACE(" 6", " H4 ", " ", "  0.600", " -0.160", " -1.680", "H")
#define HYDROXYL(altloc)                                              \
    PLACE(" 7", " O1 ", altloc, "  1.670", "  0.250", " -0.040", "O") \
    PLACE(" 8", " HO ", altloc, "  2.480", " -0.080", " -0.460", "H")
#define OTHER(name, altloc)                                                  \
    PLACE(" 9", " " name "1 ", altloc, "  0.650", " -1.830", " -0.480", "O") \
    PLACE("10", " " name "O ", altloc, "  1.520", " -2.110", " -0.800", "H")
#define WATER(x, model, alt, group)                                                                                              \
    "O O1 LIG A 1 " alt " " model " " group " " x ".00 0.00 0.00\nH H1 LIG A 1 " alt " " model " " group " " x ".96 0.00 0.00\n" \
    "H H2 LIG A 1 " alt " " model " " group " " x ".24 -.93 0.00\n"
#define CIF(columns, atoms)                                                                                              \
    "data_x\n_cell.length_a 30\n_cell.length_b 30\n_cell.length_c 30\n_cell.angle_alpha 90\n_cell.angle_beta 90\n"       \
    "_cell.angle_gamma 90\n_struct.title\n;loop_ 'of\n;\n_struct.other 'it''s' # loop_\nloop_\n_atom_site.type_symbol\n" \
    "_atom_site.label_atom_id\n_atom_site.label_comp_id\n_atom_site.label_asym_id\n_atom_site.label_seq_id\n" columns    \
    "_atom_site.Cartn_x\n_atom_site.Cartn_y\n_atom_site.Cartn_z\n" atoms
#define MMCIF(atoms) CIF("_atom_site.label_alt_id\n_atom_site.pdbx_PDB_model_num\n_atom_site.details\n", atoms)

/* Open Babel makes one molecule of all places: 1,1-ethanediol of ethanol. */
static void an_atom_is_in_one_place(void **state)
{
    static const struct {
        const char *format, *text, *smiles, *says;
    } cases[] = {
        { "pdb", ETHYL HYDROXYL("A") OTHER("O", "B") "END\n", NULL, "atom O1 LIG A   1 is in alternate locations (A and B)" },
        { "pdb", ETHYL HYDROXYL(" ") OTHER("O", "B") "END\n", NULL,
          "in alternate locations (none and B), which are places of one atom" },
        { "pdb", ETHYL HYDROXYL("A") OTHER("X", "B") "END\n", "CC(O)O", NULL }, /* other atoms */
        { "pdb", ETHYL HYDROXYL(" ") OTHER("O", " ") "END\n", "CC(O)O", NULL }, /* names that mean nothing */
        { "mmcif", MMCIF(WATER("0", "1", "A", ".")), "O", NULL },
        { "mmcif", MMCIF(WATER("0", "1", "A", ".") WATER("5", "1", "B", ".")), NULL,
          "atom O1 LIG A 1 is in alternate locations (A and B)" },
        { "mmcif", MMCIF(WATER("0", "1", "A", "''") WATER("5", "1", "B", "\"\"")), NULL,
          "atom O1 LIG A 1 is in alternate locations (A and B)" },
        { "mmcif", MMCIF(WATER("0", "1", ".", ".") WATER("5", "2", ".", ".")), NULL, "several models (1 and 2), which are" },
        { "cif",
          CIF("_atom_site.a\n_atom_site.b\n_atom_site.disorder_group\n", WATER("0", "?", "x", "1") WATER("5", "?", "y", "2")), NULL,
          "disordered atoms (groups 1 and 2), which are places of one atom: keep one group" },
        { "cif",
          CIF("_atom_site.a\n_atom_site.b\n_atom_site.disorder_group\n", WATER("0", "?", "x", "1") WATER("5", "?", "y", ".")), "O",
          NULL },
    };
    ch_prepare_opts o = ch_prepare_defaults();

    (void)state;
    o.conformer = CH_3D_NONE;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const ch_prepared p = answer(cases[k].text, cases[k].format, &o);
        if (cases[k].smiles != NULL && (p.code != CH_OK || strcmp(p.smiles, cases[k].smiles) != 0))
            fail_msg("case %zu: %s (%s)", k, p.smiles, p.message);
        if (cases[k].says != NULL && (p.code != CH_PARSE || strstr(p.message, cases[k].says) == NULL))
            fail_msg("case %zu: %s (%s)", k, p.code == CH_OK ? p.smiles : "", p.message);
    }
}

#define MOL2(atom, bond)                                                                                                         \
    "@<TRIPOS>MOLECULE\nwater\n 3 2 0 0 0\nSMALL\nNO_CHARGES\n\n@<TRIPOS>ATOM\n1 O 0 0 .117 O.3\n2 H 0 .757 -.469 H\n" atom "\n" \
    "@<TRIPOS>BOND\n1 1 2 1\n" bond "\n"
#define CRYSTAL(end) CIF("", "O O1 LIG A 1 0.00(2) 0.00 0.00\nH H1 LIG A 1 .96 0.00 0.00\nH H2 LIG A 1 -.24 -.93" end)

/* Open Babel takes what the line before had, 0, or leaves the atom out. */
static void a_line_that_is_cut_short_is_refused(void **state)
{
    static const struct {
        const char *format, *text, *says;
    } cases[] = {
        { "mol2", MOL2("3 H 0 -.757 -.469 H", "2 1 3 1\n# a comment"), NULL },
        { "mol2", MOL2("3 H 0 -.757 -.469", "2 1 3 1"),
          "the line of atom 3 of a MOL2 record has 5 words; a number, a name, three" },
        { "mol2", MOL2("3 H", "2 1 3 1"), "the line of atom 3 of a MOL2 record has 2 words" },
        { "mol2", MOL2("", "2 1 3 1"), "the line of atom 3 of a MOL2 record has 0 words" },
        { "mol2", MOL2("3 H 0 -.757 -.46x H", "2 1 3 1"), "atom 3 has '-.46x' where a position has a number" },
        { "mol2", MOL2("3 H 0 -.757 -.469 H", "2 1 3"), "the line of bond 2 of a MOL2 record has 3 words; a number, two atoms" },
        { "mol2", MOL2("3 H 0 -.757 -.469 H", ""), "the line of bond 2 of a MOL2 record has 0 words" },
        { "mol2", MOL2("3 H 0 -.757 -.469 H", "2 1 3 un"), "bond 2 of a MOL2 record has type un" },
        { "pdb", ETHYL HYDROXYL(" ") OTHER("O", " ") "END\n", NULL },
        { "pdb", ETHYL "HETATM    7  O1  LIG A   1       1.670   0.250\nEND\n", "the line of atom 7 of a PDB record ends before" },
        { "pdb", ETHYL "HETATM    7  O1  LIG A   1       1.670   0.250  -0.04\nEND\n", "the line of atom 7 of a PDB record ends" },
        { "mmcif", CRYSTAL(" 0.00\n"), NULL },
        { "mmcif", CRYSTAL(" 0.00\nloop_\n_other.x\n1\n"), NULL },
        { "mmcif", CRYSTAL(" 0.00\ndata_y\n"), NULL },
        { "mmcif", CRYSTAL(" ?\n"), "atom 3 has '' where a position has a number" },
        { "mmcif", CRYSTAL(" .\n"), "atom 3 has '' where a position has a number" },
        { "mmcif", CRYSTAL(" x\n"), "atom 3 has 'x' where a position has a number" },
        { "mmcif", "data_x\nloop_\n_atom_site.id\n_atom_site.type_symbol\n_atom_site.Cartn_x\n_atom_site.Cartn_y\n1 O 0 0\n",
          "atom 1 has '' where a position has a number" },
        { "mmcif", CRYSTAL("\n"), "the last row of the atoms of a CIF has fewer values than there are columns" },
        { "mmcif", CRYSTAL("\nloop_\n_other.x\n1\n"), "the last row of the atoms of a CIF has fewer values" },
    };
    ch_prepare_opts o = ch_prepare_defaults();

    (void)state;
    o.conformer = CH_3D_NONE;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const ch_prepared p = answer(cases[k].text, cases[k].format, &o);
        if (cases[k].says == NULL ? p.code != CH_OK : p.code != CH_PARSE || strstr(p.message, cases[k].says) == NULL)
            fail_msg("case %zu: %s (%s)", k, p.code == CH_OK ? p.smiles : "", p.message);
    }
}

#define ATOM(id, element, y, z) "<x:atom id='" id "' elementType=\"" element "\" x3='0' y3 = '" y "' " z "/>"
#define OH2(id, z)                                                                                                      \
    "<x:molecule id='" id "'><x:atomArray>" ATOM("a", "O", "0", "z3='.117'") ATOM("b", "H", ".757", "z3='-.469'") ATOM( \
        "c", "H", "-.757",                                                                                              \
        z) "</x:atomArray><x:bondArray><x:bond atomRefs2='a b' order='1'/><x:bond atomRefs2='a c' order='1'/></x:bondArray></x:molecule>"
#define CML(molecules) "<x:cml xmlns:x='http://www.xml-cml.org/schema'><!-- <x:molecule> <atom x3='0'/> -->" molecules "</x:cml>\n"

/* A molecule of a CML file that lacks a position fails, and the others do not. */
static void a_position_that_cml_lacks_is_no_zero(void **state)
{
    const ch_listing good = list(CML(OH2("one", "z3='-.469'") OH2("two", "z3='-.469'")), "cml");
    assert_int_equal(good.n, 2);
    assert_string_equal(good.problem[0], "");
    assert_string_equal(good.problem[1], "");
    const ch_listing one = list(CML(OH2("one", "z3='-.469'") OH2("two", "") OH2("three", "z3='-.469'")), "cml");

    (void)state;
    assert_int_equal(one.n, 3);
    assert_string_equal(one.problem[0], "");
    assert_string_equal(one.problem[1], "atom 3 has '' where a position has a number");
    assert_string_equal(one.text[1], "two\n");
    assert_string_equal(one.problem[2], "");
    const ch_listing text = list(CML(OH2("one", "z3='deep'")), "cml");
    assert_string_equal(text.problem[0], "atom 3 has 'deep' where a position has a number");
    const ch_listing flat = list(
        "<molecule id='m'><atomArray><atom id='a' elementType='C' x2='1' y2='0' hydrogenCount='4'/></atomArray></molecule>", "cml");
    assert_int_equal(flat.n, 1);
    assert_string_equal(flat.problem[0], "");
}

/* Of a file that is read as a whole. */
static void a_line_of_pdbqt_that_is_cut_short_is_refused(void **state)
{
    static const char text[] =
        "ATOM      1  O   LIG A   1       0.000   0.000   0.117  1.00  0.00    -0.400 OA\nATOM      2  H1  LIG A   1       0.000\n";
    pl_error err = { 0 };
    ch_listing found;

    (void)state;
    assert_int_equal(ch_worker_list(worker, text, sizeof text - 1, "pdbqt", &found, mem, &err), PL_EINPUT);
    assert_non_null(strstr(err.text, "the line of atom 2 of a PDB record ends before its positions"));
}

/* The files are as Open Babel writes them. It reads a row that ends early with the positions of the row before, or nothing behind it. */
static void a_row_that_is_cut_short_is_refused(void **state)
{
#define FHIAIMS(last) "#\nlattice_vector 9.0 0.0 0.0\natom 0.0 0.0 0.117 O\ninitial_moment 1.0\natom 0.0 0.757 -0.469 H\n" last "\n"
#define GROMACS(last)                                                                                                 \
    "water\n    3\n    1UNL      O    1   0.000   0.000   0.012\n    1UNL      H    2   0.000   0.076  -0.047\n" last \
    "   1.00000   1.00000   1.00000\n"
#define MOLDEN(last) "[Molden Format]\n[Atoms] Angs\n O 1 8 0.0 0.0 0.117\n H 2 1 0.0 0.757 -0.469\n" last "\n[GTO]\n"
#define GAMESS(last) \
    " $CONTRL COORD=CART UNITS=ANGS $END\n\n $DATA\nwater\nC1\nO 8.0 0.0 0.0 0.117\nH 1.0 0.0 0.757 -0.469\n" last "\n $END\n\n\n"
    static const struct {
        const char *format, *text, *says;
    } cases[] = {
        { "fhiaims", FHIAIMS("atom 0.0 -0.757 -0.469 H"), NULL },
        { "fhiaims", FHIAIMS("atom 0.0 -0.757 -0.469"), "line 6 has fewer words" },
        { "fhiaims", FHIAIMS("atom 0.0"), "line 6 has fewer words" },
        { "gro", GROMACS("    1UNL      H    3   0.000  -0.076  -0.047\n"), NULL },
        { "gro", GROMACS("    1UNL      H    3   0.000  -0.076\n"), "line 5 has fewer words" },
        { "molden", MOLDEN(" H 3 1 0.0 -0.757 -0.469"), NULL },
        { "molden", MOLDEN(" H 3 1"), "line 5 has fewer words" },
        { "inp", GAMESS("H 1.0 0.0 -0.757 -0.469"), NULL },
        { "inp", GAMESS("H 1.0 0.0 -0.757"), "line 8 has fewer words" },
    };

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        pl_error err = { 0 };
        ch_listing found = { 0 };
        const pl_code code = ch_worker_list(worker, cases[k].text, strlen(cases[k].text), cases[k].format, &found, mem, &err);
        if (cases[k].says == NULL ? code != PL_OK || found.n != 1 : code != PL_EINPUT || strstr(err.text, cases[k].says) == NULL)
            fail_msg("case %zu: %d molecules (%s)", k, (int)found.n, err.text);
    }
}

/* A formatted checkpoint file of Gaussian: fixed columns, positions in Bohr. */
static const char *fchk(const atom *a, int n, const int *z, int charge)
{
    static char text[2048];
    size_t at = (size_t)snprintf(text, sizeof text,
                                 "test\nSP        UHF                                                         STO-3G\n"
                                 "%-43sI     %12d\n%-43sI     %12d\n%-43sI   N=%12d\n",
                                 "Number of atoms", n, "Charge", charge, "Atomic numbers", n);

    for (int i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%12d", z[i]);
    at += (size_t)snprintf(text + at, sizeof text - at, "\n%-43sR   N=%12d", "Current cartesian coordinates", 3 * n);
    for (int i = 0; i < 3 * n; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%16.8E", i % 5 == 0 ? "\n" : "", a[i / 3].x[i % 3] / 0.529177);
    (void)snprintf(text + at, sizeof text - at, "\n");
    return text;
}

static void a_charge_that_a_listed_file_states_is_used(void **state)
{
    static const int z[] = { 7, 1, 1, 1, 1 };
    static const atom ammonium[] = { { "", { 0, 0, 0 } },
                                     { "", { .59, .59, .59 } },
                                     { "", { -.59, -.59, .59 } },
                                     { "", { -.59, .59, -.59 } },
                                     { "", { .59, -.59, -.59 } } };
    const ch_listing found = list(fchk(ammonium, 5, z, 1), "fchk");
    const ch_prepare_opts o = ch_prepare_defaults();

    (void)state;
    assert_int_equal(found.n, 1);
    const ch_prepared p = answer(found.text[0], "sdf", &o);
    if (p.code != CH_OK || strcmp(p.smiles, "[NH4+]") != 0)
        fail_msg("'%s' and '%s%s'", p.smiles, found.problem[0], p.message);
}

/* A molfile would give it a hydrogen. */
static void a_listed_radical_is_refused(void **state)
{
    static const int z[] = { 6, 1, 1, 1 };
    static const atom methyl[] = {
        { "", { 0, 0, 0 } }, { "", { 1.08, 0, 0 } }, { "", { -.54, .93, 0 } }, { "", { -.54, -.93, 0 } }
    };
    const ch_listing found = list(fchk(methyl, 4, z, 0), "fchk");

    (void)state;
    assert_int_equal(found.n, 1);
    assert_non_null(strstr(found.problem[0], "a radical, which only xyz"));
}

/* One record of a list fails, and says why. */
static void a_listed_molecule_without_bonds_fails_with_a_reason(void **state)
{
    const ch_listing found = list("atom 0 0 0 C\natom 1.43 0 0 O\n", "fhiaims");

    (void)state;
    assert_int_equal(found.n, 1);
    assert_non_null(strstr(found.problem[0], "hydrogens are missing"));
}

static void what_positions_do_not_tell_is_refused(void **state)
{
    static const struct {
        const char *text, *reason;
    } cases[] = {
        { "3\nnickel\nNi 0 0 0\nC 1.8 0 0\nO 2.95 0 0\n", "bonds of Ni1 cannot be told" },
        { "3\nzinc\nC 2 0 0\nZn 0 0 0\nC -2 0 0\n", "bonds of Zn2 cannot be told" },
        { "3\nmethylene\nC 0 0 0\nH 1.0 0.4 0\nH -1.0 0.4 0\n", "carbenes are not read" },
        { "5\nisotope\n13C 0 0 0\nH .63 .63 .63\nH -.63 -.63 .63\nH -.63 .63 -.63\nH .63 -.63 -.63\n", "'13C' is no element" },
    };
    const ch_prepare_opts o = ch_prepare_defaults();

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const ch_prepared p = answer(cases[i].text, "xyz", &o);
        if (p.code == CH_OK || strstr(p.message, cases[i].reason) == NULL)
            fail_msg("%.20s: '%s' and '%s'", cases[i].text, p.smiles, p.message);
    }
}

/* N,N-dimethylmethanesulfonamide with S and N from 1.62 to 2.68 Angstrom apart: read as this molecule or refused. */
static void a_stretched_bond_is_a_bond_or_refused(void **state)
{
    const ch_prepare_opts o = ch_prepare_defaults();
    int n_ok = 0, n_refused = 0;

    (void)state;
    for (double away = 0; away < 1.66; away += 0.05) {
        char text[1024];
        (void)snprintf(
            text, sizeof text,
            "16\nsulfonamide\nS 0 0 0\nO .48 1.36 0\nO .48 -.68 -1.18\nC -1.77 0 0\nH -2.12 .51 .89\nH -2.12 -1.02 0\nH -2.12 .51 -.89\n"
            "N %.3f -.76 1.32\nC %.3f -.10 2.62\nC %.3f -2.22 1.39\nH %.3f -.61 3.42\nH %.3f .93 2.52\nH %.3f -.08 2.87\n"
            "H %.3f -2.60 1.98\nH %.3f -2.61 .37\nH %.3f -2.52 1.83\n",
            .56 + away, .71 + away, .71 + away, .27 + away, .35 + away, 1.78 + away, -.13 + away, .63 + away, 1.67 + away);
        const ch_prepared p = answer(text, "xyz", &o);
        n_ok += p.code == CH_OK;
        n_refused += p.code == CH_VALENCE;
        if (p.code == CH_OK && strcmp(p.smiles, "CN(S(=O)(=O)C)C") != 0)
            fail_msg("S and N %.2f farther apart: %s without %s", away, p.smiles, p.removed);
    }
    assert_true(n_ok > 3 && n_refused > 3);
}

#define METHANE(a) "5\nmethane\nC 0 0 0\n" a " .63 .63 .63\nH -.63 -.63 .63\nH -.63 .63 -.63\nH .63 -.63 -.63\n"
#define MOLFILE "deuterochloroform\n  test\n\n  3  2  0  0  0  0  0  0  0  0999 V2000\n"

/* Another InChIKey, so no duplicates of each other. */
static void deuterium_stays_deuterium(void **state)
{
    static const struct {
        const char *format, *text, *smiles;
    } cases[] = {
        { "xyz", METHANE("H"), "C" },
        { "xyz", METHANE("D"), "C[2H]" },
        { "xyz", METHANE("T"), "C[3H]" },
        { "smi", "[2H]C", "C[2H]" },
        { "smi", "[2H]C([2H])Cl.Cl", "[2H]C(Cl)[2H]" },
        { "sdf",
          MOLFILE "    0.0000    0.0000    0.0000 C   0  0\n    1.0000    0.0000    0.0000 D   0  0\n"
                  "    0.0000    1.7000    0.0000 Cl  0  0\n  1  2  1  0\n  1  3  1  0\nM  END\n",
          "[2H]CCl" },
        { "sdf",
          MOLFILE "    0.0000    0.0000    0.0000 C   0  0\n    1.0000    0.0000    0.0000 H   0  0\n"
                  "    0.0000    1.7000    0.0000 Cl  0  0\n  1  2  1  0\n  1  3  1  0\nM  ISO  1   2   2\nM  END\n",
          "[2H]CCl" },
    };
    ch_prepare_opts o = ch_prepare_defaults();
    char keys[8][28];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const ch_prepared p = answer(cases[i].text, cases[i].format, &o);
        if (p.code != CH_OK || strcmp(p.smiles, cases[i].smiles) != 0)
            fail_msg("%.20s: '%s', not '%s' (%s)", cases[i].text, p.smiles, cases[i].smiles, p.message);
        assert_int_equal(p.mol.isotope != NULL, i > 0);
        (void)snprintf(keys[i], sizeof keys[i], "%s", p.inchikey);
    }
    assert_string_not_equal(keys[0], keys[1]);
    assert_string_not_equal(keys[1], keys[2]);
    assert_string_equal(keys[1], keys[3]);
    assert_string_equal(keys[5], keys[6]);
}

static void deuterium_of_a_pdb_file_stays_deuterium(void **state)
{
    const ch_prepare_opts o = ch_prepare_defaults();
    char text[2048];
    atom a[6];

    (void)state;
    memcpy(a, methanol, sizeof a);
    strcpy(a[5].element, "D");
    write_pdb(text, sizeof text, a, 6, "");
    const ch_prepared p = answer(text, "pdb", &o);
    assert_string_equal(p.smiles, "[2H]OC");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pdb_and_listed_files_have_the_bonds_of_xyz),
        cmocka_unit_test(an_atom_is_in_one_place),
        cmocka_unit_test(bonds_of_a_pdb_file_have_to_fit_its_positions),
        cmocka_unit_test(a_line_that_is_cut_short_is_refused),
        cmocka_unit_test(a_position_that_cml_lacks_is_no_zero),
        cmocka_unit_test(a_line_of_pdbqt_that_is_cut_short_is_refused),
        cmocka_unit_test(a_row_that_is_cut_short_is_refused),
        cmocka_unit_test(a_charge_that_a_listed_file_states_is_used),
        cmocka_unit_test(a_listed_radical_is_refused),
        cmocka_unit_test(a_listed_molecule_without_bonds_fails_with_a_reason),
        cmocka_unit_test(what_positions_do_not_tell_is_refused),
        cmocka_unit_test(a_stretched_bond_is_a_bond_or_refused),
        cmocka_unit_test(deuterium_stays_deuterium),
        cmocka_unit_test(deuterium_of_a_pdb_file_stays_deuterium),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
