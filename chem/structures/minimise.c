/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/structures/minimise.h"

#include <math.h>
#include <string.h>

#include "chem/structures/energy.h"

enum { MEMORY = 12, HALVINGS = 40 };

static const double LONGEST = 0.3; /* A an atom may move along one axis in a step */
static const double ARMIJO = 1e-4;

/* The last steps s and changes of the gradient y, newest at n - 1 modulo MEMORY. */
typedef struct {
    const ch_terms *terms;
    int32_t size; /* 3 n_atoms */
    double *x, *gradient, *tried, *tried_gradient, *direction;
    double *s[MEMORY], *y[MEMORY], rho[MEMORY];
    int n;
} search;

static double dot(const double *a, const double *b, int32_t n)
{
    double sum = 0;
    for (int32_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static double energy_at(const search *w, const double *x, double *gradient)
{
    double sums[CH_N_TERM_CLASSES];

    ch_energy(sums, (double(*)[3])gradient, w->terms, (const double(*)[3])x);
    return ch_energy_total(sums);
}

/* Cuts the block of (4 + 2 MEMORY) size numbers into arrays. */
static void search_make(search *w, double *block)
{
    double **const arrays[] = { &w->gradient, &w->tried, &w->tried_gradient, &w->direction };

    for (int k = 0; k < 4; k++, block += w->size)
        *arrays[k] = block;
    for (int k = 0; k < MEMORY; k++, block += (size_t)2 * (size_t)w->size) {
        w->s[k] = block;
        w->y[k] = &block[w->size];
    }
}

/* direction = - H gradient, by the two loops of L-BFGS (Nocedal 1980), no step longer than LONGEST. */
static void find_direction(search *w)
{
    const int first = w->n > MEMORY ? w->n - MEMORY : 0;
    double alpha[MEMORY], *d = w->direction, most = 0, scale = 0.01;

    for (int32_t i = 0; i < w->size; i++)
        d[i] = -w->gradient[i];
    for (int k = w->n - 1; k >= first; k--) {
        const int m = k % MEMORY;
        alpha[m] = w->rho[m] * dot(w->s[m], d, w->size);
        for (int32_t i = 0; i < w->size; i++)
            d[i] -= alpha[m] * w->y[m][i];
    }
    if (w->n > 0) {
        const int m = (w->n - 1) % MEMORY;
        scale = 1.0 / (w->rho[m] * dot(w->y[m], w->y[m], w->size));
    }
    for (int32_t i = 0; i < w->size; i++)
        d[i] *= scale;
    for (int k = first; k < w->n; k++) {
        const int m = k % MEMORY;
        const double beta = w->rho[m] * dot(w->y[m], d, w->size);
        for (int32_t i = 0; i < w->size; i++)
            d[i] += (alpha[m] - beta) * w->s[m][i];
    }
    for (int32_t i = 0; i < w->size; i++)
        most = fmax(most, fabs(d[i]));
    for (int32_t i = 0; i < w->size && most > LONGEST; i++)
        d[i] *= LONGEST / most;
}

/* Halves the step until the energy falls; false: it does not. */
static bool go(search *w, double *energy)
{
    const double slope = dot(w->gradient, w->direction, w->size);
    double step = 1;

    for (int k = 0; k < HALVINGS && slope < 0; k++, step *= 0.5) {
        for (int32_t i = 0; i < w->size; i++)
            w->tried[i] = w->x[i] + step * w->direction[i];
        const double e = energy_at(w, w->tried, w->tried_gradient);
        if (isfinite(e) && e <= *energy + ARMIJO * step * slope) {
            *energy = e;
            return true;
        }
    }
    return false;
}

/* Remembers the step, if the curvature along it is positive, and takes it. */
static void take(search *w)
{
    const int m = w->n % MEMORY;

    for (int32_t i = 0; i < w->size; i++) {
        w->s[m][i] = w->tried[i] - w->x[i];
        w->y[m][i] = w->tried_gradient[i] - w->gradient[i];
    }
    const double curvature = dot(w->s[m], w->y[m], w->size);
    if (curvature > 1e-12) {
        w->rho[m] = 1.0 / curvature;
        w->n++;
    }
    memcpy(w->x, w->tried, (size_t)w->size * sizeof *w->x);
    memcpy(w->gradient, w->tried_gradient, (size_t)w->size * sizeof *w->gradient);
}

pl_code ch_minimise(ch_minimised *out, double (*xyz)[3], const ch_terms *terms, double goal, int32_t most_steps, pl_arena *mem,
                    pl_error *err)
{
    search w = { .terms = terms, .size = 3 * terms->n_atoms, .x = (double *)xyz };
    double *block = PL_NEW(mem, double, (size_t)(w.size + 1) * (4 + 2 * MEMORY));

    *out = (ch_minimised){ 0 };
    if (block == NULL)
        return pl_fail(err, PL_ENOMEM, "minimising %d atoms", terms->n_atoms);
    search_make(&w, block);
    double energy = energy_at(&w, w.x, w.gradient);
    if (!isfinite(energy))
        return pl_fail(err, PL_EINPUT, "the energy of the structure is not finite");
    for (;; out->steps++) {
        out->gradient = w.size > 0 ? sqrt(dot(w.gradient, w.gradient, w.size) / w.size) : 0;
        out->converged = out->gradient < goal;
        if (out->converged || out->steps == most_steps)
            return PL_OK;
        find_direction(&w);
        if (go(&w, &energy)) {
            take(&w);
        } else if (w.n > 0) {
            w.n = 0; /* once more, straight downhill */
        } else {
            return PL_OK;
        }
    }
}
