/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/train/score_models.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "models/files/model_file.h"
#include "pipeline/base/text.h"
#include "pipeline/store/store.h"
#include "stages/steps/dataset/classes.h"
#include "stages/steps/features/graph.h"
#include "stages/steps/ingest/label_scan.h"
#include "stages/steps/ingest/columns.h"
#include "stages/steps/ingest/prepare.h"
#include "stages/steps/train/train_conf.h"

const pl_model_ref *st_model_ref(const pl_workflow *wf, const char *name)
{
    const pl_model_ref *ref = wf->models.items;

    for (int32_t k = 0; k < wf->models.n; k++)
        if (!strcmp(ref[k].name, name))
            return &ref[k];
    return NULL;
}

const char *st_model_near(const pl_workflow *wf, const char *name)
{
    const char *known[ST_MODELS_MAX];
    int n = 0;

    for (int32_t k = 0; k < wf->models.n && n < ST_MODELS_MAX; k++)
        known[n++] = ((const pl_model_ref *)wf->models.items)[k].name;
    return pl_nearest(name, known, n);
}

static void list_add(st_model_list *l, const pl_model_ref *ref)
{
    if (l->n == ST_MODELS_MAX)
        return;
    l->name[l->n] = ref->name;
    l->path[l->n] = ref->path;
    l->sha256[l->n++] = ref->sha256;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const pl_model_ref *)a)->name, ((const pl_model_ref *)b)->name);
}

/* All of them sorted by name, so that sums over models are bit-identical for any order in the file. */
static void list_all(st_model_list *l, const pl_workflow *wf)
{
    pl_model_ref ref[ST_MODELS_MAX];
    int32_t n = wf->models.n < ST_MODELS_MAX ? wf->models.n : ST_MODELS_MAX;

    if (n == 0)
        return;
    memcpy(ref, wf->models.items, (size_t)n * sizeof *ref);
    qsort(ref, (size_t)n, sizeof *ref, by_name);
    for (int32_t k = 0; k < n; k++)
        list_add(l, &ref[k]);
}

void st_model_list_fill(st_model_list *l, const pl_workflow *wf, const pl_list *wanted, pl_arena *mem)
{
    const char *const *word = wanted->items;
    const pl_step *train = pl_workflow_step(wf, "train");

    *l = (st_model_list){ 0 };
    for (int32_t k = 0; k < wanted->n; k++)
        if (st_model_ref(wf, word[k]) != NULL)
            list_add(l, st_model_ref(wf, word[k]));
    if (wanted->n)
        return;
    l->trained_here = train != NULL;
    if (train == NULL)
        list_all(l, wf);
    for (int64_t k = 0; train != NULL && k < ((const st_train_conf *)train->conf)->members; k++)
        list_add(l, &(pl_model_ref){ st_train_name(wf, train->conf, k, mem), st_train_model_path(wf, train, k, mem), NULL });
}

/* Whether the model that the workflow trains has that name, or one of its members. */
static bool is_trained_here(const pl_workflow *wf, const char *name, pl_arena *mem)
{
    const pl_step *train = pl_workflow_step(wf, "train");

    for (int64_t k = 0; train != NULL && k < ((const st_train_conf *)train->conf)->members; k++) {
        const char *own = st_train_name(wf, train->conf, k, mem);
        if (own != NULL && strcmp(own, name) == 0)
            return true;
    }
    return false;
}

