/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/base/file.h"
#include "pipeline/run/run.h"
#include "stages/commands/commands.h"
#include "stages/commands/output/cmd_json.h"
#include "stages/commands/output/run_words.h"
#include "stages/commands/repeat_table.h"

enum { REPEATS = 5, REPEATS_MAX = 100, WORDS_MAX = 256 };

static const pl_opt opts[] = { { "--number", 'n', "N", "splits (default 5, at most 100)" },
                               { "--folds", 0, "K", "cross-validation instead: each molecule is tested in one of K splits" },
                               { "--jobs", 'j', "N", "threads (all processors)" },
                               { "--max-time", 0, "TIME", "stop cleanly after this time (3h50m); the same command continues" },
                               { "--json", 0, NULL, "print all numbers as JSON" },
                               { "--quiet", 'q', NULL, "only warnings, errors and the table" },
                               { 0 } };

typedef struct repeating {
    const pl_app *app;
    const pl_args *args;
    int64_t n;
    bool folds;       /* the n splits are folds of one partition */
    const char *path; /* WORKDIR/repeats.json: the key of `evaluate` -> its rows */
    json_t *known;
    pl_arena *mem;
} repeating;

/* ---- what is known ---- */

static void read_known(repeating *r)
{
    pl_bytes file = { 0 };

    if (access(r->path, F_OK) == 0 && pl_file_read(&file, r->path, r->mem, NULL) == PL_OK)
        r->known = json_loadb(file.data, file.len, 0, NULL);
    if (!json_is_object(r->known)) {
        json_decref(r->known);
        r->known = json_object();
    }
}

