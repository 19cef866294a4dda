/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only (the worker and its test use it) */
#include "chem/common/bonding.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    PER_CHARGE = 1000000, /* costs in order of rank: sum of |charge|, shells, then elements with bond lengths */
    EXTENDED = 100000,
    PER_SQUARE_ANGSTROM = 10000,
    DEGREE_MAX = 8,
    OPEN_MAX = 24,    /* bonds between assigned and other atoms: two bits each in a key        */
    CHARGE_SPAN = 20, /* partial sums of charges from -20 to 20                                 */
    PATTERN_MAX = 35, /* ways to give the bonds of one atom their orders: list_patterns          */
    SHELL_MAX = 12
};

/* One kind of closed shell: the sum of bond orders of an atom with this charge. */
typedef struct shell {
    uint8_t z;
    int8_t charge;
    uint8_t valence, unpaired;
    bool cation;  /* too few electrons: allowed only if the molecule is a cation         */
    int32_t cost; /* in addition to the cost of the charge                             */
} shell;

/* clang-format off */
static const shell shells[] = {
    { 1, 0, 1, 0, 0, 0 }, { 1, 1, 0, 0, 1, 9000 },
    { 2, 0, 0, 0, 0, 0 }, { 10, 0, 0, 0, 0, 0 }, { 18, 0, 0, 0, 0, 0 }, { 36, 0, 0, 0, 0, 0 },
    { 54, 0, 0, 0, 0, 0 }, { 54, 0, 2, 0, 0, EXTENDED }, { 54, 0, 4, 0, 0, 2 * EXTENDED }, { 54, 0, 6, 0, 0, 3 * EXTENDED },
    { 5, 0, 3, 0, 0, 0 }, { 5, -1, 4, 0, 0, 0 }, { 5, 0, 2, 1, 0, 0 },
    { 6, 0, 4, 0, 0, 0 }, { 6, -1, 3, 0, 0, 800 }, { 6, 1, 3, 0, 1, 5000 }, { 6, 0, 3, 1, 0, 0 },
    { 7, 0, 3, 0, 0, 0 }, { 7, 1, 4, 0, 0, 0 }, { 7, -1, 2, 0, 0, 300 }, { 7, 0, 2, 1, 0, 0 },
    { 8, 0, 2, 0, 0, 0 }, { 8, -1, 1, 0, 0, 0 }, { 8, 1, 3, 0, 0, 800 }, { 8, -2, 0, 0, 0, 0 }, { 8, 0, 1, 1, 0, 0 },
    { 9, 0, 1, 0, 0, 0 }, { 9, -1, 0, 0, 0, 0 }, { 9, 0, 0, 1, 0, 0 },
    { 11, 1, 0, 0, 0, 0 }, { 19, 1, 0, 0, 0, 0 }, { 20, 2, 0, 0, 0, 0 }, { 37, 1, 0, 0, 0, 0 }, { 38, 2, 0, 0, 0, 0 }, { 55, 1, 0, 0, 0, 0 },
    { 56, 2, 0, 0, 0, 0 },
    { 14, 0, 4, 0, 0, 0 }, { 14, -1, 3, 0, 0, 800 }, { 14, -1, 5, 0, 0, EXTENDED }, { 14, -2, 6, 0, 0, 2 * EXTENDED }, { 14, 0, 3, 1, 0, 0 },
    { 15, 0, 3, 0, 0, 0 }, { 15, 1, 4, 0, 0, 0 }, { 15, -1, 2, 0, 0, 500 }, { 15, 0, 5, 0, 0, EXTENDED }, { 15, -1, 6, 0, 0, 2 * EXTENDED },
    { 15, 0, 2, 1, 0, 0 },
    { 16, 0, 2, 0, 0, 0 }, { 16, -1, 1, 0, 0, 100 }, { 16, 1, 3, 0, 0, 100 }, { 16, -2, 0, 0, 0, 0 }, { 16, 0, 4, 0, 0, EXTENDED },
    { 16, 0, 6, 0, 0, 2 * EXTENDED }, { 16, 1, 5, 0, 1, EXTENDED }, { 16, 0, 1, 1, 0, 0 },
    { 17, 0, 1, 0, 0, 0 }, { 17, -1, 0, 0, 0, 0 }, { 17, 1, 2, 0, 0, 2000 }, { 17, 0, 3, 0, 0, EXTENDED }, { 17, 0, 5, 0, 0, 2 * EXTENDED },
    { 17, 0, 7, 0, 0, 3 * EXTENDED }, { 17, 0, 0, 1, 0, 0 },
    { 32, 0, 4, 0, 0, 0 }, { 32, -1, 3, 0, 0, 800 },
    { 33, 0, 3, 0, 0, 0 }, { 33, 1, 4, 0, 0, 0 }, { 33, -1, 2, 0, 0, 500 }, { 33, 0, 5, 0, 0, EXTENDED }, { 33, -1, 6, 0, 0, 2 * EXTENDED },
    { 34, 0, 2, 0, 0, 0 }, { 34, -1, 1, 0, 0, 100 }, { 34, 1, 3, 0, 0, 100 }, { 34, -2, 0, 0, 0, 0 }, { 34, 0, 4, 0, 0, EXTENDED },
    { 34, 0, 6, 0, 0, 2 * EXTENDED },
    { 35, 0, 1, 0, 0, 0 }, { 35, -1, 0, 0, 0, 0 }, { 35, 1, 2, 0, 0, 2000 }, { 35, 0, 3, 0, 0, EXTENDED }, { 35, 0, 5, 0, 0, 2 * EXTENDED },
    { 35, 0, 7, 0, 0, 3 * EXTENDED }, { 35, 0, 0, 1, 0, 0 },
    { 52, 0, 2, 0, 0, 0 }, { 52, 0, 4, 0, 0, EXTENDED }, { 52, 0, 6, 0, 0, 2 * EXTENDED }, { 52, 1, 3, 0, 0, 100 },
    { 53, 0, 1, 0, 0, 0 }, { 53, -1, 0, 0, 0, 0 }, { 53, 1, 2, 0, 0, 1000 }, { 53, 0, 3, 0, 0, EXTENDED }, { 53, 0, 5, 0, 0, 2 * EXTENDED },
    { 53, 0, 7, 0, 0, 3 * EXTENDED }, { 53, 0, 0, 1, 0, 0 },
};

