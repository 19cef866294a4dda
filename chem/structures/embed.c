/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/structures/embed.h"

#include "chem/structures/energy_plan.h"

#include <math.h>
#include <string.h>

enum { POWER_STEPS = 25, FREE_STEPS = 150, SQUEEZE_STEPS = 100 };
static const float volume_weight = 0.02f, free_fourth = 0.01f, squeezed_fourth = 1; /* beside distances, whose weight is 1 */
static const float torsion_margin = 0.06f;                                          /* Angstrom */
static const double largest_violation = 0.5, largest_error = 0.05;                  /* Angstrom; of an atom */

/* The layout of kernels.h for the width of the set. */
static void pack_bounds(ch_embedder *e)
{
    const int32_t n = e->bounds->n, width = e->kernels->width;
    float *to = e->packed;

    for (int32_t i = 0; i < n; i++)
        for (int32_t v = i / width * width; v < n; v += width, to += 2 * width)
            for (int32_t l = 0; l < width; l++) {
                const int32_t j = v + l;
                const size_t at = (size_t)i * (size_t)e->bounds->stride + (size_t)j;
                const bool is_pair = j > i && j < n;
                to[l] = is_pair ? 1 / (e->upper[at] * e->upper[at]) : 0;
                to[width + l] = is_pair ? e->lower[at] * e->lower[at] : 0;
            }
}

pl_code ch_embedder_make(ch_embedder *out, const ch_bounds *bounds, const ch_kernels *kernels, pl_arena *mem, pl_error *err)
{
    const int64_t s = bounds->stride, all = bounds->n * s + 1;

    *out = (ch_embedder){ .bounds = bounds,
                          .kernels = kernels,
                          .x = ch_floats(mem, 4 * s + 1),
                          .work = ch_floats(mem, ch_search_floats(bounds->stride, 4) + 1),
                          .metric = ch_floats(mem, all),
                          .basis = ch_floats(mem, 8 * s + 1),
                          .upper = ch_floats(mem, all),
                          .lower = ch_floats(mem, all),
                          .packed = ch_floats(mem, 2 * all) };
    out->plan = (ch_distance_plan){ .n_atoms = bounds->n,
                                    .stride = bounds->stride,
                                    .n_volumes = bounds->n_volumes,
                                    .bounds = out->packed,
                                    .volumes = bounds->volumes,
                                    .volume_weight = volume_weight };
    if (out->x == NULL || out->work == NULL || out->metric == NULL || out->basis == NULL || out->upper == NULL ||
        out->lower == NULL || out->packed == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory to embed %d atoms", (int)bounds->n);
    return PL_OK;
}

/* Bounds of this attempt: each free bond gets a torsion, and the distances of all other atoms follow. */
static void draw_torsions(ch_embedder *e, double heat, pl_rng *random)
{
    const ch_bounds *b = e->bounds;
    const size_t s = (size_t)b->stride, bytes = (size_t)b->n * s * sizeof(float);

    memcpy(e->upper, b->upper, bytes);
    memcpy(e->lower, b->lower, bytes);
    for (int32_t k = 0; heat > 0 && k < b->rotors.n; k++) {
        const ch_rotor *r = &b->rotors.rotor[k];
        const size_t at = (size_t)r->atom[0] * s + (size_t)r->atom[3], back = (size_t)r->atom[3] * s + (size_t)r->atom[0];
        const float d = ch_rotor_draw(r, heat, random);
        e->upper[at] = e->upper[back] = fmaxf(fminf(b->upper[at], d + torsion_margin), b->lower[at] + torsion_margin);
        e->lower[at] = e->lower[back] = fminf(fmaxf(b->lower[at], d - torsion_margin), b->upper[at] - torsion_margin);
    }
    if (heat > 0 && b->rotors.n > 0)
        e->kernels->smooth(e->upper, e->lower, b->n, b->stride);
    for (size_t k = 0; k < (size_t)b->n * s; k++)
        if (e->lower[k] > e->upper[k])
            e->lower[k] = e->upper[k] = 0.5f * (e->lower[k] + e->upper[k]);
    pack_bounds(e);
}

/* Random distances, squared, give the inner products of the positions relative to the centre of mass. */
static void random_metric(ch_embedder *e, pl_rng *random)
{
    const ch_bounds *b = e->bounds;
    const size_t n = (size_t)b->n, s = (size_t)b->stride;
    float *m = e->metric, *mean = e->basis;
    double all = 0;

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++) {
            const float l = e->lower[i * s + j], d = l + (float)pl_rng_real(random) * (e->upper[i * s + j] - l);
            m[i * s + j] = m[j * s + i] = d * d;
        }
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        m[i * s + i] = 0;
        for (size_t j = 0; j < n; j++)
            sum += (double)m[i * s + j];
        mean[i] = (float)(sum / (double)n);
        all += sum / (double)n / (double)n;
    }
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            m[i * s + j] = 0.5f * (mean[i] + mean[j] - (float)all - m[i * s + j]);
}

static void make_orthonormal(const ch_kernels *k, float *q, int32_t s)
{
    for (int c = 0; c < 4; c++) {
        float *v = q + (size_t)c * (size_t)s;
        double length = 0;
        for (int other = 0; other < c; other++)
            k->add(v, (float)-k->dot(v, q + (size_t)other * (size_t)s, s), q + (size_t)other * (size_t)s, s);
        length = sqrt(k->dot(v, v, s) + 1e-20);
        for (int32_t i = 0; i < s; i++)
            v[i] /= (float)length;
    }
}

