/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/structures/perceive.h"

#include "chem/molecule/element.h"

enum { H = 1, C = 6, N = 7, O = 8, P = 15, S = 16, CL = 17 };

pl_code ch_perceived_refuse(const ch_perceived *p, int32_t i, pl_error *err, const char *reason)
{
    return pl_fail(err, PL_EINPUT, "atom %d (%s): %s", i + 1, ch_element_symbol(p->z[i]), reason);
}

int32_t ch_perceived_bond(const ch_perceived *p, int32_t i, int32_t j)
{
    for (int k = 0; k < p->n_neighbours[i]; k++)
        if (p->neighbour[i][k] == j)
            return p->edge[i][k];
    return -1;
}

bool ch_perceived_terminal(const ch_perceived *p, int32_t i, int z) { return p->z[i] == z && p->n_neighbours[i] == 1; }

int ch_perceived_terminals(const ch_perceived *p, int32_t i, int z)
{
    int n = 0;
    for (int k = 0; k < p->n_neighbours[i]; k++)
        n += ch_perceived_terminal(p, p->neighbour[i][k], z);
    return n;
}

int32_t ch_perceived_partner(const ch_perceived *p, int32_t i, int order)
{
    for (int k = 0; k < p->n_neighbours[i]; k++)
        if (p->order[p->edge[i][k]] == order)
            return p->neighbour[i][k];
    return -1;
}

/* ---- neighbours ---- */

static pl_code arrays_make(ch_perceived *p, const ch_mol *mol, pl_arena *mem, pl_error *err)
{
    const size_t n = (size_t)mol->n_atoms;

    *p = (ch_perceived){ .n_atoms = mol->n_atoms, .n_bonds = mol->n_bonds, .z = mol->z, .bond = (const int32_t(*)[2])mol->bond };
    p->charge = PL_NEW(mem, int8_t, n);
    p->order = PL_NEW(mem, uint8_t, mol->n_bonds);
    p->n_neighbours = PL_NEW(mem, uint8_t, n);
    p->neighbour = pl_arena_get(mem, n, sizeof *p->neighbour);
    p->edge = pl_arena_get(mem, n, sizeof *p->edge);
    p->valence = PL_NEW(mem, uint8_t, n);
    p->ring_sizes = PL_NEW(mem, uint8_t, n);
    p->aromatic_bond = PL_NEW(mem, uint8_t, mol->n_bonds);
    p->max_rings = 2 * mol->n_atoms + 4;
    p->rings = PL_NEW(mem, ch_ring, p->max_rings);
    if (p->charge == NULL || p->order == NULL || p->n_neighbours == NULL || p->neighbour == NULL || p->edge == NULL ||
        p->valence == NULL || p->ring_sizes == NULL || p->aromatic_bond == NULL || p->rings == NULL)
        return pl_fail(err, PL_ENOMEM, "types of a molecule");
    return PL_OK;
}

/* mol->bond is sorted, so each list is ascending: first the smaller ones, then the larger. */
static pl_code neighbours_fill(ch_perceived *p, const ch_mol *mol, pl_error *err)
{
    for (int32_t b = 0; b < mol->n_bonds; b++) {
        p->order[b] = (uint8_t)ch_order_drawn(mol->order[b]);
        for (int side = 0; side < 2; side++) {
            const int32_t i = mol->bond[b][side];
            if (p->n_neighbours[i] == CH_MAX_NEIGHBOURS)
                return ch_perceived_refuse(p, i, err, "more than four neighbours");
            p->neighbour[i][p->n_neighbours[i]] = mol->bond[b][1 - side];
            p->edge[i][p->n_neighbours[i]++] = b;
            p->valence[i] = (uint8_t)(p->valence[i] + p->order[b]);
        }
    }
    for (int32_t i = 0; i < mol->n_atoms; i++)
        p->charge[i] = mol->charge[i];
    return PL_OK;
}

/* ---- one drawing of every group ---- */

/* Changes the order of a bond by one step, up or down. */
static void draw(ch_perceived *p, int32_t from, int32_t to, int step)
{
    const int32_t b = ch_perceived_bond(p, from, to);

    p->order[b] = (uint8_t)(p->order[b] + step);
    p->valence[from] = (uint8_t)(p->valence[from] + step);
    p->valence[to] = (uint8_t)(p->valence[to] + step);
}

