/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/score/score.h"

#include <string.h>

#include "pipeline/base/log.h"
#include "pipeline/base/text.h"
#include "stages/database/external_models.h"
#include "stages/steps/external/external.h"
#include "stages/steps/ingest/positions.h"
#include "stages/steps/ingest/size_estimate.h"
#include "stages/steps/dataset/dataset.h"
#include "stages/steps/features/graph.h"
#include "stages/steps/train/model_row.h"
#include "stages/steps/score/score_parts.h"
#include "stages/steps/train/train.h"

/* Seconds per structure and model with one worker; used for estimates only. */
static const double MOLECULE_S = 3e-3;

#define AT(member) offsetof(score_conf, member)
static const pl_field fields[] = {
    { PL_TEXTS, "models", AT(models),
      .help = "names from the workflow's `models`; if none: the model trained in this workflow, or all of them" },
    { PL_INT, "batch.molecules", AT(molecules), .dflt = 240, .min = 1, .max = 100000, .unit = "molecules", .flags = PL_HOW,
      .help = "in a batch; bit-identical for any" },
    { PL_INT, "batch.max_edges", AT(max_edges), .dflt = 70000, .min = 0, .max = 1e9, .unit = "edges", .flags = PL_HOW,
      .help = "maximum directed edges in a batch; 0: no limit" },
    { PL_CHOICE, "mirror", AT(mirror), .dflt = NN_MIRROR_AVERAGE, .choices = "as_is|average", .flags = PL_LATER,
      .help =
          "average: a model of parity `both` predicts the mean over a structure and its mirror image, in twice the time; models of "
          "parity `natural` need no average" },
    ST_COMPUTE_FIELDS(score_conf),
    { 0 },
};

static void settle(const pl_workflow *wf, void *conf)
{
    score_conf *c = conf;

    st_compute_settle(&c->compute, st_model_list_has_basis(wf, &c->models));
}

static bool wants(const pl_workflow *wf, const pl_step *step, const char *what)
{
    return strcmp(what, ST_POSITIONS) == 0 && st_model_list_is_spatial(wf, &((const score_conf *)step->conf)->models);
}

static void names(const pl_workflow *wf, const pl_step *step, const char *what, pl_names *out)
{
    st_model_list_names(wf, &((const score_conf *)step->conf)->models, what, out);
}

static int property_add(st_predicted *out, int n, st_predicted p, const char *unit, pl_arena *mem)
{
    p.own = st_property_own_name(p.name, unit, mem);
    p.unit = unit;
    out[n] = p;
    return p.own != NULL ? n + 1 : -1;
}

/* Properties of the models that this workflow trains. */
static int trained_properties(const st_train_conf *c, st_predicted *out, pl_arena *mem)
{
    int n = 0;

    for (int64_t k = 0; k < c->members * c->targets.n && n >= 0 && n < ST_SCORES_MAX; k++) {
        const st_target *t = st_train_target(c) + k % c->targets.n;
        n = property_add(
            out, n, (st_predicted){ .name = t->name, .domain = c->domain > 0, .interval = !st_train_classifies(c), .range = true },
            t->unit, mem);
    }
    return n;
}

/* Those of the stage score. */
static int model_properties(const pl_workflow *wf, st_predicted *out, pl_arena *mem)
{
    const pl_step *step = pl_workflow_step(wf, "score"), *train = pl_workflow_step(wf, "train");
    st_model_list l;
    int n = 0;

    if (step == NULL)
        return 0;
    st_model_list_fill(&l, wf, &((const score_conf *)step->conf)->models, mem);
    if (l.trained_here)
        return trained_properties(train->conf, out, mem);
    for (int k = 0; k < l.n && n >= 0; k++) {
        nn_model_file *m;
        if (nn_model_read(&m, l.path[k], mem, NULL) != PL_OK || n + m->conf.outputs > ST_SCORES_MAX)
            return -1;
        for (int32_t i = 0; i < m->conf.outputs && n >= 0; i++) {
            const nn_target *t = &m->target[i];
            n = property_add(out, n,
                             (st_predicted){ .name = t->name,
                                             .better = t->better,
                                             .domain = m->domain.n > 0,
                                             .interval = t->interval.n > 0,
                                             .range = m->range.molecules > 0 },
                             t->unit, mem);
        }
    }
    return n;
}

