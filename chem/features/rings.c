/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/features/rings.h"

#include <string.h>

enum { STEPS_MAX = 1 << 18 }; /* a few milliseconds: cages with a large ring in addition have no end of paths */

/* The search. A cycle of size 2 d or 2 d + 1 is found once: from its atom of highest number, the root, by two shortest paths to the
 * opposite atom or bond through atoms of lower numbers. */
typedef struct search {
    const ch_shape *s;
    pl_arena *mem;
    bool *bridge;                   /* [n_bonds] not in a ring                                     */
    int32_t *up, *place, *low, *at; /* [n] depth-first search                                      */
    int32_t *depth, *under;         /* [n] distance from the root + 1; the same through lower atoms; 0: not reached */
    int32_t *queue, *queue_under;   /* [n] atoms reached, in order                                 */
    int32_t path[2][CH_RING_MAX], by[2][CH_RING_MAX]; /* atoms and bonds of the two paths, from the end to below the root */
    int32_t words, rank, n_cycles, n_parts;           /* of a set of bonds; of the sets so far; of all cycles */
    int32_t *number, n_inside;                        /* [n_bonds] a bond's number among those in rings */
    uint64_t *basis;                                  /* [n_basis][words], each with a leading bit of its own */
    int32_t *lead, n_basis;                           /* [n_basis] */
    uint64_t *set;                                    /* [words] of the cycle at hand              */
    ch_ring *ring;
    int32_t n_rings, first; /* rings so far; the first of this size */
    int64_t steps;          /* of all walks */
    bool full, refused;     /* too many rings or steps; no memory */
} search;

static bool search_alloc(search *f)
{
    const size_t n = (size_t)f->s->n + 1, m = (size_t)f->s->n_bonds + 1;

    f->bridge = PL_NEW(f->mem, bool, m);
    f->number = PL_NEW(f->mem, int32_t, m);
    f->up = PL_NEW(f->mem, int32_t, n);
    f->place = PL_NEW(f->mem, int32_t, n);
    f->low = PL_NEW(f->mem, int32_t, n);
    f->at = PL_NEW(f->mem, int32_t, n);
    f->depth = PL_NEW(f->mem, int32_t, n);
    f->under = PL_NEW(f->mem, int32_t, n);
    f->queue = PL_NEW(f->mem, int32_t, n);
    f->queue_under = PL_NEW(f->mem, int32_t, n);
    f->ring = PL_NEW(f->mem, ch_ring, CH_RINGS_MAX + 1);
    return f->bridge != NULL && f->number != NULL && f->up != NULL && f->place != NULL && f->low != NULL && f->at != NULL &&
           f->depth != NULL && f->under != NULL && f->queue != NULL && f->queue_under != NULL && f->ring != NULL;
}

/* ---- bridges ---- */

/* Depth-first search of the part of atom i (Tarjan 1972) that marks bonds without another way around. Returns the last place. */
static int32_t visit(search *f, int32_t i, int32_t count)
{
    const ch_shape *s = f->s;

    f->up[i] = -1;
    f->place[i] = f->low[i] = ++count;
    f->at[i] = s->row[i];
    for (;;) {
        if (f->at[i] < s->row[i + 1]) {
            const ch_link to = s->link[f->at[i]++];
            if (f->place[to.to] != 0) {
                if (f->up[i] < 0 || s->link[f->up[i]].bond != to.bond)
                    f->low[i] = f->place[to.to] < f->low[i] ? f->place[to.to] : f->low[i];
                continue;
            }
            f->up[to.to] = f->at[i] - 1;
            i = to.to;
            f->place[i] = f->low[i] = ++count;
            f->at[i] = s->row[i];
        } else if (f->up[i] >= 0) {
            const int32_t b = s->link[f->up[i]].bond, p = s->bond[b][s->bond[b][0] == i];
            f->bridge[b] = f->low[i] > f->place[p];
            f->low[p] = f->low[i] < f->low[p] ? f->low[i] : f->low[p];
            i = p;
        } else {
            return count;
        }
    }
}

/* Marks bridges and counts independent cycles: bonds - atoms + parts. */
static void find_bridges(search *f)
{
    int32_t count = 0;

    for (int32_t i = 0; i < f->s->n; i++)
        if (f->place[i] == 0) {
            count = visit(f, i, count);
            f->n_parts++;
        }
    f->n_cycles = f->s->n_bonds - f->s->n + f->n_parts;
    for (int32_t b = 0; b < f->s->n_bonds; b++)
        f->number[b] = f->bridge[b] ? -1 : f->n_inside++;
}