static int32_t find_end(const ch_perceived *p, int32_t i, int z, int order)
{
    for (int k = 0; k < p->n_neighbours[i]; k++) {
        const int32_t j = p->neighbour[i][k];
        if (ch_perceived_terminal(p, j, z) && p->order[p->edge[i][k]] == order && p->charge[j] == 0)
            return j;
    }
    return -1;
}

/* Five bonds: an oxygen or a terminal nitrogen takes the electrons; four without a charge: the carbon of an isonitrile. */
static void nitrogen_separate(ch_perceived *p, int32_t i)
{
    int32_t j = -1;

    if (p->charge[i] != 0)
        return;
    if (p->valence[i] == 5) {
        j = find_end(p, i, O, 2);
        if (j < 0)
            j = find_end(p, i, N, 3);
    } else if (p->valence[i] == 4) {
        j = find_end(p, i, C, 3);
        if (j >= 0) {
            p->charge[i] = 1;
            p->charge[j] = -1;
        }
        return;
    }
    if (j < 0)
        return;
    draw(p, i, j, -1);
    p->charge[i] = 1;
    p->charge[j] = -1;
}

/* -N(-)-N(+)#N becomes -N=N(+)=N(-), and the same with a carbon. */
static void azide_turn(ch_perceived *p, int32_t i)
{
    const int32_t end = ch_perceived_partner(p, i, 3), start = ch_perceived_partner(p, i, 1);

    if (p->charge[i] != 1 || p->n_neighbours[i] != 2 || end < 0 || start < 0 || !ch_perceived_terminal(p, end, N) ||
        p->charge[end] != 0 || p->charge[start] != -1 || (p->z[start] != N && p->z[start] != C))
        return;
    draw(p, i, end, -1);
    draw(p, i, start, 1);
    p->charge[start] = 0;
    p->charge[end] = -1;
}

static void charges_join_with(ch_perceived *p, int32_t i, bool ends)
{
    const int max = p->z[i] == P ? 5 : 7;

    for (int k = 0; k < p->n_neighbours[i]; k++) {
        const int32_t j = p->neighbour[i][k];
        const bool is_end = ch_perceived_terminal(p, j, O) || ch_perceived_terminal(p, j, S);
        const bool joins = ends ? is_end : p->z[j] == N || p->z[j] == C;
        while (joins && p->charge[i] > 0 && p->charge[j] < 0 && p->valence[i] < max && p->order[p->edge[i][k]] < 3) {
            draw(p, i, j, 1);
            p->charge[i]--;
            p->charge[j]++;
        }
    }
}

/* S(+)-O(-) becomes S=O, P(+)-C(-) becomes P=C; ends of oxygen and sulfur come first. */
static void charges_join(ch_perceived *p, int32_t i)
{
    charges_join_with(p, i, true);
    charges_join_with(p, i, false);
}

/* N=S(=O)-O(-), as some draw the anion of a sulfonamide, becomes N(-)-S(=O)=O. */
static void sulfonamide_turn(ch_perceived *p, int32_t i)
{
    int32_t end = -1, n = -1;

    for (int k = 0; k < p->n_neighbours[i] && p->n_neighbours[i] == 4; k++) {
        const int32_t j = p->neighbour[i][k];
        if (ch_perceived_terminal(p, j, O) && p->charge[j] == -1)
            end = j;
        if (p->z[j] == N && p->n_neighbours[j] == 2 && p->order[p->edge[i][k]] == 2)
            n = j;
    }
    if (end < 0 || n < 0 || p->charge[n] != 0)
        return;
    draw(p, i, end, 1);
    draw(p, i, n, -1);
    p->charge[end] = 0;
    p->charge[n] = -1;
}

/* Some programs write the sulfur of a sulfoxide, S=O, with a charge of +2; the molecule is neutral. */
static void sulfoxide_clear(ch_perceived *p, int32_t i)
{
    if (p->z[i] == S && p->charge[i] == 2 && p->n_neighbours[i] == 3 && p->valence[i] == 4 && find_end(p, i, O, 2) >= 0)
        p->charge[i] = 0;
}

/* S(-)(=O)=O, as some draw the anion of a sulfinic acid, becomes S(=O)O(-). */
static void charge_outwards(ch_perceived *p, int32_t i)
{
    int32_t end = p->charge[i] == -1 && p->n_neighbours[i] == 3 && p->valence[i] == 5 ? find_end(p, i, O, 2) : -1;

    if (end < 0)
        return;
    draw(p, i, end, -1);
    p->charge[i] = 0;
    p->charge[end] = -1;
}

