/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/text.h"
#include "pipeline/run/level.h"
#include "pipeline/run/run.h"
#include "stages/steps/dataset/classes.h"
#include "stages/steps/errors/by_domain.h"
#include "stages/steps/errors/calibrate.h"
#include "stages/steps/errors/domain.h"
#include "stages/steps/errors/errors.h"
#include "stages/steps/ingest/prepare.h"
#include "stages/steps/train/learning.h"
#include "stages/steps/train/model_row.h"
#include "stages/steps/train/train.h"

enum { FILES_MAX = 200 };

/* ---- provenance ---------------------------------------------------------- */

/* One text of the database; "" when there is none. As below, *code keeps the first error, after which nothing is read. */
static const char *text_of(const pl_env *env, const char *sql, int64_t id, pl_code *code, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    const char *text = NULL;

    if (*code == PL_OK)
        *code = pl_db_prepare(env->store->db, &st, sql, err);
    (void)sqlite3_bind_int64(st, 1, id);
    if (pl_db_next(st, code, err) && sqlite3_column_text(st, 0) != NULL) {
        text = pl_strdup(env->mem, (const char *)sqlite3_column_text(st, 0));
        if (text == NULL)
            *code = pl_fail(err, PL_ENOMEM, "provenance of the model");
    }
    sqlite3_finalize(st);
    return text != NULL ? text : "";
}

static json_t *json_file(const char *name, const char *sha256, const char *format, int64_t records)
{
    return json_pack("{s:s, s:s, s:s, s:I}", "file", name, "sha256", sha256, "format", format, "records", (json_int_t)records);
}

/* Column i as text; "" for NULL. */
static const char *column_text(sqlite3_stmt *st, int i)
{
    const char *text = (const char *)sqlite3_column_text(st, i);

    return text != NULL ? text : "";
}

/* The files by name and hash, without their directories. QM9 came as 134,000 files: after the first
 * FILES_MAX all others are one entry, with a hash over their hashes. */
static json_t *json_data(const pl_env *env, pl_code *code, pl_error *err)
{
    json_t *list = json_array();
    int64_t more = 0, records = 0;
    sqlite3_stmt *st = NULL;
    pl_sha256 sum;
    char hex[65], name[64];

    pl_sha256_start(&sum);
    if (*code == PL_OK)
        *code = pl_db_prepare(env->store->db, &st, "SELECT path, sha256, format, n_records FROM input_file ORDER BY file_id", err);
    while (pl_db_next(st, code, err)) {
        const char *path = column_text(st, 0), *slash = strrchr(path, '/');
        const char *sha256 = (const char *)sqlite3_column_text(st, 1);
        int64_t n = sqlite3_column_int64(st, 3);
        if (json_array_size(list) < FILES_MAX) {
            json_array_append_new(list,
                                  json_file(slash != NULL ? slash + 1 : path, sha256, (const char *)sqlite3_column_text(st, 2), n));
            continue;
        }
        pl_sha256_add_str(&sum, sha256 != NULL ? sha256 : "");
        records += n;
        more++;
    }
    sqlite3_finalize(st);
    pl_sha256_hex(&sum, hex);
    (void)snprintf(name, sizeof name, "%lld more", (long long)more);
    if (more)
        json_array_append_new(list, json_file(name, hex, "", records));
    return list;
}

static json_t *json_settings(const pl_workflow *wf, const char *stage)
{
    const pl_step *step = pl_workflow_step(wf, stage);
    json_t *settings = step != NULL && step->params_json != NULL ? json_loads(step->params_json, 0, NULL) : NULL;

    return settings != NULL ? settings : json_object();
}

/* Identifies the split independently of the machine: a hash over "InChIKey part" of every molecule. */
static json_t *json_split(const pl_env *env, pl_code *code, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    pl_sha256 sum;
    char hex[65];

    pl_sha256_start(&sum);
    if (*code == PL_OK)
        *code = pl_db_prepare(env->store->db, &st,
                              "SELECT m.inchikey, s.part FROM split s JOIN molecule m USING(mol_id) ORDER BY 1, 2", err);
    while (pl_db_next(st, code, err)) {
        pl_sha256_add_str(&sum, (const char *)sqlite3_column_text(st, 0));
        pl_sha256_add_str(&sum, (const char *)sqlite3_column_text(st, 1));
    }
    sqlite3_finalize(st);
    pl_sha256_hex(&sum, hex);
    return json_pack("{s:s, s:o}", "sha256", hex, "settings", json_settings(env->wf, "split"));
}

