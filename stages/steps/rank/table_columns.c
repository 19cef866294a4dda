/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/rank/table_columns.h"

#include <string.h>

#include "pipeline/store/store.h"
#include "stages/database/descriptor_columns.h"
#include "stages/database/schema.h"
#include "stages/steps/ingest/alerts.h"

typedef struct column {
    const char *name, *value;
} column;

static const column before[] = {
    { "rank", "h.rank" },         { "title", ST_TITLES },     { "smiles", "m.smiles" },
    { "inchikey", "m.inchikey" }, { "formula", "m.formula" }, { "objective", "h.objective" },
};

/* Present if the query finds something. */
static const struct {
    column c;
    const char *there;
} sometimes[] = {
    { { "front", "h.front" }, "SELECT 1 FROM hit WHERE front IS NOT NULL" },
    { { "cluster", "h.cluster" }, "SELECT 1 FROM hit WHERE cluster IS NOT NULL" },
    { { "n_similar", "h.n_similar" }, "SELECT 1 FROM hit WHERE n_similar IS NOT NULL" },
    { { "undefined_stereo", "m.undefined_stereo" }, "SELECT 1 FROM molecule WHERE undefined_stereo>0" },
};

static const column alerts = { "alerts", "m.alerts" };

/* What `search` and `next` write behind them, and SDF in front. */
static const char *const others[] = { "query_similarity", "acquisition", "conformer", "pose", "pose_value" };

