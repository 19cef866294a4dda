/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/fingerprint/scaffold_smiles.h"

#include <stdlib.h>
#include <string.h>

#include "chem/fingerprint/scaffold_parts.h"
#include "chem/molecule/element.h"
#include "pipeline/base/rng.h"
#include "pipeline/base/text.h"

enum { AROMATIC = 4, DIGITS = 100, NONE = -1 };

/* The kept atoms are numbered 0..n-1; bonds of atom i are bond[row[i]] .. bond[row[i+1]-1], in the order in which they are written. */
typedef struct piece {
    const ch_mol *mol;
    ch_frame *frame;
    int32_t n, m;
    int32_t *atom;          /* [n]    number in mol                                */
    int32_t *row;           /* [n+2]                                               */
    int32_t *bond, *to;     /* [2m]   bond of mol, the atom at its other end       */
    int32_t *hydrogens;     /* [n]    those that the scaffold has there            */
    bool *aromatic;         /* [n]                                                 */
    uint64_t *link;         /* [2m]   colour of the bond                           */
    uint64_t *colour;       /* [n]                                                 */
    uint64_t *next, *order; /* [n]    for refinement                               */
    int32_t *parent;        /* [n]    bond by which the search came; NONE: none    */
    int32_t *place;         /* [n]    order of the visits from 1, 0: not visited   */
    int32_t *at, *stack;    /* [n]    of the search                                */
    int32_t *digit;         /* [bonds of mol] ring closure; 0: none, NONE: not open */
} piece;

static int order_class(int order) { return order < CH_AROMATIC_SINGLE ? order : AROMATIC; }

static bool piece_alloc(piece *p, ch_frame *f, int32_t n, int32_t m, pl_arena *mem)
{
    const ch_mol *mol = f->mol;

    *p = (piece){ .mol = mol,
                  .frame = f,
                  .n = n,
                  .m = m,
                  .atom = PL_NEW(mem, int32_t, n),
                  .row = PL_NEW(mem, int32_t, n + 2),
                  .bond = PL_NEW(mem, int32_t, 2 * (int64_t)m + 1),
                  .to = PL_NEW(mem, int32_t, 2 * (int64_t)m + 1),
                  .hydrogens = PL_NEW(mem, int32_t, n),
                  .aromatic = PL_NEW(mem, bool, n),
                  .link = PL_NEW(mem, uint64_t, 2 * (int64_t)m + 1),
                  .colour = PL_NEW(mem, uint64_t, n),
                  .next = PL_NEW(mem, uint64_t, n),
                  .order = PL_NEW(mem, uint64_t, n),
                  .parent = PL_NEW(mem, int32_t, n),
                  .place = PL_NEW(mem, int32_t, n),
                  .at = PL_NEW(mem, int32_t, n),
                  .stack = PL_NEW(mem, int32_t, n + 1),
                  .digit = PL_NEW(mem, int32_t, mol->n_bonds + 1) };
    return p->atom != NULL && p->row != NULL && p->bond != NULL && p->to != NULL && p->hydrogens != NULL && p->aromatic != NULL &&
           p->link != NULL && p->colour != NULL && p->next != NULL && p->order != NULL && p->parent != NULL && p->place != NULL &&
           p->at != NULL && p->stack != NULL && p->digit != NULL;
}

static bool joins_kept(const ch_frame *f, int32_t b) { return f->kept[f->mol->bond[b][0]] && f->kept[f->mol->bond[b][1]]; }

/* number[i]: the number of atom i of the molecule in the piece. A bond to an atom that is cut off becomes as many hydrogens. */
static void count_hydrogens(piece *p, const ch_frame *f, const int32_t *number)
{
    const ch_mol *mol = p->mol;

    for (int32_t b = 0; b < mol->n_bonds; b++)
        for (int k = 0; k < 2; k++) {
            const int32_t i = mol->bond[b][k], j = mol->bond[b][!k];
            if (f->kept[i] && !f->kept[j])
                p->hydrogens[number[i]] += mol->z[j] == 1 ? 1 : ch_order_drawn(mol->order[b]);
        }
}

