/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/graph/graph.h"

#include <math.h>

#include "chem/graph/neighbour.h"

static const float APART = 0.01f; /* Angstrom: closer atoms coincide                    */
static const float FAR = 1e5f;    /* Angstrom: beyond this, float32 is too coarse for distances */

/* ---- checks ---- */

static pl_code check_opts(const ch_graph_opts *o, pl_error *err)
{
    if (ch_edges_within(o->edges) && !(o->cutoff > 0 && o->cutoff <= FAR))
        return pl_fail(err, PL_ECONFIG, "cutoff %g is not a distance", (double)o->cutoff);
    if (o->edges == CH_EDGES_KNN && o->k < 1)
        return pl_fail(err, PL_ECONFIG, "k %d is less than 1", o->k);
    if (o->max_neighbours < 0 || o->max_atoms < 0 || o->max_edges < 0)
        return pl_fail(err, PL_ECONFIG, "a graph option (max_neighbours, max_atoms or max_edges) is negative");
    return PL_OK;
}

static pl_code check_positions(const ch_mol *mol, pl_error *err)
{
    if (mol->xyz == NULL)
        return pl_fail(err, PL_EINPUT, "geometry: the molecule has no 3D positions");
    for (int32_t i = 0; i < mol->n_atoms; i++)
        for (int a = 0; a < 3; a++)
            if (!(fabsf(mol->xyz[i][a]) <= FAR))
                return pl_fail(err, PL_EINPUT, "geometry: atom %d has position %g", i + 1, (double)mol->xyz[i][a]);
    return PL_OK;
}

static pl_code check_mol(const ch_mol *mol, const ch_graph_opts *o, pl_error *err)
{
    int32_t max = o->max_atoms > 0 && o->max_atoms < CH_GRAPH_MAX_NODES ? o->max_atoms : CH_GRAPH_MAX_NODES;

    if (mol->n_atoms < 1)
        return pl_fail(err, PL_EINPUT, "atoms: the molecule has none");
    if (mol->n_atoms > max)
        return pl_fail(err, PL_EINPUT, "atoms: %d, more than max_atoms %d", mol->n_atoms, max);
    return o->edges == CH_EDGES_TOPOLOGY ? PL_OK : check_positions(mol, err);
}

/* ---- which edges ---- */

static pl_code bond_rows(ch_neighbours *out, const ch_mol *mol, pl_arena *mem, pl_error *err)
{
    int32_t n = mol->n_atoms, *fill = PL_NEW(mem, int32_t, n);
    pl_code code;

    out->n = n;
    out->row = PL_NEW(mem, int32_t, n + 1);
    if (fill == NULL || out->row == NULL)
        return pl_fail(err, PL_ENOMEM, "rows of a graph");
    for (int32_t b = 0; b < mol->n_bonds; b++)
        for (int side = 0; side < 2; side++)
            out->row[mol->bond[b][side] + 1]++;
    code = ch_near_rows(out, mem, err);
    /* Bonds are sorted, so the lower neighbours of an atom come in order, and so do the
     * higher ones: two passes fill each row in order. */
    for (int side = 0; code == PL_OK && side < 2; side++)
        for (int32_t b = 0; b < mol->n_bonds; b++) {
            int32_t to = mol->bond[b][1 - side];
            out->src[out->row[to] + fill[to]++] = (uint16_t)mol->bond[b][side];
        }
    return code;
}

static pl_code all_rows(ch_neighbours *out, int32_t n, pl_arena *mem, pl_error *err)
{
    pl_code code;

    out->n = n;
    out->row = PL_NEW(mem, int32_t, n + 1);
    if (out->row == NULL)
        return pl_fail(err, PL_ENOMEM, "rows of a graph");
    for (int32_t i = 0; i < n; i++)
        out->row[i + 1] = n - 1;
    code = ch_near_rows(out, mem, err);
    for (int32_t i = 0; code == PL_OK && i < n; i++)
        for (int32_t j = 0; j < n - 1; j++)
            out->src[out->row[i] + j] = (uint16_t)(j < i ? j : j + 1);
    return code;
}

