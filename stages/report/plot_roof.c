/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "stages/report/html.h"
#include "stages/report/plot.h"

/* The box between the axes, in pixels; of a label: its height, tries around its dot; boxes of the bandwidth's text. */
enum { LEFT = 62, RIGHT = 22, TOP = 30, BOTTOM = 44, HIGH_TEXT = 13, TURNS = 16, SLOPE_BOXES = 9 };
static const double wide_text = 6.1; /* pixels a character */

typedef struct box {
    double x, y, wide, high; /* x, y: the middle */
} box;

typedef struct chart {
    pl_text *out;
    const st_roof *roof;
    int x_step[2], y_step[2];                      /* first and last of the axes, for step_of */
    double x[2], y[2];                             /* the same as log10 */
    box taken[2 * ST_ROOF_DOTS + SLOPE_BOXES + 4]; /* dots and their labels, two for each of two peaks */
    int n_taken;
} chart;

static double x_of(const chart *c, double x)
{
    return LEFT + (log10(x) - c->x[0]) / (c->x[1] - c->x[0]) * (ST_ROOF_WIDE - LEFT - RIGHT);
}

static double y_of(const chart *c, double y)
{
    return ST_ROOF_HIGH - BOTTOM - (log10(y) - c->y[0]) / (c->y[1] - c->y[0]) * (ST_ROOF_HIGH - TOP - BOTTOM);
}

static void take(chart *c, double x, double y, double wide, double high) { c->taken[c->n_taken++] = (box){ x, y, wide, high }; }

