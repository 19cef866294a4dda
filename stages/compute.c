/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/compute.h"

#include "pipeline/base/log.h"
#include "pipeline/store.h"

static nn_precision precision_of(const st_compute *c, int32_t own)
{
    return (nn_precision)(own ? own - 1 : c->precision);
}

nn_engine_conf st_compute_conf(const st_compute *c, int threads)
{
    return (nn_engine_conf){ .threads = threads < 1 ? 1 : threads, .radial = (nn_radial)c->radial, .width = c->width,
                             .of_radial = precision_of(c, c->of_radial), .of_contract = precision_of(c, c->of_contract),
                             .of_linear = precision_of(c, c->of_linear) };
}

pl_code st_compute_radial(pl_env *env, const st_compute *c, double off, double *worst)
{
    if (off <= 1e-3 || off <= *worst)
        return PL_OK;
    *worst = off;
    return pl_event_add(env, "warning", "radial nodes %g Angstrom apart are too coarse: hidden units are off by %.2g "
                        "(root mean square), more than 1e-3; set radial.width to %g", c->width, off, c->width / 2);
}

const nn_engine_kind *st_compute_engine(const st_compute *c)
{
    static const nn_engine_kind *const kinds[] = { &nn_engine_cpu, &nn_engine_ref, &nn_engine_cuda };
    nn_engine_conf conf = st_compute_conf(c, 1);
    pl_error err = { 0 };

    if (c->engine != ST_ENGINE_AUTO)
        return kinds[c->engine];
    return nn_engine_cuda.check(&conf, &err) ? &nn_engine_cpu : &nn_engine_cuda;
}

void st_compute_say(const st_compute *c, const char *stage)
{
    nn_engine_conf conf = st_compute_conf(c, 1);
    pl_error err = { 0 };

    if (c->engine == ST_ENGINE_AUTO && nn_engine_cuda.check(&conf, &err))
        pl_log(PL_INFO, "%-9s engine auto: the cpu; %s", stage, err.text);
    else if (c->engine == ST_ENGINE_AUTO)
        pl_log(PL_INFO, "%-9s engine auto: the GPU", stage);
}

void st_compute_check(const st_compute *c, const pl_step *step, pl_problems *problems)
{
    nn_engine_conf conf = st_compute_conf(c, 1);
    pl_error err = { 0 };

    if (st_compute_engine(c)->check(&conf, &err))
        pl_problem_add(problems, step->node, "%s", err.text);
}
