/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "chem/molecule/element.h"
#include "stages/steps/score/score_parts.h"

/* An unknown element is reported once per model, with its first target. */
static pl_code failure_put(score_state *s, int64_t mol_id, const outcome *o, const scored_target *t, pl_error *err)
{
    const nn_model_file *m = s->model[t->model].m;
    char message[480];

    if (o->unknown && t->output > 0)
        return PL_OK;
    if (o->unknown)
        (void)sqlite3_snprintf(sizeof message, message, "model %s has not seen element %s", m->name, ch_element_symbol(o->unknown));
    else
        (void)sqlite3_snprintf(sizeof message, message, "model %s gives no finite number%s%s", m->name,
                               m->conf.outputs > 1 ? " for " : "", m->conf.outputs > 1 ? m->target[t->output].name : "");
    return pl_failure_add(
        s->env, &(pl_failure){ .mol_id = mol_id, .code = o->unknown ? "element" : "not_finite", .message = message, .attempt = 1 },
        err);
}

static bool is_good(const outcome *o) { return !o->unknown && isfinite(o->value); }

/* Without a nearest molecule NaN and NULL, both of which are stored as NULL. */
static nn_near near_of(const score_unit *u, int32_t i, int k)
{
    return u->near[k] != NULL ? u->near[k][i] : (nn_near){ NAN, NULL };
}

static pl_code predictions_put(score_state *s, const score_unit *u, int32_t i, bool *failed, pl_error *err)
{
    const outcome *o = u->outcome + (int64_t)i * s->n_targets;
    const int64_t mol_id = u->id[i];
    pl_code code = PL_OK;

    for (int k = 0; k < s->n_targets && code == PL_OK; k++) {
        const int model = s->target[k].model;
        if (!is_good(&o[k])) {
            code = failure_put(s, mol_id, &o[k], &s->target[k], err);
            *failed = true;
            continue;
        }
        (void)sqlite3_bind_int64(s->put_prediction, 1, mol_id);
        (void)sqlite3_bind_int64(s->put_prediction, 2, s->target[k].property_id);
        (void)sqlite3_bind_int64(s->put_prediction, 3, s->model[model].model_id);
        (void)sqlite3_bind_double(s->put_prediction, 4, o[k].value);
        (void)sqlite3_bind_double(s->put_prediction, 5, near_of(u, i, model).alike);
        (void)sqlite3_bind_text(s->put_prediction, 6, near_of(u, i, model).key, -1, SQLITE_STATIC);
        (void)sqlite3_bind_double(s->put_prediction, 7, o[k].spread);
        (void)sqlite3_bind_double(s->put_prediction, 8, o[k].uncertainty);
        code = pl_db_run(s->put_prediction, err);
    }
    return code;
}

/* The half-width of the 90 % prediction interval that the model has for this similarity. */
static double within_of(const score_state *s, const score_unit *u, int32_t i, int k)
{
    const scored_target *t = &s->target[k];

    return nn_conformal_within(&s->model[t->model].m->target[t->output].interval, near_of(u, i, t->model).alike);
}

/* The smaller or the larger; NaN if one of them is. */
static double smaller(double a, double b) { return isnan(a) || a <= b ? a : b; }
static double larger(double a, double b) { return isnan(a) || a >= b ? a : b; }

/* Whether a model of the property of target k has no range; else puts into s->reasons why the molecule is outside. */
static bool reasons_find(score_state *s, const score_unit *u, int32_t i, int k, nn_case *c)
{
    const outcome *o = u->outcome + (int64_t)i * s->n_targets;
    bool known = true;

    pl_text_reset(&s->reasons);
    for (int j = k; j < s->n_targets; j++) {
        const scored_target *t = &s->target[j];
        const nn_model_file *m = s->model[t->model].m;
        if (t->property_id != s->target[k].property_id || !is_good(&o[j]))
            continue;
        known = known && m->range.molecules > 0;
        c->alike = near_of(u, i, t->model).alike;
        if (m->range.molecules > 0)
            nn_range_reasons(&s->reasons, &m->range, m->target[t->output].lowest, c);
    }
    return known;
}