/* Rounded to 6 digits: it is for people. */
static json_t *json_fit(const nn_fit *f)
{
    json_t *o = json_pack("{s:I}", "n", (json_int_t)f->n);

    for (int k = 0; k < ST_ERROR_KINDS; k++) {
        char text[32];
        if (!isfinite(st_error_value(f, k)))
            continue;
        (void)snprintf(text, sizeof text, "%.6g", st_error_value(f, k));
        json_object_set_new(o, st_error_name(k), json_real(strtod(text, NULL)));
    }
    return o;
}

static double six_digits(double x)
{
    char text[32];

    (void)snprintf(text, sizeof text, "%.6g", x);
    return strtod(text, NULL);
}

static pl_code json_number_put(void *ctx, const char *name, bool has_unit, double value, int64_t n, pl_error *err)
{
    (void)has_unit;
    return json_object_set_new(ctx, name, json_pack("[f, I]", six_digits(value), (json_int_t)n)) == 0
               ? PL_OK
               : pl_fail(err, PL_ENOMEM, "errors of a model");
}

/* Of a model of several components: by domain. The model is judged by the interval of its target if that came from other molecules. */
static void json_domain_add(json_t *to, const st_errors *e, const nn_model_file *m, int32_t k, const char *part, pl_arena *mem,
                            pl_code *code, pl_error *err)
{
    const nn_conformal *interval = &m->target[k].interval;
    const bool tests = interval->n > 0 && interval->part != NULL && strcmp(interval->part, part) != 0;
    json_t *domain;
    double held;
    int64_t n;

    if (*code != PL_OK || e->n_components == 0 || e->outside == NULL)
        return;
    domain = json_object();
    *code = st_by_domain(e, m, tests ? interval : NULL, json_number_put, domain, mem, err);
    held = tests ? st_coverage(e, interval, false, &n) : NAN;
    if (*code == PL_OK && isfinite(held))
        *code = json_number_put(domain, "coverage90", false, held, n, err);
    (void)json_object_set_new(to, "domain", domain);
}

static json_t *json_errors(const st_errors *e, const nn_model_file *m)
{
    json_t *o = json_fit(&e->model), *base = json_object(), *components = json_object();

    for (int32_t k = 0; k < e->n_components; k++)
        json_object_set_new(components, st_component_name(m, k), json_fit(&e->component[k]));
    if (e->n_components > 0)
        json_object_set(o, "components", components);
    json_decref(components);

    for (int b = 0; b < ST_BASELINES; b++)
        json_object_set_new(base, st_baseline_name[b], json_fit(&e->baseline[b]));
    json_object_set_new(o, "baselines", base);
    json_object_set_new(o, "unknown_elements", json_integer(e->n_unknown));
    return o;
}

/* "600 trees .." by kind; in the order of the members. */
static json_t *json_members(const st_trained *t)
{
    json_t *o = json_object();

    for (int32_t k = 0; k < t->m.members.n; k++) {
        const nn_model_member *member = &t->m.members.at[k];
        const char *text = member->kind->describe(member->one[0], t->env->mem);
        json_object_set_new(o, member->kind->name, json_string(text != NULL ? text : ""));
    }
    return o;
}

/* Why a target of the workflow is not predicted, by name. */
static json_t *json_left(const st_trained *t)
{
    json_t *o = json_object();

    for (int32_t k = 0; k < t->n_left; k++)
        json_object_set_new(o, t->left[k].name, json_string(t->left[k].why));
    return o;
}

static json_t *json_training(const st_trained *t)
{
    json_t *o;

    if (t->m.model == NULL)
        return json_pack("{s:I, s:i, s:o}", "molecules", (json_int_t)t->train->n, "domain", (int)t->m.domain.n, "members",
                         json_members(t));
    o = json_pack("{s:I, s:I, s:I, s:I, s:I, s:b, s:I, s:i}", "molecules", (json_int_t)t->train->n, "epochs",
                  (json_int_t)t->state->epoch, "best_epoch", (json_int_t)t->state->best_epoch + 1, "steps",
                  (json_int_t)t->state->step, "skipped_steps", (json_int_t)t->state->bad_total, "ema", t->state->ema != NULL,
                  "parameters", (json_int_t)t->state->n, "domain", (int)t->m.domain.n);
    if (o != NULL && t->state->planned > 0)
        (void)json_object_set_new(o, "planned_epochs", json_integer((json_int_t)t->state->planned));
    return o;
}

