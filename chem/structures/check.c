/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/structures/check.h"

#include <math.h>

static const double length_margin = 0.3, contact = 0.5, largest_height = 0.35; /* Angstrom; of R*; Angstrom */
static const double largest_turn = 50;                                         /* degrees */
static const double min_volume = 1, min_lone_pair_volume = 0.5;                /* cubic Angstrom */
static const double degrees = 57.29577951308232;
enum { MAX_DISC = 8 };

typedef struct point {
    double x, y, z;
} point;

static point at(const float (*xyz)[3], int32_t i) { return (point){ (double)xyz[i][0], (double)xyz[i][1], (double)xyz[i][2] }; }

static point minus(point a, point b) { return (point){ a.x - b.x, a.y - b.y, a.z - b.z }; }

static point cross(point a, point b) { return (point){ a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x }; }

static double inner(point a, point b) { return a.x * b.x + a.y * b.y + a.z * b.z; }

static double length(point a) { return sqrt(inner(a, a)); }

const char *ch_fault_text(enum ch_fault fault)
{
    static const char *const text[CH_N_FAULTS] = {
        "nothing is wrong",
        "a position is not finite",
        "a bond is too long or too short",
        "two atoms clash",
        "a stereocentre is inside out",
        "an axis of stereo is turned",
        "an atom lies outside its four neighbours",
        "a double bond is turned",
        "a flat ring is bent",
        "a bond passes through a ring",
    };

    return text[fault];
}

static double volume(const float (*xyz)[3], const int32_t *a)
{
    const point o = at(xyz, a[3]);

    return inner(minus(at(xyz, a[0]), o), cross(minus(at(xyz, a[1]), o), minus(at(xyz, a[2]), o)));
}

double ch_centre_volume(const float (*xyz)[3], const ch_centre *c) { return volume(xyz, c->neighbour); }

double ch_torsion_angle(const float (*xyz)[3], int32_t a, int32_t b, int32_t c, int32_t d)
{
    const point u = minus(at(xyz, b), at(xyz, a)), v = minus(at(xyz, c), at(xyz, b)), w = minus(at(xyz, d), at(xyz, c));
    const point m = cross(u, v), n = cross(v, w);

    return degrees * atan2(length(v) * inner(u, n), inner(m, n));
}

static ch_checked none(void) { return (ch_checked){ .fault = CH_NO_FAULT, .a = -1, .b = -1 }; }

static ch_checked finite_positions(const float (*xyz)[3], int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        if (!isfinite(xyz[i][0]) || !isfinite(xyz[i][1]) || !isfinite(xyz[i][2]))
            return (ch_checked){ CH_NOT_FINITE_POSITION, i, -1, 0 };
    return none();
}

static ch_checked lengths(const float (*xyz)[3], const ch_terms *t)
{
    for (int32_t k = 0; k < t->n_bonds; k++) {
        const ch_bond_term *b = &t->bonds[k];
        const double d = length(minus(at(xyz, b->i), at(xyz, b->j)));
        if (!(fabs(d - b->r0) <= length_margin))
            return (ch_checked){ CH_BOND_LENGTH, b->i, b->j, d };
    }
    return none();
}

static ch_checked clashes(const float (*xyz)[3], const ch_terms *t)
{
    for (int32_t k = 0; k < t->n_pairs; k++) {
        const ch_pair_term *p = &t->pairs[k];
        const double d = length(minus(at(xyz, p->i), at(xyz, p->j)));
        if (!(d >= contact * p->r_star))
            return (ch_checked){ CH_CLASH, p->i, p->j, d };
    }
    return none();
}

static ch_checked centres(const float (*xyz)[3], const ch_stereo *s)
{
    for (int32_t k = 0; k < s->n_centres; k++) {
        const ch_centre *c = &s->centres[k];
        const double v = ch_centre_volume(xyz, c);
        if (!(v * c->sign >= (c->neighbour[3] == c->atom ? min_lone_pair_volume : min_volume)))
            return (ch_checked){ CH_CENTRE, c->atom, -1, v };
    }
    for (int32_t k = 0; k < s->n_axes; k++) {
        const int32_t *a = s->axes[k].atom;
        const double v = volume(xyz, a);
        if (!(v >= min_volume))
            return (ch_checked){ CH_AXIS, a[0], a[2], v };
    }
    return none();
}

/* Small rings that share an atom may pull it out (bicyclobutane). */
static bool is_strained(const ch_cycles *c, int32_t i)
{
    int small = 0;

    for (const ch_cycle *r = c->cycle; r->size <= 4; r++)
        small += ch_cycle_place(r, i) >= 0;
    return small > 1;
}

