/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/file.h"
#include "pipeline/base/text.h"
#include "pipeline/store/store.h"
#include "pipeline/workflow/workflow.h"
#include "stages/steps/errors/calibrate.h"
#include "stages/steps/errors/cases.h"
#include "stages/steps/ingest/prepare_conf.h"
#include "stages/steps/score/evaluate_models.h"

const char *st_calibrated_path(const pl_workflow *wf, const char *name, pl_arena *mem)
{
    return pl_sprintf(mem, "%s/models/%s-calibrated.safetensors", wf->workdir, name);
}

/* ---- provenance ---------------------------------------------------------- */

/* Objects of the rows of a query, with the names of its columns. *code keeps the first error, after which nothing is read. */
static json_t *json_rows(const pl_env *env, const char *sql, pl_code *code, pl_error *err)
{
    json_t *list = json_array();
    sqlite3_stmt *st = NULL;

    if (*code == PL_OK)
        *code = pl_db_prepare(env->store->db, &st, sql, err);
    while (pl_db_next(st, code, err)) {
        json_t *one = json_object();
        for (int k = 0; k < sqlite3_column_count(st); k++)
            (void)json_object_set_new(one, sqlite3_column_name(st, k),
                                      sqlite3_column_type(st, k) == SQLITE_INTEGER
                                          ? json_integer(sqlite3_column_int64(st, k))
                                          : json_string((const char *)sqlite3_column_text(st, k)));
        (void)json_array_append_new(list, one);
    }
    (void)sqlite3_finalize(st);
    return list;
}

/* The temporary table `calibrated`: the calibration molecules. */
static pl_code calibrated_list(const pl_env *env, const st_dataset *d, pl_error *err)
{
    pl_code code = pl_db_exec(
        env->store->db, "CREATE TEMP TABLE IF NOT EXISTS calibrated(mol_id INTEGER PRIMARY KEY); DELETE FROM calibrated", err);

    for (int64_t i = 0; i < d->n && code == PL_OK; i++)
        if (d->part[i] == ST_CALIBRATION)
            code = pl_db_execf(env->store->db, err, "INSERT INTO calibrated VALUES(%lld)", (long long)d->mol_id[i]);
    return code;
}

/* Identifies these independently of the machine: a hash over their sorted InChIKeys. */
static pl_code molecules_hash(char hex[65], const pl_env *env, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    pl_sha256 sum;
    pl_code code =
        pl_db_prepare(env->store->db, &st, "SELECT inchikey FROM calibrated JOIN molecule USING(mol_id) ORDER BY 1", err);

    pl_sha256_start(&sum);
    while (pl_db_next(st, &code, err))
        pl_sha256_add_str(&sum, (const char *)sqlite3_column_text(st, 0));
    (void)sqlite3_finalize(st);
    pl_sha256_hex(&sum, hex);
    return code;
}

static json_t *json_counts(const nn_model_file *m, const st_errors *e)
{
    json_t *o = json_object();

    for (int32_t k = 0; k < m->conf.outputs; k++)
        (void)json_object_set_new(o, m->target[k].name, json_integer(e[k].model.n));
    return o;
}

static json_t *json_calibration(const pl_env *env, const nn_model_file *m, const char *from, const char *molecules,
                                const st_errors *e, pl_code *code, pl_error *err)
{
    static const char run_sql[] =
        "SELECT program_version AS version, substr(started_utc,1,10) AS date FROM run ORDER BY run_id DESC LIMIT 1";
    json_t *runs = json_rows(env, run_sql, code, err);
    json_t *o =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:o}", "program", "molsieve", "workflow",
                  env->wf->name != NULL ? env->wf->name : "", "model", from, "model_sha256", m->sha256, "inchikeys_sha256",
                  molecules, "molecules", json_counts(m, e), "data",
                  json_rows(env,
                            "SELECT replace(path,rtrim(path,replace(path,'/','')),'') AS file, sha256, n_records AS records FROM "
                            "input_file ORDER BY file_id LIMIT 200",
                            code, err));

    if (o != NULL && json_array_size(runs) > 0)
        (void)json_object_update(o, json_array_get(runs, 0));
    json_decref(runs);
    return o;
}

static pl_code provenance_make(nn_model_file *m, const pl_env *env, const char *from, const st_errors *e, pl_error *err)
{
    json_t *all = json_loads(m->provenance, 0, NULL);
    char hash[65], *text = NULL;
    pl_code code = all != NULL ? molecules_hash(hash, env, err) : pl_fail(err, PL_ENOMEM, "provenance of the model");

    if (code == PL_OK) {
        const st_prepare_conf *prepare = pl_workflow_step(env->wf, "prepare")->conf;
        json_t *told = st_prepare_told(prepare), *several = st_prepare_several(prepare);
        (void)json_object_del(all, "prepare"); /* as the form in the range: of the molecules that calibrate */
        if (told != NULL)
            (void)json_object_set_new(all, "prepare", told);
        (void)json_object_del(all, "conformers");
        if (several != NULL)
            (void)json_object_set_new(all, "conformers", several);
        (void)json_object_set_new(all, "calibration", json_calibration(env, m, from, hash, e, &code, err));
        text = json_dumps(all, JSON_COMPACT | JSON_REAL_PRECISION(9));
        m->provenance = text != NULL ? pl_strdup(env->mem, text) : NULL;
        if (m->provenance == NULL)
            code = pl_fail(err, PL_ENOMEM, "provenance of the model");
    }
    free(text);
    json_decref(all);
    return code;
}

