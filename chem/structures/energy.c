/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/structures/energy.h"

#include <math.h>
#include <string.h>

static const double STRETCH = 143.9325;                                /* kcal/mol in md A */
static const double BEND = 143.9325 * (M_PI / 180.0) * (M_PI / 180.0); /* 0.0438449: kcal/mol/degree^2 in md A/rad^2 */
static const double STRETCH_BEND = 2.51210;
static const double DEGREES = 180.0 / M_PI;
static const double CUBIC_STRETCH = -2.0;               /* 1/A */
static const double CUBIC_BEND = -0.4 / (180.0 / M_PI); /* 1/degree */
static const double SMALLEST = 1e-12;                   /* keeps lengths of vectors from zero */

const char *ch_term_class_name(enum ch_term_class class)
{
    static const char *const names[CH_N_TERM_CLASSES] = { "bond",    "angle", "stretch_bend", "out_of_plane",
                                                          "torsion", "vdw",   "electrostatic" };
    return (unsigned)class < CH_N_TERM_CLASSES ? names[class] : "?";
}

/* ---- vectors ---- */

static void difference(double out[3], const double a[3], const double b[3])
{
    for (int c = 0; c < 3; c++)
        out[c] = a[c] - b[c];
}

static double dot(const double a[3], const double b[3]) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

static void cross(double out[3], const double a[3], const double b[3])
{
    out[0] = a[1] * b[2] - a[2] * b[1];
    out[1] = a[2] * b[0] - a[0] * b[2];
    out[2] = a[0] * b[1] - a[1] * b[0];
}

static double length(const double a[3]) { return fmax(sqrt(dot(a, a)), SMALLEST); }

static void add(double out[3], double scale, const double a[3])
{
    for (int c = 0; c < 3; c++)
        out[c] += scale * a[c];
}

/* ---- bonds ---- */

static double bonds(double (*gradient)[3], const ch_terms *t, const double (*xyz)[3])
{
    const double cubic = CUBIC_STRETCH, quartic = 7.0 / 12.0 * CUBIC_STRETCH * CUBIC_STRETCH;
    double sum = 0;

    for (int32_t n = 0; n < t->n_bonds; n++) {
        const ch_bond_term *b = &t->bonds[n];
        double v[3];
        difference(v, xyz[b->i], xyz[b->j]);
        const double r = length(v), d = r - b->r0, k = 0.5 * STRETCH * b->k;
        sum += k * d * d * (1.0 + cubic * d + quartic * d * d);
        if (gradient == NULL)
            continue;
        const double slope = k * d * (2.0 + 3.0 * cubic * d + 4.0 * quartic * d * d) / r;
        add(gradient[b->i], slope, v);
        add(gradient[b->j], -slope, v);
    }
    return sum;
}

/* ---- angles ---- */

/* An angle at atom j, and the unit vectors to its ends. */
typedef struct {
    double u[3], v[3], ru, rv, cosine, sine, degrees;
} bent;

static void bend_look(bent *out, const double i[3], const double j[3], const double k[3])
{
    double normal[3];

    difference(out->u, i, j);
    difference(out->v, k, j);
    out->ru = length(out->u);
    out->rv = length(out->v);
    for (int c = 0; c < 3; c++) {
        out->u[c] /= out->ru;
        out->v[c] /= out->rv;
    }
    cross(normal, out->u, out->v);
    out->cosine = dot(out->u, out->v);
    out->sine = length(normal);
    out->degrees = DEGREES * atan2(out->sine, out->cosine);
}

/* Adds `slope` times the derivative of the cosine of the angle. */
static void add_cosine(double i[3], double j[3], double k[3], double slope, const bent *b)
{
    for (int c = 0; c < 3; c++) {
        const double at_i = slope * (b->v[c] - b->cosine * b->u[c]) / b->ru, at_k = slope * (b->u[c] - b->cosine * b->v[c]) / b->rv;
        i[c] += at_i;
        k[c] += at_k;
        j[c] -= at_i + at_k;
    }
}

