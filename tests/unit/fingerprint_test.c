/* SPDX-License-Identifier: Apache-2.0 */
/* Molecules come from the real chemistry worker. */
#include "chem/fingerprint/nearest.h"
#include "pipeline/base/rng.h"
#include "tests/unit/smiles.h"
#include "made_mol.h"

static ch_fingerprint print_of(bench_side *b, const ch_mol *mol)
{
    ch_fingerprint out;

    memset(&out, 0xff, sizeof out);
    assert_int_equal(ch_fingerprint_of(&out, mol, b->mem, NULL), PL_OK);
    return out;
}

static ch_fingerprint of(bench_side *b, const char *smiles)
{
    const ch_mol mol = molecule(b, smiles);

    return print_of(b, &mol);
}

static bool same(const ch_fingerprint *a, const ch_fingerprint *b) { return memcmp(a, b, sizeof *a) == 0; }

/* Numbers of environments, counted by hand; all of these have a bit of their own. */
static void small_molecules_have_the_environments_that_one_counts(void **state)
{
    static const struct {
        const char *smiles;
        int n;
    } cases[] = {
        { "[H][H]", 0 },
        { "C", 1 },
        { "CC", 2 },  /* the atom; the bond, seen from both ends */
        { "CO", 3 },  /* two atoms; the bond, once               */
        { "CCC", 4 }, /* two atoms, a bond, both bonds: the environment of an end at radius 2 is that of the middle at radius 1 */
        { "CCO", 6 },
        { "CCCC", 5 },
        { "C=C=C", 4 },
        { "C1CC1", 3 },
        { "c1ccccc1", 3 },
        { "CCCC(N)=O", 14 },                /* 5 + 6 + 3; the paper's example */
        { "C1CCCCC1CC1CCCCC1", 3 + 4 + 5 }, /* a chain between rings is no ring */
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const ch_fingerprint f = of(*state, cases[i].smiles);
        if (ch_fingerprint_ones(&f) != cases[i].n)
            fail_msg("%s has %d environments, not %d", cases[i].smiles, (int)ch_fingerprint_ones(&f), cases[i].n);
    }
}

/* The SMILES of a line have the same fingerprint, those of different lines different ones. */
static const char *const lines[][4] = {
    { "C", "[2H]C([2H])[2H]", "[H]C([H])([H])[H]", "[13CH4]" },
    { "[CH3-]" },
    { "N" },
    { "[NH4+]" },
    { "CC1=CC=CC=C1C", "CC1=C(C)C=CC=C1", "c1(C)ccccc1C" }, /* either way to draw the double bonds */
    { "OC1=NC=CC=C1" },
    { "O=C1NC=CC=C1", "O=c1cccc[nH]1" },
    { "C1CCCCC1" },
    { "CCCCCC" },
    { "CC=C" },
    { "CC#C" },
    { "C[C@H](N)O", "C[C@@H](N)O", "CC(N)O" }, /* stereo does not count */
    { "C1CC1CCC1CC1" },
    { "C1CC1CC" },
    { "CC(C)(C)c1ccccc1" },
    { "CC(C)c1ccccc1" },
};
enum { N = sizeof lines / sizeof *lines };

static void equal_molecules_have_equal_bits_and_others_have_not(void **state)
{
    ch_fingerprint first[N];

    for (int i = 0; i < N; i++) {
        first[i] = of(*state, lines[i][0]);
        for (int k = 1; k < 4 && lines[i][k] != NULL; k++) {
            const ch_fingerprint f = of(*state, lines[i][k]);
            if (!same(&f, &first[i]))
                fail_msg("%s and %s have different bits", lines[i][k], lines[i][0]);
        }
        for (int j = 0; j < i; j++)
            if (same(&first[i], &first[j]))
                fail_msg("%s has the bits of %s", lines[i][0], lines[j][0]);
    }
}

/* By hand: bits in both divided by bits in either. */
static void similarity_is_the_share_of_common_environments(void **state)
{
    static const struct {
        const char *a, *b;
        double want;
    } cases[] = {
        { "CC", "CCC", 1.0 / 5 }, { "CCC", "CCCC", 3.0 / 6 }, { "CO", "CCO", 2.0 / 7 },  { "CCO", "CCO", 1 },
        { "C", "N", 0 },          { "C", "[H][H]", 0 },       { "[H][H]", "[H][H]", 0 },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const ch_fingerprint a = of(*state, cases[i].a), b = of(*state, cases[i].b);
        if (!(ch_fingerprint_alike(&a, &b) == cases[i].want && ch_fingerprint_alike(&b, &a) == cases[i].want))
            fail_msg("%s and %s are %g alike", cases[i].a, cases[i].b, ch_fingerprint_alike(&a, &b));
    }
}

