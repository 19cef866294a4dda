/* SPDX-License-Identifier: Apache-2.0 */
/* MMFF94 against Halgren's validation suite; gradients against differences; other drawings of the same molecules. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mmff_suite.h"
#include "pipeline/base/rng.h"

typedef struct world {
    pl_arena *mem, *scratch;
    suite suite;
    ch_mmff mmff;
} world;

static world w;

static int setup(void **state)
{
    pl_error err = { 0 };

    (void)state;
    w.mem = pl_arena_new(1 << 20);
    w.scratch = pl_arena_new(1 << 20);
    if (w.mem == NULL || w.scratch == NULL || suite_read(&w.suite, MOLSIEVE_TESTS "/data/mmff94", w.mem, &err) != PL_OK ||
        ch_mmff_read(&w.mmff, suite_tables(), w.mem, &err) != PL_OK) {
        (void)fprintf(stderr, "%s %s\n", err.where, err.text);
        return -1;
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    pl_arena_free(w.mem);
    pl_arena_free(w.scratch);
    return 0;
}

static ch_terms terms_of(const ch_mol *mol, const char *name)
{
    const ch_mmff_options options = { 0 };
    pl_error err = { 0 };
    ch_terms terms;

    if (ch_terms_make(&terms, mol, &w.mmff, &options, w.scratch, &err) != PL_OK)
        fail_msg("%s: %s", name, err.text);
    return terms;
}

/* ---- the suite ---- */

/* The standard deviation of a class's energy when each coordinate is off by up to half of its fourth decimal, which is evenly spread. */
static double rounding(const ch_terms *terms, int class, const suite_molecule *m)
{
    const ch_terms only = suite_only(terms, class, w.scratch);
    double sums[CH_N_TERM_CLASSES], square = 0;
    double(*gradient)[3] = pl_arena_get(w.scratch, (size_t)m->mol.n_atoms, sizeof *gradient);

    ch_energy(sums, gradient, &only, (const double(*)[3])m->xyz);
    for (int32_t i = 0; i < 3 * m->mol.n_atoms; i++)
        square += gradient[i / 3][i % 3] * gradient[i / 3][i % 3];
    return 1e-4 / sqrt(12.0) * sqrt(square);
}

/* 0.001 kcal/mol, of large energies a ten-thousandth; more only by what the rounding of the coordinates explains, and by the
 * rounding of the printed energy. */
static void every_class_of_every_molecule_of_the_suite_agrees(void **state)
{
    int strict[CH_N_TERM_CLASSES] = { 0 };
    double max = 0;

    (void)state;
    assert_int_equal(w.suite.n, 601);
    for (int k = 0; k < w.suite.n; k++) {
        const suite_molecule *m = &w.suite.molecules[k];
        double sums[CH_N_TERM_CLASSES];
        pl_arena_reset(w.scratch);
        const ch_terms terms = terms_of(&m->mol, m->name);
        ch_energy(sums, NULL, &terms, (const double(*)[3])m->xyz);
        for (int c = 0; c < CH_N_TERM_CLASSES; c++) {
            const double off = fabs(sums[c] - m->energy[c]), sigma = rounding(&terms, c, m);
            if (off <= fmax(0.001, 1e-4 * fabs(m->energy[c])))
                strict[c]++;
            else if (!(off <= 0.00005 + 4 * sigma))
                fail_msg("%s: %s is %.5f, not %.5f; the coordinates explain %.5f", m->name,
                         ch_term_class_name((enum ch_term_class)c), sums[c], m->energy[c], sigma);
            else
                max = fmax(max, off / sigma);
        }
    }
    for (int c = 0; c < CH_N_TERM_CLASSES; c++)
        print_message("%s: %d of %d within 0.001 or 1e-4\n", ch_term_class_name((enum ch_term_class)c), strict[c], w.suite.n);
    print_message("the others are off by at most %.1f standard deviations of the coordinates' rounding\n", max);
}

/* ---- gradients ---- */

