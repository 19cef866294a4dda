/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "chem/molecule/sdf_write.h"

static pl_arena *mem;

static int setup(void **unused)
{
    (void)unused;
    mem = pl_arena_new(1 << 16);
    return mem == NULL;
}

static int teardown(void **unused)
{
    (void)unused;
    pl_arena_free(mem);
    return 0;
}

/* A chain of carbons, 1 Angstrom apart. */
static ch_mol chain(int n)
{
    ch_mol mol;
    assert_int_equal(ch_mol_alloc(&mol, n, n - 1, mem, NULL), PL_OK);
    for (int i = 0; i < n; i++) {
        mol.z[i] = 6;
        mol.xyz[i][0] = (float)i;
    }
    for (int i = 0; i + 1 < n; i++) {
        mol.bond[i][0] = i;
        mol.bond[i][1] = i + 1;
        mol.order[i] = 1;
    }
    return mol;
}

static void a_small_molecule_is_exactly_as_v2000_prescribes(void **unused)
{
    const ch_sdf_field fields[] = { { "score", "1.5" }, { "a<b>", "two\nlines" }, { "none", NULL }, { "empty", "" } };
    ch_mol mol = chain(2);
    pl_text out = { 0 };

    (void)unused;
    mol.z[1] = 17;
    mol.charge[1] = -1;
    mol.order[0] = CH_AROMATIC_DOUBLE;
    ch_sdf_write(&out, &mol, "name\r\nnext", fields, 4);
    assert_string_equal(pl_text_str(&out), "name  next\n  molsieve          3D\n\n  2  1  0  0  0  0  0  0  0  0999 V2000\n"
                                           "    0.0000    0.0000    0.0000 C   0  0  0  0  0  2  0  0  0  0  0  0\n"
                                           "    1.0000    0.0000    0.0000 Cl  0  0  0  0  0  2  0  0  0  0  0  0\n"
                                           "  1  2  2  0  0  0  0\nM  CHG  1   2  -1\nM  END\n"
                                           ">  <score>\n1.5\n\n>  <a_b_>\ntwo lines\n\n>  <empty>\n\n$$$$\n");
    pl_text_free(&out);
}

/* A title like the record separator must not end the record. */
static void a_delimiter_inside_a_text_does_not_end_the_record(void **unused)
{
    const ch_sdf_field fields[] = { { "title", "$$$$ b" } };
    ch_mol mol = chain(2);
    pl_text out = { 0 };

    (void)unused;
    ch_sdf_write(&out, &mol, "$$$$", fields, 1);
    assert_ptr_equal(strstr(pl_text_str(&out), " $$$$\n"), pl_text_str(&out));
    assert_non_null(strstr(pl_text_str(&out), ">  <title>\n $$$$ b\n\n$$$$\n"));
    pl_text_free(&out);
}

/* A line of 80 bytes at most, as the format says; a character of several bytes is written whole or not at all. */
static void a_long_title_is_cut_between_characters(void **unused)
{
    char title[120];
    ch_mol mol = chain(2);
    pl_text out = { 0 };

    (void)unused;
    for (size_t at = 76; at <= 80; at++) { /* where a character of 3 bytes begins */
        const size_t whole = at + 3 <= 80 || at == 80 ? 80 : at;
        memset(title, 'a', sizeof title - 1);
        title[sizeof title - 1] = '\0';
        memcpy(title + at, "\xe2\x82\xac", 3);
        ch_sdf_write(&out, &mol, title, NULL, 0);
        assert_int_equal(strcspn(pl_text_str(&out), "\n"), whole);
        assert_memory_equal(pl_text_str(&out), title, whole);
        pl_text_free(&out);
    }
}

static void charges_stand_eight_to_a_line(void **unused)
{
    ch_mol mol = chain(12);
    pl_text out = { 0 };

    (void)unused;
    for (int i = 0; i < 10; i++)
        mol.charge[i] = 1;
    ch_sdf_write(&out, &mol, NULL, NULL, 0);
    assert_non_null(strstr(pl_text_str(&out), "M  CHG  8   1   1   2   1"));
    assert_non_null(strstr(pl_text_str(&out), "   8   1\nM  CHG  2   9   1  10   1\nM  END\n"));
    pl_text_free(&out);
}

/* Deuterated methyl: a reader expects four bonds of a carbon, not three. */
static ch_mol methyl(int n)
{
    ch_mol mol = chain(n);
    for (int i = 0; i + 1 < n; i++) {
        mol.bond[i][0] = 0;
        mol.z[i + 1] = 1;
    }
    mol.isotope = pl_arena_get(mem, (size_t)n, sizeof *mol.isotope);
    mol.isotope[0] = 13;
    mol.isotope[2] = 2;
    return mol;
}

