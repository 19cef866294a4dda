/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <stdlib.h>

#include "chem/molecule/codec.h"
#include "stages/database/external_models.h"
#include "stages/steps/ingest/pose_block.h"
#include "stages/steps/external/external_parts.h"
#include "stages/steps/train/model_row.h"

static const char *const better_words[] = { "low", "high", "none" };

/* As stages/database/external_models.h says. */
static char *metadata(const st_ext_stage *s)
{
    const st_external_conf *c = s->conf;
    const char *const *word = c->command.items;
    json_t *command = json_array(), *all;
    char *text;

    for (int32_t i = 0; i < c->command.n; i++)
        (void)json_array_append_new(command, json_string(word[i]));
    all = json_pack("{s:b, s:I, s:o, s:s, s:s}", "external", 1, "property_id", (json_int_t)s->property_id, "command", command,
                    "property", c->property, "unit", c->unit);
    text = json_dumps(all, JSON_COMPACT);
    json_decref(all);
    return text;
}

static pl_code model_put(st_ext_stage *s, pl_error *err)
{
    char *meta = metadata(s), sha256[65];
    pl_code code = meta != NULL ? pl_file_hash(s->env->store, s->program, sha256, err) : pl_fail(err, PL_ENOMEM, "a model");

    if (code == PL_OK)
        code = st_model_row_put(s->env->store, (const char *[]){ s->conf->name, s->program, sha256, meta }, &s->model_id, err);
    free(meta);
    return code;
}

pl_code st_external_rows_open(st_ext_stage *s, pl_error *err)
{
    pl_store *store = s->env->store;
    const st_external_conf *c = s->conf;
    const st_property_row row = { c->property, c->unit, better_words[c->better], "regression", false };
    pl_code code = pl_db_begin(store->db, err);

    if (code != PL_OK)
        return code;
    code = st_property_row_put(store, &row, &s->property_id, s->env->mem, err);
    if (code == PL_OK)
        code = model_put(s, err);
    if (code != PL_OK) {
        pl_db_rollback(store->db);
        return code;
    }
    code = pl_db_commit(store->db, err);
    if (code == PL_OK)
        code = pl_db_prepare(store->db, &s->get,
                             "SELECT m.mol_id, m.smiles, m.inchikey, coalesce(r.title,'') FROM molecule m JOIN record r ON "
                             "r.record_id=m.mol_id WHERE m.mol_id BETWEEN ? AND ? ORDER BY m.mol_id",
                             err);
    if (code == PL_OK)
        code = pl_insert_open(&s->put_prediction, store->db, store->sums, "prediction", "mol_id,property_id,model_id,value", err);
    return code == PL_OK ? pl_insert_open(&s->put_score, store->db, store->sums, "score", "mol_id,property_id,mean,n_models", err)
                         : code;
}

void st_external_rows_close(st_ext_stage *s)
{
    sqlite3_finalize(s->get);
    pl_insert_close(&s->put_prediction);
    pl_insert_close(&s->put_score);
}

static pl_code value_put(st_ext_stage *s, const st_ext_item *m, pl_error *err)
{
    sqlite3_stmt *prediction = s->put_prediction.st, *score = s->put_score.st;
    const int at = pl_insert_at(&s->put_prediction), to = pl_insert_at(&s->put_score);
    pl_code code;

    (void)sqlite3_bind_int64(prediction, at, m->id);
    (void)sqlite3_bind_int64(prediction, at + 1, s->property_id);
    (void)sqlite3_bind_int64(prediction, at + 2, s->model_id);
    (void)sqlite3_bind_double(prediction, at + 3, m->value);
    code = pl_insert_row(&s->put_prediction, err);
    if (code != PL_OK)
        return code;
    (void)sqlite3_bind_int64(score, to, m->id);
    (void)sqlite3_bind_int64(score, to + 1, s->property_id);
    (void)sqlite3_bind_double(score, to + 2, m->value);
    (void)sqlite3_bind_int(score, to + 3, 1);
    return pl_insert_row(&s->put_score, err);
}

