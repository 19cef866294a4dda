/* SPDX-License-Identifier: Apache-2.0 */
/* Rings, bounds and distance geometry of ligands, cages, macrocycles and fused rings. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "chem/structures/check.h"
#include "chem/structures/embed.h"
#include "sdf_mol.h"

enum { MAX = 340, ATTEMPTS = 20 };

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

static const sdf_mol *named(const char *name)
{
    for (int32_t k = 0; k < n_all; k++)
        if (strcmp(all[k].name, name) == 0)
            return &all[k];
    fail_msg("%s is not in the data", name);
    return NULL;
}

static ch_bounds bounds_of(const sdf_mol *m, const ch_stereo *s, const ch_kernels *k, pl_arena *own)
{
    ch_cycles *c = PL_NEW(own, ch_cycles, 1);
    ch_bounds b;
    pl_error err = { 0 };

    assert_int_equal(ch_cycles_make(c, &m->mol, own, &err), PL_OK);
    if (ch_bounds_make(&b, c, &m->terms, s, k, own, &err) != PL_OK)
        fail_msg("%s: %s", m->name, err.text);
    return b;
}

static double apart(const float (*x)[3], int32_t i, int32_t j)
{
    const double a = (double)(x[i][0] - x[j][0]), b = (double)(x[i][1] - x[j][1]), c = (double)(x[i][2] - x[j][2]);

    return sqrt(a * a + b * b + c * c);
}

static int rings_of(const ch_cycles *c, int size)
{
    int n = 0;

    for (int32_t r = 0; r < c->n; r++)
        n += c->cycle[r].size == size;
    return n;
}

static void rings_are_found(void **state)
{
    static const struct {
        const char *smiles;
        int size, n;
    } known[] = {
        { "C1CC2CCC1C2", 5, 2 },         { "C12C3C4C1C5C2C3C45", 4, 6 },
        { "C1C2CC3CC1CC(C2)C3", 6, 4 },  { "c1ccc2c(c1)ccc1ccccc12", 6, 3 },
        { "C1CC11CCCC1", 3, 1 },         { "C1CC11CCCC1", 5, 1 },
        { "O=C1CCCCCCCCCCCCCC1", 6, 0 }, { "C1CN2CCN1CC2", 6, 3 },
        { "C1=CCCCCCC1", 8, 1 },         { "C1CC/C=C/CCC1", 8, 1 },
    };

    (void)state;
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        ch_cycles c;
        assert_int_equal(ch_cycles_make(&c, &named(known[k].smiles)->mol, mem, NULL), PL_OK);
        if (rings_of(&c, known[k].size) != known[k].n)
            fail_msg("%s: %d rings of %d", known[k].smiles, rings_of(&c, known[k].size), known[k].size);
        assert_true(c.connected);
    }
}

static void bounds_obey_the_triangle_inequality(void **state)
{
    (void)state;
    for (int s = 0; ch_kernels_at(s) != NULL; s++)
        for (int32_t m = 0; m < n_all; m += 3) {
            pl_arena *own = pl_arena_new(1 << 18);
            const ch_stereo none = { 0 };
            const ch_bounds b = bounds_of(&all[m], &none, ch_kernels_at(s), own);
            double worst = 0;
            for (int32_t i = 0; i < b.n; i++)
                for (int32_t j = 0; j < b.n; j++) {
                    const float u = b.upper[i * b.stride + j], l = b.lower[i * b.stride + j];
                    assert_true(l <= u && l >= 0 && u < 1000 && (i == j || u > 0));
                    for (int32_t k = 0; k < b.n; k++) {
                        worst = fmax(worst, (double)(u - b.upper[i * b.stride + k] - b.upper[k * b.stride + j]));
                        worst = fmax(worst, (double)(b.lower[i * b.stride + k] - b.upper[k * b.stride + j] - l));
                    }
                }
            if (!(worst < 0.05))
                fail_msg("%s: off by %g", all[m].name, worst);
            pl_arena_free(own);
        }
}

/* The structures of the file are minima of the same force field or experiments: few of their distances may lie outside. */
static void structures_of_ring_systems_lie_within_the_bounds(void **state)
{
    int64_t outside = 0, pairs = 0;

    (void)state;
    for (int32_t m = 0; m < n_all; m++) {
        const float(*x)[3] = (const float(*)[3])all[m].mol.xyz;
        const ch_stereo s = sdf_stereo(&all[m].mol, mem);
        const ch_bounds b = bounds_of(&all[m], &s, ch_kernels_find(NULL), mem);
        for (int32_t i = 0; strchr(all[m].name, '_') == NULL && i < b.n; i++)
            for (int32_t j = 0; j < i; j++, pairs++)
                outside += apart(x, i, j) > (double)b.upper[i * b.stride + j] + 0.25 ||
                           apart(x, i, j) < (double)b.lower[i * b.stride + j] - 0.25;
    }
    if (!(pairs > 10000 && outside < pairs / 100))
        fail_msg("%d of %d distances are more than 0.25 A outside", (int)outside, (int)pairs);
}

