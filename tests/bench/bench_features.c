/* SPDX-License-Identifier: Apache-2.0 */
/* bench_features - how fast graphs, stored bases, batches and features.db are.
 *
 * Molecules: golden/molecules_bench (110 of 13 to 26 atoms), repeated to units of
 * 1,100. One thread. Prints a table; the best of several rounds, and processor
 * time for what only computes, because the machine may be shared. features.db is
 * timed by wall-clock time. Ends with 77 where the molecules are not there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "chem/graph/graph_block.h"
#include "golden/golden.h"
#include "models/features/feature.h"
#include "toy.h"

enum { N = 1100, UNITS = 8, ROUNDS = 7 };

typedef struct bench {
    pl_arena *mem, *turn; /* turn: memory that is emptied every round */
    ch_mol mol[N];
    int64_t id[N];
    ch_graph_opts opts;
    const char *graph; /* "bonds", "radius 5 A" */
    pl_bytes block;
    ch_graph_block graphs;
    nn_basis_kind kind;
    pl_bytes basis;
} bench;

static double now(clockid_t clock)
{
    struct timespec t;

    (void)clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must(pl_code code, const pl_error *err)
{
    if (code == PL_OK)
        return;
    (void)fprintf(stderr, "bench_features: %s\n", err->text);
    exit(1);
}

/* ---- molecules ---- */

static void read_molecule(ch_mol *m, const int32_t *z, const double *pos, const int32_t *bond, const int32_t *kind, bench *b)
{
    pl_error err;

    must(ch_mol_alloc(m, m->n_atoms, m->n_bonds, b->mem, &err), &err);
    for (int32_t i = 0; i < m->n_atoms; i++) {
        m->z[i] = (uint8_t)z[i];
        for (int a = 0; a < 3; a++)
            m->xyz[i][a] = (float)pos[3 * i + a];
    }
    for (int32_t k = 0; k < m->n_bonds; k++) { /* sorted insertion, begin < end */
        int32_t x = bond[2 * k], y = bond[2 * k + 1], lo = x < y ? x : y, hi = x < y ? y : x, at = k;
        for (; at > 0 && (m->bond[at - 1][0] > lo || (m->bond[at - 1][0] == lo && m->bond[at - 1][1] > hi)); at--) {
            memcpy(m->bond[at], m->bond[at - 1], sizeof *m->bond);
            m->order[at] = m->order[at - 1];
        }
        m->bond[at][0] = lo;
        m->bond[at][1] = hi;
        m->order[at] = (uint8_t)(kind[k] + 1);
    }
}

static void read_molecules(bench *b)
{
    const nn_tensors *all = golden_open("molecules_bench", b->mem);
    size_t n_mol, n, at = 0, bond_at = 0;
    const int32_t *atoms = golden_ints(all, &n_mol, b->mem, "num_atoms");
    const int32_t *bonds = golden_ints(all, &n, b->mem, "num_bonds");
    const int32_t *bond = golden_ints(all, &n, b->mem, "bonds"), *kind = golden_ints(all, &n, b->mem, "bond_kind");
    const int32_t *z = golden_ints(all, &n, b->mem, "Z");
    const double *pos = golden_get(all, &n, b->mem, "pos");

    for (size_t i = 0; i < N; i++) {
        b->id[i] = (int64_t)i + 1;
        if (i >= n_mol) {
            b->mol[i] = b->mol[i % n_mol];
            continue;
        }
        b->mol[i].n_atoms = atoms[i];
        b->mol[i].n_bonds = bonds[i];
        read_molecule(&b->mol[i], z + at, pos + 3 * at, bond + 2 * bond_at, kind + bond_at, b);
        at += (size_t)atoms[i];
        bond_at += (size_t)bonds[i];
    }
}

/* ---- the timed steps, each once over the N molecules ---- */

static void do_graphs(bench *b)
{
    ch_graph *g = PL_NEW(b->turn, ch_graph, N);
    pl_error err;

    for (int i = 0; i < N; i++)
        must(ch_graph_build(&g[i], &b->mol[i], &b->opts, b->turn, &err), &err);
    must(ch_graph_block_pack(&b->block, b->id, g, N, b->turn, &err), &err);
}

static void do_unpack(bench *b)
{
    ch_graph_block g;
    pl_error err;

    must(ch_graph_block_unpack(&g, b->block, b->turn, &err), &err);
}

static void do_basis(bench *b)
{
    pl_error err;

    must(nn_basis_pack(&b->basis, b->kind, 3, &b->graphs, b->turn, &err), &err);
}

static void do_collate(bench *b)
{
    static nn_collate *c;
    static nn_item item[N];
    nn_basis_block basis = { 0 };
    nn_inputs in = nn_inputs_qm9();
    nn_collated out;
    pl_error err;

    c = c == NULL ? nn_collate_new() : c;
    if (b->kind != NN_BASIS_NONE)
        must(nn_basis_unpack(&basis, b->basis, &b->graphs, b->turn, &err), &err);
    for (int32_t i = 0; i < N; i++)
        item[i] = nn_item_of(&b->graphs, b->kind == NN_BASIS_NONE ? NULL : &basis, i);
    for (int32_t i = 0; i < N; i += 220) /* batches as in training */
        must(nn_collate_run(c, &out, item + i, 220, &in, &err), &err);
}

static double best_of(bench *b, void (*what)(bench *))
{
    double best = 1e30;

    for (int k = 0; k < ROUNDS; k++) {
        pl_arena_reset(b->turn);
        double start = now(CLOCK_THREAD_CPUTIME_ID);
        what(b);
        double took = now(CLOCK_THREAD_CPUTIME_ID) - start;
        best = took < best ? took : best;
    }
    return best;
}

static void row(const bench *b, const char *what, double seconds, double molecules, double bytes)
{
    (void)printf("| %s | %s | %.0f | %.2f | %.0f | %.0f |\n", what, b->graph, molecules / seconds, 1e6 * seconds / molecules,
                 bytes / molecules, 1e-6 * bytes / seconds);
    (void)fflush(stdout);
}

/* Copies what a timed step left in `turn`. */
static pl_bytes keep(bench *b, pl_bytes from)
{
    void *copy = pl_arena_get(b->mem, from.len, 1);

    if (copy == NULL)
        must(PL_ENOMEM, &(pl_error){ .text = "out of memory" });
    return (pl_bytes){ memcpy(copy, from.data, from.len), from.len };
}

static void bench_bases(bench *b)
{
    char what[64];

    for (int k = 0; k < NN_BASIS_NONE; k++) {
        b->kind = (nn_basis_kind)k;
        double s = best_of(b, do_basis);
        (void)snprintf(what, sizeof what, "bases, `%s`", nn_basis_name(b->kind));
        row(b, what, s, N, (double)b->basis.len);
        if (k > NN_BASIS_FRAME_F32)
            continue;
        b->basis = keep(b, b->basis);
        (void)snprintf(what, sizeof what, "read bases and batch, `%s`", nn_basis_name(b->kind));
        row(b, what, best_of(b, do_collate), N, (double)b->basis.len);
    }
    b->kind = NN_BASIS_NONE;
    row(b, "batch, `none`", best_of(b, do_collate), N, (double)b->block.len);
}

/* ---- features.db ---- */

static void put_units(pl_store *s, const char *kind, pl_bytes bytes)
{
    pl_error err;

    for (int64_t unit = 0; unit < UNITS; unit++) {
        must(pl_db_begin(s->features, &err), &err);
        must(pl_block_put(s, kind, "bench", unit, 1, N, bytes, &err), &err);
        must(pl_db_commit(s->features, &err), &err);
    }
}

static void get_units(pl_store *s, const char *kind, pl_arena *turn)
{
    pl_error err;

    for (int64_t unit = 0; unit < UNITS; unit++) {
        pl_block block;
        pl_arena_reset(turn);
        must(pl_block_get(s, kind, "bench", unit, &block, turn, &err), &err);
        must(pl_block_check(&block, &err), &err);
    }
}

static void bench_store(bench *b, pl_store *s, const char *kind, const char *name, pl_bytes bytes)
{
    double best[2] = { 1e30, 1e30 };
    char what[80];

    for (int k = 0; k < ROUNDS; k++) {
        double start = now(CLOCK_MONOTONIC), middle, end;
        put_units(s, kind, bytes);
        middle = now(CLOCK_MONOTONIC);
        get_units(s, kind, b->turn);
        end = now(CLOCK_MONOTONIC);
        best[0] = middle - start < best[0] ? middle - start : best[0];
        best[1] = end - middle < best[1] ? end - middle : best[1];
    }
    (void)snprintf(what, sizeof what, "write %s to features.db", name);
    row(b, what, best[0], (double)N * UNITS, (double)bytes.len * UNITS);
    (void)snprintf(what, sizeof what, "read %s from features.db", name);
    row(b, what, best[1], (double)N * UNITS, (double)bytes.len * UNITS);
}

static void bench_graph(bench *b, const char *name, ch_graph_opts opts, pl_store *s)
{
    pl_error err;

    b->graph = name;
    b->opts = opts;
    double seconds = best_of(b, do_graphs);
    b->block = keep(b, b->block);
    row(b, "graphs, packed", seconds, N, (double)b->block.len);
    row(b, "unpack and check graphs", best_of(b, do_unpack), N, (double)b->block.len);
    must(ch_graph_block_unpack(&b->graphs, b->block, b->mem, &err), &err);
    bench_bases(b);
    bench_store(b, s, "graph", "graphs", b->block);
    b->kind = NN_BASIS_FRAME_Q15;
    pl_arena_reset(b->turn);
    do_basis(b);
    bench_store(b, s, "basis", "`frame_q15`", keep(b, b->basis));
    (void)printf("| edges a molecule: %.1f | %s | | | | |\n", (double)b->graphs.n_edges / N, name);
}

int main(void)
{
    static bench b;
    static toy t;
    char dir[256];
    pl_store *s = NULL;
    pl_error err;

    b.mem = pl_arena_new(1 << 24);
    b.turn = pl_arena_new(1 << 24);
    toy_directory(dir);
    toy_make(&t, dir, 1);
    read_molecules(&b);
    must(pl_store_open(&s, &t.wf, &toy_schema, &err), &err);
    must(pl_store_features(s, &err), &err);
    (void)printf("| what | graph | molecules/s | us a molecule | bytes a molecule | MB/s |\n|---|---|--:|--:|--:|--:|\n");
    bench_graph(&b, "bonds", (ch_graph_opts){ .edges = CH_EDGES_BONDS }, s);
    bench_graph(&b, "radius 5 A", (ch_graph_opts){ .cutoff = 5 }, s);
    pl_store_close(s);
    toy_free(&t);
    toy_remove(dir);
    pl_arena_free(b.turn);
    pl_arena_free(b.mem);
    return 0;
}