/* Coinciding atoms are an error for every kind of edges, bonded or not. */
static pl_code check_apart(const ch_mol *mol, pl_arena *mem, pl_error *err)
{
    ch_neighbours near;

    return ch_near_radius(&near, (const float(*)[3])mol->xyz, mol->n_atoms, 2 * APART, APART, CH_NEIGHBOURS_MAX, mem, err);
}

static pl_code radius_rows(ch_neighbours *out, const ch_mol *mol, const ch_graph_opts *o, int64_t max, pl_arena *mem, pl_error *err)
{
    const float(*xyz)[3] = (const float(*)[3])mol->xyz;
    bool limited = o->max_neighbours > 0;
    pl_code code = ch_near_radius(out, xyz, mol->n_atoms, o->cutoff, APART, limited ? CH_NEIGHBOURS_MAX : max, mem, err);

    if (code == PL_OK && limited)
        code = ch_near_limit(out, xyz, o->max_neighbours, mem, err);
    return code;
}

/* The union of two ascending rows in `to`; returns its length. to NULL: only counts. */
static int32_t row_join(const ch_neighbours *a, const ch_neighbours *b, int32_t i, uint16_t *to)
{
    int32_t n = 0, j = a->row[i], k = b->row[i];

    while (j < a->row[i + 1] || k < b->row[i + 1]) {
        const uint16_t left = j < a->row[i + 1] ? a->src[j] : UINT16_MAX;
        const uint16_t right = k < b->row[i + 1] ? b->src[k] : UINT16_MAX;
        const uint16_t src = left < right ? left : right;
        if (to != NULL)
            to[n] = src;
        n++;
        j += left == src && j < a->row[i + 1];
        k += right == src && k < b->row[i + 1];
    }
    return n;
}

static pl_code joined_rows(ch_neighbours *out, const ch_mol *mol, const ch_graph_opts *o, int64_t max, pl_arena *mem, pl_error *err)
{
    ch_neighbours near = { 0 }, bonds = { 0 };
    pl_code code = radius_rows(&near, mol, o, max, mem, err);

    if (code == PL_OK)
        code = bond_rows(&bonds, mol, mem, err);
    if (code != PL_OK)
        return code;
    out->n = mol->n_atoms;
    out->row = PL_NEW(mem, int32_t, out->n + 1);
    if (out->row == NULL)
        return pl_fail(err, PL_ENOMEM, "rows of a graph");
    for (int32_t i = 0; i < out->n; i++)
        out->row[i + 1] = row_join(&near, &bonds, i, NULL);
    code = ch_near_rows(out, mem, err);
    for (int32_t i = 0; code == PL_OK && i < out->n; i++)
        (void)row_join(&near, &bonds, i, out->src + out->row[i]);
    return code;
}

/* Checks the limit before the lists are made: the number of edges of knn, full and bonds is known. */
static int64_t edges_ahead(const ch_mol *mol, const ch_graph_opts *o)
{
    int64_t n = mol->n_atoms;

    switch (o->edges) {
    case CH_EDGES_BONDS:
    case CH_EDGES_TOPOLOGY: return 2 * (int64_t)mol->n_bonds;
    case CH_EDGES_KNN: return n * (o->k < n - 1 ? o->k : n - 1);
    case CH_EDGES_FULL: return n * (n - 1);
    default: return 0;
    }
}

