/* SPDX-License-Identifier: Apache-2.0 */
/* What was chosen, as rows. */
#include <string.h>

#include "pipeline/base/text.h"
#include "pipeline/workflow/workflow.h"
#include "stages/database/measured.h"
#include "stages/steps/acquire/acquire_conf.h"
#include "stages/steps/train/train_conf.h"

const st_acquire_conf *st_acquire_conf_of(const pl_workflow *wf)
{
    const pl_step *step = pl_workflow_step(wf, "acquire");

    return step != NULL ? step->conf : NULL;
}

bool st_acquire_has_answers(const st_acquire_conf *c) { return c->answers.table != NULL || c->answers.workflow != NULL; }

/* The target that is the property; NULL: the workflow trains none. */
static const st_target *target_of(const pl_workflow *wf, const st_acquire_conf *c)
{
    const pl_step *train = pl_workflow_step(wf, "train");
    const st_train_conf *t = train != NULL ? train->conf : NULL;

    for (int32_t k = 0; t != NULL && k < t->targets.n; k++)
        if (c->property != NULL ? strcmp(st_train_target(t)[k].name, c->property) == 0 : t->targets.n == 1)
            return &st_train_target(t)[k];
    return NULL;
}

const char *st_acquire_label(const pl_workflow *wf, const st_acquire_conf *c)
{
    const st_target *t = target_of(wf, c);

    return t != NULL ? st_target_label(t) : NULL;
}

const char *st_acquire_unit(const pl_workflow *wf, const st_acquire_conf *c)
{
    const st_target *t = target_of(wf, c);

    if (c->answers.unit != NULL)
        return c->answers.unit;
    return t != NULL && t->factor == 1 ? t->unit : "";
}

int64_t st_acquire_first_count(const st_acquire_conf *c) { return c->first_count > 0 ? c->first_count : c->count; }

st_choice st_acquire_choice(const st_acquire_conf *c)
{
    static const char *const goals[] = { NULL, "maximize", "minimize" };

    return (st_choice){ .a = { .by = (st_strategy)c->strategy, .beta = c->beta, .seed = (uint64_t)c->seed },
                        .property = c->property,
                        .goal = goals[c->goal],
                        .where = c->where,
                        .sigma = (st_sigma)c->sigma,
                        .inside = c->inside,
                        .measured = c->exclude == ST_EXCLUDE_NONE,
                        .max_similarity = c->max_similarity,
                        .n = c->count,
                        .per_scaffold = c->per_scaffold };
}

pl_code st_acquire_round(int64_t *round, pl_store *s, pl_error *err)
{
    return pl_db_int(s->db, round, err, "SELECT " ST_LAST_ROUND "+1");
}

pl_code st_acquire_list(const st_acquire_conf *c, pl_store *s, int64_t round, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    pl_code code = pl_db_exec(s->db, "DROP TABLE IF EXISTS temp.listed", err);

    if (code != PL_OK || c->exclude != ST_EXCLUDE_TRIED)
        return code;
    code = pl_db_prepare(s->db, &st, "SELECT inchikey FROM acquired WHERE round<?", err);
    if (code == PL_OK)
        (void)sqlite3_bind_int64(st, 1, round);
    while (pl_db_next(st, &code, err))
        code = st_choose_list(s, (const char *)sqlite3_column_text(st, 0), err);
    (void)sqlite3_finalize(st);
    return code;
}

/* ---- rows ---- */

typedef struct storing {
    pl_store *store;
    const st_chosen *said;
    const st_choice *choice;
    int64_t round;
    sqlite3_stmt *get, *put;
    pl_arena *mem;
} storing;