/* Each face of the tetrahedron sees the atom on the side where it sees the fourth neighbour. */
static ch_checked tetrahedra(const float (*xyz)[3], const ch_cycles *c)
{
    for (int32_t i = 0; i < c->mol->n_atoms; i++) {
        const int32_t *a = c->neighbour + c->first[i];
        for (int k = 0; ch_cycles_degree(c, i) == 4 && k < 4; k++) {
            const point o = at(xyz, a[(k + 1) % 4]);
            const point n = cross(minus(at(xyz, a[(k + 2) % 4]), o), minus(at(xyz, a[(k + 3) % 4]), o));
            const double inside = inner(minus(at(xyz, i), o), n), other = inner(minus(at(xyz, a[k]), o), n);
            if (!(inside * other > 0) && !is_strained(c, i))
                return (ch_checked){ CH_NOT_WITHIN, i, a[k], inside };
        }
    }
    return none();
}

static ch_checked defined_bonds(const float (*xyz)[3], const ch_stereo *s)
{
    for (int32_t k = 0; k < s->n_double_bonds; k++) {
        const ch_double_bond *d = &s->double_bonds[k];
        const double turn = fabs(ch_torsion_angle(xyz, d->a, d->b, d->c, d->d));
        if (!((d->cis ? turn : 180 - turn) <= largest_turn))
            return (ch_checked){ CH_DOUBLE_BOND, d->b, d->c, turn };
    }
    return none();
}

/* A neighbour of i that is not j; -1: none. */
static int32_t neighbour_but(const ch_cycles *c, int32_t i, int32_t j)
{
    for (int32_t k = c->first[i]; k < c->first[i + 1]; k++)
        if (c->neighbour[k] != j)
            return c->neighbour[k];
    return -1;
}

static bool in_flat_ring(const ch_cycles *c, int32_t i, int32_t j)
{
    for (int32_t r = 0; r < c->n; r++)
        if (c->cycle[r].flat && ch_cycle_place(&c->cycle[r], i) >= 0 && ch_cycle_place(&c->cycle[r], j) >= 0)
            return true;
    return false;
}

/* C=C and C=N whose stereo is not defined must be flat, too; rings of eight and more may turn them,
 * and flat rings have a check of their own. */
static ch_checked other_bonds(const float (*xyz)[3], const ch_cycles *c)
{
    for (int32_t b = 0; b < c->mol->n_bonds; b++) {
        const int32_t i = c->mol->bond[b][0], j = c->mol->bond[b][1], p = neighbour_but(c, i, j), q = neighbour_but(c, j, i);
        if (c->mol->order[b] != CH_DOUBLE || !ch_cycles_is_trigonal(c, i) || !ch_cycles_is_trigonal(c, j) || p < 0 || q < 0 ||
            c->of_bond[b] >= MAX_DISC || in_flat_ring(c, i, j))
            continue;
        const double turn = fabs(ch_torsion_angle(xyz, p, i, j, q));
        if (!(fmin(turn, 180 - turn) <= largest_turn))
            return (ch_checked){ CH_DOUBLE_BOND, i, j, turn };
    }
    return none();
}

/* The centre of a ring and twice the vector of its area. */
static point ring_area(const float (*xyz)[3], const ch_cycle *r, point *middle)
{
    point area = { 0 };

    *middle = (point){ 0 };
    for (int32_t k = 0; k < r->size; k++) {
        const point p = at(xyz, r->atom[k]);
        middle->x += p.x / r->size, middle->y += p.y / r->size, middle->z += p.z / r->size;
    }
    for (int32_t k = 0; k < r->size; k++) {
        const point n = cross(minus(at(xyz, r->atom[k]), *middle), minus(at(xyz, r->atom[(k + 1) % r->size]), *middle));
        area.x += n.x, area.y += n.y, area.z += n.z;
    }
    return area;
}

static ch_checked flat_rings(const float (*xyz)[3], const ch_cycles *c)
{
    for (int32_t r = 0; r < c->n; r++) {
        point middle;
        const ch_cycle *ring = &c->cycle[r];
        const point area = ring_area(xyz, ring, &middle);
        for (int32_t k = 0; ring->flat && k < ring->size; k++) {
            const double height = inner(minus(at(xyz, ring->atom[k]), middle), area) / length(area);
            if (!(fabs(height) <= largest_height))
                return (ch_checked){ CH_NOT_FLAT, ring->atom[k], -1, height };
        }
    }
    return none();
}

/* Whether the segment from p to q meets the triangle a b c: p and q on two sides, and the line within all three edges. */
static bool crosses(point p, point q, point a, point b, point c)
{
    const point n = cross(minus(b, a), minus(c, a)), d = minus(q, p);
    const double from = inner(minus(p, a), n), to = inner(minus(q, a), n);
    const double u = inner(d, cross(minus(a, p), minus(b, p))), v = inner(d, cross(minus(b, p), minus(c, p)));
    const double w = inner(d, cross(minus(c, p), minus(a, p)));

    return from * to < 0 && ((u >= 0 && v >= 0 && w >= 0) || (u <= 0 && v <= 0 && w <= 0));
}

/* A ring as the places of its atoms. */
typedef struct loop {
    const int32_t *atom;
    int32_t size;
} loop;

static bool is_in_loop(loop r, int32_t atom)
{
    for (int32_t k = 0; k < r.size; k++)
        if (r.atom[k] == atom)
            return true;
    return false;
}

