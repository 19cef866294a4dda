/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors and environments of molecules from the real chemistry worker, against RDKit's (data/descriptors.tsv) and by hand. */
#include "chem/features/features.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "chem/graph/graph_block.h"
#include "tests/unit/smiles.h"
#include "made_mol.h"

enum { LINE = 16384, COLUMNS = CH_N_FEATURES + 2 };

static ch_graph graph_of(bench_side *b, const ch_mol *mol, ch_edges edges)
{
    ch_graph g;

    assert_int_equal(ch_graph_build(&g, mol, &(ch_graph_opts){ .edges = edges, .cutoff = 1000 }, b->mem, NULL), PL_OK);
    return g;
}

static void describe(bench_side *b, float out[CH_N_FEATURES], const ch_mol *mol)
{
    const ch_graph g = graph_of(b, mol, CH_EDGES_TOPOLOGY);

    assert_int_equal(ch_features_of(out, &g, b->mem, NULL), PL_OK);
}

static ch_environments environments(bench_side *b, const ch_mol *mol)
{
    const ch_graph g = graph_of(b, mol, CH_EDGES_TOPOLOGY);
    ch_environments e;

    assert_int_equal(ch_environments_of(&e, &g, b->mem, NULL), PL_OK);
    return e;
}

static float value(bench_side *b, const char *smiles, int which)
{
    const ch_mol mol = molecule(b, smiles);
    float x[CH_N_FEATURES];

    describe(b, x, &mol);
    return x[which];
}

/* ---- RDKit ---- */

static int place_of(const char *name)
{
    for (int k = 0; k < CH_N_FEATURES; k++)
        if (strcmp(ch_features[k].name, name) == 0)
            return k;
    fail_msg("no descriptor is named %s", name);
    return -1;
}

/* Splits a line at its tabs; how many columns it has. */
static int split(char *line, char *column[COLUMNS])
{
    int n = 0;

    line[strcspn(line, "\n")] = '\0';
    for (char *from = line; from != NULL && n < COLUMNS; n++) {
        char *tab = strchr(from, '\t');
        column[n] = from;
        if (tab != NULL)
            *tab++ = '\0';
        from = tab;
    }
    return n;
}