/* clang-format on */

/* The part of an assignment that matters for the remaining atoms: two bits per open bond, the sum of charges, unpaired electrons. */
typedef struct partial {
    uint64_t key;
    int64_t cost;
    int32_t from;     /* index in the previous step    */
    uint16_t pattern; /* of the last atom              */
    uint8_t shell;    /* index in its list             */
} partial;

typedef struct atom_step {
    int32_t atom, first, n_kept;               /* partials[first .. first + n_kept)                 */
    int32_t bond[DEGREE_MAX];                  /* free bonds that open here                         */
    uint8_t slot[DEGREE_MAX];                  /* position of their order in the key                */
    uint64_t closing;                          /* the slots of free bonds that end here, both bits  */
    int n_open, n_fixed, n_shells, n_patterns; /* fixed: bonds that can only be single  */
    const shell *shells[SHELL_MAX];
    uint16_t pattern[PATTERN_MAX]; /* two bits for each bond that opens: order - 1      */
    uint8_t sum[PATTERN_MAX];      /* of the orders                                     */
    int32_t cost[PATTERN_MAX];     /* of the lengths                                    */
} atom_step;

typedef struct search {
    const ch_skeleton *s;
    int32_t *first, *incident; /* bonds of each atom, concatenated */
    uint8_t *max;              /* [n_bonds] highest order that both ends allow */
    int8_t *slot_of;           /* [n_bonds] -1: not open */
    bool *done;                /* [n_atoms] */
    atom_step *step;           /* [n_atoms] */
    partial *partials;
    int32_t n_partials, cap;
    int32_t *table; /* hash table over the partials of one step; -1: free */
    uint32_t table_size;
    uint32_t slots_used; /* bit mask */
} search;

enum { CHARGE_AT = 2 * OPEN_MAX, UNPAIRED_AT = CHARGE_AT + 6 };

static int degree_of(const search *w, int32_t a) { return w->first[a + 1] - w->first[a]; }

int ch_bonding_valence(int z)
{
    int high = -1;

    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (shells[i].z == z && shells[i].valence > high)
            high = shells[i].valence;
    return high;
}

static int32_t length_cost(const ch_skeleton *s, int32_t b, int order)
{
    const double off = s->xyz != NULL ? fmin(fabs(ch_bonding_stretch(s, b, order)), 1) : 0;

    return (int32_t)lround(PER_SQUARE_ANGSTROM * off * off);
}

