/* SPDX-License-Identifier: Apache-2.0 */
/* The rounds of a campaign: what was tried, what was found, whether the predictions held. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stages/report/plot.h"
#include "stages/report/report_parts.h"

enum { POINTS_MAX = 400, BEST = 12 };

typedef struct goal {
    const char *property, *unit;
    bool low, is_class;
} goal;

/* What the choices went by. */
static goal goal_of(st_report *r)
{
    goal g = { .property = "", .unit = "" };

    for (
        sqlite3_stmt *st = st_report_query(
            r,
            "SELECT a.property, coalesce(p.unit,''), coalesce(p.better,'')='low', coalesce(p.task,'')='classification', "
            "coalesce((SELECT params_json LIKE '%%\"goal\":\"minimise\"%%' FROM stage WHERE name='acquire'),0), "
            "coalesce((SELECT params_json LIKE '%%\"goal\":\"maximise\"%%' FROM stage WHERE name='acquire'),0) FROM acquired a LEFT JOIN "
            "property p ON p.name=a.property ORDER BY a.round DESC LIMIT 1");
        st_report_row(r, &st);) {
        g = (goal){ st_report_copy(r, st_column(st, 0)), st_report_copy(r, st_column(st, 1)), sqlite3_column_int(st, 2) != 0,
                    sqlite3_column_int(st, 3) != 0 };
        g.low = (g.low || sqlite3_column_int(st, 4) != 0) && sqlite3_column_int(st, 5) == 0;
    }
    return g;
}

/* Of a class the number of 1 so far, else the best value so far; best NaN: nothing yet. */
static double better(const goal *g, double best, double value)
{
    if (g->is_class && isnan(best))
        best = 0;
    if (g->is_class)
        return best + (value == !g->low);
    if (isnan(best) || (g->low && value < best) || (!g->low && value > best))
        return value;
    return best;
}

/* ---- best so far against molecules tried ---- */

static void add_curve(st_report *r, const goal *g)
{
    const int64_t n = st_report_int(r, "SELECT count(*) FROM acquired WHERE outcome IS NOT NULL");
    double *x = PL_NEW(r->mem, double, n + 1), *y = PL_NEW(r->mem, double, n + 1), best = NAN;
    st_curve c = { .name = g->is_class ? "found" : "best so far", .x = x, .y = y };
    int64_t tried = 0;
    const char *what = g->is_class ? pl_sprintf(r->mem, "%s = %d, found", g->property, g->low ? 0 : 1)
                                   : pl_sprintf(r->mem, "best %s%s%s", g->property, g->unit[0] ? " / " : "", g->unit);

    if (!st_report_has_memory(r, x != NULL && y != NULL && what != NULL ? PL_OK : PL_ENOMEM, "the rounds"))
        return;
    for (sqlite3_stmt *st = st_report_query(r, "SELECT value FROM v_acquired WHERE outcome IS NOT NULL ORDER BY round, place");
         st_report_row(r, &st);) {
        tried++;
        if (sqlite3_column_type(st, 0) == SQLITE_NULL)
            continue;
        best = better(g, best, sqlite3_column_double(st, 0));
        x[c.n] = (double)tried;
        y[c.n++] = best;
    }
    pl_text_add(r->out, "<div class=\"figs\"><figure>");
    st_plot_curves(r->out, what, "molecules tried", what, &c, 1);
    pl_text_add(r->out, "</figure></div>\n");
}

/* ---- round by round ---- */

static void add_cells(st_report *r, sqlite3_stmt *st, const goal *g, int64_t *tried, double *best)
{
    const bool any = sqlite3_column_type(st, 4) != SQLITE_NULL;

    *tried += sqlite3_column_int64(st, 2);
    if (g->is_class)
        *best = (isnan(*best) ? 0 : *best) + sqlite3_column_double(st, 5);
    else if (any)
        *best = better(g, *best, sqlite3_column_double(st, 4));
    pl_text_add(r->out, "<tr>");
    for (int i = 0; i < 4; i++)
        st_report_cell(r, st, i);
    pl_text_add(r->out, "<td class=\"n\">");
    st_html_count(r->out, *tried);
    pl_text_add(r->out, "</td>");
    st_report_cell(r, st, g->is_class ? 5 : 4);
    pl_text_add(r->out, "<td class=\"n\">");
    if (g->is_class)
        st_html_count(r->out, (int64_t)*best);
    else if (isfinite(*best))
        st_html_real(r->out, *best, 4);
    pl_text_add(r->out, "</td>");
    st_report_cell(r, st, 6);
    if (!g->is_class) /* a class has no interval */
        st_report_cell(r, st, 7);
    pl_text_add(r->out, "</tr>\n");
}

static void add_rounds(st_report *r, const goal *g)
{
    const char *const heads[] = { "#round",
                                  "strategy",
                                  "#tried",
                                  "#with a value",
                                  "#tried in all",
                                  g->is_class ? "#found" : "#best of the round",
                                  g->is_class ? "#found in all" : "#best so far",
                                  "#mean absolute error",
                                  g->is_class ? NULL : "#% within the 90 % interval",
                                  NULL };
    const char *end = g->low ? "min" : "max";
    int64_t tried = 0;
    double best = NAN;

    st_report_table(
        r, "",
        g->is_class
            ? "The last column: the predictions by which the round was chosen, against what was measured then."
            : "The last two columns: the predictions by which the round was chosen, against what was measured then. The interval is 1.645 "
              "standard deviations of the prediction on either side; if those hold, 90 % are within.");
    st_report_heads(r, heads);
    for (
        sqlite3_stmt *st = st_report_query(
            r,
            "SELECT round, min(strategy), count(*), count(value), %s(value), sum(value=%d), avg(abs(value-mean)), "
            "100.0*avg(abs(value-mean)<=1.6448536269514722*deviation) FROM v_acquired WHERE outcome IS NOT NULL GROUP BY round ORDER BY round",
            end, g->low ? 0 : 1);
        st_report_row(r, &st);)
        add_cells(r, st, g, &tried, &best);
    st_report_table_end(r);
}

/* ---- the best ---- */

static void add_best(st_report *r, const goal *g)
{
    static const char *const heads[] = { "structure", "title",  "#measured",         "#predicted",
                                         "#round",    "#place", "why it was chosen", NULL };

    st_report_table(
        r, "",
        "The best that were found, with the prediction and the reason when they were chosen. All: <code>molsieve query v_acquired</code>.");
    st_report_heads(r, heads);
    for (sqlite3_stmt *st = st_report_query(
             r,
             "SELECT smiles, titles, value, mean, round, place, reason FROM v_acquired WHERE value IS NOT NULL ORDER "
             "BY value %s, round, place LIMIT %d",
             g->low ? "ASC" : "DESC", BEST);
         st_report_row(r, &st);) {
        pl_text_add(r->out, "<tr>");
        st_report_structure(r, st_column(st, 0));
        for (int i = 1; i < 7; i++)
            st_report_cell(r, st, i);
        pl_text_add(r->out, "</tr>\n");
    }
    st_report_table_end(r);
}

void st_report_campaign(st_report *r)
{
    const goal g = goal_of(r);

    add_curve(r, &g);
    add_rounds(r, &g);
    add_best(r, &g);
}
