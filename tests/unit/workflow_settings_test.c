/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of a workflow: defaults, values of each type, variables, overrides, keys, the effective file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/loaded_workflow.h"
#include "tests/unit/settings_said.h"

static void defaults_come_from_the_table(void **state)
{
    fixture *f = *state;
    const pl_workflow *wf = good(f, HEAD);
    const fake_conf *c = conf_of(wf);

    assert_true(c->cutoff == 5 && c->unit == 1000 && c->neighbours == -1 && c->edges == 0);
    assert_true(c->cpu_limit == 2 && c->memory == 2147483648.0 && c->strict && c->label == NULL);
    assert_int_equal(c->targets.n, 0);
    assert_string_equal(wf->name, "w");
    assert_int_equal(wf->workers, -1);
}

static void values_with_units_words_and_lists_are_read(void **state)
{
    fixture *f = *state;
    const pl_workflow *wf =
        good(f, HEAD "    cutoff: 4.5\n    unit: 1e3\n    neighbours: {max: 12, edges: knn}\n    cpu_limit: 1m30s\n"
                     "    memory: 64MiB\n    strict: false\n    label: \"yes: no\"\n    elements: [C, N]\n"
                     "    fractions: [0.8, 0.2]\n    targets:\n      - {name: gap, unit: eV, better: low}\n      - name: mu\n"
                     "    by_name: {b: {weight: 2}, a: {}}\n");
    const fake_conf *c = conf_of(wf);
    const fake_target *t = c->targets.items, *n = c->by_name.items;

    assert_true(c->cutoff == 4.5 && c->unit == 1000 && c->neighbours == 12 && c->edges == 2);
    assert_true(c->cpu_limit == 90 && c->memory == 67108864 && !c->strict);
    assert_string_equal(c->label, "yes: no");
    assert_int_equal(c->elements.n, 2);
    assert_string_equal(((const char **)c->elements.items)[1], "N");
    assert_true(((double *)c->fractions.items)[1] == 0.2);
    assert_int_equal(c->targets.n, 2);
    assert_string_equal(t[0].name, "gap");
    assert_true(t[0].better == 0 && t[1].better == 2 && t[1].weight == 1);
    assert_string_equal(t[1].unit, "1");
    assert_int_equal(c->by_name.n, 2);
    assert_string_equal(n[0].name, "b");
    assert_true(n[0].weight == 2 && n[1].weight == 1);
}

static void all_problems_are_reported_together_in_order_of_place(void **state)
{
    fixture *f = *state;

    assert_null(load(f,
                     "format: 2\nsede: 3\nstages:\n  grahp: {}\n  read: {x: 1}\n  graph:\n    cutof: 4\n"
                     "    unit: many\n    strict: yes\n    neighbours: {edges: bond, max: 0}\n"
                     "    cpu_limit: 1:30\n    memory: 0064\n    file: none.txt\n    targets: [{unit: eV}]\n"
                     "    fractions: [0.5, 1.5]\n    label: [a]\n    elements: {a: 1}\n",
                     NULL, 0));
    says(f, "w.yaml:1:9: format: 2 is outside 1");
    says(f, "w.yaml:2:1: sede: unknown setting, did you mean 'seed'?; allowed: format, name, seed");
    says(f, "w.yaml:4:3: stages.grahp: unknown stage, did you mean 'graph'?; allowed: read, graph, split, train");
    says(f, "w.yaml:5:10: stages.read.x: unknown setting; allowed: needs");
    says(f, "w.yaml:7:5: stages.graph.cutof: unknown setting, did you mean 'cutoff'?");
    says(f, "w.yaml:8:11: stages.graph.unit: 'many' is not understood; allowed: 1..1000000 records");
    says(f, "w.yaml:9:13: stages.graph.strict: yes: write true (without quotes)");
    says(f, "w.yaml:10:25: stages.graph.neighbours.edges: unknown choice 'bond', did you mean 'bonds'?");
    says(f, "w.yaml:10:36: stages.graph.neighbours.max: 0 is outside 1..1000 or auto");
    says(f, "w.yaml:11:16: stages.graph.cpu_limit: '1:30' is not understood; allowed: 0.1s..1h, written like 30s, 10m or 3h50m");
    says(f, "w.yaml:12:13: stages.graph.memory: '0064' is not understood");
    says(f, "none.txt: No such file or directory");
    says(f, "w.yaml:14:15: stages.graph.targets.0.name: required but not given");
    says(f, "w.yaml:15:22: stages.graph.fractions: 1.5 is outside");
    says(f, "w.yaml:16:12: stages.graph.label: found a list; allowed: text");
    says(f, "w.yaml:17:15: stages.graph.elements: found a map; allowed: a list of texts");
    assert_int_equal(f->problems.n, 16);
    for (int i = 1; i < f->problems.n; i++)
        assert_true(f->problems.list[i - 1].line <= f->problems.list[i].line);
}