static void gradient_check(const ch_terms *terms, const suite_molecule *m, int class)
{
    const double step = 1e-5; /* the error of the difference is of the order of its square */
    const int32_t n = m->mol.n_atoms;
    double(*gradient)[3] = pl_arena_get(w.scratch, (size_t)n, sizeof *gradient), sums[CH_N_TERM_CLASSES], largest = 1;
    double(*xyz)[3] = pl_arena_get(w.scratch, (size_t)n, sizeof *xyz);

    memcpy(xyz, m->xyz, (size_t)n * sizeof *xyz);
    ch_energy(sums, gradient, terms, (const double(*)[3])xyz);
    for (int32_t i = 0; i < 3 * n; i++)
        largest = fmax(largest, fabs(gradient[i / 3][i % 3]));
    for (int32_t i = 0; i < 3 * n; i++) {
        const double kept = xyz[i / 3][i % 3];
        double e[2];
        for (int side = 0; side < 2; side++) {
            xyz[i / 3][i % 3] = kept + (side ? step : -step);
            ch_energy(sums, NULL, terms, (const double(*)[3])xyz);
            e[side] = ch_energy_total(sums);
        }
        xyz[i / 3][i % 3] = kept;
        const double difference = (e[1] - e[0]) / (2 * step);
        if (!(fabs(difference - gradient[i / 3][i % 3]) <= 1e-6 * largest))
            fail_msg("%s, class %d: atom %d direction %d has %.8f, not %.8f", m->name, class, i / 3 + 1, i % 3,
                     gradient[i / 3][i % 3], difference);
    }
}

static void gradients_are_those_of_differences(void **state)
{
    (void)state;
    for (int k = 0; k < 600; k += 3) {
        const suite_molecule *m = &w.suite.molecules[k];
        pl_arena_reset(w.scratch);
        const ch_terms terms = terms_of(&m->mol, m->name);
        for (int class = 0; class <= CH_N_TERM_CLASSES; class ++) {
            const ch_terms only = suite_only(&terms, class, w.scratch);
            gradient_check(&only, m, class);
        }
    }
}

/* ---- drawings ---- */

static ch_mol copy(const ch_mol *mol)
{
    ch_mol out;

    assert_int_equal(ch_mol_alloc(&out, mol->n_atoms, mol->n_bonds, w.scratch, NULL), PL_OK);
    memcpy(out.z, mol->z, (size_t)mol->n_atoms);
    memcpy(out.charge, mol->charge, (size_t)mol->n_atoms);
    memcpy(out.bond, mol->bond, (size_t)mol->n_bonds * sizeof *mol->bond);
    memcpy(out.order, mol->order, (size_t)mol->n_bonds);
    return out;
}

static int valence(const ch_mol *mol, int32_t i)
{
    int sum = 0;
    for (int32_t b = 0; b < mol->n_bonds; b++)
        sum += mol->bond[b][0] == i || mol->bond[b][1] == i ? mol->order[b] : 0;
    return sum;
}

/* Draws every double bond from N, S, P or Cl to an end of O, S or N as a single bond between opposite charges. */
static int separate(ch_mol *mol)
{
    int n = 0;

    for (int32_t b = 0; b < mol->n_bonds; b++)
        for (int side = 0; side < 2; side++) {
            const int32_t i = mol->bond[b][side], j = mol->bond[b][1 - side];
            const int z = mol->z[i], usual = z == 7 || z == 15 ? 3 : 2;
            const bool ends =
                valence(mol, j) == mol->order[b] && mol->charge[j] == 0 && (mol->z[j] == 8 || mol->z[j] == 16 || mol->z[j] == 7);
            if (!(z == 7 || z == 15 || z == 16 || z == 17) || mol->charge[i] < 0 || mol->charge[i] > 1 || !ends ||
                mol->order[b] < 2 || valence(mol, i) < usual + 2)
                continue;
            mol->order[b]--;
            mol->charge[i]++;
            mol->charge[j]--;
            n++;
        }
    return n;
}

