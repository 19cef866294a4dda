/* SPDX-License-Identifier: Apache-2.0 */
/* What looks like a SMILES and is none, which Open Babel reads as another molecule. */
#include "tests/unit/prepared.h"

/* "C1C1" was ethane: the closure of a ring between atoms that have a bond is no bond. */
static void a_ring_closure_is_a_bond_of_its_own(void **state)
{
#define TWICE "a ring closure of a SMILES joins two atoms that have a bond already"
    static const struct {
        const char *text, *smiles, *says;
    } cases[] = {
        { "C1C1", NULL, TWICE },
        { "C12CC12", NULL, TWICE },
        { "C%12%(9)CC%12%(9)", NULL, TWICE },
        { "O.C1C1", NULL, TWICE },
        { "[13CH2]1[CH2]1", NULL, TWICE },
        { "C1CC1", "C1CC1", NULL },
        { "C1.C1", "CC", NULL },
        { "C%10.C%10C", "CCC", NULL },
        { "C%(100)CC%(100)", "C1CC1", NULL },
        { "C%12CC%12", "C1CC1", NULL },
        { "C1CC1.C1CC1", "C1CC1", NULL }, /* one part is kept */
        { "[CH2]1C[13CH2]1", "[13CH2]1CC1", NULL },
        { "[H]C([H])([H])[2H]", "C[2H]", NULL },
        { "C12C3C4C1C5C2C3C45", "C12C3C4C2C2C1C3C42", NULL },
        { "[Na+].[Cl-]", "[Cl-]", NULL },
        { "C", "C", NULL },
    };

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        assert_reads_as(cases[k].text, "smi", cases[k].smiles, cases[k].says);
}

/* Open Babel leaves out what it does not expect: of "C(=/O)N" the double bond, of "c(.O)c" the dot. */
static void what_is_no_smiles_is_refused(void **state)
{
#define BOND ": after a bond comes an atom or the number of a ring"
#define BRANCH ": after '(' comes a bond or an atom"
#define BEGINS ": a molecule begins with an atom"
#define COLON ": it is a bond between aromatic atoms, in lower case"
#define ORDER ": an atom in brackets has isotope, element, @, H, charge and number, in this order"
    static const struct {
        const char *text, *smiles, *says;
    } cases[] = {
        { "CC(=/O)N", NULL, "'/' at character 5 of a SMILES" BOND },
        { "CC(==O)N", NULL, "'=' at character 5 of a SMILES" BOND },
        { "CC=(O)N", NULL, "'(' at character 4 of a SMILES" BOND },
        { "CC=.O", NULL, "'.' at character 4 of a SMILES" BOND },
        { "C((C)C)C", NULL, "'(' at character 3 of a SMILES" BRANCH },
        { "C(1)CC1", NULL, "'1' at character 3 of a SMILES" BRANCH },
        { "C(%10)CC%10", NULL, "'%10' at character 3 of a SMILES" BRANCH },
        { "C(.O)C", NULL, "'.' at character 3 of a SMILES" BRANCH },
        { ".CO", NULL, "'.' at character 1 of a SMILES" BEGINS },
        { "=CO", NULL, "'=' at character 1 of a SMILES" BEGINS },
        { "(C)CO", NULL, "'(' at character 1 of a SMILES" BEGINS },
        { "C..O", NULL, "'.' at character 3 of a SMILES" BEGINS },
        { "C(C.)O", NULL, "')' at character 5 of a SMILES" BEGINS },
        { "CO.", NULL, "a SMILES that ends with '.'" },
        { "CC(C)C:O", NULL, "':' at character 7 of a SMILES" COLON },
        { "c1ccccc1(:O)", NULL, "':' at character 10 of a SMILES" COLON },
        { "C1:C:C:C:C:C:1", NULL, "':' at character 3 of a SMILES" COLON },
        { "C[O-.]", NULL, "'[O-.]' at character 2 of a SMILES" ORDER },
        { "C[H2N]", NULL, "'[H2N]' at character 2 of a SMILES" ORDER },
        { "Cl[Pt@SP1](Cl)(F)F", NULL, "'[Pt@SP1]' at character 3 of a SMILES: square-planar stereo, which no InChIKey has" },
        { "Cl[Pt](Cl)(F)F", "F[Pt](Cl)(Cl)F", NULL },
        { "C&1CC&1", NULL, "'&' at character 2 of a SMILES: no atom that is written without brackets" },
        { "Cc=1ccccc1", NULL, ": with these aromatic bonds it is a carbon with 3 bonds" },
        { "C1CCCCl1C", NULL, "'Cl' at character 6 of a SMILES: a halogen with 3 bonds" },
        { "c1:c:c:c:c:c:1", "c1ccccc1", NULL },
        { "[cH]1:c:c(:c:c:[cH]:1)O", "Oc1ccccc1", NULL },
        { "C(C)1CC1", "CC1CC1", NULL },
        { "C(C1)C1", "C1CC1", NULL },
        { "C=1/CCC1", "C1CC=C1", NULL },
        { "[13CH3:7][O-:2].[Na+]", "[O-][13CH3]", NULL },
        { "O=[I](=O)c1ccccc1", "O=[I](=O)c1ccccc1", NULL },
        { "Cl(=O)(=O)c1ccccc1", "O=[Cl](=O)c1ccccc1", NULL },
        { "[Cu++]", "[Cu+2]", NULL },
    };

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        assert_reads_as(cases[k].text, "smi", cases[k].smiles, cases[k].says);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_ring_closure_is_a_bond_of_its_own),
                                        cmocka_unit_test(what_is_no_smiles_is_refused) };

    return cmocka_run_group_tests_name("syntax of SMILES", tests, setup, teardown);
}
