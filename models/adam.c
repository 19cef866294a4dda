/* SPDX-License-Identifier: Apache-2.0 */
#include "models/adam.h"

#include <math.h>

void nn_adamw_step(float *p, float *m, float *v, const float *g, size_t n, const nn_adamw_conf *c,
                   int64_t step, float lr)
{
    float b1 = (float)c->beta1, b2 = (float)c->beta2, eps = (float)c->eps;
    float a1 = (float)(1.0 - c->beta1), a2 = (float)(1.0 - c->beta2);
    float keep = (float)(1.0 - (double)lr * c->decay);
    float rate = (float)((double)lr / (1.0 - pow(c->beta1, (double)step)));
    float fix = (float)(1.0 / sqrt(1.0 - pow(c->beta2, (double)step)));

    for (size_t k = 0; k < n; k++) {
        m[k] = b1 * m[k] + a1 * g[k];
        v[k] = b2 * v[k] + a2 * g[k] * g[k];
        p[k] = keep * p[k] - rate * m[k] / (sqrtf(v[k]) * fix + eps);
    }
}

void nn_adamw_step_double(double *p, double *m, double *v, const double *g, size_t n,
                          const nn_adamw_conf *c, int64_t step, double lr)
{
    double keep = 1.0 - lr * c->decay, rate = lr / (1.0 - pow(c->beta1, (double)step));
    double fix = 1.0 / sqrt(1.0 - pow(c->beta2, (double)step));

    for (size_t k = 0; k < n; k++) {
        m[k] = c->beta1 * m[k] + (1.0 - c->beta1) * g[k];
        v[k] = c->beta2 * v[k] + (1.0 - c->beta2) * g[k] * g[k];
        p[k] = keep * p[k] - rate * m[k] / (sqrt(v[k]) * fix + c->eps);
    }
}
