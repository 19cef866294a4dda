/* SPDX-License-Identifier: Apache-2.0 */
/* Several structures of one molecule, and its undefined stereo. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/prepared.h"

enum { MANY = 12 };

static ch_prepared built(const char *smiles, int32_t n, double window)
{
    ch_prepare_opts o = ch_prepare_defaults();

    o.conformer = CH_3D_GENERATE;
    o.n_structures = n;
    o.window = window;
    return prepare(smiles, "smi", &o);
}

static void energies_are_in_kcal(void **state)
{
    ch_prepare_opts o = ch_prepare_defaults();
    double mmff94, uff;

    (void)state;
    o.conformer = CH_3D_GENERATE;
    mmff94 = prepare("c1ccccc1", "smi", &o).energy;
    o.force_field = CH_FF_UFF; /* Open Babel's energies are in kJ */
    uff = prepare("c1ccccc1", "smi", &o).energy;
    assert_true(mmff94 > 15.5 && mmff94 < 17 && uff > 10 && uff < 11);
}

/* Energies of rigid molecules, which have one minimum; Open Babel's own minimisers end there after 7,000 steps, too. */
static void what_is_built_is_at_the_minimum(void **state)
{
    static const struct {
        const char *smiles;
        double mmff94, uff;
    } known[] = {
        { "c1ccccc1", 16.2270, 10.5808 },           { "CC#N", 0.0246, -0.1607 },
        { "C1C2CC3CC1CC(C2)C3", 17.7691, 22.6171 }, { "Cn1cnc2c1c(=O)n(C)c(=O)n2C", -122.5283, 66.4318 },
        { "O=C1NC(=O)C=C1", -67.7395, 37.2277 },
    };
    ch_prepare_opts o = ch_prepare_defaults();

    (void)state;
    o.conformer = CH_3D_GENERATE;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        for (int field = 0; field < 2; field++) {
            const double want = field ? known[i].uff : known[i].mmff94;
            double energy;
            o.force_field = field ? CH_FF_UFF : CH_FF_MMFF94;
            energy = prepare(known[i].smiles, "smi", &o).energy;
            if (!(energy > want - 0.002 && energy < want + 0.02))
                fail_msg("%s: %.4f kcal/mol, not %.4f", known[i].smiles, energy, want);
        }
}

/* Open Babel builds these with a chain through a ring, at 880 to 1,500 kcal/mol. */
static void what_is_built_through_a_ring_is_built_again(void **state)
{
    static const char *const smiles[] = {
        "CCCCn1c(Cc2cc(OC)c(c(c2)OC)OC)nc2c1ncnc2N",
        "OC(=O)Cc1ccc(cc1CN1CCN([C@H](C1)C)S(=O)(=O)Cc1ccccc1)Cl",
        "CC[C@@H](C(=O)[C@H]([C@H]([C@@H](CCc1ccc(c(c1C(=O)[O-])O)C)C)O)C)[C@H]1O[C@](C[C@@H]1C)(CC)[C@H]1CC[C@]([C@@H](O1)C)(O)CC",
    };
    ch_prepare_opts o = ch_prepare_defaults();

    (void)state;
    o.conformer = CH_3D_GENERATE;
    for (size_t i = 0; i < sizeof smiles / sizeof *smiles; i++) {
        const ch_prepared p = prepare(smiles[i], "smi", &o);
        if (!(p.energy < 3 * p.mol.n_atoms))
            fail_msg("%s: %.1f kcal/mol", smiles[i], p.energy);
    }
}

static const ch_mol *structure(const ch_prepared *p, int32_t k) { return k == 0 ? &p->mol : &p->other[k - 1]; }

/* The molecule that its positions give, stereo included. */
static const char *smiles_of(const ch_mol *m)
{
    ch_prepare_opts o = ch_prepare_defaults();
    const char *text = NULL;
    pl_error err = { 0 };

    if (ch_worker_write(worker, m, "x", "sdf", &text, mem, &err) != PL_OK)
        fail_msg("%s", err.text);
    o.conformer = CH_3D_KEEP;
    return prepare(text, "sdf", &o).smiles;
}

/* Root mean square difference of the distances between heavy atoms. */
static double difference(const ch_mol *a, const ch_mol *b)
{
    double sum = 0;
    int n = 0;

    for (int32_t i = 0; i < a->n_atoms; i++)
        for (int32_t j = 0; j < i; j++) {
            double d[2] = { 0 };
            if (a->z[i] == 1 || a->z[j] == 1)
                continue;
            for (int c = 0; c < 3; c++) {
                d[0] += pow((double)a->xyz[i][c] - (double)a->xyz[j][c], 2);
                d[1] += pow((double)b->xyz[i][c] - (double)b->xyz[j][c], 2);
            }
            sum += pow(sqrt(d[0]) - sqrt(d[1]), 2);
            n++;
        }
    return sqrt(sum / n);
}

