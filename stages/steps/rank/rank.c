/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/rank/rank.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/base/log.h"
#include "pipeline/run/progress.h"
#include "pipeline/store/store.h"
#include "pipeline/workflow/settings.h"
#include "pipeline/workflow/workflow.h"
#include "stages/database/measured.h"
#include "stages/expression/expression.h"
#include "stages/expression/row_filter.h"
#include "stages/steps/ingest/condition.h"
#include "stages/steps/ingest/positions.h"
#include "stages/steps/ingest/prepare.h"
#include "stages/steps/rank/rank_parts.h"
#include "stages/steps/score/score.h"
#include "stages/steps/train/score_models.h"

enum { SIMILAR_MAX = 100000 };

#define OF(member) offsetof(st_objective, member)
#define AT(member) offsetof(st_rank_conf, member)

#define SIMILARITY_FIELD                                                                                                \
    {                                                                                                                   \
        PL_REAL, "similarity_at_least", OF(similarity_at_least),                                                        \
            .min = 0, .max = 1, .flags = PL_LATER,                                                                      \
            .help = "minimum Tanimoto similarity (ECFP4) to the nearest training molecule of the models; 0: no minimum" \
    }

static const pl_field objective_fields[] = {
    { PL_TEXT, "property", OF(property), .flags = PL_REQUIRED, .help = "scored property, or a descriptor: " ST_ROW_FILTER_COLUMNS },
    { PL_CHOICE, "goal", OF(goal), .choices = "maximise|minimise", .flags = PL_REQUIRED, .help = "which end is wanted" },
    { PL_REAL, "weight", OF(weight), .dflt = 1, .min = 1e-9, .max = 1e9, .help = "factor in the sum of several objectives" },
    { PL_TEXT, "use", OF(use), .text = "mean",
      .help =
          "value to rank by: mean, over the models; mean - 1.0*stdev, if two or more models predict it; mean - 1.0*interval90: the "
          "lower end of the 90 % prediction interval" },
    { PL_TEXT, "at_least", OF(at_least), .help = "smallest value of a candidate" },
    { PL_TEXT, "at_most", OF(at_most), .help = "largest value of a candidate" },
    SIMILARITY_FIELD,
    { 0 },
};

static const pl_field constraint_fields[] = {
    { PL_TEXT, "property", OF(property), .flags = PL_REQUIRED, .help = "scored property, or a descriptor: " ST_ROW_FILTER_COLUMNS },
    { PL_TEXT, "at_least", OF(at_least), .help = "smallest value of a candidate" },
    { PL_TEXT, "at_most", OF(at_most), .help = "largest value of a candidate" },
    SIMILARITY_FIELD,
    { 0 },
};

static const pl_field fields[] = {
    { PL_LIST, "objectives", AT(objectives), .min = 1, .max = ST_TERMS_MAX, .flags = PL_REQUIRED, .sub = objective_fields,
      .sub_size = sizeof(st_objective), .help = "what to rank by" },
    { PL_LIST, "constraints", AT(constraints), .min = 0, .max = ST_TERMS_MAX, .sub = constraint_fields,
      .sub_size = sizeof(st_objective), .help = "what a candidate must satisfy" },
    { PL_TEXT, "where", AT(where),
      .help =
          "SQL expression that a candidate must satisfy: \"mw < 500 and not smarts('[N+](=O)[O-]')\"; also similarity('SMILES') > 0.5, "
          "scaffold = 'SMILES'" },
    { PL_INT, "top", AT(top), .dflt = 1000, .min = 1, .max = 1000000, .unit = "molecules", .help = "length of the ranking" },
    { PL_TEXT, "actives", AT(actives), .flags = PL_LATER,
      .help =
          "label that is 1 for known actives, else 0 or missing: the early enrichment of actives among all candidates is reported" },
    { PL_CHOICE, "method", AT(method), .dflt = ST_WEIGHTED, .choices = "weighted|pareto", .flags = PL_LATER,
      .help =
          "several objectives: weighted: by the weighted sum of their values; pareto: by Pareto fronts, the non-dominated molecules "
          "first, and in a front by crowding distance, the largest first" },
    { PL_CHOICE, "domain", AT(domain), .dflt = ST_DOMAIN_ANY, .choices = "any|inside", .flags = PL_LATER,
      .help = "inside: only molecules inside of the applicability domain of their models (score.domain)" },
    { PL_CHOICE, "diversity.by", AT(diverse_by), .dflt = ST_DIVERSE_NONE, .choices = "none|scaffold|similarity", .flags = PL_LATER,
      .help =
          "which candidates are left out in favour of better ones: none; scaffold: those beyond `at_most` hits of one Bemis-Murcko "
          "scaffold (a molecule without rings has none); similarity: those whose Tanimoto similarity (ECFP4) to a better hit is above "
          "`threshold`" },
    { PL_INT, "diversity.at_most", AT(at_most), .dflt = ST_RANK_AT_MOST, .min = 1, .max = 1000000, .unit = "molecules",
      .flags = PL_LATER, .help = "scaffold: maximum hits with the same scaffold" },
    { PL_REAL, "diversity.threshold", AT(threshold), .dflt = ST_RANK_THRESHOLD, .min = 0, .max = 1, .flags = PL_LATER,
      .help = "similarity: maximum between two hits" },
    { 0 },
};

