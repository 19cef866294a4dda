/* SPDX-License-Identifier: Apache-2.0 */
/* xyz records: the same molecule for any order of atoms, and a reason if the file does not determine the molecule. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "chem/records/record.h"
#include "tests/unit/prepared.h"
#include "tests/unit/zwitterions.h"

enum { ORDERS = 5, LINES = 64, N_MOLECULES = sizeof zwitterions / sizeof *zwitterions };

/* The worker's answer, also if it refuses the record. */
static ch_prepared answer(const char *text, const ch_prepare_opts *o)
{
    ch_prepared p;
    const pl_code code = ch_worker_prepare(worker, text, strlen(text), "xyz", o, &p, mem, NULL);

    assert_true(code == PL_OK || code == PL_EINPUT);
    return p;
}

static uint32_t chance(void)
{
    static uint32_t state = 3;
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

/* The same record with its atoms in another order. */
static void renumber(char *out, size_t cap, const char *text)
{
    char copy[8192], *line[LINES], *rest = NULL;
    int n = 0;
    size_t at = 0;

    (void)snprintf(copy, sizeof copy, "%s", text);
    for (char *s = strtok_r(copy, "\n", &rest); s != NULL && n < LINES; s = strtok_r(NULL, "\n", &rest))
        line[n++] = s;
    for (int i = n - 1; i > 2; i--) {
        const int j = 2 + (int)(chance() % (uint32_t)(i - 1));
        char *s = line[i];
        line[i] = line[j];
        line[j] = s;
    }
    for (int i = 0; i < n; i++)
        at += (size_t)snprintf(out + at, cap - at, "%s\n", line[i]);
}

static void molecules_are_as_drawn_in_any_order_of_their_atoms(void **state)
{
    ch_prepare_opts o = ch_prepare_defaults();
    (void)state;

    o.conformer = CH_3D_KEEP;
    for (size_t i = 0; i < N_MOLECULES; i++)
        for (int k = 0; k < ORDERS; k++) {
            char text[8192];
            (void)snprintf(text, sizeof text, "%s", zwitterions[i].xyz);
            if (k > 0)
                renumber(text, sizeof text, zwitterions[i].xyz);
            const ch_prepared p = prepare(text, "xyz", &o);
            if (p.code != CH_OK || strcmp(p.smiles, zwitterions[i].smiles) != 0)
                fail_msg("gdb %d in order %d: %s (%s), not %s", zwitterions[i].gdb, k, p.smiles, p.message, zwitterions[i].smiles);
            assert_int_equal(p.charge, 0);
        }
}

static void atoms_keep_the_order_and_positions_of_the_file(void **state)
{
    ch_prepare_opts o = ch_prepare_defaults();
    (void)state;

    o.conformer = CH_3D_KEEP;
    const ch_prepared p = prepare("3\nwater\nH 0.96 0 0\nO 0 0 0.125\nH -0.24 0.93 0\n", "xyz", &o);
    assert_int_equal(p.mol.n_atoms, 3);
    assert_int_equal(p.mol.z[0], 1);
    assert_int_equal(p.mol.z[1], 8);
    assert_true(p.mol.xyz[1][2] == 0.125f);
}

#define PHENYL                                                                                              \
    "C 1.39 0 0\nC 0.695 1.2038 0\nC -0.695 1.2038 0\nC -1.39 0 0\nC -0.695 -1.2038 0\nC 0.695 -1.2038 0\n" \
    "H 2.47 0 0\nH 1.235 2.139 0\nH -1.235 2.139 0\nH -2.47 0 0\nH -1.235 -2.139 0\n"

static void the_comment_states_the_charge(void **state)
{
    static const struct {
        const char *comment, *smiles, *reason;
    } cases[] = {
        { "phenyl", "", "odd number of electrons" },
        { "charge=-1", "c1[c-]cccc1", "" },
        { "Total_Charge=-1.0", "c1[c-]cccc1", "" },
        { "charge=+1 energy=-231.1", "c1ccc[c+]c1", "" },
        { "charge=0", "[C]1=CC=CC=C1", "" },
        { "charge=0.5", "", "not a whole charge" },
        { "charge=99", "", "not a whole charge" },
        { "charge=nan", "", "not a whole charge" },
        { "charge=1 charge=-1", "", "two charges" },
        { "net_charge=-1", "c1[c-]cccc1", "" },
        { "NET_CHARGE=+1.0", "c1ccc[c+]c1", "" },
        { "charge = -1", "", "a word of its own" },
        { "Charge: -1", "", "a word of its own" },
        { "net charge -1", "", "a word of its own" },
        { "charge:-1", "", "a word of its own" },
        { "total_charge =-1", "", "a word of its own" },
        { "q=1", "", "'q=1' states a charge" },
        { "E=-1.5 Q: +1", "", "'Q: +1' states a charge" },
        { "q = -1", "", "a word of its own" },
        { "chg=1", "", "a word of its own" },
        { "net_q 1", "", "'net_q 1' states a charge" }, /* a shorter name needs a sign before its number */
        { "q 0 1", "", "an odd number of electrons" },
        { "qtot=1 e=2", "", "a word of its own" },
        { "totalCharge=1", "", "a word of its own" },
        { "formal_charge=1", "", "a word of its own" },
        { "total-charge=1", "", "a word of its own" },
        { "id=7,charge=1", "", "a word of its own" },
        { "the charge is 1", "", "a word of its own" },
        { "a net charge of +1", "", "a word of its own" },
        { "charge (+1)", "", "a word of its own" },
        { "charge=\"1\"", "", "not a whole charge" },
        { "-1 1", "", "looks like a charge and a multiplicity" },
        { "+2 1", "", "looks like a charge and a multiplicity" },
        { "charge=-1 multiplicity=1", "c1[c-]cccc1", "" },
        { "charge=0 mult: 2", "[C]1=CC=CC=C1", "" },
        { "charge=-1 multiplicity=3", "", "only closed shells" },
        { "charge=0 Mult = 4", "", "only closed shells" },
        { "Properties=species:S:1:pos:R:3:charge:R:1 faq=3 iq=2", "", "odd number of electrons" },
        { "12 1", "", "odd number of electrons" },
        { "surcharge=-1", "", "odd number of electrons" },
        { "charge=", "", "not a whole charge" },
    };
    const ch_prepare_opts o = ch_prepare_defaults();
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[2048];
        (void)snprintf(text, sizeof text, "11\n%s\n" PHENYL, cases[i].comment);
        const ch_prepared p = answer(text, &o);
        if (cases[i].reason[0] != '\0' ? p.code == CH_OK || strstr(p.message, cases[i].reason) == NULL
                                       : strcmp(p.smiles, cases[i].smiles) != 0)
            fail_msg("'%s' gave '%s' and '%s'", cases[i].comment, p.smiles, p.message);
    }
}

