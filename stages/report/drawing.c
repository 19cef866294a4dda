/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/report/drawing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chem/worker/worker_client.h"
#include "stages/report/html.h"

enum {
    MAX_BYTES = 60000,
    MAX_ATTRS = 16,
    PAD = 100,
    MARK = 170, /* radius of a disc under an atom */
    BOND = 400 /* tenths of the worker's units */,
    LARGER = 125 /* letters, % */,
    PIECES_MAX = 6
};
#define COORD_MAX 1e4 /* units of the worker's drawing; a bond is 40 */

typedef struct span {
    const char *s;
    size_t n;
} span;

typedef struct element {
    span name;
    int n_attrs;
    struct {
        span name, value;
    } attr[MAX_ATTRS];
    const char *end; /* after its '>' */
} element;

typedef struct piece { /* of a label */
    char text[13];
    long x, y, size; /* where its baseline begins */
    int rgb[3];
} piece;

/* Coordinates are written as whole tenths: shorter, and the same in every locale. */
typedef struct drawing {
    pl_text body;
    long x_lo, x_hi, y_lo, y_hi;
    int n_shapes, stroke; /* of the path that is open; 0: none */
    piece label[PIECES_MAX];
    int n_pieces; /* of the label that is not written yet */
} drawing;

static bool is(span a, const char *word) { return a.n == strlen(word) && memcmp(a.s, word, a.n) == 0; }

/* ---- reading ---- */

static const char *skip(const char *p, const char *set) { return p + strspn(p, set); }

/* One tag at p, which is at '<'. NULL: not one that we can read. */
static const char *read_tag(element *e, const char *p)
{
    static const char blank[] = " \t\r\n", ends[] = " \t\r\n=/>\"'<";

    *e = (element){ .name = { p + 1, strcspn(p + 2, ends) + 1 } };
    p = skip(p + 1 + e->name.n, blank);
    while (*p != '>' && *p != '/' && *p != '?') {
        span name = { p, strcspn(p, ends) }, value;
        if (name.n == 0 || strncmp(p + name.n, "=\"", 2) != 0 || e->n_attrs == MAX_ATTRS)
            return NULL;
        value.s = p + name.n + 2;
        value.n = strcspn(value.s, "\"<");
        if (value.s[value.n] != '"')
            return NULL;
        e->attr[e->n_attrs].name = name;
        e->attr[e->n_attrs++].value = value;
        p = skip(value.s + value.n + 1, blank);
    }
    p += *p == '/' || *p == '?';
    return *p == '>' ? p + 1 : NULL;
}

static span attr(const element *e, const char *name)
{
    for (int i = 0; i < e->n_attrs; i++)
        if (is(e->attr[i].name, name))
            return e->attr[i].value;
    return (span){ "", 0 };
}

/* A number in tenths. */
static bool to_tenths(span text, long *out)
{
    char word[32];
    double x;

    if (text.n == 0 || text.n >= sizeof word)
        return false;
    memcpy(word, text.s, text.n);
    word[text.n] = '\0';
    if (!pl_parse_real(word, &x) || !(fabs(x) < COORD_MAX))
        return false;
    *out = lround(10 * x);
    return true;
}

static bool attr_tenths(const element *e, const char *name, long *out) { return to_tenths(attr(e, name), out); }

/* "rgb(12,12,255)" */
static bool to_color(span text, int rgb[3])
{
    char word[24];
    int used = 0;

    if (text.n == 0 || text.n >= sizeof word)
        return false;
    memcpy(word, text.s, text.n);
    word[text.n] = '\0';
    if (sscanf(word, "rgb(%3d,%3d,%3d)%n", &rgb[0], &rgb[1], &rgb[2], &used) != 3 || word[used] != '\0' || used == 0)
        return false;
    for (int i = 0; i < 3; i++)
        if (rgb[i] < 0 || rgb[i] > 255)
            return false;
    return true;
}

/* ---- writing ---- */

static void close_path(drawing *d)
{
    pl_text_add(&d->body, d->stroke ? "\"/>" : "");
    d->stroke = 0;
}

static void see(drawing *d, long x, long y, long half_wide, long half_high)
{
    bool first = d->n_shapes++ == 0;

    d->x_lo = first || x - half_wide < d->x_lo ? x - half_wide : d->x_lo;
    d->x_hi = first || x + half_wide > d->x_hi ? x + half_wide : d->x_hi;
    d->y_lo = first || y - half_high < d->y_lo ? y - half_high : d->y_lo;
    d->y_hi = first || y + half_high > d->y_hi ? y + half_high : d->y_hi;
}

