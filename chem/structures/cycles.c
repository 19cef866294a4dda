/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/structures/cycles.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 8 };

typedef struct finder {
    ch_cycles *c;
    bool *inside;                        /* [n_atoms] may lie in a ring */
    int32_t *from, *queue, *seen, stamp; /* of the search */
    ch_cycle *cycle;
    int32_t n, room; /* cycle[room] */
    pl_arena *mem;
} finder;

static bool list_neighbours(ch_cycles *c, pl_arena *mem)
{
    const ch_mol *m = c->mol;
    int32_t *first = PL_NEW(mem, int32_t, (size_t)m->n_atoms + 1), *to = PL_NEW(mem, int32_t, 2 * (size_t)m->n_bonds + 1);
    int32_t *by = PL_NEW(mem, int32_t, 2 * (size_t)m->n_bonds + 1);

    if (first == NULL || to == NULL || by == NULL)
        return false;
    for (int32_t b = 0; b < m->n_bonds; b++) {
        first[m->bond[b][0]]++;
        first[m->bond[b][1]]++;
    }
    for (int32_t i = 1; i <= m->n_atoms; i++)
        first[i] += first[i - 1];
    for (int32_t b = m->n_bonds - 1; b >= 0; b--)
        for (int e = 0; e < 2; e++) {
            const int32_t at = --first[m->bond[b][e]];
            to[at] = m->bond[b][1 - e];
            by[at] = b;
        }
    c->first = first;
    c->neighbour = to;
    c->by = by;
    return true;
}

int32_t ch_cycles_bond(const ch_cycles *c, int32_t i, int32_t j)
{
    for (int32_t k = c->first[i]; k < c->first[i + 1]; k++)
        if (c->neighbour[k] == j)
            return c->by[k];
    return -1;
}

int32_t ch_cycle_place(const ch_cycle *c, int32_t atom)
{
    for (int32_t k = 0; k < c->size; k++)
        if (c->atom[k] == atom)
            return k;
    return -1;
}

bool ch_cycles_is_trigonal(const ch_cycles *c, int32_t atom)
{
    const int32_t z = c->mol->z[atom];
    int doubles = 0;
    bool aromatic = false, triple = false;

    for (int32_t k = c->first[atom]; k < c->first[atom + 1]; k++) {
        const int order = c->mol->order[c->by[k]];
        doubles += ch_order_drawn(order) == CH_DOUBLE;
        triple = triple || order == CH_TRIPLE;
        aromatic = aromatic || order >= CH_AROMATIC_SINGLE;
    }
    if (ch_cycles_degree(c, atom) > 3 || triple)
        return false;
    return aromatic || (doubles == 1 && z >= 5 && z <= 8) || (doubles == 2 && z == 7 && ch_cycles_degree(c, atom) == 3);
}

/* Takes away ends of chains until only rings and what joins them is left. */
static void prune(finder *f)
{
    const ch_cycles *c = f->c;
    const int32_t n = c->mol->n_atoms;
    int32_t tail = 0, *degree = f->from;

    for (int32_t i = 0; i < n; i++) {
        f->inside[i] = true;
        degree[i] = ch_cycles_degree(c, i);
        if (degree[i] < 2)
            f->queue[tail++] = i;
    }
    for (int32_t head = 0; head < tail; head++) {
        const int32_t i = f->queue[head];
        f->inside[i] = false;
        for (int32_t k = c->first[i]; k < c->first[i + 1]; k++)
            if (f->inside[c->neighbour[k]] && --degree[c->neighbour[k]] == 1)
                f->queue[tail++] = c->neighbour[k];
    }
}

/* Breadth first from i to k without j; out: the ring that begins with j. */
static bool shortest(finder *f, int32_t i, int32_t j, int32_t k, ch_cycle *out)
{
    const ch_cycles *c = f->c;
    int32_t head = 0, tail = 0, level_end = 0, size = 2;

    f->stamp++;
    f->seen[i] = f->seen[j] = f->stamp;
    f->from[i] = -1;
    f->queue[tail++] = i;
    for (level_end = tail; head < tail && f->seen[k] != f->stamp; head++) {
        if (head == level_end) {
            level_end = tail;
            size++;
        }
        if (size >= CH_MAX_CYCLE)
            return false;
        for (int32_t p = c->first[f->queue[head]]; p < c->first[f->queue[head] + 1]; p++) {
            const int32_t to = c->neighbour[p];
            if (!f->inside[to] || f->seen[to] == f->stamp)
                continue;
            f->seen[to] = f->stamp;
            f->from[to] = f->queue[head];
            f->queue[tail++] = to;
        }
    }
    *out = (ch_cycle){ .size = 1, .atom = { j } };
    for (int32_t at = k; f->seen[k] == f->stamp && at >= 0; at = f->from[at])
        out->atom[out->size++] = at;
    return out->size > 2;
}

