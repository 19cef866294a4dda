/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "models/features/feature.h"
#include "models/network/frame.h"

/* The arrays of a batch, cut from one piece of memory that only grows. */
struct nn_collate {
    unsigned char *base;
    size_t cap, used;
    int32_t *item; /* separate: needed before the sizes are known */
    nn_left_out *left;
    int32_t item_cap;
};

/* The arrays of an nn_batch, writable. */
typedef struct sheet {
    int32_t n_nodes, n_edges, n_pairs, node_width, edge_width;
    int32_t *first, *src, *dst, *row, *rev, *pair, *pair_edge;
    float *node, *edge, (*vec)[3], *dist, *frame, (*noise)[3];
} sheet;

typedef struct sheet_has {
    bool frames, noise;
} sheet_has;

nn_collate *nn_collate_new(void) { return calloc(1, sizeof(nn_collate)); }

void nn_collate_free(nn_collate *c)
{
    if (c == NULL)
        return;
    free(c->base);
    free(c->item);
    free(c->left);
    free(c);
}

size_t nn_collate_bytes(const nn_collate *c) { return c->cap + (size_t)c->item_cap * (sizeof *c->item + sizeof *c->left); }

nn_item nn_item_of(const ch_graph_block *graphs, const nn_basis_block *basis, int32_t i)
{
    nn_item item = { .graph = &graphs->graph[i] };

    if (basis != NULL && basis->kind == NN_BASIS_FRAME_Q15)
        item.frame_q15 = basis->q15 + basis->at[i] * NN_FRAME_FLOATS;
    if (basis != NULL && basis->kind == NN_BASIS_FRAME_F32)
        item.frame_f32 = basis->f32 + basis->at[i] * NN_FRAME_FLOATS;
    return item;
}

int32_t nn_collate_take(const nn_item *items, int32_t first, int32_t n, int32_t max_graphs, int64_t max_edges)
{
    int64_t edges = 0;
    int32_t i = first;

    for (; i < n; i++) {
        edges += items[i].graph->n_edges;
        if (i > first && ((max_graphs > 0 && i - first >= max_graphs) || (max_edges > 0 && edges > max_edges)))
            break;
    }
    return i - first;
}

/* ---- which, and how much ---- */

static pl_code room_for_items(nn_collate *c, int32_t n, pl_error *err)
{
    int32_t *item;
    nn_left_out *left;

    if (n <= c->item_cap)
        return PL_OK;
    item = realloc(c->item, (size_t)n * sizeof *item);
    if (item != NULL)
        c->item = item;
    left = realloc(c->left, (size_t)n * sizeof *left);
    if (left != NULL)
        c->left = left;
    if (item == NULL || left == NULL)
        return pl_fail(err, PL_ENOMEM, "a batch of %d molecules", n);
    c->item_cap = n;
    return PL_OK;
}

/* Sorts the items into kept and left out; adds up the sizes of the kept ones. */
static pl_code choose(nn_collate *c, nn_collated *out, const nn_item *items, int32_t n, const nn_inputs *inputs, pl_error *err)
{
    int64_t nodes = 0, edges = 0;

    for (int32_t i = 0; i < n; i++) {
        const ch_graph *g = items[i].graph;
        int32_t unknown = nn_inputs_unknown(inputs, g);
        if ((inputs->n_columns > 0 && items[i].column == NULL) || (inputs->descriptors && items[i].feature == NULL))
            return pl_fail(err, PL_EBUG, "a molecule without its columns came into a batch");
        if (ch_graph_is_flat(g))
            return pl_fail(err, PL_ECONFIG, "a graph without positions (edges: topology): a network cannot read it");
        if (unknown != 0) {
            c->left[out->n_left++] = (nn_left_out){ i, unknown };
            continue;
        }
        c->item[out->batch.n_graphs++] = i;
        nodes += g->n_nodes;
        edges += g->n_edges;
        out->batch.n_pairs += g->n_pairs;
        if (nodes >= INT32_MAX || edges >= INT32_MAX)
            return pl_fail(err, PL_EINPUT, "a batch of %lld edges is too large", (long long)edges);
    }
    out->batch.n_nodes = (int32_t)nodes;
    out->batch.n_edges = (int32_t)edges;
    out->item = c->item;
    out->left = c->left;
    return PL_OK;
}

static bool all_have_frames(const nn_collated *out, const nn_item *items)
{
    for (int32_t g = 0; g < out->batch.n_graphs; g++) {
        const nn_item *it = &items[out->item[g]];
        if ((it->frame_q15 == NULL && it->frame_f32 == NULL) || it->noise > 0)
            return false;
    }
    return out->batch.n_graphs > 0;
}

static bool any_has_noise(const nn_collated *out, const nn_item *items)
{
    bool any = false;

    for (int32_t g = 0; g < out->batch.n_graphs && !any; g++)
        any = items[out->item[g]].noise > 0;
    return any;
}

/* ---- memory ---- */