static json_t *json_parts(st_errors *const e[ST_PARTS], const st_trained *t, int32_t k, pl_code *code, pl_error *err)
{
    json_t *o = json_object();

    for (int p = ST_VALID; p < ST_PARTS; p++) {
        json_t *one = e[p][k].model.n ? json_errors(&e[p][k], &t->m) : NULL;
        if (one != NULL)
            json_domain_add(one, &e[p][k], &t->m, k, st_part_name[p], t->d->mem, code, err);
        if (one != NULL)
            json_object_set_new(o, st_part_name[p], one);
    }
    return o;
}

/* Errors by part; with several targets, by name and part. */
static json_t *json_targets(const st_trained *t, st_errors *const e[ST_PARTS], pl_code *code, pl_error *err)
{
    json_t *o;

    if (t->d->n_targets == 1)
        return json_parts(e, t, 0, code, err);
    o = json_object();
    for (int32_t k = 0; k < t->d->n_targets; k++)
        json_object_set_new(o, t->m.target[k].name, json_parts(e, t, k, code, err));
    return o;
}

static pl_code provenance_make(st_trained *t, st_errors *const e[ST_PARTS], pl_error *err)
{
    const pl_env *env = t->env;
    const char *levels = "";
    pl_code code = pl_levels_of(env->store, env->stage_id, &levels, env->mem, err);
    json_t *errors = json_targets(t, e, &code, err), *all, *told;
    char *text, form[32];

    if (code != PL_OK) {
        json_decref(errors);
        return code;
    }
    all = json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:I}", "program", "molsieve", "version",
                    text_of(env, "SELECT program_version FROM run WHERE run_id=?", env->run_id, &code, err), "date",
                    text_of(env, "SELECT substr(created_utc,1,10) FROM stage WHERE stage_id=?", env->stage_id, &code, err),
                    "workflow", env->wf->name != NULL ? env->wf->name : "", "data", json_data(env, &code, err), "split",
                    json_split(env, &code, err), "settings", json_settings(env->wf, "train"), "training", json_training(t),
                    "errors", errors, "seed", (json_int_t)st_train_seed(env, t->member));
    if (all != NULL)
        (void)json_object_set_new(all, "molecules", json_string(st_prepare_form(pl_workflow_step(env->wf, "prepare")->conf, form)));
    if (all != NULL && (told = st_prepare_told(pl_workflow_step(env->wf, "prepare")->conf)) != NULL)
        (void)json_object_set_new(all, "prepare", told);
    if (all != NULL && (told = st_prepare_several(pl_workflow_step(env->wf, "prepare")->conf)) != NULL)
        (void)json_object_set_new(all, "conformers", told);
    if (all != NULL && t->n_left > 0)
        (void)json_object_set_new(all, "left_out", json_left(t));
    if (all != NULL && t->d->limits)
        (void)json_object_set_new(all, "censored", json_string("bound"));
    if (all != NULL)
        (void)json_object_set_new(all, "kernels", json_string(levels));
    if (all != NULL && t->start != NULL)
        (void)json_object_set_new(all, "start", json_pack("{s:s, s:s}", "model", t->start->name, "sha256", t->start->sha256));
    text = all != NULL ? json_dumps(all, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    t->m.provenance = text != NULL ? pl_strdup(env->mem, text) : NULL;
    free(text);
    json_decref(all);
    return code != PL_OK || t->m.provenance != NULL ? code : pl_fail(err, PL_ENOMEM, "provenance of the model");
}

/* ---- rows ---------------------------------------------------------------- */

/* "mae"; of several targets "gap.mae". Puts a number that is known if *code is PL_OK, and stores what came of it there. */
static void metric_put(const st_trained *t, int32_t target, const nn_fit *fit, int kind, pl_code *code, pl_error *err)
{
    const char *name = st_error_name(kind);

    if (*code != PL_OK || !isfinite(st_error_value(fit, kind)))
        return;
    if (t->d->n_targets > 1)
        name = pl_sprintf(t->env->mem, "%s.%s", t->m.target[target].name, name);
    name = name != NULL ? st_learning_metric(name, t->member, t->env->mem) : NULL;
    *code = name != NULL ? pl_metric_add(t->env, t->state->step, (double)t->state->best_epoch + 1, "test", name,
                                         st_error_value(fit, kind), err)
                         : pl_fail(err, PL_ENOMEM, "a metric");
}

static pl_code metrics_put(const st_trained *t, pl_error *err)
{
    pl_code code = PL_OK;

    for (int32_t i = 0; i < t->d->n_targets; i++)
        for (int k = 0; k < ST_ERROR_KINDS; k++)
            metric_put(t, i, &t->test[i].model, k, &code, err);
    return code;
}

