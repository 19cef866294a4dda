/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/predict/predictor.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/stop.h"
#include "pipeline/base/text.h"
#include "stages/steps/features/graph.h"

/* ---- settings ------------------------------------------------------------ */

enum { MOLECULES = 240, MAX_EDGES = 70000 }; /* of a batch; the result is the same for any */

st_predict_conf st_predict_defaults(void)
{
    return (st_predict_conf){ .structures = ST_STRUCTURES_MODEL, .seed = 1, .compute = st_compute_defaults() };
}

static bool has_source(const nn_model_file *m, nn_source source)
{
    return m->range.molecules > 0 && (m->range.sources >> source & 1);
}

/* Structures as those of the training; where the file does not say, those of the input if they are 3D. */
static ch_conformer source_of(const nn_model_file *m)
{
    if (m->range.molecules == 0 || has_source(m, NN_SOURCE_INPUT))
        return CH_3D_AUTO;
    return CH_3D_GENERATE;
}

static ch_force_field force_field_of(const nn_model_file *m)
{
    if (has_source(m, NN_SOURCE_MMFF94))
        return CH_FF_MMFF94;
    if (has_source(m, NN_SOURCE_MMFF94S))
        return CH_FF_MMFF94S;
    return has_source(m, NN_SOURCE_UFF) ? CH_FF_UFF : CH_FF_MMFF94;
}

/* `models`: the first one that is a network, or the first. */
static const nn_model_file *leading_model(const st_predictor *p)
{
    for (int k = 0; k < p->scorer.n_models; k++)
        if (p->scorer.model[k].m->model != NULL)
            return p->scorer.model[k].m;
    return p->scorer.model[0].m;
}

/* What its file says of settings of `prepare` besides the form: under `prepare`, or of `conformers`; NULL: they are the defaults. To be
 * released. */
static json_t *told_by(const nn_model_file *m, const char *of)
{
    json_t *all = m->provenance != NULL ? json_loads(m->provenance, 0, NULL) : NULL;
    json_t *told = json_incref(json_object_get(all, of));

    json_decref(all);
    return told;
}

static void prepare_settle(st_predictor *p, const st_predict_conf *conf)
{
    const nn_model_file *m = leading_model(p);
    st_prepare_conf *c = &p->prepare;
    json_t *told = told_by(m, "prepare"), *several = told_by(m, "conformers");
    char form[32];

    pl_fields_default(st_prepare_fields, c);
    st_prepare_take(c, told);
    st_prepare_take_several(c, several);
    json_decref(told);
    json_decref(several);
    c->neutralise = strcmp(m->range.form, "neutral") == 0;
    if (strncmp(m->range.form, "at pH ", 6) == 0)
        (void)pl_parse_real(m->range.form + 6, &c->ph);
    c->conformer = conf->structures == ST_STRUCTURES_MODEL ? (int32_t)source_of(m) : conf->structures;
    if (!p->has_network)
        c->conformer = CH_3D_NONE;
    if (conf->count > 0)
        c->structures = conf->count;
    if (!st_prepare_builds(c))
        c->structures = 1;
    c->force_field = force_field_of(m);
    if (c->force_field == CH_FF_UFF)
        c->builder = CH_OPENBABEL;
    p->opts = st_prepare_opts(c, conf->seed);
    p->budget = st_prepare_budget(c, pl_stop_flag());
    p->graph = m->graph;
    st_graph_limits(&p->graph);
    if (!p->has_network)
        p->graph.edges = CH_EDGES_TOPOLOGY;
    (void)snprintf(p->form, sizeof p->form, "%s", st_prepare_form(c, form));
}

/* ---- models -------------------------------------------------------------- */

static bool same_told(const nn_model_file *a, const nn_model_file *b, const char *of)
{
    json_t *x = told_by(a, of), *y = told_by(b, of);
    const bool same = x == y || json_equal(x, y);

    json_decref(x);
    json_decref(y);
    return same;
}

