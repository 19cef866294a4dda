/* SPDX-License-Identifier: Apache-2.0 */
/* Minimising energies: converged results are minima, and nothing hangs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "chem/structures/descent.h"
#include "chem/structures/energy.h"
#include "chem/structures/relax.h"
#include "pipeline/base/rng.h"
#include "sdf_mol.h"

enum { MAX = 120 };

static pl_arena *mem;
static sdf_mol *all;
static int32_t n_all;

static int make(void **state)
{
    (void)state;
    mem = pl_arena_new(1 << 20);
    all = PL_NEW(mem, sdf_mol, MAX);
    n_all = sdf_read_terms(all, MAX, 80, MOLSIEVE_TESTS, mem);
    return n_all > 60 ? 0 : -1;
}

static int drop(void **state)
{
    (void)state;
    pl_arena_free(mem);
    return 0;
}

/* The energy of the reference; *rms: its gradient, root mean square over components. */
static double reference(const ch_terms *t, const float (*xyz)[3], double *rms)
{
    double(*x)[3] = pl_arena_get(mem, (size_t)t->n_atoms, sizeof *x), (*g)[3] = pl_arena_get(mem, (size_t)t->n_atoms, sizeof *g);
    double sums[CH_N_TERM_CLASSES], sum = 0;

    for (int32_t i = 0; i < 3 * t->n_atoms; i++)
        x[i / 3][i % 3] = (double)xyz[i / 3][i % 3];
    ch_energy(sums, g, t, (const double(*)[3])x);
    for (int32_t i = 0; i < 3 * t->n_atoms; i++)
        sum += g[i / 3][i % 3] * g[i / 3][i % 3];
    *rms = sqrt(sum / (3 * t->n_atoms));
    return ch_energy_total(sums);
}

static ch_relaxed relax(const sdf_mol *m, const ch_kernels *k, float (*xyz)[3], ch_relax_options o)
{
    pl_arena *own = pl_arena_new(1 << 18);
    ch_relaxer r;
    ch_relaxed out;

    assert_int_equal(ch_relaxer_make(&r, &m->terms, k, own, NULL), PL_OK);
    assert_int_equal(ch_relax(&out, xyz, &r, &o, NULL), PL_OK);
    pl_arena_free(own);
    return out;
}

/* At the origin: at the coordinates of a protein's ligand, rounding the result to float alone causes half of the allowed gradient. */
static float (*copy_of(const sdf_mol *m))[3]
{
    float(*x)[3] = pl_arena_get(mem, (size_t)m->mol.n_atoms, sizeof *x);

    for (int32_t i = 0; i < m->mol.n_atoms; i++)
        for (int c = 0; c < 3; c++)
            x[i][c] = m->mol.xyz[i][c] - m->mol.xyz[0][c];
    return x;
}

static void shake(float (*x)[3], int32_t n, double by, uint64_t seed)
{
    pl_rng r = pl_rng_at(seed, 1, 1);

    for (int32_t i = 0; i < 3 * n; i++)
        x[i / 3][i % 3] += (float)(by * pl_rng_normal(&r));
}

static void every_structure_reaches_the_gradient_by_the_reference(void **state)
{
    (void)state;
    for (int s = 0; ch_kernels_at(s) != NULL; s++)
        for (int32_t k = 0; k < n_all; k++) {
            float(*x)[3] = copy_of(&all[k]);
            double before = 0, after = 0, rms = 0;
            shake(x, all[k].mol.n_atoms, 0.1, (uint64_t)k);
            before = reference(&all[k].terms, (const float(*)[3])x, &rms);
            const ch_relaxed r = relax(&all[k], ch_kernels_at(s), x, (ch_relax_options){ 0, 0 });
            after = reference(&all[k].terms, (const float(*)[3])x, &rms);
            if (!r.converged || !(rms < 0.0105) || !(after < before) || !(fabs(after - r.energy) < 0.01))
                fail_msg("%s, %s: converged %d, gradient %g, energy %g, by the reference %g", ch_kernels_at(s)->name, all[k].name,
                         r.converged, rms, r.energy, after);
        }
}

/* A tenth of the gradient finds the same minimum, so the first one was near it. */
static void little_is_left_to_the_minimum(void **state)
{
    double worst = 0;

    (void)state;
    for (int32_t k = 0; k < n_all; k++) {
        float(*x)[3] = copy_of(&all[k]);
        const ch_relaxed a = relax(&all[k], ch_kernels_find(NULL), x, (ch_relax_options){ 0, 0 });
        const ch_relaxed b = relax(&all[k], ch_kernels_find(NULL), x, (ch_relax_options){ 0.001, 0 });
        assert_true(b.converged);
        worst = fmax(worst, a.energy - b.energy);
    }
    if (!(worst < 1))
        fail_msg("%g kcal/mol were left", worst);
}

