/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/explain/subject.h"

#include <string.h>
#include <unistd.h>

#include "pipeline/store/db.h"
#include "stages/explain/same_atoms.h"
#include "stages/steps/ingest/columns.h"
#include "stages/steps/train/model_row.h"

/* Its SMILES is that of the molecule as it was prepared: nothing is changed. */
static pl_code molecule_read(st_subject *s, ch_worker *w, pl_arena *mem, pl_error *err)
{
    ch_prepare_opts opts = ch_prepare_defaults();
    ch_prepared prepared = { 0 };
    pl_code code;

    opts.largest_fragment = opts.one_drawing = false;
    opts.conformer = CH_3D_NONE;
    code = ch_worker_prepare(w, s->smiles, strlen(s->smiles), "smi", &opts, &prepared, mem, err);
    s->mol = prepared.mol;
    return code;
}

pl_code st_subject_make(st_subject *out, ch_worker *w, const char *smiles, pl_arena *mem, pl_error *err)
{
    const ch_graph_opts opts = { .edges = CH_EDGES_TOPOLOGY };
    const ch_graph **graph = PL_NEW(mem, const ch_graph *, 1);
    pl_code code = graph != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "a molecule");

    *out = (st_subject){ .smiles = smiles };
    if (code == PL_OK)
        code = molecule_read(out, w, mem, err);
    if (code == PL_OK)
        code = ch_graph_build(&out->graph, &out->mol, &opts, mem, err);
    if (code != PL_OK)
        return code;
    *graph = &out->graph;
    code = ch_fingerprint_of_graph(&out->print, &out->graph, mem, err);
    if (code == PL_OK)
        code = ch_circles_of_graph(&out->circle, &out->n_circles, &out->graph, mem, err);
    return code == PL_OK ? nn_table_make(&out->x, graph, 1, mem, err) : code;
}

pl_code st_subject_columns(st_subject *s, const nn_model_file *m, sqlite3 *db, int64_t mol_id, pl_arena *mem, pl_error *err)
{
    nn_inputs in = m->inputs;
    const char *name[PL_NAMES_MAX];
    const float *value = NULL;
    st_column_rows rows = { 0 };
    pl_names columns = { 0 };
    pl_code code = PL_OK;

    for (int32_t k = 0; k < in.n_columns; k++)
        pl_names_add(&columns, in.column[k].name);
    for (int k = 0; k < columns.n; k++)
        name[k] = columns.name[k];
    if (in.n_columns > 0)
        code = st_columns_read(&rows, db, &columns, mol_id, mol_id, mem, err);
    if (code == PL_OK && in.n_columns > 0)
        code = st_columns_row(&value, &rows, mol_id, err);
    if (code == PL_OK)
        code = nn_inputs_place(&in, name, columns.n, err);
    return code == PL_OK ? nn_members_columns(&s->x, &in, &value, mem, err) : code;
}

/* ---- stored structures ---- */

static pl_code prepare_key(const char **out, pl_store *store, pl_arena *mem, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    pl_code code = pl_db_prepare(store->db, &st, "SELECT key FROM stage WHERE name='prepare'", err);

    *out = NULL;
    if (pl_db_next(st, &code, err) && (*out = pl_strdup(mem, (const char *)sqlite3_column_text(st, 0))) == NULL)
        code = pl_fail(err, PL_ENOMEM, "a key");
    (void)sqlite3_finalize(st);
    return code;
}

pl_code st_subject_stored(st_conformers *c, pl_store *store, pl_arena *mem, pl_error *err)
{
    const char *key;
    pl_code code = prepare_key(&key, store, mem, err);

    if (code != PL_OK || key == NULL || access(store->features_path, R_OK) != 0)
        return code;
    return st_conformers_open(c, store, key, err);
}

static pl_code structure_copy(ch_mol *out, const ch_mol *from, pl_arena *mem, pl_error *err)
{
    pl_code code = ch_mol_alloc(out, from->n_atoms, from->n_bonds, mem, err);

    if (code != PL_OK)
        return code;
    memcpy(out->z, from->z, (size_t)from->n_atoms * sizeof *out->z);
    memcpy(out->charge, from->charge, (size_t)from->n_atoms * sizeof *out->charge);
    memcpy(out->xyz, from->xyz, (size_t)from->n_atoms * sizeof *out->xyz);
    memcpy(out->bond, from->bond, (size_t)from->n_bonds * sizeof *out->bond);
    memcpy(out->order, from->order, (size_t)from->n_bonds * sizeof *out->order);
    return PL_OK;
}

static pl_code structures_take(st_subject *s, const ch_block_item *first, int32_t n, pl_arena *mem, pl_error *err)
{
    ch_mol bare = s->mol, whole = first->mol;
    pl_code code;

    s->structure = PL_NEW(mem, ch_mol, n);
    s->place = PL_NEW(mem, int32_t, first->mol.n_atoms + 1);
    if (s->structure == NULL || s->place == NULL)
        return pl_fail(err, PL_ENOMEM, "structures");
    bare.isotope = whole.isotope = NULL; /* a network does not read them */
    code = st_same_atoms(s->place, &whole, &bare, mem, err);
    for (int32_t k = 0; k < n && code == PL_OK; k++)
        code = structure_copy(&s->structure[k], &first[k].mol, mem, err);
    s->n_structures = code == PL_OK ? n : 0;
    return code;
}

