/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "models/files/model_file.h"
#include "stages/steps/external/external_parts.h"
#include "stages/steps/ingest/positions.h"
#include "stages/steps/ingest/prepare_conf.h"
#include "stages/steps/ingest/read_input.h"
#include "stages/steps/train/score_models.h"

bool st_ext_needs_3d(const st_external_conf *c)
{
    return c->input == ST_IN_SDF || c->input == ST_IN_XYZ || c->input == ST_IN_PDBQT;
}

/* The place of a setting, of the step where it is not set. */
static const pl_node *at(const pl_step *step, const char *key)
{
    const pl_node *node = pl_node_get(step->node, key);

    return node != NULL ? node : step->node;
}

/* Of a list, or of a word that stands for one. */
static const pl_node *item_at(const pl_step *step, const char *key, int32_t i)
{
    const pl_node *node = at(step, key);

    return node != step->node && node->kind != PL_SCALAR && i < node->n ? node->item[i] : node;
}

static void check_words(const st_external_conf *c, const pl_step *step, pl_problems *problems)
{
    const char *const *text = c->command.items;
    char word[64];

    for (int32_t i = 0; i < c->command.n; i++)
        if (text[i] != NULL && st_ext_bad_word(text[i], word) != NULL)
            pl_problem_add(
                problems, item_at(step, "command", i),
                "external.command: unknown placeholder %s; allowed: {input}, {output}, {dir}, {id} and {cores}; write {%s} "
                "for the text itself",
                word, word);
    if (!st_ext_has_word(c, "input") && !st_ext_has_word(c, "dir"))
        pl_problem_add(problems, at(step, "command"),
                       "external.command: without {input} the program does not know which file has its molecules; add it");
}

/* The path of a file that is named at a node. False: a problem is added. */
static bool find_path(const char **out, const pl_workflow *wf, const char *name, const pl_node *node, pl_arena *mem,
                      pl_problems *problems)
{
    pl_error err = { 0 };
    const pl_code code = st_ext_path(out, wf, name, mem, &err);

    if (code == PL_ENOMEM)
        pl_problem_refused(problems, node, NULL);
    else if (code != PL_OK)
        pl_problem_add(problems, node, "external: %s", err.text);
    return code == PL_OK;
}

static bool has_file(const pl_workflow *wf, const st_external_conf *c, const char *path, pl_arena *mem)
{
    const char *const *file = c->files.items;

    for (int32_t i = 0; i < c->files.n; i++) {
        const char *one;
        if (file[i] != NULL && st_ext_path(&one, wf, file[i], mem, NULL) == PL_OK && strcmp(one, path) == 0)
            return true;
    }
    return false;
}

/* An argument that names a file beside the workflow is not found from the folder of a call, and its changes would not be noticed. */
static void check_arguments(const pl_workflow *wf, const st_external_conf *c, const pl_step *step, pl_arena *mem,
                            pl_problems *problems)
{
    const char *const *text = c->command.items;
    struct stat st;

    for (int32_t i = 1; i < c->command.n; i++) {
        const char *path;
        if (text[i] == NULL || !find_path(&path, wf, text[i], item_at(step, "command", i), mem, problems) || stat(path, &st) != 0 ||
            !S_ISREG(st.st_mode) || has_file(wf, c, path, mem))
            continue;
        pl_problem_add(problems, item_at(step, "command", i),
                       "external.command: %s is a file: name it in `files`, and write %s here; then the program finds it in its "
                       "folder, and a changed file is noticed",
                       text[i], st_ext_base(text[i]));
    }
}

static void check_program(const pl_workflow *wf, const st_external_conf *c, const pl_step *step, pl_arena *mem,
                          pl_problems *problems)
{
    const char *name = c->command.n > 0 ? ((const char *const *)c->command.items)[0] : NULL, *path;
    pl_code code;

    if (name == NULL || name[0] == '\0')
        pl_problem_add(problems, item_at(step, "command", 0), "external.command: the first word is the program; it is empty");
    else if ((code = st_ext_program(&path, wf, c, mem, NULL)) == PL_ENOMEM)
        pl_problem_refused(problems, step->node, NULL);
    else if (code != PL_OK)
        pl_problem_add(
            problems, item_at(step, "command", 0),
            strchr(name, '/') != NULL
                ? "external.command: %s: no such program, or no permission to run it; paths are relative to the workflow file"
                : "external.command: %s: no such program in PATH; install it, or write its path",
            name);
}

static bool is_ours(const char *name) { return strncmp(name, "input.", 6) == 0 || strncmp(name, "output.", 7) == 0; }

static void check_file(const pl_workflow *wf, const st_external_conf *c, const pl_step *step, int32_t i, pl_arena *mem,
                       pl_problems *problems)
{
    const char *const *file = c->files.items;
    const char *path = NULL, *base = file[i] != NULL ? st_ext_base(file[i]) : "";
    struct stat st;

    if (base[0] == '\0')
        pl_problem_add(problems, item_at(step, "files", i), "external.files: a name is empty");
    else if (!find_path(&path, wf, file[i], item_at(step, "files", i), mem, problems))
        return;
    else if (access(path, R_OK) != 0)
        pl_problem_add(problems, item_at(step, "files", i), "external.files: %s: %s; paths are relative to the workflow file", path,
                       strerror(errno));
    else if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        pl_problem_add(problems, item_at(step, "files", i), "external.files: %s is no file", path);
    if (is_ours(base))
        pl_problem_add(problems, item_at(step, "files", i), "external.files: %s: names that begin with input. or output. are taken",
                       base);
    for (int32_t k = 0; k < i; k++)
        if (file[k] != NULL && strcmp(st_ext_base(file[k]), base) == 0)
            pl_problem_add(problems, item_at(step, "files", i), "external.files: two files are called %s; rename one", base);
}

