/* SPDX-License-Identifier: Apache-2.0 */
/* Whole structures: every molecule is built, with its stereo, in a minimum, the same every time; ensembles; refusals. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "chem/structures/shape.h"
#include "chem/structures/structure.h"
#include "pipeline/base/rng.h"
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

static int32_t number_of(const char *name)
{
    for (int32_t k = 0; k < n_all; k++)
        if (strcmp(all[k].name, name) == 0)
            return k;
    fail_msg("%s is not in the data", name);
    return -1;
}

static ch_structures build(int32_t k, const ch_structure_options *o, pl_arena *own)
{
    const ch_stereo stereo = sdf_stereo(&all[k].mol, own);
    ch_structures out;
    pl_error err = { 0 };

    if (ch_structure_build(&out, &all[k].mol, &stereo, &all[k].terms, o, own, own, &err) != PL_OK)
        fail_msg("%s: %s", all[k].name, err.text);
    return out;
}

static void every_molecule_is_built_with_its_stereo(void **state)
{
    (void)state;
    for (int s = 0; ch_kernels_at(s) != NULL; s++) {
        int first = 0;
        for (int32_t k = 0; k < n_all; k++) {
            pl_arena *own = pl_arena_new(1 << 18);
            const ch_structure_options o = { .seed = 1, .name = (uint64_t)k, .kernels = ch_kernels_at(s) };
            const ch_structures r = build(k, &o, own);
            const ch_stereo stereo = sdf_stereo(&all[k].mol, own);
            ch_cycles c;
            assert_int_equal(ch_cycles_make(&c, &all[k].mol, own, NULL), PL_OK);
            assert_int_equal(ch_check((const float(*)[3])r.all[0].xyz, &c, &all[k].terms, &stereo).fault, CH_NO_FAULT);
            assert_int_equal(r.n, 1);
            assert_true(r.all[0].converged && r.all[0].gradient < 0.01);
            first += r.all[0].attempts == 1;
            pl_arena_free(own);
        }
        if (!(first >= n_all * 95 / 100))
            fail_msg("only %d of %d at the first attempt", first, (int)n_all);
    }
}

/* How different two structures of a molecule are. */
static double rmsd(const ch_mol *mol, const float (*a)[3], const float (*b)[3])
{
    pl_arena *own = pl_arena_new(1 << 16);
    ch_cycles cycles;
    ch_equal equal;

    assert_int_equal(ch_cycles_make(&cycles, mol, own, NULL), PL_OK);
    assert_int_equal(ch_equal_make(&equal, &cycles, own, NULL), PL_OK);
    const double r = ch_shape_rmsd(&equal, a, b);
    pl_arena_free(own);
    return r;
}

static void an_ensemble_is_sorted_distinct_and_within_its_window(void **state)
{
    int several = 0;

    (void)state;
    for (int32_t k = 0; k < n_all; k += 20) {
        pl_arena *own = pl_arena_new(1 << 18);
        const ch_structure_options o = { .seed = 1, .name = (uint64_t)k, .count = 12, .window = 8 };
        const ch_structures r = build(k, &o, own);
        assert_true(r.n >= 1 && r.n <= 12);
        for (int32_t i = 0; i < r.n; i++) {
            assert_true(r.all[i].energy <= r.all[0].energy + 8 && (i == 0 || r.all[i].energy >= r.all[i - 1].energy));
            for (int32_t j = 0; j < i; j++)
                assert_true(rmsd(&all[k].mol, (const float(*)[3])r.all[i].xyz, (const float(*)[3])r.all[j].xyz) >= 0.5);
        }
        several += r.n > 3;
        assert_true(r.n == 12 || r.tries.attempts > 12); /* others were built in place of those left out */
        pl_arena_free(own);
    }
    assert_true(several > 5);
}

static double nearest(const ch_mol *mol, const ch_structures *r, const ch_structure *x)
{
    double least = INFINITY;

    for (int32_t k = 0; k < r->n; k++)
        if (r->all[k].xyz != x->xyz)
            least = fmin(least, rmsd(mol, (const float(*)[3])r->all[k].xyz, (const float(*)[3])x->xyz));
    return least;
}