static void names_check(const pl_workflow *wf, const pl_step *step, const pl_list *wanted, pl_arena *mem, pl_problems *problems)
{
    const char *const *word = wanted->items;
    const pl_step *train = pl_workflow_step(wf, "train");

    for (int32_t k = 0; k < wanted->n; k++) {
        const char *near = st_model_ref(wf, word[k]) != NULL ? NULL : st_model_near(wf, word[k]);
        if (st_model_ref(wf, word[k]) == NULL)
            pl_problem_add(problems, step->node, "models: %s is not in the workflow's `models`%s%s", word[k],
                           near != NULL ? "; did you mean " : "", near != NULL ? near : "");
        if (is_trained_here(wf, word[k], mem))
            pl_problem_add(problems, step->node, "models: %s is also the name of the model that this workflow trains; rename one",
                           word[k]);
        for (int32_t j = 0; j < k; j++)
            if (strcmp(word[j], word[k]) == 0)
                pl_problem_add(problems, step->node, "models: %s is listed twice", word[k]);
    }
    if (!wanted->n && train != NULL && st_train_denoises(train->conf))
        pl_problem_add(problems, step->node,
                       "no model: stages.train has task: denoise, and such a model predicts nothing; leave out this stage, or give "
                       "other `models`");
    if (!wanted->n && !wf->models.n && train == NULL)
        pl_problem_add(problems, step->node, "no model: give the workflow a `models` section or a train stage");
    if (wanted->n > ST_MODELS_MAX || wf->models.n > ST_MODELS_MAX)
        pl_problem_add(problems, step->node, "models: at most %d", ST_MODELS_MAX);
}

/* A column that the model learned in one unit, and the workflow states in another. */
static void columns_check(const pl_workflow *wf, const nn_model_file *m, const char *name, pl_problems *problems)
{
    const pl_step *prepare = pl_workflow_step(wf, "prepare");

    for (int32_t k = 0; k < m->inputs.n_columns; k++) {
        const nn_input_column *c = &m->inputs.column[k];
        const char *stated = st_label_unit(wf, c->name);
        if (stated[0] != '\0' && c->unit[0] != '\0' && strcmp(stated, c->unit) != 0)
            pl_problem_add(
                problems, prepare->node,
                "properties: the column %s is in %s here, and model %s learned it in %s; convert the numbers of the table", c->name,
                stated, name, c->unit);
        else if (stated[0] == '\0' && c->unit[0] != '\0')
            st_label_scan_column(wf, c->name, c->unit, problems);
    }
}

typedef struct counts {
    int numbers, networks; /* that are predicted; that predict */
    pl_text kinds;         /* a line for each number: name, unit, and whether it is a class */
} counts;

static void kind_add(pl_text *out, const nn_target *t, bool is_class)
{
    pl_text_addf(out, "\n%s\t%s\t%d\n", t->name, t->unit, is_class);
}

/* A number of one model that is the probability of a class in another: `score` would average them. */
static void kinds_check(counts *all, const nn_model_file *m, const char *name, const pl_step *step, pl_problems *problems)
{
    for (int32_t k = 0; k < m->conf.outputs && strcmp(step->stage->name, "score") == 0; k++) {
        pl_text other = { 0 };
        kind_add(&other, &m->target[k], !m->classifies);
        if (strstr(pl_text_str(&all->kinds), pl_text_str(&other)) != NULL)
            pl_problem_add(
                problems, step->node,
                "models: %s predicts %s as %s, another model otherwise; probabilities and numbers have no mean: score them in two "
                "workflows",
                name, m->target[k].name, m->classifies ? "the probability of a class" : "a number");
        kind_add(&all->kinds, &m->target[k], m->classifies);
        pl_text_depend(&all->kinds, &other);
        pl_text_free(&other);
    }
}

/* Adds up what it has. */
static void model_check(counts *all, const pl_workflow *wf, const pl_step *step, const st_model_list *l, int k, pl_arena *mem,
                        pl_problems *problems)
{
    const pl_step *graph = pl_workflow_step(wf, "graph");
    ch_graph_opts opts;
    nn_model_file *m;
    pl_error err = { 0 };

    if (nn_model_read(&m, l->path[k], mem, &err) != PL_OK) {
        pl_problem_add(problems, step->node, "model %s: %s", l->name[k], err.text);
        return;
    }
    if (l->sha256[k] != NULL && strcasecmp(l->sha256[k], m->sha256) != 0)
        pl_problem_add(problems, step->node, "model %s: the file has sha256 %s, but the workflow expects %s", l->name[k], m->sha256,
                       l->sha256[k]);
    if (graph != NULL) {
        opts = st_graph_opts(graph);
        if (nn_model_graph_check(m, &opts, &err) != PL_OK)
            pl_problem_add(problems, graph->node, "graph: %s", err.text);
    }
    columns_check(wf, m, l->name[k], problems);
    kinds_check(all, m, l->name[k], step, problems);
    all->numbers += m->conf.outputs;
    all->networks += nn_model_networks(m);
}

