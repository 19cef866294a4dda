/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/structures/rules.h"

#include <math.h>
#include <string.h>

static const ch_mmff_type *sight(const ch_mmff *p, int type) { return &p->type[type]; }

/* Rows of the periodic table as MMFF94 counts them: hydrogen 0, lithium to neon 1. */
static int row_of(int z)
{
    if (z <= 2)
        return 0;
    if (z <= 10)
        return 1;
    if (z <= 18)
        return 2;
    return z <= 36 ? 3 : 4;
}

/* ---- constants of the elements, paper V ---- */

typedef struct {
    uint8_t z;
    double radius, electronegativity; /* A; Allred and Rochow */
    double z_angle, c_angle;          /* table of the angle rule: as an end, as the centre */
    double u, v, w;                   /* table of the torsion rule; 0: none */
} element_rule;

static const element_rule *rule_of(int z)
{
    static const element_rule rules[] = {
        { 1, 0.33, 2.20, 1.395, 0, 0, 0, 0 },
        { 6, 0.77, 2.50, 2.494, 1.016, 2.0, 2.12, 0 },
        { 7, 0.73, 3.07, 2.711, 1.113, 2.0, 1.5, 0 },
        { 8, 0.72, 3.50, 3.045, 1.337, 2.0, 0.2, 2.0 },
        { 9, 0.74, 4.10, 2.847, 0, 0, 0, 0 },
        { 14, 1.15, 1.74, 2.350, 0.811, 1.25, 1.22, 0 },
        { 15, 1.09, 2.06, 2.350, 1.068, 1.25, 2.40, 0 },
        { 16, 1.03, 2.44, 2.980, 1.249, 1.25, 0.49, 8.0 },
        { 17, 1.01, 2.83, 2.909, 1.078, 0, 0, 0 },
        { 35, 1.15, 2.74, 3.017, 0, 0, 0, 0 },
        { 53, 1.33, 2.21, 3.086, 0, 0, 0, 0 },
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].z == z)
            return &rules[i];
    return NULL;
}

/* ---- bonds ---- */

/* The order as the rule counts it: 4 and 5 are between one and two. */
static int rule_order(const ch_bond_sight *bond, const ch_mmff_type *i, const ch_mmff_type *j)
{
    if (bond->aromatic)
        return !i->lone_pair && !j->lone_pair ? 4 : 5;
    if (i->multiple == 1 && j->multiple == 1)
        return 4;
    if ((i->multiple == 1 && j->multiple == 2) || (i->multiple == 2 && j->multiple == 1))
        return 5;
    return bond->order;
}

/* The radius of an atom in a bond of that order. Paper V also shortens single bonds of sp and sp2 atoms; the bonds that Halgren's
 * program made by rule do not have that (H-O of hydroxide in the validation suite, N-H of types 58 and 67 in mmffbond.par). */
static double rule_radius(const element_rule *element, int order)
{
    static const double shorter[] = { 0, 0, 0.10, 0.17, 0.075, 0.04 };

    return element->radius - shorter[order];
}

/* Herschbach and Laurie, J. Chem. Phys. 35, 458 (1961): lengths with force constants of 10^-((r - a)/d), by rows of the elements. */
static double badger(int row_i, int row_j, double r)
{
    static const struct {
        double a, d;
    } rows[5][5] = { { { 1.26, 0.025 }, { 1.66, 0.30 }, { 1.84, 0.38 }, { 1.98, 0.49 }, { 2.03, 0.51 } },
                     { { 1.66, 0.30 }, { 1.91, 0.68 }, { 2.28, 0.74 }, { 2.35, 0.85 }, { 2.33, 0.68 } },
                     { { 1.84, 0.38 }, { 2.28, 0.74 }, { 2.41, 1.18 }, { 2.52, 1.02 }, { 2.61, 1.28 } },
                     { { 1.98, 0.49 }, { 2.35, 0.85 }, { 2.52, 1.02 }, { 2.58, 1.41 }, { 2.66, 0.86 } },
                     { { 2.03, 0.51 }, { 2.33, 0.68 }, { 2.61, 1.28 }, { 2.66, 0.86 }, { 2.85, 1.62 } } };
    return pow(10.0, -(r - rows[row_i][row_j].a) / rows[row_i][row_j].d);
}