static bool is_same(const ch_cycle *a, const ch_cycle *b)
{
    bool same = a->size == b->size;

    for (int32_t k = 0; same && k < a->size; k++)
        same = ch_cycle_place(b, a->atom[k]) >= 0;
    return same;
}

static bool keep(finder *f, const ch_cycle *c)
{
    for (int32_t k = 0; k < f->n; k++)
        if (is_same(&f->cycle[k], c))
            return true;
    if (f->n + 1 == f->room) { /* the one behind the last has room, too */
        ch_cycle *more = PL_NEW(f->mem, ch_cycle, 2 * (size_t)f->room);
        if (more == NULL)
            return false;
        memcpy(more, f->cycle, (size_t)f->n * sizeof *more);
        f->cycle = more;
        f->room *= 2;
    }
    f->cycle[f->n++] = *c;
    return true;
}

static bool find_at(finder *f, int32_t j)
{
    const ch_cycles *c = f->c;
    ch_cycle ring;

    for (int32_t a = c->first[j]; a < c->first[j + 1]; a++)
        for (int32_t b = a + 1; b < c->first[j + 1]; b++)
            if (f->inside[c->neighbour[a]] && f->inside[c->neighbour[b]] &&
                shortest(f, c->neighbour[a], j, c->neighbour[b], &ring) && !keep(f, &ring))
                return false;
    return true;
}

/* An atom whose lone pair can take part in a conjugated ring. */
static bool has_pair(const ch_cycles *c, int32_t i)
{
    const int32_t z = c->mol->z[i], degree = ch_cycles_degree(c, i);

    return (z == 7 && degree == 3) || ((z == 8 || z == 16) && degree == 2);
}

/* Conjugated rings are flat: of six atoms with N, or one O or S, between trigonal atoms (uracil, pyrone, but not thiazine). */
static void judge(const ch_cycles *c, ch_cycle *ring)
{
    int nitrogen = 0, other = 0;
    bool conjugated = true;

    ring->aromatic = true;
    for (int32_t k = 0; k < ring->size; k++) {
        const int32_t i = ring->atom[k], b = ch_cycles_bond(c, i, ring->atom[(k + 1) % ring->size]);
        const bool trigonal = ch_cycles_is_trigonal(c, i), pair = !trigonal && has_pair(c, i);
        ring->aromatic = ring->aromatic && c->mol->order[b] >= CH_AROMATIC_SINGLE;
        conjugated = conjugated && (trigonal || pair);
        nitrogen += pair && c->mol->z[i] == 7;
        other += pair && c->mol->z[i] != 7;
    }
    ring->flat = ring->aromatic ||
                 (conjugated && ((ring->size == 4 && nitrogen + other == 0) || (ring->size == 5 && nitrogen + other <= 2) ||
                                 (ring->size == 6 && (other == 0 || (other == 1 && nitrogen == 0)))));
}

static int by_size(const void *a, const void *b)
{
    const ch_cycle *x = a, *y = b;

    if (x->size != y->size)
        return x->size - y->size;
    for (int32_t k = 0; k < x->size; k++)
        if (x->atom[k] != y->atom[k])
            return x->atom[k] < y->atom[k] ? -1 : 1;
    return 0;
}

static void mark_bonds(const ch_cycles *c, uint8_t *of_bond)
{
    for (int32_t r = c->n - 1; r >= 0; r--) {
        const ch_cycle *ring = &c->cycle[r];
        for (int32_t k = 0; k < ring->size; k++)
            of_bond[ch_cycles_bond(c, ring->atom[k], ring->atom[(k + 1) % ring->size])] = (uint8_t)ring->size;
    }
}

/* Breadth first from i to j without their bond; out: the ring of both. */
static bool shortest_round(finder *f, int32_t i, int32_t j, ch_large_cycle *out)
{
    const ch_cycles *c = f->c;
    int32_t head = 0, tail = 0, level_end = 1, size = 2;

    f->stamp++;
    f->seen[i] = f->stamp;
    f->from[i] = -1;
    f->queue[tail++] = i;
    for (; head < tail && f->seen[j] != f->stamp; head++) {
        if (head == level_end) {
            level_end = tail;
            size++;
        }
        if (size > CH_MAX_LARGE)
            return false;
        for (int32_t p = c->first[f->queue[head]]; p < c->first[f->queue[head] + 1]; p++) {
            const int32_t to = c->neighbour[p];
            if (!f->inside[to] || f->seen[to] == f->stamp || (f->queue[head] == i && to == j))
                continue;
            f->seen[to] = f->stamp;
            f->from[to] = f->queue[head];
            f->queue[tail++] = to;
        }
    }
    out->size = 0;
    for (int32_t at = j; f->seen[j] == f->stamp && at >= 0 && out->size < CH_MAX_LARGE; at = f->from[at])
        out->atom[out->size++] = at;
    return out->size > 2;
}

