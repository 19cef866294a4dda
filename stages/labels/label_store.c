/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of a table that has no problems go into the database. */
#include <stdio.h>

#include "stages/database/measured.h"
#include "stages/labels/label_file.h"
#include "stages/labels/stated.h"

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
            code = pl_db_execf(s->db, err, "UPDATE acquired SET outcome='measured' WHERE outcome IS NULL AND inchikey=%Q",
                               row->inchikey);
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