void st_model_list_check(const pl_workflow *wf, const pl_step *step, const pl_list *wanted, pl_problems *problems)
{
    pl_arena *mem = pl_arena_new(1 << 16);
    st_model_list l;
    counts all = { 0 };

    if (mem == NULL) {
        pl_problem_refused(problems, step->node, NULL);
        return;
    }
    names_check(wf, step, wanted, mem, problems);
    st_model_list_fill(&l, wf, wanted, mem);
    for (int k = 0; k < l.n && !l.trained_here; k++) {
        model_check(&all, wf, step, &l, k, mem, problems);
        pl_arena_reset(mem);
        st_model_list_fill(&l, wf, wanted, mem);
    }
    if (all.numbers > ST_SCORES_MAX)
        pl_problem_add(problems, step->node, "models: they predict %d numbers, at most %d", all.numbers, ST_SCORES_MAX);
    if (all.networks > ST_MODELS_MAX)
        pl_problem_add(problems, step->node, "models: they have %d networks, at most %d", all.networks, ST_MODELS_MAX);
    if (!pl_text_ok(&all.kinds))
        pl_problem_refused(problems, step->node, NULL);
    pl_text_free(&all.kinds);
    pl_arena_free(mem);
}

bool st_model_list_is_spatial(const pl_workflow *wf, const pl_list *wanted)
{
    pl_arena *mem = pl_arena_new(1 << 16);
    st_model_list l;
    bool spatial = mem == NULL;

    if (mem != NULL)
        st_model_list_fill(&l, wf, wanted, mem);
    for (int k = 0; !spatial && !l.trained_here && k < l.n; k++)
        spatial = nn_model_may_have_network(l.path[k]);
    pl_arena_free(mem);
    return spatial;
}

bool st_model_list_has_basis(const pl_workflow *wf, const pl_list *wanted)
{
    const pl_step *train = pl_workflow_step(wf, "train");
    pl_arena *mem = pl_arena_new(1 << 16);
    st_model_list l = { 0 };
    bool has = false;

    if (mem != NULL)
        st_model_list_fill(&l, wf, wanted, mem);
    if (l.trained_here)
        has = ((const st_train_conf *)train->conf)->model.radial != NN_BASIS_DISTANCE;
    for (int k = 0; !has && !l.trained_here && k < l.n; k++)
        has = nn_model_has_basis(l.path[k]);
    pl_arena_free(mem);
    return has;
}

void st_model_list_names(const pl_workflow *wf, const pl_list *wanted, const char *what, pl_names *out)
{
    pl_arena *mem = strcmp(what, ST_COLUMNS) == 0 ? pl_arena_new(1 << 16) : NULL;
    const char *name[NN_COLUMNS_MAX];
    st_model_list l;

    if (strcmp(what, ST_COLUMNS) != 0)
        return;
    if (mem == NULL) {
        out->no_memory = true;
        return;
    }
    st_model_list_fill(&l, wf, wanted, mem);
    for (int k = 0; !l.trained_here && k < l.n; k++) {
        const int32_t n = nn_model_column_names(name, l.path[k], mem);
        out->no_memory = out->no_memory || n < 0;
        for (int32_t i = 0; i < n; i++)
            pl_names_add(out, name[i]);
    }
    pl_arena_free(mem);
}

pl_code st_model_list_key(const pl_workflow *wf, const pl_list *wanted, pl_store *store, const char **extra_json, pl_arena *mem,
                          pl_error *err)
{
    st_model_list l;
    json_t *all = json_object();
    char *text;
    pl_code code = PL_OK;

    st_model_list_fill(&l, wf, wanted, mem);
    json_object_set_new(all, "rules of the domain", json_integer(NN_RANGE_RULES));
    for (int k = 0; k < l.n && !l.trained_here && code == PL_OK; k++) {
        char hash[65];
        code = pl_file_hash(store, l.path[k], hash, err);
        if (code == PL_OK)
            json_object_set_new(all, l.name[k], json_string(hash));
    }
    text = code != PL_OK ? NULL : json_dumps(all, JSON_COMPACT | JSON_SORT_KEYS);
    *extra_json = text != NULL ? pl_strdup(mem, text) : NULL;
    free(text);
    json_decref(all);
    return code != PL_OK || *extra_json ? code : pl_fail(err, PL_ENOMEM, "key of the models");
}

