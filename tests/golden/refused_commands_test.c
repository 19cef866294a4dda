/* SPDX-License-Identifier: Apache-2.0 */
/* Every place of a command that asks SQLite, an arena or another room for something is refused once: the command ends with that error,
 * or prints what it prints otherwise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "golden/refused_commands.h"
#include "pipeline/base/folder.h"
#include "toy_folder.h"
#include "unit/statements.h"

/* ---- which commands ---- */

static const char workflow[] =
    "format: 1\nworkdir: run\nseed: 1\ninputs: [{path: in.csv}]\nlimits: {failures: {max_fraction: 1}, disk_free_min: 0B}\nstages:\n"
    "  read: {unit: 9}\n  prepare: {conformers: {source: none}, labels: [y], properties: {y: {unit: u, better: high}}}\n"
    "  graph: {edges: topology}\n  split: {method: random, fractions: {train: 0.7, valid: 0.15, test: 0.15}}\n"
    "  train: {name: m, targets: [{name: y, unit: u, better: high}], family: [gp]}\n  evaluate: {on: [valid, test]}\n"
    "  score: {}\n  rank: {objectives: [{property: y, goal: maximise}], top: 5}\n";

static const char campaign[] =
    "format: 1\nworkdir: rounds\nseed: 1\ninputs: [{path: in.csv}]\nlimits: {failures: {max_fraction: 1}, disk_free_min: 0B}\nstages:\n"
    "  read: {}\n  prepare: {conformers: {source: none}, labels: [none]}\n  graph: {edges: topology}\n"
    "  split: {fractions: {train: 1, valid: 0, test: 0}}\n  train: {name: m, targets: [{name: y, unit: u, better: high}], family: [gp]}\n"
    "  score: {}\n  acquire: {strategy: ucb, count: 10, answers: {table: in.csv}, campaign: {rounds: 1, first: diverse}}\n";