static void piece_fill(piece *p, const ch_frame *f, const int32_t *number)
{
    const ch_mol *mol = p->mol;

    for (int32_t b = 0; b < mol->n_bonds; b++)
        for (int k = 0; k < 2 && joins_kept(f, b); k++)
            p->row[number[mol->bond[b][k]] + 2]++;
    for (int32_t i = 0; i < p->n; i++)
        p->row[i + 2] += p->row[i + 1]; /* row[i + 1] runs from the first to the last of i */
    for (int32_t b = 0; b < mol->n_bonds; b++) {
        const uint64_t link = pl_splitmix64(100 * (uint64_t)order_class(mol->order[b]));
        for (int k = 0; k < 2 && joins_kept(f, b); k++) {
            const int32_t i = number[mol->bond[b][k]], at = p->row[i + 1]++;
            p->bond[at] = b;
            p->to[at] = number[mol->bond[b][!k]];
            p->link[at] = link;
            p->aromatic[i] |= mol->order[b] >= CH_AROMATIC_SINGLE;
        }
    }
    count_hydrogens(p, f, number);
}

static pl_code piece_make(piece *p, ch_frame *f, pl_arena *mem, pl_error *err)
{
    const ch_mol *mol = f->mol;
    int32_t *number = PL_NEW(mem, int32_t, mol->n_atoms + 1), n = 0, m = 0;

    if (number == NULL)
        return pl_fail(err, PL_ENOMEM, "a scaffold");
    for (int32_t i = 0; i < mol->n_atoms; i++)
        number[i] = f->kept[i] ? n++ : NONE;
    for (int32_t b = 0; b < mol->n_bonds; b++)
        m += joins_kept(f, b);
    if (!piece_alloc(p, f, n, m, mem))
        return pl_fail(err, PL_ENOMEM, "a scaffold");
    for (int32_t i = 0; i < mol->n_atoms; i++)
        if (f->kept[i])
            p->atom[number[i]] = i;
    piece_fill(p, f, number);
    return PL_OK;
}

/* ---- the order of the atoms ------------------------------------------------- */

static int32_t degree(const piece *p, int32_t i) { return p->row[i + 1] - p->row[i]; }

/* Chain ends come first, so that branches are short. */
static void colour_first(piece *p)
{
    const ch_mol *mol = p->mol;

    for (int32_t i = 0; i < p->n; i++) {
        const int32_t a = p->atom[i];
        p->colour[i] = pl_splitmix64(mol->z[a] + 1000 * (uint64_t)(mol->charge[a] + 128) + 1000000 * (uint64_t)p->hydrogens[i] +
                                     (p->aromatic[i] ? 500 : 0));
    }
}

