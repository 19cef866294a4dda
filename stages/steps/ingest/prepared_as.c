/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/ingest/prepared_as.h"

#include <jansson.h>

#include "pipeline/store/db.h"

static void setting_read(const pl_field *f, void *conf, const json_t *value)
{
    char *at = (char *)conf + f->at;

    if (json_is_string(value) && f->type == PL_CHOICE && pl_field_choice(f, json_string_value(value)) >= 0)
        *(int32_t *)(void *)at = (int32_t)pl_field_choice(f, json_string_value(value));
    else if (json_is_integer(value) && f->type == PL_INT)
        *(int64_t *)(void *)at = json_integer_value(value);
    else if (json_is_number(value) && (f->type == PL_REAL || f->type == PL_DURATION || f->type == PL_SIZE))
        *(double *)(void *)at = json_number_value(value);
    else if (json_is_boolean(value) && f->type == PL_BOOL)
        *(bool *)(void *)at = json_is_true(value);
}

pl_code st_prepared_as_read(st_prepared_as *out, pl_store *s, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    pl_code code = pl_db_prepare(s->db, &st,
                                 "SELECT params_json, extra_json LIKE '%\"columns\"%', state='done' FROM stage WHERE "
                                 "name='prepare' ORDER BY state='done' DESC LIMIT 1",
                                 err);

    *out = (st_prepared_as){ 0 };
    pl_fields_default(st_prepare_fields, &out->conf);
    if (pl_db_next(st, &code, err)) {
        json_t *params = json_loads((const char *)sqlite3_column_text(st, 0), 0, NULL);
        for (int k = 0; st_prepare_fields[k].type != PL_END; k++)
            setting_read(&st_prepare_fields[k], &out->conf, json_object_get(params, st_prepare_fields[k].key));
        out->is_done = sqlite3_column_int(st, 2) != 0;
        out->has_columns = sqlite3_column_int(st, 1) != 0;
        json_decref(params);
    }
    out->conf.conformer = CH_3D_NONE;
    (void)sqlite3_finalize(st);
    return code;
}
