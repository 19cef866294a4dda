/* SPDX-License-Identifier: Apache-2.0 */
/* Scaffolds as SMILES, against RDKit's (data/scaffolds.tsv, written by data/scaffolds.py) and by hand. */
#include <stdio.h>

#include "chem/fingerprint/common.h"
#include "chem/fingerprint/scaffold_smiles.h"
#include "made_mol.h"
#include "pipeline/base/rng.h"
#include "tests/unit/smiles.h"

static const char *scaffold(bench_side *b, const ch_mol *mol)
{
    const char *out = NULL;

    assert_int_equal(ch_scaffold_smiles(&out, mol, b->mem, NULL), PL_OK);
    return out;
}

static const char *of(bench_side *b, const char *smiles)
{
    const ch_mol mol = molecule(b, smiles);

    return scaffold(b, &mol);
}

/* Both have the scaffold that RDKit finds, and a scaffold is its own. */
static void scaffolds_are_those_of_rdkit(void **state)
{
    bench_side *b = *state;
    FILE *file = fopen(MOLSIEVE_TESTS "/data/scaffolds.tsv", "r");
    char line[2000], smiles[1000], want[1000];
    int n = 0;

    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        want[0] = '\0';
        assert_true(sscanf(line, "%999s\t%999s", smiles, want) >= 1);
        const char *got = of(b, smiles);
        if (want[0] == '\0' ? got[0] != '\0' : strcmp(got, of(b, want)) != 0)
            fail_msg("%s has the scaffold '%s', not that of '%s'", smiles, got, want);
        if (got[0] != '\0' && strcmp(of(b, got), got) != 0)
            fail_msg("%s has another scaffold than itself: %s", got, of(b, got));
        n++;
        pl_arena_reset(b->mem);
    }
    (void)fclose(file);
    assert_int_equal(n, 286);
}

static void what_is_cut_off_becomes_hydrogen(void **state)
{
    static const char *const cases[][2] = {
        { "CCO", "" },
        { "c1ccccc1", "c1ccccc1" },
        { "Cn1cccc1", "c1cc[nH]c1" },
        { "C[n+]1ccccc1", "c1c[nH+]ccc1" },
        { "CP1(=O)CCCC1", "O=[PH]1CCCC1" },
        { "CC(C)=C1CCCC1", "C=C1CCCC1" },
        { "O=C=C1CC1", "C=C1CC1" },
        { "C[S+]1(=O)CCCC1", "O=[SH+]1CCCC1" },
        { "CC1=[N+]([O-])CCC1", "C1CC=[NH+]C1" },
        { "C[Si]1(C)CCCC1", "C1C[SiH2]CC1" },
        { "c1ccccc1-c1cc[nH]n1", "c1cc(ccc1)-c1n[nH]cc1" },
        { "[O-][N+](=O)c1ccccc1", "c1ccccc1" },
    };
    bench_side *b = *state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *got = of(b, cases[i][0]);
        if (strcmp(got, cases[i][1]) != 0 && (cases[i][1][0] == '\0' || strcmp(got, of(b, cases[i][1])) != 0))
            fail_msg("%s has the scaffold '%s', not '%s'", cases[i][0], got, cases[i][1]);
        pl_arena_reset(b->mem);
    }
}

static void the_order_of_atoms_does_not_matter(void **state)
{
    static const char *const smiles[] = { "CN1C=NC2=C1C(=O)N(C(=O)N2C)C",
                                          "CC1(C)SC2C(NC(=O)Cc3ccccc3)C(=O)N2C1C(=O)O",
                                          "C12C3C4C1C5C2C3C45",
                                          "C12C3C4C2C5C1C3C45",
                                          "C12C3C1C4C5C2C3C45", /* cuneane: all atoms are CH, of three kinds */
                                          "C12C3C4C5C6C1C2C3C6C45",
                                          "CC12CCC3C(CCC4=CC(=O)CCC34C)C1CCC2O",
                                          "C1CCC(CC1)C1CCC(CC1)C1CCCCC1",
                                          "C1CC1C1CCCCC1C1CC1",
                                          "c1ccc(cc1)-c1c(-c2ccccc2)c(-c2ccccc2)c(-c2ccccc2)c(-c2ccccc2)c1-c1ccccc1",
                                          "C1CCCCCCCCCCCCCC1CCc1ccccc1" };
    bench_side *b = *state;

    for (size_t i = 0; i < sizeof smiles / sizeof *smiles; i++) {
        const ch_mol mol = molecule(b, smiles[i]);
        const char *want = scaffold(b, &mol);
        assert_true(want[0] != '\0');
        for (uint64_t seed = 0; seed < 50; seed++) {
            const ch_mol other = made_permuted(&mol, made_order(mol.n_atoms, seed, b->mem), b->mem);
            const char *got = scaffold(b, &other);
            if (strcmp(got, want) != 0)
                fail_msg("%s has the scaffolds %s and %s", smiles[i], want, got);
        }
        pl_arena_reset(b->mem);
    }
}