static void same_terms(const ch_terms *a, const ch_terms *b, const suite_molecule *m)
{
    double x[CH_N_TERM_CLASSES], y[CH_N_TERM_CLASSES];

    for (int32_t i = 0; i < a->n_atoms; i++)
        if (a->type[i] != b->type[i] || !(fabs(a->charge[i] - b->charge[i]) <= 1e-12))
            fail_msg("%s: atom %d has type %d and charge %.4f, or type %d and charge %.4f", m->name, i + 1, a->type[i],
                     a->charge[i], b->type[i], b->charge[i]);
    ch_energy(x, NULL, a, (const double(*)[3])m->xyz);
    ch_energy(y, NULL, b, (const double(*)[3])m->xyz);
    for (int c = 0; c < CH_N_TERM_CLASSES; c++)
        if (!(fabs(x[c] - y[c]) <= 1e-9))
            fail_msg("%s: %s is %.6f or %.6f", m->name, ch_term_class_name((enum ch_term_class)c), x[c], y[c]);
}

static void charge_separated_drawings_are_the_same_molecules(void **state)
{
    int n_redrawn = 0;

    (void)state;
    for (int k = 0; k < w.suite.n; k++) {
        const suite_molecule *m = &w.suite.molecules[k];
        pl_arena_reset(w.scratch);
        ch_mol redrawn = copy(&m->mol);
        if (separate(&redrawn) == 0)
            continue;
        const ch_terms a = terms_of(&m->mol, m->name), b = terms_of(&redrawn, m->name);
        same_terms(&a, &b, m);
        n_redrawn++;
    }
    assert_true(n_redrawn > 100);
}

static int compare_bonds(const void *a, const void *b)
{
    const int32_t *x = a, *y = b;
    return x[0] != y[0] ? x[0] - y[0] : x[1] - y[1];
}

/* The same molecule with its atoms in the opposite order. */
static suite_molecule backwards(const suite_molecule *m)
{
    const int32_t n = m->mol.n_atoms, n_bonds = m->mol.n_bonds;
    suite_molecule out = { .name = m->name, .mol = copy(&m->mol), .xyz = pl_arena_get(w.scratch, (size_t)n, sizeof *out.xyz) };
    int32_t(*rows)[3] = pl_arena_get(w.scratch, (size_t)n_bonds, sizeof *rows);

    for (int32_t i = 0; i < n; i++) {
        out.mol.z[i] = m->mol.z[n - 1 - i];
        out.mol.charge[i] = m->mol.charge[n - 1 - i];
        memcpy(out.xyz[i], m->xyz[n - 1 - i], sizeof *out.xyz);
    }
    for (int32_t b = 0; b < n_bonds; b++) {
        rows[b][0] = n - 1 - m->mol.bond[b][1];
        rows[b][1] = n - 1 - m->mol.bond[b][0];
        rows[b][2] = m->mol.order[b];
    }
    qsort(rows, (size_t)n_bonds, sizeof *rows, compare_bonds);
    for (int32_t b = 0; b < n_bonds; b++) {
        memcpy(out.mol.bond[b], rows[b], sizeof out.mol.bond[b]);
        out.mol.order[b] = (uint8_t)rows[b][2];
    }
    return out;
}

static void the_order_of_atoms_does_not_matter(void **state)
{
    (void)state;
    for (int k = 0; k < w.suite.n; k++) {
        const suite_molecule *m = &w.suite.molecules[k];
        double x[CH_N_TERM_CLASSES], y[CH_N_TERM_CLASSES];
        pl_arena_reset(w.scratch);
        const suite_molecule turned = backwards(m);
        const ch_terms a = terms_of(&m->mol, m->name), b = terms_of(&turned.mol, m->name);
        for (int32_t i = 0; i < a.n_atoms; i++)
            if (a.type[i] != b.type[a.n_atoms - 1 - i])
                fail_msg("%s: atom %d has type %d or %d", m->name, i + 1, a.type[i], b.type[a.n_atoms - 1 - i]);
        ch_energy(x, NULL, &a, (const double(*)[3])m->xyz);
        ch_energy(y, NULL, &b, (const double(*)[3])turned.xyz);
        for (int c = 0; c < CH_N_TERM_CLASSES; c++)
            if (!(fabs(x[c] - y[c]) <= 1e-8))
                fail_msg("%s: %s is %.6f or %.6f", m->name, ch_term_class_name((enum ch_term_class)c), x[c], y[c]);
    }
}

