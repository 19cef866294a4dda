/* SPDX-License-Identifier: Apache-2.0 */
/* Built structures are physical, by rules that know elements and bonds only, not the builder's own checks: lengths of bonds against radii,
 * angles, contacts, flat aromatic rings and double bonds, energy beside other structures. After PoseBusters (Buttenschoen 2024). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "chem/structures/cycles.h"
#include "chem/structures/structure.h"
#include "sdf_mol.h"

enum { MOST = 250, OTHERS = 6 };

static pl_arena *mem;
static sdf_mol *all;
static int32_t n_all;

static int make(void **state)
{
    (void)state;
    mem = pl_arena_new(1 << 20);
    all = PL_NEW(mem, sdf_mol, MOST);
    n_all = sdf_read_terms(all, MOST, 200, MOLSIEVE_TESTS, mem);
    return n_all >= 200 ? 0 : -1;
}

static int drop(void **state)
{
    (void)state;
    pl_arena_free(mem);
    return 0;
}

static const struct {
    int z;
    double covalent, contact; /* Cordero 2008, Bondi 1964; Angstrom */
} radii[] = { { 1, 0.31, 1.2 },  { 6, 0.76, 1.7 },  { 7, 0.71, 1.55 },  { 8, 0.66, 1.52 }, { 9, 0.57, 1.47 },
              { 15, 1.07, 1.8 }, { 16, 1.05, 1.8 }, { 17, 1.02, 1.75 }, { 35, 1.2, 1.85 }, { 53, 1.39, 1.98 } };

static double radius(int z, bool contact)
{
    for (size_t k = 0; k < sizeof radii / sizeof *radii; k++)
        if (radii[k].z == z)
            return contact ? radii[k].contact : radii[k].covalent;
    fail_msg("no radius of element %d", z);
    return NAN;
}

static void minus(double out[3], const float *a, const float *b)
{
    for (int c = 0; c < 3; c++)
        out[c] = (double)a[c] - (double)b[c];
}