static void groups_draw(ch_perceived *p)
{
    for (int32_t i = 0; i < p->n_atoms; i++) {
        const int z = p->z[i];
        if (z == N) {
            nitrogen_separate(p, i);
            azide_turn(p, i);
        } else if (z == P || z == S || z == CL) {
            sulfoxide_clear(p, i);
            charges_join(p, i);
            charge_outwards(p, i);
            sulfonamide_turn(p, i);
        }
    }
}

/* ---- closed shells ---- */

/* Whether an atom of this charge may have this sum of bond orders; ions without bonds are looked at by their type. */
static bool shell_is_closed(int z, int charge, int valence)
{
    switch (z) {
    case H: return charge == 0 && valence == 1;
    case C: return (charge == 0 && valence == 4) || (charge == -1 && valence == 3);
    case N: return (charge >= -1 && charge <= 1 && valence == 3 + charge);
    case O: return (charge >= -1 && charge <= 1 && valence == 2 + charge);
    case P: return charge == 0 && (valence == 3 || valence == 5);
    case S: return (charge == 0 && (valence == 2 || valence == 4 || valence == 6)) || (charge == -1 && valence == 1);
    case CL: return charge == 0 && (valence == 1 || valence == 7);
    case 14: return charge == 0 && valence == 4;
    case 9:
    case 35:
    case 53: return charge == 0 && valence == 1;
    default: return false;
    }
}

static pl_code shells_check(const ch_perceived *p, pl_error *err)
{
    for (int32_t i = 0; i < p->n_atoms; i++) {
        if (p->n_neighbours[i] == 0 || shell_is_closed(p->z[i], p->charge[i], p->valence[i]))
            continue;
        return pl_fail(err, PL_EINPUT,
                       "atom %d (%s): MMFF94 has no type for %d neighbours, a sum of bond orders of %d and a charge of %d", i + 1,
                       ch_element_symbol(p->z[i]), p->n_neighbours[i], p->valence[i], p->charge[i]);
    }
    return PL_OK;
}

/* ---- rings ---- */

typedef struct {
    ch_perceived *p;
    pl_arena *mem;
    bool refused;
    const bool *chain; /* [n_atoms] in no ring */
    int32_t path[CH_LARGEST_RING];
} ring_search;

static void ring_keep(ring_search *s, int n)
{
    ch_perceived *p = s->p;

    if (p->n_rings == p->max_rings) {
        ch_ring *more = pl_arena_get(s->mem, 2 * (size_t)p->max_rings, sizeof *more);
        if (more == NULL) {
            s->refused = true;
            return;
        }
        for (int32_t r = 0; r < p->n_rings; r++)
            more[r] = p->rings[r];
        p->rings = more;
        p->max_rings *= 2;
    }
    ch_ring *ring = &p->rings[p->n_rings++];
    *ring = (ch_ring){ .size = n, .lone = -1 };
    for (int k = 0; k < n; k++) {
        ring->atom[k] = s->path[k];
        p->ring_sizes[s->path[k]] |= (uint8_t)(1u << n);
    }
}

/* Whether the atom has a bond to the path other than to its first and last atom. */
static bool cuts_short(const ring_search *s, int n, int32_t atom)
{
    for (int k = 1; k + 1 < n; k++)
        if (s->path[k] == atom || ch_perceived_bond(s->p, s->path[k], atom) >= 0)
            return true;
    return false;
}

/* Grows a path of n atoms; the first is the smallest of its ring, and the second smaller than the last. */
static void ring_grow(ring_search *s, int n)
{
    const int32_t first = s->path[0], last = s->path[n - 1];

    for (int k = 0; k < s->p->n_neighbours[last] && !s->refused; k++) {
        const int32_t next = s->p->neighbour[last][k];
        if (next <= first || s->chain[next] || (n >= 2 && next == s->path[n - 2]) || cuts_short(s, n, next))
            continue;
        s->path[n] = next;
        if (n >= 2 && ch_perceived_bond(s->p, first, next) >= 0) {
            if (s->path[1] < next)
                ring_keep(s, n + 1);
        } else if (n + 1 < CH_LARGEST_RING) {
            ring_grow(s, n + 1);
        }
    }
}

