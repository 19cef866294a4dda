/* SPDX-License-Identifier: Apache-2.0 */
#include "models/cuda/cuda_batch.h"

#include <stdlib.h>
#include <string.h>

#include "models/network/frame.h"

typedef struct nn_cuda_pair {
    uint64_t key;                /* kind and interval: see intervals_of */
    int32_t pair, first, second; /* its edges; second -1 if none                  */
    float t;                     /* place in the interval, 0 to 1                 */
} nn_cuda_pair;

static bool room(void **p, size_t *have, size_t bytes)
{
    if (bytes <= *have)
        return true;
    free(*p);
    *have = bytes + bytes / 8;
    *p = malloc(*have);
    if (*p == NULL)
        *have = 0;
    return *p != NULL;
}

/* ---- pairs ---------------------------------------------------------------------- */

/* Without pairs every edge is a pair of its own. */
static bool has_pairs(const nn_batch *in) { return in->pair != NULL && in->pair_edge != NULL; }

/* Returns the number of edges that the pairs cover. */
static int32_t pairs_fill(nn_cuda_prep *p, const nn_batch *in)
{
    int32_t covered = p->n_pairs;
    bool pairs = has_pairs(in);

    for (int32_t i = 0; i < p->n_pairs; i++) {
        int32_t first = pairs ? in->pair_edge[i] : i, back = pairs && in->rev != NULL ? in->rev[first] : -1;
        bool both = back >= 0 && back != first && in->pair[back] == i;
        p->pair[i] = (nn_cuda_pair){ 0, i, first, both ? back : -1, 0 };
        covered += both;
    }
    return covered;
}

static const float *features_of(const nn_batch *in, int32_t e) { return in->edge + (size_t)e * (size_t)in->n_edge_features; }

static uint32_t float_bits(float x)
{
    uint32_t u;

    memcpy(&u, &x, sizeof u);
    return u;
}

static bool same_bits(const float *a, const float *b, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        if (float_bits(a[i]) != float_bits(b[i]))
            return false;
    return true;
}

/* Index in a hash table of 2^bits of the first edge with the same features, bit by bit; a free place if there is none. */
static uint32_t kind_at(const nn_cuda_kind *kind, int bits, const nn_batch *in, int32_t e)
{
    const float *f = features_of(in, e);
    uint32_t hash = 0, mask = (UINT32_C(1) << bits) - 1, at;

    for (int32_t i = 0; i < in->n_edge_features; i++)
        hash += float_bits(f[i]) * (2654435761u + 2 * (uint32_t)i * 40503u);
    at = hash >> (32 - bits);
    while (kind[at].edge >= 0 && !same_bits(f, features_of(in, kind[at].edge), in->n_edge_features))
        at = (at + 1) & mask;
    return at;
}

/* Numbers the kinds in order of appearance; returns how many there are. */
static int32_t kinds_of(nn_cuda_prep *p, const nn_batch *in)
{
    int32_t n = 0;

    if (in->n_edge_features == 0)
        return 1;
    memset(p->kind, 0xff, sizeof *p->kind << p->kind_bits);
    for (int32_t i = 0; i < p->n_pairs; i++) {
        nn_cuda_kind *k = &p->kind[kind_at(p->kind, p->kind_bits, in, p->pair[i].first)];
        if (k->edge < 0)
            *k = (nn_cuda_kind){ p->pair[i].first, n++ };
        p->pair[i].key = (uint64_t)k->number;
    }
    return n;
}

/* Keys of neighbouring intervals of one kind differ by one. Kinds are two apart, so keys of different kinds never do. Returns
 * the largest key plus one. */
static uint64_t intervals_of(nn_cuda_prep *p, const nn_batch *in)
{
    uint64_t min = UINT64_MAX, max = 0, kinds = (uint64_t)kinds_of(p, in);

    for (int32_t i = 0; i < p->n_pairs; i++) {
        uint64_t j = (uint64_t)(in->dist[p->pair[i].first] / p->width);
        min = j < min ? j : min;
        max = j > max ? j : max;
    }
    p->interval = min;
    p->stride = max - min + 2;
    for (int32_t i = 0; i < p->n_pairs; i++) {
        double at = in->dist[p->pair[i].first] / p->width;
        p->pair[i].t = (float)(at - (double)(uint64_t)at);
        p->pair[i].key = p->pair[i].key * p->stride + (uint64_t)at - min;
    }
    return kinds * p->stride;
}

/* ---- sorting --------------------------------------------------------------------- */

enum { DIGIT = 12, VALUES = 1 << DIGIT }; /* bits of a key per pass */

