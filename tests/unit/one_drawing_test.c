/* SPDX-License-Identifier: Apache-2.0 */
/* Groups that are drawn in several ways get one drawing; others stay as they are. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/text.h"
#include "tests/unit/prepared.h"

static ch_prepared flat(const char *smiles, bool one_drawing)
{
    ch_prepare_opts o = ch_prepare_defaults();

    o.conformer = CH_3D_NONE;
    o.largest_fragment = false;
    o.one_drawing = one_drawing;
    return prepare(smiles, "smi", &o);
}

/* The first is the standard drawing; the others are other drawings of the same molecule. */
static const char *const same[][5] = {
    /* nitrogen with four bonds */
    { "[O-][N+](=O)c1ccccc1", "O=N(=O)c1ccccc1", "c1ccccc1N(=O)=O", "[O-][N+2]([O-])c1ccccc1" },
    { "CCO[N+](=O)[O-]", "CCON(=O)=O" },
    { "O[N+](=O)[O-]", "ON(=O)=O" },
    { "[O-][N+](=O)[O-]", "[O-]N(=O)=O" },
    { "CN(C)[N+](=O)[O-]", "CN(C)N(=O)=O" },
    { "CS[N+](=O)[O-]", "CSN(=O)=O" },
    { "[O-][n+]1ccccc1", "O=n1ccccc1", "O=N1=CC=CC=C1" },
    { "C[N+](C)(C)[O-]", "CN(C)(C)=O" },
    { "CC=[N+](C)[O-]", "CC=N(=O)C" },
    { "CN=[N+](C)[O-]", "CN=N(=O)C" },
    { "C[N+]([O-])=[N+](C)[O-]", "CN(=O)=N(C)=O" },
    { "[O-][n+]1onc2ccccc12", "O=n1onc2ccccc12" },
    { "CC#[N+][O-]", "CC#N=O" },
    { "C[N-][n+]1ccccc1", "CN=n1ccccc1" },
    { "C#[N+][N-]c1ccccc1", "C#N=Nc1ccccc1" },
    { "CN=[N+]=[N-]", "CN=N#N", "C[N-][N+]#N" },
    { "[N-]=[N+]=[N-]", "[N-2][N+]#N", "[N-]=N#N" },
    { "N=[N+]=[N-]", "N=N#N", "[NH-][N+]#N" },
    { "C=[N+]=[N-]", "C=N#N", "[CH2-][N+]#N" },
    { "CCOC(=O)C=[N+]=[N-]", "CCOC(=O)C=N#N", "CCOC(=O)[CH-][N+]#N", "CCOC([O-])=C[N+]#N" },
    { "O=C1C=CC=CC1=[N+]=[N-]", "O=C1C=CC=CC1=N#N", "[O-]c1ccccc1[N+]#N" },
    { "C1=CC=CC1=[N+]=[N-]", "c1cc[c-](c1)[N+]#N" },
    { "C[N+]#[C-]", "C[N]#[C]", "CN=[C]" },
    { "CN(C)N=O", "C[N+](C)=N[O-]" },
    /* sulfur, selenium and tellurium without charges */
    { "CS(=O)CC", "C[S+]([O-])CC" },
    { "C[S@](=O)CC", "C[S@+]([O-])CC", "CC[S@@](=O)C", "CC[S@@+]([O-])C" },
    { "CS(=O)(=O)CC", "C[S+2]([O-])([O-])CC", "C[S+](=O)([O-])CC" },
    { "CS(N)(=O)=O", "C[S+2]([O-])([O-])N", "C[S+](=O)([O-])N" },
    { "CS(=O)(=O)[O-]", "C[S+2]([O-])([O-])[O-]" },
    { "OS(=O)(=O)O", "O[S+2]([O-])([O-])O" },
    { "COS(=O)OC", "CO[S+]([O-])OC" },
    { "C=S=O", "C=[S+][O-]" },
    { "O=S1C=CC=C1", "[O-][S+]1C=CC=C1", "[O-][s+]1cccc1" },
    { "CN=S(C)C", "C[N-][S+](C)C" },
    { "CS(C)(=O)=N", "C[S+](C)([O-])=N", "C[S+](C)(=O)[NH-]", "C[S+2](C)([O-])[NH-]" },
    { "C=S(C)C", "[CH2-][S+](C)C" },
    { "C=S(C)(C)=O", "[CH2-][S+](C)(C)=O" },
    { "C[Se](C)=O", "C[Se+](C)[O-]" },
    { "C[Te](C)=O", "C[Te+](C)[O-]" },
    /* phosphorus and arsenic */
    { "CP(C)(C)=O", "C[P+](C)(C)[O-]" },
    { "COP(=O)(OC)OC", "CO[P+]([O-])(OC)OC" },
    { "COP(=O)([O-])OC", "CO[P+]([O-])([O-])OC" },
    { "CP(C)(C)=S", "C[P+](C)(C)[S-]" },
    { "CN=P(C)(C)C", "C[N-][P+](C)(C)C" },
    { "CC(=O)C=P(C)(C)C", "CC(=O)[CH-][P+](C)(C)C", "CC([O-])=C[P+](C)(C)C" },
    { "C[As](C)(C)=O", "C[As+](C)(C)[O-]" },
    /* halogens */
    { "[O-]Cl(=O)(=O)=O", "[O-][Cl+3]([O-])([O-])[O-]" },
    { "OCl(=O)=O", "O[Cl+2]([O-])[O-]" },
    { "O=Ic1ccccc1", "[O-][I+]c1ccccc1" },
    { "O=I(=O)c1ccccc1", "[O-][I+2]([O-])c1ccccc1" },
    /* charges that cancel */
    { "CC(C)=O", "C[C+](C)[O-]" },
    { "CC(N)=O", "CC([O-])=[NH2+]", "C[C+](N)[O-]" },
    { "CC(N)=S", "CC([S-])=[NH2+]" },
    { "O=c1ccccn1C", "[O-]c1cccc[n+]1C" },
    { "O=c1ccn(C)cc1", "[O-]c1cc[n+](C)cc1" },
    { "CN(C)C=CC(C)=O", "C[N+](C)=CC=C(C)[O-]" },
    { "S=C1N(C)C=CN1C", "[S-]c1n(C)cc[n+]1C" },
    { "O=c1ccc2cc3ccccc3oc-2c1", "[O-]c1ccc2cc3ccccc3[o+]c2c1" },
};

