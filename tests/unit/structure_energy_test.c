/* SPDX-License-Identifier: Apache-2.0 */
/* The energy and its gradient in float, of every instruction set, against the plain reference in double. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "chem/structures/energy.h"
#include "chem/structures/energy_plan.h"
#include "mmff_suite.h"
#include "sdf_mol.h"

enum { MAX = 340 };

static pl_arena *mem;
static sdf_mol *all;
static int32_t n_all;

static int make(void **state)
{
    (void)state;
    mem = pl_arena_new(1 << 20);
    all = PL_NEW(mem, sdf_mol, MAX);
    n_all = sdf_read_terms(all, MAX, 300, MOLSIEVE_TESTS, mem);
    return n_all > 250 ? 0 : -1;
}

static int drop(void **state)
{
    (void)state;
    pl_arena_free(mem);
    return 0;
}

/* Raises *worst to the difference of the two, relative to the precision of float for numbers of this size. */
static void compare(const ch_kernels *k, const ch_terms *t, const float (*xyz)[3], const char *what)
{
    pl_arena *own = pl_arena_new(1 << 18);
    double(*x)[3] = pl_arena_get(own, (size_t)t->n_atoms, sizeof *x), (*g)[3] = pl_arena_get(own, (size_t)t->n_atoms, sizeof *g);
    float(*f)[3] = pl_arena_get(own, (size_t)t->n_atoms, sizeof *f);
    double sums[CH_N_TERM_CLASSES], size = 1, wrong = 0, steep = 1;
    ch_energy_plan plan;

    for (int32_t i = 0; i < 3 * t->n_atoms; i++)
        x[i / 3][i % 3] = (double)xyz[i / 3][i % 3];
    ch_energy(sums, g, t, (const double(*)[3])x);
    assert_int_equal(ch_energy_plan_make(&plan, t, k, own, NULL), PL_OK);
    const double e = ch_energy_gradient(&plan, k, xyz, f, ch_floats(own, 14 * (int64_t)plan.stride));
    for (int c = 0; c < CH_N_TERM_CLASSES; c++)
        size += fabs(sums[c]);
    for (int32_t i = 0; i < 3 * t->n_atoms; i++) {
        wrong = fmax(wrong, fabs((double)f[i / 3][i % 3] - g[i / 3][i % 3]));
        if (isnan(f[i / 3][i % 3]))
            wrong = NAN;
        steep = fmax(steep, fabs(g[i / 3][i % 3]));
    }
    if (!(fabs(e - ch_energy_total(sums)) <= 1e-5 * size) || !(wrong <= 2e-4 * steep))
        fail_msg("%s, %s: energy %.6f, reference %.6f (sizes %.1f); gradient differs by %.2g of %.2g", k->name, what, e,
                 ch_energy_total(sums), size, wrong, steep);
    pl_arena_free(own);
}

static void energies_and_gradients_are_those_of_the_reference(void **state)
{
    (void)state;
    for (int s = 0; ch_kernels_at(s) != NULL; s++)
        for (int32_t k = 0; k < n_all; k++)
            compare(ch_kernels_at(s), &all[k].terms, (const float(*)[3])all[k].mol.xyz, all[k].name);
}

static void each_class_alone_is_that_of_the_reference(void **state)
{
    (void)state;
    for (int s = 0; ch_kernels_at(s) != NULL; s++)
        for (int32_t k = 0; k < n_all; k += 7)
            for (int class = 0; class < CH_N_TERM_CLASSES; class ++) {
                const ch_terms t = suite_only(&all[k].terms, class, mem);
                compare(ch_kernels_at(s), &t, (const float(*)[3])all[k].mol.xyz, ch_term_class_name((enum ch_term_class) class));
            }
}

/* With small counts, most of a vector consists of repeated terms. */
static void one_term_of_a_kind_is_enough(void **state)
{
    (void)state;
    for (int s = 0; ch_kernels_at(s) != NULL; s++)
        for (int32_t k = 0; k < n_all; k += 5) {
            ch_terms t = all[k].terms;
            t.n_bonds = t.n_bonds > 0;
            t.n_angles = t.n_angles > 0;
            t.n_stretch_bends = t.n_stretch_bends > 0;
            t.n_out_of_planes = t.n_out_of_planes > 0;
            t.n_torsions = t.n_torsions > 0;
            t.n_pairs = t.n_pairs > 0;
            compare(ch_kernels_at(s), &t, (const float(*)[3])all[k].mol.xyz, "one of each");
        }
}

/* The three angles of a centre are computed together: a third of the terms are planes. */
static void the_angles_of_a_centre_are_one_plane(void **state)
{
    const ch_kernels one = { .name = "one", .width = 1 };

    (void)state;
    for (int32_t k = 0; k < n_all; k++) {
        pl_arena *own = pl_arena_new(1 << 18);
        ch_energy_plan plan;
        assert_int_equal(ch_energy_plan_make(&plan, &all[k].terms, &one, own, NULL), PL_OK);
        assert_int_equal(3 * plan.n_planes, all[k].terms.n_out_of_planes);
        pl_arena_free(own);
    }
}

static double at(const ch_kernels *k, const ch_terms *t, const float (*xyz)[3], float (*g)[3])
{
    pl_arena *own = pl_arena_new(1 << 18);
    ch_energy_plan plan;

    assert_int_equal(ch_energy_plan_make(&plan, t, k, own, NULL), PL_OK);
    const double e = ch_energy_gradient(&plan, k, xyz, g, ch_floats(own, 14 * (int64_t)plan.stride));
    pl_arena_free(own);
    return e;
}