static pl_code write_known(const repeating *r, pl_error *err)
{
    char *text = json_dumps(r->known, JSON_INDENT(1) | JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
    pl_code code = text != NULL ? pl_file_write(r->path, (pl_bytes){ text, strlen(text) }, err)
                                : pl_fail(err, PL_ENOMEM, "the errors of a repeat");

    free(text);
    return code;
}

/* All errors of the parts that the model was not trained on. */
static pl_code read_errors(json_t *rows, pl_store *s, pl_error *err)
{
    static const char sql[] =
        "SELECT p.name, e.part, e.metric, e.value, coalesce(e.unit,''), e.n FROM evaluation e JOIN property p "
        "USING(property_id) WHERE part<>'train' AND metric NOT LIKE '%.domain %' AND metric NOT LIKE "
        "'%.similarity%' AND metric NOT LIKE 'coverage90%' ORDER BY 1, 2, 3, e.model_id";
    sqlite3_stmt *st = NULL;
    pl_code code = pl_db_prepare(s->db, &st, sql, err);

    while (pl_db_next(st, &code, err))
        (void)json_array_append_new(rows, json_pack("{s:s,s:s,s:s,s:f,s:s,s:I}", "property", sqlite3_column_text(st, 0), "part",
                                                    sqlite3_column_text(st, 1), "metric", sqlite3_column_text(st, 2), "value",
                                                    sqlite3_column_double(st, 3), "unit", sqlite3_column_text(st, 4), "n",
                                                    (json_int_t)sqlite3_column_int64(st, 5)));
    (void)sqlite3_finalize(st);
    return code;
}

/* ---- one repeat ---- */

/* Adds the overrides that choose split k. Of folds k counts from 1, and 0 is the workflow itself. */
static bool split_choose(const repeating *r, int64_t k, char *word[], int *n)
{
    char *first = NULL, *second = NULL;

    if (!r->folds)
        first = pl_sprintf(r->mem, "stages.split.repeat=%lld", (long long)k);
    else if (k > 0) {
        first = pl_sprintf(r->mem, "stages.split.folds=%lld", (long long)r->n);
        second = pl_sprintf(r->mem, "stages.split.fold=%lld", (long long)k);
    }
    if (first != NULL)
        word[(*n)++] = first;
    if (second != NULL)
        word[(*n)++] = second;
    word[*n] = NULL;
    return first != NULL || (r->folds && k == 0);
}

/* The workflow with its overrides and those of split k behind them; the options of `run` that both have. */
static bool words_of(const repeating *r, int64_t k, char *word[WORDS_MAX], pl_args *out)
{
    static const char *const same[] = { "--jobs", "--max-time", "--quiet" };

    *out = (pl_args){ .cmd = &st_cmd_run, .arg = word, .argc = r->args->argc, .argv = r->args->argv };
    for (int i = 0; i < r->args->n && out->n < WORDS_MAX - 3; i++)
        word[out->n++] = r->args->arg[i];
    for (int i = 0; st_cmd_run.opts[i].name != NULL; i++)
        for (size_t j = 0; j < sizeof same / sizeof *same; j++)
            if (strcmp(st_cmd_run.opts[i].name, same[j]) == 0)
                out->value[i] = pl_arg(r->args, same[j]);
    return split_choose(r, k, word, &out->n);
}

/* The key of `evaluate` with this split; NULL: a message has been printed, *status is set. */
static const char *key_of(const repeating *r, const pl_args *run, int *status)
{
    pl_workflow *wf = pl_cmd_load(r->app, run, r->mem, status);
    pl_store *store = NULL;
    pl_error err = { 0 };
    pl_code code = PL_OK;

    if (wf == NULL)
        return NULL;
    if (access(wf->storage.results, F_OK) == 0)
        code = pl_store_open_read(&store, wf->storage.results, r->app->schema, &err);
    if (code == PL_OK)
        code = pl_plan_keys(wf, store, r->mem, &err);
    pl_store_close(store);
    *status = code == PL_OK ? 0 : pl_cmd_fail(&err);
    return code == PL_OK ? pl_strdup(r->mem, pl_workflow_step(wf, "evaluate")->key) : NULL;
}

static int keep_errors(repeating *r, const pl_workflow *wf, const char *key)
{
    json_t *rows = json_array();
    pl_store *store = NULL;
    pl_error err = { 0 };
    pl_code code = pl_store_open_read(&store, wf->storage.results, r->app->schema, &err);

    if (code == PL_OK)
        code = read_errors(rows, store, &err);
    pl_store_close(store);
    (void)json_object_set_new(r->known, key, rows);
    if (code == PL_OK)
        code = write_known(r, &err);
    return code == PL_OK ? 0 : pl_cmd_fail(&err);
}

/* The last one, 0, is the workflow itself: its results and its model stay. */
static int run_repeat(repeating *r, const pl_workflow *wf, int64_t k, const char **key)
{
    char *word[WORDS_MAX];
    pl_args run;
    int status = words_of(r, k, word, &run) ? 0 : pl_cmd_no_memory();

    *key = status == 0 ? key_of(r, &run, &status) : NULL;
    if (*key == NULL)
        return status;
    if (k > 0 && json_object_get(r->known, *key) != NULL)
        return 0;
    if (pl_arg(r->args, "--quiet") == NULL && r->folds && k == 0)
        (void)fprintf(stderr, "the workflow's own split\n");
    else if (pl_arg(r->args, "--quiet") == NULL)
        (void)fprintf(stderr, "%s %lld of %lld\n", r->folds ? "fold" : "split", (long long)(r->folds ? k : r->n - k),
                      (long long)r->n);
    status = st_run_command(r->app, &run, "repeat", NULL);
    return status == 0 ? keep_errors(r, wf, *key) : status;
}

/* ---- the command ---- */

static int repeat(repeating *r, const pl_workflow *wf)
{
    const char *key[REPEATS_MAX + 1];
    json_t *table;
    pl_error err = { 0 };
    pl_code code = PL_OK;
    int status = 0;

    for (int64_t k = r->folds ? r->n : r->n - 1; k >= 0 && status == 0; k--)
        status = run_repeat(r, wf, k, &key[k]);
    if (status != 0)
        return status;
    const st_repeated found = { r->known, r->folds ? key + 1 : key, r->n, r->folds, r->mem };
    table = st_repeat_table(&found);
    if (pl_arg(r->args, "--json") != NULL)
        code = st_json_print(table, 0, &err);
    else
        st_repeat_print(&found, table);
    json_decref(table);
    return code == PL_OK ? 0 : pl_cmd_fail(&err);
}

static const char *text_or(const pl_node *node, const char *missing)
{
    return node != NULL && node->text != NULL ? node->text : missing;
}

/* A split that does not depend on the seed would give the same errors each time. */
static int check(const pl_args *args, const pl_workflow *wf, bool folds)
{
    const pl_step *split = pl_workflow_step(wf, "split"), *train = pl_workflow_step(wf, "train");
    const char *method, *variant;

    if (split == NULL || train == NULL || pl_workflow_step(wf, "evaluate") == NULL)
        return pl_cmd_usage(args, "%s: repeat needs the stages split, train and evaluate", wf->path);
    method = text_or(pl_node_get(split->node, "method"), "random");
    variant = text_or(pl_node_get(split->node, "variant"), "random");
    if (pl_node_get(split->node, "repeat") != NULL && !folds)
        return pl_cmd_usage(args, "%s: repeat sets stages.split.repeat; remove it", wf->path);
    if (folds && (pl_node_get(split->node, "folds") != NULL || pl_node_get(split->node, "fold") != NULL))
        return pl_cmd_usage(args, "%s: --folds sets stages.split.folds and fold; remove them", wf->path);
    if (folds) /* what else folds need, check says */
        return 0;
    if (strcmp(method, "random") != 0 && (strcmp(method, "scaffold") != 0 || strcmp(variant, "deterministic") == 0))
        return pl_cmd_usage(args, "%s: split: {method: %s%s%s} is the same for every seed; use random, or scaffold", wf->path,
                            method, strcmp(method, "scaffold") == 0 ? ", variant: " : "",
                            strcmp(method, "scaffold") == 0 ? variant : "");
    return 0;
}

static int run(const pl_app *app, const pl_args *args)
{
    const char *number = pl_arg(args, "--number"), *folds = pl_arg(args, "--folds");
    repeating r = { .app = app, .args = args, .n = REPEATS, .folds = folds != NULL, .mem = pl_arena_new(1 << 16) };
    pl_workflow *wf;
    int status;

    if (number != NULL && folds != NULL) {
        pl_arena_free(r.mem);
        return pl_cmd_usage(args, "-n repeats a split, --folds makes a cross-validation: use one of them");
    }
    number = folds != NULL ? folds : number;
    if (number != NULL && (!pl_parse_int(number, &r.n) || r.n < 2 || r.n > REPEATS_MAX)) {
        pl_arena_free(r.mem);
        return pl_cmd_usage(args, "%s %s: a whole number from 2 to %d is expected", folds != NULL ? "--folds" : "-n", number,
                            REPEATS_MAX);
    }
    wf = pl_cmd_load(app, args, r.mem, &status);
    status = wf != NULL ? check(args, wf, r.folds) : status;
    if (status == 0 && (r.path = pl_sprintf(r.mem, "%s/repeats.json", wf->workdir)) == NULL)
        status = pl_cmd_no_memory();
    if (status == 0) {
        read_known(&r);
        status = repeat(&r, wf);
        json_decref(r.known);
    }
    pl_arena_free(r.mem);
    return status;
}

const pl_cmd st_cmd_repeat = {
    .name = "repeat",
    .args = "FILE [stage.setting=value ...]",
    .help = "train and test on several splits: mean and deviation of the errors",
    .about = "Runs a training workflow with N splits (stages.split.repeat=N-1 .. 0; the\n"
             "molecules are prepared once) and prints the mean and the standard deviation of\n"
             "the errors on held-out molecules, of the model and of simple predictions. The\n"
             "last split is the workflow's own: its results and its model stay. The errors of\n"
             "all splits are kept in WORKDIR/repeats.json, and the same command continues\n"
             "after a stop.\n"
             "\n"
             "A second table has the model's errors less those of each other prediction: the\n"
             "mean of the differences on the same split, and its 95 % interval. A difference\n"
             "that is smaller than its interval shows nothing. Splits share molecules, so the\n"
             "interval is rather too narrow. Of several members (train.members) the model's\n"
             "error is the mean of theirs; `ensemble` is the error of their mean.\n"
             "\n"
             "With --folds K the molecules are divided once, into K parts\n"
             "(stages.split.folds=K, stages.split.fold=K .. 1), and each part is tested by a\n"
             "model of the others; molecules of one skeleton, or scaffold, stay together.\n"
             "Errors that are means over molecules are also pooled over all of them. The\n"
             "workflow's own split runs after the folds.\n"
             "\n"
             "  molsieve repeat workflows/train-esol.yaml -n 5\n"
             "  molsieve repeat workflows/train-esol.yaml --folds 5\n"
             "  molsieve repeat train.yaml stages.split.method=scaffold --json\n",
    .opts = opts,
    .min_args = 1,
    .run = run,
};
