/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/score/evaluate_models.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/base/text.h"
#include "pipeline/run/progress.h"
#include "pipeline/store/store.h"
#include "stages/database/measured.h"
#include "stages/steps/dataset/classes.h"
#include "stages/steps/dataset/unseen.h"
#include "stages/steps/errors/calibrate.h"
#include "stages/steps/errors/domain.h"
#include "stages/steps/ingest/prepare.h"
#include "stages/steps/train/model_row.h"
#include "stages/steps/train/score_models.h"

/* One model and what came of it. */
typedef struct judged {
    nn_model_file *m, *calibrated; /* calibrated: NULL or the new one */
    const char *name, *path;
    st_wanted_label *label; /* [outputs] */
    bool *converts;         /* [outputs] where the label's name or unit differs           */
    st_dataset d;
    st_errors *e[ST_PARTS];
} judged;

typedef struct models_state {
    pl_env *env;
    const st_evaluate_conf *conf;
    const nn_train_host *host;
    judged one[ST_MODELS_MAX];
    int n;
    int64_t molecules;
} models_state;

/* ---- labels -------------------------------------------------------------- */

static pl_code unit_read(char *out, size_t n, bool *found, pl_env *env, const char *label, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    pl_code code = pl_db_prepare(env->store->db, &st,
                                 "SELECT unit FROM property p WHERE name=? AND EXISTS(SELECT 1 FROM label l WHERE "
                                 "l.property_id=p.property_id)",
                                 err);

    if (code == PL_OK)
        (void)sqlite3_bind_text(st, 1, label, -1, SQLITE_STATIC);
    *found = pl_db_next(st, &code, err);
    if (*found)
        (void)snprintf(out, n, "%s", (const char *)sqlite3_column_text(st, 0));
    sqlite3_finalize(st);
    return code;
}

/* The label of target k, with its unit checked; name NULL if no molecule has it. */
static pl_code label_find(models_state *s, judged *j, int32_t k, pl_error *err)
{
    const nn_target *t = &j->m->target[k];
    const st_evaluate_target *said = st_evaluate_named(s->conf, t->name);
    const char *label = said != NULL && said->column != NULL ? said->column : t->name;
    const double factor = said != NULL ? said->factor : 0;
    char unit[256] = "";
    bool found;
    pl_code code = unit_read(unit, sizeof unit, &found, s->env, label, err);

    if (code != PL_OK)
        return code;
    j->label[k] = (st_wanted_label){ .name = found ? label : NULL, .factor = factor != 0 ? factor : 1 };
    j->converts[k] = (factor != 0 && factor != 1) || strcmp(label, t->name) != 0;
    if (!found && said == NULL)
        return PL_OK;
    if (!found)
        return pl_fail(err, PL_ECONFIG, "evaluate: no molecule has a label called %s, for target %s of model %s; there are: %s",
                       label, t->name, j->name, st_labels_stored(s->env->store, s->env->mem));
    if (factor != 0 && factor != 1 && unit[0] && strcmp(unit, t->unit) == 0)
        return pl_fail(
            err, PL_ECONFIG,
            "evaluate: label %s is in %s, in which model %s predicts %s; times %g it would be in another unit: leave factor "
            "out of targets, or evaluate models of other units in a workflow of their own",
            label, unit, j->name, t->name, factor);
    if (factor == 0 && unit[0] && strcmp(unit, t->unit) != 0)
        return pl_fail(err, PL_ECONFIG,
                       "evaluate: label %s is in %s, model %s predicts %s in %s; say how to convert: targets: [{name: %s, factor: "
                       "..}]",
                       label, unit, j->name, t->name, t->unit[0] ? t->unit : "no unit", t->name);
    if (factor == 0 && !unit[0] && t->unit[0])
        pl_event_add(s->env, PL_WARN,
                     "label %s has no unit; it is compared with %s of model %s as %s (prepare: properties says the unit)", label,
                     t->name, j->name, t->unit);
    if (j->m->classifies) {
        int64_t undecided;
        code = st_classes_check(s->env, label, &undecided, err);
    }
    return code;
}

