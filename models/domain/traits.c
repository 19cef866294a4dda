/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of a molecule as a whole, computed from its graph. */
#include <string.h>

#include "chem/molecule/valence.h"
#include "models/domain/range.h"

static const char *const sources[NN_SOURCES] = { "input", "mmff94", "uff", "mmff94s", "none" };

nn_source nn_source_of(const char *geometry)
{
    int k = 0;

    while (k < NN_SOURCE_NONE && (geometry == NULL || strcmp(geometry, sources[k]) != 0))
        k++;
    return (nn_source)k;
}

typedef struct walk {
    const ch_graph *g;
    int32_t *root;        /* [n] root atom of the fragment */
    int32_t *far, *queue; /* [n] bonds from the start, -1: not reached; [n]      */
} walk;

static bool is_bond(const ch_graph *g, int32_t edge) { return g->type[g->pair[edge]] != CH_PAIR_NOT_BONDED; }

static int32_t root_of(const walk *w, int32_t i)
{
    while (w->root[i] != i)
        i = w->root[i] = w->root[w->root[i]];
    return i;
}

/* True for one of the directed edges of each bond, whichever directions are there. */
static bool is_first(const ch_graph *g, int32_t edge) { return is_bond(g, edge) && g->pair_edge[g->pair[edge]] == edge; }

/* Number of rings: the bonds minus those that join fragments. */
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
            sizes |= size ? 1u << (size < NN_RING_MAX ? size : NN_RING_MAX) : 0;
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

typedef struct bonds {
    int sum, neighbours, aromatic; /* sum of the orders of bonds that are not aromatic; aromatic: bonds */
} bonds;

static bonds bonds_of(const ch_graph *g, int32_t i)
{
    bonds b = { 0 };

    for (int32_t e = g->row[i]; e < g->row[i + 1]; e++) {
        const int type = g->type[g->pair[e]];
        if (type == CH_PAIR_NOT_BONDED)
            continue;
        b.neighbours++;
        b.aromatic += type == CH_PAIR_AROMATIC;
        b.sum += type == CH_PAIR_AROMATIC ? 0 : 1 + type - CH_PAIR_SINGLE;
    }
    return b;
}

/* Of aromatic atoms only carbon is sure: it has three neighbours. The others may have their lone pair in the ring or not. */
static bool is_unusual(const ch_graph *g, int32_t i)
{
    const bonds b = bonds_of(g, i);

    return b.aromatic > 0 ? g->z[i] - g->charge[i] == 6 && b.neighbours != 3 : ch_free_valences(g->z[i], g->charge[i], b.sum) != 0;
}

const uint8_t nn_expanded_z[NN_EXPANDED] = { 7, 14, 15, 16, 17, 33, 34, 35, 53 };

/* An aromatic atom has one bond more if its lone pair is not in the ring: pyridine oxide drawn as n(=O) has five. */
static void expanded_add(nn_traits *t, const ch_graph *g, int32_t i)
{
    const bonds b = bonds_of(g, i);
    const int fewest = ch_fewest_bonds(g->z[i], g->charge[i]);
    int sum = b.sum + b.aromatic;

    sum += b.aromatic > 0 && sum > fewest && (sum - fewest) % 2 != 0;
    for (int k = 0; k < NN_EXPANDED && fewest >= 0 && sum > fewest; k++)
        if (nn_expanded_z[k] == g->z[i])
            t->expanded[k] |= (uint16_t)(1u << (sum < NN_EXPANDED_MAX ? sum : NN_EXPANDED_MAX));
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
               .root = PL_NEW(mem, int32_t, g->n_nodes),
               .far = PL_NEW(mem, int32_t, g->n_nodes),
               .queue = PL_NEW(mem, int32_t, g->n_nodes) };

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
        expanded_add(out, g, i);
    }
    return PL_OK;
}
