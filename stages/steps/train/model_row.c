/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/train/model_row.h"

#include <stdio.h>
#include <string.h>

#include "pipeline/base/text.h"
#include "pipeline/workflow/workflow.h"

#define OWN_NAME "%s (%s)"

const char *st_property_own_name(const char *target, const char *unit, pl_arena *mem)
{
    return pl_sprintf(mem, OWN_NAME, target, unit[0] ? unit : "model");
}

bool st_property_is_own(const char *property, const char *target, const char *unit)
{
    char own[512]; /* each at most 200 bytes: nn_model_name_fits */

    (void)snprintf(own, sizeof own, OWN_NAME, target, unit[0] ? unit : "model");
    return strcmp(property, own) == 0;
}

bool st_property_names_unit(const char *property, const char *unit)
{
    char end[512];
    const size_t n = strlen(property);
    const int m = snprintf(end, sizeof end, OWN_NAME, "", unit);

    return unit[0] != '\0' && m > 0 && (size_t)m < sizeof end && n > (size_t)m && strcmp(property + n - (size_t)m, end) == 0;
}

/* A property of that name has a unit, and not this one; or labels of no unit, which were converted to this one. */
static pl_code has_other_unit(pl_store *s, const st_property_row *row, bool *other, pl_error *err)
{
    int64_t n = 0;
    pl_code code = pl_db_int(s->db, &n, err,
                             "SELECT count(*) FROM property p WHERE name=%Q AND CASE unit WHEN '' THEN %d AND "
                             "EXISTS(SELECT 1 FROM label l WHERE l.property_id=p.property_id) ELSE unit<>%Q END",
                             row->name, row->converted, row->unit);

    *other = n > 0;
    return code;
}

static pl_code run_with(pl_store *s, const char *sql, const char *const *text, int n, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    pl_code code = pl_db_prepare(s->db, &st, sql, err);

    if (code != PL_OK)
        return code;
    for (int k = 0; k < n; k++)
        (void)sqlite3_bind_text(st, k + 1, text[k], -1, SQLITE_STATIC);
    code = pl_db_run(st, err);
    sqlite3_finalize(st);
    return code;
}

pl_code st_property_row_put(pl_store *s, const st_property_row *row, int64_t *property_id, pl_arena *mem, pl_error *err)
{
    const char *text[] = { row->name, row->unit, row->better, row->task };
    bool other = false;
    pl_code code = has_other_unit(s, row, &other, err);

    if (other)
        text[0] = st_property_own_name(row->name, row->unit, mem);
    if (text[0] == NULL)
        return pl_fail(err, PL_ENOMEM, "property %s", row->name);
    if (code == PL_OK)
        code = run_with(s,
                        "INSERT INTO property(name,unit,task,better) VALUES(?1,?2,?4,?3) "
                        "ON CONFLICT(name) DO UPDATE SET unit=?2, better=?3, task=iif(?4='classification',?4,task)",
                        text, 4, err);
    return code != PL_OK ? code : pl_db_int(s->db, property_id, err, "SELECT property_id FROM property WHERE name=%Q", text[0]);
}

pl_code st_property_put(pl_store *s, const nn_model_file *m, int32_t k, bool converted, int64_t *property_id, pl_arena *mem,
                        pl_error *err)
{
    const nn_target *t = &m->target[k];
    const st_property_row row = { t->name, t->unit, t->better, m->classifies ? "classification" : "regression", converted };

    return st_property_row_put(s, &row, property_id, mem, err);
}

pl_code st_model_same(pl_store *s, const char *name, const nn_model_file *m, const char *path, pl_error *err)
{
    int64_t other = 0;
    pl_code code = pl_db_int(s->db, &other, err, "SELECT count(*) FROM model WHERE name=%Q AND sha256<>%Q", name, m->sha256);

    if (other > 0)
        code = pl_fail(err, PL_EDATA,
                       "%s is not the file that the training of this run wrote; restore that file, or train again with --from "
                       "train",
                       path);
    return code;
}

pl_code st_model_keyed(const pl_env *env, const nn_model_file *m, const char *path, pl_error *err)
{
    if (strstr(env->step->extra_json, m->sha256) != NULL)
        return PL_OK;
    pl_file_forget(env->store, path);
    return pl_fail(err, PL_EINPUT, "%s was changed since the run began; run again when no program writes to it", path);
}

pl_code st_model_row_put(pl_store *s, const char *const text[4], int64_t *model_id, pl_error *err)
{
    pl_code code = run_with(s,
                            "INSERT INTO model(name,path,sha256,metadata_json) VALUES(?1,?2,?3,?4) "
                            "ON CONFLICT(name) DO UPDATE SET path=?2, sha256=?3, metadata_json=?4",
                            text, 4, err);

    return code != PL_OK ? code : pl_db_int(s->db, model_id, err, "SELECT model_id FROM model WHERE name=%Q", text[0]);
}

pl_code st_model_put(pl_store *s, const nn_model_file *m, const char *path, int64_t *model_id, pl_arena *mem, pl_error *err)
{
    const char *const text[] = { m->name, path, m->sha256, nn_model_metadata(m, mem) };

    if (text[3] == NULL)
        return pl_fail(err, PL_ENOMEM, "metadata of model %s", m->name);
    return st_model_row_put(s, text, model_id, err);
}