static pl_code choose_edges(ch_neighbours *out, const ch_mol *mol, const ch_graph_opts *o, pl_arena *mem, pl_error *err)
{
    int64_t max = o->max_edges > 0 && o->max_edges < CH_NEIGHBOURS_MAX ? o->max_edges : CH_NEIGHBOURS_MAX;
    pl_code code = PL_OK;

    if (edges_ahead(mol, o) > max)
        return pl_fail(err, PL_EINPUT, "edges: %lld, more than max_edges %lld", (long long)edges_ahead(mol, o), (long long)max);
    if (o->edges == CH_EDGES_RADIUS)
        code = radius_rows(out, mol, o, max, mem, err);
    else if (o->edges == CH_EDGES_BONDS_RADIUS)
        code = joined_rows(out, mol, o, max, mem, err);
    else if (o->edges != CH_EDGES_TOPOLOGY)
        code = check_apart(mol, mem, err);
    if (code == PL_OK && (o->edges == CH_EDGES_BONDS || o->edges == CH_EDGES_TOPOLOGY))
        code = bond_rows(out, mol, mem, err);
    if (code == PL_OK && o->edges == CH_EDGES_KNN)
        code = ch_near_knn(out, (const float(*)[3])mol->xyz, mol->n_atoms, o->k, mem, err);
    if (code == PL_OK && o->edges == CH_EDGES_FULL)
        code = all_rows(out, mol->n_atoms, mem, err);
    if (code == PL_OK && out->row[out->n] > max)
        code = pl_fail(err, PL_EINPUT, "edges: %d, more than max_edges %lld", out->row[out->n], (long long)max);
    return code;
}

/* ---- pairs ---- */

typedef struct build {
    ch_graph *g;
    int32_t *rev, *pair, *pair_edge, *dst_of_pair;
    uint8_t *type, *z;
    int8_t *charge;
    float (*vec)[3], *dist;
} build;

/* Rows are visited in the order of dst, so the entries `dst` of every other row are
 * needed in order too: one cursor per row finds all reverse edges in O(edges). */
static pl_code find_reverse(int32_t *rev, const ch_neighbours *nb, pl_arena *mem, pl_error *err)
{
    int32_t *cursor = PL_NEW(mem, int32_t, nb->n);

    if (cursor == NULL)
        return pl_fail(err, PL_ENOMEM, "reverse edges");
    for (int32_t i = 0; i < nb->n; i++)
        cursor[i] = nb->row[i];
    for (int32_t i = 0; i < nb->n; i++)
        for (int32_t e = nb->row[i]; e < nb->row[i + 1]; e++) {
            int32_t s = nb->src[e], *c = &cursor[s];
            while (*c < nb->row[s + 1] && nb->src[*c] < i)
                ++*c;
            rev[e] = *c < nb->row[s + 1] && nb->src[*c] == i ? *c : -1;
        }
    return PL_OK;
}

static int32_t number_pairs(const build *b, const ch_neighbours *nb)
{
    int32_t n_pairs = 0;

    for (int32_t i = 0; i < nb->n; i++)
        for (int32_t e = nb->row[i]; e < nb->row[i + 1]; e++)
            if (b->rev[e] < 0 || nb->src[e] < i) {
                b->pair_edge[n_pairs] = e;
                b->dst_of_pair[n_pairs] = i;
                b->pair[e] = n_pairs++;
            }
    for (int32_t e = 0; e < nb->row[nb->n]; e++)
        if (b->rev[e] >= 0 && b->pair_edge[b->pair[e]] != e)
            b->pair[e] = b->pair[b->rev[e]];
    return n_pairs;
}

static void measure_pairs(const build *b, const ch_neighbours *nb, const ch_mol *mol)
{
    for (int32_t p = 0; p < b->g->n_pairs; p++) {
        int32_t d = b->dst_of_pair[p], s = nb->src[b->pair_edge[p]];
        for (int a = 0; a < 3; a++)
            b->vec[p][a] = mol->xyz[d][a] - mol->xyz[s][a];
        b->dist[p] = ch_distance((const float(*)[3])mol->xyz, d, s);
        b->type[p] = CH_PAIR_NOT_BONDED;
    }
}

