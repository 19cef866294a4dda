/* SPDX-License-Identifier: Apache-2.0 */
/* Which atoms of a molecule are equal, and how different its conformers are. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "chem/structures/shape.h"
#include "pipeline/base/rng.h"

enum { MOST = 64 };

/* A molecule by its atoms ("CCO", H for hydrogen, D for deuterium) and its bonds ("0-1 1-2"). */
typedef struct drawing {
    const char *atoms, *bonds;
} drawing;

static pl_arena *mem;

static int make(void **state)
{
    (void)state;
    mem = pl_arena_new(1 << 16);
    return mem != NULL ? 0 : -1;
}

static int drop(void **state)
{
    (void)state;
    pl_arena_free(mem);
    return 0;
}

static uint8_t element(char c)
{
    static const char *names = "HCNOFBD";
    static const uint8_t z[] = { 1, 6, 7, 8, 9, 5, 1 };
    return z[strchr(names, c) - names];
}

static int compare(const void *a, const void *b) { return memcmp(a, b, 2 * sizeof(int32_t)); }

static ch_mol read(const drawing *d)
{
    const int32_t n = (int32_t)strlen(d->atoms);
    int32_t pairs[MOST][2], n_bonds = 0;
    ch_mol mol;

    for (const char *p = d->bonds; *p != '\0'; n_bonds++) {
        int used = 0;
        assert_int_equal(sscanf(p, "%d-%d%n", &pairs[n_bonds][0], &pairs[n_bonds][1], &used), 2);
        p += used;
        p += strspn(p, " ");
    }
    qsort(pairs, (size_t)n_bonds, sizeof *pairs, compare);
    assert_int_equal(ch_mol_alloc(&mol, n, n_bonds, mem, NULL), PL_OK);
    mol.isotope = PL_NEW(mem, uint16_t, n);
    for (int32_t i = 0; i < n; i++) {
        mol.z[i] = element(d->atoms[i]);
        mol.isotope[i] = d->atoms[i] == 'D' ? 2 : 0;
    }
    for (int32_t b = 0; b < n_bonds; b++) {
        memcpy(mol.bond[b], pairs[b], sizeof *pairs);
        mol.order[b] = 1;
    }
    return mol;
}

static ch_equal equal_of(const ch_mol *mol)
{
    ch_cycles *cycles = PL_NEW(mem, ch_cycles, 1);
    ch_equal e;

    assert_int_equal(ch_cycles_make(cycles, mol, mem, NULL), PL_OK);
    assert_int_equal(ch_equal_make(&e, cycles, mem, NULL), PL_OK);
    return e;
}

static bool is_bond(const ch_mol *mol, int32_t i, int32_t j)
{
    for (int32_t b = 0; b < mol->n_bonds; b++)
        if ((mol->bond[b][0] == i && mol->bond[b][1] == j) || (mol->bond[b][0] == j && mol->bond[b][1] == i))
            return true;
    return false;
}

/* Each map is a permutation that keeps elements and bonds, and no two are the same; the first changes nothing. */
static void assert_sound(const ch_mol *mol, const ch_equal *e)
{
    for (int32_t w = 0; w < e->n_maps; w++) {
        const int32_t *map = &e->map[(int64_t)w * e->n];
        bool used[MOST] = { false };
        for (int32_t k = 0; k < e->n; k++) {
            assert_true(map[k] >= 0 && map[k] < e->n && !used[map[k]] && (w > 0 || map[k] == k));
            used[map[k]] = true;
            assert_int_equal(mol->z[e->atom[map[k]]], mol->z[e->atom[k]]);
            for (int32_t l = 0; l < k; l++)
                assert_true(is_bond(mol, e->atom[k], e->atom[l]) == is_bond(mol, e->atom[map[k]], e->atom[map[l]]));
        }
        for (int32_t v = 0; v < w; v++)
            assert_memory_not_equal(map, &e->map[(int64_t)v * e->n], (size_t)e->n * sizeof *map);
    }
}

static const drawing neopentane = { "CCCCC", "0-1 0-2 0-3 0-4" };
static const drawing benzene = { "CCCCCC", "0-1 1-2 2-3 3-4 4-5 0-5" };
static const drawing fluoroform = { "FCFFH", "0-1 1-2 1-3 1-4" };