static void flexible_molecules_have_several_conformers(void **state)
{
    static const char *const smiles[] = { "CCCCCC(=O)NCCO", "CC(C)Cc1ccc(cc1)[C@H](C)C(=O)O", "OCCOCCO", "C=CCN(C)CC1CC1" };

    (void)state;
    for (size_t i = 0; i < sizeof smiles / sizeof *smiles; i++) {
        const ch_prepared one = built(smiles[i], 1, 10), p = built(smiles[i], MANY, 10);
        assert_int_equal(one.n_other, 0);
        assert_true(p.n_other >= 2 && p.n_other < MANY);
        assert_true(isfinite(p.energy) && p.energy <= one.energy + 1e-9);
        for (int32_t k = 1; k <= p.n_other; k++) {
            const ch_mol *m = structure(&p, k);
            assert_int_equal(m->n_atoms, p.mol.n_atoms);
            assert_memory_equal(m->z, p.mol.z, (size_t)m->n_atoms);
            assert_memory_equal(m->bond, p.mol.bond, (size_t)m->n_bonds * sizeof *m->bond);
            for (int32_t j = 0; j < k; j++)
                assert_true(difference(m, structure(&p, j)) >= 0.25);
        }
    }
}

/* Anti and gauche: one of its six distances differs, by 0.63 Angstrom or so. */
static void two_forms_of_four_heavy_atoms_are_conformers(void **state)
{
    (void)state;
    assert_int_equal(built("OCCF", 12, 10).n_other, 1);
}

static void rigid_molecules_have_one_conformer(void **state)
{
    static const char *const smiles[] = { "c1ccccc1", "C", "[Na+].[Cl-]", "CN(C)C", "CC(=O)N", "O=C1CCCCN1", "N#CC#N" };

    (void)state;
    for (size_t i = 0; i < sizeof smiles / sizeof *smiles; i++) {
        const ch_prepared one = built(smiles[i], 1, 10), p = built(smiles[i], MANY, 10);
        assert_int_equal(p.n_other, 0);
        assert_memory_equal(p.mol.xyz, one.mol.xyz, (size_t)p.mol.n_atoms * sizeof *p.mol.xyz);
    }
}

static void conformers_above_the_energy_window_are_left_out(void **state)
{
    const ch_prepared wide = built("CCCCCC(=O)NCCO", MANY, 1000), narrow = built("CCCCCC(=O)NCCO", MANY, 1),
                      none = built("CCCCCC(=O)NCCO", MANY, 0);

    (void)state;
    assert_true(wide.n_other > narrow.n_other && narrow.n_other >= none.n_other && none.n_other == 0);
    assert_true(wide.energy == none.energy && narrow.energy == none.energy);
    assert_memory_equal(wide.mol.xyz, none.mol.xyz, (size_t)none.mol.n_atoms * sizeof *none.mol.xyz);
}

static void a_record_that_takes_too_long_fails_alone(void **state)
{
    const ch_prepared one = built("CCCCCC(=O)NCCOCCc1ccccc1", 1, 10);
    ch_prepare_opts o = ch_prepare_defaults();
    ch_prepared p;

    (void)state;
    o.conformer = CH_3D_GENERATE;
    o.n_structures = 5;
    o.structure_s = 0.001;
    p = prepare("CCCCCC(=O)NCCOCCc1ccccc1", "smi", &o);
    assert_int_equal(p.n_other, 0);
    assert_int_equal(p.attempts, 1);
    assert_memory_equal(p.mol.xyz, one.mol.xyz, (size_t)one.mol.n_atoms * sizeof *one.mol.xyz);
}

/* The same structure whatever the worker did before, and however the SMILES is written. */
static void the_same_molecule_has_the_same_structures(void **state)
{
    const ch_prepared a = built("CCCCCC(=O)NCCO", 5, 10), b = (built("c1ccccc1CCO", 5, 10), built("OCCNC(CCCCC)=O", 5, 10));

    (void)state;
    assert_int_equal(a.n_other, b.n_other);
    assert_true(a.energy == b.energy);
    for (int32_t k = 0; k <= a.n_other; k++)
        assert_memory_equal(structure(&a, k)->xyz, structure(&b, k)->xyz, (size_t)a.mol.n_atoms * sizeof *a.mol.xyz);
}

static void defined_stereo_stays_and_open_stereo_comes_out_either_way(void **state)
{
    static const struct {
        const char *smiles;
        int n; /* arrangements that are not mirror images of each other */
    } cases[] = { { "C[C@@H]([C@H](Cl)F)O", 1 }, { "C/C=C/CCO", 1 }, { "C/C=C\\CCO", 1 },  { "C[C@@H]1CC[C@@H](CC1)C", 1 },
                  { "CC(C(Cl)F)O", 2 },          { "CC=CCCO", 2 },   { "CC1CCC(CC1)C", 2 } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const ch_prepared p = built(cases[i].smiles, 2 * MANY, 1000);
        const char *seen[4 * MANY];
        int n = 0;
        for (int32_t k = 0; k <= p.n_other; k++) {
            const char *is = smiles_of(structure(&p, k));
            bool known = false;
            for (int j = 0; j < n; j++)
                known = known || strcmp(seen[j], is) == 0;
            if (!known)
                seen[n++] = is;
            assert_true(p.undefined_stereo > 0 || strcmp(is, p.smiles) == 0);
        }
        if (p.undefined_stereo == 0 ? n != 1 : n < cases[i].n)
            fail_msg("%s: %d arrangements, not %d", cases[i].smiles, n, cases[i].n);
    }
}

