/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/campaign/campaign.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/base/file.h"
#include "pipeline/base/text.h"
#include "pipeline/lock/lock.h"
#include "pipeline/run/run.h"
#include "stages/database/measured.h"
#include "stages/expression/chemistry.h"
#include "stages/expression/row_filter.h"
#include "stages/steps/train/train_conf.h"

enum { FEWEST = 10 }; /* labels of a training */

const char *st_campaign_better(const pl_workflow *wf, const char *label)
{
    static const char *const ends[] = { "low", "high", "none" };
    const st_train_conf *c = pl_workflow_step(wf, "train")->conf;

    for (int32_t k = 0; k < c->targets.n; k++)
        if (strcmp(st_target_label(&st_train_target(c)[k]), label) == 0)
            return ends[st_train_target(c)[k].better];
    return "none";
}

void st_campaign_make(st_campaign *out, const pl_workflow *wf, const pl_schema *schema, pl_arena *mem)
{
    const st_acquire_conf *c = st_acquire_conf_of(wf);
    const pl_step *train = pl_workflow_step(wf, "train");

    *out = (st_campaign){
        .wf = wf, .schema = schema, .c = c, .label = st_acquire_label(wf, c), .unit = st_acquire_unit(wf, c), .mem = mem
    };
    out->better = st_campaign_better(wf, out->label);
    out->low = c->goal == ST_GOAL_MINIMISE || (c->goal == ST_GOAL_AUTO && strcmp(out->better, "low") == 0);
    out->is_class = st_train_classifies(train->conf);
}

pl_code st_campaign_locked(const st_campaign *x, pl_code (*work)(const st_campaign *x, pl_store *s, void *ctx, pl_error *err),
                           void *ctx, pl_error *err)
{
    pl_locks locks;
    pl_store *s = NULL;
    pl_code code = pl_locks_take(&locks, x->wf, err);

    if (code != PL_OK)
        return code;
    code = pl_store_open(&s, x->wf, x->schema, err);
    if (code == PL_OK) {
        pl_store_guard(s, &locks);
        code = work(x, s, ctx, err);
    }
    pl_store_close(s);
    pl_locks_drop(&locks);
    return code;
}

/* ---- where it is ---- */

/* SQL of all values: of a class how many are 1, else the best; "first" is the round that had it. */
static pl_code best_find(st_campaign_state *out, const st_campaign *x, pl_store *s, pl_error *err)
{
    static const char sql[] =
        "WITH v(value, round) AS (SELECT l.value, coalesce((SELECT x.round FROM measured x JOIN molecule m ON m.inchikey=x.inchikey WHERE "
        "x.property=p.name AND m.mol_id=l.mol_id),-1) FROM label l JOIN property p USING(property_id) WHERE p.name=%Q) "
        "SELECT value, round FROM v ORDER BY value %s, round LIMIT 1";
    sqlite3_stmt *st = NULL;
    bool row;
    char *text = sqlite3_mprintf(sql, x->label, x->low ? "ASC" : "DESC");
    pl_code code = text != NULL ? pl_db_prepare(s->db, &st, text, err) : pl_fail(err, PL_ENOMEM, "a query");

    row = pl_db_next(st, &code, err);
    out->best = row ? sqlite3_column_double(st, 0) : NAN;
    out->best_round = row ? sqlite3_column_int64(st, 1) : -1;
    (void)sqlite3_finalize(st);
    sqlite3_free(text);
    return code;
}

/* The last round with a 1: of a class each one found is a gain. */
static pl_code hits_count(st_campaign_state *out, const st_campaign *x, pl_store *s, pl_error *err)
{
    int64_t n = 0;
    pl_code code =
        pl_db_int(s->db, &n, err, "SELECT count(*) FROM label l JOIN property p USING(property_id) WHERE p.name=%Q AND l.value=%d",
                  x->label, x->low ? 0 : 1);

    out->best = (double)n;
    if (code == PL_OK)
        code = pl_db_int(s->db, &out->best_round, err,
                         "SELECT coalesce(max(round),-1) FROM measured WHERE property=%Q AND value=%d", x->label, x->low ? 0 : 1);
    return code;
}

/* SQL: the round that is asked for, of which a part may have been; NULL: nothing is left to ask. */
#define ASKED_ROUND "(SELECT min(round) FROM acquired WHERE outcome IS NULL)"

