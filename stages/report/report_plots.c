/* SPDX-License-Identifier: Apache-2.0 */
/* How scores, labels and descriptors are distributed. */
#include "stages/report/report_parts.h"

#include <math.h>

#include "stages/database/descriptor_columns.h"
#include "stages/report/plot.h"

enum { FINE = 4096, COLUMNS_MAX = CH_N_DESCRIPTORS + 2, PROPERTIES_MAX = 20 };

/* Numbers of one SELECT, several columns at once; the last column says: is it ranked? */
typedef struct source {
    const char *rows; /* "a, b, chosen FROM ..." */
    int n;
    struct {
        const char *name, *unit;
        bool whole;
    } column[COLUMNS_MAX];
} source;

typedef struct range {
    double lo, hi, mean;
    int64_t n, fine[FINE];
} range;

/* In the order of the molecules, by which a mean is rounded. */
static void find_ranges(st_report *r, const source *s, range *of)
{
    for (int k = 0; k < s->n; k++)
        of[k] = (range){ .lo = INFINITY, .hi = -INFINITY };
    for (sqlite3_stmt *st = st_report_query(r, "SELECT %s ORDER BY mol_id", s->rows); st_report_row(r, &st);)
        for (int k = 0; k < s->n; k++)
            if (sqlite3_column_type(st, k) != SQLITE_NULL) {
                double x = sqlite3_column_double(st, k);
                of[k].lo = fmin(of[k].lo, x);
                of[k].hi = fmax(of[k].hi, x);
                of[k].n++;
                of[k].mean += x / (double)of[k].n - of[k].mean / (double)of[k].n; /* no difference: it may be too large */
            }
}

/* Values whose difference overflows cannot be drawn. */
static bool is_drawn(double lo, double hi) { return hi > lo && isfinite(hi - lo); }

/* A few values far out would squeeze all others into one bar: then the bins hold the
 * middle 99 % of the values, and what lies outside is counted. */
static void cut_tails(range *of)
{
    double cell = (of->hi - of->lo) / FINE;
    int64_t few = of->n / 200, sum = 0;
    int a = 0, b = FINE - 1;

    while (a < b && sum + of->fine[a] <= few)
        sum += of->fine[a++];
    sum = 0;
    while (b > a && sum + of->fine[b] <= few)
        sum += of->fine[b--];
    if ((b - a + 1) * 3 < FINE) {
        double lo = of->lo + a * cell;
        of->hi = of->lo + (b + 1) * cell;
        of->lo = lo;
    }
}

static void find_tails(st_report *r, const source *s, range *of)
{
    for (sqlite3_stmt *st = st_report_query(r, "SELECT %s", s->rows); st_report_row(r, &st);)
        for (int k = 0; k < s->n; k++)
            if (sqlite3_column_type(st, k) != SQLITE_NULL && is_drawn(of[k].lo, of[k].hi)) {
                double at = (sqlite3_column_double(st, k) - of[k].lo) / (of[k].hi - of[k].lo) * FINE;
                of[k].fine[(int)fmin(fmax(at, 0), FINE - 1)]++;
            }
    for (int k = 0; k < s->n; k++)
        if (is_drawn(of[k].lo, of[k].hi))
            cut_tails(&of[k]);
}

static void count(st_report *r, const source *s, const range *of, st_histogram *h)
{
    for (int k = 0; k < s->n; k++) {
        h[k] = (st_histogram){ .name = s->column[k].name, .unit = s->column[k].unit };
        if (is_drawn(of[k].lo, of[k].hi))
            st_histogram_init(&h[k], of[k].lo, of[k].hi, s->column[k].whole);
    }
    for (sqlite3_stmt *st = st_report_query(r, "SELECT %s", s->rows); st_report_row(r, &st);)
        for (int k = 0; k < s->n; k++)
            if (sqlite3_column_type(st, k) != SQLITE_NULL && is_drawn(of[k].lo, of[k].hi))
                st_histogram_put(&h[k], sqlite3_column_double(st, k), sqlite3_column_int(st, s->n) != 0);
            else
                h[k].n_all += sqlite3_column_type(st, k) != SQLITE_NULL;
}

static void add_figure(st_report *r, const st_histogram *h, double lo, double hi, double mean)
{
    pl_text_add(r->out, "<figure>");
    if (is_drawn(lo, hi))
        st_plot_histogram(r->out, h);
    else
        st_html_cut(r->out, h->name, 60);
    pl_text_add(r->out, "<figcaption>");
    st_html_count(r->out, h->n_all);
    pl_text_add(r->out, hi > lo ? " values, " : " values, all ");
    st_html_real(r->out, lo, 4);
    if (hi > lo) {
        pl_text_add(r->out, " to ");
        st_html_real(r->out, hi, 4);
        pl_text_addf(r->out, ", mean %.4g", mean);
    }
    if (h->below + h->above > 0)
        pl_text_addf(r->out, "; not drawn: %lld below and %lld above", (long long)h->below, (long long)h->above);
    pl_text_add(r->out, "</figcaption></figure>\n");
}