/* ---- before the run ---- */

static const char *spatial_of(const pl_list *terms)
{
    const st_objective *o = terms->items;

    for (int32_t k = 0; k < terms->n; k++)
        if (o[k].property != NULL && (strcmp(o[k].property, "energy") == 0 || strcmp(o[k].property, "structures") == 0))
            return o[k].property;
    return NULL;
}

/* The objective or constraint that is a number of built structures; NULL: none is. */
static const char *spatial(const st_rank_conf *c)
{
    const char *of_objectives = spatial_of(&c->objectives);

    return of_objectives != NULL ? of_objectives : spatial_of(&c->constraints);
}

static bool wants(const pl_workflow *wf, const pl_step *step, const char *what)
{
    const st_rank_conf *c = step->conf;

    (void)wf;
    if (strcmp(what, ST_POSITIONS) != 0)
        return false;
    return spatial(c) != NULL || st_condition_is_spatial(c->where);
}

static void settle(const pl_workflow *wf, void *conf)
{
    st_rank_conf *c = conf, dflt;

    (void)wf;
    pl_fields_default(fields, &dflt);
    if (c->diverse_by != ST_DIVERSE_SCAFFOLD)
        c->at_most = dflt.at_most;
    if (c->diverse_by != ST_DIVERSE_SIMILARITY)
        c->threshold = dflt.threshold;
}

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

pl_code st_rank_use(st_use *out, const char *use, pl_error *err)
{
    static const char *const columns[] = { "stdev", "interval90" };
    char word[64];
    size_t n = 0;
    int c = 0;
    bool good;

    for (const char *s = use != NULL ? use : "mean"; *s != '\0' && n < sizeof word - 1; s++)
        if (*s != ' ')
            word[n++] = *s;
    word[n] = '\0';
    *out = (st_use){ 0, columns[0] };
    if (strcmp(word, "mean") == 0)
        return PL_OK;
    c = pl_ends_with(word, columns[1]);
    good = strncmp(word, "mean", 4) == 0 && (word[4] == '+' || word[4] == '-') && pl_ends_with(word + 5, columns[c]);
    if (good) {
        word[n - strlen(columns[c])] = '\0';
        good = read_factor(word + 5, &out->factor);
    }
    if (!good)
        return pl_fail(err, PL_ECONFIG, "use: \"%s\" is not valid; write for example mean, mean - 1.5*stdev or mean + 1*interval90",
                       use);
    *out = (st_use){ word[4] == '-' ? -out->factor : out->factor, columns[c] };
    return PL_OK;
}

static void check_bounds(const st_objective *o, const pl_step *step, pl_problems *problems)
{
    double low = -INFINITY, high = INFINITY;

    if (o->at_least != NULL && !pl_parse_real(o->at_least, &low))
        pl_problem_add(problems, step->node, "rank: at_least: \"%s\" is not a number", o->at_least);
    if (o->at_most != NULL && !pl_parse_real(o->at_most, &high))
        pl_problem_add(problems, step->node, "rank: at_most: \"%s\" is not a number", o->at_most);
    if (low > high)
        pl_problem_add(problems, step->node, "rank: %s cannot be at least %s and at most %s", o->property, o->at_least, o->at_most);
}