static void mmff94s_differs_in_planes_and_torsions_only(void **state)
{
    const ch_mmff_options s = { .mmff94s = true };
    int n_planes = 0, n_torsions = 0;

    (void)state;
    for (int k = 0; k < w.suite.n; k++) {
        const suite_molecule *m = &w.suite.molecules[k];
        double x[CH_N_TERM_CLASSES], y[CH_N_TERM_CLASSES];
        ch_terms b;
        pl_arena_reset(w.scratch);
        const ch_terms a = terms_of(&m->mol, m->name);
        assert_int_equal(ch_terms_make(&b, &m->mol, &w.mmff, &s, w.scratch, NULL), PL_OK);
        ch_energy(x, NULL, &a, (const double(*)[3])m->xyz);
        ch_energy(y, NULL, &b, (const double(*)[3])m->xyz);
        for (int c = 0; c < CH_N_TERM_CLASSES; c++)
            assert_true(x[c] == y[c] || c == CH_OUT_OF_PLANE || c == CH_TORSION);
        n_planes += x[CH_OUT_OF_PLANE] != y[CH_OUT_OF_PLANE];
        n_torsions += x[CH_TORSION] != y[CH_TORSION];
    }
    assert_true(n_planes > 100 && n_torsions > 50);
}

static void a_dielectric_constant_divides_electrostatics_only(void **state)
{
    const ch_mmff_options screened = { .dielectric = 4 };

    (void)state;
    for (int k = 0; k < w.suite.n; k += 20) {
        const suite_molecule *m = &w.suite.molecules[k];
        double x[CH_N_TERM_CLASSES], y[CH_N_TERM_CLASSES];
        ch_terms b;
        pl_arena_reset(w.scratch);
        const ch_terms a = terms_of(&m->mol, m->name);
        assert_int_equal(ch_terms_make(&b, &m->mol, &w.mmff, &screened, w.scratch, NULL), PL_OK);
        ch_energy(x, NULL, &a, (const double(*)[3])m->xyz);
        ch_energy(y, NULL, &b, (const double(*)[3])m->xyz);
        for (int c = 0; c < CH_N_TERM_CLASSES; c++)
            assert_true(fabs(y[c] - (c == CH_ELECTROSTATIC ? x[c] / 4 : x[c])) <= 1e-10 * (1 + fabs(x[c])));
    }
}

/* Bicyclo[1.1.0]butane: CH2 0 and 3, CH 1 and 2, which are bonded across the ring 0-1-3-2. Measured: 98 degrees at 0-1-3. */
static void a_bond_across_a_ring_of_four_leaves_its_angles(void **state)
{
    int32_t bonds[][2] = { { 0, 1 }, { 0, 2 }, { 0, 4 }, { 0, 5 }, { 1, 2 }, { 1, 3 },
                           { 1, 6 }, { 2, 3 }, { 2, 7 }, { 3, 8 }, { 3, 9 } };
    uint8_t z[10] = { 6, 6, 6, 6, 1, 1, 1, 1, 1, 1 }, order[11] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };
    int8_t charge[10] = { 0 };
    const ch_mol mol = { .n_atoms = 10, .n_bonds = 11, .z = z, .charge = charge, .bond = bonds, .order = order };
    int n_of_three = 0, n_of_four = 0;

    (void)state;
    pl_arena_reset(w.scratch);
    const ch_terms terms = terms_of(&mol, "bicyclobutane");
    for (int32_t a = 0; a < terms.n_angles; a++) {
        n_of_three += fabs(terms.angles[a].theta0 - 60) < 1e-9;
        n_of_four += fabs(terms.angles[a].theta0 - 91.653) < 1e-9 && fabs(terms.angles[a].ka - 1.225) < 1e-9;
    }
    assert_int_equal(n_of_three, 6);
    assert_int_equal(n_of_four, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_class_of_every_molecule_of_the_suite_agrees),
        cmocka_unit_test(gradients_are_those_of_differences),
        cmocka_unit_test(charge_separated_drawings_are_the_same_molecules),
        cmocka_unit_test(the_order_of_atoms_does_not_matter),
        cmocka_unit_test(mmff94s_differs_in_planes_and_torsions_only),
        cmocka_unit_test(a_dielectric_constant_divides_electrostatics_only),
        cmocka_unit_test(a_bond_across_a_ring_of_four_leaves_its_angles),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