/* Returns the next piece of memory. Called twice: without memory it only counts, with memory it never returns NULL. */
static void *cut(nn_collate *c, size_t n, size_t size)
{
    void *p = c->base == NULL ? NULL : c->base + c->used;

    c->used += (n * size + 63) / 64 * 64;
    return p;
}

static void cut_sheet(nn_collate *c, sheet *s, int32_t n_graphs, sheet_has has)
{
    size_t nodes = (size_t)s->n_nodes, edges = (size_t)s->n_edges, pairs = (size_t)s->n_pairs;

    c->used = 0;
    s->first = cut(c, (size_t)n_graphs + 1, sizeof(int32_t));
    s->row = cut(c, nodes + 1, sizeof(int32_t));
    s->node = cut(c, nodes * (size_t)s->node_width, sizeof(float));
    s->src = cut(c, edges, sizeof(int32_t));
    s->dst = cut(c, edges, sizeof(int32_t));
    s->rev = cut(c, edges, sizeof(int32_t));
    s->pair = cut(c, edges, sizeof(int32_t));
    s->pair_edge = cut(c, pairs, sizeof(int32_t));
    s->edge = cut(c, edges * (size_t)s->edge_width, sizeof(float));
    s->vec = cut(c, edges, sizeof *s->vec);
    s->dist = cut(c, edges, sizeof(float));
    s->frame = has.frames ? cut(c, pairs * NN_FRAME_FLOATS, sizeof(float)) : NULL;
    s->noise = has.noise ? cut(c, nodes, sizeof *s->noise) : NULL;
}

static pl_code room_for_sheet(nn_collate *c, sheet *s, int32_t n_graphs, sheet_has has, pl_error *err)
{
    unsigned char *held = c->base;
    size_t need;

    c->base = NULL;
    cut_sheet(c, s, n_graphs, has);
    need = c->used;
    c->base = held;
    if (need > c->cap) {
        /* A quarter more, so that growing batches do not allocate every time. */
        size_t cap = (need + need / 4 + 63) / 64 * 64;
        free(c->base);
        c->base = aligned_alloc(64, cap);
        c->cap = c->base == NULL ? 0 : cap;
        if (c->base == NULL)
            return pl_fail(err, PL_ENOMEM, "a batch of %d edges", s->n_edges);
    }
    cut_sheet(c, s, n_graphs, has);
    return PL_OK;
}

/* ---- filling ---- */

static float standardised(double value, const nn_moments *over)
{
    return over->stdev > 0 ? (float)((value - over->mean) / over->stdev) : 0;
}

/* What all atoms of a molecule have in common. */
static void fill_extras(float *to, const nn_item *it, const nn_inputs *in)
{
    for (int32_t k = 0; k < in->n_columns; k++)
        *to++ = standardised((double)it->column[in->column[k].at], &in->column[k].over);
    for (int k = 0; k < CH_N_FEATURES && in->descriptors; k++) {
        const float x = standardised((double)it->feature[k], &in->descriptor[k]);
        *to++ = fmaxf(-NN_DESCRIPTOR_MOST, fminf(NN_DESCRIPTOR_MOST, x));
    }
}

static void fill_nodes(const sheet *s, const nn_item *it, int32_t node0, const nn_inputs *in)
{
    const ch_graph *g = it->graph;
    float *to = s->node + (size_t)node0 * (size_t)s->node_width, *first = to;
    const int32_t extras = in->n_columns + (in->descriptors ? CH_N_FEATURES : 0), own = s->node_width - extras;

    if (g->n_nodes > 0)
        fill_extras(first + own, it, in);
    for (int32_t i = 0; i < g->n_nodes; i++, to += s->node_width) {
        int32_t k = in->n_elements;
        if (i > 0)
            memcpy(to + own, first + own, (size_t)extras * sizeof *to);
        for (int32_t e = 0; e < in->n_elements; e++)
            to[e] = in->element[e] == g->z[i] ? 1.0f : 0.0f;
        if (in->z)
            to[k++] = (float)g->z[i];
        if (in->charge)
            to[k] = (float)g->charge[i];
    }
}

static void fill_edge(const sheet *s, const ch_graph *g, int32_t e, int32_t edge0)
{
    int32_t p = g->pair[e], to = edge0 + e;
    float sign = g->pair_edge[p] == e ? 1.0f : -1.0f;
    float *f = s->edge + (size_t)to * (size_t)s->edge_width;

    for (int a = 0; a < 3; a++)
        s->vec[to][a] = sign * g->vec[p][a];
    s->dist[to] = g->dist[p];
    for (int32_t k = 0; k < s->edge_width; k++)
        f[k] = g->type[p] == k ? 1.0f : 0.0f;
}

/* Draws the noise of a molecule, in units of its deviation. */
static void draw_noise(const sheet *s, const nn_item *it, int32_t node0)
{
    pl_rng random = it->random;

    for (int32_t i = node0; i < node0 + it->graph->n_nodes; i++)
        for (int a = 0; a < 3; a++)
            s->noise[i][a] = it->noise > 0 ? (float)pl_rng_normal(&random) : 0;
}

