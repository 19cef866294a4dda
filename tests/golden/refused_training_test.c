/* SPDX-License-Identifier: Apache-2.0 */
/* Every place that asks SQLite or an arena for something in a run that trains, evaluates, scores, ranks and chooses is refused: with two of
 * all that may be several (inputs, targets, networks, models), with limits, columns, descriptors, a basis and known actives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "golden/refused_runs.h"

#define INPUTS "{path: in.csv}, {path: more.csv}"
static const char learned[] =
    "  read: {unit: 9, censored: bound}\n"
    "  prepare: {conformers: {source: generate}, labels: [y, z, w],\n"
    "    properties: {y: {unit: u}, w: {unit: u}, z: {task: classification}}}\n"
    "  graph: {edges: bonds}\n  basis: {}\n"
    "  split: {method: scaffold, fractions: {train: 0.7, valid: 0.15, test: 0.15}}\n"
    "  train: {targets: [{name: y, unit: u, better: high}, {name: w, unit: u, transform: composition}], family: [se3, gp], epochs: 1,\n"
    "    members: 2, inputs: {descriptors: true, columns: [t]}, model: {layers: 1, degrees: 1, channels: 4, heads: 2}}\n"
    "  evaluate: {on: [train, valid, test]}\n"
    "  score: {}\n"
    "  rank: {objectives: [{property: y, goal: maximise, use: mean+stdev}], constraints: [{property: w, at_least: 0}], where: mw < 900,\n"
    "    domain: inside, actives: z, diversity: {by: similarity, threshold: 0.9}, top: 9}\n"
    "  write: {csv: hits.csv, smi: hits.smi, sdf: hits.sdf}\n"
    "  acquire: {property: y, strategy: ucb, count: 3, exclude: none}\n";
static const char judged[] = "  read: {unit: 9}\n  prepare: {conformers: {source: generate}, labels: [y, w, t]}\n"
                             "  graph: {edges: bonds}\n  evaluate: {models: [m, n], calibrate: true}\n";

#define PREPARED_ONLY                              \
    {                                              \
        "run w.yaml -q -j 1 --until prepare", NULL \
    }

static const row rows[] = {
    { INPUTS, "", learned, "run w.yaml -q -j 1 --from train --until train", 99, 2, 0, WHOLE, 1, 0, 4 },
    { INPUTS, "", learned, "run w.yaml -q -j 1 --from train --until train", 102, 7, 5, WHOLE, 2, 1, 4 },
    { INPUTS, "", learned, "run w.yaml -q -j 1 --from train --until train", 163, 10, 7, WHOLE, 3, 2, 4 },
    { INPUTS, "", learned, "run w.yaml -q -j 1 --from train --until train", 57, 6, 5, WHOLE, 4, 3, 4 },
    { INPUTS, "", learned, "run w.yaml -q -j 1 --from evaluate --until evaluate", 315, 23, 16, WHOLE, 5, 0, 0 },
    { INPUTS, "", learned, "run w.yaml -q -j 1 --from score --until score", 206, 24, 16, WHOLE, 6, 0, 0 },
    { INPUTS, "", learned, "run w.yaml -q -j 1 --from rank --until rank", 167, 22, 16, WHOLE, 7, 0, 0 },
    { INPUTS, "", learned, "run w.yaml -q -j 1 --from write --until write", 58, 0, 0, WHOLE, 7, 0, 0 },
    { INPUTS, "", learned, "run w.yaml -q -j 1 --from acquire --until acquire", 49, 0, 0, WHOLE, 7, 0, 0 },
    { "{path: new.csv}", "models: {m: {path: m.safetensors}, n: {path: n.safetensors}}\n", judged,
      "run w.yaml -q -j 1 --from evaluate", 192, 5, 5, WHOLE, 8, 0, 2 },
    { "{path: new.csv}", "models: {m: {path: m.safetensors}, n: {path: n.safetensors}}\n", judged,
      "run w.yaml -q -j 1 --from evaluate", 118, 9, 2, WHOLE, 9, 1, 2 },
    { "{path: gaps.csv}", "", learned, "run w.yaml -q -j 1 --from prepare --until prepare", 192, 32, 15, PREPARED_ONLY, NULL,
      "run/results.db", 10, 0, 0 },
};

/* n molecules: of y every sixth is a limit, w depends on nothing, t is a column that the model reads. */
static void table_write(const char *path, const char *end, int n)
{
    static const char *const rings[] = { "CO", "C1CC1", "C1CCC1", "c1ccccc1", "c1ccncc1" };
    pl_text text = { 0 };

    pl_text_add(&text, "smiles,y,z,w,t\n");
    for (int i = 0; i < n; i++)
        pl_text_addf(&text, "%s%.*s%s,%s%d,%d,%d,%d\n", rings[i % 5], i / 5, "CCCC", end, i % 6 == 5 ? ">" : "", i % 7, i % 2,
                     3 * i % 5, i % 4);
    pl_text_add(&text, strcmp(path, "gaps.csv") == 0 ? "CCCCS,1,0,2,\nCCCCCS,2,1,3,\n" : ""); /* without t */
    write_text(path, pl_text_str(&text));
    pl_text_free(&text);
}

static void every_place_of_a_training_that_is_refused_ends_it(void **state)
{
    toy_folder folder;

    (void)state;
    functions_read();
    toy_enter(&folder);
    table_write("in.csv", "", 20);
    table_write("more.csv", "C(C)C", 3);
    table_write("new.csv", "C(C)CC", 20);
    table_write("gaps.csv", "", 12);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        if (is_wanted(&rows[k]))
            row_refuse(&rows[k]);
        else if (rows[k].part == 7 && part > 7 && access("m.safetensors", F_OK) != 0)
            row_begin(&rows[k]);
        if (rows[k].part == 7 && part > 7 && access("m.safetensors", F_OK) != 0) {
            assert_int_equal(rename("run/models/w-1.safetensors", "m.safetensors"), 0);
            assert_int_equal(rename("run/models/w-2.safetensors", "n.safetensors"), 0);
        }
    }
    free(functions);
    toy_leave(&folder);
    nothing_is_left_open();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_place_of_a_training_that_is_refused_ends_it) };

    part_read(argc, argv);
    count_memory(argv);
    return cmocka_run_group_tests_name("places of trainings that are refused", tests, NULL, NULL);
}