static void list_bonds(search *w)
{
    const ch_skeleton *s = w->s;

    for (int32_t b = 0; b < s->n_bonds; b++)
        for (int e = 0; e < 2; e++)
            w->first[s->bond[b][e] + 1]++;
    for (int32_t a = 0; a < s->n_atoms; a++)
        w->first[a + 1] += w->first[a];
    for (int32_t b = s->n_bonds - 1; b >= 0; b--) /* backwards, so that first[] ends at the first bond */
        for (int e = 0; e < 2; e++)
            w->incident[--w->first[s->bond[b][e] + 1]] = b;
    memmove(w->first, w->first + 1, (size_t)s->n_atoms * sizeof *w->first);
    w->first[s->n_atoms] = 2 * s->n_bonds;
}

/* The bond orders that the rules of both atoms allow. */
static ch_bonding bound_orders(search *w)
{
    const ch_skeleton *s = w->s;

    for (int32_t a = 0; a < s->n_atoms; a++) {
        const int high = ch_bonding_valence(s->z[a]);
        if (high < 0)
            return CH_BONDING_ELEMENT;
        if (degree_of(w, a) > high)
            return CH_BONDING_SHELL;
    }
    for (int32_t b = 0; b < s->n_bonds; b++) {
        int max = 3;
        for (int e = 0; e < 2; e++) {
            const int32_t a = s->bond[b][e];
            const int room = 1 + ch_bonding_valence(s->z[a]) - degree_of(w, a);
            max = room < max ? room : max;
        }
        w->max[b] = (uint8_t)max;
    }
    return CH_BONDING_OK;
}

/* ---- the next atom: the one that leaves the fewest bonds open ---- */

static int open_after(const search *w, int32_t a)
{
    int change = 0;

    for (int32_t i = w->first[a]; i < w->first[a + 1]; i++)
        if (w->max[w->incident[i]] > 1)
            change += w->slot_of[w->incident[i]] >= 0 ? -1 : 1;
    return change;
}

static int32_t next_atom(const search *w, int32_t *lowest)
{
    int32_t best = -1;
    int min = 0;

    for (int32_t b = 0; w->slots_used != 0 && b < w->s->n_bonds; b++) {
        if (w->slot_of[b] < 0)
            continue;
        const int32_t a = w->s->bond[b][w->done[w->s->bond[b][0]]];
        const int open = open_after(w, a);
        if (best < 0 || open < min || (open == min && a < best)) {
            best = a;
            min = open;
        }
    }
    while (best < 0) {
        if (!w->done[*lowest])
            best = *lowest;
        ++*lowest;
    }
    return best;
}

static bool take_slot(search *w, atom_step *t, int32_t b)
{
    int slot = 0;

    while (slot < OPEN_MAX && (w->slots_used >> slot & 1))
        slot++;
    if (slot == OPEN_MAX || t->n_open == DEGREE_MAX)
        return false;
    w->slots_used |= 1u << slot;
    w->slot_of[b] = (int8_t)slot;
    t->bond[t->n_open] = b;
    t->slot[t->n_open++] = (uint8_t)slot;
    return true;
}

/* All combinations of orders of the bonds that open, up to the sum that some shell can use: 7 over n, as no sum is over 7. */
static void list_patterns(const search *w, atom_step *t, int high)
{
    for (uint32_t code = 0; code < 1u << 2 * t->n_open; code++) {
        int sum = 0;
        int32_t cost = 0;
        bool fits = true;
        for (int i = 0; i < t->n_open && fits; i++) {
            const int order = 1 + (int)(code >> 2 * i & 3);
            fits = order <= w->max[t->bond[i]] && (sum += order) <= high;
            cost += fits ? length_cost(w->s, t->bond[i], order) : 0;
        }
        if (!fits)
            continue;
        t->pattern[t->n_patterns] = (uint16_t)code;
        t->sum[t->n_patterns] = (uint8_t)sum;
        t->cost[t->n_patterns++] = cost;
    }
}

static ch_bonding begin_step(search *w, atom_step *t, int32_t a)
{
    const int z = w->s->z[a], degree = degree_of(w, a);

    t->atom = a;
    w->done[a] = true;
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (shells[i].z == z && shells[i].valence >= degree && shells[i].unpaired <= w->s->unpaired &&
            (!shells[i].cation || w->s->charge > 0))
            t->shells[t->n_shells++] = &shells[i];
    for (int32_t i = w->first[a]; i < w->first[a + 1]; i++) {
        const int32_t b = w->incident[i];
        if (w->max[b] == 1) {
            t->n_fixed++;
        } else if (w->slot_of[b] >= 0) {
            t->closing |= (uint64_t)3 << 2 * w->slot_of[b];
            w->slots_used &= ~(1u << w->slot_of[b]);
            w->slot_of[b] = -1;
        } else if (!take_slot(w, t, b)) {
            return CH_BONDING_SEARCH;
        }
    }
    list_patterns(w, t, ch_bonding_valence(z));
    return CH_BONDING_OK;
}

