/* SPDX-License-Identifier: Apache-2.0 */
/* Positions of the input, and the hydrogens that are added to them. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/prepared.h"

enum { COPIES = 12 };

#define MOL_HEAD "\n  test              3D\n\n"

/* Without hydrogens: nothing but chance says where those of the first four point to. */
static const struct { const char *format, *text; } bare[] = {
    { "sdf", "methanol" MOL_HEAD "  2  1  0  0  0  0  0  0  0  0999 V2000\n"
             "    0.0000    0.0000    0.1000 C   0  0\n    1.0000    0.5000    0.9000 O   0  0\n  1  2  1  0\nM  END\n" },
    { "mol2", "@<TRIPOS>MOLECULE\nethane\n 2 1 0 0 0\nSMALL\nNO_CHARGES\n\n@<TRIPOS>ATOM\n"
              " 1 C1 0.0 0.0 0.1 C.3 1 A 0.0\n 2 C2 0.9 0.7 1.1 C.3 1 A 0.0\n@<TRIPOS>BOND\n 1 1 2 1\n" },
    { "sdf", "propyne" MOL_HEAD "  3  2  0  0  0  0  0  0  0  0999 V2000\n    0.0000    0.0000    0.0000 C   0  0\n"
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

static void assert_same_positions(const ch_prepared *a, const ch_prepared *b, const char *what)
{
    assert_int_equal(a->mol.n_atoms, b->mol.n_atoms);
    if (memcmp(a->mol.xyz, b->mol.xyz, (size_t)a->mol.n_atoms * sizeof *a->mol.xyz) != 0)
        fail_msg("%.20s: other positions", what);
}

/* Whatever was prepared before: each other record, a structure that was built, a drawing, nothing. */
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

/* Alerts that name hydrogens add them to a copy; titles say nothing of a molecule. */
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

/* Cyanide, hydroxide: the proton of the neutral form has no direction but by chance. */
static void protons_of_neutral_forms_do_not_depend_on_earlier_records(void **state)
{
    static const char text[] = "hypochlorite" MOL_HEAD "  2  1  0  0  0  0  0  0  0  0999 V2000\n    0.0000    0.0000    0.0000 O   0  5\n"
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(added_hydrogens_do_not_depend_on_earlier_records),
        cmocka_unit_test(added_hydrogens_do_not_depend_on_alerts_or_title),
        cmocka_unit_test(protons_of_neutral_forms_do_not_depend_on_earlier_records),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