static void equal_atoms_are_mapped_on_each_other(void **state)
{
    static const struct {
        const char *what;
        drawing d;
        int32_t heavy, maps;
    } cases[] = {
        { "nothing heavy", { "HH", "0-1" }, 0, 1 },
        { "one atom", { "CHHHH", "0-1 0-2 0-3 0-4" }, 1, 1 },
        { "butane", { "CCCC", "0-1 1-2 2-3" }, 4, 2 },
        { "ethanol", { "CCO", "0-1 1-2" }, 3, 1 },
        { "fluoroform", { "FCFFH", "0-1 1-2 1-3 1-4" }, 4, 6 },
        { "neopentane", { "CCCCC", "0-1 0-2 0-3 0-4" }, 5, 24 },
        { "hexafluoroethane", { "CCFFFFFF", "0-1 0-2 0-3 0-4 1-5 1-6 1-7" }, 8, 72 },
        { "benzene", { "CCCCCC", "0-1 1-2 2-3 3-4 4-5 0-5" }, 6, 12 },
        { "toluene", { "CCCCCCC", "0-1 1-2 2-3 3-4 4-5 0-5 0-6" }, 7, 2 },
        { "cubane", { "CCCCCCCC", "0-1 1-2 2-3 0-3 4-5 5-6 6-7 4-7 0-4 1-5 2-6 3-7" }, 8, 48 },
        { "a carboxylate", { "CCOO", "0-1 1-2 1-3" }, 4, 2 },
        { "its acid: hydrogens of terminal oxygens do not count", { "CCOOH", "0-1 1-2 1-3 3-4" }, 4, 2 },
        { "but their isotopes do", { "CCOOD", "0-1 1-2 1-3 3-4" }, 4, 1 },
        { "and so do those of carbon", { "NCCCHH", "0-1 1-2 1-3 3-4 3-5" }, 4, 1 },
        { "and of nitrogen between two atoms", { "CCNCNCH", "0-1 1-2 2-3 1-4 4-5 2-6" }, 6, 1 },
        { "an amidine", { "CCNNHHH", "0-1 1-2 1-3 2-4 3-5 3-6" }, 4, 2 },
        { "propane", { "CCCHHHHHH", "0-1 1-2 0-3 0-4 0-5 2-6 2-7 2-8" }, 3, 2 },
        { "with one deuterium", { "CCCHHHHHD", "0-1 1-2 0-3 0-4 0-5 2-6 2-7 2-8" }, 3, 1 },
        { "diborane: heavy atoms in two parts", { "BBHHHHHH", "0-2 0-3 1-2 1-3 0-4 0-5 1-6 1-7" }, 2, 2 },
        { "three rings of three: not one of nine", { "CCCCCCCCC", "0-1 1-2 0-2 3-4 4-5 3-5 6-7 7-8 6-8" }, 9, 6 * 6 * 6 * 6 },
    };

    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const ch_mol mol = read(&cases[c].d);
        const ch_equal e = equal_of(&mol);
        const int32_t maps = cases[c].maps < CH_EQUAL_MAX ? cases[c].maps : CH_EQUAL_MAX;
        if (e.n != cases[c].heavy || e.n_maps != maps)
            fail_msg("%s: %d heavy atoms, %d maps", cases[c].what, (int)e.n, (int)e.n_maps);
        assert_sound(&mol, &e);
    }
}

static void scatter(float (*x)[3], int32_t n, pl_rng *r)
{
    for (int32_t i = 0; i < n; i++)
        for (int c = 0; c < 3; c++)
            x[i][c] = (float)(3 * pl_rng_real(r) + 5);
}

/* Quaternions: the largest eigenvalue of Horn's matrix, by power iteration; another way to superpose. */
static double horn(const ch_equal *e, const int32_t *map, const float (*a)[3], const float (*b)[3])
{
    double middle[2][3] = { { 0 } }, s[3][3] = { { 0 } }, sum = 0, q[4] = { 1, 0.5, 0.25, 0.125 }, length = 0;

    for (int32_t k = 0; k < e->n; k++)
        for (int c = 0; c < 3; c++) {
            middle[0][c] += (double)a[e->atom[k]][c] / e->n;
            middle[1][c] += (double)b[e->atom[k]][c] / e->n;
        }
    for (int32_t k = 0; k < e->n; k++)
        for (int c = 0; c < 3; c++) {
            const double u = (double)a[e->atom[k]][c] - middle[0][c], v = (double)b[e->atom[map[k]]][c] - middle[1][c];
            sum += u * u + v * v;
            for (int d = 0; d < 3; d++)
                s[c][d] += u * ((double)b[e->atom[map[k]]][d] - middle[1][d]);
        }
    const double m[4][4] = {
        { s[0][0] + s[1][1] + s[2][2], s[1][2] - s[2][1], s[2][0] - s[0][2], s[0][1] - s[1][0] },
        { s[1][2] - s[2][1], s[0][0] - s[1][1] - s[2][2], s[0][1] + s[1][0], s[2][0] + s[0][2] },
        { s[2][0] - s[0][2], s[0][1] + s[1][0], s[1][1] - s[0][0] - s[2][2], s[1][2] + s[2][1] },
        { s[0][1] - s[1][0], s[2][0] + s[0][2], s[1][2] + s[2][1], s[2][2] - s[0][0] - s[1][1] },
    };
    for (int step = 0; step < 5000; step++) {
        double next[4], norm = 0;
        for (int i = 0; i < 4; i++) {
            next[i] = sum * q[i]; /* shifted, so that all eigenvalues are positive */
            for (int j = 0; j < 4; j++)
                next[i] += m[i][j] * q[j];
            norm += next[i] * next[i];
        }
        length = sqrt(norm);
        for (int i = 0; i < 4; i++)
            q[i] = next[i] / length;
    }
    return sqrt(fmax(sum - 2 * (length - sum), 0) / e->n);
}