static bool add_line(drawing *d, const element *e)
{
    long x1, y1, x2, y2, stroke;

    if (!attr_tenths(e, "x1", &x1) || !attr_tenths(e, "y1", &y1) || !attr_tenths(e, "x2", &x2) || !attr_tenths(e, "y2", &y2) ||
        !attr_tenths(e, "stroke-width", &stroke) || stroke < 1 || stroke > 100)
        return false;
    if (d->stroke != (int)stroke) {
        close_path(d);
        pl_text_addf(&d->body, "<path stroke-width=\"%ld\" d=\"", stroke);
        d->stroke = (int)stroke;
    }
    pl_text_addf(&d->body, "M%ld %ldL%ld %ld", x1, y1, x2, y2);
    see(d, x1, y1, 0, 0);
    see(d, x2, y2, 0, 0);
    return true;
}

static bool add_polygon(drawing *d, const element *e)
{
    static const char blank[] = " ,\t\r\n";
    span points = attr(e, "points");
    const char *p = points.s, *end = points.s + points.n;
    long at[2];
    int n = 0;

    close_path(d);
    pl_text_add(&d->body, "<path class=\"w\" d=\"");
    for (; (p = skip(p, blank)) < end; n++) {
        span word = { p, strcspn(p, " ,\t\r\n\"") };
        if (!to_tenths(word, &at[n % 2]))
            return false;
        p += word.n;
        if (n % 2 == 0)
            continue;
        pl_text_addf(&d->body, "%c%ld %ld", n == 1 ? 'M' : 'L', at[0], at[1]);
        see(d, at[0], at[1], 0, 0);
    }
    pl_text_add(&d->body, "Z\"/>");
    return n >= 6 && n % 2 == 0;
}

/* ---- labels: an atom's letters, a number of hydrogens, a charge, each a text of its own beside the last ---- */

static void write_piece(drawing *d, const piece *p, long x)
{
    const long y = p->y + p->size * (LARGER - 100) / 280, size = p->size * LARGER / 100,
               half = size * (long)strlen(p->text) * 35 / 100;

    close_path(d);
    pl_text_addf(&d->body, "<text x=\"%ld\" y=\"%ld\" font-size=\"%ld\" fill=\"#%02x%02x%02x\">%s</text>", x, y, size,
                 (unsigned)p->rgb[0], (unsigned)p->rgb[1], (unsigned)p->rgb[2], p->text);
    see(d, x + half, y - size * 2 / 5, half, size * 2 / 5);
}

/* Larger than the worker has it, about the letter of the atom: the last one if the hydrogens stand before it. */
static void close_label(drawing *d)
{
    if (d->n_pieces == 0)
        return;
    const piece *first = &d->label[0], *last = &d->label[d->n_pieces - 1];
    const bool before = first->text[0] == 'H' && (d->n_pieces > 1 ? last->text[1] == '\0' : first->text[1] >= 'A');
    const piece *atom = before ? last : first;

    for (int i = 0; i < d->n_pieces; i++) {
        const piece *p = &d->label[i];
        long x = atom->x + (p->x - atom->x) * LARGER / 100 - atom->size * (LARGER - 100) / 300;
        if (before && d->n_pieces == 1)
            x -= atom->size * (LARGER - 100) * 7 / 1000;
        write_piece(d, p, x);
    }
    d->n_pieces = 0;
}

static bool continues(const drawing *d, const piece *p)
{
    const piece *last = d->n_pieces > 0 ? &d->label[d->n_pieces - 1] : NULL;

    return last != NULL && d->n_pieces < PIECES_MAX && labs(p->y - last->y) < 80 && p->x > last->x &&
           p->x < last->x + last->size * (long)strlen(last->text) && memcmp(p->rgb, last->rgb, sizeof p->rgb) == 0;
}

/* Text beside the molecule, as the worker has it. */
static bool add_note(drawing *d, const element *e, span note)
{
    const long n = (long)note.n;
    long x, y, size;

    if (!attr_tenths(e, "x", &x) || !attr_tenths(e, "y", &y) || !attr_tenths(e, "font-size", &size) || size < 10 || size > 1000)
        return false;
    close_label(d);
    close_path(d);
    pl_text_addf(&d->body, "<text x=\"%ld\" y=\"%ld\" font-size=\"%ld\">%.*s</text>", x, y, size, (int)n, note.s);
    see(d, x + size * n / 4, y - size * 2 / 5, size * n / 4, size * 2 / 5);
    return true;
}

