/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/score/evaluate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/base/text.h"
#include "pipeline/run/progress.h"
#include "stages/steps/dataset/classes.h"
#include "stages/steps/dataset/unseen.h"
#include "stages/steps/errors/calibrate.h"
#include "stages/steps/errors/domain.h"
#include "stages/steps/ingest/columns.h"
#include "stages/steps/errors/errors.h"
#include "stages/steps/ingest/positions.h"
#include "stages/steps/score/evaluate_models.h"
#include "stages/steps/score/evaluate_rows.h"
#include "stages/steps/train/compute.h"
#include "stages/steps/train/model_row.h"
#include "stages/steps/train/score_models.h"
#include "stages/steps/train/train.h"

typedef st_evaluate_conf evaluate_conf;

#define AT(member) offsetof(evaluate_conf, member)
#define TARGET(member) offsetof(st_evaluate_target, member)
static const pl_field target_fields[] = {
    { PL_TEXT, "name", TARGET(name), .flags = PL_REQUIRED, .help = "target of a model" },
    { PL_TEXT, "column", TARGET(column), .help = "label with the measured values, if its name differs" },
    { PL_REAL, "factor", TARGET(factor),
      .help = "the label is multiplied by this to get the unit of the target; 0: no conversion, units must be the same" },
    { 0 },
};

static const pl_field fields[] = {
    { PL_TEXTS, "on", AT(on),
      .help =
          "parts: train, valid, test, calibration; with `models`: train, valid (molecules that the model has met besides), calibration, new; if none is given: valid and test, or new" },
    { PL_TEXTS, "models", AT(models), .flags = PL_LATER,
      .help =
          "names from the workflow's `models` to evaluate on the labels of the input, in a workflow that trains none; if none: all of "
          "them" },
    { PL_LIST, "targets", AT(targets), .flags = PL_LATER, .sub = target_fields, .sub_size = sizeof(st_evaluate_target),
      .help = "with `models`: labels whose name or unit differs from that of the target" },
    { PL_BOOL, "calibrate", AT(calibrate), .flags = PL_LATER,
      .help =
          "with `models`: write each to models/NAME-calibrated.safetensors with intervals and domain from the labelled molecules: those "
          "of the part calibration if there is a split, else all that the model was neither trained on nor validated with" },
    { PL_INT, "batch.molecules", AT(molecules), .dflt = 240, .min = 1, .max = 100000, .unit = "molecules", .flags = PL_HOW,
      .help = "in a batch; bit-identical for any" },
    { PL_INT, "batch.max_edges", AT(max_edges), .dflt = 70000, .min = 0, .max = 1e9, .unit = "edges", .flags = PL_HOW,
      .help = "maximum directed edges in a batch; 0: no limit" },
    { PL_INT, "threads", AT(threads), .dflt = -1, .min = 1, .max = 256, .choices = "auto", .flags = PL_HOW,
      .help = "auto: as many as the run has workers" },
    { PL_CHOICE, "mirror", AT(mirror), .dflt = NN_MIRROR_AVERAGE, .choices = "as_is|average", .flags = PL_LATER,
      .help = "as score.mirror" },
    ST_COMPUTE_FIELDS(evaluate_conf),
    { 0 },
};

/* One of the networks that the workflow trained. */
typedef struct member {
    nn_model_file *m;
    const char *path;
    int64_t model_id;
    st_errors *e[ST_PARTS]; /* [targets] of the parts that are wanted */
} member;

typedef struct evaluate_state {
    pl_env *env;
    const evaluate_conf *conf;
    member *member; /* [n_members] */
    int64_t n_members;
    st_train_conf learned;         /* with the targets that they have */
    st_errors *together[ST_PARTS]; /* [targets] of the members' mean, where there are several */
    const nn_engine_kind *kind;
    nn_engine *engine;
    st_dataset d;
    st_samples train;
    st_baselines *base; /* [targets] */
    nn_train_host host;
    st_evaluation rows;
} evaluate_state;

static int part_of(const char *word)
{
    for (int p = 0; p < ST_PARTS; p++)
        if (!strcmp(word, st_part_name[p]))
            return p;
    return -1;
}