int st_score_properties(const pl_workflow *wf, st_predicted *out, pl_arena *mem)
{
    int n = model_properties(wf, out, mem);
    const char *name, *unit;

    if (n >= 0 && n < ST_SCORES_MAX && st_external_property(wf, &name, &unit))
        n = property_add(out, n, (st_predicted){ .name = name, .program = true }, unit, mem);
    return n;
}

static bool contradicts(const st_predicted *a, const st_predicted *b)
{
    return strcmp(a->name, b->name) == 0 && strcmp(a->unit, b->unit) == 0 && nn_target_opposed(a->better, b->better);
}

/* The scores of models of one property are averaged. */
static void check_better(const st_predicted *p, int n, const pl_step *step, pl_problems *problems)
{
    const char *name = NULL;

    for (int k = 1; k < n && name == NULL; k++)
        for (int j = 0; j < k; j++)
            name = contradicts(&p[j], &p[k]) ? p[k].name : name;
    if (name != NULL)
        pl_problem_add(problems, step->node,
                       "score: by one model low values of %s are better, by another high ones; train one of them again with the "
                       "other `better`, or score with one of them",
                       name);
}

/* A molecule has one score of a property. */
static void check_properties(const pl_workflow *wf, const pl_step *step, pl_problems *problems)
{
    pl_arena *mem = pl_arena_new(1 << 14);
    st_predicted all[ST_SCORES_MAX];
    const int n = mem != NULL ? st_score_properties(wf, all, mem) : 0;
    const st_predicted *program = n > 0 && all[n - 1].program ? &all[n - 1] : NULL;
    bool same = false;

    if (mem == NULL)
        pl_problem_refused(problems, step->node, NULL);
    for (int k = 0; program != NULL && k < n - 1; k++)
        same = same || (strcmp(all[k].name, program->name) == 0 &&
                        (all[k].unit[0] == '\0' || program->unit[0] == '\0' || strcmp(all[k].unit, program->unit) == 0));
    if (same)
        pl_problem_add(problems, step->node,
                       "score: %s is predicted by a model and scored by the program of `external`, in one unit; give "
                       "external.property another name",
                       program->name);
    check_better(all, n, step, problems);
    pl_arena_free(mem);
}

static void check(const pl_workflow *wf, const pl_step *step, pl_problems *problems)
{
    const score_conf *c = step->conf;

    st_compute_check(&c->compute, step, problems);
    st_model_list_check(wf, step, &c->models, problems);
    check_properties(wf, step, problems);
}

static pl_code key(const pl_workflow *wf, const pl_step *step, pl_store *store, const char **extra_json, pl_arena *mem,
                   pl_error *err)
{
    return st_model_list_key(wf, &((const score_conf *)step->conf)->models, store, extra_json, mem, err);
}

static pl_code estimate(const pl_workflow *wf, const pl_step *step, pl_store *store, pl_estimate *out, pl_arena *mem, pl_error *err)
{
    st_predicted predicted[ST_SCORES_MAX];
    st_model_list l;
    st_sizes sizes;
    int n;
    pl_code code = st_sizes_get(&sizes, wf, store, err);

    *out = (pl_estimate){ .n_items = -1, .n_units = -1 };
    if (code != PL_OK || sizes.n_units < 0)
        return code;
    st_model_list_fill(&l, wf, &((const score_conf *)step->conf)->models, mem);
    out->n_items = (int64_t)sizes.n;
    out->n_units = sizes.n_units;
    n = model_properties(wf, predicted, mem);
    out->bytes_results = 60.0 * sizes.n * (n > l.n ? n : l.n) + 50.0 * sizes.n;
    out->seconds = MOLECULE_S * sizes.structures * l.n;
    for (int k = 0; k < n; k++)
        out->bytes_results += predicted[k].domain ? 40.0 * sizes.n : 0; /* prediction.similarity and nearest */
    return PL_OK;
}

