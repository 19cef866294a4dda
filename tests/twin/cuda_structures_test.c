/* SPDX-License-Identifier: Apache-2.0 */
/* Structures on the (emulated) GPU against the processor's and the plain reference. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "chem/structures/batch.h"
#include "chem/structures/energy.h"
#include "chem/structures/shape.h"
#include "mmff_suite.h"
#include "pipeline/base/rng.h"
#include "sdf_mol.h"

enum { MOST = 340 };

static pl_arena *mem;
static sdf_mol *all;
static int32_t n_all;

static int make(void **state)
{
    const char *named = getenv("MOLSIEVE_TEST_FILES");

    (void)state;
    mem = pl_arena_new(1 << 20);
    all = PL_NEW(mem, sdf_mol, MOST);
    n_all = sdf_read_terms(all, MOST, 300, named != NULL ? named : MOLSIEVE_TESTS, mem);
    return n_all > 250 ? 0 : -1;
}

static int drop(void **state)
{
    (void)state;
    pl_arena_free(mem);
    return 0;
}

static ch_device *open_device(void)
{
    ch_device *d = NULL;
    pl_error err = { 0 };

    if (ch_device_open(&d, 0, &err) != PL_OK)
        fail_msg("%s", err.text);
    return d;
}

/* ---- energies, relaxing: jobs of our own ---- */

typedef struct trial {
    const ch_terms *terms;
    const float (*xyz)[3];
    float (*after)[3]; /* gradient, or positions */
    char what[240];
    ch_packed packed;
    ch_gpu_result result;
} trial;

static void run(trial *t, int32_t n, int32_t mode, pl_arena *own)
{
    const ch_packed **packed = PL_NEW(own, const ch_packed *, n);
    ch_gpu_job *jobs = PL_NEW(own, ch_gpu_job, n);
    ch_gpu_result *results = PL_NEW(own, ch_gpu_result, n);
    ch_device *d = open_device();
    int64_t floats = 0;
    float *xyz = NULL;

    for (int32_t k = 0; k < n; k++) {
        assert_int_equal(ch_pack(&t[k].packed, t[k].terms, NULL, ch_kernels_find(NULL), own, NULL), PL_OK);
        packed[k] = &t[k].packed;
        /* room for the blocks of the matrix and no more: in shared memory it is scarce */
        assert_int_equal(packed[k]->molecule.n_blocks, packed[k]->words[packed[k]->molecule.at[CH_GPU_ROW] + t[k].terms->n_atoms]);
        jobs[k] = (ch_gpu_job){ .molecule = k, .mode = mode, .max_steps = 2000, .gradient = 0.01, .xyz = floats };
        floats += 3 * (int64_t)t[k].terms->n_atoms;
    }
    xyz = PL_NEW(own, float, floats);
    for (int32_t k = 0; k < n; k++)
        ch_pack_positions(xyz + jobs[k].xyz, packed[k], t[k].xyz);
    assert_int_equal(ch_device_load(d, packed, n, NULL), PL_OK);
    assert_int_equal(ch_device_run(d, jobs, n, results, xyz, floats, NULL), PL_OK);
    for (int32_t k = 0; k < n; k++) {
        t[k].result = results[k];
        t[k].after = pl_arena_get(own, (size_t)t[k].terms->n_atoms, sizeof *t[k].after);
        ch_unpack_positions(t[k].after, packed[k], xyz + jobs[k].xyz);
    }
    ch_device_close(d);
}