static bool has_bound(const st_objective *o) { return o->at_least != NULL || o->at_most != NULL || o->similarity_at_least > 0; }

/* A misspelt property must be found before all molecules have been scored. */
typedef struct known_names {
    st_predicted predicted[ST_SCORES_MAX];
    const char *name[ST_SCORES_MAX + 16]; /* of these, then of descriptors */
    int n, n_predicted;
} known_names;

static bool is_called(const known_names *k, int i, const char *property)
{
    return strcmp(k->name[i], property) == 0 || (i < k->n_predicted && strcmp(k->predicted[i].own, property) == 0);
}

static bool is_known(const known_names *k, const char *property)
{
    bool known = false;

    for (int i = 0; i < k->n && !known; i++)
        known = is_called(k, i, property);
    return known;
}

/* Two predictions of one name in two units are two properties, and which of them has the plain name depends on what came first. */
static void check_units(const known_names *k, const char *property, const pl_node *at, pl_problems *problems)
{
    const st_predicted *first = NULL;

    for (int i = 0; i < k->n_predicted; i++) {
        const st_predicted *p = &k->predicted[i];
        if (strcmp(p->name, property) != 0 || p->unit[0] == '\0')
            continue;
        first = first != NULL ? first : p;
        if (strcmp(first->unit, p->unit) == 0)
            continue;
        pl_problem_add(problems, at, "rank: \"%.60s\" is predicted in %s and in %s: write \"%s\" or \"%s\"", property, first->unit,
                       p->unit, first->own, p->own);
        return;
    }
}

static void check_property(const pl_list *terms, const char *list, const known_names *k, const pl_step *step, pl_problems *problems)
{
    const pl_node *nodes = pl_node_get(step->node, list);

    for (int32_t i = 0; i < terms->n; i++) {
        const char *property = ((const st_objective *)terms->items)[i].property;
        const pl_node *at = nodes != NULL && i < nodes->n ? pl_node_get(nodes->item[i], "property") : NULL;
        char what[160];
        (void)snprintf(what, sizeof what, "rank: \"%.60s\" is predicted by no model here and is no descriptor", property);
        if (!is_known(k, property))
            pl_unknown_name(problems, at != NULL ? at : step->node, what, property, k->name, k->n);
        check_units(k, property, at != NULL ? at : step->node, problems);
    }
}

/* The most models of a property that may predict it in one unit. Those of other units have properties of their own. */
static int most_of_a_unit(const known_names *k, const char *property)
{
    int most = 0;

    for (int i = 0; i < k->n_predicted; i++) {
        int n = 0;
        for (int j = 0; j < k->n_predicted; j++)
            n += is_called(k, i, property) && is_called(k, j, property) &&
                 (k->predicted[j].unit[0] == '\0' || strcmp(k->predicted[i].unit, k->predicted[j].unit) == 0);
        most = n > most ? n : most;
    }
    return most;
}

/* One model has no stdev, a model without calibration has no interval: all of its molecules would be left out. */
static void check_use(const pl_list *objectives, const known_names *k, const pl_step *step, pl_problems *problems)
{
    const st_objective *o = objectives->items;

    for (int32_t i = 0; i < objectives->n; i++) {
        int n = 0, n_silent = 0;
        st_use use;
        for (int j = 0; j < k->n_predicted; j++) {
            n += is_called(k, j, o[i].property);
            n_silent += is_called(k, j, o[i].property) && !k->predicted[j].interval;
        }
        if (st_rank_use(&use, o[i].use, NULL) != PL_OK || use.factor == 0)
            continue;
        if (strcmp(use.column, "stdev") == 0 ? n < 2 : n == 0)
            pl_problem_add(problems, step->node, "rank: use: \"%s\" needs %s of %s%s; there is %s", o[i].use,
                           strcmp(use.column, "stdev") == 0 ? "two models" : "a model", o[i].property,
                           strcmp(use.column, "stdev") == 0 ? " or more" : "", n ? "one" : "none");
        else if (strcmp(use.column, "stdev") == 0 && most_of_a_unit(k, o[i].property) < 2)
            pl_problem_add(problems, step->node,
                           "rank: use: \"%s\" needs two models or more of %s in one unit; each of the %d has another", o[i].use,
                           o[i].property, n);
        else if (strcmp(use.column, "stdev") != 0 && n_silent > 0)
            pl_problem_add(problems, step->node,
                           "rank: use: \"%s\": a model of %s has no prediction interval: it predicts classes, had too few "
                           "molecules for calibration, or was trained by an older molsieve; train it "
                           "again",
                           o[i].use, o[i].property);
    }
}

