/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/structures/bounds.h"

#include <math.h>
#include <string.h>

static const float nowhere = 1000;                                                  /* Angstrom: no upper bound */
static const double bond_margin = 0.01, angle_margin = 0.04, torsion_margin = 0.06; /* Angstrom either way */
static const double plane_margin = 0.2;
/* A part of R* of the force field, whose minimum lies farther out than contact; by bonds between the atoms. */
static const double contact[7] = { 0, 0, 0, 0.5, 0.62, 0.72, 0.8 };
static const float chiral_volume = 3, lone_pair_volume = 1.5f, any_volume = 1000; /* cubic Angstrom, times 6 of the tetrahedron */
static const float flat_weight = 0.3f;

enum { FAR = 6 };

typedef struct builder {
    ch_bounds *b;
    const ch_cycles *c;
    const ch_terms *t;
    const ch_stereo *stereo;
    ch_ideal ideal;
    bool *turns;    /* [n_bonds] single bonds outside rings that nothing holds */
    uint8_t *apart; /* [n][n] bonds between two atoms, FAR: as many or more */
    int32_t slack;
} builder;

/* What is known of a torsion: between low and high degrees, 0 cis, 180 trans. */
typedef struct range {
    double low, high;
    bool stereo; /* defined: never gives way */
} range;

static void set(const builder *x, int32_t i, int32_t j, double low, double high)
{
    const size_t s = (size_t)x->b->stride;

    x->b->lower[(size_t)i * s + (size_t)j] = x->b->lower[(size_t)j * s + (size_t)i] = (float)fmax(low, 0);
    x->b->upper[(size_t)i * s + (size_t)j] = x->b->upper[(size_t)j * s + (size_t)i] = (float)high;
}

/* Two paths may lead from i to j: both hold; if they cannot, either. */
static void narrow(const builder *x, int32_t i, int32_t j, double low, double high)
{
    const size_t at = (size_t)i * (size_t)x->b->stride + (size_t)j;
    const double l = (double)x->b->lower[at], u = (double)x->b->upper[at];

    if (u >= (double)nowhere)
        set(x, i, j, low, high);
    else if (fmax(l, low) <= fmin(u, high))
        set(x, i, j, fmax(l, low), fmin(u, high));
    else
        set(x, i, j, fmin(l, low), fmax(u, high));
}

/* Breadth first from every atom. */
static void count_bonds(const builder *x, int32_t *queue)
{
    const ch_cycles *c = x->c;
    const int32_t n = x->b->n;

    memset(x->apart, FAR, (size_t)n * (size_t)n);
    for (int32_t i = 0; i < n; i++) {
        uint8_t *d = x->apart + (size_t)i * (size_t)n;
        int32_t tail = 0;
        d[i] = 0;
        queue[tail++] = i;
        for (int32_t head = 0; head < tail && d[queue[head]] + 1 < FAR; head++)
            for (int32_t k = c->first[queue[head]]; k < c->first[queue[head] + 1]; k++)
                if (d[c->neighbour[k]] == FAR) {
                    d[c->neighbour[k]] = (uint8_t)(d[queue[head]] + 1);
                    queue[tail++] = c->neighbour[k];
                }
    }
}

static int apart(const builder *x, int32_t i, int32_t j) { return x->apart[(size_t)i * (size_t)x->b->n + (size_t)j]; }

static void set_contacts(const builder *x)
{
    const int32_t n = x->b->n, s = x->b->stride;

    for (int32_t i = 0; i < n; i++)
        for (int32_t j = 0; j < s; j++) {
            x->b->lower[(size_t)i * (size_t)s + (size_t)j] = 0;
            x->b->upper[(size_t)i * (size_t)s + (size_t)j] = i == j ? 0 : nowhere;
        }
    for (int32_t k = 0; k < x->t->n_pairs; k++) {
        const ch_pair_term *p = &x->t->pairs[k];
        const int d = apart(x, p->i, p->j);
        set(x, p->i, p->j, p->r_star * contact[d == FAR ? d - (x->slack > 1) : d], (double)nowhere);
    }
}