/* SQL: the number of rounds that were asked for and have ended, after round %lld. */
#define ENDED_ROUNDS                                                                                                    \
    "SELECT count(DISTINCT round) FROM acquired WHERE outcome IS NOT NULL AND round<coalesce(" ASKED_ROUND ",round+1) " \
    "AND round>%lld"

static pl_code counts_read(st_campaign_state *out, const st_campaign *x, pl_store *s, pl_error *err)
{
    int64_t prepared = 0, learn = 0, last = -1;
    const struct {
        int64_t *to;
        const char *sql;
    } counts[] = {
        { &out->n_molecules, "SELECT count(*) FROM molecule" },
        { &last, "SELECT " ST_LAST_ROUND },
        { &out->ended, "SELECT coalesce(" ASKED_ROUND "-1, " ST_LAST_ROUND ")" },
        { &out->tried, "SELECT count(*) FROM acquired WHERE outcome IS NOT NULL" },
        { &out->n_values, "SELECT count(*) FROM acquired WHERE outcome='measured'" },
        { &out->part, "SELECT count(*) FROM acquired WHERE outcome IS NOT NULL AND round=" ASKED_ROUND },
        { &out->pending, "SELECT count(*) FROM acquired WHERE outcome IS NULL AND round=" ASKED_ROUND },
    };
    pl_code code = pl_db_int(s->db, &prepared, err, "SELECT count(*) FROM stage WHERE name='prepare' AND state='done'");

    for (size_t k = 0; k < sizeof counts / sizeof *counts && code == PL_OK; k++)
        code = pl_db_int(s->db, counts[k].to, err, "%s", counts[k].sql);
    if (code == PL_OK)
        code = pl_db_int(s->db, &out->n_rounds, err, ENDED_ROUNDS, -1LL);
    if (code == PL_OK)
        code = pl_db_int(
            s->db, &learn, err,
            "SELECT count(*)>=%d AND min(l.value)<max(l.value) FROM label l JOIN property p USING(property_id) WHERE p.name=%Q",
            (int)FEWEST, x->label);
    out->can_learn = learn > 0;
    out->begun = out->ended < last;
    out->prepared = prepared > 0;
    return code;
}

/* Rounds that were measured as something else are of another campaign in the same folder. */
static pl_code rounds_check(const st_campaign *x, pl_store *s, pl_error *err)
{
    static const char sql[] =
        "SELECT max(property), count(*), (SELECT count(*) FROM acquired a JOIN measured o ON o.inchikey=a.inchikey WHERE o.property=?1 AND "
        "a.outcome='measured') FROM (SELECT DISTINCT o.property, a.inchikey FROM acquired a JOIN measured o ON o.inchikey=a.inchikey AND "
        "o.round=a.round WHERE a.outcome='measured' AND NOT EXISTS(SELECT 1 FROM measured y WHERE y.inchikey=a.inchikey AND y.property=?1))";
    sqlite3_stmt *st = NULL;
    pl_code code = pl_db_prepare(s->db, &st, sql, err);

    if (code == PL_OK)
        (void)sqlite3_bind_text(st, 1, x->label, -1, SQLITE_STATIC);
    if (pl_db_next(st, &code, err) && sqlite3_column_int64(st, 1) > sqlite3_column_int64(st, 2))
        code = pl_fail(
            err, PL_ECONFIG,
            "%s: %lld molecules of its rounds were measured as %s, and this campaign asks for %s; give it a workdir of its own",
            s->results_path, (long long)sqlite3_column_int64(st, 1), (const char *)sqlite3_column_text(st, 0), x->label);
    (void)sqlite3_finalize(st);
    return code;
}

static const char *spent_path(const st_campaign *x) { return pl_sprintf(x->mem, "%s/campaign.seconds", x->wf->workdir); }

/* 0 where nothing is known. */
static pl_code spent(double *seconds, const st_campaign *x, pl_error *err)
{
    const char *path = spent_path(x);
    pl_bytes text;
    pl_code code;

    *seconds = 0;
    if (path == NULL)
        return pl_fail(err, PL_ENOMEM, "the time of a campaign");
    if (access(path, F_OK) != 0)
        return PL_OK;
    code = pl_file_read(&text, path, x->mem, err);
    if (code != PL_OK)
        return code;
    *seconds = strtod(text.data, NULL);
    if (!(*seconds > 0 && isfinite(*seconds)))
        *seconds = 0;
    return PL_OK;
}

