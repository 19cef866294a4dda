/* SPDX-License-Identifier: Apache-2.0 */
/* The messages for every wrong value in a workflow file, and the effective file for a right one, against golden/workflow_*.txt. Each
 * line of a complete file is left out, then gets values of every kind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "golden/golden_text.h"
#include "pipeline/workflow/shard.h"
#include "pipeline/workflow/workflow_parts.h"
#include "unit/fake_stages.h"

static const char whole[] = "format: 1\n"
                            "name: screen\n"
                            "seed: 7\n"
                            "workdir: out\n"
                            "vars: {who: me, size: 12}\n"
                            "workers: 2\n"
                            "inputs:\n"
                            "  - path: a.sdf\n"
                            "    format: sdf\n"
                            "    title_from: ID\n"
                            "  - path: '*.csv'\n"
                            "    columns: {smiles: '2', title: name}\n"
                            "models:\n"
                            "  gap:\n"
                            "    path: m.model\n"
                            "    sha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n"
                            "limits:\n"
                            "  failures: {max_fraction: 0.5, max_count: 10}\n"
                            "  disk_free_min: 1GiB\n"
                            "  max_time: 3h\n"
                            "storage:\n"
                            "  results: r.db\n"
                            "  features: f.db\n"
                            "  journal: wal\n"
                            "scheduler:\n"
                            "  type: slurm\n"
                            "  time: 2h\n"
                            "  nodes: 2\n"
                            "  cpus: 4\n"
                            "  gpus: 1\n"
                            "  memory: 8GiB\n"
                            "  array: 3\n"
                            "  setup: [module load x]\n"
                            "stages:\n"
                            "  read:\n"
                            "  graph:\n"
                            "    unit: 50\n"
                            "    cutoff: 4.5\n"
                            "    neighbours: {max: 12, edges: knn}\n"
                            "    cpu_limit: 3s\n"
                            "    memory: 1GiB\n"
                            "    strict: false\n"
                            "    label: by ${vars.who} of ${env:MOLSIEVE_TEST_NOBODY:-nobody}\n"
                            "    file: a.sdf\n"
                            "    elements: [C, H]\n"
                            "    fractions: [0.5, 0.25]\n"
                            "    targets:\n"
                            "      - name: gap\n"
                            "        unit: eV\n"
                            "        better: low\n"
                            "        weight: 2\n"
                            "    by_name:\n"
                            "      x: {weight: 3}\n"
                            "  split:\n"
                            "    needs: [read]\n"
                            "  train:\n"
                            "    needs: [graph, split]\n";

static const char *const values[] = {
    "",
    "null",
    "true",
    "no",
    "-1",
    "0",
    "3",
    "007",
    "1:30",
    "1e3",
    "0x10",
    "2.5",
    "1e99",
    ".nan",
    "5GiB",
    "5 GiB",
    "5s",
    "auto",
    "graph",
    "grpah",
    "a/b",
    "../not/there",
    "/tmp",
    "''",
    "\"quoted\"",
    "[]",
    "[1, x]",
    "{}",
    "{a: 1}",
    "${vars.who}",
    "${vars.nobody}",
    "${env:MOLSIEVE_TEST_NOBODY}",
    "${",
    "${odd}",
    "a b  c",
    "\"\\x01\"",
    "&a x",
    "*a",
    "!!int 3",
    "none.sdf",
    "*.none",
};

static char folder[64];

/* Appends the text with DIR in place of the folder's name. */
static void add_placed(pl_text *out, const char *text)
{
    for (const char *at; (at = strstr(text, folder)) != NULL; text = at + strlen(folder)) {
        pl_text_add_n(out, text, (size_t)(at - text));
        pl_text_add(out, "DIR");
    }
    pl_text_add(out, text);
}

static void put(const char *name, const char *text)
{
    char path[128];
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    f = fopen(path, "w");
    assert_true(f != NULL && fputs(text, f) >= 0 && fclose(f) == 0);
}

static int folder_open(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/molsieve-words-XXXXXX");
    assert_non_null(mkdtemp(folder));
    put("a.sdf", "");
    put("b.csv", "");
    put("c.csv", "");
    put("m.model", "");
    (void)unsetenv("MOLSIEVE_TEST_NOBODY");
    return 0;
}

