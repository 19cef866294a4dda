/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/structures/equal.h"

#include "pipeline/base/rng.h"

#include <string.h>

enum { CLASS_ROUNDS = 32, FIRST_ROOM = 4 };

/* Maps are searched atom by atom, each of which, but the first of a part, is a neighbour of one before it. */
typedef struct finder {
    const ch_cycles *c;
    const uint64_t *class; /* [n_atoms] atoms of different classes are never mapped on each other */
    int32_t n, *order;     /* [n] the order of the search */
    int32_t *parent;       /* [n] the neighbour before order[k]; -1: the first of a part */
    int32_t *image;        /* [n_atoms] where an atom is mapped */
    int32_t *tried;        /* [n] candidates of order[k] that were tried */
    int32_t *place;        /* [n_atoms] the number of a heavy atom */
    bool *taken;           /* [n_atoms] */
    int32_t *map, n_maps, room;
    int64_t steps;
    pl_arena *mem;
} finder;

static bool is_heavy(const finder *f, int32_t i) { return f->c->mol->z[i] != 1; }

/* N, O or S with one heavy neighbour: its hydrogens may be at another one of the group. */
static bool is_terminal(const ch_cycles *c, int32_t i)
{
    const uint8_t z = c->mol->z[i];
    int32_t heavy = 0;

    for (int32_t k = c->first[i]; k < c->first[i + 1]; k++)
        heavy += c->mol->z[c->neighbour[k]] != 1;
    return heavy == 1 && (z == 7 || z == 8 || z == 16);
}

/* 0: a hydrogen that does not count. */
static uint64_t first_class(const ch_cycles *c, int32_t i)
{
    const ch_mol *m = c->mol;
    const uint32_t isotope = m->isotope != NULL ? m->isotope[i] : 0;

    if (m->z[i] == 1 && isotope == 0 && ch_cycles_degree(c, i) == 1 && is_terminal(c, c->neighbour[c->first[i]]))
        return 0;
    return pl_splitmix64(m->z[i] + 1000u * isotope);
}

/* Atoms of one class have equal neighbours, these have equal neighbours, and so on. now, next: [n_atoms]; the classes are in `now`. */
static void find_classes(const ch_cycles *c, uint64_t *now, uint64_t *next)
{
    const int32_t n = c->mol->n_atoms, rounds = n < CLASS_ROUNDS ? n : CLASS_ROUNDS;

    for (int32_t i = 0; i < n; i++)
        now[i] = first_class(c, i);
    for (int32_t round = 0; round < rounds; round++) {
        for (int32_t i = 0; i < n; i++) {
            uint64_t sum = 0;
            for (int32_t k = c->first[i]; k < c->first[i + 1]; k++)
                sum += now[c->neighbour[k]] != 0 ? pl_splitmix64(now[c->neighbour[k]]) : 0;
            next[i] = now[i] != 0 ? pl_splitmix64(now[i] ^ pl_splitmix64(sum)) : 0;
        }
        memcpy(now, next, (size_t)n * sizeof *now);
    }
}

/* Adds atom i and all that are reached from it to the order, the nearest first. */
static void order_part(finder *f, int32_t i)
{
    int32_t at = f->n;

    f->taken[i] = true;
    f->parent[f->n] = -1;
    f->order[f->n++] = i;
    for (; at < f->n; at++)
        for (int32_t k = f->c->first[f->order[at]]; k < f->c->first[f->order[at] + 1]; k++) {
            const int32_t j = f->c->neighbour[k];
            if (!is_heavy(f, j) || f->taken[j])
                continue;
            f->taken[j] = true;
            f->parent[f->n] = f->order[at];
            f->order[f->n++] = j;
        }
}

static void order_all(finder *f)
{
    const int32_t n = f->c->mol->n_atoms;

    for (int32_t i = 0; i < n; i++)
        if (is_heavy(f, i) && !f->taken[i])
            order_part(f, i);
    memset(f->taken, 0, (size_t)n * sizeof *f->taken);
}

/* Whether order[k] may be mapped on j: every bond to an atom before it is one of their images, too. */
static bool fits(const finder *f, int32_t k, int32_t j)
{
    const int32_t i = f->order[k];

    if (!is_heavy(f, j) || f->taken[j] || f->class[j] != f->class[i])
        return false;
    for (int32_t b = f->c->first[i]; b < f->c->first[i + 1]; b++) {
        const int32_t to = f->c->neighbour[b];
        if (is_heavy(f, to) && f->image[to] >= 0 && ch_cycles_bond(f->c, j, f->image[to]) < 0)
            return false;
    }
    return true;
}