/* As compare of structure_energy_test.c. */
static void compare(const trial *t, pl_arena *own)
{
    const int32_t n = t->terms->n_atoms;
    double(*x)[3] = pl_arena_get(own, (size_t)n, sizeof *x), (*g)[3] = pl_arena_get(own, (size_t)n, sizeof *g);
    double sums[CH_N_TERM_CLASSES], size = 1, wrong = 0, steep = 1;

    for (int32_t i = 0; i < 3 * n; i++)
        x[i / 3][i % 3] = (double)t->xyz[i / 3][i % 3];
    ch_energy(sums, g, t->terms, (const double(*)[3])x);
    for (int c = 0; c < CH_N_TERM_CLASSES; c++)
        size += fabs(sums[c]);
    for (int32_t i = 0; i < 3 * n; i++) {
        wrong = fmax(wrong, fabs((double)t->after[i / 3][i % 3] - g[i / 3][i % 3]));
        if (isnan(t->after[i / 3][i % 3]))
            wrong = NAN;
        steep = fmax(steep, fabs(g[i / 3][i % 3]));
    }
    if (!(fabs(t->result.energy - ch_energy_total(sums)) <= 1e-5 * size) || !(wrong <= 2e-4 * steep))
        fail_msg("%s: energy %.6f, reference %.6f (sizes %.1f); gradient differs by %.2g of %.2g", t->what, t->result.energy,
                 ch_energy_total(sums), size, wrong, steep);
}

static void energies_and_gradients_are_those_of_the_reference(void **state)
{
    pl_arena *own = pl_arena_new(1 << 20);
    trial *t = PL_NEW(own, trial, MOST * (CH_N_TERM_CLASSES + 1));
    int32_t n = 0;

    (void)state;
    for (int32_t k = 0; k < n_all; k += 3)
        for (int class = 0; class <= CH_N_TERM_CLASSES; class ++) {
            ch_terms *terms = PL_NEW(own, ch_terms, 1);
            if ((class < CH_N_TERM_CLASSES && k % 7 != 0) || all[k].mol.n_atoms > CH_GPU_MOST_ATOMS)
                continue;
            *terms = class < CH_N_TERM_CLASSES ? suite_only(&all[k].terms, class, own) : all[k].terms;
            t[n] = (trial){ .terms = terms, .xyz = (const float(*)[3])all[k].mol.xyz };
            (void)snprintf(t[n++].what, sizeof t->what, "%s, %s", all[k].name,
                           class < CH_N_TERM_CLASSES ? ch_term_class_name((enum ch_term_class) class) : "all classes");
        }
    run(t, n, CH_GPU_ENERGY, own);
    for (int32_t k = 0; k < n; k++)
        compare(&t[k], own);
    pl_arena_free(own);
}

static float (*shaken(const sdf_mol *m, uint64_t seed, pl_arena *own))[3]
{
    float(*x)[3] = pl_arena_get(own, (size_t)m->mol.n_atoms, sizeof *x);
    pl_rng r = pl_rng_at(seed, 1, 1);

    for (int32_t i = 0; i < 3 * m->mol.n_atoms; i++)
        x[i / 3][i % 3] = m->mol.xyz[i / 3][i % 3] - m->mol.xyz[0][i % 3] + (float)(0.1 * pl_rng_normal(&r));
    return x;
}

static void what_is_relaxed_is_a_minimum_of_the_reference(void **state)
{
    pl_arena *own = pl_arena_new(1 << 20);
    trial *t = PL_NEW(own, trial, MOST);
    int32_t n = 0, steps = 0;

    (void)state;
    for (int32_t k = 0; k < n_all; k += 12) {
        t[n] = (trial){ .terms = &all[k].terms, .xyz = (const float(*)[3])shaken(&all[k], (uint64_t)k, own) };
        (void)snprintf(t[n++].what, sizeof t->what, "%s", all[k].name);
    }
    run(t, n, CH_GPU_RELAX, own);
    for (int32_t k = 0; k < n; k++) {
        const int32_t atoms = t[k].terms->n_atoms;
        double(*x)[3] = pl_arena_get(own, (size_t)atoms, sizeof *x), (*g)[3] = pl_arena_get(own, (size_t)atoms, sizeof *g);
        double sums[CH_N_TERM_CLASSES], rms = 0;
        for (int32_t i = 0; i < 3 * atoms; i++)
            x[i / 3][i % 3] = (double)t[k].after[i / 3][i % 3];
        ch_energy(sums, g, t[k].terms, (const double(*)[3])x);
        for (int32_t i = 0; i < 3 * atoms; i++)
            rms += g[i / 3][i % 3] * g[i / 3][i % 3] / (3 * atoms);
        if (!t[k].result.converged || !(sqrt(rms) < 0.0105) || !(fabs(ch_energy_total(sums) - t[k].result.energy) < 0.01))
            fail_msg("%s: converged %d, gradient %g, energy %g, by the reference %g", t[k].what, t[k].result.converged, sqrt(rms),
                     t[k].result.energy, ch_energy_total(sums));
        steps += t[k].result.steps;
    }
    printf("%d structures, %.1f steps each\n", n, (double)steps / n);
    assert_true(steps < 90 * n); /* the preconditioner works: plain L-BFGS takes several hundred */
    pl_arena_free(own);
}

