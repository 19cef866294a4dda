/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "stages/steps/score/score_parts.h"

static pl_code failure_put(score_state *s, int64_t mol_id, const st_outcome *o, int k, pl_error *err)
{
    char text[480];
    const char *code, *message = st_scorer_problem(&s->scorer, o, k, text, &code);

    if (message == NULL)
        return PL_OK;
    return pl_failure_add(s->env, &(pl_failure){ .mol_id = mol_id, .code = code, .message = message, .attempt = 1 }, err);
}

/* Others have the fingerprint of a training molecule, too: its mirror image, a longer chain. The nearest of itself is itself. */
static pl_code own_nearest(nn_near *near, score_state *s, const st_scored_target *t, int64_t mol_id, pl_error *err)
{
    const nn_domain *d = &s->scorer.model[t->model].m->domain;
    const char *own = NULL;
    pl_code code = PL_OK;

    if (near->key == NULL || near->alike < 1)
        return PL_OK;
    (void)sqlite3_bind_int64(s->key_of, 1, mol_id);
    if (pl_db_next(s->key_of, &code, err))
        own = nn_domain_own(d, t->output, (const char *)sqlite3_column_text(s->key_of, 0));
    (void)sqlite3_reset(s->key_of);
    near->key = own != NULL ? own : near->key;
    return code;
}

/* Of one target, in the order of the table's key. */
static pl_code predictions_put(score_state *s, const st_scored *u, int k, pl_error *err)
{
    const st_scored_target *t = &s->scorer.target[k];
    sqlite3_stmt *st = s->put_prediction.st;
    pl_code code = PL_OK;

    for (int32_t i = 0; i < u->n && code == PL_OK; i++) {
        const st_outcome *o = u->outcome + (int64_t)i * s->scorer.n_targets + k;
        nn_near near = st_scored_near(u, i, k); /* NaN and NULL are both stored as NULL */
        const int at = pl_insert_at(&s->put_prediction);
        if (!st_outcome_is_good(o))
            continue;
        code = own_nearest(&near, s, t, u->id[i], err);
        if (code != PL_OK)
            break;
        (void)sqlite3_bind_int64(st, at, u->id[i]);
        (void)sqlite3_bind_int64(st, at + 1, t->property_id);
        (void)sqlite3_bind_int64(st, at + 2, s->model_id[t->model]);
        (void)sqlite3_bind_double(st, at + 3, o->value);
        (void)sqlite3_bind_double(st, at + 4, near.alike);
        (void)sqlite3_bind_text(st, at + 5, near.key, -1, SQLITE_STATIC);
        (void)sqlite3_bind_double(st, at + 6, o->spread);
        (void)sqlite3_bind_double(st, at + 7, o->uncertainty);
        code = pl_insert_row(&s->put_prediction, err);
    }
    return code == PL_OK ? pl_insert_end(&s->put_prediction, err) : code;
}

/* Over the property's predictions; k is its first valid one. NaN is NULL. */
static pl_code score_put(score_state *s, const st_scored *u, int32_t i, int k, nn_case *c, pl_error *err)
{
    sqlite3_stmt *st = s->put_score.st;
    const int at = pl_insert_at(&s->put_score);
    st_value v;
    pl_code code = st_scorer_value(&v, &s->scorer, u, i, k, c, &s->reasons, err);

    if (code != PL_OK)
        return code;
    (void)sqlite3_bind_int64(st, at, u->id[i]);
    (void)sqlite3_bind_int64(st, at + 1, s->scorer.target[k].property_id);
    (void)sqlite3_bind_double(st, at + 2, v.mean);
    (void)sqlite3_bind_double(st, at + 3, v.stdev);
    (void)sqlite3_bind_int(st, at + 4, v.n_models);
    (void)sqlite3_bind_double(st, at + 5, v.similarity);
    (void)sqlite3_bind_double(st, at + 6, v.interval90);
    (void)sqlite3_bind_text(st, at + 7, v.domain, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(st, at + 8, v.reasons, -1, SQLITE_TRANSIENT);
    return pl_insert_row(&s->put_score, err);
}

static pl_code scores_put(score_state *s, const st_scored *u, int k, nn_case *cases, pl_error *err)
{
    pl_code code = PL_OK;

    for (int32_t i = 0; i < u->n && code == PL_OK; i++) {
        cases[i].traits = s->scorer.has_range ? &u->traits[i] : NULL;
        if (st_scorer_is_first(&s->scorer, u->outcome + (int64_t)i * s->scorer.n_targets, k))
            code = score_put(s, u, i, k, &cases[i], err);
    }
    return code == PL_OK ? pl_insert_end(&s->put_score, err) : code;
}

/* A molecule that at least one model predicts does not count for limits.failures. */
static pl_code failures_put(score_state *s, const st_scored *u, pl_unit *unit, pl_error *err)
{
    const int n = s->scorer.n_targets;
    pl_code code = PL_OK;

    for (int32_t i = 0; i < u->n; i++) {
        const st_outcome *o = u->outcome + (int64_t)i * n;
        int n_bad = 0;
        for (int k = 0; k < n && code == PL_OK; k++) {
            if (st_outcome_is_good(&o[k]))
                continue;
            n_bad++;
            code = failure_put(s, u->id[i], o, k, err);
        }
        unit->n_ok += n_bad < n;
        unit->n_failed += n_bad == n;
    }
    return code;
}

/* What rows refer to besides molecules, which st_cases_read looks for: SQLite does not look (own_references). */
static pl_code references_check(const score_state *s, pl_error *err)
{
    int64_t there = 1;
    pl_code code = PL_OK;

    for (int k = 0; code == PL_OK && k < s->scorer.n_targets && there; k++)
        code =
            pl_db_int(s->env->store->db, &there, err,
                      "SELECT EXISTS(SELECT 1 FROM run WHERE run_id=%lld) AND EXISTS(SELECT 1 FROM stage WHERE stage_id=%lld) AND "
                      "EXISTS(SELECT 1 FROM property WHERE property_id=%lld) AND EXISTS(SELECT 1 FROM model WHERE model_id=%lld)",
                      (long long)s->env->run_id, (long long)s->env->stage_id, (long long)s->scorer.target[k].property_id,
                      (long long)s->model_id[s->scorer.target[k].model]);
    return code != PL_OK || there
               ? code
               : pl_fail(err, PL_EDATA,
                         "%s: the row of this run, its stage, a property or a model was removed while scores were "
                         "stored; run again with --from score",
                         s->env->store->results_path);
}

pl_code st_score_commit(void *state, pl_unit *unit, pl_error *err)
{
    score_state *s = state;
    const st_scored *u = &((const score_unit *)unit->data)->scored;
    nn_case *cases = PL_NEW(unit->mem, nn_case, u->n + 1);
    pl_code code = cases != NULL ? st_cases_read(cases, &s->cases, u->id, u->n, err) : pl_fail(err, PL_ENOMEM, "a unit of scores");

    if (code == PL_OK)
        code = references_check(s, err);
    for (int k = 0; k < s->scorer.n_targets && code == PL_OK; k++)
        code = predictions_put(s, u, k, err);
    for (int k = 0; k < s->scorer.n_targets && code == PL_OK; k++)
        code = scores_put(s, u, k, cases, err);
    if (code == PL_OK)
        code = failures_put(s, u, unit, err);
    if (code == PL_OK)
        st_compute_radial(s->env, &s->conf->compute, u->radial_error, &s->radial_error);
    unit->first = u->n ? u->id[0] : 0;
    unit->last = u->n ? u->id[u->n - 1] : 0;
    return code;
}
