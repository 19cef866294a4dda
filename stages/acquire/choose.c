/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/acquire/choose.h"

#include <stdlib.h>
#include <string.h>

#include "chem/fingerprint/fingerprint.h"
#include "pipeline/base/stop.h"
#include "stages/expression/chemistry.h"
#include "stages/expression/row_filter.h"
#include "stages/steps/ingest/limits.h"

/* Half-width of the 90 % interval of a normal distribution, in standard deviations. */
#define HALF_90 "1.6448536269514722"

/* SQL: what a molecule m is known by. */
#define KEY "coalesce(nullif(m.inchikey,''),m.smiles)"

/* One that is chosen. */
typedef struct pick {
    ch_fingerprint print;
    const char *scaffold;
} pick;

typedef struct choosing {
    st_choice *c;
    st_chosen *out;
    sqlite3 *db;
    pl_arena *mem;
    int64_t property_id;
    const char *from; /* SQL: the candidates and their scores */
    pick *pick;       /* [out->n_chosen] */
    sqlite3_stmt *put, *get, *mark;
} choosing;

/* ---- the property ---- */

static const char *text_of(choosing *x, sqlite3_stmt *st, int column)
{
    const char *text = (const char *)sqlite3_column_text(st, column);

    return pl_strdup(x->mem, text != NULL ? text : "");
}

/* Models of this property, in a database that an earlier version wrote, may contradict each other. */
static pl_code check_better(const choosing *x, pl_error *err)
{
    int64_t n = 0;
    pl_code code = pl_db_int(
        x->db, &n, err,
        "SELECT count(DISTINCT json_extract(t.value,'$.better')) FROM model m, json_each(coalesce(json_extract(m.metadata_json,"
        "'$.target.targets'), json_array(json_extract(m.metadata_json,'$.target')))) t WHERE json_extract(t.value,'$.better') IN "
        "('low','high') AND %Q IN (json_extract(t.value,'$.name'), json_extract(t.value,'$.name')||' ('||%Q||')') AND "
        "coalesce(json_extract(t.value,'$.unit'),'')=%Q AND EXISTS(SELECT 1 FROM prediction r WHERE r.model_id=m.model_id AND "
        "r.property_id=%lld)",
        x->out->property, x->out->unit, x->out->unit, (long long)x->property_id);

    if (n > 1)
        code = pl_fail(err, PL_ECONFIG,
                       "%s: by one of its models low values are better, by another high ones; give --goal maximize or minimize",
                       x->out->property);
    return code;
}

static pl_code take_property(choosing *x, sqlite3_stmt *st, pl_error *err)
{
    const char *better = (const char *)sqlite3_column_text(st, 4), *goal = x->c->goal;

    x->property_id = sqlite3_column_int64(st, 0);
    x->out->property = text_of(x, st, 1);
    x->out->unit = text_of(x, st, 2);
    x->out->is_class = strcmp((const char *)sqlite3_column_text(st, 3), "classification") == 0;
    x->out->low = strcmp(better, "low") == 0;
    if (goal != NULL)
        x->out->low = strcmp(goal, "minimize") == 0;
    x->c->a.low = x->out->low;
    if (x->out->property == NULL || x->out->unit == NULL)
        return pl_fail(err, PL_ENOMEM, "a property");
    if (goal == NULL && strcmp(better, "none") == 0 && x->c->a.by != ST_UNCERTAINTY && x->c->a.by != ST_RANDOM)
        return pl_fail(err, PL_ECONFIG, "%s: neither high nor low values are said to be better; give --goal maximize or minimize",
                       x->out->property);
    return goal == NULL ? check_better(x, err) : PL_OK;
}

/* "logS, gap": those that are scored. */
static pl_code scored_names(choosing *x, const char **out, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    pl_code code =
        pl_db_prepare(x->db, &st,
                      "SELECT group_concat(name, ', ') FROM (SELECT name FROM property p WHERE EXISTS(SELECT 1 FROM score "
                      "s WHERE s.property_id=p.property_id) ORDER BY name)",
                      err);

    *out = pl_db_next(st, &code, err) ? text_of(x, st, 0) : "";
    (void)sqlite3_finalize(st);
    return *out == NULL ? pl_fail(err, PL_ENOMEM, "names") : code;
}

