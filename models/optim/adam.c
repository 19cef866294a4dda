/* SPDX-License-Identifier: Apache-2.0 */
#include "models/optim/adam.h"

#include <math.h>

enum { BLOCK = 2048 }; /* floats of each array per block: the moving average reads them while they are still in the cache */

nn_adamw_rule nn_adamw_rule_make(const nn_adamw_conf *c, int64_t step, float lr)
{
    return (nn_adamw_rule){
        .b1 = (float)c->beta1,
        .b2 = (float)c->beta2,
        .eps = (float)c->eps,
        .a1 = (float)(1.0 - c->beta1),
        .a2 = (float)(1.0 - c->beta2),
        .keep = (float)(1.0 - (double)lr * c->decay),
        .rate = (float)((double)lr / (1.0 - pow(c->beta1, (double)step))),
        .fix = (float)(1.0 / sqrt(1.0 - pow(c->beta2, (double)step))),
        .clip = 1.0f,
    };
}

static void block_update(float *restrict p, float *restrict m, float *restrict v, const float *restrict g, size_t n,
                         const nn_adamw_rule r)
{
    for (size_t k = 0; k < n; k++) {
        float x = g[k] * r.clip;
        m[k] = r.b1 * m[k] + r.a1 * x;
        v[k] = r.b2 * v[k] + r.a2 * x * x;
        p[k] = r.keep * p[k] - r.rate * m[k] / (sqrtf(v[k]) * r.fix + r.eps);
    }
}

static void block_average(float *restrict ema, const float *restrict p, size_t n, float by)
{
    for (size_t k = 0; k < n; k++)
        ema[k] += by * (p[k] - ema[k]);
}

void nn_adamw_update(const nn_adamw_arrays *a, size_t first, size_t n, const nn_adamw_rule *r)
{
    for (size_t at = first; at < first + n; at += BLOCK) {
        size_t some = first + n - at < BLOCK ? first + n - at : BLOCK;
        block_update(a->p + at, a->m + at, a->v + at, a->g + at, some, *r);
        if (a->ema != NULL)
            block_average(a->ema + at, a->p + at, some, r->average);
    }
}

void nn_adamw_step(float *p, float *m, float *v, const float *g, size_t n, const nn_adamw_conf *c, int64_t step, float lr)
{
    nn_adamw_rule r = nn_adamw_rule_make(c, step, lr);

    nn_adamw_update(&(nn_adamw_arrays){ .p = p, .m = m, .v = v, .g = g }, 0, n, &r);
}

void nn_adamw_step_double(double *p, double *m, double *v, const double *g, size_t n, const nn_adamw_conf *c, int64_t step,
                          double lr)
{
    double keep = 1.0 - lr * c->decay, rate = lr / (1.0 - pow(c->beta1, (double)step));
    double fix = 1.0 / sqrt(1.0 - pow(c->beta2, (double)step));

    for (size_t k = 0; k < n; k++) {
        m[k] = c->beta1 * m[k] + (1.0 - c->beta1) * g[k];
        v[k] = c->beta2 * v[k] + (1.0 - c->beta2) * g[k] * g[k];
        p[k] = keep * p[k] - rate * m[k] / (sqrt(v[k]) * fix + c->eps);
    }
}
