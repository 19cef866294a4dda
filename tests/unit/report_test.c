/* SPDX-License-Identifier: Apache-2.0 */
/* The report's text, figures and drawings: no hostile content is copied, every value is counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "stages/report/coloured.h"
#include "stages/report/drawing.h"
#include "stages/report/html.h"
#include "stages/report/plot.h"
#include "stages/report/report_parts.h"

static pl_text out;

static int fresh(void **state)
{
    (void)state;
    pl_text_reset(&out);
    return 0;
}

static int drop(void **state)
{
    (void)state;
    pl_text_free(&out);
    return 0;
}

static const char *html(const char *s)
{
    pl_text_reset(&out);
    st_html_add(&out, s);
    return pl_text_str(&out);
}

static void text_cannot_become_markup(void **state)
{
    (void)state;
    assert_string_equal(html("<script>alert(\"1\")</script> & 'x'"),
                        "&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; &#39;x&#39;");
    assert_string_equal(html("\xce\xb1-pinene, 10 \xc3\x85, \xf0\x9f\xa7\xaa"), "\xce\xb1-pinene, 10 \xc3\x85, \xf0\x9f\xa7\xaa");
    assert_string_equal(html("a\x01\x7f"
                             "b"),
                        "a\xef\xbf\xbd\xef\xbf\xbd"
                        "b");
    assert_string_equal(html("\xe2\x80\xae"
                             "gnp"),
                        "\xef\xbf\xbd"
                        "gnp");                                                        /* reverses the direction of writing */
    assert_string_equal(html("\xff\xc0\xbc"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"); /* '<' in an overlong encoding */
    assert_string_equal(html("\xed\xa0\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"); /* half of a surrogate pair */
    assert_string_equal(html("end\xe2\x82"), "end\xef\xbf\xbd\xef\xbf\xbd");           /* cut in a character */
    assert_string_equal(html(NULL), "");
}

static void long_text_is_cut_between_characters(void **state)
{
    (void)state;
    st_html_cut(&out, "\xc3\xa9\xc3\xa9\xc3\xa9&", 4);
    assert_string_equal(pl_text_str(&out), "\xc3\xa9\xc3\xa9\xc3\xa9&amp;");
    pl_text_reset(&out);
    st_html_cut(&out, "\xc3\xa9\xc3\xa9\xc3\xa9&", 3);
    assert_string_equal(pl_text_str(&out), "\xc3\xa9\xc3\xa9\xc3\xa9\xe2\x80\xa6");
}

static void numbers_are_short_and_in_full(void **state)
{
    (void)state;
    st_html_real(&out, -0.185123456, 4);
    st_html_count(&out, 1234567);
    st_html_real(&out, -123456.7, 4);
    assert_string_equal(pl_text_str(&out), "<data value=\"-0.185123456\">-0.1851</data><data value=\"1234567\">1,234,567</data>"
                                           "<data value=\"-123456.7\">-123,457</data>");
}

/* ---- figures ---- */

static void a_scale_is_round_and_holds_its_values(void **state)
{
    static const double ends[][2] = { { 0, 1 },       { -11.6, 1.58 },   { 3, 3 },          { 0, 0 },
                                      { 1e-9, 2e-9 }, { -1e300, 1e300 }, { 199.99, 200.01 } };

    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        st_scale s = st_scale_nice(ends[i][0], ends[i][1], 6);
        double steps = (s.hi - s.lo) / s.step;
        assert_true(s.lo <= ends[i][0] && s.hi >= ends[i][1] && s.hi > s.lo);
        assert_true(steps >= 1.99 && steps < 12 && fabs(steps - round(steps)) < 1e-6);
    }
}

static int64_t sum(const int64_t *x, int n)
{
    int64_t all = 0;

    for (int i = 0; i < n; i++)
        all += x[i];
    return all;
}

static void every_value_is_in_a_bin_or_said_to_be_outside(void **state)
{
    st_histogram h = { .name = "x", .unit = "" };

    (void)state;
    st_histogram_init(&h, -2, 3, false);
    for (int i = 0; i <= 1000; i++)
        st_histogram_put(&h, -2 + i * 0.005, i % 10 == 0);
    assert_int_equal(sum(h.all, h.n_bins), 1001);
    assert_int_equal(sum(h.some, h.n_bins), 101);
    st_histogram_put(&h, -1e9, true);
    st_histogram_put(&h, 1e300, false);
    assert_int_equal(h.below, 1);
    assert_int_equal(h.above, 1);
    assert_int_equal(h.n_all, 1003);
    assert_int_equal(h.n_some, 102);
    assert_int_equal(sum(h.all, h.n_bins), 1001);
    st_histogram_put(&h, 3 + 1e-3, false); /* within a bin's width of the end */
    st_histogram_put(&h, -2 - 1e-3, false);
    assert_true(h.above == 2 && h.below == 2 && sum(h.all, h.n_bins) == 1001);
    st_histogram_put(&h, 3 + 1e-14, false); /* rounded */
    assert_true(h.above == 2 && sum(h.all, h.n_bins) == 1002 && h.n_all == 1006);
}

static void whole_numbers_have_a_bin_each(void **state)
{
    static const double values[] = { 0, 0, 1, 5, 5, 5 };
    st_histogram h = { .name = "rings", .unit = "" };

    (void)state;
    st_histogram_init(&h, 0, 5, true);
    for (int i = 0; i < 6; i++)
        st_histogram_put(&h, values[i], false);
    assert_int_equal(h.n_bins, 6);
    assert_int_equal(h.all[0], 2);
    assert_int_equal(h.all[1], 1);
    assert_int_equal(h.all[5], 3);
    st_plot_histogram(&out, &h);
    assert_non_null(strstr(pl_text_str(&out), "<title>5: 3</title>"));
    assert_null(strstr(pl_text_str(&out), "nan"));
}

static void other_bins_are_told_by_both_ends(void **state)
{
    static const struct {
        double hi;
        bool whole;
        const char *title;
    } cases[] = { { 20, false, "<title>2 to 3: 1</title>" }, { 400, true, "<title>0 to 20: 1</title>" } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        st_histogram h = { .name = "x", .unit = "" };
        pl_text_reset(&out);
        st_histogram_init(&h, 0, cases[i].hi, cases[i].whole);
        st_histogram_put(&h, 2, false);
        st_plot_histogram(&out, &h);
        assert_non_null(strstr(pl_text_str(&out), cases[i].title));
    }
}

static void names_in_figures_are_escaped(void **state)
{
    const double x[] = { 1, 2, 3 }, y[] = { 3, 2, 1 };
    const st_curve c[] = { { "<b>", x, y, 3 }, { "none", NULL, NULL, 0 } };
    st_histogram h = { .name = "\"><script>", .unit = "<u>" };
    static st_parity p = { .name = "<i>", .unit = "\"" };

    (void)state;
    st_histogram_init(&h, 0, 1, false);
    st_histogram_put(&h, 0.5, false);
    st_plot_histogram(&out, &h);
    st_plot_curves(&out, "<t>", "epoch", "<loss>", c, 2);
    p.scale = st_scale_nice(0, 1, 6);
    st_parity_put(&p, 0.2, 0.3);
    st_plot_parity(&out, &p);
    for (const char *const *bad = (const char *const[]){ "<script", "<u>", "<b>", "<t>", "<loss>", "<i>", "\"\"", NULL }; *bad;
         bad++)
        assert_null(strstr(pl_text_str(&out), *bad));
    assert_non_null(strstr(pl_text_str(&out), "&quot;&gt;&lt;script&gt;"));
}

static void figures_are_bounded(void **state)
{
    static double x[100000], y[100000];
    static st_parity p = { .name = "p", .unit = "eV" };
    const st_curve c = { "train", x, y, 100000 };

    (void)state;
    p.scale = st_scale_nice(0, 100000, 6);
    for (int i = 0; i < 100000; i++) {
        x[i] = i;
        y[i] = (i * 7919) % 100000;
        st_parity_put(&p, x[i], y[i]);
    }
    st_plot_curves(&out, "loss", "epoch", "loss", &c, 1);
    assert_in_range(out.len, 2000, 12000);
    pl_text_reset(&out);
    st_plot_parity(&out, &p);
    assert_in_range(out.len, 1000, 200000);
    assert_int_equal(sum(p.cell[0], ST_CELLS * ST_CELLS), 100000);
}

static int occurrences(const char *what)
{
    int n = 0;

    for (const char *at = pl_text_str(&out); (at = strstr(at, what)) != NULL; at++)
        n++;
    return n;
}

/* Three steps are a little more than the end, by rounding. */
static void an_axis_has_a_mark_at_both_of_its_ends(void **state)
{
    static const double steps[] = { 0.1, 1e-4 };

    (void)state;
    for (int i = 0; i < 2; i++) {
        static st_parity p = { .name = "p", .unit = "eV" };
        p.scale = (st_scale){ .lo = 0, .hi = i == 0 ? 0.3 : 3e-4, .step = steps[i] };
        assert_true(3 * p.scale.step > p.scale.hi);
        st_parity_put(&p, 0, 0);
        pl_text_reset(&out);
        st_plot_parity(&out, &p);
        assert_int_equal(occurrences("class=\"tick\""), 4);
        assert_int_equal(occurrences("class=\"grid\""), 4);
    }
}

/* Values that differ by one in 10^8 or less: their ends are rounded by up to 3e-6 of a step. */
static void the_last_mark_of_close_values_is_drawn(void **state)
{
    static const struct {
        double lo, hi;
        int marks;
    } cases[] = { { 2.010112367203398, 2.0101123699706887, 6 },
                  { 0.06339772653412734, 0.06339772757635569, 6 },
                  { 64.95094970051687, 64.95094983744094, 8 } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        st_histogram h = { .name = "x", .unit = "" };
        st_histogram_init(&h, cases[i].lo, cases[i].hi, false);
        st_histogram_put(&h, cases[i].lo, false);
        pl_text_reset(&out);
        st_plot_histogram(&out, &h);
        assert_int_equal(occurrences("class=\"tick\""), cases[i].marks);
    }
}

static void a_query_that_has_ended_has_no_more_rows(void **state)
{
    st_report r = { .code = PL_OK };
    sqlite3_stmt *none = NULL;

    (void)state;
    assert_false(st_report_row(&r, &none));
    assert_true(r.code == PL_OK && none == NULL);
}

static void no_points_are_no_figure(void **state)
{
    const st_curve c = { "train", NULL, NULL, 0 };

    (void)state;
    st_plot_curves(&out, "loss", "epoch", "loss", &c, 1);
    assert_int_equal(out.len, 0);
}

/* ---- drawings ---- */

#define HEAD "<svg width=\"100\" viewBox=\"0 0 9 9\"><title>t</title><g transform=\"translate(0,0)\">"
#define LINE "<line x1=\"40.0\" y1=\"60.0\" x2=\"74.6\" y2=\"80.0\" opacity=\"1.0\" stroke=\"rgb(0,0,0)\"  stroke-width=\"2.0\"/>\n"
#define TEXT(fill, label) "<text x=\"68.64\" y=\"28\" fill=\"" fill "\" font-size=\"16\" >" label "</text>\n"
#define WEDGE(points) "<polygon points=\"" points "\" stroke-width=\"2\" fill=\"rgb(0,0,0)\"/>"
#define TAIL "</g></svg>"

static void a_drawing_is_made_again_from_its_numbers(void **state)
{
    st_picture frame;

    (void)state;
    assert_true(
        st_drawing_add(&out, HEAD LINE LINE WEDGE("1 2 3.5 4 5 6 ") TEXT("rgb(255,12,12)", "OH") TAIL, "C<O>", "hit1", &frame));
    assert_string_equal(
        pl_text_str(&out),
        "<svg class=\"mol\" role=\"img\" width=\"46\" height=\"39\" viewBox=\"-90 -80 1143 980\" aria-label=\"C&lt;O&gt;\">"
        "<g class=\"ink\" id=\"hit1\"><path stroke-width=\"20\" d=\"M400 600L746 800M400 600L746 800\"/><path class=\"w\" d=\"M10 20L35 "
        "40L50 60Z\"/><text x=\"673\" y=\"294\" font-size=\"200\" fill=\"#ff0c0c\">OH</text></g></svg>");
    pl_text_reset(&out);
    st_drawing_again(&out, &frame, "again");
    assert_string_equal(pl_text_str(&out),
                        "<svg class=\"mol\" role=\"img\" width=\"46\" height=\"39\" viewBox=\"-90 -80 1143 980\" "
                        "aria-label=\"again\"><use href=\"#hit1\"/></svg>");
}

#define PIECE(x, size, label) "<text x=\"" x "\" y=\"28\" fill=\"rgb(0,0,255)\" font-size=\"" size "\" >" label "</text>"

/* Letters are drawn larger, about the atom's: the last one where hydrogens stand before it. */
static void letters_of_a_label_do_not_move_onto_each_other(void **state)
{
    (void)state;
    assert_true(st_drawing_add(&out, HEAD LINE PIECE("100", "16", "NH") PIECE("124", "13", "2") TAIL, "x", "", NULL));
    assert_non_null(strstr(pl_text_str(&out), "<text x=\"987\" y=\"294\" font-size=\"200\" fill=\"#0000ff\">NH</text>"
                                              "<text x=\"1287\" y=\"291\" font-size=\"162\" fill=\"#0000ff\">2</text>"));
    pl_text_reset(&out);
    assert_true(st_drawing_add(&out, HEAD LINE PIECE("100", "16", "H") PIECE("112", "13", "2") PIECE("119", "16", "N") TAIL, "x",
                               "", NULL));
    assert_non_null(strstr(pl_text_str(&out), "<text x=\"940\" y=\"294\" font-size=\"200\" fill=\"#0000ff\">H</text>"
                                              "<text x=\"1090\" y=\"291\" font-size=\"162\" fill=\"#0000ff\">2</text>"
                                              "<text x=\"1177\" y=\"294\" font-size=\"200\" fill=\"#0000ff\">N</text>"));
}

/* A bond has one length on the page, until the molecule is wider than the picture. */
static void bonds_have_one_length_in_pixels(void **state)
{
    st_picture small, large;

    (void)state;
    assert_true(st_drawing_add(&out, HEAD "<line x1=\"0\" y1=\"0\" x2=\"40\" y2=\"0\" stroke-width=\"2\"/>" TAIL, "x", "", &small));
    assert_true(
        st_drawing_add(&out, HEAD "<line x1=\"0\" y1=\"0\" x2=\"400\" y2=\"0\" stroke-width=\"2\"/>" TAIL, "x", "", &large));
    assert_int_equal(large.width - small.width, 9 * ST_BOND_PIXELS);
    assert_true(
        st_drawing_add(&out, HEAD "<line x1=\"0\" y1=\"0\" x2=\"900\" y2=\"0\" stroke-width=\"2\"/>" TAIL, "x", "", &large));
    assert_int_equal(large.width, ST_PICTURE_WIDE);
}

static void a_drawing_without_stereo_says_so(void **state)
{
    st_picture frame;

    (void)state;
    assert_true(st_drawing_add(&out,
                               HEAD "<text x=\"4\" y=\"14\" fill=\"rgb(0,0,0)\" font-size=\"12\">stereo not drawn</text>" LINE TAIL,
                               "x", "", &frame));
    assert_non_null(strstr(pl_text_str(&out), "<text x=\"40\" y=\"140\" font-size=\"120\">stereo not drawn</text><path"));
    /* 16 letters of half their height in width, from x 40, above y 140 for 4/5 of it; the line ends at y 800; 100 around all. */
    assert_true(frame.x == 40 - 100 && frame.wide == 16 * 120 / 2 + 200);
    assert_true(frame.y == 140 - 96 - 100 && frame.high == 800 - (140 - 96) + 200);
}

/* Of 1 to 100 units, for a label as for the note. */
static void letters_have_a_size_that_can_be_drawn(void **state)
{
    static const struct {
        const char *size;
        bool good;
    } sizes[] = { { "0.9", false }, { "1", true }, { "1.1", true }, { "99.9", true }, { "100", true }, { "100.1", false } };
    static const char *const words[] = { "stereo not drawn", "OH" };
    char svg[900];

    (void)state;
    for (size_t i = 0; i < 2 * sizeof sizes / sizeof *sizes; i++) {
        (void)snprintf(svg, sizeof svg, HEAD "<text x=\"4\" y=\"14\" fill=\"rgb(0,0,0)\" font-size=\"%s\">%s</text>" LINE TAIL,
                       sizes[i / 2].size, words[i % 2]);
        if (st_drawing_add(&out, svg, "x", "", NULL) != sizes[i / 2].good)
            fail_msg("%s of size %s", words[i % 2], sizes[i / 2].size);
    }
}

static void what_is_not_a_drawing_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "hello",
        HEAD TAIL,
        "<svg>",
        HEAD LINE "<script>alert(1)</script>" TAIL,
        HEAD LINE "<image href=\"http://x/\"/>" TAIL,
        HEAD LINE "<a href=\"javascript:x\">" TAIL,
        HEAD LINE "<!-- x -->" TAIL,
        HEAD LINE "<![CDATA[<b>]]>" TAIL,
        HEAD LINE "<foreignObject>" TAIL,
        HEAD LINE "<style>*{}</style>" TAIL,
        HEAD LINE "<",
        HEAD LINE "<line",
        HEAD LINE "<line x1=\"1",
        HEAD "<line x1=\"1e9\" y1=\"1\" x2=\"1\" y2=\"1\" stroke-width=\"2\"/>" TAIL,
        HEAD "<line x1=\"nan\" y1=\"1\" x2=\"1\" y2=\"1\" stroke-width=\"2\"/>" TAIL,
        HEAD "<line x1=\"1\" y1=\"1\" x2=\"1\" stroke-width=\"2\"/>" TAIL,
        HEAD "<line x1=1 y1=\"1\" x2=\"1\" y2=\"1\" stroke-width=\"2\"/>" TAIL,
        HEAD TEXT("url(#x)", "O") TAIL,
        HEAD TEXT("rgb(1,2,300)", "O") TAIL,
        HEAD TEXT("rgb(1,2,3)\" onload=\"x", "O<b>") TAIL,
        HEAD LINE TEXT("rgb(1,2,3)", "stereo not drawn.") TAIL,
        HEAD LINE TEXT("rgb(1,2,3)", "a b") TAIL,
        HEAD TEXT("rgb(1,2,3)", "&#60;") TAIL,
        HEAD TEXT("rgb(1,2,3)", "") TAIL,
        HEAD TEXT("rgb(1,2,3)", "averylonglabel") TAIL,
        HEAD TEXT("rgb(1,2,3)", "O<script>") TAIL,
        HEAD WEDGE("1 2 3") TAIL,
        HEAD WEDGE("1 2 x 4 5 6") TAIL,
        HEAD WEDGE("") TAIL,
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (st_drawing_add(&out, bad[i], "x", "", NULL))
            fail_msg("accepted: %s", bad[i]);
        assert_int_equal(out.len, 0);
    }
}

