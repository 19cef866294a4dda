/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a molecule before it has positions - rings, bounds, preferred torsions - and its types and energies of MMFF94 at the
 * positions of the test data, summed up to a few lines each: for ligands of the PDB, cages, macrocycles, fused and spiro rings. And the same
 * of graphs made by chance, most of them of rings that no molecule has, or why they are refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "chem/structures/bounds.h"
#include "chem/structures/energy.h"
#include "golden/golden_text.h"
#include "mmff_graph.h"
#include "mmff_suite.h"
#include "pipeline/base/rng.h"
#include "sdf_mol.h"

enum { MAX = 340, GRAPHS = 500, BYTES = 80 };

/* A number without a name is a sum over atoms and their places: which atoms they are. */

static void say_cycles(pl_text *out, const ch_cycles *c)
{
    int of_size[CH_MAX_LARGE + 1] = { 0 }, n_flat = 0, n_aromatic = 0;
    int64_t places = 0;

    for (int32_t r = 0; r < c->n; r++) {
        of_size[c->cycle[r].size]++;
        n_flat += c->cycle[r].flat;
        n_aromatic += c->cycle[r].aromatic;
        for (int32_t k = 0; k < c->cycle[r].size; k++)
            places += (int64_t)(r + 1) * (k + 1) * c->cycle[r].atom[k];
    }
    for (int32_t r = 0; r < c->n_large; r++) {
        of_size[c->large[r].size]++;
        for (int32_t k = 0; k < c->large[r].size; k++)
            places += (int64_t)(r + 1) * (k + 1) * c->large[r].atom[k];
    }
    pl_text_addf(out, "rings %d flat, %d aromatic, %lld:", n_flat, n_aromatic, (long long)places);
    for (int size = 3; size <= CH_MAX_LARGE; size++)
        if (of_size[size] > 0)
            pl_text_addf(out, " %d of %d", of_size[size], size);
    pl_text_add(out, "\n");
}

static void say_bounds(pl_text *out, const ch_bounds *b)
{
    double lower = 0, upper = 0, low = 0, high = 0, distance = 0, energy = 0;
    int64_t of_volumes = 0, of_rotors = 0;

    for (int32_t i = 0; i < b->n; i++)
        for (int32_t j = 0; j < i; j++) {
            lower += (double)b->lower[i * b->stride + j];
            upper += (double)b->upper[i * b->stride + j];
        }
    for (int32_t v = 0; v < b->n_volumes; v++) {
        low += (double)b->volumes[v].low;
        high += (double)b->volumes[v].high;
        for (int k = 0; k < 4; k++)
            of_volumes += (int64_t)(k + 1) * b->volumes[v].atom[k];
    }
    for (int32_t r = 0; r < b->rotors.n; r++)
        for (int k = 0; k < CH_ROTOR_ANGLES; k++) {
            distance += (double)(b->rotors.rotor[r].distance[k]);
            energy += b->rotors.rotor[r].energy[k];
            of_rotors += k < 4 ? (int64_t)(k + 1) * b->rotors.rotor[r].atom[k] : 0;
        }
    pl_text_addf(out, "bounds %d slack, lower@%.4f upper@%.4f\n", b->slack, lower, upper);
    pl_text_addf(out, "volumes %d, %d chiral, %lld, lower@%.4f upper@%.4f\n", b->n_volumes, b->n_chiral, (long long)of_volumes, low,
                 high);
    pl_text_addf(out, "rotors %d, %lld, distances@%.4f energies@%.5f\n", b->rotors.n, (long long)of_rotors, distance, energy);
}

