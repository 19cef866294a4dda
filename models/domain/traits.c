/* SPDX-License-Identifier: Apache-2.0 */
/* What a graph says of its molecule as a whole. */
#include <string.h>

#include "models/domain/range.h"

static const char *const sources[NN_SOURCES] = { "input", "mmff94", "uff", "none" };

nn_source nn_source_of(const char *geometry)
{
    int k = 0;

    while (k < NN_SOURCE_NONE && (geometry == NULL || strcmp(geometry, sources[k]) != 0))
        k++;
    return (nn_source)k;
}

typedef struct walk {
    const ch_graph *g;
    int32_t *root;        /* [n] of the fragment                                 */
    int32_t *far, *queue; /* [n] bonds from the start, -1: not reached; [n]      */
} walk;

static bool is_bond(const ch_graph *g, int32_t edge) { return g->type[g->pair[edge]] != CH_PAIR_NOT_BONDED; }

static int32_t root_of(const walk *w, int32_t i)
{
    while (w->root[i] != i)
        i = w->root[i] = w->root[w->root[i]];
    return i;
}

/* Each bond once, whichever directions there are. */
static bool is_first(const ch_graph *g, int32_t edge) { return is_bond(g, edge) && g->pair_edge[g->pair[edge]] == edge; }

/* Returns bonds less bonds that join fragments: rings. */
static int32_t fragments_join(const walk *w)
{
    const ch_graph *g = w->g;
    int32_t rings = 0;

    for (int32_t i = 0; i < g->n_nodes; i++)
        w->root[i] = i;
    for (int32_t i = 0; i < g->n_nodes; i++)
        for (int32_t e = g->row[i]; e < g->row[i + 1]; e++) {
            if (!is_first(g, e))
                continue;
            const int32_t a = root_of(w, i), b = root_of(w, g->src[e]);
            rings += a == b;
            w->root[a] = b;
        }
    return rings;
}

/* Atoms of the smallest ring through the bond `pair` from a to b; 0: it is in none. Breadth first, without the bond itself. */
static int32_t ring_size(const walk *w, int32_t a, int32_t b, int32_t pair)
{
    const ch_graph *g = w->g;
    int32_t n = 1;

    memset(w->far, -1, (size_t)g->n_nodes * sizeof *w->far);
    w->far[a] = 0;
    w->queue[0] = a;
    for (int32_t k = 0; k < n && w->far[b] < 0; k++) {
        const int32_t i = w->queue[k];
        for (int32_t e = g->row[i]; e < g->row[i + 1]; e++) {
            const int32_t j = g->src[e];
            if (g->pair[e] == pair || !is_bond(g, e) || w->far[j] >= 0 || g->z[j] == 1)
                continue;
            w->far[j] = w->far[i] + 1;
            w->queue[n++] = j;
        }
    }
    return w->far[b] < 0 ? 0 : w->far[b] + 1;
}

static uint32_t ring_sizes(const walk *w)
{
    const ch_graph *g = w->g;
    uint32_t sizes = 0;

    for (int32_t i = 0; i < g->n_nodes; i++)
        for (int32_t e = g->row[i]; e < g->row[i + 1]; e++) {
            if (!is_first(g, e) || g->z[i] == 1 || g->z[g->src[e]] == 1)
                continue;
            const int32_t size = ring_size(w, i, g->src[e], g->pair[e]);
            sizes |= size ? 1u << (size < NN_RING_MOST ? size : NN_RING_MOST) : 0;
        }
    return sizes;
}

static nn_kind kind_of(const ch_graph *g, int32_t i)
{
    nn_kind k = { .z = g->z[i], .charge = g->charge[i] };

    for (int32_t e = g->row[i]; e < g->row[i + 1] && k.charge != 0; e++)
        k.paired = k.paired || (is_bond(g, e) && g->charge[g->src[e]] * k.charge < 0);
    return k;
}

static bool is_conjugated(const ch_graph *g, int32_t i)
{
    bool is = false;

    for (int32_t e = g->row[i]; e < g->row[i + 1] && !is; e++)
        is = is_bond(g, e) && g->type[g->pair[e]] != CH_PAIR_SINGLE;
    return is;
}

/* Bonds of an atom, as usual: those of the neutral element with as many electrons; below the second row two more are fine, and of
 * nitrogen, which N(=O)=O has for a nitro group. An element that is not in the list has any. */
static bool is_usual(int z, int bonds)
{
    static const struct {
        uint8_t z, bonds;
    } usual[] = { { 5, 3 },  { 6, 4 },  { 7, 3 },  { 8, 2 },  { 9, 1 },  { 14, 4 }, { 15, 3 },
                  { 16, 2 }, { 17, 1 }, { 33, 3 }, { 34, 2 }, { 35, 1 }, { 53, 1 } };

    for (size_t k = 0; k < sizeof usual / sizeof *usual; k++)
        if (usual[k].z == z)
            return bonds == usual[k].bonds || ((z > 10 || z == 7) && bonds > usual[k].bonds && (bonds - usual[k].bonds) % 2 == 0);
    return true;
}

/* Of aromatic atoms only carbon is sure: it has three neighbours. The others may have their lone pair in the ring or not. */
static bool is_unusual(const ch_graph *g, int32_t i)
{
    const int z = g->z[i] - g->charge[i];
    int bonds = 0, neighbours = 0;
    bool aromatic = false;

    for (int32_t e = g->row[i]; e < g->row[i + 1]; e++) {
        const int type = g->type[g->pair[e]];
        if (type == CH_PAIR_NOT_BONDED)
            continue;
        neighbours++;
        bonds += type == CH_PAIR_AROMATIC ? 0 : 1 + type - CH_PAIR_SINGLE;
        aromatic = aromatic || type == CH_PAIR_AROMATIC;
    }
    return aromatic ? z == 6 && neighbours != 3 : !is_usual(z, bonds);
}

static void kind_add(nn_traits *t, nn_kind k)
{
    for (int32_t j = 0; j < t->n_kinds; j++)
        if (t->kind[j].z == k.z && t->kind[j].charge == k.charge && t->kind[j].paired == k.paired)
            return;
    if (t->n_kinds <= NN_KINDS_MAX)
        t->kind[t->n_kinds++] = k;
}

pl_code nn_traits_of(nn_traits *out, const ch_graph *g, pl_arena *mem, pl_error *err)
{
    walk w = { .g = g,
               .root = PL_NEW(mem, int32_t, g->n_nodes + 1),
               .far = PL_NEW(mem, int32_t, g->n_nodes + 1),
               .queue = PL_NEW(mem, int32_t, g->n_nodes + 1) };

    *out = (nn_traits){ 0 };
    if (w.root == NULL || w.far == NULL || w.queue == NULL)
        return pl_fail(err, PL_ENOMEM, "the traits of a molecule of %d atoms", (int)g->n_nodes);
    out->number[NN_RINGS] = fragments_join(&w);
    out->ring_sizes = out->number[NN_RINGS] ? ring_sizes(&w) : 0;
    for (int32_t i = 0; i < g->n_nodes; i++) {
        out->number[NN_CHARGE] += g->charge[i];
        out->number[NN_FRAGMENTS] += w.root[i] == i;
        kind_add(out, kind_of(g, i));
        if (g->z[i] == 1)
            continue;
        out->number[NN_HEAVY]++;
        out->number[NN_CONJUGATED] += is_conjugated(g, i);
        out->number[NN_VALENCES] += is_unusual(g, i);
    }
    return PL_OK;
}