static bool is_among(const ch_structures *r, const ch_structure *x)
{
    for (int32_t k = 0; k < r->n; k++)
        if (r->all[k].xyz == x->xyz)
            return true;
    return false;
}

/* Of 16 structures that are given 8 are kept: no other one is farther from those kept than they are from each other. */
static void an_ensemble_is_chosen_for_its_differences(void **state)
{
    int tried = 0;

    (void)state;
    for (int32_t k = 0; k < n_all; k += 20) {
        pl_arena *own = pl_arena_new(1 << 18);
        ch_structure_options o = { .seed = 1, .name = (uint64_t)k, .count = 16, .window = 1000 };
        const ch_structures pool = build(k, &o, own);
        if (pool.n == 16) {
            o.count = 8;
            o.given = pool.all;
            assert_int_equal(ch_structure_pool(&o), 16);
            const ch_structures r = build(k, &o, own);
            double least = INFINITY, most = 0;
            for (int32_t i = 0; i < r.n; i++)
                least = fmin(least, nearest(&all[k].mol, &r, &r.all[i]));
            for (int32_t i = 0; i < pool.n; i++)
                if (!is_among(&r, &pool.all[i]))
                    most = fmax(most, nearest(&all[k].mol, &r, &pool.all[i]));
            assert_int_equal(r.n, 8);
            assert_true(r.all[0].xyz == pool.all[0].xyz && most <= least);
            tried++;
        }
        pl_arena_free(own);
    }
    assert_true(tried > 5);
}

/* Turned by 90 degrees about z and moved; and mirrored. */
static void shapes_are_compared_after_superposition(void **state)
{
    int twisted = 0;

    (void)state;
    for (int32_t k = 0; k < n_all; k += 20) {
        pl_arena *own = pl_arena_new(1 << 18);
        const ch_structure_options o = { .seed = 1, .name = (uint64_t)k };
        const ch_structures r = build(k, &o, own);
        const int32_t n = all[k].mol.n_atoms;
        const float(*x)[3] = (const float(*)[3])r.all[0].xyz;
        float(*y)[3] = pl_arena_get(own, (size_t)n, sizeof *y);
        for (int32_t i = 0; i < n; i++) {
            y[i][0] = 3 - x[i][1];
            y[i][1] = x[i][0] - 7;
            y[i][2] = x[i][2] + 1;
        }
        assert_true(rmsd(&all[k].mol, x, (const float(*)[3])y) < 1e-3);
        for (int32_t i = 0; i < n; i++)
            y[i][2] = -y[i][2];
        twisted += rmsd(&all[k].mol, x, (const float(*)[3])y) > 0.5;
        pl_arena_free(own);
    }
    assert_true(twisted > 5);
}

/* Whether an energy is within 0.1 kcal/mol of one that was seen. */
static bool is_known(const double *seen, int n, double energy)
{
    for (int k = 0; k < n; k++)
        if (fabs(seen[k] - energy) < 0.1)
            return true;
    return false;
}

/* The random start decides the pucker of rings: cyclooctene has three minima that differ by 2 and 5 kcal/mol, macrocycles have many. */
static void rings_take_all_of_their_forms(void **state)
{
    static const struct {
        const char *smiles;
        int forms;
    } rings[] = { { "C1=CCCCCCC1", 3 }, { "O=C1CCCCCCCCCCCCCC1", 10 }, { "C1COCCOCCOCCOCCOCCO1", 10 }, { "C1CCC2CCCCC2C1", 2 } };

    (void)state;
    for (int k = 0; k < 4; k++) {
        double seen[20];
        int n = 0;
        for (uint64_t seed = 0; seed < 20; seed++) {
            pl_arena *own = pl_arena_new(1 << 18);
            const int32_t m = number_of(rings[k].smiles);
            const ch_stereo none = { 0 };
            const ch_structure_options o = { .seed = seed };
            ch_structures r;
            assert_int_equal(ch_structure_build(&r, &all[m].mol, &none, &all[m].terms, &o, own, own, NULL), PL_OK);
            if (!is_known(seen, n, r.all[0].energy))
                seen[n++] = r.all[0].energy;
            pl_arena_free(own);
        }
        if (!(n >= rings[k].forms))
            fail_msg("%s: %d forms", rings[k].smiles, n);
    }
}