static pl_code labels_find(models_state *s, judged *j, pl_error *err)
{
    const int32_t n = j->m->conf.outputs;
    int32_t there = 0;
    pl_code code = PL_OK;

    j->label = PL_NEW(s->env->mem, st_wanted_label, n);
    j->converts = PL_NEW(s->env->mem, bool, n);
    if (j->label == NULL || j->converts == NULL)
        return pl_fail(err, PL_ENOMEM, "labels");
    for (int32_t k = 0; k < n && code == PL_OK; k++) {
        code = label_find(s, j, k, err);
        there += j->label[k].name != NULL;
    }
    if (code != PL_OK)
        return code;
    if (there == 0)
        return pl_fail(
            err, PL_ECONFIG,
            "evaluate: no molecule has a label called %s, which model %s predicts; there are: %s; name another with targets: "
            "[{name: %s, column: ..}]",
            j->m->target->name, j->name, st_labels_stored(s->env->store, s->env->mem), j->m->target->name);
    for (int32_t k = 0; k < n; k++)
        if (j->label[k].name == NULL)
            pl_event_add(s->env, PL_WARN, "no molecule has a label called %s: that target of model %s is not evaluated",
                         j->m->target[k].name, j->name);
    return PL_OK;
}

static const nn_target *target_of(const nn_model_file *m, const char *name)
{
    for (int32_t k = 0; k < m->conf.outputs; k++)
        if (strcmp(m->target[k].name, name) == 0)
            return &m->target[k];
    return NULL;
}

static const char *unit_or(const nn_target *t) { return t->unit[0] != '\0' ? t->unit : "no unit"; }

/* A target that is named belongs to a model, and one factor is for one unit. */
static pl_code name_check(const models_state *s, const st_evaluate_target *t, pl_error *err)
{
    const nn_target *first = NULL;
    int of = 0;

    for (int i = 0; i < s->n; i++) {
        const nn_target *one = target_of(s->one[i].m, t->name);
        if (one != NULL && first != NULL && t->factor != 0 && strcmp(first->unit, one->unit) != 0)
            return pl_fail(
                err, PL_ECONFIG,
                "evaluate: targets: model %s predicts %s in %s, model %s in %s: one factor is not for both; evaluate them in "
                "two workflows",
                s->one[of].name, t->name, unit_or(first), s->one[i].name, unit_or(one));
        of = first == NULL && one != NULL ? i : of;
        first = first == NULL ? one : first;
    }
    return first != NULL ? PL_OK : pl_fail(err, PL_ECONFIG, "evaluate: targets: none of the models predicts %s", t->name);
}

static pl_code names_check(const models_state *s, pl_error *err)
{
    const st_evaluate_target *t = s->conf->targets.items;
    pl_code code = PL_OK;

    for (int32_t k = 0; k < s->conf->targets.n && code == PL_OK; k++)
        code = name_check(s, &t[k], err);
    return code;
}

/* ---- parts --------------------------------------------------------------- */

static pl_code parts_find(const models_state *s, judged *j, pl_error *err)
{
    const bool splits = pl_workflow_step(s->env->wf, "split") != NULL;
    sqlite3_stmt *st = NULL;
    pl_code code = pl_db_prepare(s->env->store->db, &st, "SELECT inchikey FROM molecule WHERE mol_id=?", err);

    for (int64_t i = 0; i < j->d.n && code == PL_OK; i++) {
        const bool calibrates = s->conf->calibrate && (!splits || j->d.part[i] == ST_CALIBRATION);
        (void)sqlite3_bind_int64(st, 1, j->d.mol_id[i]);
        j->d.part[i] = calibrates ? ST_CALIBRATION : ST_NEW;
        const char *key = pl_db_next(st, &code, err) ? (const char *)sqlite3_column_text(st, 0) : "";
        if (nn_domain_knows(&j->m->domain, key))
            j->d.part[i] = ST_TRAIN;
        else if (nn_seen_has(&j->m->seen, key))
            j->d.part[i] = ST_VALID;
        (void)sqlite3_reset(st);
    }
    sqlite3_finalize(st);
    return code;
}

/* Validation molecules that the file does not list count as new ones. */
static void seen_warn(const models_state *s, const judged *j)
{
    if (j->m->seen.known && j->m->seen.all)
        return;
    pl_event_add(
        s->env, PL_WARN,
        "the file of model %s lists %s of its validation molecules%s: labelled ones among the others count as new, and errors%s "
        "are too small; give only molecules that the model has never met, or train it again",
        j->name, j->m->seen.known ? "only some" : "none", j->m->seen.known ? " and of those of its start model" : "",
        s->conf->calibrate ? " and the new intervals" : "");
}

