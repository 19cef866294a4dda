/* SPDX-License-Identifier: Apache-2.0 */
/* Every place that asks SQLite or an arena for something in a run that trains, evaluates, scores, ranks and chooses is refused: the
 * run ends with that error, and the next one starts where it must. Or what it stores is what it stores otherwise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "golden/command.h"
#include "golden/refused_places.h"
#include "small_table.h"
#include "unit/statements.h"

/* ---- runs ---- */

#define HEAD \
    "format: 1\nworkdir: run\nseed: 1\ninputs: [{path: %s}]\n%slimits: {failures: {max_fraction: 1}, disk_free_min: 0B}\n" /* inputs, models */
static const char prepared[] =
    "stages:\n  read: {unit: 9}\n"
    "  prepare: {conformers: {source: generate}, labels: [y, z], properties: {y: {unit: u}, z: {task: classification}}}\n";
static const char learned[] =
    "  graph: {edges: bonds}\n"
    "  split: {method: scaffold, fractions: {train: 0.7, valid: 0.15, test: 0.15}}\n"
    "  train: {targets: [{name: y, unit: u, better: high}], family: [se3, gp], epochs: 1,\n"
    "    model: {layers: 1, degrees: 1, channels: 4, heads: 2}}\n"
    "  evaluate: {on: [train, valid, test]}\n"
    "  score: {}\n"
    "  rank: {objectives: [{property: y, goal: maximise}], where: mw < 900, diversity: {by: similarity, threshold: 0.9}, top: 9}\n"
    "  write: {csv: hits.csv, smi: hits.smi}\n"
    "  acquire: {strategy: ucb, count: 3, exclude: none}\n";
static const char judged[] = "  graph: {edges: bonds}\n  evaluate: {models: [m], calibrate: true}\n";
static const char outside[] =
    "  external: {command: [grep, -n, C, \"{input}\"], input: smiles, output: regex, value: \"^(1)\", property: p, better: low, env: {A: {value: 1}}}\n"
    "  rank: {objectives: [{property: p, goal: maximise}, {property: mw, goal: minimise}], method: pareto, diversity: {by: scaffold, at_most: 2}}\n"
    "  write: {csv: hits.csv, smi: hits.smi}\n";

/* A workflow, and a run of it in which some stages do their work again; places of stages before them are refused in another row. */
static const struct {
    const char *inputs, *models, *stages, *again;
    int places, without; /* at least, at most in each pass */
} rows[] = {
    { "in.csv", "", learned, "run w.yaml -q -j 1 --from split --until train", 50, 30 },
    { "in.csv", "", learned, "run w.yaml -q -j 1 --from evaluate", 50, 20 },
    { "in.csv", "", outside, "run w.yaml -q -j 1 --from read --until prepare", 20, 20 },
    { "in.csv", "", outside, "run w.yaml -q -j 1 --from external", 20, 20 },
    { "new.csv", "models: {m: {path: m.safetensors}}\n", judged, "run w.yaml -q -j 1 --from evaluate", 20, 20 },
};

/* What the run stored. */
static void stored(pl_text *out)
{
    static const char *const asked[] = { "top run --csv", "query -f csv evaluation run", "query -f csv acquired run",
                                         "query -f csv split run", "query -f csv score run" };

    for (size_t k = 0; k < sizeof asked / sizeof *asked; k++) {
        said s = say(asked[k]);
        pl_text_add(out, pl_text_str(&s.out));
        said_free(&s);
    }
    file_read("run/hits.csv", out);
    file_read("run/hits.smi", out);
}

/* Stages that store their rows together with the mark that they are done. */
static void undone_stages_have_no_rows(void)
{
    static const char *const pairs[][2] = { { "split", "split" }, { "rank", "hit" }, { "acquire", "acquired" } };
    sqlite3 *db = NULL;
    int64_t n = 0;

    assert_int_equal(sqlite3_open_v2("run/results.db", &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        assert_int_equal(pl_db_int(db, &n, NULL,
                                   "SELECT count(*) FROM %s WHERE NOT EXISTS(SELECT 1 FROM stage WHERE name=%Q AND state='done')",
                                   pairs[k][1], pairs[k][0]),
                         PL_OK);
        if (n > 0)
            fail_msg("%s: %lld rows of %s, which is not done", name_of(where), (long long)n, pairs[k][0]);
    }
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* A file that cannot be read when the workflow is checked is a problem of the workflow; memory that is refused is not. */
static bool is_told_by_check(const said *s) { return s->status == 2 && strcmp(what, "memory") != 0; }

/* One run, in which a new place is refused. False: there is none left. */
static bool refuse_one(const char *again, const char *want, int *n_without)
{
    pl_text is = { 0 };
    said s;
    bool met;

    refusing();
    s = say(again);
    atomic_store(&armed, false);
    met = what != NULL;
    if (s.status == 0) {
        stored(&is);
        if (strcmp(want, pl_text_str(&is)) != 0)
            fail_msg("%s; the run ends with status 0 and stores\n%s\ninstead of\n%s", name_of(where), pl_text_str(&is), want);
        n_without[pass] += met;
    } else if (!met || strstr(pl_text_str(&s.err), what) == NULL || !(s.status == 6 || is_told_by_check(&s))) {
        fail_msg("%s: status %d\n%s", name_of(where), s.status, pl_text_str(&s.err));
    }
    if (s.status != 0)
        undone_stages_have_no_rows();
    if (!tells_for_what(pl_text_str(&s.err)))
        fail_msg("%s: %s", name_of(where), pl_text_str(&s.err));
    if (met && getenv("SHOW") != NULL)
        print_message("%s %p: %s, status %d\n", name_of(where), where, what, s.status);
    pl_text_free(&is);
    said_free(&s);
    return met;
}

static void row_refuse(size_t k)
{
    int n = 0, without[2] = { 0 };
    clock_t began = clock();
    pl_text want = { 0 }, text = { 0 };
    said s;

    pl_text_addf(&text, HEAD, rows[k].inputs, rows[k].models);
    pl_text_addf(&text, "%s%s", prepared, rows[k].stages);
    write_text("w.yaml", pl_text_str(&text));
    toy_remove("run"); /* each run makes the next one a little longer */
    s = say("run w.yaml -q -j 1");
    if (s.status != 0)
        fail_msg("%s", pl_text_str(&s.err));
    said_free(&s);
    assert_int_equal(leaves_nothing(rows[k].again), 0);
    stored(&want);
    while (refuse_one(rows[k].again, pl_text_str(&want), without))
        n++;
    print_message("%s: %d places, %d and %d without, %.1f s\n", rows[k].again, n, without[0], without[1],
                  (double)(clock() - began) / CLOCKS_PER_SEC);
    assert_true(n >= rows[k].places && without[0] <= rows[k].without && without[1] <= rows[k].without);
    pl_text_free(&want);
    pl_text_free(&text);
}

static void every_place_of_a_run_that_is_refused_ends_it(void **state)
{
    toy_folder folder;

    (void)state;
    functions_read();
    toy_enter(&folder);
    small_table_write("in.csv", "");
    small_table_write("new.csv", "C(C)C");
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        row_refuse(k);
        if (k == 1)
            assert_int_equal(rename("run/models/w.safetensors", "m.safetensors"), 0);
    }
    free(functions);
    toy_leave(&folder);
    assert_int_equal(statements_left, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_place_of_a_run_that_is_refused_ends_it) };

    (void)argc;
    count_memory(argv);
    return cmocka_run_group_tests_name("places that are refused", tests, NULL, NULL);
}
