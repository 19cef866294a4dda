/* SPDX-License-Identifier: Apache-2.0 */
/* What an atom's bonds say: donors, acceptors, rotatable bonds, amides, polar surface. */
#include "chem/features/parts.h"

/* ---- neighbours ---- */

/* Number of aliphatic neighbours of element z by bonds of this type. */
static int32_t count_of(const ch_shape *s, int32_t i, int type, int z)
{
    int32_t n = 0;

    for (int32_t k = s->row[i]; k < s->row[i + 1]; k++)
        n += s->link[k].type == type && s->z[s->link[k].to] == z && !s->aromatic[s->link[k].to];
    return n;
}

/* Whether atom i has a double bond to aliphatic N, O, S or, if `or_p`, P; outside rings, if `outside`. */
static bool has_double(const ch_shape *s, const ch_rings *rings, int32_t i, bool or_p, bool outside)
{
    for (int32_t k = s->row[i]; k < s->row[i + 1]; k++) {
        const ch_link to = s->link[k];
        const int z = s->z[to.to];
        if (to.type == CH_PAIR_DOUBLE && !s->aromatic[to.to] && (z == 7 || z == 8 || z == 16 || (or_p && z == 15)) &&
            !(outside && rings->bond_inside[to.bond]))
            return true;
    }
    return false;
}

/* ---- donors and acceptors ---- */

static bool is_donor(const ch_shape *s, int32_t i)
{
    const int32_t h = s->hydrogens[i], q = s->charge[i];

    if (s->z[i] == 7 && !s->aromatic[i])
        return h > 0 && (s->valence[i] == 3 || (q == 1 && s->valence[i] == 4));
    if (s->z[i] == 7 || ((s->z[i] == 8 || s->z[i] == 16) && !s->aromatic[i]))
        return h == 1 && q == 0;
    return false;
}

/* O and S with hydrogen, other than of acids: a single bond to an atom without a double bond to N, O, P or S. */
static bool is_free_hydroxyl(const ch_shape *s, const ch_rings *rings, int32_t i)
{
    for (int32_t k = s->row[i]; k < s->row[i + 1]; k++)
        if (s->link[k].type == CH_PAIR_SINGLE && !has_double(s, rings, s->link[k].to, true, false))
            return true;
    return false;
}

/* Nitrogen whose lone pair no neighbouring double bond takes. */
static bool is_free_amine(const ch_shape *s, const ch_rings *rings, int32_t i)
{
    for (int32_t k = s->row[i]; k < s->row[i + 1]; k++)
        if (s->link[k].type == CH_PAIR_SINGLE && has_double(s, rings, s->link[k].to, true, true))
            return false;
    return true;
}

static bool is_acceptor(const ch_shape *s, const ch_rings *rings, int32_t i)
{
    const int32_t h = s->hydrogens[i], v = s->valence[i];
    const bool chalcogen = s->z[i] == 8 || s->z[i] == 16;

    if (s->aromatic[i])
        return s->charge[i] == 0 && (chalcogen || (s->z[i] == 7 && h == 0 && ch_shape_connections(s, i) == 2));
    if (chalcogen)
        return s->charge[i] == -1 || (v == 2 && (h == 0 || (h == 1 && is_free_hydroxyl(s, rings, i))));
    return s->z[i] == 7 && v == 3 && is_free_amine(s, rings, i);
}

/* ---- rotatable bonds ---- */

static int32_t methyls(const ch_shape *s, int32_t i)
{
    int32_t n = 0;

    for (int32_t k = s->row[i]; k < s->row[i + 1]; k++) {
        const int32_t j = s->link[k].to;
        n += s->link[k].type == CH_PAIR_SINGLE && s->z[j] == 6 && s->hydrogens[j] == 3 && !s->aromatic[j];
    }
    return n;
}

/* Turning this end changes nothing: one neighbour, a triple bond, CF3 and its like, tert-butyl. */
static bool is_dead_end(const ch_shape *s, int32_t i)
{
    if (ch_shape_degree(s, i) == 1)
        return true;
    for (int32_t k = s->row[i]; k < s->row[i + 1]; k++)
        if (s->link[k].type == CH_PAIR_TRIPLE)
            return true;
    if (s->z[i] != 6 || s->aromatic[i])
        return false;
    return count_of(s, i, CH_PAIR_SINGLE, 9) >= 3 || count_of(s, i, CH_PAIR_SINGLE, 17) >= 3 ||
           count_of(s, i, CH_PAIR_SINGLE, 35) >= 3 || methyls(s, i) >= 3 || s->hydrogens[i] == 3;
}

