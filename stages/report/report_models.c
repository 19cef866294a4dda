/* SPDX-License-Identifier: Apache-2.0 */
/* Models: what they are, how they were trained, their errors. */
#include "stages/report/report_parts.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "stages/report/plot.h"
#include "stages/report/report_facts.h"
#include "stages/steps/errors/errors.h"
#include "stages/steps/errors/verdict.h"

enum { N_WORST = 8, POINTS_MAX = 100000, TEXT_MAX = 600, MODELS_MAX = 20 }; /* TEXT_MAX: characters */

/* ---- errors beside those of simple predictions ---- */

/* Names and numbers of the errors of a regression and of a class (stages/steps/errors/errors.h). */
typedef struct measures {
    const char *const *heads; /* NULL-terminated: part, prediction by, .. , molecules */
    int kind[ST_ERROR_KINDS]; /* -1 after the last                                    */
} measures;

static const char *const number_heads[] = { "part",       "prediction by", "#MAE",       "#RMSE", "#90 % within",
                                            "#R\xc2\xb2", "#Spearman",     "#molecules", NULL };
static const char *const class_heads[] = { "part",     "prediction by", "#ROC-AUC",   "#PR-AUC", "#EF 1 %",
                                           "#at most", "#EF 5 %",       "#at most",   "#BEDROC", "#log loss",
                                           "#Brier",   "#of class 1",   "#molecules", NULL };
static const measures of_number = { number_heads,
                                    { ST_ERROR_mae, ST_ERROR_rmse, ST_ERROR_interval90, ST_ERROR_r2, ST_ERROR_spearman, -1 } };
static const measures of_class = { class_heads,
                                   { ST_ERROR_ROC_AUC, ST_ERROR_ROC_AUC + 1, ST_ERROR_ROC_AUC + 2, ST_ERROR_ROC_AUC + 3,
                                     ST_ERROR_ROC_AUC + 4, ST_ERROR_ROC_AUC + 5, ST_ERROR_ROC_AUC + 6, ST_ERROR_log_loss,
                                     ST_ERROR_brier, ST_ERROR_ROC_AUC + 7, -1 } };

typedef struct errors_row {
    char part[40], who[40];
    double v[ST_ERROR_KINDS];
    long long n;
} errors_row;

static errors_row row_begin(const char *part, const char *who, long long n)
{
    errors_row row = { .n = n };

    (void)snprintf(row.part, sizeof row.part, "%s", part);
    (void)snprintf(row.who, sizeof row.who, "%s", who);
    for (int k = 0; k < ST_ERROR_KINDS; k++)
        row.v[k] = NAN;
    return row;
}

static void add_error_row(st_report *r, const measures *m, const errors_row *row)
{
    pl_text_add(r->out, "<tr><th scope=\"row\">");
    st_html_cut(r->out, row->part, 40);
    pl_text_add(r->out, "</th><td>");
    st_html_cut(r->out, row->who, 40);
    pl_text_add(r->out, "</td>");
    for (int k = 0; m->kind[k] >= 0; k++) {
        pl_text_add(r->out, "<td class=\"n\">");
        if (isfinite(row->v[m->kind[k]]))
            st_html_real(r->out, row->v[m->kind[k]], 4);
        pl_text_add(r->out, "</td>");
    }
    pl_text_add(r->out, "<td class=\"n\">");
    st_html_count(r->out, row->n);
    pl_text_add(r->out, "</td></tr>\n");
}

/* Says so where a simple prediction is as good. */
static void add_verdict(st_report *r, const st_verdict *v, const char *part, const char *unit)
{
    pl_text text = { 0 };

    st_verdict_add(&text, v, part, unit);
    if (text.len > 0) {
        pl_text_add(r->out, "<p class=\"warn\">");
        st_html_cut(r->out, pl_text_str(&text), TEXT_MAX);
        pl_text_add(r->out, "</p>\n");
    }
    pl_text_free(&text);
}

