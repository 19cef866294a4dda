/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of a table that has no problems go into the database. */
#include <stdio.h>

#include "stages/database/measured.h"
#include "stages/labels/label_file.h"
#include "stages/labels/stated.h"

/* Chosen molecules that a campaign has not asked for yet, or asked for in vain. Of the latter a label counts if it is what is asked for,
 * which may have another name: that of earlier answers. */
static const char measured_sql[] =
    "UPDATE acquired SET outcome='measured' WHERE inchikey=%Q AND (outcome IS NULL OR EXISTS(SELECT 1 FROM measured x WHERE "
    "x.inchikey=acquired.inchikey AND x.property=%Q) AND (property=%Q OR EXISTS(SELECT 1 FROM acquired b JOIN measured y ON "
    "y.inchikey=b.inchikey AND y.round=b.round WHERE b.property=acquired.property AND b.outcome='measured' AND y.property=%Q)))";

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
            code = pl_db_execf(s->db, err, measured_sql, row->inchikey, row->property, row->property, row->property);
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