static void a_charge_of_extended_xyz_reaches_the_worker(void **state)
{
    char path[64];
    ch_reader *r;
    ch_record rec;
    bool more;
    FILE *f;
    const ch_prepare_opts o = ch_prepare_defaults();
    (void)state;

    (void)snprintf(path, sizeof path, "/tmp/molsieve_charge_%ld.xyz", (long)getpid());
    f = fopen(path, "w");
    assert_non_null(f);
    (void)fputs("11\nanion Properties=species:S:1:pos:R:3 energy=2 charge=-1 pbc=\"F F F\"\n" PHENYL, f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(ch_reader_open(&r, path, NULL, NULL, NULL), PL_OK);
    assert_int_equal(ch_reader_next(r, &rec, &more, NULL), PL_OK);
    assert_true(more && rec.problem == NULL);
    assert_string_equal(rec.title, "anion");
    const ch_prepared p = prepare(rec.text, rec.format, &o);
    assert_string_equal(p.smiles, "c1[c-]cccc1");
    assert_int_equal(p.charge, -1);
    ch_reader_close(r);
    (void)unlink(path);
}

/* Water with a charge in a spelling that is not read: never taken as neutral. */
static void no_charge_of_extended_xyz_is_ignored(void **state)
{
    static const char *const ways[] = { "w q=2 energy=-1", "w energy=-1 Charge: 2", "energy=1 net charge = 2",
                                        "energy=1 total-charge=2", "e=1;q=2" };
    char path[64];
    const ch_prepare_opts o = ch_prepare_defaults();
    (void)state;

    (void)snprintf(path, sizeof path, "/tmp/molsieve_charges_%ld.xyz", (long)getpid());
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        ch_reader *r;
        ch_record rec;
        bool more;
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        (void)fprintf(f, "3\n%s\nO 0 0 0\nH 0.96 0 0\nH -0.24 0.93 0\n", ways[i]);
        assert_int_equal(fclose(f), 0);
        assert_int_equal(ch_reader_open(&r, path, NULL, NULL, NULL), PL_OK);
        assert_int_equal(ch_reader_next(r, &rec, &more, NULL), PL_OK);
        assert_true(more && rec.problem == NULL);
        const ch_prepared p = answer(rec.text, &o);
        if (p.code != CH_PARSE || strstr(p.message, "states a charge") == NULL)
            fail_msg("'%s' gave '%s' and '%s'", ways[i], p.smiles, p.message);
        ch_reader_close(r);
    }
    (void)unlink(path);
}