/* A model that says nothing of it had the defaults, or is of an earlier version. */
static void told_check(pl_env *env, const nn_model_file *m, const json_t *then, const st_prepare_conf *c)
{
    json_t *now = st_prepare_told(c);

    if (then != NULL && !json_equal(then, now))
        pl_event_add(env, PL_WARN,
                     "model %s was trained with stages.prepare: {%s}, but here it has other settings: its scores may be far off; "
                     "use the same settings in both",
                     m->name, st_prepare_told_words(then));
    json_decref(now);
}

const char st_untold_several[] =
    " is of an earlier version and does not tell how many structures of a molecule it was trained on; its number of steps says that it were several, "
    "and here one is built: its errors and intervals are then those of means over structures, which are built with a count above 1";

/* Where edges cannot have cut batches into more steps. */
static bool steps_say_several(const json_t *all)
{
    enum { EDGES = 1000 }; /* of a molecule, more than screened ones have */
    const json_t *training = json_object_get(all, "training"), *settings = json_object_get(all, "settings");
    const double molecules = json_number_value(json_object_get(training, "molecules")),
                 steps = json_number_value(json_object_get(training, "steps")),
                 epochs = json_number_value(json_object_get(training, "epochs")),
                 batch = json_number_value(json_object_get(settings, "batch.molecules")),
                 edges = json_number_value(json_object_get(settings, "batch.max_edges"));

    return molecules > 0 && epochs > 0 && batch > 0 && edges >= EDGES * batch && steps / epochs >= 1.9 * ceil(molecules / batch);
}

bool st_may_have_several(const nn_model_file *m)
{
    json_t *all = m->model != NULL && m->provenance != NULL ? json_loads(m->provenance, 0, NULL) : NULL;
    const json_t *told = json_object_get(all, "conformers");
    const bool built = (m->range.sources & (1u << NN_SOURCE_INPUT | 1u << NN_SOURCE_NONE)) == 0;
    const bool several = told == NULL && built && steps_say_several(all);

    json_decref(all);
    return several;
}

/* Fewer or more structures of a molecule than a network learned from. A model that tells nothing had one, or is older. */
static void several_check(pl_env *env, const nn_model_file *m, const json_t *then, const st_prepare_conf *c)
{
    const json_int_t count = json_integer_value(json_object_get(then, "count"));

    if (st_prepare_builds(c) && c->structures == 1 && st_may_have_several(m))
        return pl_event_add(env, PL_WARN, "model %s%s", m->name, st_untold_several);
    if (m->model == NULL || count < 2 || !st_prepare_builds(c) || count == c->structures)
        return;
    pl_event_add(env, PL_WARN,
                 "model %s was trained on up to %lld structures of a molecule, and here %lld %s built "
                 "(stages.prepare.conformers.count): its errors and intervals are those of means over structures",
                 m->name, (long long)count, (long long)c->structures, pl_plural(c->structures, "is", "are"));
}

void st_model_form_check(pl_env *env, const nn_model_file *m)
{
    const pl_step *prepare = pl_workflow_step(env->wf, "prepare");
    json_t *all = m->provenance != NULL ? json_loads(m->provenance, 0, NULL) : NULL;
    const char *then = json_string_value(json_object_get(all, "molecules")), *now;
    char form[32];

    now = prepare != NULL ? st_prepare_form(prepare->conf, form) : NULL;
    if (then != NULL && now != NULL && nn_model_name_fits(then) && strcmp(then, now) != 0)
        pl_event_add(env, PL_WARN,
                     "model %s was trained on acids and bases %.40s, but here they are %s (stages.prepare): its scores may "
                     "be far off; use the same settings in both",
                     m->name, then, now);
    if (prepare != NULL) {
        told_check(env, m, json_object_get(all, "prepare"), prepare->conf);
        several_check(env, m, json_object_get(all, "conformers"), prepare->conf);
    }
    json_decref(all);
}
