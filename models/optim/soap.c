/* SPDX-License-Identifier: Apache-2.0 */
#include "models/optim/soap.h"

#include <math.h>
#include <string.h>

enum {
    MODES = 4,
    ROWS = 64,             /* rows that are turned at a time */
    FIRST_ITERATIONS = 20, /* from no basis to eigenvectors */
    MATRIX = NN_SOAP_LARGEST * NN_SOAP_LARGEST
};

/* One mode of n numbers; matrices are [n][pad]. */
typedef struct mode {
    int32_t n, pad;
    bool turned;
    size_t cov, basis; /* where C and Q begin in the array of bases */
} mode;

typedef struct shape {
    size_t at, size;
    int32_t n_modes;
    mode mode[MODES];
} shape;

/* Work of one thread. */
typedef struct work {
    float *x, *y; /* [numbers of the largest tensor] */
    float *cov, *old, *by[MODES];
    double *columns; /* [NN_SOAP_LARGEST][NN_SOAP_LARGEST] */
} work;

struct nn_soap {
    const nn_cpu_kernels *kernels;
    shape *shape;
    work *work;
};

/* ---- shapes -------------------------------------------------------------- */

static int32_t dims_of(const nn_param *p, int32_t dims[MODES])
{
    const nn_group *g = p->last_of;

    if (g == NULL) {
        dims[0] = p->dims[0];
        dims[1] = p->dims[1];
        return p->n_dims;
    }
    dims[0] = g->c_out;
    dims[1] = g->c_in;
    dims[2] = g->n_freq;
    dims[3] = p->dims[1];
    return MODES;
}

/* The shape of a tensor whose bases begin at `at`; returns where the next ones begin. */
static size_t shape_make(shape *s, const nn_param *p, size_t at)
{
    int32_t dims[MODES] = { 0 };

    *s = (shape){ .at = p->at, .size = p->size, .n_modes = dims_of(p, dims) };
    for (int32_t d = 0; d < s->n_modes; d++) {
        mode *m = &s->mode[d];
        m->n = dims[d];
        m->pad = (m->n + NN_LANE - 1) / NN_LANE * NN_LANE;
        m->turned = s->n_modes > 1 && m->n > 1 && m->n <= NN_SOAP_LARGEST;
        m->cov = at;
        m->basis = at + (size_t)m->n * (size_t)m->pad;
        if (m->turned)
            at += 2 * (size_t)m->n * (size_t)m->pad;
    }
    return at;
}

size_t nn_soap_bases(const nn_param *tensor, int32_t n)
{
    size_t at = 0;
    shape s;

    for (int32_t t = 0; t < n; t++)
        at = shape_make(&s, &tensor[t], at);
    return at;
}

static bool work_make(work *w, size_t largest, pl_arena *mem)
{
    bool made = true;

    w->x = PL_NEW(mem, float, largest);
    w->y = PL_NEW(mem, float, largest);
    w->cov = PL_NEW(mem, float, MATRIX);
    w->old = PL_NEW(mem, float, MATRIX);
    w->columns = PL_NEW(mem, double, MATRIX);
    for (int d = 0; d < MODES; d++) {
        w->by[d] = PL_NEW(mem, float, MATRIX);
        made = made && w->by[d] != NULL;
    }
    return made && w->x != NULL && w->y != NULL && w->cov != NULL && w->old != NULL && w->columns != NULL;
}

nn_soap *nn_soap_new(const nn_param *tensor, int32_t n, int workers, const nn_cpu_kernels *kernels, pl_arena *mem)
{
    nn_soap *s = PL_NEW(mem, nn_soap, 1);
    size_t at = 0, largest = 0;

    if (s == NULL)
        return NULL;
    s->kernels = kernels;
    s->shape = PL_NEW(mem, shape, n);
    s->work = PL_NEW(mem, work, workers);
    if (s->shape == NULL || s->work == NULL)
        return NULL;
    for (int32_t t = 0; t < n; t++) {
        at = shape_make(&s->shape[t], &tensor[t], at);
        largest = tensor[t].size > largest ? tensor[t].size : largest;
    }
    for (int w = 0; w < workers; w++)
        if (!work_make(&s->work[w], largest, mem))
            return NULL;
    return s;
}

