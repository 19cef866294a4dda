/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "pipeline/base/file.h"
#include "stages/commands/commands.h"
#include "stages/commands/output/fit_words.h"
#include "stages/commands/output/run_words.h"
#include "stages/fit/recipe.h"

static const pl_opt opts[] = { { "--target", 't', "NAME", "column, or data field of SDF, with the values to learn" },
                               { "--output", 'o', "MODEL", "model file (NAME.safetensors in this folder)" },
                               { "--split", 0, "KIND", "scaffold, balanced, deterministic or random: what is held out (scaffold)" },
                               { "--task", 0, "KIND", "regression or classification (classification if all values are 0 or 1)" },
                               { "--family", 0, "LIST", "auto, or trees,gp,forest,se3: what the model is the mean of (auto)" },
                               { "--inputs", 0, "LIST",
                                 "columns that the model reads besides the molecule, such as temperature,pH" },
                               { "--unit", 0, "UNIT", "of the values, such as log10(mol/L)" },
                               { "--better", 0, "END", "low, high or none: which values are better (none)" },
                               { "--smiles-column", 0, "NAME", "name or number of the column with SMILES (found out, and said)" },
                               { "--id-column", 0, "NAME", "of the titles (id, name, title ...)" },
                               { "--input-format", 0, "NAME", "csv, tsv, sdf ... (by the name of TABLE, else its first bytes)" },
                               { "--seed", 0, "N", "of the split and the training (1)" },
                               { "--engine", 0, "NAME", "cpu, cuda or auto: where the network learns (cpu)" },
                               { "--dry-run", 'n', NULL, "write the workflow, do not run it" },
                               { "--jobs", 'j', "N", "threads (all processors)" },
                               { "--max-time", 0, "TIME", "stop cleanly after this time (3h50m); the same command continues" },
                               { "--quiet", 'q', NULL, "only warnings and errors" },
                               { 0 } };

typedef struct fit {
    st_fit_ask ask;
    st_recipe_ask recipe;
    st_fit_table table;
    const char *model;           /* the file                                   */
    const char *folder;          /* NAME.fit beside it: the workflow, its run  */
    const char *workflow, *made; /* made: the model where the run leaves it */
    bool named, quiet;           /* named: by --output                         */
    pl_arena *mem;
} fit;

/* ---- options ------------------------------------------------------------- */

static pl_code word_check(const pl_args *args, const char *option, const char *const *allowed, const char *list, pl_error *err)
{
    const char *word = pl_arg(args, option);

    for (int k = 0; word != NULL && allowed[k] != NULL; k++)
        if (strcmp(allowed[k], word) == 0)
            return PL_OK;
    return word == NULL ? PL_OK : pl_fail(err, PL_ECONFIG, "%s %s: allowed are %s", option, word, list);
}

static pl_code words_check(const pl_args *args, pl_error *err)
{
    static const char *const splits[] = { "scaffold", "balanced", "deterministic", "random", NULL };
    static const char *const tasks[] = { "regression", "classification", NULL };
    static const char *const ends[] = { "low", "high", "none", NULL };
    static const char *const engines[] = { "cpu", "cuda", "auto", NULL };
    pl_code code = word_check(args, "--split", splits, "scaffold, balanced, deterministic and random", err);

    if (code == PL_OK)
        code = word_check(args, "--task", tasks, "regression and classification", err);
    if (code == PL_OK)
        code = word_check(args, "--better", ends, "low, high and none", err);
    return code == PL_OK ? word_check(args, "--engine", engines, "cpu, cuda and auto", err) : code;
}

/* Words of letters and digits with commas between: they go into the workflow as they are, which checks them. */
static pl_code family_check(const char *family, pl_error *err)
{
    for (const char *c = family; c != NULL && *c != '\0'; c++)
        if (!isalnum((unsigned char)*c) && *c != ',')
            return pl_fail(err, PL_ECONFIG, "--family %s: write auto, or names with commas between: trees,gp,forest,se3", family);
    return PL_OK;
}

