/* SPDX-License-Identifier: Apache-2.0 */
#include "models/cpu/radial_cells.h"

#include <math.h>
#include <string.h>

#include "models/cpu/cpu_batch.h"

enum { SCALAR, SLOT, WEIGHT, TILE, PIECE, SUM_NODE, CHUNK, TILE_SUM, N_BUFS };

/* State while cells are made, tile after tile. Nodes are numbered over the whole batch here. */
typedef struct maker {
    nn_cpu_cells *c;
    const nn_cpu_prep *prep;
    double width;
    nn_cpu_tile *tile;
    int32_t *piece, *sum_node;
    nn_cpu_chunk *chunk;
    float *scalar;
    double cell;  /* cell of the last pair */
    int32_t left; /* left node of that cell; the right one is the next */
} maker;

static bool cells_grow(nn_cpu_cells *c, const nn_cpu_prep *p)
{
    size_t n = (size_t)p->n_pairs, rows = 2 * n;
    nn_buf *b = c->bufs;

    return nn_buf_grow(&b[SCALAR], rows * (size_t)p->n_scalars, sizeof(float)) && nn_buf_grow(&b[SLOT], rows, sizeof(int32_t)) &&
           nn_buf_grow(&b[WEIGHT], 2 * rows, sizeof(float)) && nn_buf_grow(&b[TILE], n, sizeof(nn_cpu_tile)) &&
           nn_buf_grow(&b[PIECE], n + 1, sizeof(int32_t)) && nn_buf_grow(&b[SUM_NODE], rows, sizeof(int32_t)) &&
           nn_buf_grow(&b[CHUNK], n, sizeof(nn_cpu_chunk)) && nn_buf_grow(&b[TILE_SUM], n, sizeof(double));
}

static const float *pair_scalars(const maker *m, int32_t pair)
{
    return m->prep->scalar + (size_t)pair * (size_t)m->prep->n_scalars;
}

static bool same_kind(const maker *m, int32_t pair)
{
    size_t n = (size_t)m->prep->n_scalars - 1;

    return pair && !memcmp(pair_scalars(m, pair - 1), pair_scalars(m, pair), n * sizeof(float));
}

/* A node of the pair's kind at the lower end of cell j. */
static void node_add(maker *m, int32_t pair, double j)
{
    size_t n = (size_t)m->prep->n_scalars;
    float *s = m->scalar + (size_t)m->c->n_nodes++ * n;

    memcpy(s, pair_scalars(m, pair), (n - 1) * sizeof *s);
    s[n - 1] = (float)(j * m->width);
}

/* Whether the pair is the first of a cell; adds the cell's nodes unless they exist. */
static bool cell_open(maker *m, int32_t pair, double j)
{
    bool same = same_kind(m, pair), next = same && j == m->cell + 1;

    if (same && j == m->cell)
        return false;
    if (!next)
        node_add(m, pair, j);
    m->left = m->c->n_nodes - 1;
    node_add(m, pair, j + 1);
    m->cell = j;
    return true;
}

static void row_add(maker *m, int32_t slot, float t)
{
    nn_cpu_cells *c = m->c;
    float *w = c->bufs[WEIGHT].p, u = m->prep->envelope != NULL ? m->prep->envelope[slot / 2] : 1;

    if (m->prep->slot[slot] < 0)
        return;
    ((int32_t *)c->bufs[SLOT].p)[c->n_rows] = slot;
    w[c->n_rows] = (1 - t) * u;
    w[2 * (size_t)m->prep->n_pairs + (size_t)c->n_rows] = t * u;
    c->n_rows++;
}

static int32_t sum_add(maker *m, nn_cpu_chunk *k, int32_t node)
{
    m->sum_node[m->c->n_sums++] = node - k->node;
    return k->n_sums++;
}