static pl_code models_agree(const st_predictor *p, const st_predict_conf *conf, pl_error *err)
{
    const nn_model_file *first = leading_model(p);
    pl_code code = PL_OK;

    for (int k = 0; k < p->scorer.n_models && code == PL_OK; k++) {
        const nn_model_file *m = p->scorer.model[k].m;
        if (m->range.form[0] != '\0' && first->range.form[0] != '\0' && strcmp(m->range.form, first->range.form) != 0)
            return pl_fail(err, PL_ECONFIG,
                           "model %s was trained on acids and bases %s, model %s on them %s; predict with one after the other",
                           first->name, first->range.form, m->name, m->range.form);
        if (!same_told(m, first, "prepare"))
            return pl_fail(
                err, PL_ECONFIG,
                "models %s and %s were trained with other settings of prepare (fragment, drawing); predict with one after the other",
                first->name, m->name);
        if (m->model != NULL && conf->count == 0 && conf->structures != CH_3D_KEEP && !same_told(m, first, "conformers"))
            return pl_fail(
                err, PL_ECONFIG,
                "models %s and %s were trained on other numbers of structures of a molecule; say with --count how many to "
                "build, or predict with one after the other",
                first->name, m->name);
        if (m->model != NULL)
            code = nn_model_graph_check(m, &first->graph, err);
    }
    return code;
}

static void property_join(st_predictor *p, int k)
{
    st_scored_target *t = &p->scorer.target[k];
    const nn_model_file *m = p->scorer.model[t->model].m;
    const nn_target *target = &m->target[t->output];
    int j = 0;

    while (j < p->n_properties &&
           (strcmp(p->property[j].name, target->name) != 0 || strcmp(p->property[j].unit, target->unit) != 0))
        j++;
    t->property_id = j;
    if (j == p->n_properties)
        p->property[p->n_properties++] = (st_predict_property){ .name = target->name, .unit = target->unit };
    else
        p->property[j].several = true;
    p->property[j].interval |= target->interval.n > 0;
    p->property[j].similarity |= m->domain.n > 0;
    p->property[j].domain |= m->range.molecules > 0;
}

static pl_code columns_place(st_predictor *p, pl_error *err)
{
    const char *name[PL_NAMES_MAX];

    for (int k = 0; k < p->scorer.n_models; k++)
        for (int32_t i = 0; i < p->scorer.model[k].m->inputs.n_columns; i++)
            pl_names_add(&p->columns, p->scorer.model[k].m->inputs.column[i].name);
    if (p->columns.too_many)
        return pl_fail(err, PL_ECONFIG, "models: they read more than %d columns", PL_NAMES_MAX);
    for (int k = 0; k < p->columns.n; k++)
        name[k] = p->columns.name[k];
    return st_scorer_place(&p->scorer, name, p->columns.n, err);
}

static pl_code models_read(st_predictor *p, const char *const *path, int n, pl_arena *mem, pl_error *err)
{
    pl_code code;

    if (n > ST_MODELS_MAX)
        return pl_fail(err, PL_ECONFIG, "models: at most %d", ST_MODELS_MAX);
    for (int k = 0; k < n; k++) {
        nn_model_file *m;
        code = nn_model_read(&m, path[k], mem, err);
        if (code == PL_OK)
            code = st_scorer_add(&p->scorer, m, NN_MIRROR_AVERAGE, err);
        if (code != PL_OK)
            return code;
        p->has_network |= m->model != NULL;
    }
    for (int k = 0; k < p->scorer.n_targets; k++)
        property_join(p, k);
    return columns_place(p, err);
}

pl_code st_predictor_open(st_predictor *p, const char *const *path, int n, const st_predict_conf *conf, pl_arena *mem,
                          pl_error *err)
{
    nn_engine_conf engine;
    pl_code code;

    *p = (st_predictor){ .compute = conf->compute };
    engine = st_compute_conf(&p->compute, 1);
    code = models_read(p, path, n, mem, err);
    if (code == PL_OK)
        code = models_agree(p, conf, err);
    if (code == PL_OK && p->has_network)
        code = st_compute_engine(&p->compute)->check(&engine, err);
    if (code == PL_OK)
        code = st_scorer_open(&p->scorer, &p->compute, MOLECULES, MAX_EDGES, err);
    if (code != PL_OK)
        return code;
    prepare_settle(p, conf);
    return st_prepare_builds(&p->prepare) && p->opts.builder == CH_NATIVE
               ? st_native_find(&p->native, &p->opts, p->prepare.retry_cpu_limit, mem, err)
               : PL_OK;
}

