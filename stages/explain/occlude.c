/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/explain/occlude.h"

#include <math.h>

#include "chem/molecule/element.h"
#include "stages/steps/features/graph.h"
#include "stages/steps/score/scorer.h"

enum { MOLECULES = 240, MAX_EDGES = 70000 }; /* of a batch; the result is the same for any */

/* What is predicted: the whole molecule first, then without one atom after the other; of each all structures. */
typedef struct occluding {
    const ch_mol *mol;
    int32_t n_structures;
    int32_t *owner; /* [n_atoms] the atom with which this one is left out: itself, or that of a hydrogen; negative: it stays */
    int32_t *left;  /* [n_cases] the atom that is left out, -1: none */
    int32_t n_cases;
    nn_item *item; /* [n_cases * n_structures] */
    int64_t *id;
} occluding;

/* A hydrogen between several heavy atoms is nobody's. */
static void owners_fill(int32_t *owner, const ch_mol *m)
{
    enum { NOBODY = -1, NOT_YET = -2 };

    for (int32_t i = 0; i < m->n_atoms; i++)
        owner[i] = m->z[i] != 1 ? i : NOT_YET;
    for (int32_t k = 0; k < m->n_bonds; k++)
        for (int s = 0; s < 2; s++) {
            int32_t *of = &owner[m->bond[k][s]];
            if (m->z[m->bond[k][s]] == 1 && m->z[m->bond[k][1 - s]] != 1)
                *of = *of == NOT_YET ? m->bond[k][1 - s] : NOBODY;
        }
}

/* m without the atom and its hydrogens; stays [n_atoms] is filled. */
static pl_code without(ch_mol *out, int32_t *stays, const occluding *o, const ch_mol *m, int32_t atom, pl_arena *mem, pl_error *err)
{
    int32_t n = 0, n_bonds = 0;
    pl_code code;

    for (int32_t i = 0; i < m->n_atoms; i++)
        stays[i] = o->owner[i] == atom ? -1 : n++;
    for (int32_t k = 0; k < m->n_bonds; k++)
        n_bonds += stays[m->bond[k][0]] >= 0 && stays[m->bond[k][1]] >= 0;
    code = ch_mol_alloc(out, n, n_bonds, mem, err);
    if (code != PL_OK)
        return code;
    for (int32_t i = 0; i < m->n_atoms; i++) {
        if (stays[i] < 0)
            continue;
        out->z[stays[i]] = m->z[i];
        out->charge[stays[i]] = m->charge[i];
        for (int d = 0; d < 3; d++)
            out->xyz[stays[i]][d] = m->xyz[i][d];
    }
    for (int32_t k = 0, to = 0; k < m->n_bonds; k++) {
        if (stays[m->bond[k][0]] < 0 || stays[m->bond[k][1]] < 0)
            continue;
        for (int s = 0; s < 2; s++)
            out->bond[to][s] = stays[m->bond[k][s]];
        out->order[to++] = m->order[k];
    }
    return PL_OK;
}

static pl_code graph_add(occluding *o, int32_t c, int32_t s, const nn_model_file *m, const nn_table *x, pl_arena *mem,
                         pl_error *err)
{
    const ch_mol *whole = &o->mol[s];
    ch_graph_opts opts = m->graph;
    ch_graph *graph = PL_NEW(mem, ch_graph, 1);
    int32_t *stays = PL_NEW(mem, int32_t, whole->n_atoms + 1);
    ch_mol rest = *whole;
    const int32_t at = c * o->n_structures + s;
    pl_code code = PL_OK;

    if (graph == NULL || stays == NULL)
        return pl_fail(err, PL_ENOMEM, "an explanation");
    if (whole->xyz == NULL)
        return pl_fail(err, PL_EINPUT, "its structure has no positions");
    o->item[at] = (nn_item){ .graph = graph, .column = x->n_columns > 0 ? x->column : NULL, .feature = x->features[0] };
    o->id[at] = c;
    if (o->left[c] >= 0)
        code = without(&rest, stays, o, whole, o->left[c], mem, err);
    st_graph_limits(&opts);
    return code == PL_OK ? ch_graph_build(graph, &rest, &opts, mem, err) : code;
}