/* Judges by the part that is most representative of new molecules: new, else test, else valid; an ensemble by its mean. */
static void add_found_verdict(st_report *r, int64_t model_id, int64_t property_id, bool classes)
{
    const char *metric = classes ? "roc_auc" : "mae", *part = NULL, *unit = "";
    st_verdict v = st_verdict_of(classes, NAN);

    for (
        sqlite3_stmt *st = st_report_query(
            r,
            "SELECT part, coalesce(unit,''), value, substr(metric,1,instr(metric,'.')-1) FROM evaluation WHERE model_id=%lld AND "
            "property_id=%lld AND (metric=%Q OR metric LIKE '%%.%q') AND part=(SELECT min(part) FROM evaluation WHERE model_id=%lld AND "
            "property_id=%lld AND part IN('new','test','valid')) ORDER BY metric<>%Q, metric",
            (long long)model_id, (long long)property_id, metric, metric, (long long)model_id, (long long)property_id, metric);
        st_report_row(r, &st);) {
        const char *who = st_report_copy(r, st_column(st, 3));
        if (part == NULL) {
            part = st_report_copy(r, st_column(st, 0));
            unit = st_report_copy(r, st_column(st, 1));
        }
        if (!who[0] || strcmp(who, "ensemble") == 0)
            v.model = sqlite3_column_double(st, 2);
        else if (st_verdict_counts(who))
            st_verdict_compare(&v, who, sqlite3_column_double(st, 2));
    }
    if (part != NULL)
        add_verdict(r, &v, part, unit);
}

/* The errors stored by the stage `evaluate`: a row here combines several rows of the database. */
static void add_errors(st_report *r, int64_t model_id, int64_t property_id, const measures *m)
{
    errors_row row = { .n = -1 };

    st_report_table(r, "",
                    m == &of_class
                        ? "How well the classes are separated, compared with simple predictions made from the same training "
                          "molecules. "
                          "EF: enrichment of class 1 among the most probable."
                        : "Errors in the unit of the property, compared with those of simple predictions made from the same "
                          "training molecules.");
    st_report_heads(r, m->heads);
    for (
        sqlite3_stmt *st = st_report_query(
            r,
            "SELECT part, CASE WHEN instr(metric,'.') THEN substr(metric,1,instr(metric,'.')-1) ELSE 'the model' END AS who, "
            "substr(metric,instr(metric,'.')+1), value, n FROM evaluation WHERE model_id=%lld AND property_id=%lld AND metric NOT LIKE "
            "'%%.similarity%%' AND metric NOT LIKE '%%.domain %%' AND metric NOT LIKE 'coverage90%%' ORDER BY part, who<>'the model', instr('ensemble mean composition descriptors neighbours',who), who",
            (long long)model_id, (long long)property_id);
        st_report_row(r, &st);) {
        if (row.n >= 0 && (strcmp(row.part, st_column(st, 0)) != 0 || strcmp(row.who, st_column(st, 1)) != 0)) {
            add_error_row(r, m, &row);
            row.n = -1;
        }
        if (row.n < 0)
            row = row_begin(st_column(st, 0), st_column(st, 1), (long long)sqlite3_column_int64(st, 4));
        for (int k = 0; k < ST_ERROR_KINDS; k++)
            if (strcmp(st_column(st, 2), st_error_name(k)) == 0)
                row.v[k] = sqlite3_column_double(st, 3);
    }
    if (row.n >= 0)
        add_error_row(r, m, &row);
    st_report_table_end(r);
}

/* Where the model holds: coverage of its intervals, errors inside and outside of its domain and by similarity. */
static void add_by_domain(st_report *r, int64_t model_id, int64_t property_id)
{
    static const char *const heads[] = { "part", "measure", "#value", "unit", "#molecules", NULL };
    static const char of[] =
        "FROM evaluation WHERE model_id=%lld AND property_id=%lld AND part<>'train' AND (metric LIKE 'coverage90%%' OR metric "
        "LIKE '%%.domain %%' OR metric LIKE 'mae.similarity%%')";
    char sql[400];

    (void)snprintf(sql, sizeof sql, "SELECT EXISTS(SELECT 1 %s)", of);
    if (!st_report_int(r, sql, (long long)model_id, (long long)property_id))
        return;
    st_report_table(
        r, "",
        "Coverage of interval90 (nominal: 0.9 inside of the domain; there is none outside), and errors by domain and similarity.");
    st_report_heads(r, heads);
    (void)snprintf(sql, sizeof sql, "SELECT part, metric, value, coalesce(unit,''), n %s ORDER BY part, metric", of);
    for (sqlite3_stmt *st = st_report_query(r, sql, (long long)model_id, (long long)property_id); st_report_row(r, &st);) {
        pl_text_add(r->out, "<tr>");
        for (int i = 0; i < 5; i++)
            st_report_cell(r, st, i);
        pl_text_add(r->out, "</tr>\n");
    }
    st_report_table_end(r);
}

