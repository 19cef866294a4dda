/* SPDX-License-Identifier: Apache-2.0 */
/* The last lines of `run` about models: their errors, and whether a simple prediction is as good. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "stages/commands/output/run_words.h"
#include "stages/steps/errors/verdict.h"

/* A row is a model, or the members of an ensemble together, on one property. ?1 is the metric. */
static const char rows_sql[] =
    "SELECT min(m.name)||CASE WHEN count(*)>1 THEN ' and '||(count(*)-1)||' more' ELSE '' END,p.name,e.part,coalesce(max(t.value),e.value),"
    "coalesce(e.unit,''),e.n,count(*),min(e.value),max(e.value),min(e.model_id),e.property_id"
    " FROM evaluation e JOIN model m USING(model_id) JOIN property p USING(property_id) LEFT JOIN evaluation t ON t.model_id=e.model_id"
    " AND t.property_id=e.property_id AND t.part=e.part AND t.metric='ensemble.'||?1 WHERE e.metric=?1 AND e.part="
    "(SELECT min(part) FROM evaluation WHERE part IN('new','test','valid')) GROUP BY e.property_id,CASE WHEN t.value IS NULL THEN e.model_id END"
    " ORDER BY e.property_id, min(e.model_id) LIMIT 64";

static const char simple_sql[] =
    "SELECT substr(metric,1,instr(metric,'.')-1),value FROM evaluation WHERE model_id=?1 AND property_id=?2 AND part=?3 AND "
    "substr(metric,instr(metric,'.')+1)=?4 ORDER BY metric";

static const char *text(sqlite3_stmt *st, int i) { return (const char *)sqlite3_column_text(st, i); }

/* Compares with every stored simple prediction. *who: the name of the best. */
static void simple_compare(pl_store *s, sqlite3_stmt *row, const char *metric, st_verdict *v, char *who, size_t n)
{
    sqlite3_stmt *st = NULL;
    bool more = true;

    if (pl_db_prepare(s->db, &st, simple_sql, NULL) != PL_OK)
        return;
    (void)sqlite3_bind_int64(st, 1, sqlite3_column_int64(row, 9));
    (void)sqlite3_bind_int64(st, 2, sqlite3_column_int64(row, 10));
    (void)sqlite3_bind_text(st, 3, text(row, 2), -1, SQLITE_TRANSIENT);
    (void)sqlite3_bind_text(st, 4, metric, -1, SQLITE_STATIC);
    while (pl_db_step(st, &more, NULL) == PL_OK && more) {
        const double before = v->best;
        if (!st_verdict_counts(text(st, 0)))
            continue;
        st_verdict_compare(v, who, sqlite3_column_double(st, 1));
        if (v->best != before)
            (void)snprintf(who, n, "%s", text(st, 0));
    }
    (void)sqlite3_finalize(st);
}

/* The share of measured values within interval90, if it was evaluated: of a model ?1, or of each member of its ensemble. */
static void print_coverage(pl_store *s, sqlite3_stmt *row, const char *metric)
{
    static const char sql[] =
        "SELECT min(value),max(value),max(n),count(*) FROM evaluation c WHERE property_id=?2 AND part=?3 AND metric='coverage90' AND (model_id=?1 OR "
        "(?4 AND EXISTS(SELECT 1 FROM evaluation t WHERE t.model_id=c.model_id AND t.property_id=?2 AND t.part=?3 AND t.metric='ensemble.'||?5)))";
    sqlite3_stmt *st = NULL;
    bool more = false;
    char n[32];

    if (pl_db_prepare(s->db, &st, sql, NULL) != PL_OK)
        return;
    (void)sqlite3_bind_int64(st, 1, sqlite3_column_int64(row, 9));
    (void)sqlite3_bind_int64(st, 2, sqlite3_column_int64(row, 10));
    (void)sqlite3_bind_text(st, 3, text(row, 2), -1, SQLITE_TRANSIENT);
    (void)sqlite3_bind_int(st, 4, sqlite3_column_int64(row, 6) > 1);
    (void)sqlite3_bind_text(st, 5, metric, -1, SQLITE_STATIC);
    if (pl_db_step(st, &more, NULL) == PL_OK && more && sqlite3_column_int64(st, 3) > 0) {
        pl_cmd_print("; interval90 %sholds %.1f ", sqlite3_column_int64(st, 3) > 1 ? "of each " : "",
                     100 * sqlite3_column_double(st, 0));
        if (sqlite3_column_int64(st, 3) > 1)
            pl_cmd_print("to %.1f ", 100 * sqlite3_column_double(st, 1));
        pl_cmd_print("%% of %s inside of the domain", pl_count_str(sqlite3_column_int64(st, 2), n));
    }
    (void)sqlite3_finalize(st);
}

