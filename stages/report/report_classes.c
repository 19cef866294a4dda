/* SPDX-License-Identifier: Apache-2.0 */
/* Classes: ROC curve, calibration of probabilities, and early enrichment of actives in the ranking. */
#include "stages/report/report_parts.h"

#include "models/metrics/enrichment.h"
#include "stages/report/plot.h"

static const double corner[2] = { 0, 1 };
static const st_curve by_chance = { "by chance", corner, corner, 2 };

/* Room for a curve of n points, or none. */
static bool curve_alloc(st_report *r, double **x, double **y, int64_t n)
{
    *x = PL_NEW(r->mem, double, n + 2);
    *y = PL_NEW(r->mem, double, n + 2);
    if (r->code == PL_OK && (*x == NULL || *y == NULL))
        r->code = pl_fail(r->err, PL_ENOMEM, "the report");
    return r->code == PL_OK;
}

static void add_figure(st_report *r, const char *title, const char *x_name, const char *y_name, st_curve c)
{
    const st_curve both[] = { c, by_chance };

    pl_text_add(r->out, "<figure>");
    st_plot_shares(r->out, title, x_name, y_name, both, 2);
}

/* ---- a classifier ---- */

/* One point for each different probability, from (0, 0) to (1, 1). */
static void add_roc(st_report *r, const char *part, const char *of)
{
    int64_t n = st_report_int(r, "SELECT count(*) FROM evaluated WHERE %s", of);
    int64_t actives = st_report_int(r, "SELECT sum(measured) FROM evaluated WHERE %s", of);
    double *x, *y, hits = 0, misses = 0;
    const char *title;
    st_curve c = { .name = "the model" };

    if (actives == 0 || actives == n || !curve_alloc(r, &x, &y, n))
        return;
    x[0] = y[0] = 0;
    c.n = 1;
    for (sqlite3_stmt *st =
             st_report_query(r,
                             "SELECT sum(measured), count(*)-sum(measured) FROM evaluated WHERE %s GROUP BY predicted "
                             "ORDER BY predicted DESC",
                             of);
         st_report_row(r, &st); c.n++) {
        hits += sqlite3_column_double(st, 0);
        misses += sqlite3_column_double(st, 1);
        x[c.n] = misses / (double)(n - actives);
        y[c.n] = hits / (double)actives;
    }
    c.x = x;
    c.y = y;
    title = pl_sprintf(r->mem, "ROC curve, part %s", part);
    add_figure(r, st_report_text(r, title, "a name"), "false positive rate", "true positive rate", c);
    pl_text_add(r->out, "<figcaption>ROC curve, part ");
    st_html_cut(r->out, part, 40);
    pl_text_addf(r->out, ", %lld molecules, %lld of class 1: from the most probable on.</figcaption></figure>\n", (long long)n,
                 (long long)actives);
}

void st_report_roc(st_report *r, int64_t model, int64_t property, const char *part)
{
    char *of = sqlite3_mprintf("model_id=%lld AND property_id=%lld AND part=%Q", (long long)model, (long long)property, part);

    if (of == NULL && r->code == PL_OK)
        r->code = pl_fail(r->err, PL_ENOMEM, "the report");
    if (of != NULL)
        add_roc(r, part, of);
    sqlite3_free(of);
}

void st_report_calibration(st_report *r, int64_t model, int64_t property)
{
    static const char *const heads[] = { "part", "predicted probability", "#molecules", "#mean prediction", "#share of class 1",
                                         NULL };

    st_report_table(r, "mid", "Calibration: of the molecules with a probability of 0.7 seven in ten should be of class 1.");
    st_report_heads(r, heads);
    for (sqlite3_stmt *st = st_report_query(
             r,
             "SELECT part, min(9,cast(predicted*10 AS INTEGER)) AS bin, count(*), avg(predicted), "
             "avg(measured) FROM evaluated WHERE model_id=%lld AND property_id=%lld GROUP BY part, bin ORDER BY part, bin",
             (long long)model, (long long)property);
         st_report_row(r, &st);) {
        int bin = sqlite3_column_int(st, 1);
        pl_text_add(r->out, "<tr>");
        st_report_cell(r, st, 0);
        pl_text_addf(r->out, "<td>%.1f to %.1f</td>", bin / 10.0, (bin + 1) / 10.0);
        for (int i = 2; i < 5; i++)
            st_report_cell(r, st, i);
        pl_text_add(r->out, "</tr>\n");
    }
    st_report_table_end(r);
}

