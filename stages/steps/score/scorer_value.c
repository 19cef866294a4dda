/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>

#include "chem/molecule/element.h"
#include "stages/steps/score/scorer.h"

bool st_outcome_is_good(const st_outcome *o) { return !o->unknown && isfinite(o->value); }

nn_near st_scored_near(const st_scored *u, int32_t i, int target)
{
    return u->near[target] != NULL ? u->near[target][i] : (nn_near){ NAN, NULL };
}

bool st_scorer_is_first(const st_scorer *s, const st_outcome *o, int k)
{
    for (int j = 0; j < k; j++)
        if (s->target[j].property_id == s->target[k].property_id && st_outcome_is_good(&o[j]))
            return false;
    return st_outcome_is_good(&o[k]);
}

const char *st_scorer_problem(const st_scorer *s, const st_outcome *o, int k, char out[480], const char **code)
{
    const st_scored_target *t = &s->target[k];
    const nn_model_file *m = s->model[t->model].m;

    *code = o[k].unknown ? "element" : "not_finite";
    if (o[k].unknown && t->output > 0)
        return NULL;
    if (o[k].unknown)
        (void)snprintf(out, 480, "model %s has not seen element %s", m->name, ch_element_symbol(o[k].unknown));
    else
        (void)snprintf(out, 480, "model %s gives no finite number%s%s", m->name, m->conf.outputs > 1 ? " for " : "",
                       m->conf.outputs > 1 ? m->target[t->output].name : "");
    return out;
}

/* The half-width of the 90 % prediction interval that the model has for this similarity. */
static double within_of(const st_scorer *s, const st_scored *u, int32_t i, int k)
{
    const st_scored_target *t = &s->target[k];

    return nn_conformal_within(&s->model[t->model].m->target[t->output].interval, st_scored_near(u, i, k).alike);
}

/* The smaller or the larger; NaN if one of them is. */
static double smaller(double a, double b) { return isnan(a) || a <= b ? a : b; }
static double larger(double a, double b) { return isnan(a) || a >= b ? a : b; }

/* Whether a model of the property of target k has no range; else adds why the molecule is outside. */
static bool reasons_find(pl_text *reasons, const st_scorer *s, const st_scored *u, int32_t i, int k, nn_case *c)
{
    const st_outcome *o = u->outcome + (int64_t)i * s->n_targets;
    bool known = true;

    for (int j = k; j < s->n_targets; j++) {
        const st_scored_target *t = &s->target[j];
        const nn_model_file *m = s->model[t->model].m;
        if (t->property_id != s->target[k].property_id || !st_outcome_is_good(&o[j]))
            continue;
        known = known && m->range.molecules > 0;
        c->alike = st_scored_near(u, i, j).alike;
        if (m->range.molecules > 0)
            nn_model_reasons(reasons, m, t->output, c, u->column != NULL ? u->column[i] : NULL);
    }
    return known;
}

/* Outside as soon as one model says so; inside only where all do. */
static pl_code domain_find(st_value *out, const st_scorer *s, const st_scored *u, int32_t i, int k, nn_case *c, pl_text *reasons,
                           pl_error *err)
{
    bool known = false;

    pl_text_reset(reasons);
    if (s->has_range)
        known = reasons_find(reasons, s, u, i, k, c);
    if (!pl_text_ok(reasons))
        return pl_fail(err, PL_ENOMEM, "a score");
    if (reasons->len > 0) {
        out->interval90 = NAN;
        out->domain = "outside";
        out->reasons = pl_text_str(reasons);
    } else if (known) {
        out->domain = "inside";
    }
    return PL_OK;
}

pl_code st_scorer_value(st_value *out, const st_scorer *s, const st_scored *u, int32_t i, int k, nn_case *c, pl_text *reasons,
                        pl_error *err)
{
    const st_outcome *o = u->outcome + (int64_t)i * s->n_targets;
    const int64_t property_id = s->target[k].property_id;
    double mean = 0, square = 0, alike = st_scored_near(u, i, k).alike, within = within_of(s, u, i, k);
    int n = 0;

    for (int j = k; j < s->n_targets; j++)
        if (s->target[j].property_id == property_id && st_outcome_is_good(&o[j])) {
            mean += o[j].value;
            alike = smaller(alike, st_scored_near(u, i, j).alike);
            within = larger(within, within_of(s, u, i, j));
            n++;
        }
    mean /= n;
    for (int j = k; j < s->n_targets; j++)
        if (s->target[j].property_id == property_id && st_outcome_is_good(&o[j]))
            square += (o[j].value - mean) * (o[j].value - mean);
    *out = (st_value){
        .mean = mean, .stdev = n > 1 ? sqrt(square / (n - 1)) : NAN, .n_models = n, .similarity = alike, .interval90 = within
    };
    return domain_find(out, s, u, i, k, c, reasons, err);
}
