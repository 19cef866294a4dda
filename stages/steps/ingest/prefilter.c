/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/ingest/prefilter.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "stages/database/descriptor_columns.h"
#include "stages/expression/chemistry.h"
#include "stages/expression/expression.h"
#include "stages/steps/ingest/fingerprints.h"

struct st_prefilter {
    sqlite3 *db;
    sqlite3_stmt *ask;
    bool structural; /* it reads fingerprints, scaffolds or patterns */
    pl_arena *mem;   /* of the molecule that is asked about          */
};

#define COLUMN(name, kind, ...) { #name, ST_TYPE(kind), NULL },
static const st_column columns[] = {
    { "inchikey", ST_STRING, NULL },
    { "smiles", ST_STRING, NULL },
    { "scaffold", ST_STRING, "coalesce(scaffold,scaffold(smiles))" },
    { "formula", ST_STRING, NULL },
    { "n_heavy", ST_WHOLE, NULL },
    { "charge", ST_WHOLE, NULL },
    { "removed", ST_STRING, NULL },
    { "neutralised", ST_WHOLE, NULL },
    { "undefined_stereo", ST_WHOLE, NULL },
    CH_DESCRIPTORS(COLUMN){ NULL, ST_ANY, NULL },
};

/* CAST, so that values compare as those of a table's columns do. */
#define VALUE(name, kind, ...) ", CAST(? AS " ST_SQL(kind) ") AS " #name
static const char values[] =
    "SELECT CAST(?1 AS TEXT) AS inchikey, CAST(?2 AS TEXT) AS smiles, CAST(?3 AS TEXT) AS formula, CAST(?4 AS INTEGER) AS n_heavy, "
    "CAST(?5 AS INTEGER) AS charge, CAST(?6 AS TEXT) AS removed, CAST(?7 AS INTEGER) AS neutralised, "
    "CAST(?8 AS INTEGER) AS undefined_stereo, ?9 AS bits, ?10 AS scaffold" CH_DESCRIPTORS(VALUE);
enum { FIRST_DESCRIPTOR = 11 };

static pl_code parse(st_prefilter *k, const char *expression, st_structural *found, size_t *at, pl_error *err)
{
    pl_error said = { 0 };
    pl_code code;

    *found = (st_structural){ .smiles = "smiles", .bits = "coalesce(bits,fingerprint(smiles))" };
    code = st_expression_parse(expression, columns, found, NULL, at, &said);
    if (code != PL_OK)
        return pl_fail(err, code,
                       "keep: %s; it is an SQL expression over %s, charge, n_heavy, formula, smiles, inchikey, scaffold, removed, "
                       "neutralised, undefined_stereo",
                       said.text, ST_DESCRIPTOR_LIST);
    k->structural = found->n_edits > 0;
    code = st_structural_check(expression, found, at, &said);
    if (code == PL_OK && k->structural)
        code = st_chemistry_add(k->db, NULL, &said);
    return code == PL_OK ? PL_OK : pl_fail(err, code, "keep: %s", said.text);
}

static pl_code prepare(st_prefilter *k, const char *expression, size_t *at, pl_arena *mem, pl_error *err)
{
    st_structural found;
    const char *condition;
    char *sql;
    pl_code code = parse(k, expression, &found, at, err);

    if (code != PL_OK)
        return code;
    condition = st_expression_sql(expression, &found, mem);
    sql = condition != NULL ? sqlite3_mprintf("SELECT 1 FROM (%s) WHERE (%s\n)", values, condition) : NULL;
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
    pl_arena *mem = pl_arena_new(1 << 12);
    pl_code code;

    *out = k;
    if (k == NULL || mem == NULL || sqlite3_open(":memory:", &k->db) != SQLITE_OK)
        code = pl_fail(err, PL_ENOMEM, "no memory for a condition");
    else
        code = prepare(k, expression, at, mem, err);
    pl_arena_free(mem);
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
    pl_arena_free(k->mem);
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

/* Where the worker has sent the atoms; else the functions read the SMILES again. */
static pl_code bind_structure(st_prefilter *k, const ch_prepared *p, pl_error *err)
{
    static const char nothing[] = "";
    st_print *print = NULL;
    pl_code code;

    if (k->mem == NULL)
        k->mem = pl_arena_new(1 << 16);
    if (k->mem == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for a condition");
    pl_arena_reset(k->mem);
    code = st_prints_make(&print, p, 1, k->mem, NULL, err);
    if (code != PL_OK)
        return code;
    (void)sqlite3_bind_blob(k->ask, 9, print->bits, sizeof print->bits, SQLITE_STATIC);
    (void)sqlite3_bind_text(k->ask, 10, print->scaffold != NULL ? print->scaffold : nothing, -1, SQLITE_STATIC);
    return PL_OK;
}

static pl_code code_of(int rc)
{
    if (rc == SQLITE_NOMEM)
        return PL_ENOMEM;
    return (rc & 0xff) == SQLITE_IOERR ? PL_EIO : PL_EINPUT;
}

pl_code st_prefilter_ask(st_prefilter *k, const ch_prepared *p, bool *yes, pl_error *err)
{
    int rc;
    pl_code code = PL_OK;

    bind(k->ask, p);
    if (k->structural && p->mol.n_atoms > 0)
        code = bind_structure(k, p, err);
    if (code != PL_OK)
        return code;
    rc = sqlite3_step(k->ask);
    *yes = rc == SQLITE_ROW;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        code = pl_fail(err, code_of(rc), "keep: %s, for %.100s", sqlite3_errmsg(k->db), p->smiles);
    (void)sqlite3_reset(k->ask);
    return code;
}