static void assert_finite(double e, const float (*g)[3], int32_t n)
{
    assert_true(isfinite(e));
    for (int32_t i = 0; i < 3 * n; i++)
        assert_true(isfinite(g[i / 3][i % 3]));
}

static void atoms_at_one_place_and_in_a_line_give_finite_numbers(void **state)
{
    const sdf_mol *m = &all[0];
    const int32_t n = m->mol.n_atoms;
    float(*x)[3] = pl_arena_get(mem, (size_t)n, sizeof *x), (*g)[3] = pl_arena_get(mem, (size_t)n, sizeof *g);

    (void)state;
    for (int s = 0; ch_kernels_at(s) != NULL; s++) {
        memset(x, 0, (size_t)n * sizeof *x);
        assert_finite(at(ch_kernels_at(s), &m->terms, (const float(*)[3])x, g), (const float(*)[3])g, n);
        for (int32_t i = 0; i < n; i++)
            x[i][0] = 1.4f * (float)i;
        assert_finite(at(ch_kernels_at(s), &m->terms, (const float(*)[3])x, g), (const float(*)[3])g, n);
        for (int32_t i = 0; i < n; i++)
            x[i][0] = 900.0f * (float)i;
        assert_finite(at(ch_kernels_at(s), &m->terms, (const float(*)[3])x, g), (const float(*)[3])g, n);
    }
}

static void a_position_that_is_not_a_number_is_not_hidden(void **state)
{
    const sdf_mol *m = &all[1];
    float(*x)[3] = pl_arena_get(mem, (size_t)m->mol.n_atoms, sizeof *x);

    (void)state;
    for (int s = 0; ch_kernels_at(s) != NULL; s++) {
        memcpy(x, m->mol.xyz, (size_t)m->mol.n_atoms * sizeof *x);
        x[2][1] = NAN;
        assert_false(isfinite(at(ch_kernels_at(s), &m->terms, (const float(*)[3])x, NULL)));
    }
}

static void the_same_bits_come_again(void **state)
{
    float a[400][3], b[400][3];

    (void)state;
    for (int s = 0; ch_kernels_at(s) != NULL; s++)
        for (int32_t k = 0; k < n_all; k += 11) {
            const int32_t n = all[k].mol.n_atoms;
            const double e = at(ch_kernels_at(s), &all[k].terms, (const float(*)[3])all[k].mol.xyz, a);
            const double f = at(ch_kernels_at(s), &all[k].terms, (const float(*)[3])all[k].mol.xyz, b);
            assert_memory_equal(&e, &f, sizeof e);
            assert_memory_equal(a, b, (size_t)n * sizeof *a);
        }
}

static void terms_of_atoms_that_are_not_there_are_refused(void **state)
{
    ch_terms t = all[0].terms;
    ch_bond_term wrong = { 0, t.n_atoms, 5, 1.5 };
    ch_energy_plan plan;
    pl_error err = { 0 };

    (void)state;
    t.bonds = &wrong;
    t.n_bonds = 1;
    assert_int_equal(ch_energy_plan_make(&plan, &t, ch_kernels_find(NULL), mem, &err), PL_EINPUT);
    assert_non_null(strstr(err.text, "not there"));
}

/* The set that needs nothing is there on every machine, and comes last. */
static void kernels_are_found_by_name_and_by_setting(void **state)
{
    int n = 0;

    (void)state;
    while (ch_kernels_at(n) != NULL)
        n++;
    assert_true(n >= 1);
    assert_ptr_equal(ch_kernels_at(n - 1), ch_kernels_find("portable"));
    assert_ptr_equal(ch_kernels_at(0), ch_kernels_find(NULL));
    for (int s = 0; s < n; s++) {
        const ch_kernels *k = ch_kernels_at(s);
        assert_ptr_equal(ch_kernels_find(k->name), k);
        assert_int_equal(setenv("MOLSIEVE_CPU", k->name, 1), 0);
        assert_ptr_equal(ch_kernels_choose(), k);
    }
    assert_int_equal(setenv("MOLSIEVE_CPU", "amx", 1), 0);
    assert_ptr_equal(ch_kernels_choose(), ch_kernels_find("avx512"));
    assert_int_equal(setenv("MOLSIEVE_CPU", "none of these", 1), 0);
    assert_null(ch_kernels_choose());
    assert_int_equal(setenv("MOLSIEVE_CPU", "", 1), 0);
    assert_ptr_equal(ch_kernels_choose(), ch_kernels_at(0));
    assert_int_equal(unsetenv("MOLSIEVE_CPU"), 0);
    assert_ptr_equal(ch_kernels_choose(), ch_kernels_at(0));
    assert_null(ch_kernels_find(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(energies_and_gradients_are_those_of_the_reference),
        cmocka_unit_test(each_class_alone_is_that_of_the_reference),
        cmocka_unit_test(one_term_of_a_kind_is_enough),
        cmocka_unit_test(the_angles_of_a_centre_are_one_plane),
        cmocka_unit_test(atoms_at_one_place_and_in_a_line_give_finite_numbers),
        cmocka_unit_test(a_position_that_is_not_a_number_is_not_hidden),
        cmocka_unit_test(the_same_bits_come_again),
        cmocka_unit_test(terms_of_atoms_that_are_not_there_are_refused),
        cmocka_unit_test(kernels_are_found_by_name_and_by_setting),
    };

    return cmocka_run_group_tests(tests, make, drop);
}
