/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/rank.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/log.h"
#include "pipeline/progress.h"
#include "pipeline/settings.h"
#include "pipeline/store.h"
#include "pipeline/workflow.h"
#include "stages/score.h"
#include "stages/score_models.h"
#include "stages/where.h"

enum { MAXIMISE, MINIMISE, MAX_TERMS = 16, KEY = 28, PROGRESS_EVERY = 65536 };

typedef struct objective {
    const char *property, *use, *at_least, *at_most;
    int32_t goal;
    double weight;
} objective;

typedef struct rank_conf {
    pl_list objectives, constraints; /* objective */
    const char *where;
    int64_t top;
} rank_conf;

#define OF(member) offsetof(objective, member)
#define AT(member) offsetof(rank_conf, member)

static const pl_field objective_fields[] = {
    { PL_TEXT, "property", OF(property), 0, 0, 0, NULL, NULL, NULL, "scored property, or a descriptor: " ST_WHERE_COLUMNS,
      PL_REQUIRED, NULL, 0 },
    { PL_CHOICE, "goal", OF(goal), 0, 0, 0, NULL, "maximise|minimise", NULL, "which end is wanted", PL_REQUIRED, NULL, 0 },
    { PL_REAL, "weight", OF(weight), 1, 1e-9, 1e9, NULL, NULL, NULL, "factor in the sum of several objectives", 0, NULL, 0 },
    { PL_TEXT, "use", OF(use), 0, 0, 0, "mean", NULL, NULL, "value of several models: mean; or mean - 1.0*stdev, where two or more gave one", 0, NULL, 0 },
    { PL_TEXT, "at_least", OF(at_least), 0, 0, 0, NULL, NULL, NULL, "smallest value of a candidate", 0, NULL, 0 },
    { PL_TEXT, "at_most", OF(at_most), 0, 0, 0, NULL, NULL, NULL, "largest value of a candidate", 0, NULL, 0 },
    { 0 },
};

static const pl_field constraint_fields[] = {
    { PL_TEXT, "property", OF(property), 0, 0, 0, NULL, NULL, NULL, "scored property, or a descriptor: " ST_WHERE_COLUMNS,
      PL_REQUIRED, NULL, 0 },
    { PL_TEXT, "at_least", OF(at_least), 0, 0, 0, NULL, NULL, NULL, "smallest value of a candidate", 0, NULL, 0 },
    { PL_TEXT, "at_most", OF(at_most), 0, 0, 0, NULL, NULL, NULL, "largest value of a candidate", 0, NULL, 0 },
    { 0 },
};

static const pl_field fields[] = {
    { PL_LIST, "objectives", AT(objectives), 0, 1, MAX_TERMS, NULL, NULL, NULL, "what to rank by", PL_REQUIRED,
      objective_fields, sizeof(objective) },
    { PL_LIST, "constraints", AT(constraints), 0, 0, MAX_TERMS, NULL, NULL, NULL, "what a candidate must satisfy", 0,
      constraint_fields, sizeof(objective) },
    { PL_TEXT, "where", AT(where), 0, 0, 0, NULL, NULL, NULL,
      "SQL expression over descriptors that a candidate must satisfy: \"mw < 500 and logp <= 5\"", 0, NULL, 0 },
    { PL_INT, "top", AT(top), 1000, 1, 1000000, NULL, NULL, "molecules", "length of the ranking", 0, NULL, 0 },
    { 0 },
};

/* ---- before the run ---- */

/* The factor in "1.5*" or ""; false if it is neither. */
static bool read_factor(char *middle, double *k)
{
    size_t n = strlen(middle);

    *k = 1;
    if (n == 0)
        return true;
    if (middle[n - 1] != '*')
        return false;
    middle[n - 1] = '\0';
    return pl_parse_real(middle, k) && *k >= 0;
}

pl_code st_rank_factor(double *k, const char *use, pl_error *err)
{
    char word[64];
    size_t n = 0;
    bool good;

    for (const char *s = use; *s != '\0' && n < sizeof word - 1; s++)
        if (*s != ' ')
            word[n++] = *s;
    word[n] = '\0';
    *k = 0;
    if (strcmp(word, "mean") == 0)
        return PL_OK;
    good = n >= 10 && strncmp(word, "mean", 4) == 0 && (word[4] == '+' || word[4] == '-') &&
           strcmp(word + n - 5, "stdev") == 0;
    if (good) {
        word[n - 5] = '\0';
        good = read_factor(word + 5, k);
    }
    if (!good)
        return pl_fail(err, PL_ECONFIG, "use: \"%s\" is not mean, mean - k*stdev or mean + k*stdev", use);
    if (word[4] == '-')
        *k = -*k;
    return PL_OK;
}

