/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/expression/row_filter.h"

#include <sqlite3.h>
#include <string.h>
#include <strings.h>

#include "stages/database/descriptor_columns.h"
#include "stages/database/schema.h"
#include "stages/expression/chemistry.h"
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

/* Of molecules that an earlier version prepared both are computed. */
#define STORED(column) "(SELECT fingerprint." column " FROM fingerprint WHERE fingerprint.mol_id=molecule.mol_id)"
static const char bits_sql[] = "coalesce(" STORED("bits") ",fingerprint(smiles))";

#define COLUMN(name, kind, ...) { #name, ST_TYPE(kind), NULL },
static const st_column columns[] = {
    { "alerts", ST_STRING, NULL },
    { "charge", ST_WHOLE, NULL },
    { "energy", ST_REAL, NULL },
    { "formula", ST_STRING, NULL },
    { "geometry", ST_STRING, NULL },
    { "inchikey", ST_STRING, NULL },
    { "mol_id", ST_WHOLE, NULL },
    { "n_atoms", ST_WHOLE, NULL },
    { "n_heavy", ST_WHOLE, NULL },
    { "neutralised", ST_WHOLE, NULL },
    { "removed", ST_STRING, NULL },
    { "scaffold", ST_STRING, "coalesce(" STORED("scaffold") ",scaffold(smiles))" },
    { "smiles", ST_STRING, NULL },
    { "structures", ST_WHOLE, NULL },
    { "undefined_stereo", ST_WHOLE, NULL },
    CH_DESCRIPTORS(COLUMN){ NULL, ST_ANY, NULL },
};
enum { ALERTS = 0, ENERGY = 2, STRUCTURES = 13 }; /* their places above */

/* Bit i of *used: it reads column i. */
static pl_code parse(const char *expression, st_structural *found, uint64_t *used, size_t *at, pl_error *err)
{
    pl_error said = { 0 };
    pl_code code;

    *found = (st_structural){ .smiles = "smiles", .bits = bits_sql };
    code = st_expression_parse(expression, columns, found, used, at, &said);
    if (code != PL_OK)
        return pl_fail(err, code,
                       "where: %s; it is an SQL expression over %s, charge, n_heavy, n_atoms, formula, smiles, inchikey, scaffold, "
                       "removed, neutralised, alerts, structures, undefined_stereo",
                       said.text, ST_DESCRIPTOR_LIST);
    return PL_OK;
}

/* SQLite's own look at it: this build may lack a function. */
static pl_code prepare(sqlite3 *db, const char *expression, bool functions, pl_error *err)
{
    static char table[] = "molecule";
    sqlite3_stmt *st = NULL;
    char *sql = sqlite3_mprintf("SELECT 1 FROM molecule WHERE (%s\n)", expression);
    pl_code code = PL_OK;

    if (sql == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for a condition");
    code = pl_schema_create(db, &st_schema, err);
    if (code == PL_OK && functions)
        code = st_chemistry_add(db, NULL, err);
    (void)sqlite3_set_authorizer(db, st_expression_only, table);
    if (code == PL_OK && sqlite3_prepare_v2(db, sql, -1, &st, NULL) != SQLITE_OK)
        code = pl_fail(err, PL_ECONFIG, "where: %s", sqlite3_errmsg(db));
    (void)sqlite3_finalize(st);
    sqlite3_free(sql);
    return code;
}

static pl_code check(const char *expression, const st_structural *found, size_t *at, pl_arena *mem, pl_error *err)
{
    const char *sql = st_expression_sql(expression, found, mem);
    sqlite3 *db = NULL;
    pl_error said = { 0 };
    pl_code code = st_structural_check(expression, found, at, &said);

    if (code != PL_OK)
        return pl_fail(err, code, "where: %s", said.text);
    if (sql == NULL || sqlite3_open(":memory:", &db) != SQLITE_OK)
        code = pl_fail(err, PL_ENOMEM, "no memory to check a condition");
    else
        code = prepare(db, sql, found->n_edits > 0, err);
    (void)sqlite3_close(db);
    return code;
}

static bool is_read(uint64_t used, int column) { return (used >> column & 1) != 0; }

pl_code st_row_filter_check(const char *expression, st_row_reads *reads, size_t *at, pl_error *err)
{
    pl_arena *mem = pl_arena_new(1 << 12);
    st_structural found;
    uint64_t used = 0;
    pl_code code =
        mem != NULL ? parse(expression, &found, &used, at, err) : pl_fail(err, PL_ENOMEM, "no memory to check a condition");

    if (code == PL_OK)
        code = check(expression, &found, at, mem, err);
    if (code != PL_OK)
        used = 0;
    if (reads != NULL)
        *reads = (st_row_reads){ is_read(used, ALERTS), is_read(used, ENERGY), is_read(used, STRUCTURES) };
    pl_arena_free(mem);
    return code;
}

/* ---- a column and a property of one name ---- */

static pl_code fail_ambiguous(const char *name, pl_error *err)
{
    return pl_fail(err, PL_ECONFIG,
                   "where: %s has two meanings here: the column of each molecule, and the property of this name that is scored; "
                   "give the property another name, or bound it in rank.constraints",
                   name);
}

pl_code st_row_filter_ambiguous(const char *expression, const char *property, pl_error *err)
{
    st_structural found;
    uint64_t used = 0;
    pl_code code = parse(expression, &found, &used, NULL, err);

    for (int i = 0; columns[i].name != NULL; i++)
        if (is_read(used, i) && strcasecmp(columns[i].name, property) == 0)
            code = fail_ambiguous(columns[i].name, err);
    return code;
}

/* Whether a query has a row. name: its parameter, or NULL if it has none. */
static pl_code has_row(bool *yes, sqlite3 *db, const char *sql, const char *name, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);

    if (rc == SQLITE_OK && name != NULL)
        rc = sqlite3_bind_text(st, 1, name, -1, SQLITE_STATIC);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(st);
    *yes = rc == SQLITE_ROW;
    (void)sqlite3_finalize(st);
    if (rc == SQLITE_ROW || rc == SQLITE_DONE)
        return PL_OK;
    return pl_fail(err, (rc & 0xff) == SQLITE_NOMEM ? PL_ENOMEM : PL_EIO, "where: %s", sqlite3_errmsg(db));
}

