/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/score/score.h"

#include <math.h>
#include <string.h>

#include "chem/molecule/element.h"
#include "chem/graph/graph_block.h"
#include "pipeline/base/log.h"
#include "pipeline/base/text.h"
#include "stages/steps/errors/domain.h"
#include "stages/steps/ingest/size_estimate.h"
#include "stages/steps/dataset/dataset.h"
#include "stages/steps/features/graph.h"
#include "stages/steps/train/model_row.h"
#include "stages/steps/score/score_parts.h"
#include "stages/steps/train/train.h"

/* Seconds a molecule and edge for one layer of 32 channels, one worker: for plans only. */
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

static void check(const pl_workflow *wf, const pl_step *step, pl_problems *problems)
{
    const score_conf *c = step->conf;

    st_compute_check(&c->compute, step, problems);
    st_model_list_check(wf, step, &c->models, problems);
}

static int property_add(st_predicted *out, int n, st_predicted p, const char *unit, pl_arena *mem)
{
    p.own = st_property_own_name(p.name, unit, mem);
    out[n] = p;
    return p.own != NULL ? n + 1 : -1;
}

/* Of the models that this workflow trains. */
static int trained_properties(const st_train_conf *c, st_predicted *out, pl_arena *mem)
{
    int n = 0;

    for (int64_t k = 0; k < c->members * c->targets.n && n >= 0 && n < ST_SCORES_MAX; k++) {
        const st_target *t = st_train_target(c) + k % c->targets.n;
        n = property_add(out, n, (st_predicted){ t->name, NULL, c->domain > 0, !st_train_classifies(c), true }, t->unit, mem);
    }
    return n;
}

int st_score_properties(const pl_workflow *wf, st_predicted *out, pl_arena *mem)
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
            n = property_add(out, n, (st_predicted){ t->name, NULL, m->domain.n > 0, t->interval.n > 0, m->range.molecules > 0 },
                             t->unit, mem);
        }
    }
    return n;
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
    n = st_score_properties(wf, predicted, mem);
    out->bytes_results = 60.0 * sizes.n * (n > l.n ? n : l.n) + 50.0 * sizes.n;
    out->seconds = MOLECULE_S * sizes.structures * l.n;
    for (int k = 0; k < n; k++)
        out->bytes_results += predicted[k].domain ? 40.0 * sizes.n : 0; /* prediction.similarity and nearest */
    return PL_OK;
}

/* ---- the run ------------------------------------------------------------- */

typedef struct score_worker {
    const score_state *state;
    const nn_engine_kind *kind;
    nn_engine *engine[ST_MODELS_MAX];
    int laid[ST_MODELS_MAX];            /* the first model with the same inputs      */
    nn_collate *collate[ST_MODELS_MAX]; /* of those that are the first               */
    nn_mirror *mirror[ST_MODELS_MAX];   /* the same, if some model is mirrored       */
    pl_arena *scratch;
} score_worker;

/* Of models trained on the same molecules, only the first searches for the nearest. */
static void domain_join(score_state *s, int k)
{
    int j = 0;

    while (j < k && !nn_domain_same(&s->model[j].m->domain, &s->model[k].m->domain))
        j++;
    s->model[k].domain = s->model[k].m->domain.n > 0 ? j : -1;
}

static pl_code targets_add(score_state *s, int k, pl_error *err)
{
    const nn_model_file *m = s->model[k].m;

    if (s->n_targets + m->conf.outputs > ST_SCORES_MAX)
        return pl_fail(err, PL_ECONFIG, "models: they predict more than %d numbers", ST_SCORES_MAX);
    for (int32_t i = 0; i < m->conf.outputs; i++)
        s->target[s->n_targets++] = (scored_target){ .model = k, .output = i };
    return PL_OK;
}

