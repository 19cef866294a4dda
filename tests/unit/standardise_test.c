/* SPDX-License-Identifier: Apache-2.0 */
/* The charges that the worker gives molecules before it computes anything. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/prepared.h"

/* The worker's answer for a SMILES, without positions. */
static ch_prepared flat(const char *smiles, bool neutralise, bool largest)
{
    ch_prepare_opts o = ch_prepare_defaults();

    o.conformer = CH_3D_NONE;
    o.neutralise = neutralise;
    o.largest_fragment = largest;
    return prepare(smiles, "smi", &o);
}

/* Checked by hand; the second is the expected form, charges included. */
static const struct {
    const char *given, *neutral;
    int n; /* atoms that lose their charge */
} pairs[] = {
    /* acids and bases */
    { "CC(=O)[O-]", "CC(=O)O", 1 },
    { "CC[NH3+]", "CCN", 1 },
    { "CC(=O)[O-].[Na+]", "CC(=O)O", 1 },
    { "NC(N)=[NH2+]", "NC(N)=N", 1 },
    { "c1cc[nH+]cc1", "c1ccncc1", 1 },
    { "[O-]c1ccccc1", "Oc1ccccc1", 1 },
    { "C[S-]", "CS", 1 },
    { "CCCCOP(=O)([O-])[O-]", "CCCCOP(=O)(O)O", 2 },
    { "CS(=O)(=O)[O-]", "CS(=O)(=O)O", 1 },
    { "O=C1CCCC(=O)[CH-]1", "O=C1CCCC(=O)C1", 1 },
    { "C[PH+](CC)CCC", "CP(CC)CCC", 1 },
    { "C[N@H+](CC)CCC", "CN(CC)CCC", 1 }, /* an amine inverts */
    { "[H]/N=C(\\N)[NH3+]", "NC(=N)N", 1 },
    { "O/N=C/C[NH3+]", "O/N=C/CN", 1 },
    /* both signs */
    { "C[C@H]([NH3+])C([O-])=O", "C[C@H](N)C(O)=O", 2 },
    { "[NH3+][C@@H](CCC[NH+]=C(N)N)C(=O)[O-]", "N[C@@H](CCCN=C(N)N)C(=O)O", 3 },
    { "[O-][N+](=O)c1ccc([O-])cc1", "[O-][N+](=O)c1ccc(O)cc1", 1 },
    /* Open Babel's own rules go wrong here (openbabel#2397, #2869) */
    { "C1C[NH2+]CC[NH2+]1", "C1CNCCN1", 2 },
    { "Cc1nn[n-]n1", "Cc1nn[nH]n1", 1 },
    { "CC(=O)[N-]S(C)(=O)=O", "CC(=O)NS(C)(=O)=O", 1 },
    { "OP([O-])([O-])=O", "OP(O)(O)=O", 2 },
    { "CO/C=C/C(C)=O", "CO/C=C/C(C)=O", 0 },
    { "C[N+](C)(C)CC(=O)[O-]", "C[N+](C)(C)CC(=O)[O-]", 0 },
    /* a charge that no proton explains stays, with one counter-charge: that of the strongest acid */
    { "C[N+](C)(C)C", "C[N+](C)(C)C", 0 },
    { "[O-]P(=O)([O-])OCC[N+](C)(C)C", "OP(=O)([O-])OCC[N+](C)(C)C", 1 },
    { "[O-]C(=O)CC(C[N+](C)(C)C)S(=O)(=O)[O-]", "OC(=O)CC(C[N+](C)(C)C)S(=O)(=O)[O-]", 1 },
    { "[O-]S(=O)(=O)CC(C(=O)[O-])C[N+](C)(C)C", "[O-]S(=O)(=O)CC(C(=O)O)C[N+](C)(C)C", 1 },
    { "[O-]c1ccc(cc1)C([O-])=O.C[N+](C)(C)C", "Oc1ccc(cc1)C([O-])=O.C[N+](C)(C)C", 1 },
    { "F[B-](F)(F)CC[NH3+]", "F[B-](F)(F)CC[NH3+]", 0 },
    { "F[B-](F)(F)CC([NH3+])c1cccc[nH+]1", "F[B-](F)(F)CC([NH3+])c1ccccn1", 1 },
    { "[O-]c1c[n+](C)no1", "[O-]c1c[n+](C)no1", 0 },
    { "C[n+]1ccccc1", "C[n+]1ccccc1", 0 },
    /* neighbours of both signs */
    { "C[N+](=O)[O-]", "C[N+](=O)[O-]", 0 },
    { "[O-][n+]1ccccc1", "[O-][n+]1ccccc1", 0 },
    { "CN=[N+]=[N-]", "CN=[N+]=[N-]", 0 },
    { "C[N+]#[C-]", "C[N+]#[C-]", 0 },
    { "[CH2-][S+](C)C", "[CH2-][S+](C)C", 0 },
    /* metals and halides */
    { "[Cl-]", "[Cl-]", 0 },
    { "[Na+]", "[Na+]", 0 },
    { "[O-][Zn]OCC[NH3+]", "[O-][Zn]OCC[NH3+]", 0 },
    { "[cH-]1cccc1", "[cH-]1cccc1", 0 },
    { "[2H][N+]([2H])([2H])C", "[2H][N+]([2H])([2H])C", 0 },
};

