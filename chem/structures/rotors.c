/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/structures/rotors.h"

#include <math.h>
#include <string.h>

static const double radian = 57.29577951308232;
enum { MAX = 3, STEP = 180 / (CH_ROTOR_ANGLES - 1) };

/* One end of the bond: its other neighbours and where they stand around it, the first at 0 degrees. */
typedef struct end {
    int32_t n, atom[MAX];
    double turn[MAX];
} end;

typedef struct barrier {
    double v[MAX][MAX][3];
} barrier;

double ch_ideal_distance(const ch_ideal *x, const int32_t *a, double degrees)
{
    const ch_cycles *c = x->cycles;
    const double p = x->length[ch_cycles_bond(c, a[0], a[1])], q = x->length[ch_cycles_bond(c, a[1], a[2])];
    const double r = x->length[ch_cycles_bond(c, a[2], a[3])];
    const double u = ch_ideal_angle(x, a[0], a[1], a[2]), v = ch_ideal_angle(x, a[1], a[2], a[3]);
    const double along = q - r * cos(v) - p * cos(u), side = r * sin(v), other = p * sin(u);

    return sqrt(fmax(along * along + side * side + other * other - 2 * side * other * cos(degrees / radian), 0.01));
}

/* +1: seen along the bond from j, the second neighbour follows the first clockwise. Undefined centres: either. */
static int sense(const ch_stereo *s, const int32_t *atoms, int32_t centre, int32_t across)
{
    const int32_t want[4] = { across, atoms[0], atoms[1], atoms[2] };

    for (int32_t k = 0; k < s->n_centres; k++) {
        int place[4] = { -1, -1, -1, -1 }, sign = s->centres[k].sign > 0 ? 1 : -1;
        if (s->centres[k].atom != centre)
            continue;
        for (int a = 0; a < 4; a++)
            for (int b = 0; b < 4; b++)
                place[a] = s->centres[k].neighbour[b] == want[a] ? b : place[a];
        for (int a = 0; a < 4; a++)
            for (int b = 0; b < a; b++)
                sign = place[b] > place[a] ? -sign : sign;
        return sign;
    }
    return 1;
}

static void swap_heaviest_first(const ch_cycles *c, end *e)
{
    for (int32_t k = 1; k < e->n; k++)
        if (c->mol->z[e->atom[0]] == 1 && c->mol->z[e->atom[k]] > 1) {
            const int32_t a = e->atom[0];
            e->atom[0] = e->atom[k];
            e->atom[k] = a;
        }
}

/* along: +1 for the end where the bond begins, -1 for the other: directions are seen along the bond from its beginning. */
static end end_of(const ch_ideal *x, const ch_stereo *s, int32_t centre, int32_t across, int along)
{
    const ch_cycles *c = x->cycles;
    end e = { 0 };

    for (int32_t k = c->first[centre]; k < c->first[centre + 1] && e.n < MAX; k++)
        if (c->neighbour[k] != across)
            e.atom[e.n++] = c->neighbour[k];
    swap_heaviest_first(c, &e);
    if (e.n == 2)
        e.turn[1] = x->flat[centre] ? 180 : 120;
    if (e.n == 3) {
        const int to = along * sense(s, e.atom, centre, across);
        e.turn[1] = 120 * to;
        e.turn[2] = -120 * to;
    }
    return e;
}

static int32_t place(const end *e, int32_t atom)
{
    for (int32_t k = 0; k < e->n; k++)
        if (e->atom[k] == atom)
            return k;
    return -1;
}

static void take_torsion(barrier *b, const end *j, const end *k, const ch_torsion_term *t, bool turned)
{
    const int32_t p = place(j, turned ? t->l : t->i), q = place(k, turned ? t->i : t->l);

    if (p >= 0 && q >= 0)
        memcpy(b->v[p][q], (double[3]){ t->v1, t->v2, t->v3 }, sizeof b->v[p][q]);
}

static const ch_pair_term *pair_of(const ch_terms *t, int32_t a, int32_t b)
{
    const int32_t i = a < b ? a : b, j = a < b ? b : a;
    int32_t low = 0, high = t->n_pairs;

    while (low < high) {
        const int32_t mid = low + (high - low) / 2;
        const ch_pair_term *p = &t->pairs[mid];
        if (p->i < i || (p->i == i && p->j < j))
            low = mid + 1;
        else
            high = mid;
    }
    return low < t->n_pairs && t->pairs[low].i == i && t->pairs[low].j == j ? &t->pairs[low] : NULL;
}

/* Buffered 14-7 and Coulomb, kcal/mol. */
static double pair_energy(const ch_pair_term *p, double r)
{
    const double u = r / p->r_star, a = 1.07 / (u + 0.07), a2 = a * a, u2 = u * u;

    return p->epsilon * a2 * a2 * a2 * a * (1.12 / (u2 * u2 * u2 * u + 0.12) - 2) + p->charges / (r + 0.05);
}