/* One warning for all models without a range. */
static pl_code ranges_open(score_state *s, pl_error *err)
{
    const nn_model_file *silent = NULL;
    int n = 0;

    for (int k = 0; k < s->n_models; k++) {
        const nn_model_file *m = s->model[k].m;
        s->has_range = s->has_range || m->range.molecules > 0;
        if (m->range.molecules > 0)
            continue;
        silent = silent != NULL ? silent : m;
        n++;
    }
    if (silent != NULL)
        (void)pl_event_add(s->env, PL_WARN,
                           "model %s%s has no applicability domain, so the domain of its scores is unknown and their intervals "
                           "may not hold; train it again",
                           silent->name, n > 1 ? " (and others)" : "");
    return st_cases_open(&s->cases, s->env, err);
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
        scored_model *m = &s->model[s->n_models++];
        m->path = l.path[k];
        code = m->path != NULL ? nn_model_read(&m->m, m->path, s->env->mem, err) : pl_fail(err, PL_ENOMEM, "a model");
        if (code == PL_OK) {
            m->m->name = l.name[k];
            code = nn_model_graph_check(m->m, &opts, err);
        }
        if (code == PL_OK && l.trained_here)
            code = st_model_same(s->env->store, l.name[k], m->m, m->path, err);
        else if (code == PL_OK)
            code = st_model_keyed(s->env, m->m, m->path, err);
        if (code == PL_OK)
            code = st_model_form_check(s->env, m->m);
        if (code == PL_OK)
            code = targets_add(s, k, err);
        if (code == PL_OK)
            m->mirrored = nn_mirror_wanted((nn_mirror_mode)s->conf->mirror, &m->m->conf);
        s->mirrors |= m->mirrored;
        if (code == PL_OK)
            domain_join(s, k);
    }
    return code != PL_OK ? code : ranges_open(s, err);
}

/* A molecule that only some of the models scored is no failure of the run, so it is reported here. */
static pl_code refusals_tell(const score_state *s, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    bool row = true;
    pl_code code = s->n_models < 2 ? PL_OK
                                   : pl_db_prepare(s->env->store->db, &st,
                                                   "SELECT message, count(*) FROM failure WHERE stage='score' "
                                                   "GROUP BY message ORDER BY 2 DESC, 1 LIMIT 3",
                                                   err);

    while (code == PL_OK && st != NULL && (code = pl_db_step(st, &row, err)) == PL_OK && row)
        code = pl_event_add(s->env, PL_WARN, "%lld molecules have no prediction of one model: %s",
                            (long long)sqlite3_column_int64(st, 1), (const char *)sqlite3_column_text(st, 0));
    sqlite3_finalize(st);
    return code;
}

/* The index is made at the end, sorted once: molecule by molecule it would be most of the writing. */
static pl_code score_finish(void *state, pl_error *err)
{
    score_state *s = state;
    pl_code code = refusals_tell(s, err);

    return code != PL_OK ? code : pl_db_exec(s->env->store->db, "CREATE INDEX score_rank ON score(property_id,mean)", err);
}

/* The labels that the model of this workflow learned. */
static bool is_converted(const score_state *s, int32_t output)
{
    const pl_step *train = pl_workflow_step(s->env->wf, "train");

    return s->trained_here && st_target_converts(st_train_target(train->conf) + output);
}

static pl_code rows_open(score_state *s, pl_error *err)
{
    pl_store *store = s->env->store;
    pl_code code = pl_db_begin(store->db, err);

    if (code == PL_OK)
        code = pl_db_exec(store->db, "DROP INDEX IF EXISTS score_rank", err);
    for (int j = 0; j < s->n_targets && code == PL_OK; j++) {
        scored_target *t = &s->target[j];
        code =
            st_property_put(store, s->model[t->model].m, t->output, is_converted(s, t->output), &t->property_id, s->env->mem, err);
    }
    for (int k = 0; k < s->n_models && code == PL_OK; k++)
        code = st_model_put(store, s->model[k].m, s->model[k].path, &s->model[k].model_id, s->env->mem, err);
    if (code != PL_OK) {
        pl_db_rollback(store->db);
        return code;
    }
    code = pl_db_commit(store->db, err);
    if (code == PL_OK)
        code = pl_db_prepare(
            store->db, &s->put_prediction,
            "INSERT INTO prediction(mol_id,property_id,model_id,value,similarity,nearest,spread) VALUES(?,?,?,?,?,?,?)", err);
    return code != PL_OK ? code
                         : pl_db_prepare(store->db, &s->put_score,
                                         "INSERT INTO score(mol_id,property_id,mean,stdev,n_models,similarity,"
                                         "interval90,domain,reasons) VALUES(?,?,?,?,?,?,?,?,?)",
                                         err);
}

