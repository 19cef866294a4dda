/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates of the ranking from the database, and the best of them. */
#include "stages/steps/rank/rank_parts.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/run/progress.h"
#include "stages/expression/chemistry.h"
#include "stages/expression/row_filter.h"
#include "stages/steps/dataset/classes.h"
#include "stages/steps/ingest/prepare.h"

enum { PROGRESS_EVERY = 65536 };

static pl_code fail_unknown(st_ranking *s, const char *name, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    char known[128] = "nothing is scored";
    pl_code code = pl_db_prepare(s->env->store->db, &st,
                                 "SELECT group_concat(name,', ') FROM (SELECT name FROM property WHERE property_id IN "
                                 "(SELECT property_id FROM score) ORDER BY name)",
                                 err);

    if (pl_db_next(st, &code, err) && sqlite3_column_text(st, 0) != NULL)
        (void)snprintf(known, sizeof known, "scored: %s", (const char *)sqlite3_column_text(st, 0));
    (void)sqlite3_finalize(st);
    if (code != PL_OK)
        return code;
    return pl_fail(err, PL_ECONFIG,
                   "no molecule has a score of \"%s\" (%s), and it is no descriptor such as mw or "
                   "logp",
                   name, known);
}

/* The scored property with that name; else the only one that has it beside a label in another unit, or whose name with its unit it is. */
static pl_code find_property(st_ranking *s, const char *name, int64_t *id, pl_error *err)
{
    return pl_db_int(s->env->store->db, id, err,
                     "SELECT coalesce(max(CASE name WHEN %Q THEN property_id END), CASE count(*) WHEN 1 THEN property_id END) "
                     "FROM property p WHERE (name IN (%Q, %Q||' ('||coalesce(nullif(unit,''),'model')||')') OR "
                     "name||' ('||coalesce(nullif(unit,''),'model')||')'=%Q) AND "
                     "EXISTS(SELECT 1 FROM score s WHERE s.property_id=p.property_id)",
                     name, name, name, name);
}

/* ---- the query ---- */

/* An objective as a column to sort by. The sign in front keeps SQLite from an index on it, in whose order the molecules lie all
 * over the file. The factor is a parameter, because a number in a text may be read as its neighbour. */
static void add_order(st_ranking *s, int i, const char *value)
{
    pl_text_addf(&s->values, ", +%s", value);
    if (s->use[i].factor != 0)
        pl_text_addf(&s->values, "+?%d*s%d.%s", i + 1, i, s->use[i].column);
    pl_text_addf(&s->values, " AS v%d", i);
    pl_text_addf(&s->order, "%s v%d%s", i ? "," : " ORDER BY", i, s->term[i]->goal == ST_MINIMISE ? "" : " DESC");
}

/* A value that no score has would give an empty ranking, and no reason. Asks if *code is PL_OK, and stores what came of it there. */
static void check_told(st_ranking *s, const st_objective *o, int64_t id, const char *column, const char *asked, pl_code *code,
                       pl_error *err)
{
    int64_t any = 1;

    if (*code == PL_OK)
        *code = pl_db_int(s->env->store->db, &any, err,
                          "SELECT EXISTS(SELECT 1 FROM score WHERE property_id=%lld AND %s IS NOT NULL)", (long long)id, column);
    if (*code != PL_OK || any != 0)
        return;
    *code = pl_fail(err, PL_ECONFIG,
                    strcmp(column, "stdev") == 0
                        ? "%s: no score of %s has %s: fewer than two models predict it in its unit"
                        : "%s: no score of %s has %s: the model file was written without it; train it again (--from train)",
                    asked, o->property, column);
}

/* Whether the scores of property `id` have what the objective and the settings ask for. */
static pl_code check_scores(st_ranking *s, int i, int64_t id, pl_error *err)
{
    const st_objective *o = s->term[i];
    pl_code code = PL_OK;

    if (o->similarity_at_least > 0)
        check_told(s, o, id, "similarity", "similarity_at_least", &code, err);
    if (s->use[i].factor != 0)
        check_told(s, o, id, s->use[i].column, "use", &code, err);
    if (s->conf->domain == ST_DOMAIN_INSIDE)
        check_told(s, o, id, "domain", "domain", &code, err);
    return code;
}

/* A condition of the query, counted under its rule. */
static void __attribute__((format(printf, 3, 4))) add_rule(st_ranking *s, st_rule rule, const char *fmt, ...)
{
    char condition[200];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(condition, sizeof condition, fmt, args);
    va_end(args);
    pl_text_addf(&s->where, " AND %s", condition);
    st_rank_rule(s, rule, condition);
}