/* Two neighbours, one of each end: what does not change with the torsion. */
typedef struct chain {
    const double *v;
    const ch_pair_term *pair;
    double fixed, swing; /* squared distance = fixed - swing cos */
    int turn;            /* of the second against the first, in steps */
} chain;

static chain chain_of(const ch_ideal *x, const ch_terms *t, const int32_t *atoms, const double *v, double turn)
{
    const double near = ch_ideal_distance(x, atoms, 0), far = ch_ideal_distance(x, atoms, 180);

    return (chain){ v, pair_of(t, atoms[0], atoms[3]), (near * near + far * far) / 2, (far * far - near * near) / 2,
                    (int)lround(turn / STEP) };
}

static double energy_at(const chain *all, int n, int step)
{
    static const double cosine[CH_ROTOR_ANGLES] = {
        1,    0.9659258262890683,  0.8660254037844387,  0.7071067811865476,  0.5, 0.25881904510252074, 0, -0.25881904510252074,
        -0.5, -0.7071067811865476, -0.8660254037844387, -0.9659258262890683, -1
    };
    double e = 0;

    for (int k = 0; k < n; k++) {
        const int full = 2 * (CH_ROTOR_ANGLES - 1), turn = ((step + all[k].turn) % full + full) % full;
        const double c = cosine[turn < CH_ROTOR_ANGLES ? turn : full - turn], *v = all[k].v;
        e += 0.5 * (v[0] * (1 + c) + v[1] * (2 - 2 * c * c) + v[2] * (1 + c * (4 * c * c - 3)));
        e += all[k].pair != NULL ? pair_energy(all[k].pair, sqrt(fmax(all[k].fixed - all[k].swing * c, 0.01))) : 0;
    }
    return e;
}

static void fill(ch_rotor *r, const ch_ideal *x, const ch_terms *t, const barrier *b, const end *j, const end *k)
{
    chain all[MAX * MAX];
    int n = 0;
    double min = INFINITY;

    for (int32_t p = 0; p < j->n; p++)
        for (int32_t q = 0; q < k->n; q++)
            all[n++] =
                chain_of(x, t, (int32_t[]){ j->atom[p], r->atom[1], r->atom[2], k->atom[q] }, b->v[p][q], k->turn[q] - j->turn[p]);
    for (int a = 0; a < CH_ROTOR_ANGLES; a++) {
        r->distance[a] = (float)ch_ideal_distance(x, r->atom, a * STEP);
        r->energy[a] = fmin(energy_at(all, n, a), energy_at(all, n, -a));
        min = fmin(min, r->energy[a]);
    }
    for (int a = 0; a < CH_ROTOR_ANGLES; a++)
        r->energy[a] -= min;
}

pl_code ch_rotors_make(ch_rotors *out, const ch_ideal *ideal, const ch_terms *terms, const ch_stereo *stereo, const bool *turns,
                       pl_arena *mem, pl_error *err)
{
    const ch_mol *m = ideal->cycles->mol;

    *out = (ch_rotors){ .rotor = PL_NEW(mem, ch_rotor, m->n_bonds + 1) };
    if (out->rotor == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for the rotors of %d bonds", (int)m->n_bonds);
    for (int32_t b = 0; b < m->n_bonds; b++) {
        const int32_t p = m->bond[b][0], q = m->bond[b][1];
        barrier v = { 0 };
        if (!turns[b])
            continue;
        const end j = end_of(ideal, stereo, p, q, 1), k = end_of(ideal, stereo, q, p, -1);
        for (int32_t t = 0; t < terms->n_torsions; t++) {
            const ch_torsion_term *s = &terms->torsions[t];
            if ((s->j == p && s->k == q) || (s->j == q && s->k == p))
                take_torsion(&v, &j, &k, s, s->j == q);
        }
        ch_rotor *r = &out->rotor[out->n++];
        *r = (ch_rotor){ .atom = { j.atom[0], p, q, k.atom[0] } };
        fill(r, ideal, terms, &v, &j, &k);
    }
    return PL_OK;
}

float ch_rotor_draw(const ch_rotor *r, double heat, pl_rng *random)
{
    double weight[CH_ROTOR_ANGLES], sum = 0, at = pl_rng_real(random);
    int a = 0;

    for (int k = 0; k < CH_ROTOR_ANGLES; k++)
        sum += weight[k] = exp(-r->energy[k] / heat) * (k == 0 || k == CH_ROTOR_ANGLES - 1 ? 0.5 : 1);
    for (at *= sum; a < CH_ROTOR_ANGLES - 1 && at >= weight[a]; a++)
        at -= weight[a];
    return r->distance[a];
}