/* ---- the model ----------------------------------------------------------- */

/* For each target. */
static pl_code enough_check(const nn_model_file *m, const st_errors *e, pl_error *err)
{
    for (int32_t k = 0; k < m->conf.outputs; k++)
        if (e[k].model.n < NN_CONFORMAL_MIN)
            return pl_fail(
                err, PL_ECONFIG,
                "calibrate: model %s: %lld labelled molecules for %s; an interval needs %d or more that it was not trained on",
                m->name, (long long)e[k].model.n, m->target[k].name, (int)NN_CONFORMAL_MIN);
    return PL_OK;
}

/* Copies of a molecule (`dedupe: {by: none}`), and its observations at several temperatures, say nothing of other molecules. */
static pl_code different_check(const pl_env *env, const char *model, pl_error *err)
{
    int64_t n = 0;
    pl_code code =
        pl_db_int(env->store->db, &n, err,
                  "SELECT count(DISTINCT coalesce(nullif(inchikey,''),smiles)) FROM calibrated JOIN molecule USING(mol_id)");

    if (code == PL_OK && n < NN_CONFORMAL_MIN)
        return pl_fail(err, PL_ECONFIG,
                       "calibrate: model %s: the labelled molecules are %lld different ones; an interval needs %d or more", model,
                       (long long)n, (int)NN_CONFORMAL_MIN);
    return code;
}

/* How many molecules the ranges were made of in the training: the ranges of the calibration keep these. */
static void trained_keep(nn_model_file *m, const nn_model_file *before)
{
    if (before->range.molecules == 0)
        return;
    m->range.molecules = before->range.molecules;
    for (int32_t k = 0; k < m->conf.outputs; k++) {
        const nn_range *own = before->target[k].range != NULL ? before->target[k].range : &before->range;
        if (m->target[k].range != NULL)
            m->target[k].range->molecules = own->molecules;
    }
}

/* The range is that of the calibration molecules: the intervals are not valid for others. */
static pl_code range_make(nn_model_file *m, const nn_model_file *before, const pl_env *env, const st_dataset *d, pl_error *err)
{
    st_samples s = { 0 };
    pl_code code = st_samples_open(&s, d, ST_CALIBRATION, &m->inputs, err);

    if (code == PL_OK)
        code = st_ranges_make(m, env, &s, err);
    if (code == PL_OK)
        trained_keep(m, before);
    if (m->model == NULL)
        nn_model_ignore_sources(m);
    st_samples_close(&s);
    return code;
}

/* The file that is read must not be overwritten. */
static pl_code write_to(const nn_model_file *m, const char *path, const char *from, pl_error *err)
{
    if (pl_path_is_same(path, from))
        return pl_fail(err, PL_ECONFIG, "calibrate would overwrite %s, which it reads; copy that file, or take another workdir",
                       from);
    return nn_model_write(m, path, err);
}

pl_code st_recalibrate(nn_model_file **out, const char *path, const pl_env *env, const nn_model_file *m, const char *from,
                       const st_dataset *d, st_errors *e, pl_error *err)
{
    const char *dir = pl_sprintf(env->mem, "%s/models", env->wf->workdir), *slash = strrchr(from, '/');
    nn_model_file *to = PL_NEW(env->mem, nn_model_file, 1);
    nn_target *target = PL_NEW(env->mem, nn_target, m->conf.outputs);
    pl_code code = dir != NULL && to != NULL && target != NULL ? pl_mkdirs(dir, err) : pl_fail(err, PL_ENOMEM, "a model");

    if (m->classifies)
        return pl_fail(err, PL_ECONFIG, "calibrate: model %s predicts classes, which have no interval", m->name);
    if (code != PL_OK)
        return code;
    *to = *m;
    to->target = target;
    memcpy(target, m->target, (size_t)m->conf.outputs * sizeof *target);
    code = enough_check(m, e, err);
    if (code == PL_OK)
        code = calibrated_list(env, d, err);
    if (code == PL_OK)
        code = different_check(env, m->name, err);
    if (code == PL_OK)
        code = range_make(to, m, env, d, err);
    for (int32_t k = 0; k < m->conf.outputs && code == PL_OK; k++)
        code = st_calibrate(to, k, &e[k], ST_CALIBRATION, env, d, err);
    if (code == PL_OK)
        code = provenance_make(to, env, slash != NULL ? slash + 1 : from, e, err);
    if (code == PL_OK)
        code = write_to(to, path, from, err);
    if (code == PL_OK)
        code = pl_sha256_file(path, to->sha256, err);
    *out = to;
    return code;
}
