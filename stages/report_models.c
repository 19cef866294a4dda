/* SPDX-License-Identifier: Apache-2.0 */
/* Models: what they are, how they were trained, how wrong they are. */
#include "stages/report_parts.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "stages/errors.h"
#include "stages/plot.h"

enum { N_WORST = 8, POINTS_MAX = 100000, FACT_MAX = 600, MODELS_MAX = 20 }; /* FACT_MAX: characters */

/* ---- what a model is: from the metadata of its file ---- */

static void add_fact(st_report *r, const char *what, const char *text)
{
    if (text == NULL && r->code == PL_OK)
        r->code = pl_fail(r->err, PL_ENOMEM, "the report");
    if (text == NULL || text[0] == '\0')
        return;
    pl_text_addf(r->out, "<tr><th scope=\"row\">%s</th><td>", what);
    st_html_cut(r->out, text, FACT_MAX);
    pl_text_add(r->out, "</td></tr>\n");
}

static const char *word(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

static long long number(const json_t *o, const char *key) { return json_integer_value(json_object_get(o, key)); }

/* The strings of a list, or one member of its objects: as many as are shown. */
static const char *join(st_report *r, const json_t *list, const char *member)
{
    const json_t *one;
    const char *copy;
    pl_text all = { 0 };
    size_t k;

    json_array_foreach(list, k, one) {
        const char *s = member ? word(one, member) : json_string_value(one);
        if (all.len > 4 * FACT_MAX)
            break;
        pl_text_addf(&all, "%s%s", k ? " " : "", s ? s : "?");
    }
    copy = pl_text_ok(&all) ? pl_strdup(r->mem, pl_text_str(&all)) : NULL;
    pl_text_free(&all);
    return copy;
}

static void add_facts(st_report *r, const json_t *m, const char *sha256)
{
    const json_t *target = json_object_get(m, "target"), *net = json_object_get(m, "model"), *p = json_object_get(m, "provenance");
    const json_t *t = json_object_get(p, "training");
    const char *better = word(target, "better"), *unit = word(target, "unit");

    add_fact(r, "predicts", pl_sprintf(r->mem, "%s%s%s%s%s%s", word(target, "name"), unit[0] ? ", " : "", unit,
                                       strcmp(better, "none") ? ", " : "", strcmp(better, "none") ? better : "",
                                       strcmp(better, "none") ? " is better" : ""));
    add_fact(r, "network", pl_sprintf(r->mem, "SE(3)-Transformer, %lld layers, %lld degrees, %lld channels, %lld heads; %lld parameters",
                                      number(net, "layers"), number(net, "degrees"), number(net, "channels"), number(net, "heads"),
                                      number(t, "parameters")));
    add_fact(r, "graph", word(json_object_get(m, "graph"), "edges"));
    add_fact(r, "elements", join(r, json_object_get(json_object_get(m, "inputs"), "elements"), NULL));
    if (t != NULL)
        add_fact(r, "trained", pl_sprintf(r->mem, "%s, %lld molecules, %lld epochs, the best was %lld; %lld steps, seed %lld", word(p, "date"),
                                          number(t, "molecules"), number(t, "epochs"), number(t, "best_epoch"), number(t, "steps"),
                                          number(p, "seed")));
    add_fact(r, "data", join(r, json_object_get(p, "data"), "file"));
    add_fact(r, "SHA-256 of the file", sha256);
}

static void add_recipe(st_report *r, const json_t *metadata)
{
    char *text = json_dumps(json_object_get(metadata, "provenance"), JSON_INDENT(1) | JSON_REAL_PRECISION(9));

    if (text == NULL)
        return;
    pl_text_add(r->out, "<details><summary>Training recipe and provenance</summary><pre>");
    st_html_cut(r->out, text, 20000);
    pl_text_add(r->out, "</pre></details>\n");
    free(text);
}

/* ---- errors beside those of trivial predictions ---- */

static void add_error_cells(st_report *r, const char *part, const char *who, const double v[ST_ERROR_KINDS], long long n)
{
    pl_text_add(r->out, "<tr><th scope=\"row\">");
    st_html_cut(r->out, part, 40);
    pl_text_add(r->out, "</th><td>");
    st_html_cut(r->out, who, 40);
    pl_text_add(r->out, "</td>");
    for (int k = 0; k < ST_ERROR_KINDS; k++) {
        pl_text_add(r->out, "<td class=\"n\">");
        if (isfinite(v[k]))
            st_html_real(r->out, v[k], 4);
        pl_text_add(r->out, "</td>");
    }
    pl_text_add(r->out, "<td class=\"n\">");
    st_html_count(r->out, n);
    pl_text_add(r->out, "</td></tr>\n");
}

static void begin_errors(st_report *r, const char *from)
{
    static const char *const heads[] = { "part", "prediction by", "#MAE", "#RMSE", "#90 % within", "#R\xc2\xb2", "#Spearman", "#molecules", NULL };

    st_report_table(r, "", from);
    st_report_heads(r, heads);
}

/* As the stage `evaluate` stored them. */
static void add_errors(st_report *r, int64_t model_id)
{
    begin_errors(r, "Errors in the unit of the property, beside those of trivial predictions made from the same training molecules.");
    for (sqlite3_stmt *st = st_report_query(r,
             "SELECT part, CASE WHEN instr(metric,'.') THEN substr(metric,1,instr(metric,'.')-1) ELSE 'the model' END AS who, "
             "max(CASE WHEN metric='mae' OR metric LIKE '%%.mae' THEN value END), "
             "max(CASE WHEN metric='rmse' OR metric LIKE '%%.rmse' THEN value END), "
             "max(CASE WHEN metric='interval90' OR metric LIKE '%%.interval90' THEN value END), "
             "max(CASE WHEN metric='r2' OR metric LIKE '%%.r2' THEN value END), "
             "max(CASE WHEN metric='spearman' OR metric LIKE '%%.spearman' THEN value END), max(n) FROM evaluation "
             "WHERE model_id=%lld AND metric NOT LIKE '%%.similarity%%' GROUP BY property_id, part, who ORDER BY property_id, part, who<>'the model', 3 DESC", (long long)model_id);
         st_report_row(r, &st);) {
        double v[ST_ERROR_KINDS];
        for (int k = 0; k < ST_ERROR_KINDS; k++)
            v[k] = sqlite3_column_type(st, k + 2) == SQLITE_NULL ? NAN : sqlite3_column_double(st, k + 2);
        add_error_cells(r, st_column(st, 0), st_column(st, 1), v, (long long)sqlite3_column_int64(st, 7));
    }
    st_report_table_end(r);
}

static void add_known_row(st_report *r, const char *part, const char *who, const json_t *e, long long n)
{
    double v[ST_ERROR_KINDS];

    for (int k = 0; k < ST_ERROR_KINDS; k++) {
        const json_t *value = json_object_get(e, st_error_name(k));
        v[k] = json_is_number(value) ? json_number_value(value) : NAN;
    }
    add_error_cells(r, part, who, v, n);
}

/* As the file of the model tells them. */
static void add_known_errors(st_report *r, const json_t *errors)
{
    const char *part, *who;
    json_t *e, *base;

    if (json_object_size(errors) == 0)
        return;
    begin_errors(r, "Held-out errors when it was trained, from the file of the model, beside those of trivial predictions.");
    json_object_foreach((json_t *)errors, part, e) {
        add_known_row(r, part, "the model", e, number(e, "n"));
        json_object_foreach(json_object_get(e, "baselines"), who, base)
            add_known_row(r, part, who, base, number(base, "n"));
    }
    st_report_table_end(r);
}

/* ---- predicted against measured ---- */

static bool set_scale(st_report *r, st_parity *p, int64_t model, int64_t property, const char *part)
{
    bool any = false;

    for (sqlite3_stmt *st = st_report_query(r, "SELECT min(min(measured,predicted)), max(max(measured,predicted)) FROM evaluated "
                                            "WHERE model_id=%lld AND property_id=%lld AND part=%Q", (long long)model,
                                            (long long)property, part); st_report_row(r, &st);) {
        any = sqlite3_column_type(st, 0) != SQLITE_NULL;
        if (any)
            p->scale = st_scale_nice(sqlite3_column_double(st, 0), sqlite3_column_double(st, 1), 6);
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
    for (sqlite3_stmt *st = st_report_query(r, "SELECT measured, predicted FROM evaluated WHERE model_id=%lld AND property_id=%lld "
                                            "AND part=%Q", (long long)model, (long long)property, part); st_report_row(r, &st);)
        st_parity_put(p, sqlite3_column_double(st, 0), sqlite3_column_double(st, 1));
    pl_text_add(r->out, "<figure>");
    st_plot_parity(r->out, p);
    pl_text_add(r->out, "<figcaption>Part ");
    st_html_cut(r->out, part, 40);
    pl_text_addf(r->out, ", %lld molecules; on the dashed line a prediction is exact.</figcaption></figure>\n", (long long)p->n);
}

static void add_worst(st_report *r, int64_t model)
{
    static const char *const heads[] = { "part", "structure", "title", "#measured", "#predicted", "#error", "unit", NULL };

    st_report_table(r, "mid", "The largest errors outside the training part: look at these first.");
    st_report_heads(r, heads);
    for (sqlite3_stmt *st = st_report_query(r,
             "SELECT e.part, m.smiles, (SELECT title FROM record WHERE record.mol_id=m.mol_id LIMIT 1), e.measured, e.predicted, "
             "e.predicted-e.measured, p.unit FROM evaluated e JOIN molecule m USING(mol_id) JOIN property p USING(property_id) "
             "WHERE e.model_id=%lld AND e.part<>'train' ORDER BY abs(e.predicted-e.measured) DESC, e.mol_id LIMIT %d",
             (long long)model, N_WORST); st_report_row(r, &st);) {
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

static void add_evaluated(st_report *r, int64_t model)
{
    if (!st_report_int(r, "SELECT EXISTS(SELECT 1 FROM evaluated WHERE model_id=%lld)", (long long)model))
        return;
    pl_text_add(r->out, "<div class=\"figs\">\n");
    for (sqlite3_stmt *st = st_report_query(r, "SELECT DISTINCT p.name, p.unit, e.part, p.property_id FROM evaluated e "
                                            "JOIN property p USING(property_id) WHERE model_id=%lld ORDER BY 1, 3", (long long)model);
         st_report_row(r, &st);)
        add_parity(r, model, sqlite3_column_int64(st, 3), st);
    pl_text_add(r->out, "</div>\n");
    if (st_report_int(r, "SELECT EXISTS(SELECT 1 FROM evaluated WHERE model_id=%lld AND part<>'train')", (long long)model))
        add_worst(r, model);
    st_report_similarity(r, model);
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
    for (sqlite3_stmt *st = st_report_query(r, "SELECT coalesce(epoch,step), value FROM metric WHERE stage=%Q AND name=%Q AND "
                                            "split=%Q ORDER BY 1, step LIMIT %lld", stage, name, split, (long long)n);
         st_report_row(r, &st); c.n++) {
        x[c.n] = sqlite3_column_double(st, 0);
        y[c.n] = sqlite3_column_double(st, 1);
    }
    c.x = x;
    c.y = y;
    return c;
}

static void add_curves(st_report *r, const char *stage)
{
    static const char *const metrics[][2] = { { "loss", "loss" }, { "mae", "mean absolute error" }, { "lr", "learning rate" } };
    static const char *const splits[] = { "train", "valid", "test" };

    pl_text_add(r->out, "<div class=\"figs\">\n");
    for (int m = 0; m < 3; m++) {
        st_curve c[3];
        int points = 0;
        for (int k = 0; k < 3; k++) {
            c[k] = read_curve(r, stage, metrics[m][0], splits[k]);
            points += c[k].n;
        }
        if (points == 0)
            continue;
        pl_text_add(r->out, "<figure>");
        st_plot_curves(r->out, metrics[m][1], "epoch", metrics[m][1], c, 3);
        pl_text_add(r->out, "</figure>\n");
    }
    pl_text_add(r->out, "</div>\n");
}

static void add_training(st_report *r)
{
    for (sqlite3_stmt *st = st_report_query(r, "SELECT DISTINCT stage FROM metric ORDER BY 1 LIMIT 10"); st_report_row(r, &st);) {
        pl_text_add(r->out, "<h3>Learning curves: ");
        st_html_cut(r->out, st_column(st, 0), 60);
        pl_text_add(r->out, "</h3>\n");
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
    add_facts(r, m, st_column(st, 2));
    st_report_table_end(r);
    if (st_report_int(r, "SELECT EXISTS(SELECT 1 FROM evaluation WHERE model_id=%lld)", (long long)id))
        add_errors(r, id);
    else
        add_known_errors(r, json_object_get(json_object_get(m, "provenance"), "errors"));
    add_evaluated(r, id);
    add_recipe(r, m);
    json_decref(m);
}

void st_report_models(st_report *r)
{
    int64_t n = st_report_int(r, "SELECT count(*) FROM model");

    if (n > MODELS_MAX)
        pl_text_addf(r->out, "<p class=\"note\">The first %d of %lld.</p>\n", MODELS_MAX, (long long)n);
    for (sqlite3_stmt *st = st_report_query(r, "SELECT model_id, name, sha256, metadata_json FROM model ORDER BY model_id LIMIT %d",
                                            MODELS_MAX); st_report_row(r, &st);)
        add_model(r, st);
    add_training(r);
}