/* Outside as soon as one model says so; inside only where all do. */
static pl_code domain_put(score_state *s, const score_unit *u, int32_t i, int k, double within, nn_case *c, pl_error *err)
{
    const bool known = s->has_range && reasons_find(s, u, i, k, c), outside = s->has_range && s->reasons.len > 0;

    if (s->has_range && !pl_text_ok(&s->reasons))
        return pl_fail(err, PL_ENOMEM, "a score");
    (void)sqlite3_bind_double(s->put_score, 7, outside ? NAN : within); /* NaN is NULL */
    if (outside || known)
        (void)sqlite3_bind_text(s->put_score, 8, outside ? "outside" : "inside", -1, SQLITE_STATIC);
    if (outside)
        (void)sqlite3_bind_text(s->put_score, 9, pl_text_str(&s->reasons), -1, SQLITE_TRANSIENT);
    return pl_db_run(s->put_score, err);
}

/* Mean, sample standard deviation, smallest similarity and largest interval over the property's predictions; k is its first valid one. */
static pl_code score_put(score_state *s, const score_unit *u, int32_t i, int k, nn_case *c, pl_error *err)
{
    const outcome *o = u->outcome + (int64_t)i * s->n_targets;
    const int64_t property_id = s->target[k].property_id;
    double mean = 0, square = 0, alike = near_of(u, i, s->target[k].model).alike, within = within_of(s, u, i, k);
    int n = 0;

    for (int j = k; j < s->n_targets; j++)
        if (s->target[j].property_id == property_id && is_good(&o[j])) {
            mean += o[j].value;
            alike = smaller(alike, near_of(u, i, s->target[j].model).alike);
            within = larger(within, within_of(s, u, i, j));
            n++;
        }
    mean /= n;
    for (int j = k; j < s->n_targets; j++)
        if (s->target[j].property_id == property_id && is_good(&o[j]))
            square += (o[j].value - mean) * (o[j].value - mean);
    (void)sqlite3_bind_int64(s->put_score, 1, u->id[i]);
    (void)sqlite3_bind_int64(s->put_score, 2, property_id);
    (void)sqlite3_bind_double(s->put_score, 3, mean);
    if (n > 1)
        (void)sqlite3_bind_double(s->put_score, 4, sqrt(square / (n - 1)));
    (void)sqlite3_bind_int(s->put_score, 5, n);
    (void)sqlite3_bind_double(s->put_score, 6, alike);
    return domain_put(s, u, i, k, within, c, err);
}

static pl_code case_read(score_state *s, const score_unit *u, int32_t i, nn_case *c, pl_error *err)
{
    pl_code code = st_case_read(c, &s->cases, u->id[i], err);

    c->traits = &u->traits[i];
    return code;
}

static bool is_first_good(const score_state *s, const outcome *o, int k)
{
    for (int j = 0; j < k; j++)
        if (s->target[j].property_id == s->target[k].property_id && is_good(&o[j]))
            return false;
    return is_good(&o[k]);
}

static bool any_good(const score_state *s, const outcome *o)
{
    bool any = false;

    for (int k = 0; k < s->n_targets && !any; k++)
        any = is_good(&o[k]);
    return any;
}

pl_code st_score_commit(void *state, pl_unit *unit, pl_error *err)
{
    score_state *s = state;
    score_unit *u = unit->data;
    pl_code code = PL_OK;

    for (int32_t i = 0; i < u->n && code == PL_OK; i++) {
        const outcome *o = u->outcome + (int64_t)i * s->n_targets;
        bool failed = false; /* a molecule that at least one model predicts does not count for limits.failures */
        nn_case c = { 0 };
        code = predictions_put(s, u, i, &failed, err);
        if (code == PL_OK && s->has_range)
            code = case_read(s, u, i, &c, err);
        for (int k = 0; k < s->n_targets && code == PL_OK; k++)
            if (is_first_good(s, o, k))
                code = score_put(s, u, i, k, &c, err);
        failed = failed && !any_good(s, o);
        unit->n_ok += !failed;
        unit->n_failed += failed;
    }
    if (code == PL_OK)
        code = st_compute_radial(s->env, &s->conf->compute, u->radial_error, &s->radial_error);
    unit->first = u->n ? u->id[0] : 0;
    unit->last = u->n ? u->id[u->n - 1] : 0;
    return code;
}