/* Stable sort into `to` by the digit that begins at a bit. */
static void digit_sort(nn_cuda_pair *to, const nn_cuda_pair *from, int32_t n, int bit)
{
    int32_t at[VALUES] = { 0 }, sum = 0;

    for (int32_t i = 0; i < n; i++)
        at[from[i].key >> bit & (VALUES - 1)]++;
    for (int v = 0; v < VALUES; v++) {
        int32_t count = at[v];
        at[v] = sum;
        sum += count;
    }
    for (int32_t i = 0; i < n; i++)
        to[at[from[i].key >> bit & (VALUES - 1)]++] = from[i];
}

static void pairs_swap(nn_cuda_prep *p)
{
    nn_cuda_pair *pair = p->pair;
    size_t bytes = p->pair_room;

    p->pair = p->spare;
    p->pair_room = p->spare_room;
    p->spare = pair;
    p->spare_room = bytes;
}

/* Sorts by key, equal keys by number; in exact mode every pair is a cell, in the order of the batch. */
static void pairs_sort(nn_cuda_prep *p, const nn_batch *in)
{
    uint64_t max = p->radial == NN_RADIAL_EXACT || p->n_pairs == 0 ? 0 : intervals_of(p, in);

    for (int bit = 0; bit < 64 && max >> bit; bit += DIGIT) {
        digit_sort(p->spare, p->pair, p->n_pairs, bit);
        pairs_swap(p);
    }
}

/* ---- cells ----------------------------------------------------------------------- */

/* Opens cells; nodes are only numbered here and filled later. */
static void cells_cut(nn_cuda_prep *p)
{
    bool exact = p->radial == NN_RADIAL_EXACT;
    int32_t tile_rows = 0;

    p->n_cells = p->n_nodes = p->n_tiles = p->n_rows = 0;
    for (int32_t i = 0; i < p->n_pairs; i++) {
        const nn_cuda_pair *pair = &p->pair[i];
        int32_t rows = pair->second >= 0 ? 2 : 1;
        if (exact || i == 0 || pair->key != pair[-1].key) {
            bool next = !exact && i > 0 && pair->key == pair[-1].key + 1;
            int32_t left = next ? p->n_nodes - 1 : p->n_nodes++;
            p->cell[p->n_cells++] = (nn_cuda_cell){ { left, exact ? -1 : p->n_nodes++ }, p->n_rows, p->n_tiles };
            tile_rows = NN_GPU_TILE;
        }
        if (tile_rows + rows > NN_GPU_TILE) {
            p->n_tiles++;
            tile_rows = 0;
        }
        tile_rows += rows;
        p->n_rows += rows;
    }
    p->cell[p->n_cells] = (nn_cuda_cell){ { p->n_nodes, -1 }, p->n_rows, p->n_tiles };
    p->n_whole = exact ? (p->n_rows + NN_GPU_TILE - 1) / NN_GPU_TILE : 0;
}

/* ---- the block -------------------------------------------------------------------- */

typedef struct cutter {
    char *p;
    size_t at;
} cutter;

static void *cut(cutter *c, size_t n, size_t size)
{
    void *p = c->p != NULL ? c->p + c->at : NULL;

    c->at += (n * size + 255) / 256 * 256;
    return p;
}

static size_t block_cut(nn_cuda_prep *p, const nn_batch *in, char *host)
{
    size_t pairs = (size_t)p->n_pairs, rows = (size_t)p->n_rows, nodes = (size_t)p->n_nodes;
    bool stored = in->frame != NULL && has_pairs(in), enveloped = p->inputs->envelope != NN_ENVELOPE_NONE;
    cutter c = { host, 0 };

    p->stored = cut(&c, stored ? pairs * NN_FRAME_FLOATS : 0, sizeof(float));
    p->vec = cut(&c, stored ? 0 : pairs * 3, sizeof(float));
    p->scalar = cut(&c, nodes * (size_t)p->n_scalars, sizeof(float));
    p->node = cut(&c, (size_t)in->n_nodes * (size_t)in->n_node_features, sizeof(float));
    p->phi = cut(&c, 2 * rows, sizeof(float));
    p->src = cut(&c, rows, sizeof(int32_t));
    p->dst = cut(&c, rows, sizeof(int32_t));
    p->frame = cut(&c, rows, sizeof(int32_t));
    p->in_first = cut(&c, (size_t)in->n_nodes + 1, sizeof(int32_t));
    p->in_row = cut(&c, rows, sizeof(int32_t));
    p->out_first = cut(&c, (size_t)in->n_nodes + 1, sizeof(int32_t));
    p->out_row = cut(&c, rows, sizeof(int32_t));
    p->in_sum = cut(&c, (size_t)in->n_nodes, sizeof(float));
    p->log_envelope = cut(&c, enveloped ? rows : 0, sizeof(float));
    p->graph = cut(&c, (size_t)in->n_graphs + 1, sizeof(int32_t));
    p->target = cut(&c, (size_t)p->n_targets, sizeof(float));
    p->high = cut(&c, (size_t)p->n_targets, sizeof(float));
    p->tile = cut(&c, (size_t)p->n_tiles, sizeof(nn_gpu_tile));
    p->whole = cut(&c, (size_t)p->n_whole, sizeof(nn_gpu_tile));
    p->span = cut(&c, nodes, sizeof(nn_gpu_span));
    if (!enveloped)
        p->log_envelope = NULL;
    if (!stored)
        p->stored = NULL;
    else
        p->vec = NULL;
    return c.at;
}

