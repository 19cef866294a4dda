/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/report/plot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "stages/report/html.h"

/* The picture and the box between its axes, in pixels. */
enum { WIDE = 360, HIGH = 230, LEFT = 58, RIGHT = 12, TOP = 12, BOTTOM = 40, POINTS_MAX = 400 };

typedef struct frame {
    pl_text *out;
    int wide, high;
    st_scale x, y;
} frame;

st_scale st_scale_nice(double lo, double hi, int steps)
{
    double raw, power, step;

    if (!(hi - lo > 1e-9 * fmax(fabs(lo), fabs(hi)))) { /* one value: room on both sides */
        double room = fmax(fabs(lo) * 0.1, 0.5);
        lo -= room;
        hi += room;
    }
    raw = (hi - lo) / steps;
    power = pow(10, floor(log10(raw)));
    step = 10 * power;
    if (raw <= 2.0001 * power)
        step = raw <= power * 1.0001 ? power : 2 * power;
    else if (raw <= 5.0001 * power)
        step = 5 * power;
    return (st_scale){ floor(lo / step + 1e-9) * step, ceil(hi / step - 1e-9) * step, step };
}

/* ---- the frame: ticks at the multiples of a scale's step ---- */

/* Of a step: more than the rounding of an end, which is up to 3e-6 where values differ by one in 10^9 (st_scale_nice). */
static const double ROUNDING = 1e-5;

static double x_of(const frame *f, double x) { return LEFT + (x - f->x.lo) / (f->x.hi - f->x.lo) * (f->wide - LEFT - RIGHT); }

static double y_of(const frame *f, double y)
{
    return f->high - BOTTOM - (y - f->y.lo) / (f->y.hi - f->y.lo) * (f->high - TOP - BOTTOM);
}

static void add_number(pl_text *out, double x, double step)
{
    int digits = step > 0 && step < 1 ? (int)ceil(-log10(step) - 1e-9) : 0;

    if (fabs(x) >= 1e6 || (x != 0 && digits > 4))
        pl_text_addf(out, "%.3g", fabs(x) < step * 1e-6 ? 0 : x);
    else
        pl_text_addf(out, "%.*f", digits, fabs(x) < step * 1e-6 ? 0 : x);
}

static void add_with_unit(pl_text *out, const char *name, const char *unit)
{
    st_html_cut(out, name, 60);
    if (unit[0] != '\0' && strcmp(unit, "1") != 0) {
        pl_text_add(out, " / ");
        st_html_cut(out, unit, 40);
    }
}

/* The label may be added in pieces between begin and go_on. */
static void svg_begin(const frame *f)
{
    pl_text_addf(f->out, "<svg class=\"plot\" role=\"img\" viewBox=\"0 0 %d %d\" aria-label=\"", f->wide, f->high);
}

static void svg_go_on(const frame *f) { pl_text_add(f->out, "\">"); }

static void add_grid(const frame *f)
{
    double x = ceil(f->x.lo / f->x.step - ROUNDING), y = ceil(f->y.lo / f->y.step - ROUNDING);

    for (double v; (v = x * f->x.step) <= f->x.hi + ROUNDING * f->x.step; x++) {
        pl_text_addf(f->out, "<path class=\"tick\" d=\"M%.1f %dv4\"/><text class=\"x\" x=\"%.1f\" y=\"%d\">", x_of(f, v),
                     f->high - BOTTOM, x_of(f, v), f->high - BOTTOM + 16);
        add_number(f->out, v, f->x.step);
        pl_text_add(f->out, "</text>");
    }
    for (double v; (v = y * f->y.step) <= f->y.hi + ROUNDING * f->y.step; y++) {
        pl_text_addf(f->out, "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text class=\"y\" x=\"%d\" y=\"%.1f\">", LEFT, y_of(f, v),
                     f->wide - RIGHT, LEFT - 6, y_of(f, v) + 4);
        add_number(f->out, v, f->y.step);
        pl_text_add(f->out, "</text>");
    }
}

static void add_names(const frame *f, const char *x, const char *x_unit, const char *y, const char *y_unit)
{
    double middle = TOP + (f->high - TOP - BOTTOM) / 2.0;

    pl_text_addf(f->out, "<text class=\"name\" x=\"%d\" y=\"%d\">", (LEFT + f->wide - RIGHT) / 2, f->high - 6);
    add_with_unit(f->out, x, x_unit);
    pl_text_addf(f->out, "</text><text class=\"name\" x=\"12\" y=\"%.1f\" transform=\"rotate(-90 12 %.1f)\">", middle, middle);
    add_with_unit(f->out, y, y_unit);
    pl_text_add(f->out, "</text>");
}

/* ---- histogram ---- */

