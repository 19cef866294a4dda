/* SPDX-License-Identifier: Apache-2.0 */
/* Workflows: the order of stages, inputs, names and paths, memory that is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "pipeline/workflow/shard.h"
#include "tests/unit/loaded_workflow.h"

static void stages_run_in_the_order_of_their_needs(void **state)
{
    fixture *f = *state;
    const pl_workflow *wf = good(f, "format: 1\nstages:\n  train:\n  split: {needs: graph}\n  graph:\n  read:\n");

    assert_int_equal(wf->n_steps, 4);
    assert_string_equal(wf->step[0].stage->name, "read");
    assert_string_equal(wf->step[1].stage->name, "graph");
    assert_string_equal(wf->step[2].stage->name, "split");
    assert_string_equal(wf->step[3].stage->name, "train");
    assert_int_equal(wf->step[3].n_needs, 2);
    assert_int_equal(wf->step[3].needs[0], 1);
    assert_int_equal(wf->step[3].needs[1], 2);
}

/* Stage a is the first of the registry and needs all others. */
static void a_stage_may_need_any_number_of_stages(void **state)
{
    enum { MANY = 20 };
    fixture *f = *state;
    static char name[MANY][2];
    static pl_stage stage[MANY];
    const pl_stage *known[MANY + 1] = { NULL };
    pl_text text = { 0 };
    const pl_workflow *wf;

    pl_text_add(&text, "format: 1\nstages:\n");
    for (int k = 0; k < MANY; k++) {
        name[k][0] = (char)('a' + k);
        stage[k] = (pl_stage){ .name = name[k], .help = "does", .conf_size = 1 };
        known[k] = &stage[k];
        if (k > 0)
            pl_text_addf(&text, "  %s:\n", name[k]);
    }
    for (int k = 1; k < MANY; k++)
        pl_text_addf(&text, "%s%s", k > 1 ? ", " : "  a: {needs: [", name[k]);
    pl_text_add(&text, "]}\n");
    put(f, "w.yaml", pl_text_str(&text));
    f->problems = (pl_problems){ .mem = f->mem };
    wf = pl_workflow_load(f->file, NULL, 0, known, &f->problems, f->mem);
    assert_non_null(wf);
    assert_string_equal(wf->step[MANY - 1].stage->name, "a");
    assert_int_equal(wf->step[MANY - 1].n_needs, MANY - 1);
    pl_text_free(&text);
}

/* Only its own stages are said of a circle, not those that wait for it. */
static void a_circle_is_said_without_what_leads_to_it(void **state)
{
    static const pl_stage stages[] = { { .name = "a", .help = "does", .conf_size = 1 },
                                       { .name = "b", .help = "does", .conf_size = 1 },
                                       { .name = "c", .help = "does", .conf_size = 1 } };
    static const pl_stage *const known[] = { &stages[0], &stages[1], &stages[2], NULL };
    fixture *f = *state;

    put(f, "w.yaml", "format: 1\nstages:\n  a: {needs: b}\n  b: {needs: c}\n  c: {needs: b}\n");
    f->problems = (pl_problems){ .mem = f->mem };
    assert_null(pl_workflow_load(f->file, NULL, 0, known, &f->problems, f->mem));
    assert_int_equal(f->problems.n, 1);
    assert_string_equal(f->problems.list[0].text, "stages: the needs go in a circle: b, which needs c, which needs b");
}

static void impossible_orders_are_refused(void **state)
{
    fixture *f = *state;

    assert_null(load(f, "format: 1\nstages:\n  read: {needs: train}\n  graph:\n  train:\n", NULL, 0));
    says(f, "the needs go in a circle: ");
    says(f, "read, which needs train, which needs graph, which needs read");
    assert_null(load(f, "format: 1\nstages:\n  train:\n", NULL, 0));
    says(f, "w.yaml:3:9: stages.train: needs the stage graph, which this workflow does not have");
    assert_null(load(f, "format: 1\nstages:\n  read: {needs: raed}\n", NULL, 0));
    says(f, "stages.read.needs: no stage 'raed' in this workflow, did you mean 'read'?");
    assert_null(load(f, "format: 1\nstages:\n  read: {needs: read}\n", NULL, 0));
    says(f, "read, which needs read");
    assert_null(load(f, "format: 1\n", NULL, 0));
    says(f, "stages: required but not given");
}

