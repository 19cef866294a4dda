/* SPDX-License-Identifier: Apache-2.0 */
#include "models/network/w3j.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDE = 2 * NN_W3J_MAX + 1 };

static const double ZERO = 1e-10; /* far below the smallest entry, far above rounding */

static double factorial(int n)
{
    double f = 1.0;

    for (int k = 2; k <= n; k++)
        f *= k;
    return f;
}

static int max_int(int a, int b) { return a > b ? a : b; }
static int min_int(int a, int b) { return a < b ? a : b; }

/* <l1 m1 l2 m2 | l3 m3>, Condon-Shortley phase. */
static double clebsch_gordan(int l1, int m1, int l2, int m2, int l3, int m3)
{
    double front, sum = 0.0;
    int low = max_int(0, max_int(l2 - l3 - m1, l1 - l3 + m2));
    int high = min_int(l1 + l2 - l3, min_int(l1 - m1, l2 + m2));

    if (m1 + m2 != m3)
        return 0.0;
    front =
        (2 * l3 + 1) * factorial(l3 + l1 - l2) * factorial(l3 - l1 + l2) * factorial(l1 + l2 - l3) / factorial(l1 + l2 + l3 + 1);
    front *=
        factorial(l3 + m3) * factorial(l3 - m3) * factorial(l1 - m1) * factorial(l1 + m1) * factorial(l2 - m2) * factorial(l2 + m2);
    for (int k = low; k <= high; k++)
        sum += (k % 2 ? -1.0 : 1.0) / (factorial(k) * factorial(l1 + l2 - l3 - k) * factorial(l1 - m1 - k) *
                                       factorial(l2 + m2 - k) * factorial(l3 - l2 + m1 + k) * factorial(l3 - l1 - m2 + k));
    return sqrt(front) * sum;
}

/* Real component `real_m` in terms of complex component m = +-real_m; docs/model.md 2.3. */
static double complex real_basis(int l, int m, int real_m)
{
    static const double complex phase[4] = { 1.0, -1.0 * I, -1.0, 1.0 * I }; /* (-i)^l */
    double odd = m % 2 ? -1.0 : 1.0;
    double complex q;

    if (m == 0)
        q = 1.0;
    else if (m < 0)
        q = real_m > 0 ? M_SQRT1_2 : -M_SQRT1_2 * I;
    else
        q = real_m > 0 ? odd * M_SQRT1_2 : odd * M_SQRT1_2 * I;
    return q * phase[l % 4];
}

/* One entry: each real component is a combination of the two complex ones +-m. */
static double real_entry(const int l[3], const int r[3])
{
    double complex sum = 0.0;

    for (int s1 = r[0] ? -1 : 1; s1 <= 1; s1 += 2)
        for (int s2 = r[1] ? -1 : 1; s2 <= 1; s2 += 2) {
            int a = s1 * r[0], b = s2 * r[1], c = a + b;
            if (abs(c) != abs(r[2]))
                continue;
            sum += real_basis(l[0], a, r[0]) * real_basis(l[1], b, r[1]) * conj(real_basis(l[2], c, r[2])) *
                   clebsch_gordan(l[0], a, l[1], b, l[2], c);
        }
    return creal(sum);
}

static void fill_e3nn_050(double *out, const int l[3])
{
    int n = 0;
    double norm = 0.0;

    for (int a = -l[0]; a <= l[0]; a++)
        for (int b = -l[1]; b <= l[1]; b++)
            for (int c = -l[2]; c <= l[2]; c++) {
                double v = real_entry(l, (int[3]){ a, b, c });
                out[n++] = fabs(v) < ZERO ? 0.0 : v;
                norm += v * v;
            }
    for (int k = 0; k < n; k++)
        out[k] /= sqrt(norm);
}

static int entry_count(const int l[3]) { return (2 * l[0] + 1) * (2 * l[1] + 1) * (2 * l[2] + 1); }