static pl_code score_open(void *state, pl_env *env, pl_error *err)
{
    score_state *s = state;
    pl_code code;

    s->env = env;
    s->conf = env->step->conf;
    st_compute_say(&s->conf->compute, "score");
    code = st_compute_devices(&s->conf->compute, s->device, &s->n_devices, err);
    if (code != PL_OK)
        return code;
    if (s->n_devices > 1)
        pl_log(PL_INFO, "score     %d GPUs, %d workers%s", s->n_devices, env->workers,
               env->workers < s->n_devices ? ": to use all GPUs, give -j at least as many" : "");
    code = st_blocks_open(&s->graphs, env, "graph", "graph", err);
    if (code == PL_OK && pl_workflow_step(env->wf, "basis") != NULL)
        code = st_blocks_open(&s->bases, env, "basis", "basis", err);
    if (code == PL_OK)
        code = models_open(s, err);
    return code != PL_OK ? code : rows_open(s, err);
}

static pl_code score_next(void *state, pl_unit *unit, bool *more, pl_error *err)
{
    score_state *s = state;
    score_unit *u;
    bool stored = false;
    pl_code code = st_blocks_has(&s->graphs, unit->index, more, err);

    if (code != PL_OK || !*more)
        return code;
    u = PL_NEW(unit->mem, score_unit, 1);
    if (u == NULL)
        return pl_fail(err, PL_ENOMEM, "a unit of graphs");
    unit->data = u;
    code = st_blocks_get(&s->graphs, unit->index, &u->graphs, unit->mem, err);
    if (code == PL_OK && s->bases.store != NULL)
        code = st_blocks_has(&s->bases, unit->index, &stored, err);
    return code != PL_OK || !stored ? code : st_blocks_get(&s->bases, unit->index, &u->bases, unit->mem, err);
}

/* ---- workers ------------------------------------------------------------- */

/* Models with the same inputs read one batch. */
static pl_code collates_open(score_worker *w, pl_error *err)
{
    const score_state *s = w->state;

    for (int k = 0; k < s->n_models; k++) {
        int j = 0;
        while (j < k && !nn_inputs_same(&s->model[j].m->inputs, &s->model[k].m->inputs))
            j++;
        w->laid[k] = j;
        w->collate[k] = j == k ? nn_collate_new() : NULL;
        w->mirror[k] = j == k && s->mirrors ? nn_mirror_new() : NULL;
        if (j == k && (w->collate[k] == NULL || (s->mirrors && w->mirror[k] == NULL)))
            return pl_fail(err, PL_ENOMEM, "a worker");
    }
    return PL_OK;
}

static pl_code worker_open(void *worker, void *state, pl_error *err)
{
    score_worker *w = worker;
    const score_state *s = state;
    nn_engine_conf conf = st_compute_conf(&s->conf->compute, 1);
    int number = atomic_fetch_add(&((score_state *)state)->n_workers, 1);
    pl_code code;

    conf.device = s->device[number % s->n_devices];
    w->state = s;
    w->kind = st_compute_engine(&s->conf->compute);
    w->scratch = pl_arena_new(1 << 20);
    code = w->scratch != NULL ? collates_open(w, err) : pl_fail(err, PL_ENOMEM, "a worker");
    for (int k = 0; k < s->n_models && code == PL_OK; k++) {
        code = w->kind->open(&w->engine[k], s->model[k].m->model, &conf, err);
        if (code == PL_OK)
            code = w->kind->set_params(w->engine[k], s->model[k].m->params, err);
    }
    return code;
}