static int folder_close(void **state)
{
    char command[128];
    (void)state;

    (void)snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

/* The problems of a file, or the effective file. */
static void load_say(pl_text *out, const char *text, char *const *overrides, int n, bool shown)
{
    pl_arena *mem = pl_arena_new(1 << 16);
    pl_problems problems = { .mem = mem };
    pl_text said = { 0 };
    char path[128];
    pl_workflow *wf;

    put("w.yaml", text);
    (void)snprintf(path, sizeof path, "%s/w.yaml", folder);
    wf = pl_workflow_load(path, overrides, n, fake_stages, &problems, mem);
    assert_int_equal(wf == NULL, problems.n > 0);
    if (wf == NULL)
        pl_problems_write(&problems, &said);
    else if (shown)
        assert_int_equal(pl_workflow_dump(wf, true, &said), PL_OK);
    add_placed(out, wf != NULL && !shown ? "fine\n" : pl_text_str(&said));
    pl_text_free(&said);
    pl_arena_free(mem);
}

/* The whole file with line `at` (of n bytes) changed. */
static void line_say(pl_text *out, const char *at, size_t n, const char *value)
{
    const char *colon = memchr(at, ':', n);
    const size_t keep = colon != NULL ? (size_t)(colon - at) + 1 : 0;
    pl_text text = { 0 };

    pl_text_add_n(&text, whole, (size_t)(at - whole));
    if (value != NULL) {
        pl_text_add_n(&text, at, keep);
        pl_text_addf(&text, " %s\n", value);
    }
    pl_text_add(&text, at + n);
    pl_text_addf(out, "-- %s\n", value != NULL ? value : "(left out)");
    load_say(out, pl_text_str(&text), NULL, 0, false);
    pl_text_free(&text);
}

static void what_is_said_of_each_line_is_known(void **state)
{
    pl_text out = { 0 };
    (void)state;

    for (const char *at = whole; *at != '\0';) {
        const size_t n = strcspn(at, "\n") + 1;
        pl_text_addf(&out, "== %.*s", (int)n, at);
        line_say(&out, at, n, NULL);
        for (size_t i = 0; i < sizeof values / sizeof *values; i++)
            line_say(&out, at, n, values[i]);
        at += n;
    }
    golden_check(MOLSIEVE_TESTS "/golden/workflow_lines.txt", &out);
}

/* ---- command line --------------------------------------------------------------------------------- */

static void what_is_said_of_overrides_is_known(void **state)
{
    static char *const overrides[] = {
        "seed=9",
        "seed=x",
        "seed",
        "=1",
        "stages.graph.cutoff=6",
        "stages.graph.cutof=6",
        "stages.grap.cutoff=6",
        "graph.cutoff=6",
        "stages.graph.cutoff=",
        "stages.graph=1",
        "stages.graph.elements=[N, O]",
        "stages.graph.elements=N",
        "stages.graph.neighbours.max=3",
        "stages.graph.by_name.x.weight=5",
        "stages.graph.by_name.z.weight=5",
        "stages.graph.targets.0.weight=5",
        "inputs.0.path=none",
        "stages.none=1",
        "vars.who=you",
        "vars.more=x",
        "limits.failures.max_count=-5",
        "storage.results=../x.db",
        "storage.results=f.db",
        "name=.hidden",
        "name=${vars.who}",
        "workdir=/tmp/elsewhere",
        "workdir=/elsewhere//",
        "workdir=/",
        "stages.graph.strict=yes",
        "odd=1",
        "stages..cutoff=1",
        ".=1",
    };
    pl_text out = { 0 };
    (void)state;

    for (size_t i = 0; i < sizeof overrides / sizeof *overrides; i++) {
        pl_text_addf(&out, "== %s\n", overrides[i]);
        load_say(&out, whole, &overrides[i], 1, true);
    }
    golden_check(MOLSIEVE_TESTS "/golden/workflow_overrides.txt", &out);
}

/* ---- whole files ------------------------------------------------------------------------------------ */

static void what_is_said_of_odd_files_is_known(void **state)
{
    static const char *const files[] = {
        "",
        "\n",
        "# only\n",
        "a\n",
        "[1]\n",
        "format: 2\nstages:\n  read:\n",
        "format: 1\n",
        "format: 1\nstages:\n",
        "format: 1\nstages: []\n",
        "format: 1\nstages: {}\n",
        "stages:\n  read:\n",
        "format: 1\nstages:\n  graph:\n",
        "format: 1\nstages:\n  none:\n  read:\n",
        "format: 1\nstages:\n  read:\n  read:\n",
        "format: 1\nformat: 1\nstages:\n  read:\n",
        "format: 1\nstages:\n  read:\n    needs: graph\n  graph:\n",
        "format: 1\nstages:\n  read:\n    needs: [read]\n",
        "format: 1\nstages:\n  read:\n    needs: {a: 1}\n",
        "format: 1\nstages:\n  read:\n    needs: [[a]]\n",
        "format: 1\nvars: 3\nstages:\n  read:\n",
        "format: 1\nvars: {a: [1]}\nstages:\n  read:\n",
        "format: 1\nvars: {'a b': 1}\nstages:\n  read:\n",
        "format: 1\nvars: {a: '${vars.b}', b: '${vars.a}'}\nname: ${vars.a}\nstages:\n  read:\n",
        "format: 1\nname: ${vars.a\nstages:\n  read:\n",
        "format: 1\nmodels: [1]\nstages:\n  read:\n",
        "format: 1\nmodels: {a: {path: m.model, sha256: ABC}}\nstages:\n  read:\n",
        "format: 1\ninputs: a.sdf\nstages:\n  read:\n",
        "format: 1\ninputs: [a.sdf, a.sdf]\nstages:\n  read:\n",
        "format: 1\ninputs: [{path: a.sdf, odd: 1}]\nstages:\n  read:\n",
        "format: 1\nstages:\n\tread:\n",
        "format: 1\nstages:\n  read: {a: 1}\n",
        "format: 1\n<<: {a: 1}\nstages:\n  read:\n",
        "format: 1\nname: \"a\\0b\"\nstages:\n  read:\n",
        "format: 1\nstorage: {results: same.db, features: same.db}\nstages:\n  read:\n",
        "format: 1\nname: 'x' y\nstages:\n  read:\n",
        "format: 1\nstages: {read: , graph: }\n",
        "format: 1\n---\nformat: 1\n",
        "format: 1\nstages:\n  read:\n  graph: {file: ~/a.sdf}\n",
        "format: 1\nstages:\n  read:\n  graph: {file: $HOME/a.sdf}\n",
        "format: 1\nstages:\n  read:\n  graph: {file: /dev/null}\n",
        "format: 1\nstages:\n  read:\n  graph: {file: .}\n",
        "format: 1\nstages:\n  read:\n  graph: {neighbours: 3}\n",
        "format: 1\nstages:\n  read:\n  graph: {targets: [{unit: eV}]}\n",
        "format: 1\nstages:\n  read:\n  graph: {targets: [gap]}\n",
        "format: 1\nstages:\n  read:\n  graph: {by_name: [gap]}\n",
        "format: 1\nstages:\n  read:\n  graph: {elements: []}\n",
        "format: 1\nstages:\n  read:\n  graph: {fractions: [a, 2]}\n",
    };
    pl_text out = { 0 };
    (void)state;

    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        pl_text_add(&out, "== ");
        golden_bytes(&out, files[i], strlen(files[i]), 200);
        pl_text_add(&out, "\n");
        load_say(&out, files[i], NULL, 0, true);
    }
    golden_check(MOLSIEVE_TESTS "/golden/workflow_files.txt", &out);
}