static void add_known_row(st_report *r, const measures *m, const char *part, const char *who, const json_t *e)
{
    errors_row row = row_begin(part, who, json_integer_value(json_object_get(e, "n")));

    for (int k = 0; k < ST_ERROR_KINDS; k++) {
        const json_t *value = json_object_get(e, st_error_name(k));
        row.v[k] = json_is_number(value) ? json_number_value(value) : NAN;
    }
    add_error_row(r, m, &row);
}

/* Adds the held-out errors in the file of the model. */
static void add_known_errors(st_report *r, const json_t *errors, const measures *m, const char *unit)
{
    const char *part, *who;
    json_t *e, *base;
    st_trust trust;

    if (json_object_size(errors) == 0)
        return;
    st_report_table(r, "",
                    "Held-out errors when it was trained, from the file of the model, compared with those of simple predictions.");
    st_report_heads(r, m->heads);
    json_object_foreach((json_t *)errors, part, e) {
        add_known_row(r, m, part, "the model", e);
        json_object_foreach(json_object_get(e, "components"), who, base)
            add_known_row(r, m, part, who, base);
        json_object_foreach(json_object_get(e, "baselines"), who, base)
            add_known_row(r, m, part, who, base);
    }
    st_report_table_end(r);
    part = json_object_get(errors, "test") != NULL ? "test" : "valid";
    trust = st_trust_new(m == &of_class);
    st_trust_take(&trust, json_object_get(json_object_get(errors, part), "domain"));
    st_report_trust(r, &trust, part, unit);
}

/* ---- predicted against measured ---- */

static bool set_scale(st_report *r, st_parity *p, int64_t model, int64_t property, const char *part)
{
    bool any = false;

    for (sqlite3_stmt *st = st_report_query(r,
                                            "SELECT min(min(measured,predicted)), max(max(measured,predicted)) FROM evaluated "
                                            "WHERE model_id=%lld AND property_id=%lld AND part=%Q",
                                            (long long)model, (long long)property, part);
         st_report_row(r, &st);) {
        double lo = sqlite3_column_double(st, 0), hi = sqlite3_column_double(st, 1);
        any = sqlite3_column_type(st, 0) != SQLITE_NULL && isfinite(hi - lo); /* else there is no scale for them */
        if (any)
            p->scale = st_scale_nice(lo, hi, 6);
    }
    return any;
}

static void add_parity(st_report *r, int64_t model, int64_t property, sqlite3_stmt *names)
{
    st_parity *p = PL_NEW(r->mem, st_parity, 1);
    const char *part = st_column(names, 2);

    if (p == NULL) {
        r->code = pl_fail(r->err, PL_ENOMEM, "the report");
        return;
    }
    p->name = st_column(names, 0);
    p->unit = st_column(names, 1);
    if (!set_scale(r, p, model, property, part))
        return;
    for (sqlite3_stmt *st = st_report_query(r,
                                            "SELECT measured, predicted FROM evaluated WHERE model_id=%lld AND property_id=%lld "
                                            "AND part=%Q",
                                            (long long)model, (long long)property, part);
         st_report_row(r, &st);)
        st_parity_put(p, sqlite3_column_double(st, 0), sqlite3_column_double(st, 1));
    pl_text_add(r->out, "<figure>");
    st_plot_parity(r->out, p);
    pl_text_add(r->out, "<figcaption>Part ");
    st_html_cut(r->out, part, 40);
    pl_text_addf(r->out, ", %lld molecules; on the dashed line a prediction is exact.</figcaption></figure>\n", (long long)p->n);
}

static void add_worst(st_report *r, int64_t model, int64_t property)
{
    static const char *const heads[] = { "part", "structure", "title", "#measured", "#predicted", "#error", "unit", NULL };

    st_report_table(r, "mid", "The largest errors outside the training part: check these molecules first.");
    st_report_heads(r, heads);
    for (
        sqlite3_stmt *st = st_report_query(
            r,
            "SELECT e.part, m.smiles, (SELECT title FROM record r WHERE r.mol_id=m.mol_id ORDER BY r.record_id LIMIT 1), e.measured, e.predicted, "
            "e.predicted-e.measured, p.unit FROM evaluated e JOIN molecule m USING(mol_id) JOIN property p USING(property_id) "
            "WHERE e.model_id=%lld AND e.property_id=%lld AND e.part<>'train' ORDER BY abs(e.predicted-e.measured) DESC, e.mol_id LIMIT %d",
            (long long)model, (long long)property, N_WORST);
        st_report_row(r, &st);) {
        pl_text_add(r->out, "<tr>");
        for (int i = 0; i < 7; i++)
            if (i == 1)
                st_report_structure(r, st_column(st, 1));
            else
                st_report_cell(r, st, i);
        pl_text_add(r->out, "</tr>\n");
    }
    st_report_table_end(r);
}

