/* SPDX-License-Identifier: Apache-2.0 */
/* Positions of the input, and the hydrogens that are added to them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/prepared.h"

enum { COPIES = 12 };

#define MOL_HEAD "\n  test              3D\n\n"

/* Without hydrogens. For the first four only chance could decide where the hydrogens point. */
static const struct {
    const char *format, *text;
} bare[] = {
    { "sdf", "methanol" MOL_HEAD "  2  1  0  0  0  0  0  0  0  0999 V2000\n"
             "    0.0000    0.0000    0.1000 C   0  0\n    1.0000    0.5000    0.9000 O   0  0\n  1  2  1  0\nM  END\n" },
    { "mol2", "@<TRIPOS>MOLECULE\nethane\n 2 1 0 0 0\nSMALL\nNO_CHARGES\n\n@<TRIPOS>ATOM\n"
              " 1 C1 0.0 0.0 0.1 C.3 1 A 0.0\n 2 C2 0.9 0.7 1.1 C.3 1 A 0.0\n@<TRIPOS>BOND\n 1 1 2 1\n" },
    { "sdf",
      "propyne" MOL_HEAD "  3  2  0  0  0  0  0  0  0  0999 V2000\n    0.0000    0.0000    0.0000 C   0  0\n"
      "    0.0000    0.0000    1.2000 C   0  0\n    0.0000    0.0000    2.6600 C   0  0\n  1  2  3  0\n  2  3  1  0\nM  END\n" },
    { "sdf", "hypervalent" MOL_HEAD "  2  1  0  0  0  0  0  0  0  0999 V2000\n    0.0000    0.0000    0.0000 P   0  0\n"
             "    0.0000    0.2000    2.0000 Cl  0  0\n  1  2  1  0\nM  END\n" },
    { "sdf", "isobutene" MOL_HEAD "  4  3  0  0  0  0  0  0  0  0999 V2000\n    0.0000    0.0000    0.0000 C   0  0\n"
             "    0.0000    0.1000    1.3300 C   0  0\n    0.0000    1.3000    2.0000 C   0  0\n"
             "    0.2000   -1.2000    2.1000 C   0  0\n  1  2  2  0\n  2  3  1  0\n  2  4  1  0\nM  END\n" },
};
enum { N_BARE = sizeof bare / sizeof *bare };

static ch_prepare_opts keep(void)
{
    ch_prepare_opts o = ch_prepare_defaults();

    o.conformer = CH_3D_KEEP;
    return o;
}

static double distance(const float *a, const float *b)
{
    double sum = 0;

    for (int k = 0; k < 3; k++)
        sum += pow((double)a[k] - (double)b[k], 2);
    return sqrt(sum);
}

static void assert_same_positions(const ch_prepared *a, const ch_prepared *b, const char *what)
{
    assert_int_equal(a->mol.n_atoms, b->mol.n_atoms);
    if (memcmp(a->mol.xyz, b->mol.xyz, (size_t)a->mol.n_atoms * sizeof *a->mol.xyz) != 0)
        fail_msg("%.20s: other positions", what);
}

/* The result does not depend on what the worker did before: another record, a built structure, a drawing, nothing. */
static void added_hydrogens_do_not_depend_on_earlier_records(void **state)
{
    const ch_prepare_opts o = keep();
    ch_prepared first[N_BARE];
    pl_error err = { 0 };

    (void)state;
    for (int i = 0; i < N_BARE; i++)
        first[i] = prepare(bare[i].text, bare[i].format, &o);
    for (int k = 0; k < COPIES; k++) {
        if (k == COPIES / 2) {
            ch_worker_close(worker);
            assert_int_equal(ch_worker_open(&worker, NULL, &err), PL_OK);
        }
        for (int i = 0; i < N_BARE; i++) {
            const int which = (i * (1 + k % 4) + k) % N_BARE;
            const ch_prepared p = prepare(bare[which].text, bare[which].format, &o);
            assert_same_positions(&first[which], &p, bare[which].text);
        }
        if (k % 3 == 0)
            (void)prepare("CCO", "smi", NULL);
    }
}