static void every_molecule_is_embedded_with_its_stereo(void **state)
{
    (void)state;
    for (int s = 0; ch_kernels_at(s) != NULL; s++) {
        int first = 0, centres = 0;
        for (int32_t m = 0; m < n_all; m++) {
            pl_arena *own = pl_arena_new(1 << 18);
            const ch_stereo stereo = sdf_stereo(&all[m].mol, own);
            const ch_bounds b = bounds_of(&all[m], &stereo, ch_kernels_at(s), own);
            float(*x)[3] = pl_arena_get(own, (size_t)b.n, sizeof *x);
            ch_embedder e;
            ch_embedded r = { .what = CH_FAR_FROM_BOUNDS };
            assert_int_equal(ch_embedder_make(&e, &b, ch_kernels_at(s), own, NULL), PL_OK);
            for (uint32_t a = 0; a < ATTEMPTS && r.what != CH_EMBEDDED; a++) {
                pl_rng random = pl_rng_at(1, (uint64_t)m, a);
                r = ch_embed(x, &e, 1, &random);
                first += a == 0 && r.what == CH_EMBEDDED;
            }
            if (r.what != CH_EMBEDDED)
                fail_msg("%s, %s: not embedded: %d, error %g, violation %g", ch_kernels_at(s)->name, all[m].name, r.what, r.error,
                         r.violation);
            for (int32_t k = 0; k < stereo.n_centres; k++)
                if (!(ch_centre_volume((const float(*)[3])x, &stereo.centres[k]) * stereo.centres[k].sign > 0))
                    fail_msg("%s: centre %d is inside out", all[m].name, (int)stereo.centres[k].atom);
            centres += stereo.n_centres;
            pl_arena_free(own);
        }
        assert_true(centres > 500);
        if (!(first >= n_all * 97 / 100))
            fail_msg("only %d of %d at the first attempt", first, (int)n_all);
    }
}

static void the_stream_names_the_structure(void **state)
{
    const sdf_mol *m = &all[5];
    const ch_stereo stereo = sdf_stereo(&m->mol, mem);
    const ch_bounds b = bounds_of(m, &stereo, ch_kernels_find(NULL), mem);
    float(*x[3])[3];
    ch_embedder e;

    (void)state;
    assert_int_equal(ch_embedder_make(&e, &b, ch_kernels_find(NULL), mem, NULL), PL_OK);
    for (uint32_t k = 0; k < 3; k++) {
        pl_rng random = pl_rng_at(1, 2, k % 2);
        x[k] = pl_arena_get(mem, (size_t)b.n, sizeof *x[k]);
        (void)ch_embed(x[k], &e, 1, &random);
    }
    assert_memory_equal(x[0], x[2], (size_t)b.n * sizeof *x[0]);
    assert_memory_not_equal(x[0], x[1], (size_t)b.n * sizeof *x[0]);
}

/* Both forms of every centre can be built if all centres change together: the mirror image of a molecule always exists. */
static void the_mirror_image_is_embedded_when_asked_for(void **state)
{
    (void)state;
    for (int32_t m = 0; m < n_all; m += 4) {
        pl_arena *own = pl_arena_new(1 << 18);
        ch_stereo stereo = sdf_stereo(&all[m].mol, own);
        ch_centre *turned = PL_NEW(own, ch_centre, stereo.n_centres + 1);
        for (int32_t k = 0; k < stereo.n_centres; k++) {
            turned[k] = stereo.centres[k];
            turned[k].sign = (int8_t)-turned[k].sign;
        }
        stereo.centres = turned;
        const ch_bounds b = bounds_of(&all[m], &stereo, ch_kernels_find(NULL), own);
        float(*x)[3] = pl_arena_get(own, (size_t)b.n, sizeof *x);
        ch_embedder e;
        ch_embedded r = { .what = CH_FAR_FROM_BOUNDS };
        assert_int_equal(ch_embedder_make(&e, &b, ch_kernels_find(NULL), own, NULL), PL_OK);
        for (uint32_t a = 0; a < ATTEMPTS && r.what != CH_EMBEDDED; a++) {
            pl_rng random = pl_rng_at(1, (uint64_t)m, a);
            r = ch_embed(x, &e, 1, &random);
        }
        assert_int_equal(r.what, CH_EMBEDDED);
        for (int32_t k = 0; k < stereo.n_centres; k++)
            assert_true(ch_centre_volume((const float(*)[3])x, &turned[k]) * turned[k].sign > 0);
        pl_arena_free(own);
    }
}

/* A centre that must have both signs: its distances are possible, its stereo is not. */
static void impossible_stereo_is_told(void **state)
{
    const sdf_mol *m = &all[5];
    const ch_stereo real = sdf_stereo(&m->mol, mem);
    ch_centre both[2] = { real.centres[0], real.centres[0] };
    const ch_stereo stereo = { .n_centres = 2, .centres = both };
    ch_embedder e;

    (void)state;
    assert_true(real.n_centres > 0);
    both[1].sign = (int8_t)-both[1].sign;
    const ch_bounds b = bounds_of(m, &stereo, ch_kernels_find(NULL), mem);
    float(*x)[3] = pl_arena_get(mem, (size_t)b.n, sizeof *x);
    assert_int_equal(ch_embedder_make(&e, &b, ch_kernels_find(NULL), mem, NULL), PL_OK);
    for (uint32_t a = 0; a < 5; a++) {
        pl_rng random = pl_rng_at(1, 2, a);
        assert_int_equal(ch_embed(x, &e, 1, &random).what, CH_WRONG_CHIRALITY);
    }
}