/* Whether a bond meets an odd number of the triangles between apex and the ring: a folded ring may be met twice from outside. */
static bool passes(const float (*xyz)[3], loop r, point apex, int32_t i, int32_t j)
{
    const point p = at(xyz, i), q = at(xyz, j);
    bool through = false;

    for (int32_t k = 0; k < r.size; k++)
        through ^= crosses(p, q, apex, at(xyz, r.atom[k]), at(xyz, r.atom[(k + 1) % r.size]));
    return through;
}

enum { MOST_NEXT = 4 };

/* Where a chain goes on from i: heavy neighbours other than `but` and outside the ring; -1 alone if there are none. */
static int next_outside(const ch_cycles *c, loop r, int32_t i, int32_t but, int32_t out[MOST_NEXT])
{
    int n = 0;

    for (int32_t k = c->first[i]; k < c->first[i + 1] && n < MOST_NEXT; k++)
        if (c->neighbour[k] != but && c->mol->z[c->neighbour[k]] > 1 && !is_in_loop(r, c->neighbour[k]))
            out[n++] = c->neighbour[k];
    if (n == 0)
        out[n++] = -1;
    return n;
}

/* Whether the path p-i-j-q passes most of the surfaces that the ring spans: the fans of triangles around each of its atoms. */
static bool path_passes(const float (*xyz)[3], loop r, const int32_t *path)
{
    int32_t n = 0;

    for (int32_t k = 0; k < r.size; k++) {
        bool through = false;
        for (int b = 0; b < 3; b++)
            if (path[b] >= 0 && path[b + 1] >= 0)
                through ^= passes(xyz, r, at(xyz, r.atom[k]), path[b], path[b + 1]);
        n += through;
    }
    return 2 * n > r.size;
}

/* A ring of more than 8 folds so much that a bond beside it may meet the triangles around its middle, and that a chain which passes through
 * meets some of its surfaces with the bond before or behind i-j. A hydrogen in the hole of a large ring is nothing wrong. */
static bool chain_passes(const float (*xyz)[3], const ch_cycles *c, loop r, int32_t i, int32_t j)
{
    int32_t before[MOST_NEXT], behind[MOST_NEXT];
    const int n = next_outside(c, r, i, j, before), m = next_outside(c, r, j, i, behind);
    bool through = false;

    if (c->mol->z[i] == 1 || c->mol->z[j] == 1)
        return false;
    for (int k = 0; k < n * m; k++)
        through = through || path_passes(xyz, r, (int32_t[]){ before[k / m], i, j, behind[k % m] });
    return through;
}

static ch_checked check_loop(const float (*xyz)[3], const ch_cycles *c, loop r)
{
    point middle = { 0 };
    double reach = 0;

    for (int32_t k = 0; k < r.size; k++) {
        const point p = at(xyz, r.atom[k]);
        middle.x += p.x / r.size, middle.y += p.y / r.size, middle.z += p.z / r.size;
    }
    for (int32_t k = 0; k < r.size; k++)
        reach = fmax(reach, length(minus(at(xyz, r.atom[k]), middle)));
    reach = fmax(reach, 2) + 2; /* the longest bond; Angstrom */
    for (int32_t b = 0; b < c->mol->n_bonds; b++) {
        const int32_t i = c->mol->bond[b][0], j = c->mol->bond[b][1];
        if (length(minus(at(xyz, i), middle)) < reach && !is_in_loop(r, i) && !is_in_loop(r, j) && passes(xyz, r, middle, i, j) &&
            (r.size <= MAX_DISC || chain_passes(xyz, c, r, i, j)))
            return (ch_checked){ CH_THROUGH_RING, i, j, 0 };
    }
    return none();
}

ch_checked ch_check_rings(const float (*xyz)[3], const ch_cycles *c)
{
    ch_checked found = none();

    for (int32_t r = 0; r < c->n && found.fault == CH_NO_FAULT; r++)
        found = check_loop(xyz, c, (loop){ c->cycle[r].atom, c->cycle[r].size });
    for (int32_t r = 0; r < c->n_large && found.fault == CH_NO_FAULT; r++)
        found = check_loop(xyz, c, (loop){ c->large[r].atom, c->large[r].size });
    return found;
}

ch_checked ch_check(const float (*xyz)[3], const ch_cycles *cycles, const ch_terms *terms, const ch_stereo *stereo)
{
    ch_checked r = finite_positions(xyz, cycles->mol->n_atoms);

    if (r.fault == CH_NO_FAULT)
        r = lengths(xyz, terms);
    if (r.fault == CH_NO_FAULT)
        r = clashes(xyz, terms);
    if (r.fault == CH_NO_FAULT)
        r = centres(xyz, stereo);
    if (r.fault == CH_NO_FAULT)
        r = tetrahedra(xyz, cycles);
    if (r.fault == CH_NO_FAULT)
        r = defined_bonds(xyz, stereo);
    if (r.fault == CH_NO_FAULT)
        r = other_bonds(xyz, cycles);
    if (r.fault == CH_NO_FAULT)
        r = flat_rings(xyz, cycles);
    if (r.fault == CH_NO_FAULT)
        r = ch_check_rings(xyz, cycles);
    return r;
}