/* What was chosen, in its order: place, InChIKey, acquisition, mean, deviation, place by prediction, similarity. */
static const char *rows_sql(const st_chosen *said, const st_choice *choice, pl_arena *mem)
{
    if (choice->blind)
        return "SELECT f.place, coalesce(nullif(m.inchikey,''),m.smiles), NULL, NULL, NULL, NULL, NULL FROM temp.found f CROSS JOIN "
               "molecule m ON m.mol_id=f.mol_id ORDER BY f.place";
    return pl_sprintf(
        mem,
        "SELECT f.place, coalesce(nullif(m.inchikey,''),m.smiles), f.similarity, s.mean, (%s), 1+(SELECT count(*) FROM score o "
        "WHERE o.property_id=s.property_id AND o.mean%ss.mean), s.similarity FROM temp.found f CROSS JOIN score s ON "
        "s.property_id=%lld AND s.mol_id=f.mol_id CROSS JOIN molecule m ON m.mol_id=f.mol_id ORDER BY f.place",
        said->deviation, said->low ? "<" : ">", (long long)said->property_id);
}

/* "ucb 1.2: predicted -1.3 +- 0.4, place 12 of 1,000 by prediction, similarity 0.4 to what is known" */
static const char *reason_of(const storing *x)
{
    const char *by = st_strategy_names[x->choice->a.by];
    pl_text text = { 0 };
    char a[32], b[32];
    const char *reason;

    if (x->choice->blind)
        return "without a model";
    pl_text_addf(&text, "%s %.4g: predicted %.4g", by, sqlite3_column_double(x->get, 2), sqlite3_column_double(x->get, 3));
    if (sqlite3_column_type(x->get, 4) != SQLITE_NULL)
        pl_text_addf(&text, " +- %.2g", sqlite3_column_double(x->get, 4));
    pl_text_addf(&text, ", place %s of %s by prediction", pl_count_str(sqlite3_column_int64(x->get, 5), a),
                 pl_count_str(x->said->n_scored, b));
    if (sqlite3_column_type(x->get, 6) != SQLITE_NULL)
        pl_text_addf(&text, ", similarity %.2f to what is known", sqlite3_column_double(x->get, 6));
    reason = pl_text_ok(&text) ? pl_strdup(x->mem, pl_text_str(&text)) : NULL;
    pl_text_free(&text);
    return reason;
}

static pl_code row_put(storing *x, pl_error *err)
{
    const char *reason = reason_of(x);
    const char *by = x->choice->blind && x->choice->max_similarity < 1 ? "diverse" : st_strategy_names[x->choice->a.by];

    if (reason == NULL)
        return pl_fail(err, PL_ENOMEM, "a round");
    (void)sqlite3_bind_int64(x->put, 1, x->round);
    (void)sqlite3_bind_text(x->put, 2, x->said->property, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(x->put, 3, by, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(x->put, 4, reason, -1, SQLITE_STATIC);
    for (int k = 0; k < 7; k++)
        (void)sqlite3_bind_value(x->put, 5 + k, sqlite3_column_value(x->get, k));
    return pl_db_run(x->put, err);
}

static pl_code rows_put(storing *x, pl_error *err)
{
    const char *sql = rows_sql(x->said, x->choice, x->mem);
    pl_code code = sql != NULL ? pl_db_execf(x->store->db, err, "DELETE FROM acquired WHERE round>=%lld", (long long)x->round)
                               : pl_fail(err, PL_ENOMEM, "a round");

    if (code == PL_OK)
        code = pl_db_prepare(x->store->db, &x->get, sql, err);
    if (code == PL_OK)
        code = pl_db_prepare(
            x->store->db, &x->put,
            "INSERT INTO acquired(round,property,strategy,reason,place,inchikey,acquisition,mean,deviation,rank,similarity) "
            "VALUES(?,?,?,?,?,?,?,?,?,?,?)",
            err);
    while (pl_db_next(x->get, &code, err))
        code = row_put(x, err);
    return code;
}

pl_code st_acquire_store(pl_store *s, const st_chosen *said, const st_choice *choice, int64_t round, pl_error *err)
{
    storing x = { .store = s, .said = said, .choice = choice, .round = round, .mem = pl_arena_new(1 << 13) };
    pl_code code = x.mem != NULL ? rows_put(&x, err) : pl_fail(err, PL_ENOMEM, "a round");

    (void)sqlite3_finalize(x.get);
    (void)sqlite3_finalize(x.put);
    pl_arena_free(x.mem);
    return code;
}
