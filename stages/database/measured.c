/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/database/measured.h"

#include <string.h>
#include <unistd.h>

#include "pipeline/base/sha256.h"
#include "stages/database/schema.h"

/* ---- rows ---- */

pl_code st_measured_put(pl_store *s, const st_measured *m, pl_error *err)
{
    const char *const text[] = { m->property, m->inchikey, m->unit, m->is_class ? "classification" : "regression", m->source };
    sqlite3_stmt *st = NULL;
    pl_code code = pl_db_prepare(
        s->db, &st, "INSERT OR REPLACE INTO measured(property,inchikey,unit,task,source,value,round) VALUES(?,?,?,?,?,?,?)", err);

    if (code != PL_OK)
        return code;
    for (int k = 0; k < 5; k++)
        (void)sqlite3_bind_text(st, k + 1, text[k], -1, SQLITE_STATIC);
    (void)sqlite3_bind_double(st, 6, m->value);
    (void)sqlite3_bind_int64(st, 7, m->round);
    code = pl_db_run(st, err);
    (void)sqlite3_finalize(st);
    return code;
}

/* The library may have got such labels of its own, in another unit. */
static pl_code units_check(pl_store *s, pl_error *err)
{
    static const char sql[] =
        "SELECT p.name, x.unit, p.unit FROM measured x JOIN property p ON p.name=x.property AND p.unit<>x.unit "
        "WHERE x.unit<>'' AND p.unit<>'' AND EXISTS(SELECT 1 FROM label l WHERE l.property_id=p.property_id) LIMIT 1";
    sqlite3_stmt *st = NULL;
    pl_code code = pl_db_prepare(s->db, &st, sql, err);

    if (pl_db_next(st, &code, err))
        code = pl_fail(
            err, PL_EINPUT,
            "%s: labels were added in the unit '%s' (`molsieve label`), and the library now has it in '%s'; set the unit in "
            "stages.prepare.properties",
            (const char *)sqlite3_column_text(st, 0), (const char *)sqlite3_column_text(st, 1),
            (const char *)sqlite3_column_text(st, 2));
    (void)sqlite3_finalize(st);
    return code;
}

/* A model's property of that name and another unit gets a name of its own, as where labels come first. */
static const char apply_sql[] =
    "UPDATE property SET name=name||' ('||coalesce(nullif(unit,''),'model')||')' WHERE EXISTS(SELECT 1 FROM measured x WHERE "
    "x.property=property.name AND x.unit<>'' AND property.unit<>'' AND x.unit<>property.unit);"
    "INSERT INTO property(name,unit,task,better) SELECT property, min(unit), min(task), 'none' FROM measured WHERE property NOT IN "
    "(SELECT name FROM property) GROUP BY property ORDER BY property;"
    "INSERT OR REPLACE INTO label(mol_id,property_id,value,n_measurements,spread) SELECT m.mol_id, p.property_id, x.value, 1, 0 FROM "
    "measured x CROSS JOIN molecule m ON m.inchikey=x.inchikey JOIN property p ON p.name=x.property;"
    "INSERT OR REPLACE INTO label(mol_id,property_id,value,n_measurements,spread) SELECT m.mol_id, p.property_id, x.value, 1, 0 FROM "
    "molecule m CROSS JOIN measured x ON x.inchikey=m.smiles JOIN property p ON p.name=x.property WHERE m.inchikey=''";

pl_code st_measured_apply(pl_store *s, pl_error *err)
{
    int64_t any = 0;
    pl_code code = pl_db_int(s->db, &any, err, "SELECT EXISTS(SELECT 1 FROM measured)");

    if (code != PL_OK || !any)
        return code;
    code = units_check(s, err);
    return code == PL_OK ? pl_db_exec(s->db, apply_sql, err) : code;
}

/* ---- keys ---- */