static double angles(double (*gradient)[3], const ch_terms *t, const double (*xyz)[3])
{
    double sum = 0;

    for (int32_t n = 0; n < t->n_angles; n++) {
        const ch_angle_term *a = &t->angles[n];
        bent b;
        bend_look(&b, xyz[a->i], xyz[a->j], xyz[a->k]);
        const double d = b.degrees - a->theta0, k = 0.5 * BEND * a->ka;
        sum += a->linear ? STRETCH * a->ka * (1.0 + b.cosine) : k * d * d * (1.0 + CUBIC_BEND * d);
        if (gradient == NULL)
            continue;
        const double slope = a->linear ? STRETCH * a->ka : -DEGREES / b.sine * k * d * (2.0 + 3.0 * CUBIC_BEND * d);
        add_cosine(gradient[a->i], gradient[a->j], gradient[a->k], slope, &b);
    }
    return sum;
}

static double stretch_bends(double (*gradient)[3], const ch_terms *t, const double (*xyz)[3])
{
    double sum = 0;

    for (int32_t n = 0; n < t->n_stretch_bends; n++) {
        const ch_stretch_bend_term *s = &t->stretch_bends[n];
        bent b;
        bend_look(&b, xyz[s->i], xyz[s->j], xyz[s->k]);
        const double stretch = STRETCH_BEND * (s->k_ij * (b.ru - s->r0_ij) + s->k_kj * (b.rv - s->r0_kj)),
                     d = b.degrees - s->theta0;
        sum += stretch * d;
        if (gradient == NULL)
            continue;
        add_cosine(gradient[s->i], gradient[s->j], gradient[s->k], -DEGREES / b.sine * stretch, &b);
        add(gradient[s->i], STRETCH_BEND * s->k_ij * d, b.u);
        add(gradient[s->j], -STRETCH_BEND * s->k_ij * d, b.u);
        add(gradient[s->k], STRETCH_BEND * s->k_kj * d, b.v);
        add(gradient[s->j], -STRETCH_BEND * s->k_kj * d, b.v);
    }
    return sum;
}

/* ---- out of plane ---- */

/* With a, b, c from the centre to i, k, l and n = a x b: the sine of the Wilson angle is s = n c / (|n| |c|). */
static double out_of_planes(double (*gradient)[3], const ch_terms *t, const double (*xyz)[3])
{
    double sum = 0;

    for (int32_t m = 0; m < t->n_out_of_planes; m++) {
        const ch_out_of_plane_term *o = &t->out_of_planes[m];
        double a[3], b[3], c[3], n[3], at_n[3], at[3][3];
        difference(a, xyz[o->i], xyz[o->j]);
        difference(b, xyz[o->k], xyz[o->j]);
        difference(c, xyz[o->l], xyz[o->j]);
        cross(n, a, b);
        const double rn = length(n), rc = length(c), s = fmax(-1.0, fmin(1.0, dot(n, c) / (rn * rc)));
        const double chi = DEGREES * asin(s), k = 0.5 * BEND * o->koop;
        sum += k * chi * chi;
        if (gradient == NULL)
            continue;
        const double slope = 2.0 * k * chi * DEGREES / fmax(sqrt(1.0 - s * s), SMALLEST);
        for (int x = 0; x < 3; x++) {
            at_n[x] = c[x] / (rn * rc) - s * n[x] / (rn * rn);
            at[2][x] = n[x] / (rn * rc) - s * c[x] / (rc * rc);
        }
        cross(at[0], b, at_n);
        cross(at[1], at_n, a);
        const int32_t ends[3] = { o->i, o->k, o->l };
        for (int e = 0; e < 3; e++) {
            add(gradient[ends[e]], slope, at[e]);
            add(gradient[o->j], -slope, at[e]);
        }
    }
    return sum;
}

/* ---- torsions ---- */

/* Adds `slope` times the derivative of the cosine between m = b1 x b2 and n = b2 x b3. */
static void add_torsion(double (*gradient)[3], const ch_torsion_term *t, double slope, double cosine, double b[3][3],
                        const double m[3], const double n[3])
{
    const double rm = length(m), rn = length(n);
    double at_m[3], at_n[3], at1[3], at2[3], more[3], at3[3];

    for (int x = 0; x < 3; x++) {
        at_m[x] = n[x] / (rm * rn) - cosine * m[x] / (rm * rm);
        at_n[x] = m[x] / (rm * rn) - cosine * n[x] / (rn * rn);
    }
    cross(at1, b[1], at_m);
    cross(at2, at_m, b[0]);
    cross(more, b[2], at_n);
    cross(at3, at_n, b[1]);
    add(at2, 1.0, more);
    add(gradient[t->i], -slope, at1);
    add(gradient[t->j], slope, at1);
    add(gradient[t->j], -slope, at2);
    add(gradient[t->k], slope, at2);
    add(gradient[t->k], -slope, at3);
    add(gradient[t->l], slope, at3);
}

