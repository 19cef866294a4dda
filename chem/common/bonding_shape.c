/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only (the worker and its test use it) */
/* Which atoms are connected according to their positions, and whether bond orders agree with lengths and angles. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "chem/common/bonding.h"

typedef struct pair {
    double excess; /* distance minus radii, Angstrom */
    int32_t a, b;
} pair;

/* Maximum distance of neighbours beyond the sum of their radii. Distances across a four-membered ring with sulfur come close to a bond. */
static const double tolerance = 0.45, tolerance_large = 0.3;
/* Minimum distance beyond the radii of atoms that are neither connected nor have a common neighbour. Of 2,500 molecules of QM9 and those of
 * minidrugbank none is below 0.9, of 761 of the MMFF94 validation none below 0.88, of 1,000 ligands of the PDB the three below 0.65 are wrong. */
static const double loose = 0.6;
static const double loose_ions =
    1.0; /* the same between two charged parts: contacts in salts are longer, including hydrogen bonds */
static const double bent_below = 125;       /* degrees; QM9 has 139 and benzyne 127, rings of six without hydrogens 120 somewhere */
static const double nearest_distance = 0.4; /* closer atoms are duplicates of one atom */

/* clang-format off */
/* Covalent radii in picometres. crystal: Cordero et al., Dalton Trans. 2008, 2832. Then those of single, double and triple bonds:
 * Pyykko and Atsumi, Chem. Eur. J. 15 (2009) 186 and 12770. */
static const struct { uint8_t z, crystal, order[3]; } radii[] = {
    { 1, 31, { 32, 32, 32 } },     { 2, 28, { 46, 46, 46 } },     { 5, 84, { 85, 78, 73 } },     { 6, 76, { 75, 67, 60 } },
    { 7, 71, { 71, 60, 54 } },     { 8, 66, { 63, 57, 53 } },     { 9, 57, { 64, 59, 53 } },     { 10, 58, { 67, 96, 96 } },
    { 14, 111, { 116, 107, 102 } }, { 15, 107, { 111, 102, 94 } }, { 16, 105, { 103, 94, 95 } },  { 17, 102, { 99, 95, 93 } },
    { 18, 106, { 96, 107, 96 } },  { 32, 120, { 121, 111, 114 } }, { 33, 119, { 121, 114, 106 } }, { 34, 120, { 116, 107, 107 } },
    { 35, 120, { 114, 109, 110 } }, { 36, 116, { 117, 121, 108 } }, { 52, 138, { 136, 128, 121 } }, { 53, 139, { 133, 129, 125 } },
    { 54, 140, { 131, 135, 122 } },
};
/* clang-format on */

static size_t row_of(int z)
{
    size_t i = 0;

    while (i + 1 < sizeof radii / sizeof *radii && radii[i].z != z)
        i++;
    return i;
}

/* Length of a single bond of the pair: 0.01 times the sum of the crystal radii, Angstrom. */
static double single_length(int z, int other) { return 0.01 * (radii[row_of(z)].crystal + radii[row_of(other)].crystal); }

static double distance(const double p[3], const double q[3])
{
    const double x = p[0] - q[0], y = p[1] - q[1], z = p[2] - q[2];

    return sqrt(x * x + y * y + z * z);
}

double ch_bonding_stretch(const ch_skeleton *s, int32_t bond, int order)
{
    const int32_t a = s->bond[bond][0], b = s->bond[bond][1];
    const int sum = radii[row_of(s->z[a])].order[order - 1] + radii[row_of(s->z[b])].order[order - 1];

    return distance(s->xyz[a], s->xyz[b]) - 0.01 * sum;
}

double ch_bonding_excess(int z, int other, double length)
{
    const bool known = radii[row_of(z)].z == z && radii[row_of(other)].z == other;

    return known ? length - single_length(z, other) : -1;
}

/* ---- connections ---- */

