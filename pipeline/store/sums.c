/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/store/sums.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/hash.h"
#include "pipeline/base/rng.h"
#include "pipeline/store/db.h"

/* SQLite before TEMP_TRIGGERS (3.35.0) also disables our TEMP triggers if those of the file are disabled (`distrust` in open.c). */
enum { COLUMNS_MAX = 64, TEMP_TRIGGERS = 3035000 };

/* SQL condition for our tables: those in column_doc or, if column_doc is empty, all; never row_sum and SQLite's own. */
#define OURS                                                                                            \
    "(name IN(SELECT tbl FROM column_doc) OR NOT EXISTS(SELECT 1 FROM column_doc)) AND name<>'row_sum'" \
    " AND substr(name,1,6)<>'sqlite'"
#define DEFINITIONS "SELECT type,name,tbl_name,sql FROM sqlite_master WHERE type IN('table','view') AND " OURS

/* ---- hash of a row ---- */

/* Equal integers and reals have the same hash, because SQLite stores whole reals as integers. */
static uint64_t hash_number(sqlite3_value *v, uint64_t h)
{
    int64_t i = sqlite3_value_int64(v);
    double d = sqlite3_value_double(v);

    if (sqlite3_value_type(v) == SQLITE_INTEGER || (d >= -9e15 && d <= 9e15 && (double)i == d))
        return pl_hash64(&i, sizeof i, h);
    return pl_hash64(&d, sizeof d, h + 1);
}

/* NULL does not change the hash, so a new column that is NULL keeps the sums of old rows. */
static uint64_t hash_row(sqlite3_value **v, int n)
{
    uint64_t h = 0;

    for (int i = 0; i < n; i++) {
        int type = sqlite3_value_type(v[i]);
        uint64_t seed = h + (uint64_t)(i + 1) * 8;
        const void *bytes;

        if (type == SQLITE_NULL)
            continue;
        if (type == SQLITE_INTEGER || type == SQLITE_FLOAT) {
            h = hash_number(v[i], seed);
            continue;
        }
        bytes = type == SQLITE_TEXT ? (const void *)sqlite3_value_text(v[i]) : sqlite3_value_blob(v[i]);
        h = pl_hash64(bytes, (size_t)sqlite3_value_bytes(v[i]), seed + 2 + (type == SQLITE_BLOB));
    }
    return pl_splitmix64(h);
}

/* The SQL functions row_plus(sum, columns ...) and row_minus: the sum with one row added or removed. */
static void add_row(sqlite3_context *ctx, int n, sqlite3_value **v)
{
    uint64_t h = hash_row(v + 1, n - 1), sum = (uint64_t)sqlite3_value_int64(v[0]);
    sqlite3_result_int64(ctx, (int64_t)(sqlite3_user_data(ctx) != NULL ? sum - h : sum + h));
}

/* ---- sums of tables ---- */

typedef struct total {
    int64_t n;
    uint64_t sum;
} total;

typedef struct watched {
    char *table;
    total more;   /* gathered, not in row_sum yet         */
    int n_claims; /* if not 0, there is no INSERT trigger */
} watched;

struct pl_sums {
    sqlite3 *db;
    bool gathers;
    watched *w; /* [n] */
    int n;
};

static pl_code sum_rows(sqlite3 *db, const char *sql, total *out, pl_error *err)
{
    sqlite3_value *v[COLUMNS_MAX];
    sqlite3_stmt *st;
    pl_code code = pl_db_prepare(db, &st, sql, err);
    int columns = sqlite3_column_count(st);

    *out = (total){ 0, 0 };
    if (columns > COLUMNS_MAX)
        code = pl_fail(err, PL_EDATA, "a table with %d columns", columns);
    while (pl_db_next(st, &code, err)) {
        for (int i = 0; i < columns; i++)
            v[i] = sqlite3_column_value(st, i);
        out->sum += hash_row(v, columns);
        out->n++;
    }
    (void)sqlite3_finalize(st);
    return code;
}

