/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a pose is the molecule that the program got. A program turns bonds and moves atoms a little; it keeps lengths and angles, and
 * the sides of what cannot turn: centres, double bonds, allenes. Comparisons are written so that NaN fails. */
#include <math.h>
#include <string.h>

#include "chem/molecule/element.h"
#include "stages/steps/external/external_parts.h"

/* Share of a length that may change. From MMFF94 to UFF it is 16 % at worst, of atoms with a common neighbour 19 %; two atoms in each
 * other's place differ by 60 % (C-H 1.1, C..H 2.1). */
static const double CHANGE = 0.25;
static const double FLAT = 0.2;     /* volume of three unit vectors; 0.77 at sp3                         */
static const double TURNED = 0.5;   /* cosine or sine of a torsion that has a side                       */
static const double STRAIGHT = 0.3; /* sine of an angle, below which its atoms lie on a line             */

enum { NEAR_MAX = 4 };

typedef struct links {
    const ch_mol *mol, *pose;
    int32_t (*to)[NEAR_MAX]; /* [n_atoms] the first neighbours */
    bool (*twofold)[NEAR_MAX];
    int32_t *n; /* [n_atoms] all neighbours */
    char *why;
} links;

static bool links_make(links *l, pl_arena *mem)
{
    const ch_mol *mol = l->mol;

    l->to = pl_arena_get(mem, (size_t)mol->n_atoms + 1, sizeof *l->to);
    l->twofold = pl_arena_get(mem, (size_t)mol->n_atoms + 1, sizeof *l->twofold);
    l->n = PL_NEW(mem, int32_t, mol->n_atoms + 1);
    if (l->to == NULL || l->twofold == NULL || l->n == NULL)
        return false;
    for (int32_t b = 0; b < mol->n_bonds; b++)
        for (int end = 0; end < 2; end++) {
            const int32_t i = mol->bond[b][end], k = l->n[i]++;
            if (k < NEAR_MAX) {
                l->to[i][k] = mol->bond[b][1 - end];
                l->twofold[i][k] = mol->order[b] == CH_DOUBLE;
            }
        }
    return true;
}

/* ---- vectors ---- */

static double dot(const double a[3], const double b[3]) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

static double between(double out[3], const ch_mol *mol, int32_t from, int32_t to)
{
    for (int k = 0; k < 3; k++)
        out[k] = (double)mol->xyz[to][k] - (double)mol->xyz[from][k];
    return sqrt(dot(out, out));
}

/* The direction from one atom to another; 0 if they are in one place. */
static void direction(double out[3], const ch_mol *mol, int32_t from, int32_t to)
{
    const double length = between(out, mol, from, to);

    for (int k = 0; k < 3; k++)
        out[k] /= length > 0 ? length : 1;
}

static double volume_of(const double a[3], const double b[3], const double c[3])
{
    return a[0] * (b[1] * c[2] - b[2] * c[1]) + a[1] * (b[2] * c[0] - b[0] * c[2]) + a[2] * (b[0] * c[1] - b[1] * c[0]);
}

/* ---- lengths and angles ---- */

static bool keeps_distance(const links *l, int32_t i, int32_t k, const char *what)
{
    double d[3];
    const double was = between(d, l->mol, i, k), is = between(d, l->pose, i, k);

    if (fabs(is - was) <= CHANGE * was)
        return true;
    (void)snprintf(l->why, ST_POSE_WHY, "atoms %d (%s) and %d (%s), %s, are %.2f A apart, and were %.2f", (int)i + 1,
                   ch_element_symbol(l->mol->z[i]), (int)k + 1, ch_element_symbol(l->mol->z[k]), what, is, was);
    return false;
}

static bool keeps_lengths(const links *l)
{
    for (int32_t b = 0; b < l->mol->n_bonds; b++)
        if (!keeps_distance(l, l->mol->bond[b][0], l->mol->bond[b][1], "which are bonded"))
            return false;
    return true;
}

/* Around a metal angles may be anything. */
static bool keeps_angles(const links *l, int32_t i)
{
    for (int32_t k = 0; k < l->n[i] && l->n[i] <= NEAR_MAX; k++)
        for (int32_t m = 0; m < k; m++)
            if (!keeps_distance(l, l->to[i][m], l->to[i][k], "which have a neighbour in common"))
                return false;
    return true;
}

/* ---- centres ---- */

static int32_t n_heavy(const links *l, int32_t i)
{
    int32_t n = 0;

    for (int32_t k = 0; k < l->n[i] && k < NEAR_MAX; k++)
        n += l->mol->z[l->to[i][k]] != 1;
    return n;
}

static int mass(const ch_mol *mol, int32_t i) { return mol->isotope != NULL ? mol->isotope[i] : 0; }

static int mass_around(const links *l, int32_t i)
{
    int sum = 0;

    for (int32_t k = 0; k < l->n[i] && k < NEAR_MAX; k++)
        sum += l->mol->z[l->to[i][k]] == 1 ? mass(l->mol, l->to[i][k]) : 0;
    return sum;
}

/* Two ends of the molecule that are alike, such as two hydrogens or methyls: in each other's place they are the same molecule. */
static bool are_twins(const links *l, int32_t i, int32_t k)
{
    const ch_mol *mol = l->mol;

    return mol->z[i] == mol->z[k] && mass(mol, i) == mass(mol, k) && l->n[i] == l->n[k] && l->n[i] <= NEAR_MAX &&
           n_heavy(l, i) <= 1 && n_heavy(l, k) <= 1 && mass_around(l, i) == mass_around(l, k);
}

