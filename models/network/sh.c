/* SPDX-License-Identifier: Apache-2.0 */
#include "models/network/sh.h"

#include <math.h>

void nn_unit(double u[3], const double v[3])
{
    double r = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
    double scale = 1.0 / fmax(r, 1e-12);

    for (int k = 0; k < 3; k++)
        u[k] = v[k] * scale;
}

/* sqrt((2l+1)/(4 pi) * (2 if m > 0) * (l-m)!/(l+m)!) */
static double sh_norm(int l, int m)
{
    double ratio = 1.0;

    for (int k = l - m + 1; k <= l + m; k++)
        ratio /= k;
    return sqrt((2 * l + 1) / (4.0 * M_PI) * (m ? 2.0 : 1.0) * ratio);
}

/* Legendre functions without the factor sin^m, by the upward recursion in l; with
 * r2 = |u|^2 in place of 1 they are solid harmonics, so that zero gives zero. */
static void sh_order(double *out, int lmax, int m, const double u[3], const double cs[2])
{
    double y = u[1], r2 = u[0] * u[0] + u[1] * u[1] + u[2] * u[2], before = 0.0, p = 1.0;

    for (int k = 1; k <= m; k++)
        p *= 2 * k - 1;
    for (int l = m; l <= lmax; l++) {
        double scaled = sh_norm(l, m) * p, next;
        out[l * l + l + m] = scaled * cs[0];
        if (m)
            out[l * l + l - m] = scaled * cs[1];
        next = ((2 * l + 1) * y * p - (l + m) * r2 * before) / (l + 1 - m);
        before = p;
        p = next;
    }
}

void nn_sh(double *out, int lmax, const double v[3])
{
    double u[3], cs[2] = { 1.0, 0.0 };

    nn_unit(u, v);
    for (int m = 0; m <= lmax; m++) {
        double c = cs[0], s = cs[1];
        sh_order(out, lmax, m, u, cs);
        cs[0] = c * u[2] - s * u[0]; /* (z + i x)^(m+1) */
        cs[1] = s * u[2] + c * u[0];
    }
}

void nn_shf(float *out, int lmax, const float v[3])
{
    double y[NN_SH_COUNT] = { 0 }, w[3] = { v[0], v[1], v[2] };

    nn_sh(y, lmax, w);
    for (int k = 0; k < (lmax + 1) * (lmax + 1); k++)
        out[k] = (float)y[k];
}
