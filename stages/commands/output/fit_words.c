/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/commands/output/fit_words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "stages/fit/recipe.h"
#include "stages/steps/errors/trust.h"
#include "stages/steps/errors/verdict.h"

enum { ROWS_MAX = 24, NUMBERS = 3 };

void st_fit_table_print(const st_fit_table *t, bool classes, bool network, const char *workflow)
{
    char a[32], b[32];

    pl_cmd_print("table: %s of %s records have a number in %s\n", pl_count_str(t->numbers, a), pl_count_str(t->records, b),
                 t->target);
    if (t->beside != NULL)
        pl_cmd_print("warning: %s has predictions, as the column %s beside it says, and no measured values\n", t->target,
                     t->beside);
    if (t->smiles != NULL)
        pl_cmd_print("SMILES: column %s%s\n", t->smiles, t->guessed ? ", by what it holds" : "");
    if (t->texts > 0)
        pl_cmd_print("left out: %s not a number, the first in line %lld: %s\n", pl_count_str(t->texts, a), (long long)t->text_line,
                     t->text);
    if (classes)
        pl_cmd_print("task: two classes, %s of 1 and %s of 0; the model predicts the probability of 1\n", pl_count_str(t->ones, a),
                     pl_count_str(t->zeros, b));
    else
        pl_cmd_print("task: numbers from %.4g to %.4g%s\n", t->low, t->high,
                     t->two.n == 2 && !st_fit_is_class(t) ? ", and no other; for two classes write 0 and 1" : "");
    if (t->unit != NULL)
        pl_cmd_print("unit: %s, by column %s (--unit names another)\n", t->unit, t->units.unit.name);
    for (int k = 0; k < t->columns.n; k++)
        if (st_fit_columns_unit(&t->columns, k) != NULL)
            pl_cmd_print("%s: in %s, by column %s\n", t->columns.name[k], st_fit_columns_unit(&t->columns, k),
                         t->columns.units[k].unit.name);
    if (network) {
        const char *fast = classes ? "trees,gp,forest" : "trees,gp";
        pl_cmd_print("structures: 3D, which the network needs\n"
                     "time: the network learns for minutes to hours, %d passes over the molecules;\n"
                     "      --family %s takes seconds and needs no 3D; to time a pass:\n"
                     "      molsieve plan %s\n",
                     st_recipe_epochs(t), fast, workflow);
    } else
        pl_cmd_print("structures: none are built; trees and Gaussian process read bonds\n");
}

/* ---- errors -------------------------------------------------------------- */

/* Of one prediction: the model (""), a component, or a simple prediction. */
typedef struct row {
    char who[48];
    double number[NUMBERS];
} row;

typedef struct found {
    row row[ROWS_MAX];
    int n;
    int64_t molecules;
    char part[16], unit[64];
    double interval90; /* half-width; NaN: none */
    st_trust trust;
} found;

static const char *const metrics[2][NUMBERS] = { { "mae", "rmse", "r2" }, { "roc_auc", "pr_auc", "brier" } };
static const char *const headings[2][NUMBERS] = { { "MAE", "RMSE", "R2" }, { "ROC-AUC", "PR-AUC", "Brier" } };

static row *row_of(found *f, const char *who, size_t n)
{
    for (int k = 0; k < f->n; k++)
        if (strncmp(f->row[k].who, who, n) == 0 && f->row[k].who[n] == '\0')
            return &f->row[k];
    if (f->n == ROWS_MAX || n >= sizeof f->row[0].who)
        return NULL;
    f->row[f->n] = (row){ .number = { NAN, NAN, NAN } };
    memcpy(f->row[f->n].who, who, n);
    return &f->row[f->n++];
}

/* "gp.rmse" of component gp. */
static void metric_take(found *f, const char *metric, double value, bool classes)
{
    const char *dot = strrchr(metric, '.');
    const size_t n = dot != NULL ? (size_t)(dot - metric) : 0;

    for (int k = 0; k < NUMBERS; k++) {
        row *r = strcmp(dot != NULL ? dot + 1 : metric, metrics[classes][k]) == 0 ? row_of(f, metric, n) : NULL;
        if (r != NULL)
            r->number[k] = value;
    }
}

static bool is_shown(const char *metric, bool classes)
{
    bool shown = false;

    for (int k = 0; k < NUMBERS; k++)
        shown = shown || strcmp(metric, metrics[classes][k]) == 0;
    return shown;
}

static void errors_read(found *f, pl_store *s, bool classes)
{
    static const char sql[] = "SELECT metric, value, n, part, coalesce(unit,'') FROM evaluation WHERE part=(SELECT min(part) FROM "
                              "evaluation WHERE part IN('test','valid')) ORDER BY instr(metric,'.')>0, metric";
    sqlite3_stmt *st = NULL;
    bool more = true;

    if (pl_db_prepare(s->db, &st, sql, NULL) != PL_OK)
        return;
    while (pl_db_step(st, &more, NULL) == PL_OK && more) {
        const char *metric = (const char *)sqlite3_column_text(st, 0);
        metric_take(f, metric, sqlite3_column_double(st, 1), classes);
        st_trust_add(&f->trust, metric, sqlite3_column_double(st, 1), sqlite3_column_int64(st, 2));
        if (strcmp(metric, "interval90") == 0)
            f->interval90 = sqlite3_column_double(st, 1);
        if (f->molecules > 0 || strchr(metric, '.') != NULL || !is_shown(metric, classes))
            continue;
        f->molecules = sqlite3_column_int64(st, 2);
        (void)snprintf(f->part, sizeof f->part, "%s", (const char *)sqlite3_column_text(st, 3));
        (void)snprintf(f->unit, sizeof f->unit, "%s", (const char *)sqlite3_column_text(st, 4));
    }
    (void)sqlite3_finalize(st);
}