static void inputs_are_relative_to_the_file_and_sorted_by_name(void **state)
{
    fixture *f = *state;
    char want[160];
    const pl_workflow *wf;
    const pl_input *in;

    put(f, "b.smi", "C\n");
    put(f, "a.smi", "C\n");
    put(f, "we[i]rd.smi", "C\n");
    wf = good(f, "format: 1\ninputs:\n  - {path: '?.smi', format: smi}\n  - {path: 'we[i]rd.smi'}\n"
                 "  - {path: a.smi, columns: {smiles: 2}}\nstages:\n  read:\n");
    in = wf->inputs.items;
    assert_int_equal(wf->inputs.n, 4);
    (void)snprintf(want, sizeof want, "%s/a.smi", f->folder);
    assert_string_equal(in[0].path, want);
    assert_string_equal(in[0].format, "smi");
    assert_non_null(strstr(in[1].path, "/b.smi"));
    assert_non_null(strstr(in[2].path, "/we[i]rd.smi"));
    assert_string_equal(in[3].smiles_column, "2");
    assert_null(load(f,
                     "format: 1\ninputs:\n  - {path: 'x*.smi'}\n  - {path: aa.smi}\n  - {path: .}\n  - {path: /dev/null}\n"
                     "models: {m: {path: m.safetensors, sha256: 12}}\nstages:\n  read:\n",
                     NULL, 0));
    says(f, "w.yaml:3:12: inputs.0.path: no file matches");
    says(f, "w.yaml:4:12: inputs.1.path:");
    says(f, "did you mean 'a.smi'?");
    says(f, "is a folder");
    says(f, "/dev/null is a pipe or a device");
    says(f, "models.m.path:");
    says(f, "models.m.sha256: a SHA-256 has 64 digits");
}

static void a_shard_has_its_own_files(void **state)
{
    static const char *const features[][2] = { { "/w/run/features.db", "/w/run/shards/00003-of-00008/features.db" },
                                               { "/w/run/a/b.db", "/w/run/shards/00003-of-00008/a/b.db" },
                                               { "/w/running/f.db", "/w/running/f-00003-of-00008.db" },
                                               { "/fast/screen.db", "/fast/screen-00003-of-00008.db" },
                                               { "/fast/screen", "/fast/screen-00003-of-00008" },
                                               { "a.db", "a-00003-of-00008.db" },
                                               { ".db", ".db-00003-of-00008" } };
    fixture *f = *state;

    for (size_t i = 0; i < sizeof features / sizeof *features; i++) {
        pl_workflow *wf = load(f, "format: 1\nstages:\n  read:\n", NULL, 0);
        assert_non_null(wf);
        wf->workdir = "/w/run";
        wf->storage.features = features[i][0];
        assert_int_equal(pl_workflow_shard(wf, (pl_shard){ .k = 3, .n = 8 }, f->mem, NULL), PL_OK);
        assert_string_equal(wf->workdir, "/w/run/shards/00003-of-00008");
        assert_string_equal(wf->storage.results, "/w/run/shards/00003-of-00008/results.db");
        assert_string_equal(wf->storage.features, features[i][1]);
    }
}

static void a_workflow_is_named_like_its_file(void **state)
{
    static const char *const files[][2] = { { "a.b.yaml", "a.b" }, { "plain", "plain" }, { ".hidden", NULL } };
    fixture *f = *state;

    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const char text[] = "format: 1\nstages:\n  read:\n";
        char path[160];
        const pl_workflow *wf;
        put(f, files[i][0], text);
        (void)snprintf(path, sizeof path, "%s/%s", f->folder, files[i][0]);
        f->problems = (pl_problems){ .mem = f->mem };
        wf = pl_workflow_load(path, NULL, 0, fake_stages, &f->problems, f->mem);
        pl_text_reset(&f->report);
        pl_problems_write(&f->problems, &f->report);
        assert_int_equal(wf != NULL, files[i][1] != NULL);
        if (wf != NULL)
            assert_string_equal(wf->name, files[i][1]);
        else
            says(f, "name: '.hidden': at most 100 characters, no / and no dot in front");
    }
}

/* The name becomes that of a file, and is printed on terminals. */
static void a_name_is_that_of_a_file_in_a_folder(void **state)
{
    static const struct {
        const char *name;
        bool good;
    } names[] = { { "a.b", true }, { "a/b", false },       { "/", false },
                  { ".a", false }, { "a\\x1b[2J", false }, { "\\u00e9t\\u00e9", true } };
    fixture *f = *state;
    char text[200];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        (void)snprintf(text, sizeof text, "format: 1\nname: \"%s\"\nstages:\n  read:\n", names[i].name);
        if ((load(f, text, NULL, 0) != NULL) != names[i].good)
            fail_msg("%s: %s", names[i].name, pl_text_str(&f->report));
        if (!names[i].good)
            says(f, "at most 100 characters, no / and no dot in front, no control characters");
    }
    for (int n = 100; n <= 101; n++) {
        (void)snprintf(text, sizeof text, "format: 1\nname: %0*d.x\nstages:\n  read:\n", n - 2, 7);
        assert_int_equal(load(f, text, NULL, 0) != NULL, n == 100);
    }
}

