/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/explain/same_atoms.h"

#include <stdbool.h>
#include <string.h>

enum { TRIES = 1000000 };

/* A molecule as neighbour lists, and a number for each atom that depends on what is around it. */
typedef struct around {
    const ch_mol *mol;
    int32_t *row, *to; /* [n + 1], [2 n_bonds] */
    uint8_t *order;    /* [2 n_bonds] */
    uint64_t *colour, *next;
} around;

typedef struct search {
    around a, b;
    int32_t *to, *order, *from; /* order [n]: atoms of a, each behind a neighbour, from [n], where there is one */
    bool *used;
    int32_t n, tries;
} search;

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 31)) * 0x9E3779B97F4A7C15ULL;
    x = (x ^ (x >> 29)) * 0xBF58476D1CE4E5B9ULL;
    return x ^ (x >> 32);
}

static void lists_fill(around *r)
{
    const ch_mol *m = r->mol;
    int32_t *at = r->row;

    for (int32_t k = 0; k < m->n_bonds; k++)
        for (int s = 0; s < 2; s++)
            at[m->bond[k][s] + 1]++;
    for (int32_t i = 0; i < m->n_atoms; i++)
        at[i + 1] += at[i];
    for (int32_t k = m->n_bonds - 1; k >= 0; k--)
        for (int s = 0; s < 2; s++) {
            const int32_t e = --at[m->bond[k][s] + 1];
            r->to[e] = m->bond[k][1 - s];
            r->order[e] = m->order[k];
        }
    memmove(at, at + 1, (size_t)m->n_atoms * sizeof *at);
    at[m->n_atoms] = 2 * m->n_bonds;
}

/* Repeated until it has seen the whole of a usual molecule; the search finds what is left. */
static void colours_fill(around *r)
{
    const ch_mol *m = r->mol;

    for (int32_t i = 0; i < m->n_atoms; i++)
        r->colour[i] = mix((uint64_t)m->z[i] << 40 | (uint64_t)(uint8_t)m->charge[i] << 32 |
                           (uint64_t)(m->isotope != NULL ? m->isotope[i] : 0));
    for (int round = 0; round < 32; round++) {
        for (int32_t i = 0; i < m->n_atoms; i++) {
            uint64_t sum = 0;
            for (int32_t e = r->row[i]; e < r->row[i + 1]; e++)
                sum += mix(r->colour[r->to[e]] + r->order[e] + 1);
            r->next[i] = mix(r->colour[i] + mix(sum));
        }
        memcpy(r->colour, r->next, (size_t)m->n_atoms * sizeof *r->colour);
    }
}

static bool around_make(around *r, const ch_mol *m, pl_arena *mem)
{
    const size_t n = (size_t)m->n_atoms + 2, ends = 2 * (size_t)m->n_bonds + 1;

    *r = (around){ .mol = m,
                   .row = PL_NEW(mem, int32_t, n),
                   .to = PL_NEW(mem, int32_t, ends),
                   .order = PL_NEW(mem, uint8_t, ends),
                   .colour = PL_NEW(mem, uint64_t, n),
                   .next = PL_NEW(mem, uint64_t, n) };
    if (r->row == NULL || r->to == NULL || r->order == NULL || r->colour == NULL || r->next == NULL)
        return false;
    lists_fill(r);
    colours_fill(r);
    return true;
}

/* The atoms that are not hydrogen, part by part. */
static void order_fill(search *s)
{
    const ch_mol *m = s->a.mol;
    bool *seen = s->used;

    for (int32_t i = 0; i < m->n_atoms; i++) {
        int32_t next = s->n;
        if (seen[i] || m->z[i] == 1)
            continue;
        seen[i] = true;
        s->from[s->n] = -1;
        s->order[s->n++] = i;
        for (; next < s->n; next++)
            for (int32_t e = s->a.row[s->order[next]]; e < s->a.row[s->order[next] + 1]; e++) {
                const int32_t to = s->a.to[e];
                if (seen[to] || m->z[to] == 1)
                    continue;
                seen[to] = true;
                s->from[s->n] = s->order[next];
                s->order[s->n++] = to;
            }
    }
    memset(s->used, 0, (size_t)m->n_atoms * sizeof *s->used);
}

static int bond_between(const around *r, int32_t i, int32_t k)
{
    for (int32_t e = r->row[i]; e < r->row[i + 1]; e++)
        if (r->to[e] == k)
            return r->order[e];
    return -1;
}

/* Whether atom i of a can be atom k of b beside those that are found. */
static bool fits(const search *s, int32_t i, int32_t k)
{
    if (s->used[k] || s->a.colour[i] != s->b.colour[k])
        return false;
    for (int32_t e = s->a.row[i]; e < s->a.row[i + 1]; e++) {
        const int32_t other = s->to[s->a.to[e]];
        if (other >= 0 && bond_between(&s->b, k, other) != s->a.order[e])
            return false;
    }
    return true;
}

static bool place(search *s, int32_t at);

static bool place_as(search *s, int32_t at, int32_t k)
{
    const int32_t i = s->order[at];

    if (s->tries++ > TRIES || !fits(s, i, k))
        return false;
    s->to[i] = k;
    s->used[k] = true;
    if (place(s, at + 1))
        return true;
    s->to[i] = -1;
    s->used[k] = false;
    return false;
}

static bool place(search *s, int32_t at)
{
    if (at == s->n)
        return true;
    if (s->from[at] < 0) {
        for (int32_t k = 0; k < s->b.mol->n_atoms; k++)
            if (place_as(s, at, k))
                return true;
        return false;
    }
    const int32_t beside = s->to[s->from[at]];
    for (int32_t e = s->b.row[beside]; e < s->b.row[beside + 1]; e++)
        if (place_as(s, at, s->b.to[e]))
            return true;
    return false;
}

pl_code st_same_atoms(int32_t *to, const ch_mol *a, const ch_mol *b, pl_arena *mem, pl_error *err)
{
    search s = { .to = to,
                 .order = PL_NEW(mem, int32_t, a->n_atoms + 1),
                 .from = PL_NEW(mem, int32_t, a->n_atoms + 1),
                 .used = PL_NEW(mem, bool, a->n_atoms + 1) };

    if (s.order == NULL || s.from == NULL || s.used == NULL || !around_make(&s.a, a, mem) || !around_make(&s.b, b, mem))
        return pl_fail(err, PL_ENOMEM, "the atoms of a molecule");
    for (int32_t i = 0; i < a->n_atoms; i++)
        to[i] = -1;
    order_fill(&s);
    if (a->n_atoms != b->n_atoms || a->n_bonds != b->n_bonds || !place(&s, 0))
        return pl_fail(err, PL_EINPUT, "its atoms are not those of its SMILES");
    return PL_OK;
}