/* ---- a ranking ---- */

static double measured(st_report *r, const char *name)
{
    double value = 0;

    for (sqlite3_stmt *st =
             st_report_query(r, "SELECT value FROM metric WHERE stage='rank' AND split='ranking' AND name=%Q AND step=0", name);
         st_report_row(r, &st);)
        value = sqlite3_column_double(st, 0);
    return value;
}

static void add_measure(st_report *r, const char *name, const char *key, double chance, double max)
{
    const double value[] = { measured(r, key), chance, max };

    pl_text_addf(r->out, "<tr><th scope=\"row\">%s</th>", name);
    for (int i = 0; i < 3; i++) {
        pl_text_add(r->out, "<td class=\"n\">");
        st_html_real(r->out, value[i], 4);
        pl_text_add(r->out, "</td>");
    }
    pl_text_add(r->out, "</tr>\n");
}

static void add_found(st_report *r, double candidates)
{
    int64_t n = st_report_int(r, "SELECT count(*) FROM metric WHERE stage='rank' AND name='found'");
    double *x, *y;
    st_curve c = { .name = "the ranking" };

    if (!curve_alloc(r, &x, &y, n))
        return;
    for (sqlite3_stmt *st = st_report_query(r, "SELECT step, value FROM metric WHERE stage='rank' AND name='found' ORDER BY step");
         st_report_row(r, &st) && c.n < n; c.n++) {
        x[c.n] = sqlite3_column_double(st, 0) / candidates;
        y[c.n] = sqlite3_column_double(st, 1);
    }
    c.x = x;
    c.y = y;
    add_figure(r, "enrichment curve", "fraction of the ranked candidates", "fraction of the actives found", c);
    pl_text_add(r->out, "</figure>\n");
}

void st_report_retrieval(st_report *r)
{
    static const char *const heads[] = { "measure", "#this ranking", "#by chance", "#at most", NULL };
    const double candidates = measured(r, "candidates"), actives = measured(r, "actives");
    const nn_enrichment chance = nn_enrichment_of(&(nn_tie){ 0, (int64_t)candidates, (int64_t)actives }, 1, (int64_t)candidates);

    if (!(actives > 0))
        return;
    pl_text_addf(
        r->out,
        "<h3>Early enrichment of known actives</h3>\n<p class=\"note\">Of %.0f candidates %.0f are known to be active; %.0f have no "
        "label and count as not active.</p>\n",
        candidates, actives, measured(r, "unlabelled"));
    st_report_table(r, "mid", "Over all candidates, not only the ranked ones; candidates of the same value share their ranks.");
    st_report_heads(r, heads);
    add_measure(r, "ROC-AUC", "roc_auc", chance.roc_auc, 1);
    add_measure(r, "average precision", "pr_auc", chance.pr_auc, 1);
    add_measure(r, "enrichment in the first 1 %", "ef1", chance.ef1, chance.ef1_max);
    add_measure(r, "enrichment in the first 5 %", "ef5", chance.ef5, chance.ef5_max);
    add_measure(r, "BEDROC, alpha 20", "bedroc20", chance.bedroc20, 1);
    st_report_table_end(r);
    pl_text_add(r->out, "<div class=\"figs\">\n");
    add_found(r, candidates);
    pl_text_add(r->out, "</div>\n");
}