/* A property without similarity would leave out every molecule. k: NULL when the predictions are unknown. */
static void check_similarity(const pl_list *terms, const known_names *k, const pl_step *step, pl_problems *problems)
{
    const st_objective *o = terms->items;

    for (int32_t i = 0; i < terms->n; i++) {
        int n = 0, n_silent = 0;
        for (int j = 0; k != NULL && j < k->n_predicted; j++) {
            n += is_called(k, j, o[i].property);
            n_silent += is_called(k, j, o[i].property) && !k->predicted[j].domain;
        }
        if (o[i].similarity_at_least > 0 && n == 0 && st_row_filter_column(o[i].property) != NULL)
            pl_problem_add(problems, step->node,
                           "rank: similarity_at_least: %s is a descriptor; only predicted properties have a similarity to "
                           "training molecules",
                           o[i].property);
        if (o[i].similarity_at_least > 0 && n_silent > 0)
            pl_problem_add(problems, step->node,
                           "rank: similarity_at_least: a model of %s has no fingerprints of its training molecules; train "
                           "it again (train.domain)",
                           o[i].property);
    }
}

/* An unknown domain does not count as inside: every molecule would be left out. k: NULL when the predictions are unknown. */
static void check_domain(const st_rank_conf *c, const known_names *k, const pl_step *step, pl_problems *problems)
{
    int n = 0;

    if (c->domain != ST_DOMAIN_INSIDE)
        return;
    for (int t = 0; t < c->objectives.n + c->constraints.n; t++) {
        const st_objective *o = t < c->objectives.n ? (const st_objective *)c->objectives.items + t
                                                    : (const st_objective *)c->constraints.items + (t - c->objectives.n);
        for (int j = 0; k != NULL && j < k->n_predicted; j++) {
            n += is_called(k, j, o->property);
            if (is_called(k, j, o->property) && !k->predicted[j].range)
                pl_problem_add(problems, step->node, "rank: domain: %s of %s has no applicability domain%s",
                               k->predicted[j].program ? "the program" : "a model", o->property,
                               k->predicted[j].program ? "" : "; train it again");
        }
    }
    if (k != NULL && n == 0)
        pl_problem_add(problems, step->node, "rank: domain: inside needs an objective or constraint that a model predicts");
}

/* A name in `where` is a column; elsewhere in this step it is the property, if one is scored. */
static void check_ambiguous(const st_rank_conf *c, const known_names *k, const pl_step *step, pl_problems *problems)
{
    pl_error err = { 0 };
    pl_code code = PL_OK;

    for (int i = 0; i < k->n_predicted && code == PL_OK; i++)
        code = st_row_filter_ambiguous(c->where, k->predicted[i].name, &err);
    if (code != PL_OK)
        st_expression_problem(problems, pl_node_get(step->node, "where"), "rank", 0, &err);
}

/* A prediction of that name is not meant. k: NULL when the predictions are unknown. */
static void check_spatial(const st_rank_conf *c, const known_names *k, const pl_workflow *wf, const pl_step *step,
                          pl_problems *problems)
{
    const pl_step *prepare = pl_workflow_step(wf, "prepare");
    const char *name = spatial(c);
    bool predicted = false;

    if (k == NULL || name == NULL || prepare == NULL || !st_prepare_is_flat(prepare->conf))
        return;
    for (int i = 0; i < k->n_predicted; i++)
        predicted = predicted || is_called(k, i, name);
    if (!predicted)
        pl_problem_add(problems, step->node,
                       "rank: %s is NULL, as no structures are built; set stages.prepare.conformers.source: generate", name);
}

