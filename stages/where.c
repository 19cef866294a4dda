/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/where.h"

#include <sqlite3.h>
#include <string.h>

#include "stages/schema.h"

const char *const st_where_columns[] = { "n_atoms", "n_heavy", "charge", "mw",    "logp",   "tpsa",
                                         "hbd",     "hba",     "rotb",   "rings", "energy", "structures",
                                         "undefined_stereo", NULL };

const char *st_where_column(const char *name)
{
    for (const char *const *c = st_where_columns; *c != NULL; c++)
        if (strcmp(*c, name) == 0)
            return *c;
    return NULL;
}

static int only_molecules(void *ctx, int action, const char *a, const char *b, const char *db, const char *source)
{
    bool *alerts = ctx;

    (void)db, (void)source;
    *alerts = *alerts || (action == SQLITE_READ && strcmp(b, "alerts") == 0);
    switch (action) {
    case SQLITE_SELECT: return SQLITE_OK;
    case SQLITE_READ: return strcmp(a, "molecule") == 0 ? SQLITE_OK : SQLITE_DENY;
    case SQLITE_FUNCTION: return strcmp(b, "load_extension") == 0 ? SQLITE_DENY : SQLITE_OK;
    default: return SQLITE_DENY;
    }
}

static pl_code try_where(sqlite3 *db, const char *expression, bool *alerts, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    const char *tail = NULL;
    char *sql = sqlite3_mprintf("SELECT 1 FROM molecule WHERE (%s\n)", expression);
    pl_code code = PL_OK;

    if (sql == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for a condition");
    if (sqlite3_exec(db, st_schema.sql, NULL, NULL, NULL) != SQLITE_OK)
        code = pl_fail(err, PL_EBUG, "the schema: %s", sqlite3_errmsg(db));
    (void)sqlite3_set_authorizer(db, only_molecules, alerts);
    if (code == PL_OK && sqlite3_prepare_v2(db, sql, -1, &st, &tail) != SQLITE_OK)
        code = pl_fail(err, PL_ECONFIG, "where: %s; it is an SQL expression over mw, logp, tpsa, hbd, hba, rotb, rings, "
                       "charge, n_heavy, n_atoms, formula, smiles, inchikey, removed, neutralised, alerts, structures, undefined_stereo", sqlite3_errmsg(db));
    else if (code == PL_OK && tail[strspn(tail, " \n\t")] != '\0')
        code = pl_fail(err, PL_ECONFIG, "where: one expression only, no \";\"");
    (void)sqlite3_finalize(st);
    sqlite3_free(sql);
    return code;
}

pl_code st_where_check(const char *expression, bool *alerts, pl_error *err)
{
    bool reads = false;
    sqlite3 *db = NULL;
    pl_code code;

    if (sqlite3_open(":memory:", &db) != SQLITE_OK)
        code = pl_fail(err, PL_ENOMEM, "no memory to check a condition");
    else
        code = try_where(db, expression, &reads, err);
    (void)sqlite3_close(db);
    if (alerts != NULL)
        *alerts = reads;
    return code;
}