/* ---- partial assignments ---- */

static int field_of(uint64_t key, int at, int bits) { return (int)(key >> at & ((1u << bits) - 1)); }

static uint32_t place_of(const search *w, uint64_t key)
{
    return (uint32_t)((key * 0x9e3779b97f4a7c15u) >> 32) & (w->table_size - 1);
}

static bool grow_table(search *w, const atom_step *t)
{
    const uint32_t size = w->table_size ? 2 * w->table_size : 256;
    int32_t *table = realloc(w->table, size * sizeof *table);

    if (table == NULL)
        return false;
    w->table = table;
    w->table_size = size;
    memset(table, -1, size * sizeof *table);
    for (int32_t i = t->first; i < t->first + t->n_kept; i++) {
        uint32_t at = place_of(w, w->partials[i].key);
        while (table[at] >= 0)
            at = (at + 1) & (size - 1);
        table[at] = i;
    }
    return true;
}

static ch_bonding keep(search *w, atom_step *t, const partial *p)
{
    uint32_t at;

    if (2 * (uint32_t)t->n_kept >= w->table_size && !grow_table(w, t))
        return CH_BONDING_MEMORY;
    for (at = place_of(w, p->key); w->table[at] >= 0; at = (at + 1) & (w->table_size - 1)) {
        partial *known = &w->partials[w->table[at]];
        if (known->key == p->key) {
            if (p->cost < known->cost)
                *known = *p;
            return CH_BONDING_OK;
        }
    }
    if (w->n_partials == CH_BONDING_PARTIAL_MAX)
        return CH_BONDING_SEARCH;
    if (w->n_partials == w->cap) {
        partial *grown = realloc(w->partials, 2 * (size_t)w->cap * sizeof *grown);
        if (grown == NULL)
            return CH_BONDING_MEMORY;
        w->partials = grown;
        w->cap *= 2;
    }
    w->table[at] = w->n_partials;
    w->partials[w->n_partials++] = *p;
    t->n_kept++;
    return CH_BONDING_OK;
}

/* The key and cost after this atom; false if they exceed the limits. */
static bool extend(const search *w, const atom_step *t, const partial *before, const shell *kind, int pattern, partial *out)
{
    uint64_t key = before->key & (((uint64_t)1 << CHARGE_AT) - 1) & ~t->closing;
    const int charge = field_of(before->key, CHARGE_AT, 6) + kind->charge;
    const int unpaired = field_of(before->key, UNPAIRED_AT, 2) + kind->unpaired;

    if (charge < 0 || charge > 2 * CHARGE_SPAN || unpaired > w->s->unpaired)
        return false;
    for (int i = 0; i < t->n_open; i++)
        key |= (uint64_t)(t->pattern[pattern] >> 2 * i & 3) << 2 * t->slot[i];
    key |= (uint64_t)charge << CHARGE_AT | (uint64_t)unpaired << UNPAIRED_AT;
    out->key = key;
    out->cost = before->cost + t->cost[pattern] + kind->cost + (int64_t)PER_CHARGE * abs(kind->charge);
    out->pattern = t->pattern[pattern];
    return true;
}

static int sum_closing(const atom_step *t, uint64_t key)
{
    int sum = 0;

    for (uint64_t at = t->closing; at != 0; at &= ~((uint64_t)3 << __builtin_ctzll(at)))
        sum += 1 + (int)(key >> __builtin_ctzll(at) & 3);
    return sum;
}

static ch_bonding extend_all(search *w, atom_step *t, int32_t from)
{
    const partial before = w->partials[from]; /* a copy: the array may move */
    const int sum = t->n_fixed + sum_closing(t, before.key);
    ch_bonding end = CH_BONDING_OK;
    partial p = { .from = from };

    for (int k = 0; k < t->n_shells && end == CH_BONDING_OK; k++)
        for (int i = 0; i < t->n_patterns && end == CH_BONDING_OK; i++) {
            p.shell = (uint8_t)k;
            if (sum + t->sum[i] == t->shells[k]->valence && extend(w, t, &before, t->shells[k], i, &p))
                end = keep(w, t, &p);
        }
    return end;
}

