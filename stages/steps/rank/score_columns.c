/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/rank/score_columns.h"

#include <stdio.h>
#include <string.h>

#include "pipeline/store/store.h"
#include "stages/steps/rank/table_columns.h"

/* "logS (log10(mol/L))"; of one that is called as a column of molecules "logp_predicted", as in tables that are files. */
static void add_head(pl_text *sql, const char *name, const char *unit)
{
    const size_t n = strlen(name), n_unit = strlen(unit);
    const bool has =
        n_unit > 0 && n > n_unit + 3 && strcmp(name + n - 1, ")") == 0 && strncmp(name + n - n_unit - 1, unit, n_unit) == 0;
    pl_text head = { 0 };

    pl_text_add(&head, name);
    if (st_table_column_is_ours(name))
        pl_text_add(&head, "_predicted");
    if (unit[0] != '\0' && strcmp(unit, "1") != 0 && !has)
        pl_text_addf(&head, " (%s)", unit);
    pl_text_add(sql, " AS \"");
    for (const char *c = pl_text_str(&head); *c != '\0'; c++)
        pl_text_add_n(sql, *c == '"' ? "\"\"" : c, *c == '"' ? 2 : 1);
    pl_text_add(sql, "\"");
    pl_text_depend(sql, &head);
    pl_text_free(&head);
}

static void add_property(pl_text *sql, sqlite3_stmt *st, bool page)
{
    static const char value[] = ", (SELECT x.%s FROM score x WHERE x.property_id=%lld AND x.mol_id=m.mol_id)";
    const long long id = (long long)sqlite3_column_int64(st, 0);

    pl_text_addf(sql, value, "mean", id);
    add_head(sql, (const char *)sqlite3_column_text(st, 1), (const char *)sqlite3_column_text(st, 2));
    if (sqlite3_column_int(st, 3)) {
        pl_text_addf(sql, value, "interval90", id);
        pl_text_add(sql, page ? " AS \"\xc2\xb1\xc2\xa0"
                                "90\xc2\xa0%\""
                              : " AS \"+-90%\"");
    }
}

static pl_code add_properties(sqlite3 *db, const char *shown, bool page, pl_text *sql, pl_error *err)
{
    pl_text query = { 0 };
    sqlite3_stmt *st = NULL;
    pl_code code = PL_OK;

    pl_text_addf(
        &query,
        "SELECT property_id, name, unit, EXISTS(SELECT 1 FROM %s h JOIN score s USING(mol_id) WHERE "
        "s.property_id=p.property_id AND s.interval90 IS NOT NULL) FROM property p WHERE EXISTS(SELECT 1 FROM score s WHERE "
        "s.property_id=p.property_id) ORDER BY name",
        shown);
    code = pl_text_ok(&query) ? pl_db_prepare(db, &st, pl_text_str(&query), err) : pl_fail(err, PL_ENOMEM, "out of memory");
    pl_text_free(&query);
    while (pl_db_next(st, &code, err))
        add_property(sql, st, page);
    (void)sqlite3_finalize(st);
    return code;
}

/* Columns that are there if one that is shown has something to say in them: what, and the query that asks. */
static const struct {
    const char *column, *there, *page; /* page: NULL: as elsewhere, "": not there; column: NULL: only on a page */
} sometimes[] = {
    { "h.objective",
      "SELECT 1 FROM %s h WHERE h.objective IS NOT NULL AND NOT EXISTS(SELECT 1 FROM score s WHERE s.mol_id=h.mol_id AND "
      "abs(s.mean)=abs(h.objective))",
      NULL },
    { "(SELECT min(x.similarity) FROM score x WHERE x.mol_id=m.mol_id) AS similarity",
      "SELECT 1 FROM %s h JOIN score s USING(mol_id) WHERE s.similarity IS NOT NULL", NULL },
    { "(SELECT CASE WHEN sum(x.domain='outside') THEN 'outside' ELSE min(x.domain) END FROM score x WHERE x.mol_id=m.mol_id) AS domain",
      "SELECT 1 FROM %s h JOIN score s USING(mol_id) WHERE s.domain='outside'",
      "(SELECT group_concat(DISTINCT CASE WHEN x.domain='outside' THEN 'outside: '||x.reasons ELSE x.domain END) FROM score x "
      "WHERE x.mol_id=m.mol_id) AS domain" },
    { "h.front", "SELECT 1 FROM %s h WHERE h.front IS NOT NULL", NULL },
    { "h.cluster", "SELECT 1 FROM %s h WHERE h.cluster IS NOT NULL", "" }, /* a page has the scaffold */
    { "h.n_similar AS \"similar ones\"", "SELECT 1 FROM %s h WHERE h.n_similar IS NOT NULL", NULL },
    { "nullif(m.alerts,'') AS alerts", "SELECT 1 FROM %s h JOIN molecule USING(mol_id) WHERE alerts<>''", NULL },
    { NULL, "SELECT 1 FROM %s h JOIN molecule USING(mol_id) WHERE undefined_stereo>0",
      "nullif(m.undefined_stereo,0) AS \"undefined stereo\"" },
};

static pl_code add_sometimes(sqlite3 *db, const char *shown, bool page, pl_text *sql, pl_error *err)
{
    pl_code code = PL_OK;

    for (size_t i = 0; i < sizeof sometimes / sizeof *sometimes && code == PL_OK; i++) {
        const char *column = page && sometimes[i].page != NULL ? sometimes[i].page : sometimes[i].column;
        pl_text there = { 0 };
        int64_t has = 0;
        pl_text_addf(&there, sometimes[i].there, shown);
        code = pl_text_ok(&there) ? pl_db_int(db, &has, err, "SELECT EXISTS(%s)", pl_text_str(&there))
                                  : pl_fail(err, PL_ENOMEM, "out of memory");
        pl_text_free(&there);
        if (has && column != NULL && column[0] != '\0')
            pl_text_addf(sql, ", %s", column);
    }
    return code;
}

pl_code st_score_columns(sqlite3 *db, const char *shown, bool page, pl_text *sql, pl_error *err)
{
    pl_code code = add_properties(db, shown, page, sql, err);
    return code == PL_OK ? add_sometimes(db, shown, page, sql, err) : code;
}

pl_code st_score_columns_of_hits(sqlite3 *db, int64_t n, bool page, pl_text *sql, pl_error *err)
{
    char shown[64];

    (void)snprintf(shown, sizeof shown, "(SELECT * FROM hit WHERE rank<=%lld)", (long long)n);
    return st_score_columns(db, shown, page, sql, err);
}