static int nearest_first(const void *x, const void *y)
{
    const pair *p = x, *q = y;

    if (p->excess != q->excess)
        return p->excess < q->excess ? -1 : 1;
    if (p->a != q->a)
        return p->a < q->a ? -1 : 1;
    return (p->b > q->b) - (p->b < q->b);
}

typedef struct pairs {
    pair *at;
    int32_t n, cap;
} pairs;

static bool add_pair(pairs *p, pair new)
{
    if (p->n == p->cap) {
        pair *grown = p->cap < 1 << 28 ? realloc(p->at, 2 * (size_t)p->cap * sizeof *grown) : NULL;
        if (grown == NULL)
            return false;
        p->at = grown;
        p->cap *= 2;
    }
    p->at[p->n++] = new;
    return true;
}

static bool find_pairs(pairs *out, int32_t n, const uint8_t *z, const double (*xyz)[3])
{
    for (int32_t a = 0; a < n; a++) {
        for (int32_t b = 0; b < a; b++) {
            const double max = z[a] < 10 && z[b] < 10 ? tolerance : tolerance_large;
            const double d = distance(xyz[a], xyz[b]), excess = d - single_length(z[a], z[b]);
            if (d >= nearest_distance && excess <= max && !add_pair(out, (pair){ excess, b, a }))
                return false;
        }
    }
    return true;
}

ch_bonding ch_bonding_connect(int32_t n_atoms, const uint8_t *z, const double (*xyz)[3], int32_t (*bond)[2], int32_t *n_bonds)
{
    pairs p = { .cap = 256 };
    int *room = malloc(((size_t)n_atoms + 1) * sizeof *room);
    ch_bonding end = CH_BONDING_OK;

    *n_bonds = 0;
    for (int32_t a = 0; room != NULL && a < n_atoms; a++) {
        room[a] = ch_bonding_valence(z[a]);
        end = room[a] < 0 ? CH_BONDING_ELEMENT : end;
    }
    p.at = malloc((size_t)p.cap * sizeof *p.at);
    if (p.at == NULL || room == NULL || (end == CH_BONDING_OK && !find_pairs(&p, n_atoms, z, xyz)))
        end = CH_BONDING_MEMORY;
    if (end == CH_BONDING_OK)
        qsort(p.at, (size_t)p.n, sizeof *p.at, nearest_first);
    for (int32_t i = 0; end == CH_BONDING_OK && i < p.n; i++) {
        const int32_t a = p.at[i].a, b = p.at[i].b;
        if (room[a] < 1 || room[b] < 1)
            continue;
        room[a]--;
        room[b]--;
        bond[*n_bonds][0] = a;
        bond[(*n_bonds)++][1] = b;
    }
    free(p.at);
    free(room);
    return end;
}

/* ---- do the bonds fit the positions? ---- */

static double angle(const double at[3], const double p[3], const double q[3])
{
    double dot = 0;

    for (int k = 0; k < 3; k++)
        dot += (p[k] - at[k]) * (q[k] - at[k]);
    dot /= distance(p, at) * distance(q, at);
    return acos(fmax(-1, fmin(1, dot))) * 180 / acos(-1);
}

/* For a carbon with two neighbours: the last two bonds found. */
typedef struct ends {
    int32_t n, at[2];
} ends;

static void add_end(ends *e, int32_t atom)
{
    if (e->n < 2)
        e->at[e->n] = atom;
    e->n++;
}

/* reached[] becomes 1 for `a`, 2 for its neighbours, 3 for theirs, 0 for the others. */
static void mark_near(const ch_skeleton *s, int32_t a, uint8_t *reached)
{
    memset(reached, 0, (size_t)s->n_atoms);
    reached[a] = 1;
    for (uint8_t far = 1; far < 3; far++)
        for (int32_t b = 0; b < s->n_bonds; b++)
            for (int e = 0; e < 2; e++)
                if (reached[s->bond[b][e]] == far && reached[s->bond[b][!e]] == 0)
                    reached[s->bond[b][!e]] = (uint8_t)(far + 1);
}

