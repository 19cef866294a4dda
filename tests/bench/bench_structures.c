/* SPDX-License-Identifier: Apache-2.0 */
/* tests/bench/bench_structures.c - time of energies, relaxing, embedding and whole structures. structures.py runs it.
 *
 *   bench_structures MOLECULES.sdf.gz STEREO POSITIONS [SEED]
 *
 * MOLECULES have all hydrogens. STEREO has a line for each: the number of centres, for each centre atom, four neighbours and
 * sign, the number of double bonds, for each a b c d and 1 for cis. POSITIONS is written: for each molecule the number of atoms
 * (0: refused) and its positions, as int32 and float. Times are of the processor, so that a busy machine matters less. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "chem/structures/bounds.h"
#include "chem/structures/embed.h"
#include "chem/structures/mmff.h"
#include "chem/structures/relax.h"
#include "chem/structures/structure.h"
#include "mmff_suite.h"
#include "sdf_mol.h"

enum { MAX = 4000 };

typedef struct job {
    sdf_mol *m;
    ch_stereo stereo;
    const ch_mmff *tables;
    const ch_kernels *kernels;
    uint64_t seed;
} job;

/* Seconds of all molecules together, and counts. */
typedef struct sums {
    double terms, cycles, bounds, embed, relax, whole;
    long n, first, attempts, refused, values, energies, unconverged, centres;
} sums;

static double now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int32_t number(FILE *f)
{
    int n = 0;

    if (fscanf(f, "%d", &n) != 1)
        exit(1);
    return n;
}

static ch_stereo read_stereo(FILE *f, pl_arena *mem)
{
    ch_stereo s = { .n_centres = number(f) };
    ch_centre *centres = PL_NEW(mem, ch_centre, s.n_centres + 1);
    ch_double_bond *bonds = NULL;

    for (int32_t k = 0; k < s.n_centres; k++) {
        centres[k].atom = number(f);
        for (int a = 0; a < 4; a++)
            centres[k].neighbour[a] = number(f);
        centres[k].sign = (int8_t)number(f);
    }
    s.n_double_bonds = number(f);
    bonds = PL_NEW(mem, ch_double_bond, s.n_double_bonds + 1);
    for (int32_t k = 0; k < s.n_double_bonds; k++) {
        const int32_t a = number(f), b = number(f), c = number(f), d = number(f);
        bonds[k] = (ch_double_bond){ a, b, c, d, number(f) == 1 };
    }
    s.centres = centres;
    s.double_bonds = bonds;
    return s;
}

/* The parts of the work, each alone, at the first attempt. */
static void parts(const job *j, uint64_t name, sums *s)
{
    pl_arena *mem = pl_arena_new(1 << 20);
    ch_cycles c;
    ch_bounds b;
    ch_embedder e;
    ch_relaxer r;
    ch_relaxed relaxed;
    pl_rng random = pl_rng_at(1, name, 0);
    float(*x)[3] = pl_arena_get(mem, (size_t)j->m->mol.n_atoms, sizeof *x);
    double t = now();

    if (ch_cycles_make(&c, &j->m->mol, mem, NULL) != PL_OK)
        exit(1);
    s->cycles += now() - t;
    t = now();
    if (ch_bounds_make(&b, &c, &j->m->terms, &j->stereo, j->kernels, mem, NULL) != PL_OK)
        exit(1);
    s->bounds += now() - t;
    t = now();
    if (ch_embedder_make(&e, &b, j->kernels, mem, NULL) != PL_OK)
        exit(1);
    s->values += ch_embed(x, &e, 1, &random).n_values;
    s->embed += now() - t;
    t = now();
    if (ch_relaxer_make(&r, &j->m->terms, j->kernels, mem, NULL) == PL_OK &&
        ch_relax(&relaxed, x, &r, &(ch_relax_options){ 0, 0 }, NULL) == PL_OK)
        s->energies += relaxed.n_energies;
    s->relax += now() - t;
    pl_arena_free(mem);
}

/* Everything that a molecule needs, from its bonds to a checked structure. */
static void whole(const job *j, uint64_t name, FILE *positions, sums *s)
{
    pl_arena *mem = pl_arena_new(1 << 20), *scratch = pl_arena_new(1 << 20);
    const ch_structure_options o = { .seed = j->seed, .name = name, .kernels = j->kernels };
    ch_structures out = { 0 };
    pl_error err = { 0 };
    ch_terms terms;
    double t = now();
    pl_code code = ch_terms_make(&terms, &j->m->mol, j->tables, &(ch_mmff_options){ false }, scratch, &err);

    s->terms += now() - t;
    t = now();
    if (code == PL_OK)
        code = ch_structure_build(&out, &j->m->mol, &j->stereo, &terms, &o, mem, scratch, &err);
    s->whole += now() - t;
    s->n++;
    s->attempts += out.tries.attempts;
    s->centres += j->stereo.n_centres + j->stereo.n_double_bonds;
    s->refused += code != PL_OK;
    s->first += code == PL_OK && out.all[0].attempts == 1;
    s->unconverged += code == PL_OK && !out.all[0].converged;
    if (code != PL_OK)
        printf("  refused: %s: %s\n", j->m->name, err.text);
    const int32_t n = code == PL_OK ? j->m->mol.n_atoms : 0;
    if (positions != NULL &&
        (fwrite(&n, sizeof n, 1, positions) != 1 || (n > 0 && fwrite(out.all[0].xyz, 12, (size_t)n, positions) != (size_t)n)))
        exit(1);
    pl_arena_free(mem);
    pl_arena_free(scratch);
}