/* Adds the rows of one property, or of all, to the hash. */
static pl_code rows_add(pl_sha256 *sha, pl_store *store, const char *property, int64_t *n, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    pl_code code =
        pl_db_prepare(store->db, &st,
                      "SELECT property, inchikey, quote(value), unit, task FROM measured WHERE ?1 IS NULL OR property=?1 OR "
                      "property=?1||' at least' OR property=?1||' at most' ORDER BY property, inchikey",
                      err);

    if (code == PL_OK)
        (void)sqlite3_bind_text(st, 1, property, -1, SQLITE_STATIC);
    while (pl_db_next(st, &code, err)) {
        for (int k = 0; k < 5; k++)
            pl_sha256_add_str(sha, (const char *)sqlite3_column_text(st, k));
        ++*n;
    }
    (void)sqlite3_finalize(st);
    return code;
}

pl_code st_measured_hash(const char **out, pl_store *store, const char *const *property, int n, pl_arena *mem, pl_error *err)
{
    pl_sha256 sha;
    char hex[65];
    int64_t rows = 0;
    pl_code code = PL_OK;

    *out = NULL;
    pl_sha256_start(&sha);
    if (property == NULL && store != NULL)
        code = rows_add(&sha, store, NULL, &rows, err);
    for (int k = 0; k < n && store != NULL && code == PL_OK; k++)
        code = rows_add(&sha, store, property[k], &rows, err);
    if (code != PL_OK || rows == 0)
        return code;
    pl_sha256_hex(&sha, hex);
    *out = pl_strdup(mem, hex);
    return *out != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "a key");
}

pl_code st_measured_key(const char **extra, pl_store *store, const char *const *property, int n, pl_arena *mem, pl_error *err)
{
    const char *hash = NULL;
    const size_t len = *extra != NULL ? strlen(*extra) : 0;
    pl_code code = st_measured_hash(&hash, store, property, n, mem, err);

    if (code != PL_OK || hash == NULL)
        return code;
    if (len > 2)
        *extra = pl_sprintf(mem, "%.*s,\"labels\":\"%s\"}", (int)len - 1, *extra, hash);
    else
        *extra = pl_sprintf(mem, "{\"labels\":\"%s\"}", hash);
    return *extra != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "a key");
}

/* ---- before a run ---- */

bool st_measured_has(const pl_workflow *wf, const char *property)
{
    pl_store *s = NULL;
    int64_t any = 0;

    if (access(wf->storage.results, F_OK) == 0 && pl_store_open_read(&s, wf->storage.results, &st_schema, NULL) == PL_OK)
        (void)pl_db_int(s->db, &any, NULL, "SELECT EXISTS(SELECT 1 FROM measured WHERE property=%Q)", property);
    pl_store_close(s);
    return any != 0;
}

pl_code st_measured_unit(char unit[ST_UNIT_MAX], bool *by_table, const pl_workflow *wf, const char *property, pl_error *err)
{
    pl_store *s = NULL;
    pl_code code;

    unit[0] = '\0';
    *by_table = false;
    if (access(wf->storage.results, F_OK) != 0)
        return PL_OK;
    code = pl_store_open_read(&s, wf->storage.results, &st_schema, err);
    if (code != PL_OK) /* what is no results.db, or one of another version, is told by others */
        return code == PL_EIO || code == PL_ENOMEM ? code : PL_OK;
    code = pl_db_text(s->db, unit, ST_UNIT_MAX, err, "SELECT unit FROM measured WHERE property=%Q AND unit<>'' LIMIT 1", property);
    *by_table = unit[0] == '\0';
    if (code == PL_OK && *by_table)
        code = pl_db_text(s->db, unit, ST_UNIT_MAX, err,
                          "SELECT json_extract(value,'$.text') FROM meta WHERE key='" ST_STATED_UNIT
                          "'||%Q AND NOT json_extract(value,'$.logarithm')",
                          property);
    pl_store_close(s);
    return code;
}
