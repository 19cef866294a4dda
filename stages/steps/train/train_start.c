/* SPDX-License-Identifier: Apache-2.0 */
/* A training that starts from another model. */
#include "models/training/warm_start.h"

#include <string.h>
#include <strings.h>

#include "pipeline/base/text.h"
#include "pipeline/store/store.h"
#include "stages/database/measured.h"
#include "stages/steps/features/graph.h"
#include "stages/steps/train/model_row.h"
#include "stages/steps/train/score_models.h"
#include "stages/steps/train/train.h"

/* Whether the model in the file can be the start of this training. */
static pl_code fits(const nn_model_file *from, const pl_workflow *wf, const nn_se3_conf *network, const pl_model_ref *ref,
                    pl_error *err)
{
    const ch_graph_opts graph = st_graph_opts(pl_workflow_step(wf, "graph"));

    if (ref->sha256 != NULL && strcasecmp(ref->sha256, from->sha256) != 0)
        return pl_fail(err, PL_ECONFIG, "the file has sha256 %s, but the workflow expects %s", from->sha256, ref->sha256);
    if (nn_model_graph_check(from, &graph, err) != PL_OK)
        return PL_ECONFIG;
    if (from->model == NULL)
        return pl_fail(err, PL_ECONFIG, "it has no network to start from");
    if (nn_model_networks(from) > 1)
        return pl_fail(err, PL_ECONFIG, "it is the mean of %d networks; a training starts from one of them",
                       (int)nn_model_networks(from));
    return nn_warm_start_check(network, &from->conf, err);
}

void st_start_check(const pl_workflow *wf, const pl_step *step, pl_problems *problems)
{
    const st_train_conf *c = step->conf;
    const pl_model_ref *ref = c->start != NULL ? st_model_ref(wf, c->start) : NULL;
    const char *near = c->start != NULL && ref == NULL ? st_model_near(wf, c->start) : NULL;
    const nn_inputs one = st_train_inputs(c);
    const nn_se3_conf network = st_train_network(c, &one);
    pl_arena *mem = ref != NULL ? pl_arena_new(1 << 16) : NULL;
    nn_model_file *from;
    pl_error err = { 0 };

    if (c->start != NULL && ref == NULL)
        pl_problem_add(problems, step->node, "start: %s is not in the workflow's `models`%s%s", c->start,
                       near != NULL ? "; did you mean " : "", near != NULL ? near : "");
    if (mem != NULL && (nn_model_read_any(&from, ref->path, mem, &err) != PL_OK ||
                        (pl_workflow_step(wf, "graph") != NULL && fits(from, wf, &network, ref, &err) != PL_OK)))
        pl_problem_add(problems, step->node, "start: %s: %s", c->start, err.text);
    pl_arena_free(mem);
}

/* What earlier versions learned otherwise: without a network they left out molecules with rare elements; all trees of a forest learned from
 * the same part of the molecules (decision 0084). */
static const char *learned_otherwise(const st_family *f)
{
    bool forest = false;

    for (int32_t k = 0; k < f->n; k++)
        forest |= f->kind[k] == &nn_forest;
    if (f->network)
        return forest ? "\"forest\":\"drawn\"" : "";
    return forest ? "\"elements\":\"any\",\"forest\":\"drawn\"" : "\"elements\":\"any\"";
}

static pl_code start_key(const pl_workflow *wf, const pl_step *step, pl_store *store, const char **extra_json, pl_arena *mem,
                         pl_error *err)
{
    const st_train_conf *c = step->conf;
    const pl_model_ref *ref = c->start != NULL ? st_model_ref(wf, c->start) : NULL;
    const st_family family = st_family_of(wf, c, INT64_MAX);
    const char *text = learned_otherwise(&family);
    char hash[65];
    pl_code code = ref != NULL ? pl_file_hash(store, ref->path, hash, err) : PL_OK;

    if (code != PL_OK)
        return code;
    if (ref != NULL)
        *extra_json = pl_sprintf(mem, "{\"start\":\"%s\"%s%s}", hash, *text != '\0' ? "," : "", text);
    else if (*text != '\0')
        *extra_json = pl_sprintf(mem, "{%s}", text);
    return *extra_json != NULL || (ref == NULL && *text == '\0') ? PL_OK : pl_fail(err, PL_ENOMEM, "key of train");
}

pl_code st_train_key(const pl_workflow *wf, const pl_step *step, pl_store *store, const char **extra_json, pl_arena *mem,
                     pl_error *err)
{
    const st_train_conf *c = step->conf;
    const char *label[NN_TARGETS_MAX];
    pl_code code = start_key(wf, step, store, extra_json, mem, err);

    if (code != PL_OK || st_train_denoises(c))
        return code;
    for (int32_t k = 0; k < c->targets.n && k < NN_TARGETS_MAX; k++)
        label[k] = st_target_label(&st_train_target(c)[k]);
    return st_measured_key(extra_json, store, label, c->targets.n, mem, err);
}

pl_code st_start_open(nn_model_file **out, const pl_env *env, const nn_se3_conf *network, pl_error *err)
{
    const st_train_conf *c = env->step->conf;
    const pl_model_ref *ref = c->start != NULL ? st_model_ref(env->wf, c->start) : NULL;
    pl_code code;

    *out = NULL;
    if (ref == NULL)
        return PL_OK;
    code = nn_model_read_any(out, ref->path, env->mem, err);
    if (code == PL_OK)
        code = st_model_keyed(env, *out, ref->path, err);
    if (code == PL_OK)
        (*out)->name = ref->name;
    return code != PL_OK ? code : fits(*out, env->wf, network, ref, err);
}

/* A validation molecule may have chosen the epoch of the start, too: it chooses one here. */
static bool is_met(const nn_model_file *start, st_part part, const char *inchikey)
{
    return nn_domain_knows(&start->domain, inchikey) || (part != ST_VALID && nn_seen_has(&start->seen, inchikey));
}

pl_code st_start_met_tell(pl_env *env, const st_dataset *d, const nn_model_file *start, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    int64_t n = 0, n_met = 0;
    pl_code code = pl_db_prepare(env->store->db, &st, "SELECT inchikey FROM molecule WHERE mol_id=?", err);

    for (int64_t i = 0; i < d->n && code == PL_OK; i++) {
        if (d->part[i] == ST_TRAIN)
            continue;
        (void)sqlite3_bind_int64(st, 1, d->mol_id[i]);
        n++;
        n_met += pl_db_next(st, &code, err) && is_met(start, (st_part)d->part[i], (const char *)sqlite3_column_text(st, 0));
        (void)sqlite3_reset(st);
    }
    (void)sqlite3_finalize(st);
    if (code == PL_OK && n_met > 0)
        pl_event_add(env, PL_WARN,
                     "the start model %s was made with %lld of the %lld held-out molecules: errors on them are too small; hold out "
                     "others, such as those that it was tested on",
                     start->name, (long long)n_met, (long long)n);
    return code;
}

/* The last layer is that of the targets. */
static bool same_targets(const nn_model_file *a, const nn_model_file *b)
{
    bool same = a->conf.outputs == b->conf.outputs && a->classifies == b->classifies && !b->denoises;

    for (int32_t k = 0; k < a->conf.outputs && same; k++)
        same = !strcmp(a->target[k].name, b->target[k].name);
    return same;
}

size_t st_start_fill(float *params, const nn_model_file *m, const nn_model_file *from)
{
    return nn_warm_start_fill(params, m->model, &m->inputs, from, same_targets(m, from));
}
