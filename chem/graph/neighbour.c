/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/graph/neighbour.h"

#include <math.h>
#include <string.h>

float ch_distance(const float (*xyz)[3], int32_t i, int32_t j)
{
    float x = xyz[i][0] - xyz[j][0], y = xyz[i][1] - xyz[j][1], z = xyz[i][2] - xyz[j][2];

    return (float)sqrt((double)x * x + (double)y * y + (double)z * z);
}

pl_code ch_near_rows(ch_neighbours *nb, pl_arena *mem, pl_error *err)
{
    for (int32_t i = 0; i < nb->n; i++)
        nb->row[i + 1] += nb->row[i];
    nb->src = PL_NEW(mem, uint16_t, nb->row[nb->n] + 1);
    return nb->src == NULL ? pl_fail(err, PL_ENOMEM, "edges of a graph") : PL_OK;
}

static pl_code rows_start(ch_neighbours *nb, int32_t n, pl_arena *mem, pl_error *err)
{
    nb->n = n;
    nb->row = PL_NEW(mem, int32_t, n + 1);
    return nb->row == NULL ? pl_fail(err, PL_ENOMEM, "rows of a graph") : PL_OK;
}

/* ---- cells ---- */

typedef struct cells {
    double lo[3], edge; /* corner of the box, edge of a cell       */
    int32_t dims[3];
    int32_t *cell_of; /* [n]                                     */
    int32_t *start;   /* [cells+1] atoms of c: atom[start[c]]... */
    int32_t *atom;    /* [n], ascending within a cell            */
} cells;

static void box_of(const float (*xyz)[3], int32_t n, double lo[3], double hi[3])
{
    for (int a = 0; a < 3; a++) {
        lo[a] = hi[a] = xyz[0][a];
        for (int32_t i = 1; i < n; i++) {
            lo[a] = fmin(lo[a], xyz[i][a]);
            hi[a] = fmax(hi[a], xyz[i][a]);
        }
    }
}

/* Cells are no smaller than the cutoff, and there are at most a few per atom, so that
 * atoms far apart do not need much memory. Returns the number of cells. */
static int32_t choose_cells(cells *c, const double hi[3], int32_t n)
{
    double total;

    for (;; c->edge *= 1.3) {
        total = 1;
        for (int a = 0; a < 3; a++) {
            double d = floor((hi[a] - c->lo[a]) / c->edge) + 1;
            total *= d;
            c->dims[a] = d < 1e6 ? (int32_t)d : 1000000;
        }
        if (total <= 4.0 * n + 64)
            return (int32_t)total;
    }
}

static int32_t cell_at(const cells *c, const float at[3])
{
    int32_t index = 0;

    for (int a = 0; a < 3; a++) {
        int32_t k = (int32_t)((at[a] - c->lo[a]) / c->edge);
        index = index * c->dims[a] + (k < c->dims[a] ? k : c->dims[a] - 1);
    }
    return index;
}

static pl_code cells_make(cells *c, const float (*xyz)[3], int32_t n, float cutoff, pl_arena *mem, pl_error *err)
{
    double hi[3];
    int32_t n_cells;

    box_of(xyz, n, c->lo, hi);
    c->edge = cutoff * 1.00001 + 1e-6; /* rounding must not push a neighbour two cells away */
    n_cells = choose_cells(c, hi, n);
    c->cell_of = PL_NEW(mem, int32_t, n);
    c->atom = PL_NEW(mem, int32_t, n);
    c->start = PL_NEW(mem, int32_t, n_cells + 2);
    if (c->cell_of == NULL || c->atom == NULL || c->start == NULL)
        return pl_fail(err, PL_ENOMEM, "cells of a graph");
    for (int32_t i = 0; i < n; i++) {
        c->cell_of[i] = cell_at(c, xyz[i]);
        c->start[c->cell_of[i] + 2]++;
    }
    for (int32_t k = 1; k < n_cells + 1; k++)
        c->start[k + 1] += c->start[k];
    for (int32_t i = 0; i < n; i++)
        c->atom[c->start[c->cell_of[i] + 1]++] = i;
    return PL_OK;
}

/* The cells around cell k, itself included: at most 27. */
static int around(const cells *c, int32_t k, int32_t out[27])
{
    int32_t at[3], n = 0;

    at[2] = k % c->dims[2];
    at[1] = k / c->dims[2] % c->dims[1];
    at[0] = k / c->dims[2] / c->dims[1];
    for (int step = 0; step < 27; step++) {
        int32_t x = at[0] + step / 9 - 1, y = at[1] + step / 3 % 3 - 1, z = at[2] + step % 3 - 1;
        if (x < 0 || y < 0 || z < 0 || x >= c->dims[0] || y >= c->dims[1] || z >= c->dims[2])
            continue;
        out[n++] = (x * c->dims[1] + y) * c->dims[2] + z;
    }
    return n;
}

/* ---- radius ---- */

typedef struct search {
    const cells *c;
    const float (*xyz)[3];
    float cutoff, apart;
} search;

/* Counts the atoms within the cutoff of i, or, if nb->src is allocated, appends i to the rows of
 * those atoms. *close: an atom that coincides with i, or -1. */
static int32_t visit(const search *s, int32_t i, ch_neighbours *nb, int32_t *fill, int32_t *close)
{
    int32_t near[27], n_near = around(s->c, s->c->cell_of[i], near), found = 0;

    for (int32_t k = 0; k < n_near; k++) {
        for (int32_t a = s->c->start[near[k]]; a < s->c->start[near[k] + 1]; a++) {
            int32_t j = s->c->atom[a];
            float d;
            if (j == i || !((d = ch_distance(s->xyz, i, j)) <= s->cutoff))
                continue;
            if (!(d >= s->apart))
                *close = j;
            if (nb->src != NULL)
                nb->src[nb->row[j] + fill[j]++] = (uint16_t)i;
            found++;
        }
    }
    return found;
}