/* Connected atoms get the same number; q[number] becomes the charge of the part. */
static void mark_parts(const ch_skeleton *s, const int8_t *formal, int32_t *part, int32_t *q)
{
    bool changed = true;

    for (int32_t a = 0; a < s->n_atoms; a++)
        part[a] = a;
    while (changed) {
        changed = false;
        for (int32_t b = 0; b < s->n_bonds; b++)
            for (int e = 0; e < 2; e++)
                if (part[s->bond[b][e]] > part[s->bond[b][!e]]) {
                    part[s->bond[b][e]] = part[s->bond[b][!e]];
                    changed = true;
                }
    }
    for (int32_t a = 0; a < s->n_atoms; a++)
        q[part[a]] += formal[a];
}

/* Exceptions: hydrogens form hydrogen bonds to other molecules, and metal ions have no bonds. */
static bool may_be_loose(int z) { return z != 1 && ch_bonding_valence(z) > 0; }

static bool is_loose(const ch_skeleton *s, int32_t a, int32_t b, const int32_t *part, const int32_t *q)
{
    const bool ions = part[a] != part[b] && q[part[a]] != 0 && q[part[b]] != 0;
    const double min = single_length(s->z[a], s->z[b]) + (ions ? loose_ions : loose);

    return may_be_loose(s->z[a]) && may_be_loose(s->z[b]) && distance(s->xyz[a], s->xyz[b]) < min;
}

static ch_bonding find_loose(const ch_skeleton *s, const int8_t *formal, int32_t where[2])
{
    const size_t n = (size_t)s->n_atoms + 1;
    uint8_t *reached = malloc(n);
    int32_t *part = calloc(2 * n, sizeof *part), *q = part != NULL ? part + n : NULL;
    ch_bonding end = reached != NULL && part != NULL ? CH_BONDING_OK : CH_BONDING_MEMORY;

    if (end == CH_BONDING_OK)
        mark_parts(s, formal, part, q);
    for (int32_t a = 0; a < s->n_atoms && end == CH_BONDING_OK; a++) {
        mark_near(s, a, reached);
        for (int32_t b = 0; b < a && end == CH_BONDING_OK; b++) {
            where[0] = b;
            where[1] = a;
            if (reached[b] == 0 && is_loose(s, a, b, part, q))
                end = CH_BONDING_LOOSE;
        }
    }
    free(part);
    free(reached);
    return end;
}

ch_bonding ch_bonding_check(const ch_skeleton *s, const uint8_t *order, const int8_t *formal, int32_t where[2])
{
    ends *of = calloc((size_t)s->n_atoms + 1, sizeof *of);
    ch_bonding end = of != NULL ? CH_BONDING_OK : CH_BONDING_MEMORY;

    for (int32_t b = 0; b < s->n_bonds && end == CH_BONDING_OK; b++) {
        add_end(&of[s->bond[b][0]], s->bond[b][1]);
        add_end(&of[s->bond[b][1]], s->bond[b][0]);
        const int32_t p = where[0] = s->bond[b][0], q = where[1] = s->bond[b][1];
        if (order[b] > 1 && !(distance(s->xyz[p], s->xyz[q]) <= single_length(s->z[p], s->z[q])))
            end = CH_BONDING_LONG;
    }
    for (int32_t a = 0; a < s->n_atoms && end == CH_BONDING_OK; a++) {
        where[0] = where[1] = a;
        if (s->z[a] == 6 && formal[a] == 0 && of[a].n == 2 && s->unpaired == 0 &&
            !(angle(s->xyz[a], s->xyz[of[a].at[0]], s->xyz[of[a].at[1]]) >= bent_below))
            end = CH_BONDING_BENT;
    }
    free(of);
    return end == CH_BONDING_OK ? find_loose(s, formal, where) : end;
}