pl_code st_campaign_spend(const st_campaign *x, double seconds, pl_error *err)
{
    double before;
    pl_code code = spent(&before, x, err);
    const char *path = spent_path(x), *text = pl_sprintf(x->mem, "%.3f\n", before + seconds);

    if (code != PL_OK)
        return code;
    if (path == NULL || text == NULL)
        return pl_fail(err, PL_ENOMEM, "the time of a campaign");
    return pl_file_write(path, (pl_bytes){ text, strlen(text) }, err);
}

pl_code st_campaign_look(st_campaign_state *out, const st_campaign *x, pl_error *err)
{
    pl_store *s = NULL;
    pl_code code;

    *out = (st_campaign_state){ .ended = -1, .best = NAN, .best_round = -1 };
    code = spent(&out->seconds, x, err);
    if (code != PL_OK)
        return code;
    if (access(x->wf->storage.results, F_OK) != 0)
        return PL_OK;
    code = pl_store_open_read(&s, x->wf->storage.results, x->schema, err);
    if (code == PL_OK)
        code = rounds_check(x, s, err);
    if (code == PL_OK)
        code = counts_read(out, x, s, err);
    if (code == PL_OK)
        code = x->is_class ? hits_count(out, x, s, err) : best_find(out, x, s, err);
    if (code == PL_OK)
        code = pl_db_int(s->db, &out->idle, err, ENDED_ROUNDS, (long long)(out->best_round > 0 ? out->best_round : 0));
    pl_store_close(s);
    return code;
}

pl_code st_campaign_end(const char **why, const st_campaign *x, const st_campaign_state *s, pl_error *err)
{
    const st_acquire_conf *c = x->c;
    char text[32];

    if (c->rounds > 0 && s->n_rounds >= c->rounds)
        *why = pl_sprintf(x->mem, "%lld %s done (campaign.rounds)", (long long)c->rounds,
                          pl_plural(c->rounds, "round is", "rounds are"));
    else if (c->calls > 0 && s->tried >= c->calls)
        *why = pl_sprintf(x->mem, "%s molecules were tried (campaign.calls)", pl_count_str(s->tried, text));
    else if (c->hours > 0 && s->seconds >= c->hours)
        *why = pl_sprintf(x->mem, "it has worked for %.0f s (campaign.time)", s->seconds);
    else if (c->patience > 0 && s->idle >= c->patience)
        *why = pl_sprintf(x->mem, "no better value in %lld %s (campaign.no_gain)", (long long)c->patience,
                          pl_plural(c->patience, "round", "rounds"));
    else {
        *why = NULL;
        return PL_OK;
    }
    return *why != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "the end of a campaign");
}

int64_t st_campaign_asked(const st_campaign *x, const st_campaign_state *s)
{
    const int64_t left = x->c->calls > 0 ? x->c->calls - s->tried : s->pending;

    return left < s->pending ? left : s->pending;
}

/* ---- what is left of a round ---- */

static pl_code take_back_work(const st_campaign *x, pl_store *s, void *ctx, pl_error *err)
{
    int64_t *n = ctx;
    const char *condition = "1";
    bool functions = false;
    pl_code code = x->c->where != NULL ? st_row_filter_sql(&condition, x->c->where, s->db, &functions, x->mem, err) : PL_OK;

    if (code == PL_OK && functions)
        code = st_chemistry_add(s->db, NULL, err);
    if (code == PL_OK)
        code = pl_db_execf(s->db, err,
                           "DELETE FROM acquired WHERE outcome IS NULL AND round<=" ST_LAST_ROUND " AND inchikey NOT IN (SELECT "
                           "coalesce(nullif(inchikey,''),smiles) FROM molecule WHERE (%s\n))",
                           condition);
    *n = code == PL_OK ? sqlite3_changes(s->db) : 0;
    return code;
}

pl_code st_campaign_take_back(int64_t *n, const st_campaign *x, pl_error *err)
{
    *n = 0;
    return st_campaign_locked(x, take_back_work, n, err);
}

/* ---- the first round ---- */

