/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/score/scorer.h"

#include <math.h>
#include <string.h>

#include "models/family/table.h"
#include "stages/steps/errors/domain.h"

/* ---- models -------------------------------------------------------------- */

pl_code st_scorer_open(st_scorer *s, const st_compute *compute, int64_t molecules, int64_t max_edges, pl_error *err)
{
    s->compute = compute;
    s->molecules = molecules;
    s->max_edges = max_edges;
    return st_compute_devices(compute, s->device, &s->n_devices, err);
}

const char st_shared_domain[] =
    " was trained by an earlier version on labels with gaps and has one range of molecules, or one similarity, for all its targets, so a score may "
    "be inside for molecules of a kind that its target was not measured for; train it again";

bool st_shares_domain(const nn_model_file *m) { return nn_model_shares_range(m) || nn_model_shares_similarity(m); }

static bool same_molecules(const st_scorer *s, const st_scored_target *a, const st_scored_target *b)
{
    const nn_domain *x = &s->model[a->model].m->domain, *y = &s->model[b->model].m->domain;

    return (a->model == b->model || nn_domain_same(x, y)) && nn_domain_same_of(x, a->output, y, b->output);
}

/* Among targets that the same training molecules have, only the first searches for nearest molecules. */
static void search_join(st_scorer *s, int k)
{
    st_scored_target *t = &s->target[k];
    int j = 0;

    while (j < k && !same_molecules(s, &s->target[j], t))
        j++;
    t->searched = s->model[t->model].m->domain.n > 0 ? j : -1;
}

/* Two targets of one property, whose values have a mean: numbers or probabilities both, and the same end of them better. */
static pl_code target_agrees(const nn_model_file *a, const nn_target *x, const nn_model_file *b, const nn_target *y, pl_error *err)
{
    static const char *const kinds[] = { "a number", "the probability of a class" };

    if (strcmp(x->name, y->name) != 0 || strcmp(x->unit, y->unit) != 0)
        return PL_OK;
    if (a->classifies != b->classifies)
        return pl_fail(err, PL_ECONFIG,
                       "models: %s predicts %s as %s and %s as %s, which have no mean; predict with one after the other", a->name,
                       x->name, kinds[a->classifies], b->name, kinds[b->classifies]);
    if (nn_target_opposed(x->better, y->better))
        return pl_fail(
            err, PL_ECONFIG,
            "models: by %s %s values of %s are better, by %s %s ones; train one of them again with the other `better`, or "
            "predict with one after the other",
            a->name, x->better, x->name, b->name, y->better);
    return PL_OK;
}

/* Those of m and of the models before it. */
static pl_code targets_agree(const st_scorer *s, const nn_model_file *m, pl_error *err)
{
    pl_code code = PL_OK;

    for (int j = 0; j < s->n_targets; j++) {
        const nn_model_file *other = s->model[s->target[j].model].m;
        for (int32_t i = 0; i < m->conf.outputs && code == PL_OK; i++)
            code = target_agrees(other, &other->target[s->target[j].output], m, &m->target[i], err);
    }
    return code;
}

pl_code st_scorer_add(st_scorer *s, nn_model_file *m, nn_mirror_mode mirror, pl_error *err)
{
    const pl_code code = targets_agree(s, m, err);
    const int k = s->n_models++;

    if (code != PL_OK)
        return code;
    if (s->n_targets + m->conf.outputs > ST_SCORES_MAX)
        return pl_fail(err, PL_ECONFIG, "models: they predict more than %d numbers", ST_SCORES_MAX);
    if (s->n_networks + nn_model_networks(m) > ST_MODELS_MAX)
        return pl_fail(err, PL_ECONFIG, "models: they have more than %d networks", ST_MODELS_MAX);
    s->model[k] = (st_scored_model){ .m = m, .network = s->n_networks, .mirrored = nn_mirror_wanted(mirror, &m->conf) };
    s->n_networks += nn_model_networks(m);
    for (int32_t i = 0; i < m->conf.outputs; i++) {
        s->target[s->n_targets] = (st_scored_target){ .model = k, .output = i };
        search_join(s, s->n_targets++);
    }
    s->mirrors |= s->model[k].mirrored;
    s->describes |= m->model != NULL && m->inputs.descriptors;
    s->has_range = s->has_range || m->range.molecules > 0;
    return PL_OK;
}

