/* SPDX-License-Identifier: Apache-2.0 */
/* Molecules come from the real chemistry worker. */
#include <inttypes.h>
#include <stdlib.h>

#include "chem/fingerprint/scaffold.h"
#include "pipeline/base/rng.h"
#include "tests/unit/smiles.h"

static uint64_t scaffold(bench_side *b, const ch_mol *mol)
{
    uint64_t out = 99;

    assert_int_equal(ch_scaffold(&out, mol, false, b->mem, NULL), PL_OK);
    return out;
}

static uint64_t of(bench_side *b, const char *smiles)
{
    const ch_mol mol = molecule(b, smiles);

    return scaffold(b, &mol);
}

/* The SMILES of a line have the same scaffold, those of different lines different ones. */
static const char *const scaffolds[][5] = {
    { "CCO", "C", "CC(=O)OC=C", "[Na+]", "OCC(N)C(=O)O" }, /* none */
    { "c1ccccc1", "Cc1ccccc1", "CC(C)(C)c1cc(O)ccc1Cl", "OC(=O)c1ccccc1", "[13CH3]c1c(F)cccc1" },
    { "C1CCCCC1", "CC1CCCCC1", "OC1CCC(CC1)C(=O)O", "[O-]C1CCCCC1", "C[C@H]1CCCC[C@@H]1O" },
    { "O=C1CCCCC1", "O=C1CCCCC1C", "CCC1CC(=O)CCC1" }, /* the ketone's O belongs to the framework */
    { "C=C1CCCCC1", "CC(C)=C1CCCCC1" },                /* so does the first atom of an alkene */
    { "C1=CCCCC1", "CC1=CCCCC1" },
    { "c1ccncc1", "Cc1ccncc1", "C[n+]1ccccc1" }, /* charges are ignored */
    { "c1ccc2ccccc2c1", "Oc1ccc2ccccc2c1" },
    { "c1ccccc1-c1ccccc1", "Cc1ccccc1-c1ccccc1" },
    { "c1ccccc1Cc1ccccc1", "c1ccccc1C(C)c1ccccc1", "Fc1ccccc1C(O)c1ccccc1" }, /* chains between rings are kept */
    { "c1ccccc1CCc1ccccc1" },
    { "c1ccccc1C(=O)c1ccccc1", "c1ccccc1C(=O)c1ccc(Cl)cc1" },
    { "c1ccccc1NC(=O)c1ccccc1", "Oc1ccccc1NC(=O)c1ccccc1" },
    { "C1CCC2CCCCC2C1", "CC1CCC2CCCCC2C1" }, /* decalin and bicyclopentyl differ only in the sizes of their rings */
    { "C1CCCC1C1CCCC1", "CC1CCCC1C1CCCC1" },
    { "C1CC2CCC1CC2" },
    { "C1CC2CCCC1C2" },
    { "C1CCC2(CC1)CCCCC2" },
    { "C1CC1", "CC1CC1" },
    { "C1CCCCCCCCCCCCCC1" },
    { "c1ccoc1", "Cc1ccoc1" },
    { "c1ccsc1" },
    { "c1cc[nH]c1", "Cn1cccc1" },
    { "CC(=O)Oc1ccc(C2CC2)cc1", "c1ccccc1C1CC1" },
};
enum { N = sizeof scaffolds / sizeof scaffolds[0] };

static void equal_scaffolds_have_equal_numbers_and_others_have_not(void **state)
{
    uint64_t first[N];

    for (int i = 0; i < N; i++) {
        first[i] = of(*state, scaffolds[i][0]);
        for (int k = 1; k < 5 && scaffolds[i][k] != NULL; k++)
            if (of(*state, scaffolds[i][k]) != first[i])
                fail_msg("%s has another scaffold than %s", scaffolds[i][k], scaffolds[i][0]);
        for (int j = 0; j < i; j++)
            if (first[i] == first[j])
                fail_msg("%s has the scaffold of %s", scaffolds[i][0], scaffolds[j][0]);
    }
    assert_int_equal(first[0], 0);
}