/* Carbon with three heavy neighbours, one of them by a double bond to N, O or S. */
static bool is_acyl(const ch_shape *s, const ch_rings *rings, int32_t i)
{
    return s->z[i] == 6 && !s->aromatic[i] && ch_shape_degree(s, i) == 3 && has_double(s, rings, i, false, false);
}

/* N, or aliphatic O or S, that joins others. */
static bool is_partner(const ch_shape *s, int32_t i)
{
    if (s->z[i] == 7 || (s->z[i] == 8 && !s->aromatic[i]))
        return true;
    return s->z[i] == 16 && !s->aromatic[i] && ch_shape_degree(s, i) != 1;
}

/* One end of the bond between an acyl carbon and its N, O or S, outside rings. */
static bool is_of_amide(const ch_shape *s, const ch_rings *rings, int32_t i)
{
    const bool acyl = is_acyl(s, rings, i), partner = is_partner(s, i);

    for (int32_t k = s->row[i]; (acyl || partner) && k < s->row[i + 1]; k++) {
        const ch_link to = s->link[k];
        if (to.type == CH_PAIR_SINGLE && !rings->bond_inside[to.bond] &&
            ((acyl && is_partner(s, to.to)) || (partner && is_acyl(s, rings, to.to))))
            return true;
    }
    return false;
}

static bool is_rotor(const ch_shape *s, const ch_rings *rings, int32_t b)
{
    const int32_t i = s->bond[b][0], j = s->bond[b][1];

    if ((s->type[b] != CH_PAIR_SINGLE && s->type[b] != CH_PAIR_AROMATIC) || rings->bond_inside[b])
        return false;
    if (is_dead_end(s, i) || is_dead_end(s, j))
        return false;
    return !is_of_amide(s, rings, i) || !is_of_amide(s, rings, j);
}

/* ---- amides ---- */

/* Carbon with =O: its single bonds to N. */
static int32_t amides_of(const ch_shape *s, const ch_rings *rings, int32_t i)
{
    int32_t oxo = 0;

    if (s->z[i] != 6 || s->aromatic[i])
        return 0;
    for (int32_t k = s->row[i]; k < s->row[i + 1]; k++)
        oxo += s->link[k].type == CH_PAIR_DOUBLE && s->z[s->link[k].to] == 8 && !rings->bond_inside[s->link[k].bond];
    return oxo * count_of(s, i, CH_PAIR_SINGLE, 7);
}

/* ---- polar surface (Ertl, Rohde, Selzer, J. Med. Chem. 2000, 43, 3714) ---- */

/* Surroundings of N or O: element, heavy neighbours, hydrogens, charge, bonds to heavy atoms of each kind, in a ring of three
 * (2: either), and the area in 0.01 Angstrom^2. */
typedef struct polar {
    int z, degree, hydrogens, charge, bonds[4], three, area;
} polar;

