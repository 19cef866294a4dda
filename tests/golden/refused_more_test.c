/* SPDX-License-Identifier: Apache-2.0 */
/* As refused_commands, of a run with a network and structures, names that several molecules have, tables, and two models at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "golden/refused_commands.h"
#include "toy_folder.h"
#include "unit/statements.h"

#define HEAD \
    "format: 1\nworkdir: %s\nseed: 1\ninputs: [{path: in.csv}]\nlimits: {failures: {max_fraction: 1}, disk_free_min: 0B}\n" /* workdir */

static const char screen[] =
    "stages:\n  read: {unit: 9}\n  prepare: {conformers: {source: generate, count: 2}, labels: [y], properties: {y: {unit: u}}}\n"
    "  graph: {edges: bonds}\n  split: {method: random, fractions: {train: 0.7, valid: 0.15, test: 0.15}}\n"
    "  train: {name: m, targets: [{name: y, unit: u, better: high}], family: [se3, gp], epochs: 1,\n"
    "    model: {layers: 1, degrees: 1, channels: 4, heads: 2}}\n"
    "  score: {}\n  rank: {objectives: [{property: y, goal: maximise}], top: 5}\n";

/* Its table of answers names the molecules and has no number for any, so each run ends there. */
static const char asked[] =
    "stages:\n  read: {}\n  prepare: {conformers: {source: none}, labels: [none]}\n  graph: {edges: topology}\n"
    "  split: {fractions: {train: 1, valid: 0, test: 0}}\n  train: {name: m, targets: [{name: y, unit: u, better: high}], family: [gp]}\n"
    "  score: {}\n  acquire: {strategy: ucb, count: 10, answers: {table: answers.csv}, where: mw < 900, campaign: {rounds: 1, first: diverse}}\n";

static const char outside[] =
    "stages:\n  read: {}\n  prepare: {conformers: {source: none}, labels: [none]}\n"
    "  external: {command: [cat, \"{input}\"], input: csv, output: csv, value: id, property: p, better: low, files: [keys.csv]}\n";

static const command commands[] = {
    { "check ext.yaml --try", 51, 3, 0 },
    { "campaign p.yaml -q -j 1 --part 0/%ld", 145, 16, 9 },
    { "explain 3 net --svg three.svg", 111, 1, 0 },
    { "show twin net", 13, 0, 0 },
    { "show twin net --json", 16, 0, 0 },
    { "show bad net", 13, 0, 0 },
    { "show bad net --json", 16, 0, 0 },
    { "export sdf net --all --conformers all", 39, 0, 0 },
    { "search net --smarts C --similar CCO --at-least 0.1", 59, 0, 0 },
    { "next net -n 3 --exclude keys.csv", 41, 0, 0 },
    { "label net known.csv -p other -c y --new -n", 53, 1, 0 },
    { "predict net/models/m.safetensors,other.safetensors odd.csv -j 1 -q -c title,number,y", 143, 1, 1 },
    { "failures net --limit 1", 9, 0, 0 },
    { "fit odd.csv -t y -n -o odd --seed 3", 24, 1, 1 },
    { "model join net/models/m.safetensors other.safetensors -o joined.safetensors", 5, 0, 0 },
    { "model diff net/models/m.safetensors other.safetensors", 3, 0, 0 },
    { "init train d%ld", 26, 2, 0 },
    { "explain net.yaml", 46, 13, 6 },
    { "top other.yaml", 52, 11, 8 },
    { "bench --memory --batch 1 -m net/models/m.safetensors --molecules one.sdf", 28, 0, 0 },
    { "campaign c.yaml -q -j 1", 233, 15, 15 },
};

static void tables_write(void)
{
    static const char *const rings[] = { "CO", "C1CC1", "c1ccccc1" };
    pl_text text = { 0 };

    pl_text_add(&text, "id,smiles,y\n");
    for (int i = 0; i < 12; i++)
        pl_text_addf(&text, "a%d,%s%.*s,%d.%d\n", i, rings[i % 3], i / 3, "CCCC", i / 3, i % 7);
    pl_text_add(&text, "twin,CCN,1\ntwin,CCCN,2\nbad,C(x,1\nbad,C(,1\n");
    write_text("in.csv", pl_text_str(&text));
    pl_text_reset(&text);
    pl_text_add(&text, "id,smiles,y\n");
    for (int i = 0; i < 12; i++)
        pl_text_addf(&text, "a%d,%s%.*s,n.d.\n", i, rings[i % 3], i / 3, "CCCC");
    write_text("answers.csv", pl_text_str(&text));
    pl_text_free(&text);
    write_text(
        "odd.csv",
        "number,what,y\n1,CCO,1\n2,CCN,2\n3,CCC,1.5\n4,CCCC,2.5\n5,CCCCC,3\n6,CCCO,2\n7,CCCN,1\n8,CO,4\n9,CN,3\n10,CCCCN,5\n");
    write_text("known.csv", "smiles,y\nCCN,0.5\nCCCN,1\nC1CC1,2\n");
    write_text("keys.csv", "QUSNBJAOOMFDIB-UHFFFAOYSA-N\nWGYKZJWCGVVSQN-UHFFFAOYSA-N\n");
    write_text("one.smi", "CCO e\n");
}

static void workflow_write(const char *path, const char *workdir, const char *stages)
{
    pl_text text = { 0 };

    pl_text_addf(&text, HEAD, workdir);
    pl_text_add(&text, stages);
    write_text(path, pl_text_str(&text));
    pl_text_free(&text);
}

static void done(const char *words, int status)
{
    said s = say(words);

    if (s.status != status)
        fail_msg("%s: status %d\n%s", words, s.status, pl_text_str(&s.err));
    said_free(&s);
}

static void every_place_of_more_commands_that_is_refused_ends_them(void **state)
{
    toy_folder folder;

    (void)state;
    functions_read();
    toy_enter(&folder);
    tables_write();
    workflow_write("net.yaml", "net", screen);
    workflow_write("other.yaml", "net", outside);
    workflow_write("c.yaml", "rounds", asked);
    workflow_write("ext.yaml", "outside", outside);
    workflow_write("p.yaml", "parts", asked);
    done("run net.yaml -q -j 1", 0);
    done("campaign p.yaml -q -j 1 --parts 2 stages.acquire.answers.table=in.csv", 75);
    done("check ext.yaml --try", 0); /* what starts programs stays */
    done("conformers one.smi -j 1 -o one.sdf --device cpu", 0);
    assert_int_equal(toy_copy("net/models/m.safetensors", "other.safetensors"), PL_OK);
    for (size_t k = 0; k < sizeof commands / sizeof *commands; k++)
        if (is_of_part(k, sizeof commands / sizeof *commands)) {
            (void)leaves_nothing(commands[k].words);
            command_refuse(&commands[k]);
        }
    free(functions);
    toy_leave(&folder);
    nothing_is_left_open();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_place_of_more_commands_that_is_refused_ends_them) };

    part_read(argc, argv);
    count_memory(argv);
    return cmocka_run_group_tests_name("places of more commands that are refused", tests, NULL, NULL);
}
