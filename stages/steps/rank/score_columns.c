/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/rank/score_columns.h"

#include <string.h>

#include "pipeline/store/store.h"
#include "stages/database/descriptor_columns.h"
#include "stages/steps/ingest/alerts.h"

bool st_column_is_ours(const char *name)
{
    static const char *const ours[] = { "rank",      "title",      "inchikey", "smiles",          "formula",           "objective",
                                        "n_heavy",   "charge (e)", "removed",  "geometry",        "energy (kcal/mol)", "cluster",
                                        "n_similar", "front",      "alerts",   "undefined_stereo" };
    bool found = false;

    for (size_t i = 0; i < sizeof ours / sizeof *ours && !found; i++)
        found = strcmp(ours[i], name) == 0;
    return found || st_descriptor_is(name);
}

static void column_add(pl_text *sql, int *n, const char *column)
{
    pl_text_addf(sql, ", %s", column);
    if (n != NULL)
        ++*n;
}

pl_code st_hit_columns(sqlite3 *db, pl_text *sql, int *n, pl_error *err)
{
    static const struct {
        const char *column, *there;
    } more[] = {
        { "h.front", "hit WHERE front IS NOT NULL" },
        { "h.cluster", "hit WHERE cluster IS NOT NULL" },
        { "h.n_similar", "hit WHERE n_similar IS NOT NULL" },
        { "m.undefined_stereo", "hit JOIN molecule USING(mol_id) WHERE undefined_stereo>0" },
    };
    bool alerts = false;
    pl_code code = st_alerts_there(db, &alerts, err);

    for (size_t i = 0; i < sizeof more / sizeof *more && code == PL_OK; i++) {
        int64_t has = 0;
        code = pl_db_int(db, &has, err, "SELECT EXISTS(SELECT 1 FROM %s)", more[i].there);
        if (code == PL_OK && has)
            column_add(sql, n, more[i].column);
    }
    if (code == PL_OK && alerts)
        column_add(sql, n, "m.alerts");
    return code;
}

void st_column_name(pl_text *out, const char *name, const char *more, const char *unit)
{
    const size_t n = strlen(name), n_unit = strlen(unit);
    const bool shown = n_unit > 0 && strcmp(unit, "1") != 0;
    const bool has = shown && n > n_unit + 3 && name[n - 1] == ')' && strncmp(name + n - n_unit - 1, unit, n_unit) == 0 &&
                     strncmp(name + n - n_unit - 3, " (", 2) == 0;

    pl_text_add_n(out, name, has ? n - n_unit - 3 : n);
    pl_text_add(out, more);
    if (shown)
        pl_text_addf(out, " (%s)", unit);
    if (st_column_is_ours(pl_text_str(out)))
        pl_text_add(out, " predicted");
}

/* Adds the name as an SQL identifier in quotes. */
static void add_name(pl_text *sql, const char *name, const char *more, const char *unit)
{
    pl_text whole = { 0 };

    st_column_name(&whole, name, more, unit != NULL ? unit : "");
    pl_text_add(sql, " AS \"");
    for (const char *c = pl_text_str(&whole); *c != '\0'; c++)
        pl_text_add_n(sql, *c == '"' ? "\"\"" : c, *c == '"' ? 2 : 1);
    pl_text_add(sql, "\"");
    sql->refused = sql->refused || !pl_text_ok(&whole);
    pl_text_free(&whole);
}

static void add_one(pl_text *sql, const char *table, const char *column, int64_t property_id)
{
    pl_text_addf(sql, ", (SELECT x.%s FROM %s x WHERE x.property_id=%lld AND x.mol_id=m.mol_id)", column, table,
                 (long long)property_id);
}

/* The columns of one property in st_score_columns, and which column of its query says whether there are such values: it is
 * more than `above`. */
static const struct {
    const char *table, *column, *name;
    bool has_unit;
    int at, above;
} columns[] = {
    { "score", "mean", "", true, 3, 0 },
    { "score", "stdev", " stdev", true, 3, 1 },
    { "score", "interval90", " interval90", true, 6, 0 },
    { "score", "similarity", " similarity", false, 5, 0 },
    { "score", "domain", " domain", false, 7, 0 },
    { "score", "reasons", " outside because", false, 8, 0 },
    { "label", "value", " measured", true, 4, 0 },
};

static void add_property(pl_text *sql, sqlite3_stmt *st, bool labels)
{
    const char *name = (const char *)sqlite3_column_text(st, 1), *unit = (const char *)sqlite3_column_text(st, 2);

    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        const bool wanted = labels || strcmp(columns[i].table, "label") != 0;
        if (wanted && sqlite3_column_int(st, columns[i].at) > columns[i].above) {
            add_one(sql, columns[i].table, columns[i].column, sqlite3_column_int64(st, 0));
            add_name(sql, name, columns[i].name, columns[i].has_unit ? unit : "");
        }
    }
}

pl_code st_score_columns(sqlite3 *db, bool labels, pl_text *sql, pl_error *err)
{
    sqlite3_stmt *st;
    bool row = true;
    pl_code code = pl_db_prepare(
        db, &st,
        "SELECT property_id, name, unit, (SELECT max(n_models) FROM score s WHERE s.property_id=p.property_id), "
        "EXISTS(SELECT 1 FROM label l WHERE l.property_id=p.property_id), "
        "EXISTS(SELECT 1 FROM score s WHERE s.property_id=p.property_id AND s.similarity IS NOT NULL), "
        "EXISTS(SELECT 1 FROM score s WHERE s.property_id=p.property_id AND s.interval90 IS NOT NULL), "
        "EXISTS(SELECT 1 FROM score s WHERE s.property_id=p.property_id AND s.domain IS NOT NULL), "
        "EXISTS(SELECT 1 FROM score s WHERE s.property_id=p.property_id AND s.reasons IS NOT NULL) FROM property p ORDER BY name",
        err);

    while (code == PL_OK && row) {
        code = pl_db_step(st, &row, err);
        if (code == PL_OK && row)
            add_property(sql, st, labels);
    }
    (void)sqlite3_finalize(st);
    return code;
}