pl_code st_subject_structures(st_subject *s, st_conformers *c, int64_t mol_id, pl_arena *mem, pl_error *err)
{
    const ch_block_item *first;
    int64_t unit = -1;
    int32_t n;
    pl_code code;

    s->n_structures = 0;
    if (c->mem == NULL)
        return PL_OK;
    code =
        pl_db_int(c->store->db, &unit, err, "SELECT coalesce((SELECT unit FROM molecule WHERE mol_id=%lld),-1)", (long long)mol_id);
    if (code == PL_OK)
        code = st_conformers_find(c, unit, mol_id, &first, &n, err);
    return code == PL_OK && n > 0 && first->mol.xyz != NULL ? structures_take(s, first, n, mem, err) : code;
}

/* ---- environments and their atoms ---- */

/* Marks heavy atoms within `radius` bonds of the middle; returns how many. at [n_nodes]: their numbers. */
static int32_t atoms_within(int32_t *at, bool *in, const ch_graph *g, const ch_circle *c)
{
    int32_t n = 1, from = 0;

    at[0] = c->atom;
    in[c->atom] = true;
    for (int32_t step = 0; step < c->radius; step++) {
        const int32_t end = n;
        for (; from < end; from++)
            for (int32_t e = g->row[at[from]]; e < g->row[at[from] + 1]; e++) {
                const int32_t to = g->src[e];
                if (in[to] || g->z[to] == 1 || g->type[g->pair[e]] == CH_PAIR_NOT_BONDED)
                    continue;
                in[to] = true;
                at[n++] = to;
            }
    }
    for (int32_t k = 0; k < n; k++)
        in[at[k]] = false;
    return n;
}

/* The part of the environments with this hash in one occurrence of them. */
static double part_of(const ch_environments *e, const double *part, const ch_circle *c)
{
    for (int32_t j = 0; j < e->n; j++)
        if (e->at[j].id == (uint32_t)c->value)
            return part[j] / e->at[j].count;
    return 0;
}

static pl_code atoms_fill(double *atom, const st_subject *s, const nn_parts *parts, double scale, pl_arena *mem, pl_error *err)
{
    int32_t *at = PL_NEW(mem, int32_t, s->graph.n_nodes + 1);
    bool *in = PL_NEW(mem, bool, s->graph.n_nodes + 1);

    if (at == NULL || in == NULL)
        return pl_fail(err, PL_ENOMEM, "an explanation");
    for (int32_t k = 0; k < s->n_circles; k++) {
        const double part = scale * part_of(&s->x.environments[0], parts->environment, &s->circle[k]);
        const int32_t n = part != 0 ? atoms_within(at, in, &s->graph, &s->circle[k]) : 0;
        for (int32_t i = 0; i < n; i++)
            atom[at[i]] += part / n;
    }
    return PL_OK;
}

static const double *scaled(const double *from, int32_t n, double scale, pl_arena *mem)
{
    double *to = PL_NEW(mem, double, n + 1);

    for (int32_t k = 0; k < n && to != NULL; k++)
        to[k] = scale * from[k];
    return to;
}

bool st_predicts(const nn_model_file *m, int32_t target, const char *property)
{
    const nn_target *t = &m->target[target];

    return strcmp(t->name, property) == 0 || st_property_is_own(property, t->name, t->unit);
}

pl_code st_moves_of(st_moves *out, const st_subject *s, const nn_model_file *m, int32_t member, int32_t target, pl_arena *mem,
                    pl_error *err)
{
    const nn_model_member *one = &m->members.at[member];
    const double scale = m->classifies ? 1 : m->target[target].scale.stdev;
    const double zero = m->classifies ? 0 : nn_model_member_value(m, target, s->graph.z, s->graph.n_nodes, 0);
    double *atom = PL_NEW(mem, double, s->graph.n_nodes + 1);
    nn_parts parts;
    pl_code code = one->kind->explain(one->one[target], &s->x, 0, &parts, mem, err);

    if (code != PL_OK)
        return code;
    *out =
        (st_moves){ .log_odds = parts.log_odds, .base = zero + scale * parts.base, .absent = scale * parts.absent, .atom = atom };
    out->feature = scaled(parts.feature, CH_N_FEATURES, scale, mem);
    out->column = scaled(parts.column, s->x.n_columns, scale, mem);
    if (atom == NULL || out->feature == NULL || out->column == NULL)
        return pl_fail(err, PL_ENOMEM, "an explanation");
    code = atoms_fill(atom, s, &parts, scale, mem, err);
    out->value = out->base + out->absent;
    for (int k = 0; k < CH_N_FEATURES; k++)
        out->value += out->feature[k];
    for (int32_t k = 0; k < s->x.n_columns; k++)
        out->value += out->column[k];
    for (int32_t i = 0; i < s->graph.n_nodes; i++)
        out->value += atom[i];
    return code;
}

pl_code st_moves_of_network(st_moves *out, const st_subject *s, const st_occlusion *by, int32_t target, pl_arena *mem,
                            pl_error *err)
{
    double *atom = PL_NEW(mem, double, s->graph.n_nodes + 1);

    *out = (st_moves){ .log_odds = by->log_odds, .one_by_one = true, .value = by->value[target], .atom = atom };
    out->feature = PL_NEW(mem, double, CH_N_FEATURES);
    out->column = PL_NEW(mem, double, s->x.n_columns + 1);
    if (atom == NULL || out->feature == NULL || out->column == NULL)
        return pl_fail(err, PL_ENOMEM, "an explanation");
    for (int32_t i = 0; i < by->n; i++)
        if (s->place[i] >= 0)
            atom[s->place[i]] = by->by[(int64_t)target * by->n + i];
    return PL_OK;
}