/* Similar groups that must stay as they are. */
static const char *const others[] = {
    "CN=O",
    "CON=O",
    "O=[N+]=O",
    "N#[N+]c1ccccc1",
    "CN=NC",
    "CNNC",
    "CC#N",
    "C#N",
    "[C-]#N",
    "[C-]#[O+]",
    "CC(=O)[O-]",
    "[NH3+]CC(=O)[O-]",
    "C[N+](C)(C)CC(=O)[O-]",
    "C[N+](C)(C)C",
    "C[n+]1ccccc1",
    "[O-]c1c[n+](C)no1",
    "[O-]c1ccc(cc1)[n+]1ccccc1",
    "[O-]C(=O)c1cc[n+](C)cc1",
    "[O-][n+]1cc[n+]([O-])cc1",
    "C[S+](C)C",
    "C[S+2](C)[O-]",
    "O=N(=O)[Cu]",
    "C[S+]([O-])[Fe]",
    "[Fe][CH-][P+](C)(C)C",
    "CSOC",
    "CSC",
    "C[S+](C)OC",
    "CS(=O)[O-]",
    "CP(C)C",
    "C[P+](C)(C)C",
    "COP(OC)OC",
    "FS(F)(F)(F)(F)F",
    "F[P-](F)(F)(F)(F)F",
    "F[B-](F)(F)F",
    "C[N+](C)(C)[B-](F)(F)F",
    "CCl",
    "OCl",
    "c1ccccc1[I+]c1ccccc1",
    "Cl[I-]Cl",
    "CC=CC=O",
    "[O-]N(C)C",
    "CON(C)C",
    "CN(C)O",
    "CC=NO",
    "[C-]#[N+][Cu]",
    "[O-][N+](=O)N=C(N)N",
    "[cH-]1cccc1",
    "C[CH-]C",
    "C[CH+]C",
    "CN=C=O",
    "CN=C=S",
    "[S-]C#N",
    "[O-]C#N",
    "[O-]C(=O)C=[N+]=[N-]",
    "[O][N+](=O)C",
    "[CH2]C",
    "[Na+].[Cl-]",
    "[O-]c1ccccc1.C[N+](C)(C)C",
};