/* Every type of setting with every kind of value: a line with the message for each; "" if the value is accepted. */
static void each_type_of_setting_says_what_it_expects(void **state)
{
    static const char *const settings[] = { "unit",   "cutoff", "neighbours.max", "neighbours.edges", "cpu_limit", "memory",
                                            "strict", "label",  "file",           "elements",         "fractions", "targets",
                                            "by_name" };
    static const char *const values[] = { "[]", "{}", "null", "''", "x", "-1", "1e99", "no", "'true'" };
    fixture *f = *state;
    pl_text all = { 0 };
    size_t same = 0;

    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        for (size_t k = 0; k < sizeof values / sizeof *values; k++) {
            char set[96], *one[] = { set };
            const char *report;
            (void)snprintf(set, sizeof set, "stages.graph.%s=%s", settings[i], values[k]);
            (void)load(f, HEAD, one, 1);
            report = pl_text_str(&f->report);
            if (strstr(report, f->folder) != NULL)
                report = strstr(report, f->folder) + strlen(f->folder);
            if (strncmp(report, "command line: stages.graph.", 27) == 0)
                report += 27;
            pl_text_addf(&all, "%s %s -> %s%s", settings[i], values[k], report, report[0] ? "" : "\n");
        }
    for (size_t i = 0; expected_of_settings[i] == pl_text_str(&all)[i] && expected_of_settings[i] != '\0'; i++)
        same = i + 1;
    if (strcmp(pl_text_str(&all), expected_of_settings) != 0)
        fail_msg("settings_said.h differs at: %.400s", pl_text_str(&all) + same);
    pl_text_free(&all);
}

static void variables_and_the_environment_are_put_in(void **state)
{
    fixture *f = *state;
    const pl_workflow *wf;

    assert_int_equal(setenv("MOLSIEVE_TEST_X", "7", 1), 0);
    assert_int_equal(unsetenv("MOLSIEVE_TEST_Y"), 0);
    wf = good(f, "format: 1\nname: n-${vars.b}-$${c}\nvars: {a: 4.5, b: 'x${vars.a}'}\nseed: ${env:MOLSIEVE_TEST_X}\n"
                 "stages:\n  read:\n  graph: {cutoff: '${vars.a}', label: '${env:MOLSIEVE_TEST_Y:-d e}'}\n");
    assert_string_equal(wf->name, "n-x4.5-${c}");
    assert_int_equal(wf->seed, 7);
    assert_true(conf_of(wf)->cutoff == 4.5);
    assert_string_equal(conf_of(wf)->label, "d e");
    assert_int_equal(setenv("MOLSIEVE_TEST_X", "", 1), 0); /* set, but empty */
    wf = good(f, "format: 1\nname: n\nstages:\n  read:\n  graph: {label: 'a${env:MOLSIEVE_TEST_X}b${env:MOLSIEVE_TEST_X:-c}'}\n");
    assert_string_equal(conf_of(wf)->label, "abc");
    assert_int_equal(setenv("MOLSIEVE_TEST_X", "d", 1), 0);
    wf = good(f, "format: 1\nname: n\nstages:\n  read:\n  graph: {label: 'a${env:MOLSIEVE_TEST_X}b${env:MOLSIEVE_TEST_X:-c}'}\n");
    assert_string_equal(conf_of(wf)->label, "adbd");
    assert_null(load(f,
                     "format: 1\nvars: {a: '${vars.b}', b: 1}\nname: ${vars.bb} ${env:MOLSIEVE_TEST_Y} ${x} ${\n"
                     "stages:\n  read:\n",
                     NULL, 0));
    says(f, "w.yaml:2:11: ${vars.b}: vars.b is set further down; move it up");
    says(f, "${vars.bb}: no such variable under vars, did you mean 'b'?");
    says(f, "${env:MOLSIEVE_TEST_Y}: the environment variable MOLSIEVE_TEST_Y is not set");
    says(f, "${x}: not known");
    says(f, "${ without a }");
}