/* Of a diverse first round: the lowest similarity, in steps of 0.1, that gives enough. */
static pl_code choose_first(st_chosen *said, st_choice *choice, const st_campaign *x, pl_store *s, pl_error *err)
{
    const double asked = choice->max_similarity;
    const bool diverse = x->c->first == ST_FIRST_DIVERSE;
    pl_code code = PL_OK;

    for (int k = diverse ? 2 : 10; k <= 10 && code == PL_OK; k++) {
        choice->max_similarity = k / 10.0 < asked ? k / 10.0 : asked;
        code = st_choose(said, choice, s, x->mem, err);
        if (said->n_chosen == choice->n || choice->max_similarity >= asked)
            break;
    }
    return code;
}

static pl_code first_work(const st_campaign *x, pl_store *s, void *ctx, pl_error *err)
{
    st_choice choice = st_acquire_choice(x->c);
    st_chosen said;
    int64_t round = 0;
    pl_code code = st_acquire_round(&round, s, err);

    (void)ctx;
    choice.blind = true;
    choice.property = x->label;
    choice.inside = false;
    choice.a.by = ST_RANDOM;
    choice.n = st_acquire_first_count(x->c);
    if (code == PL_OK)
        code = st_acquire_list(x->c, s, round, err);
    if (code == PL_OK)
        code = choose_first(&said, &choice, x, s, err);
    if (code == PL_OK)
        code = pl_db_begin(s->db, err);
    if (code == PL_OK)
        code = st_acquire_store(s, &said, &choice, round, err);
    pl_fault("campaign", "first.before_commit");
    if (code == PL_OK)
        code = pl_db_commit(s->db, err);
    pl_db_rollback(s->db);
    pl_fault("campaign", "first.after_commit");
    return code;
}

pl_code st_campaign_first(const st_campaign *x, pl_error *err) { return st_campaign_locked(x, first_work, NULL, err); }

/* ---- rounds that have ended ---- */

static double real_or_nan(sqlite3_stmt *st, int i)
{
    return sqlite3_column_type(st, i) == SQLITE_NULL ? NAN : sqlite3_column_double(st, i);
}

static pl_code rounds_read(st_round *to, int64_t n, const st_campaign *x, pl_store *s, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    int64_t k = 0;
    const char *best = x->low ? "min" : "max";
    char *sql = sqlite3_mprintf(
        "SELECT a.round, count(*), count(v.value), sum(v.value=%d), %s(v.value), avg(abs(v.value-a.mean)), "
        "avg(CASE WHEN %d AND a.deviation IS NOT NULL THEN abs(v.value-a.mean)<=1.6448536269514722*a.deviation END), min(a.strategy) "
        "FROM acquired a LEFT JOIN measured v ON v.inchikey=a.inchikey AND v.property=%Q AND a.outcome='measured' WHERE a.outcome IS NOT "
        "NULL GROUP BY a.round ORDER BY a.round",
        !x->low, best, !x->is_class, x->label);
    pl_code code = sql != NULL ? pl_db_prepare(s->db, &st, sql, err) : pl_fail(err, PL_ENOMEM, "a query");

    while (k < n && pl_db_next(st, &code, err)) {
        to[k] = (st_round){ sqlite3_column_int64(st, 0), sqlite3_column_int64(st, 1),
                            sqlite3_column_int64(st, 2), sqlite3_column_int64(st, 3),
                            real_or_nan(st, 4),          real_or_nan(st, 5),
                            real_or_nan(st, 6),          pl_strdup(x->mem, (const char *)sqlite3_column_text(st, 7)) };
        if (to[k++].strategy == NULL)
            code = pl_fail(err, PL_ENOMEM, "a round");
    }
    (void)sqlite3_finalize(st);
    sqlite3_free(sql);
    return code;
}

pl_code st_campaign_rounds(st_round **out, int64_t *n, const st_campaign *x, pl_error *err)
{
    pl_store *s = NULL;
    pl_code code = pl_store_open_read(&s, x->wf->storage.results, x->schema, err);

    *n = 0;
    if (code == PL_OK)
        code = pl_db_int(s->db, n, err, "SELECT count(DISTINCT round) FROM acquired WHERE outcome IS NOT NULL");
    *out = PL_NEW(x->mem, st_round, *n + 1);
    if (*out == NULL)
        code = pl_fail(err, PL_ENOMEM, "rounds");
    if (code == PL_OK)
        code = rounds_read(*out, *n, x, s, err);
    pl_store_close(s);
    return code;
}