/* A drawing with one byte changed or its end cut off is refused, or gives a drawing without new content. */
static void damaged_drawings_stay_drawings(void **state)
{
    static const char whole[] = HEAD LINE WEDGE("1 2 3.5 4 5 6 ") TEXT("rgb(255,12,12)", "OH") TAIL, bad[] = "<>\"'&=/ \x01\xff";

    (void)state;
    for (size_t i = 0; i < sizeof whole - 1; i++)
        for (size_t k = 0; k < sizeof bad; k++) { /* the last one is the NUL: cut there */
            char svg[sizeof whole];
            const char *tail;
            memcpy(svg, whole, sizeof whole);
            svg[i] = bad[k];
            pl_text_reset(&out);
            if (!st_drawing_add(&out, svg, "x", "", NULL)) {
                assert_int_equal(out.len, 0);
                continue;
            }
            for (tail = pl_text_str(&out) + 4; (tail = strchr(tail, '<')) != NULL; tail++)
                assert_true(strncmp(tail, "<path ", 6) == 0 || strncmp(tail, "<g class=\"ink\">", 15) == 0 ||
                            strncmp(tail, "</g>", 4) == 0 || strncmp(tail, "<text ", 6) == 0 || strncmp(tail, "</text>", 7) == 0 ||
                            strcmp(tail, "</svg>") == 0);
            assert_null(strpbrk(pl_text_str(&out), "&'\x01\xff"));
        }
}