static void check_bounds(const objective *o, const pl_step *step, pl_problems *problems)
{
    double low = -INFINITY, high = INFINITY;

    if (o->at_least != NULL && !pl_parse_real(o->at_least, &low))
        pl_problem_add(problems, step->node, "rank: at_least: \"%s\" is not a number", o->at_least);
    if (o->at_most != NULL && !pl_parse_real(o->at_most, &high))
        pl_problem_add(problems, step->node, "rank: at_most: \"%s\" is not a number", o->at_most);
    if (low > high)
        pl_problem_add(problems, step->node, "rank: %s cannot be at least %s and at most %s", o->property, o->at_least,
                       o->at_most);
}

/* A misspelt property must not be found only after all molecules have been scored. */
typedef struct known_names {
    const char *name[ST_MODELS_MAX + 16]; /* predicted, then descriptors */
    const char *own[ST_MODELS_MAX];       /* of the predicted            */
    int n, n_predicted;
} known_names;

static bool is_known(const known_names *k, const char *property)
{
    bool known = false;

    for (int i = 0; i < k->n && !known; i++)
        known = strcmp(k->name[i], property) == 0 || (i < k->n_predicted && strcmp(k->own[i], property) == 0);
    return known;
}

static void check_property(const pl_list *terms, const char *list, const known_names *k, const pl_step *step,
                           pl_problems *problems)
{
    const pl_node *nodes = pl_node_get(step->node, list);

    for (int32_t i = 0; i < terms->n; i++) {
        const char *property = ((const objective *)terms->items)[i].property;
        const pl_node *at = nodes && i < nodes->n ? pl_node_get(nodes->item[i], "property") : NULL;
        char what[160];
        (void)snprintf(what, sizeof what, "rank: \"%.60s\" is predicted by no model here and is no descriptor", property);
        if (!is_known(k, property))
            pl_unknown_name(problems, at ? at : step->node, what, property, k->name, k->n);
    }
}

/* One model has no spread: all of its molecules would be left out. */
static void check_spread(const pl_list *objectives, const known_names *k, const pl_step *step, pl_problems *problems)
{
    const objective *o = objectives->items;

    for (int32_t i = 0; i < objectives->n; i++) {
        int n = 0;
        double factor = 0;
        for (int j = 0; j < k->n_predicted; j++)
            n += strcmp(k->name[j], o[i].property) == 0 || strcmp(k->own[j], o[i].property) == 0;
        if (n < 2 && st_rank_factor(&factor, o[i].use ? o[i].use : "mean", NULL) == PL_OK && factor != 0)
            pl_problem_add(problems, step->node, "rank: use: \"%s\" needs two models of %s or more; there is %s", o[i].use,
                           o[i].property, n ? "one" : "none");
    }
}

static void check_properties(const pl_workflow *wf, const pl_step *step, pl_problems *problems)
{
    const rank_conf *c = step->conf;
    pl_arena *mem = pl_workflow_step(wf, "score") ? pl_arena_new(1 << 16) : NULL;
    known_names k;

    k.n = k.n_predicted = mem ? st_score_properties(wf, k.name, k.own, mem) : -1;
    if (k.n >= 0) {
        for (const char *const *d = st_where_columns; *d != NULL; d++)
            k.name[k.n++] = *d;
        check_property(&c->objectives, "objectives", &k, step, problems);
        check_property(&c->constraints, "constraints", &k, step, problems);
        check_spread(&c->objectives, &k, step, problems);
    }
    pl_arena_free(mem);
}

