/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/ingest/read_warn.h"

#include "pipeline/base/log.h"
#include "pipeline/store/store.h"
#include "stages/steps/ingest/read_input.h"

static const char empty_sql[] = "SELECT path || ' holds no records' FROM input_file WHERE n_records=0 ORDER BY file_id";
/* One failed record among millions may be half a file that could not be read. */
static const char cut_sql[] =
    "SELECT i.path || ': ' || f.message || '; records after number ' || (r.ordinal-1) || ' are lost: get the file again'"
    " FROM failure f JOIN record r USING(record_id) JOIN input_file i USING(file_id)"
    " WHERE f.stage='read' AND f.message LIKE 'damaged gzip%' ORDER BY file_id";

/* A table without a row of names would lose its first molecule without a message. */
void st_read_warn_columns(pl_env *env, const char *path, const ch_reader *reader)
{
    const char *guessed = ch_reader_guessed(reader), *repeats = st_input_repeats(reader);

    if (guessed != NULL)
        pl_event_add(env, PL_WARN,
                     "%s: no column has the name smiles; the first column, \"%.60s\", is used, and the first row is read as names",
                     path, guessed);
    if (repeats != NULL)
        pl_event_add(env, PL_WARN, "%s: several columns are called \"%.60s\"; the first is read", path, repeats);
}

static pl_code warn_of(pl_env *env, const char *sql, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    pl_code code = pl_db_prepare(env->store->db, &st, sql, err);

    while (pl_db_next(st, &code, err))
        pl_event_add(env, PL_WARN, "%s", (const char *)sqlite3_column_text(st, 0));
    (void)sqlite3_finalize(st);
    return code;
}

/* Of the input `file`, from 0. A name with another letter case is another field. */
static pl_code warn_of_titles(pl_env *env, int32_t file, pl_error *err)
{
    const pl_input *in = st_input_at(env->wf, file);
    int64_t n = 0, without = 0;
    pl_code code = pl_db_int(env->store->db, &n, err, "SELECT count(*) FROM record WHERE file_id=%d", (int)file + 1);

    if (code == PL_OK)
        code = pl_db_int(env->store->db, &without, err, "SELECT count(*) FROM record WHERE file_id=%d AND coalesce(title,'')=''",
                         (int)file + 1);
    if (code == PL_OK && without > 0)
        pl_event_add(env, PL_WARN, "%s: %lld of %lld records have no title: `title_from` takes it from a data field <%.60s>",
                     in->path, (long long)without, (long long)n, in->title_from);
    return code;
}

pl_code st_read_warn_records(pl_env *env, pl_error *err)
{
    pl_code code = warn_of(env, cut_sql, err);

    for (int32_t i = 0; code == PL_OK && i < env->wf->inputs.n; i++)
        if (st_input_at(env->wf, i)->title_from != NULL)
            code = warn_of_titles(env, i, err);
    return code;
}

pl_code st_read_warn_empty(pl_env *env, pl_error *err) { return warn_of(env, empty_sql, err); }
