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

static pl_code predictions_put(score_state *s, const st_scored *u, int32_t i, bool *failed, pl_error *err)
{
    const st_outcome *o = u->outcome + (int64_t)i * s->scorer.n_targets;
    const int64_t mol_id = u->id[i];
    pl_code code = PL_OK;

    for (int k = 0; k < s->scorer.n_targets && code == PL_OK; k++) {
        const int model = s->scorer.target[k].model;
        const nn_near near = st_scored_near(u, i, model); /* NaN and NULL are both stored as NULL */
        if (!st_outcome_is_good(&o[k])) {
            code = failure_put(s, mol_id, o, k, err);
            *failed = true;
            continue;
        }
        (void)sqlite3_bind_int64(s->put_prediction, 1, mol_id);
        (void)sqlite3_bind_int64(s->put_prediction, 2, s->scorer.target[k].property_id);
        (void)sqlite3_bind_int64(s->put_prediction, 3, s->model_id[model]);
        (void)sqlite3_bind_double(s->put_prediction, 4, o[k].value);
        (void)sqlite3_bind_double(s->put_prediction, 5, near.alike);
        (void)sqlite3_bind_text(s->put_prediction, 6, near.key, -1, SQLITE_STATIC);
        (void)sqlite3_bind_double(s->put_prediction, 7, o[k].spread);
        (void)sqlite3_bind_double(s->put_prediction, 8, o[k].uncertainty);
        code = pl_db_run(s->put_prediction, err);
    }
    return code;
}

/* Over the property's predictions; k is its first valid one. NaN is NULL. */
static pl_code score_put(score_state *s, const st_scored *u, int32_t i, int k, nn_case *c, pl_error *err)
{
    st_value v;
    pl_code code = st_scorer_value(&v, &s->scorer, u, i, k, c, &s->reasons, err);

    if (code != PL_OK)
        return code;
    (void)sqlite3_bind_int64(s->put_score, 1, u->id[i]);
    (void)sqlite3_bind_int64(s->put_score, 2, s->scorer.target[k].property_id);
    (void)sqlite3_bind_double(s->put_score, 3, v.mean);
    (void)sqlite3_bind_double(s->put_score, 4, v.stdev);
    (void)sqlite3_bind_int(s->put_score, 5, v.n_models);
    (void)sqlite3_bind_double(s->put_score, 6, v.similarity);
    (void)sqlite3_bind_double(s->put_score, 7, v.interval90);
    (void)sqlite3_bind_text(s->put_score, 8, v.domain, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(s->put_score, 9, v.reasons, -1, SQLITE_TRANSIENT);
    return pl_db_run(s->put_score, err);
}

static pl_code case_read(score_state *s, const st_scored *u, int32_t i, nn_case *c, pl_error *err)
{
    pl_code code = st_case_read(c, &s->cases, u->id[i], err);

    c->traits = &u->traits[i];
    return code;
}

static bool any_good(const st_scorer *s, const st_outcome *o)
{
    bool any = false;

    for (int k = 0; k < s->n_targets && !any; k++)
        any = st_outcome_is_good(&o[k]);
    return any;
}

pl_code st_score_commit(void *state, pl_unit *unit, pl_error *err)
{
    score_state *s = state;
    const st_scored *u = &((const score_unit *)unit->data)->scored;
    pl_code code = PL_OK;

    for (int32_t i = 0; i < u->n && code == PL_OK; i++) {
        const st_outcome *o = u->outcome + (int64_t)i * s->scorer.n_targets;
        bool failed = false; /* a molecule that at least one model predicts does not count for limits.failures */
        nn_case c = { 0 };
        code = predictions_put(s, u, i, &failed, err);
        if (code == PL_OK && s->scorer.has_range)
            code = case_read(s, u, i, &c, err);
        for (int k = 0; k < s->scorer.n_targets && code == PL_OK; k++)
            if (st_scorer_is_first(&s->scorer, o, k))
                code = score_put(s, u, i, k, &c, err);
        failed = failed && !any_good(&s->scorer, o);
        unit->n_ok += !failed;
        unit->n_failed += failed;
    }
    if (code == PL_OK)
        code = st_compute_radial(s->env, &s->conf->compute, u->radial_error, &s->radial_error);
    unit->first = u->n ? u->id[0] : 0;
    unit->last = u->n ? u->id[u->n - 1] : 0;
    return code;
}