/* Adds one warning for all models whose targets share a domain that is not that of each. */
static void shared_tell(score_state *s)
{
    const nn_model_file *first = NULL;
    int n = 0;

    for (int k = 0; k < s->scorer.n_models; k++)
        if (st_shares_domain(s->scorer.model[k].m)) {
            first = first != NULL ? first : s->scorer.model[k].m;
            n++;
        }
    if (first != NULL)
        pl_event_add(s->env, PL_WARN, "model %s%s%s", first->name, n > 1 ? " (and others)" : "", st_shared_domain);
}

/* Adds one warning for all models without a range. */
static pl_code ranges_open(score_state *s, pl_error *err)
{
    const nn_model_file *silent = NULL;
    int n = 0;

    for (int k = 0; k < s->scorer.n_models; k++) {
        const nn_model_file *m = s->scorer.model[k].m;
        if (m->range.molecules > 0)
            continue;
        silent = silent != NULL ? silent : m;
        n++;
    }
    if (silent != NULL)
        pl_event_add(s->env, PL_WARN,
                     "model %s%s has no applicability domain, so the domain of its scores is unknown and their intervals "
                     "may not hold; train it again",
                     silent->name, n > 1 ? " (and others)" : "");
    shared_tell(s);
    return st_cases_open(&s->cases, s->env, err);
}

static pl_code columns_place(score_state *s, pl_error *err)
{
    const pl_names *columns = st_columns(s->env->wf);
    const char *name[PL_NAMES_MAX];

    for (int k = 0; k < columns->n; k++)
        name[k] = columns->name[k];
    return st_scorer_place(&s->scorer, name, columns->n, err);
}

static pl_code models_open(score_state *s, pl_error *err)
{
    const pl_step *graph = pl_workflow_step(s->env->wf, "graph");
    ch_graph_opts opts = st_graph_opts(graph);
    st_model_list l;
    pl_code code = PL_OK;

    st_model_list_fill(&l, s->env->wf, &s->conf->models, s->env->mem);
    s->trained_here = l.trained_here;
    for (int k = 0; k < l.n && code == PL_OK; k++) {
        nn_model_file *m;
        s->path[k] = l.path[k];
        code = l.path[k] != NULL ? nn_model_read(&m, l.path[k], s->env->mem, err) : pl_fail(err, PL_ENOMEM, "a model");
        if (code == PL_OK) {
            m->name = l.name[k];
            code = nn_model_graph_check(m, &opts, err);
        }
        if (code == PL_OK && l.trained_here)
            code = st_model_same(s->env->store, l.name[k], m, l.path[k], err);
        else if (code == PL_OK)
            code = st_model_keyed(s->env, m, l.path[k], err);
        if (code == PL_OK)
            st_model_form_check(s->env, m);
        if (code == PL_OK)
            code = st_scorer_add(&s->scorer, m, (nn_mirror_mode)s->conf->mirror, err);
    }
    if (code == PL_OK)
        code = columns_place(s, err);
    return code != PL_OK ? code : ranges_open(s, err);
}

/* A molecule that some models could score does not count as failed, so the missing predictions are reported here. */
static pl_code refusals_tell(const score_state *s, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    pl_code code;

    if (s->scorer.n_models < 2)
        return PL_OK;
    code =
        pl_db_prepare(s->env->store->db, &st,
                      "SELECT message, count(*) FROM failure WHERE stage='score' GROUP BY message ORDER BY 2 DESC, 1 LIMIT 3", err);
    while (pl_db_next(st, &code, err))
        pl_event_add(s->env, PL_WARN, "%lld %s no prediction of one model: %s", (long long)sqlite3_column_int64(st, 1),
                     pl_plural(sqlite3_column_int64(st, 1), "molecule has", "molecules have"),
                     (const char *)sqlite3_column_text(st, 0));
    sqlite3_finalize(st);
    return code;
}

/* Creates the index after the last row: updating it row by row would take most of the writing time. */
static pl_code score_finish(void *state, pl_error *err)
{
    score_state *s = state;
    pl_code code = refusals_tell(s, err);

    return code != PL_OK ? code
                         : pl_db_exec(s->env->store->db, "CREATE INDEX IF NOT EXISTS score_rank ON score(property_id,mean)", err);
}