static pl_code find_property(choosing *x, pl_error *err)
{
    const char *names = "";
    sqlite3_stmt *st = NULL;
    bool row;
    pl_code code = scored_names(x, &names, err);

    if (code == PL_OK)
        code = pl_db_prepare(
            x->db, &st,
            "SELECT property_id,name,unit,task,better,count(*) OVER () FROM property p WHERE (?1 IS NULL OR name=?1) AND "
            "EXISTS(SELECT 1 FROM score s WHERE s.property_id=p.property_id) ORDER BY property_id",
            err);
    if (code == PL_OK)
        (void)sqlite3_bind_text(st, 1, x->c->property, -1, SQLITE_STATIC);
    row = pl_db_next(st, &code, err);
    if (row)
        code = sqlite3_column_int(st, 5) == 1 ? take_property(x, st, err)
                                              : pl_fail(err, PL_ECONFIG, "which property? give --property; scored are: %s", names);
    (void)sqlite3_finalize(st);
    if (code != PL_OK)
        return code;
    if (names[0] == '\0')
        return pl_fail(err, PL_EINPUT, "no molecule has a score; see molsieve status");
    return row ? PL_OK : pl_fail(err, PL_ECONFIG, "--property %s: is not scored; scored are: %s", x->c->property, names);
}

/* ---- standard deviations, and the best so far ---- */

const char *const st_sigma_names[ST_SIGMAS + 1] = { "auto", "gp", "stdev", "interval", NULL };

/* SQL of a standard deviation in a SELECT with the score `s`. */
static const char *sigma_sql(const choosing *x, st_sigma from)
{
    if (x->out->is_class)
        return "sqrt(s.mean*(1-s.mean))";
    if (from == ST_SIGMA_STDEV)
        return "s.stdev";
    if (from == ST_SIGMA_INTERVAL)
        return "s.interval90/" HALF_90;
    return pl_sprintf(
        x->mem,
        "(SELECT max(r.uncertainty) FROM prediction r WHERE r.property_id=%lld AND r.model_id IN (SELECT model_id FROM "
        "model) AND r.mol_id=s.mol_id)",
        (long long)x->property_id);
}

/* Whether a score of the property has such a standard deviation. */
static pl_code has_sigma(const choosing *x, st_sigma from, int64_t *yes, pl_error *err)
{
    const char *sigma = sigma_sql(x, from);

    if (sigma == NULL)
        return pl_fail(err, PL_ENOMEM, "a query");
    return pl_db_int(x->db, yes, err, "SELECT EXISTS(SELECT 1 FROM score s WHERE s.property_id=%lld AND (%s) IS NOT NULL)",
                     (long long)x->property_id, sigma);
}

static pl_code settle_sigma(choosing *x, pl_error *err)
{
    int64_t yes = 0;
    const st_sigma asked = x->c->sigma, first = asked == ST_SIGMA_AUTO ? ST_SIGMA_GP : asked;
    const st_sigma last = asked == ST_SIGMA_AUTO ? ST_SIGMA_INTERVAL : asked;
    pl_code code = PL_OK;

    for (st_sigma k = first; k <= last && !yes && code == PL_OK; k++) {
        x->c->sigma = k;
        code = has_sigma(x, k, &yes, err);
    }
    x->out->sigma = x->c->sigma;
    if (code == PL_OK && !yes)
        return pl_fail(err, PL_ECONFIG,
                       "no score of %s has %s, which --by %s needs: a Gaussian process, several models or a calibrated interval "
                       "give one; --by greedy needs none",
                       x->out->property, asked == ST_SIGMA_AUTO ? "a standard deviation" : st_sigma_names[asked],
                       st_strategy_names[x->c->a.by]);
    return code;
}

/* Where the strategy uses no deviation, the first that there is describes the choice. */
static pl_code find_deviation(choosing *x, pl_error *err)
{
    int64_t yes = x->out->is_class || x->out->sigma != ST_SIGMA_AUTO;
    st_sigma k = x->out->sigma != ST_SIGMA_AUTO ? x->out->sigma : ST_SIGMA_GP;
    pl_code code = x->c->blind || yes ? PL_OK : has_sigma(x, k, &yes, err);

    while (code == PL_OK && !yes && !x->c->blind && k < ST_SIGMA_INTERVAL)
        code = has_sigma(x, ++k, &yes, err);
    x->out->deviation = yes && !x->c->blind ? sigma_sql(x, k) : "NULL";
    x->out->property_id = x->property_id;
    return x->out->deviation == NULL ? pl_fail(err, PL_ENOMEM, "a query") : code;
}