static const command commands[] = {
    { "top run", 23, 0, 0 },
    { "top run --json", 18, 0, 0 },
    { "status run", 13, 2, 0 },
    { "status run --json", 16, 2, 0 },
    { "status run --prometheus", 15, 2, 0 },
    { "failures run", 7, 0, 0 },
    { "failures run --csv", 9, 0, 0 },
    { "search run --similar CCO --at-least 0.1", 43, 0, 0 },
    { "search run --scaffold c1ccccc1 --csv", 42, 0, 0 },
    { "search run --smarts CO --where (mw<900)AND(smarts('C'))", 77, 0, 0 },
    { "search run --smarts C -f sdf", 69, 0, 0 },
    { "show a3 run", 12, 0, 0 },
    { "show a3 run --json", 16, 0, 0 },
    { "show C1CC1 run", 16, 0, 0 },
    { "show UHOVQNZJYSORNB-UHFFFAOYSA-N run", 12, 0, 0 },
    { "next run -n 3 --measured --where (mw<900)AND(smarts('C'))", 66, 0, 0 },
    { "next run -n 3 --measured --max-similarity 0.9 --per-scaffold 2 --by ucb -f csv", 56, 0, 0 },
    { "explain a3 run", 44, 1, 0 },
    { "explain w.yaml rank", 47, 13, 7 },
    { "export csv run --all --where (mw<900)AND(smarts('C'))", 43, 0, 0 },
    { "export sdf run --top 2", 31, 0, 0 },
    { "label run l.csv -n", 61, 2, 0 },
    { "label run known.csv -p new%ld -c y --new", 71, 1, 0 },
    { "label run known.csv -p other -c y --new -n", 51, 1, 0 },
    { "retry w.yaml -n", 88, 23, 15 },
    { "db metadata run", 15, 0, 0 },
    { "db digest run", 7, 0, 0 },
    { "query v_hits run --csv", 13, 4, 0 },
    { "query run", 9, 0, 0 },
    { "query SELECT(scaffold(smiles))FROM(molecule) run", 16, 0, 0 },
    { "query SELECT(hex(fingerprint(smiles)))FROM(molecule) run --csv", 16, 0, 0 },
    { "top w.yaml", 72, 19, 24 },
    { "model info run/models/m.safetensors", 3, 1, 1 },
    { "model verify run/models/m.safetensors", 1, 0, 0 },
    { "model diff run/models/m.safetensors m2.safetensors", 2, 0, 0 },
    { "fit in.csv -t y -n -o fitted", 24, 1, 1 },
    { "predict run/models/m.safetensors p.smi -j 1 -q", 96, 1, 1 },
    { "conformers p.smi -j 1 --device cpu", 26, 0, 0 },
    { "conformers p.smi -j 1 --device cpu -o two.sdf", 36, 0, 0 },
    { "energy one.sdf --minimise", 17, 0, 0 },
    { "check w.yaml", 37, 13, 10 },
    { "plan w.yaml", 52, 14, 8 },
    { "run w.yaml -n", 50, 14, 8 },
    { "db check run", 6, 0, 0 },
    { "report run -o - -n 1", 142, 14, 9 },
    { "failures run --stage prepare --code parse", 9, 0, 0 },
    { "explain a3 run --svg a3.svg", 58, 1, 0 },
    { "bench --memory --batch 1 --graphs bonds", 22, 0, 0 },
    { "db prune w.yaml", 37, 13, 7 },
    { "merge w.yaml --of 2 --missing", 54, 18, 12 },
    { "check w.yaml --json", 39, 13, 10 },
    { "check w.yaml --show", 27, 13, 7 },
    { "plan w.yaml --dag dot", 52, 14, 8 },
    { "completion bash", 8, 0, 0 },
    { "script w.yaml -s slurm -a 2", 36, 13, 7 },
    { "model info m2.safetensors --json", 3, 0, 0 },
    { "failures run --json", 9, 0, 0 },
    { "export smi run --top 3", 8, 0, 0 },
    { "export csv run --all -o all.csv", 24, 0, 0 },
    { "search run --smarts C -f smi -o found.smi", 50, 0, 0 },
    { "campaign c.yaml --plan", 50, 12, 7 },
    { "script c.yaml -s slurm --campaign -a 2", 65, 12, 7 },
    { "script w.yaml -s slurm -a 2 --missing", 58, 18, 12 },
    { "predict run/models/m.safetensors p.smi -j 1 -q -o p%ld.csv", 103, 1, 1 },
    { "predict run/models/m.safetensors in.csv -j 1 -q -c title,y -f jsonl", 98, 1, 1 },
    { "model import w.yaml --from nvidia -o x.safetensors --target y --network layers=2 --graph 0.4", 1, 0, 0 }, /* too short */
};

/* Of these the test sees only what they leave behind, and the status of the last of four calls. */
static const struct {
    const char *words;
    int status;
} others[] = {
    { "run w.yaml -q -j 1", 0 },
    { "repeat w.yaml -n 2 -q -j 1 workdir=again", 0 },
    { "label run known.csv -p y --replace", 0 },
    { "next run -n 3 -f smi -o next.smi", 0 },
    { "search run --smarts C -f csv -o found.csv", 0 },
    { "export sdf run --all -o all.sdf", 0 },
    { "predict run/models/m.safetensors in.csv -j 1 -q -o out.csv", 3 }, /* one record is bad, here and in p.smi */
    { "conformers p.smi -j 1 --device cpu -o two.sdf", 3 },
    { "energy one.sdf --minimise --csv", 0 },
    { "plan w.yaml --json", 0 },
    { "run w.yaml -q -j 1 --shard 0/2 workdir=parts", 0 },
    { "merge w.yaml --of 2 workdir=parts", 75 }, /* the other shard is missing */
    { "run w.yaml -q -j 1 --shard 0/2 workdir=file --out f0.db", 0 },
    { "merge w.yaml f0.db", 2 }, /* the other file is missing */
    { "db schema run", 0 },
    { "db backup run --to copy.db", 6 }, /* the first of four calls wrote it */
    { "query -f jsonl v_funnel run", 0 },
    { "help rank", 0 },
    { "help nothing", 2 },
    { "retry w.yaml --code parse", 0 },
    { "fit in.csv -t none", 2 },
    { "next run -n 2 --exclude keys.csv", 0 },
    { "init train d", 2 }, /* the first of four calls made it */
    { "predict run/models/m.safetensors p.smi -c nothing", 2 },
};