static void set_bonds_and_angles(const builder *x)
{
    const ch_cycles *c = x->c;

    for (int32_t b = 0; b < c->mol->n_bonds; b++)
        set(x, c->mol->bond[b][0], c->mol->bond[b][1], x->ideal.length[b] - bond_margin, x->ideal.length[b] + bond_margin);
    for (int32_t j = 0; j < x->b->n; j++)
        for (int32_t p = c->first[j]; p < c->first[j + 1]; p++)
            for (int32_t q = c->first[j]; q < p; q++) {
                const int32_t i = c->neighbour[p], k = c->neighbour[q];
                const double a = x->ideal.length[c->by[p]], b = x->ideal.length[c->by[q]],
                             angle = ch_ideal_angle(&x->ideal, i, j, k);
                const double d = sqrt(a * a + b * b - 2 * a * b * cos(angle));
                const double margin =
                    angle_margin * (1 + (c->of_bond[c->by[p]] > 0 && c->of_bond[c->by[q]] > 0) + 3 * (x->slack > 1));
                if (apart(x, i, k) == 2)
                    narrow(x, i, k, d - margin, d + margin);
            }
}

static const range cis = { 0, 0, false }, trans = { 180, 180, false }, nearly_cis = { 0, 15, false },
                   nearly_trans = { 165, 180, false };
static const range any = { 0, 180, false };

static bool is_double_to_hetero(const builder *x, int32_t atom, int32_t c)
{
    const int32_t z = x->c->mol->z[atom], b = ch_cycles_bond(x->c, atom, c);

    return x->c->mol->order[b] == CH_DOUBLE && (z == 7 || z == 8 || z == 16);
}

/* The neighbour of c that a double bond holds, O, S or N; -1: none. */
static int32_t hetero_of(const builder *x, int32_t c)
{
    for (int32_t k = x->c->first[c]; k < x->c->first[c + 1]; k++)
        if (is_double_to_hetero(x, x->c->neighbour[k], c))
            return x->c->neighbour[k];
    return -1;
}

static int hydrogens_of(const builder *x, int32_t i)
{
    int n = 0;

    for (int32_t k = x->c->first[i]; k < x->c->first[i + 1]; k++)
        n += x->c->mol->z[x->c->neighbour[k]] == 1;
    return n;
}

/* Neighbours of y that hold O, S or N by a double bond. */
static int carbonyls_of(const builder *x, int32_t y)
{
    int n = 0;

    for (int32_t k = x->c->first[y]; k < x->c->first[y + 1]; k++)
        n += ch_cycles_is_trigonal(x->c, x->c->neighbour[k]) && hetero_of(x, x->c->neighbour[k]) >= 0;
    return n;
}

static bool has_nitrogen(const builder *x, int32_t i, int32_t but)
{
    bool found = false;

    for (int32_t k = x->c->first[i]; k < x->c->first[i + 1]; k++)
        found = found || (x->c->neighbour[k] != but && x->c->mol->z[x->c->neighbour[k]] == 7);
    return found;
}

/* Esters and acids are Z, secondary amides trans: a is beside c, d beside y of the single bond c-y. False: another group. Imides and
 * semicarbazides are found in either form. */
static bool is_amide_or_ester(const builder *x, int32_t a, int32_t c, int32_t y, int32_t d, range *out)
{
    const int32_t hetero = ch_cycles_is_trigonal(x->c, c) ? hetero_of(x, c) : -1, z = x->c->mol->z[y];
    const bool ester = (z == 8 || z == 16) && ch_cycles_degree(x->c, y) == 2;
    const bool amide = z == 7 && ch_cycles_degree(x->c, y) == 3 && hydrogens_of(x, y) == 1 && carbonyls_of(x, y) == 1 &&
                       !(has_nitrogen(x, y, c) && has_nitrogen(x, c, y));

    if (hetero < 0 || hetero == y || x->c->mol->z[hetero] == 7 || (!ester && !amide))
        return false;
    const bool crossed = (a != hetero) != (amide && x->c->mol->z[d] == 1);
    *out = crossed ? nearly_trans : nearly_cis;
    return true;
}

