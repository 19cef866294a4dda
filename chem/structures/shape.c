/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/structures/shape.h"

#include <math.h>
#include <string.h>

static void centre(double out[3], const ch_equal *e, const float (*x)[3])
{
    out[0] = out[1] = out[2] = 0;
    for (int32_t k = 0; k < e->n; k++)
        for (int c = 0; c < 3; c++)
            out[c] += (double)x[e->atom[k]][c];
    for (int c = 0; e->n > 0 && c < 3; c++)
        out[c] /= e->n;
}

static double determinant(const double m[3][3])
{
    return m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) - m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0]) +
           m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]);
}

/* One rotation of Jacobi's method: m[p][q] becomes 0. */
static void rotate(double m[3][3], int p, int q)
{
    const double ratio = (m[q][q] - m[p][p]) / (2 * m[p][q]);
    const double t = (ratio < 0 ? -1 : 1) / (fabs(ratio) + sqrt(ratio * ratio + 1)), c = 1 / sqrt(t * t + 1), s = t * c;
    const int r = 3 - p - q;
    const double pr = m[p][r], qr = m[q][r], turned = t * m[p][q];

    m[p][p] -= turned;
    m[q][q] += turned;
    m[p][q] = m[q][p] = 0;
    m[p][r] = m[r][p] = c * pr - s * qr;
    m[q][r] = m[r][q] = s * pr + c * qr;
}

/* Eigenvalues of a symmetric matrix, the least one last. */
static void eigenvalues(double out[3], double m[3][3])
{
    for (int sweep = 0; sweep < 12; sweep++)
        for (int p = 0; p < 2; p++)
            for (int q = p + 1; q < 3; q++)
                if (fabs(m[p][q]) > 1e-300)
                    rotate(m, p, q);
    int least = m[0][0] < m[1][1] ? 0 : 1;
    if (m[2][2] < m[least][least])
        least = 2;
    out[0] = m[(least + 1) % 3][(least + 1) % 3];
    out[1] = m[(least + 2) % 3][(least + 2) % 3];
    out[2] = m[least][least];
}

/* The largest trace of a rotation times m: the sum of its singular values, the least one with the sign of the determinant. */
static double best_overlap(const double m[3][3])
{
    double square[3][3] = { { 0 } }, e[3];

    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 3; k++)
                square[i][j] += m[k][i] * m[k][j];
    eigenvalues(e, square);
    const double least = sqrt(fmax(e[2], 0));
    return sqrt(fmax(e[0], 0)) + sqrt(fmax(e[1], 0)) + (determinant(m) < 0 ? -least : least);
}

/* Of positions about their centre: the sum of products of coordinates, and the sum of squares of both shapes. */
static double correlate(double m[3][3], const ch_equal *e, const int32_t *map, const float (*a)[3], const float (*b)[3])
{
    double middle_a[3], middle_b[3], sum = 0;

    centre(middle_a, e, a);
    centre(middle_b, e, b);
    memset(m, 0, 9 * sizeof **m);
    for (int32_t k = 0; k < e->n; k++) {
        double u[3], v[3];
        for (int c = 0; c < 3; c++) {
            u[c] = (double)a[e->atom[k]][c] - middle_a[c];
            v[c] = (double)b[e->atom[map[k]]][c] - middle_b[c];
        }
        for (int c = 0; c < 3; c++) {
            sum += u[c] * u[c] + v[c] * v[c];
            for (int d = 0; d < 3; d++)
                m[c][d] += u[c] * v[d];
        }
    }
    return sum;
}

double ch_shape_rmsd(const ch_equal *equal, const float (*a)[3], const float (*b)[3])
{
    double least = INFINITY;

    for (int32_t w = 0; w < equal->n_maps; w++) {
        double m[3][3];
        const double sum = correlate(m, equal, &equal->map[(int64_t)w * equal->n], a, b);
        least = fmin(least, sum - 2 * best_overlap((const double(*)[3])m));
    }
    return equal->n > 0 ? sqrt(fmax(least, 0) / equal->n) : 0;
}

/* The singular values of centred positions, the largest first. */
static void lengths(double out[3], const ch_equal *e, const float (*x)[3])
{
    double m[3][3];

    (void)correlate(m, e, e->map, x, x);
    eigenvalues(out, m);
    for (int c = 0; c < 3; c++)
        out[c] = sqrt(fmax(out[c], 0));
    if (out[0] < out[1]) {
        const double first = out[1];
        out[1] = out[0];
        out[0] = first;
    }
}

double ch_shape_least(const ch_equal *equal, const float (*a)[3], const float (*b)[3])
{
    double of_a[3], of_b[3], sum = 0;

    lengths(of_a, equal, a);
    lengths(of_b, equal, b);
    for (int c = 0; c < 3; c++)
        sum += (of_a[c] - of_b[c]) * (of_a[c] - of_b[c]);
    return equal->n > 0 ? sqrt(sum / equal->n) : 0;
}