static void check_properties(const pl_workflow *wf, const pl_step *step, pl_problems *problems)
{
    const st_rank_conf *c = step->conf;
    const bool scores = pl_workflow_step(wf, "score") != NULL || pl_workflow_step(wf, "external") != NULL;
    const bool has_condition = c->where != NULL && st_condition_check(wf, step, c->where, problems);
    pl_arena *mem = scores ? pl_arena_new(1 << 16) : NULL;
    known_names k;

    k.n = k.n_predicted = mem != NULL ? st_score_properties(wf, k.predicted, mem) : -1;
    for (int i = 0; i < k.n; i++)
        k.name[i] = k.predicted[i].name;
    check_similarity(&c->objectives, k.n >= 0 ? &k : NULL, step, problems);
    check_similarity(&c->constraints, k.n >= 0 ? &k : NULL, step, problems);
    check_domain(c, k.n >= 0 ? &k : NULL, step, problems);
    check_spatial(c, k.n >= 0 || !scores ? &k : NULL, wf, step, problems);
    if (k.n >= 0) {
        for (const char *const *d = st_row_filter_columns; *d != NULL; d++)
            k.name[k.n++] = *d;
        check_property(&c->objectives, "objectives", &k, step, problems);
        check_property(&c->constraints, "constraints", &k, step, problems);
        check_use(&c->objectives, &k, step, problems);
        if (has_condition)
            check_ambiguous(c, &k, step, problems);
    }
    pl_arena_free(mem);
}

static void check(const pl_workflow *wf, const pl_step *step, pl_problems *problems)
{
    const st_rank_conf *c = step->conf;
    const st_objective *o = c->objectives.items, *k = c->constraints.items;
    pl_error err = { 0 };
    st_use use;

    check_properties(wf, step, problems);
    if (c->actives != NULL)
        st_label_check(wf, step, c->actives, problems);
    if (c->objectives.n == 0 || c->objectives.n + c->constraints.n > ST_TERMS_MAX)
        pl_problem_add(problems, step->node, "rank: 1 to %d objectives and constraints are allowed, %d are given",
                       (int)ST_TERMS_MAX, (int)(c->objectives.n + c->constraints.n));
    for (int32_t i = 0; i < c->objectives.n; i++) {
        check_bounds(&o[i], step, problems);
        if (st_rank_use(&use, o[i].use, &err) != PL_OK)
            pl_problem_add(problems, step->node, "rank: %s", err.text);
    }
    for (int32_t i = 0; i < c->constraints.n; i++) {
        check_bounds(&k[i], step, problems);
        if (!has_bound(&k[i]))
            pl_problem_add(problems, step->node, "rank: the constraint on %s has neither at_least nor at_most", k[i].property);
    }
    if (c->method == ST_PARETO && c->objectives.n < 2)
        pl_problem_add(problems, step->node, "rank: method: pareto needs two objectives or more; with one, use method: weighted");
    if (c->method == ST_PARETO && c->actives != NULL)
        pl_problem_add(problems, step->node,
                       "rank: actives cannot be used with method: pareto, which does not order all candidates");
    if (c->diverse_by == ST_DIVERSE_SIMILARITY && c->top > SIMILAR_MAX)
        pl_problem_add(problems, step->node, "rank: diversity by similarity compares all hits with each other: top is at most %d",
                       (int)SIMILAR_MAX);
}

/* ---- the ranking ---- */

static pl_code open_stage(void *state, pl_env *env, pl_error *err)
{
    st_ranking *s = state;
    const st_rank_conf *c = env->step->conf;
    pl_code code = PL_OK;

    s->env = env;
    s->conf = c;
    for (int32_t i = 0; i < c->objectives.n; i++)
        s->term[s->n_terms++] = (const st_objective *)c->objectives.items + i;
    for (int32_t i = 0; i < c->constraints.n; i++)
        s->term[s->n_terms++] = (const st_objective *)c->constraints.items + i;
    for (int32_t i = 0; i < c->objectives.n && code == PL_OK; i++)
        code = st_rank_use(&s->use[i], s->term[i]->use, err);
    return code;
}

static void close_stage(void *state) { st_rank_free(state); }

static bool is_diverse(const st_rank_conf *c) { return c->diverse_by != ST_DIVERSE_NONE; }

static pl_code store_hit(sqlite3_stmt *st, int64_t rank, const st_candidate *c, const st_cluster *cluster, pl_error *err)
{
    (void)sqlite3_bind_int64(st, 1, rank);
    (void)sqlite3_bind_int64(st, 2, c->mol_id);
    (void)sqlite3_bind_double(st, 3, c->objective);
    if (c->front > 0)
        (void)sqlite3_bind_int(st, 6, c->front);
    if (cluster != NULL) {
        (void)sqlite3_bind_int64(st, 4, cluster->first);
        (void)sqlite3_bind_int64(st, 5, cluster->n_similar);
    }
    return pl_db_run(st, err);
}

