/* SPDX-License-Identifier: Apache-2.0 */
/* What moved the scores of the first hits: their atoms in colours, for each component of their models. */
#include "stages/report/report_parts.h"

#include <string.h>

#include "stages/report/sheet.h"

enum { HITS = 5 };

/* The model and the molecule of the last row. */
typedef struct moved {
    const char *path, *smiles;
    nn_model_file *m; /* NULL: its file is not there, is another one, or has no component that can say */
    st_subject s;
    ch_drawn drawn;
    bool known; /* s and drawn */
    int n;
} moved;

static void model_find(st_report *r, moved *v, const char *path, const char *sha256)
{
    if (v->path != NULL && strcmp(v->path, path) == 0)
        return;
    v->path = pl_strdup(r->mem, path);
    const pl_code code = v->path != NULL ? nn_model_read(&v->m, path, r->mem, NULL) : PL_ENOMEM;
    if (!st_report_has_memory(r, code, "a model") || code != PL_OK || strcmp(v->m->sha256, sha256) != 0 || v->m->members.n == 0)
        v->m = NULL;
}

/* Whether s has the columns that the model reads. */
static bool columns_find(const st_report *r, moved *v, int64_t mol_id)
{
    return v->known && st_subject_columns(&v->s, v->m, r->db, mol_id, r->mem, NULL) == PL_OK;
}

static void molecule_find(st_report *r, moved *v, const char *smiles)
{
    if (v->smiles != NULL && strcmp(v->smiles, smiles) == 0)
        return;
    v->smiles = pl_strdup(r->mem, smiles);
    v->known = false;
    if (r->worker == NULL)
        return;
    pl_code code = v->smiles != NULL ? st_subject_make(&v->s, r->worker, v->smiles, r->mem, NULL) : PL_ENOMEM;
    if (code == PL_OK)
        code = ch_worker_draw(r->worker, v->smiles, &v->drawn, r->mem, NULL);
    v->known = st_report_has_memory(r, code, "a drawing") && code == PL_OK;
}

static void add_begin(st_report *r, moved *v)
{
    if (v->n++ > 0)
        return;
    pl_text_add(
        r->out,
        "<h3>What moved the scores of the first hits</h3>\n<p>Each atom has an equal share of what the substructures (ECFP4) "
        "that it is part of contribute: orange raises the prediction, blue lowers it, in each drawing by its own scale. "
        "Descriptors of the whole molecule move a prediction without a place in it. <code>molsieve explain ID</code> names "
        "them.</p>\n<div class=\"figs\">\n");
}

static void add_figure(st_report *r, moved *v, long long rank, int32_t member, int32_t target)
{
    const nn_model_member *one = &v->m->members.at[member];
    pl_text caption = { 0 }, picture = { 0 };
    st_colours colours;
    st_moves moves;

    if (one->kind->explain == NULL)
        return;
    const pl_code code = st_moves_of(&moves, &v->s, v->m, member, target, r->mem, NULL);
    if (!st_report_has_memory(r, code, "what moved a score") || code != PL_OK)
        return;
    colours = (st_colours){ v->s.graph.n_nodes, v->s.graph.z, moves.atom };
    if (st_coloured_add(&picture, &v->drawn, v->smiles, &colours, NULL, r->mem)) {
        add_begin(r, v);
        st_sheet_caption(&caption, &v->s, &moves, one->kind->name, &v->m->target[target]);
        pl_text_addf(r->out, "<figure>%s<figcaption>Hit %lld, ", pl_text_str(&picture), rank);
        st_html_cut(r->out, pl_text_str(&caption), 300);
        pl_text_add(r->out, "</figcaption></figure>\n");
    }
    pl_text_free(&caption);
    pl_text_free(&picture);
}

void st_report_moved(st_report *r)
{
    moved v = { 0 };

    for (
        sqlite3_stmt *st = st_report_query(
            r,
            "SELECT h.rank, m.smiles, o.path, o.sha256, p.name, h.mol_id FROM hit h JOIN molecule m USING(mol_id) JOIN prediction x USING(mol_id) JOIN "
            "model o USING(model_id) JOIN property p ON p.property_id=x.property_id WHERE h.rank<=%d ORDER BY 1, 3, 5",
            HITS);
        st_report_row(r, &st);) {
        model_find(r, &v, st_column(st, 2), st_column(st, 3));
        if (v.m != NULL)
            molecule_find(r, &v, st_column(st, 1));
        const bool ready = v.m != NULL && columns_find(r, &v, sqlite3_column_int64(st, 5));
        for (int32_t k = 0; ready && k < v.m->conf.outputs; k++)
            for (int32_t c = 0;
                 c < v.m->members.n && strncmp(v.m->target[k].name, st_column(st, 4), strlen(v.m->target[k].name)) == 0; c++)
                add_figure(r, &v, (long long)sqlite3_column_int64(st, 0), c, k);
    }
    if (v.n > 0)
        pl_text_add(r->out, "</div>\n");
}