static void row_print(const row *r, const char *name)
{
    pl_cmd_print("  %-28s", name);
    for (int k = 0; k < NUMBERS; k++)
        if (isnan(r->number[k]))
            pl_cmd_print("%9s", "");
        else
            pl_cmd_print(" %#8.3g", r->number[k]);
    pl_cmd_print("\n");
}

/* The model first, then its components, then simple predictions. */
static void rows_print(const found *f)
{
    for (int k = 0; k < f->n; k++)
        if (f->row[k].who[0] == '\0')
            row_print(&f->row[k], "the model");
    for (int simple = 0; simple < 2; simple++)
        for (int k = 0; k < f->n; k++) {
            char name[64];
            if (f->row[k].who[0] == '\0' || st_verdict_counts(f->row[k].who) != (simple == 1))
                continue;
            (void)snprintf(name, sizeof name, simple ? "%s" : "  its %s", simple ? st_verdict_words(f->row[k].who) : f->row[k].who);
            row_print(&f->row[k], name);
        }
}

static const row *row_find(const found *f, const char *who)
{
    const row *r = f->row;

    while (r < f->row + f->n && strcmp(r->who, who) != 0)
        r++;
    return r < f->row + f->n ? r : NULL;
}

/* A standard error of the difference of MAE to a simple prediction. NaN: not known, as for classes. */
static double doubt_of(const found *f, const char *who, bool classes)
{
    const row *simple = row_find(f, who);

    if (classes || simple == NULL)
        return NAN;
    return st_verdict_doubt((double[2]){ f->row[0].number[0], simple->number[0] },
                            (double[2]){ f->row[0].number[1], simple->number[1] }, f->molecules);
}

static void better_print(const found *f, const st_verdict *v)
{
    const double gap = v->best - v->model, doubt = doubt_of(f, v->who, v->classes);

    if (gap < 2 * doubt)
        pl_cmd_print("The model is not shown to be better than the best simple prediction, %s: their MAEs differ by %.2g, with a "
                     "standard error of about %.2g.\n",
                     st_verdict_words(v->who), gap, doubt);
    else
        pl_cmd_print("%s better than the best simple prediction, %s.\n",
                     isnan(doubt) ? "On these molecules the model is" : "The model is", st_verdict_words(v->who));
}

static void verdict_print(const found *f, bool classes)
{
    st_verdict v = st_verdict_of(classes, f->row[0].number[0]);
    pl_text says = { 0 };

    if (classes && isnan(f->row[0].number[0])) {
        pl_cmd_print(
            "All of these molecules are of one class, so they do not show whether the model tells the classes apart. Another --split "
            "or --seed may hold out both.\n");
        return;
    }
    for (int k = 0; k < f->n; k++)
        if (st_verdict_counts(f->row[k].who))
            st_verdict_compare(&v, f->row[k].who, f->row[k].number[0]);
    st_verdict_add(&says, &v, f->part, f->unit);
    if (says.len > 0)
        pl_cmd_print("%s\n", pl_text_str(&says));
    else if (v.who != NULL)
        better_print(f, &v);
    pl_text_reset(&says);
    st_trust_sentence(&says, &f->trust, f->part, f->unit);
    if (says.len > 0)
        pl_cmd_print("%s\n", pl_text_str(&says));
    pl_text_free(&says);
}

/* Rows that have a number, of which nothing is learned. */
static void failed_print(pl_store *s, const char *results)
{
    static const char sql[] =
        "SELECT count(DISTINCT record_id), min(r.line), f.message FROM record r JOIN failure f USING(record_id) WHERE r.status='failed'";
    sqlite3_stmt *st = NULL;
    bool more = false;
    char n[32];

    if (pl_db_prepare(s->db, &st, sql, NULL) != PL_OK)
        return;
    if (pl_db_step(st, &more, NULL) == PL_OK && more && sqlite3_column_int64(st, 0) > 0)
        pl_cmd_print(
            "left out: %s that failed, the first in line %lld: %.200s\n          `molsieve failures %s` counts them by reason\n",
            pl_count_str(sqlite3_column_int64(st, 0), n), (long long)sqlite3_column_int64(st, 1),
            (const char *)sqlite3_column_text(st, 2), results);
    (void)sqlite3_finalize(st);
}

void st_fit_errors_print(const pl_app *app, const char *results, bool classes)
{
    pl_store *s = NULL;
    found f = { .interval90 = NAN, .trust = st_trust_new(classes) };
    char n[32];

    if (results == NULL || pl_store_open_read(&s, results, app->schema, NULL) != PL_OK)
        return;
    failed_print(s, results);
    errors_read(&f, s, classes);
    pl_store_close(s);
    if (f.n == 0)
        return;
    pl_cmd_print("errors on %s held-out molecules (%s)%s%s:\n", pl_count_str(f.molecules, n), f.part,
                 f.unit[0] != '\0' && !classes ? ", in " : "", classes ? "" : f.unit);
    pl_cmd_print("  %-28s%9s%9s%9s\n", "", headings[classes][0], headings[classes][1], headings[classes][2]);
    rows_print(&f);
    if (!classes && !isnan(f.interval90))
        pl_cmd_print("Of further molecules like these, 90 %% are expected within %.3g%s%s of the prediction.\n", f.interval90,
                     f.unit[0] != '\0' ? " " : "", f.unit);
    verdict_print(&f, classes);
}
