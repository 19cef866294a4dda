/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/keep.h"

#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

struct st_keep {
    sqlite3 *db;
    sqlite3_stmt *ask;
};

static const char columns[] =
    "SELECT ?1 AS inchikey, ?2 AS smiles, ?3 AS formula, ?4 AS n_heavy, ?5 AS charge, ?6 AS mw, ?7 AS logp, ?8 AS tpsa, ?9 AS hbd, "
    "?10 AS hba, ?11 AS rotb, ?12 AS rings, ?13 AS removed, ?14 AS neutralised, ?15 AS undefined_stereo";

/* Nothing is there to be read, and chance must not decide. */
static int only_columns(void *ctx, int action, const char *a, const char *b, const char *db, const char *source)
{
    (void)ctx, (void)a, (void)db, (void)source;
    if (action == SQLITE_FUNCTION)
        return strcmp(b, "load_extension") == 0 || strncmp(b, "random", 6) == 0 ? SQLITE_DENY : SQLITE_OK;
    return action == SQLITE_SELECT || action == SQLITE_READ ? SQLITE_OK : SQLITE_DENY;
}

static pl_code prepare(st_keep *k, const char *expression, pl_error *err)
{
    const char *tail = "";
    char *sql = sqlite3_mprintf("SELECT 1 FROM (%s) WHERE (%s\n)", columns, expression);
    pl_code code = PL_OK;

    if (sql == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for a condition");
    (void)sqlite3_set_authorizer(k->db, only_columns, NULL);
    if (sqlite3_prepare_v2(k->db, sql, -1, &k->ask, &tail) != SQLITE_OK)
        code = pl_fail(err, PL_ECONFIG, "keep: %s; it is an SQL expression over mw, logp, tpsa, hbd, hba, rotb, rings, charge, "
                       "n_heavy, formula, smiles, inchikey, removed, neutralised, undefined_stereo", sqlite3_errmsg(k->db));
    else if (tail[strspn(tail, " \n\t")] != '\0' || sqlite3_bind_parameter_count(k->ask) != 15)
        code = pl_fail(err, PL_ECONFIG, "keep: one expression only, no \";\" and no parameters");
    sqlite3_free(sql);
    return code;
}

pl_code st_keep_open(st_keep **out, const char *expression, pl_error *err)
{
    st_keep *k = calloc(1, sizeof *k);
    pl_code code;

    *out = k;
    if (k == NULL || sqlite3_open(":memory:", &k->db) != SQLITE_OK)
        code = pl_fail(err, PL_ENOMEM, "no memory for a condition");
    else
        code = prepare(k, expression, err);
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

/* What is unknown is NULL. */
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
