/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/fingerprint/fingerprint.h"

#include <endian.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/rng.h"

enum { RADIUS = 2, AROMATIC = 4 };

/* The heavy atoms as a graph: bonds of atom i are bond[row[i]] .. bond[row[i+1]-1]. */
typedef struct skeleton {
    const ch_mol *mol;
    int32_t *row, *bond;
    int32_t *hydrogens;             /* [n]                                                   */
    int32_t *up, *place, *low, *at; /* [n] for the ring search                               */
    bool *ring;                     /* [n]                                                   */
    int64_t *seen;                  /* [n_bonds] the last search that visited the bond       */
    uint64_t *colour, *next;        /* [n]                                                   */
    ch_circle *found;               /* [n (RADIUS + 1)]                                      */
} skeleton;

static bool is_heavy(const ch_mol *mol, int32_t b) { return mol->z[mol->bond[b][0]] != 1 && mol->z[mol->bond[b][1]] != 1; }

static int32_t across(const ch_mol *mol, int32_t b, int32_t i) { return mol->bond[b][mol->bond[b][0] == i]; }

static bool skeleton_alloc(skeleton *s, const ch_mol *mol, pl_arena *mem)
{
    const int64_t n = mol->n_atoms, m = mol->n_bonds;

    *s = (skeleton){ .mol = mol,
                     .row = PL_NEW(mem, int32_t, n + 2),
                     .bond = PL_NEW(mem, int32_t, 2 * m + 1),
                     .hydrogens = PL_NEW(mem, int32_t, n + 1),
                     .up = PL_NEW(mem, int32_t, n + 1),
                     .place = PL_NEW(mem, int32_t, n + 1),
                     .low = PL_NEW(mem, int32_t, n + 1),
                     .at = PL_NEW(mem, int32_t, n + 1),
                     .ring = PL_NEW(mem, bool, n + 1),
                     .seen = PL_NEW(mem, int64_t, m + 1),
                     .colour = PL_NEW(mem, uint64_t, n + 1),
                     .next = PL_NEW(mem, uint64_t, n + 1),
                     .found = PL_NEW(mem, ch_circle, (RADIUS + 1) * n + 1) };
    return s->row != NULL && s->bond != NULL && s->hydrogens != NULL && s->up != NULL && s->place != NULL && s->low != NULL &&
           s->at != NULL && s->ring != NULL && s->seen != NULL && s->colour != NULL && s->next != NULL && s->found != NULL;
}

static void join(skeleton *s)
{
    const ch_mol *mol = s->mol;

    for (int32_t b = 0; b < mol->n_bonds; b++)
        for (int k = 0; k < 2; k++)
            if (is_heavy(mol, b))
                s->row[mol->bond[b][k] + 2]++;
            else
                s->hydrogens[mol->bond[b][k]] += mol->z[mol->bond[b][!k]] == 1;
    for (int32_t i = 0; i < mol->n_atoms; i++)
        s->row[i + 2] += s->row[i + 1]; /* row[i + 1] runs from the first to the last of i */
    for (int32_t b = 0; b < mol->n_bonds; b++)
        for (int k = 0; k < 2 && is_heavy(mol, b); k++)
            s->bond[s->row[mol->bond[b][k] + 1]++] = b;
    for (int32_t i = 0; i < mol->n_atoms; i++)
        s->at[i] = s->row[i];
}

/* Depth-first search of the component of atom i (Tarjan 1972). place: order of the visits, from 1; up: the bond to the parent;
 * low: the lowest place reachable from there without that bond. Returns the last place. */
static int32_t visit(skeleton *s, int32_t i, int32_t count)
{
    s->up[i] = -1;
    s->place[i] = s->low[i] = ++count;
    for (;;) {
        if (s->at[i] < s->row[i + 1]) {
            const int32_t b = s->bond[s->at[i]++], j = across(s->mol, b, i);
            if (s->place[j] && b != s->up[i] && s->place[j] < s->low[i])
                s->low[i] = s->place[j];
            if (s->place[j])
                continue;
            s->up[j] = b;
            s->place[j] = s->low[j] = ++count;
            i = j;
        } else if (s->up[i] >= 0) {
            const int32_t p = across(s->mol, s->up[i], i);
            if (s->low[i] <= s->place[p]) /* another path back exists: the bond is in a ring */
                s->ring[i] = s->ring[p] = true;
            if (s->low[i] < s->low[p])
                s->low[p] = s->low[i];
            i = p;
        } else {
            return count;
        }
    }
}