static int by_size(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Sorts a copy of the colours into `order`; insertion, as most scaffolds have 20 atoms. Returns how many colours there are. */
static int32_t count_colours(piece *p)
{
    int32_t n = p->n > 0;

    memcpy(p->order, p->colour, (size_t)p->n * sizeof *p->order);
    if (p->n > 64)
        qsort(p->order, (size_t)p->n, sizeof *p->order, by_size);
    for (int32_t i = 1; i < p->n && p->n <= 64; i++) {
        const uint64_t x = p->order[i];
        int32_t k = i;
        for (; k > 0 && p->order[k - 1] > x; k--)
            p->order[k] = p->order[k - 1];
        p->order[k] = x;
    }
    for (int32_t i = 1; i < p->n; i++)
        n += p->order[i] != p->order[i - 1];
    return n;
}

/* Hashes each atom with its neighbours until the number of colours stays. Returns that number. */
static int32_t refine(piece *p)
{
    int32_t n = count_colours(p), before = 0;

    while (n > before && n < p->n) {
        before = n;
        for (int32_t i = 0; i < p->n; i++) {
            uint64_t sum = 0;
            for (int32_t k = p->row[i]; k < p->row[i + 1]; k++)
                sum += pl_splitmix64(p->colour[p->to[k]] ^ p->link[k]);
            p->next[i] = pl_splitmix64(p->colour[i] + 3 * sum);
        }
        memcpy(p->colour, p->next, (size_t)p->n * sizeof *p->next);
        n = count_colours(p);
    }
    return n;
}

static bool is_connected(piece *p)
{
    int32_t n = 0, seen = 1;

    p->stack[n++] = 0;
    p->place[0] = 1;
    while (n > 0) {
        const int32_t i = p->stack[--n];
        for (int32_t k = p->row[i]; k < p->row[i + 1]; k++)
            if (p->place[p->to[k]] == 0) {
                p->place[p->to[k]] = 1;
                p->stack[n++] = p->to[k];
                seen++;
            }
    }
    memset(p->place, 0, (size_t)p->n * sizeof *p->place);
    return seen == p->n;
}

/* Branching atoms that have the same colour may still differ: in cages such as cuneane only by the rings that they are in. Where all
 * branching atoms have colours of their own, atoms of the same colour lie in equal chains between them, or in rings of their own. */
static bool may_differ(piece *p)
{
    if (!is_connected(p))
        return true;
    for (int32_t k = 1; k < p->n; k++)
        for (int32_t i = 0; p->order[k] == p->order[k - 1] && i < p->n; i++)
            if (p->colour[i] == p->order[k] && degree(p, i) > 2)
                return true;
    return false;
}

static void add_ring_sizes(piece *p)
{
    for (int32_t i = 0; i < p->n; i++)
        for (int32_t k = p->row[i]; k < p->row[i + 1]; k++)
            if (p->to[k] > i) {
                const int32_t j = p->to[k];
                const uint64_t size = (uint64_t)ch_frame_ring(p->frame, p->bond[k]);
                int32_t back = p->row[j];
                while (p->bond[back] != p->bond[k])
                    back++;
                p->link[k] = p->link[back] = pl_splitmix64(p->link[k] + size);
            }
}

/* Gives every atom its own colour: of the smallest colour that several atoms have, the first atom gets another. */
static void break_ties(piece *p)
{
    int32_t n = refine(p);

    if (n < p->n && may_differ(p)) {
        add_ring_sizes(p);
        n = refine(p);
    }
    while (n < p->n) {
        int32_t k = 1, i = 0;
        while (p->order[k] != p->order[k - 1])
            k++;
        while (p->colour[i] != p->order[k])
            i++;
        p->colour[i] = pl_splitmix64(p->colour[i] + 1);
        n = refine(p);
    }
}

/* ---- writing --------------------------------------------------------------- */

/* Of two neighbours the one to be written first: chain ends, then by colour. */
static bool comes_first(const piece *p, int32_t i, int32_t j)
{
    const bool a = degree(p, i) == 1, b = degree(p, j) == 1;

    return a != b ? a : p->colour[i] < p->colour[j];
}

static void sort_neighbours(piece *p, int32_t i)
{
    for (int32_t k = p->row[i] + 1; k < p->row[i + 1]; k++)
        for (int32_t q = k; q > p->row[i] && comes_first(p, p->to[q], p->to[q - 1]); q--) {
            const int32_t bond = p->bond[q], to = p->to[q];
            p->bond[q] = p->bond[q - 1];
            p->to[q] = p->to[q - 1];
            p->bond[q - 1] = bond;
            p->to[q - 1] = to;
        }
}

/* Depth-first from atom `from`: the bonds that lead back to a visited atom close rings. Returns the last place. */
static int32_t find_rings(piece *p, int32_t from, int32_t count)
{
    int32_t n = 0;

    p->stack[n++] = from;
    p->parent[from] = NONE;
    p->place[from] = ++count;
    while (n > 0) {
        const int32_t i = p->stack[n - 1], k = p->row[i] + p->at[i]++;
        if (k >= p->row[i + 1]) {
            n--;
        } else if (p->place[p->to[k]] == 0) {
            p->parent[p->to[k]] = p->bond[k];
            p->place[p->to[k]] = ++count;
            p->stack[n++] = p->to[k];
        } else if (p->bond[k] != p->parent[i]) {
            p->digit[p->bond[k]] = NONE;
        }
    }
    return count;
}

/* The hydrogens that a reader gives an atom without brackets; -1: such atoms are always in brackets. */
static int32_t usual_hydrogens(const piece *p, int32_t i)
{
    static const struct {
        uint8_t z, least, step, most;
    } bare[] = { { 5, 3, 0, 3 },  { 6, 4, 0, 4 },  { 7, 3, 2, 5 },  { 8, 2, 0, 2 },  { 9, 1, 0, 1 },
                 { 15, 3, 2, 5 }, { 16, 2, 2, 6 }, { 17, 1, 0, 1 }, { 35, 1, 0, 1 }, { 53, 1, 0, 1 } };
    const int32_t z = p->mol->z[p->atom[i]];
    int32_t bonds = p->aromatic[i] && z == 6;

    for (int32_t k = p->row[i]; k < p->row[i + 1]; k++)
        bonds += p->mol->order[p->bond[k]] < CH_AROMATIC_SINGLE ? p->mol->order[p->bond[k]] : 1;
    if (p->mol->charge[p->atom[i]] != 0)
        return -1;
    if (p->aromatic[i] && z != 6)
        return z == 5 || z == 7 || z == 8 || z == 15 || z == 16 ? 0 : -1;
    for (size_t e = 0; e < sizeof bare / sizeof *bare; e++) {
        int32_t valence = bare[e].least;
        if (bare[e].z != z)
            continue;
        while (valence < bonds && valence < bare[e].most)
            valence += bare[e].step;
        return valence > bonds ? valence - bonds : 0;
    }
    return -1;
}

static void write_atom(const piece *p, int32_t i, pl_text *out)
{
    const int32_t a = p->atom[i], h = p->hydrogens[i];
    const int8_t charge = p->mol->charge[a];
    const char *symbol = ch_element_symbol(p->mol->z[a]);
    const bool brackets = usual_hydrogens(p, i) != h;
    char name[3] = { symbol[0], symbol[1], '\0' };

    if (p->aromatic[i])
        name[0] = (char)(name[0] - 'A' + 'a');
    pl_text_add(out, brackets ? "[" : "");
    pl_text_add(out, name);
    if (!brackets)
        return;
    if (h > 0)
        pl_text_addf(out, h > 1 ? "H%d" : "H", (int)h);
    if (charge != 0)
        pl_text_add(out, charge > 0 ? "+" : "-");
    if (charge > 1 || charge < -1)
        pl_text_addf(out, "%d", (int)(charge > 0 ? charge : -charge));
    pl_text_add(out, "]");
}

static void write_bond(const piece *p, int32_t b, int32_t i, int32_t j, pl_text *out)
{
    const int order = p->mol->order[b];

    if (order == CH_DOUBLE || order == CH_TRIPLE)
        pl_text_add(out, order == CH_DOUBLE ? "=" : "#");
    else if (order == CH_SINGLE && p->aromatic[i] && p->aromatic[j])
        pl_text_add(out, "-");
}

static void write_digit(pl_text *out, int32_t digit)
{
    const char one = (char)('0' + digit % 10);

    if (digit < 10)
        pl_text_add_n(out, &one, 1);
    else
        pl_text_addf(out, "%%%d", (int)digit);
}

/* Ring bonds of atom i: those that end here, then those that begin. Digits that end here are free for later atoms. */
static void write_digits(piece *p, int32_t i, bool used[DIGITS], pl_text *out)
{
    int32_t ended[DIGITS], n = 0;

    for (int32_t k = p->row[i]; k < p->row[i + 1]; k++)
        if (p->digit[p->bond[k]] > 0 && n < DIGITS)
            write_digit(out, ended[n++] = p->digit[p->bond[k]]);
    for (int32_t k = p->row[i]; k < p->row[i + 1]; k++) {
        int32_t d = 1;
        if (p->digit[p->bond[k]] != NONE)
            continue;
        while (d < DIGITS - 1 && used[d])
            d++;
        used[d] = true;
        p->digit[p->bond[k]] = d;
        write_bond(p, p->bond[k], i, p->to[k], out);
        write_digit(out, d);
    }
    while (n > 0)
        used[ended[--n]] = false;
}

/* The bond is one by which the search went on from atom i. */
static bool leads_on(const piece *p, int32_t i, int32_t k)
{
    return p->parent[p->to[k]] == p->bond[k] && p->place[p->to[k]] > p->place[i];
}

static bool is_last(const piece *p, int32_t i, int32_t k)
{
    for (int32_t q = k + 1; q < p->row[i + 1]; q++)
        if (leads_on(p, i, q))
            return false;
    return true;
}

/* at[i]: the next bond of atom i; a branch that is not the last of its atom stands in parentheses. */
static void write_from(piece *p, int32_t from, pl_text *out)
{
    bool used[DIGITS] = { false };
    int32_t n = 0;

    memset(p->at, 0, (size_t)p->n * sizeof *p->at);
    write_atom(p, from, out);
    write_digits(p, from, used, out);
    p->stack[n++] = from;
    while (n > 0) {
        const int32_t i = p->stack[n - 1], k = p->row[i] + p->at[i]++;
        if (k >= p->row[i + 1]) {
            n--;
            if (n > 0 && !is_last(p, p->stack[n - 1], p->row[p->stack[n - 1]] + p->at[p->stack[n - 1]] - 1))
                pl_text_add(out, ")");
            continue;
        }
        if (!leads_on(p, i, k))
            continue;
        pl_text_add(out, is_last(p, i, k) ? "" : "(");
        write_bond(p, p->bond[k], i, p->to[k], out);
        write_atom(p, p->to[k], out);
        write_digits(p, p->to[k], used, out);
        p->stack[n++] = p->to[k];
    }
}

/* The first atom that is not written yet: a chain end if there is one. NONE: all are written. */
static int32_t first_atom(const piece *p)
{
    int32_t best = NONE;

    for (int32_t i = 0; i < p->n; i++)
        if (p->place[i] == 0 && (best == NONE || comes_first(p, i, best)))
            best = i;
    return best;
}

static void write_all(piece *p, pl_text *out)
{
    int32_t count = 0;

    for (int32_t i = 0; i < p->n; i++)
        sort_neighbours(p, i);
    for (int32_t from = first_atom(p); from != NONE; from = first_atom(p)) {
        pl_text_add(out, count > 0 ? "." : "");
        count = find_rings(p, from, count);
        write_from(p, from, out);
    }
}

pl_code ch_scaffold_smiles(const char **out, const ch_mol *mol, pl_arena *mem, pl_error *err)
{
    ch_frame f;
    piece p;
    pl_text text = { 0 };
    int32_t stay = 0;
    pl_code code = ch_frame_make(&f, &stay, mol, mem, err);

    *out = "";
    if (code != PL_OK || stay == 0)
        return code;
    code = piece_make(&p, &f, mem, err);
    if (code != PL_OK)
        return code;
    colour_first(&p);
    break_ties(&p);
    write_all(&p, &text);
    *out = pl_text_ok(&text) ? pl_strdup(mem, pl_text_str(&text)) : NULL;
    pl_text_free(&text);
    return *out != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "a scaffold");
}