static bool sets_alloc(search *f)
{
    f->words = f->n_inside / 64 + 1;
    f->n_basis = f->n_cycles < CH_RINGS_MAX ? f->n_cycles : CH_RINGS_MAX;
    f->basis = pl_arena_get(f->mem, (size_t)f->n_basis + 1, (size_t)f->words * sizeof *f->basis);
    f->lead = PL_NEW(f->mem, int32_t, f->n_basis + 1);
    f->set = PL_NEW(f->mem, uint64_t, f->words);
    return f->basis != NULL && f->lead != NULL && f->set != NULL;
}

/* ---- sets of bonds ---- */

static int32_t lowest_bit(const uint64_t *set, int32_t words)
{
    for (int32_t w = 0; w < words; w++)
        if (set[w] != 0)
            return 64 * w + __builtin_ctzll(set[w]);
    return -1;
}

static uint64_t *basis_at(search *f, int32_t k) { return f->basis + (size_t)k * (size_t)f->words; }

/* Adds members of the basis to set until no leading bit of theirs is left in it. False: nothing is left. */
static bool reduce(search *f, uint64_t *set, int32_t rank)
{
    for (int32_t k = 0; k < rank; k++)
        if (set[f->lead[k] / 64] >> f->lead[k] % 64 & 1)
            for (int32_t w = 0; w < f->words; w++)
                set[w] ^= basis_at(f, k)[w];
    return lowest_bit(set, f->words) >= 0;
}

static void set_of(search *f, const int32_t *bond, int32_t size)
{
    memset(f->set, 0, (size_t)f->words * sizeof *f->set);
    for (int32_t k = 0; k < size; k++)
        f->set[f->number[bond[k]] / 64] |= UINT64_C(1) << f->number[bond[k]] % 64;
}

/* The rings of the size at hand join the basis. */
static void extend_basis(search *f)
{
    for (int32_t r = f->first; r < f->n_rings && f->rank < f->n_basis; r++) {
        set_of(f, f->ring[r].bond, f->ring[r].size);
        if (!reduce(f, f->set, f->rank))
            continue;
        memcpy(basis_at(f, f->rank), f->set, (size_t)f->words * sizeof *f->set);
        f->lead[f->rank++] = lowest_bit(f->set, f->words);
    }
}

/* ---- cycles of one size ---- */

typedef struct goal {
    int32_t root, d, closing, end[2]; /* closing -1: end[0] and end[1] are one atom */
} goal;

/* The two paths, the root and the closing bond, in order around the cycle. Returns its size. */
static int32_t trace(const search *f, const goal *to, int32_t *atom, int32_t *bond)
{
    int32_t n = 0;

    for (int32_t k = 0; k < to->d; k++, n++) { /* from the end of the first path to the root */
        atom[n] = f->path[0][k];
        bond[n] = f->by[0][k];
    }
    atom[n] = to->root;
    for (int32_t k = to->d - 1; k >= 0; k--) { /* and back along the second one */
        bond[n++] = f->by[1][k];
        if (k > 0 || to->closing >= 0)
            atom[n] = f->path[1][k];
    }
    if (to->closing >= 0)
        bond[n++] = to->closing;
    return n;
}

static int32_t *copy_of(const int32_t *from, int32_t n, pl_arena *mem)
{
    int32_t *out = PL_NEW(mem, int32_t, n);

    if (out != NULL)
        memcpy(out, from, (size_t)n * sizeof *out);
    return out;
}

/* Stores the cycle if it is no sum of smaller ones. */
static void take(search *f, const goal *to)
{
    int32_t atom[CH_RING_MAX + 1], bond[CH_RING_MAX + 1];
    const int32_t size = trace(f, to, atom, bond);
    ch_ring *ring = &f->ring[f->n_rings];

    set_of(f, bond, size);
    if (!reduce(f, f->set, f->rank))
        return;
    f->full |= f->n_rings == CH_RINGS_MAX;
    if (f->full)
        return;
    *ring = (ch_ring){ size, copy_of(atom, size, f->mem), copy_of(bond, size, f->mem) };
    f->refused |= ring->atom == NULL || ring->bond == NULL;
    f->n_rings++;
}

/* Measures distances from the root up to `max`, by way of ring bonds; through lower atoms only, if `lower`. Returns how many are reached. */
static int32_t spread(const search *f, int32_t root, int32_t max, int32_t *depth, int32_t *queue, bool lower)
{
    const ch_shape *s = f->s;
    int32_t n = 0;

    queue[n++] = root;
    depth[root] = 1;
    for (int32_t q = 0; q < n && depth[queue[q]] <= max; q++)
        for (int32_t i = queue[q], k = s->row[i]; k < s->row[i + 1]; k++) {
            const int32_t j = s->link[k].to;
            if (f->bridge[s->link[k].bond] || depth[j] != 0 || (lower && j > root))
                continue;
            depth[j] = depth[i] + 1;
            queue[n++] = j;
        }
    return n;
}