static void check(const pl_workflow *wf, const pl_step *step, pl_problems *problems)
{
    const rank_conf *c = step->conf;
    const objective *o = c->objectives.items, *k = c->constraints.items;
    pl_error err = { 0 };
    double factor;

    check_properties(wf, step, problems);
    if (c->objectives.n == 0 || c->objectives.n + c->constraints.n > MAX_TERMS)
        pl_problem_add(problems, step->node, "rank: 1 to %d objectives and constraints are allowed, %d are given",
                       (int)MAX_TERMS, (int)(c->objectives.n + c->constraints.n));
    for (int32_t i = 0; i < c->objectives.n; i++) {
        check_bounds(&o[i], step, problems);
        if (st_rank_factor(&factor, o[i].use ? o[i].use : "mean", &err) != PL_OK)
            pl_problem_add(problems, step->node, "rank: %s", err.text);
    }
    for (int32_t i = 0; i < c->constraints.n; i++) {
        check_bounds(&k[i], step, problems);
        if (k[i].at_least == NULL && k[i].at_most == NULL)
            pl_problem_add(problems, step->node, "rank: the constraint on %s has neither at_least nor at_most",
                           k[i].property);
    }
    if (c->where != NULL && st_where_check(c->where, &err) != PL_OK)
        pl_problem_add(problems, pl_node_get(step->node, "where"), "rank: %s", err.text);
}

/* ---- the query ---- */

typedef struct rank_state {
    pl_env *env;
    const rank_conf *conf;
    int n_terms; /* objectives, then constraints */
    const objective *term[MAX_TERMS];
    double factor[MAX_TERMS];
    pl_text from, select, where;
    struct entry *heap; /* the worst of the kept at [0] */
    size_t n, cap;
} rank_state;

typedef struct entry {
    double objective;
    int64_t mol_id;
    char key[KEY];
} entry;

static pl_code open_stage(void *state, pl_env *env, pl_error *err)
{
    rank_state *s = state;
    const rank_conf *c = env->step->conf;
    pl_code code = PL_OK;

    s->env = env;
    s->conf = c;
    for (int32_t i = 0; i < c->objectives.n; i++)
        s->term[s->n_terms++] = (const objective *)c->objectives.items + i;
    for (int32_t i = 0; i < c->constraints.n; i++)
        s->term[s->n_terms++] = (const objective *)c->constraints.items + i;
    for (int32_t i = 0; i < c->objectives.n && code == PL_OK; i++)
        code = st_rank_factor(&s->factor[i], s->term[i]->use ? s->term[i]->use : "mean", err);
    return code;
}

static void close_stage(void *state)
{
    rank_state *s = state;

    pl_text_free(&s->from);
    pl_text_free(&s->select);
    pl_text_free(&s->where);
    free(s->heap);
}

static pl_code fail_unknown(rank_state *s, const char *name, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    char known[128] = "nothing is scored";
    pl_code code = pl_db_prepare(s->env->store->db, &st, "SELECT group_concat(name,', ') FROM property WHERE property_id IN "
                                 "(SELECT property_id FROM score)", err);
    bool row = false;

    if (code == PL_OK)
        code = pl_db_step(st, &row, err);
    if (code == PL_OK && row && sqlite3_column_text(st, 0) != NULL)
        (void)snprintf(known, sizeof known, "scored: %s", (const char *)sqlite3_column_text(st, 0));
    (void)sqlite3_finalize(st);
    if (code != PL_OK)
        return code;
    return pl_fail(err, PL_ECONFIG, "no molecule has a score of \"%s\" (%s), and it is no descriptor such as mw or "
                   "logp", name, known);
}

/* The scored property with that name; else the only one that has it beside a label in another unit. */
static pl_code find_property(rank_state *s, const char *name, int64_t *id, pl_error *err)
{
    return pl_db_int(s->env->store->db, id, err,
                     "SELECT coalesce(max(CASE name WHEN %Q THEN property_id END), CASE count(*) WHEN 1 THEN max(property_id) END) "
                     "FROM property p WHERE name IN (%Q, %Q||' ('||coalesce(nullif(unit,''),'model')||')') AND "
                     "EXISTS(SELECT 1 FROM score s WHERE s.property_id=p.property_id)", name, name, name);
}

