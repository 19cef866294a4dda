/* SPDX-License-Identifier: Apache-2.0 */
/* How the cuda engine lays out a batch (models/cuda/cuda_batch.h): kernels follow its indices without a check. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "models/cuda/cuda_batch.h"
#include "pipeline/base/rng.h"
#include "twin/made_batch.h"

/* What the batches had, so that none of it is absent. */
static struct {
    int batches, long_cells, more_tiles, without_edges, single_atoms, one_way;
} seen;

static bool within(int32_t i, int32_t n) { return i >= 0 && i < n; }

static void edges_check(const nn_cuda_prep *p, const nn_batch *in)
{
    for (int32_t r = 0; r < p->n_rows; r++) {
        assert_true(within(p->src[r], in->n_nodes) && within(p->dst[r], in->n_nodes));
        assert_true(within(p->frame[r], 2 * p->n_pairs));
        assert_true(within(p->in_row[r], p->n_rows) && within(p->out_row[r], p->n_rows));
    }
}

/* first and row group all rows by the atoms in `atom`. */
static void groups_check(const int32_t *first, const int32_t *row, const int32_t *atom, const nn_cuda_prep *p, int32_t n_atoms)
{
    assert_int_equal(first[0], 0);
    for (int32_t i = 0; i < n_atoms; i++) {
        assert_true(first[i] <= first[i + 1]);
        for (int32_t k = first[i]; k < first[i + 1]; k++)
            assert_int_equal(atom[row[k]], i);
    }
    assert_int_equal(first[n_atoms], p->n_rows);
}

static int32_t tiles_check(const nn_gpu_tile *tile, int32_t n, int32_t row)
{
    for (int32_t i = 0; i < n; i++) {
        assert_true(tile[i].first == row && tile[i].n > 0 && tile[i].n <= NN_GPU_TILE);
        row += tile[i].n;
    }
    return row;
}

/* The tiles of a cell have its rows and radial nodes, and its nodes' spans are its rows. */
static void cells_check(const nn_cuda_prep *p)
{
    for (int32_t c = 0; c < p->n_cells; c++) {
        const nn_cuda_cell *cell = &p->cell[c];
        const int32_t rows = cell[1].row - cell->row, tiles = cell[1].tile - cell->tile;
        assert_int_equal(tiles_check(p->tile + cell->tile, tiles, cell->row), cell[1].row);
        for (int k = 0; k < 2; k++) {
            for (int32_t i = 0; i < tiles; i++)
                assert_int_equal(p->tile[cell->tile + i].node[k], cell->node[k]);
            if (k && p->radial == NN_RADIAL_EXACT) {
                assert_int_equal(cell->node[k], -1);
                continue;
            }
            assert_true(within(cell->node[k], p->n_nodes));
            assert_int_equal(p->span[cell->node[k]].first[k], cell->row);
            assert_int_equal(p->span[cell->node[k]].end[k], cell[1].row);
        }
        assert_true(c == 0 || cell->node[0] >= cell[-1].node[0] + 1); /* parts of a batch have adjacent nodes */
        seen.long_cells += rows > NN_GPU_OUTER;
        seen.more_tiles += tiles > 1;
    }
}

/* The parts of cells longer than NN_GPU_OUTER rows fit into what is cut for them (nn_cuda_slots), and spans into the rows. */
static void spans_check(const nn_cuda_prep *p)
{
    const int32_t slots = (p->n_rows + NN_GPU_OUTER - 1) / NN_GPU_OUTER;

    for (int32_t i = 0; i < p->n_nodes; i++)
        for (int j = 0; j < 2; j++) {
            const int32_t first = p->span[i].first[j], end = p->span[i].end[j];
            assert_true(first >= 0 && first <= end && end <= p->n_rows);
            if (end > first)
                assert_true(first / NN_GPU_OUTER + (end - first - 1) / NN_GPU_OUTER < slots);
        }
}