/* The exit status of a process that is not root: 0 if it is told about the folder. */
static int told_as_a_user(fixture *f)
{
    char want[300];
    pid_t pid = fork();
    int status = -1;

    if (pid == 0) {
        if (geteuid() == 0 && setuid(65534) != 0)
            _exit(2);
        f->problems = (pl_problems){ .mem = f->mem };
        (void)pl_workflow_load(f->file, NULL, 0, fake_stages, &f->problems, f->mem);
        pl_problems_write(&f->problems, &f->report);
        (void)snprintf(want, sizeof want,
                       ": cannot read the folder %s/shut: Permission denied; change its permissions, or use patterns that do not "
                       "include it\n",
                       f->folder);
        _exit(strstr(pl_text_str(&f->report), want) == NULL);
    }
    (void)waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void a_folder_that_cannot_be_read_is_named(void **state)
{
    fixture *f = *state;
    char shut[100];

    put(f, "w.yaml", "format: 1\ninputs:\n  - {path: '*/a.smi'}\nstages:\n  read:\n");
    (void)snprintf(shut, sizeof shut, "%s/shut", f->folder);
    assert_int_equal(mkdir(shut, 0700), 0);
    assert_int_equal(chmod(shut, 0), 0);
    assert_int_equal(chmod(f->folder, 0755), 0);
    assert_int_equal(told_as_a_user(f), 0);
    assert_int_equal(chmod(shut, 0755), 0);
    assert_int_equal(told_as_a_user(f), 1);
}

static void paths_are_written_without_detours(void **state)
{
    fixture *f = *state;
    char want[160];
    const pl_workflow *wf = good(f, "format: 1\nworkdir: .././/../../etc/x/../y\nstages:\n  read:\n");

    assert_string_equal(wf->workdir, "/etc/x/../y"); /* x may be a link: only the folders before it are known */
    wf = good(f, "format: 1\nworkdir: ./runs/a\nstages:\n  read:\n");
    (void)snprintf(want, sizeof want, "%s/runs/a", f->folder);
    assert_string_equal(wf->workdir, want);
    wf = good(f, "format: 1\nworkdir: .hidden\nstages:\n  read:\n");
    (void)snprintf(want, sizeof want, "%s/.hidden", f->folder);
    assert_string_equal(wf->workdir, want);
}

static void a_model_the_run_makes_itself_need_not_exist_yet(void **state)
{
    fixture *f = *state;

    (void)good(f, "format: 1\nname: x\nmodels: {m: {path: runs/x/models/m.safetensors}}\nstages:\n  read:\n");
}

static void refused_memory_is_an_error_and_never_half_a_workflow(void **state)
{
    fixture *f = *state;
    char *set[] = { "seed=5", "stages.graph.label=${vars.a}" };
    long refusals = 0;

    put(f, "a.smi", "C\n");
    put(f, "w.yaml",
        "format: 1\ninputs: [{path: '*.smi'}]\nvars: {a: x}\nname: n${vars.a}\nstages:\n  train:\n  read:\n"
        "  graph: {cutoff: 4, targets: [{name: gap}], fractions: [1]}\n");
    for (long nth = 1; nth < 400; nth++) {
        pl_arena *mem = pl_arena_new(0);
        pl_problems problems = { .mem = mem };
        pl_workflow *wf;
        pl_arena_refuse(nth);
        wf = pl_workflow_load(f->file, set, 2, fake_stages, &problems, mem);
        pl_arena_refuse(0);
        refusals += wf == NULL;
        assert_true((wf == NULL) == (problems.n != 0));
        if (wf != NULL) {
            assert_string_equal(wf->name, "nx");
            assert_int_equal(wf->inputs.n, 1);
            assert_non_null(((pl_input *)wf->inputs.items)->path);
            assert_true(wf->n_steps == 3 && wf->seed == 5);
            assert_string_equal(conf_of(wf)->label, "x");
            assert_true(conf_of(wf)->cutoff == 4 && conf_of(wf)->targets.n == 1 && conf_of(wf)->fractions.n == 1);
            assert_string_equal(((fake_target *)conf_of(wf)->targets.items)[0].name, "gap");
        }
        pl_arena_free(mem);
    }
    assert_true(refusals > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(stages_run_in_the_order_of_their_needs),
        TEST(a_stage_may_need_any_number_of_stages),
        TEST(a_circle_is_said_without_what_leads_to_it),
        TEST(impossible_orders_are_refused),
        TEST(inputs_are_relative_to_the_file_and_sorted_by_name),
        TEST(a_folder_that_cannot_be_read_is_named),
        TEST(a_shard_has_its_own_files),
        TEST(a_workflow_is_named_like_its_file),
        TEST(a_name_is_that_of_a_file_in_a_folder),
        TEST(paths_are_written_without_detours),
        TEST(a_model_the_run_makes_itself_need_not_exist_yet),
        TEST(refused_memory_is_an_error_and_never_half_a_workflow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