/* ---- environments -------------------------------------------------------- */

static uint64_t mix(uint64_t sum, uint64_t value) { return pl_splitmix64(3 * sum + value); }

static uint64_t first_colour(const skeleton *s, int32_t i)
{
    const ch_mol *mol = s->mol;
    const int32_t what[] = { s->row[i + 1] - s->row[i], mol->z[i], mol->charge[i], s->hydrogens[i], s->ring[i] };
    uint64_t sum = 0;

    for (size_t k = 0; k < sizeof what / sizeof *what; k++)
        sum = mix(sum, (uint64_t)(uint32_t)what[k]);
    return sum;
}

/* Hashes the atom with its neighbours; the sum does not depend on their order. */
static uint64_t next_colour(const skeleton *s, int32_t i, int32_t radius)
{
    uint64_t sum = 0;

    for (int32_t k = s->row[i]; k < s->row[i + 1]; k++) {
        const int32_t b = s->bond[k], order = s->mol->order[b] < CH_AROMATIC_SINGLE ? s->mol->order[b] : AROMATIC;
        sum += mix((uint64_t)order, s->colour[across(s->mol, b, i)]);
    }
    return mix(mix((uint64_t)radius, s->colour[i]), sum);
}

/* The bonds of atom i that the search `stamp` has not visited. */
static uint64_t bonds_of(skeleton *s, int32_t i, int64_t stamp)
{
    uint64_t sum = 0;

    for (int32_t k = s->row[i]; k < s->row[i + 1]; k++) {
        sum += s->seen[s->bond[k]] != stamp ? pl_splitmix64((uint64_t)s->bond[k]) : 0;
        s->seen[s->bond[k]] = stamp;
    }
    return sum;
}

/* The set of bonds within `radius` (1 or 2) of atom i as a number. */
static uint64_t bonds_near(skeleton *s, int32_t i, int32_t radius)
{
    const int64_t stamp = 1 + (int64_t)i * RADIUS + (radius - 1);
    uint64_t sum = bonds_of(s, i, stamp);

    for (int32_t k = s->row[i]; radius == 2 && k < s->row[i + 1]; k++)
        sum += bonds_of(s, across(s->mol, s->bond[k], i), stamp);
    return sum;
}

/* Of environments with equal bonds the smaller radius comes first, then the smaller number; the first is kept, as in the paper. */
static int by_bonds(const void *a, const void *b)
{
    const ch_circle *x = a, *y = b;

    if (x->bonds != y->bonds)
        return x->bonds < y->bonds ? -1 : 1;
    if (x->radius != y->radius)
        return x->radius - y->radius;
    return x->value < y->value ? -1 : x->value > y->value;
}

/* Radius 0: every heavy atom. Returns how many there are. */
static int32_t begin(skeleton *s)
{
    int32_t n = 0;

    for (int32_t i = 0; i < s->mol->n_atoms; i++) {
        s->colour[i] = first_colour(s, i);
        if (s->mol->z[i] != 1)
            s->found[n++] = (ch_circle){ 0, s->colour[i], 0, i };
    }
    return n;
}

/* One round: extends every atom's environment by one bond and stores each environment that has bonds. Returns how many are stored. */
static int32_t grow(skeleton *s, int32_t radius, int32_t n)
{
    for (int32_t i = 0; i < s->mol->n_atoms; i++) {
        if (s->row[i] == s->row[i + 1])
            continue;
        s->next[i] = next_colour(s, i, radius);
        s->found[n++] = (ch_circle){ bonds_near(s, i, radius), s->next[i], radius, i };
    }
    memcpy(s->colour, s->next, (size_t)s->mol->n_atoms * sizeof *s->next);
    return n;
}

/* By Shell's method: most molecules have 50 environments, for which qsort is slow. */
static void sort_by_bonds(ch_circle *found, int32_t n)
{
    static const int32_t gaps[] = { 57, 23, 10, 4, 1 };

    if (n > 500) {
        qsort(found, (size_t)n, sizeof *found, by_bonds);
        return;
    }
    for (size_t g = 0; g < sizeof gaps / sizeof *gaps; g++)
        for (int32_t i = gaps[g]; i < n; i++) {
            const ch_circle one = found[i];
            int32_t k = i;
            for (; k >= gaps[g] && by_bonds(&found[k - gaps[g]], &one) > 0; k -= gaps[g])
                found[k] = found[k - gaps[g]];
            found[k] = one;
        }
}