static bool add_text(drawing *d, const element *e)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-_*.";
    span label = { e->end, strcspn(e->end, "<") };
    piece p;

    if (is(label, CH_NO_STEREO) && strncmp(label.s + label.n, "</text>", 7) == 0)
        return add_note(d, e, label);

    if (label.n == 0 || label.n >= sizeof p.text || strspn(label.s, letters) != label.n ||
        strncmp(label.s + label.n, "</text>", 7) != 0)
        return false;
    memcpy(p.text, label.s, label.n);
    p.text[label.n] = '\0';
    if (!attr_tenths(e, "x", &p.x) || !attr_tenths(e, "y", &p.y) || !attr_tenths(e, "font-size", &p.size) || p.size < 10 ||
        p.size > 1000 || !to_color(attr(e, "fill"), p.rgb))
        return false;
    if (!continues(d, &p))
        close_label(d);
    d->label[d->n_pieces++] = p;
    return true;
}

static bool add_element(drawing *d, const element *e)
{
    static const char *const frame[] = { "svg", "/svg", "g", "/g", "rect", "title", "/title", "/text", "?xml" };

    if (is(e->name, "line"))
        return add_line(d, e);
    if (is(e->name, "polygon"))
        return add_polygon(d, e);
    if (is(e->name, "text"))
        return add_text(d, e);
    for (size_t i = 0; i < sizeof frame / sizeof *frame; i++)
        if (is(e->name, frame[i]))
            return true;
    return false;
}

static bool read_all(drawing *d, const char *svg)
{
    element e;

    if (strlen(svg) > MAX_BYTES)
        return false;
    for (const char *p = svg; (p = strchr(p, '<')) != NULL; p = e.end) {
        if (p[1] == '\0' || (e.end = read_tag(&e, p)) == NULL || !add_element(d, &e))
            return false;
    }
    close_label(d);
    close_path(d);
    return d->n_shapes > 0;
}

static st_picture frame_of(const drawing *d, const char *id)
{
    st_picture f = {
        .x = d->x_lo - PAD, .y = d->y_lo - PAD, .wide = d->x_hi - d->x_lo + 2L * PAD, .high = d->y_hi - d->y_lo + 2L * PAD
    };
    const double fits = fmin((double)ST_PICTURE_WIDE / (double)f.wide, (double)ST_PICTURE_HIGH / (double)f.high);
    const double scale = fmin((double)ST_BOND_PIXELS / BOND, fits);

    (void)snprintf(f.id, sizeof f.id, "%s", id);
    f.width = lround(scale * (double)f.wide);
    f.height = lround(scale * (double)f.high);
    return f;
}

static void add_begin(pl_text *out, const st_picture *f, const char *alt)
{
    pl_text_addf(out, "<svg class=\"mol\" role=\"img\" width=\"%ld\" height=\"%ld\" viewBox=\"%ld %ld %ld %ld\" aria-label=\"",
                 f->width, f->height, f->x, f->y, f->wide, f->high);
    st_html_add(out, alt);
    pl_text_add(out, "\">");
}

/* Colours that also those see apart who do not see red or green. */
static void add_marks(pl_text *out, const st_mark *mark, int n)
{
    for (int k = 0; k < n; k++)
        pl_text_addf(out, "<circle cx=\"%ld\" cy=\"%ld\" r=\"%d\" fill=\"%s\" fill-opacity=\"%.2f\"><title>%s</title></circle>",
                     lround(10 * mark[k].x), lround(10 * mark[k].y), (int)MARK, mark[k].by > 0 ? "#e66101" : "#2166ac",
                     0.1 + 0.75 * fmin(fabs(mark[k].by), 1), mark[k].title);
}

bool st_drawing_add(pl_text *out, const char *svg, const char *alt, const char *id, st_picture *frame)
{
    return st_drawing_add_marked(out, svg, alt, id, frame, NULL, 0);
}

bool st_drawing_add_marked(pl_text *out, const char *svg, const char *alt, const char *id, st_picture *frame, const st_mark *mark,
                           int n)
{
    drawing d = { .n_shapes = 0 };
    bool good = read_all(&d, svg);

    pl_text_depend(out, &d.body);
    for (int k = 0; k < n && good; k++)
        see(&d, lround(10 * mark[k].x), lround(10 * mark[k].y), MARK, MARK);
    if (good) {
        const st_picture f = frame_of(&d, id);
        add_begin(out, &f, alt);
        add_marks(out, mark, n);
        pl_text_addf(out, id[0] != '\0' ? "<g class=\"ink\" id=\"%s\">" : "<g class=\"ink\">%s", id);
        pl_text_add_n(out, pl_text_str(&d.body), d.body.len);
        pl_text_add(out, "</g></svg>");
        if (frame != NULL)
            *frame = f;
    }
    pl_text_free(&d.body);
    return good;
}

void st_drawing_again(pl_text *out, const st_picture *frame, const char *alt)
{
    add_begin(out, frame, alt);
    pl_text_addf(out, "<use href=\"#%s\"/></svg>", frame->id);
}