static void records_without_their_hydrogens_are_refused(void **state)
{
    static const struct {
        const char *text, *format, *told;
    } cases[] = {
        { "2\nmethanol\nC 0 0 0\nO 1.43 0 0\n", "xyz", "hydrogens are missing (the record has none)" },
        { "6\nbenzene\nC 1.39 0 0\nC 0.695 1.2038 0\nC -0.695 1.2038 0\nC -1.39 0 0\nC -0.695 -1.2038 0\nC 0.695 -1.2038 0\n",
          "xyz", "use an sdf or mol2 file, or add all hydrogens with a program that knows the bonds" },
        { "1\noxygen\nO 0 0 0\n", "xyz", "hydrogens are missing, or positions are wrong" },
        { "3\nmethylene\nC 0 0 0\nH 1.0 0.4 0\nH -1.0 0.4 0\n", "xyz", "hydrogens are missing, or positions are wrong" },
        { "HETATM    1  C1  LIG A   1       0.000   0.000   0.000  1.00  0.00           C\n"
          "HETATM    2  C2  LIG A   1       1.530   0.000   0.000  1.00  0.00           C\n"
          "HETATM    3  O1  LIG A   1       2.030   1.340   0.000  1.00  0.00           O\nCONECT    1    2\nCONECT    2    1    3\nEND\n",
          "pdb", "use an sdf or mol2 file, or add all hydrogens with a program that knows the bonds" },
    };
    const ch_prepare_opts o = ch_prepare_defaults();
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ch_prepared p;
        (void)ch_worker_prepare(worker, cases[i].text, strlen(cases[i].text), cases[i].format, &o, &p, mem, NULL);
        if (p.code != CH_VALENCE || strstr(p.message, cases[i].told) == NULL || strlen(p.message) > 160)
            fail_msg("%s gave %s and '%s'", cases[i].text, p.smiles, p.message);
    }
}

/* A sheet of n by n cells of two carbons, with hydrogen where a neighbour is not there. */
static void write_sheet(char *out, size_t cap, int n)
{
    static const int step[3][2] = { { 0, 0 }, { 1, 0 }, { 0, 1 } };
    static const double angles[3] = { 0, 4 * M_PI / 3, 2 * M_PI / 3 };
    const double c = 1.42, h = 1.09;
    size_t at = 0;
    int n_atoms = 0;

    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            for (int k = 0; k < 6;
                 k++) { /* three bonds of both carbons; the first of each is always there, so it writes the carbon */
                const int side = k < 3 ? 1 : -1, a = i - side * step[k % 3][0], b = j - side * step[k % 3][1];
                const double angle = angles[k % 3];
                const double x = 1.5 * c * (i + j) + (side < 0 ? c : 0), y = c * sqrt(0.75) * (i - j);
                if (k % 3 == 0)
                    at += (size_t)snprintf(out + at, cap - at, "C %.4f %.4f 0\n", x, y);
                else if (a < 0 || b < 0 || a >= n || b >= n)
                    at += (size_t)snprintf(out + at, cap - at, "H %.4f %.4f 0\n", x + side * h * cos(angle),
                                           y + side * h * sin(angle));
                else
                    continue;
                n_atoms++;
            }
    char *body = strdup(out);
    assert_non_null(body);
    (void)snprintf(out, cap, "%d\nsheet\n%s", n_atoms, body);
    free(body);
}

static void double_bonds_of_a_large_sheet_are_given_up(void **state)
{
    static char text[1 << 16];
    ch_prepare_opts o = ch_prepare_defaults();
    ch_prepared p;

    (void)state;
    o.conformer = CH_3D_NONE;
    o.max_heavy_atoms = 900;
    write_sheet(text, sizeof text, 3);
    p = answer(text, &o);
    if (p.code != CH_OK || p.n_heavy != 18)
        fail_msg("%s", p.message);
    write_sheet(text, sizeof text, 20);
    p = answer(text, &o);
    assert_int_equal(p.code, CH_TOO_LARGE);
    assert_string_equal(p.message, "too many ways to arrange the double bonds");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(molecules_are_as_drawn_in_any_order_of_their_atoms),
        cmocka_unit_test(atoms_keep_the_order_and_positions_of_the_file),
        cmocka_unit_test(the_comment_states_the_charge),
        cmocka_unit_test(a_charge_of_extended_xyz_reaches_the_worker),
        cmocka_unit_test(no_charge_of_extended_xyz_is_ignored),
        cmocka_unit_test(records_without_their_hydrogens_are_refused),
        cmocka_unit_test(double_bonds_of_a_large_sheet_are_given_up),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