/* ---- filling it --------------------------------------------------------------------- */

static void row_fill(nn_cuda_prep *p, const nn_batch *in, int32_t row, int32_t edge, int32_t frame)
{
    ((int32_t *)p->src)[row] = in->src[edge];
    ((int32_t *)p->dst)[row] = in->dst[edge];
    ((int32_t *)p->frame)[row] = frame;
    p->row_of[edge] = row;
}

static void pair_fill(nn_cuda_prep *p, const nn_batch *in, int32_t i, int32_t row)
{
    const nn_cuda_pair *pair = &p->pair[i];
    float *phi = (float *)p->phi + 2 * (size_t)row;
    const double u = nn_radial_envelope(p->inputs, (double)in->dist[pair->first], NULL);

    for (int k = 0; k < (pair->second >= 0 ? 2 : 1); k++) {
        row_fill(p, in, row + k, k ? pair->second : pair->first, 2 * i + k);
        phi[2 * k] = (1 - pair->t) * (float)u;
        phi[2 * k + 1] = pair->t * (float)u;
        if (p->log_envelope != NULL)
            ((float *)p->log_envelope)[row + k] = (float)nn_radial_log_envelope(u);
    }
    if (p->stored != NULL)
        memcpy((float *)p->stored + (size_t)i * NN_FRAME_FLOATS, in->frame + (size_t)pair->pair * NN_FRAME_FLOATS,
               NN_FRAME_FLOATS * sizeof(float));
    else
        memcpy((float *)p->vec + 3 * (size_t)i, in->vec[pair->first], 3 * sizeof(float));
}

/* A radial node: the features of the pair's kind, then what stands for the distance. */
static void node_fill(nn_cuda_prep *p, const nn_batch *in, int32_t node, int32_t pair, float dist)
{
    size_t n = (size_t)in->n_edge_features;
    float *s = (float *)p->scalar + (size_t)node * (size_t)p->n_scalars;

    if (n)
        memcpy(s, features_of(in, p->pair[pair].first), n * sizeof *s);
    nn_radial_floats(p->inputs, dist, s + n);
}

static void cell_fill(nn_cuda_prep *p, const nn_batch *in, const nn_cuda_cell *cell, int32_t pair)
{
    nn_gpu_span *span = (nn_gpu_span *)p->span;
    bool exact = p->radial == NN_RADIAL_EXACT;
    double j = exact ? 0 : (double)(p->pair[pair].key % p->stride + p->interval);

    for (int k = 0; k < 2 && cell->node[k] >= 0; k++) {
        float dist = exact ? in->dist[p->pair[pair].first] : (float)((j + k) * p->width);
        node_fill(p, in, cell->node[k], pair, dist);
        span[cell->node[k]].first[k] = cell[0].row;
        span[cell->node[k]].end[k] = cell[1].row;
    }
}

/* Cuts a cell into tiles; the edges of a pair stay in one tile. */
static void tiles_fill(nn_cuda_prep *p, const nn_cuda_cell *cell, int32_t pair)
{
    nn_gpu_tile *tile = (nn_gpu_tile *)p->tile + cell->tile - 1;
    int32_t rows = NN_GPU_TILE, row = cell[0].row;

    while (row < cell[1].row) {
        int32_t n = p->pair[pair++].second >= 0 ? 2 : 1;
        if (rows + n > NN_GPU_TILE) {
            *++tile = (nn_gpu_tile){ row, 0, { cell->node[0], cell->node[1] } };
            rows = 0;
        }
        tile->n += n;
        rows += n;
        row += n;
    }
}

static void whole_fill(nn_cuda_prep *p)
{
    nn_gpu_tile *tile = (nn_gpu_tile *)p->whole;

    for (int32_t i = 0, left = p->n_rows; i < p->n_whole; i++, left -= NN_GPU_TILE)
        tile[i] = (nn_gpu_tile){ i * NN_GPU_TILE, left < NN_GPU_TILE ? left : NN_GPU_TILE, { -1, -1 } };
}