/* How many of the input files are among those in `data` of a provenance. */
static pl_code files_count(int64_t *n, models_state *s, const json_t *data, pl_error *err)
{
    const json_t *file;
    size_t k;
    pl_code code = PL_OK;

    json_array_foreach(data, k, file) {
        const char *hash = json_string_value(json_object_get(file, "sha256"));
        int64_t found = 0;
        if (code == PL_OK)
            code = pl_db_int(s->env->store->db, &found, err, "SELECT count(*) FROM input_file WHERE sha256=%Q",
                             hash != NULL ? hash : "");
        *n += found;
    }
    return code;
}

/* The files whose molecules made the intervals: those of a later calibration, else those of the training, of which a part did. Joined
 * models have those of each. */
static pl_code calibrating_count(int64_t *n, models_state *s, const json_t *provenance, pl_error *err)
{
    const json_t *later = json_object_get(provenance, "calibration"), *joined = json_object_get(provenance, "joined"), *one;
    size_t k;
    pl_code code = PL_OK;

    if (joined == NULL)
        return files_count(n, s, json_object_get(later != NULL ? later : provenance, "data"), err);
    json_array_foreach(joined, k, one)
        if (code == PL_OK)
            code = calibrating_count(n, s, json_object_get(one, "provenance"), err);
    return code;
}

/* Whether molecules that the model had not met made an interval of it; those of its validation are no new ones. */
static bool has_interval_of_others(const nn_model_file *m)
{
    for (int32_t k = 0; k < m->conf.outputs; k++)
        if (m->target[k].interval.n > 0 && strcmp(m->target[k].interval.part, st_part_name[ST_VALID]) != 0)
            return true;
    return false;
}

static int64_t count_of(const judged *j, st_part part)
{
    int64_t n = 0;

    for (int64_t i = 0; i < j->d.n; i++)
        n += j->d.part[i] == part;
    return n;
}

/* Warns of what makes the numbers look better than they are. */
static pl_code warn(models_state *s, const judged *j, pl_error *err)
{
    json_t *all = json_loads(j->m->provenance, 0, NULL);
    const long long trained = (long long)json_integer_value(json_object_get(json_object_get(all, "training"), "molecules"));
    int64_t again = 0;
    pl_code code = PL_OK;

    if (has_interval_of_others(j->m) && count_of(j, ST_NEW) > 0)
        code = calibrating_count(&again, s, all, err);
    json_decref(all);
    if (code != PL_OK)
        return code;
    if (again > 0)
        pl_event_add(s->env, PL_WARN,
                     "model %s was calibrated on one of the input files: its coverage on these molecules is no "
                     "independent test",
                     j->name);
    if (trained > j->m->domain.n)
        pl_event_add(s->env, PL_WARN,
                     "the file of model %s lists %d of its %lld training molecules: others of them may be in the part new", j->name,
                     (int)j->m->domain.n, trained);
    seen_warn(s, j);
    return PL_OK;
}

/* ---- errors -------------------------------------------------------------- */

static bool wanted(const models_state *s, int p)
{
    return st_evaluate_wants(s->conf, (st_part)p) || (s->conf->calibrate && p == ST_CALIBRATION);
}

static pl_code part_find(judged *j, const st_judge *judge, st_part p, pl_error *err)
{
    pl_code code;

    j->e[p] = PL_NEW(j->d.mem, st_errors, j->d.n_targets);
    code = j->e[p] != NULL ? st_errors_find(j->e[p], judge, p, j->d.mem, err) : pl_fail(err, PL_ENOMEM, "errors");
    if (code == PL_OK)
        code = st_domain_alike(j->e[p], &j->d, p, &j->m->domain, err);
    return code;
}

static pl_code errors_find(models_state *s, judged *j, pl_error *err)
{
    const st_evaluate_conf *c = s->conf;
    nn_engine_conf conf = st_compute_conf(&c->compute, c->threads > 0 ? (int)c->threads : s->env->workers);
    const nn_engine_kind *kind = st_compute_engine(&c->compute);
    st_judge judge = { .m = j->m,
                       .kind = kind,
                       .d = &j->d,
                       .host = s->host,
                       .molecules = c->molecules,
                       .max_edges = c->max_edges,
                       .mirror = (nn_mirror_mode)c->mirror };
    int32_t device[ST_DEVICES];
    int n;
    pl_code code = st_compute_devices(&c->compute, device, &n, err);

    if (code != PL_OK)
        return code;
    conf.device = device[0];
    conf.width = st_compute_width(&c->compute, &j->m->conf);
    if (j->m->model != NULL)
        code = kind->open(&judge.engine, j->m->model, &conf, err);
    if (code == PL_OK && j->m->model != NULL)
        code = kind->set_params(judge.engine, j->m->params, err);
    for (int p = 0; p < ST_PARTS && code == PL_OK; p++)
        if (wanted(s, p))
            code = part_find(j, &judge, (st_part)p, err);
    kind->close(judge.engine);
    return code;
}