static void too_few_steps_are_told(void **state)
{
    float(*x)[3] = copy_of(&all[0]);

    (void)state;
    const ch_relaxed r = relax(&all[0], ch_kernels_find(NULL), x, (ch_relax_options){ 1e-9, 3 });
    assert_int_equal(r.steps, 3);
    assert_false(r.converged);
}

static void a_start_that_is_not_a_number_is_refused(void **state)
{
    float(*x)[3] = copy_of(&all[0]);
    ch_relaxer r;
    ch_relaxed out;
    pl_error err = { 0 };

    (void)state;
    x[3][0] = INFINITY;
    assert_int_equal(ch_relaxer_make(&r, &all[0].terms, ch_kernels_find(NULL), mem, NULL), PL_OK);
    assert_int_equal(ch_relax(&out, x, &r, &(ch_relax_options){ 0, 0 }, &err), PL_EINPUT);
    assert_string_equal(err.text, "the position of atom 4 is not finite");
    assert_false(out.converged);
}

/* Gradients are not defined if atoms coincide or an angle is 180 degrees; the minimiser leaves both places. */
static void starts_without_a_gradient_come_to_a_minimum(void **state)
{
    (void)state;
    for (int s = 0; ch_kernels_at(s) != NULL; s++)
        for (int32_t k = 0; k < n_all; k += 6) {
            float(*x)[3] = copy_of(&all[k]);
            const int32_t n = all[k].mol.n_atoms;
            double rms = 0;
            for (int32_t i = 0; i < n; i++) {
                x[i][0] = 1.3f * (float)i;
                x[i][1] = x[i][2] = 0;
            }
            const ch_relaxed line = relax(&all[k], ch_kernels_at(s), x, (ch_relax_options){ 0, 5000 });
            assert_true(isfinite(line.energy) && line.steps <= 5000);
            memset(x, 0, (size_t)n * sizeof *x);
            const ch_relaxed heap = relax(&all[k], ch_kernels_at(s), x, (ch_relax_options){ 0, 5000 });
            assert_true(isfinite(heap.energy) && heap.steps <= 5000 &&
                        isfinite(reference(&all[k].terms, (const float(*)[3])x, &rms)));
        }
}

/* Water with 180 degrees: the only force is along the axis, so without a push it would stay at the saddle point. */
static void a_straight_angle_bends(void **state)
{
    ch_bond_term bonds[2] = { { 0, 1, 7.88, 0.969 }, { 0, 2, 7.88, 0.969 } };
    ch_angle_term angle = { 1, 0, 2, 0.658, 103.978, false };
    const ch_terms t = { .n_atoms = 3, .n_bonds = 2, .n_angles = 1, .bonds = bonds, .angles = &angle };
    const sdf_mol m = { .terms = t };
    float x[3][3] = { { 0, 0, 0 }, { 0.969f, 0, 0 }, { -0.969f, 0, 0 } };

    (void)state;
    const ch_relaxed r = relax(&m, ch_kernels_find(NULL), x, (ch_relax_options){ 0, 0 });
    assert_true(r.converged);
    assert_true(fabs(r.energy) < 1e-3);
}

static void the_same_bits_come_again(void **state)
{
    (void)state;
    for (int s = 0; ch_kernels_at(s) != NULL; s++)
        for (int32_t k = 0; k < n_all; k += 9) {
            float(*a)[3] = copy_of(&all[k]), (*b)[3] = copy_of(&all[k]);
            (void)relax(&all[k], ch_kernels_at(s), a, (ch_relax_options){ 0, 0 });
            (void)relax(&all[k], ch_kernels_at(s), b, (ch_relax_options){ 0, 0 });
            assert_memory_equal(a, b, (size_t)all[k].mol.n_atoms * sizeof *a);
        }
}

/* A spring of any stiffness: *of times x squared / 2. */
static double spring(const void *of, const float *x, float *g)
{
    const double stiffness = *(const double *)of;

    g[0] = (float)(stiffness * (double)x[0]);
    return stiffness * (double)x[0] * (double)x[0] / 2;
}