static int by_size(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

/* The counts in ascending order, as the table has them. */
static void same_counts(const char *smiles, const ch_environments *e, const char *want)
{
    uint32_t count[512];
    char text[LINE] = "";
    size_t len = 0;

    assert_in_range(e->n, 1, 512);
    for (int32_t k = 0; k < e->n; k++)
        count[k] = e->at[k].count;
    qsort(count, (size_t)e->n, sizeof *count, by_size);
    for (int32_t k = 0; k < e->n; k++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%u", k > 0 ? "," : "", (unsigned)count[k]);
    if (strcmp(text, want) != 0)
        fail_msg("%s: counts %s, not %s", smiles, text, want);
}

static void same_values(bench_side *b, char *const *name, char *const *column)
{
    const ch_mol mol = molecule(b, column[0]);
    const ch_environments e = environments(b, &mol);
    float x[CH_N_FEATURES];

    describe(b, x, &mol);
    for (int k = 1; k <= CH_N_FEATURES; k++) {
        const double want = strtod(column[k], NULL), have = (double)x[place_of(name[k])];
        const double max = strcmp(name[k], "mw") == 0 ? 2e-4 * want : fmax(1e-3, 1e-4 * fabs(want));
        if (!isnan(want) && !(fabs(have - want) <= max)) /* nan: RDKit has no value */
            fail_msg("%s: %s is %g, not %g", column[0], name[k], have, want);
    }
    same_counts(column[0], &e, column[CH_N_FEATURES + 1]);
}

static void values_are_those_of_rdkit(void **state)
{
    static char head[LINE], line[LINE];
    char *name[COLUMNS], *column[COLUMNS];
    FILE *file = fopen(MOLSIEVE_TESTS "/data/descriptors.tsv", "r");
    int n = 0;

    assert_non_null(file);
    assert_non_null(fgets(head, sizeof head, file));
    assert_int_equal(split(head, name), COLUMNS);
    for (; fgets(line, sizeof line, file) != NULL; n++) {
        assert_int_equal(split(line, column), COLUMNS);
        same_values(*state, name, column);
    }
    (void)fclose(file);
    assert_true(n > 350);
}

/* docs/DESCRIPTORS.md has a row for every descriptor, in order. */
static void the_page_lists_every_descriptor(void **state)
{
    static char line[LINE];
    FILE *file = fopen(MOLSIEVE_TESTS "/../docs/DESCRIPTORS.md", "r");
    int k = 0;

    (void)state;
    assert_non_null(file);
    while (k < CH_N_FEATURES && fgets(line, sizeof line, file) != NULL) {
        char want[LINE];
        (void)snprintf(want, sizeof want, "| `%s` | %s | %s |", ch_features[k].name,
                       ch_features[k].unit != NULL ? ch_features[k].unit : "", ch_features[k].meaning);
        k += strncmp(line, want, strlen(want)) == 0;
    }
    (void)fclose(file);
    if (k < CH_N_FEATURES)
        fail_msg("the page lacks %s", ch_features[k].name);
}

/* ---- by hand ---- */

static void kinds_of_atoms_bonds_and_rings_are_counted(void **state)
{
    static const struct {
        const char *smiles;
        int which;
        double want;
    } cases[] = {
        { "C12C3C4C1C5C2C3C45", CH_F_rings, 6 }, /* cubane: six faces, five of them independent */
        { "C1CC2CCC1CC2", CH_F_rings, 3 },       /* three rings of six, two of them independent */
        { "C1CC2CCC1CC2", CH_F_bridgeheads, 2 },
        { "C1CCCCCCCCCCCCCCCCCCCCC1", CH_F_rings_8, 1 },
        { "C1CC2(C1)CCC2", CH_F_spiro_atoms, 1 },
        { "c1ccc2ccccc2c1", CH_F_fused_bonds, 1 },
        { "CC(F)C(Cl)Br", CH_F_stereo_atoms, 2 },
        { "CC(F)(F)C", CH_F_stereo_atoms, 0 },
        { "CS(=O)CC", CH_F_stereo_atoms, 1 }, /* a lone pair is the fourth neighbour of a sulfoxide, not of a sulfine */
        { "CCC=S=O", CH_F_stereo_atoms, 0 },
        { "C[Se](=O)CC", CH_F_stereo_atoms, 1 },
        { "CCC=[Se]=O", CH_F_stereo_atoms, 0 },
        { "CC[Se+](C)C(C)C", CH_F_stereo_atoms, 1 },
        { "CN=S(=O)=CC", CH_F_stereo_atoms, 0 }, /* six valences: flat */
        { "CC=CC", CH_F_stereo_bonds, 1 },
        { "C1=CCCCC1", CH_F_stereo_bonds, 0 },
        { "C1=CCCCCC1", CH_F_stereo_bonds, 0 },
        { "C1=CCCCCCC1", CH_F_stereo_bonds, 1 }, /* the smallest ring with a trans bond */
        { "CC=C(C)C", CH_F_stereo_bonds, 0 },
        { "CCCC", CH_F_rotors, 1 },
        { "CCC(=O)NCC", CH_F_rotors, 2 },
        { "CC(C)(C)CC", CH_F_rotors, 0 },
        { "NC(=O)c1ccccc1O", CH_F_donors, 2 },
        { "CC(=O)N(C)C", CH_F_acceptors, 1 },
        { "C[NH3+]", CH_F_charge, 1 },
        { "CC(=O)OC", CH_F_carbonyls, 1 },
        { "NC(N)=O", CH_F_amides, 2 },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const double have = (double)value(*state, cases[i].smiles, cases[i].which);
        if (!(have == cases[i].want))
            fail_msg("%s: %s is %g, not %g", cases[i].smiles, ch_features[cases[i].which].name, have, cases[i].want);
    }
}

/* Propane: two CH3, one CH2, two bonds that look alike, and both bonds together. */
static void an_environment_counts_as_often_as_it_occurs(void **state)
{
    bench_side *b = *state;
    const ch_mol mol = molecule(b, "CCC"), none = molecule(b, "[H][H]");
    const ch_environments e = environments(b, &mol);

    same_counts("CCC", &e, "1,1,2,2");
    for (int32_t k = 1; k < e.n; k++)
        assert_true(e.at[k - 1].id < e.at[k].id);
    assert_int_equal(environments(b, &none).n, 0);
}

static void folded_counts_stand_where_the_fingerprint_has_bits(void **state)
{
    static const char *const smiles[] = { "C", "CC(=O)Oc1ccccc1C(=O)O", "CC12CCC3C(CCC4=CC(=O)CCC34C)C1CCC2O", "C[N+](C)(C)CC#N" };
    bench_side *b = *state;

    for (size_t i = 0; i < sizeof smiles / sizeof *smiles; i++) {
        const ch_mol mol = molecule(b, smiles[i]);
        const ch_environments e = environments(b, &mol);
        uint32_t count[CH_FINGERPRINT_BITS], sum = 0, all = 0;
        ch_fingerprint f;
        assert_int_equal(ch_fingerprint_of(&f, &mol, b->mem, NULL), PL_OK);
        ch_environments_fold(count, &e);
        for (int k = 0; k < CH_FINGERPRINT_BITS; k++) {
            assert_int_equal(count[k] > 0, f.word[k / 64] >> k % 64 & 1);
            sum += count[k];
        }
        for (int32_t k = 0; k < e.n; k++)
            all += e.at[k].count;
        assert_int_equal(sum, all);
    }
}

static void drawings_of_a_molecule_have_the_same_bits(void **state)
{
    static const char *const pairs[][2] = { { "CC1=CC=CC=C1C", "CC1=C(C)C=CC=C1" },
                                            { "OC1=CC=CC2=C1C=CC=C2", "c1ccc2c(c1)cccc2O" },
                                            { "C[C@H](N)C(=O)O", "OC(=O)C(C)N" } };
    bench_side *b = *state;

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const ch_mol one = molecule(b, pairs[i][0]), other = molecule(b, pairs[i][1]);
        float x[CH_N_FEATURES], y[CH_N_FEATURES];
        describe(b, x, &one);
        describe(b, y, &other);
        assert_memory_equal(x, y, sizeof x);
    }
}

static void every_kind_of_graph_with_all_bonds_gives_the_same(void **state)
{
    static const ch_edges kinds[] = { CH_EDGES_BONDS, CH_EDGES_RADIUS, CH_EDGES_FULL };
    bench_side *b = *state;
    ch_mol mol = molecule(b, "CC(=O)Oc1ccccc1C(=O)O");
    float want[CH_N_FEATURES], x[CH_N_FEATURES];

    describe(b, want, &mol);
    mol.xyz = pl_arena_get(b->mem, (size_t)mol.n_atoms, sizeof *mol.xyz);
    for (int32_t a = 0; a < mol.n_atoms; a++)
        mol.xyz[a][0] = (float)a;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const ch_graph g = graph_of(b, &mol, kinds[k]);
        assert_int_equal(ch_features_of(x, &g, b->mem, NULL), PL_OK);
        assert_memory_equal(x, want, sizeof x);
    }
}