static bool part_wanted(const evaluate_conf *c, st_part part)
{
    const char *const *word = c->on.items;

    for (int32_t k = 0; k < c->on.n; k++)
        if (part_of(word[k]) == (int)part)
            return true;
    return c->on.n == 0 && (part == ST_VALID || part == ST_TEST);
}

bool st_evaluate_wants(const st_evaluate_conf *c, st_part part) { return c->on.n == 0 ? part == ST_NEW : part_wanted(c, part); }

/* In a workflow that trains, a model is evaluated on the parts of its split; in others on molecules that it was trained on, met besides or never met. */
static bool is_part(const pl_workflow *wf, int part)
{
    const bool trains = pl_workflow_step(wf, "train") != NULL;

    return part >= 0 && (trains ? part != ST_NEW : part != ST_TEST);
}

static void settle(const pl_workflow *wf, void *conf)
{
    evaluate_conf *c = conf;

    st_compute_settle(&c->compute, st_model_list_has_basis(wf, &c->models));
}

static bool wants(const pl_workflow *wf, const pl_step *step, const char *what)
{
    return strcmp(what, ST_POSITIONS) == 0 && st_model_list_is_spatial(wf, &((const evaluate_conf *)step->conf)->models);
}

static void names(const pl_workflow *wf, const pl_step *step, const char *what, pl_names *out)
{
    if (pl_workflow_step(wf, "train") != NULL) /* then the models are its own */
        return;
    st_model_list_names(wf, &((const evaluate_conf *)step->conf)->models, what, out);
    if (strcmp(what, ST_COMPARED_LABELS) == 0)
        st_evaluate_labels(wf, step, out);
}

static void check(const pl_workflow *wf, const pl_step *step, pl_problems *problems)
{
    const evaluate_conf *c = step->conf;
    const bool trains = pl_workflow_step(wf, "train") != NULL;
    const char *const *word = c->on.items;

    st_compute_check(&c->compute, step, problems);
    for (int32_t k = 0; k < c->on.n; k++)
        if (!is_part(wf, part_of(word[k])))
            pl_problem_add(problems, step->node, "on: %s is not %s", word[k],
                           trains ? "train, valid, test or calibration" : "train, valid, calibration or new");
    if (trains && (c->models.n || c->targets.n || c->calibrate))
        pl_problem_add(problems, step->node,
                       "evaluate: models, targets and calibrate are for a workflow without a train stage; this one evaluates "
                       "the model that it trains");
    else if (!trains)
        st_evaluate_models_check(wf, step, problems);
    if (trains && st_train_denoises(pl_workflow_step(wf, "train")->conf))
        pl_problem_add(problems, step->node,
                       "evaluate: stages.train has task: denoise, and such a model predicts nothing; leave out this stage");
}

static bool host_stop(void *ctx)
{
    const evaluate_state *s = ctx;

    return *s->env->stop != 0;
}

static pl_code evaluate_open(void *state, pl_env *env, pl_error *err)
{
    evaluate_state *s = state;

    (void)err;
    s->env = env;
    s->conf = env->step->conf;
    s->host = (nn_train_host){ .ctx = s, .stop = host_stop };
    return PL_OK;
}

static pl_code file_open(evaluate_state *s, const pl_step *train, int64_t k, pl_error *err)
{
    const char *name = st_train_name(s->env->wf, train->conf, k, s->env->mem);
    member *one = &s->member[k];
    pl_code code;

    one->path = st_train_model_path(s->env->wf, train, k, s->env->mem);
    if (one->path == NULL || name == NULL)
        return pl_fail(err, PL_ENOMEM, "evaluation");
    code = nn_model_read(&one->m, one->path, s->env->mem, err);
    if (code == PL_OK)
        code = st_model_same(s->env->store, name, one->m, one->path, err);
    if (code == PL_OK && k == 0)
        code = st_train_learned(&s->learned, train->conf, one->m, one->path, s->env->mem, err);
    if (code == PL_OK && one->m->conf.outputs != s->learned.targets.n)
        code = pl_fail(err, PL_EDATA, "%s predicts %d numbers, the first model others", one->path, (int)one->m->conf.outputs);
    return code;
}