/* ---- whole structures ---- */

typedef struct built {
    ch_request *all; /* [n] */
    int32_t n;
} built;

/* Every `step`-th molecule of at least `least` and at most `most` atoms. */
static built requests_of(int32_t step, int32_t least, int32_t most, const ch_structure_options *as, pl_arena *own)
{
    built b = { .all = PL_NEW(own, ch_request, n_all) };

    for (int32_t k = 0, seen = 0; k < n_all; k++) {
        ch_structure_options *o = PL_NEW(own, ch_structure_options, 1);
        ch_stereo *stereo = PL_NEW(own, ch_stereo, 1);
        if (all[k].mol.n_atoms < least || all[k].mol.n_atoms > most || seen++ % step != 0)
            continue;
        *o = *as;
        o->name = (uint64_t)k;
        *stereo = sdf_stereo(&all[k].mol, own);
        b.all[b.n++] = (ch_request){
            .mol = &all[k].mol, .stereo = stereo, .terms = &all[k].terms, .options = o, .out = PL_NEW(own, ch_structures, 1)
        };
    }
    return b;
}

static built requests(int32_t step, int32_t count, pl_arena *own)
{
    return requests_of(step, 1, INT32_MAX, &(ch_structure_options){ .seed = 1, .count = count }, own);
}

static void build(ch_request *r, int32_t n, pl_arena *own)
{
    ch_device *d = open_device();
    pl_error err = { 0 };

    if (ch_structures_build(r, n, d, own, own, &err) != PL_OK)
        fail_msg("%s", err.text);
    ch_device_close(d);
    for (int32_t k = 0; k < n; k++)
        if (r[k].code != PL_OK)
            fail_msg("%s", r[k].err.text);
}

/* A pair of builders over the same molecules. Equal: the same minimum. */
typedef struct paired {
    int32_t n, same, lower, higher;
    double sum, squares; /* of the differences in energy */
} paired;

static void pair_add(paired *p, double a, double b)
{
    p->n++;
    p->same += fabs(a - b) < 0.05;
    p->lower += a <= b - 0.05;
    p->higher += a >= b + 0.05;
    p->sum += a - b;
    p->squares += (a - b) * (a - b);
}

static void pair_print(const paired *p, const char *what)
{
    printf("%s: %d of %d the same minimum, %d lower, %d higher, mean difference %.2f +- %.2f\n", what, p->same, p->n, p->lower,
           p->higher, p->sum / p->n, sqrt(p->squares) / p->n);
}

static double energy_by(const char *kernels, const ch_request *r, pl_arena *own)
{
    ch_structure_options o = *r->options;
    ch_structures s;

    o.kernels = ch_kernels_find(kernels);
    assert_non_null(o.kernels);
    assert_int_equal(ch_structure_build(&s, r->mol, r->stereo, r->terms, &o, own, own, NULL), PL_OK);
    return s.all[0].energy;
}