static void worker_close(void *worker)
{
    score_worker *w = worker;

    for (int k = 0; w->kind != NULL && k < ST_MODELS_MAX; k++)
        w->kind->close(w->engine[k]);
    for (int k = 0; k < ST_MODELS_MAX; k++) {
        nn_collate_free(w->collate[k]);
        nn_mirror_free(w->mirror[k]);
    }
    pl_arena_free(w->scratch);
}

/* A batch for all models: items first .. of the unit. */
typedef struct score_batch {
    score_unit *u;
    const nn_item *item;
    int32_t first, count;
    nn_collated made[ST_MODELS_MAX]; /* of those that are the first with their inputs */
    nn_batch image[ST_MODELS_MAX];   /* their mirror images                           */
    float *y[2][ST_MODELS_MAX];      /* [structures of a unit][outputs of the model]; [1]: of mirror images */
} score_batch;

static void radial_note(score_worker *w, score_unit *u, int k)
{
    double off = w->kind->radial_error != NULL ? w->kind->radial_error(w->engine[k]) : 0;

    if (!(off <= u->radial_error))
        u->radial_error = off;
}

/* At the same time if the engine can, else one after the other. image: mirror images, for the models that need them. */
static pl_code forward_run(score_worker *w, score_batch *b, bool image, pl_error *err)
{
    nn_engine *engine[ST_MODELS_MAX];
    const nn_batch *in[ST_MODELS_MAX];
    float *y[ST_MODELS_MAX];
    int n = 0;
    pl_code code = PL_OK;

    for (int k = 0; k < w->state->n_models && code == PL_OK; k++) {
        const nn_batch *batch = image ? &b->image[w->laid[k]] : &b->made[w->laid[k]].batch;
        if (!batch->n_graphs || (image && !w->state->model[k].mirrored))
            continue;
        engine[n] = w->engine[k];
        in[n] = batch;
        y[n++] = b->y[image][k];
        if (w->kind->forward_all != NULL)
            continue;
        code = w->kind->forward(w->engine[k], batch, false, b->y[image][k], err);
        if (code == PL_OK && b->first == 0 && !image)
            radial_note(w, b->u, k);
    }
    return code != PL_OK || w->kind->forward_all == NULL ? code : w->kind->forward_all(engine, in, y, n, err);
}

/* Means over structures and mirror images, of the network's own numbers: before they get their unit or probability. */
static void images_join(const score_worker *w, score_batch *b)
{
    for (int k = 0; k < w->state->n_models; k++) {
        int32_t n = b->made[w->laid[k]].batch.n_graphs * w->state->model[k].m->conf.outputs;
        for (int32_t i = 0; w->state->model[k].mirrored && i < n; i++)
            b->y[0][k][i] = 0.5f * (b->y[0][k][i] + b->y[1][k][i]);
    }
}

static pl_code images_run(score_worker *w, score_batch *b, pl_error *err)
{
    pl_code code = PL_OK;

    for (int k = 0; k < w->state->n_models && code == PL_OK; k++)
        if (w->laid[k] == k)
            code = nn_mirror_batch(w->mirror[k], &b->image[k], &b->made[k].batch, err);
    if (code == PL_OK)
        code = forward_run(w, b, true, err);
    if (code == PL_OK)
        images_join(w, b);
    return code;
}

static void outcomes_take(score_batch *b, const score_state *s, int target, const nn_collated *c)
{
    const scored_target *t = &s->target[target];
    const nn_model_file *m = s->model[t->model].m;
    outcome *o = b->u->outcome + (int64_t)b->first * s->n_targets + target;

    for (int32_t i = 0; i < c->batch.n_graphs; i++) {
        const ch_graph *g = b->item[b->first + c->item[i]].graph;
        o[(int64_t)c->item[i] * s->n_targets].value =
            nn_model_value(m, t->output, g->z, g->n_nodes, (double)b->y[0][t->model][i * m->conf.outputs + t->output]);
    }
    for (int32_t i = 0; i < c->n_left; i++)
        o[(int64_t)c->left[i].item * s->n_targets].unknown = c->left[i].element;
}

