/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/report/sheet.h"

#include <math.h>

#include "stages/files/out_file.h"
#include "stages/report/html.h"

enum { BORDER = 12, CAPTION = 22, LETTER = 7 }; /* pixels; LETTER: about the width of one */

static double sum_of(const double *x, int32_t n)
{
    double sum = 0;

    for (int32_t k = 0; k < n; k++)
        sum += x[k];
    return sum;
}

void st_sheet_caption(pl_text *out, const st_subject *s, const st_moves *moves, const char *component, const nn_target *target)
{
    const char *unit = moves->log_odds ? "log odds" : target->unit;

    if (moves->one_by_one) {
        pl_text_addf(out, "%s, %s: %.4g%s%s, atoms: what it loses without each", component, target->name, moves->value,
                     unit[0] ? " " : "", unit);
        return;
    }
    pl_text_addf(out, "%s, %s: atoms %+.3g, descriptors %+.3g", component, target->name, sum_of(moves->atom, s->graph.n_nodes),
                 sum_of(moves->feature, CH_N_FEATURES));
    if (s->x.n_columns > 0)
        pl_text_addf(out, ", columns %+.3g", sum_of(moves->column, s->x.n_columns));
    if (moves->absent != 0)
        pl_text_addf(out, ", absent substructures %+.3g", moves->absent);
    pl_text_addf(out, ", mean %.3g: %.4g%s%s", moves->base, moves->value, unit[0] ? " " : "", unit);
}

pl_code st_sheet_add(st_sheet *sheet, const ch_drawn *drawn, const st_subject *s, const st_moves *moves, const char *component,
                     const nn_target *target, pl_arena *mem, pl_error *err)
{
    const st_colours colours = { s->graph.n_nodes, s->graph.z, moves->atom };
    pl_text caption = { 0 }, picture = { 0 };
    st_picture frame = { .width = 0 };
    bool good = st_coloured_add(&picture, drawn, s->smiles, &colours, &frame, mem), complete;
    long wide;

    st_sheet_caption(&caption, s, moves, component, target);
    wide = (long)caption.len * LETTER > frame.width ? (long)caption.len * LETTER : frame.width;
    if (good) {
        pl_text_addf(&sheet->body, "<g transform=\"translate(%d %ld)\"><text class=\"says\" y=\"13\">", BORDER,
                     sheet->high + BORDER);
        st_html_add(&sheet->body, pl_text_str(&caption));
        pl_text_addf(&sheet->body, "</text><g transform=\"translate(0 %d)\">", CAPTION);
        pl_text_add_n(&sheet->body, pl_text_str(&picture), picture.len);
        pl_text_add(&sheet->body, "</g></g>\n");
        sheet->wide = wide > sheet->wide ? wide : sheet->wide;
        sheet->high += CAPTION + frame.height + BORDER;
        sheet->n++;
    }
    complete = pl_text_ok(&caption) && pl_text_ok(&picture);
    pl_text_free(&caption);
    pl_text_free(&picture);
    if (!complete)
        return pl_fail(err, PL_ENOMEM, "a drawing");
    return good ? PL_OK : pl_fail(err, PL_EINPUT, "%.100s cannot be drawn", s->smiles);
}

pl_code st_sheet_write(const st_sheet *sheet, const char *path, pl_arena *mem, pl_error *err)
{
    st_out out = { 0 };
    pl_text text = { 0 };
    pl_code code;

    if (sheet->n == 0)
        return pl_fail(err, PL_ECONFIG, "nothing to draw: none of its models has a component that says what moved its prediction");
    pl_text_addf(
        &text,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%ld\" height=\"%ld\"><style>rect{fill:#fff}path{stroke:#000;fill:none;"
        "stroke-linecap:round}.w{fill:#000;stroke-width:10}text{font-family:Arial,Helvetica,sans-serif;font-weight:bold}"
        ".says{font-size:13px;font-weight:normal}</style><rect width=\"100%%\" height=\"100%%\"/>\n",
        sheet->wide + 2L * BORDER, sheet->high + BORDER);
    pl_text_add_n(&text, pl_text_str(&sheet->body), sheet->body.len);
    pl_text_add(&text, "</svg>\n");
    code = pl_text_ok(&text) ? st_out_open(&out, path, mem, err) : pl_fail(err, PL_ENOMEM, "a drawing");
    if (code == PL_OK)
        code = st_out_add(&out, &text, err);
    if (code == PL_OK)
        code = st_out_keep(&out, err);
    st_out_close(&out);
    pl_text_free(&text);
    return code;
}

void st_sheet_close(st_sheet *sheet) { pl_text_free(&sheet->body); }
