/* SPDX-License-Identifier: Apache-2.0 */
/* Which component of a model to trust: errors inside and outside of its domain, and the sentence about them. */
#include "stages/report/report_parts.h"

#include <math.h>

static void add_cell(st_report *r, double value)
{
    pl_text_add(r->out, "<td class=\"n\">");
    if (isfinite(value))
        st_html_real(r->out, value, 4);
    pl_text_add(r->out, "</td>");
}

static void add_row(st_report *r, const char *name, double inside, double outside)
{
    if (!isfinite(inside) && !isfinite(outside))
        return;
    pl_text_add(r->out, "<tr><th scope=\"row\">");
    st_html_cut(r->out, name, 40);
    pl_text_add(r->out, "</th>");
    add_cell(r, inside);
    add_cell(r, outside);
    pl_text_add(r->out, "</tr>\n");
}

static void add_sentence(st_report *r, const st_trust *t, const char *part, const char *unit)
{
    pl_text text = { 0 };

    st_trust_sentence(&text, t, part, unit);
    pl_text_add(r->out, "<p>");
    st_html_cut(r->out, pl_text_str(&text), 600);
    pl_text_add(r->out, "</p>\n");
    pl_text_free(&text);
}

void st_report_trust(st_report *r, const st_trust *t, const char *part, const char *unit)
{
    static const char *const heads[] = { "prediction", "#inside", "#outside", NULL };

    if (!st_trust_known(t))
        return;
    st_report_table(
        r, "",
        t->classes ? "Brier score of the mean, of each component and of the nearest neighbours, inside and outside of the domain, "
                     "on the same molecules."
                   : "Mean absolute error of the mean, of each component and of the nearest neighbours, inside and outside of the "
                     "domain, on the same molecules; and the share of measured values within the interval.");
    st_report_heads(r, heads);
    add_row(r, "the mean of the components", t->model[0].error, t->model[1].error);
    for (int k = 0; k < t->n; k++)
        add_row(r, t->component[k].name, t->component[k].side[0].error, t->component[k].side[1].error);
    add_row(r, "nearest neighbours", t->neighbours[0].error, t->neighbours[1].error);
    add_row(r, "within the interval", t->coverage, NAN);
    add_row(r, "molecules", (double)t->model[0].n, (double)t->model[1].n);
    st_report_table_end(r);
    add_sentence(r, t, part, unit);
}

void st_report_trust_found(st_report *r, int64_t model_id, int64_t property_id, bool classes)
{
    st_trust t = st_trust_new(classes);
    const char *part = NULL, *unit = NULL;

    for (
        sqlite3_stmt *st = st_report_query(
            r,
            "SELECT metric, value, n, part, (SELECT unit FROM property WHERE property_id=%lld) FROM evaluation WHERE model_id=%lld "
            "AND property_id=%lld AND (metric='coverage90' OR metric LIKE '%%.domain %%') AND part=(SELECT min(part) FROM evaluation "
            "WHERE model_id=%lld AND property_id=%lld AND part IN('new','test','valid')) ORDER BY metric",
            (long long)property_id, (long long)model_id, (long long)property_id, (long long)model_id, (long long)property_id);
        st_report_row(r, &st);) {
        st_trust_add(&t, st_column(st, 0), sqlite3_column_double(st, 1), sqlite3_column_int64(st, 2));
        part = part != NULL ? part : st_report_copy(r, st_column(st, 3));
        unit = unit != NULL ? unit : st_report_copy(r, st_column(st, 4));
    }
    if (part != NULL)
        st_report_trust(r, &t, part, unit);
}