static pl_code targets_put(const st_trained *t, pl_error *err)
{
    const st_target *target = st_train_target(t->conf);
    int64_t property;
    pl_code code = t->m.classifies ? pl_db_execf(t->env->store->db, err, "DELETE FROM failure WHERE stage=%Q AND code='class'",
                                                 t->env->step->stage->name)
                                   : PL_OK;

    for (int32_t k = 0; k < t->d->n_targets && !t->m.denoises && code == PL_OK; k++) {
        code = st_property_put(t->env->store, &t->m, k, st_target_converts(&target[k]), &property, t->env->mem, err);
        if (code == PL_OK && t->m.classifies)
            code = st_classes_failures(t->env, st_target_label(&target[k]), err);
    }
    return code;
}

pl_code st_train_rows(st_trained *t, pl_error *err)
{
    int64_t model;
    pl_code code = pl_sha256_file(t->path, t->m.sha256, err);

    if (code == PL_OK)
        code = targets_put(t, err);
    if (code == PL_OK)
        code = st_model_put(t->env->store, &t->m, t->path, &model, t->env->mem, err);
    return code != PL_OK || t->m.denoises ? code : metrics_put(t, err);
}

static pl_code file_write(const st_trained *t, pl_error *err)
{
    const char *dir = pl_sprintf(t->env->mem, "%s/models", t->env->wf->workdir);
    pl_code code = dir != NULL ? pl_mkdirs(dir, err) : pl_fail(err, PL_ENOMEM, "the model file");

    pl_fault("train", "model.before");
    if (code == PL_OK)
        code = pl_store_held(t->env->store, err);
    if (code == PL_OK)
        code = nn_model_write(&t->m, t->path, err);
    pl_fault("train", "model.after");
    return code;
}

static st_judge judge_of(const st_trained *t, const nn_model_file *m)
{
    const st_train_conf *c = t->env->step->conf;

    return (st_judge){ .m = m,
                       .kind = t->kind,
                       .engine = t->engine,
                       .d = t->d,
                       .host = t->host,
                       .molecules = c->loop.molecules,
                       .max_edges = c->loop.max_edges,
                       .mirror = NN_MIRROR_AVERAGE };
}

/* The errors of all targets on all held-out parts. */
static pl_code errors_find(st_errors *e[ST_PARTS], const st_trained *t, pl_error *err)
{
    const int32_t n = t->d->n_targets;
    st_baselines *base = PL_NEW(t->d->mem, st_baselines, n);
    st_judge judge = judge_of(t, &t->m);
    pl_code code = base != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "errors");

    judge.base = base;
    if (code == PL_OK && t->m.model != NULL)
        code = t->kind->set_params(t->engine, t->m.params, err);
    if (code == PL_OK && !t->m.denoises)
        code = st_baselines_fit_all(base, t->train, err);
    for (int p = 0; p < ST_PARTS && code == PL_OK; p++) {
        e[p] = PL_NEW(t->d->mem, st_errors, n);
        if (e[p] == NULL)
            code = pl_fail(err, PL_ENOMEM, "errors");
        else if (p >= ST_VALID && !t->m.denoises)
            code = st_errors_find(e[p], &judge, (st_part)p, t->d->mem, err);
    }
    return code;
}

/* The part that calibrates: the first that is large enough. The validation part comes last, because it chose the epoch. */
static st_part judges_of(st_errors *const e[ST_PARTS], int32_t k)
{
    static const st_part order[] = { ST_CALIBRATION, ST_TEST, ST_VALID };
    static const int64_t enough[] = { NN_BAND_MIN, NN_CONFORMAL_MIN };

    for (int j = 0; j < 2; j++)
        for (int i = 0; i < 3; i++)
            if (e[order[i]][k].model.n >= enough[j])
                return order[i];
    return ST_VALID;
}

static pl_code intervals_find(st_trained *t, st_errors *const e[ST_PARTS], pl_error *err)
{
    pl_code code = PL_OK;

    for (int32_t k = 0; k < t->d->n_targets && !t->m.denoises && code == PL_OK; k++) {
        const st_part part = judges_of(e, k);
        if (e[part][k].alike == NULL)
            code = st_domain_alike(e[part], t->d, part, &t->m.domain, err);
        if (code == PL_OK)
            code = st_calibrate(&t->m, k, &e[part][k], part, t->env, t->d, err);
    }
    return code;
}