/* One step of a spring shows where it rests. */
static void a_spring_is_known_after_one_step(void **state)
{
    static const double stiffness[] = { 1e-3, 1, 1e3, 1e6, 3e9 };
    const int32_t stride = ch_stride(1);

    (void)state;
    for (int s = 0; ch_kernels_at(s) != NULL; s++)
        for (size_t k = 0; k < sizeof stiffness / sizeof *stiffness; k++) {
            float *x = ch_floats(mem, stride);
            const ch_search search = { .kernels = ch_kernels_at(s),
                                       .objective = spring,
                                       .of = &stiffness[k],
                                       .n_atoms = 1,
                                       .stride = stride,
                                       .dims = 1,
                                       .gradient = 1e-5 * stiffness[k],
                                       .max_steps = 100,
                                       .max_move = 10,
                                       .first_scale = (float)(0.3 / stiffness[k]),
                                       .work = ch_floats(mem, ch_search_floats(stride, 1)) };
            x[0] = 1;
            const ch_search_result r = ch_descend(&search, x);
            if (r.stop != CH_CONVERGED || r.steps != 2)
                fail_msg("stiffness %g: stop %d after %d steps at %g", stiffness[k], (int)r.stop, (int)r.steps, (double)x[0]);
        }
}

/* The factor of the band matrix solves the system: the product of matrix and solution is the right-hand side. */
static void the_preconditioner_solves_its_own_matrix(void **state)
{
    (void)state;
    for (int s = 0; ch_kernels_at(s) != NULL; s++)
        for (int32_t k = 0; k < n_all; k += 13) {
            const int32_t n = all[k].mol.n_atoms, stride = ch_stride(n);
            float *x = ch_floats(mem, 3 * stride), *d = ch_floats(mem, 3 * stride), *matrix = NULL;
            ch_preconditioner p;
            double worst = 0;
            assert_int_equal(ch_preconditioner_make(&p, &all[k].terms, ch_kernels_at(s), mem, NULL), PL_OK);
            ch_to_columns(x, stride, (const float(*)[3])all[k].mol.xyz, n);
            for (int32_t i = 0; i < 3 * n; i++)
                d[i / n * stride + i % n] = (float)(i % 7) - 3;
            ch_preconditioner_assemble(&p, x, stride);
            matrix = ch_floats(mem, p.n_floats + 1);
            memcpy(matrix, p.matrix.data, (size_t)p.n_floats * sizeof *matrix);
            ch_preconditioner_refresh(&p, x, stride);
            ch_preconditioner_solve(&p, d, stride);
            for (int32_t r = 0; r < 3 * n; r++) {
                double sum = 0;
                for (int32_t c = 0; c < 3 * n; c++) {
                    const int32_t low = r < c ? r : c, high = r < c ? c : r;
                    sum += high / 3 <= p.matrix.last[low / 3] ? (double)matrix[p.matrix.row[low] + high] * (double)p.b[c] : 0;
                }
                for (int32_t i = 0; i < n; i++)
                    if (p.place[i] == r / 3)
                        worst = fmax(worst, fabs(sum - ((r % 3 * n + i) % 7 - 3)));
            }
            if (!(worst < 0.02))
                fail_msg("%s, %s: off by %g", ch_kernels_at(s)->name, all[k].name, worst);
        }
}

/* Atoms are numbered along the bonds: bands have less than two thirds of the elements of a triangle. */
static void the_bands_of_the_preconditioner_are_narrow(void **state)
{
    double bands = 0, triangles = 0;

    (void)state;
    for (int32_t k = 0; k < n_all; k++) {
        ch_preconditioner p;
        assert_int_equal(ch_preconditioner_make(&p, &all[k].terms, ch_kernels_at(0), mem, NULL), PL_OK);
        for (int32_t i = 0; i < all[k].mol.n_atoms; i++) {
            bands += p.matrix.last[i] - i + 1;
            triangles += i + 1;
        }
    }
    assert_true(bands < 0.6 * triangles);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_structure_reaches_the_gradient_by_the_reference),
        cmocka_unit_test(little_is_left_to_the_minimum),
        cmocka_unit_test(too_few_steps_are_told),
        cmocka_unit_test(a_start_that_is_not_a_number_is_refused),
        cmocka_unit_test(starts_without_a_gradient_come_to_a_minimum),
        cmocka_unit_test(a_straight_angle_bends),
        cmocka_unit_test(the_same_bits_come_again),
        cmocka_unit_test(a_spring_is_known_after_one_step),
        cmocka_unit_test(the_preconditioner_solves_its_own_matrix),
        cmocka_unit_test(the_bands_of_the_preconditioner_are_narrow),
    };

    return cmocka_run_group_tests(tests, make, drop);
}