/* The first member with a network, or NULL: of family: auto each member decides whether its own stays. */
static const nn_model_file *first_network(const evaluate_state *s)
{
    for (int64_t k = 0; k < s->n_members; k++)
        if (s->member[k].m->model != NULL)
            return s->member[k].m;
    return NULL;
}

static pl_code models_open(evaluate_state *s, const pl_step *train, pl_error *err)
{
    nn_engine_conf conf = st_compute_conf(&s->conf->compute, s->conf->threads > 0 ? (int)s->conf->threads : s->env->workers);
    const nn_model_file *network;
    int32_t device[ST_DEVICES];
    int n;
    pl_code code = st_compute_devices(&s->conf->compute, device, &n, err);

    s->n_members = ((const st_train_conf *)train->conf)->members;
    s->member = PL_NEW(s->env->mem, member, s->n_members);
    if (s->member == NULL)
        code = pl_fail(err, PL_ENOMEM, "evaluation");
    for (int64_t k = 0; k < s->n_members && code == PL_OK; k++)
        code = file_open(s, train, k, err);
    if (code != PL_OK)
        return code;
    st_compute_say(&s->conf->compute, "evaluate");
    s->kind = st_compute_engine(&s->conf->compute);
    network = first_network(s);
    if (network == NULL)
        return PL_OK;
    conf.device = device[0];
    conf.width = st_compute_width(&s->conf->compute, &network->conf);
    return s->kind->open(&s->engine, network->model, &conf, err);
}

static pl_code data_open(evaluate_state *s, pl_error *err)
{
    const st_train_conf *c = &s->learned;
    const st_wanted_label *label = st_train_labels(c, false, s->env->mem);
    pl_code code =
        label != NULL ? st_dataset_open(&s->d, s->env, label, c->targets.n, NULL, err) : pl_fail(err, PL_ENOMEM, "targets");

    for (int64_t k = 0; k < s->n_members && code == PL_OK; k++)
        code = st_dataset_ready(&s->d, s->member[k].m, err);
    if (code != PL_OK)
        return code;
    if (s->member->m->classifies)
        st_dataset_decided(&s->d);
    s->base = PL_NEW(s->d.mem, st_baselines, s->d.n_targets);
    if (s->base == NULL)
        return pl_fail(err, PL_ENOMEM, "baselines");
    code = st_samples_open(&s->train, &s->d, ST_TRAIN, &s->member->m->inputs, err);
    return code != PL_OK ? code : st_baselines_fit_all(s->base, &s->train, err);
}

static pl_code target_put(evaluate_state *s, const member *one, int32_t k, pl_error *err)
{
    const st_target *target = st_train_target(&s->learned);
    st_found f = { .m = one->m,
                   .target = &one->m->target[k],
                   .model_id = one->model_id,
                   .classifies = one->m->classifies,
                   .has_domain = one->m->domain.n > 0,
                   .d = &s->d };
    pl_code code = st_property_put(s->env->store, one->m, k, st_target_converts(&target[k]), &f.property_id, s->env->mem, err);

    for (int p = 0; p < ST_PARTS && code == PL_OK; p++) {
        if (!part_wanted(s->conf, (st_part)p))
            continue;
        f.part = (st_part)p;
        f.e = &one->e[p][k];
        f.together = s->together[p] != NULL ? &s->together[p][k] : NULL;
        code = st_evaluation_put(&s->rows, &f, err);
    }
    return code;
}

static pl_code member_put(evaluate_state *s, member *one, pl_error *err)
{
    pl_code code = st_model_put(s->env->store, one->m, one->path, &one->model_id, s->env->mem, err);

    for (int32_t k = 0; k < s->d.n_targets && code == PL_OK; k++)
        code = target_put(s, one, k, err);
    return code;
}