/* Alerts that name hydrogens add them to a copy; titles do not affect the molecule. */
static void added_hydrogens_do_not_depend_on_alerts_or_title(void **state)
{
    ch_prepare_opts o = keep();
    const ch_prepared plain = prepare(bare[0].text, "sdf", &o);
    char *renamed = strdup(bare[0].text);

    (void)state;
    o.rules = "[#1]O hydroxyl\n[H]C methyl";
    const ch_prepared with = prepare(bare[0].text, "sdf", &o);
    assert_string_equal(with.alerts, "hydroxyl, methyl");
    assert_same_positions(&plain, &with, "alerts");
    assert_non_null(renamed);
    memcpy(renamed, "METHANOL", 8);
    o = keep();
    const ch_prepared other = prepare(renamed, "sdf", &o);
    free(renamed);
    assert_same_positions(&plain, &other, "title");
}

/* Cyanide and hydroxide: only chance could decide the direction of the proton of the neutral form. */
static void protons_of_neutral_forms_do_not_depend_on_earlier_records(void **state)
{
    static const char text[] =
        "hypochlorite" MOL_HEAD "  2  1  0  0  0  0  0  0  0  0999 V2000\n    0.0000    0.0000    0.0000 O   0  5\n"
        "    0.0000    0.2000    1.7000 Cl  0  0\n  1  2  1  0\nM  CHG  1   1  -1\nM  END\n";
    ch_prepare_opts o = keep();

    (void)state;
    o.neutralise = true;
    for (int form = 0; form < 2; form++) {
        const ch_prepared first = prepare(text, "sdf", &o);
        assert_int_equal(first.mol.n_atoms, 3);
        for (int k = 0; k < COPIES; k++) {
            const ch_prepared again = prepare(text, "sdf", &o);
            assert_same_positions(&first, &again, "hypochlorite");
        }
        o.neutralise = false;
        o.ph = 2;
    }
}

/* ---- the order of atoms ---- */

#define ATOM(x, y, z, element, charge) "    " x "    " y "    " z " " element "   0  " charge "\n"

/* In these, the direction of each hydrogen depends on one of several atoms, or on chance. The last molecule loses one of three hydrogens. */
static const char *const ordered[] = {
    "tert-butanol" MOL_HEAD "  5  4  0  0  0  0  0  0  0  0999 V2000\n" ATOM("0.0000", "0.0000", "0.0000", "C", "0")
        ATOM("1.4300", "0.0000", "0.0000", "O", "0") ATOM("-.5100", "1.4400", "0.0000", "C", "0")
            ATOM("-.5100", "-.7200", "1.2500", "C", "0")
                ATOM("-.5100", "-.7200", "-1.250", "C", "0") "  1  2  1  0\n  1  3  1  0\n  1  4  1  0\n  1  5  1  0\nM  END\n",
    "methylamine" MOL_HEAD "  2  1  0  0  0  0  0  0  0  0999 V2000\n" ATOM("0.0000", "0.0000", "0.1000", "C", "0")
        ATOM("1.2000", "0.5000", "0.8000", "N", "0") "  1  2  1  0\nM  END\n",
    "methylammonium" MOL_HEAD "  5  4  0  0  0  0  0  0  0  0999 V2000\n" ATOM("0.0000", "0.0000", "0.0000", "N", "3")
        ATOM("1.4700", "0.0000", "0.0000", "C", "0") ATOM("-.3400", "0.9600", "0.0000", "H", "0")
            ATOM("-.3400", "-.4800", "0.8300", "H", "0")
                ATOM("-.3400", "-.4800", "-.8300", "H",
                     "0") "  1  2  1  0\n  1  3  1  0\n  1  4  1  0\n  1  5  1  0\nM  CHG  1   1   1\nM  END\n",
};
enum { N_ORDERED = sizeof ordered / sizeof *ordered, MANY = 16 };

