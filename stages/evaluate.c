/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/evaluate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/progress.h"
#include "stages/classes.h"
#include "stages/compute.h"
#include "stages/domain.h"
#include "stages/errors.h"
#include "stages/model_row.h"
#include "stages/score_models.h"
#include "stages/train.h"
#include "stages/unseen.h"

typedef struct evaluate_conf {
    pl_list on;
    int64_t molecules, max_edges, threads;
    int32_t mirror; /* nn_mirror_mode */
    st_compute compute;
} evaluate_conf;

#define ENSEMBLE "ensemble" /* before the point of a metric */
#define AT(member) offsetof(evaluate_conf, member)
static const pl_field fields[] = {
    { PL_TEXTS, "on", AT(on), 0, 0, 0, NULL, NULL, NULL, "parts: train, valid, test, calibration; valid and test if none is given",
      0, NULL, 0 },
    { PL_INT, "batch.molecules", AT(molecules), 240, 1, 100000, NULL, NULL, "molecules", "in a batch; same bits for any",
      PL_HOW, NULL, 0 },
    { PL_INT, "batch.max_edges", AT(max_edges), 70000, 0, 1e9, NULL, NULL, "edges", "directed edges in a batch; 0 is no limit",
      PL_HOW, NULL, 0 },
    { PL_INT, "threads", AT(threads), -1, 1, 256, NULL, "auto", NULL, "auto: as many as the run has workers", PL_HOW, NULL, 0 },
    { PL_CHOICE, "mirror", AT(mirror), NN_MIRROR_AVERAGE, 0, 0, NULL, "as_is|average", NULL, "as score.mirror", PL_LATER, NULL, 0 },
    ST_COMPUTE_FIELDS(evaluate_conf),
    { 0 }
};

/* One of the networks that the workflow trained. */
typedef struct member {
    nn_model_file *m;
    const char *path;
    int64_t model_id;
    st_errors *e[ST_PARTS];        /* [targets] of the parts that are wanted */
} member;

typedef struct evaluate_state {
    pl_env *env;
    const evaluate_conf *conf;
    member *member;                /* [n_members] */
    int64_t n_members;
    st_errors *together[ST_PARTS]; /* [targets] of the members' mean, where there are several */
    const nn_engine_kind *kind;
    nn_engine *engine;
    st_dataset d;
    st_samples train;
    st_baselines *base;            /* [targets] */
    nn_train_host host;
    sqlite3_stmt *put, *put_one;
} evaluate_state;

/* Errors of one target on one part, and where they go. */
typedef struct found {
    const nn_target *target;
    int64_t model_id, property_id;
    st_part part;
    const st_errors *e, *together; /* together: NULL of one network */
} found;

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

static void check(const pl_workflow *wf, const pl_step *step, pl_problems *problems)
{
    const evaluate_conf *c = step->conf;
    const char *const *word = c->on.items;

    (void)wf;
    st_compute_check(&c->compute, step, problems);
    for (int32_t k = 0; k < c->on.n; k++)
        if (part_of(word[k]) < 0)
            pl_problem_add(problems, step->node, "on: %s is not train, valid, test or calibration", word[k]);
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
    pl_code rc;

    one->path = st_train_model_path(s->env->wf, train, k, s->env->mem);
    if (!one->path || !name)
        return pl_fail(err, PL_ENOMEM, "evaluation");
    rc = nn_model_read(&one->m, one->path, s->env->mem, err);
    if (!rc)
        rc = st_model_same(s->env->store, name, one->m, one->path, err);
    if (!rc && one->m->conf.outputs != ((const st_train_conf *)train->conf)->targets.n)
        rc = pl_fail(err, PL_EDATA, "%s predicts %d numbers, the workflow has other targets", one->path, (int)one->m->conf.outputs);
    return rc;
}

static pl_code models_open(evaluate_state *s, const pl_step *train, pl_error *err)
{
    nn_engine_conf conf = st_compute_conf(&s->conf->compute, s->conf->threads > 0 ? (int)s->conf->threads : s->env->workers);
    int32_t device[ST_DEVICES];
    int n;
    pl_code rc = st_compute_devices(&s->conf->compute, device, &n, err);

    s->n_members = ((const st_train_conf *)train->conf)->members;
    s->member = PL_NEW(s->env->mem, member, s->n_members);
    if (!rc && !s->member)
        rc = pl_fail(err, PL_ENOMEM, "evaluation");
    for (int64_t k = 0; k < s->n_members && !rc; k++)
        rc = file_open(s, train, k, err);
    if (rc)
        return rc;
    conf.device = device[0];
    st_compute_say(&s->conf->compute, "evaluate");
    s->kind = st_compute_engine(&s->conf->compute);
    return s->kind->open(&s->engine, s->member->m->model, &conf, err);
}