/* Whether the labels were converted before this workflow's model learned them. */
static bool is_converted(const score_state *s, const nn_target *target)
{
    const pl_step *train = pl_workflow_step(s->env->wf, "train");
    const st_target *t = s->trained_here ? st_train_target_named(train->conf, target->name) : NULL;

    return t != NULL && st_target_converts(t);
}

/* Targets with a unit come first, so that what a model without one predicts does not become a number of that unit,
 * whatever the order of the models. */
static pl_code properties_put(score_state *s, bool with_unit, pl_error *err)
{
    pl_code code = PL_OK;

    for (int j = 0; j < s->scorer.n_targets && code == PL_OK; j++) {
        st_scored_target *t = &s->scorer.target[j];
        const nn_model_file *m = s->scorer.model[t->model].m;
        const nn_target *target = &m->target[t->output];
        if ((target->unit[0] != '\0') == with_unit)
            code = st_property_put(s->env->store, m, t->output, is_converted(s, target), &t->property_id, s->env->mem, err);
    }
    return code;
}

static pl_code rows_open(score_state *s, pl_error *err)
{
    pl_store *store = s->env->store;
    pl_code code = pl_db_begin(store->db, err);

    if (code == PL_OK)
        code = pl_db_exec(store->db, "DROP INDEX IF EXISTS score_rank", err);
    if (code == PL_OK)
        code = properties_put(s, true, err);
    if (code == PL_OK)
        code = properties_put(s, false, err);
    for (int k = 0; k < s->scorer.n_models && code == PL_OK; k++)
        code = st_model_put(store, s->scorer.model[k].m, s->path[k], &s->model_id[k], s->env->mem, err);
    if (code != PL_OK) {
        pl_db_rollback(store->db);
        return code;
    }
    code = pl_db_commit(store->db, err);
    if (code == PL_OK)
        code = pl_insert_open(&s->put_prediction, store->db, store->sums, "prediction",
                              "mol_id,property_id,model_id,value,similarity,nearest,spread,uncertainty", err);
    if (code == PL_OK)
        code = pl_db_prepare(store->db, &s->key_of, "SELECT inchikey FROM molecule WHERE mol_id=?", err);
    return code != PL_OK ? code
                         : pl_insert_open(&s->put_score, store->db, store->sums, "score",
                                          "mol_id,property_id,mean,stdev,n_models,similarity,interval90,domain,reasons", err);
}

pl_code st_score_open_inputs(score_state *s, pl_env *env, pl_error *err)
{
    pl_code code;

    s->env = env;
    s->conf = env->step->conf;
    st_compute_say(&s->conf->compute, "score");
    code = st_scorer_open(&s->scorer, &s->conf->compute, s->conf->molecules, s->conf->max_edges, err);
    if (code != PL_OK)
        return code;
    if (s->scorer.n_devices > 1)
        pl_log(PL_INFO, "score     %d GPUs, %d workers%s", s->scorer.n_devices, env->workers,
               env->workers < s->scorer.n_devices ? ": to use all GPUs, give -j at least as many" : "");
    code = st_blocks_open(&s->graphs, env, "graph", "graph", err);
    if (code == PL_OK && pl_workflow_step(env->wf, "basis") != NULL)
        code = st_blocks_open(&s->bases, env, "basis", "basis", err);
    return code == PL_OK ? models_open(s, err) : code;
}

static pl_code score_open(void *state, pl_env *env, pl_error *err)
{
    score_state *s = state;
    pl_code code = st_score_open_inputs(s, env, err);

    st_score_taken_open(&s->taken, env);
    return code == PL_OK ? rows_open(s, err) : code;
}

