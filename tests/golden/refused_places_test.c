/* SPDX-License-Identifier: Apache-2.0 */
/* Every place that asks SQLite or an arena for something in a run that reads and prepares, in one of a program, in a shard and in a merge
 * that trains, scores, ranks and chooses is refused. refused_training_test.c refuses those of trainings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "golden/refused_runs.h"

/* ---- runs ---- */

static const char learned[] = PREPARED
    "  graph: {edges: bonds}\n"
    "  split: {method: scaffold, fractions: {train: 0.7, valid: 0.15, test: 0.15}}\n"
    "  train: {targets: [{name: y, unit: u, better: high}], family: [se3, gp], epochs: 1,\n"
    "    model: {layers: 1, degrees: 1, channels: 4, heads: 2}}\n"
    "  evaluate: {on: [train, valid, test]}\n"
    "  score: {}\n"
    "  rank: {objectives: [{property: y, goal: maximise}], where: mw < 900, diversity: {by: similarity, threshold: 0.9}, top: 9}\n"
    "  write: {csv: hits.csv, smi: hits.smi}\n"
    "  acquire: {strategy: ucb, count: 3, exclude: none}\n";
static const char outside[] = PREPARED
    "  external: {command: [grep, -n, C, \"{input}\"], input: smiles, output: regex, value: \"^(1)\", property: p, better: low, env: {A: {value: 1}}}\n"
    "  rank: {objectives: [{property: p, goal: maximise}, {property: mw, goal: minimise}], method: pareto, diversity: {by: scaffold, at_most: 2}}\n"
    "  write: {csv: hits.csv, smi: hits.smi}\n";

static const char graphs[] = PREPARED "  graph: {edges: bonds}\n";

/* What a run or a merge must find undone is removed before each. */
#define MERGED "run/results.db run/results.merging.db run/features.db all.db all.merging.db"
#define SHARDS                                                             \
    {                                                                      \
        "run w.yaml -q -j 1 --shard 0/2", "run w.yaml -q -j 1 --shard 1/2" \
    }
#define LAST                                                 \
    {                                                        \
        "run w.yaml -q -j 1 --shard 2/3 workdir=third", NULL \
    }
#define FILES                                                                                    \
    {                                                                                            \
        "run w.yaml -q -j 1 --shard 0/2 --out 0.db", "run w.yaml -q -j 1 --shard 1/2 --out 1.db" \
    }

static const row rows[] = {
    { "{path: twice.csv}", "", graphs, "run w.yaml -q -j 1 --shard 2/3 workdir=third --from read --until read", 81, 8, 5, LAST, "",
      "third/shards/00002-of-00003/results.db", 1, 0, 0 }, /* what it reads first is of other shards */
    { "{path: bad.csv}", "", outside, "run w.yaml -q -j 1 --from read --until read", 17, 3, 0, WHOLE, 1, 0, 0 },
    { "{path: bad.csv}", "", outside, "run w.yaml -q -j 1 --from prepare --until prepare", 143, 18, 6, WHOLE, 2, 0, 0 },
    { "{path: bad.csv}", "", outside, "run w.yaml -q -j 1 --from external", 231, 9, 5, WHOLE, 3, 0, 0 },
    { "{path: twice.csv}", "", graphs, "run w.yaml -q -j 1 --shard 0/2 --from read", 124, 8, 3, SHARDS, "",
      "run/shards/00000-of-00002/results.db", 1, 0, 0 },
    { "{path: twice.csv}", "", learned, "merge w.yaml -q", 137, 15, 7, SHARDS, MERGED, "run/results.db", 4, 0, 2 },
    { "{path: twice.csv}", "", learned, "merge w.yaml -q", 65, 5, 4, SHARDS, MERGED, "run/results.db", 5, 1, 2 },
    { "{path: twice.csv}", "", graphs, "merge 0.db 1.db -o all.db -q", 113, 4, 2, FILES, MERGED, "all.db", 6, 0, 0 },
};

/* Twenty rows, of twelve molecules and the first of them again. */
static void twice_write(const char *path)
{
    static const char *const rings[] = { "CO", "C1CC1", "C1CCC1", "c1ccccc1", "c1ccncc1" };
    pl_text text = { 0 };

    pl_text_add(&text, "smiles,y,z\n");
    for (int i = 0; i < 20; i++)
        pl_text_addf(&text, "%s%.*s,%d,%d\n", rings[i % 12 % 5], i % 12 / 5, "CCCC", i % 7, i % 12 % 2);
    write_text(path, pl_text_str(&text));
    pl_text_free(&text);
}

/* Records that fail, in the first place of each kind, before molecules of which one has no label, and one comes twice. */
static void bad_write(const char *path)
{
    pl_text text = { 0 };

    pl_text_add(&text, "smiles,y,z\n,1,0\nC(,2,1\n\"C\n[Fe],n.d.,\nCCO,>3,1\nOCC,4,0\n[Na+].CC(=O)[O-],5,1\n");
    for (int i = 1; i < 9; i++)
        pl_text_addf(&text, "%.*sN,%d,%d\n", i, "CCCCCCCCC", i % 7, i % 2);
    write_text(path, pl_text_str(&text));
    pl_text_free(&text);
}

static void every_place_of_a_run_that_is_refused_ends_it(void **state)
{
    toy_folder folder;

    (void)state;
    functions_read();
    toy_enter(&folder);
    twice_write("twice.csv");
    bad_write("bad.csv");
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (is_wanted(&rows[k]))
            row_refuse(&rows[k]);
    free(functions);
    toy_leave(&folder);
    nothing_is_left_open();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_place_of_a_run_that_is_refused_ends_it) };

    part_read(argc, argv);
    count_memory(argv);
    return cmocka_run_group_tests_name("places that are refused", tests, NULL, NULL);
}
