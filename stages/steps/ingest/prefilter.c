/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/ingest/prefilter.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "stages/database/descriptor_columns.h"
#include "stages/expression/expression.h"

struct st_prefilter {
    sqlite3 *db;
    sqlite3_stmt *ask;
};

#define COLUMN(name, kind, ...) { #name, ST_TYPE(kind) },
static const st_column columns[] = {
    { "inchikey", ST_STRING },   { "smiles", ST_STRING },          { "formula", ST_STRING },
    { "n_heavy", ST_WHOLE },     { "charge", ST_WHOLE },           { "removed", ST_STRING },
    { "neutralised", ST_WHOLE }, { "undefined_stereo", ST_WHOLE }, CH_DESCRIPTORS(COLUMN){ NULL, ST_ANY },
};

/* CAST, so that values compare as those of a table's columns do. */
#define VALUE(name, kind, ...) ", CAST(? AS " ST_SQL(kind) ") AS " #name
static const char values[] =
    "SELECT CAST(?1 AS TEXT) AS inchikey, CAST(?2 AS TEXT) AS smiles, CAST(?3 AS TEXT) AS formula, CAST(?4 AS INTEGER) AS n_heavy, "
    "CAST(?5 AS INTEGER) AS charge, CAST(?6 AS TEXT) AS removed, CAST(?7 AS INTEGER) AS neutralised, "
    "CAST(?8 AS INTEGER) AS undefined_stereo" CH_DESCRIPTORS(VALUE);
enum { FIRST_DESCRIPTOR = 9 };

static pl_code prepare(st_prefilter *k, const char *expression, size_t *at, pl_error *err)
{
    pl_error said = { 0 };
    pl_code code = st_expression_check(expression, columns, NULL, at, &said);
    char *sql;

    if (code != PL_OK)
        return pl_fail(err, code,
                       "keep: %s; it is an SQL expression over %s, charge, n_heavy, formula, smiles, inchikey, removed, "
                       "neutralised, undefined_stereo",
                       said.text, ST_DESCRIPTOR_LIST);
    sql = sqlite3_mprintf("SELECT 1 FROM (%s) WHERE (%s\n)", values, expression);
    if (sql == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for a condition");
    (void)sqlite3_set_authorizer(k->db, st_expression_only, NULL);
    if (sqlite3_prepare_v2(k->db, sql, -1, &k->ask, NULL) != SQLITE_OK)
        code = pl_fail(err, PL_ECONFIG, "keep: %s", sqlite3_errmsg(k->db));
    sqlite3_free(sql);
    return code;
}

pl_code st_prefilter_open(st_prefilter **out, const char *expression, size_t *at, pl_error *err)
{
    st_prefilter *k = calloc(1, sizeof *k);
    pl_code code;

    *out = k;
    if (k == NULL || sqlite3_open(":memory:", &k->db) != SQLITE_OK)
        code = pl_fail(err, PL_ENOMEM, "no memory for a condition");
    else
        code = prepare(k, expression, at, err);
    if (code != PL_OK) {
        st_prefilter_close(k);
        *out = NULL;
    }
    return code;
}

void st_prefilter_close(st_prefilter *k)
{
    if (k == NULL)
        return;
    (void)sqlite3_finalize(k->ask);
    (void)sqlite3_close(k->db);
    free(k);
}

/* Unknown values are NULL. */
static void bind(sqlite3_stmt *st, const ch_prepared *p)
{
    const char *texts[] = { p->inchikey, p->smiles, p->formula };

    (void)sqlite3_clear_bindings(st);
    for (int i = 0; i < 3; i++)
        (void)sqlite3_bind_text(st, 1 + i, texts[i], -1, SQLITE_STATIC);
    (void)sqlite3_bind_int(st, 4, p->n_heavy);
    (void)sqlite3_bind_int(st, 5, p->charge);
    if (p->removed[0] != '\0')
        (void)sqlite3_bind_text(st, 6, p->removed, -1, SQLITE_STATIC);
    if (p->n_neutralised > 0)
        (void)sqlite3_bind_int(st, 7, p->charge_read);
    (void)sqlite3_bind_int(st, 8, p->undefined_stereo);
    st_descriptors_bind(st, FIRST_DESCRIPTOR, p->descriptor);
}

pl_code st_prefilter_ask(st_prefilter *k, const ch_prepared *p, bool *yes, pl_error *err)
{
    int rc;
    pl_code code = PL_OK;

    bind(k->ask, p);
    rc = sqlite3_step(k->ask);
    *yes = rc == SQLITE_ROW;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        code = pl_fail(err, rc == SQLITE_NOMEM ? PL_ENOMEM : PL_EINPUT, "keep: %s, for %.100s", sqlite3_errmsg(k->db), p->smiles);
    (void)sqlite3_reset(k->ask);
    return code;
}