static int entry_at(const int l[3], const int i[3]) { return (i[0] * (2 * l[1] + 1) + i[1]) * (2 * l[2] + 1) + i[2]; }

/* e3nn 0.3.3 fixes the sign of a sorted triple by its centre, else by its first entry. */
static double sorted_sign(const double *t, const int l[3])
{
    double centre = t[entry_at(l, l)];

    if (fabs(centre) > ZERO)
        return centre > 0 ? 1.0 : -1.0;
    for (int k = 0; k < entry_count(l); k++)
        if (fabs(t[k]) > ZERO)
            return t[k] > 0 ? 1.0 : -1.0;
    return 1.0;
}

/* Sorts the three degrees; order[k] = which argument is kth. True if the permutation is odd. */
static bool sort_degrees(int order[3], const int l[3])
{
    bool odd = false;

    for (int k = 0; k < 3; k++)
        order[k] = k;
    for (int pass = 0; pass < 2; pass++)
        for (int k = 0; k < 2; k++)
            if (l[order[k]] > l[order[k + 1]]) {
                int t = order[k];
                order[k] = order[k + 1];
                order[k + 1] = t;
                odd = !odd;
            }
    return odd;
}

static void fill_e3nn_033(double *out, const int l[3])
{
    double sorted[WIDE * WIDE * WIDE] = { 0 }, sign;
    int order[3], s[3], i[3];
    bool odd = sort_degrees(order, l);

    for (int k = 0; k < 3; k++)
        s[k] = l[order[k]];
    fill_e3nn_050(sorted, s);
    sign = sorted_sign(sorted, s) * (odd && (l[0] + l[1] + l[2]) % 2 ? -1.0 : 1.0);
    for (i[0] = 0; i[0] <= 2 * l[0]; i[0]++)
        for (i[1] = 0; i[1] <= 2 * l[1]; i[1]++)
            for (i[2] = 0; i[2] <= 2 * l[2]; i[2]++) {
                int at[3] = { i[order[0]], i[order[1]], i[order[2]] };
                out[entry_at(l, i)] = sign * sorted[entry_at(s, at)];
            }
}

void nn_w3j(double *out, int l1, int l2, int l3, nn_w3j_sign sign)
{
    const int l[3] = { l1, l2, l3 };

    memset(out, 0, (size_t)entry_count(l) * sizeof *out);
    if (l3 < abs(l1 - l2) || l3 > l1 + l2)
        return;
    if (sign == NN_W3J_E3NN_033)
        fill_e3nn_033(out, l);
    else
        fill_e3nn_050(out, l);
}

bool nn_w3j_sign_differs(int j, int d_in, int d_out)
{
    double a[WIDE * WIDE * WIDE], b[WIDE * WIDE * WIDE], dot = 0.0;
    const int l[3] = { j, d_in, d_out };

    nn_w3j(a, j, d_in, d_out, NN_W3J_E3NN_033);
    nn_w3j(b, j, d_in, d_out, NN_W3J_E3NN_050);
    for (int k = 0; k < entry_count(l); k++)
        dot += a[k] * b[k];
    return dot < 0;
}

/* w3j(l,1,l)[., a, .] is the generator up to a factor: the squares of G_a sum to
 * l(l+1)(2l+1)/3 for each a. The sign is the one of G_y[l+1, l-1] = -1. */
void nn_generator(double *out, int l, int a)
{
    double t[(2 * 4 + 1) * 3 * (2 * 4 + 1)], scale = sqrt(l * (l + 1.0) * (2 * l + 1));
    int n = 2 * l + 1;

    memset(out, 0, (size_t)(n * n) * sizeof *out);
    if (l == 0)
        return;
    nn_w3j(t, l, 1, l, NN_W3J_E3NN_033);
    if (t[((l + 1) * 3 + 1) * n + l - 1] > 0)
        scale = -scale;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            out[i * n + j] = scale * t[(i * 3 + a) * n + j];
}