static pl_code sum_table(sqlite3 *db, const char *table, total *out, pl_error *err)
{
    char *sql = sqlite3_mprintf("SELECT * FROM main.\"%w\" NOT INDEXED", table);
    pl_code code = sql != NULL ? sum_rows(db, sql, out, err) : pl_fail(err, PL_ENOMEM, "a query");

    sqlite3_free(sql);
    return code;
}

typedef pl_code per_table(sqlite3 *db, const char *table, void *ctx, pl_error *err);

static pl_code each_table(sqlite3 *db, const char *sql, per_table *call, void *ctx, pl_error *err)
{
    sqlite3_stmt *st;
    pl_code code = pl_db_prepare(db, &st, sql, err);

    while (pl_db_next(st, &code, err))
        code = call(db, (const char *)sqlite3_column_text(st, 0), ctx, err);
    (void)sqlite3_finalize(st);
    return code;
}

static pl_code put_total(sqlite3 *db, const char *table, const total *t, pl_error *err)
{
    return pl_db_execf(db, err, "INSERT INTO main.row_sum(tbl,n,sum) VALUES(%Q,%lld,%lld)", table, (long long)t->n,
                       (long long)t->sum);
}

static pl_code fill_table(sqlite3 *db, const char *table, void *ctx, pl_error *err)
{
    total t;
    pl_code code = sum_table(db, table, &t, err);

    (void)ctx;
    return code == PL_OK ? put_total(db, table, &t, err) : code;
}

static pl_code sum_definitions(sqlite3 *db, total *out, pl_error *err)
{
    pl_code code = sum_rows(db, DEFINITIONS, out, err);
    return code == PL_OK ? pl_db_int(db, &out->n, err, "PRAGMA user_version") : code;
}

pl_code pl_sums_fill(sqlite3 *db, pl_error *err)
{
    total t;
    pl_code code = pl_db_exec(db,
                              "DROP TABLE IF EXISTS main.row_sum; CREATE TABLE main.row_sum(tbl TEXT PRIMARY KEY,"
                              " n INTEGER NOT NULL, sum INTEGER NOT NULL) WITHOUT ROWID",
                              err);

    if (code == PL_OK)
        code = each_table(db, "SELECT name FROM sqlite_master WHERE type='table' AND " OURS, fill_table, NULL, err);
    if (code == PL_OK)
        code = sum_definitions(db, &t, err);
    return code == PL_OK ? put_total(db, "", &t, err) : code;
}

/* ---- changes ---- */

/* Adds the columns of a table as ",NEW.\"a\",NEW.\"b\"" for row "NEW". */
static pl_code list_columns(sqlite3 *db, const char *table, const char *row, pl_text *out, pl_error *err)
{
    sqlite3_stmt *st;
    pl_code code = pl_db_prepare(db, &st, "SELECT name FROM pragma_table_info(?,'main') ORDER BY cid", err);

    (void)sqlite3_bind_text(st, 1, table, -1, SQLITE_STATIC);
    while (pl_db_next(st, &code, err))
        pl_text_addf(out, ",%s.\"%s\"", row, (const char *)sqlite3_column_text(st, 0));
    (void)sqlite3_finalize(st);
    return pl_text_ok(out) ? code : pl_fail(err, PL_ENOMEM, "a trigger");
}

/* The SQL function row_now(sign, index in pl_sums, columns ...): while changes are gathered, adds the row and says no. */
static void row_now(sqlite3_context *ctx, int n, sqlite3_value **v)
{
    pl_sums *s = sqlite3_user_data(ctx);
    const int64_t sign = sqlite3_value_int64(v[0]);

    if (s->gathers) {
        total *more = &s->w[sqlite3_value_int(v[1])].more;
        more->n += sign;
        more->sum += (uint64_t)sign * hash_row(v + 2, n - 2);
    }
    sqlite3_result_int(ctx, !s->gathers);
}