static pl_code store_hits(const st_ranking *s, pl_error *err)
{
    const st_candidate *hit = is_diverse(s->conf) ? s->hit : s->best;
    sqlite3 *db = s->env->store->db;
    sqlite3_stmt *st = NULL;
    pl_code code = pl_db_begin(db, err);

    if (code == PL_OK)
        code = pl_db_exec(db, "DELETE FROM hit; DELETE FROM metric WHERE stage='rank'", err);
    if (code == PL_OK)
        code =
            pl_db_prepare(db, &st, "INSERT INTO hit(rank, mol_id, objective, cluster, n_similar, front) VALUES(?,?,?,?,?,?)", err);
    for (int64_t i = 0; i < s->n_hits && code == PL_OK; i++)
        code = store_hit(st, i + 1, &hit[i], s->cluster != NULL ? &s->cluster[i] : NULL, err);
    (void)sqlite3_finalize(st);
    return code; /* the runner marks the stage done in the same transaction */
}

/* "100 ranked of 3,210 candidates, 512 left out as too similar to better ones" */
static void say(const st_ranking *s)
{
    char hits[32], all[32], number[32], passed[80] = "";
    pl_text funnel = { 0 };

    st_rank_funnel_say(&funnel, s);
    if (is_diverse(s->conf))
        (void)snprintf(passed, sizeof passed, ", %s left out as too similar to better ones", pl_count_str(s->n_passed, number));
    if (s->n_candidates == 0)
        pl_event_add(s->env, PL_WARN, "no molecule satisfies the constraints; the ranking is empty%s", pl_text_str(&funnel));
    else
        pl_event_add(s->env, PL_INFO, "%s ranked of %s candidates%s%s", pl_count_str(s->n_hits, hits),
                     pl_count_str(s->n_candidates, all), passed, pl_text_str(&funnel));
    pl_text_free(&funnel);
}

static pl_code finish(void *state, pl_error *err)
{
    st_ranking *s = state;
    pl_code code = is_diverse(s->conf) ? st_rank_diverse(s, err) : st_rank_next(s, s->conf->top, err);

    if (code != PL_OK)
        return code;
    if (!is_diverse(s->conf))
        s->n_hits = s->n_best;
    code = st_rank_count(s, err);
    if (code != PL_OK)
        return code;
    pl_progress_set(s->env->progress, s->n_seen, s->n_seen, NULL);
    code = store_hits(s, err);
    if (code == PL_OK)
        code = st_rank_funnel_put(s, err);
    if (code == PL_OK && s->retrieval != NULL)
        code = st_retrieval_put(s->retrieval, s->env, s->conf->actives, err);
    if (code == PL_OK)
        code = st_rank_odd(s, err);
    if (code == PL_OK)
        say(s);
    return code;
}

/* Labels that came later tell who is active. */
static pl_code key(const pl_workflow *wf, const pl_step *step, pl_store *store, const char **extra_json, pl_arena *mem,
                   pl_error *err)
{
    const st_rank_conf *c = step->conf;

    (void)wf;
    return c->actives != NULL ? st_measured_key(extra_json, store, &c->actives, 1, mem, err) : PL_OK;
}

/* Only a diverse ranking reads structures, to compute similarities. */
static bool reads_blocks(const pl_step *step) { return is_diverse(step->conf); }

static const char *const needs[] = { "prepare", "(score)", "(external)", NULL };
static const char *const reset_sql[] = { "DELETE FROM hit", NULL };

const pl_stage st_rank = {
    .name = "rank",
    .help = "order the molecules by predicted properties",
    .scope = PL_WHOLE,
    .version = 4,
    .fields = fields,
    .conf_size = sizeof(st_rank_conf),
    .state_size = sizeof(st_ranking),
    .needs = needs,
    .reads_blocks = reads_blocks,
    .item = "molecules",
    .settle = settle,
    .wants = wants,
    .check = check,
    .key = key,
    .open = open_stage,
    .finish = finish,
    .close = close_stage,
    .reset_sql = reset_sql,
};
