/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/structures/descent.h"

#include <math.h>
#include <string.h>

static const double armijo = 1e-4;
static const double float_noise = 3e-7; /* two energies closer than this times (|E| + 100) are equal in float */
static const double less_steep = 0.8;
enum { MAX_TRIALS = 8, MAX_RESETS = 5 };

typedef struct state {
    const ch_search *s;
    int32_t n; /* dims * stride */
    float *x, *g, *trial, *trial_g, *d;
    float *moves, *changes; /* [CH_MEMORY_STEPS][n] */
    double rho[CH_MEMORY_STEPS], value, slope;
    int32_t count, head, since_refresh, resets;
} state;

int64_t ch_search_floats(int32_t stride, int32_t dims) { return (int64_t)stride * dims * (4 + 2 * CH_MEMORY_STEPS); }

static double evaluate(const state *t, const float *x, float *g, ch_search_result *r)
{
    r->n_values++;
    return t->s->objective(t->s->of, x, g);
}

static void apply_first_guess(state *t)
{
    const ch_search *s = t->s;
    const int32_t newest = (t->head + CH_MEMORY_STEPS - 1) % CH_MEMORY_STEPS;
    const float *y = t->changes + (size_t)newest * t->n;
    float scale = s->first_scale;

    if (s->preconditioner != NULL) {
        ch_preconditioner_solve(s->preconditioner, t->d, s->stride);
        return;
    }
    if (t->count > 0)
        scale = (float)(1 / (t->rho[newest] * s->kernels->dot(y, y, t->n)));
    for (int32_t i = 0; i < t->n; i++)
        t->d[i] *= scale;
}

/* The two loops: d = H g. */
static void direction(state *t)
{
    const ch_kernels *k = t->s->kernels;
    double a[CH_MEMORY_STEPS];

    memcpy(t->d, t->g, (size_t)t->n * sizeof *t->d);
    for (int32_t m = 0; m < t->count; m++) {
        const int32_t q = (t->head - 1 - m + 2 * CH_MEMORY_STEPS) % CH_MEMORY_STEPS;
        a[q] = t->rho[q] * k->dot(t->moves + (size_t)q * t->n, t->d, t->n);
        k->add(t->d, (float)-a[q], t->changes + (size_t)q * t->n, t->n);
    }
    apply_first_guess(t);
    for (int32_t m = t->count - 1; m >= 0; m--) {
        const int32_t q = (t->head - 1 - m + 2 * CH_MEMORY_STEPS) % CH_MEMORY_STEPS;
        const double b = t->rho[q] * k->dot(t->changes + (size_t)q * t->n, t->d, t->n);
        k->add(t->d, (float)(a[q] - b), t->moves + (size_t)q * t->n, t->n);
    }
    t->slope = -k->dot(t->d, t->g, t->n);
}

static double longest_move(const state *t)
{
    const int32_t s = t->s->stride;
    float max = 0;

    for (int32_t i = 0; i < t->s->n_atoms; i++) {
        float m = 0;
        for (int32_t c = 0; c < t->s->dims; c++)
            m += t->d[c * s + i] * t->d[c * s + i];
        max = m > max ? m : max;
    }
    return sqrt((double)max);
}

/* Shortens the step until the energy falls enough, or until it is the same in float and the slope is less steep. */
static bool line_search(state *t, double *value, ch_search_result *r)
{
    const ch_kernels *k = t->s->kernels;
    const double longest = longest_move(t);
    double step = longest > (double)t->s->max_move ? (double)t->s->max_move / longest : 1;

    for (int trial = 0; trial < MAX_TRIALS; trial++) {
        k->step(t->trial, t->x, (float)-step, t->d, t->n);
        *value = evaluate(t, t->trial, t->trial_g, r);
        if (*value <= t->value + armijo * step * t->slope)
            return true;
        if (*value <= t->value + float_noise * (fabs(t->value) + 100) && -k->dot(t->d, t->trial_g, t->n) <= -less_steep * t->slope)
            return true;
        const double parabola = -0.5 * t->slope * step / (*value - t->value - t->slope * step);
        step *= fmin(parabola > 0.1 ? parabola : 0.1, 0.5);
    }
    return false;
}

static void remember(state *t)
{
    const ch_kernels *k = t->s->kernels;
    float *move = t->moves + (size_t)t->head * t->n, *change = t->changes + (size_t)t->head * t->n;
    double my = 0, yy = 0;

    k->step(move, t->trial, -1, t->x, t->n);
    k->step(change, t->trial_g, -1, t->g, t->n);
    my = k->dot(move, change, t->n);
    yy = k->dot(change, change, t->n);
    if (!(my > 1e-10 * yy))
        return;
    t->rho[t->head] = 1 / my;
    t->head = (t->head + 1) % CH_MEMORY_STEPS;
    t->count += t->count < CH_MEMORY_STEPS;
}

static void refresh(state *t)
{
    const ch_search *s = t->s;

    if (s->preconditioner == NULL || t->since_refresh < s->refresh_steps)
        return;
    ch_preconditioner_refresh(s->preconditioner, t->x, s->stride);
    t->since_refresh = 0;
}

/* One step. False: no direction leads down, even the preconditioned gradient alone. */
static bool advance(state *t, ch_search_result *r)
{
    double value = 0;

    refresh(t);
    direction(t);
    while (!(t->slope < 0) || !line_search(t, &value, r)) {
        if (t->count == 0 || t->resets++ >= MAX_RESETS)
            return false;
        t->count = 0;
        direction(t);
    }
    remember(t);
    memcpy(t->x, t->trial, (size_t)t->n * sizeof *t->x);
    memcpy(t->g, t->trial_g, (size_t)t->n * sizeof *t->g);
    t->value = value;
    t->since_refresh++;
    r->steps++;
    return true;
}

static state begin(const ch_search *s, float *x)
{
    const int32_t n = s->dims * s->stride;
    float *w = s->work;
    const size_t m = (size_t)n;

    return (state){ .s = s,
                    .n = n,
                    .x = x,
                    .g = w,
                    .trial = w + m,
                    .trial_g = w + 2 * m,
                    .d = w + 3 * m,
                    .moves = w + 4 * m,
                    .changes = w + (4 + CH_MEMORY_STEPS) * m,
                    .since_refresh = s->refresh_steps };
}

ch_search_result ch_descend(const ch_search *s, float *x)
{
    ch_search_result r = { .stop = CH_OUT_OF_STEPS };
    state t = begin(s, x);

    t.value = evaluate(&t, t.x, t.g, &r);
    for (;;) {
        r.gradient = sqrt(s->kernels->dot(t.g, t.g, t.n) / fmax(1, (double)s->dims * s->n_atoms));
        if (!isfinite(t.value) || !isfinite(r.gradient)) {
            r.stop = CH_NOT_FINITE;
            break;
        }
        if (r.gradient < s->gradient) {
            r.stop = CH_CONVERGED;
            break;
        }
        if (r.steps >= s->max_steps)
            break;
        if (!advance(&t, &r)) {
            r.stop = CH_NO_DESCENT;
            break;
        }
    }
    r.value = t.value;
    return r;
}