/* The SQL function row_add(index in pl_sums, columns ...): adds the row, and is 0. */
static void row_add(sqlite3_context *ctx, int n, sqlite3_value **v)
{
    pl_sums *s = sqlite3_user_data(ctx);
    total *more = &s->w[sqlite3_value_int(v[0])].more;

    if (!s->gathers) {
        sqlite3_result_error(ctx, "rows are stored in groups outside of a unit", -1);
        return;
    }
    more->n++;
    more->sum += hash_row(v + 1, n - 1);
    sqlite3_result_int(ctx, 0);
}

/* The SQL function row_wrap(a, b): the sum modulo 2^64, which + is not. */
static void row_wrap(sqlite3_context *ctx, int n, sqlite3_value **v)
{
    (void)n;
    sqlite3_result_int64(ctx, (int64_t)((uint64_t)sqlite3_value_int64(v[0]) + (uint64_t)sqlite3_value_int64(v[1])));
}

static pl_code place_of(pl_sums *s, const char *table, int *at, pl_error *err)
{
    watched *w;

    for (*at = 0; *at < s->n; (*at)++)
        if (strcmp(s->w[*at].table, table) == 0)
            return PL_OK;
    w = realloc(s->w, ((size_t)s->n + 1) * sizeof *w);
    s->w = w != NULL ? w : s->w;
    if (w == NULL || (w[s->n] = (watched){ .table = strdup(table) }).table == NULL)
        return pl_fail(err, PL_ENOMEM, "a trigger");
    s->n++;
    return PL_OK;
}

static pl_code watch_table(sqlite3 *db, const char *table, void *ctx, pl_error *err)
{
    static const char *const form =
        "CREATE TEMP TRIGGER IF NOT EXISTS \"sum_%w_new\" AFTER INSERT ON main.\"%w\" WHEN row_now(1,%d%s) BEGIN"
        " UPDATE row_sum SET n=n+1,sum=row_plus(sum%s) WHERE tbl=%Q; END;"
        "CREATE TEMP TRIGGER IF NOT EXISTS \"sum_%w_old\" AFTER DELETE ON main.\"%w\" WHEN row_now(-1,%d%s) BEGIN"
        " UPDATE row_sum SET n=n-1,sum=row_minus(sum%s) WHERE tbl=%Q; END;"
        "CREATE TEMP TRIGGER IF NOT EXISTS \"sum_%w_set\" AFTER UPDATE ON main.\"%w\" WHEN row_now(-1,%d%s)+row_now(1,%d%s)>0 BEGIN"
        " UPDATE row_sum SET sum=row_plus(row_minus(sum%s)%s) WHERE tbl=%Q; END;";
    pl_text new_row = { 0 }, old_row = { 0 };
    int at = 0;
    pl_code code = place_of(ctx, table, &at, err);

    if (code == PL_OK)
        code = list_columns(db, table, "NEW", &new_row, err);
    if (code == PL_OK)
        code = list_columns(db, table, "OLD", &old_row, err);
    if (code == PL_OK)
        code = pl_db_execf(db, err, form, table, table, at, new_row.s, new_row.s, table, table, table, at, old_row.s, old_row.s,
                           table, table, table, at, old_row.s, at, new_row.s, old_row.s, new_row.s, table);
    pl_text_free(&new_row);
    pl_text_free(&old_row);
    return code;
}

static void sums_free(void *sums)
{
    pl_sums *s = sums;

    for (int i = 0; i < s->n; i++)
        free(s->w[i].table);
    free(s->w);
    free(s);
}