static void add_evaluated(st_report *r, int64_t model, int64_t property, bool classes)
{
    if (!st_report_int(r, "SELECT EXISTS(SELECT 1 FROM evaluated WHERE model_id=%lld AND property_id=%lld)", (long long)model,
                       (long long)property))
        return;
    pl_text_add(r->out, "<div class=\"figs\">\n");
    for (sqlite3_stmt *st =
             st_report_query(r,
                             "SELECT DISTINCT p.name, p.unit, e.part FROM evaluated e JOIN property p USING(property_id) "
                             "WHERE model_id=%lld AND property_id=%lld ORDER BY 3",
                             (long long)model, (long long)property);
         st_report_row(r, &st);)
        if (classes)
            st_report_roc(r, model, property, st_column(st, 2));
        else
            add_parity(r, model, property, st);
    pl_text_add(r->out, "</div>\n");
    if (classes)
        st_report_calibration(r, model, property);
    if (st_report_int(r, "SELECT EXISTS(SELECT 1 FROM evaluated WHERE model_id=%lld AND property_id=%lld AND part<>'train')",
                      (long long)model, (long long)property))
        add_worst(r, model, property);
    st_report_similarity(r, model, property);
}

static void add_title(st_report *r, const char *name)
{
    pl_text_add(r->out, "<h4>");
    st_html_cut(r->out, name, 200);
    pl_text_add(r->out, "</h4>\n");
}

/* Adds the errors that this run measured, property by property. */
static void add_found(st_report *r, int64_t model, bool classes)
{
    int64_t n = st_report_int(r, "SELECT count(DISTINCT property_id) FROM evaluation WHERE model_id=%lld", (long long)model);

    for (sqlite3_stmt *st =
             st_report_query(r,
                             "SELECT DISTINCT p.property_id, p.name FROM evaluation JOIN property p USING(property_id) "
                             "WHERE model_id=%lld ORDER BY 1",
                             (long long)model);
         st_report_row(r, &st);) {
        if (n > 1)
            add_title(r, st_column(st, 1));
        add_errors(r, model, sqlite3_column_int64(st, 0), classes ? &of_class : &of_number);
        add_found_verdict(r, model, sqlite3_column_int64(st, 0), classes);
        st_report_trust_found(r, model, sqlite3_column_int64(st, 0), classes);
        add_by_domain(r, model, sqlite3_column_int64(st, 0));
        add_evaluated(r, model, sqlite3_column_int64(st, 0), classes);
    }
}

/* Adds the errors in the model file; if there are several targets, under their names. */
static void add_told(st_report *r, const json_t *m)
{
    const json_t *errors = json_object_get(json_object_get(m, "provenance"), "errors"), *one;
    const json_t *targets = json_object_get(json_object_get(m, "target"), "targets");
    const measures *how = st_meta_is_class(m) ? &of_class : &of_number;
    size_t k;

    if (targets == NULL)
        add_known_errors(r, errors, how, st_meta_word(json_object_get(m, "target"), "unit"));
    json_array_foreach(targets, k, one) {
        if (json_array_size(targets) > 1)
            add_title(r, st_meta_word(one, "name"));
        add_known_errors(r, json_array_size(targets) > 1 ? json_object_get(errors, st_meta_word(one, "name")) : errors, how,
                         st_meta_word(one, "unit"));
    }
}

/* ---- how it was learned ---- */

static st_curve read_curve(st_report *r, const char *stage, const char *name, const char *split)
{
    int64_t n = st_report_int(r, "SELECT count(*) FROM metric WHERE stage=%Q AND name=%Q AND split=%Q", stage, name, split);
    double *x, *y;
    st_curve c = { .name = split };

    n = n < POINTS_MAX ? n : POINTS_MAX;
    x = PL_NEW(r->mem, double, n + 1);
    y = PL_NEW(r->mem, double, n + 1);
    if (r->code == PL_OK && (x == NULL || y == NULL))
        r->code = pl_fail(r->err, PL_ENOMEM, "the report");
    if (r->code != PL_OK)
        return c;
    for (sqlite3_stmt *st = st_report_query(r,
                                            "SELECT coalesce(epoch,step), value FROM metric WHERE stage=%Q AND name=%Q AND "
                                            "split=%Q ORDER BY 1, step LIMIT %lld",
                                            stage, name, split, (long long)n);
         st_report_row(r, &st); c.n++) {
        x[c.n] = sqlite3_column_double(st, 0);
        y[c.n] = sqlite3_column_double(st, 1);
    }
    c.x = x;
    c.y = y;
    return c;
}