pl_code st_scorer_place(st_scorer *s, const char *const *name, int32_t n, pl_error *err)
{
    pl_code code = PL_OK;

    for (int k = 0; k < s->n_models && code == PL_OK; k++) {
        code = nn_inputs_place(&s->model[k].m->inputs, name, n, err);
        if (code != PL_OK)
            pl_at(err, "model %s", s->model[k].m->name);
    }
    return code;
}

pl_code st_scored_make(st_scored *u, const st_scorer *s, const int64_t *id, int32_t n_structures, pl_arena *mem, pl_error *err)
{
    u->n = 0;
    u->n_structures = n_structures;
    u->id = PL_NEW(mem, int64_t, n_structures + 1);
    u->structure = PL_NEW(mem, int32_t, n_structures + 1);
    u->outcome = PL_NEW(mem, st_outcome, (int64_t)n_structures * s->n_targets + 1);
    if (u->id == NULL || u->structure == NULL || u->outcome == NULL)
        return pl_fail(err, PL_ENOMEM, "scores of %d molecules", (int)n_structures);
    for (int32_t i = 0; i < n_structures; i++)
        if (i == 0 || id[i] != id[i - 1]) {
            u->structure[u->n] = i;
            u->id[u->n++] = id[i];
        }
    u->structure[u->n] = n_structures;
    return PL_OK;
}

/* ---- a worker ------------------------------------------------------------ */

static bool has_network(const st_scorer *s, int k) { return s->model[k].m->model != NULL; }

/* Models with the same inputs share one batch, made by the first of them. */
static pl_code collates_open(st_scorer_worker *w, pl_error *err)
{
    const st_scorer *s = w->scorer;

    for (int k = 0; k < s->n_models; k++) {
        int j = 0;
        if (!has_network(s, k))
            continue;
        while (j < k && (!has_network(s, j) || !nn_inputs_same(&s->model[j].m->inputs, &s->model[k].m->inputs)))
            j++;
        w->laid[k] = j;
        w->collate[k] = j == k ? nn_collate_new() : NULL;
        w->mirror[k] = j == k && s->mirrors ? nn_mirror_new() : NULL;
        if (j == k && (w->collate[k] == NULL || (s->mirrors && w->mirror[k] == NULL)))
            return pl_fail(err, PL_ENOMEM, "a worker");
    }
    return PL_OK;
}

/* An engine for each network of model k. */
static pl_code engines_open(st_scorer_worker *w, int k, nn_engine_conf *conf, pl_error *err)
{
    const st_scored_model *one = &w->scorer->model[k];
    nn_engine **engine = w->engine + one->network;
    pl_code code = PL_OK;

    conf->width = st_compute_width(w->scorer->compute, &one->m->conf);
    for (int32_t i = 0; i < nn_model_networks(one->m) && code == PL_OK; i++) {
        code = w->kind->open(&engine[i], one->m->model, conf, err);
        if (code == PL_OK)
            code = w->kind->set_params(engine[i], nn_model_params(one->m, i), err);
    }
    return code;
}

pl_code st_scorer_worker_open(st_scorer_worker *w, st_scorer *scorer, pl_error *err)
{
    nn_engine_conf conf = st_compute_conf(scorer->compute, 1);
    int number = atomic_fetch_add(&scorer->n_workers, 1);
    pl_code code;

    conf.device = scorer->device[number % scorer->n_devices];
    w->scorer = scorer;
    w->kind = st_compute_engine(scorer->compute);
    w->scratch = pl_arena_new(1 << 20);
    code = w->scratch != NULL ? collates_open(w, err) : pl_fail(err, PL_ENOMEM, "a worker");
    for (int k = 0; k < scorer->n_models && code == PL_OK; k++)
        code = engines_open(w, k, &conf, err);
    return code;
}

void st_scorer_worker_close(st_scorer_worker *w)
{
    for (int k = 0; w->kind != NULL && k < ST_MODELS_MAX; k++)
        w->kind->close(w->engine[k]);
    for (int k = 0; k < ST_MODELS_MAX; k++) {
        nn_collate_free(w->collate[k]);
        nn_mirror_free(w->mirror[k]);
    }
    pl_arena_free(w->scratch);
}

/* One batch for all models: items [first, first + count) of the unit. */
typedef struct score_batch {
    st_scored *u;
    const nn_item *item;
    int32_t first, count;
    nn_collated made[ST_MODELS_MAX]; /* only at the first model with the same inputs */
    nn_batch image[ST_MODELS_MAX];   /* mirror images of `made`                       */
    /* Of each network: [0] predictions, [1] of mirror images; each [structures of the unit][outputs of the model]. */
    float *y[2][ST_MODELS_MAX];
} score_batch;