/* The connection owns *out, also after an error. */
static pl_code add_functions(pl_sums **out, sqlite3 *db, pl_error *err)
{
    static const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC;
    static int minus;

    *out = calloc(1, sizeof **out);
    if (*out == NULL)
        return pl_fail(err, PL_ENOMEM, "the sums of rows");
    (*out)->db = db;
    if (sqlite3_create_function_v2(db, "row_now", -1, SQLITE_UTF8, *out, row_now, NULL, NULL, sums_free) != SQLITE_OK ||
        sqlite3_create_function(db, "row_add", -1, SQLITE_UTF8, *out, row_add, NULL, NULL) != SQLITE_OK ||
        sqlite3_create_function(db, "row_wrap", 2, flags, NULL, row_wrap, NULL, NULL) != SQLITE_OK ||
        sqlite3_create_function(db, "row_plus", -1, flags, NULL, add_row, NULL, NULL) != SQLITE_OK ||
        sqlite3_create_function(db, "row_minus", -1, flags, &minus, add_row, NULL, NULL) != SQLITE_OK)
        return pl_db_fail(db, err);
    return PL_OK;
}

pl_code pl_sums_watch(pl_sums **out, sqlite3 *db, pl_error *err)
{
    pl_code code;

    *out = NULL;
    if (sqlite3_libversion_number() < TEMP_TRIGGERS)
        return pl_db_exec(db, "DELETE FROM main.row_sum", err);
    code = add_functions(out, db, err);
    if (code == PL_OK)
        code = pl_db_exec(db, "PRAGMA recursive_triggers=ON", err); /* rows that a REPLACE removes count too */
    return code == PL_OK ? each_table(db, "SELECT tbl FROM row_sum WHERE tbl<>''", watch_table, *out, err) : code;
}

pl_code pl_sums_add(pl_sums *s, const char *table, pl_error *err)
{
    pl_code code;

    if (s == NULL)
        return PL_OK;
    code = pl_db_execf(s->db, err,
                       "INSERT OR IGNORE INTO main.row_sum(tbl,n,sum) SELECT %Q,0,0"
                       " WHERE EXISTS(SELECT 1 FROM main.row_sum)",
                       table);
    return code == PL_OK ? watch_table(s->db, table, s, err) : code;
}

/* ---- many changes in one transaction ---- */

void pl_sums_gather(pl_sums *s, bool on)
{
    if (s == NULL)
        return;
    s->gathers = on;
    for (int i = 0; i < s->n; i++)
        s->w[i].more = (total){ 0, 0 };
}

pl_code pl_sums_put(pl_sums *s, pl_error *err)
{
    pl_code code = PL_OK;

    for (int i = 0; s != NULL && i < s->n && code == PL_OK; i++) {
        const watched *w = &s->w[i];
        if (w->more.n != 0 || w->more.sum != 0)
            code = pl_db_execf(s->db, err, "UPDATE main.row_sum SET n=n+%lld,sum=row_wrap(sum,%lld) WHERE tbl=%Q",
                               (long long)w->more.n, (long long)w->more.sum, w->table);
    }
    pl_sums_gather(s, false);
    return code;
}

/* ---- statements that count their own rows ---- */

/* Position in "a,b,c" from 1; 0: it is not there. */
static int place_in(const char *columns, const char *name)
{
    const size_t n = strlen(name);

    for (int i = 1; columns != NULL; i++) {
        if (strncmp(columns, name, n) == 0 && (columns[n] == ',' || columns[n] == '\0'))
            return i;
        columns = strchr(columns, ',');
        columns = columns != NULL ? columns + 1 : NULL;
    }
    return 0;
}

/* Adds ",column2,NULL,column1": what a new row has in the columns of the table. */
static pl_code list_values(sqlite3 *db, const char *table, const char *columns, pl_text *out, pl_error *err)
{
    sqlite3_stmt *st;
    pl_code code = pl_db_prepare(db, &st, "SELECT name, dflt_value IS NOT NULL FROM pragma_table_info(?,'main') ORDER BY cid", err);

    (void)sqlite3_bind_text(st, 1, table, -1, SQLITE_STATIC);
    while (pl_db_next(st, &code, err)) {
        const int at = place_in(columns, (const char *)sqlite3_column_text(st, 0));
        if (at > 0)
            pl_text_addf(out, ",column%d", at);
        else
            pl_text_add(out, ",NULL");
        if (at == 0 && sqlite3_column_int(st, 1) != 0)
            code = pl_fail(err, PL_EBUG, "table %s: a column that is left out has a default", table);
    }
    (void)sqlite3_finalize(st);
    return pl_text_ok(out) ? code : pl_fail(err, PL_ENOMEM, "a query");
}