/* " of gap / eV" if one property was learned, else "". */
static const char *what_was_learned(st_report *r)
{
    const char *words = "";

    for (sqlite3_stmt *st =
             st_report_query(r, "SELECT min(p.name), min(p.unit) FROM property p WHERE property_id IN (SELECT property_id "
                                "FROM evaluation) HAVING count(*)=1");
         st_report_row(r, &st);)
        words = pl_sprintf(r->mem, " of %s%s%s", st_column(st, 0), st_column(st, 1)[0] ? " / " : "", st_column(st, 1));
    return st_report_text(r, words, "what was learned");
}

static void add_curves(st_report *r, const char *stage)
{
    static const char *const metrics[][2] = { { "loss", "loss" },
                                              { "mae", "mean absolute error" },
                                              { "brier", "Brier score" },
                                              { "noise_loss", "loss of the noise" },
                                              { "lr", "learning rate" } };
    static const char *const splits[] = { "train", "valid", "test" };

    pl_text_add(r->out, "<div class=\"figs\">\n");
    for (int m = 0; m < 5; m++) {
        st_curve c[3];
        const char *y_name;
        int points = 0;
        for (int k = 0; k < 3; k++) {
            c[k] = read_curve(r, stage, metrics[m][0], splits[k]);
            points += c[k].n;
        }
        if (points == 0)
            continue;
        pl_text_add(r->out, "<figure>");
        y_name = pl_sprintf(r->mem, "%s%s", metrics[m][1], strcmp(metrics[m][0], "mae") == 0 ? what_was_learned(r) : "");
        st_plot_curves(r->out, metrics[m][1], "epoch", st_report_text(r, y_name, "a name"), c, 3);
        pl_text_add(r->out, "</figure>\n");
    }
    pl_text_add(r->out, "</div>\n");
}

static void add_training(st_report *r)
{
    for (sqlite3_stmt *st = st_report_query(r, "SELECT DISTINCT stage FROM metric WHERE stage<>'rank' ORDER BY 1 LIMIT 10");
         st_report_row(r, &st);) {
        pl_text_add(r->out, "<h3>Learning curves: ");
        st_html_cut(r->out, st_column(st, 0), 60);
        pl_text_add(r->out, "</h3>\n");
        if (st_report_int(r, "SELECT EXISTS(SELECT 1 FROM metric WHERE stage=%Q AND name LIKE 'member2.%%')", st_column(st, 0)))
            pl_text_add(
                r->out,
                "<p class=\"note\">Of the first network of the ensemble; the others' are member2.mae and so on in the table "
                "<code>metric</code>.</p>\n");
        add_curves(r, st_column(st, 0));
    }
}

static void add_model(st_report *r, sqlite3_stmt *st)
{
    int64_t id = sqlite3_column_int64(st, 0);
    json_t *m = json_loads(st_column(st, 3), 0, NULL);

    pl_text_add(r->out, "<h3>");
    st_html_cut(r->out, st_column(st, 1), 100);
    pl_text_add(r->out, "</h3>\n");
    st_report_table(r, "", "");
    pl_text_add(r->out, "<tbody>\n");
    st_report_facts(r, m, st_column(st, 2));
    st_report_table_end(r);
    if (st_report_int(r, "SELECT EXISTS(SELECT 1 FROM evaluation WHERE model_id=%lld)", (long long)id))
        add_found(r, id, st_meta_is_class(m));
    else
        add_told(r, m);
    st_report_recipe(r, m);
    json_decref(m);
}

void st_report_models(st_report *r)
{
    int64_t n = st_report_int(r, "SELECT count(*) FROM model");

    if (n > MODELS_MAX)
        pl_text_addf(r->out, "<p class=\"note\">The first %d of %lld.</p>\n", MODELS_MAX, (long long)n);
    for (sqlite3_stmt *st =
             st_report_query(r, "SELECT model_id, name, sha256, metadata_json FROM model ORDER BY model_id LIMIT %d", MODELS_MAX);
         st_report_row(r, &st);)
        add_model(r, st);
    add_training(r);
}
