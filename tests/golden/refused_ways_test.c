/* SPDX-License-Identifier: Apache-2.0 */
/* As refused_places, of what those runs leave out: conditions and alerts before structures are built, each way to split, a training that
 * starts from another with weights of classes, mirror images, labels with other names, programs with files, batches and poses, and a part
 * of a campaign's scores. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "golden/refused_runs.h"

/* ---- runs ---- */

#define TABLE "{path: in.csv}"
#define RESULTS { NULL, NULL }, NULL, "run/results.db"
#define FLAT \
    "  read: {unit: 9}\n  prepare: {conformers: {source: none}, labels: [y, z, w, t, part], properties: {z: {task: classification}}}\n"

static const char filtered[] = "  read: {unit: 9, censored: bound}\n"
                               "  prepare: {keep: \"mw < 90 and (smarts('C') or similarity('CCO') > 0.9 or scaffold = 'C1CC1')\",\n"
                               "    alerts: {file: alerts.txt, rules: [\"[N;R] aza\"], action: filter}, labels: [y]}\n";
static const char by_file[] = FLAT "  split: {method: file, path: parts.txt}\n";
static const char by_column[] = FLAT "  split: {method: column, column: part}\n";
static const char by_time[] = FLAT "  split: {method: time, column: t, limit: {train: 5}}\n";
static const char by_size[] = FLAT "  split: {method: scaffold, variant: deterministic}\n";
static const char by_chance[] = FLAT "  split: {method: scaffold, variant: balanced, leaks: allow}\n";
static const char by_folds[] = FLAT "  split: {folds: 3, fold: 2}\n";

#define NETWORK "epochs: 1, model: {layers: 1, degrees: 1, channels: 4, heads: 2, parity: both}}\n"
#define BUILT                                                                                                                           \
    "  read: {unit: 9}\n  prepare: {conformers: {source: generate}, labels: [y, z, w, t], properties: {y: {unit: u}, w: {unit: v}, z: " \
    "{task: classification}}}\n  graph: {edges: bonds}\n"
static const char from_another[] = BUILT
    "  split: {fractions: {train: 0.6, valid: 0.2, test: 0.2}}\n"
    "  train: {targets: [{name: w, unit: v}, {name: t, unit: v}], loss: l2, start: m, sparsity: 2:4, ema: 0.9, dtype: bf16, " NETWORK;
static const char first[] = BUILT "  split: {fractions: {train: 0.6, valid: 0.2, test: 0.2}}\n"
                                  "  train: {targets: [{name: y, unit: u, better: high}], " NETWORK "  evaluate: {}\n  score: {}\n";
static const char of_weights[] = BUILT "  split: {fractions: {train: 0.6, valid: 0.2, test: 0.2}}\n"
                                       "  train: {targets: [{name: z, class_weight: 3}], family: [se3, forest], " NETWORK;
static const char judged[] = BUILT "  evaluate: {models: [m, n], targets: [{name: y, column: w, factor: 2}], threads: 1}\n";

static const char by_table[] =
    FLAT "  external: {command: [cat, \"{input}\"], input: csv, output: csv, value: id, property: p, better: high, batch: 4,\n"
         "    files: [parts.txt], env: {A: {value: b}}, keep: failed}\n";
static const char by_poses[] =
    "  read: {unit: 9}\n  prepare: {conformers: {source: generate, count: 2}, labels: [y]}\n"
    "  external: {command: [sed, \"s/^M  END/M  END\\\\n> <v>\\\\n1\\\\n/\", \"{input}\"], input: sdf, output: sdf, value: v, property: p,\n"
    "    better: low, structures: all, poses: true, limits: {disk: 1MiB}}\n";