static pl_code check_strategy(choosing *x, pl_error *err)
{
    const st_strategy by = x->c->a.by;

    if (!st_strategy_is_uncertain(by) || (x->out->is_class && by == ST_UNCERTAINTY))
        return PL_OK;
    if (x->out->is_class)
        return pl_fail(err, PL_ECONFIG,
                       "%s is a class: --by %s needs a number with a standard deviation; use greedy, uncertainty or random",
                       x->out->property, st_strategy_names[by]);
    return settle_sigma(x, err);
}

/* The targets of the training: name, the label that it was trained on, and its factor. */
#define TARGETS                                                                                                         \
    "target(name, label, factor) AS (SELECT json_extract(t.value,'$.name'), coalesce(json_extract(t.value,'$.column')," \
    "json_extract(t.value,'$.name')), coalesce(json_extract(t.value,'$.factor'),1) FROM stage s, "                      \
    "json_each(s.params_json,'$.targets') t WHERE s.name='train')"

/* The best label, in the unit of the score: its own, or that of the target by which it is trained; without any the best score. */
static pl_code find_best(choosing *x, pl_error *err)
{
    const char *best = x->out->low ? "min" : "max", *name = x->out->property;
    const long long id = (long long)x->property_id;
    char *sql = sqlite3_mprintf("WITH " TARGETS " SELECT v, 1 FROM (SELECT %s(v) AS v FROM (SELECT value AS v FROM label WHERE "
                                "property_id=%lld UNION ALL SELECT l.value*t.factor FROM target t JOIN property q ON "
                                "q.name=t.label AND q.property_id<>%lld JOIN label l ON l.property_id=q.property_id WHERE %Q IN "
                                "(t.name, t.name||' ('||%Q||')'))) WHERE v IS NOT NULL "
                                "UNION ALL SELECT %s(mean), 0 FROM score WHERE property_id=%lld",
                                best, id, id, name, x->out->unit, best, id);
    sqlite3_stmt *st = NULL;
    bool row;
    pl_code code = sql != NULL ? pl_db_prepare(x->db, &st, sql, err) : pl_fail(err, PL_ENOMEM, "a query");

    row = pl_db_next(st, &code, err);
    x->c->a.best = row ? sqlite3_column_double(st, 0) : 0;
    x->out->best_of = row && sqlite3_column_int(st, 1) ? "the best that was measured" : "the best prediction";
    (void)sqlite3_finalize(st);
    sqlite3_free(sql);
    return code;
}

static pl_code settle_best(choosing *x, pl_error *err)
{
    pl_code code = PL_OK;

    x->out->best_of = "given";
    if (x->c->a.by == ST_EXPECTED_IMPROVEMENT && !x->c->has_best)
        code = find_best(x, err);
    x->out->best = x->c->a.best;
    return code;
}

/* ---- what was measured ---- */

/* Fills temp.labels with the properties whose labels are measurements of the property: its own; the column that it was trained on
 * (targets: [{name, column}]); that of another unit, if it is called "gap (eV)" (stages/steps/train/model_row.h); and limits of these. */
static pl_code find_labels(const choosing *x, pl_error *err)
{
    static const char sql[] =
        "CREATE TEMP TABLE IF NOT EXISTS labels(property_id INTEGER PRIMARY KEY);"
        "WITH " TARGETS
        ", known(label) AS (SELECT label FROM (SELECT name, label FROM target UNION SELECT name, name FROM property) "
        "WHERE %Q IN (name, name||' ('||%Q||')'))"
        "INSERT OR IGNORE INTO temp.labels SELECT q.property_id FROM property q, known k WHERE q.name IN (k.label, k.label||%Q, "
        "k.label||%Q)";
    const char *low = st_limit_name("", ST_AT_LEAST, x->mem), *high = st_limit_name("", ST_AT_MOST, x->mem);

    if (low == NULL || high == NULL)
        return pl_fail(err, PL_ENOMEM, "names of labels");
    return pl_db_execf(x->db, err, sql, x->out->property, x->out->unit, low, high);
}

/* A condition on the score s of the molecule m: it was measured, perhaps in another drawing, or a model learned it. */
static const char *measured_sql(const choosing *x)
{
    return pl_sprintf(
        x->mem,
        "EXISTS(SELECT 1 FROM temp.labels q JOIN label l ON l.property_id=q.property_id AND l.mol_id=s.mol_id) OR "
        "(m.inchikey<>'' AND EXISTS(SELECT 1 FROM molecule o CROSS JOIN temp.labels q CROSS JOIN label l ON l.property_id=q.property_id AND "
        "l.mol_id=o.mol_id WHERE o.inchikey=m.inchikey AND o.mol_id<>m.mol_id)) OR "
        "EXISTS(SELECT 1 FROM prediction r WHERE r.property_id=%lld AND r.model_id IN (SELECT model_id FROM model) AND "
        "r.mol_id=s.mol_id AND r.nearest=m.inchikey)",
        (long long)x->property_id);
}