/* All members have the same inputs. */
static pl_code unseen_put(const evaluate_state *s, pl_error *err)
{
    unsigned parts = 0;

    for (int p = 0; p < ST_PARTS; p++)
        parts |= part_wanted(s->conf, (st_part)p) ? 1u << p : 0;
    return st_unseen_put(s->env, &s->d, parts, &s->member->m->inputs, s->member->m->name, err);
}

static pl_code rows_put(evaluate_state *s, pl_error *err)
{
    pl_code code = st_evaluation_begin(&s->rows, s->env->store->db, err);

    for (int64_t k = 0; k < s->n_members && code == PL_OK; k++)
        code = member_put(s, &s->member[k], err);
    return code != PL_OK ? code : unseen_put(s, err);
}

/* "", or what the members are alone. */
static void range_of_members(const evaluate_state *s, st_part part, int kind, char *out, size_t n)
{
    double min = INFINITY, max = -INFINITY;

    out[0] = '\0';
    for (int64_t k = 0; k < s->n_members; k++) {
        min = fmin(min, st_error_value(&s->member[k].e[part]->model, kind));
        max = fmax(max, st_error_value(&s->member[k].e[part]->model, kind));
    }
    if (s->n_members > 1)
        (void)snprintf(out, n, ", %lld networks, each %.4g to %.4g", (long long)s->n_members, min, max);
}

/* The errors of the first target, and the number of further targets. */
static void note_put(const evaluate_state *s)
{
    st_errors *const *e = s->n_members > 1 ? s->together : s->member->e;
    const st_part part = e[ST_TEST] != NULL && e[ST_TEST]->model.n ? ST_TEST : ST_VALID;
    const nn_model_file *m = s->member->m;
    const int kind = m->classifies ? ST_ERROR_ROC_AUC : ST_ERROR_mae;
    const nn_fit *by = e[part] != NULL ? e[part]->baseline : NULL;
    char more[64] = "", range[80];
    pl_text note = { 0 };

    if (by == NULL || !e[part]->model.n)
        return;
    range_of_members(s, part, kind, range, sizeof range);
    if (s->d.n_targets > 1)
        snprintf(more, sizeof more, "; %d targets, here %.20s", (int)s->d.n_targets, m->target->name);
    pl_text_addf(&note, "%s %s %.4g%s%.20s%s (", st_part_name[part], m->classifies ? "ROC-AUC" : "MAE",
                 st_error_value(&e[part]->model, kind), m->target->unit[0] ? " " : "", m->target->unit, range);
    for (int b = 0; b < ST_BASELINES; b++)
        pl_text_addf(&note, "%s%s %.4g", b ? ", " : "", st_baseline_name[b], st_error_value(&by[b], kind));
    pl_text_addf(&note, "%s)", more);
    pl_progress_set(s->env->progress, s->d.n, s->d.n, pl_text_str(&note));
    pl_text_free(&note);
}

static st_judge judge_of(const evaluate_state *s, const member *one)
{
    return (st_judge){ .m = one->m,
                       .kind = s->kind,
                       .engine = s->engine,
                       .d = &s->d,
                       .base = s->base,
                       .host = &s->host,
                       .molecules = s->conf->molecules,
                       .max_edges = s->conf->max_edges,
                       .mirror = (nn_mirror_mode)s->conf->mirror };
}

/* All members learned from the same molecules: only the first searches for the nearest. */
static pl_code likeness_find(evaluate_state *s, member *one, st_part part, pl_error *err)
{
    pl_code code = PL_OK;

    if (one == s->member)
        code = st_domain_alike(one->e[part], &s->d, part, &one->m->domain, err);
    for (int32_t k = 0; k < s->d.n_targets && one != s->member; k++)
        one->e[part][k].alike = s->member->e[part][k].alike;
    for (int32_t k = 0; k < s->d.n_targets && code == PL_OK; k++)
        code = st_errors_domain(&one->e[part][k], k, s->env, &s->d, one->m, err);
    return code;
}

