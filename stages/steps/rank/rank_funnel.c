/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/rank/rank_funnel.h"

#include "stages/steps/rank/rank_parts.h"

/* The rules in their order, and what is said of the molecules that satisfy them. */
static const char *const words[ST_RULES] = {
    [ST_RULE_VALUES] = "have all values that are asked for",
    [ST_RULE_BOUNDS] = "are within at_least and at_most",
    [ST_RULE_WHERE] = "satisfy where",
    [ST_RULE_SIMILARITY] = "are similar enough to training molecules",
    [ST_RULE_DOMAIN] = "are inside of the domain",
};

void st_rank_rule(st_ranking *s, st_rule rule, const char *condition)
{
    pl_text_addf(&s->rule[rule], "%s(%s)", s->rule[rule].len > 0 ? " AND " : "", condition);
}

/* "SELECT count(*), sum(...), sum(... AND ...) FROM": each count has the conditions of the ones before. */
static void add_counts(st_ranking *s, pl_text *sql)
{
    pl_text all = { 0 };

    pl_text_add(sql, "SELECT count(*)");
    for (int i = 0; i < ST_RULES; i++)
        if (s->rule[i].len > 0) {
            pl_text_addf(&all, "%s%s", all.len > 0 ? " AND " : "", pl_text_str(&s->rule[i]));
            pl_text_addf(sql, ", sum(coalesce(%s,0)<>0)", pl_text_str(&all));
        }
    pl_text_depend(sql, &all);
    pl_text_free(&all);
}

static int is_stopped(void *ctx) { return *((const st_ranking *)ctx)->env->stop != 0; }

static pl_code read_counts(st_ranking *s, const char *sql, pl_error *err)
{
    sqlite3 *db = s->env->store->db;
    sqlite3_stmt *st = NULL;
    bool row;
    int at = 1;
    pl_code code = pl_db_prepare(db, &st, sql, err);

    sqlite3_progress_handler(db, 1000000, is_stopped, s);
    row = pl_db_next(st, &code, err);
    sqlite3_progress_handler(db, 0, NULL, NULL);
    if (row) {
        s->n_molecules = sqlite3_column_int64(st, 0);
        for (int i = 0; i < ST_RULES; i++)
            if (s->rule[i].len > 0)
                s->n_left[i] = sqlite3_column_int64(st, at++);
    }
    (void)sqlite3_finalize(st);
    return *s->env->stop ? pl_fail(err, PL_ESTOP, "stopped while ranking") : code;
}

pl_code st_rank_count(st_ranking *s, pl_error *err)
{
    pl_text sql = { 0 };
    const char *condition = NULL;
    pl_code code = s->conf->where != NULL ? st_rank_condition(&condition, s, err) : PL_OK;

    if (code != PL_OK)
        return code;
    if (s->conf->where != NULL)
        st_rank_rule(s, ST_RULE_WHERE, "m.satisfies_where");
    add_counts(s, &sql);
    if (s->conf->where != NULL) /* the condition sees the columns of molecule and nothing else */
        pl_text_addf(&sql, " FROM (SELECT *, (%s\n) AS satisfies_where FROM molecule) m", condition);
    else
        pl_text_add(&sql, " FROM molecule m");
    pl_text_add(&sql, pl_text_str(&s->outer));
    code = pl_text_ok(&sql) && pl_text_ok(&s->outer) ? read_counts(s, pl_text_str(&sql), err)
                                                     : pl_fail(err, PL_ENOMEM, "no memory for the ranking");
    pl_text_free(&sql);
    return code;
}

/* Puts the next row if *code is PL_OK, and stores what came of it there. */
static void count_put(const st_ranking *s, int *step, const char *what, int64_t n, pl_code *code, pl_error *err)
{
    if (*code == PL_OK)
        *code = pl_metric_add(s->env, ++*step, 0, "funnel", what, (double)n, err);
}

pl_code st_rank_funnel_put(st_ranking *s, pl_error *err)
{
    int step = 0;
    pl_code code = PL_OK;

    count_put(s, &step, "molecules", s->n_molecules, &code, err);
    for (int i = 0; i < ST_RULES; i++)
        if (s->rule[i].len > 0)
            count_put(s, &step, words[i], s->n_left[i], &code, err);
    if (s->conf->diverse_by != ST_DIVERSE_NONE && s->n_hits + s->n_passed < s->n_candidates) /* nothing is known of the others */
        count_put(s, &step, "were compared with better ones until the ranking was full", s->n_hits + s->n_passed, &code, err);
    if (s->conf->diverse_by != ST_DIVERSE_NONE)
        count_put(s, &step, "are not too similar to better ones", s->n_hits, &code, err);
    count_put(s, &step, "are ranked", s->n_hits, &code, err);
    return code;
}

/* "; of 400 molecules 395 have all values that are asked for, 298 satisfy where". */
void st_rank_funnel_say(pl_text *out, const st_ranking *s)
{
    char n[32];
    bool first = true;

    pl_text_addf(out, "; of %s molecules", pl_count_str(s->n_molecules, n));
    for (int i = 0; i < ST_RULES; i++)
        if (s->rule[i].len > 0) {
            pl_text_addf(out, "%s %s %s", first ? "" : ",", pl_count_str(s->n_left[i], n), words[i]);
            first = false;
        }
}

pl_code st_rank_funnel_words(pl_text *out, sqlite3 *db, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    char n[32];
    pl_code code =
        pl_db_prepare(db, &st, "SELECT value, name FROM metric WHERE stage='rank' AND split='funnel' ORDER BY step", err);

    while (pl_db_next(st, &code, err))
        pl_text_addf(out, "%14s  %s\n", pl_count_str(sqlite3_column_int64(st, 0), n), (const char *)sqlite3_column_text(st, 1));
    (void)sqlite3_finalize(st);
    return code;
}