static void check_built(const ch_request *r, pl_arena *own)
{
    const ch_structure *s = &r->out->all[0];
    ch_cycles c;

    assert_int_equal(ch_cycles_make(&c, r->mol, own, NULL), PL_OK);
    assert_int_equal(ch_check((const float(*)[3])s->xyz, &c, r->terms, r->stereo).fault, CH_NO_FAULT);
    assert_true(s->converged && s->gradient < 0.01 && isfinite(s->energy));
}

/* Built with so many starts, against the processor's structures in `mine` [n]. */
static paired against(const double *mine, int32_t starts, pl_arena *own)
{
    const built b = requests_of(1, 20, 28, &(ch_structure_options){ .seed = 1, .starts = starts }, own);
    paired p = { 0 };
    int32_t first = 0, centres = 0;

    build(b.all, b.n, own);
    for (int32_t k = 0; k < b.n; k++) {
        check_built(&b.all[k], own);
        first += b.all[k].out->all[0].attempts == 1;
        centres += b.all[k].stereo->n_centres + b.all[k].stereo->n_double_bonds;
        pair_add(&p, b.all[k].out->all[0].energy, mine[k]);
    }
    printf("%d structures with %d centres and double bonds: %d at the first attempt\n", b.n, centres, first);
    assert_true(b.n > 50 && first >= b.n * 9 / 10 && centres > 20);
    return p;
}

/* The same streams of random numbers lead most starts to the same minimum; the last digits decide the others, as between two sets
 * of kernels of the processor: of these small molecules nine in ten are the same there, two in three by one start instead of two,
 * and one in three by other random numbers (decisions/0062). */
static void structures_are_minima_and_mostly_those_of_the_processor(void **state)
{
    pl_arena *own = pl_arena_new(1 << 20);
    const built b = requests_of(1, 20, 28, &(ch_structure_options){ .seed = 1 }, own);
    double *mine = PL_NEW(own, double, b.n);
    paired gpu, one, sets = { 0 };

    (void)state;
    for (int32_t k = 0; k < b.n; k++) {
        mine[k] = energy_by(NULL, &b.all[k], own);
        pair_add(&sets, energy_by("portable", &b.all[k], own), mine[k]);
    }
    gpu = against(mine, 2, own);
    one = against(mine, 1, own);
    pair_print(&gpu, "GPU and processor");
    pair_print(&one, "GPU with one start, and processor");
    pair_print(&sets, "two sets of kernels");
    if (gpu.same < b.n * 7 / 10 || gpu.same <= one.same + b.n / 20)
        fail_msg("%d of %d structures are the processor's, %d with one start", gpu.same, b.n, one.same);
    if (!(fabs(gpu.sum) <= 4 * sqrt(gpu.squares)))
        fail_msg("energies differ by %g kcal/mol on average", gpu.sum / b.n);
    pl_arena_free(own);
}

static bool same_bytes(const ch_request *a, const ch_request *b)
{
    bool same = a->out->n == b->out->n;

    for (int32_t k = 0; same && k < a->out->n; k++) {
        const ch_structure *s = &a->out->all[k], *t = &b->out->all[k];
        same = memcmp(s->xyz, t->xyz, (size_t)a->mol->n_atoms * sizeof *s->xyz) == 0 &&
               memcmp(&s->energy, &t->energy, sizeof s->energy) == 0 && s->steps == t->steps && s->attempts == t->attempts;
    }
    return same;
}