/* The smallest cycle of at most `max` atoms with the bond j-k in it, a flat one if there is one; NULL: none. */
static const ch_cycle *cycle_of(const builder *x, int32_t j, int32_t k, int32_t max)
{
    const ch_cycle *found = NULL;

    for (const ch_cycle *r = x->c->cycle; r->size <= max; r++) {
        const int32_t p = ch_cycle_place(r, j), q = ch_cycle_place(r, k);
        if (p < 0 || q < 0 || ((p + 1) % r->size != q && (q + 1) % r->size != p))
            continue;
        if (r->flat)
            return r;
        found = found != NULL ? found : r;
    }
    return found;
}

static int32_t other_side(const ch_cycle *r, int32_t j, int32_t k)
{
    const int32_t p = ch_cycle_place(r, j), next = r->atom[(p + 1) % r->size];

    return next == k ? r->atom[(p + r->size - 1) % r->size] : next;
}

/* Of a bond that does not turn: a and d are on one side. False: the bond turns, or nobody says how it stands. */
static bool is_rigid(const builder *x, int32_t j, int32_t k, int32_t *a, int32_t *d, bool *same)
{
    const ch_cycles *c = x->c;
    const int order = c->mol->order[ch_cycles_bond(c, j, k)];
    const ch_cycle *r = cycle_of(x, j, k, 8);

    for (int32_t s = 0; s < x->stereo->n_double_bonds; s++) {
        const ch_double_bond *e = &x->stereo->double_bonds[s];
        if ((e->b == j && e->c == k) || (e->b == k && e->c == j)) {
            *a = e->b == j ? e->a : e->d;
            *d = e->b == j ? e->d : e->a;
            *same = e->cis;
            return true;
        }
    }
    if (r == NULL ||
        !(r->flat || (ch_order_drawn(order) == CH_DOUBLE && ch_cycles_is_trigonal(c, j) && ch_cycles_is_trigonal(c, k))))
        return false;
    *same = true;
    *a = other_side(r, j, k);
    *d = other_side(r, k, j);
    return true;
}

static bool is_defined(const builder *x, int32_t j, int32_t k)
{
    for (int32_t s = 0; s < x->stereo->n_double_bonds; s++) {
        const ch_double_bond *e = &x->stereo->double_bonds[s];
        if ((e->b == j && e->c == k) || (e->b == k && e->c == j))
            return true;
    }
    return false;
}

/* Two rings that share three atoms or more are bridged: no chair can be expected. */
static bool is_bridged(const ch_cycles *c, const ch_cycle *ring)
{
    for (const ch_cycle *other = c->cycle; other->size <= 8; other++) {
        int shared = 0;
        for (int32_t k = 0; k < ring->size; k++)
            shared += ch_cycle_place(other, ring->atom[k]) >= 0;
        if (other != ring && shared > 2)
            return true;
    }
    return false;
}

/* Largest torsions of rings that are not flat, by size. Six atoms like the chair, whose torsions are 55 degrees. */
static bool is_in_ring(const builder *x, const int32_t *a, range *out)
{
    static const double max[9] = { 0, 0, 0, 0, 40, 60, 78, 105, 130 };
    const ch_cycles *c = x->c;

    for (const ch_cycle *ring = c->cycle; ring->size <= 8; ring++) {
        const int32_t p = ch_cycle_place(ring, a[1]), q = ch_cycle_place(ring, a[2]);
        if (p < 0 || q < 0 || ((p + 1) % ring->size != q && (q + 1) % ring->size != p))
            continue;
        if (other_side(ring, a[1], a[2]) == a[0] && other_side(ring, a[2], a[1]) == a[3]) {
            const bool chair =
                ring->size == 6 && !ch_cycles_is_trigonal(c, a[1]) && !ch_cycles_is_trigonal(c, a[2]) && !is_bridged(c, ring);
            *out = (range){ chair ? 40 : 0, max[ring->size], false };
            return true;
        }
    }
    return false;
}

static range torsion_range(const builder *x, const int32_t *a)
{
    const int order = x->c->mol->order[ch_cycles_bond(x->c, a[1], a[2])];
    int32_t p = 0, q = 0;
    bool same = true;
    range r = any;

    if (is_rigid(x, a[1], a[2], &p, &q, &same)) {
        const bool crossed = (a[0] != p) != (a[3] != q);
        r = crossed == same ? trans : cis;
        r.stereo = is_defined(x, a[1], a[2]);
        return r;
    }
    if (is_in_ring(x, a, &r) || order != CH_SINGLE || cycle_of(x, a[1], a[2], CH_MAX_CYCLE) != NULL)
        return r;
    if (is_amide_or_ester(x, a[0], a[1], a[2], a[3], &r) || is_amide_or_ester(x, a[3], a[2], a[1], a[0], &r))
        return r;
    return any;
}