static const column after[] = {
    { "n_heavy", "m.n_heavy" },   { "charge", "m.charge" },         { "removed", "m.removed" },
    { "geometry", "m.geometry" }, { ST_COLUMN_ENERGY, "m.energy" },
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static bool is_in(const column *list, size_t n, const char *name)
{
    bool found = false;

    for (size_t i = 0; i < n && !found; i++)
        found = strcmp(list[i].name, name) == 0;
    return found;
}

bool st_table_column_is_ours(const char *name)
{
    bool found = is_in(before, COUNT(before), name) || is_in(&alerts, 1, name) || is_in(after, COUNT(after), name);

    for (size_t i = 0; i < COUNT(sometimes) && !found; i++)
        found = is_in(&sometimes[i].c, 1, name);
    for (size_t i = 0; i < COUNT(others) && !found; i++)
        found = strcmp(others[i], name) == 0;
    return found || st_descriptor_is(name);
}

/* ---- names of properties ---- */

/* What may be known of a property: the suffix of its column, the value, and which column of the query `properties` says that there is
 * some (more than `above`). */
static const struct {
    const char *suffix, *value, *table;
    int at, above;
} parts[] = {
    { "", "mean", "score", 3, 0 },
    { "_unit", NULL, NULL, 9, 0 },
    { "_stdev", "stdev", "score", 3, 1 },
    { "_interval90", "interval90", "score", 6, 0 },
    { "_similarity", "similarity", "score", 5, 0 },
    { "_domain", "domain", "score", 7, 0 },
    { "_reasons", "reasons", "score", 8, 0 },
    { "_measured", "value", "label", 4, 0 },
};

static const char properties[] =
    "SELECT property_id, name, unit, (SELECT max(n_models) FROM score s WHERE s.property_id=p.property_id), "
    "EXISTS(SELECT 1 FROM label l WHERE l.property_id=p.property_id), "
    "EXISTS(SELECT 1 FROM score s WHERE s.property_id=p.property_id AND s.similarity IS NOT NULL), "
    "EXISTS(SELECT 1 FROM score s WHERE s.property_id=p.property_id AND s.interval90 IS NOT NULL), "
    "EXISTS(SELECT 1 FROM score s WHERE s.property_id=p.property_id AND s.domain IS NOT NULL), "
    "EXISTS(SELECT 1 FROM score s WHERE s.property_id=p.property_id AND s.reasons IS NOT NULL), unit NOT IN('','1') FROM property p "
    "WHERE EXISTS(SELECT 1 FROM score s WHERE s.property_id=p.property_id) OR "
    "EXISTS(SELECT 1 FROM label l WHERE l.property_id=p.property_id) ORDER BY name";

/* Without " (eV)" at the end, which a prediction has whose label has another unit. */
static size_t plain_length(const char *name, const char *unit)
{
    const size_t n = strlen(name), n_unit = strlen(unit);
    const bool has = n_unit > 0 && n > n_unit + 3 && name[n - 1] == ')' && strncmp(name + n - n_unit - 1, unit, n_unit) == 0 &&
                     strncmp(name + n - n_unit - 3, " (", 2) == 0;

    return has ? n - n_unit - 3 : n;
}

/* used: each name between line ends. A name of a property cannot have one (pl_text_wrap in messages, CSV heads). Refused memory is noted
 * in it. */
static bool is_used(pl_text *used, const char *name)
{
    pl_text line = { 0 };
    bool found;

    pl_text_addf(&line, "\n%s\n", name);
    found = st_table_column_is_ours(name) || strstr(pl_text_str(used), pl_text_str(&line)) != NULL;
    pl_text_depend(used, &line);
    pl_text_free(&line);
    return found;
}

static bool has(sqlite3_stmt *st, size_t i) { return sqlite3_column_int(st, parts[i].at) > parts[i].above; }

/* Whether no other column has the name of one that the property at st needs. */
static bool is_free(pl_text *used, const char *base, sqlite3_stmt *st)
{
    bool taken = false;

    for (size_t i = 0; i < COUNT(parts) && !taken; i++) {
        pl_text name = { 0 };
        if (!has(st, i))
            continue;
        pl_text_addf(&name, "%s%s", base, parts[i].suffix);
        taken = is_used(used, pl_text_str(&name));
        pl_text_depend(used, &name);
        pl_text_free(&name);
    }
    return !taken;
}

/* The property's own name; if another column has it, with "_predicted" or a number behind it. */
static void choose_base(pl_text *base, pl_text *used, sqlite3_stmt *st)
{
    const char *name = (const char *)sqlite3_column_text(st, 1);
    const int n = (int)plain_length(name, (const char *)sqlite3_column_text(st, 2));

    pl_text_addf(base, "%.*s", n, name);
    if (!is_free(used, pl_text_str(base), st)) {
        pl_text_reset(base);
        pl_text_addf(base, "%.*s_predicted", n, name);
    }
    for (int k = 2; k < 1000 && !base->refused && !is_free(used, pl_text_str(base), st); k++) {
        pl_text_reset(base);
        pl_text_addf(base, "%.*s_%d", n, name, k);
    }
}

/* ---- the list ---- */

/* With every quote twice. */
static void add_quoted(pl_text *sql, const char *s, char quote)
{
    pl_text_add_n(sql, &quote, 1);
    for (; *s != '\0'; s++) {
        pl_text_add_n(sql, s, 1);
        if (*s == quote)
            pl_text_add_n(sql, s, 1);
    }
    pl_text_add_n(sql, &quote, 1);
}

static void add_column(pl_text *sql, const column *c) { pl_text_addf(sql, ", %s AS %s", c->value, c->name); }

static void add_part(pl_text *sql, pl_text *used, size_t i, sqlite3_stmt *st, const char *base)
{
    pl_text name = { 0 };

    pl_text_addf(&name, "%s%s", base, parts[i].suffix);
    pl_text_add(sql, ", ");
    if (parts[i].value == NULL)
        add_quoted(sql, (const char *)sqlite3_column_text(st, 2), '\'');
    else
        pl_text_addf(sql, "(SELECT x.%s FROM %s x WHERE x.property_id=%lld AND x.mol_id=m.mol_id)", parts[i].value, parts[i].table,
                     (long long)sqlite3_column_int64(st, 0));
    pl_text_add(sql, " AS ");
    add_quoted(sql, pl_text_str(&name), '"');
    pl_text_addf(used, "%s\n", pl_text_str(&name));
    pl_text_depend(sql, &name);
    pl_text_free(&name);
}

static void add_property(pl_text *sql, pl_text *used, sqlite3_stmt *st)
{
    pl_text base = { 0 };

    choose_base(&base, used, st);
    for (size_t i = 0; i < COUNT(parts); i++)
        if (has(st, i))
            add_part(sql, used, i, st, pl_text_str(&base));
    pl_text_depend(sql, &base);
    pl_text_free(&base);
}

static pl_code add_properties(sqlite3 *db, pl_text *sql, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    pl_text used = { 0 };
    pl_code code = pl_db_prepare(db, &st, properties, err);

    pl_text_add(&used, "\n");
    while (pl_db_next(st, &code, err))
        add_property(sql, &used, st);
    pl_text_depend(sql, &used);
    (void)sqlite3_finalize(st);
    pl_text_free(&used);
    return code;
}

static pl_code add_sometimes(sqlite3 *db, pl_text *sql, pl_error *err)
{
    bool searched = false;
    pl_code code = st_alerts_there(db, &searched, err);

    for (size_t i = 0; i < COUNT(sometimes) && code == PL_OK; i++) {
        int64_t has = 0;
        code = pl_db_int(db, &has, err, "SELECT EXISTS(%s)", sometimes[i].there);
        if (has)
            add_column(sql, &sometimes[i].c);
    }
    if (searched)
        add_column(sql, &alerts);
    return code;
}

pl_code st_table_columns(sqlite3 *db, pl_text *sql, pl_error *err)
{
    pl_code code;

    pl_text_addf(sql, "%s AS %s", before[0].value, before[0].name);
    for (size_t i = 1; i < COUNT(before); i++)
        add_column(sql, &before[i]);
    code = add_properties(db, sql, err);
    if (code == PL_OK)
        code = add_sometimes(db, sql, err);
    pl_text_add(sql, ST_DESCRIPTOR_COLUMNS);
    for (size_t i = 0; i < COUNT(after); i++)
        add_column(sql, &after[i]);
    return code;
}