/* Keeps the first of those from `from` on that have equal bonds. Returns how many remain. */
static int32_t drop_duplicates(ch_circle *found, int32_t from, int32_t n)
{
    int32_t kept = from;

    sort_by_bonds(found + from, n - from);
    for (int32_t k = from; k < n; k++)
        if (kept == from || found[k].bonds != found[kept - 1].bonds)
            found[kept++] = found[k];
    return kept;
}

pl_code ch_circles_of(ch_circle **out, int32_t *n, const ch_mol *mol, pl_arena *mem, pl_error *err)
{
    skeleton s;
    int32_t count = 0, n_atoms;

    *n = 0;
    if (!skeleton_alloc(&s, mol, mem))
        return pl_fail(err, PL_ENOMEM, "a fingerprint");
    join(&s);
    for (int32_t i = 0; i < mol->n_atoms; i++)
        if (!s.place[i])
            count = visit(&s, i, count);
    *n = n_atoms = begin(&s);
    for (int32_t radius = 1; radius <= RADIUS; radius++)
        *n = grow(&s, radius, *n);
    *n = drop_duplicates(s.found, n_atoms, *n);
    *out = s.found;
    return PL_OK;
}

static void add(ch_fingerprint *out, uint64_t value)
{
    const uint64_t bit = value % CH_FINGERPRINT_BITS;

    out->word[bit / 64] |= UINT64_C(1) << bit % 64;
}

pl_code ch_fingerprint_of(ch_fingerprint *out, const ch_mol *mol, pl_arena *mem, pl_error *err)
{
    ch_circle *circle = NULL;
    int32_t n;
    const pl_code code = ch_circles_of(&circle, &n, mol, mem, err);

    *out = (ch_fingerprint){ { 0 } };
    for (int32_t k = 0; code == PL_OK && k < n; k++)
        add(out, circle[k].value);
    return code;
}

void ch_fingerprint_pack(unsigned char to[CH_FINGERPRINT_BYTES], const ch_fingerprint *f)
{
    for (int k = 0; k < CH_FINGERPRINT_BYTES; k++)
        to[k] = (unsigned char)(f->word[k / 8] >> 8 * (k % 8));
}

void ch_fingerprint_unpack(ch_fingerprint *to, const unsigned char from[CH_FINGERPRINT_BYTES])
{
    for (int k = 0; k < CH_FINGERPRINT_BYTES / 8; k++) {
        uint64_t word;
        memcpy(&word, from + (size_t)8 * (size_t)k, sizeof word);
        to->word[k] = le64toh(word);
    }
}

/* Of the two edges of a bond, the one that represents the pair. */
static bool is_bond(const ch_graph *g, int32_t e)
{
    return g->pair_edge[g->pair[e]] == e && g->type[g->pair[e]] != CH_PAIR_NOT_BONDED;
}

/* The atoms and bonds of a graph. */
static pl_code mol_of_graph(ch_mol *out, const ch_graph *g, pl_arena *mem, pl_error *err)
{
    const pl_code code = ch_mol_alloc(out, g->n_nodes, g->n_pairs, mem, err);

    if (code != PL_OK)
        return code;
    memcpy(out->z, g->z, (size_t)g->n_nodes * sizeof *out->z);
    memcpy(out->charge, g->charge, (size_t)g->n_nodes * sizeof *out->charge);
    out->n_bonds = 0;
    for (int32_t i = 0; i < g->n_nodes; i++)
        for (int32_t e = g->row[i]; e < g->row[i + 1]; e++)
            if (is_bond(g, e)) {
                out->bond[out->n_bonds][0] = g->src[e];
                out->bond[out->n_bonds][1] = i;
                out->order[out->n_bonds++] = (uint8_t)(CH_SINGLE + g->type[g->pair[e]] - CH_PAIR_SINGLE);
            }
    return PL_OK;
}

pl_code ch_fingerprint_of_graph(ch_fingerprint *out, const ch_graph *g, pl_arena *mem, pl_error *err)
{
    ch_mol mol;
    const pl_code code = mol_of_graph(&mol, g, mem, err);

    return code == PL_OK ? ch_fingerprint_of(out, &mol, mem, err) : code;
}

pl_code ch_circles_of_graph(ch_circle **out, int32_t *n, const ch_graph *g, pl_arena *mem, pl_error *err)
{
    ch_mol mol;
    const pl_code code = mol_of_graph(&mol, g, mem, err);

    return code == PL_OK ? ch_circles_of(out, n, &mol, mem, err) : code;
}