static void charges_go_where_a_proton_explains_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const bool keep = strchr(pairs[i].neutral, '.') != NULL;
        ch_prepared is = flat(pairs[i].given, true, !keep), must = flat(pairs[i].neutral, false, !keep);

        if (strcmp(is.smiles, must.smiles) != 0 || is.n_neutralised != pairs[i].n)
            fail_msg("%s: %s after %d atoms, not %s after %d", pairs[i].given, is.smiles, is.n_neutralised, must.smiles,
                     pairs[i].n);
        assert_string_equal(is.inchikey, must.inchikey);
        assert_string_equal(is.formula, must.formula);
        assert_int_equal(is.charge, must.charge);
        assert_int_equal(is.mol.n_atoms, must.mol.n_atoms);
        assert_true(abs(is.charge) <= abs(is.charge_read));
        assert_int_equal(is.charge_read, flat(pairs[i].given, false, !keep).charge);
        assert_int_equal(flat(is.smiles, true, !keep).n_neutralised, 0);
    }
}

static void without_the_setting_charges_stay(void **state)
{
    ch_prepared p = flat("[O-]C(=O)C[NH3+]", false, true);

    (void)state;
    assert_int_equal(p.n_neutralised, 0);
    assert_non_null(strstr(p.smiles, "[NH3+]"));
}

static void a_salt_that_is_kept_stays_one(void **state)
{
    (void)state;
    assert_int_equal(flat("CC(=O)[O-].[Na+]", true, false).n_neutralised, 0);
    assert_int_equal(flat("C[NH3+].[Cl-]", true, false).n_neutralised, 0);
}

static void the_order_of_atoms_does_not_choose_the_charge_that_stays(void **state)
{
    ch_prepared a = flat("[O-]C(=O)CC(CC(=O)[O-])(O)C[N+](C)(C)C", true, true);
    ch_prepared b = flat("C[N+](C)(C)CC(O)(CC([O-])=O)CC([O-])=O", true, true);
    ch_prepared c = flat("[O-]C(=O)CCC(C([O-])=O)[N+](C)(C)C", true, true);
    ch_prepared d = flat("C[N+](C)(C)C(C([O-])=O)CCC([O-])=O", true, true);

    (void)state;
    assert_string_equal(a.smiles, b.smiles);
    assert_string_equal(c.smiles, d.smiles);
}

/* ---- in three dimensions ---- */

static double distance(const ch_mol *m, int i, int j)
{
    const float *p = m->xyz[i], *q = m->xyz[j];
    return sqrt(pow(p[0] - q[0], 2) + pow(p[1] - q[1], 2) + pow(p[2] - q[2], 2));
}

/* A built structure as the text of a file, hydrogens included. */
static const char *as_sdf(const char *smiles)
{
    ch_prepared p = prepare(smiles, "smi", NULL);
    const char *text = NULL;
    pl_error err = { 0 };

    if (ch_worker_write(worker, &p.mol, NULL, "sdf", &text, mem, &err) != PL_OK)
        fail_msg("%s", err.text);
    return text;
}

