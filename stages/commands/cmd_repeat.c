/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/base/file.h"
#include "pipeline/run/run.h"
#include "stages/commands/commands.h"
#include "stages/commands/output/cmd_json.h"
#include "stages/commands/output/run_words.h"

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

/* ---- the table ---- */

typedef struct moments {
    double sum, squares, pooled; /* pooled: sum over molecules, of squared errors for rmse */
    int64_t n, molecules;
} moments;

static const char *word(const json_t *row, const char *name) { return json_string_value(json_object_get(row, name)); }

/* "mae" of "trees.mae". */
static const char *error_of(const json_t *row)
{
    const char *metric = word(row, "metric"), *dot = strrchr(metric, '.');
    return dot != NULL ? dot + 1 : metric;
}

static bool is_rmse(const json_t *row) { return strcmp(error_of(row), "rmse") == 0; }

/* Whether it is that error of the same property and part; who: of which prediction, "" of the model. */
static bool is_error(const json_t *row, const json_t *like, const char *who, const char *metric)
{
    char name[80];

    (void)snprintf(name, sizeof name, "%s%s%s", who, who[0] ? "." : "", metric);
    return strcmp(word(row, "metric"), name) == 0 && strcmp(word(row, "property"), word(like, "property")) == 0 &&
           strcmp(word(row, "part"), word(like, "part")) == 0;
}

/* An error in one split; of several members, each of which has a row, the mean of theirs. NAN: there is none. n: molecules. */
static double value_in(const json_t *rows, const json_t *like, const char *who, const char *metric, int64_t *n)
{
    const json_t *one;
    double sum = 0;
    int members = 0;
    size_t i;

    *n = 0;
    json_array_foreach(rows, i, one)
        if (is_error(one, like, who, metric)) {
            sum += json_number_value(json_object_get(one, "value"));
            *n = json_integer_value(json_object_get(one, "n"));
            members++;
        }
    return members > 0 ? sum / members : NAN;
}

/* Of one error over the splits in keys[n]. */
static moments moments_of(const repeating *r, const char *const *key, const json_t *like)
{
    moments m = { 0 };

    for (int64_t k = 0; k < r->n; k++) {
        int64_t n;
        const double x = value_in(json_object_get(r->known, key[k]), like, "", word(like, "metric"), &n);
        if (isnan(x))
            continue;
        m.n++;
        m.sum += x;
        m.squares += x * x;
        m.molecules += n;
        m.pooled += (double)n * (is_rmse(like) ? x * x : x);
    }
    return m;
}

static double deviation(const moments *m)
{
    const double mean = m->sum / (double)m->n;
    return m->n > 1 ? sqrt(fmax(m->squares - (double)m->n * mean * mean, 0) / (double)(m->n - 1)) : NAN;
}

/* Whether an error is a mean over molecules, so that those of several folds have one. An order, such as ROC-AUC, compares molecules, and
 * those of other folds were predicted by other models. */
static bool is_mean(const char *error)
{
    static const char *const means[] = { "mae", "rmse", "brier", "log_loss" };
    bool found = false;

    for (size_t i = 0; i < sizeof means / sizeof *means; i++)
        found = found || strcmp(error, means[i]) == 0;
    return found;
}

/* The error over the molecules of all folds, or NAN. */
static double pooled_of(const moments *m, const json_t *like)
{
    if (!is_mean(error_of(like)) || m->molecules == 0)
        return NAN;
    return is_rmse(like) ? sqrt(m->pooled / (double)m->molecules) : m->pooled / (double)m->molecules;
}

/* Half the width of the 95 % interval of a mean of n: Student's t, by its series from 5 degrees of freedom on (within 0.003). */
static double half_width(const moments *m)
{
    static const double first[] = { NAN, 12.706, 4.303, 3.182, 2.776 };
    const double z = 1.959964, df = (double)(m->n - 1), z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
    double t = NAN;

    if (m->n > 5)
        t = z + (z3 + z) / (4 * df) + (5 * z5 + 16 * z3 + 3 * z) / (96 * df * df) +
            (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * df * df * df);
    else if (m->n > 1)
        t = first[m->n - 1];
    return t * deviation(m) / sqrt((double)m->n);
}