static void radial_note(st_scorer_worker *w, st_scored *u, int network)
{
    double off = w->kind->radial_error != NULL ? w->kind->radial_error(w->engine[network]) : 0;

    if (!(off <= u->radial_error))
        u->radial_error = off;
}

/* The networks of a run: those of all models, or on mirror images those of the models that average over them. */
typedef struct networks {
    nn_engine *engine[ST_MODELS_MAX];
    const nn_batch *in[ST_MODELS_MAX];
    float *y[ST_MODELS_MAX];
    int number[ST_MODELS_MAX], n;
} networks;

static void networks_take(networks *all, const st_scorer_worker *w, const score_batch *b, bool image)
{
    for (int k = 0; k < w->scorer->n_models; k++) {
        const st_scored_model *one = &w->scorer->model[k];
        const nn_batch *batch = image ? &b->image[w->laid[k]] : &b->made[w->laid[k]].batch;
        if (!has_network(w->scorer, k) || !batch->n_graphs || (image && !one->mirrored))
            continue;
        for (int i = one->network; i < one->network + nn_model_networks(one->m); i++) {
            all->engine[all->n] = w->engine[i];
            all->in[all->n] = batch;
            all->number[all->n] = i;
            all->y[all->n++] = b->y[image][i];
        }
    }
}

/* Runs them on the batch, together if the engine can. */
static pl_code forward_run(st_scorer_worker *w, score_batch *b, bool image, pl_error *err)
{
    networks all = { .n = 0 };
    pl_code code = PL_OK;

    networks_take(&all, w, b, image);
    if (w->kind->forward_all != NULL)
        return w->kind->forward_all(all.engine, all.in, all.y, all.n, err);
    for (int k = 0; k < all.n && code == PL_OK; k++) {
        code = w->kind->forward(all.engine[k], all.in[k], false, all.y[k], err);
        if (code == PL_OK && b->first == 0 && !image)
            radial_note(w, b->u, all.number[k]);
    }
    return code;
}

/* Adds up what the networks of model k and the mirror images give, and divides: the mean is in y of its first network. These are outputs
 * before units and probabilities are applied. */
static void outputs_join(const st_scorer_worker *w, score_batch *b, int k)
{
    const st_scored_model *one = &w->scorer->model[k];
    const int32_t n_networks = nn_model_networks(one->m), images = one->mirrored ? 2 : 1;
    const int32_t n = b->made[w->laid[k]].batch.n_graphs * one->m->conf.outputs;
    float *to = b->y[0][one->network];

    for (int32_t i = 0; i < n && n_networks * images > 1; i++) {
        float sum = 0;
        for (int32_t image = 0; image < images; image++)
            for (int32_t j = 0; j < n_networks; j++)
                sum += b->y[image][one->network + j][i];
        to[i] = sum / (float)(n_networks * images);
    }
}

static pl_code images_run(st_scorer_worker *w, score_batch *b, pl_error *err)
{
    pl_code code = PL_OK;

    for (int k = 0; k < w->scorer->n_models && code == PL_OK; k++)
        if (w->mirror[k] != NULL)
            code = nn_mirror_batch(w->mirror[k], &b->image[k], &b->made[k].batch, err);
    return code == PL_OK ? forward_run(w, b, true, err) : code;
}

static void outcomes_take(score_batch *b, const st_scorer *s, int target, const nn_collated *c)
{
    const st_scored_target *t = &s->target[target];
    const nn_model_file *m = s->model[t->model].m;
    const float *y = b->y[0][s->model[t->model].network];
    st_outcome *o = b->u->outcome + (int64_t)b->first * s->n_targets + target;

    for (int32_t i = 0; i < c->batch.n_graphs; i++) {
        const ch_graph *g = b->item[b->first + c->item[i]].graph;
        o[(int64_t)c->item[i] * s->n_targets].value =
            nn_model_value(m, t->output, g->z, g->n_nodes, (double)y[i * m->conf.outputs + t->output]);
    }
    for (int32_t i = 0; i < c->n_left; i++)
        o[(int64_t)c->left[i].item * s->n_targets].unknown = c->left[i].element;
}