/* With the domain of the model that a screen would use. */
static pl_code domains_find(models_state *s, judged *j, pl_error *err)
{
    const nn_model_file *m = j->calibrated != NULL ? j->calibrated : j->m;
    pl_code code = PL_OK;

    for (int p = 0; p < ST_PARTS; p++)
        for (int32_t k = 0; code == PL_OK && k < j->d.n_targets && j->e[p] != NULL; k++)
            code = st_errors_domain(&j->e[p][k], k, s->env, &j->d, m, err);
    return code;
}

static pl_code judge_one(models_state *s, judged *j, pl_error *err)
{
    const char *path = st_calibrated_path(s->env->wf, j->name, s->env->mem);
    pl_code code = labels_find(s, j, err);

    if (code == PL_OK)
        st_model_form_check(s->env, j->m);
    if (code == PL_OK)
        code = st_dataset_open_all(&j->d, s->env, j->label, j->m->conf.outputs, err);
    if (code == PL_OK)
        code = st_dataset_ready(&j->d, j->m, err);
    if (code == PL_OK && j->m->classifies)
        st_dataset_decided(&j->d);
    if (code == PL_OK)
        code = parts_find(s, j, err);
    if (code == PL_OK)
        code = warn(s, j, err);
    if (code == PL_OK)
        code = errors_find(s, j, err);
    if (code == PL_OK && s->conf->calibrate)
        code = path != NULL ? st_recalibrate(&j->calibrated, path, s->env, j->m, j->path, &j->d, j->e[ST_CALIBRATION], err)
                            : pl_fail(err, PL_ENOMEM, "the model file");
    if (code == PL_OK)
        code = domains_find(s, j, err);
    s->molecules += j->d.n;
    if (code == PL_OK)
        pl_progress_set(s->env->progress, s->molecules, s->molecules, j->name);
    return code;
}

/* ---- rows ---------------------------------------------------------------- */

static pl_code target_put(models_state *s, st_evaluation *rows, judged *j, int64_t model_id, int32_t k, pl_error *err)
{
    const nn_model_file *m = j->calibrated != NULL ? j->calibrated : j->m;
    st_found f = { .m = m,
                   .target = &m->target[k],
                   .before = j->calibrated != NULL ? &j->m->target[k].interval : NULL,
                   .model_id = model_id,
                   .classifies = m->classifies,
                   .has_domain = m->domain.n > 0,
                   .d = &j->d };
    pl_code code = st_property_put(s->env->store, m, k, j->converts[k], &f.property_id, s->env->mem, err);

    for (int p = 0; p < ST_PARTS && code == PL_OK; p++) {
        if (j->e[p] == NULL || !st_evaluate_wants(s->conf, (st_part)p) || !j->e[p][k].model.n)
            continue;
        f.part = (st_part)p;
        f.e = &j->e[p][k];
        code = st_evaluation_put(rows, &f, err);
    }
    return code;
}

static pl_code model_put(models_state *s, st_evaluation *rows, judged *j, pl_error *err)
{
    nn_model_file *m = j->calibrated != NULL ? j->calibrated : j->m;
    const char *path = j->calibrated != NULL ? st_calibrated_path(s->env->wf, j->name, s->env->mem) : j->path;
    unsigned parts = 0;
    int64_t id = 0;
    pl_code code;

    for (int p = 0; p < ST_PARTS; p++)
        parts |= wanted(s, p) ? 1u << p : 0;
    m->name = j->name;
    code = path != NULL ? st_model_put(s->env->store, m, path, &id, s->env->mem, err) : pl_fail(err, PL_ENOMEM, "a model");
    for (int32_t k = 0; k < m->conf.outputs && code == PL_OK; k++)
        if (j->label[k].name != NULL)
            code = target_put(s, rows, j, id, k, err);
    return code != PL_OK ? code : st_unseen_put(s->env, &j->d, parts, &m->inputs, j->name, err);
}

