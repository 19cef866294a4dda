/* SPDX-License-Identifier: Apache-2.0 */
/* What a pattern needs is never more than what one of its matches has. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "stages/expression/needs.h"

/* "C6 N1 S1", in the order of the elements' numbers; "": nothing is known. */
static const char *needs(const char *smarts)
{
    static const char *const symbol[ST_NEEDS] = { "B", "C", "N", "O", "F", "P", "S", "Cl", "Br", "I" };
    static char out[200];
    const st_needs is = st_needs_of(smarts);
    size_t at = 0;

    out[0] = '\0';
    for (int k = 0; k < ST_NEEDS; k++)
        if (is.n[k] > 0)
            at += (size_t)snprintf(out + at, sizeof out - at, "%s%s%d", at > 0 ? " " : "", symbol[k], (int)is.n[k]);
    return out;
}

static void plain_atoms_are_counted(void **state)
{
    (void)state;
    assert_string_equal(needs("[NX3;H2]c1ccccc1S(=O)"), "C6 N1 O1 S1");
    assert_string_equal(needs("ClCBr"), "C1 Cl1 Br1");
    assert_string_equal(needs("[#7]~[#6;R][13C]B[Br-]IP"), "B1 C2 N1 P1 Br1 I1");
    assert_string_equal(needs("[nH]1cc%10oc1F"), "C3 N1 O1 F1");
    assert_string_equal(needs("C-,=N"), "C1 N1");
    assert_string_equal(needs("A*a[*]O"), "O1");
    assert_string_equal(needs("[N:1][C@@H](C)[OD1]"), "C2 N1 O1");
}

static void what_is_not_plain_asks_for_nothing(void **state)
{
    (void)state;
    assert_string_equal(needs("[N,O]C"), "C1");
    assert_string_equal(needs("[!C]O"), "O1");
    assert_string_equal(needs("[#1][#6,#7][H][2H][D2][X3][R][+]"), "");
    assert_string_equal(needs("[Si](C)[Sc][se][Na][In][Cr5]"), "C1");
    assert_string_equal(needs("[$(CC)]N"), "");
    assert_string_equal(needs("C.C"), "");
    assert_string_equal(needs("SiC"), "");
    assert_string_equal(needs("Asc"), "");
    assert_string_equal(needs("c1ccas1"), "");
    assert_string_equal(needs(""), "");
}

static bool met(const char *smarts, const char *smiles)
{
    const st_needs is = st_needs_of(smarts);
    return st_needs_met(&is, smiles);
}

static void molecules_with_fewer_atoms_are_passed_over(void **state)
{
    (void)state;
    assert_true(met("CCl", "CCl") && met("CCl", "ClC") && met("Clc", "c1ccccc1[Cl]"));
    assert_false(met("CCl", "CC"));
    assert_false(met("CCl", "Cl")); /* no carbon */
    assert_false(met("NN", "CN"));
    assert_true(met("N[nH]", "[NH3+]c1c[nH]cc1"));
    assert_true(met("S", "[SH-]") && met("s", "S") && met("[#16]", "c1ccsc1"));
    assert_false(met("Br", "B(O)O"));
    assert_false(met("B", "BrC"));
    assert_true(met("[R2]", "") && met("[$(N)]", "C"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_atoms_are_counted),
        cmocka_unit_test(what_is_not_plain_asks_for_nothing),
        cmocka_unit_test(molecules_with_fewer_atoms_are_passed_over),
    };
    return cmocka_run_group_tests_name("needs", tests, NULL, NULL);
}