static pl_code batch_run(score_worker *w, score_batch *b, pl_error *err)
{
    const score_state *s = w->state;
    pl_code code = PL_OK;

    for (int k = 0; k < s->n_models && code == PL_OK; k++)
        if (w->laid[k] == k)
            code = nn_collate_run(w->collate[k], &b->made[k], b->item + b->first, b->count, &s->model[k].m->inputs, err);
    if (code == PL_OK)
        code = forward_run(w, b, false, err);
    if (code == PL_OK && s->mirrors)
        code = images_run(w, b, err);
    for (int j = 0; j < s->n_targets && code == PL_OK; j++)
        outcomes_take(b, s, j, &b->made[w->laid[s->target[j].model]]);
    return code;
}

static pl_code unit_unpack(score_worker *w, score_unit *u, nn_item **item, pl_arena *mem, pl_error *err)
{
    ch_graph_block graphs;
    nn_basis_block basis;
    pl_code code = pl_block_check(&u->graphs, err);

    if (code == PL_OK)
        code = pl_block_check(&u->bases, err);
    if (code == PL_OK)
        code = ch_graph_block_unpack(&graphs, u->graphs.data, w->scratch, err);
    if (code == PL_OK && u->bases.found)
        code = nn_basis_unpack(&basis, u->bases.data, &graphs, w->scratch, err);
    if (code != PL_OK)
        return code;
    u->n_structures = graphs.n;
    u->id = PL_NEW(mem, int64_t, graphs.n + 1);
    u->structure = PL_NEW(mem, int32_t, graphs.n + 1);
    u->outcome = PL_NEW(mem, outcome, (int64_t)graphs.n * w->state->n_targets + 1);
    *item = PL_NEW(w->scratch, nn_item, graphs.n + 1);
    if (u->id == NULL || u->structure == NULL || u->outcome == NULL || *item == NULL)
        return pl_fail(err, PL_ENOMEM, "scores of %d molecules", (int)graphs.n);
    for (int32_t i = 0; i < graphs.n; i++) {
        if (i == 0 || graphs.id[i] != graphs.id[i - 1]) {
            u->structure[u->n] = i;
            u->id[u->n++] = graphs.id[i];
        }
        (*item)[i] = nn_item_of(&graphs, u->bases.found ? &basis : NULL, i);
    }
    u->structure[u->n] = graphs.n;
    return PL_OK;
}

/* Models with the same domain search once. All structures of a molecule have the same fingerprint. */
static pl_code nearest_find(score_worker *w, score_unit *u, const nn_item *item, pl_arena *mem, pl_error *err)
{
    nn_item *first = PL_NEW(w->scratch, nn_item, u->n + 1);
    pl_code code = first != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "scores of %d molecules", (int)u->n);

    for (int32_t i = 0; i < u->n && code == PL_OK; i++)
        first[i] = item[u->structure[i]];
    for (int k = 0; k < w->state->n_models && code == PL_OK; k++) {
        const int j = w->state->model[k].domain;
        if (j == k)
            code = st_domain_nearest(&u->near[k], &w->state->model[k].m->domain, first, u->n, mem, err);
        else if (j >= 0)
            u->near[k] = u->near[j];
    }
    return code;
}

/* Mean and sample deviation of n structures, n_targets apart. */
static outcome together(const outcome *o, int32_t n, int n_targets)
{
    outcome all = { .value = o->value, .spread = NAN, .unknown = o->unknown };
    double square = 0;

    if (n == 1)
        return all;
    for (int32_t i = 1; i < n; i++)
        all.value += o[i * n_targets].value;
    all.value /= n;
    for (int32_t i = 0; i < n; i++)
        square += (o[i * n_targets].value - all.value) * (o[i * n_targets].value - all.value);
    all.spread = sqrt(square / (n - 1));
    return all;
}