void st_histogram_init(st_histogram *h, double lo, double hi, bool whole)
{
    st_scale s = st_scale_nice(lo, hi, 30);

    if (whole && s.step < 1)
        s = (st_scale){ floor(lo), floor(hi) + 1, 1 };
    h->whole = whole;
    h->width = s.step;
    h->n_bins = (int)lround((s.hi - s.lo) / s.step) + (whole && s.hi <= hi);
    h->n_bins = h->n_bins < ST_BINS_MAX ? h->n_bins : ST_BINS_MAX;
    h->lo = s.lo;
}

void st_histogram_put(st_histogram *h, double x, bool chosen)
{
    double at = floor((x - h->lo) / h->width + 1e-9);
    bool last = at == h->n_bins && !h->whole && x <= h->lo + h->n_bins * h->width * (1 + 1e-12);
    int i = at < 0 ? -1 : (int)fmin(at, h->n_bins);

    if (last)
        i = h->n_bins - 1;
    h->n_all++;
    h->n_some += chosen;
    h->below += i < 0;
    h->above += i == h->n_bins;
    if (i < 0 || i == h->n_bins)
        return;
    h->all[i]++;
    h->some[i] += chosen;
}

static double share(int64_t n, int64_t of) { return of > 0 ? 100.0 * (double)n / (double)of : 0; }

/* The bar of a whole number is centred on it. */
static double bin_edge(const st_histogram *h, int i) { return h->lo + i * h->width - (h->whole && h->width == 1 ? 0.5 : 0); }

static void add_bar(const frame *f, const st_histogram *h, int i)
{
    double left = x_of(f, bin_edge(h, i)), right = x_of(f, bin_edge(h, i + 1)), top = y_of(f, share(h->all[i], h->n_all));

    if (h->all[i] == 0)
        return;
    pl_text_addf(f->out, "<rect class=\"bar\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"><title>", left + 0.5, top,
                 fmax(right - left - 1, 0.5), y_of(f, 0) - top);
    add_number(f->out, h->lo + i * h->width, h->width);
    if (!(h->whole && h->width == 1)) {
        pl_text_add(f->out, " to ");
        add_number(f->out, h->lo + (i + 1) * h->width, h->width);
    }
    pl_text_addf(f->out, ": %lld", (long long)h->all[i]);
    if (h->n_some > 0)
        pl_text_addf(f->out, ", ranked %lld", (long long)h->some[i]);
    pl_text_add(f->out, "</title></rect>");
}

static void add_outline(const frame *f, const st_histogram *h)
{
    pl_text_addf(f->out, "<path class=\"line c1\" d=\"M%.1f %.1f", x_of(f, bin_edge(h, 0)), y_of(f, 0));
    for (int i = 0; i < h->n_bins; i++)
        pl_text_addf(f->out, "V%.1fH%.1f", y_of(f, share(h->some[i], h->n_some)), x_of(f, bin_edge(h, i + 1)));
    pl_text_addf(f->out, "V%.1f\"/>", y_of(f, 0));
}

void st_plot_histogram(pl_text *out, const st_histogram *h)
{
    frame f = { .out = out, .wide = WIDE, .high = HIGH, .x = { bin_edge(h, 0), bin_edge(h, h->n_bins), 0 } };
    double max = 1e-9;

    f.x.step = fmax(st_scale_nice(f.x.lo, f.x.hi, 7).step, h->whole ? 1 : 0);
    for (int i = 0; i < h->n_bins; i++)
        max = fmax(max, fmax(share(h->all[i], h->n_all), share(h->some[i], h->n_some)));
    f.y = st_scale_nice(0, max, 4);
    svg_begin(&f);
    pl_text_add(out, "histogram of ");
    add_with_unit(out, h->name, h->unit);
    pl_text_addf(out, ", %lld values", (long long)h->n_all);
    svg_go_on(&f);
    add_grid(&f);
    for (int i = 0; i < h->n_bins; i++)
        add_bar(&f, h, i);
    if (h->n_some > 0)
        add_outline(&f, h);
    add_names(&f, h->name, h->unit, "share of molecules", "%");
    pl_text_add(out, "</svg>");
}

/* ---- curves ---- */

static bool find_ranges(frame *f, const st_curve *c, int n)
{
    double x_lo = INFINITY, x_hi = -INFINITY, y_lo = INFINITY, y_hi = -INFINITY;

    for (int k = 0; k < n; k++)
        for (int i = 0; i < c[k].n; i++) {
            x_lo = fmin(x_lo, c[k].x[i]);
            x_hi = fmax(x_hi, c[k].x[i]);
            y_lo = fmin(y_lo, c[k].y[i]);
            y_hi = fmax(y_hi, c[k].y[i]);
        }
    if (!isfinite(x_hi - x_lo) || !isfinite(y_hi - y_lo))
        return false;
    f->x = st_scale_nice(x_lo, x_hi, 6);
    f->y = st_scale_nice(y_lo > 0 ? 0 : y_lo, y_hi, 5);
    return true;
}