static void print_row(pl_store *s, sqlite3_stmt *row, const char *metric, bool classes)
{
    const char *unit = text(row, 4), *space = unit[0] ? " " : "";
    st_verdict v = st_verdict_of(classes, sqlite3_column_double(row, 3));
    pl_text says = { 0 };
    char n[32], who[48] = "";

    pl_cmd_print("model %s: %s, %s %s %.4g%s%s", text(row, 0), text(row, 1), text(row, 2), classes ? "ROC-AUC" : "MAE", v.model,
                 space, unit);
    if (sqlite3_column_int64(row, 6) > 1)
        pl_cmd_print(" together, each %.4g to %.4g", sqlite3_column_double(row, 7), sqlite3_column_double(row, 8));
    pl_cmd_print(" (%s molecules)", pl_count_str(sqlite3_column_int64(row, 5), n));
    simple_compare(s, row, metric, &v, who, sizeof who);
    if (v.who != NULL)
        pl_cmd_print("; the best simple prediction, %s: %.4g", st_verdict_words(who), v.best);
    print_coverage(s, row, metric);
    st_verdict_add(&says, &v, text(row, 2), unit);
    pl_cmd_print("\n%s%s", pl_text_str(&says), says.len > 0 ? "\n" : "");
    pl_text_free(&says);
}

static void print_metric(pl_store *s, const char *metric, bool classes)
{
    sqlite3_stmt *st = NULL;
    bool row = false;

    if (pl_db_prepare(s->db, &st, rows_sql, NULL) != PL_OK)
        return;
    (void)sqlite3_bind_text(st, 1, metric, -1, SQLITE_STATIC);
    while (pl_db_step(st, &row, NULL) == PL_OK && row)
        print_row(s, st, metric, classes);
    (void)sqlite3_finalize(st);
}

/* A part with one class has no ROC-AUC, and says nothing of whether a model tells classes apart. */
static void print_one_class(pl_store *s)
{
    static const char sql[] =
        "SELECT m.name,p.name,e.part,e.n FROM evaluation e JOIN model m USING(model_id) JOIN property p USING(property_id) WHERE "
        "e.metric='log_loss' AND e.part=(SELECT min(part) FROM evaluation WHERE part IN('new','test','valid')) AND NOT EXISTS(SELECT 1 "
        "FROM evaluation a WHERE a.model_id=e.model_id AND a.property_id=e.property_id AND a.part=e.part AND a.metric='roc_auc') ORDER BY "
        "e.property_id, e.model_id LIMIT 64";
    sqlite3_stmt *st = NULL;
    bool row = false;
    char n[32];

    if (pl_db_prepare(s->db, &st, sql, NULL) != PL_OK)
        return;
    while (pl_db_step(st, &row, NULL) == PL_OK && row)
        pl_cmd_print("model %s: %s, %s: no ROC-AUC, as all molecules with a value are of one class (%s)\n", text(st, 0),
                     text(st, 1), text(st, 2), pl_count_str(sqlite3_column_int64(st, 3), n));
    (void)sqlite3_finalize(st);
}

void st_model_errors_print(pl_store *s)
{
    print_metric(s, "mae", false);
    print_metric(s, "roc_auc", true);
    print_one_class(s);
}