static void hydrogens_are_where_they_can_be(const ch_mol *m)
{
    for (int b = 0; b < m->n_bonds; b++) {
        const int i = m->bond[b][0], j = m->bond[b][1];
        const bool light = m->z[i] == 1 || m->z[j] == 1;
        if (light)
            assert_false(!(distance(m, i, j) > 0.9 && distance(m, i, j) < 1.2));
    }
    for (int i = 0; i < m->n_atoms; i++)
        for (int j = 0; j < i; j++)
            assert_false(!(distance(m, i, j) > 0.9));
}

static void check_3d(const char *smiles, int more, ch_conformer conformer)
{
    ch_prepare_opts o = ch_prepare_defaults();
    const char *sdf = as_sdf(smiles);
    ch_prepared before, after;
    int heavy = 0;

    o.conformer = conformer;
    before = prepare(sdf, "sdf", &o);
    o.neutralise = true;
    after = prepare(sdf, "sdf", &o);
    assert_string_equal(before.geometry, "input");
    assert_string_equal(after.geometry, "input");
    assert_int_equal(after.mol.n_atoms, before.mol.n_atoms + more);
    assert_int_equal(after.charge, 0);
    for (int i = 0; i < before.mol.n_atoms && before.mol.z[i] != 1; i++, heavy++)
        assert_memory_equal(after.mol.xyz[i], before.mol.xyz[i], sizeof after.mol.xyz[i]);
    assert_int_equal(heavy, before.n_heavy);
    for (int i = 0; i < after.mol.n_atoms; i++)
        assert_int_equal(after.mol.charge[i], 0);
    hydrogens_are_where_they_can_be(&after.mol);
}

static void a_3d_input_gets_and_loses_hydrogens_in_place(void **state)
{
    (void)state;
    check_3d("CC(=O)[O-]", 1, CH_3D_AUTO);
    check_3d("CC[NH3+]", -1, CH_3D_AUTO);
    check_3d("C[C@H]([NH3+])C(=O)[O-]", 0, CH_3D_AUTO);
    check_3d("c1ccc[nH+]c1CCS(=O)(=O)[O-]", 0, CH_3D_KEEP);
}

/* The reader of MOL2 gives the whole molecule its charge. */
static void the_charge_of_a_mol2_record_goes_with_its_protons(void **state)
{
    static const char acetate[] = "@<TRIPOS>MOLECULE\nacetate\n7 6\nSMALL\nNO_CHARGES\n\n@<TRIPOS>ATOM\n"
                                  "1 C1  0.000  0.000  0.000 C.3\n2 C2  1.520  0.000  0.000 C.2\n"
                                  "3 O1  2.110  1.120  0.000 O.co2\n4 O2  2.110 -1.120  0.000 O.co2\n"
                                  "5 H1 -0.360  1.030  0.000 H\n6 H2 -0.360 -0.510  0.890 H\n7 H3 -0.360 -0.510 -0.890 H\n"
                                  "@<TRIPOS>BOND\n1 1 2 1\n2 2 3 ar\n3 2 4 ar\n4 1 5 1\n5 1 6 1\n6 1 7 1\n";
    ch_prepare_opts o = ch_prepare_defaults();

    (void)state;
    o.conformer = CH_3D_KEEP;
    const ch_prepared before = prepare(acetate, "mol2", &o);
    o.neutralise = true;
    const ch_prepared after = prepare(acetate, "mol2", &o);
    assert_string_equal(before.smiles, "[O-]C(=O)C");
    assert_string_equal(before.inchikey, "QTBSBXVTEAMEQO-UHFFFAOYSA-M");
    assert_true(before.charge == -1 && before.mol.n_atoms == 7);
    assert_string_equal(after.smiles, "CC(=O)O");
    assert_string_equal(after.inchikey, "QTBSBXVTEAMEQO-UHFFFAOYSA-N");
    assert_true(after.charge == 0 && after.charge_read == -1 && after.mol.n_atoms == 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(charges_go_where_a_proton_explains_them),
        cmocka_unit_test(without_the_setting_charges_stay),
        cmocka_unit_test(a_salt_that_is_kept_stays_one),
        cmocka_unit_test(the_order_of_atoms_does_not_choose_the_charge_that_stays),
        cmocka_unit_test(a_3d_input_gets_and_loses_hydrogens_in_place),
        cmocka_unit_test(the_charge_of_a_mol2_record_goes_with_its_protons),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