static pl_code data_open(evaluate_state *s, const pl_step *train, pl_error *err)
{
    const st_train_conf *c = train->conf;
    const st_wanted_label *label = st_train_labels(c, s->env->mem);
    pl_code rc = label ? st_dataset_open(&s->d, s->env, label, c->targets.n, NULL, err) : pl_fail(err, PL_ENOMEM, "targets");

    if (!rc && s->member->m->classifies)
        st_dataset_decided(&s->d);
    if (!rc)
        rc = st_samples_open(&s->train, &s->d, ST_TRAIN, &s->member->m->inputs, err);
    if (!rc && !(s->base = PL_NEW(s->d.mem, st_baselines, s->d.n_targets)))
        rc = pl_fail(err, PL_ENOMEM, "baselines");
    for (int32_t k = 0; k < s->d.n_targets && !rc; k++)
        rc = st_baselines_fit(&s->base[k], &s->train, k, s->d.mem, err);
    return rc;
}

static pl_code row_put(evaluate_state *s, const found *f, const char *metric, bool has_unit, double value, int64_t n,
                       pl_error *err)
{
    if (!isfinite(value))
        return PL_OK;
    (void)sqlite3_bind_int64(s->put, 1, f->model_id);
    (void)sqlite3_bind_int64(s->put, 2, f->property_id);
    (void)sqlite3_bind_text(s->put, 3, st_part_name[f->part], -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(s->put, 4, metric, -1, SQLITE_TRANSIENT);
    if (has_unit)
        (void)sqlite3_bind_text(s->put, 5, f->target->unit, -1, SQLITE_STATIC);
    (void)sqlite3_bind_double(s->put, 6, value);
    (void)sqlite3_bind_int64(s->put, 7, n);
    return pl_db_run(s->put, err);
}

/* "mae", or "mean.mae" of somebody else than the model. */
static pl_code fit_put(evaluate_state *s, const found *f, const char *who, const nn_fit *fit, pl_error *err)
{
    pl_code rc = PL_OK;

    for (int k = 0; k < ST_ERROR_KINDS && !rc; k++) {
        char name[48];
        (void)snprintf(name, sizeof name, "%s%s%s", who ? who : "", who ? "." : "", st_error_name(k));
        rc = row_put(s, f, name, st_error_has_unit(k), st_error_value(fit, k), f->e->model.n, err);
    }
    return rc;
}

static pl_code fits_put(evaluate_state *s, const found *f, pl_error *err)
{
    pl_code rc = fit_put(s, f, NULL, &f->e->model, err);

    if (!rc && f->together)
        rc = fit_put(s, f, ENSEMBLE, &f->together->model, err);
    for (int b = 0; b < ST_BASELINES && !rc; b++)
        rc = fit_put(s, f, st_baseline_name[b], &f->e->baseline[b], err);
    return rc;
}

/* The error of those that are little, somewhat and much like the training; and how error goes with likeness. */
static pl_code bands_put(evaluate_state *s, const found *f, pl_error *err)
{
    const st_errors *e = f->e;
    static const char *const name[] = { "mae.similarity<0.3", "mae.similarity 0.3-0.5", "mae.similarity>=0.5" };
    double sum[3] = { 0 }, *error = PL_NEW(s->d.mem, double, e->model.n + 1);
    int64_t n[3] = { 0 };
    nn_fit fit;
    pl_code rc = error ? PL_OK : pl_fail(err, PL_ENOMEM, "errors of %lld molecules", (long long)e->model.n);

    for (int64_t i = 0; i < e->model.n && !rc; i++) {
        const int k = nn_interval_band(e->alike[i]);
        error[i] = fabs(e->predicted[i] - e->measured[i]);
        sum[k] += error[i];
        n[k]++;
    }
    for (int k = 0; k < 3 && !rc; k++)
        rc = row_put(s, f, name[k], true, n[k] ? sum[k] / (double)n[k] : NAN, n[k], err);
    if (!rc)
        rc = nn_metric_fit(&fit, e->alike, error, e->model.n, s->d.mem, err);
    return rc ? rc : row_put(s, f, "spearman.similarity", false, fit.spearman, e->model.n, err);
}

/* Every molecule of the part, measured and predicted. */
static pl_code molecules_put(evaluate_state *s, const found *f, pl_error *err)
{
    const st_errors *e = f->e;
    pl_code rc = PL_OK;

    for (int64_t i = 0; i < e->model.n && !rc; i++) {
        if (!isfinite(e->predicted[i]))
            continue;
        (void)sqlite3_bind_int64(s->put_one, 1, f->model_id);
        (void)sqlite3_bind_int64(s->put_one, 2, f->property_id);
        (void)sqlite3_bind_int64(s->put_one, 3, s->d.mol_id[e->at[i]]);
        (void)sqlite3_bind_text(s->put_one, 4, st_part_name[f->part], -1, SQLITE_STATIC);
        (void)sqlite3_bind_double(s->put_one, 5, e->measured[i]);
        (void)sqlite3_bind_double(s->put_one, 6, e->predicted[i]);
        (void)sqlite3_bind_double(s->put_one, 7, e->alike[i]); /* NaN is NULL */
        rc = pl_db_run(s->put_one, err);
    }
    return rc;
}

static pl_code target_put(evaluate_state *s, const member *one, int32_t k, pl_error *err)
{
    const st_target *target = st_train_target(pl_workflow_step(s->env->wf, "train")->conf);
    found f = { .target = &one->m->target[k], .model_id = one->model_id };
    pl_code rc = st_property_put(s->env->store, one->m, k, st_target_converts(&target[k]), &f.property_id, s->env->mem, err);

    for (int p = 0; p < ST_PARTS && !rc; p++) {
        if (!part_wanted(s->conf, (st_part)p))
            continue;
        f.part = (st_part)p;
        f.e = &one->e[p][k];
        f.together = s->together[p] ? &s->together[p][k] : NULL;
        rc = fits_put(s, &f, err);
        if (!rc && one->m->domain.n > 0)
            rc = bands_put(s, &f, err);
        if (!rc)
            rc = molecules_put(s, &f, err);
    }
    return rc;
}

static pl_code member_put(evaluate_state *s, member *one, pl_error *err)
{
    pl_code rc = st_model_put(s->env->store, one->m, one->path, &one->model_id, s->env->mem, err);

    for (int32_t k = 0; k < s->d.n_targets && !rc; k++)
        rc = target_put(s, one, k, err);
    return rc;
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
    sqlite3 *db = s->env->store->db;
    pl_code rc = pl_db_begin(db, err);

    if (!rc)
        rc = pl_db_exec(db, "DELETE FROM evaluation; DELETE FROM evaluated", err);
    if (!rc)
        rc = pl_db_prepare(db, &s->put, "INSERT INTO evaluation(model_id,property_id,part,metric,unit,value,n) "
                           "VALUES(?,?,?,?,?,?,?)", err);
    if (!rc)
        rc = pl_db_prepare(db, &s->put_one, "INSERT INTO evaluated(model_id,property_id,mol_id,part,measured,predicted,"
                           "similarity) VALUES(?,?,?,?,?,?,?)", err);
    for (int64_t k = 0; k < s->n_members && !rc; k++)
        rc = member_put(s, &s->member[k], err);
    return rc ? rc : unseen_put(s, err);
}

/* "", or what the members are alone. */
static void range_of_members(const evaluate_state *s, st_part part, int kind, char *out, size_t n)
{
    double least = INFINITY, most = -INFINITY;

    out[0] = '\0';
    for (int64_t k = 0; k < s->n_members; k++) {
        least = fmin(least, st_error_value(&s->member[k].e[part]->model, kind));
        most = fmax(most, st_error_value(&s->member[k].e[part]->model, kind));
    }
    if (s->n_members > 1)
        (void)snprintf(out, n, ", %lld networks, each %.4g to %.4g", (long long)s->n_members, least, most);
}

/* Of the first target, and how many more there are. */
static void note_put(const evaluate_state *s)
{
    st_errors *const *e = s->n_members > 1 ? s->together : s->member->e;
    const st_part part = e[ST_TEST] && e[ST_TEST]->model.n ? ST_TEST : ST_VALID;
    const nn_model_file *m = s->member->m;
    const int kind = m->classifies ? ST_ERROR_ROC_AUC : 0;
    const nn_fit *by = e[part] ? e[part]->baseline : NULL;
    char note[280], more[64] = "", range[80];

    if (!by || !e[part]->model.n)
        return;
    range_of_members(s, part, kind, range, sizeof range);
    if (s->d.n_targets > 1)
        snprintf(more, sizeof more, "; %d targets, here %.20s", (int)s->d.n_targets, m->target->name);
    snprintf(note, sizeof note, "%s %s %.4g%s%.20s%s (mean %.4g, composition %.4g, descriptors %.4g%s)", st_part_name[part],
             m->classifies ? "ROC-AUC" : "MAE", st_error_value(&e[part]->model, kind), m->target->unit[0] ? " " : "", m->target->unit, range,
             st_error_value(&by[ST_BY_MEAN], kind), st_error_value(&by[ST_BY_COMPOSITION], kind),
             st_error_value(&by[ST_BY_DESCRIPTORS], kind), more);
    pl_progress_set(s->env->progress, s->d.n, s->d.n, note);
}

static st_judge judge_of(const evaluate_state *s, const member *one)
{
    return (st_judge){ .m = one->m, .kind = s->kind, .engine = s->engine, .d = &s->d, .base = s->base, .host = &s->host,
                       .molecules = s->conf->molecules, .max_edges = s->conf->max_edges, .mirror = (nn_mirror_mode)s->conf->mirror };
}

/* All members learned from the same molecules: the first looks for the nearest. */
static pl_code likeness_find(evaluate_state *s, member *one, st_part part, pl_error *err)
{
    if (one == s->member)
        return st_domain_alike(one->e[part], &s->d, part, &one->m->domain, err);
    for (int32_t k = 0; k < s->d.n_targets; k++)
        one->e[part][k].alike = s->member->e[part][k].alike;
    return PL_OK;
}

static pl_code member_find(evaluate_state *s, member *one, pl_error *err)
{
    const st_judge judge = judge_of(s, one);
    pl_code rc = s->kind->set_params(s->engine, one->m->params, err);

    for (int p = 0; p < ST_PARTS && !rc; p++) {
        if (!part_wanted(s->conf, (st_part)p))
            continue;
        one->e[p] = PL_NEW(s->d.mem, st_errors, s->d.n_targets);
        rc = one->e[p] ? st_errors_find(one->e[p], &judge, (st_part)p, s->d.mem, err) : pl_fail(err, PL_ENOMEM, "errors");
        if (!rc)
            rc = likeness_find(s, one, (st_part)p, err);
    }
    return rc;
}

static pl_code together_find(evaluate_state *s, pl_error *err)
{
    const st_judge judge = judge_of(s, s->member);
    pl_code rc = PL_OK;

    for (int p = 0; p < ST_PARTS && !rc && s->n_members > 1; p++) {
        const st_errors *each[ST_MEMBERS_MAX];
        for (int64_t k = 0; k < s->n_members; k++)
            each[k] = s->member[k].e[p];
        if (!part_wanted(s->conf, (st_part)p))
            continue;
        s->together[p] = PL_NEW(s->d.mem, st_errors, s->d.n_targets);
        rc = s->together[p] ? st_errors_mean(s->together[p], each, s->n_members, &judge, s->d.mem, err) : pl_fail(err, PL_ENOMEM, "errors");
    }
    return rc;
}

static pl_code evaluate_finish(void *state, pl_error *err)
{
    evaluate_state *s = state;
    const pl_step *train = pl_workflow_step(s->env->wf, "train");
    pl_code rc = models_open(s, train, err);

    if (!rc)
        rc = data_open(s, train, err);
    for (int64_t k = 0; k < s->n_members && !rc; k++)
        rc = member_find(s, &s->member[k], err);
    if (!rc)
        rc = together_find(s, err);
    if (!rc)
        note_put(s);
    return rc ? rc : rows_put(s, err);
}

static void evaluate_close(void *state)
{
    evaluate_state *s = state;

    sqlite3_finalize(s->put);
    sqlite3_finalize(s->put_one);
    if (s->kind)
        s->kind->close(s->engine);
    st_samples_close(&s->train);
    st_dataset_close(&s->d);
}

static const char *const needs[] = { "train", NULL };
static const char *const reset_sql[] = { "DELETE FROM evaluation", "DELETE FROM evaluated", NULL };

/* What the last digits depend on (stages/compute.h). */
static const char *evaluate_level(const pl_step *step, pl_arena *mem)
{
    return st_compute_level(&((const evaluate_conf *)step->conf)->compute, mem);
}

const pl_stage st_evaluate = {
    .name = "evaluate", .help = "errors of the trained model beside those of trivial predictions", .scope = PL_WHOLE,
    .version = 2, .fields = fields, .conf_size = sizeof(evaluate_conf), .state_size = sizeof(evaluate_state),
    .needs = needs, .item = "molecules", .check = check, .open = evaluate_open, .finish = evaluate_finish,
    .close = evaluate_close, .reset_sql = reset_sql, .level = evaluate_level,
};