/* Atom i becomes to[i], and the bonds are written from the last to the first. */
static void renumber_mol(char *out, size_t cap, const char *text, const int *to, int n, int bonds)
{
    const char *line[2 * MANY + 4] = { text };
    size_t at;

    for (int i = 1; i < 2 * MANY + 4 && line[i - 1] != NULL; i++)
        line[i] = strchr(line[i - 1], '\n') != NULL ? strchr(line[i - 1], '\n') + 1 : NULL;
    at = (size_t)snprintf(out, cap, "%.*s", (int)(line[4] - text), text);
    for (int k = 0; k < n; k++)
        for (int i = 0; i < n; i++)
            if (to[i] == k)
                at += (size_t)snprintf(out + at, cap - at, "%.*s", (int)(line[5 + i] - line[4 + i]), line[4 + i]);
    for (int b = bonds - 1; b >= 0; b--) {
        int p, q;
        assert_int_equal(sscanf(line[4 + n + b], "%3d%3d", &p, &q), 2);
        at += (size_t)snprintf(out + at, cap - at, "%3d%3d  1  0\n", to[p - 1] + 1, to[q - 1] + 1);
    }
    if (strstr(text, "M  CHG") != NULL) /* of the first atom */
        at += (size_t)snprintf(out + at, cap - at, "M  CHG  1 %3d   1\n", to[0] + 1);
    (void)snprintf(out + at, cap - at, "M  END\n");
}

static int by_bytes(const void *a, const void *b) { return memcmp(a, b, sizeof(float[4])); }

/* Elements and positions, sorted. */
static int sorted_positions(const ch_prepared *p, float (*out)[4])
{
    assert_true(p->code == CH_OK && p->mol.n_atoms <= MANY);
    for (int i = 0; i < p->mol.n_atoms; i++) {
        out[i][0] = p->mol.z[i];
        for (int k = 0; k < 3; k++)
            out[i][1 + k] = p->mol.xyz[i][k] + 0.0f;
    }
    qsort(out, (size_t)p->mol.n_atoms, sizeof *out, by_bytes);
    return p->mol.n_atoms;
}

static void hydrogens_do_not_depend_on_the_order_of_atoms(void **state)
{
    ch_prepare_opts o = keep();

    (void)state;
    o.neutralise = true;
    for (int m = 0; m < N_ORDERED; m++) {
        const int n = atoi(strstr(ordered[m], "\n\n") + 2), bonds = n - 1;
        float first[MANY][4], other[MANY][4];
        const ch_prepared p = prepare(ordered[m], "sdf", &o);
        const int n_first = sorted_positions(&p, first);
        for (int shift = 0; shift < n; shift++)
            for (int back = 0; back < 2; back++) {
                int to[MANY];
                char text[2048];
                for (int i = 0; i < n; i++)
                    to[i] = ((back ? n - 1 - i : i) + shift) % n;
                renumber_mol(text, sizeof text, ordered[m], to, n, bonds);
                const ch_prepared q = prepare(text, "sdf", &o);
                if (sorted_positions(&q, other) != n_first || memcmp(first, other, (size_t)n_first * sizeof *first) != 0)
                    fail_msg("%.14s: other positions in order %d of %d", ordered[m], shift, back);
            }
    }
}

/* ---- charges that a record does not write ---- */

#define ATOM2(n, type, q) n " X" n " 0." n " 0 ." n " " type " 1 M " q "\n"
#define MOL2(counts, atoms, bonds) \
    "@<TRIPOS>MOLECULE\nm\n" counts "\nSMALL\nUSER_CHARGES\n\n@<TRIPOS>ATOM\n" atoms "@<TRIPOS>BOND\n" bonds