static void table_write(void)
{
    static const char *const rings[] = { "CO", "C1CC1", "C1CCC1", "c1ccccc1", "c1ccncc1" };
    pl_text text = { 0 };

    pl_text_add(&text, "id,smiles,y\n");
    for (int i = 0; i < 25; i++)
        pl_text_addf(&text, "a%d,%s%.*s,%d.%d\n", i, rings[i % 5], i / 5, "CCCC", i / 5, i % 7);
    pl_text_add(&text, "bad,C(x,1\n");
    write_text("in.csv", pl_text_str(&text));
    pl_text_free(&text);
}

/* Whichever request for memory is refused: a project is there as a whole, or its folder `workflows` is not there. */
static void a_project_is_whole_or_not_there(void **state)
{
    toy_folder folder;
    pl_arena *mem;
    bool met = true;
    int n = 0, n_failed = 0;
    said good;

    (void)state;
    if (part > 1)
        return;
    mem = pl_arena_new(0);
    assert_non_null(mem);
    toy_enter(&folder);
    good = say("init train demo");
    assert_int_equal(good.status, 0);
    for (; met; n++) {
        said s;
        assert_int_equal(pl_folder_remove("demo", NULL), PL_OK);
        pl_arena_refuse(n + 1);
        s = say("init train demo");
        met = pl_arena_get(mem, 1, 1) != NULL; /* else this one is refused */
        pl_arena_refuse(0);
        n_failed += s.status != 0;
        if (s.status != 0 && (strstr(pl_text_str(&s.err), "out of memory") == NULL || pl_text_str(&s.out)[0] != '\0'))
            fail_msg("request %d: %s%s", n, pl_text_str(&s.out), pl_text_str(&s.err));
        if (s.status == 0)
            assert_string_equal(pl_text_str(&s.out), pl_text_str(&good.out));
        assert_int_equal(s.status == 0 || access("demo/workflows", F_OK) == 0, access("demo/workflows/README.md", F_OK) == 0);
        said_free(&s);
    }
    assert_true(n_failed > 30);
    said_free(&good);
    pl_arena_free(mem);
    toy_leave(&folder);
}

static void every_place_of_a_command_that_is_refused_ends_it(void **state)
{
    toy_folder folder;
    said s;

    (void)state;
    functions_read();
    toy_enter(&folder);
    table_write();
    write_text("w.yaml", workflow);
    write_text("l.csv", "id,y\na0,0.25\na3,0.5\nnobody,1\n");
    write_text("known.csv", "id,y\na3,0.5\na4,1\n");
    write_text("keys.csv", "LFQSCWFLJHTTHZ-UHFFFAOYSA-N\n");
    write_text("p.smi", "CCO e\nC(x bad\nc1ccccc1 b\n");
    s = say("run w.yaml -q -j 1");
    if (s.status != 0)
        fail_msg("%s", pl_text_str(&s.err));
    said_free(&s);
    assert_int_equal(toy_copy("run/models/m.safetensors", "m2.safetensors"), PL_OK);
    write_text("c.yaml", campaign);
    s = say("campaign c.yaml -q -j 1");
    if (s.status != 0)
        fail_msg("%s", pl_text_str(&s.err));
    said_free(&s);
    write_text("rounds/campaign.seconds", "300\n"); /* whatever it took */
    s = say("conformers p.smi -j 1 -o one.sdf --device cpu");
    said_free(&s);
    for (size_t k = 0; k < sizeof commands / sizeof *commands; k++)
        if (is_of_part(k, sizeof commands / sizeof *commands)) {
            (void)leaves_nothing(commands[k].words);
            command_refuse(&commands[k]);
        }
    for (size_t k = 0; k < sizeof others / sizeof *others && part == n_parts; k++) {
        const int status = leaves_nothing(others[k].words);
        if (status != others[k].status)
            fail_msg("%s: status %d", others[k].words, status);
    }
    free(functions);
    toy_leave(&folder);
    nothing_is_left_open();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_project_is_whole_or_not_there),
        cmocka_unit_test(every_place_of_a_command_that_is_refused_ends_it),
    };

    part_read(argc, argv);
    count_memory(argv);
    return cmocka_run_group_tests_name("places of commands that are refused", tests, NULL, NULL);
}