static void the_order_of_atoms_does_not_matter(void **state)
{
    static const char *const smiles[] = { "CC(=O)Oc1ccccc1C(=O)O",
                                          "CN1C=NC2=C1C(=O)N(C(=O)N2C)C",
                                          "CC1(C)SC2C(NC(=O)Cc3ccccc3)C(=O)N2C1C(=O)O",
                                          "C1CC2CCC1CC2",
                                          "C12C3C4C1C5C2C3C45",
                                          "CC12CCC3C(CCC4=CC(=O)CCC34C)C1CCC2O",
                                          "[13CH3]CCC[N+](C)(C)C.[Cl-]" };
    bench_side *b = *state;

    for (size_t i = 0; i < sizeof smiles / sizeof *smiles; i++) {
        const ch_mol mol = molecule(b, smiles[i]);
        const ch_fingerprint want = print_of(b, &mol);
        assert_true(ch_fingerprint_ones(&want) > 2);
        for (uint64_t seed = 0; seed < 20; seed++) {
            const ch_mol other = made_permuted(&mol, made_order(mol.n_atoms, seed, b->mem), b->mem);
            const ch_fingerprint f = print_of(b, &other);
            assert_true(other.z && same(&f, &want));
        }
        pl_arena_reset(b->mem);
    }
}

/* Model files keep them: these never change. */
static void the_bits_are_those_of_model_files(void **state)
{
    static const int ethanol[] = { 252, 292, 325, 817, 1493, 1860 };
    const ch_fingerprint f = of(*state, "CCO");
    int at[6] = { 0 }, n = 0;

    for (int k = 0; k < CH_FINGERPRINT_BITS; k++)
        if (f.word[k / 64] >> k % 64 & 1 && n < 6)
            at[n++] = k;
    assert_memory_equal(at, ethanol, sizeof at);
}

/* The fingerprint depends on the bonds, not on the positions. */
static void a_graph_has_the_bits_of_its_molecule(void **state)
{
    static const char *const smiles[] = { "C", "CC(=O)Oc1ccccc1C(=O)O", "C[N+](C)(C)CC#N", "C1CC2CCC1CC2" };
    static const ch_graph_opts opts[] = { { .edges = CH_EDGES_BONDS },
                                          { .edges = CH_EDGES_RADIUS, .cutoff = 1000 },
                                          { .edges = CH_EDGES_FULL } };
    bench_side *b = *state;

    for (size_t i = 0; i < sizeof smiles / sizeof *smiles; i++)
        for (size_t k = 0; k < sizeof opts / sizeof *opts; k++) {
            ch_mol mol = molecule(b, smiles[i]);
            const ch_fingerprint want = print_of(b, &mol);
            ch_fingerprint f;
            ch_graph g;
            mol.xyz = pl_arena_get(b->mem, (size_t)mol.n_atoms, sizeof *mol.xyz);
            for (int32_t a = 0; a < mol.n_atoms; a++)
                mol.xyz[a][0] = (float)a;
            assert_int_equal(ch_graph_build(&g, &mol, &opts[k], b->mem, NULL), PL_OK);
            assert_int_equal(ch_fingerprint_of_graph(&f, &g, b->mem, NULL), PL_OK);
            if (!same(&f, &want))
                fail_msg("%s has other bits as graph %d", smiles[i], (int)k);
        }
}

/* A random fingerprint of up to `bits` bits, some of them in words that fold onto each other. */
static ch_fingerprint made_print(pl_rng *rng, int bits)
{
    ch_fingerprint f = { { 0 } };

    for (; bits > 0; bits--) {
        const uint64_t k = pl_rng_below(rng, 150) + 512 * pl_rng_below(rng, 4);
        f.word[k / 64] |= UINT64_C(1) << k % 64;
    }
    return f;
}

/* The same result from every implementation that this processor can run. */
static ch_sought sought_in(const ch_fingerprint *to, const ch_among *all, int32_t n, int32_t part)
{
    ch_sought s, other;

    ch_sought_open(&s, to);
    for (int32_t from = 0; from < n; from += part)
        ch_sought_in(&s, all, from, n - from < part ? n : from + part);
    for (int k = 0; ch_look_at(k) != NULL; k++) {
        ch_sought_open(&other, to);
        for (int32_t from = 0; from < n; from += part)
            ch_look_at(k)(&other, all, from, n - from < part ? n : from + part);
        assert_true(other.at == s.at && other.both == s.both && other.either == s.either);
    }
    return s;
}