/* Of a model of several components: which molecules are outside of its domain, of all parts that it was not trained on. */
static pl_code sides_find(const st_trained *t, st_errors *const e[ST_PARTS], pl_error *err)
{
    pl_code code = PL_OK;

    for (int p = ST_VALID; code == PL_OK && p < ST_PARTS && nn_model_components(&t->m) > 1; p++) {
        if (e[p]->alike == NULL)
            code = st_domain_alike(e[p], t->d, (st_part)p, &t->m.domain, err);
        for (int32_t k = 0; k < t->d->n_targets && code == PL_OK; k++)
            code = st_errors_domain(&e[p][k], k, t->env, t->d, &t->m, err);
    }
    return code;
}

/* The mean over the targets of: error with the network / error without. e: with it. */
static pl_code network_ratio(double *ratio, const st_trained *t, const st_errors *with, st_part part, pl_error *err)
{
    const int32_t n = t->d->n_targets;
    const int kind = t->m.classifies ? ST_ERROR_log_loss : ST_ERROR_rmse;
    st_errors *without = PL_NEW(t->d->mem, st_errors, n);
    nn_model_file m = t->m;
    st_judge judge;
    pl_code code;

    m.model = NULL;
    judge = judge_of(t, &m);
    code = without != NULL ? st_errors_find(without, &judge, part, t->d->mem, err) : pl_fail(err, PL_ENOMEM, "errors");
    *ratio = code == PL_OK ? st_errors_ratio(with, without, n, kind) : NAN;
    return code;
}

/* The molecules of a part that have the target that most have. */
static int64_t most_of(const st_errors *e, int32_t n_targets)
{
    int64_t most = 0;

    for (int32_t k = 0; k < n_targets; k++)
        most = e[k].model.n > most ? e[k].model.n : most;
    return most;
}

/* Leaves the network out of the mean, if it is there only to make it better and does not, on molecules that it did not learn from. */
static pl_code network_judge(st_errors *e[ST_PARTS], st_trained *t, pl_error *err)
{
    const int32_t n = t->d->n_targets;
    const st_part part = most_of(e[ST_CALIBRATION], n) >= NN_BAND_MIN ? ST_CALIBRATION : ST_VALID;
    double ratio;
    pl_code code;

    if (t->m.model == NULL || !t->family->network_if_better || t->m.members.n == 0 || most_of(e[part], n) == 0)
        return PL_OK;
    code = network_ratio(&ratio, t, e[part], part, err);
    if (code != PL_OK || !(ratio >= 1))
        return code;
    pl_event_add(t->env, PL_INFO,
                 "the network is left out of model %s: with it, the error on the part %s is %.3f times that without", t->m.name,
                 st_part_name[part], ratio);
    t->m.model = NULL;
    t->m.params = NULL;
    t->m.conf = (nn_se3_conf){ .outputs = t->m.conf.outputs };
    t->m.inputs.descriptors = false;
    return errors_find(e, t, err);
}

/* Other members may have a network: the ranges of targets are theirs, too. */
static pl_code sources_ignore(st_trained *t, pl_error *err)
{
    for (int32_t k = 0; k < t->m.conf.outputs; k++) {
        nn_range *own;
        if (t->m.target[k].range == NULL)
            continue;
        own = PL_NEW(t->env->mem, nn_range, 1);
        if (own == NULL)
            return pl_fail(err, PL_ENOMEM, "the range of a target");
        *own = *t->m.target[k].range;
        t->m.target[k].range = own;
    }
    nn_model_ignore_sources(&t->m);
    return PL_OK;
}

pl_code st_train_write(st_trained *t, pl_error *err)
{
    st_errors *e[ST_PARTS];
    pl_code code;

    t->path = st_train_model_path(t->env->wf, t->env->step, t->member, t->env->mem);
    if (t->path == NULL)
        return pl_fail(err, PL_ENOMEM, "the model file");
    code = st_family_fit(&t->m, t->family, t->env, t->train, t->weight, t->member, err);
    if (t->family->n == 0 && !nn_model_has_gaps(&t->m))
        t->m.domain.value = NULL; /* which a network does not need to say what is nearest */
    if (code == PL_OK)
        code = errors_find(e, t, err);
    if (code == PL_OK)
        code = network_judge(e, t, err);
    if (code == PL_OK && t->m.model == NULL)
        code = sources_ignore(t, err);
    if (code == PL_OK)
        code = intervals_find(t, e, err);
    if (code == PL_OK)
        code = sides_find(t, e, err);
    if (code == PL_OK)
        code = provenance_make(t, e, err);
    t->test = code != PL_OK ? NULL : e[ST_TEST];
    return code != PL_OK ? code : file_write(t, err);
}