static pl_code member_find(evaluate_state *s, member *one, pl_error *err)
{
    const st_judge judge = judge_of(s, one);
    pl_code code = one->m->model != NULL ? s->kind->set_params(s->engine, one->m->params, err) : PL_OK;

    for (int p = 0; p < ST_PARTS && code == PL_OK; p++) {
        if (!part_wanted(s->conf, (st_part)p))
            continue;
        one->e[p] = PL_NEW(s->d.mem, st_errors, s->d.n_targets);
        code = one->e[p] != NULL ? st_errors_find(one->e[p], &judge, (st_part)p, s->d.mem, err) : pl_fail(err, PL_ENOMEM, "errors");
        if (code == PL_OK)
            code = likeness_find(s, one, (st_part)p, err);
    }
    return code;
}

static pl_code together_find(evaluate_state *s, pl_error *err)
{
    const st_judge judge = judge_of(s, s->member);
    pl_code code = PL_OK;

    for (int p = 0; code == PL_OK && p < ST_PARTS && s->n_members > 1; p++) {
        const st_errors *each[ST_MEMBERS_MAX];
        for (int64_t k = 0; k < s->n_members; k++)
            each[k] = s->member[k].e[p];
        if (!part_wanted(s->conf, (st_part)p))
            continue;
        s->together[p] = PL_NEW(s->d.mem, st_errors, s->d.n_targets);
        code = s->together[p] != NULL ? st_errors_mean(s->together[p], each, s->n_members, &judge, s->d.mem, err)
                                      : pl_fail(err, PL_ENOMEM, "errors");
    }
    return code;
}

static pl_code evaluate_finish(void *state, pl_error *err)
{
    evaluate_state *s = state;
    const pl_step *train = pl_workflow_step(s->env->wf, "train");
    pl_code code;

    if (train == NULL)
        return st_evaluate_models(s->env, &s->rows, &s->host, err);
    code = models_open(s, train, err);
    if (code == PL_OK)
        code = data_open(s, err);
    for (int64_t k = 0; k < s->n_members && code == PL_OK; k++)
        code = member_find(s, &s->member[k], err);
    if (code == PL_OK)
        code = together_find(s, err);
    if (code == PL_OK)
        note_put(s);
    return code != PL_OK ? code : rows_put(s, err);
}

static void evaluate_close(void *state)
{
    evaluate_state *s = state;

    st_evaluation_end(&s->rows);
    if (s->kind != NULL)
        s->kind->close(s->engine);
    st_samples_close(&s->train);
    st_dataset_close(&s->d);
}

static const char *const needs[] = { "graph", "(train)", "(split)", "(basis)", NULL };
/* Properties that came with the models are removed with them; those of a train stage belong to it. */
#define NOT_TRAINED " AND NOT EXISTS(SELECT 1 FROM stage WHERE name='train')"
static const char *const reset_sql[] = {
    "DELETE FROM evaluation", "DELETE FROM evaluated",
    "DELETE FROM model WHERE model_id NOT IN (SELECT model_id FROM prediction)" NOT_TRAINED,
    "DELETE FROM property WHERE NOT EXISTS(SELECT 1 FROM label l WHERE l.property_id=property.property_id) AND property_id NOT "
    "IN (SELECT property_id FROM score)" NOT_TRAINED,
    NULL
};

/* The level of the stage: what the last digits depend on (stages/steps/train/compute.h). */
static const char *evaluate_level(const pl_step *step, pl_arena *mem)
{
    return st_compute_level(&((const evaluate_conf *)step->conf)->compute, mem);
}

const pl_stage st_evaluate = {
    .name = "evaluate",
    .help = "errors of the trained model, or of existing models on new labels",
    .scope = PL_WHOLE,
    .version = 4,
    .fields = fields,
    .conf_size = sizeof(evaluate_conf),
    .state_size = sizeof(evaluate_state),
    .needs = needs,
    .item = "molecules",
    .settle = settle,
    .wants = wants,
    .names = names,
    .check = check,
    .key = st_evaluate_models_key,
    .missing = st_evaluate_missing,
    .open = evaluate_open,
    .finish = evaluate_finish,
    .close = evaluate_close,
    .reset_sql = reset_sql,
    .level = evaluate_level,
};