static void add_curve(const frame *f, const st_curve *c, int k)
{
    int every = (c->n + POINTS_MAX - 1) / POINTS_MAX;

    pl_text_addf(f->out, "<path class=\"line c%d\" d=\"", k);
    for (int i = 0; i < c->n; i++)
        if (i % every == 0 || i == c->n - 1)
            pl_text_addf(f->out, "%c%.1f %.1f", i ? 'L' : 'M', x_of(f, c->x[i]), y_of(f, c->y[i]));
    pl_text_add(f->out, c->n == 1 ? "h.1\"/>" : "\"/>");
}

static void add_legend(const frame *f, const st_curve *c, int k, int y)
{
    int x = f->wide - RIGHT - 76;

    pl_text_addf(f->out, "<path class=\"line c%d\" d=\"M%d %dh20\"/><text class=\"l\" x=\"%d\" y=\"%d\">", k, x, y - 4, x + 26, y);
    st_html_cut(f->out, c->name, 12);
    pl_text_add(f->out, "</text>");
}

/* legend: where its first row is. */
static void add_curves(const frame *f, const char *title, const char *x_name, const char *y_name, const st_curve *c, int n,
                       int legend)
{
    svg_begin(f);
    st_html_cut(f->out, title, 100);
    svg_go_on(f);
    add_grid(f);
    for (int k = 0; k < n; k++)
        if (c[k].n > 0) {
            add_curve(f, &c[k], k);
            add_legend(f, &c[k], k, legend);
            legend += 15;
        }
    add_names(f, x_name, "", y_name, "");
    pl_text_add(f->out, "</svg>");
}

void st_plot_curves(pl_text *out, const char *title, const char *x_name, const char *y_name, const st_curve *c, int n)
{
    frame f = { .out = out, .wide = WIDE, .high = HIGH };

    n = n < ST_CURVES_MAX ? n : ST_CURVES_MAX;
    if (find_ranges(&f, c, n))
        add_curves(&f, title, x_name, y_name, c, n, TOP + 10);
}

void st_plot_shares(pl_text *out, const char *title, const char *x_name, const char *y_name, const st_curve *c, int n)
{
    const frame f = { .out = out, .wide = WIDE, .high = HIGH, .x = { 0, 1, 0.2 }, .y = { 0, 1, 0.2 } };

    n = n < ST_CURVES_MAX ? n : ST_CURVES_MAX;
    add_curves(&f, title, x_name, y_name, c, n, HIGH - BOTTOM - 5 - 15 * (n - 1));
}

/* ---- parity ---- */

static int cell_of(const st_scale *s, double x)
{
    double at = (x - s->lo) / (s->hi - s->lo) * ST_CELLS;

    if (!(at > 0))
        return 0;
    return at >= ST_CELLS ? ST_CELLS - 1 : (int)at;
}

void st_parity_put(st_parity *p, double measured, double predicted)
{
    p->n++;
    p->cell[cell_of(&p->scale, predicted)][cell_of(&p->scale, measured)]++;
}

/* Cells with at least `from` and fewer than `below` molecules, as dots of one path. */
static void add_dots(const frame *f, const st_parity *p, int64_t from, int64_t below, const char *class)
{
    double cell = (p->scale.hi - p->scale.lo) / ST_CELLS;
    bool any = false;

    for (int i = 0; i < ST_CELLS; i++)
        for (int j = 0; j < ST_CELLS; j++) {
            if (p->cell[i][j] < from || p->cell[i][j] >= below)
                continue;
            if (!any)
                pl_text_addf(f->out, "<path class=\"dot %s\" d=\"", class);
            any = true;
            pl_text_addf(f->out, "M%.1f %.1fh.1", x_of(f, p->scale.lo + (j + 0.5) * cell), y_of(f, p->scale.lo + (i + 0.5) * cell));
        }
    pl_text_add(f->out, any ? "\"/>" : "");
}

void st_plot_parity(pl_text *out, const st_parity *p)
{
    frame f = { out, WIDE, WIDE - LEFT - RIGHT + TOP + BOTTOM, p->scale, p->scale };
    pl_text x = { 0 }, y = { 0 };

    pl_text_addf(&x, "measured %s", p->name);
    pl_text_addf(&y, "predicted %s", p->name);
    svg_begin(&f);
    pl_text_add(out, "predicted against measured ");
    add_with_unit(out, p->name, p->unit);
    pl_text_addf(out, ", %lld molecules", (long long)p->n);
    svg_go_on(&f);
    add_grid(&f);
    pl_text_addf(out, "<path class=\"equal\" d=\"M%.1f %.1fL%.1f %.1f\"/>", x_of(&f, p->scale.lo), y_of(&f, p->scale.lo),
                 x_of(&f, p->scale.hi), y_of(&f, p->scale.hi));
    add_dots(&f, p, 1, 2, "d1");
    add_dots(&f, p, 2, 5, "d2");
    add_dots(&f, p, 5, INT64_MAX, "d3");
    add_names(&f, pl_text_str(&x), p->unit, pl_text_str(&y), p->unit);
    pl_text_free(&x);
    pl_text_free(&y);
    pl_text_add(out, "</svg>");
}