static void what_is_open_is_counted(void **state)
{
    static const struct {
        const char *smiles;
        int open;
    } cases[] = {
        { "CCO", 0 },
        { "CC(O)F", 1 },
        { "C[C@H](O)F", 0 },
        { "CC(O)C(F)Cl", 2 },
        { "C[C@@H](O)C(F)Cl", 1 },
        { "CC=CC", 1 },
        { "C/C=C/C", 0 },
        { "CC=C(C)C", 0 },
        { "CC=NO", 1 },
        { "CC1CCC(C)CC1", 2 },
        { "C[C@H]1CC[C@@H](C)CC1", 0 },
        { "C1CCC=CCC1", 0 },    /* the ring is too small for trans */
        { "C1CCCCC=CCCC1", 1 }, /* this ring is large enough */
        { "OC(=O)C(O)C(O)C(=O)O", 2 },
        { "CS(=O)c1ccccc1", 1 },
        { "CS(=O)(=O)c1ccccc1", 0 },
        { "COP(=O)(O)C", 0 }, /* whose hydrogen can move */
        { "COP(=O)(N)C", 1 },
        { "CN(C)C", 0 }, /* inverts */
        { "CNC(=O)C", 0 },
        { "NC(Cc1c[nH]cn1)C(=O)O", 1 },
        { "CC(N)C(=O)O.Cl", 1 },
        { "c1ccccc1C=Cc1ccccc1", 1 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ch_prepare_opts o = ch_prepare_defaults();
        ch_prepared p;
        o.conformer = CH_3D_NONE;
        p = prepare(cases[i].smiles, "smi", &o);
        if (p.undefined_stereo != cases[i].open)
            fail_msg("%s: %d, not %d", cases[i].smiles, p.undefined_stereo, cases[i].open);
    }
}

/* Three or four groups beside the bond between two rings: the molecule has two forms that do not turn into each other. */
static void a_biaryl_that_cannot_turn_is_open_stereo(void **state)
{
    static const struct {
        const char *smiles;
        int open;
    } cases[] = { { "Cc1cccc(F)c1-c1c(C)cccc1Br", 1 },
                  { "Oc1ccc2ccccc2c1-c1c(O)ccc2ccccc12", 1 },
                  { "Cc1ccccc1-c1ccccc1F", 0 },
                  { "Cc1cccc(C)c1-c1c(C)cccc1Br", 0 } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const ch_prepared p = prepare(cases[i].smiles, "smi", NULL);
        if (p.undefined_stereo != cases[i].open)
            fail_msg("%s: %d, not %d", cases[i].smiles, p.undefined_stereo, cases[i].open);
    }
}

static pl_code fail_to_find(void *ctx, const char *built_from, bool *found, ch_prepared *out, pl_arena *arena, pl_error *err)
{
    (void)ctx;
    (void)out;
    (void)arena;
    *found = true;
    return pl_fail(err, PL_EIO, "no structure of %s: the disk is damaged", built_from);
}

static void an_error_of_looking_for_a_structure_is_told(void **state)
{
    const ch_known known = { .find = fail_to_find };
    const ch_input in = { .text = "OCC", .format = "smi", .len = 3 };
    pl_error err = { 0 };
    ch_prepared p;

    (void)state;
    assert_int_equal(ch_worker_prepare_all(worker, &in, 1, NULL, &known, &p, mem, &err), PL_EIO);
    assert_string_equal(err.text, "no structure of CCO: the disk is damaged");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(energies_are_in_kcal),
        cmocka_unit_test(what_is_built_is_at_the_minimum),
        cmocka_unit_test(what_is_built_through_a_ring_is_built_again),
        cmocka_unit_test(flexible_molecules_have_several_conformers),
        cmocka_unit_test(two_forms_of_four_heavy_atoms_are_conformers),
        cmocka_unit_test(rigid_molecules_have_one_conformer),
        cmocka_unit_test(conformers_above_the_energy_window_are_left_out),
        cmocka_unit_test(a_record_that_takes_too_long_fails_alone),
        cmocka_unit_test(the_same_molecule_has_the_same_structures),
        cmocka_unit_test(defined_stereo_stays_and_open_stereo_comes_out_either_way),
        cmocka_unit_test(what_is_open_is_counted),
        cmocka_unit_test(a_biaryl_that_cannot_turn_is_open_stereo),
        cmocka_unit_test(an_error_of_looking_for_a_structure_is_told),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