/* ---- turning ------------------------------------------------------------- */

/* Rows of a tensor whose first mode has become the last one: x is [n][rows] in memory. */
typedef struct turning {
    const mode *m;
    const float *by; /* [n][pad]; NULL: the numbers are moved only */
    float *cov;      /* [n][pad]; NULL: not wanted                 */
    const float *x;
    float *y; /* [rows][n] */
    size_t rows;
} turning;

/* Rows first..first+k-1 of the transposed matrix, padded with zeros. */
static void rows_gather(const turning *t, size_t first, int k, float *restrict out)
{
    const size_t pad = (size_t)t->m->pad;

    if (t->m->n < t->m->pad)
        memset(out, 0, (size_t)k * pad * sizeof *out);
    for (int32_t i = 0; i < t->m->n; i++) {
        const float *x = t->x + (size_t)i * t->rows + first;
        for (int r = 0; r < k; r++)
            out[(size_t)r * pad + (size_t)i] = x[r];
    }
}

static void rows_turn(const nn_cpu_kernels *kernels, const turning *t, size_t first, int k)
{
    const size_t n = (size_t)t->m->n, pad = (size_t)t->m->pad;
    float in[ROWS * NN_SOAP_LARGEST], out[ROWS * NN_SOAP_LARGEST], *y = t->y + first * n;
    const float *a[ROWS];
    float *c[ROWS];
    nn_cpu_gemm g = { k, t->m->n, t->m->pad, a, c, t->by, false };

    rows_gather(t, first, k, in);
    for (size_t r = 0; r < (size_t)k; r++) {
        a[r] = in + r * pad;
        c[r] = n == pad ? y + r * n : out + r * pad;
    }
    if (t->cov != NULL)
        kernels->gemm_tn(&g, a, t->cov);
    kernels->gemm(&g);
    for (size_t r = 0; n < pad && r < (size_t)k; r++)
        memcpy(y + r * n, out + r * pad, n * sizeof *y);
}

/* A mode that is not turned may have any size. */
static void rows_move(const turning *t)
{
    for (size_t r = 0; r < t->rows; r++)
        for (int32_t i = 0; i < t->m->n; i++)
            t->y[r * (size_t)t->m->n + (size_t)i] = t->x[(size_t)i * t->rows + r];
}

static void turn_one(const nn_cpu_kernels *kernels, const turning *t)
{
    if (t->by == NULL) {
        rows_move(t);
        return;
    }
    for (size_t first = 0; first < t->rows; first += ROWS)
        rows_turn(kernels, t, first, t->rows - first < ROWS ? (int)(t->rows - first) : ROWS);
}

/* Turns w->x in every mode by w->by: the first mode becomes the last one, as often as there are modes. bases: where the second
 * moments of w->x are added; NULL: they are not. */
static void turn_all(const nn_soap *s, const shape *of, work *w, float *bases)
{
    for (int32_t d = 0; d < of->n_modes; d++) {
        const mode *m = &of->mode[d];
        turning t = { m, m->turned ? w->by[d] : NULL, NULL, w->x, w->y, of->size / (size_t)m->n };
        float *swap = w->x;
        if (m->turned && bases != NULL) {
            t.cov = w->cov;
            memset(w->cov, 0, (size_t)m->n * (size_t)m->pad * sizeof *w->cov);
        }
        turn_one(s->kernels, &t);
        for (int32_t k = 0; t.cov != NULL && k < m->n * m->pad; k++)
            bases[m->cov + (size_t)k] += (1 - NN_SOAP_KEEPS) * (w->cov[k] - bases[m->cov + (size_t)k]);
        w->x = w->y;
        w->y = swap;
    }
}

/* ---- bases --------------------------------------------------------------- */