/* ---- what no worker prepares ---- */

/* Atoms alone: a proton, sodium, chloride, gold, a hydride, the last element. */
static void atoms_without_bonds_have_finite_values(void **state)
{
    static uint8_t z[] = { 1, 11, 17, 79, 1, 118 };
    static int8_t charge[] = { 1, 1, -1, 0, -1, 127 };
    bench_side *b = *state;
    float x[CH_N_FEATURES];

    for (int i = 0; i < 6; i++)
        for (int n = 1; n <= 6 - i; n++) {
            const ch_mol mol = { .n_atoms = n, .z = z + i, .charge = charge + i };
            describe(b, x, &mol);
            for (int k = 0; k < CH_N_FEATURES; k++)
                if (!isfinite(x[k]))
                    fail_msg("%s of atom %d and %d more", ch_features[k].name, z[i], n - 1);
            assert_true(x[CH_F_parts] == (float)n);
            assert_true(x[CH_F_n_h] == (float)((i == 0) + (i <= 4 && i + n > 4)));
        }
}

/* [H+] and [H][H] in RDKit 2026.9: a hydrogen that is bonded to hydrogen has type H1 of Wildman and Crippen, one alone the rest type HS. */
static void hydrogen_alone_has_the_values_of_rdkit(void **state)
{
    static uint8_t z[] = { 1, 1 }, order[] = { CH_SINGLE };
    static int8_t plus[] = { 1 }, none[] = { 0, 0 };
    static int32_t bond[1][2] = { { 0, 1 } };
    const ch_mol proton = { .n_atoms = 1, .z = z, .charge = plus };
    const ch_mol two = { .n_atoms = 2, .z = z, .charge = none, .n_bonds = 1, .bond = bond, .order = order };
    bench_side *b = *state;
    float x[CH_N_FEATURES];

    describe(b, x, &proton);
    assert_true(fabsf(x[CH_F_logp] - 0.1125f) < 1e-4f && fabsf(x[CH_F_mr] - 1.112f) < 1e-4f);
    describe(b, x, &two);
    assert_true(fabsf(x[CH_F_logp] - 0.246f) < 1e-4f && fabsf(x[CH_F_mr] - 2.114f) < 1e-4f);
}

