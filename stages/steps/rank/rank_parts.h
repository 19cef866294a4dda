/* stages/steps/rank/rank_parts.h - what the files of the stage `rank` share; used by rank*.c only. */
#ifndef ST_RANK_PARTS_H
#define ST_RANK_PARTS_H

#include "pipeline/store/store.h"
#include "pipeline/workflow/workflow.h"
#include "stages/steps/rank/rank.h"
#include "stages/steps/rank/retrieval.h"

enum { ST_MAXIMISE, ST_MINIMISE, ST_TERMS_MAX = 16 };
enum { ST_WEIGHTED, ST_PARETO };
enum { ST_DOMAIN_ANY, ST_DOMAIN_INSIDE };
enum { ST_DIVERSE_NONE, ST_DIVERSE_SCAFFOLD, ST_DIVERSE_SIMILARITY };

typedef struct st_objective { /* or constraint */
    const char *property, *use, *at_least, *at_most;
    int32_t goal;
    double weight, similarity_at_least;
} st_objective;

typedef struct st_rank_conf {
    pl_list objectives, constraints; /* st_objective */
    const char *where, *actives;
    int64_t top;
    int32_t method, diverse_by, domain;
    int64_t at_most;  /* hits of a scaffold          */
    double threshold; /* Tanimoto similarity, 0 to 1 */
} st_rank_conf;

/* Rules that a candidate must satisfy, in the order in which they are counted. */
typedef enum st_rule { ST_RULE_VALUES, ST_RULE_BOUNDS, ST_RULE_WHERE, ST_RULE_SIMILARITY, ST_RULE_DOMAIN, ST_RULES } st_rule;

/* A molecule that has all values and meets all conditions. */
typedef struct st_candidate {
    double objective;
    int64_t mol_id;
    char key[28];  /* InChIKey, NUL */
    int32_t front; /* from 1; 0: by weights */
} st_candidate;

/* The cluster that a hit represents in a diverse ranking. */
typedef struct st_cluster {
    int64_t first;     /* rank of the first hit of its cluster                */
    int64_t n_similar; /* candidates of the cluster that were left out        */
} st_cluster;

typedef struct st_ranking {
    pl_env *env;
    const st_rank_conf *conf;
    int n_terms; /* objectives, then constraints */
    const st_objective *term[ST_TERMS_MAX];
    st_use use[ST_TERMS_MAX]; /* of constraints: the mean */
    pl_text from, select, values, where, order;
    pl_text rule[ST_RULES], outer; /* the conditions one by one, and the same joins as `from` that keep all molecules */
    int64_t n_molecules, n_left[ST_RULES];
    sqlite3_stmt *query;
    bool functions;                /* those of stages/expression/chemistry.h are there */
    st_candidate *best;            /* [n_best] what st_rank_next found           */
    int64_t n_best, cap, n_before; /* n_before: found by earlier calls          */
    int64_t n_seen, n_candidates;  /* in all; n_seen includes those with a NULL value */
    st_candidate *hit;             /* [n_hits] a diverse ranking, best first     */
    st_cluster *cluster;           /* [n_hits]                                   */
    int64_t n_hits, n_passed;
    st_retrieval *retrieval; /* NULL without actives                       */
} st_ranking;

/* Puts the next best candidates, after those of earlier calls, into s->best, best first: `most` of them, or all
 * that remain. One pass over the molecules; memory for `most`. ECONFIG when no molecule has such a score; ESTOP. */
pl_code st_rank_next(st_ranking *s, int64_t max, pl_error *err);

/* ---- between rank_query.c and rank_pareto.c ---- */

/* One pass over the candidates; a row is the current one of s->query. Counts them. ESTOP. */
typedef pl_code st_rank_give(void *ctx, const st_candidate *c, pl_error *err);
pl_code st_rank_each(st_ranking *s, st_rank_give *give, void *ctx, pl_error *err);

/* The first column of s->query with values of the objectives as they are sorted (method pareto). */
static inline int st_rank_values(const st_ranking *s) { return 2 + 2 * s->n_terms; }

/* st_rank_next of method pareto: the first s->n_before + most in order of their front, without the first s->n_before. ELIMIT. */
pl_code st_rank_fronts(st_ranking *s, int64_t max, pl_error *err);

/* Fills s->hit, s->cluster and s->n_passed: the candidates from the best on, except those that are too similar to earlier
 * hits. Structures come from features.db. Memory for the hits and one batch, for any number of candidates. EDATA, ESTOP. */
pl_code st_rank_diverse(st_ranking *s, pl_error *err);

/* The condition `where` as SQL over molecule; the functions that it needs are there then. */
pl_code st_rank_condition(const char **out, st_ranking *s, pl_error *err);

/* ---- rank_funnel.c: how many molecules each rule leaves ---- */

void st_rank_rule(st_ranking *s, st_rule rule, const char *condition); /* one more condition of a rule */
pl_code st_rank_count(st_ranking *s, pl_error *err);                   /* after the first st_rank_next; one pass. ESTOP */
pl_code st_rank_funnel_put(st_ranking *s, pl_error *err);              /* into the table metric */
void st_rank_funnel_say(pl_text *out, const st_ranking *s);

/* rank_odd.c: warns of a score such as 999 with which a program of the user's may say that it has none. */
pl_code st_rank_odd(const st_ranking *s, pl_error *err);

void st_rank_free(st_ranking *s); /* zeroed is fine */

#endif