static ch_bonding take_atom(search *w, atom_step *t, int32_t first, int32_t n)
{
    ch_bonding end = CH_BONDING_OK;

    t->first = w->n_partials;
    if (w->table != NULL)
        memset(w->table, -1, w->table_size * sizeof *w->table);
    for (int32_t i = 0; i < n && end == CH_BONDING_OK; i++)
        end = extend_all(w, t, first + i);
    if (end == CH_BONDING_OK && t->n_kept == 0)
        end = CH_BONDING_SHELL;
    return end;
}

/* ---- the whole ---- */

static bool electrons_pair(const ch_skeleton *s)
{
    int64_t n = -(int64_t)s->charge - s->unpaired;

    for (int32_t a = 0; a < s->n_atoms; a++)
        n += s->z[a];
    return n % 2 == 0;
}

static bool allocate(search *w)
{
    const size_t n = (size_t)w->s->n_atoms, m = (size_t)w->s->n_bonds;

    w->cap = 1024;
    w->first = calloc(n + 2, sizeof *w->first);
    w->incident = calloc(2 * m + 1, sizeof *w->incident);
    w->max = calloc(m + 1, 1);
    w->slot_of = malloc(m + 1);
    w->done = calloc(n + 1, sizeof *w->done);
    w->step = calloc(n + 1, sizeof *w->step);
    w->partials = malloc((size_t)w->cap * sizeof *w->partials);
    if (w->slot_of != NULL)
        memset(w->slot_of, -1, m + 1);
    return w->first != NULL && w->incident != NULL && w->max != NULL && w->slot_of != NULL && w->done != NULL && w->step != NULL &&
           w->partials != NULL;
}

static void release(search *w)
{
    void *all[] = { w->first, w->incident, w->max, w->slot_of, w->done, w->step, w->partials, w->table };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

/* Traces the best assignment back from the last atom to the first. */
static void write_result(const search *w, int32_t last, uint8_t *order, int8_t *formal)
{
    for (int32_t b = 0; b < w->s->n_bonds; b++)
        order[b] = 1;
    for (int32_t i = w->s->n_atoms - 1; i >= 0; i--) {
        const atom_step *t = &w->step[i];
        const partial *p = &w->partials[last];
        formal[t->atom] = t->shells[p->shell]->charge;
        for (int k = 0; k < t->n_open; k++)
            order[t->bond[k]] = (uint8_t)(1 + (p->pattern >> 2 * k & 3));
        last = p->from;
    }
}

static ch_bonding assign(search *w, int32_t *last)
{
    const ch_skeleton *s = w->s;
    int32_t lowest = 0, first = 0, n = 1;
    ch_bonding end = CH_BONDING_OK;
    int64_t best = INT64_MAX;

    w->partials[w->n_partials++] = (partial){ .key = (uint64_t)CHARGE_SPAN << CHARGE_AT };
    for (int32_t i = 0; i < s->n_atoms && end == CH_BONDING_OK; i++) {
        atom_step *t = &w->step[i];
        end = begin_step(w, t, next_atom(w, &lowest));
        if (end == CH_BONDING_OK)
            end = take_atom(w, t, first, n);
        first = t->first;
        n = t->n_kept;
    }
    if (end != CH_BONDING_OK)
        return end;
    for (int32_t i = first; i < first + n; i++) {
        const partial *p = &w->partials[i];
        if (field_of(p->key, CHARGE_AT, 6) - CHARGE_SPAN == s->charge && field_of(p->key, UNPAIRED_AT, 2) == s->unpaired &&
            p->cost < best) {
            best = p->cost;
            *last = i;
        }
    }
    return best < INT64_MAX ? CH_BONDING_OK : CH_BONDING_SHELL;
}

ch_bonding ch_bonding_solve(const ch_skeleton *s, uint8_t *order, int8_t *formal)
{
    search w = { .s = s };
    int32_t last = 0;
    ch_bonding end = allocate(&w) ? CH_BONDING_OK : CH_BONDING_MEMORY;

    if (end == CH_BONDING_OK) {
        list_bonds(&w);
        end = bound_orders(&w);
    }
    if (end == CH_BONDING_OK && !electrons_pair(s))
        end = CH_BONDING_PARITY;
    if (end == CH_BONDING_OK)
        end = assign(&w, &last);
    if (end == CH_BONDING_OK)
        write_result(&w, last, order, formal);
    release(&w);
    return end;
}