/* Gradient sums of a new tile: those of the previous tile if both are in the same piece. */
static void tile_sums(maker *m, nn_cpu_chunk *k, nn_cpu_tile *t, bool piece_begins)
{
    const nn_cpu_tile *last = piece_begins ? NULL : t - 1;

    for (int j = 0; j < 2; j++) {
        int32_t node = m->left + j;
        t->node[j] = node - k->node;
        t->fresh[j] = true;
        for (int i = 0; last != NULL && i < 2; i++)
            if (last->node[i] == t->node[j]) {
                t->sum[j] = last->sum[i];
                t->fresh[j] = false;
            }
        if (t->fresh[j])
            t->sum[j] = sum_add(m, k, node);
    }
    k->n_nodes = m->left + 2 - k->node;
}

static void tile_open(maker *m)
{
    nn_cpu_cells *c = m->c;
    nn_cpu_chunk *k = c->n_chunks ? &m->chunk[c->n_chunks - 1] : NULL;
    bool piece;

    if (k == NULL || m->left + 2 - k->node > NN_CHUNK_NODES || k->n_sums + 2 > NN_CHUNK_SUMS) {
        k = &m->chunk[c->n_chunks++];
        *k = (nn_cpu_chunk){ .tile = c->n_tiles, .piece = c->n_pieces, .node = m->left, .sum = c->n_sums };
    }
    piece = !k->n_pieces || c->n_tiles - m->piece[c->n_pieces - 1] == NN_PIECE_TILES;
    if (piece) {
        m->piece[c->n_pieces++] = c->n_tiles;
        k->n_pieces++;
    }
    m->tile[c->n_tiles] = (nn_cpu_tile){ .first = c->n_rows };
    tile_sums(m, k, &m->tile[c->n_tiles++], piece);
    k->n_tiles++;
}

static void pair_add(maker *m, int32_t pair)
{
    double at = pair_scalars(m, pair)[m->prep->n_scalars - 1] / m->width, j = floor(at);
    nn_cpu_tile *last = m->c->n_tiles ? &m->tile[m->c->n_tiles - 1] : NULL;

    if (cell_open(m, pair, j) || last->n_rows + 2 > NN_TILE_ROWS)
        tile_open(m);
    for (int i = 0; i < 2; i++)
        row_add(m, 2 * pair + i, (float)(at - j));
    last = &m->tile[m->c->n_tiles - 1];
    last->n_rows = m->c->n_rows - last->first;
}

bool nn_cpu_cells_make(nn_cpu_cells *c, const nn_cpu_prep *prep, double width)
{
    maker m = { .c = c, .prep = prep, .width = width, .cell = -1 };

    if (!cells_grow(c, prep))
        return false;
    m.tile = c->bufs[TILE].p;
    m.piece = c->bufs[PIECE].p;
    m.sum_node = c->bufs[SUM_NODE].p;
    m.chunk = c->bufs[CHUNK].p;
    m.scalar = c->bufs[SCALAR].p;
    c->n_nodes = c->n_rows = c->n_tiles = c->n_pieces = c->n_sums = c->n_chunks = 0;
    for (int32_t i = 0; i < prep->n_pairs; i++)
        pair_add(&m, i);
    m.piece[c->n_pieces] = c->n_tiles;
    c->scalar = m.scalar;
    c->slot = c->bufs[SLOT].p;
    c->weight[0] = c->bufs[WEIGHT].p;
    c->weight[1] = c->weight[0] + 2 * (size_t)prep->n_pairs;
    c->tile = m.tile;
    c->piece = m.piece;
    c->sum_node = m.sum_node;
    c->chunk = m.chunk;
    c->tile_sum = c->bufs[TILE_SUM].p;
    return true;
}

void nn_cpu_cells_free(nn_cpu_cells *c)
{
    for (int i = 0; i < N_BUFS; i++)
        nn_buf_free(&c->bufs[i]);
}

size_t nn_cpu_cells_bytes(const nn_cpu_cells *c)
{
    size_t sum = 0;

    for (int i = 0; i < N_BUFS; i++)
        sum += c->bufs[i].bytes;
    return sum;
}