static void a_drawing_that_is_too_large_is_refused(void **state)
{
    pl_text svg = { 0 };

    (void)state;
    pl_text_add(&svg, HEAD);
    for (int i = 0; i < 1000; i++)
        pl_text_add(&svg, LINE);
    pl_text_add(&svg, TAIL);
    assert_false(st_drawing_add(&out, pl_text_str(&svg), "x", "", NULL));
    pl_text_free(&svg);
}

#define CASE(f) cmocka_unit_test_setup(f, fresh)

/* ---- rooflines ---- */

typedef struct label {
    double x, y, wide;
    char name[40];
} label;

/* The labels of the dots, in the order of the text. */
static int labels_read(label l[ST_ROOF_DOTS])
{
    int n = 0;

    for (const char *at = pl_text_str(&out); (at = strstr(at, "<g class=\"point")) != NULL && n < ST_ROOF_DOTS; n++, at++) {
        const char *text = strstr(at, "<text ");
        assert_non_null(text);
        assert_int_equal(sscanf(text, "<text x=\"%lf\" y=\"%lf\">%39[^<]", &l[n].x, &l[n].y, l[n].name), 3);
        l[n].wide = 6 * (double)strlen(l[n].name);
    }
    return n;
}

static st_roof crowded_roof(void)
{
    static const char *const names[] = { "prepare",  "radial",     "edges",       "attention",      "sum",      "head", "weights",
                                         "sum back", "edges back", "radial back", "attention back", "head back" };
    st_roof r = { .title = "bonds", .bandwidth = 10, .n_peaks = 2, .n = 12, .peak = { { "float32", 250 }, { "bf16", 2500 } } };

    for (int i = 0; i < 12; i++) /* four places, three dots at each */
        r.dot[i] = (st_roof_dot){ names[i], "says", (st_roof_kind)(i % 3), pow(10, i % 4) * (1 + 0.1 * i / 4), 40 + 10 * (i % 4) };
    return r;
}

