/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/commands/repeat_table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/base/text.h"
#include "stages/commands/commands.h"

typedef struct moments {
    double sum, pooled;           /* pooled: sum over molecules, of squared errors for rmse */
    double first, apart, squares; /* apart: mean of the differences from the first; squares: sum of squared deviations */
    int64_t n, molecules;
} moments;

/* Welford 1962, from the first value on: squares of large values would leave nothing of a small deviation. */
static void moments_take(moments *m, double x)
{
    double d, before;

    if (m->n++ == 0)
        m->first = x;
    d = x - m->first;
    before = d - m->apart;
    m->sum += x;
    m->apart += before / (double)m->n;
    m->squares += before * (d - m->apart);
}

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

/* Of one error over the splits. */
static moments moments_of(const st_repeated *r, const json_t *like)
{
    moments m = { 0 };

    for (int64_t k = 0; k < r->n; k++) {
        int64_t n;
        const double x = value_in(json_object_get(r->known, r->key[k]), like, "", word(like, "metric"), &n);
        if (isnan(x))
            continue;
        moments_take(&m, x);
        m.molecules += n;
        m.pooled += (double)n * (is_rmse(like) ? x * x : x);
    }
    return m;
}

static double deviation(const moments *m) { return m->n > 1 ? sqrt(m->squares / (double)(m->n - 1)) : NAN; }

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
static moments differences_of(const st_repeated *r, const json_t *like)
{
    moments m = { 0 };

    for (int64_t k = 0; k < r->n; k++) {
        const json_t *rows = json_object_get(r->known, r->key[k]);
        int64_t n;
        const double d = value_in(rows, like, "", error_of(like), &n) - value_in(rows, like, "", word(like, "metric"), &n);
        if (isnan(d))
            continue;
        moments_take(&m, d);
    }
    return m;
}

static json_t *real_or_null(double x) { return isfinite(x) ? json_real(x) : json_null(); }

static void set_difference(json_t *row, const st_repeated *r)
{
    const moments m = differences_of(r, row);

    (void)json_object_set_new(row, "difference", real_or_null(m.n > 0 ? m.sum / (double)m.n : NAN));
    (void)json_object_set_new(row, "difference95", real_or_null(half_width(&m)));
    (void)json_object_set_new(row, "difference_splits", json_integer(m.n));
}

static void row_add(json_t *table, const st_repeated *r, const json_t *like)
{
    const moments m = moments_of(r, like);
    json_t *row = json_deep_copy(like);

    (void)json_object_del(row, "value");
    (void)json_object_set_new(row, "mean", json_real(m.sum / (double)m.n));
    (void)json_object_set_new(row, "stdev", real_or_null(deviation(&m)));
    (void)json_object_set_new(row, "splits", json_integer(m.n));
    if (strchr(word(like, "metric"), '.') != NULL)
        set_difference(row, r);
    if (r->folds) {
        (void)json_object_set_new(row, "n", json_integer(m.molecules));
        (void)json_object_set_new(row, "pooled", real_or_null(pooled_of(&m, like)));
    }
    (void)json_array_append_new(table, row);
}