static bool bond_by_rule(ch_bond_sight *bond, const ch_mmff *p, int i, int j)
{
    const ch_mmff_type *x = sight(p, i), *y = sight(p, j);
    const element_rule *ex = rule_of(x->z), *ey = rule_of(y->z);
    const int low = x->z < y->z ? x->z : y->z, high = x->z < y->z ? y->z : x->z;

    if (ex == NULL || ey == NULL)
        return false;
    const int order = rule_order(bond, x, y);
    const double polar = pow(fabs(ex->electronegativity - ey->electronegativity), 1.4);
    bond->r0 = rule_radius(ex, order) + rule_radius(ey, order) - (low == 1 ? 0.05 : 0.08) * polar;
    if (row_of(x->z) == 1 && row_of(y->z) == 1)
        bond->r0 -= 0.008;
    const double *single = ch_mmff_find(&p->bond_rule, ch_mmff_key(0, low, high, 0, 0));
    if (single != NULL)
        bond->k = single[1] * pow(single[0] / bond->r0, 6);
    else
        bond->k = badger(row_of(x->z), row_of(y->z), bond->r0);
    return true;
}

bool ch_rule_bond(ch_bond_sight *bond, const ch_mmff *p, int i, int j)
{
    const double *row = ch_mmff_find(&p->bond, ch_mmff_key(bond->class, i < j ? i : j, i < j ? j : i, 0, 0));

    if (row == NULL)
        return bond_by_rule(bond, p, i, j);
    bond->k = row[0];
    bond->r0 = row[1];
    return true;
}

/* ---- angles ---- */

int ch_rule_angle_class(int ring, int class_ij, int class_jk)
{
    static const int classes[3][3] = { { 0, 1, 2 }, { 3, 5, 6 }, { 4, 7, 8 } }; /* no ring, ring of 3, of 4 */

    return classes[ring > 0 ? ring - 2 : 0][class_ij + class_jk];
}

static double theta_by_rule(const ch_mmff_type *centre, int ring)
{
    if (ring > 0)
        return ring == 3 ? 60.0 : 90.0;
    if (centre->neighbours == 4)
        return 109.45;
    if (centre->neighbours == 3 && centre->valence == 3 && centre->multiple == 0)
        return centre->z == 7 ? 107.0 : 92.0;
    if (centre->neighbours == 2) {
        if (centre->linear)
            return 180.0;
        if (centre->z == 8)
            return 105.0;
        if (centre->z > 10)
            return 95.0;
    }
    return 120.0;
}

static bool ka_by_rule(double *ka, double theta0, const ch_mmff *p, int ring, double r_ij, double r_jk, const int type[3])
{
    const element_rule *i = rule_of(sight(p, type[0])->z), *j = rule_of(sight(p, type[1])->z), *k = rule_of(sight(p, type[2])->z);
    const double radians = theta0 * M_PI / 180.0, d = (r_ij - r_jk) / (r_ij + r_jk);
    double beta = 1.75;

    if (i == NULL || j == NULL || k == NULL || !(j->c_angle > 0))
        return false;
    if (ring > 0)
        beta *= ring == 3 ? 0.05 : 0.85;
    *ka = beta * i->z_angle * j->c_angle * k->z_angle * exp(-2.0 * d * d) / ((r_ij + r_jk) * radians * radians);
    return true;
}

/* The equivalences of a step: the ends at one level of MMFFDEF, the centre at its own or second. */
static int at_level(const ch_mmff *p, int type, int level) { return sight(p, type)->equivalent[level]; }

static uint64_t outer_key(int class, int i, int j, int k)
{
    return i <= k ? ch_mmff_key(class, i, j, k, 0) : ch_mmff_key(class, k, j, i, 0);
}