static void what_is_written_of_the_tables_is_known(void **state)
{
    pl_text out = { 0 };
    (void)state;

    load_say(&out, whole, NULL, 0, true);
    pl_workflow_schema(fake_stages, &out);
    pl_text_add(&out, "\n");
    pl_workflow_defaults(fake_stages, &out);
    pl_stage_help(&fake_graph, &out);
    pl_workflow_help(&out);
    golden_check(MOLSIEVE_TESTS "/golden/workflow_tables.txt", &out);
}

/* ---- shards ------------------------------------------------------------------------------------------- */

typedef struct shard_case {
    const char *text, *env[5]; /* env: "NAME=value" */
} shard_case;

static const shard_case shard_cases[] = {
    { "0/1", { NULL } },
    { "2/3", { NULL } },
    { "3/3", { NULL } },
    { "-1/3", { NULL } },
    { "0/0", { NULL } },
    { "0/99999", { NULL } },
    { "0/100000", { NULL } },
    { "0/100001", { NULL } },
    { "0/1000001", { NULL } },
    { "a/3", { NULL } },
    { "1/b", { NULL } },
    { "1", { NULL } },
    { "0000000000000000000000001/3", { NULL } },
    { "auto", { NULL } },
    { "auto/3", { NULL } },
    { "auto/", { "SLURM_ARRAY_TASK_ID=1" } },
    { "autos", { "SLURM_ARRAY_TASK_ID=1" } },
    { "auto", { "SLURM_ARRAY_TASK_ID=1" } },
    { "auto/3", { "SLURM_ARRAY_TASK_ID=1" } },
    { "auto/3", { "SLURM_ARRAY_TASK_ID=3" } },
    { "auto",
      { "SLURM_ARRAY_TASK_ID=6", "SLURM_ARRAY_TASK_MIN=2", "SLURM_ARRAY_TASK_STEP=2", "SLURM_ARRAY_TASK_MAX=8",
        "SLURM_ARRAY_TASK_COUNT=4" } },
    { "auto",
      { "SLURM_ARRAY_TASK_ID=6", "SLURM_ARRAY_TASK_MIN=2", "SLURM_ARRAY_TASK_STEP=2", "SLURM_ARRAY_TASK_MAX=8",
        "SLURM_ARRAY_TASK_COUNT=3" } },
    { "auto",
      { "SLURM_ARRAY_TASK_ID=6", "SLURM_ARRAY_TASK_MIN=2", "SLURM_ARRAY_TASK_STEP=0", "SLURM_ARRAY_TASK_MAX=8",
        "SLURM_ARRAY_TASK_COUNT=3" } },
    { "auto", { "SLURM_ARRAY_TASK_ID=0", "SLURM_ARRAY_TASK_COUNT=3" } },
    { "auto", { "SLURM_ARRAY_TASK_ID=2", "SLURM_ARRAY_TASK_MIN=0", "SLURM_ARRAY_TASK_MAX=2" } },
    { "auto/4", { "PBS_ARRAY_INDEX=0" } },
    { "auto/4", { "PBS_ARRAY_INDEX=2" } },
    { "auto/4", { "LSB_JOBINDEX=0" } },
    { "auto/4", { "LSB_JOBINDEX=4" } },
    { "auto", { "LSB_JOBINDEX=4", "LSB_JOBINDEX_END=4" } },
    { "auto/4", { "SGE_TASK_ID=undefined" } },
    { "auto/4", { "SGE_TASK_ID=1" } },
    { "auto", { "SGE_TASK_ID=5", "SGE_TASK_FIRST=1", "SGE_TASK_LAST=9", "SGE_TASK_STEPSIZE=2" } },
};