/* Alone, seven at a time, all at once and the other way round. */
static void batches_and_their_order_change_no_byte(void **state)
{
    pl_arena *own = pl_arena_new(1 << 20);
    const ch_structure_options o = { .seed = 1 };
    const built whole = requests_of(25, 1, 60, &o, own), parts = requests_of(25, 1, 60, &o, own);
    const built turned = requests_of(25, 1, 60, &o, own);

    (void)state;
    build(whole.all, whole.n, own);
    build(parts.all, 1, own);
    for (int32_t k = 1; k < parts.n; k += 7)
        build(parts.all + k, parts.n - k < 7 ? parts.n - k : 7, own);
    for (int32_t k = 0; k < turned.n / 2; k++) {
        const ch_request r = turned.all[k];
        turned.all[k] = turned.all[turned.n - 1 - k];
        turned.all[turned.n - 1 - k] = r;
    }
    build(turned.all, turned.n, own);
    assert_true(whole.n >= 10);
    for (int32_t k = 0; k < whole.n; k++) {
        assert_true(same_bytes(&whole.all[k], &parts.all[k]));
        assert_true(same_bytes(&whole.all[k], &turned.all[whole.n - 1 - k]));
    }
    pl_arena_free(own);
}

static void ensembles_are_sorted_and_distinct(void **state)
{
    pl_arena *own = pl_arena_new(1 << 20);
    const built b = requests(100, 5, own);
    int several = 0;

    (void)state;
    build(b.all, b.n, own);
    for (int32_t k = 0; k < b.n; k++) {
        const ch_structures *s = b.all[k].out;
        ch_cycles cycles;
        ch_equal equal;
        assert_int_equal(ch_cycles_make(&cycles, b.all[k].mol, own, NULL), PL_OK);
        assert_int_equal(ch_equal_make(&equal, &cycles, own, NULL), PL_OK);
        for (int32_t i = 1; i < s->n; i++) {
            assert_true(s->all[i].energy >= s->all[i - 1].energy);
            assert_true(ch_shape_rmsd(&equal, (const float(*)[3])s->all[i].xyz, (const float(*)[3])s->all[i - 1].xyz) > 0.4);
        }
        several += s->n > 2;
    }
    assert_true(several >= 2);
    pl_arena_free(own);
}

/* ---- what the GPU does not take, and its faults ---- */

/* A chain of carbons with their hydrogens, whose terms are only its bonds. */
static sdf_mol chain(int32_t carbons, pl_arena *own)
{
    const int32_t n = 3 * carbons + 2;
    sdf_mol m = { .name = "chain" };
    int32_t bonds = 0, atom = carbons;

    assert_int_equal(ch_mol_alloc(&m.mol, n, n - 1, own, NULL), PL_OK);
    m.terms = (ch_terms){ .n_atoms = n, .n_bonds = n - 1, .bonds = PL_NEW(own, ch_bond_term, n) };
    for (int32_t i = 0; i < carbons; i++) {
        m.mol.z[i] = 6;
        if (i + 1 < carbons)
            m.terms.bonds[bonds++] = (ch_bond_term){ i, i + 1, 4.5, 1.5 };
        for (int32_t h = 0; h < 2 + (i == 0) + (i + 1 == carbons); h++) {
            m.mol.z[atom] = 1;
            m.terms.bonds[bonds++] = (ch_bond_term){ i, atom++, 4.5, 1.1 };
        }
    }
    return m;
}

static void a_molecule_that_is_too_large_is_left_to_the_processor(void **state)
{
    pl_arena *own = pl_arena_new(1 << 20);
    const sdf_mol m = chain(90, own);
    ch_packed packed;
    pl_error err = { 0 };

    (void)state;
    assert_int_equal(ch_pack(&packed, &m.terms, NULL, ch_kernels_find(NULL), own, &err), PL_EINPUT);
    assert_string_equal(err.text, "272 atoms; the GPU builds molecules of 1 to 256");
    pl_arena_free(own);
}

/* Every bond 500 times: more gradients than a GPU's 16-bit numbers of slots. */
static void too_many_terms_are_left_to_the_processor(void **state)
{
    enum { TIMES = 500 };
    pl_arena *own = pl_arena_new(1 << 20);
    sdf_mol m = chain(40, own);
    const ch_bond_term *once = m.terms.bonds;
    ch_packed packed;
    pl_error err = { 0 };

    (void)state;
    m.terms.bonds = PL_NEW(own, ch_bond_term, TIMES * m.terms.n_bonds);
    for (int32_t k = 0; k < TIMES * m.terms.n_bonds; k++)
        m.terms.bonds[k] = once[k % m.terms.n_bonds];
    m.terms.n_bonds *= TIMES;
    assert_int_equal(ch_pack(&packed, &m.terms, NULL, ch_kernels_find(NULL), own, &err), PL_EINPUT);
    assert_string_equal(err.text, "too many terms for the GPU: 121000 slots");
    pl_arena_free(own);
}