static double dot(const double *a, const double *b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

static void cross(double out[3], const double *a, const double *b)
{
    out[0] = a[1] * b[2] - a[2] * b[1];
    out[1] = a[2] * b[0] - a[0] * b[2];
    out[2] = a[0] * b[1] - a[1] * b[0];
}

static double apart(const float (*x)[3], int32_t i, int32_t j)
{
    double d[3];

    minus(d, x[i], x[j]);
    return sqrt(dot(d, d));
}

static void lengths_are_near_the_sums_of_radii(const ch_mol *mol, const float (*x)[3], const char *name)
{
    for (int32_t b = 0; b < mol->n_bonds; b++) {
        const int32_t i = mol->bond[b][0], j = mol->bond[b][1];
        const double ratio = apart(x, i, j) / (radius(mol->z[i], false) + radius(mol->z[j], false));
        if (!(ratio > 0.75 && ratio < 1.25))
            fail_msg("%s: bond %d-%d is %.2f of its radii", name, (int)i, (int)j, ratio);
    }
}

/* Three-membered rings have 60 degrees, four-membered ones 90; nothing is below. */
static void angles_are_open(const ch_cycles *c, const float (*x)[3], const char *name)
{
    for (int32_t j = 0; j < c->mol->n_atoms; j++)
        for (int32_t p = c->first[j]; p < c->first[j + 1]; p++)
            for (int32_t q = c->first[j]; q < p; q++) {
                double a[3], b[3];
                const bool ring = c->of_bond[c->by[p]] > 0 && c->of_bond[c->by[q]] > 0;
                minus(a, x[c->neighbour[p]], x[j]);
                minus(b, x[c->neighbour[q]], x[j]);
                const double degrees = 57.29577951308232 * acos(dot(a, b) / sqrt(dot(a, a) * dot(b, b)));
                if (!(degrees > (ring ? 50 : 85)))
                    fail_msg("%s: angle of %.0f degrees at atom %d", name, degrees, (int)j);
            }
}

/* Bonds between two atoms, up to 4. */
static int steps(const ch_cycles *c, int32_t from, int32_t to, int left)
{
    int best = 5;

    if (from == to)
        return 0;
    for (int32_t k = c->first[from]; left > 0 && k < c->first[from + 1]; k++) {
        const int n = 1 + steps(c, c->neighbour[k], to, left - 1);
        best = n < best ? n : best;
    }
    return best;
}

static void heavy_atoms_do_not_meet(const ch_cycles *c, const float (*x)[3], const char *name)
{
    const uint8_t *z = c->mol->z;

    for (int32_t i = 0; i < c->mol->n_atoms; i++)
        for (int32_t j = 0; z[i] > 1 && j < i; j++) {
            const double limit = z[j] > 1 ? 0.7 * (radius(z[i], true) + radius(z[j], true)) : 0;
            if (!(apart(x, i, j) > limit) && steps(c, i, j, 3) > 3)
                fail_msg("%s: atoms %d and %d are %.2f apart", name, (int)i, (int)j, apart(x, i, j));
        }
}

/* The largest distance of n atoms from their plane, whose normal is the sum of the triangles with the middle. */
static double from_plane(const float (*x)[3], const int32_t *atom, int n)
{
    float middle[3] = { 0 };
    double normal[3] = { 0 }, most = 0;

    for (int k = 0; k < n; k++)
        for (int d = 0; d < 3; d++)
            middle[d] += x[atom[k]][d] / (float)n;
    for (int k = 0; k < n; k++) {
        double a[3], b[3], v[3];
        minus(a, x[atom[k]], middle);
        minus(b, x[atom[(k + 1) % n]], middle);
        cross(v, a, b);
        for (int d = 0; d < 3; d++)
            normal[d] += v[d];
    }
    for (int k = 0; k < n; k++) {
        double a[3];
        minus(a, x[atom[k]], middle);
        most = fmax(most, fabs(dot(a, normal)) / sqrt(dot(normal, normal)));
    }
    return most;
}

/* A ring of six carbons or nitrogens with three bonds each, or two, whose bonds are drawn single and double in turn. */
static bool is_benzene_like(const ch_cycles *c, const ch_cycle *r)
{
    int doubles = 0;

    for (int32_t k = 0; k < r->size; k++) {
        const int32_t a = r->atom[k], b = ch_cycles_bond(c, a, r->atom[(k + 1) % r->size]);
        doubles += c->mol->order[b] == CH_DOUBLE;
    }
    return r->size == 6 && doubles == 3;
}

static int rings_are_flat(const ch_cycles *c, const float (*x)[3], const char *name)
{
    int n = 0;

    for (int32_t r = 0; r < c->n; r++)
        if (is_benzene_like(c, &c->cycle[r])) {
            n++;
            if (!(from_plane(x, c->cycle[r].atom, 6) < 0.25))
                fail_msg("%s: an aromatic ring is not flat", name);
        }
    return n;
}

/* C=C with three neighbours at both ends: the six atoms are in one plane, in the order a b (c c) d e around them. */
static int double_bonds_are_flat(const ch_cycles *c, const float (*x)[3], const char *name)
{
    int n = 0;

    for (int32_t b = 0; b < c->mol->n_bonds; b++) {
        const int32_t i = c->mol->bond[b][0], j = c->mol->bond[b][1];
        if (c->mol->order[b] != CH_DOUBLE || c->mol->z[i] != 6 || c->mol->z[j] != 6 || ch_cycles_degree(c, i) != 3 ||
            ch_cycles_degree(c, j) != 3)
            continue;
        for (int end = 0; end < 2; end++) { /* a trigonal atom and its neighbours */
            const int32_t *near = c->neighbour + c->first[end == 0 ? i : j];
            const int32_t atom[4] = { near[0], near[1], near[2], end == 0 ? i : j };
            double u[3], v[3], w[3], normal[3];
            minus(u, x[atom[1]], x[atom[0]]);
            minus(v, x[atom[2]], x[atom[0]]);
            minus(w, x[atom[3]], x[atom[0]]);
            cross(normal, u, v);
            if (!(fabs(dot(normal, w)) / sqrt(dot(normal, normal)) < 0.25))
                fail_msg("%s: atom %d of a double bond is not flat", name, (int)atom[3]);
        }
        n++;
    }
    return n;
}

static void structures_have_sound_geometry(void **state)
{
    int rings = 0, bonds = 0;

    (void)state;
    for (int32_t k = 0; k < n_all; k++) {
        pl_arena *own = pl_arena_new(1 << 18);
        const ch_structure_options o = { .seed = 3, .name = (uint64_t)k };
        const ch_stereo stereo = sdf_stereo(&all[k].mol, own);
        ch_structures r;
        ch_cycles c;
        assert_int_equal(ch_structure_build(&r, &all[k].mol, &stereo, &all[k].terms, &o, own, own, NULL), PL_OK);
        assert_int_equal(ch_cycles_make(&c, &all[k].mol, own, NULL), PL_OK);
        const float(*x)[3] = (const float(*)[3])r.all[0].xyz;
        lengths_are_near_the_sums_of_radii(&all[k].mol, x, all[k].name);
        angles_are_open(&c, x, all[k].name);
        heavy_atoms_do_not_meet(&c, x, all[k].name);
        rings += rings_are_flat(&c, x, all[k].name);
        bonds += double_bonds_are_flat(&c, x, all[k].name);
        pl_arena_free(own);
    }
    assert_true(rings > 50 && bonds > 20);
}

/* Of every eighth molecule: not strained beyond 1 kcal/mol a heavy atom above the mean of others. */
static void energies_are_near_those_of_other_structures(void **state)
{
    (void)state;
    for (int32_t k = 0; k < n_all; k += 8) {
        pl_arena *own = pl_arena_new(1 << 18);
        const ch_stereo stereo = sdf_stereo(&all[k].mol, own);
        double energy[OTHERS + 1], mean = 0;
        int heavy = 0;
        for (int32_t i = 0; i < all[k].mol.n_atoms; i++)
            heavy += all[k].mol.z[i] > 1;
        for (int s = 0; s <= OTHERS; s++) {
            const ch_structure_options o = { .seed = (uint64_t)s, .name = (uint64_t)k };
            ch_structures r;
            assert_int_equal(ch_structure_build(&r, &all[k].mol, &stereo, &all[k].terms, &o, own, own, NULL), PL_OK);
            energy[s] = r.all[0].energy;
            mean += s > 0 ? energy[s] / OTHERS : 0;
        }
        if (!(energy[0] - mean < heavy))
            fail_msg("%s: %.1f kcal/mol above the mean of others", all[k].name, energy[0] - mean);
        pl_arena_free(own);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(structures_have_sound_geometry),
        cmocka_unit_test(energies_are_near_those_of_other_structures),
    };

    return cmocka_run_group_tests(tests, make, drop);
}