static void add_source(st_report *r, const source *s)
{
    range *of = PL_NEW(r->mem, range, s->n);
    st_histogram *h = PL_NEW(r->mem, st_histogram, s->n);
    double lo[COLUMNS_MAX], hi[COLUMNS_MAX];

    if (r->code == PL_OK && (of == NULL || h == NULL))
        r->code = pl_fail(r->err, PL_ENOMEM, "the histograms");
    if (r->code != PL_OK)
        return;
    find_ranges(r, s, of);
    for (int k = 0; k < s->n; k++) {
        lo[k] = of[k].lo;
        hi[k] = of[k].hi;
    }
    find_tails(r, s, of);
    count(r, s, of, h);
    for (int k = 0; k < s->n && r->code == PL_OK; k++)
        if (h[k].n_all > 0)
            add_figure(r, &h[k], lo[k], hi[k], of[k].mean);
}

#define RANKED(id) "EXISTS(SELECT 1 FROM hit h WHERE h.mol_id=" id ")"

/* One figure for each property in the table: scores, or measured values. */
static void add_properties(st_report *r, const char *what, const char *rows)
{
    for (sqlite3_stmt *st =
             st_report_query(r, "SELECT property_id, name, unit FROM property ORDER BY name LIMIT %d", PROPERTIES_MAX);
         st_report_row(r, &st);) {
        source s = { .n = 1 };
        s.rows = pl_sprintf(r->mem, "%s%lld", rows, (long long)sqlite3_column_int64(st, 0));
        s.column[0].name = pl_sprintf(r->mem, "%s%s", st_column(st, 1), what);
        s.column[0].unit = pl_strdup(r->mem, st_column(st, 2));
        if (s.rows == NULL || s.column[0].name == NULL || s.column[0].unit == NULL)
            r->code = pl_fail(r->err, PL_ENOMEM, "the histograms");
        else
            add_source(r, &s);
    }
}

static void add_column(source *s, pl_text *rows, const char *column, const char *name, const char *unit, bool whole)
{
    pl_text_addf(rows, "%s, ", column);
    s->column[s->n].name = name;
    s->column[s->n].unit = unit;
    s->column[s->n++].whole = whole;
}

static void add_kind(source *s, pl_text *rows, int whole)
{
    for (const ch_descriptor *d = ch_descriptors; d < ch_descriptors + CH_N_DESCRIPTORS; d++)
        if (d->whole == whole)
            add_column(s, rows, d->name, d->title, st_descriptor_unit(d), whole);
}

/* Numbers with a fraction, then counts. */
static void add_descriptors(st_report *r)
{
    source s = { .n = 0 };
    pl_text rows = { 0 };

    add_kind(&s, &rows, 0);
    add_column(&s, &rows, "n_heavy", "heavy atoms", "", true);
    add_kind(&s, &rows, 1);
    add_column(&s, &rows, "charge", "net charge", "e", true);
    pl_text_add(&rows, RANKED("molecule.mol_id") " FROM molecule");
    s.rows = pl_text_str(&rows);
    if (r->code == PL_OK && !pl_text_ok(&rows))
        r->code = pl_fail(r->err, PL_ENOMEM, "the histograms");
    add_source(r, &s);
    pl_text_free(&rows);
}

void st_report_histograms(st_report *r)
{
    int64_t n = st_report_int(r, "SELECT count(*) FROM property");

    pl_text_add(r->out, "<p class=\"note\">Bars: all molecules");
    if (st_report_int(r, "SELECT EXISTS(SELECT 1 FROM hit)"))
        pl_text_add(r->out, "; orange line: the ranked ones, as a share of all ranked molecules");
    pl_text_add(r->out, ". Descriptors: <code>molsieve query column_doc</code> lists the definition of each.</p>\n");
    if (n > PROPERTIES_MAX)
        pl_text_addf(r->out, "<p class=\"note\">Of %lld properties the first %d by name.</p>\n", (long long)n, PROPERTIES_MAX);
    pl_text_add(r->out, "<div class=\"figs\">\n");
    add_properties(r, ", predicted", "mean, " RANKED("score.mol_id") " FROM score WHERE property_id=");
    add_properties(r, ", measured", "value, 0 FROM label WHERE property_id=");
    add_descriptors(r);
    pl_text_add(r->out, "</div>\n");
}