/* Candidate number `which` of order[k]; -1: there are no more. */
static int32_t candidate(const finder *f, int32_t k, int32_t which)
{
    if (f->parent[k] < 0)
        return which < f->c->mol->n_atoms ? which : -1;
    const int32_t at = f->image[f->parent[k]];
    return which < ch_cycles_degree(f->c, at) ? f->c->neighbour[f->c->first[at] + which] : -1;
}

static void release(finder *f, int32_t k)
{
    int32_t *image = &f->image[f->order[k]];

    if (*image >= 0)
        f->taken[*image] = false;
    *image = -1;
}

/* Maps order[k] on its next candidate. */
static bool advance(finder *f, int32_t k)
{
    release(f, k);
    for (int32_t j = candidate(f, k, f->tried[k]); j >= 0; j = candidate(f, k, f->tried[k])) {
        f->tried[k]++;
        f->steps++;
        if (!fits(f, k, j))
            continue;
        f->image[f->order[k]] = j;
        f->taken[j] = true;
        return true;
    }
    return false;
}

static bool is_identity(const finder *f)
{
    for (int32_t k = 0; k < f->n; k++)
        if (f->image[f->order[k]] != f->order[k])
            return false;
    return true;
}

/* Room for one more map. */
static bool grow(finder *f)
{
    if (f->n_maps < f->room)
        return true;
    int32_t *more = PL_NEW(f->mem, int32_t, 2 * (size_t)f->room * (size_t)f->n);
    if (more == NULL)
        return false;
    memcpy(more, f->map, (size_t)f->n_maps * (size_t)f->n * sizeof *more);
    f->map = more;
    f->room *= 2;
    return true;
}

/* The first map is that of the start. */
static bool keep(finder *f)
{
    if (is_identity(f))
        return true;
    if (!grow(f))
        return false;
    int32_t *map = &f->map[(int64_t)f->n_maps * f->n];
    for (int32_t k = 0; k < f->n; k++)
        map[f->place[f->order[k]]] = f->place[f->image[f->order[k]]];
    f->n_maps++;
    return true;
}

/* All maps, depth first. False: no memory. */
static bool search(finder *f)
{
    for (int32_t k = 0; k >= 0 && f->n_maps < CH_EQUAL_MAX && f->steps < (int64_t)CH_EQUAL_STEPS * f->n;) {
        if (k == f->n && !keep(f))
            return false;
        if (k == f->n || !advance(f, k)) {
            k--;
            continue;
        }
        if (++k < f->n)
            f->tried[k] = 0;
    }
    return true;
}

/* Numbers the heavy atoms, and maps each on itself. */
static void start(finder *f, int32_t *atom)
{
    int32_t n = 0;

    for (int32_t i = 0; i < f->c->mol->n_atoms; i++) {
        f->image[i] = -1;
        if (!is_heavy(f, i))
            continue;
        f->place[i] = f->map[n] = n;
        atom[n++] = i;
    }
    f->n_maps = 1;
}

static bool find(ch_equal *out, finder *f, size_t n)
{
    uint64_t *class = PL_NEW(f->mem, uint64_t, n), *next = PL_NEW(f->mem, uint64_t, n);
    int32_t *atom = PL_NEW(f->mem, int32_t, n);

    f->order = PL_NEW(f->mem, int32_t, n);
    f->parent = PL_NEW(f->mem, int32_t, n);
    f->tried = PL_NEW(f->mem, int32_t, n);
    f->image = PL_NEW(f->mem, int32_t, n);
    f->place = PL_NEW(f->mem, int32_t, n);
    f->taken = PL_NEW(f->mem, bool, n);
    f->map = PL_NEW(f->mem, int32_t, (size_t)f->room * n);
    if (class == NULL || next == NULL || atom == NULL || f->order == NULL || f->parent == NULL || f->tried == NULL ||
        f->image == NULL || f->place == NULL || f->taken == NULL || f->map == NULL)
        return false;
    find_classes(f->c, class, next);
    f->class = class;
    start(f, atom);
    order_all(f);
    const bool good = search(f);
    *out = (ch_equal){ .n = f->n, .atom = atom, .n_maps = f->n_maps, .map = f->map };
    return good;
}

pl_code ch_equal_make(ch_equal *out, const ch_cycles *cycles, pl_arena *mem, pl_error *err)
{
    const int32_t n = cycles->mol->n_atoms;
    finder f = { .c = cycles, .room = FIRST_ROOM, .mem = mem };

    return find(out, &f, (size_t)n + 1) ? PL_OK : pl_fail(err, PL_ENOMEM, "no memory for the symmetry of %d atoms", (int)n);
}