/* "pIC50 (nM)" -> "pIC50_nM": a name that a file can have. */
static const char *name_of(const char *text, pl_arena *mem)
{
    char *name = pl_strdup(mem, text), *to = name;

    for (const char *c = text; name != NULL && *c != '\0'; c++) {
        const bool good = isalnum((unsigned char)*c) || strchr("._-", *c) != NULL;
        if (good && !(to == name && *c == '.'))
            *to++ = *c;
        else if (to > name && to[-1] != '_')
            *to++ = '_';
    }
    while (to != NULL && to > name && to[-1] == '_')
        to--;
    if (name != NULL)
        *to = '\0';
    return name != NULL && name[0] == '\0' ? "model" : name;
}

static pl_code paths_make(fit *f, const char *output, pl_error *err)
{
    static const char ending[] = ".safetensors";
    const char *slash, *base;
    size_t n;

    f->named = output != NULL;
    if (output == NULL)
        output = pl_sprintf(f->mem, "%s%s", name_of(f->table.target, f->mem), ending);
    if (output == NULL)
        return pl_fail(err, PL_ENOMEM, "a path");
    n = strlen(output);
    n -= n > strlen(ending) && strcmp(output + n - strlen(ending), ending) == 0 ? strlen(ending) : 0;
    f->model = pl_sprintf(f->mem, "%.*s%s", (int)n, output, ending);
    f->folder = pl_sprintf(f->mem, "%.*s.fit", (int)n, output);
    slash = strrchr(output, '/');
    base = pl_strndup(f->mem, slash != NULL ? slash + 1 : output, n - (size_t)(slash != NULL ? slash + 1 - output : 0));
    f->recipe.model = base != NULL ? name_of(base, f->mem) : NULL;
    if (f->model == NULL || f->folder == NULL || f->recipe.model == NULL)
        return pl_fail(err, PL_ENOMEM, "a path");
    f->workflow = pl_sprintf(f->mem, "%s/train.yaml", f->folder);
    f->made = pl_sprintf(f->mem, "%s/run/models/%s%s", f->folder, f->recipe.model, ending);
    return f->workflow != NULL && f->made != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "a path");
}

static pl_code options_read(fit *f, const pl_args *args, pl_error *err)
{
    const char *seed = pl_arg(args, "--seed"), *split = pl_arg(args, "--split");
    pl_code code;

    if (args->n > 1)
        return pl_fail(err, PL_ECONFIG, "only one table can be given; '%s' is a second one", args->arg[1]);
    code = words_check(args, err);
    if (code != PL_OK)
        return code;
    f->ask = (st_fit_ask){ .path = args->arg[0],
                           .target = pl_arg(args, "--target"),
                           .format = pl_arg(args, "--input-format"),
                           .smiles = pl_arg(args, "--smiles-column"),
                           .title = pl_arg(args, "--id-column"),
                           .unit = pl_arg(args, "--unit"),
                           .inputs = pl_arg(args, "--inputs") };
    f->recipe = (st_recipe_ask){ .unit = pl_arg(args, "--unit"),
                                 .inputs = pl_arg(args, "--inputs"),
                                 .better = pl_arg(args, "--better"),
                                 .family = pl_arg(args, "--family"),
                                 .engine = pl_arg(args, "--engine"),
                                 .split = split != NULL ? split : "scaffold",
                                 .seed = 1 };
    f->quiet = pl_arg(args, "--quiet") != NULL;
    if (seed != NULL && (!pl_parse_int(seed, &f->recipe.seed) || f->recipe.seed < 0))
        return pl_fail(err, PL_ECONFIG, "--seed %s: write a whole number, 0 or more", seed);
    return family_check(f->recipe.family, err);
}