/* The edge s -> d, or -1: rows are sorted. */
static int32_t find_edge(const ch_neighbours *nb, int32_t s, int32_t d)
{
    int32_t lo = nb->row[d], hi = nb->row[d + 1];

    while (lo < hi) {
        int32_t mid = lo + (hi - lo) / 2;
        if (nb->src[mid] < s)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < nb->row[d + 1] && nb->src[lo] == s ? lo : -1;
}

static void mark_bonds(const build *b, const ch_neighbours *nb, const ch_mol *mol)
{
    for (int32_t k = 0; k < mol->n_bonds; k++) {
        int32_t e = find_edge(nb, mol->bond[k][0], mol->bond[k][1]);
        if (e < 0)
            e = find_edge(nb, mol->bond[k][1], mol->bond[k][0]);
        if (e >= 0)
            b->type[b->pair[e]] = mol->order[k] < CH_AROMATIC_SINGLE ? (uint8_t)(mol->order[k] - 1) : CH_PAIR_AROMATIC;
    }
}

/* ---- the complete graph ---- */

static pl_code build_alloc(build *b, int32_t n, int32_t n_edges, pl_arena *mem, pl_error *err)
{
    size_t e = (size_t)n_edges + 1; /* + 1: a single atom has no edges, and an allocation of 0 would be NULL */

    b->z = PL_NEW(mem, uint8_t, n);
    b->charge = PL_NEW(mem, int8_t, n);
    b->rev = PL_NEW(mem, int32_t, e);
    b->pair = PL_NEW(mem, int32_t, e);
    b->pair_edge = PL_NEW(mem, int32_t, e);
    b->dst_of_pair = PL_NEW(mem, int32_t, e);
    if (b->z == NULL || b->charge == NULL || b->rev == NULL || b->pair == NULL || b->pair_edge == NULL || b->dst_of_pair == NULL)
        return pl_fail(err, PL_ENOMEM, "a graph of %d edges", n_edges);
    return PL_OK;
}

static pl_code pairs_alloc(build *b, int32_t n_pairs, pl_arena *mem, pl_error *err)
{
    size_t p = (size_t)n_pairs + 1;

    b->type = PL_NEW(mem, uint8_t, p);
    b->vec = pl_arena_get(mem, p, sizeof *b->vec);
    b->dist = PL_NEW(mem, float, p);
    if (b->type == NULL || b->vec == NULL || b->dist == NULL)
        return pl_fail(err, PL_ENOMEM, "a graph of %d pairs", n_pairs);
    return PL_OK;
}

static void build_publish(const build *b, const ch_neighbours *nb, const ch_mol *mol)
{
    ch_graph *g = b->g;

    for (int32_t i = 0; i < nb->n; i++) {
        b->z[i] = mol->z[i];
        b->charge[i] = mol->charge[i];
    }
    g->z = b->z;
    g->charge = b->charge;
    g->row = nb->row;
    g->src = nb->src;
    g->rev = b->rev;
    g->pair = b->pair;
    g->pair_edge = b->pair_edge;
    g->type = b->type;
    g->vec = (const float(*)[3])b->vec;
    g->dist = b->dist;
}

pl_code ch_graph_build(ch_graph *out, const ch_mol *mol, const ch_graph_opts *opts, pl_arena *mem, pl_error *err)
{
    ch_neighbours nb = { 0 };
    build b = { .g = out };
    pl_code code = check_opts(opts, err);

    *out = (ch_graph){ 0 };
    if (code == PL_OK)
        code = check_mol(mol, opts, err);
    if (code == PL_OK)
        code = choose_edges(&nb, mol, opts, mem, err);
    if (code == PL_OK)
        code = build_alloc(&b, nb.n, nb.row[nb.n], mem, err);
    if (code == PL_OK)
        code = find_reverse(b.rev, &nb, mem, err);
    if (code != PL_OK)
        return code;
    out->n_nodes = nb.n;
    out->n_edges = nb.row[nb.n];
    out->n_pairs = number_pairs(&b, &nb);
    code = pairs_alloc(&b, out->n_pairs, mem, err);
    if (code != PL_OK)
        return code;
    if (opts->edges != CH_EDGES_TOPOLOGY) /* else all 0 */
        measure_pairs(&b, &nb, mol);
    mark_bonds(&b, &nb, mol);
    build_publish(&b, &nb, mol);
    return PL_OK;
}