/* Groups rows by node, in the batch's order of edges. */
static void rows_group(const nn_cuda_prep *p, const nn_batch *in, const int32_t *node, int32_t *first, int32_t *row)
{
    memset(first, 0, ((size_t)in->n_nodes + 1) * sizeof *first);
    for (int32_t e = 0; e < in->n_edges; e++)
        first[node[e] + 1]++;
    for (int32_t i = 0; i < in->n_nodes; i++)
        first[i + 1] += first[i];
    for (int32_t e = 0; e < in->n_edges; e++)
        row[first[node[e]]++] = p->row_of[e];
    for (int32_t i = in->n_nodes; i > 0; i--)
        first[i] = first[i - 1];
    first[0] = 0;
}

/* Rows by target node; most batches already have their edges in this order. */
static void in_rows(const nn_cuda_prep *p, const nn_batch *in)
{
    if (in->row == NULL) {
        rows_group(p, in, in->dst, (int32_t *)p->in_first, (int32_t *)p->in_row);
        return;
    }
    memcpy((void *)p->in_first, in->row, ((size_t)in->n_nodes + 1) * sizeof *in->row);
    memcpy((void *)p->in_row, p->row_of, (size_t)in->n_edges * sizeof *p->row_of);
}

/* The sum of the envelopes of the edges into each node: without an envelope, their number. */
static void sums_fill(nn_cuda_prep *p, const nn_batch *in)
{
    float *sum = (float *)p->in_sum;

    if (in->n_nodes)
        memset(sum, 0, (size_t)in->n_nodes * sizeof *sum);
    for (int32_t e = 0; e < in->n_edges; e++)
        sum[in->dst[e]] += (float)nn_radial_envelope(p->inputs, (double)in->dist[e], NULL);
}

static void block_fill(nn_cuda_prep *p, const nn_batch *in)
{
    int32_t row = 0, cell = 0;

    memset((void *)p->span, 0, (size_t)p->n_nodes * sizeof *p->span);
    whole_fill(p);
    for (int32_t i = 0; i < p->n_pairs; i++) {
        if (row == p->cell[cell].row) {
            cell_fill(p, in, &p->cell[cell], i);
            tiles_fill(p, &p->cell[cell++], i);
        }
        pair_fill(p, in, i, row);
        row += p->pair[i].second >= 0 ? 2 : 1;
    }
    if (in->n_nodes)
        memcpy((void *)p->node, in->node, (size_t)in->n_nodes * (size_t)in->n_node_features * sizeof(float));
    memcpy((void *)p->graph, in->first, ((size_t)in->n_graphs + 1) * sizeof(int32_t));
    in_rows(p, in);
    rows_group(p, in, in->src, (int32_t *)p->out_first, (int32_t *)p->out_row);
    sums_fill(p, in);
}

static bool rooms(nn_cuda_prep *p, const nn_batch *in)
{
    size_t pairs = (size_t)p->n_pairs + 1;

    for (p->kind_bits = 1; (size_t)1 << p->kind_bits < 2 * pairs;)
        p->kind_bits++;
    return room((void **)&p->pair, &p->pair_room, pairs * sizeof *p->pair) &&
           room((void **)&p->spare, &p->spare_room, pairs * sizeof *p->spare) &&
           room((void **)&p->kind, &p->kind_room, sizeof *p->kind << p->kind_bits) &&
           room((void **)&p->cell, &p->cell_room, pairs * sizeof *p->cell) &&
           room((void **)&p->row_of, &p->edge_room, ((size_t)in->n_edges + 1) * sizeof *p->row_of);
}

pl_code nn_cuda_prep_make(nn_cuda_prep *p, const nn_batch *in, nn_cuda_grow grow, void *ctx, pl_error *err)
{
    p->n_pairs = has_pairs(in) ? in->n_pairs : in->n_edges;
    p->n_scalars = in->n_edge_features + nn_radial_inputs(p->inputs);
    if (!rooms(p, in))
        return pl_fail(err, PL_ENOMEM, "no memory for a batch of %d edges", (int)in->n_edges);
    if (pairs_fill(p, in) != in->n_edges)
        return pl_fail(err, PL_EBUG, "pairs do not cover the %d edges of a batch once each", (int)in->n_edges);
    pairs_sort(p, in);
    cells_cut(p);
    p->bytes = block_cut(p, in, NULL);
    if (p->bytes > p->max)
        p->max = p->bytes + p->bytes / 8;
    if (p->max > p->room) {
        p->host = grow(ctx, p->max);
        p->room = p->host != NULL ? p->max : 0;
    }
    if (p->host == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for a batch of %d edges", (int)in->n_edges);
    block_cut(p, in, p->host);
    block_fill(p, in);
    return PL_OK;
}

void nn_cuda_prep_free(nn_cuda_prep *p)
{
    free(p->pair);
    free(p->spare);
    free(p->kind);
    free(p->cell);
    free(p->row_of);
}
