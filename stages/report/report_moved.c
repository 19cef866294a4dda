/* SPDX-License-Identifier: Apache-2.0 */
/* What moved the scores of the first hits: their atoms in colours, for each component of their models. */
#include "stages/report/report_parts.h"

#include <string.h>

#include "stages/report/sheet.h"
#include "stages/steps/errors/errors.h"

enum { HITS = 5 };

/* The model and the molecule of the last row. */
typedef struct moved {
    const char *path, *smiles;
    nn_model_file *m; /* NULL: its file is not there, is another one, or has no component that can say */
    st_subject s;
    ch_drawn drawn;
    bool known; /* s and drawn */
    st_conformers stored;
    st_compute how;
    st_occlusion network; /* of m and the molecule */
    bool has_network;
    int n;
} moved;

static void model_find(st_report *r, moved *v, const char *path, const char *sha256)
{
    if (v->path != NULL && strcmp(v->path, path) == 0)
        return;
    v->path = pl_strdup(r->mem, path);
    pl_error why = { 0 };
    pl_code code = v->path != NULL ? nn_model_read(&v->m, path, r->mem, &why) : PL_ENOMEM;
    if (code == PL_OK && strcmp(v->m->sha256, sha256) != 0)
        code = pl_fail(&why, PL_EDATA, "%s: another file than the model that scored", path);
    (void)st_report_has_memory(r, code, "a model");
    if (code == PL_OK)
        return;
    v->m = NULL;
    (void)snprintf(r->drawn->unmoved, sizeof r->drawn->unmoved, "%s", why.text);
}

/* Memory, or a database that cannot be read, ends the report; anything else leaves out a drawing. */
static bool is_read(st_report *r, pl_code code, const pl_error *why)
{
    if (code == PL_EIO && r->code == PL_OK) {
        r->code = code;
        *r->err = *why;
    }
    (void)st_report_has_memory(r, code, "what moved a score");
    return code == PL_OK;
}

/* Whether s has the columns that the model reads. */
static bool columns_find(st_report *r, moved *v, int64_t mol_id)
{
    pl_error why = { 0 };

    return v->known && is_read(r, st_subject_columns(&v->s, v->m, r->db, mol_id, r->mem, &why), &why);
}

/* What the network of the model says; nothing without its structures. */
static void network_find(st_report *r, moved *v, int64_t mol_id)
{
    pl_error why = { 0 };
    pl_code code = v->m->model != NULL ? st_subject_structures(&v->s, &v->stored, mol_id, r->mem, &why) : PL_EINPUT;

    if (code == PL_OK && v->s.n_structures == 0)
        code = PL_EINPUT;
    if (code == PL_OK)
        code = st_occlude(&v->network, v->m, &v->how, v->s.structure, v->s.n_structures, &v->s.x, r->mem, &why);
    v->has_network = is_read(r, code, &why);
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
    (void)st_report_has_memory(r, code, "a drawing");
    v->known = code == PL_OK;
}

static void add_begin(st_report *r, moved *v)
{
    if (v->n++ > 0)
        return;
    pl_text_add(
        r->out,
        "<h3>What moved the scores of the first hits</h3>\n<p>Each atom has an equal share of what the substructures (ECFP4) "
        "that it is part of contribute: orange raises the prediction, blue lowers it, in each drawing by its own scale. "
        "Descriptors of the whole molecule move a prediction without a place in it. Of a network (se3) each atom has what the prediction loses without "
        "the atom and its hydrogens; these do not add up. <code>molsieve explain ID</code> names "
        "them.</p>\n<div class=\"figs\">\n");
}

static void add_figure(st_report *r, moved *v, long long rank, const st_moves *moves, const char *name, int32_t target)
{
    const st_colours colours = { v->s.graph.n_nodes, v->s.graph.z, moves->atom };
    pl_text caption = { 0 }, picture = { 0 };

    if (st_coloured_add(&picture, &v->drawn, v->smiles, &colours, NULL, r->mem)) {
        add_begin(r, v);
        st_sheet_caption(&caption, &v->s, moves, name, &v->m->target[target]);
        pl_text_addf(r->out, "<figure>%s<figcaption>Hit %lld, ", pl_text_str(&picture), rank);
        st_html_cut(r->out, pl_text_str(&caption), 300);
        pl_text_add(r->out, "</figcaption></figure>\n");
    }
    (void)st_report_has_memory(r, pl_text_ok(&caption) && pl_text_ok(&picture) ? PL_OK : PL_ENOMEM, "a drawing");
    pl_text_free(&caption);
    pl_text_free(&picture);
}

/* component: a member, or behind them the network. */
static void add_component(st_report *r, moved *v, long long rank, int32_t component, int32_t target)
{
    const bool network = component == v->m->members.n;
    st_moves moves;
    pl_code code;

    if (network ? !v->has_network : v->m->members.at[component].kind->explain == NULL)
        return;
    code = network ? st_moves_of_network(&moves, &v->s, &v->network, target, r->mem, NULL)
                   : st_moves_of(&moves, &v->s, v->m, component, target, r->mem, NULL);
    (void)st_report_has_memory(r, code, "what moved a score");
    if (code == PL_OK)
        add_figure(r, v, rank, &moves, st_component_name(v->m, component), target);
}

void st_report_moved(st_report *r)
{
    moved v = { .how = st_compute_defaults() };
    pl_error why = { 0 };

    (void)is_read(r, st_subject_stored(&v.stored, r->store, r->mem, &why), &why);
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
        if (ready)
            network_find(r, &v, sqlite3_column_int64(st, 5));
        for (int32_t k = 0; ready && k < v.m->conf.outputs; k++)
            for (int32_t c = 0; c <= v.m->members.n && st_predicts(v.m, k, st_column(st, 4)); c++)
                add_component(r, &v, (long long)sqlite3_column_int64(st, 0), c, k);
    }
    st_conformers_close(&v.stored);
    if (v.n > 0)
        pl_text_add(r->out, "</div>\n");
}