static const row rows[] = {
    { TABLE, "", filtered, "run w.yaml -q -j 1 --from read --until read", 119, 8, 5, RESULTS, 1, 0, 0 },
    { TABLE, "", filtered, "run w.yaml -q -j 1 --from prepare --until prepare", 103, 7, 5, RESULTS, 2, 0, 2 },
    { TABLE, "", filtered, "run w.yaml -q -j 1 --from prepare --until prepare", 90, 10, 2, RESULTS, 3, 1, 2 },
    { TABLE, "", by_file, "run w.yaml -q -j 1 --from split", 51, 5, 4, RESULTS, 4, 0, 0 },
    { TABLE, "", by_column, "run w.yaml -q -j 1 --from split", 4, 0, 0, RESULTS, 4, 0, 0 },
    { TABLE, "", by_time, "run w.yaml -q -j 1 --from split", 1, 0, 0, RESULTS, 4, 0, 0 },
    { TABLE, "", by_size, "run w.yaml -q -j 1 --from split", 17, 0, 0, RESULTS, 4, 0, 0 },
    { TABLE, "", by_chance, "run w.yaml -q -j 1 --from split", 0, 0, 0, RESULTS, 4, 0, 0 },
    { TABLE, "", by_folds, "run w.yaml -q -j 1 --from split", 0, 0, 0, RESULTS, 4, 0, 0 },
    { TABLE, "", by_table, "run w.yaml -q -j 1 --from external", 126, 6, 5, RESULTS, 5, 0, 0 },
    { TABLE, "", by_poses, "run w.yaml -q -j 1 --from external", 28, 1, 0, RESULTS, 5, 0, 0 },
    { TABLE, "", first, "run w.yaml -q -j 1 --from evaluate --until evaluate", 212, 17, 8, RESULTS, 6, 0, 0 },
    { TABLE, "", first, "run w.yaml -q -j 1 --from score --until score", 123, 18, 9, RESULTS, 7, 0, 0 },
    { TABLE, "models: {m: {path: m.safetensors}}\n", from_another, "run w.yaml -q -j 1 --from train", 143, 12, 7, RESULTS, 8, 0,
      2 },
    { TABLE, "models: {m: {path: m.safetensors}}\n", from_another, "run w.yaml -q -j 1 --from train", 115, 6, 2, RESULTS, 9, 1, 2 },
    { TABLE, "", of_weights, "run w.yaml -q -j 1 --from train", 198, 9, 4, RESULTS, 9, 0, 0 },
    { TABLE, "models: {m: {path: m.safetensors}, n: {path: n.safetensors}}\n", judged, "run w.yaml -q -j 1 --from evaluate", 227,
      15, 11, RESULTS, 10, 0, 0 },
};

/* Twenty molecules with two labels, of which one is a limit at times, a class, a year and the part that each belongs to. */
static void table_write(void)
{
    static const char *const rings[] = { "CO", "C1CC1", "C1CCC1", "c1ccccc1", "c1ccncc1" };
    static const char *const parts[] = { "train", "valid", "test" };
    pl_text text = { 0 };

    pl_text_add(&text, "smiles,y,z,w,t,part,title\n");
    for (int i = 0; i < 20; i++)
        pl_text_addf(&text, "%s%.*s,%s%d,%d,%d,%d,%d,a%d\n", rings[i % 5], i / 5, "CCCC", i % 6 == 5 ? ">" : "", i % 7, i % 2,
                     3 * i % 5, i % 4, i % 3, i);
    write_text("in.csv", pl_text_str(&text));
    pl_text_reset(&text);
    for (int i = 0; i < 20; i++)
        pl_text_addf(&text, "a%d %s\n", i, parts[i % 3]);
    write_text("parts.txt", pl_text_str(&text));
    write_text("alerts.txt", "# rules\n[Cl] chloro\n[F,Br] halo\n");
    pl_text_free(&text);
}

static void every_place_of_other_ways_that_is_refused_ends_them(void **state)
{
    toy_folder folder;

    (void)state;
    functions_read();
    toy_enter(&folder);
    table_write();
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        if (is_wanted(&rows[k]))
            row_refuse(&rows[k]);
        else if (rows[k].stages == first && part > rows[k].part && access("m.safetensors", F_OK) != 0)
            row_begin(&rows[k]);
        if (rows[k].stages == first && access("run/models/w.safetensors", F_OK) == 0) {
            assert_int_equal(toy_copy("run/models/w.safetensors", "m.safetensors"), PL_OK);
            assert_int_equal(toy_copy("run/models/w.safetensors", "n.safetensors"), PL_OK);
        }
    }
    free(functions);
    toy_leave(&folder);
    nothing_is_left_open();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_place_of_other_ways_that_is_refused_ends_them) };

    part_read(argc, argv);
    count_memory(argv);
    return cmocka_run_group_tests_name("places of other ways that are refused", tests, NULL, NULL);
}