/* Without a target the table is read all the same, so that the message has the names. */
static pl_code table_read(fit *f, const char *task, pl_error *err)
{
    const bool asked = f->ask.target != NULL;
    pl_code code;

    f->ask.target = asked ? f->ask.target : "";
    code = st_fit_table_read(&f->table, &f->ask, f->mem, err);
    if (!asked && f->table.names[0] != '\0')
        return pl_fail(err, PL_ECONFIG, "which column is to be learned? --target NAME; %s has: %.300s", f->ask.path,
                       f->table.names);
    if (code != PL_OK)
        return code;
    f->recipe.classes = task != NULL ? strcmp(task, "classification") == 0 : st_fit_is_class(&f->table);
    if (f->recipe.classes && !st_fit_is_class(&f->table))
        return pl_fail(err, PL_ECONFIG, "--task classification: %s has values other than 0 and 1 (%g to %g)", f->table.target,
                       f->table.low, f->table.high);
    if (f->recipe.classes && f->recipe.unit != NULL)
        return pl_fail(err, PL_ECONFIG, "--unit %s: %s is a class, which has none", f->recipe.unit, f->table.target);
    if (f->recipe.unit != NULL || f->recipe.classes)
        f->table.unit = NULL;
    else
        f->recipe.unit = f->table.unit;
    return PL_OK;
}

/* ---- the workflow -------------------------------------------------------- */

static pl_code fail_other(const fit *f, const char *what, const char *name, pl_error *err)
{
    return pl_fail(err, PL_ECONFIG, "%s is the workflow of another %s than %s; choose another name with --output, or remove %s",
                   f->workflow, what, name, f->folder);
}

/* The model of other data is not replaced unless --output says so. Two targets may have one name for a file: log/S and log_S. */
static pl_code check_same(const fit *f, const pl_bytes *old, pl_error *err)
{
    bool learns = true, reads = true;
    pl_code code = f->named ? PL_OK : st_recipe_learns(&learns, old->data, old->len, f->table.target, err);

    if (code == PL_OK && !f->named)
        code = st_recipe_reads(&reads, old->data, old->len, f->table.path, err);
    if (code != PL_OK)
        return code;
    if (!learns)
        return fail_other(f, "target", f->table.target, err);
    return reads ? PL_OK : fail_other(f, "table", f->ask.path, err);
}

/* Never over a file that someone else has made or edited. */
static pl_code workflow_write(const fit *f, pl_error *err)
{
    pl_text text = { 0 };
    pl_bytes old;
    const bool there = access(f->workflow, F_OK) == 0;
    pl_code code = there ? pl_file_read(&old, f->workflow, f->mem, err) : pl_mkdirs(f->folder, err);

    if (code != PL_OK)
        return code;
    if (there && !st_recipe_is_own(old.data, old.len))
        return pl_fail(err, PL_ECONFIG,
                       "%s was edited; `molsieve run %s` runs it; to begin again choose another --output, or remove the folder",
                       f->workflow, f->workflow);
    if (there)
        code = check_same(f, &old, err);
    if (code != PL_OK)
        return code;
    if (!there && access(f->model, F_OK) == 0)
        return pl_fail(err, PL_ECONFIG, "%s is there already, and not from `fit`; choose another name with --output", f->model);
    st_recipe_write(&text, &f->table, &f->recipe);
    code =
        pl_text_ok(&text) ? pl_file_write(f->workflow, (pl_bytes){ text.s, text.len }, err) : pl_fail(err, PL_ENOMEM, "a workflow");
    pl_text_free(&text);
    return code;
}

/* The command `run`, with the options that both have. */
static int workflow_run(const pl_app *app, const pl_args *args, const fit *f)
{
    static const char *const same[] = { "--jobs", "--max-time", "--quiet" };
    char *path[] = { pl_strdup(f->mem, f->workflow), NULL };
    pl_args run = { .cmd = &st_cmd_run, .n = 1, .arg = path, .argc = args->argc, .argv = args->argv };

    for (int k = 0; st_cmd_run.opts[k].name != NULL; k++)
        for (size_t i = 0; i < sizeof same / sizeof *same; i++)
            if (strcmp(st_cmd_run.opts[k].name, same[i]) == 0)
                run.value[k] = pl_arg(args, same[i]);
    return path[0] != NULL ? st_run_command(app, &run, "fit", NULL) : pl_cmd_no_memory();
}