static void each_dot_of_a_roofline_has_a_label_of_its_own(void **state)
{
    st_roof r = crowded_roof();
    label l[ST_ROOF_DOTS];

    (void)state;
    st_plot_roofline(&out, &r);
    assert_int_equal(labels_read(l), 12);
    for (int i = 0; i < 12; i++) {
        assert_string_equal(l[i].name, r.dot[i].name);
        assert_true(l[i].x > 60 && l[i].x + l[i].wide < ST_ROOF_WIDE && l[i].y > 30 && l[i].y < ST_ROOF_HIGH - 44);
        for (int j = 0; j < i; j++)
            if (fabs(l[i].y - l[j].y) < 11 && l[i].x < l[j].x + l[j].wide && l[j].x < l[i].x + l[i].wide)
                fail_msg("'%s' is over '%s'", l[i].name, l[j].name);
    }
    assert_null(strstr(pl_text_str(&out), "nan"));
}

/* 10 GB/s meet 1000 GFLOP/s at 100 operations a byte: a line of 45 degrees in decades, and a tenth of both is on it. */
static void the_roof_is_where_bandwidth_and_peak_meet(void **state)
{
    st_roof r = { .title = "<b>\"", .bandwidth = 10, .n_peaks = 1, .n = 2, .peak = { { "peak", 1000 } } };
    double from[2], to[2], level[2], low[2], on[2];
    const char *dot;

    (void)state;
    r.dot[0] = (st_roof_dot){ "low", "", ST_ROOF_BACK, 1, 1 };
    r.dot[1] = (st_roof_dot){ "on the line", "", ST_ROOF_FORWARD, 10, 100 };
    st_plot_roofline(&out, &r);
    assert_int_equal(sscanf(strstr(pl_text_str(&out), "\"roof\" d="), "\"roof\" d=\"M%lf %lfL%lf %lf", from, from + 1, to, to + 1),
                     4);
    assert_int_equal(
        sscanf(strstr(strstr(pl_text_str(&out), "\"roof\" d=") + 1, "\"roof\" d="), "\"roof\" d=\"M%lf %lfH", level, level + 1), 2);
    assert_true(fabs(to[0] - level[0]) < 0.11 && fabs(to[1] - level[1]) < 0.11);
    dot = strstr(pl_text_str(&out), "point k1");
    assert_int_equal(sscanf(strstr(dot, "\"dot\" d="), "\"dot\" d=\"M%lf %lfm", low, low + 1), 2);
    dot = strstr(dot, "point k0");
    assert_int_equal(sscanf(strstr(dot, "\"dot\" d="), "\"dot\" d=\"M%lf %lfm", on, on + 1), 2);
    assert_true(fabs((on[0] - low[0]) - (to[0] - on[0])) < 0.3);     /* 1, 10, 100 operations a byte */
    assert_true(fabs((low[1] - on[1]) - 2 * (on[1] - to[1])) < 0.3); /* 1, 100, 1000 a second        */
    assert_true(fabs((on[1] - to[1]) * (to[0] - from[0]) - (from[1] - to[1]) * (to[0] - on[0])) < 60);
    assert_null(strstr(pl_text_str(&out), "<b>"));
}