static const json_t *row_of(const json_t *table, const json_t *like, const char *who, const char *metric)
{
    const json_t *row;
    size_t i;

    json_array_foreach(table, i, row)
        if (is_error(row, like, who, metric))
            return row;
    return NULL;
}

/* Of the model's error less this one, over the splits that have both. */
static moments differences_of(const repeating *r, const char *const *key, const json_t *like)
{
    moments m = { 0 };

    for (int64_t k = 0; k < r->n; k++) {
        const json_t *rows = json_object_get(r->known, key[k]);
        int64_t n;
        const double d = value_in(rows, like, "", error_of(like), &n) - value_in(rows, like, "", word(like, "metric"), &n);
        if (isnan(d))
            continue;
        m.n++;
        m.sum += d;
        m.squares += d * d;
    }
    return m;
}

static json_t *real_or_null(double x) { return isfinite(x) ? json_real(x) : json_null(); }

static void set_difference(json_t *row, const repeating *r, const char *const *key)
{
    const moments m = differences_of(r, key, row);

    (void)json_object_set_new(row, "difference", real_or_null(m.n > 0 ? m.sum / (double)m.n : NAN));
    (void)json_object_set_new(row, "difference95", real_or_null(half_width(&m)));
}

static void row_add(json_t *table, const repeating *r, const char *const *key, const json_t *like)
{
    const moments m = moments_of(r, key, like);
    json_t *row = json_deep_copy(like);

    (void)json_object_del(row, "value");
    (void)json_object_set_new(row, "mean", json_real(m.sum / (double)m.n));
    (void)json_object_set_new(row, "stdev", real_or_null(deviation(&m)));
    (void)json_object_set_new(row, "splits", json_integer(m.n));
    if (strchr(word(like, "metric"), '.') != NULL)
        set_difference(row, r, key);
    if (r->folds) {
        (void)json_object_set_new(row, "n", json_integer(m.molecules));
        (void)json_object_set_new(row, "pooled", real_or_null(pooled_of(&m, like)));
    }
    (void)json_array_append_new(table, row);
}

/* One row for each error that some split has, those of the last split first. */
static json_t *table_of(const repeating *r, const char *const *key)
{
    json_t *table = json_array();
    const json_t *one;
    size_t i;

    for (int64_t k = 0; k < r->n; k++)
        json_array_foreach(json_object_get(r->known, key[k]), i, one)
            if (row_of(table, one, "", word(one, "metric")) == NULL)
                row_add(table, r, key, one);
    return table;
}

/* The two kinds of models, and the errors that the table shows of them. */
enum { SHOWN = 4 };
static const char *const shown[2][SHOWN] = { { "mae", "rmse", "r2", "spearman" }, { "roc_auc", "pr_auc", "brier", "log_loss" } };
static const char *const heads[2][SHOWN] = { { "MAE", "RMSE", "R2", "Spearman" }, { "ROC-AUC", "PR-AUC", "Brier", "log loss" } };

/* "trees" of "trees.mae", in mem; "" of "mae". */
static const char *who_of(const json_t *row, pl_arena *mem)
{
    const char *metric = word(row, "metric"), *dot = strrchr(metric, '.');
    const char *who = pl_strndup(mem, metric, dot != NULL ? (size_t)(dot - metric) : 0);
    return who != NULL ? who : "";
}

/* What a table has of each error. */
typedef enum kind { MEANS, POOLED, PAIRED } kind;

static const char *cell_of_pair(char out[72], const json_t *row)
{
    const json_t *difference = json_object_get(row, "difference"), *half = json_object_get(row, "difference95");
    char a[32], b[32];

    if (json_is_number(difference))
        (void)snprintf(out, 72, "%s%s +- %s", json_number_value(difference) > 0 ? "+" : "",
                       pl_digits_str(json_number_value(difference), 2, a),
                       json_is_number(half) ? pl_digits_str(json_number_value(half), 2, b) : "?");
    return out;
}

