/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/expression/row_filter.h"

#include <sqlite3.h>
#include <string.h>

#include "stages/database/descriptor_columns.h"
#include "stages/database/schema.h"
#include "stages/expression/expression.h"

#define NAME(name, ...) #name,
const char *const st_row_filter_columns[] = { "n_atoms",    "n_heavy",          "charge", CH_DESCRIPTORS(NAME) "energy",
                                              "structures", "undefined_stereo", NULL };

const char *st_row_filter_column(const char *name)
{
    for (const char *const *c = st_row_filter_columns; *c != NULL; c++)
        if (strcmp(*c, name) == 0)
            return *c;
    return NULL;
}

#define COLUMN(name, kind, ...) { #name, ST_TYPE(kind) },
static const st_column columns[] = {
    { "alerts", ST_STRING },     { "charge", ST_WHOLE },           { "energy", ST_REAL },
    { "formula", ST_STRING },    { "geometry", ST_STRING },        { "inchikey", ST_STRING },
    { "mol_id", ST_WHOLE },      { "n_atoms", ST_WHOLE },          { "n_heavy", ST_WHOLE },
    { "neutralised", ST_WHOLE }, { "removed", ST_STRING },         { "smiles", ST_STRING },
    { "structures", ST_WHOLE },  { "undefined_stereo", ST_WHOLE }, CH_DESCRIPTORS(COLUMN){ NULL, ST_ANY },
};
enum { ALERTS = 0 }; /* its place above */

/* SQLite's own look at it: this build may lack a function. */
static pl_code prepare(sqlite3 *db, const char *expression, pl_error *err)
{
    static char table[] = "molecule";
    sqlite3_stmt *st = NULL;
    char *sql = sqlite3_mprintf("SELECT 1 FROM molecule WHERE (%s\n)", expression);
    pl_code code = PL_OK;

    if (sql == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for a condition");
    code = pl_schema_create(db, &st_schema, err);
    (void)sqlite3_set_authorizer(db, st_expression_only, table);
    if (code == PL_OK && sqlite3_prepare_v2(db, sql, -1, &st, NULL) != SQLITE_OK)
        code = pl_fail(err, PL_ECONFIG, "where: %s", sqlite3_errmsg(db));
    (void)sqlite3_finalize(st);
    sqlite3_free(sql);
    return code;
}

static pl_code parse(const char *expression, bool *alerts, size_t *at, pl_error *err)
{
    uint64_t used = 0;
    pl_error said = { 0 };
    pl_code code = st_expression_check(expression, columns, &used, at, &said);

    if (code != PL_OK)
        return pl_fail(err, code,
                       "where: %s; it is an SQL expression over %s, charge, n_heavy, n_atoms, formula, smiles, inchikey, "
                       "removed, neutralised, alerts, structures, undefined_stereo",
                       said.text, ST_DESCRIPTOR_LIST);
    if (alerts != NULL)
        *alerts = used >> ALERTS & 1;
    return PL_OK;
}

pl_code st_row_filter_check(const char *expression, bool *alerts, size_t *at, pl_error *err)
{
    sqlite3 *db = NULL;
    pl_code code = parse(expression, alerts, at, err);

    if (code != PL_OK)
        return code;
    if (sqlite3_open(":memory:", &db) != SQLITE_OK)
        code = pl_fail(err, PL_ENOMEM, "no memory to check a condition");
    else
        code = prepare(db, expression, err);
    (void)sqlite3_close(db);
    return code;
}