/* Two ends of a bond that must be 9 A apart. */
static void impossible_distances_are_told(void **state)
{
    const sdf_mol *m = &all[5];
    const ch_stereo none = { 0 };
    const ch_bounds b = bounds_of(m, &none, ch_kernels_find(NULL), mem);
    const int32_t i = m->mol.bond[0][0], j = m->mol.bond[0][1];
    float(*x)[3] = pl_arena_get(mem, (size_t)b.n, sizeof *x);
    pl_rng random = pl_rng_at(1, 2, 3);
    ch_embedder e;

    (void)state;
    b.lower[i * b.stride + j] = b.lower[j * b.stride + i] = b.upper[i * b.stride + j] = b.upper[j * b.stride + i] = 9;
    assert_int_equal(ch_embedder_make(&e, &b, ch_kernels_find(NULL), mem, NULL), PL_OK);
    const ch_embedded r = ch_embed(x, &e, 0, &random);
    assert_int_equal(r.what, CH_FAR_FROM_BOUNDS);
    assert_true(r.violation > 0.5);
}

/* At a low temperature only the best torsion is drawn, at a high one any. */
static void torsions_follow_their_energy(void **state)
{
    int rotors = 0, various = 0;

    (void)state;
    for (int32_t m = 0; m < n_all; m += 10) {
        const ch_stereo none = { 0 };
        const ch_bounds b = bounds_of(&all[m], &none, ch_kernels_find(NULL), mem);
        for (int32_t k = 0; k < b.rotors.n; k++, rotors++) {
            const ch_rotor *r = &b.rotors.rotor[k];
            pl_rng random = pl_rng_at(1, (uint64_t)m, (uint32_t)k);
            bool best = false, differ = false;
            const float cold = ch_rotor_draw(r, 1e-3, &random), hot = ch_rotor_draw(r, 1e6, &random);
            for (int a = 0; a < CH_ROTOR_ANGLES; a++)
                best = best || (cold == r->distance[a] && r->energy[a] < 0.1);
            for (int d = 0; d < 10; d++)
                differ = differ || ch_rotor_draw(r, 1e6, &random) != hot;
            assert_true(best);
            various += differ;
        }
    }
    assert_true(rotors > 50 && various == rotors);
}

static void stereo_of_atoms_that_are_not_bonded_is_refused(void **state)
{
    const sdf_mol *m = named("C/C=C/C=C\\C(=O)NC");
    ch_centre centre = { 0, { 1, 2, 3, 4 }, 1 };
    ch_double_bond bond = { 0, 2, 1, 3, true };
    const ch_axis axes[2] = { { { 0, 1, 2, 3 } }, { { 0, 1, 2, m->mol.n_atoms } } };
    ch_stereo s = { .n_centres = 1, .centres = &centre };
    ch_cycles c;
    ch_bounds b;
    pl_error err = { 0 };

    (void)state;
    assert_int_equal(ch_cycles_make(&c, &m->mol, mem, NULL), PL_OK);
    assert_int_equal(ch_bounds_make(&b, &c, &m->terms, &s, ch_kernels_find(NULL), mem, &err), PL_EINPUT);
    assert_string_equal(err.text, "stereocentre 1 does not name four different neighbours of its atom and a sign");
    s = (ch_stereo){ .n_double_bonds = 1, .double_bonds = &bond };
    assert_int_equal(ch_bounds_make(&b, &c, &m->terms, &s, ch_kernels_find(NULL), mem, &err), PL_EINPUT);
    assert_string_equal(err.text, "double bond 1 of the stereo does not name four atoms in a row");
    s = (ch_stereo){ .n_axes = 2, .axes = axes };
    assert_int_equal(ch_bounds_make(&b, &c, &m->terms, &s, ch_kernels_find(NULL), mem, &err), PL_EINPUT);
    assert_string_equal(err.text, "axis 2 of the stereo does not name four different atoms");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rings_are_found),
        cmocka_unit_test(bounds_obey_the_triangle_inequality),
        cmocka_unit_test(structures_of_ring_systems_lie_within_the_bounds),
        cmocka_unit_test(every_molecule_is_embedded_with_its_stereo),
        cmocka_unit_test(the_stream_names_the_structure),
        cmocka_unit_test(the_mirror_image_is_embedded_when_asked_for),
        cmocka_unit_test(impossible_stereo_is_told),
        cmocka_unit_test(impossible_distances_are_told),
        cmocka_unit_test(torsions_follow_their_energy),
        cmocka_unit_test(stereo_of_atoms_that_are_not_bonded_is_refused),
    };

    return cmocka_run_group_tests(tests, make, drop);
}