static pl_code batch_run(st_scorer_worker *w, score_batch *b, pl_error *err)
{
    const st_scorer *s = w->scorer;
    pl_code code = PL_OK;

    for (int k = 0; k < s->n_models && code == PL_OK; k++)
        if (w->collate[k] != NULL)
            code = nn_collate_run(w->collate[k], &b->made[k], b->item + b->first, b->count, &s->model[k].m->inputs, err);
    if (code == PL_OK)
        code = forward_run(w, b, false, err);
    if (code == PL_OK && s->mirrors)
        code = images_run(w, b, err);
    for (int k = 0; k < s->n_models && code == PL_OK; k++)
        if (has_network(s, k))
            outputs_join(w, b, k);
    for (int j = 0; j < s->n_targets && code == PL_OK; j++)
        if (has_network(s, s->target[j].model))
            outcomes_take(b, s, j, &b->made[w->laid[s->target[j].model]]);
    return code;
}

/* Targets of the same training molecules share one search. Only first structures are searched: all structures of a molecule have one
 * fingerprint. */
static pl_code nearest_find(st_scorer_worker *w, st_scored *u, const nn_item *item, pl_arena *mem, pl_error *err)
{
    const st_scorer *s = w->scorer;
    nn_item *first = PL_NEW(w->scratch, nn_item, u->n + 1);
    const ch_fingerprint *print = NULL;
    pl_code code = first != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "scores of %d molecules", (int)u->n);

    for (int32_t i = 0; i < u->n && code == PL_OK; i++)
        first[i] = item[u->structure[i]];
    for (int k = 0; k < s->n_targets && code == PL_OK; k++) {
        const st_scored_target *t = &s->target[k];
        if (t->searched >= 0 && print == NULL)
            code = st_item_prints(&print, first, u->n, mem, err);
        if (code == PL_OK && t->searched == k)
            code = st_domain_nearest(&u->near[k], &s->model[t->model].m->domain, t->output, print, u->n, mem, err);
        else if (t->searched >= 0)
            u->near[k] = u->near[t->searched];
    }
    return code;
}