static void say_terms(pl_text *out, const sdf_mol *m, pl_arena *mem)
{
    double(*x)[3] = pl_arena_get(mem, (size_t)m->mol.n_atoms, sizeof *x), energy[CH_N_TERM_CLASSES], charges = 0;

    assert_non_null(x);
    pl_text_add(out, "types");
    for (int32_t i = 0; i < m->mol.n_atoms; i++) {
        pl_text_addf(out, " %d", m->terms.type[i]);
        charges += (i + 1) * m->terms.charge[i];
        for (int k = 0; k < 3; k++)
            x[i][k] = (double)m->mol.xyz[i][k];
    }
    ch_energy(energy, NULL, &m->terms, (const double(*)[3])x);
    pl_text_addf(out, "\ncharges@%.5f", charges);
    for (int c = 0; c < CH_N_TERM_CLASSES; c++)
        pl_text_addf(out, " %s@%.5f", ch_term_class_name((enum ch_term_class)c), energy[c]);
    pl_text_add(out, "\n");
}

static void what_is_known_of_molecules_is_as_it_was(void **state)
{
    pl_arena *mem = pl_arena_new(1 << 20), *own = pl_arena_new(1 << 20);
    sdf_mol *all = PL_NEW(mem, sdf_mol, MAX);
    const int32_t n = sdf_read_terms(all, MAX, 300, MOLSIEVE_TESTS, mem);
    pl_text out = { 0 };

    (void)state;
    assert_true(n > 250);
    for (int32_t k = 0; k < n; k++) {
        const ch_stereo stereo = sdf_stereo(&all[k].mol, own);
        ch_cycles c;
        ch_bounds b;
        pl_error err = { 0 };
        if (ch_cycles_make(&c, &all[k].mol, own, &err) != PL_OK ||
            ch_bounds_make(&b, &c, &all[k].terms, &stereo, ch_kernels_find(NULL), own, &err) != PL_OK)
            fail_msg("%s: %s", all[k].name, err.text);
        pl_text_addf(&out, "== %s\n", all[k].name);
        say_cycles(&out, &c);
        say_bounds(&out, &b);
        say_terms(&out, &all[k], own);
        pl_arena_reset(own);
    }
    pl_arena_free(own);
    pl_arena_free(mem);
    golden_check(MOLSIEVE_TESTS "/golden/structures.txt", &out);
}

/* ---- graphs made by chance ---------------------------------------------------------------- */

enum { ANION = 0x80, CATION = 0x82, CLOSE = 0xc0 }; /* steps of graph_molecule; a bond has its order above an element's place */

typedef struct chance {
    uint8_t bytes[BYTES];
    int left[BYTES]; /* of each atom's valence */
    int n, atoms;
    pl_rng rng;
} chance;

static int below(chance *c, int n) { return (int)pl_rng_below(&c->rng, (uint64_t)n); }

static void add(chance *c, int what, int where)
{
    c->bytes[c->n++] = (uint8_t)what;
    c->bytes[c->n++] = (uint8_t)where;
}

/* The elements that graph_molecule numbers, with their valences as ions and without a charge, and the most of a bond. */
static const struct {
    int place, anion, valence, cation, most;
} kinds[] = { { 0, 0, 4, 0, 3 },  { 6, 2, 3, 4, 3 },  { 6, 2, 3, 4, 3 },  { 9, 1, 2, 3, 2 }, { 9, 1, 2, 3, 2 },
              { 11, 1, 2, 3, 1 }, { 14, 0, 1, 0, 1 }, { 12, 0, 3, 4, 1 }, { 13, 0, 4, 0, 1 } };

/* A new atom, and its bond to `at` where there is one. It keeps `keep` of its valence. */
static void grow(chance *c, int at, int order, int keep)
{
    const int k = below(c, 2) ? 0 : below(c, sizeof kinds / sizeof *kinds), charge = below(c, 5);
    int what = 0, valence = kinds[k].valence;

    if (charge == 0 && kinds[k].cation > 0)
        what = CATION, valence = kinds[k].cation;
    if (charge == 1 && kinds[k].anion > 0)
        what = ANION, valence = kinds[k].anion;
    if (c->n + 8 > BYTES || (c->atoms > 0 && c->left[at] < 1))
        return;
    while (order > 1 && (order > valence - keep || order > c->left[at] || order > kinds[k].most))
        order--;
    if (order > valence - keep) {
        grow(c, at, order, keep);
        return;
    }
    add(c, order << 4 | kinds[k].place, at);
    c->left[at] -= c->atoms > 0 ? order : 0;
    c->left[c->atoms] = valence - (c->atoms > 0 ? order : 0);
    c->left[c->atoms] = kinds[k].most == 1 && c->left[c->atoms] > 1 ? 1 : c->left[c->atoms];
    if (what != 0)
        add(c, what, c->atoms);
    c->atoms++;
}