static void set_torsion(const builder *x, const int32_t *a)
{
    range r = torsion_range(x, a);
    double margin = torsion_margin;

    if (x->slack > 0 && !r.stereo) {
        r.low = fmax(r.low - 30, 0);
        r.high = fmin(r.high + 30, 180);
        margin *= 2;
        if (x->slack > 2)
            r = any;
    }
    narrow(x, a[0], a[3], ch_ideal_distance(&x->ideal, a, r.low) - margin, ch_ideal_distance(&x->ideal, a, r.high) + margin);
}

/* Whether i and j are joined without their bond. */
static bool is_ring_bond(const builder *x, int32_t i, int32_t j, int32_t *queue, bool *seen)
{
    const ch_cycles *c = x->c;
    int32_t tail = 0;

    memset(seen, 0, (size_t)x->b->n * sizeof *seen);
    seen[i] = true;
    queue[tail++] = i;
    for (int32_t head = 0; head < tail && !seen[j]; head++)
        for (int32_t k = c->first[queue[head]]; k < c->first[queue[head] + 1]; k++) {
            const int32_t to = c->neighbour[k];
            if (!seen[to] && !(queue[head] == i && to == j)) {
                seen[to] = true;
                queue[tail++] = to;
            }
        }
    return seen[j];
}

static void find_rotors(const builder *x, int32_t *queue, bool *seen)
{
    const ch_cycles *c = x->c;

    for (int32_t b = 0; b < c->mol->n_bonds; b++) {
        const int32_t i = c->mol->bond[b][0], j = c->mol->bond[b][1];
        if (c->mol->order[b] != CH_SINGLE || c->of_bond[b] > 0 || ch_cycles_degree(c, i) < 2 || ch_cycles_degree(c, j) < 2 ||
            ch_cycles_degree(c, i) > 4 || ch_cycles_degree(c, j) > 4)
            continue;
        const int32_t p = c->neighbour[c->first[i]] == j ? c->neighbour[c->first[i] + 1] : c->neighbour[c->first[i]];
        const int32_t q = c->neighbour[c->first[j]] == i ? c->neighbour[c->first[j] + 1] : c->neighbour[c->first[j]];
        const range r = torsion_range(x, (int32_t[]){ p, i, j, q });
        const bool straight = ch_ideal_angle(&x->ideal, p, i, j) > 3 || ch_ideal_angle(&x->ideal, i, j, q) > 3;
        x->turns[b] = r.low <= 0 && r.high >= 180 && !straight && !is_ring_bond(x, i, j, queue, seen);
    }
}

static void set_torsions(const builder *x)
{
    const ch_cycles *c = x->c;

    for (int32_t b = 0; b < c->mol->n_bonds; b++) {
        const int32_t j = c->mol->bond[b][0], k = c->mol->bond[b][1];
        for (int32_t p = c->first[j]; p < c->first[j + 1]; p++)
            for (int32_t q = c->first[k]; q < c->first[k + 1]; q++) {
                const int32_t a[4] = { c->neighbour[p], j, k, c->neighbour[q] };
                if (a[0] != k && a[3] != j && a[0] != a[3] && apart(x, a[0], a[3]) == 3)
                    set_torsion(x, a);
            }
    }
}

/* Along double bonds from j over its neighbour k to the atom `end`: their length, or their number without lengths; -1: not there. */
static double follow(const ch_cycles *c, const double *length, int32_t j, int32_t k, int32_t end)
{
    double sum = 0;

    for (int32_t n = 0; n < c->mol->n_atoms; n++) {
        const int32_t b = ch_cycles_bond(c, j, k), next = c->neighbour[c->first[k]] == j ? 1 : 0;
        if (ch_order_drawn(c->mol->order[b]) != CH_DOUBLE)
            return -1;
        sum += length != NULL ? length[b] : 1;
        if (k == end || ch_cycles_degree(c, k) != 2)
            return k == end ? sum : -1;
        j = k;
        k = c->neighbour[c->first[k] + next];
    }
    return -1;
}

