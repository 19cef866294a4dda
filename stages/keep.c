/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/keep.h"

#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "stages/expression.h"

struct st_keep {
    sqlite3 *db;
    sqlite3_stmt *ask;
};

static const st_column columns[] = {
    { "inchikey", ST_STRING }, { "smiles", ST_STRING }, { "formula", ST_STRING }, { "n_heavy", ST_WHOLE }, { "charge", ST_WHOLE },
    { "mw", ST_REAL },         { "logp", ST_REAL },     { "tpsa", ST_REAL },      { "hbd", ST_WHOLE },     { "hba", ST_WHOLE },
    { "rotb", ST_WHOLE },      { "rings", ST_WHOLE },   { "removed", ST_STRING }, { "neutralised", ST_WHOLE },
    { "undefined_stereo", ST_WHOLE }, { NULL, ST_ANY },
};

/* CAST, so that values compare as those of a table's columns do. */
static const char values[] =
    "SELECT CAST(?1 AS TEXT) AS inchikey, CAST(?2 AS TEXT) AS smiles, CAST(?3 AS TEXT) AS formula, CAST(?4 AS INTEGER) AS n_heavy, "
    "CAST(?5 AS INTEGER) AS charge, CAST(?6 AS REAL) AS mw, CAST(?7 AS REAL) AS logp, CAST(?8 AS REAL) AS tpsa, CAST(?9 AS INTEGER) AS hbd, "
    "CAST(?10 AS INTEGER) AS hba, CAST(?11 AS INTEGER) AS rotb, CAST(?12 AS INTEGER) AS rings, CAST(?13 AS TEXT) AS removed, "
    "CAST(?14 AS INTEGER) AS neutralised, CAST(?15 AS INTEGER) AS undefined_stereo";

static pl_code prepare(st_keep *k, const char *expression, size_t *at, pl_error *err)
{
    pl_error said = { 0 };
    pl_code code = st_expression_check(expression, columns, NULL, at, &said);
    char *sql;

    if (code != PL_OK)
        return pl_fail(err, code, "keep: %s; it is an SQL expression over mw, logp, tpsa, hbd, hba, rotb, rings, charge, "
                       "n_heavy, formula, smiles, inchikey, removed, neutralised, undefined_stereo", said.text);
    sql = sqlite3_mprintf("SELECT 1 FROM (%s) WHERE (%s\n)", values, expression);
    if (sql == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for a condition");
    (void)sqlite3_set_authorizer(k->db, st_expression_only, NULL);
    if (sqlite3_prepare_v2(k->db, sql, -1, &k->ask, NULL) != SQLITE_OK)
        code = pl_fail(err, PL_ECONFIG, "keep: %s", sqlite3_errmsg(k->db));
    sqlite3_free(sql);
    return code;
}

pl_code st_keep_open(st_keep **out, const char *expression, size_t *at, pl_error *err)
{
    st_keep *k = calloc(1, sizeof *k);
    pl_code code;

    *out = k;
    if (k == NULL || sqlite3_open(":memory:", &k->db) != SQLITE_OK)
        code = pl_fail(err, PL_ENOMEM, "no memory for a condition");
    else
        code = prepare(k, expression, at, err);
    if (code != PL_OK) {
        st_keep_close(k);
        *out = NULL;
    }
    return code;
}

void st_keep_close(st_keep *k)
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
    const double reals[] = { p->mw, p->logp, p->tpsa };
    const int32_t ints[] = { p->hbd, p->hba, p->rotors, p->rings };

    (void)sqlite3_clear_bindings(st);
    for (int i = 0; i < 3; i++)
        (void)sqlite3_bind_text(st, 1 + i, texts[i], -1, SQLITE_STATIC);
    (void)sqlite3_bind_int(st, 4, p->n_heavy);
    (void)sqlite3_bind_int(st, 5, p->charge);
    for (int i = 0; i < 3; i++)
        if (isfinite(reals[i]))
            (void)sqlite3_bind_double(st, 6 + i, reals[i]);
    for (int i = 0; i < 4; i++)
        (void)sqlite3_bind_int(st, 9 + i, ints[i]);
    if (p->removed[0] != '\0')
        (void)sqlite3_bind_text(st, 13, p->removed, -1, SQLITE_STATIC);
    if (p->n_neutralised > 0)
        (void)sqlite3_bind_int(st, 14, p->charge_read);
    (void)sqlite3_bind_int(st, 15, p->undefined_stereo);
}

pl_code st_keep_ask(st_keep *k, const ch_prepared *p, bool *yes, pl_error *err)
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