/* ---- SQL ---- */

/* acquisition(mean, s, inchikey); the user data is an st_acquisition. */
static void acquisition_sql(sqlite3_context *ctx, int n, sqlite3_value **arg)
{
    const char *inchikey = (const char *)sqlite3_value_text(arg[2]);

    (void)n;
    if (inchikey == NULL)
        sqlite3_result_error_nomem(ctx);
    else
        sqlite3_result_double(ctx, st_acquisition_of(sqlite3_user_data(ctx), sqlite3_value_double(arg[0]),
                                                     sqlite3_value_double(arg[1]), inchikey));
}

/* The reason why a molecule is no candidate, as a number: 0 none, 1 measured, 2 listed, 3 outside, 4 without an uncertainty, 5 --where,
 * 6 asked for in vain. */
static pl_code add_reason(const choosing *x, pl_text *sql, pl_error *err)
{
    const char *condition = NULL, *sigma = sigma_sql(x, x->c->sigma), *measured = measured_sql(x);
    bool functions = false;
    pl_code code = measured != NULL && sigma != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "a query");

    if (code == PL_OK && x->c->where != NULL)
        code = st_row_filter_sql(&condition, x->c->where, x->db, &functions, x->mem, err);
    if (code == PL_OK && functions)
        code = st_chemistry_add(x->db, NULL, err);
    if (code != PL_OK)
        return code;
    pl_text_add(sql, "CASE ");
    if (!x->c->measured)
        pl_text_addf(sql, "WHEN %s THEN 1 ", measured);
    if (x->c->untried)
        pl_text_add(sql, "WHEN " KEY " IN (SELECT inchikey FROM acquired WHERE outcome<>'measured') THEN 6 ");
    pl_text_add(sql, "WHEN " KEY " IN (SELECT inchikey FROM temp.listed) THEN 2 ");
    if (x->c->inside)
        pl_text_add(sql, "WHEN s.domain IS NOT 'inside' THEN 3 ");
    if (st_strategy_is_uncertain(x->c->a.by))
        pl_text_addf(sql, "WHEN (%s) IS NULL THEN 4 ", sigma);
    if (condition != NULL)
        pl_text_addf(sql, "WHEN m.mol_id NOT IN (SELECT mol_id FROM molecule WHERE (%s\n)) THEN 5 ", condition);
    pl_text_add(sql, "ELSE 0 END");
    return PL_OK;
}

static pl_code count_reasons(choosing *x, const char *reason, pl_error *err)
{
    int64_t *const count[] = {
        NULL, &x->out->n_measured, &x->out->n_listed, &x->out->n_outside, &x->out->n_unsure, &x->out->n_where, &x->out->n_vain
    };
    const char *sql = pl_sprintf(x->mem,
                                 "SELECT %s AS reason, count(*) FROM %s s JOIN molecule m ON m.mol_id=s.mol_id WHERE "
                                 "s.property_id=%lld GROUP BY reason",
                                 reason, x->from, (long long)x->property_id);
    sqlite3_stmt *st = NULL;
    pl_code code = sql != NULL ? pl_db_prepare(x->db, &st, sql, err) : pl_fail(err, PL_ENOMEM, "a query");

    while (pl_db_next(st, &code, err)) {
        const int k = sqlite3_column_int(st, 0);
        if (k > 0)
            *count[k] = sqlite3_column_int64(st, 1);
        x->out->n_scored += sqlite3_column_int64(st, 1);
    }
    (void)sqlite3_finalize(st);
    return code;
}

/* ---- choosing ---- */

static bool is_similar(const choosing *x, const ch_fingerprint *print)
{
    for (int64_t i = 0; x->c->max_similarity < 1 && i < x->out->n_chosen; i++)
        if (ch_fingerprint_alike(print, &x->pick[i].print) > x->c->max_similarity)
            return true;
    return false;
}

static bool scaffold_is_full(const choosing *x, const char *scaffold)
{
    int64_t n = 0;

    if (x->c->per_scaffold == 0 || scaffold[0] == '\0') /* no limit, or no rings: none, so none is shared */
        return false;
    for (int64_t i = 0; i < x->out->n_chosen; i++)
        n += strcmp(x->pick[i].scaffold, scaffold) == 0;
    return n >= x->c->per_scaffold;
}