static pl_code model_copy(const fit *f, pl_error *err)
{
    pl_bytes bytes;
    pl_code code = pl_file_read(&bytes, f->made, f->mem, err);

    return code == PL_OK ? pl_file_write(f->model, bytes, err) : code;
}

/* ---- the command --------------------------------------------------------- */

static pl_code prepare(fit *f, const pl_args *args, pl_error *err)
{
    pl_code code = options_read(f, args, err);

    if (code == PL_OK)
        code = table_read(f, pl_arg(args, "--task"), err);
    if (code == PL_OK)
        code = paths_make(f, pl_arg(args, "--output"), err);
    return code == PL_OK ? workflow_write(f, err) : code;
}

static int finish(const pl_app *app, const fit *f)
{
    pl_error err = { 0 };
    pl_code code = model_copy(f, &err);

    if (code != PL_OK)
        return pl_cmd_fail(&err);
    if (!f->quiet) {
        st_fit_errors_print(app, pl_sprintf(f->mem, "%s/run/results.db", f->folder), f->recipe.classes);
        pl_cmd_print(
            "\nmodel: %s\nits workflow: %s; to change it: edit it, then `molsieve run` it\nnext:\n  molsieve predict %s library.smi -o "
            "predicted.csv\n  molsieve model info %s\n",
            f->model, f->workflow, f->model, f->model);
    }
    return 0;
}

static int run(const pl_app *app, const pl_args *args)
{
    fit f = { .mem = pl_arena_new(1 << 18) };
    pl_error err = { 0 };
    pl_code code = f.mem != NULL ? prepare(&f, args, &err) : pl_fail(&err, PL_ENOMEM, "a table");
    int status = code == PL_OK ? 0 : pl_cmd_fail(&err);

    if (status == 0 && !f.quiet)
        st_fit_table_print(&f.table, f.recipe.classes, st_recipe_has_network(&f.table, &f.recipe), f.workflow);
    if (status == 0 && pl_arg(args, "--dry-run") != NULL)
        pl_cmd_print("workflow: %s\n", f.workflow);
    else if (status == 0) {
        status = workflow_run(app, args, &f);
        if (status == pl_code_exit(PL_ELIMIT))
            pl_cmd_say("fit: `molsieve failures %s/run` counts them by reason; `molsieve run %s --keep-going` goes on without them",
                       f.folder, f.workflow);
        status = status == 0 ? finish(app, &f) : status;
    }
    pl_arena_free(f.mem);
    return status;
}

const pl_cmd st_cmd_fit = {
    .name = "fit",
    .args = "TABLE --target NAME [options]",
    .help = "train a model on a table of measurements, in one line",
    .about = "TABLE is CSV, TSV or SDF, plain or gzip, with a column of SMILES, which is found\n"
             "by its name or by what it holds. The column NAME has the measured values; 0 and\n"
             "1 are two classes. Rows without a number there are left out.\n"
             "\n"
             "The model is the mean of boosted trees and a Gaussian process, for classes of a\n"
             "forest, too, and from 500 training molecules on of the network, if that makes\n"
             "held-out errors smaller. A tenth of the molecules, whole ring systems, tests it:\n"
             "the last lines show its errors beside those of its components and of simple\n"
             "predictions, and say so if the model is no better than these.\n"
             "\n"
             "The workflow that ran is kept in NAME.fit/train.yaml, its results in\n"
             "NAME.fit/run. The same command continues after a stop; `molsieve run` runs the\n"
             "workflow after you have edited it, and leaves the model in NAME.fit/run/models.\n"
             "\n"
             "Examples:\n"
             "  molsieve fit measured.csv --target pIC50 --better high\n"
             "  molsieve fit sol.sdf.gz -t logS --unit 'log10(mol/L)' -o sol.safetensors\n"
             "  molsieve fit actives.csv --target active --split random --seed 7\n",
    .opts = opts,
    .min_args = 1,
    .run = run,
};