/* One row for each error that some split has, those of the last split first. */
json_t *st_repeat_table(const st_repeated *r)
{
    json_t *table = json_array();
    const json_t *one;
    size_t i;

    for (int64_t k = 0; k < r->n; k++)
        json_array_foreach(json_object_get(r->known, r->key[k]), i, one)
            if (row_of(table, one, "", word(one, "metric")) == NULL)
                row_add(table, r, one);
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

/* A table that is printed: of one property, part and kind of model. */
typedef struct part_table {
    const st_repeated *r;
    const json_t *table, *like; /* like: a row of that property and part */
    int classes;                /* which of `shown` */
    int64_t molecules;          /* that were tested: no error is of more */
} part_table;

/* What the table's heading does not say: an error of fewer splits, as where a test part has one class only, or of fewer molecules. */
static void fewer_add(pl_text *line, const part_table *t, const json_t *row, int k, kind what)
{
    static const char *const counted[] = { [MEANS] = "splits", [POOLED] = "n", [PAIRED] = "difference_splits" };
    const int64_t n = json_integer_value(json_object_get(row, counted[what]));
    const char *splits = t->r->folds ? pl_plural(n, "fold", "folds") : pl_plural(n, "split", "splits");

    if (n < (what == POOLED ? t->molecules : t->r->n))
        pl_text_addf(line, "%s%s of %lld %s", line->len > 0 ? ", " : "", heads[t->classes][k], (long long)n,
                     what == POOLED ? pl_plural(n, "molecule", "molecules") : splits);
}

static void print_line(const part_table *t, const char *who, kind what)
{
    pl_text line = { 0 }, fewer = { 0 };
    char cell[72];
    bool any = false;

    pl_text_addf(&line, "  %-13.13s", who[0] ? who : "the model");
    for (int k = 0; k < SHOWN; k++) {
        const json_t *row = row_of(t->table, t->like, who, shown[t->classes][k]);
        if (what == POOLED && !is_mean(shown[t->classes][k]))
            continue;
        pl_text_addf(&line, " %15s", cell_of(cell, row, what));
        any = any || cell[0] != '\0';
        if (cell[0] != '\0')
            fewer_add(&fewer, t, row, k, what);
    }
    if (any) /* scores that are no probabilities have no means */
        pl_cmd_print("%s%s%s%s\n", pl_text_str(&line), fewer.len > 0 ? "  (" : "", pl_text_str(&fewer), fewer.len > 0 ? ")" : "");
    pl_text_free(&line);
    pl_text_free(&fewer);
}

/* Which of `shown` has this error; -1: none. */
static int classes_of(const json_t *row)
{
    for (int classes = 0; classes < 2; classes++)
        for (int k = 0; k < SHOWN; k++)
            if (strcmp(error_of(row), shown[classes][k]) == 0)
                return classes;
    return -1;
}

/* Whether an error that is shown is of the same property, part and kind of model. */
static bool is_beside(const json_t *row, const json_t *like)
{
    return classes_of(row) == classes_of(like) && strcmp(word(row, "property"), word(like, "property")) == 0 &&
           strcmp(word(row, "part"), word(like, "part")) == 0;
}

/* Whether a row is the first of its kind, of that prediction or of any. */
static bool is_first(const json_t *table, const json_t *row, const char *who, pl_arena *mem)
{
    const json_t *one;
    size_t i;

    json_array_foreach(table, i, one)
        if (is_beside(one, row) && (who == NULL || strcmp(who_of(one, mem), who) == 0))
            return one == row;
    return false;
}

/* The model, then what is compared with it, in the order of the table. */
static void print_lines(const part_table *t, kind what)
{
    const json_t *row;
    size_t i;

    pl_cmd_print("  %-13s", "prediction by");
    for (int k = 0; k < SHOWN; k++)
        if (what != POOLED || is_mean(shown[t->classes][k]))
            pl_cmd_print(" %15s", heads[t->classes][k]);
    pl_cmd_print("\n");
    print_line(t, "", what);
    json_array_foreach(t->table, i, row) {
        const char *who = who_of(row, t->r->mem);
        if (who[0] != '\0' && is_beside(row, t->like) && is_first(t->table, row, who, t->r->mem))
            print_line(t, who, what);
    }
}

static void print_property(const part_table *t)
{
    const char *unit = word(t->like, "unit");
    const bool folds = t->r->folds;

    pl_cmd_print("%s%s%s, part %s: mean +- standard deviation over %lld %s\n", word(t->like, "property"), unit[0] ? ", " : "", unit,
                 word(t->like, "part"), (long long)t->r->n, folds ? "folds" : "splits");
    print_lines(t, MEANS);
    pl_cmd_print("the model less each of them, paired by %s: mean and 95 %% interval\n", folds ? "fold" : "split");
    print_lines(t, PAIRED);
    if (!folds)
        return;
    pl_cmd_print("pooled over the %lld molecules that were tested\n", (long long)t->molecules);
    print_lines(t, POOLED);
}

static int64_t molecules_of(const json_t *table, const json_t *like)
{
    const json_t *row;
    int64_t most = 0, n;
    size_t i;

    json_array_foreach(table, i, row)
        if (is_beside(row, like) && (n = json_integer_value(json_object_get(row, "n"))) > most)
            most = n;
    return most;
}

/* On the part test, if there is one, else on all. */
void st_repeat_print(const st_repeated *r, const json_t *table)
{
    const json_t *row;
    bool tested = false;
    size_t i;

    json_array_foreach(table, i, row)
        tested = tested || strcmp(word(row, "part"), "test") == 0;
    json_array_foreach(table, i, row) {
        const part_table t = { r, table, row, classes_of(row), molecules_of(table, row) };
        if (t.classes >= 0 && is_first(table, row, NULL, r->mem) && (!tested || strcmp(word(row, "part"), "test") == 0))
            print_property(&t);
    }
}
