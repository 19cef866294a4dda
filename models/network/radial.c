/* SPDX-License-Identifier: Apache-2.0 */
#include "models/network/radial.h"

#include <math.h>
#include <string.h>

static const double PI = 3.14159265358979323846, NOTHING = -1e30;

pl_code nn_radial_check(const nn_radial_conf *c, pl_error *err)
{
    if (c->basis < NN_BASIS_DISTANCE || c->basis > NN_BASIS_GAUSSIAN)
        return pl_fail(err, PL_ECONFIG, "radial.basis %d is not known", (int)c->basis);
    if (c->envelope < NN_ENVELOPE_NONE || c->envelope > NN_ENVELOPE_POLYNOMIAL)
        return pl_fail(err, PL_ECONFIG, "radial.envelope %d is not known", (int)c->envelope);
    if (nn_radial_is_plain(c))
        return PL_OK;
    if (!(c->cutoff > 0 && c->cutoff <= 1000))
        return pl_fail(err, PL_ECONFIG, "radial.cutoff is %g Angstrom, must be above 0 and at most 1000", c->cutoff);
    if (c->basis != NN_BASIS_DISTANCE && (c->number < NN_RADIAL_MIN || c->number > NN_RADIAL_MAX))
        return pl_fail(err, PL_ECONFIG, "radial.number is %d, must be %d to %d", (int)c->number, NN_RADIAL_MIN, NN_RADIAL_MAX);
    return PL_OK;
}

bool nn_radial_is_plain(const nn_radial_conf *c) { return c->basis == NN_BASIS_DISTANCE && c->envelope == NN_ENVELOPE_NONE; }

bool nn_radial_same(const nn_radial_conf *a, const nn_radial_conf *b)
{
    if (a->basis != b->basis || a->envelope != b->envelope)
        return false;
    return nn_radial_is_plain(a) || (a->cutoff == b->cutoff && (a->basis == NN_BASIS_DISTANCE || a->number == b->number));
}

int32_t nn_radial_inputs(const nn_radial_conf *c) { return c->basis == NN_BASIS_DISTANCE ? 1 : c->number; }

/* sin(n x) and cos(n x) by the angle sums: one sine and one cosine in all. */
static void bessel(const nn_radial_conf *c, double r, double *value, double *slope)
{
    const double x = PI * r / c->cutoff, s1 = sin(x), c1 = cos(x), scale = sqrt(2 / c->cutoff);
    double s = s1, k = c1;

    for (int n = 1; n <= c->number; n++) {
        const double next = s * c1 + k * s1;
        value[n - 1] = scale * s / r;
        if (slope != NULL)
            slope[n - 1] = scale * (n * PI / c->cutoff * k - s / r) / r;
        k = k * c1 - s * s1;
        s = next;
    }
}

static void gaussian(const nn_radial_conf *c, double r, double *value, double *slope)
{
    const double step = c->cutoff / (c->number - 1);

    for (int n = 0; n < c->number; n++) {
        const double off = r / step - n;
        value[n] = exp(-off * off / 2);
        if (slope != NULL)
            slope[n] = -off / step * value[n];
    }
}

void nn_radial_values(const nn_radial_conf *c, double r, double *value, double *slope)
{
    if (c->basis == NN_BASIS_BESSEL) {
        bessel(c, r, value, slope);
    } else if (c->basis == NN_BASIS_GAUSSIAN) {
        gaussian(c, r, value, slope);
    } else {
        value[0] = r;
        if (slope != NULL)
            slope[0] = 1;
    }
}

void nn_radial_floats(const nn_radial_conf *c, float r, float *value)
{
    double v[NN_RADIAL_MAX];

    nn_radial_values(c, (double)r, v, NULL);
    for (int32_t k = 0; k < nn_radial_inputs(c); k++)
        value[k] = (float)v[k];
}

void nn_radial_expand(const nn_radial_conf *c, const float *from, int32_t n_features, float *to)
{
    memcpy(to, from, (size_t)n_features * sizeof *to);
    nn_radial_floats(c, from[n_features], to + n_features);
}

/* With d = r/cutoff: (1-d)^3 (1 + 3d + 6d^2 + 10d^3 + 15d^4 + 21d^5) = 1 - 28d^6 + 48d^7 - 21d^8, without its cancellation. */
double nn_radial_envelope(const nn_radial_conf *c, double r, double *slope)
{
    const double d = r / c->cutoff, rest = 1 - d;

    if (c->envelope == NN_ENVELOPE_NONE || !(d < 1)) {
        if (slope != NULL)
            *slope = 0;
        return c->envelope == NN_ENVELOPE_NONE;
    }
    if (slope != NULL)
        *slope = -168 * d * d * d * d * d * rest * rest / c->cutoff;
    return rest * rest * rest * (1 + d * (3 + d * (6 + d * (10 + d * (15 + d * 21)))));
}

double nn_radial_log_envelope(double u) { return u > 0 ? log(u) : NOTHING; }