static pl_code put(choosing *x, int64_t mol_id, double acquisition, pl_error *err)
{
    (void)sqlite3_bind_int64(x->put, 1, mol_id);
    (void)sqlite3_bind_double(x->put, 2, acquisition);
    return pl_db_run(x->put, err);
}

/* Fills p from the stored fingerprint of a molecule. */
static pl_code read_pick(choosing *x, pick *p, int64_t mol_id, pl_error *err)
{
    bool row = false;
    pl_code code;

    (void)sqlite3_bind_int64(x->get, 1, mol_id);
    code = pl_db_step(x->get, &row, err);
    if (row && sqlite3_column_bytes(x->get, 0) == CH_FINGERPRINT_BYTES) {
        ch_fingerprint_unpack(&p->print, sqlite3_column_blob(x->get, 0));
        p->scaffold = text_of(x, x->get, 1);
        code = p->scaffold == NULL ? pl_fail(err, PL_ENOMEM, "a scaffold") : PL_OK;
    } else if (code == PL_OK)
        code =
            pl_fail(err, PL_EINPUT,
                    "molecule %lld has no stored fingerprint, which --max-similarity and --per-scaffold need: it was prepared by "
                    "an earlier version; run the workflow with --from prepare",
                    (long long)mol_id);
    (void)sqlite3_reset(x->get);
    return code;
}

/* Marks the molecule by its InChIKey, or SMILES; *twice: it was. With prepare: {dedupe: {by: none}} it may be there in several drawings. */
static pl_code mark(bool *twice, choosing *x, const char *key, pl_error *err)
{
    pl_code code;

    (void)sqlite3_bind_text(x->mark, 1, key, -1, SQLITE_TRANSIENT);
    code = pl_db_run(x->mark, err);
    *twice = code == PL_OK && sqlite3_changes(x->db) == 0;
    return code;
}

/* Takes a candidate, unless those that are chosen stand against it. */
static pl_code consider(choosing *x, int64_t mol_id, double acquisition, const char *key, pl_error *err)
{
    pick *p = &x->pick[x->out->n_chosen];
    const bool diverse = x->c->max_similarity < 1 || x->c->per_scaffold > 0;
    bool twice = false;
    pl_code code = diverse ? read_pick(x, p, mol_id, err) : PL_OK;

    if (code != PL_OK)
        return code;
    if (is_similar(x, &p->print)) {
        x->out->n_similar++;
        return PL_OK;
    }
    if (scaffold_is_full(x, p->scaffold)) {
        x->out->n_scaffold++;
        return PL_OK;
    }
    code = mark(&twice, x, key, err);
    x->out->n_twice += twice;
    if (code != PL_OK || twice)
        return code;
    x->out->n_chosen++;
    return put(x, mol_id, acquisition, err);
}

/* Far below the value to beat, expected improvements are too small for a number. The order of such is that of the distance in standard
 * deviations, whose square the logarithm of the improvement follows; without a deviation that of the means. */
static const char *ties_sql(const choosing *x, const char *sigma)
{
    const int sign = x->c->a.low ? -1 : 1;

    if (x->c->a.by != ST_EXPECTED_IMPROVEMENT)
        return "";
    return pl_sprintf(x->mem,
                      "CASE WHEN a=0 THEN %d*(s.mean-(%.17g))/nullif(%s,0) END DESC, CASE WHEN a=0 THEN %d*s.mean END DESC, ", sign,
                      x->c->a.best, sigma, sign);
}

/* mol_id, acquisition and key of the candidates, the best first; of equal ones the first InChIKey. */
static const char *ordered_sql(const choosing *x, const char *reason)
{
    const char *sigma = st_strategy_is_uncertain(x->c->a.by) ? sigma_sql(x, x->c->sigma) : "0";
    const char *ties = sigma != NULL ? ties_sql(x, sigma) : NULL;

    if (ties == NULL)
        return NULL;
    return pl_sprintf(x->mem,
                      "SELECT m.mol_id, acquisition(s.mean, %s, m.inchikey) AS a, " KEY
                      " FROM %s s JOIN molecule m ON m.mol_id=s.mol_id "
                      "WHERE s.property_id=%lld AND (%s)=0 ORDER BY a DESC, %sm.inchikey, m.mol_id",
                      sigma, x->from, (long long)x->property_id, reason, ties);
}

