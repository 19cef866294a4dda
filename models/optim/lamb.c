/* SPDX-License-Identifier: Apache-2.0 */
#include "models/optim/lamb.h"

#include <math.h>

nn_lamb_rule nn_lamb_rule_make(const nn_adamw_conf *c, int64_t step, float lr)
{
    return (nn_lamb_rule){
        .b1 = (float)c->beta1,
        .b2 = (float)c->beta2,
        .eps = (float)c->eps,
        .decay = (float)c->decay,
        .lr = lr,
        .a1 = (float)(1.0 - c->beta1),
        .a2 = (float)(1.0 - c->beta2),
        .fix1 = (float)(1.0 / (1.0 - pow(c->beta1, (double)step))),
        .fix2 = (float)(1.0 / sqrt(1.0 - pow(c->beta2, (double)step))),
        .clip = 1.0f,
    };
}

float nn_lamb_ratio(nn_lamb_squares whole) { return whole.p > 0 && whole.u > 0 ? (float)(sqrt(whole.p) / sqrt(whole.u)) : 1.0f; }

static float direction(float p, float m, float v, const nn_lamb_rule *r)
{
    return m * r->fix1 / (sqrtf(v) * r->fix2 + r->eps) + r->decay * p;
}

/* Four partial sums, so that the compiler can vectorise; the order is fixed. */
nn_lamb_squares nn_lamb_moments(const nn_adamw_arrays *a, size_t first, size_t n, const nn_lamb_rule *r)
{
    const float *restrict p = a->p + first, *restrict g = a->g + first;
    float *restrict m = a->m + first, *restrict v = a->v + first;
    double sum_p[4] = { 0 }, sum_u[4] = { 0 };

    for (size_t k = 0; k < n; k++) {
        float x = g[k] * r->clip, u;
        m[k] = r->b1 * m[k] + r->a1 * x;
        v[k] = r->b2 * v[k] + r->a2 * x * x;
        u = direction(p[k], m[k], v[k], r);
        sum_p[k % 4] += (double)p[k] * (double)p[k];
        sum_u[k % 4] += (double)u * (double)u;
    }
    return (nn_lamb_squares){ (sum_p[0] + sum_p[1]) + (sum_p[2] + sum_p[3]), (sum_u[0] + sum_u[1]) + (sum_u[2] + sum_u[3]) };
}

void nn_lamb_update(const nn_adamw_arrays *a, size_t first, size_t n, const nn_lamb_rule *r, float ratio)
{
    const float *restrict m = a->m + first, *restrict v = a->v + first;
    float *restrict p = a->p + first, by = r->lr * ratio;

    for (size_t k = 0; k < n; k++)
        p[k] -= by * direction(p[k], m[k], v[k], r);
    for (size_t k = 0; a->ema != NULL && k < n; k++)
        a->ema[first + k] += r->average * (p[k] - a->ema[first + k]);
}