/* An atom that is alone, but for its hydrogens, cannot be left out. */
static pl_code cases_make(occluding *o, const nn_model_file *m, const nn_table *x, pl_arena *mem, pl_error *err)
{
    const ch_mol *whole = &o->mol[0];
    const int64_t most = (int64_t)(whole->n_atoms + 1) * o->n_structures;
    int32_t n_heavy = 0;
    pl_code code = PL_OK;

    o->owner = PL_NEW(mem, int32_t, whole->n_atoms + 1);
    o->left = PL_NEW(mem, int32_t, whole->n_atoms + 1);
    o->item = PL_NEW(mem, nn_item, most);
    o->id = PL_NEW(mem, int64_t, most);
    if (o->owner == NULL || o->left == NULL || o->item == NULL || o->id == NULL)
        return pl_fail(err, PL_ENOMEM, "an explanation");
    owners_fill(o->owner, whole);
    for (int32_t i = 0; i < whole->n_atoms; i++)
        n_heavy += whole->z[i] != 1;
    o->left[o->n_cases++] = -1;
    for (int32_t i = 0; i < whole->n_atoms && n_heavy > 1; i++)
        if (whole->z[i] != 1)
            o->left[o->n_cases++] = i;
    for (int32_t c = 0; c < o->n_cases; c++)
        for (int32_t s = 0; s < o->n_structures && code == PL_OK; s++)
            code = graph_add(o, c, s, m, x, mem, err);
    return code;
}

static double in_unit(const nn_model_file *m, double value)
{
    return m->classifies ? log(fmax(value, 1e-300)) - log(fmax(1 - value, 1e-16)) : value;
}

static pl_code parts_take(st_occlusion *out, const occluding *o, const st_scored *u, const nn_model_file *m, pl_arena *mem,
                          pl_error *err)
{
    const int32_t outputs = m->conf.outputs, n = o->mol[0].n_atoms;
    double *value = PL_NEW(mem, double, outputs), *by = PL_NEW(mem, double, (int64_t)outputs *n + 1);

    if (value == NULL || by == NULL)
        return pl_fail(err, PL_ENOMEM, "an explanation");
    *out = (st_occlusion){ .n = n, .log_odds = m->classifies, .value = value, .by = by };
    if (u->outcome[0].unknown != 0)
        return pl_fail(err, PL_EINPUT, "the network does not know its element %s", ch_element_symbol(u->outcome[0].unknown));
    for (int32_t k = 0; k < outputs; k++) {
        value[k] = in_unit(m, u->outcome[k].value);
        for (int32_t c = 1; c < o->n_cases; c++)
            by[(int64_t)k * n + o->left[c]] = value[k] - in_unit(m, u->outcome[(int64_t)c * outputs + k].value);
    }
    return PL_OK;
}

/* The descriptors are those of the items: the scorer computes none. */
static pl_code scorer_make(st_scorer *s, nn_model_file *alone, const st_compute *how, pl_error *err)
{
    pl_code code = st_scorer_open(s, how, MOLECULES, MAX_EDGES, err);

    if (code == PL_OK)
        code = st_scorer_add(s, alone, NN_MIRROR_AVERAGE, err);
    s->describes = false;
    return code;
}

/* The network of m and nothing else, which reads columns in their order. */
static nn_model_file network_of(const nn_model_file *m)
{
    nn_model_file alone = *m;

    alone.members.n = 0;
    alone.domain = (nn_domain){ 0 };
    alone.range = (nn_range){ 0 };
    for (int32_t k = 0; k < alone.inputs.n_columns; k++)
        alone.inputs.column[k].at = k;
    return alone;
}

pl_code st_occlude(st_occlusion *out, const nn_model_file *m, const st_compute *how, const ch_mol *mol, int32_t n_structures,
                   const nn_table *x, pl_arena *mem, pl_error *err)
{
    nn_model_file alone = network_of(m);
    occluding o = { .mol = mol, .n_structures = n_structures };
    st_scorer scorer = { 0 };
    st_scorer_worker worker = { 0 };
    st_scored u = { 0 };
    pl_code code = cases_make(&o, m, x, mem, err);

    if (code == PL_OK)
        code = scorer_make(&scorer, &alone, how, err);
    if (code == PL_OK)
        code = st_scorer_worker_open(&worker, &scorer, err);
    if (code == PL_OK)
        code = st_scored_make(&u, &scorer, o.id, o.n_cases * n_structures, mem, err);
    if (code == PL_OK)
        code = st_scorer_run(&worker, &u, o.item, mem, err);
    if (code == PL_OK)
        code = parts_take(out, &o, &u, m, mem, err);
    st_scorer_worker_close(&worker);
    return code;
}