static void which_shard_a_task_is_is_known(void **state)
{
    pl_text out = { 0 };
    (void)state;

    for (size_t i = 0; i < sizeof shard_cases / sizeof *shard_cases; i++) {
        const shard_case *c = &shard_cases[i];
        pl_error err = { 0 };
        pl_shard shard = { 0 };
        char *set[5];
        pl_text_addf(&out, "== %s", c->text);
        for (int k = 0; k < 5; k++)
            if ((set[k] = c->env[k] != NULL ? strdup(c->env[k]) : NULL) != NULL) {
                pl_text_addf(&out, " %s", set[k]);
                assert_int_equal(putenv(set[k]), 0);
            }
        if (pl_shard_parse(&shard, c->text, &err) == PL_OK)
            pl_text_addf(&out, "\n%d of %d\n", (int)shard.k, (int)shard.n);
        else
            pl_text_addf(&out, "\n%s\n", err.text);
        for (int k = 0; k < 5; k++)
            if (set[k] != NULL) {
                *strchr(set[k], '=') = '\0';
                (void)unsetenv(set[k]);
                free(set[k]);
            }
    }
    golden_check(MOLSIEVE_TESTS "/golden/workflow_shards.txt", &out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_said_of_each_line_is_known), cmocka_unit_test(what_is_said_of_overrides_is_known),
        cmocka_unit_test(what_is_said_of_odd_files_is_known), cmocka_unit_test(what_is_written_of_the_tables_is_known),
        cmocka_unit_test(which_shard_a_task_is_is_known),
    };

    return cmocka_run_group_tests(tests, folder_open, folder_close);
}
