/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of a table that has no problems go into the database. */
#include <stdio.h>

#include "stages/database/measured.h"
#include "stages/labels/label_file.h"
#include "stages/labels/stated.h"

/* SQL: whether acquired.property is `name`, or the score of that name, which may have a unit or "model" behind it. */
#define IS_CALLED(name) "(acquired.property=" name " OR substr(acquired.property,1,length(" name ")+2)=" name "||' (')"

/* SQL: nothing was measured under the name of what is asked for. */
#define UNNAMED "NOT EXISTS(SELECT 1 FROM label JOIN property q USING(property_id) WHERE " IS_CALLED("q.name") ")"

/* Chosen molecules that a campaign has not asked for yet, or asked for in vain, if the label ?2 (of a limit: ?3) is what is asked for. It
 * may have another name: that of earlier answers, or any where a model without labels chose. */
static const char measured_sql[] =
    "UPDATE acquired SET outcome='measured' WHERE inchikey=?1 AND ((outcome IS NULL OR EXISTS(SELECT 1 FROM measured x WHERE "
    "x.inchikey=acquired.inchikey AND x.property=?3)) AND (" IS_CALLED(
        "?2") " OR (" UNNAMED " AND EXISTS(SELECT 1 FROM acquired b JOIN "
              "measured y ON y.inchikey=b.inchikey AND y.round=b.round WHERE b.property=acquired.property AND b.outcome='measured' AND "
              "y.property=?3))) OR (outcome IS NULL AND mean IS NOT NULL AND " UNNAMED "))";

static pl_code outcome_store(const st_label_file *f, const st_label_row *row, pl_store *s, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    pl_code code = pl_db_prepare(s->db, &st, measured_sql, err);

    if (code != PL_OK)
        return code;
    (void)sqlite3_bind_text(st, 1, row->inchikey, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(st, 2, f->property, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(st, 3, row->property, -1, SQLITE_STATIC);
    code = pl_db_run(st, err);
    (void)sqlite3_finalize(st);
    return code;
}

static pl_code rows_store(const st_label_file *f, pl_store *s, pl_error *err)
{
    pl_code code = PL_OK;

    for (int64_t i = 0; i < f->n && code == PL_OK; i++) {
        const st_label_row *row = &f->row[i];
        char source[300];
        (void)snprintf(source, sizeof source, "%.250s:%lld", f->path, (long long)row->line);
        if (!row->known)
            code = st_measured_put(
                s, &(st_measured){ row->property, f->unit, row->inchikey, source, row->value, f->is_class, f->round }, err);
        if (code == PL_OK)
            code = outcome_store(f, row, s, err);
    }
    return code;
}

pl_code st_label_file_store(const st_label_file *f, pl_store *s, pl_error *err)
{
    pl_code code = pl_db_begin(s->db, err);

    if (code == PL_OK)
        code = rows_store(f, s, err);
    if (code == PL_OK && f->n > 0)
        code = st_stated_store(s, f->property, f->path, &f->units, err);
    if (code == PL_OK)
        code = st_measured_apply(s, err);
    if (code == PL_OK)
        code = pl_db_commit(s->db, err);
    pl_db_rollback(s->db);
    return code;
}