static void the_nearest_is_the_first_of_those_most_alike(void **state)
{
    enum { MANY = 203 };
    ch_fingerprint all[MANY], none = { { 0 } };
    ch_folds folds[MANY / CH_FOLD + 1];
    uint8_t only[MANY / CH_FOLD + 1] = { 0 };
    pl_rng rng = pl_rng_at(3, 0, 0);

    (void)state;
    memset(folds, 0xff, sizeof folds);
    for (int i = 0; i < MANY; i++) {
        all[i] = i % 7 == 6 ? all[i - 5] : made_print(&rng, 1 + i % 90);
        ch_folds_put(folds, i, &all[i]);
        only[i / CH_FOLD] |= (uint8_t)((i % 3 == 1) << i % CH_FOLD);
    }
    for (int k = 0; k < 300; k++) {
        const ch_fingerprint to = k < 50 ? all[k] : made_print(&rng, 1 + k % 120);
        const int32_t n = k % 3 ? MANY : MANY - k % 20;
        const ch_among a = { all, folds, k % 5 == 4 ? only : NULL };
        ch_sought s = sought_in(&to, &a, n, k % 2 ? n : 64);
        int32_t want = a.only != NULL;
        for (int32_t i = 1; i < n; i++)
            if (ch_among_has(&a, i) && ch_fingerprint_alike(&to, &all[i]) > ch_fingerprint_alike(&to, &all[want]))
                want = i;
        assert_int_equal(s.at, want);
        assert_true(ch_sought_alike(&s) == ch_fingerprint_alike(&to, &all[want]));
    }
    assert_true(sought_in(&all[0], &(ch_among){ all, folds, NULL }, 0, 1).at == -1);
    assert_true(sought_in(&none, &(ch_among){ all, folds, NULL }, MANY, MANY).at == -1);
}

/* The rank of number i among n fingerprints, without number skip, by similarity to `to`; among equals, by index. */
static int32_t place_of(int32_t i, const ch_fingerprint *to, const ch_among *a, int32_t n, int32_t skip)
{
    const double own = ch_fingerprint_alike(to, &a->all[i]);
    int32_t before = 0;

    for (int32_t k = 0; k < n; k++) {
        const double other = ch_fingerprint_alike(to, &a->all[k]);
        before += k != skip && ch_among_has(a, k) && (other > own || (other == own && k < i));
    }
    return before;
}

static void the_five_nearest_are_those_of_a_full_sort(void **state)
{
    enum { MANY = 203 };
    ch_fingerprint all[MANY];
    ch_folds folds[MANY / CH_FOLD + 1];
    uint8_t only[MANY / CH_FOLD + 1] = { 0 };
    pl_rng rng = pl_rng_at(5, 0, 0);

    (void)state;
    for (int i = 0; i < MANY; i++) {
        all[i] = i % 7 == 6 ? all[i - 5] : made_print(&rng, 1 + i % 90);
        ch_folds_put(folds, i, &all[i]);
        only[i / CH_FOLD] |= (uint8_t)((i % 3 > 0) << i % CH_FOLD);
    }
    for (int k = 0; k < 200; k++) {
        const ch_fingerprint to = k < 50 ? all[k] : made_print(&rng, 1 + k % 120);
        const int32_t n = k % 3 ? MANY : k % 11, skip = k < 50 && k % 2 ? k : -1;
        const ch_among a = { all, folds, k % 5 == 4 ? only : NULL };
        ch_nearest s;
        ch_nearest_open(&s, &to, skip);
        ch_nearest_in(&s, &a, 0, n < 64 ? n : 64);
        ch_nearest_in(&s, &a, 64, n);
        assert_true(s.n <= n && s.n <= CH_NEAREST);
        assert_true(n < MANY || s.n == CH_NEAREST);
        for (int32_t m = 0; m < s.n; m++) {
            assert_int_equal(place_of(s.near[m].at, &to, &a, n, skip), m);
            assert_true(s.near[m].at != skip && ch_among_has(&a, s.near[m].at) &&
                        ch_nearest_alike(&s, m) == ch_fingerprint_alike(&to, &all[s.near[m].at]));
        }
    }
}

static void a_refused_allocation_is_an_error(void **state)
{
    bench_side *b = *state;
    const ch_mol mol = molecule(b, "Cc1ccccc1");
    ch_fingerprint out;
    int n = 0;
    pl_code code;

    do {
        pl_arena_refuse(++n);
        code = ch_fingerprint_of(&out, &mol, b->mem, NULL);
        pl_arena_refuse(0);
        assert_true(code == PL_OK || code == PL_ENOMEM);
    } while (code != PL_OK);
    assert_int_equal(n, 13);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_molecules_have_the_environments_that_one_counts),
        cmocka_unit_test(equal_molecules_have_equal_bits_and_others_have_not),
        cmocka_unit_test(similarity_is_the_share_of_common_environments),
        cmocka_unit_test(the_order_of_atoms_does_not_matter),
        cmocka_unit_test(a_graph_has_the_bits_of_its_molecule),
        cmocka_unit_test(the_bits_are_those_of_model_files),
        cmocka_unit_test(the_nearest_is_the_first_of_those_most_alike),
        cmocka_unit_test(the_five_nearest_are_those_of_a_full_sort),
        cmocka_unit_test(a_refused_allocation_is_an_error),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