static const char *svg_of_worker;
pl_code __wrap_ch_worker_draw(ch_worker *w, const char *smiles, ch_drawn *drawn, pl_arena *mem, pl_error *err);

pl_code __wrap_ch_worker_draw(ch_worker *w, const char *smiles, ch_drawn *drawn, pl_arena *mem, pl_error *err)
{
    (void)w, (void)smiles, (void)mem, (void)err;
    *drawn = (ch_drawn){ .svg = svg_of_worker, .molfile = "" };
    return PL_OK;
}

/* The page shows its SMILES, and says why. */
static void a_drawing_with_a_script_is_not_in_the_page(void **state)
{
    st_drawn drawn = { 0 };
    st_report r = { .out = &out, .worker = (ch_worker *)(uintptr_t)&drawn, .drawn = &drawn };

    (void)state;
    svg_of_worker = HEAD LINE "<script>alert(1)</script>" TAIL;
    st_report_draw(&r, "CC(=O)O", "x", NULL);
    assert_string_equal(pl_text_str(&out), "<code>CC(=O)O</code>");
    assert_string_equal(drawn.why, "CC(=O)O: the drawing has something in it that is not allowed here");
    assert_true(drawn.n_plain == 1 && drawn.n_drawn == 0);
    drawn = (st_drawn){ 0 };
    pl_text_reset(&out);
    svg_of_worker = HEAD LINE TAIL;
    st_report_draw(&r, "CC", "x", NULL);
    assert_non_null(strstr(pl_text_str(&out), "<svg class=\"mol\""));
    assert_true(drawn.n_plain == 0 && drawn.n_drawn == 1 && drawn.why[0] == '\0');
}