/* Joins the scores of property `id` and adds the conditions on them. */
static void add_scores(st_ranking *s, int i, int64_t id)
{
    const double similarity = s->term[i]->similarity_at_least;
    char number[32];

    pl_text_addf(&s->from, " JOIN score s%d ON s%d.property_id=%lld AND s%d.mol_id=m.mol_id", i, i, (long long)id, i);
    pl_text_addf(&s->outer, " LEFT JOIN score s%d ON s%d.property_id=%lld AND s%d.mol_id=m.mol_id", i, i, (long long)id, i);
    if (s->use[i].factor != 0) /* else its uncertainty is unknown */
        add_rule(s, ST_RULE_VALUES, "s%d.%s IS NOT NULL", i, s->use[i].column);
    if (similarity > 0) /* NULL: unknown, does not satisfy it */
        add_rule(s, ST_RULE_SIMILARITY, "s%d.similarity>=%s", i, pl_real_str(similarity, number));
    if (s->conf->domain == ST_DOMAIN_INSIDE)
        add_rule(s, ST_RULE_DOMAIN, "s%d.domain='inside'", i);
}

/* The columns of term i, its value and the one that `use` adds, and the bounds of the value. */
static void add_columns(st_ranking *s, int i, bool is_score, const char *value)
{
    const st_objective *o = s->term[i];

    if (is_score)
        pl_text_addf(&s->select, ", %s, s%d.%s", value, i, s->use[i].factor != 0 ? s->use[i].column : "stdev");
    else
        pl_text_addf(&s->select, ", %s, NULL", value);
    if (s->conf->method == ST_PARETO && i < s->conf->objectives.n)
        add_order(s, i, value);
    add_rule(s, ST_RULE_VALUES, "%s IS NOT NULL", value);
    if (o->at_least != NULL)
        add_rule(s, ST_RULE_BOUNDS, "%s>=%s", value, o->at_least);
    if (o->at_most != NULL)
        add_rule(s, ST_RULE_BOUNDS, "%s<=%s", value, o->at_most);
}