/* What does not fit the shared memory of a block lies in global memory. */
static void a_large_molecule_is_relaxed_as_by_the_reference(void **state)
{
    pl_arena *own = pl_arena_new(1 << 20);
    const sdf_mol m = chain(80, own);
    float(*x)[3] = pl_arena_get(own, (size_t)m.mol.n_atoms, sizeof *x);
    trial t = { .terms = &m.terms, .xyz = (const float(*)[3])x, .what = "chain" };

    (void)state;
    for (int32_t i = 0; i < m.mol.n_atoms; i++) {
        const int32_t at = i < 80 ? i : (i - 81) / 2, side = i < 80 ? 0 : 1 - i % 2 * 2;
        x[i][0] = 1.3f * (float)at + 0.01f * (float)(i * 7919 % 97);
        x[i][1] = 0.6f * (float)(at % 2) + 0.3f * (float)side;
        x[i][2] = 0.9f * (float)side;
    }
    run(&t, 1, CH_GPU_ENERGY, own);
    compare(&t, own);
    run(&t, 1, CH_GPU_RELAX, own);
    if (!t.result.converged || !(t.result.energy < 0.1))
        fail_msg("converged %d after %d steps, energy %g, gradient %g", t.result.converged, t.result.steps, t.result.energy,
                 t.result.gradient);
    pl_arena_free(own);
}

static void a_gpu_that_fails_is_reported(void **state)
{
    pl_arena *own = pl_arena_new(1 << 20);
    const built b = requests(100, 1, own);
    ch_device *d = NULL;
    pl_error err = { 0 };
    char name[200];

    (void)state;
    assert_int_equal(ch_device_find(0, name, sizeof name, NULL), PL_OK);
    if (strstr(name, "emulated") == NULL)
        skip(); /* a GPU does not fail on demand */
    assert_int_equal(setenv("MOLSIEVE_EMULATOR_FAULT", "4", 1), 0);
    d = open_device();
    assert_int_equal(ch_structures_build(b.all, b.n, d, own, own, &err), PL_EDEVICE);
    if (strstr(err.text, "building structures on a GPU: ") == NULL || strstr(err.text, "illegal memory access") == NULL)
        fail_msg("%s", err.text);
    ch_device_close(d);
    unsetenv("MOLSIEVE_EMULATOR_FAULT");
    assert_int_equal(setenv("MOLSIEVE_EMULATOR_MB", "0", 1), 0);
    d = open_device();
    assert_int_equal(ch_structures_build(b.all, b.n, d, own, own, &err), PL_EDEVICE);
    if (strstr(err.text, "taking memory: refused") == NULL)
        fail_msg("%s", err.text);
    ch_device_close(d);
    unsetenv("MOLSIEVE_EMULATOR_MB");
    pl_arena_free(own);
}

static void a_gpu_that_is_not_there_is_refused(void **state)
{
    ch_device *d = NULL;
    pl_error err = { 0 };

    (void)state;
    assert_int_equal(ch_device_open(&d, 99, &err), PL_ECONFIG);
    assert_non_null(strstr(err.text, "there is no GPU 99; this machine shows "));
}

/* ---- speed: by hand, and in scripts/gpu-check ---- */