#define THREE "1 1 2 1\n2 2 3 2\n3 2 4 1\n"
#define ACETATE(q)                                                                                                        \
    MOL2("7 6",                                                                                                           \
         ATOM2("1", "C.3", q) ATOM2("2", "C.2", "0") ATOM2("3", "O.co2", q) ATOM2("4", "O.co2", "0") ATOM2("5", "H", "0") \
             ATOM2("6", "H", "0") ATOM2("7", "H", "0"),                                                                   \
         THREE "4 1 5 1\n5 1 6 1\n6 1 7 1\n")

/* MOL2 has no charges: they follow from the bonds of a record with hydrogens. With hydrogens at N alone, as for docking, those of C are added. */
static void charges_of_mol2_follow_from_its_bonds(void **state)
{
    static const struct {
        const char *text, *smiles, *says;
    } cases[] = {
        { ACETATE("0"), "[O-]C(=O)C", NULL },
        { ACETATE("-0.5"), "[O-]C(=O)C", NULL },
        { ACETATE("0.5"), NULL, "partial charges of a MOL2 record add up to 1, its bonds and hydrogens to a charge of -1" },
        { MOL2("4 3", ATOM2("1", "C.3", "0") ATOM2("2", "C.2", "0") ATOM2("3", "O.2", "0") ATOM2("4", "O.3", "0"), THREE),
          "CC(=O)O", NULL },
        { MOL2("4 3", ATOM2("1", "C.3", "0") ATOM2("2", "N.pl3", "0") ATOM2("3", "O.2", "0") ATOM2("4", "O.3", "0"), THREE),
          "[O-][N+](=O)C", NULL },
        { MOL2("5 4", ATOM2("1", "C.3", "0") ATOM2("2", "N.3", "0") ATOM2("3", "H", "0") ATOM2("4", "H", "0") ATOM2("5", "H", "0"),
               "1 1 2 1\n2 2 3 1\n3 2 4 1\n4 2 5 1\n"),
          "C[NH3+]", NULL },
        { MOL2("6 5",
               ATOM2("1", "C.3", "0") ATOM2("2", "N.1", "0") ATOM2("3", "C.1", "0") ATOM2("4", "H", "0") ATOM2("5", "H", "0")
                   ATOM2("6", "H", "0"),
               "1 1 2 1\n2 2 3 3\n3 1 4 1\n4 1 5 1\n5 1 6 1\n"),
          "[C-]#[N+]C", NULL },
        { MOL2("5 4", ATOM2("1", "C.3", "0") ATOM2("2", "C.3", "0") ATOM2("3", "H", "0") ATOM2("4", "H", "0") ATOM2("5", "H", "0"),
               "1 1 2 1\n2 1 3 1\n3 1 4 1\n4 1 5 1\n"),
          NULL, "atom 2 (C) of a MOL2 record has 1 bond and no charge: hydrogens are missing" },
        { MOL2("2 1", ATOM2("7", "C.3", "0") ATOM2("9", "O.3", "0"), "1 1 2 1\n") "@<TRIPOS>UNITY_ATOM_ATTR\n9 1\ncharge -1\n",
          "[O-]C", NULL },
    };

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        assert_reads_as(cases[k].text, "mol2", cases[k].smiles, cases[k].says);
}

/* ---- more bonds than the charge allows ---- */

#define NO_CHARGE " bonds and no charge; only N+ has four (SMILES: [N+], molfile: M  CHG)"

#define ONIUM(symbol) " bonds and no charge, as only its ion has (SMILES: [" symbol "+], molfile: M  CHG)"