static bool has_twins(const links *l, int32_t i)
{
    for (int32_t k = 0; k < l->n[i] && k < NEAR_MAX; k++)
        for (int32_t m = 0; m < k; m++)
            if (are_twins(l, l->to[i][m], l->to[i][k]))
                return true;
    return false;
}

/* Four neighbours, or three and a lone pair at sulfur, phosphorus and heavier elements; nitrogen with hydrogen turns inside out. */
static bool keeps_sides(const links *l, int32_t i)
{
    const bool three = l->n[i] == 3 && l->mol->z[i] >= 14, four = l->n[i] == 4;

    return (three || four) && !has_twins(l, i) && !(l->mol->z[i] == 7 && n_heavy(l, i) < 4);
}

static double volume(const ch_mol *mol, int32_t centre, const int32_t *to, int without)
{
    double side[3][3];

    for (int k = 0, n = 0; n < 3; k++)
        if (k != without)
            direction(side[n++], mol, centre, to[k]);
    return volume_of(side[0], side[1], side[2]);
}

static bool keeps_centre(const links *l, int32_t i)
{
    if (!keeps_sides(l, i))
        return true;
    for (int without = l->n[i] == 3 ? 3 : 0; without < NEAR_MAX; without++) {
        const double was = volume(l->mol, i, l->to[i], without), is = volume(l->pose, i, l->to[i], without);
        if (fabs(was) < FLAT || was * is > 0)
            continue;
        (void)snprintf(l->why, ST_POSE_WHY, "the centre at atom %d (%s) is not as it was: another stereoisomer", (int)i + 1,
                       ch_element_symbol(l->mol->z[i]));
        return false;
    }
    return true;
}

/* ---- double bonds and allenes ---- */

/* A neighbour that is no hydrogen, beside `but`, at an end of a double bond whose two places differ; -1: there is none. */
static int32_t side_of(const links *l, int32_t i, int32_t but)
{
    const uint8_t z = l->mol->z[i];

    if ((z != 6 && z != 7) || l->n[i] > 3 || has_twins(l, i))
        return -1;
    for (int32_t k = 0; k < l->n[i]; k++)
        if (l->to[i][k] != but && !l->twofold[i][k] && l->mol->z[l->to[i][k]] != 1)
            return l->to[i][k];
    return -1;
}

/* What of the direction from i to k is across the axis; false: nearly nothing. */
static bool across(double out[3], const ch_mol *mol, int32_t i, int32_t k, const double axis[3])
{
    double length, along;

    direction(out, mol, i, k);
    along = dot(out, axis);
    for (int j = 0; j < 3; j++)
        out[j] -= along * axis[j];
    length = sqrt(dot(out, out));
    for (int j = 0; j < 3; j++)
        out[j] /= length > 0 ? length : 1;
    return length > STRAIGHT;
}

/* Cosine, or sine, of the torsion at[0] to at[3]; 0 if three of the atoms lie on a line. */
static double torsion(const ch_mol *mol, const int32_t at[4], bool sine)
{
    double axis[3], a[3], b[3];

    direction(axis, mol, at[1], at[2]);
    if (!across(a, mol, at[1], at[0], axis) || !across(b, mol, at[2], at[3], axis))
        return 0;
    return sine ? volume_of(axis, a, b) : dot(a, b);
}

/* What cannot turn, from atom i to atom k, has the same side as before. */
static bool keeps_torsion(const links *l, int32_t i, int32_t i_but, int32_t k, int32_t k_but, const char *what)
{
    const int32_t at[] = { side_of(l, i, i_but), i, k, side_of(l, k, k_but) };
    const bool sine = i_but != k;
    double was;

    if (at[0] < 0 || at[3] < 0)
        return true;
    was = torsion(l->mol, at, sine);
    if (fabs(was) < TURNED || was * torsion(l->pose, at, sine) > 0)
        return true;
    (void)snprintf(l->why, ST_POSE_WHY, "the %s of atoms %d (%s) and %d (%s) is not as it was: another stereoisomer", what,
                   (int)i + 1, ch_element_symbol(l->mol->z[i]), (int)k + 1, ch_element_symbol(l->mol->z[k]));
    return false;
}

static bool keeps_double_bonds(const links *l)
{
    for (int32_t b = 0; b < l->mol->n_bonds; b++) {
        const int32_t *at = l->mol->bond[b];
        if (l->mol->order[b] == CH_DOUBLE && !keeps_torsion(l, at[0], at[1], at[1], at[0], "double bond"))
            return false;
    }
    return true;
}

static bool keeps_allene(const links *l, int32_t i)
{
    const int32_t *to = l->to[i];

    if (l->n[i] != 2 || !l->twofold[i][0] || !l->twofold[i][1] || l->mol->z[to[0]] != 6 || l->mol->z[to[1]] != 6)
        return true;
    return keeps_torsion(l, to[0], i, to[1], i, "allene");
}

bool st_ext_pose_check(const ch_mol *pose, const ch_mol *mol, bool *refused, char why[ST_POSE_WHY])
{
    pl_arena *mem = pl_arena_new(1 << 12);
    links l = { .mol = mol, .pose = pose, .why = why };
    bool good = mem != NULL && links_make(&l, mem);

    *refused = !good;
    good = good && keeps_lengths(&l) && keeps_double_bonds(&l);
    for (int32_t i = 0; i < mol->n_atoms && good; i++)
        good = keeps_centre(&l, i) && keeps_allene(&l, i);
    for (int32_t i = 0; i < mol->n_atoms && good; i++)
        good = keeps_angles(&l, i);
    pl_arena_free(mem);
    return good;
}