pl_code ch_near_radius(ch_neighbours *out, const float (*xyz)[3], int32_t n, float cutoff, float apart, int64_t max_edges,
                       pl_arena *mem, pl_error *err)
{
    cells c;
    search s = { &c, xyz, cutoff, apart };
    int32_t *fill = PL_NEW(mem, int32_t, n), close = -1;
    int64_t total = 0;
    pl_code code = rows_start(out, n, mem, err);

    if (fill == NULL)
        code = pl_fail(err, PL_ENOMEM, "rows of a graph");
    if (code == PL_OK)
        code = cells_make(&c, xyz, n, cutoff, mem, err);
    if (code != PL_OK)
        return code;
    out->src = NULL;
    for (int32_t i = 0; i < n; i++) {
        total += out->row[i + 1] = visit(&s, i, out, fill, &close);
        if (close >= 0)
            return pl_fail(err, PL_EINPUT, "coincide: atoms %d and %d are closer than %g Angstrom", i + 1, close + 1,
                           (double)apart);
        if (total > max_edges)
            return pl_fail(err, PL_EINPUT, "edges: more than %lld within %g Angstrom", (long long)max_edges, (double)cutoff);
    }
    code = ch_near_rows(out, mem, err);
    for (int32_t i = 0; code == PL_OK && i < n; i++)
        visit(&s, i, out, fill, &close);
    return code;
}

/* ---- nearest ---- */

typedef struct best {
    float d;
    int32_t j;
} best;

static bool nearer(best a, best b) { return a.d < b.d || (a.d == b.d && a.j < b.j); }

/* Inserts into the sorted `list` of at most k entries. */
static int32_t keep_best(best *list, int32_t n, int32_t k, best x)
{
    int32_t at = n < k ? n : k - 1;

    if (n == k && !nearer(x, list[k - 1]))
        return n;
    for (; at > 0 && nearer(x, list[at - 1]); at--)
        list[at] = list[at - 1];
    list[at] = x;
    return n < k ? n + 1 : n;
}

static void sort_into(uint16_t *to, const best *list, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        int32_t at = i;
        for (; at > 0 && to[at - 1] > list[i].j; at--)
            to[at] = to[at - 1];
        to[at] = (uint16_t)list[i].j;
    }
}

pl_code ch_near_knn(ch_neighbours *out, const float (*xyz)[3], int32_t n, int32_t k, pl_arena *mem, pl_error *err)
{
    int32_t max = k < n - 1 ? k : n - 1;
    best *list = PL_NEW(mem, best, max + 1);
    pl_code code = rows_start(out, n, mem, err);

    if (list == NULL)
        code = pl_fail(err, PL_ENOMEM, "nearest atoms");
    for (int32_t i = 0; code == PL_OK && i < n; i++)
        out->row[i + 1] = max;
    if (code == PL_OK)
        code = ch_near_rows(out, mem, err);
    for (int32_t i = 0; code == PL_OK && i < n && max > 0; i++) {
        int32_t held = 0;
        for (int32_t j = 0; j < n; j++)
            if (j != i)
                held = keep_best(list, held, max, (best){ ch_distance(xyz, i, j), j });
        sort_into(out->src + out->row[i], list, held);
    }
    return code;
}

/* ---- limit ---- */

/* keep[e] = the source of e is among the `most` nearest of i. */
static void mark_nearest(const ch_neighbours *nb, const float (*xyz)[3], int32_t i, int32_t max, best *list, uint8_t *keep)
{
    int32_t held = 0;

    for (int32_t e = nb->row[i]; e < nb->row[i + 1]; e++)
        held = keep_best(list, held, max, (best){ ch_distance(xyz, i, nb->src[e]), nb->src[e] });
    for (int32_t e = nb->row[i]; held > 0 && e < nb->row[i + 1]; e++) {
        best x = { ch_distance(xyz, i, nb->src[e]), nb->src[e] };
        keep[e] = !nearer(list[held - 1], x);
    }
}

/* Both directions of an entry are in the list. Visiting the rows in order needs
 * the entries of every other row in order, so one cursor per row finds them. */
static void drop_unkept(ch_neighbours *nb, const uint8_t *keep, int32_t *cursor)
{
    int32_t to = 0, from = 0;

    memcpy(cursor, nb->row, (size_t)nb->n * sizeof *cursor);
    for (int32_t i = 0; i < nb->n; i++) {
        int32_t end = nb->row[i + 1];
        nb->row[i] = to;
        for (; from < end; from++) {
            uint16_t s = nb->src[from];
            int32_t back = cursor[s]++;
            if (keep[from] && keep[back])
                nb->src[to++] = s;
        }
    }
    nb->row[nb->n] = to;
}

pl_code ch_near_limit(ch_neighbours *nb, const float (*xyz)[3], int32_t max, pl_arena *mem, pl_error *err)
{
    uint8_t *keep = PL_NEW(mem, uint8_t, nb->row[nb->n] + 1);
    int32_t *cursor = PL_NEW(mem, int32_t, nb->n);
    best *list = PL_NEW(mem, best, max + 1);

    if (keep == NULL || cursor == NULL || list == NULL)
        return pl_fail(err, PL_ENOMEM, "nearest atoms");
    for (int32_t i = 0; i < nb->n; i++)
        mark_nearest(nb, xyz, i, max, list, keep);
    drop_unkept(nb, keep, cursor);
    return PL_OK;
}