static void isotopes_and_odd_valences_are_said(void **unused)
{
    ch_mol three = methyl(4), four = methyl(5), ion = chain(1);
    pl_text out = { 0 };

    (void)unused;
    ch_sdf_write(&out, &three, NULL, NULL, 0);
    assert_non_null(strstr(pl_text_str(&out), " C   0  0  0  0  0  3  0  0"));
    assert_non_null(strstr(pl_text_str(&out), "M  ISO  2   1  13   3   2\nM  END\n"));
    pl_text_reset(&out);
    ch_sdf_write(&out, &four, NULL, NULL, 0);
    assert_non_null(strstr(pl_text_str(&out), " C   0  0  0  0  0  0  0  0"));
    pl_text_reset(&out);
    ion.z[0] = 26;
    ion.charge[0] = 2;
    ch_sdf_write(&out, &ion, NULL, NULL, 0);
    assert_non_null(strstr(pl_text_str(&out), " Fe  0  0  0  0  0 15  0  0"));
    pl_text_reset(&out);
    three.xyz[0][0] = ion.xyz[0][0] = 1e6f; /* for V3000 */
    ch_sdf_write(&out, &three, NULL, NULL, 0);
    ch_sdf_write(&out, &ion, NULL, NULL, 0);
    assert_non_null(strstr(pl_text_str(&out), " 0 MASS=13 VAL=3\n"));
    assert_non_null(strstr(pl_text_str(&out), " 0 MASS=2\n"));
    assert_non_null(strstr(pl_text_str(&out), " 0 CHG=2 VAL=-1\n"));
    pl_text_free(&out);
}

static void molecules_beyond_v2000_limits_are_written_as_v3000(void **unused)
{
    ch_mol big = chain(1000), far = chain(2);
    pl_text out = { 0 };

    (void)unused;
    big.charge[999] = 2;
    ch_sdf_write(&out, &big, "big", NULL, 0);
    assert_non_null(strstr(pl_text_str(&out), "V3000\nM  V30 BEGIN CTAB\nM  V30 COUNTS 1000 999 0 0 0\n"));
    assert_non_null(strstr(pl_text_str(&out), "M  V30 1000 C 999.0000 0.0000 0.0000 0 CHG=2 VAL=1\nM  V30 END ATOM\n"));
    assert_non_null(strstr(pl_text_str(&out), "M  V30 999 1 999 1000\nM  V30 END BOND\nM  V30 END CTAB\nM  END\n$$$$\n"));
    for (int n = 1; n >= 0; n--) {
        pl_text_reset(&out);
        big.n_bonds = n;
        ch_sdf_write(&out, &big, "big", NULL, 0);
        assert_non_null(
            strstr(pl_text_str(&out), n ? "END ATOM\nM  V30 BEGIN BOND\nM  V30 1 1 1 2\nM  V30 END BOND\nM  V30 END CTAB\nM  END\n"
                                        : "END ATOM\nM  V30 END CTAB\nM  END\n"));
    }
    pl_text_reset(&out);
    far.xyz[1][2] = -123456.0f; /* eleven columns */
    ch_sdf_write(&out, &far, "far", NULL, 0);
    assert_non_null(strstr(pl_text_str(&out), "V3000"));
    pl_text_free(&out);
}

static void without_positions_it_is_flat(void **unused)
{
    ch_mol mol = chain(1), none = { 0 };
    pl_text out = { 0 };

    (void)unused;
    mol.xyz = NULL;
    ch_sdf_write(&out, &mol, NULL, NULL, 0);
    assert_non_null(strstr(pl_text_str(&out), "2D\n\n  1  0"));
    assert_non_null(strstr(pl_text_str(&out), "\n    0.0000    0.0000    0.0000 C "));
    pl_text_reset(&out);
    ch_sdf_write(&out, &none, "none", NULL, 0);
    assert_non_null(strstr(pl_text_str(&out), "  0  0  0  0"));
    pl_text_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_small_molecule_is_exactly_as_v2000_prescribes, setup, teardown),
        cmocka_unit_test_setup_teardown(a_delimiter_inside_a_text_does_not_end_the_record, setup, teardown),
        cmocka_unit_test_setup_teardown(a_long_title_is_cut_between_characters, setup, teardown),
        cmocka_unit_test_setup_teardown(charges_stand_eight_to_a_line, setup, teardown),
        cmocka_unit_test_setup_teardown(isotopes_and_odd_valences_are_said, setup, teardown),
        cmocka_unit_test_setup_teardown(molecules_beyond_v2000_limits_are_written_as_v3000, setup, teardown),
        cmocka_unit_test_setup_teardown(without_positions_it_is_flat, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