static void check_env(const st_external_conf *c, const pl_step *step, pl_problems *problems)
{
    const st_ext_variable *v = c->env.items;

    for (int32_t i = 0; i < c->env.n; i++) {
        bool good = v[i].name[0] != '\0' && isdigit((unsigned char)v[i].name[0]) == 0;
        for (const char *s = v[i].name; *s != '\0' && good; s++)
            good = isalnum((unsigned char)*s) != 0 || *s == '_';
        if (!good)
            pl_problem_add(problems, item_at(step, "env", i),
                           "external.env: '%s' is no name of a variable: letters, digits and _, no digit first", v[i].name);
    }
}

static void check_value(const st_external_conf *c, const pl_step *step, pl_problems *problems)
{
    regex_t re;
    char why[128];
    int bad;

    if (c->output != ST_OUT_REGEX)
        return;
    if (c->value == NULL || c->value[0] == '\0') {
        pl_problem_add(problems, at(step, "output"),
                       "external.output: regex needs `value`, a regular expression whose first group is the number, such as "
                       "'score: *(-?[0-9.]+)'");
        return;
    }
    bad = regcomp(&re, c->value, REG_EXTENDED);
    if (bad != 0) {
        (void)regerror(bad, &re, why, sizeof why);
        pl_problem_add(problems, at(step, "value"), "external.value: no regular expression (POSIX, extended): %s", why);
        return;
    }
    if (re.re_nsub < 1)
        pl_problem_add(problems, at(step, "value"),
                       "external.value: the expression has no group; put the number in parentheses, such as '(-?[0-9.]+)'");
    regfree(&re);
    if (c->batch > 1)
        pl_problem_add(
            problems, at(step, "batch"),
            "external.batch: output: regex cannot tell which number is of which molecule; use csv, json or sdf, or batch: 1");
}

static void check_names(const pl_workflow *wf, const st_external_conf *c, const pl_step *step, pl_problems *problems)
{
    const struct {
        const char *key, *text;
    } names[] = { { "name", c->name }, { "property", c->property }, { "unit", c->unit } };

    for (int k = 0; k < 3; k++)
        if (names[k].text != NULL && !nn_model_name_fits(names[k].text))
            pl_problem_add(problems, at(step, names[k].key),
                           "external.%s: at most 100 printable characters, no quotes or control characters", names[k].key);
    if (c->name != NULL && st_model_ref(wf, c->name) != NULL)
        pl_problem_add(problems, at(step, "name"), "external.name: %s is also a model of the workflow; rename one", c->name);
}

static void check_batch(const pl_workflow *wf, const st_external_conf *c, const pl_step *step, pl_problems *problems)
{
    const pl_step *read = pl_workflow_step(wf, "read");
    const int64_t unit = read != NULL ? ((const st_read_conf *)read->conf)->unit : -1;

    if (c->output == ST_OUT_PDBQT && c->batch > 1)
        pl_problem_add(problems, at(step, "batch"),
                       "external.batch: output: pdbqt has poses of one molecule; use sdf, or batch: 1");
    if (c->poses && (!st_ext_needs_3d(c) || (c->output != ST_OUT_SDF && c->output != ST_OUT_PDBQT) ||
                     (c->output == ST_OUT_PDBQT) != (c->input == ST_IN_PDBQT)))
        pl_problem_add(problems, at(step, "poses"), "external.poses: needs input and output sdf, or input and output pdbqt");
    if (c->input == ST_IN_PDBQT && c->batch > 1)
        pl_problem_add(problems, at(step, "batch"), "external.batch: a pdbqt file has one molecule; use sdf, or batch: 1");
    if (unit > 0 && c->batch > unit)
        pl_problem_add(
            problems, at(step, "batch"),
            "external.batch: a call gets molecules of one unit, which has %lld records; set stages.read.unit to %lld or more",
            (long long)unit, (long long)c->batch);
}

/* Structures that prepare is told not to make. */
static void check_structures(const pl_workflow *wf, const st_external_conf *c, const pl_step *step, pl_problems *problems)
{
    const pl_step *prepare = pl_workflow_step(wf, "prepare");

    if (st_ext_needs_3d(c) && prepare != NULL && ((const st_prepare_conf *)prepare->conf)->conformer == CH_3D_NONE)
        pl_problem_add(problems, at(step, "input"),
                       "external.input: sdf, xyz and pdbqt need 3D structures, but stages.prepare.conformers.source is none");
}

void st_external_check(const pl_workflow *wf, const pl_step *step, pl_problems *problems)
{
    const st_external_conf *c = step->conf;
    pl_arena *mem = pl_arena_new(1 << 14);

    if (mem == NULL) {
        pl_problem_refused(problems, step->node, NULL);
        return;
    }
    check_program(wf, c, step, mem, problems);
    if (c->command.n > 0)
        check_words(c, step, problems);
    check_arguments(wf, c, step, mem, problems);
    for (int32_t i = 0; i < c->files.n; i++)
        check_file(wf, c, step, i, mem, problems);
    check_env(c, step, problems);
    check_value(c, step, problems);
    check_names(wf, c, step, problems);
    check_batch(wf, c, step, problems);
    check_structures(wf, c, step, problems);
    pl_arena_free(mem);
}