bool ch_rule_angle(double *ka, double *theta0, const ch_mmff *p, int ring, const ch_bond_sight *ij, const ch_bond_sight *jk,
                   const int type[3])
{
    const int class = ch_rule_angle_class(ring, ij->class, jk->class);
    const double *row = NULL;

    for (int level = 0; level < CH_MMFF_LEVELS && row == NULL; level++)
        row = ch_mmff_find(&p->angle, outer_key(class, at_level(p, type[0], level), at_level(p, type[1], level > 0),
                                                at_level(p, type[2], level)));
    *theta0 = row != NULL ? row[1] : theta_by_rule(sight(p, type[1]), ring);
    if (row != NULL && row[0] != 0) {
        *ka = row[0];
        return true;
    }
    return ka_by_rule(ka, *theta0, p, ring, ij->r0, jk->r0, type);
}

/* ---- stretch-bends ---- */

/* Classes count which of the two bonds lies between multiple ones, the first of the table's order first. */
static int stretch_bend_class(int ring, int class_first, int class_second)
{
    static const int classes[3][2][2] = { { { 0, 2 }, { 1, 3 } }, { { 5, 7 }, { 6, 8 } }, { { 4, 10 }, { 9, 11 } } };

    return classes[ring > 0 ? ring - 2 : 0][class_first][class_second];
}

void ch_rule_stretch_bend(double *k_ij, double *k_kj, const ch_mmff *p, int ring, const ch_bond_sight *ij, const ch_bond_sight *jk,
                          const int type[3])
{
    /* In the table's order: the smaller type first; of two equal ones the bond of class 1. */
    const bool turn = type[0] > type[2] || (type[0] == type[2] && jk->class > ij->class);
    const int first = turn ? type[2] : type[0], second = turn ? type[0] : type[2];
    const int class = turn ? stretch_bend_class(ring, jk->class, ij->class) : stretch_bend_class(ring, ij->class, jk->class);
    const double *row = ch_mmff_find(&p->stretch_bend, ch_mmff_key(class, first, type[1], second, 0));
    bool reversed = turn;

    if (row == NULL) {
        const int i = row_of(sight(p, type[0])->z), j = row_of(sight(p, type[1])->z), k = row_of(sight(p, type[2])->z);
        row = ch_mmff_find(&p->stretch_bend_rule, outer_key(0, i, j, k));
        reversed = i > k;
    }
    *k_ij = row != NULL ? row[reversed] : 0;
    *k_kj = row != NULL ? row[!reversed] : 0;
}

/* ---- out of plane ---- */

double ch_rule_out_of_plane(const ch_mmff *p, bool mmff94s, int centre, const int others[3])
{
    const double *row = NULL;

    for (int level = 0; level < CH_MMFF_LEVELS && row == NULL; level++) {
        int a = at_level(p, others[0], level), b = at_level(p, others[1], level), c = at_level(p, others[2], level), kept;
        if (a > b) {
            kept = a;
            a = b;
            b = kept;
        }
        if (b > c) {
            kept = b;
            b = c;
            c = kept;
        }
        if (a > b) {
            kept = a;
            a = b;
            b = kept;
        }
        row = ch_mmff_find(&p->out_of_plane[mmff94s], ch_mmff_key(0, at_level(p, centre, level > 0), a, b, c));
    }
    return row != NULL ? row[0] : 0;
}

/* ---- torsions ---- */

static const double *torsion_row(const ch_mmff *p, bool mmff94s, int class, const int type[4])
{
    static const uint8_t first[] = { 0, 1, 2, 4, 4 }, last[] = { 0, 1, 4, 2, 4 };
    const double *row = NULL;

    for (int step = 0; step < 5 && row == NULL; step++) {
        const int j = at_level(p, type[1], step > 0), k = at_level(p, type[2], step > 0);
        const int i = at_level(p, type[0], first[step]), l = at_level(p, type[3], last[step]);
        const bool turn = j > k || (j == k && i > l);
        row = ch_mmff_find(&p->torsion[mmff94s], turn ? ch_mmff_key(class, l, k, j, i) : ch_mmff_key(class, i, j, k, l));
    }
    return row;
}

