/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/structures/relax.h"

#include <math.h>
#include <string.h>

static const double usual_gradient = 0.01;
static const float longest_move = 0.2f; /* Angstrom a step; 0.1 to 1 differ little */
static const float too_near = 0.05f;    /* Angstrom: atoms nearer than this have no direction to part */
static const float straight = 1e-3f;    /* sine of an angle, as above */
static const float push = 0.05f;        /* Angstrom */
enum { USUAL_STEPS = 2000, REFRESH_STEPS = 12 };

pl_code ch_relaxer_make(ch_relaxer *out, const ch_terms *terms, const ch_kernels *kernels, pl_arena *mem, pl_error *err)
{
    pl_code code = PL_OK;

    *out = (ch_relaxer){ .terms = terms, .kernels = kernels };
    code = ch_energy_plan_make(&out->plan, terms, kernels, mem, err);
    if (code == PL_OK)
        code = ch_preconditioner_make(&out->preconditioner, terms, kernels, mem, err);
    if (code != PL_OK)
        return code;
    out->x = ch_floats(mem, 3 * (int64_t)out->plan.stride + 1);
    out->scratch = ch_floats(mem, 8 * (int64_t)out->plan.stride + 1);
    out->work = ch_floats(mem, ch_search_floats(out->plan.stride, 3) + 1);
    if (out->x == NULL || out->scratch == NULL || out->work == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory to relax %d atoms", (int)terms->n_atoms);
    return PL_OK;
}

/* A direction that differs from atom to atom and is the same every time. */
static void push_atom(float (*xyz)[3], int32_t i)
{
    const double a = 2.399963 * (i + 1), z = fmod(0.618034 * (i + 1), 1) * 1.6 - 0.8, r = sqrt(1 - z * z);

    xyz[i][0] += push * (float)(r * cos(a));
    xyz[i][1] += push * (float)(r * sin(a));
    xyz[i][2] += push * (float)z;
}

static float squared_distance(const float (*xyz)[3], int32_t i, int32_t j)
{
    const float x = xyz[i][0] - xyz[j][0], y = xyz[i][1] - xyz[j][1], z = xyz[i][2] - xyz[j][2];

    return x * x + y * y + z * z;
}

static bool is_straight(const float (*xyz)[3], const ch_angle_term *t)
{
    const float a = squared_distance(xyz, t->i, t->j), b = squared_distance(xyz, t->k, t->j), c = squared_distance(xyz, t->i, t->k);
    const float cosine = (a + b - c) / fmaxf(2 * sqrtf(a * b), 1e-12f);

    return cosine < -1 + straight * straight * 0.5f + 1e-6f;
}

static void part(float (*xyz)[3], const ch_terms *t)
{
    for (int32_t i = 0; i < t->n_atoms; i++)
        for (int32_t j = 0; j < i; j++)
            if (squared_distance((const float(*)[3])xyz, i, j) < too_near * too_near)
                push_atom(xyz, i);
    for (int32_t k = 0; k < t->n_angles; k++)
        if (!t->angles[k].linear && is_straight((const float(*)[3])xyz, &t->angles[k]))
            push_atom(xyz, t->angles[k].j);
}

/* Far from the origin a float is coarse: near a protein's 100 A it moves atoms by 8e-6, which is 0.005 kcal/mol/A. */
static void middle_of(double out[3], const float (*xyz)[3], int32_t n)
{
    out[0] = out[1] = out[2] = 0;
    for (int32_t i = 0; i < n; i++)
        for (int c = 0; c < 3; c++)
            out[c] += (double)xyz[i][c] / n;
}

static void shift(float (*xyz)[3], int32_t n, const double by[3], int sign)
{
    for (int32_t i = 0; i < n; i++)
        for (int c = 0; c < 3; c++)
            xyz[i][c] = (float)((double)xyz[i][c] + sign * by[c]);
}

static double energy_of(const void *of, const float *x, float *g)
{
    const ch_relaxer *r = of;

    return r->kernels->energy(&r->plan, x, g, r->scratch);
}

pl_code ch_relax(ch_relaxed *out, float (*xyz)[3], ch_relaxer *relaxer, const ch_relax_options *options, pl_error *err)
{
    const ch_terms *t = relaxer->terms;
    const ch_search search = {
        .kernels = relaxer->kernels,
        .objective = energy_of,
        .of = relaxer,
        .preconditioner = &relaxer->preconditioner,
        .n_atoms = t->n_atoms,
        .stride = relaxer->plan.stride,
        .dims = 3,
        .work = relaxer->work,
        .gradient = options->gradient > 0 ? options->gradient : usual_gradient,
        .max_steps = options->max_steps > 0 ? options->max_steps : USUAL_STEPS,
        .refresh_steps = REFRESH_STEPS,
        .max_move = longest_move,
    };
    ch_search_result r = { 0 };
    double middle[3];

    *out = (ch_relaxed){ .energy = NAN, .gradient = NAN };
    for (int32_t i = 0; i < t->n_atoms; i++)
        if (!isfinite(xyz[i][0]) || !isfinite(xyz[i][1]) || !isfinite(xyz[i][2]))
            return pl_fail(err, PL_EINPUT, "the position of atom %d is not finite", (int)i + 1);
    middle_of(middle, (const float(*)[3])xyz, t->n_atoms);
    shift(xyz, t->n_atoms, middle, -1);
    part(xyz, t);
    memset(relaxer->x, 0, 3 * (size_t)search.stride * sizeof(float));
    ch_to_columns(relaxer->x, search.stride, (const float(*)[3])xyz, t->n_atoms);
    r = ch_descend(&search, relaxer->x);
    ch_from_columns(xyz, relaxer->x, search.stride, t->n_atoms);
    shift(xyz, t->n_atoms, middle, 1);
    *out = (ch_relaxed){ r.value, r.gradient, r.steps, r.n_values, r.stop == CH_CONVERGED };
    return PL_OK;
}