/* Those of the first structure are those of all. */
static pl_code traits_find(score_worker *w, score_unit *u, const nn_item *item, pl_arena *mem, pl_error *err)
{
    pl_code code = PL_OK;

    u->traits = PL_NEW(mem, nn_traits, u->n + 1);
    if (u->traits == NULL)
        return pl_fail(err, PL_ENOMEM, "scores of %d molecules", (int)u->n);
    for (int32_t i = 0; i < u->n && code == PL_OK; i++)
        code = nn_traits_of(&u->traits[i], item[u->structure[i]].graph, w->scratch, err);
    return code;
}

/* In place: molecules are never more than structures. */
static void structures_join(score_unit *u, int n_targets)
{
    for (int32_t i = 0; i < u->n; i++)
        for (int k = 0; k < n_targets; k++)
            u->outcome[(int64_t)i * n_targets + k] =
                together(u->outcome + (int64_t)u->structure[i] * n_targets + k, u->structure[i + 1] - u->structure[i], n_targets);
}

static pl_code score_work(void *worker, pl_unit *unit, pl_error *err)
{
    score_worker *w = worker;
    const score_conf *c = w->state->conf;
    score_batch b = { .u = unit->data };
    nn_item *item;
    pl_code code;

    pl_arena_reset(w->scratch);
    code = unit_unpack(w, b.u, &item, unit->mem, err);
    if (code != PL_OK)
        return code;
    b.item = item;
    code = nearest_find(w, b.u, item, unit->mem, err);
    if (code == PL_OK && w->state->has_range)
        code = traits_find(w, b.u, item, unit->mem, err);
    for (int k = 0; k < w->state->n_models && code == PL_OK; k++) {
        size_t n = (size_t)b.u->n_structures * (size_t)w->state->model[k].m->conf.outputs + 1;
        b.y[0][k] = PL_NEW(w->scratch, float, n);
        b.y[1][k] = PL_NEW(w->scratch, float, w->state->model[k].mirrored ? n : 1);
        code = b.y[0][k] != NULL && b.y[1][k] != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "scores of %d molecules", (int)b.u->n);
    }
    for (; b.first < b.u->n_structures && code == PL_OK; b.first += b.count) {
        b.count = nn_collate_take(item, b.first, b.u->n_structures, (int32_t)c->molecules, c->max_edges);
        code = batch_run(w, &b, err);
    }
    if (code == PL_OK)
        structures_join(b.u, w->state->n_targets);
    return code;
}

static void score_close(void *state)
{
    score_state *s = state;

    sqlite3_finalize(s->put_prediction);
    sqlite3_finalize(s->put_score);
    st_cases_close(&s->cases);
    pl_text_free(&s->reasons);
}

static const char *const needs[] = { "graph", "(basis)", "(train)", NULL };
/* Properties that came with the models are removed with them; those of a train stage belong to it. */
#define NOT_TRAINED " AND NOT EXISTS(SELECT 1 FROM stage WHERE name='train')"
static const char *const reset_sql[] = {
    "DELETE FROM score", "DELETE FROM prediction",
    "DELETE FROM model WHERE model_id NOT IN (SELECT model_id FROM evaluation)" NOT_TRAINED,
    "DELETE FROM property WHERE NOT EXISTS(SELECT 1 FROM label l WHERE l.property_id=property.property_id) AND property_id NOT "
    "IN (SELECT property_id FROM evaluation)" NOT_TRAINED,
    NULL
};

/* What the last digits depend on (stages/steps/train/compute.h). */
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
    .worker_size = sizeof(score_worker),
    .needs = needs,
    .item = "molecules",
    .check = check,
    .key = key,
    .estimate = estimate,
    .open = score_open,
    .next = score_next,
    .worker_open = worker_open,
    .work = score_work,
    .worker_close = worker_close,
    .commit = st_score_commit,
    .finish = score_finish,
    .close = score_close,
    .reset_sql = reset_sql,
    .level = score_level,
};