/* Microseconds of an energy with its gradient: the best of many. */
static double energy_time(const job *j)
{
    pl_arena *mem = pl_arena_new(1 << 20);
    ch_energy_plan plan;
    double best = 1;

    if (ch_energy_plan_make(&plan, &j->m->terms, j->kernels, mem, NULL) != PL_OK)
        exit(1);
    float *x = ch_floats(mem, 3 * (int64_t)plan.stride), *g = ch_floats(mem, 3 * (int64_t)plan.stride);
    float *scratch = ch_floats(mem, 8 * (int64_t)plan.stride);
    ch_to_columns(x, plan.stride, (const float(*)[3])j->m->mol.xyz, plan.n_atoms);
    for (int round = 0; round < 60; round++) {
        const double t = now();
        for (int k = 0; k < 100; k++)
            (void)j->kernels->energy(&plan, x, g, scratch);
        const double took = (now() - t) / 100;
        best = took < best ? took : best;
    }
    pl_arena_free(mem);
    return 1e6 * best;
}

static void energies(sdf_mol *all, int32_t n, const ch_kernels *k)
{
    static const int32_t sizes[3] = { 25, 45, 70 };

    for (int s = 0; s < 3; s++) {
        int32_t near = 0;
        for (int32_t m = 1; m < n; m++)
            if (abs(all[m].mol.n_atoms - sizes[s]) < abs(all[near].mol.n_atoms - sizes[s]))
                near = m;
        const job j = { &all[near], { 0 }, NULL, k, 1 };
        printf("  energy and gradient, %d atoms, %d pairs: %.2f us\n", (int)all[near].mol.n_atoms, (int)all[near].terms.n_pairs,
               energy_time(&j));
    }
}

static void report(const char *name, const sums *s)
{
    const double ms = 1e3 / (double)(s->n > 0 ? s->n : 1);

    printf("%s: %ld molecules, %ld at the first attempt, %ld attempts, %ld refused, %ld not converged, %ld stereo defined\n", name,
           s->n, s->first, s->attempts, s->refused, s->unconverged, s->centres);
    printf("  ms a molecule: terms %.3f, rings %.3f, bounds %.3f, embedding %.3f (%.0f errors), relaxing %.3f (%.0f energies)\n",
           ms * s->terms, ms * s->cycles, ms * s->bounds, ms * s->embed, (double)s->values / (double)s->n, ms * s->relax,
           (double)s->energies / (double)s->n);
    printf("  ms a molecule, all: %.3f (structure %.3f)\n", ms * (s->terms + s->whole), ms * s->whole);
}

int main(int argc, char **argv)
{
    pl_arena *mem = pl_arena_new(1 << 20);
    sdf_mol *all = PL_NEW(mem, sdf_mol, MAX);
    ch_mmff *tables = PL_NEW(mem, ch_mmff, 1);
    ch_stereo *stereo = PL_NEW(mem, ch_stereo, MAX);
    const uint64_t seed = argc > 4 ? strtoull(argv[4], NULL, 10) : 1;
    pl_error err = { 0 };
    int32_t n = 0;

    if (argc < 4 || ch_mmff_read(tables, suite_tables(), mem, &err) != PL_OK) {
        (void)fprintf(stderr, "bench_structures MOLECULES.sdf.gz STEREO POSITIONS [SEED]; tables: %s\n", err.text);
        return 1;
    }
    n = sdf_read(all, MAX, argv[1], mem);
    FILE *f = fopen(argv[2], "r");
    for (int32_t k = 0; f != NULL && k < n; k++)
        stereo[k] = read_stereo(f, mem);
    if (f == NULL || fclose(f) != 0)
        return 1;
    for (int s = 0; ch_kernels_at(s) != NULL; s++) {
        FILE *positions = s == 0 ? fopen(argv[3], "wb") : NULL;
        sums t = { 0 };
        for (int32_t k = 0; k < n; k++) {
            const job j = { &all[k], stereo[k], tables, ch_kernels_at(s), seed };
            whole(&j, (uint64_t)k, positions, &t);
            if (ch_terms_make(&all[k].terms, &all[k].mol, tables, &(ch_mmff_options){ false }, mem, NULL) == PL_OK)
                parts(&j, (uint64_t)k, &t);
        }
        report(ch_kernels_at(s)->name, &t);
        energies(all, n, ch_kernels_at(s));
        if (positions != NULL && fclose(positions) != 0)
            return 1;
    }
    pl_arena_free(mem);
    return 0;
}
