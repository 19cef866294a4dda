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

    while (code == PL_OK) {
        const char *name, *unit;
        int64_t id;
        code = pl_db_step(st, &row, err);
        if (code != PL_OK || !row)
            break;
        id = sqlite3_column_int64(st, 0);
        name = (const char *)sqlite3_column_text(st, 1);
        unit = (const char *)sqlite3_column_text(st, 2);
        if (sqlite3_column_int(st, 3) > 0) {
            add_one(sql, "score", "mean", id);
            add_name(sql, name, "", unit);
        }
        if (sqlite3_column_int(st, 3) > 1) {
            add_one(sql, "score", "stdev", id);
            add_name(sql, name, " stdev", unit);
        }
        if (sqlite3_column_int(st, 6)) {
            add_one(sql, "score", "interval90", id);
            add_name(sql, name, " interval90", unit);
        }
        if (sqlite3_column_int(st, 5)) {
            add_one(sql, "score", "similarity", id);
            add_name(sql, name, " similarity", "");
        }
        if (sqlite3_column_int(st, 7)) {
            add_one(sql, "score", "domain", id);
            add_name(sql, name, " domain", "");
        }
        if (sqlite3_column_int(st, 8)) {
            add_one(sql, "score", "reasons", id);
            add_name(sql, name, " outside because", "");
        }
        if (labels && sqlite3_column_int(st, 4)) {
            add_one(sql, "label", "value", id);
            add_name(sql, name, " measured", unit);
        }
    }
    (void)sqlite3_finalize(st);
    return code;
}