/* The four largest eigenvalues and their vectors by iteration of a subspace; positions are vectors times roots. */
static void start(ch_embedder *e, pl_rng *random)
{
    const int32_t n = e->bounds->n, s = e->bounds->stride;
    float *q = e->basis, *z = e->basis + 4 * (size_t)s;

    random_metric(e, random);
    memset(q, 0, 8 * (size_t)s * sizeof *q);
    for (int c = 0; c < 4; c++)
        for (int32_t i = 0; i < n; i++)
            q[c * s + i] = (float)pl_rng_real(random) - 0.5f;
    for (int step = 0; step < POWER_STEPS; step++) {
        make_orthonormal(e->kernels, q, s);
        e->kernels->times(z, e->metric, q, n, s);
        if (step < POWER_STEPS - 1)
            memcpy(q, z, 4 * (size_t)s * sizeof *q);
    }
    memset(e->x, 0, 4 * (size_t)s * sizeof *e->x);
    for (int c = 0; c < 4; c++) {
        const double value = e->kernels->dot(q + c * (size_t)s, z + c * (size_t)s, s);
        const float root = (float)sqrt(fmax(value, 0.1));
        for (int32_t i = 0; i < n; i++)
            e->x[c * s + i] = q[c * s + i] * root + 0.02f * ((float)pl_rng_real(random) - 0.5f);
    }
}

static double signed_volume(const ch_volume *v, const float *x, int32_t s)
{
    double d[3][3];

    for (int t = 0; t < 3; t++)
        for (int c = 0; c < 3; c++)
            d[t][c] = (double)x[c * s + v->atom[t]] - (double)x[c * s + v->atom[3]];
    return d[0][0] * (d[1][1] * d[2][2] - d[1][2] * d[2][1]) + d[0][1] * (d[1][2] * d[2][0] - d[1][0] * d[2][2]) +
           d[0][2] * (d[1][0] * d[2][1] - d[1][1] * d[2][0]);
}

/* Distances do not know left from right: of the two images, the one with fewer centres inside out. */
static void reflect_if_better(ch_embedder *e)
{
    const ch_bounds *b = e->bounds;
    int32_t good = 0;

    for (int32_t k = 0; k < b->n_chiral; k++)
        good += (signed_volume(&b->volumes[k], e->x, b->stride) > 0) == (b->volumes[k].low > 0);
    for (int32_t i = 0; 2 * good < b->n_chiral && i < b->n; i++)
        e->x[i] = -e->x[i];
}

static double error_of(const void *of, const float *x, float *g)
{
    const ch_embedder *e = of;

    return e->kernels->distance(&e->plan, x, g);
}

static ch_search_result improve(ch_embedder *e, float fourth, double gradient, int32_t steps, float move)
{
    const ch_search s = { .kernels = e->kernels,
                          .objective = error_of,
                          .of = e,
                          .n_atoms = e->bounds->n,
                          .stride = e->bounds->stride,
                          .dims = 4,
                          .gradient = gradient,
                          .max_steps = steps,
                          .max_move = move,
                          .first_scale = move,
                          .work = e->work };

    e->plan.fourth_weight = fourth;
    return ch_descend(&s, e->x);
}

static double most_violated(const ch_bounds *b, const float *x)
{
    const int32_t s = b->stride;
    double max = 0;

    for (int32_t i = 0; i < b->n; i++)
        for (int32_t j = 0; j < i; j++) {
            const float dx = x[i] - x[j], dy = x[s + i] - x[s + j], dz = x[2 * s + i] - x[2 * s + j];
            const double d = sqrt((double)(dx * dx + dy * dy + dz * dz));
            const size_t at = (size_t)i * (size_t)s + (size_t)j;
            max = fmax(max, fmax(d - (double)b->upper[at], (double)b->lower[at] - d));
        }
    return max;
}

static enum ch_embedding judge(const ch_embedder *e, const ch_embedded *r)
{
    const ch_bounds *b = e->bounds;

    for (int32_t k = 0; k < b->n_chiral; k++) {
        const double v = signed_volume(&b->volumes[k], e->x, b->stride), sign = b->volumes[k].low > 0 ? 1 : -1;
        if (!(v * sign > 0.3 * fmin(fabs((double)b->volumes[k].low), fabs((double)b->volumes[k].high))))
            return CH_WRONG_CHIRALITY;
    }
    return r->violation < largest_violation && r->error < largest_error ? CH_EMBEDDED : CH_FAR_FROM_BOUNDS;
}

ch_embedded ch_embed(float (*xyz)[3], ch_embedder *e, double heat, pl_rng *random)
{
    ch_embedded r = { .what = CH_EMBEDDED };
    ch_search_result last = { 0 };

    draw_torsions(e, heat, random);
    start(e, random);
    reflect_if_better(e);
    r.n_values = improve(e, free_fourth, 1e-2, FREE_STEPS, 1).n_values;
    last = improve(e, squeezed_fourth, 3e-3, SQUEEZE_STEPS, 0.5f);
    r.n_values += last.n_values;
    r.error = last.value / fmax(1, (double)e->bounds->n);
    r.violation = most_violated(e->bounds, e->x);
    r.what = judge(e, &r);
    ch_from_columns(xyz, e->x, e->bounds->stride, e->bounds->n);
    return r;
}