static double seconds(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static const ch_packed **pack_all(const built *b)
{
    const ch_packed **packed = PL_NEW(mem, const ch_packed *, b->n);

    for (int32_t k = 0; k < b->n; k++) {
        const ch_request *r = &b->all[k];
        ch_packed *p = PL_NEW(mem, ch_packed, 1);
        ch_cycles c;
        ch_bounds bounds;
        assert_int_equal(ch_cycles_make(&c, r->mol, mem, NULL), PL_OK);
        assert_int_equal(ch_bounds_make(&bounds, &c, r->terms, r->stereo, ch_kernels_find(NULL), mem, NULL), PL_OK);
        assert_int_equal(ch_pack(p, r->terms, &bounds, ch_kernels_find(NULL), mem, NULL), PL_OK);
        packed[k] = p;
    }
    return packed;
}

static void say(const ch_gpu_result *r, int32_t n, double took)
{
    int32_t done = 0, converged = 0;
    double values = 0, energies = 0, steps = 0;

    for (int32_t k = 0; k < n; k++) {
        done += r[k].what == CH_GPU_DONE;
        converged += r[k].converged;
        values += r[k].n_values;
        energies += r[k].n_energies;
        steps += r[k].steps;
    }
    printf(
        "%d structures in %.4f s, %.0f a second; %d built at the first attempt, %d converged; %.0f errors, %.0f energies, %.0f steps each\n",
        n, took, n / took, done, converged, values / n, energies / n, steps / n);
}

/* n structures at a time, of all molecules in turn: the device alone, without bounds, packing and checks. */
static int measure(int32_t n)
{
    ch_gpu_job *job = PL_NEW(mem, ch_gpu_job, n);
    ch_gpu_result *result = PL_NEW(mem, ch_gpu_result, n);
    const built b = requests(1, 1, mem);
    const ch_packed **packed = pack_all(&b);
    ch_device *d = open_device();
    int64_t floats = 0;
    char name[256];

    for (int32_t k = 0; k < n; k++) {
        const int32_t m = k % b.n;
        job[k] = (ch_gpu_job){ .molecule = m,
                               .starts = 2,
                               .first_steps = CH_FIRST_STEPS,
                               .max_steps = 2000,
                               .key = pl_rng_at((uint64_t)(k / b.n), (uint64_t)m, 0).key,
                               .gradient = 0.01,
                               .xyz = floats };
        floats += 3 * (int64_t)packed[m]->molecule.n_atoms;
    }
    float *xyz = PL_NEW(mem, float, floats);
    assert_int_equal(ch_device_load(d, packed, b.n, NULL), PL_OK);
    (void)ch_device_find(0, name, sizeof name, NULL);
    printf("%s, molecules of %.1f atoms\n", name, (double)floats / (3 * n));
    for (int round = 0; round < 3; round++) {
        const double began = seconds();
        assert_int_equal(ch_device_run(d, job, n, result, xyz, floats, NULL), PL_OK);
        say(result, n, seconds() - began);
    }
    ch_device_close(d);
    return 0;
}

/* An argument names the tests to run; `speed N` measures instead. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(energies_and_gradients_are_those_of_the_reference),
        cmocka_unit_test(what_is_relaxed_is_a_minimum_of_the_reference),
        cmocka_unit_test(structures_are_minima_and_mostly_those_of_the_processor),
        cmocka_unit_test(batches_and_their_order_change_no_byte),
        cmocka_unit_test(ensembles_are_sorted_and_distinct),
        cmocka_unit_test(a_molecule_that_is_too_large_is_left_to_the_processor),
        cmocka_unit_test(too_many_terms_are_left_to_the_processor),
        cmocka_unit_test(a_large_molecule_is_relaxed_as_by_the_reference),
        cmocka_unit_test(a_gpu_that_fails_is_reported),
        cmocka_unit_test(a_gpu_that_is_not_there_is_refused),
    };

    if (argc > 1 && strcmp(argv[1], "speed") == 0)
        return make(NULL) != 0 || measure(argc > 2 ? (int32_t)strtol(argv[2], NULL, 10) : 8192) != 0;
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, make, drop);
}