static void overrides_win_and_are_named_as_command_line(void **state)
{
    fixture *f = *state;
    char *set[] = { "stages.graph.cutoff=4.5",
                    "stages.graph.neighbours.edges=full",
                    "vars.a=9",
                    "seed=3",
                    "stages.graph.targets.0.name=mu",
                    "stages.graph.targets.1={name: extra}",
                    "+stages.split.needs=graph" };
    char *bad[] = { "stages.graph.cutof=4",          "stages.spilt.x=1",        "nonsense",
                    "stages.graph.targets.9.name=x", "stages.graph.cutoff.x=1", "stages.graph.label=[1",
                    "stages.graph.cutoff=99" };
    const char *text =
        "format: 1\nvars: {a: 1}\nname: v${vars.a}\nstages:\n  read:\n  graph: {cutoff: 3, targets: [{name: gap}]}\n";
    const pl_workflow *wf = load(f, text, set, 7);

    if (wf == NULL)
        fail_msg("%s", pl_text_str(&f->report));
    assert_true(conf_of(wf)->cutoff == 4.5 && conf_of(wf)->edges == 3 && wf->seed == 3);
    assert_string_equal(wf->name, "v9");
    assert_string_equal(((fake_target *)conf_of(wf)->targets.items)[0].name, "mu");
    assert_string_equal(((fake_target *)conf_of(wf)->targets.items)[1].name, "extra");
    assert_int_equal(wf->n_steps, 3);
    assert_null(load(f, text, bad, 7));
    says(f, "command line: stages.graph.cutof: unknown setting, did you mean 'cutoff'?");
    says(f, "command line: stages.spilt.x=1: this workflow has no stage 'spilt'");
    says(f, "command line: 'nonsense' is not of the form");
    says(f, "there is nothing called '9' to set");
    says(f, "command line: stages.graph.cutoff.x=1: there is nothing called 'x' to set");
    says(f, "command line: stages.graph.label=[1: not YAML");
    says(f, "command line: stages.graph.cutoff: 99 is outside 0.5..20 Angstrom");
}

static void a_bare_word_for_settings_is_answered_with_an_example(void **state)
{
    fixture *f = *state;

    assert_null(load(f, "format: 1\ninputs: [lib.smi]\nstages: {read: {}, graph: {targets: [gap]}}\n", NULL, 0));
    says(f, "w.yaml:2:10: inputs.0: settings are expected here, such as path: lib.smi\n");
    says(f, "w.yaml:3:38: stages.graph.targets.0: settings are expected here, such as name: gap\n");
    assert_int_equal(f->problems.n, 2);
}

