/* SPDX-License-Identifier: Apache-2.0 */
#include "models/network/frame.h"

#include <math.h>
#include <string.h>

#include "models/network/w3j.h"

int nn_frame_at(int l) { return l < 1 ? 0 : (4 * l * l * l - l) / 3 - 1; /* sum of (2k+1)^2, k = 1..l-1 */ }

int nn_frame_size(int l_max) { return nn_frame_at(l_max + 1); }

void nn_frame_rule_make(nn_frame_rule *rule)
{
    double w[(2 * NN_MAX_DEGREE + 1) * (2 * NN_MAX_DEGREE - 1) * 3];

    memset(rule, 0, sizeof *rule);
    for (int l = 2; l <= NN_MAX_DEGREE; l++) {
        int rows = 2 * l + 1, cols = 2 * l - 1;
        nn_w3j(w, l, l - 1, 1, NN_W3J_E3NN_033);
        for (int i = 0; i < rows * cols * 3; i++)
            if (fabs(w[i]) > 1e-12)
                rule->term[l][rule->n[l]++] =
                    (nn_frame_term){ (uint8_t)(i / (cols * 3)), (uint8_t)(i / 3 % cols), (uint8_t)(i % 3), w[i] };
    }
}

/* Q = [x' r z'] with the roll fixed by the smallest component of r. */
static void frame_first(const float vec[3], double q[9])
{
    double r[3] = { vec[0], vec[1], vec[2] }, x[3] = { 0, 0, 0 }, z[3];
    double length = sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2]), s;
    int k = 0;

    if (!(length > 0)) {
        r[0] = r[2] = 0;
        r[1] = length = 1;
    }
    for (int i = 0; i < 3; i++)
        r[i] /= length;
    for (int i = 1; i < 3; i++)
        if (fabs(r[i]) < fabs(r[k]))
            k = i;
    x[(k + 1) % 3] = r[(k + 2) % 3]; /* r x e_k */
    x[(k + 2) % 3] = -r[(k + 1) % 3];
    s = 1 / sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2]);
    for (int i = 0; i < 3; i++)
        x[i] *= s;
    for (int i = 0; i < 3; i++)
        z[i] = x[(i + 1) % 3] * r[(i + 2) % 3] - x[(i + 2) % 3] * r[(i + 1) % 3];
    for (int i = 0; i < 3; i++) {
        q[3 * i] = x[i];
        q[3 * i + 1] = r[i];
        q[3 * i + 2] = z[i];
    }
}

static void frame_step(const nn_frame_rule *rule, int l, const double *first, const double *below, double *out)
{
    int rows = 2 * l + 1, cols = 2 * l - 1;
    const nn_frame_term *term = rule->term[l];

    memset(out, 0, (size_t)(rows * rows) * sizeof *out);
    for (int a = 0; a < rule->n[l]; a++)
        for (int b = 0; b < rule->n[l]; b++) {
            const nn_frame_term *p = &term[a], *q = &term[b];
            out[p->i * rows + q->i] += rows * p->w * q->w * below[p->j * cols + q->j] * first[p->k * 3 + q->k];
        }
}

static void frame_store(const double *from, int l_from, int l_max, float *d)
{
    for (int i = nn_frame_at(l_from); i < nn_frame_size(l_max); i++)
        d[i] = (float)from[i];
}

void nn_frame_make(const nn_frame_rule *rule, const float vec[3], int l_max, float *d)
{
    double all[NN_FRAME_ALL];

    if (l_max < 1)
        return;
    frame_first(vec, all);
    for (int l = 2; l <= l_max; l++)
        frame_step(rule, l, all, all + nn_frame_at(l - 1), all + nn_frame_at(l));
    frame_store(all, 1, l_max, d);
}

void nn_frame_extend(const nn_frame_rule *rule, int l_from, int l_max, float *d)
{
    double all[NN_FRAME_ALL];

    for (int i = 0; i < nn_frame_at(l_from); i++)
        all[i] = d[i];
    for (int l = l_from; l <= l_max; l++)
        frame_step(rule, l, all, all + nn_frame_at(l - 1), all + nn_frame_at(l));
    frame_store(all, l_from, l_max, d);
}

void nn_frame_reverse(int l_max, float *sign)
{
    for (int l = 1; l <= l_max; l++)
        for (int i = 0; i < 2 * l + 1; i++)
            for (int k = 0; k < 2 * l + 1; k++)
                sign[nn_frame_at(l) + i * (2 * l + 1) + k] = (l % 2 == 0) == (k >= l) ? 1.0f : -1.0f;
}

void nn_frame_coef(int d_in, int d_out, int j_step, double coef[2 * NN_MAX_DEGREE + 1][2 * NN_MAX_DEGREE + 1])
{
    double w[(4 * NN_MAX_DEGREE + 1) * (2 * NN_MAX_DEGREE + 1) * (2 * NN_MAX_DEGREE + 1)];
    int low = d_in < d_out ? d_in : d_out, first = d_in + d_out - 2 * low;

    memset(coef, 0, sizeof(double[2 * NN_MAX_DEGREE + 1][2 * NN_MAX_DEGREE + 1]));
    for (int f = 0; f * j_step <= 2 * low; f++) {
        int j = first + f * j_step, odd = (d_in + d_out + j) % 2;
        double scale = sqrt((2 * j + 1) / (16 * atan(1.0)));
        const double *mid = w + j * (2 * d_in + 1) * (2 * d_out + 1);
        nn_w3j(w, j, d_in, d_out, NN_W3J_E3NN_033);
        for (int m = odd; m <= low; m++)
            coef[odd ? low + m : m][f] = scale * mid[(d_in + m) * (2 * d_out + 1) + d_out + (odd ? -m : m)];
    }
}