/* All arrays of the block, by their places. */
static void block_check(const nn_cuda_prep *p, const nn_batch *in)
{
    assert_ptr_equal(p->host, p->vec != NULL ? p->vec : p->stored);
    assert_true(p->bytes <= p->room && (const char *)(p->span + p->n_nodes) <= p->host + p->bytes);
    assert_memory_equal(p->graph, in->first, ((size_t)in->n_graphs + 1) * sizeof *p->graph);
    assert_memory_equal(p->node, in->node, (size_t)in->n_nodes * (size_t)in->n_node_features * sizeof *p->node);
}

static void batch_check(const nn_cuda_prep *p, const nn_batch *in)
{
    assert_int_equal(p->n_rows, in->n_edges);
    edges_check(p, in);
    groups_check(p->in_first, p->in_row, p->dst, p, in->n_nodes);
    groups_check(p->out_first, p->out_row, p->src, p, in->n_nodes);
    assert_int_equal(tiles_check(p->tile, p->n_tiles, 0), p->n_rows);
    assert_int_equal(tiles_check(p->whole, p->n_whole, 0), p->radial == NN_RADIAL_EXACT ? p->n_rows : 0);
    assert_true(p->cell[p->n_cells].row == p->n_rows && p->cell[p->n_cells].tile == p->n_tiles);
    cells_check(p);
    spans_check(p);
    block_check(p, in);
    seen.batches++;
    seen.without_edges += in->n_edges == 0;
    seen.one_way += in->n_edges < 2 * p->n_pairs;
    for (int32_t g = 0; g < in->n_graphs; g++)
        seen.single_atoms += in->first[g + 1] - in->first[g] == 1;
}

static void *block_grow(void *ctx, size_t bytes)
{
    char **block = ctx;

    free(*block);
    return *block = malloc(bytes);
}

/* Batches of many sizes, larger and smaller in turn, in the same memory. */
static void follow(nn_radial radial, double width, uint64_t seed)
{
    const nn_radial_conf inputs = { 0 };
    nn_cuda_prep p = { .radial = radial, .width = width, .inputs = &inputs };
    pl_rng r = pl_rng_at(seed, 7, 0);
    char *block = NULL;

    for (int i = 0; i < 24; i++) {
        pl_arena *mem = pl_arena_new(1 << 18);
        const made_opts opts = { .n_graphs = i == 9 ? 33 : 1 + (int32_t)pl_rng_below(&r, 9),
                                 .max_nodes = i % 8 == 3 ? 40 : 2 + (int32_t)pl_rng_below(&r, 9),
                                 .node_features = 3,
                                 .edge_features = (int32_t)pl_rng_below(&r, 2) * 4,
                                 .cutoff = pl_rng_below(&r, 5) == 0 ? 0.1 : 1 + 2 * pl_rng_real(&r),
                                 .one_way = i % 3 == 1,
                                 .seed = seed + (uint64_t)i };
        made_batch made = made_batch_new(&opts, mem);
        p.n_targets = made.b.n_graphs;
        DONE(nn_cuda_prep_make(&p, &made.b, block_grow, &block, &why));
        batch_check(&p, &made.b);
        pl_arena_free(mem);
    }
    nn_cuda_prep_free(&p);
    free(block);
}

static void every_index_of_a_batch_is_one_of_its_own(void **state)
{
    (void)state;
    memset(&seen, 0, sizeof seen);
    follow(NN_RADIAL_NODES, 0.01, 100);
    follow(NN_RADIAL_NODES, 0.3, 200);
    follow(NN_RADIAL_NODES, 5.0, 300); /* a cell for each kind */
    follow(NN_RADIAL_EXACT, 0, 400);
    print_message("%d batches: %d long cells, %d of several tiles, %d without edges, %d single atoms, %d with edges of one way\n",
                  seen.batches, seen.long_cells, seen.more_tiles, seen.without_edges, seen.single_atoms, seen.one_way);
    assert_int_equal(seen.batches, 96);
    assert_true(seen.long_cells > 0 && seen.more_tiles > 0 && seen.without_edges > 0 && seen.single_atoms > 0 && seen.one_way > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_index_of_a_batch_is_one_of_its_own) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