static pl_code drop_insert_trigger(sqlite3 *db, const char *table, pl_error *err)
{
    char *sql = sqlite3_mprintf("DROP TRIGGER IF EXISTS temp.\"sum_%w_new\"", table);
    pl_code code = sql != NULL ? pl_db_exec(db, sql, err) : pl_fail(err, PL_ENOMEM, "a query");

    sqlite3_free(sql);
    return code;
}

pl_code pl_sums_claim(pl_sums *s, const char *table, const char *columns, pl_text *call, int *at, pl_error *err)
{
    int i = 0;
    pl_code code;

    *at = -1;
    while (s != NULL && i < s->n && strcmp(s->w[i].table, table) != 0)
        i++;
    if (s == NULL || i == s->n)
        return PL_OK;
    pl_text_addf(call, "row_add(%d", i);
    code = list_values(s->db, table, columns, call, err);
    pl_text_add(call, ")");
    if (code == PL_OK)
        code = drop_insert_trigger(s->db, table, err);
    if (code != PL_OK)
        return code;
    *at = i;
    s->w[i].n_claims++;
    return PL_OK;
}

/* Without memory for the trigger the sums are given up. */
void pl_sums_release(pl_sums *s, int at)
{
    if (s == NULL || at < 0 || --s->w[at].n_claims > 0)
        return;
    if (watch_table(s->db, s->w[at].table, s, NULL) != PL_OK)
        (void)pl_db_exec(s->db, "DELETE FROM main.row_sum", NULL);
}

/* ---- comparing ---- */

typedef struct comparison {
    pl_text *report;
    int n, n_bad;
} comparison;

/* The name in row_sum may itself be damaged. */
static pl_code total_of(sqlite3 *db, const char *table, total *is, pl_error *err)
{
    int64_t there = 0;
    pl_code code;

    if (table[0] == '\0')
        return sum_definitions(db, is, err);
    code = pl_db_int(db, &there, err, "SELECT count(*) FROM main.sqlite_master WHERE type='table' AND name=%Q", table);
    return there > 0 ? sum_table(db, table, is, err) : code;
}

static pl_code compare(sqlite3 *db, const char *table, void *ctx, pl_error *err)
{
    comparison *c = ctx;
    total is = { -1, 0 }; /* as many rows as no table has */
    int64_t same = 0;
    pl_code code = total_of(db, table, &is, err);

    if (code == PL_OK)
        code = pl_db_int(db, &same, err, "SELECT count(*) FROM row_sum WHERE tbl=%Q AND n=%lld AND sum=%lld", table,
                         (long long)is.n, (long long)is.sum);
    if (code != PL_OK)
        return code;
    c->n++;
    c->n_bad += same != 1;
    if (same != 1)
        pl_text_addf(c->report, "%s%s: the checksum of its rows differs\n", table[0] ? "table " : "the list of tables", table);
    return PL_OK;
}

pl_code pl_sums_check(sqlite3 *db, int *n, pl_text *report, pl_error *err)
{
    comparison c = { .report = report };
    int64_t without = 0;
    pl_code code = pl_db_int(db, &without, err,
                             "SELECT count(*) FROM sqlite_master WHERE type='table' AND " OURS
                             " AND name NOT IN(SELECT tbl FROM row_sum) AND EXISTS(SELECT 1 FROM row_sum)");

    if (code == PL_OK)
        code = each_table(db, "SELECT tbl FROM row_sum ORDER BY tbl", compare, &c, err);
    if (without > 0)
        pl_text_addf(report, "%lld tables have no checksum in row_sum\n", (long long)without);
    *n = c.n;
    return code == PL_OK && (c.n_bad > 0 || without > 0) ? pl_fail(err, PL_EDATA, "the checksums of rows differ") : code;
}
