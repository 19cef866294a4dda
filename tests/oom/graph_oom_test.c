/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of graphs, blocks, bases and batches is refused in turn: ENOMEM,
 * and earlier data stays unchanged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "made_mol.h"
#include "models/features/feature.h"
#include "tests/told.h"

/* All steps from a molecule to stored bases, in `mem`. */
static pl_code whole_way(const ch_mol *mol, ch_graph_opts o, pl_arena *mem, pl_error *err)
{
    int64_t id = 1;
    ch_graph g;
    ch_graph_block block;
    nn_basis_block basis;
    pl_bytes bytes, stored;
    pl_code code = ch_graph_build(&g, mol, &o, mem, err);

    if (code == PL_OK)
        code = ch_graph_block_pack(&bytes, &id, &g, 1, mem, err);
    if (code == PL_OK)
        code = ch_graph_block_unpack(&block, bytes, mem, err);
    if (code == PL_OK)
        code = nn_basis_pack(&stored, NN_BASIS_PAIRWISE_F32, 2, &block, mem, err);
    return code == PL_OK ? nn_basis_unpack(&basis, stored, &block, mem, err) : code;
}

static void a_refused_allocation_is_reported(void **state)
{
    static const ch_graph_opts kinds[] = { { .cutoff = 3 },
                                           { .cutoff = 3, .max_neighbours = 4 },
                                           { .edges = CH_EDGES_BONDS },
                                           { .edges = CH_EDGES_BONDS_RADIUS, .cutoff = 3 },
                                           { .edges = CH_EDGES_KNN, .k = 3 },
                                           { .edges = CH_EDGES_FULL } };
    pl_arena *mem = pl_arena_new(1 << 16), *turn = pl_arena_new(0);
    ch_mol mol = made_mol(9, 9, 1, mem);

    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        long nth = 1;
        pl_code code = PL_ENOMEM;
        for (; code != PL_OK && nth < 1000; nth++) {
            pl_error err = { 0 };
            pl_arena_refuse(nth);
            code = whole_way(&mol, kinds[k], turn, &err);
            if (code == PL_OK)
                assert_null(pl_arena_get(turn, 1, 1)); /* none was refused so far */
            pl_arena_refuse(0);
            assert_true(code == PL_OK || code == PL_ENOMEM);
            if (!tells_for_what(err.text))
                fail_msg("request %ld: \"%s\"", nth, err.text);
            pl_arena_reset(turn);
        }
        assert_int_equal(code, PL_OK);
        assert_true(nth > 15);
    }
    pl_arena_free(turn);
    pl_arena_free(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_refused_allocation_is_reported) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