static void words_that_yaml_takes_for_something_else_are_quoted(void **state)
{
    static const char *const cases[][2] = {
        { "plain", "plain" },
        { "a/b.c_d+e-f", "a/b.c_d+e-f" },
        { "1a", "1a" },
        { "e", "\"e\"" },
        { "x1e5", "x1e5" },
        { "true", "\"true\"" },
        { "False", "\"False\"" },
        { "YES", "\"YES\"" },
        { "no", "\"no\"" },
        { "on", "\"on\"" },
        { "off", "\"off\"" },
        { "y", "\"y\"" },
        { "N", "\"N\"" },
        { "null", "\"null\"" },
        { "~", "\"~\"" },
        { "", "\"\"" },
        { "1e5", "\"1e5\"" },
        { "2026-11-24", "\"2026-11-24\"" },
        { "-x", "\"-x\"" },
        { "+x", "\"+x\"" },
        { ".x", "\".x\"" },
        { "a b", "\"a b\"" },
        { "a:b", "\"a:b\"" },
        { "a\"b", "\"a\\\"b\"" },
        { "n${x}m${", "\"n$${x}m$${\"" },
        { "\xc3\xa9", "\"\xc3\xa9\"" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pl_text out = { 0 };
        pl_yaml_add_scalar(&out, cases[i][0]);
        assert_string_equal(pl_text_str(&out), cases[i][1]);
        pl_text_free(&out);
    }
}

static void params_are_canonical_and_leave_out_how_and_paths(void **state)
{
    fixture *f = *state;
    const pl_workflow *wf = good(f, HEAD "    unit: 7\n    cutoff: 4.50\n    targets: [{name: gap}]\n");
    const char *json = pl_params_json(fake_fields, conf_of(wf), f->mem);

    assert_string_equal(json, "{\"by_name\":[],\"cpu_limit\":2,\"cutoff\":4.5,\"elements\":[],\"fractions\":[],\"label\":null,"
                              "\"memory\":2147483648,\"neighbours.edges\":\"radius\",\"neighbours.max\":-1,\"strict\":true,"
                              "\"targets\":[{\"better\":\"none\",\"name\":\"gap\",\"unit\":\"1\",\"weight\":1}]}");
}

static void later_settings_enter_the_key_unless_at_their_default(void **state)
{
    fixture *f = *state;
    pl_field later[sizeof fake_fields / sizeof *fake_fields];
    const pl_workflow *wf = good(f, HEAD "    unit: 7\n");

    memcpy(later, fake_fields, sizeof later);
    for (pl_field *one = later; one->type != PL_END; one++)
        one->flags |= PL_LATER;
    assert_string_equal(pl_params_json(later, conf_of(wf), f->mem), "{}");
    wf = good(f, HEAD "    cutoff: 5.5\n    neighbours: {max: 3, edges: knn}\n    cpu_limit: 3s\n    memory: 2MiB\n"
                      "    strict: false\n    label: x\n");
    assert_string_equal(pl_params_json(later, conf_of(wf), f->mem),
                        "{\"cpu_limit\":3,\"cutoff\":5.5,\"label\":\"x\","
                        "\"memory\":2097152,\"neighbours.edges\":\"knn\",\"neighbours.max\":3,\"strict\":false}");
}

static void the_effective_file_names_origins_and_reads_back_the_same(void **state)
{
    fixture *f = *state;
    char *set[] = { "stages.graph.cutoff=4.5", "vars.a=no" };
    const char *text = "format: 1\nname: '0123'\nvars: {a: 1}\ninputs: [{path: '*.smi'}]\nstages:\n  read:\n"
                       "  graph:\n    label: 'a: ${vars.a} $${x} \"q\" # \\'\n    elements: ['yes', C, '1:30']\n"
                       "    fractions: [0.25, 1e-8]\n    targets: [{name: gap, better: low}, {name: mu}]\n"
                       "    by_name: {b: {weight: 2}, 'x y': {}}\n    cpu_limit: 90s\n    memory: 1500kB\n";
    const pl_workflow *wf, *again;
    pl_text first = { 0 }, second = { 0 };
    const char *params;

    put(f, "b.smi", "C\n");
    put(f, "a.smi", "C\n");
    wf = load(f, text, set, 2);
    if (wf == NULL)
        fail_msg("%s", pl_text_str(&f->report));
    params = pl_params_json(fake_fields, conf_of(wf), f->mem);
    assert_int_equal(pl_workflow_dump(wf, true, &first), PL_OK);
    assert_non_null(strstr(pl_text_str(&first), "cutoff: 4.5                                  # command line\n"));
    assert_non_null(strstr(pl_text_str(&first), "w.yaml:9:15\n"));
    assert_non_null(strstr(pl_text_str(&first), "strict: true                                 # default\n"));
    assert_non_null(strstr(pl_text_str(&first), "/*.smi\""));
    again = good(f, pl_text_str(&first));
    assert_string_equal(pl_params_json(fake_fields, conf_of(again), f->mem), params);
    assert_string_equal(conf_of(again)->label, "a: no ${x} \"q\" # \\");
    assert_string_equal(again->name, "0123");
    assert_int_equal(again->inputs.n, 2);
    assert_string_equal(((fake_target *)conf_of(again)->by_name.items)[1].name, "x y");
    assert_int_equal(pl_workflow_dump(wf, false, &second), PL_OK);
    assert_null(strstr(pl_text_str(&second), "# default"));
    (void)good(f, pl_text_str(&second));
    pl_text_free(&first);
    pl_text_free(&second);
}

static void values_in_quotes_are_text_and_null_is_not_set(void **state)
{
    fixture *f = *state;
    const pl_workflow *wf = good(f, HEAD "    label: ~\n    cpu_limit: '2s'\n    by_name:\n    neighbours:\n    targets: null\n");

    assert_null(conf_of(wf)->label);
    assert_true(conf_of(wf)->cpu_limit == 2);
    assert_null(load(f,
                     HEAD "    cutoff: '5'\n    unit: 1.5\n    strict: 'true'\n    fractions: [x, '1']\n"
                          "    neighbours: 7\n    edges: knn\n    cpu_limit:\n    unit.x: 3\n",
                     NULL, 0));
    says(f, "cutoff: \"5\" in quotes is text; write the number without quotes");
    says(f, "unit: '1.5' is not understood; allowed: 1..1000000 records");
    says(f, "strict: \"true\": write true (without quotes)");
    says(f, "fractions: 'x' is not understood");
    says(f, "fractions: \"1\" in quotes is text");
    says(f, "stages.graph.neighbours: a group of settings is expected here: max, edges");
    says(f, "stages.graph.edges: unknown setting, did you mean neighbours.edges?");
    says(f, "stages.graph.cpu_limit: no value; allowed: 0.1s..1h");
    says(f, "stages.graph.unit.x: unknown setting");
    assert_null(load(f, HEAD "    unit: 1:30x\n    cutoff: '5:'\n    neighbours: {max: 12:30}\n", NULL, 0));
    says(f, "unit: '1:30x' is not understood; allowed: 1..1000000 records");
    says(f, "neighbours.max: 12:30 would be a base-60 number in YAML 1.1; allowed: 1..1000 or auto");
}

static void where_nothing_is_allowed_it_is_said(void **state)
{
    fixture *f = *state;
    const pl_node *at;

    f->problems = (pl_problems){ .mem = f->mem };
    at = pl_yaml_parse("a: 1\n", 5, "w.yaml", &f->problems, f->mem);
    assert_non_null(at);
    pl_unknown_name(&f->problems, at, "no column b", "b", NULL, 0);
    assert_int_equal(f->problems.n, 1);
    assert_string_equal(f->problems.list[0].text, "no column b; allowed: nothing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(defaults_come_from_the_table),
        TEST(values_with_units_words_and_lists_are_read),
        TEST(all_problems_are_reported_together_in_order_of_place),
        TEST(each_type_of_setting_says_what_it_expects),
        TEST(variables_and_the_environment_are_put_in),
        TEST(overrides_win_and_are_named_as_command_line),
        TEST(a_bare_word_for_settings_is_answered_with_an_example),
        TEST(words_that_yaml_takes_for_something_else_are_quoted),
        TEST(the_effective_file_names_origins_and_reads_back_the_same),
        TEST(values_in_quotes_are_text_and_null_is_not_set),
        TEST(params_are_canonical_and_leave_out_how_and_paths),
        TEST(later_settings_enter_the_key_unless_at_their_default),
        TEST(where_nothing_is_allowed_it_is_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