/* Four partial sums, so that the compiler can vectorise; the order is fixed. */
static double dot(const double *x, const double *y, int32_t n)
{
    double s[4] = { 0 };
    int32_t i = 0;

    for (; i + 4 <= n; i += 4)
        for (int k = 0; k < 4; k++)
            s[k] += x[i + k] * y[i + k];
    for (; i < n; i++)
        s[0] += x[i] * y[i];
    return (s[0] + s[1]) + (s[2] + s[3]);
}

/* Takes from the vector what lies along columns 0 .. n-1; returns its norm. */
static double column_clear(double *x, const double *columns, int32_t n, int32_t len)
{
    for (int32_t k = 0; k < n; k++) {
        const double *q = columns + (size_t)k * NN_SOAP_LARGEST;
        double along = dot(q, x, len);
        for (int32_t i = 0; i < len; i++)
            x[i] -= along * q[i];
    }
    return sqrt(dot(x, x, len));
}

/* Candidate k for column j: that of the matrix times the old basis, that of the old basis, then axes. */
static void column_try(double *x, const mode *m, const float *product, const float *basis, int32_t j, int32_t k)
{
    const float *from = k == 0 ? product : basis;

    for (int32_t i = 0; i < m->n; i++)
        x[i] = k > 1 ? i == k - 2 : (double)from[i * m->pad + j];
}

/* The new column j: of the first candidate of which the earlier columns leave more than rounding errors. */
static void column_make(double *columns, const mode *m, const float *product, const float *basis, int32_t j)
{
    double *x = columns + (size_t)j * NN_SOAP_LARGEST, whole, left = 0;
    bool found = false;

    for (int32_t k = 0; !found && k < m->n + 2; k++) {
        column_try(x, m, product, basis, j, k);
        whole = column_clear(x, NULL, 0, m->n);
        left = column_clear(x, columns, j, m->n);
        found = left > 1e-6 * whole && whole > 1e-30;
        left = column_clear(x, columns, j, m->n); /* again: what rounding errors left */
    }
    for (int32_t i = 0; i < m->n; i++)
        x[i] /= left;
}

/* out = x y, all [n][pad]. */
static void matrices_multiply(const nn_cpu_kernels *kernels, const mode *m, const float *x, const float *y, float *out)
{
    const float *a[NN_SOAP_LARGEST];
    float *c[NN_SOAP_LARGEST];
    const nn_cpu_gemm g = { m->n, m->n, m->pad, a, c, y, false };

    for (int32_t i = 0; i < m->n; i++) {
        a[i] = x + i * m->pad;
        c[i] = out + i * m->pad;
    }
    kernels->gemm(&g);
}

static void basis_iterate(const nn_soap *s, const work *w, const mode *m, const float *cov, float *basis)
{
    matrices_multiply(s->kernels, m, cov, basis, w->cov);
    for (int32_t j = 0; j < m->n; j++)
        column_make(w->columns, m, w->cov, basis, j);
    for (int32_t i = 0; i < m->n; i++)
        for (int32_t j = 0; j < m->n; j++)
            basis[i * m->pad + j] = (float)w->columns[(size_t)j * NN_SOAP_LARGEST + (size_t)i];
}

/* The new basis; by: turns numbers of the old one into numbers of the new one. */
static void basis_renew(const nn_soap *s, work *w, const mode *m, float *bases, float *by)
{
    float *basis = bases + m->basis, *old = w->old;

    for (int32_t i = 0; i < m->n; i++)
        for (int32_t j = 0; j < m->pad; j++)
            old[i * m->pad + j] = j < m->n ? basis[j * m->pad + i] : 0;
    basis_iterate(s, w, m, bases + m->cov, basis);
    matrices_multiply(s->kernels, m, old, basis, by);
}

static void bases_renew(const nn_soap *s, const shape *of, work *w, float *bases, float *moment)
{
    for (int32_t d = 0; d < of->n_modes; d++)
        if (of->mode[d].turned)
            basis_renew(s, w, &of->mode[d], bases, w->by[d]);
    memcpy(w->x, moment, of->size * sizeof *moment);
    turn_all(s, of, w, NULL);
    memcpy(moment, w->x, of->size * sizeof *moment);
}