/* Both rings have atoms of the same kind only. */
static void rings_of_several_parts_are_told_apart(void **state)
{
    bench_side *b = *state;
    ch_prepare_opts opts = ch_prepare_defaults();
    ch_prepared p;

    opts.conformer = CH_3D_NONE;
    opts.largest_fragment = false;
    assert_int_equal(ch_worker_prepare(b->w, "C1CC1.C1CCCCC1", 14, "smi", &opts, &p, b->mem, NULL), PL_OK);
    for (uint64_t seed = 0; seed < 50; seed++) {
        const ch_mol other = made_permuted(&p.mol, made_order(p.mol.n_atoms, seed, b->mem), b->mem);
        assert_string_equal(scaffold(b, &other), scaffold(b, &p.mol));
    }
    assert_int_equal(strlen(scaffold(b, &p.mol)), 14);
    pl_arena_reset(b->mem);
}

static void a_refused_allocation_is_an_error(void **state)
{
    bench_side *b = *state;
    const ch_mol mol = molecule(b, "Cc1ccccc1");
    const char *out;
    int n = 0;
    pl_code code;

    do {
        pl_arena_refuse(++n);
        code = ch_scaffold_smiles(&out, &mol, b->mem, NULL);
        if (code == PL_OK)
            assert_null(pl_arena_get(b->mem, 1, 1)); /* none was refused so far */
        pl_arena_refuse(0);
        assert_true(code == PL_OK || code == PL_ENOMEM);
    } while (code != PL_OK);
    assert_true(n > 20);
}

/* Databases keep them: these never change. */
static void the_texts_are_those_of_databases(void **state)
{
    bench_side *b = *state;

    assert_string_equal(of(b, "Cn1cccc1"), "[nH]1cccc1");
    assert_string_equal(of(b, "CN1C=NC2=C1C(=O)N(C(=O)N2C)C"), "O=c1[nH]c(=O)c2[nH]cnc2[nH]1");
    assert_string_equal(of(b, "c1ccc2ccccc2c1"), "c1c2ccccc2ccc1");
    assert_string_equal(of(b, "Cc1ccccc1-c1ccccc1"), "c1cc(ccc1)-c1ccccc1"); /* a digit is free again behind its ring */
    assert_string_equal(of(b, "C1CC1C1CC1"), "C1(CC1)C1CC1");
    pl_arena_reset(b->mem);
}

static void a_fingerprint_survives_packing(void **state)
{
    bench_side *b = *state;
    const ch_mol mol = molecule(b, "CCO");
    unsigned char bytes[CH_FINGERPRINT_BYTES];
    ch_fingerprint print, again;

    assert_int_equal(ch_fingerprint_of(&print, &mol, b->mem, NULL), PL_OK);
    ch_fingerprint_pack(bytes, &print);
    ch_fingerprint_unpack(&again, bytes);
    assert_memory_equal(&print, &again, sizeof print);
    assert_true(bytes[252 / 8] >> 252 % 8 & 1); /* a bit of ethanol, tests/unit/fingerprint_test.c */
}

/* Every kernel of this processor, against bits counted one by one. */
static void common_bits_are_counted_by_every_kernel(void **state)
{
    enum { N = 37 };
    ch_fingerprint all[N], query;
    int32_t both[N], ones[N];
    pl_rng rng = pl_rng_at(7, 0, 0);
    int kernels = 0;

    (void)state;
    for (int k = 0; k < CH_FINGERPRINT_BITS / 64; k++)
        query.word[k] = pl_rng_u64(&rng);
    for (int i = 0; i < N; i++)
        for (int k = 0; k < CH_FINGERPRINT_BITS / 64; k++)
            all[i].word[k] = i == 0 ? UINT64_MAX : pl_rng_u64(&rng) & pl_rng_u64(&rng);
    ch_common_ones(ones, all, N);
    for (; ch_common_at(kernels) != NULL; kernels++) {
        ch_common_at(kernels)(both, &query, all, N);
        for (int i = 0; i < N; i++) {
            int want = 0, bits = 0;
            for (int b = 0; b < CH_FINGERPRINT_BITS; b++) {
                bits += (int)(all[i].word[b / 64] >> b % 64 & 1);
                want += (int)((all[i].word[b / 64] & query.word[b / 64]) >> b % 64 & 1);
            }
            assert_int_equal(both[i], want);
            assert_int_equal(ones[i], bits);
        }
    }
    assert_true(kernels >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scaffolds_are_those_of_rdkit),       cmocka_unit_test(what_is_cut_off_becomes_hydrogen),
        cmocka_unit_test(the_order_of_atoms_does_not_matter), cmocka_unit_test(a_refused_allocation_is_an_error),
        cmocka_unit_test(a_fingerprint_survives_packing),     cmocka_unit_test(rings_of_several_parts_are_told_apart),
        cmocka_unit_test(the_texts_are_those_of_databases),   cmocka_unit_test(common_bits_are_counted_by_every_kernel),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
