/* SPDX-License-Identifier: Apache-2.0 */
/* Structures: drawn by the chemistry worker, and what their scaffolds are. */
#include "stages/report/report_parts.h"

#include <stdio.h>
#include <string.h>

#include "chem/fingerprint/scaffold.h"
#include "chem/molecule/sdf_write.h"
#include "stages/report/drawing.h"

void st_report_open_worker(st_report *r)
{
    pl_error why = { 0 };

    if (ch_worker_open(&r->worker, NULL, &why) == PL_OK)
        return;
    r->worker = NULL;
    (void)snprintf(r->drawn->why, sizeof r->drawn->why, "%s", why.text);
}

bool st_report_has_memory(st_report *r, pl_code code, const char *what)
{
    if (code == PL_ENOMEM && r->code == PL_OK)
        r->code = pl_fail(r->err, PL_ENOMEM, "no memory for %s of the report", what);
    return code != PL_ENOMEM;
}

const char *st_report_text(st_report *r, const char *s, const char *what)
{
    (void)st_report_has_memory(r, s != NULL ? PL_OK : PL_ENOMEM, what);
    return s != NULL ? s : "";
}

const char *st_report_copy(st_report *r, const char *s) { return st_report_text(r, pl_strdup(r->mem, s), "a text"); }

/* Anything but EINPUT: the worker failed, not the molecule, and is asked no more. */
static void judge(st_report *r, pl_code code, const pl_error *why)
{
    if (!st_report_has_memory(r, code, "a structure") || code == PL_OK || code == PL_EINPUT)
        return;
    (void)snprintf(r->drawn->why, sizeof r->drawn->why, "%s", why->text);
    ch_worker_close(r->worker);
    r->worker = NULL;
}

static bool draw(st_report *r, const char *smiles, const char *id, st_structure *out)
{
    pl_arena *mem = pl_arena_new(1 << 16);
    ch_drawn drawn = { 0 };
    pl_error why = { 0 };
    pl_code code = mem != NULL ? ch_worker_draw(r->worker, smiles, &drawn, mem, &why) : pl_fail(&why, PL_ENOMEM, "a drawing");
    bool good = code == PL_OK && st_drawing_add(r->out, drawn.svg, smiles, id, &out->picture);

    if (code == PL_OK && !good)
        (void)pl_fail(&why, PL_EINPUT, "%.100s: the drawing has something in it that is not allowed here", smiles);
    if (!good)
        (void)snprintf(r->drawn->why, sizeof r->drawn->why, "%s", why.text);
    if (good && ch_is_molfile(drawn.molfile))
        out->molfile = st_report_copy(r, drawn.molfile);
    r->drawn->n_overlapping += good && drawn.overlaps > 0;
    r->drawn->n_no_stereo += good && strstr(drawn.svg, CH_NO_STEREO) != NULL;
    judge(r, code, &why);
    pl_arena_free(mem);
    return good;
}

void st_report_draw(st_report *r, const char *smiles, const char *id, st_structure *out)
{
    st_structure mine = { 0 };
    bool good;

    out = out != NULL ? out : &mine;
    good = r->worker != NULL && draw(r, smiles, id, out);
    r->drawn->n_drawn += good;
    r->drawn->n_plain += !good;
    if (good)
        return;
    pl_text_add(r->out, "<code>");
    st_html_cut(r->out, smiles, 200);
    pl_text_add(r->out, "</code>");
}

void st_report_structure(st_report *r, const char *smiles)
{
    pl_text_add(r->out, "<td class=\"pic\">");
    st_report_draw(r, smiles, "", NULL);
    pl_text_add(r->out, "</td>");
}

bool st_report_scaffold(st_report *r, const char *smiles, uint64_t *scaffold)
{
    pl_arena *mem = pl_arena_new(1 << 16);
    ch_prepare_opts opts = ch_prepare_defaults();
    ch_prepared p = { 0 };
    pl_error why = { 0 };
    pl_code code;

    opts.largest_fragment = opts.one_drawing = false;
    opts.conformer = CH_3D_NONE;
    if (mem == NULL)
        return st_report_has_memory(r, PL_ENOMEM, "a scaffold");
    if (r->worker == NULL) {
        pl_arena_free(mem);
        return false;
    }
    code = ch_worker_prepare(r->worker, smiles, strlen(smiles), "smi", &opts, &p, mem, &why);
    judge(r, code, &why);
    if (code == PL_OK)
        code = ch_scaffold(scaffold, &p.mol, false, mem, &why);
    (void)st_report_has_memory(r, code, "a scaffold");
    pl_arena_free(mem);
    return code == PL_OK;
}
