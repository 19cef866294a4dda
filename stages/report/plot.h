/* stages/report/plot.h - figures for the report, as inline SVG.
 *
 * Each is one <svg> that fits its column, with axes, units and a text that says
 * what it shows (role="img", aria-label; bars also have a <title>). Colours are
 * classes defined in stages/report/report.css, so that dark mode and printing work.
 * Names and units may be any text. The size of a figure is bounded
 * whatever the number of values. */
#ifndef ST_PLOT_H
#define ST_PLOT_H

#include "pipeline/base/text.h"

/* lo and hi are multiples of step; step is 1, 2 or 5 times a power of ten. */
typedef struct st_scale {
    double lo, hi, step;
} st_scale;
st_scale st_scale_nice(double lo, double hi, int steps); /* about this many steps; finite, lo <= hi */

enum { ST_BINS_MAX = 48 };

/* Values in bins of equal width: all of them, and a selection (the ranked ones). */
typedef struct st_histogram {
    const char *name, *unit; /* unit may be "" */
    double lo, width;        /* bin i is [lo + i*width, lo + (i+1)*width), the last one closed */
    int n_bins;
    bool whole; /* the values are whole numbers: a bin lies around its number */
    int64_t all[ST_BINS_MAX], some[ST_BINS_MAX];
    int64_t n_all, n_some, below, above; /* values counted, inside the bins or not */
} st_histogram;

/* Bins for values from lo to hi; counts are zero. */
void st_histogram_init(st_histogram *h, double lo, double hi, bool whole);
void st_histogram_put(st_histogram *h, double x, bool chosen);
void st_plot_histogram(pl_text *out, const st_histogram *h);

/* n points, x growing. */
typedef struct st_curve {
    const char *name;
    const double *x, *y;
    int n;
} st_curve;
enum { ST_CURVES_MAX = 4 };
/* Up to four curves over one x axis. Empty ones are left out; more than 400 points are thinned. */
void st_plot_curves(pl_text *out, const char *title, const char *x_name, const char *y_name, const st_curve *c, int n);

/* The same for shares: both axes go from 0 to 1, and curves that rise leave room below for their names. */
void st_plot_shares(pl_text *out, const char *title, const char *x_name, const char *y_name, const st_curve *c, int n);

/* Predicted against measured, counted in cells; equal scales on both axes. */
enum { ST_CELLS = 90 };
typedef struct st_parity {
    const char *name, *unit;
    st_scale scale;
    int64_t n, cell[ST_CELLS][ST_CELLS]; /* [predicted][measured] */
} st_parity;
void st_parity_put(st_parity *p, double measured, double predicted); /* scale is set */
void st_plot_parity(pl_text *out, const st_parity *p);

/* A roofline: operations a second against operations a byte, both logarithmic, below the bandwidth and peaks. Each dot has
 * its label, which covers no dot, line or other label while there is room. plot_roof.c */
enum { ST_ROOF_WIDE = 680, ST_ROOF_HIGH = 430, ST_ROOF_DOTS = 16 };
typedef enum st_roof_kind { ST_ROOF_FORWARD, ST_ROOF_BACK, ST_ROOF_WEIGHTS } st_roof_kind;
typedef struct st_roof_dot {
    const char *name, *says; /* label; what a pointer shows */
    st_roof_kind kind;
    double x, y; /* above 0: operations a byte; 1e9 operations a second */
} st_roof_dot;
typedef struct st_roof_peak {
    const char *name;
    double rate; /* 1e9 a second, above 0 */
} st_roof_peak;
typedef struct st_roof {
    const char *title;
    double bandwidth; /* 1e9 bytes a second, above 0 */
    int n_peaks, n;   /* at least 1, at most 2; at most ST_ROOF_DOTS */
    st_roof_peak peak[2];
    st_roof_dot dot[ST_ROOF_DOTS];
} st_roof;
void st_plot_roofline(pl_text *out, const st_roof *r);
/* A file with n of these figures below each other, each in a <g> that moves it; light and dark as the reader's browser. */
void st_roof_page(pl_text *out, const pl_text *figures, int n);

#endif