/* Rule (g): a single bond between atoms that may conjugate. false: the rule does not apply. */
static bool conjugated(double v[3], const ch_mmff_type *j, const ch_mmff_type *k, double root_u)
{
    double pi;

    if (!((j->multiple && k->multiple) || (j->multiple && k->lone_pair) || (j->lone_pair && k->multiple)))
        return false;
    if (j->lone_pair && k->lone_pair)
        return true;
    if ((j->lone_pair && k->multiple) || (k->lone_pair && j->multiple)) {
        const int multiple = j->lone_pair && k->multiple ? k->multiple : j->multiple;
        if (multiple == 1)
            pi = 0.5;
        else
            pi = row_of(j->z) == 1 && row_of(k->z) == 1 ? 0.3 : 0.15;
    } else {
        pi = (j->multiple == 1 || k->multiple == 1) && (j->z != 6 || k->z != 6) ? 0.4 : 0.15;
    }
    v[1] = 6.0 * pi * root_u;
    return true;
}

/* Whether an atom beside a tetrahedral one has its pi electrons so that no barrier is left: rules (e) and (f). */
static bool barrier_free(const ch_mmff_type *t)
{
    if (t->neighbours == 3)
        return t->valence == 4 || t->valence == 34 || t->multiple != 0;
    return t->neighbours == 2 && (t->valence == 3 || t->multiple != 0);
}

static void torsion_by_rule(double v[3], const ch_mmff_type *j, const ch_mmff_type *k, const ch_bond_sight *bond)
{
    const element_rule *ej = rule_of(j->z), *ek = rule_of(k->z);

    v[0] = v[1] = v[2] = 0;
    if (ej == NULL || ek == NULL)
        return;
    const double root_u = sqrt(ej->u * ek->u), root_v = sqrt(ej->v * ek->v);
    const double barrier = root_v / ((j->neighbours - 1) * (k->neighbours - 1));
    const bool mixed = (j->valence == 3 && k->valence == 4) || (j->valence == 4 && k->valence == 3);
    if (bond->aromatic) {
        v[1] = (mixed ? 3.0 : 6.0) * (!j->lone_pair && !k->lone_pair ? 0.5 : 0.3) * root_u;
    } else if (bond->order == 2) {
        v[1] = 6.0 * (j->multiple == 2 && k->multiple == 2 ? 1.0 : 0.4) * root_u;
    } else if (j->neighbours == 4 || k->neighbours == 4) {
        if ((j->neighbours == 4 || !barrier_free(j)) && (k->neighbours == 4 || !barrier_free(k)))
            v[2] = barrier;
    } else if (!conjugated(v, j, k, root_u)) {
        if (ej->w > 0 && ek->w > 0)
            v[1] = -sqrt(ej->w * ek->w);
        else
            v[2] = barrier;
    }
}

bool ch_rule_torsion(double v[3], const ch_mmff *p, bool mmff94s, int ring, const ch_bond_sight *const bond[3], const int type[4])
{
    const bool single = bond[1]->order == 1 && !bond[1]->aromatic;
    const bool has_alkyl = type[0] == 1 || type[1] == 1 || type[2] == 1 || type[3] == 1;
    int class = bond[1]->class;
    const double *row = NULL;

    if (class == 0 && single && (bond[0]->class == 1 || bond[2]->class == 1))
        class = 2;
    if (ring == 4)
        class = 4;
    else if (ring == 5 && has_alkyl && class == 0)
        row = torsion_row(p, mmff94s, 5, type);
    if (row == NULL)
        row = torsion_row(p, mmff94s, class, type);
    if (row != NULL)
        memcpy(v, row, 3 * sizeof *v);
    else
        torsion_by_rule(v, sight(p, type[1]), sight(p, type[2]), bond[1]);
    return v[0] != 0 || v[1] != 0 || v[2] != 0;
}