/* ---- a worker ------------------------------------------------------------ */

pl_code st_predict_worker_open(st_predict_worker *w, st_predictor *p, pl_error *err)
{
    w->p = p;
    w->scratch = pl_arena_new(1 << 16);
    w->mem = pl_arena_new(1 << 20);
    if (w->scratch == NULL || w->mem == NULL)
        return pl_fail(err, PL_ENOMEM, "a worker");
    return ch_worker_open(&w->chem, &p->budget, err);
}

void st_predict_worker_close(st_predict_worker *w)
{
    ch_worker_close(w->chem);
    st_scorer_worker_close(&w->scorer);
    pl_arena_free(w->scratch);
    pl_arena_free(w->mem);
    pl_text_free(&w->reasons);
}

static pl_code build(void *ctx, const ch_to_build *all, int32_t n, pl_arena *mem, pl_error *err)
{
    const st_predict_worker *w = ctx;
    return st_native_build(&w->p->native, NULL, all, n, mem, w->scratch, err);
}

/* Graphs of all structures of molecules that have one: item[*n], and which record each is of. */
typedef struct graphs {
    nn_item *item;
    int64_t *record;
    int32_t n, cap;
} graphs;

static pl_code graphs_open(graphs *g, const ch_prepared *p, int32_t n, pl_arena *mem, pl_error *err)
{
    int64_t all = 0;

    for (int32_t i = 0; i < n; i++)
        all += p[i].code == CH_OK ? 1 + p[i].n_other : 0;
    *g = (graphs){ .item = PL_NEW(mem, nn_item, all + 1), .record = PL_NEW(mem, int64_t, all + 1) };
    return g->item != NULL && g->record != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "%lld graphs", (long long)all);
}

/* All structures of a molecule or none, as in the stage `graph`. */
static pl_code graphs_add(graphs *g, st_predict_worker *w, const ch_prepared *p, const float *column, int64_t record,
                          const char **problem, pl_error *err)
{
    pl_error why = { 0 };
    pl_code code = PL_OK;

    for (int32_t k = 0; k <= p->n_other && code == PL_OK; k++) {
        ch_graph *graph = PL_NEW(w->mem, ch_graph, 1);
        code = graph != NULL ? ch_graph_build(graph, k == 0 ? &p->mol : &p->other[k - 1], &w->p->graph, w->mem, &why)
                             : pl_fail(&why, PL_ENOMEM, "a graph");
        g->item[g->n + k] = (nn_item){ .graph = graph, .column = column };
        g->record[g->n + k] = record;
    }
    if (code == PL_OK)
        g->n += 1 + p->n_other;
    if (code != PL_EINPUT)
        return code == PL_OK ? PL_OK : pl_fail(err, code, "%s", why.text);
    *problem = pl_strdup(w->mem, why.text);
    return *problem != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "a reason");
}

/* Why some target has no value, each once. */
static pl_code problems_join(st_prediction *out, const st_scorer *s, const st_outcome *o, pl_arena *mem, pl_error *err)
{
    char text[480];
    const char *code;

    for (int k = 0; k < s->n_targets; k++) {
        const char *one = st_outcome_is_good(&o[k]) ? NULL : st_scorer_problem(s, o, k, text, &code);
        if (one == NULL)
            continue;
        out->problem = out->problem == NULL ? pl_strdup(mem, one) : pl_sprintf(mem, "%s; %s", out->problem, one);
        if (out->problem == NULL)
            return pl_fail(err, PL_ENOMEM, "a reason");
    }
    return PL_OK;
}