static double text_wide(const char *s)
{
    int n = 0;

    for (; *s != '\0'; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80; /* characters, not bytes */
    return wide_text * n;
}

/* ---- axes ---- */

/* Number i of .. 0.5, 1 (number 0), 2, 5, 10 .. */
static double step_of(int i)
{
    static const double mantissa[] = { 1, 2, 5 };
    double decade = floor(i / 3.0);

    return mantissa[i - 3 * (int)decade] * pow(10, decade);
}

/* To the next of .. 1, 2, 5, 10 .. below and above. */
static void range_set(int step[2], double range[2], double lo, double hi)
{
    step[0] = 3 * (int)floor(log10(lo)) + 3;
    step[1] = 3 * (int)floor(log10(hi));
    while (step_of(step[0]) > lo)
        step[0]--;
    while (step_of(step[1]) < hi)
        step[1]++;
    for (int k = 0; k < 2; k++)
        range[k] = log10(step_of(step[k]));
}

static void ranges_find(chart *c)
{
    const st_roof *r = c->roof;
    double x[2] = { r->peak[0].rate / r->bandwidth, 0 }, y[2] = { r->peak[0].rate, 0 };

    for (int i = 0; i < r->n_peaks; i++) {
        x[1] = fmax(x[1], r->peak[i].rate / r->bandwidth);
        y[1] = fmax(y[1], r->peak[i].rate);
    }
    for (int i = 0; i < r->n; i++) {
        x[0] = fmin(x[0], r->dot[i].x);
        x[1] = fmax(x[1], r->dot[i].x);
        y[0] = fmin(y[0], r->dot[i].y);
        y[1] = fmax(y[1], r->dot[i].y);
    }
    range_set(c->x_step, c->x, 0.7 * x[0], 3 * x[1]);
    range_set(c->y_step, c->y, 0.5 * y[0], 1.5 * y[1]);
}

/* Lines at 1, 2, 5; with more than two decades numbers only at 1. */
static bool is_named(const double range[2], int i) { return i % 3 == 0 || range[1] - range[0] < 2.3; }

static void grid_add(const chart *c)
{
    for (int i = c->x_step[0]; i <= c->x_step[1]; i++) {
        const double v = step_of(i);
        pl_text_addf(c->out, "<path class=\"grid\" d=\"M%.1f %dV%d\"/>", x_of(c, v), TOP, ST_ROOF_HIGH - BOTTOM);
        if (is_named(c->x, i))
            pl_text_addf(c->out, "<text class=\"x\" x=\"%.1f\" y=\"%d\">%g</text>", x_of(c, v), ST_ROOF_HIGH - BOTTOM + 16, v);
    }
    for (int i = c->y_step[0]; i <= c->y_step[1]; i++) {
        const double v = step_of(i);
        pl_text_addf(c->out, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>", LEFT, y_of(c, v), ST_ROOF_WIDE - RIGHT);
        if (is_named(c->y, i))
            pl_text_addf(c->out, "<text class=\"y\" x=\"%d\" y=\"%.1f\">%g</text>", LEFT - 6, y_of(c, v) + 4, v);
    }
    pl_text_addf(c->out,
                 "<text class=\"name\" x=\"%d\" y=\"%d\">operations per byte</text><text class=\"name\" x=\"14\" y=\"%d\" "
                 "transform=\"rotate(-90 14 %d)\">GFLOP/s</text>",
                 (LEFT + ST_ROOF_WIDE - RIGHT) / 2, ST_ROOF_HIGH - 8, (TOP + ST_ROOF_HIGH - BOTTOM) / 2,
                 (TOP + ST_ROOF_HIGH - BOTTOM) / 2);
}

/* ---- the roof ---- */

/* Where the bandwidth's line is at the left edge, or at the lower one. */
static double slope_from(const chart *c) { return fmax(pow(10, c->x[0]), pow(10, c->y[0]) / c->roof->bandwidth); }

static double highest(const st_roof *r)
{
    double rate = 0;

    for (int i = 0; i < r->n_peaks; i++)
        rate = fmax(rate, r->peak[i].rate);
    return rate;
}

/* A level from its ridge to the right, its name above it at the right end, and where it meets the bandwidth at the foot. */
static void peak_add(chart *c, const st_roof_peak *p)
{
    double ridge = p->rate / c->roof->bandwidth, y = y_of(c, p->rate), wide = text_wide(p->name);

    pl_text_addf(c->out, "<path class=\"roof\" d=\"M%.1f %.1fH%d\"/><path class=\"ridge\" d=\"M%.1f %.1fV%d\"/>", x_of(c, ridge), y,
                 ST_ROOF_WIDE - RIGHT, x_of(c, ridge), y, ST_ROOF_HIGH - BOTTOM);
    pl_text_addf(c->out, "<text class=\"y soft\" x=\"%d\" y=\"%.1f\">", ST_ROOF_WIDE - RIGHT - 4, y - 5);
    st_html_cut(c->out, p->name, 60);
    pl_text_addf(c->out, "</text><text class=\"soft\" x=\"%.1f\" y=\"%d\">%.3g</text>", x_of(c, ridge) + 4,
                 ST_ROOF_HIGH - BOTTOM - 5, ridge);
    take(c, ST_ROOF_WIDE - RIGHT - 4 - wide / 2, y - 9, wide, HIGH_TEXT);
    take(c, x_of(c, ridge) + 18, ST_ROOF_HIGH - BOTTOM - 9, 32, HIGH_TEXT);
}

static double common(const box *a, const box *b)
{
    double wide = (a->wide + b->wide) / 2 - fabs(a->x - b->x), high = (a->high + b->high) / 2 - fabs(a->y - b->y);

    return wide > 0 && high > 0 ? wide * high : 0;
}

/* Pieces of a text of 18 * 6 pixels along the line, its middle at `along` pixels from the lower end. */
static box slope_piece(const double from[2], double angle, double along, int i)
{
    double at = along + 12 * (i - 4);

    return (box){ from[0] + at * cos(angle) - 10 * sin(angle), from[1] - at * sin(angle) - 10 * cos(angle), 12, 12 };
}

/* Where along the line its text covers the fewest dots. */
static double slope_place(const chart *c, const double from[2], double angle, double length)
{
    double best = 0.5 * length, least = INFINITY;

    for (int k = 0; k < 9; k++) {
        int steps = (k + 1) / 2; /* from the middle, to both sides in turn */
        double at = length * (0.5 + (k % 2 ? 0.08 : -0.08) * steps), sum = 0;
        for (int i = 0; i < SLOPE_BOXES * c->n_taken; i++) {
            box piece = slope_piece(from, angle, at, i % SLOPE_BOXES);
            sum += common(&piece, &c->taken[i / SLOPE_BOXES]);
        }
        if (sum < least) {
            least = sum;
            best = at;
        }
    }
    return best;
}

static void slope_add(chart *c)
{
    const st_roof *r = c->roof;
    double from[2] = { x_of(c, slope_from(c)), y_of(c, slope_from(c) * r->bandwidth) };
    double end[2] = { x_of(c, highest(r) / r->bandwidth), y_of(c, highest(r)) };
    double angle = atan2(from[1] - end[1], end[0] - from[0]), length = hypot(end[0] - from[0], from[1] - end[1]);
    double along = slope_place(c, from, angle, length);

    pl_text_addf(c->out, "<path class=\"roof\" d=\"M%.1f %.1fL%.1f %.1f\"/>", from[0], from[1], end[0], end[1]);
    pl_text_addf(c->out, "<text class=\"name\" transform=\"translate(%.1f %.1f) rotate(%.1f)\" y=\"-6\">%.3g GB/s of memory</text>",
                 from[0] + along * cos(angle), from[1] - along * sin(angle), -angle * 45 / atan(1), r->bandwidth);
    for (int i = 0; i < SLOPE_BOXES; i++) {
        box piece = slope_piece(from, angle, along, i);
        take(c, piece.x, piece.y, piece.wide, piece.high);
    }
}

/* ---- dots and their labels ---- */

static bool is_outside(const box *b)
{
    return b->x - b->wide / 2 < LEFT + 2 || b->x + b->wide / 2 > ST_ROOF_WIDE - RIGHT - 2 || b->y - b->high / 2 < TOP + 2 ||
           b->y + b->high / 2 > ST_ROOF_HIGH - BOTTOM - 2;
}

/* Pixels by which a point lies below the line of the bandwidth. */
static double below_slope(const chart *c, double x, double y)
{
    double value = pow(10, c->x[0] + (x - LEFT) / (ST_ROOF_WIDE - LEFT - RIGHT) * (c->x[1] - c->x[0]));

    return y - y_of(c, value * c->roof->bandwidth);
}

static bool is_crossed(const chart *c, const box *b)
{
    double left = b->x - b->wide / 2, right = b->x + b->wide / 2, top = b->y - b->high / 2, bottom = b->y + b->high / 2;

    for (int i = 0; i < c->roof->n_peaks; i++) {
        double y = y_of(c, c->roof->peak[i].rate);
        if (top < y + 2 && bottom > y - 2 && right > x_of(c, c->roof->peak[i].rate / c->roof->bandwidth))
            return true;
    }
    for (int i = 0; i < c->roof->n_peaks; i++) {
        double x = x_of(c, c->roof->peak[i].rate / c->roof->bandwidth);
        if (left < x + 2 && right > x - 2 && bottom > y_of(c, c->roof->peak[i].rate))
            return true;
    }
    return (below_slope(c, left, top) < 3) != (below_slope(c, right, bottom) < -3);
}

/* How bad a place is: what it covers, lines through it, the way to its dot. */
static double cost(const chart *c, const box *b, double away)
{
    double sum = away / 4 + (is_crossed(c, b) ? 20 : 0) + (is_outside(b) ? 1e6 : 0);

    for (int i = 0; i < c->n_taken; i++)
        sum += 2 * common(b, &c->taken[i]);
    return sum;
}

/* The best place around a dot; `away`: pixels between both. */
static box place_find(const chart *c, const st_roof_dot *d, double *away)
{
    static const double distances[] = { 8, 15, 24, 34, 48, 64, 82, 102 };
    box best = { 0 };
    double least = INFINITY, wide = text_wide(d->name), x = x_of(c, d->x), y = y_of(c, d->y);

    for (int k = 0; k < TURNS * (int)(sizeof distances / sizeof *distances); k++) {
        double angle = k % TURNS * 8 * atan(1) / TURNS, r = distances[k / TURNS];
        box b = { x + cos(angle) * (r + wide / 2), y + sin(angle) * (r + HIGH_TEXT / 2.0), wide, HIGH_TEXT };
        double now = cost(c, &b, r);
        if (now < least) {
            least = now;
            best = b;
            *away = r;
        }
    }
    return best;
}

static double clamp(double x, double middle, double wide) { return fmin(fmax(x, middle - wide / 2), middle + wide / 2); }

/* Circles, squares and diamonds, so that the kinds differ without colours. */
static const char *const shapes[] = { "m-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z", "m-4 -4h8v8h-8z",
                                      "m0 -5.5l5.5 5.5l-5.5 5.5l-5.5 -5.5z" };

static void dot_add(chart *c, const st_roof_dot *d)
{
    double away = 0, x = x_of(c, d->x), y = y_of(c, d->y);
    box b = place_find(c, d, &away);

    take(c, b.x, b.y, b.wide, b.high);
    pl_text_addf(c->out, "<g class=\"point k%d\"><title>", (int)d->kind);
    st_html_cut(c->out, d->says, 200);
    pl_text_add(c->out, "</title>");
    if (away > 12)
        pl_text_addf(c->out, "<path class=\"lead\" d=\"M%.1f %.1fL%.1f %.1f\"/>", x, y, clamp(x, b.x, b.wide),
                     clamp(y, b.y, b.high - 4));
    pl_text_addf(c->out, "<text x=\"%.1f\" y=\"%.1f\">", b.x - b.wide / 2, b.y + 4);
    st_html_cut(c->out, d->name, 40);
    pl_text_addf(c->out, "</text><path class=\"dot\" d=\"M%.1f %.1f%s\"/></g>", x, y, shapes[d->kind]);
}

/* In the title's line, at the right. */
static void legend_add(const chart *c)
{
    static const char *const kinds[] = { "forward", "backward", "weights" };
    double x = ST_ROOF_WIDE - RIGHT - 216;

    for (int i = 0; i < 3; i++, x += 76)
        pl_text_addf(c->out, "<g class=\"k%d\"><path class=\"dot\" d=\"M%.1f %d%s\"/><text x=\"%.1f\" y=\"%d\">%s</text></g>", i, x,
                     15, shapes[i], x + 9, 19, kinds[i]);
}

void st_plot_roofline(pl_text *out, const st_roof *r)
{
    chart c = { .out = out, .roof = r };

    ranges_find(&c);
    pl_text_addf(out,
                 "<svg class=\"roofline\" role=\"img\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" aria-label=\"roofline of ",
                 ST_ROOF_WIDE, ST_ROOF_HIGH, ST_ROOF_WIDE, ST_ROOF_HIGH);
    st_html_cut(out, r->title, 100);
    pl_text_addf(out, "\"><text class=\"title\" x=\"%d\" y=\"19\">", LEFT);
    st_html_cut(out, r->title, 58);
    pl_text_add(out, "</text>");
    legend_add(&c);
    grid_add(&c);
    for (int i = 0; i < r->n; i++)
        take(&c, x_of(&c, r->dot[i].x), y_of(&c, r->dot[i].y), 11, 11);
    slope_add(&c);
    for (int i = 0; i < r->n_peaks; i++)
        peak_add(&c, &r->peak[i]);
    for (int i = 0; i < r->n; i++)
        dot_add(&c, &r->dot[i]);
    pl_text_add(out, "</svg>");
}

/* No variables: programs that are no browser do not know them. */
void st_roof_page(pl_text *out, const pl_text *figures, int n)
{
    pl_text_addf(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\"><style>"
        ".ground{fill:#fff}text{fill:#1c2530;font:11px system-ui,-apple-system,\"Segoe UI\",Roboto,Arial,sans-serif}"
        ".point text,.soft,.name{paint-order:stroke;stroke:#fff;stroke-width:3;stroke-linejoin:round}.title{font-weight:600;font-size:12px}.x,.name{text-anchor:middle}.y{text-anchor:end}.x,.y,.name,.soft{fill:#5a6675}"
        ".grid{stroke:#e3e7ec;fill:none}.roof{stroke:#1c2530;stroke-width:2;fill:none}.ridge{stroke:#5a6675;stroke-dasharray:3 4;"
        "fill:none}.lead{stroke:#8a94a0;fill:none}.k0 .dot{fill:#2563c9}.k1 .dot{fill:#d9600a}.k2 .dot{fill:#178048}"
        "@media(prefers-color-scheme:dark){.ground{fill:#14181d}text{fill:#e3e8ee}.x,.y,.name,.soft{fill:#9aa6b3}"
        ".point text,.soft,.name{stroke:#14181d}.grid{stroke:#262d35}.roof{stroke:#e3e8ee}.ridge{stroke:#9aa6b3}.lead{stroke:#6b7785}.k0 .dot{fill:#7fb0ff}"
        ".k1 .dot{fill:#ffa35c}.k2 .dot{fill:#5fd197}}</style><rect class=\"ground\" width=\"100%%\" height=\"100%%\"/>\n",
        ST_ROOF_WIDE, n * ST_ROOF_HIGH, ST_ROOF_WIDE, n * ST_ROOF_HIGH);
    pl_text_add_n(out, pl_text_str(figures), figures->len);
    pl_text_add(out, "</svg>\n");
}
