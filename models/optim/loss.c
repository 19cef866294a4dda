/* SPDX-License-Identifier: Apache-2.0 */
#include "models/optim/loss.h"

#include <math.h>
#include <stddef.h>

int64_t nn_loss_measured(const float *t, int64_t n)
{
    int64_t count = 0;

    for (int64_t i = 0; i < n; i++)
        count += !isnan(t[i]);
    return count;
}

double nn_logistic(double x)
{
    double small = exp(-fabs(x)), large = 1 / (1 + small);

    return x < 0 ? small * large : large;
}

/* 0 between the limits, also for an y that is not finite times 0, so that this is seen. */
static double distance(double y, double low, double high)
{
    if (y < low || low == high)
        return y - low;
    return y > high ? y - high : 0 * y;
}

/* One number: what it adds to the sums, and the derivative of its loss. */
static double number_add(nn_loss_sum *s, nn_loss kind, double y, double t, double high)
{
    const double e = distance(y, t, high), weight = t != 0 ? fabs(t) : 1;

    if (kind == NN_LOSS_BCE) {
        const double z = t > 0 ? -y : y; /* log odds of the other class */
        const double wrong = nn_logistic(z);
        s->loss += weight * (fmax(z, 0) + log1p(exp(-fabs(z))));
        s->abs += wrong;
        s->square += wrong * wrong;
        return weight * (t > 0 ? -wrong : wrong);
    }
    s->abs += fabs(e);
    s->square += e * e;
    return kind == NN_LOSS_L2 ? 2.0 * e : (e > 0) - (e < 0);
}

nn_loss_sum nn_loss_backward(nn_loss kind, const float *y, const float *t, const float *high, int64_t n, int64_t of, float *dy)
{
    nn_loss_sum s = { .n = nn_loss_measured(t, n) };
    double per = of ? 1.0 / (double)of : 0.0;

    for (int64_t i = 0; i < n; i++) {
        dy[i] = 0.0f;
        if (!isnan(t[i]))
            dy[i] = (float)(per * number_add(&s, kind, (double)y[i], (double)t[i], (double)(high != NULL ? high[i] : t[i])));
    }
    if (kind != NN_LOSS_BCE)
        s.loss = kind == NN_LOSS_L2 ? s.square : s.abs;
    return s;
}

void nn_loss_add(nn_loss_sum *to, const nn_loss_sum *more)
{
    to->loss += more->loss;
    to->abs += more->abs;
    to->square += more->square;
    to->n += more->n;
}

nn_noise_sum nn_noise_backward(const float (*v)[3], const float (*noise)[3], int64_t n, int64_t of, double by, float (*dv)[3])
{
    nn_noise_sum sum = { .n = 3 * n };

    by *= 2 / (3 * (double)of);
    for (int64_t i = 0; i < n; i++)
        for (int a = 0; a < 3; a++) {
            double off = (double)v[i][a] - (double)noise[i][a];
            sum.square += off * off;
            dv[i][a] = (float)(by * off);
        }
    return sum;
}

nn_loss_scale nn_loss_scale_begin(nn_loss_scale was, int64_t after)
{
    if (!after)
        return (nn_loss_scale){ 1, 0 };
    return was.by >= 1 ? was : (nn_loss_scale){ NN_LOSS_SCALE_FIRST, 0 };
}

nn_loss_scale nn_loss_scale_next(nn_loss_scale s, int64_t after, bool taken)
{
    if (!after)
        return s;
    if (!taken)
        return (nn_loss_scale){ fmax(s.by / 2, 1), 0 };
    if (++s.good < after)
        return s;
    return (nn_loss_scale){ fmin(2 * s.by, NN_LOSS_SCALE_MAX), 0 };
}