/* w->by: the identity. */
static void by_nothing(const shape *of, work *w)
{
    for (int32_t d = 0; d < of->n_modes; d++) {
        const mode *m = &of->mode[d];
        if (!m->turned)
            continue;
        memset(w->by[d], 0, (size_t)m->n * (size_t)m->pad * sizeof(float));
        for (int32_t i = 0; i < m->n; i++)
            w->by[d][i * m->pad + i] = 1;
    }
}

static void bases_begin(const nn_soap *s, const shape *of, work *w, float *bases)
{
    by_nothing(of, w);
    turn_all(s, of, w, bases);
    for (int32_t d = 0; d < of->n_modes; d++) {
        const mode *m = &of->mode[d];
        size_t n = (size_t)m->n * (size_t)m->pad;
        if (!m->turned)
            continue;
        for (size_t k = 0; k < n; k++)
            bases[m->cov + k] /= 1 - NN_SOAP_KEEPS;
        memcpy(bases + m->basis, w->by[d], n * sizeof *bases);
        for (int i = 0; i < FIRST_ITERATIONS; i++)
            basis_iterate(s, w, m, bases + m->cov, bases + m->basis);
    }
}

/* ---- steps --------------------------------------------------------------- */

/* w->by: into the bases, or back. Columns behind n have any numbers, and so has what comes of them, which rows_turn leaves out. */
static void by_bases(const shape *of, work *w, const float *bases, bool back)
{
    for (int32_t d = 0; d < of->n_modes; d++) {
        const mode *m = &of->mode[d];
        const float *q = bases + m->basis;
        if (!m->turned)
            continue;
        for (int32_t i = 0; i < m->n; i++)
            for (int32_t j = 0; j < m->n; j++)
                w->by[d][i * m->pad + j] = back ? q[j * m->pad + i] : q[i * m->pad + j];
    }
}

/* x: the gradient, becomes Adam's direction. */
static void moments_update(float *restrict x, float *restrict m, float *restrict v, size_t n, const nn_adamw_rule r)
{
    for (size_t k = 0; k < n; k++) {
        m[k] = r.b1 * m[k] + r.a1 * x[k];
        v[k] = r.b2 * v[k] + r.a2 * x[k] * x[k];
        x[k] = m[k] / (sqrtf(v[k]) * r.fix + r.eps);
    }
}

static void params_move(float *restrict p, const float *restrict x, size_t n, const nn_adamw_rule r)
{
    for (size_t k = 0; k < n; k++)
        p[k] = r.keep * p[k] - r.rate * x[k];
}

static void average_move(float *restrict ema, const float *restrict p, size_t n, float by)
{
    for (size_t k = 0; k < n; k++)
        ema[k] += by * (p[k] - ema[k]);
}

void nn_soap_step(nn_soap *s, int worker, int32_t tensor, const nn_adamw_arrays *arrays, float *bases, int64_t step,
                  const nn_adamw_rule *rule)
{
    const shape *of = &s->shape[tensor];
    work *w = &s->work[worker];
    const float *g = arrays->g + of->at;
    float *p = arrays->p + of->at, *m = arrays->m + of->at;

    for (size_t k = 0; k < of->size; k++)
        w->x[k] = g[k] * rule->clip;
    if (step == 1) {
        bases_begin(s, of, w, bases);
        return;
    }
    by_bases(of, w, bases, false);
    turn_all(s, of, w, bases);
    moments_update(w->x, m, arrays->v + of->at, of->size, *rule);
    by_bases(of, w, bases, true);
    turn_all(s, of, w, NULL);
    params_move(p, w->x, of->size, *rule);
    if (arrays->ema != NULL)
        average_move(arrays->ema + of->at, p, of->size, rule->average);
    if (step % NN_SOAP_EVERY == 0)
        bases_renew(s, of, w, bases, m);
}