/* Open Babel makes C4H13N of CN(C)(C)C. Nitro, azide, N-oxide and isonitrile are often written without their charges. */
static void no_hydrogen_is_invented_for_a_missing_charge(void **state)
{
    static const char molfile[] =
        "amine" MOL_HEAD "  5  4  0  0  0  0  0  0  0  0999 V2000\n" ATOM("0.0000", "0.0000", "0.0000", "N", "0")
            ATOM("1.4300", "0.0000", "0.0000", "C", "0") ATOM("-.5100", "1.4400", "0.0000", "C", "0")
                ATOM("-.5100", "-.7200", "1.2500", "C", "0")
                    ATOM("-.5100", "-.7200", "-1.250", "C", "0") "  1  2  1  0\n  1  3  1  0\n  1  4  1  0\n  1  5  1  0\nM  END\n";
    static const struct {
        const char *text, *smiles, *says;
    } cases[] = {
        { "CN(C)(C)C", NULL, "atom 2 (N) has 4" NO_CHARGE },
        { "C[N](C)(C)C", NULL, "atom 2 (N) has 4" NO_CHARGE },
        { "C=N(C)C", NULL, "atom 2 (N) has 4" NO_CHARGE },
        { "C=N(C)(C)C", NULL, "atom 2 (N) has 5" NO_CHARGE },
        { "C[NH3]", NULL, "atom 2 (N) has 4" NO_CHARGE },
        { "NC(N)=[NH]c1ccccc1", NULL, "atom 4 (N) has 4" NO_CHARGE }, /* of BBBP */
        { "O=N([O-])C", NULL, "atom 2 (N) has 4" NO_CHARGE },
        { "C[N+](C)(C)C", "C[N+](C)(C)C", NULL },
        { "CN(=O)=O", "[O-][N+](=O)C", NULL },
        { "CN=N#N", "[N-]=[N+]=NC", NULL },
        { "CN(C)(C)=O", "[O-][N+](C)(C)C", NULL },
        { "O=n1ccccc1", "[O-][n+]1ccccc1", NULL },
        { "C[N]#[C]", "[C-]#[N+]C", NULL },
        { "CN(C)(C)B(F)(F)F", "F[B]([N](C)(C)C)(F)F", NULL }, /* no hydrogen either: bonds to boron and metals do not count */
        { "O=N(=O)[Cu]", "[Cu]N(=O)=O", NULL },
        { "C[N+](C)(C)(C)C", NULL, "atom 2 (N) has 5 bonds and the charge +1" },
        { "C[O-]C", NULL, "atom 2 (O) has 2 bonds and the charge -1" },
        { "C[O+](C)C", "C[O+](C)C", NULL },
        { "C[C-](C)(C)C", NULL, "atom 2 (C) has 4 bonds and the charge -1" },
        { "[C-]#[O+]", "[C-]#[O+]", NULL },
        { "C*.Clc1ccccc1O", NULL, "atom 2 is not an element" }, /* of a part that would be removed */
        { "*C.CCCCO", NULL, "atom 1 is not an element" },
        { "C[F-]", NULL, "atom 2 (F) has 1 bond and the charge -1" },
        { "C[I+]C", "C[I+]C", NULL },
        { "C[I](C)C", "C[I](C)C", NULL },
        { "[O-]Cl(=O)(=O)=O", "[O-][Cl](=O)(=O)=O", NULL },
        { "F[P-](F)(F)(F)(F)F", "F[P-](F)(F)(F)(F)F", NULL },
    };

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        assert_reads_as(cases[k].text, "smi", cases[k].smiles, cases[k].says);
    assert_reads_as(molfile, "sdf", NULL, "atom 1 (N) has 4" NO_CHARGE);
}

