/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/errors/calibrate.h"

#include <math.h>

#include "stages/steps/errors/cases.h"

static pl_code outside_find(bool *outside, const st_errors *e, st_cases *cases, const st_dataset *d, const nn_model_file *m,
                            double lowest, pl_error *err)
{
    pl_arena *scratch = pl_arena_new(1 << 14);
    pl_text why = { 0 };
    pl_code code = scratch != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "the domain of a model");

    for (int64_t i = 0; i < e->model.n && code == PL_OK; i++) {
        nn_traits traits;
        nn_case one;
        pl_arena_reset(scratch);
        pl_text_reset(&why);
        code = nn_traits_of(&traits, d->item[e->at[i]].graph, scratch, err);
        if (code == PL_OK)
            code = st_cases_read(&one, cases, &d->mol_id[e->at[i]], 1, err);
        if (code != PL_OK)
            break;
        one.traits = &traits;
        one.alike = e->alike != NULL ? e->alike[i] : NAN;
        nn_model_reasons(&why, m, lowest, &one, d->item[e->at[i]].column);
        outside[i] = why.len > 0;
        code = pl_text_ok(&why) ? PL_OK : pl_fail(err, PL_ENOMEM, "the domain of a model");
    }
    pl_text_free(&why);
    pl_arena_free(scratch);
    return code;
}

pl_code st_errors_domain(st_errors *e, int32_t k, const pl_env *env, const st_dataset *d, const nn_model_file *m, pl_error *err)
{
    st_cases cases = { 0 };
    bool *outside = PL_NEW(d->mem, bool, e->model.n + 1);
    pl_code code = outside != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "the domain of a model");

    if (code != PL_OK || m->range.molecules == 0)
        return code;
    code = st_cases_open(&cases, env, err);
    if (code == PL_OK)
        code = outside_find(outside, e, &cases, d, m, m->target[k].lowest, err);
    e->outside = outside;
    st_cases_close(&cases);
    return code;
}

pl_code st_calibrate(nn_model_file *m, int32_t k, st_errors *e, st_part part, const pl_env *env, const st_dataset *d, pl_error *err)
{
    nn_target *t = &m->target[k];
    double *y = PL_NEW(d->mem, double, 3 * (e->model.n + 1)), *p = y + e->model.n + 1, *alike = p + e->model.n + 1;
    int64_t n = 0;
    pl_code code =
        y != NULL ? nn_conformal_lowest(&t->lowest, e->alike, e->model.n, d->mem, err) : pl_fail(err, PL_ENOMEM, "an interval");

    t->interval = (nn_conformal){ .part = st_part_name[part] };
    if (code == PL_OK)
        code = st_errors_domain(e, k, env, d, m, err);
    if (code != PL_OK || m->classifies)
        return code;
    for (int64_t i = 0; i < e->model.n; i++) {
        if (e->outside != NULL && e->outside[i])
            continue;
        y[n] = e->measured[i];
        p[n] = e->predicted[i];
        alike[n++] = e->alike[i];
    }
    return nn_conformal_fit(&t->interval, y, p, alike, n, d->mem, err);
}