static void the_rmsd_is_the_least_over_all_maps(void **state)
{
    const drawing *const all[] = { &neopentane, &benzene, &fluoroform };
    pl_rng r = pl_rng_at(5, 0, 0);

    (void)state;
    for (int c = 0; c < 3; c++) {
        const ch_mol mol = read(all[c]);
        const ch_equal e = equal_of(&mol);
        for (int t = 0; t < 20; t++) {
            float a[MOST][3], b[MOST][3];
            double least = INFINITY;
            scatter(a, mol.n_atoms, &r);
            scatter(b, mol.n_atoms, &r);
            for (int32_t w = 0; w < e.n_maps; w++)
                least = fmin(least, horn(&e, &e.map[w * e.n], (const float(*)[3])a, (const float(*)[3])b));
            const double got = ch_shape_rmsd(&e, (const float(*)[3])a, (const float(*)[3])b);
            assert_true(fabs(got - least) < 1e-4 && got > 0.1);
            assert_true(fabs(ch_shape_rmsd(&e, (const float(*)[3])b, (const float(*)[3])a) - got) < 1e-9);
            const double bound = ch_shape_least(&e, (const float(*)[3])a, (const float(*)[3])b);
            assert_true(bound <= got + 1e-9 && bound > 0.001);
        }
    }
}

/* Three atoms in a row, 1 apart, beside three that are 2 apart: the sum of squares after superposition is 0 + 1 + 1. */
static void the_distance_of_two_shapes_is_known(void **state)
{
    const drawing ozone = { "OOO", "0-1 1-2" };
    const float a[3][3] = { { 0, 0, 0 }, { 1, 0, 0 }, { 2, 0, 0 } }, b[3][3] = { { 5, 1, 2 }, { 5, 3, 2 }, { 5, 5, 2 } };
    const ch_mol mol = read(&ozone);
    const ch_equal e = equal_of(&mol);

    (void)state;
    assert_true(fabs(ch_shape_rmsd(&e, a, b) - sqrt(2.0 / 3)) < 1e-6);
    assert_true(fabs(ch_shape_rmsd(&e, b, a) - sqrt(2.0 / 3)) < 1e-6);
    assert_true(fabs(ch_shape_least(&e, a, b) - sqrt(2.0 / 3)) < 1e-6);
}

/* Two fluorines of a CF3 change places; the hydrogen does not count. A mirror image of four different atoms is another shape. */
static void exchanged_atoms_are_no_difference(void **state)
{
    static const float a[5][3] = { { 1, 1, 0.2F }, { 0, 0, 0 }, { -1.2F, 1, 0 }, { 0, -1, 1 }, { 0, 0, -1 } };
    const drawing different = { "FCONH", "0-1 1-2 1-3 1-4" };
    const ch_mol mol = read(&fluoroform), other = read(&different);
    const ch_equal e = equal_of(&mol), none = equal_of(&other);
    float b[5][3], mirror[5][3];

    (void)state;
    memcpy(b, a, sizeof b);
    memcpy(b[0], a[2], sizeof *b);
    memcpy(b[2], a[0], sizeof *b);
    b[4][0] = 9;
    for (int i = 0; i < 5; i++)
        for (int c = 0; c < 3; c++)
            mirror[i][c] = c == 2 ? -a[i][c] : a[i][c];
    assert_true(ch_shape_rmsd(&e, a, (const float(*)[3])b) < 1e-6);
    assert_true(ch_shape_least(&e, a, (const float(*)[3])b) < 1e-6);
    assert_true(ch_shape_rmsd(&none, a, (const float(*)[3])b) > 0.1);
    assert_true(ch_shape_rmsd(&none, a, (const float(*)[3])mirror) > 0.1);
    assert_true(ch_shape_least(&none, a, (const float(*)[3])mirror) < 1e-6);
}

static void nothing_heavy_has_no_difference(void **state)
{
    const drawing hydrogen = { "HH", "0-1" };
    const ch_mol mol = read(&hydrogen);
    const ch_equal e = equal_of(&mol);
    const float a[2][3] = { { 0 } }, b[2][3] = { { 3 }, { 4 } };

    (void)state;
    assert_true(ch_shape_rmsd(&e, a, b) == 0 && ch_shape_least(&e, a, b) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_atoms_are_mapped_on_each_other), cmocka_unit_test(the_rmsd_is_the_least_over_all_maps),
        cmocka_unit_test(the_distance_of_two_shapes_is_known),  cmocka_unit_test(exchanged_atoms_are_no_difference),
        cmocka_unit_test(nothing_heavy_has_no_difference),
    };

    return cmocka_run_group_tests(tests, make, drop);
}
