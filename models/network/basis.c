/* SPDX-License-Identifier: Apache-2.0 */
#include "models/network/basis.h"

#include <stddef.h>
#include <string.h>

#include "models/network/sh.h"

static int coupling_size(int i, int o)
{
    int low = i < o ? o - i : i - o, n = 0;

    for (int j = low; j <= i + o; j++)
        n += (2 * j + 1) * (2 * i + 1) * (2 * o + 1);
    return n;
}

pl_code nn_couplings_new(nn_couplings **out, int max_degree, nn_w3j_sign sign, pl_arena *mem, pl_error *err)
{
    nn_couplings *q = PL_NEW(mem, nn_couplings, 1);

    if (q == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for coupling tensors");
    q->max_degree = max_degree;
    for (int i = 0; i <= max_degree; i++)
        for (int o = 0; o <= max_degree; o++) {
            double *t = PL_NEW(mem, double, coupling_size(i, o));
            if (t == NULL)
                return pl_fail(err, PL_ENOMEM, "no memory for coupling tensors");
            q->q[i][o] = t;
            for (int f = 0; f < nn_freqs(i, o); f++) {
                int j = (i < o ? o - i : i - o) + f;
                nn_w3j(t, j, i, o, sign);
                t += (ptrdiff_t)(2 * j + 1) * (2 * i + 1) * (2 * o + 1);
            }
        }
    *out = q;
    return PL_OK;
}

/* Where out[l][f][k] of one f is; strides in floats. */
typedef struct place {
    double *out;
    ptrdiff_t stride_l, stride_f;
} place;

static void pair_write(place at, const nn_couplings *q, int i, int o, const double *sh)
{
    const double *t = q->q[i][o];
    int wide_in = 2 * i + 1, wide_out = 2 * o + 1;

    for (int f = 0; f < nn_freqs(i, o); f++) {
        int j = (i < o ? o - i : i - o) + f;
        for (int m = 0; m <= 2 * j; m++)
            for (int l = 0; l < wide_in; l++, t += wide_out) {
                double *row = at.out + l * at.stride_l + f * at.stride_f;
                for (int k = 0; k < wide_out; k++)
                    row[k] += sh[j * j + m] * t[k];
            }
    }
}

void nn_basis_pair(double *out, const nn_couplings *q, int i, int o, const double *sh)
{
    int wide = 2 * o + 1, n_freq = nn_freqs(i, o);

    memset(out, 0, (size_t)((2 * i + 1) * n_freq * wide) * sizeof *out);
    pair_write((place){ out, n_freq * wide, wide }, q, i, o, sh);
}

/* Which pairs of degrees a layout holds, and the lengths of its axes. */
typedef struct axes {
    int in0, in1, out0, out1; /* degrees in0..in1, out0..out1 */
    int rows, n_freq, cols;
} axes;

static axes axes_of(const nn_couplings *q, nn_basis_layout layout, int d, bool padded)
{
    int top = q->max_degree, all = (top + 1) * (top + 1);
    axes a = { 0, top, 0, top, all, 0, all };

    if (layout == NN_BASIS_OUT) {
        a.out0 = a.out1 = d;
        a.cols = 2 * d + 1 + (padded ? 1 : 0);
    } else if (layout == NN_BASIS_IN) {
        a.in0 = a.in1 = d;
        a.rows = 2 * d + 1;
    }
    for (int o = a.out0; o <= a.out1; o++)
        for (int i = a.in0; i <= a.in1; i++)
            a.n_freq += nn_freqs(i, o);
    return a;
}

int nn_basis_size(const nn_couplings *q, nn_basis_layout layout, int d, bool padded)
{
    axes a = axes_of(q, layout, d, padded);

    return a.rows * a.n_freq * a.cols;
}

void nn_basis_fused(double *out, const nn_couplings *q, nn_basis_layout layout, int d, bool padded, const double *sh)
{
    axes a = axes_of(q, layout, d, padded);
    int f0 = 0;

    memset(out, 0, (size_t)(a.rows * a.n_freq * a.cols) * sizeof *out);
    for (int o = a.out0; o <= a.out1; o++)
        for (int i = a.in0; i <= a.in1; i++) {
            int row = layout == NN_BASIS_IN ? 0 : i * i, col = layout == NN_BASIS_OUT ? 0 : o * o;
            double *at = out + (ptrdiff_t)(row * a.n_freq + f0) * a.cols + col;
            pair_write((place){ at, (ptrdiff_t)a.n_freq * a.cols, a.cols }, q, i, o, sh);
            f0 += nn_freqs(i, o);
        }
}
