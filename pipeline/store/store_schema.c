/* SPDX-License-Identifier: Apache-2.0 */
/* The application's tables: created, and read where an older version created them. */
#include "pipeline/store/store.h"

#include <string.h>

pl_code pl_schema_add(sqlite3 *db, const pl_schema *schema, int from, int to, pl_error *err)
{
    pl_code code = PL_OK;

    for (const pl_added *a = schema->added; a != NULL && a->table != NULL && code == PL_OK; a++)
        if (a->version > from && a->version <= to)
            code = pl_db_execf(db, err, "ALTER TABLE \"%w\" ADD COLUMN %s", a->table, a->column);
    return code;
}

pl_code pl_schema_create(sqlite3 *db, const pl_schema *schema, pl_error *err)
{
    pl_code code = schema->sql != NULL ? pl_db_exec(db, schema->sql, err) : PL_OK;

    if (code == PL_OK)
        code = pl_schema_add(db, schema, 1, schema->version, err);
    return code == PL_OK && schema->views != NULL ? pl_db_exec(db, schema->views, err) : code;
}

/* ---- databases of older versions that are only read ---- */

/* Adds ", NULL AS x" for each of the n columns of a table that it lacks. */
static pl_code add_lacking(sqlite3 *db, const char *const (*doc)[4], int n, pl_text *sql, pl_error *err)
{
    pl_code code = PL_OK;

    for (int i = 0; i < n && code == PL_OK; i++) {
        int64_t has = 0;
        code = pl_db_int(db, &has, err, "SELECT count(*) FROM pragma_table_info(%Q,'main') WHERE name=%Q", doc[i][0], doc[i][1]);
        if (!has)
            pl_text_addf(sql, ", NULL AS %s", doc[i][1]);
    }
    return code;
}

/* A view in the place of the table that has all its columns; views are left alone. */
static pl_code complete_table(sqlite3 *db, const char *const (*doc)[4], int n, pl_error *err)
{
    pl_text lacking = { 0 };
    int64_t tables = 0, views = 0;
    pl_code code = pl_db_int(db, &views, err, "SELECT count(*) FROM main.sqlite_master WHERE type='view' AND name=%Q", doc[0][0]);

    if (views > 0)
        return PL_OK;
    if (code == PL_OK)
        code = pl_db_int(db, &tables, err, "SELECT count(*) FROM main.sqlite_master WHERE type='table' AND name=%Q", doc[0][0]);
    if (code == PL_OK)
        code = add_lacking(db, doc, n, &lacking, err);
    if (!pl_text_ok(&lacking))
        code = pl_fail(err, PL_ENOMEM, "the columns of an older database");
    if (code == PL_OK && lacking.len > 0)
        code = tables > 0
                   ? pl_db_execf(db, err, "CREATE TEMP VIEW \"%w\" AS SELECT *%s FROM main.\"%w\"", doc[0][0], lacking.s, doc[0][0])
                   : pl_db_execf(db, err, "CREATE TEMP VIEW \"%w\" AS SELECT %s WHERE 0", doc[0][0], lacking.s + 2);
    pl_text_free(&lacking);
    return code;
}

pl_code pl_schema_complete(sqlite3 *db, const pl_schema *schema, pl_error *err)
{
    const char *const(*doc)[4] = schema->docs;
    pl_code code = PL_OK;

    while (code == PL_OK && doc != NULL && doc[0][0] != NULL) {
        int n = 1;
        while (doc[n][0] != NULL && strcmp(doc[n][0], doc[0][0]) == 0)
            n++;
        code = complete_table(db, doc, n, err);
        doc += n;
    }
    return code;
}