/* One term as columns value and stdev of the query. */
static pl_code add_term(rank_state *s, int i, pl_error *err)
{
    const objective *o = s->term[i];
    const char *column = st_where_column(o->property);
    char *value;
    int64_t id = 0;
    pl_code code = find_property(s, o->property, &id, err);

    if (code != PL_OK)
        return code;
    if (id == 0 && column == NULL)
        return fail_unknown(s, o->property, err);
    value = id != 0 ? pl_sprintf(s->env->mem, "s%d.mean", i) : pl_sprintf(s->env->mem, "m.%s", column);
    if (value == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for the ranking");
    if (id != 0) {
        pl_text_addf(&s->from, " JOIN score s%d ON s%d.property_id=%lld AND s%d.mol_id=m.mol_id", i, i, (long long)id, i);
        pl_text_addf(&s->select, ", %s, s%d.stdev", value, i);
    } else {
        pl_text_addf(&s->select, ", %s, NULL", value);
    }
    pl_text_addf(&s->where, " AND %s IS NOT NULL", value);
    if (id != 0 && s->factor[i] != 0)
        pl_text_addf(&s->where, " AND s%d.stdev IS NOT NULL", i); /* one prediction: how sure it is, nobody knows */
    if (o->at_least != NULL)
        pl_text_addf(&s->where, " AND %s>=%s", value, o->at_least);
    if (o->at_most != NULL)
        pl_text_addf(&s->where, " AND %s<=%s", value, o->at_most);
    return PL_OK;
}

static pl_code prepare_query(rank_state *s, sqlite3_stmt **out, pl_error *err)
{
    pl_text sql = { 0 };
    pl_code code = PL_OK;

    for (int i = 0; i < s->n_terms && code == PL_OK; i++)
        code = add_term(s, i, err);
    if (code != PL_OK)
        return code;
    pl_text_addf(&sql, "SELECT m.mol_id, m.inchikey%s FROM ", pl_text_str(&s->select));
    /* The condition sees the columns of molecule and nothing else. */
    pl_text_addf(&sql, s->conf->where ? "(SELECT * FROM molecule WHERE (%s\n)) m" : "molecule m", s->conf->where);
    pl_text_addf(&sql, "%s WHERE 1%s", pl_text_str(&s->from), pl_text_str(&s->where));
    if (!pl_text_ok(&sql) || !pl_text_ok(&s->select) || !pl_text_ok(&s->from) || !pl_text_ok(&s->where))
        code = pl_fail(err, PL_ENOMEM, "no memory for the ranking");
    else
        code = pl_db_prepare(s->env->store->db, out, sql.s, err);
    pl_text_free(&sql);
    return code;
}

/* ---- the best ---- */

static bool lower_is_better(const rank_state *s)
{
    return s->conf->objectives.n == 1 && s->term[0]->goal == MINIMISE;
}

/* < 0: a ranks before b. */
static int compare(const rank_state *s, const entry *a, const entry *b)
{
    int by_key;

    if (a->objective != b->objective)
        return (a->objective < b->objective) == lower_is_better(s) ? -1 : 1;
    by_key = strcmp(a->key, b->key);
    return by_key != 0 ? by_key : (a->mol_id > b->mol_id) - (a->mol_id < b->mol_id);
}

static void sink(const rank_state *s, size_t n, size_t i)
{
    for (;;) {
        size_t worst = i;
        for (size_t k = 2 * i + 1; k <= 2 * i + 2 && k < n; k++)
            if (compare(s, &s->heap[k], &s->heap[worst]) > 0)
                worst = k;
        if (worst == i)
            return;
        entry t = s->heap[i];
        s->heap[i] = s->heap[worst];
        s->heap[worst] = t;
        i = worst;
    }
}

static void rise(const rank_state *s, size_t i)
{
    while (i > 0 && compare(s, &s->heap[i], &s->heap[(i - 1) / 2]) > 0) {
        entry t = s->heap[i];
        s->heap[i] = s->heap[(i - 1) / 2];
        s->heap[(i - 1) / 2] = t;
        i = (i - 1) / 2;
    }
}

static pl_code keep(rank_state *s, const entry *e, pl_error *err)
{
    if (s->n == (size_t)s->conf->top) {
        if (compare(s, e, &s->heap[0]) < 0) {
            s->heap[0] = *e;
            sink(s, s->n, 0);
        }
        return PL_OK;
    }
    if (s->n == s->cap) {
        size_t cap = s->cap ? 2 * s->cap : 1024;
        entry *grown = realloc(s->heap, cap * sizeof *grown);
        if (grown == NULL)
            return pl_fail(err, PL_ENOMEM, "no memory for a ranking of %zu molecules", cap);
        s->heap = grown;
        s->cap = cap;
    }
    s->heap[s->n++] = *e;
    rise(s, s->n - 1);
    return PL_OK;
}

static double value_of(const rank_state *s, sqlite3_stmt *st)
{
    int n = s->conf->objectives.n;
    double sum = 0;

    for (int i = 0; i < n; i++) {
        double x = sqlite3_column_double(st, 2 + 2 * i) + s->factor[i] * sqlite3_column_double(st, 3 + 2 * i);
        if (n == 1)
            return x; /* one objective keeps its unit */
        sum += (s->term[i]->goal == MINIMISE ? -1 : 1) * s->term[i]->weight * x;
    }
    return sum;
}

static pl_code collect(rank_state *s, sqlite3_stmt *st, int64_t *n_seen, pl_error *err)
{
    bool row = true;
    pl_code code = PL_OK;

    while (code == PL_OK && row) {
        entry e = { 0 };
        code = pl_db_step(st, &row, err);
        if (code != PL_OK || !row)
            break;
        e.objective = value_of(s, st);
        e.mol_id = sqlite3_column_int64(st, 0);
        (void)snprintf(e.key, sizeof e.key, "%s", (const char *)sqlite3_column_text(st, 1));
        if (isfinite(e.objective))
            code = keep(s, &e, err);
        if (++*n_seen % PROGRESS_EVERY == 0) {
            pl_progress_set(s->env->progress, *n_seen, -1, NULL);
            if (*s->env->stop)
                code = pl_fail(err, PL_ESTOP, "stopped while ranking");
        }
    }
    return code;
}

/* ---- storing ---- */

/* Heap to sorted array, best first. */
static void sort_heap(rank_state *s)
{
    for (size_t n = s->n; n > 1; n--) {
        entry t = s->heap[0];
        s->heap[0] = s->heap[n - 1];
        s->heap[n - 1] = t;
        sink(s, n - 1, 0);
    }
}

static pl_code store_hits(rank_state *s, pl_error *err)
{
    sqlite3 *db = s->env->store->db;
    sqlite3_stmt *st = NULL;
    pl_code code = pl_db_begin(db, err);

    if (code == PL_OK)
        code = pl_db_exec(db, "DELETE FROM hit", err);
    if (code == PL_OK)
        code = pl_db_prepare(db, &st, "INSERT INTO hit(rank, mol_id, objective) VALUES(?,?,?)", err);
    for (size_t i = 0; i < s->n && code == PL_OK; i++) {
        (void)sqlite3_bind_int64(st, 1, (int64_t)i + 1);
        (void)sqlite3_bind_int64(st, 2, s->heap[i].mol_id);
        (void)sqlite3_bind_double(st, 3, s->heap[i].objective);
        code = pl_db_run(st, err);
    }
    (void)sqlite3_finalize(st);
    return code; /* the runner marks the stage done in the same transaction */
}

static pl_code finish(void *state, pl_error *err)
{
    rank_state *s = state;
    sqlite3_stmt *st = NULL;
    int64_t n_seen = 0;
    pl_code code = prepare_query(s, &st, err);

    if (code == PL_OK)
        code = collect(s, st, &n_seen, err);
    (void)sqlite3_finalize(st);
    if (code != PL_OK)
        return code;
    sort_heap(s);
    pl_progress_set(s->env->progress, n_seen, n_seen, NULL);
    code = store_hits(s, err);
    if (code == PL_OK && s->n == 0)
        code = pl_event_add(s->env, PL_WARN, "no molecule satisfies the constraints; the ranking is empty");
    return code;
}

static bool reads_blocks(const pl_step *step)
{
    (void)step;
    return false;
}

static const char *const needs[] = { "prepare", "(score)", NULL };
static const char *const reset_sql[] = { "DELETE FROM hit", NULL };

const pl_stage st_rank = {
    .name = "rank",
    .help = "order the molecules by predicted properties",
    .scope = PL_WHOLE,
    .version = 2,
    .fields = fields,
    .conf_size = sizeof(rank_conf),
    .state_size = sizeof(rank_state),
    .needs = needs, .reads_blocks = reads_blocks,
    .item = "molecules",
    .check = check,
    .open = open_stage,
    .finish = finish,
    .close = close_stage,
    .reset_sql = reset_sql,
};