/* A split by scaffolds orders them by these numbers: the parts of an earlier version are found again. */
static void a_scaffold_keeps_its_number(void **state)
{
    static const struct {
        const char *smiles;
        uint64_t plain, strict;
    } known[] = {
        { "Cc1ccccc1", 0x227a550668cf69c, 0x5ee175c8698b38fe },
        { "O=C1CCC=CC1", 0xcbd8d49cb50c3bab, 0x39a8c3c2f9eaedc8 },
        { "C[n+]1ccccc1CC#CCC1CCCCCCCCCCCC1", 0x26c12a5cae96df17, 0x18e61ba3b2464054 },
    };
    bench_side *b = *state;

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const ch_mol mol = molecule(b, known[i].smiles);
        const uint64_t plain = scaffold(b, &mol);
        uint64_t strict = 0;
        assert_int_equal(ch_scaffold(&strict, &mol, true, b->mem, NULL), PL_OK);
        if (plain != known[i].plain || strict != known[i].strict)
            fail_msg("%s has %#" PRIx64 " and %#" PRIx64, known[i].smiles, plain, strict);
    }
}

static int compare_bond(const void *a, const void *b)
{
    const int32_t *x = a, *y = b;

    return x[0] != y[0] ? x[0] - y[0] : x[1] - y[1];
}

/* The same molecule with its atoms in another order. */
static ch_mol shuffled(const ch_mol *mol, pl_rng *rng, pl_arena *mem)
{
    ch_mol out;
    int32_t to[200], (*all)[3] = pl_arena_get(mem, (size_t)mol->n_bonds + 1, sizeof *all);

    assert_true(mol->n_atoms <= 200 && ch_mol_alloc(&out, mol->n_atoms, mol->n_bonds, mem, NULL) == PL_OK);
    for (int32_t i = 0; i < mol->n_atoms; i++) {
        const int32_t k = (int32_t)pl_rng_below(rng, (uint64_t)i + 1);
        to[i] = to[k];
        to[k] = i;
    }
    for (int32_t i = 0; i < mol->n_atoms; i++) {
        out.z[to[i]] = mol->z[i];
        out.charge[to[i]] = mol->charge[i];
    }
    for (int32_t b = 0; b < mol->n_bonds; b++) {
        const int32_t p = to[mol->bond[b][0]], q = to[mol->bond[b][1]];
        all[b][0] = p < q ? p : q;
        all[b][1] = p < q ? q : p;
        all[b][2] = mol->order[b];
    }
    qsort(all, (size_t)mol->n_bonds, sizeof *all, compare_bond);
    for (int32_t b = 0; b < mol->n_bonds; b++) {
        memcpy(out.bond[b], all[b], sizeof out.bond[b]);
        out.order[b] = (uint8_t)all[b][2];
    }
    return out;
}

static void the_order_of_atoms_does_not_matter(void **state)
{
    static const char *const smiles[] = { "CC(=O)Oc1ccccc1C(=O)O",
                                          "CN1C=NC2=C1C(=O)N(C(=O)N2C)C",
                                          "CC1(C)SC2C(NC(=O)Cc3ccccc3)C(=O)N2C1C(=O)O",
                                          "C1CC2CCC1CC2",
                                          "C12C3C4C1C5C2C3C45",
                                          "CC12CCC3C(CCC4=CC(=O)CCC34C)C1CCC2O",
                                          "C1CCCCCCCCCCCCCC1CCc1ccccc1" };
    bench_side *b = *state;
    pl_rng rng = pl_rng_at(5, 0, 0);

    for (size_t i = 0; i < sizeof smiles / sizeof smiles[0]; i++) {
        const ch_mol mol = molecule(b, smiles[i]);
        const uint64_t want = scaffold(b, &mol);
        assert_true(want != 0);
        for (int k = 0; k < 20; k++) {
            const ch_mol other = shuffled(&mol, &rng, b->mem);
            assert_true(scaffold(b, &other) == want);
        }
        pl_arena_reset(b->mem);
    }
}

static void a_refused_allocation_is_an_error(void **state)
{
    bench_side *b = *state;
    const ch_mol mol = molecule(b, "Cc1ccccc1");
    uint64_t out;
    int n = 0;
    pl_code code;

    do {
        pl_arena_refuse(++n);
        code = ch_scaffold(&out, &mol, false, b->mem, NULL);
        pl_arena_refuse(0);
        assert_true(code == PL_OK || code == PL_ENOMEM);
    } while (code != PL_OK);
    assert_int_equal(n, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_scaffolds_have_equal_numbers_and_others_have_not),
        cmocka_unit_test(a_scaffold_keeps_its_number),
        cmocka_unit_test(the_order_of_atoms_does_not_matter),
        cmocka_unit_test(a_refused_allocation_is_an_error),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