/* Halogens, S, Se and Te, which Open Babel reads as radicals or with a hydrogen; none is added beside a metal. */
static void onium_ions_have_their_charge(void **state)
{
    static const char molfile[] =
        "iodonium" MOL_HEAD "  3  2  0  0  0  0  0  0  0  0999 V2000\n" ATOM("0.0000", "0.0000", "0.0000", "I", "0")
            ATOM("2.1000", "0.0000", "0.0000", "C", "0")
                ATOM("-.5100", "2.0400", "0.0000", "C", "0") "  1  2  1  0\n  1  3  1  0\nM  END\n";
    static const struct {
        const char *text, *smiles, *says;
    } cases[] = {
        { "C[Cl]C", NULL, "atom 2 (Cl) has 2" ONIUM("Cl") },
        { "CI(C)", NULL, "atom 2 (I) has 2" ONIUM("I") },
        { "CBrC", NULL, "atom 2 (Br) has 2" ONIUM("Br") },
        { "C[I](C)(C)C", NULL, "atom 2 (I) has 4" ONIUM("I") },
        { "CS(C)C", NULL, "atom 2 (S) has 3" ONIUM("S") },
        { "C[Se](C)C", NULL, "atom 2 (Se) has 3" ONIUM("Se") },
        { "CP(C)(C)c1ccccc1", "CP(c1ccccc1)(C)C", NULL }, /* with a hydrogen, as MoleculeNet writes phosphonium */
        { "C[S+](C)C", "C[S+](C)C", NULL },
        { "C[P+](C)(C)C", "C[P+](C)(C)C", NULL },
        { "C[Br+]C", "C[Br+]C", NULL },
        { "O=[Cl]=O", "O=[Cl]=O", NULL }, /* a radical that is stable */
        { "O=Cl(=O)(=O)O", "O[Cl](=O)(=O)=O", NULL },
        { "O=Ic1ccccc1", "O=[I]c1ccccc1", NULL },
        { "O=C1OI(=O)(O)c2ccccc12", "O=C1O[I](=O)(c2c1cccc2)O", NULL }, /* IBX */
        { "CC(=O)OI(OC(C)=O)c1ccccc1", "CC(=O)O[I](c1ccccc1)OC(=O)C", NULL },
        { "FBr(F)(F)(F)F", "F[Br](F)(F)(F)F", NULL },
        { "CS(C)(=O)=O", "CS(=O)(=O)C", NULL },
        { "CS(C)=C", "CS(=C)C", NULL },
        { "CP(C)(C)=C", "CP(=C)(C)C", NULL },
        { "COP(OC)(OC)OC", "COP(OC)(OC)OC", NULL }, /* with a hydrogen, as spirophosphoranes */
        { "FS(F)(F)F", "FS(F)(F)F", NULL },
        { "[Zn]Cl[Zn]", "[Zn][Cl][Zn]", NULL },
        /* No hydrogen beside a metal. */
        { "CP(C)(C)[Zn]", "C[P]([Zn])(C)C", NULL },
        { "CS(C)[Zn]", "C[S]([Zn])C", NULL },
        { "CS(C)(=O)[Zn]", "C[S](=O)([Zn])C", NULL },
        { "CP(C)[Zn]", "CP([Zn])C", NULL },
        { "BrCC(Cl)[PH](C)(C)[Zn]", "BrCC([PH]([Zn])(C)C)Cl", NULL }, /* that is written stays */
        { "CS[Zn]", "CS[Zn]", NULL },
    };

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        assert_reads_as(cases[k].text, "smi", cases[k].smiles, cases[k].says);
    assert_reads_as(molfile, "sdf", NULL, "atom 1 (I) has 2" ONIUM("I"));
}