/* The neighbour of j from which three cumulated double bonds, or five ..., lead to `end`; -1: none do. */
static int32_t towards(const ch_cycles *c, int32_t j, int32_t end)
{
    for (int32_t k = c->first[j]; k < c->first[j + 1]; k++) {
        const int n = (int)follow(c, NULL, j, c->neighbour[k], end);
        if (n > 1 && n % 2 == 1)
            return c->neighbour[k];
    }
    return -1;
}

/* Cis or trans at the ends of three cumulated double bonds, or five ...: everything lies in a plane. */
static void set_planes(const builder *x)
{
    const ch_cycles *c = x->c;

    for (int32_t s = 0; s < x->stereo->n_double_bonds; s++) {
        const ch_double_bond *e = &x->stereo->double_bonds[s];
        const int32_t k = towards(c, e->b, e->c), l = towards(c, e->c, e->b);
        if (ch_cycles_bond(c, e->b, e->c) >= 0 || k < 0 || l < 0)
            continue;
        const double p = x->ideal.length[ch_cycles_bond(c, e->a, e->b)], q = x->ideal.length[ch_cycles_bond(c, e->c, e->d)];
        const double at_b = ch_ideal_angle(&x->ideal, e->a, e->b, k), at_c = ch_ideal_angle(&x->ideal, e->d, e->c, l);
        const double along = follow(c, x->ideal.length, e->b, k, e->c) - p * cos(at_b) - q * cos(at_c);
        const double d = hypot(along, p * sin(at_b) - (e->cis ? q : -q) * sin(at_c));
        set(x, e->a, e->d, d - plane_margin, d + plane_margin);
    }
}

/* Pairs whose lower bound exceeds the upper one by more than rounding. Both then become their mean. */
static int32_t settle(const builder *x)
{
    const int32_t n = x->b->n, s = x->b->stride;
    int32_t bad = 0;

    for (int32_t i = 0; i < n; i++)
        for (int32_t j = 0; j < n; j++) {
            float *l = &x->b->lower[(size_t)i * (size_t)s + (size_t)j], *u = &x->b->upper[(size_t)i * (size_t)s + (size_t)j];
            bad += *l > *u + 0.02f;
            if (*l > *u)
                *l = *u = 0.5f * (*l + *u);
        }
    return bad;
}

static void set_volumes(const builder *x)
{
    ch_bounds *b = x->b;

    for (int32_t k = 0; k < x->stereo->n_centres; k++) {
        const ch_centre *c = &x->stereo->centres[k];
        const float min = c->neighbour[3] == c->atom ? lone_pair_volume : chiral_volume;
        ch_volume *v = &b->volumes[b->n_volumes++];
        memcpy(v->atom, c->neighbour, sizeof v->atom);
        v->low = c->sign > 0 ? min : -any_volume;
        v->high = c->sign > 0 ? any_volume : -min;
        v->weight = 1;
    }
    for (int32_t k = 0; k < x->stereo->n_axes; k++) {
        ch_volume *v = &b->volumes[b->n_volumes++];
        memcpy(v->atom, x->stereo->axes[k].atom, sizeof v->atom);
        v->low = chiral_volume;
        v->high = any_volume;
        v->weight = 1;
    }
    b->n_chiral = b->n_volumes;
    for (int32_t i = 0; i < b->n; i++) {
        const int32_t *a = x->c->neighbour + x->c->first[i];
        if (x->ideal.flat[i])
            b->volumes[b->n_volumes++] = (ch_volume){ { a[0], a[1], a[2], i }, 0, 0, flat_weight };
    }
}

static bool is_axis(const ch_cycles *c, const ch_axis *x)
{
    bool good = true;

    for (int a = 0; a < 4; a++) {
        good = good && x->atom[a] >= 0 && x->atom[a] < c->mol->n_atoms;
        for (int b = 0; b < a; b++)
            good = good && x->atom[a] != x->atom[b];
    }
    return good;
}