/* clang-format off */
static const polar polars[] = {
    { 7, 1, 0, 0, { 0, 0, 1, 0 }, 2, 2379 }, { 7, 1, 1, 0, { 0, 1, 0, 0 }, 2, 2385 }, { 7, 1, 2, 0, { 1, 0, 0, 0 }, 2, 2602 },
    { 7, 1, 2, 1, { 0, 1, 0, 0 }, 2, 2559 }, { 7, 1, 3, 1, { 1, 0, 0, 0 }, 2, 2764 },
    { 7, 2, 0, 0, { 1, 1, 0, 0 }, 2, 1236 }, { 7, 2, 0, 0, { 0, 1, 1, 0 }, 2, 1360 }, { 7, 2, 1, 0, { 2, 0, 0, 0 }, 1, 2194 },
    { 7, 2, 1, 0, { 2, 0, 0, 0 }, 0, 1203 }, { 7, 2, 0, 1, { 1, 0, 1, 0 }, 2, 436 },  { 7, 2, 1, 1, { 1, 1, 0, 0 }, 2, 1397 },
    { 7, 2, 2, 1, { 2, 0, 0, 0 }, 2, 1661 }, { 7, 2, 0, 0, { 0, 0, 0, 2 }, 2, 1289 }, { 7, 2, 1, 0, { 0, 0, 0, 2 }, 2, 1579 },
    { 7, 2, 1, 1, { 0, 0, 0, 2 }, 2, 1414 },
    { 7, 3, 0, 0, { 3, 0, 0, 0 }, 1, 301 },  { 7, 3, 0, 0, { 3, 0, 0, 0 }, 0, 324 },  { 7, 3, 0, 0, { 1, 2, 0, 0 }, 2, 1168 },
    { 7, 3, 0, 1, { 2, 1, 0, 0 }, 2, 301 },  { 7, 3, 1, 1, { 3, 0, 0, 0 }, 2, 444 },  { 7, 3, 0, 0, { 0, 0, 0, 3 }, 2, 441 },
    { 7, 3, 0, 0, { 1, 0, 0, 2 }, 2, 493 },  { 7, 3, 0, 0, { 0, 1, 0, 2 }, 2, 839 },  { 7, 3, 0, 1, { 0, 0, 0, 3 }, 2, 410 },
    { 7, 3, 0, 1, { 1, 0, 0, 2 }, 2, 388 },
    { 7, 4, 0, 1, { 4, 0, 0, 0 }, 2, 0 },
    { 8, 1, 0, 0, { 0, 1, 0, 0 }, 2, 1707 }, { 8, 1, 1, 0, { 1, 0, 0, 0 }, 2, 2023 }, { 8, 1, 0, -1, { 1, 0, 0, 0 }, 2, 2306 },
    { 8, 2, 0, 0, { 2, 0, 0, 0 }, 1, 1253 }, { 8, 2, 0, 0, { 2, 0, 0, 0 }, 0, 923 },  { 8, 2, 0, 0, { 0, 0, 0, 2 }, 2, 1314 },
};
/* clang-format on */

static bool are_bonded(const ch_shape *s, int32_t i, int32_t j)
{
    for (int32_t k = s->row[i]; k < s->row[i + 1]; k++)
        if (s->link[k].to == j)
            return true;
    return false;
}

static bool is_in_three(const ch_shape *s, int32_t i)
{
    for (int32_t k = s->row[i]; k < s->row[i + 1]; k++)
        for (int32_t m = s->row[i]; m < k; m++)
            if (are_bonded(s, s->link[k].to, s->link[m].to))
                return true;
    return false;
}

static bool fits(const polar *p, const ch_shape *s, int32_t i, const int32_t bonds[4])
{
    if (p->z != s->z[i] || p->degree != ch_shape_degree(s, i) || p->hydrogens != s->hydrogens[i] || p->charge != s->charge[i])
        return false;
    for (int k = 0; k < 4; k++)
        if (p->bonds[k] != bonds[k])
            return false;
    return p->three == 2 || p->three == is_in_three(s, i);
}

/* Others by the fit that the paper gives for them. */
static int32_t polar_area(const ch_shape *s, int32_t i)
{
    int32_t bonds[4] = { 0 }, area;

    if (s->z[i] != 7 && s->z[i] != 8)
        return 0;
    for (int32_t k = s->row[i]; k < s->row[i + 1]; k++)
        bonds[s->link[k].type]++;
    for (size_t k = 0; k < sizeof polars / sizeof *polars; k++)
        if (fits(&polars[k], s, i, bonds))
            return polars[k].area;
    area = s->z[i] == 7 ? 3050 - 820 * ch_shape_degree(s, i) : 2850 - 860 * ch_shape_degree(s, i);
    area += 150 * s->hydrogens[i];
    return area > 0 ? area : 0;
}

double ch_polar_surface(const ch_shape *s)
{
    int64_t area = 0;

    for (int32_t i = 0; i < s->n; i++)
        area += polar_area(s, i);
    return (double)area * 0.01;
}

void ch_features_bonding(double *out, const ch_shape *s, const ch_rings *rings)
{
    for (int32_t i = 0; i < s->n; i++) {
        out[CH_F_donors] += is_donor(s, i);
        out[CH_F_acceptors] += is_acceptor(s, rings, i);
        out[CH_F_amides] += amides_of(s, rings, i);
    }
    out[CH_F_tpsa] = ch_polar_surface(s);
    for (int32_t b = 0; b < s->n_bonds; b++)
        out[CH_F_rotors] += is_rotor(s, rings, b);
}