/* Marks the atoms that fall off when ends are taken away again and again. */
static pl_code chains_find(bool **out, const ch_perceived *p, pl_arena *mem, pl_error *err)
{
    bool *chain = PL_NEW(mem, bool, p->n_atoms);
    uint8_t *left = PL_NEW(mem, uint8_t, p->n_atoms);

    if (chain == NULL || left == NULL)
        return pl_fail(err, PL_ENOMEM, "rings of a molecule");
    for (int32_t i = 0; i < p->n_atoms; i++)
        left[i] = p->n_neighbours[i];
    for (int32_t first = 0; first < p->n_atoms; first++) {
        int32_t i = first;
        while (i >= 0 && !chain[i] && left[i] <= 1) {
            int32_t next = -1;
            chain[i] = true;
            for (int k = 0; k < p->n_neighbours[i]; k++)
                if (!chain[p->neighbour[i][k]]) {
                    next = p->neighbour[i][k];
                    left[next]--;
                }
            i = next;
        }
    }
    *out = chain;
    return PL_OK;
}

static pl_code rings_find(ch_perceived *p, pl_arena *mem, pl_error *err)
{
    bool *chain = NULL;
    const pl_code code = chains_find(&chain, p, mem, err);
    ring_search s = { .p = p, .mem = mem, .chain = chain };

    if (code != PL_OK || chain == NULL)
        return code;
    for (int32_t i = 0; i < p->n_atoms && !s.refused; i++)
        if (!chain[i]) {
            s.path[0] = i;
            ring_grow(&s, 1);
        }
    return s.refused ? pl_fail(err, PL_ENOMEM, "rings of a molecule") : PL_OK;
}

/* ---- aromatic rings ---- */

static bool gives_lone_pair(const ch_perceived *p, int32_t i)
{
    if (p->z[i] == N)
        return (p->charge[i] == 0 && p->n_neighbours[i] == 3 && p->valence[i] == 3) ||
               (p->charge[i] == -1 && p->n_neighbours[i] == 2);
    return (p->z[i] == O || p->z[i] == S) && p->charge[i] == 0 && p->n_neighbours[i] == 2 && p->valence[i] == 2;
}

/* What an atom gives to the pi electrons of a ring through its double bond; 0: it has none that counts. */
static int double_bond_electrons(const ch_perceived *p, const ch_ring *ring, int place)
{
    const int32_t i = ring->atom[place], before = ring->atom[(place + ring->size - 1) % ring->size];
    const int32_t after = ring->atom[(place + 1) % ring->size], partner = ch_perceived_partner(p, i, 2);

    if (partner < 0 || p->n_neighbours[i] > 3 || (p->z[i] != C && p->z[i] != N && p->z[i] != O))
        return 0;
    if (partner == before || partner == after)
        return 1;
    return p->aromatic_bond[ch_perceived_bond(p, i, partner)] != 0;
}

static bool ring_is_aromatic(const ch_perceived *p, ch_ring *ring)
{
    int electrons = 0, lone = -1;

    for (int k = 0; k < ring->size; k++) {
        const int given = double_bond_electrons(p, ring, k);
        electrons += given;
        if (given > 0)
            continue;
        if (lone >= 0 || ring->size != 5 || !gives_lone_pair(p, ring->atom[k]))
            return false;
        lone = k;
        electrons += 2;
    }
    ring->lone = lone;
    return electrons == 6;
}

static void aromatic_find(ch_perceived *p)
{
    bool found = true;

    while (found) {
        found = false;
        for (int32_t r = 0; r < p->n_rings; r++) {
            ch_ring *ring = &p->rings[r];
            if (ring->aromatic || ring->size < 5 || !ring_is_aromatic(p, ring))
                continue;
            ring->aromatic = found = true;
            for (int k = 0; k < ring->size; k++)
                p->aromatic_bond[ch_perceived_bond(p, ring->atom[k], ring->atom[(k + 1) % ring->size])] |=
                    (uint8_t)(1u << ring->size);
        }
    }
}

pl_code ch_perceive(ch_perceived *out, const ch_mol *mol, pl_arena *mem, pl_error *err)
{
    pl_code code = ch_mol_check(mol, err);

    if (code == PL_OK)
        code = arrays_make(out, mol, mem, err);
    if (code == PL_OK)
        code = neighbours_fill(out, mol, err);
    if (code != PL_OK)
        return code;
    groups_draw(out);
    code = shells_check(out, err);
    if (code == PL_OK)
        code = rings_find(out, mem, err);
    if (code == PL_OK)
        aromatic_find(out);
    return code;
}
