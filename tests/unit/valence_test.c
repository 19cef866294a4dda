/* SPDX-License-Identifier: Apache-2.0 */
/* Free valences, counted by hand, of atoms and of SMILES as the chemistry worker writes them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "chem/molecule/valence.h"

static void atoms_have_the_free_valences_of_their_shell(void **state)
{
    static const struct {
        int z, charge, bonds, want;
    } cases[] = { { 6, 0, 4, 0 },  { 6, 0, 3, 1 },  { 6, 0, 2, 2 },  { 6, 0, 0, 4 },  { 6, 0, 5, -1 }, { 6, 1, 3, 0 },
                  { 6, -1, 3, 0 }, { 7, 1, 4, 0 },  { 7, 0, 5, 0 },  { 7, 0, 4, 1 },  { 8, 0, 1, 1 },  { 8, 0, 3, -1 },
                  { 8, -1, 1, 0 }, { 16, 0, 6, 0 }, { 16, 0, 3, 1 }, { 15, 0, 5, 0 }, { 17, 0, 7, 0 }, { 17, 0, 0, 1 },
                  { 1, 0, 0, 1 },  { 1, 1, 0, 0 },  { 26, 2, 4, 0 }, { 53, -1, 0, 0 } };

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        assert_int_equal(ch_free_valences(cases[k].z, cases[k].charge, cases[k].bonds), cases[k].want);
}

static void a_smiles_has_those_of_its_atoms(void **state)
{
    static const struct {
        const char *smiles;
        int want;
    } cases[] = {
        { "[O][O]", 2 },
        { "O=O", 0 },
        { "CB(O)OB(Br)Cl", 0 },
        { "[CH2][CH2]", 2 },
        { "C=C", 0 },
        { "[CH2]C=C[CH2]", 2 },
        { "[CH]1[CH][CH][CH][CH][CH]1", 6 },
        { "[C]1=CC=CC=C1", 1 },
        { "c1cc[c]cc1", 1 },
        { "c1ccc[nH+]c1", 0 },
        { "C[n+]1ccccc1", 0 },
        { "c1ccc[o+]c1", 0 },
        { "[O-][n+]1ccccc1-c1ccc[nH]1", 0 },
        { "[C]=O", 2 },
        { "[C-]#[O+]", 0 },
        { "C[S]([O])C", 2 },
        { "[O-][S+](C)C", 0 },
        { "O[Cl](=O)(=O)=O", 0 },
        { "[O][Cl](=O)=O", 1 },
        { "CN(C)[O]", 1 },
        { "C[N+](C)[O-]", 1 },
        { "[H]", 1 },
        { "[2H]C([2H])[CH]", 2 },
        { "[H+].[Na+].[Cl-].[Fe+2].[Fe++]", 0 },
        { "[Br].[I]", 2 },
        { "C[C@H](N)[C@@]1(F)CC%11C1C=%11", 0 },
        { "Cl[Pt@SP1](Cl)([NH3])[NH3]", 2 },
        { "[13CH3:2][CH2]/C=C/[CH2-]", 0 },
        { "[CH2]C[CH]=[CH][C](C)C", 2 },
        { "[C]1CC1[C]=2CC2", 2 },
        { "[se]1cccc1", 0 },
        { "", 0 },
        { "[Q]", -1 },
        { "C[C", -1 },
        { "C)", -1 },
        { "1CC1", -1 },
        { "C?", -1 },
        { "CXC", -1 },
        { "C%1", -1 },
    };

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        int32_t got = -2;
        assert_int_equal(ch_smiles_free_valences(&got, cases[k].smiles, NULL), PL_OK);
        if (got != cases[k].want)
            fail_msg("%s has %d, not %d", cases[k].smiles, (int)got, cases[k].want);
    }
}

static void marks_of_cumulated_bonds_are_seen(void **state)
{
    static const struct {
        const char *smiles;
        bool want;
    } cases[] = {
        { "CC=[C@]=CC", true },
        { "CC=[C@@]=CC", true },
        { "[C@](=CC)=CC", true },
        { "C1=[13C@]=CCCCCCC1", true },
        { "CC=C=CC", false },
        { "C[C@H](F)C=C=C", false },
        { "C/C=C=C=C/C", true },
        { "CC=C=C=CC", false },
        { "C/C=C/C=C=C", false },
        { "C/C=C/C#CC#C", false },
        { "C/C=C/C", false },
        { "C=1=C=C=C/CCCCC\\1", true },
        { "O=[C@]=O", true },
        { "C[P@](CC)F", false },
        { "", false },
        { "CC=[C@", false },
    };

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        bool got = !cases[k].want;
        assert_int_equal(ch_smiles_marks_axis(&got, cases[k].smiles, NULL), PL_OK);
        if (got != cases[k].want)
            fail_msg("%s: %d", cases[k].smiles, got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(atoms_have_the_free_valences_of_their_shell),
        cmocka_unit_test(a_smiles_has_those_of_its_atoms),
        cmocka_unit_test(marks_of_cumulated_bonds_are_seen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