/* Moves both ends of an edge; that of the other direction gets exactly the opposite vector. */
static void shake_edge(const sheet *s, float by, int32_t e)
{
    const float *to = s->noise[s->dst[e]], *from = s->noise[s->src[e]];
    float *v = s->vec[e];

    for (int a = 0; a < 3; a++)
        v[a] += by * (to[a] - from[a]);
    s->dist[e] = (float)sqrt((double)v[0] * (double)v[0] + (double)v[1] * (double)v[1] + (double)v[2] * (double)v[2]);
}

/* A network cannot see where a molecule is: what is left without the mean can be predicted. */
static void centre_noise(const sheet *s, int32_t node0, int32_t n)
{
    for (int a = 0; a < 3; a++) {
        double sum = 0;
        for (int32_t i = node0; i < node0 + n; i++)
            sum += (double)s->noise[i][a];
        for (int32_t i = node0; i < node0 + n; i++)
            s->noise[i][a] = (float)((double)s->noise[i][a] - sum / n);
    }
}

static void fill_noise(const sheet *s, const nn_item *it, int32_t node0, int32_t edge0)
{
    draw_noise(s, it, node0);
    for (int32_t e = edge0; e < edge0 + it->graph->n_edges && it->noise > 0; e++)
        shake_edge(s, it->noise, e);
    centre_noise(s, node0, it->graph->n_nodes);
}

static void fill_edges(const sheet *s, const ch_graph *g, int32_t node0, int32_t edge0, int32_t pair0)
{
    for (int32_t i = 0; i < g->n_nodes; i++) {
        s->row[node0 + i] = edge0 + g->row[i];
        for (int32_t e = g->row[i]; e < g->row[i + 1]; e++) {
            s->src[edge0 + e] = node0 + g->src[e];
            s->dst[edge0 + e] = node0 + i;
            s->rev[edge0 + e] = g->rev[e] < 0 ? -1 : edge0 + g->rev[e];
            s->pair[edge0 + e] = pair0 + g->pair[e];
            fill_edge(s, g, e, edge0);
        }
    }
    for (int32_t p = 0; p < g->n_pairs; p++)
        s->pair_edge[pair0 + p] = edge0 + g->pair_edge[p];
}

static void fill_frames(const sheet *s, const nn_item *item, int32_t pair0)
{
    size_t n = (size_t)item->graph->n_pairs * NN_FRAME_FLOATS;
    float *to = s->frame + (size_t)pair0 * NN_FRAME_FLOATS;

    if (item->frame_f32 != NULL) {
        memcpy(to, item->frame_f32, n * sizeof *to);
        return;
    }
    for (size_t k = 0; k < n; k++)
        to[k] = (float)item->frame_q15[k] * (1.0f / 32767.0f);
}

static void fill(const sheet *s, const nn_collated *out, const nn_item *items, const nn_inputs *in)
{
    int32_t node = 0, edge = 0, pair = 0;

    for (int32_t g = 0; g < out->batch.n_graphs; g++) {
        const nn_item *it = &items[out->item[g]];
        s->first[g] = node;
        fill_nodes(s, it, node, in);
        fill_edges(s, it->graph, node, edge, pair);
        if (s->frame != NULL)
            fill_frames(s, it, pair);
        if (s->noise != NULL)
            fill_noise(s, it, node, edge);
        node += it->graph->n_nodes;
        edge += it->graph->n_edges;
        pair += it->graph->n_pairs;
    }
    s->first[out->batch.n_graphs] = node;
    s->row[node] = edge;
}

static void publish(nn_batch *b, const sheet *s)
{
    b->n_node_features = s->node_width;
    b->n_edge_features = s->edge_width;
    b->first = s->first;
    b->node = s->node;
    b->src = s->src;
    b->dst = s->dst;
    b->row = s->row;
    b->rev = s->rev;
    b->pair = s->pair;
    b->pair_edge = s->pair_edge;
    b->edge = s->edge;
    b->vec = (const float(*)[3])s->vec;
    b->dist = s->dist;
    b->frame = s->frame;
    b->noise = (const float(*)[3])s->noise;
}

pl_code nn_collate_run(nn_collate *c, nn_collated *out, const nn_item *items, int32_t n, const nn_inputs *inputs, pl_error *err)
{
    sheet s = { 0 };
    sheet_has has;
    pl_code code;

    *out = (nn_collated){ 0 };
    code = room_for_items(c, n, err);
    if (code == PL_OK)
        code = choose(c, out, items, n, inputs, err);
    if (code != PL_OK)
        return code;
    s.n_nodes = out->batch.n_nodes;
    s.n_edges = out->batch.n_edges;
    s.n_pairs = out->batch.n_pairs;
    s.node_width = nn_inputs_node_features(inputs);
    s.edge_width = nn_inputs_edge_features(inputs);
    has = (sheet_has){ all_have_frames(out, items), any_has_noise(out, items) };
    code = room_for_sheet(c, &s, out->batch.n_graphs, has, err);
    if (code != PL_OK)
        return code;
    fill(&s, out, items, inputs);
    publish(&out->batch, &s);
    return PL_OK;
}