static pl_code choose_in_order(choosing *x, const char *reason, pl_error *err)
{
    const char *sql = ordered_sql(x, reason);
    sqlite3_stmt *st = NULL;
    pl_code code = sql != NULL ? pl_db_prepare(x->db, &st, sql, err) : pl_fail(err, PL_ENOMEM, "a query");

    while (x->out->n_chosen < x->c->n && pl_db_next(st, &code, err)) {
        if (*pl_stop_flag())
            code = pl_fail(err, PL_ESTOP, "stopped by %s", pl_stop_reason());
        else
            code = consider(x, sqlite3_column_int64(st, 0), sqlite3_column_double(st, 1), (const char *)sqlite3_column_text(st, 2),
                            err);
    }
    (void)sqlite3_finalize(st);
    return code;
}

/* ---- all of it ---- */

static pl_code make_tables(sqlite3 *db, pl_error *err)
{
    return pl_db_exec(db,
                      "CREATE TEMP TABLE IF NOT EXISTS listed(inchikey TEXT PRIMARY KEY) WITHOUT ROWID;"
                      "CREATE TEMP TABLE IF NOT EXISTS marked(key TEXT PRIMARY KEY) WITHOUT ROWID;"
                      "CREATE TEMP TABLE IF NOT EXISTS found(place INTEGER PRIMARY KEY, mol_id INTEGER, similarity REAL)",
                      err);
}

pl_code st_choose_list(pl_store *s, const char *inchikey, pl_error *err)
{
    pl_code code = make_tables(s->db, err);

    return code == PL_OK ? pl_db_execf(s->db, err, "INSERT OR IGNORE INTO temp.listed VALUES(%Q)", inchikey) : code;
}

static pl_code settle(choosing *x, pl_error *err)
{
    const int rc = sqlite3_create_function_v2(x->db, "acquisition", 3, SQLITE_UTF8 | SQLITE_DETERMINISTIC, &x->c->a,
                                              acquisition_sql, NULL, NULL, NULL);
    pl_code code = rc == SQLITE_OK ? make_tables(x->db, err) : pl_db_fail(x->db, err);

    if (code == PL_OK)
        code = pl_db_exec(x->db, "DELETE FROM temp.found; DELETE FROM temp.marked; DROP TABLE IF EXISTS temp.labels", err);
    if (code == PL_OK && !x->c->blind)
        code = find_property(x, err);
    if (code == PL_OK)
        code = check_strategy(x, err);
    if (code == PL_OK)
        code = find_deviation(x, err);
    if (code == PL_OK)
        code = settle_best(x, err);
    if (code == PL_OK)
        code = find_labels(x, err);
    if (code == PL_OK)
        code = pl_db_prepare(x->db, &x->put, "INSERT INTO temp.found(mol_id,similarity) VALUES(?,?)", err); /* place: 1, 2, .. */
    if (code == PL_OK)
        code = pl_db_prepare(x->db, &x->mark, "INSERT OR IGNORE INTO temp.marked VALUES(?)", err);
    return code != PL_OK ? code : pl_db_prepare(x->db, &x->get, "SELECT bits, scaffold FROM fingerprint WHERE mol_id=?", err);
}

pl_code st_choose(st_chosen *out, st_choice *c, pl_store *s, pl_arena *mem, pl_error *err)
{
    choosing x = { .c = c, .out = out, .db = s->db, .mem = mem };
    pl_text reason = { 0 };
    pl_code code;

    *out = (st_chosen){ 0 };
    if (c->blind) {
        x.from = "(SELECT mol_id, 0 AS property_id, 0.0 AS mean, 'inside' AS domain FROM molecule)";
        out->property = c->property;
        out->unit = "";
    } else
        x.from = "score";
    x.pick = calloc((size_t)c->n, sizeof *x.pick);
    code = x.pick != NULL ? settle(&x, err) : pl_fail(err, PL_ENOMEM, "%lld molecules", (long long)c->n);
    if (code == PL_OK)
        code = add_reason(&x, &reason, err);
    if (!pl_text_ok(&reason))
        code = pl_fail(err, PL_ENOMEM, "a query");
    if (code == PL_OK)
        code = count_reasons(&x, pl_text_str(&reason), err);
    if (code == PL_OK)
        code = choose_in_order(&x, pl_text_str(&reason), err);
    (void)sqlite3_finalize(x.put);
    (void)sqlite3_finalize(x.get);
    (void)sqlite3_finalize(x.mark);
    pl_text_free(&reason);
    free(x.pick);
    return code;
}