/* The poses of the unit as a block of structures. */
static pl_code poses_put(st_ext_stage *s, const st_external_unit *u, pl_unit *unit, pl_error *err)
{
    st_poses all = { 0 };
    pl_bytes block;
    int32_t n = 0;
    pl_code code;

    for (int32_t i = 0; i < u->n; i++)
        n += u->item[i].code == NULL ? u->item[i].n_poses : 0;
    all.item = PL_NEW(unit->mem, ch_block_item, n + 1);
    all.value = PL_NEW(unit->mem, double, n + 1);
    if (all.item == NULL || all.value == NULL)
        return pl_fail(err, PL_ENOMEM, "poses");
    for (int32_t i = 0; i < u->n; i++)
        for (int32_t k = 0; u->item[i].code == NULL && k < u->item[i].n_poses; k++) {
            all.item[all.n] = (ch_block_item){ u->item[i].id, u->item[i].pose[k] };
            all.value[all.n++] = u->item[i].pose_value[k];
        }
    code = st_pose_block_pack(&block, &all, unit->mem, err);
    return code == PL_OK ? pl_block_put(s->env->store, ST_POSE_BLOCK, s->env->step->key, unit->index, n > 0 ? all.item[0].id : 0, n,
                                        block, err)
                         : code;
}

/* The first one is told with its reason and the commit of its unit, which a kill does not take back. */
static void left_out_note(st_ext_stage *s, const st_ext_item *m)
{
    if (m->code != NULL || m->n_left_out == 0)
        return;
    if (s->n_left_out == 0)
        pl_event_add(s->env, PL_WARN, "a structure that the program wrote for molecule %lld is left out as a pose: %s",
                     (long long)m->id, m->left_out);
    s->n_left_out += m->n_left_out;
    s->n_left_out_of++;
}

/* Calls for single structures that failed, where others of the molecule gave its score. */
static void bad_calls_note(st_ext_stage *s, const st_ext_item *m)
{
    if (m->code != NULL || m->n_bad_calls == 0)
        return;
    if (s->n_bad_calls == 0)
        pl_event_add(s->env, PL_WARN, "%d of the %d structures of molecule %lld failed, and its score is that of the others: %s",
                     (int)m->n_bad_calls, (int)m->n_mols, (long long)m->id, m->message);
    s->n_bad_calls += m->n_bad_calls;
    s->n_bad_calls_of++;
}

/* Counts of this run. */
pl_code st_external_finish(void *state, pl_error *err)
{
    const st_ext_stage *s = state;

    (void)err;
    if (s->n_left_out > 1)
        pl_event_add(s->env, PL_WARN, "structures of the program that are left out as poses: %lld, of %lld %s; values count",
                     (long long)s->n_left_out, (long long)s->n_left_out_of, pl_plural(s->n_left_out_of, "molecule", "molecules"));
    if (s->n_bad_calls_of > 1)
        pl_event_add(s->env, PL_WARN,
                     "structures for which the program failed: %lld, of %lld molecules; others of these have their scores",
                     (long long)s->n_bad_calls, (long long)s->n_bad_calls_of);
    return PL_OK;
}

pl_code st_external_commit(void *state, pl_unit *unit, pl_error *err)
{
    st_ext_stage *s = state;
    const st_external_unit *u = unit->data;
    pl_code code = PL_OK;

    for (int32_t i = 0; i < u->n && code == PL_OK; i++) {
        const st_ext_item *m = &u->item[i];
        if (m->code == NULL)
            code = value_put(s, m, err);
        else
            code = pl_failure_add(
                s->env, &(pl_failure){ .mol_id = m->id, .code = m->code, .message = m->message, .signal = m->signal, .attempt = 1 },
                err);
        left_out_note(s, m);
        bad_calls_note(s, m);
        unit->n_ok += m->code == NULL;
        unit->n_failed += m->code != NULL;
    }
    if (code == PL_OK)
        code = pl_insert_end(&s->put_prediction, err);
    if (code == PL_OK)
        code = pl_insert_end(&s->put_score, err);
    if (code == PL_OK && s->conf->poses)
        code = poses_put(s, u, unit, err);
    unit->first = u->n > 0 ? u->item[0].id : 0;
    unit->last = u->n > 0 ? u->item[u->n - 1].id : 0;
    return code;
}

/* Its property stays if something else has values of it. */
#define PROGRAMS "(SELECT model_id FROM model WHERE " ST_IS_EXTERNAL("") ")"
const char *const st_external_reset_sql[] = {
    "DELETE FROM score WHERE property_id IN (SELECT property_id FROM prediction WHERE model_id IN " PROGRAMS ")",
    "DELETE FROM prediction WHERE model_id IN " PROGRAMS,
    "DELETE FROM model WHERE " ST_IS_EXTERNAL(""),
    "DELETE FROM property WHERE property_id NOT IN (SELECT property_id FROM label) AND property_id NOT IN (SELECT property_id FROM "
    "evaluation) AND property_id NOT IN (SELECT property_id FROM prediction)",
    NULL,
};