/* Mean and sample standard deviation of n structures, whose outcomes are n_targets apart. */
static st_outcome structures_mean(const st_outcome *o, int32_t n, int n_targets)
{
    st_outcome all = { .value = o->value, .spread = NAN, .uncertainty = NAN, .unknown = o->unknown };
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

/* Computed from the first structure of each molecule: traits do not depend on positions. */
static pl_code traits_find(st_scorer_worker *w, st_scored *u, const nn_item *item, pl_arena *mem, pl_error *err)
{
    pl_code code = PL_OK;

    u->traits = PL_NEW(mem, nn_traits, u->n + 1);
    if (u->traits == NULL)
        return pl_fail(err, PL_ENOMEM, "scores of %d molecules", (int)u->n);
    for (int32_t i = 0; i < u->n && code == PL_OK; i++)
        code = nn_traits_of(&u->traits[i], item[u->structure[i]].graph, w->scratch, err);
    return code;
}

/* Combines the structures of each molecule, in place: there are never more molecules than structures. */
static void structures_join(st_scored *u, int n_targets)
{
    for (int32_t i = 0; i < u->n; i++)
        for (int k = 0; k < n_targets; k++)
            u->outcome[(int64_t)i * n_targets + k] = structures_mean(u->outcome + (int64_t)u->structure[i] * n_targets + k,
                                                                     u->structure[i + 1] - u->structure[i], n_targets);
}

/* ---- members besides the networks ---- */

/* Rows for the members, from the first structure of each molecule. */
static pl_code table_make(nn_table *x, st_scorer_worker *w, const st_scored *u, const nn_item *item, pl_error *err)
{
    const ch_graph **graph = PL_NEW(w->scratch, const ch_graph *, u->n + 1);

    for (int32_t i = 0; i < u->n && graph != NULL; i++)
        graph[i] = item[u->structure[i]].graph;
    return graph != NULL ? nn_table_make(x, graph, u->n, w->scratch, err)
                         : pl_fail(err, PL_ENOMEM, "scores of %d molecules", (int)u->n);
}

static void target_join(st_scorer_worker *w, st_scored *u, int target, const nn_member_outputs *y, const nn_item *item)
{
    const st_scored_target *t = &w->scorer->target[target];
    const nn_model_file *m = w->scorer->model[t->model].m;

    for (int32_t i = 0; i < u->n; i++) {
        st_outcome *o = &u->outcome[(int64_t)i * w->scorer->n_targets + target];
        const ch_graph *g = item[u->structure[i]].graph;
        const double variance = y->variance[(int64_t)i * y->outputs + t->output];
        o->value = nn_model_mean(m, t->output, g->z, g->n_nodes, o->value, y, i);
        o->spread /= nn_model_components(m); /* only the network sees another structure */
        o->unknown = m->model == NULL ? nn_inputs_unknown(&m->inputs, g) : o->unknown;
        o->uncertainty = sqrt(variance) * (m->classifies ? 1 : m->target[t->output].scale.stdev);
    }
}

/* Joins what the members of all models predict with what the networks did. */
static pl_code members_run(st_scorer_worker *w, st_scored *u, const nn_item *item, nn_table *x, pl_error *err)
{
    const st_scorer *s = w->scorer;
    pl_code code = PL_OK;

    for (int k = 0; k < s->n_models && code == PL_OK; k++) {
        nn_member_outputs y;
        if (s->model[k].m->members.n == 0)
            continue;
        if (x->environments == NULL)
            code = table_make(x, w, u, item, err);
        if (code == PL_OK)
            code = nn_members_columns(x, &s->model[k].m->inputs, u->column, w->scratch, err);
        if (code == PL_OK)
            code = nn_members_predict(&y, &s->model[k].m->members, x, w->scratch, err);
        for (int j = 0; j < s->n_targets && code == PL_OK; j++)
            if (s->target[j].model == k)
                target_join(w, u, j, &y, item);
    }
    return code;
}

static bool any_network(const st_scorer *s)
{
    for (int k = 0; k < s->n_models; k++)
        if (has_network(s, k))
            return true;
    return false;
}

static pl_code columns_find(st_scored *u, const nn_item *item, pl_arena *mem, pl_error *err)
{
    u->column = u->n > 0 && item[0].column != NULL ? PL_NEW(mem, const float *, u->n + 1) : NULL;
    if (u->column == NULL)
        return u->n > 0 && item[0].column != NULL ? pl_fail(err, PL_ENOMEM, "scores of %d molecules", (int)u->n) : PL_OK;
    for (int32_t i = 0; i < u->n; i++)
        u->column[i] = item[u->structure[i]].column;
    return PL_OK;
}

/* The items with the descriptors that networks read. */
static pl_code items_describe(const nn_item **out, st_scorer_worker *w, const st_scored *u, const nn_item *item, nn_table *x,
                              pl_error *err)
{
    nn_item *own = PL_NEW(w->scratch, nn_item, u->n_structures + 1);
    pl_code code = own != NULL ? table_make(x, w, u, item, err) : pl_fail(err, PL_ENOMEM, "scores of %d molecules", (int)u->n);

    for (int32_t i = 0; i < u->n && code == PL_OK; i++)
        for (int32_t k = u->structure[i]; k < u->structure[i + 1]; k++) {
            own[k] = item[k];
            own[k].feature = x->features[i];
        }
    *out = own;
    return code;
}

/* Room for what the networks of a model give. */
static pl_code outputs_make(score_batch *b, const st_scored_model *one, pl_arena *mem, pl_error *err)
{
    const size_t n = (size_t)b->u->n_structures * (size_t)one->m->conf.outputs + 1;

    for (int i = one->network; i < one->network + nn_model_networks(one->m); i++) {
        b->y[0][i] = PL_NEW(mem, float, n);
        b->y[1][i] = PL_NEW(mem, float, one->mirrored ? n : 1);
        if (b->y[0][i] == NULL || b->y[1][i] == NULL)
            return pl_fail(err, PL_ENOMEM, "scores of %d molecules", (int)b->u->n);
    }
    return PL_OK;
}

pl_code st_scorer_run(st_scorer_worker *w, st_scored *u, const nn_item *item, pl_arena *mem, pl_error *err)
{
    const st_scorer *s = w->scorer;
    nn_table x = { 0 };
    score_batch b = { .u = u, .item = item };
    pl_code code = nearest_find(w, u, item, mem, err);

    if (code == PL_OK)
        code = columns_find(u, item, mem, err);
    if (code == PL_OK && s->describes)
        code = items_describe(&b.item, w, u, item, &x, err);

    if (code == PL_OK && s->has_range)
        code = traits_find(w, u, item, mem, err);
    for (int k = 0; k < s->n_models && code == PL_OK; k++)
        code = outputs_make(&b, &s->model[k], w->scratch, err);
    for (; any_network(s) && b.first < u->n_structures && code == PL_OK; b.first += b.count) {
        b.count = nn_collate_take(b.item, b.first, u->n_structures, (int32_t)s->molecules, s->max_edges);
        code = batch_run(w, &b, err);
    }
    if (code == PL_OK)
        structures_join(u, s->n_targets);
    return code == PL_OK ? members_run(w, u, item, &x, err) : code;
}