/* Properties of targets with a unit come first, so that those of a model without one do not become numbers of that unit,
 * whatever the order of the models. */
static pl_code units_put(models_state *s, pl_error *err)
{
    pl_code code = PL_OK;
    int64_t id;

    for (int i = 0; i < s->n; i++) {
        const judged *j = &s->one[i];
        for (int32_t k = 0; k < j->m->conf.outputs && code == PL_OK; k++)
            if (j->label[k].name != NULL && j->m->target[k].unit[0] != '\0')
                code = st_property_put(s->env->store, j->m, k, j->converts[k], &id, s->env->mem, err);
    }
    return code;
}

/* Logs, outside of the transaction, how many molecules each part has. */
static void counts_tell(const models_state *s)
{
    for (int i = 0; i < s->n; i++) {
        const judged *j = &s->one[i];
        pl_event_add(s->env, count_of(j, ST_NEW) || s->conf->calibrate ? PL_INFO : PL_WARN,
                     "model %s: %lld labelled molecules, %lld of them in its training, %lld in its validation, %lld for "
                     "calibration, %lld new",
                     j->name, (long long)j->d.n, (long long)count_of(j, ST_TRAIN), (long long)count_of(j, ST_VALID),
                     (long long)count_of(j, ST_CALIBRATION), (long long)count_of(j, ST_NEW));
    }
}

static pl_code models_read(models_state *s, pl_error *err)
{
    st_model_list l;
    pl_code code = PL_OK;

    st_model_list_fill(&l, s->env->wf, &s->conf->models, s->env->mem);
    for (int k = 0; k < l.n && code == PL_OK; k++) {
        judged *j = &s->one[s->n++];
        j->name = l.name[k];
        j->path = l.path[k];
        code = nn_model_read(&j->m, j->path, s->env->mem, err);
        if (code == PL_OK)
            j->m->name = j->name;
    }
    return code;
}

pl_code st_evaluate_models(pl_env *env, st_evaluation *rows, const nn_train_host *host, pl_error *err)
{
    models_state *s = PL_NEW(env->mem, models_state, 1);
    pl_code code = s != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "evaluation");

    if (code != PL_OK)
        return code;
    *s = (models_state){ .env = env, .conf = env->step->conf, .host = host };
    st_compute_say(&s->conf->compute, "evaluate");
    code = models_read(s, err);
    if (code == PL_OK)
        code = names_check(s, err);
    for (int k = 0; k < s->n && code == PL_OK; k++)
        code = judge_one(s, &s->one[k], err);
    if (code == PL_OK)
        counts_tell(s);
    if (code == PL_OK)
        code = st_evaluation_begin(rows, env->store->db, err);
    if (code == PL_OK)
        code = units_put(s, err);
    for (int k = 0; k < s->n && code == PL_OK; k++)
        code = model_put(s, rows, &s->one[k], err);
    for (int k = 0; k < s->n; k++)
        st_dataset_close(&s->one[k].d);
    return code;
}

/* ---- the stage ----------------------------------------------------------- */

static const st_evaluate_conf *conf_of(const pl_step *step) { return step->conf; }

pl_code st_evaluate_models_key(const pl_workflow *wf, const pl_step *step, pl_store *store, const char **extra_json, pl_arena *mem,
                               pl_error *err)
{
    static const pl_list none = { 0 };
    const bool trained_here = pl_workflow_step(wf, "train") != NULL;
    pl_code code = st_model_list_key(wf, trained_here ? &none : &conf_of(step)->models, store, extra_json, mem, err);

    return code == PL_OK && !trained_here ? st_measured_key(extra_json, store, NULL, 0, mem, err) : code;
}

pl_code st_evaluate_missing(const pl_workflow *wf, const pl_step *step, const char **out, pl_arena *mem, pl_error *err)
{
    st_model_list l;

    *out = NULL;
    if (pl_workflow_step(wf, "train") != NULL || !conf_of(step)->calibrate)
        return PL_OK;
    st_model_list_fill(&l, wf, &conf_of(step)->models, mem);
    for (int k = 0; k < l.n && *out == NULL; k++) {
        const char *path = st_calibrated_path(wf, l.name[k], mem);
        if (path == NULL)
            return pl_fail(err, PL_ENOMEM, "no memory for a path");
        if (pl_path_is_gone(path))
            *out = path + strlen(wf->workdir) + 1;
    }
    return PL_OK;
}