static void a_refused_allocation_is_an_error(void **state)
{
    bench_side *b = *state;
    const ch_mol mol = molecule(b, "Cc1ccccc1");
    const ch_graph g = graph_of(b, &mol, CH_EDGES_TOPOLOGY);
    float x[CH_N_FEATURES];
    ch_environments e;
    int n = 0, m = 0;
    pl_code code;

    do {
        pl_arena_refuse(++n);
        code = ch_features_of(x, &g, b->mem, NULL);
        if (code == PL_OK)
            assert_null(pl_arena_get(b->mem, 1, 1)); /* none was refused so far */
        pl_arena_refuse(0);
        assert_true(code == PL_OK || code == PL_ENOMEM);
    } while (code != PL_OK);
    do {
        pl_arena_refuse(++m);
        code = ch_environments_of(&e, &g, b->mem, NULL);
        if (code == PL_OK)
            assert_null(pl_arena_get(b->mem, 1, 1)); /* none was refused so far */
        pl_arena_refuse(0);
        assert_true(code == PL_OK || code == PL_ENOMEM);
    } while (code != PL_OK);
    assert_in_range(n, 40, 80);
    assert_in_range(m, 15, 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_those_of_rdkit),
        cmocka_unit_test(the_page_lists_every_descriptor),
        cmocka_unit_test(kinds_of_atoms_bonds_and_rings_are_counted),
        cmocka_unit_test(an_environment_counts_as_often_as_it_occurs),
        cmocka_unit_test(folded_counts_stand_where_the_fingerprint_has_bits),
        cmocka_unit_test(drawings_of_a_molecule_have_the_same_bits),
        cmocka_unit_test(every_kind_of_graph_with_all_bonds_gives_the_same),
        cmocka_unit_test(atoms_without_bonds_have_finite_values),
        cmocka_unit_test(hydrogen_alone_has_the_values_of_rdkit),
        cmocka_unit_test(a_refused_allocation_is_an_error),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
