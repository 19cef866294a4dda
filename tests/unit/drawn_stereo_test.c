/* SPDX-License-Identifier: Apache-2.0 */
/* Stereo of SMILES and of drawings where Open Babel or InChI say something else than the record. */
#include <stdio.h>

#include "tests/unit/prepared.h"

/* The library's writer of InChI ended with a segmentation fault. */
static void a_mark_that_lacks_neighbours_says_nothing(void **state)
{
    static const char *const cases[][2] = { { "C[S@@]=O", "C[S]=O" },         { "C[N@]=C", "CN=C" }, { "[C@@H3]C", "CC" },
                                            { "CC(=[S@@]=O)C", "CC(=S=O)C" }, { "C[C@H2]F", "CCF" }, { "O=[S@@]=O", "O=S=O" },
                                            { "C[S@](=O)CC", "CC[S@@](=O)C" } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(prepare(cases[i][0], "smi", NULL).smiles, cases[i][1]);
}

/* Levorphanol as RDKit draws it. InChI calls a centre of this drawing ambiguous, which has a wedge. */
static void a_drawing_has_the_key_of_its_smiles(void **state)
{
    static const char drawn[] = "\n"
                                "     RDKit          2D\n"
                                "\n"
                                " 19 22  0  0  0  0  0  0  0  0999 V2000\n"
                                "   -4.4156    1.0071    0.0000 C   0  0  0  0  0  0  0  0  0  0  0  0\n"
                                "   -3.1002    0.2863    0.0000 N   0  0  0  0  0  0  0  0  0  0  0  0\n"
                                "   -3.0667   -1.2134    0.0000 C   0  0  0  0  0  0  0  0  0  0  0  0\n"
                                "   -1.7513   -1.9342    0.0000 C   0  0  0  0  0  0  0  0  0  0  0  0\n"
                                "   -0.4693   -1.1555    0.0000 C   0  0  0  0  0  0  0  0  0  0  0  0\n"
                                "   -0.4182   -0.6972    0.0000 C   0  0  0  0  0  0  0  0  0  0  0  0\n"
                                "   -0.3796   -0.9609    0.0000 C   0  0  0  0  0  0  0  0  0  0  0  0\n"
                                "   -0.4045    0.1538    0.0000 C   0  0  0  0  0  0  0  0  0  0  0  0\n"
                                "   -0.4312   -0.1114    0.0000 C   0  0  0  0  0  0  0  0  0  0  0  0\n"
                                "   -0.5027    0.3441    0.0000 C   0  0  0  0  0  0  0  0  0  0  0  0\n"
                                "   -1.8182    1.0650    0.0000 C   0  0  0  0  0  0  0  0  0  0  0  0\n"
                                "   -0.5361    1.8438    0.0000 C   0  0  0  0  0  0  0  0  0  0  0  0\n"
                                "    0.7793    1.1229    0.0000 C   0  0  0  0  0  0  0  0  0  0  0  0\n"
                                "    2.0613    1.9017    0.0000 C   0  0  0  0  0  0  0  0  0  0  0  0\n"
                                "    3.3767    1.1808    0.0000 C   0  0  0  0  0  0  0  0  0  0  0  0\n"
                                "    3.4101   -0.3188    0.0000 C   0  0  0  0  0  0  0  0  0  0  0  0\n"
                                "    4.7255   -1.0397    0.0000 O   0  0  0  0  0  0  0  0  0  0  0  0\n"
                                "    2.1281   -1.0976    0.0000 C   0  0  0  0  0  0  0  0  0  0  0  0\n"
                                "    0.8127   -0.3767    0.0000 C   0  0  0  0  0  0  0  0  0  0  0  0\n"
                                "  1  2  1  0\n"
                                "  2  3  1  0\n"
                                "  3  4  1  0\n"
                                "  5  4  1  1\n"
                                "  5  6  1  0\n"
                                "  6  7  1  0\n"
                                "  7  8  1  0\n"
                                "  8  9  1  0\n"
                                " 10  9  1  6\n"
                                " 10 11  1  0\n"
                                " 11 12  1  6\n"
                                " 12 13  1  0\n"
                                " 13 14  1  0\n"
                                " 14 15  2  0\n"
                                " 15 16  1  0\n"
                                " 16 17  1  0\n"
                                " 16 18  2  0\n"
                                " 18 19  1  0\n"
                                " 11  2  1  0\n"
                                " 10  5  1  0\n"
                                " 19  5  1  0\n"
                                " 19 13  2  0\n"
                                "M  END\n";
    const ch_prepared p = prepare(drawn, "mol", NULL);

    (void)state;
    assert_string_equal(p.inchikey, "JAQUASYNZVUNQP-USXIJHARSA-N");
    assert_int_equal(p.lost_stereo, 0);
    assert_string_equal(prepare(p.smiles, "smi", NULL).inchikey, p.inchikey);
}

/* The two bonds beside the wedge are in one line but for a decimal. RDKit reads all of these so, as it does a corner of 170 degrees; one of
 * 190 is the other form. */
static void a_wedge_in_a_t_is_read_whatever_the_last_decimal(void **state)
{
    static const struct {
        double y;
        const char *smiles;
    } cases[] = { { 0.0001, "F[C@H](Br)Cl" },
                  { 0, "F[C@H](Br)Cl" },
                  { -0.0001, "F[C@H](Br)Cl" },
                  { -0.13, "F[C@H](Br)Cl" },
                  { 0.13, "F[C@@H](Br)Cl" } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[600];
        (void)snprintf(text, sizeof text,
                       "\n  x                 2D\n\n  4  3  0  0  0  0  0  0  0  0999 V2000\n"
                       "    0.0000    0.0000    0.0000 C   0  0\n    1.5000%10.4f    0.0000 F   0  0\n"
                       "   -1.5000%10.4f    0.0000 Cl  0  0\n    0.0000   -1.5000    0.0000 Br  0  0\n"
                       "  1  2  1  0\n  1  3  1  0\n  1  4  1  1\nM  END\n",
                       cases[i].y, cases[i].y);
        assert_string_equal(prepare(text, "mol", NULL).smiles, cases[i].smiles);
    }
}

/* Readers see it better there. The chain ends in silicon, atom 19; atom 13 is in the ring. */
static void a_wedge_points_along_a_chain_rather_than_to_a_ring(void **state)
{
    static const char smiles[] = "OC[C@@H]1[C@@H](O)[C@@H]([C@@H]2[N@]1CC[C@H]2[C@H](c1ccccc1)[Si](C)(C)C)O";
    pl_error err = { 0 };
    ch_drawn d;

    (void)state;
    if (ch_worker_draw(worker, smiles, &d, mem, &err) != PL_OK)
        fail_msg("%s", err.text);
    assert_non_null(strstr(d.molfile, "\n 12 13  1  0"));
    assert_non_null(strstr(d.molfile, "\n 12 19  1  6"));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_mark_that_lacks_neighbours_says_nothing),
                                        cmocka_unit_test(a_drawing_has_the_key_of_its_smiles),
                                        cmocka_unit_test(a_wedge_in_a_t_is_read_whatever_the_last_decimal),
                                        cmocka_unit_test(a_wedge_points_along_a_chain_rather_than_to_a_ring) };

    return cmocka_run_group_tests(tests, setup, teardown);
}