/* Stereo of an InChI outlives the copies that are made of the molecule, and the InChIKey is that of the part that is kept. */
static void an_inchi_is_read_with_its_stereo_or_refused(void **state)
{
    static const char fumarate[] = "InChI=1S/C4H4O4.Na/c5-3(6)1-2-4(7)8;/h1-2H,(H,5,6)(H,7,8);/q;+1/p-1/b2-1+;",
                      maleate[] = "InChI=1S/C4H4O4.Na/c5-3(6)1-2-4(7)8;/h1-2H,(H,5,6)(H,7,8);/q;+1/p-1/b2-1-;";
    static const struct {
        const char *text, *smiles, *says;
    } cases[] = {
        { fumarate, "[O-]C(=O)/C=C/C(=O)O", NULL },
        { maleate, "[O-]C(=O)/C=C\\C(=O)O", NULL },
        { "InChI=1S/C3H7NO2/c1-2(4)3(5)6/h2H,4H2,1H3,(H,5,6)/t2-/m0/s1", "C[C@@H](C(=O)O)N", NULL },
        { "InChI=1S/CH4O/c1-2", NULL, "reads this InChI as another molecule: InChI=1S/CO/c1-2" },
    };
    ch_prepare_opts o = ch_prepare_defaults();

    (void)state;
    o.conformer = CH_3D_NONE;
    o.neutralise = true;
    assert_string_equal(prepare(fumarate, "inchi", &o).inchikey, "VZCYOOQTPOCHFL-OWOJBTEDSA-N");
    assert_string_equal(prepare(maleate, "inchi", &o).inchikey, "VZCYOOQTPOCHFL-UPHRSURJSA-N");
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        assert_reads_as(cases[k].text, "inchi", cases[k].smiles, cases[k].says);
}

/* Propane on a line in space: its hydrogens are 1.1 Angstrom from their carbon and apart. */
static void hydrogens_of_atoms_on_a_line_have_places(void **state)
{
    static const char text[] = "propane" MOL_HEAD "  3  2  0  0  0  0  0  0  0  0999 V2000\n"
                               "    0.0000    0.0000    0.0000 C   0  0\n    0.9000    0.9000    0.9000 C   0  0\n"
                               "    1.8000    1.8000    1.8000 C   0  0\n  1  2  1  0\n  2  3  1  0\nM  END\n";
    const ch_prepare_opts o = keep();
    const ch_prepared p = prepare(text, "sdf", &o);

    (void)state;
    assert_int_equal(p.mol.n_atoms, 11);
    for (int32_t b = 0; b < p.mol.n_bonds; b++)
        if (p.mol.z[p.mol.bond[b][1]] == 1) {
            const double r = distance(p.mol.xyz[p.mol.bond[b][0]], p.mol.xyz[p.mol.bond[b][1]]);
            assert_true(r > 1 && r < 1.2);
        }
    for (int32_t i = 0; i < 11; i++)
        for (int32_t j = 0; j < i; j++)
            assert_true(distance(p.mol.xyz[i], p.mol.xyz[j]) > 0.9);
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < 3; i++)
            assert_true(fabs((double)p.mol.xyz[i][k] - 0.9 * i) < 1e-6);
}

/* `drawing: as_drawn` keeps what is written, where it is one of these groups. */
static void groups_without_charges_stay_as_drawn(void **state)
{
    static const char *const drawn[][2] = { { "CN(=O)=O", "CN(=O)=O" }, { "CN=N#N", "CN=N#N" }, { "C[N]#[C]", "C[N]#[C]" } };
    ch_prepare_opts o = ch_prepare_defaults();

    (void)state;
    o.conformer = CH_3D_NONE;
    o.one_drawing = false;
    for (size_t k = 0; k < sizeof drawn / sizeof *drawn; k++)
        assert_string_equal(prepare(drawn[k][0], "smi", &o).smiles, drawn[k][1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(added_hydrogens_do_not_depend_on_earlier_records),
        cmocka_unit_test(added_hydrogens_do_not_depend_on_alerts_or_title),
        cmocka_unit_test(an_inchi_is_read_with_its_stereo_or_refused),
        cmocka_unit_test(charges_of_mol2_follow_from_its_bonds),
        cmocka_unit_test(groups_without_charges_stay_as_drawn),
        cmocka_unit_test(hydrogens_do_not_depend_on_the_order_of_atoms),
        cmocka_unit_test(hydrogens_of_atoms_on_a_line_have_places),
        cmocka_unit_test(no_hydrogen_is_invented_for_a_missing_charge),
        cmocka_unit_test(onium_ions_have_their_charge),
        cmocka_unit_test(protons_of_neutral_forms_do_not_depend_on_earlier_records),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