/* The molecules of a unit have the numbers of its records. */
static pl_code columns_get(const score_state *s, score_unit *u, pl_unit *unit, pl_error *err)
{
    static const char sql[] =
        "SELECT coalesce((SELECT u.%s FROM unit u JOIN stage USING(stage_id) WHERE name='prepare' AND u.unit=%lld),0)";
    pl_store *store = s->env->store;
    int64_t first = 0, last = 0;
    pl_code code = pl_db_int(store->db, &first, err, sql, "first", (long long)unit->index);

    if (code == PL_OK)
        code = pl_db_int(store->db, &last, err, sql, "last", (long long)unit->index);
    return code == PL_OK ? st_columns_read(&u->columns, store->db, st_columns(s->env->wf), first, last, unit->mem, err) : code;
}

pl_code st_score_read(score_state *s, pl_unit *unit, bool *more, pl_error *err)
{
    score_unit *u;
    pl_code code = st_blocks_has(&s->graphs, unit->index, more, err);

    if (code != PL_OK || !*more)
        return code;
    u = PL_NEW(unit->mem, score_unit, 1);
    if (u == NULL)
        return pl_fail(err, PL_ENOMEM, "a unit of graphs");
    unit->data = u;
    u->state = s;
    u->taken = st_score_taken_unit(&u->scored, &s->taken, &s->scorer, s->env, unit->index, unit->mem);
    if (u->taken) /* of a campaign, whose models read no columns */
        return PL_OK;
    if (st_columns(s->env->wf)->n > 0)
        code = columns_get(s, u, unit, err);
    if (code == PL_OK && s->bases.store != NULL)
        code = st_blocks_has(&s->bases, unit->index, &u->has_basis, err);
    return code;
}

static pl_code score_next(void *state, pl_unit *unit, bool *more, pl_error *err) { return st_score_read(state, unit, more, err); }

void st_score_close(void *state)
{
    score_state *s = state;

    pl_insert_close(&s->put_prediction);
    pl_insert_close(&s->put_score);
    (void)sqlite3_finalize(s->key_of);
    st_cases_close(&s->cases);
    pl_text_free(&s->reasons);
}

static const char *const needs[] = { "graph", "(basis)", "(train)", NULL };
/* Removes models and properties unless a train stage, which owns them, exists. */
#define NOT_TRAINED " AND NOT EXISTS(SELECT 1 FROM stage WHERE name='train')"
/* What a program of the user's scored stays (stages/steps/external/external_store.c). */
#define PROGRAMS "(SELECT model_id FROM model WHERE " ST_IS_EXTERNAL("") ")"
static const char *const reset_sql[] = {
    "DELETE FROM score WHERE property_id NOT IN (SELECT property_id FROM prediction WHERE model_id IN " PROGRAMS ")",
    "DELETE FROM prediction WHERE model_id NOT IN " PROGRAMS,
    "DELETE FROM model WHERE model_id NOT IN (SELECT model_id FROM evaluation) AND model_id NOT IN " PROGRAMS NOT_TRAINED,
    "DELETE FROM property WHERE NOT EXISTS(SELECT 1 FROM label l WHERE l.property_id=property.property_id) AND property_id NOT "
    "IN (SELECT property_id FROM evaluation) AND property_id NOT IN (SELECT property_id FROM prediction) AND NOT " ST_WAITS_FOR_PROGRAM
        NOT_TRAINED,
    NULL
};

/* The level of the stage: what the last digits depend on (stages/steps/train/compute.h). */
static const char *score_level(const pl_step *step, pl_arena *mem)
{
    return st_compute_level(&((const score_conf *)step->conf)->compute, mem);
}

const pl_stage st_score = {
    .name = "score",
    .help = "predictions of one or several models for every molecule",
    .scope = PL_PER_UNIT,
    .version = 1,
    .fields = fields,
    .conf_size = sizeof(score_conf),
    .state_size = sizeof(score_state),
    .worker_size = sizeof(st_scorer_worker),
    .needs = needs,
    .item = "molecules",
    .settle = settle,
    .wants = wants,
    .names = names,
    .check = check,
    .key = key,
    .estimate = estimate,
    .open = score_open,
    .next = score_next,
    .worker_open = st_score_worker_open,
    .work = st_score_work,
    .worker_close = st_score_worker_close,
    .commit = st_score_commit,
    .finish = score_finish,
    .close = st_score_close,
    .reset_sql = reset_sql,
    .level = score_level,
    .own_references = true,
};