typedef struct share {
    int32_t from;
    uint64_t hash;
} share;

/* Every second molecule, in an arena used before by other molecules. */
static void *build_share(void *arg)
{
    share *s = arg;
    pl_arena *own = pl_arena_new(1 << 18);

    for (int32_t k = s->from; k < 60; k += 2) {
        const ch_structure_options o = { .seed = 1, .name = (uint64_t)k, .count = 2 };
        const ch_stereo stereo = sdf_stereo(&all[k].mol, own);
        ch_structures r;
        if (ch_structure_build(&r, &all[k].mol, &stereo, &all[k].terms, &o, own, own, NULL) == PL_OK)
            for (int32_t i = 0; i < 3 * all[k].mol.n_atoms; i++) {
                uint32_t bits;
                memcpy(&bits, &r.all[0].xyz[i / 3][i % 3], sizeof bits);
                s->hash = pl_splitmix64(s->hash ^ bits);
            }
        pl_arena_reset(own);
    }
    pl_arena_free(own);
    return NULL;
}

static void threads_and_order_change_nothing(void **state)
{
    share alone[2] = { { 0, 0 }, { 1, 0 } }, together[2] = { { 0, 0 }, { 1, 0 } };
    pthread_t threads[2];

    (void)state;
    for (int k = 0; k < 2; k++)
        (void)build_share(&alone[k]);
    for (int k = 0; k < 2; k++)
        assert_int_equal(pthread_create(&threads[k], NULL, build_share, &together[k]), 0);
    for (int k = 0; k < 2; k++)
        assert_int_equal(pthread_join(threads[k], NULL), 0);
    assert_true(alone[0].hash == together[0].hash && alone[1].hash == together[1].hash && alone[0].hash != alone[1].hash);
}

static void seed_and_name_change_the_structure(void **state)
{
    const ch_structure_options o[3] = { { .seed = 1, .name = 5 }, { .seed = 2, .name = 5 }, { .seed = 1, .name = 6 } };
    const int32_t k = 5;
    const ch_structures a = build(k, &o[0], mem), b = build(k, &o[1], mem), c = build(k, &o[2], mem);
    const size_t bytes = (size_t)all[k].mol.n_atoms * sizeof *a.all[0].xyz;

    (void)state;
    assert_memory_not_equal(a.all[0].xyz, b.all[0].xyz, bytes);
    assert_memory_not_equal(a.all[0].xyz, c.all[0].xyz, bytes);
}

static void assert_refused(const sdf_mol *m, const ch_stereo *s, const ch_structure_options *o, pl_code code, const char *text)
{
    ch_structures out;
    pl_error err = { 0 };

    assert_int_equal(ch_structure_build(&out, &m->mol, s, &m->terms, o, mem, mem, &err), code);
    if (strstr(err.text, text) == NULL)
        fail_msg("'%s' does not say '%s'", err.text, text);
}

static void what_cannot_be_built_is_refused_with_a_reason(void **state)
{
    const ch_stereo none = { 0 };
    const ch_structure_options usual = { .seed = 1 };
    const sdf_mol empty = { .name = "" };
    sdf_mol parts = all[0];

    (void)state;
    assert_refused(&empty, &none, &usual, PL_EINPUT, "the molecule has no atoms");
    parts.mol.n_bonds--;
    assert_refused(&parts, &none, &usual, PL_EINPUT, "the molecule has several parts; structures are built of one");
    parts = all[0];
    parts.terms.n_bonds = 0;
    assert_refused(&parts, &none, &usual, PL_EINPUT, "the force field's bonds and angles are not those of the molecule");
    parts.terms = all[1].terms;
    assert_refused(&parts, &none, &usual, PL_EINPUT, "the force field's bonds and angles are not those of the molecule");
}