/* st_row_filter_ambiguous, of the properties that are scored in db; as rank knows them, with or without their unit. */
static pl_code check_scored(sqlite3 *db, uint64_t used, pl_error *err)
{
    static const char sql[] = "SELECT 1 FROM property p WHERE lower(name) IN (?1, lower(?1||' ('||coalesce(nullif(unit,''),'model')"
                              "||')')) AND EXISTS(SELECT 1 FROM score s WHERE s.property_id=p.property_id)";
    pl_code code = PL_OK;

    for (int i = 0; columns[i].name != NULL && code == PL_OK; i++) {
        bool yes = false;
        if (is_read(used, i))
            code = has_row(&yes, db, sql, columns[i].name, err);
        if (yes)
            code = fail_ambiguous(columns[i].name, err);
    }
    return code;
}

/* A comparison with NULL holds for no molecule. */
static pl_code check_filled(sqlite3 *db, uint64_t used, pl_error *err)
{
    static const struct {
        int column;
        const char *sql, *why;
    } may_be_empty[] = {
#define EMPTY(name) \
    "SELECT 1 WHERE EXISTS(SELECT 1 FROM molecule) AND NOT EXISTS(SELECT 1 FROM molecule WHERE " name " IS NOT NULL)"
        { ALERTS, EMPTY("alerts"), "alerts are NULL, as the run did not look for any; set stages.prepare.alerts and run it again" },
        { ENERGY, EMPTY("energy"),
          "the energy of every molecule is NULL, as the run built no structures; set stages.prepare.conformers.source: generate and "
          "run it again" },
        { STRUCTURES, EMPTY("structures"),
          "the structures of every molecule are NULL, as the run built none; set stages.prepare.conformers.source: generate and run it "
          "again" },
    };

    for (size_t i = 0; i < sizeof may_be_empty / sizeof *may_be_empty; i++) {
        bool empty = false;
        pl_code code = is_read(used, may_be_empty[i].column) ? has_row(&empty, db, may_be_empty[i].sql, NULL, err) : PL_OK;
        if (code != PL_OK)
            return code;
        if (empty)
            return pl_fail(err, PL_ECONFIG, "where: %s", may_be_empty[i].why);
    }
    return PL_OK;
}

pl_code st_row_filter_sql(const char **sql, const char *expression, sqlite3 *db, bool *functions, pl_arena *mem, pl_error *err)
{
    st_structural found;
    uint64_t used = 0;
    pl_code code = parse(expression, &found, &used, NULL, err);

    if (code == PL_OK)
        code = check_scored(db, used, err);
    if (code == PL_OK)
        code = check_filled(db, used, err);
    if (code != PL_OK)
        return code;
    *functions = found.n_edits > 0;
    *sql = st_expression_sql(expression, &found, mem);
    return *sql != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "no memory for a condition");
}