/* Whether an atom belongs to a shortest path to the root through lower atoms. */
static bool is_near(const search *f, int32_t i) { return f->under[i] != 0 && f->under[i] == f->depth[i]; }

static bool crosses(const search *f, int32_t j, int32_t d)
{
    for (int32_t k = 0; k < d; k++)
        if (f->path[0][k] == j)
            return true;
    return false;
}

/* Walks path `which` from its atom k down to the root in every way, then the other path, then takes the cycle. Where both paths begin at
 * one atom, the second leaves it by a bond of higher number, so that each cycle comes once. */
static void walk(search *f, const goal *to, int which, int32_t k) // NOLINT(misc-no-recursion): at max CH_RING_MAX deep
{
    const ch_shape *s = f->s;
    const int32_t i = f->path[which][k];

    f->full |= ++f->steps > STEPS_MAX;
    for (int32_t m = s->row[i]; m < s->row[i + 1] && !f->full && !f->refused; m++) {
        const int32_t j = s->link[m].to;
        if (f->bridge[s->link[m].bond] || !is_near(f, j) || f->under[j] != f->under[i] - 1)
            continue;
        if (which == 1 && (crosses(f, j, to->d) || (k == 0 && to->closing < 0 && s->link[m].bond < f->by[0][0])))
            continue;
        f->by[which][k] = s->link[m].bond;
        if (j != to->root) {
            f->path[which][k + 1] = j;
            walk(f, to, which, k + 1);
        } else if (which == 0) {
            f->path[1][0] = to->end[1];
            walk(f, to, 1, 0);
        } else {
            take(f, to);
        }
    }
}

static void begin_walk(search *f, goal to)
{
    f->path[0][0] = to.end[0];
    walk(f, &to, 0, 0);
}

/* All cycles of this size whose highest atom is the root. */
static void cycles_of(search *f, int32_t root, int32_t size)
{
    const ch_shape *s = f->s;
    const int32_t d = size / 2;
    const int32_t n = spread(f, root, d, f->depth, f->queue, false), n_under = spread(f, root, d, f->under, f->queue_under, true);

    for (int32_t q = 0; q < n_under; q++) {
        const int32_t i = f->queue_under[q];
        if (f->under[i] != d + 1 || !is_near(f, i))
            continue;
        if (size % 2 == 0)
            begin_walk(f, (goal){ root, d, -1, { i, i } });
        for (int32_t k = s->row[i]; size % 2 != 0 && k < s->row[i + 1]; k++) {
            const int32_t j = s->link[k].to;
            if (i < j && !f->bridge[s->link[k].bond] && is_near(f, j) && f->under[j] == d + 1)
                begin_walk(f, (goal){ root, d, s->link[k].bond, { i, j } });
        }
    }
    for (int32_t q = 0; q < n; q++)
        f->depth[f->queue[q]] = 0;
    for (int32_t q = 0; q < n_under; q++)
        f->under[f->queue_under[q]] = 0;
}

static bool is_inside(const search *f, int32_t i)
{
    for (int32_t k = f->s->row[i]; k < f->s->row[i + 1]; k++)
        if (!f->bridge[f->s->link[k].bond])
            return true;
    return false;
}

static void find_cycles(search *f)
{
    for (int32_t size = 3; size <= CH_RING_MAX && f->rank < f->n_cycles && !f->refused; size++) {
        f->first = f->n_rings;
        for (int32_t i = 0; i < f->s->n && !f->full && !f->refused; i++)
            if (is_inside(f, i))
                cycles_of(f, i, size);
        if (f->full || f->refused) {
            f->n_rings = f->first;
            return;
        }
        extend_basis(f);
    }
}

static pl_code publish(ch_rings *out, search *f, pl_error *err)
{
    bool *inside = PL_NEW(f->mem, bool, f->s->n_bonds + 1);

    if (inside == NULL)
        return pl_fail(err, PL_ENOMEM, "rings");
    for (int32_t b = 0; b < f->s->n_bonds; b++)
        inside[b] = !f->bridge[b];
    *out = (ch_rings){ f->n_rings, f->n_parts, f->ring, inside };
    return PL_OK;
}

pl_code ch_rings_make(ch_rings *out, const ch_shape *s, pl_arena *mem, pl_error *err)
{
    search f = { .s = s, .mem = mem };

    *out = (ch_rings){ 0 };
    if (!search_alloc(&f))
        return pl_fail(err, PL_ENOMEM, "rings");
    find_bridges(&f);
    if (!sets_alloc(&f))
        return pl_fail(err, PL_ENOMEM, "rings");
    find_cycles(&f);
    return f.refused ? pl_fail(err, PL_ENOMEM, "rings") : publish(out, &f, err);
}