static bool is_bonded(const ch_cycles *c, int32_t i, int32_t j)
{
    return i >= 0 && j >= 0 && i < c->mol->n_atoms && j < c->mol->n_atoms && ch_cycles_bond(c, i, j) >= 0;
}

static pl_code check_stereo(const ch_cycles *c, const ch_stereo *s, pl_error *err)
{
    bool good = true;

    for (int32_t k = 0; good && k < s->n_centres; k++) {
        const ch_centre *e = &s->centres[k];
        for (int a = 0; a < 4; a++) {
            good = good && (is_bonded(c, e->atom, e->neighbour[a]) || (a == 3 && e->neighbour[3] == e->atom));
            for (int b = 0; b < a; b++)
                good = good && e->neighbour[a] != e->neighbour[b];
        }
        if (!good || (e->sign != 1 && e->sign != -1))
            return pl_fail(err, PL_EINPUT, "stereocentre %d does not name four different neighbours of its atom and a sign",
                           (int)k + 1);
    }
    for (int32_t k = 0; good && k < s->n_double_bonds; k++) {
        const ch_double_bond *e = &s->double_bonds[k];
        good = is_bonded(c, e->a, e->b) && is_bonded(c, e->c, e->d) && e->b != e->c && e->a != e->c && e->b != e->d &&
               (is_bonded(c, e->b, e->c) || towards(c, e->b, e->c) >= 0);
        if (!good)
            return pl_fail(err, PL_EINPUT, "double bond %d of the stereo does not name four atoms in a row", (int)k + 1);
    }
    for (int32_t k = 0; k < s->n_axes; k++)
        if (!is_axis(c, &s->axes[k]))
            return pl_fail(err, PL_EINPUT, "axis %d of the stereo does not name four different atoms", (int)k + 1);
    return PL_OK;
}

static bool allocate(builder *x, ch_bounds *b, int32_t n_volumes, pl_arena *mem)
{
    const int64_t n = b->n;

    b->upper = ch_floats(mem, n * b->stride + 1);
    b->lower = ch_floats(mem, n * b->stride + 1);
    b->volumes = PL_NEW(mem, ch_volume, (size_t)(n + n_volumes) + 1);
    x->apart = PL_NEW(mem, uint8_t, (size_t)(n * n) + 1);
    x->turns = PL_NEW(mem, bool, (size_t)x->c->mol->n_bonds + 1);
    return x->turns != NULL && b->upper != NULL && b->lower != NULL && b->volumes != NULL && x->apart != NULL;
}

pl_code ch_bounds_make(ch_bounds *out, const ch_cycles *cycles, const ch_terms *terms, const ch_stereo *stereo,
                       const ch_kernels *kernels, pl_arena *mem, pl_error *err)
{
    builder x = { .b = out, .c = cycles, .t = terms, .stereo = stereo };
    int32_t *queue = PL_NEW(mem, int32_t, (size_t)cycles->mol->n_atoms + 1);
    bool *seen = PL_NEW(mem, bool, (size_t)cycles->mol->n_atoms + 1);
    pl_code code = check_stereo(cycles, stereo, err);

    *out = (ch_bounds){ .n = cycles->mol->n_atoms, .stride = ch_stride(cycles->mol->n_atoms) };
    if (code == PL_OK)
        code = ch_ideal_make(&x.ideal, cycles, terms, mem, err);
    if (code != PL_OK)
        return code;
    if (queue == NULL || seen == NULL || !allocate(&x, out, stereo->n_centres + stereo->n_axes, mem))
        return pl_fail(err, PL_ENOMEM, "no memory for the bounds of %d atoms", (int)out->n);
    count_bonds(&x, queue);
    for (x.slack = 0; x.slack <= CH_MAX_SLACK; x.slack++) {
        set_contacts(&x);
        set_bonds_and_angles(&x);
        set_torsions(&x);
        set_planes(&x);
        kernels->smooth(out->upper, out->lower, out->n, out->stride);
        out->slack = x.slack;
        if (settle(&x) == 0)
            break;
    }
    set_volumes(&x);
    find_rotors(&x, queue, seen);
    return ch_rotors_make(&out->rotors, &x.ideal, terms, stereo, x.turns, mem, err);
}