static double torsions(double (*gradient)[3], const ch_terms *t, const double (*xyz)[3])
{
    double sum = 0;

    for (int32_t x = 0; x < t->n_torsions; x++) {
        const ch_torsion_term *o = &t->torsions[x];
        double b[3][3], m[3], n[3];
        difference(b[0], xyz[o->j], xyz[o->i]);
        difference(b[1], xyz[o->k], xyz[o->j]);
        difference(b[2], xyz[o->l], xyz[o->k]);
        cross(m, b[0], b[1]);
        cross(n, b[1], b[2]);
        const double c = fmax(-1.0, fmin(1.0, dot(m, n) / (length(m) * length(n))));
        sum += 0.5 * (o->v1 * (1.0 + c) + o->v2 * 2.0 * (1.0 - c * c) + o->v3 * (1.0 + c * (4.0 * c * c - 3.0)));
        if (gradient != NULL)
            add_torsion(gradient, o, 0.5 * (o->v1 - 4.0 * o->v2 * c + o->v3 * (12.0 * c * c - 3.0)), c, b, m, n);
    }
    return sum;
}

/* ---- pairs ---- */

/* Buffered 14-7: eps (1.07 s/(r + 0.07 s))^7 (1.12 s^7/(r^7 + 0.12 s^7) - 2); also its derivative by r. */
static double buffered_14_7(double *slope, double r, double s, double epsilon)
{
    const double x = r / s, x3 = x * x * x, x6 = x3 * x3, x7 = x6 * x;
    const double near = 1.07 / (x + 0.07), n2 = near * near, near7 = n2 * n2 * n2 * near, far = 1.12 / (x7 + 0.12);
    const double e = epsilon * near7 * (far - 2.0);

    *slope = (-7.0 * e / (x + 0.07) - epsilon * near7 * far * 7.0 * x6 / (x7 + 0.12)) / s;
    return e;
}

static void pairs(double sums[CH_N_TERM_CLASSES], double (*gradient)[3], const ch_terms *t, const double (*xyz)[3])
{
    for (int32_t n = 0; n < t->n_pairs; n++) {
        const ch_pair_term *p = &t->pairs[n];
        double v[3], slope;
        difference(v, xyz[p->i], xyz[p->j]);
        const double r = length(v), buffered = r + 0.05;
        sums[CH_VDW] += buffered_14_7(&slope, r, p->r_star, p->epsilon);
        sums[CH_ELECTROSTATIC] += p->charges / buffered;
        if (gradient == NULL)
            continue;
        slope = (slope - p->charges / (buffered * buffered)) / r;
        add(gradient[p->i], slope, v);
        add(gradient[p->j], -slope, v);
    }
}

void ch_energy(double sums[CH_N_TERM_CLASSES], double (*gradient)[3], const ch_terms *terms, const double (*xyz)[3])
{
    if (gradient != NULL)
        memset(gradient, 0, (size_t)terms->n_atoms * sizeof *gradient);
    sums[CH_BOND] = bonds(gradient, terms, xyz);
    sums[CH_ANGLE] = angles(gradient, terms, xyz);
    sums[CH_STRETCH_BEND] = stretch_bends(gradient, terms, xyz);
    sums[CH_OUT_OF_PLANE] = out_of_planes(gradient, terms, xyz);
    sums[CH_TORSION] = torsions(gradient, terms, xyz);
    sums[CH_VDW] = sums[CH_ELECTROSTATIC] = 0;
    pairs(sums, gradient, terms, xyz);
}

double ch_energy_total(const double sums[CH_N_TERM_CLASSES])
{
    double total = 0;

    for (int c = 0; c < CH_N_TERM_CLASSES; c++)
        total += sums[c];
    return total;
}