/* Mean and deviation of one error, pooled, or the paired difference and its interval; "" if there is none. */
static const char *cell_of(char out[72], const json_t *row, kind what)
{
    const json_t *stdev = json_object_get(row, "stdev"), *all = json_object_get(row, "pooled");
    char a[32], b[32];

    out[0] = '\0';
    if (what == PAIRED)
        return cell_of_pair(out, row);
    if (what == POOLED && json_is_number(all))
        (void)snprintf(out, 72, "%s", pl_digits_str(json_number_value(all), 3, a));
    else if (what == MEANS && row != NULL)
        (void)snprintf(out, 72, "%s +- %s", pl_digits_str(json_number_value(json_object_get(row, "mean")), 3, a),
                       json_is_number(stdev) ? pl_digits_str(json_number_value(stdev), 2, b) : "?");
    return out;
}

static void print_line(const json_t *table, const json_t *like, const char *who, bool classes, kind what)
{
    pl_text line = { 0 };
    char cell[72];
    bool any = false;

    pl_text_addf(&line, "  %-13.13s", who[0] ? who : "the model");
    for (int k = 0; k < SHOWN; k++)
        if (what != POOLED || is_mean(shown[classes][k])) {
            pl_text_addf(&line, " %15s", cell_of(cell, row_of(table, like, who, shown[classes][k]), what));
            any = any || cell[0] != '\0';
        }
    if (any) /* scores that are no probabilities have no means */
        pl_cmd_print("%s\n", pl_text_str(&line));
    pl_text_free(&line);
}

/* The model, then what is compared with it, in the order of their names. */
static void print_lines(const json_t *table, const json_t *like, bool classes, kind what, pl_arena *mem)
{
    const json_t *row;
    size_t i;

    pl_cmd_print("  %-13s", "prediction by");
    for (int k = 0; k < SHOWN; k++)
        if (what != POOLED || is_mean(shown[classes][k]))
            pl_cmd_print(" %15s", heads[classes][k]);
    pl_cmd_print("\n");
    print_line(table, like, "", classes, what);
    json_array_foreach(table, i, row) {
        const char *who = who_of(row, mem);
        if (who[0] != '\0' && row == row_of(table, like, who, shown[classes][0]))
            print_line(table, like, who, classes, what);
    }
}

static void print_property(const json_t *table, const json_t *like, bool classes, pl_arena *mem)
{
    const char *unit = word(like, "unit");
    const bool folds = json_object_get(like, "pooled") != NULL;

    pl_cmd_print("%s%s%s, part %s: mean +- standard deviation over %lld %s\n", word(like, "property"), unit[0] ? ", " : "", unit,
                 word(like, "part"), (long long)json_integer_value(json_object_get(like, "splits")), folds ? "folds" : "splits");
    print_lines(table, like, classes, MEANS, mem);
    pl_cmd_print("the model less each of them, paired by %s: mean and 95 %% interval\n", folds ? "fold" : "split");
    print_lines(table, like, classes, PAIRED, mem);
    if (!folds)
        return;
    pl_cmd_print("pooled over the %lld molecules that were tested\n", (long long)json_integer_value(json_object_get(like, "n")));
    print_lines(table, like, classes, POOLED, mem);
}

/* On the part test, if there is one, else on all. */
static void print_table(const json_t *table, pl_arena *mem)
{
    const json_t *row;
    bool tested = false;
    size_t i;

    json_array_foreach(table, i, row)
        tested = tested || strcmp(word(row, "part"), "test") == 0;
    json_array_foreach(table, i, row)
        for (int k = 0; k < 2; k++)
            if (strcmp(word(row, "metric"), shown[k][0]) == 0 && (!tested || strcmp(word(row, "part"), "test") == 0))
                print_property(table, row, k == 1, mem);
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
    table = table_of(r, r->folds ? key + 1 : key);
    if (pl_arg(r->args, "--json") != NULL)
        code = st_json_print(table, 0, &err);
    else
        print_table(table, r->mem);
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