/* Bicyclobutane with one bond of a nanometre. */
static void distances_that_cannot_be_are_told(void **state)
{
    const ch_stereo none = { 0 };
    sdf_mol m = all[number_of("C12CC1C2")];
    ch_bond_term *bonds = PL_NEW(mem, ch_bond_term, m.terms.n_bonds);

    (void)state;
    assert_non_null(bonds);
    memcpy(bonds, m.terms.bonds, (size_t)m.terms.n_bonds * sizeof *bonds);
    bonds[0].r0 = 10;
    m.terms.bonds = bonds;
    assert_refused(&m, &none, &(ch_structure_options){ .seed = 1, .attempts = 3 }, PL_EINPUT,
                   "no structure in 3 attempts: distances contradict each other");
}

static void kernels_that_there_are_not_are_refused(void **state)
{
    const ch_stereo none = { 0 };
    const ch_structure_options usual = { .seed = 1 };
    const char *set = getenv("MOLSIEVE_CPU");
    char before[32];

    (void)state;
    (void)snprintf(before, sizeof before, "%s", set != NULL ? set : "");
    assert_int_equal(setenv("MOLSIEVE_CPU", "mmx", 1), 0);
    assert_refused(&all[0], &none, &usual, PL_ECONFIG, "MOLSIEVE_CPU names a set of kernels that this processor lacks");
    assert_int_equal(setenv("MOLSIEVE_CPU", before, 1), 0);
}

/* Norbornane with stereo of its two bridgeheads that no ring allows. */
static void stereo_that_cannot_be_is_refused_and_never_exchanged(void **state)
{
    const sdf_mol *m = &all[number_of("C1CC2CCC1C2")];
    ch_stereo s = sdf_stereo(&m->mol, mem);
    ch_centre *centres = PL_NEW(mem, ch_centre, s.n_centres);
    const ch_structure_options o = { .seed = 1, .attempts = 10 }, little = { .seed = 1, .attempts = 10, .max_work = 1 };
    ch_structures out;
    pl_error err = { 0 };

    (void)state;
    assert_int_equal(s.n_centres, 2);
    memcpy(centres, s.centres, 2 * sizeof *centres);
    centres[0].sign = (int8_t)-centres[0].sign;
    s.centres = centres;
    assert_refused(m, &s, &o, PL_EINPUT, "no structure in 10 attempts: at last a stereocentre is inside out (atom ");
    assert_int_equal(ch_structure_build(&out, &m->mol, &s, &m->terms, &o, mem, mem, &err), PL_EINPUT);
    assert_true(strstr(err.text, "(atom 3)") != NULL || strstr(err.text, "(atom 6)") != NULL); /* by the rounding of a processor */
    assert_refused(m, &s, &little, PL_EINPUT, "no structure within the limit of work; 1 attempts were made");
}

/* A centre that must have both signs. */
static void a_contradiction_is_told(void **state)
{
    const sdf_mol *m = &all[number_of("C1CC2CCC1C2")];
    ch_stereo s = sdf_stereo(&m->mol, mem);
    ch_centre both[2] = { s.centres[0], s.centres[0] };

    (void)state;
    both[1].sign = (int8_t)-both[1].sign;
    s.centres = both;
    assert_refused(m, &s, &(ch_structure_options){ .seed = 1, .attempts = 3 }, PL_EINPUT,
                   "no structure in 3 attempts: the defined stereo could not be reached");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_molecule_is_built_with_its_stereo),
        cmocka_unit_test(kernels_that_there_are_not_are_refused),
        cmocka_unit_test(an_ensemble_is_sorted_distinct_and_within_its_window),
        cmocka_unit_test(an_ensemble_is_chosen_for_its_differences),
        cmocka_unit_test(shapes_are_compared_after_superposition),
        cmocka_unit_test(rings_take_all_of_their_forms),
        cmocka_unit_test(threads_and_order_change_nothing),
        cmocka_unit_test(seed_and_name_change_the_structure),
        cmocka_unit_test(what_cannot_be_built_is_refused_with_a_reason),
        cmocka_unit_test(stereo_that_cannot_be_is_refused_and_never_exchanged),
        cmocka_unit_test(a_contradiction_is_told),
        cmocka_unit_test(distances_that_cannot_be_are_told),
    };

    return cmocka_run_group_tests(tests, make, drop);
}