/* A ring of 3 to 8 atoms at an atom that is there, most of them with every other bond double as far as the atoms allow it. */
static void add_ring(chance *c)
{
    const int size = below(c, 2) ? 5 + below(c, 2) : 3 + below(c, 6), from = c->atoms > 0 ? below(c, c->atoms) : 0;
    const bool conjugated = below(c, 4) > 0;
    int last = from;

    if (c->atoms == 0)
        grow(c, 0, 0, 2);
    if (c->left[from] < 2)
        return;
    for (int k = 1; k < size && c->left[last] > 0; k++) {
        grow(c, last, conjugated && k % 2 ? 2 : 1, 1);
        last = c->atoms - 1;
    }
    const int order = conjugated && size % 2 == 0 && c->left[from] > 1 && c->left[last] > 1 ? 2 : 1;
    if (last == from || c->left[from] < 1 || c->left[last] < 1)
        return;
    add(c, CLOSE | order << 4, from);
    c->left[from] -= order;
    c->left[last] -= order;
}

/* Rings, and what hangs from them. */
static ch_mol made(uint64_t seed, pl_arena *mem)
{
    chance c = { .rng = pl_rng_at(31, seed, 1) };
    const int rings = 1 + below(&c, 2), ends = below(&c, 5);

    for (int k = 0; k < rings; k++)
        add_ring(&c);
    for (int k = 0; k < ends; k++)
        grow(&c, below(&c, c.atoms), 1 + below(&c, 3), 0);
    return graph_molecule(c.bytes, (size_t)c.n, mem);
}

static void say_made(pl_text *out, const ch_mol *mol, const ch_mmff *mmff, bool s, pl_arena *own)
{
    const ch_mmff_options options = { .mmff94s = s, .cumulenes = s };
    const ch_stereo none = { 0 };
    sdf_mol m = { .mol = *mol };
    pl_error err = { 0 };
    ch_cycles c;
    ch_bounds b;

    if (ch_terms_make(&m.terms, mol, mmff, &options, own, &err) != PL_OK) {
        pl_text_addf(out, "%s\n", err.text);
        return;
    }
    say_terms(out, &m, own);
    if (ch_cycles_make(&c, mol, own, &err) != PL_OK) {
        pl_text_addf(out, "%s\n", err.text);
        return;
    }
    say_cycles(out, &c);
    if (ch_bounds_make(&b, &c, &m.terms, &none, ch_kernels_find(NULL), own, &err) == PL_OK)
        say_bounds(out, &b);
    else
        pl_text_addf(out, "%s\n", err.text);
}

static void what_is_known_of_graphs_made_by_chance_is_as_it_was(void **state)
{
    pl_arena *mem = pl_arena_new(1 << 20), *own = pl_arena_new(1 << 20);
    pl_text out = { 0 };
    pl_error err = { 0 };
    ch_mmff mmff;

    (void)state;
    if (ch_mmff_read(&mmff, suite_tables(), mem, &err) != PL_OK)
        fail_msg("%s %s", err.where, err.text);
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        const ch_mol mol = made(seed, own);
        pl_text_addf(&out, "== %d: %d atoms\n", (int)seed, (int)mol.n_atoms);
        say_made(&out, &mol, &mmff, seed % 3 == 0, own);
        pl_arena_reset(own);
    }
    pl_arena_free(own);
    pl_arena_free(mem);
    golden_check(MOLSIEVE_TESTS "/golden/structures_made.txt", &out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_known_of_molecules_is_as_it_was),
        cmocka_unit_test(what_is_known_of_graphs_made_by_chance_is_as_it_was),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