/* One term of the query: a score, or a column of `molecule`. */
static pl_code add_term(st_ranking *s, int i, pl_error *err)
{
    const char *property = s->term[i]->property, *column = st_row_filter_column(property);
    char *value;
    int64_t id = 0;
    pl_code code = find_property(s, property, &id, err);

    if (code == PL_OK && id == 0 && column == NULL)
        return fail_unknown(s, property, err);
    if (id != 0)
        code = check_scores(s, i, id, err);
    if (code != PL_OK)
        return code;
    value = id != 0 ? pl_sprintf(s->env->mem, "s%d.mean", i) : pl_sprintf(s->env->mem, "m.%s", column);
    if (value == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for the ranking");
    add_columns(s, i, id != 0, value);
    if (id != 0)
        add_scores(s, i, id);
    return PL_OK;
}

pl_code st_rank_condition(const char **out, st_ranking *s, pl_error *err)
{
    bool functions = false;
    pl_code code = st_row_filter_sql(out, s->conf->where, s->env->store->db, &functions, s->env->mem, err);

    if (code == PL_OK && functions && !s->functions) {
        code = st_chemistry_add(s->env->store->db, NULL, err);
        s->functions = code == PL_OK;
    }
    return code;
}

/* The molecules for which the condition holds, as `m`. It sees the columns of molecule and nothing else. */
static pl_code add_molecules(st_ranking *s, pl_text *sql, pl_error *err)
{
    const char *condition = NULL;
    pl_code code = s->conf->where != NULL ? st_rank_condition(&condition, s, err) : PL_OK;

    if (s->conf->where == NULL)
        pl_text_add(sql, "molecule m");
    else if (code == PL_OK)
        pl_text_addf(sql, "(SELECT * FROM molecule WHERE (%s\n)) m", condition);
    return code;
}

/* Selects all candidates; if the id of a label is given, only those that have it, with its value in the last column. */
static pl_code prepare_for(st_ranking *s, int64_t label, sqlite3_stmt **out, pl_error *err)
{
    pl_text sql = { 0 };
    pl_code code = PL_OK;

    pl_text_addf(&sql, "SELECT m.mol_id, m.inchikey%s%s%s FROM ", pl_text_str(&s->select), pl_text_str(&s->values),
                 label ? ", known.value" : "");
    code = add_molecules(s, &sql, err);
    pl_text_add(&sql, pl_text_str(&s->from));
    if (label != 0)
        pl_text_addf(&sql, " JOIN label known ON known.mol_id=m.mol_id AND known.property_id=%lld", (long long)label);
    pl_text_addf(&sql, " WHERE 1%s%s", pl_text_str(&s->where), pl_text_str(&s->order));
    if (code != PL_OK) {
        pl_text_free(&sql);
        return code;
    }
    if (!pl_text_ok(&sql) || !pl_text_ok(&s->select) || !pl_text_ok(&s->values) || !pl_text_ok(&s->order) ||
        !pl_text_ok(&s->from) || !pl_text_ok(&s->where))
        code = pl_fail(err, PL_ENOMEM, "no memory for the ranking");
    else
        code = pl_db_prepare(s->env->store->db, out, sql.s, err);
    pl_text_free(&sql);
    for (int i = 0; code == PL_OK && s->values.len > 0 && i < s->conf->objectives.n; i++)
        if (s->use[i].factor != 0)
            (void)sqlite3_bind_double(*out, i + 1, s->use[i].factor);
    return code;
}

/* ---- the best ---- */

static bool lower_is_better(const st_ranking *s) { return s->conf->objectives.n == 1 && s->term[0]->goal == ST_MINIMISE; }

/* < 0: a ranks before b. */
static int compare(const st_ranking *s, const st_candidate *a, const st_candidate *b)
{
    int by_key;

    if (a->objective != b->objective)
        return (a->objective < b->objective) == lower_is_better(s) ? -1 : 1;
    by_key = strcmp(a->key, b->key);
    return by_key != 0 ? by_key : (a->mol_id > b->mol_id) - (a->mol_id < b->mol_id);
}

/* ---- a heap, the worst of the kept at best[0] ---- */

static void sink(const st_ranking *s, int64_t n, int64_t i)
{
    for (;;) {
        int64_t worst = i;
        for (int64_t k = 2 * i + 1; k <= 2 * i + 2 && k < n; k++)
            if (compare(s, &s->best[k], &s->best[worst]) > 0)
                worst = k;
        if (worst == i)
            return;
        st_candidate t = s->best[i];
        s->best[i] = s->best[worst];
        s->best[worst] = t;
        i = worst;
    }
}

static void rise(const st_ranking *s, int64_t i)
{
    while (i > 0 && compare(s, &s->best[i], &s->best[(i - 1) / 2]) > 0) {
        st_candidate t = s->best[i];
        s->best[i] = s->best[(i - 1) / 2];
        s->best[(i - 1) / 2] = t;
        i = (i - 1) / 2;
    }
}

static pl_code keep(st_ranking *s, int64_t max, const st_candidate *e, pl_error *err)
{
    if (s->n_best == max) {
        if (compare(s, e, &s->best[0]) < 0) {
            s->best[0] = *e;
            sink(s, s->n_best, 0);
        }
        return PL_OK;
    }
    if (s->n_best == s->cap) {
        int64_t cap = s->cap ? 2 * s->cap : 1024;
        st_candidate *grown = realloc(s->best, (size_t)cap * sizeof *grown);
        if (grown == NULL)
            return pl_fail(err, PL_ENOMEM, "no memory for a ranking of %lld molecules", (long long)cap);
        s->best = grown;
        s->cap = cap;
    }
    s->best[s->n_best++] = *e;
    rise(s, s->n_best - 1);
    return PL_OK;
}

/* Heap to sorted array, best first. */
static void sort_heap(st_ranking *s)
{
    for (int64_t n = s->n_best; n > 1; n--) {
        st_candidate t = s->best[0];
        s->best[0] = s->best[n - 1];
        s->best[n - 1] = t;
        sink(s, n - 1, 0);
    }
}

static double value_of(const st_ranking *s, sqlite3_stmt *st)
{
    int n = s->conf->objectives.n;
    double sum = 0;

    for (int i = 0; i < n; i++) {
        double x = sqlite3_column_double(st, 2 + 2 * i) + s->use[i].factor * sqlite3_column_double(st, 3 + 2 * i);
        if (n == 1)
            return x; /* one objective keeps its unit */
        sum += (s->term[i]->goal == ST_MINIMISE ? -1 : 1) * s->term[i]->weight * x;
    }
    return sum;
}

static st_candidate candidate_of(const st_ranking *s, sqlite3_stmt *st)
{
    st_candidate e = { .objective = value_of(s, st), .mol_id = sqlite3_column_int64(st, 0) };

    (void)snprintf(e.key, sizeof e.key, "%s", (const char *)sqlite3_column_text(st, 1));
    return e;
}

/* Sorting may take longer than a scheduler waits, and gives no row meanwhile. */
static int is_stopped(void *ctx) { return *((const st_ranking *)ctx)->env->stop != 0; }

pl_code st_rank_each(st_ranking *s, st_rank_give *give, void *ctx, pl_error *err)
{
    pl_code code = PL_OK;

    s->n_seen = s->n_candidates = 0;
    sqlite3_progress_handler(s->env->store->db, 1000000, is_stopped, s);
    while (pl_db_next(s->query, &code, err)) {
        st_candidate e = candidate_of(s, s->query);
        s->n_candidates += isfinite(e.objective);
        if (isfinite(e.objective))
            code = give(ctx, &e, err);
        if (++s->n_seen % PROGRESS_EVERY == 0)
            pl_progress_set(s->env->progress, s->n_seen, -1, NULL);
        if (code != PL_OK || *s->env->stop)
            break;
    }
    sqlite3_progress_handler(s->env->store->db, 0, NULL, NULL);
    (void)sqlite3_reset(s->query);
    return *s->env->stop ? pl_fail(err, PL_ESTOP, "stopped while ranking") : code;
}

typedef struct weighing {
    st_ranking *s;
    int64_t max;
    const st_candidate *after;
} weighing;

static pl_code weigh(void *ctx, const st_candidate *c, pl_error *err)
{
    const weighing *w = ctx;

    if (w->after == NULL && w->s->retrieval != NULL)
        st_retrieval_count(w->s->retrieval, c->objective);
    return w->after == NULL || compare(w->s, w->after, c) < 0 ? keep(w->s, w->max, c, err) : PL_OK;
}

/* ---- known actives ---- */

static pl_code find_label(st_ranking *s, int64_t *id, pl_error *err)
{
    pl_store *store = s->env->store;
    int64_t undecided = 0;
    pl_code code = pl_db_int(store->db, id, err,
                             "SELECT property_id FROM property p WHERE name=%Q AND EXISTS(SELECT 1 FROM label l "
                             "WHERE l.property_id=p.property_id)",
                             s->conf->actives);

    if (code == PL_OK && *id == 0)
        code = pl_fail(err, PL_ECONFIG, "actives: no molecule has a label called %s; there are: %s", s->conf->actives,
                       st_labels_stored(store, s->env->mem));
    return code == PL_OK ? st_classes_check(s->env, s->conf->actives, &undecided, err) : code;
}

static pl_code collect_labelled(st_ranking *s, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    int64_t label = 0;
    pl_code code = find_label(s, &label, err);

    if (code == PL_OK)
        code = st_retrieval_new(&s->retrieval, lower_is_better(s), err);
    if (code == PL_OK)
        code = prepare_for(s, label, &st, err);
    while (pl_db_next(st, &code, err)) {
        double value = value_of(s, st);
        if (*s->env->stop)
            code = pl_fail(err, PL_ESTOP, "stopped while ranking");
        else if (isfinite(value))
            code = st_retrieval_label(s->retrieval, value, sqlite3_column_double(st, sqlite3_column_count(st) - 1), err);
    }
    (void)sqlite3_finalize(st);
    return code;
}

static pl_code prepare(st_ranking *s, pl_error *err)
{
    pl_code code = PL_OK;

    for (int i = 0; i < s->n_terms && code == PL_OK; i++)
        code = add_term(s, i, err);
    if (code == PL_OK && s->conf->actives != NULL)
        code = collect_labelled(s, err);
    return code == PL_OK ? prepare_for(s, 0, &s->query, err) : code;
}

static pl_code next_by_weights(st_ranking *s, int64_t max, pl_error *err)
{
    const st_candidate last = s->n_best > 0 ? s->best[s->n_best - 1] : (st_candidate){ 0 };
    weighing w = { .s = s, .max = max, .after = s->n_before > 0 ? &last : NULL };
    pl_code code;

    s->n_best = 0;
    code = st_rank_each(s, weigh, &w, err);
    if (code == PL_OK)
        sort_heap(s);
    return code;
}

pl_code st_rank_next(st_ranking *s, int64_t max, pl_error *err)
{
    pl_code code = s->query != NULL ? PL_OK : prepare(s, err);

    s->n_before += s->n_best;
    if (code != PL_OK)
        return code;
    return s->conf->method == ST_PARETO ? st_rank_fronts(s, max, err) : next_by_weights(s, max, err);
}

void st_rank_free(st_ranking *s)
{
    (void)sqlite3_finalize(s->query);
    pl_text_free(&s->from);
    pl_text_free(&s->select);
    pl_text_free(&s->where);
    pl_text_free(&s->values);
    pl_text_free(&s->order);
    pl_text_free(&s->outer);
    for (int i = 0; i < ST_RULES; i++)
        pl_text_free(&s->rule[i]);
    st_retrieval_free(s->retrieval);
    free(s->best);
    free(s->hit);
    free(s->cluster);
}