static bool is_listed(const ch_large_cycle *all, int32_t n, const ch_large_cycle *c)
{
    for (int32_t k = 0; k < n; k++) {
        int32_t shared = 0;
        for (int32_t a = 0; a < c->size; a++)
            for (int32_t b = 0; all[k].size == c->size && b < c->size; b++)
                shared += all[k].atom[b] == c->atom[a];
        if (shared == c->size)
            return true;
    }
    return false;
}

static pl_code find_large(finder *f, const uint8_t *of_bond, pl_error *err)
{
    ch_cycles *c = f->c;
    ch_large_cycle ring, *all = NULL;
    int32_t room = 0;

    for (int32_t b = 0; b < c->mol->n_bonds; b++) {
        const int32_t i = c->mol->bond[b][0], j = c->mol->bond[b][1];
        if (of_bond[b] > 0 || !f->inside[i] || !f->inside[j] || !shortest_round(f, i, j, &ring) ||
            is_listed(all, c->n_large, &ring))
            continue;
        if (c->n_large == room) {
            ch_large_cycle *more = PL_NEW(f->mem, ch_large_cycle, 2 * (size_t)room + 8);
            if (more == NULL)
                return pl_fail(err, PL_ENOMEM, "no memory for the macrocycles of %d atoms", (int)c->mol->n_atoms);
            if (c->n_large > 0)
                memcpy(more, all, (size_t)c->n_large * sizeof *more);
            all = more;
            room = 2 * room + 8;
        }
        all[c->n_large++] = ring;
    }
    c->large = all;
    return PL_OK;
}

static bool is_connected(finder *f)
{
    const ch_cycles *c = f->c;
    int32_t tail = 0;

    if (c->mol->n_atoms == 0)
        return true;
    f->stamp++;
    f->seen[0] = f->stamp;
    f->queue[tail++] = 0;
    for (int32_t head = 0; head < tail; head++)
        for (int32_t k = c->first[f->queue[head]]; k < c->first[f->queue[head] + 1]; k++)
            if (f->seen[c->neighbour[k]] != f->stamp) {
                f->seen[c->neighbour[k]] = f->stamp;
                f->queue[tail++] = c->neighbour[k];
            }
    return tail == c->mol->n_atoms;
}

pl_code ch_cycles_make(ch_cycles *out, const ch_mol *mol, pl_arena *mem, pl_error *err)
{
    const size_t n = (size_t)mol->n_atoms + 1;
    finder f = { .c = out,
                 .inside = PL_NEW(mem, bool, n),
                 .from = PL_NEW(mem, int32_t, n),
                 .queue = PL_NEW(mem, int32_t, n),
                 .seen = PL_NEW(mem, int32_t, n),
                 .cycle = PL_NEW(mem, ch_cycle, FIRST_ROOM),
                 .room = FIRST_ROOM,
                 .mem = mem };
    uint8_t *of_bond = PL_NEW(mem, uint8_t, (size_t)mol->n_bonds + 1);
    bool good = f.inside != NULL && f.from != NULL && f.queue != NULL && f.seen != NULL && f.cycle != NULL && of_bond != NULL;

    *out = (ch_cycles){ .mol = mol, .of_bond = of_bond };
    good = good && list_neighbours(out, mem);
    if (good)
        prune(&f);
    for (int32_t j = 0; good && j < mol->n_atoms; j++)
        good = !f.inside[j] || find_at(&f, j);
    if (!good)
        return pl_fail(err, PL_ENOMEM, "no memory for the rings of %d atoms", (int)mol->n_atoms);
    for (int32_t r = 0; r < f.n; r++)
        judge(out, &f.cycle[r]);
    qsort(f.cycle, (size_t)f.n, sizeof *f.cycle, by_size);
    f.cycle[f.n].size = INT32_MAX;
    out->cycle = f.cycle;
    out->n = f.n;
    mark_bonds(out, of_bond);
    out->connected = is_connected(&f);
    return find_large(&f, of_bond, err);
}