#define N_SAME (sizeof same / sizeof *same)

static void check_same(const ch_prepared *is, const ch_prepared *must, const char *given)
{
    const ch_mol *a = &is->mol, *b = &must->mol;

    if (is->code != CH_OK || strcmp(is->smiles, must->smiles) != 0 || strcmp(is->inchikey, must->inchikey) != 0)
        fail_msg("%s: %s %s, not %s %s", given, is->smiles, is->inchikey, must->smiles, must->inchikey);
    assert_string_equal(is->formula, must->formula);
    assert_int_equal(is->charge, must->charge);
    assert_int_equal(a->n_atoms, b->n_atoms);
    assert_int_equal(a->n_bonds, b->n_bonds);
    for (int i = 0; i < CH_N_DESCRIPTORS; i++) { /* sums over atoms in another order */
        const double x = is->descriptor[i], y = must->descriptor[i];
        if (!(fabs(x - y) <= 1e-9 * fabs(y)) && !(isnan(x) && isnan(y)))
            fail_msg("%s: %s is %.17g, not %.17g", given, ch_descriptors[i].name, x, y);
    }
}

static void each_group_has_one_drawing(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_SAME; i++) {
        const ch_prepared must = flat(same[i][0], true);
        for (int k = 0; k < 5 && same[i][k] != NULL; k++) {
            const ch_prepared is = flat(same[i][k], true);
            check_same(&is, &must, same[i][k]);
        }
    }
}

static void the_standard_drawing_is_the_first(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_SAME; i++)
        assert_string_equal(flat(same[i][0], true).smiles, flat(same[i][0], false).smiles);
}

static void drawn_twice_is_drawn_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_SAME; i++)
        for (int k = 0; k < 5 && same[i][k] != NULL; k++) {
            const char *once = flat(same[i][k], true).smiles;
            assert_string_equal(flat(once, true).smiles, once);
            assert_string_equal(flat(once, false).smiles, once);
        }
}

static void without_the_setting_a_drawing_stays(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_SAME; i++)
        for (int k = 1; k < 5 && same[i][k] != NULL; k++) {
            const ch_prepared is = flat(same[i][k], false), must = flat(same[i][0], true);
            assert_string_equal(is.formula, must.formula);
            if (strchr(same[i][k], '@') == NULL && strcmp(is.smiles, must.smiles) == 0)
                fail_msg("%s is the standard drawing", same[i][k]);
        }
}

static void look_alikes_stay(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const ch_prepared is = flat(others[i], true), must = flat(others[i], false);
        assert_true(must.code == CH_OK);
        check_same(&is, &must, others[i]);
    }
}