static pl_code value_take(st_value *out, st_predict_worker *w, const st_scored *u, int32_t i, int k, nn_case *c, pl_error *err)
{
    pl_code code = st_scorer_value(out, &w->p->scorer, u, i, k, c, &w->reasons, err);

    if (code != PL_OK || out->reasons == NULL)
        return code;
    out->reasons = pl_strdup(w->mem, out->reasons);
    return out->reasons != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "a reason");
}

/* Molecule i of u is the record of `out`. */
static pl_code values_take(st_prediction *out, st_predict_worker *w, const st_scored *u, int32_t i, pl_error *err)
{
    const st_scorer *s = &w->p->scorer;
    const st_outcome *o = u->outcome + (int64_t)i * s->n_targets;
    nn_case c = { .source = nn_source_of(out->molecule->geometry),
                  .form = w->p->form,
                  .alike = NAN,
                  .changed = out->molecule->n_neutralised > 0,
                  .traits = u->traits != NULL ? &u->traits[i] : NULL };
    pl_code code = problems_join(out, s, o, w->mem, err);

    for (int k = 0; k < s->n_targets && code == PL_OK; k++)
        if (st_scorer_is_first(s, o, k))
            code = value_take(&out->value[s->target[k].property_id], w, u, i, k, &c, err);
    return code;
}

static pl_code score(st_predict_worker *w, st_prediction *out, const graphs *g, pl_error *err)
{
    st_scored u = { 0 };
    pl_code code = w->scorer.kind != NULL ? PL_OK : st_scorer_worker_open(&w->scorer, &w->p->scorer, err);

    if (code != PL_OK)
        return code;
    pl_arena_reset(w->scorer.scratch);
    code = st_scored_make(&u, &w->p->scorer, g->record, g->n, w->mem, err);
    if (code == PL_OK)
        code = st_scorer_run(&w->scorer, &u, g->item, w->mem, err);
    w->radial_error = u.radial_error > w->radial_error ? u.radial_error : w->radial_error;
    for (int32_t i = 0; i < u.n && code == PL_OK; i++)
        code = values_take(&out[u.id[i]], w, &u, i, err);
    return code;
}

static pl_code out_open(st_prediction **out, st_predict_worker *w, const ch_prepared *p, int32_t n, pl_error *err)
{
    const int n_values = w->p->n_properties;
    st_value *value = PL_NEW(w->mem, st_value, (int64_t)n * n_values + 1);

    *out = PL_NEW(w->mem, st_prediction, n + 1);
    if (*out == NULL || value == NULL)
        return pl_fail(err, PL_ENOMEM, "scores of %d molecules", (int)n);
    for (int32_t i = 0; i < n; i++)
        (*out)[i] = (st_prediction){ .molecule = &p[i], .value = value + (int64_t)i * n_values };
    return PL_OK;
}

pl_code st_predict(st_predict_worker *w, const ch_input *in, const float *const *column, int32_t n, st_prediction **out,
                   pl_error *err)
{
    const ch_known known = { .ctx = w, .build = build };
    ch_prepared *p;
    graphs g;
    pl_code code;

    pl_arena_reset(w->mem);
    p = PL_NEW(w->mem, ch_prepared, n + 1);
    code = p != NULL ? ch_worker_prepare_all(w->chem, in, n, &w->p->opts, &known, p, w->mem, err)
                     : pl_fail(err, PL_ENOMEM, "%d molecules", (int)n);
    if (code == PL_OK)
        code = out_open(out, w, p, n, err);
    if (code == PL_OK)
        code = graphs_open(&g, p, n, w->mem, err);
    for (int32_t i = 0; i < n && code == PL_OK; i++) {
        if (p[i].code == CH_OK)
            code = graphs_add(&g, w, &p[i], w->p->columns.n > 0 ? column[i] : NULL, i, &(*out)[i].problem, err);
        else
            (*out)[i].problem = p[i].message;
    }
    return code == PL_OK && g.n > 0 ? score(w, *out, &g, err) : code;
}