/* ---- atoms with the colours of what they contribute ---- */

#define MOLFILE "\n\n\n  2  1  0  0  0  0  0  0  0  0999 V2000\n"
#define THIRD_ATOM "    3.0000    2.0000    0.0000 H   0  0\n"
#define TWO_ATOMS "    1.0000    2.0000    0.0000 C   0  0\n    2.0000    2.0000    0.0000 O   0  0\n"

static int discs(const char *molfile, int32_t n)
{
    static const uint8_t z[] = { 6, 8, 1 };
    static const double by[] = { -0.5, 1.25, 0 };
    const ch_drawn drawn = { .svg = HEAD LINE TAIL, .molfile = molfile };
    const st_colours colours = { .n = n, .z = z, .by = by };
    pl_arena *mem = pl_arena_new(0);
    int found = 0;

    pl_text_reset(&out);
    assert_true(st_coloured_add(&out, &drawn, "CO", &colours, NULL, mem));
    for (const char *s = pl_text_str(&out); (s = strstr(s, "<circle")) != NULL; s++)
        found++;
    pl_arena_free(mem);
    return found;
}

static void atoms_have_discs_only_where_a_molfile_gives_their_places(void **state)
{
    static const char *const damaged[] = {
        "",
        "\n\n\n",
        "\n\n\n  2  1  0  0  0  0  0  0  0  0999 V3000\n" TWO_ATOMS "  1  2  1  0\n",
        "\n\n  2  1  0  0  0  0  0  0  0  0999 V2000\n" TWO_ATOMS "  1  2  1  0\n",
        MOLFILE,
        MOLFILE "    1.0000    2.0000    0.0000 C   0  0\n",
        MOLFILE "    1.0000    2.0000    0.0000 C   0  0\n    x.0000    2.0000    0.0000 O   0  0\n  1  2  1  0\n",
        MOLFILE TWO_ATOMS,
        MOLFILE TWO_ATOMS "  0  2  1  0\n",
        MOLFILE TWO_ATOMS "  1  0  1  0\n",
        MOLFILE TWO_ATOMS "  3  2  1  0\n",
        MOLFILE TWO_ATOMS "  1  3  1  0\n",
        MOLFILE TWO_ATOMS "  1",
        MOLFILE TWO_ATOMS "  1  1  1  0\n", /* no length to scale by */
    };

    (void)state;
    assert_int_equal(discs(MOLFILE TWO_ATOMS "  1  2  1  0\n", 2), 2);
    assert_non_null(strstr(pl_text_str(&out), "<title>C 1: -0.5</title>"));
    assert_non_null(strstr(pl_text_str(&out), "<title>O 2: +1.25</title>"));
    assert_int_equal(discs(MOLFILE TWO_ATOMS "  2  1", 3), 2);
    assert_int_equal(discs("\n\n\n  2  0  0  0  0  0  0  0  0  0999 V2000\n" TWO_ATOMS, 2), 2);
    assert_int_equal(
        discs("\n\n\n  3  2  0  0  0  0  0  0  0  0999 V2000\n" TWO_ATOMS THIRD_ATOM "  1  2  1  0\n  2  3  1  0\n", 3), 2);
    assert_int_equal(discs(MOLFILE TWO_ATOMS "  1  2  1  0\n", 1), 0); /* of another molecule */
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++)
        if (discs(damaged[i], 3) != 0)
            fail_msg("molfile %zu has discs: %s", i, pl_text_str(&out));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(text_cannot_become_markup),
        CASE(atoms_have_discs_only_where_a_molfile_gives_their_places),
        CASE(long_text_is_cut_between_characters),
        CASE(numbers_are_short_and_in_full),
        CASE(a_scale_is_round_and_holds_its_values),
        CASE(every_value_is_in_a_bin_or_said_to_be_outside),
        CASE(whole_numbers_have_a_bin_each),
        CASE(other_bins_are_told_by_both_ends),
        CASE(names_in_figures_are_escaped),
        CASE(figures_are_bounded),
        CASE(an_axis_has_a_mark_at_both_of_its_ends),
        CASE(the_last_mark_of_close_values_is_drawn),
        CASE(a_query_that_has_ended_has_no_more_rows),
        CASE(no_points_are_no_figure),
        CASE(each_dot_of_a_roofline_has_a_label_of_its_own),
        CASE(the_roof_is_where_bandwidth_and_peak_meet),
        CASE(a_drawing_is_made_again_from_its_numbers),
        CASE(letters_of_a_label_do_not_move_onto_each_other),
        CASE(bonds_have_one_length_in_pixels),
        CASE(a_drawing_without_stereo_says_so),
        CASE(letters_have_a_size_that_can_be_drawn),
        CASE(what_is_not_a_drawing_is_refused),
        CASE(damaged_drawings_stay_drawings),
        CASE(a_drawing_that_is_too_large_is_refused),
        CASE(a_drawing_with_a_script_is_not_in_the_page),
    };

    return cmocka_run_group_tests(tests, NULL, drop);
}