static void a_chosen_oxygen_does_not_depend_on_the_order(void **state)
{
    const char *const pairs[][2] = {
        { "c1ccccc1N(=[18O])=O", "O=N(=[18O])c1ccccc1" },
        { "[O-][P+](OC)([S-])OC", "[S-][P+](OC)([O-])OC" },
        { "CC(=O)OP(=O)([O-])O[P+]([O-])(O)O", "O[P+](O)([O-])OP([O-])(=O)OC(C)=O" },
        { "O=n1ccn(=O)cc1", "[O-][n+]1ccn(=O)cc1" },
        { "C[S+]([N-]C)[O-]", "[O-][S+](C)[N-]C" },
        { "CN=n1ncccc1", "c1ccnn(=NC)c1" },
        { "C[n+]1ccc([O-])c2c1cc[n+](C)c2", "[n+]1(C)ccc2[n+](C)ccc([O-])c2c1" },
        { "C[n+]1ccc([O-])c(c1)-c1cc[n+](C)cc1", "c1[n+](C)ccc(-c2c[n+](C)ccc2[O-])c1" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        assert_string_equal(flat(pairs[i][0], true).smiles, flat(pairs[i][1], true).smiles);
}

static void counter_ions_are_known_in_any_drawing(void **state)
{
    ch_prepared p = prepare("[Na+].CC.[O-][Cl+3]([O-])([O-])[O-]", "smi", NULL), q = prepare("[Na+].CC.O=N(=O)[O-]", "smi", NULL);

    (void)state;
    assert_string_equal(p.smiles, "CC");
    assert_string_equal(q.smiles, "CC");
}

/* An anion that no list has is larger than the drug; a complex in a solvent is not organic. */
static void an_organic_part_is_kept_before_a_larger_one_without_carbon(void **state)
{
    (void)state;
    assert_string_equal(prepare("F[Sb-](F)(F)(F)(F)F.CC[NH3+]", "smi", NULL).smiles, "CC[NH3+]");
    assert_string_equal(prepare("CS(=O)C.N[Pt](N)(Cl)Cl", "smi", NULL).removed, "CS(=O)C");
    assert_string_equal(prepare("F[Sb-](F)(F)(F)(F)F.[NH4+]", "smi", NULL).removed, "[NH4+]");
}

/* "cccc" was read as butadiene. */
static void lower_case_outside_of_a_ring_is_refused(void **state)
{
    static const char *const wrong[] = { "cccc", "Cl[Si](C)C.co", "[13cH2][cH2]", "c1ccccc1cc" };
    static const char *const right[] = { "c1ccccc1", "[nH]1cccc1.[13cH]1ccccc1", "Brc1cc[se]c1.Cl", "[H]C.[2H][2H].c1ccccc1" };

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ch_prepare_opts o = ch_prepare_defaults();
        ch_prepared p;
        pl_error err = { 0 };
        o.conformer = CH_3D_NONE;
        assert_int_equal(ch_worker_prepare(worker, wrong[i], strlen(wrong[i]), "smi", &o, &p, mem, &err), PL_EINPUT);
        assert_non_null(strstr(err.text, "is written in lower case, as aromatic, and is in no ring"));
        assert_int_equal(flat(right[i], true).code, CH_OK);
    }
}

static void charged_drawings_are_neutralised_like_others(void **state)
{
    ch_prepare_opts o = ch_prepare_defaults();
    const char *is;

    (void)state;
    o.conformer = CH_3D_NONE;
    o.neutralise = true;
    is = prepare("C[C]([O-])=[NH2+]", "smi", &o).smiles;
    assert_string_equal(is, flat("CC(N)=O", true).smiles);
    assert_string_equal(prepare("C[N-][N+]#N", "smi", &o).smiles, flat("CN=[N+]=[N-]", true).smiles);
    assert_string_equal(prepare("C[S+2]([O-])([O-])[O-]", "smi", &o).smiles, flat("CS(O)(=O)=O", true).smiles);
}

/* ---- in three dimensions ---- */

static const char *with(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);

    assert_non_null(at);
    return pl_sprintf(mem, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

/* Nitromethane; %s: the bonds to oxygen, and the charges. */
static const char *nitromethane(bool charged)
{
    const char *text = "x\n\n\n  7  6  0  0  0  0  0  0  0  0999 V2000\n"
                       "    0.0000    0.0000    0.0000 C   0  0\n"
                       "    1.4800    0.0000    0.0000 N   0  0\n"
                       "    2.0700    1.0600    0.0000 O   0  0\n"
                       "    2.0700   -1.0600    0.0100 O   0  0\n"
                       "   -0.3600    1.0300    0.0000 H   0  0\n"
                       "   -0.3600   -0.5100    0.8900 H   0  0\n"
                       "   -0.3600   -0.5100   -0.8900 H   0  0\n"
                       "  1  2  1  0\n  2  3  2  0\n  2  4  2  0\n  1  5  1  0\n  1  6  1  0\n  1  7  1  0\nM  END\n";

    if (!charged)
        return text;
    return with(with(text, "  2  4  2  0\n", "  2  4  1  0\n"), "M  END", "M  CHG  2   2   1   4  -1\nM  END");
}

static void a_3d_input_keeps_its_positions(void **state)
{
    ch_prepare_opts o = ch_prepare_defaults();
    ch_prepared drawn, plain;
    int charge = 0;

    (void)state;
    o.conformer = CH_3D_KEEP;
    drawn = prepare(nitromethane(true), "sdf", &o);
    plain = prepare(nitromethane(false), "sdf", &o);
    assert_string_equal(plain.geometry, "input");
    check_same(&plain, &drawn, "nitromethane");
    assert_memory_equal(plain.mol.xyz, drawn.mol.xyz, (size_t)drawn.mol.n_atoms * sizeof *drawn.mol.xyz);
    assert_memory_equal(plain.mol.z, drawn.mol.z, (size_t)drawn.mol.n_atoms);
    assert_int_equal(plain.mol.charge[1], 1);
    for (int i = 2; i < 4; i++)
        charge += plain.mol.charge[i];
    assert_int_equal(charge, -1);
}

/* If two oxygens have positions, the same one gets the charge for both orders in the file. */
static void of_two_oxygens_the_position_chooses(void **state)
{
    const char *a = "    2.0700    1.0600    0.0000 O", *b = "    2.0700   -1.0600    0.0100 O";
    const char *text = nitromethane(false), *other = with(with(with(text, a, "first"), b, a), "first", b);
    ch_prepare_opts o = ch_prepare_defaults();
    ch_prepared p, q;

    (void)state;
    o.conformer = CH_3D_KEEP;
    p = prepare(text, "sdf", &o);
    q = prepare(other, "sdf", &o);
    assert_memory_equal(p.mol.xyz[2], q.mol.xyz[3], sizeof p.mol.xyz[2]);
    assert_int_equal(p.mol.charge[2], q.mol.charge[3]);
    assert_int_equal(p.mol.charge[3], q.mol.charge[2]);
}

/* 1,4-dimethylcyclohexane with a wedge at one methyl group and a wavy bond at the other. */
static const char *half_wavy(pl_arena *to, int first, int second)
{
    return pl_sprintf(to,
                      "\n  test              2D\n\n  8  8  0  0  1  0  0  0  0  0999 V2000\n"
                      "    0.0000    1.0000    0.0000 C   0  0\n    0.8660    0.5000    0.0000 C   0  0\n"
                      "    0.8660   -0.5000    0.0000 C   0  0\n    0.0000   -1.0000    0.0000 C   0  0\n"
                      "   -0.8660   -0.5000    0.0000 C   0  0\n   -0.8660    0.5000    0.0000 C   0  0\n"
                      "    0.0000    2.0000    0.0000 C   0  0\n    0.0000   -2.0000    0.0000 C   0  0\n"
                      "  1  2  1  0\n  2  3  1  0\n  3  4  1  0\n  4  5  1  0\n  5  6  1  0\n  6  1  1  0\n"
                      "  1  7  1  %d\n  4  8  1  %d\nM  END\n",
                      first, second);
}

/* Whatever was read before: Open Babel compared the addresses of their stereo. */
static void a_wavy_bond_at_one_of_two_equal_atoms_is_read_alike(void **state)
{
    static const char *const between[] = { "CCO", "C[C@H](N)C(=O)O", "c1ccccc1", "CC(C)Cc1ccc(cc1)[C@@H](C)C(=O)O" };
    ch_prepare_opts o = ch_prepare_defaults();

    (void)state;
    o.conformer = CH_3D_NONE;
    for (size_t i = 0; i < 40; i++) {
        const bool turned = i % 2 != 0;
        (void)flat(between[i % 4], true);
        const ch_prepared p = prepare(half_wavy(mem, turned ? 4 : 1, turned ? 1 : 4), "sdf", &o);
        assert_string_equal(p.smiles, "CC1CC[C@H](CC1)C");
        assert_string_equal(p.inchikey, "QRMPKOFEUHIBNM-PRLRHMMRSA-N");
    }
}

/* Open Babel takes an unmarked double bond in a ring of eight for cis, wherever it finds stereo anew. */
static void no_stereo_is_invented_where_a_group_changes(void **state)
{
    static const char *const pairs[][2] = {
        { "C1=CCCCCCC1CN(=O)=O", "C1=CCCCCCC1C[N+](=O)[O-]" },
        { "CS(=O)CC1=CCCCCCC1", "C[S+]([O-])CC1=CCCCCCC1" },
        { "C1=CCCC=CCC1", "C1CC=CCCC=C1" },
        { "N#CC1=C(N)CCSSSC1", "N#CC=1CSSSCCC=1N" },
        { "[O-]C(=O)CC1=CCCCCCC1", "OC(=O)CC1=CCCCCCC1" },
        { "NC(C(=O)O)C1=CCCCCCC1", "[NH3+]C(C(=O)[O-])C1=CCCCCCC1" },
        { "OP(=O)(OC)OCC", "[H]OP(=O)(OC)OCC" },
        { "OS(=O)CC", "[H]OS(=O)CC" },
        { "SP(=O)(OC)OCC", "[H]SP(=O)(OC)OCC" },
    };
    static const int open[] = { 2, 2, 2, 1, 1, 2, 0, 0, 0 };

    (void)state;
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++)
        for (int form = 0; form < 2; form++) {
            ch_prepare_opts o = ch_prepare_defaults();
            o.conformer = CH_3D_NONE;
            o.neutralise = form == 0;
            o.ph = form == 0 ? -1 : 7.4;
            const ch_prepared a = prepare(pairs[k][0], "smi", &o), b = prepare(pairs[k][1], "smi", &o);
            assert_string_equal(a.inchikey, b.inchikey);
            assert_memory_equal(a.inchikey + 14, "-UHFFFAOYSA-", 12);
            assert_int_equal(a.undefined_stereo, open[k]);
            assert_int_equal(b.undefined_stereo, open[k]);
        }
}

/* What was cis or trans is a single bond now; its ends have the neighbours that they had. */
static void a_bond_that_becomes_single_loses_its_stereo(void **state)
{
    static const char *const drawn[][2] = { { "C/C([O-])=C/C=[N+](C)C", "CC(=O)C=CN(C)C" },
                                            { "C/C([O-])=C\\C=[NH+]\\C", "CC(=O)C=CNC" },
                                            { "C/C([O-])=C/[N+]#N", "CC(=O)C=[N+]=[N-]" },
                                            { "C[P+](C)(C)/C(C)=C(C)/[O-]", "CC(=O)C(C)=P(C)(C)C" } };

    (void)state;
    for (size_t i = 0; i < sizeof drawn / sizeof *drawn; i++)
        assert_string_equal(flat(drawn[i][0], true).smiles, flat(drawn[i][1], true).smiles);
}

/* The smallest rings that are found do not have all bonds of a cage. */
static void no_bond_of_a_ring_is_rotatable(void **state)
{
    static const char *const cage[] = { "O=C1OC(=O)C2C3C=CC(C12)C1C2C=CC2C31", "C12C3C4C(C3C(C3C2C(OC3=O)=O)C=C1)C=C4" };

    (void)state;
    for (int k = 0; k < 2; k++)
        assert_true(flat(cage[k], true).descriptor[CH_D_rotb] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_group_has_one_drawing),
        cmocka_unit_test(the_standard_drawing_is_the_first),
        cmocka_unit_test(drawn_twice_is_drawn_once),
        cmocka_unit_test(without_the_setting_a_drawing_stays),
        cmocka_unit_test(look_alikes_stay),
        cmocka_unit_test(a_chosen_oxygen_does_not_depend_on_the_order),
        cmocka_unit_test(counter_ions_are_known_in_any_drawing),
        cmocka_unit_test(an_organic_part_is_kept_before_a_larger_one_without_carbon),
        cmocka_unit_test(lower_case_outside_of_a_ring_is_refused),
        cmocka_unit_test(charged_drawings_are_neutralised_like_others),
        cmocka_unit_test(a_3d_input_keeps_its_positions),
        cmocka_unit_test(of_two_oxygens_the_position_chooses),
        cmocka_unit_test(a_wavy_bond_at_one_of_two_equal_atoms_is_read_alike),
        cmocka_unit_test(no_stereo_is_invented_where_a_group_changes),
        cmocka_unit_test(a_bond_that_becomes_single_loses_its_stereo),
        cmocka_unit_test(no_bond_of_a_ring_is_rotatable),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
